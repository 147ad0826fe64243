//! Rows that a step reads and that nothing wrote before: they hold zeros.
//!
//! Rows are what is followed, of all banks together, and whole stretches of them: a stretch of which no row was written is told. What a
//! unit's program reads is not followed, since a command may step it without reading its bank.

use crate::driver::Kind;
use crate::mode::RESERVED_BIT;
use crate::placement::{Coord, Geometry, Placement};
use crate::register;
use crate::stream::*;
use std::ops::Range;

/// What a step reads though nobody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The step.
    pub step: usize,
    /// What it reads, in words.
    pub what: String,
    /// The rows.
    pub rows: Range<u64>,
}

/// Bytes of an f16.
const F16: u64 = 2;

struct Rows<'s> {
    stream: &'s Stream,
    g: &'s Geometry,
    written: Vec<Range<u64>>,
    found: Vec<Unwritten>,
    descriptor: Option<Descriptor>,
    params: Option<Params>,
}

impl Stream {
    /// Stretches of rows that steps read before anything was written to one of them. The stream has no faults.
    pub fn unwritten(&self, g: &Geometry) -> Vec<Unwritten> {
        let mut rows = Rows { stream: self, g, written: Vec::new(), found: Vec::new(), descriptor: None, params: None };
        for (n, step) in self.steps.iter().enumerate() {
            rows.step(n, &step.action);
        }
        rows.found
    }
}

/// The rows that a placement goes through.
fn reach(p: &Placement) -> Range<u64> {
    let first = u64::from(p.row);
    let along = p.dims.iter().flatten().filter(|l| l.coord == Coord::Row && l.extent > 0);
    first..along.fold(first + 1, |end, l| end + u64::from(l.extent - 1) * u64::from(l.stride))
}

impl Rows<'_> {
    fn wrote(&mut self, rows: Range<u64>) {
        // Steps write the same stretches again and again.
        if !self.written.iter().any(|w| w.start <= rows.start && rows.end <= w.end) {
            self.written.push(rows);
        }
    }

    fn reads(&mut self, step: usize, what: impl Into<String>, rows: Range<u64>) {
        if rows.is_empty() || self.written.iter().any(|w| w.start < rows.end && rows.start < w.end) {
            return;
        }
        self.found.push(Unwritten { step, what: what.into(), rows: rows.clone() });
        // Told once.
        self.written.push(rows);
    }

    fn array(&self, tensor: u32) -> Option<String> {
        let t = self.stream.tensors.get(tensor as usize).filter(|t| t.elements() != Some(0))?;
        Some(format!("`{}`", t.name))
    }

    fn rows_of(&self, address: u64, bytes: u64) -> Range<u64> {
        let row = self.g.row_bytes().max(1);
        address / row..(address + bytes).div_ceil(row)
    }

    fn step(&mut self, n: usize, action: &Action) {
        match action {
            Action::Write(t) => self.wrote(reach(&t.placement)),
            Action::Read(t) => {
                if let Some(name) = self.array(t.tensor) {
                    self.reads(n, name, reach(&t.placement));
                }
            }
            Action::Move { tensor, from, to } => {
                if let Some(name) = self.array(*tensor) {
                    self.reads(n, name, reach(from));
                }
                self.wrote(reach(to));
            }
            Action::Relayout(r) => {
                if let Some(name) = self.array(r.src) {
                    self.reads(n, name, reach(&r.from));
                }
                self.wrote(reach(&r.to));
            }
            Action::Exec(e) => {
                for op in &e.ops {
                    if let ColumnOp::Wr { at, .. } = op
                        && at.row & RESERVED_BIT == 0
                    {
                        self.wrote(u64::from(at.row)..u64::from(at.row) + 1);
                    }
                }
            }
            Action::Descriptor(d) => self.descriptor = Some(*d),
            Action::Params(p) => {
                self.params = Some(*p);
                let queries = self.descriptor.map_or(1, |d| u64::from(d.queries));
                self.wrote(self.rows_of(p.address, queries * register::SIZE as u64));
            }
            Action::Driver(c) if c.kind == Kind::Execute => self.execute(n, u64::from(c.queries), c.output),
            Action::Driver(_) | Action::Launch(_) | Action::Host(_) => {}
        }
    }

    /// The units read the map and what the entries name, and write their results.
    fn execute(&mut self, n: usize, queries: u64, output: u64) {
        let (Some(d), Some(p)) = (self.descriptor, self.params) else { return };
        let pixel = u64::from(d.channels) * F16;
        let pixels = u64::from(d.height) * u64::from(d.width);
        let map = match d.map {
            MapLayout::Pixels => pixels * pixel,
            MapLayout::Patches => pixels / 4 * self.g.row_bytes(),
        };
        self.reads(n, "the map", self.rows_of(d.feature, map));
        let samples = u64::from(p.samples);
        let operands = [("the weights", Some(p.weights), samples * F16), ("the offsets", p.offsets, samples * 2 * F16)];
        for (what, place, bytes) in operands {
            let Some((address, stride)) = place else { continue };
            let all = queries.saturating_sub(1) * u64::from(stride) + bytes;
            self.reads(n, what, self.rows_of(address, all));
        }
        self.wrote(self.rows_of(output, queries * pixel));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry { channel: 1, pch: 1, bg: 4, bank: 4, row: 16384, col: 32, burst: 32 };

    fn said(text: &str) -> Vec<String> {
        let stream = Stream::parse(text).unwrap_or_else(|e| panic!("{e}")).stream;
        stream.unwritten(&G).iter().map(|u| format!("{} {} {:?}", u.step, u.what, u.rows)).collect()
    }

    /// Each step that makes rows known, left out by itself.
    #[test]
    fn rows_that_nobody_wrote() {
        let head = "pim-stream 1\ndevice hbm2_2000\nunit geopim\ntensor f f16[4, 4, 32] in\ntensor g f16[2, 4] in\n\
                    tensor w f16[2, 16] in\ntensor y f16[2, 32] out\n";
        let steps = [
            "write f at ((2,2),(2,2),(16,2)):((4@col,2@row),(2@col,1@row),(2@byte,1@col)) row=1 replicated\n",
            "write w at (2,(16,1)):(1@col,(2@byte,1@col)) row=5\n",
            "descriptor feature=0x400 height=4 width=4 channels=32 tile_channels=16 batch=1 border=clamp fold=1 order=neighbour \
             first_unit=0 units=1 queries=2 map=patches\n",
            "params g address=0x1800 samples=16 weights=0x1400 weight_stride=32\n",
            "driver load params=0x1800 weights=0x1400\n",
            "driver execute queries=2 samples=16 output=0x1c00\n",
            "driver read output=0x1c00\n",
            "read y at (2,(16,2)):(2@col,(2@byte,1@col)) row=7\n",
        ];
        let without = |n: usize| {
            let kept: String = steps.iter().enumerate().filter(|(k, _)| *k != n).map(|(_, s)| *s).collect();
            said(&format!("{head}{kept}"))
        };
        assert_eq!(without(99), Vec::<String>::new());
        assert_eq!(without(0), ["4 the map 1..5"]);
        assert_eq!(without(1), ["4 the weights 5..6"]);
        let elsewhere = format!("{head}{}", steps.concat().replace("row=7", "row=8"));
        assert_eq!(said(&elsewhere), ["7 `y` 8..9"]);
    }

    /// What column commands write is written, reserved rows are not data, and a move needs a source.
    #[test]
    fn rows_of_other_steps() {
        let head = "pim-stream 1\ndevice hbm2_samsung_pim\nunit hbm-pim\ntensor y f16[16] inout\n";
        assert_eq!(
            said(&format!("{head}exec 0.0 {{\nwr 0 0 3 0 0x01\n}}\nread y at (16):(2@byte) row=3\n")),
            Vec::<String>::new()
        );
        assert_eq!(
            said(&format!("{head}exec 0.0 {{\nwr 0 0 0x17ff 0 0x01\n}}\nread y at (16):(2@byte) row=3\n")),
            ["1 `y` 3..4"]
        );
        assert_eq!(
            said(&format!("{head}move y at (16):(2@byte) -> (16):(2@byte) row=3\nread y at (16):(2@byte) row=3\n")),
            ["0 `y` 0..1"]
        );
    }
}
