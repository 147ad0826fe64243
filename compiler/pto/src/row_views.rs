//! Row-major views of column-major tiles. PTOAS and pto-isa's headers compute element by element in row-major tiles
//! alone. So a column, as a reduction along rows gives it, is read as a row of the same bytes: `pto.treshape`. The
//! writer adds the views ([`crate::write`]), and [`remove`] takes them out of a text that is read: what is computed
//! element by element of rows is computed of the columns.

use crate::lexer::Word;
use crate::tree::{Function, Op, Operand, Region, Value};
use crate::types::{Extent, Major, TileBuf, Type};
use ptoc_isa::{Loc, Sem};
use rustc_hash::{FxHashMap, FxHashSet};

/// The type of a column-major tile's row-major view: rows for columns. `None` of any other tile. PTOAS takes what is
/// valid of a view from the tile as it stands, and not with rows for columns: where that is not constant, all of it is
/// `?`, and `pto.set_validshape` says it.
pub(crate) fn row_view(of: &TileBuf) -> Option<TileBuf> {
    if of.loc != Loc::Vec || of.blayout != Major::Col || of.slayout.is_some() {
        return None;
    }
    let valid = match of.valid {
        (Some(rows), Some(cols)) => (Some(cols), Some(rows)),
        _ => (None, None),
    };
    Some(TileBuf { rows: of.cols, cols: of.rows, valid, blayout: Major::Row, ..of.clone() })
}

/// Whether a type is that of a tile's row-major view, in either spelling.
fn is_row_view(of: &TileBuf, view: &TileBuf) -> bool {
    row_view(of).is_some_and(|row| row == TileBuf { short: row.short, ..view.clone() })
}

/// The tiles of an operation that computes element by element, if all of them have the same rows and columns and pass
/// `fits`.
fn tiles_of<'o>(op: &'o Op, fits: &dyn Fn(&Operand, &TileBuf) -> bool) -> Option<Vec<&'o Operand>> {
    let by_element = |sem: Sem| {
        matches!(sem, Sem::Map(_) | Sem::Binary(_) | Sem::BinaryScalar(_) | Sem::Unary(_) | Sem::Expand | Sem::Convert)
    };
    if op.values.is_some() || !op.row.instr.is_some_and(|i| by_element(i.get().sem)) {
        return None;
    }
    let mut shape = None;
    let mut tiles = Vec::new();
    for operand in &op.operands {
        let Some(Type::TileBuf(tile)) = operand.ty.as_ref().map(|t| &t.ty) else { continue };
        if *shape.get_or_insert((tile.rows, tile.cols)) != (tile.rows, tile.cols) || !fits(operand, tile) {
            return None;
        }
        tiles.push(operand);
    }
    Some(tiles).filter(|t| !t.is_empty())
}

/// The columns that an operation computes with element by element, if its tiles are columns all.
pub(crate) fn columns_of(op: &Op) -> Option<Vec<&Operand>> {
    tiles_of(op, &|_, tile| row_view(tile).is_some())
}

/// What is valid of a tile in one direction.
#[derive(Clone, PartialEq)]
enum Bound {
    Number(i64),
    Value(Word),
}

/// Views of columns in a function, by their names.
#[derive(Default)]
struct Views {
    /// The tile that a view is of, with its type.
    columns: FxHashMap<Word, (Operand, TileBuf)>,
    constants: FxHashMap<Word, i64>,
    /// What is valid of tiles behind `alloc_tile`.
    allocated: FxHashMap<Word, [Bound; 2]>,
    /// The views that rows become which `tassign` binds to the address of a column, by the rows.
    rows: FxHashMap<Word, Word>,
}

/// The function without views of columns that only operations element by element ask for; `None` if it has none.
pub(crate) fn remove(f: &Function) -> Option<Function> {
    let body = f.body.as_ref()?;
    let mut views = Views::default();
    views.find(body);
    views.keep(|views, set| views.bounds_agree(body, set));
    views.keep(|views, set| views.uses_agree(body, set));
    if views.columns.is_empty() {
        return None;
    }
    let mut made = f.clone();
    made.body.iter_mut().for_each(|body| views.take_out(body));
    Some(made)
}

impl Views {
    fn find(&mut self, region: &Region) {
        for (at, op) in region.ops.iter().enumerate() {
            self.bound_row(&region.ops[at..]);
            if let ("arith.constant", [result]) = (op.row.name, &op.results[..])
                && let Some(n) = op.attr("value").and_then(|a| a.value.as_ref()?.int())
            {
                self.constants.extend(i64::try_from(n).ok().map(|n| (result.name.clone(), n)));
            }
            if let ("pto.treshape", [src], [result], [ty]) =
                (op.row.name, &op.operands[..], &op.results[..], &op.result_types[..])
                && let (Some(Type::TileBuf(of)), Type::TileBuf(view)) = (src.ty.as_ref().map(|t| &t.ty), &ty.ty)
                && is_row_view(of, view)
            {
                self.columns.insert(result.name.clone(), (src.clone(), (**of).clone()));
            }
            if let ([result], [ty]) = (&op.results[..], &op.result_types[..])
                && let Type::TileBuf(tile) = &ty.ty
            {
                let valid = self.defined(op, tile);
                self.allocated.extend(valid.map(|valid| (result.name.clone(), valid)));
            }
            op.regions.iter().for_each(|r| self.find(r));
        }
    }

    /// A row that is allocated behind a column's `tassign`, and bound to the same address.
    fn bound_row(&mut self, ops: &[Op]) {
        let [column, row, bound, ..] = ops else { return };
        if [column, row, bound].map(|op| op.row.name) != ["pto.tassign", "pto.alloc_tile", "pto.tassign"] {
            return;
        }
        let name = |op: &Op, slot: &str| op.operand(slot).map(|o| o.value.clone());
        let at = |op: &Op| name(op, "addr").map(|v| (v.name, v.index));
        let ([of], [row], [view]) = (&column.results[..], &row.results[..], &bound.results[..]) else { return };
        let ([of_ty], [view_ty]) = (&column.result_types[..], &bound.result_types[..]) else { return };
        let (Type::TileBuf(column_ty), Type::TileBuf(ty)) = (&of_ty.ty, &view_ty.ty) else { return };
        if is_row_view(column_ty, ty)
            && at(column) == at(bound)
            && name(bound, "tile").is_some_and(|tile| tile.name == row.name)
        {
            let value = Value { name: of.name.clone(), index: None, span: bound.span };
            let column = Operand { slot: "src", value, ty: Some(of_ty.clone()) };
            self.columns.insert(view.name.clone(), (column, (**column_ty).clone()));
            self.rows.insert(row.name.clone(), view.name.clone());
        }
    }

    /// Drops views until `wrong` finds none.
    fn keep(&mut self, wrong: impl Fn(&Views, &mut FxHashSet<Word>)) {
        loop {
            let mut set = FxHashSet::default();
            wrong(self, &mut set);
            let before = self.columns.len();
            self.columns.retain(|name, _| !set.contains(name));
            if self.columns.len() == before {
                return;
            }
        }
    }

    fn bound(&self, name: &Word) -> Bound {
        self.constants.get(name).map_or_else(|| Bound::Value(name.clone()), |n| Bound::Number(*n))
    }

    /// What `set_validshape` says, rows first.
    fn said(&self, op: &Op) -> Option<[Bound; 2]> {
        let of = |slot| op.operand(slot).map(|o| self.bound(&o.value.name));
        Some([of("valid_row")?, of("valid_col")?])
    }

    /// What is valid of a tile behind the operation that defines it. One that is bound to another address is valid as
    /// the first is.
    fn defined(&self, op: &Op, ty: &TileBuf) -> Option<[Bound; 2]> {
        if op.row.name == "pto.tassign" {
            return self.allocated.get(&op.operand("tile")?.value.name).cloned();
        }
        let sizes = op.sizes();
        let size = |n: usize| sizes.get(n).copied().flatten();
        let of = |n: usize, slot: &str, extent: Extent| match (op.operand(slot), extent.or_else(|| size(n))) {
            (Some(operand), _) => Some(self.bound(&operand.value.name)),
            (None, extent) => extent.map(Bound::Number),
        };
        Some([of(0, "valid_row", ty.valid.0)?, of(1, "valid_col", ty.valid.1)?])
    }

    /// Finds views of which another part is valid than of their columns. Where that changes, both change: the view's
    /// `set_validshape` stands behind that of the column, or behind the view, and that behind the column's definition.
    fn bounds_agree(&self, region: &Region, wrong: &mut FxHashSet<Word>) {
        let source = |op: &Op| op.operand("source").map(|o| o.value.name.clone()).filter(|_| is_set(op));
        for (at, op) in region.ops.iter().enumerate() {
            op.regions.iter().for_each(|r| self.bounds_agree(r, wrong));
            let before = |n: usize| at.checked_sub(n).map(|at| &region.ops[at]);
            let next = region.ops.get(at + 1);
            // A view that is made: what is valid of the column is known where it is defined.
            if let Some(result) = op.results.first()
                && let Some((column, ty)) = self.columns.get(&result.name)
                && (ty.valid.0.is_none() || ty.valid.1.is_none())
            {
                let bound = |row: &&Operand| self.rows.get(&row.value.name) == Some(&result.name);
                let row = op.operand("tile").filter(bound).map(|row| &row.value.name);
                let define = |op: &&Op| op.results.first().is_some_and(|r| r.name == column.value.name);
                let behind = if row.is_some() { 2 } else { 1 };
                let known = before(behind).filter(define).and_then(|op| self.defined(op, ty));
                let set = match row {
                    Some(row) => self.allocated.get(row).cloned(),
                    None => next.filter(|op| source(op).as_ref() == Some(&result.name)).and_then(|op| self.said(op)),
                };
                if !agree(known, set) {
                    wrong.insert(result.name.clone());
                }
            }
            let Some(tile) = source(op) else { continue };
            if self.columns.contains_key(&tile) {
                let made = before(1).is_some_and(|op| op.results.first().is_some_and(|r| r.name == tile));
                let column = before(1).and_then(source);
                let moved = column.is_some_and(|c| self.columns[&tile].0.value.name == c);
                if !made && !moved {
                    wrong.insert(tile);
                }
                continue;
            }
            // Views of a column that another part becomes valid of.
            for (view, _) in self.columns.iter().filter(|(_, (column, _))| column.value.name == tile) {
                let set = next.filter(|op| source(op).as_ref() == Some(view)).and_then(|op| self.said(op));
                if !agree(self.said(op), set) {
                    wrong.insert(view.clone());
                }
            }
        }
    }

    /// Finds views that something else asks for.
    fn uses_agree(&self, region: &Region, wrong: &mut FxHashSet<Word>) {
        for op in &region.ops {
            op.regions.iter().for_each(|r| self.uses_agree(r, wrong));
            // A row that is bound to the address of a column is the view alone.
            let of_rows = op.operands.iter().filter_map(|o| self.rows.get(&o.value.name));
            wrong.extend(of_rows.filter(|view| op.results.first().is_none_or(|r| r.name != **view)).cloned());
            let rows = tiles_of(op, &|operand, _| self.columns.contains_key(&operand.value.name));
            if rows.is_some() || is_set(op) {
                continue;
            }
            let used = op.operands.iter().map(|o| &o.value.name);
            wrong.extend(used.filter(|name| self.columns.contains_key(*name)).cloned());
        }
    }

    fn take_out(&self, region: &mut Region) {
        region.ops.retain(|op| {
            let view = op.results.first().and_then(|r| self.rows.get(&r.name));
            let row = view.is_some_and(|view| self.columns.contains_key(view));
            let made = op.results.first().is_some_and(|r| self.columns.contains_key(&r.name));
            let set = is_set(op) && op.operand("source").is_some_and(|o| self.columns.contains_key(&o.value.name));
            !made && !set && !row
        });
        for op in &mut region.ops {
            for operand in &mut op.operands {
                if let Some((column, ty)) = self.columns.get(&operand.value.name) {
                    operand.value.name = column.value.name.clone();
                    operand.value.index = column.value.index;
                    operand.ty.iter_mut().for_each(|t| t.ty = Type::TileBuf(Box::new(ty.clone())));
                }
            }
            op.regions.iter_mut().for_each(|r| self.take_out(r));
        }
    }
}

fn is_set(op: &Op) -> bool {
    op.row.name == "pto.set_validshape"
}

/// Whether rows of the one are columns of the other.
fn agree(column: Option<[Bound; 2]>, view: Option<[Bound; 2]>) -> bool {
    column.zip(view).is_some_and(|([rows, cols], [view_rows, view_cols])| rows == view_cols && cols == view_rows)
}
