//! Columns. Where the author has put more blanks than one before a token, and the token of a neighbouring line begins
//! in the same column, the two are aligned; so are all that hang together so. In the result they begin in one column
//! again.

use super::context::Context;
use super::pieces::Piece;
use super::spacing::blanks;
use crate::Tok;
use std::collections::HashMap;

/// Pieces that begin in one column, by that column.
pub(super) fn groups(pieces: &[Piece<'_>], contexts: &[Context]) -> Vec<Vec<usize>> {
    let inside = |i: usize| {
        let apart = i > 0 && !pieces[i].begins_line() && !pieces[i].tok.is_comment();
        // One whose line break is taken away has no column there.
        apart && pieces[i].line == pieces[i - 1].line && pieces[i].gap > 0 && blanks(pieces, contexts, i) > 0
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // For pieces of the line before, the group that each is in.
    let mut open: HashMap<usize, usize> = HashMap::new();
    let mut at = 0;
    // The first piece of the line before in each column.
    let mut above: HashMap<usize, usize> = HashMap::new();
    while at < pieces.len() {
        let end = (at + 1..pieces.len()).find(|&i| pieces[i].begins_line()).unwrap_or(pieces.len());
        let mut still = HashMap::new();
        for i in (at..end).filter(|&i| inside(i)) {
            // Lines that are neighbours here and were so in the source.
            let Some(&j) = above.get(&pieces[i].column).filter(|&&j| pieces[i].line == pieces[j].line + 1) else {
                continue;
            };
            let wide = |n: usize| pieces[n].gap > blanks(pieces, contexts, n);
            if !alike(pieces[i].tok, pieces[j].tok) || !(wide(i) || wide(j)) {
                continue;
            }
            let group = open.remove(&j).unwrap_or_else(|| {
                groups.push(vec![j]);
                groups.len() - 1
            });
            groups[group].push(i);
            still.insert(i, group);
        }
        open = still;
        // Of several lines that are one now, the last.
        let number = pieces[end - 1].line;
        above =
            (at..end).rev().filter(|&i| inside(i) && pieces[i].line == number).map(|i| (pieces[i].column, i)).collect();
        at = end;
    }
    groups.sort_by_key(|g| pieces[g[0]].column);
    groups
}

/// Words are aligned with words, and marks with the same marks.
fn alike(a: Tok, b: Tok) -> bool {
    a == b || (a.mark().is_none() && b.mark().is_none())
}

/// Computes the padding for the columns that pieces have with the padding so far. Returns the groups that get another.
pub(super) fn pad(groups: &[Vec<usize>], pieces: &[Piece<'_>], columns: &[usize], pads: &mut [usize]) -> Vec<usize> {
    // For each piece its line.
    let lines: Vec<usize> = pieces
        .iter()
        .scan(0, |line, piece| {
            *line += usize::from(piece.begins_line());
            Some(*line)
        })
        .collect();
    let mut changed = Vec::new();
    // How far the pieces of a line have moved, for those behind them.
    let mut moved = vec![0isize; lines.last().map_or(0, |n| n + 1)];
    for (number, group) in groups.iter().enumerate() {
        // In the order of columns, so that what is to the left has moved already.
        let natural =
            |i: usize, pads: &[usize], moved: &[isize]| columns[i] as isize - pads[i] as isize + moved[lines[i]];
        let column = group.iter().map(|&i| natural(i, pads, &moved)).max().unwrap_or(0);
        let before = changed.len();
        for &i in group {
            let pad = (column - natural(i, pads, &moved)).max(0) as usize;
            moved[lines[i]] += pad as isize - pads[i] as isize;
            if pad != pads[i] && changed.len() == before {
                changed.push(number);
            }
            pads[i] = pad;
        }
    }
    changed
}
