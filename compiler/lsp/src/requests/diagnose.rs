//! Diagnostics by request.

use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::World;
use lsp_types::TextDocumentIdentifier;
use serde::Deserialize;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    text_document: TextDocumentIdentifier,
    previous_result_id: Option<String>,
}

/// `textDocument/diagnostic`: all of a text, or that nothing has changed.
pub fn diagnostics(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: Params = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let items: Vec<_> = context.analysis.diagnostics.iter().map(|d| context.diagnostic(d)).collect();
    let items = serde_json::to_value(items).map_err(|e| Failure::new(Failure::INTERNAL, e.to_string()))?;
    let mut hash = DefaultHasher::new();
    items.to_string().hash(&mut hash);
    let id = format!("{:016x}", hash.finish());
    result(match params.previous_result_id.as_deref() == Some(&id) {
        true => json!({"kind": "unchanged", "resultId": id}),
        false => json!({"kind": "full", "resultId": id, "items": items}),
    })
}
