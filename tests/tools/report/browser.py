"""browser.py HECATE-REPORT: the page as Chromium draws it: all its parts, no fault of its script; of one run, and of two."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import made

PARTS = ("Balance of the ranks", "Learning", "Router's choices", "Holders of experts", "Rows of each rank", "Balance of each layer",
         "Where a step's time goes", "Communication that nothing hides", "Stragglers", "Memory of the ranks", "The plan in words",
         "Speed and memory")


def drawn(browser, path):
    done = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + os.path.abspath("profile"),
                           "--window-size=1000,3000", "--virtual-time-budget=2000", "--enable-logging=stderr", "--dump-dom", "file://" + os.path.abspath(path)],
                          capture_output=True, text=True, check=False, timeout=100)
    faults = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    if faults:
        sys.exit(f"the script fails: {faults}")
    return done.stdout.split('<script id="data"')[0]


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("there is no Chromium (packages.txt)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        with open("log", "w", encoding="utf-8") as file:
            file.write(made.log(100, 4))
        with open("bare", "w", encoding="utf-8") as file:
            file.write("".join(f'{{"step":{step},"loss":{9 - step}}}\n' for step in range(1, 5)))
        for logs, parts, rects in ((["log"], PARTS, 100), (["log", "log"], PARTS, 200), (["bare"], ["Learning"], 0)):
            subprocess.run([sys.argv[1], *logs, "-o", "page.html"], check=True)
            page = drawn(browser, "page.html")
            missing = [part for part in parts if not re.search(rf"<section>(?:(?!</section>).)*<h2>{part}</h2>", page)]
            if missing or page.count("<rect") < rects or "not as it should be" in page or "NaN" in page:
                sys.exit(f"{logs}: {missing} are missing, {page.count('<rect')} rectangles")
            if len(parts) > 1 and "expert 5 (" not in page:
                sys.exit(f"{logs}: the plan is not told")


if __name__ == "__main__":
    main()
