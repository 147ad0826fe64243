//! `ptoc`: see the library.

use std::process::ExitCode;

/// Compilation is many small allocations that live briefly.
#[cfg(not(target_family = "wasm"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ptoc_cli::complete_here();
    ExitCode::from(ptoc_cli::execute_here(std::env::args_os()))
}
