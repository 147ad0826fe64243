//! Stored results of tuning: what one process measures the next one uses.

use super::Sandbox;
use serde_json::Value;
use std::fs;

const SCALE: &str = "\
kernel scale<const BN = 64 tune [32, 64]>(x: in f32[N], y: out f32[N])
    where N % BN == 0
    ensures y[i] == x[i] * 2.0
{
    grid (i in tiles(N, BN));
    TSTORE(y.tile(i), Vec(x.tile(i)) * 2.0);
}
";

/// A sandbox with a directory of results of its own, and a call in it.
fn call(s: &Sandbox, args: &str) -> (bool, String, String) {
    let output = s.command(args).env("PTOC_TUNING", s.path().join("data")).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn good(s: &Sandbox, args: &str) -> (String, String) {
    let (success, out, err) = call(s, args);
    assert!(success, "{args}: {out}{err}");
    (out, err)
}

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.file("scale.tile", SCALE);
    s
}

const TUNE: &str = "bench scale.tile -D N=4096 --tune --seconds 0.01";

/// The fixed result of a test, in place of what was measured.
fn set(s: &Sandbox, best: &str) {
    let path = s.path().join("data/tuning.jsonl");
    let mut line: Value = serde_json::from_str(fs::read_to_string(&path).unwrap().trim()).unwrap();
    line["best"]["BN"] = best.into();
    line["stored"] = 1_795_910_400u64.into();
    fs::write(path, format!("{line}\n")).unwrap();
}

#[test]
fn a_second_process_tunes_nothing() {
    let s = sandbox();
    let (first, said) = good(&s, TUNE);
    assert!(first.contains("2 configurations of BN") && said.contains("stored in "), "{first}{said}");
    let kept = fs::read_to_string(s.path().join("data/tuning.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1);
    let (second, _) = good(&s, TUNE);
    let best = |text: &str| text.lines().find(|line| line.starts_with("best: ")).unwrap().to_owned();
    assert!(second.contains("tuned before, nothing was measured"), "{second}");
    assert_eq!(best(&first), best(&second));
    assert_eq!(fs::read_to_string(s.path().join("data/tuning.jsonl")).unwrap(), kept);
    let (json, _) = good(&s, &format!("{TUNE} --json"));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["stored"].is_string() && json["measured"].as_array().unwrap().is_empty(), "{json}");
    // Other sizes, another text and `--retune` are measured.
    for again in [format!("{TUNE} --retune"), TUNE.replace("4096", "2048")] {
        assert!(good(&s, &again).0.contains("2 configurations of BN"), "{again}");
    }
    s.file("scale.tile", SCALE.replace("2.0", "3.0"));
    assert!(good(&s, TUNE).0.contains("2 configurations of BN"));
}

#[test]
fn launches_use_what_is_stored_and_say_so() {
    let s = sandbox();
    good(&s, TUNE);
    set(&s, "32");
    let said = "tuned: BN=32, stored 2026-11-29";
    let run = "run scale.tile --random 1 --verify -D N=";
    let (_, err) = good(&s, &format!("{run}4096"));
    assert!(err.starts_with(said), "{err}");
    assert!(good(&s, &format!("{run}3200")).1.contains(said), "a size of the same class");
    assert!(!good(&s, &format!("{run}2048")).1.contains("tuned"), "a size of another class");
    assert!(!good(&s, &format!("{run}4096 -D BN=64")).1.contains("tuned"), "what is given wins");
    assert!(!good(&s, &format!("{run}4096 --backend interp")).1.contains("tuned"), "another backend");
    assert!(good(&s, "bench scale.tile -D N=4096 --seconds 0.01").1.contains(said));
    let blocks = |args: &str| {
        let json: Value = serde_json::from_str(&good(&s, args).0).unwrap();
        json["stats"]["blocks"].clone()
    };
    assert_eq!(blocks(&format!("{run}4096 --json")), 128);
    assert_eq!(blocks(&format!("{run}4096 --json -D BN=64")), 64);
    // A result for another text is told, and not used.
    s.file("scale.tile", SCALE.replace("i] * 2.0", "i] * 3.0").replace(") * 2.0", ") * 3.0"));
    let (_, err) = good(&s, &format!("{run}4096"));
    assert!(err.starts_with("not tuned: `scale` has changed since 2026-11-29, when BN=32 was stored;"), "{err}");
    assert_eq!(blocks(&format!("{run}4096 --json")), 64);
}

#[test]
fn results_move_between_directories() {
    let s = sandbox();
    good(&s, TUNE);
    set(&s, "32");
    let (list, _) = good(&s, "tune --list");
    assert!(list.contains("scale N=4096 on cpu (a2a3): BN=32") && list.contains("stored 2026-11-29"), "{list}");
    assert!(good(&s, "tune --export all.jsonl").0.starts_with("1 result written to all.jsonl"));
    assert!(good(&s, "tune other --list").0.starts_with("no results in "));
    assert!(good(&s, "tune other --clear").0.starts_with("0 results dropped"));
    assert!(good(&s, "tune --clear").0.starts_with("1 result dropped"));
    assert!(good(&s, "tune --list").0.starts_with("no results in "));
    assert!(good(&s, "tune --import all.jsonl all.jsonl").0.starts_with("1 result added to "));
    assert!(good(&s, "tune --import all.jsonl").0.contains("0 replaced, 1 not newer than what was there"));
    assert_eq!(good(&s, "tune --list").0, list);
    let json: Value = serde_json::from_str(&good(&s, "tune --list --json").0).unwrap();
    assert_eq!(json["best"]["BN"], "32");
}

#[test]
fn wrong_calls() {
    let s = sandbox();
    s.file("no.jsonl", "{\"version\":1}\n");
    s.file("data/tuning.jsonl", "nonsense\n");
    insta::assert_snapshot!(s.runs(&["tune", "tune --list --clear", "tune --list", "bench scale.tile --retune"]));
    let place = s.path().display().to_string();
    let told: Vec<String> = ["tune --list", "tune --import no.jsonl", "tune --import none.jsonl", "tune --clear"]
        .iter()
        .map(|args| {
            let (success, out, err) = call(&s, args);
            assert!(!success && out.is_empty(), "{args}: {out}");
            format!("$ ptoc {args}\n{err}").replace(&place, "DIRECTORY")
        })
        .collect();
    insta::assert_snapshot!("damaged", told.concat());
    // A launch goes on.
    let (_, err) = good(&s, "run scale.tile --random 1 -D N=64");
    assert!(err.contains("warning[W0769]: line 1 of"), "{err}");
}
