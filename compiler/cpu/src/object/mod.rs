//! Object files: a kernel's machine code for every width of vectors, with a function that C calls.
//!
//! The functions are those that are put into memory for a launch (`output.rs`), emitted once for each [`Variant`]. What
//! a launch does around them (`ptoc-exec`) is emitted too: [`entry`] is the function that C calls, `worker` what each
//! of its threads does. So an object needs nothing at run time but the C library, and the routines of `ptoc-native` if
//! its code calls them.
//!
//! Nothing is allocated: tiles are in a workspace that the caller gives.

mod code;
mod entry;
mod fail;
mod interface;
mod layout;
mod processor;
mod variant;
mod worker;

pub use interface::{CheckText, EntryCodes, Extent, Interface, Parameter, ParameterKind, ScalarClass};

use crate::codegen::Settings;
use crate::jit::{rank, too_large};
use crate::launch_invariant;
use crate::link::Link;
use crate::output::{Emitted, Output, emit};
use crate::routines::{Routine, arena};
use code::Maker;
use cranelift_codegen::isa::CallConv;
use cranelift_module::{FuncId, default_libcall_names};
use cranelift_object::object::{BinaryFormat, SectionKind};
use cranelift_object::{ObjectBuilder, ObjectModule};
use layout::{LINE, up};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::loops::Module;
use variant::Variant;

/// The variable that says how wide vectors may be at most: 128, 256 or 512.
pub const VECTORS_VARIABLE: &str = "PTOC_VECTORS";

/// The routine that says how many bytes products need beside the tiles.
const SCRATCH: &str = "ptoc_scratch";

/// From so many bytes on, whole lines of an array that is only written go past the caches: what second-level caches of
/// processors with AVX2 hold, or more.
const NON_TEMPORAL: i64 = 2 << 20;

/// An object file.
#[derive(Debug)]
pub struct ObjectFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Bytes of tiles that a thread needs; with products the runtime adds its own.
    pub arena: u64,
    /// The code has `print` statements, which are silent.
    pub prints: bool,
    /// Bits of the vectors that there is code for.
    pub widths: Vec<u32>,
    /// The routines of the runtime that it calls, by symbol.
    pub routines: Vec<String>,
}

/// What the launch around the code has to know of it.
struct Launched<'m> {
    module: &'m Module,
    interface: &'m Interface,
    /// Launch and block function, by variant.
    variants: Vec<(FuncId, FuncId)>,
    /// Bytes of each thread's tiles, without what products need.
    arena: u64,
    panels: bool,
}

/// Symbols of all routines that objects may call: `ptoc-native` has them.
pub fn routines() -> Vec<String> {
    Routine::all().into_iter().map(Routine::name).chain([SCRATCH.into()]).collect()
}

/// Compiles a module to an object file for this machine's architecture.
///
/// # Errors
/// When the module is not valid loop IR, the architecture is not supported, or Cranelift's limits are exceeded.
pub fn compile(module: &Module, interface: &Interface) -> Result<ObjectFile, Diagnostic> {
    if let Err(mut errors) = ptoc_ir::loops::verify(module) {
        return Err(errors.swap_remove(0));
    }
    rank(module)?;
    let variants = variant::all().map_err(|why| {
        Diagnostic::global(codes::HOST_NOT_SUPPORTED, format!("no object can be made for this architecture: {why}"))
    })?;
    make(module, interface, variants).map_err(|why| too_large(module, &why))
}

fn make(module: &Module, interface: &Interface, variants: &'static [Variant]) -> Result<ObjectFile, String> {
    let isa = variants[0].host.optimised.clone();
    if isa.default_call_conv() != CallConv::SystemV && isa.triple().architecture.to_string() == "x86_64" {
        return Err("objects have the calling convention of System V, which this system has not".into());
    }
    let call_conv = isa.default_call_conv();
    let builder = ObjectBuilder::new(isa, &*interface.symbol, default_libcall_names()).map_err(|e| e.to_string())?;
    let mut output = Output::Object(Box::new(ObjectModule::new(builder)));
    let written = launch_invariant::written(&module.block);
    let mut launched = Launched { module, interface, variants: Vec::new(), arena: module.arena, panels: false };
    let mut prints = false;
    let mut routines: Vec<String> = Vec::new();
    for variant in variants {
        let prefix = format!("{}.{}.", interface.symbol, variant.bits);
        let link = Link::new(output, prefix, call_conv, true, written.clone());
        let settings = Settings {
            host: &variant.host,
            vectors: true,
            wide: variant.wide,
            text: false,
            linked: false,
            collect: false,
        };
        let made: Emitted;
        (made, output) = emit(module, settings, link)?;
        launched.variants.push((made.launch, made.block));
        launched.panels |= made.panels;
        prints |= !made.prints.is_empty();
        routines.extend(made.routines);
    }
    if launched.panels {
        routines.push(SCRATCH.into());
        launched.arena = arena(module);
    }
    let mut maker = Maker::new(output, &variants[0].host);
    entry::define(&mut maker, &launched)?;
    let mut product = maker.output.into_object()?;
    if product.object.format() == BinaryFormat::Elf {
        // Without it linkers take the stack to be executable.
        product.object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
    }
    routines.sort();
    routines.dedup();
    let bytes = product.emit().map_err(|e| e.to_string())?;
    let arena = if launched.panels { launched.arena } else { up(launched.arena, LINE) };
    Ok(ObjectFile { bytes, arena, prints, widths: variants.iter().map(|v| v.bits).collect(), routines })
}
