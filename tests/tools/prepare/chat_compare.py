"""chat_compare.py HECATE_DATA TOKENIZERS [COUNT] [--only NAME]: conversations against transformers.

COUNT conversations (40) for each template in templates/, which are written in the constructs of the families' own:
tokens equal those of apply_chat_template, and weights its assistant_masks. Without generation blocks, weights are
the same. Exit status 77 without transformers.
"""

import argparse
import datetime
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

try:
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import chat_template_utils
except ImportError:
    sys.exit(77)

DAY = (2026, 11, 27)
TEMPLATES = pathlib.Path(__file__).with_name("templates")
# Template: tokenizer, bos, eos, special tokens besides, and whether it knows tools, and systems.
FAMILIES = {
    "chatml": ("qwen", None, "<|endoftext|>", [], False, True),
    "qwen3": ("qwen", None, "<|im_end|>", ["<think>", "</think>", "<tool_call>", "</tool_call>"], True, True),
    "deepseek_v2": ("deepseek", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", [], False, True),
    "deepseek_v3": ("deepseek", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", ["<｜Assistant｜>"], True, True),
    "mixtral": ("mixtral", "<s>", "</s>", [], False, True),
    "glm45": ("gpt2", None, "<|endoftext|>", ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"], True, True),
    "gpt_oss": ("gpt2", None, "<|return|>", ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>"], True, True),
    "olmoe": ("gpt2", "<|endoftext|>", "<|endoftext|>", [], False, True),
    "llama4": ("llama3", "<|begin_of_text|>", "<|eot|>", ["<|header_start|>", "<|header_end|>", "<|python_start|>", "<|python_end|>"], True, True),
}
WORDS = ("Hello", "world", "123", "naïve", "Café", "日本語", "\U0001f600", "é", "don't", "x = {\"a\": [1]}", "<b>", "\n", "\n\n",
         "  two", "\tTab", "</s", "[INST]", "ﬁn", "Ａ", "…", "{{ no }}", "{% if %}", "\\n", "'quoted'", "a\u0301", "1.5", "-", "und", "so")
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather \"there\"", "parameters": {
    "type": "object", "required": ["city"], "properties": {
        "city": {"type": "string"}, "days": {"type": "integer", "nullable": True}, "kinds": {"type": "array", "items": {"type": "string"}},
        "unit": {"type": "string", "enum": ["C", "F"]}, "any": {"type": ["string", "number"]},
        "place": {"type": "object", "properties": {"x": {"type": "number"}, "deep": {"type": "array"}}}}}}}]


def text(rng, most=12):
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, most)))
    return rng.choice(("Yes", "No", "é", "A")) + " " + words + rng.choice(("", ".", " end", "?", "\U0001f600"))


def answer(rng, family):
    content = text(rng)
    if family in ("qwen3", "glm45", "deepseek_v3") and rng.random() < 0.4:
        content = "<think>\n" + text(rng) + "\n</think>\n\n" + content
    message = {"role": "assistant", "content": content}
    if family in ("qwen3", "glm45") and rng.random() < 0.2:
        message["reasoning_content"] = text(rng)
    if family == "gpt_oss" and rng.random() < 0.3:
        message["thinking"] = text(rng)
    return message


def called(rng, family):
    arguments = {"city": text(rng, 3), "days": rng.randrange(9), "real": rng.choice((0.5, 1e-7, 3.0)), "list": [None, True, {"k": []}]}
    call = {"type": "function", "function": {"name": "weather", "arguments": arguments}}
    content = text(rng) if family != "gpt_oss" or rng.random() < 0.5 else ""
    yield {"role": "assistant", "content": content, "tool_calls": [call]}
    for _ in range(1 if family == "gpt_oss" else rng.randrange(1, 3)):
        yield {"role": "tool", "content": text(rng)}


def conversation(rng, family):
    tools, system = FAMILIES[family][4:]
    record = {"messages": []}
    messages = record["messages"]
    if system and rng.random() < 0.4:
        messages.append({"role": "system", "content": text(rng)})
    if tools and rng.random() < 0.3:
        record["tools"] = TOOLS
    for _ in range(rng.randrange(1, 5)):
        messages.append({"role": "user", "content": text(rng, 20)})
        if tools and rng.random() < 0.25:
            messages.extend(called(rng, family))
        messages.append(answer(rng, family))
    return record


class Then(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(*DAY, tzinfo=tz)


def model(folder, family, tokenizers, template):
    """The folder of a model, as transformers saves it."""
    name, bos, eos, more = FAMILIES[family][:4]
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tokenizers / f"{name}.json"), bos_token=bos, eos_token=eos)
    tokenizer.add_special_tokens({"additional_special_tokens": more})
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return tokenizer


def written(path):
    """Documents of tokens and weights, which the tokens of `path` hold behind each other."""
    raw, bits = path.read_bytes(), pathlib.Path(f"{path}.weights").read_bytes()
    count = struct.unpack("<3i", raw[:12])[2]
    ids = struct.unpack(f"<{count}{'H' if len(raw) == 1024 + 2 * count else 'I'}", raw[1024:])
    assert bits[:8] == b"hcweight" and struct.unpack("<q", bits[8:16]) == (count,)
    return list(ids), [bits[16 + i // 8] >> i % 8 & 1 for i in range(count)]


def hecate(program, folder, records, out):
    data = folder / "chat.jsonl"
    data.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    done = subprocess.run([program, "chat", "--model", folder, "--out", out, "--date", "-".join(map(str, DAY)), data],
                          check=False, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"hecate-data chat failed: {done.stderr}")
    return written(out / "train/chat.jsonl.bin")


def differ(family, tokenizer, records, ids, theirs, ours, what):
    """Ends the test with the conversation where two lists first differ."""
    whole = [x for one in theirs for x in one]
    if whole == ours:
        return
    at = next((i for i, (a, b) in enumerate(zip(whole, ours)) if a != b), min(len(whole), len(ours)))
    place = at
    for record, tokens, one in zip(records, ids, theirs):
        if place < len(one):
            near = tokenizer.convert_ids_to_tokens(tokens[max(0, place - 8):place + 8])
            sys.exit(f"{family}: {what} differ at token {place} of {json.dumps(record, ensure_ascii=False)}\n"
                     f"near {near}: wanted {one[place]}, and found {ours[at:at + 1]}")
        place -= len(one)
    sys.exit(f"{family}: {len(ours)} {what}, wanted {len(whole)}")


def compare(program, folder, tokenizers, family, count):
    rng = random.Random(family)
    marked = (TEMPLATES / f"{family}.jinja").read_text(encoding="utf-8")
    plain = re.sub(r"\{%-? (end)?generation (-|\+)?%\}", "", marked)
    tokenizer = model(folder, family, tokenizers, marked)
    records = [conversation(rng, family) for _ in range(count)]
    ids, masks = [], []
    for record in records:
        done = tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), return_dict=True,
                                             return_assistant_tokens_mask=True)
        ids.append(list(done["input_ids"]))
        masks.append(list(done["assistant_masks"]))
    for template, out in ((marked, "marked"), (plain, "plain")):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        got, weights = hecate(program, folder, records, folder / out)
        differ(family, tokenizer, records, ids, ids, got, f"tokens ({out})")
        differ(family, tokenizer, records, ids, masks, weights, f"weights ({out})")
    print(f"{family}: {count} conversations, {sum(map(len, ids))} tokens, {sum(map(sum, masks))} count")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("tokenizers", type=pathlib.Path)
    parser.add_argument("count", type=int, nargs="?", default=40)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chat_template_utils.datetime = Then
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            if given.only in family:
                compare(given.program, pathlib.Path(folder), given.tokenizers, family, given.count)


main()
