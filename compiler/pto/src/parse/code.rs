//! Operations of MLIR with a syntax of their own: constants, calls, and control flow of `scf`.

use super::{Parser, Res};
use crate::attr::{Attr, AttrValue};
use crate::lexer::{Tok, Word};
use crate::tree::{BlockArg, Op, Operand, Value};
use ptoc_diagnostics::codes;

impl Parser<'_> {
    pub(super) fn code(&mut self, op: &mut Op) -> Res<()> {
        match op.row.name {
            "arith.constant" => self.constant(op),
            "func.call" => self.call(op),
            "scf.for" => self.for_loop(op),
            "scf.if" => self.conditional(op),
            _ => self.while_loop(op),
        }
    }

    fn constant(&mut self, op: &mut Op) -> Res<()> {
        if self.is("{") {
            op.attrs = self.dict()?;
        }
        let start = self.token.start;
        let value = self.attr_value()?;
        let typed = match &value {
            AttrValue::Int(_, ty) | AttrValue::Float(_, ty) => ty.is_some(),
            AttrValue::Bool(_) => true,
            _ => false,
        };
        if !typed {
            let span = self.since(start);
            if matches!(value, AttrValue::Other(_)) {
                return self.wrong(codes::PTO_NOT_READ, span, "a constant that is no number is not read");
            }
            return self.wrong(codes::PTO_SYNTAX, span, "a constant is a number and its type, as in `1 : index`");
        }
        op.attrs.push(Attr { name: Word::new("value"), value: Some(value), span: self.since(start) });
        Ok(())
    }

    /// `func.call @f(%a) : (T) -> T`
    fn call(&mut self, op: &mut Op) -> Res<()> {
        let span = self.here();
        let callee = self.take(Tok::Symbol, "the function's name, as in `@f`")?;
        let value = Some(AttrValue::Symbol(Word::new(&callee[1..])));
        op.attrs.push(Attr { name: Word::new("callee"), value, span });
        self.expect("(", "to begin the arguments")?;
        self.values("args", op)?;
        self.expect(")", "to end the arguments")?;
        if self.is("{") {
            let attrs = self.dict()?;
            op.attrs.extend(attrs);
        }
        let start = self.token.start;
        self.expect(":", "and the function's type")?;
        self.expect("(", "to begin the arguments' types")?;
        let types = self.list(")", |p| p.ty())?;
        if types.len() != op.operands.len() {
            let message = format!("{} arguments have {} types", op.operands.len(), types.len());
            return self.wrong(codes::PTO_TYPE, self.since(start), message);
        }
        for (operand, ty) in op.operands.iter_mut().zip(types) {
            operand.ty = Some(ty);
        }
        self.expect("->", "and the results' types, `()` if there are none")?;
        op.result_types = self.types()?;
        Ok(())
    }

    /// `scf.for %i = %lo to %hi step %s iter_args(%a = %b) -> (T) : i32 { .. }`
    fn for_loop(&mut self, op: &mut Op) -> Res<()> {
        let (name, span) = self.value_name("the loop's index, as in `%i`")?;
        let mut args = vec![BlockArg { name, span, ty: None, attrs: Vec::new() }];
        for (word, slot) in [("=", "lower"), ("to", "upper"), ("step", "step")] {
            self.expect(word, "in the head of the loop")?;
            let value = self.value()?;
            op.operands.push(Operand { slot, value, ty: None });
        }
        if self.eat("iter_args") {
            self.assignments(op, &mut args)?;
            self.expect("->", "and the types of what the loop carries")?;
            op.result_types = self.types()?;
        }
        if self.eat(":") {
            args[0].ty = Some(self.ty()?);
        }
        self.carried_types(op, &mut args, 1)?;
        let mut region = self.region()?;
        region.args = args;
        op.regions.push(region);
        self.dict_behind(op)
    }

    /// `(%a = %b, ..)`: arguments of a block and the values that they have at first.
    fn assignments(&mut self, op: &mut Op, args: &mut Vec<BlockArg>) -> Res<()> {
        self.expect("(", "and what the loop carries")?;
        let pairs = self.list(")", |p| {
            let (name, span) = p.value_name("an argument of the loop")?;
            p.expect("=", "and the value that it has at first")?;
            let value: Value = p.value()?;
            Ok((BlockArg { name, span, ty: None, attrs: Vec::new() }, value))
        })?;
        for (arg, value) in pairs {
            args.push(arg);
            op.operands.push(Operand { slot: "inits", value, ty: None });
        }
        Ok(())
    }

    /// Gives the arguments from `first` on the types of the results.
    fn carried_types(&mut self, op: &Op, args: &mut [BlockArg], first: usize) -> Res<()> {
        let carried = args.len() - first;
        if carried != op.result_types.len() {
            let message = format!("the loop carries {carried} values, and has {} types", op.result_types.len());
            return self.wrong(codes::PTO_TYPE, op.name_span, message);
        }
        for (arg, ty) in args[first..].iter_mut().zip(&op.result_types) {
            arg.ty = Some(ty.clone());
        }
        Ok(())
    }

    /// `scf.if %c -> (T) { .. } else { .. }`
    fn conditional(&mut self, op: &mut Op) -> Res<()> {
        let value = self.value()?;
        op.operands.push(Operand { slot: "condition", value, ty: None });
        if self.eat("->") {
            op.result_types = self.types()?;
        }
        let then = self.region()?;
        op.regions.push(then);
        if self.eat("else") {
            let els = self.region()?;
            op.regions.push(els);
        }
        self.dict_behind(op)
    }

    /// `scf.while (%a = %b) : (T) -> (T) { .. scf.condition(%c) %a : T } do { ^bb0(%a: T): .. }`
    fn while_loop(&mut self, op: &mut Op) -> Res<()> {
        let mut args = Vec::new();
        if self.is("(") {
            self.assignments(op, &mut args)?;
        }
        self.expect(":", "and the types of what the loop carries")?;
        self.expect("(", "to begin them")?;
        let before = self.list(")", |p| p.ty())?;
        self.expect("->", "and the types of the results")?;
        op.result_types = self.types()?;
        if before.len() != args.len() {
            let message = format!("the loop carries {} values, and has {} types", args.len(), before.len());
            return self.wrong(codes::PTO_TYPE, op.name_span, message);
        }
        for (arg, ty) in args.iter_mut().zip(before) {
            arg.ty = Some(ty);
        }
        let mut head = self.region()?;
        head.args = args;
        op.regions.push(head);
        self.expect("do", "and the loop's body")?;
        let body = self.region()?;
        op.regions.push(body);
        if self.eat("attributes") {
            op.attrs = self.dict()?;
        }
        Ok(())
    }

    fn dict_behind(&mut self, op: &mut Op) -> Res<()> {
        if self.is("{") {
            op.attrs = self.dict()?;
        }
        Ok(())
    }
}
