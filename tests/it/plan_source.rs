//! `ptoc mem --source`: what is printed is the file with addresses, compiles to the same placement, and computes the
//! same.

use crate::engine::command;
use ptoc_driver::backend::CPU;
use ptoc_driver::launch::{CompiledPlan, RunOptions};
use ptoc_tensor::Tensor;
use ptoc_tests::programs::{Prepared, runs, runs_of};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// The `.tile` files of the examples and the language's own programs.
fn sources() -> Vec<PathBuf> {
    let entries = ["examples", "tests/language"].map(|f| std::fs::read_dir(folder(f)).expect("a folder"));
    let paths = entries.into_iter().flatten().map(|e| e.expect("readable").path());
    let mut out: Vec<PathBuf> = paths.filter(|p| p.extension().is_some_and(|e| e == "tile")).collect();
    out.sort();
    out
}

/// The names after `kernel` and `program`.
fn items(text: &str) -> Vec<String> {
    let named = text.lines().filter_map(|l| l.strip_prefix("kernel ").or_else(|| l.strip_prefix("program ")));
    named.map(|l| l.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

/// Name, type and ranges of every tile, memory by memory.
fn places(map: &Value) -> Vec<String> {
    let kernels = if map["kernels"].is_array() { list(&map["kernels"]) } else { std::slice::from_ref(map) };
    let mut out = Vec::new();
    for kernel in kernels {
        for memory in list(&kernel["memories"]) {
            let tiles = list(&memory["tiles"]).iter();
            let mut lines: Vec<String> = tiles
                .map(|t| format!("{} {} {} {} {}", kernel["kernel"], memory["name"], t["name"], t["type"], t["ranges"]))
                .collect();
            lines.sort();
            out.extend(lines);
        }
    }
    out
}

/// The map for a target; without one for that of the file's project.
fn map(file: &Path, kernel: &str, target: Option<&str>) -> Option<Value> {
    let file = file.display().to_string();
    let mut words = vec!["mem", &file, kernel, "--json"];
    words.extend(target.into_iter().flat_map(|t| ["--target", t]));
    let outcome = command(&words);
    (outcome.status == 0).then(|| serde_json::from_str(&outcome.out).expect("JSON"))
}

fn automatic(map: &Value) -> usize {
    let kernels = if map["kernels"].is_array() { list(&map["kernels"]) } else { std::slice::from_ref(map) };
    let tiles = kernels.iter().flat_map(|k| list(&k["memories"])).flat_map(|m| list(&m["tiles"]));
    tiles.filter(|t| t["placed"] == "auto" && !list(&t["ranges"]).is_empty()).count()
}

/// Lines and line ends of the file, without what was inserted.
fn without_the_plan(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("#[place(") {
        out.push_str(&rest[..at]);
        let end = at + rest[at..].find(")]\n").expect("the attribute's end") + 3;
        rest = &rest[end..];
    }
    out.push_str(rest);
    while let Some(at) = out.find(" TASSIGN(") {
        let end = at + out[at..].find(';').expect("the statement's end") + 1;
        out.replace_range(at..end, "");
    }
    out
}

#[test]
fn every_plan_can_be_printed_and_comes_to_the_same_placement() {
    let folder = tempfile::tempdir().expect("a folder");
    // What is imported stands beside the file.
    for path in sources().iter().filter(|p| p.parent().is_some_and(|d| d.ends_with("language"))) {
        std::fs::copy(path, folder.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let (mut printed, mut tiles) = (0, 0);
    for path in sources() {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for name in items(&text) {
            let Some(before) = map(&path, &name, None) else { continue };
            let what = format!("{} {name}", path.display());
            let outcome = command(&["mem", &path.display().to_string(), &name, "--source"]);
            assert_eq!(outcome.status, 0, "{what}: {}", outcome.err);
            let file = folder.path().join("planned.tile");
            std::fs::write(&file, &outcome.out).expect("written");
            let of = if before["kernels"].is_array() { &before["kernels"][0] } else { &before };
            let target = of["target"].as_str().expect("a target");
            let after = map(&file, &name, Some(target)).unwrap_or_else(|| panic!("{what}: is refused"));
            assert_eq!(places(&before), places(&after), "{what}");
            assert_eq!(automatic(&after), 0, "{what}: a tile in use is left to the planner");
            if automatic(&before) == 0 {
                assert_eq!(outcome.out, text, "{what}: nothing was to be printed");
            } else {
                assert_ne!(outcome.out, text, "{what}");
                printed += 1;
                tiles += automatic(&before);
                // Once more changes nothing.
                let again = command(&["mem", &file.display().to_string(), &name, "--source", "--target", target]);
                assert_eq!((again.status, &again.out), (0, &outcome.out), "{what}: {}", again.err);
            }
            if !text.contains("TASSIGN") && !text.contains("#[place(") {
                assert_eq!(without_the_plan(&outcome.out), text, "{what}: more was changed than addresses");
            }
        }
    }
    assert!(printed > 40 && tiles > 400, "only {printed} plans of {tiles} tiles");
}

fn results(run: &mut Prepared) -> Vec<Tensor> {
    let mut after = run.before.clone();
    let compiled = CompiledPlan::new(&mut run.session, &run.plan, CPU).expect("compiles");
    compiled.run(&mut run.session, &mut after, &RunOptions::default(), &mut |_| {}, None).expect("runs");
    after
}

#[test]
fn planned_source_computes_the_same_bits() {
    let mut compared = 0;
    for name in
        ["examples/rmsnorm.tile", "examples/softmax.tile", "examples/gemm.tile", "tests/language/attention.tile"]
    {
        let path = folder(name);
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for kernel in items(&text) {
            let outcome = command(&["mem", &path.display().to_string(), &kernel, "--source"]);
            if outcome.status != 0 {
                continue;
            }
            let of = |run: &Prepared| run.name.contains(&format!(" {kernel} on a2a3"));
            let mut before: Vec<Prepared> = runs(&path).into_iter().filter(of).collect();
            // A plan is one for the parameters with which it was printed: with others it may be refused.
            for mut b in runs_of(&path, &outcome.out).into_iter().filter(of) {
                let a = before.iter_mut().find(|a| a.name == b.name).expect("the same lines");
                assert_eq!(results(a), results(&mut b), "{}", a.name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 8, "only {compared}");
}

#[test]
fn sources_with_plans() {
    for (name, file, kernel) in [
        ("rmsnorm", "examples/rmsnorm.tile", "rmsnorm"),
        ("rings", "examples/schedules.tile", "basic"),
        ("double_buffer", "tests/language/double_buffer.tile", "scale_pipeline"),
    ] {
        let path = folder(file);
        let outcome = command(&["mem", &path.display().to_string(), kernel, "--source"]);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        let mark = format!("kernel {kernel}");
        let at = outcome.out.find(&mark).expect("the kernel");
        let from = outcome.out[..at].rfind("\n\n").map_or(0, |n| n + 2);
        let to = at + outcome.out[at..].find("\n}\n").expect("its end") + 3;
        insta::assert_snapshot!(format!("plan_{name}"), &outcome.out[from..to]);
    }
}

#[test]
fn what_cannot_be_printed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("twice.tile");
    let text = "kernel add<const W = 64>(a: in f32[16, N], c: out f32[16, N]) {\n    grid (j in tiles(N, W));\n    \
                let x = Vec(a.tile(_, j));\n    TSTORE(c.tile(_, j), x + exp(x));\n}\n\n\
                program both(a: in f32[16, N], b: out f32[16, N], c: out f32[16, N]) {\n    add<64>(a, b);\n    \
                add<128>(b, c);\n}\n";
    std::fs::write(&file, text).expect("written");
    let path = file.display().to_string();
    let outcome = command(&["mem", &path, "both", "-D", "N=256", "--source"]);
    assert!(
        outcome.status != 0 && outcome.out.is_empty() && outcome.err.contains("E0420"),
        "{}{}",
        outcome.out,
        outcome.err
    );
    // The kernel alone has one plan.
    let outcome = command(&["mem", &path, "add", "--source"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    // A file that is named is written, and only then.
    let out = folder.path().join("planned.tile").display().to_string();
    assert_eq!(command(&["mem", &path, "add", "--source", "-o", &out]).status, 0);
    assert_eq!(std::fs::read_to_string(&out).expect("written"), outcome.out);
}
