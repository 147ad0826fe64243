//! Races between blocks: elements that blocks of one launch share, decided at compile time.
//!
//! Blocks run in any order and at the same time. So an element of a tensor that one block writes must be no other
//! block's, one that a block updates atomically no other block may read plainly (the interpreter ends a run with
//! PA-1013), and every element of an `out` tensor must be some block's (W0760). Bounds are decided over the indices of
//! the grid and of loops, and so is this: where an access lies is a polynomial (`space`), two blocks are apart if the
//! digits of their elements' numbers cannot all be equal (`disjoint`). What is not proved is tried: the index
//! computations of a kernel are gone through in numbers for some small sizes (`trial`). Only what such a launch shows
//! is an error.

mod accesses;
mod bounded;
mod budget;
mod counters;
mod cover;
mod disjoint;
mod filled;
mod nests;
mod report;
mod sizes;
mod space;
mod trial;

use accesses::{AccessKind, TensorAccess};
use budget::Steps;
use cover::Why;
use disjoint::Verdict;
use ptoc_diagnostics::{Account, Analysis, Budget, Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, TensorDir, TensorId};
use ptoc_isa::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use space::KernelIndex;
use std::collections::BTreeMap;
use trial::{Sizes, TrialOutcome};

/// Launches of a kernel in which only the author says why blocks do not meet.
const VOUCHED: usize = 8;

/// Two accesses that are not proved to be apart.
struct Doubt<'k> {
    tensor: TensorId,
    accesses: [TensorAccess<'k>; 2],
    /// Dimensions of the grid.
    dims: Vec<usize>,
    /// There were no steps left to prove it.
    spent: bool,
}

/// An `out` tensor that may have elements that nothing writes.
struct Gap {
    tensor: TensorId,
    /// The store that is not proved to write what it should.
    span: Option<Span>,
    why: Why,
    /// There were no steps left to prove it.
    spent: bool,
}

/// What launches have shown.
#[derive(Default)]
struct Found {
    clashes: FxHashSet<TensorId>,
    holes: FxHashSet<TensorId>,
    meetings: FxHashSet<Span>,
}

/// A launch that shows something.
struct Shown {
    sizes: Sizes,
    outcome: TrialOutcome,
}

/// Races between blocks: errors where a launch shows one, warnings where none could be excluded. Elements of `out`
/// tensors that nothing writes: warnings where a launch shows some, and where it is not proved that there are none.
/// What there are no steps of `all` left for is said in its one warning.
pub fn check(kernel: &Kernel, target: &Target, all: &Budget) -> Vec<Diagnostic> {
    let code = KernelIndex::new(kernel);
    let accesses = accesses::collect(kernel);
    let account = all.account(Analysis::Blocks);
    let budget = Steps::of_proofs(account);
    let distinct = accesses::distinct(&accesses);
    let doubts = doubts(&code, &distinct, &budget);
    let gaps = gaps(&code, &distinct, &budget);
    let nested = nests::doubts(&code, &distinct, &budget);
    if budget.skipped() {
        account.give_up();
    }
    // What the author vouches for is not proved; it may still be shown to be wrong.
    let vouched = kernel.tensors.iter().any(|(id, t)| t.disjoint && accesses::is_watched(kernel, id));
    if doubts.is_empty() && gaps.is_empty() && nested.is_empty() && !vouched {
        return Vec::new();
    }
    let shown = tried(&code, account, &|launches, found| {
        let races = doubts.iter().all(|d| found.clashes.contains(&d.tensor));
        let holes = gaps.iter().all(|g| found.holes.contains(&g.tensor));
        let nests = nested.iter().all(|n| found.meetings.contains(&n.write.span));
        // What only the author says is tried a few times.
        let open = doubts.len() + gaps.len() + nested.len();
        races && holes && nests && (open > 0 || launches >= VOUCHED)
    });
    let (mut doubts, mut gaps) = (doubts, gaps);
    // The only launch that there is shows all, unless data decide over it.
    if let (true, true, [only, ..]) = (kernel.dims.is_empty(), kernel.scalars.is_empty(), &shown[..]) {
        let of = &only.outcome;
        doubts.retain(|d| !of.sees(d.tensor) || of.clashes.iter().any(|c| c.tensor == d.tensor));
        gaps.retain(|g| !of.sees(g.tensor) || of.holes.iter().any(|h| h.tensor == g.tensor));
    }
    let mut out = report::races(&code, target, &doubts, &shown);
    out.extend(report::nests(&code, &nested, &shown));
    // Of a tensor in which blocks meet, more would distract.
    let raced: FxHashSet<Span> = out.iter().filter(|d| d.code == codes::BLOCK_RACE).filter_map(|d| d.span).collect();
    let raced: FxHashSet<TensorId> = accesses.iter().filter(|a| raced.contains(&a.span)).map(|a| a.tensor).collect();
    let raced = |t: TensorId| raced.contains(&t);
    out.extend(report::holes(&code, &accesses, &gaps, &shown, &raced));
    out
}

/// Races that a launch of these sizes shows, as far as its indices can be computed without data.
pub fn in_launch(
    kernel: &Kernel,
    target: &Target,
    dims: &[i64],
    scalars: &[Option<u64>],
    all: &Budget,
) -> Vec<Diagnostic> {
    let sizes = Sizes { dims: dims.to_vec(), scalars: scalars.to_vec() };
    let steps = Steps::of_trials(all.account(Analysis::Blocks));
    let Some(outcome) = trial::run(kernel, &sizes, &steps.of_one_trial()) else { return Vec::new() };
    report::races(&KernelIndex::new(kernel), target, &[], &[Shown { sizes, outcome }])
}

/// The note of a race that is shown by other sizes than those of the launch.
pub fn elsewhere(kernel: &Kernel, dims: &[i64], scalars: &[Option<u64>]) -> String {
    let sizes = Sizes { dims: dims.to_vec(), scalars: scalars.to_vec() };
    format!("this launch has {}; which sizes there are, `where` says", report::sizes(kernel, &sizes))
}

/// Whether the kernel reads elements of the tensor.
pub fn reads(kernel: &Kernel, tensor: TensorId) -> bool {
    kernel.tensors[tensor].dir == TensorDir::In
        || accesses::collect(kernel).iter().any(|a| a.tensor == tensor && a.kind != AccessKind::Write)
}

/// For each `out` and `inout` tensor: which elements a launch with these dimensions and scalars writes for certain, in
/// the order of its buffer. `None`: it takes too many steps, or data decide whether it goes to its end.
pub fn written(
    kernel: &Kernel,
    dims: &[i64],
    scalars: &[Option<u64>],
    all: &Budget,
) -> Option<FxHashMap<TensorId, Vec<bool>>> {
    let sizes = Sizes { dims: dims.to_vec(), scalars: scalars.to_vec() };
    let steps = Steps::of_trials(all.account(Analysis::Blocks));
    trial::written(kernel, &sizes, &steps.of_one_trial())
}

/// The `out` tensors of which a launch may leave elements unwritten: the windows of their stores do not show that it
/// fills them ([`filled`]), and it is not proved.
pub fn unfilled(kernel: &Kernel, all: &Budget) -> Vec<TensorId> {
    let mut open = filled::unfilled(kernel);
    if open.is_empty() {
        return open;
    }
    let code = KernelIndex::new(kernel);
    let accesses = accesses::collect(kernel);
    let distinct = accesses::distinct(&accesses);
    let budget = Steps::of_proofs(all.account(Analysis::Blocks));
    open.retain(|&tensor| {
        let stores: Vec<_> = distinct.iter().filter(|a| a.kind == AccessKind::Write && a.tensor == tensor).collect();
        let asked = !kernel.tensors[tensor].disjoint && budget.begin();
        !(asked && cover::cover(&code, &budget, tensor, &stores).is_ok() && budget.answered())
    });
    open
}

/// The `out` tensors of which it is not proved that every element is written.
fn gaps<'k>(code: &KernelIndex<'k>, accesses: &[TensorAccess<'k>], budget: &Steps<'_>) -> Vec<Gap> {
    let mut out = Vec::new();
    let mut writes: BTreeMap<TensorId, Vec<&TensorAccess<'k>>> = BTreeMap::new();
    for a in accesses.iter().filter(|a| a.kind == AccessKind::Write) {
        writes.entry(a.tensor).or_default().push(a);
    }
    for (tensor, data) in &code.kernel.tensors {
        if data.dir != TensorDir::Out || data.disjoint {
            continue;
        }
        if !budget.begin() {
            break;
        }
        let stores = writes.remove(&tensor).unwrap_or_default();
        let found = cover::cover(code, budget, tensor, &stores);
        if !budget.answered() {
            break;
        }
        if let Err(found) = found {
            let span = found.and_then(|(n, _)| stores.get(n)).or(stores.first()).map(|s| s.span);
            out.push(Gap { tensor, span, why: found.map_or(Why::Windows, |(_, why)| why), spent: budget.are_spent() });
        }
    }
    out
}

/// What is not proved, at most one pair for a tensor.
fn doubts<'k>(code: &KernelIndex<'k>, accesses: &[TensorAccess<'k>], budget: &Steps<'_>) -> Vec<Doubt<'k>> {
    let mut out: Vec<Doubt<'k>> = Vec::new();
    if code.kernel.grid.is_empty() {
        return out;
    }
    let mut by_tensor: BTreeMap<TensorId, Vec<&TensorAccess<'k>>> = BTreeMap::new();
    for a in accesses.iter().filter(|a| !code.kernel.tensors[a.tensor].disjoint) {
        by_tensor.entry(a.tensor).or_default().push(a);
    }
    for (tensor, own) in by_tensor {
        if !budget.begin() {
            break;
        }
        // A store with itself, each later store, and every other access; then an atomic update with each read.
        let own = &own;
        let pairs = |kind: AccessKind| {
            let firsts = own.iter().enumerate().filter(move |(_, a)| a.kind == kind);
            firsts.flat_map(move |(n, a)| {
                let others = own.iter().enumerate();
                let others =
                    others.filter(move |(k, b)| a.kind.races_with(b.kind) && (*k >= n || b.kind != AccessKind::Write));
                others.map(move |(_, b)| (*a, *b))
            })
        };
        let mut pairs =
            pairs(AccessKind::Write).chain(pairs(AccessKind::Atomic).filter(|(_, b)| b.kind == AccessKind::Read));
        let open = pairs.find_map(|(a, b)| match disjoint::meet(code, budget, a, b) {
            Verdict::Disjoint => None,
            Verdict::Open(dims) => Some((a, b, dims)),
        });
        if !budget.answered() {
            break;
        }
        if let Some((a, b, dims)) = open {
            // What is written is shown first, as the pairs have it.
            out.push(Doubt { tensor, accesses: [a.clone(), b.clone()], dims, spent: budget.are_spent() });
        }
    }
    out
}

/// Launches with some small sizes, until they show enough.
fn tried(code: &KernelIndex<'_>, account: Account<'_>, enough: &dyn Fn(usize, &Found) -> bool) -> Vec<Shown> {
    let (mut out, mut found) = (Vec::new(), Found::default());
    let all = Steps::of_trials(account);
    for sizes in sizes::candidates(code) {
        if all.are_spent() || enough(out.len(), &found) {
            break;
        }
        let budget = all.of_one_trial();
        let sizes = trial::adjusted(code.kernel, sizes, &budget);
        let outcome = trial::run(code.kernel, &sizes, &budget);
        all.settle(&budget);
        let Some(outcome) = outcome else { continue };
        found.clashes.extend(outcome.clashes.iter().map(|c| c.tensor));
        found.holes.extend(outcome.holes.iter().map(|h| h.tensor));
        found.meetings.extend(outcome.meetings.iter().map(|m| m.span));
        out.push(Shown { sizes, outcome });
    }
    out
}
