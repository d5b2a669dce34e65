#!/usr/bin/env python3
"""Writes stored/pages/qwen3_next.json: logits of transformers, in float64, for the model of qwen3_next.moe. By hand,
with torch and transformers."""
import json
import pathlib
import random
import sys
import tempfile

import torch
import transformers

sys.dont_write_bytecode = True
import generate  # noqa: E402
from weights import read_folder, values  # noqa: E402

HERE = pathlib.Path(__file__).parent
POSITIONS = 72  # More than a chunk.


def main():
    config = transformers.Qwen3NextConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=6, linear_conv_kernel_dim=4,
        num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=16, intermediate_size=24,
        partial_rotary_factor=0.5, tie_word_embeddings=False)
    config._attn_implementation = config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        own = json.loads((pathlib.Path(folder) / "config.json").read_text())
        shapes = {name: list(shape) for name, (_, shape, _) in sorted(read_folder(folder).items())}
        from safetensors.torch import save_file
        save_file({name: torch.tensor(values(name, shape), dtype=torch.float64).reshape(shape) for name, shape in shapes.items()},
                  pathlib.Path(folder) / "model.safetensors", metadata={"format": "pt"})
        generate.widen()
        model = type(model).from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager")
    draw = random.Random("qwen3_next")
    tokens = [draw.randrange(64) for _ in range(POSITIONS + 1)]
    with torch.no_grad():
        logits = model.eval()(torch.tensor([tokens[:POSITIONS]])).logits
    assert logits.dtype == torch.float64
    (HERE / "stored" / "pages").mkdir(exist_ok=True)
    (HERE / "stored" / "pages" / "qwen3_next.json").write_text(json.dumps(
        {"transformers": transformers.__version__, "config": own, "tensors": shapes, "tokens": tokens,
         "logits": [float(x) for x in logits.flatten()]}) + "\n")


main()
