//! Instructions: calls of the headers' functions, what is written first.

use super::control::word;
use super::{Printer, Res, types, unsaid};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::ops::Dps;
use crate::tree::{Op, Operand};
use crate::types::{Major, TileBuf, Type};
use ptoc_isa::Loc;
use rustc_hash::FxHashMap;

/// Operations whose tiles in these slots have one type in the headers, or in their CPU simulator.
const ONE_TYPE: [(&str, &[&str]); 9] = [
    ("pto.tabs", &["dst", "src"]),
    ("pto.tadd", &["dst", "src0", "src1"]),
    ("pto.tsel", &["dst", "src0", "src1"]),
    ("pto.taddc", &["dst", "src0", "src1", "src2"]),
    ("pto.tsubc", &["dst", "src0", "src1", "src2"]),
    ("pto.taddsc", &["dst", "src0", "src1"]),
    ("pto.tsubsc", &["dst", "src0", "src1"]),
    ("pto.trems", &["dst", "tmp"]),
    ("pto.txors", &["dst", "tmp"]),
];

/// The elements of reductions that the simulator asserts, where these are not all.
const REDUCED: [(&str, &[&str]); 3] = [
    ("pto.tcolsum", &["f16", "bf16", "f32"]),
    ("pto.tcolmax", &["f16", "bf16", "f32", "i8", "si8", "ui8"]),
    ("pto.trowsum", &["f16", "bf16", "f32", "i16", "si16", "i32", "si32"]),
];

const ROW_REDUCTIONS: [&str; 4] = ["pto.trowsum", "pto.trowmax", "pto.trowmin", "pto.trowprod"];

impl Printer<'_> {
    pub(super) fn instruction(&mut self, op: &Op, dps: &Dps) -> Res<()> {
        let order = dps.outs.iter().chain(&dps.ins);
        let operands: Vec<&Operand> = order.flat_map(|slot| op.operands_of(slot.name)).collect();
        let tile = operands.iter().find(|o| matches!(self.types.get(&o.value.name), Some(Type::TileBuf(_))));
        let tile: Option<Word> = tile.map(|o| o.value.name.clone());
        if let Some(window) = op.operands.iter().find(|o| self.windows.contains_key(&o.value.name)) {
            return self.of_window(op, &window.value.name);
        }
        self.buffers(op)?;
        let alike = self.alike(op)?;
        let mut args = Vec::new();
        for operand in &operands {
            let name = &operand.value.name;
            args.push(match self.types.get(name) {
                _ if alike.contains_key(operand.slot) => alike[operand.slot].clone(),
                Some(Type::PartitionView(..)) => {
                    let moved = tile.as_ref().filter(|_| !matches!(op.row.name, "pto.mgather" | "pto.mscatter"));
                    self.global_tensor(name, moved, op.span)?
                }
                _ => self.value(name),
            });
        }
        let call = self.call(op, &mut args)?;
        self.line(format!("{call}({});", args.join(", ")));
        Ok(())
    }

    /// An instruction on a window of a tile with boxes: a move out of it is an extraction.
    fn of_window(&mut self, op: &Op, window: &Word) -> Res<()> {
        let Some((tile, at)) = self.windows.get(window).cloned() else { return Ok(()) };
        if op.row.name != "pto.tmov" || self.used(op, "src")?.name != *window || !op.attrs.is_empty() {
            return unsaid(op.span, format!("`{}` on a window of a tile with boxes", op.row.name));
        }
        let (dst, tile) = (self.operand(op, "dst")?, self.value(&tile));
        self.line(format!("TEXTRACT({dst}, {tile}, {});", at.join(", ")));
        Ok(())
    }

    /// Templates with one parameter for the types of several tiles take those of one type alone. Rows of one length are
    /// as far apart in a window as in a tile of its own: there a view of the bytes has the type of the longest tile.
    /// What stands in these slots instead of the tiles.
    fn alike(&mut self, op: &Op) -> Res<FxHashMap<&'static str, String>> {
        let mut instead = FxHashMap::default();
        let Some((_, slots)) = ONE_TYPE.iter().find(|(name, _)| *name == op.row.name) else { return Ok(instead) };
        let mut tiles: Vec<(&'static str, Word, TileBuf)> = Vec::new();
        for slot in *slots {
            let Some(name) = op.operand(slot).map(|o| o.value.name.clone()) else { continue };
            if let Type::TileBuf(ty) = self.ty(&name, op.span)? {
                tiles.push((*slot, name, (**ty).clone()));
            }
        }
        let Some((_, _, first)) = tiles.iter().max_by_key(|(_, _, ty)| ty.rows) else { return Ok(instead) };
        let mut ty = first.clone();
        let Some((_, _, other)) = tiles.iter().find(|(_, _, t)| *t != ty) else { return Ok(instead) };
        let rows = |t: &TileBuf| t.loc == Loc::Vec && t.blayout == Major::Row && t.slayout.is_none();
        if tiles.iter().any(|(_, _, t)| !rows(t) || (t.cols, &t.dtype) != (ty.cols, &ty.dtype)) {
            let name = op.row.name.trim_start_matches("pto.").to_uppercase();
            let (one, other) = (types::tile(&ty, op.span)?, types::tile(other, op.span)?);
            return unsaid(op.span, format!("`{name}` of tiles of different types, `{one}` and `{other}`"));
        }
        if tiles.iter().any(|(_, _, t)| t.valid != ty.valid) {
            ty.valid = (None, None);
        }
        for (slot, name, _) in tiles.iter().filter(|(_, _, t)| *t != ty) {
            let of = self.value(name);
            let view = self.identifiers.fresh(&format!("{of}_view"));
            let asked = [(ty.valid.0, "GetValidRow"), (ty.valid.1, "GetValidCol")];
            let given: Vec<String> =
                asked.iter().filter(|(n, _)| n.is_none()).map(|(_, ask)| format!("{of}.{ask}()")).collect();
            let given = if given.is_empty() { String::new() } else { format!("({})", given.join(", ")) };
            self.line(format!("{} {view}{given};", types::tile(&ty, op.span)?));
            self.line(format!("TSUBVIEW({view}, {of}, 0, 0);"));
            instead.insert(*slot, view);
        }
        Ok(instead)
    }

    /// What the headers ask of buffers: as many rows on both sides of a sum along rows, and that all of what is
    /// gathered by a pattern is valid.
    fn buffers(&self, op: &Op) -> Res<()> {
        let tile = |slot: &str| match op.operand(slot).and_then(|o| self.types.get(&o.value.name)) {
            Some(Type::TileBuf(tile)) => Some(tile),
            _ => None,
        };
        let Some(dst) = tile("dst") else { return Ok(()) };
        let name = op.row.name.trim_start_matches("pto.").to_uppercase();
        if let Some(src) = tile("src").filter(|src| ROW_REDUCTIONS.contains(&op.row.name) && src.rows != dst.rows) {
            let what = format!("`{name}` of a buffer of {} rows into one of {}", src.rows, dst.rows);
            return unsaid(op.span, what);
        }
        let known = REDUCED.iter().find(|(name, _)| *name == op.row.name);
        if let Some(src) = tile("src").filter(|src| known.is_some_and(|(_, of)| !of.contains(&src.dtype.as_str()))) {
            let element = types::element(&src.dtype).unwrap_or("other elements");
            return unsaid(op.span, format!("`{name}` of `{element}` (their CPU simulator)"));
        }
        if op.attr("maskPattern").is_some() && dst.valid.1 != Some(dst.cols) {
            return unsaid(op.span, format!("`{name}` by a pattern into a tile whose columns are not all valid"));
        }
        Ok(())
    }

    /// The function with the arguments of its template; arguments that are no operands are added.
    fn call(&self, op: &Op, args: &mut Vec<String>) -> Res<String> {
        let Some(instr) = op.row.instr else { return unsaid(op.span, format!("`{}`", op.row.name)) };
        let name = instr.get().written_name();
        let named: Vec<String> = args.iter().map(|a| format!("decltype({a})")).collect();
        let own = |n: usize| named.get(n).cloned().unwrap_or_default();
        let has = |attr: &str| op.attr(attr).is_some();
        Ok(match op.row.name {
            "pto.tcmp" | "pto.tcmps" => {
                args.push(format!("CmpMode::{}", word(op, "cmpMode").to_uppercase()));
                name.into()
            }
            "pto.tcvt" => {
                let mode = if has("rmode") { word(op, "rmode") } else { "RINT".into() };
                args.push(format!("RoundMode::CAST_{mode}"));
                if has("sat_mode") {
                    args.push(format!("SaturationMode::{}", word(op, "sat_mode")));
                }
                name.into()
            }
            "pto.tci" => {
                let Some(scalar) = op.operand("S") else { return unsaid(op.span, "`TCI` without a start") };
                let ty = types::scalar(self.ty(&scalar.value.name, op.span)?, op.span)?;
                args[1] = format!("static_cast<{ty}>({})", args[1]);
                format!("{name}<{}, {ty}, {}>", own(0), i32::from(has("descending")))
            }
            "pto.ttri" => {
                let upper = op.attr("upperOrLower").and_then(|a| a.value.as_ref()).and_then(AttrValue::int);
                format!("{name}<{}, {}>", own(0), upper.unwrap_or(0))
            }
            "pto.tscatter" => {
                return unsaid(op.span, "`TSCATTER` to rows: theirs counts elements of the destination, and clears it");
            }
            "pto.tgather" if has("maskPattern") => {
                format!("{name}<{}, {}, MaskPattern::{}>", own(0), own(1), word(op, "maskPattern"))
            }
            "pto.tquant" => {
                if op.operand("offset").is_some()
                    && let Some(offset) = args.last_mut()
                {
                    *offset = format!("&{offset}");
                }
                format!("{name}<QuantType::{}>", word(op, "quant_type"))
            }
            "pto.mgather" => {
                let outside = if has("gatherOob") { word(op, "gatherOob") } else { "undefined".into() };
                format!("{name}<Coalesce::Elem, GatherOOB::{}>", capitalized(&outside))
            }
            "pto.mscatter" => {
                let outside = if has("scatterOob") { word(op, "scatterOob") } else { "undefined".into() };
                let update = if has("scatterAtomicOp") { word(op, "scatterAtomicOp") } else { "none".into() };
                format!(
                    "{name}<Coalesce::Elem, ScatterAtomicOp::{}, ScatterOOB::{}>",
                    capitalized(&update),
                    capitalized(&outside)
                )
            }
            "pto.tstore" | "pto.tstore_fp" => {
                let mut template = vec![own(1), own(0)];
                if op.row.name == "pto.tstore_fp" {
                    template.push(own(2));
                }
                let atomic = if has("atomicType") { "AtomicAdd" } else { "AtomicNone" };
                match (has("reluPreMode"), has("atomicType")) {
                    (false, false) => name.into(),
                    (relu, _) => {
                        template.push(format!("AtomicType::{atomic}"));
                        if relu {
                            template.push("ReluPreMode::NormalRelu".into());
                        }
                        format!("{name}<{}>", template.join(", "))
                    }
                }
            }
            _ if has("reluPreMode") => format!("{name}<{}, {}, ReluPreMode::NormalRelu>", own(0), own(1)),
            _ => match op.attrs.first() {
                Some(attr) => return unsaid(op.span, format!("`{}` of `{name}`", attr.name)),
                None => name.into(),
            },
        })
    }
}

/// `skip` as `Skip`.
fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
