//! Insertion where it is hard: nested pipelines, branches around loops, loops that are left early, and targets with few
//! flags.
//!
//! Every kernel is taken with the flags that the target has and with as few as one from each pipe to each other. The
//! search for hazards and the traps of the interpreter, which share no code with the insertion, say whether the pipes
//! are in order.

use ptoc_driver::backend::INTERP;
use ptoc_driver::launch::{CompiledPlan, RunOptions, Schedule};
use ptoc_hazards::check;
use ptoc_interp::Order;
use ptoc_ir::tile::{Kernel, SyncMode};
use ptoc_isa::Target;
use ptoc_opt::sync::{Report, insert_and_report};
use ptoc_placement::{physical, placement};
use ptoc_tests::programs::{Prepared, runs_of};
use ptoc_tests::trace::faults;
use std::collections::BTreeMap;
use std::path::Path;

/// With a name for each. What they compute does not matter, so that there is no `ensures`.
const KERNELS: &[(&str, &str)] = &[
    (
        // A store from the accumulator in the middle of its loop.
        "acc_store",
        "// run: acc_store interp M=64 N=64 K=300
        kernel acc_store(A: in f16[M, K], B: in f16[K, N], C: out f32[M, N], D: out f32[M, N]) {
            grid (m in tiles(M, 64), n in tiles(N, 64));
            let acc = tile Acc<f32, m, n>;
            acc = 0.0;
            pipeline(stages = 2) for k in tiles(K, 64) {
                let a = Left(A.tile(m, k));
                let b = Right(B.tile(k, n));
                TMATMUL_ACC(acc, acc, a, b);
                if k.index == 1 { TSTORE(D.tile(m, n), acc); }
            }
            TSTORE(C.tile(m, n), acc);
        }",
    ),
    (
        // Two pipelines in one, the second not in every iteration.
        "nested",
        "// run: nested interp M=100 N=80
        kernel nested(x: in f32[M, N], y: in f32[M, N], z: out f32[M, N]) {
            pipeline(stages = 2) for i in tiles(M, 32) {
                pipeline(stages = 2) for j in tiles(N, 32) { TSTORE(z.tile(i, j), 2.0 * Vec(x.tile(i, j))); }
                if i.index % 2 == 0 {
                    pipeline(stages = 2) for j in tiles(N, 32) { TSTORE(z.tile(i, j), 3.0 * Vec(y.tile(i, j))); }
                }
            }
        }",
    ),
    (
        "nested_acc",
        "// run: nested_acc interp M=64 N=130 K=130
        kernel nested_acc(A: in f16[M, K], B: in f16[K, N], C: out f32[M, N], D: out f32[M, N]) {
            grid (m in tiles(M, 64));
            pipeline(stages = 2) for n in tiles(N, 64) {
                let acc = tile Acc<f32, m, n>;
                acc = 0.0;
                pipeline(stages = 2) for k in tiles(K, 64) {
                    TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n)));
                    if k.index == 1 { TSTORE(D.tile(m, n), acc); }
                }
                if n.index % 2 == 0 {
                    pipeline(stages = 2) for k in tiles(K, 64) {
                        TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n)));
                    }
                }
                TSTORE(C.tile(m, n), acc);
            }
        }",
    ),
    (
        "left_early",
        "// run: left_early interp M=64 N=700
        kernel left_early(x: in f32[M, N], z: out f32[M, N]) {
            grid (i in tiles(M, 64));
            pipeline(stages = 2) for j in tiles(N, 64) {
                let a = Vec(x.tile(i, j));
                if j.index == 1 { continue; }
                let b = 2.0 * a;
                if j.index == 4 { break; }
                TSTORE(z.tile(i, j), b);
            }
        }",
    ),
    (
        // What a function leaves out depends on the iteration.
        "returns",
        "// run: returns interp M=64 N=300
        fn store(z: view, t: in Vec<f32, p, q>, i: block, j: block) {
            TSTORE(z.tile(i, j), 2.0 * t);
            if j.index % 2 == 1 { return; }
            TSTORE(z.tile(i, j), 3.0 * t);
        }
        kernel returns(x: in f32[M, N], z: out f32[M, N]) {
            grid (i in tiles(M, 64));
            pipeline(stages = 2) for j in tiles(N, 64) { store(z, Vec(x.tile(i, j)), i, j); }
        }",
    ),
    (
        "until",
        "// run: until interp M=64 N=200
        kernel until(x: in f32[M, N], z: out f32[M, N]) {
            grid (i in tiles(M, 64), j in tiles(N, 64));
            let t = tile Vec<f32, i, j>;
            t = Vec(x.tile(i, j));
            var n = 0;
            while n < 3 {
                t = 2.0 * t + Vec(x.tile(i, j));
                TSTORE(z.tile(i, j), t);
                n += 1;
            }
        }",
    ),
    (
        // Loops that follow each other: a flag of the first may stay raised for the next.
        "row",
        "// run: row interp M=64 N=200
        kernel row(x: in f32[M, N], y: out f32[M, N], z: out f32[M, N]) {
            grid (i in tiles(M, 64));
            pipeline(stages = 2) for j in tiles(N, 64) { TSTORE(y.tile(i, j), 2.0 * Vec(x.tile(i, j))); }
            pipeline(stages = 2) for j in tiles(N, 64) { TSTORE(z.tile(i, j), 3.0 * Vec(x.tile(i, j))); }
            pipeline(stages = 2) for j in tiles(N, 64) { TSTORE(y.tile(i, j), 4.0 * Vec(x.tile(i, j))); }
        }",
    ),
    (
        // Several carried around one loop.
        "several",
        "// run: several interp M=64 N=200
        kernel several(a: in f32[M, N], b: in f32[M, N], c: in f32[M, N], z: out f32[M, N]) {
            grid (i in tiles(M, 32));
            pipeline(stages = 2) for j in tiles(N, 32) {
                let p = Vec(a.tile(i, j));
                let q = Vec(b.tile(i, j));
                let r = Vec(c.tile(i, j));
                TSTORE(z.tile(i, j), p * q + r);
            }
        }",
    ),
];

fn run(name: &str) -> Prepared {
    let (_, text) = KERNELS.iter().find(|(n, _)| *n == name).expect("a kernel");
    let mut runs = runs_of(Path::new(&format!("{name}.tile")), text);
    assert_eq!(runs.len(), 1, "{name} does not compile");
    runs.remove(0)
}

/// The kernel with its order, for a target with at most so many flags from one pipe to another.
fn with_flags(run: &Prepared, flags: u32) -> (Kernel, Report, Target) {
    let mut target = run.session.target.clone();
    target.pipes.flags = flags.min(target.pipes.flags);
    let kernel = &run.plan.steps[0].kernel;
    assert_eq!(kernel.sync, SyncMode::Auto);
    let plan = placement::plan(kernel, &target).expect("it was placed before");
    let (made, report) = insert_and_report(physical(kernel, &plan, &target), &target);
    (made, report, target)
}

fn most_flags(kernel: &Kernel) -> u32 {
    let mut ways = BTreeMap::new();
    for e in kernel.events.values() {
        *ways.entry((e.from, e.to)).or_insert(0) += e.count;
    }
    ways.into_values().max().unwrap_or(0)
}

#[test]
fn few_flags_are_enough() {
    for (name, _) in KERNELS {
        let mut run = run(name);
        for flags in [8, 4, 2, 1] {
            let (made, report, target) = with_flags(&run, flags);
            println!("{name} with {flags}: {report:?}");
            if std::env::var_os("SHOW").is_some_and(|s| s.to_string_lossy() == format!("{name}{flags}")) {
                println!("{made}");
            }
            assert_eq!((report.missing, report.untried), (0, false), "{name} with {flags}\n{made}");
            assert!(most_flags(&made) <= flags, "{name} with {flags}\n{made}");
            let said: Vec<_> = check(&made, &target).iter().map(|d| d.message.clone()).collect();
            assert_eq!(said, [""; 0], "{name} with {flags}\n{made}");
            let found = run.first_launch(|_, _, launch| faults(&made, &target, launch).0).expect("a launch");
            assert_eq!(found, [""; 0], "{name} with {flags}\n{made}");

            run.session.target = target;
            let orders =
                [None, Some(Order::Program), Some(Order::Late), Some(Order::Random(1)), Some(Order::Random(2))];
            let results = orders.map(|order| {
                let mut after = run.before.clone();
                let compiled = CompiledPlan::new(&mut run.session, &run.plan, INTERP).expect("it compiles");
                let schedule = Schedule { order, insert: true, time: false };
                let options = RunOptions { schedule, ..RunOptions::default() };
                let done = compiled.run(&mut run.session, &mut after, &options, &mut |_| {}, None);
                assert!(done.is_ok(), "{name} with {flags} in {order:?}: {:?}", run.session.diagnostics);
                after
            });
            assert!(results.iter().all(|r| *r == results[0]), "{name} with {flags}");
        }
    }
}

/// What each step of [`few_flags_are_enough`] makes of a kernel: flags, barriers and where all pipes meet.
#[test]
fn each_step_does_what_it_says() {
    let made = |name: &str, flags| {
        let (made, report, _) = with_flags(&run(name), flags);
        (report.flags, report.barriers, report.fallbacks.len(), made)
    };
    let counts = |name: &str, flags| {
        let (flags, barriers, meets, _) = made(name, flags);
        (flags, barriers, meets)
    };
    // Three loops with two flags for each of four ways. With four all that is carried stays raised from loop to loop;
    // with two what is not carried is shared as well.
    assert_eq!([8, 4, 2].map(|n| counts("row", n)), [(24, 0, 0), (16, 0, 0), (8, 0, 0)]);
    // What p and r say to MTE2 is one after they are joined, and what q and r say to V.
    assert_eq!(counts("several", 4), (12, 2, 0));
    assert_eq!(counts("several", 2), (7, 2, 0));
    // Two arrays of two become flags with a way back, which is shared: the copies of the tiles stay.
    let (flags, barriers, meets, kernel) = made("acc_store", 2);
    assert_eq!((flags, barriers, meets), (11, 0, 0), "{kernel}");
    // A branch around an inner pipeline: its flags stay raised around the outer one, and nowhere all pipes meet.
    assert_eq!(counts("nested", 8), (24, 0, 0));
    // Iterations that end early: one barrier, with the reason.
    let (_, report, _) = with_flags(&run("left_early"), 8);
    let reasons: Vec<_> = report.fallbacks.iter().map(|f| f.reason).collect();
    assert_eq!(reasons, ["an iteration may end early, so that a flag may not be raised"]);
    // A function that returns early ends no iteration.
    assert_eq!(counts("returns", 8), (10, 0, 0));
}

/// Inner pipelines under conditions, more than are worth it: beyond the budget there are more barriers than it takes,
/// and nothing is missing. What the analyses go over is bounded, whatever the kernel.
#[test]
fn a_budget_keeps_the_order() {
    let inner = |k: u32| {
        let store = format!("TSTORE(z.tile(i, j), {k}.0 * Vec(x.tile(i, j)));");
        format!("if i.index % {} == 0 {{ pipeline(stages = 2) for j in tiles(N, 16) {{ {store} }} }}", 2 + k % 3)
    };
    let text = |n: u32| {
        let body: String = (0..n).map(inner).collect();
        format!(
            "// run: big interp M=80 N=40
            kernel big(x: in f32[M, N], z: out f32[M, N]) {{
                pipeline(stages = 2) for i in tiles(M, 16) {{ {body} }}
            }}"
        )
    };
    for n in [2, 8] {
        let run = runs_of(Path::new("big.tile"), &text(n)).remove(0);
        let (made, report, target) = with_flags(&run, 8);
        println!("{n}: {report:?}");
        assert_eq!(report.missing, 0, "{made}");
        assert_eq!(report.untried, n == 8, "{report:?}");
        // A budget for placing, one for the rest, and a few analyses that began within them or have to be.
        assert!(report.cost < 60_000_000, "{report:?}");
        let found = run.first_launch(|_, _, launch| faults(&made, &target, launch).0).expect("a launch");
        assert_eq!(found, [""; 0], "{made}");
    }
}

/// The listings of `spec/pipes.md`, of a file of the repository or of the kernel right before it.
#[test]
fn listings_of_the_specification_are_what_the_command_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("spec/pipes.md")).expect("UTF-8");
    let directory = tempfile::tempdir().expect("a directory");
    let (mut kernel, mut count) = ("", 0);
    for block in page.split("```").skip(1).step_by(2) {
        if let Some(text) = block.strip_prefix("tile\n") {
            kernel = text;
        }
        let Some((words, shown)) = block.strip_prefix("\n$ ptoc ").and_then(|b| b.split_once('\n')) else { continue };
        if !words.ends_with("--stage sync") {
            continue;
        }
        let words: Vec<&str> = words.split(' ').collect();
        let mut path = root.join(words[1]);
        if !path.exists() {
            path = directory.path().join(words[1]);
            std::fs::write(&path, kernel).expect("writable");
        }
        let mut words: Vec<_> = words.iter().map(std::ffi::OsStr::new).collect();
        words[1] = path.as_os_str();
        let done = crate::engine::command(&words);
        let (listing, _) = done.out.split_once("\n\n").unwrap_or_else(|| panic!("{words:?}: {}", done.err));
        assert_eq!(format!("{listing}\n"), shown);
        count += 1;
    }
    assert!(count >= 2, "{count} listings");
}
