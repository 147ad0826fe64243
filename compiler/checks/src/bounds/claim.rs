//! Inequalities that keep an access inside, for one place or for every point of a nest.

use ptoc_diagnostics::{Code, codes};
use ptoc_ir::tile::{Kernel, TensorId, Tile, Value};
use ptoc_isa::Oob;
use ptoc_layout::Swizzle;
use std::rc::Rc;

/// A sum: constants, values, and products of values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    /// Factors, and how often they count.
    pub terms: Vec<(Vec<Value>, i64)>,
    /// The constant.
    pub constant: i64,
}

impl Sum {
    pub fn of(v: Value) -> Sum {
        Sum { terms: vec![(vec![v], 1)], constant: 0 }
    }

    pub fn number(constant: i64) -> Sum {
        Sum { terms: Vec::new(), constant }
    }

    /// The value, if it is one alone.
    pub fn value(&self) -> Option<Value> {
        match &self.terms[..] {
            [(factors, 1)] if self.constant == 0 && factors.len() == 1 => factors.first().copied(),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + n * product`
    pub fn and(mut self, product: &[Value], n: i64) -> Sum {
        self.terms.push((product.to_vec(), n));
        self
    }

    /// `self + n`
    pub fn plus(mut self, n: i64) -> Sum {
        self.constant += n;
        self
    }

    /// `self * n`, for a small `n`
    pub fn times(mut self, n: i64) -> Sum {
        self.terms.iter_mut().for_each(|t| t.1 *= n);
        self.constant *= n;
        self
    }
}

/// `low <= high`, at every point of the nest if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub low: Sum,
    pub high: Sum,
    /// If one of these extents is not positive, nothing is touched.
    pub unless_empty: Vec<Value>,
    /// What the sums speak of beside the kernel's values.
    pub nest: Option<Rc<Nest>>,
    /// What is done to `low` before it is compared.
    pub swizzle: Option<Uneven>,
}

/// A swizzle in a buffer that may end inside one of its blocks: an element of the last one may change places with what
/// is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Uneven {
    pub swizzle: Swizzle,
    /// `low` is the element's number times this.
    pub scale: i64,
    /// Room at the end with which no element of a block is outside.
    pub room: i64,
}

/// Points: one value for each axis, and what tables have there. Axes and entries are values that the kernel does not
/// have: the numbers of kernels after the last of its own, the same in every nest, so that equal claims are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Nest {
    /// An index, and its extent. Axes of one element are left out: their index is 0.
    pub axes: Vec<(Value, Value)>,
    /// In the order in which they are looked up.
    pub entries: Vec<Entry>,
    /// The claim is of points at which all of these hold: a sum, and what it is less than.
    pub guards: Vec<(Sum, Value)>,
}

impl Nest {
    /// Whether it is a box of which every corner is touched, with guards that only make it shorter.
    pub fn is_box(&self) -> bool {
        self.entries.is_empty() && self.guards.iter().all(|g| self.limit(g).is_some())
    }

    /// A guard of one index, `start + step * index < bound` with a positive step; of none, without the index.
    pub fn limit(&self, (at, bound): &(Sum, Value)) -> Option<Limit> {
        let is_axis = |v: &Value| self.axes.iter().any(|a| a.0 == *v);
        let (moved, fixed): (Vec<_>, Vec<_>) = at.terms.iter().cloned().partition(|t| t.0.iter().any(is_axis));
        let axis = match &moved[..] {
            [] => None,
            [(factors, step)] if *step > 0 && factors.len() == 1 => Some((factors[0], *step)),
            _ => return None,
        };
        Some(Limit { axis, start: Sum { terms: fixed, constant: at.constant }, bound: *bound })
    }
}

/// A guard that bounds a single index, if any.
pub(super) struct Limit {
    pub axis: Option<(Value, i64)>,
    pub start: Sum,
    pub bound: Value,
}

/// An entry of a table, as it counts: in `0..extent`, whatever the table does with others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub value: Value,
    pub tensor: TensorId,
    pub at: Sum,
    pub extent: Value,
    pub oob: Oob,
}

/// A claim, and what is wrong where it does not hold.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub claim: Claim,
    pub what: What,
}

/// What belongs together: both ends of what is touched, or one demand alone.
pub(super) type Group = Vec<Bound>;

/// What would lie outside of what.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Row or column of an element.
    Element(Tile, &'static str),
    /// An element of a tile array.
    Member(Tile),
    /// The address that a tile is bound to.
    Address(Tile),
    /// The valid rows or columns of a window.
    Valid(Tile, &'static str, u32),
    /// The rows or columns of a window.
    Window(Tile, &'static str, u32),
    /// A point of a nest, in its window.
    Point(Tile),
    Tensor(TensorId),
    /// A demand of an instruction.
    Need(&'static str, &'static str),
}

/// Something that has bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    Tile(Tile),
    Tensor(TensorId),
    /// What an instruction asks of its operands.
    Operands(&'static str),
}

impl What {
    pub fn thing(self) -> Thing {
        match self {
            What::Element(t, _)
            | What::Member(t)
            | What::Address(t)
            | What::Valid(t, ..)
            | What::Window(t, ..)
            | What::Point(t) => Thing::Tile(t),
            What::Tensor(t) => Thing::Tensor(t),
            What::Need(instruction, _) => Thing::Operands(instruction),
        }
    }

    pub fn code(self) -> Code {
        match self {
            What::Tensor(_) => codes::TRAP_TENSOR_OUT_OF_BOUNDS,
            _ => codes::TRAP_TILE_OUT_OF_BOUNDS,
        }
    }

    /// What a check says.
    pub fn text(self, kernel: &Kernel) -> String {
        let name = |t: Tile| &kernel.tiles[t].name;
        match self {
            What::Element(t, what) => format!("a {what} of tile `{}` lies outside of its valid shape", name(t)),
            What::Member(t) => format!("an element of the array `{}` that it does not have", name(t)),
            What::Address(t) => format!("the address of tile `{}` lies outside of its memory", name(t)),
            What::Valid(t, what, window) => {
                format!("the valid {what} of tile `{}` exceed its window of {window}", name(t))
            }
            What::Window(t, what, capacity) => {
                format!("a window of tile `{}` reaches beyond its {capacity} {what}", name(t))
            }
            What::Point(t) => format!("an element of tile `{}` lies outside of its window", name(t)),
            What::Tensor(t) => format!("an access of `{}` lies outside of it", kernel.tensors[t].name),
            What::Need(instruction, what) => format!("{instruction}: {what}"),
        }
    }
}
