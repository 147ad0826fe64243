//! A table on disk that grows problem by problem, so that a run that is interrupted can go on where it was.

use crate::lock::Lock;
use crate::profile::Cases;
use crate::table::{Heading, Line};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::files::{Outputs, reason};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is done with a file that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// It is an error: it may be the work of hours.
    Refuse,
    /// Rows are added.
    Append,
    /// Problems of which all rows were measured are not measured again, of others its rows are dropped.
    Resume,
}

/// The file.
pub struct Journal {
    path: PathBuf,
    /// Cells of the rows that need not be measured again, by their key.
    done: HashMap<Vec<String>, Vec<String>>,
    /// Columns that tell cases apart.
    keys: usize,
    header: Vec<String>,
    /// There are rows that the call goes on with.
    begun: bool,
    /// No other process writes it.
    _lock: Lock,
}

/// A file as it was found.
struct Found {
    rows: Vec<Vec<String>>,
    /// Its text is what these rows would be written as.
    whole: bool,
}

impl Journal {
    /// Looks at the file, which is none of the sources. It is made, or its interrupted rows are dropped, when the first
    /// row is added.
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
        let keys = header.len() - Line::CELLS;
        let mut outputs = Outputs::new();
        outputs.keep_sources(sources)?;
        let planned = outputs.plan(path)?;
        let (path, _lock) = (path.to_owned(), Lock::of(path)?);
        let mut journal = Journal { path, done: HashMap::new(), keys, header, begun: false, _lock };
        let Some(found) = journal.read(existing)? else { return Ok(journal) };
        if existing == Existing::Refuse {
            let message =
                format!("cannot write `{}`: it is there, and may be the work of hours", journal.path.display());
            let d = Diagnostic::global(codes::CANNOT_WRITE, message);
            return Err(Box::new(
                d.with_help("`--resume` goes on with it, `--append` adds rows; or name another file"),
            ));
        }
        let Found { mut rows, whole } = found;
        let before = rows.len();
        if existing == Existing::Resume {
            journal.begun = !rows.is_empty();
            rows.retain(|row| row[..keys].iter().zip(heading.about()).any(|(a, b)| *a != b) || is_settled(row));
            journal.drop_parts(&mut rows, heading.cases, &heading.about());
            journal.done = rows.iter().map(|row| (row[..keys].to_vec(), row[keys..].to_vec())).collect();
        }
        if !whole || rows.len() < before {
            let text = lines(std::iter::once(&journal.header).chain(&rows));
            outputs.write(planned, text.as_bytes())?;
            outputs.commit()?;
        }
        Ok(journal)
    }

    /// What is in the file; `None`: there is none, or nothing in it.
    fn read(&self, existing: Existing) -> Result<Option<Found>, Box<Diagnostic>> {
        let path = &self.path;
        match std::fs::metadata(path) {
            Ok(known) if !known.is_file() => return Err(self.other("it is no plain file")),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(cannot(path, &e)),
        }
        let bytes = std::fs::read(path).map_err(|e| cannot(path, &e))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if existing == Existing::Refuse {
            return Ok(Some(Found { rows: Vec::new(), whole: true }));
        }
        // The end of a line is written last: what follows the last one was interrupted, if it is no row.
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let (kept, rest) = bytes.split_at(end);
        let text = std::str::from_utf8(kept).map_err(|_| self.other("it is no text"))?;
        let mut rows = records(text).map_err(|e| self.other(&e))?;
        let last = std::str::from_utf8(rest).ok().and_then(|rest| records(rest).ok()).unwrap_or_default();
        let wanted = lines(std::iter::once(&self.header));
        match rows.first() {
            None if wanted.as_bytes().starts_with(rest) => return Ok(Some(Found { rows, whole: false })),
            None => return Err(self.other("its first line is not this table's")),
            Some(first) if *first != self.header => {
                let differ = first.iter().zip(&self.header).find(|(a, b)| a != b);
                return Err(self.other(&differ.map_or("it has another number of columns".to_owned(), |(a, b)| {
                    format!("it has a column `{a}` where this table has `{b}`")
                })));
            }
            Some(_) => rows.remove(0),
        };
        if let Some(n) = rows.iter().position(|row| row.len() != self.header.len()) {
            let message =
                format!("line {} has {} cells, and the first line {}", n + 2, rows[n].len(), self.header.len());
            return Err(self.other(&message));
        }
        match last.into_iter().next() {
            Some(row) if row.len() == self.header.len() && existing == Existing::Append => rows.push(row),
            Some(_) if existing == Existing::Append => {
                let message = "its last line was interrupted: `--resume` drops it";
                return Err(self.other(message));
            }
            _ => {}
        }
        Ok(Some(Found { rows, whole: rest.is_empty() }))
    }

    /// Drops the rows of problems of this table that are in no complete set: a problem is measured as a whole. A file
    /// that was appended to has several sets of one.
    fn drop_parts(&self, rows: &mut Vec<Vec<String>>, cases: &Cases, about: &[String]) {
        let mut places: HashMap<Vec<String>, (usize, usize)> = HashMap::new();
        for (number, problem) in cases.problems.iter().enumerate() {
            for (n, row) in problem.listed(number, &cases.names).iter().enumerate() {
                places.insert(about.iter().chain(&row.values).cloned().collect(), (number, n));
            }
        }
        // The rows of the set of each problem that is not complete yet.
        let mut open: Vec<Vec<Option<usize>>> =
            cases.problems.iter().map(|problem| vec![None; problem.configurations.len()]).collect();
        let mut kept = vec![false; rows.len()];
        for (at, row) in rows.iter().enumerate() {
            let Some(&(number, n)) = places.get(&row[..self.keys]) else {
                kept[at] = true;
                continue;
            };
            let set = &mut open[number];
            // It begins another set: that before was interrupted.
            if set[n].is_some() {
                set.fill(None);
            }
            set[n] = Some(at);
            if set.iter().all(Option::is_some) {
                set.iter_mut().filter_map(Option::take).for_each(|at| kept[at] = true);
            }
        }
        let mut kept = kept.into_iter();
        rows.retain(|_| kept.next() == Some(true));
    }

    /// The rows of a problem, if all are there.
    pub fn rows_of(&self, heading: &Heading<'_>, listed: &[Line]) -> Option<Vec<Line>> {
        let about = heading.about();
        let row = |line: &Line| {
            let key: Vec<String> = about.iter().chain(&line.values).cloned().collect();
            Some(line.with_cells(self.done.get(&key)?))
        };
        listed.iter().map(row).collect()
    }

    /// Whether the call goes on with rows, beside which nothing is taken from elsewhere.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// Puts rows of a problem in the places of those that the file has, the last ones. What is as it was stays to the
    /// letter.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn replace(&mut self, heading: &Heading<'_>, rows: &[Line]) -> Result<(), Box<Diagnostic>> {
        let found = self.read(Existing::Resume)?;
        let mut all = found.map_or_else(Vec::new, |found| found.rows);
        let last: HashMap<Vec<String>, usize> =
            all.iter().enumerate().map(|(at, row)| (row[..self.keys].to_vec(), at)).collect();
        let is_kept = |row: &&Line| {
            let kept = self.done.get(&heading.cells(row)[..self.keys]).map(|cells| row.with_cells(cells));
            kept.is_some_and(|kept| kept.texts().eq(row.texts()))
        };
        for row in rows.iter().filter(|row| !is_kept(row)).map(|row| heading.cells(row)) {
            match last.get(&row[..self.keys]) {
                Some(&at) => all[at] = row,
                None => all.push(row),
            }
        }
        Ok(Outputs::replace(&self.path, lines(std::iter::once(&self.header).chain(&all)).as_bytes())?)
    }

    /// Adds the rows of a problem, and waits until the disk has them.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, heading: &Heading<'_>, rows: &[Line]) -> Result<(), Box<Diagnostic>> {
        let add = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
            let first = if file.metadata()?.len() == 0 { Some(&self.header) } else { None };
            let cells: Vec<Vec<String>> = rows.iter().map(|row| heading.cells(row)).collect();
            file.write_all(lines(first.into_iter().chain(&cells)).as_bytes())?;
            file.sync_data()
        };
        add().map_err(|e| cannot(&self.path, &e))
    }

    fn other(&self, why: &str) -> Box<Diagnostic> {
        let message = format!("cannot write `{}`: it is another table: {why}", self.path.display());
        Box::new(Diagnostic::global(codes::CANNOT_WRITE, message).with_help("name another file"))
    }
}

/// Whether a row is of a case that was tried: not one that was only listed.
fn is_settled(row: &[String]) -> bool {
    let status = &row[row.len() - Line::CELLS];
    matches!(status.as_str(), "ok" | "wrong" | "failed" | "refused" | "stored" | "skipped")
}

fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let row = |row: Result<csv::StringRecord, csv::Error>| row.map(|r| r.iter().map(str::to_owned).collect());
    reader.records().map(row).collect::<Result<_, _>>().map_err(|e| e.to_string())
}

/// Rows as text. Cells have no line ends, so that a line is a row.
fn lines<'r>(rows: impl Iterator<Item = &'r Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
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
