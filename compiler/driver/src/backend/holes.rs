//! Elements of `out` tensors that a launch leaves unwritten, seen from outside of its code.
//!
//! The tensor is filled with a pattern before the launch; an element that has it afterwards is unwritten, or was given
//! just that value. Which of the two it is, a second launch with another pattern says: machine code gives the same
//! values twice. So stores need no marks, and a launch costs a pass over the tensor before it and one behind it, and
//! only where the compiler has not seen that it is filled ([`ptoc_checks::blocks::unfilled`]). Patterns are NaNs and
//! numbers that hardly any launch computes; of 8 bits there are none such, and an output of bytes is more often
//! launched twice.

use crate::launch::{PlannedLaunch, Used, unwritten};
use ptoc_diagnostics::Diagnostic;
use ptoc_interp::Unwritten;
use ptoc_ir::tile::{TensorDir, TensorId};
use ptoc_tensor::{DType, Tensor};

/// The pattern of a launch, the first or the second one, as an element of this dtype.
fn pattern(dtype: DType, second: bool) -> [u8; 8] {
    let bits: u64 = match dtype {
        DType::F32 => 0x7fa5_93c1,
        DType::F16 => 0x7d5b,
        DType::BF16 => 0x7f9b,
        DType::I64 | DType::U64 => 0x9e37_79b9_7f4a_7c15,
        DType::I32 | DType::U32 => 0xb7e1_5163,
        DType::I16 | DType::U16 => 0xb7e1,
        // A `bool` is 0 or 1.
        DType::I8 | DType::U8 | DType::F8E4M3 | DType::F8E5M2 | DType::Bool => 0xa5,
    };
    (if second { bits ^ 0x1c } else { bits }).to_le_bytes()
}

/// Execution of the code of a launch on its arrays. Gets who is told what the kernel prints.
pub(crate) type Execute<'e> =
    dyn Fn(&mut Used<'_>, &mut [Option<Tensor>], Option<&mut dyn FnMut(&str)>) -> Result<(), Box<Diagnostic>> + 'e;

/// Launches code, and reports what it has left unwritten of tensors that it is not known to fill.
#[cfg(any(feature = "cpu", feature = "gpu"))]
pub(super) fn launch(
    launch: &mut crate::launch::BackendLaunch<'_, '_>,
    execute: &Execute,
) -> Result<(), Box<Diagnostic>> {
    let print = launch.print.as_mut().map(|print| &mut **print as &mut dyn FnMut(&str));
    let open = OpenLaunch { step: launch.step, unfilled: launch.unfilled, program: launch.program };
    let left = open.run(launch.used, launch.buffers, print, execute)?;
    launch.session.diagnostics.extend(left);
    Ok(())
}

/// A launch that may leave elements of `out` tensors unwritten.
pub(crate) struct OpenLaunch<'s> {
    /// The launch.
    pub step: &'s PlannedLaunch,
    /// Tensors that it is not known to fill.
    pub unfilled: &'s [TensorId],
    /// It is one of a program's.
    pub program: bool,
}

impl OpenLaunch<'_> {
    /// Launches code; what it has left unwritten, as diagnostics.
    pub fn run(
        &self,
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
        print: Option<&mut dyn FnMut(&str)>,
        execute: &Execute,
    ) -> Result<Vec<Diagnostic>, Box<Diagnostic>> {
        let Some(holes) = Holes::new(self.step, self.unfilled) else {
            return execute(used, buffers, print).map(|()| Vec::new());
        };
        let before = holes.fill(used, buffers, self.program);
        execute(used, buffers, print)?;
        // What it prints has been seen.
        let found = holes.found(used, buffers, &before, |used, buffers| execute(used, buffers, None))?;
        Ok(found.iter().map(|hole| unwritten(self.step, hole)).collect())
    }
}

/// The tensors of a launch that are filled with patterns.
struct Holes<'s> {
    step: &'s PlannedLaunch,
    tensors: Vec<TensorId>,
}

/// What is needed to launch again, and to put back what was not written.
struct Before {
    /// Contents of the marked tensors, where a launch before has written them; else they were zeros.
    out: Vec<Option<Vec<u8>>>,
    /// Those of tensors that are read and written.
    inout: Vec<(usize, Vec<u8>)>,
}

impl<'s> Holes<'s> {
    /// `tensors` are those that may have holes; `None`, if there are none.
    fn new(step: &'s PlannedLaunch, tensors: &[TensorId]) -> Option<Holes<'s>> {
        (!tensors.is_empty()).then(|| Holes { step, tensors: tensors.to_vec() })
    }

    fn bytes<'t>(&self, used: &'t mut Used<'_>, buffers: &'t mut [Option<Tensor>], tensor: usize) -> &'t mut [u8] {
        self.step.bytes(tensor, used, buffers)
    }

    fn dtype(&self, tensor: TensorId) -> DType {
        self.step.kernel.tensors[tensor].dtype
    }

    /// Fills the tensors; `kept`: they may have values of other launches.
    fn fill(&self, used: &mut Used<'_>, buffers: &mut [Option<Tensor>], kept: bool) -> Before {
        let out = self.tensors.iter().map(|t| kept.then(|| self.bytes(used, buffers, slot(*t)).to_vec()));
        let out = out.collect();
        let tensors = self.step.kernel.tensors.iter();
        let inout = tensors.filter(|(_, t)| t.dir == TensorDir::InOut).map(|(t, _)| slot(t));
        let inout = inout.map(|t| (t, self.bytes(used, buffers, t).to_vec())).collect();
        self.pattern(used, buffers, false);
        Before { out, inout }
    }

    fn pattern(&self, used: &mut Used<'_>, buffers: &mut [Option<Tensor>], second: bool) {
        for &t in &self.tensors {
            let dtype = self.dtype(t);
            let pattern = pattern(dtype, second);
            let element = &pattern[..dtype.size()];
            let bytes = self.bytes(used, buffers, slot(t));
            bytes.chunks_exact_mut(element.len()).for_each(|x| x.copy_from_slice(element));
        }
    }

    /// The elements of tensor number `n` of those marked that have the pattern.
    fn left(&self, used: &mut Used<'_>, buffers: &mut [Option<Tensor>], n: usize, second: bool) -> Vec<usize> {
        let t = self.tensors[n];
        let dtype = self.dtype(t);
        let pattern = pattern(dtype, second);
        let element = &pattern[..dtype.size()];
        let bytes = self.bytes(used, buffers, slot(t));
        let members = self.step.storage[slot(t)].as_ref().and_then(|s| s.members());
        let is_member = |at: &usize| members.as_ref().is_none_or(|m| m.get(*at) == Some(&true));
        let found = bytes.chunks_exact(element.len()).enumerate().filter(|(_, x)| *x == element);
        found.map(|(at, _)| at).filter(is_member).collect()
    }

    /// After a launch: what it has not written. Where that is not clear, `again` launches once more.
    fn found(
        &self,
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
        before: &Before,
        again: impl FnOnce(&mut Used<'_>, &mut [Option<Tensor>]) -> Result<(), Box<Diagnostic>>,
    ) -> Result<Vec<Unwritten>, Box<Diagnostic>> {
        let first: Vec<Vec<usize>> = (0..self.tensors.len()).map(|n| self.left(used, buffers, n, false)).collect();
        if first.iter().all(Vec::is_empty) {
            return Ok(Vec::new());
        }
        for (t, bytes) in &before.inout {
            self.bytes(used, buffers, *t).copy_from_slice(bytes);
        }
        self.pattern(used, buffers, true);
        again(used, buffers)?;
        let mut out = Vec::new();
        for (n, first) in first.into_iter().enumerate() {
            let second = self.left(used, buffers, n, true);
            // Both lists ascend.
            let mut rest = second.iter().peekable();
            let holes = first.into_iter().filter(|at| {
                while rest.next_if(|other| *other < at).is_some() {}
                rest.peek() == Some(&at)
            });
            let holes: Vec<usize> = holes.collect();
            let size = self.dtype(self.tensors[n]).size();
            let bytes = self.bytes(used, buffers, slot(self.tensors[n]));
            for &at in &holes {
                let element = at * size..(at + 1) * size;
                match &before.out[n] {
                    Some(was) => bytes[element.clone()].copy_from_slice(&was[element]),
                    None => bytes[element].fill(0),
                }
            }
            if let Some(&at) = holes.first() {
                let first = self.coordinates(self.tensors[n], at);
                out.push(Unwritten { tensor: self.tensors[n], count: holes.len() as u64, first });
            }
        }
        Ok(out)
    }

    fn coordinates(&self, tensor: TensorId, at: usize) -> Vec<u64> {
        if let Some(place) = self.step.storage[slot(tensor)].as_ref().and_then(|s| s.coordinate_at(at as u64)) {
            return place;
        }
        let mut rest = at;
        let mut out: Vec<u64> = Vec::new();
        for &extent in self.step.shapes[slot(tensor)].iter().rev() {
            out.push((rest % extent.max(1)) as u64);
            rest /= extent.max(1);
        }
        out.reverse();
        out
    }
}

/// The place of a tensor among the arguments.
fn slot(tensor: TensorId) -> usize {
    tensor.as_u32() as usize
}
