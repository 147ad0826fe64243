//! Checked expressions: every node knows which index variables it depends on.

use super::{IntExpr, IntOp, MAX_VARS, OracleError, OracleExpr, ReduceKind};
use ptoc_isa::{BinOp, CmpOp, UnOp};

/// Deepest expression.
pub(super) const MAX_DEPTH: usize = 250;

/// Set of index variables.
pub(super) type Vars = u64;

/// Index arithmetic with its variables.
#[derive(Clone, Debug)]
pub(super) struct Int {
    pub deps: Vars,
    pub kind: IntKind,
}

#[derive(Clone, Debug)]
pub(super) enum IntKind {
    Const(i64),
    Var(usize),
    Input(usize),
    Extent(usize, usize),
    Elem(usize, Vec<Int>),
    Binary(IntOp, Box<Int>, Box<Int>),
}

/// An expression with its variables.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub deps: Vars,
    pub kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Const(f64),
    Int(Int),
    Scalar(usize),
    Local(usize),
    Elem(usize, Vec<Int>),
    Unary(UnOp, Box<Node>),
    Binary(BinOp, Box<Node>, Box<Node>),
    Pow(Box<Node>, Box<Node>),
    Compare(CmpOp, Box<Node>, Box<Node>),
    Select(Box<Node>, Box<Node>, Box<Node>),
    Reduce { kind: ReduceKind, var: usize, lo: Int, hi: Int, body: Box<Node> },
    Rearranged { var: usize, lo: Int, hi: Int, a: Box<Node>, b: Box<Node> },
    Let { slot: usize, value: Box<Node>, body: Box<Node> },
}

/// Checks expressions and finds what they depend on.
pub(super) struct Compiler {
    exact: bool,
    bound: Vars,
    /// Dependencies of each local's value, while it is bound.
    locals: Vec<Option<Vars>>,
    depth: usize,
}

impl Compiler {
    pub fn new(exact: bool) -> Compiler {
        Compiler { exact, bound: 0, locals: Vec::new(), depth: 0 }
    }

    /// Number of local slots.
    pub fn locals(&self) -> usize {
        self.locals.len()
    }

    /// Binds a variable, which must be free.
    pub fn bind(&mut self, var: usize) -> Result<(), OracleError> {
        if var >= MAX_VARS {
            return Err(OracleError::Malformed("too many index variables"));
        }
        if self.bound >> var & 1 == 1 {
            return Err(OracleError::Malformed("an index variable is bound twice"));
        }
        self.bound |= 1 << var;
        Ok(())
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, OracleError>) -> Result<T, OracleError> {
        if self.depth >= MAX_DEPTH {
            return Err(OracleError::Malformed("nested too deep"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    pub fn int(&mut self, e: &IntExpr) -> Result<Int, OracleError> {
        self.nested(|c| {
            Ok(match e {
                IntExpr::Const(x) => Int { deps: 0, kind: IntKind::Const(*x) },
                IntExpr::Var(v) if *v < MAX_VARS && c.bound >> v & 1 == 1 => {
                    Int { deps: 1 << v, kind: IntKind::Var(*v) }
                }
                IntExpr::Var(_) => return Err(OracleError::Malformed("an unbound index variable")),
                IntExpr::Input(n) => Int { deps: 0, kind: IntKind::Input(*n) },
                IntExpr::Extent { tensor, mode } => Int { deps: 0, kind: IntKind::Extent(*tensor, *mode) },
                IntExpr::Elem { tensor, index } => {
                    let index = c.index(index)?;
                    Int { deps: union(&index), kind: IntKind::Elem(*tensor, index) }
                }
                IntExpr::Binary(op, a, b) => {
                    let (a, b) = (c.int(a)?, c.int(b)?);
                    Int { deps: a.deps | b.deps, kind: IntKind::Binary(*op, Box::new(a), Box::new(b)) }
                }
            })
        })
    }

    fn index(&mut self, index: &[IntExpr]) -> Result<Vec<Int>, OracleError> {
        index.iter().map(|i| self.int(i)).collect()
    }

    pub fn value(&mut self, e: &OracleExpr) -> Result<Node, OracleError> {
        self.nested(|c| c.node(e))
    }

    fn boxed(&mut self, e: &OracleExpr) -> Result<Box<Node>, OracleError> {
        self.value(e).map(Box::new)
    }

    fn node(&mut self, e: &OracleExpr) -> Result<Node, OracleError> {
        let (deps, kind) = match e {
            OracleExpr::Const(x) if self.exact && x.fract() != 0.0 => return Err(OracleError::NotInteger),
            OracleExpr::Const(x) => (0, NodeKind::Const(*x)),
            OracleExpr::Int(i) => {
                let i = self.int(i)?;
                (i.deps, NodeKind::Int(i))
            }
            OracleExpr::Scalar(n) => (0, NodeKind::Scalar(*n)),
            OracleExpr::Local(slot) => match self.locals.get(*slot).copied().flatten() {
                Some(deps) => (deps, NodeKind::Local(*slot)),
                None => return Err(OracleError::Malformed("an unbound local")),
            },
            OracleExpr::Elem { tensor, index } => {
                let index = self.index(index)?;
                (union(&index), NodeKind::Elem(*tensor, index))
            }
            OracleExpr::Unary(op, a) => {
                let exact = matches!(op, UnOp::Neg | UnOp::Not | UnOp::Abs | UnOp::Relu);
                if self.exact && !exact {
                    return Err(OracleError::NotInteger);
                }
                let a = self.boxed(a)?;
                (a.deps, NodeKind::Unary(*op, a))
            }
            OracleExpr::Binary(op, a, b) => {
                let (a, b) = (self.boxed(a)?, self.boxed(b)?);
                (a.deps | b.deps, NodeKind::Binary(*op, a, b))
            }
            OracleExpr::Pow(a, b) => {
                let (a, b) = (self.boxed(a)?, self.boxed(b)?);
                (a.deps | b.deps, NodeKind::Pow(a, b))
            }
            OracleExpr::Compare(op, a, b) => {
                let (a, b) = (self.boxed(a)?, self.boxed(b)?);
                (a.deps | b.deps, NodeKind::Compare(*op, a, b))
            }
            OracleExpr::Select(cond, a, b) => {
                let (cond, a, b) = (self.boxed(cond)?, self.boxed(a)?, self.boxed(b)?);
                (cond.deps | a.deps | b.deps, NodeKind::Select(cond, a, b))
            }
            OracleExpr::Reduce { kind, var, lo, hi, body } => {
                let (lo, hi) = (self.int(lo)?, self.int(hi)?);
                self.bind(*var)?;
                let body = self.boxed(body)?;
                self.bound &= !(1 << var);
                let deps = lo.deps | hi.deps | (body.deps & !(1 << var));
                (deps, NodeKind::Reduce { kind: *kind, var: *var, lo, hi, body })
            }
            OracleExpr::Rearranged { var, lo, hi, a, b } => {
                let (lo, hi) = (self.int(lo)?, self.int(hi)?);
                self.bind(*var)?;
                let (a, b) = (self.boxed(a)?, self.boxed(b)?);
                self.bound &= !(1 << var);
                let deps = lo.deps | hi.deps | ((a.deps | b.deps) & !(1 << var));
                (deps, NodeKind::Rearranged { var: *var, lo, hi, a, b })
            }
            OracleExpr::Let { slot, value, body } => {
                if *slot >= 4096 {
                    return Err(OracleError::Malformed("too many locals"));
                }
                let value = self.boxed(value)?;
                if self.locals.len() <= *slot {
                    self.locals.resize(slot + 1, None);
                }
                let before = self.locals[*slot].replace(value.deps);
                let body = self.boxed(body)?;
                self.locals[*slot] = before;
                (value.deps | body.deps, NodeKind::Let { slot: *slot, value, body })
            }
        };
        Ok(Node { deps, kind })
    }
}

fn union(index: &[Int]) -> Vars {
    index.iter().fold(0, |deps, i| deps | i.deps)
}
