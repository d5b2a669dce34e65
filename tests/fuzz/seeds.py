#!/usr/bin/env python3
"""seeds.py ROOT HECATEC OUT: small inputs for every fuzz target, one folder each, to start from."""
import base64
import bz2
import gzip
import json
import lzma
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

NO_LEAKS = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # MLIR keeps its contexts until exit.
FLAGS = ["-DT=8", "-DL=3\0train.steps=10", "cluster.devices=2\0parallel.experts=ep", "train.precision=fp64",
         "train.objective=masked(0.3)\0parallel.microbatch=auto(1, 2)"]


def models(root):
    for folder in ["examples", "tests/lang", "tests/ir", "tests/reference/models", "tests/codegen"]:
        yield from sorted((root / folder).glob("*.moe"))


def front(root):
    for i, path in enumerate(models(root)):
        text = path.read_bytes()
        yield text
        yield text + b"\0" + FLAGS[i % len(FLAGS)].encode()


def shorter(text):
    """IR without its locations: the same, to a fuzzer."""
    text = re.sub(rb' loc\((?:"[^"]*"\()?(?:#loc\d*|unknown)\)?\)', b"", text)
    return re.sub(rb"(?m)^#loc.*\n", b"", text)


def module(root, hecatec):
    for folder in ["tests/ir", "tests/passes", "tests/codegen"]:
        for path in sorted((root / folder).glob("*.mlir")):
            yield from (b"\0" + part for part in path.read_bytes().split(b"// -----"))
    for flags in [["cluster.devices=1"], ["cluster.devices=2", "parallel.experts=ep"],
                  ["cluster.devices=2", "parallel.experts=fssdp"], ["train.precision=bf16"]]:
        yield from stages(hecatec, [word for flag in flags for word in ("--set", flag)])


# So small that the text of its last stage is worth mutating.
SMALL = """dim V = 8, T = 4, D = 4, E = 2, F = 4, H = 2, A = 2
block ffn(x[T, D]) -> [T, D] {
  param w1[D, F], w2[F, D]
  return relu(x @ w1) @ w2
}
block attention(x[T, D]) -> [T, D] {
  param wq[D, H, A], wo[H, A, D]
  q = rope(x @ wq)
  return sdpa(q, q, q, causal = true) @ wo
}
moe sparse(x[T, D]) -> [T, D] {
  experts = E * ffn
  router { topk = 1 }
  balance { aux = 0.1 }
}
model m(ids[T]) -> [T, V] {
  param embed[V, D]
  x = embed[ids]
  repeat i < 2 { x = x + sparse(rmsnorm(x + attention(x))) }
  return x @ embed
}
train { tokens = 8 }
parallel { microbatch = 1 }
"""


def stages(hecatec, flags):
    """The files of --save-temps: NAME.07.STAGE.mlir is read back at step 7."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "m.moe").write_text(SMALL)
        subprocess.run([hecatec, "-w", *flags, f"--save-temps={folder}/temps", "-S", "-o", f"{folder}/m.c",
                        f"{folder}/m.moe"], env=NO_LEAKS, check=True)
        for path in sorted((folder / "temps").glob("*.mlir")):
            yield bytes([int(path.name.split(".")[1])]) + shorter(path.read_bytes())


def data():
    yield b"\x04" + b"a fox and a dog met at the old well; " * 6
    for magic, version, form in (20240520, 1, "H"), (20240801, 7, "I"):
        head = struct.pack("<3i", magic, version, 60).ljust(1024, b"\0")
        yield b"\x09" + head + struct.pack(f"<60{form}", *range(60))
        weights = b"hcweight" + struct.pack("<q", 56) + bytes(range(7))  # Sequences of whole documents.
        head = struct.pack("<4i", magic, version, 56, 7).ljust(1024, b"\0")
        halves = b"hcwhalfs" + struct.pack("<q56e", 56, *(i / 55 for i in range(56)))
        for beside in weights, halves:
            yield b"\x19" + struct.pack("<H", len(beside)) + beside + head + struct.pack(f"<56{form}", *range(56))


def teacher():
    for ids, logs in ("H", "e"), ("I", "f"):
        head = struct.pack("<8s2IQ4I", b"hecteach", 1, 3, 5, 300, 0xC0FFEE, struct.calcsize(ids), struct.calcsize(logs))
        yield head.ljust(64, b"\0") + struct.pack(f"<3{ids}3{logs}", 7, 299, 0, -0.5, -1.25, -float("inf")) * 5


def tokenizer(root):
    """A tokenizer.json, a NUL, a text; small, so that most changes hit something."""
    for path in sorted((root / "tests/runtime/tokenizer").glob("*.json")):
        json_text = json.loads(path.read_text(encoding="utf-8"))
        if "model" not in json_text:  # patterns.json.
            continue
        keep = [line for line in json_text["model"]["merges"]][:40]
        names = {name: i for name, i in json_text["model"]["vocab"].items()
                 if i < 300 or any(name in ("".join(pair), *pair) for pair in keep)}
        json_text["model"].update(merges=keep, vocab=names)
        yield json.dumps(json_text).encode() + "\0naïve <|im_start|> the  there\n12345 日本 [MASK] ".encode() + b"\xff\xe2\x82"


def chat(root):
    """A template, a NUL, a record."""
    call = {"function": {"name": "f", "arguments": {"a": [1, None, 0.5]}}}
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
             {"role": "assistant", "content": "a", "tool_calls": [call]}, {"role": "tool", "content": "t"},
             {"role": "assistant", "content": "<think>b</think>c"}, {"role": "user", "content": "v"}, {"role": "assistant", "content": "d"}]
    records = ({"messages": turns, "tools": [{"function": {"name": "f", "description": "g", "parameters": {"type": "object"}}}]},
               {"messages": turns[1:2] + turns[6:]}, {"prompt": "u", "completion": "a"},
               {"prompt": "u", "chosen": "a", "rejected": turns[6:]}, {"chosen": turns[:3], "rejected": turns[:2] + turns[6:]})
    for path in sorted((root / "tests/tools/prepare/templates").glob("*.jinja")):
        for record in records:
            yield path.read_bytes() + b"\0" + json.dumps(record).encode()


def sources():
    yield b"\0" + b'{"text": "a fox"}\n\n{"text": "and a \\u0000 dog", "n": [1, {}]}\n'
    yield b"\1a line\n\nanother\0 one"
    yield b"\2one text\0another"
    lines = b'{"text": "a fox"}\n' * 9
    for pack in (gzip.compress, lzma.compress, bz2.compress):
        yield b"\0" + pack(lines) + pack(lines[:18])
    yield b"\7" + b'["a", {"text": "b"}, 3]\n'
    yield b"\x0f" + b'[{"text": "b"}, {"n": 1}, "c"]'
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 3, 3)
    yield b"\3" + index + struct.pack("<3i", 2, 1, 3) + struct.pack("<3q", 0, 4, 6) + struct.pack("<3q", 0, 2, 3)


def store():
    tensors = [("w", [3, 5]), *((f"layers.{i}.sparse.experts.{e}.b", [3]) for i in (0, 1) for e in (0, 1))]
    at, header = 0, {"__metadata__": {"format": "pt"}}
    for name, shape in tensors:
        size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    yield struct.pack("<Q", len(text)) + text + bytes(at)


def checkpoint():
    part = {"name": "means.0.safetensors", "bytes": 3, "crc32": "00c0ffee"}
    yield json.dumps({"format": "hecate checkpoint", "version": 1, "step": 3, "ranks": 1, "files": [part],
                      "crc32": "00000000"}).encode()
    terms = "fssdp, 1 slots, 1 entries, calibrate 0, window 1, owners change every 0, nodes 0 0, " \
        "sparse 1 x 3 first owners 0000000000000000"
    sparse = {"owners": [0, 1, 1], "began": [0, 1, 1], "seen": [4]}
    yield json.dumps({"terms": terms, "since": 2, "sets": [sparse]}).encode()
    placed = {**sparse, "placed": [{"first": [0, 1, 3, 4], "holder": [0, 0, 1, 1]}]}
    terms = terms.replace("fssdp, 1 slots, 1 entries", "eplb, 1 slots, 0 entries")
    yield json.dumps({"terms": terms, "since": 2, "sets": [placed]}).encode()
    text = json.dumps({"0.sparse": {"dtype": "U32", "shape": [1, 1, 3], "data_offsets": [0, 12]}}).encode()
    yield struct.pack("<Q", len(text)) + text + struct.pack("<3I", 1, 2, 3)


def config(root):
    for stored in sorted(root.glob("tests/hf/stored/*.json")):
        yield json.dumps(json.loads(stored.read_text())["config"], indent=1).encode()


def weights():
    """The index, and two files: one in 32 bits, one with experts together and in 8 bits with scales; or experts in MXFP4."""
    embed = ("model.embed_tokens.weight", "F32", [3, 5], bytes(60))
    down = "model.layers.{}.mlp.experts.down_proj"
    yield folder_of(
        [embed, (down.format("0").replace("down", "0.down") + ".weight", "BF16", [3, 2], bytes(12)),
         (down.format("0").replace("down", "1.down") + ".weight", "F16", [3, 2], bytes(12))],
        [("lm_head.weight", "F8_E4M3", [5, 3], bytes(15)), ("lm_head.weight_scale_inv", "F32", [1, 1], bytes(4)),
         (down.format("1"), "F64", [2, 3, 2], bytes(96))])
    yield folder_of(
        [embed, (down.format("0") + "_blocks", "U8", [2, 3, 1, 16], bytes(range(96))),
         (down.format("1") + "_scales", "U8", [2, 3, 1], bytes(6))],
        [("lm_head.weight", "F32", [5, 3], bytes(60)), (down.format("0") + "_scales", "F8_E8M0", [2, 3, 1], bytes(6)),
         (down.format("1") + "_blocks", "U8", [2, 3, 1, 16], bytes(96))])


def folder_of(*files):
    where, content = {}, []
    for name, tensors in zip("ab", files):
        at, header = 0, {}
        for tensor, dtype, shape, data in tensors:
            header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
            where[tensor] = name
        text = json.dumps(header).encode()
        content.append(struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in tensors))
    index = json.dumps({"metadata": {"total_size": 3}, "weight_map": where}).encode()
    return index + b"\0" + content[0] + content[1] + struct.pack("<H", len(content[0]))


def names():
    yield b"layers.{}.sparse.router\0layers.{}.*.router = model.layers.{}.gate turned, embed = wte same"
    yield b"mtp.norm\0layers.{}.*.experts.{e}.w1 = m.{}.up straight all 1/2 interleaved"


def ids():
    head = b"HROUTE1\n" + struct.pack("<7I", 2, 3, 2, 4, 2, 3, 1)
    yield head + struct.pack("<18H", *([0, 1, 2, 3, 3, 0, 0, 1, 2] * 2))


def routes():
    raw = struct.pack("<8i", *[0, 1, 2, 3] * 2)
    for version in 1, 2:
        for shape in b"(2, 2, 2)", b"(1, 2, 2, 2)":
            head = b"{'descr': '<i4', 'fortran_order': False, 'shape': " + shape + b"}"
            array = b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(head)) + head + raw
            yield array
            yield b'"' + base64.b64encode(array) + b'"'
    yield b'"' + base64.b64encode(raw) + b'"'
    yield b"[[[0, 1], [2, 3]], [[3, 2], [1, 0]]]"


def loads():
    plain = b"HLOADS1\n" + struct.pack("<5I", 2, 1, 2, 1, 4) + struct.pack("<16H", *range(16))
    yield plain
    # A zstd frame of one raw block: RFC 8878, 3.1.1.
    yield struct.pack("<IBB", 0xFD2FB528, 0x20, len(plain)) + (1 | len(plain) << 3).to_bytes(3, "little") + plain


def report(root):
    sys.path.insert(0, str(root / "tests" / "tools" / "report"))
    import made  # Logs as its tests have them.
    yield made.log(3, 2).encode()
    yield b'{"step":1,"loss":2.5}\n{"step":2,"loss":2.25,"val_loss":2.5}\n{"step":2,"loss":2}\n{"step'


def topology():
    yield b"# two nodes\n0-5\n6 7 8-11\n"


def options():
    yield b"train\n--data\ntext\n--steps=3\n--set\ntrain.optimizer.lr=1e-3\n--route\nzipf:1.2\n--threads\n2"
    yield b"sample\n--load=x\n--prompt\nThe \n--tokens\n20\n--temperature=0.5\n--topk\n4"
    yield b"-S\n-o\n-\n-D\nL=4\n--set\ntrain.steps=10\n--passes=inline,select-kernels(sums=apart)\nm.moe"
    yield b"--compile-from=graph\n--save-temps=t\n-fsanitize=address\n--cc=ccache gcc\n-O2\n-g\nm.mlir"
    yield b"x.loads\n--policy=fssdp,ep\n--nodes=2\n--devices=8,4\n--speeds=1\n--costs=1,2,3\n--print=1,0,0"
    yield b"--synthesize=x\n--experts=8\n--skew=1.5\n--slots=2\n--calibrate=worth\n--json\n--window=4"


def blocking():
    yield b"hecate-blocking 1 portable\n" + b"".join(
        name + b" nn_rows=192 nt_rows=384 tn_rows=768 team=18\n" for name in (b"f32", b"f64", b"bf16"))


def movement():
    movement = {"policy": "fssdp", "even": False, "overlap": 2, "slots": 1, "calibrate": "worth", "rematerialize": True,
                "lifetime": "step", "iterations": 2,
                "window": 5, "reshard_every": 100, "import_discount": 0, "known": 0, "gather_hidden_first": 1, "gather_hidden": 2, "reduce_hidden_first": 0,
                "reduce_hidden": 1, "row_compute": 10442, "row_send": 2001, "row_cross": 4001, "chunk_send": 16001,
                "chunk_near": 8001, "grad_send": 32001, "chunk_bytes": 128, "window_bytes": 0}
    sparse = {"layers": 2, "experts": 4, "owner": [[0, 0, 1, 1], [1, 0, 1, 0]]}
    for policy in ("fssdp", "hecate", "fsdp"):
        movement["policy"] = policy
        yield json.dumps({"hecate_plan": 1, "world": 2, "movement": movement, "sets": {"sparse": sparse}}).encode()
    settings = {"parallel.microbatch": "1"}
    yield json.dumps({
        "hecate_plan": 1, "world": 2, "movement": movement, "sets": {"sparse": sparse}, "settings": settings,
        "predicted": {"step_us": 8001, "error": 0.06, "runners_up": [{"step_us": 12400, "settings": settings}]},
        "made_for": {"model": "m", "parameters": "9f0c", "loads": "assumed", "cluster": {"cluster.nodes": "4"}}}).encode()


def main():
    root, hecatec, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    made = {"front": front(root), "module": module(root, hecatec), "data": data(), "store": store(), "teacher": teacher(),
            "tokenizer": tokenizer(root), "chat": chat(root), "sources": sources(),
            "checkpoint": checkpoint(), "config": config(root), "weights": weights(),
            "names": names(), "ids": ids(), "routes": routes(), "loads": loads(), "topology": topology(),
            "options": options(),
            "blocking": blocking(), "movement": movement(), "report": report(root)}
    for name, inputs in made.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for i, text in enumerate(inputs):
            (folder / f"{i:03}").write_bytes(text)


if __name__ == "__main__":
    sys.exit(main())
