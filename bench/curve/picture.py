"""Two loss curves and their difference as SVG."""
import math

WIDTH, LEFT, RIGHT = 900, 60, 20
UPPER, LOWER, GAP, TOP = 300, 110, 46, 34
COLOURS = {"hecate": "#1f77b4", "PyTorch": "#d62728"}


def ticks(low, high, wanted=5):
    step = 10 ** math.floor(math.log10((high - low) / wanted))
    step *= min((1, 2, 5, 10), key=lambda factor: abs((high - low) / (step * factor) - wanted))
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


class Panel:
    """A rectangle with axes: `low` to `high` over steps 0 to `steps`."""

    def __init__(self, top, height, low, high, steps):
        self.top, self.height, self.low, self.high, self.steps = top, height, low, high, steps

    def at(self, step, value):
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return (LEFT + step / self.steps * (WIDTH - LEFT - RIGHT), self.top + (1 - share) * self.height)

    def axes(self):
        out = []
        for value in ticks(self.low, self.high, max(3, self.height // 55)):
            y = self.at(0, value)[1]
            out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        for step in ticks(0, self.steps):
            x, y = self.at(step, self.low)
            out.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{step:g}</text>')
        return out

    def line(self, points, colour, dash=""):
        text = " ".join("{:.1f},{:.1f}".format(*self.at(step, value)) for step, value in points)
        return f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.4"{dash}/>'


def draw(curves, difference, steps, title, note):
    """curves: name -> [(step, loss)]; difference: [(step, value)]. Returns the SVG's text."""
    values = [value for curve in curves.values() for _, value in curve]
    upper = Panel(TOP, UPPER, math.floor(min(values) * 2) / 2, math.ceil(max(values) * 2) / 2, steps)
    reach = max(1e-6, max(abs(value) for _, value in difference)) * 1.1
    lower = Panel(TOP + UPPER + GAP, LOWER, -reach, reach, steps)
    height = TOP + UPPER + GAP + LOWER + 44
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="{LEFT}" y="20" font-size="14">{title}</text>', *upper.axes(), *lower.axes(),
           f'<text x="{LEFT}" y="{lower.top - 8}">difference, hecate - PyTorch</text>',
           f'<text x="{LEFT}" y="{height - 8}">{note}</text>']
    for i, (name, curve) in enumerate(curves.items()):
        dash = ' stroke-dasharray="5 4"' if i else ""
        out.append(upper.line(curve, COLOURS[name], dash))
        y = TOP + 20 + 18 * i
        out.append(f'<line x1="{WIDTH - 190}" x2="{WIDTH - 150}" y1="{y}" y2="{y}" '
                   f'stroke="{COLOURS[name]}" stroke-width="2"{dash}/>')
        out.append(f'<text x="{WIDTH - 142}" y="{y + 4}">{name}</text>')
    out.append(lower.line(difference, "#444"))
    return "\n".join([*out, "</svg>"]) + "\n"
