"""What the first call of a kernel costs, which compiles it: time of the processor, beside that of importing NumPy.

    python runtime/python/bench/first_call.py
"""

import time
from pathlib import Path

begin = time.process_time()
import numpy as np  # noqa: E402

numpy_time = time.process_time() - begin
import ptoc  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RNG = np.random.default_rng(1)


def array(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


KERNELS = {
    "softmax": lambda: (array(64, 300),),
    "gemm": lambda: (array(256, 256), array(256, 256)),
    "attention": lambda: (array(2, 128, 64, dtype=np.float16),) * 3,
    "layernorm": lambda: (array(64, 512), array(512), array(512)),
    "rmsnorm": lambda: (array(64, 512), array(512)),
}


def timed(f):
    begin = time.process_time()
    f()
    return (time.process_time() - begin) * 1e3


if __name__ == "__main__":
    print(f"import numpy {numpy_time * 1e3:8.1f} ms")
    ptoc.set_num_threads(1)
    for name, arguments in KERNELS.items():
        kernel, given = ptoc.load(EXAMPLES / f"{name}.tile")[name], arguments()
        first = timed(lambda: kernel(*given))
        later = min(timed(lambda: kernel(*given)) for _ in range(5))
        print(f"{name:12} {first - later:8.1f} ms to compile, {later:8.3f} ms a call")
