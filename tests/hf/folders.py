#!/usr/bin/env python3
"""folders.py: folders of weights that are not as they should be are refused with what is wrong, before anything is
trained; and 8 bits with a scale for each block of 128 x 128 are the numbers that they stand for. Environment: HECATEC."""
import json
import pathlib
import random
import shutil
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
from families import fuse  # noqa: E402
from harness import HECATEC, compile_folder, load, logits, run, tensors  # noqa: E402
import weights  # noqa: E402

INDEX = "model.safetensors.index.json"


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def check_refusals(work):
    case = load("mixtral")
    good, bad = work / "good", work / "bad"
    weights.write_folder(good, case["config"], tensors(case), shards=2)
    program = compile_folder(work, good, "fp32")
    weights.write_tokens(work / "tokens.bin", case["tokens"])
    first, second = sorted(good.glob("*.safetensors"))
    router = "model.layers.1.block_sparse_moe.gate.weight"
    file = json.loads((good / INDEX).read_text())["weight_map"][router]

    def expect(wanted, load_from=bad, ran=program):
        said = run(ran, "eval", "--load", load_from, "--val", work / "tokens.bin", code=1).stderr
        if wanted not in said:
            sys.exit(f"wanted: {wanted}\ngot: {said}")

    def remake(**options):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        if options:
            own = dict(tensors(case), **options)
            shutil.rmtree(bad)
            weights.write_folder(bad, case["config"], {name: t for name, t in own.items() if t}, shards=2)

    remake(**{router: None})
    expect(f"bad' is of another model: it has no tensor '{router}' ('layers.1.sparse.router' here)")
    remake(**{"model.layers.3.norm": ("BF16", [1], b"12")})
    expect("is of another model: this one has no tensor 'model.layers.3.norm' (1 such in all)")
    remake(**{router: ("BF16", [2, 32], bytes(128))})
    expect(f"is of another model: '{router}' has shape [2,32] there, and [4,16] here")
    remake(**{router: ("F8_E4M3", [4, 16], bytes(64))})
    expect(f"tensor '{router}' is F8_E4M3 without '{router}_scale_inv' of its blocks' scales")
    weights.BYTES["I16"] = 2
    remake(**{router: ("I16", [4, 16], bytes(128))})
    expect(f"tensor '{router}' is I16; only F64, F32, BF16, F16 and F8_E4M3 can be read")
    remake()
    edit(bad / INDEX, lambda index: index["weight_map"].pop(router))
    expect(f"it has no tensor '{router}' ('layers.1.sparse.router' here)")
    remake()
    edit(bad / INDEX, lambda index: index["weight_map"].update({"odd": file}))
    expect(f"{INDEX}' says that '{file}' has tensor 'odd', but it has not")
    for name in ("../good/" + file, 3, ""):
        remake()
        edit(bad / INDEX, lambda index, name=name: index["weight_map"].update({router: name}))
        expect("it names a file that is none of the folder's")
    remake()
    edit(bad / INDEX, lambda index: index.pop("weight_map"))
    expect("is not a valid index: it has no weight_map")
    remake()
    (bad / INDEX).write_text("{\n\n")
    expect(f"bad/{INDEX}' is not JSON: line 3")
    remake()
    (bad / first.name).unlink()
    expect(f"cannot open '{bad}/{first.name}': No such file")
    remake()
    (bad / second.name).write_bytes(second.read_bytes()[:-1])
    expect(f"'{bad}/{second.name}' is not a valid safetensors file")
    remake()
    (bad / INDEX).unlink()
    expect(f"'{bad}' has neither model.safetensors nor {INDEX}")

    said = run(program, "eval", "--load", good, "--val", work / "tokens.bin", "--logits", work / "tokens.bin", code=2)
    assert "--logits" in said.stderr and "--val" in said.stderr, said

    text = work / "good.moe"
    text.write_text(text.read_text().replace("names hf", "# names hf"))
    run(HECATEC, "-O0", text, "-o", work / "nameless")
    expect("has names of Hugging Face's, and this program knows none: add names hf { family = ... }", good,
           work / "nameless")
    together = work / "together"  # A model without gates would read a half of it.
    weights.write_folder(together, case["config"], fuse(case))
    text.write_text(text.read_text().replace("# names hf", "names hf"))
    gated = text.read_text()
    text.write_text(gated.replace(", w3[D, F]", "").replace("silu(x @ w1) * (x @ w3)", "silu(x @ w1)"))
    run(HECATEC, "-O0", text, "-o", work / "ungated")
    expect("this one has not all that is in tensor 'model.layers.0.mlp.experts.gate_up_proj'", together, work / "ungated")
    text.write_text(gated.replace("wq", "wx"))
    said = run(HECATEC, "-O0", text, "-o", work / "renamed", code=1).stderr
    assert "parameter `layers.{}.attention.wx` has no name in family mixtral" in said and "did you mean `layers.{}.attention.wq`?" in said, said


def check_predictors(work):
    """Layers that predict further tokens are passed over, with a message; other layers with high numbers are
    refused."""
    case = load("deepseek_v3")
    own = tensors(case)
    vector, layer = ("BF16", [16], bytes(32)), "model.layers.3."
    more = {layer + "eh_proj.weight": ("BF16", [16, 32], bytes(1024)), layer + "enorm.weight": vector,
            layer + "hnorm.weight": vector, layer + "shared_head.norm.weight": vector,
            layer + "embed_tokens.weight": own["model.embed_tokens.weight"]}
    more.update({layer + name.split(".", 3)[3]: t for name, t in own.items() if name.startswith("model.layers.2.")})
    weights.write_folder(work / "plain", case["config"], own)
    weights.write_folder(work / "more", case["config"], {**own, **more}, shards=2)
    weights.write_tokens(work / "tokens.bin", case["tokens"])
    program = compile_folder(work, work / "plain", "fp32")
    assert logits(work, program, work / "plain", work / "tokens.bin")[0] == logits(
        work, program, work / "more", work / "tokens.bin")[0]
    said = run(program, "export", "--load", work / "more", "--to", work / "again", "--strict").stderr
    assert said == (f"deepseek_v3: warning: '{work}/more' has {len(more)} tensors of layers that predict further tokens; "
                    "they are not read\n"), said
    assert weights.read_folder(work / "again") == own
    config = json.loads((work / "again" / "config.json").read_text())
    assert config == {**case["config"], "num_nextn_predict_layers": 0}, config
    assert not run(program, "eval", "--load", work / "again", "--val", work / "tokens.bin").stderr
    more.pop(layer + "eh_proj.weight")
    weights.write_folder(work / "high", case["config"], {**own, **more})
    said = run(program, "eval", "--load", work / "high", "--val", work / "tokens.bin", code=1).stderr
    assert f"this one has no tensor '{layer}" in said and f"({len(more)} such in all)" in said, said


def check_copies(work):
    """Tensors that a predictor shares with the model lie in folders twice, and must be the same."""
    case = load("deepseek_v3_mtp")
    own = tensors(case)
    weights.write_folder(work / "twice", case["config"], own)
    weights.write_tokens(work / "tokens.bin", case["tokens"])
    program = compile_folder(work, work / "twice", "fp32")
    without = work / "without"
    run(HECATEC, "-O0", "-D", "predictors=0", "--set", "train.precision=fp32", work / "twice.moe", "-o", without)
    assert logits(work, program, work / "twice", work / "tokens.bin") == logits(work, without, work / "twice", work / "tokens.bin")
    for name, first in (("model.layers.2.embed_tokens.weight", "model.embed_tokens.weight"),
                        ("model.layers.2.shared_head.head.weight", "lm_head.weight")):
        dtype, shape, data = own[name]
        for number, other in enumerate((data[:-1] + bytes([data[-1] ^ 1]), data[:-2 * shape[1]])):
            bad = work / f"{number}-{first}"
            weights.write_folder(bad, case["config"], {**own, name: (dtype, [shape[0] - number, shape[1]], other)})
            said = run(program, "eval", "--load", bad, "--val", work / "tokens.bin", code=1).stderr
            assert f"'{name}' is not the same as '{first}', which this one takes for both" in said, said
    own.pop("model.layers.2.eh_proj.weight")
    weights.write_folder(work / "less", case["config"], own)
    said = run(program, "eval", "--load", work / "less", "--val", work / "tokens.bin", code=1).stderr
    assert "it has no tensor 'model.layers.2.eh_proj.weight' ('mtp.eh_proj' here)" in said, said


def check_needless(work):
    """Tensors that no program needs are passed over, with one warning; the other ones' bytes count, with any names."""
    case = load("olmoe")  # Its embedding is its head.
    own, config = tensors(case), case["config"]
    weights.write_folder(work / "plain", config, own, shards=2)
    weights.write_tokens(work / "tokens.bin", case["tokens"])
    program = compile_folder(work, work / "plain", "fp32")
    wanted = logits(work, program, work / "plain", work / "tokens.bin")[0]
    frequency = "model.layers.0.self_attn.rotary_emb.inv_freq"
    head, embed = "lm_head.weight", "model.embed_tokens.weight"
    bare = {name.removeprefix("model."): t for name, t in own.items()}
    stale = (own[embed][0], own[embed][1], bytes(len(own[embed][2])))
    assert head not in own

    def said_of(name, held, shards=1, beside=None):
        folder = work / name
        weights.write_folder(folder, config, held, shards)
        if beside:
            file = next(file for file in sorted(folder.glob("*.safetensors")) if beside not in weights.read_safetensors(file))
            weights.write_safetensors(file, {**weights.read_safetensors(file), beside: stale})
        said = run(program, "export", "--load", folder, "--to", work / f"{name}-again", "--strict").stderr
        assert logits(work, program, folder, work / "tokens.bin")[0] == wanted, name
        assert weights.read_folder(work / f"{name}-again") == own, name
        return said

    def warning(name, count, first):
        return (f"olmoe: warning: '{work}/{name}' has {count} tensors that no program needs, as '{first}'; they are not read\n")

    odd = {frequency: ("F32", [2], bytes(8)), frequency.replace(".0.", ".2."): ("F32", [2], bytes(8))}
    assert said_of("frequencies", {**own, **odd}) == warning("frequencies", 2, frequency)
    assert said_of("head", {**own, head: own[embed]}, shards=2) == warning("head", 1, head)
    assert said_of("beside", own, 2, embed) == warning("beside", 1, embed)
    assert said_of("bare", bare) == "" and said_of("bare-shards", bare, shards=3) == ""
    both = said_of("all", {**bare, frequency.removeprefix("model."): odd[frequency], head: own[embed]})
    assert both == warning("all", 2, frequency.removeprefix("model.")), both
    weights.write_folder(work / "other", config, {**own, head: stale})
    said = run(program, "eval", "--load", work / "other", "--val", work / "tokens.bin", code=1).stderr
    assert f"'{head}' is not the same as '{embed}', which this one takes for both" in said, said


def check_scales(work):
    """Matrices of more than one block each way, and of part of one."""
    draw = random.Random("scales")
    config = {**load("mixtral")["config"], "hidden_size": 136, "intermediate_size": 132, "num_hidden_layers": 1,
              "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 66, "num_local_experts": 2,
              "num_experts_per_tok": 1, "vocab_size": 40}
    heads, width, inner, layer = 132, 136, 132, "model.layers.0."
    shapes = {layer + "self_attn.q_proj.weight": [heads, width], layer + "self_attn.k_proj.weight": [66, width],
              layer + "self_attn.v_proj.weight": [66, width], layer + "self_attn.o_proj.weight": [width, heads]}
    for expert in range(2):
        for name, shape in (("w1", [inner, width]), ("w3", [inner, width]), ("w2", [width, inner])):
            shapes[f"{layer}block_sparse_moe.experts.{expert}.{name}.weight"] = shape
    plain = {layer + "block_sparse_moe.gate.weight": [2, width], layer + "input_layernorm.weight": [width],
             layer + "post_attention_layernorm.weight": [width], "model.norm.weight": [width],
             "model.embed_tokens.weight": [40, width], "lm_head.weight": [40, width]}
    wide = {name: ("F64", shape, weights.pack("F64", weights.values(name, shape))) for name, shape in plain.items()}
    narrow = dict(wide)
    grid = [(m / 8, weights.e4m3(m / 8)) for m in range(-15, 16)] + [(2.0 ** -9, 1)]
    for name, (rows, columns) in shapes.items():
        blocks = [(rows + 127) // 128, (columns + 127) // 128]
        scales = [2.0 ** -draw.randrange(2, 5) * 1.25 for _ in range(blocks[0] * blocks[1])]
        drawn = [grid[draw.getrandbits(30) % len(grid)] for _ in range(rows * columns)]
        narrow[name] = "F8_E4M3", [rows, columns], bytes(byte for _, byte in drawn)
        narrow[name + "_scale_inv"] = "F32", blocks, weights.pack("F32", scales)
        wide[name] = "F64", [rows, columns], weights.pack("F64", [
            value * scales[i // columns // 128 * blocks[1] + i % columns // 128]
            for i, (value, _) in enumerate(drawn)])
    weights.write_folder(work / "wide", config, wide)
    weights.write_folder(work / "narrow", config, narrow)
    weights.write_tokens(work / "tokens.bin", load("mixtral")["tokens"])
    program = compile_folder(work, work / "wide", "fp64")
    assert (logits(work, program, work / "wide", work / "tokens.bin")[0] ==
            logits(work, program, work / "narrow", work / "tokens.bin")[0])
    # Written again, 8 bits become 16, which hold these numbers exactly.
    run(program, "export", "--load", work / "narrow", "--to", work / "again")
    wanted = {name: ("BF16", t[1], weights.pack("BF16", struct.unpack(f"<{weights.size(t[1])}d", t[2])))
              if name in shapes else t for name, t in wide.items()}
    assert weights.read_folder(work / "again") == wanted


def check_packed(work):
    """MXFP4 that lacks its scales, or has them of another kind."""
    case = load("gpt_oss_mxfp4")
    good, bad = work / "good", work / "bad"
    weights.write_folder(good, case["config"], tensors(case))
    program = compile_folder(work, good, "fp32")
    weights.write_tokens(work / "tokens.bin", case["tokens"])
    name = "model.layers.1.mlp.experts.down_proj"
    blocks, scales = tensors(case)[name + "_blocks"], tensors(case)[name + "_scales"]

    def write(**options):
        shutil.rmtree(bad, ignore_errors=True)
        own = {**tensors(case), **{f"{name}_{end}": t for end, t in options.items()}}
        weights.write_folder(bad, case["config"], {key: t for key, t in own.items() if t})

    for options, wanted in (
            ({"scales": None}, f"tensor '{name}_blocks' is there without '{name}_scales' of its scales"),
            ({"blocks": None}, f"it has no tensor '{name}'"),
            ({"blocks": ("F8_E4M3", *blocks[1:])}, f"tensor '{name}_blocks' is F8_E4M3; MXFP4 is U8"),
            ({"scales": ("F8_E4M3", *scales[1:])}, f"tensor '{name}_scales' is F8_E4M3; scales of MXFP4 are U8"),
            ({"scales": ("U8", [4, 32, 3], scales[2])}, f"'{name}_scales' has shape [4,32,3] there, and [4,96,1] here"),
            ({"blocks": ("U8", [4, 32, 3, 16], blocks[2])},
             f"'{name}_blocks' has shape [4,32,3,16] there, and [4,96,1,16] here")):
        write(**options)
        said = run(program, "eval", "--load", bad, "--val", work / "tokens.bin", code=1).stderr
        assert wanted in said, (wanted, said)

    # Scales that say what they are; the largest one is no number.
    weights.BYTES["F8_E8M0"] = 1
    wanted = logits(work, program, good, work / "tokens.bin")[0]
    write(scales=("F8_E8M0", *scales[1:]))
    assert logits(work, program, bad, work / "tokens.bin")[0] == wanted
    write(scales=("U8", scales[1], b"\xff" + scales[2][1:]))
    said = run(program, "eval", "--load", bad, "--val", work / "tokens.bin", code=1).stderr
    assert f"tensor '{name}_blocks' has values that are not finite (nan)" in said, said


def check_square(work):
    """Fused experts of which one matrix is square, so that its shape is the same straight or turned."""
    for name, inner in (("gate-and-up", 8), ("down", 16)):
        case = load("olmoe")
        case["config"]["intermediate_size"] = inner
        case["tensors"] = {tensor: [inner if extent == 12 else extent for extent in shape]
                           for tensor, shape in case["tensors"].items()}
        (work / name).mkdir()
        weights.write_folder(work / name / "each", case["config"], tensors(case))
        program = compile_folder(work, work / name / "each", "fp32")
        weights.write_tokens(work / "tokens.bin", case["tokens"])
        wanted = logits(work, program, work / name / "each", work / "tokens.bin")[0]
        for straight in (False, True):
            folder = work / name / f"straight-{straight}"
            weights.write_folder(folder, case["config"], fuse(case, straight))
            assert logits(work, program, folder, work / "tokens.bin")[0] == wanted, folder


def main():
    for check in (check_refusals, check_predictors, check_copies, check_needless, check_scales, check_packed, check_square):
        with tempfile.TemporaryDirectory() as name:
            check(pathlib.Path(name))


if __name__ == "__main__":
    main()
