//! From a module to code in memory.

use crate::func::Emit;
use crate::host::host;
use crate::link::Link;
use crate::make::{Job, Maker, Settings};
use crate::native::{self, Routine};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, default_libcall_names};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::{EntryFn, Kernel, KernelParts, MAX_GRID_RANK, PrintItem};
use ptoc_ir::loops::Module;
use std::ops::Deref;
use std::sync::Mutex;

/// How to compile.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keep the Cranelift IR and the disassembly (costs time).
    pub text: bool,
    /// Use vectors for `Lanes` and matrix products.
    pub vectors: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { text: false, vectors: true }
    }
}

/// The stages of `ptoc emit` that Cranelift knows.
#[derive(Clone, Debug, Default)]
pub struct KernelText {
    /// Cranelift IR of every function, before optimisation.
    pub clif: String,
    /// Disassembly of every function.
    pub asm: String,
}

/// Machine code with its launch interface; freed when dropped.
#[derive(Debug)]
pub struct CompiledKernel {
    kernel: Kernel,
    text: Option<KernelText>,
    code_size: usize,
}

impl CompiledKernel {
    /// The texts, if [`Options::text`] asked for them.
    pub fn text(&self) -> Option<&KernelText> {
        self.text.as_ref()
    }

    /// Bytes of machine code.
    pub fn code_size(&self) -> usize {
        self.code_size
    }
}

impl Deref for CompiledKernel {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

/// The mapped code. The mutex only makes it `Sync`: nothing looks inside before it is dropped.
struct Code(Mutex<Option<JITModule>>);

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.0.get_mut().ok().and_then(Option::take) {
            // SAFETY: the kernel owns the code and is being dropped, so no launch is running and none can follow.
            unsafe { module.free_memory() };
        }
    }
}

/// Compiles a module for the machine at hand.
///
/// # Errors
/// When the module is not valid loop IR, the machine is not supported, or Cranelift's limits are exceeded.
pub fn compile(module: &Module, options: &Options) -> Result<CompiledKernel, Diagnostic> {
    if let Err(mut errors) = ptoc_ir::loops::verify(module) {
        return Err(errors.swap_remove(0));
    }
    let rank = module.launch.results.len();
    if rank > MAX_GRID_RANK {
        let message = format!("a grid of {rank} dimensions; the launcher counts at most {MAX_GRID_RANK}");
        return Err(Diagnostic::global(codes::KERNEL_TOO_LARGE, message));
    }
    let host = host().map_err(|why| {
        Diagnostic::global(codes::HOST_NOT_SUPPORTED, format!("no machine code can be made for this machine: {why}"))
    })?;
    let mut builder = JITBuilder::with_isa(host.optimised.clone(), default_libcall_names());
    symbols(&mut builder);
    let link = Link::new(JITModule::new(builder), host.optimised.default_call_conv());
    let too_large = |why: String| {
        Diagnostic::global(codes::KERNEL_TOO_LARGE, format!("kernel `{}` cannot be compiled: {why}", module.name))
    };
    let settings = Settings { host, vectors: options.vectors && host.vectors, text: options.text };
    let Compiled { jit, launch, block, prints, text, code_size, panels } =
        run(module, settings, link).map_err(too_large)?;
    let entry = |id: FuncId| {
        let code = jit.get_finalized_function(id);
        // SAFETY: the function was compiled with exactly this signature and the host's default convention.
        unsafe { std::mem::transmute::<*const u8, EntryFn>(code) }
    };
    let parts = KernelParts {
        name: module.name.to_string(),
        launch: entry(launch),
        block: entry(block),
        params: module.launch.params.len(),
        tensors: module.tensors.len(),
        rank,
        arena: if panels { native::arena(module) + native::scratch() } else { module.arena },
        spread: module.spread.iter().map(|d| *d as usize).collect(),
        prints,
        code: Box::new(Code(Mutex::new(Some(jit)))),
    };
    // SAFETY: both functions were emitted for `Frame`, the parts own the code, and it has no state of its own.
    let kernel = unsafe { Kernel::new(parts) };
    Ok(CompiledKernel { kernel, text, code_size })
}

/// What code may call: rounding and `fma` on machines without the instructions, and the routines.
fn symbols(builder: &mut JITBuilder) {
    extern "C" fn fmaf(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    extern "C" fn floorf(x: f32) -> f32 {
        x.floor()
    }
    extern "C" fn ceilf(x: f32) -> f32 {
        x.ceil()
    }
    extern "C" fn truncf(x: f32) -> f32 {
        x.trunc()
    }
    extern "C" fn nearbyintf(x: f32) -> f32 {
        x.round_ties_even()
    }
    builder.symbols([
        ("fmaf", fmaf as *const u8),
        ("floorf", floorf as *const u8),
        ("ceilf", ceilf as *const u8),
        ("truncf", truncf as *const u8),
        ("nearbyintf", nearbyintf as *const u8),
    ]);
    builder.symbol_lookup_fn(Box::new(Routine::find));
}

/// A module's code.
struct Compiled {
    jit: JITModule,
    launch: FuncId,
    block: FuncId,
    prints: Vec<Vec<PrintItem>>,
    text: Option<KernelText>,
    code_size: usize,
    panels: bool,
}

/// Emits the launch and the block function, compiles them and what they call, and puts the code in memory.
fn run(module: &Module, settings: Settings, mut link: Link) -> Result<Compiled, String> {
    let isa = &settings.host.optimised;
    let mut prints = Vec::new();
    let mut jobs = Vec::new();
    let mut ids = Vec::new();
    let mut frontend = FunctionBuilderContext::new();
    for func in [&module.launch, &module.block] {
        let mut signature = Signature::new(isa.default_call_conv());
        signature.params.push(AbiParam::new(I64));
        signature.returns.push(AbiParam::new(I32));
        let id = link.declare(&func.name, Linkage::Local, &signature);
        let mut function = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
        let builder = FunctionBuilder::new(&mut function, &mut frontend);
        let emit = Emit::new(builder, module, func, &mut prints, settings.vectors, Some(&mut link));
        emit.function().finalize(isa.frontend_config());
        jobs.push(Job::Emitted { id, name: func.name.to_string(), function: Box::new(function) });
        ids.push(id);
    }
    jobs.extend(std::mem::take(&mut link.pieces).into_iter().map(Job::Piece));
    if let Some(why) = link.error {
        return Err(why);
    }
    let panels = link.panels;
    let mut jit = link.jit;
    let mut text = settings.text.then(KernelText::default);
    let mut code_size = 0;
    // On this thread alone: a few milliseconds are less than what another thread may have to wait for a processor.
    let mut maker = Maker::new(settings);
    for job in jobs {
        let made = maker.make(job)?;
        code_size += made.bytes.len();
        if let Some(text) = &mut text {
            text.clif += &made.text.clif;
            text.asm += &made.text.asm;
        }
        jit.define_function_bytes(made.id, made.alignment, &made.bytes, &made.relocs).map_err(|e| e.to_string())?;
    }
    jit.finalize_definitions().map_err(|e| e.to_string())?;
    Ok(Compiled { jit, launch: ids[0], block: ids[1], prints, text, code_size, panels })
}
