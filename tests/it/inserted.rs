//! Inserted synchronisation: complete, in every program and run. That it is minimal: `minimal`; that it has no effect
//! on results: `orders`.

use ptoc_diagnostics::FileId;
use ptoc_ir::tile::text::{Spans, parse, print};
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{Event, Kernel, Op, Stmt, SyncMode, SyncOp};
use ptoc_isa::Target;
use ptoc_opt::sync::{insert, insert_and_report};
use ptoc_placement::{physical, placement};
use ptoc_tests::programs::{files, kernels, runs};
use ptoc_tests::trace::faults;

fn sound(kernel: &Kernel, name: &str) {
    if let Err(errors) = verify(kernel) {
        panic!("{name}: {errors:?}\n{kernel}");
    }
    let text = print(kernel, Spans::Keep);
    let again = parse(&text, FileId(0)).unwrap_or_else(|d| panic!("{name}: {}\n{text}", d.message));
    assert_eq!(print(&again, Spans::Keep), text, "{name}");
}

#[test]
fn all_programs_are_ordered() {
    let mut count = 0;
    for path in files() {
        for k in kernels(&path) {
            let bytes = physical(&k.placed.kernel, &k.placed.placement, &k.target);
            let begin = std::time::Instant::now();
            let (made, report) = insert_and_report(bytes, &k.target);
            let name = k.name.rsplit('/').next().unwrap_or_default();
            if std::env::var_os("SHOW").is_some_and(|w| k.name.contains(&*w.to_string_lossy())) {
                println!("{made}");
            }
            println!("{name}: {:?} {report:?}", begin.elapsed());
            sound(&made, &k.name);
            assert_eq!(report.missing, 0, "{}\n{made}", k.name);
            // As spec/pipes.md says under Limits.
            assert!(report.cost < 6_000_000 && !report.untried, "{}: {}", k.name, report.cost);
            count += 1;
        }
    }
    assert!(count > 100, "only {count}");
}

/// The placed kernel of a run about bytes, and with order.
fn ordered(kernel: &Kernel, target: &Target) -> (Kernel, Kernel) {
    let plan = placement::plan(kernel, target).expect("it was placed before");
    let bytes = physical(kernel, &plan, target);
    (bytes.clone(), insert(bytes, target))
}

#[test]
fn no_access_of_a_run_comes_too_early() {
    let (mut count, mut unordered) = (0, 0);
    for path in files() {
        for run in runs(&path) {
            let done = run.first_launch(|kernel, target, launch| {
                if kernel.sync != SyncMode::Auto {
                    return Vec::new();
                }
                let (bytes, made) = ordered(kernel, target);
                let (found, _) = faults(&made, target, launch);
                assert_eq!(found, [""; 0], "{}\n{made}", run.name);
                // The trace does find what is not there.
                faults(&bytes, target, launch).0
            });
            count += usize::from(done.is_some());
            unordered += usize::from(done.is_some_and(|found| !found.is_empty()));
        }
    }
    println!("{count} runs, {unordered} of them unordered without");
    assert!(count > 60 && 3 * unordered > 2 * count, "only {count}, {unordered} unordered");
}

/// Against a flag for each pair of statements that need an order: no kernel takes more.
#[test]
fn there_are_fewer_flags_than_pairs() {
    let (mut flags, mut pairs) = (0, 0);
    for path in files() {
        for k in kernels(&path) {
            if k.placed.kernel.sync != SyncMode::Auto {
                continue;
            }
            let (made, report) =
                insert_and_report(physical(&k.placed.kernel, &k.placed.placement, &k.target), &k.target);
            assert!(made.events.len() <= report.pairs, "{}: {} of {}\n{made}", k.name, made.events.len(), report.pairs);
            flags += made.events.len();
            pairs += report.pairs;
        }
    }
    println!("{flags} flags, arrays as one, for {pairs} pairs");
    assert!(flags > 500 && flags < pairs, "{flags} of {pairs}");
}

/// What can be left out: an event, or the n-th barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Flag(Event),
    Barrier(usize),
}

pub fn parts(kernel: &Kernel) -> Vec<Part> {
    let mut barriers = 0;
    walk(&mut kernel.body.clone(), &mut |op| {
        barriers += usize::from(matches!(op, SyncOp::Barrier(_)));
        true
    });
    kernel.events.keys().map(Part::Flag).chain((0..barriers).map(Part::Barrier)).collect()
}

pub fn remove(kernel: &Kernel, part: Part) -> Kernel {
    let (mut out, mut barrier) = (kernel.clone(), 0);
    walk(&mut out.body, &mut |op| match op {
        SyncOp::Barrier(_) => {
            barrier += 1;
            part != Part::Barrier(barrier - 1)
        }
        op => op.event().is_none_or(|e| part != Part::Flag(e.event)),
    });
    out
}

/// Keeps the synchronisations for which `keep` holds.
fn walk(region: &mut Vec<Stmt>, keep: &mut dyn FnMut(&SyncOp) -> bool) {
    region.retain(|stmt| if let Op::Sync(sync) = &stmt.op { keep(sync) } else { true });
    for stmt in region {
        match &mut stmt.op {
            Op::For(f) => walk(&mut f.body, keep),
            Op::If(i) => {
                walk(&mut i.then, keep);
                walk(&mut i.els, keep);
            }
            Op::While(w) => {
                walk(&mut w.head, keep);
                walk(&mut w.body, keep);
            }
            Op::Scope(s) => walk(&mut s.body, keep),
            _ => {}
        }
    }
}

/// The kernels of a text on a target, made physical and ordered.
fn inserted(text: &str, target: &str) -> Vec<Kernel> {
    let kernels = ptoc_tests::programs::kernels_of(std::path::Path::new("kernel.tile"), text);
    let of = |k: &ptoc_tests::programs::Placed| k.target.name == target;
    let made: Vec<_> = kernels
        .iter()
        .filter(|k| of(k))
        .map(|k| insert_and_report(physical(&k.placed.kernel, &k.placed.placement, &k.target), &k.target).0)
        .collect();
    assert!(!made.is_empty(), "nothing compiles\n{text}");
    made
}

/// `src: MTE2 to V, 2`, in order.
fn flags(kernel: &Kernel) -> Vec<String> {
    let flag = |e: &ptoc_ir::tile::EventData| format!("{}: {} to {}, {}", e.name, e.from, e.to, e.count);
    kernel.events.values().map(flag).collect()
}

/// `scale_pipeline` of double_buffer.tile gets the arrays of flags that `scale_flags` has, whether its tiles have names
/// or not.
#[test]
fn two_stages_are_the_four_flags_of_a_double_buffer() {
    let body = [
        ("src", "dst", "let src = Vec(x.tile(i, j)); let dst = s * src; TSTORE(y.tile(i, j), dst);"),
        ("Vec(..)", "TMULS result", "TSTORE(y.tile(i, j), s * Vec(x.tile(i, j)));"),
    ];
    for (src, dst, body) in body {
        let text = format!(
            "kernel scale(x: in f32[M, N], y: out f32[M, N], s: f32) {{
                grid (i in tiles(M, 64));
                pipeline(stages = 2) for j in tiles(N, 128) {{ {body} }}
            }}"
        );
        for target in ["a2a3", "a5", "kirin9030", "kirinx90"] {
            let made = inserted(&text, target);
            let mut found = flags(&made[0]);
            found.sort();
            let pairs = [(src, "MTE2 to V"), (src, "V to MTE2"), (dst, "V to MTE3"), (dst, "MTE3 to V")];
            let mut want: Vec<String> = pairs.iter().map(|(name, pipes)| format!("{name}: {pipes}, 2")).collect();
            want.sort();
            assert_eq!(found, want, "{target}");
        }
    }
}
