//! Calls that differ in the values of scalars alone: the launch of a kernel with these, without another plan.
//!
//! Machine code does not depend on them, but what is made around it may: a search for races with the launch's own
//! numbers, extents, the grid. A plan is used for other values only where nothing of that has been asked for.

use super::arrays::{Argument, Call, Scalar};
use super::signature::{Signature, names};
use crate::launch::{Plan, PlannedLaunch};
use ptoc_ir::tile::Ty;

/// Which scalars of a plan a call may change.
#[derive(Debug)]
pub(super) struct Rebinding {
    /// Of each scalar of the kernel its type, and its parameter if calls with other values share the plan.
    scalars: Vec<(Ty, Option<usize>)>,
    /// The values that the plan was made with, by parameter.
    given: Vec<Option<Scalar>>,
}

impl Rebinding {
    /// That of a plan about which nothing was said while it was made; `None` if each value needs a plan of its own.
    pub fn of(plan: &Plan, signature: &Signature, call: &Call) -> Option<Rebinding> {
        let [step] = &plan.steps[..] else { return None };
        let plain = !plan.program
            && !step.watched
            && step.late.is_none()
            && step.storage.iter().all(Option::is_none)
            && plan.specification.conditions.is_empty();
        let scalars = || signature.parameters.iter().filter(|p| !p.is_tensor());
        let sized = signature.parameters.iter().filter(|p| p.is_tensor());
        let sized = sized.flat_map(|p| scalars().map(move |s| (p, s))).any(|(p, s)| names(&p.declared, &s.name));
        if !plain || sized || scalars().next().is_none() {
            return None;
        }
        let parameter = |name: &str| signature.parameter(name).filter(|(_, p)| !p.in_where).map(|(n, _)| n);
        let types = plan.specification.scalars.iter().map(|(ty, _)| *ty);
        let named = step.kernel.scalars.iter().map(|s| parameter(&s.name));
        Some(Rebinding { scalars: types.zip(named).collect(), given: call.arguments.iter().map(scalar).collect() })
    }

    /// Whether a call has the values of the plan.
    pub fn is_of(&self, call: &Call) -> bool {
        self.given.iter().zip(&call.arguments).all(|(given, argument)| {
            let key = |scalar: Scalar| scalar.key();
            given.map(key) == scalar(argument).map(key)
        })
    }

    /// The launch with the values of a call; `None` if a value is none of its type, or not everything stays as it is.
    pub fn step(&self, plan: &Plan, call: &Call) -> Option<PlannedLaunch> {
        let step = &plan.steps[0];
        let mut bits = Vec::with_capacity(self.scalars.len());
        for ((ty, parameter), planned) in self.scalars.iter().zip(&step.scalars) {
            bits.push(match parameter {
                None => Some(*planned),
                Some(n) => match scalar(&call.arguments[*n]) {
                    Some(value) => Some(value.bits(*ty)?),
                    None => None,
                },
            });
        }
        step.with_values(&bits).filter(|other| other.shapes == step.shapes)
    }
}

fn scalar(argument: &Option<Argument>) -> Option<Scalar> {
    match argument {
        Some(Argument::Scalar(scalar)) => Some(*scalar),
        _ => None,
    }
}
