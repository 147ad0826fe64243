"""PTO text of a sample of PTOAS that is a Python program.

    python3 tests/scripts/pto_bindings.py CHECKOUT SAMPLE.py > SAMPLE.pto

The samples build a module with MLIR's Python bindings and print it. Those bindings are a build of LLVM, so here stand
modules of the same names which record operations and print them as `compiler/pto/src/ops/ops.txt` says, with the order
of arguments that the checkout's dialect definition has. What a sample uses beyond that is an exception.
"""

import pathlib
import re
import runpy
import sys
import types

OPS = pathlib.Path(__file__).resolve().parents[2] / "compiler/pto/src/ops/ops.txt"


class Text(str):
    """A type or an attribute: its text."""

    @property
    def context(self):
        return None

    def __call__(self, *_args, **_named):
        return self


class Value:
    count = 0

    def __init__(self, ty, name=None):
        self.type, self.given = ty, name

    @property
    def name(self):
        if self.given is None:
            self.given, Value.count = f"%{Value.count}", Value.count + 1
        return self.given

    @property
    def result(self):
        return self


class Block:
    def __init__(self, args=()):
        self.ops, self.arguments = [], [Value(ty, f"%arg{i}") for i, ty in enumerate(args)]
        self.owner = self

    def append(self, *args):
        return self.blocks[0]

    @property
    def blocks(self):
        return self

    def __getitem__(self, _):
        return self

    def text(self, depth):
        return "".join(op.text(depth) for op in self.ops)


class InsertionPoint:
    stack = []

    def __init__(self, block):
        self.block = getattr(block, "block", block)

    @classmethod
    def at_block_begin(cls, block):
        return cls(block)

    def __enter__(self):
        InsertionPoint.stack.append(self.block)
        return self

    def __exit__(self, *_):
        InsertionPoint.stack.pop()


def value(v):
    return v if isinstance(v, Value) else v.result


def values(v):
    return [value(x) for x in v] if isinstance(v, (list, tuple)) else [] if v is None else [value(v)]


class Op:
    """An operation; `line` makes its text, without what it defines, from the depth."""

    def __init__(self, line, results=()):
        self.line, self.results = line, [Value(ty) for ty in results]
        if InsertionPoint.stack:
            InsertionPoint.stack[-1].ops.append(self)

    @property
    def result(self):
        if len(self.results) != 1:
            raise ValueError(f"an operation with {len(self.results)} results has no one result")
        return self.results[0]

    def __getattr__(self, name):
        # A result by its name in the definition.
        if name.startswith("_") or not self.__dict__.get("results"):
            raise AttributeError(name)
        return self.result

    def text(self, depth):
        defined = ", ".join(r.name for r in self.results)
        return "  " * depth + (f"{defined} = " if defined else "") + self.line(depth) + "\n"


class Context:
    current = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __getattr__(self, _):
        return False


class Location(Context):
    @classmethod
    def unknown(cls, *_args):
        return cls()


class Module:
    def __init__(self):
        self.body, self.attributes, self.operation = Block(), {}, self

    @classmethod
    def create(cls, *_args):
        return cls()

    def verify(self):
        return True

    def __str__(self):
        attrs = ", ".join(f"{k} = {v}" for k, v in self.attributes.items())
        return f"module {f'attributes {{{attrs}}} ' if attrs else ''}{{\n{self.body.text(1)}}}\n"


# ---- types and attributes --------------------------------------------------------------------------------------------


def named(text):
    return type(text, (), {"get": staticmethod(lambda *_args, **_named: Text(text)), "__str__": lambda _: text})


class IntegerType:
    get_signless = staticmethod(lambda n, *_: Text(f"i{n}"))
    get_signed = staticmethod(lambda n, *_: Text(f"si{n}"))
    get_unsigned = staticmethod(lambda n, *_: Text(f"ui{n}"))


class IntegerAttr:
    get = staticmethod(lambda ty, n: Text(f"{n} : {ty}"))


class FloatAttr:
    get = staticmethod(lambda ty, n: Text(f"{n!r} : {ty}"))


class BoolAttr:
    get = staticmethod(lambda b, *_: Text("true" if b else "false"))


class StringAttr:
    get = staticmethod(lambda s, *_: Text(f'"{s}"'))


def extents(shape):
    return "".join("?x" if n < 0 else f"{n}x" for n in shape)


class PtrType:
    get = staticmethod(lambda ty, *_: Text(f"!pto.ptr<{ty}>"))


class TensorViewType:
    @staticmethod
    def get(shape, ty, *_):
        return Text(f"!pto.tensor_view<{extents(shape if isinstance(shape, list) else [-1] * shape)}{ty}>")


class PartitionTensorViewType:
    get = staticmethod(lambda shape, ty, *_: Text(f"!pto.partition_tensor_view<{extents(shape)}{ty}>"))


class TileConfig:
    fractalABSize, fractalCSize, fractalMxSize, alignedSize = 512, 1024, 32, 32


class TileBufConfigAttr:
    @staticmethod
    def get(blayout, slayout, fractal, pad, *_):
        fractal = int(str(fractal).split()[0])
        return {"blayout": blayout.word, "slayout": slayout.word, "fractal": fractal, "pad": pad.number}

    @staticmethod
    def get_default(*_):
        return {"blayout": "row_major", "slayout": "none_box", "fractal": 512, "pad": 0}


class TileBufType:
    @staticmethod
    def get(shape, ty, space, valid=None, config=None, *_):
        valid = shape if valid is None else valid
        config = config or TileBufConfigAttr.get_default()
        number = lambda n: "?" if n < 0 else n
        text = (
            f"!pto.tile_buf<loc={space.word}, dtype={ty}, rows={shape[0]}, cols={shape[1]}, v_row={number(valid[0])}, "
            f"v_col={number(valid[1])}, blayout={config['blayout']}, slayout={config['slayout']}, "
            f"fractal={config['fractal']}, pad={config['pad']}>"
        )
        return Text(text)


class Word(Text):
    """A word of an enumeration."""

    def __new__(cls, text, word, number):
        self = super().__new__(cls, text)
        self.word, self.number = word, number
        return self

    def __hash__(self):
        return hash(str(self))


class Enumeration(type):
    """`pto.PIPE.PIPE_V`: words come from the checkout's definition."""

    def __getattr__(cls, case):
        for symbol, number, word in cls.cases:
            if symbol == case:
                return Word(cls.form.format(word), word, number)
        raise AttributeError(f"{cls.__name__} has no {case}")


def enumerations(text):
    """Enumerations of the definition: the C++ name, its attribute's class, the attribute's form, and the cases."""
    case = r'I32EnumAttrCase<"(\w+)",\s*(\d+)(?:,\s*"(\w+)")?>'
    apart = {name: (symbol, int(n), word or symbol) for name, symbol, n, word in re.findall(rf"def (\w+)\s*:\s*{case}", text)}
    for record, name, body in re.findall(r'def (\w+)\s*:\s*PTO_I32Enum<\s*"(\w+)",[^\[]*\[(.*?)\]', text, re.S):
        cases = [(symbol, int(n), word or symbol) for symbol, n, word in re.findall(case, body)]
        cases = cases or [apart[part] for part in re.findall(r"\w+", body)]
        of_dialect = re.search(rf'EnumAttr<PTO_Dialect, {record}, "(\w+)">', text)
        own = re.findall(rf'PTO_Attr<"(\w+)", "(\w+)">[^}}]*?EnumParameter<{record}>', text)
        if of_dialect:
            yield name, name + "Attr", f"#pto<{of_dialect.group(1)} {{}}>", cases
        for cls, mnemonic in own:
            yield name, cls + "Attr", f"#pto.{mnemonic}<{{}}>", cases


def word_of(form):
    return lambda *args: next(v if isinstance(v, Word) else Text(form.format(v)) for v in args if isinstance(v, str))


# ---- operations ------------------------------------------------------------------------------------------------------


def definitions(text):
    """Operations of the definition: name of the class, of the operation, arguments and results with their types."""
    text = re.sub(r"//[^\n]*", "", text)
    for found in re.finditer(r'\ndef (\w+Op)\s*:\s*\w+<\s*"([^"]+)"', text):
        body = text[found.end() : text.find("\ndef ", found.end())]

        def fields(word):
            part = re.search(rf"let {word}\s*=\s*\((?:ins|outs)(.*?)\n?\s*\);", body, re.S)
            return re.findall(r"([A-Z]\w*(?:<[^$]*>)?)\s*:\$(\w+)", part.group(1)) if part else []

        yield found.group(1), found.group(2), fields("arguments"), fields("results")


def rows():
    lines = []
    for line in OPS.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith(" "):
            lines[-1] += line
        else:
            lines.append(line)
    return {words[0]: words[3:] for words in (line.split() for line in lines)}


def attribute(v):
    return "true" if v is True else "false" if v is False else f'"{v}"' if type(v) is str else str(v)


# Slots of ops.txt that stand for several arguments of the definition, or have another name there.
OTHER_NAMES = {"by": ["indices", "kValue"], "dst": ["dst", "dsts"], "executed": ["excuted"]}


def destination_passing(form, given, attrs):
    ins, outs = form[1 : form.index("outs")], form[form.index("outs") + 1 :]
    outs = outs[: outs.index(":")] if ":" in outs else outs

    def group(words, inside):
        operands, behind = [], ""
        for word in words:
            name = word.lstrip("+$#~").rstrip("?*")
            if word == "{}":
                continue
            slot = [x for n in OTHER_NAMES.get(name, [name]) for x in values(given.get(n))]
            if word.startswith("+") and slot:
                behind += f", {slot[0].name} : {slot[0].type}"
            elif not word.startswith("+"):
                operands += slot
        text = ", ".join(v.name for v in operands)
        if inside:
            text += (", " if "maskPattern" in attrs else " ") + inside
        return f"{text} : {', '.join(v.type for v in operands)}{behind}"

    written = ", ".join(f"{k} = {attribute(v)}" for k, v in attrs.items())
    written = f"{{{written}}}" if written else ""
    inside = written if "{}" in ins else ""
    return f"ins({group(ins, inside)}) outs({group(outs, '')}){'' if inside or not written else ' ' + written}"


def pattern(words, given, attrs, results, owner, depth):
    out, used, stack = [], set(), []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "(?":
            stack.append((len(out), False))
        elif word == ")?":
            at, there = stack.pop()
            if not there:
                del out[at:]
        elif word == "region":
            out.append("{\n" + owner.body.text(depth + 1) + "  " * depth + "}")
        elif word == "{}":
            left = [f"{k} = {attribute(v)}" for k, v in attrs.items() if k not in used and f"@{k}" not in words]
            out += [f"{{{', '.join(left)}}}"] if left else []
        elif word.startswith("T."):
            slot = values(given.get(word[2:]))
            out.append(", ".join(v.type for v in slot) if slot else results[0])
            if stack and not slot:
                stack[-1] = (stack[-1][0], True)
        elif word[0] in "$@" and len(word) > 1:
            name = word[1:].rstrip("*?")
            slot = given.get(name)
            if slot is not None and word[0] == "$":
                out.append(", ".join(v.name for v in values(slot)))
            elif name in attrs:
                out.append(attribute(attrs[name]))
                used.add(name)
            there = name in attrs or slot not in (None, [])
            if stack and there:
                stack[-1] = (stack[-1][0], True)
        else:
            out.append(word)
    return " ".join(out)


def operation(name, arguments, results, form):
    """A class as the generator of bindings makes it: types of results, arguments, then what may be left out by name."""
    inferred = {"Index": "index", "I64": "i64", "I32": "i32", "I1": "i1"}

    class Made(Op):
        def __init__(self, *args, **named):
            args, given, types_ = list(args), {}, []
            for ty, result in results:
                if ty in inferred:
                    types_.append(Text(inferred[ty]))
                elif result == "result" and name == "addptr":
                    types_.append(value(args[0]).type)
                elif name == "subset":
                    types_.append(subset(value(args[0]).type, named["sizes"]))
                elif result in named:
                    types_.append(named.pop(result))
                else:
                    types_.append(args.pop(0))
                if ty.startswith("Optional"):
                    types_.pop()
            optional = lambda ty: ty.startswith(("Optional", "DefaultValued"))
            for ty, argument in arguments:
                if argument in named:
                    given[argument] = named.pop(argument)
                elif not optional(ty):
                    given[argument] = args.pop(0)
            for key in ("loc", "ip"):
                named.pop(key, None)
            if args or named:
                raise TypeError(f"{name}: {args} {named} are left")
            given = {k: v for k, v in given.items() if v is not None}
            attrs = {}
            for ty, argument in arguments:
                if "Attr" in ty and argument in given:
                    v = given.pop(argument)
                    integer = re.search(r"\bI(\d+)Attr", ty)
                    attrs[argument] = Text(f"{v} : i{integer.group(1)}") if integer and isinstance(v, int) and not isinstance(v, bool) else v
            self.body = Block()
            self.blocks = self.body
            super().__init__(lambda depth: self.write(depth, given, attrs, types_), types_)

        def write(self, depth, given, attrs, types_):
            if form[0] == "ins":
                return f"pto.{name} {destination_passing(form, given, attrs)}"
            return f"pto.{name} {pattern(form[1:], given, attrs, types_, self, depth)}".rstrip()

    return Made


def subset(ty, sizes):
    for field, n in zip(("rows", "cols", "v_row", "v_col"), list(sizes) * 2):
        ty = re.sub(rf"\b{field}=\d+", f"{field}={n}", ty)
    return Text(ty)


class Constant(Op):
    def __init__(self, ty, v, **_):
        text = attribute(v) if isinstance(v, bool) else str(v).split(" : ")[0]
        if re.match(r"f|bf", ty) and not re.search(r"[.en]", text):
            text += ".0"
        text = text if isinstance(v, bool) else f"{text} : {ty}"
        super().__init__(lambda _: f"arith.constant {text}", [ty])


def arith_op(name):
    class Made(Op):
        def __init__(self, *args, **_):
            if name in ("cmpi", "cmpf"):
                word, a, b = args
                word = CmpIPredicate.names[word] if isinstance(word, int) else word
                super().__init__(lambda _: f"arith.{name} {word}, {value(a).name}, {value(b).name} : {value(a).type}", [Text("i1")])
            elif isinstance(args[0], str):
                ty, a = args
                super().__init__(lambda _: f"arith.{name} {value(a).name} : {value(a).type} to {ty}", [ty])
            else:
                operands = [value(a) for a in args]
                ty = operands[-1].type
                super().__init__(lambda _: f"arith.{name} {', '.join(v.name for v in operands)} : {ty}", [ty])

    return Made


class CmpIPredicate:
    names = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
    eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge = names


class FuncOp(Op):
    def __init__(self, name, ty, visibility=None, **_):
        self.ins, self.attributes, self.body_ = ty[0], {}, None
        self.attributes_of = self.attributes
        super().__init__(lambda depth: self.write(name, depth))

    def add_entry_block(self):
        self.body_ = Block(self.ins)
        return self.body_

    @property
    def operation(self):
        return self

    @property
    def entry_block(self):
        return self.body_

    def write(self, name, depth):
        args = ", ".join(f"{v.name}: {v.type}" for v in self.body_.arguments)
        attrs = ", ".join(k if v is None or v == "unit" else f"{k} = {v}" for k, v in self.attributes.items())
        attrs = f"attributes {{{attrs}}} " if attrs else ""
        return f"func.func @{name}({args}) {attrs}{{\n{self.body_.text(depth + 1)}{'  ' * depth}}}"

    @staticmethod
    def from_py_func(*ins, name=None, **_):
        def decorate(f):
            op = FuncOp(name or f.__name__, (list(ins), []))
            block = op.add_entry_block()
            with InsertionPoint(block):
                f(*block.arguments)
                if not block.ops or not isinstance(block.ops[-1], ReturnOp):
                    ReturnOp([])
            return op

        return decorate


class ReturnOp(Op):
    def __init__(self, *_args, **_named):
        super().__init__(lambda _: "return")


class YieldOp(Op):
    def __init__(self, operands=(), **_):
        given = values(operands)
        types_ = ", ".join(v.type for v in given)
        super().__init__(lambda _: "scf.yield" + (f" {', '.join(v.name for v in given)} : {types_}" if given else ""))


class ForOp(Op):
    def __init__(self, lower, upper, step, inits=None, **_):
        bounds, self.inits = [value(v) for v in (lower, upper, step)], values(inits)
        self.induction_variable = Value(bounds[0].type)
        self.body = Block()
        self.inner_iter_args = [Value(v.type) for v in self.inits]
        self.body.arguments = [self.induction_variable, *self.inner_iter_args]

        def line(depth):
            lo, hi, by = (v.name for v in bounds)
            carried = ", ".join(f"{a.name} = {b.name}" for a, b in zip(self.inner_iter_args, self.inits))
            carried = f" iter_args({carried}) -> ({', '.join(v.type for v in self.inits)})" if carried else ""
            body = self.body.text(depth + 1)
            return f"scf.for {self.induction_variable.name} = {lo} to {hi} step {by}{carried} {{\n{body}{'  ' * depth}}}"

        super().__init__(line, [v.type for v in self.inits])


class IfOp(Op):
    def __init__(self, condition, results_=None, *, hasElse=False, results=None, has_else=False, **_):
        types_ = list(results_ or results or [])
        self.then_block, self.else_block = Block(), Block()
        self.thenRegion, self.elseRegion, self.then_region, self.else_region = *(self.then_block, self.else_block) * 2,

        def line(depth):
            ends = f" -> ({', '.join(types_)})" if types_ else ""
            text = f"scf.if {value(condition).name}{ends} {{\n{self.then_block.text(depth + 1)}{'  ' * depth}}}"
            if hasElse or has_else:
                text += f" else {{\n{self.else_block.text(depth + 1)}{'  ' * depth}}}"
            return text

        super().__init__(line, types_)


class Dialect(types.ModuleType):
    """A module of which each class `AddIOp` is the operation `addi`."""

    def __getattr__(self, name):
        if name.startswith("_") or not name.endswith("Op"):
            raise AttributeError(name)
        words = re.sub(r"([a-z])([A-Z][a-z])", r"\1_\2", name[:-2]).lower()
        return arith_op(words.replace("cmp_i", "cmpi").replace("add_i", "addi"))


def install(checkout):
    ir, dialects, mlir = types.ModuleType("mlir.ir"), types.ModuleType("mlir.dialects"), types.ModuleType("mlir")
    func, scf, arith, builtin = (Dialect(f"mlir.dialects.{n}") for n in ("func", "scf", "arith", "builtin"))
    for made in (Context, Location, Module, InsertionPoint, IntegerType, IntegerAttr, FloatAttr, BoolAttr, StringAttr):
        setattr(ir, made.__name__, made)
    for name, text in {"F32Type": "f32", "F16Type": "f16", "BF16Type": "bf16", "IndexType": "index"}.items():
        setattr(ir, name, named(text))
    builtin.F32Type, builtin.IndexType, builtin.F16Type = ir.F32Type, ir.IndexType, ir.F16Type
    ir.UnitAttr = named("unit")
    ir.Attribute = type("Attribute", (), {"parse": staticmethod(lambda text, *_: Text(text))})
    ir.Type = type("Type", (), {"parse": staticmethod(lambda text, *_: Text(text))})

    func.FuncOp, func.ReturnOp = FuncOp, ReturnOp
    func.FunctionType = ir.FunctionType = type("FunctionType", (), {"get": staticmethod(lambda i, o, *_: (list(i), list(o)))})
    scf.ForOp, scf.IfOp, scf.YieldOp = ForOp, IfOp, YieldOp
    arith.ConstantOp, arith.CmpIPredicate = Constant, CmpIPredicate
    builtin.ModuleOp = Module

    pto = types.ModuleType("mlir.dialects.pto")
    pto.register_dialect = lambda *_args, **_named: None
    for made in (PtrType, TensorViewType, PartitionTensorViewType, TileBufType, TileBufConfigAttr, TileConfig):
        setattr(pto, made.__name__, made)
    records = checkout / "include/PTO/IR"
    attrs = (records / "PTOAttrs.td").read_text()
    for name, cls, form, cases in enumerations(attrs):
        # In the heads of flags and events stand the words alone.
        form = "<{}>" if name in ("PIPE", "EVENT", "SyncOpType") else form
        setattr(pto, name, Enumeration(name, (), {"cases": cases, "form": form}))
        setattr(pto, cls, type(cls, (), {"get": staticmethod(word_of(form))}))
        if name in ("EVENT", "SyncOpType"):
            for symbol, _, _ in cases:
                setattr(pto, symbol, getattr(getattr(pto, name), symbol))
    forms = rows()
    for cls, name, arguments, results in definitions((records / "PTOOps.td").read_text()):
        if f"pto.{name}" in forms:
            made = operation(name, arguments, results, forms[f"pto.{name}"])
            setattr(pto, cls, made)
            if not hasattr(pto, name):
                setattr(pto, name, lambda *a, made=made, **n: (lambda op: op.result if op.results else op)(made(*a, **n)))
    # Flags whose number the launch knows are operations of their own.
    for name in ("set_flag", "wait_flag"):
        known, computed = getattr(pto, name), getattr(pto, name + "_dyn")
        setattr(pto, name, lambda a, b, n, known=known, computed=computed: (known if isinstance(n, str) else computed)(a, b, n))
    mlir.ir, mlir.dialects = ir, dialects
    for module in (func, scf, arith, builtin, pto):
        setattr(dialects, module.__name__.rsplit(".", 1)[1], module)
        sys.modules[module.__name__] = module
    sys.modules["mlir.dialects.arith"].CmpIPredicate = CmpIPredicate
    sys.modules |= {"mlir": mlir, "mlir.ir": ir, "mlir.dialects": dialects}


def main():
    checkout, sample = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    install(checkout)
    sys.argv = [str(sample)]
    sys.dont_write_bytecode = True
    runpy.run_path(str(sample), run_name="__main__")


if __name__ == "__main__":
    main()
