//! The meaning of an instruction that puts elements elsewhere, as data: for element (i, j) of the destination, which
//! element of which source it is, under which condition, or which number. Indices are whole numbers of 64 bits; they
//! may depend on valid extents, on index operands, and on elements of operands that hold integers.
//!
//! The interpreter evaluates it and the lowering emits it (`ptoc_ir::cells`), elaboration checks what it demands of
//! shapes, and the reference prints it. Elements are copied bit by bit.

use crate::{BinOp, CmpOp, Instr, OperandKind};

/// A whole number. Arithmetic is that of `index`: it wraps, and division is towards minus infinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexExpr {
    /// The element's row, i.
    Row,
    /// The element's column, j.
    Col,
    /// Valid rows of the operand.
    Rows(usize),
    /// Valid columns of the operand.
    Cols(usize),
    /// Columns that a row of the operand has room for: what is between an element and the one below it.
    Width(usize),
    /// Bytes of an element of the operand.
    Size(usize),
    /// A number.
    Is(i64),
    /// The operand, which is a scalar: an index, a choice, or an integer.
    Arg(usize),
    /// An element of the operand, which holds integers.
    At(usize, &'static IndexExpr, &'static IndexExpr),
    /// `a op b`
    Bin(BinOp, &'static IndexExpr, &'static IndexExpr),
}

/// A condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// `a op b`
    Cmp(CmpOp, &'static IndexExpr, &'static IndexExpr),
    /// Both.
    And(&'static Test, &'static Test),
}

/// An element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// The operand's element in this row and column, which must be a valid one.
    At(usize, &'static IndexExpr, &'static IndexExpr),
    /// The scalar operand.
    Scalar(usize),
    /// A small number, of the destination's dtype.
    Is(i32),
    /// A number, modulo the width of the destination's dtype, which is an integer.
    Of(&'static IndexExpr),
    /// `test ? a : b`; the other one is not read.
    If(&'static Test, &'static Cell, &'static Cell),
}

/// What must hold of shapes and index operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Precondition {
    /// The left side. Neither side depends on an element.
    pub left: IndexExpr,
    /// `Eq` or `Le`.
    pub op: CmpOp,
    /// The right side.
    pub right: IndexExpr,
    /// What the numbers are, for the message: `{0}` and `{1}` are the sides.
    pub what: &'static str,
}

/// The meaning of such an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cells {
    /// Element (i, j) of the destination.
    pub value: Cell,
    /// What is demanded before.
    pub needs: &'static [Precondition],
    /// A kernel that uses it, for its page: parameters, then statements, divided by `|`, in a grid of blocks `i` of `M`
    /// by 32 and `j` of `N` by 64.
    pub example: &'static str,
}

impl IndexExpr {
    /// Whether it depends on an element of an operand.
    pub fn looks(&self) -> bool {
        match self {
            IndexExpr::At(..) => true,
            IndexExpr::Bin(_, a, b) => a.looks() || b.looks(),
            _ => false,
        }
    }

    /// Whether it depends on the element's row.
    pub fn has_row(&self) -> bool {
        match self {
            IndexExpr::Row => true,
            IndexExpr::At(_, a, b) | IndexExpr::Bin(_, a, b) => a.has_row() || b.has_row(),
            _ => false,
        }
    }

    /// Whether it depends on the element's column.
    pub fn has_column(&self) -> bool {
        match self {
            IndexExpr::Col => true,
            IndexExpr::At(_, a, b) | IndexExpr::Bin(_, a, b) => a.has_column() || b.has_column(),
            _ => false,
        }
    }

    /// Whether there is a quotient or a remainder in it.
    pub fn divides(&self) -> bool {
        match self {
            IndexExpr::Bin(BinOp::Div | BinOp::Rem, ..) => true,
            IndexExpr::At(_, a, b) | IndexExpr::Bin(_, a, b) => a.divides() || b.divides(),
            _ => false,
        }
    }

    /// The first element of an operand that it depends on: the operand, its row and its column.
    pub fn first_look(&self) -> Option<(usize, &'static IndexExpr, &'static IndexExpr)> {
        match *self {
            IndexExpr::At(k, r, c) => Some((k, r, c)),
            IndexExpr::Bin(_, a, b) => a.first_look().or(b.first_look()),
            _ => None,
        }
    }

    /// As text; `name` writes operands. `outer` is how tightly the context binds.
    fn write(&self, name: &dyn Fn(usize) -> String, outer: u8) -> String {
        let (level, text) = match self {
            IndexExpr::Row => (9, "i".to_owned()),
            IndexExpr::Col => (9, "j".to_owned()),
            IndexExpr::Rows(k) => (9, format!("rows({})", name(*k))),
            IndexExpr::Cols(k) => (9, format!("cols({})", name(*k))),
            IndexExpr::Width(k) => (9, format!("width({})", name(*k))),
            IndexExpr::Size(k) => (9, format!("size({})", name(*k))),
            IndexExpr::Is(n) => (9, n.to_string()),
            IndexExpr::Arg(k) => (9, name(*k)),
            IndexExpr::At(k, r, c) => (9, format!("{}[{}, {}]", name(*k), r.write(name, 0), c.write(name, 0))),
            IndexExpr::Bin(op, a, b) => {
                let (level, sign) = match op {
                    BinOp::Add => (5, "+"),
                    BinOp::Sub => (5, "-"),
                    BinOp::Mul => (6, "*"),
                    BinOp::Div => (6, "/"),
                    BinOp::Rem => (6, "%"),
                    BinOp::And => (3, "&"),
                    BinOp::Shr => (4, ">>"),
                    op => (0, op.name()),
                };
                (level, format!("{} {sign} {}", a.write(name, level), b.write(name, level + 1)))
            }
        };
        if level < outer { format!("({text})") } else { text }
    }
}

impl Test {
    fn write(&self, name: &dyn Fn(usize) -> String) -> String {
        match self {
            Test::Cmp(op, a, b) => {
                let sign = op.sign();
                format!("{} {sign} {}", a.write(name, 2), b.write(name, 2))
            }
            Test::And(a, b) => format!("{} and {}", a.write(name), b.write(name)),
        }
    }
}

impl Cell {
    fn write(&self, name: &dyn Fn(usize) -> String) -> String {
        match self {
            Cell::At(k, r, c) => IndexExpr::At(*k, r, c).write(name, 0),
            Cell::Scalar(k) => name(*k),
            Cell::Is(n) => n.to_string(),
            Cell::Of(n) => n.write(name, 0),
            Cell::If(test, a, b) => format!("{} if {}, else {}", a.write(name), test.write(name), b.write(name)),
        }
    }

    /// Every element that it may be.
    pub fn reads(&self) -> Vec<(usize, &'static IndexExpr, &'static IndexExpr)> {
        match *self {
            Cell::At(k, r, c) => vec![(k, r, c)],
            Cell::If(_, a, b) => [a.reads(), b.reads()].concat(),
            _ => Vec::new(),
        }
    }
}

impl Cells {
    fn name(row: &Instr, k: usize) -> String {
        match (k, row.operands[k].kind) {
            (0, _) => "dst".to_owned(),
            (_, OperandKind::Tile(_)) if row.updates && k + 1 == row.operands.len() => "dst".to_owned(),
            _ => row.operands[k].name.to_owned(),
        }
    }

    /// As a formula of that instruction.
    pub(crate) fn formula(&self, row: &Instr) -> String {
        format!("dst[i, j] = {}", self.value.write(&|k| Cells::name(row, k)))
    }
}

/// What the meaning of an instruction demands, as text.
pub(crate) fn demands(row: &Instr) -> Vec<String> {
    let one = |n: &Precondition| {
        let side = |n: &IndexExpr| n.write(&|k| Cells::name(row, k), 2);
        format!("{} {} {}", side(&n.left), if n.op == CmpOp::Eq { "==" } else { "<=" }, side(&n.right))
    };
    row.sem.needs().iter().map(one).collect()
}
