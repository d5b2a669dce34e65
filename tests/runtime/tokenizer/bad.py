"""bad.py CASES FOLDER: faults of a tokenizer.json are refused with the file and the key, or the line."""

import json
import pathlib
import subprocess
import sys
import tempfile

CASES, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
GOOD = json.loads((FOLDER / "qwen.json").read_text(encoding="utf-8"))
MIXTRAL = json.loads((FOLDER / "mixtral.json").read_text(encoding="utf-8"))
BAD = [
    ('{"model":\n {]', "line 2, column"),
    ("[]", "it has no model"),
    ({**GOOD, "model": {"type": "WordPiece", "vocab": {}}}, "model.type: only BPE is known, not 'WordPiece'"),
    ({**GOOD, "model": {"vocab": {}, "merges": []}, "added_tokens": []}, "model.vocab: no token is in it"),
    ({**GOOD, "model": {"vocab": [], "merges": []}}, "model.vocab: an object is wanted"),
    ({**GOOD, "model": {"vocab": {"a": -1}, "merges": []}}, "model.vocab.a: an id from 0 to"),
    ({**GOOD, "model": {"vocab": {"a": 1}, "merges": {}}}, "model.merges: an array is wanted"),
    ({**GOOD, "model": {"vocab": {"a": 1}, "merges": ["a"]}}, "model.merges[0]: two tokens are wanted"),
    ({**GOOD, "model": {"vocab": {"a": 1}, "merges": [["a", "b"]]}}, "model.merges[0]: 'b' is not in the vocabulary"),
    ({**GOOD, "model": {"vocab": {"a": 1}, "merges": ["a a"]}}, "model.merges[0]: 'aa' is not in the vocabulary"),
    ({**GOOD, "model": {**GOOD["model"], "unk_token": "?!?"}}, "unk_token '?!?' is not in the vocabulary"),
    ({**GOOD, "model": {**GOOD["model"], "dropout": 0.1}}, "dropout other than none"),
    ({**GOOD, "model": {**GOOD["model"], "end_of_word_suffix": "</w>"}}, "end_of_word_suffix other than none"),
    ({**GOOD, "added_tokens": [{"id": 1}]}, "added_tokens[0].content: a text is wanted"),
    ({**GOOD, "added_tokens": [{"id": "1", "content": "a"}]}, "added_tokens[0].id: an id from 0"),
    ({**GOOD, "normalizer": {"type": "BertNormalizer"}}, "normalizer: no normalizer 'BertNormalizer' is known"),
    ({**GOOD, "normalizer": {}}, "normalizer.type: a text is wanted"),
    ({**GOOD, "normalizer": {"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}}, "normalizer: of patterns"),
    ({**GOOD, "pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer: no pre-tokenizer 'Whitespace' is known"),
    ({**GOOD, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}},
     "pre_tokenizer.pretokenizers[1]: nothing is known to come behind ByteLevel"),
    ({**GOOD, "decoder": {"type": "WordPiece"}}, "decoder: no decoder 'WordPiece' is known"),
    ({**GOOD, "post_processor": {"type": "BertProcessing"}}, "post_processor: no post-processor"),
    ({**MIXTRAL, "post_processor": {**MIXTRAL["post_processor"], "special_tokens": {}}}, "a special token without ids"),
]
for pattern, why in [("\\w+", "'\\w', which libraries"), ("a{2}+", "'}+', which libraries"), ("(", "missing closing parenthesis"),
                     ("\\", "a backslash at the end")]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    BAD.append(({**GOOD, "pre_tokenizer": split}, "pre_tokenizer: " + why))

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "tokenizer.json"
    for content, wanted in BAD:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        run = subprocess.run([CASES, "encode", path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode != 1 or wanted not in run.stderr or str(path) not in run.stderr:
            sys.exit(f"wanted '{wanted}', not: {run.returncode} {run.stderr}")
    run = subprocess.run([CASES, "encode", path.with_name("none")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         check=False)
    assert run.returncode == 1 and "No such file" in run.stderr, run
    print(len(BAD) + 1, "refused")
