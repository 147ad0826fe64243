//! What the server announces.

use super::position::Encoding;
use super::requests::tokens;
use serde_json::{Value, json};

/// The result of `initialize`.
pub fn answer(encoding: Encoding) -> Value {
    json!({
        "serverInfo": {"name": "ptoc", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {
            "positionEncoding": encoding.kind(),
            "textDocumentSync": {"openClose": true, "change": 2, "save": true},
            "hoverProvider": true,
            "definitionProvider": true,
            "declarationProvider": true,
            "typeDefinitionProvider": true,
            "referencesProvider": true,
            "documentHighlightProvider": true,
            "renameProvider": {"prepareProvider": true},
            "documentSymbolProvider": true,
            "workspaceSymbolProvider": true,
            "documentLinkProvider": {"resolveProvider": false},
            "foldingRangeProvider": true,
            "selectionRangeProvider": true,
            "callHierarchyProvider": true,
            "semanticTokensProvider": {
                "legend": {"tokenTypes": tokens::TYPES, "tokenModifiers": tokens::MODIFIERS},
                "full": {"delta": true},
                "range": true,
            },
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
            "documentFormattingProvider": true,
            "workspace": {
                "workspaceFolders": {"supported": true, "changeNotifications": true},
                "textDocumentContent": {"schemes": ["ptoc-std"]},
            },
        },
    })
}
