"""Kernels as C++ against pto-isa, compiled with its CPU simulator, run, and held against the interpreter, whose results
are held against the kernel's `ensures`.

    python3 tests/scripts/pto_cpp.py CHECKOUT [FILE]... [--ptoc PTOC] [--cxx CXX] [--only NAME]... [--keep FOLDER]

CHECKOUT is a clone of hw-native-sys/pto-isa; nothing of it is copied. FILEs are sources, those of `examples` if none is
given. Of each kernel the first line `// run:` for a2a3 or a5 is taken. Inputs are those of `ptoc run --random SEED`, or the
line's files. The C++ is made in the manual form and in the automatic one, and each is one of
  bits      every output has the interpreter's bits
  rounding  every output is within the tolerance of the line, or within 2e-3 if it states none
  differs   an output is not
  aborts    the program ends otherwise
  no C++    the compiler of C++ refuses it
  not said  ptoc says by a code what the headers have no form for
What has the interpreter's bits keeps `ensures` as far as these do, to the tolerance of the line.
Needs numpy and a C++20 compiler (`clang++-19`).
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy

FLAGS = ["-std=c++20", "-include", "cstdint", "-include", "cstdio", "-D__CPU_SIM", "-w"]
# The simulator declares constructors for the automatic mode of a compiler that has this function.
AUTO = ["-D__PTO_AUTO__", "-D__cce_tinit(x)=(x)"]
TARGETS = ["a2a3", "a5"]

HARNESS = """#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <vector>
#include "kernel.cpp"
static std::vector<char> load(const char* name)
{{
    std::FILE* f = std::fopen(name, "rb");
    std::fseek(f, 0, SEEK_END);
    std::vector<char> bytes(std::ftell(f));
    std::rewind(f);
    if (std::fread(bytes.data(), 1, bytes.size(), f) != bytes.size()) std::exit(3);
    std::fclose(f);
    return bytes;
}}
static void save(const char* name, const std::vector<char>& bytes)
{{
    std::FILE* f = std::fopen(name, "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), f);
    std::fclose(f);
}}
int main()
{{
{body}
}}
"""


class Line:
    """A `// run:` line."""

    def __init__(self, words):
        self.kernel, self.backends = words[0], words[1].split(",")
        self.target, self.seed, self.tolerance = None, "1", None
        self.definitions, self.files = [], {}
        for word in words[2:]:
            name, _, value = word.partition("=")
            if value.startswith("="):
                continue
            if name == "target":
                self.target = value
            elif name == "seed":
                self.seed = value
            elif name in ("rtol", "atol"):
                self.tolerance = max(self.tolerance or 0.0, float(value))
            elif value.endswith(".npy"):
                self.files[name] = value
            elif value:
                self.definitions.append(word)


def lines(path):
    found = []
    for text in path.read_text().splitlines():
        text = text.strip()
        if text.startswith("// run:"):
            words = text[len("// run:") :].split("//")[0].split()
            if len(words) >= 2:
                found.append(Line(words))
    return found


def run(command, **kwargs):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=900, **kwargs)


def first_error(text):
    found = re.search(r"(error\[[^\n]*|error: [^\n]*|\[PTO\][^\n]*|[^\n]*Assertion[^\n]*)", text)
    return found.group(1)[:150] if found else text.strip()[:150]


def compiler(options, level):
    """The command of the compiler, with the headers compiled once for each form."""
    command = [options.cxx, *FLAGS, *(AUTO if level == 2 else []), "-I", options.checkout / "include"]
    headers = options.base / f"level{level}.pch"
    if not headers.exists():
        first = options.base / f"level{level}.hpp"
        first.write_text("#include <pto/pto-inst.hpp>\n#include <vector>\n")
        made = run([*command, "-x", "c++-header", first, "-o", headers])
        if made.returncode:
            sys.exit(f"the headers are not compiled: {first_error(made.stderr)}")
    return [*command, "-include-pch", headers]


class Case:
    def __init__(self, options, path, line, folder):
        self.options, self.path, self.line, self.folder = options, path, line, folder
        self.defs = [w for d in line.definitions for w in ("-D", d)]

    def ptoc(self, *words):
        return run([self.options.ptoc, *words])

    def choose(self):
        """A line that names no target is for the first that can be said in C++. A scalar whose default is no number is
        0.5: what it would be is the language's to say."""
        text = self.path.read_text()
        head = text[re.search(r"kernel\s+" + self.line.kernel + r"\b", text).start() :].split("{")[0]
        given = {d.partition("=")[0] for d in self.line.definitions}
        for name, default in re.findall(r"\b(\w+):\s*f32\s*=\s*([^,\n]+)", head):
            if name not in given and not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?\)*", default.strip()):
                self.line.definitions.append(f"{name}=0.5")
        self.defs = [w for d in self.line.definitions for w in ("-D", d)]
        if self.line.target:
            return
        for self.line.target in TARGETS:
            words = ["emit", self.path, self.line.kernel, "--stage", "pto-cpp", "--target", self.line.target]
            if self.ptoc(*words, *self.defs).returncode == 0:
                return
        self.line.target = TARGETS[0]

    def arrays(self):
        """Every argument's array before the launch, in order, and whether the kernel writes it."""
        text = self.path.read_text()
        head = re.search(r"kernel\s+" + self.line.kernel + r"\b(.*?)\n\{", text, re.S) or re.search(
            r"kernel\s+" + self.line.kernel + r"\b(.*?)\{", text, re.S
        )
        args = re.findall(r"(\w+):\s*(in|out|inout)\s", head.group(1))
        # Inputs are written out by a copy of the kernel that calls them `inout`.
        open_text = re.sub(r":\s*in\s", ": inout ", text)
        copy = self.path.with_name("opened_" + self.path.name)
        copy.write_text(open_text)
        words = ["run", copy, self.line.kernel, "--backend", "interp", "--target", self.line.target, *self.defs]
        words += ["--random", self.line.seed]
        for name, file in self.line.files.items():
            words += ["--in", f"{name}={self.path.parent / file}"]
        for name, _ in args:
            words += ["--out", f"{name}={self.folder / name}.npy"]
        made = self.ptoc(*words)
        copy.unlink()
        if made.returncode:
            return None, first_error(made.stderr)
        before = {}
        for name, way in args:
            file = self.folder / f"{name}.npy"
            if not file.exists():
                continue
            array = numpy.load(file)
            if way == "inout":
                rng = numpy.random.default_rng(int(self.line.seed))
                floats = array.dtype.kind == "f"
                drawn = rng.standard_normal(array.shape) if floats else rng.integers(0, 9, array.shape)
                array = drawn.astype(array.dtype)
            numpy.save(file, array)
            before[name] = (way, array)
        return before, None

    def expected(self, before):
        words = ["run", self.path, self.line.kernel, "--backend", "interp", "--target", self.line.target, *self.defs]
        for name, (way, _) in before.items():
            if way != "out":
                words += ["--in", f"{name}={self.folder / name}.npy"]
            if way != "in":
                words += ["--out", f"{name}={self.folder / name}_want.npy"]
        made = self.ptoc(*words)
        if made.returncode:
            return None, first_error(made.stderr)
        return {n: numpy.load(self.folder / f"{n}_want.npy") for n, (w, _) in before.items() if w != "in"}, None

    def ensures(self, before):
        """Whether the interpreter's results on these inputs are what the kernel's `ensures` says."""
        text = self.path.read_text()
        head = text[re.search(r"kernel\s+" + self.line.kernel + r"\b", text).start() :]
        if not re.match(r"[^{]*\bensures\b", re.sub(r"//[^\n]*", "", head)):
            return "no ensures"
        tolerance = str(self.line.tolerance or 2e-3)
        words = ["run", self.path, self.line.kernel, "--backend", "interp", "--target", self.line.target, *self.defs]
        words += ["--verify", "--rtol", tolerance, "--atol", tolerance]
        for name, (way, _) in before.items():
            if way != "out":
                words += ["--in", f"{name}={self.folder / name}.npy"]
        return "ensures holds" if self.ptoc(*words).returncode == 0 else "ensures fails"

    def harness(self, declaration, before):
        """A program that reads the arrays, launches the kernel and writes them."""
        params = declaration[declaration.index("(") + 1 : declaration.rindex(")")].split(", ")[2:]
        values = dict(d.partition("=")[::2] for d in self.line.definitions)
        arrays = iter(before)
        body, call, out = [], [], []
        for param in params:
            kind, name = param.rsplit(" ", 1)
            if kind == "void*":
                array = next(arrays)
                body.append(f'    auto {array}_bytes = load("{array}.bin");')
                call.append(f"{array}_bytes.data()")
                out.append(f'    save("{array}.out", {array}_bytes);')
            elif name in values:
                value = values[name]
                call.append(f"({kind}){value}" if kind != "bool" else value)
            else:
                extent = self.extent(name, before)
                if extent is None:
                    raise ValueError(f"the value of {name} is not known")
                call.append(str(extent))
        body.append(f"    {declaration.split('(')[0].split()[-1]}(3, nullptr, {', '.join(call)});")
        return HARNESS.format(body="\n".join(body + out))

    def extent(self, name, before):
        """A dimension, or the default of a scalar, as the source has it."""
        text = self.path.read_text()
        head = text[re.search(r"kernel\s+" + self.line.kernel + r"\b", text).start() :]
        for array, (_, value) in before.items():
            found = re.search(r"\b" + array + r":\s*(?:in|out|inout)\s+\w+\[([^\]]*)\]", head)
            extents = [e.strip() for e in found.group(1).split(",")] if found else []
            if name in extents and len(extents) == value.ndim:
                return value.shape[extents.index(name)]
        found = re.search(r"\b" + name + r":\s*\w+\s*=\s*([-\w.]+)", head)
        return found.group(1) if found else None

    def form(self, level, before, want):
        work = self.folder / f"level{level}"
        work.mkdir()
        source = work / "kernel.cpp"
        words = ["emit", self.path, self.line.kernel, "--stage", "pto-cpp", "--pto-level", str(level), "-o", source]
        made = self.ptoc(*words, "--target", self.line.target, *self.defs)
        if made.returncode:
            return "not said", first_error(made.stderr)
        text = source.read_text()
        declaration = re.search(r'^extern "C" .*\)$', text, re.M).group(0)
        try:
            (work / "main.cpp").write_text(self.harness(declaration, before))
            orders = {name: self.order(name) for name in before}
        except ValueError as error:
            return "no launch", str(error)
        for name, (way, array) in before.items():
            data = array if way != "out" else numpy.zeros_like(array)
            (work / f"{name}.bin").write_bytes(data.tobytes(orders[name]))
        built = run([*compiler(self.options, level), "main.cpp", "-o", "run", "-lpthread"], cwd=work)
        if built.returncode:
            return "no C++", first_error(built.stderr)
        try:
            ran = run([work / "run"], cwd=work)
        except subprocess.TimeoutExpired:
            return "aborts", "no end within 15 minutes"
        if ran.returncode:
            return "aborts", first_error(ran.stderr + ran.stdout)
        return self.compare(work, want, orders)

    def order(self, name):
        """How an array lies in memory: `C`, or `F` where its layout says that the first mode is contiguous."""
        text = self.path.read_text()
        head = text[re.search(r"kernel\s+" + self.line.kernel + r"\b", text).start() :]
        layout = re.search(r"\b" + name + r":\s*(?:in|out|inout)\s+\w+\[\([^\]]*?\)\s*:\s*\(([^\]]*)\)\]", head)
        if not layout:
            return "C"
        strides = layout.group(1).split(",")
        if len(strides) == 2 and strides[0].strip() == "1":
            return "F"
        raise ValueError(f"the layout of {name} is not known")

    def compare(self, work, want, orders):
        bits, worst = True, 0.0
        tolerance = self.line.tolerance or 2e-3
        for name, array in want.items():
            got = numpy.frombuffer((work / f"{name}.out").read_bytes(), array.dtype)
            got = numpy.ascontiguousarray(got.reshape(array.shape, order=orders[name]))
            if got.tobytes() == array.tobytes():
                continue
            bits = False
            a, b = numbers(got), numbers(array)
            same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
            error = numpy.where(same, 0.0, numpy.abs(a - b) / (1.0 + numpy.abs(b)))
            worst = max(worst, float(numpy.nan_to_num(error, nan=numpy.inf).max()))
        if bits:
            return "bits", ""
        return ("rounding" if worst <= tolerance else "differs"), f"{worst:.1e}"


def numbers(array):
    if array.dtype.kind == "V":
        return (numpy.frombuffer(array.tobytes(), "<u2").astype("<u4") << 16).view("<f4").astype(float)
    return array.astype(float)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--ptoc", default=pathlib.Path("target/debug/ptoc").resolve())
    parser.add_argument("--cxx", default="clang++-19")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--keep", type=pathlib.Path, help="leave what is made in this folder")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2] / "examples"
    base = options.keep.resolve() if options.keep else pathlib.Path(tempfile.mkdtemp())
    base.mkdir(parents=True, exist_ok=True)
    options.base = base
    if options.files:
        (base / "examples").mkdir(exist_ok=True)
        for path in options.files:
            shutil.copy(path, base / "examples")
    else:
        shutil.copytree(root, base / "examples", dirs_exist_ok=True)
    counts, both, kept = collections.Counter(), collections.Counter(), collections.Counter()
    seen = set()
    for path in sorted((base / "examples").glob("*.tile")):
        for line in lines(path):
            key = (path.stem, line.kernel)
            fits = line.target in (None, *TARGETS) and "interp" in line.backends
            if key in seen or not fits or (options.only and not any(o in f"{key[0]} {key[1]}" for o in options.only)):
                continue
            empty = any(d.endswith("=0") for d in line.definitions)
            if empty or re.search(r"program\s+" + line.kernel + r"\b", path.read_text()):
                continue
            seen.add(key)
            folder = base / f"{path.stem}_{line.kernel}"
            folder.mkdir(exist_ok=True)
            case = Case(options, path, line, folder)
            case.choose()
            before, error = case.arrays()
            want, error = case.expected(before) if before else (None, error)
            if want is None:
                forms, ensures = [("no inputs", error)] * 2, "no inputs"
            else:
                ensures = case.ensures(before)
                forms = [case.form(3, before, want), case.form(2, before, want)]
            for (what, _), name in zip(forms, ["manual", "automatic"]):
                counts[(name, what)] += 1
            good = [what in ("bits", "rounding") for what, _ in forms]
            both["both" if all(good) else "one" if any(good) else "none"] += 1
            if any(good):
                kept[ensures] += 1
            cells = [f"{what:9} {why}".strip() for what, why in forms]
            print(f"{path.stem:14} {line.kernel:18} {line.target:5} | {cells[0]} | {cells[1]} | {ensures}", flush=True)
    for (name, what), n in sorted(counts.items()):
        print(f"{name:10} {what:9} {n}")
    for name, n in sorted(kept.items()):
        print(f"of those that are equal in a form: {name} {n}")
    print(f"equal in both forms {both['both']}, in one {both['one']}, in none {both['none']}")
    if not options.keep:
        shutil.rmtree(base)
    return 0


if __name__ == "__main__":
    sys.exit(main())
