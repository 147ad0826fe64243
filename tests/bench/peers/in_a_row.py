#!/usr/bin/env python3
"""Our kernels of the tensor cores' table in spec/design/gpu.md beside PyTorch's on the same card, launches in a row: a CUDA graph of
launches, one of several sets of arrays after the other, replayed for some time, ours and the peer's in turn. Medians of a launch in
microseconds. A card lowers its clock in a long run of products, and takes what it read before from its second-level cache, so launches
with pauses, or of one set, say something else.

    PYTHONPATH=runtime/python python3 tests/bench/peers/in_a_row.py [ROW..]
"""

import os
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import ptoc

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
SECONDS = 0.15
ROUNDS = 5


def graph_of(work, sets, launches):
    """A graph of launches on sets of arrays in turn."""
    for one in sets:
        work(*one)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for n in range(launches):
            work(*sets[n % len(sets)])
    return graph


def replayed(graph, launches):
    """Microseconds of a launch, of replays for some time."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    graph.replay()
    begin.record()
    until, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        graph.replay()
        count += 1
        if count % 4 == 0:
            torch.cuda.current_stream().synchronize()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / (count * launches)


def row(name, ours, theirs, sets, their_sets=None, launches=24):
    if len(sys.argv) > 1 and not any(wanted in name for wanted in sys.argv[1:]):
        return
    sets = sets()
    their_sets = sets if their_sets is None else their_sets(sets)
    graphs = [graph_of(ours, sets, launches), graph_of(theirs, their_sets, launches)]
    took = [[replayed(graph, launches) for graph in graphs] for _ in range(ROUNDS)]
    mine, peer = (sorted(column)[ROUNDS // 2] for column in zip(*took))
    print(f"| {name} | {mine:.1f} | {peer:.1f} | {peer / mine:.2f} |", flush=True)


def uniform(*shape, dtype=torch.bfloat16):
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype)


def source(path):
    return ptoc.load(os.path.join(ROOT, path), target="sm90")


print(torch.__version__, torch.cuda.get_device_name())
print("| work | ours, us | peer, us | ratio |")

gemm = source("tests/bench/peers/products.tile").product
for n, clusters in ((2048, 1), (4096, 1), (8192, 1), (8192, 2)):
    for result in (torch.bfloat16, torch.float32):
        product = gemm(R=result, CM=clusters)

        def sets(n=n, result=result):
            return [(uniform(n, n), uniform(n, n), torch.empty(n, n, dtype=result, device="cuda")) for _ in range(3)]

        def narrow(sets):
            return [(a, b, c.bfloat16()) for a, b, c in sets]

        # cuBLAS has no product of bf16 whose results are f32.
        name = f"bf16 {n} cubed, results {str(result)[6:]}, clusters of {clusters}"
        row(name, lambda a, b, c, product=product: product(a, b, out=c), lambda a, b, c: torch.matmul(a, b, out=c), sets, narrow)

quant = source("stdlib/quant.tile")
for bits, program, rows, n, k in [
    (bits, program, rows, n, k)
    for bits, program in ((4, quant.w4a16), (8, quant.w8a16))
    for rows, n, k in ((8, 4096, 4096), (16, 4096, 4096), (32, 4096, 4096), (64, 4096, 4096), (8, 14336, 4096))
]:

    def sets(rows=rows, n=n, k=k, bits=bits):
        def one():
            x = uniform(rows, k, dtype=torch.float16)
            scales = uniform(n, k // 128, dtype=torch.float16)
            y = torch.empty(rows, n, dtype=torch.float16, device="cuda")
            if bits == 8:
                return x, torch.randint(-128, 128, (n, k), dtype=torch.int8, device="cuda"), scales, y
            weights = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda")
            return x, weights, scales, torch.randint(0, 16, (n, k // 128), dtype=torch.uint8, device="cuda"), y

        return [one() for _ in range(8)]

    def wide(sets, n=n, k=k):
        return [(one[0].bfloat16(), uniform(n, k).T, one[-1].bfloat16()) for one in sets]

    row(
        f"weights of {bits} bits, {rows} x {n} x {k}",
        lambda *all, program=program: program(*all[:-1], out=all[-1]),
        lambda x, w, y: torch.matmul(x, w, out=y),
        sets,
        wide,
    )

attention = source("examples/attention.tile").attention
for d, heads, blocks in ((128, 16, dict(BM=128, BN=128)), (64, 32, dict(BM=64, BN=128))):
    for s in (4096, 16384):
        for causal in (False, True):
            kernel = attention(T=torch.bfloat16, D=d, CAUSAL=causal, **blocks)

            def sets(s=s, d=d, heads=heads):
                return [tuple(uniform(heads, s, d) for _ in range(4)) for _ in range(2)]

            def theirs(q, k, v, o, causal=causal):
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)

            row(
                f"attention D {d}, {heads} heads, {s}, causal {causal}",
                lambda q, k, v, o, kernel=kernel: kernel(q, k, v, out=o),
                theirs,
                sets,
                launches=4,
            )
