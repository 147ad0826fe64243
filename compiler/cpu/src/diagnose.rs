//! Failed launches as diagnostics.

use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::{Failure, LaunchError};

/// What to tell the user. A failed check is handed back: what it means is in the kernel's own table.
///
/// # Errors
/// The failed check.
pub fn diagnose(error: LaunchError) -> Result<Diagnostic, Failure> {
    let text = error.to_string();
    Ok(match error {
        LaunchError::Arguments { .. } => Diagnostic::global(codes::LAUNCH_ARGUMENTS, text),
        LaunchError::GridTooLarge(_) => Diagnostic::global(codes::GRID_TOO_LARGE, text),
        LaunchError::OutOfMemory { .. } => Diagnostic::global(codes::NO_MEMORY_FOR_TILES, text)
            .with_help("run with fewer threads (`--threads 1`), or choose smaller tiles"),
        LaunchError::Check(failure) => return Err(failure),
        // Whoever watches asks the monitor first, and whoever ends a launch knows why.
        LaunchError::Stopped { .. } | LaunchError::Interrupted => Diagnostic::global(codes::LAUNCH_ARGUMENTS, text),
    })
}
