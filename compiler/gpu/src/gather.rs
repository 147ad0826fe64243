//! Elements of a table by their numbers, one a thread, or a vector of neighbours.

use crate::dependences::{self, Key, Touched};
use crate::emit::Emit;
use crate::memory::{GpuAddress, Index};
use crate::vectors::{LowBits, WIDEST};
use ptoc_ir::loops::{Addr, Gather, LTy, MemTy, Op, Stride};
use ptoc_isa::Oob;
use ptoc_ptx::{Address, Arith, AtomOp, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};

/// A gather, with its operands in registers.
pub(crate) struct Gathered<'g> {
    pub(crate) g: &'g Gather,
    pub(crate) rows: Src,
    pub(crate) cols: Src,
    pub(crate) total: VReg,
    pub(crate) index: GpuAddress,
    /// What is added to indices.
    pub(crate) plus: Option<GpuAddress>,
    pub(crate) table: GpuAddress,
    pub(crate) d: GpuAddress,
    /// Where the number of the first missing element is found, where someone asks.
    missing: Option<Address>,
}

impl Emit<'_> {
    pub(crate) fn gather(&mut self, g: &Gather) {
        self.order(&dependences::of(&Op::Gather(Box::new(g.clone())), self.keys()));
        let [rows, cols] = [g.rows, g.cols].map(|r| self.src(r));
        let total = self.reg(g.total);
        let (index, table, d) = (self.origin_of(&g.index), self.origin_of(&g.table), self.origin_of(&g.d));
        let plus = g.plus.as_ref().map(|(addr, _)| self.origin_of(addr));
        let missing = Address::at(self.smem);
        let counts = g.oob != Oob::Zero && self.used.contains(&g.dst);
        if counts {
            let none = self.b.mov(Type::B64, Src::Imm(u64::MAX));
            let before = self.b.guard.replace((self.first, true));
            self.b.st(Space::Shared, Type::B64, missing, none);
            self.b.guard = before;
            self.b.push(Ptx::Bar(0), &[], &[]);
        }
        let all = Gathered { g, rows, cols, total, index, plus, table, d, missing: counts.then_some(missing) };
        match (&g.places, self.gather_width(g)) {
            (Some((places, step)), _) => self.row_pointers(&all, places, *step),
            (None, 1) => {
                self.elements(rows, cols, &mut |e: &mut Self, number, i, j| e.gather_element(&all, number, i, j));
            }
            (None, width) => self.gather_vectors(&all, width),
        }
        let first = match counts {
            true => {
                // Row pointers end with a barrier.
                if g.places.is_none() {
                    self.b.push(Ptx::Bar(0), &[], &[]);
                    self.pending = Touched::default();
                }
                self.pending.reads.insert(Key::Control);
                self.b.ld(Space::Shared, Type::B64, missing)
            }
            // None is missing, or nobody asks.
            false => self.b.mov(Type::B64, Src::Imm(u64::MAX)),
        };
        self.define(g.dst, first);
    }

    /// How many neighbours of a row are gathered at once: as many as the widest access has, where indices and results
    /// lie side by side and are aligned.
    fn gather_width(&self, g: &Gather) -> u64 {
        let size = u64::from(g.ty.size());
        let width = (WIDEST / size).min(8);
        let of_row = |stride: i64| 1u64 << stride.trailing_zeros().min(16);
        let aligned = |addr: &Addr, stride: i64, bytes: u64| {
            self.alignment(addr.base, addr.offset).min(of_row(stride)) >= bytes.min(WIDEST)
        };
        let beside = g.index_strides.1 == 4 && g.d_strides.1 == size as i64;
        let both = aligned(&g.index, g.index_strides.0, 4 * width) && aligned(&g.d, g.d_strides.0, size * width);
        if beside && both { width } else { 1 }
    }

    /// Vectors of a row, one a thread. Where indices follow each other (rows of a table are gathered like that), the
    /// elements are moved as one; else one by one.
    fn gather_vectors(&mut self, all: &Gathered<'_>, width: u64) {
        let g = all.g;
        let bytes = width * u64::from(g.ty.size());
        let more = self.u64(Arith::Add, all.cols, Src::Imm(width - 1));
        let vectors = self.b.arith(Arith::Shr, Type::U64, &[more.into(), Src::Imm(u64::from(width.ilog2()))]);
        self.elements(all.rows, vectors.into(), &mut |e: &mut Self, _, i: Index, v: Index| {
            let col = e.u64(Arith::MulLo, v.1, Src::Imm(width));
            let j = (e.low(col), col);
            let (apart, done) = (e.b.label(), e.b.label());
            let end = e.u64(Arith::Add, col, Src::Imm(width));
            let over = e.b.setp(Cmp::Gt, Type::S64, end, all.cols);
            e.b.bra_if(over, true, apart);
            let place = e.along(all.index, i, Stride::Const(g.index_strides.0));
            let place = e.along(place, j, Stride::Const(4));
            let asked = e.load_vector(MemTy::I32, place, width);
            let mut differs: Option<VReg> = None;
            for (n, index) in asked.iter().enumerate().skip(1) {
                let first = e.b.arith(Arith::Sub, Type::S32, &[(*index).into(), Src::Imm(n as u64)]);
                let bits = e.b.arith(Arith::Xor, Type::B32, &[first.into(), asked[0].into()]);
                differs = Some(match differs {
                    Some(all) => e.b.arith(Arith::Or, Type::B32, &[all.into(), bits.into()]),
                    None => bits,
                });
            }
            let first = e.widened_index(g, asked[0]);
            let last = e.u64(Arith::Add, first, Src::Imm(width - 1));
            let at = (e.low(first), first);
            let from = e.along(all.table, at, Stride::Const(i64::from(g.ty.size())));
            let mut bits = LowBits::default();
            e.low_bits(&mut bits, from, bytes);
            let tests = [
                e.b.setp(Cmp::Eq, Type::U32, differs.unwrap_or(asked[0]), Src::Imm(0)),
                e.b.setp(Cmp::Lt, Type::U64, first, all.total),
                e.b.setp(Cmp::Lt, Type::U64, last, all.total),
            ];
            let tests = tests.into_iter().chain(e.all_zero(bits));
            let together = tests.fold(None, |so_far, test| Some(e.both(so_far, test)));
            if let Some(together) = together {
                e.b.bra_if(together, false, apart);
            }
            let to = e.along(all.d, i, Stride::Const(g.d_strides.0));
            let to = e.along(to, j, Stride::Const(g.d_strides.1));
            e.move_bytes(from, to, bytes);
            e.b.bra(done);
            e.b.place(apart);
            let end = e.b.arith(Arith::Min, Type::S64, &[end.into(), all.cols]);
            let one = e.variable(LTy::I64, col.into());
            let head = e.b.label();
            e.b.place(head);
            let over = e.b.setp(Cmp::Ge, Type::S64, one, end);
            e.b.bra_if(over, true, done);
            let number = e.b.arith(Arith::MadLo, Type::U64, &[i.1.into(), all.cols, one.into()]);
            let j = (e.low(one), one);
            e.gather_element(all, number, i, j);
            e.advance(one, Type::U64, Src::Imm(1));
            e.b.bra(head);
            e.b.place(done);
        });
    }

    /// Bits of the index (i, j).
    pub(crate) fn asked(&mut self, all: &Gathered<'_>, i: Index, j: Index) -> VReg {
        let at = |e: &mut Self, start: GpuAddress, (row, col): (i64, i64)| {
            let place = e.along(start, i, Stride::Const(row));
            let place = e.along(place, j, Stride::Const(col));
            e.load(MemTy::I32, place)
        };
        let index = at(self, all.index, all.g.index_strides);
        let Some((plus, (_, strides))) = all.plus.zip(all.g.plus.as_ref()) else { return index };
        let plus = at(self, plus, *strides);
        self.b.arith(Arith::Add, Type::U32, &[index.into(), plus.into()])
    }

    pub(crate) fn widened_index(&mut self, g: &Gather, bits: VReg) -> VReg {
        let (from, to) = if g.unsigned { (Type::U32, Type::U64) } else { (Type::S32, Type::S64) };
        self.b.cvt(to, from, Round::None, bits)
    }

    /// One element, by its number, row and column.
    pub(crate) fn gather_element(&mut self, all: &Gathered<'_>, number: VReg, i: Index, j: Index) {
        let g = all.g;
        let bits = self.asked(all, i, j);
        let asked = self.widened_index(g, bits);
        let (at, there) = self.lead(g.oob, asked, all.total);
        let value = self.variable(g.ty.reg(), Src::Imm(0));
        let (absent, on) = (self.b.label(), self.b.label());
        self.b.bra_if(there, false, absent);
        let at = (self.low(at), at);
        let place = self.along(all.table, at, Stride::Const(i64::from(g.ty.size())));
        let x = self.load(g.ty, place);
        self.b.set(value, crate::emit::whole(g.ty.reg()), x);
        self.b.bra(on);
        self.b.place(absent);
        if let Some(missing) = all.missing {
            let old = self.b.reg(ptoc_ptx::Class::B64);
            let min = Ptx::Atom(Space::Shared, AtomOp::Min, Type::U64);
            self.b.push(min, &[old], &[Src::Addr(missing), number.into()]);
        }
        self.b.place(on);
        let place = self.along(all.d, i, Stride::Const(g.d_strides.0));
        let place = self.along(place, j, Stride::Const(g.d_strides.1));
        self.store(g.ty, place, value, None);
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
