//! Storage of tensors: bounds, marks of what was written, and who used which element.

use crate::tile::{Kernel, TensorDir, TensorId};
use cranelift_entity::PrimaryMap;
use ptoc_tensor::DType;

/// Why an element cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The index is below 0 or not below the number of elements.
    Outside,
    /// Nothing wrote it.
    Poison,
    /// That block used it too, and one of the two writes.
    Race(u32),
}

/// Who used an element: block numbers plus 1; 0 is none.
#[derive(Clone, Copy, Default)]
struct Users {
    writer: u32,
    /// A block that read it; `MANY` after a second.
    reader: u32,
    atomic: u32,
}

const MANY: u32 = u32::MAX;

impl Users {
    /// A block other than `me` that did it.
    fn other(user: u32, me: u32) -> Option<u32> {
        (user != 0 && user != me).then_some(user)
    }

    fn add(user: &mut u32, me: u32) {
        *user = if *user == 0 || *user == me { me } else { MANY };
    }
}

/// One tensor.
pub(super) struct Tensor {
    pub dtype: DType,
    pub dir: TensorDir,
    pub shape: Vec<u64>,
    /// Number of elements.
    pub len: u64,
    pub data: Vec<u8>,
    /// Per element; empty if all count as written.
    written: Vec<bool>,
    /// Per element; empty if nobody asks.
    users: Vec<Users>,
}

impl Tensor {
    /// `data` is of the right size.
    pub fn new(dtype: DType, dir: TensorDir, shape: Vec<u64>, data: Vec<u8>, races: bool) -> Tensor {
        let len = (data.len() / dtype.size()) as u64;
        let poisoned = matches!(dir, TensorDir::Out | TensorDir::Scratch);
        let watched = races && matches!(dir, TensorDir::Out | TensorDir::InOut);
        Tensor {
            dtype,
            dir,
            shape,
            len,
            data,
            written: if poisoned { vec![false; len as usize] } else { Vec::new() },
            users: if watched { vec![Users::default(); len as usize] } else { Vec::new() },
        }
    }

    /// A block starts: its scratch is poison.
    pub fn reset_scratch(&mut self) {
        if self.dir == TensorDir::Scratch {
            self.written.fill(false);
        }
    }

    fn at(&self, index: i64) -> Result<usize, Fault> {
        usize::try_from(index).ok().filter(|&i| (i as u64) < self.len).ok_or(Fault::Outside)
    }

    fn get(&self, at: usize) -> u64 {
        let size = self.dtype.size();
        let mut raw = [0; 8];
        raw[..size].copy_from_slice(&self.data[at * size..(at + 1) * size]);
        let bits = u64::from_le_bytes(raw);
        // Any byte but 0 is true.
        if self.dtype == DType::Bool { u64::from(bits != 0) } else { bits }
    }

    fn put(&mut self, at: usize, bits: u64) {
        let size = self.dtype.size();
        self.data[at * size..(at + 1) * size].copy_from_slice(&bits.to_le_bytes()[..size]);
        if let Some(mark) = self.written.get_mut(at) {
            *mark = true;
        }
    }

    /// Reads an element for block number `block`.
    pub fn read(&mut self, index: i64, block: u32) -> Result<u64, Fault> {
        let at = self.at(index)?;
        // A race explains a missing value better than poison does, so it goes first.
        if let Some(users) = self.users.get_mut(at) {
            if let Some(other) = Users::other(users.writer, block + 1) {
                return Err(Fault::Race(other - 1));
            }
            Users::add(&mut users.reader, block + 1);
        }
        if self.written.get(at) == Some(&false) {
            return Err(Fault::Poison);
        }
        Ok(self.get(at))
    }

    /// Writes an element for block number `block`.
    pub fn write(&mut self, index: i64, bits: u64, block: u32) -> Result<(), Fault> {
        let at = self.at(index)?;
        if let Some(users) = self.users.get_mut(at) {
            for user in [users.writer, users.reader, users.atomic] {
                if let Some(other) = Users::other(user, block + 1) {
                    return Err(Fault::Race(if other == MANY { MANY } else { other - 1 }));
                }
            }
            users.writer = block + 1;
        }
        self.put(at, bits);
        Ok(())
    }

    /// Replaces an element by what `f` makes of it (`None` leaves it); returns the old value.
    pub fn update(&mut self, index: i64, block: u32, f: impl FnOnce(u64) -> Option<u64>) -> Result<u64, Fault> {
        let at = self.at(index)?;
        if let Some(users) = self.users.get_mut(at) {
            if let Some(other) = Users::other(users.writer, block + 1) {
                return Err(Fault::Race(other - 1));
            }
            Users::add(&mut users.atomic, block + 1);
        }
        if self.written.get(at) == Some(&false) {
            return Err(Fault::Poison);
        }
        let old = self.get(at);
        if let Some(new) = f(old) {
            self.put(at, new);
        }
        Ok(old)
    }

    /// Number of elements that nothing wrote, and the first one.
    pub fn unwritten(&self) -> Option<(u64, u64)> {
        let first = self.written.iter().position(|&w| !w)?;
        Some((self.written.iter().filter(|&&w| !w).count() as u64, first as u64))
    }

    /// Coordinates of an element.
    pub fn coordinates(&self, index: u64) -> Vec<u64> {
        let mut rest = index;
        let mut at: Vec<u64> = self
            .shape
            .iter()
            .rev()
            .map(|&n| {
                let n = n.max(1);
                let x = rest % n;
                rest /= n;
                x
            })
            .collect();
        at.reverse();
        at
    }
}

/// All tensors, scratch included.
pub(super) type Tensors = PrimaryMap<TensorId, Tensor>;

/// A tensor's name for messages.
pub(super) fn name(kernel: &Kernel, tensor: TensorId) -> &str {
    &kernel.tensors[tensor].name
}
