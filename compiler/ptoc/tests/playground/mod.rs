//! The files and commands that the page in the browser offers. The page itself is tried in a browser:
//! `editors/playground/test.mjs`.

use super::Sandbox;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Exit statuses of `check` for those that are there to be mended.
const BROKEN: [&str; 2] = ["first.tile", "race.tile"];

#[test]
fn examples_do_what_their_buttons_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = root.join("editors/playground");
    let list: Value = serde_json::from_str(&fs::read_to_string(own.join("examples.json")).unwrap()).unwrap();
    let s = Sandbox::new();
    for example in list.as_array().unwrap() {
        let file = example["file"].as_str().unwrap();
        let place = [own.join(file), root.join("examples").join(file)].into_iter().find(|p| p.exists());
        s.file(file, fs::read_to_string(place.unwrap_or_else(|| panic!("there is no {file}"))).unwrap());
        let run = |call: String| {
            let output = s.command(&call).output().unwrap();
            (output.status.code(), format!("{call}: {}", String::from_utf8_lossy(&output.stderr)))
        };
        let (status, said) = run(format!("check {file}"));
        assert_eq!(status, Some(if BROKEN.contains(&file) { 1 } else { 0 }), "{said}");
        if BROKEN.contains(&file) {
            continue;
        }
        if let Some(kernel) = example["memory"].as_str() {
            let (status, said) = run(format!("mem {file} {kernel} --html memory.html"));
            assert_eq!(status, Some(0), "{said}");
        }
        if let Some(line) = example["run"].as_str() {
            let (status, said) = run(format!("run {file} {line} --backend interp --html pipes.html"));
            assert_eq!(status, Some(0), "{said}");
        }
    }
}
