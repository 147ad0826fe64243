//! The standard library: `.tile` modules, embedded so that the compiler works wherever it is installed.
//!
//! `use std::act::gelu;` imports `gelu` from the module `["act"]`.

#![forbid(unsafe_code)]

/// Every module: its path below `std`, the name that diagnostics use for its file, and its text.
pub const MODULES: &[(&[&str], &str, &str)] = &[
    (&["act"], "<std>/act.tile", include_str!("../act.tile")),
    (&["atoms"], "<std>/atoms.tile", include_str!("../atoms.tile")),
    (&["copies"], "<std>/copies.tile", include_str!("../copies.tile")),
    (&["curve"], "<std>/curve.tile", include_str!("../curve.tile")),
    (&["epilogue"], "<std>/epilogue.tile", include_str!("../epilogue.tile")),
    (&["gemm"], "<std>/gemm.tile", include_str!("../gemm.tile")),
    (&["hash"], "<std>/hash.tile", include_str!("../hash.tile")),
    (&["quant"], "<std>/quant.tile", include_str!("../quant.tile")),
    (&["rearrange"], "<std>/rearrange.tile", include_str!("../rearrange.tile")),
    (&["sampling"], "<std>/sampling.tile", include_str!("../sampling.tile")),
    (&["scan"], "<std>/scan.tile", include_str!("../scan.tile")),
    (&["sort"], "<std>/sort.tile", include_str!("../sort.tile")),
    (&["sparse"], "<std>/sparse.tile", include_str!("../sparse.tile")),
    (&["storage"], "<std>/storage.tile", include_str!("../storage.tile")),
];

/// The module at `path` (without the leading `std`): the name of its file and its text.
pub fn module(path: &[&str]) -> Option<(&'static str, &'static str)> {
    MODULES.iter().find(|(at, ..)| *at == path).map(|&(_, name, text)| (name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_by_path() {
        let (name, text) = module(&["act"]).unwrap();
        assert_eq!(name, "<std>/act.tile");
        assert!(text.contains("fn gelu(x: f32)"));
        assert_eq!(module(&["act", "gelu"]), None);
        assert_eq!(module(&[]), None);
    }
}
