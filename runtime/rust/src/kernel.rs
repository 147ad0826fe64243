//! Kernels, as what can be launched.

use crate::{Error, Launch};
use ptoc_driver::defs::Definition;
use ptoc_driver::library::{Callable, Report};
use std::fmt;
use std::sync::Arc;

/// A kernel or program, with its constants. Clones share the code that it was compiled to.
#[derive(Clone)]
pub struct Kernel {
    callable: Arc<Callable>,
}

impl Kernel {
    pub(crate) fn of(callable: Arc<Callable>) -> Kernel {
        Kernel { callable }
    }

    pub(crate) fn callable(&self) -> &Arc<Callable> {
        &self.callable
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.callable.signature().name
    }

    /// The comment that documents it.
    pub fn docs(&self) -> &str {
        &self.callable.signature().docs
    }

    /// Its declaration, as it stands in the text.
    pub fn declaration(&self) -> &str {
        &self.callable.signature().text
    }

    /// The same kernel with a constant: the value of a static parameter, or the size of a dimension, as an expression
    /// of the language. The same constants give the same kernel, with its code.
    ///
    /// # Errors
    /// It has no constant of that name.
    pub fn with(&self, name: &str, value: impl fmt::Display) -> Result<Kernel, Error> {
        let definition = Definition { name: name.to_owned(), value: value.to_string() };
        Ok(Kernel { callable: self.callable.with(vec![definition])? })
    }

    /// Everything that `ptoc check` finds in it with its constants. What is returned are warnings.
    ///
    /// # Errors
    /// It is refused.
    pub fn check(&self) -> Result<Report, Error> {
        let report = self.callable.check();
        match report.diagnostics().iter().any(|d| d.is_error()) {
            true => Err(report.into()),
            false => Ok(report),
        }
    }

    /// A stage of its compilation as text, by the names of `ptoc emit --stage`: `ir`, `placed`, `loop`, `asm`.
    ///
    /// # Errors
    /// There is no such stage, it is refused, or a size is missing.
    pub fn stage(&self, name: &str) -> Result<String, Error> {
        Ok(self.callable.stage(name)?)
    }

    /// A launch, which is given its arguments next.
    pub fn launch<'a>(&self) -> Launch<'a> {
        Launch::of(self.clone())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.declaration())
    }
}
