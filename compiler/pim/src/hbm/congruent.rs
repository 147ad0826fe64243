//! Blocks that do in their own banks what another block does in its own.
//!
//! What a block reads and stores is known by the elements that it touches ([`Hull`]). From a block to a congruent one
//! these move as a whole, along every dimension of the array, and if the placement moves them from the banks of the
//! one's unit to the same bursts of the other's, then both do the same: it need not be gone through again.

use super::Res;
use super::places::{Home, Places};
use super::trace::Store;
use crate::eval::{BlockScalars, Visitor};
use crate::slopes::{self, GridBox, Slope};
use std::rc::Rc;

/// The smallest box of an array that has elements of windows which move alike from block to block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hull {
    /// Number of the array.
    pub tensor: u32,
    /// By how much the windows move.
    pub slope: Slope,
    /// First and last element along each dimension.
    pub corners: [Vec<i64>; 2],
    /// An element that a window has.
    pub some: i64,
}

/// What a block touches.
#[derive(Clone, Debug, Default)]
pub struct Hulls {
    /// By array and slope.
    pub list: Vec<Hull>,
    /// Something was touched of which no box is known.
    pub unknown: bool,
}

/// Coordinates of element `n` of an array.
fn coordinates(mut n: i64, shape: &[i64]) -> Vec<i64> {
    let mut out: Vec<i64> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let i = n.rem_euclid(extent.max(1));
            n = n.div_euclid(extent.max(1));
            i
        })
        .collect();
    out.reverse();
    out
}

/// The element with these coordinates.
fn element(at: &[i64], shape: &[i64]) -> i64 {
    at.iter().zip(shape).fold(0, |n, (i, extent)| n * extent.max(&1) + i)
}

impl Hulls {
    /// Elements of an array, the first and the last of a window; they are a box if no coordinate falls from the one to
    /// the other.
    pub fn add(&mut self, tensor: u32, slope: Option<Slope>, shape: &[i64], [first, last]: [i64; 2]) {
        let (Some(slope), false) = (slope, self.unknown) else {
            self.unknown = true;
            return;
        };
        let [low, high] = [first, last].map(|n| coordinates(n, shape));
        let inside = first >= 0 && last < shape.iter().product::<i64>();
        self.unknown |= !inside || low.iter().zip(&high).any(|(l, h)| l > h);
        match self.list.iter_mut().find(|h| (h.tensor, h.slope) == (tensor, slope)) {
            None => self.list.push(Hull { tensor, slope, corners: [low, high], some: first }),
            Some(hull) => {
                hull.corners[0].iter_mut().zip(low).for_each(|(a, l)| *a = l.min(*a));
                hull.corners[1].iter_mut().zip(high).for_each(|(b, h)| *b = h.max(*b));
            }
        }
    }
}

impl Hull {
    /// By how much every coordinate moves if elements move by so many; `None` if some would go over the end of a
    /// dimension, and others not.
    pub fn moved(&self, shape: &[i64], by: i64) -> Option<Vec<i64>> {
        let [low, high] = &self.corners;
        let to = element(low, shape).checked_add(by).filter(|to| *to >= 0)?;
        if to >= shape.iter().product() {
            return None;
        }
        let steps: Vec<i64> = coordinates(to, shape).iter().zip(low).map(|(to, from)| to - from).collect();
        steps.iter().zip(high).zip(shape).all(|((s, h), extent)| h + s < *extent).then_some(steps)
    }
}

/// A block that others may be congruent to.
pub struct Leader<'b> {
    /// Its class ([`slopes::around`]).
    pub class: u32,
    /// Its coordinates.
    pub at: &'b [i64],
    /// Its unit.
    pub home: Home,
    /// What it touches.
    pub hulls: Vec<Hull>,
    /// What it stores.
    pub stores: Rc<Vec<Store>>,
    /// Elements in the bursts that it stores.
    pub held: Vec<u32>,
}

impl Leader<'_> {
    /// Whether a block of the same class is congruent to it on this unit.
    pub fn stands_for(&self, at: &[i64], home: Home, places: &Places) -> bool {
        let moves = |hull: &Hull| {
            let by = slopes::moved(&hull.slope, self.at, at);
            by.is_some_and(|by| places.carries(hull, by, [self.home, home]))
        };
        self.hulls.iter().all(moves)
            && self.stores.iter().zip(&self.held).all(|(s, held)| places.elements(home, s.at) == *held)
    }
}

/// Goes through a block; whether it stands for those of its class is told if its class is.
pub fn follow(
    numbers: &mut BlockScalars<'_>,
    at: &[i64],
    class: Option<(u32, GridBox)>,
    visitor: &mut dyn Visitor,
) -> Res<Option<u32>> {
    match class {
        None => numbers.block(at, visitor).map(|()| None),
        Some((class, around)) => Ok(numbers.block_for(at, around, visitor)?.then_some(class)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hull moves as a whole, or not at all: against its elements one by one.
    #[test]
    fn hulls_move_as_a_whole() {
        let shape = [4, 6, 5];
        let all: i64 = shape.iter().product();
        let (mut whole, mut not) = (0, 0);
        for first in 0..all {
            for last in first..all {
                let mut hulls = Hulls::default();
                hulls.add(0, Some([0; slopes::DIMS]), &shape, [first, last]);
                if hulls.unknown {
                    continue;
                }
                let [low, high] = &hulls.list[0].corners;
                let inside = |n: &i64| {
                    coordinates(*n, &shape).iter().zip(low.iter().zip(high)).all(|(i, (l, h))| (l..=h).contains(&i))
                };
                let elements: Vec<i64> = (0..all).filter(inside).collect();
                for by in [-31, -30, -7, -5, -1, 0, 1, 4, 5, 29, 30, 35, 61] {
                    let there: Vec<Vec<i64>> = elements.iter().map(|n| coordinates(n + by, &shape)).collect();
                    let steps = |n: usize| -> Vec<i64> {
                        let from = coordinates(elements[n], &shape);
                        there[n].iter().zip(from).map(|(to, from)| to - from).collect()
                    };
                    let within = elements.iter().all(|n| (0..all).contains(&(n + by)));
                    let alike = within && (1..elements.len()).all(|n| steps(n) == steps(0));
                    let moved = hulls.list[0].moved(&shape, by);
                    assert_eq!(moved, alike.then(|| steps(0)), "{:?} {by}", hulls.list[0]);
                    whole += usize::from(alike);
                    not += usize::from(!alike);
                }
            }
        }
        assert!(whole > 1000 && not > 1000, "{whole} {not}");
    }
}
