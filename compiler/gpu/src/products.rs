//! Matrix products in the interpreter's order: an element is one chain of fused multiply-adds, k ascending.

use crate::emit::{Emit, Val};
use crate::memory::{Index, Place};
use crate::touched;
use ptoc_ir::loops::{Contract, LTy, Op, Start, Stride};
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Space, Src, Type, VReg};

impl Emit<'_> {
    pub(crate) fn contract(&mut self, c: &Contract) {
        self.order(&touched::of(&Op::Contract(Box::new(c.clone())), &self.broadcast));
        let [m, n, k] = [c.m, c.n, c.k].map(|r| self.src(r));
        let ty = c.ab_ty.reg();
        let a = self.origin_of(&c.a);
        let b = self.origin_of(&c.b);
        let d = self.origin_of(&c.d);
        let start = match &c.start {
            Start::Zero => None,
            Start::At { addr, row, col, ty } => Some((self.origin_of(addr), *row, *col, *ty)),
        };
        self.elements(m, n, &mut |e: &mut Self, _, i: Index, j: Index| {
            let sum = match start {
                None => e.variable(ty, Src::Imm(0)),
                Some((place, row, col, start)) => {
                    let place = e.along(place, i, row);
                    let place = e.along(place, j, col);
                    let value = e.load(start, place);
                    e.variable(ty, value.into())
                }
            };
            let row = e.along(a, i, c.a_strides.0);
            let col = e.along(b, j, c.b_strides.1);
            let (row, col) = (e.walking(row), e.walking(col));
            let step = e.variable(LTy::I64, Src::Imm(0));
            let (head, exit) = (e.b.label(), e.b.label());
            e.b.place(head);
            let over = e.b.setp(Cmp::Ge, Type::S64, step, k);
            e.b.bra_if(over, true, exit);
            let x = e.load(c.ab_ty, row);
            let y = e.load(c.ab_ty, col);
            let multiply = match ty {
                LTy::F32 => Ptx::Arith(Arith::Fma, Type::F32),
                _ => Ptx::Arith(Arith::MadLo, Type::S32),
            };
            e.b.push(multiply, &[sum], &[x.into(), y.into(), sum.into()]);
            e.walk(row, c.a_strides.1);
            e.walk(col, c.b_strides.0);
            e.advance(step, Type::S64, Src::Imm(1));
            e.b.bra(head);
            e.b.place(exit);
            let place = e.along(d, i, c.d_strides.0);
            let place = e.along(place, j, c.d_strides.1);
            e.store(c.d_ty, place, sum, None);
        });
    }

    /// An address of a statement outside `Lanes`.
    pub(crate) fn origin_of(&mut self, addr: &ptoc_ir::loops::Addr) -> Place {
        debug_assert!(self.lane.is_none());
        self.address(addr)
    }

    /// A place whose register moves.
    fn walking(&mut self, place: Place) -> Place {
        let ty = if place.space == Space::Shared { LTy::I32 } else { LTy::I64 };
        Place { reg: self.variable(ty, place.reg.into()), ..place }
    }

    /// Moves it by a stride.
    fn walk(&mut self, place: Place, stride: Stride) {
        let by = match stride {
            Stride::Const(0) => return,
            Stride::Const(n) => Val::Known(n as u64),
            Stride::Reg(reg) => match self.src(reg) {
                Src::Imm(bits) => Val::Known(bits),
                _ => Val::Reg(self.reg(reg)),
            },
        };
        let shared = place.space == Space::Shared;
        let ty = if shared { Type::U32 } else { Type::U64 };
        let by: Src = match by {
            Val::Known(bits) => Src::Imm(bits),
            Val::Reg(reg) if shared => self.low(reg).into(),
            Val::Reg(reg) => reg.into(),
        };
        self.advance(place.reg, ty, by);
    }

    /// The low half.
    pub(crate) fn low(&mut self, reg: VReg) -> VReg {
        self.b.cvt(Type::U32, Type::U64, ptoc_ptx::Round::None, reg)
    }
}
