// Where each template and tile wins, over two of M, N and K.

const LETTERS = "ABCDEFGH";
const mapState = { op: "", precision: "", layout: "", x: "N", y: "M", slice: "", colour: "template", who: "measured" };

const octave = (value) => Math.floor(Math.log2(value));
const range = (power) => (power ? `${size(2 ** power)}–${size(2 ** (power + 1) - 1)}` : "1");

function winnersIn() {
  const { kinds, kind } = DATA.lookup, s = mapState, found = [];
  const third = otherAxis();
  for (let p = 0; p < kind.length; p++) {
    const k = kinds[kind[p]];
    if ((s.op && k.op !== s.op) || (s.precision && k.precision !== s.precision) || (s.layout && k.layout !== s.layout)) continue;
    if (s.slice !== "" && octave(DATA.lookup[third][p]) !== +s.slice) continue;
    const row = s.who === "measured" ? LOOKUP.best[p] : LOOKUP.pick[p];
    found.push({ p, name: winnerName(DATA.lookup.candidates[LOOKUP.code[row]]) });
  }
  return found;
}
function winnerName([template, m, n, k]) {
  if (mapState.colour === "template" || !m) return DATA.lookup.templates[template];
  return mapState.colour === "tile" ? `${m}×${n}` : `BLOCK_K ${k}`;
}
// A winner keeps its colour whatever part is looked at: the rank it has over all problems.
const ranks = new Map();
function styleOf(name) {
  const { colour } = mapState;
  if (!ranks.has(colour)) {
    const totals = new Map();
    for (const row of LOOKUP.best) {
      const found = winnerName(DATA.lookup.candidates[LOOKUP.code[row]]);
      totals.set(found, (totals.get(found) || 0) + 1);
    }
    const ordered = [...totals].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
    ranks.set(colour, new Map(ordered.map(([found], i) => [found, i])));
  }
  const rank = ranks.get(colour).get(name);
  return rank === undefined || rank > 7 ? 8 : rank;
}
const otherAxis = () => "MNK".split("").find((axis) => axis !== mapState.x && axis !== mapState.y);

function drawMapTools() {
  const { kinds } = DATA.lookup, s = mapState;
  const all = (field) => [["", "all"], ...[...new Set(kinds.map((k) => k[field]))].sort().map((v) => [v, v])];
  const set = (field) => (value) => { s[field] = value; if (field === "x" || field === "y") settle(field); drawMapTools(); drawMap(); at("map-tools").querySelector(`[data-field=${field}] select`).focus(); };
  function settle(changed) {
    const kept = changed === "x" ? "y" : "x";
    if (s.x === s.y) s[kept] = "MNK".split("").find((axis) => axis !== s[changed]);
    s.slice = "";
  }
  const axes = ["M", "N", "K"].map((axis) => [axis, axis]);
  const third = otherAxis();
  const powers = [...new Set(DATA.lookup[third].map(octave))].sort((a, b) => a - b);
  const tools = [
    ["op", "Operation", all("op")], ["precision", "Precision", all("precision")], ["layout", "Layout", all("layout")],
    ["x", "Across", axes], ["y", "Up", axes], ["slice", `Slice of ${third}`, [["", "all"], ...powers.map((p) => [String(p), range(p)])]],
    ["colour", "Colour by", [["template", "template"], ["tile", "tile M×N"], ["depth", "tile K"]]],
    ["who", "Winner", [["measured", "measured best"], ["picked", "model's choice"]]],
  ];
  at("map-tools").replaceChildren(...tools.map(([field, label, options]) => {
    const tool = choice(label, options, s[field], set(field));
    tool.setAttribute("data-field", field);
    return tool;
  }));
}

function drawMap() {
  const place = at("map-chart"), found = winnersIn(), { x: across, y: up } = mapState;
  const totals = new Map();
  for (const { name } of found) totals.set(name, (totals.get(name) || 0) + 1);
  const ranked = [...totals].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  const cells = new Map();
  for (const item of found) {
    const column = octave(DATA.lookup[across][item.p]), row = octave(DATA.lookup[up][item.p]);
    const key = row * 64 + column;
    if (!cells.has(key)) cells.set(key, { column, row, items: [] });
    cells.get(key).items.push(item);
  }
  drawMapTable(ranked, found.length);
  at("map-read").replaceChildren();
  if (!found.length) {
    place.replaceChildren(h("p", { class: "fine" }, "No problem fits this choice."));
    return;
  }
  const listed = [...cells.values()];
  const low = (f) => Math.min(...listed.map((c) => c[f])), high = (f) => Math.max(...listed.map((c) => c[f]));
  const [left, bottom, top] = [56, 42, 4];
  const columns = high("column") - low("column") + 1, rows = high("row") - low("row") + 1;
  const width = Math.max(260, place.clientWidth), edge = Math.min(46, (width - left - 4) / Math.max(columns, 8));
  const height = top + rows * edge + bottom;
  const x = (column) => left + (column - low("column")) * edge;
  const y = (row) => top + (high("row") - row) * edge;
  for (const cell of listed) {
    const counts = new Map();
    for (const { name } of cell.items) counts.set(name, (counts.get(name) || 0) + 1);
    cell.ranked = [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
    const [name, wins] = cell.ranked[0], share = wins / cell.items.length;
    const text = `${across} ${range(cell.column)}, ${up} ${range(cell.row)}: ${shares(cell)}`;
    const number = styleOf(name), strength = 0.25 + 0.75 * share ** 1.5;
    const node = svg("rect", {
      class: `cell f${number}`, x: x(cell.column), y: y(cell.row), width: edge, height: edge, rx: Math.min(5, edge / 5),
      "fill-opacity": strength.toFixed(2), tabindex: "-1", role: "button", "aria-label": text,
      onclick: () => choose(cell),
    }, svg("title", {}, text));
    cell.node = node;
    cell.letter = edge >= 14 ? svg("text", { class: strength < 0.7 ? "letter pale" : "letter", x: x(cell.column) + edge / 2, y: y(cell.row) + edge / 2 }, LETTERS[number] || "·") : null;
  }
  listed.sort((a, b) => b.row - a.row || a.column - b.column);
  listed[0].node.setAttribute("tabindex", "0");
  const frame = svg("rect", { class: "frame", width: edge, height: edge, rx: Math.min(5, edge / 5) });
  const wide = edge >= 30 ? 1 : 2;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Winners by ${across} and ${up}; arrow keys move between cells` },
    listed.map((cell) => [cell.node, cell.letter]), frame,
    Array.from({ length: columns }, (_, i) => low("column") + i).filter((c) => c % wide === 0).map((c) =>
      svg("text", { class: "tick", x: x(c) + edge / 2, y: height - bottom + 16, "text-anchor": "middle" }, size(2 ** c))),
    Array.from({ length: rows }, (_, i) => low("row") + i).map((r) =>
      svg("text", { class: "tick", x: left - 8, y: y(r) + edge / 2 + 4, "text-anchor": "end" }, size(2 ** r))),
    svg("text", { class: "title", x: left + (columns * edge) / 2, y: height - 4, "text-anchor": "middle" }, `${across}, from`),
    svg("text", { class: "title", x: -(top + (rows * edge) / 2), y: 11, transform: "rotate(-90)", "text-anchor": "middle" }, `${up}, from`));
  drawing.addEventListener("keydown", (event) => {
    const cell = listed.find((c) => c.node === event.target);
    if (!cell) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(cell); return; }
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    // The nearest cell that way; what lies aside counts as far.
    const ahead = (c) => (c.column - cell.column) * step[0] + (c.row - cell.row) * step[1];
    const aside = (c) => Math.abs((c.column - cell.column) * step[1] + (c.row - cell.row) * step[0]);
    const next = listed.filter((c) => ahead(c) > 0).sort((a, b) => ahead(a) + 8 * aside(a) - ahead(b) - 8 * aside(b))[0];
    if (!next) return;
    cell.node.setAttribute("tabindex", "-1");
    next.node.setAttribute("tabindex", "0");
    next.node.focus();
  });
  place.replaceChildren(drawing);
  choose(listed.reduce((a, b) => (b.items.length > a.items.length ? b : a)));
  function choose(cell) {
    frame.setAttribute("x", x(cell.column));
    frame.setAttribute("y", y(cell.row));
    const shown = cell.items.slice(0, 8);
    at("map-read").replaceChildren(
      h("h3", {}, `${across} ${range(cell.column)}, ${up} ${range(cell.row)}`),
      h("p", { class: "fine" }, shares(cell)),
      h("div", { class: "chips" }, shown.map(({ p }) =>
        h("button", { type: "button", class: "link", onclick: () => openProblem(LOOKUP.key(p)) }, spoken(LOOKUP.key(p))))),
      cell.items.length > shown.length ? h("p", { class: "fine" }, `and ${count(cell.items.length - shown.length)} more`) : null);
  }
}
function shares(cell) {
  const all = cell.items.length;
  return `${count(all)} problem${all > 1 ? "s" : ""}. ` + cell.ranked.slice(0, 3).map(([name, wins]) => `${name} ${percent(wins / all, 0)}`).join(", ") +
    (cell.ranked.length > 3 ? ", …" : "");
}
function drawMapTable(ranked, all) {
  const isNamed = ([name]) => styleOf(name) < 8;
  const rest = ranked.filter((entry) => !isNamed(entry));
  const rows = ranked.filter(isNamed).map(([name, wins]) => ({ name, wins, i: styleOf(name) }));
  if (rest.length) rows.push({ name: `${rest.length} others`, wins: rest.reduce((sum, [, wins]) => sum + wins, 0), i: 8 });
  const swatch = (i) => svg("svg", { class: "swatch", viewBox: "0 0 18 18", "aria-hidden": "true" },
    svg("rect", { class: `f${i}`, width: 18, height: 18, rx: 4 }), svg("text", { class: "letter", x: 9, y: 9.5 }, LETTERS[i] || "·"));
  sortable(at("map-table"), `Wins among ${count(all)} problems`, [
    { name: mapState.who === "measured" ? "Fastest" : "Chosen", text: true, of: (r) => r.name, show: (r) => [swatch(r.i), r.name] },
    { name: "Problems", of: (r) => r.wins, show: (r) => count(r.wins) },
    { name: "Share", of: (r) => r.wins / all, show: (r) => percent(r.wins / all) },
  ], rows);
}
