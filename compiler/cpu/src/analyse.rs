//! What a `Lanes` body is made of, before it is emitted.

use ptoc_ir::loops::{BinOp, Cast, Func, LTy, Lanes, MemTy, Op, Reg, SharedInfo, Stmt, Stride, UnOp, operands};

/// How four lanes of a statement are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// By one vector instruction (or a few).
    Vector,
    /// As an affine function of the lane, if the operands are.
    Affine,
    /// Lane by lane.
    Each,
}

/// A body and what is known about it.
pub(crate) struct Body<'a> {
    func: &'a Func,
    pub(crate) lane: Reg,
    pub(crate) stmts: &'a [Stmt],
    /// What all lanes share, so that it is computed once.
    pub(crate) info: SharedInfo,
}

impl<'a> Body<'a> {
    pub(crate) fn new(func: &'a Func, lanes: &'a Lanes) -> Body<'a> {
        Body { func, lane: lanes.lane, stmts: &lanes.body, info: SharedInfo::new(lanes) }
    }

    /// Whether all lanes have the same value in `reg`.
    pub(crate) fn is_shared(&self, reg: Reg) -> bool {
        self.info.is_shared(reg)
    }

    /// The statements that every lane executes, with their positions.
    pub(crate) fn own(&self) -> impl Iterator<Item = (usize, &'a Stmt)> + '_ {
        self.stmts.iter().enumerate().filter(|(n, _)| !self.info.shared[*n])
    }

    fn is_wide(&self, reg: Reg) -> bool {
        self.func.regs[reg].ty == LTy::I64
    }

    /// How to compute four lanes of `op`, which is no load or store and differs between lanes.
    pub(crate) fn class(&self, op: &Op) -> Class {
        let (inputs, dst) = operands(op);
        match *op {
            Op::Cast { op: Cast::Wrap, .. } => Class::Vector,
            Op::Binary { op: BinOp::Add | BinOp::Sub | BinOp::Mul, dst, .. } if self.is_wide(dst) => Class::Affine,
            _ if inputs.into_iter().flatten().chain(dst).any(|r| self.is_wide(r)) => Class::Each,
            Op::Binary { op: BinOp::Shl | BinOp::Shr | BinOp::ShrU, b, .. } if self.is_shared(b) => Class::Vector,
            Op::Binary {
                op:
                    BinOp::DivFloor
                    | BinOp::DivU
                    | BinOp::Rem
                    | BinOp::RemU
                    | BinOp::RemFloor
                    | BinOp::Shl
                    | BinOp::Shr
                    | BinOp::ShrU,
                ..
            } => Class::Each,
            Op::Binary { op: BinOp::Div, dst, .. } if self.func.regs[dst].ty == LTy::I32 => Class::Each,
            _ => Class::Vector,
        }
    }

    /// Whether it is faster by fours. Work lane by lane costs about as much as a scalar loop's, plus the moves in and
    /// out of vectors.
    pub(crate) fn worth_vectors(&self) -> bool {
        let (mut vector, mut each) = (0, 0);
        for (_, stmt) in self.own() {
            match &stmt.op {
                Op::Load { ty, addr, .. } | Op::Store { ty, addr, .. } => {
                    if *ty == MemTy::I64 {
                        each += 1;
                    } else if addr.gather.is_some_and(|g| !self.is_shared(g))
                        || addr.stride != Stride::Const(i64::from(ty.size()))
                    {
                        each += 1;
                        vector += 1;
                    } else {
                        vector += 1;
                    }
                }
                op => match self.class(op) {
                    Class::Vector => vector += 1,
                    Class::Affine => {}
                    Class::Each => each += 1,
                },
            }
        }
        vector > 0 && each <= 2 * vector
    }

    /// How often to repeat the body in the main loop: short bodies are dominated by the loop's own instructions.
    pub(crate) fn repeat(&self) -> i64 {
        // Roughly in vector instructions: conversions of halves are long.
        let weight = |op: &Op| match op {
            Op::Load { ty: MemTy::F16, .. } => 10,
            Op::Store { ty: MemTy::F16, .. } => 18,
            Op::Store { ty: MemTy::BF16, .. } | Op::Unary { op: UnOp::RoundBf16, .. } => 8,
            Op::Unary { op: UnOp::RoundF16, .. } => 12,
            _ => 1,
        };
        match self.own().map(|(_, stmt)| weight(&stmt.op)).sum::<usize>() {
            0..=6 => 4,
            7..=14 => 2,
            _ => 1,
        }
    }
}
