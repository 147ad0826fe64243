//! Quick fixes of the corpus of broken programs, applied as an editor applies them.

use super::{Client, URI};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, out),
            false if path.extension().is_some_and(|x| x == "tile") => out.push(path),
            false => {}
        }
    }
}

/// The settings that the first lines of a file ask for.
fn options(text: &str) -> Value {
    let of = |mark: &str| {
        let lines = text.lines().filter_map(|l| l.strip_prefix("// ")?.strip_prefix(mark));
        lines.map(str::trim).collect::<Vec<_>>()
    };
    json!({"target": of("target:").first().unwrap_or(&"a2a3"), "define": of("-D ")})
}

/// Errors, by code and message.
fn errors(c: &mut Client) -> Vec<(String, String)> {
    let published = c.server.settle();
    let last = published.into_iter().rfind(|m| m.params["uri"] == URI).expect("diagnostics come");
    let all = last.params["diagnostics"].as_array().unwrap().clone();
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    // Notes and helps say lines.
    let first = |v: &Value| text(v).lines().next().unwrap().to_owned();
    all.iter().filter(|d| d["severity"] == 1).map(|d| (text(&d["code"]), first(&d["message"]))).collect()
}

fn offset(text: &str, at: &Value) -> usize {
    let (line, column) = (at["line"].as_u64().unwrap() as usize, at["character"].as_u64().unwrap() as usize);
    text.split_inclusive('\n').take(line).map(str::len).sum::<usize>() + column
}

/// The text with the edits of an action, none of which overlap.
fn applied(text: &str, action: &Value) -> String {
    let mut edits: Vec<&Value> = action["edit"]["changes"][URI].as_array().unwrap().iter().collect();
    edits.sort_by_key(|e| std::cmp::Reverse(offset(text, &e["range"]["start"])));
    let mut out = text.to_owned();
    for e in edits {
        let [from, to] = ["start", "end"].map(|end| offset(text, &e["range"][end]));
        out.replace_range(from..to, e["newText"].as_str().unwrap());
    }
    out
}

/// Fixes behind which another mistake comes to light that the first one had hidden, or one that is only right for one
/// of two things that may have been meant: the file, the code, and how many.
const REVEALS: &[(&str, &str, usize)] = &[
    // Other memories are still too small, as the fix says.
    ("capacity/stages_of_several.tile", "E0401", 1),
    // The other operand is in the wrong place, too.
    ("calls/add_windows.tile", "E0221", 1),
    ("layouts/tile_parts.tile", "E0221", 1),
    ("locations/matmul_of_vec.tile", "E0206", 1),
    // A tile of the other size, too.
    ("tiles/bits_of_another_size.tile", "E0202", 1),
    // `half` is f16, and the arrays are not.
    ("names/dtype_of_pto.tile", "E0101", 1),
    // What is absent must be guarded, a placement must be that of the block's unit, a ring is no event.
    ("pim/absent.tile", "E0211", 1),
    ("pim/coordinates.tile", "E1300", 1),
    // Where the tile has room, what the host brings is the same for all blocks.
    ("pim/registers.tile", "SA-0353", 1),
    ("sync/malformed.tile", "E0105", 2),
    ("sync/malformed.tile", "E0201", 1),
    // Who orders the pipes by hand has to order all of them.
    ("sync/not_manual.tile", "E0550", 1),
    ("sync/not_manual_role.tile", "E0550", 1),
    // A scalar or a tensor: both are offered, and the body says which it is.
    ("types/pointer_habit.tile", "E0211", 1),
    ("types/scalar_with_direction.tile", "E0211", 1),
];

/// A fix may leave other mistakes where they are, and must not make new ones out of one.
#[test]
fn quick_fixes_leave_no_new_errors() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ui");
    let mut paths = Vec::new();
    files(&corpus, &mut paths);
    paths.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        // Imports are looked for beside the file.
        if text.lines().any(|l| l.starts_with("use ") && !l.starts_with("use std")) {
            continue;
        }
        let mut c = Client::new(options(&text));
        c.open(URI, &text);
        let before = errors(&mut c);
        let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}});
        let params = json!({"textDocument": {"uri": URI}, "range": whole, "context": {"diagnostics": []}});
        let actions = c.ask("textDocument/codeAction", params);
        for action in actions.as_array().unwrap() {
            count += 1;
            let mended = applied(&text, action);
            c.edit(URI, [(0, 0), (99_999, 0)], &mended);
            let after = errors(&mut c);
            let d = &action["diagnostics"][0];
            let error = d["severity"] == 1;
            // A name in a message may be what the fix has changed.
            let known = |code: &str| before.iter().filter(|b| b.0 == code).count();
            let count_of = |code: &str| after.iter().filter(|a| a.0 == code).count();
            let new: Vec<_> =
                after.iter().filter(|e| !before.contains(e) && count_of(&e.0) >= known(&e.0).max(1)).collect();
            let new = if error { new } else { new.into_iter().filter(|e| count_of(&e.0) > known(&e.0)).collect() };
            let more = after.len() > before.len() - usize::from(error);
            if !new.is_empty() || more {
                let name = path.strip_prefix(&corpus).unwrap().display().to_string();
                let code = d["code"].as_str().unwrap().to_owned();
                wrong.push(((name, code), format!("`{}` leaves {new:?}", action["title"])));
            }
        }
        c.edit(URI, [(0, 0), (99_999, 0)], "");
        c.published();
    }
    for (file, code, times) in REVEALS {
        let of = |w: &((String, String), String)| w.0.0 == *file && w.0.1 == *code;
        assert_eq!(wrong.iter().filter(|w| of(w)).count(), *times, "{file} {code}");
        wrong.retain(|w| !of(w));
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{wrong:#?}", wrong.len());
    assert!(count > 90, "{count} fixes");
}
