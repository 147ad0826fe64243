//! The model of time where roles share the units of a core.

use super::timing;
use crate::{Cause, Timing};
use ptoc_isa::Pipe;
use std::fmt::Write as _;

/// Roles, each of which multiplies a tile of its own so often.
fn multiplying(roles: usize, times: usize) -> String {
    let mut text = String::new();
    for r in 0..roles {
        writeln!(text, "role r{r}\ntile a{r} {:#x}\nevent l{r} MTE2 V\nevent s{r} V MTE3", 256 * r).expect("a string");
    }
    for r in 0..roles {
        writeln!(
            text,
            "role r{r} {{\nload a{r} {r}\nset l{r}\nwait l{r}\nfor i{r} {times} {{\nmuls a{r} a{r}\n\
            barrier V\n}}\nset s{r}\nwait s{r}\nstore {r} a{r}\n}}"
        )
        .expect("a string");
    }
    text
}

fn unit(t: &Timing, pipe: Pipe) -> u64 {
    t.units().iter().find(|u| u.unit == pipe).map_or(0, |u| u.busy)
}

/// No unit does two things at a time, and none is busy for longer than the block takes.
fn sound(t: &Timing) {
    for u in t.units() {
        let mut spans: Vec<_> = t.first.slices.iter().filter(|s| s.pipe == u.unit).map(|s| (s.begin, s.free)).collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "{:?}: {spans:?}", u.unit);
        if u.unit != Pipe::S {
            assert_eq!(spans.iter().map(|(begin, free)| free - begin).sum::<u64>(), u.busy);
        }
        assert!(u.busy <= t.longest, "{:?}: {} cycles busy of {}", u.unit, u.busy, t.longest);
        let lanes = t.lanes.iter().filter(|l| l.pipe == u.unit);
        assert_eq!(lanes.map(|l| (l.busy, l.count)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)), (u.busy, u.count));
    }
}

#[test]
fn roles_share_the_units() {
    // What one role would do in one loop is not done faster by more of them than its unit allows.
    for roles in [1, 2, 4] {
        let t = timing(&multiplying(roles, 32 / roles));
        sound(&t);
        assert_eq!(unit(&t, Pipe::V), 32 * 16);
        assert!(t.longest >= 32 * 16 + 2 * 52);
    }
}

/// Issue 1, load 20 + 32, sync 2, V 10 + 16 of which it is occupied for 16, store 20 + 32.
#[test]
fn two_roles_by_hand() {
    let t = timing(&multiplying(2, 1));
    let slices: Vec<_> = t.first.slices.iter().map(|s| (s.role, s.pipe, s.begin, s.free, s.end)).collect();
    assert_eq!(
        slices,
        [
            // Both are issued at once; S gives each its cycle, and the first role goes first.
            (1, Pipe::Mte2, 1, 53, 53),
            (2, Pipe::Mte2, 53, 105, 105),
            (1, Pipe::V, 55, 71, 81),
            (1, Pipe::Mte3, 83, 135, 135),
            (2, Pipe::V, 107, 123, 133),
            (2, Pipe::Mte3, 135, 187, 187),
        ]
    );
    assert_eq!(t.longest, 187);
    // What waits for the unit says so, and what waits for what comes out of it waits for that.
    let stalls: Vec<_> = t.stalls.iter().map(|s| (s.role, s.pipe, s.cause, s.cycles)).collect();
    assert_eq!(
        stalls,
        [
            (2, Pipe::Mte3, Cause::Event(Pipe::V), 131),
            (2, Pipe::V, Cause::Event(Pipe::Mte2), 105),
            (1, Pipe::Mte3, Cause::Event(Pipe::V), 80),
            (1, Pipe::V, Cause::Event(Pipe::Mte2), 54),
            (2, Pipe::Mte2, Cause::Unit, 51),
        ]
    );
}
