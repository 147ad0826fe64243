//! Tensors with layouts of their own: arrays stay logical, buffers are laid out, and what no buffer can be is refused;
//! `std::rearrange`.

use super::Sandbox;
use ptoc_tensor::{DType, Tensor};

const KERNELS: &str = "\
kernel columns(x: in i32[(A, B) : (1, A)], y: out i32[A, B])
    ensures y == x
{
    copy(y, x);
}

kernel pairs(x: in i32[((2, N), B) : ((1, 2 * B), 2)], y: out i32[(M, B) : (B + 3, 1)])
    ensures y[i, j] == x[i, j]
{
    grid (i in 0..M, j in 0..B);
    y[i, j] = x[i, j];
}

kernel reverse(x: in i32[A, B], y: out i32[(A, B) : (B - 5, 1)]) {
    copy(y, x);
}

kernel corner(y: out i32[(A, B) : (1, 2 * A)]) {
    y[1, 1] = 7;
}

kernel repeat(x: in i32[(A, B) : (0, 1)], y: out i32[A, B])
    ensures y == x
{
    copy(y, x);
}

kernel given<const L: layout>(x: in i32[L], y: out i32[L])
    ensures y == x
{
    copy(y, x);
}
";

impl Sandbox {
    fn tensors() -> Sandbox {
        let s = Sandbox::new();
        s.file("k.tile", KERNELS);
        s.array("x.npy", DType::I32, &[2, 3]);
        s.array("x43.npy", DType::I32, &[4, 3]);
        s.array("x6.npy", DType::I32, &[6]);
        s
    }
}

macro_rules! snapshot {
    ($text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r"\d+\.\d+ ms", "[time] ms");
        settings.add_filter(r#""(compile_ms|run_ms|code_bytes|threads)":[0-9.e-]+"#, r#""$1":"[n]""#);
        settings.add_filter(r"(?m)^(compile_ms|run_ms|code_bytes|threads) +[0-9.]+$", "$1 [n]");
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($text));
    };
}

#[test]
fn files_see_the_logical_shape() {
    let s = Sandbox::tensors();
    for backend in ["cpu", "interp"] {
        let calls = [
            "k.tile columns --in x=x.npy --expect y=x.npy --verify --out y=y.npy",
            "k.tile pairs --in x=x43.npy --expect y=x43.npy --verify -D N=2 -D M=4",
            "k.tile given -D L=(2,3):(5,1) --in x=x.npy --expect y=x.npy --verify",
            "k.tile given -D L=(2,3):(1,2) --in x=x.npy --expect y=x.npy --verify",
            "k.tile given -D L=6:4 --in x=x6.npy --expect y=x6.npy --verify",
            "k.tile given -D L=composition(swizzle<2,0,2>,(2,3):(4,1)) --in x=x.npy --expect y=x.npy --verify",
        ];
        for call in calls {
            let text = s.run(&format!("run {call} --backend {backend}"));
            assert!(text.contains("exit 0"), "{text}");
        }
    }
    assert_eq!(s.read("y.npy"), s.read("x.npy"));
    snapshot!(s.runs(&[
        "run k.tile columns --in x=x.npy --json",
        "run k.tile columns -D A=3 -D B=2 --random 1 --verify --stats --backend interp",
    ]));
}

/// Strides from scalar arguments and expressions, nothing and one element, tables, elements, tiles, functions.
#[test]
fn kernels_on_both_backends() {
    let s = Sandbox::tensors();
    s.file("all.tile", include_str!("all.tile"));
    let text = s.run("test all.tile");
    assert!(text.contains(" passed, 0 failed"), "{text}");
}

#[test]
fn elements_that_are_missing_have_coordinates() {
    let s = Sandbox::tensors();
    snapshot!(s.runs(&["run k.tile corner -D A=2 -D B=2 --backend interp"]));
}

#[test]
fn layouts_that_no_launch_can_have() {
    let s = Sandbox::tensors();
    s.array("x5.npy", DType::I32, &[3, 5]);
    s.array("x7.npy", DType::I32, &[3, 7]);
    s.array("f.npy", DType::F32, &[2, 3]);
    snapshot!(s.runs(&[
        "run k.tile reverse --in x=x.npy",
        "run k.tile reverse --in x=x5.npy",
        "run k.tile reverse --in x=x7.npy",
        "run k.tile reverse -D A=4194304 -D B=4194304 --random 1",
        "run k.tile reverse -D A=4611686018427387904 -D B=4611686018427387904 --random 1",
        "run k.tile pairs --in x=x.npy",
        "run k.tile pairs --in x=x.npy -D N=2 -D M=2",
        "run k.tile columns --in x=x6.npy",
        "run k.tile given --in x=x.npy",
        "run k.tile given -D L=(3,2):(2,1) --in x=x.npy",
        "run k.tile given -D L=6:1 --in x=x.npy",
        "run k.tile given -D L=(2,3):(3,1) --in x=f.npy",
        "run k.tile given -D L=(2,3):(0,1) --in x=x.npy",
        "run k.tile given -D L=(2,3) --in x=x.npy",
        "run k.tile repeat --in x=x.npy",
        "run k.tile repeat --random 1 -D A=2 -D B=3 --verify",
    ]));
}

#[test]
fn rearrange_refuses() {
    let s = Sandbox::tensors();
    s.array("u.npy", DType::U8, &[2, 3]);
    snapshot!(s.runs(&[
        // One logical shape and permuted strides; the literal pair of shapes.
        "run std::rearrange -D SRC=(32,64,7,9):(4032,63,9,1) -D DST=(32,64,7,9):(4032,1,576,64) --random 1 --verify \
        --json",
        "run std::rearrange -D SRC=(32,64,7,9):(4032,63,9,1) -D DST=(32,7,9,64):(4032,576,64,1) --random 1",
        "run std::rearrange -D SRC=(2,3):(3,1) -D DST=(2,3,1):(3,1,1) --random 1",
        "run std::rearrange -D SRC=(2,3):(3,1) -D DST=(2,3):(1,2) --in src=u.npy",
        "run std::rearrange -D SRC=(2,3):(3,1) -D DST=(2,3):(1,0) --random 1",
        "run std::rearrange -D SRC=(2,3):(3,1) -D DST=(2,3):(1,1) --random 1",
        "run std::rearrange -D SRC=(2,3):(3,1) -D DST=(2,3):(3,-1) --random 1",
        "run std::rearrange -D SRC=(2,3):(3,1) --random 1",
        "run std::scans --random 1",
    ]));
}

#[test]
fn programs_lay_out_each_launch() {
    let s = Sandbox::tensors();
    s.file(
        "p.tile",
        "use std::rearrange::rearrange;\n\
         kernel columns(x: in i32[(A, B) : (1, A)], y: out i32[(A, B) : (1, 2 * A)]) {\n\
             grid (i in 0..A, j in 0..B);\n\
             y[i, j] = x[i, j] + 1;\n\
         }\n\
         kernel nested(x: in i32[((2, K), B) : ((1, 2), 2 * K)], y: out i32[M, B]) {\n\
             copy(y, x);\n\
         }\n\
         program twice(x: in i32[A, B], y: out i32[A, B]) {\n\
             let t = tensor i32[A, B];\n\
             let u = tensor i32[A, B];\n\
             columns(x, t);\n\
             rearrange<i32, SRC = (A, B):(B, 1), DST = (A, B):(B + 1, 1)>(t, u);\n\
             columns(u, y);\n\
         }\n\
         program unbound(x: in i32[A, B], y: out i32[A, B]) { nested(x, y); }\n\
         program turned(x: in i32[A, A], y: out i32[A, A]) { columns(x.T, y); }\n\
         program other(x: in i32[A, B], y: out i32[A, B]) {\n\
             rearrange<i32, SRC = (B, A):(A, 1), DST = (B, A):(1, B)>(x, y);\n\
         }\n",
    );
    for backend in ["cpu", "interp"] {
        s.run(&format!("run p.tile twice --in x=x43.npy --out y=y.npy --backend {backend}"));
        let want = Tensor::from_fn(DType::I32, &[4, 3], |i| i as u64 + 2).unwrap();
        assert_eq!(s.read("y.npy"), want, "{backend}");
    }
    snapshot!(s.runs(&[
        "run p.tile unbound --in x=x43.npy",
        "run p.tile turned -D A=3 --random 1",
        "run p.tile other --in x=x43.npy",
    ]));
}
