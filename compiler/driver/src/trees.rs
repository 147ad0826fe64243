//! Trees of texts that were parsed: of one text there is one tree, as long as it has the same number among the files of
//! its unit.

use ptoc_diagnostics::FileId;
use ptoc_names::Tree;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many texts are kept, and how many bytes they have together.
const TEXTS: usize = 256;
const BYTES: usize = 4 << 20;

/// Trees of the texts that were asked for last, for whoever has a copy of this.
#[derive(Clone, Debug, Default)]
pub struct Trees(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// What was asked for last comes first.
    all: VecDeque<One>,
    bytes: usize,
    parsed: u64,
}

#[derive(Debug)]
struct One {
    file: FileId,
    text: Box<str>,
    tree: Arc<Tree>,
}

impl Trees {
    /// The tree of a text, which `parse` makes. A file of one number in its unit is always parsed by the same function.
    pub fn tree(&self, file: FileId, text: &str, parse: fn(FileId, &str) -> Tree) -> Arc<Tree> {
        if let Some(tree) = self.with(|kept| kept.find(file, text)) {
            return tree;
        }
        // Others need not wait for this.
        let tree = Arc::new(parse(file, text));
        self.with(|kept| kept.put(One { file, text: text.into(), tree: Arc::clone(&tree) }));
        tree
    }

    /// How many texts were parsed, for tests.
    pub fn parsed(&self) -> u64 {
        self.with(|kept| kept.parsed)
    }

    fn with<R>(&self, f: impl FnOnce(&mut Kept) -> R) -> R {
        // What a panic elsewhere has left is whole: an entry is put in or taken out in one step.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn find(&mut self, file: FileId, text: &str) -> Option<Arc<Tree>> {
        let at = self.all.iter().position(|one| one.file == file && *one.text == *text)?;
        let one = self.all.remove(at)?;
        let tree = Arc::clone(&one.tree);
        self.all.push_front(one);
        Some(tree)
    }

    fn put(&mut self, one: One) {
        self.parsed += 1;
        self.bytes += one.text.len();
        self.all.push_front(one);
        while self.all.len() > 1 && (self.all.len() > TEXTS || self.bytes > BYTES) {
            self.bytes -= self.all.pop_back().map_or(0, |gone| gone.text.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_has_one_tree() {
        let trees = Trees::default();
        let first = trees.tree(FileId(1), "const A = 1;", Tree::new);
        assert!(Arc::ptr_eq(&first, &trees.clone().tree(FileId(1), "const A = 1;", Tree::new)));
        assert_eq!(trees.parsed(), 1);
        // Another text, and the same one as another file, whose places are others.
        assert_ne!(trees.tree(FileId(1), "const A = 2;", Tree::new).ast, first.ast);
        assert_eq!(trees.tree(FileId(2), "const A = 1;", Tree::new).ast.items[0].span.file, FileId(2));
        assert_eq!(trees.parsed(), 3);
    }

    #[test]
    fn what_nobody_asks_for_is_dropped() {
        let trees = Trees::default();
        let large = " ".repeat(BYTES / 4);
        trees.tree(FileId(0), "const A = 1;", Tree::new);
        for n in 0..6 {
            trees.tree(FileId(0), "const A = 1;", Tree::new);
            trees.tree(FileId(0), &format!("{large}{n}"), Tree::new);
        }
        assert_eq!(trees.parsed(), 7);
        trees.tree(FileId(0), &format!("{large}0"), Tree::new);
        assert_eq!(trees.parsed(), 8);
        assert!(
            trees
                .with(|kept| kept.bytes <= BYTES && kept.bytes == kept.all.iter().map(|o| o.text.len()).sum::<usize>())
        );
        (0..2 * TEXTS).for_each(|n| drop(trees.tree(FileId(0), &format!("const A = {n};"), Tree::new)));
        assert!(
            trees
                .with(|kept| kept.all.len() == TEXTS
                    && kept.bytes == kept.all.iter().map(|o| o.text.len()).sum::<usize>())
        );
    }
}
