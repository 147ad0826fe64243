//! Fragments to memory and back.

use super::{CONSUMERS, Code, GROUP, consumers};
use ptoc_ir::tile::{TensorId, TileRef, ViewRef};
use ptoc_opt::fragments::{Fragment, ScatteredRows};
use ptoc_ptx::{Address, Arith, Class, Cmp, Op as Ptx, Round, Sm90, Space, Src, Type, VReg};
use ptoc_tensor::DType;

/// An element of a thread: its address, and the predicate that there is one.
struct Place {
    at: VReg,
    inside: VReg,
}

impl Code<'_> {
    /// The valid rows and columns of a tile. Two neighbours are stored at once where the launch cannot but align them.
    pub(super) fn store(&mut self, view: &ViewRef, a: &TileRef) -> Option<()> {
        let dtype = self.kernel.tiles[a.tile].ty.dtype;
        self.in_order(view.tensor);
        if self.layout(a.tile)? == Fragment::Column || matches!(self.layout(a.tile)?, Fragment::Row(_)) {
            return self.store_line(view, a);
        }
        let size = dtype.size() as u64;
        let (regs, _) = self.part(a)?;
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
        if dtype != DType::F32 && self.aligned(view, a, 4) {
            self.store_quads(&regs, [at, below], (column, valid[1]), rows);
            return Some(());
        }
        let pairs = self.aligned(view, a, 2);
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

    /// Rows of a fragment, each where a table says; every entry is one.
    pub(super) fn store_rows(&mut self, of: &ScatteredRows) -> Option<()> {
        let ScatteredRows { tile, tensor, rows } = of;
        self.in_order(*tensor);
        let dtype = self.kernel.tiles[tile.tile].ty.dtype;
        let size = dtype.size() as u64;
        let regs = self.tile(tile.tile)?;
        let (valid, start) = ([self.value(rows.valid.0)?, self.value(rows.valid.1)?], self.value(rows.start)?);
        let (first, step, stride) = (self.value(rows.first)?, self.value(rows.step)?, self.value(rows.stride)?);
        let (row, column) = (self.long(self.row), self.long(self.column));
        let base = self.tensors[tensor.as_u32() as usize];
        let start = self.b.arith(Arith::Add, Type::U64, &[column.into(), start]);
        let of_rows = [0, 8].map(|n| {
            let row = self.b.arith(Arith::Add, Type::U64, &[row.into(), Src::Imm(n)]);
            let inside = self.b.setp(Cmp::Lt, Type::S64, row, valid[0]);
            let at = self.b.arith(Arith::MadLo, Type::U64, &[row.into(), step, first]);
            let entry = self.entry(rows.table, at, inside);
            let at = self.b.arith(Arith::MadLo, Type::U64, &[entry.into(), stride, start.into()]);
            (self.b.arith(Arith::MadLo, Type::U64, &[at.into(), Src::Imm(size), base.into()]), inside)
        });
        for (n, pair) in self.unpacked(&regs, dtype).chunks(2).enumerate() {
            let ((to, above), further) = (of_rows[n % 2], (n / 2 * 8) as u64);
            for (e, element) in (0..).zip(pair) {
                let at = self.b.arith(Arith::Add, Type::U64, &[column.into(), Src::Imm(further + e)]);
                let inside = self.b.setp(Cmp::Lt, Type::S64, at, valid[1]);
                let good = self.b.arith(Arith::And, Type::Pred, &[inside.into(), above.into()]);
                let ty = if dtype == DType::F32 { Type::F32 } else { Type::B16 };
                self.b.guard = Some((good, true));
                self.b.st(
                    Space::Global,
                    ty,
                    Address { disp: ((further + e) * size) as i32, ..Address::at(to) },
                    *element,
                );
                self.b.guard = None;
            }
        }
        Some(())
    }

    /// Threads wait for each other in front of a store to an array that the block may have stored to before.
    fn in_order(&mut self, tensor: TensorId) {
        if self.plan.ordered.contains(&tensor) {
            let threads = Src::Imm(u64::from(consumers(self.plan) * GROUP));
            self.b.sm90(Sm90::BarSync, &[], &[Src::Imm(CONSUMERS), threads]);
        }
    }

    /// A column or a row, of which one of the threads that have an element stores it.
    fn store_line(&mut self, view: &ViewRef, a: &TileRef) -> Option<()> {
        let column = self.layout(a.tile)? == Fragment::Column;
        let at = if column { self.column } else { self.row };
        let mine = self.b.setp(Cmp::Eq, Type::U32, at, Src::Imm(0));
        for (place, reg) in self.places(view, a)?.into_iter().zip(self.tile(a.tile)?) {
            let good = self.b.arith(Arith::And, Type::Pred, &[mine.into(), place.inside.into()]);
            self.b.guard = Some((good, true));
            self.b.st(Space::Global, Type::F32, Address::at(place.at), reg);
            self.b.guard = None;
        }
        Some(())
    }

    /// The elements of a window that a thread has, which it loads itself; zeros beyond the valid ones.
    pub(super) fn load(&mut self, t: &TileRef, view: &ViewRef) -> Option<()> {
        let dtype = self.kernel.tiles[t.tile].ty.dtype;
        let (ty, class) = match dtype {
            DType::F32 => (Type::F32, Class::F32),
            DType::I32 => (Type::B32, Class::B32),
            DType::U8 | DType::I8 => (Type::U8, Class::B32),
            _ => (Type::B16, Class::B16),
        };
        let mut loaded = Vec::new();
        for place in self.places(view, t)? {
            let reg = self.b.reg(class);
            let zero = if ty == Type::U8 { Type::B32 } else { ty };
            self.b.set(reg, zero, Src::Imm(0));
            self.b.guard = Some((place.inside, true));
            self.b.push(Ptx::Ld(Space::Global, ty), &[reg], &[Src::Addr(Address::at(place.at))]);
            self.b.guard = None;
            loaded.push(reg);
        }
        let regs = self.tile(t.tile)?;
        match ty {
            Type::B16 => {
                for (reg, pair) in regs.into_iter().zip(loaded.chunks(2)) {
                    let word = self.b.pack(pair[0], pair[1]);
                    self.b.set(reg, Type::B32, word);
                }
            }
            Type::U8 => {
                for (reg, pair) in regs.into_iter().zip(loaded.chunks(2)) {
                    let word = self.beside(pair[0], pair[1]);
                    self.b.set(reg, Type::B32, word);
                }
            }
            ty => regs.into_iter().zip(loaded).for_each(|(reg, value)| self.b.set(reg, ty, value)),
        }
        self.forget(t.tile);
        Some(())
    }

    /// Where the elements of a thread are, in the order of its registers.
    fn places(&mut self, view: &ViewRef, t: &TileRef) -> Option<Vec<Place>> {
        let size = self.kernel.tiles[t.tile].ty.dtype.size() as u64;
        let of = self.layout(t.tile)?;
        let strides = [self.value(view.strides[0])?, self.value(view.strides[1])?];
        let (offset, valid) = (self.value(view.offset)?, [self.value(t.valid.0)?, self.value(t.valid.1)?]);
        let (row, column) = (self.long(self.row), self.long(self.column));
        let base = self.tensors[view.tensor.as_u32() as usize];
        let (rows, columns): (Vec<u64>, Vec<u64>) = match of {
            Fragment::Full(c) => (vec![0, 8], (0..u64::from(c) / 4).map(|n| n / 2 * 8 + n % 2).collect()),
            Fragment::Column => (vec![0, 8], vec![0]),
            Fragment::Row(c) => (vec![0], (0..u64::from(c) / 4).map(|n| n / 2 * 8 + n % 2).collect()),
        };
        // What is the same in all iterations of a loop comes first: the rows of a thread.
        let start = self.b.arith(Arith::MulLo, Type::U64, &[offset, Src::Imm(size)]);
        let down = self.b.arith(Arith::MulLo, Type::U64, &[strides[0], Src::Imm(size)]);
        let along = self.b.arith(Arith::MulLo, Type::U64, &[strides[1], Src::Imm(size)]);
        let mut of_rows = Vec::new();
        for n in rows {
            let (at, inside) = match of {
                Fragment::Row(_) => {
                    let at = self.b.arith(Arith::Add, Type::U64, &[base.into(), start.into()]);
                    (at, self.b.setp(Cmp::Gt, Type::S64, valid[0], Src::Imm(0)))
                }
                _ => {
                    let row = self.b.arith(Arith::Add, Type::U64, &[row.into(), Src::Imm(n)]);
                    let at = self.b.arith(Arith::MadLo, Type::U64, &[row.into(), down.into(), base.into()]);
                    let at = self.b.arith(Arith::Add, Type::U64, &[at.into(), start.into()]);
                    (at, self.b.setp(Cmp::Lt, Type::S64, row, valid[0]))
                }
            };
            of_rows.push((at, inside));
        }
        let mut of_columns = Vec::new();
        for n in columns {
            let column = match of {
                Fragment::Column => self.b.mov(Type::U64, Src::Imm(0)),
                _ => self.b.arith(Arith::Add, Type::U64, &[column.into(), Src::Imm(n)]),
            };
            let inside = self.b.setp(Cmp::Lt, Type::S64, column, valid[1]);
            of_columns.push((column, inside));
        }
        let mut out = Vec::new();
        // Two neighbours of a row, then those eight rows below, then the next eight columns.
        for pair in of_columns.chunks(2) {
            for (start, above) in &of_rows {
                for (column, inside) in pair {
                    let at = self.b.arith(Arith::MadLo, Type::U64, &[(*column).into(), along.into(), (*start).into()]);
                    let inside = self.b.arith(Arith::And, Type::Pred, &[(*inside).into(), (*above).into()]);
                    out.push(Place { at, inside });
                }
            }
        }
        Some(out)
    }

    /// Words of two narrow numbers, four neighbours at once: neighbouring threads exchange words, so that the even one
    /// has four numbers of eight columns, and the odd one four of the next eight. A warp then writes whole sectors.
    fn store_quads(&mut self, regs: &[VReg], at: [VReg; 2], (column, valid): (VReg, Src), rows: [VReg; 2]) {
        let odd = self.b.is_odd(self.thread);
        let further = self.quad_offset(odd);
        let long = self.long(further);
        let column = self.b.arith(Arith::Add, Type::U64, &[column.into(), long.into()]);
        let bytes = self.b.arith(Arith::Shl, Type::B64, &[long.into(), Src::Imm(1)]);
        let at = at.map(|at| self.b.arith(Arith::Add, Type::U64, &[at.into(), bytes.into()]));
        for (n, four) in regs.chunks(4).enumerate() {
            let first = (16 * n) as u64;
            // An odd number of groups: the last one is stored by its even threads alone.
            let single = four.len() < 4;
            let inside = self.b.arith(Arith::Add, Type::U64, &[column.into(), Src::Imm(first)]);
            let mut inside = self.b.setp(Cmp::Lt, Type::S64, inside, valid);
            if single {
                let even = self.b.arith(Arith::Xor, Type::Pred, &[odd.into(), self.yes.into()]);
                inside = self.b.arith(Arith::And, Type::Pred, &[inside.into(), even.into()]);
            }
            for half in 0..2 {
                let words = [four[half], *four.get(2 + half).unwrap_or(&four[half])];
                let quad = self.b.exchanged(words, odd);
                let good = self.b.arith(Arith::And, Type::Pred, &[inside.into(), rows[half].into()]);
                let to = Src::Addr(Address { disp: (first * 2) as i32, ..Address::at(at[half]) });
                self.b.guard = Some((good, true));
                self.b.push(Ptx::St(Space::Global, Type::B32), &[], &[to, quad[0].into(), quad[1].into()]);
                self.b.guard = None;
            }
        }
    }

    /// Columns from a thread's own two to the four that it stores: an odd one's begin six further on.
    fn quad_offset(&mut self, odd: VReg) -> VReg {
        let [none, six] = [0, 6].map(|n| self.b.mov(Type::U32, Src::Imm(n)));
        self.b.selp(Type::B32, six, none, odd)
    }

    /// Whether so many neighbours lie at a multiple of their size, and inside or outside together, in every launch.
    fn aligned(&self, view: &ViewRef, a: &TileRef, count: i64) -> bool {
        let even = |v| {
            let p = self.defs.poly(v);
            p.is_some_and(|p| p.terms().iter().all(|(_, n)| n % count == 0))
        };
        let dense = self.defs.number(view.strides[1]) == Some(1);
        dense && even(view.offset) && even(view.strides[0]) && even(a.valid.1)
    }

    /// Each element in a register of its own.
    pub(super) fn unpacked(&mut self, regs: &[VReg], dtype: DType) -> Vec<VReg> {
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
