//! Tree to text, as PTOAS prints it: one operation a line, two spaces a level.

use crate::attr::{Attr, AttrValue, dict};
use crate::ops::{Dps, Element, Form};
use crate::tree::{BlockArg, Function, Item, Module, Op, Operand, Region, Value};
use crate::types::Typed;
use std::fmt::Write as _;

/// The text of a module. What is parsed from it is the same tree, but for places.
pub fn print(module: &Module) -> String {
    let mut p = Printer { out: String::new(), depth: 0 };
    match module.written {
        true => p.module(module),
        false => p.items(&module.items),
    }
    p.out
}

struct Printer {
    out: String,
    depth: usize,
}

// Writing to a String cannot fail, here and below.
impl Printer {
    fn indent(&mut self) {
        let _ = write!(self.out, "{:width$}", "", width = 2 * self.depth);
    }

    fn module(&mut self, module: &Module) {
        self.indent();
        self.out.push_str("module ");
        self.attributes(&module.attrs);
        self.out.push_str("{\n");
        self.depth += 1;
        self.items(&module.items);
        self.depth -= 1;
        self.indent();
        self.out.push_str("}\n");
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Function(f) => self.function(f),
                Item::Module(m) => self.module(m),
            }
        }
    }

    fn attributes(&mut self, attrs: &[Attr]) {
        if !attrs.is_empty() {
            self.out.push_str("attributes ");
            let _ = dict(&mut self.out, attrs);
            self.out.push(' ');
        }
    }

    fn function(&mut self, f: &Function) {
        self.indent();
        self.out.push_str("func.func ");
        if let Some(visibility) = &f.visibility {
            let _ = write!(self.out, "{visibility} ");
        }
        let _ = write!(self.out, "@{}(", f.name);
        for (i, param) in f.params.iter().enumerate() {
            self.comma(i);
            self.block_arg(param);
            if !param.attrs.is_empty() {
                self.out.push(' ');
                let _ = dict(&mut self.out, &param.attrs);
            }
        }
        self.out.push_str(") ");
        if !f.results.is_empty() {
            self.out.push_str("-> ");
            self.type_list(&f.results);
            self.out.push(' ');
        }
        self.attributes(&f.attrs);
        match &f.body {
            Some(body) => self.region(body, false),
            None => {
                self.out.pop();
            }
        }
        self.source(&f.source);
        self.out.push('\n');
    }

    fn source(&mut self, source: &Option<crate::attr::Source>) {
        if let Some(source) = source {
            let _ = write!(self.out, " {source}");
        }
    }

    fn block_arg(&mut self, arg: &BlockArg) {
        let _ = write!(self.out, "%{}", arg.name);
        if let Some(ty) = &arg.ty {
            let _ = write!(self.out, ": {}", ty.ty);
        }
    }

    /// `{ .. }`, the brace on the line of what it belongs to. `named`: the arguments stand in a label.
    fn region(&mut self, region: &Region, named: bool) {
        self.out.push_str("{\n");
        if named && !region.args.is_empty() {
            self.indent();
            self.out.push_str("^bb0(");
            for (i, arg) in region.args.iter().enumerate() {
                self.comma(i);
                self.block_arg(arg);
            }
            self.out.push_str("):\n");
        }
        self.depth += 1;
        region.ops.iter().for_each(|op| self.op(op));
        self.depth -= 1;
        self.indent();
        self.out.push('}');
    }

    fn comma(&mut self, i: usize) {
        if i > 0 {
            self.out.push_str(", ");
        }
    }

    fn value(&mut self, value: &Value) {
        let _ = write!(self.out, "%{}", value.name);
        if let Some(index) = value.index {
            let _ = write!(self.out, "#{index}");
        }
    }

    fn op(&mut self, op: &Op) {
        self.indent();
        for (i, result) in op.results.iter().enumerate() {
            self.comma(i);
            let _ = write!(self.out, "%{}", result.name);
            if let Some(count) = result.count {
                let _ = write!(self.out, ":{count}");
            }
        }
        if !op.results.is_empty() {
            self.out.push_str(" = ");
        }
        let basic = op.values.as_ref().is_some_and(|v| v.basic);
        self.out.push_str(match op.row.name {
            name if op.elided => name.trim_start_matches("func."),
            name if basic => name.trim_start_matches("pto."),
            name => name,
        });
        match &op.row.form {
            _ if op.values.is_some() => self.values(op),
            // It binds a tile anew, as pto-isa's pages have it.
            _ if op.row.name == "pto.tassign" && op.results.is_empty() => {
                self.out.push_str(" ins(");
                self.group(&op.operands.iter().collect::<Vec<_>>(), &[]);
                self.out.push(')');
            }
            Form::Dps(dps) => self.dps(op, dps),
            Form::Pattern(elements) => {
                let mut spaced = true;
                // Attributes that stand in places of their own are not in the dictionary.
                let placed = attrs_of(elements);
                self.pattern(op, elements, &placed, &mut spaced);
            }
            Form::Code => self.code(op),
        }
        self.source(&op.source);
        self.out.push('\n');
    }

    /// `%a, %b {..} : (T, T) -> T`
    fn values(&mut self, op: &Op) {
        let Some(form) = &op.values else { return };
        let plain = op.operands.len().saturating_sub(form.bracketed);
        for (i, operand) in op.operands.iter().enumerate() {
            self.out.push_str(match i {
                0 => " ",
                _ if i == plain => "[",
                _ => ", ",
            });
            self.value(&operand.value);
        }
        if form.bracketed > 0 {
            self.out.push(']');
        }
        if !op.attrs.is_empty() {
            self.out.push(' ');
            let _ = dict(&mut self.out, &op.attrs);
        }
        self.out.push_str(if form.parens { " : (" } else { " : " });
        self.type_list_bare(form.types.iter());
        if form.parens {
            self.out.push(')');
        }
        if form.arrow {
            self.out.push_str(" -> ");
            self.type_list(&op.result_types);
        }
    }

    fn dps(&mut self, op: &Op, dps: &Dps) {
        let of = |slots: &[crate::ops::Slot]| -> Vec<&Operand> {
            op.operands.iter().filter(|o| slots.iter().any(|s| s.name == o.slot)).collect()
        };
        self.out.push_str(" ins(");
        let apart = |o: &&Operand| dps.ins.iter().any(|s| s.apart && s.name == o.slot);
        let (behind, together): (Vec<_>, Vec<_>) = of(&dps.ins).into_iter().partition(apart);
        self.group(&together, if dps.inside { &op.attrs } else { &[] });
        for operand in behind {
            self.out.push_str(", ");
            self.group(&[operand], &[]);
        }
        self.out.push_str(") outs(");
        self.group(&of(&dps.outs), &[]);
        self.out.push(')');
        if !dps.inside && !op.attrs.is_empty() {
            self.out.push(' ');
            let _ = dict(&mut self.out, &op.attrs);
        }
    }

    fn group(&mut self, operands: &[&Operand], attrs: &[Attr]) {
        for (i, operand) in operands.iter().enumerate() {
            self.comma(i);
            self.value(&operand.value);
        }
        if !attrs.is_empty() {
            self.out.push_str(if attrs.iter().any(|a| a.name == "maskPattern") { ", " } else { " " });
            let _ = dict(&mut self.out, attrs);
        }
        self.out.push_str(" : ");
        self.type_list_bare(operands.iter().filter_map(|o| o.ty.as_ref()));
    }

    fn type_list_bare<'a>(&mut self, types: impl Iterator<Item = &'a Typed>) {
        for (i, ty) in types.enumerate() {
            self.comma(i);
            let _ = write!(self.out, "{}", ty.ty);
        }
    }

    /// One type, or several in parentheses.
    fn type_list(&mut self, types: &[Typed]) {
        match types {
            [one] => {
                let _ = write!(self.out, "{}", one.ty);
            }
            _ => {
                self.out.push('(');
                self.type_list_bare(types.iter());
                self.out.push(')');
            }
        }
    }

    // ---- assembly formats ------------------------------------------------------------------------------------------

    /// `spaced`: whether a space goes in front of what is next.
    fn pattern(&mut self, op: &Op, elements: &[Element], placed: &[&str], spaced: &mut bool) {
        for element in elements {
            match element {
                Element::Literal(word) => self.literal(word, spaced),
                Element::Operand(slot, _) => {
                    for (i, operand) in op.operands_of(slot).enumerate() {
                        if i > 0 {
                            self.out.push(',');
                        }
                        self.space(spaced);
                        self.value(&operand.value);
                        *spaced = true;
                    }
                }
                Element::Attr(name) => {
                    self.space(spaced);
                    match (op.attr(name).and_then(|a| a.value.as_ref()), op.operand(name)) {
                        (Some(value), _) => {
                            let _ = write!(self.out, "{value}");
                        }
                        (None, Some(operand)) => self.value(&operand.value),
                        (None, None) => {}
                    }
                }
                Element::Type(of) => {
                    self.space(spaced);
                    let mut types: Vec<&Typed> = op.operands_of(of).filter_map(|o| o.ty.as_ref()).collect();
                    // A pattern has one result with a type of its own, or none.
                    if op.operand(of).is_none() {
                        types.extend(op.result_types.first());
                    }
                    self.type_list_bare(types.into_iter());
                }
                Element::Dict => {
                    let rest: Vec<Attr> =
                        op.attrs.iter().filter(|a| !placed.contains(&a.name.as_str())).cloned().collect();
                    if !rest.is_empty() {
                        self.space(spaced);
                        let _ = dict(&mut self.out, &rest);
                    }
                }
                Element::Group(inner) if has(op, inner) => self.pattern(op, inner, placed, spaced),
                Element::Group(_) => {}
                Element::Region => {
                    self.space(spaced);
                    if let Some(region) = op.regions.first() {
                        self.region(region, true);
                    }
                }
            }
        }
    }

    fn space(&mut self, spaced: &mut bool) {
        if *spaced {
            self.out.push(' ');
        }
        *spaced = true;
    }

    fn literal(&mut self, word: &str, spaced: &mut bool) {
        let tight =
            matches!(word, "," | ")" | "]" | "}") || (matches!(word, "[" | "(") && !self.out.ends_with(['=', '}']));
        if *spaced && !tight {
            self.out.push(' ');
        }
        self.out.push_str(word);
        *spaced = !matches!(word, "(" | "[" | "{");
    }

    // ---- control flow ----------------------------------------------------------------------------------------------

    fn code(&mut self, op: &Op) {
        match op.row.name {
            "arith.constant" => {
                if let Some(value) = op.attr("value").and_then(|a| a.value.as_ref()) {
                    let _ = write!(self.out, " {value}");
                }
            }
            "func.call" => self.call(op),
            "scf.for" => self.for_loop(op),
            "scf.if" => {
                self.out.push(' ');
                op.operands.iter().for_each(|o| self.value(&o.value));
                if !op.result_types.is_empty() {
                    self.out.push_str(" -> (");
                    self.type_list_bare(op.result_types.iter());
                    self.out.push(')');
                }
                self.out.push(' ');
                for (i, region) in op.regions.iter().enumerate() {
                    self.out.push_str(if i > 0 { " else " } else { "" });
                    self.region(region, false);
                }
                self.dict_behind(op);
            }
            _ => self.while_loop(op),
        }
    }

    fn dict_behind(&mut self, op: &Op) {
        if !op.attrs.is_empty() {
            self.out.push(' ');
            let _ = dict(&mut self.out, &op.attrs);
        }
    }

    fn call(&mut self, op: &Op) {
        if let Some(AttrValue::Symbol(callee)) = op.attr("callee").and_then(|a| a.value.as_ref()) {
            let _ = write!(self.out, " @{callee}(");
        }
        for (i, operand) in op.operands.iter().enumerate() {
            self.comma(i);
            self.value(&operand.value);
        }
        self.out.push_str(") : (");
        self.type_list_bare(op.operands.iter().filter_map(|o| o.ty.as_ref()));
        self.out.push_str(") -> ");
        self.type_list(&op.result_types);
    }

    /// `(%a = %b, ..)`
    fn assignments(&mut self, op: &Op, args: &[BlockArg]) {
        self.out.push('(');
        for (i, (arg, init)) in args.iter().zip(op.operands_of("inits")).enumerate() {
            self.comma(i);
            let _ = write!(self.out, "%{} = ", arg.name);
            self.value(&init.value);
        }
        self.out.push(')');
    }

    fn for_loop(&mut self, op: &Op) {
        let [region] = &op.regions[..] else { return };
        let Some((index, carried)) = region.args.split_first() else { return };
        let _ = write!(self.out, " %{}", index.name);
        for (word, slot) in [("=", "lower"), ("to", "upper"), ("step", "step")] {
            let _ = write!(self.out, " {word} ");
            op.operands_of(slot).for_each(|o| self.value(&o.value));
        }
        if !carried.is_empty() {
            self.out.push_str(" iter_args");
            self.assignments(op, carried);
            self.out.push_str(" -> (");
            self.type_list_bare(op.result_types.iter());
            self.out.push(')');
        }
        if let Some(ty) = &index.ty {
            let _ = write!(self.out, " : {}", ty.ty);
        }
        self.out.push(' ');
        self.region(region, false);
        self.dict_behind(op);
    }

    fn while_loop(&mut self, op: &Op) {
        let [head, body] = &op.regions[..] else { return };
        self.out.push(' ');
        if !head.args.is_empty() {
            self.assignments(op, &head.args);
            self.out.push(' ');
        }
        self.out.push_str(": (");
        self.type_list_bare(head.args.iter().filter_map(|a| a.ty.as_ref()));
        self.out.push_str(") -> ");
        self.type_list(&op.result_types);
        self.out.push(' ');
        self.region(head, false);
        self.out.push_str(" do ");
        self.region(body, true);
        if !op.attrs.is_empty() {
            self.out.push_str(" attributes ");
            let _ = dict(&mut self.out, &op.attrs);
        }
    }
}

/// Attributes that have places of their own in an assembly format.
fn attrs_of(elements: &[Element]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for element in elements {
        match element {
            Element::Attr(name) => names.push(*name),
            Element::Group(inner) => names.extend(attrs_of(inner)),
            _ => {}
        }
    }
    names
}

/// Whether what may be left out is there: its operand or attribute is.
fn has(op: &Op, elements: &[Element]) -> bool {
    elements.iter().any(|element| match element {
        Element::Operand(slot, _) => op.operand(slot).is_some(),
        Element::Attr(name) => op.attr(name).is_some(),
        Element::Type("result") => !op.result_types.is_empty(),
        _ => false,
    })
}
