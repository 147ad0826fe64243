//! What keeps two processes from one table.

use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::files::reason;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// A file beside the table, with the number of the process, which the operating system locks: where a process is killed
/// the next one may go on. It is no lock of the table itself, which is replaced when rows are dropped.
pub struct Lock {
    path: PathBuf,
    /// It is locked for as long as it is open.
    _file: File,
}

impl Lock {
    /// The lock of a table, which need not be there.
    ///
    /// # Errors
    /// Another process has it, or it cannot be made.
    pub fn of(table: &Path) -> Result<Lock, Box<Diagnostic>> {
        // A link is another name of the same table.
        let target = fs::canonicalize(table).unwrap_or_else(|_| table.to_owned());
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = target.with_file_name(format!(".{name}.lock"));
        loop {
            let opened = File::options().create(true).truncate(false).read(true).write(true).open(&path);
            let mut file = opened.map_err(|e| cannot(table, &reason(&e)))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(held(table, &mut file)),
                // A file system that has no locks.
                Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(e)) => return Err(cannot(table, &reason(&e))),
            }
            // Who had it has removed it since it was opened: then it is no lock of anything.
            if !is_there(&file, &path) {
                continue;
            }
            let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            written.map_err(|e| cannot(table, &reason(&e)))?;
            return Ok(Lock { path, _file: file });
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // What stays behind is in nobody's way.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a path is still that of an open file.
#[cfg(unix)]
fn is_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().is_ok_and(|own| fs::metadata(path).is_ok_and(|there| same(&own, &there)))
}

/// See there: where open files cannot be removed.
#[cfg(not(unix))]
fn is_there(_: &File, _: &Path) -> bool {
    true
}

fn held(table: &Path, file: &mut File) -> Box<Diagnostic> {
    let mut holder = String::new();
    let number = file.read_to_string(&mut holder).ok().and_then(|_| holder.trim().parse::<u32>().ok());
    let process = number.map_or_else(|| "another process".to_owned(), |number| format!("process {number}"));
    let message = format!("cannot write `{}`: {process} measures into it", table.display());
    let d = Diagnostic::global(codes::CANNOT_WRITE, message);
    Box::new(d.with_help("wait for its end, then go on with `--resume`; or name another file"))
}

fn cannot(table: &Path, why: &str) -> Box<Diagnostic> {
    let message = format!("cannot write `{}`: no lock beside it: {why}", table.display());
    Box::new(Diagnostic::global(codes::CANNOT_WRITE, message).with_help("choose another file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let table = directory.path().join("t.csv");
        let first = Lock::of(&table).unwrap();
        let second = Lock::of(&table).err().unwrap();
        assert!(second.message.contains(&format!("process {} measures", std::process::id())), "{}", second.message);
        assert!(Lock::of(&directory.path().join("u.csv")).is_ok());
        drop(first);
        assert!(Lock::of(&table).is_ok());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        // What a process that was killed has left is in nobody's way.
        fs::write(directory.path().join(".t.csv.lock"), "1").unwrap();
        assert!(Lock::of(&table).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_the_same_table() {
        let directory = tempfile::tempdir().unwrap();
        let (table, link) = (directory.path().join("t.csv"), directory.path().join("l.csv"));
        fs::write(&table, "").unwrap();
        std::os::unix::fs::symlink(&table, &link).unwrap();
        let _first = Lock::of(&link).unwrap();
        assert!(Lock::of(&table).is_err());
    }
}
