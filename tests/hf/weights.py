"""Shared by tests and generate.py: the tiny models' weights from names, and files of safetensors and of
tokens. Needs Python alone."""
import json
import pathlib
import random
import struct

BYTES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1}


def size(shape):
    total = 1
    for extent in shape:
        total *= extent
    return total


def is_packed(name):
    """Whether a tensor of that name is of MXFP4."""
    return name.endswith(("_blocks", "_scales"))


def source(name, tensors):
    """The tensor that one is a copy of: a layer that predicts has the model's embedding and head once more."""
    if name.startswith("model.layers.") and name.endswith(".embed_tokens.weight"):
        return "model.embed_tokens.weight"
    if name.endswith(".shared_head.head.weight"):
        return "lm_head.weight" if "lm_head.weight" in tensors else "model.embed_tokens.weight"
    return name


def values(name, shape, salt=0):
    """Elements that bf16 and fp16 hold exactly: whole numbers below 128, over 256 or 1024; gains from 1 to 1.5. Bytes of MXFP4:
    blocks of any, and scales of 1/128 to 1/16."""
    draw = random.Random(f"{name}#{salt}")
    if is_packed(name):
        return [draw.getrandbits(8) if name.endswith("_blocks") else 120 + draw.getrandbits(2) for _ in range(size(shape))]
    gain = name.endswith("norm.weight")
    small = name.endswith("e_score_correction_bias")  # Beside scores from 0 to 1.
    out = []
    for _ in range(size(shape)):
        k = draw.getrandbits(8) - 128
        out.append(1 + (k & 63) / 128 if gain else (k if k > -128 else 127) / (1024 if small else 256))
    return out


def e4m3(value):
    """The byte of a number that 4 bits of exponent and 3 of fraction hold exactly."""
    for byte in range(128):
        exponent, fraction = byte >> 3, byte & 7
        held = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0 ** -9
        if held == abs(value):
            return byte | (128 if value < 0 else 0)
    raise ValueError(value)


def pack(dtype, numbers):
    if dtype == "F64":
        return struct.pack(f"<{len(numbers)}d", *numbers)
    if dtype == "F16":
        return struct.pack(f"<{len(numbers)}e", *numbers)
    if dtype == "U8":
        return bytes(numbers)
    if dtype == "F8_E4M3":
        return bytes(e4m3(x) for x in numbers)
    raw = struct.pack(f"<{len(numbers)}f", *numbers)
    if dtype == "F32":
        return raw
    return b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))


def write_safetensors(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}"""
    header, at, parts = {"__metadata__": {"format": "pt"}}, 0, []
    for name, (dtype, shape, data) in tensors.items():
        assert len(data) == size(shape) * BYTES[dtype], name
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path):
    """The same, of a file."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {name: (t["dtype"], t["shape"], data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}


def read_numbers(path):
    """Each tensor's numbers, by name, in a file of floats and doubles."""
    codes = {"F32": "f", "F64": "d"}
    return {name: struct.unpack(f"<{len(data) // struct.calcsize(codes[kind])}{codes[kind]}", data)
            for name, (kind, _, data) in read_safetensors(path).items()}


def read_folder(folder):
    """All tensors of a folder, of one file or of shards."""
    folder = pathlib.Path(folder)
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read_safetensors(folder / "model.safetensors")
    found = {}
    for file in sorted(set(json.loads(index.read_text())["weight_map"].values())):
        found.update(read_safetensors(folder / file))
    return found


def write_folder(folder, config, tensors, shards=1):
    """A folder as transformers writes it."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return
    where, names = {}, sorted(tensors)
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        own = names[shard::shards]
        write_safetensors(folder / file, {name: tensors[name] for name in own})
        where.update({name: file for name in own})
    total = sum(len(data) for _, _, data in tensors.values())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": where}))


def write_tokens(path, ids):
    """A file of tokens as llm.c has it."""
    header = struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253)
    pathlib.Path(path).write_bytes(header + struct.pack(f"<{len(ids)}H", *ids))
