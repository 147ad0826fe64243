//! Random schedules of roles: what holds of all of them, and what one role alone takes, by a program of its own.

use super::{EventElement, Timeline, Timing};
use crate::cost::Work;
use crate::pipes::clocks::{Stamp, place, stream};
use ptoc_diagnostics::{FileId, Span};
use ptoc_isa::{Pipe, PipeTimes};
use std::collections::HashMap;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Something that a role issues.
#[derive(Clone, Debug)]
enum Call {
    Scalar(Stamp),
    Work(Stamp, u64),
    Announce(Stamp),
    Wait(Stamp, Vec<Stamp>),
    Barrier(Stamp),
    All(u32),
}

const LOOSE: [Pipe; 1] = [Pipe::V];

fn times(d: &mut Dice) -> PipeTimes {
    let mut cycles = |most: u64| d.below(most) as u32;
    let startup = Pipe::ALL.map(|_| 0).map(|_: u32| cycles(30));
    PipeTimes { clock: 1000, cores: 2, issue: cycles(6), sync: cycles(20), startup, bytes: [1; 7], macs: vec![(1, 1)] }
}

/// Program order: waits are for announcements that come before, of any role.
fn random(d: &mut Dice, roles: u32) -> Vec<Call> {
    let mut counts: HashMap<u32, u32> = HashMap::new();
    let (mut calls, mut announced) = (Vec::new(), Vec::new());
    for _ in 0..d.below(120) {
        let (role, pipe) = (d.below(roles.into()) as u32, Pipe::ALL[d.below(7) as usize]);
        let at = stream(role, pipe);
        let clock = counts.entry(at).or_default();
        *clock += 1;
        let stamp = Stamp { stream: at, clock: *clock };
        calls.push(match d.below(10) {
            0..5 if pipe == Pipe::S => Call::Scalar(stamp),
            0..5 => Call::Work(stamp, 1 + d.below(40)),
            5 | 6 => {
                announced.push(stamp);
                Call::Announce(stamp)
            }
            7 => Call::Barrier(stamp),
            8 if d.below(4) == 0 => Call::All(role),
            _ if announced.is_empty() => Call::Barrier(stamp),
            _ => {
                let some = (0..1 + d.below(2)).map(|_| announced[d.below(announced.len() as u64) as usize]);
                Call::Wait(stamp, some.collect())
            }
        });
    }
    calls
}

fn timed(calls: &[Call], times: &PipeTimes, roles: u32) -> Timing {
    let mut t = Timeline::new(times.clone(), stream(roles, Pipe::S) as usize, roles as usize, &LOOSE);
    let span = Span::new(FileId(0), 0, 0);
    for call in calls {
        match call {
            Call::Scalar(s) => t.scalar(*s, "S", span),
            Call::Work(s, cycles) => t.work(*s, Work::Bytes(*cycles), "TADD", span),
            Call::Announce(s) => t.announce(*s, span),
            Call::Wait(s, after) => t.wait(*s, after, place(after[0].stream).1, EventElement::default(), span),
            Call::Barrier(s) => t.barrier(*s, span),
            Call::All(role) => t.barrier_of_all(*role, span),
        }
    }
    t.end_block();
    t.finish()
}

/// The picture of the first block is the account of it: stalls add up to the totals and lie between instructions of
/// their pipe, and flags go from a set to a later time.
fn pictured(t: &Timing) {
    let first = &t.first;
    assert_eq!((first.cycles, first.lost_from), (t.longest, None));
    let total: u64 = t.stalls.iter().map(|s| s.cycles).sum();
    assert_eq!(first.stalls.iter().map(|s| s.end - s.begin).sum::<u64>(), total);
    for stall in &first.stalls {
        assert!(stall.begin < stall.end && stall.end <= first.cycles, "{stall:?}");
        let lane = first.slices.iter().filter(|s| (s.role, s.pipe) == (stall.role, stall.pipe));
        let meets = lane.filter(|s| s.begin < stall.end && stall.begin < s.free);
        // S is busy with what it issues to others, too; what it does by itself waits for that.
        assert!(stall.pipe == Pipe::S || meets.count() == 0, "{stall:?} {:?}", first.slices);
    }
    assert!(first.signals.iter().all(|s| s.set.cycle <= s.wait.cycle));
}

/// The longest block of one role: in program order, as nobody else has the units.
fn alone(calls: &[Call], times: &PipeTimes) -> u64 {
    let (mut issuer, mut free, mut done) = (0u64, [0u64; 7], [0u64; 7]);
    let mut announced: HashMap<Stamp, u64> = HashMap::new();
    let pipe_of = |s: &Stamp| place(s.stream).1 as usize;
    let s = Pipe::S as usize;
    for call in calls {
        match call {
            Call::Scalar(_) => {
                issuer = (issuer + u64::from(times.issue)).max(free[s]) + u64::from(times.startup[s]);
                (free[s], done[s]) = (issuer, done[s].max(issuer));
            }
            Call::Work(stamp, cycles) => {
                let p = pipe_of(stamp);
                issuer += u64::from(times.issue);
                let begin = issuer.max(free[p]);
                let end = begin + u64::from(times.startup[p]) + cycles;
                free[p] = if LOOSE.contains(&Pipe::ALL[p]) { begin + cycles } else { end };
                done[p] = done[p].max(end);
            }
            Call::Announce(stamp) => {
                let p = pipe_of(stamp);
                announced.insert(*stamp, issuer.max(free[p]).max(done[p]));
            }
            Call::Wait(stamp, after) => {
                let p = pipe_of(stamp);
                let came = after.iter().map(|a| announced[a] + u64::from(times.sync)).max().unwrap_or(0);
                free[p] = issuer.max(free[p]).max(came);
                if p == s {
                    issuer = free[p];
                }
            }
            Call::Barrier(stamp) => {
                let p = pipe_of(stamp);
                free[p] = issuer.max(free[p]).max(done[p]);
            }
            Call::All(_) => issuer = done.iter().copied().fold(issuer.max(free[s]), u64::max),
        }
    }
    free.into_iter().chain(done).fold(issuer, u64::max)
}

#[test]
fn one_role_has_the_units_to_itself() {
    let mut d = Dice(3);
    for n in 0..400 {
        let times = times(&mut d);
        let calls = random(&mut d, 1);
        assert_eq!(timed(&calls, &times, 1).longest, alone(&calls, &times), "{n}: {calls:?} {times:?}");
    }
}

#[test]
fn roles_never_share_a_unit_at_a_time() {
    let mut d = Dice(5);
    let (mut contended, mut as_one) = (0, 0);
    for n in 0..400 {
        let times = times(&mut d);
        let roles = 2 + d.below(4) as u32;
        let calls = random(&mut d, roles);
        let t = timed(&calls, &times, roles);
        assert_eq!(t, timed(&calls, &times, roles));
        for u in t.units() {
            assert!(t.longest >= u.busy, "{n}: {u:?} of {}", t.longest);
            let mut spans: Vec<_> =
                t.first.slices.iter().filter(|s| s.pipe == u.unit).map(|s| (s.begin, s.free)).collect();
            spans.sort_unstable();
            assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "{n}: {:?} {spans:?}", u.unit);
        }
        let works = calls.iter().filter(|c| matches!(c, Call::Work(..) | Call::Scalar(_))).count();
        assert_eq!(t.first.slices.len(), works, "all that is issued is done");
        pictured(&t);
        contended += usize::from(t.stalls.iter().any(|s| s.cause == super::Cause::Unit));
        // A role is never faster beside others than alone: what it issues, without waiting for the others.
        for role in 0..roles {
            let own = |s: &Stamp| place(s.stream).0 == role;
            let mine = calls.iter().filter_map(|c| match c {
                Call::Wait(s, after) if own(s) => {
                    let after: Vec<Stamp> = after.iter().copied().filter(own).collect();
                    (!after.is_empty()).then_some(Call::Wait(*s, after))
                }
                Call::Scalar(s) | Call::Work(s, _) | Call::Announce(s) | Call::Barrier(s) => own(s).then(|| c.clone()),
                Call::All(r) => (*r == role).then(|| c.clone()),
                Call::Wait(..) => None,
            });
            let mine: Vec<Call> = mine.collect();
            let by_itself = alone(&mine, &times);
            assert!(t.longest >= by_itself, "{n}: role {role} takes {by_itself} by itself, all take {}", t.longest);
            as_one += 1;
        }
    }
    assert!(contended > 100 && as_one > 400, "{contended} {as_one}");
}
