//! Archives and shared libraries: an object with the parts of the runtime that it needs, and no more.

use super::RUNTIME;
use ptoc_archive::{names, needed, written};
use ptoc_diagnostics::{Diagnostic, codes};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The variable that says where the library of routines is.
pub const RUNTIME_VARIABLE: &str = "PTOC_RUNTIME";

/// An archive of an object, and of what it needs of the runtime.
///
/// # Errors
/// The library of routines is needed, and is not found or lacks something.
pub fn archive(object: &[u8], name: &str, routines: &[String]) -> Result<Vec<u8>, Box<Diagnostic>> {
    let mut members = vec![(name.to_owned(), object.to_vec())];
    if !routines.is_empty() {
        let Library { path, bytes } = runtime()?;
        let wanted = names(object).map(|names| names.undefined);
        let parts = wanted.and_then(|wanted| needed(wanted, &bytes)).map_err(|e| broken(&path, &e.to_string()))?;
        let undefined = parts.missing.iter().find(|name| routines.contains(name));
        if let Some(missing) = undefined {
            return Err(broken(&path, &format!("it has no `{missing}`: it is of another version")));
        }
        members.extend(parts.members);
    }
    written(&members).map_err(|e| tool(format!("the archive cannot be written: {e}")).into())
}

/// A shared library of an object, and of what it needs of the runtime: `cc` links it.
///
/// # Errors
/// There is no linker, or it fails; or as for [`archive`].
pub fn shared(object: &[u8], name: &str, routines: &[String]) -> Result<Vec<u8>, Box<Diagnostic>> {
    let archive = archive(object, "kernel.o", routines)?;
    let failed = |e: std::io::Error| Box::new(tool(format!("the shared library cannot be linked: {e}")));
    let folder = tempfile::tempdir().map_err(failed)?;
    let place = |name: &str| folder.path().join(name);
    fs::write(place("kernel.o"), object).map_err(failed)?;
    fs::write(place("rest.a"), archive).map_err(failed)?;
    let cc = std::env::var_os("CC").filter(|cc| !cc.is_empty()).unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&cc);
    command.current_dir(folder.path()).args(["-shared", "-o", "kernel.so", "kernel.o", "rest.a"]);
    match cfg!(target_os = "macos") {
        true => command.arg(format!("-Wl,-install_name,@rpath/{name}")),
        // What the runtime exports stays inside.
        false => command.args(["-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-Wl,-z,defs"]).arg(soname(name)),
    };
    command.args(["-lm", "-lpthread"]);
    let words = |cc: &OsString| cc.to_string_lossy().into_owned();
    let output = command.output().map_err(|e| {
        let d =
            tool(format!("a shared library needs the linker of a C compiler, and `{}` does not run: {e}", words(&cc)));
        Box::new(d.with_help("install a C compiler, or name one in the variable CC").with_help("`.a` needs no linker"))
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Box::new(tool(format!("`{}` does not link the shared library", words(&cc))).with_note(said)));
    }
    fs::read(place("kernel.so")).map_err(failed)
}

fn soname(name: &str) -> OsString {
    let mut arg = OsString::from("-Wl,-soname,");
    arg.push(name);
    arg
}

/// A library of routines, and where it is.
struct Library {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// The library that this program carries, packed, if it carries one.
static CARRIED: OnceLock<&'static [u8]> = OnceLock::new();

/// The program carries a library of routines of its own version, [packed](ptoc_archive::packed): an installed one has
/// no files beside it.
pub fn carry(library: &'static [u8]) {
    let _ = CARRIED.set(library);
}

/// The library of routines: what the environment names, what this program carries, or what is beside it.
fn runtime() -> Result<Library, Box<Diagnostic>> {
    let named = std::env::var_os(RUNTIME_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let (None, Some(carried)) = (&named, CARRIED.get()) {
        let bytes = ptoc_archive::unpacked(carried).map_err(|e| broken(Path::new(RUNTIME), &e.to_string()))?;
        return Ok(Library { path: RUNTIME.into(), bytes });
    }
    let path = named.map_or_else(beside, Ok)?;
    Ok(Library { bytes: read(&path)?, path })
}

/// The library of routines beside this program, where installations and Cargo put it.
fn beside() -> Result<PathBuf, Box<Diagnostic>> {
    let program = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("."));
    let installed = [folder.join(RUNTIME), folder.join("../lib/ptoc").join(RUNTIME)];
    // Cargo keeps the libraries of dependencies under names with a hash.
    let built = [folder.join("deps"), folder.to_owned()].into_iter().flat_map(|folder| hashed(&folder));
    let newest = built.max_by_key(|(time, _)| *time).map(|(_, path)| path);
    if let Some(found) = installed.into_iter().find(|path| path.is_file()).or(newest) {
        return Ok(found);
    }
    let message = format!("the kernel calls routines of the runtime, and `{RUNTIME}` is not found");
    let d = tool(message).with_note(format!("it is looked for in `{}`, and in `../lib/ptoc`", folder.display()));
    let d = d.with_help(format!(
        "`cargo build --release -p ptoc-native` makes `target/release/{RUNTIME}`: put it there, or name it in the \
         variable {RUNTIME_VARIABLE}"
    ));
    Err(Box::new(d.with_help("an object (`-o X.o`) can be built without it")))
}

/// The libraries of routines in a folder of Cargo's.
fn hashed(folder: &Path) -> Vec<(SystemTime, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is = |name: &str| name.starts_with("libptoc_native-") && name.ends_with(".a");
    let own = entries.flatten().filter(|e| e.file_name().to_str().is_some_and(is));
    own.filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path()))).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Box<Diagnostic>> {
    fs::read(path).map_err(|e| broken(path, &crate::files::reason(&e)))
}

fn broken(path: &Path, why: &str) -> Box<Diagnostic> {
    Box::new(tool(format!("the library of routines `{}` cannot be used: {why}", path.display())))
}

fn tool(message: String) -> Diagnostic {
    Diagnostic::global(codes::BUILD_TOOLS, message)
}
