//! AMX micro-kernel: blocks of products in the registers of the machine's matrix unit (AMX).
//!
//! A register is a tile of 16 rows of 64 bytes. One instruction multiplies a tile of a (16 rows by 64 bytes of k) by
//! one of b (16 words of k by 16 columns) and adds to 16 by 16 words. i8 are exact in i32, which wraps. bf16 are
//! rounded as Intel's manual says (TDPBF16PS): of the 32 steps of a tile, the even ones are added up from zero on, one
//! fused multiply-add each, and so are the odd ones; then both sums are added, and that to the word: all in f32, to
//! nearest even, factors and results below 2^-126 being zero. `tests.rs` has a model of it, to the bit.
//!
//! f16 go by bf16: its 11 digits are the 8 of one bf16 and up to 3 of another, so a product is four products, each
//! exact in f32.

use ptoc_exec::matrix::{AmxTiles, LINE, TILE};
use std::arch::asm;

/// A block: one or two rows of two tiles. Of b as many tiles lie behind one another for each group of k, which is
/// 64 bytes of it; of f16 those of the upper digits, then those of the lower ones. f16 of a do too. Distances are in
/// bytes.
pub(super) struct AmxBlock {
    pub(super) groups: usize,
    pub(super) a: Lines,
    pub(super) b: *const u8,
    /// Where the sums start; null for zero.
    pub(super) start: *const u8,
    pub(super) start_row: isize,
    pub(super) d: *mut u8,
    pub(super) d_row: isize,
}

/// Where a block finds its part of a.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    /// The first line of the upper row of tiles.
    pub(super) at: *const u8,
    /// From line to line of a tile.
    pub(super) line: isize,
    /// From a row of tiles to the one below.
    pub(super) below: isize,
    /// From group to group.
    pub(super) group: isize,
}

/// Code for a block.
pub(super) type AmxKernel = unsafe fn(&AmxBlock, &AmxTiles);

/// How elements of a type are multiplied.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// Code for one and for two rows of tiles.
    pub(super) code: [AmxKernel; 2],
    /// Tiles that hold the digits of a tile of elements.
    pub(super) parts: usize,
}

/// A block: what comes before the groups, the steps of one, what comes behind, and operands that these have beside.
macro_rules! block {
    (
        $name:ident, $b:expr, [$($head:expr),*], [$($step:expr),*], [$($tail:expr),*],
        { $($more:tt)* }
    ) => {
        /// # Safety
        /// All of the block's tiles are there, and at least one group.
        unsafe fn $name(x: &AmxBlock, _: &AmxTiles) {
            // SAFETY: the caller's promise.
            unsafe {
                asm!(
                    $($head,)*
                    "2:",
                    $($step,)*
                    "add {a}, {a_group}",
                    "add {below}, {a_group}",
                    "add {b}, {b_step}",
                    "dec {groups}",
                    "jnz 2b",
                    $($tail,)*
                    start = in(reg) x.start,
                    start_row = in(reg) x.start_row,
                    a = inout(reg) x.a.at => _,
                    below = inout(reg) x.a.at.wrapping_offset(x.a.below) => _,
                    a_line = in(reg) x.a.line,
                    a_group = in(reg) x.a.group,
                    b = inout(reg) x.b => _,
                    b_step = const $b * TILE,
                    groups = inout(reg) x.groups => _,
                    line = in(reg) LINE,
                    d = in(reg) x.d,
                    d_row = in(reg) x.d_row,
                    $($more)*
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

/// One row of tiles: sums in registers 0 and 1.
macro_rules! one {
    ($name:ident, $b:literal, $($step:expr),*) => {
        block!(
            $name,
            $b,
            [
                "tilezero tmm0",
                "tilezero tmm1",
                "test {start}, {start}",
                "jz 2f",
                "tileloadd tmm0, [{start} + {start_row}]",
                "tileloadd tmm1, [{start} + {start_row} + 64]"
            ],
            [$($step),*],
            ["tilestored [{d} + {d_row}], tmm0", "tilestored [{d} + {d_row} + 64], tmm1"],
            {}
        );
    };
}

/// Two rows of tiles: sums in registers 0 and 1, 2 and 3.
macro_rules! two {
    ($name:ident, $b:literal, $($step:expr),*) => {
        block!(
            $name,
            $b,
            [
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "test {start}, {start}",
                "jz 2f",
                "tileloadd tmm0, [{start} + {start_row}]",
                "tileloadd tmm1, [{start} + {start_row} + 64]",
                "mov {more}, {start_row}",
                "shl {more}, 4",
                "add {more}, {start}",
                "tileloadd tmm2, [{more} + {start_row}]",
                "tileloadd tmm3, [{more} + {start_row} + 64]"
            ],
            [$($step),*],
            [
                "tilestored [{d} + {d_row}], tmm0",
                "tilestored [{d} + {d_row} + 64], tmm1",
                "mov {more}, {d_row}",
                "shl {more}, 4",
                "add {more}, {d}",
                "tilestored [{more} + {d_row}], tmm2",
                "tilestored [{more} + {d_row} + 64], tmm3"
            ],
            { more = out(reg) _, }
        );
    };
}

/// A group of elements that are multiplied as they are.
macro_rules! whole {
    ($one:ident, $two:ident, $multiply:literal) => {
        one!(
            $one,
            2,
            "tileloadd tmm4, [{a} + {a_line}]",
            "tileloadd tmm6, [{b} + {line}]",
            concat!($multiply, " tmm0, tmm4, tmm6"),
            "tileloadd tmm7, [{b} + {line} + 1024]",
            concat!($multiply, " tmm1, tmm4, tmm7")
        );
        two!(
            $two,
            2,
            "tileloadd tmm4, [{a} + {a_line}]",
            "tileloadd tmm6, [{b} + {line}]",
            concat!($multiply, " tmm0, tmm4, tmm6"),
            "tileloadd tmm7, [{b} + {line} + 1024]",
            concat!($multiply, " tmm1, tmm4, tmm7"),
            "tileloadd tmm5, [{below} + {a_line}]",
            concat!($multiply, " tmm2, tmm5, tmm6"),
            concat!($multiply, " tmm3, tmm5, tmm7")
        );
    };
}
whole!(bf16_one, bf16_two, "tdpbf16ps");
whole!(i8_one, i8_two, "tdpbssd");

// Digits of f16, of a and of b: upper by upper, upper by lower, lower by lower, lower by upper.
one!(
    f16_one,
    4,
    "tileloadd tmm4, [{a} + {a_line}]",
    "tileloadd tmm6, [{b} + {line}]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tileloadd tmm7, [{b} + {line} + 1024]",
    "tdpbf16ps tmm1, tmm4, tmm7",
    "tileloadd tmm6, [{b} + {line} + 2048]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tileloadd tmm7, [{b} + {line} + 3072]",
    "tdpbf16ps tmm1, tmm4, tmm7",
    "tileloadd tmm4, [{a} + {a_line} + 1024]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tileloadd tmm6, [{b} + {line}]",
    "tdpbf16ps tmm1, tmm4, tmm7",
    "tileloadd tmm7, [{b} + {line} + 1024]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tdpbf16ps tmm1, tmm4, tmm7"
);
two!(
    f16_two,
    4,
    "tileloadd tmm4, [{a} + {a_line}]",
    "tileloadd tmm6, [{b} + {line}]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tileloadd tmm7, [{b} + {line} + 1024]",
    "tdpbf16ps tmm1, tmm4, tmm7",
    "tileloadd tmm5, [{a} + {a_line} + 1024]",
    "tdpbf16ps tmm2, tmm5, tmm6",
    "tdpbf16ps tmm3, tmm5, tmm7",
    "tileloadd tmm6, [{b} + {line} + 2048]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tdpbf16ps tmm2, tmm5, tmm6",
    "tileloadd tmm7, [{b} + {line} + 3072]",
    "tdpbf16ps tmm1, tmm4, tmm7",
    "tdpbf16ps tmm3, tmm5, tmm7",
    "tileloadd tmm4, [{a} + {a_line} + 2048]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tdpbf16ps tmm1, tmm4, tmm7",
    "tileloadd tmm5, [{a} + {a_line} + 3072]",
    "tdpbf16ps tmm2, tmm5, tmm6",
    "tdpbf16ps tmm3, tmm5, tmm7",
    "tileloadd tmm6, [{b} + {line}]",
    "tdpbf16ps tmm0, tmm4, tmm6",
    "tdpbf16ps tmm2, tmm5, tmm6",
    "tileloadd tmm7, [{b} + {line} + 1024]",
    "tdpbf16ps tmm1, tmm4, tmm7",
    "tdpbf16ps tmm3, tmm5, tmm7"
);

pub(super) const BF16: Way = Way { code: [bf16_one, bf16_two], parts: 1 };
pub(super) const I8: Way = Way { code: [i8_one, i8_two], parts: 1 };
pub(super) const F16: Way = Way { code: [f16_one, f16_two], parts: 2 };
