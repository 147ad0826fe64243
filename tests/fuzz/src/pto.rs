//! PTO text: what is read is printed and formatted to itself, goes through every stage, and comes back from the kernels
//! that it becomes; what is not read is refused at its place.

use super::front::{Source, passes};
use super::{hash, ir};
use ptoc_diagnostics::{Diagnostic, FileId};
use ptoc_driver::pto;
use ptoc_ir::tile::Kernel;
use ptoc_ir::tile::text::{Spans, print};
use ptoc_ir::tile::verify::verify;
use ptoc_isa::Target;
use ptoc_passes::Prepared;
use ptoc_pto::cpp;
use ptoc_pto::highlight;
use ptoc_pto::names::NameIndex;
use ptoc_pto::tree::Module;
use ptoc_pto::write::{Form, Level, write};

const TARGETS: [&str; 4] = ["a2a3", "a5", "kirin9030", "kirinx90"];

const LEVELS: [Level; 3] = [Level::Automatic, Level::Placed, Level::Explicit];

/// Bytes as PTO text, through every stage on one target.
pub fn pto(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let seed = hash(data);
    let target = Target::builtin(TARGETS[seed as usize % TARGETS.len()]).expect("built in");
    in_an_editor(&text, seed);
    let source = Source::new("fuzz.pto", data);
    source.render(&source.diagnostics);
    inside(&text, &source.diagnostics);
    let Some(once) = syntax(&text) else { return };
    if source.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let kernels = source.kernels(target);
    let again = Source { seed: source.seed, ..Source::new("again.pto", once.as_bytes()) };
    assert_eq!(irs(&again.kernels(target)), irs(&kernels), "printed, it means something else:\n{once}");
    imported(&text, &source, &kernels, target);
    for kernel in kernels {
        if let Err(errors) = verify(&kernel) {
            panic!("invalid tile IR:\n{kernel}\n{errors:#?}");
        }
        ir::round_trip(&kernel);
        match passes(kernel, target) {
            Ok(prepared) => {
                source.render(&prepared.warnings);
                LEVELS.into_iter().for_each(|level| written(&source, &prepared, target, level));
            }
            Err(errors) => source.render(&errors),
        }
    }
}

/// The text as it is printed; nothing of one with mistakes of syntax, which are in it.
fn syntax(text: &str) -> Option<String> {
    let file = FileId(0);
    let parsed = ptoc_pto::parse(file, text);
    let formatted = pto::format("fuzz.pto", file, text);
    assert_eq!(formatted.is_ok(), parsed.diagnostics.is_empty(), "{:#?}", parsed.diagnostics);
    let (reading, found) = pto::translate(file, text);
    assert_eq!(reading.is_none(), found.iter().any(Diagnostic::is_error), "{found:#?}");
    inside(text, &found);
    let Ok(formatted) = formatted else { return None };
    let once = ptoc_pto::print(&parsed.module);
    for other in [&once, &formatted] {
        let again = ptoc_pto::parse(file, other);
        assert!(again.diagnostics.is_empty(), "{:#?}\n{other}", again.diagnostics);
        assert_eq!(ptoc_pto::print(&again.module), once, "another tree");
        let formatted = pto::format("fuzz.pto", file, other).unwrap_or_else(|why| panic!("{why:?}:\n{other}"));
        assert_eq!(formatted, *other, "formatting changes what is formatted");
    }
    let codes = |found: &[Diagnostic]| found.iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(codes(&pto::translate(file, &once).1), codes(&found), "printed, it is judged in another way:\n{once}");
    Some(once)
}

/// Each error has a code, and a place in the text.
fn inside(text: &str, found: &[Diagnostic]) {
    for d in found.iter().filter(|d| d.is_error()) {
        let place = d.span.unwrap_or_else(|| panic!("an error without a place: {d:#?}"));
        assert!(!d.code.as_str().is_empty() && !d.message.is_empty(), "{d:#?}");
        assert!(place.file == FileId(0) && text.get(place.range()).is_some(), "outside of the text: {d:#?}");
    }
}

/// What an editor asks of any text.
fn in_an_editor(text: &str, seed: u64) {
    let mut end = 0;
    for (range, _) in highlight::tokens(text) {
        assert!(range.start >= end && text.get(range.clone()).is_some_and(|t| !t.is_empty()), "{range:?}");
        end = range.end;
    }
    let names = NameIndex::of(text);
    for place in &names.occurrences {
        let definition = &names.definitions[place.definition];
        assert!(text.get(place.range.clone()).is_some() && text.get(definition.range.clone()).is_some(), "{place:?}");
    }
    for n in 0..4 {
        let mut at = (seed.rotate_left(n * 16) % (text.len() as u64 + 1)) as usize;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (range, _) = pto::proposals(text, at);
        assert!(text.get(range).is_some());
        assert!(pto::about(text, at).is_none_or(|a| text.get(a.range).is_some()));
    }
}

/// Kernels as text, without places.
fn irs(kernels: &[Kernel]) -> Vec<String> {
    kernels.iter().map(|k| print(k, Spans::Omit)).collect()
}

/// As source of the language it parses, and becomes the same kernels.
fn imported(text: &str, source: &Source, kernels: &[Kernel], target: &Target) {
    let tile = pto::import(FileId(0), text, "fuzz.pto").unwrap_or_else(|d| panic!("read, and not imported: {d:#?}"));
    let again = Source { seed: source.seed, ..Source::new("fuzz.tile", tile.as_bytes()) };
    again.render(&again.diagnostics);
    assert!(!again.diagnostics.iter().any(Diagnostic::is_error), "{:#?}\n{tile}", again.diagnostics);
    assert_eq!(irs(&again.kernels(target)), irs(kernels), "imported, it means something else:\n{tile}");
}

/// The kernel as a tree of the dialect.
fn tree(source: &Source, prepared: &Prepared, target: &Target, form: Form, level: Level) -> Option<Module> {
    let bytes = || ptoc_placement::physical(&prepared.placed.kernel, &prepared.placed.placement, target);
    let kernel = match level {
        Level::Automatic => prepared.placed.kernel.clone(),
        Level::Placed => bytes(),
        Level::Explicit => ptoc_opt::sync::insert(bytes(), target),
    };
    write(&kernel, form, level, &|_| None).inspect_err(|d| source.render(&[(**d).clone()])).ok()
}

/// What is written of a kernel is read without an error and prints back to itself, and the kernel that it becomes is
/// written as a text that is written of its own kernel again.
fn written(source: &Source, prepared: &Prepared, target: &Target, level: Level) {
    if level != Level::Placed
        && let Some(module) = tree(source, prepared, target, Form::Cpp, level)
    {
        let unit = cpp::Unit { about: &[], launcher: "launch", target: &target.name, level };
        let made = cpp::print(&module, &unit).and_then(|text| Ok((text, cpp::declaration(&module, &unit)?)));
        match made {
            Ok((text, launcher)) => assert!(text.contains(&launcher), "{launcher}\n{text}"),
            Err(d) => source.render(&[*d]),
        }
    }
    let Some(module) = tree(source, prepared, target, Form::Text, level) else { return };
    let first = ptoc_pto::print(&module);
    // The text has no defaults, so more launches of it are looked at.
    let narrowed = prepared.placed.kernel.scalars.iter().any(|s| s.default.is_some());
    let Some(second) = rewritten(&first, target, level, narrowed) else { return };
    if second != first {
        let third = rewritten(&second, target, level, false);
        assert_eq!(third.as_ref(), Some(&second), "written a third time it is another text; the first was\n{first}");
    }
}

/// The text of the kernel that a written text becomes; none if its checks refuse it, and `may_fail`.
fn rewritten(text: &str, target: &Target, level: Level, may_fail: bool) -> Option<String> {
    assert_eq!(syntax(text).as_deref(), Some(text), "printed, it is another text");
    let source = Source::new("written.pto", text.as_bytes());
    let errors: Vec<&Diagnostic> = source.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "written, and not read: {errors:#?}\n{text}");
    let kernels = source.kernels(target);
    let [kernel] = &kernels[..] else { panic!("one kernel is written, and {} are read:\n{text}", kernels.len()) };
    match passes(kernel.clone(), target) {
        Ok(prepared) => tree(&source, &prepared, target, Form::Text, level).map(|m| ptoc_pto::print(&m)),
        Err(_) if may_fail => None,
        Err(errors) => panic!("written, and refused: {errors:#?}\n{text}"),
    }
}
