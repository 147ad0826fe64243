//! The machine's matrix unit (AMX): may it be used, and its registers.
//!
//! A register is a tile of 16 rows of 64 bytes. One instruction multiplies two tiles, 16 by 16 dot products of 64
//! bytes.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::sync::OnceLock;

/// Rows of a tile, and columns of words.
pub const SIDE: usize = 16;
/// Bytes of a tile's row.
pub const LINE: usize = 64;
/// Bytes of a tile.
pub const TILE: usize = SIDE * LINE;

/// What the unit multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixUnit {
    /// Pairs of bf16, added to f32.
    pub bf16: bool,
    /// Groups of four i8, added to i32.
    pub i8: bool,
}

/// What the machine's unit multiplies: none if there is no unit, or the system does not save its registers.
pub fn unit() -> MatrixUnit {
    static UNIT: OnceLock<MatrixUnit> = OnceLock::new();
    *UNIT.get_or_init(|| asked().unwrap_or(MatrixUnit { bf16: false, i8: false }))
}

/// Asks the processor, and the system for leave.
#[cfg(target_arch = "x86_64")]
fn asked() -> Option<MatrixUnit> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let vectors = std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("xsave");
    if !vectors || __cpuid(0).eax < 7 {
        return None;
    }
    // CPUID.7.0:EDX: bf16 is bit 22, tiles are 24, i8 is 25.
    let features = __cpuid_count(7, 0).edx;
    let has = |bit: u32| features >> bit & 1 == 1;
    // SAFETY: the processor has the instruction.
    let saved = unsafe { saved() };
    // XCR0: components 17 and 18 are the configuration and the tiles.
    let there = has(24) && saved >> 17 & 3 == 3 && permitted();
    there.then(|| MatrixUnit { bf16: has(22), i8: has(25) })
}

#[cfg(not(target_arch = "x86_64"))]
fn asked() -> Option<MatrixUnit> {
    None
}

/// The components of the processor's state that the system saves.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
fn saved() -> u64 {
    // SAFETY: register 0 is there.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}

/// Asks for the tiles, for all threads of the process: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call touches no memory of the process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

/// Other systems give the tiles in ways of their own, if at all.
#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn permitted() -> bool {
    false
}

/// This thread's registers as whole tiles; free again when dropped.
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub struct AmxTiles(());

#[cfg(target_arch = "x86_64")]
impl AmxTiles {
    /// All of them.
    ///
    /// # Safety
    /// There is a [`unit()`].
    pub unsafe fn new() -> AmxTiles {
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
        AmxTiles(())
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for AmxTiles {
    fn drop(&mut self) {
        // SAFETY: there is a unit, since there are tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}
