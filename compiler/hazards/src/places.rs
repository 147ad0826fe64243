//! Where a repair stands in the source. A synchronisation is a statement, so it goes before or after one: not into the
//! middle of an expression, a condition or a library's function.

use super::find::Finding;
use super::interpreter::HazardInterpreter;
use super::repair::{Change, How};
use super::text;
use ptoc_checks::capacity::{FixContext, Statement};
use ptoc_diagnostics::{Edit, Span};
use ptoc_ir::tile::{Op, Purpose, Region, Stmt, SyncOp};
use std::mem::discriminant;

/// Longest part of an expression that a message repeats.
const SHOWN: usize = 40;

/// A change as the source has it.
#[derive(Clone, Debug)]
pub(super) struct Spelled {
    /// The statement; `None` if it has a name that the source cannot say there.
    pub(super) text: Option<String>,
    /// What makes the change; empty if that is for the author to do.
    pub(super) edits: Vec<Edit>,
    /// It belongs into the middle of a statement.
    pub(super) inside: bool,
    /// The part of an expression to which the edits give a name, if they take it apart.
    pub(super) part: Option<String>,
}

/// A place beside a statement of the source.
pub(super) struct Beside {
    /// How deep the region is that the statement's code stands in: a prefix of the site's path leads there.
    pub(super) level: usize,
    /// Where in that region the change goes.
    pub(super) at: usize,
    pub(super) spelled: Spelled,
}

/// The place beside the statement that the site belongs to; `None` if the source has no such place, or is not known.
pub(super) fn beside(walk: &HazardInterpreter, change: &Change, author: &dyn FixContext) -> Option<Beside> {
    let run = run(walk, change.site, author)?;
    let text = spelled(walk, change)?;
    let place = run.statement;
    let (at, edit) = match change.how {
        How::Before => (run.first, insertion(place.span.start, place.span, format!("{text} "))),
        How::After if place.tail => return None,
        How::After => (run.last + 1, insertion(place.span.end, place.span, format!(" {text}"))),
        How::Without => {
            let own = walk.code.sites[change.site].stmt.span;
            let n = walk.code.sites[change.site].path.get(run.level)?.1;
            if run.impure != 1 || run.level + 1 != walk.code.sites[change.site].path.len() {
                return None;
            }
            (n, author.removal(own)?)
        }
    };
    if change.how != How::Without && !sees(walk, change, &edit, author) {
        return None;
    }
    Some(Beside {
        level: run.level,
        at,
        spelled: Spelled { text: Some(text), edits: vec![edit], inside: false, part: None },
    })
}

fn insertion(at: u32, near: Span, text: String) -> Edit {
    Edit { span: Span::new(near.file, at, at), text }
}

/// The change in the middle of a statement. If it orders the first thing that the statement does before the rest, and
/// that is an expression of its own, the expression gets a name and a statement.
pub(super) fn within(walk: &HazardInterpreter, change: &Change, author: &dyn FixContext) -> Spelled {
    let text = spelled(walk, change);
    let run = run(walk, change.site, author);
    let taken_apart = || {
        let run = run.as_ref().filter(|_| change.how == How::Before)?;
        let text = text.clone()?;
        let site = &walk.code.sites[change.site];
        let (path, own) = (&site.path, site.stmt.span);
        let region = region(walk, &path[..=run.level])?;
        let mut before = region[run.first..path[run.level].1].iter().filter(|s| !quiet(&s.op));
        // One operation comes before, and it is a part of the expression that the site is.
        let (first, None) = (before.next()?, before.next()) else { return None };
        let part = first.span;
        if run.level + 1 != path.len() || !own.contains(part) || own == part || part.start == part.end {
            return None;
        }
        let name = text::fresh(walk.code.kernel, "part");
        let own = author.text(part)?;
        let before = insertion(run.statement.span.start, part, format!("let {name} = {own}; {text} "));
        let short = own.len() <= SHOWN && !own.contains('\n');
        let own = if short { format!("`{own}`") } else { "the part before it".to_owned() };
        Some((own, vec![before, Edit { span: part, text: name }]))
    };
    let (part, edits) = taken_apart().unzip();
    Spelled { inside: run.is_some(), edits: edits.unwrap_or_default(), part, text }
}

/// A new event between two accesses of which the first is a part of the expression that the second one is: the part
/// gets a name and a statement, and the event stands behind it.
pub(super) fn apart(walk: &HazardInterpreter, finding: &Finding, author: &dyn FixContext) -> Option<Spelled> {
    let (second, first) = (finding.site as usize, finding.other.as_ref()?.0 as usize);
    let (a, b) = (&walk.code.sites[first], &walk.code.sites[second]);
    let (part, whole) = (a.stmt.span, b.stmt.span);
    let run = run(walk, second, author)?;
    let level = run.level;
    let inside = part != whole && part.start < part.end && run.statement.span.contains(part);
    let beside = a.path.len() == level + 1 && b.path.len() == level + 1 && a.path[..level] == b.path[..level];
    if !inside || !beside {
        return None;
    }
    // What comes before the part comes before it still: it belongs to the part.
    let region = region(walk, &a.path[..=level])?;
    let before = region.get(run.first..a.path[level].1)?;
    if !before.iter().all(|s| quiet(&s.op) || part.contains(s.span)) {
        return None;
    }
    let kernel = walk.code.kernel;
    let (name, event) = (text::fresh(kernel, "part"), text::fresh(kernel, "ready"));
    let (own, declared) = (author.text(part)?, text::declaration(&event, a.pipe?, b.pipe?));
    let order = format!("let {name} = {own}; {declared} set({event}); wait({event}); ");
    let short = own.len() <= SHOWN && !own.contains('\n');
    Some(Spelled {
        text: Some(format!("{declared} set({event}); wait({event});")),
        edits: vec![insertion(run.statement.span.start, part, order), Edit { span: part, text: name }],
        inside: true,
        part: Some(if short { format!("`{own}`") } else { "the part before it".to_owned() }),
    })
}

/// The code of a statement of the source.
struct Run {
    statement: Statement,
    level: usize,
    /// In the region: the first and the last of it.
    first: usize,
    last: usize,
    /// How many have effects.
    impure: usize,
}

/// The code of the statement that a site belongs to. `None` if it does not stand in one place: where a loop is
/// unrolled, one statement of the source is many.
fn run(walk: &HazardInterpreter, site: usize, author: &dyn FixContext) -> Option<Run> {
    let site = &walk.code.sites[site];
    let statement = author.statement(site.stmt.span)?;
    let of = |s: &Stmt| statement.span.contains(s.span);
    let mut region: &Region = &walk.code.kernel.body;
    let mut level = 0;
    // The outermost code of the statement: it may make loops and branches of its own.
    while !of(region.get(site.path[level].1)?) {
        let owner = region.get(site.path[level].1)?;
        level += 1;
        region = owner.op.regions().nth(site.path.get(level)?.0)?;
    }
    let first = region.iter().position(of)?;
    let ring = declares(walk, site.stmt);
    let last = match ring {
        // What it does at the end of its block stands there too.
        Some(_) => first + region[first..].iter().take_while(|s| of(s) || s.op.is_pure()).count() - 1,
        None => region.iter().rposition(of)?,
    };
    let code = &region[first..=last];
    let whole = code.iter().all(|s| of(s) || s.op.is_pure());
    let copies = ring.unwrap_or_else(|| copies(&walk.code.kernel.body, site.stmt));
    (whole && copies == 1).then(|| Run {
        statement,
        level,
        first,
        last,
        impure: code.iter().filter(|s| !s.op.is_pure()).count(),
    })
}

/// Whether the statement belongs to the declaration of a ring. Then how many rings are declared there.
fn declares(walk: &HazardInterpreter, stmt: &Stmt) -> Option<usize> {
    let Op::Sync(op) = &stmt.op else { return None };
    let events = &walk.code.kernel.events;
    let ring = &events[op.event()?.event];
    let here = ring.purpose != Purpose::Author && ring.span == stmt.span;
    here.then(|| events.values().filter(|e| e.span == ring.span && e.purpose == ring.purpose).count())
}

/// Statements like this one that come of the same place of the source.
fn copies(region: &Region, of: &Stmt) -> usize {
    let own = |s: &Stmt| usize::from(s.span == of.span && discriminant(&s.op) == discriminant(&of.op));
    region.iter().map(|s| own(s) + s.op.regions().map(|r| copies(r, of)).sum::<usize>()).sum()
}

fn region<'k>(walk: &HazardInterpreter<'k>, path: &[(usize, usize)]) -> Option<&'k Region> {
    let mut region: &Region = &walk.code.kernel.body;
    for (k, &(_, n)) in path.iter().enumerate().take(path.len().checked_sub(1)?) {
        region = region.get(n)?.op.regions().nth(path[k + 1].0)?;
    }
    Some(region)
}

/// Nothing that the order of statements matters to.
fn quiet(op: &Op) -> bool {
    op.is_pure() || matches!(op, Op::Alloc { .. })
}

/// Whether the event is declared where the edit stands.
fn sees(walk: &HazardInterpreter, change: &Change, edit: &Edit, author: &dyn FixContext) -> bool {
    let Some(e) = change.op.event() else { return true };
    author
        .statement(walk.code.kernel.events[e.event].span)
        .is_some_and(|declared| declared.span.end <= edit.span.start && declared.block.contains(edit.span))
}

/// The statement of a change. `None` if it cannot be spelled.
fn spelled(walk: &HazardInterpreter, change: &Change) -> Option<String> {
    Some(match change.op {
        SyncOp::Barrier(Some(p)) => format!("barrier({p});"),
        SyncOp::Barrier(None) => "barrier();".to_owned(),
        op => {
            let e = op.event()?;
            let data = &walk.code.kernel.events[e.event];
            if data.purpose != Purpose::Author {
                return None;
            }
            format!("{}({});", data.word(&op), text::reference(walk.code, e)?)
        }
    })
}
