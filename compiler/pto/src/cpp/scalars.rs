//! Numbers. What `arith` defines and C++ leaves open is written out: integers wrap, floats of 16 bits are rounded.

use super::control::word;
use super::{Printer, Res, types, unsaid};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::Op;
use crate::types::Type;

/// Division that rounds down.
const FLOOR_DIVIDE: &str = "AICORE inline int64_t floor_divide(int64_t a, int64_t b)\n{\n    \
    const int64_t q = a / b;\n    return q * b == a || (a < 0) == (b < 0) ? q : q - 1;\n}\n";

/// The greater number; NaN if one is, and 0 is greater than -0.
const MAXIMUM: &str = "template <typename T>\nAICORE inline T maximum(T a, T b)\n{\n    \
    return a != a ? a : b != b ? b : a == b ? (a == 0 ? a + b : a) : a > b ? a : b;\n}\n";

/// The smaller number; NaN if one is, and -0 is smaller than 0.
const MINIMUM: &str = "template <typename T>\nAICORE inline T minimum(T a, T b)\n{\n    \
    return a != a ? a : b != b ? b : a == b ? (a == 0 ? -(-a - b) : a) : a < b ? a : b;\n}\n";

/// The integer towards zero, or the next one that there is; 0 for NaN.
const TRUNCATED: &str = "template <typename T>\nAICORE inline T truncated(float x)\n{\n    \
    const bool is_signed = T(-1) < T(0);\n    const T high = T(1) << (8 * sizeof(T) - 1);\n    \
    const T least = is_signed ? high : T(0);\n    const T most = T(~least);\n    \
    const float end = (is_signed ? 1.0f : 2.0f) * (uint64_t(1) << (8 * sizeof(T) - 1));\n    \
    return x != x ? T(0) : x >= end ? most : x <= float(least) ? least : static_cast<T>(x);\n}\n";

/// What kind of number an operation computes with.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Index,
    Bool,
    /// Its bits.
    Int(u32),
    /// Computed in its own type.
    Float,
    /// Computed in `float`.
    Half,
}

fn kind(ty: &Type) -> Option<Kind> {
    let Type::Element(word) = ty else { return matches!(ty, Type::Index).then_some(Kind::Index) };
    Some(match word.as_str() {
        "i1" => Kind::Bool,
        "f32" => Kind::Float,
        "f16" | "bf16" => Kind::Half,
        word => Kind::Int(word.strip_prefix('i')?.parse().ok()?),
    })
}

/// An unsigned type that holds the bits, and in which C++ does not promote to a signed one.
fn unsigned(bits: u32) -> &'static str {
    if bits > 32 { "uint64_t" } else { "uint32_t" }
}

impl Printer<'_> {
    /// A constant, which stands where it is used.
    pub(super) fn constant(&mut self, op: &Op) -> Res<()> {
        let (Some(result), Some(value)) = (op.results.first(), op.attr("value").and_then(|a| a.value.as_ref())) else {
            return unsaid(op.span, "a constant without a value");
        };
        let name = result.name.clone();
        match value {
            AttrValue::Int(n, _) => match i64::try_from(*n) {
                Ok(n) => self.numbers.insert(name, n).map_or(Ok(()), |_| Ok(())),
                Err(_) => unsaid(op.span, format!("the number {n}")),
            },
            AttrValue::Bool(b) => self.literal(name, b.to_string()),
            AttrValue::Float(text, ty) => {
                let ty = types::scalar(ty.as_ref().unwrap_or(&Type::Index), op.span)?;
                let text = match text.strip_prefix("0x") {
                    Some(_) if ty == "float" => format!("__builtin_bit_cast(float, uint32_t({text}))"),
                    Some(_) => format!("__builtin_bit_cast({ty}, uint16_t({text}))"),
                    None if ty == "float" => format!("{text}f"),
                    None => format!("static_cast<{ty}>({text}f)"),
                };
                self.literal(name, text)
            }
            other => unsaid(op.span, format!("the constant `{other}`")),
        }
    }

    fn literal(&mut self, name: Word, text: String) -> Res<()> {
        self.identifiers.set(name, text);
        Ok(())
    }

    pub(super) fn scalar(&mut self, op: &Op) -> Res<()> {
        if op.row.name == "arith.index_cast" && self.kind_of(op, "in")? == Kind::Int(64) {
            // `index` has 64 bits, so it is the same number.
            let text = self.operand(op, "in")?;
            return self.literal(op.results[0].name.clone(), text);
        }
        let text = match op.row.name {
            "arith.select" => {
                let (a, b) = (self.operand(op, "true")?, self.operand(op, "false")?);
                format!("{} ? {a} : {b}", self.operand(op, "condition")?)
            }
            "arith.cmpi" | "arith.cmpf" => self.compare(op)?,
            "arith.negf" => {
                let x = self.operand(op, "in")?;
                match self.kind_of(op, "in")? {
                    Kind::Half => format!("-static_cast<float>({x})"),
                    _ => format!("-({x})"),
                }
            }
            _ if op.operand("lhs").is_some() => self.binary(op)?,
            _ => self.conversion(op)?,
        };
        let ty = types::scalar(self.ty(&op.results[0].name, op.span)?, op.span)?;
        // What was computed in a wider type is rounded to its own.
        let own = matches!(ty, "int64_t" | "float" | "bool") || op.row.name == "arith.select";
        let own = own || text.starts_with(&format!("static_cast<{ty}>("));
        self.define(op, if own { text } else { format!("static_cast<{ty}>({text})") })
    }

    fn kind_of(&self, op: &Op, slot: &str) -> Res<Kind> {
        let ty = self.ty(&self.used(op, slot)?.name, op.span)?;
        kind(ty).map_or_else(|| unsaid(op.span, format!("`{}` of `{ty}`", op.row.name)), Ok)
    }

    fn binary(&mut self, op: &Op) -> Res<String> {
        let kind = self.kind_of(op, "lhs")?;
        let (mut a, b) = (self.operand(op, "lhs")?, self.operand(op, "rhs")?);
        let name = op.row.name.trim_start_matches("arith.");
        if kind == Kind::Index && a.parse::<i64>().is_ok() && b.parse::<i64>().is_ok() {
            a = format!("int64_t({a})");
        }
        let sign = match name {
            "addi" | "addf" => "+",
            "subi" | "subf" => "-",
            "muli" | "mulf" => "*",
            "divsi" | "divui" | "divf" => "/",
            "remsi" | "remui" => "%",
            "andi" => "&",
            "ori" => "|",
            "xori" => "^",
            "shli" => "<<",
            "shrsi" | "shrui" => ">>",
            _ => "",
        };
        let greater = name.starts_with("max");
        match (kind, name) {
            (Kind::Float | Kind::Half, "maximumf" | "minimumf") => {
                self.helpers.insert(if greater { MAXIMUM } else { MINIMUM });
                let call = if greater { "maximum" } else { "minimum" };
                Ok(match kind {
                    Kind::Half => format!("{call}(static_cast<float>({a}), static_cast<float>({b}))"),
                    _ => format!("{call}({a}, {b})"),
                })
            }
            (Kind::Float | Kind::Half, "remf") => unsaid(op.span, "the remainder of two floats"),
            (Kind::Float, _) => Ok(format!("{a} {sign} {b}")),
            (Kind::Half, _) => Ok(format!("static_cast<float>({a}) {sign} static_cast<float>({b})")),
            (Kind::Index | Kind::Int(_), "floordivsi") => {
                self.helpers.insert(FLOOR_DIVIDE);
                Ok(format!("floor_divide({a}, {b})"))
            }
            (_, "maxsi" | "minsi") => Ok(format!("{a} {} {b} ? {a} : {b}", if greater { '>' } else { '<' })),
            (Kind::Int(bits), "maxui" | "minui" | "divui" | "remui" | "shrui") => {
                let (x, y) = (of_bits(&a, bits), of_bits(&b, bits));
                Ok(match sign {
                    "" => format!("{x} {} {y} ? {a} : {b}", if greater { '>' } else { '<' }),
                    sign => format!("static_cast<int{bits}_t>({x} {sign} {y})"),
                })
            }
            (Kind::Int(bits), "addi" | "subi" | "muli" | "shli") => {
                let wide = unsigned(bits);
                Ok(format!("static_cast<int{bits}_t>({wide}({a}) {sign} {wide}({b}))"))
            }
            (Kind::Bool, "addi" | "subi") => Ok(format!("{a} != {b}")),
            (Kind::Bool, "muli") => Ok(format!("{a} && {b}")),
            (Kind::Index | Kind::Int(_) | Kind::Bool, _) if !sign.is_empty() => Ok(format!("{a} {sign} {b}")),
            _ => unsaid(op.span, format!("`{}`", op.row.name)),
        }
    }

    fn compare(&self, op: &Op) -> Res<String> {
        let kind = self.kind_of(op, "lhs")?;
        let (mut a, mut b) = (self.operand(op, "lhs")?, self.operand(op, "rhs")?);
        let predicate = word(op, "predicate");
        let sign = match predicate.trim_start_matches(['s', 'u', 'o']) {
            "eq" => "==",
            // Also of numbers that have no order, as C++ has it.
            "ne" => "!=",
            "lt" => "<",
            "le" => "<=",
            "gt" => ">",
            "ge" => ">=",
            _ => return unsaid(op.span, format!("the comparison `{predicate}`")),
        };
        if let (Kind::Int(bits), true) = (kind, predicate.starts_with('u')) {
            (a, b) = (of_bits(&a, bits), of_bits(&b, bits));
        }
        if kind == Kind::Half {
            (a, b) = (format!("static_cast<float>({a})"), format!("static_cast<float>({b})"));
        }
        Ok(format!("{a} {sign} {b}"))
    }

    fn conversion(&mut self, op: &Op) -> Res<String> {
        let x = self.operand(op, "in")?;
        let from = self.kind_of(op, "in")?;
        let to = types::scalar(self.ty(&op.results[0].name, op.span)?, op.span)?;
        Ok(match (op.row.name, from) {
            ("arith.bitcast", _) => format!("__builtin_bit_cast({to}, {x})"),
            ("arith.extui" | "arith.uitofp" | "arith.index_castui", Kind::Int(bits)) => {
                format!("static_cast<{to}>({})", of_bits(&x, bits))
            }
            ("arith.extsi", Kind::Bool) => format!("-static_cast<{to}>({x})"),
            ("arith.fptosi" | "arith.fptoui", _) => {
                self.helpers.insert(TRUNCATED);
                let bits = to.trim_matches(|c: char| !c.is_ascii_digit());
                let own = if op.row.name == "arith.fptosi" { to.to_owned() } else { format!("uint{bits}_t") };
                format!("static_cast<{to}>(truncated<{own}>(static_cast<float>({x})))")
            }
            _ => format!("static_cast<{to}>({x})"),
        })
    }
}

/// The bits of a number, without a sign.
fn of_bits(text: &str, bits: u32) -> String {
    format!("static_cast<uint{bits}_t>({text})")
}
