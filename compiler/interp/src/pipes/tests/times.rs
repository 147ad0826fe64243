//! The model of time.

use super::{kernel, launch, pipes, times, timing};
use crate::{Cause, Order, Pipes, Timing};
use ptoc_isa::Pipe;
use std::fmt::Write as _;

/// y = 2 x over 12 tiles with so many buffers.
fn buffered(n: usize) -> String {
    let list = |base: usize| (0..n).map(|i| format!(" {:#x}", base + 256 * i)).collect::<String>();
    let mut text = format!("tile a{}\ntile b{}\n", list(0), list(0x1000));
    for (name, from, to) in
        [("full", "MTE2", "V"), ("empty", "V", "MTE2"), ("ready", "V", "MTE3"), ("done", "MTE3", "V")]
    {
        writeln!(text, "event {name} {from} {to} {n}").expect("a string");
    }
    for i in 0..n {
        write!(text, "set empty[{i}]\nset done[{i}]\n").expect("a string");
    }
    let element = |name: &str| if n == 1 { name.to_owned() } else { format!("{name}[k]") };
    let (a, b) = (element("a"), element("b"));
    write!(
        text,
        "for j 12 {{\nmod k j {n}\nwait empty[k]\nload {a} j\nset full[k]\nwait full[k]\nwait done[k]\nmuls {b} {a}\n\
        set empty[k]\nset ready[k]\nwait ready[k]\nstore j {b}\nset done[k]\n}}\n"
    )
    .expect("a string");
    for i in 0..n {
        write!(text, "wait empty[{i}]\nwait done[{i}]\n").expect("a string");
    }
    text
}

fn busy(t: &Timing, pipe: Pipe) -> (u64, u64) {
    t.lanes.iter().find(|l| l.pipe == pipe).map_or((0, 0), |l| (l.busy, l.count))
}

#[test]
fn more_buffers_are_faster() {
    let [one, two, three] = [1, 2, 3].map(|n| timing(&buffered(n)));
    assert!(
        two.longest < one.longest && three.longest <= two.longest,
        "{} {} {}",
        one.longest,
        two.longest,
        three.longest
    );
    for t in [&one, &two, &three] {
        // 256 bytes at 8 a cycle, and the startup.
        assert_eq!(busy(t, Pipe::Mte2), (12 * (20 + 32), 12));
        assert_eq!(busy(t, Pipe::Mte3), (12 * (20 + 32), 12));
        // A loose pipe is occupied for the work alone.
        assert_eq!(busy(t, Pipe::V), (12 * 16, 12));
        assert_eq!((t.blocks, t.cycles, t.makespan), (1, t.longest, t.longest));
        assert!(t.longest >= 12 * 52);
    }
    // With one buffer the loader stands still until V has read.
    let stall = one.stalls.iter().find(|s| s.pipe == Pipe::Mte2).expect("a stall");
    assert_eq!(stall.cause, Cause::Event(Pipe::V));
    assert!(stall.cycles > one.longest / 4);
}

/// A trace by hand: issue 1, sync 2, load 20 + 32, V 10 + 16, store 20 + 32.
#[test]
fn a_trace_by_hand() {
    let t = timing(
        "tile a 0x0\ntile b 0x100\nevent e MTE2 V\nevent f V MTE3\nload a 0\nset e\nwait e\nmuls b a\nset f\nwait f\n\
        store 0 b",
    );
    let slices: Vec<_> = t.first.slices.iter().map(|s| (s.pipe, s.begin, s.end, s.span.start)).collect();
    assert_eq!(slices, [(Pipe::Mte2, 1, 53, 5), (Pipe::V, 55, 81, 8), (Pipe::Mte3, 83, 135, 11)]);
    assert_eq!(t.longest, 135);
    let stalls: Vec<_> = t.stalls.iter().map(|s| (s.pipe, s.cause, s.cycles, s.span.start)).collect();
    assert_eq!(stalls, [(Pipe::Mte3, Cause::Event(Pipe::V), 81, 10), (Pipe::V, Cause::Event(Pipe::Mte2), 54, 7)]);
}

#[test]
fn barriers_and_the_issuer() {
    let t =
        timing("tile a 0x0\ntile b 0x100\ntile c 0x200\nload a 0\nbarrier\nmuls b a\nmuls c a\nbarrier V\nmuls a b");
    let slices: Vec<_> = t.first.slices.iter().map(|s| (s.begin, s.end)).collect();
    // V starts the second before the first is done, and the third only after all.
    assert_eq!(slices, [(1, 53), (54, 80), (70, 96), (96, 122)]);
    let t = timing("tile a 0x0\nevent e MTE2 S\nload a 0\nset e\nwait e\nget a\nload a 1");
    let slices: Vec<_> = t.first.slices.iter().map(|s| (s.begin, s.end)).collect();
    assert_eq!(slices, [(1, 53), (56, 60), (61, 113)]);
}

/// Time does not depend on the order of execution, and nothing else on the model of time.
#[test]
fn the_model_is_apart() {
    let k = kernel(&buffered(2));
    let mut all = Vec::new();
    for order in super::orders() {
        let timed = Pipes { time: Some(times()), ..pipes(order) };
        let (result, data, _) = launch(&k, Some(timed));
        assert_eq!(data, launch(&k, None).1);
        all.push(result.expect("a run").timing.expect("a timing"));
    }
    assert!(all.iter().all(|t| *t == all[0]));
    assert_eq!(launch(&k, Some(pipes(Order::Program))).0.expect("a run").timing, None);
}
