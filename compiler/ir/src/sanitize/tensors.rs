//! Shadow of tensors: what has been written, and which blocks use what. Blocks run on several threads.

use crate::interp::tensors::{Fault, MANY};
use crate::tile::TensorDir;
use ptoc_layout::Storage;
use ptoc_tensor::DType;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// How an element is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
}

impl Kind {
    /// In words.
    pub fn verb(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Atomic => "atomic access",
        }
    }
}

/// Elements at even distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub start: i64,
    pub step: i64,
    pub count: u64,
}

impl Run {
    /// Number of element `k`, which is below `count`; beyond all tensors if that is no number.
    pub fn at(&self, k: u64) -> i64 {
        let at = i128::from(self.start) + i128::from(self.step) * i128::from(k);
        i64::try_from(at).unwrap_or(-1)
    }
}

/// Blocks that use a grain: their numbers plus 1; 0 is none, [`MANY`] several. Empty where the kernel has no such use.
#[derive(Default)]
struct Users {
    writer: Vec<AtomicU32>,
    reader: Vec<AtomicU32>,
    atomic: Vec<AtomicU32>,
}

/// One tensor.
pub(super) struct Tensor {
    pub dtype: DType,
    pub dir: TensorDir,
    shape: Vec<u64>,
    pub bytes: usize,
    /// Bytes that a mark is for: an element's, or 1 if something touches a part of an element.
    grain: usize,
    users: Users,
    /// How an array lies in it, where that is not its C order.
    storage: Option<Storage>,
    /// Per element: does the array have it? `None` if it fills all.
    members: Option<Vec<bool>>,
    /// Do blocks run at the same time?
    threads: bool,
}

impl Tensor {
    /// `uses` are all that the kernel makes of it: how, and the size of the elements that its bytes are taken for.
    ///
    /// # Errors
    /// Where there is no room for its marks: how many bytes they take.
    pub fn new(
        dtype: DType,
        dir: TensorDir,
        shape: Vec<u64>,
        uses: &[(Kind, usize)],
        threads: bool,
    ) -> Result<Tensor, u64> {
        let bytes = shape.iter().fold(dtype.size() as u64, |n, &e| n.saturating_mul(e));
        let Ok(bytes) = usize::try_from(bytes) else { return Err(bytes) };
        let elements = bytes / dtype.size();
        let whole = uses.iter().all(|(_, size)| size.is_multiple_of(dtype.size()));
        let (grain, grains) = if whole { (dtype.size(), elements) } else { (1, bytes) };
        let mut users = Users::default();
        if matches!(dir, TensorDir::Out | TensorDir::InOut) {
            let marks = |kind: Kind| -> Result<Vec<AtomicU32>, u64> {
                let wanted = kind == Kind::Write || uses.iter().any(|(k, _)| *k == kind);
                let count = if wanted { grains } else { 0 };
                let mut marks: Vec<u32> = Vec::new();
                marks.try_reserve_exact(count).map_err(|_| (count as u64).saturating_mul(4))?;
                marks.resize(count, 0);
                Ok(marks.into_iter().map(AtomicU32::new).collect())
            };
            users = Users { writer: marks(Kind::Write)?, reader: marks(Kind::Read)?, atomic: marks(Kind::Atomic)? };
        }
        let tensor = Tensor { dtype, dir, shape, bytes, grain, users, storage: None, members: None, threads };
        Ok(tensor)
    }

    /// An array lies in it so: what no element of the array reaches does not belong to the tensor.
    pub fn stored(self, storage: Option<&Storage>) -> Tensor {
        match storage.filter(|s| s.len() == (self.bytes / self.dtype.size()) as u64) {
            Some(storage) => Tensor { members: storage.members(), storage: Some(storage.clone()), ..self },
            None => self,
        }
    }

    /// Does nobody write it, and does an array fill it?
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

    /// Uses a run of elements of `size` bytes, for block number `block`; `own` are the block's marks of a buffer of its own. The
    /// first element that cannot be used, and why.
    pub fn run(&self, kind: Kind, size: usize, run: Run, block: u32, own: &mut [u8]) -> Result<(), (u64, Fault)> {
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
                TensorDir::Scratch if kind == Kind::Write && run.step == 1 => {
                    own[a as usize..=b as usize].fill(1);
                    return Ok(());
                }
                TensorDir::Scratch => {}
                TensorDir::Out | TensorDir::InOut => {
                    return self.claims(kind, a as usize, (run.step as isize, run.count as usize), block + 1);
                }
            }
        }
        (0..run.count).try_for_each(|k| self.one(kind, size, run.at(k), block, own).map_err(|fault| (k, fault)))
    }

    /// Uses element number `index` of those of `size` bytes.
    pub fn one(&self, kind: Kind, size: usize, index: i64, block: u32, own: &mut [u8]) -> Result<(), Fault> {
        let bytes = self.range(size, index)?;
        let grains = bytes.start / self.grain..bytes.end.div_ceil(self.grain);
        match self.dir {
            TensorDir::In => Ok(()),
            TensorDir::Scratch => match kind {
                Kind::Write => {
                    own[grains].fill(1);
                    Ok(())
                }
                _ => {
                    if own[grains].contains(&0) {
                        Err(Fault::Poison)
                    } else {
                        Ok(())
                    }
                }
            },
            TensorDir::Out | TensorDir::InOut => {
                grains.into_iter().try_for_each(|grain| self.claim(kind, grain, block + 1))
            }
        }
    }

    /// The bytes of element number `index`, if elements are of `size` bytes.
    fn range(&self, size: usize, index: i64) -> Result<Range<usize>, Fault> {
        let start = usize::try_from(index).ok().and_then(|i| i.checked_mul(size));
        let start = start.filter(|s| s.checked_add(size).is_some_and(|end| end <= self.bytes)).ok_or(Fault::Outside)?;
        match &self.members {
            Some(members) => {
                let of = start / self.dtype.size()..(start + size).div_ceil(self.dtype.size());
                let all = members.get(of).is_some_and(|m| !m.contains(&false));
                if all { Ok(start..start + size) } else { Err(Fault::Outside) }
            }
            None => Ok(start..start + size),
        }
    }

    /// [`Tensor::claim`] for `count` grains, `step` apart: the first that cannot be used.
    fn claims(&self, kind: Kind, first: usize, (step, count): (isize, usize), me: u32) -> Result<(), (u64, Fault)> {
        let Users { writer, reader, atomic } = &self.users;
        // Most tensors are only written.
        if kind == Kind::Write && step == 1 && !self.threads && reader.is_empty() && atomic.is_empty() {
            let row = &writer[first..first + count];
            let users = row.iter().map(|mark| mark.load(Ordering::Relaxed));
            // A row that other blocks use is gone through again, to say who.
            if users.fold(true, |free, user| free & (user == 0 || user == me)) {
                row.iter().for_each(|mark| mark.store(me, Ordering::Relaxed));
                return Ok(());
            }
        }
        let mut at = first;
        for k in 0..count {
            self.claim(kind, at, me).map_err(|fault| (k as u64, fault))?;
            at = at.wrapping_add_signed(step);
        }
        Ok(())
    }

    /// Notes a use of a grain by block `me` (its number plus 1), unless another block's forbids it, or nothing wrote it.
    fn claim(&self, kind: Kind, grain: usize, me: u32) -> Result<(), Fault> {
        let Users { writer, reader, atomic } = &self.users;
        let writer = &writer[grain];
        let race = |user: u32| Fault::Race(if user == MANY { MANY } else { user - 1 });
        let other = |user: u32| if user != 0 && user != me { Err(race(user)) } else { Ok(()) };
        // Whoever notes itself before it looks for others cannot miss one that does the same: SeqCst orders the two. One
        // thread needs no such order.
        if kind == Kind::Write {
            match self.threads {
                true => other(writer.swap(me, Ordering::SeqCst))?,
                false => {
                    other(writer.load(Ordering::Relaxed))?;
                    writer.store(me, Ordering::Relaxed);
                }
            }
            let user = |users: &[AtomicU32]| users.get(grain).map_or(0, |u| u.load(Ordering::SeqCst));
            other(user(reader))?;
            return other(user(atomic));
        }
        let users = if kind == Kind::Read { &reader[grain] } else { &atomic[grain] };
        if self.threads {
            let more = |user: u32| if user == 0 || user == me { me } else { MANY };
            let mut user = users.load(Ordering::Relaxed);
            while user != more(user)
                && let Err(now) = users.compare_exchange_weak(user, more(user), Ordering::SeqCst, Ordering::Relaxed)
            {
                user = now;
            }
        } else {
            let user = users.load(Ordering::Relaxed);
            if user != me {
                users.store(if user == 0 { me } else { MANY }, Ordering::Relaxed);
            }
        }
        let user = writer.load(Ordering::SeqCst);
        // A race explains a missing value better than poison does, so it goes first.
        other(user)?;
        if user == 0 && self.dir == TensorDir::Out { Err(Fault::Poison) } else { Ok(()) }
    }

    /// Number of elements that nothing wrote, and the first one.
    pub fn unwritten(&self) -> Option<(u64, u64)> {
        if self.dir != TensorDir::Out {
            return None;
        }
        let is_missing = |grains: &[AtomicU32]| grains.iter().any(|w| w.load(Ordering::Relaxed) == 0);
        if !is_missing(&self.users.writer) {
            return None;
        }
        let is_member = |at: usize| self.members.as_ref().is_none_or(|m| m.get(at) == Some(&true));
        let elements = self.users.writer.chunks(self.dtype.size() / self.grain).map(is_missing).enumerate();
        let mut missing = elements.filter(|&(at, missing)| missing && is_member(at));
        let first = missing.next()?.0;
        Some((1 + missing.count() as u64, first as u64))
    }

    /// Coordinates of an element.
    pub fn coordinates(&self, index: u64) -> Vec<u64> {
        crate::interp::tensors::coordinates(self.storage.as_ref(), &self.shape, index)
    }
}
