//! The library of routines (`ptoc-native`) as bytes, for a program that carries it: `cargo install` copies a program
//! and nothing beside it.
//!
//! A crate that depends on `ptoc-native` is compiled when that is done, and its compiler is told where the library is:
//! as an `rlib`, with the static library of the same name beside it. The macro looks there, so the bytes are those of
//! the very build, and nothing is compiled twice.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use std::fs;
use std::path::{Path, PathBuf};

/// The crate of the routines, as the compiler calls it.
const CRATE: &str = "ptoc_native";

/// `Some(bytes)`, an archive of the routines and of what they need, [packed](ptoc_archive::packed); `None` where there
/// is no code yet, as in `cargo check`.
#[proc_macro]
pub fn routines(_: TokenStream) -> TokenStream {
    let text = match library_of(&std::env::args().collect::<Vec<_>>()) {
        None => "None::<&'static [u8]>".to_owned(),
        Some(library) => match reduced(&library) {
            Ok(path) => format!("Some(&include_bytes!({path:?})[..])"),
            Err(why) => format!("compile_error!({:?})", format!("{}: {why}", library.display())),
        },
    };
    text.parse().expect("an expression")
}

/// The static library beside the one that the compiler was told of.
fn library_of(args: &[String]) -> Option<PathBuf> {
    let known = args.iter().filter_map(|arg| {
        let (name, path) = arg.strip_prefix("--extern=").unwrap_or(arg).split_once('=')?;
        // `--extern priv:name=path`
        (name.rsplit(':').next() == Some(CRATE)).then(|| Path::new(path).with_extension("a"))
    });
    known.into_iter().find(|path| path.is_file())
}

/// Writes what is needed of a library beside it.
fn reduced(library: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let bytes = fs::read(library)?;
    let mut wanted = ptoc_archive::defined(&bytes)?;
    wanted.retain(|name| name.trim_start_matches('_').starts_with("ptoc_"));
    if wanted.is_empty() {
        return Err("it has no routines".into());
    }
    let parts = ptoc_archive::needed(wanted, &bytes)?;
    let out = std::path::absolute(library)?.with_extension("routines");
    // Another build may read it.
    let own = library.with_extension(format!("routines.{}", std::process::id()));
    fs::write(&own, ptoc_archive::packed(&ptoc_archive::written(&parts.members)?))?;
    fs::rename(&own, &out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_whole_or_not_at_all() {
        let bytes: Vec<u8> = (0..100_000u32).map(|n| (n / 100) as u8).collect();
        let mut small = ptoc_archive::packed(&bytes);
        assert!(small.len() < bytes.len() / 10);
        assert_eq!(ptoc_archive::unpacked(&small).ok(), Some(bytes));
        small[50] ^= 1;
        assert!(ptoc_archive::unpacked(&small).is_err());
    }

    #[test]
    fn the_library_is_beside_what_the_compiler_was_told_of() {
        let folder = std::env::temp_dir().join(format!("ptoc-native-archive-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("there is room");
        let at = |name: &str| folder.join(name).display().to_string();
        fs::write(at("libptoc_native-12.a"), "").expect("there is room");
        let found = Some(PathBuf::from(at("libptoc_native-12.a")));
        let rlib = at("libptoc_native-12.rlib");
        let told = |what: &str| library_of(&["--extern".to_owned(), what.to_owned()]);
        assert_eq!(told(&format!("ptoc_native={rlib}")), found);
        assert_eq!(told(&format!("--extern=noprelude:ptoc_native={rlib}")), found);
        assert_eq!(told(&format!("ptoc_native={}", at("libptoc_native-13.rmeta"))), None);
        assert_eq!(told(&format!("ptoc={rlib}")), None);
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
