//! PTO's list (`pto.txt`, which says how it is written), read.

use ptoc_diagnostics::Diagnostic;
use ptoc_tensor::DType;
use std::sync::LazyLock;

/// A form of an instruction: the dtypes of its operands, as the list writes them (`f32`, `f32>f16`, `f16:i32:i32`), or
/// `*`.
pub(super) type Form = String;

/// An instruction of PTO.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) a2a3: Vec<Form>,
    pub(super) a5: Vec<Form>,
    /// Of the Kirins, where it is not a5's.
    pub(super) kirin: Option<Vec<Form>>,
    /// What else is chosen, on a2a3, on a5 and on the Kirins.
    pub(super) more: [Vec<Form>; 3],
    /// How the language has it without an instruction of that name.
    pub(super) otherwise: Option<&'static str>,
}

/// What PTO lists.
pub(super) struct List {
    pub(super) instructions: Vec<Listed>,
    /// Names that are left out, and why.
    pub(super) out: Vec<(&'static str, &'static str)>,
    /// Forms, operands and modes that are left out.
    pub(super) parts: Vec<LeftOut>,
    /// Other names of PTO, and how the language has what they name, or why it has not.
    pub(super) also: Vec<(&'static str, Otherwise)>,
}

/// A form, an operand or a mode of an instruction that PTO has and the language has not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The instructions.
    pub of: Vec<&'static str>,
    /// What it is.
    pub what: &'static str,
    /// What an author who wants it would write; `+`: more operands, `:` operands of several dtypes, and dtypes:
    /// operands of them.
    pub words: Vec<&'static str>,
    /// Why, and what to write instead.
    pub why: &'static str,
}

impl LeftOut {
    /// The report of who wants it, which tells that it is left out.
    #[must_use]
    pub fn told(&self, d: Diagnostic) -> Diagnostic {
        d.with_note(format!("of PTO's forms this is left out: {}: {}", self.what, self.why))
    }
}

/// What of an instruction is left out.
pub fn left_out(name: &str) -> impl Iterator<Item = LeftOut> {
    list().parts.iter().filter(move |p| p.of.contains(&name)).cloned()
}

/// The storage that PTO's form works in, where this row is a second form with more operands than the first: one of them
/// may be meant so.
pub fn storage_operand(id: crate::InstrId) -> impl Iterator<Item = LeftOut> {
    let name = id.get().written_name();
    let more = crate::lookup(name).is_some_and(|first| first.get().tiles_written() < id.get().tiles_written());
    left_out(name).filter(move |p| more && p.words.contains(&"tmp"))
}

/// What stands for a mnemonic of PTO that is no instruction here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Otherwise {
    /// The language has it, in these words.
    As(&'static str),
    /// It is left out, for this reason.
    LeftOut(&'static str),
}

/// What PTO's list says of a mnemonic that the table does not have, in small letters or capitals; `None` if it is
/// simply not there yet.
pub fn otherwise(name: &str) -> Option<Otherwise> {
    let list = list();
    let listed = list
        .instructions
        .iter()
        .find(|l| l.name.eq_ignore_ascii_case(name))
        .and_then(|l| l.otherwise)
        .map(Otherwise::As);
    let out = list.out.iter().find(|o| o.0.eq_ignore_ascii_case(name)).map(|o| Otherwise::LeftOut(o.1));
    let also = || list.also.iter().find(|a| a.0.eq_ignore_ascii_case(name)).map(|a| a.1);
    listed.or(out).or_else(also)
}

/// Whether it is a name of PTO's in its own spelling.
pub fn is_spelled(name: &str) -> bool {
    let list = list();
    let instructions = list.instructions.iter().map(|l| l.name);
    instructions.chain(list.out.iter().map(|o| o.0)).chain(list.also.iter().map(|a| a.0)).any(|n| n == name)
}

/// The forms, operands and modes that a word of PTO's stands for, and that are left out.
pub fn left_out_as(word: &str) -> Vec<LeftOut> {
    let is_word = word.parse::<f64>().is_err() && DType::from_name(word).is_none();
    let stands = |p: &&LeftOut| is_word && p.words.iter().any(|w| w.eq_ignore_ascii_case(word));
    list().parts.iter().filter(stands).cloned().collect()
}

const TEXT: &str = include_str!("pto.txt");

/// The list, which is read once: errors ask for it by the thousand.
pub(super) fn list() -> &'static List {
    static LIST: LazyLock<List> = LazyLock::new(read);
    &LIST
}

/// The list is a file of ours: one that cannot be read is a mistake, which a test finds.
fn read() -> List {
    let mut list = List { instructions: Vec::new(), out: Vec::new(), parts: Vec::new(), also: Vec::new() };
    let mut sets: Vec<(&str, Vec<String>)> = Vec::new();
    for line in TEXT.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(rest) = line.strip_prefix("set ") {
            let (name, members) = rest.split_once(" = ").expect("a set has members");
            sets.push((name, members.split(',').map(str::to_owned).collect()));
            continue;
        }
        if let Some(rest) = line.strip_prefix("out ") {
            list.out.push(rest.split_once(' ').expect("a reason"));
            continue;
        }
        if let Some((names, how)) = line.strip_prefix("also ").and_then(|rest| rest.split_once(" | ")) {
            let how = how.strip_prefix("- ").map_or(Otherwise::As(how), Otherwise::LeftOut);
            list.also.extend(names.split(',').map(|name| (name, how)));
            continue;
        }
        if let Some(rest) = line.strip_prefix("not ") {
            let mut fields = rest.split(" | ");
            let mut next = || fields.next().expect("names, what it is, words and a reason");
            let (of, what, words, why) = (next(), next(), next(), next());
            let words = words.split(',').filter(|w| *w != "-").collect();
            list.parts.push(LeftOut { of: of.split(',').collect(), what, words, why });
            continue;
        }
        if let Some(rest) = line.strip_prefix("+ ") {
            let mut fields = rest.split(" | ");
            let name = fields.next().expect("a name");
            let of = list.instructions.iter_mut().find(|l| l.name == name).expect("an instruction above");
            let column = |text: &str| match text {
                "-" => Vec::new(),
                text => text.split("; ").map(str::to_owned).collect(),
            };
            let a2a3 = fields.next().expect("a column for a2a3");
            let a5 = fields.next().unwrap_or(a2a3);
            of.more = [column(a2a3), column(a5), column(fields.next().unwrap_or(a5))];
            continue;
        }
        let mut fields = line.split(" | ");
        let head = fields.next().expect("a head");
        let (section, name) = head.split_once(' ').expect("section and name");
        let a2a3 = fields.next().expect("a column for a2a3");
        let a5 = fields.next().unwrap_or(a2a3);
        let more: Vec<&str> = fields.collect();
        let more = |start: &str| more.iter().find_map(|f| f.strip_prefix(start));
        let entry = match a2a3.strip_prefix("as ") {
            Some(other) => {
                let other = list.instructions.iter().find(|l| l.name == other).expect("an instruction above");
                Listed { section, name, ..other.clone() }
            }
            None => Listed {
                section,
                name,
                a2a3: forms(a2a3, &sets),
                a5: forms(a5, &sets),
                kirin: more("kirin ").map(|f| forms(f, &sets)),
                more: Default::default(),
                otherwise: more("= "),
            },
        };
        list.instructions.push(entry);
    }
    list
}

/// `A2,u8` with its sets written out.
fn members(text: &str, sets: &[(&str, Vec<String>)]) -> Vec<String> {
    let one = |word: &str| match sets.iter().find(|(name, _)| *name == word) {
        Some((_, list)) => list.clone(),
        None => vec![word.to_owned()],
    };
    text.split(',').flat_map(one).collect()
}

fn forms(column: &str, sets: &[(&str, Vec<String>)]) -> Vec<Form> {
    if column == "-" {
        return Vec::new();
    }
    column.split(' ').flat_map(|word| product(word, sets)).collect()
}

/// `i32,u32:f16:=` as all its lists of dtypes.
fn product(word: &str, sets: &[(&str, Vec<String>)]) -> Vec<Form> {
    let separator = if word.contains('>') { '>' } else { ':' };
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    for part in word.split(separator) {
        let choices = members(part, sets);
        all = all
            .iter()
            .flat_map(|before| {
                choices.iter().map(move |c| {
                    let next = if c == "=" { before.last().expect("one before").clone() } else { c.clone() };
                    before.iter().cloned().chain([next]).collect()
                })
            })
            .collect();
    }
    all.iter().map(|f| f.join(&separator.to_string())).collect()
}
