"""PTOAS's samples against their own numpy goldens, on the interpreter and on the CPU.

    python3 tests/scripts/ptoas_goldens.py CHECKOUT [PTOC] [--only WORD] [--keep FOLDER]

CHECKOUT is a clone of hw-native-sys/PTOAS; nothing of it is copied. A sample is a program with a script `NAME_golden.py`
beside it, or a folder with `npu_validation/golden.py`. Its text is the `.pto` file of that name; where the program is
Python, `pto_bindings.py` makes the text. The sample's golden script writes the inputs and what is expected, from a
`main.cpp` that says how many elements each argument has: here that file says what the text does. `ptoc run` computes
the outputs, and the sample's compare script judges them, with its own tolerance. Needs numpy.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Elements of arguments: the type of main.cpp and that of numpy.
TYPES = {
    "f32": ("float", "<f4"), "f16": ("half", "<f2"), "bf16": ("bfloat16_t", "<u2"), "i8": ("int8_t", "<i1"), "i16": ("int16_t", "<i2"),
    "i32": ("int32_t", "<i4"), "i64": ("int64_t", "<i8"), "u8": ("uint8_t", "<u1"), "u16": ("uint16_t", "<u2"), "u32": ("uint32_t", "<u4"),
    "u64": ("uint64_t", "<u8"), "bool": ("bool", "?"),
}
ARGUMENT = re.compile(r"(\w+): (?:(in|out|inout) )?(\w+)(?:\[([^\]]*)\])?")
SECONDS = 600


def cases(root):
    """Name, program, golden script and compare script of each sample."""
    for golden in sorted(root.glob("test/samples/*/*_golden.py")):
        name = golden.name.removesuffix("_golden.py")
        programs = [golden.with_name(name + end) for end in (".pto", ".py")]
        compare = golden.with_name(name + "_compare.py")
        yield f"{golden.parent.name}/{name}", next((p for p in programs if p.exists()), None), golden, compare
    for golden in sorted(root.glob("test/samples/*/*_validation/golden.py")):
        folder = golden.parent.parent
        programs = sorted(folder.glob("*-pto-new.pto")) or [folder / f"{folder.name.lower()}.py"]
        yield f"{folder.name}/{golden.parent.name}", programs[0], golden, golden.with_name("compare.py")


def scalars(root, name):
    """Numbers that PTOAS's own driver gives to arguments of this sample, by their places: 1 where it says nothing."""
    text = (root / "test/npu_validation/scripts/generate_testcase.py").read_text()
    block = text[text.index("CASE_INT_SCALAR_DEFAULTS = {") :]
    own = re.search(rf'"{re.escape(name)}": {{(.*?)}}', block[: block.index("\n}")], re.S)
    return {int(place): int(n) for place, n in re.findall(r'"v(\d+)": (-?\d+)', own.group(1) if own else "")}


class Unread(Exception):
    """What is not translated, or has sizes that are not known."""


def signature(ptoc, path):
    """The kernel's arguments: name, direction, element type, shape; a scalar has no shape."""
    run = subprocess.run([ptoc, "import", str(path)], capture_output=True, text=True, timeout=SECONDS)
    if run.returncode != 0:
        first = next((line for line in run.stderr.splitlines() if line.startswith("error")), run.stderr[:200])
        raise Unread(re.sub(r"\x1b\[[0-9;]*m", "", first))
    kernels = re.findall(r"^kernel (\w+)\((.*)\)", run.stdout, re.M)
    if len(kernels) != 1:
        raise Unread(f"{len(kernels)} kernels")
    found = []
    for name, direction, dtype, shape in ARGUMENT.findall(kernels[0][1]):
        found.append((name, direction, dtype, shape if direction else None))
    return found


def reach(text):
    """Elements that views of each pointer reach to, from constants of the text: arguments by their names."""
    constants = {v: int(n) for v, n in re.findall(r"%([\w$.]+)\s*=\s*arith\.constant (-?\d+)\s*:", text)}
    base, found = {}, {}
    number = lambda v: constants.get(v.strip().lstrip("%"))
    for line in text.splitlines():
        if m := re.search(r"%([\w$.]+)\s*=\s*pto\.addptr\s+%([\w$.]+)\s*,\s*%([\w$.]+)", line):
            of, at = base.get(m[2], (m[2], 0))
            base[m[1]] = of, at + (number(m[3]) or 0)
        elif m := re.search(r"pto\.make_tensor_view\s+%([\w$.]+)\s*,\s*shape\s*=\s*\[(.*?)\]\s*,\s*strides\s*=\s*\[(.*?)\]", line):
            of, at = base.get(m[1], (m[1], 0))
            shape, strides = ([number(v) for v in m[i].split(",")] for i in (2, 3))
            if None not in shape + strides:
                last = at + sum((n - 1) * s for n, s in zip(shape, strides))
                found[of] = max(found.get(of, 0), last + 1)
        elif m := re.search(r"(?:load_scalar|store_scalar.*?,)\s+%([\w$.]+)\s*\[\s*%([\w$.]+)\s*\]", line):
            of, at = base.get(m[1], (m[1], 0))
            if number(m[2]) is not None:
                found[of] = max(found.get(of, 0), at + number(m[2]) + 1)
    return found


def text_of(root, program, folder):
    if program is None:
        raise Unread("no program")
    if program.suffix == ".pto":
        return program
    made = folder / (program.stem + ".pto")
    run = subprocess.run([sys.executable, str(HERE / "pto_bindings.py"), str(root), str(program)], capture_output=True, text=True)
    if run.returncode != 0:
        raise Unread("its program is not carried out: " + run.stderr.strip().splitlines()[-1])
    made.write_text(run.stdout)
    return made


def target_of(name, text):
    arch = re.search(r'pto\.target_arch\s*=\s*"(\w+)"', text)
    return "a5" if "a5" in name.lower().replace("a5_", "a5") or arch and arch.group(1) == "a5" else "a2a3"


def extents(shape, sizes, elements):
    """Shape and strides of an array whose sizes may be names: one that only the launch knows is what is left."""
    if strided := re.fullmatch(r"\((.*)\) : \((.*)\)", shape):
        return tuple([int(n) for n in strided[i].split(",")] for i in (1, 2))
    known, open_ = [], []
    for part in shape.split(","):
        part = part.strip()
        n = int(part) if part.isdigit() else sizes.get(part)
        known.append(n)
        open_ += [part] if n is None else []
    if len(open_) > 1:
        raise Unread(f"sizes {open_} are not known")
    rest = int(np.prod([n for n in known if n is not None], dtype=np.int64))
    # Where nothing says it PTOAS's driver has 32 x 32 elements.
    known = [n if n is not None else max(1, (elements or 1024) // rest) for n in known]
    return known, [int(np.prod(known[i + 1 :], dtype=np.int64)) for i in range(len(known))]


def view(data, shape, strides):
    return np.lib.stride_tricks.as_strided(data, shape, [n * data.itemsize for n in strides])


def default_compare(root, outputs):
    """PTOAS's template of a compare script, with the tolerances that its driver puts there."""
    template = (root / "test/npu_validation/templates/compare_template.py").read_text()
    lines = ["    ok = True"]
    for name, dtype in outputs:
        files = f'"golden_{name}.bin", "{name}.bin"'
        tolerance = {"f32": 1e-4, "f16": 1e-2}.get(dtype, 0.0)
        own = f"np.{np.dtype(TYPES[dtype][1]).name}"
        call = f"compare_bf16_bin({files}, 1)" if dtype == "bf16" else f"compare_bin({files}, {own}, {tolerance})"
        lines.append(f"    ok = {call} and ok")
    return template.replace("@COMPARES@", "\n".join(lines))


def run_case(root, ptoc, name, program, golden, compare, folder, zeros=False):
    """What each back end comes to."""
    program = text_of(root, program, folder)
    text = program.read_text()
    target = target_of(name, text)
    arguments = signature(ptoc, program)
    given, reached = scalars(root, golden.name.removesuffix("_golden.py")), reach(text)
    if zeros:
        given = {place: 0 for place in range(len(arguments) + 1)}
    lines, shapes, settings, outputs, sizes = [], {}, [], [], {}
    names = re.findall(r"%([\w$.]+)\s*:", re.search(r"func\.func[^(]*\((.*)\)", text)[1])
    for place, (argument, direction, dtype, shape) in enumerate(arguments, 1):
        if shape is None and dtype in TYPES or dtype == "index":
            value = given.get(place, 1)
            settings += ["-D", f"{argument}={value}" if dtype[0] not in "fb" else f"{argument}={float(value)}"]
            sizes[argument] = value
            lines.append(f"    {TYPES.get(dtype, ('int32_t',))[0]} v{place} = {value};")
    for place, (argument, direction, dtype, shape) in enumerate(arguments, 1):
        if shape is not None:
            shapes[argument] = extents(shape, sizes, reached.get(names[place - 1], 0))
            cpp = TYPES[dtype][0]
            elements = 1 + sum((n - 1) * s for n, s in zip(*shapes[argument]))
            lines.append(f"    size_t elemCount_v{place} = {elements};")
            lines.append(f"    size_t fileSize_v{place} = elemCount_v{place} * sizeof({cpp});")
            lines.append(f'    ReadFile("./v{place}.bin", fileSize_v{place});')
            outputs += [f"v{place}"] if "out" in direction else []
    (folder / "main.cpp").write_text("\n".join(lines) + "\n")
    (folder / "outputs.txt").write_text("\n".join(outputs) + "\n")
    environment = os.environ | {"PYTHONPATH": str(root / "test/samples"), "SOC_VERSION": "Ascend950" if target == "a5" else "Ascend910", "PYTHONDONTWRITEBYTECODE": "1"}
    made = subprocess.run([sys.executable, str(golden)], cwd=folder, env=environment, capture_output=True, text=True)
    if made.returncode != 0 and "out of bounds" in made.stderr and not zeros:
        # Its own numbers lead outside of its views: rows begin at the first one instead.
        yield from run_case(root, ptoc, name, program, golden, compare, folder, zeros=True)
        return
    if made.returncode != 0:
        raise Unread("its golden script: " + made.stderr.strip().splitlines()[-1])
    inputs, results, initial = [], [], {}
    for place, (argument, direction, dtype, shape) in enumerate(arguments, 1):
        if shape is None:
            continue
        if not (folder / f"v{place}.bin").exists():
            elements = 1 + sum((n - 1) * s for n, s in zip(*shapes[argument]))
            np.zeros(elements, dtype=TYPES[dtype][1]).tofile(folder / f"v{place}.bin")
        initial[place] = np.fromfile(folder / f"v{place}.bin", dtype=TYPES[dtype][1])
        # What is only stored to keeps what it holds where nothing is stored.
        np.save(folder / f"in{place}.npy", view(initial[place], *shapes[argument]))
        inputs += ["--in", f"{argument}={folder / f'in{place}.npy'}"]
        if "out" in direction:
            results += ["--out", f"{argument}={folder / f'out{place}.npy'}"]
    if not compare.exists():
        compare = folder / "compare.py"
        compare.write_text(default_compare(root, [(f"v{i}", a[2]) for i, a in enumerate(arguments, 1) if (folder / f"golden_v{i}.bin").exists()]))
    for backend in ("interp", "cpu"):
        command = [ptoc, "run", str(program), "--backend", backend, "--target", target, *settings, *inputs, *results]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if ran.returncode != 0:
            first = [line for line in ran.stderr.splitlines() if line.startswith("error")] or [ran.stderr[:300]]
            yield backend, "refused", first[0]
            continue
        for place, (argument, direction, dtype, _) in enumerate(arguments, 1):
            if "out" in direction:
                data = initial[place].copy()
                view(data, *shapes[argument])[...] = np.load(folder / f"out{place}.npy").view(data.dtype)
                data.tofile(folder / f"v{place}.bin")
        judged = subprocess.run([sys.executable, str(compare)], cwd=folder, env=environment, capture_output=True, text=True)
        passed = judged.returncode == 0 and "compare passed" in judged.stdout and "failed" not in judged.stdout
        ignored = "ignored" in judged.stdout
        what = "equal" if passed else "differs, which the sample ignores" if ignored else "differs"
        yield backend, what, (judged.stdout + judged.stderr).strip().replace("\n", "; ")
        for place, data in initial.items():
            data.tofile(folder / f"v{place}.bin")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("ptoc", nargs="?", default="target/debug/ptoc")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    for name, program, golden, compare in cases(args.checkout):
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = args.keep / name.replace("/", "+") if args.keep else pathlib.Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                found = list(run_case(args.checkout, args.ptoc, name, program, golden, compare, folder))
            except Unread as e:
                found = [(backend, "not run", str(e)) for backend in ("interp", "cpu")]
            except subprocess.TimeoutExpired:
                found = [(backend, "not run", "it takes too long") for backend in ("interp", "cpu")]
        for backend, what, _ in found:
            counts[backend][what] += 1
        if all(what == "equal" for _, what, _ in found):
            print(f"{name}: equal", flush=True)
        else:
            for backend, what, why in found:
                print(f"{name}: {backend} {what}: {why}", flush=True)
    for backend, of in counts.items():
        print(f"{backend}:", ", ".join(f"{n} {what}" for what, n in sorted(of.items())), "of", sum(of.values()))


if __name__ == "__main__":
    main()
