"""estimates.py EXAMPLES: a step takes as long in every report: --explain=plan, --simulate, its JSON and --autotune say the same of the
same model, policy and cluster, and a plan that the search has written is simulated as the search's own."""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(sys.argv[1])
MODELS = ("gpt-moe-s", "gpt-moe-l", "bert-moe", "bert-moe-deep", "mixtral-8x7b", "olmoe-1b-7b", "qwen3-30b-a3b", "glm45-air", "gpt-oss-20b",
          "deepseek-v2-lite", "deepseek-v3-like", "llama4-scout", "bench-small", "bench-medium", "tiny")
CASES = (("fssdp", "paper-a"), ("hecate", "paper-b"), ("ultraep", "h100"))
SMALL = ("cluster.nodes=2", "cluster.devices=2", "parallel.microbatch=1", "train.tokens=auto", "cluster.device.memory=100TB")
STEP = re.compile(r"^A step takes ([^:]*): ([\d.]+ [kMG]?tokens/s)", re.M)
TUNED = ("gpt-moe-s", "tiny")


def run(model, policy, cluster, *options):
    command = ["hecatec", f"--cluster={EXAMPLES / 'clusters' / cluster}.moe"]
    for key in (*SMALL, f"parallel.experts={policy}"):
        command += ["--set", key]
    return subprocess.run([*command, *options, EXAMPLES / f"{model}.moe"], capture_output=True, text=True)


def said(done):
    found = STEP.search(done.stdout)
    if done.returncode or not found:
        sys.exit(f"{done.args} says no step:\n{done.stdout}{done.stderr}")
    return found.groups()


def text(us):
    return f"{us / 1e6:.3g} s" if us >= 1e6 else f"{us / 1e3:.3g} ms" if us >= 1e4 else f"{us:.0f} us"


pairs = list(itertools.product(MODELS, CASES))
assert len(pairs) == 45
for model, case in pairs:
    step = said(run(model, *case, "--explain=plan"))
    simulated = said(run(model, *case, "--simulate"))
    us = json.loads(run(model, *case, "--simulate", "--json").stdout)["step_us"]
    if not step[0] == simulated[0] == text(us) or step != simulated:
        sys.exit(f"{model}, {case}: --explain says {step}, --simulate {simulated}, and in JSON {us}")
for model in TUNED:
    with tempfile.TemporaryDirectory() as folder:
        plan = f"{folder}/plan.json"
        run(model, *CASES[0], "-S", "-o", "/dev/null", f"--emit-plan={plan}")
        again = said(run(model, *CASES[0], "--simulate", f"--plan={plan}"))
    tuned = run(model, *CASES[0], "--autotune=1", "-S", "-o", "/dev/null").stderr
    own = re.search(r"a step takes (.*?) as the model says", tuned)
    step = said(run(model, *CASES[0], "--explain=plan"))
    if not own or own[1] != step[0] or again != step:
        sys.exit(f"{model}: --explain says {step}, a simulation of its plan {again}, --autotune {own and own[1]}:\n{tuned}")
