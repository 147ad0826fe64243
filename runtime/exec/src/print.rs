//! `print`: compiled code hands over raw values, the site's description says what they are.

use ptoc_abi::PrintItem;
use ptoc_tensor::{DType, scalar};
use std::ffi::c_void;

/// A piece of a `print` that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintValue {
    /// Text.
    Text(String),
    /// A scalar: for f16, bf16 and f32 the bits of an f32, for integers the value (sign- or zero-extended).
    Scalar {
        /// Its dtype.
        dtype: DType,
        /// Its bits.
        bits: i64,
    },
    /// A matrix, row-major; elements as the memory has them, zero-extended.
    Matrix {
        /// Type of an element.
        dtype: DType,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// The elements' bits.
        bits: Vec<u64>,
    },
}

/// One executed `print`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintEvent {
    /// The block's linear index; `None` in the launch function.
    pub block: Option<u64>,
    /// The statement: index among the kernel's prints.
    pub site: u32,
    /// What it printed.
    pub values: Vec<PrintValue>,
}

impl PrintEvent {
    /// The line as the reference interpreter prints it, with its newline: texts as they are, floats as the shortest
    /// decimal of their f32, a matrix as `[[a, b], [c, d]]`.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for value in &self.values {
            match value {
                PrintValue::Text(text) => line.push_str(text),
                // A float scalar is already an f32.
                PrintValue::Scalar { dtype, bits } if dtype.is_float() => {
                    line.push_str(&element(DType::F32, *bits as u64))
                }
                PrintValue::Scalar { dtype, bits } => line.push_str(&element(*dtype, *bits as u64)),
                PrintValue::Matrix { dtype, rows, cols, bits } => {
                    let row = |r: usize| {
                        let all: Vec<_> = bits[r * cols..(r + 1) * cols].iter().map(|b| element(*dtype, *b)).collect();
                        format!("[{}]", all.join(", "))
                    };
                    let all: Vec<_> = (0..*rows).map(row).collect();
                    line.push_str(&format!("[{}]", all.join(", ")));
                }
            }
        }
        line.push('\n');
        line
    }
}

fn element(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::Bool => (bits & 0xff != 0).to_string(),
        DType::F16 => scalar::f16_to_f32(bits as u16).to_string(),
        DType::BF16 => scalar::bf16_to_f32(bits as u16).to_string(),
        DType::F32 => f32::from_bits(bits as u32).to_string(),
        DType::F8E4M3 | DType::F8E5M2 => (scalar::bits_to_f64(dtype, bits) as f32).to_string(),
        _ => scalar::bits_to_i128(dtype, bits).to_string(),
    }
}

/// What a frame's `print_ctx` points to: the prints of one thread.
pub(crate) struct PrintLog<'a> {
    pub(crate) sites: &'a [Vec<PrintItem>],
    pub(crate) block: Option<u64>,
    pub(crate) events: Vec<PrintEvent>,
}

/// The hook: copies the values out of the block's memory.
///
/// # Safety
/// `ctx` points to a [`PrintLog`] that nothing else uses during the call; `values` has the slots that the site's items
/// need, and matrix addresses are readable as their strides and extents say.
pub(crate) unsafe extern "C" fn record(ctx: *mut c_void, site: u32, values: *const i64) {
    // SAFETY: the caller's promise.
    let log = unsafe { &mut *ctx.cast::<PrintLog<'_>>() };
    let mut slot = 0;
    let mut take = || {
        // SAFETY: the caller's promise: the items below take exactly the slots that the code filled.
        let value = unsafe { *values.add(slot) };
        slot += 1;
        value
    };
    let items = log.sites.get(site as usize).map_or(&[][..], Vec::as_slice);
    let values = items
        .iter()
        .map(|item| match item {
            PrintItem::Text(text) => PrintValue::Text(text.clone()),
            PrintItem::Scalar(dtype) => PrintValue::Scalar { dtype: *dtype, bits: take() },
            PrintItem::Matrix { dtype, row_stride, col_stride } => {
                let base = take() as *const u8;
                let (rows, cols) = (take().max(0) as usize, take().max(0) as usize);
                let mut bits = Vec::new();
                for r in 0..rows as i64 {
                    for c in 0..cols as i64 {
                        let at = base.wrapping_offset((r * row_stride + c * col_stride) as isize);
                        let mut raw = [0u8; 8];
                        // SAFETY: the element lies in the matrix, which the caller promises is readable.
                        unsafe { std::ptr::copy_nonoverlapping(at, raw.as_mut_ptr(), dtype.size()) };
                        bits.push(u64::from_le_bytes(raw));
                    }
                }
                PrintValue::Matrix { dtype: *dtype, rows, cols, bits }
            }
        })
        .collect();
    log.events.push(PrintEvent { block: log.block, site, values });
}
