//! Functions to machine code, one at a time.

use crate::contract;
use crate::func::Emit;
use crate::host::Host;
use crate::link::{CodeUnit, FunctionPart};
use crate::listing::{self, Mark, Numbering, Sources};
use crate::routines::Available;
use crate::wide::{self, Isa};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Signature, UserFuncName};
use cranelift_codegen::isa::TargetIsa;
use cranelift_entity::PrimaryMap;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{FuncId, ModuleReloc};
use ptoc_ir::loops::{Func, FunctionEntry, Module, Region};

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
    /// The code runs in this process, on this machine, and the routines are at hand.
    pub(crate) linked: bool,
    /// Keep the functions' bytes, to be stored.
    pub(crate) collect: bool,
}

impl Settings {
    /// The routines that code of these settings may call.
    pub(crate) fn routines(&self) -> Available {
        match (self.linked, self.wide) {
            (true, _) => Available::Here,
            (false, Some(_)) => Available::Wide,
            (false, None) => Available::Least,
        }
    }
}

/// A function in Cranelift's IR, or what it is to be made of.
pub(crate) enum Job {
    Emitted { id: FuncId, name: String, function: Box<Function>, sources: Sources },
    Piece(CodeUnit),
}

/// A function's machine code.
pub(crate) struct Made {
    pub(crate) id: FuncId,
    pub(crate) alignment: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) relocs: Vec<ModuleReloc>,
    /// How many of the bytes are code rather than constants, if that is known.
    pub(crate) code: Option<usize>,
    /// What the instructions stem from.
    pub(crate) marks: Vec<Mark>,
    pub(crate) text: Text,
    /// For a loop nest, whether it is at full vector width.
    pub(crate) nest: Option<bool>,
}

/// Texts of a function, if they are wanted.
#[derive(Default)]
pub(crate) struct Text {
    /// Cranelift IR, or a vector program.
    pub(crate) clif: String,
    /// What Cranelift disassembles, of code that is not x86-64's.
    pub(crate) disassembly: Option<String>,
}

/// Makes functions one after the other, on one thread.
pub(crate) struct UnitCompiler {
    settings: Settings,
    /// The module of functions that refer to none.
    nowhere: Module,
    frontend: FunctionBuilderContext,
    context: Context,
}

impl UnitCompiler {
    pub(crate) fn new(settings: Settings) -> UnitCompiler {
        let nowhere = Module {
            spread: Vec::new(),
            raster: None,
            cluster: Vec::new(),
            name: "".into(),
            tensors: Vec::new(),
            spaces: PrimaryMap::new(),
            arena: 0,
            checks: Vec::new(),
            bounds: Vec::new(),
            launch: empty(FunctionEntry::Launch),
            block: empty(FunctionEntry::Block),
        };
        UnitCompiler { settings, nowhere, frontend: FunctionBuilderContext::new(), context: Context::new() }
    }

    /// A function's code, its name, and where it comes from.
    pub(crate) fn make(&mut self, job: Job) -> Result<(Made, String, Sources), String> {
        match job {
            Job::Emitted { id, name, function, sources } => {
                self.context.func = *function;
                let made = self.finish(id, &name, &*self.settings.host.optimised)?;
                Ok((made, name, sources))
            }
            Job::Piece(piece) => {
                let CodeUnit { id, name, signature, part, sources } = piece;
                let made = self.piece(id, &name, signature, part)?;
                Ok((made, name, sources))
            }
        }
    }

    fn piece(&mut self, id: FuncId, name: &str, signature: Signature, part: FunctionPart) -> Result<Made, String> {
        let host = self.settings.host;
        if let (Some(isa), FunctionPart::Nest(nest)) = (self.settings.wide, &part)
            // Objects are for any processor that has the instruction set.
            && let Some(wide::Wide { code, program }) =
                wide::make(nest, isa, isa.multishift(self.settings.linked), (name, self.settings.text))?
        {
            let text = Text { clif: program, disassembly: None };
            let (alignment, relocs) = (CODE_ALIGNMENT, Vec::new());
            let (bytes, marks, code) = (code.bytes, code.marks, Some(code.code));
            return Ok(Made { id, alignment, bytes, relocs, code, marks, text, nest: Some(true) });
        }
        self.context.func = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
        match part {
            FunctionPart::Product(product) => {
                self.emit(&empty(FunctionEntry::Block), |emit| contract::Kernel::emit(emit, product));
                self.finish(id, name, &*host.plain)
            }
            FunctionPart::Nest(nest) => {
                self.emit(&nest.func(), |emit| emit.nest_function(&nest));
                Ok(Made { nest: Some(false), ..self.finish(id, name, &*host.optimised)? })
            }
        }
    }

    /// Builds a function that calls none into the context.
    fn emit(&mut self, func: &Func, build: impl FnOnce(&mut Emit<'_, '_>)) {
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
        let mut prints = Vec::new();
        let Settings { host, vectors, text, .. } = self.settings;
        let routines = self.settings.routines();
        let numbering = if text { Numbering::Body } else { Numbering::Off };
        let mut emit = Emit::new(builder, &self.nowhere, func, &mut prints, (vectors, routines), None, numbering);
        build(&mut emit);
        emit.b.finalize(host.optimised.frontend_config());
    }

    /// Compiles the context's function.
    fn finish(&mut self, id: FuncId, name: &str, isa: &dyn TargetIsa) -> Result<Made, String> {
        let mut text = Text::default();
        if self.settings.text {
            // Numbers of sources would only be in the way of the IR.
            let numbers = std::mem::take(&mut self.context.func.srclocs);
            text.clif = format!("; {name}\n{}\n", self.context.func.display());
            self.context.func.srclocs = numbers;
            self.context.set_disasm(isa.name() != "x64");
        }
        self.context.compile(isa, &mut ControlPlane::default()).map_err(|e| e.inner.to_string())?;
        let Some(compiled) = self.context.compiled_code() else { return Err("no code was made".into()) };
        let least = compiled.buffer.alignment.max(isa.function_alignment().minimum);
        let alignment = u64::from(least).max(isa.symbol_alignment());
        text.disassembly.clone_from(&compiled.vcode);
        let marks = listing::marks(compiled.buffer.get_srclocs_sorted());
        let bytes = compiled.code_buffer().to_vec();
        let relocs =
            compiled.buffer.relocs().iter().map(|r| ModuleReloc::from_mach_reloc(r, &self.context.func, id)).collect();
        self.context.clear();
        Ok(Made { id, alignment, bytes, relocs, code: None, marks, text, nest: None })
    }
}

/// A function of loop IR without anything in it.
fn empty(entry: FunctionEntry) -> Func {
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
