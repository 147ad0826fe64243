//! `select_mma`: the matrix instruction for dtypes and a tile's columns.

use crate::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_layout::{Int, Value as Algebra};
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::Arg;
use ptoc_values::Val;

const USAGE: &str = "usage: `select_mma(f16, f16, f32, n = 256)`, or `select_mma(FAMILY, n = 256)`";

impl Elaborator<'_> {
    /// `select_mma(f16, f16, f32, n = 256)`, `select_mma(FAMILY, n = 256)`
    pub(crate) fn select_mma(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let first = match args {
            [Arg { name: None, value }, ..] => Some(self.expr(value)?),
            _ => None,
        };
        let family = match &first {
            Some(Val::Algebra(a)) if matches!(&**a, Algebra::Family(_)) => Some((**a).clone()),
            _ => None,
        };
        let (operands, at) = match family {
            Some(family) => {
                let [of, n] = self.places("select_mma", ["family", "n"], USAGE, args)?;
                let (Some(of), Some(n)) = (of, n) else { return self.incomplete(span) };
                (vec![family, self.columns(n)?], vec![of.value.span, n.value.span])
            }
            None => {
                let places = self.places("select_mma", ["a", "b", "acc", "n"], USAGE, args)?;
                let [Some(a), Some(b), Some(acc), Some(n)] = places else { return self.incomplete(span) };
                let mut operands = Vec::new();
                for (k, of) in [a, b, acc].into_iter().enumerate() {
                    operands.push(self.operand_dtype(of, if k == 0 { first.clone() } else { None })?);
                }
                operands.push(self.columns(n)?);
                (operands, [a, b, acc, n].map(|x| x.value.span).to_vec())
            }
        };
        let Some(op) = ptoc_layout::ops::find("select_mma") else { return Err(ErrorReported) };
        let cx = ptoc_layout::Cx::default().with_families(ptoc_names::standard_families());
        match (op.eval)(&cx, &operands) {
            Ok(atom) => Ok(Val::Algebra(atom.into())),
            Err(e) => {
                let blamed = e.arg.and_then(|k| at.get(k).copied()).unwrap_or(span);
                self.mma_error(ptoc_names::layout_code(e.kind), e, span, blamed)
            }
        }
    }

    fn incomplete<T>(&mut self, span: Span) -> ElabResult<T> {
        let message = "`select_mma` needs the dtypes of A, of B and of the accumulator, and the tile's columns";
        let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message).with_note(USAGE);
        self.report(d)
    }

    fn operand_dtype(&mut self, a: &Arg, known: Option<Val>) -> ElabResult<Algebra> {
        let v = match known {
            Some(v) => v,
            None => self.expr(&a.value)?,
        };
        match v {
            Val::Word(Word::DType(d)) => Ok(Algebra::DType(d.name().into())),
            Val::Poison => Err(ErrorReported),
            other => {
                let message = format!("expected a dtype, found {}", other.describe());
                let d = Diagnostic::error(codes::TYPE_MISMATCH, a.value.span, message).with_note(USAGE);
                self.report(d)
            }
        }
    }

    fn columns(&mut self, a: &Arg) -> ElabResult<Algebra> {
        let v = self.expr(&a.value)?;
        let n = self.static_int(&v, a.value.span, "the tile's columns")?;
        match i64::try_from(n) {
            Ok(n) => Ok(Algebra::Int(Int::Const(n))),
            Err(_) => {
                let message = format!("N = {n} does not fit 64 bits");
                self.error(codes::LAYOUT_OVERFLOW, a.value.span, message)
            }
        }
    }
}
