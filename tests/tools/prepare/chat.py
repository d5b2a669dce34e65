"""chat.py HECATE_DATA TOKENIZERS: conversations become tokens and weights; templates and records that are refused.

chat_compare.py compares with transformers; this is what can be told without it.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

PROGRAM, TOKENIZERS = sys.argv[1], pathlib.Path(sys.argv[2])
QWEN = json.loads((TOKENIZERS / "qwen.json").read_text(encoding="utf-8"))
IDS = {**QWEN["model"]["vocab"], **{token["content"]: token["id"] for token in QWEN["added_tokens"]}}
TEXTS = {number: text for text, number in IDS.items()}
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def run(*arguments, code=0, wanted=""):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != code or wanted not in done.stdout + done.stderr:
        sys.exit(f"{arguments}: {done.returncode}, wanted {code} and '{wanted}'\n{done.stdout}{done.stderr}")
    return done


def model(folder, template=CHATML, **config):
    folder.mkdir(exist_ok=True)
    shutil.copy(TOKENIZERS / "qwen.json", folder / "tokenizer.json")
    written = {"eos_token": "<|im_end|>", "bos_token": {"content": "<|endoftext|>"}, "pad_token": None,
               "model_max_length": 10 ** 30, "chat_template": template, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(written), encoding="utf-8")
    return folder


def read(path):
    """Pairs of the bytes of a token and its weight."""
    raw, beside = path.read_bytes(), pathlib.Path(f"{path}.weights").read_bytes()
    count = struct.unpack("<3i", raw[:12])[2]
    assert beside[8:16] == struct.pack("<q", count)
    if beside[:8] == b"hcwhalfs":
        weights = struct.unpack(f"<{count}e", beside[16:])
    else:
        assert beside[:8] == b"hcweight" and len(beside) == 16 + (count + 7) // 8
        weights = [beside[16 + i // 8] >> i % 8 & 1 for i in range(count)]
    return [(TEXTS[number].replace("Ġ", " ").replace("Ċ", "\n"), weight)
            for number, weight in zip(struct.unpack(f"<{count}H", raw[1024:]), weights, strict=True)]


def learned(pairs):
    """The text, with what counts between [ and ]."""
    out, before = "", 0
    for text, weight in [*pairs, ("", 0)]:
        out += ("[" if weight > before else "]" if weight < before else "") + text
        before = weight
    return out


def chat(folder, record, *flags, template=CHATML, name="a.jsonl", text=None, **wanted):
    """Runs chat on a record, or a text, and returns what counts."""
    model(folder / "model", template)
    (folder / name).write_text(text or json.dumps(record) + "\n", encoding="utf-8")
    shutil.rmtree(folder / "out", ignore_errors=True)
    run("chat", "--model", folder / "model", "--out", folder / "out", *flags, folder / name, **wanted)
    return None if wanted.get("code") else learned(read(folder / f"out/train/{name}.bin"))


def equal(found, wanted):
    if found != wanted:
        sys.exit(f"wanted {wanted!r}\nfound  {found!r}")


def forms(folder):
    """Each form of a record: which of its texts count."""
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"},
             {"role": "user", "content": "v"}, {"role": "assistant", "content": "b"}]
    start = "<|im_start|>system\ns<|im_end|><|im_start|>user\nu<|im_end|><|im_start|>assistant\n"
    rest = "<|im_start|>user\nv<|im_end|><|im_start|>assistant\n"
    both = start + "[a<|im_end|>]" + rest + "[b<|im_end|>]"
    equal(chat(folder, {"messages": turns}), both)
    equal(chat(folder, {"messages": turns}, "--end=<|endoftext|>"), both + "<|endoftext|>")
    equal(chat(folder, None, text=json.dumps([{"messages": turns}] * 2), name="a.json"), both * 2)
    named = [{"from": {"user": "human", "assistant": "gpt"}.get(m["role"], m["role"]), "value": m["content"]} for m in turns]
    equal(chat(folder, {"conversations": named}), both)
    last = start + "a<|im_end|>" + rest + "[b<|im_end|>]"
    equal(chat(folder, {"prompt": turns[:4], "completion": turns[4:]}), last)
    equal(chat(folder, {"messages": [*turns[:2], {**turns[2], "weight": 0}, *turns[3:]]}), last)
    pair = "<|im_start|>user\nu<|im_end|><|im_start|>assistant\n[a<|im_end|>]"
    for prompt, answer in (("prompt", "completion"), ("question", "answer"), ("instruction", "output")):
        equal(chat(folder, {prompt: "u", answer: "a"}), pair)
    marked = CHATML.replace("m['content']", "'' }}{% generation %}{{ m['content'] }}{% endgeneration %}{{ ''")
    equal(chat(folder, {"messages": turns[1:3]}, template=marked), pair.replace("a<|im_end|>]", "a]<|im_end|>")
          .replace("\nu", "\n[u]"))  # It marks every message.
    drops = CHATML.replace("m['content']", "m['content'].split('</think>')[-1]").replace("assistant\\n' }}", "assistant\\n<think>' }}")
    thought = [turns[1], {"role": "assistant", "content": "<think>t</think>a"}]
    equal(chat(folder, {"messages": thought}, template=drops), pair)  # The prompt has more than the text.
    sorts = "{% for k, v in {'b': 1, 'A': 2} | dictsort %}{{ (k * v) | safe }}{% endfor %}{{ none | select | list | length }}" + CHATML
    equal(chat(folder, {"messages": turns[1:3]}, template=sorts), "AAb0" + pair)
    first = [{"role": "assistant", "content": "a"}, {"role": "user", "content": "u"}]
    equal(chat(folder, {"messages": first}), "<|im_start|>assistant\n[a<|im_end|>]<|im_start|>user\nu<|im_end|>")
    named_templates = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": CHATML}]
    equal(chat(folder, {"messages": turns[1:3]}, template=named_templates), pair)
    thinks = "{% if enable_thinking %}T{% endif %}{% if tools %}F{% endif %}" + CHATML
    record = {"messages": turns[1:3], "tools": [{}], "chat_template_kwargs": {"enable_thinking": True}}
    equal(chat(folder, record, template=thinks), "TF" + pair)
    dated = CHATML.replace("{% for", "{{ strftime_now('%d %b') }}{% for", 1)
    equal(chat(folder, record, "--date=2026-11-27", template=dated), "27 Nov" + pair)


def refusals(folder):
    """Records and templates that are refused, with their places."""
    good = {"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]}
    for record, wanted in (
            ({"text": "a"}, "'%s', line 2: no conversation: neither messages, nor prompt and completion"),
            ([1], "'%s', line 2: no conversation"),
            ({"messages": []}, "'%s', line 2: a conversation without messages"),
            ({"messages": [{"role": "user", "content": "a"}]}, "no message of the assistant that is learned"),
            ({"messages": [{"content": "a"}]}, "message 1 has no role"),
            ({"messages": [{"role": "user"}]}, "message 1 has no content"),
            ({"messages": ["a"]}, "message 1 is no object"),
            *(({"messages": [{"role": "assistant", "content": "a", "weight": weight}]}, "message 1: its weight is no number from 0 to 1")
              for weight in (1.5, -0.25, "0.5", None, True)),
            ({"messages": [{"role": "assistant", "content": None}]}, "line 1: + of a text and none is not supported")):
        text = json.dumps(good) + "\n" + json.dumps(record) + "\n" + json.dumps(good) + "\n"
        chat(folder, None, text=text, code=1, wanted=wanted.replace("%s", str(folder / "a.jsonl")))
        found = chat(folder, None, "--bad=skip", text=text, wanted="1 bad records are left out")
        equal(found, chat(folder, good) * 2)
    for template, wanted in (
            ("{% for %}", "line 1: a name is wanted"),
            ("a\n{{ x | nope }}", "line 2: the filter 'nope' is not supported"),
            ("{{ 'a' is nope }}", "the test 'nope' with 0 arguments is not supported"),
            ("{{ 'a' | safe + 'b' }}", "the filter 'safe' is not supported"),
            ("{{ 'a'.nope() }}", "the function or method 'nope' is not known"),
            ("a\n\n{% include 'x' %}", "line 3: the statement 'include' is not supported"),
            ("{% if a %}", "line 1: the block has no elif"),
            ("{% endif %}", "'endif' ends nothing here"),
            ("{{ 'a }}", "a string does not end"),
            ("{{ a", "{{ has no }}"),
            ("{% a", "{% has no %}"),
            ("{# a", "{# has no #}"),
            ("{{ " + "(" * 200 + "1" + ")" * 200 + " }}", "levels of nesting"),
            ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself too deeply"),
            ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "MiB of memory"),
            ("{% set n = namespace(a='aaaaaaaa') %}{% for i in range(16) %}{% set n.a = n.a + n.a %}{% endfor %}"
             "{% for i in range(9999) %}{{ 'b' in n.a }}{% endfor %}", "takes too long"),
            ("{% set n = namespace(a='aaaaaaaa') %}{% for i in range(99) %}{% set n.a = n.a + n.a %}{% endfor %}", "MiB of memory"),
            ("{{ raise_exception('no tools') }}", "the template refuses the conversation: no tools"),
            ("{{ strftime_now('%Y') }}", "--date=YYYY-MM-DD is wanted"),
            ("{{ messages[0].content }}", "line 1: the template writes nothing that is learned"),
            ("{{ messages | length }}", "message 2 is not found in the text"),
            ("{{ messages }}", "a list becomes a text as Python writes it, which is not supported; tojson is"),
            ("{{ 'é' | upper }}", "upper of a text beyond ASCII is not supported")):
        chat(folder, good, template=template, code=1, wanted=wanted)
    chat(folder, good, name="a.txt", code=2, wanted="conversations are JSON lines or a JSON array")
    chat(folder, good, template=None, code=2, wanted="has no chat template")
    run("chat", "--out", folder / "out", folder / "a.jsonl", code=2, wanted="--model=FOLDER is wanted")
    run("chat", "--model", folder / "none", "--out", folder / "out", folder / "a.jsonl", code=1, wanted="cannot open")


def weights(folder):
    """Weights go along: inspect, check, mix, tokenize; a file of other tokens, or none, is refused."""
    good = {"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]}
    whole = chat(folder, good, wanted="1 document, 15 tokens, 2 count in the loss")
    path = folder / "out/train/a.jsonl.bin"
    run("inspect", path, wanted="15 tokens, the largest id is")
    run("inspect", path, wanted=", 2 count in the loss")
    run("check", path, wanted="sound")
    record = json.loads(pathlib.Path(f"{path}.json").read_text(encoding="utf-8"))
    assert record["counted"] == 2 and record["tokens"] == 15
    run("chat", "--model", folder / "model", "--out", folder / "out", folder / "a.jsonl", wanted="is there already")
    run("tokenize", "--vocabulary=1000", "--out", folder / "again", path)
    equal(learned(read(folder / "again/train/a.jsonl.bin.bin")), whole)
    run("mix", "--out", folder / "mixed.bin", "--tokens=30", "--block=15", f"{path}=1")
    equal(learned(read(folder / "mixed.bin")), whole * 2)
    beside = pathlib.Path(f"{path}.weights")
    raw = beside.read_bytes()
    for changed, wanted in ((raw[:-1] + bytes([raw[-1] ^ 2]), "tokens count"), (raw + b"\0", "is of other tokens"), (b"a" + raw[1:], "has no weights"),
                            (raw[:8] + struct.pack("<q", 9) + raw[16:], "is of other tokens"), (raw[:9], "is truncated")):
        beside.write_bytes(changed)
        run("check", path, code=1, wanted=wanted)
    beside.unlink()
    run("check", path, code=1, wanted="has no weights beside it, of which its record tells")
    (folder / "a.jsonl.weights").write_bytes(b"old")
    beside.write_bytes(raw)
    (folder / "a.jsonl").write_text('{"text": "plain"}\n', encoding="utf-8")
    run("tokenize", "--tokenizer", folder / "model/tokenizer.json", "--end=none", "--out", folder / "out", folder / "a.jsonl")
    assert not beside.exists()


def fractions(folder):
    """Weights between 0 and 1: as halves, from the first one on. Those before it become halves, too."""
    start = [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a", "weight": 0.25},
             {"role": "user", "content": "v"}, {"role": "assistant", "content": "b"}]
    chat(folder, {"messages": start}, wanted="30 tokens, 4 count in the loss by 2.5")
    path = folder / "out/train/a.jsonl.bin"
    found = [pair for pair in read(path) if pair[1]]
    assert found == [("a", 0.25), ("<|im_end|>", 0.25), ("b", 1), ("<|im_end|>", 1)], found
    run("inspect", path, wanted=", 4 count in the loss by 2.5")
    run("check", path, wanted="sound")
    once = read(path)
    run("tokenize", "--vocabulary=1000", "--out", folder / "again", path)
    assert read(folder / "again/train/a.jsonl.bin.bin") == once
    run("mix", "--out", folder / "mixed.bin", "--tokens=60", "--block=30", f"{path}=1")
    assert read(folder / "mixed.bin") == once * 2
    chat(folder, {"messages": start}, "--pack=64", "--end=<|endoftext|>")
    assert [pair for pair in read(path) if pair[1]] == found
    for third in (1 / 3, 1e-5, 1e-9, 0.99999):  # Rounded to halves; nothing is left of one.
        only = [start[0], {**start[1], "weight": third}, *start[2:]]
        chat(folder, {"messages": only})
        assert read(path)[13][1] == struct.unpack("<e", struct.pack("<e", third))[0], (third, read(path))
    whole = [{"messages": [start[0], start[3]]}] * 5000  # More than one block of bits before the first half.
    chat(folder, None, text="\n".join(json.dumps(record) for record in [*whole, {"messages": start}]))
    many = read(path)
    assert [pair[1] for pair in many[:-30]] == [0] * 0 + [pair[1] for pair in many[:15]] * 5000 and many[-30:] == once
    marked = CHATML.replace("m['content']", "'' }}{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}{% endgeneration %}{% endif %}{{ ''")
    chat(folder, {"messages": start}, template=marked)
    assert [pair for pair in read(path) if pair[1]] == [("a", 0.25), ("b", 1)]
    raw = pathlib.Path(f"{path}.weights").read_bytes()
    pathlib.Path(f"{path}.weights").write_bytes(raw[:-2] + struct.pack("<e", -0.5))
    run("check", path, code=1, wanted=f"the weight of token {len(read(path)) - 1} (from 0) is -0.5; weights are from 0 to 1")
    pair = {"prompt": "u", "chosen": [{"role": "assistant", "content": "a", "weight": 0.5}], "rejected": "b"}
    (folder / "p.jsonl").write_text(json.dumps(pair), encoding="utf-8")
    run("pairs", "--model", folder / "model", "--end=<|endoftext|>", "--pack=32", "--out", folder / "pairs", folder / "p.jsonl", code=1,
        wanted="line 1: the chosen answer: weights of pairs are 0 or 1")


with tempfile.TemporaryDirectory() as temporary:
    for test in (forms, refusals, weights, fractions):
        place = pathlib.Path(temporary) / test.__name__
        place.mkdir()
        test(place)
