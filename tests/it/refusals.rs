//! What is said of what a target does not take: which target, why, who takes it, and what to write instead. Programs
//! are made for every instruction, target and list of dtypes that some target takes (or that is of one dtype); what is
//! proposed is written, and compiles.

use crate::rules::{Form, forms, has_all, has_tiles, moved, product, program};
use ptoc_diagnostics::Diagnostic;
use ptoc_isa::{DTypeRule, InstrId, MemorySpace, Sem, Target, Triple};
use ptoc_tensor::DType;
use ptoc_tests::front::{Flags, check};
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn errors(text: &str, target: &Target) -> Vec<Diagnostic> {
    let flags = Flags { target: target.name.clone(), defs: Vec::new() };
    check("k.tile", text, &flags, None).diagnostics.into_iter().filter(Diagnostic::is_error).collect()
}

/// The program with operands of other dtypes, by name, and with a scale or without.
type Other<'a> = dyn Fn(&[(&str, DType)], bool) -> Option<String> + 'a;

/// A program, and how to make it of other dtypes.
struct Case<'a> {
    label: String,
    target: &'static Target,
    text: String,
    /// The program of such dtypes; `None`: it cannot be shown.
    other: &'a Other<'a>,
}

fn dtype(name: &str) -> Option<DType> {
    DType::from_name(name.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// `make the source i32 and the destination f16`, `` make `a` i32 and `b` f32 ``: what is called what.
fn pairs(list: &str) -> Vec<(&str, DType)> {
    let list = list.split(':').next().unwrap_or(list);
    let mut out = Vec::new();
    let mut waiting = Vec::new();
    for word in
        list.split([' ', ',']).filter(|w| !matches!(*w, "" | "and" | "the" | "with" | "an" | "accumulator" | "of"))
    {
        match dtype(word) {
            Some(d) if !word.starts_with('`') => out.extend(waiting.drain(..).map(|name| (name, d))),
            _ => waiting.push(word.trim_matches('`')),
        }
    }
    out
}

/// Conversions that compile: from the first dtype to the others, one after another.
fn converts(target: &Target, chain: &[DType]) -> Result<(), String> {
    let (first, last) = (chain[0], chain[chain.len() - 1]);
    let value = chain[1..].iter().fold("Vec(x)".to_owned(), |v, d| format!("{d}({v})"));
    let text = format!("kernel k(x: in {first}[8, 64], y: out {last}[8, 64]) {{\n    TSTORE(y, {value});\n}}\n");
    match errors(&text, target).first() {
        None => Ok(()),
        Some(d) => Err(format!("{}: {}\n{text}", d.code, d.message)),
    }
}

impl Case<'_> {
    /// Another program of the case, which must compile.
    fn compiles(&self, how: &[(&str, DType)], scale: bool) -> Result<(), String> {
        let Some(text) = (self.other)(how, scale) else { return Ok(()) };
        match errors(&text, self.target).first() {
            None => Ok(()),
            Some(d) => Err(format!("{}: {}\n{text}", d.code, d.message)),
        }
    }

    /// Whether the proposal, written, is a program. `None`: it is not one that this test can write.
    fn proposal(&self, help: &str, given: &[DType]) -> Option<Result<(), String>> {
        let quoted = |text: &str| dtype(text.split('(').next()?);
        let after = |start: &str| help.strip_prefix(start);
        if let Some(rest) = after("convert with `").or(after("convert both sides with `")) {
            let to = quoted(rest)?;
            let data = |d: &&DType| **d != DType::Bool && **d != to;
            let from = *given.get(1).filter(data).or_else(|| given.iter().find(data))?;
            return Some(converts(self.target, &[from, to]).and_then(|()| self.compiles(&[("all", to)], false)));
        }
        if let Some(rest) = after("make the operands ") {
            return Some(self.compiles(&[("all", dtype(rest.split([' ', ',', ':']).next()?)?)], false));
        }
        if let Some((_, rest)) = after("make `").and_then(|rest| rest.split_once("` ")) {
            return Some(self.compiles(&[("all", dtype(rest)?)], false));
        }
        if help.ends_with(" see to it") {
            // The operator or the function that a scalar form's help names.
            let d = given[0];
            let way = help.split('`').nth(3)?.replace(" s", " 3").replace("(a,", "(Vec(x),").replace("a ", "Vec(x) ");
            let text = format!("kernel k(x: in {d}[8, 64], y: out {d}[8, 64]) {{\n    TSTORE(y, {way});\n}}\n");
            return Some(errors(&text, self.target).first().map_or(Ok(()), |e| Err(format!("{}\n{text}", e.message))));
        }
        if let Some(rest) = after("convert in two steps, `") {
            let mut names = rest.split('(');
            let (to, via) = (dtype(names.next()?)?, dtype(names.next()?)?);
            return Some(converts(self.target, &[given[1], via, to]));
        }
        if help.contains("(...)` goes through ") {
            return Some(converts(self.target, &[given[1], quoted(help)?]));
        }
        if let Some(rest) = after("the nearest is to convert to ") {
            return Some(self.compiles(&[("dst", dtype(rest.split(',').next()?)?)], false));
        }
        if help.starts_with("`TMOV(dst, a)` copies") {
            let d = given[0];
            let text = format!(
                "kernel k(x: in {d}[8, 64], y: out {d}[8, 64]) {{\n    let t = tile Vec<{d}, 8, 64>;\n    \
                TMOV(t, Vec(x));\n    TSTORE(y, t);\n}}\n"
            );
            return Some(errors(&text, self.target).first().map_or(Ok(()), |e| Err(e.message.clone())));
        }
        if let Some(rest) = after("make the accumulator ") {
            return Some(self.compiles(&[("accumulator", dtype(rest)?)], false));
        }
        if let Some(rest) = after("make the source ") {
            return Some(self.compiles(&[("a", dtype(rest.split([':', ',']).next()?)?)], false));
        }
        if let Some(rest) = after("the nearest is to make ").or(after("the nearest is ")) {
            return Some(self.compiles(&pairs(rest), rest.contains("to give a scale")));
        }
        if help.starts_with("with a scale it is quantised") {
            return Some(self.compiles(&[], true));
        }
        if help.starts_with("leave the scale out") {
            return Some(self.compiles(&[], false));
        }
        if let Some(rest) = after("make it ") {
            return Some(self.compiles(&[("all", dtype(rest.split([',', ':']).next()?)?)], false));
        }
        None
    }

    /// What is wrong with what is said.
    fn judge(&self, given: &[DType]) -> Vec<String> {
        let found = errors(&self.text, self.target);
        let [d] = &found[..] else {
            let codes: Vec<&str> = found.iter().map(|d| d.code.as_str()).collect();
            return vec![format!("{}: not one error: {codes:?}\n{}", self.label, self.text)];
        };
        let helps: Vec<&str> = d.fixes.iter().map(|f| f.message.as_str()).collect();
        let said: String = std::iter::once(&d.message).chain(&d.notes).map(|s| format!("{s}\n")).collect();
        let mut wrong = Vec::new();
        let mut complain = |what: String| {
            let notes: String = d.notes.iter().map(|n| format!("    note: {n}\n")).collect();
            let help: String = helps.iter().map(|n| format!("    help: {n}\n")).collect();
            wrong.push(format!("{}: {what}\n  {}: {}\n{notes}{help}", self.label, d.code, d.message));
        };
        if !said.contains(&self.target.name) {
            complain("the target is not named".into());
        }
        if d.notes.is_empty() {
            complain("nothing says why".into());
        }
        let takers: Vec<&str> =
            self.target.others().filter(|t| errors(&self.text, t).is_empty()).map(|t| t.name.as_str()).collect();
        if !takers.is_empty() && !takers.iter().any(|t| said.contains(t)) {
            complain(format!("{takers:?} would take it"));
        }
        if helps.is_empty() {
            complain("nothing says what to write".into());
        }
        for help in &helps {
            if let Some(Err(why)) = self.proposal(help, given) {
                complain(format!("`{help}` does not compile: {why}"));
            }
        }
        wrong
    }
}

/// The same list with dtypes of operands replaced; `all`: those of what is no mask, or what is no index.
fn changed(id: InstrId, form: &Form, how: &[(&str, DType)]) -> Form {
    let row = id.get();
    let names: Vec<&str> = row.written().iter().filter(|o| o.is_tile()).map(|o| o.name).collect();
    let mut tiles = form.0.clone();
    for (name, d) in how {
        for (k, t) in tiles.iter_mut().enumerate() {
            let whole =
                *name == "all" && *t != DType::Bool && (!matches!(row.dtypes, DTypeRule::Tuples) || k == 1 || k == 2);
            if whole || names.get(k) == Some(name) {
                *t = *d;
            }
        }
    }
    (tiles, form.1)
}

/// The lists that are tried on a target: those of all targets, and one dtype for all.
fn tried(target: &'static Target, id: InstrId) -> Vec<Form> {
    let row = id.get();
    let mut all: Vec<Form> = Target::pto().iter().flat_map(|t| forms(t, id)).collect();
    if matches!(row.dtypes, DTypeRule::Same | DTypeRule::Mask) {
        let known: Vec<Form> = all.clone();
        for d in &target.dtypes {
            for (tiles, cmp) in known.iter().take(1) {
                let same = tiles.iter().map(|t| if *t == DType::Bool { *t } else { *d });
                all.push((same.collect(), *cmp));
            }
        }
    }
    if matches!(row.dtypes, DTypeRule::Pairs) {
        all.extend(target.dtypes.iter().flat_map(|a| target.dtypes.iter().map(|b| (vec![*b, *a], None))));
    }
    let mine: BTreeSet<String> = forms(target, id).iter().map(|f| format!("{f:?}")).collect();
    let mut seen = BTreeSet::new();
    all.retain(|f| has_tiles(target, id, &f.0) && !mine.contains(&format!("{f:?}")) && seen.insert(format!("{f:?}")));
    all
}

/// How the program calls the operands of its instruction, and how the table does.
fn called(id: InstrId, text: &str) -> Vec<(&str, &'static str)> {
    let start = format!("    {}(", id.get().written_name());
    let call = text.lines().find_map(|l| l.strip_prefix(&start)).unwrap_or("");
    let names = call.trim_end_matches([')', ';']).split(", ");
    names.zip(id.get().written()).map(|(own, o)| (own, o.name)).collect()
}

fn instructions(part: usize) {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for target in Target::pto() {
        let rows = InstrId::all().filter(|id| id.get().sem != Sem::Sample && id.get().tiles_written() > 0);
        for id in rows.skip(part).step_by(4) {
            for form in tried(target, id) {
                let Some(p) = program(id, &form) else { continue };
                let called = called(id, &p.text);
                let other = |how: &[(&str, DType)], _: bool| {
                    let name = |n| called.iter().find(|(own, _)| *own == n).map_or(n, |(_, name)| *name);
                    let how: Vec<(&str, DType)> = how.iter().map(|(n, d)| (name(*n), *d)).collect();
                    program(id, &changed(id, &form, &how)).map(|p| format!("kernel k{}", p.text))
                };
                let label = format!("{} {:?} {:?} on {}", id.get().name, form.0, form.1, target.name);
                let case = Case { label, target, text: format!("kernel k{}", p.text), other: &other };
                count += 1;
                wrong.extend(case.judge(&form.0));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 100, "{count}");
}

#[test]
fn dtypes_that_an_instruction_does_not_take_0() {
    instructions(0);
}

#[test]
fn dtypes_that_an_instruction_does_not_take_1() {
    instructions(1);
}

#[test]
fn dtypes_that_an_instruction_does_not_take_2() {
    instructions(2);
}

#[test]
fn dtypes_that_an_instruction_does_not_take_3() {
    instructions(3);
}

/// The refused programs of `ui/rules`: sizes, places, updates, operands that overlap, memories.
#[test]
fn rules_of_targets() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for target in Target::pto() {
        for (name, p) in crate::rules::refused(target) {
            let label = format!("{name} on {}", target.name);
            let case = Case { label, target, text: format!("kernel k{}", p.text), other: &|_, _| None };
            count += 1;
            wrong.extend(case.judge(&[DType::F32, DType::F32]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 140, "{count}");
}

/// Types that a target does not have: each one that is proposed is there.
#[test]
fn types_of_tiles() {
    let (mut wrong, mut count) = (String::new(), 0);
    for target in Target::pto() {
        for loc in target.locations().into_iter().filter(|l| target.capacity(*l) > 0) {
            for d in DType::ALL {
                for (r, c) in [(8, 7), (17, 64), (16, 24), (1, 1), (0, 16)] {
                    let program = |ty: &str| format!("kernel k() {{\n    let _t = tile {ty};\n}}\n");
                    let found = errors(&program(&format!("{loc}<{d}, {r}, {c}>")), target);
                    let Some(e) = found.first() else { continue };
                    count += 1;
                    let helps: Vec<&str> = e.fixes.iter().map(|f| f.message.as_str()).collect();
                    let mut proposed: Vec<String> = Vec::new();
                    for help in &helps {
                        let numbers = help.split(' ').filter_map(|w| w.parse::<u32>().ok());
                        match help.split_once(" columns") {
                            Some(_) if help.starts_with("give it ") => {
                                proposed.extend(numbers.map(|n| format!("{loc}<{d}, {r}, {n}>")));
                            }
                            _ if help.starts_with("give it ") => {
                                proposed.extend(numbers.map(|n| format!("{loc}<{d}, {n}, {c}>")));
                            }
                            _ => proposed.extend(help.split('`').skip(1).step_by(2).map(str::to_owned)),
                        }
                        if let Some(to) =
                            help.strip_prefix("make it ").or(help.strip_prefix("the nearest is to make it "))
                        {
                            let name = to.split(',').next().expect("a word");
                            proposed.extend(
                                dtype(name).filter(|_| !to.starts_with('`')).map(|d| format!("{loc}<{d}, 1, 128>")),
                            );
                        }
                    }
                    // Of a tile of no elements nothing is known that it should have had.
                    let known = r > 0 && !proposed.is_empty() || r == 0 && !helps.is_empty();
                    if !known || e.notes.is_empty() && r > 0 {
                        writeln!(
                            wrong,
                            "{loc}<{d}, {r}, {c}> on {}: {} {:?} {helps:?}",
                            target.name, e.message, e.notes
                        )
                        .expect("fits");
                    }
                    for ty in proposed {
                        let left = errors(&program(&ty), target);
                        if let Some(e) = left.iter().find(|e| e.code.as_str().starts_with("E06")) {
                            writeln!(wrong, "{loc}<{d}, {r}, {c}> on {}: `{ty}`: {}", target.name, e.message)
                                .expect("fits");
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 500, "{count}");
}

/// Products of all pairs of factors with every accumulator.
#[test]
fn products_that_a_matrix_unit_does_not_compute() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for target in Target::pto() {
        let of = |pick: fn(&Triple) -> DType| -> BTreeSet<&'static str> {
            target.triples.iter().map(|t| pick(t).name()).collect()
        };
        let all = |names: BTreeSet<&'static str>| names.into_iter().filter_map(DType::from_name).collect::<Vec<_>>();
        for acc in all(of(|t| t.acc)) {
            for left in all(of(|t| t.left)) {
                for right in all(of(|t| t.right)) {
                    let triple = Triple { acc, left, right };
                    if target.triples.contains(&triple) {
                        continue;
                    }
                    let other = |how: &[(&str, DType)], _: bool| {
                        let mut t = triple;
                        for (name, d) in how {
                            match *name {
                                "a" => t.left = *d,
                                "b" => t.right = *d,
                                _ => t.acc = *d,
                            }
                        }
                        Some(format!("kernel k{}", product(&t).text))
                    };
                    let label = format!("{triple} on {}", target.name);
                    let case =
                        Case { label, target, text: format!("kernel k{}", product(&triple).text), other: &other };
                    count += 1;
                    wrong.extend(case.judge(&[left, right]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 20, "{count}");
}

/// Every way between places, with every pair that some target moves there, with a scale and without.
#[test]
fn moves_that_a_target_does_not_have() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for target in Target::pto() {
        let mut tried = BTreeSet::new();
        for way in Target::pto().iter().flat_map(|t| &t.moves).filter(|m| m.from != MemorySpace::Gm) {
            for (pair, scale) in way.pairs.iter().map(|p| (*p, false)).chain(way.quantised.iter().map(|p| (*p, true))) {
                let mine = target.move_rule(way.from, way.to);
                let taken =
                    mine.is_some_and(|m| if scale { m.quantised.contains(&pair) } else { m.pairs.contains(&pair) });
                if taken
                    || !has_all(target, &[pair.0, pair.1])
                    || !tried.insert((way.from, way.to, pair.0.name(), pair.1.name(), scale))
                {
                    continue;
                }
                let Some(p) = moved(target, (way.from, way.to, scale), pair) else { continue };
                let other = |how: &[(&str, DType)], scale: bool| {
                    let mut pair = pair;
                    for (name, d) in how {
                        match *name {
                            "source" => pair.0 = *d,
                            "all" => pair = (*d, *d),
                            _ => pair.1 = *d,
                        }
                    }
                    moved(target, (way.from, way.to, scale), pair).map(|p| format!("kernel k{}", p.text))
                };
                let label = format!("{} to {} {pair:?} {scale} on {}", way.from, way.to, target.name);
                let case = Case { label, target, text: format!("kernel k{}", p.text), other: &other };
                count += 1;
                wrong.extend(case.judge(&[pair.0, pair.1]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 20, "{count}");
}

/// `%` on tiles: each instruction that is named instead computes it, after what is said beside it.
#[test]
fn remainders_that_are_no_operator() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    let number = |d: DType| if d.is_float() { "3.0" } else { "3" };
    for (target, d) in Target::pto().iter().flat_map(|t| t.dtypes.iter().map(move |d| (t, *d))) {
        let program = |d: DType, to: DType, rest: &str| {
            let load = |x: &str| if d == to { format!("Vec({x})") } else { format!("{to}(Vec({x}))") };
            format!(
                "kernel k(x: in {d}[8, 64], z: in {d}[8, 1], y: out {to}[8, 64]) {{\n    let a = {};\n    \
                 let b = {};\n    let c = {};\n    \
                 let r = tile Vec<{to}, 8, 64>;\n    let t = tile Vec<{to}, 8, 64>;\n    {rest}\n    TSTORE(y, r);\n\
                 }}\n",
                load("x"),
                load("x"),
                load("z")
            )
        };
        for (written, a, b) in [
            ("a % b", "a", "b"),
            ("a % 3", "a", number(d)),
            ("3 % a", "t", "a"),
            ("a % c", "a", "t"),
            ("c % a", "t", "a"),
        ] {
            let operator = written.replace('3', number(d));
            let found = errors(&program(d, d, &format!("r = {operator};")), target);
            let mut help = found.iter().flat_map(|e| &e.fixes).map(|f| &f.message);
            let Some(help) = help.find(|m| m.starts_with("remainders of tiles")) else { continue };
            let instructions = help.split(';').next().unwrap_or_default();
            let word = |start: &str| {
                help.split_once(start).and_then(|(_, rest)| dtype(rest.split([' ', '(', ',', ':']).next()?))
            };
            let converted = word("convert with `");
            let to = converted.or(word("make the operands ")).unwrap_or(d);
            let fill = if written.contains('c') { "TROWEXPAND(t, c);".into() } else { format!("t = {};", number(to)) };
            let b = if written == "a % 3" { number(to) } else { b };
            for name in instructions.split('`').skip(1).step_by(2) {
                let name = name.split('(').next().unwrap_or_default();
                let text =
                    program(if converted.is_some() { d } else { to }, to, &format!("{fill}  {name}(r, {a}, {b});"));
                count += 1;
                let failed = errors(&text, target);
                wrong.extend(
                    failed
                        .first()
                        .map(|e| format!("{written} of {d} on {}: {help}\n{}\n{text}", target.name, e.message)),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 40, "{count}");
}

/// A number where an instruction takes a tile: where a tile is to be filled with it, that is a program.
#[test]
fn numbers_in_place_of_tiles() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (target, d) in Target::pto().iter().flat_map(|t| t.dtypes.iter().map(move |d| (t, *d))) {
        for id in
            InstrId::all().filter(|id| matches!(id.get().dtypes, DTypeRule::Same) && id.get().sem.expr().is_some())
        {
            let row = id.get();
            let number = if d.is_float() { "3.0" } else { "3" };
            for k in 1..row.written().len() {
                let args =
                    (1..row.written().len()).map(|n| if n == k || !row.written()[n].is_tile() { number } else { "a" });
                let program = |rest: &str| {
                    format!(
                        "kernel k(x: in {d}[8, 64], y: out {d}[8, 64]) {{\n    let a = Vec(x);\n    \
                         let r = tile Vec<{d}, 8, 64>;\n    \
                         let t = tile Vec<{d}, 8, 64>;\n    r = {number};\n    {rest}\n    TSTORE(y, r);\n}}\n"
                    )
                };
                let call = format!("{}(r, {});", row.written_name(), args.collect::<Vec<_>>().join(", "));
                let found = errors(&program(&call), target);
                let mut help = found.iter().flat_map(|e| &e.fixes).map(|f| &f.message);
                let Some(help) = help.find(|m| m.starts_with("fill a tile with the scalar, ")) else {
                    continue;
                };
                let quoted: Vec<&str> = help.split('`').skip(1).step_by(2).collect();
                let text = program(&format!("{}  {};", quoted[0], quoted[1]));
                count += 1;
                // What the target does not take with tiles is another mistake, which the first one hid.
                let failed = errors(&text, target);
                let failed = failed.iter().find(|e| e.code.as_str() != "E0607" && e.code.as_str() != "E0617");
                wrong.extend(failed.map(|e| format!("{call} on {}: {help}\n{}\n{text}", target.name, e.message)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 40, "{count}");
}
