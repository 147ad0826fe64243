//! Rows as text, CSV, JSON, Markdown and JUnit: one list of columns for all.

use crate::format::{percent, scaled, time};
use crate::profile::{By, Cases, Outcome, Row};
use ptoc_views::junit::{self, Case, Verdict};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// A column of what was measured.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What a row has there.
    pub of: fn(&Row) -> Value,
}

fn figure<T: Into<Value>>(row: &Row, of: impl Fn(&crate::profile::Figures) -> Option<T>) -> Value {
    match &row.outcome {
        Outcome::Measured(figures) => of(figures).map_or(Value::Null, Into::into),
        _ => Value::Null,
    }
}

fn percentile(row: &Row, n: usize) -> Value {
    figure(row, |f| f.times().map(|times| times[n] * 1e3))
}

/// What stands behind the values of a case. Times are milliseconds, rates a second.
pub const COLUMNS: [Column; 16] = [
    Column { name: "status", of: |row| status(row).into() },
    Column { name: "median_ms", of: |row| percentile(row, 1) },
    Column { name: "best_ms", of: |row| percentile(row, 0) },
    Column { name: "p90_ms", of: |row| percentile(row, 2) },
    Column { name: "launches", of: |row| figure(row, |f| f.laps.as_ref().map(|l| l.times.len())) },
    Column { name: "cycles", of: |row| figure(row, |f| f.cycles) },
    Column { name: "operations", of: |row| figure(row, |f| f.work.map(|w| w.total())) },
    Column {
        name: "operations_per_second",
        of: |row| figure(row, |f| f.work.zip(f.times()).map(|(w, t)| w.total() as f64 / t[1])),
    },
    Column { name: "bytes", of: |row| figure(row, |f| Some(f.bytes)) },
    Column { name: "bytes_per_second", of: |row| figure(row, |f| f.times().map(|t| f.bytes as f64 / t[1])) },
    Column { name: "of_limit", of: |row| figure(row, |f| f.least.zip(f.times()).map(|(least, t)| least / t[1])) },
    Column { name: "compared", of: |row| figure(row, |f| f.right.map(|(elements, _)| elements)) },
    Column { name: "max_error", of: |row| figure(row, |f| f.right.map(|(_, error)| error)) },
    Column { name: "fastest", of: |row| figure(row, |f| Some(f.fastest)) },
    Column { name: "code", of: |row| why(row).map_or(Value::Null, |d| d.code.as_str().into()) },
    Column { name: "message", of: |row| why(row).map_or(Value::Null, |d| d.message.as_str().into()) },
];

fn why(row: &Row) -> Option<&ptoc_diagnostics::Diagnostic> {
    match &row.outcome {
        Outcome::Rejected { why, .. } => Some(why),
        _ => None,
    }
}

/// `listed`, `compiles`, `ok`, `refused`, `failed`, `wrong`.
pub fn status(row: &Row) -> &'static str {
    match &row.outcome {
        Outcome::Listed => "listed",
        Outcome::Compiles => "compiles",
        Outcome::Measured(_) => "ok",
        Outcome::Rejected { status, .. } => status,
    }
}

/// What a table is of.
pub struct Heading<'h> {
    /// The kernel, the backend, the target, and the sources' digest.
    pub about: [(&'static str, String); 4],
    /// The cases.
    pub cases: &'h Cases,
}

impl Heading<'_> {
    /// Names of all columns.
    pub fn header(&self) -> Vec<String> {
        let about = self.about.iter().map(|(name, _)| (*name).to_owned());
        let measured = COLUMNS.iter().map(|c| c.name.to_owned());
        about.chain(self.cases.names.iter().cloned()).chain(measured).collect()
    }

    /// A row's cells, as text.
    pub fn cells(&self, row: &Row) -> Vec<String> {
        let text = |value: Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        let about = self.about.iter().map(|(_, value)| value.clone());
        about.chain(row.values.iter().cloned()).chain(COLUMNS.iter().map(|c| text((c.of)(row)))).collect()
    }

    /// A test case for each row, as JUnit has them.
    pub fn junit(&self, rows: &[Row]) -> String {
        let case = |row: &Row| {
            let names = self.cases.names.iter().zip(&row.values).map(|(name, value)| format!("{name}={value}"));
            let seconds = match &row.outcome {
                Outcome::Measured(figures) => figures.times().map_or(0.0, |times| times[1]),
                _ => 0.0,
            };
            let verdict = match &row.outcome {
                Outcome::Rejected { status: "refused", why } => {
                    Verdict::Skipped(format!("{}: {}", why.code, why.message))
                }
                Outcome::Rejected { why, .. } => Verdict::Failed(format!("{}: {}", why.code, why.message)),
                _ => Verdict::Passed,
            };
            let name = names.collect::<Vec<_>>().join(" ");
            Case { group: self.cases.kernel.clone(), name, seconds, verdict }
        };
        junit::suite(&self.cases.kernel, &rows.iter().map(case).collect::<Vec<_>>())
    }

    /// All rows as one JSON object.
    pub fn json(&self, rows: &[Row]) -> String {
        let mut object: Map<String, Value> =
            self.about.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let row = |row: &Row| -> Value {
            let values: Map<String, Value> =
                self.cases.names.iter().cloned().zip(row.values.iter().map(|v| json!(v))).collect();
            let mut fields = Map::from_iter([("values".to_owned(), Value::Object(values))]);
            fields.extend(COLUMNS.iter().map(|c| (c.name.to_owned(), (c.of)(row))));
            Value::Object(fields)
        };
        object.insert("rows".into(), rows.iter().map(row).collect());
        format!("{}\n", Value::Object(object))
    }
}

/// Rows for people, in columns that all rows of the cases fit.
pub struct Text<'t> {
    cases: &'t Cases,
    widths: Vec<usize>,
    by: By,
}

impl Text<'_> {
    /// A table of these cases.
    pub fn new(cases: &Cases, by: By) -> Text<'_> {
        let value = |name: &String| {
            let all = cases.problems.iter().flat_map(|p| p.sizes.iter().chain(p.configurations.iter().flatten()));
            all.filter(|(n, _)| n == name).map(|(_, v)| v.chars().count()).max().unwrap_or(0)
        };
        let widths = cases.names.iter().map(|name| value(name).max(name.chars().count())).collect();
        Text { cases, widths, by }
    }

    /// Names of the columns.
    pub fn header(&self) -> String {
        let figures = match self.by {
            By::Time => format!("{:>10} {:>10} {:>15} {:>8}", "median", "best", "rate", "of limit"),
            By::Cycles => format!("{:>12}", "cycles"),
        };
        format!("{}{figures}", self.row_of(&self.cases.names))
    }

    fn row_of(&self, cells: &[String]) -> String {
        cells.iter().zip(&self.widths).map(|(cell, &width)| format!("{cell:>width$}  ")).collect()
    }

    /// All rows as a table of Markdown.
    pub fn markdown(&self, rows: &[Row]) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let names = self.cases.names.iter().cloned();
        let figures: &[&str] = match self.by {
            By::Time => &["median", "best", "rate", "of limit", "result"],
            By::Cycles => &["cycles", "result"],
        };
        let mut out = line(names.chain(figures.iter().map(|f| (*f).to_owned())).collect());
        out += &format!("|{}{}\n", "---|".repeat(self.cases.names.len()), "--:|".repeat(figures.len()));
        for row in rows {
            let (mut cells, result) = self.figures(row);
            cells.resize(figures.len() - 1, String::new());
            let all = row.values.iter().cloned().chain(cells).chain([result]);
            out += &line(all.map(|cell| cell.replace('|', "\\|")).collect());
        }
        out
    }

    /// A row.
    pub fn row(&self, row: &Row) -> String {
        let mut out = self.row_of(&row.values);
        let (figures, result) = self.figures(row);
        let widths: &[usize] = match self.by {
            By::Time => &[10, 10, 15, 8],
            By::Cycles => &[12],
        };
        for (n, (figure, width)) in figures.iter().zip(widths).enumerate() {
            let _ = write!(out, "{}{figure:>width$}", if n == 0 { "" } else { " " });
        }
        if !figures.is_empty() {
            out.push_str("   ");
        }
        (out + &result).trim_end().to_owned()
    }

    /// What was measured, none if nothing was, and what became of the results.
    fn figures(&self, row: &Row) -> (Vec<String>, String) {
        let figures = match &row.outcome {
            Outcome::Measured(figures) => figures,
            Outcome::Rejected { status, why } => {
                return (Vec::new(), format!("{status}: {}: {}", why.code, why.message));
            }
            Outcome::Compiles => return (Vec::new(), "compiles".into()),
            Outcome::Listed => return (Vec::new(), String::new()),
        };
        let cells = match (self.by, figures.times()) {
            (By::Time, Some([best, median, _])) => {
                let rate = match figures.work {
                    Some(work) if work.total() > 0 => {
                        let unit = if work.product_ints + work.ints > 0 { "OP/s" } else { "FLOP/s" };
                        scaled(work.total() as f64 / median, unit)
                    }
                    _ => scaled(figures.bytes as f64 / median, "B/s"),
                };
                let limit = figures.least.map_or(String::new(), |least| percent(least / median));
                vec![time(median), time(best), rate, limit]
            }
            _ => vec![figures.cycles.map_or("not counted".into(), |n| n.to_string())],
        };
        let result = match figures.right {
            Some((_, 0.0)) => "exact".into(),
            Some((_, error)) => format!("error {error:.1e}"),
            None => "not verified".into(),
        };
        (cells, result)
    }
}
