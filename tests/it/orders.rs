//! Every program of the repository on pipes that run at the same time, ordered by its author or by the compiler.

use ptoc_driver::backend::INTERP;
use ptoc_driver::launch::{CompiledPlan, RunOptions, Schedule};
use ptoc_interp::Order;
use ptoc_ir::tile::SyncMode;
use ptoc_tests::programs::{Prepared, files, runs};

/// Bytes of arguments up to which a run takes all orders; a longer one takes them in turn.
const SMALL: usize = 64 << 10;

/// Bytes up to which a run on units in memory takes its turn. They have no pipes, so all orders are one there; `ptoc
/// test` has the rest.
const LONG: usize = 1 << 20;

const ORDERS: [Order; 5] = [Order::Program, Order::Late, Order::Random(1), Order::Random(2), Order::Random(3)];

/// No race, no deadlock, and the bits of one statement after another.
#[test]
fn programs_give_the_same_bits_in_every_order() {
    let (mut manual, mut inserted, mut tried, mut all) = (0, 0, 0, 0);
    for path in files() {
        for mut run in runs(&path) {
            let sync = |m: SyncMode| run.plan.steps.iter().filter(|s| s.kernel.sync == m).count();
            manual += sync(SyncMode::Manual);
            inserted += sync(SyncMode::Auto);
            let (bytes, pim) =
                (run.before.iter().map(|t| t.bytes().len()).sum::<usize>(), run.session.target.has_units());
            if pim && bytes > LONG {
                continue;
            }
            let small = bytes <= SMALL && !pim;
            all += usize::from(small);
            let turn = (manual + inserted) % ORDERS.len();
            let compiled = CompiledPlan::new(&mut run.session, &run.plan, INTERP).expect("nothing to compile");
            let mut plain = run.before.clone();
            let no_pipes = RunOptions::default();
            let failed = |run: &Prepared, order: Option<Order>| -> ! {
                let found = run.session.diagnostics.iter().map(|d| format!("{} {}", d.code, d.message));
                panic!("{} {order:?}: {}", run.name, found.collect::<Vec<_>>().join("\n"))
            };
            if compiled.run(&mut run.session, &mut plain, &no_pipes, &mut |_| {}, None).is_err() {
                failed(&run, None);
            }
            for (n, order) in ORDERS.into_iter().enumerate() {
                if n != turn && !small {
                    continue;
                }
                tried += 1;
                let schedule = Schedule { order: Some(order), insert: true, time: true };
                let mut after = run.before.clone();
                let options = RunOptions { schedule, ..RunOptions::default() };
                match compiled.run(&mut run.session, &mut after, &options, &mut |_| {}, None) {
                    Err(_) => failed(&run, Some(order)),
                    // Units in memory and GPUs have no pipes to time.
                    Ok(outcome) => {
                        let piped = !pim && run.session.target.gpu.is_none();
                        let timed = if piped { run.plan.steps.len() } else { 0 };
                        // What a program decides while it runs is launched as often as it says.
                        let decides = run.plan.order.len() != run.plan.steps.len();
                        assert!(decides || outcome.timed.len() == timed, "{}", run.name);
                    }
                }
                assert!(plain == after, "{} {order:?}: other bits", run.name);
            }
        }
    }
    println!("{manual} manual and {inserted} other launches, {all} runs in all orders, {tried} in all");
    assert!(manual >= 10 && inserted > 60 && all > 40, "{manual} {inserted} {all}");
}
