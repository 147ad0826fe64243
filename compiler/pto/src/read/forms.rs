//! Operations whose operands have other shapes than those of the language's instruction: what the text means is said
//! with windows, loops, or another instruction.

use super::meaning::{Meaning, Part, Scalar, Tile};
use super::{Reader, Res, not_read};
use crate::tree::{Op, Operand, Value};
use crate::types::{Major, Type, dtype_of};

/// Bytes of a block: what a row-wise operand has for each row, and what a gather by blocks moves.
const BLOCK_BYTES: i64 = 32;

impl Reader<'_> {
    /// Writes an operation that has a form of its own here; `false` if it has none.
    pub(super) fn own_form(&mut self, op: &Op) -> Res<bool> {
        match op.row.name {
            "pto.tload" if self.mask_transfer(op, "dst")? => Ok(true),
            "pto.tstore" if self.mask_transfer(op, "src")? => Ok(true),
            "pto.tload" => self.transfer_of_rows(op, "dst", "src"),
            "pto.tstore" => self.transfer_of_rows(op, "src", "dst"),
            "pto.tinsert" => self.whole_insert(op),
            "pto.tgatherb" => self.gather_of_blocks(op),
            "pto.tmov" => self.move_to_itself(op),
            name if name.starts_with("pto.trowexpand") && name != "pto.trowexpand" => self.row_blocks(op),
            _ => Ok(false),
        }
    }

    /// The tile as an operand: of some only the first row or column is read.
    pub(super) fn narrowed(&self, op: &Op, operand: &Operand, tile: &Tile) -> String {
        match (op.row.name, operand.slot) {
            ("pto.tcolexpand", "src") if tile.ty.valid.0 != Some(1) => format!("{}[0 .. 1, _]", tile.text),
            ("pto.tdequant", "scale" | "offset") if tile.ty.valid.1 != Some(1) => format!("{}[_, 0 .. 1]", tile.text),
            _ => tile.text.clone(),
        }
    }

    /// Two names of one tile: nothing moves.
    fn move_to_itself(&mut self, op: &Op) -> Res<bool> {
        let plain = op.operands.len() == 2 && op.attrs.is_empty();
        Ok(plain && self.tile_at(op, "dst")?.text == self.tile_at(op, "src")?.text)
    }

    /// An insertion that covers its destination is a move, and reads nothing of what was there.
    fn whole_insert(&mut self, op: &Op) -> Res<bool> {
        let (src, dst) = (self.tile_at(op, "src")?, self.tile_at(op, "dst")?);
        for slot in ["indexRow", "indexCol"] {
            if self.scalar(&self.operand(op, slot)?.value)?.constant != Some(0) {
                return Ok(false);
            }
        }
        if src.ty.valid != (Some(dst.ty.rows), Some(dst.ty.cols)) || !dst.is_whole() {
            return Ok(false);
        }
        self.out.line(&format!("TMOV({}, {});", dst.text, src.text), op.span);
        Ok(true)
    }

    fn elements_of_a_block(&self, op: &Op, tile: &Tile) -> Res<i64> {
        match dtype_of(&tile.ty.dtype).map(|d| d.size() as i64) {
            Some(size @ 1..=BLOCK_BYTES) => Ok(BLOCK_BYTES / size),
            _ => not_read(op.span, format!("`{}` of `{}` is not read", op.row.name, tile.ty.dtype)),
        }
    }

    /// A row-major operand with 32 bytes a row, which repeat along the row: the element-wise instruction, a block of
    /// columns at a time.
    fn row_blocks(&mut self, op: &Op) -> Res<bool> {
        let [dst, src0, src1] = ["dst", "src0", "src1"].map(|slot| self.tile_at(op, slot));
        let (dst, src0, src1) = (dst?, src0?, src1?);
        let width = self.elements_of_a_block(op, &dst)?;
        let repeats = |tile: &Tile, other: &Tile| {
            tile.ty.blayout == Major::Row && tile.ty.valid.1 == Some(width) && other.ty.valid == dst.ty.valid
        };
        let second = repeats(&src1, &src0);
        if !second && !repeats(&src0, &src1) {
            return Ok(false);
        }
        let Some(cols) = dst.ty.valid.1 else {
            return not_read(op.span, "blocks that repeat along rows whose length the launch knows are not read");
        };
        let (name, exponential) = match op.row.name.trim_start_matches("pto.trowexpand") {
            "expdif" => ("TSUB".to_string(), true),
            other => (format!("T{}", other.to_uppercase()), false),
        };
        let statement = |window: &str, block: &str| {
            let part = |tile: &Tile, repeated: bool| format!("{}{}", tile.text, if repeated { block } else { window });
            format!("{name}({}, {}, {});", part(&dst, false), part(&src0, !second), part(&src1, second))
        };
        let (whole, rest) = (cols / width, cols % width);
        match whole {
            1 if rest == 0 => self.out.line(&statement("", ""), op.span),
            0 => {}
            _ => {
                let block = self.give("block");
                self.out.open(&format!("for {block} in 0 .. {whole} {{"), op.name_span);
                let window = format!("[_, {block} * {width} .. {block} * {width} + {width}]");
                self.out.line(&statement(&window, ""), op.span);
                self.out.close("}", op.name_span);
            }
        }
        if rest > 0 {
            let from = whole * width;
            self.out.line(&statement(&format!("[_, {from} .. {cols}]"), &format!("[_, 0 .. {rest}]")), op.span);
        }
        if exponential {
            self.out.line(&format!("TEXP({0}, {0});", dst.text), op.span);
        }
        Ok(true)
    }

    /// Offsets of 32 bytes each, fewer than the destination has columns.
    fn gather_of_blocks(&mut self, op: &Op) -> Res<bool> {
        let [dst, src, offsets] = ["dst", "src", "offsets"].map(|slot| self.tile_at(op, slot));
        let (dst, src, offsets) = (dst?, src?, offsets?);
        let width = self.elements_of_a_block(op, &dst)?;
        let ((Some(rows), Some(cols)), Some(given)) = (dst.ty.valid, offsets.ty.valid.1) else { return Ok(false) };
        if given >= cols || given.saturating_mul(width) < cols {
            return Ok(false);
        }
        if [&dst, &src, &offsets].iter().any(|t| t.ty.blayout != Major::Row) {
            return not_read(op.span, "`pto.tgatherb` of column-major tiles is not read");
        }
        let (row, col, at) = (self.give("row"), self.give("col"), self.give("at"));
        self.out.open(&format!("for {row} in 0 .. {rows} {{"), op.name_span);
        self.out.open(&format!("for {col} in 0 .. {cols} {{"), op.name_span);
        let size = BLOCK_BYTES / width;
        let offset = format!("index({}[{row}, {col} / {width}]) / {size}", offsets.text);
        self.out.line(&format!("let {at} = {offset} + {col} % {width};"), op.span);
        let stored = src.ty.cols.max(1);
        let element = format!("{}[{at} / {stored}, {at} % {stored}]", src.text);
        self.out.line(&format!("{}[{row}, {col}] = {element};", dst.text), op.span);
        self.out.close("}", op.name_span);
        self.out.close("}", op.name_span);
        Ok(true)
    }

    /// A part of more than two modes: a tile holds its rows one after the other, so it is moved mode by mode.
    fn transfer_of_rows(&mut self, op: &Op, tile: &str, view: &str) -> Res<bool> {
        let window = &self.operand(op, view)?.value;
        let Some(part) = self.part(window)? else { return Ok(false) };
        let leading = part.sizes.len().saturating_sub(2);
        if part.sizes[..leading].iter().all(|n| n.constant == Some(1)) {
            return Ok(false);
        }
        let tile = self.tile_at(op, tile)?;
        if op.attrs.iter().any(|a| a.name != "layout")
            || op.operands.len() != 2
            || tile.ty.blayout != Major::Row && tile.ty.slayout.is_none()
        {
            return not_read(op.span, "a part of more than two modes is not read here");
        }
        let mut narrow = Part { offsets: part.offsets.clone(), sizes: part.sizes.clone(), ..part.clone() };
        let mut number = String::new();
        let mut loops = 0;
        for (mode, size) in part.sizes[..leading].iter().enumerate() {
            if size.constant == Some(1) {
                continue;
            }
            let i = self.give("part");
            self.out.open(&format!("for {i} in 0 .. {} {{", size.text), op.name_span);
            loops += 1;
            let offset = &part.offsets[mode];
            let text = if offset.constant == Some(0) { i.to_string() } else { format!("({} + {i})", offset.text) };
            let one = |text: String, constant| Scalar { text, ty: Type::Index, constant, natural: true, product: None };
            narrow.offsets[mode] = one(text, None);
            narrow.sizes[mode] = one("1".into(), Some(1));
            number = if number.is_empty() { i.to_string() } else { format!("({number} * {} + {i})", size.text) };
        }
        let rows = &part.sizes[leading];
        let from = match rows.constant {
            Some(1) => number,
            _ => format!("{number} * {}", rows.text),
        };
        let rows = format!("{}[{from} .. {from} + {}, _]", tile.text, rows.text);
        let view = self.part_window(&narrow, window.span, tile.ty.cols == 1)?;
        let line = if op.row.name == "pto.tload" {
            format!("TLOAD({rows}, {view});")
        } else {
            format!("TSTORE({view}, {rows});")
        };
        self.out.line(&line, op.span);
        (0..loops).for_each(|_| self.out.close("}", op.name_span));
        Ok(true)
    }

    /// What a transfer moves, as a part.
    fn part(&self, value: &Value) -> Res<Option<Part>> {
        Ok(match self.meaning(value)? {
            Meaning::Part(part) => Some(part.clone()),
            Meaning::View(view) => Some(Part::whole(view)),
            _ => None,
        })
    }
}
