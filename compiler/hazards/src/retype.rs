//! Events and rings between the wrong pipes. Two accesses without order, and an event or ring that leaves from one of
//! their pipes or leads to it: with the other pipe in its declaration everything may be right. That is one mistake,
//! whatever follows from it, and one edit.

use super::find::{Finding, HazardFault};
use super::interpreter::HazardInterpreter;
use super::order::Wrong;
use super::repair::{self, Seen};
use ptoc_checks::capacity::FixContext;
use ptoc_diagnostics::{Account, Diagnostic, Edit, Span};
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{Event, Kernel, Purpose};
use ptoc_isa::{Pipe, Target};

/// Declarations that are tried.
const TRIES: usize = 6;

/// A declaration with other pipes, with which nothing but `left` is wrong.
pub(super) struct Retyped {
    name: String,
    was: (Pipe, Pipe),
    is: (Pipe, Pipe),
    word: &'static str,
    edit: Option<Edit>,
    pub(super) left: Vec<Seen>,
}

/// The declaration whose pipes are wrong, if another one mends the finding and adds nothing.
pub(super) fn find(
    walk: &HazardInterpreter,
    finding: &Finding,
    others: &[Seen],
    target: &Target,
    author: &dyn FixContext,
    trial: Account<'_>,
) -> Option<Retyped> {
    let (kernel, own) = (walk.code.kernel, repair::seen(walk, finding));
    candidates(walk, finding).into_iter().take(TRIES).find_map(|(event, is)| {
        let changed = with_pipes(kernel, event, is);
        verify(&changed).ok()?;
        let left = super::found(&changed, target, trial)?;
        if left.iter().any(|s| *s == own || !others.contains(s)) {
            return None;
        }
        let data = &kernel.events[event];
        let word = match data.purpose {
            Purpose::RingFull | Purpose::RingEmpty => "ring",
            _ if matches!(data.kind, ptoc_ir::tile::EventKind::Flag) => "event",
            _ => "mbarrier",
        };
        let was = (data.from, data.to);
        Some(Retyped { name: data.name.to_string(), was, is, word, edit: edit(data.span, word, is, author), left })
    })
}

/// Events and rings (by their full slots), and what their pipes could be instead.
fn candidates(walk: &HazardInterpreter, f: &Finding) -> Vec<(Event, (Pipe, Pipe))> {
    let kernel = walk.code.kernel;
    let author = |e: &Event| matches!(kernel.events[*e].purpose, Purpose::Author | Purpose::RingFull);
    let own = f.element.map(|e| walk.carried.elements[e as usize].0);
    let mut out = Vec::new();
    let mut pipes = |a: Pipe, b: Pipe, first: Option<Event>| {
        let all = kernel.events.keys().filter(author);
        for event in all.filter(|e| first.is_none_or(|f| f == *e)) {
            let was = (kernel.events[event].from, kernel.events[event].to);
            for is in [(a, b), (b, a)] {
                // One end stays where it is.
                if (was.0 == is.0) != (was.1 == is.1) && !out.contains(&(event, is)) {
                    out.push((event, is));
                }
            }
        }
    };
    match (&f.fault, &f.other) {
        // A flag that is up is right where it is, and only to be waited for.
        (HazardFault::Race { .. }, Some((other, _))) if own.is_none() => {
            let pipe = |site: u32| walk.code.sites[site as usize].pipe;
            if let (Some(a), Some(b)) = (pipe(*other), pipe(f.site))
                && a != b
            {
                pipes(a, b, None);
            }
        }
        // Its waits hold back a pipe that nothing of this depends on.
        (HazardFault::Order(Wrong::Unordered(..)), _) => {
            if let Some(event) = own.filter(|e| kernel.events[*e].purpose == Purpose::Author) {
                let (from, to) = (kernel.events[event].from, kernel.events[event].to);
                for &p in Pipe::ALL.iter().filter(|p| **p != from && **p != to && walk.has_pipe(**p)) {
                    pipes(from, p, Some(event));
                    pipes(p, to, Some(event));
                }
            }
        }
        _ => {}
    }
    out
}

/// The kernel with other pipes for an event; a ring has two of them, there and back.
fn with_pipes(kernel: &Kernel, event: Event, (from, to): (Pipe, Pipe)) -> Kernel {
    let mut changed = kernel.clone();
    let (purpose, span) = (kernel.events[event].purpose, kernel.events[event].span);
    for data in changed.events.values_mut().filter(|d| d.span == span) {
        if data.purpose == purpose {
            (data.from, data.to) = (from, to);
        } else if data.purpose == Purpose::RingEmpty {
            (data.from, data.to) = (to, from);
        }
    }
    changed
}

/// The pipes of a declaration as the source has them, and as they should be.
fn edit(name: Span, word: &str, (from, to): (Pipe, Pipe), author: &dyn FixContext) -> Option<Edit> {
    let statement = author.statement(name)?.span;
    let text = author.text(statement)?;
    let behind = (name.end.checked_sub(statement.start)?) as usize;
    let at = behind + text.get(behind..)?.find(&format!("{word}<"))? + word.len();
    let end = at + text[at..].find('>')? + 1;
    let span = Span::new(statement.file, statement.start + at as u32, statement.start + end as u32);
    Some(Edit { span, text: format!("<{from}, {to}>") })
}

/// The finding, and that the declaration is what is wrong.
pub(super) fn told(mut d: Diagnostic, r: &Retyped) -> Diagnostic {
    d.fixes.clear();
    let Retyped { name, word, was, is, .. } = r;
    let help = format!(
        "`{name}` is between the wrong pipes: `{word}<{}, {}>` instead of `{word}<{}, {}>`",
        is.0, is.1, was.0, was.1
    );
    match &r.edit {
        Some(edit) => d.with_suggested_edits(help, vec![edit.clone()]),
        None => d.with_help(help),
    }
}
