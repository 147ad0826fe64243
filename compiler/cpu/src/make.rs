//! Functions to machine code, one at a time.

use crate::contract;
use crate::func::Emit;
use crate::host::Host;
use crate::jit::KernelText;
use crate::link::{Part, Piece};
use crate::wide::{self, Isa};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, UserFuncName};
use cranelift_codegen::isa::TargetIsa;
use cranelift_entity::PrimaryMap;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, ModuleReloc};
use ptoc_ir::loops::{Entry, Func, Module, Region};
use std::fmt::Write as _;

/// Of functions at full vector width.
const CODE_ALIGNMENT: u64 = 64;

/// What every function is compiled with.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) host: &'static Host,
    pub(crate) vectors: bool,
    /// What nests are made for, rather than by Cranelift.
    pub(crate) wide: Option<Isa>,
    /// Keep the texts.
    pub(crate) text: bool,
}

/// A function in Cranelift's IR, or what it is to be made of.
pub(crate) enum Job {
    Emitted { id: FuncId, name: String, function: Box<Function> },
    Piece(Piece),
}

/// A function's machine code.
pub(crate) struct Made {
    pub(crate) id: FuncId,
    pub(crate) alignment: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) relocs: Vec<ModuleReloc>,
    pub(crate) text: KernelText,
    /// For a loop nest: is it at full vector width?
    pub(crate) nest: Option<bool>,
}

/// Makes functions one after the other, on one thread.
pub(crate) struct Maker {
    settings: Settings,
    /// The module of functions that refer to none.
    nowhere: Module,
    frontend: FunctionBuilderContext,
    context: Context,
}

impl Maker {
    pub(crate) fn new(settings: Settings) -> Maker {
        let nowhere = Module {
            spread: Vec::new(),
            raster: None,
            name: "".into(),
            tensors: Vec::new(),
            spaces: PrimaryMap::new(),
            arena: 0,
            checks: Vec::new(),
            bounds: Vec::new(),
            launch: empty(Entry::Launch),
            block: empty(Entry::Block),
        };
        Maker { settings, nowhere, frontend: FunctionBuilderContext::new(), context: Context::new() }
    }

    pub(crate) fn make(&mut self, job: Job) -> Result<Made, String> {
        let host = self.settings.host;
        match job {
            Job::Emitted { id, name, function } => {
                self.context.func = *function;
                self.finish(id, &name, &*host.optimised)
            }
            Job::Piece(Piece { id, name, signature, part }) => {
                if let (Some(isa), Part::Nest(nest)) = (self.settings.wide, &part)
                    && let Some(made) = wide::make(nest, isa, &name, self.settings.text)?
                {
                    let wide::Wide { bytes, text } = made;
                    return Ok(Made {
                        id,
                        alignment: CODE_ALIGNMENT,
                        bytes,
                        relocs: Vec::new(),
                        text,
                        nest: Some(true),
                    });
                }
                self.context.func = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
                match part {
                    Part::Product(product) => {
                        self.emit(&empty(Entry::Block), |emit| contract::Kernel::emit(emit, product));
                        self.finish(id, &name, &*host.plain)
                    }
                    Part::Nest(nest) => {
                        self.emit(&nest.func(), |emit| emit.nest_function(&nest));
                        Ok(Made { nest: Some(false), ..self.finish(id, &name, &*host.optimised)? })
                    }
                }
            }
        }
    }

    /// Builds a function that calls none into the context.
    fn emit(&mut self, func: &Func, build: impl FnOnce(&mut Emit<'_, '_>)) {
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
        let mut prints = Vec::new();
        let Settings { host, vectors, .. } = self.settings;
        let mut emit = Emit::new(builder, &self.nowhere, func, &mut prints, vectors, None);
        build(&mut emit);
        emit.b.finalize(host.optimised.frontend_config());
    }

    /// Compiles the context's function.
    fn finish(&mut self, id: FuncId, name: &str, isa: &dyn TargetIsa) -> Result<Made, String> {
        let mut text = KernelText::default();
        if self.settings.text {
            let _ = writeln!(text.clif, "; {name}\n{}", self.context.func.display());
            self.context.set_disasm(true);
        }
        self.context.compile(isa, &mut ControlPlane::default()).map_err(|e| e.inner.to_string())?;
        let Some(compiled) = self.context.compiled_code() else { return Err("no code was made".into()) };
        let least = compiled.buffer.alignment.max(isa.function_alignment().minimum);
        let alignment = u64::from(least).max(isa.symbol_alignment());
        if let Some(vcode) = compiled.vcode.as_ref().filter(|_| self.settings.text) {
            let _ = writeln!(text.asm, "; {name}\n{vcode}");
        }
        let bytes = compiled.code_buffer().to_vec();
        let relocs =
            compiled.buffer.relocs().iter().map(|r| ModuleReloc::from_mach_reloc(r, &self.context.func, id)).collect();
        self.context.clear();
        Ok(Made { id, alignment, bytes, relocs, text, nest: None })
    }
}

/// A function of loop IR without anything in it.
fn empty(entry: Entry) -> Func {
    Func {
        name: "".into(),
        entry,
        params: Vec::new(),
        results: Vec::new(),
        regs: PrimaryMap::new(),
        vars: PrimaryMap::new(),
        labels: PrimaryMap::new(),
        body: Region::new(),
    }
}
