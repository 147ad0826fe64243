//! The `ensures` oracle: a kernel's mathematics as expressions over indices, evaluated in f64 or exactly in integers.
//!
//! An [`Equation`] says what every element of a tensor should be: its free variables range over the tensor's extents.
//! A [`Condition`] says what must hold for all values of its variables (`where zeros[n, g] < 16`). Both are built by
//! the analysis, checked once by [`Oracle::new`] or [`Predicate::new`], and evaluated as often as one likes.
//!
//! There are two kinds of expression. [`IntExpr`] is index arithmetic: i64, division floors, and whatever overflows,
//! divides by zero or indexes outside a tensor is an [`OracleError`], for then the specification itself is wrong.
//! [`OracleExpr`] is the mathematics: real numbers in f64 without any rounding to dtypes, or, for an equation with
//! `exact`, integers in i128, to be compared modulo the tensor's width.
//!
//! [`OracleExpr::Select`] evaluates only the branch that it takes, so `if k < N { a[k] } else { 0 }` is safe. Logical
//! `a && b` is `Select(a, b, 0)`, and `a || b` is `Select(a, 1, b)`. Truth is 1 and 0.

mod eval;
mod node;
mod num;
mod rewrite;
mod work;

pub use num::erf;
pub use rewrite::{Rewrite, Shift, Substitute};
pub use work::{MAX_WORK, Sample};

use crate::tile::Ty;
use ptoc_isa::{BinOp, CmpOp, UnOp};
use ptoc_tensor::DType;
use std::fmt;
use std::ops::Range;

/// Index variables that one equation may have, reductions included.
pub const MAX_VARS: usize = 64;

/// Index arithmetic.
#[derive(Clone, Debug, PartialEq)]
pub enum IntExpr {
    /// A constant.
    Const(i64),
    /// An index variable: free, or bound by a reduction.
    Var(usize),
    /// A launch integer: a dimension or another `index` that the caller passes.
    Input(usize),
    /// Extent of a mode of a tensor.
    Extent {
        /// Which tensor.
        tensor: usize,
        /// Which mode.
        mode: usize,
    },
    /// Element of an integer tensor.
    Elem {
        /// Which tensor.
        tensor: usize,
        /// One index a mode.
        index: Vec<IntExpr>,
    },
    /// `a op b`; `Div` and `Rem` floor.
    Binary(IntOp, Box<IntExpr>, Box<IntExpr>),
}

/// Operations of index arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Min,
    Max,
}

/// Kinds of reduction; of nothing they are 0, 1, the least and the greatest number (for integers an error), 0, and
/// true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ReduceKind {
    Sum,
    Prod,
    Max,
    Min,
    /// The first value of the variable with the largest element; the first NaN if there is one.
    ArgMax,
    /// Likewise with the smallest.
    ArgMin,
    /// 1 if the elements are the numbers from 0 on, each once and in any order.
    Permutation,
}

/// A mathematical expression.
#[derive(Clone, Debug, PartialEq)]
pub enum OracleExpr {
    /// A real constant.
    Const(f64),
    /// An index as a number; integer constants too.
    Int(IntExpr),
    /// A scalar argument of the launch.
    Scalar(usize),
    /// A number that [`OracleExpr::Let`] has bound.
    Local(usize),
    /// Element of a tensor.
    Elem {
        /// Which tensor.
        tensor: usize,
        /// One index a mode.
        index: Vec<IntExpr>,
    },
    /// `op a`. `Not` is logical: 1 if `a` is 0, else 0.
    Unary(UnOp, Box<OracleExpr>),
    /// `a op b`. On reals `Div` is exact division and the bit operations demand integral numbers; on integers `Div`
    /// truncates, x/0 is -1 and x%0 is x.
    Binary(BinOp, Box<OracleExpr>, Box<OracleExpr>),
    /// `a` to the power `b`; of integers for `b` of 0 and more.
    Pow(Box<OracleExpr>, Box<OracleExpr>),
    /// 1 if `a op b`, else 0.
    Compare(CmpOp, Box<OracleExpr>, Box<OracleExpr>),
    /// `cond ? a : b`; the other branch is not evaluated.
    Select(Box<OracleExpr>, Box<OracleExpr>, Box<OracleExpr>),
    /// Reduction of `body` over `var` in `lo..hi`.
    Reduce {
        /// What it computes.
        kind: ReduceKind,
        /// The variable, visible in `body`.
        var: usize,
        /// First value.
        lo: IntExpr,
        /// One past the last.
        hi: IntExpr,
        /// What is reduced.
        body: Box<OracleExpr>,
    },
    /// 1 if `a` and `b` have the same values for `var` in `lo..hi`, in any order, else 0.
    Rearranged {
        /// The variable, visible in `a` and `b`.
        var: usize,
        /// First value.
        lo: IntExpr,
        /// One past the last.
        hi: IntExpr,
        /// The one list.
        a: Box<OracleExpr>,
        /// The other one.
        b: Box<OracleExpr>,
    },
    /// Evaluates `value` once and binds it in `body`.
    Let {
        /// The slot, for [`OracleExpr::Local`].
        slot: usize,
        /// The value.
        value: Box<OracleExpr>,
        /// Where it is visible.
        body: Box<OracleExpr>,
    },
}

impl OracleExpr {
    /// `a op b`
    pub fn binary(op: BinOp, a: OracleExpr, b: OracleExpr) -> OracleExpr {
        OracleExpr::Binary(op, Box::new(a), Box::new(b))
    }

    /// `op a`
    pub fn unary(op: UnOp, a: OracleExpr) -> OracleExpr {
        OracleExpr::Unary(op, Box::new(a))
    }

    /// `a op b`, a truth value
    pub fn compare(op: CmpOp, a: OracleExpr, b: OracleExpr) -> OracleExpr {
        OracleExpr::Compare(op, Box::new(a), Box::new(b))
    }

    /// `cond ? a : b`
    pub fn select(cond: OracleExpr, a: OracleExpr, b: OracleExpr) -> OracleExpr {
        OracleExpr::Select(Box::new(cond), Box::new(a), Box::new(b))
    }

    /// An integer constant.
    pub fn int(value: i64) -> OracleExpr {
        OracleExpr::Int(IntExpr::Const(value))
    }
}

impl IntExpr {
    /// `a op b`
    pub fn binary(op: IntOp, a: IntExpr, b: IntExpr) -> IntExpr {
        IntExpr::Binary(op, Box::new(a), Box::new(b))
    }
}

/// `tensor[vars] == expr`
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// The tensor on the left.
    pub tensor: usize,
    /// Its index variables, one a mode, all different.
    pub vars: Vec<usize>,
    /// What each element should be.
    pub expr: OracleExpr,
    /// Integers instead of reals.
    pub exact: bool,
}

/// `cond` for all values of the variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Each variable with its range `lo..hi`; a range may use the variables before it.
    pub vars: Vec<(usize, IntExpr, IntExpr)>,
    /// What must be true.
    pub cond: OracleExpr,
    /// Integers instead of reals.
    pub exact: bool,
}

/// `left == right` for all values of the variables, up to a tolerance where they are reals.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// Each variable with its range `lo..hi`; a range may use the variables before it.
    pub vars: Vec<(usize, IntExpr, IntExpr)>,
    /// What is compared.
    pub left: OracleExpr,
    /// What it is compared with.
    pub right: OracleExpr,
    /// Integers instead of reals.
    pub exact: bool,
}

/// One `ensures`.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// What it says.
    pub claim: Claim,
    /// What its index variables are called, in the claim's order.
    pub names: Vec<String>,
    /// Its own relative tolerance, where it has one.
    pub rtol: Option<f64>,
    /// Its own absolute tolerance.
    pub atol: Option<f64>,
}

/// What an `ensures` says.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// What each element of a tensor is.
    Equation(Equation),
    /// What two expressions have in common.
    Relation(Relation),
    /// What is true.
    Condition(Condition),
}

/// A tensor as the evaluator sees it: contiguous, row-major, little-endian.
#[derive(Clone, Copy, Debug)]
pub struct OracleTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: &'a [u64],
    /// The bytes; may be empty where only the extents matter.
    pub data: &'a [u8],
}

/// What an evaluation is given.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Tensors by number.
    pub tensors: &'a [OracleTensor<'a>],
    /// Launch integers by number.
    pub ints: &'a [i64],
    /// Scalar arguments: type and bits.
    pub scalars: &'a [(Ty, u64)],
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OracleError {
    /// An index outside a tensor.
    OutOfRange {
        /// Which tensor.
        tensor: usize,
        /// Which mode.
        mode: usize,
        /// The index.
        index: i64,
        /// The extent.
        extent: u64,
    },
    /// Index arithmetic overflowed i64, or exact arithmetic i128.
    Overflow,
    /// An index divided by zero.
    DivisionByZero,
    /// An integer is needed and there is none: a real operation in an exact equation, a fraction in a bit operation.
    NotInteger,
    /// A maximum or minimum of no integers.
    EmptyReduction,
    /// The expression refers to something that is not there, or is too large or too deep.
    Malformed(&'static str),
}

impl fmt::Display for OracleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OracleError::OutOfRange { mode, index, extent, .. } => {
                write!(f, "index {index} in mode {mode} of a tensor, whose extent there is {extent}")
            }
            OracleError::Overflow => f.write_str("integer arithmetic overflows"),
            OracleError::DivisionByZero => f.write_str("an index is divided by zero"),
            OracleError::NotInteger => f.write_str("an integer is needed, and the value is none"),
            OracleError::EmptyReduction => f.write_str("the largest or smallest of no integers"),
            OracleError::Malformed(what) => write!(f, "malformed expression: {what}"),
        }
    }
}

impl std::error::Error for OracleError {}

/// A checked equation.
#[derive(Clone, Debug)]
pub struct Oracle {
    equation: Equation,
    node: node::Node,
    locals: usize,
}

impl Oracle {
    /// Checks an equation: slots are bound where they are used, nesting is bounded, exact ones have integers only.
    pub fn new(equation: Equation) -> Result<Oracle, OracleError> {
        let mut compiler = node::Compiler::new(equation.exact);
        for &var in &equation.vars {
            compiler.bind(var)?;
        }
        let node = compiler.value(&equation.expr)?;
        Ok(Oracle { locals: compiler.locals(), equation, node })
    }

    /// Whether it is about integers.
    pub fn is_exact(&self) -> bool {
        self.equation.exact
    }

    /// The tensor on the left.
    pub fn tensor(&self) -> usize {
        self.equation.tensor
    }

    /// What the tensor should hold, in C order. Exact equations lose what f64 cannot hold; see
    /// [`Oracle::evaluate_exact`].
    pub fn evaluate(&self, inputs: Inputs<'_>) -> Result<Vec<f64>, OracleError> {
        Ok(self.evaluate_sample(inputs, Sample::ALL)?.values)
    }

    /// Likewise, for the elements of a sample.
    pub fn evaluate_sample(&self, inputs: Inputs<'_>, sample: Sample) -> Result<Sampled<f64>, OracleError> {
        if self.equation.exact {
            let Sampled { values, skipped } = self.evaluate_exact(inputs, sample)?;
            return Ok(Sampled { values: values.into_iter().map(|x| x as f64).collect(), skipped });
        }
        eval::equation(&self.equation, &self.node, self.locals, inputs, sample)
    }

    /// What the tensor should hold, in C order, as integers of any size: to be compared modulo the dtype's width. An
    /// equation that is not exact gives [`OracleError::NotInteger`].
    pub fn evaluate_exact(&self, inputs: Inputs<'_>, sample: Sample) -> Result<Sampled<i128>, OracleError> {
        if !self.equation.exact {
            return Err(OracleError::NotInteger);
        }
        eval::equation(&self.equation, &self.node, self.locals, inputs, sample)
    }
}

/// The elements of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled<T> {
    /// All elements; 0 for those that were not evaluated.
    pub values: Vec<T>,
    /// Those that were not.
    pub skipped: Vec<Range<usize>>,
}

/// A checked condition.
#[derive(Clone, Debug)]
pub struct Predicate {
    vars: Vec<(usize, node::Int, node::Int)>,
    node: node::Node,
    locals: usize,
    exact: bool,
}

impl Predicate {
    /// Checks a condition, as [`Oracle::new`] does.
    pub fn new(condition: &Condition) -> Result<Predicate, OracleError> {
        let mut compiler = node::Compiler::new(condition.exact);
        let mut vars = Vec::new();
        for (var, lo, hi) in &condition.vars {
            let (lo, hi) = (compiler.int(lo)?, compiler.int(hi)?);
            compiler.bind(*var)?;
            vars.push((*var, lo, hi));
        }
        let node = compiler.value(&condition.cond)?;
        Ok(Predicate { vars, node, locals: compiler.locals(), exact: condition.exact })
    }

    /// The first values of the variables for which the condition fails; `None` if it holds for all.
    pub fn counterexample(&self, inputs: Inputs<'_>) -> Result<Option<Vec<i64>>, OracleError> {
        if self.exact {
            eval::counterexample::<i128>(&self.vars, &self.node, self.locals, inputs)
        } else {
            eval::counterexample::<f64>(&self.vars, &self.node, self.locals, inputs)
        }
    }
}

/// A checked relation.
#[derive(Clone, Debug)]
pub struct Comparison {
    vars: Vec<(usize, node::Int, node::Int)>,
    left: node::Node,
    right: node::Node,
    locals: usize,
    exact: bool,
}

impl Comparison {
    /// Checks a relation, as [`Oracle::new`] does.
    pub fn new(relation: &Relation) -> Result<Comparison, OracleError> {
        let mut compiler = node::Compiler::new(relation.exact);
        let mut vars = Vec::new();
        for (var, lo, hi) in &relation.vars {
            let (lo, hi) = (compiler.int(lo)?, compiler.int(hi)?);
            compiler.bind(*var)?;
            vars.push((*var, lo, hi));
        }
        let (left, right) = (compiler.value(&relation.left)?, compiler.value(&relation.right)?);
        Ok(Comparison { vars, left, right, locals: compiler.locals(), exact: relation.exact })
    }

    /// Calls `f` with the values of the variables and those of both sides, for all of them in order. Sides that are
    /// integers are equal if their difference is 0; `equal` says so exactly.
    pub fn each(&self, inputs: Inputs<'_>, f: &mut dyn FnMut(Compared<'_>)) -> Result<(), OracleError> {
        let sides = (&self.left, &self.right);
        if self.exact {
            eval::pairs::<i128>(&self.vars, sides, self.locals, inputs, &mut |at, a, b| {
                f(Compared { at, left: a as f64, right: b as f64, equal: a == b });
            })
        } else {
            eval::pairs::<f64>(&self.vars, sides, self.locals, inputs, &mut |at, a, b| {
                f(Compared { at, left: a, right: b, equal: a == b || a.is_nan() && b.is_nan() });
            })
        }
    }

    /// Whether it is about integers.
    pub fn is_exact(&self) -> bool {
        self.exact
    }
}

/// Both sides of a relation, for some values of its variables.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The values of the variables.
    pub at: &'a [i64],
    /// The left side.
    pub left: f64,
    /// The right side.
    pub right: f64,
    /// Whether they are equal; NaN is equal to NaN.
    pub equal: bool,
}

#[cfg(test)]
mod tests;
