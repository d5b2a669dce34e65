"""pack.py HECATE_DATA TOKENIZERS: sequences of whole documents, against best fit in Python."""

import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

PROGRAM, QWEN = sys.argv[1], pathlib.Path(sys.argv[2]) / "qwen.json"
ADDED = {token["content"]: token["id"] for token in json.loads(QWEN.read_text(encoding="utf-8"))["added_tokens"]}
END = ADDED["<|endoftext|>"]
T = 32
TEMPLATE = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def run(*arguments, code=0, wanted=""):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != code or wanted not in done.stdout + done.stderr:
        sys.exit(f"{arguments}: {done.returncode}, wanted {code} and '{wanted}'\n{done.stdout}{done.stderr}")
    return done


def read(path):
    """Tokens, the length of sequences that the header says, and weights."""
    raw = path.read_bytes()
    _, _, count, packed = struct.unpack("<4i", raw[:16])
    beside = pathlib.Path(f"{path}.weights")
    bits = beside.read_bytes()[16:] if beside.exists() else b"\xff" * (count + 7)
    return list(struct.unpack(f"<{count}H", raw[1024:])), packed, [bits[i // 8] >> i % 8 & 1 for i in range(count)]


def split(tokens):
    """Documents, each with its end."""
    documents, document = [], []
    for token in tokens:
        document.append(token)
        if token == END:
            documents.append(tuple(document))
            document = []
    return documents + ([tuple(document)] if document else [])


def best_fit(documents):
    """The room that is left in each sequence, sorted."""
    room = []
    for rest in sorted(((len(d) - 1) % T + 1 for d in documents), reverse=True):
        fits = [r for r in room if r >= rest]
        if fits:
            room.remove(min(fits))
        room.append((min(fits) if fits else T) - rest)
    return sorted(room + [0] * sum((len(d) - 1) // T for d in documents))


def lines(folder, seed, count=400):
    drawn = random.Random(seed)
    text = "".join(" ".join(drawn.choice("ab cd the of and Hello".split()) for _ in range(int(drawn.expovariate(0.08)) + 1)) + "\n"
                   for _ in range(count))
    (folder / "a.lines").write_text(text)


def check(path, documents):
    tokens, packed, weights = read(path)
    found, rooms, behind = [], [], False  # `behind`: a piece, which the next sequence may go on with.
    for at in range(0, len(tokens), T):
        place, parts = at, split(tokens[at:at + T])
        for i, part in enumerate(parts):
            follows = i == 0 and behind and bool(weights[place])
            assert weights[place:place + len(part)] == [int(follows)] + [1] * (len(part) - 1), (place, part)
            found += [(part, follows)] * (part != (END,))
            place += len(part)
        rooms.append(parts.count((END,)))
        behind = parts[0][-1] != END
    assert packed == T and sorted(rooms) == best_fit(documents), (packed, sorted(rooms), best_fit(documents))
    pieces = sorted(d[i:i + T] for d in documents for i in range(0, len(d), T))
    # Whole ones, and pieces of long ones: each once.
    assert sorted(part for part, _ in found) == pieces
    long = sum(len(d) > T for d in documents)
    assert sum(follows for _, follows in found) >= sum((len(d) - 1) // T for d in documents) - long // 2
    assert sum(rooms) == len(tokens) - sum(map(len, documents))
    return sum(rooms)


def texts(folder):
    for seed in range(8):
        lines(folder, seed)
        flags = ["--tokenizer", QWEN, "--end=<|endoftext|>", "--input=lines", folder / "a.lines"]
        plain = folder / f"plain{seed}/train/a.lines.bin"
        run("tokenize", "--out", folder / f"plain{seed}", *flags)
        words = (folder / "a.lines").read_text().splitlines(True)
        # A rest that is its end alone would look like padding.
        (folder / "a.lines").write_text("".join(line for line, d in zip(words, split(read(plain)[0]), strict=True) if len(d) % T != 1))
        run("tokenize", "--out", folder / f"plain{seed}", *flags)
        done = run("tokenize", "--out", folder / f"packed{seed}", f"--pack={T}", *flags)
        packed = folder / f"packed{seed}/train/a.lines.bin"
        documents = split(read(plain)[0])
        padding = check(packed, documents)
        assert f", {padding} are padding" in done.stderr, done.stderr
        record = json.loads(pathlib.Path(f"{packed}.json").read_text())
        assert record["packed"] == T and record["documents"] == len(documents) > 300 and record["made"]["pack"] == T, record
        run("check", packed, wanted="sound")
        run("tokenize", "--out", folder / f"packed{seed}", f"--pack={T}", *flags, wanted="is there already")
        run("tokenize", "--out", folder / f"again{seed}", f"--pack={T}", *flags[:2], "--end=<|endoftext|>", plain)
        again = folder / f"again{seed}/train/a.lines.bin.bin"
        assert read(again) == read(packed)
    run("tokenize", "--out", folder / "shares", f"--pack={T}", "--validation=0.2", *flags)
    parts = [read(folder / f"shares/{part}/a.lines.bin")[0] for part in ("train", "validation")]
    whole = [d for tokens in parts for at in range(0, len(tokens), T) for d in split(tokens[at:at + T]) if d != (END,)]
    assert sorted(whole) == sorted(d[i:i + T] for d in documents for i in range(0, len(d), T))


def conversations(folder):
    """The weights of conversations go along; the token behind each does not count."""
    model = folder / "model"
    model.mkdir()
    (model / "tokenizer.json").write_bytes(QWEN.read_bytes())
    (model / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    (folder / "c.jsonl").write_text("".join(json.dumps({"prompt": "a" * (i % 7 + 1), "completion": "b" * (i % 5 + 1)}) + "\n"
                                            for i in range(100)))
    flags = ["chat", "--model", model, "--end=<|endoftext|>"]
    run(*flags, "--out", folder / "plain", folder / "c.jsonl")
    run(*flags, "--out", folder / "packed", "--pack=64", folder / "c.jsonl")
    (plain, _, weights), (tokens, packed, counts) = (read(folder / name / "train/c.jsonl.bin") for name in ("plain", "packed"))
    assert packed == 64 and sum(weights) == sum(counts) > 0
    pairs = [sorted(zip(split(t), split_weights(t, w))) for t, w in ((plain, weights), (tokens, counts))]
    assert pairs[0] == [pair for pair in pairs[1] if pair[0] != (END,)]


def split_weights(tokens, weights):
    at, out = 0, []
    for document in split(tokens):
        out.append(tuple(weights[at:at + len(document)]))
        at += len(document)
    return out


def pairs(folder):
    """Each answer is a sequence, with its prompt; forms of records, and those that are refused."""
    model = folder / "model"
    model.mkdir()
    (model / "tokenizer.json").write_bytes(QWEN.read_bytes())
    (model / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    user, good, bad = ({"role": role, "content": text} for role, text in (("user", "u"), ("assistant", "a"), ("assistant", "bb")))
    flags = ["pairs", "--model", model, "--end=<|endoftext|>", "--out", folder / "out"]
    forms = [{"prompt": "u", "chosen": "a", "rejected": "bb"}, {"prompt": [user], "chosen": [good], "rejected": [bad]},
             {"chosen": [user, good], "rejected": [user, bad]}, {"prompt": "other", "chosen": [user, good], "rejected": [user, bad]},
             {"messages": [user], "chosen": good, "rejected": bad},
             {"conversations": [{"from": "human", "value": "u"}], "chosen": {"from": "gpt", "value": "a"}, "rejected": {"from": "gpt", "value": "bb"}}]
    (folder / "p.jsonl").write_text("".join(json.dumps(form) + "\n" for form in forms))
    run(*flags, f"--pack={T}", folder / "p.jsonl")
    raw = (folder / "out/train/p.jsonl.bin").read_bytes()
    assert struct.unpack("<5i", raw[:20])[2:] == (len(forms) * 2 * T, T, 2), struct.unpack("<5i", raw[:20])
    tokens, _, weights = read(folder / "out/train/p.jsonl.bin")
    both = [(tokens[i:i + 2 * T], weights[i:i + 2 * T]) for i in range(0, len(tokens), 2 * T)]
    assert all(pair == both[0] for pair in both)
    assert tokens[:T] != tokens[T:2 * T] and 0 < sum(weights[:T]) < sum(weights[T:2 * T])
    (folder / "q.jsonl").write_text(json.dumps({"prompt": "u", "completion": "a"}) + "\n")
    run("chat", *flags[1:-1], folder / "chat", f"--pack={T}", folder / "q.jsonl")
    alone = read(folder / "chat/train/q.jsonl.bin")
    assert (tokens[:T], weights[:T]) == (alone[0], alone[2])  # As a conversation of the chosen answer.
    for record, wanted in (({"prompt": "u", "chosen": "a"}, "no pair: 'rejected' is neither a text, nor messages"),
                           ({"chosen": [good], "rejected": [bad]}, "no pair: there is no prompt"),
                           ({"prompt": "u", "chosen": "a" * 99, "rejected": "b"}, "the chosen answer has"),
                           ({"prompt": "u", "chosen": "a", "rejected": [user]}, "the rejected answer: no message of the assistant")):
        (folder / "p.jsonl").write_text(json.dumps(forms[0]) + "\n" + json.dumps(record) + "\n")
        run(*flags, f"--pack={T}", folder / "p.jsonl", code=1, wanted=f"p.jsonl', line 2: {wanted}")
        run(*flags, f"--pack={T}", "--bad=skip", folder / "p.jsonl", wanted="1 bad records are left out")
        assert len(read(folder / "out/train/p.jsonl.bin")[0]) == 2 * T
    run(*flags, folder / "p.jsonl", code=2, wanted="--pack=T and --end=TOKEN are wanted")


def refusals(folder):
    lines(folder, 0, 3)
    flags = ["tokenize", "--tokenizer", QWEN, "--out", folder / "out"]
    run(*flags, "--end=none", "--pack=8", folder / "a.lines", code=2, wanted="--pack: --end=TOKEN is wanted")
    run(*flags, "--end=<|endoftext|>", "--pack=1", folder / "a.lines", code=2, wanted="--pack=1: a whole number from 2")
    run(*flags, "--end=<|endoftext|>", folder / "a.lines")
    run(*flags, "--end=<|endoftext|>", "--pack=8", "--validation=0.5", folder / "out/train/a.lines.bin", code=2,
        wanted="with --pack they have no --validation")
    run("tokenize", "--vocabulary=9999", "--pack=8", "--out", folder / "out", folder / "out/train/a.lines.bin", code=2,
        wanted="--pack: --tokenizer=FILE is wanted")


with tempfile.TemporaryDirectory() as temporary:
    for test in (texts, conversations, pairs, refusals):
        place = pathlib.Path(temporary) / test.__name__
        place.mkdir()
        test(place)
