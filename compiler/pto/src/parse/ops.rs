//! Operations, by the form of their row.

use super::{Parser, Res};
use crate::lexer::{Tok, Word};
use crate::ops::{self, Count, Dps, Element, Form, Kind, OPS, Slot};
use crate::tree::{Op, Operand, ResultName, Value, ValueForm};
use crate::types::Typed;
use ptoc_diagnostics::{Diagnostic, codes, suggest};

/// The slot of an operand whose type was not seen yet.
pub(super) const UNPLACED: &str = "";

/// Dialects of MLIR that stand beside `pto` in what PTOAS takes or makes, and are not read.
const OTHER_DIALECTS: [&str; 7] = ["builtin", "memref", "cf", "math", "vector", "tensor", "emitc"];

/// The operation that binds a tile to an address: PTOAS's gives another tile, those of pto-isa's pages give nothing.
const REBINDS: &str = "pto.tassign";

impl Parser<'_> {
    pub(super) fn op(&mut self) -> Res<Op> {
        let start = self.token.start;
        let results = self.result_names()?;
        let (name, name_span) = (self.word(), self.here());
        if self.token.tok == Tok::Str {
            let message = "operations in MLIR's generic form are not read";
            let d = Diagnostic::error(codes::PTO_NOT_READ, name_span, message);
            return self.report(d.with_help("write it in the dialect's own form, as PTOAS prints it"));
        }
        if self.token.tok != Tok::Name {
            return self.fail("expected an operation, as in `pto.tadd`".into());
        }
        // The basic form leaves out the dialect's name.
        let has_basic = |op: &ops::Op| matches!(op.form, Form::Dps(_)) || op.name == REBINDS && results.is_empty();
        let basic = !name.starts_with("pto.") && ops::basic(name).is_some_and(has_basic);
        let Some(row) = (if basic { ops::basic(name) } else { ops::lookup(name) }) else {
            let dialect = name.split_once('.').map_or("", |(dialect, _)| dialect);
            if OTHER_DIALECTS.contains(&dialect) {
                let message = format!("`{name}` is not read: it is of MLIR's dialect `{dialect}`");
                return self.wrong(codes::PTO_NOT_READ, name_span, message);
            }
            if ops::is_later(name) {
                let message = format!("`{name}` is not read: it is of later versions of PTOAS");
                return self.wrong(codes::PTO_NOT_READ, name_span, message);
            }
            let mut d = Diagnostic::error(codes::PTO_UNKNOWN, name_span, format!("there is no operation `{name}`"));
            if let Some(near) = suggest(name, OPS.iter().map(|op| op.name)) {
                d = d.with_help(format!("did you mean `{near}`?"));
            }
            return self.report(d);
        };
        self.advance();
        let mut op = Op {
            values: None,
            results,
            row,
            elided: !name.contains('.') && !basic,
            name_span,
            operands: Vec::new(),
            attrs: Vec::new(),
            result_types: Vec::new(),
            regions: Vec::new(),
            span: name_span,
            source: None,
        };
        match &row.form {
            _ if row.name == REBINDS && op.results.is_empty() => self.rebinding(&mut op, basic)?,
            Form::Dps(dps) if basic || self.token.tok == Tok::Value => self.values_form(&mut op, dps, basic)?,
            Form::Dps(dps) => self.dps(&mut op, dps)?,
            Form::Pattern(elements) => self.pattern(&mut op, elements)?,
            Form::Code => self.code(&mut op)?,
        }
        op.source = self.source()?;
        op.span = self.since(start);
        Ok(op)
    }

    /// `tassign %t, %n : T, index` or `ins(%t, %n : T, i64)`: the forms of pto-isa's pages, which bind a tile anew.
    fn rebinding(&mut self, op: &mut Op, basic: bool) -> Res<()> {
        let buffers = !basic && self.eat("ins");
        if buffers {
            self.expect("(", "behind `ins`")?;
        }
        let tile = self.value()?;
        self.expect(",", "and the address")?;
        let addr = self.value()?;
        self.expect(":", "and the types, as in `: !pto.tile_buf<vec, 16x64xf32>, i64`")?;
        let own = self.ty()?;
        self.expect(",", "and the type of the address")?;
        let types = vec![own, self.ty()?];
        if buffers {
            self.expect(")", "to end `ins(`")?;
        } else {
            let types = types.clone();
            op.values = Some(Box::new(ValueForm { basic, bracketed: 0, types, parens: false, arrow: false }));
        }
        let operands = [("tile", tile), ("addr", addr)].into_iter().zip(types);
        op.operands.extend(operands.map(|((slot, value), ty)| Operand { slot, value, ty: Some(ty) }));
        Ok(())
    }

    /// `%a, %b:2 =`
    fn result_names(&mut self) -> Res<Vec<ResultName>> {
        let mut results = Vec::new();
        while self.token.tok == Tok::Value {
            let (name, span) = self.value_name("a result")?;
            let mut count = None;
            if self.eat(":") {
                count = Some(match self.word().parse() {
                    Ok(n) if self.token.tok == Tok::Int && n <= 64 => n,
                    _ => return self.fail("expected the number of results, at most 64".into()),
                });
                self.advance();
            }
            results.push(ResultName { name, count, span });
            if !self.eat(",") {
                self.expect("=", "behind what the operation defines")?;
                break;
            }
        }
        Ok(results)
    }

    // ---- destination-passing style ---------------------------------------------------------------------------------

    fn dps(&mut self, op: &mut Op, dps: &Dps) -> Res<()> {
        self.expect("ins", "and what is read, as in `ins(%a : T)`")?;
        self.group(op, &dps.ins)?;
        self.expect("outs", "and what is written, as in `outs(%d : T)`")?;
        self.group(op, &dps.outs)?;
        // `pad_mode = ..` and `maskPattern = ..` may stand without braces.
        while self.token.tok == Tok::Name && dps.attrs.contains(&self.word()) {
            let attr = self.attr()?;
            op.attrs.push(attr);
        }
        if self.is("{") {
            let attrs = self.dict()?;
            op.attrs.extend(attrs);
        }
        Ok(())
    }

    /// `(%a, %b {attributes} : T, T)`, put into the slots.
    fn group(&mut self, op: &mut Op, slots: &[Slot]) -> Res<()> {
        let start = self.token.start;
        self.expect("(", "to begin the operands")?;
        let mut operands: Vec<Operand> = Vec::new();
        while self.token.tok == Tok::Value {
            let value = self.value()?;
            operands.push(Operand { slot: UNPLACED, value, ty: None });
            if !self.eat(",") {
                break;
            }
        }
        if self.is("{") {
            let attrs = self.dict()?;
            op.attrs.extend(attrs);
        }
        self.expect(":", "and the operands' types")?;
        let mut types = vec![self.ty()?];
        while self.eat(",") {
            if self.token.tok == Tok::Value {
                let value = self.value()?;
                operands.push(Operand { slot: UNPLACED, value, ty: None });
                self.expect(":", "and the operand's type")?;
            }
            types.push(self.ty()?);
        }
        self.expect(")", "or `,` here")?;
        if types.len() != operands.len() {
            let message = format!("{} operands have {} types", operands.len(), types.len());
            return self.wrong(codes::PTO_TYPE, self.since(start), message);
        }
        for (operand, ty) in operands.iter_mut().zip(types) {
            operand.ty = Some(ty);
        }
        self.place_operands(op, slots, operands, start)
    }

    /// Puts operands into slots: one that may be left out is taken if there are operands enough and its kind fits.
    fn place_operands(&mut self, op: &mut Op, slots: &[Slot], operands: Vec<Operand>, start: usize) -> Res<()> {
        let needed = |slots: &[Slot]| slots.iter().filter(|s| s.count == Count::One).count();
        let total = operands.len();
        let mut left = operands.into_iter().peekable();
        for (i, slot) in slots.iter().enumerate() {
            let behind = needed(&slots[i + 1..]);
            loop {
                let spare = slot.count == Count::One || left.len() > behind;
                let Some(mut operand) = left.next_if(|o| spare && (slot.count == Count::One || fits(slot, o))) else {
                    if slot.count == Count::One {
                        let message = format!("`{}` has no operand `{}` here", op.row.name, slot.name);
                        return self.wrong(codes::PTO_TYPE, self.since(start), message);
                    }
                    break;
                };
                if !fits(slot, &operand) {
                    return self.misplaced(op, slot, &operand);
                }
                operand.slot = slot.name;
                op.operands.push(operand);
                if slot.count != Count::Many {
                    break;
                }
            }
        }
        match left.next() {
            None => Ok(()),
            Some(more) => {
                let placed = total - left.len() - 1;
                let message = format!("`{}` has {placed} operands here, and this is one more", op.row.name);
                self.wrong(codes::PTO_TYPE, more.value.span, message)
            }
        }
    }

    fn misplaced(&mut self, op: &Op, slot: &Slot, operand: &Operand) -> Res<()> {
        let what = match slot.kind {
            Kind::Shaped => "a tile or a view",
            Kind::Scalar => "a number",
            Kind::Index => "an `index`",
            Kind::Any => "a tile or a number",
        };
        let ty = operand.ty.as_ref().map(|t| t.ty.with_article()).unwrap_or_default();
        let message = format!("operand `{}` of `{}` is {what}", slot.name, op.row.name);
        let d = Diagnostic::error(codes::PTO_TYPE, operand.value.span, message);
        self.report(d.with_label(format!("this is {ty}")))
    }

    // ---- assembly formats ------------------------------------------------------------------------------------------

    fn pattern(&mut self, op: &mut Op, elements: &'static [Element]) -> Res<()> {
        elements.iter().try_for_each(|element| self.element_of(op, element))
    }

    fn element_of(&mut self, op: &mut Op, element: &'static Element) -> Res<()> {
        match element {
            Element::Literal(word) => self.expect(word, &format!("in `{}`", op.row.name)),
            Element::Operand(slot, Count::Many) => {
                while self.token.tok == Tok::Value {
                    let value = self.value()?;
                    op.operands.push(Operand { slot, value, ty: None });
                    if !self.eat(",") {
                        break;
                    }
                }
                Ok(())
            }
            Element::Operand(slot, _) => {
                let value = self.value()?;
                op.operands.push(Operand { slot, value, ty: None });
                Ok(())
            }
            Element::Attr(name) => {
                let start = self.token.start;
                // An event may be a value where it is mostly a number.
                if self.token.tok == Tok::Value {
                    let value = self.value()?;
                    op.operands.push(Operand { slot: name, value, ty: None });
                    return Ok(());
                }
                let value = Some(self.attr_value()?);
                op.attrs.push(crate::attr::Attr { name: Word::new(name), value, span: self.since(start) });
                Ok(())
            }
            Element::Type(of) => self.type_of(op, of),
            Element::Dict if self.is("{") => {
                let attrs = self.dict()?;
                op.attrs.extend(attrs);
                Ok(())
            }
            Element::Dict => Ok(()),
            Element::Group(inner) if self.begins(inner) => self.pattern(op, inner),
            Element::Group(_) => Ok(()),
            Element::Region => {
                let region = self.region()?;
                op.regions.push(region);
                Ok(())
            }
        }
    }

    /// Whether what may be left out is there: its first word, or two if the first is a comma.
    fn begins(&mut self, elements: &[Element]) -> bool {
        let matches = |p: &Self, e: Option<&Element>| match e {
            Some(Element::Literal(word)) => p.is(word),
            Some(Element::Operand(..)) => p.token.tok == Tok::Value,
            _ => true,
        };
        if !matches(self, elements.first()) {
            return false;
        }
        if !matches!(elements.first(), Some(Element::Literal(","))) {
            return true;
        }
        let saved = (self.token, self.taken);
        self.advance();
        let both = matches(self, elements.get(1));
        (self.token, self.taken) = saved;
        both
    }

    /// The type of the operands in a slot, or of the result.
    fn type_of(&mut self, op: &mut Op, of: &str) -> Res<()> {
        let places: Vec<usize> = (0..op.operands.len()).filter(|i| op.operands[*i].slot == of).collect();
        if places.is_empty() {
            let ty = self.ty()?;
            op.result_types.push(ty);
            return Ok(());
        }
        for (n, place) in places.into_iter().enumerate() {
            if n > 0 {
                self.expect(",", "and the next operand's type")?;
            }
            op.operands[place].ty = Some(self.ty()?);
        }
        Ok(())
    }

    /// Values with commas.
    pub(super) fn values(&mut self, slot: &'static str, op: &mut Op) -> Res<()> {
        while self.token.tok == Tok::Value {
            let value: Value = self.value()?;
            op.operands.push(Operand { slot, value, ty: None });
            if !self.eat(",") {
                break;
            }
        }
        Ok(())
    }
}

fn fits(slot: &Slot, operand: &Operand) -> bool {
    let Some(Typed { ty, .. }) = &operand.ty else { return true };
    match slot.kind {
        Kind::Any => true,
        Kind::Shaped => !ty.is_scalar(),
        Kind::Scalar => ty.is_scalar(),
        Kind::Index => *ty == crate::types::Type::Index,
    }
}
