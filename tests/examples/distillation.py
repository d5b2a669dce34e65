"""distillation.py ROOT TEXT: the commands of docs/distillation.md do what it says, with fewer steps; and its Python writes the
file that the teacher writes, where there is NumPy. Environment: HECATEC."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
FEWER = "--steps 12 --set train.tokens=512 --set train.schedule.warmup=2 --log"


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def losses(log, name):
    return [line["losses"][name] for line in map(json.loads, pathlib.Path(log).read_text().splitlines()) if "losses" in line and "loss" in line]


def check_python(text, tokens):
    """Its function, with the logits that the teacher writes: of all tokens but those behind the last whole piece."""
    try:
        import numpy as np
    except ImportError:
        print("no NumPy: the Python of the page has not been run")
        return
    space = {}
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], space)
    run("./teacher eval --val book.txt --load teacher.safetensors --logits logits")
    data = pathlib.Path("logits").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    logits = np.frombuffer(data[8 + size:], "<f4").reshape(-1, 256)
    whole = len(logits)
    padded = np.concatenate([logits, np.zeros((len(tokens) - whole, 256), "<f4")])
    space["write_teacher"]("python.teacher", np.frombuffer(tokens, np.uint8), lambda begin, end: padded[begin:end], 256, 16)
    own, other = (pathlib.Path(name).read_bytes() for name in ("book.teacher", "python.teacher"))
    rows = [np.frombuffer(file[64:], [("ids", "<u2", 16), ("log_probs", "<f2", 16)])[:whole] for file in (own, other)]
    if own[:64] != other[:64] or len(own) != len(other):
        sys.exit("another header, or another size")
    apart = np.abs(rows[0]["log_probs"].astype(float) - rows[1]["log_probs"].astype(float))
    if (rows[0]["ids"] != rows[1]["ids"]).any() or not apart.max() <= 2**-8:
        sys.exit(f"other entries: {(rows[0]['ids'] != rows[1]['ids']).sum()}, {apart.max()}")


def main(root, book):
    text = (root / "docs" / "distillation.md").read_text()
    commands = re.search(r"```sh\n(.*?)```", text, re.S)[1].splitlines()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.symlink(root / "examples", "examples")
        tokens = book.read_bytes()[:20000]
        pathlib.Path("book.txt").write_bytes(tokens)
        for command in commands:
            program = command.split()[0]
            command = re.sub(r"^hecatec", os.environ["HECATEC"] + " -O1 -w", command)
            if " train " in command:
                command += f" {FEWER} {program}.log"
            run(command)
        soft = losses("student.log", "soft")
        if len(soft) != 12 or not soft[-1] < soft[0]:
            sys.exit(f"the student does not learn: {soft}")
        check_python(text, tokens)


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
