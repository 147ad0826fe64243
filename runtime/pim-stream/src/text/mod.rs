//! The text form of a stream: one step a line, the operations of an `exec` one a line in braces.
//!
//! [`Stream::to_text`] writes it, [`Stream::parse`] reads it; the grammar is in `spec/stream.md`.

mod cursor;
mod read;

use crate::crf::Instruction;
use crate::mode;
use crate::placement::ArrayPlacement;
use crate::stream::*;
use std::fmt::{self, Display, Write};
use std::ops::Range;

/// The word with which the text form begins.
pub const HEADER: &str = "pim-stream";

/// Why a text is no stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// What is wrong.
    pub message: String,
    /// Line from 1.
    pub line: usize,
    /// Column from 1, in Unicode scalars.
    pub column: usize,
    /// Bytes of the text that are meant.
    pub bytes: Range<usize>,
    /// What mends it; empty where nothing can be said.
    pub help: String,
}

impl Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "; {}", self.help) }
    }
}

impl std::error::Error for TextError {}

/// A stream read from text, and where its parts stand.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The stream.
    pub stream: Stream,
    /// Bytes of the line of the device, of the units, of each array, and of each step (the first line of an `exec`).
    pub device: Range<usize>,
    /// See `device`.
    pub unit: Range<usize>,
    /// See `device`.
    pub tensors: Vec<Range<usize>>,
    /// See `device`.
    pub steps: Vec<Range<usize>>,
    /// Of each step, the lines of its operations.
    pub ops: Vec<Vec<Range<usize>>>,
}

impl Stream {
    /// Reads the text form.
    pub fn parse(text: &str) -> Result<Parsed, TextError> {
        read::read(text)
    }

    /// The text form, which [`Self::parse`] reads as the same stream.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out);
        out
    }

    fn name(&self, tensor: u32) -> &str {
        self.tensors.get(tensor as usize).map_or("?", |t| &t.name)
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "{HEADER} {}", crate::binary::VERSION)?;
        write!(out, "device {} refresh={}", self.device.preset, self.device.refresh.name())?;
        for (name, value) in &self.device.overrides {
            write!(out, " {name}={value}")?;
        }
        write!(out, "\nunit {}", self.unit.name())?;
        for ((name, _), value) in self.unit.names().iter().zip(self.unit.values()) {
            write!(out, " {name}={value}")?;
        }
        out.push('\n');
        for file in &self.files {
            writeln!(out, "file \"{}\"", file.replace('\\', "\\\\").replace('"', "\\\""))?;
        }
        for t in &self.tensors {
            let shape: Vec<String> = t.shape.iter().map(u32::to_string).collect();
            write!(out, "tensor {} {}[{}] {}", t.name, t.dtype, shape.join(", "), t.role.name())?;
            match t.fill {
                Some(bits) => writeln!(out, " fill {bits:#x}")?,
                None => out.push('\n'),
            }
        }
        self.steps.iter().try_for_each(|step| self.step(out, step))
    }

    fn step(&self, out: &mut String, step: &StreamStep) -> fmt::Result {
        let from = From(step.place);
        match &step.action {
            Action::Write(t) | Action::Read(t) | Action::Resident(t) => {
                let word = step.action.name();
                writeln!(out, "{word} {} at {}{from}", self.name(t.tensor), t.placement)
            }
            Action::Move { tensor, from: here, to } => {
                writeln!(out, "move {} at {here} -> {to}{from}", self.name(*tensor))
            }
            Action::Relayout(r) => {
                write!(out, "relayout {} at {} -> {} at {} by (", self.name(r.src), r.from, self.name(r.dst), r.to)?;
                for (n, a) in r.axes.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    write!(out, "{comma}{}:{}:{}", a.extent, a.src, a.dst)?;
                }
                out.push(')');
                if r.start != [0; 2] {
                    write!(out, " start {}:{}", r.start[0], r.start[1])?;
                }
                writeln!(out, "{from}")
            }
            Action::Exec(e) => {
                let pchs: Vec<String> = e.pchs.iter().map(Pch::to_string).collect();
                writeln!(out, "exec {}{from} {{", pchs.join(","))?;
                e.ops.iter().try_for_each(|op| self.op(out, op))?;
                out.push_str("}\n");
                Ok(())
            }
            Action::Descriptor(d) => {
                write!(out, "descriptor feature={:#x} height={} width={}", d.feature, d.height, d.width)?;
                write!(out, " channels={} tile_channels={} batch={}", d.channels, d.tile_channels, d.batch)?;
                write!(out, " border={} fold={} order={}", d.border.name(), u32::from(d.fold), d.order.name())?;
                write!(out, " first_unit={} units={} queries={}", d.first_unit, d.units, d.queries)?;
                write!(out, " map={}", d.map.name())?;
                if d.items != Items::All {
                    write!(out, " items={}", d.items.name())?;
                }
                writeln!(out, "{from}")
            }
            Action::Params(p) => {
                write!(out, "params {} address={:#x} samples={}", self.name(p.geo), p.address, p.samples)?;
                write!(out, " weights={:#x} weight_stride={}", p.weights.0, p.weights.1)?;
                if let Some((address, stride)) = p.offsets {
                    write!(out, " offsets={address:#x} offset_stride={stride}")?;
                }
                writeln!(out, "{from}")
            }
            Action::Driver(command) => writeln!(out, "driver {command}{from}"),
            Action::Launch(l) if l.reads.is_empty() && l.writes.is_empty() => {
                writeln!(out, "launch {}{from}", l.kernel)
            }
            Action::Launch(l) => {
                writeln!(out, "launch {} ({}) -> ({}){from}", l.kernel, self.names(&l.reads), self.names(&l.writes))
            }
            Action::Host(h) => {
                writeln!(out, "host {} ({}) -> ({}){from}", h.kernel, self.names(&h.reads), self.names(&h.writes))
            }
        }
    }

    fn names(&self, list: &[u32]) -> String {
        list.iter().map(|n| self.name(*n)).collect::<Vec<_>>().join(", ")
    }

    fn op(&self, out: &mut String, op: &ColumnOp) -> fmt::Result {
        let times = |count: u32| if count == 1 { String::new() } else { format!(" x{count}") };
        match op {
            ColumnOp::Rd { at, count } => writeln!(out, "  rd {at}{}", times(*count)),
            ColumnOp::Wr { at, count, data } => {
                write!(out, "  wr {at}{} ", times(*count))?;
                match data {
                    Data::Unit => out.push_str("unit"),
                    Data::Tensor { tensor, offset } => write!(out, "{}+{offset}", self.name(*tensor))?,
                    Data::Bytes(bytes) => match program(at, bytes) {
                        Some(lines) => write!(out, "crf {}", lines.join("; "))?,
                        None => hex(out, bytes)?,
                    },
                }
                out.push('\n');
                Ok(())
            }
            ColumnOp::Aim(op) => match *op {
                AimOp::Close => writeln!(out, "  close"),
                AimOp::Open { row } => writeln!(out, "  open {row:#x}"),
                AimOp::WriteBuffer { col, tensor, offset, bytes } => {
                    writeln!(out, "  wrgb {col} {}+{offset} bytes={bytes}", self.name(tensor))
                }
                AimOp::Clear => writeln!(out, "  wrbias"),
                AimOp::Mac { row, col, count } => writeln!(out, "  macab {row:#x} {col}{}", times(count)),
                AimOp::Relu => writeln!(out, "  af"),
                AimOp::Read { tensor, offset, lanes: (first, count) } => {
                    writeln!(out, "  rdmac {}+{offset} banks={first}:{count}", self.name(tensor))
                }
            },
            ColumnOp::Fence => writeln!(out, "  fence"),
            ColumnOp::Line(place) => writeln!(out, "  line {}:{}", place.file, place.line),
        }
    }
}

/// The instructions of a burst that goes to a unit's program, if they all are some; NOPs at the end are left out.
fn program(at: &Burst, bytes: &[u8; BURST]) -> Option<Vec<String>> {
    if at.row != mode::REGISTER_ROW || !mode::CRF_COLUMNS.contains(&at.col) {
        return None;
    }
    let words = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")));
    let mut lines = words.map(|w| Instruction::decode(w).ok().map(|i| i.to_string())).collect::<Option<Vec<_>>>()?;
    while lines.len() > 1 && lines.last().is_some_and(|l| l == "NOP") {
        lines.pop();
    }
    Some(lines)
}

/// `0x` and the bytes in their order, zeros at the end left out.
fn hex(out: &mut String, bytes: &[u8; BURST]) -> fmt::Result {
    let used = bytes.iter().rposition(|b| *b != 0).map_or(1, |n| n + 1);
    out.push_str("0x");
    bytes[..used].iter().try_for_each(|b| write!(out, "{b:02x}"))
}

/// The place of a step, at the end of its line.
struct From(SourceLine);

impl Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == SourceLine::default() { Ok(()) } else { write!(f, " from {}:{}", self.0.file, self.0.line) }
    }
}

impl Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:#x} {}", self.bg, self.bank, self.row, self.col)
    }
}

impl Display for ArrayPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, what) in [0, 1].into_iter().enumerate() {
            f.write_str(if n == 0 { "(" } else { ":(" })?;
            for (d, leaves) in self.dims.iter().enumerate() {
                let parts: Vec<String> = leaves
                    .iter()
                    .map(|l| if what == 0 { l.extent.to_string() } else { format!("{}@{}", l.stride, l.coord.name()) })
                    .collect();
                let comma = if d == 0 { "" } else { "," };
                match &parts[..] {
                    [one] => write!(f, "{comma}{one}")?,
                    many => write!(f, "{comma}({})", many.join(","))?,
                }
            }
            f.write_str(")")?;
        }
        for (name, first) in [("row", self.row), ("bank", self.bank), ("col", self.col)] {
            if first != 0 {
                write!(f, " {name}={first}")?;
            }
        }
        f.write_str(if self.replicated { " replicated" } else { "" })
    }
}
