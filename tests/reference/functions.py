"""functions.py BUILTINS.def: a model with every function of the language that is elementwise, or a norm, so that its
gradient is compared with differences without a model of its own. Operands are positive and not near to one another, for
the sake of roots and of what has a kink."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
table = re.findall(r'^HEC_FUNCTION\(\w+, (elementwise|norm), "(\w+)\(([^)]*)\)"', text, re.M)
lines = []
for rule, name, arguments in table:
    others = ["", ", gain = zero_centered"] if rule == "norm" else [""]
    operands = [word for word in arguments.split(", ") if "=" not in word and "]" not in word]
    values = ["n * n + 0.5", "w * w + 2"][:len(operands)]
    for other in others:
        call = f"{name}({', '.join(values)}{other})"
        lines.append(f"  y = y + b{len(lines)} * {call if rule == 'elementwise' else f'n{len(lines)}: {call}'}")
scales = ", ".join(f"b{i}[D] (init = ones)" for i in range(len(lines)))
print(f"""# Every function that is elementwise or a norm, each in a line of its own.
dim V = 29, D = 16, L = 1, T = 12

block each(n[T, D]) -> [T, D] {{
  param w[D], {scales}
  y = 0.1 * n
{chr(10).join(lines)}
  return y
}}
model functions(ids[T]) -> [T, V] {{
  param embed[V, D], head[D, V]
  x = embed[ids]
  repeat i < L {{
    x = x + each(x)
  }}
  return x @ head
}}
train {{ steps = 1, tokens = 24 }}""")
