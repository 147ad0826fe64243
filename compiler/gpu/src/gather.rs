//! Elements of a table by their numbers, one a thread.

use crate::dependences::{self, Key, Touched};
use crate::emit::Emit;
use crate::memory::Index;
use crate::unsupported::{RefusalCode, Refused};
use ptoc_ir::loops::{Gather, LTy, MemTy, Op, Stride};
use ptoc_isa::Oob;
use ptoc_ptx::{Address, Arith, AtomOp, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};

impl Emit<'_> {
    pub(crate) fn gather(&mut self, g: &Gather) -> Result<(), Refused> {
        if g.places.is_some() || g.plus.is_some() {
            return self.refuse(RefusalCode::Places, "a gather that leaves rows where they are");
        }
        self.order(&dependences::of(&Op::Gather(Box::new(g.clone())), self.keys()));
        let [rows, cols] = [g.rows, g.cols].map(|r| self.src(r));
        let total = self.reg(g.total);
        let (index, table, d) = (self.origin_of(&g.index), self.origin_of(&g.table), self.origin_of(&g.d));
        let missing = Address::at(self.smem);
        let counts = g.oob != Oob::Zero && self.used.contains(&g.dst);
        if counts {
            let none = self.b.mov(Type::B64, Src::Imm(u64::MAX));
            let before = self.b.guard.replace((self.first, true));
            self.b.st(Space::Shared, Type::B64, missing, none);
            self.b.guard = before;
            self.b.push(Ptx::Bar(0), &[], &[]);
        }
        self.elements(rows, cols, &mut |e: &mut Self, number, i: Index, j: Index| {
            let place = e.along(index, i, Stride::Const(g.index_strides.0));
            let place = e.along(place, j, Stride::Const(g.index_strides.1));
            let bits = e.load(MemTy::I32, place);
            let from = if g.unsigned { Type::U32 } else { Type::S32 };
            let to = if g.unsigned { Type::U64 } else { Type::S64 };
            let asked = e.b.cvt(to, from, Round::None, bits);
            let (at, there) = e.lead(g.oob, asked, total);
            let value = e.variable(g.ty.reg(), Src::Imm(0));
            let (absent, on) = (e.b.label(), e.b.label());
            e.b.bra_if(there, false, absent);
            let at = (e.low(at), at);
            let place = e.along(table, at, Stride::Const(i64::from(g.ty.size())));
            let x = e.load(g.ty, place);
            e.b.set(value, crate::emit::whole(g.ty.reg()), x);
            e.b.bra(on);
            e.b.place(absent);
            if counts {
                let old = e.b.reg(ptoc_ptx::Class::B64);
                let min = Ptx::Atom(Space::Shared, AtomOp::Min, Type::U64);
                e.b.push(min, &[old], &[Src::Addr(missing), number.into()]);
            }
            e.b.place(on);
            let place = e.along(d, i, Stride::Const(g.d_strides.0));
            let place = e.along(place, j, Stride::Const(g.d_strides.1));
            e.store(g.ty, place, value, None);
        });
        let first = match counts {
            true => {
                self.b.push(Ptx::Bar(0), &[], &[]);
                self.pending = Touched::default();
                self.pending.reads.insert(Key::Control);
                self.b.ld(Space::Shared, Type::B64, missing)
            }
            // None is missing, or nobody asks.
            false => self.b.mov(Type::B64, Src::Imm(u64::MAX)),
        };
        self.define(g.dst, first);
        Ok(())
    }

    /// The element that an index leads to, and whether there is one.
    fn lead(&mut self, oob: Oob, index: VReg, total: VReg) -> (VReg, VReg) {
        let inside = self.b.setp(Cmp::Lt, Type::U64, index, total);
        let some = |e: &mut Self| e.b.setp(Cmp::Gt, Type::S64, total, Src::Imm(0));
        match oob {
            Oob::Clamp => {
                let last = self.b.arith(Arith::Sub, Type::S64, &[total.into(), Src::Imm(1)]);
                let at = self.b.arith(Arith::Max, Type::S64, &[index.into(), Src::Imm(0)]);
                let at = self.b.arith(Arith::Min, Type::S64, &[at.into(), last.into()]);
                (at, some(self))
            }
            Oob::Wrap => {
                let at = self.binary(ptoc_ir::loops::BinOp::RemFloor, LTy::I64, index.into(), total.into(), None);
                (at, some(self))
            }
            _ => (index, inside),
        }
    }
}
