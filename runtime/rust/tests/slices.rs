//! Kernels on slices: in place, with strides, in every dtype, and what is refused.

use ptoc::half::{bf16, f16};
use ptoc::{DType, Element, Error, F8E4M3, Kernel, Module, Options, View, ViewMut};
use std::thread;

const SOURCE: &str = "
    kernel twice<type T>(x: in T[M, N], y: out T[M, N]) {
        grid (i in tiles(M, 4), j in tiles(N, 32));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
    }
    kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N])
        ensures y[i, j] == a * x[i, j]
    {
        grid (i in tiles(M, 4), j in tiles(N, 32));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
    }
    kernel columns(x: in f32[(M, N):(1, M)], y: out f32[M, N]) {
        grid (i in tiles(M, 4));
        TSTORE(y.tile(i, _), Vec(x.tile(i, _)));
    }
    kernel in_columns(x: in f32[M, N], y: out f32[(M, N):(1, M)]) {
        grid (i in tiles(M, 4));
        copy(y.tile(i, _), Vec(x.tile(i, _)));
    }
";

fn kernel(name: &str) -> Kernel {
    Module::of_text("slices.tile", SOURCE).and_then(|module| module.kernel(name)).unwrap_or_else(|e| panic!("{e}"))
}

fn code(ended: Result<impl Sized, Error>) -> &'static str {
    ended.err().map_or("", |e| e.code())
}

fn copied<T: Element + PartialEq + std::fmt::Debug>(elements: [T; 6]) {
    let (twice, mut y) = (kernel("twice"), elements);
    y.reverse();
    let launch = twice.launch().input("x", View::new(&elements, &[2, 3]));
    launch.output("y", ViewMut::new(&mut y, &[2, 3])).run().unwrap_or_else(|e| panic!("{}: {e}", T::DTYPE));
    assert_eq!(y, elements, "{}", T::DTYPE);
}

#[test]
fn every_dtype_is_copied_bit_for_bit() {
    copied([1i8, -2, 3, -4, 5, 127]);
    copied([1u8, 2, 3, 4, 5, 255]);
    copied([1i16, -2, 3, -4, 5, i16::MIN]);
    copied([1u16, 2, 3, 4, 5, u16::MAX]);
    copied([1i32, -2, 3, -4, 5, i32::MIN]);
    copied([1u32, 2, 3, 4, 5, u32::MAX]);
    copied([1.5f32, -2.0, f32::INFINITY, 0.25, 1e-40, f32::MAX]);
    copied([1.5f32, -2.0, 0.5, 0.25, 3.0, 8.0].map(f16::from_f32));
    copied([1.5f32, -2.0, 0.5, 0.25, 3.0, 8.0].map(bf16::from_f32));
}

#[test]
fn floats_of_eight_bits_have_a_type() {
    let module = Module::of_text("f8.tile", SOURCE).expect("the text is right");
    let twice = module.kernel_for("twice", &Options::new().target("a5")).expect("there is such a target");
    let x = [0x38, 0x40, 0x7e, 0, 0x80, 1].map(F8E4M3);
    let outputs = twice.launch().input("x", View::new(&x, &[2, 3])).run().unwrap_or_else(|e| panic!("{e}"));
    let y = outputs.array("y").expect("it was not given");
    assert_eq!((y.dtype(), y.shape(), y.as_slice()), (DType::F8E4M3, &[2, 3][..], Some(&x[..])));
    assert_eq!(y.as_slice::<u8>(), None);
}

#[test]
fn layouts_take_strided_views() {
    // 2 x 3 with contiguous columns, in a slice that has more in front and behind.
    let memory = [9.0f32, 1.0, 4.0, 2.0, 5.0, 3.0, 6.0, 9.0];
    let mut y = [0.0f32; 6];
    let columns = kernel("columns");
    let view = View::strided(&memory[1..], &[2, 3], &[1, 2]);
    let launch = columns.launch().input("x", view).output("y", ViewMut::new(&mut y, &[2, 3]));
    launch.run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(y, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut back = [9.0f32; 8];
    let view = ViewMut::strided(&mut back[1..7], &[2, 3], &[1, 2]);
    let launch = kernel("in_columns").launch().input("x", View::new(&y, &[2, 3])).output("y", view);
    launch.run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(back, memory);
    let launch = || columns.launch().output("y", ViewMut::new(Vec::leak(vec![0.0f32; 6]), &[2, 3]));
    assert_eq!(code(launch().input("x", View::new(&y, &[2, 3])).run()), "E0762");
}

#[test]
fn views_end_where_their_slices_do() {
    let scale = kernel("scale");
    let x = [1.0f32; 6];
    let run = |view: View<'_>| code(scale.launch().scalar("a", 2).input("x", view).run());
    assert_eq!(run(View::new(&x, &[2, 3])), "");
    for view in [
        View::new(&x, &[2, 2]),
        View::new(&x, &[7, 1]),
        View::new(&x, &[usize::MAX, 2]),
        View::strided(&x, &[2, 3], &[4, 1]),
        View::strided(&x, &[2, 3], &[-3, 1]),
        View::strided(&x, &[2, 3], &[3]),
        View::strided(&x, &[usize::MAX, usize::MAX], &[isize::MAX, isize::MAX]),
        View::strided(&x, &[2, 3], &[isize::MIN, isize::MAX]),
    ] {
        let shown = format!("{view:?}");
        assert_eq!(run(view), "E0763", "{shown}");
    }
    // None of its elements is anywhere.
    let nothing: [f32; 0] = [];
    assert_eq!(run(View::new(&nothing, &[0, 3])), "");
    assert_eq!(run(View::new(&nothing, &[1000, 0])), "");
    assert_eq!(run(View::strided(&nothing, &[0, 3], &[5, 7])), "");
}

#[test]
fn mistakes_are_errors_with_codes() {
    assert!(code(Module::of_text("torn.tile", "kernel k(")).starts_with("E0"));
    assert_eq!(code(Module::open("no/such/file.tile")), "E0740");
    let module = Module::of_text("slices.tile", SOURCE).expect("the text is right");
    assert_eq!(module.names().collect::<Vec<_>>(), ["twice", "scale", "columns", "in_columns"]);
    assert_eq!(code(module.kernel("sclae")), "E0743");
    assert!(module.kernel_for("scale", &Options::new().target("a9")).is_err());
    assert!(module.kernel_for("scale", &Options::new().backend("tpu")).is_err());
    let scale = module.kernel("scale").expect("it is there");
    assert_eq!(code(scale.with("BM", 3)), "E0745");
    let x = [1.0f32; 6];
    let given = || scale.launch().scalar("a", 0.5).input("x", View::new(&x, &[2, 3]));
    let error = given().scalar("b", 1).run().expect_err("there is no `b`");
    assert!(error.code() == "E0764" && error.to_string().contains("it has `x`, `a` and `y`"), "{error}");
    assert_eq!(code(given().scalar("x", 1).run()), "E0764");
    assert_eq!(code(given().input("a", &x).run()), "E0764");
    assert_eq!(code(given().input("y", View::new(&x, &[2, 3])).run()), "E0761");
    let error = given().output("y", ViewMut::new(&mut [0.0f32; 6], &[3, 2])).run().expect_err("it is 2 x 3");
    assert!(error.code().starts_with("E07") && error.to_string().contains("slices.tile"), "{error}");
    assert!(error.json()[0].starts_with('{') && !error.report().is_empty());
    let missing = scale.launch().input("x", View::new(&x, &[2, 3])).run().expect_err("`a` is missing");
    assert!(missing.to_string().contains("`a"), "{missing}");
}

#[test]
fn a_kernel_is_looked_into() {
    let scale = kernel("scale");
    assert!(scale.check().expect("it is right").is_empty());
    assert!(scale.stage("ir").expect("there is such a stage").contains("TMULS"));
    assert!(scale.stage("nonsense").is_err());
    assert!(scale.declaration().starts_with("scale(x: in f32[M, N]"), "{scale:?}");
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let launch = || scale.launch().scalar("a", 2.0).input("x", View::new(&x, &[2, 3]));
    launch().compile().unwrap_or_else(|e| panic!("{e}"));
    let verified = launch().verify(1e-6, 0.0).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(verified.iter().map(|v| v.stats.elements).sum::<usize>(), 6);
}

#[test]
fn what_is_printed_is_given_to_the_caller() {
    let text = "kernel k(x: in i32[4], y: out i32[4]) { let t = Vec(x); print(\"seen\"); TSTORE(y, t); }";
    let mut said = String::new();
    let k = Module::of_text("print.tile", text).and_then(|m| m.kernel("k")).unwrap_or_else(|e| panic!("{e}"));
    let launch = k.launch().input("x", &[1i32, 2, 3, 4]).on_print(|text| said.push_str(text));
    launch.run().unwrap_or_else(|e| panic!("{e}"));
    assert!(said.contains("seen"), "{said}");
}

#[test]
fn threads_share_a_kernel() {
    let scale = kernel("scale");
    thread::scope(|scope| {
        for n in 1..=8u16 {
            let scale = scale.clone();
            scope.spawn(move || {
                let rows = usize::from(n % 3) + 1;
                let (x, mut y) = (vec![f32::from(n); rows * 70], vec![0.0f32; rows * 70]);
                for _ in 0..10 {
                    let launch = scale.launch().scalar("a", 3).input("x", View::new(&x, &[rows, 70]));
                    let launch = launch.output("y", ViewMut::new(&mut y, &[rows, 70])).threads(2);
                    launch.run().unwrap_or_else(|e| panic!("{e}"));
                    assert!(y.iter().all(|&y| y == 3.0 * f32::from(n)));
                }
            });
        }
    });
}
