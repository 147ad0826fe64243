//! What the server announces.

use super::client::Client;
use super::position::Encoding;
use super::requests::tokens;
use serde_json::{Value, json};

/// The result of `initialize`.
pub fn answer(encoding: Encoding, client: &Client) -> Value {
    let mut answer = json!({
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
            "completionProvider": {
                "triggerCharacters": [".", ":", "<", "(", ",", " ", "#", "["],
                "resolveProvider": true,
            },
            "signatureHelpProvider": {"triggerCharacters": ["(", "<", ","], "retriggerCharacters": [")", ">"]},
            "inlayHintProvider": {"resolveProvider": false},
            "codeLensProvider": {"resolveProvider": true},
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
            "documentFormattingProvider": true,
            "documentRangeFormattingProvider": true,
            "documentOnTypeFormattingProvider": {"firstTriggerCharacter": ";", "moreTriggerCharacter": ["}", "\n"]},
            "workspace": {
                "workspaceFolders": {"supported": true, "changeNotifications": true},
                "textDocumentContent": {"schemes": ["ptoc-std"]},
            },
        },
    });
    // A client that asks for diagnostics is not sent them, too.
    if client.pulls {
        let provider = json!({"identifier": "ptoc", "interFileDependencies": true, "workspaceDiagnostics": false});
        answer["capabilities"]["diagnosticProvider"] = provider;
    }
    answer
}
