//! Where the sums of staged products start, and where they go.

use super::{GROUP, PART, Stage, Tile};
use crate::emit::Emit;
use crate::memory::Index;
use crate::vectors::LowBits;
use ptoc_ir::loops::Stride;
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Round, Src, Type, VReg};

impl Emit<'_> {
    /// The row or column of the n-th of a thread's part, and whether it is inside.
    pub(super) fn of_part(&mut self, s: &Stage<'_, '_>, from: [Src; 2], side: usize, n: u64) -> (Index, VReg) {
        let part = self.part(s.tiling)[side];
        let extent = s.operands[side].extent;
        let plus = n / GROUP * s.operands[side].size / 2 + n % GROUP;
        let within = self.b.cvt(Type::U64, Type::U32, Round::None, part);
        let at = self.u64(Arith::Add, within, from[side]);
        let at = self.u64(Arith::Add, at, Src::Imm(plus));
        let inside = self.b.setp(Cmp::Lt, Type::S64, at, extent);
        ((self.low(at), at), inside)
    }

    /// Where the sums start.
    pub(super) fn starts(&mut self, s: &Stage<'_, '_>, from: [Src; 2]) -> Vec<VReg> {
        let ty = s.p.c.ab_ty.reg();
        let sums: Vec<VReg> = (0..PART * PART).map(|_| self.variable(ty, Src::Imm(0))).collect();
        let Some((place, row, col, start)) = s.p.start else { return sums };
        let cols: Vec<(Index, VReg)> = (0..PART).map(|n| self.of_part(s, from, 1, n)).collect();
        for i in 0..PART {
            let (at, inside_row) = self.of_part(s, from, 0, i);
            let place = self.along(place, at, row);
            for (j, (at, inside)) in cols.iter().enumerate() {
                // Another thread may be writing what lies beyond.
                let skip = self.b.label();
                let inside = self.both(Some(inside_row), *inside);
                self.b.bra_if(inside, false, skip);
                let place = self.along(place, *at, col);
                let value = self.load(start, place);
                self.b.set(sums[i as usize * PART as usize + j], crate::emit::whole(ty), value);
                self.b.place(skip);
            }
        }
        sums
    }

    /// Stores the sums: whole groups at once, where the macro-tile is inside and they are aligned.
    pub(super) fn finish(&mut self, s: &Stage<'_, '_>, tile: &Tile, inside: Option<VReg>) {
        let c = s.p.c;
        let cols: Vec<(Index, VReg)> = (0..PART).map(|n| self.of_part(s, tile.from, 1, n)).collect();
        let (apart, done) = (self.b.label(), self.b.label());
        let together = c.d_strides.1 == Stride::Const(i64::from(c.d_ty.size())) && u64::from(c.d_ty.size()) <= 4;
        if together && let Some(inside) = inside {
            let aligned = self.group_aligned(s, tile);
            let all = self.both(aligned, inside);
            self.b.bra_if(all, false, apart);
            for i in 0..PART {
                let (at, _) = self.of_part(s, tile.from, 0, i);
                let row = self.along(s.p.d, at, c.d_strides.0);
                for group in 0..PART / GROUP {
                    let first = (group * GROUP) as usize;
                    let place = self.along(row, cols[first].0, c.d_strides.1);
                    let from = (i * PART) as usize + first;
                    let values = tile.sums[from..from + GROUP as usize].to_vec();
                    self.store_vector(c.d_ty, place, &values);
                }
            }
            self.b.bra(done);
        }
        self.b.place(apart);
        for i in 0..PART {
            let (at, inside_row) = self.of_part(s, tile.from, 0, i);
            let row = self.along(s.p.d, at, c.d_strides.0);
            for (j, (at, inside)) in cols.iter().enumerate() {
                let place = self.along(row, *at, c.d_strides.1);
                let inside = self.both(Some(inside_row), *inside);
                self.store(c.d_ty, place, tile.sums[i as usize * PART as usize + j], Some((inside, true)));
            }
        }
        self.b.place(done);
        // The next macro-tile's first panel goes where this one's last may be read.
        self.b.push(Ptx::Bar(0), &[], &[]);
    }

    /// The predicate that groups of the result are aligned, in all rows.
    pub(super) fn group_aligned(&mut self, s: &Stage<'_, '_>, tile: &Tile) -> Option<VReg> {
        let c = s.p.c;
        let bytes = GROUP * u64::from(c.d_ty.size());
        let first = self.u64(Arith::Add, tile.from[1], Src::Imm(0));
        let first = (self.low(first), first);
        let start = self.along(s.p.d, first, c.d_strides.1);
        let mut bits = LowBits::default();
        self.low_bits(&mut bits, start, bytes);
        self.low_bits_of_stride(&mut bits, c.d_strides.0, bytes);
        self.all_zero(bits)
    }
}
