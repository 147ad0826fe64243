#!/usr/bin/env python3
"""The playground: the compiler as WebAssembly, with a page around it, in one file that opens without a network.

usage: editors/playground/build.py OUT.html [--wasm F.wasm]

Needs Rust's target wasm32-wasip1 (`rustup target add wasm32-wasip1`). `--wasm` takes a module that was built before.
"""

import argparse
import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = "wasm32-wasip1"
# Elaboration and checks recur; threads of other machines have as much.
STACK = 64 << 20
# Bytes of the page.
LIMIT = 5_000_000

# Classes of the page's text by the beginnings of the grammar's scopes, the first that fits.
CLASSES = [
    ("comment", "comment"),
    ("string", "string"),
    ("constant.numeric", "number"),
    ("constant.language", "number"),
    ("support.type", "type"),
    ("entity.name.type", "type"),
    ("support.function.instruction", "instruction"),
    ("keyword", "word"),
    ("storage", "word"),
]


def module():
    """The compiled module: the command line without machines, servers and the debugger."""
    env = {**os.environ, "RUSTFLAGS": f"-C link-arg=-zstack-size={STACK}"}
    command = ["cargo", "build", "--locked", "-p", "ptoc-cli", "--no-default-features", "--profile", "playground"]
    subprocess.run([*command, "--target", TARGET], cwd=ROOT, env=env, check=True)
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return folder / TARGET / "playground" / "ptoc.wasm"


def grammar():
    """Rules of the editors' grammar in their order, each with a class: the words of the language are written once."""
    found = json.loads((ROOT / "editors/vscode/syntaxes/tile.tmLanguage.json").read_text())["repository"]
    rules = []

    def add(rule, scope):
        kind = next((kind for prefix, kind in CLASSES if scope.startswith(prefix)), None)
        if kind:
            # Its own groups would be counted.
            rules.append({"kind": kind, "rule": re.sub(r"\((?!\?)", "(?:", rule)})

    for part in ["comments", "strings", "numbers", "declarations", "words", "names"]:
        for pattern in found[part].get("patterns", [found[part]]):
            if "begin" in pattern:
                add(r'"(?:[^"\\\n]|\\.)*(?:"|$)', pattern["name"])
            elif "name" in pattern:
                add(pattern["match"].replace(".*$", "[^\\n]*"), pattern["name"])
            elif words := re.match(r"\\b\([a-z|]+\)", pattern["match"]):
                # A declaration: the word before the name.
                add(words.group() + r"\b", pattern["captures"]["1"]["name"])
    return rules


def targets():
    """Targets that the interpreter serves, by the names of their tables."""
    names = [tomllib.loads(p.read_text())["name"] for p in sorted((ROOT / "compiler/isa/targets").glob("*.toml"))]
    return "".join(f"<option>{name}</option>" for name in sorted(names))


def page(wasm):
    """The page with everything that it needs."""
    examples = json.loads((HERE / "examples.json").read_text())
    files = {}
    for path in [*sorted((ROOT / "examples").glob("*.tile")), *sorted(HERE.glob("*.tile"))]:
        files[f"/{path.name}"] = path.read_text()
    missing = [e["file"] for e in examples if f"/{e['file']}" not in files]
    if missing:
        sys.exit(f"examples.json names {', '.join(missing)}: there is no such file")

    def data(value):
        # Nothing in it ends the element.
        return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")

    parts = {
        "/*STYLE*/": (HERE / "style.css").read_text(),
        "<!--TARGETS-->": targets(),
        "/*FILES*/": data(files),
        "/*EXAMPLES*/": data(examples),
        "/*GRAMMAR*/": data(grammar()),
        "/*WASM*/": base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode(),
        "/*WASI*/": (HERE / "wasi.js").read_text(),
        "/*WORKER*/": (HERE / "worker.js").read_text(),
        "/*MAIN*/": (HERE / "main.js").read_text(),
    }
    template = (HERE / "page.html").read_text()
    return re.sub("|".join(re.escape(mark) for mark in parts), lambda m: parts[m.group()], template)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--wasm", type=Path)
    args = parser.parse_args()
    wasm = (args.wasm or module()).read_bytes()
    text = page(wasm)
    size = len(text.encode())
    if size > LIMIT:
        sys.exit(f"the page has {size} bytes, and may have {LIMIT}")
    args.out.write_text(text)
    print(f"{args.out}: {size} bytes, of them {len(wasm)} of WebAssembly compressed")


if __name__ == "__main__":
    main()
