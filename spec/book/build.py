#!/usr/bin/env python3
"""The documentation as a book that can be searched, with the playground beside it.

usage: spec/book/build.py OUT [--no-playground] [--wasm F.wasm]

Needs mdBook (`cargo install mdbook`). Pages are those of the repository, where they are: the book has its folders, so
links between pages lead to the same places. What it adds is made here: the table of contents, a page for each example,
and an index of the diagnostic codes.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "editors/playground"))
import build as playground  # noqa: E402

# Folders and files that pages lie in or lead to.
PARTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "spec", "examples", "editors",
         "compiler", "runtime", "stdlib", "tests/language", "tests/bench", "tests/hazards"]
# Of these, what a reader may open.
ENDINGS = {".md", ".tile", ".pto", ".svg", ".png", ".toml", ".c", ".cpp", ".rs", ".py", ".npy", ".txt", ""}
# What is no documentation.
SKIPPED = {"target", "node_modules", "src", "snapshots", "__pycache__", "book"}
# Where a new reader begins, as far as the pages are there.
LEARN = ["spec/tutorial.md", "spec/idioms.md", "spec/from_triton.md", "spec/from_cuda.md", "spec/from_cute.md",
         "spec/from_pto.md"]
USE = ["runtime/python/README.md", "runtime/rust/README.md", "spec/build.md", "editors/README.md", "spec/commands.md",
       "spec/project.md"]


def title(page):
    """The first heading of a page."""
    for line in page.read_text().splitlines():
        if line.startswith("# "):
            return re.sub(r"[`\[\]]", "", line[2:]).strip()
    sys.exit(f"{page} has no heading")


def copy(src):
    """Pages and what they lead to, in the folders of the repository."""
    for part in PARTS:
        top = ROOT / part
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            below = path.relative_to(ROOT)
            hidden = any(name.startswith(".") for name in below.parts)
            wanted = path.suffix in ENDINGS and not hidden and not SKIPPED.intersection(below.parts)
            if part in ("compiler", "runtime") and path.suffix not in {".md", ".rs", ".toml"}:
                wanted = False
            if path.is_file() and wanted:
                (src / below).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, src / below)


def examples(src):
    """A page for each example: its first lines in words, then its source."""
    names = []
    for path in sorted((ROOT / "examples").glob("*.tile")):
        about, body = [], []
        for line in path.read_text().splitlines():
            (about if line.startswith("//!") and not body else body).append(line)
        words = "\n".join(line[3:].strip() for line in about)
        source = "\n".join(body).strip()
        page = src / "examples" / f"{path.stem}_page.md"
        page.write_text(f"# {path.name}\n\n{words}\n\n[The file]({path.name}).\n\n```tile\n{source}\n```\n")
        names.append(page)
    return names


def codes(src):
    """The index of the diagnostic codes."""
    pages = sorted((src / "compiler/diagnostics/codes").glob("*.md"))
    rows = []
    for page in pages:
        code, _, text = title(page).partition(" ")
        rows.append(f"| [{code}]({page.name}) | {text.replace('|', chr(92) + '|')} |")
    index = src / "compiler/diagnostics/codes/index_of_codes.md"
    index.write_text("# Diagnostic codes\n\nWhat `ptoc explain CODE` prints.\n\n| code | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return index, pages


def summary(src):
    """The table of contents."""
    lines, listed = ["# Summary", "", "[What it is](README.md)"], {src / "README.md", src / "SUMMARY.md"}

    def chapter(page, depth=0, name=None):
        if page not in listed:
            listed.add(page)
            lines.append(f"{'    ' * depth}- [{name or title(page)}]({page.relative_to(src).as_posix()})")

    def part(name):
        lines.extend(["", f"# {name}", ""])

    part("Learn")
    for page in (src / name for name in LEARN):
        if page.exists():
            chapter(page)
    chapter(src / "examples/README.md", name="Examples")
    for page in examples(src):
        chapter(page, 1)
    part("Use")
    for name in USE:
        chapter(src / name)
    part("Reference")
    chapter(src / "spec/README.md")
    for name in re.findall(r"^\| \[[^\]]+\]\(([\w./]+\.md)\)", (ROOT / "spec/README.md").read_text(), re.M):
        page = (src / "spec" / name).resolve()
        if name == "pto.md":
            chapter(page)
            chapter(src / "spec/pto_coverage.md", 1)
        elif name == "instructions.md":
            chapter(page)
            for one in sorted((src / "spec/instructions").glob("*.md")):
                chapter(one, 1)
        else:
            chapter(page)
    index, pages = codes(src)
    chapter(index)
    for page in pages:
        chapter(page, 1, title(page).split(" ")[0])
    part("How it is made")
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md", "spec/design/README.md"]:
        chapter(src / name)
    for page in sorted((src / "spec/design").glob("*.md")):
        chapter(page, 1)
    chapter(src / "CHANGELOG.md")
    # Pages that others lead to are pages of the book too.
    rest = [p for p in sorted(src.rglob("*.md")) if p not in listed]
    if rest:
        part("More")
        for page in rest:
            chapter(page)
    (src / "SUMMARY.md").write_text("\n".join(lines) + "\n")


def links(src):
    """Links to folders lead to the pages about them, and those to `README.md` to what mdBook makes of it."""
    for page in src.rglob("*.md"):
        def mended(m):
            path, anchor = m.group(1), m.group(2) or ""
            if "://" in path or path.startswith("#"):
                return m.group()
            to = page.parent / path
            if to.is_dir():
                inner = next((n for n in ["README.md", "index_of_codes.md"] if (to / n).exists()), None)
                beside = to.parent / f"{to.name}.md"
                if inner:
                    return f"]({path.rstrip('/')}/{inner}{anchor})"
                if beside.exists():
                    return f"]({path.rstrip('/')}.md{anchor})"
            return m.group()

        def index(m):
            return f"]({m.group(1) or ''}index.md{m.group(2) or ''})"

        text = re.sub(r"\]\(([^)\s#]+)(#[^)\s]*)?\)", mended, page.read_text())
        if page.name != "SUMMARY.md":
            text = re.sub(r"\]\((?!\w+:)([^)\s#]*/)?README\.md(#[^)\s]*)?\)", index, text)
        # The language has no colours where pages are read otherwise, so some are marked as Rust there.
        text = re.sub(r"```rust\n(?=(//[^\n]*\n)*(#\[|kernel |program |atom |const \w+ = \d))", "```tile\n", text)
        page.write_text(text)


def program(name):
    """mdBook, which is installed beside what is built if it is not on the path."""
    found = shutil.which(name)
    if found:
        return found
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / name
    if not (folder / "bin" / name).exists():
        subprocess.run(["cargo", "install", name, "--locked", "--root", folder], check=True)
    return folder / "bin" / name


def book(out):
    """The book, with the front page as its index."""
    with tempfile.TemporaryDirectory() as folder:
        src = (Path(folder) / "src").resolve()
        src.mkdir()
        copy(src)
        summary(src)
        links(src)
        front = (src / "README.md").read_text()
        try_it = "**[Try it in this browser](playground.html)**: the compiler runs in the page.\n\n"
        (src / "README.md").write_text(front.replace("\n\n", "\n\n" + try_it, 1))
        for name in ["book.toml", "book.css"]:
            shutil.copyfile(HERE / name, Path(folder) / name)
        # Colours of the language by the editors' grammar.
        rules = json.dumps(playground.grammar(), separators=(",", ":"))
        (Path(folder) / "tile.js").write_text((HERE / "tile.js").read_text().replace("/*GRAMMAR*/[]", rules))
        subprocess.run([program("mdbook"), "build", folder, "--dest-dir", out.resolve()], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--no-playground", action="store_true")
    parser.add_argument("--wasm", type=Path)
    args = parser.parse_args()
    book(args.out)
    if not args.no_playground:
        wasm = (args.wasm or playground.module()).read_bytes()
        (args.out / "playground.html").write_text(playground.page(wasm))
    print(f"{args.out / 'index.html'}")


if __name__ == "__main__":
    main()
