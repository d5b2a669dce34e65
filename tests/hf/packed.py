#!/usr/bin/env python3
"""Frozen weights that stay packed, as MXFP4 and in 8 bits with scales of blocks: pages say it, and losses, saved files,
resumed runs and merged folders have the bits of weights in bf16. Environment: HECATEC."""
import json
import pathlib
import random
import re
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
from harness import HECATEC, load, run, tensors  # noqa: E402
import weights  # noqa: E402

STEPS = 4
OF = "*.wq,*.experts.*"


def draw_bytes(name, count):
    """Any elements of 8 bits that are numbers."""
    draw = random.Random(name)
    return bytes(draw.choice([byte for byte in range(256) if byte & 127 != 127]) for _ in range(count))


def eight_bits():
    """A Mixtral with matrices of more than one block each way, and of part of one, and scales of many bits."""
    config = {**load("mixtral")["config"], "hidden_size": 136, "intermediate_size": 150, "num_hidden_layers": 1,
              "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 66, "num_local_experts": 2,
              "num_experts_per_tok": 1, "vocab_size": 40, "quantization_config": {"quant_method": "fp8"}}
    width, inner, layer = 136, 150, "model.layers.0."
    shapes = {layer + "self_attn.q_proj.weight": [132, width], layer + "self_attn.k_proj.weight": [66, width],
              layer + "self_attn.v_proj.weight": [66, width], layer + "self_attn.o_proj.weight": [width, 132]}
    for expert in range(2):
        for name, shape in (("w1", [inner, width]), ("w3", [inner, width]), ("w2", [width, inner])):
            shapes[f"{layer}block_sparse_moe.experts.{expert}.{name}.weight"] = shape
    plain = {layer + "block_sparse_moe.gate.weight": [2, width], layer + "input_layernorm.weight": [width],
             layer + "post_attention_layernorm.weight": [width], "model.norm.weight": [width],
             "model.embed_tokens.weight": [40, width], "lm_head.weight": [40, width]}
    out = {name: ("BF16", shape, weights.pack("BF16", weights.values(name, shape))) for name, shape in plain.items()}
    for name, shape in shapes.items():
        blocks = [(extent + 127) // 128 for extent in shape]
        draw = random.Random(name)
        scales = [draw.uniform(0.5, 2) / 4000 for _ in range(blocks[0] * blocks[1])]
        out[name] = "F8_E4M3", shape, draw_bytes(name, shape[0] * shape[1])
        out[name + "_scale_inv"] = "F32", blocks, struct.pack(f"<{len(scales)}f", *scales)
    return config, out


def compile_base(work, folder, base, *flags):
    settings = ["train.precision=bf16", f"adapt.of={OF}", "adapt.rank=4", "train.tokens=16", *flags]
    settings += [f"adapt.base={base}"] if base else []
    options = [word for key in settings for word in ("--set", key)]
    program = work / f"{folder.name}-{base}"
    run(HECATEC, "-w", "-O1", *options, work / f"{folder.name}.moe", "-o", program)
    said = run(HECATEC, "-w", "--explain=memory", *options, work / f"{folder.name}.moe").stdout
    return program, said


def train(work, program, tokens, *more, steps=STEPS):
    log = work / "log.jsonl"
    run(program, "train", "--data", tokens, "--val", tokens, "--steps", steps, "--log", log, "--set", "train.eval_steps=0",
        "--set", "train.optimizer.lr=1e-2", *more)
    lines = [line for line in map(json.loads, log.read_text().splitlines()) if "cross_entropy" in line]
    return [(line["cross_entropy"], line["grad_norm"]) for line in lines]


def check_same(work, folder, tokens, plain, packed):
    """All that a run leaves is the same to the bit."""
    left = []
    for program in plain, packed:
        saved, merged = work / f"{program.name}.st", work / f"{program.name}-merged"
        losses = train(work, program, tokens, "--load", folder, "--save", saved)
        run(program, "export", "--load", saved, "--like", folder, "--to", merged, "--merge")
        left.append((losses, saved.read_bytes(), weights.read_folder(merged)))
    assert len(left[0][0]) == STEPS and left[0][0][0][0] != left[0][0][-1][0], left[0][0]
    assert left[0][0] == left[1][0], ("losses and norms", left[0][0], left[1][0])
    assert left[0][1] == left[1][1], "saved parameters"
    assert left[0][2] == left[1][2], "merged folders"


def check_resumed(work, folder, tokens, packed):
    """Frozen weights come back from a checkpoint, and from saved parameters, as they were."""
    saved, again = work / f"{packed.name}.st", work / "again.st"
    for steps in STEPS // 2, STEPS:
        train(work, packed, tokens, "--load", folder, "--checkpoint", work / f"{packed.name}-ck", "--resume", "--save", again,
              "--set", "train.schedule=constant", steps=steps)
    train(work, packed, tokens, "--load", folder, "--set", "train.schedule=constant", "--save", saved)
    assert again.read_bytes() == saved.read_bytes(), "a resumed run"
    train(work, packed, tokens, "--load", saved, "--save", again, "--set", "train.optimizer.lr=0", steps=1)
    one, two = weights.read_numbers(saved), weights.read_numbers(again)
    assert one == two, [path for path in one if one[path] != two[path]]


def check_packed(work, name, config, own, base, kinds):
    folder, tokens = work / name, work / "tokens.bin"
    weights.write_folder(folder, config, own)
    run(HECATEC, f"--from-hf={folder}", "-o", work / f"{name}.moe")
    assert f"\nadapt {{ base = {base} }}\n" in (work / f"{name}.moe").read_text()
    plain, before = compile_base(work, folder, "bf16")
    packed, said = compile_base(work, folder, None)
    found = set(re.findall(rf"  {base} +(?:\S+\.)?(\w+) ", said))
    assert found == kinds, (found, said)
    assert "in bf16 or packed" in said and f"  {base} " not in before
    check_same(work, folder, tokens, plain, packed)
    check_resumed(work, folder, tokens, packed)
    assert f"  {base} " not in compile_base(work, folder, base, "train.precision=fp32")[1], "fp32"
    for target, wanted in ("cpu", True), ("cuda", False):
        emitted = run(HECATEC, "-w", "-S", f"--target={target}", "--set", f"adapt.of={OF}", "--set", "adapt.rank=4", "-o", "-",
                      work / f"{name}.moe").stdout
        assert (".packing = HRT_" in emitted) == wanted, target


def check_rounded(work):
    """Weights with more bits go to the nearest. These are saved, and pack to themselves."""
    case = load("mixtral")
    folder, tokens = work / "mixtral", work / "tokens.bin"
    weights.write_folder(folder, case["config"], tensors(case))
    run(HECATEC, f"--from-hf={folder}", "-o", work / "mixtral.moe")
    assert "adapt" not in (work / "mixtral.moe").read_text()
    plain, _ = compile_base(work, folder, "bf16")
    train(work, plain, tokens, "--load", folder, "--save", work / "plain.st", steps=1)
    for base, bits in ("mxfp4", 2), ("fp8", 4):
        program, _ = compile_base(work, folder, base)
        train(work, program, tokens, "--load", folder, "--save", work / "one.st", steps=1)
        train(work, program, tokens, "--load", work / "one.st", "--save", work / "two.st", steps=1)
        before, one, two = (weights.read_numbers(work / f"{file}.st") for file in ("plain", "one", "two"))
        changed = 0
        for path in one:
            if ".lora_" in path:
                continue
            assert one[path] == two[path], f"{path} with {base}"
            far = max(abs(a - b) for a, b in zip(one[path], before[path]))
            changed += far > 0
            assert far <= max(map(abs, before[path])) * 2.0 ** -bits, (path, base, far)
        assert changed > 0, base


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        weights.write_tokens(work / "tokens.bin", load("mixtral")["tokens"] * 8)
        case = load("gpt_oss_mxfp4")
        check_packed(work, "four", case["config"], tensors(case), "mxfp4", {"w1", "w2", "w3"})
        check_packed(work, "eight", *eight_bits(), "fp8", {"w1", "w2", "w3", "wq", "wk", "wv", "wo"})
        check_rounded(work)


main()
