//! Reports memories that overflow: one diagnostic a memory, at its fullest point, with every tile that lives there and
//! repairs that were tried.

use crate::liveness::Liveness;
use crate::memories;
use crate::placement::{self, Overflow, footprint};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::{Loc, SaViolation, Target, check_size};
use std::fmt::Write as _;

/// Tiles that no placement can help: their memory does not exist (SA-0351) or is smaller than they are (SA-0352).
/// Tiles with constant addresses are judged where the address is written.
pub fn check_sizes(kernel: &Kernel, target: &Target) -> Vec<Diagnostic> {
    let judged = kernel.tiles.iter().filter(|(_, data)| !matches!(data.addr, AddrKind::Fixed(_)));
    judged
        .filter_map(|(_, data)| {
            let violation: SaViolation = check_size(target, data.ty)?;
            let subject = if data.hidden {
                format!("a hidden tile for `{}`", data.name)
            } else {
                format!("tile `{}`", data.name)
            };
            let mut diagnostic = violation.diagnostic(&subject, data.span);
            if data.hidden {
                diagnostic = diagnostic.with_note("the compiler needs this tile to carry out what is written here");
            }
            Some(diagnostic)
        })
        .collect()
}

/// Reports `overflow`.
pub fn report(kernel: &Kernel, live: &Liveness, target: &Target, overflow: &Overflow) -> Diagnostic {
    let Overflow { loc, capacity, needed, peak, .. } = *overflow;
    let memory = memories::name(target, loc);
    let align = memories::align(target, loc);
    let at = live.spans.get(overflow.peak_point as usize).copied().unwrap_or(kernel.span);
    let target_name = &target.name;
    let fragmented = peak <= capacity;
    let mut d = if fragmented {
        Diagnostic::error(
            codes::CAPACITY,
            at,
            format!("the tiles of {memory} do not fit around each other: {needed} bytes are needed, {target_name} has {capacity}"),
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
    for &tile in &tiles {
        d = d.with_secondary(kernel.tiles[tile].span, describe(kernel, tile, align));
    }
    if tiles.iter().any(|&t| kernel.tiles[t].hidden) {
        d = d.with_note("tiles that are called hidden hold intermediate results of the expressions at their places");
    }
    if target.memory(loc).overridden {
        d = d.with_note(format!("the capacity of {loc} was set to {capacity} for this run"));
    }
    for help in repairs(kernel, live, target, loc) {
        d = d.with_help(help);
    }
    d
}

/// `` `b0`: 32768 bytes x 2 stages = 65536 bytes``
fn describe(kernel: &Kernel, tile: Tile, align: u64) -> String {
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
    text
}

/// What would fit, each verified by planning again.
fn repairs(kernel: &Kernel, live: &Liveness, target: &Target, loc: Loc) -> Vec<String> {
    let mut out = Vec::new();
    let fits = |target: &Target, stages: u32| match placement::plan_with(kernel, live, target, stages) {
        Ok(plan) => plan.memory(loc).map(|m| m.extent),
        Err(overflows) if overflows.iter().all(|o| o.loc != loc) => Some(0),
        Err(_) => None,
    };
    let most = kernel.tiles.values().filter(|t| t.ty.loc == loc).map(|t| t.stages).max().unwrap_or(1);
    for stages in (1..most).rev() {
        if let Some(extent) = fits(target, stages) {
            let of = if extent > 0 { format!(", with {extent} bytes") } else { String::new() };
            out.push(match stages {
                1 => format!("it fits without pipelining: `stages = 1`{of}"),
                n => format!("it fits with `stages = {n}`{of}"),
            });
            break;
        }
    }
    let others: Vec<String> = Target::all()
        .iter()
        .filter(|t| t.name != target.name && t.capacity(loc) > 0)
        .filter(|t| fits(t, u32::MAX).is_some())
        .map(|t| format!("{} ({} bytes of {loc})", t.name, t.capacity(loc)))
        .collect();
    if !others.is_empty() {
        out.push(format!("another target has the room: {}", others.join(", ")));
    }
    if out.is_empty() || others.is_empty() {
        out.push("make the tiles smaller, or end the life of one before the next is needed".to_owned());
    }
    out
}
