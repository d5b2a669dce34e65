"""chain.py up|down: 20,000 dims, each defined by the one before or behind it."""
import sys

COUNT = 20000
names = ["dim a0 = 1"] + [f"dim a{i} = a{i - 1} + 1" for i in range(1, COUNT)]
print("\n".join(names if sys.argv[1] == "up" else reversed(names)))
print("""dim V = 8, T = 4, D = 4
model m(ids[T]) -> [T, V] {
  param e[V, D]
  return e[ids] @ e
}""")
