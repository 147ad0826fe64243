//! The launch record: the one argument of compiled code.

use std::ffi::c_void;

/// What compiled code gets. A launch function reads `params` and writes `results`; a block function reads `params`,
/// `tensors` and `coords` and owns `arena` while it runs.
#[repr(C)]
pub struct Frame {
    /// Dimensions, then scalar arguments (f32 as bits in the low half).
    pub params: *const i64,
    /// Data of each tensor.
    pub tensors: *const *mut u8,
    /// Spaces of the running block; 64-byte aligned. Its contents are unspecified at entry, but for
    /// the bytes that a kernel keeps between launches.
    pub arena: *mut u8,
    /// Coordinates of the block, then the number of blocks along each dimension along which a call may run
    /// several. Null for a launch function.
    pub coords: *const i64,
    /// Where a launch function leaves the grid's extents (null for a block function).
    pub results: *mut i64,
    /// Bit n: what is stored to tensor n is written by non-temporal stores.
    pub non_temporal: u64,
    /// Filled when the function returns non-zero.
    pub status: *mut Status,
    /// Called by `print`.
    pub print: PrintHook,
    /// First argument of `print`.
    pub print_ctx: *mut c_void,
    /// Called before statements that are watched; what it returns, unless it is 0, ends the function.
    pub watch: WatchHook,
    /// First argument of `watch`.
    pub watch_ctx: *mut c_void,
}

/// What a failed check leaves behind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    /// Row of the module's check table.
    pub check: u32,
    /// How many of `args` are meant.
    pub count: u32,
    /// The numbers of the message.
    pub args: [i64; 4],
}

/// A launch or a block function: 0 is success, [`STOPPED`] an end by [`Frame::watch`], otherwise 1 + the check's row,
/// with [`Frame::status`] filled.
pub type EntryFn = unsafe extern "C" fn(*const Frame) -> u32;

/// `print`: the context, the site's number, and its values: one slot for a scalar (raw bits), three for a matrix
/// (address, rows, columns).
pub type PrintHook = unsafe extern "C" fn(ctx: *mut c_void, site: u32, values: *const i64);

/// `watch`: the context, the statement's number, and its `count` values. 0 goes on, [`STOPPED`] ends the launch.
pub type WatchHook = unsafe extern "C" fn(ctx: *mut c_void, site: u32, values: *const i64, count: u32) -> u32;

/// The result of a function that [`Frame::watch`] has ended.
pub const STOPPED: u32 = u32::MAX;
