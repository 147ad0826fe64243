//! Copies by threads that each move several elements, as CUTLASS's `TiledCopy` has them.

use super::args::Args;
use super::{Op, coalesce_by, composition, raked_product, right_inverse, slice, zipped_divide};
use crate::error::plural;
use crate::window::Whole;
use crate::{
    Coord, CoordLeaf, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, LayoutWindow, Result, Tiler, Tuple, Value,
};

/// What one instruction of a copy moves: (thread, value) -> element, on both sides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CopyAtom {
    src: Layout,
    dst: Layout,
    /// Whose threads and values the tile is given in.
    reference: CopySide,
}

impl CopyAtom {
    /// One thread moves one element.
    pub fn single() -> CopyAtom {
        let one = Layout::of_modes(vec![Layout::unit(), Layout::unit()]);
        CopyAtom { src: one.clone(), dst: one, reference: CopySide::Src }
    }

    /// Both sides number the same elements: `src` and `dst` are bijections of (thread, value) onto them, with the same
    /// number of threads. The thread-value layout of a tile is meant for the side `reference`: for loads of fragments
    /// that is the destination.
    pub fn new(src: Layout, dst: Layout, reference: CopySide) -> Result<CopyAtom> {
        const OP: &str = "copy_atom";
        let cx = Cx::default();
        for (arg, side) in [&src, &dst].into_iter().enumerate() {
            if side.rank() != 2 || side.is_leaf() {
                let message = format!("{side} has {}, not (thread, value)", plural(side.rank(), "mode", "modes"));
                return Err(LayoutError::new(ErrorKind::Profile, OP, message).in_arg(arg));
            }
            if !super::is_bijection(&cx, side).map_err(|e| e.of(OP).in_arg(arg))? {
                let message = format!("{side} does not give each of its {} elements once", side.size()?);
                return Err(LayoutError::new(ErrorKind::NotBijective, OP, message).in_arg(arg));
            }
        }
        let sizes = |l: &Layout| l.modes().iter().map(Layout::size).collect::<Result<Vec<_>>>();
        if sizes(&src)? != sizes(&dst)? {
            let message = format!("source {src} and destination {dst} have other numbers of threads or values");
            return Err(LayoutError::new(ErrorKind::Size, OP, message).in_arg(1));
        }
        Ok(CopyAtom { src, dst, reference })
    }

    fn sizes(&self) -> Result<[Int; 2]> {
        let size = |k| self.src.mode(k).map_or(Ok(Int::ONE), |m: Layout| m.size());
        Ok([size(0)?, size(1)?])
    }
}

/// A copy of tiles: who moves what.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TiledCopy {
    atom: CopyAtom,
    /// (thread, value) -> element of the tile, column by column.
    tv: Layout,
    /// The tile's extents.
    tile: Vec<Int>,
}

/// Which side of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CopySide {
    /// Read.
    Src,
    /// Written.
    Dst,
}

impl TiledCopy {
    /// As [`TiledCopy::new`], from a thread-value layout of a tile, such as that of a tiled MMA's operand.
    pub fn of_tv(cx: &Cx, atom: CopyAtom, tv: Layout, tile: Vec<Int>) -> Result<TiledCopy> {
        const OP: &str = "tiled_copy";
        if tv.rank() != 2 || tv.is_leaf() {
            let message = format!("{tv} has {}, not (thread, value)", plural(tv.rank(), "mode", "modes"));
            return Err(LayoutError::new(ErrorKind::Profile, OP, message));
        }
        TiledCopy { atom, tv, tile }.checked(cx)
    }

    /// Threads lie as `threads` says and each moves values that lie as `values` says: the tile is their raked product.
    /// (CUTLASS `make_tiled_copy`.)
    pub fn new(cx: &Cx, atom: CopyAtom, threads: &Layout, values: &Layout) -> Result<TiledCopy> {
        const OP: &str = "tiled_copy";
        for (arg, (l, what)) in [(threads, "thread"), (values, "value")].into_iter().enumerate() {
            if !super::is_bijection(cx, l).map_err(|e| e.of(OP).in_arg(arg))? {
                let size = l.size()?;
                let message = format!("{l} does not number its {size} {what}s, each once from 0 on");
                let help = format!("{} does", super::compact(l.shape())?);
                return Err(LayoutError::new(ErrorKind::NotBijective, OP, message).in_arg(arg).with_help(help));
            }
        }
        let tile = raked_product(cx, threads, values).map_err(|e| e.of(OP))?;
        let (t, v) = (threads.size()?, values.size()?);
        let shape = Layout::of_modes(vec![Layout::vector(t.clone()), Layout::leaf(v, crate::Stride::int(t))]);
        let inverse = right_inverse(cx, &tile).map_err(|e| e.of(OP))?;
        let tv = composition(cx, &inverse, &Tiler::Layout(shape)).map_err(|e| e.of(OP))?;
        let tile = tile.modes().iter().map(Layout::size).collect::<Result<_>>()?;
        TiledCopy { atom, tv, tile }.checked(cx)
    }

    fn checked(self, cx: &Cx) -> Result<TiledCopy> {
        const OP: &str = "tiled_copy";
        for (k, (what, n)) in ["thread", "value"].into_iter().zip(self.atom.sizes()?).enumerate() {
            let have = self.tv.mode(k).map_or(Ok(Int::ONE), |m| m.size())?;
            if !cx.require(OP, crate::Condition::Divides(n.clone(), have.clone()))? {
                let message = format!("{have} {what}s are no multiple of the {n} of one instruction");
                return Err(LayoutError::new(ErrorKind::Divisibility, OP, message).in_arg(k));
            }
        }
        Ok(self)
    }

    /// The tile's shape, as a tiler.
    pub fn tiler(&self) -> Tiler {
        Tiler::ByMode(self.tile.iter().cloned().map(Tiler::Extent).collect())
    }

    /// The tile's extents.
    pub fn extents(&self) -> &[Int] {
        &self.tile
    }

    /// (thread, value) -> element of the tile, before the instruction's own order.
    pub fn layout(&self) -> &Layout {
        &self.tv
    }

    /// `(Thr,(FrgV,FrgX))` -> element of a tile, as a side of the instruction has it.
    fn thrval(&self, cx: &Cx, side: CopySide) -> Result<Layout> {
        let [t, v] = self.atom.sizes()?;
        let each = Tiler::ByMode(vec![Tiler::Extent(t), Tiler::Extent(v)]);
        // ((atom's thread, atom's value), (rest of threads, rest of values))
        let cut = zipped_divide(cx, &self.tv, &each)?;
        let of = |side| if side == CopySide::Src { &self.atom.src } else { &self.atom.dst };
        // The reference numbers the elements in the tile's order; the other side is what it is in those numbers.
        let order = match side == self.atom.reference {
            true => identity(of(side))?,
            false => {
                let numbers = right_inverse(cx, of(self.atom.reference))?;
                composition(cx, &numbers, &Tiler::Layout(of(side).clone()))?
            }
        };
        let cut = composition(cx, &cut, &Tiler::ByMode(vec![Tiler::Layout(order), Tiler::Keep]))?;
        let pick = |i: usize, j: usize| {
            cut.mode(i).and_then(|m| m.mode(j)).ok_or_else(|| {
                LayoutError::new(
                    ErrorKind::Profile,
                    "tiled_copy",
                    format!("{cut} is no ((thread,value),(thread,value))"),
                )
            })
        };
        let thread = Layout::of_modes(vec![pick(0, 0)?, pick(1, 0)?]);
        let value = Layout::of_modes(vec![pick(0, 1)?, pick(1, 1)?]);
        let one = || Tuple::Leaf(Int::ONE);
        let profile = Tuple::Node(vec![one(), Tuple::Node(vec![one(), one()])]);
        coalesce_by(cx, &Layout::of_modes(vec![thread, value]), &profile)
    }

    /// `(thread,(value,repetition))` -> element of the tile: `get_layoutS_TV`, `get_layoutD_TV`.
    pub fn tv(&self, cx: &Cx, side: CopySide) -> Result<Layout> {
        let shape: Vec<IntTuple> = self.tile.iter().cloned().map(Tuple::Leaf).collect();
        let tile = super::compact(&Tuple::Node(shape))?;
        let name = |e: LayoutError| e.of("tiled_copy_tv");
        composition(cx, &tile, &Tiler::Layout(self.thrval(cx, side).map_err(name)?)).map_err(name)
    }

    /// `(Thr,(FrgV,FrgX),Rest..)`: a tensor by thread, value and tile: `tidfrg_S`, `tidfrg_D`.
    pub fn tidfrg(&self, cx: &Cx, side: CopySide, tensor: &Layout) -> Result<Layout> {
        let name = |e: LayoutError| e.of("tidfrg");
        if tensor.is_leaf() || tensor.rank() < self.tile.len() {
            let message =
                format!("{tensor} has {}, the tile has {}", plural(tensor.rank(), "mode", "modes"), self.tile.len());
            return Err(LayoutError::new(ErrorKind::Profile, "tidfrg", message).in_arg(0));
        }
        let tiles = zipped_divide(cx, tensor, &self.tiler()).map_err(name)?;
        let thrval = Tiler::ByMode(vec![Tiler::Layout(self.thrval(cx, side).map_err(name)?), Tiler::Keep]);
        let all = composition(cx, &tiles, &thrval).map_err(name)?;
        match (all.mode(0), all.mode(1)) {
            (Some(tv), Some(rest)) => Ok(Layout::of_modes([tv.modes(), vec![rest]].concat())),
            _ => Ok(all),
        }
    }

    /// What one thread moves: `((FrgV,FrgX),Rest..)`.
    pub fn partition(&self, cx: &Cx, side: CopySide, tensor: &Layout, thread: &Int) -> Result<LayoutWindow> {
        const OP: &str = "partition";
        let all = self.tidfrg(cx, side, tensor).map_err(|e| e.of(OP))?;
        let keep = || Tuple::Leaf(CoordLeaf::Keep);
        let rest = all.mode(2).map_or(1, |m| m.rank());
        let coord: Coord =
            Tuple::Node(vec![Tuple::Leaf(CoordLeaf::At(thread.clone())), keep(), Tuple::Node(vec![keep(); rest])]);
        let (layout, start) = slice(cx, &all, &coord).map_err(|e| e.of(OP))?;
        Ok(LayoutWindow { start, layout })
    }
}

/// The layout's own elements in its own order.
fn identity(a: &Layout) -> Result<Layout> {
    let modes = a.modes();
    let (t, v) = match modes.as_slice() {
        [t, v] => (t.size()?, v.size()?),
        _ => (a.size()?, Int::ONE),
    };
    super::compact(&Tuple::Node(vec![Tuple::Leaf(t), Tuple::Leaf(v)]))
}

fn copy_of(op: &'static str, cx: &Cx, v: &[Value]) -> Result<TiledCopy> {
    let args = Args::new(op, v);
    TiledCopy::new(cx, CopyAtom::single(), args.layout(0)?, args.layout(1)?).map_err(|e| e.of(op))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "tiled_copy_tv",
        usage: "tiled_copy_tv(threads, values)",
        doc: "(thread, (1, value)) -> element of the tile, column by column.",
        arity: (2, 2),
        eval: |cx, v| copy_of("tiled_copy_tv", cx, v)?.tv(cx, CopySide::Src).map(Value::Layout),
    },
    Op {
        name: "tiled_copy_tiler",
        usage: "tiled_copy_tiler(threads, values)",
        doc: "The tile that all threads move together.",
        arity: (2, 2),
        eval: |cx, v| Ok(Value::Tiler(copy_of("tiled_copy_tiler", cx, v)?.tiler())),
    },
    Op {
        name: "tiled_copy_partition",
        usage: "tiled_copy_partition(threads, values, A, thread)",
        doc: "What one thread moves: ((1, value), rest, ..).",
        arity: (4, 4),
        eval: |cx, v| {
            const OP: &str = "tiled_copy_partition";
            let (args, copy, whole) = (Args::new(OP, v), copy_of(OP, cx, v)?, Whole::of(OP, v, 2)?);
            let part = copy.partition(cx, CopySide::Src, whole.layout(), args.int(3)?);
            let arg = |e: LayoutError| if e.kind == ErrorKind::OutOfRange { e.in_arg(3) } else { e.in_arg(2) };
            whole.part(OP, part.map_err(|e| arg(e.of(OP)))?)
        },
    },
];

#[cfg(test)]
mod tests;
