//! Which instructions of PTO work: what PTO lists (`pto.txt`) held against the table and the target files.

mod listed;

use crate::legal::{allowed_dtypes, allowed_tuples, tcvt_pairs};
use crate::{
    AtomicOp, DTypeRule, Instr, InstrId, Loc, MemorySpace, OperandKind, TABLE, Target, lookup, overloads, text,
};
use listed::{Form, List, Listed, list};
pub use listed::{LeftOut, Otherwise, is_spelled, left_out, left_out_as, otherwise, storage_operand};
use ptoc_tensor::DType;
use std::fmt::Write as _;

/// What becomes of a form on a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// PTO lists it and so does the table.
    Works,
    /// Neither does.
    Illegal,
    /// PTO lists it, the table does not.
    Missing,
    /// The table has more than PTO lists.
    Own,
}

impl Mark {
    fn of(listed: bool, there: bool) -> Mark {
        match (listed, there) {
            (true, true) => Mark::Works,
            (false, false) => Mark::Illegal,
            (true, false) => Mark::Missing,
            (false, true) => Mark::Own,
        }
    }

    fn sign(self) -> char {
        match self {
            Mark::Works => '+',
            Mark::Illegal => '.',
            Mark::Missing => '?',
            Mark::Own => 'o',
        }
    }
}

/// The forms that the table admits on a target.
fn there(target: &Target, row: &Instr) -> Vec<Form> {
    let names = |list: Vec<DType>| list.into_iter().map(|d| d.name().to_owned()).collect();
    let joined = |list: &[DType]| text_joined(list, ":");
    match row.dtypes {
        DTypeRule::Same | DTypeRule::Mask => names(allowed_dtypes(target, row).unwrap_or_default()),
        DTypeRule::Tuples => allowed_tuples(target, row).unwrap_or_default().iter().map(|t| joined(t)).collect(),
        DTypeRule::Pairs => tcvt_pairs(target).iter().map(|(a, b)| format!("{a}>{b}")).collect(),
        DTypeRule::Matmul => target.triples.iter().map(|t| joined(&[t.acc, t.left, t.right])).collect(),
        DTypeRule::Move => {
            let ways = || target.moves.iter().filter(|m| m.instr.get().name == row.name);
            let moved = |d: &DType| ways().any(|m| m.pairs.iter().any(|(a, b)| a == d && b == d));
            names(target.dtypes.iter().copied().filter(moved).collect())
        }
        DTypeRule::Fixpipe => match row.sem {
            crate::Sem::Fixpipe(f) if quantises(target, row) || !f.quantised => vec!["*".to_owned()],
            _ => Vec::new(),
        },
        DTypeRule::Any if row.shape == crate::ShapeRule::Free => vec!["*".to_owned()],
        DTypeRule::Any | DTypeRule::Gather => names(target.dtypes.clone()),
        DTypeRule::Sample => Vec::new(),
    }
}

/// Whether there is a move from Acc with a scale that the row may make.
fn quantises(target: &Target, row: &Instr) -> bool {
    target.moves.iter().any(|m| {
        !m.quantised.is_empty()
            && match m.to {
                MemorySpace::Gm => row.operands[0].kind == OperandKind::View,
                MemorySpace::Tile(loc) => row.operands[0].takes(loc),
            }
    })
}

/// Whether an author may choose `form` there on a target: `A>B`, a word, or what it is and the row that is it
/// (`pto.txt`).
fn chosen(target: &Target, id: InstrId, form: &str) -> bool {
    if let Some((from, to)) = form.split_once('>') {
        let (from, to) = (place(from), place(to));
        return from.zip(to).is_some_and(|(from, to)| overloads(id).any(|id| moves(target, id, from, to)));
    }
    let mut rows = overloads(id).map(InstrId::get).filter(|row| !there(target, row).is_empty());
    match form.split_once(": ") {
        Some((_, name)) => rows.any(|row| row.name == name),
        None => rows.any(|row| words(row).any(|w| w == form) && rounds(target, row)) && updates(target, form),
    }
}

/// Whether the words of the row say anything. What is said of a product is how its factors of f32 are rounded, so there
/// have to be such products.
fn rounds(target: &Target, row: &Instr) -> bool {
    !row.sem.multiplies() || target.accumulator_of(DType::F32, DType::F32).is_some()
}

/// Unless a word names an update of elements that the target has not.
fn updates(target: &Target, word: &str) -> bool {
    match word.strip_prefix("atomic = ") {
        Some("Max") => target.scatters_by(AtomicOp::Max),
        Some("Min") => target.scatters_by(AtomicOp::Min),
        _ => true,
    }
}

/// What may be written behind the operands of a row.
fn words(row: &Instr) -> impl Iterator<Item = &'static str> {
    let choices = row.operands.iter().flat_map(|o| match o.kind {
        OperandKind::Choice(words) => words,
        _ => &[],
    });
    row.modes.iter().flat_map(|m| m.words.iter().copied()).chain(choices.map(|(word, _)| *word))
}

/// The instructions behind whose operands that word may be written.
pub fn instructions_with(word: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = TABLE
        .iter()
        .filter(|row| words(row).any(|w| is_of(w, word)) || fills(row, word))
        .map(Instr::written_name)
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|n| seen.insert(*n));
    names
}

/// Whether that is the word, or a side of `atomic = Max`.
fn is_of(written: &str, word: &str) -> bool {
    written.split(" = ").chain([written]).any(|w| w.eq_ignore_ascii_case(word))
}

/// Whether the row takes a pad, and it is a word for one.
fn fills(row: &Instr, word: &str) -> bool {
    row.operands.iter().any(|o| o.kind == OperandKind::Pad)
        && ["Max", "Min", "Zero"].iter().any(|w| w.eq_ignore_ascii_case(word))
}

fn place(name: &str) -> Option<MemorySpace> {
    match name {
        "GM" => Some(MemorySpace::Gm),
        name => Loc::ALL.into_iter().find(|l| l.name() == name).map(MemorySpace::Tile),
    }
}

/// Whether the instruction moves from there to there on the target. One that is not itself a move of the target's file
/// takes tiles where there is a move between their places.
fn moves(target: &Target, id: InstrId, from: MemorySpace, to: MemorySpace) -> bool {
    let row = id.get();
    let rule = target.move_rule(from, to);
    match (row.dtypes, from, to) {
        (DTypeRule::Move, ..) => rule.is_some_and(|r| r.instr == id),
        (_, MemorySpace::Tile(a), MemorySpace::Tile(b)) => {
            let takes = row.operands[0].takes(b) && row.operands.iter().skip(1).any(|o| o.takes(a));
            takes && (rule.is_some() || a == b)
        }
        _ => false,
    }
}

fn text_joined(list: &[DType], separator: &str) -> String {
    list.iter().map(|d| d.name()).collect::<Vec<_>>().join(separator)
}

/// An instruction with the mark of each of its forms, target by target.
struct Covered {
    listed: Listed,
    forms: Vec<(Form, Vec<Mark>)>,
    /// What else is chosen.
    more: Vec<(Form, Vec<Mark>)>,
}

impl Covered {
    fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.forms.iter().chain(&self.more).flat_map(|(_, marks)| marks)
    }
}

fn cover(listed: &Listed, targets: &[&Target]) -> Covered {
    let mut forms: Vec<(Form, Vec<Mark>)> = Vec::new();
    for (k, target) in targets.iter().enumerate() {
        let kirin = target.name.starts_with("kirin");
        let column = match &listed.kirin {
            Some(own) if kirin => own,
            _ if target.name == "a2a3" => &listed.a2a3,
            _ => &listed.a5,
        };
        // The Kirins have neither bf16 nor 8-bit floats.
        let gone = |f: &Form| kirin && ["bf16", "f8e4m3", "f8e5m2"].iter().any(|d| f.contains(d));
        let wanted: Vec<&Form> = column.iter().filter(|f| !gone(f)).collect();
        let have: Vec<Form> = match (lookup(listed.name), listed.otherwise) {
            (Some(id), _) => {
                // What a second form does from Acc is told in words.
                let told = |i: &InstrId| *i == id || i.get().dtypes != DTypeRule::Fixpipe;
                overloads(id).filter(told).flat_map(|id| there(target, id.get())).collect()
            }
            (None, Some(_)) => column.clone(),
            (None, None) => Vec::new(),
        };
        // A listing that is not about dtypes is there if the instruction is.
        let any = wanted.iter().any(|f| *f == "*");
        let have = if any && !have.is_empty() { vec!["*".to_owned()] } else { have };
        for form in wanted.iter().copied().chain(&have) {
            if !forms.iter().any(|(f, _)| f == form) {
                forms.push((form.clone(), vec![Mark::Illegal; targets.len()]));
            }
        }
        for (form, marks) in &mut forms {
            marks[k] = Mark::of(wanted.contains(&&*form), have.contains(form));
        }
    }
    forms.sort_by_key(|(f, _)| f.split([':', '>']).map(rank).collect::<Vec<_>>());
    Covered { listed: listed.clone(), forms, more: more(listed, targets) }
}

fn more(listed: &Listed, targets: &[&Target]) -> Vec<(Form, Vec<Mark>)> {
    let [a2a3, a5, kirin] = &listed.more;
    let mut all: Vec<&Form> = a5.iter().chain(a2a3).chain(kirin).collect();
    let mut seen = Vec::new();
    all.retain(|f| {
        !seen.contains(f) && {
            seen.push(*f);
            true
        }
    });
    let mark = |target: &Target, form: &Form| {
        let column = match target.name.as_str() {
            "a2a3" => a2a3,
            name if name.starts_with("kirin") => kirin,
            _ => a5,
        };
        let there = lookup(listed.name).is_some_and(|id| chosen(target, id, form));
        Mark::of(column.contains(form), there)
    };
    all.into_iter().map(|f| (f.clone(), targets.iter().map(|t| mark(t, f)).collect())).collect()
}

/// The place of a dtype among the columns.
fn rank(dtype: &str) -> usize {
    COLUMNS.iter().position(|d| *d == dtype).unwrap_or(COLUMNS.len())
}

const COLUMNS: [&str; 14] =
    ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f8e4m3", "f8e5m2", "bool"];

const SECTIONS: [(&str, &str); 8] = [
    ("5.1", "Configuration and binding"),
    ("5.2", "Element by element, tile with tile"),
    ("5.3", "Tile with scalar"),
    ("5.4", "Reductions and broadcasts"),
    ("5.5", "Memory"),
    ("5.6", "Matrix products"),
    ("5.7", "Movement and layout"),
    ("5.8", "Irregular"),
];

fn signs(marks: &[Mark]) -> String {
    marks.iter().map(|m| m.sign()).collect()
}

/// `spec/coverage.md`.
pub fn coverage_markdown() -> String {
    let List { instructions, out: left_out, parts, also } = list();
    let targets: Vec<&Target> = Target::pto().iter().collect();
    let all: Vec<Covered> = instructions.iter().map(|l| cover(l, &targets)).collect();
    let mut out = String::from(HEAD);
    let names = text::list(targets.iter().map(|t| &t.name));
    put(&mut out, format_args!("A cell has a sign for each target, in this order: {names}.\n\n"));
    out.push_str(SIGNS);
    out.push_str(ORDERS);
    out.push_str("\n| group | works | missing | instructions with something missing |\n|---|---|---|---|\n");
    for (section, title) in SECTIONS {
        let group = || all.iter().filter(|c| c.listed.section == section);
        let count = |mark| group().flat_map(Covered::marks).filter(|m| **m == mark).count();
        let short = group().filter(|c| c.marks().any(|m| *m == Mark::Missing));
        let short: Vec<&str> = short.map(|c| c.listed.name).collect();
        let (works, missing) = (count(Mark::Works), count(Mark::Missing));
        put(&mut out, format_args!("| {section} {title} | {works} | {missing} | {} |\n", text::joined(short)));
    }
    for (section, title) in SECTIONS {
        put(&mut out, format_args!("\n## {section} {title}\n\n"));
        let group: Vec<&Covered> = all.iter().filter(|c| c.listed.section == section).collect();
        by_dtype(&mut out, &group);
        conversions(&mut out, &group);
        by_tuple(&mut out, &group);
        by_choice(&mut out, &group);
    }
    out.push_str("\n## Left out\n\n");
    for (name, why) in left_out {
        put(&mut out, format_args!("* {name}: {why}.\n"));
    }
    out.push_str("\nOf instructions that are there:\n\n");
    for LeftOut { of, what, why, .. } in parts {
        put(&mut out, format_args!("* {}: {what}: {why}.\n", text::joined(of)));
    }
    out.push_str(
        "\n## Other names\n\nTypes, methods, functions below the instructions, and other spellings of PTO.\n\n",
    );
    for alike in also.chunk_by(|a, b| a.1 == b.1) {
        let names = text::joined(alike.iter().map(|(name, _)| format!("`{name}`")));
        match alike[0].1 {
            Otherwise::As(how) => put(&mut out, format_args!("* {names}: {how}.\n")),
            Otherwise::LeftOut(why) => put(&mut out, format_args!("* {names}: left out: {why}.\n")),
        }
    }
    out
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string does not fail");
}

/// Whether it is a form of one dtype.
fn is_dtype(form: &Form) -> bool {
    !form.contains([':', '>', '*'])
}

/// The name, with a link where there is a page.
fn name(c: &Covered) -> String {
    match TABLE.iter().any(|r| r.name == c.listed.name) {
        true => format!("[{0}](instructions/{0}.md)", c.listed.name),
        false => c.listed.name.to_owned(),
    }
}

fn by_dtype(out: &mut String, group: &[&Covered]) {
    let rows: Vec<&&Covered> = group.iter().filter(|c| c.forms.iter().any(|(f, _)| is_dtype(f))).collect();
    let used = |d: &&str| rows.iter().any(|c| c.forms.iter().any(|(f, _)| f == d));
    let columns: Vec<&str> = COLUMNS.into_iter().filter(|d| used(d)).collect();
    if rows.is_empty() {
        return;
    }
    put(out, format_args!("| | {} |\n|---|{}\n", columns.join(" | "), "---|".repeat(columns.len())));
    for c in rows {
        let cell = |d: &&str| {
            let marks = c.forms.iter().find(|(f, _)| f == d).map(|(_, m)| m);
            marks.map_or(String::new(), |m| format!("`{}`", signs(m)))
        };
        put(out, format_args!("| {} | {} |\n", name(c), columns.iter().map(cell).collect::<Vec<_>>().join(" | ")));
    }
}

fn conversions(out: &mut String, group: &[&Covered]) {
    for c in group {
        let pairs: Vec<(&str, &str, &Vec<Mark>)> =
            c.forms.iter().filter_map(|(f, m)| f.split_once('>').map(|(a, b)| (a, b, m))).collect();
        if pairs.is_empty() {
            continue;
        }
        let columns: Vec<&str> = COLUMNS.into_iter().filter(|d| pairs.iter().any(|(_, b, _)| b == d)).collect();
        put(out, format_args!("\n{} from (rows) to (columns):\n\n| | {} |\n", name(c), columns.join(" | ")));
        put(out, format_args!("|---|{}\n", "---|".repeat(columns.len())));
        for from in COLUMNS.into_iter().filter(|d| pairs.iter().any(|(a, _, _)| a == d)) {
            let cell = |to: &&str| {
                let found = pairs.iter().find(|(a, b, _)| *a == from && b == to);
                found.map_or(String::new(), |(_, _, m)| format!("`{}`", signs(m)))
            };
            put(out, format_args!("| {from} | {} |\n", columns.iter().map(cell).collect::<Vec<_>>().join(" | ")));
        }
    }
}

/// Forms of several dtypes, those with equal signs together.
fn by_tuple(out: &mut String, group: &[&Covered]) {
    let several = |f: &Form| f.contains(':') || f == "*";
    let rows: Vec<&&Covered> = group.iter().filter(|c| c.forms.iter().any(|(f, _)| several(f))).collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("\n| | dtypes of the operands |\n|---|---|\n");
    for c in rows {
        let mut signed: Vec<(String, Vec<&str>)> = Vec::new();
        for (form, marks) in c.forms.iter().filter(|(f, _)| several(f)) {
            let signs = signs(marks);
            match signed.iter_mut().find(|(s, _)| *s == signs) {
                Some((_, list)) => list.push(form),
                None => signed.push((signs, vec![form])),
            }
        }
        let parts: Vec<String> = signed
            .iter()
            .map(|(signs, list)| match list[..] {
                ["*"] => format!("`{signs}`"),
                _ => format!("`{signs}` {}", list.join(", ")),
            })
            .collect();
        let how = c.listed.otherwise.map_or(String::new(), |how| format!(": {how}"));
        put(out, format_args!("| {} | {}{how} |\n", name(c), parts.join("; ")));
    }
}

/// What is chosen beside dtypes, what has equal signs together.
fn by_choice(out: &mut String, group: &[&Covered]) {
    let rows: Vec<&&Covered> = group.iter().filter(|c| !c.more.is_empty()).collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("\n| | what else is chosen |\n|---|---|\n");
    for c in rows {
        let mut signed: Vec<(String, Vec<&str>)> = Vec::new();
        for (form, marks) in &c.more {
            let (signs, what) = (signs(marks), form.split_once(": ").map_or(form.as_str(), |(what, _)| what));
            match signed.iter_mut().find(|(s, _)| *s == signs) {
                Some((_, list)) => list.push(what),
                None => signed.push((signs, vec![what])),
            }
        }
        let parts: Vec<String> = signed.iter().map(|(signs, list)| format!("`{signs}` {}", list.join("; "))).collect();
        put(out, format_args!("| {} | {} |\n", name(c), parts.join("; ")));
    }
}

const HEAD: &str = "# Coverage\n\n\
Which of PTO's instructions ptoc has, on which dtypes, on which targets. Generated from PTO's list \
(`compiler/isa/src/coverage/pto.txt`),\n\
the instruction table and the target files (`UPDATE_SPEC=1 cargo test -p ptoc-isa spec`). Do not edit. What works is \
run on both backends and\n\
held against results of numpy (`tests/golden/*.txt`), on every dtype, on every way between memories and in every mode: \
`tests/it/covered.rs` derives\n\
from the table what there is to have, and fails for a form without. Cells are of one dtype or one mode; a rule on two \
of them at once is on the instruction's page.\n\n";

const SIGNS: &str = "* `+` works\n* `.` illegal by the target's rule: a program that says it is refused; an empty cell \
is illegal on all of them\n\
* `?` missing: PTO lists it and ptoc refuses it\n* `o` ptoc's own: legal here, and not in PTO's list\n";

const ORDERS: &str = "\nPTO's pages ask by default that the tiles of an instruction in Vec lie by rows (`ND`). Here an \
order says where the elements of a tile\n\
lie and nothing else: every instruction takes tiles in the order of rows or of columns (`layout = DN`), and of both at \
once. What is loaded to\n\
Vec and stored from it keeps its order; TMOV and TTRANS change it.\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NOT_YET;
    use std::collections::BTreeSet;

    #[test]
    fn every_instruction_of_pto_is_listed_once() {
        let List { instructions, out, parts, also } = list();
        for of in parts.iter().flat_map(|p| &p.of) {
            assert!(instructions.iter().any(|l| l.name == *of && l.otherwise.is_none()), "{of}");
        }
        let listed: Vec<&str> = instructions.iter().map(|l| l.name).chain(out.iter().map(|o| o.0)).collect();
        let once: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len());
        for (name, how) in also {
            assert!(!once.contains(name) && crate::lookup(name).is_none(), "{name}");
            assert_eq!(otherwise(name), Some(*how));
        }
        let of_pto = |r: &&Instr| !r.is_own() && crate::lookup(r.name).is_some_and(crate::is_first);
        let known: BTreeSet<&str> =
            TABLE.iter().filter(of_pto).map(|r| r.name).chain(NOT_YET.iter().copied()).collect();
        let otherwise = instructions.iter().filter(|l| l.otherwise.is_some()).map(|l| l.name);
        let known: BTreeSet<&str> = known.into_iter().chain(otherwise).collect();
        let apart: Vec<&&str> = once.symmetric_difference(&known).collect();
        assert!(apart.is_empty(), "in one of pto.txt and the instruction table, not in both: {apart:?}");
        for l in instructions {
            assert!(SECTIONS.iter().any(|(s, _)| *s == l.section), "{}", l.name);
            for form in l.a2a3.iter().chain(&l.a5) {
                assert!(form == "*" || form.split([':', '>']).all(|d| COLUMNS.contains(&d)), "{}: {form}", l.name);
            }
        }
    }

    /// What the table offers is in the list, so that the list cannot fall behind it.
    #[test]
    fn every_choice_of_the_table_is_listed() {
        let listed = &list().instructions;
        let mut missing = Vec::new();
        for id in InstrId::all().filter(|id| !id.get().is_own()) {
            let row = id.get();
            let of = listed.iter().find(|l| l.name == row.written_name());
            let of = of.unwrap_or_else(|| panic!("{} has no line in pto.txt", row.written_name()));
            let all: Vec<&str> = of.more.iter().flatten().map(String::as_str).collect();
            let mut wanted: Vec<String> = words(row).map(str::to_owned).collect();
            wanted.extend((!crate::is_first(id)).then(|| format!(": {}", row.name)));
            let absent = |w: &String| !all.iter().any(|f| f == w || (w.starts_with(": ") && f.ends_with(w.as_str())));
            missing.extend(wanted.into_iter().filter(absent).map(|w| format!("{} {w}", row.name)));
        }
        assert!(missing.is_empty(), "{missing:#?}");
        // What is said to be there in words names a row, or says that it is missing.
        for (name, form) in listed.iter().flat_map(|l| l.more.iter().flatten().map(move |f| (l.name, f))) {
            let row = form.split_once(": ").map(|(_, row)| row);
            assert!(row.is_none_or(|r| r == "missing" || lookup(r).is_some()), "{name}: {form}");
            let place = form.split_once('>').map(|(a, b)| (place(a), place(b)));
            assert!(place.is_none_or(|(a, b)| a.is_some() && b.is_some()), "{name}: {form}");
        }
    }

    #[test]
    fn nothing_of_pto_is_missing() {
        let targets: Vec<&Target> = Target::pto().iter().collect();
        for listed in &list().instructions {
            let covered = cover(listed, &targets);
            for (form, marks) in covered.forms.iter().chain(&covered.more) {
                assert!(!marks.contains(&Mark::Missing), "{}: {form} {}", listed.name, signs(marks));
            }
        }
    }

    /// Where PTO's pages contradict each other, and what was decided (`pto.txt`, and the page of each).
    #[test]
    fn the_kirins_count_and_quantise() {
        let targets: Vec<&Target> = Target::pto().iter().filter(|t| t.name.starts_with("kirin")).collect();
        let told = |l: &&Listed| {
            lookup(l.name).is_some_and(|id| crate::instruction_page(id.get()).contains("the Kirins have it"))
        };
        let all = &list().instructions;
        let decided: Vec<&Listed> = all.iter().filter(told).collect();
        assert_eq!(decided.len(), 3);
        for listed in decided {
            let covered = cover(listed, &targets);
            assert!(covered.marks().count() > 0 && covered.marks().all(|m| *m == Mark::Works), "{}", listed.name);
        }
    }

    /// What is left out of an instruction is told on its page, and by words that no form has.
    #[test]
    fn a_word_names_each_instruction_once() {
        for word in ["Zero", "Atomic", "Relu", "Row"] {
            let names = instructions_with(word);
            let distinct: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(distinct.len(), names.len(), "{word}: {names:?}");
        }
        assert!(instructions_with("Zero").contains(&"TFILLPAD"));
    }

    #[test]
    fn what_is_left_out_is_told() {
        for part in &list().parts {
            for name in &part.of {
                let row = lookup(name).expect("of the table").get();
                assert!(crate::instruction_page(row).contains(part.why), "{name}: {}", part.what);
                let there: Vec<&str> = overloads(lookup(name).expect("there")).flat_map(|id| words(id.get())).collect();
                assert!(part.words.iter().all(|w| !there.contains(w)), "{name}: {:?}", part.words);
            }
            assert!(!part.why.is_empty() && !part.what.is_empty());
        }
    }

    #[test]
    fn signs_say_what_they_mean() {
        let a5 = Target::builtin("a5").expect("built in");
        let a2a3 = Target::builtin("a2a3").expect("built in");
        let entry =
            |name: &str| cover(list().instructions.iter().find(|l| l.name == name).expect("listed"), &[a2a3, a5]);
        let marks = |name: &str, form: &str| {
            entry(name).forms.iter().find(|(f, _)| f == form).map_or(String::new(), |(_, m)| signs(m))
        };
        assert_eq!(marks("TADD", "f32"), "++");
        assert_eq!(marks("TADD", "u8"), ".+");
        assert_eq!(marks("TAND", "bool"), "oo");
        assert_eq!(marks("TAND", "f32"), "");
        assert_eq!(marks("TCVT", "bf16>f16"), ".+");
        assert_eq!(marks("TROWARGMAX", "i32:f16"), "++");
        assert_eq!(marks("SETHF32MODE", "*"), "++");
        assert_eq!(marks("TSUBVIEW", "*"), "++");
        let more = |name: &str, form: &str| {
            entry(name).more.iter().find(|(f, _)| f == form).map_or(String::new(), |(_, m)| signs(m))
        };
        assert_eq!(more("TFILLPAD", "in Mat: TFILLPAD_TO_MAT"), "++");
        assert_eq!(more("TCMP", "LT"), "++");
        assert_eq!(more("TMOV", "Acc>Vec"), ".+");
        assert_eq!(more("TRANDOM", "Rounds7"), ".+");
        assert_eq!(more("TROWARGMAX", "with the values: TROWARGMAX_VALUES"), "++");
        assert_eq!(more("MSCATTER", "atomic = Max"), ".+");
    }
}
