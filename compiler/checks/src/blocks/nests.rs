//! Elements of one `copy` or product of partitions: it moves them in no order, so that no two may be written at one
//! place, and none read that the same one writes (PA-1072).

use super::accesses::{AccessKind, AccessedElements, NestSide, TensorAccess};
use super::budget::Steps;
use super::disjoint::{assume_equal, axis, digits, element, points, same_unit};
use super::space::{Claim, KernelIndex, Space, number};
use ptoc_ir::tile::{Op, TensorId};

/// What may meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meets {
    /// Two places of the destination.
    Twice,
    /// A place of the source and one of the destination.
    Sides,
}

/// A nest whose elements are not proved to be apart.
pub(super) struct Nested<'k> {
    pub(super) tensor: TensorId,
    pub(super) write: TensorAccess<'k>,
    pub(super) meets: Meets,
    /// There were no steps left to prove it.
    pub(super) spent: bool,
}

/// The nests of which that is not proved.
pub(super) fn doubts<'k>(code: &KernelIndex<'k>, accesses: &[TensorAccess<'k>], budget: &Steps<'_>) -> Vec<Nested<'k>> {
    let mut out = Vec::new();
    for (n, write) in accesses.iter().enumerate() {
        let AccessedElements::Nest(nest) = &write.place else { continue };
        if write.kind != AccessKind::Write || code.kernel.tensors[write.tensor].disjoint {
            continue;
        }
        let doubt = |meets| Nested { tensor: write.tensor, write: write.clone(), meets, spent: budget.are_spent() };
        // A product's results are apart by the shape of its partition.
        let copy = matches!(write.stmt.op, Op::Copy(_));
        if !budget.begin() {
            break;
        }
        let once = !copy || apart_in_itself(code, budget, write, nest);
        if !budget.answered() {
            break;
        }
        if !once {
            out.push(doubt(Meets::Twice));
            continue;
        }
        // Reads of the same statement come right before it; a product reads its own accumulator, element by element.
        let own = accesses[..n].iter().rev().take_while(|a| std::ptr::eq(a.stmt, write.stmt));
        let own = own.filter(|a| a.tensor == write.tensor && a.kind == AccessKind::Read);
        let meet = own.skip(usize::from(!copy)).any(|read| !apart(code, budget, read, write));
        if !budget.answered() {
            break;
        }
        if meet {
            out.push(doubt(Meets::Sides));
        }
    }
    out
}

/// Whether the two sides never use one element.
fn apart<'k>(code: &KernelIndex<'k>, budget: &Steps<'_>, read: &TensorAccess<'k>, write: &TensorAccess<'k>) -> bool {
    if !same_unit(code, read, write) {
        return false;
    }
    let mut space = Space::new(code, budget);
    let side = space.side();
    space.block(side);
    let Some(a) = element(&mut space, side, read) else { return false };
    let Some(b) = element(&mut space, side, write) else { return false };
    let equations = digits(&mut space, write.tensor, a, b, false);
    let claims: Vec<Claim> = equations.iter().filter_map(|(a, b)| a.plus(b, -1)).map(Claim::Zero).collect();
    assume_equal(&mut space, &equations);
    space.refutes(&claims)
}

/// Whether no two points of the nest are the same element.
fn apart_in_itself<'k>(
    code: &KernelIndex<'k>,
    budget: &Steps<'_>,
    write: &TensorAccess<'k>,
    nest: &NestSide<'k>,
) -> bool {
    if !nest.tables.is_empty() {
        return false;
    }
    // The launch checks that an array's layout has a place for each element. Axes that walk along different leaves of
    // it are elements of the array.
    if let Some(stored) = &code.kernel.tensors[write.tensor].stored {
        let mut leaves = stored.at.strides.clone();
        let own = nest.at.strides.iter().all(|stride| {
            let at = leaves.iter().position(|leaf| leaf == stride);
            at.map(|at| leaves.swap_remove(at)).is_some()
        });
        if own {
            return true;
        }
    }
    let mut space = Space::new(code, budget);
    let side = space.side();
    space.block(side);
    space.enter(side, &write.facts.list());
    let axes = |space: &mut Space<'k, '_>| nest.extents.iter().map(|&e| axis(space, side, e)).collect::<Vec<_>>();
    let (first, second) = (axes(&mut space), axes(&mut space));
    let Some(a) = points(&mut space, side, nest, Some(&first)) else { return false };
    let Some(b) = points(&mut space, side, nest, Some(&second)) else { return false };
    let equations = digits(&mut space, write.tensor, a, b, true);
    assume_equal(&mut space, &equations);
    first.iter().zip(&second).all(|(x, y)| {
        let later = y.plus(x, -1).and_then(|d| d.plus(&number(1), -1));
        x == y || later.is_some_and(|l| space.refutes(&[Claim::Least(l)]))
    })
}
