"""browser.py HECATE-REPORT: the page as Chromium draws it, of one run, of several, and of many ranks.

All its parts are there, and its script has no fault. A script that is added to a copy acts as a reader does,
with mouse, finger and keys, and leaves its results in the page.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import made

CURVES = ("Learning", "Speed and memory", "Balance of the ranks", "Routers")
PARTS = CURVES + ("Each layer's router over the steps", "Load of experts over the steps", "Router's choices", "Holders of experts", "Rows of each rank",
                  "Balance of each layer", "Where a step's time goes", "Communication that nothing hides", "Stragglers", "Memory of the ranks", "The plan in words")
BIG, HIGHEST = (64, 128, 48), 5000  # Ranks, experts and layers; pixels of a page of 1,280.

# Functions of the scripts that act.
LOOK = """
const pixels = (canvas) => { const d = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data,
  seen = new Set();
  for (let i = 0; i < d.length; i += 4) if (d[i + 3]) seen.add(d[i] + " " + d[i + 1] + " " + d[i + 2]);
  return seen.size; };
const titled = (name) => [...document.querySelectorAll("h3")].find((h) => h.textContent === name).closest(".side");
const pointer = (node, kind, x, y, type) => { const box = node.getBoundingClientRect();
  node.dispatchEvent(new PointerEvent("pointer" + kind,
  { clientX: box.left + x, clientY: box.top + y, button: 0, pointerId: 1, pointerType: type || "mouse",
  bubbles: true })); };
Element.prototype.setPointerCapture = () => {}; // Of pointers that are there.
const press = (node, key) => node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const span = () => document.querySelector(".zoom span").textContent;
const curve = (name) => titled(name).querySelector("path").getAttribute("d");
"""
ONE = """
const loss = titled("loss").querySelector(".chart"), out = {};
out.height = document.documentElement.scrollHeight;
out.wide = document.documentElement.scrollWidth;
out.canvases = [...document.querySelectorAll("canvas")].map(pixels);
const whole = curve("loss");
pointer(loss, "move", 200, 50);
out.read = titled("loss").querySelector(".told").textContent;
pointer(loss, "down", 100, 50, "touch"); pointer(loss, "move", 180, 50, "touch"); pointer(loss, "up", 180, 50,
  "touch");
out.zoomed = span();
out.other = titled("gradient norm").querySelectorAll("svg .grid").length;
out.changed = curve("loss") !== whole;
press(loss, "Escape");
out.reset = span();
out.same = curve("loss") === whole;
press(loss, "+");
out.key = span();
document.querySelector(".zoom button").click();
const log = titled("loss").querySelector("button");
log.click();
out.log = curve("loss") !== whole && log.getAttribute("aria-pressed") === "true";
log.click();
[...document.querySelectorAll(".zoom button")].at(-1).click();
out.logSteps = curve("loss") !== whole;
[...document.querySelectorAll(".zoom button")].at(-1).click();
const plan = () => [...document.querySelectorAll("h2")].find((h) => h.textContent === "The plan in words").parentNode.textContent;
const matrix = (name) => [...document.querySelectorAll("h2")].find((h) => h.textContent === name).parentNode.querySelector("canvas");
const before = plan(), cells = matrix("Router's choices"), box = cells.getBoundingClientRect();
cells.dispatchEvent(new MouseEvent("click", { clientX: box.left + 60, clientY: box.top + box.height - 26,
  bubbles: true }));
out.plan = [before.slice(17, 27), plan().slice(17, 27)];
press(matrix("Holders of experts"), "ArrowDown");
out.cell = matrix("Holders of experts").nextSibling.textContent;
const entropy = [...document.querySelectorAll(".choice button")][1],
  map = () => matrix("Each layer's router over the steps").toDataURL(), load = map();
entropy.click();
out.metric = map() !== load;
const slider = document.querySelector("input[type=range]");
slider.value = 0; slider.dispatchEvent(new Event("input"));
out.step = document.querySelector("output").textContent;
"""
SEVERAL = """
const out = {};
out.curves = titled("loss").querySelectorAll("path").length;
document.querySelectorAll("button.run")[1].click();
out.hidden = titled("loss").querySelectorAll("path").length;
document.querySelectorAll("button.run")[0].click(); document.querySelectorAll("button.run")[2].click();
out.left = titled("loss").querySelectorAll("path").length; // The last one stays.
out.rows = Object.fromEntries([...document.querySelector("table.settings").rows].map((row) => [row.cells[0].textContent, [...row.cells].slice(1).map((cell) => cell.textContent)]));
out.summary = [...document.querySelector("table.summary").rows].map((row) => row.cells.length);
"""


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def drawn(browser, path, does="const out = {};", width=1280):
    """The page, and the results of a script."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open("acted.html", "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", f"<script>{{{LOOK}{does}\nconst found = document.createElement('pre'); found.id = 'found';"
                                "found.textContent = JSON.stringify(out); document.body.append(found);}</script></body>"))
    done = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + os.path.abspath("profile"),
                           f"--window-size={width},1000", "--virtual-time-budget=2000", "--enable-logging=stderr", "--dump-dom",
                           "file://" + os.path.abspath("acted.html")], capture_output=True, text=True, check=False, timeout=100)
    faults = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    check(not faults, f"no fault of the script: {faults}")
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    check(found, "the script ran to its end")
    return done.stdout.split('<script id="data"')[0], json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def page_of(browser, parts, *logs, **how):
    subprocess.run([sys.argv[1], *logs, "-o", "page.html"], check=True)
    page, found = drawn(browser, "page.html", **how)
    missing = [part for part in parts if not re.search(rf"<section>(?:(?!</section>).)*<h2>{part}</h2>", page)]
    check(not missing and "has a fault in this step" not in page and "NaN" not in page and "undefined" not in page, f"{logs}: {missing} are missing, or a part failed")
    return page, found


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def one(browser):
    write("log", made.log(100, 4))
    page, found = page_of(browser, PARTS, "log", does=ONE)
    check("expert 5 (" in page and "tokens a second" in page and "MFU" in page, "the plan, speed and MFU are told")
    check(len(found["canvases"]) == 4 and all(colours > 2 for colours in found["canvases"]), f"tables have colours: {found}")
    check(re.fullmatch(r"step \d+: loss .*|step \d+: training .*", found["read"]), f"a pointer reads a step: {found['read']}")
    check(re.fullmatch(r"steps \d+ to \d+", found["zoomed"]) and found["changed"] and found["other"] > 1, f"a finger's drag zooms: {found}")
    check(found["reset"].startswith("Drag") and found["same"] and re.fullmatch(r"steps \d+ to \d+", found["key"]), f"keys zoom, and show all: {found}")
    check(found["log"] and found["logSteps"], f"logarithmic scales: {found}")
    check(found["plan"] == ["Layer 0: e", "Layer 2: e"], f"a click chooses a layer: {found['plan']}")
    check(re.fullmatch(r"rank 0 .* expert 0, .* × the mean", found["cell"]) and found["metric"] and found["step"] == "step 4", f"cells, numbers of routers, steps: {found}")


def several(browser):
    for n, lr in enumerate(("0.001", "0.01", "0.1")):
        write(f"run{n}", made.log(60, 4, run={"settings": {"train.optimizer.lr": lr, "train.seed": "1", "log.jsonl": f"run{n}"}}))
    page, found = page_of(browser, PARTS, "run0", "run1", "run2", does=SEVERAL)
    check("<h2>Runs side by side</h2>" in page and found["rows"] == {"train.optimizer.lr": ["0.001", "0.01", "0.1"]}, f"settings that differ: {found['rows']}")
    check((found["curves"], found["hidden"], found["left"]) == (3, 2, 1) and set(found["summary"]) == {4}, f"runs are shown and hidden: {found}")
    page_of(browser, PARTS, *["run0"] * 8)


def big(browser):
    write("big", made.log(60, 10, BIG))
    _, found = page_of(browser, PARTS, "big", does=ONE)
    check(found["height"] < HIGHEST and found["wide"] <= 1280, f"a page of 64 ranks and 48 layers is {found['height']} pixels high, {found['wide']} wide")
    _, found = page_of(browser, PARTS, "big", does="const out = { wide: document.documentElement.scrollWidth - innerWidth };", width=500)
    check(found["wide"] <= 0, f"nothing is cut off on a narrow screen: {found['wide']}")


def bare(browser):
    write("bare", "".join(f'{{"step":{step},"loss":{9 - step}}}\n' for step in range(1, 5)))
    page_of(browser, ["Learning", "Layers"], "bare")
    write("without", made.log(40, 0))
    page_of(browser, CURVES + ("Each layer's router over the steps",), "without")
    lines = [json.loads(line) for line in made.log(40, 5).splitlines()]
    for line in lines:  # As logs were before they had numbers of routers: these follow from the loads.
        line.pop("routers", None)
        line.pop("router")
    write("old", "".join(json.dumps(line) + "\n" for line in lines))
    page_of(browser, ("Each layer's router over the steps",), "old")
    for line in lines:  # And as hostile ones are.
        line["routers"] = {"sparse": {"load": "x", "entropy": [[]]}, "other": 3}
    write("odd", "".join(json.dumps(line) + "\n" for line in lines))
    page_of(browser, ("Learning",), "odd")


def collapsed(browser):
    lines = [json.loads(line) for line in made.log(40, 5).splitlines()]
    for line in lines:
        if "routers" in line:
            line["routers"]["sparse"]["load"][1] = 3.9  # At most 4: 2 of 8 experts are chosen.
    write("collapsed", "".join(json.dumps(line) + "\n" for line in lines))
    page, _ = page_of(browser, ("Learning",), "collapsed")
    check("the router of sparse has collapsed in layer 1: " in page, "a router that has collapsed is told")


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("there is no Chromium (packages.txt)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for test in one, several, big, bare, collapsed:
            test(browser)


if __name__ == "__main__":
    main()
