//! The machine's matrix unit (AMX): may it be used, and blocks of products in its registers.
//!
//! A register is a tile of 16 rows of 64 bytes. One instruction multiplies a tile of a (16 rows by 64 bytes of k) by one of b
//! (16 words of k by 16 columns) and adds to 16 by 16 words. i8 are exact in i32, which wraps. bf16 are rounded as Intel's
//! manual says (TDPBF16PS): of the 32 steps of a tile, the even ones are added up from zero on, one fused multiply-add each, and
//! so are the odd ones; then both sums are added, and that to the word: all in f32, to nearest even, numbers below 2^-126 being
//! zero.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::sync::OnceLock;

/// Rows of a tile, and columns of words.
pub(super) const SIDE: usize = 16;
/// Bytes of a tile's row.
pub(super) const LINE: usize = 64;
/// Bytes of a tile.
pub(super) const TILE: usize = SIDE * LINE;

/// What the unit multiplies.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) bf16: bool,
    pub(super) i8: bool,
}

/// Asks the processor, and the system for leave.
pub(super) fn unit() -> Unit {
    static UNIT: OnceLock<Unit> = OnceLock::new();
    *UNIT.get_or_init(|| {
        const NONE: Unit = Unit { bf16: false, i8: false };
        let vectors = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("xsave");
        if !vectors || __cpuid(0).eax < 7 {
            return NONE;
        }
        // CPUID.7.0:EDX: bf16 is bit 22, tiles are 24, i8 is 25.
        let features = __cpuid_count(7, 0).edx;
        let has = |bit: u32| features >> bit & 1 == 1;
        // SAFETY: the processor has the instruction.
        let saved = unsafe { saved() };
        // XCR0: components 17 and 18 are the configuration and the tiles.
        if !has(24) || saved >> 17 & 3 != 3 || !permitted() {
            return NONE;
        }
        Unit { bf16: has(22), i8: has(25) }
    })
}

/// The components of the processor's state that the system saves.
#[target_feature(enable = "xsave")]
fn saved() -> u64 {
    // SAFETY: register 0 is there.
    unsafe { _xgetbv(0) }
}

/// Asks for the tiles, for all threads of the process: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call touches no memory of the process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

/// Other systems give the tiles in ways of their own, if at all.
#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// This thread's registers as whole tiles; free again when dropped.
pub(super) struct Tiles(());

impl Tiles {
    /// # Safety
    /// There is a [`unit`].
    pub(super) unsafe fn new() -> Tiles {
        /// Palette 1; bytes of a row from byte 16 on, two each; rows from byte 48 on.
        #[repr(C, align(64))]
        struct Shape([u8; 64]);
        let mut shape = Shape([0; 64]);
        shape.0[0] = 1;
        for register in 0..8 {
            shape.0[16 + 2 * register] = LINE as u8;
            shape.0[48 + register] = SIDE as u8;
        }
        // SAFETY: the caller's promise.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const shape, options(nostack, readonly)) };
        Tiles(())
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: there is a unit, since there are tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// A block: one or two rows of two tiles. Of a and b as many tiles lie behind one another for each group of k, which is
/// 64 bytes of it. Distances are in bytes.
pub(super) struct Block {
    pub(super) groups: usize,
    pub(super) a: *const u8,
    pub(super) b: *const u8,
    /// Where the sums start; null for zero.
    pub(super) start: *const u8,
    pub(super) start_row: isize,
    pub(super) d: *mut u8,
    pub(super) d_row: isize,
}

/// Code for a block.
pub(super) type Code = unsafe fn(&Block, &Tiles);

macro_rules! blocks {
    ($one:ident, $two:ident, $multiply:literal) => {
        /// # Safety
        /// All of the block's tiles are there, and at least one group.
        unsafe fn $one(x: &Block, _: &Tiles) {
            // SAFETY: the caller's promise.
            unsafe {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "test {start}, {start}",
                    "jz 2f",
                    "tileloadd tmm0, [{start} + {start_row}]",
                    "tileloadd tmm1, [{start} + {start_row} + 64]",
                    "2:",
                    "tileloadd tmm4, [{a} + {line}]",
                    "tileloadd tmm6, [{b} + {line}]",
                    concat!($multiply, " tmm0, tmm4, tmm6"),
                    "tileloadd tmm7, [{b} + {line} + 1024]",
                    concat!($multiply, " tmm1, tmm4, tmm7"),
                    "add {a}, 1024",
                    "add {b}, 2048",
                    "dec {groups}",
                    "jnz 2b",
                    "tilestored [{d} + {d_row}], tmm0",
                    "tilestored [{d} + {d_row} + 64], tmm1",
                    start = in(reg) x.start,
                    start_row = in(reg) x.start_row,
                    a = inout(reg) x.a => _,
                    b = inout(reg) x.b => _,
                    groups = inout(reg) x.groups => _,
                    line = in(reg) LINE,
                    d = in(reg) x.d,
                    d_row = in(reg) x.d_row,
                    out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }

        /// # Safety
        /// All of the block's tiles are there, and at least one group.
        unsafe fn $two(x: &Block, _: &Tiles) {
            let side = SIDE as isize;
            // SAFETY: the caller's promise.
            unsafe {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "test {start}, {start}",
                    "jz 2f",
                    "tileloadd tmm0, [{start} + {start_row}]",
                    "tileloadd tmm1, [{start} + {start_row} + 64]",
                    "tileloadd tmm2, [{start_below} + {start_row}]",
                    "tileloadd tmm3, [{start_below} + {start_row} + 64]",
                    "2:",
                    "tileloadd tmm4, [{a} + {line}]",
                    "tileloadd tmm6, [{b} + {line}]",
                    concat!($multiply, " tmm0, tmm4, tmm6"),
                    "tileloadd tmm7, [{b} + {line} + 1024]",
                    concat!($multiply, " tmm1, tmm4, tmm7"),
                    "tileloadd tmm5, [{a} + {line} + 1024]",
                    concat!($multiply, " tmm2, tmm5, tmm6"),
                    concat!($multiply, " tmm3, tmm5, tmm7"),
                    "add {a}, 2048",
                    "add {b}, 2048",
                    "dec {groups}",
                    "jnz 2b",
                    "tilestored [{d} + {d_row}], tmm0",
                    "tilestored [{d} + {d_row} + 64], tmm1",
                    "tilestored [{d_below} + {d_row}], tmm2",
                    "tilestored [{d_below} + {d_row} + 64], tmm3",
                    start = in(reg) x.start,
                    start_below = in(reg) x.start.wrapping_offset(side * x.start_row),
                    start_row = in(reg) x.start_row,
                    a = inout(reg) x.a => _,
                    b = inout(reg) x.b => _,
                    groups = inout(reg) x.groups => _,
                    line = in(reg) LINE,
                    d = in(reg) x.d,
                    d_below = in(reg) x.d.wrapping_offset(side * x.d_row),
                    d_row = in(reg) x.d_row,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

blocks!(bf16_one, bf16_two, "tdpbf16ps");
blocks!(i8_one, i8_two, "tdpbssd");

/// Code for one and for two rows of tiles, of bf16.
pub(super) const BF16: [Code; 2] = [bf16_one, bf16_two];
/// The same of i8.
pub(super) const I8: [Code; 2] = [i8_one, i8_two];
