//! Which file a path leads to, however it is spelled: links are followed, also those that lead nowhere yet.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed one after another; as many as Linux follows.
const LINKS: usize = 40;

/// What two paths to one file have in common.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Identity {
    /// Device and number of a file that is there: hard links to it have the same.
    #[cfg(unix)]
    Inode(u64, u64),
    /// Where a file would be: the directory as the system spells it, and the name.
    Path(PathBuf),
}

/// Where a path leads.
#[derive(Debug)]
pub(super) struct PathTarget {
    /// The path without links, as far as there are directories.
    pub to: PathBuf,
    pub identity: Identity,
    /// What is there, if anything is.
    pub known: Option<Metadata>,
}

impl PathTarget {
    /// Follows a path. An error if its links lead in a circle.
    pub fn of(path: &Path) -> io::Result<PathTarget> {
        if let Ok(known) = fs::metadata(path) {
            // Links to open files (`/dev/stdout`) may have lost the name of what they lead to.
            let real = fs::canonicalize(path).ok();
            let same = |to: &PathBuf| fs::metadata(to).is_ok_and(|m| identity(to, &m) == identity(path, &known));
            let to = real.filter(same).unwrap_or_else(|| path.to_owned());
            return Ok(PathTarget { identity: identity(&to, &known), to, known: Some(known) });
        }
        let mut to = path.to_owned();
        for _ in 0..LINKS {
            let Ok(target) = fs::read_link(&to) else {
                let directory = directory(&to);
                if let (Ok(directory), Some(name)) = (fs::canonicalize(directory), to.file_name()) {
                    to = directory.join(name);
                }
                return Ok(PathTarget { identity: Identity::Path(to.clone()), to, known: None });
            };
            to = directory(&to).join(target);
        }
        Err(io::Error::other("its links lead in a circle"))
    }

    /// Whether it is a file of bytes, or one could be made there, and no device, pipe or directory.
    pub fn is_plain(&self) -> bool {
        self.known.as_ref().is_none_or(Metadata::is_file)
    }
}

/// The directory of a path.
pub(super) fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(unix)]
fn identity(_: &Path, known: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity::Inode(known.dev(), known.ino())
}

#[cfg(not(unix))]
fn identity(path: &Path, _: &Metadata) -> Identity {
    Identity::Path(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}
