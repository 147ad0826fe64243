//! Tiles that are other views of a tile's bytes, and may be copies of them: nothing is written to one and then read
//! from the other.

use crate::lexer::Word;
use crate::ops::Form;
use crate::tree::{Op, Region};
use rustc_hash::{FxHashMap, FxHashSet};

/// Operations that give another view of a tile's bytes.
const VIEWS: [&str; 2] = ["pto.treshape", "pto.bitcast"];

/// The results of `treshape` and `bitcast` that may be copies.
pub(super) fn unseen_copies(body: &Region) -> FxHashSet<Word> {
    let mut sources = FxHashMap::default();
    edges(body, &mut sources);
    let mut found = FxHashSet::default();
    if !sources.is_empty() {
        region(body, &sources, &mut found);
    }
    found
}

/// What each view is a view of.
fn edges(region: &Region, sources: &mut FxHashMap<Word, Word>) {
    for op in &region.ops {
        if let Some((result, src)) = view(op) {
            sources.insert(result.clone(), src.clone());
        }
        op.regions.iter().for_each(|r| edges(r, sources));
    }
}

fn view(op: &Op) -> Option<(&Word, &Word)> {
    let src = op.operand("src").filter(|_| VIEWS.contains(&op.row.name))?;
    Some((&op.results.first()?.name, &src.value.name))
}

/// The names that a tile and what it is a view of go by, the tile first.
fn chain<'s>(of: &'s Word, sources: &'s FxHashMap<Word, Word>) -> Vec<&'s Word> {
    let mut names = vec![of];
    while let Some(source) = names.last().and_then(|n| sources.get(*n)).filter(|_| names.len() <= sources.len()) {
        names.push(source);
    }
    names
}

fn region(of: &Region, sources: &FxHashMap<Word, Word>, found: &mut FxHashSet<Word>) {
    for (at, op) in of.ops.iter().enumerate() {
        if let Some((result, src)) = view(op) {
            let root = chain(src, sources).pop().unwrap_or(src);
            let all: FxHashSet<&Word> =
                sources.keys().filter(|n| chain(n, sources).contains(&root)).chain([root]).collect();
            let (new, old): (FxHashSet<&Word>, FxHashSet<&Word>) =
                all.into_iter().partition(|n| chain(n, sources).contains(&result));
            let behind = &of.ops[at + 1..];
            // A loop comes back to what stands in front: a tile that lives longer than the block would show a write.
            let own = of.ops[..at].iter().any(|op| op.results.iter().any(|r| r.name == *root));
            let written = any(behind, &|op| writes(op, &new));
            let read = any(behind, &|op| op.operands.iter().any(|o| old.contains(&o.value.name)));
            if !any(behind, &|op| writes(op, &old)) && (!written || own && !read) {
                found.insert(result.clone());
            }
        }
        op.regions.iter().for_each(|r| region(r, sources, found));
    }
}

fn any(ops: &[Op], f: &dyn Fn(&Op) -> bool) -> bool {
    ops.iter().any(|op| f(op) || op.regions.iter().any(|r| any(&r.ops, f)))
}

/// Whether the operation may write to one of the tiles: it is a destination, storage to work in, or gets another name.
fn writes(op: &Op, tiles: &FxHashSet<&Word>) -> bool {
    let renamed = (!op.results.is_empty() && op.row.name != "pto.tgetval" || op.row.name.starts_with("scf."))
        && !VIEWS.contains(&op.row.name);
    op.operands.iter().filter(|o| tiles.contains(&o.value.name)).any(|o| match &op.row.form {
        Form::Dps(dps) => o.slot == "tmp" || dps.outs.iter().any(|s| s.name == o.slot),
        _ => renamed || op.row.name == "pto.set_validshape",
    })
}
