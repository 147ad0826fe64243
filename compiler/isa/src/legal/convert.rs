//! Conversions that take more than one TCVT: `f32(x)` of a u8 tile goes through f16 on every target.

use crate::{Sem, TABLE, Target};
use ptoc_tensor::DType::{self, *};

/// One TCVT of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConversionHop {
    /// Source.
    pub from: DType,
    /// Destination.
    pub to: DType,
    /// Saturation of this step that makes the whole right. `None`: as the whole conversion does.
    pub saturate: Option<bool>,
}

/// The pairs (from, to) that TCVT takes on `target`.
pub fn tcvt_pairs(target: &Target) -> Vec<(DType, DType)> {
    let row = TABLE.iter().find(|i| i.sem == Sem::Convert).expect("the table has TCVT");
    let pairs = target.instructions.list(row).iter().filter_map(|entry| match entry[..] {
        [from, to] => Some((from, to)),
        _ => None,
    });
    pairs.filter(|(a, b)| target.has_dtype(*a) && target.has_dtype(*b)).collect()
}

/// The fewest TCVTs whose composition equals the conversion `from` -> `to` rounded (and saturated or wrapped) once;
/// `None` if there is no such chain. All steps use the rounding mode of the whole: where a value is exact it does not
/// matter. Empty if the types are equal.
///
/// A chain is right in three cases: every step but the last keeps all values; or a float goes to an integer at least as
/// wide first, and every later step keeps the destination's range and saturates; or integers get narrower step by step.
/// A float may become a wider one before that.
pub fn conversion_path(target: &Target, from: DType, to: DType) -> Option<Vec<ConversionHop>> {
    if from == to {
        return Some(Vec::new());
    }
    let pairs = tcvt_pairs(target);
    let mut best: Option<Vec<ConversionHop>> = None;
    let mut consider = |path: Vec<DType>, saturate: bool| {
        if best.as_ref().is_none_or(|b| path.len() - 1 < b.len()) {
            let hops = path.windows(2).enumerate().map(|(i, w)| ConversionHop {
                from: w[0],
                to: w[1],
                saturate: (saturate && i > 0).then_some(true),
            });
            best = Some(hops.collect());
        }
    };
    if let Some(p) = chain(&pairs, from, to, |a, b, last| last || keeps_all(a, b)) {
        consider(p, false);
    }
    if from.is_float() && to.is_int() {
        for &(_, wide) in pairs.iter().filter(|(a, b)| *a == from && b.is_int() && covers(*b, to)) {
            if let Some(mut p) = chain(&pairs, wide, to, |_, b, last| last || keeps_range(b, to)) {
                p.insert(0, from);
                consider(p, true);
            }
        }
    }
    if from.is_int() && to.is_int() {
        let narrowing =
            |a: DType, b: DType, _| a.is_int() && b.is_int() && b.size() < a.size() && b.size() >= to.size();
        if let Some(p) = chain(&pairs, from, to, narrowing) {
            consider(p, false);
        }
    }
    best.or_else(|| after_widening(target, &pairs, from, to))
}

/// A float that becomes a wider one first, which keeps its value, and then what the wider one converts to.
fn after_widening(target: &Target, pairs: &[(DType, DType)], from: DType, to: DType) -> Option<Vec<ConversionHop>> {
    let wider = pairs.iter().filter(|(a, b)| *a == from && *b != from && b.is_float() && keeps_all(from, *b));
    let ways = wider.filter(|_| from.is_float()).filter_map(|&(_, via)| {
        let first = ConversionHop { from, to: via, saturate: None };
        Some(std::iter::once(first).chain(conversion_path(target, via, to)?).collect::<Vec<_>>())
    });
    ways.min_by_key(Vec::len)
}

/// A dtype through which `from` converts to `to` with two roundings, where [`conversion_path`] has no way. The floats
/// that have the range of every dtype come into question: through others, large values would be lost, and not only
/// rounded.
pub(crate) fn rounds_twice(target: &Target, from: DType, to: DType) -> Option<DType> {
    let leads = |a, b| conversion_path(target, a, b).is_some();
    [F32, BF16].into_iter().find(|&via| via != from && via != to && leads(from, via) && leads(via, to))
}

/// Breadth-first search over dtypes; `step(a, b, last)` says whether the step may be taken.
fn chain(
    pairs: &[(DType, DType)],
    from: DType,
    to: DType,
    step: impl Fn(DType, DType, bool) -> bool,
) -> Option<Vec<DType>> {
    let mut paths = vec![vec![from]];
    let mut seen = vec![from];
    while !paths.is_empty() {
        let mut next = Vec::new();
        for path in &paths {
            let here = path[path.len() - 1];
            for &(_, b) in pairs.iter().filter(|(a, b)| *a == here && a != b) {
                if !step(here, b, b == to) {
                    continue;
                }
                let longer: Vec<DType> = path.iter().copied().chain([b]).collect();
                if b == to {
                    return Some(longer);
                }
                if !seen.contains(&b) {
                    seen.push(b);
                    next.push(longer);
                }
            }
        }
        paths = next;
    }
    None
}

/// Bits of the largest magnitude of an integer type.
fn magnitude_bits(d: DType) -> u32 {
    8 * d.size() as u32 - u32::from(d.is_signed_int())
}

/// Integers up to 2^this are exact.
pub(super) fn exact_integer_bits(d: DType) -> u32 {
    match d {
        F16 => 11,
        BF16 => 8,
        F8E4M3 => 4,
        F8E5M2 => 3,
        F32 => 24,
        d => magnitude_bits(d),
    }
}

/// Does every value of `a` convert to `b` unchanged?
pub(crate) fn keeps_all(a: DType, b: DType) -> bool {
    match (a, b) {
        (a, b) if a == b => true,
        (F16 | BF16, F32) => true,
        (F8E4M3 | F8E5M2, F16 | BF16 | F32) => true,
        (a, b) if a.is_int() && b.is_float() => magnitude_bits(a) <= exact_integer_bits(b),
        (a, b) if a.is_int() && b.is_int() => covers(b, a),
        _ => false,
    }
}

/// Is the whole part of every finite value of the float `a` a value of integer type `b`?
pub(crate) fn keeps_whole_part(a: DType, b: DType) -> bool {
    // All are below 2^this.
    let bits = match a {
        F16 | F8E5M2 => 16,
        F8E4M3 => 9,
        _ => 128,
    };
    b.is_signed_int() && magnitude_bits(b) >= bits
}

/// Does integer type `wide` hold every value of integer type `narrow`?
fn covers(wide: DType, narrow: DType) -> bool {
    magnitude_bits(wide) >= magnitude_bits(narrow) && (wide.is_signed_int() || !narrow.is_signed_int())
}

/// Does a saturating step to `b` keep every integer in the range of `to`, and the order of the others?
fn keeps_range(b: DType, to: DType) -> bool {
    if b.is_int() { covers(b, to) } else { magnitude_bits(to) <= exact_integer_bits(b) }
}
