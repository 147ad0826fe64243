//! The server as a function from messages to messages.

use super::capabilities;
use super::client::Client;
use super::documents::{Document, changes};
use super::failure::{Failure, read};
use super::position::Encoding;
use super::reply::{Reply, result};
use super::requests::{
    actions, calls, complete, diagnose, formatting, hints, hover, lens, links, navigate, rename, signature, structure,
    symbols, tokens, views,
};
use super::settings::Problem;
use super::work::{AnalysisJob, CancelToken, Done};
use super::world::{LIBRARY, Opened, World, path};
use lsp_types::{
    DidChangeTextDocumentParams, DidChangeWorkspaceFoldersParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, InitializeParams, PublishDiagnosticsParams, Uri,
};
use ptoc_diagnostics::suggest;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How a request is answered.
type Answer = fn(&mut World, Value) -> Result<Reply, Failure>;

/// What a request needs before it is answered, where analyses run beside the conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// The text, its names, and what was known of it before the last edit.
    AtOnce,
    /// The analysis of this very text.
    Analysed,
    /// A while: other files are read, or much is computed. Nobody waits for it.
    Aside,
}

/// All requests but those that begin and end a session.
const REQUESTS: &[(&str, Answer, Pace)] = &[
    ("textDocument/hover", hover::hover, Pace::Analysed),
    ("textDocument/completion", complete::complete, Pace::AtOnce),
    ("completionItem/resolve", complete::resolve, Pace::AtOnce),
    ("textDocument/signatureHelp", signature::help, Pace::AtOnce),
    ("textDocument/inlayHint", hints::hints, Pace::Analysed),
    ("textDocument/codeLens", lens::lenses, Pace::Analysed),
    ("codeLens/resolve", lens::resolve, Pace::Aside),
    ("textDocument/diagnostic", diagnose::diagnostics, Pace::Analysed),
    ("textDocument/definition", navigate::definition, Pace::AtOnce),
    ("textDocument/declaration", navigate::definition, Pace::AtOnce),
    ("textDocument/typeDefinition", navigate::type_definition, Pace::AtOnce),
    ("textDocument/references", navigate::references, Pace::Aside),
    ("textDocument/documentHighlight", navigate::highlights, Pace::AtOnce),
    ("textDocument/prepareRename", rename::prepare, Pace::AtOnce),
    ("textDocument/rename", rename::rename, Pace::Aside),
    ("textDocument/documentSymbol", symbols::document, Pace::AtOnce),
    ("workspace/symbol", symbols::workspace, Pace::Aside),
    ("textDocument/documentLink", links::links, Pace::AtOnce),
    ("textDocument/foldingRange", structure::folding, Pace::AtOnce),
    ("textDocument/selectionRange", structure::selection, Pace::AtOnce),
    ("textDocument/prepareCallHierarchy", calls::prepare, Pace::AtOnce),
    ("callHierarchy/incomingCalls", calls::incoming, Pace::Aside),
    ("callHierarchy/outgoingCalls", calls::outgoing, Pace::Aside),
    ("textDocument/semanticTokens/full", tokens::full, Pace::AtOnce),
    ("textDocument/semanticTokens/full/delta", tokens::delta, Pace::AtOnce),
    ("textDocument/semanticTokens/range", tokens::range, Pace::AtOnce),
    ("textDocument/codeAction", actions::actions, Pace::Analysed),
    ("textDocument/formatting", formatting::document, Pace::AtOnce),
    ("textDocument/rangeFormatting", formatting::range, Pace::AtOnce),
    ("textDocument/onTypeFormatting", formatting::on_type, Pace::AtOnce),
    ("workspace/textDocumentContent", library, Pace::AtOnce),
    ("ptoc/memoryMap", views::memory_map, Pace::Aside),
    ("ptoc/ir", views::ir, Pace::Aside),
    ("ptoc/layout", views::layout, Pace::Analysed),
    ("ptoc/pim", views::pim, Pace::Aside),
];

/// Where a session with a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SessionStage {
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
    stage: SessionStage,
    world: World,
    /// Texts whose diagnostics the client does not have yet, in an order that does not change from run to run.
    stale: BTreeSet<String>,
    /// Messages that wait to be sent.
    out: Vec<Message>,
    /// Requests to the client so far.
    asked: u64,
    /// States of texts so far.
    states: u64,
    /// The text that is being analysed elsewhere.
    running: Option<(Uri, CancelToken)>,
    /// What the user was told of the settings in force.
    wrong: Vec<Problem>,
    /// Definitions of the settings that the user was asked about.
    meant: BTreeSet<String>,
}

/// Kinds of messages for the user.
const ERROR: u32 = 1;
const WARNING: u32 = 2;

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

impl Server {
    /// A server that nobody has spoken to yet.
    pub fn new() -> Server {
        Server {
            stage: SessionStage::New,
            world: World::default(),
            stale: BTreeSet::new(),
            out: Vec::new(),
            asked: 0,
            states: 0,
            running: None,
            wrong: Vec::new(),
            meant: BTreeSet::new(),
        }
    }

    /// A server whose analyses are made elsewhere: see [`Server::work`].
    pub(super) fn beside() -> Server {
        let mut server = Server::new();
        server.world.beside = true;
        server
    }

    /// Whether the client has asked to shut down.
    pub fn is_shut(&self) -> bool {
        self.stage == SessionStage::Shut
    }

    /// How many kernels were not analysed again because nothing had changed for them.
    pub fn reused(&self) -> u64 {
        self.world.caches.values().map(|c| c.hits).sum()
    }

    /// How many texts were parsed.
    pub fn parsed(&self) -> u64 {
        self.world.trees.parsed()
    }

    /// The requests that are answered while a session runs.
    pub fn requests() -> impl Iterator<Item = &'static str> {
        REQUESTS.iter().map(|(method, ..)| *method)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// [`Failure`] as the protocol numbers them.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Reply, Failure> {
        match (self.stage, method) {
            (SessionStage::New, "initialize") => return self.initialize(params),
            (SessionStage::New, _) => return Err(Failure::new(Failure::NOT_INITIALIZED, "`initialize` comes first")),
            (SessionStage::Shut, _) => return Err(Failure::new(Failure::INVALID_REQUEST, "the server is shut down")),
            (SessionStage::Running, "initialize") => {
                return Err(Failure::new(Failure::INVALID_REQUEST, "the server is initialized already"));
            }
            (SessionStage::Running, "shutdown") => {
                self.stage = SessionStage::Shut;
                // Nobody wants to hear more.
                self.out.clear();
                self.running.iter().for_each(|(_, stop)| stop.raise());
                return result(Value::Null);
            }
            (SessionStage::Running, _) => {}
        }
        match REQUESTS.iter().find(|(name, ..)| *name == method) {
            Some((_, answer, _)) => answer(&mut self.world, params),
            None => Err(Failure::new(Failure::METHOD_NOT_FOUND, format!("`{method}` is not served"))),
        }
    }

    /// What a request waits for now.
    pub(super) fn pace(&self, method: &str, params: &Value) -> Pace {
        let pace = REQUESTS.iter().find(|(name, ..)| *name == method).map_or(Pace::AtOnce, |(.., pace)| *pace);
        let open = || self.world.open.iter().find(|(uri, _)| Some(uri.as_str()) == text_of(params));
        match pace {
            _ if self.stage != SessionStage::Running => Pace::AtOnce,
            // What is not open, or analysed already, is answered at once.
            Pace::Analysed if open().is_none_or(|(_, opened)| opened.is_analysed()) => Pace::AtOnce,
            pace => pace,
        }
    }

    /// A request that can be answered in another thread, from what is known now.
    pub(super) fn aside(
        &self,
        method: &str,
        params: Value,
    ) -> Option<impl FnOnce() -> Result<Reply, Failure> + Send + 'static> {
        let (_, answer, _) = REQUESTS.iter().find(|(name, ..)| *name == method)?;
        let mut world = self.world.snapshot();
        Some(move || answer(&mut world, params))
    }

    /// The version of a text that is open.
    pub(super) fn version(&self, uri: &str) -> Option<i32> {
        self.world.open.iter().find(|(u, _)| u.as_str() == uri).map(|(_, o)| o.document.version)
    }

    /// The next text to be analysed elsewhere: the one that was edited last. Nothing while one is being analysed.
    pub(super) fn work(&mut self) -> Option<AnalysisJob> {
        if self.running.is_some() || self.stage != SessionStage::Running {
            return None;
        }
        let waiting = self.world.open.iter().filter(|(_, opened)| !opened.is_analysed());
        let (uri, opened) = waiting.max_by_key(|(uri, opened)| (opened.edited, uri.as_str()))?;
        let (uri, state) = (uri.clone(), opened.state);
        let stop = CancelToken::default();
        self.running = Some((uri.clone(), stop.clone()));
        let cache = self.world.caches.remove(&uri).unwrap_or_default();
        let (settings, texts) = (self.world.settings.of(&path(&uri)), self.world.texts());
        Some(AnalysisJob { path: path(&uri), uri, state, settings, texts, cache, stop })
    }

    /// Takes what was found. If the text is another one by now, only what was found in its kernels is kept.
    pub(super) fn done(&mut self, done: Done) {
        let stopped = self.running.take().is_some_and(|(_, stop)| stop.is_raised());
        let Done { uri, state, analysis, cache } = done;
        let Some(opened) = self.world.open.get_mut(&uri) else { return };
        self.world.caches.insert(uri.clone(), cache);
        if opened.state != state || stopped || self.stage != SessionStage::Running {
            return;
        }
        opened.analysis = analysis;
        // What a bug has ended is not tried again before the next edit.
        self.world.give_up(&uri);
        self.tell(&uri);
    }

    /// Takes in a notification. What is malformed or unknown is passed over: the protocol has no answer to it.
    pub fn notify(&mut self, method: &str, params: Value) {
        if self.stage != SessionStage::Running {
            return;
        }
        match method {
            "initialized" if self.world.client.watches => {
                let watchers = json!({"watchers": [{"globPattern": "**/*.tile"}, {"globPattern": "**/ptoc.toml"}]});
                let watch =
                    json!({"id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": watchers});
                self.ask("client/registerCapability", json!({"registrations": [watch]}));
            }
            "textDocument/didOpen" => {
                let Ok(DidOpenTextDocumentParams { text_document: t }) = read(params) else { return };
                self.set(t.uri, Document::new(t.version, t.text));
            }
            "textDocument/didChange" => {
                let DidChangeTextDocumentParams { text_document: t, content_changes } = match changes(params) {
                    Ok(params) => params,
                    Err(failure) => return self.show(ERROR, &format!("an edit is not followed: {}", failure.message)),
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
                    self.forget(Some(&t.uri));
                }
            }
            // What is imported may have changed on disk.
            "textDocument/didSave" => self.forget(None),
            "workspace/didChangeWatchedFiles" => {
                self.forget(None);
                self.refresh();
            }
            "workspace/didChangeConfiguration" => {
                let settings = params.get("settings").cloned().unwrap_or_default();
                if self.configure(&settings, false) {
                    self.forget(None);
                    self.refresh();
                }
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
        let pushed = !self.world.client.pulls && !self.world.beside && self.stage == SessionStage::Running;
        for name in std::mem::take(&mut self.stale).into_iter().filter(|_| pushed) {
            if let Some(uri) = self.world.open.keys().find(|uri| uri.as_str() == name).cloned() {
                self.tell(&uri);
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Publishes what is wrong with a text.
    fn tell(&mut self, uri: &Uri) {
        let Ok(context) = self.world.known(uri) else { return };
        let found = context.analysis.diagnostics.iter().map(|d| context.diagnostic(d)).collect();
        let version = context.document.version;
        self.publish(uri, Some(version), found);
        self.doubt();
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
    fn initialize(&mut self, params: Value) -> Result<Reply, Failure> {
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
        self.stage = SessionStage::Running;
        if let Some(options) = params.initialization_options.and_then(|o| serde_json::to_value(o).ok()) {
            self.configure(&options, true);
        }
        result(capabilities::answer(self.world.encoding, &self.world.client))
    }

    /// Takes over settings, and tells the user what is wrong with them, unless the ones before were wrong in the same
    /// way. `ours`: they are said to this server alone. Returns whether they are others than before.
    fn configure(&mut self, value: &Value, ours: bool) -> bool {
        let (read, problems) = self.world.settings.read(value, ours);
        let before = std::mem::take(&mut self.wrong);
        for problem in problems.iter().filter(|p| !before.contains(p)) {
            match problem {
                Problem::Unknown(message) => self.show(WARNING, message),
                Problem::Wrong(message) => self.show(ERROR, message),
            }
        }
        self.wrong = if read.is_some() || !problems.is_empty() { problems } else { before };
        let Some(settings) = read.filter(|settings| *settings != self.world.settings) else { return false };
        self.world.settings = settings;
        self.meant.clear();
        true
    }

    /// Tells the user of definitions that mean nothing in any text that is open, where something there is called nearly
    /// so: other texts may have what they are for. Of each once.
    fn doubt(&mut self) {
        let open: Vec<&Opened> = self.world.open.values().collect();
        if self.world.settings.define.is_empty() || !open.iter().all(|o| o.is_analysed()) {
            return;
        }
        let units: Vec<_> = open.iter().filter_map(|o| Some(&o.analysis.as_ref()?.loaded.unit)).collect();
        let known: BTreeSet<String> = units
            .iter()
            .flat_map(|unit| unit.entries().into_iter().flat_map(|e| e.settable(unit)))
            .map(|n| n.to_string())
            .collect();
        let meant = |name: &str| known.contains(name) || name.contains('.') || self.meant.contains(name);
        let names = self.world.settings.define.iter().map(|d| d.name.clone()).filter(|name| !meant(name));
        let doubted: Vec<(String, String)> = names
            .filter_map(|name| Some((suggest(&name, known.iter().map(String::as_str))?.to_owned(), name)))
            .collect();
        for (near, name) in doubted {
            let what = format!("`ptoc.define` sets `{name}`, and nothing in the texts that are open is called so");
            self.show(WARNING, &format!("{what}; did you mean `{near}`?"));
            self.meant.insert(name);
        }
    }

    /// Tells the user.
    fn show(&mut self, kind: u32, message: &str) {
        let params = json!({"type": kind, "message": format!("ptoc: {message}")});
        self.out.push(Message { id: None, method: "window/showMessage", params });
    }

    fn set(&mut self, uri: Uri, document: Document) {
        self.states += 1;
        let opened = self.world.open.entry(uri.clone()).or_default();
        opened.document = document;
        opened.edited = self.states;
        self.forget(Some(&uri));
    }

    /// What is known of texts may have changed: of those that import what has changed, or of all. What could not be
    /// loaded may be there now.
    fn forget(&mut self, changed: Option<&Uri>) {
        let file = changed.map(path);
        for (uri, opened) in &mut self.world.open {
            let depends = |file| opened.analysis.as_ref().is_none_or(|a| a.loaded.errors > 0 || a.loaded.reads(file));
            if changed != Some(uri) && !file.as_deref().is_none_or(depends) {
                continue;
            }
            opened.age();
            self.states += 1;
            opened.state = self.states;
            self.stale.insert(uri.as_str().to_owned());
            if let Some((running, stop)) = &self.running
                && running == uri
            {
                stop.raise();
            }
        }
    }
}

/// The text that a request is about.
fn text_of(params: &Value) -> Option<&str> {
    params.pointer("/textDocument/uri").and_then(Value::as_str)
}

/// `workspace/textDocumentContent`: a text of the standard library or the page of a code, which are no files.
fn library(_: &mut World, params: Value) -> Result<Reply, Failure> {
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
