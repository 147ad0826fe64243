//! The tensors of a launch: those that it chooses from, and buffers for those that have a layout of their own.

use super::plan::PlannedLaunch;
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{TensorData, TensorDir};
use ptoc_layout::Overlap;
use ptoc_tensor::Tensor;

/// The tensors that launches choose from.
pub struct Used<'t> {
    /// Arguments, then tensors of the program; those that nobody has now are `None`.
    slots: Vec<Option<&'t mut Tensor>>,
    /// How many arguments there are.
    args: usize,
}

impl<'t> Used<'t> {
    pub(crate) fn of(tensors: &'t mut [Tensor], locals: &'t mut [Tensor]) -> Used<'t> {
        let args = tensors.len();
        Used { slots: tensors.iter_mut().chain(locals).map(Some).collect(), args }
    }

    /// Of a program's arrays, of which some are with the launch now; the first `args` are arguments.
    pub(crate) fn of_some(arrays: &'t mut [Option<Tensor>], args: usize) -> Used<'t> {
        Used { slots: arrays.iter_mut().map(Option::as_mut).collect(), args }
    }

    /// A tensor of the launch, which is there.
    pub fn get(&mut self, source: TensorSource) -> &mut Tensor {
        let number = match source {
            TensorSource::Arg(i) => i,
            TensorSource::Local(i) => self.args + i,
        };
        self.slots[number].as_deref_mut().expect("a launch has its tensors")
    }

    /// What a launch works on: the buffer of an argument that has a layout of its own, or the tensor itself.
    pub fn held<'a>(&'a mut self, source: TensorSource, buffer: &'a mut Option<Tensor>) -> &'a mut Tensor {
        match buffer {
            Some(buffer) => buffer,
            None => self.get(source),
        }
    }
}

impl PlannedLaunch {
    /// Is this tensor one that the launch has in a layout of its own?
    pub(crate) fn lays_out(&self, source: TensorSource) -> bool {
        self.tensors.iter().zip(&self.storage).any(|(of, storage)| *of == source && storage.is_some())
    }

    /// The buffers of the arguments that have a layout, with the arrays in those that the kernel reads.
    pub(crate) fn buffers(&self, used: &mut Used<'_>) -> Result<Vec<Option<Tensor>>, Box<Diagnostic>> {
        let mut buffers = Vec::new();
        for ((t, storage), &source) in self.kernel.tensors.values().zip(&self.storage).zip(&self.tensors) {
            let Some(storage) = storage else {
                buffers.push(None);
                continue;
            };
            let array = used.get(source);
            let length = usize::try_from(storage.len()).unwrap_or(usize::MAX);
            let mut buffer = Tensor::zeros(array.dtype(), &[length]).map_err(|e| {
                let message = format!("the buffer of `{}`: {e}", t.name);
                Box::new(Diagnostic::error(crate::files::code(e.code()), t.span, message))
            })?;
            if t.dir != TensorDir::Out {
                let width = array.dtype().size();
                storage.scatter(width, array.bytes(), buffer.bytes_mut());
                if let Some(o) = storage.conflict(width, array.bytes(), buffer.bytes()) {
                    return Err(Box::new(repeated(t, array, &o)));
                }
            }
            buffers.push(Some(buffer));
        }
        Ok(buffers)
    }

    /// Reads back what the kernel has written.
    pub(crate) fn collect(&self, used: &mut Used<'_>, buffers: &[Option<Tensor>]) {
        for (i, t) in self.kernel.tensors.values().enumerate() {
            if let (true, Some(Some(storage)), Some(Some(buffer)), Some(&source)) =
                (t.dir != TensorDir::In, self.storage.get(i), buffers.get(i), self.tensors.get(i))
            {
                let array = used.get(source);
                storage.gather(array.dtype().size(), buffer.bytes(), array.bytes_mut());
            }
        }
    }
}

/// Elements of one place that differ.
fn repeated(t: &TensorData, array: &Tensor, o: &Overlap) -> Diagnostic {
    let shown = |at: &[u64]| {
        let at: Vec<usize> = at.iter().map(|&n| n as usize).collect();
        let bits = array.offset(&at).map_or(0, |k| array.get_bits(k));
        format!("{at:?} = {}", ptoc_tensor::scalar::format_bits(array.dtype(), bits))
    };
    let message = format!("the layout of `{}` repeats elements, and its array does not", t.name);
    Diagnostic::error(codes::REPEATED_ELEMENTS, t.span, message)
        .with_label(format!("{} and {} are one element", shown(&o.first), shown(&o.second)))
        .with_help("give an array that is equal along the modes of stride 0, such as one of `np.broadcast_to`")
}
