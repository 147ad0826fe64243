//! Views of global memory.

use super::meaning::{Meaning, Part, Pointer, Scalar, View};
use super::params::Shape;
use super::{Reader, Res, not_read};
use crate::tree::{Op, Value};
use crate::types::Type;
use ptoc_diagnostics::{Diagnostic, Span, codes};

impl Reader<'_> {
    pub(super) fn view(&mut self, op: &Op) -> Res<()> {
        match op.row.name {
            "pto.addptr" => {
                let pointer = self.pointer(&self.operand(op, "ptr")?.value)?;
                let more = self.scalar(&self.operand(op, "offset")?.value)?;
                let offset = match pointer.offset {
                    Some(offset) => {
                        let text = format!("({} + {})", offset.text, more.text);
                        let natural = offset.natural && more.natural;
                        Scalar { text, ty: Type::Index, constant: None, natural, product: None }
                    }
                    None => more,
                };
                let pointer = Pointer { argument: pointer.argument, offset: Some(offset) };
                self.result(op, Meaning::Pointer(pointer));
                Ok(())
            }
            "pto.make_tensor_view" => {
                let view = self.make_view(op)?;
                self.result(op, Meaning::View(view));
                Ok(())
            }
            "pto.partition_view" => {
                let Meaning::View(view) = self.meaning(&self.operand(op, "source")?.value)?.clone() else {
                    return not_read(op.span, "a part of this is not read");
                };
                let (offsets, sizes) = (self.scalars(op, "offsets")?, self.scalars(op, "sizes")?);
                part_holds(op, &offsets, &sizes)?;
                self.result(op, Meaning::Part(Part { view, offsets, sizes }));
                Ok(())
            }
            "pto.get_tensor_view_dim" => self.dimension(op),
            _ => self.element(op),
        }
    }

    pub(super) fn pointer(&self, value: &Value) -> Res<Pointer> {
        match self.meaning(value)? {
            Meaning::Pointer(p) => Ok(p.clone()),
            _ => not_read(value.span, format!("`%{}` is no pointer to an argument", value.name)),
        }
    }

    fn make_view(&mut self, op: &Op) -> Res<View> {
        let pointer = self.pointer(&self.operand(op, "ptr")?.value)?;
        let (shape, strides) = (self.scalars(op, "shape")?, self.scalars(op, "strides")?);
        let layout = op.attr("layout").and_then(|a| a.value.as_ref()).and_then(|v| v.word());
        if layout == Some("nz") {
            return not_read(op.span, "a view in the layout NZ is not read: its boxes are the target's");
        }
        let name = self.arguments[&pointer.argument].clone();
        if self.facts.tensors[&pointer.argument].shape != Shape::Flat {
            return Ok(View { text: name.to_string(), shape });
        }
        let list = |all: &[Scalar]| all.iter().map(|s| s.text.clone()).collect::<Vec<_>>().join(", ");
        let from = match &pointer.offset {
            Some(offset) => format!("{name}[{} .. {name}_len]", offset.text),
            None => name.to_string(),
        };
        let view = self.give(op.results.first().map_or("view", |r| &r.name));
        let one = if shape.len() == 1 { "," } else { "" };
        let text = format!("let {view} = composition({from}, ({}{one}):({}{one}));", list(&shape), list(&strides));
        self.out.line(&text, op.span);
        Ok(View { text: view.to_string(), shape })
    }

    fn dimension(&mut self, op: &Op) -> Res<()> {
        let Meaning::View(view) = self.meaning(&self.operand(op, "tensor_view")?.value)?.clone() else {
            return not_read(op.span, "the extents of this are not read");
        };
        let dim = self.scalar(&self.operand(op, "dim_index")?.value)?;
        let extent = dim.constant.and_then(|n| view.shape.get(usize::try_from(n).ok()?)).cloned();
        match extent {
            Some(extent) => self.result(op, Meaning::Scalar(extent)),
            None => return not_read(op.span, "the number of the dimension is not known here"),
        }
        Ok(())
    }

    /// One element of a list in global memory.
    fn element(&mut self, op: &Op) -> Res<()> {
        let pointer = self.pointer(&self.operand(op, "ptr")?.value)?;
        let at = self.scalar(&self.operand(op, "offset")?.value)?;
        let name = self.arguments[&pointer.argument].clone();
        let place = match &pointer.offset {
            Some(offset) => format!("{name}[{} + {}]", offset.text, at.text),
            None => format!("{name}[{}]", at.text),
        };
        self.access(op, &place, (op.row.name == "pto.store_scalar").then_some("value"))
    }

    /// An element that is written with an operand, or read: where the operation stands, and not where it is used.
    pub(super) fn access(&mut self, op: &Op, place: &str, written: Option<&str>) -> Res<()> {
        if let Some(operand) = written {
            let value = self.scalar(&self.operand(op, operand)?.value)?;
            self.out.line(&format!("{place} = {};", value.text), op.span);
            return Ok(());
        }
        let Some(ty) = op.result_types.first().map(|t| t.ty.clone()) else { return Ok(()) };
        let value = self.give(op.results.first().map_or("element", |r| &r.name));
        self.out.line(&format!("let {value} = {place};"), op.span);
        let scalar = Scalar { text: value.to_string(), ty, constant: None, natural: false, product: None };
        self.result(op, Meaning::Scalar(scalar));
        Ok(())
    }

    /// A part as the window of a tile with `rows` x `cols` valid elements: an operand of a transfer.
    pub(super) fn window(&self, value: &Value, column: bool) -> Res<String> {
        let part = match self.meaning(value)? {
            Meaning::Part(part) => part.clone(),
            Meaning::View(view) => Part::whole(view),
            _ => return not_read(value.span, format!("`%{}` is no view", value.name)),
        };
        self.part_window(&part, value.span, column)
    }

    pub(super) fn part_window(&self, part: &Part, span: Span, column: bool) -> Res<String> {
        let rank = part.sizes.len();
        // Modes in front of the last two have one index each.
        let leading = rank.saturating_sub(2);
        let mut modes = Vec::with_capacity(rank);
        for (i, (offset, size)) in part.offsets.iter().zip(&part.sizes).enumerate() {
            if i < leading {
                if size.constant != Some(1) {
                    return not_read(
                        span,
                        "a part of more than two modes whose first extents are not 1 is not read here",
                    );
                }
                modes.push(offset.text.clone());
                continue;
            }
            let all = offset.constant == Some(0) && *size == part.view.shape[i];
            modes.push(match (all, size.constant, offset.constant) {
                (true, ..) => "_".to_string(),
                (_, Some(n), Some(at)) => format!("{at} .. {}", at.saturating_add(n)),
                _ => format!("{0} .. {0} + {1}", offset.text, size.text),
            });
        }
        let text = match modes.iter().all(|m| m == "_") {
            true => part.view.text.clone(),
            false => format!("{}[{}]", part.view.text, modes.join(", ")),
        };
        Ok(if rank == 1 && column { format!("col({text})") } else { text })
    }
}

/// What PTOAS requires of a part whose numbers are constants: they are those of its type, and begin at no less than 0.
fn part_holds(op: &Op, offsets: &[Scalar], sizes: &[Scalar]) -> Res<()> {
    let Some(Type::PartitionView(extents, _)) = op.result_types.first().map(|t| &t.ty) else { return Ok(()) };
    let wrong = |slot, mode: usize, message: String| {
        let span = op.operands_of(slot).nth(mode).map_or(op.span, |o| o.value.span);
        Err(Box::new(Diagnostic::error(codes::PTO_TYPE, span, message)))
    };
    for (mode, offset) in offsets.iter().enumerate() {
        if let Some(n) = offset.constant.filter(|n| *n < 0) {
            return wrong("offsets", mode, format!("mode {mode} of the part begins at {n}"));
        }
    }
    for (mode, size) in sizes.iter().enumerate() {
        let said = extents.get(mode).copied().flatten().filter(|_| extents.len() == sizes.len());
        match (size.constant, said) {
            (Some(n), _) if n <= 0 => return wrong("sizes", mode, format!("mode {mode} of the part has {n} elements")),
            (Some(n), Some(said)) if n != i128::from(said) => {
                let message = format!("mode {mode} of the part has {n} elements, and {said} in its type");
                return wrong("sizes", mode, message);
            }
            _ => {}
        }
    }
    Ok(())
}
