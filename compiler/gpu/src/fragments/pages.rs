//! Windows that are pages of an array: a bulk copy each, at the entries of a table. Pages without valid lines are not
//! touched, as in the language; an entry that is none ends the block.

use super::Code;
use super::loads::LINE;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{CheckData, CheckId, TensorId, Value};
use ptoc_opt::fragments::{OperandSource, Pages};
use ptoc_ptx::{Arith, Cmp, Round, Sm90, Src, Type, VReg};

/// An entry of the table: whether it is looked up, its place in the table, and what it is.
struct Entry {
    /// Predicates: it is looked up; it is looked up, and is none.
    wanted: VReg,
    bad: VReg,
    at: VReg,
    entry: VReg,
}

impl Code<'_> {
    /// The bulk copies of pages, whose first line would be at these coordinates if their entries were 0. Where an entry
    /// is none, what is copied does not matter: the block ends behind it.
    pub(super) fn copy_pages(&mut self, ring: usize, pages: &Pages, [column, row]: [VReg; 2]) -> Option<()> {
        let entries = self.entries(ring, pages)?;
        let (_, full, _) = self.slot(ring);
        let bytes = Src::Imm(u64::from(pages.lines * LINE * self.rings[ring].parts));
        let zero = Src::Imm(0);
        let mut all = self.b.mov(Type::U32, zero);
        for e in &entries {
            let more = self.b.selp(Type::B32, bytes, zero, e.wanted);
            all = self.b.arith(Arith::Add, Type::U32, &[all.into(), more.into()]);
        }
        self.b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[Src::Addr(full), all.into()]);
        let step = self.coordinate(&pages.rows)?;
        for (n, e) in (0..).zip(&entries) {
            let entry = self.b.selp(Type::B64, zero, e.entry, e.bad);
            let entry = self.b.cvt(Type::U32, Type::U64, Round::None, entry);
            let row = self.b.arith(Arith::MadLo, Type::U32, &[entry.into(), step.into(), row.into()]);
            self.only_if(e.wanted, true, |c| c.copy_box(ring, n * pages.lines, [column, row]));
        }
        if !self.plan.all_threads {
            self.end_where_missing(&entries);
        }
        Some(())
    }

    /// All threads of a producer that brings windows by elements, too, end where an entry is none.
    pub(super) fn end_producers(&mut self, ring: usize) -> Option<()> {
        let plan = self.plan;
        if let (true, OperandSource::Pages(pages)) = (plan.all_threads, &plan.loads[ring].source) {
            let entries = self.entries(ring, pages)?;
            self.end_where_missing(&entries);
        }
        Some(())
    }

    fn end_where_missing(&mut self, entries: &[Entry]) {
        let done = self.done;
        entries.iter().for_each(|e| self.b.bra_if(e.bad, true, done));
    }

    /// Waits for pages. The block fails at the first entry that is none.
    pub(super) fn pages_are_there(&mut self, ring: usize) -> Option<()> {
        let plan = self.plan;
        let OperandSource::Pages(pages) = &plan.loads[ring].source else { return None };
        let entries = self.entries(ring, pages)?;
        self.wait_for(ring);
        let extent = self.value(pages.extent)?;
        let extent = self.long_reg(extent);
        for e in entries {
            let good = self.b.label();
            self.b.bra_if(e.bad, false, good);
            self.report_entry(pages.span, pages.table, (e.at, e.entry), extent)?;
            self.b.bra(self.done);
            self.b.place(good);
        }
        Some(())
    }

    /// The failure of the copy at a span whose table has no row or page of the array at this place: the rows of the
    /// table of checks are those that the lowering of the copy has made, of arrays without entries (if they may be),
    /// and of other numbers.
    pub(super) fn report_entry(
        &mut self,
        span: Span,
        table: TensorId,
        (at, entry): (VReg, VReg),
        extent: VReg,
    ) -> Option<()> {
        let rows: Vec<usize> = (0..self.checks.len()).filter(|n| self.is_of_entries(*n, span)).collect();
        let [no_entries @ .., outside] = &rows[..] else { return None };
        let kernel = self.kernel;
        let mut args = vec![entry, extent];
        args.extend(self.coordinates_in_table(at, &kernel.tensors[table].shape[1..])?);
        if let [none] = no_entries {
            let some = self.b.label();
            let any = self.b.setp(Cmp::Gt, Type::S64, extent, Src::Imm(0));
            self.b.bra_if(any, true, some);
            self.report(*none, &args);
            self.b.bra(self.done);
            self.b.place(some);
        }
        self.report(*outside, &args);
        Some(())
    }

    fn is_of_entries(&self, row: usize, of: Span) -> bool {
        let (id, span) = self.checks[row];
        let of_entries = |check: &CheckData| check.code == codes::TABLE_ENTRY;
        span == of && self.kernel.checks.get(CheckId::from_u32(id)).is_none_or(of_entries)
    }

    /// The coordinates of an element of a table: its number, or a row and a column.
    fn coordinates_in_table(&mut self, at: VReg, inner: &[Value]) -> Option<Vec<VReg>> {
        let [columns] = inner else { return Some(vec![at]) };
        let columns = self.value(*columns)?;
        let row = self.b.arith(Arith::Div, Type::U64, &[at.into(), columns]);
        let before = self.b.arith(Arith::MulLo, Type::U64, &[row.into(), columns]);
        let column = self.b.arith(Arith::Sub, Type::U64, &[at.into(), before.into()]);
        Some(vec![row, column])
    }

    /// The entries of all pages of a window; of those that are not looked up 0.
    fn entries(&mut self, ring: usize, pages: &Pages) -> Option<Vec<Entry>> {
        let (first, step) = (self.value(pages.first)?, self.value(pages.step)?);
        let (valid, extent) = (self.value(pages.valid)?, self.value(pages.extent)?);
        let (valid, extent) = (self.long_reg(valid), self.long_reg(extent));
        let mut out = Vec::new();
        for n in 0..self.rings[ring].lines / pages.lines {
            let wanted = self.b.setp(Cmp::Gt, Type::S64, valid, Src::Imm(u64::from(n * pages.lines)));
            let at = self.b.arith(Arith::MadLo, Type::U64, &[step, Src::Imm(n.into()), first]);
            let entry = self.entry(pages.table, at, wanted);
            let outside = self.b.setp(Cmp::Ge, Type::U64, entry, extent);
            let bad = self.b.arith(Arith::And, Type::Pred, &[outside.into(), wanted.into()]);
            out.push(Entry { wanted, bad, at, entry });
        }
        Some(out)
    }
}
