// Curves over steps. All of them show the same steps: a drag across one chooses these for all.

const zoomed = []; // Functions to call when the steps change.
function zoomTo(range) {
  state.zoom = range;
  keep();
  zoomed.forEach((redraw) => redraw());
}

// How steps lie between 0 and 1.
function stepScale(series) {
  const first = state.zoom ? state.zoom[0] : least(series.map((s) => s.x[0]));
  const end = state.zoom ? state.zoom[1] : most(series.map((s) => s.x.at(-1)));
  const to = Math.max(end, first + 1), log = state.logSteps;
  const of = (x) => (log ? Math.log(Math.max(x, 0.5)) : x), low = of(first), high = of(to);
  return { first, last: to, at: (x) => (of(x) - low) / (high - low), back: (t) => { const v = low + t * (high - low); return log ? Math.exp(v) : v; } };
}

// Values of a series that are in sight, and one on each side.
function inSight(s, scale) {
  let from = s.x.findIndex((x) => x >= scale.first), to = s.x.findLastIndex((x) => x <= scale.last);
  if (from < 0) from = s.x.length - 1;
  if (to < 0) to = 0;
  return [Math.max(from - 1, 0), Math.min(to + 1, s.x.length - 1)];
}

function valueScale(series, scale, options, log) {
  const ys = series.flatMap((s) => { const [a, b] = inSight(s, scale); return known(s.y.slice(a, b + 1)); }).filter((y) => !log || y > 0).sort((a, b) => a - b);
  let low = log ? ys[0] : options.low ?? ys[0], high = ys.length ? ys.at(-1) : 1;
  if (!ys.length) low = log ? 0.1 : 0;
  if (options.high !== undefined && !state.zoom) high = Math.max(high, options.high);
  if (options.trim && !log) high = Math.min(high, 1.5 * ys[Math.floor(0.985 * (ys.length - 1))]);
  if (options.mark !== undefined && !log) { low = Math.min(low, options.mark); high = Math.max(high, options.mark); }
  if (!(high > low)) { low = log ? low / 1.5 : low; high = log ? high * 1.5 : low + (Math.abs(low) || 1); }
  if (!log) high += 0.04 * (high - low);
  const of = (y) => (log ? Math.log(Math.max(y, low / 10)) : y), a = of(low), b = of(high);
  return { ticks: log ? logTicks(low, high) : ticks(low, high, 4), at: (y) => (of(Math.min(Math.max(y, low), high)) - a) / (b - a) };
}

function pathOf(s, px, py, scale) {
  const [from, to] = inSight(s, scale);
  let text = "", pen = "M";
  for (let i = from; i <= to; i++) if (s.y[i] !== null) { text += `${pen}${px(s.x[i]).toFixed(1)} ${py(s.y[i]).toFixed(1)}`; pen = "L"; }
  return text;
}

function nearest(xs, x) {
  let i = xs.findIndex((v) => v >= x);
  if (i < 0) i = xs.length - 1;
  return i > 0 && x - xs[i - 1] < xs[i] - x ? i - 1 : i;
}

let clips = 0;
// series: [{name, color, dash, x, y, dots, run}]; options: format, low, high, trim, area (of two series),
// mark (a y to draw a line at), words (for a legend).
function chart(title, series, options = {}) {
  series = series.filter((s) => s.y && s.y.some((y) => y !== null));
  if (!series.length) return null;
  const clip = "clip" + clips++, seen = () => series.filter((s) => s.run === undefined || !state.hidden[s.run]);
  const holder = el("div", { class: "chart", tabindex: "0", role: "img", "aria-label": title + ": " +
    series.map((s) => `${s.name} from ${options.format(known(s.y)[0])} to ${options.format(known(s.y).at(-1))}`).join("; ") +
    ". Arrow keys read single steps, + and - zoom, Escape shows all." });
  const told = el("div", { class: "told", "aria-live": "polite" });
  let at = null, from = null, drawn = null; // The step that is read; where a drag began, in pixels.

  function draw() {
    const width = Math.max(holder.clientWidth, 240), height = width < 420 ? 150 : 180, left = 52, right = 12, top = 8, bottom = 24;
    const list = seen(), log = !!state.logs[title], scale = stepScale(list.length ? list : series);
    const values = valueScale(list, scale, options, log);
    const px = (x) => left + scale.at(x) * (width - left - right), py = (y) => top + (1 - values.at(y)) * (height - top - bottom);
    const svg = sv("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      sv("clipPath", { id: clip }, sv("rect", { x: left, y: 0, width: width - left - right + 6, height: height - bottom + 2 })));
    for (const y of values.ticks) svg.append(
      sv("line", { class: "grid", x1: left, x2: width - right, y1: py(y), y2: py(y) }),
      sv("text", { x: left - 7, y: py(y) + 4, "text-anchor": "end" }, options.format(y)));
    for (const x of state.logSteps ? logTicks(Math.max(scale.first, 1), scale.last) : ticks(scale.first, scale.last, width < 280 ? 3 : width < 420 ? 5 : 6))
      if (Number.isInteger(x)) svg.append(sv("text", { x: px(x), y: height - 6, "text-anchor": "middle" }, show(x, 4)));
    const curves = sv("g", { "clip-path": `url(#${clip})` });
    if (options.area && list.length === 2) {
      const back = { x: [...list[1].x].reverse(), y: [...list[1].y].reverse() };
      const edge = back.x.map((x, i) => (back.y[i] === null ? "" : `L${px(x).toFixed(1)} ${py(back.y[i]).toFixed(1)}`)).join("");
      const whole = { ...list[0] }, text = whole.x.map((x, i) => (whole.y[i] === null ? "" : `${px(x).toFixed(1)} ${py(whole.y[i]).toFixed(1)}`)).filter(Boolean).join("L");
      curves.append(sv("path", { fill: css("shade"), d: "M" + text + edge + "Z" }));
    }
    if (options.mark !== undefined) curves.append(sv("line", { class: "cross", x1: left, x2: width - right, y1: py(options.mark), y2: py(options.mark) }));
    for (const s of options.area ? [...list].reverse() : list) { // The curve as placed lies below.
      curves.append(sv("path", { d: pathOf(s, px, py, scale), fill: "none", style: `stroke:${s.color}`, "stroke-width": s.thin ? 1.2 : 2,
        "stroke-linejoin": "round", "stroke-dasharray": s.dash || null }));
      if (s.dots) s.y.forEach((y, i) => { if (y !== null && s.x[i] >= scale.first && s.x[i] <= scale.last)
        curves.append(sv("circle", { cx: px(s.x[i]), cy: py(y), r: 3.2, style: `fill:${s.color}` })); });
    }
    svg.append(curves);
    drawn = { svg, px, scale, left, right, width, height, top, bottom };
    holder.replaceChildren(svg);
    point();
  }
  function point() {
    drawn.svg.querySelector(".cursor")?.remove();
    if (at === null) { told.textContent = ""; return; }
    const d = drawn, list = seen();
    if (!list.length) return;
    const longest = list.reduce((a, b) => (b.x.length > a.x.length ? b : a)), x = longest.x[nearest(longest.x, at)];
    if (x >= d.scale.first && x <= d.scale.last)
      d.svg.append(sv("line", { class: "cross cursor", x1: d.px(x), x2: d.px(x), y1: d.top, y2: d.height - d.bottom }));
    told.textContent = `step ${x}: ` + list.map((s) => {
      const y = s.y[nearest(s.x, x)];
      return y === null ? null : `${s.name} ${options.format(y)}`;
    }).filter(Boolean).join(" · ");
  }
  const pixel = (event) => { const box = holder.getBoundingClientRect(); return (event.clientX - box.left) * (drawn.width / box.width); };
  const stepAt = (x) => drawn.scale.back(Math.min(Math.max((x - drawn.left) / (drawn.width - drawn.left - drawn.right), 0), 1));
  function band(a, b) {
    drawn.svg.querySelector(".band")?.remove();
    if (a !== null) drawn.svg.append(sv("rect", { class: "band", x: Math.min(a, b), width: Math.abs(b - a), y: drawn.top, height: drawn.height - drawn.top - drawn.bottom }));
  }
  const wide = (x) => from !== null && Math.abs(x - from) > 8;
  holder.addEventListener("pointerdown", (event) => { if (event.button === 0) { from = pixel(event); at = stepAt(from); point(); } });
  holder.addEventListener("pointermove", (event) => {
    const x = pixel(event);
    at = stepAt(x);
    if (wide(x)) { holder.setPointerCapture(event.pointerId); band(from, x); }
    point();
  });
  holder.addEventListener("pointerup", (event) => {
    const x = pixel(event), range = [stepAt(from ?? x), stepAt(x)].sort((a, b) => a - b).map(Math.round);
    const far = wide(x);
    from = null;
    band(null);
    if (far && range[1] - range[0] >= 1) zoomTo(range);
  });
  holder.addEventListener("pointercancel", () => { from = null; band(null); });
  holder.addEventListener("pointerleave", (event) => { if (from === null && event.pointerType === "mouse") { at = null; point(); } });
  holder.addEventListener("dblclick", () => zoomTo(null));
  holder.addEventListener("keydown", (event) => {
    const list = seen();
    if (!list.length) return;
    const longest = list.reduce((a, b) => (b.x.length > a.x.length ? b : a)), d = drawn.scale, here = at ?? d.last;
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
    if (!move && !factor && event.key !== "Escape") return;
    event.preventDefault();
    if (move) {
      at = longest.x[Math.max(0, Math.min(longest.x.length - 1, nearest(longest.x, here) + move))];
      point();
    } else {
      const half = ((d.last - d.first) / 2) * (factor || 1), low = longest.x[0], high = longest.x.at(-1);
      const range = [Math.max(low, Math.round(here - half)), Math.min(high, Math.round(here + half))];
      zoomTo(!factor || (range[0] <= low && range[1] >= high) || range[1] <= range[0] ? null : range);
    }
  });
  zoomed.push(draw);
  const log = options.log ? chosen(!!state.logs[title], "log", { title: "logarithmic scale", "aria-label": `${title}: logarithmic scale`, onclick: () => {
    state.logs[title] = !state.logs[title];
    log.setAttribute("aria-pressed", String(!!state.logs[title]));
    keep();
    draw();
  } }) : null;
  const own = series.filter((s) => runs.length === 1 || s.run === undefined); // The head of the page explains the others.
  const legend = own.length > 1 ? el("div", { class: "keys" }, own.map((s) => el("span", {}, line(s.color, s.dash), s.name))) :
    options.words ? el("div", { class: "keys" }, options.words) : null;
  return el("div", { class: "side" }, el("div", { class: "title" }, el("h3", {}, title), log), legend, painted(holder, draw), told);
}
// As a legend shows a curve.
function line(color, dash) {
  return sv("svg", { class: "line", viewBox: "0 0 24 8", "aria-hidden": "true" },
    sv("line", { x1: 0, x2: 24, y1: 4, y2: 4, style: `stroke:${color}`, "stroke-width": 3, "stroke-dasharray": dash || null }));
}

// The same numbers of all runs.
function curves(title, of, options) {
  return chart(title, runs.map((run, i) => ({ name: runs.length > 1 ? label(i) : title, color: runColor(i), dash: runs.length > 1 ? dashes[i % 8] : null, run: i,
    x: run.steps.step, y: typeof of === "function" ? of(run) : run.steps[of] })), options);
}
