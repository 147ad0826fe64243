//! From a module to code in memory.

use crate::contract;
use crate::func::Emit;
use crate::host::{Host, host};
use crate::link::{Link, Part, Piece};
use crate::native::Routine;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, ModuleReloc, default_libcall_names};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::{EntryFn, Kernel, KernelParts, MAX_GRID_RANK, PrintItem};
use ptoc_ir::loops::{Func, Module};
use std::fmt::Write as _;
use std::ops::Deref;
use std::sync::Mutex;

/// Modules with fewer functions are compiled on one thread: starting another takes as long as a function or two.
const LEAST_FOR_THREADS: usize = 6;
/// More do not help: one function, the block's, is a good part of the work.
const MOST_THREADS: usize = 4;

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
    let compiler = Compiler { module, host, vectors: options.vectors && host.vectors, text: options.text };
    let Compiled { jit, launch, block, prints, text, code_size } = compiler.run(link).map_err(too_large)?;
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
        arena: module.arena,
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

/// What every function is compiled with.
struct Compiler<'m> {
    module: &'m Module,
    host: &'static Host,
    vectors: bool,
    text: bool,
}

/// A module's code.
struct Compiled {
    jit: JITModule,
    launch: FuncId,
    block: FuncId,
    prints: Vec<Vec<PrintItem>>,
    text: Option<KernelText>,
    code_size: usize,
}

/// A function in Cranelift's IR, or what it is to be made of.
enum Job {
    Emitted { id: FuncId, name: String, function: Box<Function> },
    Piece(Piece),
}

/// A function's machine code.
struct Made {
    id: FuncId,
    alignment: u64,
    bytes: Vec<u8>,
    relocs: Vec<ModuleReloc>,
    text: KernelText,
}

impl Compiler<'_> {
    fn run(&self, mut link: Link) -> Result<Compiled, String> {
        let mut prints = Vec::new();
        let mut jobs = Vec::new();
        let mut ids = Vec::new();
        let mut frontend = FunctionBuilderContext::new();
        for func in [&self.module.launch, &self.module.block] {
            let mut signature = Signature::new(self.host.optimised.default_call_conv());
            signature.params.push(AbiParam::new(I64));
            signature.returns.push(AbiParam::new(I32));
            let id = link.declare(&func.name, Linkage::Local, &signature);
            let mut function = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
            let builder = FunctionBuilder::new(&mut function, &mut frontend);
            let emit = Emit::new(builder, self.module, func, &mut prints, self.vectors, Some(&mut link));
            emit.function().finalize(self.host.optimised.frontend_config());
            jobs.push(Job::Emitted { id, name: func.name.to_string(), function: Box::new(function) });
            ids.push(id);
        }
        jobs.extend(std::mem::take(&mut link.pieces).into_iter().map(Job::Piece));
        if let Some(why) = link.error {
            return Err(why);
        }
        let mut jit = link.jit;
        let mut text = self.text.then(KernelText::default);
        let mut code_size = 0;
        for made in self.make_all(jobs)? {
            code_size += made.bytes.len();
            if let Some(text) = &mut text {
                text.clif += &made.text.clif;
                text.asm += &made.text.asm;
            }
            jit.define_function_bytes(made.id, made.alignment, &made.bytes, &made.relocs).map_err(|e| e.to_string())?;
        }
        jit.finalize_definitions().map_err(|e| e.to_string())?;
        Ok(Compiled { jit, launch: ids[0], block: ids[1], prints, text, code_size })
    }

    /// Makes the functions, on as many threads as are worth their start. The order of the results is that of the jobs.
    fn make_all(&self, jobs: Vec<Job>) -> Result<Vec<Made>, String> {
        let threads = if jobs.len() < LEAST_FOR_THREADS { 1 } else { MOST_THREADS.min(self.host.cores) };
        let count = jobs.len();
        // The block function is the longest: it goes first.
        let mut waiting: Vec<(usize, Job)> = jobs.into_iter().enumerate().collect();
        waiting.sort_by_key(|(n, _)| *n == 1);
        let waiting = Mutex::new(waiting);
        let work = || {
            let mut maker = Maker { compiler: self, frontend: FunctionBuilderContext::new(), context: Context::new() };
            let mut made = Vec::new();
            loop {
                let Some((n, job)) = waiting.lock().unwrap_or_else(|e| e.into_inner()).pop() else { return made };
                made.push((n, maker.make(job)));
            }
        };
        let mut made = if threads == 1 {
            work()
        } else {
            std::thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
                let mut made = work();
                for other in others {
                    match other.join() {
                        Ok(more) => made.extend(more),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
                made
            })
        };
        debug_assert_eq!(made.len(), count);
        made.sort_by_key(|(n, _)| *n);
        made.into_iter().map(|(_, made)| made).collect()
    }
}

/// Makes functions one after the other, on one thread.
struct Maker<'c, 'm> {
    compiler: &'c Compiler<'m>,
    frontend: FunctionBuilderContext,
    context: Context,
}

impl Maker<'_, '_> {
    fn make(&mut self, job: Job) -> Result<Made, String> {
        let host = self.compiler.host;
        match job {
            Job::Emitted { id, name, function } => {
                self.context.func = *function;
                self.finish(id, &name, &*host.optimised)
            }
            Job::Piece(Piece { id, name, signature, part }) => {
                self.context.func = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
                match part {
                    Part::Product(product) => {
                        self.emit(&self.compiler.module.block, |emit| contract::Kernel::emit(emit, product));
                        self.finish(id, &name, &*host.plain)
                    }
                    Part::Nest(nest) => {
                        self.emit(&nest.func(), |emit| emit.nest_function(&nest));
                        self.finish(id, &name, &*host.optimised)
                    }
                }
            }
        }
    }

    /// Builds a function that calls none into the context.
    fn emit(&mut self, func: &Func, build: impl FnOnce(&mut Emit<'_, '_>)) {
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
        let mut prints = Vec::new();
        let Compiler { module, host, vectors, .. } = *self.compiler;
        let mut emit = Emit::new(builder, module, func, &mut prints, vectors, None);
        build(&mut emit);
        emit.b.finalize(host.optimised.frontend_config());
    }

    /// Compiles the context's function.
    fn finish(&mut self, id: FuncId, name: &str, isa: &dyn TargetIsa) -> Result<Made, String> {
        let mut text = KernelText::default();
        if self.compiler.text {
            let _ = writeln!(text.clif, "; {name}\n{}", self.context.func.display());
            self.context.set_disasm(true);
        }
        self.context.compile(isa, &mut ControlPlane::default()).map_err(|e| e.inner.to_string())?;
        let Some(compiled) = self.context.compiled_code() else { return Err("no code was made".into()) };
        let least = compiled.buffer.alignment.max(isa.function_alignment().minimum);
        let alignment = u64::from(least).max(isa.symbol_alignment());
        if let Some(vcode) = compiled.vcode.as_ref().filter(|_| self.compiler.text) {
            let _ = writeln!(text.asm, "; {name}\n{vcode}");
        }
        let bytes = compiled.code_buffer().to_vec();
        let relocs =
            compiled.buffer.relocs().iter().map(|r| ModuleReloc::from_mach_reloc(r, &self.context.func, id)).collect();
        self.context.clear();
        Ok(Made { id, alignment, bytes, relocs, text })
    }
}
