//! Machine code against the interpreter: where the interpreter finishes, both leave the same bits.
//!
//! Compiled code is trusted with memory, so it only runs what the interpreter found to stay inside its tensors, on
//! buffers between guards. An access outside that the interpreter meets in a kernel that the analysis admitted is a
//! finding too: no run-time check stood before it.

use super::front::{Source, passes};
use super::{hash, ir::Values};
use ptoc_diagnostics::codes;
use ptoc_exec::{LaunchArgs, LaunchError};
use ptoc_interp::{Options, TensorArg};
use ptoc_ir::scalar;
use ptoc_ir::tile::{Kernel, TensorDir};
use ptoc_isa::Target;
use ptoc_passes::Prepared;
use ptoc_tensor::DType;

/// Steps and bytes of an interpreted run.
const FUEL: u64 = 300_000;
const MEMORY: u64 = 16 << 20;

/// Bytes of all tensors of a launch.
const TENSORS: u64 = 1 << 19;

/// Bytes before and behind each tensor that nothing may touch.
const GUARD: usize = 512;
const GUARD_BYTE: u8 = 0xa7;

/// Bytes as source text; every kernel that comes through all stages runs on both.
pub fn exec_diff(data: &[u8]) {
    let source = Source::new("fuzz.tile", data);
    if source.diagnostics.iter().any(|d| d.is_error()) {
        return;
    }
    let target = Target::builtin("a2a3").expect("built in");
    for kernel in source.kernels(target) {
        let Ok(prepared) = passes(kernel.clone(), target) else { continue };
        compare(&kernel, &prepared, hash(data));
    }
}

fn compare(kernel: &Kernel, prepared: &Prepared, seed: u64) {
    let Some(values) = Values::choose(kernel, seed, TENSORS) else { return };
    let arguments: Vec<_> = kernel.tensors.values().filter(|t| t.dir != TensorDir::Scratch).collect();
    let tensors: Vec<TensorArg> = arguments
        .iter()
        .zip(&values.shapes)
        .map(|(t, shape)| {
            let extents: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
            let tensor = match t.dir {
                TensorDir::Out => ptoc_tensor::Tensor::zeros(t.dtype, &extents),
                _ => ptoc_tensor::random(t.dtype, &extents, seed, &t.name),
            };
            let mut data = tensor.expect("the size was checked").bytes().to_vec();
            if t.dir != TensorDir::Out && seed.is_multiple_of(3) {
                corners(t.dtype, &mut data, seed);
            }
            TensorArg { dtype: t.dtype, shape: shape.clone(), data }
        })
        .collect();
    let mut run = ptoc_interp::InterpreterLaunch {
        tensors: tensors.clone(),
        dims: values.dims.clone(),
        scalars: values.scalars.clone(),
        options: Options { fuel: Some(FUEL), memory: MEMORY, capacity: Vec::new(), ..Options::default() },
        print: &mut |_| {},
    };
    if let Err(trap) = ptoc_interp::run(kernel, &mut run) {
        let outside = [codes::TRAP_TILE_OUT_OF_BOUNDS, codes::TRAP_TENSOR_OUT_OF_BOUNDS, codes::TRAP_INVALID_IR]
            .contains(&trap.code);
        assert!(!outside, "no check stands before {} {} at {:?}\n{kernel}", trap.code, trap.message, trap.span);
        return;
    }
    let want: Vec<Vec<u8>> = run.tensors.into_iter().map(|t| t.data).collect();
    let module = prepared.module.as_ref().expect("a target of PTO's");
    let code = match ptoc_cpu::compile(module, &ptoc_cpu::Options::default()) {
        Ok(code) => code,
        Err(d) if d.code == codes::KERNEL_TOO_LARGE => return,
        Err(d) => panic!("{d:?}\n{kernel}"),
    };
    let params: Vec<i64> =
        values.dims.iter().copied().chain(values.all_scalars.iter().map(|&bits| bits as i64)).collect();
    for threads in [1, 2] {
        let mut buffers: Vec<Vec<u8>> = tensors.iter().map(|t| guarded(&t.data)).collect();
        let slices: Vec<_> = buffers
            .iter_mut()
            .map(|b| {
                let end = b.len() - GUARD;
                ptoc_exec::TensorArg::new(&mut b[GUARD..end])
            })
            .collect();
        // SAFETY: the buffers have the shapes that the prologue computed, and the interpreter, which checks every
        // access, ran these blocks to their end.
        let done = unsafe { code.launch(LaunchArgs { params: &params, tensors: &slices, threads, print: None }) };
        match done {
            Ok(()) => {}
            Err(LaunchError::Check(failure)) => {
                let row = &module.checks[failure.check as usize];
                let data = prepared.placed.kernel.checks.values().nth(row.id as usize).expect("a row of the table");
                // Stricter than the meaning, by design: addresses among planned tiles, loops that may not be empty.
                let strict = [codes::DYNAMIC_ADDRESS_LIMIT, codes::EMPTY_LOOP].contains(&data.code);
                assert!(strict, "interpreted without a trap, compiled: {} {failure:?}\n{kernel}", data.code);
                return;
            }
            Err(e) => panic!("{e}\n{kernel}"),
        }
        for ((t, want), buffer) in arguments.iter().zip(&want).zip(&buffers) {
            let guards = buffer[..GUARD].iter().chain(&buffer[buffer.len() - GUARD..]);
            assert!(guards.copied().all(|b| b == GUARD_BYTE), "wrote outside `{}`\n{kernel}", t.name);
            same(t.dtype, want, &buffer[GUARD..buffer.len() - GUARD], &t.name, kernel);
        }
        // Float atomics run in block order with one thread only.
        let atomic = kernel.to_string().contains(".atomic");
        if atomic {
            break;
        }
    }
}

fn guarded(data: &[u8]) -> Vec<u8> {
    let guard = [GUARD_BYTE; GUARD];
    [&guard[..], data, &guard[..]].concat()
}

/// Sprinkles infinities, NaN, zeros and extremes.
fn corners(dtype: DType, data: &mut [u8], seed: u64) {
    let size = dtype.size();
    if !dtype.is_float() {
        return;
    }
    for (n, element) in data.chunks_mut(size).enumerate() {
        let bits = match (n as u64).wrapping_add(seed >> 8) % 23 {
            3 => scalar::from_f32(dtype, f32::INFINITY),
            5 => scalar::from_f32(dtype, f32::NAN),
            7 => scalar::from_f32(dtype, -0.0),
            11 => scalar::from_f32(dtype, f32::MIN_POSITIVE / 8.0),
            13 => scalar::from_f32(dtype, -60000.0),
            17 => scalar::from_f32(dtype, f32::NEG_INFINITY),
            _ => continue,
        };
        element.copy_from_slice(&bits.to_le_bytes()[..size]);
    }
}

/// Equal bits; any NaN equals any other.
fn same(dtype: DType, want: &[u8], got: &[u8], name: &str, kernel: &Kernel) {
    let size = dtype.size();
    let bits = |x: &[u8]| x.iter().rev().fold(0u64, |a, b| a << 8 | u64::from(*b));
    let nan = |x| dtype.is_float() && scalar::to_f32(dtype, x).is_nan();
    for (n, (w, g)) in want.chunks(size).zip(got.chunks(size)).enumerate() {
        let (w, g) = (bits(w), bits(g));
        assert!(w == g || nan(w) && nan(g), "{name}, element {n}: interpreter {w:#x}, machine code {g:#x}\n{kernel}");
    }
}
