//! Plans: a kernel with the addresses of its plan, and the copies of its pipelines as bytes, computes what it computes
//! with storage of its own for each tile; so does every other placement that the checker lets pass.

use super::front::{Source, passes};
use super::{hash, ir::Values};
use ptoc_checks::plan_check;
use ptoc_interp::{Options, TensorArg};
use ptoc_ir::tile::{AddrKind, Kernel, TensorDir, Tile};
use ptoc_isa::Target;
use ptoc_placement::Placement;
use ptoc_placement::physical;

/// Steps and bytes of an interpreted run.
const FUEL: u64 = 200_000;
const MEMORY: u64 = 16 << 20;

/// Bytes of all tensors of a launch.
const TENSORS: u64 = 1 << 18;

/// Placements that are tried beside the planner's.
const MOVES: u64 = 6;

/// Bytes as source text.
pub fn plan(data: &[u8]) {
    let source = Source::new("fuzz.tile", data);
    if source.diagnostics.iter().any(|d| d.is_error()) {
        return;
    }
    let seed = hash(data);
    for name in ["a2a3", "a5"] {
        let target = Target::builtin(name).expect("built in");
        for kernel in source.kernels(target) {
            // With the checks that the passes insert, and the plan.
            let Ok(prepared) = passes(kernel, target) else { continue };
            let (kernel, placement) = (&prepared.placed.kernel, &prepared.placed.placement);
            let Some(values) = Values::choose(kernel, seed, TENSORS) else { continue };
            let Some(want) = run(kernel, &values, seed) else { continue };
            let faults = plan_check::check(kernel, placement, target);
            assert_eq!(faults, [], "{}", prepared.placed);
            same(kernel, placement, target, &values, seed, &want);
            for n in 0..MOVES {
                if let Some(moved) = moved(kernel, placement, seed.rotate_left(7 * n as u32).wrapping_add(n))
                    && plan_check::check(kernel, &moved, target).is_empty()
                {
                    same(kernel, &moved, target, &values, seed, &want);
                }
            }
        }
    }
}

/// The placement with one tile where another is, or next to its end.
fn moved(kernel: &Kernel, placement: &Placement, seed: u64) -> Option<Placement> {
    let auto = |t: &Tile| kernel.tiles[*t].addr == AddrKind::Auto && placement.intervals[*t].is_some();
    let tiles: Vec<Tile> = kernel.tiles.keys().filter(auto).collect();
    let tile = *tiles.get((seed % tiles.len().max(1) as u64) as usize)?;
    let loc = kernel.tiles[tile].ty.loc;
    let others: Vec<Tile> = tiles.into_iter().filter(|t| *t != tile && kernel.tiles[*t].ty.loc == loc).collect();
    let other = *others.get((seed >> 20) as usize % others.len().max(1))?;
    let at = *placement.offsets[other].first()? + [0, 0, 32, 512][(seed >> 40) as usize % 4];
    let from = *placement.offsets[tile].first()?;
    let mut out = placement.clone();
    for offset in &mut out.offsets[tile] {
        *offset = at + (*offset - from);
    }
    Some(out)
}

fn same(kernel: &Kernel, placement: &Placement, target: &Target, values: &Values, seed: u64, want: &[Vec<u8>]) {
    let bytes = physical(kernel, placement, target);
    match run(&bytes, values, seed) {
        Some(got) => assert!(got == want, "other results with these addresses\n{kernel}\n{bytes}"),
        None => panic!("stopped with these addresses\n{kernel}\n{bytes}"),
    }
}

/// The bytes of all tensors afterwards; nothing if the run stopped. Fuel is for the kernel as it was, so a physical one
/// has more.
fn run(kernel: &Kernel, values: &Values, seed: u64) -> Option<Vec<Vec<u8>>> {
    let arguments = kernel.tensors.values().filter(|t| t.dir != TensorDir::Scratch);
    let tensors = arguments.zip(&values.shapes).map(|(t, shape)| {
        let extents: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
        let tensor = match t.dir {
            TensorDir::Out => ptoc_tensor::Tensor::zeros(t.dtype, &extents),
            _ => ptoc_tensor::random(t.dtype, &extents, seed, &t.name),
        };
        TensorArg { dtype: t.dtype, shape: shape.clone(), data: tensor.expect("the size was checked").bytes().to_vec() }
    });
    let physical = kernel.tiles.values().all(|t| t.addr != AddrKind::Auto);
    let fuel = if physical { 8 * FUEL } else { FUEL };
    let mut launch = ptoc_interp::InterpreterLaunch {
        tensors: tensors.collect(),
        dims: values.dims.clone(),
        scalars: values.scalars.clone(),
        options: Options { fuel: Some(fuel), memory: MEMORY, capacity: Vec::new(), ..Options::default() },
        print: &mut |_| {},
    };
    ptoc_interp::run(kernel, &mut launch).ok()?;
    Some(launch.tensors.into_iter().map(|t| t.data).collect())
}
