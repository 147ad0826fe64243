//! What there is to say of a result with other values than expected: a tolerance where rounding can explain it, else
//! the pattern.

use ptoc_diagnostics::Diagnostic;
use ptoc_tensor::{DType, Tensor, scalar};

/// Tolerances (relative, absolute) that are tried, from the strictest on.
const LADDER: [(f64, f64); 5] = [(1e-6, 1e-7), (1e-5, 1e-6), (1e-4, 1e-5), (1e-3, 1e-4), (1e-2, 1e-3)];

/// The largest relative error that rounding is believed to make: sums of thousands of terms, rounded in the middle.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1e-3,
        DType::F16 | DType::BF16 => 1e-2,
        _ => 0.0,
    }
}

/// Adds the tolerance with which the comparison holds, if rounding can be the reason for as much; else what the wrong
/// elements have in common. `want` are the expected values.
pub fn explain(d: Diagnostic, got: &Tensor, want: &[f64], (rtol, atol): (f64, f64)) -> Diagnostic {
    let dtype = got.dtype();
    // Of 64 bits f64 does not hold every integer.
    if want.len() != got.len() || dtype.size() == 8 {
        return d;
    }
    let values: Vec<f64> = (0..got.len()).map(|i| scalar::bits_to_f64(dtype, got.get_bits(i))).collect();
    let within = |(r, a): (f64, f64)| {
        let near = |(x, y): (&f64, &f64)| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= a + r * y.abs();
        values.iter().zip(want).all(near)
    };
    let enough = LADDER.into_iter().filter(|t| t.0 <= rounding(dtype)).find(|t| within(*t));
    if let Some((r, a)) = enough.filter(|_| rtol == 0.0 && atol == 0.0) {
        return d
            .with_help(format!("if rounding explains it, allow a tolerance: it holds with rtol {r:e} and atol {a:e}"));
    }
    let d = pattern(got, &values, want, (rtol, atol)).into_iter().fold(d, Diagnostic::with_note);
    match dtype.is_float() && enough.is_none() {
        true => d.with_note(
            "rounding of results does not explain as much: the values are others, or operands were rounded before",
        ),
        false => d,
    }
}

/// What the wrong elements have in common.
fn pattern(got: &Tensor, values: &[f64], want: &[f64], (rtol, atol): (f64, f64)) -> Option<String> {
    let near = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= atol + rtol * y.abs();
    let wrong: Vec<usize> = (0..values.len()).filter(|&i| !near(values[i], want[i])).collect();
    let first = *wrong.first()?;
    if wrong.len() < 2 {
        return None;
    }
    let which = place(got, &wrong, values.len());
    let every = |f: &dyn Fn(f64, f64) -> bool| wrong.iter().all(|&i| f(values[i], want[i]));
    let factor = values[first] / want[first];
    let same = |x: f64, y: f64| y != 0.0 && ((x / y) - factor).abs() <= 1e-3 * factor.abs();
    let what = if every(&|x, _| x == 0.0) {
        ": they are 0, as if nothing had been stored there"
    } else if every(&|x, _| x.is_nan()) {
        ": they are NaN"
    } else if every(&|x, y| y == 0.0 && x != 0.0) {
        ": they should be 0"
    } else if factor.is_finite() && factor != 0.0 && every(&same) {
        let times = scalar::format_f64(format!("{factor:.3e}").parse().unwrap_or(factor));
        return Some(format!("{which}: each is {} times what it should be", times.trim_end_matches(".0")));
    } else if turned(got, values, want) {
        ": the result is the transpose of what it should be"
    } else if which.starts_with("exactly") {
        ""
    } else {
        return None;
    };
    Some(format!("{which}{what}"))
}

/// Which elements these are, of so many: all, a block, or some.
fn place(got: &Tensor, wrong: &[usize], all: usize) -> String {
    if wrong.len() == all {
        return "all elements differ".into();
    }
    let first = got.unravel(wrong[0]);
    let (mut low, mut high) = (first.clone(), first);
    for &i in wrong {
        for ((at, low), high) in got.unravel(i).into_iter().zip(&mut low).zip(&mut high) {
            (*low, *high) = ((*low).min(at), (*high).max(at));
        }
    }
    let sides: Vec<usize> = low.iter().zip(&high).map(|(l, h)| h - l + 1).collect();
    if sides.iter().product::<usize>() != wrong.len() {
        return "the elements that differ have this in common".into();
    }
    let ranges = low.iter().zip(&high).zip(got.shape()).map(|((l, h), n)| match h - l + 1 == *n {
        true => "_".to_owned(),
        false if l == h => l.to_string(),
        false => format!("{l}..{}", h + 1),
    });
    let block = ranges.collect::<Vec<_>>().join(", ");
    format!("exactly the block [{block}] differs")
}

/// Whether the result has two equal modes and is what is expected with the modes exchanged.
fn turned(got: &Tensor, values: &[f64], want: &[f64]) -> bool {
    let &[n, m] = got.shape() else { return false };
    n == m && n > 1 && (0..n).all(|i| (0..n).all(|j| values[i * n + j] == want[j * n + i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_diagnostics::codes;

    fn said(shape: &[usize], got: impl Fn(usize) -> f64, want: impl Fn(usize) -> f64) -> (Vec<String>, Vec<String>) {
        let n = shape.iter().product();
        let tensor = Tensor::from_fn(DType::F32, shape, |i| scalar::bits_from_f64(DType::F32, got(i))).unwrap();
        let want: Vec<f64> = (0..n).map(want).collect();
        let d = explain(Diagnostic::global(codes::UNEXPECTED_TOKEN, ""), &tensor, &want, (0.0, 0.0));
        (d.notes, d.fixes.into_iter().map(|f| f.message).collect())
    }

    #[test]
    fn a_tolerance_is_one_that_helps() {
        let (notes, helps) = said(&[4, 4], |i| i as f64 * (1.0 + 5e-6), |i| i as f64);
        assert_eq!(notes, [""; 0]);
        assert_eq!(helps, ["if rounding explains it, allow a tolerance: it holds with rtol 1e-5 and atol 1e-6"]);
    }

    #[test]
    fn other_values_are_no_rounding() {
        let rest =
            "rounding of results does not explain as much: the values are others, or operands were rounded before";
        let number = |i: usize| (i * i % 7) as f64 + 1.0;
        let (notes, helps) = said(&[4, 4], |i| if i / 8 == 1 && i % 4 < 2 { 0.0 } else { number(i) }, number);
        assert_eq!(helps, [""; 0]);
        let block = "exactly the block [2..4, 0..2] differs";
        assert_eq!(notes, [&format!("{block}: they are 0, as if nothing had been stored there"), rest]);
        let (notes, _) = said(&[4, 4], |i| 2.0 * number(i), number);
        assert_eq!(notes, ["all elements differ: each is 2 times what it should be", rest]);
        let (notes, _) = said(&[4, 4], |i| (i % 4 * 4 + i / 4) as f64, |i| i as f64);
        assert_eq!(
            notes,
            ["the elements that differ have this in common: the result is the transpose of what it should be", rest]
        );
        let (notes, _) = said(&[4], |i| if i == 2 { 9.0 } else { number(i) }, number);
        assert_eq!(notes, [rest]);
    }
}
