"""plan_terms.py EXAMPLES WORK: a simulation runs the plan that it is given: another value of each of its keys is another simulation,
for one policy at least."""
import json
import pathlib
import subprocess
import sys

EXAMPLES, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
WORK.mkdir(parents=True, exist_ok=True)
HECATEC = ["hecatec", EXAMPLES / "gpt-moe-s.moe", f"--cluster={EXAMPLES / 'clusters/paper-a.moe'}"]

# Policy, its terms besides its own plan, other values of its keys, and tokens of a step, in Ki.
CASES = [
    ("fssdp", {"slots": 8}, {"window_bytes": 20000000, "row_cross": 10**10, "chunk_send": 1, "chunk_near": 1, "grad_send": 1,
                   "overlap": 1, "slots": 1, "window": 1, "reshard_every": 1, "even": True, "calibrate": "never", "policy": "hecate"}, 256),
    ("fssdp", {"overlap": 64, "gather_hidden": 0, "reduce_hidden": 0, "gather_hidden_first": 0, "reduce_hidden_first": 0,
               "row_cross": 10**7},
     {"import_discount": 100, "gather_hidden": 10**6, "reduce_hidden": 10**6, "gather_hidden_first": 10**6, "reduce_hidden_first": 10**6}, 256),
    ("fastermoe", {}, {"row_compute": 10**9, "row_send": 10**9}, 256),
    ("fssdp", {}, {"known": 1}, 256),
    ("fssdp", {"slots": 1, "rematerialize": True}, {"rematerialize": False}, 256),
    ("fssdp", {"lifetime": "step", "iterations": 2, "overlap": 64, "slots": 8, "gather_hidden": 0, "reduce_hidden": 0,
               "gather_hidden_first": 0, "reduce_hidden_first": 0, "row_cross": 10**7},
     {"lifetime": "iteration", "iterations": 10**6}, 512),
]
OTHERS = {"chunk_bytes"}  # The program's own: a plan that has another is refused.


def compile(*options):
    done = subprocess.run([*HECATEC, *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{options}: {done.stderr}")
    return done.stdout


def simulate(policy, tokens, plan):
    file = WORK / "plan.json"
    file.write_text(json.dumps(plan))
    return json.loads(compile("--set", f"parallel.experts={policy}", "--set", f"train.tokens={tokens}Ki", f"--plan={file}", "--simulate=4", "--json", "-o", "-"))["steps"]


seen = set()
for policy, given, others, tokens in CASES:
    compile("--set", f"parallel.experts={policy}", "-fsyntax-only", f"--emit-plan={WORK / 'own.json'}")
    plan = json.loads((WORK / "own.json").read_text())
    plan["movement"].update(given)
    first = simulate(policy, tokens, plan)
    for key, value in others.items():
        seen.add(key)
        if simulate(policy, tokens, {**plan, "movement": {**plan["movement"], key: value}}) == first:
            sys.exit(f"{policy} is simulated with {key} = {value} as with {plan['movement'][key]}")
missing = set(plan["movement"]) - seen - OTHERS
if missing:
    sys.exit(f"no other number of {missing}")
