//! Tiles and threads' parts of a layout.
//!
//! Both cut by `zipped_divide` into ((tile), (rest)); a tile is all of the first at a coordinate of the second, a
//! thread's part a coordinate of the first with all of the second. What lies outside because a tile does not divide its
//! extent must be predicated: see [`crate::Predicated`].

use super::args::Args;
use super::{Op, is_injective, slice, zipped_divide};
use crate::error::plural;
use crate::window::Whole;
use crate::{
    Coord, CoordLeaf, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, LayoutWindow, Path, Predicated, Result, Tiler,
    Truth, Tuple, Value,
};

/// A list of predicates has no more entries.
const MOST_PREDICATES: i64 = 1 << 12;

/// Which modes of a larger space a tensor has: `(1,X,1)` has the first and the third of three.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Projection(Vec<bool>);

impl Projection {
    /// One entry for each mode of the space: whether the tensor has it.
    pub fn new(kept: Vec<bool>) -> Projection {
        Projection(kept)
    }

    /// `(1,X,1)`: every entry but `X` keeps its mode.
    fn of(op: &'static str, values: &[Value], k: usize) -> Result<Projection> {
        match values.get(k) {
            Some(Value::Tuple(modes))
                if modes.iter().all(|m| matches!(m, Value::Int(_) | Value::Keep | Value::Skip)) =>
            {
                Ok(Projection(modes.iter().map(|m| *m != Value::Skip).collect()))
            }
            other => {
                let got = other.map_or("nothing", Value::describe);
                let message = format!("argument {} must be a projection, not {got}", k + 1);
                Err(LayoutError::new(ErrorKind::Kind, op, message)
                    .in_arg(k)
                    .with_help("1 keeps a mode and X leaves it out: (1,X,1) has M and K of (M,N,K)"))
            }
        }
    }

    /// The numbers of the modes that are kept.
    fn kept(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, kept)| **kept).map(|(k, _)| k)
    }

    /// The entries that are kept of argument `arg`, which must have as many as the projection.
    fn pick<T: Clone>(&self, op: &'static str, arg: usize, modes: &[T]) -> Result<Vec<T>> {
        if modes.len() != self.0.len() {
            let message = format!(
                "argument {} has {}, the projection {}",
                arg + 1,
                plural(modes.len(), "mode", "modes"),
                self.0.len()
            );
            return Err(LayoutError::new(ErrorKind::Profile, op, message)
                .in_arg(arg)
                .with_help("tiler, coordinate and projection have one entry for each mode of the whole problem"));
        }
        Ok(self.kept().map(|k| modes[k].clone()).collect())
    }

    /// A refusal in a mode of the tensor is one in a mode of the larger space, if it blames an argument from there.
    fn lift(&self, mut e: LayoutError) -> LayoutError {
        if e.arg.is_some_and(|arg| arg > 0)
            && let Some(first) = e.path.0.first_mut()
        {
            *first = self.kept().nth(*first).unwrap_or(*first);
        }
        e
    }
}

/// The tile at `coord`: a coordinate of the tiles, padded with `_`. Modes at `_` stay, behind those of the tile.
pub fn inner_partition(cx: &Cx, a: &Layout, tiler: &Tiler, coord: &Coord) -> Result<LayoutWindow> {
    inner("inner_partition", cx, a, tiler, coord)
}

fn inner(op: &'static str, cx: &Cx, a: &Layout, tiler: &Tiler, coord: &Coord) -> Result<LayoutWindow> {
    let (tile, rest) = cut(op, cx, a, tiler)?;
    let coord = padded(op, coord, &rest)?;
    let all = Layout::of_modes(vec![tile.clone(), rest.clone()]);
    part(cx, &all, Tuple::Node(vec![everything(&tile), coord])).map_err(|e| {
        let range = e.kind == ErrorKind::OutOfRange;
        let e = blame(op, e, 1);
        if range { counted(e, "tiles", rest.shape()) } else { e }
    })
}

/// The element at `coord` of each tile: a coordinate in the tile, padded with `_`; the modes of the rest stay.
pub fn outer_partition(cx: &Cx, a: &Layout, tiler: &Tiler, coord: &Coord) -> Result<LayoutWindow> {
    outer("outer_partition", cx, a, tiler, coord)
}

fn outer(op: &'static str, cx: &Cx, a: &Layout, tiler: &Tiler, coord: &Coord) -> Result<LayoutWindow> {
    let (tile, rest) = cut(op, cx, a, tiler)?;
    let coord = padded(op, coord, &tile)?;
    let all = Layout::of_modes(vec![tile, rest.clone()]);
    part(cx, &all, Tuple::Node(vec![coord, everything(&rest)])).map_err(|e| blame(op, e, 0))
}

/// The tile of a tensor that a block works on: [`inner_partition`].
pub fn local_tile(cx: &Cx, a: &Layout, tiler: &Tiler, coord: &Coord) -> Result<LayoutWindow> {
    inner("local_tile", cx, a, tiler, coord)
}

/// The same with a tiler and a coordinate of a larger space, of which the tensor has the modes that `proj` keeps.
pub fn local_tile_proj(cx: &Cx, a: &Layout, tiler: &Tiler, coord: &Coord, proj: &Projection) -> Result<LayoutWindow> {
    const OP: &str = "local_tile_proj";
    let tiles = match tiler {
        Tiler::ByMode(tiles) => proj.pick(OP, 1, tiles)?,
        one => proj.pick(OP, 1, std::slice::from_ref(one))?,
    };
    let coord = proj.pick(OP, 2, coord.modes())?;
    inner(OP, cx, a, &Tiler::ByMode(tiles), &Tuple::Node(coord)).map_err(|e| proj.lift(e))
}

/// What thread `index` works on, where threads lie side by side as `threads` says and repeat to cover `a`: every
/// so-many-th element of each mode. The shape of `threads` tiles, its strides number the threads.
pub fn local_partition(cx: &Cx, a: &Layout, threads: &Layout, index: &Int) -> Result<LayoutWindow> {
    let at = flat_coord("local_partition", cx, threads, index)?;
    by_thread("local_partition", cx, a, &sizes(threads)?, &at)
}

/// The same with threads of a larger space, of which the tensor has the modes that `proj` keeps: threads that differ in
/// the others only have the same part.
pub fn local_partition_proj(
    cx: &Cx,
    a: &Layout,
    threads: &Layout,
    index: &Int,
    proj: &Projection,
) -> Result<LayoutWindow> {
    const OP: &str = "local_partition_proj";
    let at = flat_coord(OP, cx, threads, index)?;
    let extents = sizes(threads)?;
    let (at, extents) = (proj.pick(OP, 1, at.modes())?, proj.pick(OP, 1, extents.modes())?);
    by_thread(OP, cx, a, &Tuple::Node(extents), &Tuple::Node(at)).map_err(|e| proj.lift(e))
}

fn by_thread(op: &'static str, cx: &Cx, a: &Layout, extents: &IntTuple, at: &IntTuple) -> Result<LayoutWindow> {
    outer(op, cx, a, &Tiler::of_shape(extents), &at.map(&mut |n| CoordLeaf::At(n.clone())))
}

/// The size of each mode.
fn sizes(a: &Layout) -> Result<IntTuple> {
    if a.is_leaf() {
        return Ok(a.shape().clone());
    }
    Ok(Tuple::Node(a.modes().iter().map(|m| m.size().map(Tuple::Leaf)).collect::<Result<_>>()?))
}

/// Which coordinate of `threads` (argument 1) has the number `index` (argument 2): `(index / stride) % extent` for each
/// leaf, then one index for each mode. As in CuTe, a number that no coordinate has stands for one that some has.
pub(crate) fn flat_coord(op: &'static str, cx: &Cx, threads: &Layout, index: &Int) -> Result<IntTuple> {
    if !is_injective(cx, threads).map_err(|e| e.of(op).in_arg(1))? {
        let message =
            format!("two places in the thread layout {threads} have one thread: no thread would have the second");
        return Err(LayoutError::new(ErrorKind::NotInjective, op, message)
            .in_arg(1)
            .with_help("give each mode of more than one thread a stride of its own"));
    }
    let count = threads.cosize(cx).map_err(|e| e.of(op).in_arg(1))?;
    let outside = cx.le(index, &Int::Const(-1)) == Truth::Yes || cx.le(&count, index) == Truth::Yes;
    if outside {
        let message = format!("thread {index} is not in {threads}, whose threads are 0 to {}", count.sub(&Int::ONE)?);
        return Err(LayoutError::new(ErrorKind::OutOfRange, op, message).in_arg(2));
    }
    mode_coords(cx, threads, index).map_err(|e| e.of(op))
}

/// The index in each mode of a layout of plain strides.
pub(crate) fn mode_coords(cx: &Cx, a: &Layout, index: &Int) -> Result<IntTuple> {
    let one = |m: &Layout| -> Result<Int> {
        let (mut at, mut span) = (Int::ZERO, Int::ONE);
        for (s, d) in m.leaves() {
            if !s.is(1) {
                let steps = cx.floor_div(index, &d.scale)?;
                let digit = steps.sub(&cx.floor_div(&steps, s)?.mul(s)?)?;
                at = at.add(&digit.mul(&span)?)?;
            }
            span = span.mul(s)?;
        }
        Ok(at)
    };
    match a.is_leaf() {
        true => Ok(Tuple::Leaf(one(a)?)),
        false => Ok(Tuple::Node(a.modes().iter().map(|m| one(m).map(Tuple::Leaf)).collect::<Result<_>>()?)),
    }
}

/// (tile, rest)
fn cut(op: &'static str, cx: &Cx, a: &Layout, tiler: &Tiler) -> Result<(Layout, Layout)> {
    let divided = zipped_divide(cx, a, tiler).map_err(|e| e.of(op))?;
    match (divided.mode(0), divided.mode(1)) {
        (Some(tile), Some(rest)) => Ok((tile, rest)),
        _ => Err(LayoutError::new(ErrorKind::Profile, op, format!("{divided} is no pair of a tile and the rest"))),
    }
}

fn part(cx: &Cx, all: &Layout, coord: Coord) -> Result<LayoutWindow> {
    let (layout, start) = slice(cx, all, &coord)?;
    Ok(LayoutWindow { start, layout })
}

/// `_` for each mode, so that the modes come to the level of those that follow.
fn everything(a: &Layout) -> Coord {
    match a.is_leaf() {
        true => Tuple::Leaf(CoordLeaf::Keep),
        false => Tuple::Node(vec![Tuple::Leaf(CoordLeaf::Keep); a.rank()]),
    }
}

/// A short coordinate goes on with `_`; a single index counts the modes as one.
fn padded(op: &'static str, coord: &Coord, modes: &Layout) -> Result<Coord> {
    match coord {
        Tuple::Node(entries) if entries.len() > modes.rank() => {
            let message = format!(
                "coordinate {coord} has {} for {}",
                plural(entries.len(), "entry", "entries"),
                plural(modes.rank(), "mode", "modes")
            );
            Err(LayoutError::new(ErrorKind::Profile, op, message)
                .in_arg(2)
                .with_help("one entry for each mode that the tiler cuts; what is missing is `_`"))
        }
        Tuple::Node(entries) if modes.is_leaf() => Ok(entries.first().cloned().unwrap_or(Tuple::Leaf(CoordLeaf::Keep))),
        Tuple::Node(entries) => {
            let mut entries = entries.clone();
            entries.resize(modes.rank(), Tuple::Leaf(CoordLeaf::Keep));
            Ok(Tuple::Node(entries))
        }
        leaf => Ok(leaf.clone()),
    }
}

/// The slice's refusal, as one of the operation's coordinate; `side` is the mode of ((tile),(rest)) that was indexed.
fn blame(op: &'static str, mut e: LayoutError, side: usize) -> LayoutError {
    match e.path.0.first() {
        Some(&first) if first == side => drop(e.path.0.remove(0)),
        _ => e.path = Path::default(),
    }
    e.of(op).in_arg(2)
}

fn counted(mut e: LayoutError, what: &str, shape: &IntTuple) -> LayoutError {
    e.message = format!("{}: there are {shape} {what}", e.message);
    e
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "inner_partition",
        usage: "inner_partition(A, tiler, coordinate)",
        doc: "The tile at a coordinate of the tiles; `_` keeps a mode.",
        arity: (3, 3),
        eval: |cx, v| tile_op("inner_partition", cx, v, inner),
    },
    Op {
        name: "outer_partition",
        usage: "outer_partition(A, tiler, coordinate)",
        doc: "The elements at a coordinate of the tile, one of each tile.",
        arity: (3, 3),
        eval: |cx, v| tile_op("outer_partition", cx, v, outer),
    },
    Op {
        name: "local_tile",
        usage: "local_tile(A, tiler, coordinate)",
        doc: "The tile at a coordinate of the tiles; `_` keeps a mode, behind the tile's.",
        arity: (3, 3),
        eval: |cx, v| tile_op("local_tile", cx, v, inner),
    },
    Op {
        name: "local_tile_proj",
        usage: "local_tile_proj(A, tiler, coordinate, (1,X,1))",
        doc: "The same with a tiler and a coordinate of a larger space, whose modes at X the tensor has not.",
        arity: (4, 4),
        eval: |cx, v| {
            const OP: &str = "local_tile_proj";
            let (args, whole) = (Args::new(OP, v), Whole::of(OP, v, 0)?);
            let proj = Projection::of(OP, v, 3)?;
            whole.part(OP, local_tile_proj(cx, whole.layout(), &args.tiler(1)?, &args.coord(2)?, &proj)?)
        },
    },
    Op {
        name: "local_partition",
        usage: "local_partition(A, threads, index)",
        doc: "What a thread works on, where threads lie as `threads` says and repeat to cover A.",
        arity: (3, 3),
        eval: |cx, v| {
            const OP: &str = "local_partition";
            let (args, whole) = (Args::new(OP, v), Whole::of(OP, v, 0)?);
            whole.part(OP, local_partition(cx, whole.layout(), args.layout(1)?, args.int(2)?)?)
        },
    },
    Op {
        name: "local_partition_proj",
        usage: "local_partition_proj(A, threads, index, (1,X,1))",
        doc: "The same with threads of a larger space, whose modes at X the tensor has not.",
        arity: (4, 4),
        eval: |cx, v| {
            const OP: &str = "local_partition_proj";
            let (args, whole) = (Args::new(OP, v), Whole::of(OP, v, 0)?);
            let proj = Projection::of(OP, v, 3)?;
            whole.part(OP, local_partition_proj(cx, whole.layout(), args.layout(1)?, args.int(2)?, &proj)?)
        },
    },
    Op {
        name: "predicates",
        usage: "predicates(shape, tiler, coordinate)",
        doc: "For each element of a tile whether it is within the shape: tiles that do not divide it run over the \
            edge.",
        arity: (3, 3),
        eval: |cx, v| {
            const OP: &str = "predicates";
            let args = Args::new(OP, v);
            // Strides do not matter for what is there.
            let whole = Predicated::new(super::make_identity_layout(&args.shape(0)?));
            let tile = whole.local_tile(cx, &args.tiler(1)?, &args.coord(2)?).map_err(|e| e.of(OP))?;
            let all = tile.predicates(cx, MOST_PREDICATES)?;
            Ok(Value::Tuple(all.into_iter().map(Value::Bool).collect()))
        },
    },
    Op {
        name: "start",
        usage: "start(A)",
        doc: "Where a tile, a slice or a thread's part begins.",
        arity: (1, 1),
        eval: |_, v| {
            Ok(match Whole::of("start", v, 0)? {
                Whole::Window(p) => p.start.value(),
                Whole::Swizzled(c) => Value::Int(c.offset.clone()),
            })
        },
    },
];

type TileFn = fn(&'static str, &Cx, &Layout, &Tiler, &Coord) -> Result<LayoutWindow>;

fn tile_op(op: &'static str, cx: &Cx, v: &[Value], f: TileFn) -> Result<Value> {
    let (args, whole) = (Args::new(op, v), Whole::of(op, v, 0)?);
    whole.part(op, f(op, cx, whole.layout(), &args.tiler(1)?, &args.coord(2)?)?)
}

#[cfg(test)]
mod tests;
