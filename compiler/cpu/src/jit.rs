//! From a module to code in memory.

use crate::contract::{self, Product, products};
use crate::func::Emit;
use crate::host::host;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, FuncRef, Function, Signature, UserFuncName};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _, ModuleReloc, default_libcall_names};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::{EntryFn, Kernel, KernelParts, MAX_GRID_RANK, PrintItem};
use ptoc_ir::loops::{Func, Module};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
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
    let mut compiler = Compiler {
        jit: JITModule::new(builder),
        frontend: FunctionBuilderContext::new(),
        context: Context::new(),
        text: options.text.then(KernelText::default),
        code_size: 0,
        vectors: options.vectors && host.vectors,
    };
    let functions = compiler.module(module, &*host.optimised, &*host.plain).map_err(|why| {
        Diagnostic::global(codes::KERNEL_TOO_LARGE, format!("kernel `{}` cannot be compiled: {why}", module.name))
    })?;
    let Compiler { jit, text, code_size, .. } = compiler;
    let entry = |id: FuncId| {
        let code = jit.get_finalized_function(id);
        // SAFETY: the function was compiled with exactly this signature and the host's default convention.
        unsafe { std::mem::transmute::<*const u8, EntryFn>(code) }
    };
    let parts = KernelParts {
        name: module.name.to_string(),
        launch: entry(functions.launch),
        block: entry(functions.block),
        params: module.launch.params.len(),
        tensors: module.tensors.len(),
        rank,
        arena: module.arena,
        prints: functions.prints,
        code: Box::new(Code(Mutex::new(Some(jit)))),
    };
    // SAFETY: both functions were emitted for `Frame`, the parts own the code, and it has no state of its own.
    let kernel = unsafe { Kernel::new(parts) };
    Ok(CompiledKernel { kernel, text, code_size })
}

/// What code may call: rounding and `fma` on machines without the instructions.
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
}

struct Compiler {
    jit: JITModule,
    frontend: FunctionBuilderContext,
    context: Context,
    text: Option<KernelText>,
    code_size: usize,
    vectors: bool,
}

struct Functions {
    launch: FuncId,
    block: FuncId,
    prints: Vec<Vec<PrintItem>>,
}

impl Compiler {
    fn module(&mut self, module: &Module, isa: &dyn TargetIsa, plain: &dyn TargetIsa) -> Result<Functions, String> {
        let mut prints = Vec::new();
        let mut known: FxHashMap<Product, FuncId> = FxHashMap::default();
        let mut ids = Vec::new();
        for func in [&module.launch, &module.block] {
            for product in products(func) {
                if known.contains_key(&product) {
                    continue;
                }
                let mut signature = Signature::new(isa.default_call_conv());
                signature.params.extend([AbiParam::new(I64); contract::PARAMS]);
                let id = self.declare(&format!("contract{}", known.len()), &signature)?;
                known.insert(product, id);
                let function = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
                self.emit(module, func, function, &mut prints, FxHashMap::default(), |mut emit| {
                    contract::Kernel::emit(&mut emit, product);
                    emit.b
                });
                self.finish(id, &format!("contract{}", known.len() - 1), plain)?;
            }
            let mut signature = Signature::new(isa.default_call_conv());
            signature.params.push(AbiParam::new(I64));
            signature.returns.push(AbiParam::new(I32));
            let id = self.declare(&func.name, &signature)?;
            let mut function = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
            let mut callees = FxHashMap::default();
            for product in products(func) {
                if let Some(&callee) = known.get(&product) {
                    callees.entry(product).or_insert_with(|| self.jit.declare_func_in_func(callee, &mut function));
                }
            }
            self.emit(module, func, function, &mut prints, callees, |emit| emit.function());
            self.finish(id, &func.name, isa)?;
            ids.push(id);
        }
        self.jit.finalize_definitions().map_err(|e| e.to_string())?;
        Ok(Functions { launch: ids[0], block: ids[1], prints })
    }

    fn declare(&mut self, name: &str, signature: &Signature) -> Result<FuncId, String> {
        self.jit.declare_function(name, Linkage::Local, signature).map_err(|e| e.to_string())
    }

    /// Builds a function into the context.
    fn emit(
        &mut self,
        module: &Module,
        func: &Func,
        function: Function,
        prints: &mut Vec<Vec<PrintItem>>,
        products: FxHashMap<Product, FuncRef>,
        build: impl for<'a, 'b> FnOnce(Emit<'a, 'b>) -> FunctionBuilder<'b>,
    ) {
        self.context.func = function;
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
        let emit = Emit::new(builder, module, func, prints, self.vectors, products);
        let config = self.jit.isa().frontend_config();
        build(emit).finalize(config);
    }

    /// Compiles the context's function with `isa` and hands its bytes to the module.
    fn finish(&mut self, id: FuncId, name: &str, isa: &dyn TargetIsa) -> Result<(), String> {
        if let Some(text) = &mut self.text {
            let _ = writeln!(text.clif, "; {name}\n{}", self.context.func.display());
            self.context.set_disasm(true);
        }
        self.context.compile(isa, &mut ControlPlane::default()).map_err(|e| e.inner.to_string())?;
        let Some(compiled) = self.context.compiled_code() else { return Err("no code was made".into()) };
        let least = compiled.buffer.alignment.max(isa.function_alignment().minimum);
        let alignment = u64::from(least).max(isa.symbol_alignment());
        if let (Some(text), Some(vcode)) = (&mut self.text, &compiled.vcode) {
            let _ = writeln!(text.asm, "; {name}\n{vcode}");
        }
        let bytes = compiled.code_buffer().to_vec();
        let relocs: Vec<ModuleReloc> =
            compiled.buffer.relocs().iter().map(|r| ModuleReloc::from_mach_reloc(r, &self.context.func, id)).collect();
        self.code_size += bytes.len();
        self.jit.define_function_bytes(id, alignment, &bytes, &relocs).map_err(|e| e.to_string())?;
        self.jit.clear_context(&mut self.context);
        Ok(())
    }
}
