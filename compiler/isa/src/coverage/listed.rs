//! PTO's list (`pto.txt`, which says how it is written), read.

/// A form of an instruction: the dtypes of its operands, as the list writes them (`f32`, `f32>f16`, `f16:i32:i32`), or `*`.
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
}

/// A form, an operand or a mode of an instruction that PTO has and the language has not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The instructions.
    pub of: Vec<&'static str>,
    /// What it is.
    pub what: &'static str,
    /// What an author who wants it would write; `+`: more operands.
    pub words: Vec<&'static str>,
    /// Why, and what to write instead.
    pub why: &'static str,
}

/// What of an instruction is left out.
pub fn left_out(name: &str) -> impl Iterator<Item = LeftOut> {
    list().parts.into_iter().filter(move |p| p.of.contains(&name))
}

/// What stands for a mnemonic of PTO that is no instruction here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Otherwise {
    /// The language has it, in these words.
    As(&'static str),
    /// It is left out, for this reason.
    LeftOut(&'static str),
}

/// What PTO's list says of a mnemonic that the table does not have, in small letters or capitals; `None` if it is simply not there yet.
pub fn otherwise(name: &str) -> Option<Otherwise> {
    let list = list();
    let listed = list
        .instructions
        .iter()
        .find(|l| l.name.eq_ignore_ascii_case(name))
        .and_then(|l| l.otherwise)
        .map(Otherwise::As);
    listed.or_else(|| list.out.iter().find(|o| o.0 == name).map(|o| Otherwise::LeftOut(o.1)))
}

const TEXT: &str = include_str!("pto.txt");

/// The list. It is a file of ours: one that cannot be read is a mistake, which a test finds.
pub(super) fn list() -> List {
    let mut list = List { instructions: Vec::new(), out: Vec::new(), parts: Vec::new() };
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
