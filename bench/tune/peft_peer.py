#!/usr/bin/env python3
"""The peer of tune.py: a folder of transformers', adapters of PEFT's, AdamW. Prints one line of JSON.

    peft_peer.py --make DIR --sizes JSON                     writes a Qwen3-MoE of random weights, in bf16
    peft_peer.py --base DIR --data FILE --precision fp32|bf16 --experts eager|grouped_mm [--compile 1]
                 [--adapters fp32|bf16] [--weights fp32|bf16] --sequences N --rank R --alpha A --steps S --warm W
                 --threads N

Experts' weights are one tensor per layer there, so their adapters are PEFT's `target_parameters`. In bf16 the
computation is autocast; weights are bf16 or fp32, adapters fp32, as PEFT makes them, or bf16. A step is everything from
the batch to the update."""
import argparse
import json
import resource
import statistics
import sys
import time

import numpy
import torch

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
EXPERTS = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]
HEADER = 1024  # Bytes before the tokens of a file, which are 16-bit.


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--make", metavar="DIR")
    p.add_argument("--sizes", type=json.loads)
    p.add_argument("--base", metavar="DIR")
    p.add_argument("--data")
    p.add_argument("--precision", choices=("fp32", "bf16"))
    p.add_argument("--experts", default="grouped_mm")
    for name in "adapters", "weights":
        p.add_argument(f"--{name}", default="fp32", choices=("fp32", "bf16"))
    for name, default in (("compile", 0), ("sequences", 1), ("rank", 8), ("alpha", 8), ("steps", 3), ("warm", 1), ("threads", 1)):
        p.add_argument(f"--{name}", type=int, default=default)
    return p.parse_args()


def make(options):
    import transformers
    torch.manual_seed(1)
    config = transformers.Qwen3MoeConfig(**options.sizes, tie_word_embeddings=False, dtype="bfloat16")
    model = transformers.Qwen3MoeForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(options.make)
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters())}))


def load(options):
    import peft
    import transformers
    dtype = torch.bfloat16 if options.weights == "bf16" else torch.float32
    model = transformers.AutoModelForCausalLM.from_pretrained(options.base, dtype=dtype, experts_implementation=options.experts,
                                                              attn_implementation="sdpa")
    model.config.use_cache = False
    config = peft.LoraConfig(r=options.rank, lora_alpha=options.alpha, target_modules=ATTENTION, target_parameters=EXPERTS,
                             lora_dropout=0.0, task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, config, autocast_adapter_dtype=options.adapters == "fp32")
    return model.train()


def batches(options, positions):
    tokens = numpy.fromfile(options.data, dtype=numpy.uint16, offset=HEADER).astype(numpy.int64)
    draw = numpy.random.default_rng(1)
    while True:
        first = draw.integers(0, len(tokens) - positions - 1, options.sequences)
        yield torch.from_numpy(numpy.stack([tokens[at:at + positions] for at in first]))


def step(options, model, ids, trained, optimizer):
    with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
        loss = model(input_ids=ids, labels=ids).loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    return loss.item()


def train(options):
    torch.set_num_threads(options.threads)
    model = load(options)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.0, fused=True)
    positions = model.config.max_position_embeddings
    run = torch.compile(model) if options.compile else model
    wall, cpu, losses = [], [], []
    for at, ids in zip(range(options.warm + options.steps), batches(options, positions)):
        begin, used = time.perf_counter(), time.process_time()
        losses.append(step(options, run, ids, trained, optimizer))
        if at >= options.warm:
            wall.append(time.perf_counter() - begin)
            cpu.append(time.process_time() - used)
    print(json.dumps({"ms": 1e3 * statistics.median(wall), "cpu_ms": 1e3 * statistics.median(cpu),
                      "tokens": options.sequences * positions, "losses": [losses[0], losses[-1]],
                      "trained": sum(p.numel() for p in trained),
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def main():
    options = arguments()
    if options.make:
        make(options)
    elif options.base:
        train(options)
    else:
        sys.exit("--make or --base is missing")


main()
