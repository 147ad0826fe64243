//! Comparison of results with what was expected.

use crate::tensor::unravel;
use crate::{DType, Tensor, scalar};
use std::fmt;

/// What a comparison that held has seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Stats {
    /// Elements compared.
    pub elements: usize,
    /// The largest |got - want|; 0 if there are no elements.
    pub max_error: f64,
    /// Where that is (the first such place); empty for scalars and if there are no elements.
    pub max_error_index: Vec<usize>,
    /// The largest distance in units in the last place, for floats.
    pub max_ulps: Option<u64>,
}

/// Why a comparison did not hold.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// The element types differ.
    #[error("the result is {got}, expected was {want}")]
    DType {
        /// That of the result.
        got: DType,
        /// That of the expectation.
        want: DType,
    },
    /// The shapes differ.
    #[error("the result has the shape {got:?}, expected was {want:?}")]
    Shape {
        /// That of the result.
        got: Vec<usize>,
        /// That of the expectation.
        want: Vec<usize>,
    },
    /// The oracle has another number of values than the result.
    #[error("the result has {got} elements, expected were {want}")]
    Count {
        /// Elements of the result.
        got: usize,
        /// Values of the oracle.
        want: usize,
    },
    /// Values differ by more than the tolerance.
    #[error("{0}")]
    Values(Box<ValueMismatch>),
}

impl Mismatch {
    /// The diagnostic code of this mismatch.
    pub fn code(&self) -> &'static str {
        match self {
            Mismatch::DType { .. } => "E0711",
            Mismatch::Shape { .. } | Mismatch::Count { .. } => "E0712",
            Mismatch::Values(_) => "E0713",
        }
    }
}

/// Values that differ by more than the tolerance, with the worst of them: the one whose error is the largest multiple
/// of what it was allowed, then the largest error, then the first.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueMismatch {
    /// Elements compared.
    pub elements: usize,
    /// Elements out of tolerance.
    pub mismatches: usize,
    /// Coordinate of the worst element.
    pub index: Vec<usize>,
    /// Its value in the result, as text.
    pub got: String,
    /// Its expected value, as text.
    pub want: String,
    /// |got - want|; infinite if one of them is, or if one is NaN.
    pub error: f64,
    /// What was allowed there: `atol + rtol * |want|`.
    pub allowed: f64,
    /// The distance in units in the last place, for floats that are not NaN.
    pub ulps: Option<u64>,
    /// Coordinate of the first element out of tolerance.
    pub first: Vec<usize>,
    /// The relative tolerance.
    pub rtol: f64,
    /// The absolute tolerance.
    pub atol: f64,
}

impl fmt::Display for ValueMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.mismatches == 1 { "differs" } else { "differ" };
        let ValueMismatch { elements, mismatches, index, got, want, .. } = self;
        write!(f, "{mismatches} of {elements} elements {verb}; the worst is {index:?}: got {got}, expected {want}")?;
        if self.error.is_finite() {
            write!(f, ", error {}", short(self.error))?;
        }
        if let Some(ulps) = self.ulps {
            write!(f, " ({ulps} ulp)")?;
        }
        if self.rtol != 0.0 || self.atol != 0.0 {
            let (atol, rtol) = (short(self.atol), short(self.rtol));
            write!(f, ", allowed {} = {atol} + {rtol} * |{want}|", short(self.allowed))?;
        }
        if self.first != self.index {
            write!(f, "; the first is {:?}", self.first)?;
        }
        Ok(())
    }
}

/// Four significant digits at most, without trailing zeros.
fn short(value: f64) -> String {
    let text = scalar::format_f64(format!("{value:.3e}").parse().unwrap_or(value));
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}

/// Holds if every element has `|got - want| <= atol + rtol * |want|`. NaN equals NaN, an infinity equals itself, and
/// with both tolerances 0 equality is exact (-0 equals +0).
pub fn compare(got: &Tensor, want: &Tensor, rtol: f64, atol: f64) -> Result<Stats, Mismatch> {
    if got.dtype() != want.dtype() {
        return Err(Mismatch::DType { got: got.dtype(), want: want.dtype() });
    }
    if got.shape() != want.shape() {
        return Err(Mismatch::Shape { got: got.shape().to_vec(), want: want.shape().to_vec() });
    }
    let dtype = got.dtype();
    if got.bytes() == want.bytes() {
        let max_ulps = dtype.is_float().then_some(0);
        let max_error_index = if got.is_empty() { vec![] } else { got.unravel(0) };
        return Ok(Stats { elements: got.len(), max_error: 0.0, max_error_index, max_ulps });
    }
    judge(got, rtol, atol, |i| {
        let (a, b) = (got.get_bits(i), want.get_bits(i));
        // f64 does not hold 64-bit integers; their difference is formed before it is rounded.
        let error = match dtype.is_float() {
            true => error_of(scalar::bits_to_f64(dtype, a), scalar::bits_to_f64(dtype, b)),
            false => (scalar::bits_to_i128(dtype, a) - scalar::bits_to_i128(dtype, b)).unsigned_abs() as f64,
        };
        Pair { want: scalar::bits_to_f64(dtype, b), want_bits: b, error, text: None }
    })
}

/// [`compare`] with values in f64, C-order, as the `ensures` oracle computes them. They are not rounded first.
pub fn compare_f64(got: &Tensor, want: &[f64], rtol: f64, atol: f64) -> Result<Stats, Mismatch> {
    if got.len() != want.len() {
        return Err(Mismatch::Count { got: got.len(), want: want.len() });
    }
    let dtype = got.dtype();
    judge(got, rtol, atol, |i| {
        let error = error_of(got.get_f64(i), want[i]);
        Pair { want: want[i], want_bits: scalar::bits_from_f64(dtype, want[i]), error, text: Some(want[i]) }
    })
}

/// One element's expectation and its error.
struct Pair {
    want: f64,
    /// The expectation in the result's dtype, for ulps and text.
    want_bits: u64,
    error: f64,
    /// What to print for the expectation if it is not `want_bits`.
    text: Option<f64>,
}

/// |got - want|, 0 for two NaN and for equal infinities, infinite if only one is a NaN.
fn error_of(got: f64, want: f64) -> f64 {
    if got == want || got.is_nan() && want.is_nan() {
        0.0
    } else if got.is_nan() || want.is_nan() {
        f64::INFINITY
    } else {
        (got - want).abs()
    }
}

fn judge(got: &Tensor, rtol: f64, atol: f64, pair: impl Fn(usize) -> Pair) -> Result<Stats, Mismatch> {
    let dtype = got.dtype();
    let ulps_of = |i: usize, pair: &Pair| scalar::ulps(dtype, got.get_bits(i), pair.want_bits);
    let (mut max_error, mut max_at, mut max_ulps) = (0.0, 0, dtype.is_float().then_some(0));
    // The worst so far: how far beyond the tolerance, the error, the place.
    let mut worst: Option<(f64, f64, usize)> = None;
    let (mut mismatches, mut first) = (0, 0);
    for i in 0..got.len() {
        let pair = pair(i);
        let error = pair.error;
        if error > max_error {
            (max_error, max_at) = (error, i);
        }
        if error == 0.0 {
            continue;
        }
        max_ulps = max_ulps.max(ulps_of(i, &pair));
        // An infinite tolerance (want = inf) must not excuse an infinite error.
        let allowed = atol + rtol * pair.want.abs();
        if error.is_finite() && error <= allowed {
            continue;
        }
        if mismatches == 0 {
            first = i;
        }
        mismatches += 1;
        let excess = if error.is_finite() && allowed > 0.0 { error / allowed } else { f64::INFINITY };
        if worst.is_none_or(|(e, r, _)| (excess, error) > (e, r)) {
            worst = Some((excess, error, i));
        }
    }
    let Some((_, error, at)) = worst else {
        let max_error_index = if got.is_empty() { vec![] } else { got.unravel(max_at) };
        return Ok(Stats { elements: got.len(), max_error, max_error_index, max_ulps });
    };
    let pair = pair(at);
    let mut got_text = scalar::format_bits(dtype, got.get_bits(at));
    let want_text = pair.text.map_or_else(|| scalar::format_bits(dtype, pair.want_bits), scalar::format_f64);
    if got_text == want_text {
        // Shortest for its dtype, a rounded result may look like the unrounded oracle.
        got_text = scalar::format_f64(got.get_f64(at));
    }
    Err(Mismatch::Values(Box::new(ValueMismatch {
        elements: got.len(),
        mismatches,
        index: got.unravel(at),
        got: got_text,
        want: want_text,
        error,
        allowed: atol + rtol * pair.want.abs(),
        ulps: ulps_of(at, &pair),
        first: unravel(got.shape(), first),
        rtol,
        atol,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DType::{F16, F32, I64, U8};

    fn floats(values: &[f64]) -> Tensor {
        Tensor::from_f64s(F32, &[values.len()], values).unwrap()
    }

    fn refusal(result: Result<Stats, Mismatch>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn equality_is_exact_by_default() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let a = floats(&[1.0, nan, inf, -inf, 0.0]);
        assert_eq!(compare(&a, &a, 0.0, 0.0).unwrap().elements, 5);
        let negative_zero_and_other_nan = floats(&[1.0, -nan, inf, -inf, -0.0]);
        assert_eq!(compare(&a, &negative_zero_and_other_nan, 0.0, 0.0).unwrap().max_error, 0.0);
        let b = floats(&[1.0f64.next_up(), nan, inf, -inf, 1e-45]);
        insta::assert_snapshot!(refusal(compare(&a, &b, 0.0, 0.0)), @"1 of 5 elements differs; the worst is [4]: got \
            0.0, expected 1e-45, error 1.401e-45 (1 ulp)");
        let empty = Tensor::zeros(F32, &[0, 3]).unwrap();
        assert_eq!(compare(&empty, &empty, 0.0, 0.0).unwrap().max_error_index, [0; 0]);
    }

    #[test]
    fn infinities_and_nans_are_beyond_every_tolerance() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for (got, want) in [(1.0, inf), (inf, 1.0), (-inf, inf), (nan, 1.0), (1.0, nan), (nan, inf)] {
            let (got, want) = (floats(&[got]), floats(&[want]));
            assert!(compare(&got, &want, 1e30, 1e30).is_err(), "{got:?} {want:?}");
            assert!(compare_f64(&got, &want.to_f64s(), 1e30, 1e30).is_err(), "{got:?} {want:?}");
        }
        let message = refusal(compare(&floats(&[3.0, nan]), &floats(&[9.0, 2.0]), 0.0, 0.1));
        insta::assert_snapshot!(message, @"2 of 2 elements differ; the worst is [1]: got nan, expected 2.0, allowed \
            0.1 = 0.1 + 0 * |2.0|; the first is [0]");
    }

    #[test]
    fn the_worst_element_is_the_one_most_beyond_its_tolerance() {
        let want = Tensor::from_f64s(F32, &[2, 2], &[1000.0, 1.0, 1.0, 0.5]).unwrap();
        let got = Tensor::from_f64s(F32, &[2, 2], &[1002.0, 1.0, 1.25, 0.5]).unwrap();
        insta::assert_snapshot!(refusal(compare(&got, &want, 1e-3, 0.0)), @"2 of 4 elements differ; the worst is [1, \
            0]: got 1.25, expected 1.0, error 0.25 (2097152 ulp), allowed 0.001 = 0 + 0.001 * |1.0|; the first is [0, \
            0]");
        insta::assert_snapshot!(refusal(compare(&got, &want, 0.0, 0.0)), @"2 of 4 elements differ; the worst is [0, \
            0]: got 1002.0, expected 1000.0, error 2 (32768 ulp)");
        let stats = compare(&got, &want, 0.5, 0.0).unwrap();
        assert_eq!((stats.max_error, stats.max_error_index), (2.0, vec![0, 0]));
    }

    #[test]
    fn wide_integers_are_compared_exactly() {
        let a = Tensor::from_slice(&[1], &[i64::MAX]).unwrap();
        let b = Tensor::from_slice(&[1], &[i64::MAX - 1]).unwrap();
        insta::assert_snapshot!(refusal(compare(&a, &b, 0.0, 0.0)), @"1 of 1 elements differs; the worst is [0]: got \
            9223372036854775807, expected 9223372036854775806, error 1");
        let c = Tensor::filled(I64, &[1], i64::MIN as u64).unwrap();
        assert!(compare(&a, &c, 0.0, 1e10).is_err());
    }

    #[test]
    fn the_oracle_is_not_rounded() {
        let got = Tensor::from_f64s(F16, &[], &[0.1]).unwrap();
        assert_eq!(compare_f64(&got, &[0.1], 1e-3, 0.0).unwrap().max_ulps, Some(0));
        insta::assert_snapshot!(refusal(compare_f64(&got, &[0.1], 0.0, 0.0)), @"1 of 1 elements differs; the worst is \
            []: got 0.0999755859375, expected 0.1, error 2.441e-5 (0 ulp)");
        assert_eq!(compare_f64(&got, &[], 0.0, 0.0), Err(Mismatch::Count { got: 1, want: 0 }));
    }

    #[test]
    fn both_sides_are_shown() {
        let a = Tensor::zeros(F32, &[2, 3]).unwrap();
        let bytes = Tensor::zeros(U8, &[2, 3]).unwrap();
        insta::assert_snapshot!(refusal(compare(&a, &bytes, 0.0, 0.0)), @"the result is f32, expected was u8");
        let message = refusal(compare(&a, &Tensor::zeros(F32, &[3, 2]).unwrap(), 0.0, 0.0));
        insta::assert_snapshot!(message, @"the result has the shape [2, 3], expected was [3, 2]");
    }
}
