"""What `ptoc check` says of PTOAS's own `.pto` files.

    python3 tests/scripts/ptoas_files.py CHECKOUT [PTOC] [--files]

CHECKOUT is a clone of hw-native-sys/PTOAS; nothing of it is copied. A file's target is what its module or its RUN line
says, a2a3 if neither does. Each file is one of
  clean      no error: it parses, is verified, and every check of its kernels passes
  found      it is read, and a check of the language or of the target reports an error in it
  not read   E1404: it is PTO text, of which ptoc has no translation
  refused    E1400 to E1403: it is no PTO text, or its types do not go together
Files named `invalid` must not be clean.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys


def target(text):
    found = re.search(r'pto\.target_arch\s*=\s*"(\w+)"', text) or re.search(r"--pto-arch[= ](\w+)", text)
    return "a5" if found and found.group(1) == "a5" else "a2a3"


def codes(ptoc, path, text):
    """The codes of the errors, in order, each with its message."""
    run = subprocess.run(
        [ptoc, "check", str(path), "--target", target(text), "--message-format", "json"], capture_output=True, text=True, timeout=120
    )
    found = []
    for line in run.stdout.splitlines() + run.stderr.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        for d in entry.get("diagnostics", [entry]):
            if d.get("severity") == "error":
                found.append((d["code"], d["message"]))
    if run.returncode not in (0, 1) or (run.returncode == 1) != bool(found):
        found.append(("BROKEN", f"exit status {run.returncode}: {run.stderr[:300]}"))
    return found


def kind(errors):
    first = {code for code, _ in errors}
    if not errors:
        return "clean"
    if first & {"E1400", "E1401", "E1402", "E1403"}:
        return "refused"
    return "not read" if "E1404" in first else "found"


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    root = pathlib.Path(args[0])
    ptoc = args[1] if len(args) > 1 else "target/debug/ptoc"
    counts, reasons, invalid = collections.Counter(), collections.Counter(), collections.Counter()
    for path in sorted(root.rglob("*.pto")):
        text = path.read_text(errors="replace")
        errors = codes(ptoc, path, text)
        what = kind(errors)
        if "invalid" in path.name:
            invalid[what] += 1
        else:
            counts[what] += 1
            for code, message in errors[:1]:
                reasons[(what, code, re.sub(r"`[^`]*`", "`..`", message) if code != "E1404" else message)] += 1
        if "--files" in sys.argv:
            print(f"{what:9} {path.relative_to(root)}", "; ".join(f"{c} {m}" for c, m in errors[:2]))
    print("not named invalid:", dict(counts), "of", sum(counts.values()))
    print("named invalid:", dict(invalid), "of", sum(invalid.values()))
    for (what, code, message), n in reasons.most_common():
        print(f"{n:4} {what:9} {code} {message}")


if __name__ == "__main__":
    main()
