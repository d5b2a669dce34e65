#!/usr/bin/env python3
"""upcycle.py HECATE_UPCYCLE: models with experts from tiny ones without: the same logits, the same bytes for one seed,
two steps of training and an export; with noise other ones; refusals that leave nothing behind. Environment: HECATEC."""
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
from harness import POSITIONS, compile_folder, load, logits, run, tensors  # noqa: E402
import weights  # noqa: E402

UPCYCLE = sys.argv[1]
PARTS = {"w1": "gate", "w3": "up", "w2": "down"}
# Without features that the other family lacks, and without keys whose defaults differ.
CHANGES = {"llama": {"attention_bias": False, "rms_norm_eps": None},
           "mistral": {"rms_norm_eps": None, "rope_parameters": None},
           "qwen3": {"use_sliding_window": False, "layer_types": ["full_attention"] * 3}}


def dense(work, family, dtype="BF16", **changes):
    case = load(family)
    config = {key: value for key, value in {**case["config"], **CHANGES[family], **changes}.items() if value is not None}
    own = {name: t for name, t in tensors(case, dtype).items() if not name.endswith("_proj.bias")}
    folder = work / f"{family}-dense"
    shutil.rmtree(folder, ignore_errors=True)
    weights.write_folder(folder, config, own, shards=2)
    (folder / "tokenizer.json").write_text("{}")
    return case, folder


def upcycle(folder, to, *flags, code=0):
    return run(UPCYCLE, folder, f"--to={to}", *flags, code=code)


def compare(work, case, folder, made):
    """The largest difference of logits, over the largest logit."""
    weights.write_tokens(work / "tokens.bin", case["tokens"])
    programs = [compile_folder(work, at, "fp64") for at in (folder, made)]
    want, got = (logits(work, program, at, work / "tokens.bin")[1] for program, at in zip(programs, (folder, made)))
    return max(abs(a - b) for a, b in zip(got, want, strict=True)) / max(map(abs, want)), programs[1]


def check_family(work, family, dtype):
    case, folder = dense(work, family, dtype)
    made, again = work / f"{family}-made", work / f"{family}-again"
    upcycle(folder, made, "--experts=4", "--topk=2", "--shard-bytes=9000")
    upcycle(folder, again, "--experts=4", "--topk=2", "--shard-bytes=9000")
    files = sorted(path.name for path in made.iterdir())
    assert files == sorted(path.name for path in again.iterdir()) and "tokenizer.json" in files, files
    assert all((made / name).read_bytes() == (again / name).read_bytes() for name in files), family
    assert sum(name.endswith(".safetensors") for name in files) > 2, files
    worst, program = compare(work, case, folder, made)
    print(f"{family}: logits differ by {worst:.2g}")
    assert worst <= 1e-12, family
    check_routers(made, again, folder)
    check_training(work, case, program, made)


def check_routers(made, again, folder):
    """Another seed draws other routers, and changes nothing else."""
    shutil.rmtree(again)
    upcycle(folder, again, "--experts=4", "--topk=2", "--seed=2")
    first, second = weights.read_folder(made), weights.read_folder(again)
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {name for name in first if name.endswith(".gate.weight")} and len(changed) == 3, changed


def check_training(work, case, program, made):
    """Two steps, and the tuned model as a folder like that one, which is read back."""
    train, tuned, out = work / "train.bin", work / "tuned.safetensors", work / f"{made.name}-out"
    weights.write_tokens(train, case["tokens"][:POSITIONS + 1])
    run(program, "train", "--load", made, "--data", train, "--steps", 2, "--save", tuned, "--set", f"train.tokens={POSITIONS}",
        "--set", "train.optimizer.lr=1e-3")
    run(program, "export", "--load", tuned, "--like", made, "--to", out)
    first, second = weights.read_folder(made), weights.read_folder(out)
    assert {name: t[:2] for name, t in first.items()} == {name: t[:2] for name, t in second.items()}
    changed = {name for name in first if first[name] != second[name]}
    assert all(name in changed for name in first if ".gate." in name) and any(".experts." in name for name in changed), changed
    assert json.loads((made / "config.json").read_text()) == json.loads((out / "config.json").read_text())
    was, now = (logits(work, program, at, work / "tokens.bin")[1] for at in (made, out))
    assert was != now and len(was) == len(now)


def check_config(work):
    """A key that the dense family does not read has no effect on the other one, which would."""
    _, folder = dense(work, "llama", sliding_window=2, num_experts=3, output_router_logits=True)
    upcycle(folder, work / "keys", "--experts=4", "--topk=2")
    config = json.loads((work / "keys" / "config.json").read_text())
    assert config["sliding_window"] is None and config["output_router_logits"] is False, config
    assert config["num_local_experts"] == 4 and "num_experts" not in config, config


def experts(folder, made):
    """(layer and expert, part, columns, dense numbers, numbers) of each matrix of the experts of a mixtral in fp32."""
    own = weights.read_folder(folder)
    for name, (dtype, shape, data) in weights.read_folder(made).items():
        if ".experts." in name:
            expert, part = name.rsplit(".", 2)[:2]
            base = own[re.sub(r"block_sparse_moe.*", f"mlp.{PARTS[part]}_proj.weight", name)][2]
            assert dtype == "F32"
            yield expert, part, shape[1], *(memoryview(x).cast("f") for x in (base, data))


def check_noise(work):
    case, folder = dense(work, "llama", "F32")
    made = work / "noisy"
    upcycle(folder, made, "--experts=4", "--topk=2", "--noise=0.5")
    for expert, part, _, dense_values, values in experts(folder, made):
        share = deviation([a - b for a, b in zip(values, dense_values, strict=True)]) / deviation(dense_values)
        assert 0.4 < share < 0.6, (expert, part, share)  # 320 numbers: five deviations are 0.1.
    worst, _ = compare(work, case, folder, made)
    assert worst > 1e-3, worst


def check_reinit(work):
    """The same units are new in all three matrices of an expert, in each expert others; with the tensor's deviation."""
    case, folder = dense(work, "llama", "F32")
    made, units, new, old = work / "anew", {}, [], []
    upcycle(folder, made, "--experts=4", "--topk=2", "--reinit=0.5")
    for expert, part, columns, dense_values, values in experts(folder, made):
        changed = [i for i, (a, b) in enumerate(zip(values, dense_values, strict=True)) if a != b]
        own = sorted({i % columns if part == "w2" else i // columns for i in changed})
        assert units.setdefault(expert, own) == own and len(changed) == 16 * len(own), (expert, part, own)
        new += [values[i] for i in changed]
        old += list(dense_values)
    assert len({tuple(own) for own in units.values()}) == len(units) == 12, units
    assert 90 <= sum(map(len, units.values())) <= 150, units  # 120 of 240, and four deviations are 31.
    assert 0.9 < deviation(new) / deviation(old) < 1.1, deviation(new) / deviation(old)
    worst, _ = compare(work, case, folder, made)
    assert worst > 1e-3, worst


def deviation(values):
    mean = sum(values) / len(values)
    return (sum((x - mean) ** 2 for x in values) / len(values)) ** 0.5


def check_split(work):
    """Experts that are parts of the MLP are chosen together; the parts of a copy are the MLP."""
    for family, dtype in (("llama", "BF16"), ("qwen3", "F32")):
        case, folder = dense(work, family, dtype)
        made = work / f"{family}-split"
        upcycle(folder, made, "--experts=8", "--topk=4", "--split=2")
        worst, _ = compare(work, case, folder, made)
        print(f"{family}, split: logits differ by {worst:.2g}")
        assert worst <= 1e-12, family


def check_refusals(work):
    def expect(wanted, *flags, family="llama", code=1, remove=None, **changes):
        _, folder = dense(work, family, **changes)
        if remove:
            config = json.loads((folder / "config.json").read_text())
            own = weights.read_folder(folder)
            own.pop(remove)
            shutil.rmtree(folder)
            weights.write_folder(folder, config, own)
        said = upcycle(folder, work / "refused", *(flags or ("--experts=4", "--topk=2")), code=code).stderr
        assert wanted in said, f"wanted: {wanted}\ngot: {said}"
        assert not list(work.glob("refused*")), list(work.iterdir())

    expect("--topk=5 is more than --experts=4", "--experts=4", "--topk=5", code=2)
    expect("--split=3: a power of two is wanted", "--experts=6", "--topk=3", "--split=3", code=2)
    expect("--split=2 must divide --experts=6 and --topk=3", "--experts=6", "--topk=3", "--split=2", code=2)
    expect("`intermediate_size` 20 cannot be split in 8 parts", "--experts=8", "--topk=8", "--split=8")
    expect("--noise=-1: a number from 0 to 100 is wanted", "--experts=4", "--topk=2", "--noise=-1", code=2)
    expect("--reinit=2: a number from 0 to 1 is wanted", "--experts=4", "--topk=2", "--reinit=2", code=2)
    expect("a folder, --to, --experts and --topk are wanted", "--experts=4", code=2)
    expect("`model_type` is 'gemma'; llama, mistral and qwen3 get experts", model_type="gemma")
    expect("`attention_bias` cannot be carried over: mixtral has nothing like it", attention_bias=True)
    expect("`mlp_bias` cannot be carried over: mixtral has nothing like it", mlp_bias=True)
    expect("`use_sliding_window` cannot be carried over: qwen3_moe has nothing like it", family="qwen3", use_sliding_window=True)
    expect("`layer_types` cannot be carried over", family="qwen3", layer_types=["full_attention", "sliding_attention", "full_attention"])
    expect("`quantization_config` is not read here", quantization_config={"quant_method": "fp8"})
    expect("`hidden_size` must be a count", hidden_size="16")
    expect("has no tensor 'model.layers.1.mlp.up_proj.weight'", remove="model.layers.1.mlp.up_proj.weight")
    expect("has no tensor 'model.layers.3.mlp.gate_proj.weight'", num_hidden_layers=4)
    expect("tensor 'model.layers.0.mlp.gate_proj.weight' is not [24, 16]", intermediate_size=24)
    _, folder = dense(work, "llama")
    (work / "there").mkdir()
    said = upcycle(folder, work / "there", "--experts=4", "--topk=2", code=1).stderr
    assert "there' is there already" in said and not list((work / "there").iterdir()), said


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        check_refusals(work)
        for family, dtype in (("llama", "BF16"), ("mistral", "F16"), ("qwen3", "F32")):
            check_family(work, family, dtype)
        check_config(work)
        check_noise(work)
        check_reinit(work)
        check_split(work)


if __name__ == "__main__":
    main()
