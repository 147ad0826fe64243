//! `ptoc emit`: the stages of a kernel.

use super::{Sandbox, snapshot};
use std::fs;

#[test]
fn emit_shows_every_stage() {
    let s = Sandbox::new();
    for stage in ["tokens", "ast", "ir", "placed", "loop", "clif", "asm"] {
        let run = s.run(&format!("emit add.tile add --stage {stage}"));
        assert!(run.contains("exit 0") && run.contains("-- stdout"), "{stage}: {run}");
        s.run(&format!("emit add.tile add --stage {stage} -o {stage}.txt"));
        let (_, printed) = run.split_once("-- stdout\n").unwrap();
        assert_eq!(fs::read_to_string(s.path().join(format!("{stage}.txt"))).unwrap(), printed, "{stage}");
    }
    // What is said of bounds has the place of the access.
    let loops = s.run("emit add.tile add --stage loop");
    for row in ["bounds \"c\" proof at 6:5\n", "bounds \"a\" proof at 6:26\n", "bounds \"b\" proof at 6:46\n"] {
        assert!(loops.contains(row), "{row}{loops}");
    }
    s.file(
        "wait.tile",
        "kernel w(x: in f32[M, N], y: out f32[M, N]) {\n    grid (i in tiles(M, 8));\n    \
        TSTORE(y.tile(i, _), Vec(x.tile(i, _)));\n}\n",
    );
    s.file("bad.tile", "kernel k( {\n");
    snapshot!(s.runs(&[
        "emit add.tile add --stage placed",
        "emit add.tile --stage ir",
        "emit add.tile add --stage pto",
        "emit add.tile add --stage nothing",
        "emit wait.tile --stage ir",
        "emit bad.tile --stage tokens",
        "emit bad.tile --stage ir -o bad.ir",
    ]));
    assert!(!s.path().join("bad.ir").exists());
}

/// PTO text has tokens of its own, and the tree of its kernels in the language.
#[test]
fn emit_shows_the_stages_of_pto_text() {
    const TEXT: &str = "module {\n  func.func @k(%x: !pto.ptr<f32>) { // one\n    %t = pto.alloc_tile : \
                        !pto.tile_buf<vec, 1x8xf32>\n    return\n  }\n}\n";
    let s = Sandbox::new();
    s.file("k.pto", TEXT);
    let tokens = s.run("emit k.pto --stage tokens");
    assert!(tokens.contains("exit 0") && tokens.contains("operation       pto.alloc_tile\n"), "{tokens}");
    assert!(tokens.contains("comment         // one\n") && tokens.contains("mark            {\n"), "{tokens}");
    let tree = s.run("emit k.pto k --stage ast");
    assert!(tree.contains("exit 0") && tree.contains("kernel k\n"), "{tree}");
    s.file("wrong.pto", TEXT.replace("return", ""));
    // What is wrong with a text is all that is said: it has no kernel because of it.
    for command in ["emit wrong.pto --stage ast", "emit wrong.pto --stage ir", "run wrong.pto", "mem wrong.pto k"] {
        let said = s.run(command);
        assert!(said.contains("exit 1") && said.matches("error[").count() == 1 && said.contains("E1403"), "{said}");
    }
    // It is said with what may have been meant.
    s.file("misspelled.pto", TEXT.replace("alloc_tile", "aloc_tile"));
    let said = s.run("check misspelled.pto");
    assert!(said.contains("E1401") && said.contains("help: did you mean `pto.alloc_tile`?"), "{said}");
    s.file("empty.pto", "module {\n}\n");
    let said = s.run("run empty.pto");
    assert!(said.contains("E0744") && said.contains("func.func @NAME"), "{said}");
}

#[test]
fn emit_shows_the_ir_between_passes() {
    let s = Sandbox::new();
    // It goes over its rows again: its grid is split, and its rows are pipelined.
    s.file("softmax.tile", include_str!("../../../../examples/softmax.tile"));
    let printed = |words: &str| {
        let run = s.run(&format!("emit softmax.tile softmax -D N=4096 {words}"));
        run.split_once("-- stdout\n").unwrap_or_else(|| panic!("{run}")).1.to_owned()
    };
    let all = printed("--print-after-all --verify-ir");
    let names: Vec<&str> = all.lines().filter_map(|l| l.strip_prefix("# after ")).collect();
    let order: Vec<&str> = ptoc_driver::stages::steps().into_iter().map(|s| s.0).collect();
    assert!(names.iter().zip(&names[1..]).all(|(a, b)| {
        let place = |n: &str| order.iter().position(|o| *o == n).unwrap_or_else(|| panic!("no step {n}"));
        place(a) < place(b)
    }));
    for name in ["elaboration", "placement", "grid-split", "lowering", "row-pipelining"] {
        assert!(names.contains(&name), "{names:?}");
        let after = printed(&format!("--stage after:{name}"));
        assert!(all.contains(&format!("# after {name}\n{after}\n")), "{after}");
    }
    // The pass that splits the grid leaves tiles of one row, and what follows it has its kernel.
    assert!(!printed("--stage after:address-checks").eq(&printed("--stage after:grid-split")));
    let unchanged = printed("--stage after:lazy-gather");
    assert!(unchanged.starts_with("# lazy-gather changed nothing: as after grid-split\n"), "{unchanged}");
    // Loops are the last form, and the table of bounds belongs to `--stage loop`.
    assert!(printed("--stage loop").contains("spread"));
    snapshot!(s.runs(&[
        "emit add.tile add --stage after:nothing",
        "emit add.tile add",
        "emit add.tile add --stage after:grid-split --target hbm-pim -D M=16 -D N=64",
        "emit add.tile add --stage placed --print-after-all",
    ]));
}

#[test]
fn emit_makes_a_page_of_the_passes() {
    let s = Sandbox::new();
    let source = include_str!("../../../../examples/softmax.tile");
    s.file("softmax.tile", source);
    let run = s.run("emit softmax.tile softmax -D N=4096 --html trace.html");
    assert!(run.contains("exit 0") && !run.contains("-- stdout"), "{run}");
    let page = fs::read_to_string(s.path().join("trace.html")).unwrap();
    // A stage for each of the passes that `--print-after-all` shows, and then machine code.
    let all = s.run("emit softmax.tile softmax -D N=4096 --print-after-all");
    let mut names: Vec<&str> = all.lines().filter_map(|l| l.strip_prefix("# after ")).collect();
    names.push("machine code");
    let stages: Vec<&str> = page.split("<section class=\"stage\"").skip(1).collect();
    let headings: Vec<&str> =
        stages.iter().map(|s| s.split_once("<h2>").unwrap().1.split_once(" <small>").unwrap().0).collect();
    assert_eq!(headings, names);
    // Every stage has lines that stem from the exponential, and no line stems from what is not there.
    let exp = 1 + source.lines().position(|l| l.contains("e.tile(_, j) = exp(")).unwrap();
    for (stage, name) in stages.iter().zip(&names) {
        let places = stage.split("data-at=\"").skip(1).flat_map(|at| at.split_once('"').unwrap().0.split(' '));
        let lines: Vec<usize> = places.map(|at| at.strip_prefix("0:").expect(at).parse().unwrap()).collect();
        // What is decided of fusion is said in words.
        assert!(lines.contains(&exp) || *name == "fusion", "{name}");
        assert!(lines.iter().all(|n| (1..=source.lines().count()).contains(n)), "{name}");
    }
    assert_eq!(page.matches(&format!("<li data-at=\"0:{exp}\" tabindex=\"0\">")).count(), 1);
    // Units in memory have no machine code; what is refused leaves no page.
    s.run("emit add.tile add --target hbm-pim -D M=16 -D N=64 --html units.html");
    let units = fs::read_to_string(s.path().join("units.html")).unwrap();
    assert!(units.contains("placement") && !units.contains("machine code"), "{units}");
    s.file("bad.tile", "kernel k( {\n");
    snapshot!(s.runs(&[
        "emit add.tile add --html a.html --stage asm",
        "emit add.tile add --html a.html --print-after-all",
        "emit add.tile add --html a.html -o b.html",
        "emit bad.tile --html bad.html",
    ]));
    assert!(!s.path().join("a.html").exists() && !s.path().join("bad.html").exists());
}
