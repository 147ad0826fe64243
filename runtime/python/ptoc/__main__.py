"""The command `ptoc`: `python -m ptoc check FILE.tile`."""

import os
import signal
import sys
from pathlib import Path

from ._ptoc import _main

#: The routines that `ptoc build` puts into archives and libraries for programs in C.
_RUNTIME = Path(__file__).parent / "libptoc_native.a"


def main() -> int:
    if _RUNTIME.is_file():
        os.environ.setdefault("PTOC_RUNTIME", str(_RUNTIME))
    # Ctrl-C is a program's own matter, not one of Python's exceptions.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _main(["ptoc", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
