//! A row of a table as cells: of a case that was measured just now, or that a file has kept.

use crate::profile::{Figures, Outcome, Row};
use serde_json::Value;

/// A column of what was measured.
struct Column {
    name: &'static str,
    of: fn(&Row) -> Value,
}

fn figure<T: Into<Value>>(row: &Row, of: impl Fn(&Figures) -> Option<T>) -> Value {
    match &row.outcome {
        Outcome::Measured(figures) => of(figures).map_or(Value::Null, Into::into),
        _ => Value::Null,
    }
}

fn percentile(row: &Row, n: usize) -> Value {
    if let (Outcome::Stored { median, .. }, 1) = (&row.outcome, n) {
        return (median * 1e3).into();
    }
    figure(row, |f| f.times().map(|times| times[n] * 1e3))
}

fn why(row: &Row) -> Option<&ptoc_diagnostics::Diagnostic> {
    match &row.outcome {
        Outcome::Rejected { why, .. } => Some(why),
        _ => None,
    }
}

fn message(row: &Row) -> Value {
    match &row.outcome {
        Outcome::Rejected { why, .. } => why.message.as_str().into(),
        Outcome::Stored { date, .. } => format!("stored {date}").into(),
        Outcome::Skipped(why) => (*why).into(),
        _ => Value::Null,
    }
}

fn fastest(row: &Row) -> Value {
    match &row.outcome {
        Outcome::Stored { .. } => true.into(),
        _ => figure(row, |f| Some(f.fastest)),
    }
}

fn status(row: &Row) -> &'static str {
    match &row.outcome {
        Outcome::Listed => "listed",
        Outcome::Compiles => "compiles",
        Outcome::Measured(_) => "ok",
        Outcome::Stored { .. } => "stored",
        Outcome::Skipped(_) => "skipped",
        Outcome::Rejected { status, .. } => status,
    }
}

/// What stands behind the values of a case. Times are milliseconds, rates a second.
const COLUMNS: [Column; 18] = [
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
    Column { name: "integers", of: |row| figure(row, |f| f.work.map(|w| w.product_ints + w.ints > 0)) },
    Column { name: "bytes", of: |row| figure(row, |f| Some(f.bytes)) },
    Column { name: "bytes_per_second", of: |row| figure(row, |f| f.times().map(|t| f.bytes as f64 / t[1])) },
    Column { name: "bound", of: |row| figure(row, |f| f.bound) },
    Column { name: "of_limit", of: |row| figure(row, |f| f.least.zip(f.times()).map(|(least, t)| least / t[1])) },
    Column { name: "compared", of: |row| figure(row, |f| f.right.map(|(elements, _)| elements)) },
    Column { name: "max_error", of: |row| figure(row, |f| f.right.map(|(_, error)| error)) },
    Column { name: "fastest", of: fastest },
    Column { name: "code", of: |row| why(row).map_or(Value::Null, |d| d.code.as_str().into()) },
    Column { name: "message", of: message },
];

/// A row.
#[derive(Clone, Debug)]
pub struct Line {
    /// The number of its problem.
    pub problem: usize,
    /// Values, in the order of the names.
    pub values: Vec<String>,
    cells: Vec<Value>,
}

impl From<&Row> for Line {
    fn from(row: &Row) -> Line {
        let cells = COLUMNS.iter().map(|c| (c.of)(row)).collect();
        Line { problem: row.problem, values: row.values.clone(), cells }
    }
}

impl Line {
    /// How many cells there are behind the values.
    pub const CELLS: usize = COLUMNS.len();

    /// Names of the cells.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COLUMNS.iter().map(|c| c.name)
    }

    /// The cells with their names.
    pub fn cells(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        Line::names().zip(&self.cells)
    }

    /// The cells as text.
    pub fn texts(&self) -> impl Iterator<Item = String> + '_ {
        self.cells.iter().map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// This case, with what a file says of it.
    pub fn with_cells(&self, texts: &[String]) -> Line {
        let is_text = |name: &str| matches!(name, "status" | "bound" | "code" | "message");
        let cell = |(name, text): (&str, &String)| match text.as_str() {
            "" => Value::Null,
            text if is_text(name) => text.into(),
            text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        };
        Line { cells: Line::names().zip(texts).map(cell).collect(), ..self.clone() }
    }

    fn cell(&self, name: &str) -> &Value {
        self.cells().find(|(n, _)| *n == name).map_or(&Value::Null, |(_, value)| value)
    }

    /// `listed`, `compiles`, `ok`, `stored`, `skipped`, `refused`, `failed`, `wrong`.
    pub fn status(&self) -> &str {
        self.cell("status").as_str().unwrap_or_default()
    }

    /// Whether memory bounds it: its operations are no rate of anything.
    pub fn is_bound_by_memory(&self) -> bool {
        self.cell("bound") == "memory"
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.cell(name).as_f64()
    }

    /// Whether it says so.
    pub fn says(&self, name: &str) -> bool {
        self.cell(name).as_bool() == Some(true)
    }

    /// `E0713: ..`; of what has no code, the words.
    pub fn why(&self) -> String {
        let text = |name| self.cell(name).as_str().unwrap_or_default();
        match text("code") {
            "" => text("message").to_owned(),
            code => format!("{code}: {}", text("message")),
        }
    }
}
