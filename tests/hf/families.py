#!/usr/bin/env python3
"""families.py FAMILY: a tiny model of the family, from a folder to logits and three steps of AdamW, against what
transformers computed (stored/FAMILY.json); and the same weights in all the ways that folders hold them.
Environment: HECATEC."""
import array
import json
import math
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
from harness import HECATEC, POSITIONS, compile_folder, load, logits, run, tensors  # noqa: E402
import weights  # noqa: E402


def check_close(what, got, want, bound):
    scale = max(abs(x) for x in want)
    worst = max(abs(a - b) for a, b in zip(got, want, strict=True)) / scale
    print(f"{what}: {worst:.2g} of {bound:.2g}")
    assert worst <= bound, what


def turn(shape, data):
    """Matrices [experts, rows, columns] in single precision as [experts, columns, rows]."""
    count, rows, columns = shape
    own = memoryview(data).cast("I")
    turned = array.array("I", (own[(e * rows + r) * columns + c]
                               for e in range(count) for c in range(columns) for r in range(rows)))
    return "F32", [count, columns, rows], turned.tobytes()


def fuse(case, straight=False):
    """Per-expert weights as one tensor for each layer, [experts, 2 * out, in] and [experts, in, out]; straight: turned."""
    out, experts = {}, {}
    for name, (dtype, shape, data) in tensors(case, "F32").items():
        if ".experts." not in name:
            out[name] = dtype, shape, data
            continue
        layer, rest = name.split(".experts.")
        expert, kind = rest.split(".")[:2]
        experts.setdefault(layer.replace("block_sparse_moe", "mlp"), {})[int(expert), kind] = shape, data
    for layer, own in experts.items():
        gate, up, down = ("w1", "w3", "w2") if (0, "w1") in own else ("gate_proj", "up_proj", "down_proj")
        count = len(own) // 3
        rows, columns = own[0, gate][0]
        both = b"".join(own[e, gate][1] + own[e, up][1] for e in range(count))
        out[f"{layer}.experts.gate_up_proj"] = "F32", [count, 2 * rows, columns], both
        out[f"{layer}.experts.down_proj"] = ("F32", [count, *own[0, down][0]],
                                             b"".join(own[e, down][1] for e in range(count)))
    return {name: turn(t[1], t[2]) if straight and ".experts." in name else t for name, t in out.items()}


def step_losses(work, program, folder, tokens):
    log = work / "log.jsonl"
    run(program, "train", "--load", folder, "--data", tokens, "--steps", 3, "--log", log, "--set",
        f"train.tokens={POSITIONS}", "--set", "train.optimizer.lr=1e-3", "--set", "train.optimizer.betas=0.9,0.95",
        "--set", "train.optimizer.decay=0", "--set", "train.optimizer.clip=none", "--set", "data.order=random")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [loss for line in lines if "cross_entropy" in line
            for loss in (line["cross_entropy"], *line.get("losses", {}).values())]


# Tensors of released folders that transformers passes over, too.
PASSED = {"ernie4_5_moe": "model.mtp_block.0.mlp.up_proj.weight", "exaone_moe": "mtp.layers.0.mlp.up_proj.weight",
          "hy_v3": "model.layers.3.eh_proj.weight"}


def check_passed(work, program, tokens, case, data):
    """Layers that predict further tokens are passed over; other unknown tensors are refused."""
    name = PASSED[case["config"]["model_type"]]
    weights.write_folder(work / "more", case["config"], {**tensors(case), name: ("BF16", [2], bytes(4))})
    assert logits(work, program, work / "more", tokens)[0] == data
    said = run(program, "export", "--load", work / "more", "--to", work / "less").stderr
    assert f"has 1 tensors that no program needs, as '{name}'" in said, said
    weights.write_folder(work / "other", case["config"], {**tensors(case), "x" + name: ("BF16", [2], bytes(4))})
    said = run(program, "eval", "--load", work / "other", "--val", tokens, code=1).stderr
    assert f"this one has no tensor 'x{name}'" in said, said


def check_predictor(work, program, folder, tokens, case):
    """Losses of the tokens 2 ahead, which the last position of a sequence has not."""
    file = work / "losses.safetensors"
    run(program, "eval", "--load", folder, "--val", tokens, "--losses", file)
    got = weights.read_numbers(file)["losses.mtp"]
    assert all(math.isnan(got[t]) == (t % POSITIONS == POSITIONS - 1) for t in range(2 * POSITIONS)), got
    check_close("losses of a token more", [x for x in got if not math.isnan(x)], case["mtp_losses"], 1e-9)


# Models that also read images around a text model: their model_type, and a key of the text model with a value that
# is refused.
AROUND = {"llama4_text": ("llama4", "floor_scale", 8), "kimi_k2": ("kimi_k25", "moe_layer_freq", 2),
          "gemma3_text": ("gemma3", "query_pre_attn_scalar", 0)}


def check_inside(work, program, tokens, case, data):
    """The text model as a part of one that also reads images: names below language_model., keys in text_config. The
    export is the text model alone."""
    kind, key, wrong = AROUND[case["config"]["model_type"]]
    own, folder, out = tensors(case), work / "inside", work / "alone"
    others = {name: ("BF16", [2], bytes(4)) for name in ("vision_model.class_embedding", "multi_modal_projector.linear_1.weight")}
    config = {"architectures": ["ForConditionalGeneration"], "model_type": kind, "text_config": case["config"],
              "vision_config": {"model_type": f"{kind}_vision"}, "dtype": "bfloat16"}
    weights.write_folder(folder, config, {**{"language_model." + name: t for name, t in own.items()}, **others}, shards=2)
    assert logits(work, program, folder, tokens)[0] == data
    alone = run(HECATEC, f"--from-hf={work}/sharded").stdout
    assert run(HECATEC, f"--from-hf={folder}").stdout == alone.replace("train {\n", "train {\n    precision = bf16\n")
    said = run(program, "export", "--load", folder, "--to", out).stderr
    assert "has 2 tensors beside its text model; they are not read" in said, said
    assert weights.read_folder(out) == own
    wanted = {"dtype": "bfloat16", **case["config"]}
    assert json.loads((out / "config.json").read_text()) == wanted
    config["text_config"] = {**case["config"], key: wrong}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    said = run(HECATEC, f"--from-hf={folder}", code=1).stderr
    line = 1 + json.dumps(config, indent=1).splitlines().index(f'  "{key}": {wrong}' + ("," if key in case["config"] else ""))
    assert f"config.json:{line}:" in said, said
    config.pop("text_config")
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    assert "there is no `text_config`" in run(HECATEC, f"--from-hf={folder}", code=1).stderr


def check_alone(work, program, folder, tokens, case, data):
    """The text model is written alone, as one that transformers knows; its experts one by one."""
    said = run(program, "export", "--load", folder, "--to", work / "out").stderr
    passed = sum(name.startswith("model.visual.") for name in case["tensors"])
    assert f"has {passed} tensors beside its text model; they are not read" in said, said
    got, own = weights.read_folder(work / "out"), tensors(case)
    assert logits(work, program, work / "out", tokens)[0] == data
    held = {name.replace("language_model.", ""): t for name, t in own.items()
            if ".experts." not in name and not name.startswith("model.visual.")}
    assert {name: t for name, t in got.items() if ".experts." not in name} == held
    wanted = {**case["config"]["text_config"], "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "norm_topk_prob": True,
              "tie_word_embeddings": False}
    assert json.loads((work / "out" / "config.json").read_text()) == wanted
    # As qwen3_moe it is the same model.
    assert logits(work, compile_folder(work, work / "out", "fp64"), work / "out", tokens)[0] == data


def check_export(work, program, folder):
    """Tensors that were read and not changed are written to the byte."""
    run(program, "export", "--load", folder, "--to", work / "out")
    assert weights.read_folder(work / "out") == weights.read_folder(folder)
    was, now = (json.loads((at / "config.json").read_text()) for at in (folder, work / "out"))
    changed = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
    assert changed <= {"num_nextn_predict_layers"}, changed  # The layers that the program has.


def main():
    case = load(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        folder = work / "sharded"
        weights.write_folder(folder, case["config"], tensors(case), shards=3)
        weights.write_folder(work / "half", case["config"], tensors(case, "F16"))
        tokens, train = work / "tokens.bin", work / "train.bin"
        weights.write_tokens(tokens, case["tokens"])
        weights.write_tokens(train, case["tokens"][:POSITIONS + 1])

        program = compile_folder(work, folder, "fp64")
        data, got = logits(work, program, folder, tokens)
        check_close("logits, fp64", got, case["logits"], 1e-9)
        assert logits(work, program, work / "half", tokens)[0] == data, "fp16"
        for straight in (False, True) if any(".experts.0." in name for name in case["tensors"]) else ():
            fused = work / f"fused-{straight}"
            weights.write_folder(fused, case["config"], fuse(case, straight), shards=2)
            assert logits(work, program, fused, tokens)[0] == data, fused.name
        if "text_config" in case["config"]:
            check_alone(work, program, folder, tokens, case, data)
        elif "digests" not in case:
            check_export(work, program, folder)
        if case["config"]["model_type"] in PASSED:
            check_passed(work, program, tokens, case, data)
        if "mtp_losses" in case:
            check_predictor(work, program, folder, tokens, case)
        if case["config"]["model_type"] in AROUND:
            check_inside(work, program, tokens, case, data)
        check_close("losses", step_losses(work, program, folder, train), case["losses"], 1e-6)
        check_close("logits, fp32", logits(work, compile_folder(work, folder, "fp32"), folder, tokens)[1],
                    case["logits"], 1e-5)


if __name__ == "__main__":
    main()
