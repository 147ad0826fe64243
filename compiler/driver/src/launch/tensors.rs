//! The tensors of a launch: those that it chooses from, windows of them, and buffers for what does not lie there as the
//! kernel wants it.

use super::planned::PlannedLaunch;
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{TensorData, TensorDir, TensorId};
use ptoc_layout::{Overlap, Storage};
use ptoc_tensor::{DType, Tensor, TensorError};
use std::ops::Range;

/// The tensors that launches choose from.
pub struct Used<'t> {
    /// Arguments, then tensors of the program; those that nobody has now are `None`.
    slots: Vec<Option<&'t mut Tensor>>,
    /// How many arguments there are.
    args: usize,
}

impl<'t> Used<'t> {
    /// The arguments of a plan, and its own tensors.
    pub fn of(tensors: &'t mut [Tensor], locals: &'t mut [Tensor]) -> Used<'t> {
        let args = tensors.len();
        Used { slots: tensors.iter_mut().chain(locals).map(Some).collect(), args }
    }

    /// Of a program's arrays, of which some are with the launch now; the first `args` are arguments.
    pub fn of_some(arrays: &'t mut [Option<Tensor>], args: usize) -> Used<'t> {
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
}

/// Elements of a tensor that a launch gets for an argument.
#[derive(Clone, Debug)]
pub struct ArgWindow {
    /// Places in the tensor's C order.
    pub elements: Storage,
    /// Its bytes, if the launch can have them in place: elements side by side that begin at a cache line.
    pub bytes: Option<Range<usize>>,
}

/// Bytes of a cache line, at which arrays begin: code may rely on it.
const LINE: usize = 64;

impl ArgWindow {
    pub(crate) fn new(elements: Storage, dtype: DType) -> ArgWindow {
        let width = dtype.size();
        let begin = elements.contiguous().map(|at| at as usize * width).filter(|begin| begin % LINE == 0);
        let bytes = begin.map(|begin| begin..begin + elements.size() as usize * width);
        ArgWindow { elements, bytes }
    }
}

impl PlannedLaunch {
    /// What the launch works on for an argument: its buffer, or bytes of the tensor.
    pub fn bytes<'a>(
        &self,
        argument: usize,
        used: &'a mut Used<'_>,
        buffers: &'a mut [Option<Tensor>],
    ) -> &'a mut [u8] {
        match &mut buffers[argument] {
            Some(buffer) => buffer.bytes_mut(),
            None => &mut used.get(self.tensors[argument]).bytes_mut()[self.range(argument)],
        }
    }

    /// The bytes of its tensor that an argument without a buffer is.
    pub fn range(&self, argument: usize) -> Range<usize> {
        match &self.windows[argument] {
            Some(ArgWindow { bytes: Some(range), .. }) => range.clone(),
            _ => {
                let elements: usize = self.shapes[argument].iter().product();
                0..elements * self.dtype(argument).size()
            }
        }
    }

    /// Element type of an argument.
    pub fn dtype(&self, argument: usize) -> DType {
        self.kernel.tensors[TensorId::from_u32(argument as u32)].dtype
    }

    /// The elements of a window as an array of their own.
    pub(super) fn gathered(&self, n: usize, window: &ArgWindow, used: &mut Used<'_>) -> Result<Tensor, TensorError> {
        let mut array = Tensor::zeros(self.dtype(n), &self.shapes[n])?;
        let whole = used.get(self.tensors[n]);
        window.elements.gather(array.dtype().size(), whole.bytes(), array.bytes_mut());
        Ok(array)
    }

    /// Whether the launch has a buffer for this argument.
    fn has_buffer(&self, argument: usize) -> bool {
        let window = &self.windows[argument];
        self.storage[argument].is_some() || window.as_ref().is_some_and(|w| w.bytes.is_none())
    }

    /// Whether the launch has elements of this tensor in a buffer.
    pub(crate) fn lays_out(&self, source: TensorSource) -> bool {
        (0..self.tensors.len()).any(|n| self.tensors[n] == source && self.has_buffer(n))
    }

    /// The buffers of arguments that have a layout, or are windows that are not in place, with what they begin with.
    ///
    /// # Errors
    /// A buffer that does not fit memory.
    pub fn buffers(&self, used: &mut Used<'_>) -> Result<Vec<Option<Tensor>>, Box<Diagnostic>> {
        let mut buffers = Vec::new();
        for (n, t) in self.kernel.tensors.values().take(self.tensors.len()).enumerate() {
            let failed = |e: TensorError| {
                let message = format!("the buffer of `{}`: {e}", t.name);
                Box::new(Diagnostic::error(crate::files::code(e.code()), t.span, message))
            };
            if !self.has_buffer(n) {
                buffers.push(None);
                continue;
            }
            let array = match &self.windows[n] {
                None => None,
                Some(window) => Some(self.gathered(n, window, used).map_err(failed)?),
            };
            let Some(storage) = &self.storage[n] else {
                buffers.push(array);
                continue;
            };
            let array = array.as_ref().unwrap_or(used.get(self.tensors[n]));
            let length = usize::try_from(storage.len()).unwrap_or(usize::MAX);
            let mut buffer = Tensor::zeros(t.dtype, &[length]).map_err(failed)?;
            if t.dir != TensorDir::Out {
                let width = t.dtype.size();
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
    pub fn collect(&self, used: &mut Used<'_>, buffers: &[Option<Tensor>]) {
        for (n, t) in self.kernel.tensors.values().take(self.tensors.len()).enumerate() {
            let Some(Some(buffer)) = buffers.get(n) else { continue };
            if t.dir == TensorDir::In {
                continue;
            }
            let width = t.dtype.size();
            let whole = used.get(self.tensors[n]);
            match (&self.storage[n], &self.windows[n]) {
                (Some(storage), None) => storage.gather(width, buffer.bytes(), whole.bytes_mut()),
                (None, Some(window)) => window.elements.scatter(width, buffer.bytes(), whole.bytes_mut()),
                (Some(storage), Some(window)) => {
                    let mut array = vec![0; storage.size() as usize * width];
                    storage.gather(width, buffer.bytes(), &mut array);
                    window.elements.scatter(width, &array, whole.bytes_mut());
                }
                (None, None) => {}
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
