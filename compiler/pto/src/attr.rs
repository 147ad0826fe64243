//! Attributes and locations.

use crate::lexer::Word;
use crate::types::Type;
use ptoc_diagnostics::Span;
use std::fmt;

/// `name = value`, or a name alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Attr {
    /// The name.
    pub name: Word,
    /// The value; `None` if the name alone says it.
    pub value: Option<AttrValue>,
    /// All of it.
    pub span: Span,
}

/// How a word of an enumeration is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spelling {
    /// `#pto.layout<nd>`
    Dotted,
    /// `#pto<round_mode ROUND>`
    Inner,
    /// `<PIPE_V>`
    Angles,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// A whole number, with its type if that is written.
    Int(i128, Option<Type>),
    /// A number with a fraction or exponent, or the bits of one (`0xFF800000`), as written.
    Float(Word, Option<Type>),
    /// `true`, `false`
    Bool(bool),
    /// A text, with its quotes, as written.
    Str(Word),
    /// `[a, b]`
    Array(Vec<AttrValue>),
    /// `{a = 1}`
    Dict(Vec<Attr>),
    /// `@name`
    Symbol(Word),
    /// A word of one of the dialect's enumerations: of which (empty behind [`Spelling::Angles`]), the word.
    Enum(Spelling, Word, Word),
    /// A type.
    Type(Type),
    /// Any other attribute, as it is written.
    Other(Word),
}

impl AttrValue {
    /// The word of an enumeration.
    pub fn word(&self) -> Option<&str> {
        match self {
            AttrValue::Enum(_, _, word) => Some(word),
            _ => None,
        }
    }

    /// A whole number.
    pub fn int(&self) -> Option<i128> {
        match self {
            AttrValue::Int(n, _) => Some(*n),
            _ => None,
        }
    }
}

/// `loc("softmax.tile":12:5)`: a place in the source that an operation stems from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A place in a file, lines and columns from 1.
    Place {
        /// The file, as it is written between the quotes.
        file: Word,
        /// The line.
        line: u32,
        /// The column.
        column: u32,
    },
    /// Any other, as it is written, without `loc(` and `)`.
    Other(Word),
}

impl Source {
    /// A place in a file of this name, whose marks are escaped as MLIR does.
    pub fn place(file: &str, line: u32, column: u32) -> Source {
        let mut name = String::new();
        for c in file.chars() {
            match c {
                '\\' => name += "\\\\",
                '"' => name += "\\22",
                c if c.is_control() => c.to_string().bytes().for_each(|b| name += &format!("\\{b:02X}")),
                c => name.push(c),
            }
        }
        Source::Place { file: Word::new(name), line, column }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Place { file, line, column } => write!(f, "loc(\"{file}\":{line}:{column})"),
            Source::Other(text) => write!(f, "loc({text})"),
        }
    }
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed = |f: &mut fmt::Formatter<'_>, ty: &Option<Type>| match ty {
            Some(ty) => write!(f, " : {ty}"),
            None => Ok(()),
        };
        match self {
            AttrValue::Int(n, ty) => n.fmt(f).and_then(|()| typed(f, ty)),
            AttrValue::Float(text, ty) => f.write_str(text).and_then(|()| typed(f, ty)),
            AttrValue::Bool(b) => b.fmt(f),
            AttrValue::Str(s) | AttrValue::Other(s) => f.write_str(s),
            AttrValue::Symbol(name) => write!(f, "@{name}"),
            AttrValue::Type(ty) => ty.fmt(f),
            AttrValue::Enum(Spelling::Dotted, of, word) => write!(f, "#pto.{of}<{word}>"),
            AttrValue::Enum(Spelling::Inner, of, word) => write!(f, "#pto<{of} {word}>"),
            AttrValue::Enum(Spelling::Angles, _, word) => write!(f, "<{word}>"),
            AttrValue::Array(list) => {
                f.write_str("[")?;
                comma(f, list)?;
                f.write_str("]")
            }
            AttrValue::Dict(attrs) => dict(f, attrs),
        }
    }
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// `{a = 1, b}`
pub fn dict(f: &mut impl fmt::Write, attrs: &[Attr]) -> fmt::Result {
    f.write_str("{")?;
    comma(f, attrs)?;
    f.write_str("}")
}

fn comma<T: fmt::Display>(f: &mut impl fmt::Write, list: &[T]) -> fmt::Result {
    list.iter().enumerate().try_for_each(|(i, item)| write!(f, "{}{item}", if i > 0 { ", " } else { "" }))
}
