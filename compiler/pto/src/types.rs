//! Types of the text form.

use crate::lexer::Word;
use ptoc_diagnostics::Span;
use ptoc_isa::{Loc, Order, TileType};
use ptoc_tensor::DType;
use std::fmt;

/// An extent; `None` is `?`, which only the launch knows.
pub type Extent = Option<i64>;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `index`
    Index,
    /// An element type: `i32`, `ui8`, `bf16`, `f8E4M3FN`. The word is kept as it is written.
    Element(Word),
    /// `!pto.ptr<f32>`
    Ptr(Word),
    /// `!pto.tensor_view<?x?xf32>`
    TensorView(Vec<Extent>, Word),
    /// `!pto.partition_tensor_view<16x64xf32>`
    PartitionView(Vec<Extent>, Word),
    /// `!pto.tile_buf<..>`, a buffer: level 2 and 3.
    TileBuf(Box<TileBuf>),
    /// `!pto.tile<16x64xf32>`, a value: the basic form and level 1.
    Tile(Box<TileValue>),
    /// Any other type of the dialect (`!pto.pipe`, `!pto.eventid_array<4>`), or of MLIR (`memref<..>`), as it is
    /// written.
    Other(Word),
}

impl Type {
    /// The elements' type, if it has one.
    pub fn element(&self) -> Option<&Word> {
        match self {
            Type::Element(e) | Type::Ptr(e) => Some(e),
            Type::TensorView(_, e) | Type::PartitionView(_, e) => Some(e),
            Type::TileBuf(t) => Some(&t.dtype),
            Type::Tile(t) => Some(&t.dtype),
            Type::Index | Type::Other(_) => None,
        }
    }

    /// What a `memref` with constant extents is, if it is one: its extents, elements, and memory (`gm`, `vec`).
    pub fn memref(&self) -> Option<(Vec<i64>, Word, &str)> {
        let Type::Other(text) = self else { return None };
        let inner = text.strip_prefix("memref<")?.strip_suffix('>')?;
        let (shape, space) = inner.split_once(',')?;
        let space = space.trim().strip_prefix("#pto.address_space<")?.strip_suffix('>')?;
        let parts: Vec<&str> = shape.trim().split('x').collect();
        let (element, extents) = parts.split_last().filter(|(e, of)| is_element(e) && !of.is_empty())?;
        let extents = extents.iter().map(|n| n.parse().ok().filter(|n| *n > 0)).collect::<Option<Vec<i64>>>()?;
        Some((extents, Word::new(element), space))
    }

    /// In a sentence: an `index`, a `bf16`.
    pub fn with_article(&self) -> String {
        let text = self.to_string();
        // `f32` is read by its letter.
        let article = if text.starts_with(['i', 'f']) { "an" } else { "a" };
        format!("{article} `{text}`")
    }

    /// Whether values of it are numbers.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Type::Index | Type::Element(_))
    }
}

/// Order of elements or of boxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Major {
    /// `row_major`
    Row,
    /// `col_major`
    Col,
}

impl Major {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Major::Row => "row_major",
            Major::Col => "col_major",
        }
    }

    /// The order of that name.
    pub fn from_word(word: &str) -> Option<Major> {
        [Major::Row, Major::Col].into_iter().find(|m| m.word() == word)
    }
}

/// A tile buffer's type. PTOAS reads two spellings of it, and prints the short one.
#[derive(Clone, Debug, PartialEq)]
pub struct TileBuf {
    /// `loc`
    pub loc: Loc,
    /// `dtype`
    pub dtype: Word,
    /// `rows`
    pub rows: i64,
    /// `cols`
    pub cols: i64,
    /// `v_row` and `v_col`; `?` if an operand of `alloc_tile` says it.
    pub valid: (Extent, Extent),
    /// `blayout`
    pub blayout: Major,
    /// `slayout`; `None` is `none_box`.
    pub slayout: Option<Major>,
    /// `fractal`, in bytes.
    pub fractal: i64,
    /// `pad`: 0 null, 1 zero, 2 max, 3 min.
    pub pad: u32,
    /// `compact`: 0 null, 1 normal, 2 row_plus_one.
    pub compact: u32,
    /// Whether it is written `<vec, 16x64xf32>`, and not `<loc=vec, dtype=f32, ..>`.
    pub short: bool,
}

impl TileBuf {
    /// A tile that is valid as a whole, without boxes.
    pub fn plain(loc: Loc, dtype: impl Into<Word>, rows: i64, cols: i64) -> TileBuf {
        TileBuf {
            loc,
            dtype: dtype.into(),
            rows,
            cols,
            valid: (Some(rows), Some(cols)),
            blayout: Major::Row,
            slayout: None,
            fractal: FRACTAL,
            pad: 0,
            compact: 0,
            short: true,
        }
    }

    /// The type of the tile that it is.
    pub fn tile_type(&self) -> Option<TileType> {
        let (rows, cols) = (u32::try_from(self.rows).ok()?, u32::try_from(self.cols).ok()?);
        let order = if self.blayout == Major::Col && self.slayout.is_none() { Order::Dn } else { Order::Nd };
        Some(TileType { loc: self.loc, dtype: dtype_of(&self.dtype)?, rows, cols, order, layout: None })
    }

    /// Whether two buffers have one storage format: all but what is valid, and the spelling.
    pub fn same_storage(&self, other: &TileBuf) -> bool {
        TileBuf { valid: other.valid, short: other.short, ..self.clone() } == *other
    }
}

/// Rows and columns that a buffer was declared with, where this is valid from the beginning: that many, if a tile of so
/// many is padded to the buffer, else the buffer's own.
pub fn declared(buf: &TileBuf, valid: [Extent; 2]) -> (i64, i64) {
    let own = (buf.rows, buf.cols);
    let (rows, cols) = (valid[0].unwrap_or(own.0), valid[1].unwrap_or(own.1));
    let padded = || {
        // The targets of PTO pad alike.
        let target = ptoc_isa::Target::find("a2a3").ok()?;
        let storage = ptoc_isa::storage_of(target, TileBuf { rows, cols, ..buf.clone() }.tile_type()?);
        Some((i64::from(storage.rows), i64::from(storage.cols)))
    };
    if (rows, cols) != own && padded() == Some(own) { (rows, cols) } else { own }
}

/// A tile that is a value. Where it is and how it is stored is not said, or said by words behind the shape.
#[derive(Clone, Debug, PartialEq)]
pub struct TileValue {
    /// Rows and columns.
    pub extents: Vec<Extent>,
    /// The elements' type.
    pub dtype: Word,
    /// What stands in the angles, where it is no shape: `f32`, `16`, `64`; `vec`, `f32`, `16`, `64`.
    pub fields: Vec<Word>,
}

impl TileValue {
    /// The location, if it is said.
    pub fn loc(&self) -> Option<Loc> {
        self.fields.iter().find_map(|f| LOCS.iter().find(|(word, _)| word == f)).map(|(_, loc)| *loc)
    }
}

/// The size of a box that is not written in the short form, in bytes.
pub const FRACTAL: i64 = 512;

/// Words of `loc`.
pub const LOCS: [(&str, Loc); 7] = [
    ("vec", Loc::Vec),
    ("mat", Loc::Mat),
    ("left", Loc::Left),
    ("right", Loc::Right),
    ("acc", Loc::Acc),
    ("bias", Loc::Bias),
    ("scaling", Loc::Scaling),
];

/// The word of a location, if the dialect has one.
pub fn loc_word(loc: Loc) -> Option<&'static str> {
    LOCS.iter().find(|(_, l)| *l == loc).map(|(word, _)| *word)
}

/// Element types: what the text calls them, and what the language does. Signless integers are signed, as PTOAS emits
/// them.
pub const ELEMENTS: [(&str, DType); 18] = [
    ("i1", DType::Bool),
    ("i8", DType::I8),
    ("i16", DType::I16),
    ("i32", DType::I32),
    ("i64", DType::I64),
    ("si8", DType::I8),
    ("si16", DType::I16),
    ("si32", DType::I32),
    ("si64", DType::I64),
    ("ui8", DType::U8),
    ("ui16", DType::U16),
    ("ui32", DType::U32),
    ("ui64", DType::U64),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("f32", DType::F32),
    ("f8E4M3FN", DType::F8E4M3),
    ("f8E5M2", DType::F8E5M2),
];

/// Words that MLIR has for element types and the language has no dtype for.
pub const OTHER_ELEMENTS: [&str; 12] =
    ["i2", "i4", "si4", "ui4", "i128", "f64", "tf32", "f8E4M3", "f8E8M0FNU", "f8E4M3FNUZ", "f8E5M2FNUZ", "f4E2M1FN"];

/// The dtype of an element type.
pub fn dtype_of(word: &str) -> Option<DType> {
    ELEMENTS.iter().find(|(w, _)| *w == word).map(|(_, d)| *d)
}

/// How an element type of that dtype is written; unsigned ones are `ui`.
pub fn element_word(dtype: DType) -> Option<&'static str> {
    ELEMENTS.iter().find(|(w, d)| *d == dtype && !w.starts_with("si")).map(|(w, _)| *w)
}

/// Whether MLIR or the dialect knows the word as an element type.
pub fn is_element(word: &str) -> bool {
    dtype_of(word).is_some() || OTHER_ELEMENTS.contains(&word)
}

/// A type where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The type.
    pub ty: Type,
    /// Where.
    pub span: Span,
}

fn dims(f: &mut fmt::Formatter<'_>, extents: &[Extent]) -> fmt::Result {
    extents.iter().try_for_each(|e| match e {
        Some(n) => write!(f, "{n}x"),
        None => f.write_str("?x"),
    })
}

struct Dim(Extent);

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(n) => n.fmt(f),
            None => f.write_str("?"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shaped = |f: &mut fmt::Formatter<'_>, name: &str, extents: &[Extent], element: &Word| {
            write!(f, "!pto.{name}<")?;
            dims(f, extents)?;
            write!(f, "{element}>")
        };
        match self {
            Type::Index => f.write_str("index"),
            Type::Element(word) | Type::Other(word) => f.write_str(word),
            Type::Ptr(element) => write!(f, "!pto.ptr<{element}>"),
            Type::TensorView(e, t) => shaped(f, "tensor_view", e, t),
            Type::PartitionView(e, t) => shaped(f, "partition_tensor_view", e, t),
            Type::Tile(t) if t.fields.is_empty() => shaped(f, "tile", &t.extents, &t.dtype),
            Type::Tile(t) => write!(f, "!pto.tile<{}>", t.fields.join(", ")),
            Type::TileBuf(tile) => tile.fmt(f),
        }
    }
}

impl fmt::Display for TileBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loc = loc_word(self.loc).unwrap_or("vec");
        let (blayout, slayout) = (self.blayout.word(), self.slayout.map_or("none_box", Major::word));
        let (rows, cols, (v_row, v_col)) = (self.rows, self.cols, self.valid);
        if !self.short {
            write!(
                f,
                "!pto.tile_buf<loc={loc}, dtype={}, rows={rows}, cols={cols}, v_row={}, v_col={}, blayout={blayout}, \
                slayout={slayout}, fractal={}, pad={}",
                self.dtype,
                Dim(v_row),
                Dim(v_col),
                self.fractal,
                self.pad
            )?;
            if self.compact != 0 {
                write!(f, ", compact={}", self.compact)?;
            }
            return f.write_str(">");
        }
        write!(f, "!pto.tile_buf<{loc}, {rows}x{cols}x{}", self.dtype)?;
        if (v_row, v_col) != (Some(rows), Some(cols)) {
            write!(f, ", valid={}x{}", Dim(v_row), Dim(v_col))?;
        }
        if self.blayout != Major::Row {
            write!(f, ", blayout={blayout}")?;
        }
        if self.slayout.is_some() {
            write!(f, ", slayout={slayout}")?;
        }
        if self.fractal != FRACTAL {
            write!(f, ", fractal={}", self.fractal)?;
        }
        if self.pad != 0 {
            write!(f, ", pad={}", self.pad)?;
        }
        if self.compact != 0 {
            write!(f, ", compact={}", self.compact)?;
        }
        f.write_str(">")
    }
}
