"""Kernels as functions of JAX, by XLA's foreign function interface: inside of `jax.jit`, on the CPU and on CUDA
devices, without copies.

    softmax = ptoc.jax.call(ptoc.load("softmax.tile").softmax)
    y = jax.jit(lambda x: softmax(2 * x))(x)
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from . import _errors, _ptoc, _signature
from ._ptoc import Kernel
from ._results import Parameter

__all__ = ["call"]

_TARGET = "ptoc_kernel"

_DTYPES = {
    "bool": np.bool_,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": jnp.bfloat16,
    "f32": np.float32,
    "f8e4m3": jnp.float8_e4m3fn,
    "f8e5m2": jnp.float8_e5m2,
}


def call(kernel: Kernel, *, vmap_method: str = "sequential") -> Callable[..., Any]:
    """The kernel as a function of arrays of JAX, which may be traced.

    It takes the kernel's inputs by position or by name, and constants by name. It returns new arrays: outputs and
    `inout` tensors, in the order of their declaration. Shapes and dtypes are checked, and the kernel is compiled, when
    the function is traced. Scalars may be traced, too, but for those that a `where` names and those of programs, whose
    values decide what is compiled.

    `vmap_method` is that of `jax.ffi.ffi_call`. For gradients wrap the function with `jax.custom_vjp`.
    """
    _register()

    def run(*args: Any, **named: Any) -> Any:
        constants = {name: named.pop(name) for name in kernel.constant_names if name in named}
        return _call(kernel.bind(**constants) if constants else kernel, args, named, vmap_method)

    run.__name__ = run.__qualname__ = kernel.__name__
    run.__doc__ = kernel.docs or f"The kernel `{kernel.signature}`."
    run.__signature__ = _signature.of(kernel, outputs=False)  # type: ignore[attr-defined]
    return run


_registered = False


def _register() -> None:
    global _registered
    if _registered:
        return
    prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    for platform, address in zip(("cpu", "CUDA", "ROCM"), _ptoc._xla_handlers()):
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(prototype(address)), platform=platform)
    _registered = True


def _refuse(code: str, message: str, remedy: str) -> Exception:
    return _errors.of_words(code, message, remedy)


def _call(kernel: Kernel, args: tuple[Any, ...], named: dict[str, Any], vmap_method: str) -> Any:
    parameters = kernel.parameters
    values = _bound(kernel, args, named)
    static = set(_ptoc._static_scalars(kernel))
    given: list[Any] = []
    operands: list[Any] = []
    places: dict[str, int] = {}
    for p in parameters:
        value = values.get(p.name)
        if value is None:
            given.append(None)
            continue
        if p.shape is None:
            value = _scalar(kernel, p, value, p.name in static)
        else:
            value = _array(p, value)
        if isinstance(value, (bool, int, float)):
            given.append(value)
            continue
        places[p.name] = len(operands)
        operands.append(value)
        given.append((np.dtype(value.dtype).name, tuple(value.shape)))
    site, shapes = _ptoc._xla_site(kernel, given)
    optional = {p.name for p in parameters if p.direction == "out" and p.optional}
    results = [p for p in parameters if p.direction != "in" and p.name not in optional]
    results = [p for p in results if p.direction == "out" or p.name in places]
    dtypes = [_known(p, np.dtype(_by_name(name))) for p, (name, _) in zip(results, shapes)]
    kinds = [jax.ShapeDtypeStruct(shape, dtype) for dtype, (_, shape) in zip(dtypes, shapes)]
    aliases = {places[p.name]: n for n, p in enumerate(results) if p.direction == "inout"}
    call = jax.ffi.ffi_call(_TARGET, kinds, vmap_method=vmap_method, input_output_aliases=aliases)
    made = call(*operands, site=np.int64(site))
    if not made:
        return None
    return made[0] if len(made) == 1 else tuple(made)


def _by_name(name: str) -> Any:
    return getattr(jnp, name, None) or np.dtype(name)


def _known(p: Parameter, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Refuses a result of 64 bits, where JAX makes 32 of them."""
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        message = f"`{p.name}` is {dtype.name}, which JAX has not while `jax_enable_x64` is off"
        raise _refuse("E0750", message, 'set `jax.config.update("jax_enable_x64", True)`')
    return dtype


def _bound(kernel: Kernel, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Arguments by the names of parameters."""
    inputs = [p.name for p in kernel.parameters if p.direction != "out"]
    if len(args) > len(inputs):
        message = f"`{kernel.__name__}` takes {len(inputs)} arguments by position, and {len(args)} are given"
        raise _refuse("E0764", message, f"it takes {', '.join(inputs)}")
    values = dict(zip(inputs, args))
    for name, value in named.items():
        if name not in inputs:
            message = f"`{kernel.__name__}` has no input or constant `{name}`"
            raise _refuse("E0764", message, f"it takes {', '.join([*inputs, *kernel.constant_names])}; results are new")
        if name in values:
            raise _refuse("E0764", f"`{name}` is given twice", "give it by position or by name")
        values[name] = value
    return values


def _array(p: Parameter, value: Any) -> jax.Array:
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        message = f"the array of `{p.name}` is of type `{type(value).__name__}`, which is no array"
        raise _refuse("E0763", message, "pass an array of JAX or NumPy")
    dtype = np.dtype(value.dtype)
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        message = f"the array of `{p.name}` is {dtype.name}, of which JAX makes {jax.dtypes.canonicalize_dtype(dtype)}"
        raise _refuse("E0763", message, 'convert it, or set `jax.config.update("jax_enable_x64", True)`')
    return jnp.asarray(value)


def _scalar(kernel: Kernel, p: Parameter, value: Any, static: bool) -> Any:
    """A number where its value has to be known, else an array without dimensions."""
    if isinstance(value, jax.core.Tracer):
        if static:
            message = f"`{p.name}` is traced, and its value decides what `{kernel.__name__}` is compiled to"
            raise _refuse("E0764", message, "make it a constant of the trace: `static_argnames`, `functools.partial`")
        if value.shape != ():
            message = f"`{p.name}` is a scalar, and an array of the shape {value.shape} is given"
            raise _refuse("E0764", message, "pass one of its elements")
        _check_traced(kernel, p, value.dtype)
        return value
    number = value.item() if hasattr(value, "item") else value
    if not isinstance(number, (bool, int, float)):
        raise _refuse("E0764", f"`{p.name}` is a scalar, and {value!r} is given", "pass a number")
    named = kernel.constants.get(p.dtype, p.dtype)
    if static or named not in _DTYPES:
        return number
    dtype = np.dtype(_DTYPES[named])
    fits = isinstance(number, bool) == (named == "bool") and (isinstance(number, (bool, int)) or "f" in named)
    if not fits or jax.dtypes.canonicalize_dtype(dtype) != dtype:
        # The kernel says what is wrong with it, if anything is.
        return number
    if "f" in named and math.isfinite(number):
        with np.errstate(over="ignore"):
            converted = np.asarray(number, dtype)
        if not np.isfinite(converted.astype(np.float64)):
            raise _refuse("E0764", f"`{p.name}` is `{named}`, and {number} is given", f"pass a value of `{named}`")
        return jnp.asarray(converted)
    if "f" not in named and named != "bool":
        info = np.iinfo(dtype)
        if not info.min <= number <= info.max:
            raise _refuse("E0764", f"`{p.name}` is `{named}`, and {number} is given", f"pass a value of `{named}`")
    return jnp.asarray(np.asarray(number, dtype))


def _check_traced(kernel: Kernel, p: Parameter, dtype: Any) -> None:
    """Refuses a traced number whose dtype says already that no value of it will do: a program would fail that late."""
    named = kernel.constants.get(p.dtype, p.dtype)
    if named == "index":
        kinds: tuple[Any, ...] = (jnp.integer,)
    elif named not in _DTYPES:
        return
    elif named == "bool":
        kinds = (jnp.bool_,)
    else:
        kinds = (jnp.integer, jnp.floating) if "f" in named else (jnp.integer,)
    if not any(jnp.issubdtype(dtype, kind) for kind in kinds):
        message = f"`{p.name}` is `{named}`, and a traced number of {np.dtype(dtype).name} is given"
        wanted = "int32" if named == "index" else np.dtype(_DTYPES[named]).name
        raise _refuse("E0764", message, f'convert it: `{p.name}.astype("{wanted}")`')
