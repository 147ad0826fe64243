//! A compiled kernel and its launch.

use crate::arena::Arena;
use crate::frame::enter;
use crate::interrupt::Interrupts;
use crate::monitor::{Seat, tell};
use crate::pool::{self, Pool};
use crate::print::{PrintEvent, PrintLog, record};
use crate::ranges::Ranges;
use ptoc_abi::{
    CALLS_PER_THREAD, COLUMN_WEIGHT, EntryFn, Frame, MAX_GRID_RANK, Monitor, PrintItem, Raster, STOPPED, Status,
    TooManyBlocks, count,
};
use std::any::Any;
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the compiler made.
pub struct KernelParts {
    /// The kernel's name.
    pub name: String,
    /// Leaves the grid's extents in the results.
    pub launch: EntryFn,
    /// Runs one block.
    pub block: EntryFn,
    /// Slots of `Frame::params`.
    pub params: usize,
    /// Entries of the pointer table.
    pub tensors: usize,
    /// Dimensions of the grid, at most [`MAX_GRID_RANK`].
    pub rank: usize,
    /// Bytes of arena that a running block needs.
    pub arena: u64,
    /// Where in the arena, at a multiple of eight, the code finds eight zero bytes when a thread begins to work on a
    /// launch. It may leave there, and in the arena, what the next blocks of the launch on this thread have a use for.
    pub kept: Option<u64>,
    /// Dimensions of the grid along which a call of `block` may run several blocks: it is given their number along
    /// every dimension, behind its coordinates. None: it runs one. Such blocks have no checks and print nothing.
    pub spread: Vec<usize>,
    /// The order of blocks, if it is not that of the grid's dimensions.
    pub raster: Option<Raster>,
    /// Tensors of which each thread's share has at least so many bytes are too large for its core's caches: whole lines
    /// of them may be written past the caches, which neither reads them before nor drives out what is still of use.
    pub non_temporal: usize,
    /// The `print` statements, by site.
    pub prints: Vec<Vec<PrintItem>>,
    /// Keeps the code mapped.
    pub code: Box<dyn Any + Send + Sync>,
}

/// A kernel that can be launched any number of times, from any thread.
pub struct Kernel {
    parts: KernelParts,
}

/// A tensor's memory.
#[derive(Clone, Copy, Debug)]
pub struct TensorArg {
    /// Its first byte.
    pub data: *mut u8,
    /// Its length in bytes.
    pub len: usize,
    /// Bytes of the array that it is a window of, where the launches around this one only write it; else its length.
    /// This many bytes pass through the caches before any of them is of use again.
    pub streamed: usize,
}

impl TensorArg {
    /// A buffer as a launch argument.
    pub fn new(bytes: &mut [u8]) -> TensorArg {
        TensorArg::whole(bytes.as_mut_ptr(), bytes.len())
    }

    /// An array of so many bytes that is no window.
    pub fn whole(data: *mut u8, len: usize) -> TensorArg {
        TensorArg { data, len, streamed: len }
    }
}

/// Arguments of a launch.
pub struct LaunchArgs<'a> {
    /// Dimensions, then scalar arguments.
    pub params: &'a [i64],
    /// The tensors, in the kernel's order.
    pub tensors: &'a [TensorArg],
    /// Threads to use; 0 takes one a core.
    pub threads: usize,
    /// Gets each `print`, in block order. With one thread a block's prints arrive when it ends, otherwise all at the
    /// end.
    pub print: Option<&'a mut dyn FnMut(PrintEvent)>,
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Row of the module's check table.
    pub check: u32,
    /// The numbers of the message.
    pub args: Vec<i64>,
    /// The block's number in the order of the launch; `None` when the launch function failed.
    pub block: Option<u64>,
    /// The block's grid coordinates.
    pub coords: Vec<i64>,
}

/// Why a launch did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// The number of parameters or tensors is not the kernel's.
    Arguments {
        /// "parameters" or "tensors".
        what: &'static str,
        /// The kernel's.
        expected: usize,
        /// The call's.
        got: usize,
    },
    /// There are more than [`ptoc_abi::MOST_BLOCKS`].
    GridTooLarge(TooManyBlocks),
    /// No memory for the arena.
    OutOfMemory {
        /// Bytes for each thread.
        bytes: u64,
    },
    /// A check failed.
    Check(Failure),
    /// The monitor of [`Kernel::launch_watched`] has ended the launch in this block, and knows why.
    Stopped {
        /// The block's number in the order of the launch.
        block: u64,
    },
    /// Whoever waits for it has ended it: see [`crate::interruptible`]. Some blocks have run, and others have not.
    Interrupted,
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Arguments { what, expected, got } => {
                write!(f, "the kernel takes {expected} {what}, the launch has {got}")
            }
            LaunchError::GridTooLarge(why) => why.fmt(f),
            LaunchError::OutOfMemory { bytes } => write!(f, "no memory for {bytes} bytes of tiles in each thread"),
            LaunchError::Check(failure) => {
                write!(f, "check {} failed with {:?}", failure.check, failure.args)?;
                if failure.block.is_some() {
                    write!(f, " in block {:?}", failure.coords)?;
                }
                Ok(())
            }
            LaunchError::Interrupted => f.write_str("the launch was ended by its caller"),
            LaunchError::Stopped { block } => write!(f, "the launch's monitor has ended it in block {block}"),
        }
    }
}

impl std::error::Error for LaunchError {}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.parts.name).field("rank", &self.parts.rank).finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel of compiled code.
    ///
    /// # Safety
    /// `launch` and `block` follow the ABI of [`Frame`], stay callable while `code` lives, and may run on several
    /// threads at once with frames of their own.
    ///
    /// # Panics
    /// If `rank` is more than [`MAX_GRID_RANK`], or `kept` does not lie in the arena.
    pub unsafe fn new(parts: KernelParts) -> Kernel {
        assert!(parts.rank <= MAX_GRID_RANK, "a grid of rank {}", parts.rank);
        assert!(parts.kept.is_none_or(|at| at % 8 == 0 && at.checked_add(8).is_some_and(|end| end <= parts.arena)));
        Kernel { parts }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Bytes of arena that each thread needs.
    pub fn arena(&self) -> u64 {
        self.parts.arena
    }

    /// The grid's extents for these parameters, without running a block.
    ///
    /// # Safety
    /// As for [`Kernel::launch`].
    pub unsafe fn grid(&self, launch: &mut LaunchArgs<'_>) -> Result<Vec<i64>, LaunchError> {
        let tensors = self.check_arguments(launch)?;
        // SAFETY: the caller's promise.
        let extents = unsafe { self.extents(launch, &tensors) }?;
        Ok(extents[..self.parts.rank].to_vec())
    }

    /// Runs the launch function, then every block of the grid, in the order of its raster (without one the last
    /// dimension moves fastest, or the first of two along which blocks join). An empty grid runs nothing.
    ///
    /// Each thread has a range of blocks, and takes blocks of others when it is done. When a block fails, blocks above
    /// it are no longer started and all below it still run, so for any number of threads the reported failure is that
    /// of the lowest failing block. Which blocks above it have run, and so the contents of outputs after a failure, is
    /// not specified.
    ///
    /// # Safety
    /// The tensors' memory is valid for reads and writes of the lengths given and not otherwise used during the launch,
    /// no two of them overlap, one of which is written, and the kernel's code stays inside it for these parameters: its
    /// loop IR was made for tensors of these shapes.
    pub unsafe fn launch(&self, launch: LaunchArgs<'_>) -> Result<(), LaunchError> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_watched(launch, None) }
    }

    /// As [`Kernel::launch`]; code that was compiled to be watched tells `monitor` what it does, which may end the
    /// launch.
    ///
    /// # Safety
    /// As for [`Kernel::launch`].
    pub unsafe fn launch_watched(
        &self,
        mut launch: LaunchArgs<'_>,
        monitor: Option<&dyn Monitor>,
    ) -> Result<(), LaunchError> {
        let tensors = self.check_arguments(&launch)?;
        // SAFETY: the caller's promise.
        let extents = unsafe { self.extents(&mut launch, &tensors) }?;
        let extents = &extents[..self.parts.rank];
        let blocks = u64::from(count(extents).map_err(LaunchError::GridTooLarge)?);
        if blocks == 0 {
            return Ok(());
        }
        let threads = if launch.threads == 0 { Pool::default_threads() } else { launch.threads };
        let threads = u64::try_from(threads).unwrap_or(u64::MAX).min(blocks) as usize;
        let spans = spans(extents, &self.parts.spread, threads);
        let mut calls = [1; MAX_GRID_RANK];
        for ((calls, &extent), span) in calls.iter_mut().zip(extents).zip(spans) {
            *calls = (extent - 1) / span + 1;
        }
        let blocks: u64 = calls.iter().map(|&c| c as u64).product();
        let threads = (blocks as usize).min(threads);
        let grid = Grid {
            kernel: &self.parts,
            params: launch.params,
            tensors: &tensors,
            non_temporal: non_temporal(launch.tensors, self.parts.non_temporal.saturating_mul(threads)),
            extents,
            spans: &spans,
            calls: &calls[..self.parts.rank],
            order: order(self.parts.rank, &self.parts.spread),
            // At most `MOST_BLOCKS`.
            ranges: Ranges::new(blocks as u32, threads),
            failed: AtomicU64::new(u64::MAX),
            out_of_memory: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            outcome: Mutex::default(),
            monitor,
        };
        if threads == 1 {
            // SAFETY: the caller's promise.
            unsafe { grid.work(launch.print.as_deref_mut()) };
        } else {
            // SAFETY: the caller's promise.
            Pool::global().run(threads, &|| unsafe { grid.work(None) });
        }
        let out_of_memory = grid.out_of_memory.load(Ordering::Relaxed);
        let interrupted = grid.interrupted.load(Ordering::Relaxed);
        let outcome = grid.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = launch.print {
            let last = outcome.failure.as_ref().map_or(u64::MAX, End::block);
            let mut events = outcome.events;
            events.retain(|e| e.block.is_none_or(|b| b <= last));
            // Stable: prints of one block come from one thread, in order.
            events.sort_by_key(|e| e.block);
            events.into_iter().for_each(sink);
        }
        match outcome.failure {
            Some(End::Check(failure)) => Err(LaunchError::Check(failure)),
            Some(End::Stopped(block)) => Err(LaunchError::Stopped { block }),
            None if interrupted => Err(LaunchError::Interrupted),
            None if out_of_memory => Err(LaunchError::OutOfMemory { bytes: self.parts.arena }),
            None => Ok(()),
        }
    }

    fn check_arguments(&self, launch: &LaunchArgs<'_>) -> Result<Table, LaunchError> {
        let (expected, got) = (self.parts.params, launch.params.len());
        if expected != got {
            return Err(LaunchError::Arguments { what: "parameters", expected, got });
        }
        let (expected, got) = (self.parts.tensors, launch.tensors.len());
        if expected != got {
            return Err(LaunchError::Arguments { what: "tensors", expected, got });
        }
        Ok(Table::new(launch.tensors))
    }

    /// # Safety
    /// As for [`Kernel::launch`].
    unsafe fn extents(
        &self,
        launch: &mut LaunchArgs<'_>,
        tensors: &Table,
    ) -> Result<[i64; MAX_GRID_RANK], LaunchError> {
        let mut extents = [0; MAX_GRID_RANK];
        let mut status = Status::default();
        let mut log = PrintLog { sites: &self.parts.prints, block: None, events: Vec::new() };
        // The launch function touches no memory.
        let mut seat = Seat::new(None);
        let Some(arena) = Arena::take(self.parts.arena) else {
            return Err(LaunchError::OutOfMemory { bytes: self.parts.arena });
        };
        let frame = Frame {
            params: launch.params.as_ptr(),
            tensors: tensors.as_ptr(),
            arena: arena.as_ptr(),
            coords: null(),
            results: extents.as_mut_ptr(),
            non_temporal: 0,
            status: &mut status,
            print: record,
            print_ctx: (&raw mut log).cast(),
            watch: tell,
            watch_ctx: (&raw mut seat).cast(),
        };
        // SAFETY: `Kernel::new` promised the ABI; the frame is complete and its memory outlives the call.
        let code = unsafe { enter(self.parts.launch, &frame) };
        arena.put_back();
        if let Some(sink) = launch.print.as_mut() {
            log.events.drain(..).for_each(sink);
        }
        match code {
            0 => Ok(extents),
            _ => Err(LaunchError::Check(failure(&status, None, &[]))),
        }
    }
}

/// Blocks that a call has at least where only the last dimension has several and blocks join, as in a product of few
/// rows, if there are as many for each thread. Its time is in reading its columns, a piece of each row of the matrix,
/// and short pieces take as many page walks as long ones.
pub const LEAST_COLUMNS: i64 = 8;

/// How many blocks a call runs along each dimension: all, of those along which blocks join, or as few as leave enough
/// calls for every thread. What weighs most is halved first.
fn spans(extents: &[i64], spread: &[usize], threads: usize) -> [i64; MAX_GRID_RANK] {
    let mut spans = [1; MAX_GRID_RANK];
    spread.iter().for_each(|&d| spans[d] = extents[d]);
    if threads == 1 {
        return spans;
    }
    let threads = i64::try_from(threads).unwrap_or(i64::MAX);
    let wanted = CALLS_PER_THREAD.saturating_mul(threads);
    if let [_, .., columns] = spread
        && extents.iter().enumerate().all(|(d, &extent)| d == *columns || extent == 1)
    {
        let over = |calls: i64| (extents[*columns] - 1) / calls + 1;
        spans[*columns] = over(wanted).max(over(threads).min(LEAST_COLUMNS));
        return spans;
    }
    let weight = |spans: &[i64], d: usize| (spans[d] - 1) * if spread.last() == Some(&d) { COLUMN_WEIGHT } else { 1 };
    loop {
        let calls = extents.iter().zip(spans).fold(1i64, |n, (e, span)| n.saturating_mul((e - 1) / span + 1));
        let Some(&widest) = spread.iter().max_by_key(|&&d| weight(&spans, d)) else { return spans };
        if calls >= wanted || spans[widest] == 1 {
            return spans;
        }
        spans[widest] = (spans[widest] - 1) / 2 + 1;
    }
}

/// The order of a grid's dimensions, the one that moves fastest last. Where blocks join, the rows of a product move
/// fastest: calls with the same columns follow one another on a thread, and find these packed.
fn order(rank: usize, spread: &[usize]) -> [usize; MAX_GRID_RANK] {
    let mut order: [usize; MAX_GRID_RANK] = std::array::from_fn(|d| d);
    if let [rows, .., cols] = *spread {
        order[..rank].swap(rows, cols);
    }
    order
}

/// Which tensors are written past the caches: of the first 64, those that are, or are windows of, at least so many
/// bytes.
fn non_temporal(tensors: &[TensorArg], least: usize) -> u64 {
    let large = tensors.iter().take(64).enumerate().filter(|(_, t)| t.streamed >= least);
    large.fold(0, |bits, (n, _)| bits | 1 << n)
}

/// What was written past the caches is seen by other threads before what this thread writes from here on.
fn fence() {
    // SAFETY: SSE is part of x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

fn failure(status: &Status, block: Option<u64>, coords: &[i64]) -> Failure {
    let count = (status.count as usize).min(status.args.len());
    Failure { check: status.check, args: status.args[..count].to_vec(), block, coords: coords.to_vec() }
}

/// The pointer table; on the heap only when it is long.
#[allow(clippy::large_enum_variant, reason = "it lives on the stack of one launch, to save the allocation")]
enum Table {
    Short([*mut u8; 32]),
    Long(Vec<*mut u8>),
}

impl Table {
    fn new(tensors: &[TensorArg]) -> Table {
        if tensors.len() <= 32 {
            let mut short = [null_mut(); 32];
            short.iter_mut().zip(tensors).for_each(|(slot, t)| *slot = t.data);
            Table::Short(short)
        } else {
            Table::Long(tensors.iter().map(|t| t.data).collect())
        }
    }

    fn as_ptr(&self) -> *const *mut u8 {
        match self {
            Table::Short(short) => short.as_ptr(),
            Table::Long(long) => long.as_ptr(),
        }
    }
}

/// One launch's blocks, shared by its threads.
struct Grid<'a> {
    kernel: &'a KernelParts,
    params: &'a [i64],
    tensors: &'a Table,
    /// See [`Frame::non_temporal`].
    non_temporal: u64,
    extents: &'a [i64],
    /// Blocks that a call runs along each dimension, and the number of calls.
    spans: &'a [i64],
    calls: &'a [i64],
    /// Dimensions of the calls, the one that moves fastest last.
    order: [usize; MAX_GRID_RANK],
    /// Calls that nobody has taken.
    ranges: Ranges,
    /// Lowest block that failed so far.
    failed: AtomicU64,
    out_of_memory: AtomicBool,
    interrupted: AtomicBool,
    outcome: Mutex<Outcome>,
    monitor: Option<&'a dyn Monitor>,
}

/// How a launch ended before its last block.
enum End {
    Check(Failure),
    /// By the monitor, in this block.
    Stopped(u64),
}

impl End {
    fn block(&self) -> u64 {
        match self {
            End::Check(failure) => failure.block.unwrap_or(u64::MAX),
            End::Stopped(block) => *block,
        }
    }
}

#[derive(Default)]
struct Outcome {
    failure: Option<End>,
    events: Vec<PrintEvent>,
}

// SAFETY: the raw pointers in the table are only handed to compiled code, which may run on several threads at once
// (promised in `Kernel::new`); everything else is shared by atomics and a mutex.
unsafe impl Sync for Grid<'_> {}

impl Grid<'_> {
    /// The place of a call.
    fn place(&self, number: u64, at: &mut [i64; MAX_GRID_RANK]) {
        let mut rest = number;
        for &d in self.order[..self.calls.len()].iter().rev() {
            let calls = self.calls[d] as u64;
            at[d] = (rest % calls) as i64;
            rest /= calls;
        }
    }

    /// The place of the call behind it.
    fn step(&self, at: &mut [i64; MAX_GRID_RANK]) {
        for &d in self.order[..self.calls.len()].iter().rev() {
            at[d] += 1;
            if at[d] < self.calls[d] {
                return;
            }
            at[d] = 0;
        }
    }

    /// Takes calls until none are left, its own first.
    ///
    /// # Safety
    /// As for [`Kernel::launch`].
    unsafe fn work(&self, mut sink: Option<&mut (dyn FnMut(PrintEvent) + '_)>) {
        let Some(arena) = Arena::take(self.kernel.arena) else {
            // The launch function's arena was granted to the caller, so the others finish the grid unless it is the
            // only one; either way the launch is reported as failed.
            self.out_of_memory.store(true, Ordering::Relaxed);
            return;
        };
        if let Some(at) = self.kernel.kept {
            // SAFETY: it lies in the arena, as `Kernel::new` has seen.
            unsafe { arena.as_ptr().add(at as usize).cast::<u64>().write(0) };
        }
        let mut log = PrintLog { sites: &self.kernel.prints, block: None, events: Vec::new() };
        let mut status = Status::default();
        // The call's place, then the coordinates of its first block, and how many it runs along each dimension.
        let mut at = [0i64; MAX_GRID_RANK];
        let mut coords = [0i64; 2 * MAX_GRID_RANK];
        let rank = self.extents.len();
        let raster = self.kernel.raster.filter(|r| (r.along as usize) < rank);
        let log_ptr = &raw mut log;
        let status_ptr = &raw mut status;
        let mut seat = Seat::new(self.monitor);
        let seat_ptr = &raw mut seat;
        let mut interrupts = Interrupts::here();
        let thread = self.ranges.own(pool::number());
        // The call that `at` is the place of.
        let mut here = None;
        while let Some(call) = self.ranges.next(thread, || self.failed.load(Ordering::Relaxed)) {
            let block = u64::from(call);
            match raster {
                Some(raster) => raster.place(block, self.calls, &mut at),
                None if here.is_some_and(|before: u64| before + 1 == block) => self.step(&mut at),
                None => self.place(block, &mut at),
            }
            here = Some(block);
            for d in 0..rank {
                coords[d] = at[d] * self.spans[d];
                coords[rank + d] = self.spans[d].min(self.extents[d] - coords[d]);
            }
            let frame = Frame {
                params: self.params.as_ptr(),
                tensors: self.tensors.as_ptr(),
                arena: arena.as_ptr(),
                coords: coords.as_ptr(),
                results: null_mut(),
                non_temporal: self.non_temporal,
                status: status_ptr,
                print: record,
                print_ctx: log_ptr.cast(),
                watch: tell,
                watch_ctx: seat_ptr.cast(),
            };
            // SAFETY: `log`, `seat` and `status` are only used through these pointers while compiled code runs; the
            // rest is `Kernel::new`'s and the caller's promise.
            let code = unsafe {
                (*log_ptr).block = Some(block);
                (*seat_ptr).block(block, &coords[..rank]);
                enter(self.kernel.block, &frame)
            };
            if let Some(sink) = sink.as_mut() {
                // SAFETY: no compiled code runs now.
                unsafe { &mut *log_ptr }.events.drain(..).for_each(sink);
            }
            if code != 0 {
                self.failed.fetch_min(block, Ordering::Relaxed);
                let found = match code {
                    STOPPED => End::Stopped(block),
                    _ => {
                        // SAFETY: no compiled code runs now.
                        let status = unsafe { &*status_ptr };
                        End::Check(failure(status, Some(block), &coords[..rank]))
                    }
                };
                let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
                if outcome.failure.as_ref().is_none_or(|old| old.block() > block) {
                    outcome.failure = Some(found);
                }
            }
            if interrupts.stop() {
                self.interrupted.store(true, Ordering::Relaxed);
                // No other block is started, on any thread.
                self.failed.store(0, Ordering::Relaxed);
                break;
            }
        }
        if self.non_temporal != 0 {
            fence();
        }
        arena.put_back();
        // SAFETY: no compiled code runs now.
        let events = &mut unsafe { &mut *log_ptr }.events;
        if !events.is_empty() {
            self.outcome.lock().unwrap_or_else(PoisonError::into_inner).events.append(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spans;

    #[test]
    fn calls_have_more_rows_than_columns_and_are_enough_for_all_threads() {
        let calls =
            |extents: &[i64], spread: &[usize], threads| spans(extents, spread, threads)[..extents.len()].to_vec();
        // One thread: all at once.
        assert_eq!(calls(&[32, 32], &[0, 1], 1), [32, 32]);
        // 128 calls for 16 threads.
        assert_eq!(calls(&[32, 32], &[0, 1], 16), [4, 2]);
        assert_eq!(calls(&[64, 1], &[0, 1], 2), [4, 1]);
        // One row of blocks: some columns a call.
        assert_eq!(calls(&[1, 64], &[0, 1], 2), [1, 8]);
        assert_eq!(calls(&[1, 64], &[0, 1], 16), [1, 4]);
        assert_eq!(calls(&[1, 64], &[0, 1], 32), [1, 2]);
        assert_eq!(calls(&[1, 64], &[0, 1], 12), [1, 6]);
        assert_eq!(calls(&[1, 500], &[0, 1], 16), [1, 8]);
        assert_eq!(calls(&[1, 2000], &[0, 1], 16), [1, 16]);
        assert_eq!(calls(&[64], &[0], 2), [4]);
        assert_eq!(calls(&[8, 1, 32], &[1, 2], 2), [1, 1, 16]);
        // What does not join makes calls of its own.
        assert_eq!(calls(&[8, 32, 32], &[1, 2], 2), [1, 32, 16]);
        assert_eq!(calls(&[100, 3], &[], 4), [1, 1]);
        // No more calls than blocks.
        assert_eq!(calls(&[3, 5], &[0, 1], 64), [1, 1]);
    }
}
