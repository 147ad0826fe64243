//! Tiles: declarations, parts, other views of their bytes, elements.

use super::meaning::{Meaning, Scalar, Tile};
use super::{Reader, Res, not_read};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Op, Value};
use crate::types::{Major, TileBuf, Type, dtype_of};
use ptoc_diagnostics::Span;
use ptoc_isa::Loc;
use ptoc_tensor::DType;

impl Reader<'_> {
    pub(super) fn tile(&self, value: &Value) -> Res<Tile> {
        match self.meaning(value)? {
            Meaning::Tile(tile) => Ok(tile.clone()),
            _ => not_read(value.span, format!("`%{}` is no tile", value.name)),
        }
    }

    pub(super) fn tile_op(&mut self, op: &Op) -> Res<()> {
        match op.row.name {
            "pto.alloc_tile" | "pto.declare_tile" => self.alloc(op),
            "pto.tassign" => self.assign(op),
            "pto.subset" => self.subset(op),
            "pto.set_validshape" => self.set_valid(op),
            "pto.treshape" | "pto.bitcast" => self.alias(op),
            _ => self.element_op(op),
        }
    }

    /// The type in the text; a mask counts elements, and not bytes.
    fn tile_type(&self, op: &Op) -> Res<TileBuf> {
        let mask = op.results.first().and_then(|r| self.facts.masks.get(&r.name));
        match op.result_types.first().map(|t| &t.ty) {
            Some(Type::TileBuf(tile)) => {
                match mask.filter(|_| matches!(dtype_of(&tile.dtype), Some(DType::I8 | DType::U8))) {
                    Some(cols) => {
                        let valid = (Some(tile.rows), Some(*cols));
                        Ok(TileBuf { dtype: Word::new_static("i1"), cols: *cols, valid, ..(**tile).clone() })
                    }
                    None => Ok((**tile).clone()),
                }
            }
            _ => not_read(op.span, format!("`{}` without a tile buffer is not read", op.row.name)),
        }
    }

    /// `tile Vec<f32, 16, 64, ..>`
    fn declaration(&self, tile: &TileBuf, valid: &[Option<String>; 2], span: Span) -> Res<String> {
        let Some(dtype) = dtype_of(&tile.dtype) else {
            return not_read(span, format!("tiles of `{}` are not read", tile.dtype));
        };
        let (rows, cols) = (tile.rows, tile.cols);
        let mut text = format!("tile {}<{dtype}, {rows}, {cols}", tile.loc);
        if tile.loc == Loc::Vec {
            if tile.slayout.is_some() {
                return not_read(span, "a Vec tile of boxes is not read");
            }
            // A column is column-major if nothing is said, any other tile row-major.
            match (tile.blayout, cols == 1) {
                (Major::Col, false) => text.push_str(", layout = DN"),
                (Major::Row, true) if rows > 1 => text.push_str(", layout = ND"),
                _ => {}
            }
        }
        if let [Some(r), Some(c)] = valid
            && (r != &rows.to_string() || c != &cols.to_string())
        {
            text.push_str(&format!(", valid = ({r}, {c})"));
        }
        if tile.pad == 1 && matches!(tile.loc, Loc::Vec | Loc::Mat) {
            text.push_str(", pad = Zero");
        }
        text.push('>');
        Ok(text)
    }

    fn alloc(&mut self, op: &Op) -> Res<()> {
        let ty = self.tile_type(op)?;
        let name = op.results.first().map(|r| r.name.clone()).unwrap_or_default();
        if self.facts.scratch.contains_key(&name) && self.facts.scratch.get(&name) == self.facts.uses.get(&name) {
            // Storage to work in is the compiler's business.
            return Ok(());
        }
        let addr = match op.operand("addr") {
            Some(addr) => Some(self.scalar(&addr.value)?),
            None => None,
        };
        let mut valid = [ty.valid.0.map(|n| n.to_string()), ty.valid.1.map(|n| n.to_string())];
        for (place, slot) in valid.iter_mut().zip(["valid_row", "valid_col"]) {
            if let Some(operand) = op.operand(slot) {
                *place = Some(self.scalar(&operand.value)?.text);
            }
        }
        let name = self.give(op.results.first().map_or("tile", |r| &r.name));
        let constant = addr.as_ref().and_then(|a| a.constant);
        let mut text = name.to_string();
        if let Some(at) = constant {
            // It stands for bytes, and begins no life: declared once, above all loops.
            let known = ty.valid.0.is_some() && ty.valid.1.is_some();
            let declared = self.declaration(&ty, if known { &valid } else { &[None, None] }, op.span)?;
            self.top.line(&format!("let {name} = {declared} at {at:#x};"), op.span);
            if !known {
                text = valid_text(&name, &valid, &ty);
            }
        } else {
            let declared = self.declaration(&ty, &valid, op.span)?;
            self.out.line(&format!("let {name} = {declared};"), op.span);
            if let Some(addr) = &addr {
                self.out.line(&format!("TASSIGN({name}, index({}));", addr.text), op.span);
            }
        }
        self.result(op, Meaning::Tile(Tile { text, name, ty, addr: constant }));
        Ok(())
    }

    /// A tile that is bound to an address of the launch.
    fn assign(&mut self, op: &Op) -> Res<()> {
        let ty = self.tile_type(op)?;
        let addr = self.scalar(&self.operand(op, "addr")?.value)?;
        let name = self.give(op.results.first().map_or("tile", |r| &r.name));
        let valid = [ty.valid.0.map(|n| n.to_string()), ty.valid.1.map(|n| n.to_string())];
        let declared = self.declaration(&ty, &valid, op.span)?;
        match addr.constant {
            Some(at) => self.top.line(&format!("let {name} = {declared} at {at:#x};"), op.span),
            None => {
                self.out.line(&format!("let {name} = {declared};"), op.span);
                self.out.line(&format!("TASSIGN({name}, index({}));", addr.text), op.span);
            }
        }
        let text = name.to_string();
        self.result(op, Meaning::Tile(Tile { text, name, ty, addr: addr.constant }));
        Ok(())
    }

    fn subset(&mut self, op: &Op) -> Res<()> {
        let tile = self.tile(&self.operand(op, "source")?.value)?;
        let offsets = self.scalars(op, "offsets")?;
        let Some(AttrValue::Array(sizes)) = op.attr("sizes").and_then(|a| a.value.clone()) else {
            return not_read(op.span, "a part without sizes is not read");
        };
        let sizes: Vec<i128> = sizes.iter().filter_map(AttrValue::int).collect();
        let ([row, col], [rows, cols]) = (&offsets[..], &sizes[..]) else {
            return not_read(op.span, "a part of other than two modes is not read");
        };
        let mode = |at: &Scalar, n: i128, all: i64| match at.constant {
            Some(0) if n == i128::from(all) => "_".to_string(),
            Some(k) => format!("{k} .. {}", k.saturating_add(n)),
            None => format!("{0} .. {0} + {n}", at.text),
        };
        let text = format!("{}[{}, {}]", tile.text, mode(row, *rows, tile.ty.rows), mode(col, *cols, tile.ty.cols));
        let (Ok(rows), Ok(cols)) = (i64::try_from(*rows), i64::try_from(*cols)) else {
            return not_read(op.span, "a part of this size is not read");
        };
        let ty = TileBuf { rows, cols, valid: (Some(rows), Some(cols)), ..tile.ty };
        self.result(op, Meaning::Tile(Tile { text, ty, name: tile.name, addr: None }));
        Ok(())
    }

    /// From here on another part of the tile is valid, in this block and what is in it.
    fn set_valid(&mut self, op: &Op) -> Res<()> {
        let operand = self.operand(op, "source")?;
        let tile = self.tile(&operand.value)?;
        let here = self.scopes.last().is_some_and(|s| s.contains_key(&operand.value.name));
        if !here {
            return not_read(op.span, "`pto.set_validshape` of a tile of an outer block is not read");
        }
        let valid = [
            Some(self.scalar(&self.operand(op, "valid_row")?.value)?.text),
            Some(self.scalar(&self.operand(op, "valid_col")?.value)?.text),
        ];
        let text = valid_text(&tile.name, &valid, &tile.ty);
        self.define(&operand.value.name.clone(), vec![Meaning::Tile(Tile { text, ..tile })]);
        Ok(())
    }

    /// The same bytes as another tile.
    fn alias(&mut self, op: &Op) -> Res<()> {
        let ty = self.tile_type(op)?;
        let tile = self.tile(&self.operand(op, "src")?.value)?;
        let Some(at) = tile.addr else {
            let message = format!("`{}` of a tile without a constant address is not read", op.row.name);
            return not_read(op.span, message);
        };
        let name = self.give(op.results.first().map_or("tile", |r| &r.name));
        let valid = [ty.valid.0.map(|n| n.to_string()), ty.valid.1.map(|n| n.to_string())];
        let declared = self.declaration(&ty, &valid, op.span)?;
        self.top.line(&format!("let {name} = {declared} at {at:#x};"), op.span);
        let text = name.to_string();
        self.result(op, Meaning::Tile(Tile { text, name, ty, addr: Some(at) }));
        Ok(())
    }

    /// One element of a tile, by its number in the tile's rows.
    fn element_op(&mut self, op: &Op) -> Res<()> {
        let set = op.row.name == "pto.tsetval";
        let tile = self.tile(&self.operand(op, if set { "dst" } else { "src" })?.value)?;
        let at = self.scalar(&self.operand(op, "offset")?.value)?;
        let width = i128::from(if tile.ty.blayout == Major::Col { tile.ty.rows } else { tile.ty.cols });
        let (major, minor) = match at.constant {
            Some(n) if width > 0 => ((n / width).to_string(), (n % width).to_string()),
            _ => (format!("{} / {width}", at.text), format!("{} % {width}", at.text)),
        };
        let place = match tile.ty.blayout {
            Major::Row => format!("{}[{major}, {minor}]", tile.text),
            Major::Col => format!("{}[{minor}, {major}]", tile.text),
        };
        self.access(op, &place, set.then_some("val"))
    }
}

fn valid_text(name: &str, valid: &[Option<String>; 2], ty: &TileBuf) -> String {
    let [rows, cols] = valid;
    let (rows, cols) = (rows.clone().unwrap_or(ty.rows.to_string()), cols.clone().unwrap_or(ty.cols.to_string()));
    format!("{name}.valid({rows}, {cols})")
}
