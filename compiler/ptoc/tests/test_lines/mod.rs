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
