"""Tile kernels as functions on arrays of NumPy, PyTorch, JAX and others.

    >>> import numpy as np, ptoc
    >>> k = ptoc.tile('''
    ... kernel double(x: in f32[N], y: out f32[N]) {
    ...     grid (i in tiles(N, 256));
    ...     TSTORE(y.tile(i), Vec(x.tile(i)) * 2.0);
    ... }
    ... ''').double
    >>> k(np.arange(4, dtype=np.float32))
    array([0., 2., 4., 6.], dtype=float32)
"""

from ._errors import (
    ArgumentError,
    CompileError,
    DtypeError,
    Error,
    LaunchError,
    SourceFileError,
    UnknownKernelError,
    VerificationError,
    Warning,
)
from ._ptoc import (
    Kernel,
    Layout,
    Library,
    Memory,
    __version__,
    get_num_threads,
    layout,
    load,
    set_num_threads,
    tile,
)
from ._results import Parameter, Timing, Trial, Tuned, Verified

__all__ = [
    "ArgumentError",
    "CompileError",
    "DtypeError",
    "Error",
    "Kernel",
    "LaunchError",
    "Layout",
    "Library",
    "Memory",
    "Parameter",
    "SourceFileError",
    "Timing",
    "Trial",
    "Tuned",
    "UnknownKernelError",
    "VerificationError",
    "Verified",
    "Warning",
    "__version__",
    "get_num_threads",
    "layout",
    "load",
    "set_num_threads",
    "tile",
]
