//! The verifier: an access that has neither a proof nor a check is refused.
//!
//! It knows nothing of the pass that came before. A check counts if its condition says what is needed, or if it is, but
//! for the names of values, the code of a check for this very claim, and nothing between it and the access can change
//! what it has tested. What intervals of variables decide ([`ptoc_ir::analysis::ranges`]) is decided again: a check is
//! tried, and has to be superfluous.

use super::check::Checks;
use super::claim::Bound;
use super::{Effort, Open, find};
use cranelift_entity::EntityRef;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{CheckId, Const, Kernel, Label, Op, Region, Stmt, Value};
use ptoc_isa::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Refuses a kernel with an access that neither follows from what is known there nor stands behind a check.
///
/// # Errors
/// An E0819 for each, with the span of its statement.
pub fn verify(kernel: &Kernel, target: &Target) -> Result<(), Vec<Diagnostic>> {
    // Most accesses are proved in few steps, or have a check. Where one has neither, all proofs get what one may take,
    // and then more: checks for other accesses are facts that lead astray.
    let mut left = Vec::new();
    for effort in [Effort::Little, Effort::Full, Effort::Ample] {
        let (open, _) = find(kernel, target, effort);
        left = if open.is_empty() { open } else { unchecked(kernel, &open) };
        if left.is_empty() {
            return Ok(());
        }
    }
    let decided = decided(kernel, &left);
    let refused = left.iter().zip(decided).filter(|(_, decided)| !decided);
    let errors: Vec<_> = refused
        .map(|((_, span, bound), _)| {
            let message = format!("neither proved nor checked: {}", bound.what.text(kernel));
            Diagnostic::error(codes::IR_ACCESS_UNPROVED, *span, message)
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// For each of these, whether its check would be one that intervals of variables prove.
fn decided(kernel: &Kernel, open: &[Open]) -> Vec<bool> {
    if open.is_empty() {
        return Vec::new();
    }
    let mut tried = kernel.clone();
    let first = tried.checks.len();
    let mut checks = Checks::new(&mut tried);
    checks.insert(open);
    checks.finish();
    let proved: FxHashSet<CheckId> =
        ptoc_ir::analysis::ranges::settle_from(&mut tried, CheckId::new(first)).into_iter().collect();
    // They are made in the order of the walk.
    (0..open.len()).map(|k| proved.contains(&CheckId::new(first + k))).collect()
}

/// Those of `open` for which there is no check.
fn unchecked(kernel: &Kernel, open: &[Open]) -> Vec<Open> {
    let mut scratch = kernel.clone();
    let mut checks = Checks::new(&mut scratch);
    let mut code = |bound: &Bound| {
        let mut out = Region::new();
        checks.check(bound, Span::default(), &mut out);
        out
    };
    let wanted: Vec<Region> = open.iter().map(|o| code(&o.2)).collect();
    let mut numbers = checks.numbers();
    numbers.extend(kernel.prologue.iter().filter_map(|s| match s.op {
        Op::Const { dst, value } => Const::as_index(value).map(|n| (dst, n)),
        _ => None,
    }));
    let mut search =
        Search { kernel, scratch: &scratch, numbers, open, wanted, found: FxHashSet::default(), own: Vec::new() };
    search.region(&kernel.body, &mut 0);
    let inside = |at: usize| search.own.iter().any(|r| r.contains(&at));
    let left = open.iter().enumerate().filter(|(k, o)| !search.found.contains(k) && !inside(o.0));
    left.map(|(_, o)| o.clone()).collect()
}

/// The search for the code of checks.
struct Search<'k> {
    kernel: &'k Kernel,
    /// The kernel with the values and labels of the code that is looked for.
    scratch: &'k Kernel,
    /// Constants of both.
    numbers: FxHashMap<Value, i64>,
    open: &'k [Open],
    /// The code of a check, for each of `open`.
    wanted: Vec<Region>,
    /// Whose checks were found.
    found: FxHashSet<usize>,
    /// Statements of checks, by their numbers in a walk: what they look up is checked as the access itself is.
    own: Vec<Range<usize>>,
}

impl Search<'_> {
    fn region(&mut self, region: &Region, at: &mut usize) {
        let mut starts = Vec::with_capacity(region.len());
        for (n, stmt) in region.iter().enumerate() {
            starts.push(*at);
            let first = self.open.partition_point(|o| o.0 < *at);
            for k in (first..self.open.len()).take_while(|k| self.open[*k].0 == *at) {
                if let Some(code) = self.before(&region[..n], k) {
                    self.found.insert(k);
                    self.own.push(starts[code.start]..starts[code.end]);
                }
            }
            *at += 1;
            stmt.op.regions().for_each(|r| self.region(r, at));
        }
    }

    /// Where among these statements the check of a bound is.
    fn before(&self, region: &[Stmt], k: usize) -> Option<Range<usize>> {
        let wanted = &self.wanted[k];
        let first = region.len() - region.iter().rev().take_while(|s| is_quiet(s)).count();
        let last = region.len().checked_sub(wanted.len())?;
        (first..=last).rev().map(|n| n..n + wanted.len()).find(|code| {
            let mut same = Same { search: self, values: FxHashMap::default(), labels: FxHashMap::default() };
            same.region(wanted, &region[code.clone()])
        })
    }
}

/// Whether it leaves everything as it is that a check may have looked at.
fn is_quiet(stmt: &Stmt) -> bool {
    let own = stmt.op.is_pure()
        || matches!(
            stmt.op,
            Op::Load { .. } | Op::Get { .. } | Op::Check { .. } | Op::For(_) | Op::If(_) | Op::Scope(_) | Op::Leave(_)
        );
    own && stmt.op.regions().flatten().all(is_quiet)
}

/// Code that is the same but for the names of what it defines.
struct Same<'s> {
    search: &'s Search<'s>,
    /// What a value of the wanted code is in the kernel.
    values: FxHashMap<Value, Value>,
    labels: FxHashMap<Label, Label>,
}

impl Same<'_> {
    fn region(&mut self, wanted: &[Stmt], found: &[Stmt]) -> bool {
        wanted.len() == found.len() && wanted.iter().zip(found).all(|(w, f)| self.op(&w.op, &f.op))
    }

    fn op(&mut self, wanted: &Op, found: &Op) -> bool {
        let same = match (wanted, found) {
            (Op::Unary { op: x, a, .. }, Op::Unary { op: y, a: b, .. }) => x == y && self.value(*a, *b),
            (Op::Binary { op: x, a, b, .. }, Op::Binary { op: y, a: c, b: d, .. }) => {
                x == y && self.two((*a, *b), (*c, *d))
            }
            (Op::Compare { op: x, a, b, .. }, Op::Compare { op: y, a: c, b: d, .. }) => {
                x == y && self.two((*a, *b), (*c, *d))
            }
            (Op::Select { cond: x, a, b, .. }, Op::Select { cond: y, a: c, b: d, .. }) => {
                self.value(*x, *y) && self.two((*a, *b), (*c, *d))
            }
            (Op::Convert { a, round: x, saturate: s, .. }, Op::Convert { a: b, round: y, saturate: t, .. }) => {
                x == y && s == t && self.value(*a, *b)
            }
            (Op::Load { tensor: x, offset: a, .. }, Op::Load { tensor: y, offset: b, .. }) => {
                x == y && self.value(*a, *b)
            }
            (Op::Check { cond: a, check: x, .. }, Op::Check { cond: b, check: y, .. }) => {
                let (x, y) = (&self.search.scratch.checks[*x], &self.search.kernel.checks[*y]);
                x.code == y.code && x.message == y.message && self.value(*a, *b)
            }
            (Op::For(w), Op::For(f)) => {
                self.values.insert(w.index, f.index);
                self.labels.insert(w.label, f.label);
                self.two((w.lo, w.hi), (f.lo, f.hi)) && self.region(&w.body, &f.body)
            }
            (Op::If(w), Op::If(f)) => {
                self.value(w.cond, f.cond) && self.region(&w.then, &f.then) && self.region(&w.els, &f.els)
            }
            (Op::Scope(w), Op::Scope(f)) => {
                self.labels.insert(w.label, f.label);
                w.role == f.role && self.region(&w.body, &f.body)
            }
            (Op::Leave(w), Op::Leave(f)) => self.labels.get(w) == Some(f),
            _ => false,
        };
        if let (Some(w), Some(f)) = (wanted.def(), found.def()) {
            self.values.insert(w, f);
            return same && self.search.scratch.values[w].ty == self.search.kernel.values[f].ty;
        }
        same
    }

    fn two(&self, wanted: (Value, Value), found: (Value, Value)) -> bool {
        self.value(wanted.0, found.0) && self.value(wanted.1, found.1)
    }

    fn value(&self, wanted: Value, found: Value) -> bool {
        let number = |v| self.search.numbers.get(&v);
        match self.values.get(&wanted) {
            Some(v) => *v == found,
            None => wanted == found || number(wanted).is_some_and(|n| number(found) == Some(n)),
        }
    }
}
