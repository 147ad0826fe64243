//! Targets: what a machine has and allows. Each is a data file in `targets/`; nothing here knows a number.

mod base;
mod builtin;
mod instructions;
mod memories;
mod parse;
mod raw;
mod setting;
mod shape;
mod unit;

use crate::math::Exponential;
use crate::{AtomicOp, InstrId, Loc, Pipe};
use ptoc_tensor::DType;
use ptoc_tensor::matrix_unit::SumProfile;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

pub use instructions::InstructionSet;
pub use setting::{Allowed, Preset, Setting};
pub use unit::{
    AimUnit, Device, GeoUnit, HbmUnit, ProcessingUnit, Rounding, Stepping, UnitKind, UnitOperation, UnitOperations,
};

/// Where data of a move lies: in global memory or in a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MemorySpace {
    /// Global memory: a view of a tensor.
    Gm,
    /// A tile.
    Tile(Loc),
}

impl From<Loc> for MemorySpace {
    fn from(loc: Loc) -> MemorySpace {
        MemorySpace::Tile(loc)
    }
}

impl fmt::Display for MemorySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemorySpace::Gm => f.write_str("GM"),
            MemorySpace::Tile(loc) => loc.fmt(f),
        }
    }
}

/// One on-chip memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The hardware's name: `UB`, `L1`, `L0A`.
    pub name: String,
    /// Bytes; 0 if the target has no such memory.
    pub capacity: u64,
    /// Every tile starts at a multiple of this.
    pub align: u64,
    /// A row (of an unboxed row-major tile; a column of a column-major one) is a multiple of so many bytes.
    pub row_align: u64,
    /// Tiles that are moved here have one row (Bias, Scaling).
    pub one_row: bool,
    /// Inner rows and columns of the fractal boxes by element size; empty for unboxed tiles.
    pub fractal: Vec<(usize, u32, u32)>,
    /// `capacity` was overridden.
    pub overridden: bool,
}

impl Memory {
    /// Inner rows and columns of a box of elements of `size` bytes.
    pub fn fractal_of(&self, size: usize) -> Option<(u32, u32)> {
        self.fractal.iter().find(|(s, ..)| *s == size).map(|&(_, r, c)| (r, c))
    }
}

/// One memory that several locations share: their tiles are placed together. A location of it has the pool's capacity
/// and alignment as its own ([`Target::memory`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The name in the target's file.
    pub name: String,
    /// The locations, in the order of [`Loc::ALL`]; not empty.
    pub locations: Vec<Loc>,
}

/// Dtypes that the matrix unit combines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triple {
    /// The accumulator.
    pub acc: DType,
    /// The left operand.
    pub left: DType,
    /// The right operand.
    pub right: DType,
}

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} += {} * {}", self.acc, self.left, self.right)
    }
}

/// A legal move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveRule {
    /// `TLOAD`, `TMOV` or `TSTORE`.
    pub instr: InstrId,
    /// Source.
    pub from: MemorySpace,
    /// Destination.
    pub to: MemorySpace,
    /// Pairs (from, to) of dtypes; equal ones first.
    pub pairs: Vec<(DType, DType)>,
    /// Pairs that it takes with a scale (from Acc).
    pub quantised: Vec<(DType, DType)>,
}

/// Limits of instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// m, k and n of a matrix product.
    pub matmul_extent: RangeInclusive<u32>,
    /// Most rows that TLOAD fills, by destination.
    pub load_rows: Vec<(Loc, u32)>,
    /// Most rows that TSTORE takes, by source.
    pub store_rows: Vec<(Loc, u32)>,
    /// Columns that TSTORE takes from Acc.
    pub store_cols: RangeInclusive<u32>,
    /// 32-byte blocks that TEXPANDS fills in Mat.
    pub fill_blocks: RangeInclusive<u64>,
}

/// What orders the pipes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipes {
    /// Pipes on which an instruction may start before the one before it is done: one that needs its result, or its
    /// bytes, needs `pipe_barrier` between them. All others finish what they started first.
    pub barrier: Vec<Pipe>,
    /// Flags from one pipe to another.
    pub flags: u32,
    /// What the model of time takes instructions to cost; `None`: the target has no such model.
    pub time: Option<PipeTimes>,
}

/// A model of time, plausible and not measured. An instruction takes the startup of its pipe and its work over the
/// rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipeTimes {
    /// MHz: cycles a microsecond.
    pub clock: u32,
    /// Cores that blocks are spread over.
    pub cores: u32,
    /// Cycles that the issuer takes for each instruction.
    pub issue: u32,
    /// Cycles from a set to the end of the wait for it.
    pub sync: u32,
    /// Cycles before the first result, by pipe.
    pub startup: [u32; 7],
    /// Bytes a cycle, of the largest operand, by pipe; 0 for S and M.
    pub bytes: [u32; 7],
    /// Multiply-adds a cycle, by bytes of an operand's element, ascending.
    pub macs: Vec<(usize, u32)>,
}

/// What a target is that kernels are compiled to PTX for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gpu {
    /// The least compute capability that a device must have.
    pub capability: (u32, u32),
    /// The exponential of kernels of several products on the matrix unit. `--exact` forbids another than the program.
    pub exponential: Exponential,
    /// Blocks of a cluster at most: CTAs that reach each other's shared memory. 1 where there are no clusters.
    pub cluster: u32,
}

/// A machine to compile for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The name on the command line.
    pub name: String,
    /// One line.
    pub description: String,
    /// What its instructions take, and how they work.
    pub instructions: Arc<InstructionSet>,
    /// Dtypes that tiles may have (`bool`, always present in Vec, is not listed).
    pub dtypes: Vec<DType>,
    /// The type into which a mask's bits are packed.
    pub mask_unit: DType,
    /// Matrix unit.
    pub triples: Vec<Triple>,
    /// Legal moves.
    pub moves: Vec<MoveRule>,
    /// Limits.
    pub limits: Limits,
    /// The pipes.
    pub pipes: Pipes,
    /// It is an NVIDIA GPU.
    pub gpu: Option<Gpu>,
    /// How a matrix unit adds that is no chain of multiply-adds, by the dtype of its factors. `--exact` forbids it.
    pub matrix_unit: Vec<(DType, SumProfile)>,
    /// The same of f32 that is rounded to TF32 first.
    pub tf32: Option<SumProfile>,
    /// Who computes in the memory; `None` on PTO's targets, and on [`Target::host`].
    pub unit: Option<ProcessingUnit>,
    /// The memory in which the units are.
    pub device: Option<Device>,
    /// Memories that several locations share.
    pools: Vec<Pool>,
    /// Bytes that a kernel of the host may have in Vec; 0 on PTO's targets.
    host_vec: u64,
    memories: [Memory; 14],
}

impl Target {
    /// How the matrix unit adds products of such factors, if it has an order of its own.
    pub fn sum_profile(&self, factors: DType) -> Option<SumProfile> {
        self.matrix_unit.iter().find(|(dtype, _)| *dtype == factors).map(|(_, profile)| *profile)
    }

    /// The memory of a location.
    pub fn memory(&self, loc: Loc) -> &Memory {
        &self.memories[loc as usize]
    }

    /// Bytes of the location's memory; 0 if the target has none.
    pub fn capacity(&self, loc: Loc) -> u64 {
        self.memory(loc).capacity
    }

    /// The same target with another capacity; of a pool, if the location is in one.
    #[must_use]
    pub fn with_capacity(mut self, loc: Loc, bytes: u64) -> Target {
        for loc in self.sharing(loc) {
            let memory = &mut self.memories[loc as usize];
            memory.capacity = bytes;
            memory.overridden = true;
        }
        self
    }

    /// The same target for a kernel whose tiles are fused into registers: those bound it, and its tiles may take more
    /// bytes than the memory behind `loc` has, as most of them are never there.
    #[must_use]
    pub fn before_fusion(mut self, loc: Loc) -> Target {
        /// So many times the registers: of the largest kernels tiles take twice as much.
        const MORE: u64 = 4;
        const NAME: &str = " before fusion";
        match self.pools.iter_mut().find(|pool| pool.locations.contains(&loc)) {
            Some(pool) if pool.name.ends_with(NAME) => return self,
            Some(pool) => pool.name.push_str(NAME),
            None => {}
        }
        for loc in self.sharing(loc) {
            self.memories[loc as usize].capacity *= MORE;
        }
        self
    }

    /// Memories that several locations share.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The memory that the location shares with others.
    pub fn pool_of(&self, loc: Loc) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.locations.contains(&loc))
    }

    /// The locations of the memory behind `loc`: those of its pool, or it alone.
    pub fn sharing(&self, loc: Loc) -> Vec<Loc> {
        self.pool_of(loc).map_or_else(|| vec![loc], |pool| pool.locations.clone())
    }

    /// The location that stands for the memory behind `loc`: the first of its pool, or itself. Two tiles can have bytes
    /// in common if it is the same for both.
    pub fn home(&self, loc: Loc) -> Loc {
        self.pool_of(loc).and_then(|pool| pool.locations.first().copied()).unwrap_or(loc)
    }

    /// Whether MSCATTER has this update of an element.
    pub fn scatters_by(&self, op: AtomicOp) -> bool {
        self.instructions.scatter.contains(&op)
    }

    /// Whether the target's kernels run in the memory (or on the host beside it). For backends, which serve one family
    /// or another; what a target can do, the predicates below tell.
    pub fn is_pim(&self) -> bool {
        self.device.is_some()
    }

    /// Whether data and blocks are placed in banks of the memory (`1@bank`). Then all sizes are known when a kernel is
    /// compiled.
    pub fn has_banks(&self) -> bool {
        self.device.is_some()
    }

    /// Whether tiles have addresses, which a program may give. Units in memory have registers, which the compiler gives
    /// out.
    pub fn has_addresses(&self) -> bool {
        self.device.is_none()
    }

    /// Whether it has pipes that work at the same time, and flags from one to another. Units in memory do one thing
    /// after the other.
    pub fn has_pipes(&self) -> bool {
        self.device.is_none()
    }

    /// Whether its file says which updates (`atomic = ..`) instructions make. What units in memory do is their
    /// backend's to say.
    pub fn lists_updates(&self) -> bool {
        self.device.is_none()
    }

    /// Whether it has units in the memory, that a kernel is for. Its host has not.
    pub fn has_units(&self) -> bool {
        self.unit.is_some()
    }

    /// Whether it has a host beside its units, for kernels `#[on(host)]`.
    pub fn has_host(&self) -> bool {
        self.host_vec > 0
    }

    /// Whether the storage of a declared tile is padded to whole lines and boxes. Units in memory have registers and
    /// bursts of their sizes, which nothing pads.
    pub fn pads_tiles(&self) -> bool {
        self.device.is_none()
    }

    /// Whether a program may name the location. PTO's targets know all of PTO's, and what they lack of them is a matter
    /// of sizes; where units compute, a location is there or it is not.
    pub fn knows(&self, loc: Loc) -> bool {
        let known = self.device.is_none() && !Loc::UNIT.contains(&loc);
        known || self.capacity(loc) > 0 || self.memory(loc).overridden
    }

    /// What a kernel of the host sees on a PIM target: no unit and none of its stores, and a Vec of its own.
    #[must_use]
    pub fn host(&self) -> Target {
        let mut host = self.clone();
        if self.unit.is_none() {
            return host;
        }
        host.unit = None;
        host.pools.clear();
        // It reaches the arrays and nothing else.
        let instr = |name| crate::lookup(name).expect("in the table");
        let all: Vec<_> = self.dtypes.iter().map(|d| (*d, *d)).collect();
        let way = |name, from, to| MoveRule { instr: instr(name), from, to, pairs: all.clone(), quantised: Vec::new() };
        let vec = MemorySpace::Tile(Loc::Vec);
        host.moves =
            vec![way("TLOAD", MemorySpace::Gm, vec), way("TMOV", vec, vec), way("TSTORE", vec, MemorySpace::Gm)];
        for loc in Loc::ALL {
            let memory = &mut host.memories[loc as usize];
            match loc {
                Loc::Vec => {
                    memory.name = "host".into();
                    memory.capacity = self.host_vec;
                    memory.overridden = false;
                }
                _ => memory.capacity = 0,
            }
        }
        host
    }

    /// The locations that a program may name: PTO's nine, or those that the units have.
    pub fn locations(&self) -> Vec<Loc> {
        let there = |l: &Loc| match self.device {
            Some(_) => self.capacity(*l) > 0 && *l != Loc::Lanes,
            None => !Loc::UNIT.contains(l),
        };
        Loc::ALL.into_iter().filter(there).collect()
    }

    /// Where what an expression computes goes, if the author names no place.
    pub fn temporaries(&self) -> Loc {
        if self.has_units() && self.capacity(Loc::Lanes) > 0 { Loc::Lanes } else { Loc::Vec }
    }

    /// The built-in targets but this one that a program for it could be meant for: those with PTO's locations, GPUs
    /// among them, or those with units in memory.
    pub fn others(&self) -> impl Iterator<Item = &'static Target> + Clone + use<'_> {
        let in_memory = |t: &Target| t.device.is_some();
        Target::all().iter().filter(move |t| t.name != self.name && in_memory(t) == in_memory(self))
    }

    /// Those of [`Target::others`] whose instructions work in the same locations.
    pub fn others_alike(&self) -> impl Iterator<Item = &'static Target> + Clone + use<'_> {
        let locations = self.locations();
        self.others().filter(move |t| t.locations() == locations)
    }

    /// Whether a tile of this target may have this dtype (in some location).
    pub fn has_dtype(&self, dtype: DType) -> bool {
        dtype == DType::Bool || self.dtypes.contains(&dtype)
    }

    /// The dtypes of accumulators, without repetition.
    pub fn accumulators(&self) -> Vec<DType> {
        distinct(self.triples.iter().map(|t| t.acc))
    }

    /// The dtypes that a tile at `loc` may have because of the matrix unit; `None` where that does not restrict it.
    pub fn cube_dtypes(&self, loc: Loc) -> Option<Vec<DType>> {
        match loc {
            Loc::Acc => Some(self.accumulators()),
            Loc::Left => Some(distinct(self.triples.iter().map(|t| t.left))),
            Loc::Right => Some(distinct(self.triples.iter().map(|t| t.right))),
            _ => None,
        }
    }

    /// The accumulator dtype for these operands.
    pub fn accumulator_of(&self, left: DType, right: DType) -> Option<DType> {
        self.triples.iter().find(|t| t.left == left && t.right == right).map(|t| t.acc)
    }

    /// The instruction and the dtype pairs of the move from `from` to `to`.
    pub fn move_rule(&self, from: MemorySpace, to: MemorySpace) -> Option<&MoveRule> {
        self.moves.iter().find(|m| m.from == from && m.to == to)
    }
}

fn distinct(items: impl Iterator<Item = DType>) -> Vec<DType> {
    let mut out = Vec::new();
    for d in items {
        if !out.contains(&d) {
            out.push(d);
        }
    }
    out
}

#[cfg(test)]
mod tests;
