"""Threads, processes, and the end of the interpreter."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import numpy as np
import ptoc
import pytest

SOURCE = """
kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N]) {
    grid (i in tiles(M, 4), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
}
kernel slow(x: in f32[N], y: out f32[N]) {
    grid (i in tiles(N, 64));
    let t = Vec(x.tile(i));
    for k in 0..200000 { t = t * 1.0; }
    TSTORE(y.tile(i), t);
}
"""


@pytest.fixture(scope="module")
def lib():
    return ptoc.tile(SOURCE)


@pytest.fixture(autouse=True)
def default_threads():
    yield
    ptoc.set_num_threads(0)


def test_ten_threads_at_once(lib):
    wrong = []

    def work(n):
        try:
            x = np.full((3 + n % 3, 100), n, np.float32)
            for k in range(50):
                y = lib.scale(x, float(k))
                if not (y == n * k).all():
                    wrong.append((n, k))
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_number_of_threads(lib):
    default = ptoc.get_num_threads()
    assert default >= 1
    x = np.ones((40, 100), np.float32)
    for n in [1, 2, 7]:
        ptoc.set_num_threads(n)
        assert ptoc.get_num_threads() == n
        assert (lib.scale(x, 3) == 3).all()
    ptoc.set_num_threads(0)
    assert ptoc.get_num_threads() == default


def test_the_lock_is_released(lib):
    """Another thread goes on while a kernel runs."""
    ptoc.set_num_threads(1)
    x = np.ones(64, np.float32)
    lib.slow(x)
    count, stop = 0, threading.Event()

    def tick():
        nonlocal count
        while not stop.is_set():
            count += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    begin, seen = time.perf_counter(), count
    while time.perf_counter() - begin < 0.2:
        lib.slow(x)
    seen = count - seen
    stop.set()
    ticking.join()
    assert seen >= 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_after_a_fork(lib):
    x = np.ones((64, 256), np.float32)
    ptoc.set_num_threads(4)
    lib.scale(x, 2)
    child = os.fork()
    if child == 0:
        # Also a kind of call that was not compiled before.
        good = (lib.scale(x, 2) == 2).all() and (lib.scale(x[:5], 3) == 3).all()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (lib.scale(x, 2) == 2).all()


def python(text):
    # Not where the sources are: a folder `ptoc` of the current directory would hide the package.
    command = [sys.executable, "-c", textwrap.dedent(text)]
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=empty)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(os.name != "posix", reason="signals are sent")
@pytest.mark.parametrize("threads", [1, 3])
def test_ctrl_c_ends_a_launch(threads):
    """Between two of its blocks, of which there are enough for minutes."""
    done = python(f"""
        import numpy as np, os, ptoc, signal, threading, time
        # A job in the background ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        k = ptoc.tile({SOURCE!r}).slow
        ptoc.set_num_threads({threads})
        x, y = np.ones(64 * 20000, np.float32), np.zeros(64 * 20000, np.float32)
        k(x[:64])
        sent = []
        def send():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.5, send).start()
        try:
            k(x, out=y)
            print("not ended")
        except KeyboardInterrupt:
            print("ended", time.perf_counter() - sent[0] < 10, 0 < y.sum() < y.size)
        # What a handler does not raise is no end.
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        x = x[: 64 * 40]
        threading.Timer(0.2, send).start()
        while not seen:
            assert (k(x) == 1).all()
        print("goes on", (k(x) == 1).all())
    """)
    assert done.stdout == "ended True True\ngoes on True\n", (done.stdout, done.stderr)


def test_end_of_the_interpreter():
    """Threads that are in kernels when the interpreter ends."""
    done = python(f"""
        import numpy as np, ptoc, threading, time
        k = ptoc.tile({SOURCE!r}).slow
        x = np.ones(6400, np.float32)
        k(x)
        def work():
            while True:
                k(x)
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        print("end")
    """)
    assert done.stdout == "end\n"
    assert not done.stderr, done.stderr


def test_exceptions_in_threads(lib):
    seen = []

    def work():
        try:
            lib.scale(np.ones(3, np.float32), 1.0)
        except ptoc.ArgumentError as e:
            seen.append(e.code)

    threads = [threading.Thread(target=work) for _ in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == ["E0751"] * 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_forks_beside_compilations(examples):
    softmax = ptoc.load(examples / "softmax.tile").softmax
    stop, sizes = threading.Event(), itertools.count(1)

    def work():
        while not stop.is_set():
            with contextlib.suppress(ptoc.Error):
                softmax(np.ones(3, np.float32))
            softmax(np.ones((2, next(sizes) % 300 + 1), np.float32))

    workers = [threading.Thread(target=work) for _ in range(2)]
    [w.start() for w in workers]
    try:
        for n in range(12):
            time.sleep(0.003)
            child = os.fork()
            if child == 0:
                try:
                    softmax(np.ones(3, np.float32))
                except ptoc.Error:
                    softmax(np.ones((2, 301 + n), np.float32))
                    os._exit(0)
                os._exit(1)
            deadline = time.monotonic() + 20
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    pytest.fail(f"child {n} waits for ever")
                time.sleep(0.005)
            assert ended[1] == 0
    finally:
        stop.set()
        [w.join() for w in workers]

