//! The x86 SIMD back end: nests at the machine's full vector width, on x86-64 with AVX2 or AVX-512.
//!
//! A nest's body becomes a vector program (`translate`, with `lower`, `arith` and `memory`): straight-line code on
//! virtual registers for as many lanes as a vector has 32-bit elements; 64-bit values take two registers. Then `alloc`
//! gives out machine registers, and `function` puts the program into a loop over rows and lanes, with the last lanes of
//! a row behind it. The function has the interface that Cranelift's would have, and needs no relocations: constants
//! stand behind its code.

mod alloc;
mod arith;
mod asm;
mod emit;
mod ending;
mod flatten;
mod frame;
mod function;
mod lanewise;
mod lower;
mod memory;
mod ops;
mod powers;
mod program;
mod ranges;
mod translate;
mod unroll_and_jam;

use crate::nest::Nest;
use asm::Encoded;

/// An instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Isa {
    /// AVX2, FMA and F16C: 16 registers of 256 bits.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: 32 registers of 512 bits, and masks.
    Avx512,
}

impl Isa {
    /// 32-bit lanes of a vector.
    pub(crate) fn lanes(self) -> i64 {
        i64::from(self.bytes() / 4)
    }

    /// Bytes of a vector.
    pub(crate) fn bytes(self) -> i32 {
        match self {
            Isa::Avx2 => 32,
            Isa::Avx512 => 64,
        }
    }

    fn registers(self) -> u8 {
        match self {
            Isa::Avx2 => 16,
            Isa::Avx512 => 32,
        }
    }

    /// Whether there is a shift to each byte by a count of its own (AVX-512 VBMI), where the code is for the machine at
    /// hand.
    pub(crate) fn multishift(self, at_hand: bool) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            at_hand && self == Isa::Avx512 && std::is_x86_feature_detected!("avx512vbmi")
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = at_hand;
            false
        }
    }

    /// Whether the machine at hand supports it.
    pub(crate) fn here(self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(windows)))]
        {
            let base = std::is_x86_feature_detected!("avx2")
                && std::is_x86_feature_detected!("fma")
                && std::is_x86_feature_detected!("f16c");
            match self {
                Isa::Avx2 => base,
                Isa::Avx512 => {
                    base && std::is_x86_feature_detected!("avx512f")
                        && std::is_x86_feature_detected!("avx512bw")
                        && std::is_x86_feature_detected!("avx512dq")
                        && std::is_x86_feature_detected!("avx512vl")
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(windows))))]
        {
            false
        }
    }
}

/// A nest's machine code.
pub(crate) struct Wide {
    pub(crate) code: Encoded,
    /// The vector program, if texts are wanted.
    pub(crate) program: String,
}

/// Code for a nest; `None` if an operation of it has no full-width form. `multishift`: see [`Isa::multishift`].
pub(crate) fn make(
    nest: &Nest,
    isa: Isa,
    multishift: bool,
    (name, text): (&str, bool),
) -> Result<Option<Wide>, String> {
    let Some(program) = translate::translate(nest, isa, multishift) else { return Ok(None) };
    let code = function::function(nest, &program)?;
    let about = || format!("; {name}: a vector program, {} bits\n{program}\n", 8 * isa.bytes());
    Ok(Some(Wide { code, program: if text { about() } else { String::new() } }))
}
