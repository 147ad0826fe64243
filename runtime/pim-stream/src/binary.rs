//! The binary form of a stream.
//!
//! Magic, version, then every part in order. Numbers are LEB128 of the least length, bytes and texts are preceded by
//! their length, lists by their count, enumerations are the positions in their tables. A driver's command is its 44
//! bytes. Reading checks every count against what is left, so no input can ask for more memory than its own size
//! warrants. One stream has one form.

use crate::driver;
use crate::placement::{ArrayPlacement, Leaf};
use crate::stream::*;
use crate::unit::UnitConfig;
use ptoc_abi::Coord;
use ptoc_tensor::DType;
use std::fmt;

/// The first bytes of the binary form; the first is no text.
pub const MAGIC: [u8; 8] = *b"\x8aPIMSTR\n";
/// The version that is written and read.
pub const VERSION: u64 = 1;

/// The types of elements, in the order of their codes.
const DTYPES: [DType; 14] = DType::ALL;

/// Roles of arrays with a first value, which comes behind the code: the codes behind those of the roles alone.
const FILLED: [Role; 2] = [Role::Temp, Role::Out];

/// Why bytes are no stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryError {
    /// The byte.
    pub offset: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for BinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for BinaryError {}

/// Codes of the actions.
mod tag {
    pub const WRITE: u64 = 0;
    pub const READ: u64 = 1;
    pub const MOVE: u64 = 2;
    pub const RELAYOUT: u64 = 3;
    pub const EXEC: u64 = 4;
    pub const DESCRIPTOR: u64 = 5;
    pub const PARAMS: u64 = 6;
    pub const DRIVER: u64 = 7;
    pub const LAUNCH: u64 = 8;
    pub const HOST: u64 = 9;
    pub const RESIDENT: u64 = 10;
    pub const RD: u64 = 0;
    pub const WR_UNIT: u64 = 1;
    pub const WR_BYTES: u64 = 2;
    pub const WR_TENSOR: u64 = 3;
    pub const FENCE: u64 = 4;
    pub const LINE: u64 = 5;
    pub const AIM_CLOSE: u64 = 6;
    pub const AIM_OPEN: u64 = 7;
    pub const AIM_BUFFER: u64 = 8;
    pub const AIM_CLEAR: u64 = 9;
    pub const AIM_MAC: u64 = 10;
    pub const AIM_RELU: u64 = 11;
    pub const AIM_READ: u64 = 12;
}

impl Stream {
    /// The binary form.
    ///
    /// Errors: a driver's command that has none.
    pub fn encode(&self) -> Result<Vec<u8>, crate::WordError> {
        let mut w = Writer(MAGIC.to_vec());
        w.num(VERSION);
        w.text(&self.device.preset);
        w.num(self.device.refresh as u64);
        w.list(&self.device.overrides, |w, (name, value)| {
            w.text(name);
            w.num(u64::from(*value));
        });
        w.num(self.unit.code() as u64);
        self.unit.values().into_iter().for_each(|v| w.num(u64::from(v)));
        w.list(&self.files, |w, name| w.text(name));
        w.list(&self.tensors, |w, t| {
            w.text(&t.name);
            w.num(DTYPES.iter().position(|d| *d == t.dtype).expect("every type is in the list") as u64);
            w.list(&t.shape, |w, e| w.num(u64::from(*e)));
            match t.fill {
                Some(bits) => {
                    let filled = FILLED.iter().position(|r| *r == t.role).unwrap_or(0);
                    w.num((Role::ALL.len() + filled) as u64);
                    w.num(bits);
                }
                None => w.num(t.role as u64),
            }
        });
        w.num(self.steps.len() as u64);
        for step in &self.steps {
            w.place(step.place);
            w.action(&step.action)?;
        }
        Ok(w.0)
    }

    /// The stream of a binary form.
    pub fn decode(bytes: &[u8]) -> Result<Stream, BinaryError> {
        let mut r = Reader { bytes, at: 0 };
        if !bytes.starts_with(&MAGIC) {
            return r.fail("this is no PIM stream: it does not begin with its magic number".into());
        }
        r.at = MAGIC.len();
        let version = r.num("the version")?;
        if version != VERSION {
            r.at = MAGIC.len();
            return r.fail(format!("the stream has version {version}; {VERSION} is read"));
        }
        let preset = r.name("the device")?;
        let refresh = r.one_of(Refresh::ALL, "the refresh")?;
        let overrides = r.list("overrides", |r| Ok((r.name("a parameter")?, r.small("a parameter")?)))?;
        let at = r.at;
        let kind = r.num("the kind of unit")?;
        let Some(mut unit) = usize::try_from(kind).ok().and_then(UnitConfig::of_kind) else {
            r.at = at;
            return r.fail(format!("there is no kind {kind} of unit"));
        };
        for (name, _) in unit.names() {
            let value = r.small(name)?;
            unit.set(name, value);
        }
        let files = r.list("files", |r| r.text("a file's name"))?;
        let tensors = r.list("arrays", |r| {
            let name = r.name("an array's name")?;
            let dtype = r.one_of(&DTYPES, "the type of elements")?;
            let shape = r.list("extents", |r| r.small("an extent"))?;
            let plain = Role::ALL.iter().map(|role| (*role, false));
            let roles: Vec<(Role, bool)> = plain.chain(FILLED.map(|role| (role, true))).collect();
            let (role, filled) = r.one_of(&roles, "the role of an array")?;
            let fill = if filled { Some(r.num("the bits of an element")?) } else { None };
            Ok(TensorDecl { name, dtype, shape, role, fill })
        })?;
        let steps = r.list("steps", |r| Ok(StreamStep { place: r.place()?, action: r.action()? }))?;
        match r.at == bytes.len() {
            true => Ok(Stream { device: Device { preset, refresh, overrides }, unit, tensors, files, steps }),
            false => r.fail(format!("{} bytes follow the last step", bytes.len() - r.at)),
        }
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn num(&mut self, mut n: u64) {
        loop {
            let low = (n & 0x7f) as u8;
            n >>= 7;
            if n == 0 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    fn nums(&mut self, numbers: &[u32]) {
        numbers.iter().for_each(|n| self.num(u64::from(*n)));
    }

    fn text(&mut self, text: &str) {
        self.num(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut f: impl FnMut(&mut Self, &T)) {
        self.num(items.len() as u64);
        items.iter().for_each(|item| f(self, item));
    }

    fn place(&mut self, place: SourceLine) {
        self.nums(&[place.file, place.line]);
    }

    fn placement(&mut self, p: &ArrayPlacement) {
        self.list(&p.dims, |w, leaves| {
            w.list(leaves, |w, l| w.nums(&[l.extent, l.coord as u32, l.stride]));
        });
        self.num(u64::from(p.row));
        let within = p.bank != 0 || p.col != 0;
        self.num(u64::from(p.replicated) | u64::from(within) << 1);
        if within {
            self.nums(&[p.bank, p.col]);
        }
    }

    fn burst(&mut self, at: &Burst, count: u32) {
        self.nums(&[u32::from(at.bg), u32::from(at.bank), at.row, at.col, count]);
    }

    fn op(&mut self, op: &ColumnOp) {
        match op {
            ColumnOp::Rd { at, count } => {
                self.num(tag::RD);
                self.burst(at, *count);
            }
            ColumnOp::Wr { at, count, data } => {
                self.num(match data {
                    Data::Unit => tag::WR_UNIT,
                    Data::Bytes(_) => tag::WR_BYTES,
                    Data::Tensor { .. } => tag::WR_TENSOR,
                });
                self.burst(at, *count);
                match data {
                    Data::Unit => {}
                    Data::Bytes(bytes) => self.0.extend_from_slice(bytes),
                    Data::Tensor { tensor, offset } => {
                        self.num(u64::from(*tensor));
                        self.num(*offset);
                    }
                }
            }
            ColumnOp::Aim(op) => self.aim(op),
            ColumnOp::Fence => self.num(tag::FENCE),
            ColumnOp::Line(place) => {
                self.num(tag::LINE);
                self.place(*place);
            }
        }
    }

    fn aim(&mut self, op: &AimOp) {
        match *op {
            AimOp::Close => self.num(tag::AIM_CLOSE),
            AimOp::Open { row } => {
                self.num(tag::AIM_OPEN);
                self.num(u64::from(row));
            }
            AimOp::WriteBuffer { col, tensor, offset, bytes } => {
                self.num(tag::AIM_BUFFER);
                self.nums(&[col, tensor, bytes]);
                self.num(offset);
            }
            AimOp::Clear => self.num(tag::AIM_CLEAR),
            AimOp::Mac { row, col, count } => {
                self.num(tag::AIM_MAC);
                self.nums(&[row, col, count]);
            }
            AimOp::Relu => self.num(tag::AIM_RELU),
            AimOp::Read { tensor, offset, lanes: (first, count) } => {
                self.num(tag::AIM_READ);
                self.nums(&[tensor, first, count]);
                self.num(offset);
            }
        }
    }

    fn action(&mut self, action: &Action) -> Result<(), crate::WordError> {
        match action {
            Action::Write(t) | Action::Read(t) | Action::Resident(t) => {
                self.num(match action {
                    Action::Write(_) => tag::WRITE,
                    Action::Read(_) => tag::READ,
                    _ => tag::RESIDENT,
                });
                self.num(u64::from(t.tensor));
                self.placement(&t.placement);
            }
            Action::Move { tensor, from, to } => {
                self.num(tag::MOVE);
                self.num(u64::from(*tensor));
                self.placement(from);
                self.placement(to);
            }
            Action::Relayout(r) => {
                self.num(tag::RELAYOUT);
                self.num(u64::from(r.src));
                self.placement(&r.from);
                self.num(u64::from(r.dst));
                self.placement(&r.to);
                self.list(&r.axes, |w, a| w.nums(&[a.extent, a.src, a.dst]));
                self.nums(&r.start);
            }
            Action::Exec(e) => {
                self.num(tag::EXEC);
                self.list(&e.pchs, |w, p| w.nums(&[u32::from(p.channel), u32::from(p.pc)]));
                self.list(&e.ops, Writer::op);
            }
            Action::Descriptor(d) => {
                self.num(tag::DESCRIPTOR);
                self.num(d.feature);
                self.nums(&[d.height, d.width, d.channels, d.tile_channels, d.batch, d.border as u32]);
                self.nums(&[u32::from(d.fold), d.order as u32, d.first_unit, d.units, d.queries, d.map as u32]);
                self.num(d.items as u64);
            }
            Action::Params(p) => {
                self.num(tag::PARAMS);
                self.num(u64::from(p.geo));
                self.num(p.address);
                self.num(u64::from(p.samples));
                self.num(p.weights.0);
                self.num(u64::from(p.weights.1));
                self.num(u64::from(p.offsets.is_some()));
                if let Some((address, stride)) = p.offsets {
                    self.num(address);
                    self.num(u64::from(stride));
                }
            }
            Action::Driver(command) => {
                self.num(tag::DRIVER);
                self.0.extend_from_slice(&command.encode()?);
            }
            Action::Launch(l) => {
                self.num(tag::LAUNCH);
                self.text(&l.kernel);
                self.list(&l.reads, |w, n| w.num(u64::from(*n)));
                self.list(&l.writes, |w, n| w.num(u64::from(*n)));
            }
            Action::Host(h) => {
                self.num(tag::HOST);
                self.text(&h.kernel);
                self.list(&h.reads, |w, n| w.num(u64::from(*n)));
                self.list(&h.writes, |w, n| w.num(u64::from(*n)));
            }
        }
        Ok(())
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

type Read<T> = Result<T, BinaryError>;

impl<'b> Reader<'b> {
    fn fail<T>(&self, message: String) -> Read<T> {
        Err(BinaryError { offset: self.at, message })
    }

    fn take(&mut self, n: usize, what: &str) -> Read<&'b [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => self.fail(format!("the stream ends within {what}")),
        }
    }

    fn num(&mut self, what: &str) -> Read<u64> {
        let start = self.at;
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1, what)?[0];
            let low = u64::from(byte & 0x7f);
            if low << shift >> shift != low || (byte == 0 && shift > 0) {
                break;
            }
            n |= low << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        self.at = start;
        self.fail(format!("{what} is no number of at most 64 bits in its shortest form"))
    }

    fn small(&mut self, what: &str) -> Read<u32> {
        let start = self.at;
        let n = self.num(what)?;
        u32::try_from(n).or_else(|_| {
            self.at = start;
            self.fail(format!("{what} is {n}, which is not below 2^32"))
        })
    }

    fn half(&mut self, what: &str) -> Read<u16> {
        let start = self.at;
        let n = self.num(what)?;
        u16::try_from(n).or_else(|_| {
            self.at = start;
            self.fail(format!("{what} is {n}, which is not below 65536"))
        })
    }

    fn flag(&mut self, what: &str) -> Read<bool> {
        self.one_of(&[false, true], what)
    }

    fn one_of<T: Copy>(&mut self, all: &[T], what: &str) -> Read<T> {
        let start = self.at;
        let n = self.num(what)?;
        match usize::try_from(n).ok().and_then(|n| all.get(n)) {
            Some(value) => Ok(*value),
            None => {
                self.at = start;
                self.fail(format!("{what} is {n}; it is below {}", all.len()))
            }
        }
    }

    fn text(&mut self, what: &str) -> Read<String> {
        let start = self.at;
        let n = self.num(what)?;
        let bytes = self.take(usize::try_from(n).unwrap_or(usize::MAX), what)?;
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
            _ => {
                self.at = start;
                self.fail(format!("{what} is not UTF-8 without control characters"))
            }
        }
    }

    fn name(&mut self, what: &str) -> Read<String> {
        let start = self.at;
        let name = self.text(what)?;
        match TensorDecl::is_name(&name) {
            true => Ok(name),
            false => {
                self.at = start;
                self.fail(format!("{what}: `{}` is no name", name.escape_debug()))
            }
        }
    }

    fn list<T>(&mut self, what: &str, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let start = self.at;
        let n = self.num(what)?;
        let left = self.bytes.len() - self.at;
        // An item takes at least a byte.
        let Some(n) = usize::try_from(n).ok().filter(|n| *n <= left) else {
            self.at = start;
            return self.fail(format!("there are {n} {what}, and {left} bytes left"));
        };
        let mut out = Vec::new();
        for _ in 0..n {
            out.push(item(self)?);
        }
        Ok(out)
    }

    fn place(&mut self) -> Read<SourceLine> {
        Ok(SourceLine { file: self.small("the file of a place")?, line: self.small("the line of a place")? })
    }

    fn placement(&mut self) -> Read<ArrayPlacement> {
        let dims = self.list("dimensions", |r| {
            r.list("parts of a dimension", |r| {
                Ok(Leaf {
                    extent: r.small("an extent")?,
                    coord: r.one_of(&Coord::ALL, "a coordinate")?,
                    stride: r.small("a stride")?,
                })
            })
        })?;
        let row = self.small("the first row")?;
        let marks = self.one_of(&[0u8, 1, 2, 3], "the marks of a placement")?;
        let (bank, col) = match marks & 2 {
            0 => (0, 0),
            _ => (self.small("the bank of a placement")?, self.small("the column of a placement")?),
        };
        // Each placement has one form.
        if marks & 2 != 0 && (bank, col) == (0, 0) {
            return self.fail("a placement that begins in bank 0 and column 0 has no mark that says so".into());
        }
        Ok(ArrayPlacement { dims, row, bank, col, replicated: marks & 1 != 0 })
    }

    fn burst(&mut self) -> Read<(Burst, u32)> {
        let at = Burst {
            bg: self.half("a bank group")?,
            bank: self.half("a bank")?,
            row: self.small("a row")?,
            col: self.small("a column")?,
        };
        Ok((at, self.small("a count of commands")?))
    }

    fn op(&mut self) -> Read<ColumnOp> {
        let start = self.at;
        let kind = self.num("a column operation")?;
        Ok(match kind {
            tag::RD => {
                let (at, count) = self.burst()?;
                ColumnOp::Rd { at, count }
            }
            tag::WR_UNIT | tag::WR_BYTES | tag::WR_TENSOR => {
                let (at, count) = self.burst()?;
                let data = match kind {
                    tag::WR_UNIT => Data::Unit,
                    tag::WR_BYTES => {
                        Data::Bytes(self.take(BURST, "a burst")?.try_into().expect("as long as asked for"))
                    }
                    _ => Data::Tensor { tensor: self.small("an array")?, offset: self.num("an offset")? },
                };
                ColumnOp::Wr { at, count, data }
            }
            tag::AIM_CLOSE => ColumnOp::Aim(AimOp::Close),
            tag::AIM_OPEN => ColumnOp::Aim(AimOp::Open { row: self.small("a row")? }),
            tag::AIM_BUFFER => {
                let (col, tensor, bytes) = (self.small("a column")?, self.small("an array")?, self.small("bytes")?);
                ColumnOp::Aim(AimOp::WriteBuffer { col, tensor, bytes, offset: self.num("an offset")? })
            }
            tag::AIM_CLEAR => ColumnOp::Aim(AimOp::Clear),
            tag::AIM_MAC => {
                let (row, col) = (self.small("a row")?, self.small("a column")?);
                ColumnOp::Aim(AimOp::Mac { row, col, count: self.small("a count of commands")? })
            }
            tag::AIM_RELU => ColumnOp::Aim(AimOp::Relu),
            tag::AIM_READ => {
                let tensor = self.small("an array")?;
                let lanes = (self.small("an accumulator")?, self.small("how many")?);
                ColumnOp::Aim(AimOp::Read { tensor, lanes, offset: self.num("an offset")? })
            }
            tag::FENCE => ColumnOp::Fence,
            tag::LINE => ColumnOp::Line(self.place()?),
            _ => {
                self.at = start;
                return self.fail(format!("there is no column operation {kind}"));
            }
        })
    }

    fn action(&mut self) -> Read<Action> {
        let start = self.at;
        let kind = self.num("a step")?;
        Ok(match kind {
            tag::WRITE | tag::READ | tag::RESIDENT => {
                let t = Transfer { tensor: self.small("an array")?, placement: self.placement()? };
                match kind {
                    tag::WRITE => Action::Write(t),
                    tag::READ => Action::Read(t),
                    _ => Action::Resident(t),
                }
            }
            tag::MOVE => {
                Action::Move { tensor: self.small("an array")?, from: self.placement()?, to: self.placement()? }
            }
            tag::RELAYOUT => Action::Relayout(Relayout {
                src: self.small("an array")?,
                from: self.placement()?,
                dst: self.small("an array")?,
                to: self.placement()?,
                axes: self.list("loops", |r| {
                    Ok(RelayoutAxis {
                        extent: r.small("an extent")?,
                        src: r.small("a stride")?,
                        dst: r.small("a stride")?,
                    })
                })?,
                start: [self.small("an element")?, self.small("an element")?],
            }),
            tag::EXEC => Action::Exec(Exec {
                pchs: self.list("pseudo-channels", |r| {
                    Ok(Pch { channel: r.half("a channel")?, pc: r.half("a pseudo-channel")? })
                })?,
                ops: self.list("column operations", Reader::op)?,
            }),
            tag::DESCRIPTOR => Action::Descriptor(Descriptor {
                feature: self.num("the address of the map")?,
                height: self.small("the height")?,
                width: self.small("the width")?,
                channels: self.small("the channels")?,
                tile_channels: self.small("the channels of a tile")?,
                batch: self.small("the batch")?,
                border: self.one_of(Border::ALL, "the border")?,
                fold: self.flag("the mark of folding")?,
                order: self.one_of(LoopOrder::ALL, "the order of loops")?,
                first_unit: self.small("the first unit")?,
                units: self.small("the units")?,
                queries: self.small("the queries of a unit")?,
                map: self.one_of(MapLayout::ALL, "the layout of the map")?,
                items: self.one_of(Items::ALL, "whose maps a bank holds")?,
            }),
            tag::PARAMS => Action::Params(Params {
                geo: self.small("an array")?,
                address: self.num("the address of the entries")?,
                samples: self.half("the samples")?,
                weights: (self.num("the address of the weights")?, self.small("a stride")?),
                offsets: match self.flag("the mark of offsets")? {
                    true => Some((self.num("the address of the offsets")?, self.small("a stride")?)),
                    false => None,
                },
            }),
            tag::DRIVER => {
                let at = self.at;
                let bytes = self.take(driver::SIZE, "a driver's command")?;
                match driver::DriverCommand::decode(bytes) {
                    Ok(command) => Action::Driver(command),
                    Err(e) => {
                        self.at = at;
                        return self.fail(format!("this driver's command is malformed: {e}"));
                    }
                }
            }
            tag::LAUNCH => Action::Launch(Launch {
                kernel: self.name("a kernel's name")?,
                reads: self.list("arrays", |r| r.small("an array"))?,
                writes: self.list("arrays", |r| r.small("an array"))?,
            }),
            tag::HOST => Action::Host(Host {
                kernel: self.name("a kernel's name")?,
                reads: self.list("arrays", |r| r.small("an array"))?,
                writes: self.list("arrays", |r| r.small("an array"))?,
            }),
            _ => {
                self.at = start;
                return self.fail(format!("there is no step {kind}"));
            }
        })
    }
}
