//! Every barrier that is emitted is needed, or known not to be: without it a race is found.

use crate::harness::{examples, lines, lowered, plan, with_stack};
use ptoc_gpu::{Arguments, Compiled, Options, compile, extents};
use ptoc_ir::loops::Module;
use ptoc_ptx::sim::{self, Global, Refusal, SimFault, SimLaunch, Why};
use ptoc_ptx::{BodyItem, Op, PtxKernel};

/// A launch that can be run again and again.
struct Case {
    code: Compiled,
    module: Module,
    params: Vec<i64>,
    arrays: Vec<Vec<u8>>,
}

/// The first test line of a source.
fn case(file: &str, line: usize) -> Case {
    let path = examples().into_iter().find(|p| p.ends_with(file)).expect("an example");
    let (_, directive) = lines(&path).swap_remove(line);
    let (_, plan, tensors) = plan(&path, &directive).expect("it compiles");
    let step = &plan.steps[0];
    let module = lowered(step);
    let code = compile(&module, &Options { threads: Some(64), ..Options::default() }).expect("it is translated");
    let params = step.params();
    let arrays = tensors.iter().map(|t| t.bytes().to_vec()).collect();
    Case { code, module, params, arrays }
}

impl Case {
    fn run(&self, kernel: &PtxKernel, seed: u64) -> Result<Vec<Vec<u8>>, SimFault> {
        let grid = extents(&self.module, &self.params).expect("a grid");
        let ctas = 2;
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

/// The kernel without its n-th barrier.
fn without(kernel: &PtxKernel, n: usize) -> PtxKernel {
    let mut kernel = kernel.clone();
    let mut seen = 0;
    kernel.body.retain(|item| {
        let barrier = matches!(item, BodyItem::Inst(inst) if matches!(inst.op, Op::Bar(_)));
        seen += usize::from(barrier);
        !(barrier && seen == n + 1)
    });
    kernel
}

/// Barriers without which nothing was found in several orders.
fn unnoticed(case: &Case) -> Vec<usize> {
    let kernel = &case.code.kernel;
    let whole = case.run(kernel, 0).unwrap_or_else(|e| panic!("{e}"));
    let barriers = kernel.insts().filter(|i| matches!(i.op, Op::Bar(_))).count();
    let mut unnoticed = Vec::new();
    for n in 0..barriers {
        let less = without(kernel, n);
        let noticed = (0..8).any(|seed| match case.run(&less, seed) {
            Err(SimFault { why: Why::Access(Refusal::Race, _), .. }) => true,
            Err(fault) => panic!("{fault}"),
            Ok(buffers) => {
                assert_eq!(buffers, whole, "other bits, and no race");
                false
            }
        });
        if !noticed {
            unnoticed.push(n);
        }
    }
    unnoticed
}

#[test]
fn without_a_barrier_a_race_is_found() {
    with_stack(|| {
        for (file, line) in [("softmax.tile", 0), ("reduce.tile", 0), ("layernorm.tile", 1)] {
            let case = case(file, line);
            let unnoticed = unnoticed(&case);
            let barriers = case.code.kernel.insts().filter(|i| matches!(i.op, Op::Bar(_))).count();
            assert!(unnoticed.len() < barriers, "none is needed");
            println!("{file}: barriers that nothing needs here: {unnoticed:?}");
        }
    });
}
