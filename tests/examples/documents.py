"""A small model in fp64 that keeps documents apart, and commands, for packing.py and preferences.py."""
import json
import subprocess
import sys

END = "<|endoftext|>"
MODEL = """
dim V = 1024, T = {T}, D = 32, H = 2, A = D / H, L = 2, E = {E}, F = 32
block attention(x[T, D], d[T]) -> [T, D] {{
  param wq[D, H, A], wk[D, H, A], wv[D, H, A], wo[H, A, D]
  return sdpa(rope(x @ wq), rope(x @ wk), x @ wv, causal = true{keep}) @ wo
}}
block relu_mlp(x[T, D]) -> [T, D] {{
  param w1[D, F], w2[F, D]
  return relu(x @ w1) @ w2
}}
moe sparse(x[T, D]) -> [T, D] {{
  experts = E * relu_mlp
  router {{ score = softmax, topk = 2 }}
  balance {{ aux = {aux}, per = sequence }}
}}
model chooser(ids[T]) -> [T, V] {{
  param embed[V, D], head[D, V]
  x = embed[ids]
  d = documents(ids, {end})
  repeat i < L {{
    x = x + attention(rmsnorm(x), d)
    x = x + sparse(rmsnorm(x))
  }}
  return rmsnorm(x) @ head
}}
train {{
  precision = fp64
  tokens = {tokens}
  optimizer = adamw({lr})
}}
data {{ format = llmc }}
"""


def model(end, positions, experts, tokens, lr, aux=0, apart=True):
    """Its text. `end`: the id behind each document; `apart`: attention stays in documents."""
    return MODEL.format(T=positions, E=experts, keep=", documents = d" if apart else "", aux=aux, end=end, tokens=tokens, lr=lr)


def end_of(tokenizer):
    """The id of END."""
    added = json.loads(tokenizer.read_text(encoding="utf-8"))["added_tokens"]
    return {token["content"]: token["id"] for token in added}[END]


def run(*command, code=0, wanted=""):
    """Standard output of a command that has to end so, and to say so."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != code or wanted not in done.stdout + done.stderr:
        sys.exit(f"{command} ended with {done.returncode}, wanted {code} and '{wanted}':\n{done.stdout}{done.stderr}")
    return done.stdout
