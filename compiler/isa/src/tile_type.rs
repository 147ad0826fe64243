//! Tile types: location, dtype, capacity in elements, layout of the elements.

use ptoc_layout::TileLayout;
use ptoc_tensor::DType;
use std::fmt;

/// Where a tile lives (PTO's `TileType`); each names exactly one memory of a target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "PTO's own names")]
pub enum Loc {
    Vec,
    Mat,
    Left,
    Right,
    Acc,
    Bias,
    Scaling,
    ScaleLeft,
    ScaleRight,
    /// A bank of the memory, read in place by the unit beside it (PIM targets).
    Bank,
    /// The first register file of a unit (hbm-pim).
    GrfA,
    /// The second one, which accumulates (hbm-pim).
    GrfB,
    /// The tile buffer of a unit (geopim).
    Buf,
    /// What a unit's operations pass to each other strip by strip, without a store (geopim). The compiler's own:
    /// programs cannot name it.
    Lanes,
}

impl Loc {
    /// Every location, PTO's in its order first.
    pub const ALL: [Loc; 14] = [
        Loc::Vec,
        Loc::Mat,
        Loc::Left,
        Loc::Right,
        Loc::Acc,
        Loc::Bias,
        Loc::Scaling,
        Loc::ScaleLeft,
        Loc::ScaleRight,
        Loc::Bank,
        Loc::GrfA,
        Loc::GrfB,
        Loc::Buf,
        Loc::Lanes,
    ];

    /// Those of a processing unit in the memory, which PTO does not have.
    pub const UNIT: [Loc; 5] = [Loc::Bank, Loc::GrfA, Loc::GrfB, Loc::Buf, Loc::Lanes];

    /// Whether the unit that computes element by element reads it. PTO's vector unit has one store, a unit in memory
    /// several.
    pub fn is_vector(self) -> bool {
        self == Loc::Vec || Loc::UNIT.contains(&self)
    }

    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Loc::Vec => "Vec",
            Loc::Mat => "Mat",
            Loc::Left => "Left",
            Loc::Right => "Right",
            Loc::Acc => "Acc",
            Loc::Bias => "Bias",
            Loc::Scaling => "Scaling",
            Loc::ScaleLeft => "ScaleLeft",
            Loc::ScaleRight => "ScaleRight",
            Loc::Bank => "Bank",
            Loc::GrfA => "GrfA",
            Loc::GrfB => "GrfB",
            Loc::Buf => "Buf",
            Loc::Lanes => "Lanes",
        }
    }

    /// The location with that name.
    pub fn from_name(name: &str) -> Option<Loc> {
        Loc::ALL.into_iter().find(|l| l.name() == name)
    }

    /// Whether a program may see the bytes of one tile through another of a different type. (Vec and Mat.)
    pub fn bytes_observable(self) -> bool {
        matches!(self, Loc::Vec | Loc::Mat)
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Order of the elements of an unboxed tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Order {
    /// Row-major, PTO's ND.
    Nd,
    /// Column-major, PTO's DN.
    Dn,
}

/// The static type of a tile. Fractal boxing of Left, Right and Acc follows from the target and is not part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TileType {
    /// Location.
    pub loc: Loc,
    /// Element type. `bool` is a packed mask, Vec only.
    pub dtype: DType,
    /// Capacity in rows.
    pub rows: u32,
    /// Capacity in columns.
    pub cols: u32,
    /// Element order.
    pub order: Order,
    /// Where each element lies, if the author said so; `order` has no meaning then and is [`Order::Nd`], so that equal
    /// types are equal.
    pub layout: Option<TileLayout>,
}

impl TileType {
    /// Bytes of storage: `rows * cols * sizeof(dtype)`; a mask packs a row's bits and pads the row to 32 bytes. A
    /// layout may leave gaps, and takes as many elements as its cosize says.
    pub fn bytes(&self) -> u64 {
        let (rows, cols) = (u64::from(self.rows), u64::from(self.cols));
        match (self.dtype, self.layout) {
            (DType::Bool, _) => rows * cols.div_ceil(8).next_multiple_of(32),
            (d, None) => rows * cols * d.size() as u64,
            (d, Some(layout)) => layout.cosize().unsigned_abs() * d.size() as u64,
        }
    }

    /// Number of the element (row, col), which is inside the capacity, in the tile's storage. Masks are packed instead.
    pub fn element(&self, row: u32, col: u32) -> u64 {
        let (r, c) = (u64::from(row), u64::from(col));
        match (self.layout, self.order) {
            (Some(layout), _) => layout.offset(r as i64, c as i64).unsigned_abs(),
            (None, Order::Nd) => r * u64::from(self.cols) + c,
            (None, Order::Dn) => c * u64::from(self.rows) + r,
        }
    }

    /// The same without a layout of its own: row by row.
    pub fn plain(self) -> TileType {
        match self.layout {
            Some(_) => TileType { layout: None, order: Order::Nd, ..self },
            None => self,
        }
    }
}

impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}, {}, {}", self.loc, self.dtype, self.rows, self.cols)?;
        match (self.layout, self.order) {
            (Some(layout), _) => write!(f, ", {layout}")?,
            (None, Order::Dn) => f.write_str(", DN")?,
            (None, Order::Nd) => {}
        }
        f.write_str(">")
    }
}
