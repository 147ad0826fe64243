//! Launches that are prepared already.
//!
//! A session compiles a kernel once for what it was elaborated with: programs launch one kernel several times, and runs
//! of one file differ in sizes that the kernel does not know. What a kernel is elaborated to says what the passes make
//! of it, since a session has one target; so elaborated kernels are what is compared, with the places in the source
//! that they point to.

use ptoc_exec::Vectors;
use ptoc_ir::loops::Module;
use ptoc_ir::tile::{Kernel, TensorId};
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::Pipeline;
use std::any::Any;
use std::sync::Arc;

/// Launches that are kept, the last ones first.
const KEPT: usize = 64;

/// What code was asked for: its vectors, and whether f16 and bf16 have the interpreter's bits.
pub type CodeKind = (Vectors, bool);

/// How a kernel was prepared: `watched` of the session, and the pipeline.
pub type PreparedKind = (bool, Pipeline);

/// What a session has compiled.
#[derive(Debug, Default)]
pub struct Cache {
    entries: Vec<Entry>,
    /// The tensors that launches of a kernel may leave unwritten, as its analysis said. A program of hundreds of
    /// launches asks of few kernels, and has one budget for all.
    unfilled: Vec<(Kernel, Vec<TensorId>)>,
}

#[derive(Debug)]
struct Entry {
    /// As it was elaborated.
    kernel: Kernel,
    kind: PreparedKind,
    prepared: Prepared,
    /// What backends have made of it, each by its own type.
    code: Vec<(CodeKind, Arc<dyn Any + Send + Sync>)>,
}

impl Cache {
    /// What the passes made of the kernel.
    pub fn prepared(&self, kernel: &Kernel, kind: PreparedKind) -> Option<Prepared> {
        self.entries.iter().find(|e| e.kind == kind && e.kernel == *kernel).map(|e| e.prepared.clone())
    }

    /// The tensors that a launch of the kernel may leave unwritten, if somebody has asked before.
    pub fn unfilled(&self, kernel: &Kernel) -> Option<&[TensorId]> {
        self.unfilled.iter().find(|(known, _)| known == kernel).map(|(_, tensors)| &tensors[..])
    }

    /// Keeps which tensors a launch may leave unwritten.
    pub fn keep_unfilled(&mut self, kernel: &Kernel, tensors: &[TensorId]) {
        self.unfilled.insert(0, (kernel.clone(), tensors.to_vec()));
        self.unfilled.truncate(KEPT);
    }

    /// Keeps what the passes made of a kernel.
    pub fn keep(&mut self, kernel: Kernel, kind: PreparedKind, prepared: &Prepared) {
        self.entries.insert(0, Entry { kernel, kind, prepared: prepared.clone(), code: Vec::new() });
        self.entries.truncate(KEPT);
    }

    /// The code of this type for a module that was prepared: that of the backend whose type it is.
    pub fn code<C: Any + Send + Sync>(&self, module: &Arc<Module>, kind: CodeKind) -> Option<Arc<C>> {
        let entry = self.entries.iter().find(|e| e.is_of(module))?;
        let mut of_kind = entry.code.iter().filter(|(known, _)| *known == kind);
        of_kind.find_map(|(_, code)| Arc::clone(code).downcast().ok())
    }

    /// Keeps a backend's code of a module, if it was prepared here.
    pub fn keep_code<C: Any + Send + Sync>(&mut self, module: &Arc<Module>, kind: CodeKind, code: &Arc<C>) {
        let code: Arc<dyn Any + Send + Sync> = Arc::clone(code) as _;
        if let Some(entry) = self.entries.iter_mut().find(|e| e.is_of(module)) {
            entry.code.push((kind, code));
        }
    }
}

impl Entry {
    fn is_of(&self, module: &Arc<Module>) -> bool {
        self.prepared.module.as_ref().is_some_and(|own| Arc::ptr_eq(own, module))
    }
}
