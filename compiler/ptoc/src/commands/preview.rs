//! A glance at a tensor: its first rows and columns.

use ptoc_debugger::numbers::number;
use ptoc_tensor::Tensor;

/// Rows and columns that are shown.
const ROWS: usize = 4;
const COLS: usize = 6;

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
    use ptoc_tensor::DType;

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
