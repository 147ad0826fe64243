//! `ptoc test`: the test lines of a file.

use super::{ADD, Sandbox, snapshot};
use std::fs;

#[test]
fn test_lines() {
    let s = Sandbox::new();
    s.file("sub/data.npy", fs::read(s.path().join("a.npy")).unwrap());
    let lines = "
// run: add interp,cpu M=20 N=70 seed=1
// run: add interp a=data.npy b=data.npy c==data.npy
// run: add cpu a=data.npy b=data.npy c==data.npy atol=100
// run: add interp,pim M=1 N=1
// run: scale interp,cpu M=3 N=3
// run: scale interp,cpu M=3 N=3 s=2.0 ROWS=3
// run: nobody interp M=3
// run: add interp,cpu target=a9 M=1 N=1
// run: add nowhere M=1
// check: add
// check: add ROWS=4096 => capacity
// check: add ROWS=4096
// check: add => SA-0353, dtype
";
    s.file("sub/t.tile", format!("{ADD}{lines}"));
    s.file("sub/deeper/u.tile", format!("{ADD}// check: add capacity.Vec=0x100 => SA-0352\n"));
    s.file("sub/not.txt", "// run: x y\n");
    snapshot!(s.run("test sub"));
    snapshot!(s.runs(&["test add.tile", "test missing.tile add.tile", "test sub/deeper"]));
}

#[test]
fn a_test_line_is_no_obstacle() {
    let s = Sandbox::new();
    s.file("odd.tile", format!("// run: scale\n// check: add a=\n// run: add tpu M=1\n{ADD}"));
    snapshot!(s.runs(&[
        "run odd.tile add --in a=a.npy --in b=b.npy --out c=c.npy",
        "emit odd.tile add --stage loop --deny E0040 -o loop.txt",
        "check odd.tile",
    ]));
}

/// Files at the same time, lines by a part of their text, and reports that other programs read.
/// A file is tested once, and a malformed line is called by its text.
#[test]
fn files_that_are_named_twice() {
    let s = Sandbox::new();
    let kernel =
        "kernel k(y: out f32[16, 64]) {\n    let t = tile Vec<f32, 16, 64>;\n    t = 1.0;\n    TSTORE(y, t);\n}\n";
    s.file("k.tile", format!("// run: k interp seed=1\n// run: k nowhere seed=1\n{kernel}"));
    let output = s.command("test k.tile . ./k.tile --filter k.tile --json").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["passed"], &report["failed"]), (&1.into(), &1.into()), "{report}");
    let malformed = report["lines"].as_array().unwrap().iter().find(|line| line["result"] == "failed").unwrap();
    assert_eq!(malformed["text"], "run: k nowhere seed=1", "{report}");
}

#[test]
fn filters_jobs_and_reports() {
    let s = Sandbox::new();
    for n in 0..5 {
        let wrong = if n == 3 { "// run: add interp a=a.npy b=b.npy c==a.npy\n" } else { "" };
        let lines = format!("{wrong}// run: add interp,cpu M=2{n} N=70 seed=1\n// check: add ROWS=2048 => SA-0352\n");
        s.file(&format!("t/f{n}.tile"), format!("{ADD}{lines}"));
        for array in ["a.npy", "b.npy"] {
            s.file(&format!("t/{array}"), fs::read(s.path().join(array)).unwrap());
        }
    }
    let said = |args: &str| {
        let output = s.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    // What is said does not depend on how many files are tested at a time.
    let one = said("test t");
    assert_eq!(one.0, Some(1));
    assert!(one.1.contains("10 passed, 1 failed in 5 files"), "{}", one.1);
    for jobs in [2, 3, 0] {
        assert_eq!(said(&format!("test t --jobs {jobs}")), one);
    }
    let (status, out, _) = said("test t --filter M=21 --filter f4.tile:20 --times");
    assert!(status == Some(0) && out.contains("1 passed, 0 failed") && out.contains(" ms\n"), "{out}");
    let (status, out, err) = said("test t --filter nothing");
    assert!(status == Some(1) && err.contains("error[E0736]") && out.contains("0 passed, 1 failed"), "{out}{err}");
    let (status, out, _) = said("test t --junit r.xml --json --jobs 2");
    assert_eq!(status, Some(1));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["lines"].as_array().unwrap().len(), 11);
    assert!(report["lines"][0]["ms"].as_f64().unwrap() > 0.0, "{report}");
    let junit = fs::read_to_string(s.path().join("r.xml")).unwrap();
    assert!(junit.contains("tests=\"11\" failures=\"1\" skipped=\"0\""), "{junit}");
    assert!(junit.contains("classname=\"t/f3.tile\"") && junit.contains("<failure message="), "{junit}");
    // The report takes no source's place.
    let (status, _, err) = said("test t --junit t/f0.tile");
    assert!(status == Some(1) && err.contains("a file of tests"), "{err}");
}
