//! A table on disk that grows problem by problem, so that a run that is interrupted can go on where it was.

use crate::profile::Row;
use crate::table::Heading;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::files::{Outputs, reason};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What is done with a file that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// It is an error: it may be the work of hours.
    Refuse,
    /// Rows are added.
    Append,
    /// Problems that it has all rows of are not measured again, of others its rows are dropped.
    Resume,
}

/// The file.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Keys of the rows that are there.
    done: HashSet<Vec<String>>,
    /// Columns that tell cases apart.
    keys: usize,
}

impl Journal {
    /// Opens or makes the file, which is none of the sources.
    ///
    /// # Errors
    /// It cannot be read or written, is there and was not expected, or is another table.
    pub fn open(
        path: &Path,
        existing: Existing,
        heading: &Heading<'_>,
        sources: &[PathBuf],
    ) -> Result<Journal, Box<Diagnostic>> {
        let header = heading.header();
        let keys = heading.about.len() + heading.cases.names.len();
        let mut text = String::new();
        match File::open(path).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(cannot(path, &e)),
        }
        if existing == Existing::Refuse && !text.is_empty() {
            let message = format!("cannot write `{}`: it is there, and may be the work of hours", path.display());
            let d = Diagnostic::global(codes::CANNOT_WRITE, message);
            return Err(Box::new(
                d.with_help("`--resume` goes on with it, `--append` adds rows; or name another file"),
            ));
        }
        // The end of a line is written last: what follows the last one was interrupted.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let rows = records(&text[..whole]).map_err(|e| other(path, &e))?;
        let mut rows = rows.into_iter();
        match rows.next() {
            Some(first) if first != header => {
                let first = first.iter().zip(&header).find(|(a, b)| a != b);
                let why = first.map_or("it has another number of columns".to_owned(), |(a, b)| {
                    format!("it has a column `{a}` where this table has `{b}`")
                });
                return Err(other(path, &why));
            }
            _ => {}
        }
        let kept: Vec<Vec<String>> =
            rows.filter(|row| existing == Existing::Append || complete(row, heading)).collect();
        let kept = if existing == Existing::Resume { whole_problems(kept, keys, heading) } else { kept };
        let done = kept.iter().filter(|_| existing == Existing::Resume).map(|row| row[..keys].to_vec()).collect();
        let wanted = lines(std::iter::once(&header).chain(&kept));
        if wanted != text {
            let mut outputs = Outputs::new();
            outputs.keep_sources(sources)?;
            let n = outputs.plan(path)?;
            outputs.write(n, wanted.as_bytes())?;
            outputs.commit()?;
        }
        let file = OpenOptions::new().append(true).open(path).map_err(|e| cannot(path, &e))?;
        Ok(Journal { path: path.to_owned(), file, done, keys })
    }

    /// Whether all rows of a problem are there.
    pub fn has(&self, heading: &Heading<'_>, rows: &[Row]) -> bool {
        rows.iter().all(|row| self.done.contains(&heading.cells(row)[..self.keys]))
    }

    /// Adds the rows of a problem, and waits until the disk has them.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, heading: &Heading<'_>, rows: &[Row]) -> Result<(), Box<Diagnostic>> {
        let cells: Vec<Vec<String>> = rows.iter().map(|row| heading.cells(row)).collect();
        let text = lines(cells.iter());
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|e| cannot(&self.path, &e))
    }
}

/// Whether a row has as many cells as the header.
fn complete(row: &[String], heading: &Heading<'_>) -> bool {
    row.len() == heading.header().len()
}

/// The rows but those of this table's problems of which some are missing.
fn whole_problems(rows: Vec<Vec<String>>, keys: usize, heading: &Heading<'_>) -> Vec<Vec<String>> {
    let key = |values: Vec<String>| heading.about.iter().map(|(_, v)| v.clone()).chain(values).collect::<Vec<_>>();
    let there: HashSet<Vec<String>> = rows.iter().map(|row| row[..keys].to_vec()).collect();
    let mut dropped = HashSet::new();
    for problem in &heading.cases.problems {
        let all: Vec<Vec<String>> =
            (problem.configurations.iter()).map(|c| key(problem.values(&heading.cases.names, c))).collect();
        if !all.iter().all(|k| there.contains(k)) {
            dropped.extend(all);
        }
    }
    rows.into_iter().filter(|row| !dropped.contains(&row[..keys])).collect()
}

fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let row = |row: Result<csv::StringRecord, csv::Error>| row.map(|r| r.iter().map(str::to_owned).collect());
    reader.records().map(row).collect::<Result<_, _>>().map_err(|e| e.to_string())
}

/// Rows as text. Cells have no line ends, so that a line is a row.
fn lines<'r>(rows: impl Iterator<Item = &'r Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        let flat: Vec<String> = row.iter().map(|cell| cell.replace(['\n', '\r'], " ")).collect();
        writer.write_record(&flat).expect("memory takes what is written");
    }
    String::from_utf8(writer.into_inner().expect("memory takes what is written")).expect("cells are text")
}

fn cannot(path: &Path, error: &std::io::Error) -> Box<Diagnostic> {
    let message = format!("cannot write `{}`: {}", path.display(), reason(error));
    Box::new(Diagnostic::global(codes::CANNOT_WRITE, message).with_help("choose another file"))
}

fn other(path: &Path, why: &str) -> Box<Diagnostic> {
    let message = format!("cannot write `{}`: it is another table: {why}", path.display());
    Box::new(Diagnostic::global(codes::CANNOT_WRITE, message).with_help("name another file"))
}
