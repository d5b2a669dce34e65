"""nest.py DEPTH CALLS: prints a model whose blocks call one another DEPTH deep, CALLS times each."""
import sys

depth, calls = int(sys.argv[1]), int(sys.argv[2])
print("dim T = 4, D = 4, V = 8\nblock b0(x[T, D]) -> [T, D] { return x }")
for i in range(1, depth):
    total = " + ".join(f"c{j}: b{i - 1}(x)" for j in range(calls))
    print(f"block b{i}(x[T, D]) -> [T, D] {{ return {total} }}")
print(f"model m(ids[T]) -> [T, V] {{\n  param e[V, D]\n  return b{depth - 1}(e[ids]) @ e\n}}")
