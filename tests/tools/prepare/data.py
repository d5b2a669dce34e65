"""data.py HECATE_DATA TOKENIZERS: the commands of hecate-data on every kind of input, and their refusals."""

import bz2
import gzip
import json
import lzma
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

PROGRAM, TOKENIZERS = sys.argv[1], pathlib.Path(sys.argv[2])
QWEN = TOKENIZERS / "qwen.json"
ADDED = {token["content"]: token["id"] for token in json.loads(QWEN.read_text(encoding="utf-8"))["added_tokens"]}
END = ADDED["<|endoftext|>"]


def run(*arguments, code=0, wanted=""):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != code or wanted not in done.stdout + done.stderr:
        sys.exit(f"{arguments}: {done.returncode}, wanted {code} and '{wanted}'\n{done.stdout}{done.stderr}")
    return done


def tokens(path):
    """The ids of a file of llm.c."""
    raw = path.read_bytes()
    magic, version, count = struct.unpack("<3i", raw[:12])
    width = {(20240520, 1): "H", (20240801, 7): "I"}[magic, version]
    return list(struct.unpack(f"<{count}{width}", raw[1024:]))


def megatron(path, documents, form="i", code=4):
    """Documents are lists of sequences."""
    sequences = [sequence for document in documents for sequence in document]
    path.with_suffix(".bin").write_bytes(b"".join(struct.pack(f"<{len(s)}{form}", *s) for s in sequences))
    starts, firsts = [0], [0]
    for sequence in sequences:
        starts.append(starts[-1] + len(sequence) * struct.calcsize(form))
    for document in documents:
        firsts.append(firsts[-1] + len(document))
    path.write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(sequences), len(firsts)) +
                     struct.pack(f"<{len(sequences)}i", *map(len, sequences)) +
                     struct.pack(f"<{len(sequences)}q", *starts[:-1]) + struct.pack(f"<{len(firsts)}q", *firsts))


def texts(folder):
    """Texts, lines and JSON lines hold the same documents; a second run finds all there."""
    words = ["Hello, world! 123", "naïve Café \U0001f600 日本", "a", "don't  stop\tnow"]
    (folder / "a.txt").write_bytes(b"\0".join(word.encode() for word in words))
    (folder / "a.lines").write_text("\n".join(words) + "\n\n", encoding="utf-8")
    (folder / "a.jsonl").write_text("".join(json.dumps({"id": 1, "body": word}) + "\n" for word in words), encoding="utf-8")
    out = folder / "out"
    flags = ["--tokenizer", QWEN, "--end=<|endoftext|>", "--out", out]
    run("tokenize", *flags, folder / "a.txt")
    run("tokenize", *flags, "--input=lines", "--threads=1", folder / "a.lines")
    run("tokenize", *flags, "--field=body", "--threads=3", folder / "a.jsonl")
    ids = tokens(out / "train/a.txt.bin")
    assert ids.count(END) == len(words) and ids[-1] == END, ids
    assert tokens(out / "train/a.lines.bin") == ids == tokens(out / "train/a.jsonl.bin")
    record = json.loads((out / "train/a.txt.bin.json").read_text())
    assert record["tokens"] == len(ids) and record["documents"] == 4 and record["made"]["source"]["path"].endswith("a.txt"), record
    run("tokenize", *flags, folder / "a.txt", wanted="is there already")
    again = run("tokenize", *flags, "--seed=2", folder / "a.txt")
    assert "there already" not in again.stderr
    run("inspect", "--show=400", "--tokenizer", QWEN, out / "train/a.txt.bin",
        wanted="<|endoftext|>".join(words))
    run("check", out / "train/a.txt.bin", "--vocabulary=800", wanted="sound")
    run("check", out / "train/a.txt.bin", "--vocabulary=20", code=1, wanted="outside the vocabulary of 20")
    raw = bytearray((out / "train/a.txt.bin").read_bytes())
    raw[1030] ^= 1
    (out / "train/a.txt.bin").write_bytes(raw)
    run("check", out / "train/a.txt.bin", code=1, wanted="is not the file that its record")
    assert not list(folder.rglob("*partial"))


def split(folder):
    """Documents go to one of two files, the same ones in every run; none is lost."""
    (folder / "b.jsonl").write_text("".join(json.dumps({"text": f"doc {i}"}) + "\n" for i in range(2000)))
    flags = ["--tokenizer", QWEN, "--end=<|endoftext|>", "--validation=0.1", folder / "b.jsonl"]
    for name, threads in (("one", 1), ("two", 2)):
        run("tokenize", "--out", folder / name, f"--threads={threads}", *flags)
    train, held = tokens(folder / "one/train/b.jsonl.bin"), tokens(folder / "one/validation/b.jsonl.bin")
    assert train == tokens(folder / "two/train/b.jsonl.bin") and held == tokens(folder / "two/validation/b.jsonl.bin")
    assert 150 < held.count(END) < 250 and held.count(END) + train.count(END) == 2000
    (folder / "b.txt").write_text("One text.\nTwo lines.\n")
    run("tokenize", "--out", folder / "few", *flags[:-1], folder / "b.txt", wanted="b.txt.bin' has no document, as the input is one")
    return folder / "one/train/b.jsonl.bin", folder / "one/validation/b.jsonl.bin"


def conversions(folder):
    documents = [[[1, 2, 3], [4]], [[5, 65000]], [[]]]
    megatron(folder / "m.idx", documents)
    run("tokenize", "--vocabulary=100000", "--out", folder / "wide", folder / "m.idx")
    assert tokens(folder / "wide/train/m.idx.bin") == [1, 2, 3, 4, 5, 65000]
    run("tokenize", "--vocabulary=60000", "--out", folder / "narrow", folder / "m.idx", code=1, wanted="token 65000 is no id")
    assert not (folder / "narrow/train/m.idx.bin").exists()
    megatron(folder / "n.idx", [[[7, 8]], [[9]]], "H", 8)
    run("tokenize", "--vocabulary=60000", "--out", folder / "narrow", folder / "n.idx")
    run("tokenize", "--vocabulary=60000", "--out", folder / "again", folder / "narrow/train/n.idx.bin")
    assert tokens(folder / "again/train/n.idx.bin.bin") == [7, 8, 9]
    run("inspect", folder / "n.idx", "--show=5", wanted="3 tokens, the largest id is 9\n7 8")
    good = (folder / "n.idx").read_bytes()
    for raw, why in [(good[:40], "is damaged: 40 bytes"), (b"x" + good[1:], "it does not begin with MMIDIDX"),
                     (good[:9] + b"\2" + good[10:], "has version 2"), (good[:17] + b"\7" + good[18:], "tokens of type 7"),
                     (good[:34] + struct.pack("<i", 9) + good[38:], "sequence 0 lies outside"),
                     (good[:-8] + struct.pack("<q", 5), "document 2 begins at sequence 5")]:
        (folder / "n.idx").write_bytes(raw)
        run("check", folder / "n.idx", code=1, wanted=why)


def mixtures(folder, first, second):
    a, b = tokens(first), tokens(second)
    out = folder / "mixed.bin"
    done = run("mix", "--out", out, "--tokens=3000", "--block=10", f"{first}=0.75", f"{second}=0.25")
    mixed = tokens(out)
    assert len(mixed) == 3000 and "2250 tokens" in done.stdout and "750 tokens" in done.stdout, done.stdout
    blocks = [mixed[i:i + 10] for i in range(0, 3000, 10)]
    assert [blocks.count(part[:10]) > 0 for part in (a, b)] == [True, True]
    assert sum(a[i:i + 10] in blocks[:40] for i in range(0, 300, 10)) == 30  # The first 40 blocks.
    run("check", out, wanted="sound")
    run("mix", "--out", first, "--tokens=10", "--block=10", f"{first}=1", code=2)
    run("mix", "--out", out, "--tokens=10", f"{first}=x", code=2, wanted="FILE=WEIGHT is wanted")
    run("mix", "--out", out, "--tokens=10", "--block=1000000", f"{first}=1", code=1, wanted="a block has 1000000")


def refusals(folder):
    flags = ["--tokenizer", QWEN, "--out", folder / "bad"]
    (folder / "c.jsonl").write_text('{"text": "a"}\n\n{"text": 1}\n')
    run("tokenize", *flags, "--end=none", folder / "c.jsonl", code=1, wanted="c.jsonl', line 3: no text in the field 'text'")
    (folder / "c.jsonl").write_text('{"text": "a"}\n{"text" "b"}\n')
    run("tokenize", *flags, "--end=none", folder / "c.jsonl", code=1, wanted="c.jsonl', line 2, column")
    assert not list((folder / "bad/train").iterdir())
    (folder / "c.parquet").write_bytes(b"PAR1" + bytes(range(200)) + b"PAR1")
    (folder / "c.txt.gz").write_bytes(gzip.compress((folder / "c.parquet").read_bytes()))
    run("tokenize", *flags, "--end=none", folder / "c.txt.gz", code=1, wanted="c.txt.gz' is a Parquet table")
    (folder / "c.txt").write_bytes(bytes(range(256)) * 8)
    run("tokenize", *flags, "--end=none", folder / "c.txt", code=1, wanted="c.txt' is no text: 192 of its first 2048 bytes")
    run("tokenize", *flags, "--end=none", folder / "c.parquet", code=1, wanted="c.parquet' is a Parquet table: python3 -c")
    assert not list((folder / "bad/train").iterdir())
    run("tokenize", *flags, folder / "c.jsonl", code=2, wanted="which token ends a document?")
    run("tokenize", *flags, "--end=<none>", folder / "c.jsonl", code=2, wanted="has no such added token")
    run("tokenize", *flags, "--end=none", "--input=what", folder / "c.jsonl", code=2, wanted="--input=what")
    run("tokenize", *flags, "--end=none", "--validation=2", folder / "c.jsonl", code=2, wanted="--validation=2")
    run("tokenize", *flags, "--end=none", "--threads=0", folder / "c.jsonl", code=2, wanted="--threads=0")
    run("tokenize", *flags, "--end=none", folder / "c.jsonl", folder / "x/c.jsonl", code=2, wanted="would be one file")
    run("tokenize", *flags, "--end=none", folder / "none.txt", code=1, wanted="none.txt': No such file")
    run("tokenize", "--out", folder / "bad", folder / "c.jsonl", code=2, wanted="--tokenizer=FILE is wanted")
    run("tokenize", "--vocabulary=9", "--out", folder / "bad", folder / "c.jsonl", code=2, wanted="c.jsonl' is text")
    run("tokenize", "--tokenizer", QWEN, "--end=none", folder / "c.jsonl", code=2, wanted="--out=FOLDER is wanted")
    run("inspect", folder / "c.jsonl", code=1, wanted="is text, not tokens")
    run("check", code=2, wanted="at least one file")
    run("frobnicate", code=2, wanted="no command 'frobnicate'")
    run(code=2, wanted="tokenize, chat, pairs, routes, rollouts, inspect, check or mix")
    run("--help", wanted="usage: hecate-data tokenize")


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def compressed(folder):
    """Compressed inputs of any name give the tokens of the plain one, and damaged ones are refused."""
    lines = "".join(json.dumps({"text": f"document {i} " * (i % 90)}) + "\n" for i in range(2000)).encode()
    (folder / "p.jsonl").write_bytes(lines)
    flags = ["--tokenizer", QWEN, "--end=<|endoftext|>", "--out", folder / "packed"]
    run("tokenize", *flags, folder / "p.jsonl")
    wanted = tokens(folder / "packed/train/p.jsonl.bin")
    half = len(lines) // 2
    codecs = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
    if shutil.which("zstd"):
        codecs["zst"] = zstd
    for suffix, pack in codecs.items():
        file = folder / f"p.jsonl.{suffix}"
        whole = pack(lines)
        for raw in (whole, pack(lines[:half]) + pack(lines[half:])):
            file.write_bytes(raw)
            run("tokenize", *flags, file)
            assert tokens(folder / f"packed/train/{file.name}.bin") == wanted, file
        bad = bytearray(whole)
        for at in range(len(bad) // 2, len(bad) // 2 + 40):
            bad[at] ^= 255
        (folder / "renamed").write_bytes(whole)
        run("tokenize", *flags, "--input=jsonl", folder / "renamed")
        assert tokens(folder / "packed/train/renamed.bin") == wanted, file
        for raw, why in ((whole[:-9], "is truncated"), (whole[:len(whole) // 2], "is truncated"), (bytes(bad), "is damaged")):
            file.write_bytes(raw)
            (folder / f"packed/train/{file.name}.bin").unlink(missing_ok=True)
            run("tokenize", *flags, file, code=1, wanted=f"{file.name}' {why}")
            assert not (folder / f"packed/train/{file.name}.bin").exists()


def records(folder):
    """JSON arrays give the tokens of lines; bad records are named, and left out where that is wanted."""
    words = ["one", "two \u00e4", "three"]
    flags = ["--tokenizer", QWEN, "--end=<|endoftext|>", "--out", folder / "arrays"]
    (folder / "r.jsonl").write_text("".join(json.dumps({"text": word}) + "\n" for word in words))
    run("tokenize", *flags, folder / "r.jsonl")
    wanted = tokens(folder / "arrays/train/r.jsonl.bin")
    for array in (json.dumps([{"text": word, "n": [1]} for word in words]), json.dumps(words, indent=2) + "\n\n"):
        (folder / "r.json").write_text(array)
        run("tokenize", *flags, folder / "r.json")
        assert tokens(folder / "arrays/train/r.json.bin") == wanted
    (folder / "e.json").write_text(" [ ] ")
    run("tokenize", *flags, folder / "e.json")
    assert tokens(folder / "arrays/train/e.json.bin") == []
    for raw, why in (("{}", "behind record 0: a [ is wanted"), ('["a"', "behind record 1: , or ] is wanted"), ('["a",]', "record 2, line 1"),
                     ('["a"] x', "behind record 1: the array has ended"), ('["a", {"b": 1}]', "record 2: no text in the field 'text'"),
                     ('["a", {"b" 1}]', "record 2, line 1 of it")):
        (folder / "e.json").write_text(raw)
        run("tokenize", *flags, folder / "e.json", code=1, wanted=f"e.json', {why}")
    (folder / "e.json").write_text(json.dumps([*words[:1], {"b": 1}, *words[1:]]))
    run("tokenize", *flags, "--bad=skip", folder / "e.json", wanted="e.json: 1 bad records are left out")
    assert tokens(folder / "arrays/train/e.json.bin") == wanted
    lines = (folder / "r.jsonl").read_text().splitlines()
    (folder / "e.jsonl").write_text("\n".join([lines[0], "{", lines[1], '{"text": 3}', lines[2]]) + "\n")
    run("tokenize", *flags, folder / "e.jsonl", code=1, wanted="e.jsonl', line 2")
    done = run("tokenize", *flags, "--bad=skip", folder / "e.jsonl", wanted="e.jsonl: 2 bad records are left out")
    assert "e.jsonl', line 2, column" in done.stderr and "e.jsonl', line 4: no text" in done.stderr, done.stderr
    assert tokens(folder / "arrays/train/e.jsonl.bin") == wanted
    run("tokenize", *flags, "--bad=maybe", folder / "e.jsonl", code=2, wanted="--bad=maybe: stop or skip")


with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)
    texts(root)
    mixtures(root, *split(root))
    conversions(root)
    compressed(root)
    records(root)
    refusals(root)
