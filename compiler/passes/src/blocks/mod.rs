//! Elements that blocks of one launch share, decided at compile time.
//!
//! Blocks run in any order and at the same time. So an element of a tensor that one block writes must be no other block's (the
//! interpreter ends a run with PA-1013), and every element of an `out` tensor must be some block's (W0760). Bounds are decided
//! over the indices of the grid and of loops, and so is this: where an access lies is a polynomial (`space`), two blocks are
//! apart if the digits of their elements' numbers cannot all be equal (`disjoint`). What is not proved is tried: the index
//! computations of a kernel are gone through in numbers for some small sizes (`trial`). Only what such a launch shows is an error.

mod accesses;
mod bounded;
mod counters;
mod cover;
mod disjoint;
mod nests;
mod report;
mod sizes;
mod space;
mod trial;

use accesses::{Access, Kind};
use cover::Why;
use disjoint::Verdict;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, TensorDir, TensorId};
use ptoc_isa::Target;
use space::Code;
use std::cell::Cell;
use std::collections::BTreeMap;
use trial::{Outcome, Sizes};

/// Steps of the proofs of a kernel.
const PROOFS: u64 = 160_000;
/// Steps of all launches that are tried, and of one.
const TRIALS: (u64, u64) = (4_000_000, 1_000_000);
/// Launches of a kernel in which only the author says why blocks do not meet.
const VOUCHED: usize = 8;

/// Steps that are left.
#[derive(Debug)]
struct Budget(Cell<u64>);

impl Budget {
    fn new(steps: u64) -> Budget {
        Budget(Cell::new(steps))
    }

    /// False if they are spent.
    fn spend(&self, n: u64) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(n));
        left > n
    }

    fn left(&self) -> u64 {
        self.0.get()
    }
}

/// Two accesses that are not proved to be apart.
struct Doubt<'k> {
    tensor: TensorId,
    accesses: [Access<'k>; 2],
    /// Dimensions of the grid.
    dims: Vec<usize>,
}

/// An `out` tensor that may have elements that nothing writes.
struct Gap {
    tensor: TensorId,
    /// The store that is not proved to write what it should.
    span: Option<Span>,
    why: Why,
}

/// A launch that shows something.
struct Shown {
    sizes: Sizes,
    outcome: Outcome,
}

/// Races between blocks: errors where a launch shows one, warnings where none could be excluded. Elements of `out` tensors that
/// nothing writes: warnings where a launch shows some, and where it is not proved that there are none.
pub fn check(kernel: &Kernel, target: &Target) -> Vec<Diagnostic> {
    let code = Code::new(kernel);
    let accesses = accesses::collect(kernel);
    let budget = Budget::new(PROOFS);
    let doubts = doubts(&code, &accesses, &budget);
    let gaps = gaps(&code, &accesses, &budget);
    let nested = nests::doubts(&code, &accesses, &budget);
    // What the author vouches for is not proved; it may still be shown to be wrong.
    let vouched = kernel.tensors.iter().any(|(id, t)| t.disjoint && accesses::is_watched(kernel, id));
    if doubts.is_empty() && gaps.is_empty() && nested.is_empty() && !vouched {
        return Vec::new();
    }
    let shown = tried(&code, &|shown| {
        let any = |f: &dyn Fn(&Outcome) -> bool| shown.iter().any(|s| f(&s.outcome));
        let races = doubts.iter().all(|d| any(&|o| o.clashes.iter().any(|c| c.tensor == d.tensor)));
        let holes = gaps.iter().all(|g| any(&|o| o.holes.iter().any(|h| h.tensor == g.tensor)));
        let nests = nested.iter().all(|n| any(&|o| o.meetings.iter().any(|m| m.span == n.write.span)));
        // What only the author says is tried a few times.
        let open = doubts.len() + gaps.len() + nested.len();
        races && holes && nests && (open > 0 || shown.len() >= VOUCHED)
    });
    let mut out = report::races(&code, target, &doubts, &shown);
    out.extend(report::nests(&code, &nested, &shown));
    // Of a tensor in which blocks meet, more would distract.
    let raced: Vec<Span> = out.iter().filter(|d| d.code == codes::BLOCK_RACE).filter_map(|d| d.span).collect();
    let raced = |t: TensorId| accesses.iter().any(|a| a.tensor == t && raced.contains(&a.span));
    out.extend(report::holes(&code, &accesses, &gaps, &shown, &raced));
    out
}

/// The `out` tensors of which it is not proved that every element is written.
fn gaps<'k>(code: &Code<'k>, accesses: &[Access<'k>], budget: &Budget) -> Vec<Gap> {
    let mut out = Vec::new();
    for (tensor, data) in &code.kernel.tensors {
        if data.dir != TensorDir::Out || data.disjoint {
            continue;
        }
        let stores: Vec<&Access<'k>> =
            accesses.iter().filter(|a| a.tensor == tensor && a.kind == Kind::Write).collect();
        if let Err(found) = cover::cover(code, budget, tensor, &stores) {
            let span = found.and_then(|(n, _)| stores.get(n)).or(stores.first()).map(|s| s.span);
            out.push(Gap { tensor, span, why: found.map_or(Why::Windows, |(_, why)| why) });
        }
    }
    out
}

/// What is not proved, at most one pair for a tensor.
fn doubts<'k>(code: &Code<'k>, accesses: &[Access<'k>], budget: &Budget) -> Vec<Doubt<'k>> {
    let mut out: Vec<Doubt<'k>> = Vec::new();
    if code.kernel.grid.is_empty() {
        return out;
    }
    let mut by_tensor: BTreeMap<TensorId, Vec<&Access<'k>>> = BTreeMap::new();
    for a in accesses.iter().filter(|a| !code.kernel.tensors[a.tensor].disjoint) {
        by_tensor.entry(a.tensor).or_default().push(a);
    }
    for (tensor, own) in by_tensor {
        // A store with itself, each later store, and every other access.
        let stores = own.iter().enumerate().filter(|(_, a)| a.kind == Kind::Write);
        let mut pairs = stores.flat_map(|(n, a)| {
            let others = own.iter().enumerate().filter(move |(k, b)| *k >= n || b.kind != Kind::Write);
            others.map(move |(_, b)| (*a, *b))
        });
        let open = pairs.find_map(|(a, b)| match disjoint::meet(code, budget, a, b) {
            Verdict::Disjoint => None,
            Verdict::Open(dims) => Some((a, b, dims)),
        });
        if let Some((a, b, dims)) = open {
            // What is written is shown first.
            let mut pair = [a.clone(), b.clone()];
            pair.sort_by_key(|x| x.kind != Kind::Write);
            out.push(Doubt { tensor, accesses: pair, dims });
        }
    }
    out
}

/// Launches with some small sizes, until they show enough.
fn tried(code: &Code<'_>, enough: &dyn Fn(&[Shown]) -> bool) -> Vec<Shown> {
    let mut out = Vec::new();
    let mut left = TRIALS.0;
    for sizes in sizes::candidates(code) {
        if left == 0 || enough(&out) {
            break;
        }
        let budget = Budget::new(left.min(TRIALS.1));
        let before = budget.left();
        let sizes = trial::adjusted(code.kernel, sizes, &budget);
        let outcome = trial::run(code.kernel, &sizes, &budget);
        left = left.saturating_sub(before - budget.left());
        let Some(outcome) = outcome else { continue };
        out.push(Shown { sizes, outcome });
    }
    out
}
