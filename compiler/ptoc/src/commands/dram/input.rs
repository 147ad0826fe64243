//! The inputs of `ptoc dram`, and their mistakes as diagnostics with a place.

use super::{shown, warning, with_presets};
use ptoc_diagnostics::{Code, Diagnostic, Diagnostics, FileId, SourceMap, Span, codes};
use ptoc_driver::files::{Outputs, no_character, read_bytes, reason};
use ptoc_pim_sim::dram::mapping::Mapping;
use ptoc_pim_sim::dram::presets::PRESETS;
use ptoc_pim_sim::dram::trace::parse_requests;
use ptoc_pim_sim::dram::{Config, Request};
use ptoc_pim_sim::energy::Model;
use ptoc_pim_sim::located::InputError;
use std::path::{Path, PathBuf};

/// Texts that were read, and what was found in them.
#[derive(Default)]
pub(in crate::commands) struct Inputs {
    pub sources: SourceMap,
    pub found: Diagnostics,
    /// The file of the configuration; a preset has none that the user could see.
    config: Option<FileId>,
    /// The files that were read, and as what.
    read: Vec<(PathBuf, String)>,
}

impl Inputs {
    /// A text file.
    pub fn text(&mut self, path: &Path, what: &str, extension: &str) -> Result<FileId, Diagnostic> {
        let bytes = read_bytes(path, what, extension)?;
        self.read.push((path.to_owned(), format!("the {what} of this call")));
        if bytes.len() > SourceMap::MAX_LEN {
            let message = format!("{what} `{}` has {} bytes; at most 4 GiB are read", path.display(), bytes.len());
            return Err(Diagnostic::global(codes::CANNOT_READ, message));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let (byte, at, line) = no_character(&e);
            let message = format!(
                "{what} `{}` is not UTF-8: byte {byte:#04x} at offset {at} (line {line}) belongs to no character",
                path.display()
            );
            let help = match e.as_bytes() {
                bytes if is_array(bytes) => format!("this is an array; give the {what}"),
                _ => "save the file as UTF-8".into(),
            };
            Diagnostic::global(codes::NOT_UTF8, message).with_help(help)
        })?;
        Ok(self.sources.add(shown(path), text))
    }

    /// Sees to it that no output replaces what was read.
    pub fn keep(&self, outputs: &mut Outputs) -> Result<(), Diagnostic> {
        self.read.iter().try_for_each(|(path, what)| outputs.keep(path, what))
    }

    /// The configuration: the preset of that name, or else the file. `None` if it was refused.
    pub fn config(&mut self, name: &str) -> Result<Option<Config>, Diagnostic> {
        let preset = PRESETS.iter().find(|p| p.name == name);
        let path = Path::new(name);
        if let Some(preset) = preset {
            return Ok(Config::preset(preset.name));
        }
        if let Err(e) = std::fs::metadata(path) {
            let d = Diagnostic::global(
                codes::DRAM_NO_CONFIG,
                format!("`{name}` is no preset, and cannot be read as a file: {}", reason(&e)),
            );
            return Err(with_presets(d, name));
        }
        let file = self.text(path, "configuration", ".toml")?;
        self.config = Some(file);
        let stem = path.file_stem().map_or_else(|| name.to_owned(), |s| s.to_string_lossy().into_owned());
        match Config::parse(&stem, self.sources.text(file)) {
            Ok(loaded) => {
                for e in &loaded.warnings {
                    let d = warning(located(codes::DRAM_CONFIG, file, e));
                    self.found.push(d);
                }
                Ok(Some(loaded.config))
            }
            Err(errors) => {
                self.refuse(codes::DRAM_CONFIG, file, &errors);
                Ok(None)
            }
        }
    }

    /// The value of the first of these keys that a table of the configuration's file has, or else the table.
    pub fn setting(&self, table: &str, names: &[&str]) -> Option<Span> {
        let file = self.config?;
        let document = ptoc_pim_sim::located::parse(self.sources.text(file)).ok()?;
        let table = document.get(table)?;
        let node = names.iter().find_map(|name| table.get(name)).unwrap_or(table);
        // Texts are at most 4 GiB.
        Some(Span::new(file, node.bytes.start as u32, node.bytes.end as u32))
    }

    /// The energies that the configuration sets. `None` if they were refused.
    pub fn energy(&mut self, config: &Config) -> Option<Model> {
        let e = match Model::of(config) {
            Ok(model) => return Some(model),
            Err(e) => e,
        };
        let message = format!("`energy.{}`: {}", e.key, e.message);
        let keys = ptoc_pim_sim::energy::KEYS.iter().map(|(key, _)| *key);
        let place = self.config.and_then(|file| {
            let at = self.sources.text(file).find(&e.key)?;
            Some(Span::new(file, at as u32, (at + e.key.len()) as u32))
        });
        let d = match place {
            Some(span) => Diagnostic::error(codes::DRAM_ENERGY, span, message),
            None => Diagnostic::global(codes::DRAM_ENERGY, message),
        };
        let help = match ptoc_diagnostics::suggest(&e.key, keys.clone()) {
            _ if keys.clone().any(|k| k == e.key) => "give each current as the data sheet has it, in mA".into(),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}", keys.collect::<Vec<_>>().join(", ")),
        };
        self.found.push(d.with_help(help));
        None
    }

    /// The requests of each channel. `None` if the trace or the mapping was refused.
    pub fn requests(
        &mut self,
        config: &Config,
        map: Option<&str>,
        path: &Path,
    ) -> Result<Option<Vec<Vec<Request>>>, Diagnostic> {
        let mapping = match map {
            None => Mapping::interleaved(config),
            Some(text) => match Mapping::parse(config, text) {
                Ok(mapping) => mapping,
                Err(e) => {
                    let file = self.sources.add("--map", text);
                    self.refuse(codes::DRAM_MAP, file, &[e]);
                    return Ok(None);
                }
            },
        };
        let file = self.text(path, "trace", ".txt")?;
        let errors = match parse_requests(config, &mapping, self.sources.text(file)) {
            Ok(requests) => return Ok(Some(requests)),
            Err(errors) => errors,
        };
        for e in &errors {
            // A mistake of form has the form as its help; what is left is a number that is too large.
            let number = |word: &str| match word.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).is_ok(),
                None => word.parse::<u64>().is_ok(),
            };
            let number = self.sources.text(file).get(e.bytes.clone()).is_some_and(number);
            let code = if number && e.help.is_empty() { codes::DRAM_PLACE } else { codes::DRAM_TRACE_LINE };
            self.found.push(located(code, file, e));
        }
        Ok(None)
    }

    /// Reports the mistakes of a text.
    pub fn refuse(&mut self, code: Code, file: FileId, errors: &[InputError]) {
        for e in errors {
            self.found.push(located(code, file, e));
        }
    }
}

/// Whether a file with these bytes holds an array.
pub(in crate::commands) fn is_array(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x93NUMPY")
}

/// A mistake with its place.
pub(in crate::commands) fn located(code: Code, file: FileId, e: &InputError) -> Diagnostic {
    let message = match e.path.is_empty() {
        true => e.message.clone(),
        false => format!("`{}`: {}", e.path, e.message),
    };
    let d = match e.line {
        0 => Diagnostic::global(code, message),
        // Texts are at most 4 GiB.
        _ => Diagnostic::error(code, Span::new(file, e.bytes.start as u32, e.bytes.end as u32), message),
    };
    if e.help.is_empty() { d } else { d.with_help(&e.help) }
}
