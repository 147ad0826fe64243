//! Quick fixes: every fix of a diagnostic that has edits.

use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::World;
use lsp_types::{CodeActionKind, CodeActionParams};
use serde_json::Value;

/// `textDocument/codeAction`
pub fn actions(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: CodeActionParams = read(params)?;
    let wanted = params.context.only.is_none_or(|only| only.contains(&CodeActionKind::QuickFix));
    let context = world.known(&params.text_document.uri)?;
    let asked = context.offset(params.range.start)..context.offset(params.range.end);
    let touches = |d: &&ptoc_diagnostics::Diagnostic| {
        let span = d.span.filter(|s| s.file == context.file());
        span.is_some_and(|s| (s.start as usize) <= asked.end && asked.start <= s.end as usize)
    };
    let found = context.analysis.diagnostics.iter().filter(|_| wanted).filter(touches);
    result(found.flat_map(|d| context.actions(d)).collect::<Vec<_>>())
}
