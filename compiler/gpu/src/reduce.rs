//! Reductions of rows, a warp a row, in the order of [`ptoc_ir::loops::Reduce`].
//!
//! A lane has partials `lane` and `lane + 32`, so the first step of the tree is its own; the others are shuffles, of
//! which only what reaches lane 0 counts.

use crate::emit::Emit;
use crate::touched;
use ptoc_ir::loops::{BinOp, LTy, MemTy, Op, Reduce, Stride};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Round, Shfl, Special, Src, Type, VReg};

/// All lanes of a warp.
const ALL: u64 = 0xffff_ffff;

impl Emit<'_> {
    pub(crate) fn reduce(&mut self, r: &Reduce) {
        self.order(&touched::of(&Op::Reduce(Box::new(r.clone())), &self.broadcast));
        let ty = r.ty.reg();
        let (rows, cols) = (self.src(r.rows), self.src(r.cols));
        let (a, d) = (self.origin_of(&r.a), self.origin_of(&r.d));
        // Results may lie where elements of their row do, which other lanes have to read first.
        let same = r.a.base == r.d.base;
        let lane = self.b.mov(Type::U32, Src::Special(Special::Laneid));
        let warp = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(5)]);
        let warp = self.b.cvt(Type::U64, Type::U32, Round::None, warp);
        let turn = self.variable(LTy::I64, Src::Imm(0));
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, turn, rows);
        self.b.bra_if(over, true, exit);

        let row = self.b.arith(Arith::Add, Type::S64, &[turn.into(), warp.into()]);
        let row = (self.low(row), row);
        let active = self.b.setp(Cmp::Lt, Type::S64, row.1, rows);
        let result = self.variable(ty, Src::Imm(0));
        let idle = self.b.label();
        self.b.bra_if(active, false, idle);
        let neutral = Src::Imm(neutral(r.op, r.ty));
        let partials = [self.variable(ty, neutral), self.variable(ty, neutral)];
        let start = self.along(a, row, Stride::Const(r.a_strides.0));
        let lane64 = self.b.cvt(Type::U64, Type::U32, Round::None, lane);
        let col = self.variable(LTy::I64, lane64.into());
        let (next, end) = (self.b.label(), self.b.label());
        self.b.place(next);
        for partial in partials {
            let over = self.b.setp(Cmp::Ge, Type::S64, col, cols);
            self.b.bra_if(over, true, end);
            let index = (self.low(col), col);
            let place = self.along(start, index, Stride::Const(r.a_strides.1));
            let x = self.load(r.ty, place);
            let joined = self.binary(r.op, ty, partial.into(), x.into(), None);
            self.b.set(partial, crate::emit::whole(ty), joined);
            self.advance(col, Type::S64, Src::Imm(32));
        }
        self.b.bra(next);
        self.b.place(end);
        let mut sum = self.binary(r.op, ty, partials[0].into(), partials[1].into(), None);
        for distance in [16, 8, 4, 2, 1] {
            let other = self.moved_down(ty, sum, distance);
            sum = self.binary(r.op, ty, sum.into(), other.into(), None);
        }
        self.b.set(result, crate::emit::whole(ty), sum);
        self.b.place(idle);
        if same {
            self.b.push(Ptx::Bar(0), &[], &[]);
        }
        let writes = self.b.setp(Cmp::Eq, Type::U32, lane, Src::Imm(0));
        let writes = self.b.arith(Arith::And, Type::Pred, &[writes.into(), active.into()]);
        let place = self.along(d, row, Stride::Const(r.d_stride));
        self.store(r.ty, place, result, Some((writes, true)));
        self.advance(turn, Type::S64, Src::Imm(u64::from(self.threads / 32)));
        self.b.bra(head);
        self.b.place(exit);
    }

    /// The value of the lane that is so many further.
    fn moved_down(&mut self, ty: LTy, value: VReg, distance: u64) -> VReg {
        let one = |e: &mut Self, value: VReg| {
            let dst = e.b.reg(Class::B32);
            let srcs = [value.into(), Src::Imm(distance), Src::Imm(31), Src::Imm(ALL)];
            e.b.push(Ptx::Shfl(Shfl::Down), &[dst], &srcs);
            dst
        };
        match ty {
            LTy::F32 => {
                let bits = self.b.bits(Class::B32, value);
                let bits = one(self, bits);
                self.b.bits(Class::F32, bits)
            }
            LTy::I64 => {
                let low = self.low(value);
                let high = self.b.arith(Arith::Shr, Type::U64, &[value.into(), Src::Imm(32)]);
                let high = self.low(high);
                let [low, high] = [low, high].map(|half| {
                    let half = one(self, half);
                    self.b.cvt(Type::U64, Type::U32, Round::None, half)
                });
                let high = self.b.arith(Arith::Shl, Type::B64, &[high.into(), Src::Imm(32)]);
                self.b.arith(Arith::Or, Type::B64, &[low.into(), high.into()])
            }
            _ => one(self, value),
        }
    }
}

/// What changes nothing when it is joined: bits of a register.
fn neutral(op: BinOp, ty: MemTy) -> u64 {
    let bits = 8 * ty.size();
    let float = matches!(ty, MemTy::F16 | MemTy::BF16 | MemTy::F32);
    let mask = if ty.reg() == LTy::I64 { u64::MAX } else { u64::from(u32::MAX) };
    match (op, ty) {
        (BinOp::Max, _) if float => u64::from(f32::NEG_INFINITY.to_bits()),
        (BinOp::Min, _) if float => u64::from(f32::INFINITY.to_bits()),
        (BinOp::Max, MemTy::U8 | MemTy::U16) => 0,
        (BinOp::Min, MemTy::U8 | MemTy::U16) => (1 << bits) - 1,
        (BinOp::Max, _) => (i64::MIN >> (64 - bits)) as u64 & mask,
        (BinOp::Min, _) => (i64::MAX >> (64 - bits)) as u64 & mask,
        // No number is below 0, or above all ones.
        (BinOp::MinU, _) => mask,
        _ => 0,
    }
}
