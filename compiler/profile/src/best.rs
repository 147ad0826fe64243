//! The best configurations of each problem.

use crate::format::flag;
use crate::profile::{By, Cases};
use crate::table::Line;

/// What a row is ordered by: milliseconds, or cycles.
fn cost(row: &Line, by: By) -> Option<f64> {
    row.number(match by {
        By::Time => "median_ms",
        By::Cycles => "cycles",
    })
}

/// The `most` best rows of each problem, best first; equal ones in the order of the cases.
pub fn top(rows: &[Line], by: By, most: usize) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    for of in rows.chunk_by(|a, b| a.problem == b.problem) {
        let mut measured: Vec<(f64, &Line)> = of.iter().filter_map(|row| Some((cost(row, by)?, row))).collect();
        measured.sort_by(|a, b| a.0.total_cmp(&b.0));
        out.extend(measured.into_iter().take(most).map(|(_, row)| row.clone()));
    }
    out
}

/// `best for M=512: -D BM=64`, a line for each problem that has several configurations.
pub fn summary(cases: &Cases, rows: &[Line]) -> String {
    let mut out = String::new();
    for of in rows.chunk_by(|a, b| a.problem == b.problem).filter(|of| of.len() > 1) {
        let sizes = &cases.problems[of[0].problem].sizes;
        let fastest: Vec<&Line> = of.iter().filter(|row| row.says("fastest")).collect();
        // Of those that tie the source's own values stay.
        let default = cases.default_of(&cases.problems[of[0].problem]).and_then(|n| of.get(n));
        let default = default.filter(|row| row.says("fastest"));
        let Some(first) = default.or(fastest.first().copied()) else { continue };
        let flags: Vec<String> = (cases.names.iter().zip(&first.values))
            .filter(|(name, _)| !sizes.iter().any(|(n, _)| n == *name))
            .map(|(name, value)| flag(name, value))
            .collect();
        let of: Vec<String> = sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let of = if of.is_empty() { "best".to_owned() } else { format!("best for {}", of.join(" ")) };
        let tie = match (fastest.len(), default) {
            (1, _) => String::new(),
            (n, Some(_)) => format!(" (a tie of {n}: the defaults are among them, and stay)"),
            (n, None) => format!(" (a tie of {n}: the first of them)"),
        };
        out += &format!("{of}: {}{tie}\n", flags.join(" "));
    }
    out
}

/// `2 wrong, 1 refused`: how many rows are not shown among the best, and why.
pub fn rejected(rows: &[Line]) -> Option<String> {
    let count = |status: &str| rows.iter().filter(|row| row.status() == status).count();
    let parts: Vec<String> = (["wrong", "failed", "refused"].iter())
        .map(|status| (count(status), status))
        .filter(|(n, _)| *n > 0)
        .map(|(n, status)| format!("{n} {status}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
