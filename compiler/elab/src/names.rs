//! What elaboration has found out about names, also of a kernel that has mistakes: for an editor.

use super::{Elaborator, Valid};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Tile, Ty, Value};
use ptoc_isa::{Pipe, TileType};
use ptoc_names::builtins::Word;
use ptoc_tensor::DType;
use ptoc_values::{Binding, TileVal, Val};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Meanings of one name that are kept: it has several where a function is called or a loop unrolled several times.
const MOST: usize = 4;

/// What a name stands for.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    /// A constant, as it would be written.
    Constant(String),
    /// A layout, tiler, swizzle, atom or tiled product.
    Algebra(Arc<ptoc_layout::Value>),
    /// A scalar of this type.
    Scalar(Ty),
    /// A block of a dimension: its size, and how many of that are there.
    Block(u32, String),
    /// A tile or a window of one.
    Tile(TileFact),
    /// A tensor or a window of one: dtype and extents.
    Tensor(DType, Vec<String>),
    /// A ring: the pipes of its two sides, and its slots.
    Ring(Pipe, Pipe, u32),
    /// A record: its fields, with what they are.
    Record(Vec<(String, String)>),
    /// Something else, in words.
    Other(&'static str),
}

/// A tile.
#[derive(Clone, PartialEq, Debug)]
pub struct TileFact {
    /// The storage's number in the kernel's IR.
    pub tile: Tile,
    /// Type of the storage.
    pub ty: TileType,
    /// Elements, of an array of tiles.
    pub count: Option<u32>,
    /// Rows and columns as the program sees them.
    pub shape: (u32, u32),
    /// Rows and columns that are valid when the kernel ends, if that is known.
    pub valid: Option<(String, String)>,
}

/// A name with one of its meanings.
#[derive(Clone, PartialEq, Debug)]
pub struct NameFact {
    /// Where it is defined.
    pub span: Span,
    /// What it stands for.
    pub fact: Fact,
}

impl Elaborator<'_> {
    /// What is known of all names that were defined so far, in the order of their definitions.
    pub fn name_facts(&self) -> Vec<NameFact> {
        let mut found: FxHashMap<Span, Vec<Fact>> = FxHashMap::default();
        for (_, binding, span) in self.env.entered().iter().flat_map(|scope| &scope.names) {
            let known = found.entry(*span).or_default();
            if known.len() >= MOST {
                continue;
            }
            let fact = match binding {
                Binding::Let(val) => self.fact(val),
                Binding::Var(_, ty) => Some(Fact::Scalar(*ty)),
            };
            if let Some(fact) = fact.filter(|f| !known.contains(f)) {
                known.push(fact);
            }
        }
        let mut all: Vec<NameFact> = found
            .into_iter()
            .flat_map(|(span, facts)| facts.into_iter().map(move |fact| NameFact { span, fact }))
            .collect();
        // Stable: meanings of one name stay in their order.
        all.sort_by_key(|f| f.span);
        all
    }

    fn fact(&self, val: &Val) -> Option<Fact> {
        Some(match val {
            Val::Poison | Val::Unit | Val::Hole | Val::Nothing => return None,
            Val::Int(_) | Val::Float(_) | Val::Bool(_) => Fact::Constant(self.show(val)),
            Val::Str(s) => Fact::Constant(format!("{s:?}")),
            Val::Word(Word::DType(d)) => Fact::Constant(d.to_string()),
            Val::Tuple(list) | Val::List(list) if list.iter().all(constant) => Fact::Constant(self.show(val)),
            // An editor may look at it in another thread.
            Val::Algebra(a) => Fact::Algebra(Arc::new((**a).clone())),
            Val::Scalar(v) => match self.b.const_of(*v) {
                Some(_) => Fact::Constant(self.show(val)),
                None => Fact::Scalar(self.ty(*v)),
            },
            Val::Fn(id) => Fact::Constant(ptoc_names::item_name(self.modules.item(*id))?.name.to_string()),
            Val::Block(b) => Fact::Block(b.cap, self.size_shown(b.len)),
            Val::Tile(t) | Val::Mask(t, _) => self.tile_fact(t),
            Val::TileArray(a) => Fact::Tile(TileFact {
                tile: a.tile,
                ty: self.b.kernel().tiles[a.tile].ty,
                count: Some(a.count),
                shape: (a.rows, a.cols),
                valid: None,
            }),
            Val::View(v) | Val::Cut(v) => {
                Fact::Tensor(v.dtype, v.window.modes.iter().map(|m| self.size_shown(m.extent)).collect())
            }
            Val::Ring(r) => {
                let full = &self.b.kernel().events[r.events.0];
                Fact::Ring(full.from, full.to, r.count)
            }
            Val::Record(r) => {
                let shown = |v: &Val| self.fact(v).map_or_else(|| v.describe().to_owned(), |f| f.to_string());
                Fact::Record(r.fields.iter().map(|(name, v)| (name.to_string(), shown(v))).collect())
            }
            other => Fact::Other(other.describe()),
        })
    }

    fn tile_fact(&self, t: &TileVal) -> Fact {
        let shown = |(r, c): (Value, Value)| (self.size_shown(r), self.size_shown(c));
        let valid = match (t.valid, self.valid.get(&t.tile)) {
            (Some(valid), _) => Some(shown(valid)),
            (None, Some(Valid::Known(r, c))) if t.origin.is_none() => Some(shown((*r, *c))),
            _ => None,
        };
        Fact::Tile(TileFact { tile: t.tile, ty: t.ty, count: None, shape: (t.rows, t.cols), valid })
    }
}

fn constant(v: &Val) -> bool {
    match v {
        Val::Int(_) | Val::Float(_) | Val::Bool(_) | Val::Str(_) => true,
        Val::Tuple(list) | Val::List(list) => list.iter().all(constant),
        _ => false,
    }
}

/// A name's meaning in a word or two, as it would stand behind a colon.
impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fact::Constant(text) => f.write_str(text),
            Fact::Algebra(value) => write!(f, "{value}"),
            Fact::Scalar(Ty::Index) => f.write_str("index"),
            Fact::Scalar(Ty::D(dtype)) => write!(f, "{dtype}"),
            Fact::Block(size, len) if *len == size.to_string() => write!(f, "block of {size}"),
            Fact::Block(size, _) => write!(f, "block of up to {size}"),
            Fact::Tile(t) => {
                write!(f, "{}<{}, {}, {}>", t.ty.loc, t.ty.dtype, t.shape.0, t.shape.1)?;
                t.count.map_or(Ok(()), |n| write!(f, "[{n}]"))
            }
            Fact::Tensor(dtype, extents) => write!(f, "{dtype}[{}]", extents.join(", ")),
            Fact::Ring(from, to, slots) => write!(f, "ring<{from}, {to}> of {slots}"),
            Fact::Record(fields) => {
                let comma = if fields.len() == 1 { "," } else { "" };
                let fields: Vec<String> = fields.iter().map(|(name, what)| format!("{name}: {what}")).collect();
                write!(f, "({}{comma})", fields.join(", "))
            }
            Fact::Other(words) => f.write_str(words),
        }
    }
}
