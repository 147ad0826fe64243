//! What a help says to do, done. Where a manual kernel's help names one statement or one number, the text with it has
//! the named mistake no more, and no new one. (Edits are `fixes`' business.)

use ptoc_diagnostics::{Diagnostic, Span};
use ptoc_tests::front::{Checked, Flags, check};
use std::collections::BTreeMap;
use std::path::Path;

/// A text that follows a help.
type Followed = String;

/// The names in backquotes, in order.
fn quoted(help: &str) -> Vec<&str> {
    help.split('`').skip(1).step_by(2).collect()
}

/// The statement around a place: from behind the `;`, `{` or `}` before it to its own `;`.
fn statement(text: &str, span: Span) -> (usize, usize) {
    let start = text[..span.start as usize].rfind([';', '{', '}']).map_or(0, |n| n + 1);
    // An assignment has its `;` in it.
    let last = if text[..span.end as usize].ends_with(';') { span.end as usize - 1 } else { span.end as usize };
    let end = text[last..].find(';').map_or(text.len(), |n| last + n + 1);
    (start, end)
}

/// The end of the block in which a place stands.
fn end_of_block(text: &str, at: usize) -> usize {
    let mut depth = 0;
    for (n, c) in text[at..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return at + n,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The text with all of these inserted.
fn with(text: &str, mut more: Vec<(usize, String)>) -> Followed {
    more.sort_by_key(|(at, _)| *at);
    let mut out = text.to_owned();
    more.into_iter().rev().for_each(|(at, what)| out.insert_str(at, &what));
    out
}

/// All places of a call.
fn calls<'t>(text: &'t str, call: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(call).map(|(n, _)| n)
}

/// The words with which a concrete help begins.
const KINDS: [&str; 6] = ["order them by an event: ", "call `", "add `", "leave out this", "leave it out", "declare"];

/// What the help says, in one or more readings; none if it is general advice.
fn followed(text: &str, d: &Diagnostic, help: &str) -> Option<(&'static str, Vec<Followed>)> {
    let kind = KINDS.iter().find(|k| help.contains(**k))?;
    let (names, span) = (quoted(help), d.span?);
    let (start, end) = statement(text, span);
    let other = d.labels.first().map(|l| statement(text, l.span));
    let readings = match *kind {
        "order them by an event: " => {
            let (event, set, wait) = (names.first()?, names.get(1)?, names.get(2)?);
            // Before the outermost statement that both are in.
            let body = text.find("\n    let ").or_else(|| text.find("\n    grid"))?;
            let body = body + text[body..].find(';')? + 1;
            let first = d.labels.iter().map(|l| statement(text, l.span).1);
            let places =
                |first| vec![(body, format!(" {event}")), (first, format!(" {set}")), (start, format!(" {wait}"))];
            first.map(|first| with(text, places(first))).collect()
        }
        "call `" => {
            let call = names.first()?;
            let after = match names.get(1) {
                Some(word) => {
                    let name = call.split('.').next()?;
                    calls(text, &format!("{name}.{word}")).collect()
                }
                None => vec![span.start as usize],
            };
            // Behind what is done with the slot: at the end of the block, or before the next role or consumer.
            let ends = after.iter().map(|&n| (end_of_block(text, n), format!(" {call};"))).collect();
            let next = after.iter().filter_map(|&n| {
                let at = n + text[n..].find(';')? + 1;
                let at = at + text[at..].find(';')? + 1;
                Some((at, format!(" {call};")))
            });
            vec![with(text, ends), with(text, next.collect())]
        }
        "add `" => {
            let call = names.first()?;
            vec![with(text, vec![(start, format!(" {call}"))]), with(text, vec![(end, format!(" {call}"))])]
        }
        "leave out this" | "leave it out" => vec![format!("{}{}", &text[..start], &text[end..])],
        _ => {
            let declared = names.iter().find(|n| n.starts_with("arrivals"))?;
            let data = other?;
            let at = data.0 + text[data.0..].find("arrivals")?;
            let close = at + text[at..].find(')')?;
            vec![format!("{}{declared}{}", &text[..at], &text[close..])]
        }
    };
    Some((kind, readings))
}

/// Whether what was reported is gone, and nothing new is there.
fn mends(d: &Diagnostic, before: &Checked, after: &Checked) -> bool {
    let same = |o: &Diagnostic| o.code == d.code && o.message == d.message;
    let count = |c: &Checked, of: &Diagnostic| c.diagnostics.iter().filter(|o| o.code == of.code).count();
    // What is not proved is told only where nothing is wrong.
    let new = |o: &Diagnostic| !o.code.as_str().starts_with("W026") && count(after, o) > count(before, o);
    !after.diagnostics.iter().any(same) && !after.diagnostics.iter().any(new)
}

#[test]
fn of_manual_kernels() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hazards/broken");
    let (mut wrong, mut kinds) = (Vec::new(), BTreeMap::<&str, usize>::new());
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths.iter().filter(|p| p.extension().is_some_and(|x| x == "tile")) {
        let text = std::fs::read_to_string(path).expect("UTF-8");
        for (name, text) in super::fixes::alone(&path.display().to_string(), &text) {
            let flags = Flags::of_comments(&text);
            let before = check(&name, &text, &flags, None);
            for d in before.diagnostics.iter().filter(|d| d.is_error()) {
                for fix in d.fixes.iter().filter(|f| f.edits.is_empty()) {
                    let help = &fix.message;
                    let Some((kind, readings)) = followed(&text, d, help) else { continue };
                    *kinds.entry(kind).or_default() += 1;
                    let trials: Vec<_> = readings.iter().map(|t| (t, check(&name, t, &flags, None))).collect();
                    if !trials.iter().any(|(_, after)| mends(d, &before, after)) {
                        let (text, after) = &trials[0];
                        wrong.push(format!("{name}: {} {}\n{help}\n{text}\n{}", d.code, d.message, after.text()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {kinds:?}\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(kinds.values().sum::<usize>() > 30 && kinds.len() >= 4, "{kinds:?}");
}
