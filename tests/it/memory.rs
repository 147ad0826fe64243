//! `ptoc mem` on the examples, and what `spec/memory.md` shows of it: `UPDATE_SPEC=1` writes sessions and pictures
//! anew.

use crate::engine::{Outcome, command};
use ptoc_diagnostics::{Fix, codes};
use ptoc_tests::front::{Flags, check};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn update() -> bool {
    std::env::var_os("UPDATE_SPEC").is_some()
}

/// Runs a command line as if in the root of the repository.
fn run(line: &str) -> Outcome {
    let word = |w: &str| match w.starts_with("examples/") || w.starts_with("tests/") {
        true => root().join(w).display().to_string(),
        false => w.to_owned(),
    };
    command(&line.split_whitespace().skip(1).map(word).collect::<Vec<_>>())
}

#[test]
fn sessions_and_pictures_of_the_chapter_are_current() {
    let page = root().join("spec/memory.md");
    let text = std::fs::read_to_string(&page).expect("UTF-8");
    let (mut new, mut lines, mut seen) = (String::new(), text.lines(), 0);
    while let Some(line) = lines.next() {
        new.push_str(line);
        new.push('\n');
        if let Some(call) = line.strip_prefix("$ ").filter(|l| l.starts_with("ptoc mem ")) {
            let outcome = run(call);
            assert_eq!(outcome.status, 0, "{call}: {}", outcome.err);
            new.push_str(&outcome.out);
            new.push_str("```\n");
            lines.by_ref().find(|l| l.starts_with("```"));
            seen += 1;
        }
        // `![ptoc mem FILE KERNEL --svg](images/memory/NAME.svg)`
        if let Some((call, name)) = line.strip_prefix("![ptoc mem ").and_then(|l| l.strip_suffix(")")?.split_once("]("))
        {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("map.svg");
            let outcome = run(&format!("ptoc mem {call} {}", file.display()));
            assert_eq!(outcome.status, 0, "{call}: {}", outcome.err);
            let drawn = std::fs::read_to_string(file).expect("written");
            let kept = root().join("spec").join(name);
            if update() {
                std::fs::create_dir_all(kept.parent().expect("a folder")).expect("made");
                std::fs::write(&kept, &drawn).expect("written");
            }
            let old = std::fs::read_to_string(&kept).ok();
            // The tooltips say where the sources are, which no two machines agree on; nothing else does.
            assert!(
                old.as_deref() == Some(&drawn),
                "`UPDATE_SPEC=1 cargo test -p ptoc-tests memory` draws {name} anew"
            );
            seen += 1;
        }
    }
    if update() {
        std::fs::write(&page, &new).expect("written");
    }
    assert!(update() || new == text, "`UPDATE_SPEC=1 cargo test -p ptoc-tests memory` writes spec/memory.md anew");
    assert_eq!(seen, 4);
}

/// Every kernel of the examples that can be checked without `-D`, on every target that takes it.
fn maps() -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(root().join("examples")).expect("examples/") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|e| e != "tile") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for name in text.lines().filter_map(|l| l.strip_prefix("kernel ")) {
            let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let file = path.display().to_string();
            let outcome = command(&["mem", &file, &name, "--json"]);
            if outcome.status == 0 {
                out.push((name, serde_json::from_str(&outcome.out).expect("JSON")));
            }
        }
    }
    out
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("a number, not {v}"))
}

fn run_of(v: &Value) -> (u64, u64) {
    (number(&v[0]), number(&v[1]))
}

#[test]
fn maps_add_up() {
    let maps = maps();
    assert!(maps.len() > 20, "only {}", maps.len());
    for (name, map) in &maps {
        for memory in list(&map["memories"]) {
            let tiles = list(&memory["tiles"]);
            let ends = tiles.iter().flat_map(|t| list(&t["ranges"])).map(|r| number(&r[1]));
            assert_eq!(ends.max().unwrap_or(0), number(&memory["used"]), "{name}");
            assert_eq!(number(&memory["used"]) <= number(&memory["capacity"]), memory["fits"], "{name}");
            let points = list(&map["points"]).len() as u64;
            let held = |p: u64| {
                let mut bytes = BTreeSet::new();
                for t in tiles.iter().filter(|t| !t["held"].is_null()) {
                    let (a, b) = run_of(&t["held"]);
                    if a <= p && p <= b {
                        // Addresses are multiples of 32, so blocks of 32 bytes count as well as bytes.
                        bytes.extend(
                            list(&t["ranges"]).iter().flat_map(|r| number(&r[0]) / 32..number(&r[1]).div_ceil(32)),
                        );
                    }
                }
                bytes.len() as u64 * 32
            };
            let at = number(&memory["peak_at"]["point"]);
            let most = (0..points).map(held).max().unwrap_or(0);
            assert_eq!((held(at), number(&memory["peak"])), (most, most), "{name}: peak of {}", memory["name"]);
            for tile in tiles.iter().filter(|t| !t["held"].is_null()) {
                let (a, b) = run_of(&tile["held"]);
                let mut parts: Vec<_> = list(&tile["live"]).iter().chain(list(&tile["dead"])).map(run_of).collect();
                parts.sort_unstable();
                assert_eq!((parts[0].0, parts[parts.len() - 1].1), (a, b), "{name}: {tile}");
                assert!(parts.windows(2).all(|w| w[0].1 + 1 == w[1].0), "{name}: {tile}");
                for touch in [&tile["first_write"], &tile["last_read"]].into_iter().filter(|t| !t.is_null()) {
                    let p = number(&touch["point"]);
                    assert!(list(&tile["live"]).iter().any(|r| run_of(r).0 <= p && p <= run_of(r).1), "{name}: {tile}");
                }
            }
        }
    }
}

#[test]
fn the_page_stands_alone_and_overflows_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("map.html");
    let to = file.display();
    let outcome = run(&format!("ptoc mem examples/attention.tile -D D=128 -D BM=128 -D BN=256 --html {to}"));
    assert_eq!(outcome.status, 1);
    assert_eq!(outcome.err.matches("error[E0401]").count(), 2, "{}", outcome.err);
    let page = std::fs::read_to_string(&file).expect("written in spite of the errors");
    assert!(page.contains("does not fit") && page.contains("class=\"beyond\""));
    for outside in ["src=", "@import", "url(http", "href=\"http", "//cdn"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("<g ").count(), page.matches("</g>").count());
}

#[test]
fn nothing_appears_where_there_is_no_map() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("map.html");
    let source = folder.path().join("broken.tile");
    std::fs::write(&source, "kernel k(a: in f32[M]) { nonsense(a); }\n").expect("written");
    let outcome = command(&["mem", &source.display().to_string(), "--html", &file.display().to_string()]);
    assert_eq!((outcome.status, file.exists()), (1, false), "{}", outcome.err);
}

/// An address past the end is refused, and still seen.
#[test]
fn constant_addresses_past_the_end_are_on_the_map() {
    let outcome = run("ptoc mem tests/ui/assign/past_the_end.tile -D BASE=0x2D020 --json");
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("SA-0353") && !outcome.err.contains("E0401"), "{}", outcome.err);
    let map: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(map["fits"], false);
}

/// What is offered as an edit mends what it is offered for.
#[test]
fn repairs_repair() {
    let mut tried = 0;
    for entry in std::fs::read_dir(root().join("tests/ui/capacity")).expect("the broken programs") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|e| e != "tile") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let flags = Flags::of_comments(&text);
        for d in check("a.tile", &text, &flags, None).diagnostics {
            // Some say themselves that another memory needs one of its own.
            let whole = |f: &&Fix| !f.edits.is_empty() && !f.message.contains("still too small");
            for fix in d.fixes.iter().filter(|_| d.code == codes::CAPACITY).filter(whole) {
                let mut new = text.clone();
                let mut edits = fix.edits.clone();
                edits.sort_by_key(|e| std::cmp::Reverse(e.span.start));
                edits.iter().for_each(|e| new.replace_range(e.span.range(), &e.text));
                let after = check("a.tile", &new, &flags, None);
                assert!(after.errors() == 0, "{}: {}\n{}", path.display(), fix.message, after.text());
                tried += 1;
            }
        }
    }
    assert!(tried >= 4, "only {tried}");
}

/// Addresses of loop variables: which of them are left for the run to test.
#[test]
fn addresses_in_loops_are_decided() {
    let kernel = |around: &str, address: &str| {
        format!(
            "kernel k(a: in f32[M, N], c: out f32[M, N]) {{\n\
             grid (i in tiles(M, 16), j in tiles(N, 64));\n\
             let x = tile Vec<f32, i, j>;\n\
             for s in 0..8 {{ {around} TASSIGN(x, {address}); TLOAD(x, a.tile(i, j)); TSTORE(c.tile(i, j), x); }}\n}}\n"
        )
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("k.tile");
    let said = |around: &str, address: &str| {
        std::fs::write(&file, kernel(around, address)).expect("written");
        let outcome = command(&["check", &file.display().to_string()]);
        let found = ["SA-0353", "SA-0354", "PA-1106", "PA-1107"].into_iter().filter(|c| outcome.err.contains(c));
        found.collect::<Vec<_>>().join(" ")
    };
    // UB has 0x30000 bytes, the tile 0x1000.
    assert_eq!(said("", "s * 0x1000"), "");
    assert_eq!(said("", "0x2F000 - s % 2 * 0x1000"), "");
    assert_eq!(said("", "0x29000 + s * 0x1000"), "SA-0353");
    assert_eq!(said("", "s * 0x1000 - 0x1000"), "SA-0353");
    assert_eq!(said("", "s * 0x10"), "SA-0354");
    assert_eq!(said("", "s / 2 * 0x20"), "");
    // Not every iteration comes this far, and the condition says which do.
    assert_eq!(said("if s >= 7 { break; }", "0x29000 + s * 0x1000"), "");
    assert_eq!(said("if s >= 7 { continue; }", "0x29000 + s * 0x1000"), "");
    // Where it does not, that is for the run to see.
    assert_eq!(said("if s * s >= 16 { break; }", "0x29000 + s * 0x1000"), "PA-1107");
    assert_eq!(said("if s * s >= 16 { continue; }", "0x29000 + s * 0x1000"), "PA-1107");
}
