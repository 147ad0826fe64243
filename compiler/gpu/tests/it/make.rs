//! Loop IR by hand, and one way to run a block function on both sides: its evaluator, and PTX's interpreter.

use ptoc_gpu::{Arguments, MOST_SHARED, Options, compile};
use ptoc_ir::loops::Module;
use ptoc_ir::loops::eval::{EvalStop, Memory, run};
use ptoc_ptx::sim::{self, Global, SimLaunch};

pub use crate::by_hand::*;

/// Several lanes may store to one address. Not here: they are other threads.
pub const LANES_MAY_MEET: bool = false;

/// Lanes may read half bytes of words.
pub const NIBBLES: bool = false;

/// Runs the block on both sides and compares status and tensors.
pub fn agree(module: &Module, params: &[i64], tensors: &[Vec<u8>]) -> Result<(), String> {
    let mut memory = Memory { tensors: tensors.to_vec(), arena: vec![0; module.arena as usize] };
    let want = run(module, &module.block, params, &mut memory, &mut Vec::new(), 10_000_000);
    if let Err(EvalStop::Fuel | EvalStop::OutOfBounds(_)) = want {
        return Err(format!("the evaluator stopped: {want:?}"));
    }
    for (threads, shared, seed) in [(64, MOST_SHARED, 1), (160, 1024, 2), (256, MOST_SHARED, 3)] {
        let how = format!("{threads} threads");
        let code = compile(module, &Options { threads: Some(threads), shared }).map_err(|e| e.to_string())?;
        let mut global = Global::default();
        let addresses: Vec<u64> = tensors.iter().map(|t| global.add(t.clone())).collect();
        let status = global.add(code.abi.status(1));
        let scratch = global.add(vec![0x5a; code.abi.scratch as usize]);
        let arguments = Arguments { tensors: &addresses, params, extents: &[], status, scratch };
        let launch = SimLaunch {
            kernel: &code.kernel,
            ctas: 1,
            shared: code.abi.shared,
            params: &code.abi.arguments(&arguments),
            seed,
            fuel: 1 << 30,
            races: true,
            // Elements of these programs lie anywhere.
            aligned: false,
            // One NaN is as good as another, but bytes are compared.
            keep_nan: true,
        };
        sim::run(&launch, &mut global).map_err(|fault| format!("{how}: {fault}"))?;
        let failure = code.abi.failure(&global.buffers[tensors.len()], &[], 1);
        match (&want, &failure) {
            (Ok(_), None) => {}
            (Err(EvalStop::Check { check, args }), Some(failure))
                if *check == failure.check && *args == failure.args => {}
            _ => return Err(format!("{how}: {want:?} but {failure:?}")),
        }
        // Nobody sees the arrays of a launch that fails.
        if want.is_err() {
            continue;
        }
        for (n, (got, want)) in global.buffers.iter().zip(&memory.tensors).enumerate() {
            if let Some(at) = (0..want.len()).find(|&at| got[at] != want[at]) {
                let around = at / 4 * 4..(at / 4 * 4 + 4).min(want.len());
                let (got, want) = (&got[around.clone()], &want[around]);
                return Err(format!("{how}: t{n} byte {at}: {got:02x?} but wanted {want:02x?}"));
            }
        }
    }
    Ok(())
}
