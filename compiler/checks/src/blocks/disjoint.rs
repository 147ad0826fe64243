//! Disjointness of blocks: whether no two of them use one element in ways that conflict.
//!
//! The two numbers of an element are taken apart into digits, the lowest first: `E = S * Q + R` with `0 <= R < S` on
//! both sides, so that the elements are one only if the `R` and the `Q` are. What S may be is read off the terms: the
//! row-major strides of the tensor, of windows, of tiles. Then the equations of all digits must contradict that the
//! blocks differ in some dimension of the grid.

use super::accesses::{AccessedElements, NestSide, TensorAccess};
use super::budget::Steps;
use super::space::{BlockMoment, Claim, Form, KernelIndex, LAUNCH, Space, Stride, number};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Affine, Elem, TensorId, Value, ViewRef};

/// Steps of a proof that is easy.
const FIRST: u64 = 20;

/// What is not excluded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// No two blocks meet.
    Disjoint,
    /// Blocks that differ in these dimensions of the grid may meet.
    Open(Vec<usize>),
}

/// Whether two blocks may meet, one in `a` and the other in `b`. `same`: the two are one access.
pub(super) fn meet<'k>(
    code: &KernelIndex<'k>,
    budget: &Steps<'_>,
    a: &TensorAccess<'k>,
    b: &TensorAccess<'k>,
) -> Verdict {
    let same = std::ptr::eq(a, b);
    if !budget.spend(FIRST) {
        return Verdict::Open((0..code.kernel.grid.len()).collect());
    }
    let mut space = Space::new(code, budget);
    let all = || Verdict::Open((0..code.kernel.grid.len()).collect());
    let (here, there) = (space.side(), space.side());
    let (own, other) = (space.block(here), space.block(there));
    let Some(first) = element(&mut space, here, a) else { return all() };
    let Some(second) = element(&mut space, there, b) else { return all() };
    if !same_unit(code, a, b) {
        return all();
    }
    let equations = digits(&mut space, a.tensor, first, second, same);
    assume_equal(&mut space, &equations);
    let mut open = Vec::new();
    for (d, (x, y)) in own.iter().zip(&other).enumerate() {
        let later = |x: &Form, y: &Form| y.plus(x, -1).and_then(|d| d.plus(&number(1), -1)).map(Claim::Least);
        let apart = |claim: Option<Claim>| claim.is_some_and(|c| space.refutes(&[c]));
        if !(apart(later(x, y)) && (same || apart(later(y, x)))) {
            open.push(d);
        }
    }
    if open.is_empty() { Verdict::Disjoint } else { Verdict::Open(open) }
}

/// Whether both count elements of one size.
pub(super) fn same_unit(code: &KernelIndex<'_>, a: &TensorAccess<'_>, b: &TensorAccess<'_>) -> bool {
    let unit = |x: &TensorAccess<'_>| match &x.place {
        AccessedElements::Nest(nest) => (nest.elem.bits(), nest.swizzle),
        _ => (Elem::Whole(code.kernel.tensors[x.tensor].dtype).bits(), None),
    };
    unit(a) == unit(b)
}

/// The number of any element of an access, with all that holds there.
pub(super) fn element<'k>(space: &mut Space<'k, '_>, side: BlockMoment, access: &TensorAccess<'k>) -> Option<Form> {
    space.enter(side, &access.facts.list());
    match &access.place {
        AccessedElements::Element(at) => Some(space.value(side, *at)),
        AccessedElements::Window(view) | AccessedElements::Within(view) => window(space, side, view),
        AccessedElements::Nest(nest) => points(space, side, nest, None),
    }
}

fn window(space: &mut Space<'_, '_>, side: BlockMoment, view: &ViewRef) -> Option<Form> {
    let mut sum = space.value(side, view.offset);
    for (&extent, &stride) in view.shape.iter().zip(&view.strides) {
        let at = axis(space, side, extent);
        let by = space.value(side, stride);
        sum = sum.plus(&at.times(&by)?, 1)?;
    }
    Some(sum)
}

/// An index of an axis.
pub(super) fn axis(space: &mut Space<'_, '_>, side: BlockMoment, extent: Value) -> Form {
    let extent = space.value(side, extent);
    if extent.number() == Some(1) {
        return number(0);
    }
    let at = space.symbol(true);
    space.fact(Claim::Least(at.clone()));
    if let Some(rest) = extent.plus(&at, -1).and_then(|r| r.plus(&number(1), -1)) {
        space.fact(Claim::Least(rest));
    }
    at
}

/// The number of a point's element; the axes are new symbols unless they are given.
pub(super) fn points(
    space: &mut Space<'_, '_>,
    side: BlockMoment,
    nest: &NestSide<'_>,
    axes: Option<&[Form]>,
) -> Option<Form> {
    let axes: Vec<Form> = match axes {
        Some(axes) => axes.to_vec(),
        None => nest.extents.iter().map(|&e| axis(space, side, e)).collect(),
    };
    for guard in nest.guards {
        let (at, bound) = (along(space, side, &guard.at, &axes)?, space.value(side, guard.bound));
        let rest = bound.plus(&at, -1)?.plus(&number(1), -1)?;
        space.fact(Claim::Least(rest));
    }
    let mut sum = along(space, side, nest.at, &axes)?;
    for table in nest.tables {
        let entry = axis(space, side, table.extent);
        let by = space.value(side, table.stride);
        sum = sum.plus(&entry.times(&by)?, 1)?;
    }
    Some(sum)
}

/// An affine function of the axes.
pub(super) fn along(space: &mut Space<'_, '_>, side: BlockMoment, f: &Affine, axes: &[Form]) -> Option<Form> {
    let mut sum = space.value(side, f.start);
    for (&stride, axis) in f.strides.iter().zip(axes) {
        let by = space.value(side, stride);
        sum = sum.plus(&axis.times(&by)?, 1)?;
    }
    Some(sum)
}

/// Equations that hold exactly if the two numbers are equal. `same`: both are numbers of one access.
pub(super) fn digits(space: &mut Space<'_, '_>, tensor: TensorId, a: Form, b: Form, same: bool) -> Vec<(Form, Form)> {
    let strides = strides(space, tensor, &[&a, &b]);
    let mut out = Vec::new();
    taken_apart(space, (a, b), &strides, same, &mut out);
    out
}

fn taken_apart(
    space: &mut Space<'_, '_>,
    (mut a, mut b): (Form, Form),
    strides: &[Stride],
    same: bool,
    out: &mut Vec<(Form, Form)>,
) {
    let mut unit = Stride { factors: Vec::new(), count: 1 };
    // Those that are too coarse for what lies below the next digit are not.
    let mut finer = 0;
    for (n, stride) in strides.iter().enumerate() {
        let Some(by) = unit.within(stride) else { continue };
        if by.factors.is_empty() && by.count == 1 {
            continue;
        }
        let (Some(first), Some(second)) = (by.split(&a), by.split(&b)) else { continue };
        let ((qa, ra), (qb, rb)) = (from_above(&by, first), from_above(&by, second));
        let base = by.form();
        let mut digit = |r: &Form| space.proves(&Claim::Least(r.clone())) && space.below(r, &base);
        // Two sides of one access are alike.
        if digit(&ra) && (same || digit(&rb)) {
            let within: Vec<Stride> = strides[finer..n].iter().filter_map(|s| unit.within(s)).collect();
            match within.is_empty() || ra.terms().len() < 2 {
                true => out.push((ra, rb)),
                false => taken_apart(space, (ra, rb), &within, same, out),
            }
            (a, b, unit, finer) = (qa, qb, stride.clone(), n + 1);
        }
    }
    out.push((a, b));
}

/// Quotient and rest of what counts down from a multiple: `S * Q - 1 - c` is `S * (Q - 1) + (S - 1 - c)`.
pub(super) fn from_above(by: &Stride, (q, r): (Form, Form)) -> (Form, Form) {
    let down = !r.terms().is_empty() && r.terms().iter().all(|(_, k)| *k < 0);
    match (q.plus(&number(1), -1), r.plus(&by.form(), 1)) {
        (Some(q), Some(r)) if down => (q, r),
        _ => (q, r),
    }
}

/// What a digit may count, the smallest first.
fn strides(space: &mut Space<'_, '_>, tensor: TensorId, forms: &[&Form]) -> Vec<Stride> {
    let mut out: Vec<Stride> = Vec::new();
    let kernel = space.code.kernel;
    let mut row = number(1);
    for &extent in kernel.tensors[tensor].shape.iter().skip(1).rev() {
        let extent = space.value(LAUNCH, extent);
        let Some(next) = row.times(&extent) else { break };
        out.extend(Stride::of(&next));
        row = next;
    }
    for form in forms {
        for (factors, k) in form.terms() {
            // The symbols that belong to the launch, and the rest that they count.
            let (of, moving): (Vec<_>, Vec<_>) = factors.iter().copied().partition(|s| space.is_launch(*s));
            if !moving.is_empty() && k.checked_abs().is_some() {
                out.push(Stride { factors: of, count: k.abs() });
            }
        }
    }
    out.sort_by(|a, b| (a.factors.len(), a.count, &a.factors).cmp(&(b.factors.len(), b.count, &b.factors)));
    out.dedup();
    out
}

/// Makes equations facts; a symbol that is another number is that number from here on.
pub(super) fn assume_equal(space: &mut Space<'_, '_>, equations: &[(Form, Form)]) {
    let mut left: Vec<Form> = equations.iter().filter_map(|(a, b)| a.plus(b, -1)).collect();
    loop {
        let mut next = Vec::new();
        let mut found = false;
        for form in left {
            let Some(form) = space.current(&form) else { continue };
            let symbol = (!found).then(|| solvable(&form)).flatten();
            match symbol {
                Some((s, by)) => {
                    found = true;
                    space.fact(Claim::Zero(form));
                    space.replace(s, by);
                }
                None => next.push(form),
            }
        }
        left = next;
        if !found {
            break;
        }
    }
    left.into_iter().for_each(|f| space.fact(Claim::Zero(f)));
}

/// A symbol that stands alone in one term with the factor 1 or -1, and what it is.
fn solvable(form: &Form) -> Option<(super::space::Sym, Form)> {
    let alone = |t: &&(Vec<super::space::Sym>, i64)| {
        t.0.len() == 1 && t.1.abs() == 1 && form.symbols().filter(|s| *s == t.0[0]).count() == 1
    };
    // The latest symbol: it is computed from most.
    let (factors, k) = form.terms().iter().filter(alone).max_by_key(|t| t.0[0])?;
    let own = Poly::sum_of(vec![(factors.clone(), *k)])?;
    let rest = form.plus(&own, -1)?;
    let by = number(0).plus(&rest, -k)?;
    Some((factors[0], by))
}
