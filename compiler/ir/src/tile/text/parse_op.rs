//! Parsing statements.

use super::lexer::Tok;
use super::parse::{Def, Parser, Res};
use crate::scalar;
use crate::tile::verify::MAX_DEPTH;
use crate::tile::{
    Const, EventRef, For, If, Inst, InstAttrs, Op, Operand, PrintPart, Region, Scope, Stmt, SyncOp, TileRef, Ty, Value,
    ViewRef, While,
};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::{AtomicOp, BinOp, CmpOp, Factors, Oob, Pipe, RoundMode, UnOp, lookup};

impl<'t> Parser<'t> {
    /// `{ statements }`
    pub(super) fn block(&mut self, depth: usize) -> Res<Region> {
        if depth > MAX_DEPTH {
            let message = format!("regions are nested more than {MAX_DEPTH} deep");
            return Err(Diagnostic::error(codes::IR_TOO_DEEP, self.place(), message).into());
        }
        self.expect('{')?;
        let mut region = Region::new();
        while !self.eat('}') {
            region.push(self.stmt(depth)?);
        }
        Ok(region)
    }

    fn stmt(&mut self, depth: usize) -> Res<Stmt> {
        if self.is_value() {
            return self.definition();
        }
        let (word, place) = self.word("a statement")?;
        match word {
            "for" => self.for_stmt(depth),
            "if" => self.if_stmt(depth),
            "while" => self.while_stmt(depth),
            "scope" => self.scope_stmt(depth),
            _ => {
                let op = self.effect(word, place)?;
                Ok(Stmt { op, span: self.end()? })
            }
        }
    }

    #[inline(never)]
    fn definition(&mut self) -> Res<Stmt> {
        let def = self.def()?;
        self.expect('=')?;
        let op = self.result(&def)?;
        let span = self.end()?;
        self.define(def, span)?;
        Ok(Stmt { op, span })
    }

    // One function a construct: only the frames of those that are open are on the stack.

    #[inline(never)]
    fn for_stmt(&mut self, depth: usize) -> Res<Stmt> {
        let label = self.entity('l')?;
        let def = self.def()?;
        let index = def.value;
        self.expect_word("in")?;
        let lo = self.value()?;
        self.expect('…')?;
        let hi = self.value()?;
        let stages = if self.eat_word("stages") { self.number()? } else { 1 };
        let span = self.end()?;
        self.define(def, span)?;
        let body = self.block(depth + 1)?;
        Ok(Stmt { op: Op::For(Box::new(For { label, index, lo, hi, stages, body })), span })
    }

    #[inline(never)]
    fn if_stmt(&mut self, depth: usize) -> Res<Stmt> {
        let cond = self.value()?;
        let span = self.end()?;
        let then = self.block(depth + 1)?;
        let els = if self.eat_word("else") { self.block(depth + 1)? } else { Region::new() };
        Ok(Stmt { op: Op::If(Box::new(If { cond, then, els })), span })
    }

    #[inline(never)]
    fn while_stmt(&mut self, depth: usize) -> Res<Stmt> {
        let label = self.entity('l')?;
        let span = self.end()?;
        let head = self.block(depth + 1)?;
        self.expect_word("do")?;
        let cond = self.value()?;
        let body = self.block(depth + 1)?;
        Ok(Stmt { op: Op::While(Box::new(While { label, head, cond, body })), span })
    }

    #[inline(never)]
    fn scope_stmt(&mut self, depth: usize) -> Res<Stmt> {
        let label = self.entity('l')?;
        let role = if self.eat_word("role") { Some(self.entity('r')?) } else { None };
        let span = self.end()?;
        let body = self.block(depth + 1)?;
        Ok(Stmt { op: Op::Scope(Box::new(Scope { label, role, body })), span })
    }

    fn comma(&mut self) -> Res<Value> {
        self.expect(',')?;
        self.value()
    }

    /// A statement with a result, after its `=`.
    fn result(&mut self, def: &Def) -> Res<Op> {
        let dst = def.value;
        let (word, place) = self.word("an operation")?;
        if let Some(op) = UnOp::from_name(word) {
            return Ok(Op::Unary { dst, op, a: self.value()? });
        }
        if let Some(op) = BinOp::from_name(word) {
            return Ok(Op::Binary { dst, op, a: self.value()?, b: self.comma()? });
        }
        if let Some(op) = CmpOp::from_name(word) {
            return Ok(Op::Compare { dst, op, a: self.value()?, b: self.comma()? });
        }
        match word {
            "const" => {
                let ty = if self.eat('.') { self.ty()? } else { Self::def_type(def) };
                Ok(Op::Const { dst, value: self.literal(ty)? })
            }
            "select" => Ok(Op::Select { dst, cond: self.value()?, a: self.comma()?, b: self.comma()? }),
            "convert" => {
                self.expect('.')?;
                let (mode, place) = self.word("a rounding mode")?;
                let Some(round) = RoundMode::from_name(mode) else {
                    return self.unknown(place, format!("`{mode}` is no rounding mode"));
                };
                let saturate = self.eat('.');
                if saturate {
                    self.expect_word("sat")?;
                }
                Ok(Op::Convert { dst, a: self.value()?, round, saturate })
            }
            "bitcast" => Ok(Op::Bitcast { dst, a: self.value()? }),
            "get" => Ok(Op::Get { dst, var: self.entity('m')? }),
            "load" => {
                let tensor = self.entity('g')?;
                Ok(Op::Load { dst, tensor, offset: self.bracketed()? })
            }
            "atomic" => {
                self.expect('.')?;
                let (name, place) = self.word("an atomic operation")?;
                let Some(op) = AtomicOp::from_name(name) else {
                    return self.unknown(place, format!("`{name}` is no atomic operation"));
                };
                let tensor = self.entity('g')?;
                let offset = self.bracketed()?;
                let value = self.comma()?;
                let expected = if self.eat_word("expect") { Some(self.value()?) } else { None };
                Ok(Op::Atomic { dst, op, tensor, offset, expected, value })
            }
            "tileget" => Ok(Op::TileGet { dst, tile: self.tile_ref()?, row: self.comma()?, col: self.comma()? }),
            _ => self.unknown(place, format!("`{word}` is no operation with a result")),
        }
    }

    /// A statement without a result and without regions, after its first word.
    fn effect(&mut self, word: &'t str, place: Span) -> Res<Op> {
        match word {
            "set" => Ok(Op::Set { var: self.entity('m')?, value: self.comma()? }),
            "store" => {
                let tensor = self.entity('g')?;
                Ok(Op::Store { tensor, offset: self.bracketed()?, value: self.comma()? })
            }
            "tileset" => {
                let tile = self.tile_ref()?;
                Ok(Op::TileSet { tile, row: self.comma()?, col: self.comma()?, value: self.comma()? })
            }
            "alloc" => Ok(Op::Alloc { tile: self.entity('t')? }),
            "assign" => {
                let tile = self.entity('t')?;
                Ok(Op::Assign { tile, element: self.element()?, addr: self.comma()? })
            }
            "copy" => self.copy(),
            "mma" => self.mma(),
            "sync" => Ok(Op::Sync(self.sync()?)),
            "check" => {
                let check = self.entity('c')?;
                let cond = self.comma()?;
                let mut args = Vec::new();
                while *self.peek() == Tok::Punct(',') {
                    args.push(self.comma()?);
                }
                Ok(Op::Check { cond, check, args })
            }
            "print" => {
                let mut parts = Vec::new();
                // Nothing but a part can follow `print`, and an empty one is legal.
                while matches!(self.peek(), Tok::Str(_)) || self.is_value() || self.is_tile() {
                    // `print` without parts, then a definition: `v3: ...` or `v3 "x": ...`.
                    if parts.is_empty() && self.starts_definition() {
                        break;
                    }
                    parts.push(match self.peek() {
                        Tok::Str(_) => PrintPart::Text(self.string()?),
                        _ if self.is_value() => PrintPart::Scalar(self.value()?),
                        _ => PrintPart::Tile(self.tile_ref()?),
                    });
                    if !self.eat(',') {
                        break;
                    }
                }
                Ok(Op::Print { parts })
            }
            "break" => Ok(Op::Break(self.entity('l')?)),
            "continue" => Ok(Op::Continue(self.entity('l')?)),
            "leave" => Ok(Op::Leave(self.entity('l')?)),
            _ => self.inst(word, place),
        }
    }

    /// `set e0#v1`, `barrier V`, `expect e0, v2`
    fn sync(&mut self) -> Res<SyncOp> {
        let (word, place) = self.word("a synchronisation")?;
        if word == "barrier" {
            if self.eat_word("all") {
                return Ok(SyncOp::Barrier(None));
            }
            return Ok(SyncOp::Barrier(Some(self.pipe()?)));
        }
        let known = ["set", "wait", "arrive", "expect", "arrive_expect", "complete", "wait_phase"];
        if !known.contains(&word) {
            return self.unknown(place, format!("`{word}` is no synchronisation"));
        }
        let event = EventRef { event: self.entity('e')?, element: self.element()? };
        Ok(match word {
            "set" => SyncOp::Set(event),
            "wait" => SyncOp::Wait(event),
            "arrive" => SyncOp::Arrive(event),
            "expect" => SyncOp::Expect(event, self.comma()?),
            "arrive_expect" => SyncOp::ArriveExpect(event, self.comma()?),
            "complete" => SyncOp::Complete(event, self.comma()?),
            _ => SyncOp::WaitPhase(event, self.comma()?),
        })
    }

    pub(super) fn pipe(&mut self) -> Res<Pipe> {
        let (word, place) = self.word("a pipe")?;
        match Pipe::from_name(word) {
            Some(pipe) => Ok(pipe),
            None => self.unknown(place, format!("`{word}` is no pipe")),
        }
    }

    fn bracketed(&mut self) -> Res<Value> {
        self.expect('[')?;
        let value = self.value()?;
        self.expect(']')?;
        Ok(value)
    }

    fn element(&mut self) -> Res<Option<Value>> {
        if self.eat('#') { self.value().map(Some) } else { Ok(None) }
    }

    /// `t0#v1[16x64 v2, v3 at v4, v5]`
    pub(super) fn tile_ref(&mut self) -> Res<TileRef> {
        let tile = self.entity('t')?;
        let element = self.element()?;
        self.expect('[')?;
        let rows = self.number()?;
        let cols = self.columns()?;
        let valid = (self.value()?, self.comma()?);
        let origin = if self.eat_word("at") { Some((self.value()?, self.comma()?)) } else { None };
        self.expect(']')?;
        Ok(TileRef { tile, element, origin, rows, cols, valid })
    }

    /// The `x64` of `16x64`.
    fn columns(&mut self) -> Res<u32> {
        let found = match self.peek() {
            Tok::Word(w) => w.strip_prefix('x').and_then(|n| n.parse().ok()),
            _ => None,
        };
        match found {
            Some(n) => {
                self.next();
                Ok(n)
            }
            None => self.wanted("columns such as `x64`"),
        }
    }

    /// `g0[v1 + (v2, v3):(v4, v5)]`
    fn view(&mut self) -> Res<ViewRef> {
        let tensor = self.entity('g')?;
        self.expect('[')?;
        let offset = self.value()?;
        self.expect('+')?;
        self.expect('(')?;
        let shape = self.list(')', Self::value)?;
        self.expect(':')?;
        self.expect('(')?;
        let strides = self.list(')', Self::value)?;
        self.expect(']')?;
        Ok(ViewRef { tensor, offset, shape, strides })
    }

    fn inst(&mut self, word: &str, place: Span) -> Res<Op> {
        let known = !word.bytes().any(|b| b.is_ascii_uppercase());
        let Some(instr) = lookup(&word.to_ascii_uppercase()).filter(|_| known) else {
            return self.unknown(place, format!("`{word}` is no statement and no instruction"));
        };
        let mut attrs = InstAttrs::default();
        while self.eat('.') {
            let (mode, place) = self.word("a mode")?;
            if let Some(cmp) = CmpOp::from_name(mode) {
                attrs.cmp = Some(cmp);
            } else if let Some(round) = RoundMode::from_name(mode) {
                attrs.round = Some(round);
            } else if let Some(factors) = Factors::from_name(mode) {
                attrs.factors = Some(factors);
            } else if let Some(oob) = Oob::from_name(mode) {
                attrs.oob = Some(oob);
            } else {
                match mode {
                    "sat" => attrs.saturate = Some(true),
                    "nosat" => attrs.saturate = Some(false),
                    "fold" => attrs.fold = Some(true),
                    "nofold" => attrs.fold = Some(false),
                    "rev" => attrs.reversed = true,
                    "atomic" => attrs.atomic = Some(AtomicOp::Add),
                    "atomic_max" => attrs.atomic = Some(AtomicOp::Max),
                    "atomic_min" => attrs.atomic = Some(AtomicOp::Min),
                    "step" => attrs.stepwise = true,
                    "relu" => attrs.relu = true,
                    _ => return self.unknown(place, format!("`{mode}` is no mode of an instruction")),
                }
            }
        }
        let mut operands = Vec::new();
        while self.is_tile() || self.is_tensor() || self.is_value() {
            if operands.is_empty() && self.starts_definition() {
                break;
            }
            operands.push(if self.is_tile() {
                Operand::Tile(self.tile_ref()?)
            } else if self.is_tensor() {
                Operand::View(self.view()?)
            } else {
                Operand::Scalar(self.value()?)
            });
            if !self.eat(',') {
                break;
            }
        }
        let mut scratch = Vec::new();
        if self.eat_word("scratch") {
            loop {
                scratch.push(self.tile_ref()?);
                if !self.eat(',') {
                    break;
                }
            }
        }
        Ok(Op::Inst(Box::new(Inst { instr, operands, scratch, attrs })))
    }

    /// Whether the next thing is `v3:` or `v3 "name":`, the start of another statement.
    fn starts_definition(&self) -> bool {
        self.is_value() && matches!(self.peek_after(), Tok::Punct(':') | Tok::Str(_))
    }

    /// A constant of the type.
    fn literal(&mut self, ty: Ty) -> Res<Const> {
        if self.eat_word("bits") {
            return Ok(Const { ty, bits: self.number()? });
        }
        let bits = match *self.peek() {
            Tok::Word("true") if ty == Ty::BOOL => Some(1),
            Tok::Word("false") if ty == Ty::BOOL => Some(0),
            Tok::Word("inf") => scalar::float(ty).map(|d| scalar::from_f32(d, f32::INFINITY)),
            Tok::Num(text) => match scalar::float(ty) {
                Some(d) => text.parse().ok().map(|x: f32| scalar::from_f32(d, x)),
                None => text.parse().ok().and_then(|n: i128| {
                    let bits = scalar::from_int(ty, n);
                    (ty != Ty::BOOL && scalar::to_int(ty, bits) == n).then_some(bits)
                }),
            },
            _ => None,
        };
        match bits {
            Some(bits) => {
                self.next();
                Ok(Const { ty, bits })
            }
            None => self.wanted(&format!("a constant of type {ty}")),
        }
    }
}
