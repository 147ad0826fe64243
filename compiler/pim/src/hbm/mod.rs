//! HBM-PIM: one unit for two banks, 16 lanes of f16, stepped by column commands that go to all units of a
//! pseudo-channel.
//!
//! Blocks are traced one by one ([`trace`]) at the places of [`places`]. A unit's blocks come one after another, in
//! rounds. In a round all units do the same: each block's stores are those of the longest list, or some of them
//! (tails), and what a unit then stores too much meets no element. So a round has one list of expressions ([`node`]),
//! which becomes instructions ([`code`]) and programs ([`program`]); [`schedule`] puts rounds together. Pseudo-channels
//! whose blocks differ have lists of their own, one behind the other.

mod chosen;
pub mod code;
mod congruent;
mod contraction;
pub mod described;
mod emit;
pub mod node;
pub mod order;
pub mod places;
pub mod program;
pub mod refusals;
mod row_sharing;
mod schedule;
mod sums;
pub mod trace;
pub mod turn;
pub mod usage;

use crate::eval::BlockScalars;
use crate::rows::{FreeRows, Laid, reach};
use crate::{LaunchFragment, Lines, TensorPlace};
use contraction::Orientation;
use places::Places;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{ElementPlacement, Kernel, Op, Stmt, TensorData, TensorDir};
use ptoc_isa::{Loc, Reduce, Sem, Target};
use ptoc_pim_stream::stream::{Action, ColumnOp, Data, Exec, Pch, StreamStep, TensorDecl};
use ptoc_pim_stream::unit::HbmPim;
use ptoc_pim_stream::{Geometry, UnitConfig};
use row_sharing::{Layouts, LineOrder};
use schedule::{Dealt, ScheduledLaunch, ScheduledWork, Stored};
use std::collections::{BTreeMap, BTreeSet};
use usage::Usage;

/// A result, or what is wrong with the kernel.
type Res<T = ()> = Result<T, Box<Diagnostic>>;

/// Compiles a launch, whose tensors go to these rows; the other arguments as for [`crate::compile`].
pub fn compile(
    kernel: &Kernel,
    values: &[u64],
    target: &Target,
    lines: Lines<'_>,
    rows: &FreeRows,
) -> Res<LaunchFragment> {
    let g = geometry(kernel, target)?;
    let mut numbers = BlockScalars::new(kernel, values);
    let grid = numbers.grid();
    let blocks = coordinates(kernel, &grid)?;
    let orientation = Orientation::of_launch(kernel, &mut numbers, blocks.first())?;
    // Where the source does not say who runs a block, blocks that share operands may have to be one after the other.
    let choices: Vec<ElementPlacement> = match &kernel.on {
        Some(on) => vec![on.clone()],
        None => {
            // Of a product one dimension may have a single block, and the other's blocks share what lies in the banks.
            let product = orientation.has_products();
            let single = (0..grid.len()).filter(|&e| grid.len() > 1 && (grid[e] > 1 || product)).map(Some);
            std::iter::once(None).chain(single).map(|only| places::choose(&grid, only, &g)).collect()
        }
    };
    // Rows that lie beside each other are for sums along them. Where those are not all that a kernel stores, both ways
    // are emitted and compared.
    let sums = count(&kernel.body, &|sem| matches!(sem, Sem::RowReduce(Reduce::Sum) | Sem::Matmul | Sem::MatmulAcc));
    // So are they for a single block, of which it is not said what its unit has and what the host brings.
    let stores = count(&kernel.body, &|sem| matches!(sem, Sem::Store));
    let compared = stores > sums || sums > 1 || blocks.len() == 1;
    let ways: &[LineOrder] = match (sums > 0, blocks.len()) {
        (false, _) => &[LineOrder::Apart, LineOrder::Together],
        (true, 1) => &[LineOrder::Beside, LineOrder::Interleaved, LineOrder::Apart],
        (true, _) => &[LineOrder::Beside, LineOrder::Alone, LineOrder::Apart],
    };
    let mut refused = None;
    for together in [true, false] {
        for on in &choices {
            let of = |order| {
                let layouts = Layouts { on, lines: order, orientation: &orientation, g: &g };
                on_units(kernel, target, &mut numbers, &blocks, layouts, together, lines, rows)
            };
            let (mut best, mut failed) = (None, None);
            for made in ways.iter().copied().map(of) {
                match made {
                    Ok(None) => {}
                    // Without vectors of the host nothing but results goes through the odd banks.
                    Ok(Some(made)) if if sums > 0 { !compared } else { made.host.is_empty() } => return Ok(made),
                    Ok(Some(made)) => best = best.into_iter().chain([made]).min_by_key(LaunchFragment::clocks),
                    Err(d) => failed = Some(d),
                }
                // What does not go in one place does not go in the other.
                if sums == 0 && failed.is_some() {
                    break;
                }
            }
            match (best, failed) {
                (Some(best), _) => return Ok(best),
                (None, Some(d)) if retried(&d, &orientation) => {
                    refused = refused.or(Some(d));
                }
                (None, Some(d)) => return Err(d),
                (None, None) => {}
            }
        }
    }
    Err(refused.unwrap_or_else(|| room(kernel, "there are no blocks".to_owned())))
}

/// Whether other units for the blocks may do it. Of a product's operands one has to lie in the banks, which it does not
/// where blocks of other units share its parts.
fn retried(d: &Diagnostic, orientation: &Orientation) -> bool {
    [codes::LOCK_STEP, codes::UNIT_ROOM].contains(&d.code)
        || (orientation.has_products() && [codes::UNIT_LANES, codes::UNIT_REACH].contains(&d.code))
}

/// Instructions of a meaning, wherever they stand.
fn count(region: &[Stmt], is: &dyn Fn(&Sem) -> bool) -> usize {
    let of = |stmt: &Stmt| match &stmt.op {
        Op::Inst(inst) => usize::from(is(&inst.instr.get().sem)),
        op => op.regions().map(|r| count(r, is)).sum(),
    };
    region.iter().map(of).sum()
}

impl LaunchFragment {
    /// Clocks that its column commands take, roughly.
    fn clocks(&self) -> u64 {
        self.usage.as_ref().map_or(0, |u| u.clocks)
    }
}

/// The launch with blocks on these units: one list of commands for all pseudo-channels, or for each of them its own.
/// `None` if nothing there is to be interleaved.
#[expect(clippy::too_many_arguments, reason = "what is known of a launch")]
fn on_units(
    kernel: &Kernel,
    target: &Target,
    numbers: &mut BlockScalars<'_>,
    blocks: &[Vec<i64>],
    layouts: Layouts<'_>,
    together: bool,
    lines: Lines<'_>,
    rows: &FreeRows,
) -> Res<Option<LaunchFragment>> {
    let unit = UnitConfig::HbmPim(HbmPim::default());
    let Layouts { on, g, .. } = layouts;
    // As many vectors as were left of each file.
    let registers =
        [Loc::GrfA, Loc::GrfB].map(|file| (target.capacity(file) / ptoc_pim_stream::stream::BURST as u64) as usize);
    let places = places::plan(kernel, &unit, numbers, layouts, blocks, rows.clone())?;
    let placed = |(n, t): (usize, &TensorData)| t.dir == TensorDir::In && places.placement(n).is_some();
    let several = kernel.tensors.values().enumerate().filter(|t| placed(*t)).count() > 1;
    if matches!(layouts.lines, LineOrder::Interleaved if !places.interleaved)
        || matches!(layouts.lines, LineOrder::Alone if !several)
    {
        return Ok(None);
    }
    // A unit's blocks in order. Where the compiler deals them out, those of a round differ in their units alone: a unit
    // of fewer blocks waits for the others, so that what the host brings to all of them is the same.
    let mut dealt: Dealt = BTreeMap::new();
    let grid = numbers.grid();
    for (n, at) in blocks.iter().enumerate() {
        let Some(home) = places::home(on, at, g) else {
            return Err(room(kernel, format!("block {at:?} is on a unit that the device does not have")));
        };
        let own = dealt.entry(home).or_default();
        if kernel.on.is_none() {
            own.resize(places::round(on, &grid, at), None);
        }
        own.push(Some(n));
    }
    let launch = ScheduledLaunch { kernel, g, places: &places, blocks, dealt: &dealt, registers };
    let all: BTreeSet<Pch> = dealt.keys().map(|h| h.pch).collect();
    numbers.again();
    let mut stored = Stored::default();
    let mut lists: Vec<(BTreeSet<Pch>, Vec<ScheduledWork>)> = Vec::new();
    if together || all.len() < 2 {
        let works = launch.works(numbers, &all, lines, &mut stored)?;
        lists.push((all, works));
    } else {
        for pch in all {
            let one = BTreeSet::from([pch]);
            let works = launch.works(numbers, &one, lines, &mut stored)?;
            match lists.iter_mut().find(|(_, w)| *w == works) {
                Some((pchs, _)) => pchs.extend(one),
                None => lists.push((one, works)),
            }
        }
    }
    let (mut temps, mut actions) = (Vec::new(), Vec::new());
    for (pchs, works) in lists {
        let last = dealt.keys().rfind(|h| pchs.contains(&h.pch));
        for work in works {
            match work {
                ScheduledWork::Commands(ops) => {
                    actions.push(Action::Exec(Exec { pchs: pchs.iter().copied().collect(), ops }))
                }
                ScheduledWork::Turn(turn) => {
                    let Some(last) = last else { continue };
                    let (decl, action) = turn.action(*last, (kernel.tensors.len() + temps.len()) as u32, g);
                    temps.push(decl);
                    actions.push(action);
                }
            }
        }
    }
    let own = dealt.values().map(|own| own.iter().flatten().count());
    let usage = Usage::of((kernel, &places), own, actions.iter(), g);
    let made = piece(kernel, &places, &stored, lines, temps, actions);
    Ok(Some(LaunchFragment { usage: Some(usage), ..made }))
}

fn geometry(kernel: &Kernel, target: &Target) -> Res<Geometry> {
    crate::geometry(target).ok_or_else(|| room(kernel, format!("{} has no memory with units", target.name)))
}

fn room(kernel: &Kernel, message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(codes::UNIT_ROOM, kernel.span, message).with_label("too much for the device"))
}

/// Most blocks of a launch.
const BLOCKS: i64 = 1 << 22;

/// The grid's coordinates in row-major order.
pub(crate) fn coordinates(kernel: &Kernel, grid: &[i64]) -> Res<Vec<Vec<i64>>> {
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

fn piece(
    kernel: &Kernel,
    places: &Places,
    stored: &Stored,
    lines: Lines<'_>,
    temps: Vec<TensorDecl>,
    actions: Vec<Action>,
) -> LaunchFragment {
    let mut piece = LaunchFragment { temps, ..LaunchFragment::default() };
    let covered = places.covered(stored);
    let brings = |op: &ColumnOp| match op {
        ColumnOp::Wr { data: Data::Tensor { tensor, .. }, .. } => Some(*tensor),
        _ => None,
    };
    let brought: BTreeSet<u32> = actions
        .iter()
        .flat_map(|a| match a {
            Action::Exec(e) => &e.ops[..],
            _ => &[],
        })
        .filter_map(brings)
        .collect();
    for (n, t) in kernel.tensors.values().enumerate() {
        let number = n as u32;
        if brought.contains(&number) {
            piece.host.push(number);
        }
        let Some(placement) = places.placement(n) else { continue };
        let laid = Laid { rows: reach(placement), placement: placement.clone() };
        let need = TensorPlace { tensor: number, laid, place: lines(t.span) };
        if matches!(t.dir, TensorDir::In | TensorDir::InOut) {
            piece.wants.push(need.clone());
        }
        if matches!(t.dir, TensorDir::Out | TensorDir::InOut) {
            piece.gives.push(need);
            if !covered[n] {
                piece.in_part.insert(number);
            }
        }
    }
    let place = lines(kernel.span);
    piece.steps = actions.into_iter().map(|action| StreamStep { place, action }).collect();
    piece
}
