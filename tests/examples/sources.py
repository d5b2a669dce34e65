"""sources.py MODEL TEXT: each source of validation data has a loss of its own, that of an evaluation on it alone.
Environment: HECATEC."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FLAGS = ("-D", "T=16", "-D", "L=1", "-D", "D=32", "-D", "F=32", "--set", "train.precision=fp64", "--set", "train.tokens=64",
         "--set", "parallel.microbatch=4")


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def near(a, b):
    if not abs(a - b) < 1e-12:
        sys.exit(f"{a} is not {b}")


def evaluate(*flags):
    return json.loads(run("./m", "eval", "--load", "m.safetensors", "--json", *flags))


def main(model, text):
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        pathlib.Path("a.txt").write_bytes(text[:6000])
        pathlib.Path("b.txt").write_bytes(bytes(byte ^ 1 for byte in text[6000:9000]))
        run(os.environ["HECATEC"], model, *FLAGS, "-o", "m")
        shown = run("./m", "train", "--data", "a.txt=3", "--data", "b.txt=1", "--steps", 8, "--save", "m.safetensors",
                    "--set", "train.eval_every=4", "--set", "train.eval_steps=2", "--log", "log")
        lines = [json.loads(line) for line in pathlib.Path("log").read_text().splitlines()]
        evaluated = [line for line in lines if "val_loss" in line]
        assert len(evaluated) == 2 and set(evaluated[0]["val_sources"]) == {"a.txt", "b.txt"}, evaluated
        assert sum(lines[-1]["sources"].values()) == 8 * 64, lines[-1]["sources"]
        last = evaluated[-1]
        # Eight sequences, of which six are of the first source.
        near(last["val_loss"], 0.75 * last["val_sources"]["a.txt"] + 0.25 * last["val_sources"]["b.txt"])
        assert f"| a.txt {last['val_sources']['a.txt']:.4f} | b.txt {last['val_sources']['b.txt']:.4f}" in shown, shown
        near(last["val_sources"]["a.txt"], evaluate("--data", "a.txt", "--sequences", 6)["loss"])
        near(last["val_sources"]["b.txt"], evaluate("--data", "b.txt", "--sequences", 2)["loss"])
        alone = [evaluate("--val", name) for name in ("a.txt", "b.txt")]
        both = evaluate("--val", "a.txt", "--val", "b.txt")
        for name, one in zip(("a.txt", "b.txt"), alone):
            near(both["sources"][name], one["loss"])
        assert both["tokens"] == alone[0]["tokens"] + alone[1]["tokens"] and "sources" not in alone[0]
        near(both["loss"], sum(one["loss"] * one["tokens"] for one in alone) / both["tokens"])
        assert abs(alone[0]["loss"] - alone[1]["loss"]) > 0.01  # So that none is taken for the other.


main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).read_bytes())
