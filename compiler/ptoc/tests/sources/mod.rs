//! Source files: which are read, and what is asked of their contents.

use super::{Sandbox, snapshot};
use ptoc_tensor::DType;

#[test]
fn sources_that_cannot_be_read() {
    let s = Sandbox::new();
    s.file("latin1.tile", b"// caf\xe9\nkernel");
    s.file("dir/x.tile", "use lib::missing::f;\nuse std::no::f;\n");
    snapshot!(s.runs(&[
        "check missing.tile",
        "check ad.tile",
        "check no/such/dir.tile",
        "check dir",
        "check a.npy",
        "check latin1.tile",
        "check dir/x.tile",
        "run missing.tile",
        "emit missing.tile --stage ast",
        "test missing.tile",
    ]));
}

#[test]
fn imports() {
    let s = Sandbox::new();
    s.file(
        "main.tile",
        "use lib::math::double;\nuse std::act::gelu;\n\n\
        kernel k(x: in f32[M, N], y: out f32[M, N])\n    ensures y[i, j] == gelu(double(x[i, j]))\n{\n    \
        grid (i in tiles(M, 16), j in tiles(N, 64));\n    TSTORE(y.tile(i, j), gelu(double(Vec(x.tile(i, j)))));\n}\n",
    );
    s.file("lib/math.tile", "use more::two;\n\nfn double(x: f32) -> f32 { x * two }\n");
    s.file("lib/more.tile", "const two: f32 = 2.0;\n");
    snapshot!(s.runs(&["check main.tile", "run main.tile --random 1 -D M=2 -D N=3 --verify --rtol 1e-5 --atol 1e-6"]));
    s.file("lib/more.tile", "const two: f32 = ;\n");
    snapshot!(s.run("check main.tile"));
}

/// `more::x` beside the root and `more::x` beside `sub/s.tile` are two files.
#[test]
fn one_path_in_two_directories() {
    let s = Sandbox::new();
    s.file("more/x.tile", "fn f(x: f32) -> f32 { x + 1.0 }");
    s.file("sub/more/x.tile", "fn f(x: f32) -> f32 { x + 2.0 }");
    s.file("sub/s.tile", "use more::x::f;\nfn g(x: f32) -> f32 { f(x) }");
    s.file(
        "k.tile",
        "use more::x::f;\nuse sub::s::g;\nkernel k(x: in f32[N], y: out f32[N])\n    ensures y[i] == 2.0 * x[i] + 3.0\n\
         {\n    grid (i in tiles(N, 8));\n    let t = Vec(x.tile(i));\n    TSTORE(y.tile(i), f(t) + g(t));\n}\n",
    );
    s.array("x.npy", DType::F32, &[5]);
    let shown = s.run("run k.tile --in x=x.npy --verify");
    assert!(shown.contains("exit 0") && shown.contains("5 elements as expected"), "{shown}");
}

#[test]
fn deep_and_huge_input() {
    let s = Sandbox::new();
    let deep = format!("kernel k(x: in f32[M]) {{ let a = {}1{}; }}\n", "(".repeat(100_000), ")".repeat(100_000));
    s.file("deep.tile", deep);
    let huge = format!("kernel k(x: in f32[{}]) {{ }}\n", "9".repeat(400));
    s.file("huge.tile", huge);
    for (args, code) in [
        ("check deep.tile", "E0011"),
        ("emit deep.tile --stage ast", "E0011"),
        ("run deep.tile --random 1 -D M=1", "E0011"),
        ("check huge.tile", "E0006"),
    ] {
        let run = s.run(args);
        assert!(
            run.contains("exit 1") && run.contains(&format!("error[{code}]")),
            "{args}: {}",
            &run[..run.len().min(2000)]
        );
    }
    let run = s.run(&format!("check add.tile -D ROWS={}1{}", "(".repeat(20_000), ")".repeat(20_000)));
    assert!(run.contains("exit 1"), "{}", &run[run.len() - 2000..]);
    let run = s.run("run add.tile add --random 1 -D M=4000000000 -D N=4000000000");
    assert!(run.contains("exit 1") && run.contains("E0708"), "{run}");
}
