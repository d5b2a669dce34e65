"""generate.py: tokenizers like public ones, trained here, and the encodings of nasty texts by the library `tokenizers`.

    generate.py store                     writes the cases of this folder
    generate.py compare CASES MEGABYTES   larger ones, on a corpus of that size, against the program CASES
    generate.py time CASES FILE...        how long both take for files, on one core

Needs the package tokenizers (pip). The tests do not: they read what is stored.
"""

import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("RAYON_NUM_THREADS", "1")
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,  # noqa: E402
                        processors, trainers)

HERE = pathlib.Path(__file__).parent
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+")
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
DEEPSEEK = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
            r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"


def isolated(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def bytes_alone():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def trained(tokenizer, texts, size, special, **more):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, **more)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def gpt2(texts, size):
    """Words as GPT-2 cuts them; NFC as Qwen has it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([isolated(QWEN), bytes_alone()])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trained(tokenizer, texts, size, [], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<tool><x>", normalized=False),
                          AddedToken("Cafe\u0301!", normalized=True), AddedToken("naive", single_word=True),
                          AddedToken("[MASK]", lstrip=True, rstrip=True, normalized=False)])
    return tokenizer


def plain(texts, size):
    """GPT-2 itself: ByteLevel alone, with a space in front."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    return trained(tokenizer, texts, size, ["<|endoftext|>"],
                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def llama3(texts, size):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([isolated(LLAMA3), bytes_alone()])
    tokenizer.decoder = decoders.ByteLevel()
    trained(tokenizer, texts, size, [], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"] +
                                 [f"<|reserved_special_token_{i}|>" for i in range(12)])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)])])
    return tokenizer


def deepseek(texts, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [isolated(r"\p{N}{1,3}"), isolated(KANA), isolated(DEEPSEEK), bytes_alone()])
    tokenizer.decoder = decoders.ByteLevel()
    trained(tokenizer, texts, size, ["<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_tokens([AddedToken("<\uff5cUser\uff5c>", normalized=False), AddedToken("<think>", normalized=True)])
    return tokenizer


def mixtral(texts, size):
    """Characters with bytes behind them; trained on words, as sentencepiece does, and used on whole texts."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="never")
    special = ["<unk>", "<s>", "</s>"]
    trained(tokenizer, texts, size, special + [f"<0x{i:02X}>" for i in range(256)], limit_alphabet=min(size // 4, 200))
    state = json.loads(tokenizer.to_str())
    state["pre_tokenizer"] = None
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in special]
    state["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    state["post_processor"] = {"type": "TemplateProcessing",
                               "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                               "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                               "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    return Tokenizer.from_str(json.dumps(state))


def metaspace(texts, size):
    """The same, as newer files have it: a pre-tokenizer in place of the normalizer."""
    state = json.loads(mixtral(texts, size).to_str())
    state["normalizer"] = None
    state["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    return Tokenizer.from_str(json.dumps(state))


FAMILIES = {"gpt2": plain, "qwen": gpt2, "llama3": llama3, "deepseek": deepseek, "mixtral": mixtral,
            "metaspace": metaspace}
ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool>", "<tool><x>", "<tool", "Cafe\u0301!", "Caf\u00e9!", "naive",
         "naively", " [MASK]  ", "<|begin_of_text|>", "<|reserved_special_token_1|>", "<|reserved_special_token_11|>",
         "<\uff5cUser\uff5c>", "<think>", "<s>", "</s>", "<unk>", "<0x41>", "<|"]
FIXED = ["", " ", "  ", "\n", "a", " a", "a ", "Hello, world!", "I'm HE'LL we'Ve it's 'S", "1234567 12 ½ ٣٤٥ Ⅷ",
         "x" * 300, " " * 300, "\n" * 50 + " \t " * 40 + "\r\n\r\n", "ab" * 500, "!?" * 100, "e\u0301" * 70 + "\u0301" * 40,
         "▁▁a▁b ▁ c", "日本語のテキスト、漢字とカナ。한국어 텍스트 ภาษาไทย हिन्दी العربية עברית ქართული",
         "👩‍👩‍👧‍👦🏳️‍🌈 🇩🇪🤷🏽‍♀️", "\u1100\u1161\u11a8 \u212b \ufb01 \u1e9b\u0323", "a\u00a0b\u2003c\u3000d\u180ee\u200bf\u0085g\u2028h",
         "".join(ADDED), " ".join(ADDED), "x" .join(ADDED), "\ufffd\ufeff\x00\x01\x7f", "ſ'ſ K 'ſ"]
BROKEN = [b"\xff\xfe", b"a\xc3", b"\xe2\x82", b"\xe2\x82x", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xc0\xaf",
          b"\x80\x80 ok", b"\xf0\x80\x80\x80", b"<|im_\xffstart|>", b"\xe0\x80\x80"]
# Scripts of Unicode 9 and before: libraries differ in what they know of newer ones.
SCRIPTS = [(0x20, 0x7e), (0x20, 0x7e), (0xa0, 0x24f), (0x250, 0x2af), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x4ff), (0x531, 0x587),
           (0x5d0, 0x5ea), (0x620, 0x6d3), (0x904, 0x94d), (0x985, 0x9b9), (0xb85, 0xbb9), (0xe01, 0xe5b), (0xf00, 0xf47),
           (0x1000, 0x104f), (0x10a0, 0x10f0), (0x1100, 0x11ff), (0x1200, 0x1248), (0x13a0, 0x13f4), (0x1780, 0x17d3),
           (0x1820, 0x1877), (0x1e00, 0x1eff), (0x2000, 0x206f), (0x2070, 0x20b0), (0x2100, 0x218b), (0x2190, 0x23fa),
           (0x2460, 0x24ff), (0x2500, 0x27bf), (0x3000, 0x303f), (0x3041, 0x3096), (0x30a0, 0x30ff), (0x4e00, 0x9fa5),
           (0xac00, 0xd7a3), (0xf900, 0xfa6d), (0xfb00, 0xfb06), (0xfe00, 0xfe0f), (0xff01, 0xff5e), (0x10330, 0x1034a),
           (0x1d400, 0x1d454), (0x1f300, 0x1f5ff), (0x1f600, 0x1f64f), (0x20000, 0x2a6d6)]


def nasty(draw, words):
    """A text of up to some hundred characters."""
    parts = []
    for _ in range(draw.randint(1, 30)):
        kind = draw.randrange(12)
        if kind < 4:
            parts.append(" ".join(draw.choices(words, k=draw.randint(1, 8))).encode())
        elif kind < 7:
            first, last = draw.choice(SCRIPTS)
            parts.append("".join(chr(draw.randint(first, last)) for _ in range(draw.randint(1, 12))).encode())
        elif kind == 7:
            parts.append(draw.choice(ADDED).encode())
        elif kind == 8:
            parts.append(draw.choice(BROKEN + [draw.randbytes(draw.randint(1, 6))]))
        elif kind == 9:
            parts.append(draw.choice([" ", "\n", "\t", "\r\n", "a", "é", "ab", "0", "=", "\u3000"]).encode() * draw.randint(1, 120))
        elif kind == 10:
            parts.append(str(draw.randrange(10 ** draw.randint(1, 15))).encode())
        else:
            parts.append(draw.choice([" ", "", "'s", "'LL ", ". ", "\n\n", " \n "]).encode())
    return b"".join(parts)


def expected(tokenizer, texts):
    return [encoding.ids for encoding in
            tokenizer.encode_batch([text.decode("utf-8", "replace") for text in texts])]


def corpus_of_words():
    here = pathlib.Path("/usr/share/common-licenses")
    return "\n".join(path.read_text(errors="replace") for path in sorted(here.glob("*")) if path.is_file())


def training(draw, text):
    lines = text.splitlines(keepends=True)
    return lines + ["".join(chr(draw.randint(*draw.choice(SCRIPTS))) for _ in range(20)) for _ in range(200)] + FIXED * 3


def store():
    draw, text = random.Random(1), corpus_of_words()
    words = text.split()
    for name, make in FAMILIES.items():
        tokenizer = make(training(draw, text[:60000]), 700)
        state = json.loads(tokenizer.to_str())
        (HERE / f"{name}.json").write_text(json.dumps(state, ensure_ascii=False, separators=(",", ":")) + "\n")
        texts = [text.encode() for text in FIXED] + BROKEN + [nasty(draw, words) for _ in range(20)]
        with open(HERE / f"{name}.cases", "w", encoding="ascii") as out:
            for line, ids in zip(texts, expected(tokenizer, texts)):
                decoded = tokenizer.decode(ids, skip_special_tokens=False).encode()
                print(line.hex() or "-", ",".join(map(str, ids)) or "-", decoded.hex() or "-", file=out)


def run(cases, path, texts):
    """The ids of texts by the program under test."""
    given = "".join((text.hex() or "-") + "\n" for text in texts)
    out = subprocess.run([cases, "encode", path], input=given, text=True, stdout=subprocess.PIPE, check=True).stdout
    return [[int(word) for word in line.split(",")] if line != "-" else [] for line in out.splitlines()]


def compare(cases, megabytes):
    draw, text = random.Random(7), corpus_of_words()
    words, texts, size = text.split(), [], 0
    while size < megabytes * 1e6:
        texts.append(nasty(draw, words))
        size += len(texts[-1])
    texts += [b"ab" * 200000, b" " * 500000, b"a" * 500000, "日本".encode() * 50000, b"\xff" * 20000, b"1" * 100000]
    wrong = 0
    for name, make in FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            make(training(draw, text), 6000).save(path)
            tokenizer = Tokenizer.from_file(path)
            ours, theirs = run(cases, path, texts), expected(tokenizer, texts)
        differ = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
        wrong += len(differ) + (len(ours) != len(theirs))
        print(f"{name}: {len(texts)} texts, {sum(map(len, theirs))} ids, {len(differ)} texts differ")
        for i in differ[:3]:
            print("  ", texts[i][:300], ours[i][:40], theirs[i][:40])
    return wrong


def spent():
    return time.process_time()


def measure(cases, files):
    text = b"".join(pathlib.Path(file).read_bytes() for file in files)
    lines = [line.decode("utf-8", "replace") for line in text.split(b"\n\n")]
    draw = random.Random(7)
    for name, make in FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            make(training(draw, text[:2000000].decode("utf-8", "replace")), 32000).save(path)
            tokenizer = Tokenizer.from_file(path)
            before = spent()
            tokenizer.encode_batch(lines)
            theirs = spent() - before
            corpus = os.path.join(folder, "corpus")
            pathlib.Path(corpus).write_bytes(text)
            rate = subprocess.run([cases, "time", path, corpus], stdout=subprocess.PIPE, text=True, check=True).stdout
        print(f"{name}: the library {len(text) / theirs / 1e6:.1f} MB/s, here {rate.strip()} MB/s of one core")


if __name__ == "__main__":
    if sys.argv[1:] == ["store"]:
        store()
    elif sys.argv[1:2] == ["compare"]:
        sys.exit(compare(sys.argv[2], float(sys.argv[3])) > 0)
    else:
        measure(sys.argv[2], sys.argv[3:])
