//! Bytes of arguments that launches move.
//!
//! Of an argument that is read at places which other arrays say (a gather, rows by number) a launch reads at most what
//! it finds there, and perhaps the same again and again. Of others it reads the windows that the walk over its loops
//! has seen, each element once; where that is not known, all of it.

use ptoc_analysis::TensorSource;
use ptoc_driver::launch::{Argument, Plan};
use ptoc_ir::loops::work::Work;
use ptoc_ir::tile::{Copy, Inst, Kernel, Mma, NestAccess, Op, Operand, Region, TensorId, Value, Var, ViewRef};
use std::collections::HashSet;

/// Bytes of the arguments, those that are read and written twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Traffic {
    /// Of what is found by data, as much as is found, and no more than there is.
    pub moved: u64,
    /// Without it: no launch moves less.
    pub least: u64,
}

impl Traffic {
    /// That of a launch, of whose steps the work may be known.
    pub fn of(plan: &Plan, work: Option<&[Work]>) -> Traffic {
        let mut all = Traffic { moved: 0, least: 0 };
        for (n, a) in plan.arguments.iter().enumerate() {
            let size = size(a);
            let [read, written] = [0, 1].map(|n_th| work.and_then(|work| touched(plan, work, n, n_th)).unwrap_or(size));
            if a.is_output() {
                // A result is written as a whole; of one that was there before perhaps a window.
                let bytes = if a.is_input() { size.min(written) } else { size };
                all.add(bytes, bytes);
            }
            if a.is_input() {
                match found(plan, n) {
                    Some(elements) => all.add(size.min(elements.saturating_mul(a.dtype.size() as u64)), 0),
                    None => all.add(size.min(read), size.min(read)),
                }
            }
        }
        all
    }

    fn add(&mut self, moved: u64, least: u64) {
        self.moved = self.moved.saturating_add(moved);
        self.least = self.least.saturating_add(least);
    }
}

fn size(a: &Argument) -> u64 {
    (a.shape.iter().product::<usize>() as u64).saturating_mul(a.dtype.size() as u64)
}

/// Bytes of an argument that the launches read (0) or write (1), where that is known.
fn touched(plan: &Plan, work: &[Work], argument: usize, which: usize) -> Option<u64> {
    let mut total = 0u64;
    for (step, work) in plan.steps.iter().zip(work) {
        let own = step.tensors.iter().enumerate();
        for (n, _) in own.filter(|(_, source)| matches!(source, TensorSource::Arg(at) if *at == argument)) {
            total = total.saturating_add(work.bytes.get(n)?[which]?);
        }
    }
    Some(total)
}

/// How many elements of an argument all launches find by data at most; `None` if one of them reads it in another way.
fn found(plan: &Plan, argument: usize) -> Option<u64> {
    let mut total: Option<u64> = None;
    for step in &plan.steps {
        let data = Data::of(&step.kernel);
        let own = step.tensors.iter().zip(step.kernel.tensors.keys());
        for (_, tensor) in own.filter(|(source, _)| matches!(source, TensorSource::Arg(at) if *at == argument)) {
            let elements = data.found(&step.kernel, tensor)?.saturating_mul(step.blocks);
            total = Some(total.unwrap_or(0).saturating_add(elements));
        }
    }
    total.filter(|elements| *elements > 0)
}

/// What a kernel computes from what it reads.
#[derive(Default)]
struct Data {
    values: HashSet<Value>,
    vars: HashSet<Var>,
}

impl Data {
    fn of(kernel: &Kernel) -> Data {
        let mut data = Data::default();
        // A loop reads what a later statement has set.
        loop {
            let before = (data.values.len(), data.vars.len());
            data.region(&kernel.body);
            if before == (data.values.len(), data.vars.len()) {
                return data;
            }
        }
    }

    fn region(&mut self, region: &Region) {
        for stmt in region {
            let mut derived = matches!(stmt.op, Op::Load { .. } | Op::TileGet { .. } | Op::Atomic { .. });
            stmt.op.for_each_use(&mut |value| derived |= self.values.contains(&value));
            match &stmt.op {
                Op::Get { dst, var } if self.vars.contains(var) => drop(self.values.insert(*dst)),
                Op::Set { var, .. } if derived => drop(self.vars.insert(*var)),
                op => self.values.extend(op.def().filter(|_| derived)),
            }
            stmt.op.regions().for_each(|region| self.region(region));
        }
    }

    /// How many elements a block finds in a tensor at most.
    fn found(&self, kernel: &Kernel, tensor: TensorId) -> Option<u64> {
        self.found_in(&kernel.body, tensor, 1)
    }

    /// `times`: how often the region runs at most.
    fn found_in(&self, region: &Region, tensor: TensorId, times: u64) -> Option<u64> {
        let mut total = 0u64;
        for stmt in region {
            let elements = match &stmt.op {
                Op::Load { tensor: of, offset, .. } if *of == tensor => self.values.contains(offset).then_some(1)?,
                Op::Atomic { tensor: of, .. } if *of == tensor => return None,
                Op::Inst(inst) => self.of_instruction(inst, tensor)?,
                Op::Copy(copy) if reads(copy, tensor) => return None,
                Op::Mma(mma) if multiplies(mma, tensor) => return None,
                _ => 0,
            };
            total = total.saturating_add(elements.saturating_mul(times));
            // How often a loop runs is not asked.
            let inner = if matches!(stmt.op, Op::For(_) | Op::While(_)) { u64::MAX } else { times };
            for region in stmt.op.regions() {
                total = total.saturating_add(self.found_in(region, tensor, inner)?);
            }
        }
        Some(total)
    }

    /// How many elements an instruction finds in a tensor at most: as many as its tile has.
    fn of_instruction(&self, inst: &Inst, tensor: TensorId) -> Option<u64> {
        let by_data = |view: &ViewRef| inst.instr.get().sem.gathers() || self.values.contains(&view.offset);
        let windows = inst.operands.iter().filter_map(|o| match o {
            Operand::View(view) if view.tensor == tensor => Some(view),
            _ => None,
        });
        let windows: Vec<&ViewRef> = windows.collect();
        if windows.is_empty() {
            return Some(0);
        }
        let tile = inst.operands.iter().find_map(|o| match o {
            Operand::Tile(tile) => Some(u64::from(tile.rows) * u64::from(tile.cols)),
            _ => None,
        });
        tile.filter(|_| windows.into_iter().all(by_data))
    }
}

fn touches(access: &NestAccess, tensor: TensorId) -> bool {
    access.tensor() == Some(tensor) || access.tables().any(|of| of == tensor)
}

fn reads(copy: &Copy, tensor: TensorId) -> bool {
    touches(&copy.src, tensor) || touches(&copy.dst, tensor)
}

fn multiplies(mma: &Mma, tensor: TensorId) -> bool {
    [&mma.acc, &mma.a, &mma.b].into_iter().any(|access| touches(access, tensor))
}
