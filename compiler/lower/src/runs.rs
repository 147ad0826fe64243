//! Cells whose columns come in runs of neighbours: rows of a window, of two tiles side by side, channels of an unfolded
//! image. What is read lies side by side within a run, and a test is decided for all of it, or changes once. So a run
//! is copied or filled as one, where lanes by themselves would each compute where their element lies and gather it.
//!
//! For machines with vectors. On a GPU neighbouring threads compute their addresses at no cost, and short runs one
//! after another would leave most of them idle.

use super::cells::{CellOperand, Emit};
use super::code::FunctionBuilder;
use super::matrix::{Matrix, map};
use super::ops;
use ptoc_ir::loops::{BinOp as L, MemTy, Reg, Stride};
use ptoc_ir::tile::Ty;
use ptoc_isa::{BinOp, Cell, CmpOp, IndexExpr, Test};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// A number at each place of a block: `at` in the first row and column, so much more from row to row, and 1 more from
/// column to column if `col`.
#[derive(Clone, Copy)]
struct Part {
    at: Reg,
    row: Option<Reg>,
    col: bool,
}

impl Part {
    /// The same at all places.
    fn same(at: Reg) -> Part {
        Part { at, row: None, col: false }
    }

    fn is_same(self) -> bool {
        self.row.is_none() && !self.col
    }
}

/// Instructions that put elements elsewhere, run by run.
pub(super) struct Runs<'a> {
    pub(super) sources: &'a [CellOperand],
    /// The destination's dtype, and how its elements are stored: raw, or as numbers.
    pub(super) dtype: DType,
    pub(super) ty: MemTy,
    pub(super) raw: bool,
}

/// Runs of neighbouring rows: the first row of the destination and the rows, its first column and the columns.
#[derive(Clone, Copy)]
struct Block {
    row: Reg,
    rows: Reg,
    first: Reg,
    count: Reg,
    segment: Option<Segment>,
}

/// Rows, or columns, in which a quotient is the same, and the remainder goes up by 1 from one to the next.
#[derive(Clone, Copy)]
struct Segment {
    dividend: &'static IndexExpr,
    divisor: &'static IndexExpr,
    col: bool,
    /// Its first row or column, and what quotient and remainder are there.
    begin: Reg,
    quotient: Reg,
    remainder: Reg,
}

/// Numbers of a group of columns that are the same in every row, by their expressions.
type Known = RefCell<FxHashMap<*const IndexExpr, Part>>;

impl Runs<'_> {
    /// All cells of `rows` x `cols` into `target`, if they come in runs.
    pub(super) fn emit(
        &self,
        code: &mut FunctionBuilder,
        cell: &Cell,
        shape: (Reg, Reg),
        target: &Matrix,
    ) -> Option<()> {
        // Rows whose numbers go on evenly are a nest of loops; otherwise each row is one by itself, perhaps without
        // groups of columns that are those of all rows.
        let period = self.period(code, cell);
        let ways = [(false, period), (true, period), (true, None)];
        ways.into_iter().find_map(|(single, period)| {
            code.push();
            let done = RowRuns { runs: self, single, period }.emit(code, cell, shape, target);
            let made = code.pop();
            done?;
            code.append(made);
            Some(())
        })
    }

    /// The number of columns in which what is divided by it, or the remainder, is that of one run: none if nothing is.
    /// Runs of other numbers than powers of two are not looked for.
    fn period(&self, code: &mut FunctionBuilder, cell: &Cell) -> Option<i64> {
        let mut found = None;
        expressions(cell, &mut |n| {
            if let IndexExpr::Bin(BinOp::Div | BinOp::Rem, a, b) = *n
                && a.has_column()
                && !a.divides()
                && found.is_none()
            {
                let at = (code.int(0), code.int(0));
                let by = self.lanes_at(at).num(code, b);
                found = code.known(by).filter(|n| (2..=64).contains(n) && n.count_ones() == 1);
            }
        });
        found
    }

    fn lanes_at(&self, at: (Reg, Reg)) -> Emit<'_> {
        Emit { sources: self.sources, dtype: self.dtype, ty: self.ty, raw: self.raw, at }
    }
}

/// One way to go over the rows and columns.
struct RowRuns<'a> {
    runs: &'a Runs<'a>,
    /// Blocks have one row, in which every number that does not depend on the column is one.
    single: bool,
    /// Columns of a group.
    period: Option<i64>,
}

impl RowRuns<'_> {
    fn emit(&self, code: &mut FunctionBuilder, cell: &Cell, (rows, cols): (Reg, Reg), target: &Matrix) -> Option<()> {
        let Some(period) = self.period else {
            let first = code.int(0);
            return self.rows(code, cell, rows, (first, cols), target, &Known::default());
        };
        let whole = code.known(cols).is_some_and(|n| n % period == 0);
        let (more, most) = (code.plus(cols, period - 1), code.int(period));
        let groups = code.bin(L::DivFloor, more, most);
        let mut done = None;
        code.for_count(groups, |code, group| {
            let first = code.times(group, period);
            let left = code.bin(L::Sub, cols, first);
            let count = if whole { most } else { code.bin(L::Min, left, most) };
            let known = Known::default();
            Group { runs: self.runs, first, period, known: &known }.prepare(code, cell);
            done = self.rows(code, cell, rows, (first, count), target, &known);
        });
        done
    }

    /// The cells of some columns.
    fn rows(
        &self,
        code: &mut FunctionBuilder,
        cell: &Cell,
        rows: Reg,
        (first, count): (Reg, Reg),
        target: &Matrix,
        known: &Known,
    ) -> Option<()> {
        let (zero, one) = (code.int(0), code.int(1));
        let all = Block { row: zero, rows, first, count, segment: None };
        let mut done = None;
        if self.single {
            code.for_count(rows, |code, row| {
                let block = Block { row, rows: one, ..all };
                // Groups of columns are segments of their own.
                done = match known.borrow().is_empty() {
                    true => self.segments(code, cell, block, true, target, known),
                    false => self.block(code, cell, block, target, known),
                };
            });
            return done;
        }
        self.segments(code, cell, all, false, target, known)
    }

    /// The cells of a block, segment by segment of its rows or columns.
    fn segments(
        &self,
        code: &mut FunctionBuilder,
        cell: &Cell,
        all: Block,
        col: bool,
        target: &Matrix,
        known: &Known,
    ) -> Option<()> {
        let moves = if col { IndexExpr::has_column } else { IndexExpr::has_row };
        let Some((dividend, divisor)) = quotient(cell, moves) else {
            return self.block(code, cell, all, target, known);
        };
        let (zero, one) = (code.int(0), code.int(1));
        let (x, by) = (self.part(code, dividend, all, known)?, self.part(code, divisor, all, known)?);
        if x.col != col || x.row != (!col).then_some(one) || !by.is_same() {
            return None;
        }
        let (from, count) = if col { (all.first, all.count) } else { (all.row, all.rows) };
        // By nothing divides only what has no elements.
        let by = code.bin(L::Max, by.at, one);
        // Places before the first one that belong to its segment.
        let before = code.bin(L::RemFloor, x.at, by);
        let end = code.add(before, count);
        let begun = code.add(end, by);
        let begun = code.plus(begun, -1);
        let segments = code.bin(L::DivFloor, begun, by);
        let mut done = None;
        code.for_count(segments, |code, n| {
            let at = code.bin(L::Mul, n, by);
            let at = code.bin(L::Sub, at, before);
            let to = code.add(at, by);
            let (at, to) = (code.bin(L::Max, at, zero), code.bin(L::Min, to, count));
            let value = code.add(x.at, at);
            let quotient = code.bin(L::DivFloor, value, by);
            let remainder = code.bin(L::RemFloor, value, by);
            let begin = code.add(from, at);
            let segment = Some(Segment { dividend, divisor, col, begin, quotient, remainder });
            let count = code.bin(L::Sub, to, at);
            let block = match col {
                true => Block { first: begin, count, segment, ..all },
                false => Block { row: begin, rows: count, segment, ..all },
            };
            done = self.block(code, cell, block, target, known);
        });
        done
    }

    /// The cells of a block.
    fn block(
        &self,
        code: &mut FunctionBuilder,
        cell: &Cell,
        block: Block,
        target: &Matrix,
        known: &Known,
    ) -> Option<()> {
        match *cell {
            Cell::If(test, a, b) => self.branch(code, (&tests(test), a, b), block, target, known),
            Cell::At(k, r, c) => self.copy(code, (k, r, c), block, target, known),
            Cell::Scalar(_) | Cell::Is(_) => {
                let value = self.runs.lanes_at((block.row, block.first)).cell(code, cell);
                let to = target.at_row(code, block.row).at_col(code, block.first);
                map(code, (block.rows, block.count), &to, &[], &mut |_, _| value);
                Some(())
            }
            Cell::Of(_) => None,
        }
    }

    /// `tests ? a : b`
    fn branch(
        &self,
        code: &mut FunctionBuilder,
        (tests, a, b): (&[&Test], &Cell, &Cell),
        block: Block,
        target: &Matrix,
        known: &Known,
    ) -> Option<()> {
        let Some((Test::Cmp(op, x, y), rest)) = tests.split_first().map(|(t, rest)| (*t, rest)) else {
            return self.block(code, a, block, target, known);
        };
        let (x, y) = (self.part(code, x, block, known)?, self.part(code, y, block, known)?);
        if !y.is_same() {
            return None;
        }
        if x.is_same() {
            let cond = ops::compare(code, Ty::Index, *op, x.at, y.at);
            let (mut then, mut els) = (None, None);
            code.either(
                cond,
                |code| then = self.branch(code, (rest, a, b), block, target, known),
                |code| els = self.block(code, b, block, target, known),
            );
            return then.and(els);
        }
        // x, x + step, .. are less than y in the first (y - x) / step rows or columns, rounded up.
        let end = match op {
            CmpOp::Lt | CmpOp::Ge => y.at,
            CmpOp::Le | CmpOp::Gt => code.plus(y.at, 1),
            CmpOp::Eq | CmpOp::Ne => return None,
        };
        let less = code.bin(L::Sub, end, x.at);
        let step = match (x.row, x.col) {
            (Some(step), false) => code.known(step).filter(|s| *s > 0)?,
            (None, true) => 1,
            _ => return None,
        };
        let less = code.plus(less, step - 1);
        let by = code.int(step);
        let less = if step == 1 { less } else { code.bin(L::DivFloor, less, by) };
        let zero = code.int(0);
        let less = code.bin(L::Max, less, zero);
        let all = if x.col { block.count } else { block.rows };
        let less = code.bin(L::Min, less, all);
        let others = code.bin(L::Sub, all, less);
        let (less, more) = match x.col {
            true => {
                let first = code.add(block.first, less);
                (Block { count: less, ..block }, Block { first, count: others, ..block })
            }
            false => {
                let row = code.add(block.row, less);
                (Block { rows: less, ..block }, Block { row, rows: others, ..block })
            }
        };
        let (yes, no) = if matches!(op, CmpOp::Lt | CmpOp::Le) { (less, more) } else { (more, less) };
        // What is known of a group of columns is not known of a part of them.
        let none = Known::default();
        let known = if x.col { &none } else { known };
        self.branch(code, (rest, a, b), yes, target, known)?;
        self.block(code, b, no, target, known)
    }

    /// Neighbours of a tile, or one of its elements in every column. A place outside is the nearest one inside, as for
    /// lanes: preconditions leave none, and machine code is trusted with memory.
    fn copy(
        &self,
        code: &mut FunctionBuilder,
        (k, r, c): (usize, &'static IndexExpr, &'static IndexExpr),
        block: Block,
        target: &Matrix,
        known: &Known,
    ) -> Option<()> {
        let CellOperand::Tile(m, (rows, cols), _) = &self.runs.sources[k] else { return None };
        let m = if self.runs.raw { m.raw() } else { *m };
        if m.places.is_some() {
            return None;
        }
        if (r, c) == (&IndexExpr::Row, &IndexExpr::Col) && same_place(&m, target) {
            // It is the destination as it was.
            return Some(());
        }
        let (r, c) = (self.part(code, r, block, known)?, self.part(code, c, block, known)?);
        if r.col || c.row.is_some() {
            return None;
        }
        let zero = code.int(0);
        let (row, down, step) = fitting(code, (r.at, r.row.unwrap_or(zero)), *rows, block.rows)?;
        let one = if c.col { code.int(1) } else { zero };
        let (col, across, _) = fitting(code, (c.at, one), *cols, block.count)?;
        let from = m.at_row(code, row).at_col(code, col);
        let from = Matrix { rows: stepped(code, from.rows, step), ..from };
        let from = if c.col { from } else { from.one_column() };
        let to = target.at_row(code, block.row).at_col(code, block.first);
        map(code, (down, across), &to, &[from], &mut |_, v| v[0]);
        Some(())
    }

    fn part(&self, code: &mut FunctionBuilder, n: &IndexExpr, block: Block, known: &Known) -> Option<Part> {
        if let Some(part) = known.borrow().get(&std::ptr::from_ref(n)) {
            return Some(*part);
        }
        if !n.has_column() && (self.single || !n.has_row()) {
            return (!n.looks()).then(|| Part::same(self.runs.lanes_at((block.row, block.first)).num(code, n)));
        }
        match *n {
            IndexExpr::Row => Some(Part { at: block.row, row: Some(code.int(1)), col: false }),
            IndexExpr::Col => Some(Part { at: block.first, row: None, col: true }),
            IndexExpr::Bin(op, a, b) => {
                if let Some(s) = block.segment.filter(|s| (a, b) == (s.dividend, s.divisor)) {
                    match op {
                        BinOp::Div => return Some(Part::same(s.quotient)),
                        BinOp::Rem => {
                            let place = if s.col { block.first } else { block.row };
                            let further = code.bin(L::Sub, place, s.begin);
                            let at = code.add(s.remainder, further);
                            let row = (!s.col).then(|| code.int(1));
                            return Some(Part { at, row, col: s.col });
                        }
                        _ => {}
                    }
                }
                let (a, b) = (self.part(code, a, block, known)?, self.part(code, b, block, known)?);
                binary(code, op, a, b)
            }
            _ => None,
        }
    }
}

/// What rows or columns are divided by, if anything: the dividend and the divisor.
fn quotient(cell: &Cell, moves: fn(&IndexExpr) -> bool) -> Option<(&'static IndexExpr, &'static IndexExpr)> {
    let mut found = None;
    expressions(cell, &mut |n| {
        if let IndexExpr::Bin(BinOp::Div | BinOp::Rem, a, b) = *n
            && moves(a)
            && !a.divides()
            && found.is_none()
        {
            found = Some((a, b));
        }
    });
    found
}

/// `at`, `at + step`, .. `count` times, so that all are at least 0 and below `end`: the first of them, how many, and
/// the step.
fn fitting(code: &mut FunctionBuilder, (at, step): (Reg, Reg), end: Reg, count: Reg) -> Option<(Reg, Reg, i64)> {
    let step = code.known(step).filter(|s| *s >= 0)?;
    let last = code.plus(end, -1);
    if step == 0 {
        return Some((inside(code, at, last), count, 0));
    }
    let by = code.int(step);
    let most = if step == 1 { end } else { code.bin(L::DivFloor, last, by) };
    let most = if step == 1 { most } else { code.plus(most, 1) };
    let count = code.bin(L::Min, count, most);
    let further = code.plus(count, -1);
    let further = code.times(further, step);
    let last = code.bin(L::Sub, last, further);
    Some((inside(code, at, last), count, step))
}

/// From every `step`-th row to the next.
fn stepped(code: &mut FunctionBuilder, stride: Stride, step: i64) -> Stride {
    match stride {
        _ if step == 0 => Stride::Const(0),
        Stride::Const(n) => Stride::Const(n.wrapping_mul(step)),
        Stride::Reg(r) => Stride::Reg(code.times(r, step)),
    }
}

/// Columns of a run, whatever its row.
struct Group<'a> {
    runs: &'a Runs<'a>,
    first: Reg,
    period: i64,
    known: &'a Known,
}

impl Group<'_> {
    /// Computes what does not depend on the row.
    fn prepare(&self, code: &mut FunctionBuilder, cell: &Cell) {
        expressions(cell, &mut |n| {
            let _ = self.part(code, n);
        });
    }

    fn part(&self, code: &mut FunctionBuilder, n: &IndexExpr) -> Option<Part> {
        let place = std::ptr::from_ref(n);
        if let Some(part) = self.known.borrow().get(&place) {
            return Some(*part);
        }
        if n.has_row() || n.looks() {
            return None;
        }
        let part = match *n {
            IndexExpr::Col => Part { at: self.first, row: None, col: true },
            IndexExpr::Bin(op, a, b) if n.has_column() => {
                let (a, b) = (self.part(code, a)?, self.part(code, b)?);
                // The first column of a run is a multiple of the period, and its last one is before the next.
                if matches!(op, BinOp::Div | BinOp::Rem) && a.col && b.is_same() {
                    if code.known(b.at) != Some(self.period) || !code.power(a.at).is_multiple_of(self.period as u64) {
                        return None;
                    }
                    match op {
                        BinOp::Div => Part::same(ops::binary(code, Ty::Index, BinOp::Div, a.at, b.at)),
                        _ => Part { at: code.int(0), ..a },
                    }
                } else {
                    binary(code, op, a, b)?
                }
            }
            _ => {
                let row = code.int(0);
                Part::same(self.runs.lanes_at((row, self.first)).num(code, n))
            }
        };
        self.known.borrow_mut().insert(place, part);
        Some(part)
    }
}

fn binary(code: &mut FunctionBuilder, op: BinOp, a: Part, b: Part) -> Option<Part> {
    let mut at = |op| ops::binary(code, Ty::Index, op, a.at, b.at);
    Some(match op {
        _ if a.is_same() && b.is_same() => Part::same(at(op)),
        BinOp::Add | BinOp::Sub if !b.col || (op == BinOp::Add && !a.col) => {
            let at = at(op);
            let row = match (a.row, b.row, op) {
                (Some(a), Some(b), op) => Some(ops::binary(code, Ty::Index, op, a, b)),
                (None, Some(b), BinOp::Sub) => Some(code.times(b, -1)),
                (a, b, _) => a.or(b),
            };
            Part { at, row: row.filter(|r| code.known(*r) != Some(0)), col: a.col || b.col }
        }
        BinOp::Mul if !a.col && !b.col && (a.row.is_none() || b.row.is_none()) => {
            let at = at(op);
            let row = match (a.row, b.row) {
                (Some(row), _) => code.bin(L::Mul, row, b.at),
                (_, Some(row)) => code.bin(L::Mul, row, a.at),
                _ => return None,
            };
            Part { at, row: Some(row), col: false }
        }
        _ => return None,
    })
}

/// `n`, at least 0 and at most `last`.
fn inside(code: &mut FunctionBuilder, n: Reg, last: Reg) -> Reg {
    let zero = code.int(0);
    let low = code.bin(L::Min, n, last);
    code.bin(L::Max, low, zero)
}

/// Whether the same element is at the same place.
fn same_place(a: &Matrix, b: &Matrix) -> bool {
    (a.base, a.offset, a.rows, a.cols) == (b.base, b.offset, b.rows, b.cols)
}

/// The tests that all have to hold, in their order.
fn tests(test: &'static Test) -> Vec<&'static Test> {
    match test {
        Test::And(a, b) => [tests(a), tests(b)].concat(),
        Test::Cmp(..) => vec![test],
    }
}

/// Every number that a cell depends on.
fn expressions(cell: &Cell, visit: &mut dyn FnMut(&'static IndexExpr)) {
    fn within(n: &'static IndexExpr, visit: &mut dyn FnMut(&'static IndexExpr)) {
        visit(n);
        if let IndexExpr::Bin(_, a, b) = n {
            within(a, visit);
            within(b, visit);
        }
    }
    match *cell {
        Cell::At(_, r, c) => [r, c].into_iter().for_each(|n| within(n, visit)),
        Cell::Of(n) => within(n, visit),
        Cell::If(test, a, b) => {
            for test in tests(test) {
                if let Test::Cmp(_, x, y) = test {
                    [x, y].into_iter().for_each(|n| within(n, visit));
                }
            }
            expressions(a, visit);
            expressions(b, visit);
        }
        Cell::Scalar(_) | Cell::Is(_) => {}
    }
}
