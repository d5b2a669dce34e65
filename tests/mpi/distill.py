#!/usr/bin/env python3
"""A teacher's file and students of it, on one and several ranks. HECATEC, RANKS, MPI_TESTS and TEXT come from the environment.

A teacher writes the likeliest tokens of its logits, every row of the file, from one rank and from four the same bytes;
students on 1, 2 and 4 ranks learn the same from it, and gradients are differences of the loss; a teacher's entries for
the next tokens are learned as they are; eval --losses has the losses of tokens; files of other tokens, missing ones and
a checkpoint's with another teacher are refused."""
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hf"))
import weights  # noqa: E402

T, V, ENTRIES, STEPS, TOKENS = 16, 256, 6, 4, 1234
STUDENTS = {  # Ranks, settings.
    "one": (1, []),
    "ep": (2, ["parallel.experts=ep"]),
    "fssdp": (4, ["parallel.placement.reshard=every(2)", "parallel.placement.memory=2"]),
}


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def build(name, ranks=1, settings=(), soft=True, far=True, warmth=2):
    given = [f"parallel.microbatch={16 // ranks}", f"cluster.devices={ranks}", "train.precision=fp64", "data.order=random", *settings]
    options = [word for key in given for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", "-D", f"soft={str(soft).lower()}", "-D", f"far={str(far).lower()}", "-D", f"warmth={warmth}", *options,
                    os.environ["MPI_TESTS"] + "/small.moe", "-o", name], check=True)


def run(name, *words, ranks=1, code=0):
    launcher = ["sh", os.environ["RANKS"], str(ranks)] if ranks > 1 else []
    done = subprocess.run([*launcher, f"./{name}", *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode != code:
        sys.exit(f"{name} {words}: ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout if code == 0 else done.stderr


def train(name, *more, ranks=1, code=0, teacher=("--teacher", "said")):
    return run(name, "train", "--data", "text", *teacher, "--steps", STEPS, *more, ranks=ranks, code=code)


def logits_of(count, text):
    """[count] rows, as eval writes those of a text that is the first of the validation data."""
    run("teacher", "eval", "--val", text, "--load", "teacher.st", "--logits", "logits", "--write-teacher", f"{text}.again", "--entries", ENTRIES)
    dtype, shape, data = weights.read_safetensors("logits")["logits"]
    check(dtype == "F64" and shape[1:] == [T, V], shape)
    rows = struct.unpack(f"<{len(data) // 8}d", data)
    return [rows[i * V:(i + 1) * V] for i in range(count)]


def half(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def check_file(text):
    """Its header, and its rows against logits: those of whole pieces, and of the last T tokens, which are a piece of a text of
    their own."""
    data = pathlib.Path("said").read_bytes()
    want = struct.pack("<8s2IQ4I", b"hecteach", 1, ENTRIES, TOKENS, V, zlib.crc32(text), 2, 2).ljust(64, b"\0")
    check(data[:64] == want, data[:64])
    row = struct.Struct(f"<{ENTRIES}H{ENTRIES}e")
    rows = [row.unpack_from(data, 64 + t * row.size) for t in range(TOKENS)]
    check(len(data) == 64 + TOKENS * row.size, len(data))
    pathlib.Path("end").write_bytes(text[-T:] + b"x")
    whole = (TOKENS - 1) // T * T
    logits = logits_of(whole, "text") + logits_of(T, "end")[whole - TOKENS:]
    check(pathlib.Path("text.again").read_bytes() == data, "beside logits the same is written")
    check(len(logits) == TOKENS, len(logits))
    for said, z in zip(rows, logits, strict=True):
        every = math.log(sum(map(math.exp, z)))
        best = sorted(range(V), key=lambda v: (-z[v], v))[:ENTRIES]
        check(list(said[:ENTRIES]) == best, (said, best))
        check(all(abs(p - half(z[v] - every)) <= 2**-11 * abs(p) for v, p in zip(best, said[ENTRIES:])), said)


def soft_losses(lines):
    return [line["losses"]["soft"] for line in lines if "loss" in line]


def students():
    logs = {}
    for name, (ranks, settings) in STUDENTS.items():
        build(name, ranks, settings)
        train(name, "--save", f"{name}.st", "--log", f"{name}.log", ranks=ranks)
        logs[name] = [json.loads(line) for line in pathlib.Path(f"{name}.log").read_text().splitlines()]
    for name in ("ep", "fssdp"):
        apart = [abs(a / b - 1) for a, b in zip(soft_losses(logs["one"]), soft_losses(logs[name]), strict=True)]
        check(len(apart) == STEPS and max(apart) < 1e-12, f"{name} learns as one rank does: {apart}")
        one, other = weights.read_numbers("one.st"), weights.read_numbers(f"{name}.st")
        check(one.keys() == other.keys(), "parameters")
        for path, values in one.items():
            check(math.dist(values, other[path]) <= 1e-10 * math.hypot(*values), f"{path} of {name}")
    header = next(line for line in logs["one"] if "run" in line or "program" in line)
    header = header.get("run", header)
    check(header["losses"]["soft"]["teacher"] is True and header["losses"]["far"]["teacher"] is False, header["losses"])
    check("said" in header["settings"]["data.teacher"], header["settings"])
    return logs["one"]


def check_alone():
    """From the teacher alone: tokens have no weight, and no gradient."""
    build("alone", settings=["train.objective=next_token(weight=0)"], far=False)
    train("alone", "--log", "alone.log")
    for line in map(json.loads, pathlib.Path("alone.log").read_text().splitlines()):
        if "loss" in line:
            want = 0.5 * line["losses"]["soft"] + line["aux"]
            check(abs(line["loss"] / want - 1) < 1e-12 and line["cross_entropy"] > 0, line)
    run("alone", "train", "--data", "text", "--check-grad", 2)


def check_sure(text):
    """A teacher that is sure of each next token: for any drawn sequence, both losses are the same."""
    head = struct.pack("<8s2IQ4I", b"hecteach", 1, 2, TOKENS, V, zlib.crc32(text), 4, 4).ljust(64, b"\0")
    rows = (struct.pack("<2I2f", text[(t + 1) % TOKENS], 7, -3.5, -math.inf) for t in range(TOKENS))
    pathlib.Path("sure.said").write_bytes(head + b"".join(rows))
    build("sure", *STUDENTS["fssdp"], warmth=1)
    train("sure", "--log", "sure.log", "--save", "sure.st", ranks=4, teacher=("--teacher", "sure.said"))
    for line in map(json.loads, pathlib.Path("sure.log").read_text().splitlines()):
        if "loss" in line:
            check(abs(line["losses"]["soft"] / line["cross_entropy"] - 1) < 1e-12, line)
    said = json.loads(run("sure", "eval", "--val", "text", "--load", "sure.st", "--teacher", "sure.said", "--json", ranks=4))
    check(abs(said["losses"]["soft"] / said["loss"] - 1) < 1e-12, said)


def check_students(lines):
    plain = [line["cross_entropy"] for line in lines if "loss" in line]
    check(all(soft > 0 and soft != hard for soft, hard in zip(soft_losses(lines), plain)), "two losses")
    for name, ranks in ("one", 1), ("fssdp", 4):
        said = run(name, "train", "--data", "text", "--check-grad", 2, ranks=ranks)
        check(said.count("worst relative error") == 1, said)


def check_evaluation():
    eval_of = ["eval", "--val", "text", "--load", "one.st", "--json"]
    said = json.loads(run("one", *eval_of, "--teacher", "said", "--losses", "losses"))
    again = json.loads(run("fssdp", *eval_of, "--teacher", "said", "--losses", "losses4", ranks=4))
    check(abs(said["losses"]["soft"] / again["losses"]["soft"] - 1) < 1e-12, (said, again))
    lost = weights.read_numbers("losses")["losses.soft"]
    check(abs(sum(lost) / len(lost) / said["losses"]["soft"] - 1) < 1e-9, said)
    check(max(abs(a - b) for a, b in zip(lost, weights.read_numbers("losses4")["losses.soft"])) < 1e-9, "of four ranks")
    without = json.loads(run("one", *eval_of))
    check(without["losses"]["soft"] is None and without["loss"] == said["loss"], without)
    words = run("one", *eval_of[:-1])
    check("loss far" in words and "loss soft" not in words, words)


def check_refusals(text):
    said = train("one", teacher=(), code=2)
    check("the loss soft is against a teacher: give --teacher FILE" in said, said)
    said = run("teacher", "train", "--data", "text", "--teacher", "said", code=2)
    check("has no loss `distill`, which a teacher is for" in said, said)
    pathlib.Path("other").write_bytes(text[:-1] + b"?")
    said = run("one", "train", "--data", "other", "--teacher", "said", code=1)
    check("'said' is of other tokens than 'other': of 1234 with the checksum" in said, said)
    for more in ["--sequences", 3], ["--val", "other"]:
        said = run("teacher", "eval", "--val", "text", "--load", "teacher.st", "--write-teacher", "no", *more, code=2)
        check("--write-teacher is of one whole file" in said and not pathlib.Path("no").exists(), said)
    said = run("teacher", "eval", "--val", "text", "--load", "teacher.st", "--write-teacher", "text", code=2)
    check("text" in said and pathlib.Path("text").read_bytes() == text, said)


def check_checkpoints():
    """A run that goes on is the same run; with what another teacher says it is refused."""
    halves = ["--checkpoint", "ck", "--set", "checkpoint.every=2"]
    train("one", *halves)
    data = bytearray(pathlib.Path("said").read_bytes())
    data[64] ^= 1  # Another id.
    pathlib.Path("said2").write_bytes(data)
    shutil.rmtree("ck/step-4")
    said = train("one", *halves, "--resume", teacher=("--teacher", "said2"), code=1)
    check("teacher's file 1 was" in said, said)
    train("one", *halves, "--resume", "--save", "resumed.st")
    check(pathlib.Path("resumed.st").read_bytes() == pathlib.Path("one.st").read_bytes(), "a run goes on")


def main():
    text = pathlib.Path(os.environ["TEXT"]).read_bytes()[:TOKENS]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        pathlib.Path("text").write_bytes(text)
        build("teacher", soft=False)
        build("four", 4, ["parallel.experts=fssdp"], soft=False)
        run("teacher", "train", "--data", os.environ["TEXT"], "--steps", 20, "--save", "teacher.st")
        for name, ranks, to in ("teacher", 1, "said"), ("four", 4, "said4"):
            run(name, "eval", "--val", "text", "--load", "teacher.st", "--write-teacher", to, "--entries", ENTRIES, ranks=ranks)
        check(pathlib.Path("said").read_bytes() == pathlib.Path("said4").read_bytes(), "four ranks write the same")
        check_file(text)
        check_students(students())
        check_alone()
        check_sure(text)
        check_evaluation()
        check_refusals(text)
        check_checkpoints()


main()
