//! Cells whose columns come in runs of neighbours: rows of a window, of two tiles side by side, channels of an unfolded
//! image. What is read lies side by side within a run, and a test is decided for all of it, or changes once. So a run
//! is copied or filled as one, where lanes by themselves would each compute where their element lies and gather it.
//!
//! For machines with vectors. On a GPU neighbouring threads compute their addresses at no cost, and short runs one
//! after another would leave most of them idle.

use super::cells::{CellOperand, Emit};
use super::code::FunctionBuilder;
use super::matrix::Matrix;
use super::ops;
use ptoc_ir::loops::{BinOp as L, MemTy, Reg};
use ptoc_ir::tile::Ty;
use ptoc_isa::{BinOp, Cell, CmpOp, IndexExpr, Test};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// A number in each column of a run.
#[derive(Clone, Copy)]
enum Part {
    /// The same in all.
    Same(Reg),
    /// This one in the first, and one more from column to column.
    Steps(Reg),
}

/// Instructions that put elements elsewhere, run by run.
pub(super) struct Runs<'a> {
    pub(super) sources: &'a [CellOperand],
    /// The destination's dtype, and how its elements are stored: raw, or as numbers.
    pub(super) dtype: DType,
    pub(super) ty: MemTy,
    pub(super) raw: bool,
}

/// A run: a row of the destination, its first column, and its columns.
#[derive(Clone, Copy)]
struct Run {
    row: Reg,
    first: Reg,
    count: Reg,
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
        let (rows, cols) = shape;
        code.push();
        let mut done = Some(());
        match self.period(code, cell) {
            None => {
                let first = code.int(0);
                code.for_count(rows, |code, row| {
                    let run = Run { row, first, count: cols };
                    done = self.run(code, cell, run, target, &Known::default());
                });
            }
            Some(period) => {
                let whole = code.known(cols).is_some_and(|n| n % period == 0);
                let (more, most) = (code.plus(cols, period - 1), code.int(period));
                let groups = code.bin(L::DivFloor, more, most);
                code.for_count(groups, |code, group| {
                    let first = code.times(group, period);
                    let left = code.bin(L::Sub, cols, first);
                    let count = if whole { most } else { code.bin(L::Min, left, most) };
                    let known = Known::default();
                    let group = Group { runs: self, first, period, known: &known };
                    group.prepare(code, cell);
                    code.for_count(rows, |code, row| {
                        done = self.run(code, cell, Run { row, first, count }, target, &known);
                    });
                });
            }
        }
        let made = code.pop();
        done?;
        code.append(made);
        Some(())
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

    /// The cells of a run.
    fn run(&self, code: &mut FunctionBuilder, cell: &Cell, run: Run, target: &Matrix, known: &Known) -> Option<()> {
        match *cell {
            Cell::If(test, a, b) => self.branch(code, (&tests(test), a, b), run, target, known),
            Cell::At(k, r, c) => self.copy(code, (k, r, c), run, target, known),
            Cell::Scalar(_) | Cell::Is(_) => {
                let value = self.lanes_at((run.row, run.first)).cell(code, cell);
                let row = target.at_row(code, run.row).at_col(code, run.first);
                code.lanes(run.count, |code, _| code.store(row.ty, row.lane(), value));
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
        run: Run,
        target: &Matrix,
        known: &Known,
    ) -> Option<()> {
        let Some((Test::Cmp(op, x, y), rest)) = tests.split_first().map(|(t, rest)| (*t, rest)) else {
            return self.run(code, a, run, target, known);
        };
        match (self.part(code, x, run, known)?, self.part(code, y, run, known)?) {
            (Part::Same(x), Part::Same(y)) => {
                let cond = ops::compare(code, Ty::Index, *op, x, y);
                let (mut then, mut els) = (None, None);
                code.either(
                    cond,
                    |code| then = self.branch(code, (rest, a, b), run, target, known),
                    |code| els = self.run(code, b, run, target, known),
                );
                then.and(els)
            }
            (Part::Steps(x), Part::Same(y)) => {
                // x, x + 1, .. are less than y in the first y - x columns.
                let end = match op {
                    CmpOp::Lt | CmpOp::Ge => y,
                    CmpOp::Le | CmpOp::Gt => code.plus(y, 1),
                    CmpOp::Eq | CmpOp::Ne => return None,
                };
                let less = code.bin(L::Sub, end, x);
                let zero = code.int(0);
                let less = code.bin(L::Max, less, zero);
                let less = code.bin(L::Min, less, run.count);
                let more = Run { first: code.add(run.first, less), count: code.bin(L::Sub, run.count, less), ..run };
                let less = Run { count: less, ..run };
                let (yes, no) = if matches!(op, CmpOp::Lt | CmpOp::Le) { (less, more) } else { (more, less) };
                self.branch(code, (rest, a, b), yes, target, &Known::default())?;
                self.run(code, b, no, target, &Known::default())
            }
            _ => None,
        }
    }

    /// Neighbours of a tile, or one of its elements in every column. A place outside is the nearest one inside, as for
    /// lanes: preconditions leave none, and machine code is trusted with memory.
    fn copy(
        &self,
        code: &mut FunctionBuilder,
        (k, r, c): (usize, &'static IndexExpr, &'static IndexExpr),
        run: Run,
        target: &Matrix,
        known: &Known,
    ) -> Option<()> {
        let CellOperand::Tile(m, (rows, cols), _) = &self.sources[k] else { return None };
        let m = if self.raw { m.raw() } else { *m };
        if m.places.is_some() {
            return None;
        }
        if (r, c) == (&IndexExpr::Row, &IndexExpr::Col) && same_place(&m, target) {
            // It is the destination as it was.
            return Some(());
        }
        let Part::Same(row) = self.part(code, r, run, known)? else { return None };
        let last = code.plus(*rows, -1);
        let row = inside(code, row, last);
        let from = m.at_row(code, row);
        let (from, count) = match self.part(code, c, run, known)? {
            Part::Same(col) => {
                let last = code.plus(*cols, -1);
                let col = inside(code, col, last);
                (from.at_col(code, col).one_column(), run.count)
            }
            Part::Steps(col) => {
                let count = code.bin(L::Min, run.count, *cols);
                let last = code.bin(L::Sub, *cols, count);
                let col = inside(code, col, last);
                (from.at_col(code, col), count)
            }
        };
        let to = target.at_row(code, run.row).at_col(code, run.first);
        code.lanes(count, |code, _| {
            let value = code.load(from.ty, from.lane());
            code.store(to.ty, to.lane(), value);
        });
        Some(())
    }

    fn part(&self, code: &mut FunctionBuilder, n: &IndexExpr, run: Run, known: &Known) -> Option<Part> {
        if let Some(part) = known.borrow().get(&std::ptr::from_ref(n)) {
            return Some(*part);
        }
        if !n.has_column() {
            return (!n.looks()).then(|| Part::Same(self.lanes_at((run.row, run.first)).num(code, n)));
        }
        match *n {
            IndexExpr::Col => Some(Part::Steps(run.first)),
            IndexExpr::Bin(op, a, b) => {
                let (a, b) = (self.part(code, a, run, known)?, self.part(code, b, run, known)?);
                binary(code, op, a, b)
            }
            _ => None,
        }
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
            IndexExpr::Col => Part::Steps(self.first),
            IndexExpr::Bin(op, a, b) if n.has_column() => {
                let (a, b) = (self.part(code, a)?, self.part(code, b)?);
                match (op, a, b) {
                    // The first column of a run is a multiple of the period, and its last one is before the next.
                    (BinOp::Div | BinOp::Rem, Part::Steps(x), Part::Same(y)) => {
                        if code.known(y) != Some(self.period) || !code.power(x).is_multiple_of(self.period as u64) {
                            return None;
                        }
                        match op {
                            BinOp::Div => Part::Same(ops::binary(code, Ty::Index, BinOp::Div, x, y)),
                            _ => Part::Steps(code.int(0)),
                        }
                    }
                    _ => binary(code, op, a, b)?,
                }
            }
            _ => {
                let row = code.int(0);
                Part::Same(self.runs.lanes_at((row, self.first)).num(code, n))
            }
        };
        self.known.borrow_mut().insert(place, part);
        Some(part)
    }
}

fn binary(code: &mut FunctionBuilder, op: BinOp, a: Part, b: Part) -> Option<Part> {
    Some(match (op, a, b) {
        (_, Part::Same(a), Part::Same(b)) => Part::Same(ops::binary(code, Ty::Index, op, a, b)),
        (BinOp::Add, Part::Steps(a), Part::Same(b)) | (BinOp::Add, Part::Same(a), Part::Steps(b)) => {
            Part::Steps(code.add(a, b))
        }
        (BinOp::Sub, Part::Steps(a), Part::Same(b)) => Part::Steps(code.bin(L::Sub, a, b)),
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
