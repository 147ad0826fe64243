//! Tiles: buffers, what of them is valid, parts and elements.

use super::build::is_numbered;
use super::{Form, Level, Res, Writer, unsaid};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::types::{Extent, FRACTAL, Major, TileBuf, Type, element_word};
use crate::verify::part_valid;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{AddrKind, Kernel, Op, Operand, PrintPart, Region, Tile, TileData, TileRef, Value};
use ptoc_isa::{BinOp, Loc, Order};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// A buffer that was allocated.
pub(super) struct TileState {
    name: Word,
    ty: TileBuf,
    /// Whether what is valid changes.
    moving: bool,
    /// What is valid where it is allocated, as far as that is no constant of the type.
    valid: Vec<(&'static str, Word)>,
    /// What is valid here, if that is known.
    now: Option<(Value, Value)>,
}

/// A tile of an array by the number that a loop knows, and what is valid of it here where that changes.
pub(super) type Chosen = (Tile, Value, Option<(Value, Value)>);

/// How a tile is used as a whole.
#[derive(Default)]
pub(super) struct Uses {
    /// What is valid, each once.
    shapes: Vec<(Value, Value)>,
    /// Rows and columns that were declared; storage is padded.
    declared: Option<(i64, i64)>,
}

/// The uses of all tiles.
pub(super) fn uses(kernel: &Kernel, defs: &Definitions<'_>) -> FxHashMap<Tile, Uses> {
    let mut uses = FxHashMap::default();
    region(&kernel.body, defs, &mut uses);
    uses
}

/// Whether a tile of one column is used as a row: that is how a vector without another mode is moved.
fn lies(defs: &Definitions<'_>, t: &TileRef) -> bool {
    let is_one = |v| defs.number(v) == Some(1);
    t.origin.is_none() && t.cols == 1 && t.rows > 1 && is_one(t.valid.0) && !is_one(t.valid.1)
}

/// What is valid, in rows and columns of the tile.
fn upright(defs: &Definitions<'_>, t: &TileRef) -> (Value, Value) {
    if lies(defs, t) { (t.valid.1, t.valid.0) } else { t.valid }
}

fn region(region_: &Region, defs: &Definitions<'_>, uses: &mut FxHashMap<Tile, Uses>) {
    let mut note = |t: &TileRef| {
        let known = uses.entry(t.tile).or_default();
        if t.origin.is_some() {
            return;
        }
        known.declared.get_or_insert((i64::from(t.rows), i64::from(t.cols)));
        let valid = upright(defs, t);
        if !known.shapes.contains(&valid) {
            known.shapes.push(valid);
        }
    };
    for stmt in region_ {
        match &stmt.op {
            Op::Inst(inst) => {
                let tiles = inst.operands.iter().filter_map(|o| if let Operand::Tile(t) = o { Some(t) } else { None });
                tiles.chain(&inst.scratch).for_each(&mut note);
            }
            Op::TileGet { tile, .. } | Op::TileSet { tile, .. } => note(tile),
            Op::Print { parts } => {
                parts.iter().for_each(|p| {
                    if let PrintPart::Tile(t) = p {
                        note(t)
                    }
                });
            }
            _ => {}
        }
    }
    for stmt in region_ {
        stmt.op.regions().for_each(|r| region(r, defs, uses));
    }
}

impl Writer<'_> {
    /// Whether the addresses that the author gave can be said at this level.
    pub(super) fn addresses_fit(&self) -> Res<()> {
        let tiles = || self.kernel.tiles.iter();
        if let Some((_, tile)) = tiles().find(|(_, t)| t.addr == AddrKind::Dynamic) {
            return unsaid(tile.span, format!("an address that the launch gives: that of `{}`", tile.name));
        }
        if self.level != Level::Automatic {
            return Ok(());
        }
        let bytes = |t: &TileData| match &t.addr {
            AddrKind::Fixed(at) => at.iter().map(|at| (*at, at + t.ty.bytes())).collect(),
            _ => Vec::new(),
        };
        for (n, tile) in tiles() {
            let meets = |a: (u64, u64), b: (u64, u64)| a.0 < b.1 && b.0 < a.1;
            let others = tiles().filter(|(m, o)| *m > n && o.ty.loc == tile.ty.loc);
            let shared = others
                .map(|(_, o)| o)
                .find(|o| bytes(o).into_iter().any(|b| bytes(tile).into_iter().any(|a| meets(a, b))));
            if let Some(other) = shared {
                let message = format!(
                    "text of level 2 has no addresses, and the author puts `{}` and `{}` on common bytes",
                    tile.name, other.name
                );
                let d = Diagnostic::error(codes::PTO_UNSAID, other.span, message)
                    .with_secondary(tile.span, "the other one");
                return Err(Box::new(d.with_help("write text of level 3: `--pto-level 3`")));
            }
        }
        Ok(())
    }

    /// A buffer for each element of an array.
    pub(super) fn alloc(&mut self, tile: Tile) -> Res<()> {
        (0..self.kernel.tiles[tile].count).try_for_each(|element| self.alloc_one(tile, element))
    }

    fn alloc_one(&mut self, tile: Tile, element: u32) -> Res<()> {
        let data = &self.kernel.tiles[tile];
        let (mut ty, moving, operands) = self.tile_buf(tile)?;
        let mut given = Vec::new();
        let mut valid = Vec::new();
        if self.level != Level::Automatic {
            let AddrKind::Fixed(addresses) = &data.addr else {
                return unsaid(data.span, format!("`{}` without an address", data.name));
            };
            let at = addresses.get(element as usize).copied().unwrap_or_default();
            given.push(("addr", self.i64(at.into()), None));
        }
        if moving {
            ty.valid = (None, None);
            let (rows, cols) = self.uses.get(&tile).and_then(|u| u.declared).unwrap_or((ty.rows, ty.cols));
            let (rows, cols) = crate::types::declared(&ty, [Some(rows), Some(cols)]);
            let (rows, cols) = (self.index(rows), self.index(cols));
            valid.extend([("valid_row", rows), ("valid_col", cols)]);
        } else {
            for (slot, value) in ["valid_row", "valid_col"].into_iter().zip(operands) {
                if let Some(value) = value {
                    valid.push((slot, self.value(value)?));
                }
            }
        }
        given.extend(valid.iter().map(|(slot, value)| (*slot, value.clone(), None)));
        let op = self.at(data.span, |w| w.op("pto.alloc_tile", given));
        let name = match data.hidden || is_numbered(&data.name) {
            true => self.names.number(),
            false => self.names.give(&data.name),
        };
        let name = self.define(op, name, Some(Type::TileBuf(Box::new(ty.clone()))));
        if self.bytes && data.count > 1 {
            self.elements.insert(name.clone());
        }
        self.tiles.insert((tile, element), TileState { name, ty, moving, valid, now: None });
        Ok(())
    }

    /// The type of a tile's buffer, whether what is valid changes, and else the values that say it.
    fn tile_buf(&mut self, tile: Tile) -> Res<(TileBuf, bool, [Option<Value>; 2])> {
        let data = &self.kernel.tiles[tile];
        let ty = data.ty;
        if ty.dtype == DType::Bool {
            // A bit an element, in whole rows of 32 bytes. PTOAS's TCMP on a5 takes no other shape than that of what is
            // compared; the plan has no room for it.
            let wide = self.form == Form::Text && self.level == Level::Automatic && self.kernel.target == "a5";
            let bits = if wide && ty.cols.is_multiple_of(32) { ty.cols } else { ty.cols.div_ceil(8) };
            let bytes = i64::from(bits.next_multiple_of(32));
            let buf = TileBuf::plain(ty.loc, "ui8", i64::from(ty.rows), bytes);
            // Functions of the headers go through the valid bytes of a mask, one row after the other.
            return Ok((buf, self.form == Form::Cpp, [None, None]));
        }
        let Some(element) = element_word(ty.dtype) else {
            return unsaid(data.span, format!("tiles of {}", ty.dtype));
        };
        let mut buf = TileBuf::plain(ty.loc, element, i64::from(ty.rows), i64::from(ty.cols));
        (buf.blayout, buf.slayout, buf.fractal) = match ty.loc {
            Loc::Mat => (Major::Col, Some(Major::Row), FRACTAL),
            Loc::Left if ["a2a3", "kirinx90"].contains(&self.kernel.target.as_str()) => {
                (Major::Row, Some(Major::Row), FRACTAL)
            }
            Loc::Left => (Major::Col, Some(Major::Row), FRACTAL),
            Loc::Right => (Major::Row, Some(Major::Col), FRACTAL),
            Loc::Acc => (Major::Col, Some(Major::Row), 1024),
            _ if ty.order == Order::Dn => (Major::Col, None, FRACTAL),
            _ => (Major::Row, None, FRACTAL),
        };
        let Some(uses) = self.uses.get(&tile) else { return Ok((buf, false, [None, None])) };
        let (rows, cols) = uses.declared.unwrap_or((buf.rows, buf.cols));
        let Some((first, rest)) = uses.shapes.split_first() else { return Ok((buf, false, [None, None])) };
        let number = |v: Value| self.defs.number(v);
        let again = |a: Value, b: Value| self.numbering.first(a) == self.numbering.first(b);
        let same = |a: Value, b: Value| again(a, b) || (number(a).is_some() && number(a) == number(b));
        let one = rest.iter().all(|s| same(s.0, first.0) && same(s.1, first.1));
        let extent = |v: Value| -> Extent { number(v) };
        let operand = |v: Value| number(v).is_none().then_some(v);
        let operands = [operand(first.0), operand(first.1)];
        let here = operands.iter().flatten().all(|v| self.visible.iter().flatten().any(|x| again(*x, *v)));
        buf.valid = (extent(first.0), extent(first.1));
        // What is valid from the beginning is what was declared, if the buffer is as large as that needs.
        let read = crate::types::declared(&buf, [buf.valid.0, buf.valid.1]);
        let sayable = crate::types::declared(&buf, [Some(rows), Some(cols)]) == (rows, cols);
        Ok((buf, !(one && here && (read == (rows, cols) || !sayable)), operands))
    }

    /// Whether a tile of one column is used as a row.
    pub(super) fn lies(&self, tile: &TileRef) -> bool {
        lies(&self.defs, tile)
    }

    /// A tile as an operand.
    pub(super) fn tile(&mut self, tile: &TileRef) -> Res<(Word, Type)> {
        let element = match tile.element {
            None => 0,
            Some(v) => match self.number(v).and_then(|n| u32::try_from(n).ok()) {
                Some(n) => n,
                None => return self.chosen_tile(tile, v),
            },
        };
        let key = (tile.tile, element);
        if !self.tiles.contains_key(&key) {
            return unsaid(self.span, format!("`{}` before it is declared", self.kernel.tiles[tile.tile].name));
        }
        let mask = self.kernel.tiles[tile.tile].ty.dtype == DType::Bool;
        let state = &self.tiles[&key];
        let (name, ty) = (state.name.clone(), state.ty.clone());
        if let Some((row, col)) = tile.origin {
            return self.subset(tile, name, ty, row, col);
        }
        let (rows, cols) = upright(&self.defs, tile);
        let valid = (self.numbering.first(rows), self.numbering.first(cols));
        if state.moving && state.now != Some(valid) {
            self.set_valid(&name, &ty, valid, mask)?;
            if let Some(state) = self.tiles.get_mut(&key) {
                state.now = Some(valid);
            }
        }
        Ok((name, Type::TileBuf(Box::new(ty))))
    }

    fn set_valid(&mut self, name: &Word, ty: &TileBuf, valid: (Value, Value), mask: bool) -> Res<()> {
        let cols = if mask { self.mask_bytes(valid.1)? } else { self.value(valid.1)? };
        let given = vec![
            ("source", name.clone(), Some(Type::TileBuf(Box::new(ty.clone())))),
            ("valid_row", self.value(valid.0)?, None),
            ("valid_col", cols, None),
        ];
        let op = self.op("pto.set_validshape", given);
        self.push(op);
        Ok(())
    }

    /// Bytes of a row of a mask, a bit an element.
    fn mask_bytes(&mut self, cols: Value) -> Res<Word> {
        if let Some(n) = self.defs.number(cols) {
            return Ok(self.index(n.div_euclid(8) + i64::from(n % 8 != 0)));
        }
        let (cols, seven, eight) = (self.value(cols)?, self.index(7), self.index(8));
        let more = self.index_op("arith.addi", cols, seven);
        Ok(self.index_op("arith.divsi", more, eight))
    }

    /// A tile of an array whose number a loop knows. `pto.tassign` binds the handle itself, so each has one of its own,
    /// which is allocated here: at the address of the array's last tile, that says how many there are, and valid as the
    /// tile is here.
    fn chosen_tile(&mut self, tile: &TileRef, element: Value) -> Res<(Word, Type)> {
        let data = &self.kernel.tiles[tile.tile];
        if self.level == Level::Placed {
            return unsaid(self.span, "a tile of an array whose number a loop knows: PTOAS orders no `pto.tassign`");
        }
        let (AddrKind::Fixed(addresses), Level::Explicit) = (&data.addr, self.level) else {
            return unsaid(self.span, "a tile of an array whose number is not a constant");
        };
        let Some(state) = self.tiles.get(&(tile.tile, 0)) else {
            return unsaid(self.span, format!("`{}` before it is declared", data.name));
        };
        let (ty, mut valid) = (state.ty.clone(), state.valid.clone());
        let (rows, cols) = upright(&self.defs, tile);
        let here =
            (state.moving && tile.origin.is_none()).then(|| (self.numbering.first(rows), self.numbering.first(cols)));
        let key = (tile.tile, self.numbering.first(element), here);
        let full = Type::TileBuf(Box::new(ty.clone()));
        let name = match self.chosen.iter().rev().find_map(|c| c.get(&key)) {
            Some(name) => name.clone(),
            None => {
                if let Some((rows, cols)) = here {
                    let mask = data.ty.dtype == DType::Bool;
                    let cols = if mask { self.mask_bytes(cols)? } else { self.value(cols)? };
                    valid = vec![("valid_row", self.value(rows)?), ("valid_col", cols)];
                }
                let addr = self.address(addresses, element)?;
                let last = self.i64(addresses.last().copied().unwrap_or_default().into());
                let mut given = vec![("addr", last, None)];
                given.extend(valid.into_iter().map(|(slot, value)| (slot, value, None)));
                let (op, number) = (self.op("pto.alloc_tile", given), self.names.number());
                let handle = self.define(op, number, Some(full.clone()));
                let op = self.op("pto.tassign", vec![("tile", handle, Some(full.clone())), ("addr", addr, None)]);
                let number = self.names.number();
                let name = self.define(op, number, Some(full.clone()));
                if let Some(chosen) = self.chosen.last_mut() {
                    chosen.insert(key, name.clone());
                }
                name
            }
        };
        match tile.origin {
            Some((row, col)) => self.subset(tile, name, ty, row, col),
            None => Ok((name, full)),
        }
    }

    /// A number of type `i64`, as addresses are.
    fn i64(&mut self, n: i128) -> Word {
        let i64 = Type::Element(Word::new_static("i64"));
        self.constant(AttrValue::Int(n, Some(i64.clone())), &i64)
    }

    /// The address with a number, of these: a sum where they are equally far apart, else a choice.
    fn address(&mut self, addresses: &[u64], element: Value) -> Res<Word> {
        let i64 = Type::Element(Word::new_static("i64"));
        let steps: Vec<i128> = addresses.windows(2).map(|w| i128::from(w[1]) - i128::from(w[0])).collect();
        let first = addresses.first().copied().unwrap_or_default();
        let index = self.value(element)?;
        if let Some(step) = steps.first().filter(|s| steps.iter().all(|o| o == *s)) {
            let cast = self.op("arith.index_cast", vec![("in", index, Some(Type::Index))]);
            let number = self.names.number();
            let number = self.define(cast, number, Some(i64.clone()));
            let step = self.i64(*step);
            let first = self.i64(i128::from(first));
            let scaled = self.i64_op("arith.muli", number, step);
            return Ok(self.i64_op("arith.addi", scaled, first));
        }
        let mut chosen = self.i64(i128::from(first));
        for (n, address) in (1_i64..).zip(addresses.iter().skip(1)) {
            let n = self.index(n);
            let operands = vec![("lhs", index.clone(), Some(Type::Index)), ("rhs", n, Some(Type::Index))];
            let mut is = self.op("arith.cmpi", operands);
            is.attrs.push(self.attr("predicate", AttrValue::Other(Word::new_static("eq"))));
            let number = self.names.number();
            let is = self.define(is, number, None);
            let here = self.i64(i128::from(*address));
            let choice = self.op(
                "arith.select",
                vec![("condition", is, None), ("true", here, Some(i64.clone())), ("false", chosen, Some(i64.clone()))],
            );
            let number = self.names.number();
            chosen = self.define(choice, number, None);
        }
        Ok(chosen)
    }

    fn i64_op(&mut self, name: &'static str, a: Word, b: Word) -> Word {
        let i64 = Type::Element(Word::new_static("i64"));
        let op = self.op(name, vec![("lhs", a, Some(i64.clone())), ("rhs", b, Some(i64))]);
        let number = self.names.number();
        self.define(op, number, None)
    }

    /// A window. In the text all of it is valid.
    fn subset(&mut self, tile: &TileRef, of: Word, ty: TileBuf, row: Value, col: Value) -> Res<(Word, Type)> {
        let (rows, cols) = (i64::from(tile.rows), i64::from(tile.cols));
        let source = Type::TileBuf(Box::new(ty.clone()));
        let offsets = [self.value(row)?, self.value(col)?];
        let known = offsets.each_ref().map(|name| self.constant_value(name));
        let mut given = vec![("source", of, Some(source))];
        given.extend(offsets.map(|name| ("offsets", name, None)));
        if self.defs.number(tile.valid.0) != Some(rows) || self.defs.number(tile.valid.1) != Some(cols) {
            if self.form == Form::Text {
                return unsaid(self.span, "a window of a tile of which a part is valid");
            }
            given.push(("valid_row", self.value(tile.valid.0)?, None));
            given.push(("valid_col", self.value(tile.valid.1)?, None));
        }
        let mut op = self.op("pto.subset", given);
        let sizes = [rows, cols].map(|n| AttrValue::Int(i128::from(n), None));
        op.attrs.push(self.attr("sizes", AttrValue::Array(sizes.to_vec())));
        let name = self.names.number();
        let name = self.define(op, name, None);
        let valid = match self.form {
            Form::Text => part_valid(&ty, (rows, cols), &known),
            Form::Cpp => (Some(rows), Some(cols)),
        };
        let part = TileBuf { rows, cols, valid, ..ty };
        Ok((name, Type::TileBuf(Box::new(part))))
    }

    /// Behind a branch or a loop it is not known what is valid.
    pub(super) fn forget_shapes(&mut self) {
        self.tiles.values_mut().for_each(|t| t.now = None);
    }

    /// The number of an element: `major * width + minor`, or what both are the quotient and the rest of.
    fn element_number(&self, major: Value, minor: Value, width: i64) -> Option<Poly> {
        let parts = self.defs.binary(major, BinOp::Div).zip(self.defs.binary(minor, BinOp::Rem));
        if let Some(((n, by), same)) = parts
            && same == (n, by)
            && self.defs.number(by) == Some(width)
        {
            return self.defs.poly(n);
        }
        let (major, minor) = (self.defs.poly(major)?, self.defs.poly(minor)?);
        major.times(&Poly::constant(width))?.plus(&minor, 1)
    }

    /// One element, by its number in the buffer.
    pub(super) fn tile_element(
        &mut self,
        tile: &TileRef,
        row: Value,
        col: Value,
        dst: Option<Value>,
        value: Option<Value>,
    ) -> Res<()> {
        let (name, ty) = self.tile(tile)?;
        let Type::TileBuf(buf) = &ty else { return unsaid(self.span, "an element of this") };
        if self.kernel.tiles[tile.tile].ty.dtype == DType::Bool {
            return unsaid(self.span, "an element of a mask");
        }
        let (major, minor, width) = match buf.blayout {
            Major::Row => (row, col, buf.cols),
            Major::Col => (col, row, buf.rows),
        };
        let at = match self.element_number(major, minor, width) {
            Some(number) => self.sum(&number)?,
            None => return unsaid(self.span, "the number of this element"),
        };
        if let Some(dst) = dst {
            let dtype = self.kernel.tiles[tile.tile].ty.dtype;
            if dtype.is_int() && !dtype.is_signed_int() {
                // `tgetval` gives a number of the elements' type, and PTOAS takes none with a sign for one.
                return unsaid(self.span, format!("an element of {dtype}: numbers of the text have no sign"));
            }
            let scalar = self.ty(dst, self.span)?;
            let op = self.op("pto.tgetval", vec![("src", name, Some(ty)), ("offset", at, Some(Type::Index))]);
            let name = self.name_of(dst);
            let name = self.define(op, name, Some(scalar));
            self.known(dst, name);
            return Ok(());
        }
        let Some(value) = value else { return Ok(()) };
        let given = vec![
            ("offset", at, Some(Type::Index)),
            ("val", self.value(value)?, Some(self.ty(value, self.span)?)),
            ("dst", name, Some(ty)),
        ];
        let op = self.op("pto.tsetval", given);
        self.push(op);
        Ok(())
    }
}
