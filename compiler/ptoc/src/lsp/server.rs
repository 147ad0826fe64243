//! The server as a function from messages to messages.

use super::analysis::{Analysis, Settings, analyse};
use super::documents::Document;
use super::hover;
use super::position::Encoding;
use super::symbols::symbols;
use super::to_proto::Places;
use crate::files::OpenTexts;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProvider, CodeActionResponse, Contents,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentFormattingParams,
    DocumentFormattingProvider, DocumentSymbolParams, DocumentSymbolProvider, Hover, HoverParams, HoverProvider,
    InitializeParams, InitializeResult, MarkupContent, MarkupKind, PublishDiagnosticsParams, Range, ServerCapabilities,
    ServerInfo, TextDocumentSync, TextDocumentSyncKind, TextDocumentSyncOptions, TextEdit, Uri,
};
use ptoc_diagnostics::SourceMap;
use ptoc_syntax::format::{Refused, format};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// Why a request has no result: an error of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// JSON-RPC's or the protocol's number.
    pub code: i32,
    /// For the client's log.
    pub message: String,
}

impl Failure {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const INVALID_REQUEST: i32 = -32600;
    const METHOD_NOT_FOUND: i32 = -32601;
    const INVALID_PARAMS: i32 = -32602;
    pub(super) const INTERNAL: i32 = -32603;
    const NOT_INITIALIZED: i32 = -32002;
    const REQUEST_FAILED: i32 = -32803;
    pub(super) const CANCELLED: i32 = -32800;

    pub(super) fn new(code: i32, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

/// Where a session with a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Before `initialize`.
    New,
    Running,
    /// After `shutdown`: only `exit` may follow.
    Shut,
}

/// A text with what is known of it.
#[derive(Debug, Default)]
struct Opened {
    document: Document,
    /// Of this very state; none while it is not known.
    analysis: Option<Analysis>,
}

/// A language server.
#[derive(Debug)]
pub struct Server {
    stage: Stage,
    encoding: Encoding,
    settings: Settings,
    open: HashMap<Uri, Opened>,
    /// Texts whose diagnostics the client does not have yet, in an order that does not change from run to run.
    stale: BTreeSet<String>,
    /// Notifications that wait to be sent.
    out: Vec<(String, Value)>,
}

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

impl Server {
    /// A server that nobody has spoken to yet.
    pub fn new() -> Server {
        Server {
            stage: Stage::New,
            encoding: Encoding::default(),
            settings: Settings::default(),
            open: HashMap::new(),
            stale: BTreeSet::new(),
            out: Vec::new(),
        }
    }

    /// Has the client asked for the end?
    pub fn is_shut(&self) -> bool {
        self.stage == Stage::Shut
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
            (Stage::Running, _) => {}
        }
        match method {
            "initialize" => Err(Failure::new(Failure::INVALID_REQUEST, "the server is initialized already")),
            "shutdown" => {
                self.stage = Stage::Shut;
                Ok(Value::Null)
            }
            "textDocument/formatting" => self.formatting(read(params)?),
            "textDocument/hover" => self.hover(read(params)?),
            "textDocument/codeAction" => self.actions(read(params)?),
            "textDocument/documentSymbol" => {
                let params: DocumentSymbolParams = read(params)?;
                let encoding = self.encoding;
                result(symbols(&self.opened(&params.text_document.uri)?.document, encoding))
            }
            _ => Err(Failure::new(Failure::METHOD_NOT_FOUND, format!("`{method}` is not served"))),
        }
    }

    /// Takes in a notification. What is malformed or unknown is passed over: the protocol has no answer to it.
    pub fn notify(&mut self, method: &str, params: Value) {
        if self.stage != Stage::Running {
            return;
        }
        match method {
            "textDocument/didOpen" => {
                let Ok(DidOpenTextDocumentParams { text_document: t }) = read(params) else { return };
                self.set(t.uri, Document::new(t.version, t.text));
            }
            "textDocument/didChange" => {
                let Ok(DidChangeTextDocumentParams { text_document: t, content_changes }) = read(params) else {
                    return;
                };
                let uri = t.text_document_identifier.uri;
                let Some(opened) = self.open.get(&uri) else { return };
                let mut document = opened.document.clone();
                document.change(t.version, content_changes, self.encoding);
                self.set(uri, document);
            }
            "textDocument/didClose" => {
                let Ok(DidCloseTextDocumentParams { text_document: t }) = read(params) else { return };
                if self.open.remove(&t.uri).is_some() {
                    self.stale.remove(t.uri.as_str());
                    self.publish(&t.uri, None, Vec::new());
                    self.forget();
                }
            }
            // What is imported may have changed on disk.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.forget(),
            "workspace/didChangeConfiguration" => {
                let settings = params.get("settings").cloned().unwrap_or_default();
                self.configure(&settings);
                self.forget();
            }
            _ => {}
        }
    }

    /// Messages for the client: diagnostics of all texts that have changed since the last time, and what else waits.
    /// To be called when no message waits to be handled, so that nothing is analysed that is out of date already.
    pub fn settle(&mut self) -> Vec<(String, Value)> {
        for name in std::mem::take(&mut self.stale) {
            let Some(uri) = self.open.keys().find(|uri| uri.as_str() == name).cloned() else { continue };
            self.analyse(&uri);
            let opened = &self.open[&uri];
            let analysis = opened.analysis.as_ref().expect("it was just made");
            let places = Places { uri: &uri, document: &opened.document, analysis, encoding: self.encoding };
            let found = analysis.diagnostics.iter().map(|d| places.diagnostic(d)).collect();
            let version = opened.document.version;
            self.publish(&uri, Some(version), found);
        }
        std::mem::take(&mut self.out)
    }

    fn publish(&mut self, uri: &Uri, version: Option<i32>, diagnostics: Vec<lsp_types::Diagnostic>) {
        let params = PublishDiagnosticsParams { uri: uri.clone(), version, diagnostics };
        if let Ok(params) = serde_json::to_value(params) {
            self.out.push(("textDocument/publishDiagnostics".into(), params));
        }
    }

    fn initialize(&mut self, params: Value) -> Result<Value, Failure> {
        let params: InitializeParams = read(params)?;
        let offered = params.capabilities.general.and_then(|g| g.position_encodings).unwrap_or_default();
        self.encoding = Encoding::agree(&offered);
        self.stage = Stage::Running;
        if let Some(options) = params.initialization_options.and_then(|o| serde_json::to_value(o).ok()) {
            self.configure(&options);
        }
        result(InitializeResult {
            capabilities: ServerCapabilities {
                position_encoding: Some(self.encoding.kind()),
                text_document_sync: Some(TextDocumentSync::Options(TextDocumentSyncOptions {
                    open_close: Some(true),
                    change: Some(TextDocumentSyncKind::Incremental),
                    save: Some(lsp_types::Save::Bool(true)),
                    ..TextDocumentSyncOptions::default()
                })),
                hover_provider: Some(HoverProvider::Bool(true)),
                document_formatting_provider: Some(DocumentFormattingProvider::Bool(true)),
                document_symbol_provider: Some(DocumentSymbolProvider::Bool(true)),
                code_action_provider: Some(CodeActionProvider::CodeActionOptions(CodeActionOptions {
                    code_action_kinds: Some(vec![CodeActionKind::QuickFix]),
                    ..CodeActionOptions::default()
                })),
                ..ServerCapabilities::default()
            },
            server_info: Some(ServerInfo { name: "ptoc".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }),
        })
    }

    /// Takes over settings, or tells the user what is wrong with them.
    fn configure(&mut self, value: &Value) {
        if value.is_null() {
            return;
        }
        match Settings::read(value) {
            Ok(settings) => self.settings = settings,
            Err(message) => {
                self.out.push(("window/showMessage".into(), json!({"type": 1, "message": format!("ptoc: {message}")})));
            }
        }
    }

    fn set(&mut self, uri: Uri, document: Document) {
        self.open.insert(uri, Opened { document, analysis: None });
        self.forget();
    }

    /// Whatever is known may have changed: any text may import any other.
    fn forget(&mut self) {
        for (uri, opened) in &mut self.open {
            opened.analysis = None;
            self.stale.insert(uri.as_str().to_owned());
        }
    }

    fn opened(&self, uri: &Uri) -> Result<&Opened, Failure> {
        let missing = || Failure::new(Failure::INVALID_PARAMS, format!("`{}` is not open", uri.as_str()));
        self.open.get(uri).ok_or_else(missing)
    }

    /// Makes sure that there is an analysis of a text that is open.
    fn analyse(&mut self, uri: &Uri) {
        if self.open.get(uri).is_none_or(|o| o.analysis.is_some()) {
            return;
        }
        let texts: OpenTexts = self.open.iter().map(|(uri, o)| (path(uri), o.document.text.clone())).collect();
        let analysis = analyse(&path(uri), &self.open[uri].document.text, &self.settings, &texts);
        self.open.get_mut(uri).expect("it is open").analysis = Some(analysis);
    }

    /// The text with its analysis.
    fn known(&mut self, uri: &Uri) -> Result<(&Document, &Analysis), Failure> {
        self.opened(uri)?;
        self.analyse(uri);
        let opened = &self.open[uri];
        Ok((&opened.document, opened.analysis.as_ref().expect("it was just made")))
    }

    fn formatting(&self, params: DocumentFormattingParams) -> Result<Value, Failure> {
        let document = &self.opened(&params.text_document.uri)?.document;
        let mut sources = SourceMap::new();
        let file = sources.add("format", document.text.as_str());
        let formatted = format(file, &document.text).map_err(|why| match why {
            Refused::Broken(_) => {
                Failure::new(Failure::REQUEST_FAILED, "the text has syntax errors: it is left as it is")
            }
            Refused::Changed => {
                Failure::new(Failure::INTERNAL, "a bug of ptoc: the formatted text would not mean the same")
            }
        })?;
        result(difference(document, &formatted, self.encoding))
    }

    fn hover(&mut self, params: HoverParams) -> Result<Value, Failure> {
        let at = params.text_document_position_params;
        let encoding = self.encoding;
        let (document, analysis) = self.known(&at.text_document.uri)?;
        let offset = document.lines.offset(&document.text, at.position, encoding);
        let Some((value, bytes)) = hover::hover(document, analysis, offset) else { return Ok(Value::Null) };
        let position = |offset| document.lines.position(&document.text, offset, encoding);
        result(Hover {
            contents: Contents::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value }),
            range: Some(Range { start: position(bytes.start), end: position(bytes.end) }),
        })
    }

    fn actions(&mut self, params: CodeActionParams) -> Result<Value, Failure> {
        let uri = params.text_document.uri;
        let wanted = params.context.only.is_none_or(|only| only.contains(&CodeActionKind::QuickFix));
        let encoding = self.encoding;
        let (document, analysis) = self.known(&uri)?;
        let asked = document.lines.bytes(&document.text, &params.range, encoding);
        let places = Places { uri: &uri, document, analysis, encoding };
        let touches = |d: &&ptoc_diagnostics::Diagnostic| {
            let span = d.span.filter(|s| s.file == analysis.file);
            span.is_some_and(|s| (s.start as usize) <= asked.end && asked.start <= s.end as usize)
        };
        let found = analysis.diagnostics.iter().filter(|_| wanted).filter(touches);
        let actions: Vec<CodeActionResponse> =
            found.flat_map(|d| places.actions(d)).map(CodeActionResponse::CodeAction).collect();
        result(actions)
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Failure> {
    serde_json::from_value(params).map_err(|e| Failure::new(Failure::INVALID_PARAMS, e.to_string()))
}

fn result(value: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|e| Failure::new(Failure::INTERNAL, e.to_string()))
}

/// The file that a document stands for; one that is not on disk keeps its whole name.
fn path(uri: &Uri) -> PathBuf {
    let file = uri.to_file_path().unwrap_or_else(|()| PathBuf::from(uri.as_str()));
    file.canonicalize().unwrap_or(file)
}

/// The lines that differ, as one edit; none if nothing does.
fn difference(document: &Document, to: &str, encoding: Encoding) -> Vec<TextEdit> {
    let from = document.text.as_str();
    if from == to {
        return Vec::new();
    }
    let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let common = same(from, to);
    // Whole lines, so that no character is cut.
    let start = from[..from.floor_char_boundary(common)].rfind('\n').map_or(0, |n| n + 1);
    let (rest, new) = (&from[start..], &to[start..]);
    let tail = rest.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    let tail = rest[rest.ceil_char_boundary(rest.len() - tail)..].find('\n').map_or(0, |n| {
        let at = rest.ceil_char_boundary(rest.len() - tail) + n + 1;
        rest.len() - at
    });
    let position = |offset| document.lines.position(from, offset, encoding);
    let range = Range { start: position(start), end: position(from.len() - tail) };
    vec![TextEdit { range, new_text: new[..new.len() - tail].to_owned() }]
}
