#!/bin/sh
# path.sh LENGTH FILE: a model of eleven layers and eleven experts, whose mixture and block have names of so many bytes.
name=$(printf 'n%.0s' $(seq "$1"))
cat >"$2" <<END
dim V = 256, T = 16, D = 8, F = 8, E = 11
block ffn(x[T, D]) -> [T, D] {
  param w[D, F], u[F, D]
  return gelu(x @ w) @ u
}
moe $name(x[T, D]) -> [T, D] { experts = E * ffn }
model m(ids[T]) -> [T, V] {
  param embed[V, D]
  x = embed[ids]
  repeat i < 11 { x = x + $name(x) }
  return x @ embed
}
END
