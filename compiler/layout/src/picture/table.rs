//! Grids as text.

use super::{Cell, Grid, MAX_SIDE, Shade};
use std::fmt::Write as _;

/// How text is laid out.
#[derive(Clone, Copy, Debug)]
pub struct TableStyle {
    /// Columns of the terminal.
    pub width: usize,
    /// Rows that are shown at most (at least 3).
    pub rows: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
}

/// Numbers of the rows or columns to show; `None` stands for those that are left out.
pub(super) fn picks(n: usize, most: usize) -> Vec<Option<usize>> {
    match n <= most.max(3) {
        true => (0..n).map(Some).collect(),
        false => (0..most.max(3) - 2).map(Some).chain([None, Some(n - 1)]).collect(),
    }
}

/// The grid, cut to the style's size, with a note if it is.
pub(super) fn draw(grid: &dyn Grid, style: &TableStyle) -> String {
    let (rows, cols) = grid.sides();
    if rows == 0 || cols == 0 {
        return format!("empty: {rows} x {cols}\n");
    }
    let shown_rows = picks(rows, style.rows);
    let heads: Vec<String> = shown_rows.iter().map(|r| r.map_or("..".into(), |r| grid.row_head(r))).collect();
    let head_width = heads.iter().map(|h| h.chars().count()).max().unwrap_or(0);
    let text = |cell: &Cell| match &cell.second {
        Some(second) if !second.is_empty() => format!("{} {second}", cell.text),
        _ => cell.text.clone(),
    };
    let width_of = |picked: &[Option<usize>]| {
        let cells = picked.iter().flatten().flat_map(|&c| {
            let cells = shown_rows.iter().flatten().map(move |&r| text(&grid.cell(r, c)).chars().count());
            cells.chain([grid.col_head(c).chars().count()])
        });
        cells.max().unwrap_or(0).max(2)
    };
    // The widest of what may be shown decides how much may be shown.
    let widest = width_of(&picks(cols, MAX_SIDE));
    let room = style.width.saturating_sub(head_width + 3) / (widest + 2);
    let shown_cols = picks(cols, room);
    let width = width_of(&shown_cols);
    let mut out = String::new();
    let _ = write!(out, "{:head_width$} │", "");
    for c in &shown_cols {
        let head = c.map_or("..".into(), |c| grid.col_head(c));
        let _ = write!(out, "{}", paint(&format!(" {head:>width$} "), style, "\x1b[2m"));
    }
    trim(&mut out);
    let _ = writeln!(out, "\n{}┼{}", "─".repeat(head_width + 1), "─".repeat(shown_cols.len() * (width + 2)));
    for (r, head) in shown_rows.iter().zip(&heads) {
        let _ = write!(out, "{} │", paint(&format!("{head:>head_width$}"), style, "\x1b[2m"));
        for c in &shown_cols {
            match (r, c) {
                (Some(r), Some(c)) => {
                    let cell = grid.cell(*r, *c);
                    let padded = format!(" {:>width$} ", text(&cell));
                    let _ = write!(out, "{}", paint(&padded, style, &background(cell.shade)));
                }
                _ => {
                    let _ = write!(out, " {:>width$} ", "..");
                }
            }
        }
        trim(&mut out);
        out.push('\n');
    }
    let mut cut = Vec::new();
    for (n, shown, what) in [(rows, &shown_rows, "rows"), (cols, &shown_cols, "columns")] {
        let shown = shown.iter().flatten().count();
        if shown < n {
            cut.push(format!("{shown} of {n} {what}"));
        }
    }
    if !cut.is_empty() {
        let _ = writeln!(out, "({} are shown)", cut.join(" and "));
    }
    out
}

/// Takes the spaces from the end of the last line.
fn trim(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
}

fn paint(text: &str, style: &TableStyle, code: &str) -> String {
    match style.color && !code.is_empty() {
        true => format!("{code}{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Black on a light colour of the 256.
fn background(shade: Shade) -> String {
    /// From light to dark blue.
    const STEPS: [u8; 8] = [231, 195, 189, 153, 117, 111, 75, 74];
    /// Light tints that colour-blind eyes tell apart: orange, sky, green, yellow, blue, red, pink, grey.
    const THREADS: [u8; 8] = [216, 153, 115, 229, 111, 210, 182, 252];
    match shade {
        Shade::Empty => String::new(),
        Shade::Step(k) => format!("\x1b[48;5;{};38;5;16m", STEPS[usize::from(k) % 8]),
        Shade::Thread(t) => format!("\x1b[48;5;{};38;5;16m", THREADS[t as usize % 8]),
    }
}
