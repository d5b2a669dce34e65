#!/usr/bin/env python3
"""step_picture.py [HECATE_REPLAY]: draws docs/step.svg, one layer of a step with expert parallelism and with FSSDP.

hecate-replay draws the loads (Zipf 1.2, 32 experts, 8 devices) and plans the replicas. Rows of a device are counted
from its printed loads (expert parallelism) and taken from its largest device (FSSDP). Assumed: attention and the
experts of a balanced device take equally long, and rows travel for nothing."""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES, EXPERTS = 8, 32
STEP = {"iteration": "8", "layer": "1", "microbatch": "2"}  # The one that is drawn.
CLUSTER = ["--nodes=2", "--devices=4"]
LEFT, TOP, ROW, BAR, SCALE = 92, 66, 22, 16, 176  # Pixels; SCALE: attention's width.
ATTENTION, EXPERT, WAIT, COPY, END = "#9cc3e6", "#f2a33c", "#e7e7e7", "#7fbf7f", "#b03030"


def replay():
    """Each device's rows over the mean with expert parallelism, the largest with FSSDP, and how many replicas."""
    program = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/bin/hecate-replay"
    with tempfile.TemporaryDirectory() as folder:
        def run(*flags):
            return subprocess.run([program, *flags], cwd=folder, check=True, capture_output=True, text=True).stdout
        run("--synthesize=loads", f"--experts={EXPERTS}", "--layers=2", "--iterations=10", *CLUSTER)
        text = run("loads", *CLUSTER, "--policy=fssdp", "--print=" + ",".join(STEP.values()))
        run("loads", *CLUSTER, "--policy=fssdp", "--csv=steps")
        with open(pathlib.Path(folder, "steps")) as steps:
            chosen = next(row for row in csv.DictReader(steps) if STEP.items() <= row.items())
    lines = re.search(r"^loads .*\n((?:\d+: .*\n)+)", text, re.M).group(1).splitlines()
    expert = [sum(column) for column in zip(*(map(int, line.split(": ")[1].split()) for line in lines))]
    share = EXPERTS // DEVICES
    device = [sum(expert[d * share:(d + 1) * share]) for d in range(DEVICES)]
    mean = sum(device) / DEVICES
    return [rows / mean for rows in device], float(chosen["max_over_mean"]), int(chosen["replicas"])


class Picture:
    def __init__(self):
        self.lines = []

    def text(self, x, y, words, size=12, anchor="start", weight="normal", fill="#123"):
        self.lines.append(f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" '
                          f'font-weight="{weight}" fill="{fill}">{words}</text>')

    def bar(self, x, y, width, fill, height=BAR):
        self.lines.append(f'<rect x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{height}" rx="2" fill="{fill}"/>')

    def panel(self, top, title, experts, copies):
        """Returns where the panel ends."""
        self.text(LEFT, top - 10, title, 14, weight="bold")
        end = LEFT + SCALE * (1 + max(experts))
        for d, load in enumerate(experts):
            y = top + d * ROW
            self.text(LEFT - 8, y + 12, f"device {d}", anchor="end")
            self.bar(LEFT, y, SCALE - 2, ATTENTION)
            self.bar(LEFT + SCALE, y, load * SCALE - 2, EXPERT)
            if load < max(experts):
                self.bar(LEFT + SCALE * (1 + load), y, end - LEFT - SCALE * (1 + load) - 2, WAIT)
        bottom = top + len(experts) * ROW
        if copies:
            self.text(LEFT - 8, bottom + 12, "network", anchor="end")
            self.bar(LEFT, bottom, SCALE - 2, COPY)
            bottom += ROW
        self.bar(end, top - 4, 2, END, bottom - top)
        self.text(end + 8, top + 4 * ROW, f"{1 + max(experts):.2f}", 14, weight="bold", fill=END)
        return bottom

    def legend(self, y):
        x = LEFT
        for fill, words in ((ATTENTION, "attention"), (EXPERT, "experts"), (WAIT, "waiting"),
                            (COPY, "parameters of replicas"), (END, "end of the layer")):
            self.bar(x, y, 14, fill, 12)
            self.text(x + 20, y + 11, words)
            x += 46 + 6.5 * len(words)


def main():
    experts, largest, replicas = replay()
    picture = Picture()
    picture.text(LEFT, 24, "One layer, forward, on 8 devices with 32 experts. Time in units of attention.", fill="#567")
    below = picture.panel(TOP, "Expert parallelism: every device waits for the one with the popular expert", experts, False)
    below = picture.panel(below + 50, f"FSSDP, the same tokens: {replicas} replicas arrive while attention computes",
                          [largest] * DEVICES, True)
    picture.legend(below + 20)
    width, height = LEFT + SCALE * (1 + max(experts)) + 64, below + 48
    name = f"One layer of a step: {1 + max(experts):.2f} with expert parallelism, {1 + largest:.2f} with FSSDP"
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
            f'viewBox="0 0 {width:.0f} {height}" font-family="sans-serif">\n<title>{name}</title>\n'
            '<rect width="100%" height="100%" fill="#fff"/>')
    (ROOT / "docs/step.svg").write_text("\n".join([head, *picture.lines, "</svg>"]) + "\n")
    print(name)


main()
