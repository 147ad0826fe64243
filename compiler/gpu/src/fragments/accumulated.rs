//! Loops of consumers that are one product over many windows: a step is issued while the one before is under way, as in
//! CUTLASS's mainloops, and its slots are free one iteration later.

use super::Code;
use ptoc_ir::tile::{For, Op, Stmt};
use ptoc_opt::contraction::{From, Product, moved, product};
use ptoc_opt::fragments::filled_by;
use ptoc_ptx::{AddrBase, Address, Arith, Cmp, Op as Ptx, Sm90, Src, Type, VReg};

/// The product of each iteration, and its windows.
#[derive(Clone, Debug)]
pub(super) struct Accumulation {
    product: Product,
    rings: Vec<usize>,
}

impl Code<'_> {
    /// A loop that loads both operands of one product, and has nothing else.
    pub(super) fn accumulation_of(&self, f: &For) -> Option<Accumulation> {
        if self.produces {
            return None;
        }
        let mut products = f.body.iter().filter_map(|s| product(&s.op));
        let ((sum, From::Acc), None) = (products.next()?, products.next()) else { return None };
        let ring = |tile| self.rings.iter().position(|r| r.operand == tile);
        let rings = vec![ring(sum.a.tile)?, ring(sum.b.tile)?];
        let loads = |n: &usize| f.body.iter().any(|s| filled_by(&s.op) == Some(self.rings[*n].filled));
        let known = |s: &Stmt| match &s.op {
            op if op.is_pure() => true,
            Op::Load { .. } | Op::Alloc { .. } | Op::Sync(_) => true,
            op @ Op::Inst(_) => {
                let filled = |tile| rings.iter().any(|n| self.rings[*n].filled == tile);
                let brings = filled_by(op).is_some_and(filled);
                let passes = moved(op).is_some_and(|(_, from)| filled(from.tile));
                brings || passes || product(op).is_some()
            }
            _ => false,
        };
        (rings.iter().all(loads) && f.body.iter().all(known)).then_some(Accumulation { product: sum, rings })
    }

    /// The loop.
    pub(super) fn accumulate(&mut self, f: &For, (lo, hi): (Src, Src), sum: &Accumulation) -> Option<()> {
        let index = self.b.mov(Type::U64, lo);
        self.values.insert(f.index, index.into());
        let behind: Vec<VReg> = sum.rings.iter().map(|_| self.b.mov(Type::U32, self.base)).collect();
        let (head, end) = (self.b.label(), self.b.label());
        self.forget_all();
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, index, hi);
        self.b.bra_if(over, true, end);
        for stmt in f.body.iter().filter(|s| s.op.is_pure() || matches!(s.op, Op::Load { .. })) {
            self.scalar(&stmt.op)?;
        }
        for ring in &sum.rings {
            self.wait_for(*ring);
        }
        self.issue(&sum.product, From::Acc)?;
        self.pending.clear();
        self.b.sm90(Sm90::WgmmaWait(1), &[], &[]);
        let first = self.b.setp(Cmp::Eq, Type::U64, index, lo);
        self.only_if(first, false, |c| c.let_go(&behind));
        for (ring, behind) in sum.rings.iter().zip(&behind) {
            let (.., free) = self.slot(*ring);
            let AddrBase::Reg(reg) = free.base else { return None };
            let disp = Src::Imm(free.disp as u64);
            self.b.push(Ptx::Arith(Arith::Add, Type::U32), &[*behind], &[reg.into(), disp]);
            self.advance(*ring);
        }
        self.b.push(Ptx::Arith(Arith::Add, Type::S64), &[index], &[index.into(), Src::Imm(1)]);
        self.b.bra(head);
        self.b.place(end);
        self.b.sm90(Sm90::WgmmaWait(0), &[], &[]);
        let none = self.b.setp(Cmp::Eq, Type::U64, index, lo);
        self.only_if(none, false, |c| c.let_go(&behind));
        self.forget_all();
        Some(())
    }

    /// Slots are free whose barriers these are.
    fn let_go(&mut self, barriers: &[VReg]) {
        for barrier in barriers {
            self.arrive_if(self.first, Address::at(*barrier));
        }
    }
}
