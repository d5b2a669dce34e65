"use strict";
// The page draws itself from the JSON in #data: one run, or two side by side. No libraries, no network.
const runs = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const ends = ["first", "second"];
const SVG = "http://www.w3.org/2000/svg";

// ---- small helpers

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

const sum = (list) => list.reduce((a, b) => a + b, 0);
const known = (list) => (list || []).filter((x) => x !== null);
function median(list) {
  const sorted = known(list).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : null;
}
const imbalance = (rows) => (sum(rows) > 0 ? (Math.max(...rows) * rows.length) / sum(rows) : 1);

function show(x, digits = 3) {
  if (x === null || x === undefined) return "–";
  const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [unit, name] of units) if (Math.abs(x) >= unit * 0.9995) return Number((x / unit).toPrecision(digits)) + name;
  return x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential(1) : String(Number(x.toPrecision(digits)));
}
const percent = (x) => (x === null ? "–" : Math.round(100 * x) + " %");
const times = (x) => (x === null ? "–" : x.toFixed(2) + " ×");
const milliseconds = (x) => (x === null ? "–" : x >= 1000 ? show(x / 1000) + " s" : show(x) + " ms");
const bytes = (x) => (x === null ? "–" : show(x) + "B");

// Round numbers that divide a range, at most `most` parts.
function ticks(low, high, most = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) found.push(Number((i * step).toPrecision(10)));
  return found;
}

function keys(...entries) {
  return el("div", { class: "keys" }, entries.map(([name, color, kind]) =>
    el("span", {}, el("i", { class: "key " + (kind || ""), style: kind === "box" ? `background:${color}` : `border-color:${color}` }), name)));
}
function section(title, words, ...inside) {
  return el("section", {}, el("h2", {}, title), words ? el("p", {}, words) : null, ...inside);
}

// ---- curves

// series: [{name, color, x, y, dashed}]; options: format, low, high, area (two series), mark (a y to draw a line at).
function chart(title, series, options = {}) {
  series = series.filter((s) => s.y && s.y.some((y) => y !== null));
  if (!series.length) return null;
  const holder = el("div", { class: "chart", tabindex: "0", role: "img", "aria-label": title + ": " +
    series.map((s) => `${s.name} from ${options.format(known(s.y)[0])} to ${options.format(known(s.y).at(-1))}`).join("; ") +
    ". Arrow keys read single steps." });
  const told = el("div", { class: "told", "aria-live": "polite" });
  let at = -1, drawn = null;
  const longest = series.reduce((a, b) => (b.x.length > a.x.length ? b : a), series[0]);

  function range() {
    const ys = series.flatMap((s) => known(s.y)).sort((a, b) => a - b);
    let low = options.low ?? ys[0], high = Math.max(ys[ys.length - 1], options.high || 0);
    if (options.trim) high = Math.min(high, 1.5 * ys[Math.floor(0.985 * (ys.length - 1))]);
    if (options.mark !== undefined) low = Math.min(low, options.mark);
    if (!(high > low)) high = low + (Math.abs(low) || 1);
    return [low, high + 0.04 * (high - low)];
  }
  function draw() {
    const width = Math.max(holder.clientWidth, 260), height = options.height || 190, left = 52, right = 12, top = 8, bottom = 24;
    const [low, high] = range();
    const first = Math.min(...series.map((s) => s.x[0])), last = Math.max(...series.map((s) => s.x.at(-1)), first + 1);
    const px = (x) => left + ((x - first) / (last - first)) * (width - left - right);
    const py = (y) => top + (1 - (Math.min(Math.max(y, low), high) - low) / (high - low)) * (height - top - bottom);
    const svg = sv("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    for (const y of ticks(low, high, 4)) svg.append(
      sv("line", { class: "grid", x1: left, x2: width - right, y1: py(y), y2: py(y) }),
      sv("text", { x: left - 7, y: py(y) + 4, "text-anchor": "end" }, options.format(y)));
    for (const x of ticks(first, last, width < 420 ? 3 : 6)) if (Number.isInteger(x))
      svg.append(sv("text", { x: px(x), y: height - 6, "text-anchor": "middle" }, show(x)));
    const path = (s) => {
      let text = "", pen = "M";
      s.y.forEach((y, i) => { if (y !== null) { text += `${pen}${px(s.x[i]).toFixed(1)} ${py(y).toFixed(1)}`; pen = "L"; } });
      return text;
    };
    if (options.area && series.length >= 2) {
      const [a, b] = series, back = b.x.map((x, i) => [x, b.y[i]]).filter((p) => p[1] !== null).reverse();
      svg.append(sv("path", { fill: css("shade"), d: path(a) + back.map((p) => `L${px(p[0]).toFixed(1)} ${py(p[1]).toFixed(1)}`).join("") + "Z" }));
    }
    if (options.mark !== undefined) svg.append(sv("line", { class: "cross", x1: left, x2: width - right, y1: py(options.mark), y2: py(options.mark) }));
    for (const s of options.area ? [...series].reverse() : series) { // What is placed lies below what would have been.
      svg.append(sv("path", { d: path(s), fill: "none", stroke: css(s.color), "stroke-width": s.thin ? 1.2 : 2, "stroke-linejoin": "round",
        "stroke-dasharray": s.dashed ? "5 4" : null }));
      if (s.dots) s.y.forEach((y, i) => { if (y !== null) svg.append(sv("circle", { cx: px(s.x[i]), cy: py(y), r: 3.4, fill: css(s.color) })); });
    }
    drawn = { svg, px, first, last, left, right, width, height, top, bottom };
    holder.replaceChildren(svg);
    point();
  }
  function point() {
    drawn.svg.querySelector(".cursor")?.remove();
    if (at < 0) return;
    const x = longest.x[at];
    drawn.svg.append(sv("line", { class: "cross cursor", x1: drawn.px(x), x2: drawn.px(x), y1: drawn.top, y2: drawn.height - drawn.bottom }));
    told.textContent = `step ${x}: ` + series.map((s) => {
      let i = s.x.findIndex((v) => v >= x);
      if (i < 0) i = s.x.length - 1;
      return s.y[i] === null ? null : `${s.name} ${options.format(s.y[i])}`;
    }).filter(Boolean).join(" · ");
  }
  holder.addEventListener("pointermove", (event) => {
    const box = holder.getBoundingClientRect(), d = drawn;
    const x = d.first + ((event.clientX - box.left) * (d.width / box.width) - d.left) / (d.width - d.left - d.right) * (d.last - d.first);
    at = longest.x.findIndex((v) => v >= x);
    if (at < 0) at = longest.x.length - 1;
    point();
  });
  holder.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    if (!move) return;
    event.preventDefault();
    at = Math.max(0, Math.min(longest.x.length - 1, at + move));
    point();
  });
  redraws.push(draw);
  const legend = series.length > 1 ? keys(...series.map((s) => [s.name, css(s.color), s.dashed ? "dashed" : ""])) : null;
  return el("div", { class: "side" }, el("h3", {}, title), legend, holder, told);
}
const redraws = []; // What depends on widths or colours.

// The same column of all runs.
function curves(title, column, options) {
  const series = runs.map((run, i) => ({ name: runs.length > 1 ? label(i) : title, color: ends[i], x: run.steps.step, y: run.steps[column], dashed: i > 0 }));
  return series.some((s) => s.y) ? chart(title, series, options) : null;
}

// ---- runs, in words

const policies = { quota: "experts move (FSSDP)", ep: "expert parallelism", replicate: "every rank has all experts", none: "one process" };
function policy(i) {
  const run = runs[i].run || {};
  return policies[run.policy] || run.policy || "";
}
function label(i) {
  const run = runs[i].run || {};
  if (runs.length === 1) return run.program || runs[i].path;
  const same = runs.every((r) => (r.run || {}).policy === run.policy);
  return same ? runs[i].path.split("/").pop() : policy(i);
}
function about(i) {
  const run = runs[i].run || {};
  const devices = run.ranks > 1 ? `${run.ranks} ranks on ${run.nodes} node${run.nodes > 1 ? "s" : ""}` : "1 rank";
  const parts = [run.program, devices, policy(i), run.precision, run.device === "host" ? run.instructions : run.device,
    run.threads ? `${run.threads} thread${run.threads > 1 ? "s" : ""} each` : null, run.tokens ? show(run.tokens) + " tokens a step" : null,
    `${runs[i].rows} of ${run.steps || "?"} steps`];
  return parts.filter(Boolean).join(" · ");
}
function tile(name, values) {
  if (values.every((v) => v === "–" || v === null)) return null;
  return el("div", { class: "tile" }, values.map((v, i) =>
    el("b", { style: runs.length > 1 ? `color:${css(ends[i])}` : null }, v)), el("span", {}, name));
}
function head() {
  const tiles = [
    ["loss, last step", (r) => show(known(r.steps.loss).at(-1) ?? null, 4)],
    ["a step, median", (r) => milliseconds(median(r.steps.ms))],
    ["fullest rank, by owners", (r) => times(median(r.steps.before))],
    ["fullest rank, as placed", (r) => times(median(r.steps.after))],
    ["time waited for others", (r) => percent(median(r.steps.waited))],
    ["replicas, median", (r) => show(median(r.steps.replicas))],
    ["of the peak", (r) => (r.run && r.run.peak ? percent(median(r.steps.flops) / (r.run.peak * r.run.ranks)) : "–")],
    ["memory of the fullest rank", (r) => bytes(r.steps.memory ? Math.max(...known(r.steps.memory)) : null)],
  ];
  const repairs = runs.flatMap((run) => run.repairs.map((text) => `${run.path}: ${text}.`));
  return [
    el("header", {}, el("h1", {}, runs.map((_, i) => label(i)).join(" and ")),
      el("div", { class: "runs" }, runs.map((_, i) => el("p", {},
        runs.length > 1 ? el("i", { class: "key" + (i ? " dashed" : ""), style: `border-color:${css(ends[i])}` }) : null, about(i))))),
    repairs.length ? el("div", { class: "note", role: "note" }, repairs.map((text) => el("div", {}, text))) : null,
    el("div", { class: "tiles" }, tiles.map(([name, of]) => tile(name, runs.map(of)))),
  ];
}
function balance() {
  const high = Math.max(...runs.flatMap((run) => known(run.steps.before)));
  const charts = runs.map((run, i) => run.steps.after ? chart(runs.length > 1 ? label(i) : "rows of the fullest rank over the mean", [
    { name: "if owners computed all", color: "before", x: run.steps.step, y: run.steps.before },
    { name: "as placed", color: "after", x: run.steps.step, y: run.steps.after },
  ], { format: (y) => show(y) + "×", low: 1, high, area: true, mark: 1 }) : null).filter(Boolean);
  if (!charts.length) return null;
  return section("Balance of the ranks", "How much more rows the fullest rank has than the mean, in the worst layer. 1 is perfect: " +
    "all compute equally long. Red is the disease: the balance if owners computed all rows; green is the balance as placed.",
    el("div", { class: "pair" }, charts));
}
// Of a run whose model has losses by name: each by itself, without its weight.
const lossColors = ["first", "second", "after", "before", "wait", "rest", "late", "soft", "ink"];
function parts(run, i) {
  const names = Object.keys(run.steps.losses);
  if (!names.length) return null;
  const series = [["cross_entropy", run.steps.cross_entropy], ...names.map((name) => [name, run.steps.losses[name]])];
  return chart(runs.length > 1 ? "losses, " + label(i) : "losses", series.map(([name, y], k) => ({ name, color: lossColors[k], x: run.steps.step, y })),
    { format: (y) => show(y), trim: true });
}
function learning() {
  const losses = runs.flatMap((run, i) => [
    { name: runs.length > 1 ? label(i) : "training", color: ends[i], x: run.steps.step, y: run.steps.loss, dashed: i > 0 },
    run.steps.val_loss ? { name: runs.length > 1 ? label(i) + ", validation" : "validation", color: i ? "before" : "after", x: run.steps.step, y: run.steps.val_loss, dots: true } : null]).filter(Boolean);
  return section("Learning", null, el("div", { class: "pair" },
    chart("loss", losses, { format: (y) => show(y), trim: true }), curves("learning rate", "lr", { format: (y) => show(y), low: 0 }),
    runs.map(parts)));
}
function speed() {
  const charts = [curves("time of a step", "ms", { format: milliseconds, low: 0, trim: true }),
    curves("share of time waited for others", "waited", { format: percent, low: 0 }),
    curves("waited for experts to move", "exposed_ms", { format: milliseconds, low: 0, trim: true }),
    curves("replicas, all layers", "replicas", { format: (y) => show(y), low: 0 }),
    curves("gradient norm", "grad_norm", { format: (y) => show(y), low: 0, trim: true }),
    curves("memory of the fullest rank", "memory", { format: bytes, low: 0 })].filter(Boolean);
  return section("Speed and memory", null, el("div", { class: "pair" }, charts));
}

// ---- layers, at the step of the slider

const state = { part: 1, set: null, layer: 0, playing: 0 };
const snapshot = (i) => {
  const list = runs[i].snapshots;
  const last = Math.max(...runs.map((run) => (run.snapshots.length ? run.snapshots.at(-1).step : 0)));
  const first = Math.min(...runs.map((run) => (run.snapshots.length ? run.snapshots[0].step : Infinity)));
  const wanted = first + state.part * (last - first);
  return list.length ? list.reduce((a, b) => (Math.abs(b.step - wanted) < Math.abs(a.step - wanted) ? b : a)) : null;
};
const layersOf = (shot) => (shot && shot.layers && shot.layers[state.set]) || null;

// Of a load over the mean: paper at the mean, blue below, red above.
function heat(ratio) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const mid = dark ? [44, 50, 58] : [243, 241, 234], hot = dark ? [255, 104, 84] : [186, 32, 24], cold = dark ? [84, 132, 200] : [132, 170, 214];
  const way = ratio > 1 ? Math.min(Math.log2(ratio) / 3, 1) : Math.min(1 - ratio, 1);
  const end = ratio > 1 ? hot : cold;
  return `rgb(${mid.map((m, c) => Math.round(m + (end[c] - m) * (ratio > 1 ? way ** 0.8 : 0.75 * way))).join(",")})`;
}
// Few experts are not drawn large, and many not too small to be seen.
function spread(experts) {
  return experts > 48 ? `min-width:${8 * experts}px` : `max-width:${40 * (experts + 1)}px`;
}
function heatMap(i) {
  const shot = snapshot(i), loads = shot && shot.tokens_per_expert && shot.tokens_per_expert[state.set];
  if (!loads) return el("p", {}, "This log has no loads (--set log.loads=N).");
  const experts = loads[0].length, layers = loads.length, left = 26, cell = 24, height = 22;
  const svg = sv("svg", { viewBox: `0 0 ${left + experts * cell} ${layers * height + 24}`, role: "img",
    style: spread(experts),
    "aria-label": `tokens of ${experts} experts in ${layers} layers at step ${shot.step}` });
  loads.forEach((row, l) => {
    const mean = sum(row) / experts || 1;
    svg.append(sv("text", { x: left - 6, y: l * height + 15, "text-anchor": "end", class: l === state.layer ? "strong" : null }, l));
    row.forEach((n, e) => svg.append(sv("rect", { x: left + e * cell, y: l * height, width: cell - 1, height: height - 1, rx: 2, fill: heat(n / mean),
      stroke: css("line"), "stroke-width": 0.5 }, sv("title", {}, `layer ${l}, expert ${e}: ${n} tokens, ${(n / mean).toFixed(2)} × the mean`))));
    svg.append(sv("rect", { x: left - 24, y: l * height, width: left + experts * cell, height: height, fill: "transparent", style: "cursor:pointer",
      "pointer-events": l === state.layer ? "none" : "all", onclick: () => { state.layer = l; steer(); } }));
  });
  for (let e = 0; e < experts; e += Math.ceil(experts / 16)) svg.append(
    sv("text", { x: left + (e + 0.5) * cell, y: layers * height + 15, "text-anchor": "middle" }, e));
  return el("div", { class: "scroll" }, svg);
}
function placementMap(i) {
  const shot = snapshot(i), layers = layersOf(shot), layer = layers && layers[state.layer];
  if (!layer) return el("p", {}, "Every rank has all experts of this run.");
  const loads = shot.tokens_per_expert[state.set][state.layer], mean = sum(loads) / loads.length || 1;
  const experts = layer.owner.length, ranks = layer.before.length, left = 26, cell = 24, height = 22;
  const svg = sv("svg", { viewBox: `0 0 ${left + experts * cell} ${ranks * height + 24}`, role: "img",
    style: spread(experts),
    "aria-label": `who holds which expert of layer ${state.layer} at step ${shot.step}: ` + words(shot, state.layer) });
  for (let r = 0; r < ranks; r++) {
    svg.append(sv("text", { x: left - 6, y: r * height + 15, "text-anchor": "end" }, r));
    for (let e = 0; e < experts; e++) {
      const owns = layer.owner[e] === r, copy = layer.replicas.some((p) => p[0] === e && p[1] === r);
      svg.append(sv("rect", { x: left + e * cell, y: r * height, width: cell - 1, height: height - 1, rx: 2, fill: css("faint") }));
      if (owns || copy) svg.append(sv("rect", { x: left + e * cell + (copy ? 4 : 2), y: r * height + (copy ? 4 : 2), width: cell - (copy ? 9 : 5),
        height: height - (copy ? 9 : 5), rx: copy ? 7 : 2, fill: copy ? "none" : css("rest"), stroke: copy ? css("after") : "none", "stroke-width": 2.6 },
        sv("title", {}, `rank ${r} ${owns ? "owns" : "has a copy of"} expert ${e}, ${(loads[e] / mean).toFixed(2)} × the mean`)));
    }
  }
  for (let e = 0; e < experts; e += Math.ceil(experts / 16)) svg.append(
    sv("text", { x: left + (e + 0.5) * cell, y: ranks * height + 15, "text-anchor": "middle" }, e));
  return el("div", { class: "scroll" }, svg);
}

// rows: [{name, parts: [[value, colour]]}], drawn as bars from one zero; mark: a value to draw a line at.
function bars(title, rows, format, mark, high = 0) {
  const width = 460, left = 46, right = 66, height = 20, most = Math.max(...rows.flatMap((row) => row.groups.map((g) => sum(g.map((p) => p[0])))), mark || 0, high) || 1;
  const scale = (width - left - right) / most, groups = Math.max(...rows.map((row) => row.groups.length)), each = groups > 1 ? 11 : 14;
  const step = groups > 1 ? 30 : height;
  const svg = sv("svg", { viewBox: `0 0 ${width} ${rows.length * step + 6}`, role: "img", style: "max-width:600px", "aria-label": title + ": " +
    rows.map((row) => `${row.name} ${row.groups.map((g) => format(sum(g.map((p) => p[0])))).join(" to ")}`).join(", ") });
  rows.forEach((row, n) => {
    svg.append(sv("text", { x: left - 7, y: n * step + (groups > 1 ? 17 : 13), "text-anchor": "end", class: row.strong ? "strong" : null }, row.name));
    row.groups.forEach((group, g) => {
      let x = left;
      const y = n * step + 2 + g * (each + 1);
      for (const [value, color, name] of group) {
        svg.append(sv("rect", { x, y, width: Math.max(value * scale, 0), height: each, fill: css(color) }, sv("title", {}, `${row.name}: ${name || ""} ${format(value)}`)));
        x += value * scale;
      }
      svg.append(sv("text", { x: x + 5, y: y + each - 1, style: groups > 1 ? "font-size:10.5px" : null }, format(sum(group.map((p) => p[0])))));
    });
  });
  if (mark) svg.append(sv("line", { class: "cross", x1: left + mark * scale, x2: left + mark * scale, y1: 0, y2: rows.length * step }));
  return svg;
}
// One scale for all runs.
const highest = (of) => Math.max(...runs.map((_, i) => layersOf(snapshot(i))).filter(Boolean).map((layers) => of(layers) || 0));
function loadBars(i) {
  const layers = layersOf(snapshot(i)), layer = layers && layers[state.layer];
  if (!layer) return null;
  return bars(`rows of each rank in layer ${state.layer}, by owners and as placed`, layer.before.map((n, r) => ({ name: r,
    groups: [[[n, "before", "by owners"]], [[layer.after[r], "after", "as placed"]]] })), (x) => show(x), sum(layer.after) / layer.after.length, highest((other) => other[state.layer] && Math.max(...other[state.layer].before)));
}
function layerBars(i) {
  const layers = layersOf(snapshot(i));
  if (!layers) return null;
  return bars("the fullest rank over the mean, layer by layer", layers.map((layer, l) => ({ name: l, strong: l === state.layer,
    groups: [[[imbalance(layer.before), "before", "by owners"]], [[imbalance(layer.after), "after", "as placed"]]] })), (x) => x.toFixed(2) + "×", 1, highest((other) => Math.max(...other.map((layer) => imbalance(layer.before)))));
}
function exposedBars(i) {
  const layers = layersOf(snapshot(i));
  if (!layers || !layers.some((layer) => layer.exposed_ms > 0)) return null;
  return bars("waited for experts to move, layer by layer", layers.map((layer, l) => ({ name: l, strong: l === state.layer,
    groups: [[[layer.exposed_ms, "wait", "waited"]]] })), milliseconds);
}
function rankBars(i) {
  const shot = snapshot(i);
  if (!shot || !shot.ranks || !shot.ranks.length) return null;
  return bars("where the time of each rank goes", shot.ranks.map((rank, r) => {
    const other = Math.max(rank.waited_ms - rank.exposed_ms - rank.late_ms, 0);
    return { name: r, strong: shot.watch && shot.watch.slowest === r, groups: [[[Math.max(rank.ms - rank.waited_ms, 0), "first", "computes"],
      [rank.exposed_ms, "wait", "waits for experts"], [rank.late_ms, "second", "waits for late ranks"], [other, "late", "waits for rows, counts, sums"]]] };
  }), milliseconds);
}
function memoryBars(i) {
  const shot = snapshot(i);
  if (!shot || !shot.ranks || shot.ranks.length < 2) return null;
  return bars("memory of each rank", shot.ranks.map((rank, r) => ({ name: r, groups: [[[rank.memory, "rest"]]] })), bytes);
}
function slowBars(i) {
  const counts = runs[i].slowest;
  if (counts.length < 2) return null;
  return bars("how often the others waited for each rank", counts.map((n, r) => ({ name: r, groups: [[[n / sum(counts), "second"]]] })), percent);
}

// The plan of a layer as sentences.
function words(shot, l) {
  const layer = layersOf(shot)[l], loads = shot.tokens_per_expert[state.set][l], mean = sum(loads) / loads.length || 1;
  const holders = new Map();
  for (const [expert, rank] of layer.replicas) holders.set(expert, [...(holders.get(expert) || []), rank]);
  const told = [...holders].sort((a, b) => loads[b[0]] - loads[a[0]]).slice(0, 4).map(([expert, ranks]) =>
    `expert ${expert} (${(loads[expert] / mean).toFixed(1)} × the mean) of rank ${layer.owner[expert]} is also on ${ranks.length > 4 ? ranks.length + " more ranks" : "rank" + (ranks.length > 1 ? "s " : " ") + ranks.join(", ")}`);
  const more = holders.size - told.length;
  const plan = told.length ? told.join("; ") + (more > 0 ? `; ${more} more experts have copies` : "") : "owners alone compute";
  const calibrated = layer.calibrated && layer.calibrated.taken ? `; the exact counts asked for more copies, worth ${milliseconds(layer.calibrated.gain_ms)} for ${milliseconds(layer.calibrated.price_ms)}` : "";
  const dropped = layer.dropped ? `; ${layer.dropped} rows were dropped` : "", waves = layer.waves > 1 ? `; ${layer.waves} waves` : "";
  return `${plan}. The fullest rank has ${imbalance(layer.before).toFixed(2)} × the mean by owners, ${imbalance(layer.after).toFixed(2)} × as placed${calibrated}${dropped}${waves}.`;
}
function wordList(i) {
  const shot = snapshot(i), layers = layersOf(shot);
  return layers && el("ul", { class: "words" }, layers.map((_, l) => el("li", {}, el("b", {}, `Layer ${l}: `), words(shot, l))));
}

// A part of the page for each run, side by side, which is made anew where the slider moves.
function sides(title, text, of, legend) {
  const pair = el("div", { class: "pair" });
  const whole = section(title, text, legend || null, pair);
  const draw = () => {
    const made = runs.map((_, i) => {
      try { return of(i); } catch (fault) { return el("p", {}, "The log has a fault in this step: " + fault.message); }
    });
    whole.hidden = made.every((m) => !m);
    pair.replaceChildren(...made.map((inside, i) => inside && el("div", { class: "side" }, runs.length > 1 ? el("h3", {}, label(i)) : null, inside)).filter(Boolean));
  };
  steered.push(draw);
  return whole;
}
const steered = [];
let steer = () => steered.forEach((draw) => draw());

function controls() {
  const sets = Object.keys(runs.find((run) => run.snapshots.length).snapshots[0].tokens_per_expert);
  state.set = sets[0];
  const loads = () => runs.map((_, i) => snapshot(i)).find((s) => s && s.tokens_per_expert[state.set]).tokens_per_expert[state.set];
  const most = Math.max(...runs.map((run) => run.snapshots.length), 2) - 1;
  const output = el("output", {});
  const slider = el("input", { type: "range", min: 0, max: most, value: most, "aria-label": "step", oninput: () => {
    state.part = slider.value / most; steer(); } });
  const layer = el("select", { "aria-label": "layer", onchange: () => { state.layer = Number(layer.value); steer(); } });
  const fill = () => layer.replaceChildren(...loads().map((_, l) => el("option", { value: l }, "layer " + l)));
  const set = sets.length > 1 ? el("select", { "aria-label": "experts", onchange: () => { state.set = set.value; state.layer = 0; fill(); steer(); } },
    sets.map((name) => el("option", {}, name))) : null;
  const play = el("button", { type: "button", onclick: () => {
    if (state.playing) { clearInterval(state.playing); state.playing = 0; play.textContent = "Play"; return; }
    if (Number(slider.value) === most) slider.value = 0;
    play.textContent = "Stop";
    state.playing = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      state.part = slider.value / most;
      if (Number(slider.value) === most) play.click();
      steer();
    }, 220);
  } }, "Play");
  fill();
  const all = steer;
  steer = () => {
    const shot = runs.map((_, i) => snapshot(i)).find(Boolean);
    output.textContent = "step " + shot.step;
    layer.value = state.layer;
    all();
  };
  return el("div", { class: "steer", role: "group", "aria-label": "step and layer of the parts below" },
    el("label", { class: "time" }, play, slider, output), set, layer);
}
function layers() {
  if (!runs.some((run) => run.snapshots.length)) return [section("Layers", "This log has no loads of layers: train with --set log.loads=N to see them, and who held which expert.")];
  const two = () => keys(["by owners", css("before"), "box"], ["as placed", css("after"), "box"]);
  return [controls(),
    sides("Router's choices", "Tokens of each expert, one row a layer: red has more than the mean, blue less. A click chooses a layer.", heatMap),
    sides("Holders of experts", "One row a rank, in the chosen layer: a filled square is the owner, a ring a copy for this iteration.", placementMap,
      keys(["owner", css("rest"), "box"], ["copy", css("after"), "box"])),
    el("div", { class: runs.length > 1 ? null : "two" },
      sides("Rows of each rank", "In the chosen layer. The line is the mean, where all ranks end together.", loadBars, two()),
      sides("Balance of each layer", "The fullest rank over the mean.", layerBars, two()),
      sides("Where a step's time goes", "By rank; the one in bold waited least: the others waited for it.", rankBars,
        keys(["computes", css("first"), "box"], ["waits for experts", css("wait"), "box"], ["for late ranks", css("second"), "box"], ["for rows, counts, sums", css("late"), "box"])),
      sides("Communication that nothing hides", "Mean wait of a rank for transfers of the experts of each layer.", exposedBars),
      sides("Stragglers", "The share of all steps in which the others waited for this rank.", slowBars),
      sides("Memory of the ranks", null, memoryBars)),
    sides("The plan in words", null, wordList)];
}

// ---- the page

function draw() {
  page.replaceChildren(...head().filter(Boolean), ...[balance(), learning()].filter(Boolean), ...layers().filter(Boolean), speed());
  redraws.forEach((part) => part());
  steer();
}
document.title = runs.map((_, i) => label(i)).join(" and ") + " · hecate";
draw();
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  redraws.forEach((part) => part());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { location.reload(); });
