//! Copies of expressions with other index variables or tensors.

use super::{IntExpr, OracleExpr};

/// What becomes of the leaves of an expression.
pub trait Rewrite {
    /// An index variable.
    fn var(&self, var: usize) -> IntExpr {
        IntExpr::Var(var)
    }

    /// The number of a tensor of which elements are read.
    fn tensor(&self, tensor: usize) -> usize {
        tensor
    }
}

/// An index variable replaced by an expression.
pub struct Substitute {
    /// The variable.
    pub var: usize,
    /// What stands in its place.
    pub by: IntExpr,
}

impl Rewrite for Substitute {
    fn var(&self, var: usize) -> IntExpr {
        if var == self.var { self.by.clone() } else { IntExpr::Var(var) }
    }
}

/// Tensors that are numbered from another number on.
pub struct Shift(pub usize);

impl Rewrite for Shift {
    fn tensor(&self, tensor: usize) -> usize {
        tensor + self.0
    }
}

impl IntExpr {
    /// The expression with its leaves rewritten.
    pub fn rewritten(&self, by: &dyn Rewrite) -> IntExpr {
        match self {
            IntExpr::Const(_) | IntExpr::Input(_) => self.clone(),
            IntExpr::Var(v) => by.var(*v),
            IntExpr::Extent { tensor, mode } => IntExpr::Extent { tensor: by.tensor(*tensor), mode: *mode },
            IntExpr::Elem { tensor, index } => {
                IntExpr::Elem { tensor: by.tensor(*tensor), index: index.iter().map(|i| i.rewritten(by)).collect() }
            }
            IntExpr::Binary(op, a, b) => IntExpr::binary(*op, a.rewritten(by), b.rewritten(by)),
        }
    }
}

impl IntExpr {
    fn reads(&self, test: &dyn Fn(usize, bool) -> bool) -> bool {
        match self {
            IntExpr::Const(_) | IntExpr::Var(_) | IntExpr::Input(_) | IntExpr::Extent { .. } => false,
            IntExpr::Elem { tensor, index } => test(*tensor, false) || index.iter().any(|i| i.reads(test)),
            IntExpr::Binary(_, a, b) => a.reads(test) || b.reads(test),
        }
    }
}

impl OracleExpr {
    /// The expression with its leaves rewritten. Variables that reductions bind keep their numbers.
    pub fn rewritten(&self, by: &dyn Rewrite) -> OracleExpr {
        let boxed = |e: &OracleExpr| Box::new(e.rewritten(by));
        match self {
            OracleExpr::Const(_) | OracleExpr::Scalar(_) | OracleExpr::Local(_) => self.clone(),
            OracleExpr::Int(i) => OracleExpr::Int(i.rewritten(by)),
            OracleExpr::Elem { tensor, index } => {
                OracleExpr::Elem { tensor: by.tensor(*tensor), index: index.iter().map(|i| i.rewritten(by)).collect() }
            }
            OracleExpr::Unary(op, a) => OracleExpr::Unary(*op, boxed(a)),
            OracleExpr::Binary(op, a, b) => OracleExpr::Binary(*op, boxed(a), boxed(b)),
            OracleExpr::Pow(a, b) => OracleExpr::Pow(boxed(a), boxed(b)),
            OracleExpr::Compare(op, a, b) => OracleExpr::Compare(*op, boxed(a), boxed(b)),
            OracleExpr::Select(c, a, b) => OracleExpr::Select(boxed(c), boxed(a), boxed(b)),
            OracleExpr::Reduce { kind, var, lo, hi, body } => OracleExpr::Reduce {
                kind: *kind,
                var: *var,
                lo: lo.rewritten(by),
                hi: hi.rewritten(by),
                body: boxed(body),
            },
            OracleExpr::Rearranged { var, lo, hi, a, b } => OracleExpr::Rearranged {
                var: *var,
                lo: lo.rewritten(by),
                hi: hi.rewritten(by),
                a: boxed(a),
                b: boxed(b),
            },
            OracleExpr::Let { slot, value, body } => {
                OracleExpr::Let { slot: *slot, value: boxed(value), body: boxed(body) }
            }
        }
    }

    /// Whether a tensor or a scalar for which `test` holds is read: tensors by their numbers, scalars with `true`.
    pub fn reads(&self, test: &dyn Fn(usize, bool) -> bool) -> bool {
        match self {
            OracleExpr::Const(_) | OracleExpr::Local(_) => false,
            OracleExpr::Int(i) => i.reads(test),
            OracleExpr::Scalar(n) => test(*n, true),
            OracleExpr::Elem { tensor, index } => test(*tensor, false) || index.iter().any(|i| i.reads(test)),
            OracleExpr::Unary(_, a) => a.reads(test),
            OracleExpr::Binary(_, a, b) | OracleExpr::Pow(a, b) | OracleExpr::Compare(_, a, b) => {
                a.reads(test) || b.reads(test)
            }
            OracleExpr::Select(c, a, b) => c.reads(test) || a.reads(test) || b.reads(test),
            OracleExpr::Reduce { body, .. } => body.reads(test),
            OracleExpr::Rearranged { a, b, .. } => a.reads(test) || b.reads(test),
            OracleExpr::Let { value, body, .. } => value.reads(test) || body.reads(test),
        }
    }
}
