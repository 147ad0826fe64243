//! Copies and matrix products along nests.

use super::clusters::Window;
use super::machine::Machine;
use super::nest::{BoundSide, Limit, Spot, for_each_point, points};
use super::traffic::{Conflict, Home, Traffic};
use super::trap::Trap;
use super::wording::{self, Meeting};
use ptoc_diagnostics::codes;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Copy, Elem, Mma, NestAccess, TensorId, Ty};
use ptoc_tensor::DType;
use std::ops::Range;

type TrapResult<T = ()> = Result<T, Trap>;

impl Machine<'_, '_> {
    pub(super) fn copy(&mut self, copy: &Copy) -> TrapResult {
        *self.stats.instructions.entry("copy").or_default() += 1;
        let extents = self.extents(&copy.extents, "copy")?;
        let count = points(&extents);
        self.spend(count)?;
        let (dst, src) = (self.side(&copy.dst)?, self.side(&copy.src)?);
        let guards = self.limits(&copy.guards);
        if let BoundSide::Tensor { tensor, at, tables, .. } = &src
            && tables.is_empty()
        {
            let guards: Vec<i64> = guards.iter().flat_map(Limit::numbers).collect();
            self.loads(|| Window::new(*tensor, &[&[at.start], &at.strides, &extents, &guards]));
        }
        let fill = copy.fill.map(|v| self.get(v));
        let mut watch = self.watch(&dst, &[&src], count);
        let mut tally = Tally::default();
        let meets = self.home(&src).meets(&watch.home);
        for_each_point(&extents, |point| {
            let value = match guards.iter().all(|g| g.holds(point)) {
                true => self.read_point((&src, meets), point, &mut watch, &mut tally)?.or(fill),
                false => fill,
            };
            let Some(bits) = value else { return Ok(()) };
            let spot = self.spot(&dst, point, &mut |t, bytes| watch.table(t, bytes))?;
            self.note_write(&dst, spot, &mut watch, "copy")?;
            self.put_at(&dst, spot, bits)?;
            if let (BoundSide::Tile { window, .. }, Spot::Tile(r, c)) = (&dst, spot) {
                tally.moved += window.slot.ty.dtype.size() as u64;
                tally.valid += u64::from(r < window.rows && c < window.cols);
            }
            Ok(())
        })?;
        self.stats.bytes_read += tally.halves.div_ceil(2);
        match &dst {
            BoundSide::Tile { window, .. } => {
                if matches!(src, BoundSide::Tile { .. }) {
                    self.stats.bytes_moved += tally.moved;
                }
                let all = (window.rows * window.cols) as u64;
                if copy.covers && tally.valid != all {
                    let message = format!(
                        "a copy that is said to cover tile {} writes {} of its {all} valid elements",
                        self.tile_name(window.tile),
                        tally.valid
                    );
                    return self.trap(codes::TRAP_INVALID_IR, message);
                }
                Ok(())
            }
            BoundSide::Tensor { .. } => Ok(()),
        }
    }

    pub(super) fn mma(&mut self, mma: &Mma) -> TrapResult {
        *self.stats.instructions.entry("mma").or_default() += 1;
        let what = "matrix product";
        let (m, n, k) = (self.extents(&mma.m, what)?, self.extents(&mma.n, what)?, self.extents(&mma.k, what)?);
        let (rows, cols, depth) = (points(&m), points(&n), points(&k));
        let results = rows.saturating_mul(cols);
        self.spend(results.saturating_mul(depth).saturating_add(results))?;
        // The operands are held at once, an element in eight bytes.
        let held = rows.saturating_add(cols).saturating_mul(depth).saturating_mul(8);
        if !self.tiles.has(held) {
            let message = format!("the operands of a {what} need {held} bytes, beyond the limit of the run");
            return self.trap(codes::TRAP_MEMORY_LIMIT, message);
        }
        let (acc, a, b) = (self.side(&mma.acc)?, self.side(&mma.a)?, self.side(&mma.b)?);
        let mut watch = self.watch(&acc, &[&a, &b], results);
        let mut tally = Tally::default();

        let mut point = vec![0i64; m.len() + n.len() + k.len()];
        let (first_n, first_k) = (m.len(), m.len() + n.len());
        let mut operands = [Vec::new(), Vec::new()];
        for (held, side, axes, first) in [(0, &a, &m, 0), (1, &b, &n, first_n)] {
            let meets = self.home(side).meets(&watch.home);
            point.fill(0);
            for_each_point(axes, |outer| {
                point[first..first + outer.len()].copy_from_slice(outer);
                for_each_point(&k, |inner| {
                    point[first_k..].copy_from_slice(inner);
                    let bits = self.read_point((side, meets), &point, &mut watch, &mut tally)?;
                    operands[held].push(bits.unwrap_or(0));
                    Ok(())
                })
            })?;
        }
        self.stats.bytes_read += tally.halves.div_ceil(2);

        let dtype = |m: &Self, access: &NestAccess| match access {
            NestAccess::Tile { tile, .. } => m.k.tiles[tile.tile].ty.dtype,
            NestAccess::Tensor { elem, .. } => elem.dtype(),
        };
        let chain = Chain { acc: dtype(self, &mma.acc), operand: dtype(self, &mma.a) };
        let row = |data: &[u64], at: u64| -> Vec<u64> {
            let depth = depth as usize;
            data[at as usize * depth..(at as usize + 1) * depth].to_vec()
        };
        point.fill(0);
        let mut i = 0;
        for_each_point(&m, |outer| {
            point[..first_n].copy_from_slice(outer);
            let (left, mut j) = (row(&operands[0], i), 0);
            i += 1;
            for_each_point(&n, |inner| {
                point[first_n..first_k].copy_from_slice(inner);
                let right = row(&operands[1], j);
                j += 1;
                let spot = self.spot(&acc, &point, &mut |t, bytes| watch.table(t, bytes))?;
                let start = self.fetch(&acc, spot)?;
                self.note_write(&acc, spot, &mut watch, what)?;
                self.put_at(&acc, spot, chain.run(start, &left, &right))
            })
        })
    }

    /// Reads the element of a point, if there is one; `meets`: perhaps from storage that the nest writes.
    fn read_point(
        &mut self,
        (side, meets): (&BoundSide, bool),
        point: &[i64],
        watch: &mut Watch,
        tally: &mut Tally,
    ) -> TrapResult<Option<u64>> {
        let spot = self.spot(side, point, &mut |t, bytes| watch.table(t, bytes))?;
        if spot == Spot::Nothing {
            return Ok(None);
        }
        let bits = self.fetch(side, spot)?;
        tally.halves += u64::from(matches!(side, BoundSide::Tensor { elem: Elem::U4 | Elem::I4, .. }));
        if meets && !watch.traffic.read(self.footprint(side, spot)) {
            return self.fault(wording::conflict(&self.describe(side, spot), Meeting::Read, ""));
        }
        Ok(Some(bits))
    }

    /// Notes that an element is going to be written.
    fn note_write(&mut self, side: &BoundSide, spot: Spot, watch: &mut Watch, what: &str) -> TrapResult {
        // An element outside is reported by the write itself.
        let bytes = self.footprint(side, spot);
        match watch.traffic.write(bytes) {
            Ok(()) => Ok(()),
            Err(conflict) => {
                let how = match conflict {
                    Conflict::Twice => Meeting::Twice,
                    Conflict::ReadToo => Meeting::ReadToo,
                };
                self.fault(wording::conflict(&self.describe(side, spot), how, what))
            }
        }
    }

    fn watch(&self, dst: &BoundSide, sources: &[&BoundSide], writes: u64) -> Watch {
        let home = self.home(dst);
        let written = match dst {
            BoundSide::Tensor { tensor, .. } => Some(*tensor),
            BoundSide::Tile { .. } => None,
        };
        let looked_up = |side: &BoundSide| match side {
            BoundSide::Tensor { tables, .. } => tables.iter().any(|t| Some(t.tensor) == written),
            BoundSide::Tile { .. } => false,
        };
        let shared = sources.iter().any(|s| self.home(s).meets(&home) || looked_up(s)) || looked_up(dst);
        Watch { traffic: Traffic::new(&home, writes, shared), home, written }
    }
}

/// What is noted of the places of a nest.
struct Watch {
    traffic: Traffic,
    /// Where the nest writes.
    home: Home,
    /// The tensor that is written.
    written: Option<TensorId>,
}

impl Watch {
    /// An entry of a table is read. False if it has been written.
    fn table(&mut self, tensor: TensorId, bytes: Range<u64>) -> bool {
        Some(tensor) != self.written || self.traffic.read(bytes)
    }
}

#[derive(Default)]
struct Tally {
    /// Half bytes that were read.
    halves: u64,
    /// Bytes that were written to a tile.
    moved: u64,
    /// Elements of the valid part that were written.
    valid: u64,
}

/// The arithmetic of a matrix product.
struct Chain {
    acc: DType,
    operand: DType,
}

impl Chain {
    /// `start + sum of a[k] * b[k]`, k ascending.
    fn run(&self, start: u64, a: &[u64], b: &[u64]) -> u64 {
        let pairs = a.iter().zip(b);
        if self.acc.is_float() {
            let x = |bits: &u64| scalar::to_f32(self.operand, *bits);
            pairs.fold(start, |s, (a, b)| scalar::from_f32(self.acc, x(a).mul_add(x(b), scalar::to_f32(self.acc, s))))
        } else {
            let x = |bits: &u64| scalar::to_int(Ty::D(self.operand), *bits) as i32;
            let sum = pairs.fold(start as u32 as i32, |s, (a, b)| s.wrapping_add(x(a).wrapping_mul(x(b))));
            u64::from(sum as u32)
        }
    }
}
