//! Archives of objects: the members of a library that are needed, without what only debuggers read.
//!
//! `ptoc build` puts parts of the library of routines into the archives that it writes, and a program that carries that
//! library carries no more of it than is ever needed. Functions from bytes to bytes.

#![forbid(unsafe_code)]

mod strip;

use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use object::read::archive::ArchiveFile;
use object::{Object as _, ObjectSymbol as _};
use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use strip::stripped;

/// Bytes by DEFLATE, with a checksum: a program that carries a library is smaller by most of it.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(bytes, 9)
}

/// What was [packed].
///
/// # Errors
/// It is damaged.
pub fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, impl std::fmt::Display + use<>> {
    miniz_oxide::inflate::decompress_to_vec_zlib(bytes)
}

/// What is needed of a library.
#[derive(Debug)]
pub struct Parts {
    /// Members, by name, without what only debuggers read.
    pub members: Vec<(String, Vec<u8>)>,
    /// Names that the library does not have: those of the C library, or mistakes.
    pub missing: Vec<String>,
}

/// Names of an object.
#[derive(Debug, Default)]
pub struct Names {
    /// Those that it defines for others.
    pub defined: Vec<String>,
    /// Those that it leaves to others.
    pub undefined: Vec<String>,
}

/// The global names of an object.
///
/// # Errors
/// It is no object.
pub fn names(data: &[u8]) -> object::Result<Names> {
    let file = object::File::parse(data)?;
    let mut names = Names::default();
    for symbol in file.symbols().filter(|s| s.is_global()) {
        let Ok(name) = symbol.name() else { continue };
        let list = if symbol.is_undefined() { &mut names.undefined } else { &mut names.defined };
        list.push(name.to_owned());
    }
    Ok(names)
}

/// The names that the objects of a library define.
///
/// # Errors
/// It is no library.
pub fn defined(library: &[u8]) -> object::Result<Vec<String>> {
    let mut all = Vec::new();
    for member in ArchiveFile::parse(library)?.members() {
        // A library has tables and notes beside its objects.
        all.extend(names(member?.data(library)?).unwrap_or_default().defined);
    }
    Ok(all)
}

/// The members of a library that define names, and those that they need.
///
/// # Errors
/// It is no library.
pub fn needed(mut wanted: Vec<String>, library: &[u8]) -> object::Result<Parts> {
    let archive = ArchiveFile::parse(library)?;
    let mut all = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::default();
    for member in archive.members() {
        let member = member?;
        let data = member.data(library)?;
        // A library has tables and notes beside its objects.
        let Ok(Names { defined, undefined }) = names(data) else { continue };
        for name in defined {
            by_name.entry(name).or_insert(all.len());
        }
        all.push((String::from_utf8_lossy(member.name()).into_owned(), data, undefined));
    }
    let (mut taken, mut missing) = (vec![false; all.len()], Vec::new());
    let mut seen: HashSet<String> = HashSet::default();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        match by_name.get(&name) {
            Some(&n) if taken[n] => {}
            Some(&n) => {
                taken[n] = true;
                wanted.extend(all[n].2.iter().cloned());
            }
            None => missing.push(name),
        }
    }
    let members = all.into_iter().zip(taken).filter(|(_, taken)| *taken).map(|((name, data, _), _)| {
        // What only debuggers read is the larger part.
        let data = stripped(data).unwrap_or_else(|| data.to_vec());
        (name, data)
    });
    Ok(Parts { members: members.collect(), missing })
}

/// Members as an archive with an index.
///
/// # Errors
/// One of them is too large for an archive.
pub fn written(members: &[(String, Vec<u8>)]) -> std::io::Result<Vec<u8>> {
    let members: Vec<NewArchiveMember<'_>> = members
        .iter()
        .map(|(name, data)| NewArchiveMember {
            buf: Box::new(data.as_slice()),
            object_reader: &DEFAULT_OBJECT_READER,
            member_name: name.clone(),
            mtime: 0,
            uid: 0,
            gid: 0,
            perms: 0o644,
        })
        .collect();
    let kind = if cfg!(target_os = "macos") { ArchiveKind::Darwin } else { ArchiveKind::Gnu };
    let mut out = Cursor::new(Vec::new());
    write_archive_to_stream(&mut out, &members, kind, false, None)?;
    Ok(out.into_inner())
}
