//! Reports memories that overflow: one diagnostic a memory, at its fullest point, with every tile that lives there and
//! repairs that were tried.

mod author;
mod repairs;
mod sizes;

use author::Thrifty;
pub use author::{FixContext, NoSource, Parameter, Statement};
pub use sizes::{check_sizes, smaller};

use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::{Budget, Diagnostic, Span, codes};
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::{Loc, Target, text};
use ptoc_placement::access::tile_accesses;
use ptoc_placement::liveness::{Liveness, Point, for_each_point};
use ptoc_placement::memories;
use ptoc_placement::placement;
use ptoc_placement::placement::{Overflow, footprint};
use ptoc_placement::value_liveness::{Holding, holding};
use std::fmt::Write as _;

/// Tiles that are pointed at; the rest is listed in a note.
const LABELS: usize = 8;
/// Tiles that the note names.
const NAMES: usize = 12;

/// Reports memories that overflow. What is known of the source comes from `author`.
pub fn reports<'o>(
    kernel: &Kernel,
    live: &Liveness,
    target: &Target,
    overflows: impl Iterator<Item = &'o Overflow>,
    author: &dyn FixContext,
    budget: &Budget,
) -> Vec<Diagnostic> {
    let overflows: Vec<&Overflow> = overflows.collect();
    if overflows.is_empty() {
        return Vec::new();
    }
    let values = holding(kernel);
    let author = &Thrifty::new(author, kernel, budget);
    let repairs = repairs::Repairs::new(kernel, live, &values, target, author);
    let tell = |o: &&Overflow| {
        let mut d = report(kernel, live, &values, target, o, author);
        // Reports of one place are shown as one.
        let here = |p: Point| live.spans.get(p as usize);
        for also in overflows.iter().filter(|x| x.loc != o.loc && here(x.peak_point) == here(o.peak_point)) {
            let memory = memories::name(target, also.loc);
            d = d.with_note(format!("{memory} is too small here too: {} of {} bytes", also.needed, also.capacity));
        }
        d.fixes.extend(repairs.of(o));
        d
    };
    overflows.iter().map(tell).collect()
}

fn report(
    kernel: &Kernel,
    live: &Liveness,
    values: &SecondaryMap<Tile, Holding>,
    target: &Target,
    overflow: &Overflow,
    author: &dyn FixContext,
) -> Diagnostic {
    let Overflow { loc, capacity, needed, peak, .. } = *overflow;
    let memory = memories::name(target, loc);
    let align = memories::align(target, loc);
    let at = shown(kernel, live, overflow).unwrap_or(kernel.span);
    let target_name = &target.name;
    let fragmented = peak <= capacity;
    let mut d = if fragmented {
        Diagnostic::error(
            codes::CAPACITY,
            at,
            format!(
                "the tiles of {memory} do not fit around each other: {needed} bytes are needed, {target_name} has \
                {capacity}"
            ),
        )
        .with_label(format!("{peak} bytes are live here, the most at any point"))
        .with_note(
            "no more is live at once than the memory holds, but the gaps between the tiles are too small for the \
             rest: constant addresses, or tiles of very different life, stand in the way",
        )
    } else {
        Diagnostic::error(
            codes::CAPACITY,
            at,
            format!("the tiles live at once need {peak} bytes of {memory}, which has {capacity} on {target_name}"),
        )
        .with_label(format!("{peak} bytes are live here, {} too many", peak - capacity))
    };
    let mut tiles = overflow.live.clone();
    tiles.sort_by_key(|&t| (std::cmp::Reverse(footprint(&kernel.tiles[t], align)), t));
    let point = overflow.peak_point;
    for &tile in tiles.iter().take(LABELS) {
        let text = describe(kernel, live, values, tile, align, point, author);
        let text = format!("{}{text}", of_pool(target, kernel, tile));
        d = d.with_secondary(kernel.tiles[tile].span, text);
    }
    let sum = |of: &dyn Fn(Tile) -> bool| -> u64 {
        tiles.iter().filter(|&&t| of(t)).map(|&t| footprint(&kernel.tiles[t], align)).sum()
    };
    if let Some(rest) = tiles.get(LABELS..).filter(|rest| !rest.is_empty()) {
        let names = rest.iter().take(NAMES).map(|&t| {
            let data = &kernel.tiles[t];
            let line = author.line(data.span).map_or_else(String::new, |n| format!(" (line {n})"));
            format!("{}`{}` {}{line}", of_pool(target, kernel, t), data.name, footprint(data, align))
        });
        let names: Vec<String> = names.collect();
        let more = if rest.len() > NAMES { format!(" and {} more", rest.len() - NAMES) } else { String::new() };
        let bytes = sum(&|t| rest.contains(&t));
        d = d.with_note(format!("{} more live here, {bytes} bytes: {}{more}", rest.len(), names.join(", ")));
    }
    if let Some(pool) = target.pool_of(loc) {
        let of = |l: Loc| format!("{} bytes of {l}", sum(&|t| kernel.tiles[t].ty.loc == l));
        let parts = text::list(pool.locations.iter().map(|l| of(*l)));
        d = d.with_note(format!("{} is one memory for {}: {parts} here", pool.name, text::list(&pool.locations)));
    }
    let hidden = sum(&|t| kernel.tiles[t].hidden);
    if hidden > 0 {
        d = d.with_note(format!(
            "hidden tiles hold intermediate results of the expressions at their places: {hidden} bytes here"
        ));
    }
    let idle = sum(&|t| repairs::idle(kernel, live, values, t, point).is_some());
    if idle > 0 {
        d = d.with_note(format!("{idle} of these bytes hold no value here that is read any more"));
    }
    if target.memory(loc).overridden {
        let what = target.pool_of(loc).map_or_else(|| loc.name().to_owned(), |pool| pool.name.clone());
        d = d.with_note(format!("the capacity of {what} was set to {capacity} for this run"));
    }
    d
}

/// `Mat `, where tiles of several locations lie in one memory.
fn of_pool(target: &Target, kernel: &Kernel, tile: Tile) -> String {
    let loc = kernel.tiles[tile].ty.loc;
    target.pool_of(loc).map_or_else(String::new, |_| format!("{loc} "))
}

/// The statement that is pointed at: of those where as much is live as anywhere, the first that touches a tile.
fn shown(kernel: &Kernel, live: &Liveness, overflow: &Overflow) -> Option<Span> {
    let mut found = None;
    for_each_point(kernel, &mut |point, stmt| {
        let full = || overflow.live.iter().all(|&t| live.intervals[t].is_some_and(|i| i.contains(point)));
        if found.is_none() && point >= overflow.peak_point && !tile_accesses(kernel, stmt).is_empty() && full() {
            found = Some(stmt.span);
        }
    });
    found.or_else(|| live.spans.get(overflow.peak_point as usize).copied())
}

/// `` `b0`: 32768 bytes x 2 stages = 65536 bytes, lines 9 to 14``
fn describe(
    kernel: &Kernel,
    live: &Liveness,
    values: &SecondaryMap<Tile, Holding>,
    tile: Tile,
    align: u64,
    point: Point,
    author: &dyn FixContext,
) -> String {
    let data = &kernel.tiles[tile];
    let each = placement::pitch(data, align);
    let mut text = match data.hidden {
        true => format!("hidden `{}`: {each} bytes", data.name),
        false => format!("`{}`: {each} bytes", data.name),
    };
    let (count, stages) = (data.count, data.stages);
    if count > 1 {
        write!(text, " x {count} elements").ok();
    }
    if stages > 1 {
        write!(text, " x {stages} stages").ok();
    }
    if count > 1 || stages > 1 {
        write!(text, " = {} bytes", footprint(data, align)).ok();
    }
    if let AddrKind::Fixed(at) = &data.addr {
        let list: Vec<String> = at.iter().map(|a| format!("{a:#x}")).collect();
        write!(text, ", at {}", list.join(", ")).ok();
    }
    let line = |p: Option<Point>| p.and_then(|p| author.line(*live.spans.get(p as usize)?));
    let (first, last) = (values[tile].writes.first().copied(), values[tile].reads.last().copied());
    match (line(first), line(last)) {
        (Some(a), Some(b)) if a == b => write!(text, ", line {a}").ok(),
        (Some(a), Some(b)) => write!(text, ", lines {a} to {b}").ok(),
        (Some(a), None) => write!(text, ", from line {a}").ok(),
        _ => None,
    };
    if let Some((before, after)) = repairs::idle(kernel, live, values, tile, point) {
        let why: Vec<String> = [(before, "last read at line"), (after, "written anew at line")]
            .into_iter()
            .filter_map(|(p, what)| Some(format!("{what} {}", line(p)?)))
            .collect();
        text.push_str("; held here for nothing");
        if !why.is_empty() {
            write!(text, " ({})", why.join(", ")).ok();
        }
    }
    text
}
