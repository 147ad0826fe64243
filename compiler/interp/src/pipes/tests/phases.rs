//! Transaction barriers against brute force: every order of a tiny program, with the barrier's own model.
//!
//! A program is right if in every order each step counts for the phase for which it counts in program order, each wait
//! goes through after the same number of phases, nothing gets stuck, and no bytes are left.

use super::says;
use ptoc_ir::sync::TransactionBarrier;
use std::collections::HashSet;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Load,
    Read,
    Arrive(usize),
    Expect(usize),
    ArriveExpect(usize),
    Complete(usize),
    Wait(usize, u8),
}

/// Barriers: from and to. Pipes: MTE2 of one role, V, MTE2 of another role.
const BARRIERS: [(usize, usize); 2] = [(0, 1), (1, 0)];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    op: Op,
    /// Of role `q` instead of `p`.
    other: bool,
}

impl Step {
    fn stream(self) -> usize {
        let pipe = match self.op {
            Op::Load => 0,
            Op::Read => 1,
            Op::Arrive(b) | Op::Expect(b) | Op::ArriveExpect(b) | Op::Complete(b) => BARRIERS[b].0,
            Op::Wait(b, _) => BARRIERS[b].1,
        };
        pipe + 2 * usize::from(self.other)
    }

    /// The barrier, and if the step is possible, the phase for which it counts or after which it goes through.
    fn take(self, state: &mut [TransactionBarrier; 2]) -> Option<Result<u64, ()>> {
        let (Op::Arrive(b) | Op::Expect(b) | Op::ArriveExpect(b) | Op::Complete(b) | Op::Wait(b, _)) = self.op else {
            return Some(Ok(0));
        };
        let barrier = &mut state[b];
        let phase = barrier.completed();
        let result = match self.op {
            Op::Wait(_, parity) if !barrier.try_wait(parity) => return None,
            Op::Arrive(_) | Op::ArriveExpect(_) if barrier.pending() == 0 => return Some(Err(())),
            Op::Arrive(_) => Ok(barrier.arrive()),
            Op::Expect(_) => barrier.expect(256),
            Op::ArriveExpect(_) => barrier.arrive_and_expect(256),
            Op::Complete(_) => barrier.complete(256),
            _ => Ok(false),
        };
        Some(result.map(|_| phase).map_err(|_| ()))
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    progress: Vec<u8>,
    barriers: [TransactionBarrier; 2],
}

#[derive(PartialEq, Eq, Debug, Clone, Copy)]
enum Verdict {
    Fine,
    Race,
    Broken,
}

fn brute(steps: &[Step], arrivals: [u32; 2]) -> Verdict {
    let fresh = arrivals.map(|n| TransactionBarrier::new(n).expect("arrivals"));
    let mut barriers = fresh;
    let mut phases = Vec::new();
    // A phase that begins must end.
    let mut begun = [false; 2];
    for step in steps {
        let Some(Ok(phase)) = step.take(&mut barriers) else { return Verdict::Broken };
        if let Op::Arrive(b) | Op::Expect(b) | Op::ArriveExpect(b) | Op::Complete(b) = step.op {
            begun[b] = true;
        }
        for b in 0..2 {
            if barriers[b].completed() > phase
                && matches!(step.op, Op::Arrive(x) | Op::Expect(x) | Op::ArriveExpect(x) | Op::Complete(x) if x == b)
            {
                begun[b] = false;
            }
        }
        phases.push(phase);
    }
    if begun.contains(&true) {
        return Verdict::Broken;
    }
    let start = State { progress: vec![0; steps.len()], barriers: fresh };
    let (mut seen, mut open) = (HashSet::from([start.clone()]), vec![start]);
    let (mut race, mut broken) = (false, false);
    while let Some(s) = open.pop() {
        let started = |op: Op| (0..steps.len()).filter(move |&i| steps[i].op == op);
        for a in started(Op::Load) {
            for b in started(Op::Read).chain(started(Op::Load)).filter(|&b| b != a) {
                race |= s.progress[a] == 1 && s.progress[b] == 1;
            }
        }
        let mut next = Vec::new();
        for i in 0..steps.len() {
            let (stream, op) = (steps[i].stream(), steps[i].op);
            let mut t = s.clone();
            let before = || (0..i).filter(|&j| steps[j].stream() == stream);
            let work = |j: usize| matches!(steps[j].op, Op::Load | Op::Read);
            match (s.progress[i], op) {
                (0, Op::Load | Op::Read) => {
                    // V may go on while instructions and announcements are on their way, but not past a wait.
                    let may = before().all(|j| match steps[j].op {
                        Op::Wait(..) => s.progress[j] == 2,
                        _ if stream % 2 == 1 => s.progress[j] >= 1,
                        _ => s.progress[j] == 2,
                    });
                    if !may {
                        continue;
                    }
                    t.progress[i] = 1;
                }
                (1, Op::Load | Op::Read) => t.progress[i] = 2,
                (0, Op::Wait(..)) => {
                    let may = before().all(|j| {
                        if work(j) && stream % 2 == 1 {
                            s.progress[j] >= 1
                        } else if matches!(steps[j].op, Op::Wait(..)) {
                            s.progress[j] == 2
                        } else {
                            s.progress[j] > u8::from(stream % 2 == 0)
                        }
                    });
                    if !may {
                        continue;
                    }
                    match steps[i].take(&mut t.barriers) {
                        None => continue,
                        Some(phase) => {
                            broken |= phase != Ok(phases[i]);
                            t.progress[i] = 2;
                        }
                    }
                }
                (0, _) => {
                    let may = before().all(|j| match steps[j].op {
                        Op::Wait(..) => s.progress[j] == 2,
                        _ if stream % 2 == 1 => s.progress[j] >= 1,
                        _ => s.progress[j] == 2,
                    });
                    if !may {
                        continue;
                    }
                    t.progress[i] = 1;
                }
                (1, _) => {
                    if before().any(|j| s.progress[j] != 2) {
                        continue;
                    }
                    broken |= steps[i].take(&mut t.barriers) != Some(Ok(phases[i]));
                    t.progress[i] = 2;
                }
                _ => continue,
            }
            next.push(t);
        }
        if broken {
            return Verdict::Broken;
        }
        if next.is_empty() && s.progress.iter().any(|&p| p != 2) {
            return Verdict::Broken;
        }
        for t in next {
            if seen.insert(t.clone()) {
                open.push(t);
            }
        }
    }
    if race { Verdict::Race } else { Verdict::Fine }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Mostly what goes through in program order.
fn random_program(d: &mut Dice, arrivals: [u32; 2]) -> Vec<Step> {
    let mut barriers = arrivals.map(|n| TransactionBarrier::new(n).expect("arrivals"));
    let mut steps = Vec::new();
    for _ in 0..3 + d.below(7) {
        let b = d.below(2) as usize;
        let other = d.below(4) == 0;
        let sane = d.below(10) > 0;
        let mut op = match d.below(10) {
            0 => Op::Load,
            1 => Op::Read,
            2..4 => Op::Arrive(b),
            4 => Op::ArriveExpect(b),
            5 => Op::Expect(b),
            6 => Op::Complete(b),
            _ => Op::Wait(b, d.below(2) as u8),
        };
        if sane {
            op = match op {
                Op::Wait(b, _) => Op::Wait(b, 1 - barriers[b].phase()),
                Op::Arrive(b) | Op::ArriveExpect(b) | Op::Expect(b) if barriers[b].bytes() > 0 => Op::Complete(b),
                Op::Complete(b) if barriers[b].bytes() <= 0 && barriers[b].pending() > 0 => Op::ArriveExpect(b),
                op => op,
            };
        }
        let step = Step { op, other };
        let _ = step.take(&mut barriers);
        steps.push(step);
    }
    for (b, barrier) in barriers.iter_mut().enumerate() {
        for _ in 0..8 {
            let op = match (barrier.bytes().signum(), barrier.pending()) {
                (1, _) => Op::Complete(b),
                (-1, 0) => Op::Expect(b),
                (-1, _) => Op::ArriveExpect(b),
                (_, pending) if pending < arrivals[b] => Op::Arrive(b),
                _ => break,
            };
            let step = Step { op, other: false };
            let mut both = [*barrier, *barrier];
            let _ = step.take(&mut both);
            *barrier = both[b];
            steps.push(step);
        }
    }
    steps
}

fn script(steps: &[Step], arrivals: [u32; 2]) -> String {
    let mut text = format!(
        "tile a 0x0\ntile b 0x100\nmbar m0 MTE2 V {}\nmbar m1 V MTE2 {}\nrole p\nrole q\n",
        arrivals[0], arrivals[1]
    );
    for (n, step) in steps.iter().enumerate() {
        let role = if step.other { "q" } else { "p" };
        let line = match step.op {
            Op::Load => format!("load a {n}"),
            // Into a place of its own each time, so that only `a` matters: a read by S would wait.
            Op::Read => "muls b a".to_owned(),
            Op::Arrive(b) => format!("arrive m{b}"),
            Op::Expect(b) => format!("expect m{b} 256"),
            Op::ArriveExpect(b) => format!("arrive_expect m{b} 256"),
            Op::Complete(b) => format!("complete m{b} 256"),
            Op::Wait(b, parity) => format!("wait_phase m{b} {parity}"),
        };
        text.push_str(&format!("role {role} {{\n{line}\n}}\n"));
    }
    text
}

#[test]
fn rules_of_barriers_are_brute_force() {
    let mut d = Dice(5);
    let mut counts = [0usize; 3];
    for _ in 0..600 {
        let arrivals = [1 + d.below(2) as u32, 1 + d.below(2) as u32];
        let steps = random_program(&mut d, arrivals);
        // The first read needs a value, and at most one makes no conflict of its own.
        if steps.iter().filter(|s| s.op == Op::Read).count() > 1 {
            continue;
        }
        let want = brute(&steps, arrivals);
        let got = says(&script(&steps, arrivals));
        let kind = match got.split('@').next() {
            Some("fine") => Verdict::Fine,
            Some("PA-1120" | "PA-1121" | "PA-1122") => Verdict::Race,
            // Nothing was loaded: that comes first, or in place of a race.
            Some("PA-1001") => continue,
            _ => Verdict::Broken,
        };
        let same = kind == want || want == Verdict::Broken && kind == Verdict::Race;
        assert!(same, "{want:?}, but {got}\n{}", script(&steps, arrivals));
        counts[want as usize] += 1;
    }
    assert!(counts.iter().all(|&n| n > 8), "{counts:?}");
}
