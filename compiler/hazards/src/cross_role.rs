//! Waits across roles: roles are taken in the order of the text: what a role further down sets, releases or arrives
//! comes after all that is above it, also where each role has a loop of its own. A wait for it is told with the place
//! where it stands.

use super::find::{Finding, HazardFault};
use super::interpreter::HazardInterpreter;
use super::order::Wrong;
use super::text;
use ptoc_diagnostics::Diagnostic;
use ptoc_ir::tile::{EventData, Op, Purpose, SyncOp};

/// What a wait waits for, if that stands in a role further down: its site.
pub(super) fn below(walk: &HazardInterpreter, f: &Finding) -> Option<usize> {
    if !matches!(f.fault, HazardFault::Order(Wrong::Down | Wrong::Stuck { .. })) {
        return None;
    }
    let (event, _) = walk.carried.elements[f.element? as usize];
    let own = &walk.code.sites[f.site as usize];
    let raises = |op: &Op| match op {
        Op::Sync(op @ (SyncOp::Set(_) | SyncOp::Arrive(_) | SyncOp::ArriveExpect(..))) => {
            op.event().is_some_and(|e| e.event == event)
        }
        _ => false,
    };
    let mut found = None;
    for (n, site) in walk.code.sites.iter().enumerate().filter(|(_, s)| raises(&s.stmt.op)) {
        // The next iteration may come to it.
        if site.loops.iter().any(|l| own.loops.contains(l)) {
            return None;
        }
        if n > f.site as usize && site.role != own.role {
            found = found.or(Some(n));
        }
    }
    found
}

/// Who stands below waits itself, before it comes to what is waited for here: for what this role does after its own
/// wait. That wait, and what it waits for.
fn circle(walk: &HazardInterpreter, f: &Finding, site: usize) -> Option<(usize, usize)> {
    let sites = &walk.code.sites;
    let (own, other) = (sites[f.site as usize].role, sites[site].role);
    let between = (f.site as usize + 1..site).filter(|&n| sites[n].role == other);
    let mut waits = between.filter_map(|n| match &sites[n].stmt.op {
        Op::Sync(op) if op.waits() => Some((n, op.event()?.event)),
        _ => None,
    });
    waits.find_map(|(wait, event)| {
        let raises = |op: &Op| match op {
            Op::Sync(op) => !op.waits() && op.event().is_some_and(|e| e.event == event),
            _ => false,
        };
        let mut all = sites.iter().enumerate().filter(|(_, s)| raises(&s.stmt.op)).map(|(n, _)| n);
        let first = all.next()?;
        // In a loop around both, the iteration before may have done it.
        let round = |n: usize| sites[n].loops.iter().any(|l| sites[f.site as usize].loops.contains(l));
        let after = |n: usize| n > f.site as usize && sites[n].role == own && !round(n);
        (after(first) && all.all(after)).then_some((wait, first))
    })
}

/// `role store`
fn role(walk: &HazardInterpreter, site: usize) -> String {
    match walk.code.sites[site].role {
        Some(r) => format!("role `{}`", walk.code.kernel.roles[r].name),
        None => "the kernel's own statements".to_owned(),
    }
}

/// What the fault is then.
pub(super) fn message(walk: &HazardInterpreter, f: &Finding, data: &EventData, what: &str, site: usize) -> String {
    if circle(walk, f, site).is_some() {
        let names = (role(walk, f.site as usize), role(walk, site));
        return format!("`wait` for {what} never ends: {} and {} wait for each other", names.0, names.1);
    }
    let again = if f.other.is_some() { " again" } else { "" };
    let place = format!("below, in {}", role(walk, site));
    match (data.purpose, &f.fault) {
        (Purpose::RingEmpty, _) => format!("`{}.acquire()` waits for ever: {what} is released only {place}", data.name),
        (Purpose::RingFull, _) => {
            format!("`{}.wait()` waits for ever: {what} is filled{again} only {place}", data.name)
        }
        (_, HazardFault::Order(Wrong::Down)) => format!("`wait` for {what} never ends: it is set{again} only {place}"),
        _ => format!("`wait` for {what} never ends: who arrives at it stands {place}"),
    }
}

/// The place, the rule, and what to do.
pub(super) fn explained(walk: &HazardInterpreter, d: Diagnostic, f: &Finding, site: usize) -> Diagnostic {
    let (own, other) = (&walk.code.sites[f.site as usize], &walk.code.sites[site]);
    if let Some((wait, raised)) = circle(walk, f, site) {
        let span = |n: usize| text::span(walk, n as u32);
        return d
            .with_secondary(span(site), "this would end it")
            .with_secondary(span(wait), format!("but {} waits here first", role(walk, site)))
            .with_secondary(span(raised), "for this, which comes after the wait that never ends")
            .with_help("one of the two has to begin without waiting for the other");
    }
    let d = d
        .with_secondary(text::span(walk, site as u32), "comes later: it stands below")
        .with_note("roles are taken in the order of the text: nothing that stands below has been done yet");
    match own.loops.is_empty() && other.loops.is_empty() {
        true => d.with_help(format!("put {} before {}", role(walk, site), role(walk, f.site as usize))),
        false => d.with_help(format!(
            "put {} and {} in one loop, so that they take turns: `for .. {{ role .. {{ .. }} role .. {{ .. }} }}`",
            role(walk, f.site as usize),
            role(walk, site)
        )),
    }
}
