//! The table of routines that emitted code calls: symbols, signatures and addresses. Their code is `ptoc-kernels`.

use crate::effects::dtype;
use cranelift_codegen::ir::types::{I64, Type};
use ptoc_ir::loops::{BinOp, MemTy, Module};
use ptoc_kernels::{self as kernels, LINE, PRODUCT_PARAMS, ReduceOp};

/// Bytes of a module's arena up to where a routine's panels begin.
pub(crate) fn arena(module: &Module) -> u64 {
    module.arena.next_multiple_of(LINE as u64)
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
    /// Matrix product: see [`ptoc_kernels::product`].
    Matmul,
    /// Reduction of rows: see [`ptoc_kernels::reduce`].
    Reduce(BinOp, MemTy),
    /// Elements of 1, 2, 4 or 8 bytes of a table: see [`ptoc_kernels::gather`].
    Gather(u32),
    /// The same where rows may stay in the table: see [`ptoc_kernels::locate`].
    Locate(u32),
    /// Lists of records with f16 or f32 values, put in order: see [`ptoc_kernels::sort`].
    Sort(MemTy),
    /// Four lists of them merged: see [`ptoc_kernels::merge`].
    Merge(MemTy),
    /// Neighbouring lists: see [`ptoc_kernels::merge_runs`].
    MergeRuns(MemTy),
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
            Routine::Sort(ty) => format!("ptoc_sort_{}", ty.name()),
            Routine::Merge(ty) => format!("ptoc_merge_{}", ty.name()),
            Routine::MergeRuns(ty) => format!("ptoc_merge_runs_{}", ty.name()),
        }
    }

    /// Its parameters.
    pub(crate) fn params(self) -> &'static [Type] {
        match self {
            Routine::FromF16 | Routine::ToF16 | Routine::MergeRuns(_) => &[I64; 6],
            Routine::Copy | Routine::Reduce(..) => &[I64; 7],
            Routine::Move(_) => &[I64; 9],
            Routine::Matmul => &[I64; PRODUCT_PARAMS],
            Routine::Gather(_) | Routine::Sort(_) => &[I64; 11],
            Routine::Merge(_) => &[I64; 14],
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
        let sorts = [MemTy::F16, MemTy::F32]
            .into_iter()
            .flat_map(|ty| [Routine::Sort(ty), Routine::Merge(ty), Routine::MergeRuns(ty)]);
        let routine =
            fixed.into_iter().chain(moves).chain(gathers).chain(sorts).find(|r| r.name() == name).or_else(|| {
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
            Routine::Copy => Some(kernels::copy()),
            Routine::Move(size) => kernels::strided(size),
            Routine::Gather(size) => kernels::gather(size),
            Routine::Locate(size) => kernels::locate(size),
            Routine::FromF16 => kernels::from_f16(),
            Routine::ToF16 => kernels::to_f16(),
            Routine::Matmul => Some(kernels::product()),
            Routine::Reduce(op, ty) => reduction(op, ty),
            Routine::Sort(ty) => Some(kernels::sort(ty == MemTy::F16)),
            Routine::Merge(ty) => Some(kernels::merge(ty == MemTy::F16)),
            Routine::MergeRuns(ty) => Some(kernels::merge_runs(ty == MemTy::F16)),
        }
    }
}

/// The reduction of elements of this type; integers have a sign but for the operators that say otherwise.
fn reduction(op: BinOp, ty: MemTy) -> Option<*const u8> {
    let (op, unsigned) = match op {
        BinOp::Add => (ReduceOp::Add, false),
        BinOp::Max => (ReduceOp::Max, false),
        BinOp::Min => (ReduceOp::Min, false),
        BinOp::MaxU => (ReduceOp::Max, true),
        BinOp::MinU => (ReduceOp::Min, true),
        _ => return None,
    };
    kernels::reduce(op, dtype(ty, unsigned))
}
