//! The records that an entry function shares with its threads, as offsets of their fields.

use std::mem::size_of;

/// Of caches, and of what is given to threads.
pub(super) const LINE: u64 = 64;

/// `n`, rounded up to a multiple of `of`.
pub(super) const fn up(n: u64, of: u64) -> u64 {
    n.div_ceil(of) * of
}

/// What all threads of a call share.
pub(super) struct Job;

impl Job {
    /// Dimensions, then scalar arguments.
    pub(super) const PARAMS: i32 = 0;
    /// The pointer table.
    pub(super) const TENSORS: i32 = 8;
    /// The block function.
    pub(super) const BLOCK: i32 = 16;
    /// See [`ptoc_abi::Frame::non_temporal`].
    pub(super) const NON_TEMPORAL: i32 = 24;
    /// The first call of the block function that nobody has taken yet.
    pub(super) const NEXT: i32 = 32;
    /// The lowest one that has failed so far.
    pub(super) const FAILED: i32 = 40;
    /// Calls in all.
    pub(super) const CALLS: i32 = 48;
    /// Calls that are taken together.
    pub(super) const CHUNK: i32 = 56;
    /// The level of the processor ([`super::processor`]).
    pub(super) const LEVEL: i32 = 64;
    /// Extents of the grid; then, for each dimension, blocks of a call; then calls along each dimension.
    pub(super) const EXTENTS: i32 = 72;

    /// Blocks of a call along dimension `d` of `rank`.
    pub(super) fn span(rank: usize, d: usize) -> i32 {
        Job::EXTENTS + 8 * (rank + d) as i32
    }

    /// Calls along dimension `d` of `rank`.
    pub(super) fn calls(rank: usize, d: usize) -> i32 {
        Job::EXTENTS + 8 * (2 * rank + d) as i32
    }

    /// Extent of dimension `d`.
    pub(super) fn extent(d: usize) -> i32 {
        Job::EXTENTS + 8 * d as i32
    }

    /// Bytes of it.
    pub(super) fn size(rank: usize) -> u32 {
        Job::EXTENTS as u32 + 24 * rank as u32
    }
}

/// What a thread has for itself.
pub(super) struct Seat;

impl Seat {
    /// The [`Job`].
    pub(super) const JOB: i32 = 0;
    /// The thread's tiles.
    pub(super) const ARENA: i32 = 8;
    /// The call of the block function that has failed; -1 if none has.
    pub(super) const FAILED: i32 = 16;
    /// The handle of its thread.
    pub(super) const THREAD: i32 = 24;
    /// A [`ptoc_abi::Status`].
    pub(super) const STATUS: i32 = 32;
    /// Bytes of it.
    pub(super) const SIZE: u64 = 128;
}

const _: () = assert!(Seat::STATUS as usize + size_of::<ptoc_abi::Status>() <= Seat::SIZE as usize);

/// The status that C gets: `ptoc_status` of the header.
pub(super) struct CStatus;

impl CStatus {
    /// The number of the code.
    pub(super) const CODE: i32 = 0;
    /// How many numbers there are.
    pub(super) const COUNT: i32 = 4;
    /// The numbers.
    pub(super) const NUMBERS: i32 = 8;
    /// The block, or -1.
    pub(super) const BLOCK: i32 = 40;
    /// The message.
    pub(super) const MESSAGE: i32 = 48;
}
