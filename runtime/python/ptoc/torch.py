"""Kernels as operators of PyTorch, for `torch.compile`, `torch.export` and automatic differentiation.

    op = ptoc.torch.op(ptoc.load("softmax.tile").softmax)
    y = op(x)                                # also inside of what `torch.compile` compiles
"""

from __future__ import annotations

import ast
from typing import Any, Callable

import torch

from . import _ptoc
from ._ptoc import Kernel

__all__ = ["op"]

_DTYPES = {
    "bool": torch.bool,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "u16": torch.uint16,
    "i32": torch.int32,
    "u32": torch.uint32,
    "i64": torch.int64,
    "u64": torch.uint64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
}

_known: dict[str, int] = {}


def op(
    kernel: Kernel,
    name: str | None = None,
    *,
    backward: Kernel | Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Registers a kernel as a custom operator, and returns it.

    The operator takes the kernel's inputs in their order, and returns its outputs, whose shapes tracing knows from the
    dimensions that the inputs bind. `inout` tensors are updated in place. `name` is `namespace::name`, by default
    `ptoc::` and the kernel's name, with a number if that is taken.

    `backward` makes it differentiable. As a kernel its parameters are found by their names: those of the forward
    kernel's inputs and outputs, `grad_NAME` for the gradient of an output, and as outputs `grad_NAME` for inputs that
    have one. As a function it is called with a dictionary of inputs and outputs by name, and with `grad_NAME=` for each
    output, and returns a dictionary from names of inputs to gradients.
    """
    inputs = [p for p in kernel.parameters if p.direction != "out"]
    # Outputs that may be left out are.
    outputs = [p for p in kernel.parameters if p.direction == "out" and not p.optional]
    if not outputs and not any(p.direction == "inout" for p in inputs):
        raise TypeError(f"`{kernel.__name__}` has no output")
    if name in _known:
        raise ValueError(f"there is an operator `{name}` already: give another name, or none")
    name = name or _free(f"ptoc::{kernel.__name__}")
    _known.setdefault(name, 1)
    mutated = [p.name for p in inputs if p.direction == "inout"]

    names = [p.name for p in inputs]

    def run(*args):
        given = {name: a for name, a in zip(names, args) if a is not None}
        return kernel(**{name: a.detach() if isinstance(a, torch.Tensor) else a for name, a in given.items()})

    devices = ("cpu", "cuda")
    schema = _schema(kernel, inputs, outputs)
    made = torch.library.custom_op(name, run, mutates_args=mutated, device_types=devices, schema=schema)
    if isinstance(backward, Kernel):
        _check_names(backward, inputs, outputs)
        backward = _by_name(backward, op(backward, f"{name}_backward"))
    made.register_fake(lambda *args: _fake(kernel, inputs, outputs, args))
    if backward is not None:
        _differentiable(made, inputs, outputs, backward)
    return made


def _free(name: str) -> str:
    """The name, with a number from its second use on."""
    _known[name] = count = _known.get(name, 0) + 1
    return name if count == 1 else f"{name}_{count}"


def _schema(kernel, inputs, outputs) -> str:
    taken = []
    # Behind the last input that has to be given, those that have not may be left out.
    last = max((n for n, p in enumerate(inputs) if not p.optional), default=-1)
    for n, p in enumerate(inputs):
        default = _literal(p)
        left_out = f"={default}" if n > last else ""
        if p.direction == "inout":
            taken.append(f"Tensor(a{n}!) {p.name}")
        elif p.shape is not None:
            taken.append(f"Tensor{'?' if p.optional else ''} {p.name}{left_out}")
        else:
            named = kernel.constants.get(p.dtype, p.dtype)
            # A type that calls decide is that of any number.
            known = named in _DTYPES or named == "index"
            kind = "Scalar" if not known else "bool" if named == "bool" else "float" if "f" in named else "int"
            taken.append(f"{kind}{'?' if p.optional else ''} {p.name}{left_out}")
    given = ["Tensor" for _ in outputs]
    return f"({', '.join(taken)}) -> {given[0] if len(given) == 1 else '(' + ', '.join(given) + ')'}"


def _literal(p):
    """The default of a scalar that is a number, for which nothing has to be known; else `None`: the kernel's own."""
    if p.shape is not None or p.default is None:
        return None
    if p.dtype == "bool":
        return {"true": True, "false": False}.get(p.default)
    try:
        return float(p.default) if "f" in p.dtype else int(p.default, 0)
    except ValueError:
        return None


def _fake(kernel, inputs, outputs, args):
    """Outputs without elements, of the shapes that the inputs make them."""
    bound, types = {}, {}
    for p, value in zip(inputs, args):
        if p.shape is None:
            # A scalar may be an extent, as far as its value is known.
            if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
                bound.setdefault(p.name, value)
            continue
        if value is None:
            continue
        # Of an array whose layout is a value only the dtype is known.
        if p.shape != ("...",):
            bound.update(zip(p.shape, value.shape))
        types[p.dtype] = value.dtype
    constants = kernel.constants
    sizes = _Sizes(bound, {**_ptoc._extent_names(kernel), **constants})

    def dtype_of(p):
        return _DTYPES.get(constants.get(p.dtype, p.dtype)) or types.get(p.dtype)

    kinds = [(dtype_of(p), tuple(sizes.extent(extent) for extent in p.shape)) for p in outputs]
    if any(dtype is None or None in shape for dtype, shape in kinds):
        kinds = _compiled(kernel, outputs, args)
    example = next((value for value in args if isinstance(value, torch.Tensor)), None)
    new = torch.empty if example is None else example.new_empty
    made = [new(shape, dtype=dtype) for dtype, shape in kinds]
    if not made:
        return None
    return made[0] if len(made) == 1 else tuple(made)


def _compiled(kernel, outputs, args):
    """Dtypes and shapes of outputs, by the compiler. Sizes are taken for what they are: what is traced holds for these
    alone, and others are traced anew."""
    values = iter(args)
    given = [None if p.direction == "out" else _known_value(next(values)) for p in kernel.parameters]
    written = [p for p in kernel.parameters if p.direction == "inout" or p in outputs]
    found = zip(written, _ptoc._result_shapes(kernel, given))
    return [(getattr(torch, dtype), tuple(shape)) for p, (dtype, shape) in found if p.direction == "out"]


def _known_value(value):
    if isinstance(value, torch.Tensor):
        return (str(value.dtype).removeprefix("torch."), tuple(int(n) for n in value.shape))
    for symbol, number in [(torch.SymBool, bool), (torch.SymInt, int), (torch.SymFloat, float)]:
        if isinstance(value, symbol):
            return number(value)
    return value


# Division is that of sizes, which have no sign.
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil_div": lambda a, b: (a + b - 1) // b,
    "min": torch.sym_min,
    "max": torch.sym_max,
}


class _Sizes:
    """Extents by the sizes that are known, which may be symbols, and by what is defined with them."""

    def __init__(self, bound: dict[str, Any], defined: dict[str, str]):
        self._bound = bound
        # What is being looked up is not looked up for itself.
        self._defined = dict(defined)

    def extent(self, text: str) -> Any:
        """`None` where it is made of something else."""
        if text in self._bound:
            return self._bound[text]
        try:
            return self._value(ast.parse(text, mode="eval").body)
        except (KeyError, SyntaxError, TypeError, ValueError, ZeroDivisionError):
            return None

    def _value(self, e: ast.expr) -> Any:
        match e:
            case ast.Constant(value=int(n)):
                return n
            case ast.Name(id=name):
                if name not in self._bound:
                    self._bound[name] = self._value(ast.parse(self._defined.pop(name), mode="eval").body)
                return self._bound[name]
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATIONS[type(op)](self._value(left), self._value(right))
            case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]):
                return _FUNCTIONS[name](*(self._value(operand) for operand in operands))
        raise KeyError(ast.dump(e))


def _check_names(backward: Kernel, inputs, outputs) -> None:
    """Refuses a backward kernel whose parameters are none of the forward kernel's."""
    known = [p.name for p in [*inputs, *outputs]] + [f"grad_{p.name}" for p in outputs]
    wanted = [f"grad_{p.name}" for p in inputs]
    computed = {p.name for p in inputs if p.shape is None and p.default is not None and _literal(p) is None}
    for p in backward.parameters:
        if p.name in computed and not p.optional:
            raise TypeError(
                f"`{p.name}` of `{backward.__name__}` needs a default, as it has one in the forward kernel: "
                "where a call leaves it out, both have their own"
            )
        names = wanted if p.direction == "out" else known
        if p.name not in names:
            what = "no gradient of an input" if p.direction == "out" else "neither an input or output nor a gradient"
            raise TypeError(f"`{p.name}` of `{backward.__name__}` is {what}: it takes {', '.join(names)}")


def _by_name(kernel: Kernel, operator):
    """The operator of a backward kernel, as a function that finds its arguments by their names."""
    takes = [p.name for p in kernel.parameters if p.direction != "out"]
    gives = [p.name.removeprefix("grad_") for p in kernel.parameters if p.direction == "out"]

    def backward(saved, **grads):
        known = {**saved, **grads}
        results = operator(*(known[name] for name in takes))
        return dict(zip(gives, results if isinstance(results, tuple) else (results,)))

    return backward


def _differentiable(made, inputs, outputs, backward) -> None:
    names = [p.name for p in inputs if p.shape is not None]
    scalars = [p.name for p in inputs if p.shape is None]
    taken = inputs
    order = [p.name for p in inputs]

    def save(ctx, inputs, output):
        values = {p.name: _literal(p) if value is None else value for p, value in zip(taken, inputs)}
        ctx.save_for_backward(*[values[n] for n in names], *(output if isinstance(output, tuple) else (output,)))
        ctx.scalars = {n: values[n] for n in scalars}

    def grads(ctx, *given):
        saved = dict(zip([*names, *(p.name for p in outputs)], ctx.saved_tensors))
        given = {f"grad_{p.name}": g.contiguous() for p, g in zip(outputs, given)}
        found = backward({**saved, **ctx.scalars}, **given)
        if not isinstance(found, dict) or not set(found) <= set(order):
            got = ", ".join(map(repr, found)) if isinstance(found, dict) else f"a {type(found).__name__}"
            raise TypeError(f"`backward` returns a dictionary from names of inputs ({', '.join(order)}), and this is {got}")
        return tuple(found.get(name) for name in order)

    made.register_autograd(grads, setup_context=save)
