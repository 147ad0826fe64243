//! The best configurations of each problem.

use crate::profile::{By, Cases, Outcome, Row};
use std::cmp::Ordering;

/// What a row is ordered by: seconds, or cycles.
fn cost(row: &Row, by: By) -> Option<f64> {
    let Outcome::Measured(figures) = &row.outcome else { return None };
    match by {
        By::Time => figures.times().map(|times| times[1]),
        By::Cycles => figures.cycles.map(|n| n as f64),
    }
}

/// The `most` best rows of each problem, best first; equal ones in the order of the cases.
pub fn top(rows: &[Row], by: By, most: usize) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::new();
    for of in rows.chunk_by(|a, b| a.problem == b.problem) {
        let mut measured: Vec<(f64, &Row)> = of.iter().filter_map(|row| Some((cost(row, by)?, row))).collect();
        measured.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
        out.extend(measured.into_iter().take(most).map(|(_, row)| row.clone()));
    }
    out
}

/// `best for M=512: -D BM=64`, a line for each problem that has several configurations.
pub fn summary(cases: &Cases, rows: &[Row]) -> String {
    let mut out = String::new();
    for of in rows.chunk_by(|a, b| a.problem == b.problem).filter(|of| of.len() > 1) {
        let sizes = &cases.problems[of[0].problem].sizes;
        let fastest: Vec<&Row> =
            of.iter().filter(|row| matches!(&row.outcome, Outcome::Measured(f) if f.fastest)).collect();
        let Some(first) = fastest.first() else { continue };
        let flags: Vec<String> = (cases.names.iter().zip(&first.values))
            .filter(|(name, _)| !sizes.iter().any(|(n, _)| n == *name))
            .map(|(name, value)| format!("-D {name}={value}"))
            .collect();
        let of: Vec<String> = sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let of = if of.is_empty() { "best".to_owned() } else { format!("best for {}", of.join(" ")) };
        let tie = match fastest.len() {
            1 => String::new(),
            n => format!(" (a tie of {n}: the first of them)"),
        };
        out += &format!("{of}: {}{tie}\n", flags.join(" "));
    }
    out
}
