//! Instruction sets: which dtypes instructions take, and what else their unit can do. Each is a data file in
//! `targets/instructions/`, which several targets may share; a target names its own by the key `family`.

use super::parse::{Reader, first_line, to_span};
use super::raw::Text;
use crate::{AtomicOp, DTypeRule, Instr, InstrId, lookup, text};
use ptoc_diagnostics::{Diagnostic, FileId, codes};
use ptoc_tensor::DType;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use toml::Spanned;

/// What the instructions of a unit take, and how it carries them out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstructionSet {
    /// The file's name without its end: what a target's `family` names.
    pub name: String,
    /// Instructions want the scratch tiles that their rows name.
    pub scratch: bool,
    /// Every element-wise instruction may write over a source. If not, those whose rows say so.
    pub in_place: bool,
    /// Updates of elements that MSCATTER makes.
    pub scatter: Vec<AtomicOp>,
    /// By number of the instruction; empty where its rule needs no list, or the unit lacks it.
    lists: Vec<Vec<Vec<DType>>>,
    /// Dtypes that are compared for equality alone.
    equal_only: HashMap<InstrId, Vec<DType>>,
}

/// Name and text of each file.
const FILES: [(&str, &str); 2] = [
    ("a2a3", include_str!("../../targets/instructions/a2a3.toml")),
    ("a5", include_str!("../../targets/instructions/a5.toml")),
];

/// The set of a file, by its number.
fn read(n: usize) -> &'static Arc<InstructionSet> {
    static EACH: [OnceLock<Arc<InstructionSet>>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];
    let (name, text) = FILES[n];
    EACH[n].get_or_init(|| match InstructionSet::parse(name, FileId(0), text) {
        Ok(set) => Arc::new(set),
        // A broken built-in file is a mistake in this crate; its tests read all of them.
        Err(errors) => panic!("instructions/{name}.toml: {errors:?}"),
    })
}

impl InstructionSet {
    /// Those that come with the compiler.
    pub fn builtin() -> impl Iterator<Item = &'static Arc<InstructionSet>> {
        (0..FILES.len()).map(read)
    }

    /// That of this name, if it comes with the compiler. No other is read.
    pub fn named(name: &str) -> Option<&'static Arc<InstructionSet>> {
        FILES.iter().position(|(file, _)| *file == name).map(read)
    }

    /// The list of a row: an entry has one dtype where all operands are alike, (from, to) of a conversion, or the
    /// dtypes of the tiles that the author writes, in order.
    pub fn list(&self, row: &Instr) -> &[Vec<DType>] {
        lookup(row.name).and_then(|id| self.lists.get(usize::from(id.0))).map_or(&[], Vec::as_slice)
    }

    /// The dtypes that the instruction compares for equality alone.
    pub fn equal_only(&self, id: InstrId) -> &[DType] {
        self.equal_only.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Reads the text of the file `name`. The first structural mistake ends it (E0652); of wrong values all are
    /// reported (E0653).
    pub fn parse(name: &str, file: FileId, text: &str) -> Result<InstructionSet, Vec<Diagnostic>> {
        let raw: RawInstructions = toml::from_str(text).map_err(|e| {
            let span = to_span(file, e.span().unwrap_or(0..0));
            vec![Diagnostic::error(codes::TARGET_SYNTAX, span, first_line(e.message()))]
        })?;
        let mut reader = Reader::new(file);
        let set = reader.instruction_set(name, raw);
        if reader.errors.is_empty() { Ok(set) } else { Err(reader.errors) }
    }
}

/// The shape of the file, before anything is checked but names and kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInstructions {
    scratch: bool,
    in_place: bool,
    scatter: Vec<Text>,
    #[serde(default)]
    equal_only: BTreeMap<Text, Vec<Text>>,
    #[serde(default)]
    sets: BTreeMap<Text, Vec<Text>>,
    dtypes: Spanned<BTreeMap<Text, Vec<Text>>>,
}

/// Named lists of entries.
type Sets = BTreeMap<String, Vec<Vec<DType>>>;

/// How many dtypes an entry has.
fn width(row: &Instr) -> usize {
    match row.dtypes {
        DTypeRule::Pairs => 2,
        DTypeRule::Tuples => row.tiles_written(),
        _ => 1,
    }
}

impl Reader {
    fn instruction_set(&mut self, name: &str, raw: RawInstructions) -> InstructionSet {
        let mut sets = Sets::new();
        let before = self.errors.len();
        for (name, words) in &raw.sets {
            let word = name.get_ref();
            if DType::from_name(word).is_some() || word.contains(char::is_whitespace) || word.is_empty() {
                self.error(name.span(), "a set has a name of one word, which is not that of a dtype".into());
            }
            let entries = words.iter().filter_map(|w| self.entry(w, None)).collect();
            sets.insert(word.clone(), entries);
        }
        // What uses a set that is wrong is not wrong itself.
        let sets_known = self.errors.len() == before;
        let lists = if sets_known { self.lists(&raw.dtypes, &sets) } else { vec![Vec::new(); InstrId::all().len()] };
        let mut equal_only = HashMap::new();
        for (name, words) in raw.equal_only.iter().filter(|_| sets_known) {
            let Ok(id) = self.instruction(name) else { continue };
            let row = id.get();
            if !row.sem.compares() {
                self.error(name.span(), format!("{} does not compare", row.name));
            }
            // Of several operands, what is compared is the first source.
            let compared = usize::from(row.dtypes == DTypeRule::Tuples);
            let mut only = Vec::new();
            for word in words {
                let Some(&[d]) = self.entry(word, None).as_deref() else { continue };
                if !lists[usize::from(id.0)].iter().any(|entry| entry.get(compared) == Some(&d)) {
                    self.error(word.span(), format!("{d} is not among what {} takes", row.name));
                }
                only.push(d);
            }
            equal_only.insert(id, only);
        }
        let scatter = raw.scatter.iter().filter_map(|word| self.update(word)).collect();
        let (name, scratch, in_place) = (name.to_owned(), raw.scratch, raw.in_place);
        InstructionSet { name, scratch, in_place, scatter, lists, equal_only }
    }

    /// The lists by number of the instruction; each that needs one has one.
    fn lists(&mut self, raw: &Spanned<BTreeMap<Text, Vec<Text>>>, sets: &Sets) -> Vec<Vec<Vec<DType>>> {
        let mut lists = vec![Vec::new(); InstrId::all().len()];
        let mut missing: Vec<InstrId> = InstrId::all().filter(|id| id.get().dtypes.is_listed()).collect();
        for (name, words) in raw.get_ref() {
            match self.instruction(name) {
                Ok(id) => {
                    missing.retain(|m| *m != id);
                    lists[usize::from(id.0)] = self.list(id.get(), words, sets);
                }
                Err(meant) => missing.retain(|m| Some(m.get().name) != meant),
            }
        }
        if !missing.is_empty() {
            let names = text::list(missing.iter().map(|id| id.get().name));
            self.error(raw.span(), format!("no list for {names}"))
                .notes
                .push("an instruction that the unit lacks has an empty list".into());
        }
        lists
    }

    /// An instruction whose rule needs a list, or the name that was meant, if it is known.
    fn instruction(&mut self, name: &Text) -> Result<InstrId, Option<&'static str>> {
        match lookup(name.get_ref()) {
            Some(id) if id.get().dtypes.is_listed() => return Ok(id),
            Some(_) => {
                let message = format!("{} has no list: what it takes follows from the target's file", name.get_ref());
                self.error(name.span(), message);
            }
            None => {
                let listed = InstrId::all().map(InstrId::get).filter(|row| row.dtypes.is_listed());
                let near = text::nearest(name.get_ref(), listed.map(|row| row.name)).first().copied();
                let error = self.error(name.span(), format!("there is no instruction `{}`", name.get_ref()));
                if let Some(near) = near {
                    *error = error.clone().with_help(format!("did you mean `{near}`?"));
                }
                return Err(near);
            }
        }
        Err(None)
    }

    /// The entries that the words stand for: dtypes, or names of sets.
    fn list(&mut self, row: &Instr, words: &[Text], sets: &Sets) -> Vec<Vec<DType>> {
        let mut out: Vec<Vec<DType>> = Vec::new();
        for word in words {
            let entries = match sets.get(word.get_ref()) {
                Some(entries) => entries.clone(),
                None => self.entry(word, Some(sets)).into_iter().collect(),
            };
            if let Some(entry) = entries.iter().find(|e| e.len() != width(row)) {
                let (given, wanted) = (text::joined(entry), width(row));
                let message = match row.dtypes {
                    DTypeRule::Tuples => format!("{} has {wanted} tiles, and not those of ({given})", row.name),
                    DTypeRule::Pairs => format!("a conversion is `from to`, and not ({given})"),
                    _ => format!("the operands of {} are of one dtype, and not of ({given})", row.name),
                };
                self.error(word.span(), message);
                continue;
            }
            for entry in entries {
                if out.contains(&entry) {
                    self.error(word.span(), format!("{} is listed twice for {}", text::joined(&entry), row.name));
                }
                out.push(entry);
            }
        }
        out
    }

    /// Dtypes with blanks between them. `sets`: a single word could have been the name of one.
    fn entry(&mut self, word: &Text, sets: Option<&Sets>) -> Option<Vec<DType>> {
        let mut entry = Vec::new();
        for name in word.get_ref().split_whitespace() {
            let Some(dtype) = DType::from_name(name) else {
                let known = || DType::ALL.iter().map(|d| d.name());
                let names = || sets.into_iter().flat_map(|s| s.keys()).map(String::as_str);
                let near = text::nearest(name, known().chain(names())).first().map(|n| n.to_string());
                let message = match sets {
                    Some(_) => format!("`{name}` is neither a dtype nor a set of this file"),
                    None => format!("`{name}` is not a dtype"),
                };
                let error = self.error(word.span(), message);
                error.notes.push(format!("the dtypes are {}", text::list(known())));
                if names().next().is_some() {
                    error.notes.push(format!("the sets are {}", text::list(names())));
                }
                if let Some(near) = near {
                    *error = error.clone().with_help(format!("did you mean `{near}`?"));
                }
                return None;
            };
            entry.push(dtype);
        }
        if entry.is_empty() {
            self.error(word.span(), "an entry has a dtype".into());
            return None;
        }
        Some(entry)
    }

    fn update(&mut self, word: &Text) -> Option<AtomicOp> {
        let found = match word.get_ref().as_str() {
            "Add" => Some(AtomicOp::Add),
            "Max" => Some(AtomicOp::Max),
            "Min" => Some(AtomicOp::Min),
            _ => None,
        };
        if found.is_none() {
            self.error(word.span(), format!("`{}` is none of `Add`, `Max` and `Min`", word.get_ref()));
        }
        found
    }
}

#[cfg(test)]
mod tests;
