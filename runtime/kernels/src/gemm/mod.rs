//! Matrix products: `d[i, j] = start[i, j] + sum over k of a[i, k] * b[k, j]`, k ascending, one fused multiply-add a
//! step in f32 (integers: a wrapping multiply-add in i32).
//!
//! Accumulators of a block of rows by vectors stay in registers over a stretch of k. Between stretches they lie in d,
//! as f32, so blocking does not change any element's chain of roundings. f16 and bf16 are widened on their way to the
//! panels, which is exact; i8 stay bytes and bf16 stay halves where the machine multiplies those, and with the same
//! result. Halves on a matrix unit are the exception: it rounds in an order of its own (see `amx`), and may be
//! forbidden.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod amx_tiles;
mod bf16_dot;
mod cache;
#[cfg(target_arch = "x86_64")]
mod cache_blocking;
mod floats;
mod i8_pairs;
mod i8_vnni;
mod macro_kernel;
mod micro_kernel;
mod packed_cache;
mod packing;
mod panels;
mod plain;
mod skinny;
mod skinny_avx2;
#[cfg(target_arch = "x86_64")]
mod skinny_dot;

use ptoc_tensor::DType;

/// A matrix in memory: the first element, bytes from row to row and from column to column.
#[derive(Clone, Copy)]
struct Matrix<P> {
    at: P,
    row: isize,
    col: isize,
}

impl<P> Matrix<P> {
    fn transposed(self) -> Matrix<P> {
        Matrix { at: self.at, row: self.col, col: self.row }
    }
}

/// One product.
#[derive(Clone, Copy)]
struct Job {
    m: usize,
    n: usize,
    k: usize,
    /// Rows, columns and steps of the product that this one is a part of: what decides in which order it rounds.
    part_of: [usize; 3],
    d: Matrix<*mut u8>,
    /// A null pointer starts at zero.
    start: Matrix<*const u8>,
    a: Matrix<*const u8>,
    b: Matrix<*const u8>,
    ab: DType,
    d_ty: DType,
    start_ty: DType,
    /// Every step rounds, as single operations do (`--exact`): no matrix unit.
    exact: bool,
    /// Launch-invariant operands, a and b: nothing writes them during the launch, so their packed panels can be reused.
    launch_invariant: (bool, bool),
    /// [`scratch`] bytes of the caller's, aligned to 64; the first word is zero when the launch begins.
    scratch: *mut u8,
}

impl Job {
    /// Where the sums of a block start whose first element is (i, j), and bytes from row to row; a null pointer for
    /// zero.
    fn starts(&self, i: usize, j: usize) -> (*const u8, isize) {
        if self.start.at.is_null() { (std::ptr::null(), 0) } else { (plain::at(&self.start, i, j), self.start.row) }
    }

    /// d^T = b^T a^T: the same products in the same order.
    fn transposed(self) -> Job {
        let start = self.start.transposed();
        let (a, b) = (self.b.transposed(), self.a.transposed());
        let launch_invariant = (self.launch_invariant.1, self.launch_invariant.0);
        let [m, n, k] = self.part_of;
        Job { m: self.n, n: self.m, part_of: [n, m, k], d: self.d.transposed(), start, a, b, launch_invariant, ..self }
    }

    /// The results from (i, j) on, so many rows and columns of them.
    fn part(self, (i, m): (usize, usize), (j, n): (usize, usize)) -> Job {
        let d = Matrix { at: plain::at_mut(&self.d, i, j), ..self.d };
        let at = if self.start.at.is_null() { self.start.at } else { plain::at(&self.start, i, j) };
        let (a, b) = (panels::shifted(self.a, i, 0), panels::shifted(self.b, 0, j));
        Job { m, n, d, start: Matrix { at, ..self.start }, a, b, ..self }
    }
}

pub(crate) use cache::first_level;
pub use cache::second_level;

/// Whether there is a version for wide vectors.
pub(super) fn wide() -> bool {
    micro_kernel::version().is_some()
}

/// Bytes that a product needs for panels. The first eight are zero when a thread begins to work on a launch.
pub fn scratch() -> u64 {
    panels::scratch() as u64
}

/// How much a product may use of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Units {
    /// No vectors.
    Plain,
    /// All that gives the bits of single steps.
    Exact,
    /// Its matrix unit too.
    All,
}

/// Dtypes that matrices of a product may have, in the order of their codes.
const OPERANDS: [DType; 10] = [
    DType::Bool,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
];

/// The types of a product as the routine takes them, and whether a and b rest: nothing writes them during a launch.
pub fn types(ab: DType, d: DType, start: DType, units: Units, launch_invariant: (bool, bool)) -> i64 {
    let code = |ty: DType| OPERANDS.iter().position(|t| *t == ty).unwrap_or(0) as i64;
    let launch_invariant = i64::from(launch_invariant.0) | i64::from(launch_invariant.1) << 1;
    code(ab) | code(d) << 8 | code(start) << 16 | (units as i64) << 24 | launch_invariant << 32
}

/// Number of the routine's parameters.
pub const PARAMS: usize = 20;

/// The routine: m, n, k; addresses of d, start (0 for zero), a, b; bytes from row to row and from column to column of
/// each; the types ([`types`]); the address of [`scratch`] bytes; rows, columns and steps of the product that it is a
/// part of, from which the order of its roundings is chosen.
///
/// # Safety
/// The matrices are in memory; `a` and `b` do not overlap `d`, and `start` is `d` or does not overlap it. What is said
/// to rest does, until the scratch's first word is zero again.
#[allow(clippy::too_many_arguments, reason = "emitted code passes scalars")]
pub(super) unsafe extern "C" fn product(
    m: i64,
    n: i64,
    k: i64,
    d: *mut u8,
    start: *const u8,
    a: *const u8,
    b: *const u8,
    d_row: i64,
    d_col: i64,
    start_row: i64,
    start_col: i64,
    a_row: i64,
    a_col: i64,
    b_row: i64,
    b_col: i64,
    types: i64,
    scratch: *mut u8,
    all_m: i64,
    all_n: i64,
    all_k: i64,
) {
    let size = |n: i64| usize::try_from(n).unwrap_or(0);
    let (m, n, k) = (size(m), size(n), size(k));
    if m == 0 || n == 0 {
        return;
    }
    let units = types >> 24 & 255;
    let ty = |shift: u32| OPERANDS.get((types >> shift & 255) as usize).copied().unwrap_or(DType::F32);
    let job = Job {
        m,
        n,
        k,
        part_of: [all_m, all_n, all_k].map(size),
        d: Matrix { at: d, row: d_row as isize, col: d_col as isize },
        start: Matrix { at: start, row: start_row as isize, col: start_col as isize },
        a: Matrix { at: a, row: a_row as isize, col: a_col as isize },
        b: Matrix { at: b, row: b_row as isize, col: b_col as isize },
        ab: ty(0),
        d_ty: ty(8),
        start_ty: ty(16),
        exact: units != Units::All as i64,
        launch_invariant: (types >> 32 & 1 != 0, types >> 33 & 1 != 0),
        scratch,
    };
    // SAFETY: the caller's promise.
    unsafe {
        if units == Units::Plain as i64 || !fast(job) {
            plain::product(&job);
        }
    }
}

/// At the machine's width, where there is a way.
unsafe fn fast(job: Job) -> bool {
    let fits = |ty: DType| job.d_ty == ty && (job.start.at.is_null() || job.start_ty == ty);
    let job = if job.d.col != 4 && job.d.row == 4 { job.transposed() } else { job };
    if job.d.col != 4 {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise.
    unsafe {
        if fits(if job.ab == DType::I8 { DType::I32 } else { DType::F32 })
            && let Some(way) = amx_tiles::way(&job)
        {
            amx_tiles::numbers(plain::with_rows_of_start(job), way);
            return true;
        }
    }
    match job.ab {
        DType::F32 | DType::F16 | DType::BF16 if fits(DType::F32) => {
            let Some((version, widen)) = micro_kernel::version().and_then(|v| Some((v, v.widen?))) else {
                return false;
            };
            // SAFETY: the caller's promise.
            unsafe {
                let job = plain::with_rows_of_start(job);
                let packs_pairs = job.ab == DType::BF16 && !floats::of_few_rows(&job, version);
                let done = match micro_kernel::of_dots().filter(|_| packs_pairs) {
                    Some(version) => bf16_dot::product(&job, version),
                    None => false,
                };
                if !done {
                    floats::product(&job, version, widen);
                }
            }
        }
        DType::I8 if fits(DType::I32) => {
            // SAFETY: the caller's promise.
            unsafe {
                match (micro_kernel::of_bytes(), micro_kernel::of_pairs()) {
                    (Some(version), _) => i8_vnni::product(&plain::with_rows_of_start(job), version),
                    (_, Some(version)) => i8_pairs::product(&plain::with_rows_of_start(job), version),
                    _ => return false,
                }
            }
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests;
