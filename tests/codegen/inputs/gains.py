"""What --explain=plan says that choices give is what compilations with the other choice say.  gains.py HECATEC MODEL"""
import re
import subprocess
import sys

hecatec, model = sys.argv[1:]
UNITS = {"us": 1, "ms": 1e3, "s": 1e6}


def explain(*settings):
    flags = [word for s in settings for word in ("--set", s)]
    return subprocess.run([hecatec, "--explain=plan", *flags, model], capture_output=True, text=True, check=True).stdout


def iteration(text):
    number, unit = re.search(r"whole iteration, all layers +([\d.]+) (\w+)", text).groups()
    return float(number) * UNITS[unit]


text = explain()
t, m = re.search(r"chosen +t = (\d+) +m = (\d+)", text).groups()
gains = dict(re.findall(r"^  (?:t = \d+|m = \d+|kept|re-materialized|calibrated|as forecast) +"
                        r"(t = \d+|m = \d+|re-materialized|kept|as forecast|calibrated) +([-+][\d.]+) %", text, re.M))
assert len(gains) == 4, text
for other, gain in gains.items():
    choices = {"overlap": t, "memory": m}
    if other[0] in "tm":
        choices["overlap" if other[0] == "t" else "memory"] = other[4:]
    choices["rematerialize"] = str((other in ("re-materialized", "kept")) != ("kept" in gains)).lower()
    choices["calibrate"] = str((other in ("calibrated", "as forecast")) != ("as forecast" in gains)).lower()
    longer = iteration(explain(*(f"parallel.placement.{k}={v}" for k, v in choices.items()))) / iteration(text)
    assert abs(longer - 1 - float(gain) / 100) < 0.006, (other, gain, longer, text)
