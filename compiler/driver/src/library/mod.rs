//! Kernels and programs as functions: a file is loaded once, and what it declares is compiled for the arguments of a
//! call and launched on the caller's own memory.
//!
//! [`Library`] is a file, [`Signature`] what one of its kernels takes, [`Callable`] a kernel with its constants, which
//! keeps what it has compiled, and [`Specialization`] the code for arguments of certain dtypes and shapes. Nothing here
//! knows who calls: what a language's front has to add is how arrays are found in its objects, and errors in its own
//! form. Any thread may call, and calls of one kernel run beside each other.

mod arrays;
mod callable;
mod inspect;
mod rebinding;
mod report;
mod signature;
mod specialization;
#[cfg(test)]
mod tests;

pub use arrays::{Argument, ArrayView, Call, Device, Scalar};
pub use callable::{Callable, Options};
pub use inspect::Memories;
pub use ptoc_syntax::ast::Dir;
pub use report::Report;
pub use signature::{Library, Parameter, ParameterKind, Signature, Static};
pub use specialization::Specialization;

use crate::STACKS;
use std::thread;

/// Runs what recurses over trees on a thread with a stack that is large enough, and waits for it.
pub(crate) fn on_large_stack<T: Send>(work: impl Fn() -> T + Sync) -> T {
    for stack in STACKS {
        let result = thread::scope(|scope| {
            let worker = thread::Builder::new().name("ptoc".into()).stack_size(stack);
            let handle = worker.spawn_scoped(scope, &work).ok()?;
            match handle.join() {
                Ok(result) => Some(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        if let Some(result) = result {
            return result;
        }
    }
    work()
}
