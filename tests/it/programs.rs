//! The programs of `examples` and `tests/language`: the compiler takes all of them.

use ptoc_syntax::Directive;
use ptoc_tests::programs::{files, runs};

/// Every `// run:` line can be launched.
#[test]
fn every_run_is_prepared() {
    let mut wrong = Vec::new();
    for path in files() {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let mut sources = ptoc_diagnostics::SourceMap::new();
        let directives = ptoc_syntax::parse(sources.add(&name, &text), &text).directives;
        let lines = directives.iter().filter(|d| matches!(d, Directive::Run(_))).count();
        let prepared = runs(&path).len();
        if prepared != lines {
            wrong.push(format!("{name}: {prepared} of {lines} runs are prepared"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a kernel demands of scalars is tested by a check already, and the report names the launches.
#[test]
fn a_launch_whose_scalars_are_excluded_is_refused_by_a_check() {
    let text = "kernel scale(x: in f32[M, N], y: out f32[M, N], s: f32)
    where s > 0.0
{
    grid (i in tiles(M, 16), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * s);
}

program twice(x: in f32[4, 4], y: out f32[4, 4], by: f32) {
    let t = tensor f32[4, 4];
    scale(x, t, 2.0);
    scale(t, y, by);
}

program outer(x: in f32[4, 4], y: out f32[4, 4]) { twice(x, y, -1.0); }

program right(x: in f32[4, 4], y: out f32[4, 4]) { twice(x, y, 1.0); }
";
    let told = crate::engine::check(text, "a2a3", &[]);
    assert_eq!(told.codes, ["PA-1105"], "{}", told.text);
    for part in ["`scale` is launched here", "`twice` is launched here"] {
        assert!(told.text.contains(part), "{}", told.text);
    }
}
