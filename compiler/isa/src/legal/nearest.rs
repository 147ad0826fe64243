//! What to write instead of dtypes that an instruction does not take.

use super::convert::{converts as leads, keeps_all, keeps_whole_part, tcvt_pairs};
use crate::{Instr, Role, Target, text};
use ptoc_tensor::DType;

/// The nearest dtype that is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nearest {
    /// A conversion by name leads there, and keeps every value.
    Keeps(DType),
    /// A conversion by name leads there, and some values are rounded.
    Rounds(DType),
    /// No conversion leads there on this target: operands are of this dtype from the start.
    Declared(DType),
}

/// How far `to` is from `from`: another kind of number is farther than another width, a narrower one farther than a
/// wider one.
pub(super) fn distance(from: DType, to: DType) -> u32 {
    let bits = |d: DType| (d.size() as u32).trailing_zeros();
    let kind = if (from == DType::Bool) != (to == DType::Bool) {
        40
    } else if from.is_float() != to.is_float() {
        20
    } else {
        0
    };
    let width = match (bits(from), bits(to)) {
        (a, b) if b >= a => 3 * (b - a),
        (a, b) => 5 * (a - b),
    };
    let sign = u32::from(from.is_int() && to.is_int() && from.is_signed_int() != to.is_signed_int());
    kind + width + 2 * sign + u32::from(from != to && kind + width + sign == 0)
}

/// The dtype of `allowed` to use instead of `given`.
pub(super) fn nearest(target: &Target, allowed: &[DType], given: DType) -> Option<Nearest> {
    let numbers = || allowed.iter().copied().filter(|d| *d != DType::Bool);
    let converts = |d: &DType| target.has_dtype(given) && leads(target, given, *d);
    // One that leads back by name; the smallest; an integer for an integer, where there is one.
    let back = |d: DType| leads(target, d, given);
    let rank = |d: &DType| (!back(*d), d.size(), d.is_float() != given.is_float());
    let keeps = || numbers().filter(|d| keeps_all(given, *d));
    if given == DType::Bool {
        return numbers().min_by_key(|d| distance(DType::U8, *d)).map(Nearest::Declared);
    }
    if let Some(d) = keeps().filter(converts).min_by_key(rank) {
        return Some(Nearest::Keeps(d));
    }
    // An integer that loses digits is farther than one of the same width, though no conversion leads to that.
    let loses = |d: &DType| given.is_int() && d.is_int() && d.size() < given.size();
    let as_wide = || numbers().find(|d| given.is_int() && d.is_int() && d.size() == given.size());
    if let Some(d) = numbers().filter(converts).min_by_key(|d| distance(given, *d)) {
        return Some(as_wide().filter(|_| loses(&d)).map_or(Nearest::Rounds(d), Nearest::Declared));
    }
    keeps().min_by_key(rank).or_else(|| numbers().min_by_key(|d| distance(given, *d))).map(Nearest::Declared)
}

/// The list that differs the least from `given`.
pub(super) fn nearest_list<L: AsRef<[DType]>>(given: &[DType], allowed: impl IntoIterator<Item = L>) -> Option<L> {
    let far = |list: &L| given.iter().zip(list.as_ref()).map(|(a, b)| distance(*a, *b)).sum::<u32>();
    allowed.into_iter().filter(|l| l.as_ref().len() == given.len()).min_by_key(far)
}

/// The list of `allowed` for the operands of `row` that loses the least of what is given: a source becomes a dtype that
/// has every value and to which one TCVT leads; else one that has every value; else one with a TCVT. `None` if there is
/// none of use.
pub(super) fn best_list<'l>(
    target: &Target,
    row: &Instr,
    given: &[DType],
    allowed: impl IntoIterator<Item = &'l [DType]>,
) -> Option<&'l [DType]> {
    let pairs = tcvt_pairs(target);
    let rank = |from: DType, to: DType| match (keeps_all(from, to), pairs.contains(&(from, to))) {
        _ if from == to => 0,
        (true, true) => distance(from, to),
        (true, false) => 50 + distance(from, to),
        (false, true) => 100 + distance(from, to),
        (false, false) => 150 + distance(from, to),
    };
    let source = |k: usize| row.operands[k].role == Role::Src;
    // Of elements that bytes count, the width stays, and what has it has the same bits.
    let offsets = row.counts_bytes();
    let same_width = |list: &&[DType]| !offsets || given.iter().zip(*list).all(|(a, b)| a.size() == b.size());
    let far = |list: &&[DType]| -> u32 {
        let of = |(k, (a, b)): (usize, (&DType, &DType))| match source(k) && !offsets {
            true => rank(*a, *b),
            false => distance(*a, *b) + u32::from(offsets && a.is_float() && b.is_signed_int()),
        };
        given.iter().zip(*list).enumerate().map(of).sum()
    };
    allowed.into_iter().filter(|l| l.len() == given.len()).filter(same_width).min_by_key(far)
}

/// What a source of `from` has to do to become `to`, and what is lost.
pub(super) fn becomes(target: &Target, from: DType, to: DType) -> String {
    let there = target.name.as_str();
    match (leads(target, from, to), keeps_all(from, to)) {
        (true, true) => Nearest::Keeps(to).help(from, there),
        (true, false) => Nearest::Rounds(to).help(from, there),
        (false, true) => format!("{to} has every value of {from}, and {there} has no conversion: declare it so"),
        (false, false) => {
            format!(
                "{to} has not every value of {from}, and {there} has no conversion: declare it so where the values fit"
            )
        }
    }
}

impl Nearest {
    /// The dtype.
    pub fn dtype(self) -> DType {
        match self {
            Nearest::Keeps(d) | Nearest::Rounds(d) | Nearest::Declared(d) => d,
        }
    }

    /// The help, for operands of `given` on `target`.
    pub fn help(self, given: DType, target: &str) -> String {
        match self {
            Nearest::Keeps(d) => format!("convert with `{d}(...)`, which keeps every value of {given}"),
            Nearest::Rounds(d) if given.is_int() && d.is_float() => {
                format!("convert with `{d}(...)`, which rounds where {given} has more digits than {d}")
            }
            Nearest::Rounds(d) if given.is_float() && d.is_int() => match keeps_whole_part(given, d) {
                true => format!("convert with `{d}(...)`, which keeps the whole part"),
                false => format!("convert with `{d}(...)`, which keeps the whole part where {d} has room for it"),
            },
            Nearest::Rounds(d) if given.is_int() => {
                format!("convert with `{d}(...)`, which keeps what {d} has room for")
            }
            Nearest::Rounds(d) => format!("convert with `{d}(...)`, which rounds"),
            // A window is read with other dtypes of the same width.
            Nearest::Declared(d) if given.is_int() && d.is_int() && given.size() == d.size() => {
                let sign = match given.is_signed_int() {
                    true => "negative numbers are large ones then".to_owned(),
                    false => format!("from 2^{} on they are negative then", 8 * given.size() - 1),
                };
                format!(
                    "make the operands {d}: where they are loaded, `recast<{d}>(view)` reads their bits as {d}; {sign}"
                )
            }
            Nearest::Declared(d) => {
                let why = match keeps_all(given, d) {
                    true => format!(", which has every value of {given}"),
                    false => String::new(),
                };
                format!("make the operands {d}{why}: {target} has no conversion from {given} to it")
            }
        }
    }
}

/// `dst i32 and idx u16`: what is another dtype in `list` than in `given`.
pub(super) fn changes(names: impl Iterator<Item = String>, given: &[DType], list: &[DType]) -> String {
    let pairs = names.zip(given.iter().zip(list));
    text::list(pairs.filter(|(_, (a, b))| a != b).map(|(name, (_, b))| format!("`{name}` {b}")))
}
