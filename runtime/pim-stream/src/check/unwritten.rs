//! Rows that a step reads and that nothing wrote before: they hold zeros.
//!
//! Rows are followed bank by bank, and whole stretches of them: a stretch of a bank of which no row was written is
//! told, with the other banks of that step. What an HBM-PIM unit's program reads is not followed, since a command may
//! step it without reading its bank.

use crate::driver::{CommandKind, DriverCommand};
use crate::mode::{Machine, PimMode, RESERVED_BIT};
use crate::placement::{ArrayPlacement, Geometry};
use crate::reach::banks_of;
use crate::register;
use crate::stream::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a step reads though nobody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The step.
    pub step: usize,
    /// What it reads, in words, with the rows in the first of the banks.
    pub what: Vec<(String, Range<u64>)>,
    /// The banks in which nobody wrote them, counted through the device, in ascending order.
    pub banks: Vec<u32>,
    /// Of how many banks the step reads it.
    pub of: usize,
    /// The units of those banks, where it is units that read.
    pub units: Vec<u32>,
}

/// Bytes of an f16.
const F16: u64 = 2;

struct Rows<'s> {
    stream: &'s Stream,
    g: &'s Geometry,
    /// Of each bank, stretches that were written: first row, and the row behind the last; none meets another.
    written: BTreeMap<u32, BTreeMap<u64, u64>>,
    found: Vec<Unwritten>,
    machines: BTreeMap<Pch, Machine>,
    descriptor: Option<Descriptor>,
    params: Option<Params>,
}

impl Stream {
    /// Stretches of rows that steps read before anything was written to one of them. The stream has no faults.
    pub fn unwritten(&self, g: &Geometry) -> Vec<Unwritten> {
        let mut rows = Rows {
            stream: self,
            g,
            written: BTreeMap::new(),
            found: Vec::new(),
            machines: BTreeMap::new(),
            descriptor: None,
            params: None,
        };
        for (n, step) in self.steps.iter().enumerate() {
            rows.step(n, &step.action);
        }
        rows.found
    }
}

impl Rows<'_> {
    fn wrote(&mut self, bank: u32, rows: Range<u64>) {
        if rows.is_empty() {
            return;
        }
        let stretches = self.written.entry(bank).or_default();
        let mut rows = rows;
        // The last one that begins before the end; those that meet become one.
        while let Some((&first, &end)) = stretches.range(..=rows.end).next_back().filter(|(_, end)| **end >= rows.start)
        {
            stretches.remove(&first);
            rows = rows.start.min(first)..rows.end.max(end);
        }
        stretches.insert(rows.start, rows.end);
    }

    fn known(&self, bank: u32, rows: &Range<u64>) -> bool {
        let last = self.written.get(&bank).and_then(|s| s.range(..rows.end).next_back());
        rows.is_empty() || last.is_some_and(|(_, end)| *end > rows.start)
    }

    /// A step reads these rows of these banks.
    fn reads(&mut self, step: usize, what: impl Into<String>, rows: &BTreeMap<u32, Range<u64>>) {
        let banks: Vec<u32> = rows.iter().filter(|(bank, rows)| !self.known(**bank, rows)).map(|(b, _)| *b).collect();
        let Some(first) = banks.first() else { return };
        let (of, rows_of_first) = (rows.len(), rows[first].clone());
        // Told once.
        banks.iter().for_each(|b| self.wrote(*b, rows[b].clone()));
        let what = vec![(what.into(), rows_of_first)];
        self.found.push(Unwritten { step, what, banks, of, units: Vec::new() });
    }

    /// The rows of an array with elements, and how messages call it.
    fn array(&self, tensor: u32, placement: &ArrayPlacement) -> Option<(String, BTreeMap<u32, Range<u64>>)> {
        let t = self.stream.tensors.get(tensor as usize).filter(|t| t.elements() != Some(0))?;
        Some((format!("`{}`", t.name), placement.rows_by_bank(&t.shape, self.g, &self.stream.unit)))
    }

    fn takes(&mut self, step: usize, tensor: u32, placement: &ArrayPlacement) {
        if let Some((name, rows)) = self.array(tensor, placement) {
            self.reads(step, name, &rows);
        }
    }

    fn gives(&mut self, tensor: u32, placement: &ArrayPlacement) {
        if let Some((_, rows)) = self.array(tensor, placement) {
            rows.into_iter().for_each(|(bank, rows)| self.wrote(bank, rows));
        }
    }

    fn rows_of(&self, address: u64, bytes: u64) -> Range<u64> {
        let row = self.g.row_bytes().max(1);
        address / row..(address + bytes).div_ceil(row)
    }

    fn step(&mut self, n: usize, action: &Action) {
        match action {
            Action::Write(t) | Action::Resident(t) => self.gives(t.tensor, &t.placement),
            Action::Read(t) => self.takes(n, t.tensor, &t.placement),
            Action::Move { tensor, from, to } => {
                self.takes(n, *tensor, from);
                self.gives(*tensor, to);
            }
            Action::Relayout(r) => {
                self.takes(n, r.src, &r.from);
                self.gives(r.dst, &r.to);
            }
            Action::Exec(e) => e.pchs.iter().for_each(|pch| self.exec(*pch, &e.ops)),
            Action::Descriptor(d) => self.descriptor = Some(*d),
            Action::Params(p) => {
                self.params = Some(*p);
                let Some(d) = self.descriptor else { return };
                let rows = self.rows_of(p.address, u64::from(d.queries) * register::SIZE as u64);
                self.units(&d).for_each(|(_, bank)| self.wrote(bank, rows.clone()));
            }
            Action::Driver(c) if c.kind == CommandKind::Execute => self.execute(n, c),
            Action::Driver(_) | Action::Launch(_) | Action::Host(_) => {}
        }
    }

    /// What column commands write: in all-bank modes the even or the odd banks of the pseudo-channel take it.
    fn exec(&mut self, pch: Pch, ops: &[ColumnOp]) {
        let mut machine = self.machines.remove(&pch).unwrap_or_default();
        let banks = self.g.banks_of_pch();
        let first = (u32::from(pch.channel) * self.g.pch + u32::from(pch.pc)) * banks;
        for op in ops {
            let ColumnOp::Wr { at, count, data } = op else { continue };
            let bank = u32::from(at.bg) * self.g.bank + u32::from(at.bank);
            if at.row & RESERVED_BIT == 0 {
                let rows = u64::from(at.row)..u64::from(at.row) + 1;
                match machine.mode() {
                    PimMode::SingleBank => self.wrote(first + bank, rows),
                    _ => (bank % 2..banks).step_by(2).for_each(|b| self.wrote(first + b, rows.clone())),
                }
            } else if let Data::Bytes(bytes) = data {
                (at.col..at.col + count).for_each(|col| {
                    machine.write(bank, at.row, col, bytes);
                });
            }
        }
        self.machines.insert(pch, machine);
    }

    /// The units that the descriptor names, counted from its first one, and their banks.
    fn units(&self, d: &Descriptor) -> impl Iterator<Item = (u32, u32)> + use<> {
        let banks: Vec<u32> =
            (0..d.units).map(|n| banks_of(d.first_unit + n, &self.stream.unit, self.g).start).collect();
        (0..d.units).zip(banks)
    }

    /// The units read the map and what the entries name, and write their results.
    fn execute(&mut self, n: usize, c: &DriverCommand) {
        let (Some(d), Some(p)) = (self.descriptor, self.params) else { return };
        let told = self.found.len();
        let results = self.rows_of(c.output, u64::from(c.queries) * u64::from(d.channels) * F16);
        let item = d.item_bytes(self.g.row_bytes());
        let samples = u64::from(p.samples);
        let strided = |(address, stride): (u64, u32), bytes: u64| {
            move |queries: u64| (address, queries.saturating_sub(1) * u64::from(stride) + bytes)
        };
        let weights = strided(p.weights, samples * F16);
        let offsets = p.offsets.map(|o| strided(o, samples * 2 * F16));
        let mut operands: Vec<(&str, BTreeMap<u32, Range<u64>>)> =
            ["the map", "the parameters", "the weights", "the offsets"].map(|what| (what, BTreeMap::new())).into();
        for (unit, bank) in self.units(&d) {
            let queries = d.queries_of(unit, self.queries(&p)).min(u64::from(c.queries));
            if queries == 0 {
                continue;
            }
            let map = (d.feature + d.map_of(unit) * item, item);
            let entries = (p.address, queries * register::SIZE as u64);
            let places = [Some(map), Some(entries), Some(weights(queries)), offsets.map(|o| o(queries))];
            for ((_, rows), place) in operands.iter_mut().zip(places) {
                if let Some((address, bytes)) = place {
                    rows.insert(bank, self.rows_of(address, bytes));
                }
            }
        }
        operands.iter().for_each(|(what, rows)| self.reads(n, *what, rows));
        // One wrong address or unit is one mistake: what is missing in the same banks is told together.
        let mut own: Vec<Unwritten> = Vec::new();
        for u in self.found.drain(told..) {
            match own.iter_mut().find(|o| o.banks == u.banks) {
                Some(o) => o.what.extend(u.what),
                None => own.push(u),
            }
        }
        let first = d.first_unit;
        let banks: Vec<(u32, u32)> = self.units(&d).collect();
        for u in &mut own {
            u.units = banks.iter().filter(|(_, b)| u.banks.contains(b)).map(|(n, _)| first + n).collect();
        }
        let lost = !own.is_empty();
        self.found.append(&mut own);
        // Results may be missing because the wrong units worked, which was told.
        match lost {
            true => (0..self.g.banks()).for_each(|b| self.wrote(b, results.clone())),
            false => banks.iter().for_each(|(_, b)| self.wrote(*b, results.clone())),
        }
    }

    /// Queries of all units.
    fn queries(&self, p: &Params) -> u64 {
        self.stream.tensors.get(p.geo as usize).and_then(TensorDecl::elements).unwrap_or(0) / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry { channel: 1, pch: 1, bg: 4, bank: 4, row: 16384, col: 32, burst: 32 };

    fn said(text: &str) -> Vec<String> {
        let stream = Stream::parse(text).unwrap_or_else(|e| panic!("{e}")).stream;
        assert_eq!(stream.check(&G), []);
        let one = |u: &Unwritten| {
            let what: Vec<String> = u.what.iter().map(|(what, rows)| format!("{what} {rows:?}")).collect();
            format!("{} {} in {:?} of {}, units {:?}", u.step, what.join(", "), u.banks, u.of, u.units)
        };
        stream.unwritten(&G).iter().map(one).collect()
    }

    /// Each step that makes rows known, left out by itself.
    #[test]
    fn rows_that_nobody_wrote() {
        let head = "pim-stream 1\ndevice hbm2_2000\nunit geopim\ntensor f f16[4, 4, 32] in\ntensor g f16[2, 4] in\n\
                    tensor w f16[2, 16] in\ntensor y f16[2, 32] out\n";
        let steps = [
            "write f at ((2,2),(2,2),(16,2)):((4@col,2@row),(2@col,1@row),(2@byte,1@col)) row=1 replicated\n",
            "write w at (2,(16,1)):(1@col,(2@byte,1@col)) row=5\n",
            "descriptor feature=0x400 height=4 width=4 channels=32 tile_channels=16 batch=1 border=clamp fold=1 \
             order=neighbour first_unit=0 units=1 queries=2 map=patches\n",
            "params g address=0x1800 samples=16 weights=0x1400 weight_stride=32\n",
            "driver load params=0x1800 weights=0x1400\n",
            "driver execute queries=2 samples=16 output=0x1c00\n",
            "driver read output=0x1c00\n",
            "read y at (2,(16,2)):(2@col,(2@byte,1@col)) row=7\n",
        ];
        let all = |steps: String| said(&format!("{head}{steps}"));
        let without = |n: usize| {
            let kept: String = steps.iter().enumerate().filter(|(k, _)| *k != n).map(|(_, s)| *s).collect();
            said(&format!("{head}{kept}"))
        };
        assert_eq!(without(99), Vec::<String>::new());
        assert_eq!(without(0), ["4 the map 1..5 in [0] of 1, units [0]"]);
        assert_eq!(without(1), ["4 the weights 5..6 in [0] of 1, units [0]"]);
        assert_eq!(all(steps.concat().replace("row=7", "row=8")), ["7 `y` 8..9 in [0] of 1, units []"]);
        // Both operands of one unit are one mistake.
        assert_eq!(all(steps[2..].concat()), ["3 the map 1..5, the weights 5..6 in [0] of 1, units [0]"]);
        // The maps are in every bank; weights are in that of unit 0, and where unit 3 writes nobody looks.
        let elsewhere = steps.concat().replace("first_unit=0", "first_unit=3");
        assert_eq!(all(elsewhere), ["5 the weights 5..6 in [12] of 1, units [3]"]);
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
            ["1 `y` 3..4 in [0] of 1, units []"]
        );
        assert_eq!(
            said(&format!("{head}move y at (16):(2@byte) -> (16):(2@byte) row=3\nread y at (16):(2@byte) row=3\n")),
            ["0 `y` 0..1 in [0] of 1, units []"]
        );
    }

    /// Two queries a unit, three units, of two batch items: of each mistake of `first_unit` and `unit` strides the
    /// banks.
    #[test]
    fn units_that_nobody_wrote_for() {
        let text = |first: u32, weights: &str| {
            format!(
                "pim-stream 1\ndevice hbm2_2000\nunit geopim spread=0\ntensor f f16[2, 2, 2, 16] in\n\
                 tensor g f16[2, 5, 4] in\n\
                 tensor w f16[2, 5, 16] in\ntensor y f16[2, 5, 16] out\n\
                 write f at (2,2,2,16):(1@row,2@col,1@col,2@byte) row=1 replicated\n\
                 write w at (2,(2,3),16):({weights}) row=5\n\
                 descriptor feature=0x400 height=2 width=2 channels=16 tile_channels=16 batch=2 border=clamp fold=1 \
                 order=neighbour first_unit={first} units=6 queries=2 map=patches\n\
                 params g address=0x1800 samples=16 weights=0x1400 weight_stride=32\n\
                 driver load params=0x1800 weights=0x1400\ndriver execute queries=2 samples=16 output=0x1c00\n\
                 driver read output=0x1c00\nread y at (2,(2,3),16):(3@unit,(1@col,1@unit),2@byte) row=7\n"
            )
        };
        let right = "3@unit,(1@col,1@unit),2@byte";
        assert_eq!(said(&text(0, right)), Vec::<String>::new());
        assert_eq!(said(&text(1, right)), ["5 the weights 5..6 in [6] of 6, units [6]"]);
        assert_eq!(
            said(&text(8, right)),
            ["5 the weights 5..6 in [8, 9, 10, 11, 12, 13] of 6, units [8, 9, 10, 11, 12, 13]"]
        );
        assert_eq!(said(&text(0, "4@unit,(1@col,1@unit),2@byte")), ["5 the weights 5..6 in [3] of 6, units [3]"]);
        // Results that are read from another bank than the unit's.
        let elsewhere = text(0, right).replace("read y at (2,(2,3),16):(3@unit", "read y at (2,(2,3),16):(4@unit");
        assert_eq!(said(&elsewhere), ["7 `y` 7..8 in [6] of 6, units []"]);
    }

    /// Single banks, and all even or odd ones.
    #[test]
    fn banks_of_column_commands() {
        let head = "pim-stream 1\ndevice hbm2_samsung_pim\nunit hbm-pim\ntensor y f16[16] out\n";
        let single = format!("{head}exec 0.0 {{\nwr 0 0 3 0 0x01\n}}\n");
        assert_eq!(said(&format!("{single}read y at (16):(2@byte) row=3\n")), Vec::<String>::new());
        let four = "tensor z f16[64] out\n";
        let banks = "read z at ((16,4)):((2@byte,1@bank)) row=3\n";
        let two = single.replace("exec", &format!("{four}exec"));
        assert_eq!(said(&format!("{two}{banks}")), ["1 `z` 3..4 in [1, 2, 3] of 4, units []"]);
        let enter: String = (0..4).map(|bg| format!("wr {bg} 0 0x17ff 31 0x00\n")).collect();
        let leave = "wr 0 0 0x1fff 31 0x00\nwr 0 1 0x1fff 31 0x00\n";
        let all = format!("{head}{four}exec 0.0 {{\n{enter}wr 3 2 3 0 0x01\n{leave}}}\n{banks}");
        assert_eq!(said(&all), ["1 `z` 3..4 in [1, 3] of 4, units []"]);
    }
}
