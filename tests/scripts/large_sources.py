#!/usr/bin/env python3
"""Times `ptoc check` on sources of a megabyte, one for each dimension in which a source can be large.

    python3 tests/scripts/large_sources.py target/release/ptoc [KIND...]

For each kind: bytes of the source, seconds, MiB at the peak, exit status, and the codes that were told. A check is to take less
than 5 s and 500 MB; `tests/it/growth.rs` holds steps, not seconds, in CI. Needs GNU time as /usr/bin/time.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = 1_000_000
LIMIT = 60


def kernel(lines, name="k"):
    """A kernel with two tiles around some lines."""
    return (
        f"kernel {name}(x: in f32[M, 64], y: out f32[M, 64]) {{\n    grid (i in tiles(M, 8));\n"
        "    let a, b = tile Vec<f32, i, 64>;\n    TLOAD(a, x.tile(i, _));\n    TLOAD(b, x.tile(i, _));\n"
        + "".join(f"    {line}\n" for line in lines)
        + "    TSTORE(y.tile(i, _), b);\n}\n"
    )


def lines(n, line):
    return kernel(line(i) for i in range(n))


def words(n, word):
    return ", ".join(word(i) for i in range(n))


def nest(n, name="k"):
    return f"kernel {name}(x: in f32[M]) {{\n" + "for q in 0..2 {" * n + "}" * n + "\n}\n"


def waiting(name):
    """34 lines that order their pipes themselves, with many states."""
    text = (Path(__file__).parent.parent / "hazards/broken/branches.tile").read_text()
    start = text.index("/// Only the first iteration waits for its load.")
    text = text[start : text.index("\n}\n", start) + 3]
    return text.replace("0..N / 16", "0..N / 3").replace("first_iteration_alone_waits", name)


# A number of repetitions, and its limit where a source cannot be longer: brackets, blocks and operands nest so deep, a kernel's
# elaboration takes so many steps.
DEEP, STATEMENTS = 120, 60_000
KINDS = {
    "nest of loops": (nest, DEEP),
    "nest of loops with a statement": (
        lambda n: kernel(["".join(f"for q{i} in 0..M {{ " for i in range(n)) + "b += a;" + "}" * n]),
        DEEP,
    ),
    "nest of `while`": (lambda n: kernel(["var q = 0;", "while q < 3 { q += 1; b += a; " * n + "}" * n]), DEEP),
    "kernels with nests of loops": (lambda n: "".join(nest(40, f"k{i}") for i in range(n)), None),
    "statements": (lambda n: lines(n, lambda i: "b += a;"), STATEMENTS),
    "windows": (lambda n: lines(n, lambda i: "TLOAD(a, x.tile(i, _)); b += a;"), STATEMENTS // 4),
    "branches": (lambda n: lines(n, lambda i: f"if M > {i} {{ b += a; }} else {{ b -= a; }}"), STATEMENTS // 6),
    "kernels with branches": (
        lambda n: "".join(kernel((f"if M > {i} {{ b += a; }} else {{ b -= a; }}" for i in range(20)), f"k{k}") for k in range(n)),
        None,
    ),
    "loops behind each other": (lambda n: lines(n, lambda i: "for q in 0..M { b += a; }"), STATEMENTS // 6),
    "unrolled iterations": (lambda n: kernel([f"for q in [{words(n, str)}] {{ b += a; }}"]), STATEMENTS),
    "inlined calls": (
        lambda n: "fn f(x: f32) -> f32 { x * 2.0 + 1.0 }\n" + lines(n, lambda i: "b = f(b);"),
        STATEMENTS // 4,
    ),
    "names": (lambda n: lines(n, lambda i: f"let c{i} = {i};"), None),
    "variables in a loop": (
        lambda n: kernel([*(f"var v{i} = M;" for i in range(n)), "for q in 0..M { " + "".join(f"v{i} += 1; " for i in range(n)) + "}"]),
        None,
    ),
    "unknown names": (lambda n: lines(n, lambda i: f"b += unknown{i};"), None),
    "unknown fields": (lambda n: lines(n, lambda i: f"x.foo{i};"), None),
    "wrong instructions": (lambda n: lines(n, lambda i: "TADD(b, a);"), None),
    "syntax errors": (lambda n: lines(n, lambda i: "let = ;"), None),
    "kernels": (lambda n: "".join(kernel(["b += a;"], f"k{i}") for i in range(n)), None),
    "kernels with an error each": (lambda n: "".join(kernel(["b += aa;"], f"k{i}") for i in range(n)), None),
    "functions": (lambda n: "".join(f"fn g{i}(x: f32) -> f32 {{ x * 2.0 }}\n" for i in range(n)) + kernel([]), None),
    "constants": (lambda n: "".join(f"const C{i} = {i};\n" for i in range(n)) + kernel([]), None),
    "test lines": (lambda n: "// run: k interp M=16 seed=1\n" * n + kernel([]), None),
    "settings of a test line": (
        lambda n: "// run: k interp" + "".join(f" D{i}=1" for i in range(n)) + "\n" + kernel([]),
        None,
    ),
    "tiles of one declaration": (lambda n: kernel([f"let {words(n, lambda i: f't{i}')} = tile Vec<f32, 1, 8>;"]), None),
    "tiles with a use each": (lambda n: lines(n, lambda i: f"let t{i} = tile Vec<f32, i, 64>; t{i} = a; b += t{i};"), None),
    "tiles at addresses": (
        lambda n: lines(n, lambda i: f"let t{i} = tile Vec<f32, 1, 8> at {32 * (i % 64)}; t{i} = 0.0;"),
        None,
    ),
    "tensors": (lambda n: f"kernel k({words(n, lambda i: f'x{i}: in f32[M]')}) {{\n}}\n", None),
    "scalars": (lambda n: f"kernel k({words(n, lambda i: f'x{i}: i32')}) {{\n}}\n", None),
    "dimensions": (lambda n: f"kernel k(x: in f32[{words(n, lambda i: f'M{i}')}]) {{\n}}\n", None),
    "static parameters": (lambda n: kernel([], f"k<{words(n, lambda i: f'const S{i} = 1')}>"), None),
    "conditions of a launch": (
        lambda n: kernel([]).replace(" {\n", f"\n    where {words(n, lambda i: f'M >= {i}')}\n{{\n", 1),
        None,
    ),
    "comments": (lambda n: "// it says nothing\n" * n + kernel([]), None),
    "a long name": (lambda n: kernel([f"let {'a' * n} = 1; b += {'b' * n};"]), None),
    "kernels that order their pipes": (lambda n: "".join(waiting(f"h{i}") for i in range(n)), None),
    "kernels with nests of loops with tiles": (
        lambda n: "".join(
            kernel(["".join(f"for q{i} in 0..M {{ let t{i} = tile Vec<f32, 1, 8>; t{i} = 0.0; " for i in range(118)) + "}" * 118], f"k{k}")
            for k in range(n)
        ),
        None,
    ),
    "loops with a tile each": (lambda n: lines(n, lambda i: f"for q in 0..M {{ let t{i} = tile Vec<f32, i, 64>; t{i} = a; b += t{i}; }}"), None),
    "pipelines": (lambda n: lines(n, lambda i: "pipeline(stages = 2) for k in tiles(M, 8) { let t = Vec(x.tile(k, _)); b += t; }"), None),
    "numbers as conditions say": (lambda n: lines(n, lambda i: f"let v{i} = if M > {i} {{ {i} }} else {{ M }};"), None),
    "names in a text": (lambda n: kernel(['print("' + "{M} " * n + '");']), None),
    "modules that are not there": (lambda n: "".join(f"use nobody{i}::item;\n" for i in range(n)) + kernel([]), None),
    "bounds of dimensions by others": (
        lambda n: f"kernel k({words(n + 1, lambda i: f'x{i}: in f32[M{i}]')})\n    where {words(n, lambda i: f'M{i} <= M{i + 1}')}\n{{\n}}\n",
        None,
    ),
    "roles": (lambda n: "#[sync(manual)]\n" + lines(n, lambda i: f"role r{i} {{ b += a; }}"), None),
    "kernels with roles": (
        lambda n: "".join("#[sync(manual)]\n" + kernel((f"role r{i} {{ b += a; }}" for i in range(30)), f"k{k}") for k in range(n)),
        None,
    ),
    "outputs": (
        lambda n: f"kernel k({words(n, lambda i: f'x{i}: out f32[M{i}]')}) {{\ngrid (i in 0..4);\n"
        + "".join(f"x{i}[0] = 1.0;\n" for i in range(n))
        + "}\n",
        None,
    ),
    "dimensions of a grid": (
        lambda n: f"kernel k(y: out f32[M, 64]) {{\ngrid ({words(n, lambda i: f'i{i} in 0..M')});\ny[i0, i1] = 1.0;\n}}\n",
        None,
    ),
    "arguments": (
        lambda n: f"kernel k(y: out f32[M], {words(n, lambda i: f's{i}: index')}) {{\ngrid (i in 0..4);\ny[s0] = 1.0;\n}}\n",
        None,
    ),
    "kernels with indices that are products": (
        lambda n: "".join(
            f"kernel k{k}(y: out f32[M, 64]) {{\ngrid (a in 0..M, b in 0..M, c in 0..M);\n"
            "y[a * b + c % 7, b + c / 3] = 1.0;\ny[c * b + a % 5, b * c] = 2.0;\n}\n"
            for k in range(n)
        ),
        None,
    ),
}


def source(make, most):
    n = most or 100
    if most is None:
        per = (len(make(200)) - len(make(100))) / 100
        n = int(SIZE / per)
        while len(make(n)) > SIZE:
            n = n * 97 // 100
    while len(text := make(n)) > SIZE:
        n = n * 97 // 100
    return text


def main():
    ptoc, *kinds = sys.argv[1:] or ["target/release/ptoc"]
    print(f"{'':34}{'bytes':>9}{'s':>8}{'MiB':>6}  status, codes")
    for kind in kinds or KINDS:
        text = source(*KINDS[kind])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.tile"
            path.write_text(text)
            call = ["/usr/bin/time", "-f", "took %e %M", "timeout", str(LIMIT), ptoc, "check", str(path)]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
        took, peak = re.findall(r"^took (\S+) (\d+)$", done.stderr, re.M)[-1]
        codes = sorted(set(re.findall(r"^(?:error|warning|note)\[([A-Z0-9-]+)\]", done.stderr, re.M)))
        print(f"{kind:34}{len(text):9}{float(took):8.2f}{int(peak) // 1024:6}  {done.returncode} {' '.join(codes)}", flush=True)


if __name__ == "__main__":
    main()
