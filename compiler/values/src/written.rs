//! What to write where a scalar stands and a tile should: the instruction with a scalar there, the operands in another
//! order, the operator, or a tile that is filled with the scalar.

use crate::Val;
use ptoc_diagnostics::{Diagnostic, Edit, Span};
use ptoc_isa::{CmpOp, InstrId, OperandKind, Sem};
use ptoc_syntax::ast::{Arg, Expr, ExprKind, UnaryOp};

/// A call of an instruction as it is written.
pub struct Written<'a> {
    /// Values of the operands, without the modes.
    pub operands: &'a [(Val, &'a Expr)],
    /// All arguments.
    pub args: &'a [Arg],
    /// The call.
    pub span: Span,
    /// The instruction's name.
    pub name: Span,
}

/// A short expression as text.
pub fn text(e: &Expr) -> Option<String> {
    Some(match &*e.kind {
        ExprKind::Name(n) => n.to_string(),
        ExprKind::Int(n) => n.to_string(),
        ExprKind::Float(_, n) => n.to_string(),
        ExprKind::Paren(e) => format!("({})", text(e)?),
        ExprKind::Unary(UnaryOp::Neg, e) => format!("-{}", text(e)?),
        _ => return None,
    })
}

impl Written<'_> {
    /// The operands that `id` would not take there, in kind, if they stood in this order.
    fn misfits(&self, id: InstrId, order: impl Fn(usize) -> usize) -> Vec<usize> {
        let specs = id.get().written().iter().enumerate().take(self.operands.len());
        let bad = specs.filter(|(k, spec)| match (spec.kind, &self.operands[order(*k)].0) {
            (_, Val::Poison) => false,
            (OperandKind::Tile(_), v) => !matches!(v, Val::Tile(_) | Val::Mask(..)),
            (OperandKind::Scalar(_), v) => matches!(v, Val::Tile(_) | Val::Mask(..)),
            _ => false,
        });
        bad.map(|(k, _)| k).collect()
    }

    /// The operands of the call as text, with another one for operand `k`.
    fn with(&self, id: InstrId, k: usize, other: &str) -> String {
        let text = |(n, (_, e)): (usize, &(Val, &Expr))| {
            if n == k { other.to_owned() } else { text(e).unwrap_or_else(|| id.get().operands[n].name.to_owned()) }
        };
        let list: Vec<String> = self.operands.iter().enumerate().map(text).collect();
        format!("{}({})", id.get().written_name(), list.join(", "))
    }

    /// Edits that exchange operands `i` and `j`, for `id`, and mirror a comparison.
    fn exchanged(&self, id: InstrId, (i, j): (usize, usize), cmp: Option<CmpOp>) -> Option<Vec<Edit>> {
        let (a, b) = (self.operands[i].1, self.operands[j].1);
        let mut edits = vec![
            Edit { span: self.name, text: id.get().written_name().into() },
            Edit { span: a.span, text: text(b)? },
            Edit { span: b.span, text: text(a)? },
        ];
        if let Some(cmp) = cmp.filter(|c| c.mirrored() != *c) {
            let word = cmp.name().to_uppercase();
            let at = self.args.iter().find(|a| matches!(&*a.value.kind, ExprKind::Name(n) if n.as_str() == word))?;
            edits.push(Edit { span: at.value.span, text: cmp.mirrored().name().to_uppercase() });
        }
        Some(edits)
    }

    /// Operand `k` of `id` is a scalar and should be a tile.
    pub fn scalar_for_tile(&self, d: Diagnostic, id: InstrId, k: usize, cmp: Option<CmpOp>) -> Diagnostic {
        let twin = ptoc_isa::sibling(id);
        let expr = id.get().sem.expr();
        // As it stands: TADDS for TADD, and TDIVS, which takes its scalar on either side.
        if let Some((twin, at)) = twin {
            let name = twin.get().written_name();
            let reversed = |n: usize| if n == 1 || n == 2 { 3 - n } else { n };
            let either = twin.get().scalar_first && k == 1 && at == 2 && self.misfits(twin, reversed).is_empty();
            if either || at == k && (expr.is_none() || self.misfits(twin, |n| n).is_empty()) {
                return d.with_fix(format!("`{name}` takes a scalar"), self.name, name);
            }
        }
        // The same with two operands exchanged.
        let count = self.operands.len();
        let pairs = (1..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        let means = |(i, j): &(usize, usize)| expr.is_some_and(|e| e.exchanges(*i, *j, cmp.is_some()));
        for (i, j) in pairs.filter(means) {
            let order = |n: usize| {
                if n == i {
                    j
                } else if n == j {
                    i
                } else {
                    n
                }
            };
            for row in std::iter::once(id).chain(twin.map(|(twin, _)| twin)) {
                if self.misfits(row, order).is_empty() {
                    let help = format!("the same in the order of `{}`", row.get().usage());
                    return match self.exchanged(row, (i, j), cmp) {
                        Some(edits) => d.with_edits(help, edits),
                        None => d.with_help(help),
                    };
                }
            }
        }
        let Some((twin, at)) = twin.filter(|_| expr.is_some()) else { return d };
        if let Sem::Binary(op) | Sem::BinaryScalar(op) = id.get().sem
            && let Some(symbol) = op.symbol()
            && let [(_, dst), (_, a), (_, b)] = self.operands
            && matches!(op, ptoc_isa::BinOp::Sub | ptoc_isa::BinOp::Div)
            && self.misfits(id, |n| n).into_iter().chain(self.misfits(twin, |n| n)).all(|n| n > 0)
            && self.operands[1..].iter().any(|(v, _)| matches!(v, Val::Tile(_)))
        {
            let help = "operators take a scalar on either side";
            return match (text(dst), text(a), text(b)) {
                (Some(dst), Some(a), Some(b)) => d.with_fix(help, self.span, format!("{dst} = {a} {symbol} {b}")),
                _ => d.with_help(format!("{help}: `dst = a {symbol} b`")),
            };
        }
        // A tile in the scalar's place.
        for row in [id, twin] {
            if let [n] = self.misfits(row, |n| n)[..]
                && n > 0
                && row.get().operands[n].is_tile()
            {
                let scalar = text(self.operands[n].1).unwrap_or_else(|| "..".to_owned());
                let call = self.with(row, n, "t");
                return d.with_help(format!("fill a tile with the scalar, `t = {scalar};`, and give that: `{call}`"));
            }
        }
        match at == k {
            true => {
                let name = twin.get().written_name();
                d.with_fix(format!("`{name}` takes a scalar"), self.name, name)
            }
            false => d,
        }
    }
}
