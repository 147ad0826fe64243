//! Rows as text, CSV, JSON, Markdown and JUnit.

pub use crate::line::Line;

use crate::format::{percent, scaled, time};
use crate::profile::{By, Cases};
use ptoc_views::junit::{self, Case, Verdict};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// What a table is of.
pub struct Heading<'h> {
    /// The kernel, the backend, the target, and the sources' digest.
    pub of: [(&'static str, String); 4],
    /// The cases.
    pub cases: &'h Cases,
}

impl Heading<'_> {
    /// The cells that all rows have in common.
    pub fn about(&self) -> Vec<String> {
        let fixed = self.cases.fixed.iter().map(|(_, value)| value.clone());
        self.of.iter().map(|(_, value)| value.clone()).chain(fixed).collect()
    }

    /// Names of all columns.
    pub fn header(&self) -> Vec<String> {
        let of = self.of.iter().map(|(name, _)| (*name).to_owned());
        let fixed = self.cases.fixed.iter().map(|(name, _)| name.clone());
        let cells = Line::names().map(str::to_owned);
        of.chain(fixed).chain(self.cases.names.iter().cloned()).chain(cells).collect()
    }

    /// A row's cells, as text.
    pub fn cells(&self, row: &Line) -> Vec<String> {
        self.about().into_iter().chain(row.values.iter().cloned()).chain(row.texts()).collect()
    }

    /// A test case for each row, as JUnit has them.
    pub fn junit(&self, rows: &[Line]) -> String {
        let case = |row: &Line| {
            let names = self.cases.names.iter().zip(&row.values).map(|(name, value)| format!("{name}={value}"));
            let verdict = match row.status() {
                "refused" | "skipped" => Verdict::Skipped(row.why()),
                "failed" | "wrong" => Verdict::Failed(row.why()),
                _ => Verdict::Passed,
            };
            let (name, seconds) = (names.collect::<Vec<_>>().join(" "), row.number("median_ms").unwrap_or(0.0) / 1e3);
            Case { group: self.cases.kernel.clone(), name, seconds, verdict }
        };
        junit::suite(&self.cases.kernel, &rows.iter().map(case).collect::<Vec<_>>())
    }

    /// All rows as one JSON object.
    pub fn json(&self, rows: &[Line]) -> String {
        let pairs = |pairs: &mut dyn Iterator<Item = (String, String)>| -> Map<String, Value> {
            pairs.map(|(name, value)| (name, json!(value))).collect()
        };
        let mut object = pairs(&mut self.of.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        object.insert("definitions".into(), Value::Object(pairs(&mut self.cases.fixed.iter().cloned())));
        let row = |row: &Line| -> Value {
            let values = pairs(&mut self.cases.names.iter().cloned().zip(row.values.iter().cloned()));
            let mut fields = Map::from_iter([("values".to_owned(), Value::Object(values))]);
            fields.extend(row.cells().map(|(name, value)| (name.to_owned(), value.clone())));
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
        let mut widths: Vec<usize> = cases.names.iter().map(|name| name.chars().count()).collect();
        for problem in &cases.problems {
            for configuration in &problem.configurations {
                let values = problem.values(&cases.names, configuration);
                widths.iter_mut().zip(values).for_each(|(width, value)| *width = (*width).max(value.chars().count()));
            }
        }
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
    pub fn markdown(&self, rows: &[Line]) -> String {
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
    pub fn row(&self, row: &Line) -> String {
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
    fn figures(&self, row: &Line) -> (Vec<String>, String) {
        match row.status() {
            "ok" => {}
            "listed" => return (Vec::new(), String::new()),
            "compiles" => return (Vec::new(), "compiles".into()),
            "stored" => {
                let median = row.number("median_ms").map_or(String::new(), |ms| time(ms / 1e3));
                return (vec![median], row.why());
            }
            status => return (Vec::new(), format!("{status}: {}", row.why())),
        }
        let seconds = |name: &str| row.number(name).map_or(String::new(), |ms| time(ms / 1e3));
        let cells = match self.by {
            By::Time => {
                let rate = match row.number("operations_per_second") {
                    Some(rate) if rate > 0.0 && !row.is_bound_by_memory() => {
                        scaled(rate, if row.says("integers") { "OP/s" } else { "FLOP/s" })
                    }
                    _ => row.number("bytes_per_second").map_or(String::new(), |rate| scaled(rate, "B/s")),
                };
                let limit = row.number("of_limit").map_or(String::new(), percent);
                vec![seconds("median_ms"), seconds("best_ms"), rate, limit]
            }
            By::Cycles => vec![row.number("cycles").map_or("not counted".into(), |n| format!("{n:.0}"))],
        };
        let result = match (row.number("compared"), row.number("max_error")) {
            (Some(_), Some(0.0)) => "exact".into(),
            (Some(_), Some(error)) => format!("error {error:.1e}"),
            _ => "not verified".into(),
        };
        (cells, result)
    }
}
