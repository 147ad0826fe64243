//! Windows as arguments of launches on units: units take whole arrays, so a window is an array of its own, which is
//! filled before the launch and laid back behind it. What moves at fixed distances does so in the memory.

use crate::launch::{Plan, PlannedLaunch};
use ptoc_ir::tile::{Builder, Kernel, TensorData, TensorDir};
use ptoc_pim::movement::{self, Nest};
use ptoc_tensor::Tensor;

/// A launch of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamLaunch {
    /// One of the plan's.
    Kernel(usize),
    /// The move between a window, an argument of a launch of the plan, and the array that stands for it.
    Window {
        /// The launch of the plan.
        step: usize,
        /// The argument.
        argument: usize,
        /// The number of the tensor that it is a window of.
        whole: u32,
        /// The number of the array that stands for it.
        part: u32,
        /// It fills that array, and does not lay it back.
        fills: bool,
    },
}

/// The move between a window and its array, as a kernel of the host.
#[derive(Debug)]
pub(super) struct WindowMove {
    /// The launch of the plan.
    pub step: usize,
    /// The argument.
    pub argument: usize,
    /// It fills the array, and does not lay it back.
    pub fills: bool,
    /// A source and a destination.
    pub kernel: Kernel,
}

/// The moves around the launches of units, in their order.
pub(super) fn window_moves(plan: &Plan, target: &str) -> Vec<WindowMove> {
    let mut moves = Vec::new();
    for (number, step) in plan.steps.iter().enumerate().filter(|(_, s)| !s.kernel.host) {
        for fills in [true, false] {
            let unmoved = if fills { TensorDir::Out } else { TensorDir::In };
            let tensors = step.kernel.tensors.values().zip(&step.windows).enumerate();
            let moved = tensors.filter(|(_, (t, window))| window.is_some() && t.dir != unmoved);
            moves.extend(moved.map(|(argument, (t, _))| WindowMove {
                step: number,
                argument,
                fills,
                kernel: kernel(plan, step, (argument, t), fills, target),
            }));
        }
    }
    moves
}

fn kernel(plan: &Plan, step: &PlannedLaunch, (argument, t): (usize, &TensorData), fills: bool, target: &str) -> Kernel {
    let name = if fills { "fill_window" } else { "lay_back_window" };
    let mut b = Builder::new(name, step.span, target);
    let shapes = [plan.extents(step.tensors[argument]), step.shapes[argument].clone()];
    let mut tensor = |name: &str, dir, shape: &[usize]| {
        let shape = shape.iter().map(|n| b.index_const(*n as i64)).collect();
        b.tensor(TensorData {
            name: name.into(),
            dtype: t.dtype,
            dir,
            shape,
            optional: false,
            place: None,
            disjoint: false,
            stored: None,
            span: t.span,
        });
    };
    match fills {
        true => {
            tensor("whole", TensorDir::In, &shapes[0]);
            tensor("part", TensorDir::Out, &shapes[1]);
        }
        // Other elements of the whole stay as they are.
        false => {
            tensor("part", TensorDir::In, &shapes[1]);
            tensor("whole", TensorDir::InOut, &shapes[0]);
        }
    }
    b.kernel_mut().host = true;
    b.finish()
}

/// The loops that fill the array of a window, if its elements lie at fixed distances.
pub(super) fn nests(step: &PlannedLaunch, argument: usize) -> Option<Vec<Nest>> {
    let elements = &step.windows[argument].as_ref()?.elements;
    let mut map = Vec::new();
    elements.runs(|place, count| map.extend((place..place + count).map(|at| at as u32)));
    let shape: Option<Vec<u32>> = step.shapes[argument].iter().map(|&n| u32::try_from(n).ok()).collect();
    u32::try_from(elements.len()).ok().and_then(|_| movement::nests(&map, &shape?))
}

/// Moves the elements of a window on the host.
pub(super) fn carry_out(
    step: &PlannedLaunch,
    argument: usize,
    (whole, part): (u32, u32),
    fills: bool,
    arrays: &mut [Option<Tensor>],
) {
    let width = step.dtype(argument).size();
    let Some(elements) = step.windows[argument].as_ref().map(|w| &w.elements) else { return };
    let (low, high) = (whole.min(part) as usize, whole.max(part) as usize);
    let (before, behind) = arrays.split_at_mut(high);
    let (Some(low), Some(high)) = (&mut before[low], &mut behind[0]) else { return };
    let (whole, part) = if whole < part { (low, high) } else { (high, low) };
    match fills {
        true => elements.gather(width, whole.bytes(), part.bytes_mut()),
        false => elements.scatter(width, part.bytes(), whole.bytes_mut()),
    }
}
