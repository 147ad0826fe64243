//! What a launch passes, and what it leaves.
//!
//! All parameters are 64 bits: the tensors' addresses, dimensions and scalars in the order of the launch record, the
//! grid's extents, the number of blocks, the address of the status, the address of scratch memory; of a product on the
//! tensor cores, numbers and tensor maps behind them. The status is a word
//! that holds `block << 32 | check` of the first block that failed, or all ones; behind it five words for each CTA, the
//! number of arguments and four arguments. A CTA stops at its first failure, so its five words are that block's.

use crate::allocation::{MOST_THREADS, residents};
use crate::fragments::ArrayMap;
use crate::gemm::GemmAbi;
use ptoc_abi::Raster;
use ptoc_exec::Failure;
use ptoc_ir::loops::Module;
use ptoc_ir::loops::eval::{self, EvalStop, Memory};
use ptoc_ptx::sim::TensorMap;

/// Words of a CTA in the status.
pub(crate) const SLOT: usize = 5;

/// CTAs of a launch, and bytes of scratch memory of all of them, at most: beyond the CTAs that run at once.
const MOST_CTAS: u64 = 1 << 17;
const MOST_SCRATCH: u64 = 64 << 20;

/// The first word of a status of which no block has failed.
pub const NO_FAILURE: [u8; 8] = [0xff; 8];

/// Steps that a launch function may take.
const STEPS: u64 = 1 << 24;

/// The grid's extents for these dimensions and scalars. The launch function is a few statements on scalars; the host
/// evaluates it, so a launch that fails its checks never reaches the device.
///
/// # Errors
/// The check that fails.
pub fn extents(module: &Module, params: &[i64]) -> Result<Vec<i64>, EvalStop> {
    // Narrow floats are unpacked by way of memory.
    let arena = vec![0; usize::try_from(module.arena).unwrap_or(0)];
    let mut memory = Memory { tensors: Vec::new(), arena };
    eval::run(module, &module.launch, params, &mut memory, &mut Vec::new(), STEPS)
}

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abi {
    /// Tensors.
    pub tensors: usize,
    /// Dimensions and scalars.
    pub params: usize,
    /// Dimensions of the grid.
    pub rank: usize,
    /// Threads of a CTA.
    pub threads: u32,
    /// Bytes of shared memory, all sized by the launch.
    pub shared: u32,
    /// Bytes of scratch memory for each CTA, a multiple of 256.
    pub scratch: u64,
    /// The order of blocks.
    pub raster: Option<Raster>,
    /// Blocks of the grid that are one turn of a CTA, along each dimension; 1 along those that are not there.
    pub spans: Vec<u64>,
    /// CTAs of a cluster, which take a turn together; 1 for none.
    pub cluster: u32,
    /// Of a product on the tensor cores, what else a launch passes.
    pub gemm: Option<GemmAbi>,
    /// Of products in a row, the arrays of their operands.
    pub arrays: Vec<ArrayMap>,
}

/// What the parameters are made of.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// Addresses.
    pub tensors: &'a [u64],
    /// Dimensions, then scalars.
    pub params: &'a [i64],
    /// The grid's extents, all positive.
    pub extents: &'a [i64],
    /// Address of the status.
    pub status: u64,
    /// Address of scratch memory.
    pub scratch: u64,
}

impl Abi {
    /// CTAs that a multiprocessor has at once, as far as threads and shared memory go.
    pub fn resident(&self) -> u32 {
        residents(self.shared).min(MOST_THREADS / self.threads.max(1)).max(1)
    }

    /// CTAs of a launch, of which so many run at once: one for each turn, so that a multiprocessor takes the next when
    /// one ends, and CTAs are at different places of their work. Each has words of the status, and scratch memory where
    /// there is any, which bounds their number. Of a product on the tensor cores as many as run at once: their
    /// producers go on to the next block while consumers are at the last.
    pub fn ctas(&self, resident: u32, extents: &[i64]) -> u32 {
        let turns = self.turns(extents).iter().fold(1u64, |all, n| all.saturating_mul(*n as u64));
        if self.gemm.is_some() {
            return turns.clamp(1, u64::from((resident / self.cluster).max(1))) as u32 * self.cluster;
        }
        turns.clamp(1, self.most_ctas().max(u64::from(resident)).max(1)) as u32
    }

    /// CTAs of a launch at most, where more do not run at once.
    pub fn most_ctas(&self) -> u64 {
        MOST_SCRATCH.checked_div(self.scratch).map_or(MOST_CTAS, |n| n.min(MOST_CTAS))
    }

    /// What the CTAs share, in place of the grid: as many turns along each dimension.
    pub fn turns(&self, extents: &[i64]) -> Vec<i64> {
        let spans = self.spans.iter().copied().chain(std::iter::repeat(1));
        extents.iter().zip(spans).map(|(n, span)| (*n as u64).div_ceil(span) as i64).collect()
    }

    /// The parameters of a launch, in order.
    pub fn arguments(&self, a: &Arguments<'_>) -> Vec<u64> {
        let turns = self.turns(a.extents);
        let blocks: u64 = turns.iter().map(|&n| n as u64).product();
        let mut out = a.tensors.to_vec();
        out.extend(a.params.iter().chain(&turns).map(|&n| n as u64));
        out.extend([blocks, a.status, a.scratch]);
        out.extend(self.gemm.iter().flat_map(|gemm| gemm.numbers(a)));
        out.extend(self.told().map(|array| u64::from(array.is_mapped(a))));
        out
    }

    /// Arrays of which a launch says whether bulk copies can bring them.
    pub fn told(&self) -> impl Iterator<Item = &ArrayMap> {
        self.arrays.iter().filter(|array| array.told)
    }

    /// How many those are.
    pub fn arguments_len(&self) -> usize {
        self.tensors + self.params + self.rank + 3 + self.numbers_len()
    }

    /// Numbers of products.
    pub fn numbers_len(&self) -> usize {
        self.gemm.as_ref().map_or(0, GemmAbi::numbers_len) + self.told().count()
    }

    /// Tensor maps, which are the parameters behind those.
    pub fn maps(&self, a: &Arguments<'_>) -> Vec<TensorMap> {
        let mut maps = self.gemm.as_ref().map_or_else(Vec::new, |gemm| gemm.maps(a));
        maps.extend(self.arrays.iter().map(|array| array.map(a)));
        maps
    }

    /// The status before a launch.
    pub fn status(&self, ctas: u32) -> Vec<u8> {
        let mut bytes = NO_FAILURE.to_vec();
        bytes.resize(self.status_bytes(ctas), 0);
        bytes
    }

    /// Bytes of the status.
    pub fn status_bytes(&self, ctas: u32) -> usize {
        NO_FAILURE.len() + ctas as usize * 8 * SLOT
    }

    /// The first failure, if there is one.
    pub fn failure(&self, status: &[u8], extents: &[i64], ctas: u32) -> Option<Failure> {
        let word = |n: usize| Some(u64::from_le_bytes(status.get(8 * n..8 * n + 8)?.try_into().ok()?));
        let first = word(0).filter(|w| *w != u64::MAX)?;
        let (block, check) = (first >> 32, first as u32);
        let slot = 1 + (block % u64::from(ctas)) as usize * SLOT;
        let count = word(slot).map_or(0, |n| (n as usize).min(SLOT - 1));
        let args = (slot + 1..=slot + count).filter_map(word).map(|w| w as i64).collect();
        let mut coords = vec![0; self.rank];
        self.place(block, extents, &mut coords);
        Some(Failure { check, args, block: Some(block), coords })
    }

    /// The coordinates of a block, by its number in the order of the launch.
    pub fn place(&self, block: u64, extents: &[i64], coords: &mut [i64]) {
        let last = Raster { along: self.rank.saturating_sub(1) as u32, swizzle: 1 };
        if self.rank > 0 {
            self.raster.unwrap_or(last).place(block, &self.turns(extents), coords);
        }
        for (coord, span) in coords.iter_mut().zip(&self.spans) {
            *coord *= *span as i64;
        }
    }
}
