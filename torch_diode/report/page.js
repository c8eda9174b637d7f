"use strict";
// The data, and the few things every part of the page is made of. Data are shown as text only:
// nothing here or below writes markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}
const h = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  made(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const whole = new Intl.NumberFormat("en");
const count = (value) => whole.format(value);
const percent = (share, digits = 1) => (100 * share).toFixed(digits) + "%";
const factor = (value) => (value === null ? "–" : value.toFixed(value < 10 ? 3 : 1) + "×");
function over(regret) {
  const share = regret - 1;
  return percent(share, share < 0.01 ? 2 : share < 1 ? 1 : 0);
}
function micros(value) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { minimumSignificantDigits: 3, maximumSignificantDigits: value < 1000 ? 3 : 5 });
}
function size(value) {
  return value >= 1024 && value % 1024 === 0 ? value / 1024 + "k" : String(value);
}
const spoken = (key) => key.replaceAll(":", " ");

function bytes(text) {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found.buffer;
}

function choice(label, options, chosen, changed) {
  const select = h("select", { onchange: () => changed(select.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  return h("label", {}, label, select);
}

// columns: {name, text, of(row) -> value to sort by, show(row) -> text or node, most: sort descending first}
function sortable(place, caption, columns, rows, sorted) {
  place.setAttribute("tabindex", "0");
  place.setAttribute("role", "region");
  place.setAttribute("aria-label", caption);
  const body = h("tbody", {});
  const heads = columns.map((column) =>
    h("th", { scope: "col", class: column.text ? "text" : null },
      h("button", { type: "button", title: column.title, onclick: () => sort(column) }, column.name)));
  let by = null, down = false;
  function sort(column, downward) {
    down = downward !== undefined ? downward : by === column ? !down : !column.text;
    by = column;
    const sign = down ? -1 : 1;
    const known = (value) => value !== null && value !== undefined;
    const order = rows.map((row, place) => [column.of(row), place]);
    order.sort(([a, i], [b, j]) => {
      if (!known(a) || !known(b)) return known(b) - known(a) || i - j;
      const compared = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
      return sign * compared || i - j;
    });
    columns.forEach((other, place) => {
      if (other === column) heads[place].setAttribute("aria-sort", down ? "descending" : "ascending");
      else heads[place].removeAttribute("aria-sort");
    });
    body.replaceChildren(...order.map(([, place]) => line(rows[place])));
  }
  function line(row) {
    return h("tr", {}, columns.map((column, place) =>
      h(place ? "td" : "th", { scope: place ? null : "row", class: column.text ? "text" : null },
        column.show ? column.show(row) : column.of(row))));
  }
  if (sorted) sort(columns.find((column) => column.name === sorted[0]), sorted[1]);
  else body.replaceChildren(...rows.map(line));
  place.replaceChildren(h("table", {}, h("caption", {}, h("span", {}, caption)), h("thead", {}, h("tr", {}, heads)), body));
}
