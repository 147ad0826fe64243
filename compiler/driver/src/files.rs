//! Files: sources, imported modules, arrays, and outputs that appear whole or not at all.

mod arrays;
mod outputs;
mod place;
mod temporary;

pub use arrays::{ArrayFile, read_array, stream};
pub use outputs::Outputs;

use crate::pto;
use crate::trees::Trees;
use ptoc_diagnostics::{Code, Diagnostic, FileId, SourceMap, codes};
use ptoc_names::{Loader, Tree};
use ptoc_syntax::ast::Name;
use ptoc_tensor::{DType, memory};
use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

/// The reason in the operating system's words, without the number.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::OutOfMemory => "it is larger than the memory that is free".into(),
        _ => words(&error.to_string()),
    }
}

/// The operating system's words without the number of the error.
fn words(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_lowercase()
}

/// What can be done about a path that cannot be read.
fn read_help(path: &Path, error: &io::Error, extension: &str) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        if let Some(near) = similar_file(path) {
            return format!("did you mean `{}`?", near.display());
        }
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return match directory.is_dir() {
            true => format!("give the path of a `{extension}` file, relative to the current directory"),
            false => format!("the directory `{}` does not exist either", directory.display()),
        };
    }
    if error.kind() == io::ErrorKind::IsADirectory {
        return format!("name a `{extension}` file in it");
    }
    if error.kind() == io::ErrorKind::OutOfMemory {
        return format!("give a smaller `{extension}` file");
    }
    "check that the file exists and that you may read it".into()
}

/// A file beside `path` whose name is nearly the same.
fn similar_file(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names: Vec<String> =
        fs::read_dir(directory).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok()).take(1000).collect();
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let near = ptoc_diagnostics::suggest(path.file_name()?.to_str()?, sorted)?;
    Some(path.with_file_name(near))
}

/// The most that is read of a text or a stream that is no regular file: its length is not known before its end, and a
/// device may have none.
pub const MOST_PIPED: u64 = 256 << 20;

/// Why something piped is refused that is longer than that.
pub fn too_long() -> String {
    format!("it does not end within {} MiB, which is the most that is read of a pipe or a device", MOST_PIPED >> 20)
}

/// Why a file cannot be read, as a message.
fn unreadable(what: &str, path: &Path, why: &str) -> String {
    format!("cannot read {what} `{}`: {why}", path.display())
}

/// The bytes of a file. `what` is what the file is to be, `extension` how such files end.
pub fn read_bytes(path: &Path, what: &str, extension: &str) -> Result<Vec<u8>, Diagnostic> {
    let refuse = |why: &str| Diagnostic::global(codes::CANNOT_READ, unreadable(what, path, why));
    let mut bytes = Vec::new();
    // `false`: there is no end where there should be one.
    let mut read = || -> io::Result<bool> {
        let mut file = File::open(path)?;
        let known = file.metadata()?;
        if !known.is_file() {
            let read = file.take(MOST_PIPED + 1).read_to_end(&mut bytes)?;
            return Ok(read as u64 <= MOST_PIPED);
        }
        if !usize::try_from(known.len()).is_ok_and(memory::holds) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        file.read_to_end(&mut bytes)?;
        Ok(true)
    };
    match read() {
        Ok(true) => Ok(bytes),
        Ok(false) => Err(refuse(&too_long()).with_help(format!("save it as a `{extension}` file, if it ends at all"))),
        Err(e) => Err(refuse(&reason(&e)).with_help(read_help(path, &e, extension))),
    }
}

/// A directory of the user's: what the environment's `variable` names, nothing if that is `off`; else `below` the
/// directory of `base`, which is `home` in the user's own where nobody says so.
pub(crate) fn user_directory(variable: &str, (base, home): (&str, &str), below: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match env::var_os(variable) {
        Some(off) if off.is_empty() || off == "off" => None,
        Some(directory) => Some(PathBuf::from(directory)),
        None => Some(absolute(base).or_else(|| Some(absolute("HOME")?.join(home)))?.join(below)),
    }
}

/// Where bytes are no UTF-8: the first that belongs to no character, its offset, and its line, from 1 on.
pub fn no_character(e: &FromUtf8Error) -> (u8, usize, usize) {
    let at = e.utf8_error().valid_up_to();
    let line = e.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1;
    (e.as_bytes()[at], at, line)
}

/// The text of a source file.
pub fn read_source(path: &Path) -> Result<String, Diagnostic> {
    let extension = if pto::is_pto(&path.display().to_string()) { ".pto" } else { ".tile" };
    let bytes = read_bytes(path, "source file", extension)?;
    if bytes.len() > SourceMap::MAX_LEN {
        let message = format!("source file `{}` has {} bytes; at most 4 GiB are read", path.display(), bytes.len());
        return Err(Diagnostic::global(codes::CANNOT_READ, message));
    }
    String::from_utf8(bytes).map_err(|e| {
        let (byte, at, line) = no_character(&e);
        let message = format!(
            "source file `{}` is not UTF-8: byte {byte:#04x} at offset {at} (line {line}) belongs to no character",
            path.display()
        );
        let help = match e.as_bytes() {
            [0x93, b'N', b'U', b'M', ..] => "this is an array; give it with `--in NAME=FILE.npy`",
            _ => "save the file as UTF-8",
        };
        Diagnostic::global(codes::NOT_UTF8, message).with_help(help)
    })
}

/// The text of a file that is imported, or could be: nobody has asked for this very file, so a pipe, which may never
/// end, is not read.
pub fn read_module(path: &Path) -> Result<String, Diagnostic> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let message = format!("cannot read source file `{}`: it is a pipe or a device", path.display());
            Err(Diagnostic::global(codes::CANNOT_READ, message))
        }
        _ => read_source(path),
    }
}

/// A file as it is, a directory's `.tile` and `.pto` files sorted, all levels.
pub fn collect(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), Diagnostic> {
    if !path.is_dir() {
        // Reading it says what is wrong with it, if anything is.
        found.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|e| {
        Diagnostic::global(codes::CANNOT_READ, format!("cannot read directory `{}`: {e}", path.display()))
            .with_help("check that you may read it")
    })?;
    let mut children: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    children.sort();
    for child in children {
        // A link to a directory may lead back here.
        let directory = fs::symlink_metadata(&child).is_ok_and(|m| m.is_dir());
        if directory {
            collect(&child, found)?;
        } else if child.extension().is_some_and(|x| x == "tile" || x == "pto") {
            found.push(child);
        }
    }
    Ok(())
}

/// NumPy's name for elements of a type, or for their bits.
pub fn numpy_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool_",
        DType::I8 => "int8",
        DType::U8 | DType::F8E4M3 | DType::F8E5M2 => "uint8",
        DType::I16 => "int16",
        DType::U16 | DType::BF16 => "uint16",
        DType::I32 => "int32",
        DType::U32 => "uint32",
        DType::I64 => "int64",
        DType::U64 => "uint64",
        DType::F16 => "float16",
        DType::F32 => "float32",
    }
}

/// The code that is spelled `text` in an error of `ptoc-tensor`, which knows no registry.
pub fn code(text: &str) -> Code {
    Code::find(text).map_or(codes::CANNOT_READ, |info| info.code)
}

/// What an editor has: texts that are open, by [`identity`], which count in place of what is on disk; and trees of
/// texts that were parsed before, as most stay the same from one edit to the next.
#[derive(Clone, Debug, Default)]
pub struct OpenTexts {
    /// The texts.
    pub texts: HashMap<PathBuf, String>,
    /// Trees; nothing keeps them for a command, which parses a text once.
    pub trees: Option<Trees>,
    /// Arguments of PTO text whose contents a launch gives: what is only stored to keeps them where nothing is stored.
    pub given: Vec<String>,
}

/// Finds imported modules: `std::..` in the standard library, `a::b` in `a/b.tile` beside the importing file.
pub struct FileLoader<'s> {
    sources: &'s mut SourceMap,
    directories: HashMap<FileId, PathBuf>,
    /// What was read, by its place on disk or in the library.
    loaded: HashMap<PathBuf, (FileId, String)>,
    /// The files that were read, in that order: those that no output may overwrite.
    paths: Vec<PathBuf>,
    open: &'s OpenTexts,
}

impl<'s> FileLoader<'s> {
    /// A loader for what `root`, at `path`, imports.
    pub fn new(sources: &'s mut SourceMap, root: FileId, path: &Path, open: &'s OpenTexts) -> FileLoader<'s> {
        let mut loader =
            FileLoader { sources, directories: HashMap::new(), loaded: HashMap::new(), paths: Vec::new(), open };
        loader.remember(root, path);
        let text = loader.sources.text(root).to_owned();
        loader.loaded.insert(identity(path), (root, text));
        loader
    }

    fn remember(&mut self, file: FileId, path: &Path) {
        self.directories.insert(file, path.parent().unwrap_or(Path::new("")).to_owned());
        self.paths.push(path.to_owned());
    }

    /// The root and the files that it imports, directly or not.
    pub fn into_paths(self) -> Vec<PathBuf> {
        self.paths
    }
}

/// One name for one file, however it is reached.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

impl Loader for FileLoader<'_> {
    fn load(&mut self, path: &[Name], from: FileId) -> Result<(FileId, String), String> {
        if let Some(("std", rest)) = path.split_first().map(|(first, rest)| (first.as_str(), rest)) {
            let rest: Vec<&str> = rest.iter().map(|n| n.as_str()).collect();
            let Some((name, text)) = ptoc_stdlib::module(&rest) else {
                let known: Vec<String> =
                    ptoc_stdlib::MODULES.iter().map(|(at, ..)| format!("`std::{}`", at.join("::"))).collect();
                return Err(format!("the standard library has {}", known.join(", ")));
            };
            let sources = &mut *self.sources;
            let entry = self.loaded.entry(PathBuf::from(name));
            return Ok(entry.or_insert_with(|| (sources.add(name, text), text.to_owned())).clone());
        }
        let Some(directory) = self.directories.get(&from) else {
            return Err("modules of the standard library import only each other".into());
        };
        let mut file = directory.clone();
        file.extend(path.iter().map(|n| n.as_str()));
        file.set_extension("tile");
        if let Some(found) = self.loaded.get(&identity(&file)) {
            return Ok(found.clone());
        }
        let text = match self.open.texts.get(&identity(&file)) {
            Some(text) => text.clone(),
            // What is not there is told without a search for what may have been meant: there may be many.
            None => match fs::metadata(&file) {
                Err(e) => return Err(unreadable("source file", &file, &reason(&e))),
                Ok(_) => read_module(&file).map_err(|d| d.message)?,
            },
        };
        let id = self.sources.add(file.display().to_string(), text.clone());
        self.remember(id, &file);
        self.loaded.insert(identity(&file), (id, text.clone()));
        Ok((id, text))
    }

    fn tree(&mut self, file: FileId, text: &str) -> Arc<Tree> {
        let is_pto = pto::is_pto(self.sources.name(file));
        if is_pto && !self.open.given.is_empty() {
            return Arc::new(pto::tree_given(file, text, &self.open.given));
        }
        let parse = if is_pto { pto::tree } else { Tree::new };
        match &self.open.trees {
            Some(trees) => trees.tree(file, text, parse),
            None => Arc::new(parse(file, text)),
        }
    }
}
