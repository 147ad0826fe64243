//! Partitioning by matrix instructions, as CUTLASS's `TiledMMA` does it.
//!
//! A matrix is cut by the tiler, by the atom, its atoms' elements become (thread, value), and the repetitions of the
//! atom go to the atoms side by side; what is left over is the thread's own repetitions. (CUTLASS
//! `include/cute/atom/mma_atom.hpp`, `thrfrg_A/B/C`, `get_layoutX_TV`.)

use super::args::Args;
use super::make::compact;
use super::partition::mode_coords;
use super::{Op, complement, composition, filter, logical_divide, right_inverse, slice, zipped_divide};
use crate::error::plural;
use crate::family;
use crate::window::Whole;
use crate::{
    Coord, CoordLeaf, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, LayoutWindow, MmaAtom, Operand, Result,
    Stride, TiledMma, Tiler, Tuple, Value,
};
use std::sync::Arc;

impl TiledMma {
    /// `((ThrV,(ThrX,ThrY)),(FrgV,(RestX,RestY,..)))`: a matrix of the operand's modes (and perhaps more), by thread of
    /// the atom, atom, value and repetition.
    pub fn thrfrg(&self, cx: &Cx, operand: Operand, matrix: &Layout) -> Result<Layout> {
        let op = frg_name(operand);
        if matrix.is_leaf() || matrix.rank() < 2 {
            let [x, y] = operand.modes().map(|k| ['M', 'N', 'K'][k]);
            let message =
                format!("{matrix} has {}, {} is ({x},{y})", plural(matrix.rank(), "mode", "modes"), operand.name());
            return Err(LayoutError::new(ErrorKind::Profile, op, message).in_arg(1));
        }
        let vmnk = self.thr_layout_vmnk()?;
        let both = |f: &dyn Fn(usize) -> Result<Tiler>| -> Result<Tiler> {
            Ok(Tiler::ByMode(operand.modes().into_iter().map(f).collect::<Result<_>>()?))
        };
        let order = both(&|k| {
            Ok(match &self.tiler[k] {
                Tiler::Keep => Tiler::Extent(self.tile_size(k)?.into()),
                tiler => tiler.clone(),
            })
        })?;
        let named = |e: LayoutError| e.of(op).in_arg(1);
        let tiles = logical_divide(cx, matrix, &order).map_err(named)?;
        let atom = both(&|k| Ok(Tiler::Extent(self.atom.shape[k].into())))?;
        let atoms = zipped_divide(cx, &tiles, &atom).map_err(named)?;
        let tv = Tiler::ByMode(vec![Tiler::Layout(self.atom.tv(operand).clone()), Tiler::Keep]);
        let tv = composition(cx, &atoms, &tv).map_err(named)?;
        let sides = both(&|k| Ok(Tiler::Extent(vmnk.mode(k + 1).map_or(Ok(Int::ONE), |m| m.size())?)))?;
        zipped_divide(cx, &tv, &Tiler::ByMode(vec![Tiler::Keep, sides])).map_err(named)
    }

    /// `(thread of the machine, (FrgV,(RestX,RestY,..)))` of what [`TiledMma::thrfrg`] gives: numbers that belong to no
    /// thread of an atom share the elements of one that does, and threads that differ in the third mode only share too.
    fn by_thread(&self, cx: &Cx, operand: Operand, thrfrg: &Layout) -> Result<Layout> {
        let vmnk = self.thr_layout_vmnk()?;
        let side = |k: usize| vmnk.mode(k + 1).map_or(Ok(Int::ONE), |m| m.size());
        let mut out = thrfrg.clone();
        if operand != Operand::C {
            // (ThrM,ThrN) of which A has the first and B the second.
            let strides = if operand == Operand::A { [1, 0] } else { [0, 1] };
            let modes = strides.into_iter().enumerate();
            let modes = modes.map(|(k, d)| Ok(Layout::leaf(side(k)?, Stride::from(d)))).collect::<Result<_>>()?;
            let spread = Tiler::ByMode(vec![Tiler::Layout(Layout::of_modes(modes)), Tiler::Keep]);
            let atoms = Tiler::ByMode(vec![Tiler::Keep, spread]);
            out = composition(cx, &out, &Tiler::ByMode(vec![atoms, Tiler::Keep]))?;
        } else if !side(2)?.is(1) {
            // Atoms side by side in K add to the same elements: (ThrM,(ThrN,ThrK)). CuTe's layout would run out of the
            // tile in N.
            let modes = vec![Layout::leaf(side(1)?, Stride::from(1)), Layout::leaf(side(2)?, Stride::from(0))];
            let spread = Tiler::ByMode(vec![Tiler::Keep, Tiler::Layout(Layout::of_modes(modes))]);
            let atoms = Tiler::ByMode(vec![Tiler::Keep, spread]);
            out = composition(cx, &out, &Tiler::ByMode(vec![atoms, Tiler::Keep]))?;
        }
        let threads = self.thread_ids(cx, &vmnk)?;
        composition(cx, &out, &Tiler::ByMode(vec![Tiler::Layout(threads), Tiler::Keep]))
    }

    /// Thread of the machine -> index of (v, m, n, k), then of the threads between them.
    fn all_threads(cx: &Cx, vmnk: &Layout) -> Result<(Int, Layout)> {
        let span = filter(cx, vmnk)?.cosize(cx)?;
        let others = complement(cx, vmnk, &span)?;
        Ok((span, right_inverse(cx, &Layout::of_modes(vec![vmnk.clone(), others]))?))
    }

    /// Every thread must be found by its number. Where an atom's threads leave gaps, atoms side by side must fill a gap
    /// as a whole number of times: `(4,2):(1,16)` has room for 1, 2 or 4.
    pub(crate) fn threads_fill(&self) -> Result<()> {
        let cx = Cx::default();
        let vmnk = self.thr_layout_vmnk()?;
        let (span, all) = TiledMma::all_threads(&cx, &vmnk).map_err(|e| e.of("tiled_mma").in_arg(1))?;
        let (size, last) = (all.size()?.as_const(), span.as_const());
        if size >= last {
            return Ok(());
        }
        let [size, last] = [size, last].map(|n| n.map_or_else(|| "?".to_owned(), |n| n.to_string()));
        let message = format!(
            "the atoms {} leave gaps among the threads {vmnk}: only the first {size} of {last} have a place in order",
            self.atoms
        );
        Err(LayoutError::new(ErrorKind::StrideOrder, "tiled_mma", message)
            .in_arg(1)
            .with_help(format!("take so many atoms that they fill the gaps of thr = {} evenly", self.atom.thr)))
    }

    /// Thread of the machine -> index of (v, m, n, k).
    fn thread_ids(&self, cx: &Cx, vmnk: &Layout) -> Result<Layout> {
        let (_, all) = TiledMma::all_threads(cx, vmnk)?;
        // Beyond the threads of the atoms it starts again.
        let count = Layout::leaf(vmnk.size()?, Stride::from(1));
        let again = Layout::of_modes(vec![count, Layout::unit()]);
        composition(cx, &again, &Tiler::Layout(all))
    }

    /// `(thread, value)` -> element of the tile, numbered column by column: `get_layoutC_TV` and its like.
    pub fn tv(&self, operand: Operand) -> Result<Layout> {
        let cx = Cx::default();
        let [x, y] = operand.modes();
        let tile = compact(&IntTuple::flat(&[self.tile_size(x)?, self.tile_size(y)?]))?;
        let named = |e: LayoutError| e.of("mma_tv");
        self.by_thread(&cx, operand, &self.thrfrg(&cx, operand, &tile).map_err(named)?).map_err(named)
    }

    /// Threads of the machine that take part, those between them included.
    pub fn thread_count(&self) -> Result<i64> {
        let threads = self.tv(Operand::C)?.mode(0).map_or(Ok(Int::ONE), |m| m.size())?;
        threads.as_const().ok_or_else(|| LayoutError::new(ErrorKind::Kind, "thread_count", "threads are not known"))
    }

    /// A matrix with the thread as its first mode: `(thread, (value, rest x, rest y, ..))`.
    pub fn partition(&self, cx: &Cx, operand: Operand, matrix: &Layout) -> Result<Layout> {
        let op = partition_name(operand);
        let named = |e: LayoutError| e.of(op);
        let all = self.thrfrg(cx, operand, matrix).map_err(named)?;
        let all = self.by_thread(cx, operand, &all).map_err(named)?;
        let (Some(threads), Some(values)) = (all.mode(0), all.mode(1)) else { return Ok(all) };
        Ok(Layout::of_modes(vec![threads, lifted(&values)]))
    }

    /// What thread `index` of the machine has of a matrix: `(value, rest x, rest y, ..)`.
    pub fn partition_of(&self, cx: &Cx, operand: Operand, matrix: &Layout, index: i64) -> Result<LayoutWindow> {
        let op = partition_name(operand);
        let named = |e: LayoutError| e.of(op);
        let all = self.thrfrg(cx, operand, matrix).map_err(named)?;
        let at = self.thr_vmnk(index).map_err(named)?;
        let [v, rest @ ..] = at;
        let at = |n: i64| Tuple::Leaf(CoordLeaf::At(n.into()));
        let keep = Tuple::Leaf(CoordLeaf::Keep);
        let sides = operand.modes().map(|k| at(rest[k]));
        let values = all.mode(1).and_then(|v| v.mode(1)).map_or(0, |m| m.rank());
        let coord: Coord = Tuple::Node(vec![
            Tuple::Node(vec![at(v), Tuple::Node(sides.to_vec())]),
            Tuple::Node(vec![keep.clone(), Tuple::Node(vec![keep; values])]),
        ]);
        let (layout, start) = slice(cx, &all, &coord).map_err(named)?;
        Ok(LayoutWindow { start, layout })
    }

    /// Thread of the atom, and which atom in M, N and K, of a thread of the machine.
    pub fn thr_vmnk(&self, index: i64) -> Result<[i64; 4]> {
        const OP: &str = "thr_vmnk";
        let count = self.thread_count().map_err(|e| e.of(OP))?;
        if !(0..count).contains(&index) {
            let message = format!("thread {index} is not one of the {count} threads, 0 to {}", count - 1);
            return Err(LayoutError::new(ErrorKind::OutOfRange, OP, message));
        }
        let at = mode_coords(&Cx::default(), &self.thr_layout_vmnk()?, &index.into()).map_err(|e| e.of(OP))?;
        let at: Vec<i64> = at.leaves().into_iter().filter_map(Int::as_const).collect();
        <[i64; 4]>::try_from(at).map_err(|_| LayoutError::new(ErrorKind::Profile, OP, "the threads are no (v,m,n,k)"))
    }

    /// The values of one thread of a matrix of this shape: `(value, rest x, rest y)`.
    pub fn partition_shape(&self, cx: &Cx, operand: Operand, shape: &IntTuple) -> Result<IntTuple> {
        let all = self.thrfrg(cx, operand, &compact(shape)?)?;
        let values = all.mode(1).ok_or_else(|| LayoutError::new(ErrorKind::Profile, "partition_shape", "no values"))?;
        Ok(lifted(&values).shape().clone())
    }
}

/// `(FrgV,(RestX,RestY))` as `(FrgV,RestX,RestY)`
fn lifted(values: &Layout) -> Layout {
    match (values.mode(0), values.mode(1)) {
        (Some(value), Some(rest)) if !rest.is_leaf() => Layout::of_modes([vec![value], rest.modes()].concat()),
        _ => values.clone(),
    }
}

fn frg_name(operand: Operand) -> &'static str {
    match operand {
        Operand::A => "thrfrg_A",
        Operand::B => "thrfrg_B",
        Operand::C => "thrfrg_C",
    }
}

fn partition_name(operand: Operand) -> &'static str {
    match operand {
        Operand::A => "partition_A",
        Operand::B => "partition_B",
        Operand::C => "partition_C",
    }
}

fn atom_of<'a>(op: &'static str, v: &'a [Value], k: usize) -> Result<&'a Arc<MmaAtom>> {
    match v.get(k) {
        Some(Value::Atom(a)) => Ok(a),
        Some(Value::Family(f)) => Err(Args::new(op, v)
            .wrong(k, "an MMA atom")
            .with_help(format!("select_mma({f}, n) is the one of its atoms that a tile of n columns takes"))),
        _ => Err(Args::new(op, v).wrong(k, "an MMA atom")),
    }
}

fn mma_of<'a>(op: &'static str, v: &'a [Value]) -> Result<&'a TiledMma> {
    match v.first() {
        Some(Value::Mma(m)) => Ok(m),
        _ => Err(Args::new(op, v)
            .wrong(0, "a tiled MMA")
            .with_help("tiled_mma(ATOM, atoms = (2,2,1), tiler = (32,32,16)) makes one of an atom")),
    }
}

/// `(1,X,1)`: the operand that has these modes of (M,N,K).
fn operand_of(op: &'static str, v: &[Value], k: usize) -> Result<Operand> {
    let found = MmaAtom::operands().zip(Operand::ALL).find(|((_, value), _)| v.get(k) == Some(value));
    found.map(|(_, operand)| operand).ok_or_else(|| {
        Args::new(op, v).wrong(k, "A, B or C").with_help("A is (1,X,1), B is (X,1,1), C is (1,1,X) of (M,N,K)")
    })
}

/// Atom, atoms and tiler from argument 0 on; without a tiler: as much as the atoms cover.
fn tiled(op: &'static str, v: &[Value], count: usize) -> Result<TiledMma> {
    let args = Args::new(op, v);
    let atom = atom_of(op, v, 0)?.clone();
    let atoms = match args.value(1).ok() {
        Some(Value::Layout(l)) if count > 1 => l.clone(),
        Some(_) if count > 1 => compact(&args.ints(1)?).map_err(|e| e.of(op).in_arg(1))?,
        _ => compact(&IntTuple::flat(&[1, 1, 1]))?,
    };
    let tiler = match count > 2 {
        false => [Tiler::Keep, Tiler::Keep, Tiler::Keep],
        true => match args.tiler(2)? {
            Tiler::ByMode(modes) => <[Tiler; 3]>::try_from(modes).map_err(|modes| {
                let message = format!("the tiler has {}, not three", plural(modes.len(), "entry", "entries"));
                LayoutError::new(ErrorKind::Profile, op, message)
                    .in_arg(2)
                    .with_help("give what one call covers in M, N and K: (32,32,16); `_` is as much as the atoms cover")
            })?,
            Tiler::Keep => [Tiler::Keep, Tiler::Keep, Tiler::Keep],
            _ => return Err(args.wrong(2, "a tiler of three entries")),
        },
    };
    TiledMma::new(atom, atoms, tiler).map_err(|e| e.of(op))
}

/// `partition_C(mma, matrix)`, `partition_C(mma, matrix, thread)`
fn partition(operand: Operand, cx: &Cx, v: &[Value]) -> Result<Value> {
    let op = partition_name(operand);
    let (args, mma, whole) = (Args::new(op, v), mma_of(op, v)?, Whole::of(op, v, 1)?);
    match args.len() {
        2 => Ok(whole.recut(mma.partition(cx, operand, whole.layout())?)),
        _ => {
            let index = args.constant(2)?;
            let part = mma.partition_of(cx, operand, whole.layout(), index);
            whole.part(op, part.map_err(|e| if e.kind == ErrorKind::OutOfRange { e.in_arg(2) } else { e })?)
        }
    }
}

/// `fragment_C(mma, (64, 64))`: (threads, values of each).
fn fragment(operand: Operand, op: &'static str, cx: &Cx, v: &[Value]) -> Result<Value> {
    let (args, mma) = (Args::new(op, v), mma_of(op, v)?);
    let shape = args.ints(1)?;
    if shape.is_leaf() || shape.rank() != 2 {
        return Err(args.wrong(1, "a shape of two extents"));
    }
    let [x, y] = operand.modes();
    for (k, mode) in [x, y].into_iter().enumerate() {
        let (n, tile) = (super::profile::product(&shape.modes()[k])?, Int::from(mma.tile_size(mode)?));
        if !cx.require(op, crate::Condition::Divides(tile.clone(), n.clone())).map_err(|e| e.in_arg(1))? {
            let message = format!("extent {n} in mode {} is no multiple of the tiler's {tile}", ['M', 'N', 'K'][mode]);
            return Err(LayoutError::new(ErrorKind::Divisibility, op, message)
                .in_arg(1)
                .at(crate::Path(vec![k]))
                .with_help("each thread has the same number of values only in whole tiles"));
        }
    }
    let values = mma.partition_shape(cx, operand, &shape).map_err(|e| e.of(op))?;
    let values = super::profile::product(&values)?;
    Ok(Value::Tuple(vec![Value::Int(mma.thread_count()?.into()), Value::Int(values)]))
}

fn tv_op(operand: Operand, op: &'static str, v: &[Value]) -> Result<Value> {
    mma_of(op, v)?.tv(operand).map(Value::Layout).map_err(|e| e.of(op))
}

/// `select_mma(f16, f16, f32, 256)`, `select_mma(FAMILY, 256)`
fn selected(cx: &Cx, v: &[Value]) -> Result<Value> {
    const OP: &str = "select_mma";
    let args = Args::new(OP, v);
    let dtype = |k: usize| match v.get(k) {
        Some(Value::DType(d)) => Ok(&**d),
        _ => Err(args.wrong(k, "a dtype")),
    };
    let atom = match v {
        [Value::Family(family), _] => family.select(args.constant(1)?).map_err(|e| e.in_arg(1)),
        [Value::Family(_), ..] => Err(args.wrong(0, "a dtype where four are given")),
        [_, _] => Err(args.wrong(0, "a family of MMA atoms where two are given")),
        _ => {
            let types = [dtype(0)?, dtype(1)?, dtype(2)?];
            let n = args.constant(3).map_err(|e| e.with_help("call it: `select_mma(A, B, ACC, n)`"))?;
            family::select(cx.families(), types, n)
        }
    };
    atom.map(Value::Atom)
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "select_mma",
        usage: "select_mma(A, B, ACC, n)",
        doc: "The warp-group atom for operands and accumulator of these dtypes and a tile of n columns: the largest N \
            that divides n. `select_mma(FAMILY, n)` chooses among a family's atoms.",
        arity: (2, 4),
        eval: selected,
    },
    Op {
        name: "tiled_mma",
        usage: "tiled_mma(ATOM, atoms, tiler)",
        doc: "Atoms side by side in M, N and K, repeated to cover the tiler.",
        arity: (1, 3),
        eval: |_, v| Ok(Value::Mma(Arc::new(tiled("tiled_mma", v, v.len())?))),
    },
    Op {
        name: "thr_layout_vmnk",
        usage: "thr_layout_vmnk(mma)",
        doc: "(thread of the atom, atom in M, in N, in K) -> thread of the machine.",
        arity: (1, 1),
        eval: |_, v| Ok(Value::Layout(mma_of("thr_layout_vmnk", v)?.thr_layout_vmnk()?)),
    },
    Op {
        name: "thr_vmnk",
        usage: "thr_vmnk(mma, thread)",
        doc: "Thread of the atom, and which atom in M, N and K, of a thread of the machine.",
        arity: (2, 2),
        eval: |_, v| {
            let at = mma_of("thr_vmnk", v)?.thr_vmnk(Args::new("thr_vmnk", v).constant(1)?);
            Ok(Value::ints(&IntTuple::flat(&at.map_err(|e| e.in_arg(1))?)))
        },
    },
    Op {
        name: "tile_size",
        usage: "tile_size(mma, mode)",
        doc: "What one call covers in M (0), N (1) or K (2).",
        arity: (2, 2),
        eval: |_, v| {
            let size = mma_of("tile_size", v)?.tile_size(Args::new("tile_size", v).index(1)?);
            Ok(Value::Int(size.map_err(|e| e.in_arg(1))?.into()))
        },
    },
    Op {
        name: "atom_count",
        usage: "atom_count(mma)",
        doc: "How many times the atom is executed for one tile.",
        arity: (1, 1),
        eval: |_, v| Ok(Value::Int(mma_of("atom_count", v)?.atom_count()?.into())),
    },
    Op {
        name: "thread_count",
        usage: "thread_count(mma)",
        doc: "Threads of the machine that take part.",
        arity: (1, 1),
        eval: |_, v| Ok(Value::Int(mma_of("thread_count", v)?.thread_count()?.into())),
    },
    Op {
        name: "tv_A",
        usage: "tv_A(mma)",
        doc: "(thread, value) -> element of the tile of A, (M,K), column by column.",
        arity: (1, 1),
        eval: |_, v| tv_op(Operand::A, "tv_A", v),
    },
    Op {
        name: "tv_B",
        usage: "tv_B(mma)",
        doc: "(thread, value) -> element of the tile of B, (N,K), column by column.",
        arity: (1, 1),
        eval: |_, v| tv_op(Operand::B, "tv_B", v),
    },
    Op {
        name: "tv_C",
        usage: "tv_C(mma)",
        doc: "(thread, value) -> element of the tile of C, (M,N), column by column.",
        arity: (1, 1),
        eval: |_, v| tv_op(Operand::C, "tv_C", v),
    },
    Op {
        name: "partition_A",
        usage: "partition_A(mma, matrix)",
        doc: "A matrix (M,K) with the thread as a mode: (thread, (value, rest in M, rest in K)); with a third \
            argument, that thread's.",
        arity: (2, 3),
        eval: |cx, v| partition(Operand::A, cx, v),
    },
    Op {
        name: "partition_B",
        usage: "partition_B(mma, matrix)",
        doc: "A matrix (N,K) with the thread as a mode: (thread, (value, rest in N, rest in K)); with a third \
            argument, that thread's.",
        arity: (2, 3),
        eval: |cx, v| partition(Operand::B, cx, v),
    },
    Op {
        name: "partition_C",
        usage: "partition_C(mma, matrix)",
        doc: "A matrix (M,N) with the thread as a mode: (thread, (value, rest in M, rest in N)); with a third \
            argument, that thread's.",
        arity: (2, 3),
        eval: |cx, v| partition(Operand::C, cx, v),
    },
    Op {
        name: "fragment_A",
        usage: "fragment_A(mma, (M,K))",
        doc: "The shape of A in threads' values: (threads, values of each).",
        arity: (2, 2),
        eval: |cx, v| fragment(Operand::A, "fragment_A", cx, v),
    },
    Op {
        name: "fragment_B",
        usage: "fragment_B(mma, (N,K))",
        doc: "The shape of B in threads' values: (threads, values of each).",
        arity: (2, 2),
        eval: |cx, v| fragment(Operand::B, "fragment_B", cx, v),
    },
    Op {
        name: "fragment_C",
        usage: "fragment_C(mma, (M,N))",
        doc: "The shape of C in threads' values: (threads, values of each).",
        arity: (2, 2),
        eval: |cx, v| fragment(Operand::C, "fragment_C", cx, v),
    },
    Op {
        name: "mma_tv",
        usage: "mma_tv(ATOM, atoms, tiler, A)",
        doc: "tv_A, tv_B or tv_C of the tiled atom.",
        arity: (4, 4),
        eval: |_, v| {
            let operand = operand_of("mma_tv", v, 3)?;
            tiled("mma_tv", v, 3)?.tv(operand).map(Value::Layout)
        },
    },
    Op {
        name: "mma_partition",
        usage: "mma_partition(ATOM, atoms, tiler, A, matrix, thread)",
        doc: "What one thread has of a matrix: (value, rest, rest).",
        arity: (6, 6),
        eval: |cx, v| {
            const OP: &str = "mma_partition";
            let (operand, whole) = (operand_of(OP, v, 3)?, Whole::of(OP, v, 4)?);
            let index = Args::new(OP, v).constant(5)?;
            let part = tiled(OP, v, 3)?.partition_of(cx, operand, whole.layout(), index);
            let arg = |e: LayoutError| if e.kind == ErrorKind::OutOfRange { e.in_arg(5) } else { e.in_arg(4) };
            whole.part(OP, part.map_err(|e| arg(e.of(OP)))?)
        },
    },
];

#[cfg(test)]
mod tests;
