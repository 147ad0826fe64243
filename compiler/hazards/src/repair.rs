//! One synchronisation that mends a finding, tried on the kernel itself: it is inserted, and the walk repeated.

use super::code::Path;
use super::find::{Finding, HazardFault};
use super::interpreter::HazardInterpreter;
use super::order::Wrong;
use super::places::{self, Spelled};
use super::text;
use ptoc_checks::capacity::FixContext;
use ptoc_diagnostics::{Account, Span};
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{EventData, EventKind, EventRef, Kernel, Op, Purpose, Region, Scope, Stmt, SyncOp};
use ptoc_isa::{Pipe, Target};

/// Changes that are tried for one finding.
const TRIES: usize = 24;

/// What is left of a finding if statements are added: its class and places.
pub(super) type Seen = (u32, Option<Span>, Option<Span>);

/// A change that mends a finding.
#[derive(Clone, Debug)]
pub(super) struct Repair {
    /// What the kernel still has then.
    left: Vec<Seen>,
    pub(super) change: Change,
    /// How the source says it.
    pub(super) spelled: Spelled,
}

/// One more statement, or one less.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) op: SyncOp,
    /// The site that it is put next to, or that is taken away.
    pub(super) site: usize,
    pub(super) how: How,
}

/// Where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    Before,
    After,
    Without,
}

/// The class and the places of a finding.
pub(super) fn seen(walk: &HazardInterpreter, f: &Finding) -> Seen {
    let span = |site: u32| walk.code.sites.get(site as usize).map(|s| s.stmt.span);
    (f.key().0, span(f.site), f.other.as_ref().and_then(|o| span(o.0)))
}

/// A change after which the finding is gone, and nothing is left but `others`, which are mistakes of their own. One
/// that is a statement beside a statement of the source is preferred to one in the middle of an expression.
pub(super) fn find(
    walk: &HazardInterpreter,
    finding: &Finding,
    others: &[Seen],
    target: &Target,
    author: &dyn FixContext,
    trial: Account<'_>,
) -> Option<Repair> {
    let own = seen(walk, finding);
    let mends = |change: &Change, (path, at): (&Path, usize)| {
        let kernel = changed(walk, change, path, at)?;
        verify(&kernel).ok()?;
        let left = super::found(&kernel, target, trial)?;
        // A ring whose slot is not given back any more is no better.
        let ring = change.op.event().is_some_and(|e| walk.code.kernel.events[e.event].purpose != Purpose::Author);
        if ring && change.how == How::Without && !left.is_empty() {
            return None;
        }
        left.iter().all(|s| *s != own && others.contains(s)).then_some(left)
    };
    let changes: Vec<Change> = candidates(walk, finding).into_iter().take(TRIES).collect();
    let mut best: Option<Repair> = None;
    for beside in [true, false] {
        for change in &changes {
            let path = &walk.code.sites[change.site].path;
            let place = if beside { places::beside(walk, change, author) } else { None };
            let (path, at, spelled) = match place {
                Some(place) => (&path[..=place.level], place.at, place.spelled),
                None if beside => continue,
                None => {
                    let Some(&(_, n)) = path.last() else { continue };
                    let at = if change.how == How::After { n + 1 } else { n };
                    (&path[..], at, places::within(walk, change, author))
                }
            };
            let Some(left) = mends(change, (&path.to_vec(), at)) else { continue };
            if best.as_ref().is_none_or(|b| left.len() < b.left.len()) {
                let done = left.is_empty();
                best = Some(Repair { left, change: change.clone(), spelled });
                if done {
                    break;
                }
            }
        }
        if best.is_some() {
            break;
        }
    }
    best
}

/// What mends a finding in general, tried on the kernel as a change is.
#[derive(Clone, Debug)]
pub(super) enum Advice {
    /// A new event, set after the first access and waited for before the second. Of two that are one statement of the
    /// source how it is taken apart.
    NewEvent(Option<Spelled>),
    /// The barrier declares as many arrivals as come.
    Arrivals,
}

/// Advice after which the finding is gone, and nothing is left but `others`.
pub(super) fn advice(
    walk: &HazardInterpreter,
    finding: &Finding,
    others: &[Seen],
    target: &Target,
    author: &dyn FixContext,
    trial: Account<'_>,
) -> Option<Advice> {
    let own = seen(walk, finding);
    let (kernel, advice) = match &finding.fault {
        HazardFault::Race { .. } => {
            (with_event(walk, finding)?, Advice::NewEvent(places::apart(walk, finding, author)))
        }
        HazardFault::Order(Wrong::Stuck { pending, .. }) => {
            let (event, _) = walk.carried.elements[finding.element? as usize];
            let mut kernel = walk.code.kernel.clone();
            let EventKind::Barrier { arrivals } = &mut kernel.events[event].kind else { return None };
            *arrivals = arrivals.checked_sub(*pending).filter(|n| *n > 0)?;
            (kernel, Advice::Arrivals)
        }
        _ => return None,
    };
    verify(&kernel).ok()?;
    let left = super::found(&kernel, target, trial)?;
    left.iter().all(|s| *s != own && others.contains(s)).then_some(advice)
}

/// The kernel with an event of its own for a pair of accesses, if the first of them stands before the second.
fn with_event(walk: &HazardInterpreter, f: &Finding) -> Option<Kernel> {
    let (first, second) = (f.other.as_ref()?.0 as usize, f.site as usize);
    let (a, b) = (&walk.code.sites[first], &walk.code.sites[second]);
    let (from, to) = (a.pipe?, b.pipe?);
    if from == to || first >= second {
        return None;
    }
    let mut kernel = walk.code.kernel.clone();
    let event = kernel.events.push(EventData {
        name: text::fresh(&kernel, "ready").into(),
        from,
        to,
        count: 1,
        kind: EventKind::Flag,
        purpose: Purpose::Author,
        span: kernel.span,
    });
    let e = EventRef { event, element: None };
    // The later one first, so that the other place stays where it is.
    for (site, op, more) in [(b, SyncOp::Wait(e), 0), (a, SyncOp::Set(e), 1)] {
        let at = site.path.last()?.1 + more;
        region_of(&mut kernel.body, &site.path)?.insert(at, Stmt { op: Op::Sync(op), span: kernel.span });
    }
    Some(kernel)
}

fn candidates(walk: &HazardInterpreter, f: &Finding) -> Vec<Change> {
    let site = f.site as usize;
    let mut out = Vec::new();
    let mut push = |op, site, how| out.push(Change { op, site, how });
    match &f.fault {
        HazardFault::Race { .. } => {
            let Some((other, _)) = &f.other else { return out };
            let other = *other as usize;
            let (a, b) = (&walk.code.sites[other], &walk.code.sites[site]);
            if (a.role, a.pipe) == (b.role, b.pipe) {
                push(SyncOp::Barrier(b.pipe), site, How::Before);
                return out;
            }
            // The flag that is up and would have to be waited for.
            for e in f.element.into_iter().flat_map(|e| spellings(walk, e)) {
                push(SyncOp::Wait(e), site, How::Before);
            }
            for e in references(walk, a.pipe, b.pipe) {
                push(SyncOp::Wait(e), site, How::Before);
            }
            // Both arms of an `if` may read: the wait belongs before it, behind what stands there.
            let outer = |s: &usize| {
                let t = &walk.code.sites[*s];
                let Some((last, region)) = t.path.split_last() else { return false };
                let here = b.path.get(region.len()).is_some_and(|p| p.0 == last.0) && b.path.starts_with(region);
                let statement = matches!(t.stmt.op, Op::Sync(_) | Op::Inst(_));
                here && statement && b.path.len() > t.path.len() && t.role == b.role && t.loops == b.loops
            };
            if let Some(s) = (0..site).rev().find(outer) {
                for e in references(walk, a.pipe, b.pipe) {
                    push(SyncOp::Wait(e), s, How::After);
                }
            }
            for e in references(walk, a.pipe, b.pipe) {
                push(SyncOp::Set(e), other, How::After);
            }
            // It may order the two by way of a third pipe.
            if let Some(element) = f.loose {
                let mut near: Vec<usize> = sites_on(walk, walk.ends(element).1).collect();
                near.sort_by_key(|&s| if s > other { s - other } else { 1000 + other - s });
                for &s in near.iter().take(4) {
                    spellings(walk, element).into_iter().for_each(|e| push(SyncOp::Wait(e), s, How::Before));
                }
            }
        }
        HazardFault::Order(Wrong::Down) => {
            let Op::Sync(op) = &walk.code.sites[site].stmt.op else { return out };
            let Some(e) = op.event() else { return out };
            let from = walk.code.kernel.events[e.event].from;
            let near = sites_on(walk, from).filter(|s| *s != site);
            // Before it in the program, the nearest first; then those that come round in a loop.
            let mut near: Vec<usize> = near.collect();
            near.sort_by_key(|&s| if s < site { site - s } else { 1000 + s - site });
            near.truncate(8);
            near.into_iter().for_each(|s| push(SyncOp::Set(e), s, How::After));
            push(*op, site, How::Without);
        }
        // All pipes meet before the ring begins anew.
        HazardFault::Order(Wrong::Unordered(..)) if text::begins_anew(walk, f).is_some() => {
            push(SyncOp::Barrier(None), site, How::Before);
        }
        HazardFault::LeftUp | HazardFault::Order(Wrong::Up(_)) => {
            let first = match &f.fault {
                HazardFault::Order(Wrong::Up(since)) => *since as usize,
                _ => site,
            };
            // As either of the two spells the element: a name of the one may not be known at the other.
            let spelled = [site, first].map(|s| match &walk.code.sites[s].stmt.op {
                Op::Sync(op) => op.event(),
                _ => None,
            });
            let Some(e) = spelled[0] else { return out };
            // A slot is taken and given back in turn: one statement more would be one for another slot.
            if walk.code.kernel.events[e.event].purpose == Purpose::RingEmpty {
                // The only one is the one that is needed.
                let own = walk.code.sites[site].stmt.span;
                let gives = |s: &super::code::Site| {
                    matches!(&s.stmt.op, Op::Sync(SyncOp::Set(r)) if r.event == e.event)
                        && s.stmt.span != own
                        && s.stmt.span != walk.code.kernel.events[e.event].span
                };
                if !walk.code.sites.iter().any(gives) {
                    return out;
                }
                for s in [site, first] {
                    if let Op::Sync(op) = &walk.code.sites[s].stmt.op {
                        push(*op, s, How::Without);
                    }
                }
                return out;
            }
            let to = walk.code.kernel.events[e.event].to;
            let mut near: Vec<usize> = sites_on(walk, to).filter(|s| !walk.code.sites[*s].touches.is_empty()).collect();
            near.sort_by_key(|&s| if s > first { s - first } else { 1000 + first - s });
            near.truncate(6);
            for &s in &near {
                spelled.iter().flatten().for_each(|e| push(SyncOp::Wait(*e), s, How::Before));
            }
            let Op::Sync(op) = &walk.code.sites[site].stmt.op else { return out };
            push(*op, site, How::Without);
        }
        _ => {}
    }
    out
}

/// Sites on a pipe, whoever issues them.
fn sites_on<'a>(walk: &'a HazardInterpreter, pipe: Pipe) -> impl Iterator<Item = usize> + 'a {
    let sites = walk.code.sites.iter().enumerate();
    sites.filter(move |(_, s)| s.pipe == Some(pipe) && !matches!(s.stmt.op, Op::Sync(_))).map(|(n, _)| n)
}

/// The ways in which the kernel names elements of the event that this one is of, if it is a flag.
fn spellings(walk: &HazardInterpreter, element: u32) -> Vec<EventRef> {
    let (event, _) = walk.carried.elements[element as usize];
    let mut out: Vec<EventRef> = Vec::new();
    for site in &walk.code.sites {
        if let Op::Sync(SyncOp::Set(e) | SyncOp::Wait(e)) = &site.stmt.op
            && e.event == event
            && !out.contains(e)
        {
            out.push(*e);
        }
    }
    out
}

/// The flags from one pipe to another, with the elements that the kernel uses.
fn references(walk: &HazardInterpreter, from: Option<Pipe>, to: Option<Pipe>) -> Vec<EventRef> {
    let mut out: Vec<EventRef> = Vec::new();
    for site in &walk.code.sites {
        let Op::Sync(SyncOp::Set(e) | SyncOp::Wait(e)) = &site.stmt.op else { continue };
        let data = &walk.code.kernel.events[e.event];
        if data.kind == EventKind::Flag && (Some(data.from), Some(data.to)) == (from, to) && !out.contains(e) {
            out.push(*e);
        }
    }
    out
}

/// The kernel with the change at this place of the region that `path` leads to.
fn changed(walk: &HazardInterpreter, change: &Change, path: &Path, at: usize) -> Option<Kernel> {
    let mut kernel = walk.code.kernel.clone();
    let region = region_of(&mut kernel.body, path)?;
    match change.how {
        How::Before | How::After => region.insert(at, Stmt { op: Op::Sync(change.op), span: kernel.span }),
        // What a ring's method does beside it goes too: it steps to the next slot.
        How::Without => {
            let span = region.get(at)?.span;
            let ring = change.op.event().is_some_and(|e| walk.code.kernel.events[e.event].purpose != Purpose::Author);
            let last = region.iter().rposition(|s| ring && s.span == span).unwrap_or(at);
            region.drain(at..=last.max(at));
        }
    }
    Some(kernel)
}

/// The region in which the statement at `path` stands.
fn region_of<'a>(body: &'a mut Region, path: &Path) -> Option<&'a mut Region> {
    let mut region = body;
    for (k, &(_, n)) in path.iter().enumerate().take(path.len().checked_sub(1)?) {
        let inner = path[k + 1].0;
        region = match (&mut region.get_mut(n)?.op, inner) {
            (Op::For(f), _) => &mut f.body,
            (Op::If(i), 0) => &mut i.then,
            (Op::If(i), _) => &mut i.els,
            (Op::While(w), 0) => &mut w.head,
            (Op::While(w), _) => &mut w.body,
            (Op::Scope(s), _) => {
                let Scope { body, .. } = &mut **s;
                body
            }
            _ => return None,
        };
    }
    Some(region)
}
