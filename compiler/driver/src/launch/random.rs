//! Random inputs that keep to the simple bounds of `where`: `0 <= idx[i]`, `idx[i] < N`; and to its simple orders:
//! `permutation<i>(order[i])`, `sorted<i>(starts[i])`.

use super::plan::Argument;
use crate::defs;
use crate::session::EntryPoint;
use indexmap::IndexMap;
use ptoc_syntax::ast::{BinaryOp, Expr, ExprKind, Name};
use ptoc_tensor::{Tensor, TensorError, random_in, random_permutation, sorted_lines};

/// Ranges of the contents of tensors; either end may be open.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    ranges: IndexMap<Name, (Option<i128>, Option<i128>)>,
    orders: IndexMap<Name, (Order, usize)>,
}

/// An order of the numbers along a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// 0, 1, .. each once.
    Permutation,
    /// Ascending.
    Sorted,
}

impl Bounds {
    /// The bounds that a kernel's `where` sets.
    pub fn of(entry: &EntryPoint<'_>, dims: &IndexMap<Name, i64>) -> Bounds {
        let mut bounds = Bounds::default();
        for condition in &entry.item.wheres {
            bounds.add(condition, dims);
        }
        bounds
    }

    fn add(&mut self, condition: &Expr, dims: &IndexMap<Name, i64>) {
        match &*condition.kind {
            ExprKind::Paren(e) => self.add(e, dims),
            ExprKind::Binary(BinaryOp::And, a, b) => {
                self.add(a, dims);
                self.add(b, dims);
            }
            ExprKind::Binary(op, a, b) => {
                if let (Some(tensor), Some(n)) = (element(a), value(b, dims)) {
                    self.bound(tensor, *op, n);
                } else if let (Some(n), Some(tensor)) = (value(a, dims), element(b)) {
                    let flipped = match op {
                        BinaryOp::Lt => BinaryOp::Gt,
                        BinaryOp::Le => BinaryOp::Ge,
                        BinaryOp::Gt => BinaryOp::Lt,
                        BinaryOp::Ge => BinaryOp::Le,
                        other => *other,
                    };
                    self.bound(tensor, flipped, n);
                }
            }
            ExprKind::Call(callee, args) => {
                if let ([of], Some((order, index))) = (&args[..], order(callee))
                    && let Some((tensor, mode)) = along(&of.value, index)
                {
                    self.orders.insert(tensor.clone(), (order, mode));
                }
            }
            _ => {}
        }
    }

    /// `tensor op n`
    fn bound(&mut self, tensor: &Name, op: BinaryOp, n: i128) {
        let (least, end) = self.ranges.entry(tensor.clone()).or_default();
        let at_least = |least: &mut Option<i128>, n| *least = Some(least.map_or(n, |old| old.max(n)));
        let below = |end: &mut Option<i128>, n| *end = Some(end.map_or(n, |old| old.min(n)));
        match op {
            BinaryOp::Lt => below(end, n),
            BinaryOp::Le => below(end, n + 1),
            BinaryOp::Gt => at_least(least, n + 1),
            BinaryOp::Ge => at_least(least, n),
            BinaryOp::Eq => {
                at_least(least, n);
                below(end, n + 1);
            }
            _ => {}
        }
    }

    /// Random contents for an argument.
    pub fn random(&self, a: &Argument, seed: u64) -> Result<Tensor, TensorError> {
        let range = self.ranges.get(&a.name).map(|&(least, end)| {
            // As wide as the default where one end is open.
            let width = if a.dtype.is_float() { 1 } else { 16 };
            let least_default = if a.dtype.is_float() { -1 } else { 0 };
            match (least, end) {
                (Some(lo), Some(hi)) => (lo, hi),
                (Some(lo), None) => (lo, lo + width),
                (None, Some(hi)) if hi > least_default => (least_default, hi.min(least_default + 2 * width)),
                (None, Some(hi)) => (hi - width, hi),
                (None, None) => (least_default, width),
            }
        });
        // An empty tensor keeps to any bounds.
        if a.shape.contains(&0) {
            return Tensor::zeros(a.dtype, &a.shape);
        }
        match self.orders.get(&a.name) {
            Some((Order::Permutation, mode)) => random_permutation(a.dtype, &a.shape, *mode, seed, &a.name),
            Some((Order::Sorted, mode)) => Ok(sorted_lines(random_in(a.dtype, &a.shape, seed, &a.name, range)?, *mode)),
            None => random_in(a.dtype, &a.shape, seed, &a.name, range),
        }
    }
}

/// `sorted<i>` or `permutation<i>`: what it demands, and `i`.
fn order(callee: &Expr) -> Option<(Order, &Name)> {
    let ExprKind::Static(base, over) = &*callee.kind else { return None };
    let (ExprKind::Name(function), [index]) = (&*base.kind, &over[..]) else { return None };
    let order = match function.as_str() {
        "permutation" => Order::Permutation,
        "sorted" => Order::Sorted,
        _ => return None,
    };
    match &*index.value.kind {
        ExprKind::Name(n) => Some((order, n)),
        _ => None,
    }
}

/// `x` and the mode that `index` stands in, of `x[.., index, ..]` with no other use of it.
fn along<'e>(e: &'e Expr, index: &Name) -> Option<(&'e Name, usize)> {
    let ExprKind::Index(_, args) = &*e.kind else { return None };
    let alone = |e: &Expr| matches!(&*e.kind, ExprKind::Name(n) if n == index);
    let mut modes = args.iter().enumerate().filter(|(_, a)| alone(&a.value)).map(|(k, _)| k);
    let mode = modes.next().filter(|_| modes.next().is_none())?;
    let names = args.iter().all(|a| matches!(&*a.value.kind, ExprKind::Name(_)));
    Some((element(e).filter(|_| names)?, mode))
}

/// `x` of `x[..]`
fn element(e: &Expr) -> Option<&Name> {
    match &*e.kind {
        ExprKind::Paren(e) => element(e),
        ExprKind::Index(base, _) => match &*base.kind {
            ExprKind::Name(n) => Some(n),
            _ => None,
        },
        _ => None,
    }
}

/// Whole numbers and dimensions, with `+`, `-` and `*`.
fn value(e: &Expr, dims: &IndexMap<Name, i64>) -> Option<i128> {
    match &*e.kind {
        ExprKind::Name(n) => dims.get(n).map(|&n| i128::from(n)),
        ExprKind::Paren(e) => value(e, dims),
        ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
            let (a, b) = (value(a, dims)?, value(b, dims)?);
            let n = match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Sub => a.checked_sub(b),
                _ => a.checked_mul(b),
            };
            n.filter(|n| n.unsigned_abs() < 1 << 64)
        }
        _ => defs::integer(e).map(i128::from),
    }
}

/// Whether a condition speaks of the contents of tensors, as the analysis decides it.
pub(crate) fn has_index(e: &Expr) -> bool {
    match &*e.kind {
        ExprKind::Index(..) => true,
        ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Field(a, _) => has_index(a),
        ExprKind::Binary(_, a, b) => has_index(a) || has_index(b),
        ExprKind::Call(_, args) => args.iter().any(|a| has_index(&a.value)),
        _ => false,
    }
}
