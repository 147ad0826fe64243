//! Tiles: declarations, parts, other views of their bytes, elements.

use super::arrays::Array;
use super::meaning::{Meaning, Scalar, Tile};
use super::params::rows_of;
use super::{Reader, Res, not_read};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Op, Value};
use crate::types::{LOCS, Major, TileBuf, Type, declared, dtype_of};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::Loc;
use ptoc_tensor::DType;

impl Reader<'_> {
    pub(super) fn tile(&self, value: &Value) -> Res<Tile> {
        match self.meaning(value)? {
            Meaning::Tile(tile) if tile.unknown => {
                let message =
                    format!("what is valid of `%{}` here is not known: a block in front may set it", value.name);
                not_read(value.span, message)
            }
            Meaning::Tile(tile) => Ok(tile.clone()),
            _ => not_read(value.span, format!("`%{}` is no tile", value.name)),
        }
    }

    pub(super) fn tile_op(&mut self, op: &Op) -> Res<()> {
        match op.row.name {
            "pto.alloc_tile" | "memref.alloc" | "pto.declare_tile" => self.alloc(op),
            "pto.tassign" => self.assign(op),
            "pto.subset" | "pto.subview" => self.subset(op),
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
            Some(other) => {
                let not_here = || not_read(op.span, format!("`{}` of a `{other}` is not read", op.row.name));
                let Some((extents, element, space)) = other.memref() else { return not_here() };
                let loc = LOCS.iter().find(|(word, _)| *word == space).map(|(_, loc)| *loc);
                match loc.zip(rows_of(&extents)) {
                    Some((loc, (rows, cols))) => Ok(TileBuf::plain(loc, element, rows, cols)),
                    None => not_here(),
                }
            }
            None => not_read(op.span, format!("`{}` without a tile buffer is not read", op.row.name)),
        }
    }

    /// `tile Vec<f32, 16, 64, ..>`
    pub(super) fn declaration(&self, tile: &TileBuf, valid: &[Option<String>; 2], span: Span) -> Res<String> {
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
        let result = op.results.first().map(|r| r.name.clone()).unwrap_or_default();
        let addr = match op.operand("addr") {
            Some(addr) => Some(self.scalar(&addr.value)?),
            None => None,
        };
        let constant = addr.as_ref().and_then(|a| a.constant);
        let works = self.facts.scratch.get(&result).is_some_and(|n| self.facts.uses.get(&result) == Some(n));
        if works && constant.is_none() {
            // Storage to work in is the compiler's business.
            return Ok(());
        }
        let mut valid = [ty.valid.0.map(|n| n.to_string()), ty.valid.1.map(|n| n.to_string())];
        let mut known = [ty.valid.0, ty.valid.1];
        for (place, (known, slot)) in valid.iter_mut().zip(known.iter_mut().zip(["valid_row", "valid_col"])) {
            if let Some(operand) = op.operand(slot) {
                let number = self.scalar(&operand.value)?;
                *known = number.constant.and_then(|n| i64::try_from(n).ok());
                *place = Some(number.text);
            }
        }
        let (rows, cols) = declared(&ty, known);
        let shown = TileBuf { rows, cols, ..ty.clone() };
        let (name, text);
        if self.facts.arrays.handles.contains(&result) {
            // It stands for the element that it is bound to; what is valid of it is said here.
            let is_said = ty.valid.0.is_some() && ty.valid.1.is_some();
            name = Word::default();
            text = if is_said { String::new() } else { valid_text("", &valid, &ty) };
        } else if let Some(at) = constant {
            let is_said = ty.valid.0.is_some() && ty.valid.1.is_some();
            name = self.placed_tile(op, &shown, if is_said { &valid } else { &[None, None] }, at)?;
            text = if is_said { name.to_string() } else { valid_text(&name, &valid, &ty) };
        } else {
            name = self.give(op.results.first().map_or("tile", |r| &r.name));
            text = name.to_string();
            let declared = self.declaration(&shown, &valid, op.span)?;
            self.out.line(&format!("let {name} = {declared};"), op.span);
            if let Some(addr) = &addr {
                self.out.line(&format!("TASSIGN({name}, index({}));", addr.text), op.span);
            } else if self.facts.scattered.contains(&result) && !self.facts.flags && ty.loc == Loc::Vec {
                // What pto-isa's TSCATTER does on the devices before it scatters.
                self.out.line(&format!("TEXPANDS({name}, {}(0));", dtype_of(&ty.dtype).unwrap_or(DType::F32)), op.span);
            }
        }
        let ty = TileBuf { valid: (known[0], known[1]), ..ty };
        self.result(op, Meaning::Tile(Tile { text, name, ty, addr: constant, unknown: false }));
        Ok(())
    }

    /// A tile at a constant address. It stands for bytes, and begins no life: it is declared once, above all loops, and
    /// tiles of one type at one address are one tile.
    pub(super) fn placed_tile(&mut self, op: &Op, ty: &TileBuf, valid: &[Option<String>; 2], at: i128) -> Res<Word> {
        if at < 0 {
            let span = op.operand("addr").map_or(op.span, |o| o.value.span);
            return Err(Box::new(Diagnostic::error(codes::PTO_TYPE, span, format!("an address is not {at}"))));
        }
        let declared = self.declaration(ty, valid, op.span)?;
        let key = (at, declared);
        let is_of = |a: &Array| Some(&a.ty) == op.result_types.first().map(|t| &t.ty) && a.addresses().any(|n| n == at);
        let array = self.facts.arrays.arrays.iter().position(is_of);
        let stem = op.results.first().map_or("tile", |r| &r.name);
        if let Some(n) = array.filter(|n| !self.arrays.contains_key(n)) {
            let name = self.give(stem);
            let array = self.facts.arrays.arrays[n].clone();
            let addresses: Vec<String> = array.addresses().map(|at| format!("{at:#x}")).collect();
            let declared = format!("let {name} = {}[{}] at [{}];", key.1, array.count, addresses.join(", "));
            self.top.line(&declared, op.span);
            for (n, at) in array.addresses().enumerate() {
                self.placed.insert((at, key.1.clone()), Word::new(format!("{name}[{n}]")));
            }
            self.arrays.insert(n, name);
        }
        if let Some(name) = self.placed.get(&key) {
            return Ok(name.clone());
        }
        let name = self.give(stem);
        self.top.line(&format!("let {name} = {} at {at:#x};", key.1), op.span);
        self.placed.insert(key, name.clone());
        Ok(name)
    }

    /// The element of an array that a tile is bound to.
    fn array_element(&self, op: &Op) -> Res<Option<Word>> {
        let bound = op.results.first().and_then(|r| self.facts.arrays.bound.get(&r.name));
        let Some((array, number)) = bound.and_then(|(n, number)| Some((self.arrays.get(n)?, number))) else {
            return Ok(None);
        };
        let number = self.scalar(&Value { name: number.clone(), index: None, span: op.span })?;
        let is_index = number.ty == Type::Index;
        Ok(Some(Word::new(if is_index {
            format!("{array}[{}]", number.text)
        } else {
            format!("{array}[index({})]", number.text)
        })))
    }

    /// A tile that is bound to an address of the launch.
    fn assign(&mut self, op: &Op) -> Res<()> {
        if op.results.is_empty() {
            return self.rebind(op);
        }
        let ty = self.tile_type(op)?;
        let addr = self.scalar(&self.operand(op, "addr")?.value)?;
        let valid = [ty.valid.0.map(|n| n.to_string()), ty.valid.1.map(|n| n.to_string())];
        let name = match addr.constant {
            Some(at) => self.placed_tile(op, &ty, &valid, at)?,
            None if let Some(element) = self.array_element(op)? => element,
            None => {
                let declared = self.declaration(&ty, &valid, op.span)?;
                let name = self.give(op.results.first().map_or("tile", |r| &r.name));
                self.out.line(&format!("let {name} = {declared};"), op.span);
                self.out.line(&format!("TASSIGN({name}, index({}));", addr.text), op.span);
                name
            }
        };
        // As much is valid of it as of the tile that is bound.
        let (mut text, mut ty) = (name.to_string(), ty);
        let bound = self.tile(&self.operand(op, "tile")?.value)?;
        if let Some(valid) = bound.text.strip_prefix(bound.name.as_str()).filter(|v| v.starts_with(".valid(")) {
            text.push_str(valid);
            ty.valid = bound.ty.valid;
        }
        self.result(op, Meaning::Tile(Tile { text, name, ty, addr: addr.constant, unknown: false }));
        Ok(())
    }

    /// The tile itself is bound to an address.
    fn rebind(&mut self, op: &Op) -> Res<()> {
        let operand = self.operand(op, "tile")?;
        if let Meaning::View(_) | Meaning::Part(_) = self.meaning(&operand.value)? {
            let name = &operand.value.name;
            let d = Diagnostic::error(
                codes::PTO_NOT_READ,
                op.span,
                format!("`%{name}` is bound to another pointer in a block that does not make it, and is not read"),
            );
            let note = "whether it is another array behind the block, and in which iterations, only the launch knows";
            let help = format!(
                "make the view in this block, or give the one that is bound a name: `%r = pto.tassign %{name}, ..`"
            );
            return Err(Box::new(d.with_note(note).with_help(help)));
        }
        let (tile, addr) = (self.tile(&operand.value)?, self.scalar(&self.operand(op, "addr")?.value)?);
        if tile.addr.is_some() || tile.text != tile.name.as_str() {
            let message = format!("`%{}` has an address, or is a part: another one is not read", operand.value.name);
            return not_read(operand.value.span, message);
        }
        let at = match addr.constant {
            Some(at) if at < 0 => {
                let span = self.operand(op, "addr")?.value.span;
                return Err(Box::new(Diagnostic::error(codes::PTO_TYPE, span, format!("an address is not {at}"))));
            }
            Some(at) => format!("{at:#x}"),
            None => format!("index({})", addr.text),
        };
        self.out.line(&format!("TASSIGN({}, {at});", tile.name), op.span);
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
        // Of a part that is not valid as a whole only that is used.
        let mut valid = [super::arith::number(*rows), super::arith::number(*cols)];
        for (n, slot) in valid.iter_mut().zip(["valid_row", "valid_col"]) {
            if let Some(operand) = op.operand(slot) {
                *n = self.scalar(&operand.value)?;
            }
        }
        let texts = [self.settled(row, op.span), self.settled(col, op.span)];
        let mode = |at: &Scalar, text: &str, n: &Scalar, all: i64| match (at.constant, n.constant) {
            (Some(0), Some(n)) if n == i128::from(all) => "_".to_string(),
            (Some(k), Some(n)) => format!("{k} .. {}", k.saturating_add(n)),
            _ => format!("{text} .. {text} + {}", n.text),
        };
        let text = format!(
            "{}[{}, {}]",
            tile.text,
            mode(row, &texts[0], &valid[0], tile.ty.rows),
            mode(col, &texts[1], &valid[1], tile.ty.cols)
        );
        let [valid_rows, valid_cols] = valid.map(|n| n.constant.and_then(|n| i64::try_from(n).ok()));
        let (Ok(rows), Ok(cols)) = (i64::try_from(*rows), i64::try_from(*cols)) else {
            return not_read(op.span, "a part of this size is not read");
        };
        let ty = TileBuf { rows, cols, valid: (valid_rows, valid_cols), ..tile.ty };
        self.result(op, Meaning::Tile(Tile { text, ty, name: tile.name, addr: None, unknown: false }));
        Ok(())
    }

    /// The same bytes as another tile.
    fn alias(&mut self, op: &Op) -> Res<()> {
        let ty = self.tile_type(op)?;
        let tile = self.tile(&self.operand(op, "src")?.value)?;
        let valid = [ty.valid.0.map(|n| n.to_string()), ty.valid.1.map(|n| n.to_string())];
        let Some(at) = tile.addr else { return self.copied_alias(op, &tile, ty, &valid) };
        if op.row.name == "pto.treshape" && self.is_copy(&ty, &tile) && self.is_moved(op) {
            // A move of what is in these bytes then.
            return self.moved_alias(op, tile, ty, Some(at));
        }
        let name = self.placed_tile(op, &ty, &valid, at)?;
        let text = name.to_string();
        self.result(op, Meaning::Tile(Tile { text, name, ty, addr: Some(at), unknown: false }));
        Ok(())
    }

    /// Whether a tile has all elements of another one in their order.
    fn is_copy(&self, ty: &TileBuf, tile: &Tile) -> bool {
        let linear = |t: &TileBuf| t.blayout == Major::Row || t.cols == 1;
        let full = |t: &TileBuf| t.loc == Loc::Vec && t.valid == (Some(t.rows), Some(t.cols)) && linear(t);
        dtype_of(&ty.dtype) == dtype_of(&tile.ty.dtype) && full(ty) && full(&tile.ty) && tile.is_whole()
    }

    /// Whether what an operation gives is moved, and nothing else.
    fn is_moved(&self, op: &Op) -> bool {
        let is = |r: &Word| self.facts.uses.get(r) == Some(&1) && self.facts.moved.contains(r);
        op.results.first().is_some_and(|r| is(&r.name))
    }

    /// Another shape of a tile that is only moved: the move is the reshape.
    fn moved_alias(&mut self, op: &Op, tile: Tile, ty: TileBuf, at: Option<i128>) -> Res<()> {
        if let Some(result) = op.results.first() {
            self.reshaped.insert(result.name.clone(), (ty.clone(), tile.text.clone(), at));
        }
        self.result(op, Meaning::Tile(Tile { ty, addr: at, ..tile }));
        Ok(())
    }

    /// The bytes of a tile that the compiler places: a copy of them, where nothing shows that it is one.
    fn copied_alias(&mut self, op: &Op, tile: &Tile, ty: TileBuf, valid: &[Option<String>; 2]) -> Res<()> {
        let source = &self.operand(op, "src")?.value;
        let linear = |t: &TileBuf| t.blayout == Major::Row || t.cols == 1;
        let (own, other) = (dtype_of(&ty.dtype), dtype_of(&tile.ty.dtype));
        let vec = ty.loc == Loc::Vec && tile.ty.loc == Loc::Vec && tile.is_whole();
        let full = |t: &TileBuf| t.valid == (Some(t.rows), Some(t.cols));
        let name = match op.row.name {
            "pto.treshape" if own == other && linear(&ty) && linear(&tile.ty) => "TRESHAPE",
            "pto.bitcast" if own.zip(other).is_some_and(|(a, b)| a.size() == b.size()) && ty.rows == tile.ty.rows => {
                "TGATHER"
            }
            _ => "",
        };
        let unseen = op.results.first().is_some_and(|r| self.facts.unseen_copies.contains(&r.name));
        if name.is_empty() || !vec || !full(&ty) || !full(&tile.ty) || !unseen {
            let message = format!("`{}` of a tile without a constant address is not read here", op.row.name);
            let note = "it is read as a copy where both tiles are Vec, row-major and valid in full, and no later \
                        write to one of them is seen in the other";
            let mut d = Diagnostic::error(codes::PTO_NOT_READ, op.span, message).with_note(note);
            if crate::row_views::row_view(&tile.ty).is_some_and(|row| (row.rows, row.cols) == (ty.rows, ty.cols)) {
                d = d.with_note(
                    "a row that is a view of a column is read as the column where all that uses it computes element by \
                     element, and as much is valid of it: if that is no constant, `pto.set_validshape` right behind \
                     the view says it",
                );
            }
            return Err(Box::new(d.with_secondary(source.span, "this tile has no `addr`")));
        }
        // Where it is only moved, the move is the reshape: so one is written.
        if name == "TRESHAPE" && self.is_moved(op) {
            return self.moved_alias(op, tile.clone(), ty, None);
        }
        let declared = self.declaration(&ty, valid, op.span)?;
        let copy = self.give(op.results.first().map_or("tile", |r| &r.name));
        self.out.line(&format!("let {copy} = {declared};"), op.span);
        let mode = if name == "TGATHER" { ", P1111" } else { "" };
        self.out.line(&format!("{name}({copy}, {}{mode});", tile.text), op.span);
        self.result(op, Meaning::Tile(Tile { text: copy.to_string(), name: copy, ty, addr: None, unknown: false }));
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
            // A tile of one row, or of one column.
            _ if tile.ty.rows.min(tile.ty.cols) == 1 && width > 1 => ("0".to_string(), at.text.clone()),
            _ => (format!("{} / {width}", at.text), format!("{} % {width}", at.text)),
        };
        let place = match tile.ty.blayout {
            Major::Row => format!("{}[{major}, {minor}]", tile.text),
            Major::Col => format!("{}[{minor}, {major}]", tile.text),
        };
        self.access(op, &place, set.then_some("val"))
    }
}

pub(super) fn valid_text(name: &str, valid: &[Option<String>; 2], ty: &TileBuf) -> String {
    let [rows, cols] = valid;
    let (rows, cols) = (rows.clone().unwrap_or(ty.rows.to_string()), cols.clone().unwrap_or(ty.cols.to_string()));
    format!("{name}.valid({rows}, {cols})")
}
