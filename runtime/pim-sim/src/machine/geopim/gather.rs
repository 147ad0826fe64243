//! The host's gather: what it would read to do the units' queries itself, in the order of the queries.

use super::kernel;
use crate::machine::Machine;
use crate::machine::baseline::{Reading, Requests};
use crate::units::geopim::{Map, Query};
use ptoc_pim_stream::driver;
use ptoc_pim_stream::register::{self, Parameters};
use ptoc_pim_stream::stream::Descriptor;
use ptoc_pim_stream::unit::GeoPim;

/// Where the host has its arrays, and how far it has read those that it reads from the front.
struct Arrays {
    /// Parameters of queries, weights, offsets, results.
    bases: [u64; 4],
    parameters: Reading,
    weights: Reading,
    offsets: Reading,
}

impl Machine<'_> {
    /// Asks for what an EXECUTE is about to work on. Entries and offsets are in the banks by now; entries that cannot
    /// be read stop the units, too.
    pub(super) fn gather(&mut self, d: &Descriptor, c: &driver::DriverCommand, params: u64, unit: &GeoPim) {
        let (memory, g) = (&self.dram.memory, &self.geometry);
        let map = kernel(d, unit).map;
        if !params.is_multiple_of(register::SIZE as u64) {
            return;
        }
        let item = u64::from(map.width) * u64::from(map.height) * u64::from(map.channels) * 2;
        let queries = u64::from(d.units) * u64::from(c.queries);
        let samples = u64::from(c.samples);
        let mut end = item * u64::from(d.batch);
        let bases = [8, 2 * samples, if c.has_offsets { 4 * samples } else { 0 }, 0].map(|each| {
            let base = end;
            end = (end + queries * each).next_multiple_of(32);
            base
        });
        let [parameters, weights, offsets] = [Reading::default(); 3];
        let mut arrays = Arrays { bases, parameters, weights, offsets };
        let mut number = 0;
        for n in 0..d.units {
            let [channel, pch, bg, bank] = self.stream.unit.home(d.first_unit + n, g);
            let home = g.address([channel, pch, bg, bank], 0, 0);
            let first = u64::from(d.item_of(n)) * item;
            for i in 0..u64::from(c.queries) {
                let entry: [u8; register::SIZE] = memory.read(home + params + i * register::SIZE as u64);
                let usable = |e: &Parameters| e.valid && e.offsets.is_multiple_of(4);
                let Some(entry) = Parameters::decode(&entry).ok().filter(usable) else { continue };
                let offset = |s: u16| {
                    let [x0, x1, y0, y1] = memory.read(home + entry.offsets + 4 * u64::from(s));
                    (u16::from_le_bytes([x0, x1]), u16::from_le_bytes([y0, y1]))
                };
                query(&mut self.gathering, &mut arrays, &map, first, (number, samples), &entry, &offset);
                number += 1;
            }
        }
    }
}

fn query(
    out: &mut Requests,
    arrays: &mut Arrays,
    map: &Map,
    first: u64,
    (number, samples): (u64, u64),
    entry: &Parameters,
    offset: &dyn Fn(u16) -> (u16, u16),
) {
    let [parameters, weights, offsets, results] = arrays.bases;
    out.go_on(&mut arrays.parameters, parameters + 8 * number, 8);
    let at = Query { reference: (entry.ref_x, entry.ref_y), stride: (entry.stride_x, entry.stride_y) };
    let pixel = u64::from(map.channels) * 2;
    for s in entry.current..entry.samples {
        let n = number * samples + u64::from(s);
        out.go_on(&mut arrays.weights, weights + 2 * n, 2);
        if entry.has_offsets {
            out.go_on(&mut arrays.offsets, offsets + 4 * n, 4);
        }
        let sample = at.sample(s, entry.has_offsets.then(|| offset(s)), map);
        let pixels = sample.neighbours.map(|n| n.pixel);
        for (k, (x, y)) in pixels.iter().enumerate().filter_map(|(k, p)| Some((k, (*p)?))) {
            // At an edge that clamps neighbours are one pixel.
            if !pixels[..k].contains(&Some((x, y))) {
                let at = u64::from(y) * u64::from(map.width) + u64::from(x);
                out.access(first + at * pixel, pixel, false);
            }
        }
    }
    out.access(results + number * pixel, pixel, true);
}
