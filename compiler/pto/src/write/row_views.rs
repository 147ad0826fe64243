//! Row-major views of columns, behind what defines them, for what computes with columns element by element
//! ([`crate::row_views`]).

use super::Writer;
use super::dead::is_number;
use crate::lexer::Word;
use crate::row_views::{columns_of, row_view};
use crate::tree::Op;
use crate::types::{Extent, TileBuf, Type, Typed};
use rustc_hash::FxHashMap;

/// A column and its view.
struct View {
    name: Word,
    column: TileBuf,
    ty: TileBuf,
}

#[derive(Default)]
struct Views {
    /// By the column's name.
    of: FxHashMap<Word, View>,
    /// What is valid of tiles behind their definitions: rows and columns.
    valid: FxHashMap<Word, [Word; 2]>,
    /// Where tiles are allocated.
    addresses: FxHashMap<Word, Word>,
}

impl Writer<'_> {
    pub(super) fn row_views(&mut self) {
        let ops = std::mem::take(&mut self.regions[0]);
        let mut views = Views::default();
        self.wanted(&ops, &mut views);
        self.regions[0] = if views.of.is_empty() { ops } else { self.with_views(ops, &mut views) };
    }

    /// A view of each column that something computes with element by element.
    fn wanted(&mut self, ops: &[Op], views: &mut Views) {
        for op in ops {
            for operand in columns_of(op).unwrap_or_default() {
                let Some(Type::TileBuf(column)) = operand.ty.as_ref().map(|t| &t.ty) else { continue };
                let of = &operand.value.name;
                let Some(ty) = row_view(column).filter(|_| !views.of.contains_key(of)) else { continue };
                let name = match is_number(of) {
                    true => self.names.number(),
                    false => self.names.give(&format!("{of}_row")),
                };
                views.of.insert(of.clone(), View { name, column: (**column).clone(), ty });
            }
            op.regions.iter().for_each(|r| self.wanted(&r.ops, views));
        }
    }

    fn with_views(&mut self, ops: Vec<Op>, views: &mut Views) -> Vec<Op> {
        self.regions.push(Vec::new());
        for mut op in ops {
            if columns_of(&op).is_some() {
                for operand in &mut op.operands {
                    let Some(view) = views.of.get(&operand.value.name) else { continue };
                    let ty = Type::TileBuf(Box::new(view.ty.clone()));
                    operand.ty = operand.ty.take().map(|t| Typed { ty, ..t });
                    operand.value.name = view.name.clone();
                }
            }
            for region in &mut op.regions {
                region.ops = self.with_views(std::mem::take(&mut region.ops), views);
            }
            self.push(op.clone());
            let before = self.regions.last().map_or(0, Vec::len);
            self.at(op.span, |w| w.behind(&op, views));
            // It stems from where the column does.
            let made = self.regions.last_mut().into_iter().flat_map(|ops| &mut ops[before..]);
            made.for_each(|new| new.source.clone_from(&op.source));
        }
        self.regions.pop().unwrap_or_default()
    }

    /// What stands behind an operation that defines a column, or says what is valid of it.
    fn behind(&mut self, op: &Op, views: &mut Views) {
        let typed = |slot| op.operand(slot).map(|o| o.value.name.clone());
        if op.row.name == "pto.set_validshape" {
            let (Some(column), Some(rows), Some(cols)) = (typed("source"), typed("valid_row"), typed("valid_col"))
            else {
                return;
            };
            if let Some(view) = views.of.get(&column) {
                self.set_view(view, [rows, cols]);
            }
            return;
        }
        let Some(result) = op.results.first().map(|r| r.name.clone()) else { return };
        if op.row.name == "pto.alloc_tile" {
            views.addresses.extend(typed("addr").map(|addr| (result.clone(), addr)));
        }
        let view = views.of.get(&result);
        let column = match op.result_types.first().map(|t| &t.ty) {
            Some(Type::TileBuf(ty)) => (**ty).clone(),
            _ => match view {
                Some(view) => view.column.clone(),
                None => return,
            },
        };
        let sizes = op.sizes();
        if row_view(&column).is_none_or(|row| row.valid != (None, None)) {
            views.of.get(&result).into_iter().for_each(|view| self.row_view(&result, view));
            return;
        }
        let mut bound = |n: usize, slot: &'static str, extent: Extent| match typed(slot) {
            Some(name) => Some(name),
            None => extent.or_else(|| sizes.get(n).copied().flatten()).map(|n| self.index(n)),
        };
        let own = bound(0, "valid_row", column.valid.0).zip(bound(1, "valid_col", column.valid.1));
        // A tile that is bound to another address is valid as the first is.
        let first = || typed("tile").and_then(|t| views.valid.get(&t).cloned());
        let valid = own.map(|(rows, cols)| [rows, cols]).or_else(first);
        let handle = typed("tile").and_then(|t| views.addresses.get(&t).cloned());
        match (view, handle.zip(typed("addr")), &valid) {
            (Some(view), Some((first, addr)), Some(valid)) if op.row.name == "pto.tassign" => {
                self.bound_view(view, first, addr, valid);
            }
            (Some(view), ..) => {
                self.row_view(&result, view);
                valid.clone().into_iter().for_each(|valid| self.set_view(view, valid));
            }
            _ => {}
        }
        views.valid.extend(valid.map(|valid| (result, valid)));
    }

    fn row_view(&mut self, column: &Word, view: &View) {
        let from = Type::TileBuf(Box::new(view.column.clone()));
        let op = self.op("pto.treshape", vec![("src", column.clone(), Some(from))]);
        self.define(op, view.name.clone(), Some(Type::TileBuf(Box::new(view.ty.clone()))));
    }

    /// The view of a column that `pto.tassign` binds, of which PTOAS takes no `set_validshape`: a row of its own, bound
    /// to the same address.
    fn bound_view(&mut self, view: &View, first: Word, addr: Word, [rows, cols]: &[Word; 2]) {
        let ty = Type::TileBuf(Box::new(view.ty.clone()));
        let given = vec![("addr", first, None), ("valid_row", cols.clone(), None), ("valid_col", rows.clone(), None)];
        let (op, number) = (self.op("pto.alloc_tile", given), self.names.number());
        let row = self.define(op, number, Some(ty.clone()));
        let op = self.op("pto.tassign", vec![("tile", row, Some(ty.clone())), ("addr", addr, None)]);
        self.define(op, view.name.clone(), Some(ty));
    }

    fn set_view(&mut self, view: &View, [rows, cols]: [Word; 2]) {
        let ty = Some(Type::TileBuf(Box::new(view.ty.clone())));
        let given = vec![("source", view.name.clone(), ty), ("valid_row", cols, None), ("valid_col", rows, None)];
        let op = self.op("pto.set_validshape", given);
        self.push(op);
    }
}
