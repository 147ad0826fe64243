//! Kernels as PTX, executed by its interpreter: they have the reference interpreter's bits. Every instruction on every
//! dtype that the GPU's target takes is here; random programs are in `random`, which runs them as machine code too.
//!
//! Where `PTX_BUNDLES` names a folder, the launches are left there for a card (`runtime/cuda`'s example `launch`).

#[path = "../../compiler/gpu/tests/it/bundle.rs"]
#[expect(dead_code, reason = "arrays of noise are for launches that are timed")]
mod bundle;

use crate::differential::{SIZES, case::cases, covers};
use crate::engine::{Content, Middle, difference, prepare};
use bundle::{Array, Bundle};
use ptoc_gpu::{Arguments, Compiled, GPU_PASSES, MOST_SHARED, Options, compile, compile_kernel, extents};
use ptoc_ir::loops::Module;
use ptoc_ir::loops::eval::EvalStop;
use ptoc_ir::tile::{Kernel, TensorDir, adds_floats};
use ptoc_isa::{InstrId, Target};
use ptoc_passes::pipeline::Pipeline;
use ptoc_ptx::sim::{self, Global, SimLaunch};
use ptoc_tensor::Tensor;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A kernel as PTX.
pub struct Ptx {
    kernel: Kernel,
    module: Arc<Module>,
    pub code: Compiled,
}

/// The same on the tensor cores, where the kernel is a product that they take.
pub fn build_unit(text: &str, dims: &[(&str, i64)]) -> Result<(Middle, Ptx), String> {
    let said = |refused| format!("refused for PTX: {refused:?}");
    let middle = prepare(text, "sm90", &[], dims, Some(Pipeline::Loops(GPU_PASSES))).map_err(said)?;
    let module = middle.prepared.module.clone().expect("it has loops");
    let kernel = middle.prepared.placed.kernel.clone();
    let target = Target::builtin("sm90").expect("a target");
    let code = compile_kernel(&kernel, target, &module, false, &Options::default()).map_err(|r| r.to_string())?;
    let text = ptoc_ptx::print(&code.kernel);
    let again = ptoc_ptx::parse(&text).map_err(|e| format!("its PTX is not read: {e}"))?;
    assert!(ptoc_ptx::print(&again) == text, "its PTX is read as another:\n{text}");
    // For `.ci/ptxas`; the names of others stand in its list.
    if let Some(folder) = std::env::var_os("PTX_DUMP").filter(|_| text.contains("wgmma")) {
        let mut hasher = std::hash::DefaultHasher::new();
        text.hash(&mut hasher);
        let file = std::path::Path::new(&folder).join(format!("tensor_cores_{:016x}.ptx", hasher.finish()));
        std::fs::write(file, &text).map_err(|e| e.to_string())?;
    }
    Ok((middle, Ptx { kernel, module, code }))
}

/// A launch that has ended: the tensors, or the check that failed.
type Ended = Result<Vec<Tensor>, String>;

/// Compiles the only kernel of a text. `draw` picks how many threads a CTA has, and how much shared memory.
pub fn build(text: &str, target: &str, dims: &[(&str, i64)], draw: u64) -> Result<Ptx, String> {
    let Middle { prepared, .. } = prepare(text, target, &[], dims, Some(Pipeline::Loops(GPU_PASSES)))
        .map_err(|refused| format!("refused for PTX: {refused:?}"))?;
    let module = prepared.module.expect("it has loops");
    let threads = Some([64, 64, 96, 160, 256][(draw % 5) as usize]);
    let shared = if draw % 3 == 2 { 4096 } else { MOST_SHARED };
    let code = compile(&module, &Options { threads, shared }).map_err(|refused| refused.to_string())?;
    let text = ptoc_ptx::print(&code.kernel);
    let again = ptoc_ptx::parse(&text).map_err(|e| format!("its PTX is not read: {e}"))?;
    assert!(ptoc_ptx::print(&again) == text, "its PTX is read as another:\n{text}");
    Ok(Ptx { kernel: prepared.placed.kernel, module, code })
}

impl Ptx {
    /// The same launch of other code.
    pub fn with_kernel(&self, kernel: ptoc_ptx::PtxKernel) -> Ptx {
        let code = Compiled { kernel, ..self.code.clone() };
        Ptx { kernel: self.kernel.clone(), module: Arc::clone(&self.module), code }
    }

    /// Dimensions, then scalars.
    fn params(&self, dims: &[(&str, i64)]) -> Result<Vec<i64>, String> {
        let value = |name: &str| dims.iter().find(|(n, _)| *n == name).map_or(0, |(_, v)| *v);
        let mut params: Vec<i64> = self.kernel.dims.values().map(|d| value(&d.name)).collect();
        let none: Vec<Option<u64>> = self.kernel.scalars.iter().map(|_| None).collect();
        let values = ptoc_interp::prologue(&self.kernel, &params, &none).map_err(|trap| trap.message)?;
        params.extend(self.kernel.scalars.iter().map(|p| values[p.value.as_u32() as usize] as i64));
        Ok(params)
    }

    /// Runs it on all arguments in order, in an order of warps that `seed` draws. `Err`: it did what no kernel may do.
    pub fn run(&self, dims: &[(&str, i64)], tensors: &[Tensor], seed: u64) -> Result<Ended, String> {
        let params = self.params(dims)?;
        let extents = match extents(&self.module, &params) {
            Ok(extents) => extents,
            Err(EvalStop::Check { check, args }) => return Ok(Err(format!("check {check} {args:?} of the launch"))),
            Err(stop) => return Err(format!("the launch function: {stop:?}")),
        };
        let blocks = ptoc_abi::count(&extents).map_err(|e| e.to_string())?;
        if blocks == 0 {
            return Ok(Ok(tensors.to_vec()));
        }
        let ctas = if adds_floats(&self.kernel) { 1 } else { blocks.min(1 + (seed % 4) as u32) };
        let ctas = ctas.next_multiple_of(self.code.abi.cluster);
        let mut global = Global::default();
        let mut addresses = Vec::new();
        for tensor in tensors {
            let mut bytes = tensor.bytes().to_vec();
            // Atomics of narrow types go to the word around.
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            addresses.push(global.add(bytes));
        }
        let abi = &self.code.abi;
        let status = global.add(abi.status(ctas));
        let scratch = global.add(vec![0xa5; (u64::from(ctas) * abi.scratch) as usize]);
        let arguments = Arguments { tensors: &addresses, params: &params, extents: &extents, status, scratch };
        let mut params = abi.arguments(&arguments);
        params.extend(abi.maps(&arguments).into_iter().map(|map| global.add_map(map)));
        let launch = SimLaunch {
            kernel: &self.code.kernel,
            ctas,
            shared: abi.shared,
            params: &params,
            seed,
            fuel: 1 << 32,
            races: true,
            aligned: true,
            keep_nan: false,
        };
        sim::run(&launch, &mut global).map_err(|fault| fault.to_string())?;
        if let Some(failure) = abi.failure(&global.buffers[tensors.len()], &extents, ctas) {
            return Ok(Err(format!("{failure:?}")));
        }
        let after = |(t, bytes): (&Tensor, &Vec<u8>)| {
            Tensor::from_bytes(t.dtype(), t.shape(), &bytes[..t.bytes().len()]).expect("as long as before")
        };
        Ok(Ok(tensors.iter().zip(&global.buffers).map(after).collect()))
    }

    /// The results are these; otherwise what differs.
    pub fn gives(
        &self,
        dims: &[(&str, i64)],
        tensors: &[Tensor],
        want: &[Tensor],
        (name, seed): (&str, u64),
    ) -> Result<(), String> {
        let got = self.run(dims, tensors, seed)?.map_err(|check| format!("PTX stops, {check}"))?;
        let written = || {
            self.kernel.tensors.values().enumerate().filter(|(_, t)| matches!(t.dir, TensorDir::Out | TensorDir::InOut))
        };
        for (n, t) in written() {
            if let Some(difference) = difference(&want[n], &got[n]) {
                return Err(format!("`{}` differs between interp and PTX: {difference}", t.name));
            }
        }
        let Some(root) = bundle::folder() else { return Ok(()) };
        let params = self.params(dims)?;
        let Ok(extents) = extents(&self.module, &params) else { return Ok(()) };
        if extents.contains(&0) {
            return Ok(());
        }
        let bytes = |t: &Tensor| {
            let mut bytes = t.bytes().to_vec();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let bundle = Bundle {
            name: name.to_owned(),
            module: &self.module,
            params: &params,
            extents: &extents,
            arrays: tensors.iter().map(|t| Array::Bytes(bytes(t))).collect(),
            expect: written().map(|(n, _)| (n, bytes(&got[n]), got[n].dtype())).collect(),
            in_order: adds_floats(&self.kernel),
        };
        bundle::write_code(&root, &bundle, &self.code);
        Ok(())
    }
}

/// The kernels of some rows of the table, with tails and with whole blocks.
fn instructions(mine: impl Fn(usize) -> bool) {
    let target = Target::builtin("sm90").expect("a target");
    let (mut wrong, mut count) = (String::new(), 0);
    for (_, id) in InstrId::all().filter(covers).enumerate().filter(|(n, _)| mine(*n)) {
        for (n, case) in cases(target, id).into_iter().enumerate() {
            count += 1;
            let result = build(&case.text, "sm90", &[], n as u64).and_then(|ptx| {
                let middle = prepare(&case.text, "sm90", &[], &[], None).map_err(|refused| format!("{refused:?}"))?;
                for (k, sizes) in SIZES.into_iter().enumerate().filter(|(k, _)| *k < 2 || *k == n % SIZES.len()) {
                    if case.even && sizes.cols % 2 == 1 {
                        continue;
                    }
                    let tensors: Vec<Tensor> = case
                        .args
                        .iter()
                        .enumerate()
                        .map(|(j, a)| a.tensor(sizes, Content::Wild, (7 * j + k) as u64))
                        .collect();
                    let dims = sizes.dims();
                    let want = middle.interpret(&dims, &tensors).map_err(|(code, m)| format!("{code}: {m}"))?;
                    let name = format!("{}_{n}_{k}", id.get().name);
                    ptx.gives(&dims, &tensors, &want, (&name, n as u64)).map_err(|why| format!("{sizes:?}: {why}"))?;
                }
                Ok(())
            });
            if let Err(why) = result {
                writeln!(wrong, "{}: {why}\n{}", case.label, case.text).expect("fits");
            }
        }
    }
    println!("{count} kernels");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn instructions_of_the_first_half() {
    instructions(|n| n % 2 == 0);
}

#[test]
fn instructions_of_the_second_half() {
    instructions(|n| n % 2 == 1);
}
