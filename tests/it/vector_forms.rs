//! Which instructions machine code carries out element by element. Every row of the table is compiled, on every tuple
//! of dtypes that a target of PTO's has, with AVX2 and with AVX-512, and its code looked through: for loops of loop IR
//! that store one element a turn, for nests that are not at full width, and for what vector programs do lane by lane.
//! `tests/golden/vector_forms.txt` lists what is found, and why it is so.

use crate::differential::case::cases;
use crate::differential::covers;
use crate::engine::prepare;
use crate::{indexed, placed};
use ptoc_cpu::Vectors;
use ptoc_ir::loops::{Op, Region};
use ptoc_isa::{InstrId, Target};
use std::collections::{BTreeMap, BTreeSet};

/// The ways in which elements are taken one by one: the way, the rows of the table that do so on some dtypes, and why.
const KNOWN: &str = include_str!("../golden/vector_forms.txt");

/// Whether a loop stores an element a turn, outside of lanes.
fn stores_elements(region: &Region, inside: bool) -> bool {
    region.iter().any(|stmt| match &stmt.op {
        Op::Store { .. } | Op::Atomic(_) => inside,
        Op::For(f) => stores_elements(&f.body, true),
        Op::While(w) => stores_elements(&w.head, true) || stores_elements(&w.body, true),
        Op::If(i) => stores_elements(&i.then, inside) || stores_elements(&i.els, inside),
        Op::Scope(s) => stores_elements(&s.body, inside),
        _ => false,
    })
}

/// What a vector program does lane by lane in whole steps: the operation, without the registers and addresses.
fn lanewise(programs: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut tail = false;
    for line in programs.lines() {
        let words = line.trim_start();
        // Sections have names, one blank in.
        if line.len() == words.len() + 1 {
            tail = words == "tail";
        }
        let what = words.strip_prefix("copy").map(|rest| format!("copy of {} bits", first(rest)));
        let what = what.or_else(|| words.split_once("lanewise ").map(|(_, rest)| first(rest).to_owned()));
        found.extend(what.filter(|_| !tail));
    }
    found
}

/// The first word.
fn first(text: &str) -> &str {
    text.split([' ', '.']).next().unwrap_or_default()
}

/// How a kernel takes elements one by one, on the first of these targets that takes it.
fn ways(text: &str, targets: &[&str]) -> BTreeSet<String> {
    let middle = targets.iter().find_map(|target| prepare(text, target, &[], &[], None).ok());
    let middle = middle.unwrap_or_else(|| panic!("none of {targets:?} takes it:\n{text}"));
    let module = middle.prepared.module.expect("a target of PTO's");
    let mut found = BTreeSet::new();
    if stores_elements(&module.block.body, false) {
        found.insert("loop over elements".to_owned());
    }
    for vectors in [Vectors::Bits256, Vectors::Bits512].into_iter().filter(|v| ptoc_cpu::available(*v)) {
        let options = ptoc_cpu::Options { vectors, text: true, ..Default::default() };
        let code = ptoc_cpu::compile(&module, &options).unwrap_or_else(|d| panic!("{}\n{text}", d.message));
        let (wide, all) = code.nests();
        if wide < all {
            found.insert("nest of 128 bits".to_owned());
        }
        found.extend(lanewise(&code.text().expect("it was asked for").clif));
    }
    found
}

#[test]
fn rows_without_a_vector_form_are_known() {
    let all: Vec<&str> = Target::pto().iter().map(|t| &*t.name).collect();
    let mut kernels: Vec<(InstrId, String, Vec<&str>)> = Vec::new();
    for name in ["a2a3", "a5"] {
        let target = Target::builtin(name).expect("a target");
        for id in InstrId::all().filter(covers) {
            kernels.extend(cases(target, id).into_iter().map(|case| (id, case.text, vec![name])));
        }
    }
    let placed: BTreeSet<_> = placed::forms().into_iter().map(|form| (form.id, form.tiles)).collect();
    for (id, tiles) in placed {
        kernels.extend(placed::kernel_of(id, &tiles, None).map(|text| (id, text, all.clone())));
    }
    kernels.extend(indexed::forms().iter().map(|form| (form.id, indexed::kernel(form), all.clone())));
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (id, text, targets) in &kernels {
        for way in ways(text, targets) {
            found.entry(way).or_default().insert(id.get().name);
        }
    }
    println!("{} kernels; {found:#?}", kernels.len());
    let known = KNOWN.lines().filter(|l| !l.starts_with('#')).map(|line| {
        let mut parts = line.split('|');
        let (way, rows, why) = (parts.next(), parts.next(), parts.next());
        assert!(why.is_some_and(|why| !why.is_empty()), "{line} does not say why");
        (way.unwrap_or_default().to_owned(), rows.into_iter().flat_map(|r| r.split(' ')).collect())
    });
    assert_eq!(found, known.collect::<BTreeMap<String, BTreeSet<&str>>>());
}
