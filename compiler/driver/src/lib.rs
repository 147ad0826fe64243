//! What commands and the language server have in common: from files and definitions to diagnostics, stages and results.
//!
//! [`session`] loads and elaborates, [`check`] runs every check, [`stages`] shows what a compilation goes through,
//! [`launch`] binds arrays, compiles and runs on a [`backend`], [`library`] makes functions of kernels, for programs
//! that call them, and [`mod@build`] files that other programs link. Nothing here is printed: what is found is among
//! the diagnostics of a session, or is returned.

pub mod backend;
pub mod build;
mod cache;
mod calls;
pub mod check;
pub mod defs;
pub mod devices;
pub mod files;
pub mod fixes;
pub mod launch;
pub mod library;
pub mod maps;
pub mod preview;
pub mod project;
pub mod pto;
pub mod repair;
pub mod session;
pub mod signals;
#[cfg(feature = "pim")]
pub mod simulator;
pub mod stages;
pub mod trace;
pub mod trees;
pub mod tuning;
mod unwritten;

/// Bytes of stack of a thread that compiles. Passes recurse over trees of bounded height, and the first size is room
/// for all of them in any build; the others are for machines that do not grant it.
pub const STACKS: [usize; 3] = [256 << 20, 64 << 20, 16 << 20];

/// What a panic elsewhere has left is whole: an entry is put in or taken out in one step.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
