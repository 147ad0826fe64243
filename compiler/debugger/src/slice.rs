//! Parts of things with elements: `t[0:4, 0:8]`, `p[b]`, `p[k.index % 2][0:4, 0:8]`.

use super::command::is_name;
use super::condition::{self, Scalar};
use super::values::Look;
use ptoc_syntax::ast::{Expr, ExprKind};
use std::ops::Range;

/// An index: an expression as typed, or its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index<T = i64> {
    /// `3`: the axis is left out.
    At(T),
    /// `0:4` or `0..4`, `:4`, `2:`, `:`, and `_` for all of it.
    Range(Option<T>, Option<T>),
}

/// `NAME`, `NAME[0:4, 0:8]`, `NAME[b][0:4, 0:8]` as typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The name.
    pub name: String,
    /// Indices, bracket by bracket.
    pub brackets: Vec<Vec<Index<Expr>>>,
}

/// A slice whose indices are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The name.
    pub name: String,
    /// Indices, bracket by bracket.
    pub brackets: Vec<Vec<Index>>,
}

impl Selection {
    /// Whether it picks a range of an array of tiles.
    pub fn picks_several(&self) -> bool {
        matches!(self.brackets.first().and_then(|b| b.first()), Some(Index::Range(..)))
    }
}

impl Slice {
    /// `None` if the text is of another form (`k.start`, `i + 1`); an error if it is a slice with a mistake.
    pub fn parse(text: &str) -> Result<Option<Slice>, String> {
        let text = text.trim();
        let end = text.find('[').unwrap_or(text.len());
        let name = text[..end].trim();
        if !is_name(name) {
            return Ok(None);
        }
        let (mut brackets, mut rest) = (Vec::new(), &text[end..]);
        while let Some(inside) = rest.strip_prefix('[') {
            let close = closing(inside).ok_or_else(|| format!("`{text}` lacks a `]`"))?;
            let parts = split(&inside[..close], ',');
            brackets.push(parts.into_iter().map(|part| index(part.trim(), text)).collect::<Result<_, _>>()?);
            rest = inside[close + 1..].trim_start();
        }
        // Something may follow that makes it an expression: `t[0, 1] + 1`.
        Ok(rest.is_empty().then(|| Slice { name: name.into(), brackets }))
    }

    /// The values of the indices where the run is.
    pub fn select(&self, look: &Look<'_>) -> Result<Selection, String> {
        let one = |index: &Index<Expr>| {
            let end = |e: &Option<Expr>| e.as_ref().map(|e| number(look, e)).transpose();
            match index {
                Index::At(e) => number(look, e).map(Index::At),
                Index::Range(lo, hi) => Ok(Index::Range(end(lo)?, end(hi)?)),
            }
        };
        let brackets =
            self.brackets.iter().map(|list| list.iter().map(one).collect()).collect::<Result<_, String>>()?;
        Ok(Selection { name: self.name.clone(), brackets })
    }
}

/// The value of an index.
pub fn number(look: &Look<'_>, e: &Expr) -> Result<i64, String> {
    match condition::evaluate(look, e)? {
        Scalar::Int(i) => Ok(i64::try_from(i).unwrap_or(i64::MAX)),
        other => Err(format!("an index is a whole number, and this is {other}")),
    }
}

/// Where the bracket ends that begins before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' if depth == 0 => return Some(at),
            ']' | ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parts between separators that are in no brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        c == separator && depth == 0
    })
    .collect()
}

fn index(part: &str, whole: &str) -> Result<Index<Expr>, String> {
    let expr = |text: &str| match condition::parse(text.trim()) {
        Ok(e) => Ok(e),
        Err(_) => {
            Err(format!("`{}` in `{whole}` is no index: those are `3`, `s`, `0:4`, `:4`, `2:` and `:`", text.trim()))
        }
    };
    let end = |s: &str| if s.trim().is_empty() { Ok(None) } else { expr(s).map(Some) };
    match split(part, ':')[..] {
        ["_"] => Ok(Index::Range(None, None)),
        // `0..4`, as the language has it.
        [one] => expr(one).map(|e| match *e.kind {
            ExprKind::Range(lo, hi) => Index::Range(Some(lo), Some(hi)),
            kind => Index::At(Expr { kind: Box::new(kind), ..e }),
        }),
        [lo, hi] => Ok(Index::Range(end(lo)?, end(hi)?)),
        _ => Err(format!("`{part}` in `{whole}` has a step; a range is `LO:HI`")),
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
        let from_end = |i: i64| if i < 0 { i.saturating_add(length as i64) } else { i };
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
    use ptoc_syntax::ast::ExprKind;

    /// The indices of a slice that are numbers.
    fn of(text: &str) -> (String, Vec<Vec<Index>>) {
        let slice = Slice::parse(text).unwrap().unwrap();
        let value = |e: Expr| match *e.kind {
            ExprKind::Int(n) => n as i64,
            other => panic!("{other:?}"),
        };
        let one = |i| match i {
            Index::At(e) => Index::At(value(e)),
            Index::Range(lo, hi) => Index::Range(lo.map(value), hi.map(value)),
        };
        (slice.name, slice.brackets.into_iter().map(|list| list.into_iter().map(one).collect()).collect())
    }

    #[test]
    fn slices() {
        let all = || Index::Range(None, None);
        assert_eq!(of("x"), ("x".into(), vec![]));
        assert_eq!(of("x[0:4, 3,:]").1, [vec![Index::Range(Some(0), Some(4)), Index::At(3), all()]]);
        assert_eq!(of("p[1] [_, 2:]").1, [vec![Index::At(1)], vec![all(), Index::Range(Some(2), None)]]);
        assert_eq!(Slice::parse("k.start").unwrap(), None);
        assert_eq!(Slice::parse("t[0, 1] + 1").unwrap(), None);
        assert_eq!(Slice::parse("a1[s].valid(m, k)").unwrap(), None);
        for text in ["p[k.index % 2]", "p[(s + 1) % 2][s:s + 2, t[0, 1]]", "p[1 - s]"] {
            assert!(Slice::parse(text).unwrap().is_some(), "{text}");
        }
        for text in ["x[0", "p[s][0:2", "p[t[0]", "x[0:4:2]", "x[1 +]", "x[]", "x[0,]"] {
            assert!(Slice::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn picking() {
        let all = Index::Range(None, None);
        assert_eq!(pick(&[Index::At(-1), all], &[4, 3], "x"), Ok(vec![(3..4, false), (0..3, true)]));
        assert_eq!(pick(&[Index::Range(None, Some(-1))], &[4, 3], "x"), Ok(vec![(0..3, true), (0..3, true)]));
        assert!(pick(&[Index::Range(Some(2), Some(5))], &[4], "x").unwrap_err().contains("2:5 is outside of axis 0"));
        assert!(pick(&[Index::At(4)], &[4], "x").is_err());
        assert!(pick(&[Index::At(i64::MIN)], &[4], "x").is_err());
        assert!(pick(&[Index::At(0), Index::At(0)], &[4], "x").is_err());
    }
}
