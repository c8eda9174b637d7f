// The box where one types a problem, and what is known of its candidates.

const LOOKUP = (() => {
  const data = DATA.lookup;
  const code = data.code_bytes === 2 ? new Uint16Array(bytes(data.code)) : new Uint32Array(bytes(data.code));
  const measured = new Uint16Array(bytes(data.measured)), predicted = new Uint16Array(bytes(data.predicted));
  const starts = [0];
  for (const kept of data.kept) starts.push(starts.at(-1) + kept);
  // Rows of a problem come fastest first.
  const best = starts.slice(0, -1), pick = [];
  for (let p = 0; p < best.length; p++) {
    let first = starts[p];
    for (let row = first + 1; row < starts[p + 1]; row++) if (predicted[row] < predicted[first]) first = row;
    pick.push(first);
  }
  const key = (p) => {
    const kind = data.kinds[data.kind[p]];
    const sizes = [data.M[p], data.N[p], data.K[p]];
    if (kind.batched) sizes.unshift(data.B[p]);
    return `${kind.op}:${sizes.join("x")}:${kind.tail}`;
  };
  const byKey = new Map(data.kind.map((_, p) => [key(p), p]));
  const micros = (step) => Math.exp(data.low + step * data.step);
  return { code, starts, best, pick, key, byKey, measured: (row) => micros(measured[row]), predicted: (row) => micros(predicted[row]) };
})();

const SHORT = { bf16: "bfloat16", fp16: "float16", f16: "float16", half: "float16", fp32: "float32", f32: "float32" };
const SUGGESTED = 8;

function words(text) {
  return text.toLowerCase().replaceAll("×", "x").replace(/(\d)\s*x\s*(?=\d)/g, "$1x").split(/[\s:,]+/).filter(Boolean).map((word) => SHORT[word] || word);
}
const problemWords = [...LOOKUP.byKey.keys()].map((key) => key.split(":"));

function suggestions(text) {
  const asked = words(text), found = [];
  const isSizes = (word) => /^\d+(x\d*)*$/.test(word);
  const fits = (parts, word) => parts.some((part) => part.startsWith(word));
  problemWords.forEach((parts, p) => {
    if (asked.every((word) => fits(parts, word))) found.push([asked.filter((word) => parts.includes(word)).length, p]);
  });
  if (found.length || !asked.length)
    return { near: false, problems: found.sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, SUGGESTED).map(([, p]) => p) };
  const sizes = asked.filter(isSizes).map((word) => word.split("x").filter(Boolean).map(Number))[0];
  if (!sizes) return { near: true, problems: [] };
  const others = asked.filter((word) => !isSizes(word));
  const near = [];
  problemWords.forEach((parts, p) => {
    const own = parts[1].split("x").map(Number);
    if (own.length !== sizes.length || !others.every((word) => fits(parts, word))) return;
    near.push([own.reduce((sum, value, i) => sum + Math.log(value / Math.max(sizes[i], 1)) ** 2, 0), p]);
  });
  return { near: true, problems: near.sort((a, b) => a[0] - b[0]).slice(0, SUGGESTED).map(([, p]) => p) };
}

function openProblem(key) {
  at("lookup-box").value = spoken(key);
  showProblem(LOOKUP.byKey.get(key), key);
  at("lookup").scrollIntoView();
  at("lookup-box").focus({ preventScroll: true });
  closeList();
}

function showProblem(p, key) {
  if (p === undefined) {
    at("lookup-say").textContent = `${spoken(key)} is not among the problems this page carries.`;
    at("lookup-found").replaceChildren();
    return;
  }
  const data = DATA.lookup, rows = [];
  for (let row = LOOKUP.starts[p]; row < LOOKUP.starts[p + 1]; row++) {
    const [template, , , , config] = data.candidates[LOOKUP.code[row]];
    rows.push({ row, template: data.templates[template], config, measured: LOOKUP.measured(row), predicted: LOOKUP.predicted(row) });
  }
  const best = rows[0], pick = rows.find((r) => r.row === LOOKUP.pick[p]), aten = rows.find((r) => r.template === "aten");
  const low = Math.min(...rows.map((r) => Math.min(r.measured, r.predicted)));
  const most = Math.max(...rows.map((r) => Math.max(r.measured, r.predicted)));
  const x = (value) => 7 + (Math.log(value / low) / Math.max(Math.log(most / low), 1e-6)) * 166;
  const chart = (r) => svg("svg", { class: "dumbbell", viewBox: "0 0 180 14", role: "img", "aria-label": `measured ${micros(r.measured)}, predicted ${micros(r.predicted)}` },
    svg("line", { x1: x(r.measured), x2: x(r.predicted), y1: 7, y2: 7 }),
    svg("circle", { class: "ring", cx: x(r.predicted), cy: 7, r: 4 }), svg("circle", { class: "dot", cx: x(r.measured), cy: 7, r: 4 }));
  const fact = (name, r, more) => [h("dt", {}, name), h("dd", {}, r ? `${micros(r.measured)} µs` : "not timed",
    r ? h("small", {}, [h("code", {}, `${r.template} ${r.config}`.trim()), more || ""]) : null)];
  const group = (items) => h("div", {}, items);
  at("lookup-found").replaceChildren(
    h("h3", {}, spoken(LOOKUP.key(p))),
    h("dl", { class: "facts" },
      group(fact("Fastest", best)),
      group(fact("Model's choice", pick, `, predicted ${micros(pick.predicted)} µs`)),
      group(fact("ATen", aten)),
      group([h("dt", {}, "Regret of the choice"), h("dd", {}, h("span", { class: pick.measured / best.measured > 1.2 ? "bad" : null }, factor(pick.measured / best.measured)),
        h("small", {}, data.scored[p] ? "scored above" : "not scored: trained on, or the model abstains"))])),
    h("div", { class: "scroll tall", id: "lookup-table" }));
  const tags = (r) => [
    r === best ? h("span", { class: "tag" }, "fastest") : null,
    r === pick ? h("span", { class: "tag pick" }, "model's choice") : null,
  ];
  const kept = rows.length < data.all[p] ? `${count(rows.length)} of ${count(data.all[p])} timed candidates: the fastest, those the model puts first, and ATen` : `All ${count(rows.length)} timed candidates`;
  sortable(at("lookup-table"), `${kept}; times in µs`, [
    { name: "Candidate", text: true, of: (r) => `${r.template} ${r.config}`, show: (r) => [h("code", {}, `${r.template} ${r.config}`.trim()), tags(r)] },
    { name: "Measured", of: (r) => r.measured, show: (r) => micros(r.measured) },
    { name: "Predicted", of: (r) => r.predicted, show: (r) => micros(r.predicted) },
    { name: "Over best", of: (r) => r.measured / best.measured, show: (r) => factor(r.measured / best.measured) },
    { name: "Predicted/measured", of: (r) => r.predicted / r.measured, show: (r) => factor(r.predicted / r.measured) },
    { name: "● measured ○ predicted", text: true, of: (r) => r.measured, show: chart },
  ], rows, ["Measured", false]);
  at("lookup-say").textContent = "";
}

let listed = [], active = -1;
function closeList() {
  at("lookup-list").hidden = true;
  at("lookup-box").setAttribute("aria-expanded", "false");
  at("lookup-box").removeAttribute("aria-activedescendant");
  active = -1;
}
function openList() {
  const box = at("lookup-box"), found = suggestions(box.value);
  listed = found.problems;
  active = -1;
  at("lookup-say").textContent = !listed.length ? "No problem fits. Write it like the example." : found.near ? "Not among the problems; these are nearest." : "";
  at("lookup-list").replaceChildren(...listed.map((p, i) =>
    h("li", { role: "option", id: `lookup-option-${i}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); openProblem(LOOKUP.key(p)); } }, spoken(LOOKUP.key(p)))));
  at("lookup-list").hidden = !listed.length;
  box.setAttribute("aria-expanded", String(!!listed.length));
}
function move(step) {
  if (at("lookup-list").hidden) openList();
  if (!listed.length) return;
  active = (active + step + listed.length + (active < 0 && step < 0 ? 1 : 0)) % listed.length;
  [...at("lookup-list").children].forEach((item, i) => item.setAttribute("aria-selected", String(i === active)));
  at("lookup-box").setAttribute("aria-activedescendant", `lookup-option-${active}`);
}
function startLookup() {
  const box = at("lookup-box"), example = DATA.worst.length ? DATA.worst[0].problem : LOOKUP.key(0);
  const carried = DATA.lookup.kind.length;
  at("lookup-why").textContent = `Type a problem, such as ${spoken(LOOKUP.key(0))} (operation, sizes M×N×K with the batch first, dtype, layout). ` +
    (carried < DATA.lookup.of_problems ? `The page carries ${count(carried)} of ${count(DATA.lookup.of_problems)} problems, drawn at random` : `All ${count(carried)} problems are here`) +
    (DATA.lookup.kept.some((kept, p) => kept < DATA.lookup.all[p]) ? `, each with up to ${DATA.lookup.each} of its candidates.` : ", with all their candidates.");
  box.addEventListener("input", openList);
  box.addEventListener("blur", closeList);
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); move(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Escape") closeList();
    else if (event.key === "Enter") {
      event.preventDefault();
      if (active < 0) openList();
      const exact = LOOKUP.byKey.get(words(box.value).join(":"));
      const chosen = active >= 0 ? listed[active] : exact !== undefined ? exact : at("lookup-say").textContent ? undefined : listed[0];
      if (chosen !== undefined) openProblem(LOOKUP.key(chosen));
    }
  });
  showProblem(LOOKUP.byKey.get(example), example);
  if (LOOKUP.byKey.has(example)) box.value = spoken(example);
  at("lookup-say").textContent = "";
}
