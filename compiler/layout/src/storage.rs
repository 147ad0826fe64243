//! Where the elements of an array lie in memory: the layout of a tensor when a launch has made its numbers known, and
//! moving an array into such a buffer and out of it.
//!
//! The array is logical: C order, one axis for each top-level mode of the layout; inside a mode the index counts
//! colexicographically. The buffer has [`Storage::len`] elements; those that no coordinate reaches belong to nobody.

use crate::{Atom, AtomKind, Int, Layout, Swizzle};
use std::collections::HashSet;
use std::fmt;

/// A length that no buffer has: 2^40 elements.
const MOST: i128 = 1 << 40;

/// Extents, strides and swizzle, all known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Storage {
    /// Extent and stride of each leaf, mode by mode, the first of a mode fastest.
    modes: Vec<Vec<(u64, u64)>>,
    swizzle: Option<Swizzle>,
    offset: u64,
    shape: Vec<u64>,
    size: u64,
    len: u64,
}

/// Why a layout stores no array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StorageError {
    /// A number is not known (a symbol without value, or a stride that is a coordinate).
    Unknown(String),
    /// An extent below 0.
    NegativeExtent {
        /// Which mode.
        mode: usize,
        /// The extent.
        extent: i128,
    },
    /// A stride below 0 of an axis that is walked.
    NegativeStride {
        /// Which mode.
        mode: usize,
        /// The stride.
        stride: i128,
    },
    /// The first element would lie before the buffer.
    NegativeOffset(i128),
    /// More elements than any memory has.
    TooLarge {
        /// What there is too much of: "elements", "places".
        what: &'static str,
        /// How many, if that can be written down.
        count: Option<i128>,
    },
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Unknown(what) => write!(f, "{what} is not known"),
            StorageError::NegativeExtent { mode, extent } => write!(f, "mode {mode} has the extent {extent}"),
            StorageError::NegativeStride { mode, stride } => write!(f, "mode {mode} has the stride {stride}"),
            StorageError::NegativeOffset(n) => write!(f, "the first element lies at {n}"),
            StorageError::TooLarge { what, count: Some(n) } => write!(f, "{n} {what} are needed"),
            StorageError::TooLarge { what, count: None } => write!(f, "more {what} are needed than can be counted"),
        }
    }
}

/// Two coordinates of one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The first.
    pub first: Vec<u64>,
    /// The second.
    pub second: Vec<u64>,
    /// Where both lie.
    pub place: u64,
}

/// It would take longer than was allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManySteps;

/// The value of an integer, given those of its symbols by their `id`.
pub fn evaluate(n: &Int, number: &mut dyn FnMut(u64) -> Option<i64>) -> Option<i128> {
    let p = match n {
        Int::Const(c) => return Some(i128::from(*c)),
        Int::Sym(p) => p,
    };
    let mut sum = 0i128;
    for (m, c) in p.terms() {
        let mut product = i128::from(c);
        for (atom, power) in m {
            let x = atom_value(atom, number)?;
            for _ in 0..*power {
                product = product.checked_mul(x)?;
            }
        }
        sum = sum.checked_add(product)?;
    }
    Some(sum)
}

fn atom_value(atom: &Atom, number: &mut dyn FnMut(u64) -> Option<i64>) -> Option<i128> {
    let mut quotient = |a: &Int, b: &Int, up: bool| {
        let (a, b) = (evaluate(a, number)?, evaluate(b, number)?);
        let above = if up { b.checked_sub(1)? } else { 0 };
        (b > 0).then(|| a.checked_add(above).map(|n| n.div_euclid(b))).flatten()
    };
    match &atom.kind {
        AtomKind::Var { id, .. } => number(*id).map(i128::from),
        AtomKind::CeilDiv(a, b) => quotient(a, b, true),
        AtomKind::FloorDiv(a, b) => quotient(a, b, false),
    }
}

impl Storage {
    /// Elements at `swizzle(offset + layout(coordinate))`; `number` gives the symbols by their `id`.
    pub fn new(
        layout: &Layout,
        swizzle: Option<Swizzle>,
        offset: &Int,
        number: &mut dyn FnMut(u64) -> Option<i64>,
    ) -> Result<Storage, StorageError> {
        let mut modes: Vec<Vec<(i128, i128)>> = Vec::new();
        for mode in layout.modes() {
            let mut leaves = Vec::new();
            for (s, d) in mode.leaves() {
                let n = evaluate(s, number).ok_or_else(|| StorageError::Unknown(format!("extent {s}")))?;
                let step = d.as_int().and_then(|d| evaluate(d, number));
                leaves.push((n, step.ok_or_else(|| StorageError::Unknown(format!("stride {d}")))?));
            }
            modes.push(leaves);
        }
        let offset = evaluate(offset, number).ok_or_else(|| StorageError::Unknown(format!("offset {offset}")))?;
        Storage::of_numbers(&modes, swizzle, offset)
    }

    /// Extent and stride of each leaf, mode by mode, the first of a mode fastest.
    pub fn of_numbers(
        modes: &[Vec<(i128, i128)>],
        swizzle: Option<Swizzle>,
        offset: i128,
    ) -> Result<Storage, StorageError> {
        let leaves = || modes.iter().enumerate().flat_map(|(k, m)| m.iter().map(move |l| (k, l.0, l.1)));
        for (mode, extent, _) in leaves() {
            if extent < 0 {
                return Err(StorageError::NegativeExtent { mode, extent });
            }
        }
        let empty = leaves().any(|(_, n, _)| n == 0);
        let too_large = |what, count| StorageError::TooLarge { what, count };
        let (mut size, mut last) = (Some(1i128), Some(0i128));
        for (mode, extent, stride) in leaves() {
            // What is not walked has a stride of no consequence.
            if empty || extent == 1 {
                continue;
            }
            if stride < 0 {
                return Err(StorageError::NegativeStride { mode, stride });
            }
            size = size.and_then(|n| n.checked_mul(extent));
            last = last.zip((extent - 1).checked_mul(stride)).and_then(|(n, far)| n.checked_add(far));
        }
        if offset < 0 {
            return Err(StorageError::NegativeOffset(offset));
        }
        let size = if empty { 0 } else { size.filter(|n| *n <= MOST).ok_or_else(|| too_large("elements", size))? };
        let end = last.and_then(|n| n.checked_add(offset)?.checked_add(1));
        let end = match (swizzle.map(Swizzle::block), end) {
            (Some(block), Some(n)) => {
                let block = i128::from(block);
                n.checked_add(block - 1).map(|n| n - n % block)
            }
            _ => end,
        };
        let len = if empty { 0 } else { end.filter(|n| *n <= MOST).ok_or_else(|| too_large("places", end))? };
        let mut shape = Vec::new();
        for m in modes {
            let n = m.iter().try_fold(1i128, |n, l| n.checked_mul(l.0));
            shape.push(n.and_then(|n| u64::try_from(n).ok()).ok_or_else(|| too_large("elements", n))?);
        }
        // Nothing walks an empty array or an axis of one element; all other numbers are below `MOST`.
        let number = |n: i128| u64::try_from(n).unwrap_or(0);
        let leaf = |l: &(i128, i128)| (number(l.0), if empty || l.0 == 1 { 0 } else { number(l.1) });
        let modes = modes.iter().map(|m| m.iter().map(leaf).collect()).collect();
        Ok(Storage { modes, swizzle, offset: number(offset), shape, size: number(size), len: number(len) })
    }

    /// Extents of the array, one for each top-level mode.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Elements of the array.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Elements of the buffer.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The axes as C order walks them, the slowest first; neighbours that are one walk are one axis.
    fn axes(&self) -> Vec<(u64, u64)> {
        let mut out: Vec<(u64, u64)> = Vec::new();
        for &(extent, stride) in self.modes.iter().flat_map(|m| m.iter().rev()) {
            match out.last_mut() {
                _ if extent == 1 => {}
                Some(slow) if slow.1 == stride * extent => *slow = (slow.0 * extent, stride),
                _ => out.push((extent, stride)),
            }
        }
        out
    }

    /// Where it begins, if its elements lie side by side in C order.
    pub fn contiguous(&self) -> Option<u64> {
        let side_by_side = self.swizzle.is_none() && matches!(self.axes()[..], [] | [(_, 1)]);
        side_by_side.then_some(self.offset)
    }

    /// The same elements, that many places further on; `None` beyond what a buffer can have.
    pub fn moved(&self, by: u64) -> Option<Storage> {
        if self.swizzle.is_some() {
            return None;
        }
        let far = |n: u64| n.checked_add(by).filter(|n| i128::from(*n) <= MOST);
        let len = if self.size == 0 { 0 } else { far(self.len)? };
        Some(Storage { offset: far(self.offset)?, len, ..self.clone() })
    }

    /// The distance of neighbours along each mode, if the first element is the buffer's first and each mode is one
    /// walk: what an array in memory can be. Of a mode of one element it is 0.
    pub fn strides(&self) -> Option<Vec<u64>> {
        if self.swizzle.is_some() || self.offset != 0 {
            return None;
        }
        let walk = |mode: &Vec<(u64, u64)>| {
            let mut leaves = mode.iter().filter(|leaf| leaf.0 != 1);
            let Some(&(mut extent, stride)) = leaves.next() else { return Some(0) };
            for &(n, step) in leaves {
                if step != extent * stride {
                    return None;
                }
                extent *= n;
            }
            Some(stride)
        };
        self.modes.iter().map(walk).collect()
    }

    /// Calls `f` with the place and the number of elements of each run in C order. A run is elements side by side.
    pub fn runs(&self, mut f: impl FnMut(usize, usize)) {
        if self.size == 0 {
            return;
        }
        let mut axes = self.axes();
        let count = match (axes.last().copied(), self.swizzle) {
            (Some((n, 1)), None) => {
                axes.pop();
                n
            }
            _ => 1,
        };
        let inner = axes.pop().unwrap_or((1, 0));
        let mut at = vec![0u64; axes.len()];
        let mut base = self.offset;
        loop {
            let mut place = base;
            for _ in 0..inner.0 {
                let here = self.swizzle.map_or(place, |s| s.apply(place as i64) as u64);
                f(here as usize, count as usize);
                place += inner.1;
            }
            let mut carried = true;
            for (i, &(extent, stride)) in at.iter_mut().zip(&axes).rev() {
                *i += 1;
                base += stride;
                if *i < extent {
                    carried = false;
                    break;
                }
                base -= extent * stride;
                *i = 0;
            }
            if carried {
                return;
            }
        }
    }

    /// Lays `array` out in `buffer`. An element has `width` bytes. What is too short is left alone.
    pub fn scatter(&self, width: usize, array: &[u8], buffer: &mut [u8]) {
        let mut next = 0;
        self.runs(|place, count| {
            let (from, to, bytes) = (next, place * width, count * width);
            next += bytes;
            if let (Some(to), Some(from)) = (buffer.get_mut(to..to + bytes), array.get(from..from + bytes)) {
                to.copy_from_slice(from);
            }
        });
    }

    /// The array that lies in `buffer`.
    pub fn gather(&self, width: usize, buffer: &[u8], array: &mut [u8]) {
        let mut next = 0;
        self.runs(|place, count| {
            let (from, to, bytes) = (place * width, next, count * width);
            next += bytes;
            if let (Some(to), Some(from)) = (array.get_mut(to..to + bytes), buffer.get(from..from + bytes)) {
                to.copy_from_slice(from);
            }
        });
    }

    /// Two elements that share a place in the buffer where `array` was laid out, and differ.
    pub fn conflict(&self, width: usize, array: &[u8], buffer: &[u8]) -> Option<Overlap> {
        let same = |number: usize, place: usize, count: usize| {
            let bytes = |at: usize| at * width..(at + count) * width;
            array.get(bytes(number)) == buffer.get(bytes(place))
        };
        let (mut number, mut lost) = (0usize, None);
        self.runs(|place, count| {
            if lost.is_none() && !same(number, place, count) {
                lost = (0..count).find(|k| !same(number + k, place + k, 1)).map(|k| (number + k, place + k));
            }
            number += count;
        });
        let (first, place) = lost?;
        let (mut number, mut last) = (0usize, first);
        self.runs(|at, count| {
            if (at..at + count).contains(&place) {
                last = number + place - at;
            }
            number += count;
        });
        let coordinate = |n: usize| self.unravel(n as u64);
        Some(Overlap { first: coordinate(first), second: coordinate(last), place: place as u64 })
    }

    /// For each place in the buffer, whether it is an element's. `None` if all are.
    pub fn members(&self) -> Option<Vec<bool>> {
        let mut reached = vec![false; self.len as usize];
        self.runs(|place, count| {
            if let Some(places) = reached.get_mut(place..place + count) {
                places.fill(true);
            }
        });
        reached.contains(&false).then_some(reached)
    }

    /// The first coordinate that lies at `place`.
    pub fn coordinate_at(&self, place: u64) -> Option<Vec<u64>> {
        let mut number = 0u64;
        let mut found = None;
        self.runs(|at, count| {
            let (at, count) = (at as u64, count as u64);
            if found.is_none() && (at..at + count).contains(&place) {
                found = Some(number + place - at);
            }
            number += count;
        });
        found.map(|n| self.unravel(n))
    }

    /// The coordinate of element number `n` in C order.
    fn unravel(&self, n: u64) -> Vec<u64> {
        let mut rest = n;
        let mut at: Vec<u64> = Vec::new();
        for &extent in self.shape.iter().rev() {
            at.push(rest % extent.max(1));
            rest /= extent.max(1);
        }
        at.reverse();
        at
    }

    /// Two coordinates that share a place; `None` if each has its own. Nested strides are seen at once, others are
    /// tried, if that takes no more than `most` steps.
    pub fn overlap(&self, most: u64) -> Result<Option<Overlap>, TooManySteps> {
        if self.size <= 1 {
            return Ok(None);
        }
        let mut leaves = self.axes();
        leaves.sort_by_key(|l| l.1);
        let mut reach = 0u64;
        let nested = leaves.iter().all(|&(extent, stride)| {
            let clear = stride > reach;
            reach += (extent - 1) * stride;
            clear
        });
        if nested {
            return Ok(None);
        }
        // Among len + 1 elements two share a place, so the search ends by then.
        if self.size.min(self.len) > most {
            return Err(TooManySteps);
        }
        // A bit a place; where places are many and elements few, a list of those that are taken.
        let sparse = self.len / 64 > self.size;
        let mut bits = vec![0u64; if sparse { 0 } else { (self.len as usize).div_ceil(64) }];
        let mut list = HashSet::new();
        let (mut number, mut twice) = (0u64, None);
        self.runs(|place, count| {
            for place in place..place + count {
                if twice.is_some() {
                    return;
                }
                let bit = 1u64 << (place % 64);
                let new = match bits.get_mut(place / 64) {
                    Some(word) => std::mem::replace(word, *word | bit) & bit == 0,
                    None => list.insert(place),
                };
                if !new {
                    twice = Some((number, place as u64));
                }
                number += 1;
            }
        });
        Ok(twice.and_then(|(second, place)| {
            let first = self.coordinate_at(place)?;
            Some(Overlap { first, second: self.unravel(second), place })
        }))
    }
}

#[cfg(test)]
mod tests;
