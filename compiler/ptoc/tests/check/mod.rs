//! What `check` and `mem` say, and what `-D` may mean.

use super::{ADD, Sandbox, snapshot};
use std::io::Write as _;
use std::process::Stdio;

#[test]
fn check_says_what_it_has_seen() {
    let s = Sandbox::new();
    s.file("bad.tile", ADD.replace("Vec(a.tile", "Vec(aa.tile"));
    s.file("none.tile", "//! nothing yet\n");
    s.file(
        "wait.tile",
        "kernel k<const R>(x: in f32[R, 8]) { }\nkernel w(x: in f32[M, N], y: out f32[M, N]) {\n    \
        grid (i in tiles(M, 8));\n    TSTORE(y.tile(i, _), Vec(x.tile(i, _)));\n}\n",
    );
    snapshot!(s.runs(&[
        "check add.tile",
        "check add.tile bad.tile none.tile",
        "check wait.tile",
        "check wait.tile -D R=4 -D N=64",
        "check add.tile -D ROWS=32 -D M=100 --target a5",
    ]));
}

#[test]
fn check_reports_json_lines() {
    let s = Sandbox::new();
    s.file(
        "bad.tile",
        ADD.replace("TSTORE(c.tile(i, j), Vec(a.tile", "let ß = 1;\n    TSTORE(c.tile(i, j), Vec(aa.tile"),
    );
    snapshot!(s.run("check bad.tile --message-format json"));
}

#[test]
fn warnings_can_be_denied() {
    let s = Sandbox::new();
    s.file(
        "w.tile",
        ADD.replace("    grid (i in tiles(M, ROWS)", "    let unused = 3;\n    grid (i in tiles(M, ROWS)"),
    );
    snapshot!(s.runs(&[
        "check w.tile",
        "check w.tile --deny W0110",
        "check w.tile --deny warnings",
        "check w.tile --deny E0101",
        "check w.tile --deny W9999",
        "run w.tile add --random 1 -D M=2 -D N=2 --out c=c.npy --deny warnings",
    ]));
    assert!(!s.path().join("c.npy").exists());
}

#[test]
fn definitions_must_mean_something() {
    let s = Sandbox::new();
    s.file("other.tile", "kernel k<const R = 2>(x: in f32[M, N]) { }\n");
    snapshot!(s.runs(&[
        "check add.tile -D ROW=32",
        "check add.tile other.tile -D ROW=32 -D s=(",
        "check add.tile other.tile -D R=32 -D ROWS=8",
        "check add.tile -D Vec=1024",
        "check add.tile -D capacity.Vek=1024",
        "check add.tile -D capacity.Vec=f32",
        "check add.tile -D capacity.Vec=1024",
        "check add.tile -D M=f32",
        "check add.tile -D M=-1",
        "check add.tile -D ROWS=(1",
        "check add.tile -D ROWS=f32",
        "check add.tile -D ROWS",
        "check add.tile -D =3",
        "check add.tile -D s=2.5 -D N=2*64",
        "check add.tile -D N=64 -D M=3 -D N=128",
        "run add.tile add -D capacity.Vec=4096 -D capacity.Vec=4096",
    ]));
}

#[test]
fn missing_const_without_default() {
    let s = Sandbox::new();
    s.file("k.tile", ADD.replace("const ROWS = 16", "const ROWS"));
    snapshot!(
        s.runs(&["run k.tile add --in a=a.npy --in b=b.npy", "run k.tile add --in a=a.npy --in b=b.npy -D ROWS=8"])
    );
}

/// A kernel whose tiles need a dimension: what to write is said, as it would be written.
#[test]
fn a_missing_dimension_comes_with_the_command() {
    let s = Sandbox::new();
    s.file(
        "wide.tile",
        "kernel w(x: in f32[M, N], y: out f32[M, N]) {\n    grid (i in tiles(M, 8));\n    \
         let t = tile Vec<f32, i, N>;\n    \
         TLOAD(t, x.tile(i, _));\n    TSTORE(y.tile(i, _), t);\n}\n",
    );
    for (call, command) in [
        ("emit wide.tile --stage sync", "ptoc emit --stage sync wide.tile -D N=128"),
        ("emit wide.tile w --stage loop --target a5", "ptoc emit --stage loop wide.tile w --target a5 -D N=128"),
        ("mem wide.tile -D capacity.Vec=65536", "ptoc mem wide.tile -D capacity.Vec=65536 -D N=128"),
        ("mem wide.tile --source", "ptoc mem --source wide.tile -D N=128"),
    ] {
        let told = s.run(call);
        assert!(told.contains("exit 1") && told.contains("error[E0307]") && told.contains("depend on `N`"), "{told}");
        let flat: String = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&format!("`{command}`")), "{told}");
        assert!(s.run(command.strip_prefix("ptoc ").unwrap()).contains("exit 0"), "{command}");
    }
}

/// What was given on the command line stands there once, so the help says what to write in its place.
#[test]
fn a_value_that_does_not_fit_is_named_as_it_was_given() {
    let s = Sandbox::new();
    s.file(
        "big.tile",
        "kernel k<const X = 32>(a: in f32[M, N], c: out f32[M, N]) {\n    \
         grid (i in tiles(M, 256), j in tiles(N, X));\n    \
         let x, y = tile Vec<f32, i, j>;\n    TLOAD(x, a.tile(i, j));\n    TADDS(y, x, 1.0);\n    TADD(y, y, x);\n    \
         TSTORE(c.tile(i, j), y);\n}\n",
    );
    let told = s.run("check big.tile -D X=128");
    assert!(told.contains("error[E0401]") && told.contains("with `-D X=64` in place of `-D X=128`"), "{told}");
    assert!(s.run("check big.tile -D X=64").contains("exit 0"));
}

/// Tiles of a function come once for each call: the map says of which.
#[test]
fn tiles_of_functions_name_their_call() {
    let s = Sandbox::new();
    s.file(
        "soft.tile",
        "\
fn soft(x: Vec<f32, 16, 64>, y: Vec<f32, 16, 64>) {
    let t = tile Vec<f32, 16, 64>;
    TADDS(t, x, 1.0);
    let u = tile Vec<f32, 16, 64>;
    TMULS(u, t, 2.0);
    TADD(y, u, t);
}
fn twice(x: Vec<f32, 16, 64>, y: Vec<f32, 16, 64>) {
    soft(x, y);
    soft(y, x);
}
kernel k(a: in f32[M, N], c: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let x = tile Vec<f32, 16, 64>;
    let y = tile Vec<f32, 16, 64>;
    TLOAD(x.valid(i, j), a.tile(i, j));
    soft(x, y);
    twice(y, x);
    TSTORE(c.tile(i, j), x.valid(i, j));
}
",
    );
    snapshot!(s.run("mem soft.tile"));
}

/// Folders are searched for sources, and `-` is what is piped in.
#[test]
fn folders_and_pipes() {
    let s = Sandbox::new();
    s.file("src/a.tile", ADD);
    s.file("src/deep/b.tile", ADD.replace("kernel add", "kernel sum"));
    s.file("src/readme.txt", "no kernel");
    let said = s.run("check src");
    assert!(said.contains("src/a.tile: ok: 2 kernels") && said.contains("src/deep/b.tile: ok: 2 kernels"), "{said}");
    let piped = |text: &str| {
        let mut child = s.command("check -");
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, out, _) = piped(ADD);
    assert!(status == Some(0) && out.contains("<stdin>: ok: 2 kernels"), "{out}");
    let (status, _, err) = piped(&ADD.replace("ROWS)", "ROW)"));
    assert!(status == Some(1) && err.contains("<stdin>:") && err.matches("error[").count() == 1, "{err}");
    let (status, _, err) = piped("");
    assert_eq!((status, err.as_str()), (Some(0), ""));
}
