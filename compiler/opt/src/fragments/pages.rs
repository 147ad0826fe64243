//! Operands that are pages of an array, or rows, as a table lists them: a paged cache of keys and values, neighbours of
//! sites in a sparse convolution; results whose rows go where a table says.

use super::loads::FACTOR;
use super::{Finder, OperandLoad, OperandSource, no};
use crate::matrix_unit::launch_number;
use ptoc_diagnostics::Span;
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{Copy, Elem, Kernel, NestAccess, Op, TensorDir, TensorId, TileRef, Value};
use ptoc_isa::Oob;
use ptoc_tensor::DType;

/// Pages of dense lines.
#[derive(Clone, Debug)]
pub struct Pages {
    /// The table, of i32.
    pub table: TensorId,
    /// The entry of the first page, and from entry to entry.
    pub first: Value,
    /// See above.
    pub step: Value,
    /// Lines of a page.
    pub lines: u32,
    /// Dense rows of the array from page to page.
    pub rows: Poly,
    /// Entries are below this.
    pub extent: Value,
    /// Valid lines of all pages.
    pub valid: Value,
    /// The source, whose checks the entries' are.
    pub span: Span,
}

/// Rows of an array that a table lists; those whose entry is none are zeros.
#[derive(Clone, Debug)]
pub struct TableRows {
    /// The table, of i32 or u32.
    pub table: TensorId,
    /// The entry of the first row, and from entry to entry.
    pub first: Value,
    /// See above.
    pub step: Value,
    /// Entries are below this, or there is no row.
    pub extent: Value,
    /// The element at which row 0 begins, and from row to row.
    pub start: Value,
    /// See above.
    pub stride: Value,
    /// Valid rows and columns.
    pub valid: (Value, Value),
}

/// A result whose rows go where a table says.
#[derive(Clone, Debug)]
pub struct ScatteredRows {
    /// What is stored.
    pub tile: TileRef,
    /// The array.
    pub tensor: TensorId,
    /// Where its rows go. Every entry is one.
    pub rows: TableRows,
}

/// Lines of a page are a multiple of this: the rows of the swizzle's pattern.
const LINES: i64 = 8;

impl Finder<'_> {
    /// A nest that copies pages into a tile.
    pub(super) fn pages(&self, copy: &Copy, span: Span) -> Result<(TileRef, OperandLoad), String> {
        let NestAccess::Tile { tile, .. } = &copy.dst else { return no("a nest of loops writes an array") };
        let name = &self.kernel.tiles[tile.tile].name;
        let found = self.pages_of(copy, span).or_else(|| self.rows_of(copy));
        found.ok_or_else(|| format!("`{name}` is loaded by a nest of loops, and not of whole pages that a table lists"))
    }

    fn pages_of(&self, copy: &Copy, span: Span) -> Option<(TileRef, OperandLoad)> {
        let NestAccess::Tile { tile, row, col } = &copy.dst else { return None };
        let NestAccess::Tensor { tensor, elem: Elem::Whole(dtype), at, swizzle: None, tables } = &copy.src else {
            return None;
        };
        let [table] = &tables[..] else { return None };
        let data = &self.kernel.tensors[table.tensor];
        if data.dtype != DType::I32 || data.dir != TensorDir::In || table.oob != Oob::Undefined || data.shape.len() > 2
        {
            return None;
        }
        if *dtype != self.kernel.tensors[*tensor].dtype || copy.fill.is_some() || !copy.covers {
            return None;
        }
        let n = |v: Value| self.defs.number(v);
        if copy.extents.len() != 3 || n(row.start) != Some(0) || n(col.start) != Some(0) {
            return None;
        }
        // The axes along a line, across the lines of a page, and from page to page.
        let axis = |is: &dyn Fn(usize) -> bool| (0..3).find(|a| is(*a));
        let page = axis(&|a| n(table.at.strides[a]) != Some(0))?;
        let along = axis(&|a| a != page && n(at.strides[a]) == Some(1))?;
        let across = 3 - page - along;
        let fixed = |of: &[Value], axes: [usize; 2]| axes.iter().all(|a| n(of[*a]) == Some(0));
        let turned = n(row.strides[along]) == Some(1);
        let (of_line, of_lines) = if turned { (row, col) } else { (col, row) };
        let lines = n(copy.extents[across])?;
        let places = n(of_line.strides[along]) == Some(1)
            && fixed(&of_line.strides, [across, page])
            && n(of_lines.strides[along]) == Some(0)
            && n(of_lines.strides[across]) == Some(1)
            && n(of_lines.strides[page]) == Some(lines)
            && fixed(&table.at.strides, [along, across])
            && n(at.strides[page]) == Some(0);
        let (length, capacity) = if turned { (tile.rows, tile.cols) } else { (tile.cols, tile.rows) };
        let (all, valid) = if turned { (tile.valid.0, tile.valid.1) } else { (tile.valid.1, tile.valid.0) };
        let whole = lines % LINES == 0
            && lines <= 256
            && n(copy.extents[page])?.checked_mul(lines) == Some(i64::from(capacity))
            && copy.extents[along] == all
            && n(all) == Some(i64::from(length));
        // No guard but the one that only valid lines pass.
        let guarded = match &copy.guards[..] {
            [] => n(valid) == Some(i64::from(capacity)),
            [guard] => guard.at == *of_lines && guard.bound == valid,
            _ => false,
        };
        let pitch = self.defs.poly(at.strides[across])?;
        let aligned = pitch.terms().len() == 1 && pitch.terms().iter().all(|(_, n)| n % LINES == 0);
        if !places || !whole || !guarded || !aligned {
            return None;
        }
        let rows = self.defs.poly(table.stride)?.divided(&pitch)?;
        let coordinates = self.coordinates(at.start, &pitch)?;
        let total = launch_number(self.kernel, &self.elements_of(*tensor)?)?;
        let pages = Pages {
            table: table.tensor,
            first: table.at.start,
            step: table.at.strides[page],
            lines: lines as u32,
            rows,
            extent: table.extent,
            valid,
            span,
        };
        let load = OperandLoad {
            operand: tile.tile,
            filled: tile.tile,
            tensor: tensor.as_u32(),
            pitch: launch_number(self.kernel, &pitch)?,
            total,
            at: coordinates,
            turned,
            lines: capacity,
            length,
            held: capacity,
            source: OperandSource::Pages(pages),
            aligned: true,
            depth: None,
            slots: 1,
            element: FACTOR,
            staged: false,
        };
        Some((*tile, load))
    }

    /// Rows by number: `a[i, k] = array[table[i], k]`, zeros where there is none.
    fn rows_of(&self, copy: &Copy) -> Option<(TileRef, OperandLoad)> {
        let (tile, tensor, rows) = table_rows(self.kernel, &self.defs, copy, Oob::Zero)?;
        let zero =
            copy.fill.is_some_and(|v| matches!(self.defs.of(v), Some(Op::Const { value, .. }) if value.bits == 0));
        if !zero || !copy.covers {
            return None;
        }
        let load = self.listed(&tile, tensor, OperandSource::Rows(rows))?;
        Some((tile, load))
    }
}

/// A nest that puts rows of a tile where a table says.
pub fn scattered(kernel: &Kernel, defs: &Definitions<'_>, copy: &Copy) -> Option<ScatteredRows> {
    let turned = Copy { dst: copy.src.clone(), src: copy.dst.clone(), ..copy.clone() };
    let (tile, tensor, rows) = table_rows(kernel, defs, &turned, Oob::Undefined)?;
    copy.fill.is_none().then_some(ScatteredRows { tile, tensor, rows })
}

/// The rows of a copy into a tile from an array: `tile[i, k]` is element k of row `table[i]`, for all valid i and k.
fn table_rows(
    kernel: &Kernel,
    defs: &Definitions<'_>,
    copy: &Copy,
    oob: Oob,
) -> Option<(TileRef, TensorId, TableRows)> {
    let NestAccess::Tile { tile, row, col } = &copy.dst else { return None };
    let NestAccess::Tensor { tensor, elem: Elem::Whole(dtype), at, swizzle: None, tables } = &copy.src else {
        return None;
    };
    let [table] = &tables[..] else { return None };
    let data = &kernel.tensors[table.tensor];
    let known = matches!(data.dtype, DType::I32 | DType::U32) && data.dir == TensorDir::In && data.shape.len() <= 2;
    let n = |v: Value| defs.number(v);
    if !known || table.oob != oob || *dtype != kernel.tensors[*tensor].dtype || copy.extents.len() != 2 {
        return None;
    }
    // The axis of rows, and the other one.
    let down = (0..2).find(|a| n(row.strides[*a]) == Some(1))?;
    let along = 1 - down;
    let is = |v: Value, number: i64| n(v) == Some(number);
    let places = [row.start, col.start].iter().all(|v| is(*v, 0))
        && is(row.strides[along], 0)
        && is(col.strides[down], 0)
        && is(col.strides[along], 1)
        && is(at.strides[along], 1)
        && is(at.strides[down], 0)
        && is(table.at.strides[along], 0);
    let whole = (copy.extents[down], copy.extents[along]) == tile.valid && copy.guards.is_empty();
    let rows = TableRows {
        table: table.tensor,
        first: table.at.start,
        step: table.at.strides[down],
        extent: table.extent,
        start: at.start,
        stride: table.stride,
        valid: tile.valid,
    };
    (places && whole).then_some((*tile, *tensor, rows))
}
