//! Rows that a table lists: those of a left operand, which the producer's threads bring, zeros where there is none, and
//! those of a result, which consumers store where the table says.

use super::Code;
use super::chunks::{CHUNK, HALF};
use ptoc_ir::tile::{Copy, TensorId};
use ptoc_opt::fragments::{PART, ScatteredRows, TableRows, scattered};
use ptoc_ptx::{Address, Arith, Class, Cmp, Op as Ptx, Round, Shfl, Space, Src, Type, VReg};
use ptoc_tensor::DType;

/// Lanes of a warp, and all of them as a mask.
const LANES: u32 = 32;
const ALL: u64 = 0xffff_ffff;

/// What all chunks of a part have in common.
struct Part {
    /// Its first line in shared memory, and its first element of a row.
    to: VReg,
    from: VReg,
    /// The address of the first element of row 0, and bytes from row to row.
    array: VReg,
    pitch: VReg,
    /// Valid rows, and valid elements of a row.
    valid: [VReg; 2],
    extent: VReg,
}

impl Code<'_> {
    /// The rows of a part that begins at an element of them.
    pub(super) fn gather_rows(&mut self, ring: usize, rows: &TableRows, (from, to): (u32, VReg)) -> Option<()> {
        let base = self.tensors[self.plan.loads[ring].tensor as usize];
        let lines = self.rings[ring].lines;
        let start = self.value(rows.start)?;
        let start = self.b.arith(Arith::Add, Type::U64, &[start, Src::Imm(from.into())]);
        let array = self.b.arith(Arith::MadLo, Type::U64, &[start.into(), Src::Imm(HALF), base.into()]);
        let stride = self.value(rows.stride)?;
        let pitch = self.b.arith(Arith::MulLo, Type::U64, &[stride, Src::Imm(HALF)]);
        let (valid, extent) = ([self.value(rows.valid.0)?, self.value(rows.valid.1)?], self.value(rows.extent)?);
        let part = Part {
            to,
            from: self.b.mov(Type::U64, Src::Imm(from.into())),
            array,
            pitch,
            valid: valid.map(|v| self.long_reg(v)),
            extent: self.long_reg(extent),
        };
        // Vectors, where rows lie at multiples of 16 bytes and have all elements of the part.
        let aligned = self.are_chunks(array, pitch);
        let whole = self.b.setp(Cmp::Ge, Type::S64, part.valid[1], Src::Imm(u64::from(from + PART)));
        let vectors = self.b.arith(Arith::And, Type::Pred, &[aligned.into(), whole.into()]);
        let (elements, done) = (self.b.label(), self.b.label());
        self.b.bra_if(vectors, false, elements);
        self.each_vector((to, lines), |c, [line, of_line]| {
            let (row, there) = c.listed_row(rows, &part, line)?;
            let bytes = c.u32(Arith::Shl, of_line, (CHUNK * HALF as u32).ilog2());
            let bytes = c.long(bytes);
            Some((c.b.arith(Arith::Add, Type::U64, &[row.into(), bytes.into()]), there))
        })?;
        self.b.bra(done);
        self.b.place(elements);
        self.gather_elements(rows, &part, lines)?;
        self.b.place(done);
        Some(())
    }

    /// The address of a row that a table lists, and the predicate that there is one.
    fn listed_row(&mut self, rows: &TableRows, part: &Part, line: VReg) -> Option<(VReg, VReg)> {
        let long = self.long(line);
        let inside = self.b.setp(Cmp::Lt, Type::S64, long, part.valid[0]);
        let (first, step) = (self.value(rows.first)?, self.value(rows.step)?);
        let at = self.b.arith(Arith::MadLo, Type::U64, &[long.into(), step, first]);
        let entry = self.entry(rows.table, at, inside);
        let known = self.b.setp(Cmp::Lt, Type::U64, entry, part.extent);
        let there = self.b.arith(Arith::And, Type::Pred, &[known.into(), inside.into()]);
        let row = self.b.arith(Arith::MadLo, Type::U64, &[entry.into(), part.pitch.into(), part.array.into()]);
        Some((row, there))
    }

    /// An entry of a table as 64 bits; negative ones are beyond every extent. 0 where a predicate does not hold.
    pub(super) fn entry(&mut self, table: TensorId, at: VReg, wanted: VReg) -> VReg {
        let base = self.tensors[table.as_u32() as usize];
        let address = self.b.arith(Arith::MadLo, Type::U64, &[at.into(), Src::Imm(4), base.into()]);
        let entry = self.b.mov(Type::U32, Src::Imm(0));
        self.b.guard = Some((wanted, true));
        self.b.push(Ptx::Ld(Space::Global, Type::B32), &[entry], &[Src::Addr(Address::at(address))]);
        self.b.guard = None;
        match self.kernel.tensors[table].dtype {
            DType::U32 => self.b.cvt(Type::U64, Type::U32, Round::None, entry),
            _ => self.b.cvt(Type::S64, Type::S32, Round::None, entry),
        }
    }

    /// The rows of a part, element by element.
    fn gather_elements(&mut self, rows: &TableRows, part: &Part, lines: u32) -> Option<()> {
        self.each_chunk(lines, |c, chunk| {
            let [line, of_line, place] = c.place_of_chunk(part.to, chunk);
            let (row, there) = c.listed_row(rows, part, line)?;
            let first = c.u32(Arith::Shl, of_line, CHUNK.ilog2());
            let first = c.long(first);
            let at = c.b.arith(Arith::MadLo, Type::U64, &[first.into(), Src::Imm(HALF), row.into()]);
            let first = c.b.arith(Arith::Add, Type::U64, &[first.into(), part.from.into()]);
            let words = c.elements_of_chunk(at, first, part.valid[1].into(), there);
            c.store_chunk(place, &words);
            Some(())
        })
    }

    // ---- results ----------------------------------------------------------------------------------------------------

    /// Stores rows where a table says. The block fails at the first entry that is none.
    pub(super) fn scatter(&mut self, copy: &Copy) -> Option<()> {
        let found = scattered(self.kernel, &self.defs, copy)?;
        self.rows_exist(&found)?;
        if self.produces {
            return Some(());
        }
        self.store_rows(&found)
    }

    /// Ends the block where an entry of the valid rows is none. Every warp looks at all of them, so that all threads
    /// know the first.
    fn rows_exist(&mut self, found: &ScatteredRows) -> Option<()> {
        let rows = &found.rows;
        let capacity = found.tile.rows;
        let (valid, extent) = (self.value(rows.valid.0)?, self.value(rows.extent)?);
        let (valid, extent) = (self.long_reg(valid), self.long_reg(extent));
        let (first, step) = (self.value(rows.first)?, self.value(rows.step)?);
        let lane = self.u32(Arith::And, self.thread, LANES - 1);
        let mut bad = self.b.mov(Type::U32, Src::Imm(capacity.into()));
        for n in (0..capacity).step_by(LANES as usize).rev() {
            let row = self.u32(Arith::Add, lane, n);
            let long = self.long(row);
            let wanted = self.b.setp(Cmp::Lt, Type::S64, long, valid);
            let at = self.b.arith(Arith::MadLo, Type::U64, &[long.into(), step, first]);
            let entry = self.entry(rows.table, at, wanted);
            let outside = self.b.setp(Cmp::Ge, Type::U64, entry, extent);
            let missing = self.b.arith(Arith::And, Type::Pred, &[outside.into(), wanted.into()]);
            bad = self.b.selp(Type::B32, row, bad, missing);
        }
        for distance in [16, 8, 4, 2, 1] {
            let other = self.b.reg(Class::B32);
            let srcs = [bad.into(), Src::Imm(distance), Src::Imm(31), Src::Imm(ALL)];
            self.b.push(Ptx::Shfl(Shfl::Bfly), &[other], &srcs);
            bad = self.b.arith(Arith::Min, Type::U32, &[bad.into(), other.into()]);
        }
        let good = self.b.label();
        let none = self.b.setp(Cmp::Ge, Type::U32, bad, Src::Imm(capacity.into()));
        self.b.bra_if(none, true, good);
        if !self.produces {
            let long = self.long(bad);
            let at = self.b.arith(Arith::MadLo, Type::U64, &[long.into(), step, first]);
            let entry = self.entry(rows.table, at, self.yes);
            let span = self.spans.last().copied()?;
            self.report_entry(span, rows.table, (at, entry), extent)?;
        }
        self.b.bra(self.done);
        self.b.place(good);
        Some(())
    }
}
