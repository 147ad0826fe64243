//! Sides of copies and matrix products: where the element of a point lies, reading and writing it there.

use super::exec::BoundWindow;
use super::machine::Machine;
use super::traffic::Home;
use super::trap::Trap;
use super::wording;
use ptoc_diagnostics::codes;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Affine, Elem, Guard, NestAccess, Table, TensorId, TileRef, Ty, Value};
use ptoc_isa::Oob;
use ptoc_layout::Swizzle;
use ptoc_tensor::DType;
use std::ops::Range;

type TrapResult<T = ()> = Result<T, Trap>;

/// An affine function with its numbers.
pub(crate) struct BoundAffine {
    pub start: i64,
    pub strides: Vec<i64>,
}

impl BoundAffine {
    /// With the numbers that the values have.
    pub fn new(affine: &Affine, number: impl Fn(Value) -> i64) -> BoundAffine {
        let strides = affine.strides.iter().map(|&s| number(s)).collect();
        BoundAffine { start: number(affine.start), strides }
    }

    /// Exact; `None` is beyond all that a place can be.
    pub fn at(&self, point: &[i64]) -> Option<i128> {
        let steps = self.strides.iter().zip(point).map(|(&s, &i)| i128::from(s) * i128::from(i));
        steps.into_iter().try_fold(i128::from(self.start), i128::checked_add)
    }
}

/// A table with its numbers.
pub(super) struct Lookup {
    pub tensor: TensorId,
    at: BoundAffine,
    stride: i64,
    extent: i64,
    oob: Oob,
}

/// A side with its numbers.
pub(super) enum BoundSide {
    Tile { window: BoundWindow, at: TileRef, row: BoundAffine, col: BoundAffine },
    Tensor { tensor: TensorId, elem: Elem, at: BoundAffine, swizzle: Option<Swizzle>, tables: Vec<Lookup> },
}

/// The place of an element on a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spot {
    /// Row and column of the window.
    Tile(usize, usize),
    /// Number in the tensor.
    Element(i64),
    /// A table has no entry: there is no element.
    Nothing,
}

/// A condition of a point, with its numbers.
pub(super) struct Limit {
    at: BoundAffine,
    bound: i64,
}

impl Limit {
    /// Where it holds, as numbers: two limits are the same where these are.
    pub fn numbers(&self) -> impl Iterator<Item = i64> + '_ {
        [self.bound, self.at.start].into_iter().chain(self.at.strides.iter().copied())
    }

    pub fn holds(&self, point: &[i64]) -> bool {
        self.at.at(point).is_some_and(|at| at < i128::from(self.bound))
    }
}

/// Calls `f` with every point below the extents, the first axis fastest.
pub(crate) fn for_each_point(extents: &[i64], mut f: impl FnMut(&[i64]) -> TrapResult) -> TrapResult {
    if extents.contains(&0) {
        return Ok(());
    }
    let mut point = vec![0i64; extents.len()];
    loop {
        f(&point)?;
        let mut axis = 0;
        loop {
            let Some(i) = point.get_mut(axis) else { return Ok(()) };
            *i += 1;
            if *i < extents[axis] {
                break;
            }
            *i = 0;
            axis += 1;
        }
    }
}

/// Number of points.
pub(crate) fn points(extents: &[i64]) -> u64 {
    extents.iter().fold(1u64, |n, &e| n.saturating_mul(e.unsigned_abs()))
}

/// Where an entry of a table leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Led {
    /// To this index.
    To(i64),
    /// There is no element.
    Nowhere,
    /// It is outside, and that is an error.
    Wrong,
}

/// Where an entry leads among so many.
pub(crate) fn led(oob: Oob, entry: i128, extent: i128) -> Led {
    let inside = match oob {
        _ if (0..extent).contains(&entry) => entry,
        Oob::Clamp if extent > 0 => entry.clamp(0, extent - 1),
        Oob::Wrap if extent > 0 => entry.rem_euclid(extent),
        Oob::Zero => return Led::Nowhere,
        _ => return Led::Wrong,
    };
    // Extents are `index` values.
    i64::try_from(inside).map_or(Led::Wrong, Led::To)
}

impl Machine<'_, '_> {
    fn line(&self, affine: &Affine) -> BoundAffine {
        BoundAffine::new(affine, |v| self.index(v))
    }

    pub(super) fn limits(&self, guards: &[Guard]) -> Vec<Limit> {
        guards.iter().map(|g| Limit { at: self.line(&g.at), bound: self.index(g.bound) }).collect()
    }

    /// Extents of axes, none negative.
    pub(super) fn extents(&self, axes: &[Value], what: &str) -> TrapResult<Vec<i64>> {
        let extents: Vec<i64> = axes.iter().map(|&v| self.index(v)).collect();
        match extents.iter().position(|&e| e < 0) {
            Some(k) => self.trap(codes::TRAP_INVALID_IR, format!("axis {k} of a {what} has extent {}", extents[k])),
            None => Ok(extents),
        }
    }

    fn lookup(&self, table: &Table) -> Lookup {
        let (stride, extent) = (self.index(table.stride), self.index(table.extent));
        Lookup { tensor: table.tensor, at: self.line(&table.at), stride, extent, oob: table.oob }
    }

    /// Resolves a side.
    pub(super) fn side(&mut self, access: &NestAccess) -> TrapResult<BoundSide> {
        Ok(match access {
            NestAccess::Tile { tile, row, col } => {
                let window = self.window(tile)?;
                BoundSide::Tile { window, at: *tile, row: self.line(row), col: self.line(col) }
            }
            NestAccess::Tensor { tensor, elem, at, swizzle, tables } => {
                let bytes = match elem {
                    Elem::Whole(dtype) => *dtype,
                    Elem::U4 | Elem::I4 => DType::U8,
                };
                self.adapt(*tensor, bytes)?;
                let tables = tables.iter().map(|t| self.lookup(t)).collect();
                BoundSide::Tensor { tensor: *tensor, elem: *elem, at: self.line(at), swizzle: *swizzle, tables }
            }
        })
    }

    /// The place of a point's element. Entries of tables that were read go to `read`.
    pub(super) fn spot(
        &mut self,
        side: &BoundSide,
        point: &[i64],
        read: &mut dyn FnMut(TensorId, Range<u64>) -> bool,
    ) -> TrapResult<Spot> {
        match side {
            BoundSide::Tile { window, at, row, col } => {
                let (r, c) = (row.at(point), col.at(point));
                let inside = |at: Option<i128>, window: u32, origin: usize, capacity: u32| {
                    let at = usize::try_from(at?).ok()?;
                    (at < window as usize && origin + at < capacity as usize).then_some(at)
                };
                let ty = window.slot.ty;
                match (inside(r, at.rows, window.row, ty.rows), inside(c, at.cols, window.col, ty.cols)) {
                    (Some(r), Some(c)) => Ok(Spot::Tile(r, c)),
                    _ => self.fault(wording::outside_window(self.k, at, (window.row, window.col), (r, c))),
                }
            }
            BoundSide::Tensor { at, swizzle, tables, .. } => {
                let mut sum = at.at(point);
                for table in tables {
                    match self.entry(table, point, read)? {
                        None => return Ok(Spot::Nothing),
                        Some(entry) => {
                            let step = i128::from(entry) * i128::from(table.stride);
                            sum = sum.and_then(|s| s.checked_add(step));
                        }
                    }
                }
                // What does not fit is outside every tensor.
                let n = sum.and_then(|s| i64::try_from(s).ok()).unwrap_or(-1);
                Ok(Spot::Element(swizzle.map_or(n, |s| s.apply(n))))
            }
        }
    }

    /// The entry of a table, inside its extent; `None` if it is as good as not there.
    fn entry(
        &mut self,
        table: &Lookup,
        point: &[i64],
        read: &mut dyn FnMut(TensorId, Range<u64>) -> bool,
    ) -> TrapResult<Option<i64>> {
        let at = table.at.at(point).and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
        let bits = self.tensor_read(table.tensor, at)?;
        let dtype = self.tensors[table.tensor].dtype;
        let size = dtype.size() as u64;
        if !read(table.tensor, at as u64 * size..(at as u64 + 1) * size) {
            return self.fault(wording::table_conflict(self.tensor_name(table.tensor), at));
        }
        let (entry, extent) = (scalar::to_int(Ty::D(dtype), bits), i128::from(table.extent));
        let inside = match led(table.oob, entry, extent) {
            Led::To(inside) => inside,
            Led::Nowhere => return Ok(None),
            Led::Wrong => {
                let (name, place) = (self.tensor_name(table.tensor), self.tensors[table.tensor].coordinates(at as u64));
                let message = match extent {
                    ..=0 => format!("{name}{place:?} is {entry}, and there is nothing that it could be an index of"),
                    _ => format!("{name}{place:?} is {entry}, and entries of this table are indices below {extent}"),
                };
                return self.trap(codes::TABLE_ENTRY, message);
            }
        };
        Ok(Some(inside))
    }

    /// Reads the element.
    pub(super) fn fetch(&mut self, side: &BoundSide, spot: Spot) -> TrapResult<u64> {
        match (side, spot) {
            (BoundSide::Tile { window, .. }, Spot::Tile(row, col)) => self.tile_read(window, row, col),
            (BoundSide::Tensor { tensor, elem, .. }, Spot::Element(n)) => self.element_read(*tensor, *elem, n),
            _ => self.trap(codes::TRAP_INVALID_IR, "an element that is not there is read"),
        }
    }

    /// Writes the element.
    pub(super) fn put_at(&mut self, side: &BoundSide, spot: Spot, bits: u64) -> TrapResult {
        match (side, spot) {
            (BoundSide::Tile { window, .. }, Spot::Tile(row, col)) => {
                self.tile_write(window, row, col, bits);
                Ok(())
            }
            (BoundSide::Tensor { tensor, elem: Elem::Whole(dtype), .. }, Spot::Element(n)) => {
                self.element_write(*tensor, *dtype, n, bits)
            }
            _ => self.trap(codes::TRAP_INVALID_IR, "an element that is not there is written"),
        }
    }

    /// Where the side's storage is, for comparison with another's.
    pub(super) fn home(&self, side: &BoundSide) -> Home {
        match side {
            BoundSide::Tile { window, .. } => self.tiles.home(&window.slot),
            BoundSide::Tensor { tensor, .. } => Home::Tensor(*tensor, self.tensors[*tensor].data.len() as u64),
        }
    }

    /// The bytes (of a mask: bits) of an element in its home. Only of a place that has been read, or is about to be
    /// written and inside.
    pub(super) fn footprint(&self, side: &BoundSide, spot: Spot) -> Range<u64> {
        match (side, spot) {
            (BoundSide::Tile { window, .. }, Spot::Tile(r, c)) => {
                self.tiles.footprint(&window.slot, window.row + r, window.col + c)
            }
            (BoundSide::Tensor { elem, .. }, Spot::Element(n)) => {
                let n = u64::try_from(n).unwrap_or(u64::MAX);
                match elem {
                    Elem::U4 | Elem::I4 => n / 2..(n / 2).saturating_add(1),
                    Elem::Whole(dtype) => {
                        let start = n.saturating_mul(dtype.size() as u64);
                        start..start.saturating_add(dtype.size() as u64)
                    }
                }
            }
            _ => 0..0,
        }
    }

    /// The element in words.
    pub(super) fn describe(&self, side: &BoundSide, spot: Spot) -> String {
        match (side, spot) {
            (BoundSide::Tile { window, .. }, Spot::Tile(r, c)) => {
                wording::tile_element(self.k, window.tile, (window.row + r, window.col + c))
            }
            (BoundSide::Tensor { tensor, elem, .. }, Spot::Element(n)) => {
                let (name, t) = (self.tensor_name(*tensor), &self.tensors[*tensor]);
                wording::tensor_element(name, t.dtype, *elem, n, |at| t.coordinates(at))
            }
            _ => "an element that is not there".to_owned(),
        }
    }
}
