//! Conversions that take more than one TCVT: `f32(x)` of a u8 tile goes through f16 on every target.

use crate::{InstrId, Sem, TABLE, Target};
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

/// A conversion that TCVT does not have, and operations on bits make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BitsWay {
    /// Through these dtypes: where two differ in their sign alone, the bits are copied.
    Through(Vec<DType>),
    /// u16 to a wider dtype: its bits as i16 and then i32, of which the lower half is kept.
    LowerHalf,
    /// u32 to f32: by its halves.
    FloatOfU32,
    /// f32 to u32: what is beyond i32 by what remains of it.
    U32OfFloat,
}

/// The integer of the same width with or without a sign.
pub fn other_sign(d: DType) -> Option<DType> {
    Some(match d {
        I8 => U8,
        U8 => I8,
        I16 => U16,
        U16 => I16,
        I32 => U32,
        U32 => I32,
        _ => return None,
    })
}

/// The instruction that copies the bits of one dtype to another of its size: TGATHER of all columns.
pub fn bits_row(target: &Target, from: DType, to: DType) -> Option<InstrId> {
    let id = crate::lookup("TGATHER_MASK")?;
    super::check_dtypes(target, id, &[to, from], None).is_none().then_some(id)
}

/// How operations on bits convert `from` to `to`, where [`conversion_path`] has no way.
pub fn conversion_by_bits(target: &Target, from: DType, to: DType) -> Option<BitsWay> {
    let path = |a, b| conversion_path(target, a, b).is_some();
    let bits = |a, b| bits_row(target, a, b).is_some();
    if from == U16 && matches!(to, I32 | U32 | F32) {
        let back = to == I32 || to == U32 && bits(I32, U32) || to == F32 && path(I32, F32);
        return (bits(U16, I16) && path(I16, I32) && back).then_some(BitsWay::LowerHalf);
    }
    let through = if from.is_int() && to.is_int() {
        // Integers wrap, so the sign may be changed before or after, unless there are bits to be filled in.
        match (other_sign(from), other_sign(to)) {
            (Some(f), _) if f == to => vec![to],
            (_, Some(s)) if path(from, s) => vec![s, to],
            (Some(f), _) if to.size() <= from.size() && path(f, to) => vec![f, to],
            (Some(f), Some(s)) if to.size() <= from.size() && path(f, s) => vec![f, s, to],
            _ => return None,
        }
    } else if (from, to) == (U32, F32) {
        return (bits(U32, I32) && path(I32, F32)).then_some(BitsWay::FloatOfU32);
    } else if (from, to) == (F32, U32) {
        return (bits(I32, U32) && path(F32, I32)).then_some(BitsWay::U32OfFloat);
    } else if from.is_float() && to == U32 && path(from, F32) && path(F32, I32) {
        vec![F32, U32]
    } else if from.is_int() && to.is_float() && to != F32 && keeps_all(from, F32) && path(F32, to) {
        return converts(target, from, F32).then_some(BitsWay::Through(vec![F32, to]));
    } else {
        return None;
    };
    let steps = std::iter::once(&from).chain(&through).zip(&through);
    let copied = |(a, b): (&DType, &DType)| other_sign(*a) != Some(*b) || bits(*a, *b);
    steps.clone().all(copied).then_some(BitsWay::Through(through))
}

/// Whether a conversion by name leads from one dtype to the other.
pub fn converts(target: &Target, from: DType, to: DType) -> bool {
    conversion_path(target, from, to).is_some()
        || target.has_dtype(from) && target.has_dtype(to) && conversion_by_bits(target, from, to).is_some()
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

/// A dtype through which `from` converts to `to` with two roundings, where [`converts`] knows no way. The floats
/// that have the range of every dtype come into question: through others, large values would be lost, and not only
/// rounded.
pub(crate) fn rounds_twice(target: &Target, from: DType, to: DType) -> Option<DType> {
    let leads = |a, b| converts(target, a, b);
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

/// Whether every value of `a` converts to `b` unchanged.
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

/// Whether the whole part of every finite value of the float `a` is a value of integer type `b`.
pub(crate) fn keeps_whole_part(a: DType, b: DType) -> bool {
    // All are below 2^this.
    let bits = match a {
        F16 | F8E5M2 => 16,
        F8E4M3 => 9,
        _ => 128,
    };
    b.is_signed_int() && magnitude_bits(b) >= bits
}

/// Whether integer type `wide` holds every value of integer type `narrow`.
fn covers(wide: DType, narrow: DType) -> bool {
    magnitude_bits(wide) >= magnitude_bits(narrow) && (wide.is_signed_int() || !narrow.is_signed_int())
}

/// Whether a saturating step to `b` keeps every integer in the range of `to`, and the order of the others.
fn keeps_range(b: DType, to: DType) -> bool {
    if b.is_int() { covers(b, to) } else { magnitude_bits(to) <= exact_integer_bits(b) }
}
