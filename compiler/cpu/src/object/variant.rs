//! The widths of vectors that an object has code for.

use crate::host::{Host, flags};
use crate::wide::Isa;
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::Configurable;
use std::sync::OnceLock;

/// Code for processors of a level and above.
pub(super) struct Variant {
    pub(super) bits: u32,
    /// What nests are made for, rather than by Cranelift.
    pub(super) wide: Option<Isa>,
    pub(super) host: Host,
}

/// Flags of Cranelift that the least x86-64 processor has which is supported, and those of wider vectors.
const LEAST: [&str; 5] = ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"];
const WIDER: [&str; 3] = ["has_avx", "has_avx2", "has_fma"];

/// The variants for the architecture of this machine, by level: the first is for all that are supported.
pub(super) fn all() -> Result<&'static [Variant], &'static str> {
    static ALL: OnceLock<Result<Vec<Variant>, String>> = OnceLock::new();
    ALL.get_or_init(make).as_deref().map_err(String::as_str)
}

fn make() -> Result<Vec<Variant>, String> {
    if cfg!(target_endian = "big") {
        return Err("arrays are little-endian, this machine is not".into());
    }
    let x86 = cfg!(target_arch = "x86_64");
    let host = |wide: bool| -> Result<Host, String> {
        let isa = |level: &str| -> Result<OwnedTargetIsa, String> {
            let triple = cranelift_native::builder().map_err(str::to_owned)?.triple().clone();
            let mut builder = isa::lookup(triple).map_err(|e| e.to_string())?;
            let wider: &[&str] = if wide { &WIDER } else { &[] };
            for flag in LEAST.iter().chain(wider).filter(|_| x86) {
                builder.enable(flag).map_err(|e| e.to_string())?;
            }
            builder.finish(flags(level, true)?).map_err(|e| e.to_string())
        };
        Ok(Host { optimised: isa("speed")?, plain: isa("none")?, vectors: true })
    };
    let mut all = vec![Variant { bits: 128, wide: None, host: host(false)? }];
    if x86 {
        all.push(Variant { bits: 256, wide: Some(Isa::Avx2), host: host(true)? });
        all.push(Variant { bits: 512, wide: Some(Isa::Avx512), host: host(true)? });
    }
    Ok(all)
}
