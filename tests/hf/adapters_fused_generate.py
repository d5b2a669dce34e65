#!/usr/bin/env python3
"""Writes stored/peft/FAMILY.json of families whose experts lie in one tensor per layer in transformers: losses of
twenty steps of AdamW on adapters of PEFT's (target_parameters), and the adapters behind them. Needs torch, transformers
and peft.

    python3 tests/hf/adapters_fused_generate.py [family ...]

Models and their weights are those of generate.py; the matrices that do not begin as zeros come from their names."""
import json
import pathlib
import sys

import peft
import torch
import transformers

sys.dont_write_bytecode = True
from generate import BASE, FAMILIES, T, create, widen  # noqa: E402
from weights import values  # noqa: E402

RANK, ALPHA, STEPS = 3, 6, 20
MODULES, PARAMETERS = ["q_proj", "v_proj", "o_proj"], ["experts.gate_up_proj", "experts.down_proj"]
NAMES = ["qwen3_moe", "gpt_oss", "llama4_text"]


def adapted(name, salt, dtype):
    model = create(name, salt)[0]
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=MODULES, target_parameters=PARAMETERS)
    model = peft.get_peft_model(model, config).to(dtype)
    for own, tensor in model.named_parameters():
        if "lora_A" in own:
            own = own.replace(".default", "")
            numbers = torch.tensor(values(own, tensor.shape, salt), dtype=torch.float64).reshape(tensor.shape)
            with torch.no_grad():
                tensor.copy_(numbers)
    return model


def train(model, tokens):
    ids, targets = torch.tensor([tokens[:T]]), torch.tensor(tokens[1:T + 1])
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    losses, norms = [], []
    for _ in range(STEPS):
        logits = model(input_ids=ids, output_router_logits=False).logits
        loss = torch.nn.functional.cross_entropy(logits[0], targets)
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.get_total_norm([p.grad for p in trained]).item())
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        return losses, norms, model(input_ids=ids, output_router_logits=False).logits.reshape(-1).tolist()


def main():
    torch.set_num_threads(1)
    stored = pathlib.Path(__file__).parent / "stored"
    for name in sys.argv[1:] or NAMES:
        transformers.AutoModelForCausalLM.from_config(FAMILIES[name][0](**{**BASE, **FAMILIES[name][1]}))  # Imports.
        own = json.loads((stored / f"{name}.json").read_text())
        single = train(adapted(name, own["salt"], torch.float32), own["tokens"])[0]
        widen()
        model = adapted(name, own["salt"], torch.float64)
        losses, norms, logits = train(model, own["tokens"])
        state = peft.get_peft_model_state_dict(model)
        case = {"peft": peft.__version__, "transformers": transformers.__version__, "rank": RANK, "alpha": ALPHA,
                "modules": MODULES, "parameters": PARAMETERS, "losses": losses, "losses_fp32": single, "norms": norms, "logits": logits,
                "adapters": {key: [list(t.shape), t.reshape(-1).tolist()] for key, t in sorted(state.items())}}
        worst = max(abs(a - b) / a for a, b in zip(losses, single))
        print(f"{name}: losses {losses[0]:.6f} to {losses[-1]:.6f}; fp32 is {worst:.2g} away")
        (stored / "peft" / f"{name}.json").write_text(json.dumps(case) + "\n")


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
