//! The formatter: what it gives out means the same and is its own canonical form, however the white space was before.

use ptoc_diagnostics::{Diagnostic, SourceMap};
use ptoc_syntax::format::{Refused, format};
use ptoc_syntax::{parse, print, tokens};

/// How often a text is given other white space.
const SHAKES: u64 = 4;

/// Formats source text and the same text with other white space. What cannot be parsed is refused.
pub fn format_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(tree) = tree(text) else {
        let mut sources = SourceMap::new();
        let file = sources.add("f.tile", text);
        assert!(matches!(format(file, text), Err(Refused::Broken(_))), "a broken text is formatted");
        return;
    };
    let seed = super::hash(data);
    let shakes = (0..SHAKES).map(|n| shaken(text, seed.wrapping_add(n)));
    for text in std::iter::once(text.to_owned()).chain(shakes) {
        let once = canonical(&text);
        assert_eq!(Some(&tree), self::tree(&once).as_ref(), "another tree:\n{once}");
        assert_eq!(once, canonical(&once), "formatting changes what is formatted");
        assert!(!once.lines().any(|l| l.ends_with(' ') || l.contains('\t') && !text.contains('\t')), "{once}");
        let ends = [once.matches('\n').count(), once.matches("\r\n").count()];
        assert!(ends[1] == 0 || ends[0] == ends[1], "lines end in two ways: {once:?}");
        let plain = |text: &str| text.replace("\r\n", "\n");
        let other = canonical(&plain(&text).replace('\n', "\r\n"));
        assert_eq!(plain(&other), plain(&once), "what ends lines changes them");
        assert!(once.is_empty() || once.ends_with('\n') && !plain(&once).ends_with("\n\n"), "{once:?}");
    }
}

fn canonical(text: &str) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("f.tile", text);
    format(file, text).unwrap_or_else(|why| panic!("{why:?}:\n{text}"))
}

/// The tree without places, and the comments; none of a text with errors.
fn tree(text: &str) -> Option<(String, Vec<String>)> {
    let mut sources = SourceMap::new();
    let file = sources.add("f.tile", text);
    let parsed = parse(file, text);
    let comments = parsed.comments.iter().map(|(_, text)| text.trim_end().to_owned()).collect();
    let broken = parsed.diagnostics.iter().any(Diagnostic::is_error);
    (!broken).then(|| (print::ast(&parsed.file, false), comments))
}

/// The same tokens and comments with other white space between them: where there was some, there is some, and where
/// there was none, there may be some if no token depends on it.
fn shaken(text: &str, mut seed: u64) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("f.tile", text);
    let mut out = String::new();
    let mut end = 0;
    let mut comment = false;
    let mut draw = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for (tok, span) in tokens(file, text) {
        let (from, to) = (span.start as usize, span.end as usize);
        let between = &text[end..from];
        let broken = between.contains('\n');
        // A comment ends with its line, and whether one stands behind code says what it is about.
        let keep = comment || tok.is_comment() || draw(3) > 0 || between.is_empty();
        if keep {
            out.push_str(between);
        } else {
            let white = [" ", "  ", "     ", "\n", "\n\n", " \n   ", "\t", "\r\n"];
            out.push_str(white[draw(if broken { 8 } else { 4 }) as usize]);
        }
        out.push_str(&text[from..to]);
        comment = tok.is_comment();
        end = to;
    }
    out.push_str(&text[end..]);
    out
}
