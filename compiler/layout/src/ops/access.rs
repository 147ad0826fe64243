//! Sizes, shapes, and the modes of a layout, a shape or a tiler.

use super::Op;
use super::args::{Args, View};
use super::product::zip;
use super::profile::product;
use crate::error::plural;
use crate::{Composed, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, Path, Result, Stride, Tiler, Truth, Value};

impl Layout {
    /// The mode at a path from the outermost inwards.
    pub fn at(&self, path: &[usize]) -> Option<Layout> {
        match path {
            [] => Some(self.clone()),
            _ if self.is_leaf() && path != [0] => None,
            [k, inner @ ..] => self.mode(*k)?.at(inner),
        }
    }
}

/// All leaves as modes of one level; a leaf stays one.
pub fn flatten(a: &Layout) -> Layout {
    match a.is_leaf() {
        true => a.clone(),
        false => Layout::of_modes(a.leaves().into_iter().map(|(s, d)| Layout::leaf(s.clone(), d.clone())).collect()),
    }
}

/// Modes `begin..end` become one mode.
pub fn group(a: &Layout, begin: usize, end: usize) -> Result<Layout> {
    let mut modes = a.modes();
    range("group", begin, end, modes.len(), a)?;
    let tail = modes.split_off(end);
    let inner = modes.split_off(begin);
    modes.push(Layout::of_modes(inner));
    modes.extend(tail);
    Ok(Layout::of_modes(modes))
}

/// Modes `begin..end`; one alone stays a tuple of one.
pub fn take(a: &Layout, begin: usize, end: usize) -> Result<Layout> {
    let modes = a.modes();
    range("take", begin, end, modes.len(), a)?;
    Ok(Layout::of_modes(modes[begin..end].to_vec()))
}

/// The modes of these numbers, in this order.
pub fn select(a: &Layout, modes: &[usize]) -> Result<Layout> {
    let picked = modes.iter().map(|&k| a.mode(k).ok_or_else(|| missing("select", k, a.rank(), a)));
    Ok(Layout::of_modes(picked.collect::<Result<_>>()?))
}

/// The modes of several layouts, at one level.
pub fn concat(layouts: &[Layout]) -> Layout {
    Layout::of_modes(layouts.iter().flat_map(Layout::modes).collect())
}

fn range(op: &'static str, begin: usize, end: usize, rank: usize, a: &impl std::fmt::Display) -> Result<()> {
    if begin < end && end <= rank {
        return Ok(());
    }
    let message = format!("there are no modes {begin} to {end} (exclusive) in {a}, which has {rank}");
    Err(LayoutError::new(ErrorKind::OutOfRange, op, message)
        .in_arg(1)
        .with_help("give a first mode and one past the last"))
}

fn missing(op: &'static str, k: usize, rank: usize, a: &impl std::fmt::Display) -> LayoutError {
    let message = format!("there is no mode {k} in {a}, which has {rank}");
    let e = LayoutError::new(ErrorKind::OutOfRange, op, message);
    if rank > 0 { e.with_help(format!("modes are 0 to {}", rank - 1)) } else { e }
}

/// The offsets that a swizzled layout may use, all below this: an upper bound, exact where the layout fills the aligned
/// blocks that the swizzle permutes.
pub fn cosize_composed(cx: &Cx, c: &Composed) -> Result<Int> {
    const OP: &str = "cosize";
    let inner = c.layout.cosize(cx)?;
    if inner.is(0) {
        return Ok(inner);
    }
    let end = c.offset.add(&inner)?;
    let s = c.swizzle;
    // Below the lowest bit that is read nothing changes.
    let quiet = Int::Const(1 << s.source_mask().trailing_zeros().min(62));
    if s.is_identity() || cx.le(&end, &quiet) == Truth::Yes {
        return Ok(end);
    }
    let bits = s.base() + s.bits() + if s.shift() < 0 { s.shift().unsigned_abs() } else { 0 };
    let block = Int::Const(1 << bits);
    cx.ceil_div(&end, &block)?.mul(&block).map_err(|e| e.of(OP))
}

/// A value seen as a tree of modes: layouts, shapes, coordinates and tilers are got, selected and grouped alike.
fn modes(args: Args<'_>, k: usize) -> Result<Vec<Value>> {
    match args.value(k)? {
        Value::Layout(l) => Ok(l.modes().into_iter().map(Value::Layout).collect()),
        Value::Composed(c) => {
            // Where the modes lie does not depend on the swizzle; but it does not distribute over them.
            Ok(c.layout.modes().into_iter().map(Value::Layout).collect())
        }
        Value::Tuple(modes) => Ok(modes.clone()),
        Value::Tiler(Tiler::ByMode(tiles)) => Ok(tiles.iter().map(of_tiler).collect()),
        v @ (Value::Int(_) | Value::Keep | Value::Skip) => Ok(vec![v.clone()]),
        Value::Tiler(t) => Ok(vec![of_tiler(t)]),
        _ => Err(args.wrong(k, "a layout, a tuple or a tiler")),
    }
}

fn of_tiler(t: &Tiler) -> Value {
    match t {
        Tiler::Keep => Value::Keep,
        Tiler::Extent(n) => Value::Int(n.clone()),
        Tiler::Layout(l) => Value::Layout(l.clone()),
        t => Value::Tiler(t.clone()),
    }
}

/// Puts modes together again as what they were: a value like the argument `like`.
fn assemble(args: Args<'_>, like: usize, parts: Vec<Value>) -> Result<Value> {
    match args.value(like)? {
        Value::Layout(_) => Ok(Value::Layout(Layout::of_modes(layouts(args, parts)?))),
        Value::Composed(c) => {
            Ok(Value::Composed(Composed { layout: Layout::of_modes(layouts(args, parts)?), ..c.clone() }))
        }
        Value::Tiler(_) => {
            let tiles = (0..parts.len()).map(|k| Args::new("tiler", &parts).tiler(k)).collect::<Result<_>>()?;
            Ok(Value::Tiler(Tiler::ByMode(tiles)))
        }
        _ => Ok(Value::Tuple(parts)),
    }
}

fn layouts(args: Args<'_>, parts: Vec<Value>) -> Result<Vec<Layout>> {
    let layout = |v: Value| match v {
        Value::Layout(l) => Ok(l),
        Value::Composed(_) => Err(args.wrong(1, "a layout without a swizzle")),
        _ => Err(args.wrong(1, "a layout")),
    };
    parts.into_iter().map(layout).collect()
}

/// The part of argument 0 that the mode numbers from argument 1 on lead to.
fn part(op: &'static str, v: &[Value]) -> Result<Value> {
    let args = Args::new(op, v);
    let mut at = args.value(0)?.clone();
    let mut path = Path::default();
    for k in 1..args.len() {
        let index = args.index(k)?;
        let here = [at.clone()];
        let parts = modes(Args::new(op, &here), 0)?;
        let rank = parts.len();
        let found = parts.into_iter().nth(index);
        let next = found.ok_or_else(|| missing(op, index, rank, &at).in_arg(k).at(path.clone()))?;
        at = match (&at, next) {
            // Behind a swizzle a mode is still behind it.
            (Value::Composed(c), Value::Layout(layout)) => Value::Composed(Composed { layout, ..c.clone() }),
            (_, next) => next,
        };
        path = path.then(index);
    }
    Ok(at)
}

fn size_of(op: &'static str, value: &Value) -> Result<Int> {
    let size = match value {
        Value::Layout(l) => l.size(),
        Value::Composed(c) => c.layout.size(),
        Value::Tiler(t) => t.size()?.ok_or_else(|| {
            LayoutError::new(ErrorKind::Kind, op, format!("{t} keeps a mode, so its size depends on what it cuts"))
        }),
        v => match v.as_ints() {
            Some(shape) => product(&shape),
            None => return Err(Args::new(op, std::slice::from_ref(v)).wrong(0, "a layout, a shape or a tiler")),
        },
    };
    size.map_err(|e| e.of(op).in_arg(0))
}

fn nesting(op: &'static str, value: &Value) -> Result<(usize, usize)> {
    fn of(value: &Value) -> (usize, usize) {
        match value {
            Value::Tuple(modes) => (modes.len(), 1 + modes.iter().map(|m| of(m).1).max().unwrap_or(0)),
            Value::Layout(l) => (l.rank(), l.depth()),
            Value::Composed(c) => (c.layout.rank(), c.layout.depth()),
            Value::Tiler(Tiler::ByMode(t)) => (t.len(), 1 + t.iter().map(|t| of(&of_tiler(t)).1).max().unwrap_or(0)),
            Value::Tiler(Tiler::Layout(l)) => (l.rank(), l.depth()),
            _ => (1, 0),
        }
    }
    match value {
        Value::Bool(_) | Value::Swizzle(_) | Value::Atom(_) | Value::Family(_) | Value::Mma(_) | Value::DType(_) => {
            Err(Args::new(op, std::slice::from_ref(value)).wrong(0, "a layout, a tuple or a tiler"))
        }
        v => Ok(of(v)),
    }
}

fn count(n: usize) -> Value {
    Value::Int(Int::Const(i64::try_from(n).unwrap_or(i64::MAX)))
}

fn shape_value(op: &'static str, v: &[Value]) -> Result<Value> {
    let at = part(op, v)?;
    let one = [at];
    Ok(Value::ints(&Args::new(op, &one).shape(0)?))
}

fn stride_value(v: &[Value]) -> Result<Value> {
    const OP: &str = "stride";
    let one = [part(OP, v)?];
    let args = Args::new(OP, &one);
    let View::Plain(a) = args.view(0)? else { return Err(args.wrong(0, "a layout without a swizzle")) };
    let plain = |d: &Stride| {
        d.as_int().cloned().ok_or_else(|| {
            let message = format!("the strides of {a} are coordinates, not numbers");
            LayoutError::new(ErrorKind::Kind, OP, message).in_arg(0)
        })
    };
    let stride: IntTuple = a.stride().try_map(&mut { plain })?;
    Ok(Value::ints(&stride))
}

fn flat(value: &Value) -> Value {
    fn leaves(value: &Value, out: &mut Vec<Value>) {
        match value {
            Value::Tuple(modes) => modes.iter().for_each(|m| leaves(m, out)),
            v => out.push(v.clone()),
        }
    }
    match value {
        Value::Tuple(_) => {
            let mut out = Vec::new();
            leaves(value, &mut out);
            Value::Tuple(out)
        }
        v => v.clone(),
    }
}

/// Pairs of the modes of two values, or of the two modes of one.
fn zipped(v: &[Value]) -> Result<Value> {
    const OP: &str = "zip";
    let args = Args::new(OP, v);
    let halves = if args.len() == 2 { v.to_vec() } else { modes(args, 0)? };
    let pair = Args::new(OP, &halves);
    if pair.len() != 2 {
        let message = format!("{} has {}, zip pairs the modes of two", v[0], plural(pair.len(), "mode", "modes"));
        return Err(LayoutError::new(ErrorKind::Profile, OP, message).in_arg(0));
    }
    let (a, b) = (modes(pair, 0)?, modes(pair, 1)?);
    if a.len() != b.len() {
        let message = format!("{} has {}, {} has {}", halves[0], plural(a.len(), "mode", "modes"), halves[1], b.len());
        return Err(LayoutError::new(ErrorKind::Profile, OP, message).in_arg(args.len() - 1));
    }
    if let (Value::Layout(x), Value::Layout(y)) = (&halves[0], &halves[1]) {
        return Ok(Value::Layout(zip(x, y)));
    }
    Ok(Value::Tuple(a.into_iter().zip(b).map(|(x, y)| Value::Tuple(vec![x, y])).collect()))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "size",
        usage: "size(A)",
        doc: "Number of elements of a layout, a shape or a tiler; size(A, i, ..) of a mode.",
        arity: (1, usize::MAX),
        eval: |_, v| Ok(Value::Int(size_of("size", &part("size", v)?)?)),
    },
    Op {
        name: "rank",
        usage: "rank(A)",
        doc: "Number of modes.",
        arity: (1, usize::MAX),
        eval: |_, v| Ok(count(nesting("rank", &part("rank", v)?)?.0)),
    },
    Op {
        name: "depth",
        usage: "depth(A)",
        doc: "Levels of nesting: 0 for a single extent.",
        arity: (1, usize::MAX),
        eval: |_, v| Ok(count(nesting("depth", &part("depth", v)?)?.1)),
    },
    Op {
        name: "cosize",
        usage: "cosize(A)",
        doc: "Number of elements to allocate: the greatest offset and 1 (for a swizzled layout, an upper bound).",
        arity: (1, usize::MAX),
        eval: |cx, v| {
            let one = [part("cosize", v)?];
            Ok(Value::Int(match Args::new("cosize", &one).view(0)? {
                View::Plain(a) => a.cosize(cx)?,
                View::Swizzled(c) => cosize_composed(cx, c)?,
            }))
        },
    },
    Op {
        name: "shape",
        usage: "shape(A)",
        doc: "The extents of a layout or of one of its modes.",
        arity: (1, usize::MAX),
        eval: |_, v| shape_value("shape", v),
    },
    Op {
        name: "stride",
        usage: "stride(A)",
        doc: "The strides of a layout or of one of its modes.",
        arity: (1, usize::MAX),
        eval: |_, v| stride_value(v),
    },
    Op {
        name: "get",
        usage: "get(A, i, ..)",
        doc: "Mode i (and of it mode j, ..) of a layout, a tuple or a tiler.",
        arity: (2, usize::MAX),
        eval: |_, v| part("get", v),
    },
    Op {
        name: "layout",
        usage: "layout(A, i, ..)",
        doc: "Mode i (and of it mode j, ..) of a layout.",
        arity: (1, usize::MAX),
        eval: |_, v| {
            Args::new("layout", v).view(0)?;
            part("layout", v)
        },
    },
    Op {
        name: "select",
        usage: "select(A, i, j, ..)",
        doc: "The modes of these numbers, in this order.",
        arity: (2, usize::MAX),
        eval: |_, v| {
            let args = Args::new("select", v);
            let all = modes(args, 0)?;
            let pick = |k| {
                let i = args.index(k)?;
                all.get(i).cloned().ok_or_else(|| missing("select", i, all.len(), &v[0]).in_arg(k))
            };
            let picked = (1..args.len()).map(pick).collect::<Result<Vec<_>>>()?;
            assemble(args, 0, picked)
        },
    },
    Op {
        name: "take",
        usage: "take(A, begin, end)",
        doc: "The modes from one number to before another.",
        arity: (3, 3),
        eval: |_, v| {
            let args = Args::new("take", v);
            let all = modes(args, 0)?;
            let (begin, end) = (args.index(1)?, args.index(2)?);
            range("take", begin, end, all.len(), &v[0])?;
            assemble(args, 0, all[begin..end].to_vec())
        },
    },
    Op {
        name: "group",
        usage: "group(A, begin, end)",
        doc: "These modes become one.",
        arity: (3, 3),
        eval: |_, v| {
            let args = Args::new("group", v);
            let (begin, end) = (args.index(1)?, args.index(2)?);
            if let Value::Layout(_) | Value::Composed(_) = &v[0] {
                return args.view(0)?.map(|a| group(a, begin, end));
            }
            let mut all = modes(args, 0)?;
            range("group", begin, end, all.len(), &v[0])?;
            let tail = all.split_off(end);
            let inner = all.split_off(begin);
            all.push(assemble(args, 0, inner)?);
            all.extend(tail);
            assemble(args, 0, all)
        },
    },
    Op {
        name: "flatten",
        usage: "flatten(A)",
        doc: "All leaves at one level.",
        arity: (1, 1),
        eval: |_, v| match &v[0] {
            Value::Layout(_) | Value::Composed(_) => Args::new("flatten", v).view(0)?.map(|a| Ok(flatten(a))),
            Value::Tuple(_) | Value::Int(_) | Value::Keep | Value::Skip => Ok(flat(&v[0])),
            _ => Err(Args::new("flatten", v).wrong(0, "a layout or a tuple")),
        },
    },
    Op {
        name: "append",
        usage: "append(A, B)",
        doc: "A with B as a further mode at the end.",
        arity: (2, 2),
        eval: |_, v| {
            let args = Args::new("append", v);
            let mut all = modes(args, 0)?;
            all.push(v[1].clone());
            assemble(args, 0, all)
        },
    },
    Op {
        name: "prepend",
        usage: "prepend(A, B)",
        doc: "A with B as a further mode at the front.",
        arity: (2, 2),
        eval: |_, v| {
            let args = Args::new("prepend", v);
            let mut all = modes(args, 0)?;
            all.insert(0, v[1].clone());
            assemble(args, 0, all)
        },
    },
    Op {
        name: "replace",
        usage: "replace(A, i, B)",
        doc: "A with B as mode i.",
        arity: (3, 3),
        eval: |_, v| {
            let args = Args::new("replace", v);
            let mut all = modes(args, 0)?;
            let (i, rank) = (args.index(1)?, all.len());
            *all.get_mut(i).ok_or_else(|| missing("replace", i, rank, &v[0]).in_arg(1))? = v[2].clone();
            if let (Value::Layout(_) | Value::Composed(_), false) = (&v[0], matches!(v[2], Value::Layout(_))) {
                return Err(args.wrong(2, "a layout"));
            }
            assemble(args, 0, all)
        },
    },
    Op {
        name: "zip",
        usage: "zip(A, B)",
        doc: "Mode i is (A's i, B's i); zip(A) pairs the modes of A's two modes.",
        arity: (1, 2),
        eval: |_, v| zipped(v),
    },
    Op {
        name: "concat",
        usage: "concat(A, B, ..)",
        doc: "The modes of all, at one level.",
        arity: (1, usize::MAX),
        eval: |_, v| {
            let args = Args::new("concat", v);
            let mut all = Vec::new();
            for k in 0..args.len() {
                all.extend(modes(args, k)?);
            }
            assemble(args, 0, all)
        },
    },
];
