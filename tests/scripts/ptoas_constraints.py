"""Holds `compiler/pto/src/ops/constraints.txt` against a checkout of hw-native-sys/PTOAS: the elements that its verifier
names in its messages, and the operations whose tiles it wants row-major.

    python3 tests/scripts/ptoas_constraints.py CHECKOUT

Prints a line for each operation where both differ; nothing of the checkout is copied.
"""

import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).parents[2] / "compiler/pto/src/ops/constraints.txt"


def table():
    """Of each operation: elements by target, and whether it has a clause `rows`."""
    rows, name = {}, ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        if not line.startswith(" "):
            name, _, line = line.partition(" ")
        own = rows.setdefault(name, {"in": {}, "rows": set()})
        for clause in filter(str.strip, line.split("|")):
            kind, *words = clause.split()
            kind, *on = kind.split("@")
            for arch in [a for a in ("a2a3", "a5") if a in on] or ["a2a3", "a5"]:
                if kind == "in":
                    own["in"].setdefault(arch, []).append({w.lstrip("=") for w in words[1:]})
                if kind == "rows":
                    own["rows"].add(arch)
    return rows


def verifiers(text):
    """The bodies of the verifiers, by the operation's name in lower case."""
    starts = list(re.finditer(r"LogicalResult\s+(?:\w+::)*(\w+)Op::verify\(\)\s*\{", text))
    for at, end in zip(starts, [m.start() for m in starts[1:]] + [len(text)]):
        yield "pto." + at.group(1).lower(), text[at.start() : end].split("\n}\n")[0]


def elements(words):
    """`i8/i16 or f32` as a set."""
    known = re.findall(r"\b(?:u?i|f|bf)(?:8|16|32|64)\b|\bfp8\b", words)
    return {w.replace("u", "") if w.startswith("ui") else w for w in known}


def main():
    text = (pathlib.Path(sys.argv[1]) / "lib/PTO/IR/PTO.cpp").read_text()
    rows = table()
    compared = 0
    for name, body in verifiers(text):
        own = rows.get(name)
        messages = re.findall(r'"expects ((?:A2/A3 |A5 )?)[^"]*?element types? to be ((?:u?i|f|bf)\d[^"]*)"', body)
        ordered = "row-major layout" in body or "row_major blayout" in body or "verifyNDStyle" in body
        ordered = ordered or "verifyVecTileCommon(" in body or "verifyVecTileUnaryOp" in body
        if own is None:
            if messages or ordered:
                print(f"{name}: not in the table: {messages}")
            continue
        if ordered != bool(own["rows"]):
            print(f"{name}: row-major there: {ordered}, here: {bool(own['rows'])}")
        for arch, words in messages:
            found = elements(words)
            targets = {"A2/A3 ": ["a2a3"], "A5 ": ["a5"]}.get(arch, ["a2a3", "a5"])
            for target in targets:
                compared += 1
                if found not in own["in"].get(target, []):
                    print(f"{name} on {target}: there {sorted(found)}, here {own['in'].get(target)}")
    print(f"{compared} lists of elements compared")


if __name__ == "__main__":
    main()
