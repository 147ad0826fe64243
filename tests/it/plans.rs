//! The plan checker against the interpreter: tiles of the programs are moved onto others, and each is moved off its
//! alignment and out of its memory. What the checker lets pass computes the same; what it refuses is seen to compute
//! something else as often as one run of it, in program order, can show.

use ptoc_checks::plan_check;
use ptoc_checks::plan_check::PlanFault;
use ptoc_driver::backend::INTERP;
use ptoc_driver::launch::{CompiledPlan, RunOptions};
use ptoc_ir::tile::{AddrKind, Kernel, SyncMode, Tile};
use ptoc_isa::Target;
use ptoc_placement::Placement;
use ptoc_placement::{memories, physical, placement};
use ptoc_tensor::Tensor;
use ptoc_tests::programs::{Prepared, files, kernels, runs};
use ptoc_tests_budget::cases;

/// A run that takes more of the interpreter's steps is left out.
const STEPS: u64 = 3_000_000;

/// Moves of a kernel that are tried, evenly over all: few, and as many with the full budget.
const FEW: u64 = 4;
const MANY: u64 = 16;

fn planned(kernel: &Kernel, placement: &Placement) -> Vec<Tile> {
    let planned = |t: &Tile| kernel.tiles[*t].addr == AddrKind::Auto && placement.intervals[*t].is_some();
    kernel.tiles.keys().filter(planned).collect()
}

/// `tile` begins at `at`.
fn moved(placement: &Placement, tile: Tile, at: u64) -> Placement {
    let mut out = placement.clone();
    let from = out.offsets[tile][0];
    for offset in &mut out.offsets[tile] {
        *offset = at + (*offset - from);
    }
    out
}

/// The tensors afterwards, and how many steps that took. `None` if the run stops.
fn results(run: &mut Prepared) -> Option<(Vec<Tensor>, u64)> {
    let mut after = run.before.clone();
    let compiled = CompiledPlan::new(&mut run.session, &run.plan, INTERP).ok()?;
    let outcome = compiled.run(&mut run.session, &mut after, &RunOptions::default(), &mut |_| {}, None).ok()?;
    let steps = outcome.stats.get("steps").and_then(|steps| steps.as_u64());
    Some((after, steps.expect("the interpreter counts its steps")))
}

/// Moves within one memory: harmless ones, refused ones, how many of these are seen, and those refused in kernels whose
/// author orders the pipes.
#[derive(Default, Debug)]
struct Count {
    passed: u32,
    refused: u32,
    seen: u32,
    unordered: u32,
}

fn onto_others(run: &mut Prepared, count: &mut Count) {
    let Some((want, steps)) = results(run) else { return };
    if steps > STEPS {
        return;
    }
    let target = run.session.target.clone();
    for step in 0..run.plan.steps.len() {
        let kernel = run.plan.steps[step].kernel.clone();
        let Ok(good) = placement::plan(&kernel, &target) else { continue };
        let tiles = planned(&kernel, &good);
        let pairs = tiles.iter().flat_map(|t| tiles.iter().map(move |o| (*t, *o)));
        let one_memory = |(t, o): &(Tile, Tile)| t != o && kernel.tiles[*t].ty.loc == kernel.tiles[*o].ty.loc;
        let pairs: Vec<(Tile, Tile)> = pairs.filter(one_memory).collect();
        let moves = cases::<usize>(FEW, MANY);
        for &(tile, other) in pairs.iter().step_by(pairs.len().div_ceil(moves).max(1)) {
            let at = good.offsets[other][0];
            let bad = moved(&good, tile, at);
            let faults = plan_check::check(&kernel, &bad, &target);
            run.plan.steps[step].kernel = physical(&kernel, &bad, &target).into();
            let same = results(run).is_some_and(|(got, _)| {
                want.iter().zip(&got).all(|(want, got)| crate::engine::difference(want, got).is_none())
            });
            let name = &kernel.tiles[tile].name;
            assert!(same || !faults.is_empty(), "{}: {name} at {at:#x} passes, and is wrong", run.name);
            // Where the author orders the pipes every shared byte is refused, and most are seen in no run.
            match (faults.is_empty(), kernel.sync) {
                (true, _) => count.passed += 1,
                (false, SyncMode::Manual) => count.unordered += 1,
                (false, SyncMode::Auto | SyncMode::Inserted) => {
                    count.refused += 1;
                    count.seen += u32::from(!same);
                }
            }
        }
        run.plan.steps[step].kernel = kernel;
    }
}

#[test]
fn what_the_checker_says_of_tiles_on_other_tiles_is_what_happens() {
    let mut count = Count::default();
    for path in files() {
        for mut run in runs(&path) {
            onto_others(&mut run, &mut count);
        }
    }
    println!("{count:?}");
    assert!(count.passed > 20 && count.refused > 50 && count.unordered > 20, "{count:?}");
    // The rest: copies of a pipeline, which the interpreter runs one after the other; values that only another path
    // reads; tiles that a loop writes anew before it reads them, which the checker does not look into.
    assert!(3 * count.seen >= count.refused, "{count:?}");
}

fn off_and_out(kernel: &Kernel, good: &Placement, target: &Target, name: &str) -> u32 {
    let mut count = 0;
    for tile in planned(kernel, good) {
        let ty = kernel.tiles[tile].ty;
        let (capacity, align) = (memories::capacity(target, ty.loc), memories::align(target, ty.loc));
        let at = good.offsets[tile][0];
        let faults = |at| plan_check::check(kernel, &moved(good, tile, at), target);
        if align > 1 {
            let off = faults(at + align / 2);
            assert!(off.iter().any(|f| matches!(f, PlanFault::Unaligned(t, _) if *t == tile)), "{name}: {off:?}");
        }
        // The last place, and the next one.
        let last = (capacity - placement::footprint(&kernel.tiles[tile], align)) / align.max(1) * align.max(1);
        let outside = |f: &PlanFault| matches!(f, PlanFault::Outside(t, _) if *t == tile);
        assert!(!faults(last).iter().any(outside), "{name}");
        assert!(faults(last + align.max(1)).iter().any(outside), "{name}");
        count += 1;
    }
    count
}

#[test]
fn what_is_misaligned_or_outside_is_always_found() {
    let mut count = 0;
    for path in files() {
        for k in kernels(&path) {
            count += off_and_out(&k.placed.kernel, &k.placed.placement, &k.target, &k.name);
        }
    }
    assert!(count > 500, "{count}");
}
