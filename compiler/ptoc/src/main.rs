//! `ptoc`: see the library.

use std::process::ExitCode;

/// Compilation is many small allocations that live briefly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(ptoc::execute_here(std::env::args_os()))
}
