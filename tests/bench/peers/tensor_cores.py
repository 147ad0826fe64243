#!/usr/bin/env python3
"""What PyTorch takes on a card for the work of the tensor cores' table in spec/design/gpu.md: products of 16, 8 and 19
bits (TF32), of few rows, batches, a long k, attention and its gradients; and a copy of 1 GiB. Ours are medians of `launch --times 30` (runtime/cuda) on folders that
`large_launches` leaves.

    python3 tests/bench/peers/tensor_cores.py
"""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def median(work, times=60):
    """Microseconds of a call, by events; the card waits first, so that the host's share is hidden."""
    for _ in range(3):
        work()
    took = []
    for _ in range(times):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(200000)
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end) * 1e3)
    return sorted(took)[len(took) // 2]


def uniform(*shape, dtype=torch.bfloat16):
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype)


print(torch.__version__, torch.cuda.get_device_name())
for n in (2048, 4096, 8192):
    a, b = ([uniform(n, n) for _ in range(4)] for _ in range(2))
    turn, out = iter(range(1 << 30)), torch.empty(n, n, device="cuda", dtype=torch.bfloat16)

    def product():
        i = next(turn) % 4
        torch.matmul(a[i], b[i], out=out)

    print(f"bf16 {n} cubed", median(product))
for n in (4096, 8192):
    a, b = (uniform(n, n, dtype=torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    fast = dict(scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
    print(f"f8e4m3 {n} cubed", median(lambda: torch._scaled_mm(a, b.T, **fast)))
    a, b = (torch.randint(-8, 8, (n, n), device="cuda", dtype=torch.int8) for _ in range(2))
    print(f"i8 {n} cubed", median(lambda: torch._int_mm(a, b.T)))
torch.backends.cuda.matmul.allow_tf32 = True
for n in (2048, 4096, 8192):
    a, b, out = (torch.rand(n, n, device="cuda") for _ in range(3))
    print(f"tf32 {n} cubed", median(lambda: torch.mm(a, b, out=out)))
a, b = uniform(16, 2048, 2048), uniform(16, 2048, 2048)
print("bf16 16 x 2048 cubed", median(lambda: torch.bmm(a, b)))
a, b = uniform(256, 16384), uniform(16384, 256)
print("bf16 256 x 256 x 16384", median(lambda: torch.mm(a, b)))
from_, to = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
print("copy of 1 GiB", median(lambda: to.copy_(from_)))
for rows in (8, 16, 32):
    weights, x = [uniform(4096, 4096) for _ in range(8)], uniform(rows, 4096)
    turn = iter(range(1 << 30))
    print(f"bf16 {rows} x 4096 x 4096", median(lambda: torch.matmul(x, weights[next(turn) % 8].T)))
for d, heads in ((128, 16), (64, 32)):
    for s in (4096, 16384):
        q, k, v = (uniform(1, heads, s, d) for _ in range(3))
        for causal in (False, True):
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                took = median(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
            print(f"attention D {d}, {heads} heads, {s}, causal {causal}", took)
    q, k, v = (uniform(1, heads, 4096, d).requires_grad_() for _ in range(3))
    above = uniform(1, heads, 4096, d)
    for causal in (False, True):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            took = median(lambda: torch.autograd.grad(o, (q, k, v), above, retain_graph=True))
        print(f"gradients of attention D {d}, {heads} heads, 4096, causal {causal}", took)
