//! The server as a function from messages to messages.

use super::capabilities;
use super::client::Client;
use super::documents::Document;
use super::failure::{Failure, read, result};
use super::position::Encoding;
use super::requests::{
    actions, calls, complete, diagnose, formatting, hints, hover, lens, links, navigate, rename, signature, structure,
    symbols, tokens, views,
};
use super::settings::Settings;
use super::world::{LIBRARY, Opened, World};
use lsp_types::{
    DidChangeTextDocumentParams, DidChangeWorkspaceFoldersParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, InitializeParams, PublishDiagnosticsParams, Uri,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How a request is answered.
type Answer = fn(&mut World, Value) -> Result<Value, Failure>;

/// All requests but those that begin and end a session.
const REQUESTS: &[(&str, Answer)] = &[
    ("textDocument/hover", hover::hover),
    ("textDocument/completion", complete::complete),
    ("completionItem/resolve", complete::resolve),
    ("textDocument/signatureHelp", signature::help),
    ("textDocument/inlayHint", hints::hints),
    ("textDocument/codeLens", lens::lenses),
    ("codeLens/resolve", lens::resolve),
    ("textDocument/diagnostic", diagnose::diagnostics),
    ("textDocument/definition", navigate::definition),
    ("textDocument/declaration", navigate::definition),
    ("textDocument/typeDefinition", navigate::type_definition),
    ("textDocument/references", navigate::references),
    ("textDocument/documentHighlight", navigate::highlights),
    ("textDocument/prepareRename", rename::prepare),
    ("textDocument/rename", rename::rename),
    ("textDocument/documentSymbol", symbols::document),
    ("workspace/symbol", symbols::workspace),
    ("textDocument/documentLink", links::links),
    ("textDocument/foldingRange", structure::folding),
    ("textDocument/selectionRange", structure::selection),
    ("textDocument/prepareCallHierarchy", calls::prepare),
    ("callHierarchy/incomingCalls", calls::incoming),
    ("callHierarchy/outgoingCalls", calls::outgoing),
    ("textDocument/semanticTokens/full", tokens::full),
    ("textDocument/semanticTokens/full/delta", tokens::delta),
    ("textDocument/semanticTokens/range", tokens::range),
    ("textDocument/codeAction", actions::actions),
    ("textDocument/formatting", formatting::document),
    ("textDocument/rangeFormatting", formatting::range),
    ("textDocument/onTypeFormatting", formatting::on_type),
    ("workspace/textDocumentContent", library),
    ("ptoc/memoryMap", views::memory_map),
    ("ptoc/ir", views::ir),
    ("ptoc/layout", views::layout),
    ("ptoc/pim", views::pim),
];

/// Where a session with a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`: only `exit` may follow.
    Shut,
}

/// A message for the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Of a request, which the client answers; the answers say nothing that the server needs.
    pub id: Option<u64>,
    /// The method.
    pub method: &'static str,
    /// Its parameters.
    pub params: Value,
}

/// A language server.
#[derive(Debug)]
pub struct Server {
    stage: Stage,
    world: World,
    /// Texts whose diagnostics the client does not have yet, in an order that does not change from run to run.
    stale: BTreeSet<String>,
    /// Messages that wait to be sent.
    out: Vec<Message>,
    /// Requests to the client so far.
    asked: u64,
}

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

impl Server {
    /// A server that nobody has spoken to yet.
    pub fn new() -> Server {
        Server { stage: Stage::New, world: World::default(), stale: BTreeSet::new(), out: Vec::new(), asked: 0 }
    }

    /// Has the client asked for the end?
    pub fn is_shut(&self) -> bool {
        self.stage == Stage::Shut
    }

    /// How many kernels were not analysed again because nothing had changed for them.
    pub fn reused(&self) -> u64 {
        self.world.caches.values().map(|c| c.hits).sum()
    }

    /// The requests that are answered while a session runs.
    pub fn requests() -> impl Iterator<Item = &'static str> {
        REQUESTS.iter().map(|(method, _)| *method)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// [`Failure`] as the protocol numbers them.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        match (self.stage, method) {
            (Stage::New, "initialize") => return self.initialize(params),
            (Stage::New, _) => return Err(Failure::new(Failure::NOT_INITIALIZED, "`initialize` comes first")),
            (Stage::Shut, _) => return Err(Failure::new(Failure::INVALID_REQUEST, "the server is shut down")),
            (Stage::Running, "initialize") => {
                return Err(Failure::new(Failure::INVALID_REQUEST, "the server is initialized already"));
            }
            (Stage::Running, "shutdown") => {
                self.stage = Stage::Shut;
                return Ok(Value::Null);
            }
            (Stage::Running, _) => {}
        }
        match REQUESTS.iter().find(|(name, _)| *name == method) {
            Some((_, answer)) => answer(&mut self.world, params),
            None => Err(Failure::new(Failure::METHOD_NOT_FOUND, format!("`{method}` is not served"))),
        }
    }

    /// Takes in a notification. What is malformed or unknown is passed over: the protocol has no answer to it.
    pub fn notify(&mut self, method: &str, params: Value) {
        if self.stage != Stage::Running {
            return;
        }
        match method {
            "initialized" if self.world.client.watches => {
                let watchers = json!({"watchers": [{"globPattern": "**/*.tile"}]});
                let watch =
                    json!({"id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": watchers});
                self.ask("client/registerCapability", json!({"registrations": [watch]}));
            }
            "textDocument/didOpen" => {
                let Ok(DidOpenTextDocumentParams { text_document: t }) = read(params) else { return };
                self.set(t.uri, Document::new(t.version, t.text));
            }
            "textDocument/didChange" => {
                let Ok(DidChangeTextDocumentParams { text_document: t, content_changes }) = read(params) else {
                    return;
                };
                let uri = t.text_document_identifier.uri;
                let Some(opened) = self.world.open.get(&uri) else { return };
                let mut document = opened.document.clone();
                document.change(t.version, content_changes, self.world.encoding);
                self.set(uri, document);
            }
            "textDocument/didClose" => {
                let Ok(DidCloseTextDocumentParams { text_document: t }) = read(params) else { return };
                if self.world.open.remove(&t.uri).is_some() {
                    self.world.tokens.remove(&t.uri);
                    self.world.caches.remove(&t.uri);
                    self.stale.remove(t.uri.as_str());
                    self.publish(&t.uri, None, Vec::new());
                    self.forget();
                }
            }
            // What is imported may have changed on disk.
            "textDocument/didSave" => self.forget(),
            "workspace/didChangeWatchedFiles" => {
                self.forget();
                self.refresh();
            }
            "workspace/didChangeConfiguration" => {
                let settings = params.get("settings").cloned().unwrap_or_default();
                self.configure(&settings);
                self.forget();
                self.refresh();
            }
            "workspace/didChangeWorkspaceFolders" => {
                let Ok(DidChangeWorkspaceFoldersParams { event }) = read(params) else { return };
                for gone in event.removed.iter().filter_map(|f| f.uri.to_file_path().ok()) {
                    self.world.folders.retain(|f| *f != gone);
                }
                self.world.folders.extend(event.added.iter().filter_map(|f| f.uri.to_file_path().ok()));
            }
            _ => {}
        }
    }

    /// Messages for the client: diagnostics of all texts that have changed since the last time, and what else waits.
    /// To be called when no message waits to be handled, so that nothing is analysed that is out of date already.
    pub fn settle(&mut self) -> Vec<Message> {
        let pushed = !self.world.client.pulls;
        for name in std::mem::take(&mut self.stale).into_iter().filter(|_| pushed) {
            let Some(uri) = self.world.open.keys().find(|uri| uri.as_str() == name).cloned() else { continue };
            let Ok(context) = self.world.known(&uri) else { continue };
            let found = context.analysis.diagnostics.iter().map(|d| context.diagnostic(d)).collect();
            let version = context.document.version;
            self.publish(&uri, Some(version), found);
        }
        std::mem::take(&mut self.out)
    }

    fn publish(&mut self, uri: &Uri, version: Option<i32>, diagnostics: Vec<lsp_types::Diagnostic>) {
        if self.world.client.pulls {
            return;
        }
        let params = PublishDiagnosticsParams { uri: uri.clone(), version, diagnostics };
        if let Ok(params) = serde_json::to_value(params) {
            self.out.push(Message { id: None, method: "textDocument/publishDiagnostics", params });
        }
    }

    fn ask(&mut self, method: &'static str, params: Value) {
        self.asked += 1;
        self.out.push(Message { id: Some(self.asked), method, params });
    }

    /// Tells the client to ask again for what has changed without an edit.
    fn refresh(&mut self) {
        let client = self.world.client.clone();
        for (able, method) in [
            (client.pulls, "workspace/diagnostic/refresh"),
            (client.refreshes_hints, "workspace/inlayHint/refresh"),
            (client.refreshes_lenses, "workspace/codeLens/refresh"),
        ] {
            if able {
                self.ask(method, Value::Null);
            }
        }
    }

    #[allow(deprecated, reason = "older clients have a root and no folders")]
    fn initialize(&mut self, params: Value) -> Result<Value, Failure> {
        let folders = params.get("workspaceFolders").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut folders: Vec<Uri> =
            folders.into_iter().filter_map(|f| serde_json::from_value(f.get("uri")?.clone()).ok()).collect();
        let client = Client::read(&params);
        let params: InitializeParams = read(params)?;
        self.world.client = client;
        if folders.is_empty() {
            folders.extend(params.root_uri);
        }
        self.world.folders = folders.iter().filter_map(|uri| uri.to_file_path().ok()).collect();
        let offered = params.capabilities.general.and_then(|g| g.position_encodings).unwrap_or_default();
        self.world.encoding = Encoding::agree(&offered);
        self.stage = Stage::Running;
        if let Some(options) = params.initialization_options.and_then(|o| serde_json::to_value(o).ok()) {
            self.configure(&options);
        }
        Ok(capabilities::answer(self.world.encoding, &self.world.client))
    }

    /// Takes over settings, or tells the user what is wrong with them.
    fn configure(&mut self, value: &Value) {
        if value.is_null() {
            return;
        }
        match Settings::read(value) {
            Ok(settings) => self.world.settings = settings,
            Err(message) => {
                let params = json!({"type": 1, "message": format!("ptoc: {message}")});
                self.out.push(Message { id: None, method: "window/showMessage", params });
            }
        }
    }

    fn set(&mut self, uri: Uri, document: Document) {
        self.world.open.insert(uri, Opened { document, analysis: None });
        self.forget();
    }

    /// Whatever is known may have changed: any text may import any other.
    fn forget(&mut self) {
        for (uri, opened) in &mut self.world.open {
            opened.analysis = None;
            self.stale.insert(uri.as_str().to_owned());
        }
    }
}

/// `workspace/textDocumentContent`: a text of the standard library or the page of a code, which are no files.
fn library(_: &mut World, params: Value) -> Result<Value, Failure> {
    let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
    let name = uri.strip_prefix(LIBRARY).unwrap_or_default();
    if let Some(code) = name.strip_prefix("codes/").and_then(|n| n.strip_suffix(".md"))
        && let Ok(page) = ptoc_diagnostics::explain(code)
    {
        return result(json!({"text": page}));
    }
    let found = ptoc_stdlib::MODULES.iter().find(|(_, file, _)| file.strip_prefix("<std>/") == Some(name));
    let (_, _, text) =
        found.ok_or_else(|| Failure::new(Failure::INVALID_PARAMS, format!("`{uri}` is no text of ptoc's")))?;
    result(json!({"text": text}))
}
