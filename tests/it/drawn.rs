//! The frame of tests that draw kernels at random: the texts are one file, each kernel is judged with its text, and
//! launched on the interpreter with sizes of the test's choice.

use super::engine::Noise;
use ptoc_analysis::{Bindings, instantiate};
use ptoc_diagnostics::{SourceMap, codes};
use ptoc_interp::{InterpreterLaunch, InterpreterOutcome, Options, TensorArg, Trap};
use ptoc_ir::tile::{Kernel, TensorDir};
use ptoc_isa::Target;
use ptoc_names::Modules;
use ptoc_tests::front::Library;

impl Noise {
    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Draws `count` kernels, and judges each of them as it is elaborated for a2a3.
pub fn each(count: usize, draw: impl FnMut(usize) -> String, mut judge: impl FnMut(Kernel, &Target, &str)) {
    let texts: Vec<String> = (0..count).map(draw).collect();
    let text = texts.concat();
    let mut sources = SourceMap::default();
    let file = sources.add("random", text.as_str());
    let mut found = Vec::new();
    let mut library = Library::new(&mut sources);
    let modules = Modules::load(file, &text, &mut library, &mut found);
    let target = Target::builtin("a2a3").expect("a target");
    let mut judged = 0;
    for ((id, _), source) in modules.entries().zip(&texts) {
        let outcome = instantiate(&modules, id, target, &Bindings::default());
        judged += 1;
        let Some(instance) = outcome.result else {
            // `r % m` where `m` is known to be 0 is no kernel.
            let zero = outcome.diagnostics.iter().filter(|d| d.is_error()).all(|d| d.code == codes::DIVISION_BY_ZERO);
            assert!(zero, "{source}\n{:?}", outcome.diagnostics);
            continue;
        };
        judge(instance.kernel, target, source);
    }
    assert_eq!(judged, count, "{found:?}");
}

/// A launch on arrays of zeros; outputs begin without values.
pub fn launch(kernel: &Kernel, dims: &[i64]) -> Result<InterpreterOutcome, Trap> {
    let values = ptoc_interp::prologue(kernel, dims, &[])?;
    let tensors = kernel.tensors.values().map(|t| {
        let shape: Vec<u64> = t.shape.iter().map(|v| values[v.as_u32() as usize]).collect();
        let bytes = shape.iter().product::<u64>() as usize * t.dtype.size();
        let data = if t.dir == TensorDir::Out { Vec::new() } else { vec![0; bytes] };
        TensorArg { dtype: t.dtype, shape, data }
    });
    let options = Options { fuel: Some(1_000_000), ..Options::default() };
    let (tensors, scalars) = (tensors.collect(), Vec::new());
    ptoc_interp::run(
        kernel,
        &mut InterpreterLaunch { tensors, dims: dims.to_vec(), scalars, options, print: &mut |_| {} },
    )
}
