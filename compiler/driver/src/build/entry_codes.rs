//! What functions of C return: the codes of what they test themselves, and those of a kernel's checks.

use super::BuildUnit;
use ptoc_cpu::object::EntryCodes;
use ptoc_diagnostics::{Code, codes};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::CheckId;

/// A code that a function itself returns, and what headers say of it.
pub(crate) struct EntryCode {
    /// The code.
    pub code: Code,
    /// How the text of launchers names its number: `@NAME@`.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code))]
    pub name: &'static str,
    /// What it means where the function runs on the host, if it returns it there.
    on_host: Option<&'static str>,
    /// The same of a launcher for a device.
    on_device: Option<&'static str>,
}

/// Where the code of a function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunsOn {
    /// On the host's processor.
    Host,
    /// On a device.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code))]
    Device,
}

impl EntryCode {
    const fn both(code: Code, name: &'static str, text: &'static str) -> EntryCode {
        EntryCode { code, name, on_host: Some(text), on_device: Some(text) }
    }

    const fn device(code: Code, name: &'static str, text: &'static str) -> EntryCode {
        EntryCode { code, name, on_host: None, on_device: Some(text) }
    }
}

/// All of them.
pub(crate) const ENTRY_CODES: [EntryCode; 10] = [
    EntryCode::both(codes::TRAP_LAUNCH_MISMATCH, "NEGATIVE", "a dimension is negative"),
    EntryCode::both(codes::TENSOR_TOO_LARGE, "TOO_LARGE", "an array has more bytes than can be addressed"),
    EntryCode::both(codes::MISSING_INPUT, "NULL", "a pointer is null"),
    EntryCode {
        code: codes::MISALIGNED_ARRAY,
        name: "MISALIGNED",
        on_host: Some("a pointer is not aligned to an element"),
        on_device: Some("an array does not begin at a multiple of 16 bytes"),
    },
    EntryCode::both(
        codes::OVERLAPPING_ARRAYS,
        "OVERLAP",
        "an array that is written, or the workspace, shares bytes with another one",
    ),
    EntryCode::both(codes::GRID_TOO_LARGE, "GRID", "there are too many blocks"),
    EntryCode::both(codes::NO_MEMORY_FOR_TILES, "WORKSPACE", "the workspace is null or too small"),
    EntryCode {
        code: codes::HOST_NOT_SUPPORTED,
        name: "HOST",
        on_host: Some("the processor lacks SSE 4.2"),
        on_device: None,
    },
    EntryCode::device(
        codes::GPU_UNAVAILABLE,
        "UNAVAILABLE",
        "no context of a Hopper is current, or the kernel is not loaded",
    ),
    EntryCode::device(
        codes::GPU_FAILED,
        "FAILED",
        "the driver has refused a call or ended a launch: the number is its CUresult",
    ),
];

/// The number of a code: 1105 of PA-1105, 760 of E0760.
pub fn number(code: Code) -> i32 {
    let digits: String = code.as_str().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(-1)
}

/// The numbers that the entry of an object returns.
pub(super) fn entry_codes() -> EntryCodes {
    EntryCodes {
        dimension: number(codes::TRAP_LAUNCH_MISMATCH),
        too_large: number(codes::TENSOR_TOO_LARGE),
        null: number(codes::MISSING_INPUT),
        misaligned: number(codes::MISALIGNED_ARRAY),
        overlap: number(codes::OVERLAPPING_ARRAYS),
        processor: number(codes::HOST_NOT_SUPPORTED),
        grid: number(codes::GRID_TOO_LARGE),
        workspace: number(codes::NO_MEMORY_FOR_TILES),
    }
}

/// The codes of a module's checks, each once.
pub(crate) fn codes_of(unit: &BuildUnit, module: &Module) -> Vec<Code> {
    let kernel = &unit.prepared.placed.kernel;
    let mut all: Vec<Code> = module.checks.iter().map(|row| kernel.checks[CheckId::from_u32(row.id)].code).collect();
    all.sort_by_key(|c| c.as_str());
    all.dedup();
    all
}

/// A line of a header for each code that a function returns, by their numbers.
pub(super) fn listed(unit: &BuildUnit, module: &Module, runs: RunsOn) -> impl Iterator<Item = String> {
    let entry = |e: &EntryCode| {
        let text = if runs == RunsOn::Host { e.on_host } else { e.on_device };
        Some((e.code, text?))
    };
    let mut all: Vec<(Code, &str)> = ENTRY_CODES.iter().filter_map(entry).collect();
    all.extend(codes_of(unit, module).into_iter().map(|code| (code, code.info().title)));
    // What a function tests itself is said in its own words.
    all.sort_by_key(|(code, _)| number(*code));
    all.dedup_by_key(|(code, _)| *code);
    all.into_iter().map(|(code, text)| format!("    {:>4}  {}: {text}", number(code), code.as_str()))
}
