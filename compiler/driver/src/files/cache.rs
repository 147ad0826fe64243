//! A cache on disk: what is expensive to make, by a key that says what it was made of.
//!
//! An entry is a file with its checksum. It appears whole or not at all, so writers may end at any time and several may
//! write the same entry. One that is damaged all the same is removed and made anew. The entries that were used last
//! stay when their bytes come to more than the limit. A cache that cannot be read or written holds nothing: that is no
//! error.

use super::temporary::Temporary;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// What an entry begins with: the form of the file. Behind it are the checksum of the contents, and the contents.
const MAGIC: &[u8; 16] = b"ptoc cache 1\n\0\0\0";

/// Bytes in front of the contents.
const HEAD: usize = MAGIC.len() + 32;

/// What the names of entries end with.
const EXTENSION: &str = "entry";

/// How old a file without that end must be to be one that a writer has left, where files have names from the start.
const LEFT: Duration = Duration::from_secs(3600);

/// A folder with entries.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// Bytes of all entries, at most.
    limit: u64,
}

/// The name of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key(String);

impl Key {
    /// Of all that an entry depends on, part by part.
    pub fn of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Key {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Cache {
    /// The cache in a folder, which is made when there is something to keep.
    pub fn new(folder: impl Into<PathBuf>, limit: u64) -> Cache {
        Cache { folder: folder.into(), limit }
    }

    /// The user's cache of this name; none where the system does not say where caches are.
    pub fn of_user(name: &str, limit: u64) -> Option<Cache> {
        Some(Cache::new(user_folder()?.join("ptoc").join(name), limit))
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(&key.0).with_extension(EXTENSION)
    }

    /// An entry, which counts as used now.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        let size = file.metadata().ok()?.len();
        let read = size <= self.limit && file.read_to_end(&mut bytes).is_ok();
        if !read || !is_whole(&bytes) {
            self.remove(key);
            return None;
        }
        // A file of another user's cannot be marked, and is no worse for it.
        let _ = File::options().append(true).open(&path).and_then(|f| f.set_modified(SystemTime::now()));
        Some(bytes.split_off(HEAD))
    }

    /// Keeps an entry, and drops those that were used longest ago where there are too many bytes.
    pub fn put(&self, key: &Key, contents: &[u8]) {
        if (contents.len() + HEAD) as u64 > self.limit {
            return;
        }
        let write = || {
            fs::create_dir_all(&self.folder)?;
            let mut temporary = Temporary::new(&self.folder, None)?;
            let file = temporary.file();
            file.write_all(MAGIC)?;
            file.write_all(&Sha256::digest(contents))?;
            file.write_all(contents)?;
            temporary.persist(&self.path(key))
        };
        if write().is_ok() {
            self.trim();
        }
    }

    /// Drops an entry.
    pub fn remove(&self, key: &Key) {
        let _ = fs::remove_file(self.path(key));
    }

    /// Others may be doing the same: a file that has gone is no concern.
    fn trim(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(data) = entry.metadata() else { continue };
            let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if path.extension().is_some_and(|e| e == EXTENSION) {
                kept.push((used, data.len(), path));
            } else if data.is_file() && used.elapsed().is_ok_and(|age| age > LEFT) {
                let _ = fs::remove_file(path);
            }
        }
        kept.sort();
        let mut all: u64 = kept.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in kept {
            if all <= self.limit {
                break;
            }
            let _ = fs::remove_file(path);
            all -= size;
        }
    }
}

/// Whether this is a whole entry.
fn is_whole(bytes: &[u8]) -> bool {
    bytes.len() >= HEAD && bytes.starts_with(MAGIC) && bytes[MAGIC.len()..HEAD] == Sha256::digest(&bytes[HEAD..])[..]
}

/// Where the user's caches are: the XDG Base Directory Specification, and what other systems have in its place.
fn user_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || variable("HOME");
    variable("XDG_CACHE_HOME").or_else(|| match std::env::consts::OS {
        "windows" => variable("LOCALAPPDATA"),
        "macos" => Some(home()?.join("Library/Caches")),
        _ => Some(home()?.join(".cache")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn key(n: usize) -> Key {
        Key::of([&n.to_le_bytes()[..]])
    }

    /// Contents that tell which entry they are.
    fn contents(n: usize) -> Vec<u8> {
        (0..1000 + n % 7).map(|k| (k * 31 + n) as u8).collect()
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).expect("a folder").map(|f| f.expect("a file").path()).collect();
        files.sort();
        files
    }

    #[test]
    fn what_is_kept_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path().join("a/b"), 1 << 20);
        assert_eq!(cache.get(&key(1)), None);
        cache.put(&key(1), &contents(1));
        cache.put(&key(2), b"");
        assert_eq!(cache.get(&key(1)), Some(contents(1)));
        assert_eq!(cache.get(&key(2)), Some(Vec::new()));
        cache.put(&key(1), b"another");
        assert_eq!(cache.get(&key(1)).as_deref(), Some(&b"another"[..]));
        assert_ne!(Key::of([&b"ab"[..], b"c"]), Key::of([&b"a"[..], b"bc"]));
    }

    /// An entry that was cut off or changed anywhere is none, and makes room for a new one.
    #[test]
    fn damage_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path(), 1 << 20);
        cache.put(&key(3), b"some contents");
        let path = cache.path(&key(3));
        let whole = fs::read(&path).expect("an entry");
        let cut = (0..whole.len()).map(|n| whole[..n].to_vec());
        let flipped = (0..whole.len()).map(|n| {
            let mut bytes = whole.clone();
            bytes[n] ^= 0x10;
            bytes
        });
        let longer = [whole.as_slice(), b"x"].concat();
        for bytes in cut.chain(flipped).chain([longer, vec![0; whole.len()]]) {
            fs::write(&path, &bytes).expect("written");
            assert_eq!(cache.get(&key(3)), None, "{bytes:?}");
            assert!(!path.exists(), "a damaged entry stays");
            cache.put(&key(3), b"some contents");
            assert_eq!(cache.get(&key(3)).as_deref(), Some(&b"some contents"[..]));
        }
    }

    #[test]
    fn what_was_used_last_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let size = (contents(0).len() + HEAD) as u64;
        let cache = Cache::new(folder.path(), 4 * size + 30);
        let long_ago = |n: usize, seconds: u64| {
            let file = File::options().append(true).open(cache.path(&key(n))).expect("an entry");
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).expect("a time");
        };
        for n in 0..4 {
            cache.put(&key(7 * n), &contents(7 * n));
            long_ago(7 * n, 100 - n as u64);
        }
        assert!(cache.get(&key(0)).is_some(), "used: now it is the last");
        cache.put(&key(28), &contents(28));
        let there: Vec<usize> = (0..5).filter(|n| cache.get(&key(7 * n)).is_some()).collect();
        assert_eq!(there, [0, 2, 3, 4]);
        // What does not fit at all drops nothing.
        cache.put(&key(99), &vec![0; 5 * size as usize]);
        assert_eq!((0..5).filter(|n| cache.get(&key(7 * n)).is_some()).count(), 4);
    }

    /// What a writer has left that was killed goes, once it is old; what one is writing stays.
    #[test]
    fn leavings_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (folder.path().join(".ptoc-old"), folder.path().join(".ptoc-new"));
        for path in [&old, &new] {
            fs::write(path, b"half an ent").expect("written");
        }
        let hours = SystemTime::now() - 2 * LEFT;
        File::options().append(true).open(&old).and_then(|f| f.set_modified(hours)).expect("a time");
        Cache::new(folder.path(), 1 << 20).put(&key(1), b"x");
        assert!(!old.exists() && new.exists());
    }

    /// Many threads, few keys, little room: whoever finds an entry finds all of it, and no other files are left.
    #[test]
    fn writers_and_readers_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path(), 5000);
        let found = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for t in 0..8 {
                let (cache, found) = (&cache, &found);
                scope.spawn(move || {
                    for turn in 0..60 {
                        let n = (t * 5 + turn) % 6;
                        match cache.get(&key(n)) {
                            Some(bytes) => {
                                assert_eq!(bytes, contents(n));
                                found.fetch_add(1, Ordering::Relaxed);
                            }
                            None => cache.put(&key(n), &contents(n)),
                        }
                    }
                });
            }
        });
        assert!(found.load(Ordering::Relaxed) > 0, "nothing was ever found");
        let left = files(folder.path());
        assert!(left.len() <= 6 && left.iter().all(|p| p.extension().is_some_and(|e| e == EXTENSION)), "{left:?}");
    }

    /// A place where nothing can be written is an empty cache.
    #[test]
    fn no_place_is_no_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let cache = Cache::new(file.path(), 1 << 20);
        cache.put(&key(1), b"x");
        assert_eq!(cache.get(&key(1)), None);
    }
}
