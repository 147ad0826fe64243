//! Every program of the repository on pipes that run at the same time, ordered by its author or by the compiler.

use ptoc::launch::{Backend, CompiledPlan, RunOptions, Schedule};
use ptoc_ir::interp::Order;
use ptoc_ir::tile::SyncMode;
use ptoc_tests::programs::{files, runs};

/// No race, no deadlock, and the bits of one statement after another. A program takes the orders in turn.
#[test]
fn programs_give_the_same_bits_in_every_order() {
    let (mut manual, mut inserted) = (0, 0);
    for path in files() {
        for mut run in runs(&path) {
            let sync = |m: SyncMode| run.plan.steps.iter().filter(|s| s.kernel.sync == m).count();
            manual += sync(SyncMode::Manual);
            inserted += sync(SyncMode::Auto);
            let order = match (manual + inserted) % 4 {
                0 => Order::Program,
                1 => Order::Late,
                n => Order::Random(n as u64 + 10 * inserted as u64),
            };
            let compiled = CompiledPlan::new(&mut run.session, &run.plan, Backend::Interp).expect("nothing to compile");
            let mut plain = run.before.clone();
            let no_pipes = RunOptions::default();
            let failed = |run: &ptoc_tests::programs::Prepared| {
                let found: Vec<_> =
                    run.session.diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
                format!("{} {order:?}: {}", run.name, found.join("\n"))
            };
            if compiled.run(&mut run.session, &mut plain, &no_pipes, &mut |_| {}, None).is_err() {
                panic!("{}", failed(&run));
            }
            let schedule = Schedule { order: Some(order), insert: true, time: true };
            let mut after = run.before.clone();
            let options = RunOptions { schedule, ..RunOptions::default() };
            match compiled.run(&mut run.session, &mut after, &options, &mut |_| {}, None) {
                Err(_) => panic!("{}", failed(&run)),
                Ok(outcome) => assert_eq!(outcome.timed.len(), run.plan.steps.len(), "{}", run.name),
            }
            assert!(plain == after, "{} {order:?}: other bits", run.name);
        }
    }
    assert!(manual >= 10 && inserted > 60, "{manual} {inserted}");
}
