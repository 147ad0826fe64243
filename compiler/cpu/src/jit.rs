//! From a module to code in memory.

use crate::codegen::Settings;
use crate::host::{Host, host};
use crate::launch_invariant;
use crate::link::Link;
use crate::listing::FunctionListing;
use crate::output::{Emitted, Output, emit};
use crate::routines::{Routine, arena};
use crate::stored::{self, CodeStore, StoredCode};
use crate::wide::Isa;
use cranelift_codegen::isa::CallConv;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, default_libcall_names};
use ptoc_abi::{EntryFn, MAX_GRID_RANK};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::{Kernel, KernelParts, Vectors};
use ptoc_ir::loops::Module;
use std::ops::Deref;
use std::sync::Mutex;

/// How to compile.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keep the Cranelift IR and the disassembly (costs time).
    pub text: bool,
    /// The vectors of `Lanes` and of emitted matrix products.
    pub vectors: Vectors,
    /// From so many bytes on, whole lines of an array that a kernel only writes go past the caches; unless given, what
    /// a core's second-level cache holds.
    pub non_temporal: Option<usize>,
    /// Products of f16 and bf16 have the interpreter's bits. Unless that is asked for, they are computed by the
    /// processor's matrix unit (AMX) where there is one, which rounds in another order: `spec/numerics.md` has the
    /// bound.
    pub exact: bool,
}

/// Whether the machine at hand supports vectors of this width.
pub fn available(vectors: Vectors) -> bool {
    match vectors {
        Vectors::Auto | Vectors::None => true,
        Vectors::Bits128 => host().is_ok_and(|host| host.vectors),
        Vectors::Bits256 => Isa::Avx2.here(),
        Vectors::Bits512 => Isa::Avx512.here(),
    }
}

/// What full-width code is made for.
fn isa(vectors: Vectors) -> Option<Isa> {
    match vectors {
        Vectors::Auto => [Isa::Avx512, Isa::Avx2].into_iter().find(|isa| isa.here()),
        Vectors::None | Vectors::Bits128 => None,
        Vectors::Bits256 => Some(Isa::Avx2),
        Vectors::Bits512 => Some(Isa::Avx512),
    }
}

/// What a machine needs for vectors of this width.
fn needs(vectors: Vectors) -> &'static str {
    match vectors {
        Vectors::Bits512 => "AVX-512 F, BW, DQ and VL",
        Vectors::Bits256 => "AVX2, FMA and F16C",
        _ => "SSE 4.2",
    }
}

impl Default for Options {
    fn default() -> Options {
        Options { text: false, vectors: Vectors::Auto, non_temporal: None, exact: true }
    }
}

/// The stages of `ptoc emit` that Cranelift knows.
#[derive(Clone, Debug, Default)]
pub struct KernelText {
    /// Cranelift IR of every function, before optimisation.
    pub clif: String,
    /// Machine code of every function.
    pub code: Vec<FunctionListing>,
}

/// Machine code with its launch interface; freed when dropped.
#[derive(Debug)]
pub struct CompiledKernel {
    kernel: Kernel,
    text: Option<KernelText>,
    /// Where the functions of the text are in memory, by their addresses.
    functions: Vec<usize>,
    code_size: usize,
    nests: (usize, usize),
}

impl CompiledKernel {
    /// The functions with their bytes in memory, if [`Options::text`] asked for the text.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (&FunctionListing, &[u8])> {
        let listings = self.text.iter().flat_map(|text| &text.code);
        listings.zip(&self.functions).map(|(listing, at)| {
            let code = std::ptr::with_exposed_provenance(*at);
            // SAFETY: so many bytes were put there, the kernel owns them, and nothing writes them any more.
            (listing, unsafe { std::slice::from_raw_parts(code, listing.size) })
        })
    }

    /// Loop nests that are functions of their own: those at full vector width, and all.
    pub fn nests(&self) -> (usize, usize) {
        self.nests
    }

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
    compile_or_load(module, options, None)
}

/// Compiles a module, or takes its code from where an earlier process has stored it. `store`: where, and the name of
/// this build of the compiler, which changes when its code does. Code whose text is wanted is always compiled.
///
/// # Errors
/// As of [`compile`].
pub fn compile_or_load(
    module: &Module,
    options: &Options,
    store: Option<(&dyn CodeStore, &str)>,
) -> Result<CompiledKernel, Diagnostic> {
    if let Err(mut errors) = ptoc_ir::loops::verify(module) {
        return Err(errors.swap_remove(0));
    }
    let rank = rank(module)?;
    let host = host().map_err(|why| {
        Diagnostic::global(codes::HOST_NOT_SUPPORTED, format!("no machine code can be made for this machine: {why}"))
    })?;
    if !available(options.vectors) {
        let bits = Vectors::NAMES.iter().find(|(_, v)| *v == options.vectors).map_or("", |(name, _)| name);
        let needs = needs(options.vectors);
        let message = format!("this machine has no {bits}-bit vectors: they need {needs}");
        return Err(Diagnostic::global(codes::HOST_NOT_SUPPORTED, message)
            .with_help("`--vectors auto` takes the widest that there are; `ptoc build` writes code for all of them"));
    }
    let vectors = options.vectors != Vectors::None && host.vectors;
    let wide = isa(options.vectors).filter(|_| host.optimised.default_call_conv() == CallConv::SystemV);
    let store = store.filter(|_| !options.text);
    let settings = Settings { host, vectors, wide, text: options.text, linked: true, collect: store.is_some() };
    let stored = store.map(|(store, compiler)| (store, stored::key(module, &settings, options.exact, compiler)));
    if let Some((made, jit)) = stored.as_ref().and_then(|(store, key)| load(*store, key, host)) {
        return Ok(loaded(module, options, made, jit, rank));
    }
    let written = launch_invariant::written(&module.block);
    let output = Output::Memory(Box::new(JITModule::new(jit_builder(host))));
    let link = Link::new(output, String::new(), host.optimised.default_call_conv(), options.exact, written);
    let (mut made, mut output) = emit(module, settings, link).map_err(|why| too_large(module, &why))?;
    if let Some((store, key)) = stored
        && let Some(code) = std::mem::take(&mut made.collected).finish(&made, output.module())
        && let Some(bytes) = code.to_bytes()
    {
        store.store(&key, &bytes);
    }
    let jit = output.into_memory().map_err(|why| too_large(module, &why))?;
    Ok(loaded(module, options, made, jit, rank))
}

/// Addresses that a kernel's code is given. Pages that hold none take no memory.
const RESERVED: usize = 64 << 20;

fn jit_builder(host: &Host) -> JITBuilder {
    let mut builder = JITBuilder::with_isa(host.optimised.clone(), default_libcall_names());
    // Functions call each other over at most 2 GiB, and pieces that are mapped one by one may lie further apart.
    if cfg!(unix)
        && let Ok(arena) = ArenaMemoryProvider::new_with_size(RESERVED)
    {
        builder.memory_provider(Box::new(arena));
    }
    symbols(&mut builder);
    builder
}

/// Code that was stored; `None` if there is none, or it is damaged.
fn load(store: &dyn CodeStore, key: &str, host: &Host) -> Option<(Emitted, JITModule)> {
    let code = StoredCode::of_bytes(&store.load(key)?)?;
    let mut jit = JITModule::new(jit_builder(host));
    let made = code.define(&mut jit).and_then(|made| jit.finalize_definitions().ok().map(|()| made));
    if made.is_none() {
        // SAFETY: nothing has an address of this code.
        unsafe { jit.free_memory() };
        return None;
    }
    Some((made?, jit))
}

/// The kernel of code in memory.
fn loaded(module: &Module, options: &Options, made: Emitted, jit: JITModule, rank: usize) -> CompiledKernel {
    let Emitted { launch, block, prints, text, functions, code_size, panels, nests, .. } = made;
    let functions = functions.into_iter().map(|id| jit.get_finalized_function(id).expose_provenance()).collect();
    let entry = |id: FuncId| {
        let code = jit.get_finalized_function(id);
        // SAFETY: the function was compiled with exactly this signature and the host's default convention.
        unsafe { std::mem::transmute::<*const u8, EntryFn>(code) }
    };
    let parts = KernelParts {
        non_temporal: options.non_temporal.unwrap_or_else(ptoc_kernels::second_level),
        name: module.name.to_string(),
        launch: entry(launch),
        block: entry(block),
        params: module.launch.params.len(),
        tensors: module.tensors.len(),
        rank,
        arena: if panels { arena(module) + ptoc_kernels::scratch() } else { module.arena },
        kept: panels.then(|| arena(module)),
        raster: module.raster,
        spread: module.spread.iter().map(|d| *d as usize).collect(),
        prints,
        code: Box::new(Code(Mutex::new(Some(jit)))),
    };
    // SAFETY: both functions were emitted for `Frame`, the parts own the code, and it has no state of its own.
    let kernel = unsafe { Kernel::new(parts) };
    CompiledKernel { kernel, text, functions, code_size, nests }
}

/// Dimensions of a module's grid.
pub(crate) fn rank(module: &Module) -> Result<usize, Diagnostic> {
    let rank = module.launch.results.len();
    if rank > MAX_GRID_RANK {
        let message = format!("a grid of {rank} dimensions; the launcher counts at most {MAX_GRID_RANK}");
        return Err(Diagnostic::global(codes::KERNEL_TOO_LARGE, message));
    }
    Ok(rank)
}

/// A refusal of the code generator.
pub(crate) fn too_large(module: &Module, why: &str) -> Diagnostic {
    Diagnostic::global(codes::KERNEL_TOO_LARGE, format!("kernel `{}` cannot be compiled: {why}", module.name))
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
