//! Every barrier that is emitted is needed, or known not to be: without it a race is found.

use crate::harness::{examples, lines, lowered, plan, with_stack};
use ptoc_gpu::{Arguments, Compiled, Options, compile, extents};
use ptoc_ir::loops::Module;
use ptoc_ptx::sim::{self, Global, Refusal, SimFault, SimLaunch, Why};
use ptoc_ptx::{BodyItem, Inst, Op, PtxKernel, Type};
use ptoc_syntax::directive::RunLine;
use ptoc_tensor::Tensor;
use std::path::Path;

/// Orders that are drawn for a kernel without one of its barriers.
const ORDERS: u64 = 4;

/// A launch that can be run again and again.
struct Case {
    code: Compiled,
    module: Module,
    params: Vec<i64>,
    arrays: Vec<Vec<u8>>,
}

/// The launch of a test line; none of programs, of kernels for units in memory, and where an argument has a layout of
/// its own.
fn case(path: &Path, directive: &RunLine) -> Option<Case> {
    let (session, plan, tensors) = plan(path, directive).ok()?;
    let [step] = &plan.steps[..] else { return None };
    if session.target.is_pim() || plan.program || step.storage.iter().any(Option::is_some) {
        return None;
    }
    let module = lowered(step);
    let code = compile(&module, &Options { threads: Some(64), ..Options::default() }).expect("it is translated");
    let params = step.params();
    // Whole words, for atomics.
    let padded = |t: &Tensor| {
        let mut bytes = t.bytes().to_vec();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    Some(Case { code, module, params, arrays: tensors.iter().map(padded).collect() })
}

/// A launch of each kernel of a file: the first that has blocks and barriers.
fn cases(path: &Path) -> Vec<Case> {
    let mut seen: Vec<String> = Vec::new();
    let mut cases = Vec::new();
    for (_, directive) in lines(path) {
        let name = directive.kernel.name.to_string();
        if seen.contains(&name) {
            continue;
        }
        if let Some(case) = case(path, &directive)
            && extents(&case.module, &case.params).is_ok_and(|grid| !grid.contains(&0))
        {
            seen.push(name);
            cases.push(case);
        }
    }
    cases
}

impl Case {
    fn run(&self, kernel: &PtxKernel, seed: u64) -> Result<Vec<Vec<u8>>, SimFault> {
        let grid = extents(&self.module, &self.params).expect("a grid");
        // It takes all blocks, one after another.
        let ctas = 1;
        let mut global = Global::default();
        let tensors: Vec<u64> = self.arrays.iter().map(|bytes| global.add(bytes.clone())).collect();
        let status = global.add(self.code.abi.status(ctas));
        let scratch = global.add(vec![0; (self.code.abi.scratch * u64::from(ctas)) as usize]);
        let arguments = Arguments { tensors: &tensors, params: &self.params, extents: &grid, status, scratch };
        let params = self.code.abi.arguments(&arguments);
        let shared = self.code.abi.shared;
        let launch = SimLaunch {
            kernel,
            ctas,
            shared,
            params: &params,
            seed,
            fuel: 1 << 28,
            races: true,
            aligned: true,
            keep_nan: false,
        };
        sim::run(&launch, &mut global)?;
        Ok(global.buffers)
    }
}

/// The kernel without its n-th barrier. Where threads vote there, each has its own vote for the outcome.
fn without(kernel: &PtxKernel, n: usize) -> PtxKernel {
    let mut kernel = kernel.clone();
    let mut seen = 0;
    kernel.body.retain_mut(|item| {
        let BodyItem::Inst(inst) = item else { return true };
        let this = is_barrier(inst) && seen == n;
        seen += usize::from(is_barrier(inst));
        if this && matches!(inst.op, Op::BarOr(_)) {
            inst.op = Op::Mov(Type::Pred);
            return true;
        }
        !this
    });
    kernel
}

fn is_barrier(inst: &Inst) -> bool {
    matches!(inst.op, Op::Bar(_) | Op::BarOr(_))
}

/// What became of the barriers of a kernel.
#[derive(Default)]
struct Tally {
    /// Without them a race is found.
    caught: usize,
    /// Without them results are the same in every order that was drawn: nothing that this launch does needs them.
    unneeded: usize,
}

/// Deletes each barrier in turn. One that is missed must have the results of the whole kernel.
fn deleted(case: &Case, tally: &mut Tally) {
    let kernel = &case.code.kernel;
    let whole = case.run(kernel, 0).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
    let barriers = kernel.insts().filter(|i| is_barrier(i)).count();
    for n in 0..barriers {
        let less = without(kernel, n);
        let caught = (0..ORDERS).any(|seed| match case.run(&less, seed) {
            Err(SimFault { why: Why::Access(Refusal::Race, _), other, .. }) => {
                assert!(other.is_some(), "{}: a race without a witness", kernel.name);
                true
            }
            Err(fault) => panic!("{} without barrier {n}: {fault}", kernel.name),
            Ok(buffers) => {
                assert_eq!(buffers, whole, "{} without barrier {n}: other bits, and no race", kernel.name);
                false
            }
        });
        *(if caught { &mut tally.caught } else { &mut tally.unneeded }) += 1;
    }
}

/// Of every second file, so that two tests share the work.
fn half(skip: usize) {
    with_stack(|| {
        let mut all = Tally::default();
        for path in examples().into_iter().skip(skip).step_by(2) {
            let mut tally = Tally::default();
            cases(&path).iter().for_each(|case| deleted(case, &mut tally));
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            println!("{name}: {} barriers are needed, {} are not here", tally.caught, tally.unneeded);
            all.caught += tally.caught;
            all.unneeded += tally.unneeded;
        }
        println!("all: {} are needed, {} are not here", all.caught, all.unneeded);
        assert!(all.caught > 50, "only {} of {}", all.caught, all.caught + all.unneeded);
    });
}

#[test]
fn without_a_barrier_a_race_is_found_in_the_first_half() {
    half(0);
}

#[test]
fn without_a_barrier_a_race_is_found_in_the_second_half() {
    half(1);
}
