//! What the values of a function denote.

use crate::lexer::Word;
use crate::types::{TileBuf, Type};

/// A number as an expression of the language.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar {
    /// The expression, which can stand as an operand without parentheses.
    pub text: String,
    /// Its type.
    pub ty: Type,
    /// Its value, if it is a whole number that is known.
    pub constant: Option<i128>,
    /// Whether it is known not to be negative.
    pub natural: bool,
    /// The number as a product, for shapes.
    pub product: Option<Product>,
}

/// A product of a number and of arguments, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Product {
    /// The number.
    pub factor: i128,
    /// Names of arguments, sorted, each as often as it occurs.
    pub of: Vec<Word>,
}

impl Product {
    /// A number.
    pub fn number(factor: i128) -> Product {
        Product { factor, of: Vec::new() }
    }

    /// An argument.
    pub fn argument(name: &Word) -> Product {
        Product { factor: 1, of: vec![name.clone()] }
    }

    /// Of both; `None` if it is too large.
    pub fn times(&self, other: &Product) -> Option<Product> {
        let mut of: Vec<Word> = self.of.iter().chain(&other.of).cloned().collect();
        of.sort();
        Some(Product { factor: self.factor.checked_mul(other.factor)?, of }).filter(|p| p.of.len() <= 16)
    }

    /// As an expression.
    pub fn text(&self) -> String {
        let mut factors: Vec<String> = Vec::new();
        if self.factor != 1 || self.of.is_empty() {
            factors.push(self.factor.to_string());
        }
        factors.extend(self.of.iter().map(Word::to_string));
        factors.join(" * ")
    }
}

/// A tile: the expression that names it, and its type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tile {
    /// `t`, `t.valid(n, 64)`, `t[0 .. 16, _]`
    pub text: String,
    /// The declared name.
    pub name: Word,
    /// The type in the text.
    pub ty: TileBuf,
    /// The address, if it is a constant.
    pub addr: Option<i128>,
    /// Whether a block may have set what is valid to something else.
    pub unknown: bool,
}

impl Tile {
    /// Whether it is all of what was declared, valid as declared.
    pub fn is_whole(&self) -> bool {
        self.text == self.name.as_str()
    }
}

/// A pointer: an argument, and elements behind its beginning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pointer {
    /// Which argument.
    pub argument: Word,
    /// How many elements behind it.
    pub offset: Option<Scalar>,
}

/// A view of global memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    /// The expression of all of it.
    pub text: String,
    /// Extents.
    pub shape: Vec<Scalar>,
    /// Modes of one element that the expression does not have.
    pub added: Vec<usize>,
}

impl View {
    /// A view that has the expression's modes.
    pub fn new(text: String, shape: Vec<Scalar>) -> View {
        View { text, shape, added: Vec::new() }
    }
}

/// A part of a view.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// What it is part of.
    pub view: View,
    /// First index of each mode.
    pub offsets: Vec<Scalar>,
    /// Extent of each mode.
    pub sizes: Vec<Scalar>,
}

impl Part {
    /// All of a view.
    pub fn whole(view: &View) -> Part {
        let offsets = view.shape.iter().map(|_| super::arith::number(0)).collect();
        Part { view: view.clone(), offsets, sizes: view.shape.clone() }
    }
}

/// What a value denotes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    Scalar(Scalar),
    Tile(Tile),
    Pointer(Pointer),
    View(View),
    Part(Part),
    /// Numbers of events: a variable for each.
    Events(Vec<Word>),
}
