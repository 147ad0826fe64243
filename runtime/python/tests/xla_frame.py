"""A call as XLA makes it of a handler, by its foreign function interface (`xla/ffi/api/c_api.h`)."""

import ctypes
from ctypes import c_int, c_int32, c_int64, c_size_t, c_void_p

import numpy as np


class Api(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("extensions", c_void_p),
        ("version", c_size_t * 2),
        ("numbers", c_int * 2),
        ("internal", c_void_p),
        ("error_create", c_void_p),
        ("unused", c_void_p * 3),
        ("stream", c_void_p),
        ("unused_too", c_void_p * 12),
        ("device", c_void_p),
    ]


class NewError(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("message", ctypes.c_char_p), ("code", c_int)]


class AskedStream(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("context", c_void_p), ("stream", c_void_p)]


class AskedDevice(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("extensions", c_void_p), ("context", c_void_p), ("device", c_int32)]


class Buffer(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("extensions", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", ctypes.POINTER(c_int64)),
    ]


class Buffers(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("extensions", c_void_p),
        ("count", c_int64),
        ("kinds", ctypes.POINTER(c_int)),
        ("values", ctypes.POINTER(c_void_p)),
    ]


class Text(ctypes.Structure):
    _fields_ = [("at", ctypes.c_char_p), ("length", c_size_t)]


class Attribute(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", c_void_p)]


class Attributes(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("extensions", c_void_p),
        ("count", c_int64),
        ("kinds", ctypes.POINTER(c_int)),
        ("names", ctypes.POINTER(c_void_p)),
        ("values", ctypes.POINTER(c_void_p)),
    ]


class Frame(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("extensions", c_void_p),
        ("api", ctypes.POINTER(Api)),
        ("context", c_void_p),
        ("stage", c_int),
        ("operands", Buffers),
        ("results", Buffers),
        ("attributes", Attributes),
    ]


EXECUTE, BUFFER, SCALAR, S64 = 3, 1, 3, 5
DTYPES = {"float32": 11, "int32": 4}
CONTEXT = 0x1234
#: What the functions of the interface give for an error.
MADE, NO_STREAM = 0xE1, 0xE2
Handler = ctypes.CFUNCTYPE(c_void_p, c_void_p)


def call(address, site, operands, results, stream=0x4D, device=0, api_size=ctypes.sizeof(Api)):
    """Calls a handler. Arrays are `(address, dtype, shape)`. Returns what it gives, and the message of the error that
    it has made."""
    kept, messages = [], []

    def keep(value):
        kept.append(value)
        return value

    @ctypes.CFUNCTYPE(c_void_p, ctypes.POINTER(NewError))
    def error_create(new):
        messages.append(new.contents.message.decode())
        return MADE

    @ctypes.CFUNCTYPE(c_void_p, ctypes.POINTER(AskedStream))
    def stream_get(asked):
        assert asked.contents.context == CONTEXT and asked.contents.size == ctypes.sizeof(AskedStream)
        asked.contents.stream = stream
        return None if stream is not None else NO_STREAM

    @ctypes.CFUNCTYPE(c_void_p, ctypes.POINTER(AskedDevice))
    def device_get(asked):
        assert asked.contents.context == CONTEXT
        asked.contents.device = device
        return None

    def pointer(function):
        return ctypes.cast(keep(function), c_void_p)

    def buffers(arrays):
        values = (c_void_p * max(len(arrays), 1))()
        for n, (at, dtype, shape) in enumerate(arrays):
            dims = keep((c_int64 * max(len(shape), 1))(*shape))
            values[n] = ctypes.addressof(keep(Buffer(ctypes.sizeof(Buffer), None, DTYPES[dtype], at, len(shape), dims)))
        kinds = keep((c_int * max(len(arrays), 1))(*[BUFFER] * len(arrays)))
        return Buffers(ctypes.sizeof(Buffers), None, len(arrays), kinds, keep(values))

    api = Api(size=api_size, error_create=pointer(error_create), stream=pointer(stream_get), device=pointer(device_get))
    number = keep(c_int64(site))
    name = keep(Text(b"site", 4))
    attribute = keep(Attribute(S64, ctypes.addressof(number)))
    attributes = Attributes(
        ctypes.sizeof(Attributes),
        None,
        1,
        keep((c_int * 1)(SCALAR)),
        keep((c_void_p * 1)(ctypes.addressof(name))),
        keep((c_void_p * 1)(ctypes.addressof(attribute))),
    )
    arrays = buffers(operands), buffers(results)
    frame = Frame(ctypes.sizeof(Frame), None, ctypes.pointer(api), CONTEXT, EXECUTE, *arrays, attributes)
    given = Handler(address)(ctypes.addressof(frame))
    return given, messages[0] if messages else None


def number(value, dtype="float32"):
    """An operand without dimensions, in the memory of a driver that has the host's."""
    array = np.asarray(value, dtype)
    number.kept = [*getattr(number, "kept", []), array]
    return (array.ctypes.data, dtype, ())
