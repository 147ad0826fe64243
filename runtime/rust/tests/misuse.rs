//! What programs do wrong, or do at odd times: it is an error with a code, or it works; nothing else is harmed.

use ptoc::{Error, Kernel, Module, View, ViewMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, mpsc};
use std::thread;

const SOURCE: &str = "
    kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N])
        where N <= 4096
    {
        grid (i in tiles(M, 1), j in tiles(N, 64));
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
    }
    kernel both(x: in f32[N], up: out f32[N], twice: out f32[N]) {
        grid (i in tiles(N, 16));
        let t = Vec(x.tile(i));
        TSTORE(up.tile(i), t + 1.0);
        TSTORE(twice.tile(i), t + t);
    }
    kernel pick(table: in f32[R], at: in i32[N], y: out f32[N]) {
        grid (i in tiles(N, 8));
        for k in 0..i.len { y[i.start + k] = table[index(at[i.start + k])]; }
    }
    kernel says(x: in i32[N], y: out i32[N]) {
        grid (i in tiles(N, 4));
        let t = Vec(x.tile(i));
        print(\"seen\");
        TSTORE(y.tile(i), t);
    }
    kernel columns(x: in f32[M, N], y: out f32[(M, N):(1, M)]) {
        grid (i in tiles(M, 4));
        copy(y.tile(i, _), Vec(x.tile(i, _)));
    }
";

fn module() -> Module {
    Module::of_text("misuse.tile", SOURCE).unwrap_or_else(|e| panic!("{e}"))
}

fn kernel(name: &str) -> Kernel {
    module().kernel(name).unwrap_or_else(|e| panic!("{e}"))
}

fn code(ended: Result<impl Sized, Error>) -> &'static str {
    ended.err().map_or("", |e| e.code())
}

fn is_right(scale: &Kernel, rows: usize, columns: usize, threads: usize) {
    let (x, mut y) = (vec![3.0f32; rows * columns], vec![0.0f32; rows * columns]);
    let launch = scale.launch().scalar("a", 0.5).input("x", View::new(&x, &[rows, columns])).threads(threads);
    launch.output("y", ViewMut::new(&mut y, &[rows, columns])).run().unwrap_or_else(|e| panic!("{e}"));
    assert!(y.iter().all(|y| *y == 1.5), "{rows} x {columns}");
}

#[test]
fn wrong_ranks_and_shapes() {
    let scale = kernel("scale");
    let x = [1.0f32; 64];
    let run = |shape: &[usize], out: &[usize]| {
        let (mut y, launch) = ([0.0f32; 64], scale.launch().scalar("a", 1.0));
        code(launch.input("x", View::new(&x, shape)).output("y", ViewMut::new(&mut y, out)).run())
    };
    assert_eq!(run(&[8, 8], &[8, 8]), "");
    for rank in [1, 3, 4, 9, 70] {
        let mut shape = vec![1; rank];
        shape[rank - 1] = 64;
        assert_eq!(run(&shape, &[8, 8]), "E0751", "{shape:?}");
        assert_eq!(run(&[8, 8], &shape), "E0751", "{shape:?}");
    }
    assert_eq!(run(&[8, 8], &[4, 16]), "E0749");
    assert_eq!(run(&[8, 8], &[64]), "E0751");
    // None of these is the slice.
    for shape in [&[8, 9][..], &[], &[0, 8], &[usize::MAX, usize::MAX], &[1 << 32, 1 << 32]] {
        assert_eq!(run(shape, &[8, 8]), "E0763", "{shape:?}");
    }
    is_right(&scale, 8, 8, 1);
}

#[test]
fn outputs_that_are_inputs_of_others() {
    // Slices of one vector that touch share nothing.
    let both = kernel("both");
    let mut memory = vec![1.0f32; 300];
    let (x, rest) = memory.split_at_mut(100);
    let (up, twice) = rest.split_at_mut(100);
    x.iter_mut().zip(0u8..).for_each(|(x, n)| *x = f32::from(n));
    both.launch().input("x", &*x).output("up", &mut *up).output("twice", twice).run().unwrap_or_else(|e| panic!("{e}"));
    assert!(memory[..100].iter().zip(&memory[100..200]).all(|(x, up)| x + 1.0 == *up));
    assert!(memory[..100].iter().zip(&memory[200..]).all(|(x, twice)| x * 2.0 == *twice));
    // What is given twice counts once, and an output is no input.
    let (mut a, mut b) = (vec![0.0f32; 100], vec![9.0f32; 100]);
    let launch = both.launch().input("x", &memory[..100]).output("up", &mut a).output("up", &mut b);
    let outputs = launch.run().unwrap_or_else(|e| panic!("{e}"));
    assert!(a == [0.0; 100] && b == memory[100..200] && outputs.arrays().len() == 1);
    assert_eq!(code(both.launch().output("x", &mut b).run()), "");
}

#[test]
fn strides_that_do_not_fit() {
    let (scale, columns) = (kernel("scale"), kernel("columns"));
    let x = [1.0f32; 64];
    for (shape, strides) in [(&[4, 8], &[16, 1]), (&[4, 8], &[1, 4]), (&[4, 8], &[0, 1]), (&[4, 8], &[1, 1])] {
        let launch = scale.launch().scalar("a", 1.0).input("x", View::strided(&x, shape, strides));
        assert_eq!(code(launch.run()), "E0762", "{strides:?}");
    }
    // Elements of an output that lie on each other would be written by several threads.
    for strides in [[0, 0], [0, 1], [1, 0], [1, 1], [8, 1]] {
        let mut y = [0.0f32; 64];
        let launch = columns.launch().input("x", View::new(&x[..32], &[4, 8]));
        let launch = launch.output("y", ViewMut::strided(&mut y, &[4, 8], &strides));
        assert_eq!(code(launch.run()), "E0762", "{strides:?}");
    }
}

#[test]
fn constants_and_scalars_that_mean_nothing() {
    let scale = kernel("scale");
    let x = [1.0f32; 64];
    let long = "9".repeat(300);
    for text in [
        "",
        " ",
        ")",
        "1; 2",
        "M",
        "-1",
        "1.5",
        "nan",
        "\0",
        "0x",
        "💥",
        "170141183460469231731687303715884105728",
        &long,
    ] {
        let constant = scale.with("N", text);
        let ended = constant.and_then(|k| k.launch().scalar("a", 1).input("x", View::new(&x, &[8, 8])).run());
        assert!(code(ended).starts_with('E'), "{text:?}");
    }
    let given = |launch: ptoc::Launch<'_>| code(launch.input("x", View::new(&[1.0f32; 64], &[8, 8])).run());
    assert_eq!(given(scale.launch().scalar("a", f64::MAX)), "E0764");
    assert_eq!(given(scale.launch().scalar("a", true)), "E0764");
    for name in ["", "A", "a ", "x\0"] {
        assert_eq!(given(scale.launch().scalar(name, 1.0)), "E0764", "{name:?}");
    }
    for a in [f64::NAN, f64::INFINITY, -0.0, 1e-300] {
        let launch = scale.launch().scalar("a", a).input("x", View::new(&x, &[8, 8]));
        let outputs = launch.run().unwrap_or_else(|e| panic!("{e}"));
        let y: &[f32] = outputs.array("y").and_then(|y| y.as_slice()).expect("it is made");
        assert!(y.iter().all(|y| y.to_bits() == (a as f32).to_bits() || y.is_nan() && a.is_nan()), "{a}");
    }
}

#[test]
fn checks_that_fail_leave_a_kernel_usable() {
    let (scale, pick) = (kernel("scale"), kernel("pick"));
    let (wide, table) = (vec![1.0f32; 5000], [1.0f32, 2.0, 3.0]);
    for threads in [1, 2, 7] {
        let launch = scale.launch().scalar("a", 1.0).input("x", View::new(&wide, &[1, 5000])).threads(threads);
        assert_eq!(code(launch.run()), "PA-1105");
        let mut at = vec![1i32; 300];
        at[277] = 3;
        let launch = pick.launch().input("table", &table).input("at", &at).threads(threads);
        let error = launch.run().expect_err("3 is no index");
        assert!(error.code().starts_with("PA-") && error.to_string().contains('3'), "{error}");
        at[277] = 2;
        let outputs = pick.launch().input("table", &table).input("at", &at).threads(threads).run();
        let outputs = outputs.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(outputs.array("y").and_then(|y| y.as_slice::<f32>()).map(|y| y[277]), Some(3.0));
    }
}

#[test]
fn any_number_of_threads() {
    let scale = kernel("scale");
    for threads in [0, 1, 2, 3, 64, 200, usize::MAX] {
        is_right(&scale, 40, 130, threads);
    }
    // Not as many as there are blocks.
    is_right(&scale, 4000, 1, usize::MAX);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let threads = status.lines().find_map(|l| l.strip_prefix("Threads:")?.trim().parse::<usize>().ok());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    assert!(threads.is_none_or(|n| n < 600.max(2 * cores)), "{threads:?}");
}

/// Ten threads begin at once with a kernel that nobody has compiled, of several sizes.
#[test]
fn ten_threads_at_once() {
    let (scale, barrier) = (kernel("scale"), Barrier::new(10));
    thread::scope(|scope| {
        for n in 0..10 {
            let (scale, barrier) = (scale.clone(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 1..6 {
                    is_right(&scale, n % 3 + round, 33 * (n % 4 + 1), n % 4);
                }
            });
        }
    });
}

/// Modules, kernels, launches and outputs may be dropped in any order, and on any thread.
#[test]
fn what_is_dropped_first_does_not_matter() {
    let x = vec![2.0f32; 12];
    let (first, second, outputs) = {
        let scale = kernel("scale");
        let launch = |scale: &Kernel| scale.launch().scalar("a", 0.75).input("x", View::new(&x, &[3, 4]));
        let (first, second) = (launch(&scale), launch(&scale.with("N", 4).unwrap_or_else(|e| panic!("{e}"))));
        let outputs = launch(&scale).run().unwrap_or_else(|e| panic!("{e}"));
        (first, second, outputs)
    };
    drop(second);
    let again = thread::scope(|scope| scope.spawn(move || first.run()).join().expect("it ends"));
    for outputs in [again.unwrap_or_else(|e| panic!("{e}")), outputs] {
        assert_eq!(outputs.array("y").and_then(|y| y.as_slice()), Some(&[1.5f32; 12][..]));
    }
    // A report still has the text that it shows.
    let error = { kernel("scale").launch().input("x", &x).run().expect_err("`x` has one dimension") };
    assert!(error.to_string().contains("misuse.tile"), "{error}");
    // Threads that end in the middle of it.
    let (to, from) = mpsc::channel();
    thread::spawn(move || to.send(kernel("scale")).expect("somebody waits")).join().expect("it ends");
    is_right(&from.recv().expect("it was sent"), 4, 4, 2);
}

/// What a launch prints is given to a function of the caller, which may panic, or launch.
#[test]
fn functions_that_print_may_do_what_they_like() {
    let (says, scale) = (kernel("says"), kernel("scale"));
    let x = [7i32; 40];
    for threads in [1, 3] {
        let launch = says.launch().input("x", &x).threads(threads).on_print(|_| panic!("no more paper"));
        let ended = catch_unwind(AssertUnwindSafe(|| launch.run().map(drop)));
        assert!(ended.is_err(), "the panic is the caller's");
        let mut heard = 0;
        let mut y = [0i32; 40];
        let launch = says.launch().input("x", &x).output("y", &mut y).threads(threads).on_print(|_| {
            heard += 1;
            is_right(&scale, 5, 70, threads);
            says.launch().input("x", &[1, 2, 3]).threads(threads).on_print(|_| {}).run().expect("a launch inside");
        });
        launch.run().unwrap_or_else(|e| panic!("{e}"));
        assert!(heard > 0 && y == x, "{heard}");
    }
}
