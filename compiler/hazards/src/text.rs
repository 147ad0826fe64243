//! How messages call things.

use super::code::{Def, HazardProgram};
use super::find::{Finding, HazardFault};
use super::interpreter::HazardInterpreter;
use super::order::Wrong;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{EventRef, Kernel, Op, Purpose, Region, TileRef, Value};

/// `src[b]`
pub(super) fn tile(code: &HazardProgram, r: &TileRef) -> String {
    let data = &code.kernel.tiles[r.tile];
    match r.element {
        Some(e) if data.count > 1 => match scalar(code, e) {
            Some(n) => format!("`{}[{n}]`", data.name),
            None if is_ring(code, r) => format!("a slot of ring `{}`", data.name),
            None => format!("a tile of `{}`", data.name),
        },
        _ => format!("`{}`", data.name),
    }
}

/// Whether these are the slots of a ring.
fn is_ring(code: &HazardProgram, r: &TileRef) -> bool {
    let data = &code.kernel.tiles[r.tile];
    code.kernel.events.values().any(|e| e.purpose == Purpose::RingFull && e.name == data.name)
}

/// A scalar as the source may spell it: a constant or a name.
pub(super) fn scalar(code: &HazardProgram, v: Value) -> Option<String> {
    match code.defs[v] {
        Def::Const(n) => n.constant().map(|n| n.to_string()),
        _ => code.kernel.values[v].name.as_ref().map(|n| n.to_string()),
    }
}

/// `TLOAD`, or what else a statement is.
pub(super) fn operation(op: &Op) -> String {
    match op {
        Op::Inst(inst) => inst.instr.get().written_name().to_owned(),
        Op::Copy(_) => "the copy".to_owned(),
        Op::Mma(_) => "the product".to_owned(),
        Op::Load { .. } | Op::TileGet { .. } => "the read of an element".to_owned(),
        Op::Store { .. } | Op::TileSet { .. } => "the write to an element".to_owned(),
        Op::Atomic { op, .. } => format!("`atomic_{op}`"),
        Op::Print { .. } => "`print`".to_owned(),
        Op::Sync(sync) => format!("`{}`", sync.word()),
        _ => "this".to_owned(),
    }
}

/// Whether it accesses one element, so that it has no name of its own.
fn is_of_element(op: &Op) -> bool {
    matches!(op, Op::Load { .. } | Op::Store { .. } | Op::TileGet { .. } | Op::TileSet { .. })
}

/// ``TADD may read `p` ``, ``an element of `p` may be read``; `verb` with its participle.
pub(super) fn may(op: &Op, (verb, participle): (&str, &str), name: &str) -> String {
    if is_of_element(op) {
        return format!("an element of {name} may be {participle}");
    }
    format!("{} may {verb} {name}", operation(op))
}

/// ``TADD reads `p` ``, ``an element of `p` is read``; `verb` with its participle.
pub(super) fn does(op: &Op, (verb, participle): (&str, &str), name: &str) -> String {
    if is_of_element(op) {
        return format!("an element of {name} is {participle}");
    }
    format!("{} {verb} {name}", operation(op))
}

/// `TLOAD has written it`, `an element of it is written`; `name` is what is spoken of in [`may`].
pub(super) fn has(op: &Op, participle: &str, own: &str, name: &str) -> String {
    let shared = if own == name { "it".to_owned() } else { format!("{own}, which shares its bytes") };
    if is_of_element(op) {
        let comma = if own == name { "" } else { "," };
        return format!("an element of {shared}{comma} is {participle}");
    }
    format!("{} has {participle} {shared}", operation(op))
}

/// `full[b]`, as it is written.
pub(super) fn reference(code: &HazardProgram, e: EventRef) -> Option<String> {
    let data = &code.kernel.events[e.event];
    match e.element {
        None => Some(data.name.to_string()),
        // An array of one is an array.
        Some(v) => scalar(code, v).map(|n| format!("{}[{n}]", data.name)),
    }
}

/// `full[1]`, or `` slot 1 of ring `loads` ``.
pub(super) fn element(walk: &HazardInterpreter, element: u32) -> String {
    let (event, n) = walk.carried.elements[element as usize];
    let data = &walk.code.kernel.events[event];
    match data.purpose {
        Purpose::RingFull | Purpose::RingEmpty => format!("slot {n} of ring `{}`", data.name),
        _ if data.count > 1 => format!("`{}[{n}]`", data.name),
        _ => format!("`{}`", data.name),
    }
}

/// `pipe V`, `pipe V of role consumer`
pub(super) fn pipe(walk: &HazardInterpreter, site: usize) -> String {
    let s = &walk.code.sites[site];
    match (s.pipe, s.role) {
        (Some(p), Some(r)) => format!("pipe {p} of role `{}`", walk.code.kernel.roles[r].name),
        (Some(p), None) => format!("pipe {p}"),
        (None, _) => "all pipes".to_owned(),
    }
}

/// The iterations of two sites: `iteration j` and `iteration j + 2` of the innermost loop around both.
pub(super) fn iterations(
    walk: &HazardInterpreter,
    first: (usize, &[i64]),
    second: (usize, &[i64]),
) -> Option<(String, String, i64)> {
    let (a, b) = (&walk.code.sites[first.0].loops, &walk.code.sites[second.0].loops);
    let common: Vec<usize> = a.iter().zip(b).take_while(|(x, y)| x == y).map(|(x, _)| *x).collect();
    // The outermost loop in which they are apart is the one that tells them apart.
    let apart = common.iter().copied().find(|&l| first.1[l] != second.1[l]);
    let l = apart.or(common.last().copied())?;
    let distance = second.1[l] - first.1[l];
    let name = match walk.code.loops[l].counted {
        Some(c) => walk.code.kernel.values[c.index].name.as_ref().map(|n| n.to_string()),
        None => None,
    };
    let name = name.unwrap_or_else(|| "n".to_owned());
    let later = match distance {
        0 => format!("iteration {name}"),
        d if d > 0 => format!("iteration {name} + {d}"),
        d => format!("iteration {name} - {}", -d),
    };
    Some((format!("iteration {name}"), later, distance))
}

/// Whether there is a `break`.
fn leaves_early(region: &Region) -> bool {
    region.iter().any(|s| matches!(s.op, Op::Break(_)) || s.op.regions().any(leaves_early))
}

/// The iteration in which something is found, as a run of the kernel would meet it; after loops, how long they were.
pub(super) fn when(walk: &HazardInterpreter, f: &Finding) -> Option<String> {
    let code = walk.code;
    let site = &code.sites[f.site as usize];
    let named = |l: usize| {
        let name = code.loops[l].counted.and_then(|c| code.kernel.values[c.index].name.as_ref());
        name.map(|n| format!("`{n}`"))
    };
    // A `while` has no name; which of them it is, the statement tells.
    let name = |l: usize| named(l).unwrap_or_else(|| "the `while`".to_owned());
    let at_end = matches!(f.fault, HazardFault::LeftUp);
    if let Some(&l) = site.loops.last().filter(|_| !at_end) {
        let outer: Vec<String> = site
            .loops
            .iter()
            .rev()
            .skip(1)
            .filter(|o| f.at[**o] > 0)
            .map(|o| {
                let outer = named(*o).unwrap_or_else(|| "the `while` around it".to_owned());
                format!(", in the {} of {outer}", ordinal(f.at[*o]))
            })
            .collect();
        return Some(format!("in the {} iteration of {}{}", ordinal(f.at[l]), name(l), outer.concat()));
    }
    // The loops that have gone on with this event: what is left depends on how long they were.
    let event = walk.carried.elements[f.element? as usize].0;
    let mut loops: Vec<usize> = Vec::new();
    for s in &code.sites[..] {
        let own = matches!(&s.stmt.op, Op::Sync(op) if op.event().is_some_and(|e| e.event == event));
        if own && let Some(&l) = s.loops.first().filter(|l| !loops.contains(l)) {
            loops.push(l);
        }
    }
    let known =
        |l: &usize| code.loops[*l].counted.is_some_and(|c| !matches!(code.defs[code.root(c.hi)], Def::Const(_)));
    let &[l] = &loops.into_iter().filter(known).collect::<Vec<_>>()[..] else { return None };
    // A loop that may be left early may have had more iterations than were gone through.
    if leaves_early(&code.kernel.body) {
        return None;
    }
    Some(format!(
        "when {} has {}",
        name(l),
        if f.at[l] == 1 { "1 iteration".to_owned() } else { format!("{} iterations", f.at[l]) }
    ))
}

/// `1st`, of 0.
fn ordinal(n: i64) -> String {
    let n = n + 1;
    let ending = match (n % 10, n % 100) {
        (1, k) if k != 11 => "st",
        (2, k) if k != 12 => "nd",
        (3, k) if k != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// The loop in which a ring is declared, if the fault is that it begins anew in the next iteration before it was over.
pub(super) fn begins_anew(walk: &HazardInterpreter, f: &Finding) -> Option<usize> {
    let (HazardFault::Order(Wrong::Unordered(..)), Some((other, _)), Some(element)) = (&f.fault, &f.other, f.element)
    else {
        return None;
    };
    let data = &walk.code.kernel.events[walk.carried.elements[element as usize].0];
    let declared = |site: u32| span(walk, site) == data.span;
    let ring = data.purpose != Purpose::Author && declared(f.site) && declared(*other);
    walk.code.sites[f.site as usize].loops.last().copied().filter(|_| ring)
}

/// A loop by its counter.
pub(super) fn loop_name(walk: &HazardInterpreter, l: usize) -> String {
    let name = walk.code.loops[l].counted.and_then(|c| walk.code.kernel.values[c.index].name.as_ref());
    name.map_or_else(|| "the `while`".to_owned(), |n| format!("`{n}`"))
}

/// The span of a statement.
pub(super) fn span(walk: &HazardInterpreter, site: u32) -> Span {
    walk.code.sites[site as usize].stmt.span
}

/// A flag or barrier as it is declared: `let ready = event<MTE2, V>;`.
pub(super) fn declaration(name: &str, from: ptoc_isa::Pipe, to: ptoc_isa::Pipe) -> String {
    format!("let {name} = event<{from}, {to}>;")
}

/// A name that nothing in the kernel has.
pub(super) fn fresh(kernel: &Kernel, wanted: &str) -> String {
    let taken = |n: &str| {
        kernel.events.values().any(|e| e.name == n)
            || kernel.tiles.values().any(|t| t.name == n)
            || kernel.tensors.values().any(|t| t.name == n)
            || kernel.values.values().any(|v| v.name.as_ref().is_some_and(|x| x == n))
    };
    let mut name = wanted.to_owned();
    let mut k = 2;
    while taken(&name) {
        name = format!("{wanted}{k}");
        k += 1;
    }
    name
}
