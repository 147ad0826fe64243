//! Line tables: the place in the source that each instruction is made for, as `.file` and `.loc` directives.
//!
//! Assemblers keep them in what they make (`ptxas -lineinfo`, and the driver where it is asked to), and profilers and
//! debuggers show them. They change no instruction.

use std::fmt::Write as _;

/// A place in a source, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    /// The number of its file.
    file: usize,
    line: u32,
    column: u32,
}

/// The places of [`site`](crate::Inst::site)s.
#[derive(Clone, Default, Debug)]
pub struct LineTable {
    files: Vec<String>,
    sites: Vec<Place>,
}

impl LineTable {
    /// Adds the place of the next site.
    pub fn push(&mut self, file: &str, line: u32, column: u32) {
        let known = self.files.iter().position(|name| name == file);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.to_owned());
            self.files.len() - 1
        });
        self.sites.push(Place { file: number + 1, line, column });
    }

    /// The directives that name the files.
    pub(crate) fn files(&self) -> String {
        let mut out = String::new();
        for (n, name) in (1..).zip(&self.files) {
            let _ = writeln!(out, ".file {n} \"{}\"", quoted(name));
        }
        out
    }

    /// The directive of a site; `None` where nothing is known of it.
    pub(crate) fn directive(&self, site: u32) -> Option<String> {
        let Place { file, line, column } = self.sites.get(site as usize)?;
        Some(format!(".loc {file} {line} {column}"))
    }
}

/// A name as it stands in quotation marks: `ptxas` takes ASCII alone, and knows no escapes.
fn quoted(name: &str) -> String {
    let plain = |c: char| match c {
        '\\' => '/',
        ' '..='~' if c != '"' => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::LineTable;

    #[test]
    fn files_are_named_once() {
        let mut table = LineTable::default();
        table.push("a.tile", 3, 5);
        table.push("d\\b\"\u{e9}.tile", 1, 1);
        table.push("a.tile", 4, 9);
        assert_eq!(table.files(), ".file 1 \"a.tile\"\n.file 2 \"d/b__.tile\"\n");
        let at = |site| table.directive(site);
        assert_eq!([at(0), at(2)].map(Option::unwrap), [".loc 1 3 5", ".loc 1 4 9"]);
        assert_eq!(at(3), None);
    }
}
