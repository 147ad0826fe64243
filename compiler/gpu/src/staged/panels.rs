//! Panels of staged products: from memory through registers to a stage of shared memory, and from there into sums.

use super::{DEPTH, GROUP, Operand, PART, Stage, Tile, Tiling};
use crate::emit::Emit;
use crate::memory::{GpuAddress, Index};
use ptoc_ir::loops::{LTy, MemTy, Stride};
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};

/// Four neighbours of an operand that a thread brings.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// The first along the side, inside the macro-tile, and along k, inside the panel.
    pub(super) side: VReg,
    pub(super) k: VReg,
}

/// How panels are loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetch {
    /// By vectors: all is inside, and aligned.
    Vectors,
    /// One by one, from no place beyond the last row, column or k.
    Elements,
}

impl Emit<'_> {
    /// The number of whole panels.
    pub(super) fn whole_panels(&mut self, s: &Stage<'_, '_>) -> VReg {
        let k = self.b.arith(Arith::Max, Type::S64, &[s.p.k, Src::Imm(0)]);
        self.b.arith(Arith::Shr, Type::U64, &[k.into(), Src::Imm(u64::from(DEPTH.ilog2()))])
    }

    /// The thread's pieces of a panel. Neighbouring threads have neighbouring pieces along the dimension in which the
    /// operand's elements are neighbours.
    pub(super) fn pieces(&mut self, o: &Operand, tiling: Tiling) -> Vec<Piece> {
        let threads = tiling.threads();
        let near = if o.deep() { DEPTH / GROUP } else { o.size / GROUP };
        let count = o.size * DEPTH / GROUP / threads;
        let mut all = Vec::new();
        for n in 0..count {
            let number = self.b.arith(Arith::Add, Type::U32, &[self.tid.into(), Src::Imm(n * threads)]);
            let x = self.b.arith(Arith::And, Type::B32, &[number.into(), Src::Imm(near - 1)]);
            let x = self.b.arith(Arith::MulLo, Type::U32, &[x.into(), Src::Imm(GROUP)]);
            let y = self.b.arith(Arith::Shr, Type::U32, &[number.into(), Src::Imm(u64::from(near.ilog2()))]);
            let (side, k) = if o.deep() { (y, x) } else { (x, y) };
            all.push(Piece { side, k });
        }
        all
    }

    /// All whole panels.
    pub(super) fn panels(&mut self, s: &Stage<'_, '_>, tile: &Tile, fetch: Fetch) {
        let exit = self.b.label();
        let panels = self.whole_panels(s);
        let none = self.b.setp(Cmp::Eq, Type::U64, panels, Src::Imm(0));
        self.b.bra_if(none, true, exit);
        // Where the next panel of each piece is.
        let mut walks: [Vec<GpuAddress>; 2] = [Vec::new(), Vec::new()];
        if fetch == Fetch::Vectors {
            for (n, walks) in walks.iter_mut().enumerate() {
                for piece in self.pieces(&s.operands[n], s.tiling) {
                    let place = self.piece(s, tile, n, &piece, Src::Imm(0));
                    walks.push(self.walking(place));
                }
            }
        }
        let steps = [0, 1].map(|n| self.step_of(s.operands[n].along_k));
        let k = self.variable(LTy::I64, Src::Imm(0));
        let first = self.fetch(s, tile, &walks, fetch, k);
        self.put(s, tile.stage, &first);
        self.b.push(Ptx::Bar(0), &[], &[]);
        let left = self.low(panels);
        let left = self.variable(LTy::I32, left.into());
        let (head, only) = (self.b.label(), self.b.label());
        self.b.place(head);
        self.advance(left, Type::U32, Src::Imm(u64::from(u32::MAX)));
        let more = self.b.setp(Cmp::Ne, Type::U32, left, Src::Imm(0));
        self.b.bra_if(more, false, only);
        for (walks, step) in walks.iter().zip(steps) {
            for walk in walks {
                self.advance_place(*walk, step);
            }
        }
        if fetch == Fetch::Elements {
            self.advance(k, Type::U64, Src::Imm(DEPTH));
        }
        let fetched = self.fetch(s, tile, &walks, fetch, k);
        for step in 0..DEPTH {
            self.step(s, tile, tile.stage, step);
        }
        let other = self.other_stage(s, tile.stage);
        self.put(s, other, &fetched);
        self.b.push(Ptx::Bar(0), &[], &[]);
        self.b.set(tile.stage, Type::B32, other);
        self.b.bra(head);
        self.b.place(only);
        for step in 0..DEPTH {
            self.step(s, tile, tile.stage, step);
        }
        let other = self.other_stage(s, tile.stage);
        self.b.set(tile.stage, Type::B32, other);
        self.b.place(exit);
    }

    /// The start of the stage that is not this one.
    pub(super) fn other_stage(&mut self, s: &Stage<'_, '_>, stage: VReg) -> VReg {
        let both = self.b.arith(Arith::MadLo, Type::U32, &[s.base.into(), Src::Imm(2), Src::Imm(s.tiling.stage())]);
        self.b.arith(Arith::Sub, Type::U32, &[both.into(), stage.into()])
    }

    /// What is left of k behind the last whole panel, in the stage that nobody reads any more.
    pub(super) fn last_panel(&mut self, s: &Stage<'_, '_>, tile: &Tile) {
        let exit = self.b.label();
        let k = self.b.arith(Arith::Max, Type::S64, &[s.p.k, Src::Imm(0)]);
        let rest = self.b.arith(Arith::And, Type::B64, &[k.into(), Src::Imm(DEPTH - 1)]);
        let none = self.b.setp(Cmp::Eq, Type::U64, rest, Src::Imm(0));
        self.b.bra_if(none, true, exit);
        let panels = self.whole_panels(s);
        let k = self.u64(Arith::MulLo, panels, Src::Imm(DEPTH));
        let fetched = self.fetch(s, tile, &[Vec::new(), Vec::new()], Fetch::Elements, k);
        self.put(s, tile.stage, &fetched);
        self.b.push(Ptx::Bar(0), &[], &[]);
        let at = self.variable(LTy::I32, tile.stage.into());
        let step = self.variable(LTy::I64, Src::Imm(0));
        let (head, done) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, step, rest);
        self.b.bra_if(over, true, done);
        // Rows of both panels have their own length, so each has its own place.
        let places = [0, 1].map(|n| {
            let row = Src::Imm(4 * s.operands[n].row());
            let step = self.low(step);
            let start = self.b.arith(Arith::Add, Type::U32, &[at.into(), s.reads[n].into()]);
            self.b.arith(Arith::MadLo, Type::U32, &[step.into(), row, start.into()])
        });
        self.products(s, tile, places, [0, 0]);
        self.advance(step, Type::U64, Src::Imm(1));
        self.b.bra(head);
        self.b.place(done);
        self.b.place(exit);
    }

    /// The place of a piece whose panel begins at k = `from`.
    pub(super) fn piece(&mut self, s: &Stage<'_, '_>, tile: &Tile, n: usize, piece: &Piece, from: Src) -> GpuAddress {
        let o = &s.operands[n];
        let side = self.number(tile.from[n], piece.side, o.extent, 0);
        let place = self.along(o.place, side, o.along_side);
        let k = self.b.cvt(Type::U64, Type::U32, Round::None, piece.k);
        let k = self.u64(Arith::Add, k, from);
        let k = (self.low(k), k);
        self.along(place, k, o.along_k)
    }

    /// `from + within + plus`, no more than the last.
    pub(super) fn number(&mut self, from: Src, within: VReg, extent: Src, plus: u64) -> Index {
        let within = self.b.cvt(Type::U64, Type::U32, Round::None, within);
        let at = self.u64(Arith::Add, within, from);
        let at = self.u64(Arith::Add, at, Src::Imm(plus));
        let last = self.b.arith(Arith::Sub, Type::S64, &[extent, Src::Imm(1)]);
        let at = self.b.arith(Arith::Min, Type::S64, &[at.into(), last.into()]);
        (self.low(at), at)
    }

    /// Loads the thread's pieces of the panel at `k`.
    pub(super) fn fetch(
        &mut self,
        s: &Stage<'_, '_>,
        tile: &Tile,
        walks: &[Vec<GpuAddress>; 2],
        fetch: Fetch,
        k: VReg,
    ) -> [Vec<Vec<VReg>>; 2] {
        [0, 1].map(|n| {
            let o = &s.operands[n];
            let mut all = Vec::new();
            for (number, piece) in self.pieces(o, s.tiling).iter().enumerate() {
                all.push(match fetch {
                    Fetch::Vectors => self.load_vector(o.ty, walks[n][number], GROUP),
                    Fetch::Elements => (0..GROUP).map(|e| self.fetch_one(s, tile, n, piece, e, k)).collect(),
                });
            }
            all
        })
    }

    pub(super) fn fetch_one(
        &mut self,
        s: &Stage<'_, '_>,
        tile: &Tile,
        n: usize,
        piece: &Piece,
        e: u64,
        from: VReg,
    ) -> VReg {
        let o = &s.operands[n];
        let (plus_side, plus_k) = if o.deep() { (0, e) } else { (e, 0) };
        let side = self.number(tile.from[n], piece.side, o.extent, plus_side);
        let k = self.number(from.into(), piece.k, s.p.k, plus_k);
        let place = self.along(o.place, side, o.along_side);
        let place = self.along(place, k, o.along_k);
        self.load(o.ty, place)
    }

    /// Stores pieces to a stage, k by k.
    pub(super) fn put(&mut self, s: &Stage<'_, '_>, stage: VReg, fetched: &[Vec<Vec<VReg>>; 2]) {
        let word = word(s.p.c.ab_ty);
        for ((o, puts), fetched) in s.operands.iter().zip(&s.puts).zip(fetched) {
            for (to, values) in puts.iter().zip(fetched) {
                let reg = self.b.arith(Arith::Add, Type::U32, &[stage.into(), (*to).into()]);
                let place = GpuAddress { space: Space::Shared, reg, disp: 0 };
                if o.deep() {
                    for (e, value) in values.iter().enumerate() {
                        let place = GpuAddress { disp: (4 * o.row() * e as u64) as i32, ..place };
                        self.store(word, place, *value, None);
                    }
                } else {
                    self.store_vector(word, place, values);
                }
            }
        }
    }

    /// One step of k from a stage.
    pub(super) fn step(&mut self, s: &Stage<'_, '_>, tile: &Tile, stage: VReg, step: u64) {
        let places = [0, 1].map(|n| self.b.arith(Arith::Add, Type::U32, &[stage.into(), s.reads[n].into()]));
        let disps = [0, 1].map(|n| (4 * s.operands[n].row() * step) as i32);
        self.products(s, tile, places, disps);
    }

    pub(super) fn products(&mut self, s: &Stage<'_, '_>, tile: &Tile, places: [VReg; 2], disps: [i32; 2]) {
        let ty = word(s.p.c.ab_ty);
        let [x, y] = [0, 1].map(|n| {
            let mut values = Vec::new();
            for group in 0..PART / GROUP {
                let apart = 4 * group * s.operands[n].size / 2;
                let place = GpuAddress { space: Space::Shared, reg: places[n], disp: disps[n] + apart as i32 };
                values.extend(self.load_vector(ty, place, GROUP));
            }
            values
        });
        let multiply = match ty {
            MemTy::F32 => Ptx::Arith(Arith::Fma, Type::F32),
            _ => Ptx::Arith(Arith::MadLo, Type::S32),
        };
        for (n, sum) in tile.sums.iter().enumerate() {
            let (x, y) = (x[n / PART as usize], y[n % PART as usize]);
            self.b.push(multiply, &[*sum], &[x.into(), y.into(), (*sum).into()]);
        }
    }

    /// Bytes from one panel to the next.
    pub(super) fn step_of(&mut self, stride: Stride) -> Src {
        match stride {
            Stride::Const(n) => Src::Imm((n * DEPTH as i64) as u64),
            Stride::Reg(reg) => {
                let reg = self.reg(reg);
                self.u64(Arith::MulLo, reg, Src::Imm(DEPTH)).into()
            }
        }
    }

    pub(super) fn advance_place(&mut self, place: GpuAddress, by: Src) {
        match (place.space, by) {
            (Space::Shared, Src::Reg(by)) => {
                let by = self.low(by).into();
                self.advance(place.reg, Type::U32, by);
            }
            (Space::Shared, by) => self.advance(place.reg, Type::U32, by),
            (_, by) => self.advance(place.reg, Type::U64, by),
        }
    }
}

/// The type of elements in panels.
fn word(ty: MemTy) -> MemTy {
    if ty.reg() == LTy::F32 { MemTy::F32 } else { MemTy::I32 }
}
