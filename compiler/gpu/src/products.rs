//! Matrix products in the interpreter's order: an element is one chain of fused multiply-adds, k ascending.
//!
//! A thread has one element, or where there are many a block of them in registers: rows and columns a share of the
//! product apart, so that neighbouring threads have neighbouring columns. What lies beyond the product is computed
//! from its last row or column, and not stored.

use crate::dependences;
use crate::emit::{Emit, Val};
use crate::memory::{GpuAddress, Index};
use ptoc_ir::loops::{Contract, LTy, MemTy, Op, Start, Stride};
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};

/// Rows and columns of a thread's block.
const BLOCK: u64 = 4;

/// A product with its addresses.
pub(crate) struct Product<'c> {
    pub(crate) c: &'c Contract,
    pub(crate) a: GpuAddress,
    pub(crate) b: GpuAddress,
    pub(crate) d: GpuAddress,
    pub(crate) start: Option<(GpuAddress, Stride, Stride, MemTy)>,
    pub(crate) m: Src,
    pub(crate) n: Src,
    pub(crate) k: Src,
}

/// An index along one side, and whether it is inside.
type ProductIndex = (Index, Option<VReg>);

impl Emit<'_> {
    pub(crate) fn contract(&mut self, c: &Contract) {
        self.order(&dependences::of(&Op::Contract(Box::new(c.clone())), self.keys()));
        let [m, n, k] = [c.m, c.n, c.k].map(|r| self.src(r));
        let (a, b, d) = (self.address(&c.a), self.address(&c.b), self.address(&c.d));
        let start = match &c.start {
            Start::Zero => None,
            Start::At { addr, row, col, ty } => Some((self.address(addr), *row, *col, *ty)),
        };
        let product = Product { c, a, b, d, start, m, n, k };
        match self.staging.filter(|_| crate::staged::worthwhile(c, &self.intervals)) {
            Some((tiling, at)) => {
                let half = |n: u64| Src::Imm(n / 2 + 1);
                let large = self.at_least(&product, [half(tiling.rows()), half(tiling.cols())]);
                self.either(large, |e| e.by_stages(&product, tiling, at), |e| e.unstaged(&product));
            }
            None => self.unstaged(&product),
        }
    }

    /// A product whose operands are read where they are.
    fn unstaged(&mut self, p: &Product<'_>) {
        // Blocks for as many threads as there are, at least.
        let least = u64::from(self.threads) * BLOCK * BLOCK / 2;
        match (p.m, p.n) {
            (Src::Imm(m), Src::Imm(n)) if m.saturating_mul(n) >= least && m.min(n) >= BLOCK => self.by_blocks(p),
            (Src::Imm(_), Src::Imm(_)) => self.by_elements(p),
            (m, n) => {
                let all = self.b.arith(Arith::MulLo, Type::S64, &[m, n]);
                let many = self.b.setp(Cmp::Ge, Type::S64, all, Src::Imm(least));
                let both = self.at_least(p, [Src::Imm(BLOCK); 2]);
                let large = self.b.arith(Arith::And, Type::Pred, &[many.into(), both.into()]);
                self.either(large, |e| e.by_blocks(p), |e| e.by_elements(p));
            }
        }
    }

    /// The predicate that the product has so many rows and columns.
    fn at_least(&mut self, p: &Product<'_>, least: [Src; 2]) -> VReg {
        let [rows, cols] = [(p.m, least[0]), (p.n, least[1])].map(|(n, least)| {
            let n = if let Src::Reg(reg) = n { reg } else { self.b.mov(Type::U64, n) };
            self.b.setp(Cmp::Ge, Type::S64, n, least)
        });
        self.b.arith(Arith::And, Type::Pred, &[rows.into(), cols.into()])
    }

    /// One of two ways, by a predicate that all threads have alike.
    fn either(&mut self, so: VReg, one: impl FnOnce(&mut Self), other: impl FnOnce(&mut Self)) {
        let (second, done) = (self.b.label(), self.b.label());
        self.b.bra_if(so, false, second);
        one(self);
        self.b.bra(done);
        self.b.place(second);
        other(self);
        self.b.place(done);
    }

    fn by_elements(&mut self, p: &Product<'_>) {
        self.elements(p.m, p.n, &mut |e: &mut Self, _, i: Index, j: Index| e.block(p, &[(i, None)], &[(j, None)]));
    }

    fn by_blocks(&mut self, p: &Product<'_>) {
        let share = |e: &mut Self, n: Src| {
            let n = e.b.arith(Arith::Add, Type::S64, &[n, Src::Imm(BLOCK - 1)]);
            e.b.arith(Arith::Shr, Type::S64, &[n.into(), Src::Imm(u64::from(BLOCK.ilog2()))])
        };
        let (tall, wide) = (share(self, p.m), share(self, p.n));
        self.elements(tall.into(), wide.into(), &mut |e: &mut Self, _, i: Index, j: Index| {
            let rows = e.shares(i, tall, p.m);
            let cols = e.shares(j, wide, p.n);
            e.block(p, &rows, &cols);
        });
    }

    /// Indices a share apart, none beyond the last.
    fn shares(&mut self, first: Index, share: VReg, count: Src) -> Vec<ProductIndex> {
        let last = self.b.arith(Arith::Sub, Type::S64, &[count, Src::Imm(1)]);
        let mut at = first.1;
        let mut all = vec![(first, None)];
        for _ in 1..BLOCK {
            at = self.u64(Arith::Add, at, share);
            let inside = self.b.setp(Cmp::Lt, Type::S64, at, count);
            let index = self.b.arith(Arith::Min, Type::S64, &[at.into(), last.into()]);
            all.push(((self.low(index), index), Some(inside)));
        }
        all
    }

    /// The elements of some rows and columns, each a chain.
    fn block(&mut self, p: &Product<'_>, rows: &[ProductIndex], cols: &[ProductIndex]) {
        let c = p.c;
        let ty = c.ab_ty.reg();
        let mut sums = Vec::new();
        for (i, inside_row) in rows {
            for (j, inside_col) in cols {
                let sum = self.variable(ty, Src::Imm(0));
                let inside = self.both_of(*inside_row, *inside_col);
                if let Some((place, row, col, start)) = p.start {
                    // Another thread may be writing what lies beyond.
                    let skip = self.b.label();
                    if let Some(inside) = inside {
                        self.b.bra_if(inside, false, skip);
                    }
                    let place = self.along(place, *i, row);
                    let place = self.along(place, *j, col);
                    let value = self.load(start, place);
                    self.b.set(sum, crate::emit::whole(ty), value);
                    self.b.place(skip);
                }
                sums.push((*i, *j, inside, sum));
            }
        }
        let walking = |e: &mut Self, place: GpuAddress, sides: &[ProductIndex], stride: Stride| -> Vec<GpuAddress> {
            let each = sides.iter().map(|(index, _)| {
                let place = e.along(place, *index, stride);
                e.walking(place)
            });
            each.collect()
        };
        let left = walking(self, p.a, rows, c.a_strides.0);
        let right = walking(self, p.b, cols, c.b_strides.1);
        let step = self.variable(LTy::I64, Src::Imm(0));
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, step, p.k);
        self.b.bra_if(over, true, exit);
        let x: Vec<VReg> = left.iter().map(|place| self.load(c.ab_ty, *place)).collect();
        let y: Vec<VReg> = right.iter().map(|place| self.load(c.ab_ty, *place)).collect();
        let multiply = match ty {
            LTy::F32 => Ptx::Arith(Arith::Fma, Type::F32),
            _ => Ptx::Arith(Arith::MadLo, Type::S32),
        };
        for (n, (.., sum)) in sums.iter().enumerate() {
            let (x, y) = (x[n / cols.len()], y[n % cols.len()]);
            self.b.push(multiply, &[*sum], &[x.into(), y.into(), (*sum).into()]);
        }
        left.iter().for_each(|place| self.walk(*place, c.a_strides.1));
        right.iter().for_each(|place| self.walk(*place, c.b_strides.0));
        self.advance(step, Type::S64, Src::Imm(1));
        self.b.bra(head);
        self.b.place(exit);
        for (i, j, inside, sum) in sums {
            let place = self.along(p.d, i, c.d_strides.0);
            let place = self.along(place, j, c.d_strides.1);
            self.store(c.d_ty, place, sum, inside.map(|inside| (inside, true)));
        }
    }

    fn both_of(&mut self, a: Option<VReg>, b: Option<VReg>) -> Option<VReg> {
        match b {
            Some(b) => Some(self.both(a, b)),
            None => a,
        }
    }

    /// An address of a statement outside `Lanes`.
    pub(crate) fn origin_of(&mut self, addr: &ptoc_ir::loops::Addr) -> GpuAddress {
        debug_assert!(self.lane.is_none());
        self.address(addr)
    }

    /// A place whose register moves.
    pub(crate) fn walking(&mut self, place: GpuAddress) -> GpuAddress {
        let ty = if place.space == Space::Shared { LTy::I32 } else { LTy::I64 };
        GpuAddress { reg: self.variable(ty, place.reg.into()), ..place }
    }

    /// Moves it by a stride.
    pub(crate) fn walk(&mut self, place: GpuAddress, stride: Stride) {
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
        self.b.cvt(Type::U32, Type::U64, Round::None, reg)
    }
}
