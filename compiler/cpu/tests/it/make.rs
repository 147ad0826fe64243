//! Loop IR by hand, and one way to run a block function on both sides.

use ptoc_cpu::{CompiledKernel, Options, Vectors, compile};
use ptoc_diagnostics::FileId;
use ptoc_exec::{LaunchArgs, LaunchError, TensorArg};
use ptoc_ir::loops::eval::{EvalStop, Memory, run};
use ptoc_ir::loops::{MemTy, Module, text, verify};

pub use crate::by_hand::*;

/// Several lanes may store to one address.
pub const LANES_MAY_MEET: bool = true;

/// Lanes may read half bytes of words.
pub const NIBBLES: bool = true;

pub fn compiled(module: &Module, vectors: Vectors) -> CompiledKernel {
    compiled_with(module, Options { vectors, ..Options::default() })
}

fn compiled_with(module: &Module, options: Options) -> CompiledKernel {
    match compile(module, &options) {
        Ok(kernel) => kernel,
        Err(error) => panic!("{error:?}\n{}", ptoc_ir::loops::text::print(module, false)),
    }
}

/// Every width that the machine has.
pub fn widths() -> impl Iterator<Item = Vectors> {
    [Vectors::Bits128, Vectors::Bits256, Vectors::Bits512, Vectors::None]
        .into_iter()
        .filter(|v| ptoc_cpu::available(*v))
}

/// Runs the block on both sides and compares status and tensors.
pub fn agree(module: &Module, params: &[i64], tensors: &[Vec<u8>]) -> Result<(), String> {
    agree_but(module, params, tensors, usize::MAX)
}

/// The same but for one tensor.
pub fn agree_but(module: &Module, params: &[i64], tensors: &[Vec<u8>], but: usize) -> Result<(), String> {
    let mut memory = Memory { tensors: tensors.to_vec(), arena: vec![0; module.arena as usize] };
    let want = run(module, &module.block, params, &mut memory, &mut Vec::new(), 10_000_000);
    if let Err(EvalStop::Fuel | EvalStop::OutOfBounds(_)) = want {
        return Err(format!("the evaluator stopped: {want:?}"));
    }
    // Arrays here are small: once as they are, once as if no cache held them.
    let wide = |v: &Vectors| matches!(v, Vectors::Bits256 | Vectors::Bits512);
    let ways = widths().map(|v| (v, None)).chain(widths().filter(wide).map(|v| (v, Some(1))));
    for (vectors, non_temporal) in ways {
        let kernel = compiled_with(module, Options { vectors, non_temporal, ..Options::default() });
        let (wide, all) = kernel.nests();
        if matches!(vectors, Vectors::Bits256 | Vectors::Bits512) && wide != all {
            return Err(format!("{vectors:?}: only {wide} of {all} nests have the full width"));
        }
        let mut got: Vec<Aligned> = tensors.iter().map(|t| Aligned::new(t)).collect();
        let args: Vec<TensorArg> = got.iter_mut().map(|t| TensorArg::new(t.bytes())).collect();
        let launch = LaunchArgs { params, tensors: &args, threads: 1, print: None };
        let result = unsafe { kernel.launch(launch) };
        match (&want, &result) {
            (Ok(_), Ok(())) => {}
            (Err(EvalStop::Check { check, args }), Err(LaunchError::Check(failure)))
                if *check == failure.check && *args == failure.args => {}
            _ => return Err(format!("{vectors:?}: {want:?} but {result:?}")),
        }
        let both = got.iter_mut().map(Aligned::bytes).zip(&memory.tensors);
        for (n, (got, want)) in both.enumerate().filter(|(n, _)| *n != but) {
            if let Some(at) = (0..want.len()).find(|&at| got[at] != want[at]) {
                let around = at / 4 * 4..(at / 4 * 4 + 4).min(want.len());
                return Err(format!(
                    "{vectors:?} {non_temporal:?}: t{n} byte {at}: {:02x?} but wanted {:02x?}",
                    &got[around.clone()],
                    &want[around]
                ));
            }
        }
    }
    Ok(())
}

/// Bytes that begin at a line of the cache, as those of arrays do.
struct Aligned {
    room: Vec<u8>,
    len: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Aligned {
        let mut aligned = Aligned { room: vec![0; bytes.len() + 63], len: bytes.len() };
        aligned.bytes().copy_from_slice(bytes);
        aligned
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.room.as_ptr().align_offset(64);
        &mut self.room[start..start + self.len]
    }
}

/// Elements of a type: small numbers of both signs, zeros, infinities, integers of all sizes.
pub(crate) fn data(ty: MemTy, bytes: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut out = Vec::new();
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let number = match state % 61 {
            0 => 0.0,
            1 => -0.0,
            2 => f32::INFINITY,
            3 => 1e-7,
            n => n as f32 / 8.0 - 3.3,
        };
        match ty {
            MemTy::F32 => out.extend(number.to_le_bytes()),
            MemTy::F16 => out.extend(half::f16::from_f32(number).to_le_bytes()),
            MemTy::BF16 => out.extend(half::bf16::from_f32(number).to_le_bytes()),
            MemTy::Bool => out.push((state >> 8) as u8 & 1),
            _ => out.extend(&u64::from(state).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[..ty.size() as usize]),
        }
    }
    out.truncate(bytes);
    out
}

/// A kernel of one block with two parameters, and this body.
pub(crate) fn module(body: &str, tensors: usize) -> Module {
    let names: String = (0..tensors).map(|n| format!("tensor \"T{n}\"\n")).collect();
    let source = format!(
        "kernel \"nest\"\n{names}arena 0\nlaunch \"l\" (r0: i64, r1: i64) {{\n}}\nblock \"b\" (r0: i64, r1: i64) {{\n  \
         labels 8\n{body}}}\n"
    );
    let module = text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    verify(&module).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    module
}

/// A nest that joins its lanes with partials: rows of 64 of them, 256 bytes apart.
pub(crate) fn joining(joins: &str, body: &str, count: Option<i64>) -> Module {
    let known = count.map_or(String::new(), |n| format!("r20: i64 = const {n}\n"));
    let count = if known.is_empty() { "r1" } else { "r20" };
    let text = format!(
        "{known}r2: i64 = const 0\nr3: i64 = const 1000\nr4: i64 = const 256\nr5: i64 = const 2048\n\
         for l0 r6: i64 in r2..r0 step 1 {{\n  r7: i64 = mul r6, r3\n  r8: i64 = mul r6, r4\n  r9: i64 = add r8, r5\n  \
         lanes r11: i64 in {count} {{\n{body}{joins}  }}\n}}\n"
    );
    module(&text, 3)
}
