//! The verdict against brute force: every state that the pipes of a tiny program can reach.
//!
//! The machine of this test knows nothing of clocks. An instruction is started and, later, complete. A pipe starts
//! things in order, each only when the one before is complete (V: at once, unless a barrier is next). Two conflicting
//! instructions race if in some state both are started and neither is complete. What S reads it reads at once, while
//! issuing; what it writes is complete later, but in order for itself.

use super::says;
use std::collections::HashSet;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    /// On a pipe: reads and writes tiles (bits).
    Work {
        pipe: usize,
        reads: u8,
        writes: u8,
    },
    Set(usize),
    Wait(usize),
    Barrier(usize),
    All,
}

/// Pipes: MTE2, V, MTE3, S. Flags: from and to.
const FLAGS: [(usize, usize); 7] = [(0, 1), (1, 0), (1, 2), (2, 0), (0, 3), (3, 1), (1, 3)];
const S: usize = 3;

fn pipe_of(op: Op) -> Option<usize> {
    match op {
        Op::Work { pipe, .. } | Op::Barrier(pipe) => Some(pipe),
        Op::Set(e) => Some(FLAGS[e].0),
        Op::Wait(e) => Some(FLAGS[e].1),
        Op::All => None,
    }
}

/// A state: what was issued, and by operation whether it is waiting, started or complete; and the flags.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    issued: usize,
    progress: Vec<u8>,
    up: u8,
}

#[derive(PartialEq, Eq, Debug, Clone, Copy)]
enum Verdict {
    Fine,
    Race,
    Broken,
}

fn conflict(a: Op, b: Op) -> bool {
    match (a, b) {
        (Op::Work { reads: r1, writes: w1, .. }, Op::Work { reads: r2, writes: w2, .. }) => {
            w1 & (r2 | w2) != 0 || r1 & w2 != 0
        }
        _ => false,
    }
}

/// Whether, in program order, every wait finds its flag up, every set finds it down, and none is left up.
fn in_order(ops: &[Op]) -> bool {
    let mut up = 0u8;
    for op in ops {
        match *op {
            Op::Set(e) if up >> e & 1 == 0 => up |= 1 << e,
            Op::Wait(e) if up >> e & 1 == 1 => up &= !(1 << e),
            Op::Set(_) | Op::Wait(_) => return false,
            _ => {}
        }
    }
    up == 0
}

fn brute(ops: &[Op]) -> Verdict {
    if !in_order(ops) {
        return Verdict::Broken;
    }
    let start = State { issued: 0, progress: vec![0; ops.len()], up: 0 };
    let (mut seen, mut open) = (HashSet::from([start.clone()]), vec![start]);
    let (mut race, mut broken) = (false, false);
    while let Some(s) = open.pop() {
        for a in 0..ops.len() {
            for b in a + 1..ops.len() {
                let own = pipe_of(ops[a]) == Some(S) && pipe_of(ops[b]) == Some(S);
                race |= s.progress[a] == 1 && s.progress[b] == 1 && conflict(ops[a], ops[b]) && !own;
            }
        }
        let mut next = Vec::new();
        if s.issued < ops.len() {
            let (at, mut t) = (s.issued, s.clone());
            t.issued += 1;
            let goes = match ops[at] {
                // A barrier of all holds the issuer, and so does a wait of its own.
                Op::All => {
                    t.progress[at] = 2;
                    s.progress[..at].iter().all(|&p| p == 2)
                }
                Op::Wait(e) if FLAGS[e].1 == S => {
                    t.progress[at] = 2;
                    t.up &= !(1 << e);
                    s.up >> e & 1 == 1
                }
                Op::Work { pipe: S, writes: 0, .. } => {
                    let foreign = |j: &usize| s.progress[*j] == 1 && pipe_of(ops[*j]) != Some(S);
                    race |= (0..at).filter(foreign).any(|j| conflict(ops[j], ops[at]));
                    t.progress[at] = 2;
                    true
                }
                op => {
                    t.progress[at] = u8::from(pipe_of(op) == Some(S));
                    true
                }
            };
            if goes {
                next.push(t);
            }
        }
        for i in 0..s.issued {
            let Some(pipe) = pipe_of(ops[i]) else { continue };
            let mut t = s.clone();
            match (s.progress[i], ops[i]) {
                // A set on V is passed by and raises its flag when all before it is complete.
                (1, Op::Set(e)) => {
                    if (0..i).any(|j| pipe_of(ops[j]) == Some(pipe) && s.progress[j] != 2) {
                        continue;
                    }
                    broken |= s.up >> e & 1 == 1;
                    t.up |= 1 << e;
                    t.progress[i] = 2;
                }
                (1, _) => t.progress[i] = 2,
                (0, op) => {
                    let before = || (0..i).filter(|&j| pipe_of(ops[j]) == Some(pipe));
                    let loose = pipe == 1 && !matches!(op, Op::Barrier(_));
                    let passed = |j: usize| match ops[j] {
                        Op::Work { .. } | Op::Set(_) if loose => s.progress[j] >= 1,
                        _ => s.progress[j] == 2,
                    };
                    if !before().all(passed) {
                        continue;
                    }
                    match op {
                        Op::Work { .. } | Op::Set(_) => t.progress[i] = 1,
                        Op::Wait(e) => {
                            if s.up >> e & 1 == 0 {
                                continue;
                            }
                            t.up &= !(1 << e);
                            t.progress[i] = 2;
                        }
                        _ => t.progress[i] = 2,
                    }
                }
                _ => continue,
            }
            next.push(t);
        }
        if next.is_empty() && s.progress.iter().any(|&p| p != 2) {
            broken = true;
        }
        for t in next {
            if seen.insert(t.clone()) {
                open.push(t);
            }
        }
    }
    match (broken, race) {
        (true, _) => Verdict::Broken,
        (_, true) => Verdict::Race,
        _ => Verdict::Fine,
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Tiles are a, b and c; the script fills them first, before a barrier.
fn random_program(d: &mut Dice) -> (Vec<Op>, String) {
    let mut text = String::from(
        "tile a 0x0\ntile b 0x100\ntile c 0x200\nevent e0 MTE2 V\nevent e1 V MTE2\nevent e2 V MTE3\n\
        event e3 MTE3 MTE2\nevent e4 MTE2 S\nevent e5 S V\nevent e6 V S\nload a 0\nload b 1\nload c 2\nbarrier\n",
    );
    let name = ["a", "b", "c"];
    let mut ops = Vec::new();
    let mut up = 0u8;
    let len = 3 + d.below(6);
    for n in 0..len {
        let (x, y) = (d.below(3) as usize, d.below(3) as usize);
        let op = match d.below(14) {
            12 => Op::Work { pipe: S, reads: 1 << y, writes: 0 },
            13 => Op::Work { pipe: S, reads: 0, writes: 1 << x },
            0..2 => Op::Work { pipe: 0, reads: 0, writes: 1 << x },
            2..4 => Op::Work { pipe: 1, reads: 1 << y, writes: 1 << x },
            4..6 => Op::Work { pipe: 2, reads: 1 << y, writes: 0 },
            6 => Op::Barrier(1),
            7 if d.below(3) == 0 => Op::All,
            // Mostly what is right.
            _ => {
                let e = d.below(7) as usize;
                match (up >> e & 1, d.below(12)) {
                    (0, 1..) | (1, 0) => Op::Set(e),
                    _ => Op::Wait(e),
                }
            }
        };
        match op {
            Op::Set(e) => up |= 1 << e,
            Op::Wait(e) => up &= !(1 << e),
            _ => {}
        }
        ops.push(op);
        text.push_str(&match op {
            Op::Work { pipe: 0, .. } => format!("load {} {n}\n", name[x]),
            Op::Work { pipe: 1, .. } => format!("muls {} {}\n", name[x], name[y]),
            Op::Work { pipe: S, writes: 0, .. } => format!("get {}\n", name[y]),
            Op::Work { pipe: S, .. } => format!("put {}\n", name[x]),
            Op::Work { .. } => format!("store {n} {}\n", name[y]),
            Op::Set(e) => format!("set e{e}\n"),
            Op::Wait(e) => format!("wait e{e}\n"),
            Op::Barrier(_) => "barrier V\n".into(),
            Op::All => "barrier\n".into(),
        });
    }
    // What is up is waited for, so that most programs are right.
    for e in 0..7 {
        if up >> e & 1 == 1 {
            ops.push(Op::Wait(e));
            text.push_str(&format!("wait e{e}\n"));
        }
    }
    (ops, text)
}

/// A verdict by clocks is what brute force finds. Where something is broken and something races, either is said.
#[test]
fn clocks_are_brute_force() {
    let mut d = Dice(11);
    let mut counts = [0usize; 3];
    for _ in 0..400 {
        let (ops, text) = random_program(&mut d);
        let want = brute(&ops);
        let got = says(&text);
        let got_kind = match got.split('@').next() {
            Some("fine") => Verdict::Fine,
            Some("PA-1120" | "PA-1121" | "PA-1122") => Verdict::Race,
            _ => Verdict::Broken,
        };
        // A race may come before what is broken.
        let same = got_kind == want || want == Verdict::Broken && got_kind == Verdict::Race;
        assert!(same, "{want:?}, but {got}\n{text}");
        counts[want as usize] += 1;
    }
    assert!(counts.iter().all(|&n| n > 20), "{counts:?}");
}
