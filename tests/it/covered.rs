//! Every instruction on every dtype and in every mode that a target takes has a vector of numpy (`tests/golden/*.txt`).
//! What there is to have is derived from the instruction table and the targets' files: rows, dtypes, ways between
//! memories, modes, choices and pads. A form that has no vector is one that ptoc refuses, or of which nothing can be
//! seen.

use crate::differential::case::tiles_of;
use crate::engine::check;
use crate::{fixpipe, indexed, moved, multiplied, numpy, placed};
use ptoc_isa::{
    CmpOp, DTypeRule, Instr, InstrId, Loc, MemorySpace, OperandKind, Sem, Target, Triple, check_dtypes, lookup,
};
use ptoc_tensor::DType;
use std::collections::{BTreeMap, BTreeSet};

/// A form of an instruction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Form {
    pub id: InstrId,
    /// Dtypes of the tiles that the author writes; of a product those of the triple, of a move those after and before
    /// it.
    pub tiles: Vec<DType>,
    /// From where to where, or where, if there is a choice.
    pub way: String,
    /// What is written behind the operands.
    pub words: BTreeSet<String>,
}

/// A pad that is a number.
pub const NUMBER: &str = "a number";

impl Form {
    pub fn new<'w>(id: InstrId, tiles: &[DType], way: &str, words: impl Iterator<Item = &'w str>) -> Form {
        Form { id, tiles: tiles.to_vec(), way: way.to_owned(), words: words.map(str::to_owned).collect() }
    }

    fn text(&self) -> String {
        let tiles: Vec<&str> = self.tiles.iter().map(|d| d.name()).collect();
        let words: String = self.words.iter().map(|w| format!(", {w}")).collect();
        let way = if self.way.is_empty() { String::new() } else { format!(" {}", self.way) };
        format!("{}{way} {}{words}", self.id.get().name, tiles.join(":"))
    }
}

/// Rows that no target of PTO has.
const ELSEWHERE: [&str; 1] = ["TSAMPLE"];

/// Of these nothing can be seen by any program, on some dtypes: the row, where, and why.
const UNSEEN: [(&str, &str, &str); 5] = [
    ("TMOV", "Mat>Scaling", "scales are f32 or u64, and nothing reads other tables"),
    ("TASSIGN", "Scaling", "likewise"),
    ("TASSIGN", "Bias", "a bias has the dtype of an accumulator, and nothing reads another one"),
    ("TASSIGN", "ScaleLeft", "block-scaled products are not part of the language, and nothing else reads it"),
    ("TASSIGN", "ScaleRight", "likewise"),
];

/// Words that ptoc does not take on every dtype, place or target of their row, and why.
const REFUSED: [(&str, &str); 10] = [
    ("Relu", "what leaves Acc alone is made positive on the way"),
    ("HF32", "factors of f32 alone are rounded"),
    ("TF32", "likewise"),
    ("Round", "likewise; and how is said where they are"),
    ("Rint", "likewise"),
    ("atomic = true", "no unit adds 8-bit floats"),
    ("atomic = Max", "likewise; and a2a3 only adds"),
    ("atomic = Min", "likewise"),
    ("Byte2", "an u16 has two bytes"),
    ("Byte3", "likewise"),
];

fn all_vectors() -> BTreeSet<Form> {
    let tables =
        [numpy::forms(), placed::forms(), indexed::forms(), fixpipe::forms(), multiplied::forms(), moved::forms()];
    tables.into_iter().flatten().collect()
}

/// The dtypes of a row's tiles and its ways, in every form that the target takes.
fn shapes(target: &Target, id: InstrId) -> Vec<(Vec<DType>, String)> {
    let row = id.get();
    let each = |tiles: Vec<Vec<DType>>| tiles.into_iter().map(|t| (t, String::new())).collect();
    let way = |from: MemorySpace, to: MemorySpace| format!("{from}>{to}");
    match row.dtypes {
        DTypeRule::Same | DTypeRule::Mask | DTypeRule::Pairs | DTypeRule::Tuples => {
            let OperandKind::Tile(places) = row.operands[0].kind else { panic!("{}: a tile", row.name) };
            let places: Vec<&str> = match places {
                [_] => vec![""],
                several => several.iter().filter(|l| target.capacity(**l) > 0).map(|l| l.name()).collect(),
            };
            let with = |t: Vec<DType>| places.iter().map(move |p| (t.clone(), (*p).to_owned())).collect::<Vec<_>>();
            tiles_of(target, row).into_iter().flat_map(with).collect()
        }
        DTypeRule::Matmul => each(target.triples.iter().map(|t| vec![t.acc, t.left, t.right]).collect()),
        DTypeRule::Move => {
            let mut all = Vec::new();
            for rule in target.moves.iter().filter(|m| m.instr == id) {
                let vector = [rule.from, rule.to] == [MemorySpace::Tile(Loc::Vec); 2];
                let masks = vector.then_some((DType::Bool, DType::Bool));
                let pairs = rule.pairs.iter().copied().chain(masks);
                all.extend(pairs.map(|(from, to)| (vec![to, from], way(rule.from, rule.to))));
            }
            all
        }
        DTypeRule::Fixpipe => {
            let Sem::Fixpipe(meaning) = row.sem else { panic!("{}: leaves Acc", row.name) };
            let scales: Vec<Option<DType>> = match meaning.by_column(row) {
                true => ptoc_isa::scales(target).into_iter().map(Some).collect(),
                false => vec![None],
            };
            let mut all = Vec::new();
            for rule in target.moves.iter().filter(|m| m.from == MemorySpace::Tile(Loc::Acc)) {
                let there = match rule.to {
                    MemorySpace::Gm => row.operands[0].kind == OperandKind::View,
                    MemorySpace::Tile(loc) => row.operands[0].takes(loc),
                };
                let pairs = if meaning.quantised { &rule.quantised } else { &rule.pairs };
                for (from, to) in pairs.iter().filter(|_| there) {
                    let tiles = |s: &Option<DType>| [*to, *from].into_iter().chain(*s).collect::<Vec<_>>();
                    all.extend(scales.iter().map(|s| (tiles(s), way(rule.from, rule.to))));
                }
            }
            all
        }
        DTypeRule::Gather => {
            let indices = |d: &DType| [DType::I32, DType::U32].map(|index| vec![*d, index]);
            each(target.dtypes.iter().flat_map(indices).collect())
        }
        DTypeRule::Any if row.sem == Sem::Assign => {
            let places = Loc::ALL.into_iter().filter(|l| target.capacity(*l) > 0);
            let dtypes = |l: Loc| target.cube_dtypes(l).unwrap_or_else(|| target.dtypes.clone());
            places.flat_map(|l| dtypes(l).into_iter().map(move |d| (vec![d], l.name().to_owned()))).collect()
        }
        DTypeRule::Any => each(target.dtypes.iter().map(|d| vec![*d]).collect()),
        DTypeRule::Sample => Vec::new(),
    }
}

/// What may be said beside the operands: lists of which one is chosen, and whether it may be left out.
fn choices(row: &Instr, way: &str) -> Vec<(Vec<&'static str>, bool)> {
    let mut all: Vec<(Vec<&str>, bool)> = row.modes.iter().map(|m| (m.words.to_vec(), m.optional)).collect();
    let must = row.written().len() - row.optional;
    for (k, operand) in row.written().iter().enumerate() {
        match operand.kind {
            OperandKind::Choice(words) => all.push((words.iter().map(|w| w.0).collect(), k >= must)),
            OperandKind::Pad => all.push((vec!["Zero", "Max", "Min", NUMBER], k >= must)),
            OperandKind::Tile(_)
            | OperandKind::View
            | OperandKind::Scalar(_)
            | OperandKind::Address
            | OperandKind::Index => {}
        }
    }
    if row.scalar_first {
        all.push((vec!["reversed"], true));
    }
    // What is said at a tile in the vector memory, and a load or store follows.
    match (row.sem, way) {
        (Sem::Load, "GM>Vec") => all.extend([(vec!["pad = Zero"], true), (vec!["layout = DN"], true)]),
        (Sem::Store, "Vec>GM") => all.push((vec!["layout = DN"], true)),
        _ => {}
    }
    all
}

/// Nothing said if that may be, each word, and each two words of different lists.
fn said(choices: &[(Vec<&'static str>, bool)]) -> Vec<BTreeSet<String>> {
    let set = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<BTreeSet<String>>();
    let mut all = Vec::new();
    if choices.iter().all(|(_, optional)| *optional) {
        all.push(BTreeSet::new());
    }
    for (k, (words, _)) in choices.iter().enumerate() {
        all.extend(words.iter().map(|w| set(&[w])));
        for (others, _) in &choices[..k] {
            all.extend(words.iter().flat_map(|a| others.iter().map(move |b| set(&[a, b]))));
        }
    }
    all
}

/// Every form that the table and the target's file offer.
fn offered(target: &Target, id: InstrId) -> Vec<Form> {
    let mut all = Vec::new();
    for (tiles, way) in shapes(target, id) {
        for words in said(&choices(id.get(), &way)) {
            let compared = |w: &String| CmpOp::ALL.iter().copied().find(|c| c.name().eq_ignore_ascii_case(w));
            let cmp = words.iter().find_map(compared).filter(|_| id.get().sem.compares());
            if check_dtypes(target, id, &tiles, cmp).is_none() || cmp.is_none() {
                all.push(Form { id, tiles: tiles.clone(), way: way.clone(), words });
            }
        }
    }
    all
}

/// Whether the result can be seen, by any program.
fn visible(target: &Target, form: &Form) -> bool {
    let row = form.id.get();
    let to = form.way.rsplit('>').next().and_then(Loc::from_name);
    match (to, row.sem) {
        (Some(loc), Sem::Assign | Sem::Move | Sem::Load | Sem::Expand | Sem::Fixpipe(_)) => {
            moved::visible(target, loc, form.tiles[0])
        }
        _ => true,
    }
}

/// A program of the form, where ptoc may refuse what the table offers: the table's words are not of all dtypes and
/// places.
fn program(target: &Target, form: &Form) -> Option<String> {
    let words: Vec<String> = form.words.iter().cloned().collect();
    match form.id.get().dtypes {
        DTypeRule::Matmul => {
            let [acc, left, right] = form.tiles[..] else { panic!("a triple") };
            let rows = if form.id.get().shape == ptoc_isa::ShapeRule::Gemv { 1 } else { 16 };
            Some(multiplied::kernel(form.id, Triple { acc, left, right }, &words, [rows, 32, 16]))
        }
        DTypeRule::Move => moved::kernel(target, form),
        DTypeRule::Gather => Some(indexed::kernel(form)),
        DTypeRule::Tuples => placed::kernel(form),
        _ => None,
    }
}

/// Whether ptoc refuses it because of what is said, as it takes the same without.
fn refused(target: &Target, form: &Form) -> bool {
    if !form.words.iter().any(|w| REFUSED.iter().any(|(word, _)| w == word)) {
        return false;
    }
    let plain: BTreeSet<String> = form.words.iter().filter(|w| *w == "Row").cloned().collect();
    let without = Form { words: plain, ..form.clone() };
    let Some((text, plain)) = program(target, form).zip(program(target, &without)) else { return false };
    let codes = |text: &str| check(text, &target.name, &[]).codes;
    let (found, plain) = (codes(&text), codes(&plain));
    assert!(plain.is_empty(), "{}: {plain:?}\n{text}", without.text());
    // What is not there yet is no rule.
    !found.is_empty() && !found.contains(&ptoc_diagnostics::codes::NOT_YET.as_str())
}

#[test]
fn every_form_of_every_instruction_has_a_vector() {
    let mut have: BTreeMap<(InstrId, Vec<DType>, String), Vec<BTreeSet<String>>> = BTreeMap::new();
    for form in all_vectors() {
        have.entry((form.id, form.tiles, form.way)).or_default().push(form.words);
    }
    let (mut missing, mut unseen, mut count, mut rows) = (BTreeSet::new(), BTreeSet::new(), 0, BTreeSet::new());
    for target in Target::pto() {
        for id in InstrId::all() {
            for form in offered(target, id) {
                rows.insert(id);
                count += 1;
                let lines = have.get(&(id, form.tiles.clone(), form.way.clone()));
                let covers = |words: &BTreeSet<String>| match form.words.is_empty() {
                    true => words.is_empty(),
                    false => form.words.is_subset(words),
                };
                let covered = lines.is_some_and(|l| l.iter().any(covers));
                match covered || refused(target, &form) {
                    true => {}
                    false if visible(target, &form) => {
                        missing.insert(form.text());
                    }
                    false => {
                        unseen.insert(form);
                    }
                }
            }
        }
    }
    let number = missing.len();
    assert!(missing.is_empty(), "{number} of {count} forms have no vector of tests/scripts/*_vectors.py: {missing:#?}");
    let beyond =
        |form: &&Form| !UNSEEN.iter().any(|(name, way, _)| (form.id.get().name, form.way.as_str()) == (*name, *way));
    let beyond: Vec<String> = unseen.iter().filter(beyond).map(Form::text).collect();
    assert!(beyond.is_empty(), "nobody says why these cannot be seen: {beyond:#?}");
    assert!(count > 8000, "{count}");
    let none: Vec<&str> = InstrId::all().filter(|id| !rows.contains(id)).map(|id| id.get().name).collect();
    assert_eq!(none, ELSEWHERE);
}

/// What PTO lists and the language has under another name, with the row whose vectors are of it, and what is said
/// there.
const OTHERWISE: [(&str, &str, &str); 10] = [
    ("TSUBVIEW", "TMOV", "window [3, _]"),
    ("TALIAS", "TMOV", "window .valid(2, 19)"),
    ("SETHF32MODE", "TMATMUL", "HF32"),
    ("SETTF32MODE", "TMATMUL", "TF32"),
    ("SETFMATRIX", "TIMG2COL", ""),
    ("SET_IMG2COL_RPT", "TIMG2COL", ""),
    ("SET_IMG2COL_PADDING", "TIMG2COL", NUMBER),
    ("SET_QUANT_SCALAR", "TMOV_QUANT", ""),
    ("SET_QUANT_VECTOR", "TMOV_FP", ""),
    ("TPREFETCH", "TLOAD", ""),
];

/// It prints, which the tests of the command line look at (`prints_go_to_standard_error`).
const PRINTED: &str = "TPRINT";

/// What is no instruction and moves nothing: a program that is run and held to its `ensures` or its flags has it.
const RUN: &[(&str, &str, &str)] = &[
    ("GetValue", include_str!("../golden/elements.tile"), "= t[r, c]"),
    ("SetValue", include_str!("../golden/elements.tile"), "u[r, c] ="),
    ("TSYNC", include_str!("../../examples/double_buffer.tile"), "TSYNC("),
];

#[test]
fn what_has_another_name_has_a_vector() {
    let listed = include_str!("../../compiler/isa/src/coverage/pto.txt");
    let name = |line: &'static str| line.strip_prefix("5.")?.split(' ').nth(1);
    let names: BTreeSet<&str> = listed.lines().filter_map(name).filter(|n| lookup(n).is_none()).collect();
    let known: BTreeSet<&str> = OTHERWISE.iter().map(|o| o.0).chain(RUN.iter().map(|r| r.0)).chain([PRINTED]).collect();
    assert_eq!(names, known);
    for (name, program, text) in RUN {
        assert!(program.contains("// run: ") && program.contains(text), "{name}");
    }
    let vectors = all_vectors();
    for (name, row, word) in OTHERWISE {
        let of = |f: &&Form| f.id.get().name == row && (word.is_empty() || f.words.contains(word));
        assert!(vectors.iter().any(|f| of(&f)), "{name}: {row} {word}");
    }
}
