//! What the client can do, as far as the server acts on it.

use serde_json::Value;

/// Abilities of a client.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// Proposals may have places to be filled.
    pub snippets: bool,
    /// What all proposals of a list replace may be said once for the list.
    pub edit_range: bool,
    /// Parameters of a signature may be told by their places in it.
    pub label_offsets: bool,
    /// It asks for diagnostics, and can be told that it should ask again.
    pub pulls: bool,
    /// It can be told to ask for inlay hints again.
    pub refreshes_hints: bool,
    /// It can be told to ask for code lenses again.
    pub refreshes_lenses: bool,
    /// It watches files for a server that asks for it.
    pub watches: bool,
    /// Edits may say which version of a text they are for.
    pub versions: bool,
    /// It shows a link behind the code of a diagnostic.
    pub describes_codes: bool,
}

impl Client {
    /// Reads the parameters of `initialize`.
    pub fn read(params: &Value) -> Client {
        let is = |path: &str| params.pointer(&format!("/capabilities/{path}")).and_then(Value::as_bool) == Some(true);
        let has = |path: &str| params.pointer(&format!("/capabilities/{path}")).is_some_and(Value::is_object);
        Client {
            snippets: is("textDocument/completion/completionItem/snippetSupport"),
            edit_range: params
                .pointer("/capabilities/textDocument/completion/completionList/itemDefaults")
                .and_then(Value::as_array)
                .is_some_and(|known| known.iter().any(|name| name == "editRange")),
            label_offsets: is(
                "textDocument/signatureHelp/signatureInformation/parameterInformation/labelOffsetSupport",
            ),
            pulls: has("textDocument/diagnostic") && is("workspace/diagnostics/refreshSupport"),
            refreshes_hints: is("workspace/inlayHint/refreshSupport"),
            refreshes_lenses: is("workspace/codeLens/refreshSupport"),
            watches: is("workspace/didChangeWatchedFiles/dynamicRegistration"),
            versions: is("workspace/workspaceEdit/documentChanges"),
            describes_codes: is("textDocument/publishDiagnostics/codeDescriptionSupport"),
        }
    }
}
