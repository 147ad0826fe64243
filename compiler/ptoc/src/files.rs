//! Files: sources, imported modules, arrays, and outputs that appear whole or not at all.

use crate::trees::Trees;
use ptoc_analysis::{Loader, Tree};
use ptoc_diagnostics::{Code, Diagnostic, FileId, SourceMap, codes};
use ptoc_syntax::ast::Name;
use ptoc_tensor::npy::{self, NpyError};
use ptoc_tensor::{DType, Tensor};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// The reason in the operating system's words, without the number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
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

/// The bytes of a file. `what` is what the file is to be, `extension` how such files end.
pub fn read_bytes(path: &Path, what: &str, extension: &str) -> Result<Vec<u8>, Diagnostic> {
    fs::read(path).map_err(|e| {
        Diagnostic::global(codes::CANNOT_READ, format!("cannot read {what} `{}`: {}", path.display(), reason(&e)))
            .with_help(read_help(path, &e, extension))
    })
}

/// The text of a source file.
pub fn read_source(path: &Path) -> Result<String, Diagnostic> {
    let bytes = read_bytes(path, "source file", ".tile")?;
    if bytes.len() > SourceMap::MAX_LEN {
        let message = format!("source file `{}` has {} bytes; at most 4 GiB are read", path.display(), bytes.len());
        return Err(Diagnostic::global(codes::CANNOT_READ, message));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = e.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1;
        let byte = e.as_bytes()[at];
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

/// The text of a file that is imported, or could be: nobody has asked for this very file, so a pipe, which may never end, is not read.
pub fn read_module(path: &Path) -> Result<String, Diagnostic> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let message = format!("cannot read source file `{}`: it is a pipe or a device", path.display());
            Err(Diagnostic::global(codes::CANNOT_READ, message))
        }
        _ => read_source(path),
    }
}

/// A file as it is, a directory's `.tile` files sorted, all levels.
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
        } else if child.extension().is_some_and(|x| x == "tile") {
            found.push(child);
        }
    }
    Ok(())
}

/// Reads an array, of which elements of one type are wanted.
pub fn read_array(path: &Path, wanted: Option<DType>) -> Result<Tensor, Diagnostic> {
    let bytes = read_bytes(path, "array", ".npy")?;
    npy::read(&bytes, None).map_err(|mut e| {
        // Who saves it anew should save what is taken.
        if let (NpyError::UnsupportedType { remedy, .. }, Some(wanted)) = (&mut e, wanted) {
            *remedy = remedy.replace("np.float32", &format!("np.{}", numpy_name(wanted)));
        }
        let d = Diagnostic::global(code(e.code()), format!("array `{}`: {e}", path.display()));
        match &e {
            NpyError::NotNpy { .. } => d.with_help("write the array with `numpy.save`"),
            // The message says what to save instead.
            NpyError::UnsupportedType { .. } => d,
            NpyError::TruncatedHeader { .. } | NpyError::TruncatedData { .. } => {
                d.with_help("the file was cut off, or its header is wrong: write it again")
            }
            NpyError::TrailingData { .. } => {
                d.with_help("save each array to a file of its own; a file that is open for appending takes several")
            }
            NpyError::Version { .. } | NpyError::BadHeader { .. } => {
                d.with_help("write the file again: NumPy's `save` makes such headers as are read here")
            }
            NpyError::TooLarge { .. } | NpyError::Tensor(_) => d.with_help("give a smaller array"),
        }
    })
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
pub(crate) fn code(text: &str) -> Code {
    Code::find(text).map_or(codes::CANNOT_READ, |info| info.code)
}

/// What an editor has: texts that are open, by [`identity`], which count in place of what is on disk; and trees of texts that were
/// parsed before, as most stay the same from one edit to the next.
#[derive(Clone, Debug, Default)]
pub struct OpenTexts {
    /// The texts.
    pub texts: HashMap<PathBuf, String>,
    /// Trees; nothing keeps them for a command, which parses a text once.
    pub trees: Option<Trees>,
}

/// Finds imported modules: `std::..` in the standard library, `a::b` in `a/b.tile` beside the importing file.
pub struct FileLoader<'s> {
    sources: &'s mut SourceMap,
    directories: HashMap<FileId, PathBuf>,
    /// What was read, by its place on disk or in the library.
    loaded: HashMap<PathBuf, (FileId, String)>,
    open: &'s OpenTexts,
}

impl<'s> FileLoader<'s> {
    /// A loader for what `root`, at `path`, imports.
    pub fn new(sources: &'s mut SourceMap, root: FileId, path: &Path, open: &'s OpenTexts) -> FileLoader<'s> {
        let mut loader = FileLoader { sources, directories: HashMap::new(), loaded: HashMap::new(), open };
        loader.remember(root, path);
        let text = loader.sources.text(root).to_owned();
        loader.loaded.insert(identity(path), (root, text));
        loader
    }

    fn remember(&mut self, file: FileId, path: &Path) {
        self.directories.insert(file, path.parent().unwrap_or(Path::new("")).to_owned());
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
            None => read_module(&file).map_err(|d| d.message)?,
        };
        let id = self.sources.add(file.display().to_string(), text.clone());
        self.remember(id, &file);
        self.loaded.insert(identity(&file), (id, text.clone()));
        Ok((id, text))
    }

    fn tree(&mut self, file: FileId, text: &str) -> Arc<Tree> {
        match &self.open.trees {
            Some(trees) => trees.tree(file, text),
            None => Arc::new(Tree::new(file, text)),
        }
    }
}

/// A file that will be written: its place is taken when it is planned, its contents appear when all are complete.
#[derive(Debug)]
struct Planned {
    /// As the user wrote it.
    shown: PathBuf,
    kind: Destination,
}

#[derive(Debug)]
enum Destination {
    /// Written beside the destination, then moved there.
    Replace { to: PathBuf, temporary: NamedTempFile },
    /// A device or a pipe: written as it is.
    Direct(File),
}

/// Outputs that appear together.
#[derive(Debug, Default)]
pub struct Outputs {
    planned: Vec<Planned>,
}

impl Outputs {
    /// No outputs.
    pub fn new() -> Outputs {
        Outputs::default()
    }

    /// Takes the place for a file and says whether it can be written; returns its number.
    pub fn plan(&mut self, path: &Path) -> Result<usize, Diagnostic> {
        let refuse = |why: String, help: String| {
            Diagnostic::global(codes::CANNOT_WRITE, format!("cannot write `{}`: {why}", path.display())).with_help(help)
        };
        let known = fs::metadata(path).ok();
        if known.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(refuse("it is a directory".into(), "name a file in it".into()));
        }
        let known_file = known.as_ref().is_some_and(fs::Metadata::is_file);
        let kind = if known.is_some() && !known_file {
            let file = File::options().write(true).open(path);
            Destination::Direct(file.map_err(|e| refuse(reason(&e), "choose another file".into()))?)
        } else {
            // Through a link to the file itself, so that the link stays.
            let to = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let directory = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if to.file_name().is_none() {
                return Err(refuse("it names no file".into(), "name a file".into()));
            }
            let other = self.planned.iter().find(|p| matches!(&p.kind, Destination::Replace { to: t, .. } if *t == to));
            if let Some(other) = other {
                let why = format!("it is written twice (as `{}`)", other.shown.display());
                return Err(refuse(why, "give each output a file of its own".into()));
            }
            // An existing file that may not be written is not replaced either, though its directory would allow it.
            if known_file {
                let opened = File::options().write(true).open(&to);
                opened.map_err(|e| refuse(reason(&e), "choose another file, or make it writable".into()))?;
            }
            let temporary = temporary(directory).map_err(|e| match directory.is_dir() {
                false => {
                    let why = format!("there is no directory `{}`", directory.display());
                    refuse(why, format!("make it first: `mkdir -p {}`", directory.display()))
                }
                true => refuse(
                    format!("in directory `{}`: {}", directory.display(), reason(&e)),
                    "choose a directory that you may write to".into(),
                ),
            })?;
            Destination::Replace { to, temporary }
        };
        self.planned.push(Planned { shown: path.to_owned(), kind });
        Ok(self.planned.len() - 1)
    }

    /// Writes the contents of file number `n`; it does not appear yet.
    pub fn write(&mut self, n: usize, bytes: &[u8]) -> Result<(), Diagnostic> {
        let planned = &mut self.planned[n];
        let file: &mut dyn Write = match &mut planned.kind {
            Destination::Replace { temporary, .. } => temporary,
            Destination::Direct(file) => file,
        };
        file.write_all(bytes).and_then(|()| file.flush()).map_err(|e| failed(&planned.shown, &e))
    }

    /// Moves all files to their places.
    pub fn commit(self) -> Result<(), Diagnostic> {
        for planned in self.planned {
            if let Destination::Replace { to, temporary } = planned.kind {
                temporary.persist(&to).map_err(|e| failed(&planned.shown, &e.error))?;
            }
        }
        Ok(())
    }
}

fn failed(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::global(codes::CANNOT_WRITE, format!("cannot write `{}`: {}", path.display(), reason(error)))
        .with_help("nothing appears under this name; make room or choose another directory")
}

/// A temporary file with the permissions that a new file gets.
fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ptoc-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Less what the umask takes away.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}
