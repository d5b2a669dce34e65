"""rollouts.py HECATE_DATA: answers of an engine become tokens, weights, entries and routes in one order, or are refused
with their place; nothing is left of a run that failed but routes that programs refuse."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

PROGRAM = sys.argv[1]
T, V, LAYERS, EXPERTS, TOPK = 12, 300, 2, 5, 2
MODEL = (f"--pack={T}", f"--vocabulary={V}")
ROUTES = (f"--layers={LAYERS}", f"--experts={EXPERTS}", f"--topk={TOPK}")


def run(command, *arguments, code=0, wanted=""):
    done = subprocess.run([PROGRAM, command, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != code or wanted not in done.stderr + done.stdout:
        sys.exit(f"{arguments}: {done.returncode}, wanted {code} and '{wanted}'\n{done.stdout}{done.stderr}")


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def draw(drawn, prompt, answer):
    real = lambda: struct.unpack("<f", struct.pack("<f", drawn.gauss(-2, 1)))[0]
    return {"prompt": [drawn.randrange(V) for _ in range(prompt)], "answer": [drawn.randrange(V) for _ in range(answer)],
            "log": [real() for _ in range(answer)], "gain": [real() for _ in range(answer)], "ref": [real() for _ in range(answer)],
            "mask": [drawn.randrange(2) for _ in range(answer)],
            "routes": [[drawn.sample(range(EXPERTS), TOPK) for _ in range(LAYERS)] for _ in range(prompt + answer - 1)]}


def expect(path, answers, entries, masked, routed, padding):
    """Each file, from its format."""
    ids, weights, rows = [], [], []
    for a in answers:
        own = a["prompt"] + a["answer"] + [padding] * (T - len(a["prompt"]) - len(a["answer"]))
        counts = [0] * len(a["prompt"]) + (a["mask"] if masked else [1] * len(a["answer"]))
        values = [(0, 0, 0)] * (len(a["prompt"]) - 1) + list(zip(a["log"], a["gain"], a["ref"], strict=True))
        values += [(0, 0, 0)] * (T - len(values))
        ids += own
        weights += counts + [0] * (T - len(counts))
        rows += [struct.pack(f"<{entries}H{entries}f", *[following] * entries, *value[:entries])
                 for following, value in zip([*own[1:], 0], values, strict=True)]
    raw = path.read_bytes()
    assert struct.unpack("<5i", raw[:20]) == (20240520, 1, len(ids), T, 0) and raw[1024:] == struct.pack(f"<{len(ids)}H", *ids)
    bits = pathlib.Path(f"{path}.weights").read_bytes()
    assert [bits[16 + i // 8] >> i % 8 & 1 for i in range(len(ids))] == weights
    head = struct.pack("<8s2IQ4I", b"hecteach", 1, entries, len(ids), V, zlib.crc32(raw[1024:]), 2, 4).ljust(64, b"\0")
    assert pathlib.Path(f"{path}.rollout").read_bytes() == head + b"".join(rows)
    routes = pathlib.Path(f"{path}.ids")
    assert routes.exists() == routed
    if routed:
        picks = [pick for a in answers for layer in range(LAYERS) for pick in
                 [k for token in a["routes"] for k in token[layer]] + [i % EXPERTS for i in range(len(a["routes"]) * TOPK, T * TOPK)]]
        head = b"HROUTE1\n" + struct.pack("<3I", len(answers), T, LAYERS) + struct.pack("<2I", EXPERTS, TOPK) * LAYERS
        assert routes.read_bytes() == head + struct.pack(f"<{len(picks)}H", *picks)
    run("check", path, f"--vocabulary={V}", wanted="sound")


def formats(folder):
    """Names and forms of engines: of vLLM's choices, SGLang's meta_info, and plain lists."""
    drawn, path = random.Random(4), folder / "a.jsonl"
    answers = [draw(drawn, prompt, answer) for prompt, answer in ((3, 4), (3, T - 3), (1, 1), (5, 2))]
    plain = [{"prompt_ids": a["prompt"], "response_ids": a["answer"], "old_logprobs": a["log"], "advantages": a["gain"],
              "ref_logprobs": a["ref"], "loss_mask": a["mask"], "routed_experts": a["routes"]} for a in answers]
    run("rollouts", *MODEL, *ROUTES, "--end=7", "--out", folder / "plain.bin", lines(path, *plain), wanted="4 answers")
    expect(folder / "plain.bin", answers, 3, True, True, 7)
    sglang = [{"prompt_token_ids": a["prompt"], "output_ids": a["answer"], "advantage": a["gain"], "meta_info": {
        "output_token_logprobs": [[log, token, "x"] for log, token in zip(a["log"], a["answer"], strict=True)],
        "completion_tokens": len(a["answer"]), "prompt_tokens": len(a["prompt"]), "routed_experts": a["routes"]}} for a in answers]
    run("rollouts", *MODEL, *ROUTES, "--out", folder / "sglang.bin", lines(path, *sglang), wanted="2 entries each, with routes")
    expect(folder / "sglang.bin", answers, 2, False, True, 0)
    group = [{**a, "prompt": answers[0]["prompt"], "gain": [0.5] * len(a["answer"])} for a in answers[:2]]
    choices = [{"token_ids": a["answer"], "logprobs": a["log"], "advantage": 0.5} for a in group]
    run("rollouts", *MODEL, "--out", folder / "choices.bin", lines(path, {"prompt_token_ids": group[0]["prompt"], "choices": choices}))
    expect(folder / "choices.bin", group, 2, False, False, 0)
    run("rollouts", f"--pack={T}", "--vocabulary=70000", "--out", folder / "wide.bin", path)
    raw, first, log = (folder / "wide.bin.rollout").read_bytes(), len(group[0]["prompt"]) - 1, group[0]["log"][0]
    assert struct.unpack("<2I", raw[32:40]) == (4, 4) and len(raw) == 64 + 2 * T * 16
    assert struct.unpack_from("<2I2f", raw, 64 + 16 * first) == (group[0]["answer"][0],) * 2 + (log, 0.5)


def refusals(folder):
    """Each fault is named with its line and token."""
    drawn, path = random.Random(5), folder / "a.jsonl"
    a = draw(drawn, 3, 4)
    good = {"prompt_ids": a["prompt"], "response_ids": a["answer"], "logprobs": a["log"], "advantages": a["gain"], "routed_experts": a["routes"]}
    changed = lambda key, index, value: {**good, key: [*good[key][:index], value, *good[key][index + 1:]]}
    for record, wanted in (
            ({**good, "prompt_ids": []}, "no list of ids 'prompt_token_ids'"), ({**good, "response_ids": "x"}, "no list of ids 'token_ids'"),
            ({k: v for k, v in good.items() if k != "logprobs"}, "no list 'logprobs'"),
            ({k: v for k, v in good.items() if k != "advantages"}, "no 'advantages', nor an 'advantage'"),
            ({**good, "logprobs": a["log"][1:]}, "there are 3 log-probabilities, and the answer has 4 tokens"),
            ({**good, "advantages": a["gain"][1:]}, "there are 3 advantages"), ({**good, "loss_mask": [1]}, "there are 1 numbers of the mask"),
            ({**good, "loss_mask": [1, 0, 2, 1]}, "the mask of token 2 of the answer is 2: 0 or 1 is wanted"),
            ({**good, "ref_logprobs": a["ref"]}, "and this is not so of records before"),
            ({**good, "ref_logprobs": a["ref"][1:]}, "and this is not so of records before"),
            (changed("response_ids", 1, V), "token 1 is no id below 300 (--vocabulary)"), (changed("prompt_ids", 0, 1.5), "token of the prompt 0 is no id"),
            (changed("logprobs", 3, "x"), "the log-probability of token 3 of the answer is no finite number"),
            (changed("logprobs", 0, [-1, (a["answer"][0] + 1) % V]), "the log-probability of token 0 of the answer is of id"),
            (changed("advantages", 2, 1e300), "the advantage of token 2 of the answer is no finite number"),
            ({**good, "response_ids": a["answer"] * 3, "logprobs": a["log"] * 3}, "there are 15 tokens, and a sequence has 12 (--pack)"),
            ({**good, "routed_experts": a["routes"][2:]}, "there are routes of 4 tokens, and the prompt and its answer have 7"),
            ({**good, "routed_experts": None}, "there is no 'routed_experts'"), ([1], "no list of ids")):
        run("rollouts", *MODEL, *ROUTES, "--out", folder / "out", lines(path, good, record), code=1, wanted=f"a.jsonl', line 2: ")
        run("rollouts", *MODEL, *ROUTES, "--out", folder / "out", path, code=1, wanted=wanted)
        assert sorted(p.name for p in folder.iterdir()) == ["a.jsonl", "out.ids"], list(folder.iterdir())
    for flags, wanted in (((), "--vocabulary=N are wanted"), ((*MODEL, "--layers=2"), "go together"), ((*MODEL, "--end=300"), "an id below 300 is wanted"),
                          ((*MODEL, "--end=x"), "an id below 300 is wanted")):
        run("rollouts", *flags, "--out", folder / "out", path, code=2, wanted=wanted)
    run("rollouts", *MODEL, "--out", folder / "out", lines(path), code=1, wanted="the inputs have no answer")


with tempfile.TemporaryDirectory() as temporary:
    for test in (formats, refusals):
        place = pathlib.Path(temporary) / test.__name__
        place.mkdir()
        test(place)
