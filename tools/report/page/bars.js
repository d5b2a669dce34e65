// Bars of ranks or layers: lines with their numbers where there are few, columns side by side where there are many.

const FEW = 12;

// rows: [{name, strong, groups: [[[value, colour, name], ...], ...]}]: a row has bars, a bar has parts.
// mark: a value to draw a line at; high: the scale's end at least; pick(row): a click on a row.
function bars(title, rows, format, mark, high = 0, pick = null) {
  const total = (group) => sum(group.map((part) => part[0]));
  const top = Math.max(most(rows.flatMap((row) => row.groups.map(total))), mark || 0, high) || 1;
  const name = title + ": " + rows.map((row) => `${row.name} ${row.groups.map((g) => format(total(g))).join(" to ")}`).join(", ");
  return rows.length <= FEW ? lines(name, rows, format, mark, top, total) : columns(name, rows, format, mark, top, total, pick);
}
function lines(name, rows, format, mark, top, total) {
  const width = 460, left = 46, right = 66, many = most(rows.map((row) => row.groups.length)) > 1, each = many ? 11 : 14, step = many ? 30 : 20;
  const scale = (width - left - right) / top;
  const svg = sv("svg", { viewBox: `0 0 ${width} ${rows.length * step + 6}`, role: "img", style: "max-width:600px", "aria-label": name });
  rows.forEach((row, n) => {
    svg.append(sv("text", { x: left - 7, y: n * step + (many ? 17 : 13), "text-anchor": "end", class: row.strong ? "strong" : null }, row.name));
    row.groups.forEach((group, g) => {
      let x = left;
      const y = n * step + 2 + g * (each + 1);
      for (const [value, color, part] of group) {
        svg.append(sv("rect", { x, y, width: Math.max(value * scale, 0), height: each, style: `fill:var(--${color})` }, sv("title", {}, `${row.name}: ${part || ""} ${format(value)}`)));
        x += value * scale;
      }
      svg.append(sv("text", { x: x + 5, y: y + each - 1, style: many ? "font-size:10.5px" : null }, format(total(group))));
    });
  });
  if (mark) svg.append(sv("line", { class: "cross", x1: left + mark * scale, x2: left + mark * scale, y1: 0, y2: rows.length * step }));
  return svg;
}
function columns(name, rows, format, mark, top, total, pick) {
  const holder = el("div", { class: "columns", role: "img", tabindex: "0", "aria-label": name }), told = el("div", { class: "told", "aria-live": "polite" });
  let at = null, drawn = null;
  function draw() {
    const width = Math.max(holder.clientWidth, 220), height = 170, left = 52, bottom = 20, above = 8, each = (width - left) / rows.length;
    const py = (value) => above + (1 - value / top) * (height - above - bottom), inner = Math.max(each - (each > 5 ? 2 : each > 3 ? 1 : 0), 0.8);
    const svg = sv("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    for (const y of ticks(0, top, 4)) svg.append(sv("line", { class: "grid", x1: left, x2: width, y1: py(y), y2: py(y) }),
      sv("text", { x: left - 7, y: py(y) + 4, "text-anchor": "end" }, format(y)));
    rows.forEach((row, n) => {
      row.groups.forEach((group, g) => {
        const wide = inner / row.groups.length, x = left + n * each + g * wide;
        let below = 0;
        for (const [value, color] of group) {
          svg.append(sv("rect", { x: x.toFixed(2), y: py(below + value), width: wide.toFixed(2), height: Math.max(py(below) - py(below + value), 0), style: `fill:var(--${color})` }));
          below += value;
        }
      });
      const label = rows.length > 24 ? n % Math.ceil(30 / each) === 0 : true;
      if (label || row.strong) svg.append(sv("text", { x: left + (n + 0.5) * each, y: height - 5, "text-anchor": "middle", class: row.strong ? "strong" : null,
        display: !row.strong && rows.some((other, o) => other.strong && Math.abs(o - n) * each < 22) ? "none" : null }, row.name));
    });
    if (mark) svg.append(sv("line", { class: "cross", x1: left, x2: width, y1: py(mark), y2: py(mark) }));
    drawn = { width, left, each };
    holder.replaceChildren(svg);
  }
  function tell() {
    told.textContent = at === null ? "" : `${rows[at].name}: ` + rows[at].groups.map((group) => group.map(([value, , part]) => `${part || ""} ${format(value)}`).join(", ") +
      (group.length > 1 ? `; in all ${format(total(group))}` : "")).join(" · ");
  }
  const rowAt = (event) => {
    const box = holder.getBoundingClientRect(), n = Math.floor(((event.clientX - box.left) * (drawn.width / box.width) - drawn.left) / drawn.each);
    return n >= 0 && n < rows.length ? n : null;
  };
  for (const kind of ["pointermove", "pointerdown"]) holder.addEventListener(kind, (event) => { at = rowAt(event); tell(); });
  holder.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") { at = null; tell(); } });
  holder.addEventListener("click", (event) => { const n = rowAt(event); if (n !== null && pick) pick(n); });
  holder.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" && at !== null && pick) pick(at);
    if (!move) return;
    event.preventDefault();
    at = Math.min(Math.max((at ?? 0) + move, 0), rows.length - 1);
    tell();
  });
  return el("div", {}, painted(holder, draw), told);
}
