"""torch_kernels.py: times GEMMs and attention of PyTorch and the libraries under it, in the same shapes as gpu_bench,
and for a copy. One line each: name, sizes, microseconds, TFLOP/s or GB/s, median of 21 with random operands and a cold cache.
Status 77: there is no PyTorch with CUDA here."""

import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("there is no PyTorch", file=sys.stderr)
    sys.exit(77)

RUNS, WARM = 21, 3


def median_us(call):
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for _ in range(WARM):
        call()
    times = []
    for _ in range(RUNS):
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return sorted(times)[RUNS // 2]


def show(name, sizes, us, flops=0, size=0):
    rate = f"{flops / us * 1e-6:8.1f} TF/s" if flops else f"{size / us * 1e-3:8.1f} GB/s"
    print(f"| {name:24} | {sizes:34} | {us:10.1f} | {rate} |", flush=True)


def draw(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def dense(m, n, k):
    a, b, c = draw(m, k), draw(k, n), draw(m, n)
    sizes, flops = f"m {m} n {n} k {k}", 2 * m * n * k
    show("matmul nn", sizes, median_us(lambda: a @ b), flops)
    show("matmul nt", sizes, median_us(lambda: c @ b.T), flops)
    show("matmul tn", sizes, median_us(lambda: a.T @ c), flops)


def grouped(experts, rows, n, k):
    a, b, c = draw(experts * rows, k), draw(experts, k, n), draw(experts * rows, n)
    ends = torch.arange(1, experts + 1, device="cuda", dtype=torch.int32) * rows
    sizes, flops = f"{experts} x {rows} rows, n {n} k {k}", 2 * experts * rows * n * k
    show("grouped nn", sizes, median_us(lambda: torch._grouped_mm(a, b, offs=ends)), flops)
    show("grouped nt", sizes, median_us(lambda: torch._grouped_mm(c, b.transpose(1, 2), offs=ends)), flops)
    show("grouped tn", sizes, median_us(lambda: torch._grouped_mm(a.T, c, offs=ends)), flops)


def attention(batch, positions, heads, groups, width):
    q, k, v = (draw(batch, h, positions, width).requires_grad_() for h in (heads, groups, groups))
    flops = 2 * batch * heads * width * positions**2
    call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    sizes = f"{batch} x {positions}, {heads} heads of {width}"
    show("sdpa", sizes, median_us(call), flops)
    out = call()
    dout = torch.randn_like(out)
    show("sdpa backward", sizes, median_us(lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)), 2.5 * flops)


def main():
    if not torch.cuda.is_available():
        print("there is no GPU for PyTorch", file=sys.stderr)
        return 77
    a, b = (torch.empty(1 << 30, dtype=torch.int8, device="cuda") for _ in range(2))
    show("copy", "1 GiB", median_us(lambda: b.copy_(a)), size=2 << 30)
    for sizes in ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 4096, 4096), (8192, 151936, 2048)):
        dense(*sizes)
    for rows in (16, 64, 256, 1024):
        grouped(128, rows, 768, 2048)
        grouped(64, rows, 1024, 2048)
    grouped(8, 2048, 14336, 4096)
    attention(2, 4096, 32, 4, 128)
    return 0


if __name__ == "__main__":
    sys.exit(main())
