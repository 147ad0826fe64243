//! What is typed at the debugger.

use ptoc_diagnostics::suggest;
use std::ops::Range;

/// Commands with what they do, in the order of `help`. A prefix that fits one of them is enough; the letters in
/// [`SHORT`] mean what they mean in other debuggers.
pub const COMMANDS: [(&str, &str, &str); 19] = [
    ("break", "LINE | FILE:LINE | NAME [if EXPR]", "stop there: a line, a kernel, a function, an instruction (TLOAD)"),
    ("watch", "NAME | NAME[r, c]", "stop when an element changes"),
    ("delete", "[N]", "remove breakpoint or watchpoint N, or all"),
    ("info", "[breaks | locals]", "list breakpoints and watchpoints; or all names with their values"),
    ("step", "[N]", "run to the next statement of the source, into functions"),
    ("next", "[N]", "run to the next statement, over functions"),
    ("finish", "", "run until the function returns; in a kernel, until the block ends"),
    ("until", "[LINE]", "run to a later line, out of a loop; or to LINE"),
    ("continue", "[N]", "run to the next stop, N times"),
    ("block", "[i=2 j=0]", "say which block of the grid runs; or run on until it is that one"),
    ("where", "", "the line, the functions around it, the block and the loops"),
    ("list", "[LINE | NAME]", "show source around here, or around LINE, or of a kernel or function"),
    ("print", "EXPR | NAME[0:4, 0:8]", "show a tile, a window of a tensor, a slice of one, a scalar, a block"),
    ("tiles", "", "show the tiles that are live: memory, address, valid shape, how much is written"),
    ("events", "", "show which flags are up, the phase of barriers, the slots of rings"),
    ("help", "[COMMAND]", "show this"),
    ("quit", "", "end the run; nothing is written"),
    ("backtrace", "", "the same as where"),
    ("run", "", "the same as continue: the program is running already"),
];

/// Letters that several commands begin with.
const SHORT: [(&str, &str); 10] = [
    ("b", "break"),
    ("bt", "backtrace"),
    ("c", "continue"),
    ("d", "delete"),
    ("l", "list"),
    ("n", "next"),
    ("p", "print"),
    ("r", "run"),
    ("s", "step"),
    ("w", "where"),
];

/// The command that a word means.
pub fn resolve(word: &str) -> Result<&'static str, String> {
    if let Some((_, name)) = SHORT.iter().find(|(short, _)| *short == word) {
        return Ok(name);
    }
    let fits: Vec<&'static str> = COMMANDS.iter().map(|c| c.0).filter(|c| c.starts_with(word)).collect();
    match fits[..] {
        [only] => Ok(only),
        [] => {
            let near = suggest(word, COMMANDS.iter().map(|c| c.0));
            let near = near.map_or("`help` lists the commands".to_owned(), |n| format!("did you mean `{n}`?"));
            Err(format!("there is no command `{word}`; {near}"))
        }
        _ if fits.contains(&word) => Ok(COMMANDS.iter().map(|c| c.0).find(|c| *c == word).unwrap_or("help")),
        _ => Err(format!("`{word}` may be {}", fits.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(" or "))),
    }
}

/// An index of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// `3`: the axis is left out.
    At(i64),
    /// `0:4`, `:4`, `2:`, `:`
    Range(Option<i64>, Option<i64>),
}

/// `NAME` or `NAME[0:4, 0:8]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The name.
    pub name: String,
    /// Indices, one an axis; `None` without brackets.
    pub indices: Option<Vec<Index>>,
}

/// Is it the name of something?
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl Slice {
    /// `None` if the text is of another form (`k.start`, `i + 1`); an error if it is a slice with a mistake.
    pub fn parse(text: &str) -> Result<Option<Slice>, String> {
        let text = text.trim();
        let (name, rest) = text.split_once('[').map_or((text, None), |(n, r)| (n.trim(), Some(r)));
        if !is_name(name) {
            return Ok(None);
        }
        let Some(rest) = rest else { return Ok(Some(Slice { name: name.into(), indices: None })) };
        // Something may follow that makes it an expression: `t[0, 1] + 1`.
        let Some((inside, after)) = rest.split_once(']') else {
            return Err(format!("`{text}` lacks a `]`"));
        };
        if !after.trim().is_empty() {
            return Ok(None);
        }
        let indices = inside.split(',').map(|part| index(part.trim(), text)).collect::<Result<_, _>>()?;
        Ok(Some(Slice { name: name.into(), indices: Some(indices) }))
    }
}

fn index(part: &str, whole: &str) -> Result<Index, String> {
    let number = |s: &str| -> Result<i64, String> {
        let wrong = || format!("`{s}` in `{whole}` is no number; an index is `3`, `0:4`, `:4`, `2:` or `:`");
        s.trim().parse().map_err(|_| wrong())
    };
    match part.split_once(':') {
        None => number(part).map(Index::At),
        Some((lo, hi)) => {
            let end = |s: &str| if s.trim().is_empty() { Ok(None) } else { number(s).map(Some) };
            Ok(Index::Range(end(lo)?, end(hi)?))
        }
    }
}

/// What indices pick of axes of these lengths: the part of each axis, and whether the axis stays. Axes without an index
/// stay whole.
pub fn pick(indices: &[Index], lengths: &[usize], name: &str) -> Result<Vec<(Range<usize>, bool)>, String> {
    if indices.len() > lengths.len() {
        let s = if lengths.len() == 1 { "axis" } else { "axes" };
        return Err(format!("{} indices for `{name}`, which has {} {s}", indices.len(), lengths.len()));
    }
    let mut out = Vec::new();
    for (n, &length) in lengths.iter().enumerate() {
        let outside = |what: String| {
            Err(format!("{what} is outside of axis {n} of `{name}`, which has {length} {}", plural_index(length)))
        };
        // As in Python, a negative index counts from the end.
        let from_end = |i: i64| if i < 0 { i + length as i64 } else { i };
        out.push(match indices.get(n) {
            None => (0..length, true),
            Some(&Index::At(i)) => match usize::try_from(from_end(i)) {
                Ok(at) if at < length => (at..at + 1, false),
                _ => return outside(format!("index {i}")),
            },
            Some(&Index::Range(lo, hi)) => {
                let (a, b) = (from_end(lo.unwrap_or(0)), hi.map_or(length as i64, from_end));
                match (usize::try_from(a), usize::try_from(b)) {
                    (Ok(a), Ok(b)) if a <= b && b <= length => (a..b, true),
                    _ => {
                        let end = |x: Option<i64>| x.map_or(String::new(), |x| x.to_string());
                        return outside(format!("{}:{}", end(lo), end(hi)));
                    }
                }
            }
        });
    }
    Ok(out)
}

fn plural_index(n: usize) -> &'static str {
    if n == 1 { "index" } else { "indices" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(resolve("cont"), Ok("continue"));
        assert_eq!(resolve("st"), Ok("step"));
        assert_eq!(resolve("s"), Ok("step"));
        assert_eq!(resolve("u"), Ok("until"));
        assert_eq!(resolve("watch"), Ok("watch"));
        assert_eq!(resolve("wh"), Ok("where"));
        assert_eq!(resolve("bl"), Ok("block"));
        assert!(resolve("x").unwrap_err().contains("no command `x`"));
        assert!(resolve("contniue").unwrap_err().contains("did you mean `continue`"));
        for (short, name) in SHORT {
            assert_eq!(resolve(short), Ok(name));
        }
        for (name, ..) in COMMANDS {
            assert_eq!(resolve(name), Ok(name));
        }
    }

    #[test]
    fn slices() {
        let of = |text| Slice::parse(text).unwrap().unwrap();
        assert_eq!(of("x"), Slice { name: "x".into(), indices: None });
        let all = Index::Range(None, None);
        assert_eq!(of("x[0:4, 3,:]").indices, Some(vec![Index::Range(Some(0), Some(4)), Index::At(3), all.clone()]));
        assert_eq!(Slice::parse("k.start").unwrap(), None);
        assert_eq!(Slice::parse("t[0, 1] + 1").unwrap(), None);
        assert!(Slice::parse("x[0").is_err());
        assert!(Slice::parse("x[a]").is_err());
        assert_eq!(pick(&[Index::At(-1), all], &[4, 3], "x"), Ok(vec![(3..4, false), (0..3, true)]));
        assert_eq!(pick(&[Index::Range(None, Some(-1))], &[4, 3], "x"), Ok(vec![(0..3, true), (0..3, true)]));
        assert!(pick(&[Index::Range(Some(2), Some(5))], &[4], "x").unwrap_err().contains("2:5 is outside of axis 0"));
        assert!(pick(&[Index::At(4)], &[4], "x").is_err());
        assert!(pick(&[Index::At(0), Index::At(0)], &[4], "x").is_err());
    }
}
