//! The workspace of a program: one block of memory for the tensors that it makes. Tensors that hold no value at the
//! same time share bytes. Liveness is that of a register allocator, over the list of launches with its branches;
//! offsets are given first-fit by decreasing size.

use super::order::PlanStep;
use ptoc_analysis::{HostExpr, ProgramTensor, TensorSource};
use ptoc_diagnostics::Diagnostic;
use ptoc_ir::tile::{Kernel, TensorDir, TensorId};
use ptoc_tensor::{DType, Tensor, TensorError};
use std::ops::Range;

/// Bytes of a cache line, at which every tensor begins.
const LINE: u64 = 64;

/// Where a tensor of a program is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkspacePlace {
    /// Its first byte in the workspace.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Runs of steps of the program's list at which it holds bytes; none where nothing uses it.
    pub held: Vec<Range<usize>>,
}

/// The plan of a workspace.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// By the number of the tensor.
    pub places: Vec<WorkspacePlace>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The tensors of which a launch may leave elements: they begin with zeros.
    pub left: Vec<bool>,
}

/// What a launch does with a tensor of the program.
#[derive(Clone, Copy, Debug)]
pub struct LaunchAccess {
    /// The tensor's number.
    pub tensor: usize,
    /// It reads elements.
    pub reads: bool,
    /// It writes all of them, whatever they were.
    pub fills: bool,
    /// It may leave elements as they were, of a tensor that it only writes. They are 0 in a new tensor, so such a
    /// tensor shares no memory.
    pub leaves: bool,
}

impl Workspace {
    /// Plans a workspace. `accesses` are those of a launch by its number.
    pub fn plan(
        locals: &[ProgramTensor],
        order: &[PlanStep],
        accesses: &dyn Fn(usize) -> Vec<LaunchAccess>,
    ) -> Workspace {
        let mut uses: Vec<Vec<Use>> = vec![vec![Use::default(); order.len()]; locals.len()];
        let mut pinned = vec![false; locals.len()];
        for (point, step) in order.iter().enumerate() {
            match step {
                PlanStep::Launch(number) => {
                    for a in accesses(*number) {
                        let at = &mut uses[a.tensor][point];
                        at.touches = true;
                        at.reads |= a.reads;
                        at.fills |= a.fills;
                        pinned[a.tensor] |= a.leaves;
                    }
                }
                PlanStep::Fill(k) => uses[*k][point] = Use { touches: true, reads: false, fills: true },
                PlanStep::New(k) => uses[*k][point].fills = true,
                PlanStep::Set(_, value) => read_by(value, point, &mut uses),
                PlanStep::Require(demand) => demand.reads(&mut |source| read_of(source, point, &mut uses)),
                PlanStep::Branch { cond, .. } => read_by(cond, point, &mut uses),
                PlanStep::Jump(_) => {}
            }
        }
        let held: Vec<PointSet> = uses.iter().zip(&pinned).map(|(uses, pinned)| held(uses, order, *pinned)).collect();
        Workspace { left: pinned, ..first_fit(locals, &held) }
    }

    /// Each tensor in memory of its own.
    pub fn separate(locals: &[ProgramTensor]) -> Workspace {
        let everywhere = PointSet(vec![1]);
        first_fit(locals, &vec![everywhere; locals.len()])
    }

    /// What the tensors would take if none shared memory.
    pub fn separate_bytes(&self) -> u64 {
        self.places.iter().map(|p| p.bytes.next_multiple_of(LINE)).sum()
    }

    /// The memory, with the tensors in it.
    ///
    /// # Errors
    /// A workspace that does not fit memory.
    pub fn allocate(&self, locals: &[ProgramTensor]) -> Result<Locals, Box<Diagnostic>> {
        let told = |local: &ProgramTensor, e: TensorError| {
            let message = format!("tensor `{}`: {e}", local.name);
            Box::new(Diagnostic::error(crate::files::code(e.code()), local.span, message))
        };
        let Some(largest) = locals.iter().zip(&self.places).max_by_key(|(_, p)| p.bytes).map(|(t, _)| t) else {
            return Ok(Locals::default());
        };
        let length = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let mut memory = Tensor::zeros(DType::U8, &[length]).map_err(|e| told(largest, e))?;
        let base = memory.as_mut_ptr();
        let place = |(local, place): (&ProgramTensor, &WorkspacePlace)| {
            let data = base.wrapping_add(place.offset as usize);
            // SAFETY: the bytes of a place are inside of the workspace, which `Locals` keeps as long as its tensors and
            // which nobody else has. Tensors that share bytes are not used by one launch: the plan sees to it.
            unsafe { Tensor::lent(local.dtype, &extents(local), data) }.map_err(|e| told(local, e))
        };
        let tensors = locals.iter().zip(&self.places).map(place).collect::<Result<_, _>>()?;
        Ok(Locals { tensors, _memory: Some(memory) })
    }
}

/// What a launch does with the tensors of its program. `is_part` says of an argument that it is a window; `unfilled`
/// are those that the kernel is not known to fill.
pub fn accesses<'e>(
    kernel: &Kernel,
    tensors: &[TensorSource],
    late: impl Iterator<Item = &'e HostExpr>,
    is_part: &dyn Fn(usize) -> bool,
    unfilled: &[TensorId],
) -> Vec<LaunchAccess> {
    let mut out = Vec::new();
    for value in late {
        value.elements(&mut |source, _| {
            if let TensorSource::Local(tensor) = source {
                out.push(LaunchAccess { tensor, reads: true, fills: false, leaves: false });
            }
        });
    }
    for (n, ((id, t), source)) in kernel.tensors.iter().zip(tensors).enumerate() {
        if let TensorSource::Local(tensor) = *source {
            let leaves = t.dir == TensorDir::Out && unfilled.contains(&id);
            let fills = t.dir == TensorDir::Out && !leaves && !is_part(n);
            out.push(LaunchAccess { tensor, reads: t.dir != TensorDir::Out, fills, leaves });
        }
    }
    out
}

/// The tensors that a program makes, and their memory.
#[derive(Default)]
pub struct Locals {
    /// By number. What they hold before a launch or a `fill` has written them is another tensor's, or 0.
    pub tensors: Vec<Tensor>,
    _memory: Option<Tensor>,
}

/// What a step does with a tensor.
#[derive(Clone, Copy, Default)]
struct Use {
    touches: bool,
    reads: bool,
    fills: bool,
}

/// Steps of a list.
#[derive(Clone)]
struct PointSet(Vec<u64>);

impl PointSet {
    fn meets(&self, other: &PointSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for p in (0..self.0.len() * 64).filter(|p| self.0[p / 64] >> (p % 64) & 1 != 0) {
            match runs.last_mut() {
                Some(run) if run.end == p => run.end += 1,
                _ => runs.push(p..p + 1),
            }
        }
        runs
    }
}

fn read_by(value: &HostExpr, point: usize, uses: &mut [Vec<Use>]) {
    value.elements(&mut |source, _| read_of(source, point, uses));
}

fn read_of(source: TensorSource, point: usize, uses: &mut [Vec<Use>]) {
    if let TensorSource::Local(k) = source {
        uses[k][point].touches = true;
        uses[k][point].reads = true;
    }
}

/// Where control goes behind a step.
fn successors(order: &[PlanStep], point: usize) -> impl Iterator<Item = usize> {
    let (next, other) = match &order[point] {
        PlanStep::Jump(to) => (*to, None),
        PlanStep::Branch { otherwise, .. } => (point + 1, Some(*otherwise)),
        _ => (point + 1, None),
    };
    let end = order.len();
    std::iter::once(next).chain(other).filter(move |p| *p < end)
}

/// The steps at which a tensor holds bytes that nothing else may have: where it is used, and where a value that was
/// written is read later.
fn held(uses: &[Use], order: &[PlanStep], pinned: bool) -> PointSet {
    let n = order.len();
    // Live before a step, and written on some way to behind it; both grow until nothing changes.
    let (mut live, mut reached) = (vec![false; n], vec![false; n]);
    loop {
        let mut changed = false;
        for p in (0..n).rev() {
            let now = uses[p].reads || (!uses[p].fills && successors(order, p).any(|s| live[s]));
            changed |= now != live[p];
            live[p] = now;
        }
        for p in 0..n {
            reached[p] |= uses[p].touches;
            if reached[p] {
                for s in successors(order, p) {
                    changed |= !reached[s];
                    reached[s] = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let mut set = PointSet(vec![0; n.div_ceil(64).max(1)]);
    for p in 0..n {
        let waits = reached[p] && successors(order, p).any(|s| live[s]);
        if pinned || uses[p].touches || waits {
            set.0[p / 64] |= 1 << (p % 64);
        }
    }
    set
}

/// Offsets by decreasing size: the lowest at which no tensor lies that holds bytes at the same time.
fn first_fit(locals: &[ProgramTensor], held: &[PointSet]) -> Workspace {
    let size = |local: &ProgramTensor| {
        let elements = extents(local).iter().fold(1u64, |a, &n| a.saturating_mul(n as u64));
        elements.saturating_mul(local.dtype.size() as u64)
    };
    let mut places: Vec<WorkspacePlace> = locals
        .iter()
        .zip(held)
        .map(|(local, held)| WorkspacePlace { offset: 0, bytes: size(local), held: held.runs() })
        .collect();
    let mut by_size: Vec<usize> = (0..locals.len()).collect();
    by_size.sort_by_key(|&k| std::cmp::Reverse(places[k].bytes));
    let room = |place: &WorkspacePlace| place.bytes.checked_next_multiple_of(LINE).unwrap_or(u64::MAX / 2);
    let mut bytes = 0u64;
    for (n, &k) in by_size.iter().enumerate() {
        let beside = by_size[..n].iter().filter(|&&other| held[other].meets(&held[k])).map(|&other| &places[other]);
        let mut taken: Vec<(u64, u64)> = beside.map(|p| (p.offset, p.offset.saturating_add(room(p)))).collect();
        taken.sort_unstable();
        let want = room(&places[k]);
        let mut offset = 0u64;
        for (begin, end) in taken {
            if begin >= offset.saturating_add(want) {
                break;
            }
            offset = offset.max(end);
        }
        places[k].offset = offset;
        bytes = bytes.max(offset.saturating_add(want));
    }
    Workspace { places, bytes, left: vec![true; locals.len()] }
}

fn extents(local: &ProgramTensor) -> Vec<usize> {
    local.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_diagnostics::Span;
    use ptoc_ir::tile::Const;

    fn tensors(lengths: &[i64]) -> Vec<ProgramTensor> {
        let tensor = |n: &i64| ProgramTensor {
            name: "t".into(),
            dtype: DType::F32,
            shape: vec![*n],
            fill: None,
            place: None,
            span: Span::default(),
        };
        lengths.iter().map(tensor).collect()
    }

    fn read(tensor: usize) -> LaunchAccess {
        LaunchAccess { tensor, reads: true, fills: false, leaves: false }
    }

    fn written(tensor: usize) -> LaunchAccess {
        LaunchAccess { tensor, reads: false, fills: true, leaves: false }
    }

    fn offsets(workspace: &Workspace) -> Vec<u64> {
        workspace.places.iter().map(|p| p.offset).collect()
    }

    fn launches(n: usize) -> Vec<PlanStep> {
        (0..n).map(PlanStep::Launch).collect()
    }

    /// 0 is dead when 2 is written, so they share bytes; 1 is read and written beside both.
    #[test]
    fn a_chain_takes_two_buffers() {
        let steps = [vec![written(0)], vec![read(0), written(1)], vec![read(1), written(2)], vec![read(2)]];
        let plan = Workspace::plan(&tensors(&[100, 100, 100]), &launches(4), &|n| steps[n].clone());
        assert_eq!((offsets(&plan), plan.bytes), (vec![0, 448, 0], 896));
        assert_eq!(plan.separate_bytes(), 3 * 448);
        let held: Vec<_> = plan.places.iter().flat_map(|p| p.held.clone()).collect();
        assert_eq!(held, [0..2, 1..3, 2..4]);
    }

    /// A value that the next iteration reads is held through the whole loop, also where no step touches it.
    #[test]
    fn a_loop_carries_a_value() {
        let steps = [vec![written(0)], vec![read(0), written(1)], vec![read(1), written(2)], vec![read(2), written(0)]];
        let cond = HostExpr::Const(Const::index(1));
        let order = vec![
            PlanStep::Launch(0),
            PlanStep::Branch { cond, otherwise: 6 },
            PlanStep::Launch(1),
            PlanStep::Launch(2),
            PlanStep::Launch(3),
            PlanStep::Jump(1),
        ];
        let of = |steps: &[Vec<LaunchAccess>]| {
            let plan = Workspace::plan(&tensors(&[16, 16, 16]), &order, &|n| steps[n].clone());
            (offsets(&plan), plan.bytes)
        };
        // The last launch reads 2 and writes 0.
        assert_eq!(of(&steps), (vec![0, 64, 128], 192));
        // If it does not, the first one's value is read in each iteration.
        assert_eq!(of(&[&steps[..3], &[vec![read(2)]]].concat()), (vec![0, 64, 128], 192));
        // What nothing in the loop reads is dead there.
        let dead = [vec![written(0)], vec![written(1)], vec![read(1), written(2)], vec![read(2)]];
        assert_eq!(of(&dead), (vec![0, 0, 64], 128));
    }

    /// Parts that are written one by one are a value from the first of them on.
    #[test]
    fn parts_do_not_end_a_value() {
        let part = LaunchAccess { tensor: 0, reads: false, fills: false, leaves: false };
        let steps = [vec![written(1)], vec![part, read(1)], vec![written(2)], vec![part, read(2)], vec![read(0)]];
        let plan = Workspace::plan(&tensors(&[64, 16, 16]), &launches(5), &|n| steps[n].clone());
        assert_eq!((offsets(&plan), plan.bytes), (vec![0, 256, 256], 320));
    }

    /// What is left at 0 shares no memory.
    #[test]
    fn what_a_launch_leaves_has_its_own_memory() {
        let leaves = LaunchAccess { leaves: true, fills: false, ..written(2) };
        let steps = [vec![written(0)], vec![read(0), written(1)], vec![read(1), leaves], vec![read(2)]];
        let plan = Workspace::plan(&tensors(&[16, 16, 16]), &launches(4), &|n| steps[n].clone());
        assert_eq!(plan.bytes, 192);
    }
}
