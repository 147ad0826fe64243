//! Registers of tiles: a thread has 255 at most, so what is alive at once is bounded, and not left to spills.

use super::{Finder, no, ordered};
use crate::contraction::product;
use ptoc_ir::tile::{Op, Region, Stmt, Tile};
use ptoc_isa::Loc;
use ptoc_placement::access::{AccessMode, tile_accesses};
use ptoc_tensor::DType;
use rustc_hash::FxHashSet;

/// Registers of a thread for tiles at most: the others are addresses, scalars, and what instructions need.
const MOST: u32 = 192;
/// The same where all threads of the producer bring windows, and keep more of them for that.
const MOST_BESIDE_THREADS: u32 = 168;

/// Tiles whose elements somebody still reads.
type Live = FxHashSet<Tile>;

/// Registers of a thread for tiles, where all threads of the producer are there, or one.
pub(super) fn room(all_threads: bool) -> u32 {
    if all_threads { MOST_BESIDE_THREADS } else { MOST }
}

impl Finder<'_> {
    /// Tiles that are alive at once have registers: as many as this.
    pub(super) fn fits(&self, region: &Region, all_threads: bool) -> Result<u32, String> {
        let mut most = 0;
        self.before(region, Live::default(), &mut most);
        let room = room(all_threads);
        match most <= room {
            true => Ok(most),
            false => no(format!("tiles take {most} registers of a thread at once, and it has {room} for them")),
        }
    }

    /// Registers of a thread that hold a tile.
    fn registers(&self, tile: Tile) -> u32 {
        let (loc, dtype) = self.ty(tile);
        match self.fragment(tile) {
            _ if loc == Loc::Right || self.loads.iter().any(|l| !l.staged && [l.operand, l.filled].contains(&tile)) => {
                0
            }
            // Copies of other registers are those.
            _ if !self.computed.contains(&tile) => 0,
            // Truth values are used where they are made.
            _ if dtype == DType::Bool => 0,
            // Bytes have 16 bits each.
            Ok(fragment) if dtype.size() == 1 => fragment.elements() / 2,
            Ok(fragment) => fragment.elements() * dtype.size() as u32 / 4,
            Err(_) => 0,
        }
    }

    /// What is alive in front of a region, of what is behind it; `most` is the greatest number of registers.
    fn before(&self, region: &[Stmt], behind: Live, most: &mut u32) -> Live {
        ordered(self.kernel, region).into_iter().rev().fold(behind, |live, stmt| {
            let live = match &stmt.op {
                Op::For(f) => {
                    // Once for the last iteration, once for those in front of it.
                    let first = self.before(&f.body, live.clone(), most);
                    let mut around: Live = live.union(&first).copied().collect();
                    around.extend(self.before(&f.body, around.clone(), most));
                    around
                }
                Op::If(i) => {
                    let mut either = self.before(&i.then, live.clone(), most);
                    either.extend(self.before(&i.els, live, most));
                    either
                }
                _ => self.before_one(stmt, live, most),
            };
            *most = (*most).max(live.iter().map(|t| self.registers(*t)).sum());
            live
        })
    }

    fn before_one(&self, stmt: &Stmt, mut live: Live, most: &mut u32) -> Live {
        let scratch = |t: Tile| matches!(&stmt.op, Op::Inst(inst) if inst.scratch.iter().any(|s| s.tile == t));
        let accesses = tile_accesses(self.kernel, stmt);
        let of = |mode| accesses.iter().filter(move |(m, t)| *m == mode && !scratch(t.tile)).map(|(_, t)| t.tile);
        let results: Live = of(AccessMode::Write).collect();
        if product(&stmt.op).is_some() {
            // Its operands are there until it is done; of other instructions element by element.
            let all: Live = live.iter().copied().chain(results.iter().copied()).chain(of(AccessMode::Read)).collect();
            *most = (*most).max(all.iter().map(|t| self.registers(*t)).sum());
        }
        live.retain(|t| !results.contains(t));
        if let Op::Alloc { tile } = &stmt.op {
            live.remove(tile);
        }
        live.extend(of(AccessMode::Read));
        live
    }
}
