//! Enumerations of the dialect: their names, where PTOAS defines them, and their words (`words.txt`).

use std::sync::LazyLock;

/// An enumeration.
#[derive(Debug)]
pub struct Enumeration {
    /// What stands in `#pto.NAME<word>`.
    pub name: &'static str,
    /// The record that defines it in PTOAS.
    pub record: &'static str,
    /// Its words.
    pub words: Vec<&'static str>,
}

/// All of them, in the order of the file.
pub static ENUMERATIONS: LazyLock<Vec<Enumeration>> = LazyLock::new(|| {
    let mut all: Vec<Enumeration> = Vec::new();
    for line in include_str!("words.txt").lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let mut words = line.split_whitespace();
        match all.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => last.words.extend(words),
            None => {
                let (name, record) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                all.push(Enumeration { name, record, words: words.collect() });
            }
        }
    }
    all
});

/// The enumeration of that name.
pub fn enumeration(name: &str) -> Option<&'static Enumeration> {
    ENUMERATIONS.iter().find(|e| e.name == name)
}
