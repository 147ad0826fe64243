//! The file of stored results: one line of JSON for each, in a directory of the user's data.

use super::{TuningKey, TuningResult};
use crate::files::{Outputs, reason, user_directory};
use ptoc_diagnostics::{Diagnostic, codes, plural};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The variable that names the directory; `off` is for none.
pub const VARIABLE: &str = "PTOC_TUNING";
/// The file in it.
const FILE: &str = "tuning.jsonl";
/// What keeps two processes from writing at the same time.
const LOCK: &str = "tuning.lock";
/// The form of lines.
const VERSION: u64 = 1;

/// Where results are stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TuningStore {
    directory: PathBuf,
}

/// What the file has.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stored {
    /// Results.
    pub results: Vec<TuningResult>,
    /// Lines that are none: of a file that was damaged, or of another version of ptoc. They stay as they are.
    pub broken: Vec<String>,
    /// Why the first of these is none.
    why: Option<StoreError>,
}

impl Stored {
    /// What is said of lines that are no results, while the others are used.
    pub fn warning(&self) -> Option<Diagnostic> {
        let d = self.why.as_ref()?.warning();
        Some(match self.broken.len() {
            1 => d,
            n => d.with_note(format!("so it is with {} more", plural(n - 1, "line"))),
        })
    }
}

/// What keeps results from being read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreError {
    message: String,
    help: String,
}

impl StoreError {
    /// The error.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::global(codes::TUNING_STORE, self.message.clone()).with_help(self.help.clone())
    }

    /// The same, where a launch goes on without results.
    pub fn warning(&self) -> Diagnostic {
        let d = Diagnostic::global(codes::TUNING_NOT_USED, self.message.clone()).with_help(self.help.clone());
        Diagnostic { severity: ptoc_diagnostics::Severity::Warning, ..d }
    }

    fn of(path: &Path, what: &str, error: &std::io::Error) -> StoreError {
        StoreError {
            message: format!("cannot {what} `{}`: {}", path.display(), reason(error)),
            help: format!("name another directory by the variable `{VARIABLE}`, or `{VARIABLE}=off` for none"),
        }
    }
}

/// What became of results that were added.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Merged {
    /// New ones.
    pub added: usize,
    /// Those that took the place of older ones.
    pub replaced: usize,
    /// Those that were not newer than what was there.
    pub kept: usize,
}

impl TuningStore {
    /// The directory of the variable `PTOC_TUNING`, or `ptoc` among the user's data; `None` if it is `off`, or nobody
    /// says where such data are.
    pub fn of_environment() -> Option<TuningStore> {
        let directory = user_directory(VARIABLE, ("XDG_DATA_HOME", ".local/share"), "ptoc")?;
        Some(TuningStore { directory })
    }

    /// A store in a directory, which need not be there.
    pub fn new(directory: impl Into<PathBuf>) -> TuningStore {
        TuningStore { directory: directory.into() }
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Whether anything was ever stored.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// All lines; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<Stored, StoreError> {
        let path = self.path();
        match fs::read(&path) {
            Ok(bytes) => Ok(parsed(&path, &bytes, "other lines are used; remove it, or `ptoc tune --clear` drops all")),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Stored::default()),
            Err(e) => Err(StoreError::of(&path, "read", &e)),
        }
    }

    /// All results of a file that was exported.
    ///
    /// # Errors
    /// The file cannot be read, or a line is none of ptoc's.
    pub fn read_export(path: &Path) -> Result<Vec<TuningResult>, StoreError> {
        let help = "name a file that `ptoc tune --export` has written";
        let bytes =
            fs::read(path).map_err(|e| StoreError { help: help.to_owned(), ..StoreError::of(path, "read", &e) })?;
        let Stored { results, why, .. } = parsed(path, &bytes, help);
        why.map_or(Ok(results), Err)
    }

    /// Adds results: of two for the same key the newer one stays.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn add(&self, results: Vec<TuningResult>) -> Result<Merged, StoreError> {
        self.change(|all| {
            let mut merged = Merged::default();
            for result in results {
                match all.get(&result.key) {
                    Some(old) if old.stored >= result.stored => merged.kept += 1,
                    Some(_) => {
                        merged.replaced += 1;
                        all.insert(result.key.clone(), result);
                    }
                    None => {
                        merged.added += 1;
                        all.insert(result.key.clone(), result);
                    }
                }
            }
            merged
        })
    }

    /// Puts a result in the place of what is there for its key, also of one that is dated ahead of the clock.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn replace(&self, result: TuningResult) -> Result<(), StoreError> {
        self.change(|all| {
            all.insert(result.key.clone(), result);
        })
    }

    /// Drops results, and returns how many.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn drop_if(&self, dropped: impl Fn(&TuningResult) -> bool) -> Result<usize, StoreError> {
        if !self.exists() {
            return Ok(0);
        }
        self.change(|all| {
            let before = all.len();
            all.retain(|_, result| !dropped(result));
            before - all.len()
        })
    }

    /// Drops everything, and returns how many results and how many other lines that was.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn clear(&self) -> Result<(usize, usize), StoreError> {
        if !self.exists() {
            return Ok((0, 0));
        }
        self.rewrite(|stored| {
            let Stored { results, broken, .. } = std::mem::take(stored);
            (results.len(), broken.len())
        })
    }

    /// Rewrites the results of the file by their keys.
    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<TuningKey, TuningResult>) -> T) -> Result<T, StoreError> {
        self.rewrite(|stored| {
            let results = std::mem::take(&mut stored.results);
            let mut all: BTreeMap<TuningKey, TuningResult> =
                results.into_iter().map(|result| (result.key.clone(), result)).collect();
            let changed = change(&mut all);
            stored.results = all.into_values().collect();
            changed
        })
    }

    /// Rewrites the file while no other process does. It appears whole or not at all.
    fn rewrite<T>(&self, change: impl FnOnce(&mut Stored) -> T) -> Result<T, StoreError> {
        fs::create_dir_all(&self.directory).map_err(|e| StoreError::of(&self.directory, "make", &e))?;
        let at = self.directory.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&at);
        let lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(|e| StoreError::of(&at, "write", &e))?;
        let mut all = self.read()?;
        let changed = change(&mut all);
        let told = |d: Diagnostic| StoreError {
            message: d.message,
            help: format!("name another directory by the variable `{VARIABLE}`, or `{VARIABLE}=off` for none"),
        };
        let broken: String = all.broken.iter().map(|line| format!("{line}\n")).collect();
        Outputs::replace(&self.path(), (lines(all.results.iter()) + &broken).as_bytes()).map_err(told)?;
        drop(lock);
        Ok(changed)
    }
}

/// Results as lines.
pub fn lines<'r>(results: impl Iterator<Item = &'r TuningResult>) -> String {
    let line = |result: &TuningResult| {
        let mut value = serde_json::to_value(result).unwrap_or_default();
        value["version"] = VERSION.into();
        format!("{value}\n")
    };
    results.map(line).collect()
}

/// The lines of a file.
fn parsed(path: &Path, bytes: &[u8], help: &str) -> Stored {
    let mut stored = Stored::default();
    let text = String::from_utf8_lossy(bytes);
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match result(line) {
            Ok(result) => stored.results.push(result),
            Err(why) => {
                let message = format!("line {number} of `{}` is no result of tuning: {why}", path.display());
                stored.why.get_or_insert_with(|| StoreError { message, help: help.to_owned() });
                stored.broken.push(line.to_owned());
            }
        }
    }
    stored
}

fn result(line: &str) -> Result<TuningResult, String> {
    let value: Value = serde_json::from_str(line).map_err(|e| format!("it is no JSON ({e})"))?;
    match value["version"].as_u64() {
        Some(VERSION) => serde_json::from_value(value).map_err(|e| e.to_string()),
        Some(other) => Err(format!("it has version {other}, and this ptoc reads version {VERSION}")),
        None => Err("it has no `version`".into()),
    }
}
