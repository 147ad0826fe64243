//! Tiles and windows of tensors.

use super::{Part, Printer, Res, View, types, unsaid};
use crate::lexer::Word;
use crate::tree::Op;
use crate::types::{Major, TileBuf, Type};
use crate::write::Level;
use ptoc_diagnostics::Span;

/// Modes that a `GlobalTensor` has.
const MODES: usize = 5;

/// A mode of a window: its extent and its stride.
type Mode = (Word, Word);

impl Printer<'_> {
    fn tile_type(&self, name: &Word, span: Span) -> Res<TileBuf> {
        match self.ty(name, span)? {
            Type::TileBuf(ty) => Ok((**ty).clone()),
            ty => unsaid(span, format!("a `{ty}` as a tile")),
        }
    }

    /// The parts of a tile's valid shape that the launch knows.
    fn valid(&self, op: &Op) -> Vec<String> {
        let operands = ["valid_row", "valid_col"].iter().filter_map(|slot| op.operand(slot));
        operands.map(|o| self.value(&o.value.name)).collect()
    }

    /// `pto.alloc_tile`
    pub(super) fn alloc(&mut self, op: &Op) -> Res<()> {
        let (name, ty) = self.result(op)?;
        let Type::TileBuf(ty) = ty else { return unsaid(op.span, "a tile of this type") };
        let given = call(&self.valid(op));
        self.line(format!("{} {name}{given};", types::tile(&ty, op.span)?));
        if self.unit.level == Level::Explicit {
            let addr = self.used(op, "addr")?;
            let Some(at) = self.numbers.get(&addr.name) else { return unsaid(op.span, "an address of the launch") };
            self.line(format!("TASSIGN<{at:#x}>({name});"));
        }
        Ok(())
    }

    /// `pto.treshape`: a view of the same bytes. Of a row-major view of a column as much is valid as of the column.
    pub(super) fn reshape(&mut self, op: &Op) -> Res<()> {
        let (name, ty) = self.result(op)?;
        let Type::TileBuf(ty) = ty else { return unsaid(op.span, "another shape of this") };
        let of = self.operand(op, "src")?;
        let mut given = Vec::new();
        for (extent, ask) in [(ty.valid.0, "GetValidCol"), (ty.valid.1, "GetValidRow")] {
            if extent.is_none() {
                given.push(format!("{of}.{ask}()"));
            }
        }
        let given = call(&given);
        self.line(format!("{} {name}{given};", types::tile(&ty, op.span)?));
        self.line(format!("TRESHAPE({name}, {of});"));
        Ok(())
    }

    /// `pto.subset`: a tile of the source's shape that begins within it, so that rows are as far apart. The headers
    /// count elements of a tile with boxes as if it had none, so its windows are said where they are used.
    pub(super) fn subset(&mut self, op: &Op) -> Res<()> {
        let source = self.used(op, "source")?.name.clone();
        let of = self.tile_type(&source, op.span)?;
        let at: Vec<String> = op.operands_of("offsets").map(|o| self.value(&o.value.name)).collect();
        if of.slayout.is_some() {
            self.windows.insert(op.results[0].name.clone(), (source, at));
            return Ok(());
        }
        let valid = self.valid(op);
        let (name, ty) = self.result(op)?;
        let Type::TileBuf(ty) = ty else { return unsaid(op.span, "a window of this") };
        let whole = if valid.is_empty() { (Some(ty.rows), Some(ty.cols)) } else { (None, None) };
        let given = call(&valid);
        let window = TileBuf { valid: whole, ..of };
        self.line(format!("{} {name}{given};", types::tile(&window, op.span)?));
        self.line(format!("TSUBVIEW({name}, {}, {});", self.value(&source), at.join(", ")));
        // Windows of it are windows of the same storage.
        let result = op.results[0].name.clone();
        self.types.insert(result, Type::TileBuf(Box::new(window)));
        Ok(())
    }

    /// `pto.make_tensor_view`, which is said where parts of it are used.
    pub(super) fn view(&mut self, op: &Op) -> Res<()> {
        let Some(Type::TensorView(_, element)) = op.result_types.first().map(|t| &t.ty) else {
            return unsaid(op.span, "a view of this type");
        };
        let names = |slot: &'static str| op.operands_of(slot).map(|o| o.value.name.clone()).collect();
        let view =
            View { ptr: self.used(op, "ptr")?.name.clone(), element: element.clone(), strides: names("strides") };
        self.views.insert(op.results[0].name.clone(), view);
        Ok(())
    }

    /// `pto.partition_view`, which is said where it is used.
    pub(super) fn part(&mut self, op: &Op) -> Res<()> {
        let names = |slot: &'static str| op.operands_of(slot).map(|o| o.value.name.clone()).collect();
        let part =
            Part { view: self.used(op, "source")?.name.clone(), offsets: names("offsets"), sizes: names("sizes") };
        self.parts.insert(op.results[0].name.clone(), part);
        Ok(())
    }

    /// The `GlobalTensor` of a part that an instruction moves from or to a tile; its name.
    pub(super) fn global_tensor(&mut self, part: &Word, tile: Option<&Word>, span: Span) -> Res<String> {
        let Some(part) = self.parts.get(part).cloned() else { return unsaid(span, "this view") };
        let Some(view) = self.views.get(&part.view).cloned() else { return unsaid(span, "this view") };
        let tile = tile.map(|t| self.tile_type(t, span)).transpose()?;
        let column = tile.as_ref().is_some_and(|t| t.blayout == Major::Col && t.slayout.is_none());
        let one = |m: Option<&Mode>| m.is_some_and(|m| m.1 == "=1" || self.numbers.get(&m.1) == Some(&1));
        let modes: Vec<Mode> = part.sizes.iter().cloned().zip(view.strides.iter().cloned()).collect();
        let Some(modes) = self.arranged(modes, tile.as_ref()) else {
            return unsaid(span, format!("a window of {} modes", part.sizes.len()));
        };
        let by_columns = modes.len() == 2 && one(modes.first()) && !one(modes.last());
        let Some(element) = types::element(&view.element) else {
            return unsaid(span, format!("elements of `{}`", view.element));
        };
        let (shape, extents) = self.fives(modes.iter().map(|m| &m.0), "1");
        let (stride, strides) = self.fives(modes.iter().map(|m| &m.1), "1");
        self.global_tensors += 1;
        let ty = self.identifiers.fresh(&format!("View{}", self.global_tensors));
        let name = self.identifiers.fresh(&format!("view{}", self.global_tensors));
        let layout = if column || by_columns { ", Layout::DN" } else { "" };
        self.line(format!("using {ty} = GlobalTensor<{element}, Shape<{shape}>, Stride<{stride}>{layout}>;"));
        let mut args = self.start(&view, &part.offsets);
        if !extents.is_empty() || !strides.is_empty() {
            args.push_str(&format!(", {ty}::Shape({})", extents.join(", ")));
        }
        if !strides.is_empty() {
            args.push_str(&format!(", {ty}::Stride({})", strides.join(", ")));
        }
        self.line(format!("{ty} {name}({args});"));
        Ok(name)
    }

    /// The modes of a window, of which the last is a tile's columns and the others are its rows. A window with one
    /// mode is a column of a tile that has one.
    fn arranged(&self, modes: Vec<Mode>, tile: Option<&TileBuf>) -> Option<Vec<Mode>> {
        let one = |m: &Mode| self.numbers.get(&m.0) == Some(&1);
        let last_is_one = modes.last().is_some_and(one);
        let unit = || (Word::new_static("=1"), Word::new_static("=1"));
        let mut kept: Vec<Mode> = modes.iter().filter(|m| !one(m)).cloned().collect();
        match kept.len() {
            0 => kept = vec![unit()],
            1 => {
                let column = match tile {
                    Some(t) if t.cols == 1 || t.rows == 1 => t.cols == 1,
                    Some(t) if t.valid.1 == Some(1) || t.valid.0 == Some(1) => t.valid.1 == Some(1),
                    _ => modes.len() > 1 && last_is_one,
                };
                if column {
                    kept.push(unit());
                }
            }
            // A column of rows of several modes.
            _ if last_is_one => kept.push(unit()),
            _ => {}
        }
        (kept.len() <= MODES).then_some(kept)
    }

    /// Five arguments of a template, those that the launch knows as `-1`, and these.
    fn fives<'a>(&self, given: impl Iterator<Item = &'a Word>, filler: &str) -> (String, Vec<String>) {
        let mut fixed = Vec::new();
        let mut dynamic = Vec::new();
        for name in given {
            match (name.as_str(), self.numbers.get(name)) {
                ("=1", _) => fixed.push("1".to_owned()),
                (_, Some(n)) => fixed.push(n.to_string()),
                _ => {
                    fixed.push("-1".to_owned());
                    dynamic.push(self.value(name));
                }
            }
        }
        let mut all = vec![filler.to_owned(); MODES - fixed.len()];
        all.extend(fixed);
        (all.join(", "), dynamic)
    }

    /// The address of the first element.
    fn start(&self, view: &View, offsets: &[Word]) -> String {
        let mut text = self.value(&view.ptr);
        for (offset, stride) in offsets.iter().zip(&view.strides) {
            let term = match (self.numbers.get(offset), self.numbers.get(stride)) {
                (Some(0), _) => continue,
                (_, Some(1)) => self.value(offset),
                (Some(1), _) => self.value(stride),
                _ => format!("{} * {}", self.value(offset), self.value(stride)),
            };
            text.push_str(&format!(" + {term}"));
        }
        text
    }
}

/// Arguments of a constructor in parentheses; nothing where there are none.
fn call(arguments: &[String]) -> String {
    if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) }
}
