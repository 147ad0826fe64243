//! The choices that a program is made of. Fewer and smaller ones make a smaller program: so they shrink.

use proptest::prelude::*;

/// A choice, with the choices below it.
#[derive(Clone, Debug)]
pub struct Gene {
    pub tag: u16,
    pub kids: Vec<Gene>,
}

/// All choices of a program and its launch.
#[derive(Clone, Debug)]
pub struct Genome {
    pub target: &'static str,
    /// Sizes of the dimensions M, N and K.
    pub sizes: (u8, u8, u8),
    /// Picks of the sizes of blocks.
    pub blocks: (u8, u8, u8),
    pub seed: u16,
    pub tiles: Vec<u16>,
    pub stmts: Vec<Gene>,
}

fn gene() -> impl Strategy<Value = Gene> {
    let leaf = || any::<u16>().prop_map(|tag| Gene { tag, kids: Vec::new() });
    let mut level = leaf().boxed();
    for _ in 0..5 {
        let kids = (any::<u16>(), proptest::collection::vec(level, 1..5)).prop_map(|(tag, kids)| Gene { tag, kids });
        level = prop_oneof![1 => leaf(), 3 => kids].boxed();
    }
    level
}

pub fn genome() -> impl Strategy<Value = Genome> {
    let size = || prop_oneof![1 => Just(0u8), 3 => Just(1), 12 => 1u8..36, 2 => 36u8..70];
    let parts = (
        prop_oneof![4 => Just("a2a3"), 4 => Just("a5"), 1 => Just("kirin9030"), 1 => Just("kirinx90")],
        (size(), size(), size()),
        any::<(u8, u8, u8)>(),
        any::<u16>(),
        proptest::collection::vec(any::<u16>(), 1..5),
        proptest::collection::vec(gene(), 1..8),
    );
    parts.prop_map(|(target, sizes, blocks, seed, tiles, stmts)| Genome { target, sizes, blocks, seed, tiles, stmts })
}

const NOTHING: &Gene = &Gene { tag: 0, kids: Vec::new() };

impl Gene {
    pub fn kid(&self, i: usize) -> &Gene {
        self.kids.get(i).unwrap_or(NOTHING)
    }

    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[usize::from(self.tag) % from.len()]
    }

    /// An independent second choice.
    pub fn pick_more<T: Copy>(&self, from: &[T]) -> T {
        from[usize::from(self.tag / 61) % from.len()]
    }
}
