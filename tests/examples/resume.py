#!/usr/bin/env python3
"""resume.py [NAME...]: which changes a resumed run accepts, of all or of these. HECATEC comes from the environment.

Every setting that hecatec knows, every word of a moe, every function of the language and each of its arguments, and each
attribute of each operation of the graph is changed, one at a time, between a checkpoint and the run that goes on from it.
Settings of the cluster, and those that say where experts are, are changed for one rank and for two. Either --resume is
refused, in words that name what is another, or the losses are those of a run that was never interrupted. --resume-changed
goes on and names it, or parameters are others, and then the error does. The lists come from hecatec: new entries have
to be added to resume_cases.py."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from resume_cases import FUNCTIONS, MODEL, MOE, OTHERS, RANKS, SETTINGS

STEPS, STOP = 6, 3
CLOSE = 1e-9  # For losses in double precision, relative: sums of other machines round differently.


def is_asked(name):
    return len(sys.argv) == 1 or name in sys.argv


def fail(why):
    sys.exit(f"not so: {why}")


def hecatec(*arguments):
    done = subprocess.run([os.environ["HECATEC"], *arguments], capture_output=True, text=True)
    return done if done.returncode == 0 else fail(f"{arguments}: {done.stderr[-2000:]}")


def known():
    """Settings and words of a moe, functions and their arguments, as hecatec lists them."""
    rows = hecatec("--explain=settings").stdout.splitlines()
    settings = {row.split()[0] for row in rows if not row.startswith("moe: ")}
    words = {row.split()[1] for row in rows if row.startswith("moe: ")}
    functions = set()
    for row in hecatec("--print-builtins").stdout.splitlines():
        found = re.match(r"(\w+)\((.*?)\)  ", row)
        name, arguments = found.groups()
        if name not in FUNCTIONS and "=" not in arguments:
            numbers = "exp(x), 2" if "," in arguments else "exp(x)"
            FUNCTIONS[name] = ("  return dropout(y", f"  y = y + {name}({numbers})\n  return dropout(y")
        functions.add(name)
        functions |= {f"{found.group(1)}.{name}" for name in re.findall(r"(\w+) = ", found.group(2))}
    return settings, words, functions


def check_vias():
    """Checks that the target of each "via" exists."""
    others = {name.split()[0] for name, *_ in OTHERS + RANKS} | {"BF16", "WIRE"}
    for key, other in SETTINGS.items():
        if other.startswith("via ") and other[4:] not in others:
            fail(f"{key} is changed {other}, which is not there")


def check_known():
    check_vias()
    for what, here, there in zip(("settings", "words of a moe", "functions"), (SETTINGS, MOE, FUNCTIONS), known()):
        if set(here) != there:
            fail(f"this script has another list of {what} than hecatec: {sorted(set(here) ^ there)}")


def edited(replacements):
    text = MODEL
    for old, new in replacements:
        if old not in text:
            fail(f"the model has no {old!r}")
        text = text.replace(old, new)
    return text


def compiled(text, *settings):
    pathlib.Path("m.moe").write_text(text)
    hecatec("-w", "-O0", *settings, "m.moe", "-o", "changed")


def ran(*arguments):
    done = subprocess.run(["./changed", *arguments], capture_output=True, text=True)
    if done.returncode:
        fail(f"{arguments}: {done.stderr}")


def write_others(text):
    """Other names, formats and measurements for the same."""
    pathlib.Path("text.bin").write_bytes(struct.pack("<3i1012x", 20240520, 1, len(text)) + b"".join(bytes([token, 0]) for token in text))
    os.symlink("ck", "ck2")
    os.symlink("log", "log2")
    calibrate = pathlib.Path(os.environ["HECATEC"]).with_name("hecate-calibrate")
    subprocess.run([calibrate, "times", "1", "128"], check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    pathlib.Path("links").write_text('{"hecate_links": 1, "nodes": 1, "ranks": 2, "intra": '
                                     '{"latency": 2e-05, "bandwidth": 3e+08, "pair": 4e+08, "all": 3e+08}}\n')


def train(program, *more, ranks=1):
    """The output of rank 0, and the errors of all."""
    learns = program.startswith("base") or "distill" in pathlib.Path("m.moe").read_text()
    given = {"--data": "text", "--checkpoint": "ck", "--log": "log"} | ({"--teacher": "teacher"} if learns else {})
    default = [word for option, value in given.items() if option not in more for word in (option, value)]
    command = [f"./{program}", "train", *default, *more]
    if ranks == 1:
        return subprocess.run(command, capture_output=True, text=True, timeout=120)
    pathlib.Path("meet").unlink(missing_ok=True)
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {
        "HECATE_RANK": str(rank), "HECATE_LOCAL_RANK": str(rank), "HECATE_RANKS": str(ranks), "HECATE_RENDEZVOUS": "meet"})
        for rank in range(ranks)]
    said = [process.communicate(timeout=120) for process in running]
    return subprocess.CompletedProcess(command, max(process.returncode for process in running), said[0][0], "".join(err for _, err in said))


def losses():
    return {line["step"]: line["loss"] for line in map(json.loads, pathlib.Path("log").read_text().splitlines())}


def restore():
    shutil.rmtree("ck", ignore_errors=True)
    shutil.copytree("kept", "ck")
    pathlib.Path("log").unlink(missing_ok=True)


def goes_on(name, whole, done):
    there = losses()
    for step in range(STOP + 1, STEPS + 1):
        if step not in there or abs(there[step] - whole[step]) > CLOSE * abs(whole[step]):
            fail(f"{name}: nothing is said, and step {step} has the loss {there.get(step)}, not {whole[step]}\n{done.stdout}")


def resume(name, named, whole, *more, ranks=1):
    """Whether it was refused. `named`: words that a refusal has to name; None: nothing may be refused."""
    restore()
    done = train("changed", "--resume", *more, ranks=ranks)
    if done.returncode == 0:
        goes_on(name, whole, done)
        if named is not None:
            fail(f"{name}: it should be refused")
        return False
    if named is None or not re.search(named, done.stderr):
        fail(f"{name}: {named} is not named: {done.stderr}")
    if "resumed:" in done.stdout:
        fail(f"{name}: it says that it goes on, and does not")
    restore()
    done = train("changed", "--resume", "--resume-changed", *more, ranks=ranks)
    if not re.search(named, done.stderr):
        fail(f"{name}: --resume-changed does not say what it allows: {done.stderr}")
    if done.returncode and not re.search("is of another model|not a multiple", done.stderr):
        fail(f"{name}: --resume-changed is refused: {done.stderr}")
    return True


HARMLESS = {"train.optimizer.norm_eps", "train.skip_max", "train.eval_every", "train.eval_steps", "train.optimizer.momentum", "train.objective.rate",
            "train.schedule.decay", "train.precision.master"}


def settings(whole, refusals):
    for key, other in SETTINGS.items():
        if other.startswith("via ") or other == "one value" or not is_asked(key):
            continue
        free = key in HARMLESS or not key.startswith(("train.", "data."))
        named = None if free else re.escape(key)
        if other.startswith("c "):
            compiled(MODEL, "--set", f"{key}={other[2:]}")
            refusals += [key] * resume(key, named, whole)
        else:
            shutil.copy("base", "changed")
            refusals += [key] * resume(key, named, whole, "--set", f"{key}={other}")


def parts(whole, refusals):
    for table in (MOE, FUNCTIONS):
        for word, change in table.items():
            if not is_asked(word):
                continue
            compiled(edited([change]))
            refusals += [word] * resume(word, r"computes something else|: [\w.]+ was|was not there|is not here", whole)
    for name, replacements, arguments, more, named in OTHERS:
        if not is_asked(name):
            continue
        compiled(edited(replacements), *arguments)
        refusals += [name] * resume(name, named, whole, *more)


def begin(text, *arguments, ranks=1):
    """A checkpoint of step STOP by the program `base`; the losses of the whole run."""
    compiled(text, *arguments)
    shutil.move("changed", "base")
    shutil.rmtree("ck", ignore_errors=True)
    shutil.rmtree("kept", ignore_errors=True)
    pathlib.Path("log").unlink(missing_ok=True)
    done = train("base", "--set", f"checkpoint.every={STOP}", ranks=ranks)
    if done.returncode:
        fail(done.stderr)
    shutil.rmtree(f"ck/step-{STEPS}")
    shutil.move("ck", "kept")
    return losses()


def of_ranks(one):
    """Two ranks compute what one does, `one`, and go on from each other's checkpoints."""
    two = ["--ranks=tcp", "--set", "cluster.devices=2"]
    whole = begin(MODEL, *two, ranks=2)
    if any(abs(whole[step] - one[step]) > CLOSE * one[step] for step in one):
        fail(f"two ranks compute {whole}, and one {one}")
    changes = [(f"RANKS {key}", ["--set", f"{key}={other[2:]}"], 2) for key, other in SETTINGS.items()
               if key.startswith(("cluster.", "parallel.")) and other.startswith("c ")]
    for name, arguments, ranks in RANKS + changes:
        if is_asked(name) or is_asked("RANKS"):
            compiled(MODEL, *two, *arguments)
            resume(name, None, whole, ranks=ranks)


def of_bf16():
    """The precision of the router counts where products are rounded."""
    text, name = MODEL.replace("precision = fp64", "precision = bf16"), "train.precision.router"
    whole = begin(text)
    compiled(text)
    resume("BF16 nothing", None, whole)
    compiled(text, "--set", f"{name}=bf16")
    resume("BF16", name, whole)
    pathlib.Path("log").unlink()
    shutil.rmtree("ck")
    train("changed")
    if losses() == whole:
        fail(f"{name} changes nothing")


def of_wire():
    """Gradients that travel rounded are others: only between ranks."""
    text, two, name = MODEL.replace("precision = fp64", "precision = fp32"), ["--ranks=tcp", "--set", "cluster.devices=2"], "parallel.gradients"
    narrow = ["--set", f"{name}=bf16"]
    whole = begin(text, *two, ranks=2)
    compiled(text, *two, *narrow)
    resume("WIRE", name, whole, ranks=2)
    compiled(text, *narrow)
    restore()
    done = train("changed", "--resume")
    if done.returncode:
        fail(f"WIRE: one rank sends nothing, and is refused: {done.stderr}")
    begin(text, *two, *narrow, ranks=2)
    compiled(text, *two, *narrow)
    resume("WIRE nothing", None, losses(), ranks=2)
    compiled(text, *two)
    resume("WIRE back", name, losses(), ranks=2)


def changed_value(text):
    """Another value of an attribute, or None."""
    if text in ("true", "false"):
        return "false" if text == "true" else "true"
    if re.fullmatch(r"-?[0-9.]+e[-+][0-9]+ : f64", text):
        return f"{float(text[:-6]) * 0.75 + 0.01:e} : f64"
    return f"{int(text[:-6]) + 1} : i64" if re.fullmatch("-?[0-9]+ : i64", text) else None


def of_graph(whole, refusals):
    """Each attribute of each kind of operation: numbers and flags, where hecatec takes another one."""
    pathlib.Path("m.moe").write_text(MODEL)
    lines = hecatec("-w", "--compile-to=graph", "m.moe", "-o", "-").stdout.splitlines(True)
    seen, tried = set(), 0
    for number, line in enumerate(lines):
        operation = re.search(r'"(moe\.\w+)"\(.*?\) \{', line)
        for attribute in re.finditer(r"(\w+) = (true|false|[-+.e0-9]+ : [if]64)", line) if operation else ():
            what, value = f"{operation[1]}.{attribute[1]}", changed_value(attribute[2])
            if what in seen or value is None:
                continue
            seen.add(what)
            here = line[:attribute.start(2)] + value + line[attribute.end(2):]
            pathlib.Path("changed.mlir").write_text("".join(lines[:number] + [here] + lines[number + 1:]))
            command = [os.environ["HECATEC"], "-w", "-O0", "--compile-from=graph", "changed.mlir", "-o", "changed"]
            if subprocess.run(command, capture_output=True).returncode:
                continue
            tried += 1
            restore()
            done = train("changed", "--resume")
            if done.returncode == 0:
                goes_on(f"{what} = {value}", whole, done)
            elif not re.search(r"computes something else|: [\w.]+ was|train\.parameters|is of another model", done.stderr):
                fail(f"{what} = {value}: it is not named: {done.stderr}")
            refusals += [what] * (done.returncode != 0)
    if tried < 10:
        fail(f"only {tried} attributes of {sorted(seen)} could be changed")


def tensors(path):
    """The tensors of a file of safetensors in double precision."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        found[name] = struct.unpack(f"<{(end - begin) // 8}d", data[8 + size + begin:8 + size + end])
    return found


def largest_move(here, there):
    before, behind = (tensors(pathlib.Path(f"ck/step-{step}/parameters.0.safetensors")) for step in (here, there))
    return max(abs(a - b) for name in before for a, b in zip(before[name], behind[name]))


def optimizers():
    """States are their optimizer's: the other one begins at zero, which is said, and its first step is no longer than any."""
    shutil.rmtree("ck", ignore_errors=True)
    shutil.rmtree("kept")
    shutil.copy("base", "changed")
    muon = ["--set", "train.optimizer=muon", "--set", "train.optimizer.decay=0"]
    adamw = ["--set", "train.optimizer=adamw", "--set", "train.optimizer.decay=0"]
    every = ["--set", "checkpoint.every=1", "--set", "checkpoint.keep=9"]
    for first, second, words in ((muon, adamw, "Muon's there, AdamW's here"), (adamw, muon, "AdamW's there, Muon's here")):
        shutil.rmtree("ck", ignore_errors=True)
        pathlib.Path("log").unlink(missing_ok=True)
        done = train("base", *first, *every)
        whole = losses()
        for step in range(STOP + 1, STEPS + 1):
            shutil.rmtree(f"ck/step-{step}")
        shutil.copytree("ck", "kept", dirs_exist_ok=True)
        done = train("base", *first, *every, "--resume")
        if done.returncode or losses() != whole or "begin at zero" in done.stderr:
            fail(f"{first}: going on with the same optimizer gives the same bits {done.stderr}")
        restore()
        done = train("base", *second, *every, "--resume", "--resume-changed")
        if done.returncode or words not in done.stderr or "these begin at zero" not in done.stderr:
            fail(f"{second}: it is said whose states are dropped: {done.stderr}")
        rate = [line["lr"] for line in map(json.loads, pathlib.Path("log").read_text().splitlines())][0]
        if second is adamw and largest_move(STOP, STOP + 1) > 1.2 * rate:
            fail(f"AdamW moves an element by {largest_move(STOP, STOP + 1) / rate} learning rates")
        made_older(f"kept/step-{STOP}")
        restore()
        done = train("base", *first, *every, "--resume")
        if first is adamw and (done.returncode or abs(losses()[STEPS] - whole[STEPS]) > CLOSE):
            fail(f"a checkpoint of an older version goes on: {done.stderr}")
        if first is muon and "is of an older version, which does not say whose" not in done.stderr:
            fail(f"Muon's of an older version is refused: {done.stderr}")


def records():
    """A record of routing that begins with a resumed run has the steps from there on, and goes on with the next one."""
    shutil.rmtree("ck", ignore_errors=True)
    every = ["--set", "checkpoint.every=1", "--set", "checkpoint.keep=9"]

    def recorded(name, *more):
        done = train("base", *every, "--record-loads", f"{name}.loads", "--record-ids", f"{name}.ids", *more)
        if done.returncode:
            fail(f"{name}: {done.stderr}")

    def go_back(step):
        for path in pathlib.Path("ck").glob("step-*"):
            if int(path.name[5:]) > step:
                shutil.rmtree(path)

    recorded("whole")
    go_back(2)
    recorded("later", "--resume")
    go_back(4)
    recorded("later", "--resume")
    whole, later = (pathlib.Path(f"{name}.loads").read_bytes() for name in ("whole", "later"))
    row = (len(whole) - 28) // STEPS
    if later[:8] + struct.pack("<I", STEPS) + later[12:28] != whole[:28] or later[28:] != whole[28 + 2 * row:]:
        fail("a record of loads that begins with a resumed run has the steps from there on")
    if struct.unpack("<I", later[8:12]) != (STEPS - 2,):
        fail("it says how many steps it has")
    whole, later = (pathlib.Path(f"{name}.ids").read_bytes() for name in ("whole", "later"))
    head = 8 + 4 * (3 + 2 * 2)
    row = (len(whole) - head) // STEPS
    if later[:head] != whole[:head] or later[head + 2 * row:] != whole[head + 2 * row:]:
        fail("a record of ids that begins with a resumed run has the sequences from there on")


def routes():
    """The content, not the name, counts of a file that routes are forced to."""
    shutil.rmtree("ck", ignore_errors=True)
    for name, seed in (("one", "1"), ("two", "2")):
        done = subprocess.run(["./base", "train", "--data", "text", "--teacher", "teacher", "--seed", seed, "--record-ids",
                               f"{name}.ids"], capture_output=True, text=True)
        if done.returncode:
            fail(done.stderr)
    shutil.copy("one.ids", "same.ids")
    train("base", "--set", "checkpoint.every=1", "--route", "ids:one.ids")
    shutil.rmtree(f"ck/step-{STEPS}")
    done = train("base", "--resume", "--route", "ids:two.ids")
    if done.returncode == 0 or "--route was ids: " not in done.stderr:
        fail(f"other routes are named: {done.stderr}")
    done = train("base", "--resume", "--route", "ids:same.ids")
    if done.returncode:
        fail(f"a copy is the same: {done.stderr}")


def made_older(folder):
    """As the version before wrote it, which noted less."""
    folder = pathlib.Path(folder)
    facts = json.loads((folder / "state.json").read_text())
    for key in ("model", "muon", "route", "version"):
        del facts[key]
    for key in [key for key in facts["settings"] if key.startswith(("data.", "train.precision", "train.objective.weight"))]:
        del facts["settings"][key]
    text = json.dumps(facts, separators=(",", ":"), sort_keys=True).encode() + b"\n"
    (folder / "state.json").write_bytes(text)
    index = json.loads((folder / "index.json").read_text())
    for entry in index["files"]:
        if entry["name"] == "state.json":
            entry.update(bytes=len(text), crc32=f"{zlib.crc32(text):08x}")
    del index["crc32"]
    whole = json.dumps(index, separators=(",", ":"), sort_keys=True).encode()
    index["crc32"] = f"{zlib.crc32(whole):08x}"
    (folder / "index.json").write_text(json.dumps(index))


def main():
    check_known()
    words = "the quick brown fox jumps over the lazy dog and on it goes ".split()
    text = bytes(ord(letter) % 64 for k in range(3000) for letter in words[k * k * 7 % 13 % len(words)] + " ")
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        pathlib.Path("text").write_bytes(text)
        pathlib.Path("val").write_bytes(text[:2000])
        compiled(re.sub("  loss soft.*\n", "", MODEL))
        for name, seed in (("teacher", "1"), ("other.teacher", "2")):
            ran("train", "--data", "text", "--steps", "1", "--seed", seed, "--save", "p")
            ran("eval", "--val", "text", "--load", "p", "--write-teacher", name)
        write_others(text)
        ran("eval", "--val", "val", "--load", "p", "--write-teacher", "val.teacher")
        ran("eval", "--val", "text.bin", "--set", "data.format=llmc", "--load", "p", "--write-teacher", "bin.teacher")
        whole, refusals = begin(MODEL), []
        settings(whole, refusals)
        parts(whole, refusals)
        if is_asked("graph"):
            of_graph(whole, refusals)
        if is_asked("optimizers"):
            optimizers()
        if is_asked("routes"):
            routes()
        if is_asked("records"):
            records()
        if is_asked("BF16"):
            of_bf16()
        if is_asked("WIRE"):
            of_wire()
        if len(sys.argv) == 1 or any(name.startswith("RANKS") for name in sys.argv[1:]):
            of_ranks(whole)
        print(f"{len(refusals)} changes are refused by name, the others change nothing")


main()
