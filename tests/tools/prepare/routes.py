"""routes.py HECATE_DATA: routes of rollout engines become the file of --route=ids, or are refused with their place."""

import base64
import gzip
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
T, LAYERS, EXPERTS, TOPK = 6, 2, 5, 3
MODEL = [f"--pack={T}", f"--layers={LAYERS}", f"--experts={EXPERTS}", f"--topk={TOPK}"]


def run(*arguments, code=0, wanted=""):
    done = subprocess.run([PROGRAM, "routes", *map(str, arguments)], capture_output=True, text=True, check=False,
                          timeout=60)
    if done.returncode != code or wanted not in done.stderr:
        sys.exit(f"{arguments}: {done.returncode}, wanted {code} and '{wanted}'\n{done.stdout}{done.stderr}")


def draw(tokens, layers=LAYERS):
    return [[random.sample(range(EXPERTS), TOPK) for _ in range(layers)] for _ in range(tokens)]


def flat(value):
    return [value] if isinstance(value, int) else [number for part in value for number in flat(part)]


def shape(value):
    return () if isinstance(value, int) else (len(value), *shape(value[0]))


def npy(value, form="<i4", version=1, order="False"):
    """The bytes that numpy.save writes."""
    head = f"{{'descr': '{form}', 'fortran_order': {order}, 'shape': {shape(value)}, }}".encode()
    head = head.ljust(117) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    code = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f"}[form[1:]]
    return b"\x93NUMPY" + bytes([version, 0]) + length + head + struct.pack(f"<{len(flat(value))}{code}", *flat(value))


def text(raw):
    return base64.b64encode(raw).decode()


def int32(value):
    return text(struct.pack(f"<{len(flat(value))}i", *flat(value)))


def wanted(sequences, skipped=0):
    """The file: ids [sequence][layer][position][pick], behind routes one expert after the other."""
    ids = []
    for routes in sequences:
        for layer in range(LAYERS):
            ids += flat([token[skipped + layer] for token in routes])
            ids += [i % EXPERTS for i in range(len(routes) * TOPK, T * TOPK)]
    return (b"HROUTE1\n" + struct.pack("<3I", len(sequences), T, LAYERS) + struct.pack("<2I", EXPERTS, TOPK) * LAYERS +
            struct.pack(f"<{len(ids)}H", *ids))


def expect(folder, sequences, *inputs, skipped=0):
    run(*MODEL, f"--dense={skipped}", "--out", folder / "ids", *inputs)
    if (folder / "ids").read_bytes() != wanted(sequences, skipped):
        sys.exit(f"{inputs} gives other ids")


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def formats(folder):
    """Each format gives the ids that it was made of."""
    routes = [draw(n) for n in (T, 1, T - 1, 4)]
    path = folder / "a.jsonl"
    expect(folder, routes, lines(path, *({"meta_info": {"routed_experts": int32(r)}, "text": "x"} for r in routes)))
    expect(folder, routes, lines(path, *({"routed_experts": text(npy(r, "<i2"))} for r in routes)))
    expect(folder, routes, lines(path, *({"routed_experts": r} for r in routes)))
    (folder / "a.json.gz").write_bytes(gzip.compress(json.dumps([{"routed_experts": r} for r in routes]).encode()))
    expect(folder, routes, folder / "a.json.gz")
    prompt = draw(2)
    choices = [{"routed_experts": draw(n)} for n in (3, 4)]
    expect(folder, [prompt + c["routed_experts"] for c in choices],
           lines(path, {"prompt_routed_experts": prompt, "choices": choices}))
    counted = {"prompt_tokens": 2, "completion_tokens": 4}
    expect(folder, [routes[2], routes[0]], lines(path, *({"meta_info": {**counted, "routed_experts": int32(routes[i])}}
                                                         for i in (2, 0))))


def arrays(folder):
    """Arrays of every type; the inputs follow each other."""
    for form in "<i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8":
        routes = draw(5)
        (folder / "a.npy").write_bytes(npy(routes, form, version=2 if form == "<u4" else 1))
        several = [draw(T) for _ in range(3)]
        (folder / "b.npy").write_bytes(npy(several, form))
        expect(folder, [*several, routes], folder / "b.npy", folder / "a.npy")
    deeper = draw(4, LAYERS + 1)
    for token in deeper:
        token[0] = [0] * TOPK
    expect(folder, [deeper], lines(folder / "a.jsonl", {"routed_experts": int32(deeper)}), skipped=1)
    run(*MODEL[:1], "--layers=3", *MODEL[2:], "--out", folder / "ids", folder / "a.jsonl", code=1,
        wanted="token 0, layer 0: expert 0 is there twice; if the first layers have no router, --dense=N says so")


def refused(folder):
    """Each fault has a message with its place."""
    good = draw(4)
    path, out = folder / "bad.jsonl", ["--out", folder / "ids"]

    def bad(value, message, **more):
        lines(path, {"routed_experts": good}, {"routed_experts": value, **more})
        run(*MODEL, *out, path, code=1, wanted=message)
        if (folder / "ids").read_bytes()[8:12] != bytes(4):
            sys.exit(f"{message}: the file says that it is whole")

    high, twice = draw(2), draw(2)
    high[1][0][2] = EXPERTS
    twice[0][1][:2] = 1, 1
    line = "'" + str(path) + "', line 2: "
    bad(high, line + "token 1, layer 0: 5 is none of 5 experts")
    bad(int32(high).replace("=", ""), "its length is no multiple of 4") if "=" in int32(high) else None
    bad(twice, line + "token 0, layer 1: expert 1 is there twice")
    bad([[[-1] * TOPK] * LAYERS], "token 0, layer 0: -1 is none of")
    bad(draw(T + 1), "routes of 7 tokens, and a sequence has 6 (--pack)")
    bad([], "routes of 0 tokens")
    bad(draw(2, LAYERS + 1), "have 3 layers of 3 experts a token, and 2 of 3 are wanted")
    bad([[[0.5, 1, 2]] * LAYERS], "an expert is no whole number")
    bad(["x"], "no list [tokens][layers][top_k]")
    bad(7, "neither a base64 text, nor lists")
    bad(None, "there is no 'routed_experts'")
    bad("AAA", "no multiple of 4")
    bad("AA*A", "no base64 at byte 2")
    bad("AAAA", "3 bytes, and a token of 2 layers (--layers, --dense) of 3 experts (--topk) has 24")
    bad(text(npy(good, "<f4")), "type '<f4', and integers are wanted")
    bad(text(npy(good, ">i4".replace(">", "<"), order="True")), "Fortran's order")
    bad(text(npy(good)[:-1]), "wants 24 numbers of 4 bytes, and it has 95")
    bad(text(npy(good)[:60]), "head is damaged")
    bad(text(npy(flat(good))), "shape is (24,), and (tokens, layers, top_k) is wanted")
    bad(good, "routes of 4 tokens, and the engine counts 9", meta_info={"prompt_tokens": 4, "completion_tokens": 5})
    path.write_text("{\n", encoding="utf-8")
    run(*MODEL, *out, path, code=1, wanted="line 1")
    path.write_text("\n", encoding="utf-8")
    run(*MODEL, *out, path, code=1, wanted="the inputs have no sequence")
    (folder / "a.npy").write_bytes(npy([good, high * 2]))
    run(*MODEL, *out, folder / "a.npy", code=1, wanted="sequence 1: token 1, layer 0: 5 is none")
    (folder / "a.txt").write_text("text", encoding="utf-8")
    run(*MODEL, *out, folder / "a.txt", code=2, wanted="routes are JSON lines")
    run(*MODEL, path, code=2, wanted="--out=FILE, --pack=T")
    run(*MODEL[:3], "--topk=6", *out, path, code=2, wanted="--topk=6")
    run(*MODEL, "--out", folder / "none/ids", path, code=1, wanted="cannot write")


random.seed(1)
with tempfile.TemporaryDirectory() as name:
    for case in formats, arrays, refused:
        case(pathlib.Path(name))
