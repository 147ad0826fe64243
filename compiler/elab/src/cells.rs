//! Instructions that put elements elsewhere: forms of one name, what fills the rest, and what they demand of shapes and
//! indices.

use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Const, Operand, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, IndexExpr, Instr, InstrId, Oob, OperandKind, Precondition};
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::{Arg, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::Val;

/// Whether the instruction takes a padding value.
pub(super) fn pads(instr: &Instr) -> bool {
    instr.operands.iter().any(|o| o.kind == OperandKind::Pad)
}

impl Elaborator<'_> {
    /// TGATHER and TSCATTER have a form by a pattern of columns, whose words are not modes.
    pub(crate) fn form(&self, id: InstrId, args: &[Arg]) -> InstrId {
        let Some(by_pattern) = ptoc_isa::lookup(&format!("{}_MASK", id.get().name)) else { return id };
        let choices = by_pattern.get().operands.iter().flat_map(|o| match o.kind {
            OperandKind::Choice(words) => words,
            _ => &[],
        });
        let words: Vec<&str> = choices.map(|(word, _)| *word).collect();
        let pattern = |a: &Arg| matches!(&*a.value.kind, ExprKind::Name(n) if words.contains(&n.as_str()));
        if args.iter().any(pattern) { by_pattern } else { id }
    }

    /// What fills the rest of a tile of this dtype.
    pub(crate) fn filling(&mut self, v: &Val, dtype: DType, span: Span) -> ElabResult<Value> {
        let ty = Ty::D(dtype);
        let (low, high) = ptoc_tensor::scalar::integer_range(dtype).unwrap_or((0, 0));
        let v = match v {
            Val::Word(Word::Oob(Oob::Zero)) => Val::Int(0),
            Val::Word(Word::Inf) => Val::Float(f64::INFINITY),
            Val::Word(Word::Choice(word)) => {
                // The element that no largest (smallest) one is beyond.
                let up = *word == "Max";
                if dtype.is_float() {
                    Val::Float(if up { f64::INFINITY } else { f64::NEG_INFINITY })
                } else {
                    let bits = ptoc_ir::scalar::from_int(ty, if up { high } else { low });
                    return Ok(self.constant(Const { ty, bits }));
                }
            }
            other => other.clone(),
        };
        self.scalar_of(&v, ty, span)
    }

    /// What the meaning demands: proved, refuted here, or checked at run time.
    pub(crate) fn demands(&mut self, id: InstrId, operands: &[Operand], span: Span) -> ElabResult<()> {
        for need in id.get().sem.needs() {
            let (a, b) = (self.demanded(&need.left, operands, span), self.demanded(&need.right, operands, span));
            // As the author calls it.
            let what = self.in_names(id, need.what, operands);
            let message = format!("{}: {what}", id.get().written_name());
            if let (Some(x), Some(y)) = (self.const_index(a), self.const_index(b))
                && (if need.op == CmpOp::Eq { x != y } else { x > y })
            {
                return self.refuted(id, need, &what, (x, y), operands, span);
            }
            match need.op {
                CmpOp::Eq if a == b || (self.facts.le_certain(a, b, 0) && self.facts.le_certain(b, a, 0)) => {}
                CmpOp::Eq => self.check_equal(a, b, message, None, span)?,
                _ => self.require_le(a, b, codes::SHAPES_DIFFER, message, span)?,
            }
        }
        Ok(())
    }

    /// What is demanded, with the names of the tiles that have one.
    fn in_names(&self, id: InstrId, what: &str, operands: &[Operand]) -> String {
        let index = id.get().operands.iter().position(|o| o.name == "idx");
        let words = [
            ("the destination", Some(0)),
            ("the left source", Some(1)),
            ("the right source", Some(2)),
            ("the source", Some(1)),
            ("the index", index),
        ];
        words.into_iter().fold(what.to_owned(), |text, (word, k)| match k.and_then(|k| operands.get(k)) {
            Some(Operand::Tile(t)) => {
                let tile = &self.b.kernel().tiles[t.tile];
                if tile.hidden || tile.name.is_empty() { text } else { text.replace(word, &format!("`{}`", tile.name)) }
            }
            _ => text,
        })
    }

    /// A demand that numbers which are known contradict; what would meet it.
    fn refuted(
        &mut self,
        id: InstrId,
        need: &Precondition,
        what: &str,
        found: (i64, i64),
        operands: &[Operand],
        span: Span,
    ) -> ElabResult<()> {
        let name = id.get().written_name();
        let what = what.replace("{0}", &found.0.to_string()).replace("{1}", &found.1.to_string());
        let d = Diagnostic::error(codes::SHAPES_DIFFER, span, format!("{name}: {what}"))
            .with_note(format!("{name} asks for it on {}", self.having(id)));
        let d = ptoc_isa::storage_operand(id).fold(d, |d, p| p.told(d));
        let help = match (need.left, need.right) {
            // What is made of nothing is made once, and repeated.
            (IndexExpr::Rows(0), IndexExpr::Is(1)) if !id.get().operands[1..].iter().any(|o| o.is_tile()) => {
                Some("make one row, and repeat it: `TCOLEXPAND(dst, row)`".to_owned())
            }
            (IndexExpr::Rows(_), IndexExpr::Is(1)) => Some("one row of a tile is `t[0, _]`, the first".to_owned()),
            // A multiple of something: those before and after.
            (IndexExpr::Bin(BinOp::Rem, of, step), IndexExpr::Is(0)) => {
                let (of, step) = (self.demanded(of, operands, span), self.demanded(step, operands, span));
                match (self.const_index(of), self.const_index(step)) {
                    (Some(n), Some(step)) if n >= 0 && step > 0 => {
                        Some(format!("the nearest to {n} are {} and {}", n / step * step, (n / step + 1) * step))
                    }
                    _ => None,
                }
            }
            // A window that begins at an operand: the last one that is inside.
            (IndexExpr::Bin(BinOp::Add, IndexExpr::Arg(k), _), _) => {
                let at = self.demanded(&IndexExpr::Arg(*k), operands, span);
                let step = id.get().sem.needs().iter().find_map(|n| match n.left {
                    IndexExpr::Bin(BinOp::Rem, IndexExpr::Arg(of), step) if of == k => Some(*step),
                    _ => None,
                });
                let step = step.map_or(1, |s| {
                    let s = self.demanded(&s, operands, span);
                    self.const_index(s).unwrap_or(1).max(1)
                });
                let last = self.const_index(at).map(|at| (at - (found.0 - found.1)).div_euclid(step) * step);
                let spec = id.get().operands[*k].name;
                last.map(|last| match last >= 0 {
                    true => format!("the last one that fits has {spec} {last}"),
                    false => "make what is moved smaller: none of this size fits".to_owned(),
                })
            }
            // So much of an operand: the least of it.
            (_, IndexExpr::Bin(BinOp::Mul, IndexExpr::Arg(k), IndexExpr::Is(times))) => {
                let step = id.get().sem.needs().iter().find_map(|n| match (n.left, n.right) {
                    (IndexExpr::Bin(BinOp::Rem, IndexExpr::Arg(of), IndexExpr::Is(step)), IndexExpr::Is(0))
                        if of == k =>
                    {
                        Some(*step)
                    }
                    _ => None,
                });
                let (least, step) = ((found.0 - 1).div_euclid(*times) + 1, step.unwrap_or(1));
                let least = ((least - 1).div_euclid(step) + 1) * step;
                Some(format!("for so many `{}` is at least {least}", id.get().operands[*k].name))
            }
            // A word that says more than there is: the last one that is there.
            (IndexExpr::Arg(k), _) if need.op != CmpOp::Eq => {
                let spec = id.get().operands[k];
                match spec.kind {
                    OperandKind::Choice(words) => {
                        words.iter().find(|(_, n)| *n == found.1).map(|(word, _)| format!("the last one is `{word}`"))
                    }
                    _ => Some(format!("the largest `{}` is {}", spec.name, found.1)),
                }
            }
            (IndexExpr::Is(0), IndexExpr::Arg(k)) => Some(format!("the first one has {} 0", id.get().operands[k].name)),
            (IndexExpr::Is(least), IndexExpr::Arg(k)) => {
                Some(format!("the least `{}` is {least}", id.get().operands[k].name))
            }
            (left, right) if need.op == CmpOp::Eq => {
                let end = |n: &IndexExpr| match *n {
                    IndexExpr::Rows(k) => Some((k, "row")),
                    IndexExpr::Cols(k) => Some((k, "column")),
                    _ => None,
                };
                // What the first source says holds for the result; further sources are as the others want them.
                let further = end(&left).filter(|(k, _)| *k > 1);
                let (end, wanted) = match (further, end(&right), end(&left)) {
                    (Some(end), ..) | (None, None, Some(end)) => (Some(end), found.1),
                    (None, other, _) => (other, found.0),
                };
                let s = if wanted == 1 { "" } else { "s" };
                end.map(|(k, what)| format!("give `{}` {wanted} valid {what}{s}", id.get().operands[k].name))
            }
            _ => None,
        };
        self.report(help.into_iter().fold(d, Diagnostic::with_help))
    }

    fn demanded(&mut self, n: &IndexExpr, operands: &[Operand], span: Span) -> Value {
        let shape = |k: usize| match &operands[k] {
            Operand::Tile(t) => Some(t.valid),
            _ => None,
        };
        match *n {
            IndexExpr::Is(n) => self.idx(n),
            IndexExpr::Rows(k) => shape(k).map_or_else(|| self.idx(1), |s| s.0),
            IndexExpr::Cols(k) => shape(k).map_or_else(|| self.idx(1), |s| s.1),
            IndexExpr::Width(k) => match &operands[k] {
                Operand::Tile(t) => self.idx(i64::from(t.cols)),
                _ => self.idx(1),
            },
            IndexExpr::Size(k) => match &operands[k] {
                Operand::Tile(t) => {
                    let size = self.b.kernel().tiles[t.tile].ty.dtype.size();
                    self.idx(size as i64)
                }
                _ => self.idx(8),
            },
            IndexExpr::Arg(k) => match operands[k] {
                Operand::Scalar(v) => v,
                _ => self.idx(0),
            },
            IndexExpr::Bin(op, a, b) => {
                let (a, b) = (self.demanded(a, operands, span), self.demanded(b, operands, span));
                self.folded(op, a, b, span)
            }
            // What a demand does not speak of (the table's tests).
            IndexExpr::Row | IndexExpr::Col | IndexExpr::At(..) => self.idx(0),
        }
    }

    /// `a op b`; of constants a constant, which stays beyond every bound where it would overflow.
    fn folded(&mut self, op: BinOp, a: Value, b: Value, span: Span) -> Value {
        match (self.const_index(a), self.const_index(b)) {
            (Some(x), Some(y)) if op == BinOp::Add => self.idx(x.saturating_add(y)),
            (Some(x), Some(y)) if op == BinOp::Sub => self.idx(x.saturating_sub(y)),
            (Some(x), Some(y)) if op == BinOp::Mul => self.idx(x.saturating_mul(y)),
            (Some(x), Some(y)) => {
                let bits = ptoc_ir::scalar::binary(op, Ty::Index, x as u64, y as u64).unwrap_or(0);
                self.idx(bits as i64)
            }
            _ => self.bin(op, a, b, span),
        }
    }
}
