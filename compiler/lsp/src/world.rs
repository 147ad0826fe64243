//! What the server knows: open texts with their analyses, the client's settings and folders.

use super::analysis::{Analysis, Loaded, analyse, glance, load};
use super::cache::Cache;
use super::client::Client;
use super::context::Context;
use super::documents::Document;
use super::failure::Failure;
use super::position::Encoding;
use super::settings::Settings;
use super::work::CancelToken;
use lsp_types::{Range, TextEdit, Uri};
use ptoc_diagnostics::{FileId, Span};
use ptoc_driver::devices;
use ptoc_driver::files::{self, OpenTexts};
use ptoc_driver::trees::Trees;
use ptoc_isa::Target;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Files of the workspace that are looked at, at most: a folder may be anything.
const MOST_FILES: usize = 5_000;

/// How texts of the standard library are called, which are no files: `ptoc-std:/act.tile`.
pub const LIBRARY: &str = "ptoc-std:/";

/// A text with what is known of it.
#[derive(Debug, Default)]
pub struct Opened {
    /// The text.
    pub document: Document,
    /// Of this very state; none while it is not known.
    pub analysis: Option<Analysis>,
    /// The last whole analysis, of a state before.
    pub before: Option<Analysis>,
    /// A number of the state: of the text, and of all that it may depend on.
    pub state: u64,
    /// When it was edited, as such a number.
    pub edited: u64,
}

impl Opened {
    /// Whether this very state is analysed.
    pub fn is_analysed(&self) -> bool {
        self.analysis.as_ref().is_some_and(|a| a.whole)
    }

    /// Something has changed.
    pub fn age(&mut self) {
        if let Some(analysis) = self.analysis.take().filter(|a| a.whole) {
            self.before = Some(analysis);
        }
    }
}

/// What the server knows.
#[derive(Debug, Default)]
pub struct World {
    /// What columns count.
    pub encoding: Encoding,
    /// What the client can do.
    pub client: Client,
    /// What the client has set.
    pub settings: Settings,
    /// Texts that are open.
    pub open: HashMap<Uri, Opened>,
    /// The workspace's folders.
    pub folders: Vec<PathBuf>,
    /// What was found in the kernels of each text that is open.
    pub caches: HashMap<Uri, Cache>,
    /// The semantic tokens that a client has last got, with their number.
    pub tokens: HashMap<Uri, (u64, Vec<u32>)>,
    /// Trees of texts that were parsed.
    pub trees: Trees,
    /// Analyses are made elsewhere, and requests are answered from what there is.
    pub beside: bool,
}

impl World {
    /// The text of that name, if it is open.
    pub fn opened(&self, uri: &Uri) -> Result<&Opened, Failure> {
        let missing = || Failure::new(Failure::INVALID_PARAMS, format!("`{}` is not open", uri.as_str()));
        self.open.get(uri).ok_or_else(missing)
    }

    /// The text of that name with its analysis, which is made if need be; where analyses are made elsewhere, with what
    /// is known of it without one.
    pub fn known(&mut self, uri: &Uri) -> Result<Context<'_>, Failure> {
        self.opened(uri)?;
        match self.beside {
            true => self.glance(uri),
            false => self.analyse(uri),
        }
        let (uri, opened) = self.open.get_key_value(uri).expect("it is open");
        let analysis = opened.analysis.as_ref().expect("it was just made");
        Ok(Context { world: self, uri, document: &opened.document, analysis })
    }

    /// Makes sure that there is an analysis of a text that is open.
    pub fn analyse(&mut self, uri: &Uri) {
        if self.open.get(uri).is_none_or(|o| o.analysis.is_some()) {
            return;
        }
        let texts = self.texts();
        let place = path(uri);
        let settings = self.settings.of(&place);
        let cache = self.caches.entry(uri.clone()).or_default();
        let analysis =
            analyse(&place, &self.open[uri].document.text, &settings, &texts, cache, &CancelToken::default());
        self.open.get_mut(uri).expect("it is open").analysis = analysis;
    }

    /// Makes sure that the names of a text that is open are known, with what was known of them before the last edits.
    fn glance(&mut self, uri: &Uri) {
        let Some(opened) = self.open.get(uri).filter(|o| o.analysis.is_none()) else { return };
        let place = path(uri);
        let settings = self.settings.of(&place);
        let glanced = glance(&place, &opened.document.text, &settings, &self.texts(), opened.before.as_ref());
        self.open.get_mut(uri).expect("it is open").analysis = Some(glanced);
    }

    /// There will be no analysis of this state.
    pub fn give_up(&mut self, uri: &Uri) {
        self.glance(uri);
        if let Some(analysis) = self.open.get_mut(uri).and_then(|o| o.analysis.as_mut()) {
            analysis.whole = true;
        }
    }

    /// What there is now, for a request that is answered in another thread.
    pub fn snapshot(&self) -> World {
        let document = |o: &Opened| Opened { document: o.document.clone(), ..Opened::default() };
        World {
            encoding: self.encoding,
            client: self.client.clone(),
            settings: self.settings.clone(),
            open: self.open.iter().map(|(uri, o)| (uri.clone(), document(o))).collect(),
            folders: self.folders.clone(),
            trees: self.trees.clone(),
            beside: true,
            ..World::default()
        }
    }

    /// The target of what is about no text.
    pub fn default_target(&self) -> &'static Target {
        devices::shown(self.settings.target()).unwrap_or(&Target::all()[0])
    }

    /// The target that the client or the project has chosen for a text, without the capacities of definitions.
    pub fn target(&self, uri: &Uri) -> &'static Target {
        devices::shown(self.settings.of(&path(uri)).target()).unwrap_or(&Target::all()[0])
    }

    /// All texts that are open.
    pub fn texts(&self) -> OpenTexts {
        let texts = self.open.iter().map(|(uri, o)| (path(uri), o.document.text.clone())).collect();
        OpenTexts { texts, trees: Some(self.trees.clone()), ..OpenTexts::default() }
    }

    /// Texts that are open and files of the workspace, by path.
    pub fn everything(&self) -> Vec<(PathBuf, String)> {
        let mut all: Vec<(PathBuf, String)> = self.texts().texts.into_iter().collect();
        let mut found = Vec::new();
        for folder in &self.folders {
            // What cannot be read is not there for us.
            let _ = files::collect(folder, &mut found);
        }
        let known: Vec<PathBuf> = all.iter().map(|(path, _)| path.clone()).collect();
        let new =
            found.into_iter().map(|p| p.canonicalize().unwrap_or(p)).filter(|p| p.is_file() && !known.contains(p));
        all.extend(new.take(MOST_FILES).filter_map(|p| Some((p.clone(), files::read_source(&p).ok()?))));
        all.sort();
        all.dedup_by(|a, b| a.0 == b.0);
        all
    }

    /// Those of [`World::everything`] that have all of these words somewhere, loaded.
    pub fn with_words(&self, words: &[&str]) -> Vec<(PathBuf, Loaded)> {
        let open = self.texts();
        let all = self.everything().into_iter().filter(|(_, text)| words.iter().all(|w| has_word(text, w)));
        all.map(|(path, text)| (path.clone(), load(&path, &text, &open))).collect()
    }

    /// Edits of texts, with the versions that they are for if the client takes these.
    pub fn edit(&self, changes: BTreeMap<String, Vec<TextEdit>>) -> Value {
        if !self.client.versions {
            return json!({"changes": changes});
        }
        let version = |uri: &str| self.open.iter().find(|(u, _)| u.as_str() == uri).map(|(_, o)| o.document.version);
        let one = |(uri, edits): (String, Vec<TextEdit>)| {
            let document = json!({"uri": uri, "version": version(&uri)});
            json!({"textDocument": document, "edits": edits})
        };
        json!({"documentChanges": changes.into_iter().map(one).collect::<Vec<_>>()})
    }

    /// The name of a file: what the client calls it, if it is open.
    pub fn uri(&self, path: &Path) -> Option<Uri> {
        let open = self.open.keys().find(|uri| self::path(uri) == path);
        open.cloned().or_else(|| Uri::from_file_path(path).ok())
    }

    /// The name of a file of a unit; definitions of the settings have none.
    pub fn uri_of(&self, loaded: &Loaded, file: FileId) -> Option<Uri> {
        let name = loaded.sources.name(file);
        if let Some(module) = name.strip_prefix("<std>/") {
            return format!("{LIBRARY}{module}").parse().ok();
        }
        if file == loaded.file() {
            return self.uri(&loaded.unit.path);
        }
        self.uri(&loaded.place(file))
    }

    /// The range of a span, in whichever file it is.
    pub fn range(&self, loaded: &Loaded, span: Span) -> Range {
        let text = loaded.sources.text(span.file);
        let position = |offset: u32| match loaded.lines.get(span.file.0 as usize) {
            Some(lines) => lines.position(text, (offset as usize).min(text.len()), self.encoding),
            None => Default::default(),
        };
        Range { start: position(span.start), end: position(span.end) }
    }
}

/// Whether the text has it, and not as a part of another word.
fn has_word(text: &str, word: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(name) && !text[at + word.len()..].starts_with(name))
}

/// The file that a document stands for; one that is not on disk keeps its whole name.
pub fn path(uri: &Uri) -> PathBuf {
    let file = uri.to_file_path().unwrap_or_else(|()| PathBuf::from(uri.as_str()));
    file.canonicalize().unwrap_or(file)
}
