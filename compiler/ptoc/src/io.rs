//! Where output goes, and how diagnostics look there.

use crate::args::{ColorWhen, MessageFormat};
use crate::progress::{CLEAR, Progress};
use ptoc_diagnostics::render::sarif;
use ptoc_diagnostics::{DEFAULT_LIMIT, Diagnostics, SourceMap, plural, render};
use ptoc_driver::files;
use serde_json::Value;
use std::io::{self, BufRead, Read, Write};
use std::time::Instant;

/// Standard output and standard error of a call, or what stands for them.
pub struct Io<'a> {
    /// Results.
    pub out: &'a mut (dyn Write + Send),
    /// Diagnostics.
    pub err: &'a mut (dyn Write + Send),
    /// Where a debugger's commands come from; nothing comes if there is none.
    pub input: Option<&'a mut (dyn BufRead + Send)>,
    /// A person types them and reads the results.
    pub interactive: bool,
    /// They come from the terminal of this process, where lines can be edited.
    pub terminal: bool,
    /// Diagnostics may be coloured. `--color` overrides it.
    pub color: bool,
    /// Results may be coloured. `--color` overrides it.
    pub color_out: bool,
    /// Progress is shown on standard error, which is a terminal.
    pub progress: Option<Progress>,
    /// A line of progress stands there.
    pub(crate) at_foot: bool,
    /// Results of a SARIF document, which is written at the end.
    pub(crate) sarif: Option<Vec<Value>>,
    /// Columns of the terminal that shows the diagnostics.
    pub width: usize,
    /// Results could not be written, and whoever read them has gone: the rest is dropped in silence.
    pub(crate) closed: bool,
    /// Results could not be written for another reason.
    pub(crate) failed: Option<io::Error>,
}

impl<'a> Io<'a> {
    /// Output without colours, 100 columns wide.
    pub fn new(out: &'a mut (dyn Write + Send), err: &'a mut (dyn Write + Send)) -> Io<'a> {
        Io {
            out,
            err,
            input: None,
            interactive: false,
            terminal: false,
            progress: None,
            at_foot: false,
            sarif: None,
            color: false,
            color_out: false,
            width: render::DEFAULT_WIDTH,
            closed: false,
            failed: None,
        }
    }

    /// Applies `--color`.
    pub(crate) fn set_color(&mut self, when: ColorWhen) {
        match when {
            ColorWhen::Auto => {}
            ColorWhen::Always => (self.color, self.color_out) = (true, true),
            ColorWhen::Never => (self.color, self.color_out) = (false, false),
        }
    }

    /// The text that is piped in; else why there is none, in words.
    pub(crate) fn read_input(&mut self) -> Result<String, String> {
        let mut bytes = Vec::new();
        let read = self.input.as_mut().map_or(Ok(0), |input| input.take(files::MOST_PIPED + 1).read_to_end(&mut bytes));
        // Who types it is not waiting for it.
        self.progress = self.progress.take().map(|_| Progress::new(Instant::now()));
        match read {
            Ok(n) if n as u64 > files::MOST_PIPED => return Err(files::too_long()),
            read => read.map_err(|e| files::reason(&e))?,
        };
        String::from_utf8(bytes).map_err(|e| format!("it is not UTF-8 at byte {}", e.utf8_error().valid_up_to()))
    }

    /// Says how far the command is, if that is due and somebody sees it.
    pub(crate) fn advance(&mut self, done: usize, all: usize, what: &str) {
        let line = self.progress.as_mut().and_then(|p| p.line(Instant::now(), done, all, what));
        if let Some(line) = line {
            let _ = self.err.write_all(line.as_bytes()).and_then(|()| self.err.flush());
            self.at_foot = true;
        }
    }

    /// Takes the line of progress away.
    fn clear(&mut self) {
        if std::mem::take(&mut self.at_foot) {
            let _ = self.err.write_all(CLEAR.as_bytes());
        }
    }

    /// Whether nobody reads results any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The end of a command: what was gathered is written.
    pub(crate) fn finish(&mut self) {
        self.clear();
        if let Some(results) = self.sarif.take() {
            self.note(&sarif::document(&results, env!("CARGO_PKG_VERSION")));
        }
        self.flush();
    }

    /// Writes results.
    pub(crate) fn print(&mut self, text: &str) {
        self.clear();
        if self.closed || self.failed.is_some() {
            return;
        }
        match self.out.write_all(text.as_bytes()) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(e) => self.failed = Some(e),
        }
    }

    /// Flushes results.
    pub(crate) fn flush(&mut self) {
        if self.closed || self.failed.is_some() {
            return;
        }
        match self.out.flush() {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(e) => self.failed = Some(e),
        }
    }

    /// Writes a line or more beside the results. Nobody can be told if that fails.
    pub(crate) fn note(&mut self, text: &str) {
        if !text.is_empty() {
            self.clear();
        }
        let _ = self.err.write_all(text.as_bytes());
    }

    /// Shows diagnostics, sorted, and returns how many errors and warnings there were.
    pub(crate) fn report(&mut self, found: Diagnostics, sources: &SourceMap, format: MessageFormat) -> Counts {
        let mut counts = Counts::default();
        for d in found.iter() {
            match d.severity {
                ptoc_diagnostics::Severity::Error => counts.errors += 1,
                ptoc_diagnostics::Severity::Warning => counts.warnings += 1,
                ptoc_diagnostics::Severity::Note => counts.notes += 1,
            }
        }
        if format == MessageFormat::Sarif {
            self.sarif.get_or_insert_default();
        }
        let mut text = String::new();
        for d in found.into_report(DEFAULT_LIMIT) {
            match format {
                MessageFormat::Human => {
                    text.push_str(&render::terminal(&d, sources, self.color, self.width));
                    text.push('\n');
                }
                MessageFormat::Sarif => {
                    self.sarif.get_or_insert_default().push(sarif::result(&d, sources));
                }
                MessageFormat::Json => {
                    text.push_str(&render::json(&d, sources));
                    text.push('\n');
                }
            }
        }
        self.note(&text);
        counts
    }
}

/// How many diagnostics of each severity.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Notes.
    pub notes: usize,
}

impl Counts {
    /// `2 errors, 1 warning`; `None` if there are neither.
    pub fn summary(self) -> Option<String> {
        let parts: Vec<String> = [(self.errors, "error"), (self.warnings, "warning")]
            .into_iter()
            .filter(|&(n, _)| n > 0)
            .map(|(n, word)| plural(n, word))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
    }
}
