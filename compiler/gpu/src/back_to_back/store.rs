//! Fragments to memory.

use super::Code;
use ptoc_ir::tile::{TileRef, ViewRef};
use ptoc_ptx::{Address, Arith, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};
use ptoc_tensor::DType;

impl Code<'_> {
    /// The valid rows and columns of a tile. Two neighbours are stored at once where the launch cannot but align them.
    pub(super) fn store(&mut self, view: &ViewRef, a: &TileRef) -> Option<()> {
        let dtype = self.kernel.tiles[a.tile].ty.dtype;
        let size = dtype.size() as u64;
        let regs = self.tile(a.tile)?;
        let strides = [self.value(view.strides[0])?, self.value(view.strides[1])?];
        let (offset, valid) = (self.value(view.offset)?, [self.value(a.valid.0)?, self.value(a.valid.1)?]);
        let (row, column) = (self.long(self.row), self.long(self.column));
        let at = self.b.arith(Arith::MadLo, Type::U64, &[row.into(), strides[0], offset]);
        let at = self.b.arith(Arith::MadLo, Type::U64, &[column.into(), strides[1], at.into()]);
        let base = self.tensors[view.tensor.as_u32() as usize];
        let at = self.b.arith(Arith::MadLo, Type::U64, &[at.into(), Src::Imm(size), base.into()]);
        let down = self.b.arith(Arith::MulLo, Type::U64, &[strides[0], Src::Imm(8 * size)]);
        let below = self.b.arith(Arith::Add, Type::U64, &[at.into(), down.into()]);
        let rows = [0, 8].map(|n| {
            let row = self.b.arith(Arith::Add, Type::U64, &[row.into(), Src::Imm(n)]);
            self.b.setp(Cmp::Lt, Type::S64, row, valid[0])
        });
        let pairs = self.pairs(view, a);
        let along = self.b.arith(Arith::MulLo, Type::U64, &[strides[1], Src::Imm(size)]);
        let elements = self.unpacked(&regs, dtype);
        for (n, pair) in elements.chunks(2).enumerate() {
            let (half, first) = (n % 2, (n / 2 * 8) as u64);
            let row = if half == 0 { at } else { below };
            let inside = |c: &mut Self, e: u64| {
                let column = c.b.arith(Arith::Add, Type::U64, &[column.into(), Src::Imm(first + e)]);
                let inside = c.b.setp(Cmp::Lt, Type::S64, column, valid[1]);
                c.b.arith(Arith::And, Type::Pred, &[inside.into(), rows[half].into()])
            };
            if pairs {
                let good = inside(self, 0);
                let to = Src::Addr(Address { disp: (first * size) as i32, ..Address::at(row) });
                let (ty, srcs) = match dtype {
                    DType::F32 => (Type::F32, vec![to, pair[0].into(), pair[1].into()]),
                    _ => (Type::B32, vec![to, regs[n].into()]),
                };
                self.b.guard = Some((good, true));
                self.b.push(Ptx::St(Space::Global, ty), &[], &srcs);
                self.b.guard = None;
                continue;
            }
            for (e, element) in (0..).zip(pair) {
                let good = inside(self, e);
                let to = self.b.arith(Arith::MadLo, Type::U64, &[along.into(), Src::Imm(first + e), row.into()]);
                let ty = if dtype == DType::F32 { Type::F32 } else { Type::B16 };
                self.b.guard = Some((good, true));
                self.b.st(Space::Global, ty, Address::at(to), *element);
                self.b.guard = None;
            }
        }
        Some(())
    }

    /// Whether two neighbours lie at a multiple of their size, and inside or outside together, in every launch.
    fn pairs(&self, view: &ViewRef, a: &TileRef) -> bool {
        let even = |v| {
            let p = self.defs.poly(v);
            p.is_some_and(|p| p.terms().iter().all(|(_, n)| n % 2 == 0))
        };
        let dense = self.defs.number(view.strides[1]) == Some(1);
        dense && even(view.offset) && even(view.strides[0]) && even(a.valid.1)
    }

    /// Each element in a register of its own.
    fn unpacked(&mut self, regs: &[VReg], dtype: DType) -> Vec<VReg> {
        if dtype == DType::F32 {
            return regs.to_vec();
        }
        let mut out = Vec::new();
        for word in regs {
            let high = self.u32(Arith::Shr, *word, 16);
            out.extend([*word, high].map(|half| self.b.cvt(Type::U16, Type::U32, Round::None, half)));
        }
        out
    }
}
