"""The words of PTOAS's dialect with their places: `tests/golden/ptoas_words.txt`, which `tests/it/pto_words.rs` holds
what ptoc prints against.

    python3 tests/scripts/ptoas_words.py CHECKOUT > tests/golden/ptoas_words.txt

CHECKOUT is a clone of hw-native-sys/PTOAS. Of its definitions the names are taken, each with file and line:
  op NAME PLACE WORDS      an operation of the dialect; operands and attributes that it has, words of its format
  op NAME PLACE            one of MLIR's: where PTOAS's manual names it, or its pass to C++ takes it
  enum NAME PLACE WORDS    an enumeration
  type NAME PLACE WORDS    a type, with the words inside of it
  word NAME PLACE          an attribute of modules or functions
"""

import pathlib
import re
import sys

OPS, ATTRS, TYPES = (f"include/PTO/IR/{name}.td" for name in ("PTOOps", "PTOAttrs", "PTOTypeDefs"))
TYPE_CODE, TO_CPP, MANUAL = "lib/PTO/IR/PTOTypeDefs.cpp", "lib/PTO/Transforms/PTOToEmitC.cpp", "docs/PTO_IR_manual.md"


def records(text, head):
    """Top-level definitions: name, what `head` finds in its first lines, its line, its body."""
    starts = [m for m in re.finditer(r"^(?:def|class) (\w+)\s*:\s*", text, re.M)]
    for m, following in zip(starts, starts[1:] + [None]):
        body = text[m.end() : following.start() if following else len(text)]
        found = re.match(head, body)
        if found:
            yield m.group(1), found, text.count("\n", 0, m.start()) + 1, body


def arguments(body):
    """Names behind `$` of the `ins` list."""
    found = re.search(r"let arguments = \(ins(.*?)\n\s*\);", body, re.S) or re.search(r"let arguments = \(ins(.*?)\);", body, re.S)
    return re.findall(r":\$(\w+)", found.group(1)) if found else []


def main():
    root = pathlib.Path(sys.argv[1])
    read = lambda name: (root / name).read_text(errors="replace")
    print("# Written by tests/scripts/ptoas_words.py from hw-native-sys/PTOAS at a56b18c3. Names and their places alone.\n")
    ops = read(OPS)
    for _, head, line, body in records(ops, r'PTO_\w*Op\s*<\s*"([\w.]+)"'):
        words = arguments(body)
        form = re.search(r"let assemblyFormat = \[\{(.*?)\}\]", body, re.S)
        words += re.findall(r"`(\w+)`", form.group(1)) if form else ["ins", "outs"]
        # Written by hand where there is no format: words in the code of the same name.
        print("op", "pto." + head.group(1), f"{OPS}:{line}", *dict.fromkeys(words))
    attrs = read(ATTRS)
    case = r'I32EnumAttrCase<\s*"(\w+)",\s*-?\d+(?:,\s*"(\w+)")?'
    cases = {name: head.group(2) or head.group(1) for name, head, _, _ in records(attrs, case)}
    enums = {}
    for name, _, line, body in records(attrs, r"PTO_I32Enum<"):
        listed = re.search(r"\[(.*?)\]", body, re.S).group(1)
        words = [word or symbol for symbol, word in re.findall(case, listed)]
        enums[name] = (line, words or [cases[c] for c in re.findall(r"\w+", listed) if c in cases])
    for _, head, _, body in records(attrs, r'PTO_Attr<"\w+",\s*"(\w+)"|EnumAttr<PTO_Dialect,\s*(\w+),\s*"(\w+)"'):
        parameter = re.search(r"EnumParameter<(\w+)>", body)
        of = head.group(2) or (parameter and parameter.group(1))
        if of in enums:
            line, words = enums[of]
            print("enum", head.group(1) or head.group(3), f"{ATTRS}:{line}", *words)
    code = read(TYPE_CODE).splitlines()
    inside = {}
    for n, text in enumerate(code, 1):
        for word in re.findall(r'(?:key == |Field\(parser, |KeyEq\(parser, |ValidDim\(parser, |Case\()"(\w+)"', text):
            inside.setdefault(word, n)
    types = read(TYPES)
    for _, _, line, body in records(types, r"TypeDef<"):
        name = re.search(r'let mnemonic = "(\w+)"', body)
        if name:
            print("type", name.group(1), f"{TYPES}:{line}", *(sorted(inside) if name.group(1) == "tile_buf" else []))
    # MLIR's own.
    found = {}
    manual = read(MANUAL)
    for m in re.finditer(r"`((?:arith|scf|func)\.\w+)`", manual):
        found.setdefault(m.group(1), f"{MANUAL}:{manual.count(chr(10), 0, m.start()) + 1}")
    cpp = read(TO_CPP)
    for m in re.finditer(r"\b(arith|scf|func)::(\w+)Op\b", cpp):
        name = f"{m.group(1)}.{spelled(m.group(2))}"
        found.setdefault(name, f"{TO_CPP}:{cpp.count(chr(10), 0, m.start()) + 1}")
    for name in sorted(found):
        print("op", name, found[name])
    header = "include/PTO/IR/PTO.h"
    for n, text in enumerate(read(header).splitlines(), 1):
        for word in re.findall(r'"(pto\.\w+)"', text):
            print("word", word, f"{header}:{n}")


def spelled(name):
    """`DivSI` as MLIR writes it, `divsi`; `IndexCast` is `index_cast`."""
    parts = re.sub(r"(?<=[a-z])(?=(?:Cast|Extended|Index|Region|Switch)(?![a-z]))|(?<=I)(?=Extended)", "_", name)
    return parts.lower().replace("bit_cast", "bitcast")


if __name__ == "__main__":
    main()
