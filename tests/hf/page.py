#!/usr/bin/env python3
"""page.py: a page that brings its own names, for a family that is not compiled in: other names, queries, keys and
values in one tensor, experts of a layer together. Logits are those of the same weights under names that are known, an
export has the same bytes, and rules that make no sense are refused. Environment: HECATEC."""
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from harness import HECATEC, compile_folder, load, logits, run, tensors  # noqa: E402
import weights  # noqa: E402

HERE = "transformer.blocks.{}."
RULES = [
    "embed = transformer.wte same", "norm = transformer.norm_f vector", "head = output turned",
    f"layers.{{}}.attention_norm = {HERE}norm_1 vector", f"layers.{{}}.*_norm = {HERE}norm_2 vector",
    f"layers.{{}}.attention.wq = {HERE}attn.Wqkv turned 1/3", f"layers.{{}}.attention.wk = {HERE}attn.Wqkv turned 2/3",
    f"layers.{{}}.attention.wv = {HERE}attn.Wqkv turned 3/3", f"layers.{{}}.attention.wo = {HERE}attn.out turned_in",
    f"layers.{{}}.*.router = {HERE}ffn.router straight",
    f"layers.{{}}.*.experts.{{e}}.w1 = {HERE}ffn.up straight all 1/2", f"layers.{{}}.*.experts.{{e}}.w3 = {HERE}ffn.up straight all 2/2",
    f"layers.{{}}.*.experts.{{e}}.w2 = {HERE}ffn.down turned all"]
BAD = [
    ("embed = wte", "`wte` needs a form: same, vector, row, straight, turned, turned_in or depthwise"),
    ("embed = wte flat", "`flat` is no form: same, vector, row, straight, turned, turned_in and depthwise are"),
    ("embed wte same", "`embed` is no rule: `path = name form` is"), ("", None), ("embed = wte same,", "`` is no rule"),
    ("embed = wte same twice", "`twice` is none of all, interleaved, a part such as 1/2, and behind it of:a+b"),
    ("embed = wte same 1/2 of:a", "is none of all"), ("embed = wte same 1/2 of:a+b interleaved", "`wte` has parts of their own widths"),
    ("embed = wte same 3/2", "`3/2` is none of all"), ("embed = wte same interleaved", "`wte` is interleaved, and has no parts"),
    ("layers.{}.*.router = gate turned", "`gate` must have {}, the layer, where the path has it"),
    ("layers.{}.*.experts.{e}.w1 = l.{}.w1 turned", "`l.{}.w1` must have {e}, the expert, where the path has it, or `all` in its place"),
    ("embed = wte same all", "`wte` must have {e}"), (", ".join(["embed = wte same"] * 129), "is one rule too many"),
    ("embed = " + "w" * 300 + " same", "is too long")]


def floats(own):
    return memoryview(own[2]).cast("f").tolist()


def turn(values, rows, columns):
    return [values[r * columns + c] for c in range(columns) for r in range(rows)]


def renamed(own, layers, experts):
    """The tensors of an OLMoE under the names of RULES."""
    out = {}

    def put(name, shape, values):
        out[name] = "F32", shape, weights.pack("F32", values)

    for ours, theirs in (("model.embed_tokens.weight", "transformer.wte"), ("model.norm.weight", "transformer.norm_f"), ("lm_head.weight", "output")):
        out[theirs] = own[ours]
    for layer in range(layers):
        at, there = f"model.layers.{layer}.", HERE.format(layer)
        out[there + "norm_1"], out[there + "norm_2"] = own[at + "input_layernorm.weight"], own[at + "post_attention_layernorm.weight"]
        parts = [own[f"{at}self_attn.{which}_proj.weight"] for which in "qkv"]
        put(there + "attn.Wqkv", [3 * parts[0][1][0], parts[0][1][1]], [x for part in parts for x in floats(part)])
        out[there + "attn.out"] = own[at + "self_attn.o_proj.weight"]
        for which in "qk":
            out[f"{there}attn.{which}_norm"] = own[f"{at}self_attn.{which}_norm.weight"]
        gate = own[at + "mlp.gate.weight"]
        put(there + "ffn.router", gate[1][::-1], turn(floats(gate), *gate[1]))
        up, down = [], []
        for e in range(experts):
            gate, second, last = (own[f"{at}mlp.experts.{e}.{which}_proj.weight"] for which in ("gate", "up", "down"))
            width, size = gate[1]
            gate, second = turn(floats(gate), width, size), turn(floats(second), width, size)
            for row in range(size):
                up += gate[row * width:(row + 1) * width] + second[row * width:(row + 1) * width]
            down += floats(last)
        put(there + "ffn.up", [experts, size, 2 * width], up)
        put(there + "ffn.down", [experts, *last[1]], down)
    return out


def check_widths(work):
    """Queries, keys and values of different widths in one tensor."""
    case = load("sarvam_moe")
    weights.write_folder(work / "widths", case["config"], tensors(case))
    tokens = work / "widths.bin"
    weights.write_tokens(tokens, case["tokens"])
    wanted = logits(work, compile_folder(work, work / "widths", "fp64"), work / "widths", tokens)[0]
    here = "model.layers.{}."
    rules = ["embed = model.word_embeddings.weight same", f"layers.{{}}.*.select_bias = {here}mlp.gate.expert_bias vector",
             f"layers.{{}}.attention.wo = {here}attention.dense.weight turned_in"]
    rules += [f"layers.{{}}.attention.{a}_norm = {here}attention.{b}_layernorm.weight vector" for a, b in (("q", "query"), ("k", "key"))]
    rules += [f"layers.{{}}.*.shared.{a} = {here}mlp.shared_experts.{b}_proj.weight turned" for a, b in (("w1", "gate"), ("w3", "up"), ("w2", "down"))]
    for kind, form, part in (("w", "turned", "weight"), ("b", "vector", "bias")):
        rules += [f"layers.{{}}.attention.{kind}{which} = {here}attention.query_key_value.{part} {form} {i}/3 of:{kind}q+{kind}k+{kind}v"
                  for i, which in enumerate("qkv", 1)]
    page = work / "widths.moe"
    page.write_text(run(HECATEC, f"--from-hf={work}/widths").stdout.replace('family = "sarvam_moe"', f'rules = "{", ".join(rules)}"'))
    run(HECATEC, "-O0", "--set", "train.precision=fp64", page, "-o", work / "widths-program")
    assert logits(work, work / "widths-program", work / "widths", tokens)[0] == wanted
    run(work / "widths-program", "export", "--load", work / "widths", "--to", work / "widths-out")
    assert weights.read_folder(work / "widths-out") == weights.read_folder(work / "widths")


def main():
    case = load("olmoe")
    config = {**case["config"], "tie_word_embeddings": False}
    case["tensors"]["lm_head.weight"] = case["tensors"]["model.embed_tokens.weight"]
    own = tensors(case, "F32")
    rules = RULES + [f"layers.{{}}.attention.{which}_norm = {HERE}attn.{which}_norm vector" for which in "qk"]
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        known, other = work / "known", work / "other"
        weights.write_folder(known, config, own)
        weights.write_folder(other, config, renamed(own, config["num_hidden_layers"], config["num_experts"]), shards=2)
        tokens = work / "tokens.bin"
        weights.write_tokens(tokens, case["tokens"])
        wanted = logits(work, compile_folder(work, known, "fp64"), known, tokens)[0]
        text = run(HECATEC, f"--from-hf={known}").stdout
        page = work / "page.moe"
        page.write_text(text.replace('family = "olmoe"', f'rules = "{", ".join(rules)}"'))
        run(HECATEC, "-O0", "--set", "train.precision=fp64", page, "-o", work / "program")
        assert logits(work, work / "program", other, tokens)[0] == wanted
        run(work / "program", "export", "--load", other, "--to", work / "out")
        assert weights.read_folder(work / "out") == weights.read_folder(other)
        # Rules of a page count before those of its family.
        page.write_text(text.replace('family = "olmoe"', 'family = "olmoe", rules = "norm = model.last.weight vector"'))
        run(HECATEC, "-O0", "--set", "train.precision=fp64", page, "-o", work / "program")
        weights.write_folder(work / "last", config, {key.replace("model.norm.", "model.last."): t for key, t in own.items()})
        assert logits(work, work / "program", work / "last", tokens)[0] == wanted
        said = run(work / "program", "eval", "--load", known, "--val", tokens, code=1).stderr
        assert "model.last.weight" in said, said
        check_widths(work)
        for bad, why in BAD:
            page.write_text(text.replace('family = "olmoe"', f'family = "olmoe", rules = "{bad}"'))
            said = run(HECATEC, "-fsyntax-only", page, code=1 if why else 0).stderr
            assert not why or re.search(r"page\.moe:\d+:\d+: error: names\.hf\.rules: .*" + re.escape(why), said), (bad, said)


if __name__ == "__main__":
    main()
