//! Routines that are compiled ahead of time, at the machine's full vector width, and called by emitted code.
//!
//! Cranelift's vectors are 128 bits wide and know nothing of half precision; these few bodies make up for it. They need
//! no time to compile, and their results are bit for bit those of the code that is emitted where a machine lacks the
//! instructions: each element has the same roundings in the same order.

#[cfg(target_arch = "x86_64")]
mod eights;
mod gather;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_imports, unused_variables, reason = "only its plain version is reached there")
)]
mod gemm;
mod halves;
mod located;
mod reduce;
mod rows;
mod simd;
#[cfg(target_arch = "x86_64")]
mod sixteens;
mod steps;
mod strided;

pub(crate) use gather::mode;
pub(crate) use gemm::{Units, scratch, second_level, types};

use cranelift_codegen::ir::types::{I64, Type};
use ptoc_ir::loops::{BinOp, MemTy, Module};

/// Rows of elements: the first one, and bytes from row to row.
#[derive(Clone, Copy)]
struct Rows<P> {
    at: P,
    step: isize,
}

/// Bytes of a cache's line.
pub(crate) const LINE: usize = 64;

/// Has the machine vectors wider than Cranelift's?
pub(crate) fn wide() -> bool {
    gemm::wide()
}

/// Bytes of a module's arena up to where a routine's panels begin.
pub(crate) fn arena(module: &Module) -> u64 {
    module.arena.next_multiple_of(64)
}

/// A routine. All take i64 only (addresses too) and give nothing, or one i64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Routine {
    /// Rows of bytes: destination, source, rows, bytes of a row, bytes from row to row of both, whether past the
    /// caches.
    Copy,
    /// Elements of 1, 2, 4 or 8 bytes: destination, source, rows, columns, bytes from row to row of both, from column
    /// to column of both, whether past the caches.
    Move(u32),
    /// f16 to f32: destination, source, rows, columns, bytes from row to row of both.
    FromF16,
    /// f32 to f16, to nearest even: like `FromF16`.
    ToF16,
    /// Matrix product: see [`gemm`].
    Matmul,
    /// Reduction of rows: see [`reduce`].
    Reduce(BinOp, MemTy),
    /// Elements of 1, 2, 4 or 8 bytes of a table: see [`gather`].
    Gather(u32),
    /// The same where rows may stay in the table: see [`located`].
    Locate(u32),
}

impl Routine {
    /// Its symbol.
    pub(crate) fn name(self) -> String {
        match self {
            Routine::Copy => "ptoc_copy".into(),
            Routine::Move(size) => format!("ptoc_move_{size}"),
            Routine::FromF16 => "ptoc_from_f16".into(),
            Routine::ToF16 => "ptoc_to_f16".into(),
            Routine::Matmul => "ptoc_matmul".into(),
            Routine::Gather(size) => format!("ptoc_gather_{size}"),
            Routine::Locate(size) => format!("ptoc_locate_{size}"),
            Routine::Reduce(op, ty) => format!("ptoc_reduce_{}_{}", op.name(), ty.name()),
        }
    }

    /// Its parameters.
    pub(crate) fn params(self) -> &'static [Type] {
        match self {
            Routine::FromF16 | Routine::ToF16 => &[I64; 6],
            Routine::Copy | Routine::Reduce(..) => &[I64; 7],
            Routine::Move(_) => &[I64; 9],
            Routine::Matmul => &[I64; gemm::PARAMS],
            Routine::Gather(_) => &[I64; 11],
            Routine::Locate(_) => &[I64; 16],
        }
    }

    /// What it gives.
    pub(crate) fn results(self) -> &'static [Type] {
        if let Routine::Gather(_) | Routine::Locate(_) = self { &[I64] } else { &[] }
    }

    /// The routine of that name, at its address.
    pub(crate) fn find(name: &str) -> Option<*const u8> {
        let fixed = [Routine::Copy, Routine::FromF16, Routine::ToF16, Routine::Matmul];
        let moves = [1, 2, 4, 8].map(Routine::Move);
        let gathers = [1, 2, 4, 8].into_iter().flat_map(|size| [Routine::Gather(size), Routine::Locate(size)]);
        let routine = fixed.into_iter().chain(moves).chain(gathers).find(|r| r.name() == name).or_else(|| {
            let reduction = name.strip_prefix("ptoc_reduce_")?;
            let (op, ty) = reduction.rsplit_once('_')?;
            let (op, ty) = (BinOp::from_name(op)?, MemTy::ALL.into_iter().find(|t| t.name() == ty)?);
            Some(Routine::Reduce(op, ty))
        });
        routine.and_then(Routine::address)
    }

    /// Its code for the machine at hand; none if the machine lacks the instructions.
    pub(crate) fn address(self) -> Option<*const u8> {
        match self {
            Routine::Copy => Some(rows::copy as *const u8),
            Routine::Move(1) => Some(strided::move_1 as *const u8),
            Routine::Move(2) => Some(strided::move_2 as *const u8),
            Routine::Move(4) => Some(strided::move_4 as *const u8),
            Routine::Move(8) => Some(strided::move_8 as *const u8),
            Routine::Gather(1) => Some(gather::gather_1 as *const u8),
            Routine::Gather(2) => Some(gather::gather_2 as *const u8),
            Routine::Gather(4) => Some(gather::gather_4 as *const u8),
            Routine::Gather(8) => Some(gather::gather_8 as *const u8),
            Routine::Locate(1) => Some(located::locate_1 as *const u8),
            Routine::Locate(2) => Some(located::locate_2 as *const u8),
            Routine::Locate(4) => Some(located::locate_4 as *const u8),
            Routine::Locate(8) => Some(located::locate_8 as *const u8),
            Routine::Move(_) | Routine::Gather(_) | Routine::Locate(_) => None,
            Routine::FromF16 => halves::from_f16(),
            Routine::ToF16 => halves::to_f16(),
            Routine::Matmul => Some(gemm::product as *const u8),
            Routine::Reduce(op, ty) => reduce::reduce(op, ty),
        }
    }
}
