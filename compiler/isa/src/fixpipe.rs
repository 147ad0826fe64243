//! What happens to elements on their way out of the accumulator: they are taken as they are or quantised, negative ones
//! may become 0 before that, and a window of the source goes to a window of the destination. The unit that does it is
//! called the fixpipe.
//!
//! The interpreter and the lowering both evaluate [`Fixpipe::expr`]; elaboration, verifier and reference read the rest.

use crate::{BinOp, Expr, Instr, Loc, MemorySpace, OperandKind, Precondition, Target, To, UnOp};
use ptoc_tensor::DType;

/// Which part of which tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FixpipeWindow {
    /// All of the source to all of the destination.
    Whole,
    /// As much of the source as the destination has room for, from a row and column on.
    OfSource,
    /// All of the source to the destination, from a row and column on.
    OfDestination,
}

/// The meaning of such an instruction. Its operands are the destination, `a` in Acc, the scale if it quantises (a
/// scalar, or a row of the table in Scaling), and row and column of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixpipe {
    /// It is given a scale.
    pub quantised: bool,
    /// The window.
    pub window: FixpipeWindow,
    /// What is demanded before.
    pub needs: &'static [Precondition],
    /// A kernel that uses it, as in [`crate::Cells`].
    pub example: &'static str,
}

const A: &Expr = &Expr::Arg(1);
const POSITIVE: &Expr = &Expr::Un(UnOp::Relu, A);
const SCALED: &Expr = &Expr::Convert(&Expr::Bin(BinOp::Mul, &Expr::Convert(A, To::F32), &Expr::Arg(2)), To::Narrow);
const POSITIVE_SCALED: &Expr =
    &Expr::Convert(&Expr::Bin(BinOp::Mul, &Expr::Convert(POSITIVE, To::F32), &Expr::Arg(2)), To::Narrow);

/// What a move out of the accumulator makes of an element (`Arg(1)`), with its scale in f32 (`Arg(2)`) if it quantises.
pub fn drained(quantised: bool, relu: bool) -> &'static Expr {
    match (quantised, relu) {
        (false, false) => A,
        (false, true) => POSITIVE,
        (true, false) => SCALED,
        (true, true) => POSITIVE_SCALED,
    }
}

impl Fixpipe {
    /// What becomes of an element.
    pub fn expr(&self, relu: bool) -> &'static Expr {
        drained(self.quantised, relu)
    }

    /// The position of the window's row among the operands; its column is the next one.
    pub fn row_operand(&self) -> Option<usize> {
        (self.window != FixpipeWindow::Whole).then_some(2 + self.quantised as usize)
    }

    /// Whether each column has a scale of its own.
    pub fn by_column(&self, row: &Instr) -> bool {
        self.quantised && row.operands[2].is_tile()
    }

    /// As a formula of that instruction.
    pub(crate) fn formula(&self, row: &Instr) -> String {
        let view = row.operands[0].kind == OperandKind::View;
        let dst = if view { "view" } else { "dst" };
        let (to, from) = match self.window {
            FixpipeWindow::Whole => ("i, j", "a[i, j]"),
            FixpipeWindow::OfSource => ("i, j", "a[i + row, j + col]"),
            FixpipeWindow::OfDestination => ("i + row, j + col", "a[i, j]"),
        };
        let value = match (self.quantised, self.by_column(row)) {
            (false, _) => from.to_owned(),
            (true, false) => format!("narrow(f32({from}) * scale)"),
            (true, true) => format!("narrow(f32({from}) * scale[0, j])"),
        };
        format!("{dst}[{to}] = {value}")
    }
}

/// The dtypes that a table of scales may have: f32, or u64, whose lower half is the bits of one, as PTO has it.
pub const SCALES: [DType; 2] = [DType::U64, DType::F32];

/// Those that the target moves to Scaling.
pub fn scales(target: &Target) -> Vec<DType> {
    let rule = target.move_rule(MemorySpace::Tile(Loc::Mat), MemorySpace::Tile(Loc::Scaling));
    let moves = |d: &DType| rule.is_some_and(|r| r.pairs.contains(&(*d, *d)));
    SCALES.into_iter().filter(moves).collect()
}
