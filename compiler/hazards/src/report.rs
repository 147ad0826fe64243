//! Findings as diagnostics: what happens, where, in which iterations, and what mends it.

use super::code::Def;
use super::faults;
use super::find::{Finding, HazardFault};
use super::interpreter::HazardInterpreter;
use super::places::Spelled;
use super::repair::{Advice, How, Repair};
use super::text;
use super::touch::{TouchKind, TouchedObject as Place};
use ptoc_diagnostics::{Code, Diagnostic, codes};
use ptoc_ir::tile::{Op, Purpose, SyncOp, Tile, TileRef, Value};
use ptoc_isa::Loc;
use ptoc_placement::memories;
use rustc_hash::FxHashSet;

/// What a finding says. Statements that would mend it are spelled out only if they were tried: as a `repair`, or as
/// `tried` in general.
pub(super) fn diagnostic(
    walk: &HazardInterpreter,
    f: &Finding,
    repair: Option<&Repair>,
    tried: Option<Advice>,
) -> Diagnostic {
    let d = match &f.fault {
        HazardFault::Race { first, second, touch } => race(walk, f, (*first, *second), *touch, repair, tried),
        _ => faults::event(walk, f, repair, tried),
    };
    match repair {
        Some(repair) => mended(walk, d, repair),
        None => d,
    }
}

/// Pairs of accesses that are looked at, of those that one mistake leaves without an order.
const CONSEQUENCES: usize = 1000;

/// With the further pairs of accesses that the same mistake leaves without an order.
pub(super) fn with_consequences<'f>(
    walk: &HazardInterpreter,
    d: Diagnostic,
    gone: impl Iterator<Item = &'f Finding>,
) -> Diagnostic {
    let (mut more, mut known) = (Vec::new(), FxHashSet::from_iter([d.message.clone()]));
    for f in gone.filter(|f| f.fault.pair().is_some()).take(CONSEQUENCES) {
        let message = diagnostic(walk, f, None, None).message;
        if known.insert(message.clone()) {
            more.push(message);
        }
    }
    match &more[..] {
        [] => d,
        [one] => d.with_note(format!("for the same reason {one}")),
        [one, rest @ ..] => d.with_note(format!("for the same reason {one}, and {} more", pairs(rest.len()))),
    }
}

fn pairs(n: usize) -> String {
    if n == 1 { "one pair of accesses".to_owned() } else { format!("{n} pairs of accesses") }
}

fn mended(walk: &HazardInterpreter, d: Diagnostic, repair: &Repair) -> Diagnostic {
    let change = &repair.change;
    let data = change.op.event().map(|e| &walk.code.kernel.events[e.event]);
    let near = match &walk.code.sites[change.site].stmt.op {
        // What a ring does where it is declared.
        Op::Sync(op) if matches!(change.op, SyncOp::Barrier(_)) => match op.event() {
            Some(e) => format!("the declaration of `{}`", walk.code.kernel.events[e.event].name),
            None => text::operation(&Op::Sync(*op)),
        },
        op => text::operation(op),
    };
    if let Some(data) = data.filter(|d| d.purpose != Purpose::Author) {
        let word = data.word(&change.op);
        let help = match change.how {
            How::Before => format!("add `{}.{word}();` before {near}", data.name),
            How::After => format!("add `{}.{word}();` after {near}", data.name),
            How::Without => format!("leave out this `{}.{word}()`", data.name),
        };
        return d.with_help(help);
    }
    let spelled = &repair.spelled;
    let place = if change.how == How::Before { "before" } else { "after" };
    let help = match (change.how, &spelled.text, &spelled.part) {
        (How::Without, ..) => format!("leave out this `{}`", change.op.word()),
        (_, None, _) => {
            let name = data.map_or("the event".to_owned(), |d| format!("`{}`", d.name));
            format!("put a `{}` of {name} {place} {near}", change.op.word())
        }
        (_, Some(text), Some(part)) => {
            format!("give {part} a name in a statement of its own, and put `{text}` after it")
        }
        (_, Some(text), None) if spelled.inside => {
            format!("put `{text}` {place} {near}, which needs a statement of its own there")
        }
        (_, Some(text), None) => format!("insert `{text}` {place} {near}"),
    };
    match spelled.edits.is_empty() {
        true => d.with_help(help),
        false => d.with_suggested_edits(help, spelled.edits.clone()),
    }
}

/// The tile of a touch that lies at the common bytes. Where it is not said which touch of this kind is meant, one of
/// the tile `meets`, if there is one.
fn tile_of<'k>(
    walk: &'k HazardInterpreter,
    site: u32,
    kind: TouchKind,
    touch: Result<usize, Option<Tile>>,
    loc: Option<Loc>,
) -> Option<&'k TileRef> {
    let touches = &walk.code.sites[site as usize].touches;
    let of = |t: &super::touch::StatementAccess<'k>| match t.what {
        Place::Tile(r) if loc.is_none_or(|l| walk.home(r.tile) == l) => Some(r),
        _ => None,
    };
    match touch {
        Ok(n) => of(touches.get(n)?),
        Err(meets) => {
            let all = || touches.iter().filter(|t| t.kind == kind).filter_map(of);
            all().find(|r| Some(r.tile) == meets).or(all().next())
        }
    }
}

fn race(
    walk: &HazardInterpreter,
    f: &Finding,
    (first, second): (TouchKind, TouchKind),
    touch: usize,
    repair: Option<&Repair>,
    tried: Option<Advice>,
) -> Diagnostic {
    let code = walk.code;
    let (other, before) = f.other.clone().unwrap_or((f.site, f.at.clone()));
    let loc = f.bytes.map(|b| b.0);
    let name = |site: u32, kind: TouchKind, touch: Result<usize, Option<Tile>>| {
        if let Some(r) = tile_of(walk, site, kind, touch, loc) {
            return text::tile(code, r);
        }
        let tensor = code.sites[site as usize].touches.iter().find_map(|t| match t.what {
            Place::View(g, ..) | Place::Element(g, _) | Place::Tensor(g) => Some(g),
            Place::Tile(_) => None,
        });
        tensor.map_or("memory".to_owned(), |g| format!("`{}`", code.kernel.tensors[g].name))
    };
    let meets = tile_of(walk, f.site, second, Ok(touch), loc).map(|r| r.tile);
    let (a, b) = (name(other, first, Err(meets)), name(f.site, second, Ok(touch)));
    let (of_a, of_b) = (&code.sites[other as usize].stmt.op, &code.sites[f.site as usize].stmt.op);
    let (op_a, op_b) = (text::operation(of_a), text::operation(of_b));
    let (id, sentence): (Code, String) = match (first, second) {
        (TouchKind::Read, _) => (
            codes::OVERWRITTEN_BEFORE_READ,
            format!("{} before {}", text::may(of_b, ("overwrite", "overwritten"), &b), text::has(of_a, "read", &a, &b)),
        ),
        (_, TouchKind::Read) => (
            codes::READ_BEFORE_WRITTEN,
            format!("{} before {}", text::may(of_b, ("read", "read"), &b), text::has(of_a, "written", &a, &b)),
        ),
        (TouchKind::Atomic(_), TouchKind::Atomic(_)) => (
            codes::UNORDERED_UPDATES,
            format!(
                "{} before {}, and the result depends on it",
                text::may(of_b, ("update", "updated"), &b),
                text::has(of_a, "updated", &a, &b)
            ),
        ),
        _ => (
            codes::UNORDERED_WRITES,
            format!("{} before {}", text::may(of_b, ("write", "written"), &b), text::has(of_a, "written", &a, &b)),
        ),
    };
    let (span, earlier) = (text::span(walk, f.site), text::span(walk, other));
    let mut d = match f.sure {
        true => Diagnostic::error(id, span, sentence),
        false => Diagnostic::warning(
            codes::RACE_NOT_EXCLUDED,
            span,
            format!("not proved: {}", ordered((of_a, &a), (of_b, &b), first, second)),
        ),
    };
    let (pipe_a, pipe_b) = (text::pipe(walk, other as usize), text::pipe(walk, f.site as usize));
    let when = text::iterations(walk, (other as usize, &before), (f.site as usize, &f.at));
    let (in_a, in_b) = match &when {
        Some((x, y, distance)) if *distance != 0 => (format!(", in {x}"), format!(", in {y}")),
        _ => (String::new(), String::new()),
    };
    d = d
        .with_label(format!("{} {b} on {pipe_b}{in_b}", does(second)))
        .with_secondary(earlier, format!("{} {a} on {pipe_a}{in_a}", does(first)));
    if let (TouchKind::Atomic(x), TouchKind::Atomic(y)) = (first, second) {
        d = d.with_note(x.disagreement(y));
    }
    if let Some((loc, from, to)) = f.bytes
        && to < u64::MAX
    {
        let target = ptoc_isa::Target::builtin(&code.kernel.target);
        let memory = target.map_or(loc.name().to_owned(), |t| memories::name(t, loc));
        d = d.with_note(format!("both touch bytes {from:#x}..{to:#x} of {memory}"));
    }
    let (s, t) = (&code.sites[other as usize], &code.sites[f.site as usize]);
    if !f.sure {
        let why = if f.decided {
            "conditions on the path decide whether both happen; that they exclude each other is not known"
        } else if [s, t].iter().any(|s| by_launch(code, s)) {
            "which bytes are touched depends on numbers that only the launch knows"
        } else {
            "which bytes are touched is not followed through all iterations"
        };
        d = d.with_note(format!("{why}; the interpreter finds it in a run where it happens"));
    } else if (s.role, s.pipe) == (t.role, t.pipe) {
        d = d.with_note(format!("on {pipe_a} an instruction may start before the one before it is done"));
    } else {
        d = d.with_note("the two pipes run at the same time, and no flag orders these two");
    }
    let up = f.element.filter(|_| repair.is_none() && f.sure);
    let author = |e: &u32| code.kernel.events[walk.carried.elements[*e as usize].0].purpose == Purpose::Author;
    if let Some(up) = up.filter(author) {
        let name = text::element(walk, up);
        d = d.with_note(format!("{name} is set after {op_a}, and not waited for on this path"));
    } else if repair.is_none() && f.sure {
        d = advice(walk, d, other as usize, f.site as usize, (&op_a, &op_b), tried.as_ref());
    }
    d
}

/// Whether the place at which the site touches memory depends on what the launch gives, or on a table.
fn by_launch(code: &super::code::HazardProgram, site: &super::code::Site) -> bool {
    let mut values = Vec::new();
    site.stmt.op.for_each_use(&mut |v| values.push(v));
    let given = |v: &Value| code.sources(*v).iter().any(|s| matches!(code.defs[*s], Def::Given(_) | Def::Vague));
    let table = match &site.stmt.op {
        Op::Copy(copy) => copy.src.tables().chain(copy.dst.tables()).next().is_some(),
        _ => false,
    };
    table || values.iter().any(given)
}

/// What would have to be so: ``TLOAD overwrites `p` only after TADD has read it``.
fn ordered((of_a, a): (&Op, &str), (of_b, b): (&Op, &str), first: TouchKind, second: TouchKind) -> String {
    let (verb, participle) = match (first, second) {
        (TouchKind::Read, _) => (("overwrites", "overwritten"), "read"),
        (_, TouchKind::Read) => (("reads", "read"), "written"),
        (TouchKind::Atomic(_), TouchKind::Atomic(_)) => (("updates", "updated"), "updated"),
        _ => (("writes", "written"), "written"),
    };
    format!("{} only after {}", text::does(of_b, verb, b), text::has(of_a, participle, a, b))
}

fn does(kind: TouchKind) -> &'static str {
    match kind {
        TouchKind::Read => "reads",
        TouchKind::Write => "writes",
        TouchKind::Atomic(_) => "updates",
    }
}

/// Whether this is a slot of the ring of that name.
fn is_ring(walk: &HazardInterpreter, t: &super::touch::StatementAccess, ring: &str) -> bool {
    matches!(t.what, Place::Tile(r) if walk.code.kernel.tiles[r.tile].name == ring)
}

/// The ring whose slots both sites touch.
fn ring_of(walk: &HazardInterpreter, first: usize, second: usize) -> Option<String> {
    let rings = walk.code.kernel.events.values().filter(|e| e.purpose == Purpose::RingFull);
    let mut names = rings.map(|e| e.name.to_string());
    names.find(|n| [first, second].iter().all(|&s| walk.code.sites[s].touches.iter().any(|t| is_ring(walk, t, n))))
}

/// Whether one of them is a part of the expression that the other one is.
fn within(a: &super::code::Site, b: &super::code::Site) -> bool {
    let (x, y) = (a.stmt.span, b.stmt.span);
    x.contains(y) || y.contains(x)
}

/// What a new event would look like, or what else the two need.
fn advice(
    walk: &HazardInterpreter,
    d: Diagnostic,
    first: usize,
    second: usize,
    (op_a, op_b): (&str, &str),
    tried: Option<&Advice>,
) -> Diagnostic {
    let (s, t) = (&walk.code.sites[first], &walk.code.sites[second]);
    let (Some(p), Some(q)) = (s.pipe, t.pipe) else { return d };
    if p == q {
        if s.role != t.role {
            return d.with_help("the roles share memory: hand it over with a ring or a transaction barrier");
        }
        return d.with_help(format!("a barrier of {p} orders them, or flags to another pipe and back"));
    }
    if let Some(ring) = ring_of(walk, first, second) {
        return d.with_help(
            match walk.code.sites[first].touches.iter().any(|t| t.kind == TouchKind::Write && is_ring(walk, t, &ring)) {
                true => format!("commit a slot of `{ring}` when it is filled, and wait for it before it is read"),
                false => format!("release a slot of `{ring}` when it has been read for the last time, not before"),
            },
        );
    }
    if let Some(Advice::NewEvent(Some(Spelled { text: Some(text), part: Some(part), edits, .. }))) = tried {
        let help = format!("give {part} a name in a statement of its own, and put `{text}` after it");
        return d.with_suggested_edits(help, edits.clone());
    }
    if within(s, t) {
        return d.with_help(format!(
            "give what {op_a} computes a name in a statement of its own: then an event from {p} to {q} can be set \
            after it, and waited for before {op_b}"
        ));
    }
    if let Some(Advice::NewEvent(_)) = tried {
        let name = text::fresh(walk.code.kernel, "ready");
        return d.with_help(format!(
            "order them by an event: `{}`, `set({name});` after {op_a}, `wait({name});` before {op_b}",
            text::declaration(&name, p, q)
        ));
    }
    let again = s.loops.len() != t.loops.len() || first > second;
    let mut help = format!("order them by an event from {p} to {q}, set after {op_a} and waited for before {op_b}");
    if again {
        help.push_str(
            "; what must be free before the first iteration is set before the loop, and waited for once more after it",
        );
    }
    d.with_help(help)
}
