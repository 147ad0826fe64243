//! The elements of tensors that a violated `where` reads, for its report: `idx[1] = 5`.

use super::plan::{Argument, Specification};
use ptoc_ir::oracle::{Condition, IntExpr, IntOp, OracleExpr, ReduceKind};
use ptoc_tensor::{Tensor, scalar};

/// Elements that are shown.
const MOST: usize = 4;

/// Elements of a list that are looked through.
const MOST_PLACES: usize = 1 << 18;

/// The elements that `condition` reads where its variables have the values `at`, as text, in source order. What a
/// reduction reads is left out: it is too much to show, and none of it is wrong by itself; but for what keeps a list
/// from being a permutation.
pub fn values(
    condition: &Condition,
    at: &[i64],
    arguments: &[Argument],
    tensors: &[Tensor],
    spec: &Specification,
) -> Vec<String> {
    let vars = condition.vars.iter().zip(at).map(|((v, ..), x)| (*v, *x)).collect();
    read(&condition.cond, vars, arguments, tensors, spec)
}

/// The elements that an expression reads where its variables have these values, likewise.
pub fn read(
    e: &OracleExpr,
    vars: Vec<(usize, i64)>,
    arguments: &[Argument],
    tensors: &[Tensor],
    spec: &Specification,
) -> Vec<String> {
    let mut w = Witness { vars, arguments, tensors, ints: &spec.ints, shown: Vec::new() };
    w.real(e);
    w.shown.truncate(MOST);
    w.shown
}

struct Witness<'a> {
    vars: Vec<(usize, i64)>,
    arguments: &'a [Argument],
    tensors: &'a [Tensor],
    ints: &'a [i64],
    shown: Vec<String>,
}

impl Witness<'_> {
    fn real(&mut self, e: &OracleExpr) {
        match e {
            OracleExpr::Const(_) | OracleExpr::Scalar(_) | OracleExpr::Local(_) | OracleExpr::Rearranged { .. } => {}
            OracleExpr::Reduce { kind: ReduceKind::Permutation, var, lo, hi, body } => {
                self.not_a_permutation(*var, lo, hi, body);
            }
            OracleExpr::Reduce { .. } => {}
            OracleExpr::Int(i) => {
                self.int(i);
            }
            OracleExpr::Elem { tensor, index } => {
                self.element(*tensor, index);
            }
            OracleExpr::Unary(_, a) => self.real(a),
            OracleExpr::Binary(_, a, b) | OracleExpr::Pow(a, b) | OracleExpr::Compare(_, a, b) => {
                self.real(a);
                self.real(b);
            }
            OracleExpr::Select(c, a, b) => {
                self.real(c);
                self.real(a);
                self.real(b);
            }
            OracleExpr::Let { value, body, .. } => {
                self.real(value);
                self.real(body);
            }
        }
    }

    /// Shows the first element of a list that is not one of its places or has come before, and where.
    fn not_a_permutation(&mut self, var: usize, lo: &IntExpr, hi: &IntExpr, body: &OracleExpr) -> Option<()> {
        let (lo, hi) = (self.int(lo)?, self.int(hi)?);
        let count = usize::try_from(hi.checked_sub(lo)?).ok().filter(|n| *n <= MOST_PLACES)?;
        let mut first: Vec<Option<i64>> = vec![None; count];
        for i in lo..hi {
            let value = self.quietly(var, i, body)?;
            match usize::try_from(value).ok().and_then(|v| first.get_mut(v)) {
                Some(place @ None) => *place = Some(i),
                Some(Some(before)) => {
                    let before = *before;
                    self.shown_at(var, before, body);
                    self.shown_at(var, i, body);
                    return Some(());
                }
                None => {
                    self.shown_at(var, i, body);
                    return Some(());
                }
            }
        }
        None
    }

    /// An integer element of a list, which is not shown.
    fn quietly(&mut self, var: usize, at: i64, body: &OracleExpr) -> Option<i64> {
        let shown = self.shown.len();
        self.vars.push((var, at));
        let value = match body {
            OracleExpr::Elem { tensor, index } => {
                let at = self.element(*tensor, index);
                let whole = self.tensors.get(*tensor).filter(|t| t.dtype().is_int());
                at.and_then(|at| i64::try_from(whole?.get_i128(at)).ok())
            }
            OracleExpr::Int(i) => self.int(i),
            _ => None,
        };
        self.vars.pop();
        self.shown.truncate(shown);
        value
    }

    fn shown_at(&mut self, var: usize, at: i64, body: &OracleExpr) {
        self.vars.push((var, at));
        self.real(body);
        self.vars.pop();
    }

    /// The value, if it has one; elements on the way are shown.
    fn int(&mut self, e: &IntExpr) -> Option<i64> {
        match e {
            IntExpr::Const(n) => Some(*n),
            IntExpr::Var(v) => self.vars.iter().find(|(x, _)| x == v).map(|(_, n)| *n),
            IntExpr::Input(n) => self.ints.get(*n).copied(),
            IntExpr::Extent { tensor, mode } => self.arguments.get(*tensor)?.shape.get(*mode).map(|&n| n as i64),
            IntExpr::Elem { tensor, index } => {
                let at = self.element(*tensor, index)?;
                i64::try_from(self.tensors.get(*tensor)?.get_i128(at)).ok()
            }
            IntExpr::Binary(op, a, b) => {
                let (a, b) = (self.int(a), self.int(b));
                binary(*op, a?, b?)
            }
        }
    }

    /// Shows an element; where it is in the tensor.
    fn element(&mut self, tensor: usize, index: &[IntExpr]) -> Option<usize> {
        let index: Vec<Option<i64>> = index.iter().map(|i| self.int(i)).collect();
        let index: Vec<usize> = index.into_iter().map(|i| usize::try_from(i?).ok()).collect::<Option<_>>()?;
        let (argument, t) = (self.arguments.get(tensor)?, self.tensors.get(tensor)?);
        if index.len() != t.shape().len() || index.iter().zip(t.shape()).any(|(i, n)| i >= n) {
            return None;
        }
        let at = t.offset(&index)?;
        let place: Vec<String> = index.iter().map(usize::to_string).collect();
        let value = scalar::format_bits(t.dtype(), t.get_bits(at));
        let text = format!("`{}[{}] = {value}`", argument.name, place.join(", "));
        if !self.shown.contains(&text) {
            self.shown.push(text);
        }
        Some(at)
    }
}

/// Division floors, as in the oracle.
fn binary(op: IntOp, a: i64, b: i64) -> Option<i64> {
    match op {
        IntOp::Add => a.checked_add(b),
        IntOp::Sub => a.checked_sub(b),
        IntOp::Mul => a.checked_mul(b),
        IntOp::Div => {
            let q = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
        }
        IntOp::Rem => {
            let r = a.checked_rem(b)?;
            Some(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
        }
        IntOp::Min => Some(a.min(b)),
        IntOp::Max => Some(a.max(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_floors() {
        for (a, b, q, r) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -2, -3, 0)] {
            assert_eq!((binary(IntOp::Div, a, b), binary(IntOp::Rem, a, b)), (Some(q), Some(r)), "{a} by {b}");
        }
        assert_eq!(binary(IntOp::Rem, i64::MIN, -1), None);
        assert_eq!(binary(IntOp::Div, 1, 0), None);
    }
}
