//! What the client has set.

use crate::defs::Definition;
use serde_json::Value;

/// Settings, the same for all texts.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The target.
    pub target: String,
    /// Definitions, as `-D` takes them.
    pub define: Vec<Definition>,
    /// Which inlay hints are shown.
    pub hints: Hints,
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
        Settings { target: crate::args::DEFAULT_TARGET.into(), define: Vec::new(), hints }
    }
}

impl Settings {
    /// Reads `{"target": "a5", "define": ["BM=64"], "hints": {"addresses": false}}`, alone or below `"ptoc"`. What is missing keeps
    /// its default.
    ///
    /// # Errors
    /// What is wrong with it, for the user.
    pub fn read(value: &Value) -> Result<Settings, String> {
        let value = value.get("ptoc").unwrap_or(value);
        if !value.is_object() {
            return Err(format!("settings are an object with `target`, `define` and `hints`, and not {value}"));
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
        if let Some(hints) = value.get("hints") {
            settings.hints = Hints::read(hints)?;
        }
        Ok(settings)
    }
}

impl Hints {
    fn read(value: &Value) -> Result<Hints, String> {
        let mut hints = Settings::default().hints;
        let kinds = value.as_object().ok_or("`ptoc.hints` is an object of kinds and truth values")?;
        for (kind, on) in kinds {
            let field = match kind.as_str() {
                "types" => &mut hints.types,
                "addresses" => &mut hints.addresses,
                "bytes" => &mut hints.bytes,
                "budget" => &mut hints.budget,
                _ => return Err(format!("`ptoc.hints` has no `{kind}`: it has types, addresses, bytes and budget")),
            };
            *field = on.as_bool().ok_or_else(|| format!("`ptoc.hints.{kind}` is true or false"))?;
        }
        Ok(hints)
    }
}
