//! What `ptoc check` finds in a text that may not be saved yet.

use crate::commands::check::{Checked, check_entry};
use crate::defs::Definition;
use crate::files::OpenTexts;
use crate::session::Session;
use ptoc_diagnostics::{Diagnostic, FileId, SourceMap};
use ptoc_passes::MemoryMap;
use serde_json::Value;
use std::path::Path;

/// What the client has set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The target.
    pub target: String,
    /// Definitions, as `-D` takes them.
    pub define: Vec<Definition>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { target: crate::args::DEFAULT_TARGET.into(), define: Vec::new() }
    }
}

impl Settings {
    /// Reads `{"target": "a5", "define": ["BM=64"]}`, alone or below `"ptoc"`. What is missing keeps its default.
    ///
    /// # Errors
    /// What is wrong with it, for the user.
    pub fn read(value: &Value) -> Result<Settings, String> {
        let value = value.get("ptoc").unwrap_or(value);
        if !value.is_object() {
            return Err(format!("settings are an object with `target` and `define`, and not {value}"));
        }
        let mut settings = Settings::default();
        if let Some(target) = value.get("target") {
            let name = target.as_str().ok_or("`ptoc.target` is the name of a target")?;
            ptoc_isa::Target::builtin(name).map_err(|d| d.message.clone())?;
            settings.target = name.to_owned();
        }
        for word in value.get("define").and_then(Value::as_array).into_iter().flatten() {
            let parts = word.as_str().and_then(|w| w.split_once('='));
            let (name, value) =
                parts.ok_or_else(|| format!("`ptoc.define` has {word}: it takes texts \"NAME=VALUE\""))?;
            settings.define.push(Definition { name: name.trim().to_owned(), value: value.to_owned() });
        }
        Ok(settings)
    }
}

/// What is known of a text.
#[derive(Debug)]
pub struct Analysis {
    /// All texts that were read.
    pub sources: SourceMap,
    /// The text itself.
    pub file: FileId,
    /// What is wrong, in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// The memories of its kernels.
    pub maps: Vec<MemoryMap>,
}

/// Checks a text as `ptoc check` does, with what is open in the editor in place of what is on disk.
pub fn analyse(path: &Path, text: &str, settings: &Settings, open: &OpenTexts) -> Analysis {
    // The settings were read with this target.
    let mut session = match Session::new(&settings.target, &settings.define) {
        Ok(session) => session,
        Err(d) => {
            let mut sources = SourceMap::new();
            let file = sources.add(path.display().to_string(), text);
            return Analysis { sources, file, diagnostics: vec![*d], maps: Vec::new() };
        }
    };
    session.open = open.clone();
    let unit = session.load_text(path, text.to_owned());
    let mut maps = Vec::new();
    for entry in unit.entries() {
        if let Checked::Whole(found) = check_entry(&mut session, &unit, &entry) {
            maps.extend(found);
        }
    }
    let diagnostics = std::mem::take(&mut session.diagnostics).into_sorted();
    Analysis { file: unit.file, sources: session.sources, diagnostics, maps }
}
