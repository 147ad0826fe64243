//! Files that are being written, which have no name, or one that goes away however the process ends.
//!
//! Linux makes files without a name (`O_TMPFILE`), which the kernel drops with the process; a complete one is linked to
//! its place. A link takes the place of no file, so where there is one the new file has a temporary name between two
//! system calls. That name, and those of files on file systems that make only named ones, are removed when a signal
//! ends the process.

use crate::signals;
use std::fs::{File, Metadata};
use std::io;
#[cfg(target_os = "linux")]
use std::io::ErrorKind::{CrossesDevices, PermissionDenied, Unsupported};
#[cfg(target_os = "linux")]
use std::io::Seek as _;
use std::path::Path;
use tempfile::NamedTempFile;

/// A file that is being written.
#[derive(Debug)]
pub(super) enum Temporary {
    /// It has no name.
    #[cfg(target_os = "linux")]
    Unnamed(File),
    /// It has a name beside its destination.
    Named(Named),
}

/// What temporary names begin with.
const PREFIX: &str = ".ptoc-";

impl Temporary {
    /// A file in a directory, with the permissions of the one that it will replace, or those of a new file.
    pub fn new(directory: &Path, replaced: Option<&Metadata>) -> io::Result<Temporary> {
        signals::of_long_files_is_an_error();
        #[cfg(target_os = "linux")]
        if let Some(file) = unnamed(directory) {
            like(&file, replaced);
            return Ok(Temporary::Unnamed(file));
        }
        let named = Named::new(directory)?;
        like(named.0.as_file(), replaced);
        Ok(Temporary::Named(named))
    }

    /// To be written to.
    pub fn file(&mut self) -> &mut File {
        match self {
            #[cfg(target_os = "linux")]
            Temporary::Unnamed(file) => file,
            Temporary::Named(named) => named.0.as_file_mut(),
        }
    }

    /// Moves the file to its place, in one step: who looks there finds the old file or the new one.
    pub fn persist(self, to: &Path) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Temporary::Unnamed(mut file) => match link(&file, to) {
                // Some file systems make such files and give them no name.
                Err(e) if matches!(e.kind(), PermissionDenied | CrossesDevices | Unsupported) => {
                    let mut named = Named::new(super::place::directory(to))?;
                    like(named.0.as_file(), std::fs::metadata(to).ok().as_ref());
                    file.rewind()?;
                    io::copy(&mut file, named.0.as_file_mut())?;
                    named.persist(to)
                }
                done => done,
            },
            Temporary::Named(named) => named.persist(to),
        }
    }
}

/// Gives a file the permissions of another, and its owner if this process may.
fn like(file: &File, other: Option<&Metadata>) {
    #[cfg(unix)]
    if let Some(other) = other {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        if file.metadata().is_ok_and(|m| (m.uid(), m.gid()) != (other.uid(), other.gid())) {
            let _ = fchown(file, Some(other.uid()), Some(other.gid()));
        }
        let _ = file.set_permissions(std::fs::Permissions::from_mode(other.mode() & 0o777));
    }
    #[cfg(not(unix))]
    let _ = (file, other);
}

/// A file without a name; none where the file system has no such files, or they could not be given a name.
#[cfg(target_os = "linux")]
fn unnamed(directory: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    // Less what the umask takes away.
    let file: File = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)).ok()?.into();
    std::fs::symlink_metadata(descriptor(&file)).ok()?;
    Some(file)
}

/// The path that leads to an open file.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Gives a file without a name its place.
#[cfg(target_os = "linux")]
fn link(file: &File, to: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let from = descriptor(file);
    let link = |to: &Path| linkat(CWD, from.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from);
    match link(to) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    // The signals' thread waits as long as this lock is held, so none of them ends the process between the two calls.
    let _no_end = signals::names();
    let directory = super::place::directory(to);
    let named = tempfile::Builder::new().prefix(PREFIX).make_in(directory, link)?;
    named.into_temp_path().persist(to).map_err(|e| e.error)
}

/// A file with a temporary name, which goes away with it, and with the process.
#[derive(Debug)]
pub(super) struct Named(NamedTempFile);

impl Named {
    fn new(directory: &Path) -> io::Result<Named> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Less what the umask takes away.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut names = signals::names();
        let named = builder.tempfile_in(directory)?;
        names.push(named.path().to_owned());
        Ok(Named(named))
    }

    fn persist(self, to: &Path) -> io::Result<()> {
        self.0.persist(to).map(drop).map_err(|e| e.error)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    /// Where the test that follows, run once more as a process of its own, makes its file.
    const DIRECTORY: &str = "PTOC_TEST_TEMPORARY";

    fn names(directory: &Path) -> Vec<String> {
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Where there are no files without a name.
    #[test]
    fn signals_remove_named_files() {
        if let Some(directory) = std::env::var_os(DIRECTORY) {
            let _file = Named::new(Path::new(&directory)).unwrap();
            sleep(Duration::from_secs(60));
            return;
        }
        let program = std::env::current_exe().unwrap();
        let test = "files::temporary::tests::signals_remove_named_files";
        // A signal that is ignored stays so, and another one ends the process.
        for (ignored, signals, last) in
            [("", "TERM", 15), ("", "INT", 2), ("", "HUP", 1), ("trap '' HUP;", "HUP TERM", 15)]
        {
            let directory = tempfile::tempdir().unwrap();
            let script = format!("{ignored} exec \"$0\" --exact {test}");
            let mut child = Command::new("sh");
            child.args(["-c", &script]).arg(&program).env(DIRECTORY, directory.path());
            // Whoever runs the tests in the background may ignore some of them.
            // SAFETY: `signal` may be called between fork and exec.
            unsafe {
                child.pre_exec(|| {
                    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                        libc::signal(signal, libc::SIG_DFL);
                    }
                    Ok(())
                })
            };
            let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let begin = Instant::now();
            while names(directory.path()).is_empty() {
                assert!(begin.elapsed() < Duration::from_secs(20), "it does not begin");
                sleep(Duration::from_millis(1));
            }
            for signal in signals.split(' ') {
                let kill = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status();
                assert!(kill.unwrap().success());
            }
            assert_eq!(child.wait().unwrap().signal(), Some(last), "{signals}");
            assert_eq!(names(directory.path()), [""; 0], "{signals}");
        }
    }

    #[test]
    fn named_files_are_moved_to_their_places() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("to");
        for text in ["first", "second"] {
            let mut file = Temporary::Named(Named::new(directory.path()).unwrap());
            std::io::Write::write_all(file.file(), text.as_bytes()).unwrap();
            file.persist(&to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), text);
            assert_eq!(names(directory.path()), ["to"]);
        }
    }
}
