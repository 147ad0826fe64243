//! Matrix instructions as data, and their tiling over threads and values.

use crate::error::plural;
use crate::{Cx, ErrorKind, IntTuple, Layout, LayoutError, Path, Points, Result, Tiler, Tuple, Value, ops};
use std::fmt;
use std::sync::Arc;

/// An atom may have this many elements in each of its matrices, and this many (thread, value) pairs: each is looked at.
const MOST: i64 = 1 << 22;

/// What is to blame in an atom's own faults.
const ATOM: &str = "atom";

/// The modes of a matrix product.
const MODES: [char; 3] = ['M', 'N', 'K'];

/// One of the three operands of `D = A B^T + C`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// (M, K)
    A,
    /// (N, K)
    B,
    /// (M, N), also the result.
    C,
}

impl Operand {
    /// All of them.
    pub const ALL: [Operand; 3] = [Operand::A, Operand::B, Operand::C];

    /// Its modes among M, N, K: C has `[0, 1]`.
    pub fn modes(self) -> [usize; 2] {
        match self {
            Operand::A => [0, 2],
            Operand::B => [1, 2],
            Operand::C => [0, 1],
        }
    }

    /// The name that authors use.
    pub fn name(self) -> &'static str {
        match self {
            Operand::A => "A",
            Operand::B => "B",
            Operand::C => "C",
        }
    }
}

/// A matrix instruction: what it covers, and which (thread, value) holds which element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MmaAtom {
    /// Its name.
    pub name: String,
    /// M, N, K.
    pub shape: [i64; 3],
    /// Dtypes of D, A, B, C as written; this crate does not read them.
    pub types: [String; 4],
    /// Logical thread -> thread of the machine.
    pub thr: Layout,
    /// (thread, value) -> `m + n * M`-like index in the operand's matrix, numbered column-major inside the atom.
    pub a: Layout,
    /// As `a`, of (N, K).
    pub b: Layout,
    /// As `a`, of (M, N).
    pub c: Layout,
}

impl MmaAtom {
    /// The thread-value layout of an operand.
    pub fn tv(&self, operand: Operand) -> &Layout {
        match operand {
            Operand::A => &self.a,
            Operand::B => &self.b,
            Operand::C => &self.c,
        }
    }
}

/// The fields of an atom, in the order in which [`MmaAtom::faults`] counts them.
pub const ATOM_FIELDS: [&str; 6] = ["shape", "types", "thr", "A", "B", "C"];

impl MmaAtom {
    /// The first of [`MmaAtom::faults`].
    pub fn check(&self) -> Result<()> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// What makes the layouts no matrix instruction's; [`LayoutError::arg`] is the field, counted as in
    /// [`ATOM_FIELDS`]. Threads are distinct; A, B and C have two modes, as many threads as there are, and reach every
    /// element of their matrix: C each once, A and B perhaps from several threads (stride 0).
    pub fn faults(&self) -> Vec<LayoutError> {
        let refuse = |kind, arg, message: String, help: &str| {
            vec![LayoutError::new(kind, ATOM, message).in_arg(arg).with_help(help)]
        };
        if let Some(k) = self.shape.iter().position(|&n| !(1..=MOST).contains(&n)) {
            let message = format!("extent {} in mode {} is not in 1 to {MOST}", self.shape[k], MODES[k]);
            return refuse(ErrorKind::Domain, 0, message, "the shape is M, N and K of one instruction");
        }
        let threads = match count(ATOM, &self.thr) {
            Ok(threads) => threads,
            Err(e) => return vec![e.in_arg(2)],
        };
        match ops::is_injective(&Cx::default(), &self.thr) {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("thr = {} gives two logical threads one thread of the machine", self.thr);
                return refuse(ErrorKind::NotInjective, 2, message, "give each mode a stride of its own: (4,2):(1,16)");
            }
            Err(e) => return vec![e.of(ATOM).in_arg(2)],
        }
        let check = |(k, operand)| self.check_operand(operand, threads).err().map(|e| e.in_arg(3 + k));
        Operand::ALL.into_iter().enumerate().filter_map(check).collect()
    }

    fn check_operand(&self, operand: Operand, threads: i64) -> Result<()> {
        let (tv, name) = (self.tv(operand), operand.name());
        let refuse = |kind, message: String, help: String| {
            Err(LayoutError::new(kind, ATOM, format!("{name} = {tv} {message}")).with_help(help))
        };
        let (Some(thr), Some(_), 2) = (tv.mode(0), tv.mode(1), tv.rank()) else {
            let message = format!("has {}, not two", plural(tv.rank(), "mode", "modes"));
            return refuse(ErrorKind::Profile, message, "mode 0 is the thread, mode 1 the value: (32,4):(4,1)".into());
        };
        let (held, pairs) = (count(ATOM, &thr)?, count(ATOM, tv)?);
        if held != threads {
            let message =
                format!("has {} in mode 0, thr = {} has {threads}", plural(held, "thread", "threads"), self.thr);
            return refuse(ErrorKind::Size, message, "each operand has all threads; stride 0 shares elements".into());
        }
        let [x, y] = operand.modes();
        let (rows, cols) = (self.shape[x], self.shape[y]);
        let size = rows.checked_mul(cols).filter(|n| *n <= MOST);
        let (Some(size), Some(points), true) = (size, Points::of_layout(tv), pairs <= MOST) else {
            let message =
                format!("is too large to be checked: {rows} x {cols} elements, {pairs} (thread, value) pairs");
            return refuse(ErrorKind::Domain, message, format!("at most {MOST}"));
        };
        let matrix = format!("{} x {} = {rows} x {cols}", MODES[x], MODES[y]);
        // Where all threads share what one has, that one tells all: operands in shared memory are so.
        let same = operand != Operand::C && thr.stride().leaves().iter().all(|d| d.scale.is(0));
        let step = if same { threads as usize } else { 1 };
        // The pair that holds an element, from 1 on.
        let mut holder = vec![0; size as usize];
        for i in (0..pairs).step_by(step) {
            let (t, v) = (i % threads, i / threads);
            let at = points.offset_at(i);
            let slot = at.and_then(|n| usize::try_from(n).ok()).and_then(|n| holder.get_mut(n));
            let (Some(at), Some(slot)) = (at, slot) else {
                let at = at.map_or_else(|| "a coordinate".to_owned(), |n| n.to_string());
                let message = format!("gives value {v} of thread {t} element {at}, {matrix} has 0 to {}", size - 1);
                let help = format!("elements are numbered column by column: row + column * {rows}");
                return refuse(ErrorKind::NotBijective, message, help);
            };
            // A stride of 0 that two threads of A or B share is meant.
            if *slot != 0 && operand == Operand::C {
                let (s, u) = ((*slot - 1) % threads, (*slot - 1) / threads);
                let message =
                    format!("gives element {at} of {matrix} to value {u} of thread {s} and to value {v} of thread {t}");
                return refuse(ErrorKind::NotBijective, message, "each element of C has one holder".into());
            }
            *slot = i + 1;
        }
        if let Some(free) = holder.iter().position(|h| *h == 0) {
            let message = format!("gives element {free} of {matrix} to no thread");
            let help = format!(
                "{} of {} must reach all {size} elements",
                plural(threads, "thread", "threads"),
                plural(pairs / threads, "value", "values")
            );
            return refuse(ErrorKind::NotBijective, message, help);
        }
        Ok(())
    }

    /// The operands as projections of (M,N,K), under the names that expressions have for them: `A` is `(1,X,1)`.
    pub fn operands() -> impl Iterator<Item = (&'static str, Value)> {
        Operand::ALL.into_iter().map(|operand| {
            let entry = |k| if operand.modes().contains(&k) { Value::Int(1.into()) } else { Value::Skip };
            (operand.name(), Value::Tuple((0..3).map(entry).collect()))
        })
    }
}

/// The size of a layout whose numbers must all be known now; none is empty.
fn count(op: &'static str, a: &Layout) -> Result<i64> {
    let n = if a.is_static() { a.size().map_err(|e| e.of(op))?.as_const() } else { None };
    match n {
        Some(n) if n > 0 => Ok(n),
        Some(_) => Err(LayoutError::new(ErrorKind::Domain, op, format!("{a} is empty"))),
        None => Err(LayoutError::new(ErrorKind::Kind, op, format!("{a} must be known when the kernel is compiled"))),
    }
}

/// Atoms side by side over threads, and each thread's repetitions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TiledMma {
    /// What is tiled.
    pub atom: Arc<MmaAtom>,
    /// Atoms in M, N and K (rank 3).
    pub atoms: Layout,
    /// The extent in M, N and K that one call covers, and its order there; one entry each (`_`: as much as the atoms).
    pub tiler: [Tiler; 3],
}

impl TiledMma {
    /// Tiles an atom. `atoms` must number the atoms of a rank-3 shape from 0 on, each once. An entry of the tiler is at
    /// least as many elements as the atoms have in its mode, and a multiple; a layout in it reorders them.
    pub fn new(atom: Arc<MmaAtom>, atoms: Layout, tiler: [Tiler; 3]) -> Result<TiledMma> {
        const OP: &str = "tiled_mma";
        atom.check().map_err(|e| e.in_arg(0))?;
        if atoms.rank() != 3 || atoms.is_leaf() {
            let message = format!("the atoms {atoms} have {}, not three", plural(atoms.rank(), "mode", "modes"));
            return Err(LayoutError::new(ErrorKind::Profile, OP, message)
                .in_arg(1)
                .with_help("give the numbers of atoms in M, N and K: (2,2,1)"));
        }
        let sides = count(OP, &atoms).map_err(|e| e.in_arg(1))?;
        if !ops::is_bijection(&Cx::default(), &atoms).map_err(|e| e.of(OP).in_arg(1))? {
            let message = format!("{atoms} does not number the {sides} atoms 0 to {}, each once", sides - 1);
            return Err(LayoutError::new(ErrorKind::NotBijective, OP, message)
                .in_arg(1)
                .with_help(format!("{} does", ops::compact(atoms.shape())?)));
        }
        let mma = TiledMma { atom, atoms, tiler };
        let mut total = 1i64;
        for (k, mode) in MODES.into_iter().enumerate() {
            let at = |e: LayoutError| e.in_arg(2).at(Path(vec![k]));
            let (each, side) = (mma.atom.shape[k], mma.side(k)?);
            let Some(least) = each.checked_mul(side) else {
                return Err(LayoutError::overflow("*", &each.into(), &side.into()).of(OP).in_arg(1));
            };
            let tile = match &mma.tiler[k] {
                Tiler::Keep => least,
                Tiler::Extent(n) => match n.as_const() {
                    Some(n) => n,
                    None => {
                        let message = format!("tiler {n} in mode {mode} must be known when the kernel is compiled");
                        return Err(at(LayoutError::new(ErrorKind::Kind, OP, message)));
                    }
                },
                Tiler::Layout(l) => {
                    let n = count(OP, l).map_err(at)?;
                    if !ops::is_bijection(&Cx::default(), l).map_err(|e| at(e.of(OP)))? {
                        let message = format!("tiler {l} in mode {mode} is no order of the elements 0 to {}", n - 1);
                        let help = "a layout here says in which order the mode's elements go to the atoms, each once";
                        return Err(at(LayoutError::new(ErrorKind::NotBijective, OP, message).with_help(help)));
                    }
                    n
                }
                tiler @ Tiler::ByMode(_) => {
                    let message = format!("tiler {tiler} in mode {mode} has modes of its own");
                    let help = "give an extent, a layout or `_` for each of M, N and K";
                    return Err(at(LayoutError::new(ErrorKind::Profile, OP, message).with_help(help)));
                }
            };
            if tile < 1 || tile % least != 0 {
                let message =
                    format!("tiler {} in mode {mode} is no multiple of {each} * {side} = {least}", mma.tiler[k]);
                let (below, above) = (tile / least * least, (tile / least).max(0).checked_add(1));
                let above = above.and_then(|n| n.checked_mul(least)).map_or(String::new(), |n| n.to_string());
                let help =
                    if below > 0 { format!("{below} or {above} would fit") } else { format!("{above} would fit") };
                return Err(at(LayoutError::new(ErrorKind::Divisibility, OP, message).with_help(help)));
            }
            total = total.checked_mul(tile).ok_or_else(|| {
                LayoutError::new(ErrorKind::Overflow, OP, "the tile's extents together do not fit 64 bits").in_arg(2)
            })?;
        }
        // Threads must be countable too.
        mma.threads_fill()?;
        Ok(mma)
    }

    /// Atoms side by side in mode `k` of M, N, K.
    pub fn side(&self, k: usize) -> Result<i64> {
        let mode = self.atoms.mode(k).ok_or_else(|| no_mode("tiled_mma", k))?;
        count("tiled_mma", &mode)
    }

    /// What one call covers in mode `k` of M, N, K.
    pub fn tile_size(&self, k: usize) -> Result<i64> {
        let tiler = self.tiler.get(k).ok_or_else(|| no_mode("tile_size", k))?;
        match tiler.size()?.and_then(|n| n.as_const()) {
            Some(n) => Ok(n),
            // `new` has seen that it fits.
            None => Ok(self.atom.shape[k].saturating_mul(self.side(k)?)),
        }
    }

    /// How many times the atom is executed for one tile, over all threads.
    pub fn atom_count(&self) -> Result<i64> {
        (0..3).try_fold(1, |n, k| Ok(n * (self.tile_size(k)? / self.atom.shape[k])))
    }

    /// (thread of the atom, atom in M, in N, in K) -> thread of the machine.
    pub fn thr_layout_vmnk(&self) -> Result<Layout> {
        let tiler = Tiler::Layout(self.atoms.clone());
        ops::tiled_product(&Cx::default(), &self.atom.thr, &tiler).map_err(|e| e.of("thr_layout_vmnk"))
    }

    /// The tile's shape in M, N and K.
    pub fn tile_shape(&self) -> Result<IntTuple> {
        let sizes = (0..3).map(|k| self.tile_size(k).map(|n| Tuple::Leaf(n.into())));
        Ok(Tuple::Node(sizes.collect::<Result<_>>()?))
    }
}

fn no_mode(op: &'static str, k: usize) -> LayoutError {
    LayoutError::new(ErrorKind::OutOfRange, op, format!("there is no mode {k}"))
        .with_help("M is mode 0, N is 1, K is 2")
}

impl fmt::Display for TiledMma {
    /// `tiled_mma(NAME, (2,2,1):(1,2,4), <32,32,16>)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = &self.tiler;
        write!(f, "tiled_mma({}, {}, <{m},{n},{k}>)", self.atom.name, self.atoms)
    }
}
