//! Views of global memory.

use super::meaning::{Meaning, Part, Pointer, Scalar, View};
use super::params::{Shape, fastest_first, modes_of};
use super::{Reader, Res, not_read};
use crate::lexer::Word;
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
        let name = op.results.first().map(|r| r.name.clone()).unwrap_or_default();
        if pointer.offset.is_none()
            && let Some(view) = self.whole_view(op, &pointer.argument, &name, &shape)
        {
            return Ok(view);
        }
        let list = |all: &[Scalar]| all.iter().map(|s| s.text.clone()).collect::<Vec<_>>().join(", ");
        let (whole, length) = self.list_of(&pointer.argument, op.span);
        let from = match &pointer.offset {
            Some(offset) => format!("{whole}[{} .. {length}]", offset.text),
            None => whole,
        };
        let view = self.give(&name);
        let one = if shape.len() == 1 { "," } else { "" };
        let text = format!("let {view} = composition({from}, ({}{one}):({}{one}));", list(&shape), list(&strides));
        self.out.line(&text, op.span);
        Ok(View::new(view.to_string(), shape))
    }

    /// A view of all of an array: its modes in their order or another one, or several as one.
    fn whole_view(&mut self, op: &Op, argument: &Word, result: &Word, shape: &[Scalar]) -> Option<View> {
        let name = self.arguments[argument].clone();
        let extents = match &self.facts.tensors[argument].shape {
            Shape::Rows(extents) => extents.clone(),
            Shape::Strided(..) => return Some(View::new(name.to_string(), shape.to_vec())),
            Shape::Flat => return None,
        };
        let modes = modes_of(&extents, self.facts.views.get(result)?)?;
        let kept: Vec<_> = modes.iter().filter(|m| !m.is_empty()).cloned().collect();
        let added = (0..modes.len()).filter(|k| modes[*k].is_empty()).collect();
        let as_declared = kept.len() == extents.len() && kept.iter().enumerate().all(|(k, m)| *m == (k..k + 1));
        let text = if as_declared {
            name.to_string()
        } else {
            // Modes of one element that the view does not have are left out.
            let there = |k: usize| kept.iter().any(|m| m.contains(&k));
            let fixed: Vec<&str> = (0..extents.len()).map(|k| if there(k) { "_" } else { "0" }).collect();
            let array = if fixed.contains(&"0") { format!("{name}[{}]", fixed.join(", ")) } else { name.to_string() };
            let number = |k: usize| (0..k).filter(|k| there(*k)).count().to_string();
            let entry = |m: &std::ops::Range<usize>| match m.len() {
                1 => number(m.start),
                _ => format!("({})", m.clone().rev().map(number).collect::<Vec<_>>().join(", ")),
            };
            let entries: Vec<String> = kept.iter().map(entry).collect();
            let one = if entries.len() == 1 { "," } else { "" };
            let view = self.give(result);
            self.out.line(&format!("let {view} = modes({array}, ({}{one}));", entries.join(", ")), op.span);
            view.to_string()
        };
        Some(View { text, shape: shape.to_vec(), added })
    }

    /// An array as the list of its elements, and its length.
    fn list_of(&mut self, argument: &Word, span: Span) -> (String, String) {
        let name = self.arguments[argument].clone();
        let extents = match &self.facts.tensors[argument].shape {
            Shape::Rows(extents) | Shape::Strided(extents, _) => extents.clone(),
            Shape::Flat => return (name.to_string(), format!("{name}_len")),
        };
        let all: Vec<String> = extents.iter().map(|n| self.product_list(std::slice::from_ref(n))).collect();
        let length = all.join(" * ");
        if let (Shape::Rows(_), [_]) = (&self.facts.tensors[argument].shape, &extents[..]) {
            return (name.to_string(), length);
        }
        if let Some(list) = self.lists.get(argument) {
            return (list.to_string(), length);
        }
        let list = self.give(&format!("{name}_list"));
        let order = match &self.facts.tensors[argument].shape {
            Shape::Strided(extents, strides) => fastest_first(extents, strides),
            _ => None,
        };
        let order = order.unwrap_or_else(|| (0..extents.len()).rev().collect());
        let modes: Vec<String> = order.iter().map(ToString::to_string).collect();
        self.head.line(&format!("let {list} = modes({name}, (({}),));", modes.join(", ")), span);
        self.lists.insert(argument.clone(), list.clone());
        (list.to_string(), length)
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
        let (list, _) = self.list_of(&pointer.argument, op.span);
        let place = match &pointer.offset {
            Some(offset) => format!("{list}[{} + {}]", offset.text, at.text),
            None => format!("{list}[{}]", at.text),
        };
        self.access(op, &place, (op.row.name == "pto.store_scalar").then_some("value"))
    }

    /// An element that is written with an operand, or read: where the operation stands, and not where it is used.
    pub(super) fn access(&mut self, op: &Op, place: &str, written: Option<&str>) -> Res<()> {
        if let Some(operand) = written {
            let value = self.scalar(&self.operand(op, operand)?.value)?;
            let text = self.typed(op, &value.text, &value.ty);
            self.out.line(&format!("{place} = {text};"), op.span);
            return Ok(());
        }
        let Some(ty) = op.result_types.first().map(|t| t.ty.clone()) else { return Ok(()) };
        let value = self.give(op.results.first().map_or("element", |r| &r.name));
        self.out.line(&format!("let {value} = {place};"), op.span);
        let scalar = Scalar { text: value.to_string(), ty, constant: None, natural: false, product: None };
        self.result(op, Meaning::Scalar(scalar));
        Ok(())
    }

    /// A number that is written twice and means the same: what a variable holds here gets a name.
    pub(super) fn settled(&mut self, number: &Scalar, span: Span) -> String {
        if !self.variables.contains(number.text.as_str()) {
            return number.text.clone();
        }
        let name = self.give("at");
        self.out.line(&format!("let {name} = {};", number.text), span);
        name.to_string()
    }

    /// A part as the window of a tile with `rows` x `cols` valid elements: an operand of a transfer.
    pub(super) fn window(&mut self, value: &Value, column: bool) -> Res<String> {
        let part = match self.meaning(value)? {
            Meaning::Part(part) => part.clone(),
            Meaning::View(view) => Part::whole(view),
            _ => return not_read(value.span, format!("`%{}` is no view", value.name)),
        };
        self.part_window(&part, value.span, column)
    }

    pub(super) fn part_window(&mut self, part: &Part, span: Span, column: bool) -> Res<String> {
        let kept: Vec<usize> = (0..part.sizes.len()).filter(|i| !part.view.added.contains(i)).collect();
        let rank = kept.len();
        // The one column of a tile, which the array does not have.
        let column_of_one = part.view.added.contains(&part.sizes.len().saturating_sub(1));
        let whole = |i: usize| part.offsets[i].constant == Some(0) && part.sizes[i] == part.view.shape[i];
        // Modes in front of the last two have one index each.
        let leading = match kept.iter().all(|i| whole(*i)) {
            true if !column_of_one => 0,
            _ => rank.saturating_sub(if column_of_one { 1 } else { 2 }),
        };
        let mut modes = Vec::with_capacity(rank);
        for (n, i) in kept.into_iter().enumerate() {
            let (offset, size) = (&part.offsets[i], &part.sizes[i]);
            if n < leading {
                if size.constant != Some(1) {
                    return not_read(
                        span,
                        "a part of more than two modes whose first extents are not 1 is not read here",
                    );
                }
                modes.push(offset.text.clone());
                continue;
            }
            modes.push(match (whole(i), size.constant, offset.constant) {
                (true, ..) => "_".to_string(),
                (_, Some(n), Some(at)) => format!("{at} .. {}", at.saturating_add(n)),
                _ => {
                    let at = self.settled(offset, span);
                    format!("{at} .. {at} + {}", size.text)
                }
            });
        }
        let text = match modes.iter().all(|m| m == "_") {
            true => part.view.text.clone(),
            false => format!("{}[{}]", part.view.text, modes.join(", ")),
        };
        Ok(if rank - leading == 1 && (column && rank == 1 || column_of_one) { format!("col({text})") } else { text })
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
