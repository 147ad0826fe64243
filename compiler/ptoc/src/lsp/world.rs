//! What the server knows: open texts with their analyses, the client's settings and folders.

use super::analysis::{Analysis, Loaded, analyse, load};
use super::cache::Cache;
use super::client::Client;
use super::context::Context;
use super::documents::Document;
use super::failure::Failure;
use super::position::Encoding;
use super::settings::Settings;
use crate::files::{self, OpenTexts};
use lsp_types::{Range, Uri};
use ptoc_diagnostics::{FileId, Span};
use ptoc_isa::Target;
use std::collections::HashMap;
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
}

impl World {
    /// The text of that name, if it is open.
    pub fn opened(&self, uri: &Uri) -> Result<&Opened, Failure> {
        let missing = || Failure::new(Failure::INVALID_PARAMS, format!("`{}` is not open", uri.as_str()));
        self.open.get(uri).ok_or_else(missing)
    }

    /// The text of that name with its analysis, which is made if need be.
    pub fn known(&mut self, uri: &Uri) -> Result<Context<'_>, Failure> {
        self.opened(uri)?;
        self.analyse(uri);
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
        let cache = self.caches.entry(uri.clone()).or_default();
        let analysis = analyse(&path(uri), &self.open[uri].document.text, &self.settings, &texts, cache);
        self.open.get_mut(uri).expect("it is open").analysis = Some(analysis);
    }

    /// The target that the client has chosen, without the capacities of its definitions.
    pub fn target(&self) -> &'static Target {
        // The settings were read with it.
        Target::builtin(&self.settings.target).unwrap_or_else(|_| &Target::all()[0])
    }

    /// All texts that are open.
    pub fn texts(&self) -> OpenTexts {
        self.open.iter().map(|(uri, o)| (path(uri), o.document.text.clone())).collect()
    }

    /// Texts that are open and files of the workspace, by path.
    pub fn everything(&self) -> Vec<(PathBuf, String)> {
        let mut all: Vec<(PathBuf, String)> = self.texts().into_iter().collect();
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

    /// Those of [`World::everything`] that have the word somewhere, loaded.
    pub fn with_word(&self, word: &str) -> Vec<(PathBuf, Loaded)> {
        let open = self.texts();
        let all = self.everything().into_iter().filter(|(_, text)| text.contains(word));
        all.map(|(path, text)| (path.clone(), load(&path, &text, &open))).collect()
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
        self.uri(&Path::new(name).canonicalize().ok()?)
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

/// The file that a document stands for; one that is not on disk keeps its whole name.
pub fn path(uri: &Uri) -> PathBuf {
    let file = uri.to_file_path().unwrap_or_else(|()| PathBuf::from(uri.as_str()));
    file.canonicalize().unwrap_or(file)
}
