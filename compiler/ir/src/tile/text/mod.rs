//! The text form of tile IR. [`parse()`] and [`print()`] are inverse: `print(parse(print(k))) == print(k)`, and the
//! parsed kernel is equal to the printed one, spans included where they are printed.
//!
//! ```text
//! kernel "add" target "a2a3" @0:7..10
//! dim d0 "M": v0 @0:20..21
//! tensor g0 "a" in f32 [v0, v1] @0:11..30
//! tile t0 "x" Vec<f32, 16, 64> at [0x0] @0:50..51
//! check c0 PA-1003 "row {0} is outside" @0:60..61
//! prologue {
//!   v2: index = const 16
//! }
//! grid [v4 "i" < v3]
//! body {
//!   v5 "i.len": index = min v2, v4 @0:70..75
//!   alloc t0
//!   tload t0[16x64 v5, v6], g0[v7 + (v5, v6):(v1, v8)] @0:80..95
//! }
//! ```
//!
//! * A value is written `v3 "name": type @span = ...` where it is defined; its own span is left out when it is that of
//!   the statement. Values that nothing defines stand in `unused` lines.
//! * A tile operand is `t0#element[rowsxcols valid_rows, valid_cols at row, col]`; `#element` and `at` are left out for
//!   element 0 and origin (0, 0).
//! * A view is `g0[offset + (shape):(strides)]`.
//! * A side of a nest is `t0[16x64 v5, v6] at (row, column)` or `g0.f32[at + table.clamp g1[at] by v5 below v6] swizzle
//!   (3, 4, 3)`, where `at`, `row` and `column` are affine: `v7 + (strides)`. `copy [extents] dst from src where at <
//!   v3 fill v4 covers`, `mma [m][n][k] acc, a, b`.
//! * A tile's type with a layout of its own is `Vec<f32, 16, 64, (16,64):(1,16)>`.
//! * An instruction's modes follow its mnemonic: `tcmp.lt`, `tcvt.rint.sat`, `tstore.atomic`.
//! * A span is `@file:start..end`; `@?` is none. `//` starts a comment.

mod lexer;
mod parse;
mod parse_access;
mod parse_op;
mod print;
mod print_access;
mod print_op;

pub use parse::parse;
pub use print::{Spans, print};

#[cfg(test)]
mod tests;
