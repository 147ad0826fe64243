//! Turns `codes/*.md` into the registry: one constant and one table row a page.
//!
//! First line of a page: `# E0101 unknown_name: a name that nothing defines`.
//! Second line, optional: `kind: dtype` (the word that stands for this code in a `// check:` line).

use std::fmt::Write as _;
use std::{env, fs, path::Path, process::exit};

fn main() {
    println!("cargo::rerun-if-changed=codes");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let dir = Path::new(&root).join("codes");
    let mut pages: Vec<_> = fs::read_dir(&dir).expect("codes/ exists").map(|e| e.expect("readable").path()).collect();
    pages.retain(|p| p.extension().is_some_and(|x| x == "md"));
    pages.sort();
    let (mut consts, mut table) = (String::new(), String::new());
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page is UTF-8");
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let parsed = head.strip_prefix("# ").and_then(|h| h.split_once(": ")).and_then(|(left, title)| {
            let (code, name) = left.split_once(' ')?;
            Some((code, name, title))
        });
        let Some((code, name, title)) = parsed else {
            eprintln!("{}: first line must be `# CODE name: title`, got `{head}`", page.display());
            exit(1);
        };
        if page.file_stem().and_then(|s| s.to_str()) != Some(code) {
            eprintln!("{}: the page of `{code}` must be called {code}.md", page.display());
            exit(1);
        }
        let kind = lines.next().and_then(|l| l.strip_prefix("kind: ")).unwrap_or(name);
        writeln!(consts, "/// {title}\npub const {}: Code = Code({code:?});", name.to_uppercase())
            .expect("write to a String");
        writeln!(
            table,
            "CodeInfo {{ code: Code({code:?}), name: {name:?}, kind: {kind:?}, title: {title:?}, page: \
            include_str!({:?}) }},",
            page.display().to_string()
        )
        .expect("write to a String");
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("codes.rs");
    fs::write(out, format!("{consts}\npub(super) static TABLE: &[CodeInfo] = &[\n{table}];\n"))
        .expect("OUT_DIR is writable");
}
