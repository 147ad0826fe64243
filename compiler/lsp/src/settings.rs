//! What the client has set.

use ptoc_diagnostics::{Diagnostic, suggest};
use ptoc_driver::defs::Definition;
use ptoc_driver::project::{self, FoundProject, Project};
use ptoc_driver::session::DEFAULT_TARGET;
use ptoc_isa::Target;
use serde_json::Value;
use std::path::Path;

/// Settings: those of the client, the same for all texts, and below them those of a text's project.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The target, if the client has one.
    pub target: Option<String>,
    /// Definitions, as `-D` takes them.
    pub define: Vec<Definition>,
    /// Which inlay hints are shown.
    pub hints: Hints,
    /// What `ptoc.toml` says, where a text is looked at.
    pub project: Project,
    /// What is wrong with it.
    pub wrong: Vec<Diagnostic>,
}

/// Kinds of inlay hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hints {
    /// Types behind names.
    pub types: bool,
    /// Addresses of tiles.
    pub addresses: bool,
    /// Bytes of tiles.
    pub bytes: bool,
    /// What is left of each memory, behind the kernel's brace.
    pub budget: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let hints = Hints { types: true, addresses: true, bytes: true, budget: true };
        Settings { target: None, define: Vec::new(), hints, project: Project::default(), wrong: Vec::new() }
    }
}

impl Settings {
    /// With what holds for a file by its project.
    pub fn of(&self, path: &Path) -> Settings {
        let FoundProject { project, sources, diagnostics } = project::find(path);
        // The text that is shown is another one: the place is a part of the message.
        let placed = |d: &Diagnostic| {
            let place = d.span.map_or(String::new(), |span| {
                format!("{}:{}: ", sources.name(span.file), sources.position(span.file, span.start).line)
            });
            let near = d.fixes.first().map_or(String::new(), |fix| format!("; {}", fix.message));
            Diagnostic::global(d.code, format!("{place}{}{near}", d.message))
        };
        let wrong = diagnostics.iter().map(placed).collect();
        Settings { project, wrong, ..self.clone() }
    }

    /// The name of the target.
    pub fn target(&self) -> &str {
        self.target.as_deref().or(self.project.target.as_deref()).unwrap_or(DEFAULT_TARGET)
    }
}

/// What the user is told of settings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Problem {
    /// There is no such setting.
    Unknown(String),
    /// It cannot have this value.
    Wrong(String),
}

/// Settings that clients have for themselves, and may send with the others.
const CLIENTS: [&str; 2] = ["path", "trace"];

const KEYS: [&str; 3] = ["target", "define", "hints"];

impl Settings {
    /// Reads `{"target": "a5", "define": ["BM=64"], "hints": {"addresses": false}}`, alone or below `"ptoc"`. What is
    /// missing or null has its default; what is wrong stays as it is here. Nothing, if nothing is said of ptoc. `ours`
    /// is said to us alone; if not, what has none of our names is somebody else's.
    pub fn read(&self, value: &Value, ours: bool) -> (Option<Settings>, Vec<Problem>) {
        let mut problems = Vec::new();
        let below = value.get("ptoc");
        let value = below.unwrap_or(value);
        if value.is_null() {
            return (None, problems);
        }
        let Some(given) = value.as_object() else {
            let what = "settings are an object with `target`, `define` and `hints`";
            return (None, vec![Problem::Wrong(format!("{what}, and not {value}"))]);
        };
        let all = ours || below.is_some() || KEYS.iter().any(|key| given.contains_key(*key));
        for key in given.keys().filter(|k| !KEYS.contains(&k.as_str()) && !CLIENTS.contains(&k.as_str())) {
            let near = suggest(key.strip_prefix("ptoc.").unwrap_or(key), KEYS);
            let near = near.or_else(|| KEYS.into_iter().find(|known| key.strip_prefix("ptoc.") == Some(known)));
            if all || near.is_some() {
                problems.push(unknown("ptoc", key, near, "target, define and hints"));
            }
        }
        // Where only other words stand, nothing is said of ours.
        if !(below.is_some() || KEYS.iter().any(|key| given.contains_key(*key))) {
            return (None, problems);
        }
        let mut settings = Settings::default();
        let set = |key: &str| given.get(key).filter(|v| !v.is_null());
        if let Some(value) = set("target") {
            settings.target = target(value).map(Some).unwrap_or_else(|why| {
                problems.push(Problem::Wrong(why));
                self.target.clone()
            });
        }
        if let Some(value) = set("define") {
            settings.define = defined(value, &mut problems).unwrap_or_else(|| self.define.clone());
        }
        if let Some(value) = set("hints") {
            settings.hints = self.hints.read(value, &mut problems);
        }
        (Some(settings), problems)
    }
}

fn unknown(of: &str, key: &str, near: Option<&str>, all: &str) -> Problem {
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Problem::Unknown(format!("there is no setting `{key}` of `{of}`, which has {all}{near}"))
}

/// The name of a target.
fn target(value: &Value) -> Result<String, String> {
    let all = || Target::all().iter().chain(Target::devices());
    let names = || all().map(|t| t.name.as_str()).collect::<Vec<_>>().join(", ");
    let name = value
        .as_str()
        .ok_or_else(|| format!("`ptoc.target` is the name of a target ({}), and not {value}", names()))?;
    let found = Target::builtin(name).map_err(|d| {
        let helps = d.fixes.iter().map(|fix| fix.message.as_str());
        let rest: String = d.notes.iter().map(String::as_str).chain(helps).map(|more| format!("; {more}")).collect();
        format!("`ptoc.target`: {}{rest}", d.message)
    })?;
    Ok(found.name.clone())
}

/// Definitions, those that can be read.
fn defined(value: &Value, problems: &mut Vec<Problem>) -> Option<Vec<Definition>> {
    let Some(words) = value.as_array() else {
        let what = "`ptoc.define` is a list of texts \"NAME=VALUE\", such as [\"BM=64\", \"capacity.Vec=131072\"]";
        problems.push(Problem::Wrong(format!("{what}, and not {value}")));
        return None;
    };
    let mut found = Vec::new();
    for word in words {
        let parts = word.as_str().and_then(|w| w.split_once('=')).map(|(name, value)| (name.trim(), value));
        match parts.filter(|(name, value)| !name.is_empty() && !value.trim().is_empty()) {
            Some((name, value)) => found.push(Definition { name: name.to_owned(), value: value.to_owned() }),
            None => {
                problems.push(Problem::Wrong(format!("`ptoc.define` has {word}: it takes texts \"NAME=VALUE\"")));
            }
        }
    }
    Some(found)
}

impl Hints {
    fn read(self, value: &Value, problems: &mut Vec<Problem>) -> Hints {
        const KINDS: [&str; 4] = ["types", "addresses", "bytes", "budget"];
        let Some(kinds) = value.as_object() else {
            let what = "`ptoc.hints` is an object of kinds (types, addresses, bytes and budget) with true or false";
            problems.push(Problem::Wrong(format!("{what}, and not {value}")));
            return self;
        };
        let mut hints = Settings::default().hints;
        let mut before = self;
        for (kind, on) in kinds.iter().filter(|(_, on)| !on.is_null()) {
            let (Some(field), Some(old)) = (hints.field(kind), before.field(kind)) else {
                problems.push(unknown("ptoc.hints", kind, suggest(kind, KINDS), "types, addresses, bytes and budget"));
                continue;
            };
            *field = on.as_bool().unwrap_or_else(|| {
                problems.push(Problem::Wrong(format!("`ptoc.hints.{kind}` is true or false, and not {on}")));
                *old
            });
        }
        hints
    }

    fn field(&mut self, kind: &str) -> Option<&mut bool> {
        match kind {
            "types" => Some(&mut self.types),
            "addresses" => Some(&mut self.addresses),
            "bytes" => Some(&mut self.bytes),
            "budget" => Some(&mut self.budget),
            _ => None,
        }
    }
}
