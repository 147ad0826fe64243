//! Storage of tensors: bounds, marks of what was written, and who used which element.

use cranelift_entity::PrimaryMap;
use ptoc_ir::tile::{Kernel, TensorDir, TensorId};
use ptoc_layout::Storage;
use ptoc_tensor::DType;
use std::ops::Range;

/// Why an element cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TensorFault {
    /// The index is below 0 or not below the number of elements.
    Outside,
    /// Nothing wrote it.
    Poison,
    /// That block used it too: one of the two writes, or one reads plainly what the other updates.
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

/// More than one block.
pub(crate) const MANY: u32 = u32::MAX;

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
    pub data: Vec<u8>,
    /// Bytes that a mark is for: an element's, until something touches a part of an element.
    grain: usize,
    /// Per grain; empty if all count as written.
    written: Vec<bool>,
    /// Per grain; empty if nobody asks.
    users: Vec<Users>,
    /// How an array lies in it, where that is not its C order.
    storage: Option<Storage>,
    /// Per element, whether the array has it. `None` if it fills all.
    members: Option<Vec<bool>>,
}

/// What marks of both kinds take, a grain.
pub(super) const MARKS: u64 = 1 + size_of::<Users>() as u64;

impl Tensor {
    /// `data` is of the right size.
    pub fn new(dtype: DType, dir: TensorDir, shape: Vec<u64>, data: Vec<u8>, races: bool) -> Tensor {
        let len = data.len() / dtype.size();
        let poisoned = matches!(dir, TensorDir::Out | TensorDir::Scratch);
        let watched = races && matches!(dir, TensorDir::Out | TensorDir::InOut);
        Tensor {
            dtype,
            dir,
            shape,
            data,
            grain: dtype.size(),
            written: if poisoned { vec![false; len] } else { Vec::new() },
            users: if watched { vec![Users::default(); len] } else { Vec::new() },
            storage: None,
            members: None,
        }
    }

    /// An array lies in it so: what no element of the array reaches does not belong to the tensor.
    pub fn stored(self, storage: &Storage) -> Tensor {
        if storage.len() != (self.data.len() / self.dtype.size()) as u64 {
            return self;
        }
        Tensor { members: storage.members(), storage: Some(storage.clone()), ..self }
    }

    /// Whether all of these bytes belong to elements.
    fn is_inside(&self, bytes: &Range<usize>) -> bool {
        let size = self.dtype.size();
        let Some(members) = &self.members else { return true };
        members.get(bytes.start / size..bytes.end.div_ceil(size)).is_some_and(|m| !m.contains(&false))
    }

    /// A block starts: its scratch is poison.
    pub fn reset_scratch(&mut self) {
        if self.dir == TensorDir::Scratch {
            self.written.fill(false);
        }
    }

    /// The bytes of element number `index`, if elements are of `dtype`.
    fn range(&self, dtype: DType, index: i64) -> Result<Range<usize>, TensorFault> {
        let size = dtype.size();
        let start = usize::try_from(index).ok().and_then(|i| i.checked_mul(size));
        let start = start.filter(|s| s.checked_add(size).is_some_and(|end| end <= self.data.len()));
        start.map(|s| s..s + size).filter(|bytes| self.is_inside(bytes)).ok_or(TensorFault::Outside)
    }

    /// Further bytes that marks will take if elements of `dtype` are used: they may be smaller than a grain, or lie
    /// across two.
    pub fn refinement(&self, dtype: DType) -> u64 {
        let marked = !self.written.is_empty() || !self.users.is_empty();
        if !marked || dtype.size().is_multiple_of(self.grain) {
            return 0;
        }
        (self.data.len() - self.data.len() / self.grain) as u64 * MARKS
    }

    /// From now on every byte has marks of its own.
    pub fn refine(&mut self) {
        let n = std::mem::replace(&mut self.grain, 1);
        self.written = self.written.iter().flat_map(|&w| std::iter::repeat_n(w, n)).collect();
        self.users = self.users.iter().flat_map(|&u| std::iter::repeat_n(u, n)).collect();
    }

    /// The grains of these bytes.
    fn grains(&self, bytes: &Range<usize>) -> Range<usize> {
        bytes.start / self.grain..bytes.end.div_ceil(self.grain)
    }

    fn get(&self, dtype: DType, at: Range<usize>) -> u64 {
        let mut raw = [0; 8];
        raw[..at.len()].copy_from_slice(&self.data[at]);
        let bits = u64::from_le_bytes(raw);
        // Any byte but 0 is true.
        if dtype == DType::Bool { u64::from(bits != 0) } else { bits }
    }

    fn put(&mut self, at: Range<usize>, bits: u64) {
        let grains = self.grains(&at);
        if let Some(marks) = self.written.get_mut(grains) {
            marks.fill(true);
        }
        let size = at.len();
        self.data[at].copy_from_slice(&bits.to_le_bytes()[..size]);
    }

    /// Notes a user of each grain, unless another block's use forbids it.
    fn claim(
        &mut self,
        at: &Range<usize>,
        rivals: impl Fn(&Users) -> Option<u32>,
        mark: impl Fn(&mut Users),
    ) -> Result<(), TensorFault> {
        let grains = self.grains(at);
        let Some(users) = self.users.get_mut(grains) else { return Ok(()) };
        // A race explains a missing value better than poison does, so it goes first.
        if let Some(other) = users.iter().find_map(rivals) {
            return Err(TensorFault::Race(if other == MANY { MANY } else { other - 1 }));
        }
        users.iter_mut().for_each(mark);
        Ok(())
    }

    fn initialised(&self, at: &Range<usize>) -> Result<(), TensorFault> {
        match self.written.get(self.grains(at)) {
            Some(marks) if marks.contains(&false) => Err(TensorFault::Poison),
            _ => Ok(()),
        }
    }

    /// Reads element number `index` of those of `dtype`, for block number `block`.
    pub fn read_as(&mut self, dtype: DType, index: i64, block: u32) -> Result<u64, TensorFault> {
        let at = self.range(dtype, index)?;
        let me = block + 1;
        let rivals = |u: &Users| [u.writer, u.atomic].into_iter().find_map(|user| Users::other(user, me));
        self.claim(&at, rivals, |u| Users::add(&mut u.reader, me))?;
        self.initialised(&at)?;
        Ok(self.get(dtype, at))
    }

    /// Reads an element without a trace.
    pub fn peek(&self, dtype: DType, index: i64) -> Result<u64, TensorFault> {
        let at = self.range(dtype, index)?;
        self.initialised(&at)?;
        Ok(self.get(dtype, at))
    }

    /// Writes element number `index` of those of `dtype`, for block number `block`.
    pub fn write_as(&mut self, dtype: DType, index: i64, bits: u64, block: u32) -> Result<(), TensorFault> {
        let at = self.range(dtype, index)?;
        let me = block + 1;
        let rivals = |u: &Users| [u.writer, u.reader, u.atomic].into_iter().find_map(|user| Users::other(user, me));
        self.claim(&at, rivals, |u| u.writer = me)?;
        self.put(at, bits);
        Ok(())
    }

    /// Replaces an element by what `f` makes of it (`None` leaves it); returns the old value.
    pub fn update(&mut self, index: i64, block: u32, f: impl FnOnce(u64) -> Option<u64>) -> Result<u64, TensorFault> {
        let at = self.range(self.dtype, index)?;
        let me = block + 1;
        let rivals = |u: &Users| [u.writer, u.reader].into_iter().find_map(|user| Users::other(user, me));
        self.claim(&at, rivals, |u| Users::add(&mut u.atomic, me))?;
        self.initialised(&at)?;
        let old = self.get(self.dtype, at.clone());
        if let Some(new) = f(old) {
            self.put(at, new);
        }
        Ok(old)
    }

    /// Number of elements that nothing wrote, and the first one.
    pub fn unwritten(&self) -> Option<(u64, u64)> {
        let elements = self.written.chunks(self.dtype.size() / self.grain).map(|marks| marks.contains(&false));
        let is_member = |at: usize| self.members.as_ref().is_none_or(|m| m.get(at) == Some(&true));
        let mut missing = elements.enumerate().filter(|&(at, missing)| missing && is_member(at));
        let first = missing.next()?.0;
        Some((1 + missing.count() as u64, first as u64))
    }

    /// Coordinates of an element.
    pub fn coordinates(&self, index: u64) -> Vec<u64> {
        coordinates(self.storage.as_ref(), &self.shape, index)
    }
}

/// Coordinates of an element of a tensor of that shape, in which an array may lie otherwise than in its C order.
pub fn coordinates(storage: Option<&Storage>, shape: &[u64], index: u64) -> Vec<u64> {
    if let Some(at) = storage.and_then(|s| s.coordinate_at(index)) {
        return at;
    }
    let mut rest = index;
    let mut at: Vec<u64> = (shape.iter().rev())
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

/// All tensors, scratch included.
pub(super) type Tensors = PrimaryMap<TensorId, Tensor>;

/// A tensor's name for messages.
pub(super) fn name(kernel: &Kernel, tensor: TensorId) -> &str {
    &kernel.tensors[tensor].name
}
