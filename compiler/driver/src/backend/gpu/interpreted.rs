//! A launch on the interpreter of PTX, where there is no card: the same text, in an unfair order of warps. Besides the
//! results it finds races, and accesses that leave their array or are not aligned.

use super::launch::Ready;
use crate::launch::Used;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_gpu::Arguments;
use ptoc_ir::tile::adds_floats;
use ptoc_ptx::sim::{self, Global, SimFault, SimLaunch};
use ptoc_tensor::Tensor;
use std::time::{Duration, Instant};

/// CTAs, at most: enough for blocks that meet, and for CTAs that take several.
const CTAS: u32 = 3;

/// Instructions of warps until a launch is given up.
const FUEL: u64 = 1 << 36;

/// Runs the blocks; `seed` draws the order. The time is this machine's.
pub(super) fn run(
    ready: &Ready<'_>,
    seed: u64,
    used: &mut Used<'_>,
    buffers: &mut [Option<Tensor>],
) -> Result<Duration, Box<Diagnostic>> {
    let Ready { step, code, params, extents, .. } = ready;
    let (kernel, abi) = (&code.compiled.kernel, &code.compiled.abi);
    let mut global = Global::default();
    let mut tensors = Vec::new();
    for argument in 0..step.tensors.len() {
        let mut bytes = step.bytes(argument, used, buffers).to_vec();
        // Atomics of narrow types go to the word around.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        tensors.push(global.add(bytes));
    }
    // Sums of floats have the interpreter's bits in the order of blocks alone.
    let ctas = if adds_floats(&step.kernel) { 1 } else { ready.blocks.min(CTAS).next_multiple_of(abi.cluster) };
    let status = global.add(abi.status(ctas));
    let scratch = global.add(vec![0xa5; (u64::from(ctas) * abi.scratch) as usize]);
    let arguments = Arguments { tensors: &tensors, params, extents, status, scratch };
    let mut params = abi.arguments(&arguments);
    let maps = abi.maps(&arguments);
    params.extend(maps.into_iter().map(|map| global.add_map(map)));
    let launch = SimLaunch {
        kernel,
        ctas,
        shared: abi.shared,
        params: &params,
        seed,
        fuel: FUEL,
        races: true,
        aligned: true,
        keep_nan: false,
    };
    let begin = Instant::now();
    sim::run(&launch, &mut global).map_err(|fault| stopped(ready, &fault))?;
    let time = begin.elapsed();
    for argument in (0..step.tensors.len()).filter(|argument| ready.writes(*argument)) {
        let to = step.bytes(argument, used, buffers);
        to.copy_from_slice(&global.buffers[argument][..to.len()]);
    }
    match abi.failure(&global.buffers[tensors.len()], extents, ctas) {
        Some(first) => Err(ready.failure(first)),
        None => Ok(time),
    }
}

/// What no kernel may do. Of a race both accesses are shown, with the lines that they stem from.
fn stopped(ready: &Ready<'_>, fault: &SimFault) -> Box<Diagnostic> {
    let sites = &ready.code.compiled.sites;
    let site = |at: &(usize, String, u32)| sites.get(at.2 as usize).copied().unwrap_or(ready.step.span);
    let span = fault.at.as_ref().map_or(ready.step.span, site);
    let mut d =
        Diagnostic::error(codes::GPU_FAILED, span, format!("the PTX interpreter has ended the launch: {fault}"));
    if let Some((cta, thread)) = fault.thread {
        d = d.with_label(format!("thread {thread} of CTA {cta}"));
    }
    if let Some(other) = &fault.other {
        let (cta, thread) = other.thread;
        d = d.with_secondary(site(&other.at), format!("the {} by thread {thread} of CTA {cta}", other.what()));
    }
    let between_blocks = match (&fault.other, fault.thread) {
        (Some(other), Some((cta, _))) => other.thread.0 != cta,
        _ => false,
    };
    Box::new(match between_blocks {
        true => d.with_note("two blocks of the grid use the same element, and nothing orders them").with_help(
            "`ptoc run --backend interp` says which element it is (PA-1013); let blocks write elements of their \
                 own, or update them atomically",
        ),
        false => d.with_note(
            "accesses are checked before they can go astray, so this is a mistake of ptoc: please report it",
        ),
    })
}
