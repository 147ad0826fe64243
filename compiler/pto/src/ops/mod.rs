//! The operations of the dialect, and those of MLIR that stand beside them: a row for each (`ops.txt`).

use ptoc_isa::InstrId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::LazyLock;

/// An operation.
#[derive(Debug, PartialEq)]
pub struct Op {
    /// As the text says it: `pto.tadd`.
    pub name: &'static str,
    /// The record that defines it in PTOAS, or MLIR's class.
    pub definition: &'static str,
    /// The row of the table of instructions that it is.
    pub instr: Option<InstrId>,
    /// How it is written.
    pub form: Form,
}

/// How an operation is written.
#[derive(Debug, PartialEq)]
pub enum Form {
    /// Destination-passing style: `ins(..) outs(..)`.
    Dps(Dps),
    /// An assembly format.
    Pattern(Vec<Element>),
    /// Code of its own.
    Code,
}

/// Operands of an operation in destination-passing style.
#[derive(Debug, Default, PartialEq)]
pub struct Dps {
    /// What is read.
    pub ins: Vec<Slot>,
    /// What is written.
    pub outs: Vec<Slot>,
    /// Whether attributes stand behind the operands in `ins(..)`.
    pub inside: bool,
    /// Attributes that it may have.
    pub attrs: Vec<&'static str>,
}

/// A place for operands.
#[derive(Debug, PartialEq)]
pub struct Slot {
    /// Its name.
    pub name: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// How many.
    pub count: Count,
    /// Whether its type stands behind it, and not behind all operands.
    pub apart: bool,
}

/// What may stand in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A tile or a view.
    Shaped,
    /// A number.
    Scalar,
    /// A number of type `index`.
    Index,
    /// Any of them.
    Any,
}

/// How many operands a slot takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// One.
    One,
    /// One or none.
    Optional,
    /// Any number.
    Many,
}

/// An element of an assembly format.
#[derive(Debug, PartialEq)]
pub enum Element {
    /// A word or a mark.
    Literal(&'static str),
    /// An operand, or several with commas.
    Operand(&'static str, Count),
    /// The value of an attribute.
    Attr(&'static str),
    /// The types of the operands of that name; of the result if there are none.
    Type(&'static str),
    /// A dictionary of attributes, if there are any.
    Dict,
    /// What may be left out.
    Group(Vec<Element>),
    /// A block.
    Region,
}

/// All operations, in the order of the file.
pub static OPS: LazyLock<Vec<Op>> = LazyLock::new(|| rows(include_str!("ops.txt")));

/// Operations of `func` whose dialect need not be named in a function.
const ELIDED: [(&str, &str); 2] = [("return", "func.return"), ("call", "func.call")];

/// The operation of that name.
pub fn lookup(name: &str) -> Option<&'static Op> {
    static NAMES: LazyLock<FxHashMap<&str, &Op>> = LazyLock::new(|| OPS.iter().map(|op| (op.name, op)).collect());
    let whole = ELIDED.iter().find(|(elided, _)| *elided == name).map_or(name, |(_, whole)| whole);
    NAMES.get(whole).copied()
}

/// Whether later versions of PTOAS have an operation of that name.
pub fn is_later(name: &str) -> bool {
    static NAMES: LazyLock<FxHashSet<&str>> = LazyLock::new(|| {
        let lines = include_str!("later.txt").lines().filter(|l| !l.starts_with('#'));
        lines.flat_map(str::split_whitespace).collect()
    });
    NAMES.contains(name)
}

/// The operation of that name without `pto.`.
pub fn basic(name: &str) -> Option<&'static Op> {
    name.starts_with('t').then(|| lookup(&format!("pto.{name}")))?
}

/// The operation that is an instruction.
pub fn of_instr(instr: InstrId) -> Option<&'static Op> {
    OPS.iter().find(|op| op.instr == Some(instr))
}

fn rows(text: &'static str) -> Vec<Op> {
    // A row that is too long goes on in lines that begin with spaces.
    let mut lines: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => last.extend(line.split_whitespace()),
            None => lines.push(line.split_whitespace().collect()),
        }
    }
    lines.iter().map(|words| row(words)).collect()
}

fn row(words: &[&'static str]) -> Op {
    let [name, definition, instr, form @ ..] = words else { unreachable!("a row of ops.txt has a form: {words:?}") };
    let form = match form[0] {
        "ins" => Form::Dps(dps(&form[1..])),
        "=" => Form::Pattern(pattern(&mut form[1..].iter())),
        _ => Form::Code,
    };
    Op { name, definition, instr: ptoc_isa::lookup(instr), form }
}

fn dps(words: &[&'static str]) -> Dps {
    let mut dps = Dps::default();
    let (operands, attrs) = match words.iter().position(|w| *w == ":") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[][..]),
    };
    dps.attrs = attrs.to_vec();
    let (ins, outs) = operands.split_at(operands.iter().position(|w| *w == "outs").unwrap_or(operands.len()));
    dps.inside = ins.contains(&"{}");
    let slots =
        |words: &[&'static str]| words.iter().filter(|w| **w != "{}" && **w != "outs").map(|w| slot(w)).collect();
    (dps.ins, dps.outs) = (slots(ins), slots(outs));
    dps
}

fn slot(word: &'static str) -> Slot {
    let (apart, word) = word.strip_prefix('+').map_or((false, word), |word| (true, word));
    let (kind, word) = match word.as_bytes()[0] {
        b'$' => (Kind::Scalar, &word[1..]),
        b'#' => (Kind::Index, &word[1..]),
        b'~' => (Kind::Any, &word[1..]),
        _ => (Kind::Shaped, word),
    };
    let (name, count) = counted(word);
    Slot { name, kind, count, apart }
}

fn counted(word: &'static str) -> (&'static str, Count) {
    let last = word.as_bytes()[word.len() - 1];
    match last {
        b'?' => (&word[..word.len() - 1], Count::Optional),
        b'*' => (&word[..word.len() - 1], Count::Many),
        _ => (word, Count::One),
    }
}

fn pattern(words: &mut std::slice::Iter<'_, &'static str>) -> Vec<Element> {
    let mut elements = Vec::new();
    while let Some(word) = words.next() {
        elements.push(match *word {
            ")?" => break,
            "(?" => Element::Group(pattern(words)),
            "{}" => Element::Dict,
            "region" => Element::Region,
            w if w.starts_with('$') => {
                let (name, count) = counted(&w[1..]);
                Element::Operand(name, count)
            }
            w if w.starts_with('@') => Element::Attr(&w[1..]),
            w if w.starts_with("T.") => Element::Type(&w[2..]),
            w => Element::Literal(w),
        });
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read() {
        let add = lookup("pto.tadd").unwrap();
        assert_eq!((add.definition, add.instr.unwrap().get().name), ("TAddOp", "TADD"));
        let Form::Dps(dps) = &add.form else { panic!("{add:?}") };
        assert_eq!(dps.ins.iter().map(|s| s.name).collect::<Vec<_>>(), ["src0", "src1"]);
        let alloc = lookup("pto.alloc_tile").unwrap();
        let Form::Pattern(elements) = &alloc.form else { panic!("{alloc:?}") };
        assert_eq!(elements.iter().filter(|e| matches!(e, Element::Group(_))).count(), 3);
        // Names are distinct, and what the file says of instructions is in the table.
        let mut names: Vec<_> = OPS.iter().map(|op| op.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), OPS.len());
        for line in include_str!("ops.txt").lines().filter(|l| l.starts_with("pto.")) {
            let words: Vec<_> = line.split_whitespace().collect();
            let instr = lookup(words[0]).unwrap().instr.map_or("-", |i| i.get().name);
            assert!(words.get(2).is_none_or(|w| *w == instr), "{line}");
        }
    }
}
