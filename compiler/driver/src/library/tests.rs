use super::{Argument, ArrayView, Call, Callable, Library, Options, Report, Scalar};
use crate::defs::Definition;
use ptoc_tensor::DType;
use std::path::Path;
use std::sync::Arc;
use std::thread;

const SOURCE: &str = "
    kernel scale<const BN = 32>(x: in f32[M, N], a: f32, y: out f32[M, N]) {
        grid (i in tiles(M, 4), j in tiles(N, BN));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
    }
    kernel columns(x: in f32[(M, N):(1, M)], y: out f32[M, N]) {
        grid (i in tiles(M, 4));
        TSTORE(y.tile(i, _), Vec(x.tile(i, _)));
    }
    program twice(x: in f32[M, N], y: out f32[M, N]) {
        let t = tensor f32[M, N];
        scale(x, 2.0, t);
        scale(t, 2.0, y);
    }
";

fn callable(name: &str, options: Options) -> Callable {
    let library = Library::of_text(Path::new("library.tile"), SOURCE.to_owned()).expect("the text is right");
    Callable::new(&Arc::new(library), name, Vec::new(), options).expect("there is such a kernel")
}

fn array(data: &mut [f32], shape: &[usize], strides: Option<&[isize]>) -> Option<Argument> {
    let view = ArrayView::new(DType::F32, shape.to_vec(), strides, data.as_mut_ptr().cast(), false);
    Some(Argument::Array(view))
}

fn run(callable: &Callable, arguments: Vec<Option<Argument>>) -> Result<(), Report> {
    let call = Call { arguments, stream: 0 };
    let code = callable.specialize(&call)?;
    // SAFETY: the arrays are the caller's slices, which are borrowed until the call is over.
    unsafe { code.run(callable, &call, 2, &mut |_| {}) }.map(drop)
}

#[test]
fn a_kernel_works_in_place_and_is_compiled_once() {
    let scale = callable("scale", Options::default());
    let (mut x, mut y) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0f32; 6]);
    for a in [2, 3] {
        let a = Some(Argument::Scalar(Scalar::Int(a)));
        let call = Call { arguments: vec![array(&mut x, &[2, 3], None), a, None], stream: 0 };
        let first = scale.specialize(&call).expect("it compiles");
        assert!(first.missing_outputs(&call).eq([(2, DType::F32, &[2, 3][..])]));
        assert!(Arc::ptr_eq(&first, &scale.specialize(&call).expect("it is there")));
    }
    run(
        &scale,
        vec![array(&mut x, &[2, 3], None), Some(Argument::Scalar(Scalar::Float(0.5))), array(&mut y, &[2, 3], None)],
    )
    .expect("it runs");
    assert_eq!(y, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
}

#[test]
fn programs_layouts_and_other_backends_agree() {
    for backend in [None, Some("interp".to_owned())] {
        let options = Options { backend, ..Options::default() };
        let (mut x, mut y) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0f32; 6]);
        run(&callable("twice", options.clone()), vec![array(&mut x, &[2, 3], None), array(&mut y, &[2, 3], None)])
            .expect("it runs");
        assert_eq!(y, [4.0, 8.0, 12.0, 16.0, 20.0, 24.0]);
        let columns = callable("columns", options);
        run(&columns, vec![array(&mut x, &[2, 3], Some(&[1, 2])), array(&mut y, &[2, 3], None)]).expect("it runs");
        assert_eq!(y, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        let refused = run(&columns, vec![array(&mut x, &[2, 3], None), array(&mut y, &[2, 3], None)]);
        assert_eq!(refused.expect_err("the strides are others").code().expect("it has one").as_str(), "E0762");
    }
}

#[test]
fn memory_that_is_shared_or_read_only_is_refused() {
    let twice = callable("twice", Options::default());
    let mut x = [0.0f32; 9];
    let at = x.as_mut_ptr();
    let view = |first: usize, read_only| {
        let data = at.wrapping_add(first).cast();
        Some(Argument::Array(ArrayView::new(DType::F32, vec![2, 2], None, data, read_only)))
    };
    let code = |x, y| run(&twice, vec![x, y]).err().and_then(|e| e.code()).map(|code| code.as_str());
    assert_eq!(code(view(0, false), view(3, false)), Some("E0760"));
    assert_eq!(code(view(0, false), view(4, true)), Some("E0761"));
    assert_eq!(code(view(0, true), view(4, false)), None);
}

#[test]
fn mistakes_are_reports() {
    let torn = Library::of_text(Path::new("torn.tile"), "kernel k(".to_owned()).expect_err("it is torn");
    assert!(torn.to_string().contains("torn.tile"), "{torn}");
    let scale = callable("scale", Options::default());
    let unknown = scale.with(vec![Definition { name: "BM".into(), value: "3".into() }]).expect_err("there is no BM");
    assert_eq!(unknown.code().expect("it has one").as_str(), "E0745");
    let mut x = [0.0f32; 6];
    let missing = run(&scale, vec![array(&mut x, &[2, 3], None), None, None]).expect_err("`a` is missing");
    assert!(missing.to_string().contains("`a=..`") && !missing.to_string().contains("-D"), "{missing}");
}

#[test]
fn threads_share_a_kernel() {
    let scale = callable("scale", Options::default());
    thread::scope(|scope| {
        for n in 1..=10u16 {
            let scale = &scale;
            scope.spawn(move || {
                let rows = usize::from(n % 3) + 1;
                let (mut x, mut y) = (vec![f32::from(n); rows * 70], vec![0.0f32; rows * 70]);
                for _ in 0..20 {
                    let arguments = vec![
                        array(&mut x, &[rows, 70], None),
                        Some(Argument::Scalar(Scalar::Int(3))),
                        array(&mut y, &[rows, 70], None),
                    ];
                    run(scale, arguments).expect("it runs");
                    assert!(y.iter().all(|&y| y == 3.0 * f32::from(n)));
                }
            });
        }
    });
}

#[test]
fn new_scalars_are_no_new_code() {
    let scale = callable("scale", Options::default());
    let (mut x, mut y) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0f32; 6]);
    let mut call = |a: Scalar| {
        let arguments = vec![array(&mut x, &[2, 3], None), Some(Argument::Scalar(a)), array(&mut y, &[2, 3], None)];
        let call = Call { arguments, stream: 0 };
        let code = scale.specialize(&call)?;
        // SAFETY: the arrays are this function's.
        unsafe { code.run(&scale, &call, 1, &mut |_| {}) }?;
        Ok::<_, Report>((code, y[5]))
    };
    let (first, result) = call(Scalar::Float(0.5)).expect("it runs");
    assert_eq!(result, 3.0);
    for (a, result) in [(Scalar::Int(2), 12.0), (Scalar::Float(f64::INFINITY), f32::INFINITY), (Scalar::Int(0), 0.0)] {
        let (code, seen) = call(a).expect("it runs");
        assert!(Arc::ptr_eq(&first, &code));
        assert_eq!(seen, result);
    }
    let refused = call(Scalar::Float(1e39)).expect_err("f32 has no such number");
    assert_eq!(refused.code().expect("it has one").as_str(), "E0764");
    assert!(refused.to_string().contains("3.4028235e38"), "{refused}");
    assert_eq!(call(Scalar::Float(1.5)).expect("it runs").1, 9.0);
}
