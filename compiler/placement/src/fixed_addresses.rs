//! Pre-assigned addresses: whether addresses that the author gives the planner (`#[place(planned)]`, `rest = [..]`) are
//! those of a plan.
//!
//! A pinned tile is an automatic one in all but the search for its place. So it has an address for each element of each
//! copy, one behind the other as the planner lays them, and its bytes are its own as long as it lives.

use crate::liveness::{Interval, Liveness};
use crate::memories;
use crate::placement::{footprint, in_place, pitch};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{AddrKind, Kernel, Tile, TileData};
use ptoc_isa::Target;

/// Where the planner is to put the first byte of `tile`, if that is said.
pub fn base(kernel: &Kernel, tile: Tile) -> Option<u64> {
    kernel.pin(tile)?.first().copied()
}

/// The addresses of the tiles of a plan: every element of every copy, in order, from `base` on.
pub fn addresses(data: &TileData, base: u64, align: u64) -> impl Iterator<Item = u64> {
    let (step, n) = (pitch(data, align), u64::from(data.count) * u64::from(data.stages));
    (0..n).map(move |k| base.saturating_add(k.saturating_mul(step)))
}

/// What a tile has: its life, and the bytes that it takes then.
struct Held {
    tile: Tile,
    interval: Interval,
    ranges: Vec<(u64, u64)>,
}

/// Errors for pins that no plan can have: too few or too many addresses, gaps, and bytes that two tiles want at once.
pub fn check(kernel: &Kernel, live: &Liveness, target: &Target) -> Vec<Diagnostic> {
    if kernel.pins.is_empty() {
        return Vec::new();
    }
    let mut errors: Vec<Diagnostic> = kernel.pins.iter().filter_map(|(t, at)| count(kernel, *t, at, target)).collect();
    if !errors.is_empty() {
        return errors;
    }
    let slots = in_place(kernel, live);
    let held: Vec<Held> = kernel.tiles.keys().filter_map(|t| held(kernel, live, t, target)).collect();
    for (n, a) in held.iter().enumerate() {
        for b in &held[n + 1..] {
            let (x, y) = (&kernel.tiles[a.tile], &kernel.tiles[b.tile]);
            // What the author fixed may lie as it likes among its like.
            let fixed = x.addr != AddrKind::Auto && y.addr != AddrKind::Auto;
            let one = slots[a.tile] == slots[b.tile];
            if target.home(x.ty.loc) == target.home(y.ty.loc)
                && !fixed
                && !one
                && let Some(common) = a.interval.meet(b.interval)
                && let Some(bytes) = meet(&a.ranges, &b.ranges)
            {
                errors.push(conflict(x, y, bytes, live.spans.get(common.start as usize).copied(), target));
            }
        }
    }
    errors
}

fn held(kernel: &Kernel, live: &Liveness, tile: Tile, target: &Target) -> Option<Held> {
    let data = &kernel.tiles[tile];
    let interval = live.intervals[tile]?;
    let align = memories::align(target, data.ty.loc);
    let ranges = match &data.addr {
        AddrKind::Auto => {
            let base = base(kernel, tile)?;
            vec![(base, base.saturating_add(footprint(data, align)))]
        }
        AddrKind::Fixed(at) => at.iter().map(|&a| (a, a.saturating_add(data.ty.bytes()))).collect(),
        AddrKind::Dynamic => return None,
    };
    Some(Held { tile, interval, ranges })
}

/// The first common bytes.
fn meet(a: &[(u64, u64)], b: &[(u64, u64)]) -> Option<(u64, u64)> {
    let common = a.iter().flat_map(|x| b.iter().map(move |y| (x.0.max(y.0), x.1.min(y.1))));
    common.filter(|(start, end)| start < end).min()
}

fn title(data: &TileData) -> String {
    match data.hidden {
        true => format!("the hidden tile `{}`", data.name),
        false => format!("`{}`", data.name),
    }
}

fn count(kernel: &Kernel, tile: Tile, at: &[u64], target: &Target) -> Option<Diagnostic> {
    let data = &kernel.tiles[tile];
    let wanted: Vec<u64> = addresses(data, at.first().copied()?, memories::align(target, data.ty.loc)).collect();
    if wanted == at {
        return None;
    }
    let list = |at: &[u64]| at.iter().map(|a| format!("{a:#x}")).collect::<Vec<_>>().join(", ");
    let (n, m) = (wanted.len(), at.len());
    let message = match n == m {
        true => format!("the addresses of {} have gaps or overlap: {}", title(data), list(at)),
        false => format!("{} has {m} address{}, and needs {n}", title(data), if m == 1 { "" } else { "es" }),
    };
    let (elements, copies) = (data.count, data.stages);
    let d = Diagnostic::error(codes::PIN_COUNT, data.span, message)
        .with_label(match (elements, copies) {
            (1, 1) => "one tile".to_owned(),
            (1, _) => format!("{copies} copies, for the stages of its pipeline"),
            (_, 1) => format!("{elements} elements"),
            _ => format!("{elements} elements in each of {copies} copies"),
        })
        .with_note("elements and copies lie one behind the other, copy by copy");
    Some(match wanted.len() {
        1..=16 => d.with_help(format!("from {:#x} on these are: {}", wanted[0], list(&wanted))),
        _ => d,
    })
}

fn conflict(
    x: &TileData,
    y: &TileData,
    (start, end): (u64, u64),
    at: Option<ptoc_diagnostics::Span>,
    target: &Target,
) -> Diagnostic {
    let memory = memories::name(target, x.ty.loc);
    let message = format!(
        "{} and {} are in use at the same time, and have bytes {start:#x}..{end:#x} of {memory} in common",
        title(x),
        title(y)
    );
    // Hidden tiles have the whole expression; names come first.
    let (first, second) = if x.hidden && !y.hidden { (y, x) } else { (x, y) };
    let mut d = Diagnostic::error(codes::PIN_CONFLICT, first.span, message)
        .with_label(format!("{}: {}", title(first), first.ty))
        .with_secondary(second.span, format!("{}: {}", title(second), second.ty));
    if let Some(at) = at.filter(|s| !s.range().is_empty()) {
        d = d.with_secondary(at, "both are in use here");
    }
    d.with_note(
        "the addresses of a plan are those of automatic tiles, whose bytes are their own from the first use to the \
        last",
    )
    .with_help("move one of them, or remove its address: the compiler then finds a place for it")
}
