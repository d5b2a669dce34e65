"""--autotune where the clock ends it: it ends in time, tells meanwhile how far it is, and says what ended it. A
preloaded clock is fast, so that the machine seems slow.  hurried.py HECATEC CC SOURCE MODEL"""
import os
import re
import subprocess
import sys
import time

hecatec, cc, source, model = sys.argv[1:]
subprocess.run([cc, "-shared", "-fPIC", "-O1", "-o", "hurried.so", source], check=True)
for times, chosen in ((6, True), (600, False)):
    environment = dict(os.environ, LD_PRELOAD=os.path.abspath("hurried.so"), HURRY=str(times),
                       ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")  # Sanitizers would come first.
    began = time.monotonic()
    done = subprocess.run([hecatec, "--autotune=5", "-fsyntax-only", model], env=environment, capture_output=True, text=True,
                          check=False, timeout=100)
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    said = [float(at) for at in re.findall(r"^hecatec: --autotune: candidate \d+, (\d+) of at most 60 s", done.stderr, re.MULTILINE)]
    assert not chosen or (len(said) > 2 and said == sorted(said) and said[-1] <= 61), done.stderr
    slow = 5 if "ASAN_OPTIONS" in os.environ else 1
    assert took < 60 / times + 8 * slow, f"{took:.1f} s of the {60 / times:.1f} that the clock leaves\n{done.stderr}"
    ended = "ended by the clock: another run may choose otherwise" if chosen else (
        "warning: --autotune: no step was simulated within 60 s; nothing is chosen")
    assert done.stderr.count(ended) == 1, done.stderr
print("the clock holds")
