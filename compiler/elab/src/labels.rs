//! Labels and machine-applicable repairs that many reports share.

use super::Elaborator;
use ptoc_diagnostics::{Code, Diagnostic, Edit, Span, codes};
use ptoc_ir::tile::Ty;
use ptoc_tensor::DType;
use ptoc_values::Val;

/// The remark at a place whose report has none of its own.
pub(crate) fn default_label(code: Code) -> Option<&'static str> {
    Some(match code {
        codes::UNKNOWN_MEMBER => "it has no such member",
        codes::NOT_CALLABLE => "no function",
        codes::WRONG_ARGUMENTS => "these arguments do not fit",
        codes::RECURSION => "this would never end",
        codes::UNKNOWN_STATIC => "no such parameter",
        codes::TYPE_MISMATCH => "does not fit here",
        codes::DTYPE_MISMATCH => "has another dtype",
        codes::SHAPE_MISMATCH => "has another valid shape",
        codes::CAPACITY_MISMATCH => "has another size",
        codes::LOCATION_MISMATCH | codes::OPERAND_LOCATION => "in the wrong memory",
        codes::RANK_MISMATCH => "has another number of modes",
        codes::NOT_ASSIGNABLE => "cannot be assigned",
        codes::CONDITION_NOT_BOOL => "no truth value",
        codes::BAD_TILE_TYPE => "no tile type",
        codes::BAD_PARAMETER_TYPE => "no type of a parameter",
        codes::LITERAL_OUT_OF_RANGE => "out of range",
        codes::NOT_WRITABLE => "written here",
        codes::NOT_READABLE => "read here",
        codes::TASSIGN_ON_TENSOR => "a tensor",
        codes::BAD_RETURN => "does not fit the function",
        codes::UNDEFINED_OPERATION => "not defined",
        codes::UNUSED_VALUE => "nothing takes this value",
        codes::BAD_ATTRIBUTE => "not understood",
        codes::GRID_MISUSE => "not possible here",
        codes::ALIASING_ARGUMENTS => "passed again",
        codes::NOT_CONSTANT => "no integer constant",
        codes::CONSTANT_OVERFLOW => "does not fit 128 bits",
        codes::DIVISION_BY_ZERO => "the divisor is 0",
        codes::OUT_OF_FUEL => "evaluation stopped here",
        codes::BAD_EXTENT => "this size",
        codes::MISSING_TASSIGN => "no address",
        codes::OPERAND_KIND => "the wrong kind of operand",
        codes::NO_SUCH_MOVE => "the target has no such move",
        codes::INSTR_DTYPE | codes::CMP_MODE_DTYPE | codes::CVT_PAIR | codes::CUBE_TRIPLE | codes::MOVE_DTYPE => {
            "not with these dtypes"
        }
        codes::INSTR_LIMIT => "outside the instruction's limits",
        codes::NO_MOVE_PATH => "cannot get there",
        codes::THROUGH_GLOBAL_MEMORY => "written to global memory and read back",
        c if c.as_str().starts_with("PA-") => "certain already at compile time",
        _ => return None,
    })
}

/// Edits that put `before` and `after` around a place.
pub(crate) fn around(span: Span, before: &str, after: &str) -> Vec<Edit> {
    let at = |offset| Span::new(span.file, offset, offset);
    vec![Edit { span: at(span.start), text: before.into() }, Edit { span: at(span.end), text: after.into() }]
}

/// "1 index", "2 indices"
pub fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Which of two types the other should be converted to: the one that holds more; `None` if neither does.
pub(crate) fn wider(a: Ty, b: Ty) -> Option<Ty> {
    let rank = |t: Ty| match t {
        Ty::D(DType::F32) => Some(40),
        Ty::D(d) if d.is_float() => Some(20 + d.size()),
        Ty::D(d) if d.is_int() => Some(d.size()),
        _ => None,
    };
    match (rank(a), rank(b)) {
        (Some(x), Some(y)) if x > y => Some(a),
        (Some(x), Some(y)) if y > x => Some(b),
        // An `index` goes to the other's dtype.
        (Some(_), None) if b == Ty::Index => Some(a),
        (None, Some(_)) if a == Ty::Index => Some(b),
        _ => None,
    }
}

impl Elaborator<'_> {
    /// Operands of two dtypes: where each is, and the conversion that mends it.
    pub(crate) fn two_dtypes(&self, symbol: &str, (a, b): (Ty, Ty), at: (Span, Span)) -> Diagnostic {
        let d = Diagnostic::error(
            codes::DTYPE_MISMATCH,
            at.1,
            format!("`{symbol}` needs one dtype on both sides, and has `{a}` and `{b}`"),
        )
        .with_label(format!("`{b}`"))
        .with_secondary(at.0, format!("`{a}`"));
        match wider(a, b) {
            // `a == 0 & b < n`: only one side is a condition.
            _ if matches!(symbol, "&" | "|") && (a == Ty::BOOL) != (b == Ty::BOOL) => d.with_help(format!(
                "`{symbol}` binds tighter than comparisons; conditions are joined by `{symbol}{symbol}`"
            )),
            Some(t) => {
                let narrow = if t == a { at.1 } else { at.0 };
                d.with_edits(
                    format!("nothing is promoted: convert by `{t}(..)`"),
                    around(narrow, &format!("{t}("), ")"),
                )
            }
            None => d.with_help(format!("nothing is promoted: write `{a}(..)` or `{b}(..)`")),
        }
    }

    /// A value of another type, with the conversion that mends it.
    pub(crate) fn convert_fix(d: Diagnostic, ty: Ty, at: Span) -> Diagnostic {
        d.with_edits(format!("convert it by name: `{ty}(..)`"), around(at, &format!("{ty}("), ")"))
    }
}

/// What makes a tile of a window or of a part of a tile, which stands `at`.
pub(crate) fn as_tile(d: Diagnostic, v: &Val, at: Span) -> Diagnostic {
    match v {
        Val::View(_) => d.with_edits("load it", around(at, "Vec(", ")")),
        Val::Part(_) => d.with_edits("copy it to a tile", around(at, "Vec(", ")")),
        _ => d,
    }
}
