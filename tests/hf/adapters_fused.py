#!/usr/bin/env python3
"""adapters_fused.py FAMILY: adapters of experts that lie in one tensor per layer, in folders of PEFT's. A tiny model of
the family is trained for twenty steps against transformers and PEFT (stored/peft/FAMILY.json); folders come in and go
out, to the byte; merged models; refusals. Environment: HECATEC; RANKS, where programs of several ranks run, too."""
import json
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
from families import check_close  # noqa: E402
from harness import HECATEC, POSITIONS, STORED, load, logits, run, tensors  # noqa: E402
import weights  # noqa: E402

FAMILY = sys.argv[1]
OWN, CASE = load(FAMILY), json.loads((STORED / "peft" / f"{FAMILY}.json").read_text())
STEPS, OF = len(CASE["losses"]), "*.wq,*.wv,*.wo,*.experts.*.w1,*.experts.*.w2,*.experts.*.w3"
DTYPES = {"fp64": "F64", "fp32": "F32"}
WEIGHTS = "adapter_model.safetensors"


def build(work, base, name, precision, *settings):
    text, program = work / "model.moe", work / name
    run(HECATEC, f"--from-hf={base}", "-o", text)
    flags = [word for each in (f"train.precision={precision}", f"train.tokens={POSITIONS}", *settings) for word in ("--set", each)]
    run(HECATEC, "-w", "-O1", *flags, text, "-o", program)
    return program


def adapt(**more):
    return [f"adapt.{key}={value}" for key, value in
            {"of": OF, "rank": CASE["rank"], "alpha": CASE["alpha"], "experts": "fused", **more}.items()]


def first_adapters(dtype):
    """As PEFT's began: the matrices B are zeros."""
    return {name: (dtype, shape, weights.pack(dtype, weights.values(name, shape, OWN["salt"]) if "lora_A" in name
                                              else [0.0] * weights.size(shape)))
            for name, (shape, _) in CASE["adapters"].items()}


def write_adapters(folder, own, **changes):
    folder.mkdir()
    config = {"peft_type": "LORA", "r": CASE["rank"], "lora_alpha": CASE["alpha"], "target_modules": CASE["modules"],
              "target_parameters": CASE["parameters"], "lora_dropout": 0.0, "bias": "none", **changes}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    weights.write_safetensors(folder / WEIGHTS, own)


def train(work, program, tokens, *more, launcher=(), rate="1e-2", steps=STEPS):
    log = work / "log.jsonl"
    run(*launcher, program, "train", "--data", tokens, "--steps", steps, "--log", log, "--save", work / "tuned.st", "--set",
        f"train.optimizer.lr={rate}", "--set", "train.optimizer.betas=0.9,0.95", "--set", "train.optimizer.decay=0.1", "--set",
        "train.optimizer.clip=none", "--set", "data.order=random", "--set", "train.eval_steps=0", *more)
    lines = [line for line in map(json.loads, log.read_text().splitlines()) if "cross_entropy" in line]
    return [line["cross_entropy"] for line in lines], [line["grad_norm"] for line in lines]


def check_parity(work, base, tokens, precision):
    start, double = work / f"start-{precision}", precision == "fp64"
    write_adapters(start, first_adapters(DTYPES[precision]))
    program = build(work, base, f"adapted-{precision}", precision, *adapt())
    losses, norms = train(work, program, tokens, "--load", base, "--adapter", start)
    check_close(f"losses of {STEPS} steps, {precision}", losses, CASE["losses" if double else "losses_fp32"], 1e-9 if double else 1e-6)
    check_close(f"norms of gradients, {precision}", norms, CASE["norms"], 1e-8 if double else 1e-3)
    return program, start


def check_out(work, program, base, tokens):
    """Trained adapters are PEFT's, and the folder says how they were made."""
    out = work / "out"
    run(program, "export", "--load", work / "tuned.st", "--to", out, "--like", base)
    got = weights.read_safetensors(out / WEIGHTS)
    assert {name: shape for name, (_, shape, _) in got.items()} == {name: shape for name, (shape, _) in CASE["adapters"].items()}
    numbers = weights.read_numbers(out / WEIGHTS)
    for name, (_, wanted) in CASE["adapters"].items():
        check_close(name, numbers[name], wanted, 1e-7)  # AdamW moves by rates, however small gradients are.
    config = json.loads((out / "adapter_config.json").read_text())
    assert sorted(config["target_modules"]) == sorted(CASE["modules"]), config
    layers = {name.split(".lora_")[0].replace("base_model.model.", "").replace(".base_layer", "") for name in got if ".experts" in name}
    assert sorted(config["target_parameters"]) == sorted(f"{layer}.{part}" for layer in layers for part in ("gate_up_proj", "down_proj")), config
    return out


def check_merged(work, program, base, out, tokens):
    merged = work / "merged"
    plain = build(work, base, "plain", "fp64")
    run(program, "export", "--load", work / "tuned.st", "--like", base, "--to", merged, "--merge")
    again = logits(work, program, work / "tuned.st", tokens)[1]
    check_close("logits against PEFT", again, CASE["logits"], 1e-8)
    check_close("merged logits", logits(work, plain, merged, tokens)[1], again, 1e-12)
    file = work / "apart.safetensors"
    run(program, "eval", "--load", base, "--adapter", out, "--val", tokens, "--logits", file)
    assert list(weights.read_numbers(file)["logits"]) == list(again), "base and adapters apart"


def check_round_trip(work, program, base, start, tokens, launcher=()):
    """Adapters that are read and written have the same bytes, on several ranks, too."""
    same = work / f"same-{program.name}"
    train(work, program, tokens, "--load", base, "--adapter", start, launcher=launcher, rate="0", steps=1)
    run(*launcher, program, "export", "--load", work / "tuned.st", "--to", same)
    assert weights.read_safetensors(same / WEIGHTS) == weights.read_safetensors(start / WEIGHTS)


def check_ranks(work, base, start, tokens):
    """Two ranks learn what one does, where experts stay and where they move."""
    launcher, losses = ["sh", os.environ["RANKS"], "2"], {}
    for name, settings in ("one", []), ("ep", ["parallel.experts=ep"]), ("fssdp", ["parallel.placement.memory=2"]):
        ranks = [] if name == "one" else ["cluster.devices=2"]
        program = build(work, base, name, "fp64", *adapt(), f"train.tokens={2 * POSITIONS}", *ranks, *settings)
        losses[name] = train(work, program, tokens, "--load", base, "--adapter", start, launcher=launcher if ranks else ())[0]
        check_close(f"losses of {name}", losses[name], losses["one"], 1e-12)
    check_round_trip(work, work / "ep", base, start, tokens, launcher)


def check_refused(work, base, start, tokens):
    own = build(work, base, "own", "fp64", *adapt(experts="own"))
    said = run(own, "eval", "--load", base, "--adapter", start, "--val", tokens, code=1).stderr
    assert "target_parameters is set" in said and "adapt.experts = fused reads them" in said, said
    half = build(work, base, "half", "fp64", *adapt(of="*.experts.*.w1,*.experts.*.w2"))
    said = run(half, "export", "--load", base, "--to", work / "no", code=1).stderr
    assert "elements too few" in said, said


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        tokens, base = work / "tokens.bin", work / "base"
        weights.write_tokens(tokens, OWN["tokens"][:POSITIONS + 1])
        weights.write_folder(base, {**OWN["config"], "output_router_logits": False}, tensors(OWN, "F64"))
        check_parity(work, base, tokens, "fp32")
        program, start = check_parity(work, base, tokens, "fp64")
        out = check_out(work, program, base, tokens)
        check_merged(work, program, base, out, tokens)
        check_round_trip(work, program, base, start, tokens)
        if "RANKS" in os.environ:
            weights.write_tokens(tokens, OWN["tokens"])
            check_ranks(work, base, start, tokens)
        check_refused(work, base, start, tokens)


if __name__ == "__main__":
    main()
