//! Skinny-M kernel for AVX2, unrolled: eight steps of k for a few rows by whole lines of b, written out: sums lie in
//! memory between stretches of k, so a block is short, and what a function for blocks of any kind does around it takes
//! as long as the steps (`spec/bench.md`).

use super::super::LINE;
#[cfg(target_arch = "x86_64")]
use super::panels::even;
#[cfg(target_arch = "x86_64")]
use std::arch::asm;

/// Steps.
pub(super) const STEPS: usize = 8;
/// Columns of a line.
pub(super) const COLUMNS: usize = LINE / 4;
/// Most rows of a block: their sums, a line of b and two elements of a fill the registers.
#[cfg(target_arch = "x86_64")]
const ROWS: usize = 6;

/// What the steps read, and the sums that they add to. Distances are in bytes.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    pub(super) rows: usize,
    /// Lines, one behind the other.
    pub(super) count: usize,
    /// Rows of a, [`STEPS`] elements of each.
    pub(super) a: *const u8,
    pub(super) a_row: isize,
    /// As many rows of b.
    pub(super) b: *const u8,
    pub(super) b_row: isize,
    /// The lines' sums one line after the other, row behind row.
    pub(super) sums: *mut u8,
}

/// Whether there is code for vectors of so many lanes.
pub(super) fn exist(lanes: usize) -> bool {
    cfg!(target_arch = "x86_64") && lanes == 8
}

/// A row of b, where the addresses of its halves are; and for each row of the block its sums, a register for its
/// element of a, and where that is, to which the step is added.
#[cfg(target_arch = "x86_64")]
macro_rules! step {
    ($b:literal, $p:literal; $($s0:literal $s1:literal $one:literal $at:literal $sum:literal;)*) => {
        concat!(
            "vmovups ymm0, [", $b, "]\n",
            "vmovups ymm1, [", $b, " + 32]\n",
            $(
                "vbroadcastss ", $one, ", [", $at, " + ", $p, "]\n",
                "vfmadd231ps ", $s0, ", ", $one, ", ymm0\n",
                "vfmadd231ps ", $s1, ", ", $one, ", ymm1\n",
            )*
        )
    };
}

/// A function that takes the steps of so many rows by one line.
#[cfg(target_arch = "x86_64")]
macro_rules! block {
    ($name:ident; $($rows:tt)*) => {
        /// # Safety
        /// As for [`add`].
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $name(x: &Lines) {
            // SAFETY: the caller's promise; nothing but the sums changes.
            unsafe {
                asm!(
                    // Low blocks do not read them.
                    "# {a_row} {a3}",
                    load!($($rows)*),
                    step!("{b}", "0"; $($rows)*),
                    step!("{b} + {row}", "4"; $($rows)*),
                    step!("{b} + 2 * {row}", "8"; $($rows)*),
                    step!("{b} + {row3}", "12"; $($rows)*),
                    step!("{b4}", "16"; $($rows)*),
                    step!("{b4} + {row}", "20"; $($rows)*),
                    step!("{b4} + 2 * {row}", "24"; $($rows)*),
                    step!("{b4} + {row3}", "28"; $($rows)*),
                    store!($($rows)*),
                    sums = in(reg) x.sums,
                    a = in(reg) x.a,
                    a3 = in(reg) x.a.wrapping_offset(3 * x.a_row),
                    a_row = in(reg) x.a_row,
                    b = in(reg) x.b,
                    b4 = in(reg) x.b.wrapping_offset(4 * x.b_row),
                    row = in(reg) x.b_row,
                    row3 = in(reg) 3 * x.b_row,
                    out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _, out("ymm5") _,
                    out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! load {
    ($($s0:literal $s1:literal $one:literal $at:literal $sum:literal;)*) => {
        concat!($("vmovups ", $s0, ", [{sums} + ", $sum, "]\n", "vmovups ", $s1, ", [{sums} + 32 + ", $sum, "]\n",)*)
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! store {
    ($($s0:literal $s1:literal $one:literal $at:literal $sum:literal;)*) => {
        concat!($("vmovups [{sums} + ", $sum, "], ", $s0, "\n", "vmovups [{sums} + 32 + ", $sum, "], ", $s1, "\n",)*)
    };
}

/// Blocks of the first rows of a list, of one more each time.
#[cfg(target_arch = "x86_64")]
macro_rules! blocks {
    ($($name:ident)*; $($all:tt)*) => { blocks! { @ [$($name)*] [] $($all)* } };
    (@ [] [$($rows:tt)*]) => {};
    (@ [$name:ident $($names:ident)*] [$($rows:tt)*]
        $s0:literal $s1:literal $one:literal $at:literal $sum:literal; $($more:tt)*) => {
        block! { $name; $($rows)* $s0 $s1 $one $at $sum; }
        blocks! { @ [$($names)*] [$($rows)* $s0 $s1 $one $at $sum;] $($more)* }
    };
}

#[cfg(target_arch = "x86_64")]
blocks! { one two three four five six;
    "ymm4" "ymm5" "ymm2" "{a}" "0";
    "ymm6" "ymm7" "ymm3" "{a} + {a_row}" "64";
    "ymm8" "ymm9" "ymm2" "{a} + 2 * {a_row}" "128";
    "ymm10" "ymm11" "ymm3" "{a3}" "192";
    "ymm12" "ymm13" "ymm2" "{a3} + {a_row}" "256";
    "ymm14" "ymm15" "ymm3" "{a3} + 2 * {a_row}" "320";
}

/// Adds the steps' products to the sums: for each element, one multiply-add after the other.
///
/// # Safety
/// The operands and the sums are there; code [`exist`]s, and the machine has AVX2 and FMA.
pub(super) unsafe fn add(x: &Lines) {
    #[cfg(target_arch = "x86_64")]
    {
        let height = even(x.rows, ROWS, 1);
        let mut block = *x;
        for n in 0..x.count {
            block.b = x.b.wrapping_add(4 * COLUMNS * n);
            for i in (0..x.rows).step_by(height) {
                block.a = x.a.wrapping_offset(i as isize * x.a_row);
                block.sums = x.sums.wrapping_add(4 * COLUMNS * (x.rows * n + i));
                // SAFETY: these rows and this line are among them.
                unsafe {
                    match height.min(x.rows - i) {
                        1 => one(&block),
                        2 => two(&block),
                        3 => three(&block),
                        4 => four(&block),
                        5 => five(&block),
                        _ => six(&block),
                    }
                }
            }
        }
        // The compiler does not know of the registers' upper halves, which slow down what comes behind.
        // SAFETY: the machine has AVX2.
        unsafe { asm!("vzeroupper", clobber_abi("sysv64"), options(nomem, nostack, preserves_flags)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("there is no code for {} rows", x.rows);
}
