//! Coverage of an `out` tensor: whether every element has a store.
//!
//! For any element x a block, iterations and a point of a window are chosen that write it, and it is proved that they
//! exist. What is chosen follows from the digits: where a window begins at `T * i` and x lies `r` behind it, `i` is `x
//! / T` and `r` the rest. The proof does not rely on that: it asks whether the indices are in their ranges, conditions
//! hold, and the element is x. Where a condition is not proved, x may still be another store's: the two branches of an
//! `if` together write what each does not.

use super::accesses::{AccessedElements, Fact, TensorAccess};
use super::budget::Steps;
use super::disjoint::{along, from_above};
use super::space::{BlockMoment, Claim, Form, KernelIndex, LAUNCH, Space, Stride, Sym, number};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{If, Op, TensorId, Value, Var, While};
use ptoc_isa::CmpOp;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Stores that are looked at for what the ones before leave.
const DEEP: usize = 4;
/// Conditions of one store that others make up for.
const RESTS: usize = 4;

/// Why a store is not proved to write what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// The data say which elements it writes.
    Data,
    /// It stands in a branch.
    Branch(Span),
    /// Something may jump over it.
    Skipped,
    /// The windows do not show it.
    Windows,
}

/// What is left of an element's cases.
struct Rest<'k, 'a> {
    space: Space<'k, 'a>,
    /// Conditions that are not understood, and how they turn out where the indices are these.
    opaque: Vec<(&'k If, bool)>,
    indices: FxHashMap<Value, Form>,
}

/// What is chosen for an element.
#[derive(Clone, Default, Debug)]
struct Choice {
    indices: FxHashMap<Value, Form>,
    axes: Vec<Form>,
    turns: FxHashMap<Var, Form>,
    /// Something does not matter.
    free: bool,
    /// Of what does not matter, the last and not the first.
    last: bool,
}

/// Which digits of an element's number are looked at by themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    /// Those that an index of the store counts.
    Own,
    /// All of which the store has any.
    All,
    /// Only the whole number.
    One,
}

/// Proves that these stores together write every element of the tensor. The error tells which of them does not do what
/// it should, and why.
pub(super) fn cover<'k>(
    code: &KernelIndex<'k>,
    budget: &Steps<'_>,
    tensor: TensorId,
    stores: &[&TensorAccess<'k>],
) -> Result<(), Option<(usize, Why)>> {
    let mut space = Space::new(code, budget);
    space.launch();
    let Some((x, strides)) = any_element(&mut space, tensor) else { return Err(None) };
    let usable: Vec<&TensorAccess<'k>> = stores.iter().copied().filter(|s| unfit(s).is_none()).collect();
    let rest = Rest { space, opaque: Vec::new(), indices: FxHashMap::default() };
    let mut why = None;
    if covered(&rest, &x, &strides, &usable, DEEP, &mut why) {
        return Ok(());
    }
    let found = stores.iter().enumerate().find_map(|(n, s)| Some((n, unfit(s)?)));
    let first = why.and_then(|(at, why)| Some((stores.iter().position(|s| std::ptr::eq(*s, at))?, why)));
    Err(first.or(found))
}

/// A store of which nothing can be proved.
fn unfit(store: &TensorAccess<'_>) -> Option<Why> {
    match &store.place {
        AccessedElements::Within(_) => Some(Why::Data),
        AccessedElements::Nest(nest) if !nest.tables.is_empty() => Some(Why::Data),
        _ if store.skipped => Some(Why::Skipped),
        _ => None,
    }
}

/// The number of any element, and what its digits count, the smallest first.
fn any_element(space: &mut Space<'_, '_>, tensor: TensorId) -> Option<(Form, Vec<Stride>)> {
    let data = &space.code.kernel.tensors[tensor];
    let (mut sum, mut strides) = (number(0), Vec::new());
    let mut digit = |space: &mut Space<'_, '_>, extent: Value, by: &Form, sum: &mut Form| {
        let (at, extent) = (space.symbol(true), space.value(LAUNCH, extent));
        space.fact(Claim::Least(at.clone()));
        space.fact(Claim::Least(extent.plus(&at, -1)?.plus(&number(1), -1)?));
        *sum = sum.plus(&at.times(by)?, 1)?;
        strides.extend(Stride::of(by));
        Some(())
    };
    match &data.stored {
        Some(stored) => {
            sum = space.value(LAUNCH, stored.at.start);
            for (&extent, &stride) in stored.extents.iter().zip(&stored.at.strides) {
                let by = space.value(LAUNCH, stride);
                digit(space, extent, &by, &mut sum)?;
            }
        }
        None => {
            let mut by = number(1);
            for &extent in data.shape.iter().rev() {
                digit(space, extent, &by, &mut sum)?;
                by = by.times(&space.value(LAUNCH, extent))?;
            }
        }
    }
    strides.sort_by(|a, b| (a.factors.len(), a.count, &a.factors).cmp(&(b.factors.len(), b.count, &b.factors)));
    strides.dedup();
    Some((sum, strides))
}

fn covered<'k>(
    rest: &Rest<'k, '_>,
    x: &Form,
    strides: &[Stride],
    stores: &[&'_ TensorAccess<'k>],
    depth: usize,
    why: &mut Option<(*const TensorAccess<'k>, Why)>,
) -> bool {
    // A case that there is not.
    if rest.space.refutes(&[Claim::Least(x.clone())]) {
        return true;
    }
    for (n, store) in stores.iter().enumerate() {
        let ways = [Digits::Own, Digits::All, Digits::One].map(|digits| [(digits, false), (digits, true)]);
        for way in ways.into_iter().flatten() {
            // Two spaces are copied for each.
            if !rest.space.pay() {
                return false;
            }
            let Some((mut space, choice)) = choose(rest, x, strides, store, way) else { continue };
            // Where all is chosen, there is no last one.
            if way.1 && !choice.free {
                continue;
            }
            let outcome = verify(rest, &mut space, x, store, &choice);
            let Some(rests) = outcome.rests else {
                why.get_or_insert((*store as *const _, outcome.why));
                continue;
            };
            if rests.is_empty() {
                return true;
            }
            let others: Vec<&TensorAccess<'k>> =
                stores.iter().enumerate().filter(|(k, _)| *k != n).map(|(_, s)| *s).collect();
            if depth > 0 && !others.is_empty() && rests.iter().all(|r| covered(r, x, strides, &others, depth - 1, why))
            {
                return true;
            }
            why.get_or_insert((*store as *const _, outcome.why));
        }
    }
    false
}

/// Indices with which a store should write the element, and the space in which they are numbers.
fn choose<'k, 'a>(
    rest: &Rest<'k, 'a>,
    x: &Form,
    strides: &[Stride],
    store: &TensorAccess<'k>,
    (digits_of, last): (Digits, bool),
) -> Option<(Space<'k, 'a>, Choice)> {
    // The element that the store writes with indices that are not known. What this assumes is forgotten.
    let mut open = rest.space.clone();
    let known = open.symbols();
    let side = open.side();
    let kernel = open.code.kernel;
    let mut free: Vec<(Value, Form)> = Vec::new();
    let facts = store.facts.list();
    let loops = facts.iter().filter_map(|f| match f {
        Fact::Loop(f) => Some((f.index, Some(f.lo), f.hi)),
        _ => None,
    });
    for (index, lo, hi) in kernel.grid.iter().map(|g| (g.index, None, g.extent)).chain(loops) {
        match rest.indices.get(&index) {
            Some(given) => open.set(side, index, given.clone()),
            None => {
                // A loop that begins where a block does is so far behind it.
                let lo = lo.map_or(number(0), |lo| open.value(side, lo));
                let length = open.value(side, hi).plus(&lo, -1)?;
                let at = if length.number() == Some(1) { lo } else { open.symbol(true).plus(&lo, 1)? };
                open.set(side, index, at.clone());
                free.push((index, at));
            }
        }
    }
    let extents = axes(store);
    let mut points = Vec::new();
    for extent in extents {
        let extent = open.value(side, extent);
        points.push(if extent.number() == Some(1) { number(0) } else { open.symbol(true) });
    }
    let element = place(&mut open, side, store, &points)?;
    let unknown = known..open.symbols();
    // Tiles are whole, until the proof says that they are not.
    let cut: Vec<(Sym, Form)> = (unknown.clone()).filter_map(|s| Some((Sym(s), open.usual(Sym(s))?))).collect();

    let mut space = rest.space.clone();
    while space.symbols() < unknown.end {
        space.symbol(true);
    }
    for (s, whole) in cut {
        space.replace(s, whole);
    }
    // A quotient and a remainder of one index are digits of their own, and the index follows from them.
    let mut remainders = Vec::new();
    for (s, quotient, by) in divided(&open, &unknown) {
        let remainder = space.symbol(true);
        space.replace(s, Form::symbol(quotient).times(&number(by))?.plus(&remainder, 1)?);
        remainders.push((quotient, remainder.symbol_alone()?));
    }
    let unknown = known..space.symbols();
    let mut equations = digits(&element, x, strides, digits_of, &unknown);
    while !equations.is_empty() {
        // The one with the fewest unknowns.
        let mut counts = Vec::new();
        for (e, x) in &mut equations {
            (*e, *x) = (space.current(e)?, space.current(x)?);
            let open: FxHashSet<Sym> = e.symbols().filter(|s| unknown.contains(&s.0)).collect();
            counts.push(open.len());
        }
        let at = (0..equations.len()).min_by_key(|n| counts[*n])?;
        match next(&mut space, &equations[at].0, &equations[at].1, &unknown)? {
            Some((s, by)) => space.replace(s, by),
            None => {
                equations.swap_remove(at);
            }
        }
    }
    // What only its quotient decides.
    for (q, remainder) in remainders {
        let (now, alone) = (space.current(&Form::symbol(q))?, Form::symbol(remainder));
        if space.current(&alone)? == alone && !has_any(&now, &unknown) {
            space.replace(remainder, number(0));
        }
    }
    for (q, (of, by)) in open.divided_symbols() {
        let (Some(s), true) = (of.symbol_alone(), unknown.contains(&q.0)) else { continue };
        let (now, alone) = (space.current(&Form::symbol(q))?, Form::symbol(s));
        if unknown.contains(&s.0) && space.current(&alone)? == alone && !has_any(&now, &unknown) {
            space.replace(s, now.times(by)?);
        }
    }
    let mut choice = Choice { indices: rest.indices.clone(), last, ..Choice::default() };
    for (index, s) in free {
        let form = space.current(&s)?;
        match has_any(&form, &unknown) {
            true => choice.free = true,
            false => drop(choice.indices.insert(index, form)),
        }
    }
    for point in points {
        let form = space.current(&point)?;
        choice.axes.push(if has_any(&form, &unknown) { number(0) } else { form });
    }
    for (var, turns) in open.turns(side) {
        let form = space.current(&Form::symbol(turns))?;
        choice.turns.insert(var, if has_any(&form, &unknown) { number(0) } else { form });
    }
    Some((space, choice))
}

/// Unknown indices that are divided by numbers: each with its quotient, which may be divided further.
fn divided(space: &Space<'_, '_>, unknown: &Range<u32>) -> Vec<(Sym, Sym, i64)> {
    let divided = space.divided_symbols().filter_map(|(q, (of, by))| Some((of.symbol_alone()?, by.number()?, q)));
    let mut divided: Vec<_> = divided.filter(|(s, _, q)| unknown.contains(&s.0) && unknown.contains(&q.0)).collect();
    divided.sort_unstable();
    let mut out: Vec<(Sym, Sym, i64)> = Vec::new();
    // The last one of each index, and how much it is divided by there.
    let mut last: FxHashMap<Sym, (Sym, i64)> = FxHashMap::default();
    for (s, by, q) in divided {
        let (of, so_far) = last.get(&s).copied().unwrap_or((s, 1));
        if by % so_far == 0 && by > so_far && out.iter().all(|(known, ..)| *known != of) {
            out.push((of, q, by / so_far));
            last.insert(s, (q, by));
        }
    }
    out
}

fn has_any(form: &Form, symbols: &Range<u32>) -> bool {
    form.symbols().any(|s| symbols.contains(&s.0))
}

/// The extents of a store's axes.
fn axes(store: &TensorAccess<'_>) -> Vec<Value> {
    match &store.place {
        AccessedElements::Element(_) => Vec::new(),
        AccessedElements::Window(view) | AccessedElements::Within(view) => view.shape.clone(),
        AccessedElements::Nest(nest) => nest.extents.clone(),
    }
}

/// The number of the element at a point of a store, before a swizzle.
fn place<'k>(space: &mut Space<'k, '_>, side: BlockMoment, store: &TensorAccess<'k>, points: &[Form]) -> Option<Form> {
    match &store.place {
        AccessedElements::Element(at) => Some(space.value(side, *at)),
        AccessedElements::Window(view) | AccessedElements::Within(view) => {
            let mut sum = space.value(side, view.offset);
            for (point, &stride) in points.iter().zip(&view.strides) {
                let by = space.value(side, stride);
                sum = sum.plus(&point.times(&by)?, 1)?;
            }
            Some(sum)
        }
        AccessedElements::Nest(nest) => along(space, side, nest.at, points),
    }
}

/// Pairs of digits, which are to be equal.
fn digits(e: &Form, x: &Form, strides: &[Stride], which: Digits, unknown: &Range<u32>) -> Vec<(Form, Form)> {
    let (mut e, mut x) = (e.clone(), x.clone());
    let mut out = Vec::new();
    let mut unit = Stride { factors: Vec::new(), count: 1 };
    for stride in strides {
        let Some(by) = unit.within(stride).filter(|by| !(by.factors.is_empty() && by.count == 1)) else { continue };
        let (Some(own), Some((xq, xr))) = (by.split(&e), by.split(&x)) else { continue };
        let (eq, er) = from_above(&by, own);
        let moves = |factors: &[Sym], k: i64| {
            let launch: Vec<Sym> = factors.iter().copied().filter(|s| !unknown.contains(&s.0)).collect();
            launch.len() < factors.len() && launch == by.factors && k == by.count
        };
        let taken = match which {
            Digits::Own => e.terms().iter().any(|(factors, k)| moves(factors, *k)),
            Digits::All => eq == xq || eq.number().is_none(),
            Digits::One => false,
        };
        if !taken {
            continue;
        }
        out.push((er, xr));
        (e, x, unit) = (eq, xq, stride.clone());
    }
    out.push((e, x));
    out
}

/// An unknown of `e = x`, and what it should be: of several the one that counts most, rounded down.
/// Nothing if there is none; `None`: it is too much.
#[allow(clippy::type_complexity)]
fn next(space: &mut Space<'_, '_>, e: &Form, x: &Form, unknown: &Range<u32>) -> Option<Option<(Sym, Form)>> {
    let mut terms: Vec<(Sym, Stride, i64)> = Vec::new();
    let mut rest = x.plus(e, -1)?;
    for (factors, k) in e.terms() {
        let (open, by): (Vec<Sym>, Vec<Sym>) = factors.iter().copied().partition(|s| unknown.contains(&s.0));
        match open[..] {
            [] => {}
            [s] => {
                rest = rest.plus(&Form::sum_of(vec![(factors.clone(), *k)])?, 1)?;
                terms.push((s, Stride { factors: by, count: k.checked_abs()? }, k.signum()));
            }
            _ => return None,
        }
    }
    // What is left counts as the index does, or the other way.
    let mixed = terms.iter().any(|t| t.2 > 0);
    let several = terms.len() > 1 && mixed;
    // Of equals the outermost index.
    let key = |t: &(Sym, Stride, i64)| (t.1.factors.len(), t.1.count, t.1.factors.clone(), std::cmp::Reverse(t.0));
    let most = terms.into_iter().max_by_key(key);
    let Some((s, by, sign)) = most else { return Some(None) };
    let unit = by.form();
    let whole = match (sign > 0, several) {
        (true, _) => rest,
        (false, false) => number(0).plus(&rest, -1)?,
        // Rounded up: what is left counts upwards.
        (false, true) => unit.plus(&number(1), -1)?.plus(&rest, -1)?,
    };
    let q = if unit.number() == Some(1) { whole } else { space.quotient(&whole, &unit)? };
    Some(Some((s, q)))
}

/// What a proof gives.
struct Verified<'k, 'a> {
    /// The cases that are left; `None`: this is no choice.
    rests: Option<Vec<Rest<'k, 'a>>>,
    why: Why,
}

/// Verifies that the store writes the element with these indices.
fn verify<'k, 'a>(
    rest: &Rest<'k, 'a>,
    space: &mut Space<'k, 'a>,
    x: &Form,
    store: &TensorAccess<'k>,
    choice: &Choice,
) -> Verified<'k, 'a> {
    let mut proof = Proof { rest, rests: Vec::new(), indices: rest.indices.clone(), turned: false, why: Why::Windows };
    let done = proof.run(space, x, store, choice);
    let few = proof.rests.len() <= RESTS;
    Verified { rests: done.filter(|()| few).map(|()| proof.rests), why: proof.why }
}

struct Proof<'r, 'k, 'a> {
    rest: &'r Rest<'k, 'a>,
    rests: Vec<Rest<'k, 'a>>,
    indices: FxHashMap<Value, Form>,
    /// Iterations of a `while` are chosen too.
    turned: bool,
    why: Why,
}

impl<'k, 'a> Proof<'_, 'k, 'a> {
    fn run(&mut self, space: &mut Space<'k, 'a>, x: &Form, store: &TensorAccess<'k>, choice: &Choice) -> Option<()> {
        let side = space.side();
        let kernel = space.code.kernel;
        for (&var, turns) in &choice.turns {
            space.count(side, var, turns.clone());
        }
        for dim in &kernel.grid {
            let extent = space.value(LAUNCH, dim.extent);
            self.index(space, side, dim.index, (&number(0), &extent), choice)?;
        }
        for fact in store.facts.list() {
            match fact {
                Fact::Loop(f) => {
                    let (lo, hi) = (space.value(side, f.lo), space.value(side, f.hi));
                    self.index(space, side, f.index, (&lo, &hi), choice)?;
                }
                Fact::Checked(cond) => space.assume(side, cond, true),
                Fact::Turn(w, inside) => self.turn(space, side, w, choice).filter(|()| inside)?,
                Fact::Branch(i, then, span) => self.branch(space, side, i, then, span)?,
            }
        }
        for (extent, at) in axes(store).into_iter().zip(&choice.axes) {
            let extent = space.value(side, extent);
            self.inside(space, at, (&number(0), &extent))?;
        }
        if let AccessedElements::Nest(nest) = &store.place {
            let stored = kernel.tensors[store.tensor].stored.as_ref().and_then(|s| s.swizzle);
            let own = ptoc_ir::tile::Elem::Whole(kernel.tensors[store.tensor].dtype);
            if nest.swizzle != stored || nest.elem.bits() != own.bits() {
                return None;
            }
            for guard in nest.guards {
                let (at, bound) = (along(space, side, &guard.at, &choice.axes)?, space.value(side, guard.bound));
                self.need(space, Claim::Least(bound.plus(&at, -1)?.plus(&number(1), -1)?));
            }
        } else if kernel.tensors[store.tensor].stored.as_ref().is_some_and(|s| s.swizzle.is_some()) {
            return None;
        }
        let element = place(space, side, store, &choice.axes)?;
        let off = element.plus(x, -1)?;
        if space.proves(&Claim::Zero(off.clone())) {
            return Some(());
        }
        // Other elements are another store's, if this one writes any that is like them.
        let claims = [off.clone(), number(0).plus(&off, -1)?].map(|f| f.plus(&number(1), -1).map(Claim::Least));
        let [Some(above), Some(below)] = claims else { return None };
        if space.refutes(&[Claim::Zero(off)]) {
            return None;
        }
        for claim in [above, below] {
            if !space.refutes(std::slice::from_ref(&claim)) {
                let mut other = space.clone();
                other.fact(claim);
                self.left(other, None);
            }
        }
        Some(())
    }

    /// An index is what is chosen for it, or the first or last.
    fn index(
        &mut self,
        space: &mut Space<'k, 'a>,
        side: BlockMoment,
        index: Value,
        (lo, hi): (&Form, &Form),
        choice: &Choice,
    ) -> Option<()> {
        let at = match choice.indices.get(&index) {
            Some(form) => form.clone(),
            None if choice.last => hi.plus(&number(1), -1)?,
            None => lo.clone(),
        };
        self.inside(space, &at, (lo, hi))?;
        self.indices.insert(index, at.clone());
        space.set(side, index, at);
        Some(())
    }

    fn inside(&mut self, space: &mut Space<'k, 'a>, at: &Form, (lo, hi): (&Form, &Form)) -> Option<()> {
        self.need(space, Claim::Least(at.plus(lo, -1)?));
        self.need(space, Claim::Least(hi.plus(at, -1)?.plus(&number(1), -1)?));
        Some(())
    }

    /// Where it does not hold is left; from here on it holds.
    fn need(&mut self, space: &mut Space<'k, 'a>, claim: Claim) {
        if space.proves(&claim) {
            return;
        }
        let mut other = space.clone();
        if let Some(against) = number(-1).plus(claim.form(), -1) {
            other.fact(Claim::Least(against));
        }
        self.left(other, None);
        space.fact(claim);
    }

    fn left(&mut self, space: Space<'k, 'a>, opaque: Option<(&'k If, bool)>) {
        let mut all = self.rest.opaque.clone();
        all.extend(opaque);
        // Only what is not understood ties other stores to these indices.
        let indices = if all.is_empty() { FxHashMap::default() } else { self.indices.clone() };
        self.rests.push(Rest { space, opaque: all, indices });
    }

    fn branch(
        &mut self,
        space: &mut Space<'k, 'a>,
        side: BlockMoment,
        i: &'k If,
        then: bool,
        span: Span,
    ) -> Option<()> {
        if let Some((_, way)) = self.rest.opaque.iter().find(|(known, _)| std::ptr::eq(*known, i)) {
            return (*way == then).then_some(());
        }
        let against = match space.is_whole(i.cond) {
            true => space.ways(side, i.cond, !then),
            false => None,
        };
        match against {
            Some(ways) => {
                for way in ways.iter().filter(|way| !space.refutes(way)) {
                    self.why = Why::Branch(span);
                    let mut other = space.clone();
                    way.iter().cloned().for_each(|c| other.fact(c));
                    self.left(other, None);
                }
            }
            None if self.turned => return None,
            None => {
                self.why = Why::Branch(span);
                self.left(space.clone(), Some((i, !then)));
            }
        }
        space.assume(side, i.cond, then);
        Some(())
    }

    /// Iteration `turns` of a loop that counts up to something is reached if its condition holds there.
    fn turn(&mut self, space: &mut Space<'k, 'a>, side: BlockMoment, w: &'k While, choice: &Choice) -> Option<()> {
        self.turned = true;
        let Some(&Op::Compare { op, a, b, .. }) = space.code.defs.of(w.cond) else { return None };
        let (counted, bound) = match op {
            CmpOp::Lt | CmpOp::Le | CmpOp::Ne => (a, b),
            CmpOp::Gt | CmpOp::Ge => (b, a),
            CmpOp::Eq => return None,
        };
        let Some(&Op::Get { var, .. }) = space.code.defs.of(counted) else { return None };
        let counter = space.code.counters.get(&var).filter(|c| c.label == w.label && c.gets.contains(&counted))?;
        if !space.code.of_launch(bound) || op == CmpOp::Ne {
            return None;
        }
        let step = space.value(side, counter.step);
        if !space.proves(&Claim::Least(step.plus(&number(1), -1)?)) {
            return None;
        }
        let turns = choice.turns.get(&var).cloned().unwrap_or_default();
        self.need(space, Claim::Least(turns));
        let ways = space.ways(side, w.cond, true)?;
        let [claims] = &ways[..] else { return None };
        for claim in claims.clone() {
            self.need(space, claim);
        }
        Some(())
    }
}
