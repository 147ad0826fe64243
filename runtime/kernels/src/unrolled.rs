//! Unrolled inner kernel: the steps of blocks of two vectors of eight f32, written out: what compilers make of them has
//! more instructions beside the multiply-adds, and products take 1.05 to 1.2 times as long (`spec/bench.md`).
//!
//! A step reads a row of b, then one element of a for each row of the block: eight loads to twelve multiply-adds, of
//! which the machine does two a cycle. All sixteen registers are in use: sums, the row of b, two elements of a in turn.

#[cfg(target_arch = "x86_64")]
use std::arch::{asm, x86_64::__m256};

/// What the steps of a block read. Distances are in bytes.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    /// Rows of a.
    pub(super) a: *const u8,
    pub(super) a_row: isize,
    pub(super) a_col: isize,
    /// Rows of b, whole vectors.
    pub(super) b: *const u8,
    pub(super) b_row: isize,
}

/// Steps of a turn of the loop.
#[cfg(target_arch = "x86_64")]
const TURN: usize = 4;

/// The multiply-adds of a step: how far it is from the turn's first, in a; and for each row its sums, the register for
/// its element of a, and where that is.
#[cfg(target_arch = "x86_64")]
macro_rules! step {
    ($ahead:literal; $($s0:literal $s1:literal $one:literal $at:literal;)*) => {
        concat!(
            "vmovups {f0}, [{b}]\n",
            "vmovups {f1}, [{b} + 32]\n",
            "add {b}, {b_row}\n",
            $(
                "vbroadcastss ", $one, ", [", $at, " + ", $ahead, "]\n",
                "vfmadd231ps ", $s0, ", ", $one, ", {f0}\n",
                "vfmadd231ps ", $s1, ", ", $one, ", {f1}\n",
            )*
        )
    };
}

/// A function that takes the turns of a block of so many rows. Elements of a row of a are so many bytes apart that
/// steps of a turn are at these; a turn takes the last of them.
#[cfg(target_arch = "x86_64")]
macro_rules! block {
    ($name:ident, $rows:literal, $p1:literal $p2:literal $p3:literal $turn:literal;
        $($s0:ident $s1:ident $t0:literal $t1:literal $one:literal $at:literal;)*) => {
        /// # Safety
        /// As for [`steps`].
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $name(x: &Operands, k: usize, sums: &mut [[__m256; 2]; $rows]) {
            let [$([$s0, $s1]),*] = sums;
            // SAFETY: the caller's promise; nothing but the sums changes.
            unsafe {
                asm!(
                    "2:",
                    step!("0"; $($t0 $t1 $one $at;)*),
                    step!($p1; $($t0 $t1 $one $at;)*),
                    step!($p2; $($t0 $t1 $one $at;)*),
                    step!($p3; $($t0 $t1 $one $at;)*),
                    concat!("add {a}, ", $turn),
                    concat!("add {a3}, ", $turn),
                    "dec {turns}",
                    "jnz 2b",
                    a = inout(reg) x.a => _,
                    a3 = inout(reg) x.a.wrapping_offset(3 * x.a_row) => _,
                    row = in(reg) x.a_row,
                    b = inout(reg) x.b => _,
                    b_row = in(reg) x.b_row,
                    turns = inout(reg) k / TURN => _,
                    $($s0 = inout(ymm_reg) *$s0, $s1 = inout(ymm_reg) *$s1,)*
                    f0 = out(ymm_reg) _,
                    f1 = out(ymm_reg) _,
                    x0 = out(ymm_reg) _,
                    x1 = out(ymm_reg) _,
                    options(nostack, readonly),
                );
            }
        }
    };
}

/// Two functions for blocks of so many rows: of an a whose elements of a row are neighbours, and of one whose elements
/// of a column are, with nothing between columns.
#[cfg(target_arch = "x86_64")]
macro_rules! blocks {
    ($of_rows:ident, $of_columns:ident, $n:literal, $($p:literal)*;
         $($s0:ident $s1:ident $t0:literal $t1:literal $one:literal $at:literal;)*) => {
        block! { $of_rows, $n, "4" "8" "12" "16"; $($s0 $s1 $t0 $t1 $one $at;)* }
        block! { $of_columns, $n, $($p)*; $($s0 $s1 $t0 $t1 $one $at;)* }
    };
}

#[cfg(target_arch = "x86_64")]
blocks! { six, six_packed, 6, "24" "48" "72" "96";
    s00 s01 "{s00}" "{s01}" "{x0}" "{a}";
    s10 s11 "{s10}" "{s11}" "{x1}" "{a} + {row}";
    s20 s21 "{s20}" "{s21}" "{x0}" "{a} + 2 * {row}";
    s30 s31 "{s30}" "{s31}" "{x1}" "{a3}";
    s40 s41 "{s40}" "{s41}" "{x0}" "{a3} + {row}";
    s50 s51 "{s50}" "{s51}" "{x1}" "{a3} + 2 * {row}";
}
#[cfg(target_arch = "x86_64")]
blocks! { five, five_packed, 5, "20" "40" "60" "80";
    s00 s01 "{s00}" "{s01}" "{x0}" "{a}";
    s10 s11 "{s10}" "{s11}" "{x1}" "{a} + {row}";
    s20 s21 "{s20}" "{s21}" "{x0}" "{a} + 2 * {row}";
    s30 s31 "{s30}" "{s31}" "{x1}" "{a3}";
    s40 s41 "{s40}" "{s41}" "{x0}" "{a3} + {row}";
}
#[cfg(target_arch = "x86_64")]
blocks! { four, four_packed, 4, "16" "32" "48" "64";
    s00 s01 "{s00}" "{s01}" "{x0}" "{a}";
    s10 s11 "{s10}" "{s11}" "{x1}" "{a} + {row}";
    s20 s21 "{s20}" "{s21}" "{x0}" "{a} + 2 * {row}";
    s30 s31 "{s30}" "{s31}" "{x1}" "{a3}";
}

/// The first steps of a block of so many rows and vectors, as many of `k` as its loop takes: how many that were.
///
/// # Safety
/// The operands are there; the machine has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn steps<const R: usize, const C: usize>(
    x: &Operands,
    k: usize,
    sums: &mut [[__m256; C]; R],
) -> usize {
    let packed = x.a_row == 4 && x.a_col == 4 * R as isize;
    if C != 2 || !(4..=6).contains(&R) || k < TURN || !(packed || x.a_col == 4) {
        return 0;
    }
    let sums: *mut _ = sums;
    // SAFETY: the caller's promise; the array has two vectors by so many rows.
    unsafe {
        match (R, packed) {
            (4, false) => four(x, k, &mut *sums.cast()),
            (4, true) => four_packed(x, k, &mut *sums.cast()),
            (5, false) => five(x, k, &mut *sums.cast()),
            (5, true) => five_packed(x, k, &mut *sums.cast()),
            (_, false) => six(x, k, &mut *sums.cast()),
            (_, true) => six_packed(x, k, &mut *sums.cast()),
        }
    }
    k / TURN * TURN
}
