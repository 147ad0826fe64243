//! `ptoc check --watch`: checks again whenever a file changes that was read.

use super::once;
use crate::args::{CheckArgs, MessageFormat};
use crate::io::Io;
use crate::progress::Progress;
use ptoc_diagnostics::plural;
use ptoc_driver::{files, project};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// How often it is looked: less than a person notices, and little work for a few files.
const PAUSE: Duration = Duration::from_millis(200);

/// What a file is known by: when it was written, and how long it is.
type Stamp = Option<(SystemTime, u64)>;

/// Runs until a signal ends it, or nobody reads what is found any more.
pub fn watch(args: &CheckArgs, io: &mut Io<'_>) -> u8 {
    loop {
        // What changes while it is checked is seen then.
        let begun = SystemTime::now();
        io.progress = io.progress.take().map(|_| Progress::new(Instant::now()));
        let (status, read) = once(args, io);
        let read = if status == crate::WRONG_CALL { return status } else { read };
        let watched = known(args, read.clone());
        let stamps: Vec<Stamp> = watched.iter().map(|path| stamp(path)).collect();
        if args.compile.message_format == MessageFormat::Human {
            io.print(&format!("watching {}; Ctrl-C ends\n\n", plural(stamps.iter().flatten().count(), "file")));
        }
        io.flush();
        if io.is_closed() {
            return status;
        }
        let late = |s: &Stamp| s.is_some_and(|(written, _)| written >= begun && written <= SystemTime::now());
        if stamps.iter().any(late) {
            continue;
        }
        loop {
            sleep(PAUSE);
            let now = known(args, read.clone());
            if now != watched || now.iter().map(|path| stamp(path)).ne(stamps.iter().copied()) {
                break;
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The files that were read, those that the call names now, as there may be more in a folder, and where projects of
/// these are or would be.
fn known(args: &CheckArgs, mut read: Vec<PathBuf>) -> Vec<PathBuf> {
    for path in &args.files {
        // What cannot be read was told.
        let _ = files::collect(path, &mut read);
    }
    let folders: BTreeSet<&Path> = read.iter().map(|path| path.parent().unwrap_or(path)).collect();
    let projects: BTreeSet<PathBuf> = folders.into_iter().flat_map(|f| project::places(&f.join("_"))).collect();
    read.extend(projects);
    read.sort();
    read.dedup();
    read
}
