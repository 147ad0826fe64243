//! Hazards, decided at compile time. Two accesses of common bytes, one of them a write, must be ordered by flags,
//! barriers or the pipe that they share; every flag that is raised must meet one wait; no wait may be for ever.
//!
//! The block is walked through in program order, every way (`walk`). A legal execution runs each pipe of each role in
//! that order, and pipes at the same time. So the walk needs no interleavings: it keeps, for each access, which pipes
//! are ordered after it (`order`), and an access on a pipe that is not is a hazard. Because each flag has one pipe that
//! raises it and one that waits, and pipes are queues, a walk that finds every flag as its operations want it shows
//! that every legal execution does, and with the same raising for each wait.
//!
//! Scalars are followed as far as they decide where an access is, which element of an event is meant, or which way
//! control goes (`code`, `domain`, `state`). Loops end where a state comes again (`loops`). What is not known forks the
//! walk; what it finds after assumptions that may not hold together, or on bytes that are not known, is a warning that
//! says so.
//!
//! The interpreter finds hazards by vector clocks while it runs. Nothing is shared with it: tests hold one against the
//! other.

#![forbid(unsafe_code)]

mod accesses;
mod bytes;
mod code;
mod cross_role;
mod domain;
mod entry_state;
mod events;
mod faults;
mod find;
mod flat;
mod global;
mod interpreter;
mod loops;
mod order;
mod phases;
mod places;
mod poly;
mod relations;
mod relevance;
mod repair;
mod report;
mod reported;
mod retype;
mod state;
mod text;
mod touch;
mod values;
mod whiles;
mod witness;

use code::HazardProgram;
use find::{Finding, Key};
use interpreter::{GivenUp, HazardInterpreter};
use ptoc_checks::capacity::{FixContext, NoSource};
use ptoc_diagnostics::{Account, Analysis, Budget, Diagnostic};
use ptoc_ir::tile::{Kernel, SyncMode};
use ptoc_isa::Target;
use reported::Told;
use rustc_hash::FxHashSet;
use std::cell::OnceCell;

/// Mistakes that are told at once; the first are the ones to mend.
const TOLD: usize = 6;
/// Steps that a change to be tried costs beside its walk.
const TRIAL: usize = 2_000;

/// The hazards of a physical kernel whose pipes the author or the compiler has ordered: errors where an execution shows
/// one, warnings where none could be excluded. One without order (`SyncMode::Auto`) has none to speak of.
pub fn check(kernel: &Kernel, target: &Target) -> Vec<Diagnostic> {
    let budget = Budget::default();
    let mut out = check_of(kernel, target, &NoSource, &budget);
    out.extend(budget.warning(&kernel.name, kernel.span));
    out
}

/// As [`check`], with someone who knows the source: repairs then say where they go. What is not decided with the steps
/// of `budget` is noted there.
pub fn check_of(kernel: &Kernel, target: &Target, author: &dyn FixContext, budget: &Budget) -> Vec<Diagnostic> {
    if kernel.sync == SyncMode::Auto {
        return Vec::new();
    }
    let kernel = &*entry_state::from_zero(kernel);
    let account = budget.account(Analysis::Hazards);
    let (plain, stepwise) = (HazardProgram::new(kernel), OnceCell::new());
    let Some((walk, end)) = walked(kernel, target, &plain, &stepwise, account) else {
        account.give_up();
        return Vec::new();
    };
    let trial = account.of(Analysis::Repairs);
    let code = walk.code;
    let mut told = Told::default();
    let mut out: Vec<Diagnostic> = Vec::new();
    // What was told, and what is found when that is mended.
    let mut before: Vec<Finding> = Vec::new();
    let mut findings = walk.findings();
    let mut roles_told = false;
    while out.len() < TOLD {
        let shown = witness::confirm(code, target, &told, &mut findings, account);
        let Some(first) = first(&walk, &findings, &shown, out.iter().any(Diagnostic::is_error)) else { break };
        told.add(&walk, first);
        // What roles do in the wrong order is one mistake, whatever they wait for.
        let in_order = cross_role::below(&walk, first).is_none();
        roles_told |= !in_order;
        // What is left when this is mended is a mistake of its own.
        let Some(mut rest) = HazardInterpreter::new(code, target, trial) else { break };
        rest.told = told.clone();
        // As far as it is followed.
        let _ = rest.run();
        let left = rest.findings();
        let others: Vec<_> = before.iter().chain(&left).map(|f| repair::seen(&walk, f)).collect();
        let repair = if in_order { repair::find(&walk, first, &others, target, author, trial) } else { None };
        let open = in_order && repair.is_none();
        let retyped = if open { retype::find(&walk, first, &others, target, author, trial) } else { None };
        let tried = match in_order && repair.is_none() {
            true => repair::advice(&walk, first, &others, target, author, trial),
            false => None,
        };
        let diagnostic = match &retyped {
            Some(retyped) => retype::told(report::diagnostic(&walk, first, None, None), retyped),
            None => report::diagnostic(&walk, first, repair.as_ref(), tried),
        };
        let kept: FxHashSet<Key> = left.iter().map(Finding::key).chain([first.key()]).collect();
        let gone = |f: &&Finding| f.sure && !kept.contains(&f.key());
        let diagnostic = report::with_consequences(&walk, diagnostic, findings.iter().filter(gone));
        out.push(diagnostic);
        before.push(first.clone());
        findings = left;
        if let Some(retyped) = retyped {
            // What is right with the other pipes is the same mistake.
            findings.retain(|f| retyped.left.contains(&repair::seen(&walk, f)));
        }
        if roles_told {
            findings.retain(|f| cross_role::below(&walk, f).is_none());
        }
    }
    // What is wrong on the paths that were followed is to be mended first.
    if end.is_err() && !out.iter().any(Diagnostic::is_error) {
        account.give_up();
    }
    out
}

/// A walk through the kernel: with its short loops step by step, if that leaves less in doubt. `None`: there is too
/// much in it.
fn walked<'c>(
    kernel: &'c Kernel,
    target: &Target,
    plain: &'c HazardProgram<'c>,
    stepwise: &'c OnceCell<Option<HazardProgram<'c>>>,
    account: Account<'c>,
) -> Option<(HazardInterpreter<'c>, Result<(), GivenUp>)> {
    let mut walk = HazardInterpreter::new(plain, target, account)?;
    let end = walk.run();
    if end.is_ok() && walk.findings().iter().all(|f| f.sure) {
        return Some((walk, end));
    }
    if let Some(code) = stepwise.get_or_init(|| HazardProgram::stepwise(kernel))
        && let Some(mut closer) = HazardInterpreter::new(code, target, account)
        && closer.run().is_ok()
    {
        return Some((closer, Ok(())));
    }
    Some((walk, end))
}

/// What is to be told first: of the errors the one that a launch meets first, then what is not excluded. What is not
/// known matters only where nothing is known to be wrong.
fn first<'f>(walk: &HazardInterpreter, findings: &'f [Finding], shown: &[Key], wrong: bool) -> Option<&'f Finding> {
    let sure = shown.iter().find_map(|key| findings.iter().find(|f| f.sure && f.key() == *key));
    // Where bytes are announced that are not those that come, what is read too early follows from that.
    let cause = |f: &'f Finding| findings.iter().find(|g| g.sure && g.is_of_bytes() && walk.explains(g, f));
    let sure = sure.map(|f| cause(f).unwrap_or(f));
    let unsure = |unknown: bool| findings.iter().find(move |f| !f.sure && f.fault.is_unknown() == unknown);
    sure.or_else(|| unsure(false)).or_else(|| unsure(true).filter(|_| !wrong))
}

/// What a walk through `kernel` finds, by class and places: enough to see whether a change mends it. `None`: not
/// decided.
fn found(kernel: &Kernel, target: &Target, trial: Account<'_>) -> Option<Vec<repair::Seen>> {
    trial.spend(TRIAL).ok()?;
    let (plain, stepwise) = (HazardProgram::new(kernel), OnceCell::new());
    let (walk, end) = walked(kernel, target, &plain, &stepwise, trial)?;
    end.ok()?;
    Some(walk.findings().iter().map(|f| repair::seen(&walk, f)).collect())
}
