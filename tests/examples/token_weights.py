"""token_weights.py MODEL TEXT: weights between 0 and 1 in training, evaluation and by blocks of logits, against runs that
must be alike: halves of 0 and 1 are bits, weights that are all the same are none. Environment: HECATEC."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

FLAGS = ("-D", "T=16", "-D", "L=1", "-D", "D=32", "-D", "F=32", "--set", "train.precision=fp64", "--set", "train.tokens=96",
         "--set", "parallel.microbatch=2", "--set", "train.steps=6")


def run(*command, code=0, wanted=""):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != code or wanted not in done.stdout + done.stderr:
        sys.exit(f"{command} ended with {done.returncode}, wanted {code} and '{wanted}':\n{done.stdout}{done.stderr}")
    return done.stdout


def weigh(weights, magic=b"hcwhalfs"):
    """None: there are none."""
    for name in ("text", "val"):
        beside = pathlib.Path(f"{name}.weights")
        beside.unlink(missing_ok=True)
        count = len(pathlib.Path(name).read_bytes())
        own = [weights(i) for i in range(count)] if weights else []
        bits = bytes(sum(int(own[i + k]) << k for k in range(8) if i + k < count) for i in range(0, count, 8)) if own and magic == b"hcweight" else b""
        if own:
            beside.write_bytes(magic + struct.pack("<q", count) + (bits or struct.pack(f"<{count}e", *own)))


def losses(program="./m"):
    """Losses of steps and norms of their gradients, and the validation loss: of training, and of eval."""
    pathlib.Path("log").unlink(missing_ok=True)
    run(program, "train", "--data", "text", "--val", "val", "--log", "log", "--save", "st")
    lines = [json.loads(line) for line in pathlib.Path("log").read_text().splitlines()]
    found = json.loads(run(program, "eval", "--val", "val", "--load", "st", "--json"))
    return [x for line in lines if "loss" in line for x in (line["loss"], line["grad_norm"])], found["loss"], found["tokens"]


def near(a, b):
    return all(abs(x - y) <= 1e-12 * abs(y) for x, y in zip([*a[0], a[1]], [*b[0], b[1]], strict=True))


def main():
    model, text = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("text").write_bytes(text[:5000])
        pathlib.Path("val").write_bytes(text[5000:5500])
        run(os.environ["HECATEC"], model, *FLAGS, "-o", "m")
        run(os.environ["HECATEC"], model, *FLAGS, "--set", "parallel.logits=8", "-o", "blocks")
        weigh(None)
        plain = losses()
        weigh(lambda i: 0.5)
        half = losses()
        assert near(half, plain) and half[2] == plain[2] / 2, (half, plain)
        weigh(lambda i: int(i % 3 > 0))
        some = losses()
        weigh(lambda i: int(i % 3 > 0), b"hcweight")
        assert losses() == some  # To the bit.
        weigh(lambda i: (i % 5) / 4)
        drawn = losses()
        assert not near(drawn, plain) and near(losses("./blocks"), drawn), drawn
        masked = ("--set", "train.objective=masked", "-o", "masked")
        run(os.environ["HECATEC"], model, *FLAGS, *masked)
        run("./masked", "train", "--data", "text", code=1, wanted="a masked objective chooses its targets")
        beside = pathlib.Path("text.weights")
        raw = beside.read_bytes()
        beside.write_bytes(raw[:16 + 2 * 900] + struct.pack("<e", 1.5) + raw[18 + 2 * 900:])
        run("./m", "train", "--data", "text", "--epochs", "2", code=1, wanted="'text.weights': the weight of token 900 (from 0) is 1.5; weights are from 0 to 1")


main()
