// Tables of numbers as coloured cells, of any size, on a canvas. Pointer, finger and arrow keys read single cells.

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const mix = (a, b, t) => `rgb(${a.map((m, c) => Math.round(m + (b[c] - m) * t)).join(",")})`;
const paper = () => (isDark() ? [44, 50, 58] : [243, 241, 234]);
const hot = () => (isDark() ? [255, 104, 84] : [186, 32, 24]);
const cold = () => (isDark() ? [84, 132, 200] : [132, 170, 214]);
// A load over the mean: paper at the mean, blue below, red above.
const heat = (ratio) => (ratio > 1 ? mix(paper(), hot(), Math.min(Math.log2(ratio) / 3, 1) ** 0.8) : mix(paper(), cold(), 0.75 * Math.min(1 - ratio, 1)));
// A share that should be 0.
const alarm = (share) => mix(paper(), hot(), Math.min(Math.max(share, 0), 1) ** 0.7);

// m: {name, rows, columns, color(row, column), tell(row, column), rowName(row), columnName(column), click(row, column),
// row, column}: `row` and `column` are framed. Options: height, the most that all rows may take; square: the widest cell.
function matrix(m, options = {}) {
  const canvas = el("canvas", { role: "img", tabindex: "0", "aria-label": m.name + ". Arrow keys read single cells.", class: m.click ? "click" : null });
  const told = el("div", { class: "told", "aria-live": "polite" });
  let at = null, place = null;
  function draw() {
    const whole = Math.max(canvas.parentNode.clientWidth, 200), left = 34, right = 12, top = 6, bottom = 18;
    const high = Math.min(Math.max((options.height || 300) / m.rows, 3), 20), wide = Math.min((whole - left - right) / m.columns, options.square || 26);
    const width = Math.ceil(left + wide * m.columns + right), height = Math.ceil(top + high * m.rows + bottom), dense = devicePixelRatio || 1;
    canvas.width = width * dense;
    canvas.height = height * dense;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const pen = canvas.getContext("2d"), gap = (side) => (side >= 7 ? 1 : side >= 3 ? 0.5 : 0);
    pen.scale(dense, dense);
    for (let r = 0; r < m.rows; r++) for (let c = 0; c < m.columns; c++) {
      const color = m.color(r, c);
      if (!color) continue;
      pen.fillStyle = color;
      pen.fillRect(left + c * wide, top + r * high, wide - gap(wide) + (gap(wide) ? 0 : 0.3), high - gap(high) + (gap(high) ? 0 : 0.3));
    }
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = css("soft");
    pen.textAlign = "end";
    pen.textBaseline = "middle";
    for (let r = 0, every = Math.ceil(13 / high); r < m.rows; r++) if (r % every === 0 && r !== m.row) pen.fillText(m.rowName(r), left - 6, top + (r + 0.5) * high);
    pen.textAlign = "center";
    for (let c = 0, every = Math.ceil(38 / wide); c < m.columns; c += every) pen.fillText(m.columnName(c), left + (c + 0.5) * wide, height - 7);
    pen.strokeStyle = pen.fillStyle = css("ink");
    pen.lineWidth = 1.5;
    if (m.row >= 0) {
      pen.clearRect(0, top + (m.row + 0.5) * high - 8, left - 2, 16);
      pen.textAlign = "end";
      pen.font = "bold 11px system-ui, sans-serif";
      pen.fillText(m.rowName(m.row), left - 6, top + (m.row + 0.5) * high);
      if (m.columns > 1) pen.strokeRect(left - 0.5, top + m.row * high - 0.5, wide * m.columns + 0.5, high + 0.5);
    }
    if (m.column >= 0) pen.strokeRect(left + m.column * wide - 0.5, top - 0.5, Math.max(wide, 2) + 0.5, m.rows * high + 0.5);
    place = { left, top, high, wide };
  }
  function tell() { told.textContent = at ? m.tell(at[0], at[1]) : ""; }
  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const r = Math.floor((event.clientY - box.top - place.top) / place.high), c = Math.floor((event.clientX - box.left - place.left) / place.wide);
    return r >= 0 && r < m.rows && c < m.columns && c >= -place.left / place.wide ? [r, Math.max(c, 0)] : null;
  }
  canvas.addEventListener("pointermove", (event) => { at = cellAt(event); tell(); });
  canvas.addEventListener("pointerdown", (event) => { at = cellAt(event); tell(); });
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") { at = null; tell(); } });
  canvas.addEventListener("click", (event) => { const cell = cellAt(event); if (cell && m.click) m.click(...cell); });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter" && at && m.click) m.click(...at);
    if (!move) return;
    event.preventDefault();
    at = at ? [Math.min(Math.max(at[0] + move[0], 0), m.rows - 1), Math.min(Math.max(at[1] + move[1], 0), m.columns - 1)] : [0, 0];
    tell();
  });
  return el("div", { class: "matrix" }, painted(canvas, draw), told);
}
