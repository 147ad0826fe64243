//! AiM: a unit in every bank that multiplies a burst of its bank with a burst of a buffer, which all units of a channel
//! share, and adds the sum of the lanes to its accumulator.
//!
//! That is a mapping of its own: what a kernel computes for each element that it stores is one sum of products along a
//! dimension ([`trace`]), so the launch is a list of pairs of lines. The lines of one operand lie in the banks, a line
//! a unit at a time; those of the other go through the buffer ([`place`]). A line that is longer than the buffer goes
//! in chunks, and the buffer is written while rows change ([`schedule`]). The host reads sums from the accumulators.

mod place;
mod refusals;
mod schedule;
mod trace;

use crate::eval::BlockScalars;
use crate::rows::{FreeRows, Laid, reach};
use crate::{LaunchFragment, Lines, TensorPlace};
use place::{Line, Matrix};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{Kernel, TensorId};
use ptoc_isa::{AimUnit, Device, ProcessingUnit, Rounding, Target, UnitOperation};
use ptoc_pim_stream::stream::{Action, BURST, Exec, StreamStep};
use ptoc_pim_stream::{ArrayPlacement, Geometry};
pub use refusals::at_any_size;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use trace::{Output, Tracer};

/// Lanes of a unit.
const LANES: u32 = BURST as u32 / 2;

type Res<T = ()> = Result<T, Box<Diagnostic>>;

/// Refuses units that are not of AiM's shape.
pub fn fits(kernel: &Kernel, unit: &ProcessingUnit, aim: &AimUnit, device: &Device) -> Res {
    let has = |o| unit.operations.has(o);
    let wrong = [
        (unit.lanes != LANES, format!("`unit.lanes` is {}: a burst has {LANES} bf16", unit.lanes)),
        (unit.banks != 1, format!("`unit.banks` is {}: each bank has an accumulator", unit.banks)),
        (!has(UnitOperation::Dot), "`unit.operations` has no `DOT`: sums of products are all that is made".to_owned()),
        (aim.buffer < BURST as u32, format!("`unit.buffer` is {}: a burst has {BURST} bytes", aim.buffer)),
        (
            device.burst_bytes != BURST as u32,
            format!("a burst of the DRAM has {} bytes, and streams have {BURST}", device.burst_bytes),
        ),
    ];
    match wrong.into_iter().find(|(wrong, _)| *wrong) {
        None => Ok(()),
        Some((_, why)) => Err(crate::hbm::described::not_coded(kernel, why)),
    }
}

/// Compiles a launch, whose tensors go to these rows; the other arguments as for [`crate::compile`].
pub fn compile(
    kernel: &Kernel,
    values: &[u64],
    target: &Target,
    lines: Lines<'_>,
    rows: &FreeRows,
) -> Res<LaunchFragment> {
    let (Some(g), Some(unit)) = (crate::geometry(target), &target.unit) else {
        return Err(refusals::cannot(kernel, kernel.span, format!("`{}` has no units in memory", target.name)));
    };
    let ptoc_isa::UnitKind::Aim(aim) = unit.kind else {
        return Err(refusals::cannot(kernel, kernel.span, format!("`{}` has other units", target.name)));
    };
    if let Some(t) = kernel.tensors.values().find(|t| t.place.is_some()) {
        let message = format!("`{}` has a place of its own, and operands lie as the buffer asks for", t.name);
        return Err(refusals::cannot_with(t.span, message, "leave `at` out"));
    }
    if kernel.on.is_some() {
        let message = "the grid says which units run its blocks, and a command is for all of them".to_owned();
        return Err(refusals::cannot_with(kernel.span, message, "leave `on` out"));
    }
    let outputs = traced(kernel, values, unit)?;
    let mut launch = Launch { kernel, values, g, columns: g.col.min(aim.buffer / BURST as u32), rows: rows.clone() };
    launch.fragment(&outputs, lines)
}

/// Every element that the launch stores, and what it is.
fn traced(kernel: &Kernel, values: &[u64], unit: &ProcessingUnit) -> Res<Vec<Output>> {
    let mut numbers = BlockScalars::new(kernel, values);
    let mut tracer = Tracer::new(kernel, unit.rounding == Rounding::Each, unit.operations.has(UnitOperation::Relu));
    for at in crate::hbm::coordinates(kernel, &numbers.grid())? {
        numbers.block(&at, &mut tracer)?;
        tracer.end_of_block();
    }
    tracer.outputs()
}

/// A launch on its way to a stream.
struct Launch<'l> {
    kernel: &'l Kernel,
    values: &'l [u64],
    g: Geometry,
    /// Bursts of a row that the buffer has, too.
    columns: u32,
    rows: FreeRows,
}

/// Products of one matrix with the lines of another tensor.
struct Products<'o> {
    matrix: Matrix,
    laid: Laid,
    /// The other line, and the outputs with it.
    lines: Vec<(Line, Vec<(&'o Output, Line)>)>,
}

impl Launch<'_> {
    fn shape(&self, tensor: u32) -> Res<Vec<u32>> {
        let t = &self.kernel.tensors[TensorId::from_u32(tensor)];
        let numbers = BlockScalars::new(self.kernel, self.values);
        t.shape
            .iter()
            .map(|v| u32::try_from(numbers.index(*v)).ok())
            .collect::<Option<_>>()
            .ok_or_else(|| refusals::cannot(self.kernel, t.span, format!("`{}` is too large for the memory", t.name)))
    }

    fn fragment(&mut self, outputs: &[Output], lines: Lines<'_>) -> Res<LaunchFragment> {
        let mut products: Vec<Products<'_>> = Vec::new();
        for ((a, b), own) in by_operands(outputs) {
            let (matrix, swapped) = self.matrix([a, b], &own)?;
            let tensor = matrix.tensor;
            let at = match products.iter().position(|p| p.matrix.tensor == tensor) {
                Some(at) if products[at].matrix == matrix => at,
                Some(_) => {
                    let message = format!("`{}` is summed along two dimensions, and lies along one", self.name(tensor));
                    return Err(refusals::cannot(self.kernel, own[0].span, message));
                }
                None => {
                    let laid = self.lay(&matrix, own[0])?;
                    products.push(Products { matrix, laid, lines: Vec::new() });
                    products.len() - 1
                }
            };
            let lists = &mut products[at].lines;
            let mut known: FxHashMap<(u32, i64, i64, bool), usize> = FxHashMap::default();
            for o in own {
                let [row, line] = if swapped { [o.b, o.a] } else { [o.a, o.b] };
                let n = *known.entry((line.tensor, line.first, line.len, o.relu)).or_insert_with(|| {
                    lists.push((line, Vec::new()));
                    lists.len() - 1
                });
                lists[n].1.push((o, row));
            }
        }
        let mut out = LaunchFragment::default();
        let mut host = BTreeSet::new();
        for p in &products {
            let place = lines(self.kernel.tensors[TensorId::from_u32(p.matrix.tensor)].span);
            out.wants.push(TensorPlace { tensor: p.matrix.tensor, laid: p.laid.clone(), place });
            host.extend(p.lines.iter().map(|(line, _)| line.tensor));
            let span = p.lines.first().and_then(|(_, own)| own.first()).map_or(self.kernel.span, |(o, _)| o.span);
            let pchs = p.matrix.pchs(&self.g);
            let ops = schedule::ops(&p.matrix, p.laid.placement.row, &p.lines, lines);
            out.steps.push(StreamStep { place: lines(span), action: Action::Exec(Exec { pchs, ops }) });
        }
        let stored: BTreeSet<u32> = outputs.iter().map(|o| o.to.0).collect();
        for &tensor in &stored {
            let elements: u64 = self.shape(tensor)?.iter().map(|e| u64::from(*e)).product();
            // The rest of the array stays as it was.
            if (outputs.iter().filter(|o| o.to.0 == tensor).count() as u64) < elements {
                host.insert(tensor);
            }
        }
        out.host = host.into_iter().collect();
        out.returns = stored.into_iter().collect();
        Ok(out)
    }

    fn name(&self, tensor: u32) -> &str {
        &self.kernel.tensors[TensorId::from_u32(tensor)].name
    }

    /// Which operand lies in the banks: the one with more lines, if it can; and whether it is the second one.
    fn matrix(&self, tensors: [u32; 2], own: &[&Output]) -> Res<(Matrix, bool)> {
        let distinct = |f: fn(&Output) -> Line| own.iter().map(|o| f(o).first).collect::<BTreeSet<_>>().len();
        let counts = [distinct(|o| o.a), distinct(|o| o.b)];
        let order = if counts[1] > counts[0] { [true, false] } else { [false, true] };
        let mut refused = None;
        for swapped in order {
            let shape = self.shape(tensors[usize::from(swapped)])?;
            let lines = own.iter().map(|o| if swapped { (o.b, o.a) } else { (o.a, o.b) });
            match Matrix::of(lines, &shape, self.columns, &self.g) {
                Ok(matrix) => return Ok((matrix, swapped)),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        let [a, b] = tensors.map(|t| self.name(t));
        let why = refused.unwrap_or_default();
        let message =
            format!("neither `{a}` nor `{b}` can lie in the banks while the other goes through the buffer: {why}");
        Err(refusals::cannot(self.kernel, own[0].span, message))
    }

    fn lay(&mut self, matrix: &Matrix, first: &Output) -> Res<Laid> {
        let placement = matrix.placement();
        let rows = reach(&placement);
        match self.rows.take(Some(matrix.tensor), &placement, rows) {
            Some(row) => Ok(Laid { placement: ArrayPlacement { row, ..placement }, rows }),
            None => {
                let name = self.name(matrix.tensor);
                let message = format!("`{name}` takes {rows} rows of every bank, and there are none free in one piece");
                let d = Diagnostic::error(codes::UNIT_ROOM, first.span, message).with_label("no place for it");
                Err(Box::new(d.with_help("make the arrays smaller, or let the device have more channels")))
            }
        }
    }
}

/// Outputs by the tensors of their operands, in order.
fn by_operands(outputs: &[Output]) -> Vec<((u32, u32), Vec<&Output>)> {
    let mut out: Vec<((u32, u32), Vec<&Output>)> = Vec::new();
    for o in outputs {
        let key = (o.a.tensor, o.b.tensor);
        match out.iter_mut().find(|(k, _)| *k == key) {
            Some((_, own)) => own.push(o),
            None => out.push((key, vec![o])),
        }
    }
    out
}
