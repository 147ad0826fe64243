//! Analyses that run beside the conversation: a text as it was at some moment, what is found in it, and how it is stopped.
//!
//! The server gives [`Work`] out and takes [`Done`] back; whatever has changed meanwhile, it keeps what is still of use. Who carries
//! the messages decides where the work is done.

use super::analysis::{Analysis, analyse};
use super::cache::Cache;
use super::settings::Settings;
use crate::files::OpenTexts;
use lsp_types::Uri;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says that nobody wants an analysis any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Nobody wants it.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Is it still wanted?
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A text to be analysed.
#[derive(Debug)]
pub struct Work {
    /// Its name.
    pub uri: Uri,
    /// The state of the text, and of all that it may depend on.
    pub state: u64,
    /// Where it is.
    pub path: PathBuf,
    /// The settings.
    pub settings: Settings,
    /// All texts that are open, this one among them.
    pub texts: OpenTexts,
    /// What was found in it before.
    pub cache: Cache,
    /// Raised when the state is gone.
    pub stop: Stop,
}

/// What was found.
#[derive(Debug)]
pub struct Done {
    /// As in [`Work`].
    pub uri: Uri,
    /// As in [`Work`].
    pub state: u64,
    /// Nothing if it was stopped, or if a bug kept it from ending.
    pub analysis: Option<Analysis>,
    /// What it has found in single kernels, also if it was stopped.
    pub cache: Cache,
}

impl Work {
    /// Does it, kernel by kernel, until somebody says stop.
    pub fn run(self) -> Done {
        let Work { uri, state, path, settings, texts, mut cache, stop } = self;
        let text = texts.get(&path).cloned().unwrap_or_default();
        let job = || analyse(&path, &text, &settings, &texts, &mut cache, &stop);
        // A bug in the analysis of one text is no reason to lose the editor's state.
        let analysis = catch_unwind(AssertUnwindSafe(job)).unwrap_or_default();
        Done { uri, state, analysis, cache }
    }
}
