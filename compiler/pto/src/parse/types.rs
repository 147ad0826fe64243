//! Types.

use super::{Parser, Res};
use crate::lexer::{self, Tok, Word};
use crate::types::{Extent, LOCS, Major, TileBuf, TileValue, Type, Typed, is_element};
use ptoc_diagnostics::{Diagnostic, codes, list, suggest};
use ptoc_isa::Loc;

/// Types of the dialect that are kept as they are written.
const OPAQUE: [&str; 5] = ["pipe", "eventid_array", "async_session", "async_event", "fp"];

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Res<Typed> {
        let start = self.token.start;
        let ty = self.nested(|p| p.any_type())?;
        Ok(Typed { ty, span: self.since(start) })
    }

    fn any_type(&mut self) -> Res<Type> {
        let (word, span) = (self.word(), self.here());
        match self.token.tok {
            Tok::Type => {}
            Tok::Name if word == "index" => {
                self.advance();
                return Ok(Type::Index);
            }
            Tok::Name if is_element(word) => {
                self.advance();
                return Ok(Type::Element(Word::new(word)));
            }
            // Where an operation takes one type alone, its name may be left out.
            Tok::Mark if word == "<" => return self.elided(),
            Tok::Name if ["memref", "tensor", "vector", "none"].contains(&word) => return self.opaque(),
            _ => return self.fail("expected a type, as in `index`, `f32` or `!pto.tile_buf<vec, 16x64xf32>`".into()),
        }
        if let Some(known) = self.types.get(word) {
            // Of a name whose type is wrong no more is told.
            let known = known.clone().ok_or(super::Reported)?;
            self.advance();
            return Ok(known);
        }
        let Some(name) = word.strip_prefix("!pto.") else {
            if !word.contains('.') {
                let d = Diagnostic::error(codes::PTO_UNKNOWN, span, format!("nothing defines the type `{word}`"));
                let near = suggest(word, self.types.keys().map(Word::as_str)).map(|n| format!("did you mean `{n}`?"));
                return self.report(match near {
                    Some(near) => d.with_help(near),
                    None => d,
                });
            }
            return self.wrong(codes::PTO_UNKNOWN, span, format!("`{word}` is no type of the dialect `pto`"));
        };
        match name {
            "ptr" => {
                self.advance();
                self.expect("<", "and the elements' type")?;
                let element = self.element()?;
                // Later versions of PTOAS say where it points.
                if self.eat(",") && !self.eat("gm") {
                    let message = format!("a pointer to `{}` is not read", self.word());
                    return self.wrong(codes::PTO_NOT_READ, self.here(), message);
                }
                self.expect(">", "to end the type")?;
                Ok(Type::Ptr(element))
            }
            "tensor_view" => self.shaped().map(|(e, t)| Type::TensorView(e, t)),
            "partition_tensor_view" => self.shaped().map(|(e, t)| Type::PartitionView(e, t)),
            "tile" => self.tile_value().map(|t| Type::Tile(Box::new(t))),
            "tile_buf" => self.tile_buf().map(|t| Type::TileBuf(Box::new(t))),
            _ if OPAQUE.contains(&name) => self.opaque(),
            _ => {
                let mut d = Diagnostic::error(codes::PTO_UNKNOWN, span, format!("the dialect has no type `{word}`"));
                let known = ["ptr", "tensor_view", "partition_tensor_view", "tile", "tile_buf"];
                if let Some(near) = suggest(name, known.into_iter().chain(OPAQUE)) {
                    d = d.with_help(format!("did you mean `!pto.{near}`?"));
                }
                self.report(d)
            }
        }
    }

    /// `<f32>`, a pointer, or `<loc=..>`, a tile buffer.
    fn elided(&mut self) -> Res<Type> {
        self.advance();
        if self.is("loc") || LOCS.iter().any(|(word, _)| self.is(word)) {
            return self.tile_buf_fields().map(|t| Type::TileBuf(Box::new(t)));
        }
        let element = self.element()?;
        self.expect(">", "to end the type")?;
        Ok(Type::Ptr(element))
    }

    /// A type that is kept as it is written: its name, and what stands in `<..>` behind it.
    fn opaque(&mut self) -> Res<Type> {
        let start = self.token.start;
        self.advance();
        if self.eat("<") {
            self.skip_angles("the type")?;
        }
        Ok(Type::Other(Word::new(spaced(&self.text[start..self.taken]))))
    }

    /// `!t = !pto.tile_buf<..>`: a name for a type. What is printed has the type itself, as PTOAS prints it.
    pub(super) fn type_alias(&mut self) -> Res<()> {
        let (name, span) = (Word::new(self.word()), self.here());
        self.advance();
        self.expect("=", "behind a type's name")?;
        if name.contains('.') {
            let message = format!("`{name}` is a name of a dialect: that of a type has no `.`");
            return self.wrong(codes::PTO_SYNTAX, span, message);
        }
        if self.types.contains_key(&name) {
            return self.wrong(codes::PTO_VALUE, span, format!("`{name}` is defined twice"));
        }
        let ty = self.ty();
        self.types.insert(name, ty.as_ref().ok().map(|t| t.ty.clone()));
        ty.map(|_| ())
    }

    fn element(&mut self) -> Res<Word> {
        let word = self.word();
        if self.token.tok == Tok::Name && is_element(word) {
            self.advance();
            return Ok(Word::new(word));
        }
        self.fail("expected the type of the elements, as in `f32`, `bf16` or `i32`".into())
    }

    /// `name<16x?xf32>`
    fn shaped(&mut self) -> Res<(Vec<Extent>, Word)> {
        self.advance();
        self.expect("<", "and the shape")?;
        let extents = self.extents()?;
        let element = self.element()?;
        self.expect(">", "to end the type")?;
        Ok((extents, element))
    }

    /// `tile<16x64xf32>`, or words and numbers: `tile<f32, 16, 64>`, `tile<vec, f32, 16, 64, row_major>`.
    fn tile_value(&mut self) -> Res<TileValue> {
        self.advance();
        self.expect("<", "and the shape")?;
        if self.token.tok == Tok::Int || self.is("?") {
            let (extents, dtype) = (self.extents()?, self.element()?);
            self.expect(">", "to end the type")?;
            return Ok(TileValue { extents, dtype, fields: Vec::new() });
        }
        let mut tile = TileValue { extents: Vec::new(), dtype: Word::default(), fields: Vec::new() };
        loop {
            let word = self.word();
            match self.token.tok {
                Tok::Int if tile.extents.len() < 2 => {
                    let extent = self.number()?;
                    tile.extents.push(Some(extent));
                }
                Tok::Name | Tok::Int => {
                    if tile.dtype.is_empty() && is_element(word) {
                        tile.dtype = Word::new(word);
                    }
                    self.advance();
                }
                _ => return self.fail("expected what the tile is, as in `16x64xf32` or `f32, 16, 64`".into()),
            }
            tile.fields.push(Word::new(word));
            if !self.eat(",") {
                break;
            }
        }
        self.expect(">", "to end the type")?;
        if tile.extents.len() != 2 || tile.dtype.is_empty() {
            return self.fail("expected the elements' type, the rows and the columns in front of this".into());
        }
        Ok(tile)
    }

    /// Extents, each with an `x` behind it, up to what is none.
    fn extents(&mut self) -> Res<Vec<Extent>> {
        let mut extents = Vec::new();
        let mut at = lexer::skip(self.text, self.taken);
        loop {
            let rest = &self.text[at..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let len = if rest.starts_with('?') { 1 } else { digits };
            if rest.starts_with('-') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
                self.jump(at);
                return self.fail("expected an extent, which is not negative".into());
            }
            if len == 0 || !rest[len..].starts_with('x') {
                self.jump(at);
                return Ok(extents);
            }
            let extent = match &rest[..len] {
                "?" => None,
                n => Some(n),
            };
            match extent.map(str::parse) {
                Some(Err(_)) => {
                    self.jump(at);
                    return self.fail("expected an extent of at most 64 bits".into());
                }
                Some(Ok(n)) => extents.push(Some(n)),
                None => extents.push(None),
            }
            if extents.len() > 8 {
                self.jump(at);
                return self.fail("expected at most 8 extents".into());
            }
            at += len + 1;
        }
    }

    fn tile_buf(&mut self) -> Res<TileBuf> {
        self.advance();
        self.expect("<", "and what the tile buffer is")?;
        self.tile_buf_fields()
    }

    fn tile_buf_fields(&mut self) -> Res<TileBuf> {
        if self.eat("loc") {
            self.expect("=", "behind `loc`")?;
            return self.long_tile_buf();
        }
        let loc = self.loc()?;
        self.expect(",", "behind the location")?;
        let extents = self.extents()?;
        let dtype = self.element()?;
        let [Some(rows), Some(cols)] = extents[..] else {
            return self.fail("expected two extents in a tile buffer, both of them numbers, as in `16x64xf32`".into());
        };
        let mut tile = TileBuf::plain(loc, dtype, rows, cols);
        let mut seen = Vec::new();
        while self.eat(",") {
            let key = self.word();
            if seen.contains(&key) {
                return self.fail(format!("expected `{key}` of a tile buffer once"));
            }
            seen.push(key);
            self.take(Tok::Name, "`valid`, `blayout`, `slayout`, `fractal`, `pad` or `compact`")?;
            self.expect("=", "and the value")?;
            if key == "valid" {
                let valid = self.valid_shape()?;
                tile.valid = valid;
            } else {
                self.field(&mut tile, key)?;
            }
        }
        self.expect(">", "to end the type")?;
        Ok(tile)
    }

    /// `16x?`: extents without an element behind them.
    fn valid_shape(&mut self) -> Res<(Extent, Extent)> {
        let start = lexer::skip(self.text, self.taken);
        let rest = &self.text[start..];
        let len = rest.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b'?' | b'x')).count();
        let parts: Vec<&str> = rest[..len].split('x').collect();
        let extent = |s: &str| if s == "?" { Some(None) } else { s.parse().ok().map(Some) };
        if let [rows, cols] = parts[..]
            && let (Some(rows), Some(cols)) = (extent(rows), extent(cols))
        {
            self.jump(start + len);
            return Ok((rows, cols));
        }
        self.fail("expected two extents, as in `16x64` or `?x?`".into())
    }

    /// Fields behind `loc=`, in their order.
    fn long_tile_buf(&mut self) -> Res<TileBuf> {
        let loc = self.loc()?;
        self.key("dtype")?;
        let dtype = self.element()?;
        let mut tile = TileBuf { short: false, ..TileBuf::plain(loc, dtype, 0, 0) };
        self.key("rows")?;
        tile.rows = self.number()?;
        self.key("cols")?;
        tile.cols = self.number()?;
        self.key("v_row")?;
        tile.valid.0 = self.extent()?;
        self.key("v_col")?;
        tile.valid.1 = self.extent()?;
        for key in ["blayout", "slayout", "fractal", "pad"] {
            self.key(key)?;
            self.field(&mut tile, key)?;
        }
        if self.is(",") {
            self.key("compact")?;
            self.field(&mut tile, "compact")?;
        }
        self.expect(">", "to end the type")?;
        Ok(tile)
    }

    fn key(&mut self, key: &str) -> Res<()> {
        self.expect(",", &format!("and `{key}=` behind it"))?;
        self.expect(key, "here: the fields of a tile buffer have this order")?;
        self.expect("=", "and the value")
    }

    fn field(&mut self, tile: &mut TileBuf, key: &str) -> Res<()> {
        match key {
            "blayout" => tile.blayout = self.major()?,
            "slayout" if self.eat("none_box") => tile.slayout = None,
            "slayout" => tile.slayout = Some(self.major()?),
            "fractal" => tile.fractal = self.number()?,
            "pad" => tile.pad = self.at_most("pad", 3)?,
            "compact" => tile.compact = self.at_most("compact", 2)?,
            _ => {
                let span = self.since(self.taken.saturating_sub(key.len() + 1));
                let message = format!("a tile buffer has no field `{key}`");
                return self.wrong(codes::PTO_UNKNOWN, span, message);
            }
        }
        Ok(())
    }

    fn loc(&mut self) -> Res<Loc> {
        let found = LOCS.iter().find(|(word, _)| self.is(word));
        match found {
            Some((_, loc)) => {
                self.advance();
                Ok(*loc)
            }
            None => self.fail(format!("expected a location: {}", list(LOCS.iter().map(|l| l.0)))),
        }
    }

    fn major(&mut self) -> Res<Major> {
        match Major::from_word(self.word()) {
            Some(major) => {
                self.advance();
                Ok(major)
            }
            None => self.fail("expected `row_major` or `col_major`".into()),
        }
    }

    fn extent(&mut self) -> Res<Extent> {
        if self.eat("?") { Ok(None) } else { self.number().map(Some) }
    }

    /// A number that is not negative.
    fn number(&mut self) -> Res<i64> {
        match self.word().parse() {
            Ok(n) if n >= 0 && self.token.tok == Tok::Int => {
                self.advance();
                Ok(n)
            }
            _ => self.fail("expected a whole number of at most 63 bits".into()),
        }
    }

    fn at_most(&mut self, key: &str, most: i64) -> Res<u32> {
        let span = self.here();
        let n = self.number()?;
        if n > most {
            return self.wrong(codes::PTO_UNKNOWN, span, format!("`{key}` is a number from 0 to {most}"));
        }
        Ok(n as u32)
    }
}

/// A type of MLIR with the spaces that MLIR prints, and without comments: what is between its words says nothing.
fn spaced(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        let next = lexer::skip(text, at);
        let Some(c) = text[next..].chars().next() else { break };
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if next > at && out.chars().last().is_some_and(word) && word(c) {
            out.push(' ');
        }
        match c {
            ',' | ':' => {
                out.push(c);
                out.push(' ');
            }
            '-' if text[next..].starts_with("->") => out.push_str(" ->"),
            _ => out.push(c),
        }
        at = next + c.len_utf8();
        if out.ends_with(" ->") {
            out.push(' ');
            at += 1;
        }
    }
    out.truncate(out.trim_end().len());
    out
}
