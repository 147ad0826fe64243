//! Arrays on the device, which stay there between the launches of a plan: each is allocated once, goes there when the
//! host has something newer, and comes back when the host wants to see it.

use crate::launch::Used;
use ptoc_analysis::TensorSource;
use ptoc_cuda::{Buffer, Context, Error};
use ptoc_tensor::Tensor;
use std::cell::RefCell;
use std::collections::HashMap;

/// Which array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Place {
    /// A tensor that launches choose from.
    Tensor(TensorSource),
    /// The buffer of an argument with a layout of its own, by launch and argument: it is made for one launch.
    Laid(usize, usize),
    /// Where kernels report failed checks.
    Status,
    /// What does not fit shared memory.
    Scratch,
}

/// Which side has what was written last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Newer {
    Host,
    Device,
    Neither,
}

struct Array {
    memory: Buffer<'static>,
    newer: Newer,
}

/// All of a plan's.
#[derive(Default)]
pub(super) struct Arrays(RefCell<HashMap<Place, Array>>);

impl Arrays {
    /// The address of an array of so many bytes at least, which are not those of an array of other size.
    pub(super) fn address(&self, context: &'static Context<'static>, place: Place, bytes: usize) -> Result<u64, Error> {
        let mut arrays = self.0.borrow_mut();
        // What is empty has an address, too.
        let bytes = bytes.max(1);
        if let Some(array) = arrays.get(&place).filter(|array| array.memory.bytes() >= bytes) {
            return Ok(array.memory.address());
        }
        arrays.remove(&place);
        let memory = context.alloc(bytes)?;
        let address = memory.address();
        arrays.insert(place, Array { memory, newer: Newer::Host });
        Ok(address)
    }

    /// Copies the host's bytes to an array that has an address, if they are newer; `needed` where the kernel sees them.
    pub(super) fn upload(&self, place: Place, bytes: &[u8], needed: bool) -> Result<(), Error> {
        let mut arrays = self.0.borrow_mut();
        let Some(array) = arrays.get_mut(&place).filter(|array| array.newer == Newer::Host) else { return Ok(()) };
        if needed && !bytes.is_empty() {
            array.memory.write(bytes)?;
        }
        array.newer = Newer::Neither;
        Ok(())
    }

    /// A kernel has written it.
    pub(super) fn written(&self, place: Place) {
        if let Some(array) = self.0.borrow_mut().get_mut(&place) {
            array.newer = Newer::Device;
        }
    }

    /// The host has written it, or takes other arrays from here on.
    pub(super) fn changed(&self, is: impl Fn(Place) -> bool) {
        self.0
            .borrow_mut()
            .iter_mut()
            .filter(|(place, _)| is(**place))
            .for_each(|(_, array)| array.newer = Newer::Host);
    }

    /// Fills a slice with what a kernel has left, if the host does not have it.
    pub(super) fn download(&self, place: Place, bytes: &mut [u8]) -> Result<(), Error> {
        let mut arrays = self.0.borrow_mut();
        let Some(array) = arrays.get_mut(&place).filter(|array| array.newer == Newer::Device) else { return Ok(()) };
        if !bytes.is_empty() {
            array.memory.read_to(bytes)?;
        }
        array.newer = Newer::Neither;
        Ok(())
    }

    /// Brings these tensors back to the host.
    pub(super) fn fetch(&self, used: &mut Used<'_>, is: impl Fn(TensorSource) -> bool) -> Result<(), Error> {
        let places: Vec<Place> = self.0.borrow().keys().copied().collect();
        for place in places {
            if let Place::Tensor(source) = place
                && is(source)
            {
                self.download(place, Tensor::bytes_mut(used.get(source)))?;
            }
        }
        Ok(())
    }
}
