//! Attributes.

use super::{Parser, Res};
use crate::attr::{Attr, AttrValue, Spelling};
use crate::lexer::{Tok, Word};
use crate::types::{Type, dtype_of};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_tensor::DType;

impl Parser<'_> {
    /// `{a = 1, b}`
    pub(super) fn dict(&mut self) -> Res<Vec<Attr>> {
        self.expect("{", "to begin attributes")?;
        self.nested(|p| p.list("}", |p| p.attr()))
    }

    pub(super) fn attr(&mut self) -> Res<Attr> {
        let start = self.token.start;
        let name = match self.token.tok {
            Tok::Name => Word::new(self.word()),
            Tok::Str => Word::new(self.word().trim_matches('"')),
            _ => return self.fail("expected the name of an attribute".into()),
        };
        self.advance();
        let value = if self.eat("=") { Some(self.attr_value()?) } else { None };
        Ok(Attr { name, value, span: self.since(start) })
    }

    /// `#a = ..`: a name for an attribute, or a place (`#loc1 = loc(..)`), which nothing here needs.
    pub(super) fn attribute_alias(&mut self) -> Res<()> {
        let (name, span) = (Word::new(self.word()), self.here());
        self.advance();
        self.expect("=", "behind an attribute's name")?;
        if self.attributes.contains_key(&name) {
            return self.wrong(codes::PTO_VALUE, span, format!("`{name}` is defined twice"));
        }
        let value = self.attr_value();
        // Lists stay under their names: lists of lists would grow with each name.
        let kept = value.as_ref().ok().map(|value| match value {
            AttrValue::Array(_) | AttrValue::Dict(_) => AttrValue::Other(name.clone()),
            value => value.clone(),
        });
        self.attributes.insert(name, kept);
        value?;
        self.source().map(|_| ())
    }

    pub(super) fn attr_value(&mut self) -> Res<AttrValue> {
        let word = self.word();
        match self.token.tok {
            Tok::Int | Tok::Float => self.number_value(),
            Tok::Str => {
                self.advance();
                Ok(AttrValue::Str(Word::new(word)))
            }
            Tok::Symbol => {
                self.advance();
                Ok(AttrValue::Symbol(Word::new(&word[1..])))
            }
            Tok::Attr => self.enum_value(),
            Tok::Type => Ok(AttrValue::Type(self.ty()?.ty)),
            Tok::Name if word == "true" || word == "false" => {
                self.advance();
                Ok(AttrValue::Bool(word == "true"))
            }
            Tok::Name if word == "loc" => {
                let source = self.source()?;
                Ok(AttrValue::Other(Word::new(source.map(|s| s.to_string()).unwrap_or_default())))
            }
            Tok::Name if word == "array" || word == "dense" || word == "strided" || word == "affine_map" => {
                self.verbatim()
            }
            Tok::Name => {
                self.advance();
                Ok(AttrValue::Other(Word::new(word)))
            }
            Tok::Mark if word == "[" => {
                self.advance();
                self.nested(|p| p.list("]", |p| p.attr_value())).map(AttrValue::Array)
            }
            Tok::Mark if word == "{" => self.dict().map(AttrValue::Dict),
            Tok::Mark if word == "<" => {
                self.advance();
                let word = Word::new(self.take(Tok::Name, "a word, as in `<PIPE_V>`")?);
                self.expect(">", "behind the word")?;
                Ok(AttrValue::Enum(Spelling::Angles, Word::default(), word))
            }
            _ => self.fail("expected the value of an attribute".into()),
        }
    }

    /// A number, and `: type` behind it. `1 : i32`.
    fn number_value(&mut self) -> Res<AttrValue> {
        let (word, is_float) = (self.word(), self.token.tok == Tok::Float);
        let (start, end) = (self.token.start, self.token.end);
        let digits = word.strip_prefix('-').unwrap_or(word);
        let int = match digits.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => digits.parse::<i128>(),
        };
        if !is_float && int.as_ref().map_or(true, |n| *n > i128::from(u64::MAX)) {
            return self.fail("expected a number of at most 64 bits".into());
        }
        self.advance();
        let ty = if self.eat(":") { Some(self.ty()?.ty) } else { None };
        let of_float = matches!(&ty, Some(Type::Element(e)) if e.contains('f'));
        if let Some(Type::Element(element)) = &ty
            && of_float
            && !digits.starts_with("0x")
            && beyond(digits, element)
        {
            let message = format!("`{word}` is larger than every `{element}`");
            let d = Diagnostic::error(codes::PTO_SYNTAX, Span::new(self.file, start as u32, end as u32), message);
            return self.report(d.with_help("infinity is written as its bits, as in `0x7F800000 : f32`"));
        }
        match int {
            Ok(n) if !is_float && !of_float => Ok(AttrValue::Int(if word.starts_with('-') { -n } else { n }, ty)),
            _ => Ok(AttrValue::Float(Word::new(word), ty)),
        }
    }

    /// `#pto.layout<nd>`, `#pto<round_mode ROUND>`, or another attribute as it is written.
    fn enum_value(&mut self) -> Res<AttrValue> {
        let word = self.word();
        let start = self.token.start;
        if let Some(known) = self.attributes.get(word) {
            // Of a name whose value is wrong no more is told.
            let known = known.clone().ok_or(super::Reported)?;
            self.advance();
            return Ok(known);
        }
        if word == "#pto" {
            self.advance();
            self.expect("<", "behind `#pto`")?;
            let of = Word::new(self.take(Tok::Name, "the name of an attribute, as in `#pto<cmp gt>`")?);
            // `#pto<pipe <PIPE_V>>` has brackets of its own.
            let inner = self.eat("<");
            let value = Word::new(self.take(Tok::Name, "a word")?);
            if inner {
                self.expect(">", "behind the word")?;
            }
            self.expect(">", "behind the word")?;
            let spelling = if inner { Spelling::Dotted } else { Spelling::Inner };
            return Ok(AttrValue::Enum(spelling, of, value));
        }
        if let Some(of) = word.strip_prefix("#pto.") {
            self.advance();
            if self.eat("<") {
                if self.token.tok == Tok::Name {
                    let value = Word::new(self.word());
                    self.advance();
                    if self.eat(">") {
                        return Ok(AttrValue::Enum(Spelling::Dotted, Word::new(of), value));
                    }
                }
                self.skip_angles("this")?;
            }
            return Ok(AttrValue::Other(Word::new(&self.text[start..self.taken])));
        }
        self.verbatim()
    }

    /// A name with `<..>` behind it, as it is written.
    fn verbatim(&mut self) -> Res<AttrValue> {
        let start = self.token.start;
        self.advance();
        if self.eat("<") {
            self.skip_angles("this")?;
        }
        Ok(AttrValue::Other(Word::new(&self.text[start..self.taken])))
    }

    /// Skips what stands behind a `<` that was taken, up to the `>` that closes it, and that one.
    pub(super) fn skip_angles(&mut self, what: &str) -> Res<()> {
        let mut open = 1;
        while open > 0 {
            match self.word() {
                _ if self.token.tok == Tok::End => return self.fail(format!("expected `>` to end {what}")),
                "<" => open += 1,
                ">" => open -= 1,
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }
}

/// Whether a number is larger than all that an element of this type holds.
fn beyond(digits: &str, element: &str) -> bool {
    let Ok(value) = digits.parse::<f64>() else { return false };
    match dtype_of(element) {
        Some(DType::F32) => (value as f32).is_infinite(),
        Some(DType::F16) => half::f16::from_f64(value).is_infinite(),
        Some(DType::BF16) => half::bf16::from_f64(value).is_infinite(),
        _ => value.is_infinite(),
    }
}
