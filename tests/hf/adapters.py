#!/usr/bin/env python3
"""Adapters in folders of PEFT's: a tiny Mixtral trained for twenty steps against PEFT (stored/peft/mixtral.json),
folders in and out, and merged models. Environment: HECATEC."""
import json
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
from families import check_close  # noqa: E402
from harness import HECATEC, STORED, logits, run  # noqa: E402
import weights  # noqa: E402

HERE = pathlib.Path(__file__).parent
CASE = json.loads((STORED / "peft" / "mixtral.json").read_text())
STEPS, OF = 20, "*.wq,*.wv,*.wo,*.experts.*,head"
DTYPES = {"fp64": "F64", "fp32": "F32"}
WEIGHTS = "adapter_model.safetensors"


def compile_model(work, name, precision, *flags):
    program = work / name
    run(HECATEC, "-O1", "--set", f"train.precision={precision}", *flags, HERE / "adapters.moe", "-o", program)
    return program


def adapted(work, precision, **more):
    settings = {"adapt.of": OF, "adapt.rank": CASE["rank"], "adapt.alpha": CASE["alpha"], **more}
    flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return compile_model(work, f"adapted-{precision}", precision, *flags)


def write_adapters(folder, tensors, **changes):
    folder.mkdir()
    config = {"peft_type": "LORA", "r": CASE["rank"], "lora_alpha": CASE["alpha"], "target_modules": CASE["targets"],
              "lora_dropout": 0.0, "bias": "none", "rank_pattern": {}, "modules_to_save": None, **changes}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    weights.write_safetensors(folder / WEIGHTS, tensors)


def first_adapters(dtype):
    """As PEFT's began: the second matrices are zeros."""
    out = {}
    for name, (shape, _) in CASE["adapters"].items():
        numbers = weights.values(name, shape, CASE["salt"]) if "lora_A" in name else [0.0] * weights.size(shape)
        out[name] = dtype, shape, weights.pack(dtype, numbers)
    return out


def base_tensors(dtype):
    return {name: (dtype, shape, weights.pack(dtype, weights.values(name, shape, CASE["salt"])))
            for name, shape in CASE["tensors"].items()}


def train(work, program, tokens, *more):
    log = work / "log.jsonl"
    run(program, "train", "--data", tokens, "--val", tokens, "--steps", STEPS, "--log", log, "--save", work / "tuned.st",
        "--set", "train.optimizer.lr=1e-2", "--set", "train.optimizer.betas=0.9,0.95", "--set", "train.optimizer.decay=0.1",
        "--set", "train.optimizer.clip=none", "--set", "data.order=random", "--set", "train.eval_steps=0", *more)
    lines = [line for line in map(json.loads, log.read_text().splitlines()) if "cross_entropy" in line]
    return [line["cross_entropy"] for line in lines], [line["grad_norm"] for line in lines]


def check_parity(work, precision, tokens, bound):
    dtype, start = DTYPES[precision], work / f"start-{precision}"
    base = work / f"base-{precision}"
    weights.write_folder(base, {"model_type": "mixtral"}, base_tensors(dtype))
    write_adapters(start, first_adapters(dtype))
    program = adapted(work, precision)
    losses, norms = train(work, program, tokens, "--load", base, "--adapter", start)
    check_close(f"losses of {STEPS} steps, {precision}", losses,
                CASE["losses" if precision == "fp64" else "losses_fp32"], bound)
    check_close(f"norms of gradients, {precision}", norms, CASE["norms"], 1e-9 if precision == "fp64" else 1e-4)
    return program, base, start


def check_out(work, program, base, tokens, precision):
    """Trained adapters are PEFT's, the base has its bits, and the folder says how it was made."""
    out = work / f"out-{precision}"
    run(program, "export", "--load", work / "tuned.st", "--to", out, "--like", base)
    for name, (dtype, shape, _) in weights.read_safetensors(out / WEIGHTS).items():
        assert shape == CASE["adapters"][name][0] and dtype == DTYPES[precision], name
    got = weights.read_numbers(out / WEIGHTS)
    assert got.keys() == CASE["adapters"].keys()
    bound = 1e-8 if precision == "fp64" else 1e-3  # AdamW moves by rates, however small gradients are.
    for name, (_, wanted) in CASE["adapters"].items():
        check_close(name, got[name], wanted, bound)
    config = json.loads((out / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["peft_type"]) == (CASE["rank"], CASE["alpha"], "LORA"), config
    assert sorted(config["target_modules"]) == sorted(CASE["targets"]), config
    saved = weights.read_numbers(work / "tuned.st")
    frozen = [path for path in saved if ".lora_" not in path]
    run(program, "train", "--load", base, "--data", tokens, "--val", tokens, "--steps", 1, "--save", work / "none.st",
        "--set", "train.optimizer.lr=0", "--set", "train.eval_steps=0")
    before = weights.read_numbers(work / "none.st")
    assert all(saved[path] == before[path] for path in frozen), "frozen bits"
    assert len(frozen) < len(saved)
    return out


def check_round_trip(work, program, base, start, tokens):
    """Adapters that are read and written have the same bytes."""
    run(program, "train", "--load", base, "--adapter", start, "--data", tokens, "--val", tokens, "--steps", 1, "--save",
        work / "same.st", "--set", "train.optimizer.lr=0", "--set", "train.eval_steps=0")
    run(program, "export", "--load", work / "same.st", "--to", work / "same")
    assert (work / "same" / WEIGHTS).read_bytes().split(b"}}", 1)[1].lstrip(b" ") == \
        (start / WEIGHTS).read_bytes().split(b"}}", 1)[1].lstrip(b" ")
    assert weights.read_safetensors(work / "same" / WEIGHTS) == weights.read_safetensors(start / WEIGHTS)


def check_merged(work, program, base, out, tokens, precision, bound):
    """A merged model computes what the adapted one does, and the adapted one what PEFT does."""
    merged, plain = work / f"merged-{precision}", compile_model(work, f"plain-{precision}", precision)
    run(program, "export", "--load", work / "tuned.st", "--like", base, "--to", merged, "--merge")
    assert weights.read_folder(merged).keys() == weights.read_folder(base).keys()
    again = logits(work, program, work / "tuned.st", tokens)[1]
    check_close("logits against PEFT", again, CASE["logits"], bound if precision == "fp64" else 1e-4)
    check_close("merged logits", logits(work, plain, merged, tokens)[1], again, bound)
    file = work / "logits.safetensors"
    run(program, "eval", "--load", base, "--adapter", out, "--val", tokens, "--logits", file)
    assert weights.read_numbers(file)["logits"] == again, "base and adapters apart"


def check_refused(work, program, base, start, tokens):
    own = first_adapters("F64")
    one = next(iter(own))
    cases = {
        "r": (own, {"r": 4}, "r is 4, and adapt.rank of this program is 3"),
        "alpha": (own, {"lora_alpha": 7}, "lora_alpha is 7, and adapt.alpha of this program is 6"),
        "dora": (own, {"use_dora": True}, "use_dora is set; such adapters cannot be read"),
        "kind": (own, {"peft_type": "IA3"}, "peft_type is IA3; only LORA can be read"),
        "bias": (own, {"bias": "all"}, "bias is all; only none can be read"),
        "less": ({name: t for name, t in own.items() if name != one}, {}, f"it has no tensor '{one}'"),
        "more": ({**own, "base_model.model.x": own[one]}, {}, "this one has no tensor 'base_model.model.x'"),
        "shape": ({**own, one: ("F64", own[one][1][::-1], own[one][2])}, {}, f"'{one}' has shape"),
    }
    for name, (tensors, changes, wanted) in cases.items():
        write_adapters(work / name, tensors, **changes)
        said = run(program, "eval", "--load", base, "--adapter", work / name, "--val", tokens, code=1).stderr
        assert wanted in said, (name, said)
    plain = work / "plain-fp64"
    assert "this program has no adapters" in run(plain, "eval", "--load", base, "--adapter", start, "--val", tokens, code=2).stderr
    said = run(plain, "export", "--load", base, "--to", work / "no", "--merge", code=2).stderr
    assert "this program has no adapters" in said, said
    (start / "adapter_config.json").unlink()
    assert "adapter_config.json" in run(program, "eval", "--load", base, "--adapter", start, "--val", tokens, code=1).stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        tokens = work / "tokens.bin"
        weights.write_tokens(tokens, CASE["tokens"])
        for precision, bound in ("fp32", 1e-6), ("fp64", 1e-9):
            program, base, start = check_parity(work, precision, tokens, bound)
            out = check_out(work, program, base, tokens, precision)
            check_merged(work, program, base, out, tokens, precision, 2e-6 if precision == "fp32" else 1e-12)
        check_round_trip(work, program, base, start, tokens)
        check_refused(work, program, base, start, tokens)
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
