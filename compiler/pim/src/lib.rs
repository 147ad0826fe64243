//! Kernels for units in memory: tile IR of one launch becomes a command stream.
//!
//! All sizes are known, so a kernel is not translated but carried out in part: [`eval`] goes through every block, computes indices, and
//! hands each tile instruction with the elements that it touches to whoever knows the unit. [`geopim`] makes of them queries for the
//! units' address generators, [`hbm`] programs and column commands for units that commands step. What a unit cannot do is an error that says who could.
//!
//! The crate knows no simulator: a [`ptoc_pim_stream::Stream`] is all that leaves it.

pub mod eval;
pub mod geopim;
pub mod hbm;
mod place;

use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::Kernel;
use ptoc_isa::{Target, UnitKind};
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::Place;

/// Where a span lies in the source: the number of its file from 1 and its line, or [`Place::default`].
pub type Lines<'l> = &'l dyn Fn(Span) -> Place;

/// Compiles one launch of a kernel. `values` are those of the prologue (`ptoc_ir::interp::prologue`), by number. The caller fills in
/// [`Stream::files`], whose names `lines` counts.
///
/// Errors: what the unit cannot do, each once.
pub fn compile(kernel: &Kernel, values: &[u64], target: &Target, lines: Lines<'_>) -> Result<Stream, Box<Diagnostic>> {
    match target.unit.map(|u| u.kind) {
        Some(UnitKind::GeoPim(_)) => geopim::compile(kernel, values, target, lines),
        Some(UnitKind::HbmPim(_)) => hbm::compile(kernel, values, target, lines),
        None => {
            let message = format!("`{}` has no units in memory", target.name);
            Err(Box::new(Diagnostic::error(codes::UNIT_CANNOT, kernel.span, message)))
        }
    }
}
