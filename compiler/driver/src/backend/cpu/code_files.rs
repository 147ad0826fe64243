//! Files of machine code: what an earlier process compiled, in a directory of the user's cache.
//!
//! A file is named by the key of what its code was made of, and holds the hash of its contents before them. It is put
//! in place as a whole, so that readers and writers need no lock; one that is damaged or gone is compiled anew.

use crate::files::{Outputs, user_directory};
use ptoc_cpu::CodeStore;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The variable that names the directory; `off` is for none.
const VARIABLE: &str = "PTOC_CODE_CACHE";
/// Bytes of all files, beyond which the oldest are dropped until half of them is left.
const LIMIT: u64 = 256 << 20;
/// One in so many new files looks how large all are.
const LOOKS: u8 = 16;
/// Bytes of the hash.
const HASH: usize = 32;

/// Code in the files of a directory.
#[derive(Debug)]
pub struct CodeFiles {
    directory: PathBuf,
}

impl CodeFiles {
    /// The directory of the variable `PTOC_CODE_CACHE`, or `ptoc/code` in the user's cache; `None` if it is `off`, or
    /// nobody says where that is.
    pub fn of_environment() -> Option<CodeFiles> {
        let directory = user_directory(VARIABLE, ("XDG_CACHE_HOME", ".cache"), "ptoc/code")?;
        Some(CodeFiles { directory })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(key)
    }

    /// Makes the directory, for its owner alone: what is in its files is run.
    fn make(&self) -> bool {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory).is_ok()
    }

    /// Drops the files that were used longest ago, if all are too large.
    fn shrink(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter(|e| e.file_name().to_str().is_some_and(is_key))
            .filter_map(|e| e.metadata().ok().map(|m| (m.modified().ok(), m.len(), e.path())))
            .filter_map(|(modified, size, path)| Some((modified?, size, path)))
            .collect();
        let mut total: u64 = files.iter().map(|f| f.1).sum();
        if total <= LIMIT {
            return;
        }
        files.sort();
        for (_, size, path) in files {
            if total <= LIMIT / 2 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

/// Whether a file of the directory is one of ours.
fn is_key(name: &str) -> bool {
    name.len() == 2 * HASH && name.bytes().all(|b| b.is_ascii_hexdigit())
}

impl CodeStore for CodeFiles {
    fn load(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        if !fs::symlink_metadata(&path).is_ok_and(|m| m.is_file()) {
            return None;
        }
        let mut hash = fs::read(&path).ok()?;
        let code = if hash.len() < HASH { return None } else { hash.split_off(HASH) };
        if Sha256::digest(&code).as_slice() != hash {
            return None;
        }
        // So that it is not among the oldest.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(code)
    }

    fn store(&self, key: &str, code: &[u8]) {
        let mut bytes = Sha256::digest(code).to_vec();
        bytes.extend(code);
        // A cache that cannot be written is none.
        if self.make() && Outputs::replace(&self.path(key), &bytes).is_ok() && bytes[0] % LOOKS == 0 {
            self.shrink();
        }
    }
}

/// The build of this compiler: the version, and size and time of the file that its code is in. `None` where that is not
/// known.
pub fn build() -> Option<&'static str> {
    static BUILD: OnceLock<Option<String>> = OnceLock::new();
    BUILD.get_or_init(identify).as_deref()
}

fn identify() -> Option<String> {
    let metadata = fs::metadata(image()?).ok()?;
    let modified = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}", env!("CARGO_PKG_VERSION"), metadata.len(), modified.as_nanos()))
}

/// The file that this function's code is in: the program, or the module of Python.
#[cfg(target_os = "linux")]
fn image() -> Option<PathBuf> {
    let here = image as *const () as usize;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bounds = range
            .and_then(|(from, to)| Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?)));
        bounds.is_some_and(|(from, to)| (from..to).contains(&here))
    })?;
    let path = line.find('/').map(|at| &line[at..])?;
    // What has been replaced since is named with ` (deleted)`, which is no file.
    Some(PathBuf::from(path))
}

/// Elsewhere it is not asked for.
#[cfg(not(target_os = "linux"))]
fn image() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_not_code() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = CodeFiles { directory: directory.path().join("a/b") };
        let key = "ab".repeat(HASH);
        assert_eq!(files.load(&key), None);
        files.store(&key, b"code");
        assert_eq!(files.load(&key).as_deref(), Some(&b"code"[..]));
        let path = files.path(&key);
        let whole = fs::read(&path).expect("stored");
        for n in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[n] ^= 1;
            fs::write(&path, &bytes).expect("written");
            assert_eq!(files.load(&key), None, "byte {n}");
            fs::write(&path, &whole[..n]).expect("written");
            assert_eq!(files.load(&key), None, "{n} bytes");
        }
    }

    #[test]
    fn the_oldest_files_go_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = CodeFiles { directory: directory.path().to_path_buf() };
        fs::write(directory.path().join("notes"), b"not ours").expect("written");
        for n in 0..5u64 {
            let path = files.path(&format!("{n:064x}"));
            let file = File::create(&path).expect("a file");
            file.set_len(LIMIT / 4).expect("a sparse file");
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n)).expect("a time");
        }
        files.shrink();
        let left: Vec<u64> = (0..5).filter(|n| files.path(&format!("{n:064x}")).exists()).collect();
        assert_eq!(left, [3, 4]);
        assert!(directory.path().join("notes").exists());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_build_is_that_of_this_program() {
        let program = std::env::current_exe().and_then(fs::canonicalize).expect("a program");
        assert_eq!(image().and_then(|i| fs::canonicalize(i).ok()), Some(program));
    }
}
