"""Pictures of the page as SVG: grouped bars, stacked bars, lines."""
import math

COLOURS = {"EP": "#9aa5b1", "EP in nodes": "#3d4f63", "FasterMoE": "#c9a227", "SmartMoE": "#b98b5e", "FlexMoE": "#7fa05a", "EPLB": "#4f9d8f",
           "UltraEP": "#8c6bb1", "LLEP": "#b5577e", "LAER": "#5c6f2f", "FSDP": "#6b8e9e", "FSSDP": "#5b8fd6", "quota": "#c8452f",
           "even, nothing sent": "#444"}
PARTS = {"computing": "#9cc3e6", "experts": "#f2a33c", "planning": "#b48ead", "counts": "#8a6d3b", "rows": "#d9534f",
         "gather": "#5cb85c", "reduce": "#2f7d4f", "states": "#6c5ce7", "dense": "#8e9aaf"}
FONT = 'font-family="sans-serif"'


def ticks(high, wanted=5):
    step = 10 ** math.floor(math.log10(high / wanted))
    step *= min((1, 2, 5, 10), key=lambda factor: abs(high / (step * factor) - wanted))
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def text(x, y, words, size=12, anchor="start", colour="#234", more=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" {more}>{words}</text>'


def rect(x, y, width, height, colour, label=""):
    title = f"<title>{label}</title>" if label else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" fill="{colour}">{title}</rect>'


def page(width, height, parts, title):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" {FONT}>\n'
            f'<title>{title}</title>\n<rect width="100%" height="100%" fill="#fff"/>\n')
    return head + "\n".join([text(16, 24, title, 14, more='font-weight="bold"'), *parts]) + "\n</svg>\n"


def legend(names, colours, x, y, width):
    out, at = [], x
    for name in names:
        if at + 30 + 7 * len(name) > width:
            at, y = x, y + 18
        out += [rect(at, y - 10, 12, 12, colours[name]), text(at + 17, y, name)]
        at += 36 + 7 * len(name)
    return out, y


def axis(left, right, top, bottom, high, unit):
    out = []
    for value in ticks(high):
        y = bottom - value / high * (bottom - top)
        out += [f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e8ec"/>',
                text(left - 6, y + 4, f"{value:g}", 11, "end", "#567")]
    return out + [text(left, top - 8, unit, 11, "start", "#567")]


def bars(title, groups, unit, marks=()):
    """groups: [(name, {series: value})]; marks: [(group, low, high)] draws two dashed lines, a paper's range."""
    series = list(dict.fromkeys(name for _, values in groups for name in values))
    left, top, height, slot = 56, 84, 240, 15
    each = slot * len(series) + 26
    width, bottom = max(left + each * len(groups) + 20, 760), top + height
    high = 1.1 * max([v for _, values in groups for v in values.values()] + [m[2] for m in marks])
    out, _ = legend(series, COLOURS, left, 46, width - 10)
    out += axis(left, width - 16, top, bottom, high, unit)
    for i, (name, values) in enumerate(groups):
        x = left + 12 + each * i
        for band in (m for m in marks if m[0] == name):
            upper, lower = (bottom - v / high * height for v in (band[2], band[1]))
            out += [f'<line x1="{x - 6}" x2="{x + each - 20}" y1="{upper:.1f}" y2="{upper:.1f}" stroke="#2f7d4f" stroke-dasharray="4 3"/>',
                    f'<line x1="{x - 6}" x2="{x + each - 20}" y1="{lower:.1f}" y2="{lower:.1f}" stroke="#2f7d4f" stroke-dasharray="4 3"/>']
        for k, key in enumerate(series):
            if key in values:
                size = values[key] / high * height
                out.append(rect(x + slot * k, bottom - size, slot - 2, size, COLOURS[key], f"{name}, {key}: {values[key]:.3g}"))
                out.append(text(x + slot * k + slot / 2 - 1, bottom - size - 4, f"{values[key]:.2g}", 8, "middle"))
        for n, line in enumerate(name.split("\n")):
            out.append(text(x + slot * len(series) / 2, bottom + 18 + 15 * n, line, 12, "middle"))
    return page(width, bottom + 46, out, title)


def stacks(title, rows, unit):
    """rows: [(name, {part: value})], one bar each, lying."""
    parts = [p for p in PARTS if any(values.get(p, 0) > 0 for _, values in rows)]
    left, top, slot, width = 190, 62, 24, 900
    high = 1.02 * max(sum(values.values()) for _, values in rows)
    out, lowest = legend(parts, PARTS, 16, 46, width)
    top = lowest + 20
    for i, (name, values) in enumerate(rows):
        y, x = top + slot * i, left
        out.append(text(left - 8, y + 15, name, 12, "end"))
        for part in parts:
            size = values.get(part, 0) / high * (width - left - 70)
            out.append(rect(x, y + 2, size, slot - 5, PARTS[part], f"{name}, {part}: {values.get(part, 0):.4g} {unit}"))
            x += size
        out.append(text(x + 6, y + 15, f"{sum(values.values()):.0f} {unit}", 11, "start", "#567"))
    return page(width, top + slot * len(rows) + 14, out, title)


def lines(title, curves, labels, unit, below, low=0.0):
    """curves: {series: [value for each label]}."""
    left, right, top, height, width = 60, 20, 84, 250, 720
    bottom, high = top + height, 1.08 * max(max(v) for v in curves.values())
    out, _ = legend(list(curves), COLOURS, left, 46, width - 10)
    out += axis(left, width - right, top, bottom, high, unit)
    step = (width - left - right - 60) / max(len(labels) - 1, 1)
    for i, label in enumerate(labels):
        out.append(text(left + 30 + step * i, bottom + 18, label, 11, "middle", "#567"))
    out.append(text((left + width - right) / 2, bottom + 38, below, 12, "middle"))
    for name, values in curves.items():
        at = [(left + 30 + step * i, bottom - (v - low) / (high - low) * height) for i, v in enumerate(values)]
        dash = ' stroke-dasharray="5 4"' if name in ("local", "balanced") else ""
        out.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in at)}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"{dash}/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[name]}"><title>{name}: {v:.4g}</title></circle>'
                for (x, y), v in zip(at, values)]
    return page(width, bottom + 52, out, title)
