//! Numbers.

use super::meaning::{Meaning, Product, Scalar};
use super::{Reader, Res, not_read};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::Op;
use crate::types::{Type, dtype_of, element_word};
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

/// The number as one without a sign: the bits of one that may be negative are those of a large one.
fn unsigned(of: &Scalar) -> Option<String> {
    let dtype = match &of.ty {
        Type::Index => Some(DType::I64),
        Type::Element(e) => dtype_of(e),
        _ => None,
    }?;
    let name = match dtype {
        _ if of.natural => return Some(of.text.clone()),
        DType::I8 => "u8",
        DType::I16 => "u16",
        DType::I32 => "u32",
        DType::I64 => "u64",
        DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool => return Some(of.text.clone()),
        _ => return None,
    };
    match of.constant {
        Some(n) if n < 0 => Some(format!("{name}({})", n + (1i128 << (8 * dtype.size())))),
        _ => Some(format!("{name}({})", of.text)),
    }
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
        // A number becomes one of another type where the text says so.
        let one = op.row.name.starts_with("arith.") && op.row.name != "arith.negf" && op.operands.len() == 1;
        let converted = one && scalar.text.ends_with(')');
        let text = scalar.text.strip_prefix('!').unwrap_or(&scalar.text);
        let simple = op.row.name == "arith.constant"
            || scalar.constant.is_some()
            || (!converted && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.()".contains(&b)));
        if used && !simple && self.inlined {
            scalar.text = format!("({})", scalar.text);
        } else if used && !simple {
            let name = self.give(&result.name);
            self.out.line(&format!("let {name} = {};", scalar.text), op.span);
            if let Some(whole) = self.casts.get(scalar.text.as_str()).cloned() {
                self.casts.insert(name.clone(), whole);
            }
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
                // Bits above the largest number are those of one below 0.
                let bits = dtype_of(ty.element().unwrap_or(&Word::default())).map_or(64, |d| 8 * d.size() as u32);
                let wraps = name.starts_with('i') && n >= 1i128 << (bits - 1);
                let n = if wraps { n - (1i128 << bits) } else { n };
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
            // A sum of fewer bits may wrap to a number below 0.
            "addi" | "addf" => (infix("+"), both && index),
            "subi" | "subf" => (infix("-"), false),
            "muli" | "mulf" => (infix("*"), both && index),
            "divf" => (infix("/"), false),
            "divsi" if index && !both => (truncated("/"), false),
            "remsi" if index && !both => (truncated("%"), false),
            "divsi" | "divui" if both || name == "divsi" => (infix("/"), both),
            "remsi" | "remui" if both || name == "remsi" => (infix("%"), both),
            "floordivsi" if index || both => (infix("/"), both),
            "floordivsi" => {
                (format!("{}(index({}) / index({}))", type_name(&a.ty).unwrap_or_default(), a.text, b.text), false)
            }
            "ceildivsi" | "ceildivui" if index && b.natural && (a.natural || name == "ceildivsi") => {
                (call("ceil_div"), both)
            }
            // The language's division of numbers of type `index` rounds down, and the rest says whether it did. The
            // smallest number has no opposite.
            "ceildivsi" => {
                let (x, y) = (format!("index({})", a.text), format!("index({})", b.text));
                let text = format!("{x} / {y} + index({x} % {y} != 0)");
                (if index { text } else { format!("{}({text})", type_name(&a.ty).unwrap_or_default()) }, both)
            }
            "andi" if bool => (infix("&&"), true),
            "ori" if bool => (infix("||"), true),
            "xori" if bool && b.text == "true" => (format!("!{}", a.text), true),
            "xori" if bool => (infix("!="), true),
            "andi" => (infix("&"), both),
            "ori" => (infix("|"), both),
            "xori" => (infix("^"), both),
            "shli" => (infix("<<"), false),
            "shrsi" => (infix(">>"), a.natural),
            "shrui" if both => (infix(">>"), true),
            "maxsi" => (call("max"), a.natural || b.natural),
            "minsi" => (call("min"), both),
            "maxui" if both => (call("max"), true),
            "minui" if both => (call("min"), true),
            "maximumf" => (call("max"), false),
            "minimumf" => (call("min"), false),
            // The number where the other one is NaN.
            "maxnumf" | "minnumf" => {
                let (x, y, f) = (&a.text, &b.text, &name[..3]);
                (format!("if {x} != {x} {{ {y} }} else if {y} != {y} {{ {x} }} else {{ {f}({x}, {y}) }}"), false)
            }
            _ => {
                let Some(text) = self.unsigned_binary(name, &a, &b) else {
                    return not_read(op.span, format!("`{}` of `{}` is not read", op.row.name, a.ty));
                };
                (text, false)
            }
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

    /// What takes its operands as numbers without a sign, of numbers that may be negative.
    fn unsigned_binary(&self, name: &str, a: &Scalar, b: &Scalar) -> Option<String> {
        let of = type_name(&a.ty)?;
        let plain = |s: &Scalar| unsigned(&Scalar { natural: false, ..s.clone() });
        let (x, y) = (plain(a)?, plain(b)?);
        let value = match name {
            "divui" => format!("{x} / {y}"),
            "remui" => format!("{x} % {y}"),
            "shrui" => format!("{x} >> {y}"),
            "maxui" => format!("max({x}, {y})"),
            "minui" => format!("min({x}, {y})"),
            "ceildivui" => return Some(format!("{of}({x} / {y}) + {of}({x} % {y} != 0)")),
            _ => return None,
        };
        Some(format!("{of}({value})"))
    }

    fn comparison(&mut self, op: &Op) -> Res<Scalar> {
        let (a, b) = (self.scalar(&self.operand(op, "lhs")?.value)?, self.scalar(&self.operand(op, "rhs")?.value)?);
        let predicate =
            op.attr("predicate").and_then(|a| a.value.as_ref()).map(ToString::to_string).unwrap_or_default();
        let float = op.row.name == "arith.cmpf";
        let both = a.natural && b.natural;
        let infix = |sign: &str| format!("{} {sign} {}", a.text, b.text);
        let differ = format!("{0} < {1} || {0} > {1}", a.text, b.text);
        let text = match (predicate.as_str(), float) {
            ("eq", false) | ("oeq", true) => infix("=="),
            // A comparison that holds where a side is NaN is the opposite of the one that does not.
            ("ne", false) | ("une", true) => infix("!="),
            ("slt", false) | ("olt", true) => infix("<"),
            ("sle", false) | ("ole", true) => infix("<="),
            ("sgt", false) | ("ogt", true) => infix(">"),
            ("sge", false) | ("oge", true) => infix(">="),
            ("one", true) => differ,
            ("ueq", true) => format!("!({differ})"),
            ("ult", true) => format!("!({})", infix(">=")),
            ("ule", true) => format!("!({})", infix(">")),
            ("ugt", true) => format!("!({})", infix("<=")),
            ("uge", true) => format!("!({})", infix("<")),
            ("ord", true) => format!("{0} == {0} && {1} == {1}", a.text, b.text),
            ("uno", true) => format!("{0} != {0} || {1} != {1}", a.text, b.text),
            ("true" | "false", true) => predicate,
            ("ult" | "ule" | "ugt" | "uge", false) => {
                let plain = |s: &Scalar| unsigned(&Scalar { natural: both, ..s.clone() });
                let Some((x, y)) = plain(&a).zip(plain(&b)) else {
                    return not_read(op.span, format!("a comparison of numbers of `{}` is not read", a.ty));
                };
                let sign = match predicate.as_str() {
                    "ult" => "<",
                    "ule" => "<=",
                    "ugt" => ">",
                    _ => ">=",
                };
                format!("{x} {sign} {y}")
            }
            _ => return not_read(op.span, format!("the comparison `{predicate}` is not read here")),
        };
        let ty = Type::Element(Word::new_static("i1"));
        Ok(Scalar { text, ty, constant: None, natural: true, product: None })
    }

    /// The type of a number that only instructions on tiles without a sign want: theirs.
    fn signed(&self, op: &Op, to: Type) -> Type {
        let own = to.element().and_then(|e| dtype_of(e)).filter(|d| d.is_int());
        let wanted = op.results.first().and_then(|r| *self.facts.wanted.get(&r.name)?);
        match own.zip(wanted).filter(|(own, wanted)| own.size() == wanted.size()) {
            Some((_, wanted)) => element_word(wanted).map_or(to, |word| Type::Element(Word::new_static(word))),
            None => to,
        }
    }

    fn conversion(&mut self, op: &Op) -> Res<Scalar> {
        let a = self.scalar(&op.operands[0].value)?;
        let Some(mut to) = op.result_types.first().map(|t| t.ty.clone()) else {
            return not_read(op.span, format!("`{}` is not read here", op.row.name));
        };
        let word = op.row.name.strip_prefix("arith.").unwrap_or_default();
        if word == "index_cast" && a.ty == Type::Index {
            to = self.signed(op, to);
        }
        let Some(name) = type_name(&to) else {
            return not_read(op.span, format!("numbers of `{to}` are not read"));
        };
        let own = type_name(&a.ty).unwrap_or_default();
        let from = match word {
            // The bit of an `i1` is its sign.
            "extsi" | "sitofp" | "index_cast" if own == "bool" => {
                let text = format!("-{name}({})", a.text);
                return Ok(Scalar { text, ty: to, constant: None, natural: false, product: None });
            }
            "fptosi" | "fptoui" if name == "bool" => {
                return not_read(op.span, format!("`{}` to one bit is not read", op.row.name));
            }
            "trunci" if name == "bool" => {
                let text = format!("{0} & {own}(1) != {own}(0)", a.text);
                return Ok(Scalar { text, ty: to, constant: None, natural: true, product: None });
            }
            "index_cast" | "extsi" | "trunci" | "extf" | "truncf" | "sitofp" | "fptosi" => a.text.clone(),
            "extui" | "uitofp" | "index_castui" => match unsigned(&a) {
                Some(text) => text,
                None => return not_read(op.span, format!("`{}` of a `{}` is not read", op.row.name, a.ty)),
            },
            "fptoui" => {
                let like =
                    Scalar { text: a.text.clone(), ty: to.clone(), natural: false, constant: None, product: None };
                match unsigned(&like) {
                    Some(text) => text,
                    None => return not_read(op.span, format!("`{}` to a `{to}` is not read", op.row.name)),
                }
            }
            _ => return not_read(op.span, format!("`{}` is not read here", op.row.name)),
        };
        // `index` has 64 bits, so its number in i64 is the same one; and a number of fewer bits is that of the lowest.
        let from = match self.casts.get(a.text.as_str()).filter(|_| own == "i64") {
            Some(whole) if matches!(word, "index_cast" | "sitofp" | "trunci") => whole.to_string(),
            _ => from,
        };
        let zero_extended = matches!(word, "extui" | "index_castui");
        let keeps = !matches!(word, "trunci" | "fptosi" | "fptoui") && (a.natural || !zero_extended);
        let constant = a.constant.filter(|_| keeps);
        if let (Some(n), Type::Index) = (constant, &to) {
            return Ok(number(n));
        }
        let same = to == Type::Index && own == "i64" && self.indices.contains(from.as_str());
        let text = match from.strip_prefix("i64(").and_then(|t| t.strip_suffix(')')) {
            // The number of a block goes through i64 in the text, and not in the language.
            Some(inner) if to == Type::Index && self.is_block_number(inner) => inner.to_string(),
            _ if same => from.clone(),
            _ => format!("{name}({from})"),
        };
        if word == "index_cast" && a.ty == Type::Index {
            self.casts.insert(Word::new(&text), Word::new(&from));
            self.indices.insert(Word::new(&from));
        } else if name == "i64" && matches!(word, "extui" | "extsi") || word == "extf" && own == "f16" {
            self.casts.insert(Word::new(&text), Word::new(&from));
        }
        let natural = keeps && a.natural || zero_extended && wider(&name, &own);
        Ok(Scalar { text, ty: to, constant, natural, product: a.product.filter(|_| keeps) })
    }
}

/// Whether all numbers of a type without a sign are numbers of another one that has one.
fn wider(to: &str, than: &str) -> bool {
    let width = |name: &str| match name {
        "index" => Some(64),
        _ => name.trim_start_matches(['i', 'u']).parse::<u32>().ok(),
    };
    width(to).zip(width(than)).is_some_and(|(to, than)| to > than)
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
