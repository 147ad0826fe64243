//! Machine code that outlives the process: the functions of a kernel as bytes, with references by name, and the key
//! that says what they were made of.

use crate::codegen::Settings;
use crate::output::Emitted;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{LibCall, Signature};
use cranelift_codegen::isa::CallConv;
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module as Functions, ModuleReloc, ModuleRelocTarget};
use ptoc_ir::loops::Module;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::{self, Debug, Write as _};

/// A place for machine code, by keys that are names of files.
pub trait CodeStore: Sync {
    /// What was stored for the key, unchanged.
    fn load(&self, key: &str) -> Option<Vec<u8>>;

    /// Stores code for the key. It may be lost at any time.
    fn store(&self, key: &str, code: &[u8]);
}

/// Relocations of calls and of addresses, by their numbers in stored code. Code with others is not stored.
const RELOCS: [Reloc; 6] =
    [Reloc::Abs8, Reloc::X86PCRel4, Reloc::X86CallPCRel4, Reloc::X86CallPLTRel4, Reloc::X86GOTPCRel4, Reloc::Arm64Call];

/// Bytes that a relocation writes.
fn patched(kind: u8) -> usize {
    if kind == 0 { 8 } else { 4 }
}

/// The functions of a kernel.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredCode {
    /// Names by their numbers, and whether they are defined here.
    names: Vec<(String, bool)>,
    functions: Vec<StoredFunction>,
    launch: u32,
    block: u32,
    panels: bool,
    nests: (usize, usize),
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredFunction {
    number: u32,
    alignment: u64,
    bytes: Vec<u8>,
    references: Vec<Reference>,
}

/// A relocation.
#[derive(Debug, Serialize, Deserialize)]
struct Reference {
    offset: u32,
    kind: u8,
    target: Target,
    addend: i64,
}

#[derive(Debug, Serialize, Deserialize)]
enum Target {
    Function(u32),
    Library(String),
    Inside(u32, u32),
}

/// Functions that are collected to be stored, as long as all of them can be.
#[derive(Debug, Default)]
pub(crate) struct Collected(Option<Vec<StoredFunction>>);

impl Collected {
    /// A collection without functions.
    pub(crate) fn start() -> Collected {
        Collected(Some(Vec::new()))
    }

    /// Adds a function.
    pub(crate) fn add(&mut self, id: FuncId, alignment: u64, bytes: &[u8], relocs: &[ModuleReloc]) {
        if let Some(functions) = &mut self.0 {
            match relocs.iter().map(reference).collect() {
                Some(references) => {
                    functions.push(StoredFunction { number: id.as_u32(), alignment, bytes: bytes.to_vec(), references })
                }
                None => self.0 = None,
            }
        }
    }

    /// The code, if all of it can be stored: texts to print are not.
    pub(crate) fn finish(self, made: &Emitted, module: &dyn Functions) -> Option<StoredCode> {
        let functions = self.0.filter(|_| made.prints.is_empty())?;
        let declared = module.declarations().get_functions();
        let names = declared.map(|(id, d)| (d.linkage_name(id).into_owned(), d.linkage != Linkage::Import));
        Some(StoredCode {
            names: names.collect(),
            functions,
            launch: made.launch.as_u32(),
            block: made.block.as_u32(),
            panels: made.panels,
            nests: made.nests,
        })
    }
}

fn reference(reloc: &ModuleReloc) -> Option<Reference> {
    let kind = RELOCS.iter().position(|r| *r == reloc.kind)? as u8;
    let target = match &reloc.name {
        ModuleRelocTarget::User { namespace: 0, index } => Target::Function(*index),
        ModuleRelocTarget::LibCall(call) => Target::Library(call.to_string()),
        ModuleRelocTarget::FunctionOffset(id, offset) => Target::Inside(id.as_u32(), *offset),
        _ => return None,
    };
    Some(Reference { offset: reloc.offset, kind, target, addend: reloc.addend })
}

impl Reference {
    fn reloc(&self) -> Option<ModuleReloc> {
        let name = match &self.target {
            Target::Function(index) => ModuleRelocTarget::User { namespace: 0, index: *index },
            Target::Library(name) => ModuleRelocTarget::LibCall(name.parse::<LibCall>().ok()?),
            Target::Inside(id, offset) => ModuleRelocTarget::FunctionOffset(FuncId::from_u32(*id), *offset),
        };
        let kind = *RELOCS.get(usize::from(self.kind))?;
        Some(ModuleReloc { offset: self.offset, kind, name, addend: self.addend })
    }
}

impl StoredCode {
    /// As it is stored.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_allocvec(self).ok()
    }

    /// Stored code, if that is what the bytes are.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<StoredCode> {
        postcard::from_bytes(bytes).ok()
    }

    /// Puts the functions into a module that has none yet. `None` if they do not fit together.
    pub(crate) fn define(self, module: &mut JITModule) -> Option<Emitted> {
        // The signatures were used when calls were compiled.
        let signature = Signature::new(CallConv::SystemV);
        for (number, (name, defined)) in self.names.iter().enumerate() {
            let linkage = if *defined { Linkage::Local } else { Linkage::Import };
            let id = module.declare_function(name, linkage, &signature).ok()?;
            if id.as_u32() as usize != number {
                return None;
            }
        }
        let known = |number: u32| (number as usize) < self.names.len();
        let mut functions = Vec::new();
        let mut code_size = 0;
        for f in &self.functions {
            let relocs: Vec<ModuleReloc> = f.references.iter().map(Reference::reloc).collect::<Option<_>>()?;
            let refers = |r: &Reference| {
                r.offset as usize + patched(r.kind) <= f.bytes.len()
                    && match r.target {
                        Target::Function(n) | Target::Inside(n, _) => known(n),
                        Target::Library(_) => true,
                    }
            };
            if !known(f.number) || !f.references.iter().all(refers) {
                return None;
            }
            let id = FuncId::from_u32(f.number);
            module.define_function_bytes(id, f.alignment, &f.bytes, &relocs).ok()?;
            code_size += f.bytes.len();
            functions.push(id);
        }
        let defined = |n: u32| functions.contains(&FuncId::from_u32(n));
        let made = Emitted {
            launch: FuncId::from_u32(self.launch),
            block: FuncId::from_u32(self.block),
            prints: Vec::new(),
            text: None,
            functions: functions.clone(),
            code_size,
            panels: self.panels,
            nests: self.nests,
            routines: Vec::new(),
            collected: Collected::default(),
        };
        (defined(self.launch) && defined(self.block)).then_some(made)
    }
}

/// The key of a module's code: a hash of all that it is made of. `compiler` names the compiler, down to its build.
pub(crate) fn key(module: &Module, settings: &Settings, exact: bool, compiler: &str) -> String {
    struct Hashed(Sha256);
    impl fmt::Write for Hashed {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut hash = Hashed(Sha256::new());
    let (host, plain) = (&settings.host.optimised, &settings.host.plain);
    let features: Vec<String> = host.isa_flags().iter().map(|flag| flag.to_string()).collect();
    let parts: [&dyn Debug; 8] = [
        &compiler,
        &host.triple(),
        &host.flags().to_string(),
        &plain.flags().to_string(),
        &features,
        &(settings.vectors, settings.host.vectors, settings.wide, settings.linked),
        &exact,
        module,
    ];
    for part in parts {
        writeln!(hash, "{part:?}").expect("a hash takes any text");
    }
    hash.0.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
