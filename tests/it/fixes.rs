//! Edits that an editor may apply. For every diagnostic of the corpus and of its kernels with one synchronisation less:
//! the text with the edits parses, names and types are right, and what was reported is gone.

use ptoc_diagnostics::fixes::applied;
use ptoc_diagnostics::{Applicability, Diagnostic, Fix};
use ptoc_driver::fixes::mend;
use ptoc_syntax::ast::ItemKind;
use ptoc_tests::front::{Checked, Flags, check};
use std::path::{Path, PathBuf};

struct Trial<'t> {
    name: &'t str,
    text: &'t str,
    flags: Flags,
    directory: Option<PathBuf>,
    /// There is one mistake, and its fix leaves none of the text.
    strict: bool,
}

impl Trial<'_> {
    fn check(&self, text: &str) -> Checked {
        check(self.name, text, &self.flags, self.directory.clone())
    }

    /// Of one mistake of several: what was reported is gone, there is no new mistake in the text's form, and what the
    /// fix wrote is not reported in turn.
    fn mends(&self, d: &Diagnostic, fix: &Fix, (before, after): (&Checked, &Checked)) -> bool {
        let place = d.span.map(|s| moved(s.start, fix));
        let same = |o: &Diagnostic| o.code == d.code && o.message == d.message && o.span.map(|s| s.start) == place;
        if after.diagnostics.iter().any(same) {
            return false;
        }
        let with = |c: &Checked, of: &str| c.codes().into_iter().filter(|c| c.starts_with(of)).count();
        if self.strict {
            let texts = ["E00", "E01", "E02"].iter().map(|of| with(after, of)).sum::<usize>();
            return texts == 0 && after.errors() < before.errors() + usize::from(!d.is_error());
        }
        let syntax = with(after, "E00") <= with(before, "E00") - usize::from(d.code.as_str().starts_with("E00"));
        let written = fix.edits.iter().filter(|e| !e.text.trim().is_empty()).map(|e| {
            let start = moved(e.span.start, fix);
            (start, start + e.text.len() as u32)
        });
        let written: Vec<(u32, u32)> = written.collect();
        let known = |o: &Diagnostic| {
            let place = o.span.map(|s| s.start);
            before.diagnostics.iter().any(|b| b.code == o.code && b.span.map(|s| moved(s.start, fix)) == place)
        };
        let told = |o: &Diagnostic| {
            o.is_error() && !known(o) && o.span.is_some_and(|s| written.iter().any(|w| s.start < w.1 && w.0 < s.end))
        };
        // What is written without asking is part of no other mistake of the text's form, new or old.
        let broken = |o: &Diagnostic| {
            o.code.as_str().starts_with("E00")
                && o.span.is_some_and(|s| written.iter().any(|w| s.start < w.1 && w.0 < s.end))
        };
        let certain = fix.applicability == Applicability::MachineApplicable;
        syntax && !after.diagnostics.iter().any(told) && !(certain && after.diagnostics.iter().any(broken))
    }

    /// Applies each fix alone; what is wrong of them, and how many there are.
    fn fixes(&self) -> (usize, Vec<String>) {
        let before = self.check(self.text);
        let mut wrong = Vec::new();
        let mut count = 0;
        for d in &before.diagnostics {
            for fix in d.fixes.iter().filter(|f| !f.edits.is_empty()) {
                count += 1;
                // Another file's text is not this test's to change.
                let own = |f: &Fix| f.edits.iter().all(|e| before.sources.name(e.span.file) == self.name);
                if !own(fix) {
                    wrong.push(format!("{}: `{}` changes another file", self.name, fix.message));
                    continue;
                }
                let text = applied(self.text, &fix.edits);
                let after = self.check(&text);
                if !self.mends(d, fix, (&before, &after)) {
                    wrong.push(format!(
                        "{}: {}: {}\n`{}` leaves {:?}\n{text}\n{}",
                        self.name,
                        d.code,
                        d.message,
                        fix.message,
                        after.codes(),
                        after.text()
                    ));
                }
            }
        }
        (count, wrong)
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn files(name: &str) -> Vec<PathBuf> {
    let (mut out, mut folders) = (Vec::new(), vec![folder(name)]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("readable").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|x| x == "tile") => out.push(path),
                false => {}
            }
        }
    }
    out.sort();
    out
}

/// A place of the text, after the edits.
fn moved(at: u32, fix: &Fix) -> u32 {
    let before = fix.edits.iter().filter(|e| e.span.end <= at);
    before.fold(at, |at, e| at + e.text.len() as u32 - (e.span.end - e.span.start))
}

/// All that fixes of these texts do wrong; how many there were.
fn all(texts: Vec<(String, String)>, directory: Option<PathBuf>, strict: bool) -> usize {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new((0, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((name, text)) = texts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let flags = Flags::of_comments(text);
                    let (count, wrong) = Trial { name, text, flags, directory: directory.clone(), strict }.fixes();
                    let mut found = found.lock().expect("no thread has panicked");
                    found.0 += count;
                    found.1.extend(wrong);
                }
            });
        }
    });
    let (count, wrong) = found.into_inner().expect("no thread has panicked");
    assert!(wrong.is_empty(), "{} of {count} fixes are wrong\n{}", wrong.len(), wrong.join("\n\n"));
    count
}

#[test]
fn of_broken_programs() {
    let of = |path: &PathBuf| {
        let name = path.strip_prefix(folder("")).expect("below tests/").display().to_string();
        (name, std::fs::read_to_string(path).expect("UTF-8"))
    };
    let texts = files("ui").iter().filter(|p| !p.starts_with(folder("ui/modules"))).map(of).collect();
    let count = all(texts, Some(folder("ui/modules")), false);
    assert!(count > 90, "only {count} fixes");
}

/// What `ptoc check --fix` leaves of each broken program: fewer mistakes of the text's form by each that it mends.
#[test]
fn of_broken_programs_all_together() {
    let syntax = |c: &Checked| c.codes().into_iter().filter(|c| c.starts_with("E00")).count();
    let mut mended = 0;
    for path in files("ui").iter().filter(|p| !p.starts_with(folder("ui/modules"))) {
        let name = path.strip_prefix(folder("")).expect("below tests/").display().to_string();
        let mut text = std::fs::read_to_string(path).expect("UTF-8");
        let flags = Flags::of_comments(&text);
        let checked = |text: &str| check(&name, text, &flags, Some(folder("ui/modules")));
        let mut before = checked(&text);
        for round in 0.. {
            assert!(round < 16, "{name} is never done\n{text}");
            let file = before.sources.find(&name).expect("the file");
            let next = mend(&text, file, &before.diagnostics);
            if next.count == 0 {
                assert_eq!(next.text, text, "{name}");
                break;
            }
            let after = checked(&next.text);
            assert!(syntax(&after) <= syntax(&before), "{name}: {text}\nbecomes\n{}\n{}", next.text, after.text());
            mended += next.count;
            (text, before) = (next.text, after);
        }
    }
    assert!(mended > 60, "only {mended} mistakes are mended");
}

/// What a program reads: each of `fixes` can be applied, and advice in words stands beside them.
#[test]
fn of_json_have_edits() {
    let (mut fixes, mut helps) = (0, 0);
    for path in files("ui").iter().filter(|p| !p.starts_with(folder("ui/modules"))) {
        let name = path.strip_prefix(folder("")).expect("below tests/").display().to_string();
        let text = std::fs::read_to_string(path).expect("UTF-8");
        let checked = check(&name, &text, &Flags::of_comments(&text), Some(folder("ui/modules")));
        for d in &checked.diagnostics {
            let line = ptoc_diagnostics::render::json(d, &checked.sources);
            let object: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            let list = |key: &str| object[key].as_array().expect("a list").clone();
            for fix in list("fixes") {
                assert!(fix["edits"].as_array().is_some_and(|e| !e.is_empty()), "{name}: {line}");
            }
            assert!(list("helps").iter().all(|h| h.as_str().is_some_and(|h| !h.is_empty())), "{name}: {line}");
            assert_eq!(list("fixes").len() + list("helps").len(), d.fixes.len(), "{name}: {line}");
            fixes += list("fixes").len();
            helps += list("helps").len();
        }
    }
    assert!(fixes > 90 && helps > 90, "{fixes} fixes, {helps} helps");
}

/// Each kernel of a text alone, with what is no kernel.
pub fn alone(name: &str, text: &str) -> Vec<(String, String)> {
    let mut sources = ptoc_diagnostics::SourceMap::new();
    let items = ptoc_syntax::parse(sources.add("test", text), text).file.items;
    let kernel = |k: &ItemKind| matches!(k, ItemKind::Kernel(_));
    let others: Vec<&str> = items.iter().filter(|i| !kernel(&i.kind)).map(|i| &text[i.span.range()]).collect();
    let comments: Vec<&str> = text.lines().take_while(|l| l.starts_with("//")).collect();
    let head = format!("{}\n{}\n", comments.join("\n"), others.join("\n"));
    let kernels = items.iter().filter_map(|i| match &i.kind {
        ItemKind::Kernel(k) => Some((format!("{name}: {}", k.name.name), format!("{head}{}", &text[i.span.range()]))),
        _ => None,
    });
    kernels.collect()
}

/// Each text without one of its synchronisations.
fn with_one_less(name: &str, text: &str) -> Vec<(String, String)> {
    const WORDS: [&str; 8] = ["set", "wait", "barrier", "arrive", "expect", "arrive_and_expect", "complete", "TSYNC"];
    const METHODS: [&str; 2] = [".commit()", ".release()"];
    let mut out = Vec::new();
    let mut at = 0;
    // Statements have no `;` within.
    for piece in text.split_inclusive([';', '{', '}']) {
        let stmt = piece.trim_start();
        let word = stmt.split('(').next().unwrap_or_default();
        let method = METHODS.iter().any(|m| stmt.trim_end_matches(';').ends_with(m)) && !stmt.contains([' ', '=']);
        let start = at + piece.len() - stmt.len();
        at += piece.len();
        if (WORDS.contains(&word) || method) && stmt.ends_with(';') {
            let line = 1 + text[..start].matches('\n').count();
            let less = format!("{}{}", &text[..start], &text[at..]);
            out.push((format!("{name} without `{stmt}` of line {line}"), less));
        }
    }
    out
}

#[test]
fn of_manual_kernels() {
    let mut texts = Vec::new();
    for path in files("hazards") {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        for (name, text) in alone(&name, &text) {
            if path.parent().is_some_and(|p| p.ends_with("correct")) {
                texts.extend(with_one_less(&name, &text));
            } else {
                texts.push((name, text));
            }
        }
    }
    assert!(texts.len() > 500, "only {} kernels", texts.len());
    let count = all(texts, None, true);
    assert!(count > 300, "only {count} fixes");
}
