#!/usr/bin/env python3
"""Changed config.json: hecatec refuses the ones that it cannot express, and computes the others as transformers does,
in double precision.

    configs.py check FAMILY                          against stored/configs/FAMILY.json; Python alone
    configs.py compare [--random COUNT] [FAMILY...]  all changes, and COUNT random configs, against transformers; 77 where it is missing
    configs.py record [FAMILY...]                    writes stored/configs/: of a part of them whether transformers and hecatec take it, and logits

A refusal names keys that stand in the file, at their place. Environment: HECATEC."""
import argparse
import hashlib
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True
from changes import BASES, changes, random_config  # noqa: E402
from harness import HECATEC, POSITIONS, STORED, logits, run  # noqa: E402
import weights  # noqa: E402

CONFIGS = STORED / "configs"
BOUND = 1e-9  # Relative to the largest logit.
EVERY = 17  # A part of logits is stored.
PART = 6  # A part of changes as well, but for these.
NOTABLE = ("", "older", "rope_theta removed", "older rope_theta removed", "partial_rotary_factor null", "older partial_rotary_factor null",
           "rope_scaling = {}", "layer_types null", "norm_topk_prob null", "rope_interleave null", "routed_scaling_factor = 1.7", "n_group = 2",
           "clip_qkv = 0.25", "sliding_window = 2", "topk_group = 2", "use_sliding_window = false", "num_experts_per_tok = 9",
           'rope_parameters = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4, "beta_fast": 1.0, "beta_slow": 1.0}')
PROGRAMS = 6  # Programs of each family whose logits are stored.


def reduced(family):
    """The part of changes that is stored."""
    every = changes(family)
    part = [what for what in every if zlib.crc32(what.encode()) % PART == 0]
    return {what: every[what] for what in dict.fromkeys([what for what in NOTABLE if what in every] + part)}


def tokens(config):
    """Tokens of two sequences, all in the vocabulary."""
    draw = random.Random("tokens of configs")
    return [draw.randrange(config.get("text_config", config).get("vocab_size", 40)) for _ in range(2 * POSITIONS + 1)]


class Ours:
    """Reads a config by hecatec, and runs the programs that it makes. One program for each text."""

    def __init__(self, work):
        self.work, self.programs = work, {}

    def read(self, config):
        """(code, messages, the text) of --from-hf."""
        folder, text = self.work / "config", self.work / "model.moe"
        folder.mkdir(exist_ok=True)
        text.unlink(missing_ok=True)
        written = json.dumps(config, indent=1)
        (folder / "config.json").write_text(written)
        done = subprocess.run([HECATEC, f"--from-hf={folder}", "-o", text], capture_output=True, text=True, timeout=100)
        if done.returncode:
            check_places(written, done.stderr)
        return done.returncode, done.stderr, text.read_text() if text.exists() else ""

    def program(self, text):
        """The program of a text; None and what was said where it cannot be compiled."""
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        if key not in self.programs:
            (self.work / "model.moe").write_text(text)
            without = ["-D", "predictors=0"] if "let predictors" in text else []  # transformers computes no such layer.
            command = [HECATEC, "-O0", "-D", f"T={POSITIONS}", *without, "--set", "train.precision=fp64", self.work / "model.moe", "-o", self.work / key]
            done = subprocess.run(command, capture_output=True, text=True, timeout=100)
            self.programs[key] = (self.work / key if done.returncode == 0 else None), done.stderr
        return self.programs[key]

    def logits(self, program, config, own):
        folder = self.work / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        weights.write_folder(folder, config, own)
        weights.write_tokens(self.work / "tokens.bin", tokens(config))
        return logits(self.work, program, folder, self.work / "tokens.bin")[1]


def check_places(text, said):
    """Keys that errors name stand where they say, but for those that are missing or have a default."""
    for line in said.splitlines():
        found = re.search(r"config\.json:(\d+):(\d+): error: `(\w+)`", line)
        if found:
            row, column = int(found[1]), int(found[2])
            if not re.search(rf'"{found[3]}": $', text.splitlines()[row - 1][:column - 1]):
                sys.exit(f"no key {found[3]} stands there: {line}\n{text}")
        elif not re.search(r"error: (there is no `\w+`|`\w+`, by default )", line):
            sys.exit(f"neither a place nor a missing key: {line}")


def tensors_of(shapes):
    """Elements that bf16 holds exactly, from the names."""
    return {name: ("BF16", shape, weights.pack("BF16", weights.values(name, shape))) for name, shape in shapes.items()}


def distance(got, want):
    return max(abs(a - b) for a, b in zip(got, want, strict=True)) / max(abs(x) for x in want)


# ---- against transformers

def compare(families, count):
    try:
        from theirs import Theirs
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    wrong, counts = [], {}
    with tempfile.TemporaryDirectory() as name:
        ours, theirs = Ours(pathlib.Path(name)), Theirs()
        for family in families:
            cases = list(changes(family).items()) if count is None else [(f"random {i}", random_config(family, i)) for i in range(count)]
            for what, config in cases:
                verdict, said = judge(ours, theirs, config)
                counts[verdict] = counts.get(verdict, 0) + 1
                if verdict.startswith("WRONG"):
                    wrong.append(f"{family}: {what}: {verdict} {said}")
                    print(wrong[-1], flush=True)
                    print(json.dumps(config), file=sys.stderr)
            print(family, len(cases), counts, flush=True)
    print(f"{sum(counts.values())} configs, {len(wrong)} accepted and wrong: {counts}")
    return 1 if wrong else 0


def judge(ours, theirs, config):
    code, said, text = ours.read(config)
    if code == 1:
        return "refused", said
    if code:
        return f"WRONG: exit status {code}", said
    program, said = ours.program(text)
    if not program:
        return "WRONG: what it writes is refused", said
    model = theirs.build(config)
    if not model:
        return "transformers refuses", said
    want = model.logits(tokens(config))
    if want is None:
        return "transformers fails", said
    if any(x != x for x in want):
        return "transformers computes no numbers", said
    try:
        got = ours.logits(program, config, model.tensors)
    except SystemExit as refused:
        return "refused when loading", str(refused)
    far = distance(got, want)
    return ("right", said) if far <= BOUND else (f"WRONG: logits differ by {far:.1e}", said)


# ---- stored

def record(families):
    from theirs import Theirs
    CONFIGS.mkdir(exist_ok=True)
    theirs = Theirs()
    for family in families:
        with tempfile.TemporaryDirectory() as name:
            ours, outcome, sets, seen = Ours(pathlib.Path(name)), {}, [], {}
            for what, config in reduced(family).items():
                code, _, _ = ours.read(config)
                model = None if code else theirs.build(config)
                want = model.logits(tokens(config)) if model else None
                if code or want is None or any(x != x for x in want):
                    outcome[what] = "refused" if code else "unknown"
                    continue
                key = json.dumps([round(x, 9) for x in want])
                if key not in seen and len(sets) < PROGRAMS:
                    seen[key] = len(sets)
                    sets.append({"tensors": {name: shape for name, (_, shape, _) in model.tensors.items()}, "largest": max(map(abs, want)),
                                 "logits": want[::EVERY]})
                outcome[what] = seen.get(key, "unknown")
        base = sets[0]["tensors"]
        for own in sets[1:]:
            own["changed"] = {name: own["tensors"].get(name) for name in sorted({**base, **own["tensors"]})
                              if own["tensors"].get(name) != base.get(name)}
            own.pop("tensors")
        result = {"transformers": theirs.version, "outcome": outcome, "sets": sets}
        (CONFIGS / f"{family}.json").write_text(json.dumps(result).replace(', "', ',\n"') + "\n")
        print(family, len(outcome), "changes,", len(sets), "programs")


def check(family):
    stored = json.loads((CONFIGS / f"{family}.json").read_text())
    cases, base = reduced(family), stored["sets"][0]["tensors"]
    assert cases.keys() == stored["outcome"].keys(), "record it again"
    computed = 0
    with tempfile.TemporaryDirectory() as name:
        ours, known = Ours(pathlib.Path(name)), {}
        for what, outcome in stored["outcome"].items():
            code, said, text = ours.read(cases[what])
            assert code == (1 if outcome == "refused" else 0), (what, code, outcome, said)
            if not isinstance(outcome, int):
                continue
            own = stored["sets"][outcome]
            shapes = {tensor: shape for tensor, shape in {**base, **own.get("changed", {})}.items() if shape}
            if (text, outcome) not in known:
                program, said = ours.program(text)
                assert program, (what, said)
                known[text, outcome] = ours.logits(program, cases[what], tensors_of(shapes))[::EVERY]
            far = max(abs(a - b) for a, b in zip(known[text, outcome], own["logits"], strict=True)) / own["largest"]
            assert far <= BOUND, f"{what}: logits differ by {far:.1e}"
            computed += 1
    print(f"{family}: {len(cases)} changes, logits of {computed} by {len(known)} programs")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("check", "compare", "record"))
    parser.add_argument("--random", type=int, dest="count", help="that many random configs of each family in place of the changes")
    parser.add_argument("families", nargs="*")
    given = parser.parse_intermixed_args()
    families = given.families or BASES
    if given.mode == "check":
        return max(check(family) for family in families)
    return record(families) if given.mode == "record" else compare(families, given.count)


if __name__ == "__main__":
    sys.exit(main())
