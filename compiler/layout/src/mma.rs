//! Matrix instructions as data, and their tiling over threads and values.

use crate::{Layout, Tiler};
use std::fmt;
use std::sync::Arc;

/// One of the three operands of `D = A B^T + C`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// (M, K)
    A,
    /// (N, K)
    B,
    /// (M, N), also the result.
    C,
}

/// A matrix instruction: what it covers, and which (thread, value) holds which element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MmaAtom {
    /// Its name.
    pub name: String,
    /// M, N, K.
    pub shape: [i64; 3],
    /// Dtypes of D, A, B, C as written; this crate does not read them.
    pub types: [String; 4],
    /// Logical thread -> thread of the machine.
    pub thr: Layout,
    /// (thread, value) -> `m + n * M`-like index in the operand's matrix, numbered column-major inside the atom.
    pub a: Layout,
    /// As `a`, of (N, K).
    pub b: Layout,
    /// As `a`, of (M, N).
    pub c: Layout,
}

impl MmaAtom {
    /// The thread-value layout of an operand.
    pub fn tv(&self, operand: Operand) -> &Layout {
        match operand {
            Operand::A => &self.a,
            Operand::B => &self.b,
            Operand::C => &self.c,
        }
    }
}

/// Atoms side by side over threads, and each thread's repetitions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TiledMma {
    /// What is tiled.
    pub atom: Arc<MmaAtom>,
    /// Atoms in M, N and K (rank 3).
    pub atoms: Layout,
    /// The extent in M, N and K that one call covers, and its order there; one entry each (`_`: as much as the atoms).
    pub tiler: [Tiler; 3],
}

impl fmt::Display for TiledMma {
    /// `tiled_mma(NAME, (2,2,1):(1,2,4), <32,32,16>)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = &self.tiler;
        write!(f, "tiled_mma({}, {}, <{m},{n},{k}>)", self.atom.name, self.atoms)
    }
}
