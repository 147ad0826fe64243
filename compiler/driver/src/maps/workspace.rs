//! The map of a program's workspace: its tensors over the launches that use them.

use crate::launch::{LaunchAccess, PlanStep, Workspace, WorkspacePlace, accesses, linear};
use crate::session::Session;
use ptoc_analysis::{ProgramInstance, ProgramTensor, ScalarSource};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::Tile;
use ptoc_placement::MemoryMap;
use ptoc_placement::liveness::{Interval, Point};
use ptoc_placement::map::{Chosen, MappedMemory, MappedTile, Origin};
use std::ops::Range;

/// Where the tensors are that a program makes.
pub fn map(session: &mut Session, program: &ProgramInstance, span: Span) -> MemoryMap {
    let order = linear(&program.order);
    let uses: Vec<Vec<LaunchAccess>> = program
        .steps
        .iter()
        .map(|step| {
            let kernel = &step.instance.kernel;
            let late = step.scalars.iter().filter_map(|(_, s)| match s {
                ScalarSource::Late(value) => Some(value),
                ScalarSource::Known(_) => None,
            });
            let late = late.chain(step.moved.iter().map(|(_, by)| by));
            let late = late.chain(step.lengths.iter().flat_map(|(_, w)| &w.lengths).map(|(_, n)| n));
            accesses(kernel, &step.tensors, late, &|n| step.windows[n].is_some(), &session.unfilled(kernel))
        })
        .collect();
    let workspace = Workspace::plan(&program.locals, &order, &|n| uses[n].clone());
    let points = points(program, &order, span);
    let tensors = program.locals.iter().zip(&workspace.places).enumerate();
    let tiles = tensors.map(|(k, (local, place))| mapped(k, local, place, &order, &uses)).collect();
    let memory = MappedMemory::workspace(tiles, workspace.bytes, workspace.separate_bytes(), &points);
    MemoryMap {
        kernel: program.name.clone(),
        span,
        target: session.target.name.as_str().into(),
        origins: vec![Origin::Other; points.len()],
        points,
        calls: Vec::new(),
        loops: Vec::new(),
        memories: vec![memory],
        barriers: Vec::new(),
        registers: None,
    }
}

/// The source of each step; of a branch that of the step before it.
fn points(program: &ProgramInstance, order: &[PlanStep], span: Span) -> Vec<Span> {
    let mut points: Vec<Span> = Vec::new();
    for step in order {
        let before = points.last().copied().unwrap_or(span);
        points.push(match step {
            PlanStep::Launch(n) => program.steps[*n].span,
            PlanStep::Fill(k) => program.locals[*k].span,
            _ => before,
        });
    }
    points
}

fn mapped(
    number: usize,
    local: &ProgramTensor,
    place: &WorkspacePlace,
    order: &[PlanStep],
    uses: &[Vec<LaunchAccess>],
) -> MappedTile {
    let run = |r: &Range<usize>| Interval { start: r.start as Point, end: r.end as Point - 1 };
    let live: Vec<Interval> = place.held.iter().map(run).collect();
    let held = live.first().zip(live.last()).map(|(a, b)| Interval { start: a.start, end: b.end });
    let is = |step: &PlanStep, wanted: fn(&LaunchAccess) -> bool| match step {
        PlanStep::Launch(n) => uses[*n].iter().any(|a| a.tensor == number && wanted(a)),
        PlanStep::Fill(k) => *k == number,
        _ => false,
    };
    let extents: Vec<String> = local.shape.iter().map(i64::to_string).collect();
    MappedTile {
        tile: Tile::from_u32(number as u32),
        name: local.name.clone(),
        hidden: false,
        span: local.span,
        ty: format!("{}[{}]", local.dtype, extents.join(", ")).into(),
        each: place.bytes,
        count: 1,
        stages: 1,
        bytes: place.bytes,
        chosen: Chosen::Auto,
        ranges: held.map(|_| (place.offset, place.offset + place.bytes)).into_iter().collect(),
        held,
        live,
        dead: Vec::new(),
        first_write: order.iter().position(|s| is(s, |a| !a.reads)).map(|p| p as Point),
        last_read: order.iter().rposition(|s| is(s, |a| a.reads)).map(|p| p as Point),
        shares: Vec::new(),
    }
}
