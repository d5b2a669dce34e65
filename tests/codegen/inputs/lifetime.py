"""lifetime.py EXAMPLES WORK: simulations of replicas that live for a step. With one iteration a step they are those of
replicas that live for an iteration. With four the same plan moves fewer bytes, and a step is shorter."""
import json
import pathlib
import subprocess
import sys

EXAMPLES, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
WORK.mkdir(parents=True, exist_ok=True)
LAYERS = 12


def simulate(tokens, lifetime, *more):
    command = ["hecatec", EXAMPLES / "gpt-moe-s.moe", f"--cluster={EXAMPLES / 'clusters/paper-b.moe'}", "--target=cuda",
               "--simulate=3", "--json", "-o", "-"]
    settings = {"train.tokens": f"{tokens}Ki", "parallel.microbatch": 4, "parallel.placement.lifetime": lifetime,
                "parallel.placement.overlap": 16, "parallel.placement.memory": 4, "parallel.placement.calibrate": "true",
                "parallel.placement.rematerialize": "false"}
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run([*command, *more], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def check(fact, what):
    if not fact:
        sys.exit(f"not so: {what}")


def received(result):
    return sum(result["carried"]["node_in"])


once, as_once = simulate(256, "iteration"), simulate(256, "step")
check(once["steps"] == as_once["steps"], "a step of one iteration takes as long with either")
each, step = simulate(1024, "iteration"), simulate(1024, "step")
check(step["step_us"] < 0.95 * each["step_us"], f"{step['step_us']} us are fewer than {each['step_us']}")
check(received(step) < 0.7 * received(each), f"{received(step)} bytes enter nodes, fewer than {received(each)}")
check(step["steps"][-1]["spent_us"]["planning"] * 4 <= 1.01 * each["steps"][-1]["spent_us"]["planning"], "one plan a step")
check(step["steps"][-1]["imbalance"] < 1.02, "quotas follow the counts of each iteration")
grads = 4 * 4 * 2 * 768 * 1536  # The slots of a layer: 4 chunks of two matrices.
more = step["memory"]["replicas"] - each["memory"]["replicas"]
check(more == (LAYERS - 2) * grads, f"{more} bytes more, of gradients in {LAYERS - 2} layers")
