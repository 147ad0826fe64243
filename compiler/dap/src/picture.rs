//! `ptoc/picture`: a tile as an SVG, a cell for each element, in colour by its value.

use ptoc_debugger::inspect::Inspected;
use ptoc_debugger::numbers::{Cell, element};
use ptoc_debugger::stop::StopPlace;
use ptoc_debugger::values::{Array, Look};
use ptoc_driver::preview::number;
use ptoc_tensor::DType;
use ptoc_tensor::scalar::bits_to_f64;
use ptoc_views::page::escape;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Cells of an axis at most. A longer one shows every n-th element.
const MOST: usize = 128;

/// Units of the picture that it may be wide.
const WIDTH: usize = 640;

/// The picture of what an expression names.
pub(crate) fn answer(seen: &StopPlace<'_>, expression: &str) -> Result<Value, String> {
    let array = match seen.look.inspect(expression)? {
        Inspected::Array(array) if !array.shape().is_empty() => array,
        Inspected::Several(count) => {
            let name = expression.trim();
            return Err(format!("`{name}` is {count} tiles: choose one, `{name}[0]`"));
        }
        _ => return Err(format!("`{}` has no elements to draw", expression.trim())),
    };
    let picture = Picture::of(seen.look, &array);
    Ok(json!({"title": array.title, "svg": picture.svg(&array), "least": picture.least, "greatest": picture.greatest}))
}

/// Elements that are drawn.
struct Picture {
    rows: usize,
    cols: usize,
    /// Distances of the rows and of the columns that are drawn.
    steps: (usize, usize),
    cells: Vec<Cell>,
    least: Option<f64>,
    greatest: Option<f64>,
}

impl Picture {
    /// The last two axes; of those before them the first index.
    fn of(look: &Look<'_>, array: &Array) -> Picture {
        let shape = array.shape();
        let (all_rows, all_cols) = match shape[..] {
            [.., rows, cols] => (rows, cols),
            [cols] => (1, cols),
            [] => (1, 1),
        };
        let steps = (all_rows.div_ceil(MOST).max(1), all_cols.div_ceil(MOST).max(1));
        let (rows, cols) = (all_rows.div_ceil(steps.0), all_cols.div_ceil(steps.1));
        let mut cells = Vec::with_capacity(rows * cols);
        let (mut least, mut greatest) = (None::<f64>, None::<f64>);
        for (row, col) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
            let mut at = vec![0; shape.len()];
            let last = shape.len() - 1;
            at[last] = col * steps.1;
            if last > 0 {
                at[last - 1] = row * steps.0;
            }
            let cell = look.cell(&array.source, &array.index(&at));
            if let Cell::Bits(bits) = cell
                && let x = bits_to_f64(array.dtype, bits)
                && x.is_finite()
            {
                least = Some(least.map_or(x, |m| m.min(x)));
                greatest = Some(greatest.map_or(x, |m| m.max(x)));
            }
            cells.push(cell);
        }
        Picture { rows, cols, steps, cells, least, greatest }
    }

    /// Blue below 0, red above it, white at 0; grey what has no number.
    fn colour(&self, array: &Array, cell: &Cell) -> String {
        let Cell::Bits(bits) = cell else { return "#c8c8c8".into() };
        let x = bits_to_f64(array.dtype, *bits);
        if x.is_nan() {
            return "#1a1a1a".into();
        }
        let scale = self.least.unwrap_or(0.0).abs().max(self.greatest.unwrap_or(0.0).abs());
        let share = if scale > 0.0 { (x / scale).clamp(-1.0, 1.0) } else { 0.0 };
        let fade = |full: f64| (255.0 + (full - 255.0) * share.abs()).round() as u8;
        let [r, g, b] = if share < 0.0 { [33.0, 102.0, 172.0] } else { [178.0, 24.0, 43.0] };
        format!("#{:02x}{:02x}{:02x}", fade(r), fade(g), fade(b))
    }

    fn svg(&self, array: &Array) -> String {
        let side = (WIDTH / self.cols.max(1)).clamp(4, 24);
        let (width, height) = ((self.cols * side).max(240), self.rows * side);
        let (above, below) = (22, 24);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {}\" width=\"{width}\" height=\"{}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<title>{}</title>\n<text x=\"0\" y=\"14\" \
             fill=\"currentColor\">{}</text>\n",
            above + height + below,
            above + height + below,
            escape(&array.title),
            escape(&array.title)
        );
        for (n, cell) in self.cells.iter().enumerate() {
            let (row, col) = (n / self.cols, n % self.cols);
            let (at_row, at_col) = (row * self.steps.0, col * self.steps.1);
            let _ = writeln!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{side}\" height=\"{side}\" fill=\"{}\"><title>[{at_row}, {at_col}] = \
                 {}</title></rect>",
                col * side,
                above + row * side,
                self.colour(array, cell),
                escape(&element(array.dtype, cell))
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"0\" y=\"{}\" fill=\"currentColor\">{}</text>\n</svg>",
            above + height + 17,
            escape(&self.legend())
        );
        out
    }

    /// What the colours mean, and what is left out.
    fn legend(&self) -> String {
        let mut text = match (self.least, self.greatest) {
            (Some(least), Some(greatest)) => {
                format!("{} to {}: blue below 0, red above, grey is unwritten", short(least), short(greatest))
            }
            _ => "no number is written".into(),
        };
        if self.steps != (1, 1) {
            let _ = write!(text, "; every {} x {} elements one cell", self.steps.0, self.steps.1);
        }
        text
    }
}

/// A number with as many digits as are of use in a legend.
fn short(x: f64) -> String {
    number(DType::F32, u64::from((x as f32).to_bits()))
}
