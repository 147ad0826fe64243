//! Parsing the kernel and its tables.

use super::lexer::{Tok, lex};
use crate::tile::{
    AddrKind, CheckData, Coord, Dim, ElementPlacement, EventData, EventKind, GridDim, Kernel, PlaceLeaf, Purpose,
    RoleData, ScalarParam, SyncMode, TensorData, TensorDir, Tile, TileData, Ty, Value, ValueData, VarData,
};
use cranelift_entity::{EntityRef, PrimaryMap};
use ptoc_abi::Raster;
use ptoc_diagnostics::{Code, Diagnostic, FileId, Span, codes};
use ptoc_isa::{Loc, Order, TileType};
use ptoc_layout::{TileLayout, parse_value};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// Parses the text form of a kernel. `file` is the text itself, for places in the diagnostic; spans inside the text
/// are taken as they stand. The result is well-formed text, not verified IR.
pub fn parse(text: &str, file: FileId) -> Result<Kernel, Diagnostic> {
    let run = || {
        let toks = lex(text, file)?;
        Parser { text, toks, at: 0, values: FxHashMap::default(), max_ref: None }.kernel()
    };
    run().map_err(|d: Box<Diagnostic>| *d)
}

/// Boxed, so that the stack stays small where statements nest.
pub(super) type Res<T> = Result<T, Box<Diagnostic>>;

/// A definition whose span is still that of the line around it.
pub(super) struct Def {
    pub value: Value,
    ty: Ty,
    name: Option<SmolStr>,
    span: Option<Span>,
    place: Span,
}

pub(super) struct Parser<'t> {
    text: &'t str,
    toks: Vec<(Tok<'t>, Span)>,
    at: usize,
    values: FxHashMap<Value, ValueData>,
    /// The value with the largest number that occurs, and where.
    max_ref: Option<(Value, Span)>,
}

impl<'t> Parser<'t> {
    // ---- tokens --------------------------------------------------------------------------------------------------

    pub fn peek(&self) -> &Tok<'t> {
        &self.toks[self.at].0
    }

    /// The token after the next one.
    pub fn peek_after(&self) -> &Tok<'t> {
        &self.toks[(self.at + 1).min(self.toks.len() - 1)].0
    }

    pub fn place(&self) -> Span {
        self.toks[self.at].1
    }

    pub fn next(&mut self) -> (Tok<'t>, Span) {
        let token = self.toks[self.at].clone();
        // The last token is the end, which stays.
        self.at = (self.at + 1).min(self.toks.len() - 1);
        token
    }

    pub fn wanted<T>(&self, what: &str) -> Res<T> {
        let message = format!("expected {what}, found {}", self.peek().show());
        Err(Diagnostic::error(codes::IR_SYNTAX, self.place(), message).into())
    }

    pub fn unknown<T>(&self, place: Span, message: String) -> Res<T> {
        Err(Diagnostic::error(codes::IR_UNKNOWN_NAME, place, message).into())
    }

    pub fn eat(&mut self, c: char) -> bool {
        let hit = *self.peek() == Tok::Punct(c);
        if hit {
            self.next();
        }
        hit
    }

    pub fn expect(&mut self, c: char) -> Res<()> {
        if self.eat(c) { Ok(()) } else { self.wanted(&Tok::Punct(c).show()) }
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Tok::Word(w) if *w == word)
    }

    pub fn eat_word(&mut self, word: &str) -> bool {
        let hit = self.is_word(word);
        if hit {
            self.next();
        }
        hit
    }

    pub fn expect_word(&mut self, word: &str) -> Res<()> {
        if self.eat_word(word) { Ok(()) } else { self.wanted(&format!("`{word}`")) }
    }

    pub fn word(&mut self, what: &str) -> Res<(&'t str, Span)> {
        match self.next_if(|t| matches!(t, Tok::Word(_))) {
            Some((Tok::Word(w), place)) => Ok((w, place)),
            _ => self.wanted(what),
        }
    }

    fn next_if(&mut self, f: impl Fn(&Tok<'t>) -> bool) -> Option<(Tok<'t>, Span)> {
        f(self.peek()).then(|| self.next())
    }

    pub fn string(&mut self) -> Res<String> {
        match self.next_if(|t| matches!(t, Tok::Str(_))) {
            Some((Tok::Str(s), _)) => Ok(s),
            _ => self.wanted("a string"),
        }
    }

    /// A number without sign, decimal or hexadecimal.
    pub fn number<T: TryFrom<u64>>(&mut self) -> Res<T> {
        if let Tok::Num(text) = *self.peek() {
            let value = match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => text.parse().ok(),
            };
            if let Some(value) = value.and_then(|v| T::try_from(v).ok()) {
                self.next();
                return Ok(value);
            }
        }
        self.wanted("a number in range")
    }

    /// `@file:start..end`, `@?`, or nothing.
    pub fn span(&mut self) -> Res<Option<Span>> {
        if !self.eat('@') {
            return Ok(None);
        }
        if self.eat('?') {
            return Ok(Some(Span::default()));
        }
        let file = FileId(self.number()?);
        self.expect(':')?;
        let start = self.number()?;
        self.expect('…')?;
        let end = self.number()?;
        if start > end {
            return self.wanted("a span that does not end before it starts");
        }
        Ok(Some(Span::new(file, start, end)))
    }

    /// The span that ends a line.
    pub fn end(&mut self) -> Res<Span> {
        Ok(self.span()?.unwrap_or_default())
    }

    /// Items between brackets, separated by commas.
    pub fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(close) {
            if !items.is_empty() {
                self.expect(',')?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    // ---- entities ------------------------------------------------------------------------------------------------

    /// The number of an entity with this prefix, if the next word is one.
    fn entity_number(&self, prefix: char) -> Option<u32> {
        let Tok::Word(word) = self.peek() else { return None };
        let digits = word.strip_prefix(prefix)?;
        let canonical = digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
        // Entities keep the last number for themselves.
        (canonical && !digits.is_empty()).then(|| digits.parse().ok()).flatten().filter(|&n| n < u32::MAX)
    }

    /// A use of an entity.
    pub fn entity<E: EntityRef>(&mut self, prefix: char) -> Res<E> {
        match self.entity_number(prefix) {
            Some(n) => {
                self.next();
                Ok(E::new(n as usize))
            }
            None => {
                let what = match prefix {
                    'v' => "a value such as `v3`",
                    't' => "a tile such as `t3`",
                    'g' => "a tensor such as `g3`",
                    'm' => "a variable such as `m3`",
                    'c' => "a check such as `c3`",
                    'l' => "a label such as `l3`",
                    'e' => "an event such as `e3`",
                    'r' => "a role such as `r3`",
                    _ => "a dimension such as `d3`",
                };
                self.wanted(what)
            }
        }
    }

    /// The entity that a table's next line declares.
    fn declared<E: EntityRef, T>(&mut self, prefix: char, table: &PrimaryMap<E, T>) -> Res<()> {
        if self.entity_number(prefix) != Some(table.len() as u32) {
            return self.wanted(&format!("`{prefix}{}`", table.len()));
        }
        self.next();
        Ok(())
    }

    /// A use of a value.
    pub fn value(&mut self) -> Res<Value> {
        let place = self.place();
        let value: Value = self.entity('v')?;
        if self.max_ref.is_none_or(|(max, _)| value > max) {
            self.max_ref = Some((value, place));
        }
        Ok(value)
    }

    pub fn is_value(&self) -> bool {
        self.entity_number('v').is_some()
    }

    pub fn is_tile(&self) -> bool {
        self.entity_number('t').is_some()
    }

    pub fn is_tensor(&self) -> bool {
        self.entity_number('g').is_some()
    }

    pub fn ty(&mut self) -> Res<Ty> {
        let (word, place) = self.word("a type")?;
        match DType::from_name(word) {
            Some(d) => Ok(Ty::D(d)),
            None if word == "index" => Ok(Ty::Index),
            None => self.unknown(place, format!("`{word}` is no type")),
        }
    }

    fn dtype(&mut self) -> Res<DType> {
        let place = self.place();
        match self.ty()? {
            Ty::D(d) => Ok(d),
            Ty::Index => self.unknown(place, "`index` is no dtype".to_owned()),
        }
    }

    /// `v3 "name": type @span`
    pub fn def(&mut self) -> Res<Def> {
        let place = self.place();
        let value = self.value()?;
        let name = if matches!(self.peek(), Tok::Str(_)) { Some(SmolStr::from(self.string()?)) } else { None };
        self.expect(':')?;
        let ty = self.ty()?;
        let span = self.span()?;
        Ok(Def { value, ty, name, span, place })
    }

    /// Records a definition; its span is that of the line, `around`, unless it has its own. Returns the type.
    pub fn define(&mut self, def: Def, around: Span) -> Res<()> {
        let data = ValueData { ty: def.ty, name: def.name, span: def.span.unwrap_or(around) };
        match self.values.get(&def.value) {
            Some(known) if *known != data => {
                let message = format!("{} is defined twice, and differently", def.value);
                Err(Diagnostic::error(codes::IR_REDEFINED_VALUE, def.place, message).into())
            }
            _ => {
                self.values.insert(def.value, data);
                Ok(())
            }
        }
    }

    pub fn def_type(def: &Def) -> Ty {
        def.ty
    }

    /// `[(8:1@col, 4:0), (16:2@byte)] over unit`
    fn placement(&mut self) -> Res<ElementPlacement> {
        self.expect('[')?;
        let dims = self.list(']', |p| {
            p.expect('(')?;
            p.list(')', |p| {
                let extent = i64::from(p.number::<u32>()?);
                p.expect(':')?;
                let stride = i64::from(p.number::<u32>()?);
                if !p.eat('@') {
                    return match stride {
                        0 => Ok(PlaceLeaf { extent, coord: None, stride }),
                        _ => p.wanted("`@` and a coordinate"),
                    };
                }
                let (name, place) = p.word("a coordinate")?;
                match Coord::from_name(name) {
                    Some(c) => Ok(PlaceLeaf { extent, coord: Some(c), stride }),
                    None => p.unknown(place, format!("`{name}` is no coordinate")),
                }
            })
        })?;
        let replicated = self.eat_word("over");
        if replicated {
            self.expect_word("unit")?;
        }
        Ok(ElementPlacement { dims, replicated })
    }

    // ---- the kernel ----------------------------------------------------------------------------------------------

    fn kernel(&mut self) -> Res<Kernel> {
        self.expect_word("kernel")?;
        let name = self.string()?.into();
        self.expect_word("target")?;
        let target = self.string()?.into();
        let sync = match self.eat_word("sync") {
            false => SyncMode::Auto,
            true if self.eat_word("manual") => SyncMode::Manual,
            true => {
                self.expect_word("inserted")?;
                SyncMode::Inserted
            }
        };
        let span = self.end()?;
        let mut k = Kernel {
            name,
            span,
            target,
            tensors: PrimaryMap::new(),
            dims: PrimaryMap::new(),
            scalars: Vec::new(),
            values: PrimaryMap::new(),
            vars: PrimaryMap::new(),
            tiles: PrimaryMap::new(),
            aliases: Vec::new(),
            pins: Vec::new(),
            events: PrimaryMap::new(),
            roles: PrimaryMap::new(),
            sync,
            checks: PrimaryMap::new(),
            labels: PrimaryMap::new(),
            prologue: Vec::new(),
            grid: Vec::new(),
            raster: None,
            cluster: Vec::new(),
            on: None,
            host: false,
            body: Vec::new(),
        };
        while !self.is_word("prologue") {
            self.line(&mut k)?;
        }
        self.next();
        k.prologue = self.block(1)?;
        self.expect_word("grid")?;
        self.expect('[')?;
        k.grid = self.list(']', |p| {
            let def = p.def()?;
            let index = def.value;
            p.define(def, span)?;
            let name = p.string()?.into();
            p.expect('<')?;
            Ok(GridDim { name, extent: p.value()?, index })
        })?;
        if self.is_word("raster") {
            self.next();
            self.expect_word("along")?;
            let along = self.number()?;
            self.expect_word("swizzle")?;
            k.raster = Some(Raster { along, swizzle: self.number()? });
        }
        if self.is_word("cluster") {
            self.next();
            self.expect('[')?;
            k.cluster = self.list(']', |p| p.number())?;
        }
        self.expect_word("body")?;
        k.body = self.block(1)?;
        if *self.peek() != Tok::End {
            return self.wanted("the end of the text");
        }
        self.values(&mut k)?;
        Ok(k)
    }

    /// The table of values: every number up to the largest must have been defined.
    fn values(&mut self, k: &mut Kernel) -> Res<()> {
        let count = self.values.len();
        for n in 0..count {
            let value = Value::new(n);
            match self.values.remove(&value) {
                Some(data) => k.values.push(data),
                None => {
                    let message = format!("values are numbered without gaps, and {value} is not defined");
                    return Err(Diagnostic::error(codes::IR_NO_SUCH_ENTITY, self.place(), message).into());
                }
            };
        }
        match self.max_ref {
            Some((value, place)) if value.index() >= count => {
                Err(Diagnostic::error(codes::IR_NO_SUCH_ENTITY, place, format!("there is no value {value}")).into())
            }
            _ => Ok(()),
        }
    }

    /// A line of the tables.
    fn line(&mut self, k: &mut Kernel) -> Res<()> {
        let (word, _) = match self.peek() {
            Tok::Word(
                "dim" | "scalar" | "tensor" | "var" | "tile" | "alias" | "pin" | "role" | "event" | "check" | "label"
                | "unused" | "host" | "on",
            ) => self.word("a table's line")?,
            _ => return self.wanted("a declaration or `prologue`"),
        };
        match word {
            "dim" => {
                self.declared('d', &k.dims)?;
                let name = self.string()?.into();
                self.expect(':')?;
                let def = self.def()?;
                let value = def.value;
                // One span ends the line; the value's own comes before it only where they differ.
                let span = self.end_of_def(def)?;
                k.dims.push(Dim { name, value, span });
            }
            "scalar" => {
                let name = self.string()?.into();
                self.expect(':')?;
                let def = self.def()?;
                let value = def.value;
                let default = if self.eat_word("default") { Some(self.value()?) } else { None };
                let span = self.end_of_def(def)?;
                k.scalars.push(ScalarParam { name, value, default, span });
            }
            "tensor" => {
                self.declared('g', &k.tensors)?;
                let name = self.string()?.into();
                let (dir, place) = self.word("a direction")?;
                let dir = match dir {
                    "in" => TensorDir::In,
                    "out" => TensorDir::Out,
                    "inout" => TensorDir::InOut,
                    "scratch" => TensorDir::Scratch,
                    _ => return self.unknown(place, format!("`{dir}` is no direction of a tensor")),
                };
                let dtype = self.dtype()?;
                self.expect('[')?;
                let shape = self.list(']', Self::value)?;
                let stored = if self.eat_word("stored") { Some(self.stored()?) } else { None };
                let optional = self.eat_word("optional");
                let disjoint = self.eat_word("disjoint");
                let place = if self.eat_word("at") { Some(self.placement()?) } else { None };
                let span = self.end()?;
                k.tensors.push(TensorData { name, dtype, dir, shape, optional, disjoint, stored, place, span });
            }
            "host" => k.host = true,
            "on" => k.on = Some(self.placement()?),
            "var" => {
                self.declared('m', &k.vars)?;
                let name = self.string()?.into();
                self.expect(':')?;
                let ty = self.ty()?;
                k.vars.push(VarData { name, ty });
            }
            "tile" => {
                self.declared('t', &k.tiles)?;
                let tile = self.tile()?;
                k.tiles.push(tile);
            }
            "alias" => {
                let pair = (self.known_tile(k)?, self.known_tile(k)?);
                k.aliases.push(pair);
            }
            "pin" => {
                let tile = self.known_tile(k)?;
                self.expect_word("at")?;
                self.expect('[')?;
                k.pins.push((tile, self.list(']', Self::number)?));
            }
            "role" => {
                self.declared('r', &k.roles)?;
                let name = self.string()?.into();
                let span = self.end()?;
                k.roles.push(RoleData { name, span });
            }
            "event" => {
                self.declared('e', &k.events)?;
                let event = self.event()?;
                k.events.push(event);
            }
            "check" => {
                self.declared('c', &k.checks)?;
                let (code, place) = self.word("a diagnostic code")?;
                let Some(info) = Code::find(code) else {
                    return self.unknown(place, format!("`{code}` is no diagnostic code"));
                };
                let message = self.string()?;
                let help = if self.eat_word("help") { Some(self.string()?) } else { None };
                let span = self.end()?;
                k.checks.push(CheckData { code: info.code, message, span, help });
            }
            "label" => {
                self.declared('l', &k.labels)?;
                let span = self.end()?;
                k.labels.push(span);
            }
            _ => {
                let def = self.def()?;
                self.define(def, Span::default())?;
            }
        }
        Ok(())
    }

    /// The span of a line that consists of a definition. Where the value's span is not the line's both are printed; a
    /// single one is both.
    fn end_of_def(&mut self, mut def: Def) -> Res<Span> {
        let line = self.span()?;
        let span = line.or(def.span).unwrap_or_default();
        if line.is_none() {
            def.span = None;
        }
        self.define(def, span)?;
        Ok(span)
    }

    /// A tile's layout in CuTe's notation, up to the `>` that closes the type.
    fn layout(&mut self) -> Res<TileLayout> {
        let first = self.place();
        let (mut depth, mut end) = (0, first);
        loop {
            match self.peek() {
                Tok::End => return self.wanted("`>`"),
                Tok::Punct('<') => depth += 1,
                Tok::Punct('>') if depth == 0 => break,
                Tok::Punct('>') => depth -= 1,
                _ => {}
            }
            end = self.next().1;
        }
        let place = Span::new(first.file, first.start, end.end.max(first.start));
        let text = self.text.get(first.start as usize..end.end as usize).unwrap_or_default();
        let value = parse_value(text).map_err(|e| e.message);
        value.and_then(|v| TileLayout::new(&v).map_err(|e| e.to_string())).map_err(|why| {
            Diagnostic::error(codes::IR_SYNTAX, place, format!("`{text}` is no tile's layout: {why}")).into()
        })
    }

    fn event(&mut self) -> Res<EventData> {
        let name = self.string()?.into();
        let kind = if self.eat_word("barrier") {
            EventKind::Barrier { arrivals: self.number()? }
        } else {
            self.expect_word("flag")?;
            EventKind::Flag
        };
        self.expect_word("from")?;
        let from = self.pipe()?;
        self.expect_word("to")?;
        let to = self.pipe()?;
        let count = if self.eat_word("count") { self.number()? } else { 1 };
        let purpose = if self.eat_word("full") {
            Purpose::RingFull
        } else if self.eat_word("empty") {
            Purpose::RingEmpty
        } else if self.eat_word("inserted") {
            Purpose::Inserted
        } else {
            Purpose::Author
        };
        let span = self.end()?;
        Ok(EventData { name, kind, from, to, count, purpose, span })
    }

    /// A tile that was declared above.
    fn known_tile(&mut self, k: &Kernel) -> Res<Tile> {
        let place = self.place();
        let tile: Tile = self.entity('t')?;
        match k.tiles.get(tile) {
            Some(_) => Ok(tile),
            None => self.unknown(place, format!("{tile} is not declared")),
        }
    }

    fn tile(&mut self) -> Res<TileData> {
        let name = self.string()?.into();
        let (loc, place) = self.word("a location")?;
        let Some(loc) = Loc::from_name(loc) else { return self.unknown(place, format!("`{loc}` is no location")) };
        self.expect('<')?;
        let dtype = self.dtype()?;
        self.expect(',')?;
        let rows = self.number()?;
        self.expect(',')?;
        let cols = self.number()?;
        let (mut order, mut layout) = (Order::Nd, None);
        if self.eat(',') {
            if self.eat_word("DN") {
                order = Order::Dn;
            } else {
                layout = Some(self.layout()?);
            }
        }
        self.expect('>')?;
        let count = if self.eat_word("count") { self.number()? } else { 1 };
        let stages = if self.eat_word("stages") { self.number()? } else { 1 };
        let addr = if self.eat_word("dynamic") {
            AddrKind::Dynamic
        } else if self.eat_word("at") {
            self.expect('[')?;
            AddrKind::Fixed(self.list(']', Self::number)?)
        } else {
            AddrKind::Auto
        };
        let hidden = self.eat_word("hidden");
        let span = self.end()?;
        let ty = TileType { loc, dtype, rows, cols, order, layout };
        Ok(TileData { name, ty, count, stages, addr, hidden, span })
    }
}
