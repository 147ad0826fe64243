//! HBM-PIM: one unit for two banks, 16 lanes of f16, stepped by column commands that go to all units of a pseudo-channel.
//!
//! Blocks are traced one by one ([`trace`]) at the places of [`places`]. A unit's blocks come one after another, in rounds. In a
//! round all units do the same: each block's stores are those of the longest list, or some of them (tails), and what a unit then
//! stores too much meets no element. So a round has one list of expressions ([`node`]), which becomes instructions ([`code`]) and
//! programs ([`program`]).

mod chosen;
pub mod code;
mod emit;
pub mod node;
pub mod order;
pub mod places;
pub mod program;
pub mod trace;

use crate::eval::Numbers;
use crate::rows::{Laid, Rows, reach};
use crate::{Lines, Need, Piece};
use code::{Choice, Trouble};
use node::{BankBurst, Nodes};
use places::{Home, Places};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{Kernel, Placement, TensorDir};
use ptoc_isa::Target;
use ptoc_pim_stream::stream::{Action, ColumnOp, Data, Exec, Pch, Step};
use ptoc_pim_stream::unit::HbmPim;
use ptoc_pim_stream::{Geometry, UnitConfig};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use trace::{Store, Tracer};

/// A block's number and what it stores.
type Traced = (Home, usize, Vec<Store>);

/// A result, or what is wrong with the kernel.
type Res<T = ()> = Result<T, Box<Diagnostic>>;

/// Compiles a launch, whose tensors go to these rows; the other arguments as for [`crate::compile`].
pub fn compile(kernel: &Kernel, values: &[u64], target: &Target, lines: Lines<'_>, rows: &Rows) -> Res<Piece> {
    let Some(g) = crate::geometry(target) else {
        return Err(room(kernel, format!("{} has no memory with units", target.name)));
    };
    let mut numbers = Numbers::new(kernel, values);
    let grid = numbers.grid();
    let blocks = coordinates(kernel, &grid)?;
    // Where the source does not say who runs a block, blocks that share operands may have to be one after the other.
    let choices: Vec<Placement> = match &kernel.on {
        Some(on) => vec![on.clone()],
        None => {
            let single = (0..grid.len()).filter(|&e| grid.len() > 1 && grid[e] > 1).map(Some);
            std::iter::once(None).chain(single).map(|only| places::choose(&grid, only, &g)).collect()
        }
    };
    let mut refused = None;
    for on in &choices {
        match on_units(kernel, &g, &mut numbers, &blocks, on, lines, rows) {
            Err(d) if [codes::LOCK_STEP, codes::UNIT_ROOM].contains(&d.code) => refused = refused.or(Some(d)),
            other => return other,
        }
    }
    Err(refused.unwrap_or_else(|| room(kernel, "there are no blocks".to_owned())))
}

/// The launch with blocks on these units.
fn on_units(
    kernel: &Kernel,
    g: &Geometry,
    numbers: &mut Numbers<'_>,
    blocks: &[Vec<i64>],
    on: &Placement,
    lines: Lines<'_>,
    rows: &Rows,
) -> Res<Piece> {
    let unit = UnitConfig::HbmPim(HbmPim::default());
    let places = places::plan(kernel, g, &unit, numbers, on, blocks, rows.clone())?;

    // A unit's blocks in order, one a round.
    let mut rounds: Vec<Vec<(Home, usize)>> = Vec::new();
    let mut taken: BTreeMap<Home, usize> = BTreeMap::new();
    for (n, at) in blocks.iter().enumerate() {
        let Some(home) = places::home(on, at, g) else {
            return Err(room(kernel, format!("block {at:?} is on a unit that the device does not have")));
        };
        let round = taken.entry(home).or_default();
        if rounds.len() == *round {
            rounds.push(Vec::new());
        }
        rounds[*round].push((home, n));
        *round += 1;
    }
    let pchs: std::collections::BTreeSet<Pch> = taken.keys().map(|h| h.pch).collect();
    let mut strips = Vec::new();
    let (mut versions, mut scalars, mut nodes) = (FxHashMap::default(), (None, None), Nodes::default());
    for round in rounds {
        // Blocks are compared within a round; the order of nodes is that of the source then.
        let mut traced: Vec<Traced> = Vec::new();
        for (home, n) in round {
            let mut tracer = Tracer::new(kernel, &mut nodes, &places, &versions, home);
            numbers.block(&blocks[n], &mut tracer)?;
            traced.push((home, n, tracer.trace.last_stores()));
        }
        let stores = lock_step(kernel, &nodes, &traced, blocks)?;
        idle_units(&places, &pchs, &traced, &stores, g, blocks)?;
        if stores.is_empty() {
            continue;
        }
        let coded = coded(&nodes, &stores, &versions, &mut scalars)?;
        strips.extend(coded.iter().map(|events| program::groups(&order::ordered(events))));
        nodes.forget();
        stores.iter().for_each(|s| *versions.entry(s.at).or_default() += 1);
    }
    let segments = if strips.is_empty() { Vec::new() } else { program::segments(strips) };
    let ops = emit::exec(&segments, lines).map_err(|e| room(kernel, format!("a word does not encode: {e}")))?;
    Ok(piece(kernel, &places, lines, Exec { pchs: pchs.into_iter().collect(), ops }))
}

fn room(kernel: &Kernel, message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(codes::UNIT_ROOM, kernel.span, message).with_label("too much for the device"))
}

/// Most blocks of a launch.
const BLOCKS: i64 = 1 << 22;

/// The grid's coordinates in row-major order.
fn coordinates(kernel: &Kernel, grid: &[i64]) -> Res<Vec<Vec<i64>>> {
    let count = grid.iter().try_fold(1i64, |n, &e| n.checked_mul(e)).filter(|&n| n <= BLOCKS);
    let Some(count) = count else {
        return Err(room(kernel, format!("the grid {grid:?} has more than {BLOCKS} blocks")));
    };
    let at = |mut n: i64| {
        let mut out: Vec<i64> = grid
            .iter()
            .rev()
            .map(|&e| {
                let i = n % e;
                n /= e;
                i
            })
            .collect();
        out.reverse();
        out
    };
    Ok((0..count).map(at).collect())
}

/// The stores that all blocks of a round do: the longest list. A block with fewer has those that it has in the same order.
fn lock_step(kernel: &Kernel, nodes: &Nodes, traced: &[Traced], blocks: &[Vec<i64>]) -> Res<Vec<Store>> {
    let Some((_, leader, longest)) = traced.iter().max_by_key(|(_, n, s)| (s.len(), usize::MAX - n)) else {
        return Ok(Vec::new());
    };
    for (_, n, stores) in traced {
        let mut rest = longest.iter();
        for s in stores {
            let mut skipped = None;
            let found = rest.by_ref().any(|l| {
                let same = (l.at, l.node) == (s.at, s.node);
                skipped.get_or_insert(*l);
                same
            });
            if found {
                continue;
            }
            let mut d = Diagnostic::error(codes::LOCK_STEP, s.span, "blocks that run in lock step do different things")
                .with_label(format!("block {:?} stores {} to {}", blocks[*n], nodes.show(s.node, 3), s.at))
                .with_note("one column command steps all units of the pseudo-channels, at one row and column");
            d = match skipped {
                Some(l) => d.with_note(format!(
                    "block {:?} stores {} to {} in its place",
                    blocks[*leader],
                    nodes.show(l.node, 3),
                    l.at
                )),
                None => d.with_note(format!("block {:?} stores nothing more", blocks[*leader])),
            };
            let help = match kernel.on {
                Some(_) => "give such blocks to one unit, one after the other: a stride of 0 in `on`",
                None => "say with `on` and `at` which blocks run together and where their operands are",
            };
            return Err(Box::new(d.with_help(help)));
        }
    }
    Ok(longest.clone())
}

/// Units that have no block, or a shorter one, store what the others do: it must meet no element.
fn idle_units(
    places: &Places,
    pchs: &std::collections::BTreeSet<Pch>,
    traced: &[Traced],
    stores: &[Store],
    g: &Geometry,
    blocks: &[Vec<i64>],
) -> Res {
    let own: BTreeMap<Home, &Vec<Store>> = traced.iter().map(|(h, _, s)| (*h, s)).collect();
    for &pch in pchs {
        for unit in 0..g.banks_of_pch() / 2 {
            let home = Home { pch, unit };
            let done = own.get(&home).map_or(&[][..], |s| s);
            if done.len() == stores.len() {
                continue;
            }
            let mut rest = done.iter().peekable();
            for s in stores {
                if rest.next_if(|d| (d.at, d.node) == (s.at, s.node)).is_some() || places.elements(home, s.at) == 0 {
                    continue;
                }
                let first = traced.first().map_or(&[][..], |(_, n, _)| &blocks[*n][..]);
                let message = format!(
                    "unit {home} would store to {} too, where elements are that no block of this round has",
                    s.at
                );
                return Err(Box::new(
                    Diagnostic::error(codes::LOCK_STEP, s.span, message)
                        .with_label(format!("stored by block {first:?} and those in lock step with it"))
                        .with_note("units without a block execute the same commands")
                        .with_help("let every unit of the pseudo-channels have a block in each round, or none at all"),
                ));
            }
        }
    }
    Ok(())
}

/// Instructions for a round, cut as small as the registers want.
fn coded(
    nodes: &Nodes,
    stores: &[Store],
    versions: &FxHashMap<BankBurst, u32>,
    scalars: &mut (Option<u16>, Option<u16>),
) -> Res<Vec<Vec<code::Event>>> {
    let mut trouble: Option<Trouble> = None;
    for choice in Choice::all(stores.len()) {
        let mut now = *scalars;
        match code::round(nodes, stores, versions, &mut now, choice) {
            Ok(events) => {
                *scalars = now;
                return Ok(events);
            }
            // What a single store needs is what counts.
            Err(t) if choice.stores == 1 || trouble.is_none() => trouble = Some(t),
            Err(_) => {}
        }
    }
    let d = match trouble {
        Some(Trouble::Stale(span)) => {
            Diagnostic::error(codes::UNIT_REGISTERS, span, "a burst is overwritten before all uses of what it held")
                .with_label("needed again after that")
                .with_help("store to another tensor, or let the host run this kernel: `#[on(host)]`")
        }
        Some(Trouble::Registers(needed, span)) => {
            let have = 2 * code::REGISTERS;
            let message = format!("at least {needed} vectors are live here, and a unit has {have} registers");
            Diagnostic::error(codes::UNIT_REGISTERS, span, message)
                .with_label("one more than there are")
                .with_note(format!("GRF_A and GRF_B have {} registers of 16 lanes each", code::REGISTERS))
                .with_help(
                    "compute in smaller steps and store between them, or let the host run this kernel: `#[on(host)]`",
                )
        }
        // Something is always tried.
        None => return Ok(Vec::new()),
    };
    Err(Box::new(d))
}

fn piece(kernel: &Kernel, places: &Places, lines: Lines<'_>, exec: Exec) -> Piece {
    let mut piece = Piece { wants: Vec::new(), host: Vec::new(), steps: Vec::new(), gives: Vec::new() };
    for (n, t) in kernel.tensors.values().enumerate() {
        let number = n as u32;
        let brings =
            |op: &ColumnOp| matches!(op, ColumnOp::Wr { data: Data::Tensor { tensor, .. }, .. } if *tensor == number);
        if exec.ops.iter().any(brings) {
            piece.host.push(number);
        }
        let Some(placement) = places.placement(n) else { continue };
        let laid = Laid { rows: reach(placement), placement: placement.clone() };
        let need = Need { tensor: number, laid, place: lines(t.span) };
        if matches!(t.dir, TensorDir::In | TensorDir::InOut) {
            piece.wants.push(need.clone());
        }
        if matches!(t.dir, TensorDir::Out | TensorDir::InOut) {
            piece.gives.push(need);
        }
    }
    if !exec.ops.is_empty() {
        piece.steps.push(Step { place: lines(kernel.span), action: Action::Exec(exec) });
    }
    piece
}
