//! Analyses that run beside the conversation: a text as it was at some moment, what is found in it, and how it is
//! stopped.
//!
//! The server gives [`AnalysisJob`] out and takes [`Done`] back; whatever has changed meanwhile, it keeps what is still
//! of use. Who carries the messages decides where the work is done.

use super::analysis::{Analysis, analyse};
use super::cache::Cache;
use super::settings::Settings;
use lsp_types::Uri;
use ptoc_driver::files::OpenTexts;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says that nobody wants an analysis any more.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Nobody wants it.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is still wanted.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A text to be analysed.
#[derive(Debug)]
pub struct AnalysisJob {
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
    pub stop: CancelToken,
}

/// What was found.
#[derive(Debug)]
pub struct Done {
    /// As in [`AnalysisJob`].
    pub uri: Uri,
    /// As in [`AnalysisJob`].
    pub state: u64,
    /// Nothing if it was stopped, or if a bug kept it from ending.
    pub analysis: Option<Analysis>,
    /// What it has found in single kernels, also if it was stopped.
    pub cache: Cache,
}

impl AnalysisJob {
    /// Does it, kernel by kernel, until somebody says stop.
    pub fn run(self) -> Done {
        let AnalysisJob { uri, state, path, settings, texts, mut cache, stop } = self;
        let text = texts.texts.get(&path).cloned().unwrap_or_default();
        let job = || analyse(&path, &text, &settings, &texts, &mut cache, &stop);
        // A bug in the analysis of one text is no reason to lose the editor's state.
        let analysis = catch_unwind(AssertUnwindSafe(job)).unwrap_or_default();
        Done { uri, state, analysis, cache }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use serde_json::{Value, json};
    use std::collections::HashMap;

    const LIB: &str = "file:///nowhere/lib.tile";
    const KERNEL: &str = "file:///nowhere/k.tile";

    fn begun(mut server: Server) -> Server {
        server
            .request("initialize", json!({"processId": null, "rootUri": null, "capabilities": {}}))
            .expect("it begins");
        server
    }

    fn open(server: &mut Server, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "tile", "version": 0, "text": text});
        server.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Texts that go together and texts that do not, whole and broken.
    fn text(uri: &str, n: usize) -> String {
        let (f, g) = (["f", "g"][n % 2], ["f", "g", "h"][n % 3]);
        match uri {
            LIB if n % 7 == 6 => format!("fn {f}(x: f32) -> "),
            LIB => format!("fn {f}(x: f32) -> f32 {{ x * {n}.0 }}\n"),
            _ if n % 5 == 4 => "use lib::f;\nkernel k(x: in f32[M]) {".into(),
            _ => format!(
                "use lib::{g};\nkernel k(x: in f32[M], y: out f32[M]) {{\n    grid (i in tiles(M, 64));\n    \
                 TSTORE(y.tile(i), {g}(Vec(x.tile(i))));\n}}\nkernel other(x: in f32[M]) {{\n    let t{n} = 1;\n}}\n"
            ),
        }
    }

    /// However edits and the ends of analyses are mixed: what is published is of the text as it is then, and in the end
    /// it is what a server says that was just started.
    #[test]
    fn what_is_late_is_never_said() {
        let mut seed = 11u64;
        let mut draw = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        let mut server = begun(Server::beside());
        let mut now: HashMap<&str, (i64, String)> = HashMap::new();
        for uri in [LIB, KERNEL] {
            now.insert(uri, (0, text(uri, 0)));
            open(&mut server, uri, &text(uri, 0));
        }
        let mut published: HashMap<String, Value> = HashMap::new();
        let mut held: Option<AnalysisJob> = None;
        let mut finished: Option<Done> = None;
        for step in 0..400 {
            let last = step >= 380;
            match draw(6) {
                0 | 1 if !last => {
                    let uri = [LIB, KERNEL][draw(2)];
                    let entry = now.get_mut(uri).expect("it is open");
                    *entry = (entry.0 + 1, text(uri, draw(40)));
                    let document = json!({"uri": uri, "version": entry.0});
                    let params = json!({"textDocument": document, "contentChanges": [{"text": entry.1}]});
                    server.notify("textDocument/didChange", params);
                }
                2 if held.is_none() && finished.is_none() => held = server.work(),
                3 => finished = held.take().map(AnalysisJob::run).or(finished),
                4 => finished.take().into_iter().for_each(|done| server.done(done)),
                // Requests see the text as it is, whatever is known.
                _ => {
                    let symbols =
                        server.request("textDocument/documentSymbol", json!({"textDocument": {"uri": KERNEL}}));
                    let names = symbols.expect("an outline").value().as_array().map_or(0, Vec::len);
                    assert_eq!(names, now[KERNEL].1.matches("kernel ").count());
                }
            }
            if last {
                finished = finished.or_else(|| held.take().or_else(|| server.work()).map(AnalysisJob::run));
                finished.take().into_iter().for_each(|done| server.done(done));
            }
            for message in server.settle() {
                let uri = message.params["uri"].as_str().expect("a text").to_owned();
                assert_eq!(message.params["version"], now[&*uri].0, "step {step}");
                published.insert(uri, message.params["diagnostics"].clone());
            }
        }
        assert!(server.work().is_none(), "everything is analysed");
        let mut fresh = begun(Server::new());
        for uri in [LIB, KERNEL] {
            open(&mut fresh, uri, &now[uri].1);
        }
        for message in fresh.settle() {
            let uri = message.params["uri"].as_str().expect("a text");
            assert_eq!(published[uri], message.params["diagnostics"], "{uri}\n{now:#?}");
        }
    }
}
