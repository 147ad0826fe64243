//! A glance at results: numbers as people read them, the first rows and columns of a tensor.

use ptoc_tensor::{DType, Tensor, scalar};

/// Rows and columns that are shown.
const ROWS: usize = 4;
const COLS: usize = 6;

/// A number: floats with six significant digits at most, those of 8 bits with all that `print` tells.
pub fn number(dtype: DType, bits: u64) -> String {
    let exact = scalar::format_bits(dtype, bits);
    let x = scalar::bits_to_f64(dtype, bits);
    if !dtype.is_float() || !x.is_finite() || exact.trim_start_matches('-').len() <= 7 {
        return exact;
    }
    if dtype.is_f8() {
        return (x as f32).to_string();
    }
    if x == 0.0 || (1e-4..1e6).contains(&x.abs()) {
        let digits = 5 - x.abs().max(1e-4).log10().floor() as i32;
        let text = format!("{x:.*}", digits.clamp(0, 9) as usize);
        return match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        };
    }
    format!("{x:.4e}")
}

/// The first rows and columns of the first matrix, aligned, each line indented by two.
pub fn corner(t: &Tensor) -> String {
    if t.is_empty() {
        return "  (empty)".into();
    }
    let shape = t.shape();
    let cols = shape.last().copied().unwrap_or(1);
    let rows = shape.len().checked_sub(2).map_or(1, |at| shape[at]);
    let (shown_rows, shown_cols) = (rows.min(ROWS), cols.min(COLS));
    let cells: Vec<Vec<String>> = (0..shown_rows)
        .map(|i| (0..shown_cols).map(|j| number(t.dtype(), t.get_bits(i * cols + j))).collect())
        .collect();
    let width = cells.iter().flatten().map(String::len).max().unwrap_or(0);
    let mut lines: Vec<String> = cells
        .iter()
        .map(|row| {
            let row: Vec<String> = row.iter().map(|cell| format!("{cell:>width$}")).collect();
            format!("  {}{}", row.join("  "), if cols > shown_cols { "  .." } else { "" })
        })
        .collect();
    if rows > shown_rows || t.len() > rows * cols {
        lines.push("  ..".into());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners() {
        let t = |shape: &[usize], v: &[f64]| corner(&Tensor::from_f64s(DType::F32, shape, v).unwrap());
        assert_eq!(t(&[2, 2], &[1.0, -2.5, 1e9, f64::NAN]), "       1.0      -2.5\n  1.0000e9       nan");
        assert_eq!(t(&[3], &[0.1, 1.0 / 3.0, 100.0 / 3.0]), "       0.1  0.333333   33.3333");
        assert_eq!(t(&[0, 4], &[]), "  (empty)");
        assert_eq!(t(&[], &[7.0]), "  7.0");
        let wide = Tensor::zeros(DType::I32, &[2, 9, 8]).unwrap();
        assert_eq!(
            corner(&wide),
            "  0  0  0  0  0  0  ..\n  0  0  0  0  0  0  ..\n  0  0  0  0  0  0  ..\n  0  0  0  0  0  0  ..\n  .."
        );
    }
}
