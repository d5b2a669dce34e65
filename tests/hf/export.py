#!/usr/bin/env python3
"""export.py: folders that programs write. Tensors that were read and not changed have the same bytes, in every type and
layout; trained ones come back as they were saved; a failed export leaves nothing behind. Environment: HECATEC; RANKS:
runs programs of several ranks, where there are such."""
import hashlib
import json
import os
import pathlib
import resource
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
from families import fuse  # noqa: E402
from harness import HECATEC, POSITIONS, compile_folder, load, run, tensors  # noqa: E402
import weights  # noqa: E402

# All kinds of 16 bits but NaN: denormal numbers, the largest ones, infinity, zeros of both signs.
ODD = {"BF16": [0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x7f7f, 0xff7f, 0x7f80, 0x3c01],
       "F16": [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x3c01]}


def round_trip(work, program, name, config, own, wanted=None, launcher=(), shard=7000):
    folder, out = work / name, work / f"{name}-out"
    weights.write_folder(folder, config, own, shards=2)
    run(*launcher, program, "export", "--load", folder, "--to", out, "--shard-bytes", shard)
    got = weights.read_folder(out)
    assert got == (wanted or own), name
    files = sorted(out.glob("*.safetensors"))
    assert len(files) > 2 and files[0].name == f"model-00001-of-{len(files):05}.safetensors", files
    assert all(sum(len(t[2]) for t in weights.read_safetensors(file).values()) <= shard for file in files), name
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(len(t[2]) for t in got.values()), index["metadata"]
    return folder, out


def check_families(work):
    for family, dtype in (("qwen2_moe", "BF16"), ("dots1", "F32"), ("deepseek_v2_lite", "F16"), ("deepseek_v3_mtp", "F32"), ("glm4_moe_mtp", "BF16"),
                          ("gpt_oss", "BF16"), ("llama4_text", "F32"), ("llama4_text_wide", "BF16")):
        case = load(family)
        weights.write_folder(work / family, case["config"], tensors(case, dtype))
        program = compile_folder(work, work / family, "fp32")
        round_trip(work, program, f"{family}-again", case["config"], tensors(case, dtype))
    if "RANKS" in os.environ:  # Parts of one tensor come from several ranks.
        several = compile_folder(work, work / family, "bf16", "--set", "cluster.devices=2")
        round_trip(work, several, "parts", case["config"], tensors(case), launcher=("sh", os.environ["RANKS"], 2))


def check_predictor(work):
    """Copies of what a layer that predicts shares are written where the folder has such; config.json says how many layers there are."""
    case = load("deepseek_v3_mtp")
    own = tensors(case, "F32")
    bare = {name: t for name, t in own.items() if weights.source(name, own) == name}
    assert len(bare) == len(own) - 2
    weights.write_folder(work / "predictor", case["config"], own)
    program = compile_folder(work, work / "predictor", "fp32")
    round_trip(work, program, "bare", case["config"], bare, bare)
    config = work / "no-weights"
    config.mkdir()
    (config / "config.json").write_text(json.dumps({**case["config"], "num_nextn_predict_layers": 0, "dtype": "float32"}))
    run(program, "export", "--load", work / "bare", "--like", config, "--to", work / "both")
    assert weights.read_folder(work / "both") == own
    assert json.loads((work / "both" / "config.json").read_text())["num_nextn_predict_layers"] == 1
    if "RANKS" in os.environ:
        several = compile_folder(work, work / "predictor", "fp32", "--set", "cluster.devices=2")
        round_trip(work, several, "two", case["config"], own, launcher=("sh", os.environ["RANKS"], 2))


def check_packed(work):
    """Experts in MXFP4 become the bf16 that transformers makes of them; other tensors stay."""
    case = load("gpt_oss_mxfp4")
    folder, out = work / "packed", work / "packed-out"
    weights.write_folder(folder, case["config"], tensors(case, "F32"), shards=3)
    run(compile_folder(work, folder, "fp32"), "export", "--load", folder, "--to", out)
    got, own = weights.read_folder(out), tensors(case, "F32")
    for name, digest in case["digests"].items():
        dtype, shape, data = got.pop(name)
        experts, outer, blocks, _ = own.pop(name + "_blocks")[1]
        own.pop(name + "_scales")
        assert (dtype, shape) == ("BF16", [experts, 32 * blocks, outer]), (name, dtype, shape)
        assert hashlib.sha256(data).hexdigest() == digest, name
    assert got == own
    assert "quantization_config" not in json.loads((out / "config.json").read_text())


def check_mixtral(work):
    case = load("mixtral")
    weights.write_folder(work / "good", case["config"], tensors(case))
    program = compile_folder(work, work / "good", "fp32")
    odd = tensors(case, "BF16")
    shape = odd["lm_head.weight"][1]
    count = weights.size(shape)
    for name, dtype in (("bf16", "BF16"), ("fp16", "F16")):
        bits = (ODD[dtype] * count)[:count]
        odd["lm_head.weight"] = dtype, shape, struct.pack(f"<{count}H", *bits)
        round_trip(work, program, name, case["config"], odd)
    round_trip(work, program, "fused", case["config"], fuse(case), tensors(case, "F32"))
    if "RANKS" in os.environ:
        several = compile_folder(work, work / "good", "bf16", "--set", "cluster.devices=2")
        round_trip(work, several, "ranks", case["config"], tensors(case), launcher=("sh", os.environ["RANKS"], 2))
    return case, program


def check_taken_over(work, case, program):
    like = work / "like"
    config = {**case["config"], "dtype": "float32", "quantization_config": {"quant_method": "fp8"}}
    like.mkdir()
    (like / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "merges.txt", "tokenizer.model", "configuration_own.py", "LICENSE", "odd.bin", ".own.json", "odd.index.json"):
        (like / name).write_text(name)
    (work / "out.hecate-partial").mkdir()  # A run was killed.
    (work / "out.hecate-partial" / "rest").write_text("rest")
    run(program, "export", "--load", work / "good", "--like", like, "--to", f"{work}/out/")
    assert sorted(path.name for path in (work / "out").iterdir()) == [
        "LICENSE", "config.json", "configuration_own.py", "merges.txt", "model.safetensors", "tokenizer.json", "tokenizer.model"]
    assert (work / "out" / "merges.txt").read_text() == "merges.txt"
    config.pop("quantization_config")
    assert json.loads((work / "out" / "config.json").read_text()) == config
    assert weights.read_folder(work / "out") == tensors(case, "F32")
    return like


def check_trained(work, case, program, like):
    train, saved = work / "train.bin", work / "saved.safetensors"
    weights.write_tokens(train, case["tokens"])
    run(program, "train", "--load", work / "good", "--data", train, "--steps", 2, "--set", f"train.tokens={POSITIONS}",
        "--save", saved)
    run(program, "export", "--load", saved, "--like", like, "--to", work / "trained")
    assert weights.read_folder(work / "trained") != tensors(case, "F32")
    said = [run(program, "eval", "--load", source, "--val", train).stdout for source in (saved, work / "trained")]
    assert said[0] == said[1] and "validation loss" in said[0], said


def check_refusals(work, case, program, like):
    def refuse(wanted, *arguments, code=1, **options):
        said = run(program, "export", *arguments, code=code, **options).stderr
        assert wanted in said, said
        assert not (work / "new").exists() and not (work / "new.hecate-partial").exists(), wanted

    good, new = work / "good", work / "new"
    refuse("export needs trained parameters: --load FILE", "--to", new, code=2)
    refuse("export needs the folder to make: --to DIR", "--load", good, code=2)
    refuse("export needs a folder with config.json: --like DIR", "--load", work / "saved.safetensors", "--to", new, code=2)
    refuse(f"'{good}' is there already", "--load", good, "--to", good)
    refuse("cannot open", "--load", good, "--like", work / "nowhere", "--to", new)
    (work / "broken").mkdir()
    for text, wanted in (("{\n!", "is not JSON: line 2"), ("[]", "is not an object of JSON")):
        (work / "broken" / "config.json").write_text(text)
        refuse(wanted, "--load", good, "--like", work / "broken", "--to", new)
    router = "model.layers.1.block_sparse_moe.gate.weight"
    other = tensors(case)
    other[router] = "BF16", [2, 16], bytes(64)
    weights.write_folder(work / "other", case["config"], other)
    refuse(f"is of another model: '{router}' has another shape there", "--load", good, "--like", work / "other", "--to", new)
    other.pop(router)
    weights.write_folder(work / "less", case["config"], other)
    refuse(f"is of another model: it has no tensor '{router}'", "--load", good, "--like", work / "less", "--to", new)
    refuse("cannot make", "--load", good, "--to", work / "no" / "new")
    refuse("File too large", "--load", good, "--like", like, "--to", new,
           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
    text = work / "good.moe"
    text.write_text(text.read_text().replace("names hf", "# names hf"))
    program = work / "halved"  # From here on, refuse runs this one.
    packed = work / "packed.moe"
    gated = packed.read_text()
    for part in (", w3[D, F]", " b3[F] (init = zeros, decay = false),", "x @ w3 + b3"):
        assert part in gated, gated
        gated = gated.replace(part, "gate" if "@" in part else "")
    packed.write_text(gated)
    run(HECATEC, "-O0", packed, "-o", program)
    run(program, "train", "--data", work / "train.bin", "--steps", 1, "--set", f"train.tokens={POSITIONS}", "--save",
        work / "half.safetensors")
    refuse("the parameters that would be 'model.layers.0.mlp.experts.gate_up_proj' have 12288 elements too few", "--load",
           work / "half.safetensors", "--like", work / "packed", "--to", new)
    program = work / "nameless"
    run(HECATEC, "-O0", text, "-o", program)
    refuse("this program knows no names of Hugging Face's: add names hf { family = ... }", "--load",
           work / "saved.safetensors", "--like", like, "--to", new)


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        check_families(work)
        check_predictor(work)
        check_packed(work)
        case, program = check_mixtral(work)
        like = check_taken_over(work, case, program)
        check_trained(work, case, program, like)
        check_refusals(work, case, program, like)


if __name__ == "__main__":
    main()
