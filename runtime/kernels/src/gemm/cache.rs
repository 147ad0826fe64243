//! Sizes of the caches, asked of the processor once.

use std::sync::OnceLock;

/// What a core has of the first level, for data; 32 KiB where the processor does not say.
pub(crate) fn first_level() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| asked(1).unwrap_or(32 << 10).clamp(16 << 10, 256 << 10))
}

/// What a core has of the second level; 512 KiB where the processor does not say.
pub fn second_level() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| asked(2).unwrap_or(512 << 10).clamp(256 << 10, 4 << 20))
}

/// The data or unified cache of a level by the leaf of deterministic cache parameters: number 4, of AMD 0x8000001d.
#[cfg(target_arch = "x86_64")]
fn asked(wanted: u32) -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let (most, extended) = (__cpuid(0).eax, __cpuid(0x8000_0000).eax);
    let leaves = [(4, most >= 4), (0x8000_001d, extended >= 0x8000_001d)];
    for leaf in leaves.into_iter().filter(|l| l.1).map(|l| l.0) {
        for index in 0..16 {
            let cache = __cpuid_count(leaf, index);
            let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
            if kind == 0 {
                break;
            }
            if kind != 2 && level == wanted {
                let ways = (cache.ebx >> 22) + 1;
                let partitions = (cache.ebx >> 12 & 0x3ff) + 1;
                let line = (cache.ebx & 0xfff) + 1;
                let sets = cache.ecx as usize + 1;
                return (ways * partitions * line).try_into().ok().and_then(|way: usize| way.checked_mul(sets));
            }
        }
    }
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn asked(_: u32) -> Option<usize> {
    None
}
