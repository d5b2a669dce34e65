"""page.py HECATE-REPORT: pages of logs, whole ones and others, without a browser.

The page has the data of the log and needs nothing else. A long log is thinned, keeping the least and the largest loss. Logs that are cut off
or spoilt are repaired, and the page says so; other files are refused by name. Nothing that is written into a log
crashes. """
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import made

REPORT = sys.argv[1]


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def report(*arguments, code=0):
    done = subprocess.run([REPORT, *arguments], capture_output=True, text=True, check=False, timeout=60)
    check(done.returncode == code, f"{arguments} ends with {code}, not {done.returncode}: {done.stderr[:2000]}")
    return done.stderr


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def page(*logs):
    """The data of the page of some logs, and the messages about them."""
    told = report(*logs, "-o", "page.html")
    with open("page.html", encoding="utf-8") as file:
        text = file.read()
    check(text.count("</script>") == 2 and "<b>" not in text, "what a log says cannot end the element that it is in")
    check(not re.search(r"""(src|href)=["']|url\((?!#)|@import""", text), "a page needs no other file")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1)), told


def whole():
    write("log", made.log(100, 4))
    (run,), told = page("log")
    check(run["rows"] == 100 and len(run["steps"]["loss"]) == 100 and len(run["snapshots"]) == 25 and told == "", "all is there")
    check(run["slowest"] == [25, 25, 25, 25] and run["repairs"] == [], "all is there")
    check([line["step"] for line in run["routers"]] == list(range(10, 101, 10)), "numbers of each layer's router")
    routers = run["routers"][3]["of"]["sparse"]
    check({name: len(numbers) for name, numbers in routers.items()} == {"load": 3, "entropy": 3, "dead": 3}, "a number of each layer")
    check(len(run["steps"]["router_load"]) == len(run["steps"]["router_entropy"]) == len(run["steps"]["router_dead"]) == 100, "and of the worst")
    for logs in 2, 3, 8:
        runs, _ = page(*["log"] * logs)
        check(len(runs) == logs, f"{logs} runs")
    check("at most eight logs" in report(*["log"] * 9, "-o", "x", code=2), "nine are too many")
    os.rename("log", b"log\xff")
    (run,), _ = page(b"log\xff")
    check(run["rows"] == 100 and run["path"] == "log?", "a name that is not UTF-8")


def losses():
    lines = [json.loads(line) for line in made.log(20, 0).splitlines()]
    for line in lines:
        line["losses"] = {"mtp": 1 + 1 / line["step"], "</script><b>": None if line["step"] % 2 else 2.0}
    lines[3]["losses"] = "none"
    write("log", "".join(json.dumps(line) + "\n" for line in lines))
    (run,), _ = page("log")
    mtp, other = run["steps"]["losses"].values()
    check(mtp[0] == 2 and mtp[3] is None and abs(mtp[19] - 1.05) < 1e-6 and other[:2] == [None, 2] and len(other) == 20, "losses by name")
    for line in lines:
        line["losses"] = {f"l{i}": i for i in range(12)}
    write("log", "".join(json.dumps(line) + "\n" for line in lines))
    (run,), _ = page("log")
    check(list(run["steps"]["losses"]) == [f"l{i}" for i in range(8)], "more than a program has are left out")


def long():
    write("log", "".join(made.line(step, False) + "\n" for step in range(1, 40001)).replace('"step": 777,', '"step": 777, "loss": 99.0, "x": 1,', 1)
          .replace('"x": 1, "loss"', '"x": 1, "y"'))
    (run,), _ = page("log")
    check(run["rows"] == 40000 and len(run["steps"]["step"]) < 2500, "a long log is thinned")
    check(max(run["steps"]["loss"]) == 99 and run["steps"]["step"][-1] == 40000, "not the extremes, nor the last step")
    check(os.path.getsize("page.html") < 2 << 20, "the page stays small")
    write("log", made.log(1000, 1))
    (run,), _ = page("log")
    steps = [shot["step"] for shot in run["snapshots"]]
    check(40 < len(steps) <= 96 and steps == sorted(steps) and steps[-1] == 1000, f"snapshots are spread: {steps}")
    write("log", made.log(70, 1, (64, 128, 48)))
    (run,), _ = page("log")
    steps = [shot["step"] for shot in run["snapshots"]]
    check(12 <= len(steps) <= 60 and steps[-1] == 70, f"of many ranks and layers there are fewer: {steps}")
    check(os.path.getsize("page.html") < 8 << 20, "the page stays small")
    write("log", "".join(made.line(step, False, every_line=1) + "\n" for step in range(1, 3001)))
    (run,), _ = page("log")
    steps = [line["step"] for line in run["routers"]]
    check(90 < len(steps) <= 200 and steps == sorted(steps) and steps[-1] == 3000, f"routers are spread: {steps}")


def spoilt():
    log = made.log(20, 4)
    write("log", log[:-400])
    (run,), told = page("log")
    check(run["rows"] == 19 and "cut off" in run["repairs"][0] and "cut off" in told, "a log that is cut off")
    lines = log.splitlines(keepends=True)
    write("log", "".join(lines[:5] + ["rubbish\n", '{"step":"x"}\n', "\0\n"] + lines[5:]))
    (run,), told = page("log")
    check(run["rows"] == 20 and "3 lines" in run["repairs"][0] and "line 6" in told, "spoilt lines")
    write("log", "".join(lines[:12] + lines[8:]))
    (run,), _ = page("log")
    check(run["rows"] == 20 and run["steps"]["step"] == list(range(1, 21)) and "4 steps" in run["repairs"][0], "steps told twice")


def refused():
    write("text", "no log\n")
    write("log", made.log(3, 1))
    check("'text' is no log of a run" in report("text", "-o", "x.html", code=1), "what is no log")
    check("cannot read 'none'" in report("none", "-o", "x.html", code=1), "what is not there")
    check(not os.path.exists("x.html"), "nothing is written")
    check("log" in report("log", "-o", "log", code=2), "a page is not written over its log")
    check("give -o" in report("log", code=2) and "which log" in report("-o", "x", code=2), "what is missing")
    check("cannot write" in report("log", "-o", "/dev/null/x", code=1), "where nothing can be written")


def watched():
    write("log", made.log(6, 2))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([REPORT, "log", f"--watch={port}"], stdout=subprocess.PIPE, text=True) as run:
        check(f"127.0.0.1:{port}/" in run.stdout.readline(), "where the page is")
        for steps in 6, 8:
            write("log", made.log(steps, 2))
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as reply:
                page_now = reply.read().decode()
            check(f'"rows":{steps}' in page_now and "refresh" in page_now, f"the page is of {steps} steps")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/etc/passwd", timeout=20)
            check(False, "there is nothing but the page")
        except urllib.error.HTTPError as error:
            check(error.code == 404, "there is nothing but the page")
        run.terminate()
    check("a port is" in report("log", "--watch=x", code=2) and "one" in report("log", "-o", "x", "--watch", code=2), "options")


def watcher():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run = subprocess.Popen([REPORT, "log", f"--watch={port}"], stdout=subprocess.PIPE, text=True)
    run.stdout.readline()
    return run, f"http://127.0.0.1:{port}/"


def data_at(url):
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.loads(re.search(r'application/json">(.*?)</script>', reply.read().decode(), re.DOTALL).group(1))


def grown():
    """A log is read on where it has grown, and anew where it was cut or replaced: the page is always that of the whole log."""
    lines = made.log(300, 2).splitlines(keepends=True)
    states = [
        lines[:40], lines[:41], lines[:80] + [lines[80][:30]], lines[:80] + [lines[80][:300]], lines[:120], lines[:120] + ["rubbish\n"],
        lines[:120] + ["rubbish\n"] + lines[120:140], lines[:150] + [lines[150][:-1]], lines[:151], lines[:152],
        lines[:152] + lines[100:120],  # Resumed from an older step, with fewer lines with layers since.
        lines[:152] + lines[100:120] + lines[120:200], lines[:30], lines[:10] + lines[20:300], lines[:300],
    ]
    run, url = watcher()
    with run:
        try:
            for number, state in enumerate(states):
                write("log.new" if number == 14 else "log", "".join(state))
                if number == 14:
                    os.replace("log.new", "log")
                shown = data_at(url)
                whole_page, _ = page("log")
                check(shown == whole_page, f"state {number}: the page is that of the whole log")
                check(data_at(url) == shown, "asked again, it is the same")
            os.unlink("log")
            try:
                urllib.request.urlopen(url, timeout=20)
                check(False, "without a log there is no page")
            except urllib.error.HTTPError as error:
                check(error.code == 503, "without a log there is no page")
            write("log", made.log(5, 1))
            check(data_at(url)[0]["rows"] == 5, "a log that is there again")
        finally:
            run.terminate()


def seconds_of(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def long_and_grown():
    """Updating the page of a long log costs the new lines, not the log."""
    write("log", "".join(made.line(step, step % 100 == 0) + "\n" for step in range(1, 40001)))
    run, url = watcher()
    with run:
        try:
            check(data_at(url)[0]["rows"] == 40000, "a long log")
            first = seconds_of(run)
            for step in range(40001, 40006):
                with open("log", "a", encoding="utf-8") as file:
                    file.write(made.line(step, False) + "\n")
                check(data_at(url)[0]["rows"] == step, "a step more")
            grown_by = (seconds_of(run) - first) / 5
            check(grown_by < first / 4, f"the first page takes {first:.2f} s, one of a step more {grown_by:.2f} s")
        finally:
            run.terminate()


def mutated():
    log, draw = made.log(12, 2), random.Random(1)
    for _ in range(60):
        text = list(log)
        for _ in range(draw.randint(1, 30)):
            at = draw.randrange(len(text))
            text[at:at + draw.randint(0, 3)] = draw.choice(['"', "0", "[", "]", "{", "}", ",", "null", "-1", "1e999", "\n", "x"])
        write("log", "".join(text))
        done = subprocess.run([REPORT, "log", "-o", "page.html"], capture_output=True, text=True, check=False, timeout=60)
        check(done.returncode in (0, 1) and "Sanitizer" not in done.stderr, f"a spoilt log ends with {done.returncode}: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for test in whole, losses, long, spoilt, refused, watched, grown, long_and_grown, mutated:
            test()


if __name__ == "__main__":
    main()
