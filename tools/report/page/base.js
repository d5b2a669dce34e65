"use strict";
// The page draws itself from the JSON in #data: one run, or several side by side. No libraries, no network.
// This file: elements, numbers as text, colours, and the choices of the reader.
const runs = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const SVG = "http://www.w3.org/2000/svg";

function make(space, tag, attributes, ...inside) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...inside.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (tag, attributes, ...inside) => make(null, tag, attributes, ...inside);
const sv = (tag, attributes, ...inside) => make(SVG, tag, attributes, ...inside);

// A node whose size and colours depend on the screen is painted when it stands there, and again when these change.
function painted(node, paint) {
  node.classList.add("painted");
  node.paint = paint;
  return node;
}
const paintAll = (root) => root.querySelectorAll(".painted").forEach((node) => node.paint());

// ---- what the reader has chosen; a page that loads itself anew keeps it

const state = { part: 1, set: null, layer: 0, metric: "load", zoom: null, logSteps: false, logs: {}, hidden: {} };
const stateName = "hecate " + runs.map((run) => run.path).join(" ");
try { Object.assign(state, JSON.parse(sessionStorage.getItem(stateName) || "{}")); } catch { /* A page of a file may have no storage. */ }
function keep() {
  try { sessionStorage.setItem(stateName, JSON.stringify(state)); } catch { /* As above. */ }
}
const shown = () => runs.map((_, i) => i).filter((i) => !state.hidden[i]);

// ---- numbers

const sum = (list) => list.reduce((a, b) => a + b, 0);
const known = (list) => (list || []).filter((x) => x !== null);
const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
function median(list) {
  const sorted = known(list).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : null;
}
const last = (list) => known(list).at(-1) ?? null;
const imbalance = (rows) => (sum(rows) > 0 ? (most(rows) * rows.length) / sum(rows) : 1);

function show(x, digits = 3) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [unit, name] of units) if (Math.abs(x) >= unit * 0.9995) return Number((x / unit).toPrecision(digits)) + name;
  return x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential(1) : String(Number(x.toPrecision(digits)));
}
const percent = (x) => (x === null ? "–" : Math.round(100 * x) + " %");
const finePercent = (x) => (x === null ? "–" : Number((100 * x).toPrecision(3)) + " %");
const times = (x) => (x === null ? "–" : x.toFixed(2) + " ×");
const milliseconds = (x) => (x === null ? "–" : x >= 1000 ? show(x / 1000) + " s" : show(x) + " ms");
const bytes = (x) => (x === null ? "–" : show(x) + "B");

// Round numbers that divide a range, at most `parts` parts.
function ticks(low, high, parts = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / parts, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) found.push(Number((i * step).toPrecision(10)));
  return found;
}
// The same of a logarithmic scale: powers of ten, and where these are few, parts of them.
function logTicks(low, high) {
  const found = [];
  for (const parts of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7]]) {
    found.length = 0;
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const part of parts) { const x = part * 10 ** power; if (x >= low * 0.999 && x <= high * 1.001) found.push(x); }
    if (found.length >= 3) return found;
  }
  return found.length >= 2 ? found : ticks(low, high, 4);
}

// ---- pieces of a page

function keys(...entries) {
  return el("div", { class: "keys" }, entries.map(([name, color, kind]) =>
    el("span", {}, el("i", { class: "key " + (kind || ""), style: kind === "box" ? `background:${color}` : `border-color:${color}` }), name)));
}
function section(title, words, ...inside) {
  return el("section", {}, el("h2", {}, title), words ? el("p", {}, words) : null, ...inside);
}
const chosen = (pressed, text, attributes) => el("button", { type: "button", class: "small", "aria-pressed": String(pressed), ...attributes }, text);

const dashes = ["", "7 4", "2 3", "9 3 2 3", "1 4", "12 4", "5 2 1 2", "3 6"];
const runColor = (i) => `var(--run${i % 8})`;
