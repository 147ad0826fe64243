//! Patterns by which a block is handed out to threads: which element is which value of which thread. They are part of a
//! window's type, so that a copy between two patterns is seen before it moves elements to wrong places.

use ptoc_layout::{Int, Layout, Points};
use std::fmt;

/// How the elements of a block are handed out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ThreadPattern {
    /// `local_partition`: the threads, and where they lie along each mode of the block.
    Threads {
        /// As written.
        threads: Layout,
        /// Without the modes that a projection leaves out.
        modes: Vec<Layout>,
    },
    /// `tiled_copy_partition`: each thread has several neighbours.
    Values {
        /// The threads.
        threads: Layout,
        /// What one thread has.
        values: Layout,
        /// (thread, value) -> element of the tile, column by column.
        tv: Layout,
        /// The tile's extents.
        tile: Vec<Int>,
    },
}

/// What is known of two patterns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Compared {
    /// Each thread holds the same elements.
    Same,
    /// The first element that is elsewhere.
    Astray(Astray),
    /// Extents that are not known decide.
    Unknown,
}

/// A value of a thread that is one element by one pattern, and another by the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Astray {
    /// The thread.
    pub thread: i64,
    /// The element by the first pattern; `None` if that has no such thread or value.
    pub first: Option<Vec<i64>>,
    /// By the second.
    pub second: Option<Vec<i64>>,
}

/// (thread, value) pairs that are looked at: far beyond any block of threads.
const MOST: i64 = 1 << 20;

/// A pattern whose extents are constants.
struct Held<'a> {
    pattern: &'a ThreadPattern,
    threads: i64,
    values: i64,
    tile: Vec<i64>,
    points: Option<Points>,
}

impl ThreadPattern {
    /// The threads as written.
    pub fn threads(&self) -> &Layout {
        match self {
            ThreadPattern::Threads { threads, .. } | ThreadPattern::Values { threads, .. } => threads,
        }
    }

    /// The number of threads, if it is constant.
    pub fn count(&self) -> Option<i64> {
        self.threads().size().ok()?.as_const()
    }

    /// The pattern of the transposed block.
    pub fn transposed(&self) -> Option<ThreadPattern> {
        match self {
            ThreadPattern::Threads { threads, modes } if modes.len() == 2 => {
                let modes: Vec<Layout> = modes.iter().rev().cloned().collect();
                let threads = if threads.rank() == 2 { Layout::of_modes(modes.clone()) } else { threads.clone() };
                Some(ThreadPattern::Threads { threads, modes })
            }
            _ => None,
        }
    }

    /// Whether each thread holds the same elements by both.
    pub fn compare(&self, other: &ThreadPattern) -> Compared {
        if self == other {
            return Compared::Same;
        }
        let (Some(a), Some(b)) = (self.held(), other.held()) else { return Compared::Unknown };
        match first_astray(&a, &b) {
            Some(astray) => Compared::Astray(astray),
            None => Compared::Same,
        }
    }

    /// The extents and strides that decide, in the order in which they stand.
    pub fn numbers(&self) -> Vec<Int> {
        let layouts: Vec<&Layout> = match self {
            ThreadPattern::Threads { modes, .. } => modes.iter().collect(),
            ThreadPattern::Values { threads, values, .. } => vec![threads, values],
        };
        layouts.iter().flat_map(|l| l.leaves()).flat_map(|(n, d)| [n.clone(), d.scale.clone()]).collect()
    }

    /// Whether the patterns have the same nesting, so that their numbers can be compared one by one.
    pub fn congruent(&self, other: &ThreadPattern) -> bool {
        match (self, other) {
            (ThreadPattern::Threads { modes: a, .. }, ThreadPattern::Threads { modes: b, .. }) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.shape().congruent(b.shape()))
            }
            (
                ThreadPattern::Values { threads: a, values: u, .. },
                ThreadPattern::Values { threads: b, values: v, .. },
            ) => a.shape().congruent(b.shape()) && u.shape().congruent(v.shape()),
            _ => false,
        }
    }

    fn held(&self) -> Option<Held<'_>> {
        let threads = self.count()?;
        let extent = |n: &Int| n.as_const().filter(|n| *n > 0);
        let (values, tile, points) = match self {
            ThreadPattern::Threads { modes, .. } => {
                let tile = modes.iter().map(|m| extent(&m.size().ok()?)).collect::<Option<Vec<_>>>()?;
                (1, tile, None)
            }
            ThreadPattern::Values { values, tv, tile, .. } => {
                let points = Points::of_layout(tv)?;
                (extent(&values.size().ok()?)?, tile.iter().map(extent).collect::<Option<_>>()?, Some(points))
            }
        };
        let few = threads.checked_mul(values).is_some_and(|n| n <= MOST);
        few.then_some(Held { pattern: self, threads, values, tile, points })
    }
}

impl Held<'_> {
    /// The element that is this value of this thread in the first tile.
    fn at(&self, thread: i64, value: i64) -> Option<Vec<i64>> {
        if thread >= self.threads || value >= self.values {
            return None;
        }
        match (self.pattern, &self.points) {
            (ThreadPattern::Threads { modes, .. }, _) => modes.iter().map(|m| along(m, thread)).collect(),
            (_, Some(points)) => {
                let mut rest = points.offset_at(value.checked_mul(self.threads)?.checked_add(thread)?)?;
                let digits = self.tile.iter().map(|n| {
                    let digit = rest % n;
                    rest /= n;
                    digit
                });
                Some(digits.collect())
            }
            _ => None,
        }
    }
}

/// Where a thread lies along one mode: `(thread / stride) % extent` of each leaf, the first fastest.
fn along(mode: &Layout, thread: i64) -> Option<i64> {
    let (mut at, mut step) = (0i64, 1i64);
    for (n, d) in mode.leaves() {
        let (n, d) = (n.as_const()?, d.scale.as_const()?);
        if d != 0 && n != 0 {
            at = at.checked_add((thread / d % n).checked_mul(step)?)?;
        }
        step = step.checked_mul(n)?;
    }
    Some(at)
}

/// Thread by thread and value by value, each in the first tile and in the next one along each mode.
fn first_astray(a: &Held, b: &Held) -> Option<Astray> {
    for thread in 0..a.threads.max(b.threads) {
        for value in 0..a.values.max(b.values) {
            let (first, second) = (a.at(thread, value), b.at(thread, value));
            if first != second {
                return Some(Astray { thread, first, second });
            }
        }
        // A further element of the thread is a tile further on.
        for mode in 0..a.tile.len().max(b.tile.len()) {
            let next = |h: &Held| {
                let mut at = h.at(thread, 0)?;
                *at.get_mut(mode)? += h.tile.get(mode)?;
                Some(at)
            };
            let (first, second) = (next(a), next(b));
            if first != second {
                return Some(Astray { thread, first, second });
            }
        }
    }
    None
}

impl fmt::Display for ThreadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadPattern::Threads { threads, .. } => write!(f, "threads {threads}"),
            ThreadPattern::Values { threads, values, .. } => write!(f, "threads {threads} with values {values}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_layout::{IntTuple, Stride};

    fn layout(shape: &[i64], stride: &[i64]) -> Layout {
        let stride = IntTuple::flat(stride).map(&mut |n| Stride::int(n.clone()));
        Layout::new(IntTuple::flat(shape), stride).expect("a layout")
    }

    fn pattern(shape: &[i64], stride: &[i64]) -> ThreadPattern {
        let threads = layout(shape, stride);
        ThreadPattern::Threads { modes: threads.modes(), threads }
    }

    #[test]
    fn the_first_thread_with_another_element_is_found() {
        let (a, b) = (pattern(&[8, 4], &[4, 1]), pattern(&[8, 4], &[1, 8]));
        let astray = Astray { thread: 1, first: Some(vec![0, 1]), second: Some(vec![1, 0]) };
        assert_eq!(a.compare(&b), Compared::Astray(astray));
        assert_eq!(a.compare(&a), Compared::Same);
        assert_eq!(b.transposed().expect("two modes").transposed(), Some(b));
    }

    #[test]
    fn another_tile_is_another_second_element() {
        let (a, b) = (pattern(&[8, 4], &[1, 8]), pattern(&[8, 8], &[1, 8]));
        let astray = Astray { thread: 0, first: Some(vec![0, 4]), second: Some(vec![0, 8]) };
        assert_eq!(a.compare(&b), Compared::Astray(astray));
    }

    #[test]
    fn one_function_in_two_spellings_is_one_pattern() {
        let nested = Layout::of_modes(vec![layout(&[2, 4], &[1, 2]), layout(&[4], &[8])]);
        let nested = ThreadPattern::Threads { modes: nested.modes(), threads: nested };
        assert_eq!(nested.compare(&pattern(&[8, 4], &[1, 8])), Compared::Same);
    }
}
