//! Machine code for Linux's `perf`: a jitdump file, of which `perf inject --jit` makes object files with symbols, code
//! and line tables, so that `perf annotate` shows instructions between the lines of the source.
//!
//! The format is version 1 of `tools/perf/Documentation/jitdump-specification.txt` in Linux's sources. Times are those
//! of `CLOCK_MONOTONIC`, which `perf record -k mono` has.

use crate::jit::CompiledKernel;
use crate::listing::ListingLine;
use ptoc_diagnostics::Span;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The variable that names the directory of the file.
pub const VARIABLE: &str = "PTOC_JITDUMP";

/// `JiTD`, in the order of bytes of the machine.
const MAGIC: u32 = 0x4A69_5444;
const VERSION: u32 = 1;
/// Bytes of the file's header, and of what each record begins with.
const HEADER: u32 = 40;
const PREFIX: usize = 16;
/// Kinds of records.
const CODE_LOAD: u32 = 0;
const DEBUG_INFO: u32 = 2;

/// A place in the source, as line tables have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// The file.
    pub file: String,
    /// From 1 on.
    pub line: u32,
    /// From 1 on.
    pub column: u32,
}

/// The file of this process.
#[derive(Debug)]
struct Dump {
    file: File,
    path: PathBuf,
    /// How many functions are in it.
    functions: u64,
}

static DUMP: OnceLock<Option<Mutex<Option<Dump>>>> = OnceLock::new();

/// Whether the variable asks for the file: code is then compiled with [`crate::Options::text`], which has the places.
pub fn wanted() -> bool {
    env::var_os(VARIABLE).is_some_and(|directory| !directory.is_empty())
}

/// Adds the functions of a kernel. `place` says where a span is.
///
/// # Errors
/// In words, why the file cannot be written: once, and from then on nothing is written.
pub fn add(kernel: &CompiledKernel, name: &str, place: impl Fn(Span) -> SourcePlace) -> Result<(), String> {
    let Some(directory) = env::var_os(VARIABLE).map(PathBuf::from) else { return Ok(()) };
    let mut first = Ok(());
    let dump = DUMP.get_or_init(|| match Dump::create(&directory) {
        Ok(dump) => Some(Mutex::new(Some(dump))),
        Err(e) => {
            first = Err(format!("cannot write a jitdump file into `{}`: {e}", directory.display()));
            None
        }
    });
    first?;
    let Some(dump) = dump else { return Ok(()) };
    let mut dump = dump.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(open) = dump.as_mut() else { return Ok(()) };
    let added = open.add(kernel, name, place);
    let told = added.map_err(|e| format!("cannot write `{}`: {e}", open.path.display()));
    if told.is_err() {
        *dump = None;
    }
    told
}

impl Dump {
    fn create(directory: &Path) -> io::Result<Dump> {
        fs::create_dir_all(directory)?;
        let path = directory.join(format!("jit-{}.dump", std::process::id()));
        let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        let mut header = Vec::new();
        for word in [MAGIC, VERSION, HEADER, machine(), 0, std::process::id()] {
            header.extend(word.to_ne_bytes());
        }
        header.extend(now().to_ne_bytes());
        header.extend(0u64.to_ne_bytes());
        file.write_all(&header)?;
        announce(&file)?;
        Ok(Dump { file, path, functions: 0 })
    }

    fn add(&mut self, kernel: &CompiledKernel, name: &str, place: impl Fn(Span) -> SourcePlace) -> io::Result<()> {
        for (listing, code) in kernel.functions() {
            let begins = listing.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
            let symbol = if begins { listing.name.clone() } else { format!("{name}.{}", listing.name) };
            let at = code.as_ptr().addr() as u64;
            let mut records = places(at, &listing.lines, &place);
            records.extend(load(&symbol, at, code, self.functions));
            self.functions += 1;
            self.file.write_all(&records)?;
        }
        Ok(())
    }
}

/// A record behind its prefix.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (PREFIX + body.len()) as u32;
    [&kind.to_ne_bytes()[..], &size.to_ne_bytes(), &now().to_ne_bytes(), body].concat()
}

/// The record of a function.
fn load(symbol: &str, at: u64, code: &[u8], number: u64) -> Vec<u8> {
    let mut body = Vec::new();
    for word in [std::process::id(), thread()] {
        body.extend(word.to_ne_bytes());
    }
    for word in [at, at, code.len() as u64, number] {
        body.extend(word.to_ne_bytes());
    }
    body.extend(symbol.bytes().filter(|byte| *byte != 0).chain([0]));
    body.extend(code);
    record(CODE_LOAD, &body)
}

/// The line table of a function, which stands before it; nothing if no place is known.
fn places(at: u64, lines: &[ListingLine], place: impl Fn(Span) -> SourcePlace) -> Vec<u8> {
    let (mut entries, mut count, mut last) = (Vec::new(), 0u64, None);
    for line in lines.iter().filter(|line| !line.is_data()) {
        let Some(next) = line.spans.first().map(|span| place(*span)) else { continue };
        if last.as_ref() == Some(&next) {
            continue;
        }
        entries.extend((at + u64::from(line.offset)).to_ne_bytes());
        entries.extend(next.line.to_ne_bytes());
        entries.extend(next.column.to_ne_bytes());
        entries.extend(next.file.bytes().filter(|byte| *byte != 0).chain([0]));
        count += 1;
        last = Some(next);
    }
    match count {
        0 => Vec::new(),
        _ => record(DEBUG_INFO, &[&at.to_ne_bytes()[..], &count.to_ne_bytes(), &entries].concat()),
    }
}

/// The number of the machine in ELF files.
fn machine() -> u32 {
    match cfg!(target_arch = "aarch64") {
        true => 183,
        false => 62,
    }
}

#[cfg(target_os = "linux")]
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live record.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(target_os = "linux")]
fn thread() -> u32 {
    // SAFETY: it has no conditions.
    unsafe { libc::gettid() as u32 }
}

/// Maps a page of the file for execution, for as long as the process lives: `perf record` notes such mappings, and so
/// finds the file.
#[cfg(target_os = "linux")]
fn announce(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the kernel chooses the place, and nothing refers to it.
    let at = unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE).max(1) as usize;
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        libc::mmap(std::ptr::null_mut(), page, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(not(target_os = "linux"))]
fn now() -> u64 {
    0
}

#[cfg(not(target_os = "linux"))]
fn thread() -> u32 {
    0
}

#[cfg(not(target_os = "linux"))]
fn announce(_: &File) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "`perf` is a tool of Linux"))
}
