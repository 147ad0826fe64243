//! What the device can do at most: bytes that it copies and fused multiply-adds that it makes in a second.

use super::card::device;
use crate::backend::DeviceLimits;
use ptoc_cuda::{Context, Error, Function, LaunchConfig};

/// Both kernels. A thread copies four vectors of 16 bytes at a time, or has eight chains of fused multiply-adds.
const PTX: &str = include_str!("limits.ptx");

const THREADS: u32 = 256;

/// Bytes that the CTA's threads copy at a time.
const CHUNK: usize = 4 * 16 * THREADS as usize;

/// Bytes below which a copy measures its launch.
const LEAST: usize = 1 << 20;

/// Rounds of 64 fused multiply-adds.
const ROUNDS: u64 = 2048;

/// Times that each is measured; the best counts.
const TIMES: usize = 12;

/// Measures both on the first device.
///
/// # Errors
/// What the driver says.
pub(super) fn measure(bytes: usize) -> Result<DeviceLimits, Error> {
    let context = device()?;
    let module = context.load(PTX)?;
    let multiprocessors = context.multiprocessors()?.max(1) as u32;
    Ok(DeviceLimits {
        name: context.name()?,
        copy: copy(context, &module.function("copy", 0)?, bytes, multiprocessors)?,
        fma: fma(context, &module.function("fma", 0)?, multiprocessors)?,
    })
}

/// Bytes a second, read and written: half as many bytes as a kernel's arrays have are copied.
fn copy(context: &Context<'_>, function: &Function<'_>, bytes: usize, multiprocessors: u32) -> Result<f64, Error> {
    let half = (bytes.max(LEAST) / 2).next_multiple_of(CHUNK);
    let (from, to) = (context.alloc(half)?, context.alloc(half)?);
    from.fill(1)?;
    let ctas = multiprocessors * function.resident(THREADS)?.max(1) as u32;
    let params = [from.address(), to.address(), half as u64];
    let seconds = best(context, function, &LaunchConfig { ctas, threads: THREADS, params: &params, maps: &[] })?;
    Ok(2.0 * half as f64 / seconds)
}

/// Operations a second, two for each fused multiply-add of f32.
fn fma(context: &Context<'_>, function: &Function<'_>, multiprocessors: u32) -> Result<f64, Error> {
    let ctas = multiprocessors * function.resident(THREADS)?.max(1) as u32;
    let out = context.alloc(4)?;
    let params = [out.address(), ROUNDS];
    let seconds = best(context, function, &LaunchConfig { ctas, threads: THREADS, params: &params, maps: &[] })?;
    Ok(2.0 * 64.0 * ROUNDS as f64 * f64::from(ctas * THREADS) / seconds)
}

/// Seconds of the shortest launch.
fn best(context: &Context<'_>, function: &Function<'_>, launch: &LaunchConfig<'_>) -> Result<f64, Error> {
    let (begin, end) = (context.event()?, context.event()?);
    let mut best = f64::INFINITY;
    for _ in 0..TIMES {
        begin.record()?;
        // SAFETY: the kernels of `limits.ptx` take these parameters: buffers that live here, with as many bytes as is
        // said, a whole number of chunks; and a word, with a number of rounds.
        unsafe { function.launch(launch) }?;
        end.record()?;
        best = best.min(f64::from(end.since(&begin)?) / 1e3);
    }
    Ok(best)
}
