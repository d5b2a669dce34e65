"""eval --logits and --losses: the same bytes from one rank and from four, though the last round leaves ranks without sequences;
losses are those of the logits, and their mean is what eval prints, also of a loss that has a name. Tokens that are not masked have no loss."""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "hf"))
import weights  # noqa: E402

SEQUENCES = 37


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=200)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(name, *sets, far=True):
    flags = [word for pair in sets for word in ("--set", pair)] + ["-D", f"far={str(far).lower()}"]
    run(os.environ["HECATEC"], "-w", "-O1", *flags, HERE / "small.moe", "-o", name)
    return f"./{name}"


def doubles(tensor):
    return struct.unpack(f"<{len(tensor[2]) // 8}d", tensor[2])


def evaluate(name, *command, load="saved"):
    """The output of eval, and the tensors of its files."""
    said = run(*command, "eval", "--data", os.environ["TEXT"], "--load", load, "--sequences", SEQUENCES, "--json",
               "--logits", f"{name}.logits", "--losses", f"{name}.losses")
    logits, losses = (weights.read_safetensors(f"{name}.{kind}")[kind] for kind in ("logits", "losses"))
    assert logits[0] == "F32" and losses[0] == "F64" and logits[1][:2] == losses[1], (logits[:2], losses[:2])
    assert losses[1][0] == SEQUENCES, losses[1]
    of_all = weights.read_safetensors(f"{name}.losses")
    by_name = {key: of_all[key] for key in of_all if key != "losses"}
    return json.loads(said), logits, doubles(losses), by_name


def check(said, logits, losses, by_name):
    assert said.get("losses", {}).keys() == {name.removeprefix("losses.") for name in by_name}, (said, by_name.keys())
    for name, tensor in by_name.items():  # Losses of token t + 3: the last two positions of each sequence predict none.
        all_of = doubles(tensor)
        there = [loss for loss in all_of if not math.isnan(loss)]
        assert [i for i, loss in enumerate(all_of) if math.isnan(loss)] == [i for i in range(len(all_of)) if i % 16 > 13]
        assert abs(sum(there) / len(there) - said["losses"][name.removeprefix("losses.")]) < 1e-6 * said["loss"], said
    wide = logits[1][2]
    numbers = struct.unpack(f"<{len(logits[2]) // 4}f", logits[2])
    there = [loss for loss in losses if not math.isnan(loss)]
    assert said["tokens"] == len(there), (said, len(there))
    assert abs(sum(there) / len(there) - said["loss"]) < 1e-6 * said["loss"], said
    for i in range(0, len(losses), 7):
        row = numbers[i * wide:(i + 1) * wide]
        whole = math.log(sum(math.exp(z) for z in row))
        if not math.isnan(losses[i]):  # Its target is a byte: one of the logits gives this loss.
            assert min(abs(whole - z - losses[i]) for z in row) < 1e-9, (i, losses[i])


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    one = build("one", "parallel.microbatch=16")
    four = build("four", "parallel.microbatch=4", "cluster.devices=4", "parallel.experts=fssdp")
    parts = build("parts", "parallel.microbatch=4", "cluster.devices=4", "parallel.experts=fssdp", "parallel.dense=shard")
    masked = build("masked", "parallel.microbatch=16", "train.objective=masked(0.25)", far=False)
    run(one, "train", "--data", os.environ["TEXT"], "--steps", "3", "--save", "saved")
    alone = evaluate("alone", one)
    ranks = evaluate("ranks", "sh", os.environ["RANKS"], "4", four)
    assert alone[1:] == ranks[1:] and abs(alone[0]["loss"] - ranks[0]["loss"]) < 1e-6, (alone[0], ranks[0])
    assert alone[3], "no losses by name"
    in_parts = evaluate("parts", "sh", os.environ["RANKS"], "4", parts)  # Ranks that have parts of dense parameters.
    assert in_parts == ranks, (in_parts[0], ranks[0])
    texts = [run(*command, "sample", "--load", "saved", "--prompt", "Hello", "--tokens", "20")
             for command in ([one], ["sh", os.environ["RANKS"], "4", parts])]
    assert texts[0] == texts[1], texts
    check(*alone)
    run(masked, "train", "--data", os.environ["TEXT"], "--steps", "3", "--save", "guesses")
    check(*evaluate("hidden", masked, load="guesses"))
    refused = subprocess.run([masked, "eval", "--val", os.environ["TEXT"], "--load", "guesses", "--write-teacher", "said"],
                             capture_output=True, text=True, timeout=100)
    assert refused.returncode == 2 and "--write-teacher needs a model of next tokens" in refused.stderr, refused
    assert not os.path.exists("said")
