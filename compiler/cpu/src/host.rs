//! The machine at hand as Cranelift sees it.

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use std::sync::OnceLock;

/// Two instruction sets of one host: with the mid-end optimiser, and without (see `contract`).
pub(crate) struct Host {
    pub(crate) optimised: OwnedTargetIsa,
    pub(crate) plain: OwnedTargetIsa,
    /// It has the 128-bit vector operations that we emit.
    pub(crate) vectors: bool,
}

/// The host, or why it cannot be compiled for.
pub(crate) fn host() -> Result<&'static Host, &'static str> {
    static HOST: OnceLock<Result<Host, String>> = OnceLock::new();
    HOST.get_or_init(detect).as_ref().map_err(String::as_str)
}

/// Settings of the code generator; `pic`: the code is linked to an address that is not known yet.
pub(crate) fn flags(level: &str, pic: bool) -> Result<settings::Flags, String> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", level),
        ("is_pic", if pic { "true" } else { "false" }),
        ("use_colocated_libcalls", "false"),
        ("enable_verifier", verify),
        // Frames are small and hold no arrays.
        ("enable_probestack", "false"),
        ("unwind_info", "false"),
    ] {
        flags.set(name, value).map_err(|e| e.to_string())?;
    }
    Ok(settings::Flags::new(flags))
}

fn detect() -> Result<Host, String> {
    if cfg!(target_endian = "big") {
        return Err("tensors are little-endian, this machine is not".into());
    }
    let isa = |level: &str| -> Result<OwnedTargetIsa, String> {
        let builder = cranelift_native::builder().map_err(str::to_owned)?;
        builder.finish(flags(level, false)?).map_err(|e| e.to_string())
    };
    let optimised = isa("speed")?;
    let has = |flag: &str| optimised.isa_flags().iter().any(|f| f.name == flag && f.as_bool() == Some(true));
    let vectors = if cfg!(target_arch = "x86_64") {
        has("has_ssse3") && has("has_sse41") && has("has_sse42")
    } else {
        cfg!(target_arch = "aarch64")
    };
    Ok(Host { plain: isa("none")?, optimised, vectors })
}
