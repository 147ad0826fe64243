//! Instructions: the row says which it is and the order of its operands; what differs is here.

use super::arith::type_name;
use super::meaning::{Meaning, Tile};
use super::{Reader, Res, not_read, signs};
use crate::attr::AttrValue;
use crate::ops::Form;
use crate::tree::{Op, Operand};
use crate::types::{TileBuf, Type, dtype_of};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::{Loc, Target};
use ptoc_tensor::DType;

/// A statement, each piece with the place that it stems from.
type Pieces = Vec<(String, Span)>;

/// `NAME(a, b, modes);`
fn statement(op: &Op, name: &str, args: Pieces, modes: &[String]) -> Pieces {
    let mut pieces = vec![(format!("{name}("), op.name_span)];
    for (i, (text, span)) in args.into_iter().enumerate() {
        if i > 0 {
            pieces.push((", ".into(), op.name_span));
        }
        pieces.push((text, span));
    }
    let modes: String = modes.iter().map(|m| format!(", {m}")).collect();
    pieces.push((format!("{modes});"), op.name_span));
    pieces
}

impl Reader<'_> {
    pub(super) fn instruction(&mut self, op: &Op) -> Res<()> {
        self.rows_in_memory(op)?;
        if self.own_form(op)? {
            return Ok(());
        }
        let text = match op.row.name {
            "pto.tload" | "pto.tprefetch" => self.load(op)?,
            "pto.tstore" => self.store(op)?,
            "pto.tmov" => self.mov(op)?,
            "pto.tcvt" => self.convert(op)?,
            "pto.tcmp" | "pto.tcmps" => {
                let mode = self.word_of(op, "cmpMode").unwrap_or("eq").to_uppercase();
                self.plain(op, &[mode])?
            }
            "pto.tci" if flag(op, "descending") => self.plain(op, &["Down".into()])?,
            "pto.tci" => self.plain(op, &[])?,
            "pto.ttri" => {
                let upper = op.attr("upperOrLower").and_then(|a| a.value.as_ref()).and_then(AttrValue::int);
                self.plain(op, &[if upper == Some(1) { "Upper" } else { "Lower" }.into()])?
            }
            "pto.tfillpad" | "pto.tfillpad_expand" | "pto.tfillpad_inplace" => self.fill_pad(op)?,
            "pto.tgather" => self.gather(op)?,
            "pto.tmrgsort" => self.merge_sort(op)?,
            "pto.tcolsum" | "pto.tquant" => self.plain(op, &[])?,
            // The filter of the more significant byte is read with the other one alone.
            "pto.thistogram" => {
                let high = op.attr("isMSB").and_then(|a| a.value.as_ref()) != Some(&AttrValue::Bool(false));
                self.plain(op, &[if high { "Byte1" } else { "Byte0" }.into()])?
            }
            "pto.mgather" | "pto.mscatter" => self.indexed(op)?,
            _ if op.attrs.iter().any(|a| !a.name.contains('.')) => {
                let attr = &op.attrs[0];
                return not_read(attr.span, format!("`{}` of `{}` is not read", attr.name, op.row.name));
            }
            _ => self.plain(op, &[])?,
        };
        let pieces: Vec<(&str, Span)> = text.iter().map(|(text, span)| (text.as_str(), *span)).collect();
        self.out.pieces_line(&pieces, op.span);
        Ok(())
    }

    pub(super) fn unread<T>(&self, op: &Op) -> Res<T> {
        let d = Diagnostic::error(codes::PTO_NOT_READ, op.name_span, format!("`{}` is not read", op.row.name));
        let split = op.attr("split").and_then(|a| a.value.as_ref()).and_then(AttrValue::int).is_some_and(|n| n != 0);
        let note = match op.row.name {
            _ if split => "half of the tile is for each of two vector cores, and a kernel runs on one",
            n if n.contains("push") || n.contains("pop") || n.contains("pipe") || n.contains("tfree") => {
                "it is about the pipe between functions that run at once on the cube core and the vector cores, each \
                 in an order of its own: a kernel has one order, and `ring` hands work on in it"
            }
            n if n.contains("buffer") => {
                "it is memory that another core writes, whose function runs at the same time in an order of its own: a \
                 kernel has one order, and `ring` hands work on in it"
            }
            n if n.contains("async") => "it is about memory of other devices",
            n if n.contains("subblock") => "a kernel runs on one vector core of a block",
            n if n.contains(".mx") || n.contains("scale_addr") => "block-scaled products are not in the language",
            n if n.contains("sync.") || n.ends_with("_buf") => "it orders cores, or buffers by tokens",
            _ => return Err(Box::new(d)),
        };
        Err(Box::new(d.with_note(note)))
    }

    fn word_of<'o>(&self, op: &'o Op, attr: &str) -> Option<&'o str> {
        op.attr(attr).and_then(|a| a.value.as_ref()).and_then(AttrValue::word)
    }

    /// `TADD(d, a, b, modes)`: what is written, then what is read, without storage to work in.
    fn plain(&mut self, op: &Op, modes: &[String]) -> Res<Pieces> {
        let (Some(instr), Form::Dps(dps)) = (op.row.instr, &op.row.form) else { return self.unread(op) };
        let outs = op.operands.iter().filter(|o| dps.outs.iter().any(|s| s.name == o.slot));
        let ins = op.operands.iter().filter(|o| o.slot != "tmp" && dps.ins.iter().any(|s| s.name == o.slot));
        let mut args = Vec::new();
        for operand in outs.chain(ins) {
            args.push(self.argument(op, operand)?);
        }
        let modes: Vec<String> = modes.iter().cloned().chain(self.worked_in(op)).collect();
        Ok(statement(op, instr.get().written_name(), args, &modes))
    }

    /// `tmp = t`: storage to work in is the compiler's business, but for bytes that the text names.
    fn worked_in(&self, op: &Op) -> Option<String> {
        let Ok(Meaning::Tile(tile)) = self.meaning(&op.operand("tmp")?.value) else { return None };
        let of = |slot: &str| match self.meaning(&op.operand(slot)?.value) {
            Ok(Meaning::Tile(tile)) => tile.ty.tile_type(),
            _ => None,
        };
        let (Some(instr), Form::Dps(dps), Some(_)) = (op.row.instr, &op.row.form, tile.addr) else { return None };
        let (dst, src) = (dps.outs.first().and_then(|s| of(s.name)), dps.ins.first().and_then(|s| of(s.name)));
        let wanted = dst.zip(src).and_then(|(dst, src)| {
            // The targets that want such storage want the same.
            ptoc_isa::scratch_type(Target::find("a2a3").ok()?, instr, dst, src)
        });
        let enough = wanted.zip(tile.ty.tile_type()).is_some_and(|(wanted, own)| own.bytes() >= wanted.bytes());
        (enough && tile.ty.loc == Loc::Vec).then(|| format!("tmp = {}", tile.name))
    }

    fn argument(&mut self, op: &Op, operand: &Operand) -> Res<(String, Span)> {
        let text = match self.meaning(&operand.value)? {
            Meaning::Tile(tile) => self.narrowed(op, operand, tile),
            // The number of a diagonal is no element.
            Meaning::Scalar(s) if operand.slot == "diagonal" => match s.constant {
                Some(n) => super::arith::number(n).text,
                None => {
                    match self.casts.get(s.text.as_str()).filter(|_| type_name(&s.ty).is_some_and(|t| t == "i64")) {
                        Some(whole) => whole.to_string(),
                        None => format!("index({})", s.text),
                    }
                }
            },
            Meaning::Scalar(s) => self.typed(op, &s.text, &s.ty),
            Meaning::View(_) | Meaning::Part(_) => self.window(&operand.value, false)?,
            Meaning::Pointer(_) => return not_read(operand.value.span, "a pointer as an operand is not read"),
            Meaning::Events(_) => return not_read(operand.value.span, "numbers of events as an operand are not read"),
        };
        Ok((text, operand.value.span))
    }

    /// A scalar in the dtype of the tiles: integers of the text have no sign of their own.
    pub(super) fn typed(&self, op: &Op, text: &str, ty: &Type) -> String {
        let own = ty.element().and_then(|e| dtype_of(e));
        match (own, signs::of_tiles(op, &self.facts.masks)) {
            // A slope is an `f32`, of all tiles.
            (Some(own), Some(tile)) if own != tile && op.row.name == "pto.tlrelu" => {
                let widened = self.casts.get(text).filter(|_| tile == DType::F16);
                widened.map_or_else(|| format!("{tile}({text})"), ToString::to_string)
            }
            (Some(own), Some(tile)) if own != tile && own.is_int() && tile.is_int() && own.size() == tile.size() => {
                format!("{tile}({})", self.casts.get(text).map_or(text, |index| index.as_str()))
            }
            _ => text.to_string(),
        }
    }

    pub(super) fn tile_at(&self, op: &Op, slot: &str) -> Res<Tile> {
        self.tile(&self.operand(op, slot)?.value)
    }

    /// The tile in a slot as an argument.
    fn tile_argument(&self, op: &Op, slot: &str) -> Res<(String, Span)> {
        let value = &self.operand(op, slot)?.value;
        Ok((self.tile(value)?.text, value.span))
    }

    fn load(&mut self, op: &Op) -> Res<Pieces> {
        for attr in op.attrs.iter().filter(|a| a.name != "layout") {
            let padded = !attr.name.contains('.') && attr.value != Some(AttrValue::Bool(false));
            if padded && self.word_of(op, &attr.name) != Some("PadNull") {
                return not_read(attr.span, format!("`{}` of `{}` is not read", attr.name, op.row.name));
            }
        }
        let tile = self.tile_at(op, "dst")?;
        if tile.ty.pad > 1 && tile.ty.valid != (Some(tile.ty.rows), Some(tile.ty.cols)) {
            return not_read(op.span, "a load that pads with other than zeros is not read");
        }
        let src = &self.operand(op, "src")?.value;
        let window = (self.window(src, tile.ty.cols == 1)?, src.span);
        Ok(statement(op, "TLOAD", vec![self.tile_argument(op, "dst")?, window], &[]))
    }

    fn store(&mut self, op: &Op) -> Res<Pieces> {
        if let Some(scalar) = op.operand("preQuantScalar") {
            return not_read(scalar.value.span, "a store that quantises by a scalar's bits is not read");
        }
        let tile = self.tile_at(op, "src")?;
        let dst = &self.operand(op, "dst")?.value;
        let window = (self.window(dst, tile.ty.cols == 1)?, dst.span);
        let mut modes = Vec::new();
        if self.word_of(op, "atomicType") == Some("atomic_add") {
            modes.push("atomic = true".to_string());
        }
        modes.extend(self.relu(op));
        Ok(statement(op, "TSTORE", vec![window, self.tile_argument(op, "src")?], &modes))
    }

    /// `layout` of a transfer says again what the strides of its view say, which lie in rows.
    fn rows_in_memory(&self, op: &Op) -> Res<()> {
        match op.attr("layout").filter(|_| self.word_of(op, "layout") != Some("nd")) {
            Some(attr) => not_read(attr.span, format!("`{attr}` of `{}` is not read: only `nd` is", op.row.name)),
            None => Ok(()),
        }
    }

    fn relu(&self, op: &Op) -> Option<String> {
        (self.word_of(op, "reluPreMode") == Some("normal_relu")).then(|| "Relu".to_string())
    }

    fn mov(&mut self, op: &Op) -> Res<Pieces> {
        if let Some(scalar) = op.operand("preQuantScalar") {
            return not_read(scalar.value.span, "a move that quantises by a scalar's bits is not read");
        }
        if let Some(attr) =
            op.attr("accToVecMode").filter(|_| self.word_of(op, "accToVecMode") != Some("single_mode_vec0"))
        {
            return not_read(attr.span, "a move to two vector cores is not read");
        }
        let modes: Vec<String> = self.relu(op).into_iter().collect();
        let mut args = vec![self.tile_argument(op, "dst")?, self.tile_argument(op, "src")?];
        let moved = op.operand("src").and_then(|o| self.reshaped.get(&o.value.name)).cloned();
        if let Some((ty, tile, at)) = moved {
            let dst = self.tile(&self.operand(op, "dst")?.value)?;
            if dst.is_whole() && (TileBuf { short: ty.short, ..dst.ty }) == ty && op.attrs.is_empty() {
                args[1].0 = tile;
                return Ok(statement(op, "TRESHAPE", args, &[]));
            }
            let valid = [ty.valid.0.map(|n| n.to_string()), ty.valid.1.map(|n| n.to_string())];
            args[1].0 = match at {
                Some(at) => self.placed_tile(op, &ty, &valid, at)?.to_string(),
                None => {
                    let (declared, copy) = (self.declaration(&ty, &valid, op.span)?, self.give("reshaped"));
                    self.out.line(&format!("let {copy} = {declared};"), op.span);
                    self.out.line(&format!("TRESHAPE({copy}, {tile});"), op.span);
                    copy.to_string()
                }
            };
        }
        let name = if op.operand("fp").is_some() { "TMOV_FP" } else { "TMOV" };
        if op.operand("fp").is_some() {
            args.push(self.tile_argument(op, "fp")?);
        }
        Ok(statement(op, name, args, &modes))
    }

    fn convert(&mut self, op: &Op) -> Res<Pieces> {
        // The default of the text rounds to nearest even, also to integers.
        let round = match self.word_of(op, "rmode") {
            None | Some("NONE" | "RINT" | "CAST_RINT") => "Rint",
            Some("ROUND") => "Round",
            Some("FLOOR") => "Floor",
            Some("CEIL") => "Ceil",
            Some("TRUNC") => "Trunc",
            Some("ODD") => "Odd",
            Some(other) => return not_read(op.span, format!("the rounding mode `{other}` is not read")),
        };
        let mut modes = vec![round.to_string()];
        match self.word_of(op, "sat_mode").or(self.word_of(op, "satmode")) {
            Some("ON") => modes.push("saturate = true".into()),
            Some("OFF") => modes.push("saturate = false".into()),
            _ => {}
        }
        self.plain(op, &modes)
    }

    fn fill_pad(&mut self, op: &Op) -> Res<Pieces> {
        let pad = match self.tile_at(op, "dst")?.ty.pad {
            1 => "Zero",
            2 => "Max",
            3 => "Min",
            _ => return not_read(op.span, "the destination says with `pad` what fills it, and this one has `pad=0`"),
        };
        self.plain(op, &[pad.into()])
    }

    fn gather(&mut self, op: &Op) -> Res<Pieces> {
        if op.operand("cdst").is_some() {
            return self.gather_by_comparison(op);
        }
        match self.word_of(op, "maskPattern") {
            Some(pattern) => self.plain(op, &[pattern.to_string()]),
            None => self.plain(op, &[]),
        }
    }

    /// The columns at which a comparison with one number holds: the language has a number for each row.
    fn gather_by_comparison(&mut self, op: &Op) -> Res<Pieces> {
        let (Some(by), counts) = (op.operand("by"), self.tile_at(op, "cdst")?) else {
            return not_read(op.span, "`pto.tgather` with a comparison and no number is not read");
        };
        let source = self.tile_at(op, "src")?;
        let (Meaning::Scalar(by), Some(rows)) = (self.meaning(&by.value)?.clone(), source.ty.valid.0) else {
            return not_read(
                op.span,
                "`pto.tgather` with a comparison is read of a number, and of rows that are known",
            );
        };
        if self.facts.flags || (rows > 1 && counts.ty.valid.1 != Some(1)) {
            let message = "`pto.tgather` with a comparison is read where the compiler orders the pipes, and counts of \
                           several rows are a column";
            return not_read(op.span, message);
        }
        let limit = self.give("limit");
        let of = dtype_of(&source.ty.dtype).unwrap_or(DType::F32);
        self.out.line(&format!("let {limit} = tile Vec<{of}, {rows}, 1>;"), op.span);
        self.out.line(&format!("TEXPANDS({limit}, {});", self.typed(op, &by.text, &by.ty)), op.span);
        let counts = if rows > 1 { counts.text } else { format!("{}[_, 0 .. 1]", counts.text) };
        let first = op.attr("offset").and_then(|a| a.value.as_ref()?.int()).unwrap_or(0);
        let args = vec![
            self.tile_argument(op, "dst")?,
            self.tile_argument(op, "src")?,
            (limit.to_string(), op.span),
            (counts, self.operand(op, "cdst")?.value.span),
            (super::arith::number(first).text, op.name_span),
        ];
        Ok(statement(op, "TGATHER", args, &[self.word_of(op, "cmpMode").unwrap_or("eq").to_uppercase()]))
    }

    fn merge_sort(&mut self, op: &Op) -> Res<Pieces> {
        if flag(op, "exhausted") {
            return not_read(op.span, "`pto.tmrgsort` that stops with the first list is not read");
        }
        let mut args = vec![self.tile_argument(op, "dst")?];
        let srcs: Vec<&Operand> = op.operands_of("srcs").collect();
        let length = op.operand("blockLen");
        // Of several lists the last tile is storage to work in.
        let lists = if length.is_some() { srcs.len() } else { srcs.len().saturating_sub(1) };
        for src in &srcs[..lists] {
            args.push((self.tile(&src.value)?.text, src.value.span));
        }
        if let Some(length) = length {
            let of = self.scalar(&length.value)?;
            let text = of.constant.map_or_else(|| format!("index({})", of.text), |n| n.to_string());
            args.push((text, length.value.span));
        }
        Ok(statement(op, "TMRGSORT", args, &[]))
    }

    fn indexed(&mut self, op: &Op) -> Res<Pieces> {
        let word = self.word_of(op, "gatherOob").or(self.word_of(op, "scatterOob"));
        let mut modes = Vec::new();
        match word {
            None | Some("undefined") => {}
            Some("clamp") => modes.push("oob = Clamp".to_string()),
            Some("wrap") => modes.push("oob = Wrap".to_string()),
            Some("zero") => modes.push("oob = Zero".to_string()),
            Some("skip") => modes.push("oob = Skip".to_string()),
            Some(other) => return not_read(op.span, format!("`{other}` is not read here")),
        }
        match self.word_of(op, "scatterAtomicOp") {
            None | Some("none") => {}
            Some("add") => modes.push("atomic = true".to_string()),
            Some("max") => modes.push("atomic = Max".to_string()),
            Some("min") => modes.push("atomic = Min".to_string()),
            Some(other) => return not_read(op.span, format!("`{other}` is not read here")),
        }
        self.plain(op, &modes)
    }
}

fn flag(op: &Op, attr: &str) -> bool {
    op.attr(attr).and_then(|a| a.value.as_ref()) == Some(&AttrValue::Bool(true))
}
