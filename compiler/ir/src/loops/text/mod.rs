//! The text form of loop IR. Printing and parsing are inverse: `parse(print(m)) == m`, spans included when printed.
//!
//! ```text
//! kernel "scale"
//! tensor "A"
//! arena 64
//! space "Vec" at 0 size 64
//! check 7 @0:10..14
//! bounds "A" proof @0:20..24
//! launch "scale.launch" (r0: i64) -> (r0) {
//! }
//! block "scale.block" (r0: i64, r1: i64) {
//!   r2: i64 = const 0
//!   lanes r3 in r0 {
//!     r4: f32 = load f16 t0[r2, stride 2]
//!     r5: f32 = mul r4, r4
//!     store f16 t0[r2, stride 2], r5
//!   }
//! }
//! ```
//!
//! `bounds "A" proof at 3:18` is about line 3, column 18 of the kernel's file, `at "act.tile" 3:18` about that of
//! another one. `bounds "A" checks 0 2` says that rows 0 and 2 of the check table keep what a statement does with A in
//! bounds, where neither `proof` nor `intervals` of variables do. `spread 0` (before the checks): blocks join along
//! dimension 0 of the grid. `raster 1 4` (behind it): they start in bands of 4 along dimension 1. `cluster 2`
//! (one for each dimension, behind it): two neighbours along the first one share what they load. `@file:start..end`
//! behind a statement is its span. Registers, variables, labels and spaces are numbered; `var`, `labels` and (for
//! registers that nothing defines) `reg` lines open a function's body. `//` starts a comment.

mod lex;
mod parse;
mod print;
mod statement;

pub use parse::parse;
pub use print::{print, print_func};
