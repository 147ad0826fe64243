//! Shadow of tensors: what has been written, and which blocks use what. Blocks run on several threads.

use crate::tensors::{MANY, TensorFault};
use ptoc_ir::tile::TensorDir;
use ptoc_layout::Storage;
use ptoc_tensor::DType;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// How an element is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ElementUse {
    Read,
    Write,
    Atomic,
}

impl ElementUse {
    /// In words.
    pub fn verb(self) -> &'static str {
        match self {
            ElementUse::Read => "read",
            ElementUse::Write => "write",
            ElementUse::Atomic => "atomic access",
        }
    }
}

/// Elements at even distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementRun {
    pub start: i64,
    pub step: i64,
    pub count: u64,
}

impl ElementRun {
    /// Number of element `k`, which is below `count`; beyond all tensors if that is no number.
    pub fn at(&self, k: u64) -> i64 {
        let at = i128::from(self.start) + i128::from(self.step) * i128::from(k);
        i64::try_from(at).unwrap_or(-1)
    }
}

/// Grains that share a lock.
const SHARD: usize = 4096;

/// Blocks that use each grain of a shard: their numbers plus 1; 0 is none, [`MANY`] several. Empty until the first such
/// use.
#[derive(Default)]
struct Users {
    writer: Vec<u32>,
    reader: Vec<u32>,
    atomic: Vec<u32>,
}

/// Grains of a shard in which a use fails, and why.
type Failed = (usize, TensorFault);

impl Users {
    /// Notes that block `me` (its number plus 1) uses grains, unless another block's use forbids it, or nothing wrote
    /// them. The first grain that cannot be used, and why.
    fn claim(&mut self, kind: ElementUse, of: Range<usize>, me: u32, out: bool) -> Result<(), Failed> {
        let Users { writer, reader, atomic } = self;
        // Zeroed memory is fresh from the system, for the most part.
        let own = |marks: &mut Vec<u32>| {
            if marks.is_empty() {
                *marks = vec![0; SHARD];
            }
        };
        if kind == ElementUse::Write {
            own(writer);
            let all = [&*writer, reader, atomic];
            if all.iter().any(|users| is_shared(users, &of, me)) {
                return first(of, |grain| all.iter().find_map(|users| race(users, grain, me)));
            }
            writer[of].fill(me);
            return Ok(());
        }
        // Two reads go together, and two atomic updates; a read and an update do not.
        let (users, others) = if kind == ElementUse::Read { (reader, atomic) } else { (atomic, reader) };
        own(users);
        users[of.clone()].iter_mut().for_each(|u| *u = if *u == 0 || *u == me { me } else { MANY });
        let all = [&*writer, others];
        let missing = |grain: usize| out && writer.get(grain).is_none_or(|user| *user == 0);
        if all.iter().any(|users| is_shared(users, &of, me)) || out && of.clone().any(missing) {
            // A race explains a missing value better than poison does, so it goes first.
            let poison = |grain: usize| missing(grain).then_some(TensorFault::Poison);
            return first(of, |grain| all.iter().find_map(|users| race(users, grain, me)).or_else(|| poison(grain)));
        }
        Ok(())
    }
}

/// Whether another block uses one of these grains. Rows have none but in wrong programs, so they are looked at without
/// a branch for each.
fn is_shared(marks: &[u32], of: &Range<usize>, me: u32) -> bool {
    let row = marks.get(of.clone()).unwrap_or_default();
    row.iter().fold(false, |any, &user| any | ((user != 0) & (user != me)))
}

/// The race with another block that uses the grain, if there is one.
fn race(marks: &[u32], grain: usize, me: u32) -> Option<TensorFault> {
    let user = *marks.get(grain)?;
    (user != 0 && user != me).then(|| TensorFault::Race(if user == MANY { MANY } else { user - 1 }))
}

/// The first grain with a fault.
fn first(mut of: Range<usize>, fault: impl Fn(usize) -> Option<TensorFault>) -> Result<(), Failed> {
    of.find_map(|grain| Some((grain, fault(grain)?))).map_or(Ok(()), Err)
}

/// One tensor.
pub(super) struct Tensor {
    pub dtype: DType,
    pub dir: TensorDir,
    shape: Vec<u64>,
    pub bytes: usize,
    /// Bytes that a mark is for: an element's, or 1 if something touches a part of an element.
    grain: usize,
    /// One for [`SHARD`] grains each: a lock for a row costs less than an ordered access for each of its elements.
    shards: Vec<Mutex<Users>>,
    /// How an array lies in it, where that is not its C order.
    storage: Option<Storage>,
    /// Per element, whether the array has it. `None` if it fills all.
    members: Option<Vec<bool>>,
}

impl Tensor {
    /// `uses` are all that the kernel makes of it: how, and the size of the elements that its bytes are taken for.
    ///
    /// # Errors
    /// Where there is no room for its marks: how many bytes they take.
    pub fn new(dtype: DType, dir: TensorDir, shape: Vec<u64>, uses: &[(ElementUse, usize)]) -> Result<Tensor, u64> {
        let bytes = shape.iter().fold(dtype.size() as u64, |n, &e| n.saturating_mul(e));
        let Ok(bytes) = usize::try_from(bytes) else { return Err(bytes) };
        let elements = bytes / dtype.size();
        let whole = uses.iter().all(|(_, size)| size.is_multiple_of(dtype.size()));
        let (grain, grains) = if whole { (dtype.size(), elements) } else { (1, bytes) };
        let mut shards = Vec::new();
        if matches!(dir, TensorDir::Out | TensorDir::InOut) {
            let kinds = [ElementUse::Read, ElementUse::Write, ElementUse::Atomic];
            let marks = kinds.into_iter().filter(|kind| uses.iter().any(|(k, _)| k == kind)).count();
            let room = grains.saturating_mul(marks).saturating_mul(size_of::<u32>());
            let count = grains.div_ceil(SHARD);
            if !ptoc_tensor::memory::holds(room) || shards.try_reserve_exact(count).is_err() {
                return Err(room as u64);
            }
            shards.resize_with(count, Mutex::default);
        }
        Ok(Tensor { dtype, dir, shape, bytes, grain, shards, storage: None, members: None })
    }

    /// An array lies in it so: what no element of the array reaches does not belong to the tensor.
    pub fn stored(self, storage: Option<&Storage>) -> Tensor {
        match storage.filter(|s| s.len() == (self.bytes / self.dtype.size()) as u64) {
            Some(storage) => Tensor { members: storage.members(), storage: Some(storage.clone()), ..self },
            None => self,
        }
    }

    /// Whether nobody writes it, and an array fills it.
    pub fn is_constant(&self) -> bool {
        self.dir == TensorDir::In && self.members.is_none()
    }

    /// How many elements it has.
    pub fn elements(&self) -> usize {
        self.bytes / self.dtype.size()
    }

    /// Marks that a block needs for it, if it is a buffer of the block's own.
    pub fn own_marks(&self) -> usize {
        if self.dir == TensorDir::Scratch { self.bytes / self.grain } else { 0 }
    }

    /// Uses a run of elements of `size` bytes, for block number `block`; `own` are the block's marks of a buffer of its
    /// own. The first element that cannot be used, and why.
    pub fn run(
        &self,
        kind: ElementUse,
        size: usize,
        run: ElementRun,
        block: u32,
        own: &mut [u8],
    ) -> Result<(), (u64, TensorFault)> {
        if run.count == 0 {
            return Ok(());
        }
        let (a, b) = (run.start, run.at(run.count - 1));
        let inside = self.range(size, a.min(b)).is_ok() && self.range(size, a.max(b)).is_ok();
        if inside && self.members.is_none() {
            match self.dir {
                TensorDir::In => return Ok(()),
                // Elements of another size than the marks'.
                _ if size != self.grain => {}
                TensorDir::Scratch if kind == ElementUse::Write && run.step == 1 => {
                    own[a as usize..=b as usize].fill(1);
                    return Ok(());
                }
                TensorDir::Scratch => {}
                TensorDir::Out | TensorDir::InOut => {
                    return self.claims(kind, run, block + 1);
                }
            }
        }
        (0..run.count).try_for_each(|k| self.one(kind, size, run.at(k), block, own).map_err(|fault| (k, fault)))
    }

    /// Uses element number `index` of those of `size` bytes.
    pub fn one(
        &self,
        kind: ElementUse,
        size: usize,
        index: i64,
        block: u32,
        own: &mut [u8],
    ) -> Result<(), TensorFault> {
        let bytes = self.range(size, index)?;
        let grains = bytes.start / self.grain..bytes.end.div_ceil(self.grain);
        match self.dir {
            TensorDir::In => Ok(()),
            TensorDir::Scratch => match kind {
                ElementUse::Write => {
                    own[grains].fill(1);
                    Ok(())
                }
                _ => {
                    if own[grains].contains(&0) {
                        Err(TensorFault::Poison)
                    } else {
                        Ok(())
                    }
                }
            },
            TensorDir::Out | TensorDir::InOut => {
                let run = ElementRun { start: grains.start as i64, step: 1, count: grains.len() as u64 };
                self.claims(kind, run, block + 1).map_err(|(_, fault)| fault)
            }
        }
    }

    /// The bytes of element number `index`, if elements are of `size` bytes.
    fn range(&self, size: usize, index: i64) -> Result<Range<usize>, TensorFault> {
        let start = usize::try_from(index).ok().and_then(|i| i.checked_mul(size));
        let start =
            start.filter(|s| s.checked_add(size).is_some_and(|end| end <= self.bytes)).ok_or(TensorFault::Outside)?;
        match &self.members {
            Some(members) => {
                let of = start / self.dtype.size()..(start + size).div_ceil(self.dtype.size());
                let all = members.get(of).is_some_and(|m| !m.contains(&false));
                if all { Ok(start..start + size) } else { Err(TensorFault::Outside) }
            }
            None => Ok(start..start + size),
        }
    }

    /// Notes that block `me` (its number plus 1) uses `count` grains, `step` apart: the first that cannot be used.
    fn claims(&self, kind: ElementUse, run: ElementRun, me: u32) -> Result<(), (u64, TensorFault)> {
        let out = self.dir == TensorDir::Out;
        // All of the run is inside of the tensor.
        let place_of = |k: u64| run.start.wrapping_add(run.step.wrapping_mul(k as i64)) as usize;
        // Neighbours at once, others one by one.
        let at_once = if run.step == 1 { SHARD as u64 } else { 1 };
        let mut k = 0;
        while k < run.count {
            let at = place_of(k);
            let (shard, place) = (at / SHARD, at % SHARD);
            let mut users = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
            // The lock is kept as long as the run stays in the shard.
            let mut place = place;
            loop {
                let count = at_once.min(run.count - k).min((SHARD - place) as u64);
                users
                    .claim(kind, place..place + count as usize, me, out)
                    .map_err(|(failed, fault)| (k + (failed - place) as u64, fault))?;
                k += count;
                let next = place_of(k);
                if k == run.count || next / SHARD != shard {
                    break;
                }
                place = next % SHARD;
            }
        }
        Ok(())
    }

    /// Number of elements that nothing wrote, and the first one.
    pub fn unwritten(&self) -> Option<(u64, u64)> {
        if self.dir != TensorDir::Out {
            return None;
        }
        let shards = || self.shards.iter().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        let mut written: Vec<bool> = Vec::new();
        let grains = self.bytes / self.grain;
        if shards().enumerate().all(|(n, users)| {
            let count = SHARD.min(grains - n * SHARD);
            users.writer.get(..count).is_some_and(|marks| !marks.contains(&0))
        }) {
            return None;
        }
        for users in shards() {
            written.extend((0..SHARD).map(|k| users.writer.get(k).is_some_and(|user| *user != 0)));
        }
        written.truncate(grains);
        let is_member = |at: usize| self.members.as_ref().is_none_or(|m| m.get(at) == Some(&true));
        let elements = written.chunks(self.dtype.size() / self.grain).map(|grains| grains.contains(&false)).enumerate();
        let mut missing = elements.filter(|&(at, missing)| missing && is_member(at));
        let first = missing.next()?.0;
        Some((1 + missing.count() as u64, first as u64))
    }

    /// Coordinates of an element.
    pub fn coordinates(&self, index: u64) -> Vec<u64> {
        crate::tensors::coordinates(self.storage.as_ref(), &self.shape, index)
    }
}
