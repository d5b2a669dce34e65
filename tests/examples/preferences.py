"""preferences.py TOKENIZER: the commands of docs/preferences.md, smaller: pairs, a base, its reference, and training
on 1, 2, 4 and 8 ranks, with four microbatches. Environment: HECATEC, DATA, RANKS."""
import json
import math
import os
import pathlib
import random
import struct
import sys
import tempfile

from documents import END, end_of, model, run

T = 64
TEMPLATE = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
PAIRS = "pairs/train/p.jsonl.bin"
PROGRAMS = {  # Ranks, microbatch, placement. All but the first two have three iterations.
    "one2": (1, 2, "fssdp"), "one4": (1, 4, "fssdp"), "one16": (1, 16, "fssdp"), "ep": (2, 8, "ep"), "fssdp2": (2, 8, "fssdp"),
    "fssdp": (4, 4, "fssdp"), "ep4": (4, 4, "ep"), "ep8": (8, 2, "ep"), "fssdp8": (8, 2, "fssdp")}


def build(name, end, ranks, microbatch, placement, *settings):
    pathlib.Path(f"{name}.moe").write_text(model(end, T, experts=8, tokens=1024, lr=3e-3, aux=0.01))
    words = [f"cluster.devices={ranks}", f"parallel.microbatch={microbatch}", f"parallel.experts={placement}", *settings]
    run(os.environ["HECATEC"], "-w", "-O1", f"{name}.moe", "-o", name, *[w for word in words for w in ("--set", word)])


def prepare(tokenizer):
    drawn = random.Random(3)
    word = lambda letters, most: " ".join(drawn.choice(letters) for _ in range(drawn.randint(1, most)))
    with open("p.jsonl", "w") as file:
        for _ in range(48):
            print(json.dumps({"prompt": word("xyz", 6), "chosen": word("abc", 8), "rejected": word("bcd", 8)}), file=file)
    pathlib.Path("model").mkdir()
    pathlib.Path("model/tokenizer.json").write_bytes(tokenizer.read_bytes())
    pathlib.Path("model/tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    flags = ("--model", "model", f"--end={END}", f"--pack={T}")
    run(os.environ["DATA"], "pairs", "--out", "pairs", *flags, "p.jsonl")
    pathlib.Path("c.jsonl").write_text(pathlib.Path("p.jsonl").read_text().replace('"chosen"', '"completion"'))
    run(os.environ["DATA"], "chat", "--out", "chat", *flags, "c.jsonl")


def losses(name):
    return [line["loss"] for line in map(json.loads, pathlib.Path(f"{name}.log").read_text().splitlines())]


def numbers(name):
    """The means of preferences or rollouts of each step."""
    lines = [json.loads(line) for line in pathlib.Path(f"{name}.log").read_text().splitlines()]
    return [line.get("preferences") or line["rollout"] for line in lines]


def apart(a, b):
    return max(abs(x[key] - y[key]) / (1e-3 + abs(y[key])) for x, y in zip(a, b, strict=True) for key in y)


def apart_of(name, other):
    return apart(numbers(name), numbers(other))


def log_probs(name):
    raw = pathlib.Path(name).read_bytes()
    width = 8 + 6 * (struct.unpack("<I", raw[12:16])[0] - 1) - 2
    return [struct.unpack_from("<f", raw, at + width - 4)[0] for at in range(64, len(raw), width)]


def check_pairs(program, flags):
    """Rewards of one step over all pairs, by log-probabilities that eval writes."""
    run(f"./{program}", "eval", "--load", f"{program}.safetensors", "--val", PAIRS, "--write-teacher", "own.pairs")
    run(f"./{program}", "train", "--load", f"{program}.safetensors", "--data", PAIRS, *flags, "--steps", 1, "--log", "step.log", "--set",
        f"train.tokens={96 * T}", "--set", "data.held_out=1e-6")
    own, said = log_probs("own.pairs"), log_probs("reference")
    gains = [sum(a - b for a, b in zip(own[i * T:(i + 1) * T], said[i * T:(i + 1) * T]) if b > -math.inf) for i in range(96)]
    chosen, rejected = [0.5 * g for g in gains[::2]], [0.5 * g for g in gains[1::2]]
    mean = lambda values: sum(values) / len(values)
    wanted = {"chosen": mean(chosen), "rejected": mean(rejected), "margin": mean(chosen) - mean(rejected),
              "accuracy": mean([a > b for a, b in zip(chosen, rejected)])}
    found, = numbers("step")
    assert apart([found], [wanted]) < 1e-4 and 0.1 < found["margin"] and found["accuracy"] > 0.5, (found, wanted)


def check_reference():
    """One entry of each token that counts, as a float."""
    raw = pathlib.Path("reference").read_bytes()
    magic, version, entries, tokens, _, _, ids, logs = struct.unpack("<8s2IQ4I", raw[:40])
    assert (magic, version, entries, tokens, ids, logs) == (b"hecteach", 1, 1, 48 * 2 * T, 2, 4), raw[:40]
    rows = list(struct.iter_unpack("<Hf", raw[64:]))
    there = [row for row in rows if row[1] > -math.inf]
    bits = pathlib.Path(f"{PAIRS}.weights").read_bytes()[16:]
    assert len(rows) == tokens and len(there) == sum(byte.bit_count() for byte in bits), (len(rows), len(there))
    assert all(-12 < log < 0 for _, log in there)


def rollouts(end):
    """Ratios of the base are 1, so its loss is less the mean advantage; the same on 1, 2, 4 and 8 ranks, clipped."""
    data = "chat/train/c.jsonl.bin"
    settings = "train.objective=policy(clip=0.05, kl=0.1)", "train.tokens=1536"
    for name, (ranks, microbatch, placement) in PROGRAMS.items():
        build(name, end, ranks, min(microbatch, 8 // ranks), placement, *settings)
    run("./one2", "train", "--data", data, "--steps", 1, code=2, wanted="learns from rollouts")
    run("./one2", "eval", "--load", "base.safetensors", "--val", data, "--write-teacher", "own")
    run("./one2", "train", "--data", data, "--teacher", "own", "--steps", 1, code=1, wanted="'own' has 1 entries for a token, and 3 are wanted")
    raw = pathlib.Path("own").read_bytes()
    drawn, there, gained = random.Random(5), 0, 0
    rows = []
    for token, log in struct.iter_unpack("<Hf", raw[64:]):
        advantage = struct.unpack("<f", struct.pack("<f", drawn.gauss(0.5, 1)))[0]
        rows.append(struct.pack("<3H3f", token, token, token, log, advantage, log))
        if log > -math.inf:
            there, gained = there + 1, gained + advantage
    pathlib.Path("rollout").write_bytes(raw[:12] + struct.pack("<I", 3) + raw[16:64] + b"".join(rows))
    flags = ("--teacher", "rollout", "--load", "base.safetensors")
    found = json.loads(run("./one2", "eval", "--val", data, "--json", *flags))
    assert found["tokens"] == there and abs(found["loss"] + gained / there) < 1e-6, (found, gained / there)
    for name, (ranks, *_) in PROGRAMS.items():
        launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
        run(*launcher, f"./{name}", "train", "--data", data, *flags, "--steps", 8, "--log", f"{name}.log",
            "--save", "learned.safetensors")
    learned = losses("one2")
    last = json.loads(run("./one2", "eval", "--val", data, "--json", *flags[:2], "--load", "learned.safetensors"))
    assert last["loss"] < found["loss"] - 0.003, (found, last)
    far = {name: max(abs(a - b) for a, b in zip(losses(name), learned, strict=True)) for name in PROGRAMS}
    assert max(far.values()) < 1e-12, far
    assert max(apart_of(name, "one2") for name in PROGRAMS) < 1e-9
    first, *_, last = numbers("one2")
    assert abs(first["ratio"] - 1) < 1e-6 and first["clipped"] == 0 and abs(first["kl"]) < 1e-9 and abs(first["kl_old"]) < 1e-9, first
    # The reference has drawn.
    assert 0 < last["clipped"] < 1 and last["kl"] > 1e-6 and abs(last["kl"] / last["kl_old"] - 1) < 0.5, last
    at = next(t for t, row in enumerate(rows) if struct.unpack("<3H3f", row)[3] > -math.inf)
    rows[at] = bytes([rows[at][0] ^ 1]) + rows[at][1:]
    pathlib.Path("broken").write_bytes(raw[:12] + struct.pack("<I", 3) + raw[16:64] + b"".join(rows))
    run("./one2", "eval", "--val", data, "--load", "base.safetensors", "--teacher", "broken", code=1,
        wanted=f"'broken' lacks entries of token {at + 1} of '{data}': 3 of its id are wanted")


def main(tokenizer):
    end = end_of(tokenizer)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        prepare(tokenizer)
        build("base", end, 1, 4, "fssdp")
        run("./base", "train", "--data", "chat/train/c.jsonl.bin", "--steps", 8, "--save", "base.safetensors")
        run("./base", "train", "--data", PAIRS, "--steps", 1, code=1, wanted="has pairs of a chosen and a rejected answer")
        for name, (ranks, microbatch, placement) in PROGRAMS.items():
            build(name, end, ranks, microbatch, placement, "train.objective=dpo(beta=0.5)", "train.tokens=3072")
        run("./one4", "train", "--data", "chat/train/c.jsonl.bin", "--teacher", "reference", "--steps", 1, code=1, wanted="has no pairs")
        run("./one4", "train", "--data", PAIRS, "--steps", 1, code=2, wanted="is against a reference: eval --load BASE")
        run("./one4", "eval", "--load", "base.safetensors", "--val", PAIRS, "--write-teacher", "reference")
        check_reference()
        for name, (ranks, *_) in PROGRAMS.items():
            launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
            run(*launcher, f"./{name}", "train", "--load", "base.safetensors", "--data", PAIRS, "--teacher", "reference", "--steps", 6,
                "--log", f"{name}.log", "--save", f"{name}.safetensors")
        learned = losses("one4")
        assert abs(learned[0] - math.log(2)) < 0.03 and learned[-1] < 0.9 * learned[0], learned  # With aux.
        far = {name: max(abs(a / b - 1) for a, b in zip(losses(name), learned, strict=True)) for name in PROGRAMS}
        assert max(far.values()) < 1e-12, far
        assert max(apart_of(name, "one4") for name in PROGRAMS) < 1e-9
        check_pairs("one4", ("--teacher", "reference"))
        flags = ("--val", PAIRS, "--teacher", "reference", "--json")
        first, last = (json.loads(run("./one4", "eval", "--load", f"{name}.safetensors", *flags)) for name in ("base", "one4"))
        assert abs(first["loss"] - math.log(2)) < 1e-6 and first["tokens"] == 48, first
        assert last["loss"] < 0.9 * first["loss"], (first, last)
        rollouts(end)
        print(f"{learned[0]:.4f} -> {learned[-1]:.4f}; apart {max(far.values()):.1e}")


main(pathlib.Path(sys.argv[1]).resolve())
