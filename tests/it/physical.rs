//! Physical kernels: valid, printable, and with the results of the kernels that they were made of.

use ptoc_diagnostics::FileId;
use ptoc_driver::backend::INTERP;
use ptoc_driver::launch::{CompiledPlan, RunOptions};
use ptoc_ir::tile::text::{Spans, parse, print};
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{AddrKind, Kernel};
use ptoc_placement::{physical, placement};
use ptoc_tests::programs::{files, kernels, runs};

/// Checks that it keeps the invariants, and that its text comes back.
fn sound(kernel: &Kernel, name: &str) {
    if let Err(errors) = verify(kernel) {
        panic!("{name}: {errors:?}\n{kernel}");
    }
    let text = print(kernel, Spans::Keep);
    let again = parse(&text, FileId(0)).unwrap_or_else(|d| panic!("{name}: {}\n{text}", d.message));
    assert_eq!(print(&again, Spans::Keep), text, "{name}");
    assert!(kernel.tiles.values().all(|t| t.stages == 1 && t.addr != AddrKind::Auto), "{name}");
}

#[test]
fn every_kernel_becomes_physical() {
    let mut count = 0;
    let mut staged = 0;
    for path in files() {
        for k in kernels(&path) {
            let made = physical(&k.placed.kernel, &k.placed.placement, &k.target);
            sound(&made, &k.name);
            count += 1;
            staged +=
                usize::from(made.tiles.values().zip(k.placed.kernel.tiles.values()).any(|(a, b)| a.count != b.count));
        }
    }
    assert!(count > 100 && staged > 8, "only {count} kernels, {staged} with copies");
}

#[test]
fn physical_kernels_compute_the_same() {
    let mut count = 0;
    for path in files() {
        for mut run in runs(&path) {
            let results = |run: &mut ptoc_tests::programs::Prepared| {
                let mut after = run.before.clone();
                let compiled = CompiledPlan::new(&mut run.session, &run.plan, INTERP).expect("it compiles");
                let options = RunOptions::default();
                let done = compiled.run(&mut run.session, &mut after, &options, &mut |_| {}, None);
                assert!(done.is_ok(), "{}: {:?}", run.name, run.session.diagnostics);
                after
            };
            let want = results(&mut run);
            for step in &mut run.plan.steps {
                let target = ptoc_opt::fragments::seen_by(&step.kernel, &run.session.target).into_owned();
                let plan = placement::plan(&step.kernel, &target).expect("it was placed before");
                step.kernel = physical(&step.kernel, &plan, &target).into();
                sound(&step.kernel, &run.name);
            }
            let got = results(&mut run);
            for (want, got) in want.iter().zip(&got) {
                assert_eq!(crate::engine::difference(want, got), None, "{}", run.name);
            }
            count += 1;
        }
    }
    assert!(count > 60, "only {count} runs");
}
