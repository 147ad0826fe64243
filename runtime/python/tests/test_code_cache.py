"""Machine code that other processes have stored."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np, ptoc
k = ptoc.load("examples/softmax.tile").softmax
x = np.random.default_rng(1).standard_normal((20, 100), np.float32)
print(k(x).tobytes().hex())
"""


def run(root, directory):
    environment = {**os.environ, "PTOC_CODE_CACHE": str(directory)}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=root, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    return ran.stdout


def test_code_is_stored_and_loaded(examples, tmp_path):
    root, directory = examples.parent, tmp_path / "code"
    first = run(root, directory)
    (file,) = directory.iterdir()
    assert len(file.name) == 64 and directory.stat().st_mode & 0o777 == 0o700
    before = file.read_bytes()
    assert run(root, directory) == first
    assert file.read_bytes() == before
    # What is damaged is compiled anew, and takes the place of the damaged file.
    file.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    assert run(root, directory) == first
    assert file.read_bytes() == before


def test_no_place_for_code_is_no_mistake(examples, tmp_path):
    root = examples.parent
    first = run(root, "off")
    (tmp_path / "file").write_text("no directory")
    assert run(root, tmp_path / "file" / "code") == first
