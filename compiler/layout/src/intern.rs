//! Layouts of tiles: functions of (row, column) that are known when a kernel is compiled, as a part of a type.
//!
//! A type is compared and copied everywhere, so that its layout is a handle: equal layouts are the same entry of a
//! table that lives as long as the process. The table holds one entry for each layout that some program wrote.

use crate::{ErrorKind, LayoutError, Path, Result, Swizzle, Value};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Elements that a tile with a layout of its own may have: each is looked at once, and no memory holds more.
const MAX_ELEMENTS: i128 = 1 << 24;

/// One past the largest offset that a tile may have.
const MAX_COSIZE: i128 = 1 << 40;

/// Where the elements of a tile lie: an injective function from (row, column) to offsets, none negative.
///
/// Made of a layout of rank 2, or of a swizzle after one. Mode 0 is the row and mode 1 the column; a nested mode is
/// indexed colexicographically, its first entry fastest. Equality is that of the layouts as they are written:
/// `(4,8):(8,1)` and `((4),8):((8),1)` are two, although they agree everywhere.
#[derive(Clone, Copy)]
pub struct TileLayout(&'static Entry);

struct Entry {
    value: Value,
    /// Extent and stride of the leaves of mode 0 and mode 1.
    modes: [Vec<(i64, i64)>; 2],
    offset: i64,
    swizzle: Option<Swizzle>,
    rows: i64,
    cols: i64,
    cosize: i64,
}

static TABLE: LazyLock<Mutex<HashMap<Value, &'static Entry>>> = LazyLock::new(Mutex::default);

impl TileLayout {
    /// The handle of a layout ([`Value::Layout`] or [`Value::Composed`]). Refused are: other values, other ranks than
    /// 2, numbers that only the launch knows, strides that are coordinates, no elements or more than 2^24, offsets
    /// below 0 or beyond 2^40, and two elements at one offset.
    pub fn new(value: &Value) -> Result<TileLayout> {
        // A panic between these lines is impossible to notice in the table, which only grows.
        let known = |t: &HashMap<Value, &'static Entry>| t.get(value).copied();
        if let Some(entry) = known(&TABLE.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(TileLayout(entry));
        }
        let entry = Entry::new(value)?;
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been here meanwhile.
        let entry = known(&table).unwrap_or_else(|| {
            let entry: &'static Entry = Box::leak(Box::new(entry));
            table.insert(value.clone(), entry);
            entry
        });
        Ok(TileLayout(entry))
    }

    /// The layout.
    pub fn value(self) -> &'static Value {
        &self.0.value
    }

    /// Number of rows: the size of mode 0.
    pub fn rows(self) -> i64 {
        self.0.rows
    }

    /// Number of columns: the size of mode 1.
    pub fn cols(self) -> i64 {
        self.0.cols
    }

    /// One past the largest offset: the elements to allocate. Some of them may belong to no coordinate.
    pub fn cosize(self) -> i64 {
        self.0.cosize
    }

    /// Where element (row, col) lies. The indices must be inside; others give some number.
    pub fn offset(self, row: i64, col: i64) -> i64 {
        self.0.offset(row, col)
    }

    /// The leaves of a mode (0: rows, 1: columns) with their strides, the fastest first.
    pub fn leaves(self, mode: usize) -> &'static [(i64, i64)] {
        self.0.modes.get(mode).map_or(&[], Vec::as_slice)
    }

    /// What is added before the swizzle; 0 for a plain layout.
    pub fn base(self) -> i64 {
        self.0.offset
    }

    /// The swizzle, if there is one that changes anything.
    pub fn swizzle(self) -> Option<Swizzle> {
        self.0.swizzle
    }
}

impl Entry {
    fn new(value: &Value) -> Result<Entry> {
        let (layout, swizzle, offset) = match value {
            Value::Layout(l) => (l, None, Some(0)),
            Value::Composed(c) => (&c.layout, Some(c.swizzle), c.offset.as_const()),
            other => {
                let message = format!("{} is no layout", other.describe());
                return refuse(
                    ErrorKind::Kind,
                    message,
                    "give the tile a layout of rows and columns: `(16,64):(64,1)`",
                );
            }
        };
        if layout.rank() != 2 || layout.is_leaf() {
            let message = format!("{layout} has rank {}, a tile has rows and columns", layout.rank());
            return refuse(ErrorKind::Profile, message, "group its modes to two: one for the row, one for the column");
        }
        let mut modes = [Vec::new(), Vec::new()];
        for (k, mode) in layout.modes().iter().enumerate() {
            for (extent, stride) in mode.leaves() {
                let Some(d) = stride.as_int() else {
                    let message = format!("stride {stride} is a coordinate, a tile's elements lie at offsets");
                    return Err(LayoutError::new(ErrorKind::Kind, NAME, message).at(Path(vec![k])));
                };
                let (Some(s), Some(d)) = (extent.as_const(), d.as_const()) else {
                    let message = format!("{extent}:{stride} is known at launch only");
                    let e = LayoutError::new(ErrorKind::Domain, NAME, message).at(Path(vec![k]));
                    return Err(e.with_help("a tile's layout is part of its type: use constants"));
                };
                modes[k].push((s, d));
            }
        }
        let Some(offset) = offset else {
            return refuse(
                ErrorKind::Domain,
                format!("the offset of {value} is known at launch only"),
                "use a constant",
            );
        };
        let size = |mode: &[(i64, i64)]| mode.iter().fold(1i128, |n, &(s, _)| n.saturating_mul(i128::from(s.max(0))));
        let (rows, cols) = (size(&modes[0]), size(&modes[1]));
        let elements = rows.saturating_mul(cols);
        if elements == 0 {
            return refuse(
                ErrorKind::Domain,
                format!("{value} has no elements: {rows} x {cols}"),
                "every extent is at least 1",
            );
        }
        if elements > MAX_ELEMENTS {
            let message = format!("{value} has {rows} x {cols} elements, a tile with a layout of its own at most 2^24");
            return refuse(ErrorKind::Domain, message, "use a smaller tile");
        }
        let (low, high) =
            modes.iter().flatten().fold((i128::from(offset), i128::from(offset)), |(low, high), &(s, d)| {
                let step = i128::from(s - 1) * i128::from(d);
                (low + step.min(0), high + step.max(0))
            });
        if low < 0 {
            let help = "reverse the mode by a positive stride, or add an offset behind a swizzle";
            return refuse(
                ErrorKind::Domain,
                format!("{value} reaches offset {low}, before the tile's first byte"),
                help,
            );
        }
        if high >= MAX_COSIZE {
            return refuse(
                ErrorKind::Domain,
                format!("{value} reaches offset {high}, beyond 2^40"),
                "use smaller strides",
            );
        }
        let swizzle = swizzle.filter(|s| !s.is_identity());
        let (rows, cols) = (rows as i64, cols as i64);
        let mut entry = Entry { value: value.clone(), modes, offset, swizzle, rows, cols, cosize: high as i64 + 1 };
        // A swizzle is a bijection, so that it does not matter here.
        if !entry.stacked() {
            entry.each_once()?;
        }
        if swizzle.is_some() {
            entry.cosize = entry.points().map(|(_, at)| at).max().unwrap_or(0) + 1;
            if i128::from(entry.cosize) > MAX_COSIZE {
                return refuse(ErrorKind::Domain, format!("{value} reaches beyond 2^40"), "use a smaller swizzle");
            }
        }
        Ok(entry)
    }

    fn offset(&self, row: i64, col: i64) -> i64 {
        let mut at = self.offset;
        for (mode, index) in self.modes.iter().zip([row, col]) {
            let mut rest = index;
            for &(s, d) in mode {
                at += rest % s * d;
                rest /= s;
            }
        }
        self.swizzle.map_or(at, |s| s.apply(at))
    }

    fn points(&self) -> impl Iterator<Item = ((i64, i64), i64)> + '_ {
        (0..self.rows).flat_map(move |r| (0..self.cols).map(move |c| ((r, c), self.offset(r, c))))
    }

    /// Whether each stride, from the smallest, steps over all that the smaller ones reach. Then no two elements meet.
    fn stacked(&self) -> bool {
        let mut leaves: Vec<(i64, i64)> = self.modes.iter().flatten().copied().filter(|&(s, _)| s > 1).collect();
        leaves.sort_by_key(|&(_, d)| d.unsigned_abs());
        let mut reach = 0i128;
        leaves.iter().all(|&(s, d)| {
            let step = i128::from(d.unsigned_abs());
            let clear = step > reach;
            reach += step * i128::from(s - 1);
            clear
        })
    }

    /// Looks at every element.
    fn each_once(&self) -> Result<()> {
        let mut all: Vec<i64> = self.points().map(|(_, at)| at).collect();
        all.sort_unstable();
        let Some(twice) = all.windows(2).find(|w| w[0] == w[1]).map(|w| w[0]) else { return Ok(()) };
        let mut who = self.points().filter(|&(_, at)| at == twice).map(|(place, _)| place);
        let (Some(a), Some(b)) = (who.next(), who.next()) else { return Ok(()) };
        let message =
            format!("elements ({}, {}) and ({}, {}) of {} are both at offset {twice}", a.0, a.1, b.0, b.1, self.value);
        refuse(ErrorKind::NotInjective, message, "each element of a tile needs a place of its own")
    }
}

const NAME: &str = "tile layout";

fn refuse<T>(kind: ErrorKind, message: String, help: &str) -> Result<T> {
    Err(LayoutError::new(kind, NAME, message).with_help(help))
}

impl PartialEq for TileLayout {
    fn eq(&self, other: &TileLayout) -> bool {
        // Interned: one entry a value.
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for TileLayout {}

impl Hash for TileLayout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The content and not the address, so that hashes do not change from run to run.
        self.0.value.hash(state);
    }
}

impl fmt::Display for TileLayout {
    /// CuTe's notation, which [`crate::parse_value`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl fmt::Debug for TileLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TileLayout({self})")
    }
}

#[cfg(test)]
mod tests;
