// The summary, the regret curves, predicted against measured, and the two tables.

const NAMES = { model: "Model", analytical: "Analytical heuristic", aten: "ATen alone", default: "Inductor's default list" };

function drawSummary() {
  const { about, curves, summary } = DATA;
  const first = curves.model[0];
  at("headline").textContent = `${over(first.geomean)} from the best kernel, at the first choice`;
  const releases = about.torch.length ? `, timed with torch ${about.torch.join(", ")}` : "";
  at("lead").textContent = `${about.hardware}: ${count(about.timings)} timings of ${count(about.problems + about.alone)} ` +
    `problems in ${about.dataset}${releases}. Model: ${about.model} (${about.model_kind} network), trained on ` +
    `${about.model_hardware} under torch ${about.model_torch.join(", ")}.`;
  at("how").textContent = [
    `${about.scored_how} ${count(about.scored)} problems scored.`,
    ...about.abstained.map((a) => `The model abstains on ${count(a.problems)}: ${a.reason}.`),
    about.alone ? `${count(about.alone)} more problems are left out: one candidate alone was timed, and there is nothing to choose.` : "",
    "Only candidates that were timed count.",
  ].join(" ");
  const figures = [
    [over(first.geomean), "slower than the best, geometric mean", true],
    [percent(summary.within_5), "of first choices are within 5% of the best"],
    curves.aten && [over(curves.aten), "slower than the best: ATen alone"],
    curves.default && [(curves.default_coverage < 1 ? "≤ " : "") + over(curves.default), "slower: Inductor's default list, benchmarked perfectly"],
    summary.slower_than_aten_5 !== null && [percent(summary.slower_than_aten_5), "of first choices are over 5% slower than ATen"],
    [over(curves.noise[0]), "would be charged to a perfect model, by noise alone"],
  ];
  at("figures").replaceChildren(...figures.filter(Boolean).map(([value, text, isFirst]) =>
    h("div", { class: isFirst ? "figure first" : "figure" }, h("b", {}, value), h("span", {}, text))));
  at("foot").textContent = `Made by torch-diode ${about.version}. Data digest ${about.digest.slice(0, 16)}. ` +
    "This page is complete in itself: it loads nothing.";
}

function regretSeries() {
  const { curves } = DATA;
  const flat = (value) => curves.ks.map(() => value);
  return [
    { id: "model", style: "s0", values: curves.model.map((s) => s.geomean) },
    curves.analytical && { id: "analytical", style: "s1", values: curves.analytical.map((s) => s.geomean) },
    curves.default && { id: "default", style: "s3", values: flat(curves.default) },
    curves.aten && { id: "aten", style: "s2", values: flat(curves.aten) },
  ].filter(Boolean);
}

function drawRegret() {
  const place = at("regret-chart"), { curves } = DATA, series = regretSeries();
  const width = Math.max(280, place.clientWidth), height = Math.min(380, Math.max(280, width * 0.68));
  const left = 46, right = 12, top = 12, bottom = 40;
  const shares = [...series.flatMap((s) => s.values), ...curves.noise].map((v) => v - 1).filter((v) => v > 0);
  const least = Math.max(1e-5, Math.min(...shares, 0.01)) * 0.8, most = Math.max(...shares, 0.02) * 1.25;
  const x = (k) => left + ((k - 1) / (curves.ks.length - 1)) * (width - left - right);
  const y = (regret) => {
    const share = Math.min(Math.max(regret - 1, least), most);
    return top + (1 - Math.log(share / least) / Math.log(most / least)) * (height - top - bottom);
  };
  const path = (values) => values.map((v, i) => `${i ? "L" : "M"}${x(i + 1).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  const marks = [];
  for (let power = -5; power < 3; power++)
    for (const digit of most / least > 3000 ? [1] : [1, 2, 5]) {
      const share = digit * 10 ** power;
      if (share >= least && share <= most) marks.push(share);
    }
  const label = (share) => +(100 * share).toPrecision(1) + "%";
  const floor = height - bottom;
  const guide = svg("line", { class: "guide", y1: top, y2: floor });
  const dots = series.map((s, i) => svg("circle", { r: 4, class: s.style.replace("s", "f") }));
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": "Regret by k: " + series.map((s) => `${NAMES[s.id]} ${over(s.values[0])} at k = 1, ${over(s.values.at(-1))} at k = 20`).join("; "),
  },
    marks.map((share) => [
      svg("line", { class: "axis", x1: left, x2: width - right, y1: y(1 + share), y2: y(1 + share) }),
      svg("text", { class: "tick", x: left - 8, y: y(1 + share) + 4, "text-anchor": "end" }, label(share)),
    ]),
    curves.ks.filter((k) => k === 1 || k % 5 === 0).map((k) =>
      svg("text", { class: "tick", x: x(k), y: floor + 18, "text-anchor": "middle" }, String(k))),
    svg("text", { class: "title", x: (left + width - right) / 2, y: height - 3, "text-anchor": "middle" }, "k, candidates tried"),
    svg("path", { class: "band", d: `${path(curves.noise)}L${x(curves.ks.length)} ${floor}L${x(1)} ${floor}Z` }),
    svg("path", { class: "band-edge", d: path(curves.noise) }),
    series.map((s) => svg("path", { class: `series ${s.style}`, d: path(s.values) })),
    guide, dots);
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const inside = ((event.clientX - box.left) / box.width) * width;
    const k = Math.round(1 + ((inside - left) / (width - left - right)) * (curves.ks.length - 1));
    at("regret-k").value = Math.min(Math.max(k, 1), curves.ks.length);
    show();
  });
  function show() {
    const k = +at("regret-k").value;
    guide.setAttribute("x1", x(k));
    guide.setAttribute("x2", x(k));
    dots.forEach((dot, i) => { dot.setAttribute("cx", x(k)); dot.setAttribute("cy", y(series[i].values[k - 1])); });
    at("regret-read").textContent = `k = ${k}: ` + series.map((s) => `${NAMES[s.id]} ${over(s.values[k - 1])}`).join(" · ") +
      ` · Noise ${over(curves.noise[k - 1])}`;
  }
  at("regret-k").oninput = show;
  place.replaceChildren(drawing);
  show();
}

function drawRegretNotes() {
  const { curves } = DATA;
  const sample = (inner) => svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, inner);
  at("regret-legend").replaceChildren(
    ...regretSeries().map((s) => h("span", {}, sample(svg("path", { class: `series ${s.style}`, d: "M1 6H25" })), NAMES[s.id])),
    h("span", {}, sample([svg("rect", { class: "band", width: 26, height: 12 }), svg("path", { class: "band-edge", d: "M0 1H26" })]), "Noise"));
  const text = ["In the grey band a model cannot be told from a perfect one by this data."];
  if (curves.default)
    text.push(`Inductor's default list stands for the best of its candidates, benchmarked perfectly; ${percent(curves.default_coverage, 0)} of ` +
      "them were timed, so this is at most what the whole list would cost.");
  else text.push(`Inductor's default list is not shown: ${curves.default_fault}.`);
  const asked = curves.analytical && curves.analytical[0].problems;
  if (asked && asked < curves.model[0].problems) text.push(`The analytical heuristic ranked ${count(asked)} of the problems.`);
  at("regret-fine").textContent = text.join(" ");
  const rows = curves.ks.map((k, i) => ({ k, ...curves.model[i], noise: curves.noise[i], analytical: curves.analytical && curves.analytical[i].geomean }));
  sortable(at("regret-table"), "Regret by k", [
    { name: "k", of: (r) => r.k },
    ...[["Model", "geomean"], ["p95", "p95"], ["p99", "p99"], ["Worst", "max"], ["Noise", "noise"], ["Analytical", "analytical"]]
      .map(([name, field]) => ({ name, of: (r) => r[field], show: (r) => factor(r[field]) })),
  ], rows, ["k", false]);
}

let timesPart = 0;
function drawTimes() {
  const { density } = DATA, part = density.parts[timesPart], place = at("times-chart");
  const counts = new Uint32Array(bytes(part.counts)), bins = density.bins;
  const width = Math.max(280, place.clientWidth), left = 46, bottom = 40, top = 8, right = 12;
  const side = Math.min(width - left - right, 420), height = side + top + bottom;
  const span = density.high - density.low;
  const x = (log) => left + ((log - density.low) / span) * side;
  const y = (log) => top + side - ((log - density.low) / span) * side;
  let most = 1;
  for (const value of counts) if (value > most) most = value;
  const cell = side / bins, cells = [];
  for (let i = 0; i < counts.length; i++)
    if (counts[i])
      cells.push(svg("rect", {
        class: "heat", x: (left + (i % bins) * cell).toFixed(2), y: (top + side - (Math.floor(i / bins) + 1) * cell).toFixed(2),
        width: (cell + 0.2).toFixed(2), height: (cell + 0.2).toFixed(2), "fill-opacity": (0.12 + 0.88 * Math.log1p(counts[i]) / Math.log1p(most)).toFixed(2),
      }));
  const ticks = [];
  const decades = span / Math.LN10;
  for (let power = -2; power < 9; power++)
    for (const digit of decades > 2.5 ? [1] : [1, 2, 5]) {
      const log = Math.log(digit * 10 ** power);
      if (log > density.low && log < density.high) ticks.push([log, size10(digit, power)]);
    }
  const off = Math.log(1.25);
  const line = (shift, style) => svg("line", {
    class: style, x1: x(density.low + Math.max(0, -shift)), y1: y(density.low + Math.max(0, shift)),
    x2: x(density.high - Math.max(0, shift)), y2: y(density.high - Math.max(0, -shift)),
  });
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Predicted against measured time, ${part.name}: typical error ${percent(part.error.factor - 1)}` },
    ticks.map(([log, text]) => [
      svg("line", { class: "axis", x1: left, x2: left + side, y1: y(log), y2: y(log) }),
      svg("line", { class: "axis", y1: top, y2: top + side, x1: x(log), x2: x(log) }),
      svg("text", { class: "tick", x: left - 8, y: y(log) + 4, "text-anchor": "end" }, text),
      svg("text", { class: "tick", x: x(log), y: top + side + 18, "text-anchor": "middle" }, text),
    ]),
    cells, line(0, "diagonal"), line(off, "off"), line(-off, "off"),
    svg("text", { class: "title", x: left + side / 2, y: height - 3, "text-anchor": "middle" }, "measured, µs"),
    svg("text", { class: "title", x: -(top + side / 2), y: 11, transform: "rotate(-90)", "text-anchor": "middle" }, "predicted, µs"));
  const about = `${count(part.error.rows)} timings. Half are predicted within ${percent(part.error.median - 1)}; ` +
    `root mean square error ${percent(part.error.factor - 1)}.`;
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect(), scale = width / box.width;
    const column = Math.floor(((event.clientX - box.left) * scale - left) / cell);
    const row = Math.floor((top + side - (event.clientY - box.top) * scale) / cell);
    if (column < 0 || row < 0 || column >= bins || row >= bins) return;
    const value = (place) => micros(Math.exp(density.low + ((place + 0.5) / bins) * span));
    at("times-read").textContent = `About ${value(column)} µs measured, ${value(row)} µs predicted: ${count(counts[row * bins + column])} timings.`;
  });
  drawing.addEventListener("pointerleave", () => { at("times-read").textContent = about; });
  at("times-read").textContent = about;
  place.replaceChildren(drawing);
}
function size10(digit, power) {
  const short = power >= 6 ? ["M", 6] : power >= 3 ? ["k", 3] : ["", 0];
  return +(digit * 10 ** (power - short[1])).toPrecision(1) + short[0];
}
function drawTimesTools() {
  const options = DATA.density.parts.map((part, i) => [String(i), part.name]);
  at("times-tools").replaceChildren(choice("Timings shown", options, "0", (value) => { timesPart = +value; drawTimes(); }));
}

function drawWorst() {
  if (!DATA.worst.length) {
    at("worst-table").replaceChildren(h("p", { class: "fine" }, "None: the first choice was the best on every problem."));
    return;
  }
  const kernel = (choice) => (choice ? [h("b", {}, micros(choice.measured)), h("code", {}, choice.candidate), h("small", {}, `predicted ${micros(choice.predicted)}`)] : "–");
  const time = (choice) => choice && choice.measured;
  const unsure = (row) => row.regret - 1 < 2 * Math.hypot(row.pick.error, row.best.error);
  sortable(at("worst-table"), `The ${DATA.worst.length} worst first choices; times in µs`, [
    { name: "Problem", text: true, of: (r) => r.problem, show: (r) => h("button", { type: "button", class: "link", onclick: () => openProblem(r.problem) }, spoken(r.problem)) },
    { name: "Regret", of: (r) => r.regret, show: (r) => [h("span", { class: r.regret > 1.2 ? "bad" : null }, factor(r.regret)), unsure(r) ? h("small", {}, "within noise") : null] },
    { name: "Picked", text: true, of: (r) => time(r.pick), show: (r) => kernel(r.pick) },
    { name: "Best", text: true, of: (r) => time(r.best), show: (r) => kernel(r.best) },
    { name: "ATen", of: (r) => time(r.aten), show: (r) => [micros(time(r.aten)), r.aten ? h("small", {}, `predicted ${micros(r.aten.predicted)}`) : null] },
  ], DATA.worst, ["Regret", true]);
}

function drawSlices() {
  const column = (name, field, title) => ({
    name, title, of: (r) => r[field],
    show: (r) => h("span", { class: field === "at_1" && r.aten !== null && r.at_1 > r.aten ? "bad" : null }, factor(r[field])),
  });
  sortable(at("slices-table"), "Regret by slice, geometric means; in red where ATen alone does better", [
    { name: "Slice", text: true, of: (r) => r.name, show: (r) => r.name.replaceAll(/(op|precision)=/g, "").replaceAll("=", " ").replaceAll(",", ", ") },
    { name: "Problems", of: (r) => r.problems, show: (r) => count(r.problems) },
    column("@1", "at_1", "the first choice"), column("@3", "at_3"), column("@5", "at_5"), column("@10", "at_10"),
    column("p95 @1", "p95"), column("Worst @1", "max"), column("Noise @1", "noise"),
    column("ATen", "aten"), column("Default", "default", "Inductor's default list, benchmarked perfectly"), column("Analytical", "analytical"),
  ], DATA.slices);
}
