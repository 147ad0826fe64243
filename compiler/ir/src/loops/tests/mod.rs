//! Text, verifier and evaluator of loop IR.

mod evaluate;
mod texts;
mod verifier;

use super::{Module, text};
use ptoc_diagnostics::FileId;

/// A module around a block function's body: two tensors, two spaces, two checks; `r0`, `r1` are i64 parameters; three
/// variables m0: i64, m1: f32, m2: bool; four labels.
fn with_body(body: &str) -> String {
    format!(
        r#"kernel "k"
tensor "A"
tensor "B"
arena 256
space "Vec" at 0 size 128
space "Mat" at 128 size 128
check 7
check 8
launch "k.launch" (r0: i64) -> (r0) {{
}}
block "k.block" (r0: i64, r1: i64) {{
  var m0: i64
  var m1: f32
  var m2: bool
  labels 4
{body}}}
"#
    )
}

fn parsed(text: &str) -> Module {
    text::parse(text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}
