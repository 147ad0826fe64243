//! Row pointers: gathered rows that are read where they are (`Gather::places` of loop IR).
//!
//! A warp looks at a row of indices. Where its elements are neighbours in the table, the row stays there, and its
//! pointer is the offset of its first element; else the row is copied to memory of the device, and its pointer is the
//! distance from the table to that. So readers load from the same kind of memory in both cases. Whether all pointers of
//! a gather are multiples of the widest access is known behind it, in all threads: readers take vectors then.

use crate::dependences::{Key, Touched};
use crate::emit::Emit;
use crate::gather::Gathered;
use crate::memory::Index;
use crate::segments::Segments;
use crate::vectors::{WIDEST, made_in};
use ptoc_ir::loops::{Addr, Base, LTy, Lanes, MemTy, Op, Reg, Region, SpaceId, Stride};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Round, Shfl, Src, Type, VReg};
use rustc_hash::FxHashSet;

/// Lanes of a warp, and all of them as a mask.
const WARP: u64 = 32;
const ALL: u64 = 0xffff_ffff;

/// The segments in which gathers put rows that cannot stay in their tables.
pub(crate) fn displaced(region: &Region, segments: &Segments, out: &mut FxHashSet<Key>) {
    for stmt in region {
        if let Op::Gather(g) = &stmt.op
            && let (Some(_), Base::Space(space)) = (&g.places, g.d.base)
        {
            out.insert(Key::Space(space, segments.find(space, g.d.offset) as u32));
        }
        stmt.op.regions().for_each(|r| displaced(r, segments, out));
    }
}

/// Where the pointer of a row is loaded from, if the register is one: it is the same in all lanes.
pub(crate) fn row_pointer(lanes: &Lanes, reg: Reg) -> Option<&Addr> {
    lanes.body.iter().find_map(|s| match &s.op {
        Op::Load { dst, ty: MemTy::I64, addr } if *dst == reg => {
            let outside = |reg: Reg| !made_in(lanes, reg);
            (addr.stride == Stride::Const(0) && outside(addr.offset) && addr.gather.is_some_and(outside))
                .then_some(addr)
        }
        _ => None,
    })
}

impl Emit<'_> {
    /// Which pointers an address leads to: the space, and the offset that tells gathers of one row apart.
    fn pointers(&self, addr: &Addr, offset: Reg) -> Option<(SpaceId, u64)> {
        let Base::Space(space) = addr.base else { return None };
        Some((space, self.known(offset)?))
    }

    /// The predicate that all pointers of a gather are multiples of the widest access, for a load of one of them.
    pub(crate) fn aligned_pointers(&self, addr: &Addr) -> Option<VReg> {
        self.aligned_rows.get(&self.pointers(addr, addr.gather?)?).copied()
    }

    /// A gather that leaves rows where they are. Ends with a barrier.
    pub(crate) fn row_pointers(&mut self, all: &Gathered<'_>, places: &Addr, step: i64) {
        let to = self.origin_of(places);
        let lane = self.b.arith(Arith::And, Type::B32, &[self.tid.into(), Src::Imm(WARP - 1)]);
        let warp = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(u64::from(WARP.ilog2()))]);
        let [lane64, warp] = [lane, warp].map(|n| self.b.cvt(Type::U64, Type::U32, Round::None, n));
        let leader = self.b.setp(Cmp::Eq, Type::U32, lane, Src::Imm(0));
        let low_bits = self.variable(LTy::I32, Src::Imm(0));
        let row = self.variable(LTy::I64, warp.into());
        let (head, exit) = (self.b.label(), self.b.label());
        let cols = self.b.arith(Arith::Max, Type::S64, &[all.cols, Src::Imm(0)]);
        let empty = self.b.setp(Cmp::Eq, Type::S64, cols, Src::Imm(0));
        self.b.bra_if(empty, true, exit);
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, row, all.rows);
        self.b.bra_if(over, true, exit);
        let i = (self.low(row), row);
        let pointer = self.row_pointer_of(all, i, lane64);
        let place = self.along(to, i, Stride::Const(step));
        self.store(MemTy::I64, place, pointer, Some((leader, true)));
        let low = self.low(pointer);
        self.b.push(Ptx::Arith(Arith::Or, Type::B32), &[low_bits], &[low_bits.into(), low.into()]);
        self.advance(row, Type::S64, Src::Imm(u64::from(self.threads) / WARP));
        self.b.bra(head);
        self.b.place(exit);
        let low = self.b.arith(Arith::And, Type::B32, &[low_bits.into(), Src::Imm(WIDEST - 1)]);
        let unaligned = self.b.setp(Cmp::Ne, Type::U32, low, Src::Imm(0));
        let any = self.b.reg(Class::Pred);
        self.b.push(Ptx::BarOr(0), &[any], &[unaligned.into()]);
        self.pending = Touched::default();
        if let Some(key) = self.pointers(places, places.offset) {
            let aligned = self.b.arith(Arith::Not, Type::Pred, &[any.into()]);
            self.aligned_rows.insert(key, aligned);
        }
    }

    /// The pointer of a row, in all lanes of the warp that has it; where the row cannot stay, its elements are copied.
    fn row_pointer_of(&mut self, all: &Gathered<'_>, i: Index, lane: VReg) -> VReg {
        let g = all.g;
        let size = u64::from(g.ty.size());
        let zero = self.b.mov(Type::B64, Src::Imm(0));
        let zero = (self.low(zero), zero);
        let start = self.asked(all, i, zero);
        let differs = self.variable(LTy::I32, Src::Imm(0));
        let lanes = |e: &mut Self, body: &mut dyn FnMut(&mut Self, Index)| {
            let col = e.variable(LTy::I64, lane.into());
            let (head, exit) = (e.b.label(), e.b.label());
            e.b.place(head);
            let over = e.b.setp(Cmp::Ge, Type::S64, col, all.cols);
            e.b.bra_if(over, true, exit);
            let j = (e.low(col), col);
            body(e, j);
            e.advance(col, Type::S64, Src::Imm(WARP));
            e.b.bra(head);
            e.b.place(exit);
        };
        lanes(self, &mut |e, j| {
            let asked = e.asked(all, i, j);
            let expected = e.b.arith(Arith::Add, Type::U32, &[start.into(), j.0.into()]);
            let bits = e.b.arith(Arith::Xor, Type::B32, &[asked.into(), expected.into()]);
            e.b.push(Ptx::Arith(Arith::Or, Type::B32), &[differs], &[differs.into(), bits.into()]);
        });
        for distance in [16, 8, 4, 2, 1] {
            let theirs = self.b.reg(Class::B32);
            let srcs = [differs.into(), Src::Imm(distance), Src::Imm(31), Src::Imm(ALL)];
            self.b.push(Ptx::Shfl(Shfl::Bfly), &[theirs], &srcs);
            self.b.push(Ptx::Arith(Arith::Or, Type::B32), &[differs], &[differs.into(), theirs.into()]);
        }
        let first = self.widened_index(g, start);
        let last = self.u64(Arith::Add, first, all.cols);
        let last = self.u64(Arith::Sub, last, Src::Imm(1));
        let together = self.b.setp(Cmp::Eq, Type::U32, differs, Src::Imm(0));
        let begins = self.b.setp(Cmp::Lt, Type::U64, first, all.total);
        let ends = self.b.setp(Cmp::Lt, Type::U64, last, all.total);
        let stays = self.both(Some(together), begins);
        let stays = self.both(Some(stays), ends);
        let offset = self.u64(Arith::MulLo, first, Src::Imm(size));
        let pointer = self.variable(LTy::I64, offset.into());
        let done = self.b.label();
        self.b.bra_if(stays, true, done);
        lanes(self, &mut |e, j| {
            let number = e.b.arith(Arith::MadLo, Type::U64, &[i.1.into(), all.cols, j.1.into()]);
            e.gather_element(all, number, i, j);
        });
        let to = self.along(all.d, i, Stride::Const(g.d_strides.0));
        let [to, table] = [to, all.table].map(|p| self.u64(Arith::Add, p.reg, Src::Imm(i64::from(p.disp) as u64)));
        let distance = self.u64(Arith::Sub, to, table);
        self.b.set(pointer, Type::B64, distance);
        self.b.place(done);
        pointer
    }
}
