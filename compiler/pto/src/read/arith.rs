//! Numbers.

use super::meaning::{Meaning, Product, Scalar};
use super::{Reader, Res, not_read};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::Op;
use crate::types::{Type, dtype_of};
use ptoc_tensor::DType;

/// The name of a number's type in the language.
pub(super) fn type_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Index => Some("index".into()),
        Type::Element(e) => dtype_of(e).map(|d| d.to_string()),
        _ => None,
    }
}

/// A known whole number of type `index`.
pub(super) fn number(n: i128) -> Scalar {
    let product = Some(Product::number(n));
    Scalar { text: literal(n), ty: Type::Index, constant: Some(n), natural: n >= 0, product }
}

fn literal(n: i128) -> String {
    if n < 0 { format!("({n})") } else { n.to_string() }
}

impl Reader<'_> {
    pub(super) fn arith(&mut self, op: &Op) -> Res<()> {
        let scalar = match op.row.name {
            "arith.constant" => self.constant(op)?,
            "arith.cmpi" | "arith.cmpf" => self.comparison(op)?,
            "arith.select" => {
                let all: Vec<Scalar> = op.operands.iter().map(|o| self.scalar(&o.value)).collect::<Res<_>>()?;
                let [c, a, b] = &all[..] else { return not_read(op.span, "this `arith.select` is not read") };
                let text = format!("if {} {{ {} }} else {{ {} }}", c.text, a.text, b.text);
                Scalar { text, natural: a.natural && b.natural, constant: None, product: None, ty: a.ty.clone() }
            }
            "arith.negf" => {
                let a = self.scalar(&op.operands[0].value)?;
                Scalar { text: format!("-{}", a.text), constant: None, product: None, natural: false, ..a }
            }
            _ if op.operand("lhs").is_some() => self.binary(op)?,
            _ => self.conversion(op)?,
        };
        self.named(op, scalar);
        Ok(())
    }

    /// Defines a number; one that is no literal or name gets a name of its own, if it is used.
    pub(super) fn named(&mut self, op: &Op, mut scalar: Scalar) {
        let Some(result) = op.results.first() else { return };
        let used = self.facts.uses.get(&result.name).is_some_and(|n| *n > 0);
        let simple = op.row.name == "arith.constant"
            || scalar.constant.is_some()
            || scalar.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.()".contains(&b));
        if used && !simple {
            let name = self.give(&result.name);
            self.out.line(&format!("let {name} = {};", scalar.text), op.span);
            scalar.text = name.to_string();
        }
        self.result(op, Meaning::Scalar(scalar));
    }

    fn constant(&mut self, op: &Op) -> Res<Scalar> {
        let value = op.attr("value").and_then(|a| a.value.clone());
        match value {
            Some(AttrValue::Bool(b)) => {
                let ty = Type::Element(Word::new_static("i1"));
                Ok(Scalar { text: b.to_string(), ty, constant: None, natural: true, product: None })
            }
            Some(AttrValue::Int(n, Some(Type::Index))) => Ok(number(n)),
            Some(AttrValue::Int(n, Some(ty))) => {
                let Some(name) = type_name(&ty) else {
                    return not_read(op.span, format!("numbers of `{ty}` are not read"));
                };
                if name == "bool" {
                    let text = (n != 0).to_string();
                    return Ok(Scalar { text, ty, constant: None, natural: true, product: None });
                }
                let text = format!("{name}({n})");
                Ok(Scalar { text, ty, constant: Some(n), natural: n >= 0, product: Some(Product::number(n)) })
            }
            Some(AttrValue::Float(text, Some(ty))) => {
                let Some(dtype) = (match &ty {
                    Type::Element(e) => dtype_of(e),
                    _ => None,
                }) else {
                    return not_read(op.span, format!("numbers of `{ty}` are not read"));
                };
                let text = float_text(&text, dtype);
                Ok(Scalar { text: format!("{dtype}({text})"), ty, constant: None, natural: false, product: None })
            }
            _ => not_read(op.span, "this constant is not read"),
        }
    }

    fn binary(&mut self, op: &Op) -> Res<Scalar> {
        let (a, b) = (self.scalar(&self.operand(op, "lhs")?.value)?, self.scalar(&self.operand(op, "rhs")?.value)?);
        let index = a.ty == Type::Index;
        let bool = type_name(&a.ty).as_deref() == Some("bool");
        let both = a.natural && b.natural;
        let name = op.row.name.strip_prefix("arith.").unwrap_or_default();
        let infix = |sign: &str| format!("{} {sign} {}", a.text, b.text);
        let call = |f: &str| format!("{f}({}, {})", a.text, b.text);
        // What divides numbers of type `index` rounds down in the language, and towards zero in `arith`.
        let truncated = |sign: &str| format!("index(i64({}) {sign} i64({}))", a.text, b.text);
        let (text, natural) = match name {
            "addi" | "addf" => (infix("+"), both),
            "subi" | "subf" => (infix("-"), false),
            "muli" | "mulf" => (infix("*"), both),
            "divf" => (infix("/"), false),
            "remf" => (infix("%"), false),
            "divsi" if index && !both => (truncated("/"), false),
            "remsi" if index && !both => (truncated("%"), false),
            "divsi" | "divui" if both || name == "divsi" => (infix("/"), both),
            "remsi" | "remui" if both || name == "remsi" => (infix("%"), both),
            "floordivsi" if index || both => (infix("/"), both),
            "ceildivsi" | "ceildivui" if index && (name == "ceildivsi" || both) => (call("ceil_div"), both),
            "andi" if bool => (infix("&&"), true),
            "ori" if bool => (infix("||"), true),
            "xori" if bool => (infix("!="), true),
            "andi" => (infix("&"), both),
            "ori" => (infix("|"), both),
            "xori" => (infix("^"), both),
            "shli" => (infix("<<"), false),
            "shrsi" => (infix(">>"), a.natural),
            "maxsi" => (call("max"), a.natural || b.natural),
            "minsi" => (call("min"), both),
            "maxui" if both => (call("max"), true),
            "minui" if both => (call("min"), true),
            "maximumf" => (call("max"), false),
            "minimumf" => (call("min"), false),
            "maxnumf" | "minnumf" => {
                let what = "takes the number where the other one is NaN; that is not read";
                return not_read(op.span, format!("`{}` {what}", op.row.name));
            }
            _ => return not_read(op.span, format!("`{}` of numbers that may be negative is not read", op.row.name)),
        };
        let constant = match (a.constant, b.constant, name) {
            (Some(a), Some(b), "addi") => a.checked_add(b),
            (Some(a), Some(b), "subi") => a.checked_sub(b),
            (Some(a), Some(b), "muli") => a.checked_mul(b),
            _ => None,
        };
        if let Some(n) = constant.filter(|n| index && i64::try_from(*n).is_ok()) {
            return Ok(number(n));
        }
        let product = match name {
            "muli" => a.product.as_ref().zip(b.product.as_ref()).and_then(|(a, b)| a.times(b)),
            _ => None,
        };
        Ok(Scalar { text, ty: a.ty, constant: None, natural, product })
    }

    fn comparison(&mut self, op: &Op) -> Res<Scalar> {
        let (a, b) = (self.scalar(&self.operand(op, "lhs")?.value)?, self.scalar(&self.operand(op, "rhs")?.value)?);
        let predicate =
            op.attr("predicate").and_then(|a| a.value.as_ref()).map(ToString::to_string).unwrap_or_default();
        let float = op.row.name == "arith.cmpf";
        let both = a.natural && b.natural;
        let sign = match predicate.as_str() {
            "eq" | "oeq" => "==",
            // A comparison that holds where a side is NaN is the language's `!=` alone.
            "ne" | "une" => "!=",
            "slt" | "olt" => "<",
            "sle" | "ole" => "<=",
            "sgt" | "ogt" => ">",
            "sge" | "oge" => ">=",
            "ult" if !float && both => "<",
            "ule" if !float && both => "<=",
            "ugt" if !float && both => ">",
            "uge" if !float && both => ">=",
            _ => return not_read(op.span, format!("the comparison `{predicate}` is not read here")),
        };
        let ty = Type::Element(Word::new_static("i1"));
        let text = format!("{} {sign} {}", a.text, b.text);
        Ok(Scalar { text, ty, constant: None, natural: true, product: None })
    }

    fn conversion(&mut self, op: &Op) -> Res<Scalar> {
        let a = self.scalar(&op.operands[0].value)?;
        let Some(to) = op.result_types.first().map(|t| t.ty.clone()) else {
            return not_read(op.span, format!("`{}` is not read here", op.row.name));
        };
        let Some(name) = type_name(&to) else {
            return not_read(op.span, format!("numbers of `{to}` are not read"));
        };
        let fine = match op.row.name {
            "arith.index_cast" | "arith.extsi" | "arith.trunci" | "arith.extf" | "arith.truncf" | "arith.sitofp"
            | "arith.fptosi" => true,
            "arith.extui" | "arith.uitofp" | "arith.index_castui" => a.natural,
            _ => false,
        };
        if !fine {
            return not_read(op.span, format!("`{}` is not read here", op.row.name));
        }
        if let (Some(n), Type::Index) = (a.constant, &to) {
            return Ok(number(n));
        }
        // The number of a block goes through i64 in the text, and not in the language.
        let text = match a.text.strip_prefix("i64(").and_then(|t| t.strip_suffix(')')) {
            Some(inner) if to == Type::Index && inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                inner.to_string()
            }
            _ => format!("{name}({})", a.text),
        };
        let keeps = !matches!(op.row.name, "arith.trunci" | "arith.fptosi");
        let natural = a.natural && keeps;
        Ok(Scalar {
            text,
            ty: to,
            constant: a.constant.filter(|_| keeps),
            natural,
            product: a.product.filter(|_| keeps),
        })
    }
}

/// A float's literal in the language: the number itself, or what its bits are.
fn float_text(text: &str, dtype: DType) -> String {
    let Some(hex) = text.strip_prefix("0x") else { return text.to_string() };
    let bits = u64::from_str_radix(hex, 16).unwrap_or_default();
    let value = match dtype {
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        DType::F16 => f64::from(half::f16::from_bits(bits as u16).to_f32()),
        DType::BF16 => f64::from(half::bf16::from_bits(bits as u16).to_f32()),
        _ => f64::from_bits(bits),
    };
    match value {
        v if v.is_nan() => "nan".into(),
        v if v == f64::INFINITY => "inf".into(),
        v if v == f64::NEG_INFINITY => "-inf".into(),
        v => format!("{v:?}"),
    }
}
