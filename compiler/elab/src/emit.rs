//! Emission of scalar IR: thin wrappers of the builder that feed [`ptoc_ir::analysis::facts`].

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Analysis, Code, Span};
use ptoc_ir::analysis::inequalities::{Effort, Prover};
use ptoc_ir::tile::{CheckData, Const, Op, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, RoundMode, UnOp};
use ptoc_tensor::DType;

/// A test that is known to fail, if it is made at all.
#[derive(Debug)]
pub struct FailingTest {
    /// What is said.
    pub data: CheckData,
    /// The numbers that are said with it.
    pub args: Vec<Value>,
    /// The place of the test.
    pub span: Span,
}

impl Elaborator<'_> {
    /// An `index` constant.
    pub fn idx(&mut self, c: i64) -> Value {
        let v = self.b.index_const(c);
        self.facts.constant(v, c);
        v
    }

    /// A typed constant.
    pub fn constant(&mut self, c: Const) -> Value {
        let v = self.b.constant(c);
        self.note_const(v);
        v
    }

    fn note_const(&mut self, v: Value) {
        if let Some(c) = self.b.const_of(v).and_then(Const::as_index) {
            self.facts.constant(v, c);
        }
    }

    /// The value, if it is a constant `index`.
    pub fn const_index(&self, v: Value) -> Option<i64> {
        self.b.const_of(v).and_then(Const::as_index)
    }

    /// The type of a value.
    pub fn ty(&self, v: Value) -> Ty {
        self.b.ty(v)
    }

    /// `a op b`, both of one type.
    pub(crate) fn bin(&mut self, op: BinOp, a: Value, b: Value, span: Span) -> Value {
        if self.ty(a) == Ty::Index {
            // Identities that keep equal shapes equal.
            match (op, self.const_index(a), self.const_index(b)) {
                (BinOp::Add, Some(0), _) | (BinOp::Mul, Some(1), _) => return b,
                (BinOp::Add | BinOp::Sub, _, Some(0)) | (BinOp::Mul | BinOp::Div, _, Some(1)) => return a,
                (BinOp::Mul, Some(0), _) => return a,
                (BinOp::Mul, _, Some(0)) => return b,
                (BinOp::Min, ..) if self.facts.le_certain(a, b, 0) => return a,
                (BinOp::Min, ..) if self.facts.le_certain(b, a, 0) => return b,
                (BinOp::Max, ..) if self.facts.le_certain(a, b, 0) => return b,
                (BinOp::Max, ..) if self.facts.le_certain(b, a, 0) => return a,
                (BinOp::Sub, ..) if a == b => return self.idx(0),
                _ => {}
            }
        }
        let known = self.b.kernel().values.len();
        let v = self.b.binary(op, a, b, span);
        self.note_const(v);
        if self.ty(v) == Ty::BOOL && matches!(op, BinOp::And | BinOp::Or) {
            self.facts.combined(v, op == BinOp::And, a, b);
        }
        // (n - 1) + 1 is n itself, which it does not define.
        let new = v.as_u32() as usize >= known;
        if new && self.ty(v) == Ty::Index && self.const_index(v).is_none() {
            self.facts.defined(v, op, a, b);
        }
        v
    }

    /// `op a`
    pub(crate) fn un(&mut self, op: UnOp, a: Value, span: Span) -> Value {
        let known = self.b.kernel().values.len();
        let v = self.b.unary(op, a, span);
        self.note_const(v);
        let new = v.as_u32() as usize >= known;
        if op == UnOp::Neg && new && self.ty(v) == Ty::Index && self.const_index(v).is_none() {
            let zero = self.idx(0);
            self.facts.defined(v, BinOp::Sub, zero, a);
        }
        if op == UnOp::Not && self.ty(v) == Ty::BOOL {
            self.facts.negated(v, a);
        }
        v
    }

    /// `a op b` as a truth value.
    pub(crate) fn compare(&mut self, op: CmpOp, a: Value, b: Value, span: Span) -> Value {
        let v = self.b.compare(op, a, b, span);
        if self.ty(a) == Ty::Index {
            self.facts.compared(v, op, a, b);
        }
        v
    }

    /// A truth value known at compile time.
    pub(crate) fn const_bool(&self, v: Value) -> Option<bool> {
        self.b.const_of(v).filter(|c| c.ty == Ty::BOOL).map(|c| c.bits != 0)
    }

    /// Conversion to `ty`.
    pub(crate) fn convert_scalar(&mut self, a: Value, ty: Ty, span: Span) -> Value {
        if self.ty(a) == ty {
            return a;
        }
        let from_float = matches!(self.ty(a), Ty::D(d) if d.is_float());
        let to_float = matches!(ty, Ty::D(d) if d.is_float());
        let round = if from_float && !to_float { RoundMode::Trunc } else { RoundMode::Rint };
        let v = self.b.convert(a, ty, round, from_float && !to_float, span);
        self.note_const(v);
        if let Some(origin) = self.size_origins.get(&a).cloned() {
            self.size_origin(v, || origin);
        }
        if ty == Ty::Index
            && let Ty::D(d) = self.ty(a)
            && d.size() < 8
        {
            if matches!(d, DType::U8 | DType::U16 | DType::U32 | DType::Bool) {
                self.facts.ge_const(v, 0);
            }
            if !d.is_float() {
                self.facts.width(v, 8 * d.size() as u32);
            }
        }
        v
    }

    /// Emits a statement.
    pub(crate) fn emit(&mut self, op: Op, span: Span) {
        self.b.emit(op, span);
    }

    /// Ends the launch with `code` unless `cond`; constants are decided here: false is an error now.
    pub(crate) fn check(&mut self, cond: Value, data: CheckData, args: Vec<Value>, span: Span) -> ElabResult<()> {
        if let Some(known) = self.const_bool(cond) {
            if known {
                return Ok(());
            }
            if self.undecided {
                self.failing = Some(FailingTest { data, args, span });
                return Err(ErrorReported);
            }
            let text = |s: &str| {
                let mut s = s.to_string();
                for (i, a) in args.iter().enumerate() {
                    let shown = match self.ty(*a) {
                        Ty::Index => self.size_shown(*a),
                        Ty::D(_) => "?".to_string(),
                    };
                    s = s.replace(&format!("{{{i}}}"), &shown);
                }
                s
            };
            let mut d = ptoc_diagnostics::Diagnostic::error(data.code, data.span, text(&data.message));
            if let Some(h) = &data.help {
                d = d.with_help(text(h));
            }
            return self.report(d);
        }
        self.exact_condition(cond, span)?;
        let check = self.b.check_data(data);
        self.emit(Op::Check { cond, check, args }, span);
        Ok(())
    }

    /// `a == b` is checked at run time, and believed from here on. `message` speaks of `{0}` and `{1}`.
    pub(crate) fn check_equal(
        &mut self,
        a: Value,
        b: Value,
        message: String,
        help: Option<String>,
        span: Span,
    ) -> ElabResult<()> {
        let cond = self.compare(CmpOp::Eq, a, b, span);
        let code = ptoc_diagnostics::codes::SHAPES_DIFFER;
        self.check(cond, CheckData { code, message, span, help }, vec![a, b], span)?;
        self.facts.le(a, b, 0);
        self.facts.le(b, a, 0);
        Ok(())
    }

    /// `a <= b` must hold: proved, refuted here, or checked at run time. `message` speaks of `{0}` and `{1}`.
    pub(crate) fn require_le(&mut self, a: Value, b: Value, code: Code, message: String, span: Span) -> ElabResult<()> {
        if self.facts.le_certain(a, b, 0) || self.proves(|p| p.le(a, b)) {
            return Ok(());
        }
        let cond = self.compare(CmpOp::Le, a, b, span);
        self.check(cond, CheckData { code, message, span, help: None }, vec![a, b], span)?;
        self.facts.le(a, b, 0);
        Ok(())
    }

    /// Whether an inequality follows from what is known here. Once the steps of the file are spent, few are taken.
    pub(crate) fn proves(&self, claim: impl FnOnce(&Prover<'_>) -> bool) -> bool {
        let account = self.bindings.steps.as_ref().map(|steps| steps.account(Analysis::Lowering));
        let short = account.filter(|a| a.left() == 0);
        let prover = Prover::new(&self.facts, if short.is_some() { Effort::Little } else { Effort::Full });
        let proved = claim(&prover);
        // Whoever gets none makes do with few.
        account.map(|a| a.spend(prover.taken() as usize * Prover::STEP));
        if let Some(account) = short.filter(|_| !proved) {
            account.fell_short();
        }
        proved
    }
}
