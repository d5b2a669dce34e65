#!/usr/bin/env python3
"""qwen3_next.py: Qwen3-Next as a page with its own names, qwen3_next.moe. Logits are those of transformers (1e-9 in
fp64), an export has the same bytes, and at full size there are as many parameters. Environment: HECATEC."""
import json
import math
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from harness import HECATEC, STORED, logits, run  # noqa: E402
import weights  # noqa: E402

FULL = 79_674_391_296  # As transformers counts for Qwen3-Next-80B-A3B.
PAGE = pathlib.Path(__file__).with_suffix(".moe")


def compare(got, wanted, bound):
    most = max(abs(x) for x in wanted)
    worst = max(abs(x - y) for x, y in zip(got, wanted))
    assert len(got) == len(wanted) and worst <= bound * most, (len(got), worst / most)


def parameters(graph):
    count = 0
    for line in graph.splitlines():
        if '"moe.param"()' not in line or "trainable = false" in line:
            continue
        dims = re.search(r"type = tensor<([0-9x]+)xf32", line).group(1).split("x")
        layers = int(re.search(r"layers = (\d+)", line).group(1))
        count += max(layers, 1) * math.prod(int(dim) for dim in dims)
    return count


def main():
    case = json.loads((STORED / "pages" / "qwen3_next.json").read_text())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        tensors = {key: ("F32", shape, weights.pack("F32", weights.values(key, shape))) for key, shape in case["tensors"].items()}
        weights.write_folder(work / "folder", case["config"], tensors)
        further = {"mtp.fc.weight": ("F32", [2, 1], weights.pack("F32", [0.5, 1]))}  # As released folders have.
        weights.write_folder(work / "released", case["config"], {**tensors, **further})
        weights.write_tokens(work / "tokens.bin", case["tokens"])
        for precision, bound in ("fp64", 1e-9), ("fp32", 1e-4):
            run(HECATEC, "-O0", "--set", f"train.precision={precision}", PAGE, "-o", work / precision)
            compare(logits(work, work / precision, work / "folder", work / "tokens.bin")[1], case["logits"], bound)
        assert logits(work, work / "fp64", work / "released", work / "tokens.bin") == logits(
            work, work / "fp64", work / "folder", work / "tokens.bin")
        run(work / "fp32", "export", "--load", work / "folder", "--to", work / "out")
        assert weights.read_folder(work / "out") == weights.read_folder(work / "folder")
        full = re.findall(r"-D \w+=\w+", PAGE.read_text())
        assert len(full) == 15, full
        graph = run(HECATEC, "-w", "--compile-to=graph", "-o", "-", *(word for text in full for word in text.split()), PAGE).stdout
        assert parameters(graph) == FULL, parameters(graph)


if __name__ == "__main__":
    main()
