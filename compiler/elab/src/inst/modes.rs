//! What is said beside the operands of an instruction, and which of its forms is meant.

use super::usage;
use crate::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::InstAttrs;
use ptoc_isa::{AtomicOp, Factors, InstrId, Oob, OperandKind, OperandSpec, RoundMode};
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::{Expr, Ident};
use ptoc_values::Val;

impl Elaborator<'_> {
    /// A word or a named value says what another one has said.
    fn said_twice(&mut self, id: InstrId, what: &str, at: Span) -> ElabResult<()> {
        let message = format!("`{}` is told {what} twice", id.get().written_name());
        let d = Diagnostic::error(codes::WRONG_ARGUMENTS, at, message)
            .with_label("for the second time")
            .with_note(format!("usage: `{}`", usage(id)))
            .with_help("leave one of the two out");
        self.report(d)
    }

    pub(crate) fn named_mode(&mut self, id: InstrId, name: &Ident, v: &Val, attrs: &mut InstAttrs) -> ElabResult<()> {
        match (name.name.as_str(), attrs.saturate.is_some(), attrs.atomic.is_some()) {
            ("saturate" | "sat", true, _) => return self.said_twice(id, "whether to saturate", name.span),
            ("atomic", _, true) => return self.said_twice(id, "how to update", name.span),
            _ => {}
        }
        match (name.name.as_str(), v) {
            (_, Val::Poison) => return Err(ErrorReported),
            ("saturate" | "sat", Val::Bool(b)) if id.get().sem.converts() => attrs.saturate = Some(*b),
            ("atomic", Val::Bool(b)) if id.get().updates_memory() => {
                attrs.atomic = b.then_some(AtomicOp::Add);
            }
            ("atomic", Val::Word(Word::Choice(w @ ("Max" | "Min")))) if id.get().updates_memory() => {
                attrs.atomic = Some(if *w == "Max" { AtomicOp::Max } else { AtomicOp::Min });
            }
            _ if let Some(d) = ptoc_names::resolve::left_out(id, &name.name, name.span) => return self.report(d),
            _ => {
                let message = format!("`{}` has no mode `{}` with this value", id.get().written_name(), name.name);
                let d =
                    Diagnostic::error(codes::WRONG_ARGUMENTS, name.span, message).with_label("no such mode").with_note(
                        "modes are: a comparison (`EQ`, ..) of TCMP, a rounding (`Rint`, ..) and `saturate = true` of \
                         TCVT, `oob = Clamp` of MGATHER and MSCATTER, `atomic = true` of TSTORE and MSCATTER, `HF32` \
                         of products, `Relu` of what leaves Acc",
                    );
                // PTO's words are capitals.
                let meant = ["oob", "atomic", "saturate"].into_iter().find(|w| w.eq_ignore_ascii_case(&name.name));
                return self.report(match meant.filter(|w| *w != name.name) {
                    Some(w) => d.with_fix(format!("it is called `{w}`"), name.span, w),
                    None => d,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn mode_word(&mut self, id: InstrId, w: Word, at: Span, attrs: &mut InstAttrs) -> ElabResult<()> {
        let again = match w {
            Word::Cmp(_) => attrs.cmp.is_some().then_some("how to compare"),
            Word::Round(_) => attrs.round.is_some().then_some("how to round"),
            Word::Oob(_) | Word::Choice("Skip") => attrs.oob.is_some().then_some("what to do out of bounds"),
            Word::Choice("HF32" | "TF32") => attrs.factors.is_some().then_some("what factors are rounded to"),
            Word::Choice("Relu") => attrs.relu.then_some("to make negative elements 0"),
            _ => None,
        };
        if let Some(what) = again {
            return self.said_twice(id, what, at);
        }
        match (id.get().sem, w) {
            (sem, Word::Cmp(c)) if sem.compares() => {
                let name = c.name().to_ascii_uppercase();
                if !id.get().modes.iter().any(|m| m.words.contains(&name.as_str())) {
                    let message = format!("`{}` does not compare with {name}", id.get().written_name());
                    let d = Diagnostic::error(codes::WRONG_ARGUMENTS, at, message)
                        .with_label("no such comparison here")
                        .with_note(format!("usage: `{}`", usage(id)));
                    return self.report(d);
                }
                attrs.cmp = Some(c);
            }
            (sem, Word::Round(r)) if sem.converts() => attrs.round = Some(r),
            (sem, Word::Oob(o)) if sem.gathers() => attrs.oob = Some(o),
            (sem, Word::Oob(o)) if sem.scatters() && o != Oob::Zero => attrs.oob = Some(o),
            (sem, Word::Choice(w @ ("HF32" | "TF32"))) if sem.multiplies() => {
                attrs.factors = Some(if w == "HF32" { Factors::Hf32 } else { Factors::Tf32 });
            }
            (sem, Word::Round(round @ (RoundMode::Round | RoundMode::Rint))) if sem.multiplies() => {
                attrs.round = Some(round);
            }
            (_, Word::Choice("Relu")) if id.get().modes.iter().any(|m| m.words.contains(&"Relu")) => attrs.relu = true,
            // What is not there is not written.
            (sem, Word::Choice("Skip")) if sem.scatters() => attrs.oob = Some(Oob::Zero),
            // `Round`-like words double as nothing else; what is left is misplaced.
            _ => {
                let (what, of) = match w {
                    Word::Cmp(_) => ("a comparison", "TCMP"),
                    Word::Round(_) => ("a rounding", "TCVT"),
                    Word::Choice("HF32" | "TF32") => ("how factors of f32 are rounded", "TMATMUL and its kin"),
                    Word::Choice("Relu") => ("what is done on the way out of Acc", "TMOV and TSTORE"),
                    Word::Choice(_) => ("what happens out of bounds", "MSCATTER"),
                    _ => ("what happens out of bounds", "MGATHER"),
                };
                let d = Diagnostic::error(
                    codes::WRONG_ARGUMENTS,
                    at,
                    format!("`{}` has no such mode", id.get().written_name()),
                )
                .with_label(format!("{what}, for {of}"))
                .with_note(format!("usage: `{}`", usage(id)));
                return self.report(d);
            }
        }
        Ok(())
    }
}

/// Of the forms of an instruction the first that takes operands of these kinds in these places; else one of as many
/// operands.
pub(super) fn form_of(id: InstrId, operands: &[(Val, &Expr)]) -> InstrId {
    let takes = |spec: &OperandSpec, v: &Val| match (spec.kind, v) {
        (_, Val::Poison) => true,
        (OperandKind::Tile(_), Val::Tile(t) | Val::Mask(t, _)) => spec.takes(t.ty.loc),
        (OperandKind::View, Val::View(_)) => true,
        (OperandKind::Choice(words), Val::Word(Word::Choice(w))) => words.iter().any(|(name, _)| name == w),
        (OperandKind::Choice([("Zero", _)]), Val::Word(Word::Oob(Oob::Zero))) => true,
        (OperandKind::Tile(_) | OperandKind::View | OperandKind::Choice(_), _) => false,
        (_, v) => !matches!(v, Val::Tile(_) | Val::Mask(..) | Val::View(_)),
    };
    let all = |i: &InstrId| {
        let wanted = i.get().written();
        (wanted.len() - i.get().optional..=wanted.len()).contains(&operands.len())
            && wanted.iter().zip(operands).all(|(spec, (v, _))| takes(spec, v))
    };
    // Where no form takes all of them, one that takes the tiles.
    let tiles = |i: &InstrId| {
        let tile = |v: &Val| matches!(v, Val::Tile(_) | Val::Mask(..));
        let mut pairs = i.get().written().iter().zip(operands);
        i.get().written().len() == operands.len() && pairs.all(|(spec, (v, _))| !tile(v) || takes(spec, v))
    };
    let as_many = |i: &InstrId| i.get().written().len() == operands.len();
    ptoc_isa::overloads(id)
        .find(all)
        .or_else(|| ptoc_isa::overloads(id).find(tiles))
        .or_else(|| ptoc_isa::overloads(id).find(as_many))
        .unwrap_or(id)
}

/// How a mode is called when it is given by name.
pub(super) fn mode_name(w: Word) -> &'static str {
    match w {
        Word::Cmp(_) => "cmp",
        Word::Round(_) => "round",
        _ => "oob",
    }
}
