//! Files of kernels.

use crate::{Error, Kernel};
use ptoc_driver::library::{self, Callable, Library, Report};
use std::path::Path;
use std::sync::Arc;

/// A file of kernels and programs that has no mistakes of syntax or names.
#[derive(Clone, Debug)]
pub struct Module {
    library: Arc<Library>,
}

impl Module {
    /// Reads a file, or a module of the standard library (`std::scan`).
    ///
    /// # Errors
    /// A file that cannot be read, or has mistakes.
    pub fn open(path: impl AsRef<Path>) -> Result<Module, Error> {
        Ok(Module { library: Arc::new(Library::open(path.as_ref())?) })
    }

    /// A text, such as one of `include_str!`. `path` is what it is called, and says where imports are looked for.
    ///
    /// # Errors
    /// Mistakes in it.
    pub fn of_text(path: impl AsRef<Path>, text: impl Into<String>) -> Result<Module, Error> {
        Ok(Module { library: Arc::new(Library::of_text(path.as_ref(), text.into())?) })
    }

    /// The names of its kernels and programs, in source order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.library.signatures().iter().map(|s| s.name.as_str())
    }

    /// What is worth a warning.
    pub fn warnings(&self) -> &Report {
        &self.library.warnings
    }

    /// A kernel or program, for the CPU.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        self.kernel_for(name, &Options::default())
    }

    /// A kernel or program, for another target or back end.
    ///
    /// # Errors
    /// There is none of that name, or no such target or back end.
    pub fn kernel_for(&self, name: &str, options: &Options) -> Result<Kernel, Error> {
        let callable = Callable::new(&self.library, name, Vec::new(), options.0.clone())?;
        Ok(Kernel::of(Arc::new(callable)))
    }
}

/// How kernels are compiled.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options(library::Options);

impl Options {
    /// For the target `a2a3`, by its first machine.
    pub fn new() -> Options {
        Options::default()
    }

    /// For another target: `ptoc targets` lists them.
    #[must_use]
    pub fn target(mut self, name: &str) -> Options {
        self.0.target = name.to_owned();
        self
    }

    /// By another back end: `interp` is the reference interpreter.
    #[must_use]
    pub fn backend(mut self, name: &str) -> Options {
        self.0.backend = Some(name.to_owned());
        self
    }

    /// Whether products of f16 and bf16 have the interpreter's bits. Unless this is given they do not: they are done by
    /// the processor's matrix unit where it has one, within a stated bound, as by `ptoc run`.
    #[must_use]
    pub fn exact(mut self, exact: bool) -> Options {
        self.0.exact = exact;
        self
    }
}
