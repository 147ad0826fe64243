//! What the README shows is what ptoc prints.

use super::Sandbox;
use std::fs;
use std::path::Path;

const README: &str = include_str!("../../../../README.md");

/// The fenced blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let open = format!("```{language}\n");
    README.split(&open).skip(1).map(|rest| rest.split("```").next().expect("its beginning")).collect()
}

/// The first line of a session that was not printed, or not in this order. `...` stands for lines that are left out,
/// and times are not compared.
pub(super) fn missing<'a>(shown: &'a str, printed: &str) -> Option<&'a str> {
    let mut rest = printed.lines();
    let compared = |l: &&str| !l.trim().is_empty() && *l != "..." && !l.contains("compiled in");
    shown.lines().filter(compared).find(|line| !rest.any(|p| p.trim_end() == line.trim_end()))
}

/// Commands that only read files are run.
#[test]
fn commands_print_what_it_shows() {
    let s = Sandbox::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = |from: &str, to: &str| s.file(to, fs::read(root.join(from)).expect("a file of the repository"));
    for file in ["softmax.tile", "sampling.tile", "data/softmax_x.npy", "data/softmax_y.npy"] {
        copy(&format!("examples/{file}"), &format!("examples/{file}"));
    }
    s.file("linear.tile", blocks("rust")[0]);
    let whole = fs::read_to_string(root.join("tests/language/double_buffer.tile")).expect("UTF-8");
    s.file("double_buffer.tile", whole.replacen("wait(full[b]);  wait(done[b]);", "wait(done[b]);", 1));
    let mut ran = 0;
    for session in blocks("console").iter().flat_map(|b| b.split("$ ptoc ").skip(1)) {
        let (command, shown) = session.split_once('\n').expect("what it prints");
        if command.contains('\'') {
            continue;
        }
        let printed = s.run(command);
        if let Some(line) = missing(shown, &printed) {
            panic!("`ptoc {command}` does not print, or not in this order:\n{line}\n{printed}");
        }
        ran += 1;
    }
    assert_eq!(ran, 4, "softmax, linear, double_buffer and sampling");
}

/// A build without the default features has no back end of its own: the first command names the one that it runs on.
/// Continuous integration does not build it a second time, in another profile.
#[test]
fn the_first_command_builds_the_back_end_that_it_runs_on() {
    let command = blocks("console")[0].lines().next().expect("a command");
    let (build, run) = command.split_once(" -- ").expect("arguments of cargo, then of ptoc");
    assert!(build.contains("--no-default-features"), "{build}");
    let on = run.split_once("--backend ").map_or("cpu", |(_, rest)| rest.split(' ').next().expect("a word"));
    let features = build.split_once("--features ").expect("features").1.split(' ').next().expect("a word");
    assert!(features.split(',').any(|feature| feature == on), "`{features}` leave out {on}");
}
