//! Stages of a pipeline, held against the target's flags. A copy of a tile that is under way takes a flag of its own
//! from each pipe to the next, so more copies than there are flags cannot be told apart:
//! [`mod@crate::buffer_expansion`] uses as many as can.

use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{Kernel, Op, Region, SyncMode};
use ptoc_isa::Target;

/// Copies of a tile that a pipeline of so many stages uses in turn.
pub fn used(stages: u32, target: &Target) -> u32 {
    stages.min(target.pipes.flags.max(1))
}

/// A warning for each pipeline with more stages than it uses.
pub fn check(kernel: &Kernel, target: &Target) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    // Where the author orders the pipes there are no stages.
    if kernel.sync == SyncMode::Auto && target.has_pipes() {
        region(&kernel.body, target, &mut found);
    }
    found
}

fn region(statements: &Region, target: &Target, found: &mut Vec<Diagnostic>) {
    for stmt in statements {
        if let Op::For(f) = &stmt.op
            && used(f.stages, target) < f.stages
        {
            let (stages, used, name) = (f.stages, used(f.stages, target), &target.name);
            let message = format!("a pipeline of {stages} stages uses {used} of the {stages} copies of its tiles");
            found.push(
                Diagnostic::warning(codes::STAGES_BEYOND_FLAGS, stmt.span, message)
                    .with_label(format!("{stages} stages"))
                    .with_note(format!(
                        "each copy under way takes a flag from one pipe to the next, and {name} has {used}: iteration \
                        i uses copy i % {used}"
                    ))
                    .with_help(format!(
                        "{used} stages are as fast: the other {} of each tile take memory for nothing",
                        if stages - used == 1 { "copy".into() } else { format!("{} copies", stages - used) }
                    )),
            );
        }
        stmt.op.regions().for_each(|r| region(r, target, found));
    }
}
