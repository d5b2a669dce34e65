"""engine_routes.py IDS OUT: writes the ids of a run, whose layers are alike, as an engine of rollouts answers.
There is a line for each sequence, with the base64 text of int32 [tokens, layers, top_k].
It prints the flags of `hecate-data routes`."""

import array
import base64
import json
import pathlib
import struct
import sys

raw = pathlib.Path(sys.argv[1]).read_bytes()
sequences, positions, layers, experts, topk = struct.unpack("<5I", raw[8:28])
ids = array.array("H", raw[20 + 8 * layers:])
with open(sys.argv[2], "w", encoding="utf-8") as out:
    for n in range(sequences):
        at = [(n * layers + layer) * positions * topk for layer in range(layers)]
        routes = array.array("i", (ids[begin + t * topk + k] for t in range(positions) for begin in at for k in range(topk)))
        meta = {"routed_experts": base64.b64encode(routes.tobytes()).decode(), "prompt_tokens": 1,
                "completion_tokens": positions}
        out.write(json.dumps({"text": "", "meta_info": meta}) + "\n")
print(f"--pack={positions} --layers={layers} --experts={experts} --topk={topk}")
