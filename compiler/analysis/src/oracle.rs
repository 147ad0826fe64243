//! `ensures`, and `where` over the contents of tensors: from syntax to the oracle's expressions.
//!
//! These are mathematics: no dtypes round, functions are substituted, `sum<k>` runs over the extent that `k` indexes.
//! Launch integers are numbered: the kernel's dimensions in order, then every scalar argument in order.

use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, Elaborator, ErrorReported, arith, comparison, count};
use ptoc_ir::oracle::{IntExpr, IntOp, OracleExpr};
use ptoc_ir::tile::{TensorId, Ty, Value};
use ptoc_isa::{BinOp, UnOp};
use ptoc_names::builtins::{self, Builtin, Word};
use ptoc_names::{ItemId, ModuleId};
use ptoc_syntax::ast::*;
use ptoc_values::consts::compare;
use ptoc_values::{Binding, Val, View};
use rustc_hash::FxHashMap;
use std::rc::Rc;

mod clauses;
mod functions;
mod reductions;
mod views;

/// What an expression is to the oracle.
#[derive(Clone, Debug)]
enum Math {
    Int(IntExpr),
    Real(OracleExpr),
    /// Element of a tensor: a number, or an index if the tensor holds integers.
    Elem(usize, Vec<IntExpr>),
    Bool(bool),
    Tensor(usize),
    /// A view that layout functions make of a tensor.
    View(Rc<View>),
    Fn(ItemId),
    Closure(Rc<MathClosure>),
    Record(Vec<(Name, Math)>),
    Tuple(Vec<Math>),
    /// A part of a record or a tuple that has no meaning here, by what it is.
    Other(&'static str),
    Builtin(Builtin),
    Word(Word),
}

/// A closure with what its names stood for.
#[derive(Debug)]
struct MathClosure {
    closure: Closure,
    captured: Vec<(Name, Math)>,
    module: ModuleId,
    around: Vec<ItemId>,
}

#[derive(Default)]
struct OracleScopes {
    /// Frames of functions, each a list of names.
    frames: Vec<Vec<(Name, Math)>>,
    vars: usize,
    slots: usize,
    /// The slots that hold truth values.
    truths: Vec<usize>,
    /// Values bound so far in the innermost branch or reduction.
    lets: Vec<Vec<(usize, OracleExpr)>>,
    /// How many calls there are around.
    calls: usize,
    /// As [`Elaborator::around`].
    around: Vec<ItemId>,
    /// Ranges of index variables, from their first use as an index.
    ranges: Vec<(usize, IntExpr)>,
    /// What index variables are called.
    names: Vec<(usize, Name)>,
}

impl OracleScopes {
    fn define(&mut self, name: &Name, m: Math) {
        if let Math::Int(IntExpr::Var(v)) = m {
            self.names.push((v, name.clone()));
        }
        if let Some(f) = self.frames.last_mut() {
            f.push((name.clone(), m));
        }
    }

    fn get(&self, name: &str) -> Option<&Math> {
        self.frames.last()?.iter().rev().find(|(n, _)| n == name).map(|(_, m)| m)
    }

    fn fresh_var(&mut self) -> usize {
        self.vars += 1;
        self.vars - 1
    }

    /// A number that is used more than once is computed once.
    fn share(&mut self, m: Math, truth: bool) -> Math {
        match m {
            Math::Real(e) if !matches!(e, OracleExpr::Const(_) | OracleExpr::Local(_) | OracleExpr::Scalar(_)) => {
                let slot = self.slots;
                self.slots += 1;
                if truth {
                    self.truths.push(slot);
                }
                match self.lets.last_mut() {
                    Some(l) => l.push((slot, e)),
                    None => return Math::Real(e),
                }
                Math::Real(OracleExpr::Local(slot))
            }
            m => m,
        }
    }

    fn wrap(&mut self, body: OracleExpr) -> OracleExpr {
        let lets = self.lets.pop().unwrap_or_default();
        lets.into_iter().rev().fold(body, |body, (slot, value)| OracleExpr::Let {
            slot,
            value: Box::new(value),
            body: Box::new(body),
        })
    }
}

/// The elaborator of oracles: what it evaluates statically is its elaborator's.
pub(crate) struct OracleElaborator<'e, 'a> {
    elab: &'e mut Elaborator<'a>,
    /// Values that the host of a program keeps, which are scalars of the oracle by their numbers.
    slots: Option<&'e FxHashMap<Value, usize>>,
}

impl<'e, 'a> OracleElaborator<'e, 'a> {
    /// Over the names that are in scope there.
    pub(crate) fn new(elab: &'e mut Elaborator<'a>) -> Self {
        OracleElaborator { elab, slots: None }
    }

    /// Over those and the scalars that the host of a program keeps while it runs.
    pub(crate) fn with_slots(elab: &'e mut Elaborator<'a>, slots: &'e FxHashMap<Value, usize>) -> Self {
        OracleElaborator { elab, slots: Some(slots) }
    }
}

impl OracleElaborator<'_, '_> {
    fn math(&mut self, e: &Expr, st: &mut OracleScopes) -> ElabResult<Math> {
        self.elab.step(e.span)?;
        Ok(match &*e.kind {
            ExprKind::Int(i) => match i64::try_from(*i) {
                Ok(i) => Math::Int(IntExpr::Const(i)),
                Err(_) => Math::Real(OracleExpr::Const(*i as f64)),
            },
            ExprKind::Float(f, _) => Math::Real(OracleExpr::Const(*f)),
            ExprKind::Bool(b) => Math::Bool(*b),
            ExprKind::Paren(a) => self.math(a, st)?,
            ExprKind::Name(n) => self.math_name(n, e.span, st)?,
            ExprKind::Unary(op, a) => {
                let m = self.math(a, st)?;
                match (op, m) {
                    (UnaryOp::Neg, Math::Int(i)) => Math::Int(IntExpr::binary(IntOp::Sub, IntExpr::Const(0), i)),
                    (UnaryOp::Neg, Math::Real(OracleExpr::Const(c))) => Math::Real(OracleExpr::Const(-c)),
                    (UnaryOp::Not, Math::Bool(b)) => Math::Bool(!b),
                    // Integers have no width here, and the complement of `x` is `-x - 1`.
                    (UnaryOp::Not, m) if !self.is_truth_value(&m, st) => {
                        let minus_one = Math::Int(IntExpr::Const(-1));
                        self.math_binary(BinaryOp::Sub, minus_one, m, (a.span, a.span))?
                    }
                    (op, m) => {
                        let x = self.real(m, a.span)?;
                        Math::Real(OracleExpr::unary(if *op == UnaryOp::Neg { UnOp::Neg } else { UnOp::Not }, x))
                    }
                }
            }
            ExprKind::Binary(op, a, b) => {
                let x = self.math(a, st)?;
                let y = self.math_branch_if(matches!(op, BinaryOp::And | BinaryOp::Or), b, st)?;
                self.math_binary(*op, x, y, (a.span, b.span))?
            }
            ExprKind::Index(base, args) => {
                let tensor = match self.math_base(base, st)? {
                    Math::View(view) => return self.math_view(&view, args, e.span, st),
                    m => m,
                };
                let Math::Tensor(t) = tensor else {
                    return self.elab.error(
                        codes::TYPE_MISMATCH,
                        base.span,
                        "only tensor arguments have elements here",
                    );
                };
                let mut index = Vec::new();
                for (mode, a) in args.iter().enumerate() {
                    let m = self.math(&a.value, st)?;
                    let i = self.int(m, a.value.span)?;
                    if let IntExpr::Var(v) = i
                        && !st.ranges.iter().any(|(x, _)| *x == v)
                    {
                        st.ranges.push((v, IntExpr::Extent { tensor: t, mode }));
                    }
                    index.push(i);
                }
                let rank = self.elab.declared_rank(TensorId::from_u32(t as u32));
                if rank != index.len() {
                    return self.elab.error(
                        codes::RANK_MISMATCH,
                        e.span,
                        format!(
                            "the tensor has {}, and {} given",
                            count(rank, "mode", "modes"),
                            count(index.len(), "index is", "indices are")
                        ),
                    );
                }
                Math::Elem(t, index)
            }
            ExprKind::Call(callee, args) => self.math_call(callee, args, e.span, st)?,
            ExprKind::If(i) => self.math_if(i, e.span, st)?,
            ExprKind::Closure(c) => self.math_closure(c, e, st)?,
            ExprKind::Record(fields) => Math::Record(
                fields.iter().map(|(n, e)| Ok((n.name.clone(), self.math(e, st)?))).collect::<ElabResult<_>>()?,
            ),
            ExprKind::Tuple(l) => Math::Tuple(l.iter().map(|e| self.math(e, st)).collect::<ElabResult<_>>()?),
            ExprKind::TupleField(base, k, at) => return self.math_part(base, *k, *at, st),
            ExprKind::Field(base, name) => return self.math_field(base, name, e.span, st),
            ExprKind::Error => return Err(ErrorReported),
            _ => return self.elab.not_yet(e.span, "this kind of expression in `ensures` and `where`"),
        })
    }

    fn math_name(&mut self, n: &Name, span: Span, st: &OracleScopes) -> ElabResult<Math> {
        if let Some(m) = st.get(n) {
            return Ok(m.clone());
        }
        if st.frames.len() == 1
            && let Some((Binding::Let(v), _)) = self.elab.env.get(n).map(|(b, s)| (b.clone(), s))
        {
            return self.math_of(&v, span);
        }
        match self.elab.name(n, span)? {
            Val::Fn(id) => Ok(Math::Fn(id)),
            Val::Builtin(b) => Ok(Math::Builtin(b)),
            v => self.math_of(&v, span),
        }
    }

    fn math_of(&mut self, v: &Val, span: Span) -> ElabResult<Math> {
        Ok(match v {
            Val::Poison => return Err(ErrorReported),
            Val::Int(i) => match i64::try_from(*i) {
                Ok(i) => Math::Int(IntExpr::Const(i)),
                Err(_) => Math::Real(OracleExpr::Const(*i as f64)),
            },
            Val::Float(f) => Math::Real(OracleExpr::Const(*f)),
            Val::Bool(b) => Math::Bool(*b),
            Val::Word(w) => Math::Word(*w),
            Val::Fn(id) => Math::Fn(*id),
            Val::Closure(c) => {
                let of = |(n, v, _): &(Name, Val, Span)| Ok((n.clone(), self.math_of(v, span)?));
                let captured = c.captured.iter().map(of).collect::<ElabResult<_>>()?;
                let (module, around) = (c.module, c.around.clone());
                Math::Closure(Rc::new(MathClosure { closure: c.closure.clone(), captured, module, around }))
            }
            Val::Record(r) => Math::Record(
                r.fields
                    .iter()
                    .map(|(n, v)| Ok((n.clone(), self.math_of_part(v, span)?)))
                    .collect::<ElabResult<_>>()?,
            ),
            Val::Tuple(l) => Math::Tuple(l.iter().map(|v| self.math_of_part(v, span)).collect::<ElabResult<_>>()?),
            Val::Builtin(b) => Math::Builtin(*b),
            Val::View(view) if self.elab.is_whole(view) => Math::Tensor(view.tensor.as_u32() as usize),
            Val::View(view) => Math::View(view.clone()),
            Val::Scalar(x) => self.launch_scalar(*x, span)?,
            other => {
                let message = format!("{} has no meaning in `ensures` and `where`", other.describe());
                return self.elab.error(codes::TYPE_MISMATCH, span, message);
            }
        })
    }

    /// A part of a record or a tuple, which need not be asked for.
    fn math_of_part(&mut self, v: &Val, span: Span) -> ElabResult<Math> {
        match v {
            Val::Algebra(_) | Val::Str(_) | Val::List(_) | Val::Range(..) | Val::TileType(_) => {
                Ok(Math::Other(v.describe()))
            }
            v => self.math_of(v, span),
        }
    }

    fn launch_scalar(&mut self, x: Value, span: Span) -> ElabResult<Math> {
        if let Some(c) = self.elab.b.const_of(x) {
            return Ok(match c.ty {
                Ty::Index => Math::Int(IntExpr::Const(c.bits as i64)),
                Ty::D(d) if d.is_int() => {
                    Math::Int(IntExpr::Const(ptoc_tensor::scalar::bits_to_i128(d, c.bits) as i64))
                }
                Ty::D(d) => Math::Real(OracleExpr::Const(ptoc_tensor::scalar::bits_to_f64(d, c.bits))),
            });
        }
        if let Some(slot) = self.slots.and_then(|slots| slots.get(&x)) {
            return Ok(match self.elab.ty(x) {
                Ty::Index => Math::Int(IntExpr::Input(*slot)),
                Ty::D(_) => Math::Real(OracleExpr::Scalar(*slot)),
            });
        }
        let kernel = self.elab.b.kernel();
        if let Some(i) = kernel.dims.values().position(|d| d.value == x) {
            return Ok(Math::Int(IntExpr::Input(i)));
        }
        if let Some(i) = kernel.scalars.iter().position(|s| s.value == x) {
            let dims = kernel.dims.len();
            return Ok(if self.elab.ty(x) == Ty::Index {
                Math::Int(IntExpr::Input(dims + i))
            } else {
                Math::Real(OracleExpr::Scalar(i))
            });
        }
        self.elab.error(codes::TYPE_MISMATCH, span, "only dimensions, arguments and constants are known here")
    }

    /// As a number.
    fn real(&mut self, m: Math, span: Span) -> ElabResult<OracleExpr> {
        match m {
            Math::Int(i) => Ok(OracleExpr::Int(i)),
            Math::Real(r) => Ok(r),
            Math::Elem(tensor, index) => Ok(OracleExpr::Elem { tensor, index }),
            Math::Bool(b) => Ok(OracleExpr::int(i64::from(b))),
            Math::Word(Word::Inf) => Ok(OracleExpr::Const(f64::INFINITY)),
            Math::Word(Word::Nan) => Ok(OracleExpr::Const(f64::NAN)),
            Math::Tensor(_) | Math::View(_) => {
                self.elab.error(codes::TYPE_MISMATCH, span, "a tensor is no number: give its indices")
            }
            Math::Record(_) => self.elab.error(codes::TYPE_MISMATCH, span, "a record is no number: name its field"),
            Math::Tuple(_) => {
                self.elab.error(codes::TYPE_MISMATCH, span, "a tuple is no number: name its part, as in `t.0`")
            }
            Math::Other(what) => {
                self.elab.error(codes::TYPE_MISMATCH, span, format!("{what} has no meaning in `ensures` and `where`"))
            }
            Math::Fn(_) | Math::Closure(_) | Math::Builtin(_) => {
                self.elab.error(codes::TYPE_MISMATCH, span, "a function is no number: call it")
            }
            Math::Word(_) => self.elab.error(codes::TYPE_MISMATCH, span, "this is no number"),
        }
    }

    /// As an index.
    fn int(&mut self, m: Math, span: Span) -> ElabResult<IntExpr> {
        match m {
            Math::Int(i) => Ok(i),
            Math::Elem(tensor, index) => {
                let int = self.elab.b.kernel().tensors.values().nth(tensor).is_some_and(|t| t.dtype.is_int());
                if int {
                    return Ok(IntExpr::Elem { tensor, index });
                }
                self.elab.error(codes::TYPE_MISMATCH, span, "an index is an integer, this tensor holds floats")
            }
            Math::Real(e) => match self.as_index(&e) {
                Some(i) => Ok(i),
                None => self.no_index(span),
            },
            _ => self.no_index(span),
        }
    }

    fn no_index(&mut self, span: Span) -> ElabResult<IntExpr> {
        let message = "an index is computed from dimensions, indices and integer tensors";
        self.elab.error(codes::TYPE_MISMATCH, span, message)
    }

    /// Arithmetic over elements of integer tensors, as index arithmetic: `x[idx[i] + 1]`.
    fn as_index(&self, e: &OracleExpr) -> Option<IntExpr> {
        match e {
            OracleExpr::Int(i) => Some(i.clone()),
            OracleExpr::Const(c) if c.fract() == 0.0 && c.abs() < 1e15 => Some(IntExpr::Const(*c as i64)),
            OracleExpr::Elem { tensor, index } => {
                let int = self.elab.b.kernel().tensors.values().nth(*tensor).is_some_and(|t| t.dtype.is_int());
                int.then(|| IntExpr::Elem { tensor: *tensor, index: index.clone() })
            }
            OracleExpr::Binary(op, a, b) => {
                let op = match op {
                    BinOp::Add => IntOp::Add,
                    BinOp::Sub => IntOp::Sub,
                    BinOp::Mul => IntOp::Mul,
                    BinOp::Min => IntOp::Min,
                    BinOp::Max => IntOp::Max,
                    _ => return None,
                };
                Some(IntExpr::binary(op, self.as_index(a)?, self.as_index(b)?))
            }
            _ => None,
        }
    }

    fn math_branch_if(&mut self, branch: bool, e: &Expr, st: &mut OracleScopes) -> ElabResult<Math> {
        if !branch {
            return self.math(e, st);
        }
        let r = self.math_branch(e, st)?;
        Ok(Math::Real(r))
    }

    /// An expression that may not be evaluated: what it shares stays inside.
    fn math_branch(&mut self, e: &Expr, st: &mut OracleScopes) -> ElabResult<OracleExpr> {
        st.lets.push(Vec::new());
        let r = self.math(e, st).and_then(|m| self.real(m, e.span));
        match r {
            Ok(r) => Ok(st.wrap(r)),
            Err(x) => {
                st.lets.pop();
                Err(x)
            }
        }
    }

    fn math_binary(&mut self, op: BinaryOp, x: Math, y: Math, at: (Span, Span)) -> ElabResult<Math> {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            let (a, b) = (self.real(x, at.0)?, self.real(y, at.1)?);
            return Ok(Math::Real(if op == BinaryOp::And {
                OracleExpr::select(a, b, OracleExpr::int(0))
            } else {
                OracleExpr::select(a, OracleExpr::int(1), b)
            }));
        }
        if let (Math::Bool(a), Math::Bool(b)) = (&x, &y)
            && let Some(r) = compare(op, *a, *b)
        {
            return Ok(Math::Bool(r));
        }
        if let (Math::Bool(a), Math::Bool(b)) = (&x, &y) {
            match op {
                BinaryOp::BitAnd => return Ok(Math::Bool(a & b)),
                BinaryOp::BitOr => return Ok(Math::Bool(a | b)),
                BinaryOp::BitXor => return Ok(Math::Bool(a ^ b)),
                _ => {}
            }
        }
        if let (Math::Int(IntExpr::Const(a)), Math::Int(IntExpr::Const(b))) = (&x, &y)
            && let Some(r) = compare(op, *a, *b)
        {
            return Ok(Math::Bool(r));
        }
        if let (Math::Int(a), Math::Int(b)) = (&x, &y) {
            let int = match op {
                BinaryOp::Add => Some(IntOp::Add),
                BinaryOp::Sub => Some(IntOp::Sub),
                BinaryOp::Mul => Some(IntOp::Mul),
                BinaryOp::Div => Some(IntOp::Div),
                BinaryOp::Rem => Some(IntOp::Rem),
                _ => None,
            };
            if let Some(int) = int {
                return Ok(Math::Int(IntExpr::binary(int, a.clone(), b.clone())));
            }
        }
        let (a, b) = (self.real(x, at.0)?, self.real(y, at.1)?);
        if let Some(cmp) = comparison(op) {
            return Ok(Math::Real(OracleExpr::compare(cmp, a, b)));
        }
        let op = arith(op).ok_or(ErrorReported)?;
        Ok(Math::Real(OracleExpr::binary(op, a, b)))
    }

    /// Whether it is a truth value, and no number.
    fn is_truth_value(&self, m: &Math, st: &OracleScopes) -> bool {
        match m {
            Math::Bool(_) => true,
            Math::Elem(tensor, _) => self.holds_bools(*tensor),
            Math::Real(e) => self.is_truth(e, st),
            _ => false,
        }
    }

    fn is_truth(&self, e: &OracleExpr, st: &OracleScopes) -> bool {
        match e {
            OracleExpr::Compare(..) | OracleExpr::Unary(UnOp::Not, _) => true,
            OracleExpr::Elem { tensor, .. } => self.holds_bools(*tensor),
            OracleExpr::Scalar(i) => {
                self.elab.b.kernel().scalars.get(*i).is_some_and(|s| self.elab.ty(s.value) == Ty::BOOL)
            }
            OracleExpr::Local(slot) => st.truths.contains(slot),
            // The other side may be a constant.
            OracleExpr::Binary(BinOp::And | BinOp::Or | BinOp::Xor, a, b) | OracleExpr::Select(_, a, b) => {
                self.is_truth(a, st) || self.is_truth(b, st)
            }
            OracleExpr::Let { body, .. } => self.is_truth(body, st),
            e => reductions::is_truth(e),
        }
    }

    fn holds_bools(&self, tensor: usize) -> bool {
        self.elab.b.kernel().tensors.values().nth(tensor).is_some_and(|t| t.dtype == ptoc_tensor::DType::Bool)
    }

    fn math_if(&mut self, i: &IfStmt, span: Span, st: &mut OracleScopes) -> ElabResult<Math> {
        let cond = self.math(&i.cond, st)?;
        if let Math::Bool(c) = cond {
            return match (c, i.els.as_deref()) {
                (true, _) => self.math_block(&i.then, st),
                (false, Some(Else::Block(b))) => self.math_block(b, st),
                (false, Some(Else::If(i, s))) => self.math_if(i, *s, st),
                // The parser says that it is missing.
                (false, None) => Err(ErrorReported),
            };
        }
        let c = self.real(cond, i.cond.span)?;
        let arm = |s: &mut Self,
                   st: &mut OracleScopes,
                   f: &mut dyn FnMut(&mut Self, &mut OracleScopes) -> ElabResult<Math>|
         -> ElabResult<OracleExpr> {
            st.lets.push(Vec::new());
            let m = f(s, st).and_then(|m| s.real(m, span));
            match m {
                Ok(r) => Ok(st.wrap(r)),
                Err(e) => {
                    st.lets.pop();
                    Err(e)
                }
            }
        };
        let a = arm(self, st, &mut |s, st| s.math_block(&i.then, st))?;
        let b = arm(self, st, &mut |s, st| match i.els.as_deref() {
            Some(Else::Block(b)) => s.math_block(b, st),
            Some(Else::If(i, at)) => s.math_if(i, *at, st),
            None => Err(ErrorReported),
        })?;
        Ok(Math::Real(OracleExpr::select(c, a, b)))
    }

    fn math_block(&mut self, b: &Block, st: &mut OracleScopes) -> ElabResult<Math> {
        let depth = st.frames.last().map_or(0, Vec::len);
        for s in &b.stmts {
            match &s.kind {
                StmtKind::Let { names, value, .. } => {
                    for n in names {
                        let m = self.math(value, st)?;
                        let truth = self.is_truth_value(&m, st);
                        let m = st.share(m, truth);
                        st.define(&n.name, m);
                    }
                }
                StmtKind::Const(c) => {
                    let m = self.math(&c.value, st)?;
                    st.define(&c.name.name, m);
                }
                StmtKind::Return(Some(e)) => return self.math(e, st),
                _ => return self.elab.not_yet(s.span, "statements other than `let` in functions that `ensures` uses"),
            }
        }
        let r = match &b.tail {
            Some(e) => self.math(e, st),
            None => self.elab.error(codes::TYPE_MISMATCH, b.span, "this block gives no value"),
        };
        if let Some(f) = st.frames.last_mut() {
            f.truncate(depth);
        }
        r
    }

    fn math_call(&mut self, callee: &Expr, args: &[Arg], span: Span, st: &mut OracleScopes) -> ElabResult<Math> {
        if let ExprKind::Static(base, vars) = &*callee.kind
            && let ExprKind::Name(n) = &*base.kind
            && let Some(over) = builtins::function(n).and_then(Builtin::over)
            && st.get(n).is_none()
            && !self.elab.modules.get(self.elab.module).scope.contains_key(n)
        {
            return self.math_over(over, vars, args, span, st);
        }
        let (base, statics): (&Expr, &[Arg]) = match &*callee.kind {
            ExprKind::Static(b, s) => (b, s),
            _ => (callee, &[]),
        };
        let f = self.math(base, st)?;
        match f {
            Math::Fn(id) => {
                let by_name = matches!(&*base.kind, ExprKind::Name(n) if st.get(n).is_none());
                self.math_inline((id, by_name), statics, args, span, st)
            }
            Math::Closure(c) => self.math_call_closure(&c, args, span, st),
            Math::Word(Word::DType(d)) => {
                let e = self.elab.exactly(args, 1, "f32(x)", span)?[0];
                let m = self.math(e, st)?;
                let x = self.real(m, e.span)?;
                // Nothing is rounded, but what is too large for an 8-bit float saturates: in f8e4m3 it would round to
                // NaN.
                if !(d.is_float() && d.size() == 1) {
                    return Ok(Math::Real(x));
                }
                let most = f64::from(ptoc_ir::formula::largest(d));
                let up = OracleExpr::binary(BinOp::Max, x, OracleExpr::Const(-most));
                Ok(Math::Real(OracleExpr::binary(BinOp::Min, up, OracleExpr::Const(most))))
            }
            Math::Word(Word::Index) => {
                let e = self.elab.exactly(args, 1, "index(x)", span)?[0];
                let m = self.math(e, st)?;
                Ok(Math::Int(self.int(m, e.span)?))
            }
            Math::Builtin(b) => self.math_builtin(b, args, span, st),
            _ => self.elab.error(codes::NOT_CALLABLE, base.span, "this is no function"),
        }
    }

    fn math_builtin(&mut self, b: Builtin, args: &[Arg], span: Span, st: &mut OracleScopes) -> ElabResult<Math> {
        let exprs: Vec<&Expr> = args.iter().map(|a| &a.value).collect();
        let ms = exprs.iter().map(|e| self.math(e, st)).collect::<ElabResult<Vec<_>>>()?;
        match (b, &exprs[..]) {
            (Builtin::Unary(op), [e]) => {
                let x = self.real(ms[0].clone(), e.span)?;
                Ok(Math::Real(OracleExpr::unary(op, x)))
            }
            (Builtin::Binary(op), [a, b]) => {
                if let (Math::Int(x), Math::Int(y)) = (&ms[0], &ms[1]) {
                    let int = if op == BinOp::Max { IntOp::Max } else { IntOp::Min };
                    return Ok(Math::Int(IntExpr::binary(int, x.clone(), y.clone())));
                }
                let (x, y) = (self.real(ms[0].clone(), a.span)?, self.real(ms[1].clone(), b.span)?);
                Ok(Math::Real(OracleExpr::binary(op, x, y)))
            }
            (Builtin::Clamp, [a, b, c]) => {
                if let [Math::Int(x), Math::Int(lo), Math::Int(hi)] = &ms[..] {
                    let up = IntExpr::binary(IntOp::Max, x.clone(), lo.clone());
                    return Ok(Math::Int(IntExpr::binary(IntOp::Min, up, hi.clone())));
                }
                let (x, lo, hi) = (
                    self.real(ms[0].clone(), a.span)?,
                    self.real(ms[1].clone(), b.span)?,
                    self.real(ms[2].clone(), c.span)?,
                );
                Ok(Math::Real(OracleExpr::binary(BinOp::Min, OracleExpr::binary(BinOp::Max, x, lo), hi)))
            }
            (Builtin::CeilDiv, [a, b]) => {
                let (x, y) = (self.int(ms[0].clone(), a.span)?, self.int(ms[1].clone(), b.span)?);
                let neg = IntExpr::binary(IntOp::Sub, IntExpr::Const(0), x);
                let q = IntExpr::binary(IntOp::Div, neg, y);
                Ok(Math::Int(IntExpr::binary(IntOp::Sub, IntExpr::Const(0), q)))
            }
            (Builtin::Select, [c, a, b]) => {
                let (c, x, y) = (
                    self.real(ms[0].clone(), c.span)?,
                    self.real(ms[1].clone(), a.span)?,
                    self.real(ms[2].clone(), b.span)?,
                );
                Ok(Math::Real(OracleExpr::select(c, x, y)))
            }
            (Builtin::Pow, [a, b]) => {
                let (x, y) = (self.real(ms[0].clone(), a.span)?, self.real(ms[1].clone(), b.span)?);
                Ok(Math::Real(OracleExpr::Pow(Box::new(x), Box::new(y))))
            }
            (Builtin::Close, _) => {
                let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, "`close` is a whole `ensures`, no part of one")
                    .with_help("write `abs(a - b) <= 1e-3` where it is a part of a condition");
                self.elab.report(d)
            }
            (b, _) if let Some(over) = b.over() => {
                let message = format!("`{}` names its index here", over.name());
                let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message)
                    .with_help(format!("write `{}`", over.usage()));
                self.elab.report(d)
            }
            (Builtin::NotYet(what), _) => self.elab.not_yet(span, what),
            _ => self.elab.error(codes::TYPE_MISMATCH, span, "this function has no meaning in `ensures` and `where`"),
        }
    }
}
