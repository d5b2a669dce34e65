"""--explain=plan gives other choices the times of compilations with them.  gains.py HECATEC MODEL

Reports tell what a step takes by single messages, and how much longer another choice takes by sums of them. On many devices simulations have
sums alone, so there both are the same; short ones leave out other iterations, which have other loads."""
import re
import subprocess
import sys

hecatec, model = sys.argv[1:]
UNITS = {"us": 1, "ms": 1e3, "s": 1e6}
MANY = ("cluster.nodes=16", "cluster.devices=8", "train.tokens=auto", "parallel.placement.forecast=window(1)")


def explain(*settings):
    flags = [word for s in (*MANY, *settings) for word in ("--set", s)]
    return subprocess.run([hecatec, "--explain=plan", *flags, model], capture_output=True, text=True, check=True).stdout


def step(text):
    number, unit = re.search(r"^A step takes ([\d.]+) (\w+):", text, re.M).groups()
    return float(number) * UNITS[unit]


text = explain()
t, m = re.search(r"  t = (\d+) .*\n.*?  m = (\d+) ", text).groups()
gains = dict(re.findall(r"^  (?:t = \d+|m = \d+|kept|re-materialized|calibrated|as forecast) +"
                        r"(t = \d+|m = \d+|re-materialized|kept|as forecast|calibrated) +([-+][\d.]+) %", text, re.M))
assert len(gains) == 4, text
for other, gain in gains.items():
    choices = {"overlap": t, "memory": m}
    if other[0] in "tm":
        choices["overlap" if other[0] == "t" else "memory"] = other[4:]
    choices["rematerialize"] = str((other in ("re-materialized", "kept")) != ("kept" in gains)).lower()
    choices["calibrate"] = str((other in ("calibrated", "as forecast")) != ("as forecast" in gains)).lower()
    longer = step(explain(*(f"parallel.placement.{k}={v}" for k, v in choices.items()))) / step(text)
    assert abs(longer - 1 - float(gain) / 100) < 0.015, (other, gain, longer, text)
