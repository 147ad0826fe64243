//! Arrays as text, as numpy shows them: brackets, aligned columns, the middle of long axes left out.

use ptoc_driver::preview::number;
use ptoc_tensor::DType;

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Its bits.
    Bits(u64),
    /// Nothing has written it.
    Unwritten,
    /// Its bytes are of something else.
    Foreign,
    /// There is none: excluded by a bound or a table.
    None,
}

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Columns up to which a row is shown whole.
    pub cols: usize,
    /// Indices up to which any other axis is shown whole.
    pub rows: usize,
}

impl Limits {
    /// For a whole tile or tensor.
    pub const GLANCE: Limits = Limits { cols: 10, rows: 10 };
    /// For a slice that was asked for.
    pub const SLICE: Limits = Limits { cols: 32, rows: 64 };
}

/// First and last indices that stay of an axis that is too long.
const EDGE: usize = 3;

/// An element by itself.
pub fn element(dtype: DType, cell: &Cell) -> String {
    match cell {
        Cell::Bits(bits) => number(dtype, *bits),
        Cell::Unwritten => "·".into(),
        Cell::Foreign => "?".into(),
        Cell::None => "-".into(),
    }
}

/// Indices of an axis that are shown, `None` for the gap.
fn shown(len: usize, limit: usize) -> Vec<Option<usize>> {
    if len <= limit.max(2 * EDGE) {
        return (0..len).map(Some).collect();
    }
    (0..EDGE).map(Some).chain([None]).chain((len - EDGE..len).map(Some)).collect()
}

/// An array of that shape; `get` is asked for what is shown only.
pub fn array(dtype: DType, shape: &[usize], limits: Limits, get: &dyn Fn(&[usize]) -> Cell) -> String {
    if shape.contains(&0) {
        return "[]".into();
    }
    let tree = collect(dtype, shape, limits, get, &mut Vec::new());
    tree.lines(tree.width()).join("\n")
}

/// What is shown of an array.
enum Tree {
    Element(String),
    /// `None` is the gap.
    Axis(Vec<Option<Tree>>),
}

impl Tree {
    /// Characters of the longest number.
    fn width(&self) -> usize {
        match self {
            Tree::Element(text) => text.chars().count(),
            Tree::Axis(list) => list.iter().flatten().map(Tree::width).max().unwrap_or(0),
        }
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let list = match self {
            Tree::Element(text) => return vec![format!("{}{text}", " ".repeat(width - text.chars().count()))],
            Tree::Axis(list) => list,
        };
        let gap = || vec!["...".to_owned()];
        let parts = list.iter().map(|part| part.as_ref().map_or_else(gap, |tree| tree.lines(width)));
        if list.iter().flatten().all(|tree| matches!(tree, Tree::Element(_))) {
            return vec![format!("[{}]", parts.flatten().collect::<Vec<_>>().join(" "))];
        }
        let mut lines: Vec<String> = parts.flatten().map(|line| format!(" {line}")).collect();
        if let Some(first) = lines.first_mut() {
            first.replace_range(..1, "[");
        }
        if let Some(last) = lines.last_mut() {
            last.push(']');
        }
        lines
    }
}

fn collect(dtype: DType, shape: &[usize], limits: Limits, get: &dyn Fn(&[usize]) -> Cell, at: &mut Vec<usize>) -> Tree {
    let axis = at.len();
    let Some(&len) = shape.get(axis) else { return Tree::Element(element(dtype, &get(at))) };
    let limit = if axis + 1 == shape.len() { limits.cols } else { limits.rows };
    let indices = shown(len, limit);
    let mut list = Vec::with_capacity(indices.len());
    for i in indices {
        list.push(i.map(|i| {
            at.push(i);
            let part = collect(dtype, shape, limits, get, at);
            at.pop();
            part
        }));
    }
    Tree::Axis(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(shape: &[usize]) -> String {
        let get = |at: &[usize]| {
            let n = at.iter().zip(shape).fold(0, |n, (&i, &s)| n * s + i);
            Cell::Bits(n as u64)
        };
        array(DType::I32, shape, Limits::GLANCE, &get)
    }

    #[test]
    fn arrays_look_like_those_of_numpy() {
        assert_eq!(ints(&[]), "0");
        assert_eq!(ints(&[3]), "[0 1 2]");
        assert_eq!(ints(&[2, 6]), "[[ 0  1  2  3  4  5]\n [ 6  7  8  9 10 11]]");
        assert_eq!(ints(&[2, 2, 2]), "[[[0 1]\n  [2 3]]\n [[4 5]\n  [6 7]]]");
        assert_eq!(ints(&[0, 4]), "[]");
        assert_eq!(ints(&[1, 12]), "[[ 0  1  2 ...  9 10 11]]");
        let tall = "[[ 0]\n [ 1]\n [ 2]\n ...\n [ 9]\n [10]\n [11]]";
        assert_eq!(ints(&[12, 1]), tall);
        assert_eq!(ints(&[1, 11, 1]), "[[[ 0]\n  [ 1]\n  [ 2]\n  ...\n  [ 8]\n  [ 9]\n  [10]]]");
        assert_eq!(ints(&[11, 1, 2]), "[[[ 0  1]]\n [[ 2  3]]\n [[ 4  5]]\n ...\n [[16 17]]\n [[18 19]]\n [[20 21]]]");
    }

    #[test]
    fn what_is_no_number_has_a_sign() {
        let cells = [Cell::Bits(0x3e00), Cell::Unwritten, Cell::Foreign, Cell::None];
        let text = array(DType::F16, &[4], Limits::GLANCE, &|at| cells[at[0]].clone());
        assert_eq!(text, "[1.5   ·   ?   -]");
        assert_eq!(number(DType::F32, u64::from((1f32 / 3.0).to_bits())), "0.333333");
        assert_eq!(number(DType::BF16, 0x3f80), "1.0");
        assert_eq!(number(DType::F32, u64::from(1.25e9f32.to_bits())), "1.2500e9");
    }
}
