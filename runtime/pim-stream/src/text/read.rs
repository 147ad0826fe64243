//! Reads the text form.

use super::cursor::{Cursor, Read, error};
use super::{HEADER, Parsed, TextError};
use crate::crf::Instruction;
use crate::driver;
use crate::placement::{ArrayPlacement, Leaf};
use crate::stream::*;
use crate::unit::UnitConfig;
use crate::word::WordError;
use ptoc_abi::Coord;
use ptoc_tensor::DType;
use std::collections::HashMap;
use std::ops::Range;

/// The lines of a text that say something: bytes from the first visible character to the comment.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let from = start;
        start += line.len();
        let mut quoted = false;
        let mut escaped = false;
        let end = line.char_indices().find(|(_, c)| {
            match c {
                '"' if !escaped => quoted = !quoted,
                '#' if !quoted => return true,
                _ => {}
            }
            escaped = *c == '\\' && !escaped;
            false
        });
        let body = &line[..end.map_or(line.len(), |(n, _)| n)];
        let first = body.len() - body.trim_start().len();
        let body = body.trim();
        (!body.is_empty()).then(|| from + first..from + first + body.len())
    })
}

pub(super) fn read(text: &str) -> Result<Parsed, TextError> {
    let mut lines = lines(text);
    let mut next = |what: &str| {
        lines.next().map(|l| Cursor { text, at: l.start, end: l.end }).ok_or_else(|| {
            let mut e = error(text, text.len()..text.len(), format!("the text ends before {what}"));
            e.help = format!("a stream begins with `{HEADER} 1`, then `device NAME`, then `unit KIND`");
            e
        })
    };
    let mut c = next("its header")?;
    header(&mut c)?;
    let mut c = next("its device")?;
    let device_bytes = c.at..c.end;
    let device = device(&mut c)?;
    let mut c = next("its units")?;
    let unit_bytes = c.at..c.end;
    let unit = unit(&mut c)?;
    let mut p = Reader {
        numbers: HashMap::new(),
        parsed: Parsed {
            stream: Stream { device, unit, tensors: Vec::new(), files: Vec::new(), steps: Vec::new() },
            device: device_bytes,
            unit: unit_bytes,
            tensors: Vec::new(),
            steps: Vec::new(),
            ops: Vec::new(),
        },
    };
    while let Some(line) = lines.next() {
        let mut c = Cursor { text, at: line.start, end: line.end };
        p.line(&mut c, &mut lines)?;
        c.finish()?;
    }
    Ok(p.parsed)
}

fn header(c: &mut Cursor<'_>) -> Read<()> {
    if !c.eat_word(HEADER) {
        return c.here(format!("a stream begins with `{HEADER} {}`", crate::binary::VERSION));
    }
    c.space();
    let start = c.at;
    let version = c.number("the version")?;
    if version != crate::binary::VERSION {
        return c.error(start..c.at, format!("version {version} is not read; {} is", crate::binary::VERSION));
    }
    c.finish()
}

fn device(c: &mut Cursor<'_>) -> Read<Device> {
    if !c.eat_word("device") {
        return c.here("`device NAME` should be here");
    }
    let mut out = Device { preset: name(c, "the name of a device")?.0, refresh: Refresh::Off, overrides: Vec::new() };
    while !c.is_end() {
        let (key, bytes) = name(c, "a parameter")?;
        c.expect("=")?;
        if key == "refresh" {
            out.refresh = c.one_of("refresh", Refresh::ALL, Refresh::name)?;
        } else if out.overrides.iter().any(|(k, _)| *k == key) {
            return c.error(bytes, format!("`{key}` is given twice"));
        } else {
            let value = c.small("its value")?;
            out.overrides.push((key, value));
        }
    }
    Ok(out)
}

fn unit(c: &mut Cursor<'_>) -> Read<UnitConfig> {
    if !c.eat_word("unit") {
        return c.here("`unit none`, `unit hbm-pim`, `unit geopim` or `unit aim` should be here");
    }
    let kinds: Vec<usize> = (0..UnitConfig::KINDS.len()).collect();
    let kind = c.one_of("the kind of units", &kinds, |n| UnitConfig::KINDS[n])?;
    let mut unit = UnitConfig::of_kind(kind).expect("a kind of the table");
    let mut said = Vec::new();
    while !c.is_end() {
        let (key, bytes) = c.word("a parameter")?;
        if said.contains(&key) {
            return c.error(bytes, format!("`{key}` is given twice"));
        }
        said.push(key);
        c.expect("=")?;
        let value = c.small("its value")?;
        if !unit.set(key, value) {
            let known: Vec<&str> = unit.names().iter().map(|(n, _)| *n).collect();
            let mut e = error(c.text, bytes, format!("{} has no parameter `{key}`", unit.name()));
            e.help = format!("the parameters are {}", known.join(", "));
            return Err(e);
        }
    }
    Ok(unit)
}

fn name(c: &mut Cursor<'_>, what: &str) -> Read<(String, Range<usize>)> {
    let (word, bytes) = c.word(what)?;
    match TensorDecl::is_name(word) {
        true => Ok((word.to_owned(), bytes)),
        false => c.error(bytes, format!("`{word}` is no name: a letter or `_`, then letters, digits, `_` and `.`")),
    }
}

struct Reader {
    numbers: HashMap<String, u32>,
    parsed: Parsed,
}

/// The words with which a line begins.
const LINES: &str = "file, tensor, resident, write, read, move, relayout, exec, descriptor, params, driver, launch, \
                     host";

impl Reader {
    fn line(&mut self, c: &mut Cursor<'_>, lines: &mut impl Iterator<Item = Range<usize>>) -> Read<()> {
        let whole = c.at..c.end;
        let (word, bytes) = c.word("the kind of a line")?;
        let stream = &mut self.parsed.stream;
        match word {
            "file" => {
                stream.files.push(c.quoted()?);
                return Ok(());
            }
            "tensor" => {
                self.tensor(c)?;
                self.parsed.tensors.push(whole);
                return Ok(());
            }
            _ => {}
        }
        let mut ops = Vec::new();
        let (action, place) = match word {
            "write" | "read" | "resident" => {
                let t = Transfer { tensor: self.known(c)?, placement: placed(c)? };
                let action = match word {
                    "write" => Action::Write(t),
                    "read" => Action::Read(t),
                    _ => Action::Resident(t),
                };
                (action, c.from()?)
            }
            "move" => {
                let tensor = self.known(c)?;
                let from = placed(c)?;
                c.expect("->")?;
                (Action::Move { tensor, from, to: placement(c)? }, c.from()?)
            }
            "relayout" => {
                let src = self.known(c)?;
                let from = placed(c)?;
                c.expect("->")?;
                let dst = self.known(c)?;
                let to = placed(c)?;
                let axes = axes(c)?;
                let start = if c.eat_word("start") { start(c)? } else { [0; 2] };
                (Action::Relayout(Relayout { src, from, dst, to, axes, start }), c.from()?)
            }
            "exec" => {
                let pchs = pchs(c)?;
                let place = c.from()?;
                c.expect("{")?;
                c.finish()?;
                let (list, places) = self.ops(c, lines)?;
                ops = places;
                (Action::Exec(Exec { pchs, ops: list }), place)
            }
            "descriptor" => (Action::Descriptor(descriptor(c)?), c.from()?),
            "params" => (Action::Params(self.params(c)?), c.from()?),
            "driver" => command(c)?,
            "launch" => {
                let mut launch = Launch { kernel: name(c, "the name of a kernel")?.0, ..Launch::default() };
                if !c.is_end() && c.rest().starts_with('(') {
                    launch.reads = list(c, "(", ")", |c| self.known(c))?;
                    c.expect("->")?;
                    launch.writes = list(c, "(", ")", |c| self.known(c))?;
                }
                (Action::Launch(launch), c.from()?)
            }
            "host" => {
                let kernel = name(c, "the name of a kernel")?.0;
                let reads = list(c, "(", ")", |c| self.known(c))?;
                c.expect("->")?;
                let writes = list(c, "(", ")", |c| self.known(c))?;
                (Action::Host(Host { kernel, reads, writes }), c.from()?)
            }
            _ => {
                let mut e = error(c.text, bytes, format!("no line begins with `{word}`"));
                e.help = format!("lines begin with one of {LINES}");
                return Err(e);
            }
        };
        self.parsed.stream.steps.push(StreamStep { place, action });
        self.parsed.steps.push(whole);
        self.parsed.ops.push(ops);
        Ok(())
    }

    fn tensor(&mut self, c: &mut Cursor<'_>) -> Read<()> {
        let (name, bytes) = name(c, "the name of an array")?;
        let number = self.parsed.stream.tensors.len() as u32;
        if self.numbers.insert(name.clone(), number).is_some() {
            return c.error(bytes, format!("there are two arrays `{name}`"));
        }
        let dtype = c.one_of("the type of elements", &DType::ALL, DType::name)?;
        let shape = list(c, "[", "]", |c| c.small("an extent"))?;
        let role = c.one_of("the role of an array", Role::ALL, Role::name)?;
        let filled = role.may_begin() && c.eat_word("fill");
        let fill = if filled { Some(c.number("the bits of an element")?) } else { None };
        self.parsed.stream.tensors.push(TensorDecl { name, dtype, shape, role, fill });
        Ok(())
    }

    /// The number of an array.
    fn known(&self, c: &mut Cursor<'_>) -> Read<u32> {
        let (word, bytes) = c.word("the name of an array")?;
        match self.numbers.get(word) {
            Some(n) => Ok(*n),
            None => c.error(bytes, format!("there is no array `{word}`")),
        }
    }

    /// The lines of an `exec` up to its brace.
    #[allow(clippy::type_complexity)]
    fn ops(
        &self,
        exec: &Cursor<'_>,
        lines: &mut impl Iterator<Item = Range<usize>>,
    ) -> Read<(Vec<ColumnOp>, Vec<Range<usize>>)> {
        let (mut ops, mut places) = (Vec::new(), Vec::new());
        loop {
            let Some(line) = lines.next() else {
                return exec.error(exec.end - 1..exec.end, "the text ends before the `}` of this");
            };
            let mut c = Cursor { text: exec.text, at: line.start, end: line.end };
            if c.eat("}") {
                c.finish()?;
                return Ok((ops, places));
            }
            ops.push(self.op(&mut c)?);
            c.finish()?;
            places.push(line);
        }
    }

    fn op(&self, c: &mut Cursor<'_>) -> Read<ColumnOp> {
        let (word, bytes) = c.word("an operation")?;
        match word {
            "fence" => return Ok(ColumnOp::Fence),
            "line" => return Ok(ColumnOp::Line(c.place()?)),
            "rd" | "wr" => {}
            "close" => return Ok(ColumnOp::Aim(AimOp::Close)),
            "open" => return Ok(ColumnOp::Aim(AimOp::Open { row: c.small("a row")? })),
            "wrbias" => return Ok(ColumnOp::Aim(AimOp::Clear)),
            "af" => return Ok(ColumnOp::Aim(AimOp::Relu)),
            "wrgb" | "macab" | "rdmac" => return self.aim(word, c).map(ColumnOp::Aim),
            _ => {
                let mut e = error(c.text, bytes, format!("there is no operation `{word}`"));
                e.help =
                    "operations are rd, wr, fence and line; of units `aim` also close, open, wrgb, wrbias, macab, \
                          af and rdmac"
                        .into();
                return Err(e);
            }
        }
        let at = Burst {
            bg: c.half("a bank group")?,
            bank: c.half("a bank")?,
            row: c.small("a row")?,
            col: c.small("a column")?,
        };
        c.space();
        // `x8`, which is no array and a number.
        let times = c.rest().strip_prefix('x').is_some_and(|r| r.starts_with(|d: char| d.is_ascii_digit()));
        let times = times && (word == "rd" || c.rest().contains(char::is_whitespace));
        let count = match times {
            true => {
                c.expect("x")?;
                c.small("how often")?
            }
            false => 1,
        };
        match word {
            "rd" => Ok(ColumnOp::Rd { at, count }),
            _ => Ok(ColumnOp::Wr { at, count, data: self.data(c)? }),
        }
    }

    fn aim(&self, word: &str, c: &mut Cursor<'_>) -> Read<AimOp> {
        let from = |c: &mut Cursor<'_>| -> Read<(u32, u64)> {
            let tensor = self.known(c)?;
            c.expect("+")?;
            Ok((tensor, c.number("a byte of the array")?))
        };
        let field = |c: &mut Cursor<'_>, name: &str| c.expect(name).and_then(|()| c.expect("="));
        match word {
            "wrgb" => {
                let col = c.small("a column")?;
                let (tensor, offset) = from(c)?;
                field(c, "bytes")?;
                Ok(AimOp::WriteBuffer { col, tensor, offset, bytes: c.small("how many")? })
            }
            "macab" => {
                let (row, col) = (c.small("a row")?, c.small("a column")?);
                let count = if c.eat("x") { c.small("how often")? } else { 1 };
                Ok(AimOp::Mac { row, col, count })
            }
            _ => {
                let (tensor, offset) = from(c)?;
                field(c, "banks")?;
                let first = c.small("the first bank")?;
                c.expect(":")?;
                Ok(AimOp::Read { tensor, offset, lanes: (first, c.small("how many")?) })
            }
        }
    }

    fn data(&self, c: &mut Cursor<'_>) -> Read<Data> {
        c.space();
        if c.rest().starts_with("0x") {
            return hex(c);
        }
        // `unit+0` is an array's.
        if !c.rest().starts_with("unit+") && c.eat_word("unit") {
            return Ok(Data::Unit);
        }
        if !c.rest().starts_with("crf+") && c.eat_word("crf") {
            return program(c);
        }
        let tensor = self.known(c)?;
        c.expect("+")?;
        Ok(Data::Tensor { tensor, offset: c.number("a byte of the array")? })
    }

    fn params(&self, c: &mut Cursor<'_>) -> Read<Params> {
        let geo = self.known(c)?;
        let mut f = Fields::read(c)?;
        let offsets = match f.find("offsets") {
            Some(_) => Some((f.number(c, "offsets")?, f.small(c, "offset_stride")?)),
            None => None,
        };
        let samples = f.below(c, "samples", u64::from(u16::MAX))? as u16;
        let params = Params {
            geo,
            address: f.number(c, "address")?,
            samples,
            weights: (f.number(c, "weights")?, f.small(c, "weight_stride")?),
            offsets,
        };
        f.finish(c)?;
        Ok(params)
    }
}

/// `name=value ...` up to `from` or the end.
struct Fields<'t> {
    list: Vec<(&'t str, Range<usize>)>,
    /// Where they begin.
    start: usize,
}

impl<'t> Fields<'t> {
    fn read(c: &mut Cursor<'t>) -> Read<Fields<'t>> {
        c.space();
        let start = c.at;
        let mut list: Vec<(&str, Range<usize>)> = Vec::new();
        while !c.is_end() && !c.rest().starts_with("from ") {
            let (key, bytes) = c.word("a field")?;
            c.expect("=")?;
            if list.iter().any(|(k, _)| *k == key) {
                return c.error(bytes, format!("`{key}` is given twice"));
            }
            let (_, value) = c.word("its value")?;
            list.push((key, value));
        }
        Ok(Fields { list, start })
    }

    fn find(&self, key: &str) -> Option<&Range<usize>> {
        self.list.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    fn value<'c>(&mut self, c: &Cursor<'c>, key: &str) -> Read<Cursor<'c>> {
        let Some(n) = self.list.iter().position(|(k, _)| *k == key) else {
            return c.error(self.start..c.end, format!("`{key}=` is missing"));
        };
        let (_, bytes) = self.list.remove(n);
        Ok(Cursor { text: c.text, at: bytes.start, end: bytes.end })
    }

    fn below(&mut self, c: &Cursor<'_>, key: &str, most: u64) -> Read<u64> {
        let mut value = self.value(c, key)?;
        let n = value.below(key, most)?;
        value.finish()?;
        Ok(n)
    }

    fn number(&mut self, c: &Cursor<'_>, key: &str) -> Read<u64> {
        self.below(c, key, u64::MAX)
    }

    fn small(&mut self, c: &Cursor<'_>, key: &str) -> Read<u32> {
        Ok(self.below(c, key, u64::from(u32::MAX))? as u32)
    }

    fn word<T: Copy>(&mut self, c: &Cursor<'_>, key: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Read<T> {
        let mut value = self.value(c, key)?;
        let out = value.one_of(key, all, name)?;
        value.finish()?;
        Ok(out)
    }

    fn finish(self, c: &Cursor<'_>) -> Read<()> {
        match self.list.first() {
            None => Ok(()),
            Some((key, value)) => {
                c.error(value.start - key.len() - 1..value.end, format!("there is no field `{key}` here"))
            }
        }
    }
}

fn descriptor(c: &mut Cursor<'_>) -> Read<Descriptor> {
    let mut f = Fields::read(c)?;
    let d = Descriptor {
        feature: f.number(c, "feature")?,
        height: f.small(c, "height")?,
        width: f.small(c, "width")?,
        channels: f.small(c, "channels")?,
        tile_channels: f.small(c, "tile_channels")?,
        batch: f.small(c, "batch")?,
        border: f.word(c, "border", Border::ALL, Border::name)?,
        fold: f.below(c, "fold", 1)? == 1,
        order: f.word(c, "order", LoopOrder::ALL, LoopOrder::name)?,
        first_unit: f.small(c, "first_unit")?,
        units: f.small(c, "units")?,
        queries: f.small(c, "queries")?,
        map: f.word(c, "map", MapLayout::ALL, MapLayout::name)?,
        items: match f.find("items") {
            Some(_) => f.word(c, "items", Items::ALL, Items::name)?,
            None => Items::All,
        },
    };
    f.finish(c)?;
    Ok(d)
}

/// The rest of the line is the driver's, up to `from`.
fn command(c: &mut Cursor<'_>) -> Read<(Action, SourceLine)> {
    c.space();
    let rest = c.rest();
    let len = rest.find(" from ").unwrap_or(rest.len());
    let command = driver::DriverCommand::parse(&rest[..len]).or_else(|e| {
        let bytes = match &e {
            WordError::Text { at, .. } => c.at + at..c.at + len,
            _ => c.at..c.at + len,
        };
        c.error(bytes, e.to_string())
    })?;
    c.at += len;
    Ok((Action::Driver(command), c.from()?))
}

fn list<T>(
    c: &mut Cursor<'_>,
    open: &str,
    close: &str,
    mut item: impl FnMut(&mut Cursor<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    c.expect(open)?;
    let mut out = Vec::new();
    if c.eat(close) {
        return Ok(out);
    }
    loop {
        out.push(item(c)?);
        if c.eat(close) {
            return Ok(out);
        }
        if !c.eat(",") {
            return c.here(format!("`,` or `{close}` should be here"));
        }
    }
}

/// `at LAYOUT`
fn placed(c: &mut Cursor<'_>) -> Read<ArrayPlacement> {
    match c.eat_word("at") {
        true => placement(c),
        false => c.here("`at` and a layout should be here"),
    }
}

/// `(16,(8,4)):(2@byte,(1@col,1@row)) row=4 bank=1 col=16 replicated`
fn placement(c: &mut Cursor<'_>) -> Read<ArrayPlacement> {
    c.space();
    let start = c.at;
    let part = |c: &mut Cursor<'_>| c.small("an extent");
    let extents = list(c, "(", ")", |c| parts(c, part))?;
    c.expect(":")?;
    let strides = list(c, "(", ")", |c| parts(c, stride))?;
    let same = extents.len() == strides.len() && extents.iter().zip(&strides).all(|(e, s)| e.len() == s.len());
    if !same {
        return c.error(start..c.at, "extents and strides of a layout have the same form");
    }
    let leaf = |(extent, (stride, coord)): (u32, (u32, Coord))| Leaf { extent, coord, stride };
    let dims = extents.into_iter().zip(strides).map(|(e, s)| e.into_iter().zip(s).map(leaf).collect()).collect();
    let mut first = |name: &str, what: &str| match c.eat_word(name) {
        true => c.expect("=").and_then(|()| c.small(what)),
        false => Ok(0),
    };
    let (row, bank, col) = (first("row", "the first row")?, first("bank", "the bank")?, first("col", "the column")?);
    Ok(ArrayPlacement { dims, row, bank, col, replicated: c.eat_word("replicated") })
}

/// One part of a dimension, or several in parentheses.
fn parts<T>(c: &mut Cursor<'_>, part: impl Fn(&mut Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    c.space();
    if c.rest().starts_with('(') { list(c, "(", ")", part) } else { Ok(vec![part(c)?]) }
}

fn stride(c: &mut Cursor<'_>) -> Read<(u32, Coord)> {
    let stride = c.small("a stride")?;
    c.expect("@")?;
    Ok((stride, c.one_of("a coordinate", &Coord::ALL, Coord::name)?))
}

/// `by (extent:src:dst, ...)`
fn axes(c: &mut Cursor<'_>) -> Read<Vec<RelayoutAxis>> {
    if !c.eat_word("by") {
        return c.here("`by` and the loops should be here");
    }
    list(c, "(", ")", |c| {
        let extent = c.small("an extent")?;
        c.expect(":")?;
        let src = c.small("the distance in the source")?;
        c.expect(":")?;
        Ok(RelayoutAxis { extent, src, dst: c.small("the distance in the destination")? })
    })
}

/// `12:0`, elements of the source and of the destination.
fn start(c: &mut Cursor<'_>) -> Read<[u32; 2]> {
    let src = c.small("an element of the source")?;
    c.expect(":")?;
    Ok([src, c.small("an element of the destination")?])
}

/// `0.0,0.1`
fn pchs(c: &mut Cursor<'_>) -> Read<Vec<Pch>> {
    let mut out = Vec::new();
    loop {
        let channel = c.half("a channel")?;
        c.expect(".")?;
        out.push(Pch { channel, pc: c.half("a pseudo-channel")? });
        if !c.eat(",") {
            return Ok(out);
        }
    }
}

/// `0x` and up to 32 bytes; those that are missing are 0.
fn hex(c: &mut Cursor<'_>) -> Read<Data> {
    let start = c.at;
    let (word, bytes) = c.word("bytes")?;
    let digits = &word[2..];
    let mut data = [0; BURST];
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * BURST || digits.is_empty() {
        return c.error(bytes, format!("data are `0x` and 1 to {BURST} bytes of two digits, the first byte first"));
    }
    for (n, byte) in data.iter_mut().enumerate().take(digits.len() / 2) {
        let pair = digits.get(2 * n..2 * n + 2).filter(|p| p.bytes().all(|b| b.is_ascii_hexdigit()));
        match pair.and_then(|p| u8::from_str_radix(p, 16).ok()) {
            Some(value) => *byte = value,
            None => return c.error(start..c.at, "data are hexadecimal digits"),
        }
    }
    Ok(Data::Bytes(data))
}

/// Up to eight instructions with `;` between them; those that are missing are NOPs.
fn program(c: &mut Cursor<'_>) -> Read<Data> {
    let mut data = [0; BURST];
    let mut at = c.at;
    for (n, line) in c.rest().split(';').enumerate() {
        let bytes = at..at + line.len();
        at += line.len() + 1;
        if n >= 8 {
            return c.error(bytes, "a burst holds eight instructions");
        }
        let word = Instruction::parse(line).and_then(|i| i.encode()).or_else(|e| {
            let start = match &e {
                WordError::Text { at, .. } => bytes.start + at,
                _ => bytes.start + line.len() - line.trim_start().len(),
            };
            c.error(start.min(bytes.end)..bytes.end, e.to_string())
        })?;
        data[4 * n..4 * n + 4].copy_from_slice(&word.to_le_bytes());
    }
    c.at = c.end;
    Ok(Data::Bytes(data))
}
