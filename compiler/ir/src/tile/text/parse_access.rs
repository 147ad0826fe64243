//! Parsing copies, matrix products and their sides.

use super::lexer::Tok;
use super::parse::{Parser, Res};
use crate::tile::{Affine, Copy, Elem, Guard, Mma, NestAccess, Op, Stored, Table, Value};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_isa::Oob;
use ptoc_layout::Swizzle;
use ptoc_tensor::DType;

impl Parser<'_> {
    /// `copy [v0, v1] side from side where v2 + (v3, v4) < v5 fill v6 covers`, after its first word.
    pub(super) fn copy(&mut self) -> Res<Op> {
        let extents = self.axes()?;
        let dst = self.access()?;
        self.expect_word("from")?;
        let src = self.access()?;
        let mut guards = Vec::new();
        while self.eat_word("where") {
            let at = self.affine()?;
            self.expect('<')?;
            guards.push(Guard { at, bound: self.value()? });
        }
        let fill = if self.eat_word("fill") { Some(self.value()?) } else { None };
        let covers = self.eat_word("covers");
        Ok(Op::Copy(Box::new(Copy { extents, dst, src, guards, fill, covers })))
    }

    /// `mma [v0][v1][v2] acc, a, b`, after its first word.
    pub(super) fn mma(&mut self) -> Res<Op> {
        let (m, n, k) = (self.axes()?, self.axes()?, self.axes()?);
        let acc = self.access()?;
        self.expect(',')?;
        let a = self.access()?;
        self.expect(',')?;
        let b = self.access()?;
        Ok(Op::Mma(Box::new(Mma { m, n, k, acc, a, b })))
    }

    fn axes(&mut self) -> Res<Vec<Value>> {
        self.expect('[')?;
        self.list(']', Self::value)
    }

    /// `t0[16x64 v1, v2] at (row, col)` or `g0.f32[at + table.clamp g1[at] by v1 below v2] swizzle (3, 4, 3)`
    fn access(&mut self) -> Res<NestAccess> {
        if self.is_tile() {
            let tile = self.tile_ref()?;
            self.expect_word("at")?;
            self.expect('(')?;
            let row = self.affine()?;
            self.expect(',')?;
            let col = self.affine()?;
            self.expect(')')?;
            return Ok(NestAccess::Tile { tile, row, col });
        }
        if !self.is_tensor() {
            return self.wanted("a side such as `t0[..]` or `g0.f32[..]`");
        }
        let tensor = self.entity('g')?;
        self.expect('.')?;
        let elem = self.elem()?;
        self.expect('[')?;
        let at = self.affine()?;
        let mut tables = Vec::new();
        while self.eat('+') {
            tables.push(self.table()?);
        }
        self.expect(']')?;
        let swizzle = if self.eat_word("swizzle") { Some(self.swizzle()?) } else { None };
        Ok(NestAccess::Tensor { tensor, elem, at, swizzle, tables })
    }

    fn elem(&mut self) -> Res<Elem> {
        let (word, place) = self.word("the type of an element")?;
        match (word, DType::from_name(word)) {
            ("u4", _) => Ok(Elem::U4),
            ("i4", _) => Ok(Elem::I4),
            (_, Some(dtype)) => Ok(Elem::Whole(dtype)),
            _ => self.unknown(place, format!("`{word}` is no type of an element")),
        }
    }

    fn table(&mut self) -> Res<Table> {
        self.expect_word("table")?;
        self.expect('.')?;
        let (word, place) = self.word("what happens outside")?;
        let Some(oob) = Oob::from_name(word) else {
            return self.unknown(place, format!("`{word}` does not say what happens outside"));
        };
        let tensor = self.entity('g')?;
        self.expect('[')?;
        let at = self.affine()?;
        self.expect(']')?;
        self.expect_word("by")?;
        let stride = self.value()?;
        self.expect_word("below")?;
        Ok(Table { tensor, at, stride, extent: self.value()?, oob })
    }

    fn swizzle(&mut self) -> Res<Swizzle> {
        let place = self.place();
        self.expect('(')?;
        let fields = self.list(')', Self::signed)?;
        let [bits, base, shift] = fields[..] else { return self.wanted("three fields before it") };
        Swizzle::new(bits, base, shift)
            .map_err(|e| Diagnostic::error(codes::IR_SYNTAX, place, format!("no swizzle: {}", e.message)).into())
    }

    /// `[v0, v1] start + (strides) swizzle (3, 4, 3)`
    pub(super) fn stored(&mut self) -> Res<Stored> {
        let (extents, at) = (self.axes()?, self.affine()?);
        let swizzle = if self.eat_word("swizzle") { Some(self.swizzle()?) } else { None };
        Ok(Stored { extents, at, swizzle })
    }

    fn signed(&mut self) -> Res<i64> {
        match *self.peek() {
            Tok::Num(text) if text.parse::<i64>().is_ok() => {
                self.next();
                Ok(text.parse().unwrap_or_default())
            }
            _ => self.wanted("a number"),
        }
    }

    /// `start + (strides)`
    fn affine(&mut self) -> Res<Affine> {
        let start = self.value()?;
        self.expect('+')?;
        self.expect('(')?;
        Ok(Affine { start, strides: self.list(')', Self::value)? })
    }
}
