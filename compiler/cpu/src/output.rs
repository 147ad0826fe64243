//! Emission of a module's functions, and where they are put: into this process, or into an object file.

use crate::codegen::{Job, Settings, UnitCompiler};
use crate::func::Emit;
use crate::jit::KernelText;
use crate::link::Link;
use crate::listing::{FunctionListing, Numbering};
use crate::stored::Collected;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module as Functions};
use cranelift_object::{ObjectModule, ObjectProduct};
use ptoc_abi::PrintItem;
use ptoc_ir::loops::Module;

/// Where functions are put.
pub(crate) enum Output {
    /// Into memory, to be called.
    Memory(Box<JITModule>),
    /// Into an object file, to be linked.
    Object(Box<ObjectModule>),
}

impl Output {
    /// Declarations and definitions.
    pub(crate) fn module(&mut self) -> &mut dyn Functions {
        match self {
            Output::Memory(module) => &mut **module,
            Output::Object(module) => &mut **module,
        }
    }

    /// The code, with all references resolved.
    pub(crate) fn into_memory(self) -> Result<JITModule, String> {
        match self {
            Output::Memory(mut module) => {
                module.finalize_definitions().map_err(|e| e.to_string())?;
                Ok(*module)
            }
            Output::Object(_) => Err("it is in an object file".into()),
        }
    }

    /// The object file.
    pub(crate) fn into_object(self) -> Result<ObjectProduct, String> {
        match self {
            Output::Object(module) => Ok(module.finish()),
            Output::Memory(_) => Err("it is in memory".into()),
        }
    }
}

/// A module's code.
pub(crate) struct Emitted {
    pub(crate) launch: FuncId,
    pub(crate) block: FuncId,
    pub(crate) prints: Vec<Vec<PrintItem>>,
    pub(crate) text: Option<KernelText>,
    /// The functions, in the order of the text.
    pub(crate) functions: Vec<FuncId>,
    pub(crate) code_size: usize,
    pub(crate) panels: bool,
    pub(crate) nests: (usize, usize),
    /// Symbols of the routines that are called.
    pub(crate) routines: Vec<String>,
    /// The functions, if they were asked for.
    pub(crate) collected: Collected,
}

/// Emits the launch and the block function, compiles them and what they call, and puts the code into the output.
pub(crate) fn emit(module: &Module, settings: Settings, mut link: Link) -> Result<(Emitted, Output), String> {
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
        let numbering = if settings.text { Numbering::spans() } else { Numbering::Off };
        let able = (settings.vectors, settings.routines());
        let emit = Emit::new(builder, module, func, &mut prints, able, Some(&mut link), numbering);
        let (builder, sources) = emit.function();
        builder.finalize(isa.frontend_config());
        jobs.push(Job::Emitted { id, name: func.name.to_string(), function: Box::new(function), sources });
        ids.push(id);
    }
    jobs.extend(std::mem::take(&mut link.pieces).into_iter().map(Job::Piece));
    if let Some(why) = link.error {
        return Err(why);
    }
    let panels = link.panels;
    let routines = link.routines.keys().map(|r| r.name()).collect();
    let mut output = link.output;
    let mut text = settings.text.then(KernelText::default);
    let mut functions = Vec::new();
    let mut code_size = 0;
    let mut nests = (0, 0);
    let mut collected = if settings.collect { Collected::start() } else { Collected::default() };
    // On this thread alone: a few milliseconds are less than what another thread may have to wait for a processor.
    let mut maker = UnitCompiler::new(settings);
    for job in jobs {
        let (made, name, sources) = maker.make(job)?;
        code_size += made.bytes.len();
        if let Some(wide) = made.nest {
            nests = (nests.0 + usize::from(wide), nests.1 + 1);
        }
        functions.push(made.id);
        let code = output.module();
        if let Some(text) = &mut text {
            text.clif += &made.text.clif;
            text.code.push(FunctionListing::new(&made, name, &sources, code.declarations()));
        }
        collected.add(made.id, made.alignment, &made.bytes, &made.relocs);
        code.define_function_bytes(made.id, made.alignment, &made.bytes, &made.relocs).map_err(|e| e.to_string())?;
    }
    let (launch, block) = (ids[0], ids[1]);
    Ok((Emitted { launch, block, prints, text, functions, code_size, panels, nests, routines, collected }, output))
}
