//! Paths and links in the documents about the code lead somewhere: `ARCHITECTURE.md`, `CONTRIBUTING.md`, `CHANGELOG.md`
//! and the design notes. A path may be shortened to its last parts (`lower/chains.rs`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that hold what is built or fetched.
const BUILT: [&str; 4] = ["target", "node_modules", ".git", "__pycache__"];

/// Endings of files that a document may name without a folder.
const ENDINGS: [&str; 6] = [".rs", ".md", ".toml", ".txt", ".py", ".tile"];

/// Every path below a folder, and everything that it may be shortened to.
fn paths(folder: &Path, above: &str, out: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        // One folder of sources has the name of the folder for what is built.
        if BUILT.contains(&name.as_str()) && !folder.ends_with("compiler/isa/src") {
            continue;
        }
        let path = if above.is_empty() { name } else { format!("{above}/{name}") };
        out.extend(path.match_indices('/').map(|(at, _)| path[at + 1..].to_owned()));
        if entry.path().is_dir() {
            paths(&entry.path(), &path, out);
        }
        out.insert(path);
    }
}

/// `{a,b}.rs` as `a.rs` and `b.rs`.
fn alternatives(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![text.to_owned()] };
    inside.split(',').flat_map(|one| alternatives(&format!("{before}{one}{after}"))).collect()
}

/// Whether it is there. A `*` stands for any letters.
fn exists(known: &BTreeSet<String>, path: &str) -> bool {
    match path.split_once('*') {
        Some((before, after)) => known.iter().any(|k| {
            k.strip_prefix(before).and_then(|k| k.strip_suffix(after)).is_some_and(|between| !between.contains('/'))
        }),
        None => known.contains(path),
    }
}

/// A word between backquotes that is meant as a path.
fn is_path(word: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_./{},*-".contains(c);
    let named = ENDINGS.iter().any(|e| word.ends_with(e) && word != *e);
    word.chars().all(letters) && (word.contains('/') || named)
}

/// The text without its fenced blocks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

#[test]
fn paths_and_links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut known = BTreeSet::new();
    paths(&root, "", &mut known);
    let mut documents: Vec<PathBuf> =
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "spec/README.md"].map(|d| root.join(d)).into();
    let notes = std::fs::read_dir(root.join("spec/design")).expect("the design notes");
    documents.extend(notes.map(|e| e.expect("an entry").path()));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for document in &documents {
        let text = prose(&std::fs::read_to_string(document).expect("UTF-8"));
        // Every second part is between backquotes, as they do not go over the end of a line.
        for word in text.lines().flat_map(|l| l.split('`').skip(1).step_by(2)).filter(|w| is_path(w)) {
            seen += 1;
            let lost = |p: &String| !exists(&known, p.trim_end_matches('/'));
            if alternatives(word).iter().any(lost) {
                wrong.push(format!("{}: `{word}`", document.display()));
            }
        }
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let folder = document.parent().expect("a folder");
            if !link.is_empty() && !link.starts_with("https://") && !folder.join(link).exists() {
                wrong.push(format!("{}: link {link}", document.display()));
            }
        }
    }
    // All of the notes are in their list.
    let list = std::fs::read_to_string(root.join("spec/design/README.md")).expect("UTF-8");
    for name in documents.iter().filter(|d| d.parent().is_some_and(|p| p.ends_with("spec/design"))) {
        let name = name.file_name().expect("a file").to_string_lossy().into_owned();
        if name != "README.md" && !list.contains(&format!("]({name})")) {
            wrong.push(format!("spec/design/README.md does not list {name}"));
        }
    }
    assert!(wrong.is_empty(), "between backquotes or in a link, and no file's path ends so:\n{}", wrong.join("\n"));
    assert!(seen > 300, "only {seen} paths");
}
