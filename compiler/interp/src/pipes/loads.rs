//! The bytes that a pipe has moved, held against those that are said to have come at a transaction barrier.
//!
//! `complete(b, n)` announces to the barrier what the loads before it have brought. Which loads it speaks of nobody
//! writes, so some of them must add up to `n`: of those that the same pipe of the same role has issued since its last
//! `complete`, in the same iteration of the loops around that. Each counts with all that its window can hold, or with
//! what is valid of it. Where there are none, nothing is said: the bytes may have come earlier.

use super::clocks::Stamp;
use ptoc_ir::tile::{Kernel, Label, NestAccess, Op, Operand, TileRef, Value};
use ptoc_isa::Role;
use ptoc_tensor::DType;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Loads between two `complete` that are followed; more are not judged.
const MOST: usize = 10;

/// One write of a tile: where, and how many bytes the window takes, in all and as far as it is valid.
struct Load {
    loops: Rc<[(Label, i64)]>,
    bytes: u64,
    valid: u64,
}

/// By stream, what was loaded since its last `complete`.
#[derive(Default)]
pub(super) struct Loads {
    streams: Vec<Vec<Load>>,
}

impl Loads {
    /// `streams` is the number of streams; 0 if no barrier counts bytes.
    pub fn new(streams: usize) -> Loads {
        Loads { streams: (0..streams).map(|_| Vec::new()).collect() }
    }

    /// Whether any barrier counts bytes.
    pub fn counted(&self) -> bool {
        !self.streams.is_empty()
    }

    /// An instruction was issued; `number` is what a value is.
    pub fn note(
        &mut self,
        (kernel, op, stamp): (&Kernel, &Op, Stamp),
        loops: &Rc<[(Label, i64)]>,
        number: &dyn Fn(Value) -> i64,
    ) {
        let Some(list) = self.streams.get_mut(stamp.stream as usize) else { return };
        for_each_written(op, &mut |tile| {
            // One more than is judged shows that there are too many.
            if list.len() > MOST {
                list.remove(0);
            }
            let extent = |v: Value, most: u32| number(v).clamp(0, i64::from(most)) as u32;
            let (rows, cols) = (extent(tile.valid.0, tile.rows), extent(tile.valid.1, tile.cols));
            let bytes = |rows, cols| window_bytes(kernel, &TileRef { rows, cols, ..*tile });
            list.push(Load { loops: loops.clone(), bytes: bytes(tile.rows, tile.cols), valid: bytes(rows, cols) });
        });
    }

    /// `said` bytes are said to have come. What the windows of the loads can hold, where no choice of them adds up to
    /// that.
    pub fn complete(&mut self, stamp: Stamp, said: i64, loops: &[(Label, i64)]) -> Option<Vec<u64>> {
        let list = std::mem::take(self.streams.get_mut(stamp.stream as usize)?);
        let here = list.iter().filter(|load| load.loops.starts_with(loops));
        let here: Vec<&Load> = here.collect();
        if here.is_empty() || here.len() > MOST {
            return None;
        }
        let mut sums = BTreeSet::from([0u64]);
        for load in &here {
            let with = |n: u64| move |sum: &u64| sum.saturating_add(n);
            let more: Vec<u64> = sums.iter().map(with(load.bytes)).chain(sums.iter().map(with(load.valid))).collect();
            sums.extend(more);
        }
        // Nothing can come of loads of which nothing is valid.
        let adds_up = u64::try_from(said)
            .is_ok_and(|said| sums.contains(&said) && (said > 0 || here.iter().any(|l| l.valid == 0)));
        (!adds_up).then(|| here.iter().map(|l| l.bytes).collect())
    }
}

/// The tiles that an instruction moves something into.
fn for_each_written(op: &Op, f: &mut dyn FnMut(&TileRef)) {
    match op {
        Op::Inst(inst) => {
            for (spec, operand) in inst.instr.get().operands.iter().zip(&inst.operands) {
                if let (Role::Dst, Operand::Tile(t)) = (spec.role, operand) {
                    f(t);
                }
            }
        }
        Op::Copy(copy) => {
            if let NestAccess::Tile { tile, .. } = &copy.dst {
                f(tile);
            }
        }
        _ => {}
    }
}

/// Bytes of a window from the tile's first element on.
fn window_bytes(kernel: &Kernel, t: &TileRef) -> u64 {
    let ty = kernel.tiles[t.tile].ty;
    if (t.rows, t.cols) == (ty.rows, ty.cols) && ty.layout.is_none() {
        return ty.bytes();
    }
    let (rows, cols) = (u64::from(t.rows), u64::from(t.cols));
    match (ty.dtype, ty.layout) {
        (DType::Bool, _) => rows * cols.div_ceil(8),
        (dtype, None) => rows * cols * dtype.size() as u64,
        // A layout may put several elements in one place.
        (dtype, Some(_)) => {
            let all = (0..t.rows).flat_map(|i| (0..t.cols).map(move |j| ty.element(i, j)));
            all.collect::<BTreeSet<_>>().len() as u64 * dtype.size() as u64
        }
    }
}
