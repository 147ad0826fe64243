//! Instructions to programs: eight steps on successive columns are one instruction with automatic indices, what repeats
//! is a JUMP, and a program has at most 32 words. Longer work is several programs, each written where the one before
//! ends.

use super::code::{HostWrite, UnitEvent};
use super::node::BankBurst;
use ptoc_diagnostics::Span;
use ptoc_pim_stream::crf::{Alu, ENTRIES, Instruction, Operand, OperandLocation as File};

/// What is done to the units at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitGroup {
    /// The host writes.
    Host(HostWrite, Span),
    /// Commands to successive columns.
    Steps {
        /// Executed by all of them.
        word: Instruction,
        /// Write commands.
        write: bool,
        /// The first.
        at: BankBurst,
        /// 1 or 8.
        count: u32,
        /// For whom.
        span: Span,
    },
}

/// Work that one program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The program, without its EXIT.
    pub words: Vec<Instruction>,
    /// What happens meanwhile.
    pub groups: Vec<UnitGroup>,
}

/// Words before the EXIT.
const MOST: usize = ENTRIES - 1;

/// Register that an automatic index takes; see the simulator's unit (`units/hbm_pim`).
fn automatic(o: Operand, op: Alu, at: BankBurst) -> u8 {
    match op == Alu::Mac && o.place == File::GrfA {
        true => ((at.row & 1) << 2 | at.col >> 3 & 3) as u8,
        false => (at.col & 7) as u8,
    }
}

/// Whether `next` is the same operation at the next column, with the registers of an automatic index, and in the same
/// eight.
pub fn continues(last: &UnitEvent, next: &UnitEvent) -> bool {
    // Automatic indices are for scalars that are all alike.
    let UnitEvent::Step { instruction: Instruction::Alu { op, dst, a, b, relu, .. }, write, at, own: false, .. } =
        *last
    else {
        return false;
    };
    let UnitEvent::Step {
        instruction: Instruction::Alu { op: o, dst: d, a: x, b: y, relu: r, .. },
        write: w,
        at: to,
        own: false,
        ..
    } = *next
    else {
        return false;
    };
    let fits = |p: Operand, model: Operand| {
        let vector = matches!(p.place, File::GrfA | File::GrfB);
        p.place == model.place && (!vector || p.index == automatic(p, op, to))
    };
    let same = (o, r, w, y.is_some()) == (op, relu, write, b.is_some());
    same && at.col % 8 != 7
        && to == BankBurst { col: at.col + 1, ..at }
        && fits(d, dst)
        && fits(x, a)
        && y.zip(b).is_none_or(|(y, b)| fits(y, b))
}

/// The eight events as one instruction, if their registers are those that it would take.
fn eight(events: &[UnitEvent]) -> Option<UnitGroup> {
    let UnitEvent::Step {
        instruction: Instruction::Alu { op, dst, a, b, relu, .. },
        write,
        at: first,
        span,
        own: false,
    } = *events.first()?
    else {
        return None;
    };
    if events.len() < 8 || first.col % 8 != 0 {
        return None;
    }
    let first_fits = |o: Operand| !matches!(o.place, File::GrfA | File::GrfB) || o.index == automatic(o, op, first);
    let fits = [Some(dst), Some(a), b].into_iter().flatten().all(first_fits);
    if !fits || !events.windows(2).all(|two| continues(&two[0], &two[1])) {
        return None;
    }
    let zero = |o: Operand| Operand { index: 0, ..o };
    let word = Instruction::Alu { op, dst: zero(dst), a: zero(a), b: b.map(zero), auto: true, relu };
    Some(UnitGroup::Steps { word, write, at: first, count: 8, span })
}

/// Events as groups.
pub fn groups(events: &[UnitEvent]) -> Vec<UnitGroup> {
    let (mut out, mut rest) = (Vec::new(), events);
    while let Some(&event) = rest.first() {
        if let Some(group) = eight(&rest[..rest.len().min(8)]) {
            out.push(group);
            rest = &rest[8..];
            continue;
        }
        out.push(match event {
            UnitEvent::Host(what, span) => UnitGroup::Host(what, span),
            UnitEvent::Step { instruction, write, at, span, .. } => {
                UnitGroup::Steps { word: instruction, write, at, count: 1, span }
            }
        });
        rest = &rest[1..];
    }
    out
}

fn word(group: &UnitGroup) -> Option<Instruction> {
    match group {
        UnitGroup::Steps { word, .. } => Some(*word),
        UnitGroup::Host(..) => None,
    }
}

fn words<'g>(groups: impl IntoIterator<Item = &'g UnitGroup>) -> Vec<Instruction> {
    groups.into_iter().filter_map(word).collect()
}

/// Longest repetition that is looked for.
const PERIOD: usize = 30;

/// Times that a loop of one JUMP goes round, at most: it counts to 17 bits.
const TIMES: usize = 1 << 17;

/// The same sequence of instructions in fewer words: what repeats at once is done by a JUMP.
fn folded(mut words: Vec<Instruction>) -> Vec<Instruction> {
    for period in 1..=PERIOD {
        let equal = equal_later(&words, period);
        let (mut out, mut at) = (Vec::with_capacity(words.len()), 0);
        while at < words.len() {
            let part = &words[at..(at + period).min(words.len())];
            let times = (1 + equal[at] / period).min(TIMES);
            let gain = times * period > period + 1;
            if gain && closed(part) && !crossed(&words, at + times * period) {
                out.extend_from_slice(part);
                out.push(Instruction::Jump { count: times as u32 - 1, offset: period as u16 });
                at += times * period;
            } else {
                out.push(words[at]);
                at += 1;
            }
        }
        words = out;
    }
    words
}

/// How many words from each on are equal to those `period` later.
fn equal_later(words: &[Instruction], period: usize) -> Vec<usize> {
    let mut equal = vec![0; words.len()];
    for at in (0..words.len().saturating_sub(period)).rev() {
        if words[at] == words[at + period] {
            equal[at] = equal[at + 1] + 1;
        }
    }
    equal
}

/// Whether all loops that end in the part begin in it.
fn closed(part: &[Instruction]) -> bool {
    part.iter().enumerate().all(|(n, i)| !matches!(i, Instruction::Jump { offset, .. } if usize::from(*offset) > n))
}

/// Whether a loop begins before `end` and ends behind it.
fn crossed(words: &[Instruction], end: usize) -> bool {
    let behind = words.iter().enumerate().skip(end).take(2 * PERIOD);
    behind.into_iter().any(|(n, i)| matches!(i, Instruction::Jump { offset, .. } if n - usize::from(*offset) < end))
}

/// Whether all strips are one program of fewer words than these, its EXIT among them.
pub fn is_short(strips: &[Vec<UnitGroup>], most: usize) -> bool {
    folded(words(strips.iter().flatten())).len() < most
}

/// Whether the steps read or write a register of GRF_A or GRF_B.
fn touches(word: &Instruction, at: BankBurst, count: u32, register: Operand) -> bool {
    let Instruction::Alu { op, dst, a, b, auto, .. } = *word else { return true };
    let own = |o: Operand| match auto {
        true => (0..count).any(|n| automatic(o, op, BankBurst { col: at.col + n, ..at }) == register.index),
        false => o.index == register.index,
    };
    [Some(dst), Some(a), b].into_iter().flatten().any(|o| o.place == register.place && own(o))
}

/// The host's writes of vectors, each moved to those before it where no step in between has the register: units wait
/// for the host less often.
pub fn gathered(groups: Vec<UnitGroup>) -> Vec<UnitGroup> {
    let mut out: Vec<UnitGroup> = Vec::with_capacity(groups.len());
    // Behind the last vector that the host wrote.
    let mut behind = None;
    for group in groups {
        let UnitGroup::Host(HostWrite::Vector { file_b, index, .. }, _) = group else {
            out.push(group);
            continue;
        };
        let register = Operand { place: if file_b { File::GrfB } else { File::GrfA }, index };
        let free = |g: &UnitGroup| match g {
            UnitGroup::Steps { word, at, count, .. } => !touches(word, *at, *count, register),
            UnitGroup::Host(..) => true,
        };
        let at = match behind {
            Some(at) if out[at..].iter().all(free) => at,
            _ => out.len(),
        };
        out.insert(at, group);
        behind = Some(at + 1);
    }
    out
}

/// Programs for strips of groups, as few as are found by taking strip after strip.
pub fn segments(strips: Vec<Vec<UnitGroup>>) -> Vec<Segment> {
    let gathered = |s: Segment| Segment { groups: gathered(s.groups), ..s };
    written(strips).into_iter().map(gathered).collect()
}

fn written(strips: Vec<Vec<UnitGroup>>) -> Vec<Segment> {
    let whole = folded(words(strips.iter().flatten()));
    if whole.len() <= MOST {
        return vec![Segment { words: whole, groups: strips.into_iter().flatten().collect() }];
    }
    let mut out: Vec<Segment> = Vec::new();
    for strip in strips {
        let own = words(&strip);
        if let Some(last) = out.last_mut() {
            let mut all = words(&last.groups);
            // Long programs are folded as far as they go; a limit keeps this linear.
            all.extend_from_slice(&own);
            let joined = if all.len() <= 1 << 12 { folded(all) } else { Vec::new() };
            if !joined.is_empty() && joined.len() <= MOST {
                last.words = joined;
                last.groups.extend(strip);
                continue;
            }
        }
        let alone = folded(own);
        if alone.len() <= MOST {
            out.push(Segment { words: alone, groups: strip });
            continue;
        }
        // Piece by piece, as much as fits.
        let mut rest = &strip[..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(fitting(rest));
            out.push(Segment { words: folded(words(piece)), groups: piece.to_vec() });
            rest = behind;
        }
    }
    out
}

/// How many of the groups, from the first on, are whole repetitions of as many words as a loop can have.
fn repeated(groups: &[UnitGroup]) -> Option<usize> {
    let own = || groups.iter().filter_map(word);
    let times = |period: usize| 1 + own().zip(own().skip(period)).take_while(|(a, b)| a == b).count() / period;
    let periods = (1..=PERIOD).map(|period| (period, times(period))).filter(|(_, times)| *times > 1);
    let longest = periods.map(|(period, times)| period * times).max()?;
    let mut places = groups.iter().enumerate().filter(|(_, g)| word(g).is_some());
    places.nth(longest - 1).map(|(at, _)| at + 1)
}

/// How many of the groups, from the first on, make a program: pieces are tried that become longer by their own length,
/// then what is between the last that fits and the first that does not, so that long ones take little more time than
/// short ones.
fn fitting(groups: &[UnitGroup]) -> usize {
    let fits = |n: usize| folded(words(&groups[..n])).len() <= MOST;
    // A group is one word at most. What ends within a repetition has words that the whole of it has not.
    let whole = repeated(groups).filter(|n| fits(*n)).unwrap_or(0);
    let (mut good, mut bad) = (MOST.min(groups.len()).max(whole), groups.len() + 1);
    while good < groups.len() && bad > groups.len() {
        let next = (2 * good).min(groups.len());
        if fits(next) { good = next } else { bad = next }
    }
    while good + 1 < bad && bad <= groups.len() {
        let middle = good.midpoint(bad);
        if fits(middle) { good = middle } else { bad = middle }
    }
    good
}

#[cfg(test)]
mod tests {
    use super::super::code::Bring;
    use super::*;

    fn nop(repeat: u16) -> Instruction {
        Instruction::Nop { repeat }
    }

    /// What a unit executes.
    fn run(words: &[Instruction]) -> Vec<Instruction> {
        let (mut out, mut pc, mut left) = (Vec::new(), 0, vec![None; words.len()]);
        while pc < words.len() {
            match words[pc] {
                Instruction::Jump { count, offset } => match left[pc].unwrap_or(count) {
                    0 => {
                        left[pc] = None;
                        pc += 1;
                    }
                    n => {
                        left[pc] = Some(n - 1);
                        pc -= usize::from(offset);
                    }
                },
                other => {
                    out.push(other);
                    pc += 1;
                }
            }
        }
        out
    }

    /// Sequences with loops in loops, and with traps: parts of loops that repeat across their ends.
    #[test]
    fn folding_keeps_the_sequence() {
        let mut seed = 12345u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut saved = 0;
        for _ in 0..3000 {
            let mut words: Vec<Instruction> = Vec::new();
            for _ in 0..next(6) {
                match next(3) {
                    0 => words.push(nop(next(3) as u16)),
                    1 => {
                        let part: Vec<_> = (0..=next(4)).map(|_| nop(next(3) as u16)).collect();
                        (0..=next(5)).for_each(|_| words.extend_from_slice(&part));
                    }
                    _ => {
                        let part: Vec<_> = words.iter().rev().take(next(12) as usize).rev().copied().collect();
                        (0..next(4)).for_each(|_| words.extend_from_slice(&part));
                    }
                }
            }
            let short = folded(words.clone());
            assert_eq!(run(&short), words, "{short:?}");
            saved += words.len() - short.len();
        }
        assert!(saved > 3000, "hardly anything was folded: {saved} words");
    }

    /// More times than a JUMP counts are several, and the time for them grows with their number alone.
    #[test]
    fn loops_longer_than_a_jump_counts() {
        for times in [TIMES - 1, TIMES, TIMES + 1, 5 * TIMES + 3] {
            let words: Vec<Instruction> = (0..times).flat_map(|_| [nop(1), nop(2)]).collect();
            let short = folded(words.clone());
            assert!(short.len() <= MOST, "{} words for {times} times", short.len());
            assert!(run(&short) == words, "{times} times: {short:?}");
        }
    }

    /// A strip of many words that hardly repeat, with a long loop in it, is cut into programs that do it all.
    #[test]
    fn long_strips_are_cut() {
        let step = |n: u16| UnitGroup::Steps {
            word: nop(n),
            write: false,
            at: BankBurst { odd: 0, row: 0, col: 0 },
            count: 1,
            span: Span::default(),
        };
        let odd = |n: u16| (0..n).map(move |k| step(k * k % 101));
        let strip: Vec<UnitGroup> = odd(100).chain((0..40_000).map(|k| step(k % 3))).chain(odd(70)).collect();
        let segments = segments(vec![strip.clone()]);
        assert!(segments.iter().all(|s| s.words.len() <= MOST && run(&s.words) == words(&s.groups)));
        assert!(segments.len() < 10, "{} programs", segments.len());
        let all: Vec<UnitGroup> = segments.into_iter().flat_map(|s| s.groups).collect();
        assert!(all == strip);
    }

    /// A vector is written with those before it, unless a step between has its register.
    #[test]
    fn vectors_are_brought_together() {
        let brought = |index| {
            let what = Bring::Lanes(u16::from(index));
            UnitGroup::Host(HostWrite::Vector { file_b: false, index, what }, Span::default())
        };
        let o = |place, index| Operand { place, index };
        let mac = |col| UnitGroup::Steps {
            word: Instruction::Alu {
                op: Alu::Mac,
                dst: o(File::GrfB, 0),
                a: o(File::EvenBank, 0),
                b: Some(o(File::GrfA, 0)),
                auto: true,
                relu: false,
            },
            write: false,
            at: BankBurst { odd: 0, row: 0, col },
            count: 8,
            span: Span::default(),
        };
        // Columns 0 to 7 take GRF_A[0], columns 8 to 15 GRF_A[1].
        let groups = vec![brought(0), mac(0), brought(1), brought(7), mac(8), brought(1), brought(2)];
        let want = vec![brought(0), brought(1), brought(7), mac(0), mac(8), brought(1), brought(2)];
        assert!(gathered(groups) == want);
    }

    #[test]
    fn a_matrix_vector_product_is_two_words() {
        let words: Vec<Instruction> = (0..4).flat_map(|_| std::iter::once(nop(1)).chain([nop(2); 8])).collect();
        let jump = |count, offset| Instruction::Jump { count, offset };
        assert_eq!(folded(words), [nop(1), nop(2), jump(7, 1), jump(3, 3)]);
    }
}
