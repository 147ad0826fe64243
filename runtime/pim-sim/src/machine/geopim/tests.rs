//! Whole streams for units with sequencers: driver sequence, batch items, queries that do not fill a unit, refreshes.

use super::super::{Outcome, Stop, device, run};
use crate::check;
use crate::machine::Options;
use crate::machine::account::Bucket;
use crate::machine::report::UnitReport;
use crate::machine::tests::nested;
use crate::units::geopim::{Accumulators, Border, Map, Query};
use ptoc_pim_stream::stream::{Refresh, Stream};
use ptoc_tensor::{DType, Tensor, random};

const B: usize = 2;
const Q: usize = 5;
const S: usize = 20;
const C: usize = 64;
const SIDE: usize = 8;

/// Two batch items of five queries, three units of two queries each.
fn text(device: &str, unit: &str, descriptor: &str, map: &str) -> String {
    format!(
        "pim-stream 1\ndevice hbm2_2000 {device}\nunit geopim {unit}\nfile \"sample.tile\"\n\
         tensor feat f16[{B},{SIDE},{SIDE},{C}] in\ntensor geo f16[{B},{Q},4] in\ntensor attn f16[{B},{Q},{S}] in\n\
         tensor offs f16[{B},{Q},{S},2] in\ntensor y f16[{B},{Q},{C}] out\n\
         write feat at {map} row=64 replicated from 1:1\n\
         write attn at (2,(2,3),(16,2)):(3@unit,(2@col,1@unit),(2@byte,1@col)) row=40 from 1:2\n\
         write offs at (2,(2,3),(8,3),2):(3@unit,(3@col,1@unit),(4@byte,1@col),2@byte) row=44 from 1:2\n\
         descriptor feature=0x10000 height={SIDE} width={SIDE} channels={C} tile_channels=16 batch={B} {descriptor} \
         first_unit=0 units=6 queries=2 from 1:3\n\
         params geo address=0x9000 samples={S} weights=0xa000 weight_stride=64 offsets=0xb000 offset_stride=96 from 1:3\n\
         driver load params=0x9000 weights=0xa000 offsets=0xb000\n\
         driver execute queries=2 samples={S} output=0xc000 offsets=0xb000 from 1:4\n\
         driver read output=0xc000\n\
         read y at (2,(2,3),(16,4)):(3@unit,(4@col,1@unit),(2@byte,1@col)) row=48 from 1:5\n"
    )
}

const PATCHES: &str = "(2,(2,4),(2,4),(16,4)):(16@row,(8@col,4@row),(4@col,1@row),(2@byte,1@col))";
const PIXELS: &str = "(2,(8),(8,1),(16,4)):(8@row,1@row,(4@col,0@row),(2@byte,1@col))";

fn inputs() -> Vec<Option<Tensor>> {
    let shapes: [&[usize]; 4] = [&[B, SIDE, SIDE, C], &[B, Q, 4], &[B, Q, S], &[B, Q, S, 2]];
    let mut all: Vec<Option<Tensor>> =
        shapes.iter().zip(1..).map(|(s, seed)| Some(random(DType::F16, s, seed, "t").unwrap())).collect();
    all.push(None);
    all
}

fn execute(text: &str) -> Result<Outcome, Stop> {
    let parsed = Stream::parse(text).unwrap_or_else(|e| panic!("{e}")).stream;
    let stream = Stream::decode(&parsed.encode().unwrap()).unwrap();
    let config = device::config(&stream.device).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(stream.check(&device::geometry(&config)), []);
    let outcome = run(&stream, &config, inputs(), Options { trace: true })?;
    let r = &outcome.report;
    let refresh = stream.device.refresh == Refresh::All;
    for trace in r.trace.as_ref().unwrap() {
        let found = check::check_autonomous(&config, trace, check::Options { refresh, ..Default::default() });
        assert!(found.is_empty(), "{}", found[0]);
    }
    for buckets in &r.pchs {
        assert_eq!(buckets.iter().sum::<u64>(), r.ticks);
    }
    Ok(outcome)
}

/// From the definition, by the units' rounding.
fn expected(fold: bool, border: Border) -> Vec<u16> {
    let inputs = inputs();
    let bits = |n: usize, i: usize| inputs[n].as_ref().unwrap().get_bits(i) as u16;
    let map = Map { width: SIDE as u32, height: SIDE as u32, channels: C as u32, base: 0, border };
    let mut out = Vec::new();
    for b in 0..B {
        for q in 0..Q {
            let at = b * Q + q;
            let query = Query {
                reference: (bits(1, 4 * at), bits(1, 4 * at + 1)),
                stride: (bits(1, 4 * at + 2), bits(1, 4 * at + 3)),
            };
            let mut sums = Accumulators::new(C);
            for s in 0..S {
                let o = 2 * (at * S + s);
                let sample = query.sample(s as u16, Some((bits(3, o), bits(3, o + 1))), &map);
                let pixels = sample.neighbours.map(|n| {
                    let pixel = |(x, y): (u32, u32)| {
                        let first = ((b * SIDE + y as usize) * SIDE + x as usize) * C;
                        (first..first + C).map(|i| bits(0, i)).collect::<Vec<u16>>()
                    };
                    n.pixel.map(pixel).unwrap_or_default()
                });
                let attention = bits(2, at * S + s);
                match fold {
                    true => sums.add_folded(&sample, attention, |n| &pixels[n]),
                    false => sums.add_unfolded(&sample, attention, |n| &pixels[n]),
                }
            }
            out.extend(sums.output());
        }
    }
    out
}

/// Mission table, rows 75 and 83: parameters, weights, offsets, execute, read.
#[test]
fn a_whole_run() {
    let descriptors = [
        ("border=clamp fold=1 order=neighbour", true, Border::Clamp),
        ("border=zero fold=1 order=tile", true, Border::Zero),
        ("border=clamp fold=0 order=tile", false, Border::Clamp),
        ("border=zero fold=0 order=outer", false, Border::Zero),
    ];
    for (descriptor, fold, border) in descriptors {
        let want = expected(fold, border);
        let devices = ["channel=1", "channel=4 refresh=all nREFI=600", "channel=2 refresh=bank", "channel=1 nFAW=30"];
        for device in devices {
            for (layout, map) in [("patches", PATCHES), ("pixels", PIXELS)] {
                let text = text(device, "scratchpad_bytes=2048", &format!("{descriptor} map={layout}"), map);
                let outcome = execute(&text).unwrap();
                let y = outcome.outputs[4].as_ref().unwrap();
                let got: Vec<u16> = (0..want.len()).map(|i| y.get_bits(i) as u16).collect();
                assert_eq!(got, want, "{descriptor}, {device}, {layout}");
                let r = outcome.report;
                assert_eq!(r.units.len(), 6);
                let times: Vec<_> = r.units.iter().map(|u| u.sequencer.unwrap()).collect();
                assert_eq!(times.iter().map(|u| u.work[1]).sum::<u64>(), (B * Q * S) as u64);
                assert!(times.iter().all(|u| u.ticks.iter().sum::<u64>() > 0));
            }
        }
    }
}

#[test]
fn commands_that_contradict_the_entries() {
    let good = text("channel=1", "", "border=clamp fold=1 order=tile map=patches", PATCHES);
    let bad = good.replace("driver execute queries=2 samples=20", "driver execute queries=2 samples=21");
    let stop = execute(&bad).unwrap_err();
    assert_eq!(
        stop.to_string(),
        "step 6: EXECUTE asks for 21 samples a query with offsets; the parameter entries have 20 with offsets"
    );
}

/// Units wait for each other, and some have less to do: every tick of each is charged once, and the slowest unit of a
/// pseudo-channel has its pseudo-channel's time. The timeline shows what they read on tracks of their own.
#[test]
fn the_time_of_units() {
    for device in ["channel=1", "channel=2 refresh=all nREFI=600", "channel=2 refresh=bank"] {
        let text = text(device, "", "border=clamp fold=1 order=tile map=patches", PATCHES);
        let outcome = execute(&text).unwrap();
        let r = &outcome.report;
        for u in &r.units {
            assert_eq!(u.buckets.iter().sum::<u64>(), r.ticks, "{device}: unit {}", u.number);
        }
        // The last unit of each item has one query, the others two.
        let compute: Vec<u64> = r.units.iter().map(|u| u.buckets[Bucket::Compute as usize]).collect();
        assert!(compute[2] < compute[1] && compute[5] < compute[4], "{compute:?}");
        for (n, buckets) in r.pchs.iter().enumerate() {
            let of_pch = |u: &&UnitReport| u.bank / 16 == n;
            let any = r.units.iter().any(|u| of_pch(&u));
            assert_eq!(any, r.units.iter().filter(of_pch).any(|u| u.buckets == *buckets), "{device}: {n}");
        }
        let kinds = ["driver execute", "driver load", "driver read", "read"].map(|k| r.kinds[k].steps);
        assert_eq!(kinds, [1; 4]);
        let config = device::config(&Stream::parse(&text).unwrap().stream.device).unwrap();
        let timeline = r.timeline(&config);
        let names = nested(&timeline);
        assert!(names.iter().any(|n| n == "unit of bank group 0 bank 0"), "{names:?}");
        // What units read is on their tracks, and on no bus.
        let json: serde_json::Value = serde_json::from_str(&timeline).unwrap();
        let named = |e: &serde_json::Value, what: &str| e["name"].as_str().unwrap().starts_with(what);
        let events = json["traceEvents"].as_array().unwrap();
        let (units, _): (Vec<_>, Vec<_>) = events.iter().filter(|e| e["ph"] == "X").partition(|e| named(e, "RD row"));
        let reads: u64 = r.units.iter().map(|u| u.sequencer.unwrap().map[0]).sum();
        assert!(units.len() as u64 >= reads, "{} {reads}", units.len());
        let data =
            events.iter().filter(|e| e["ph"] == "X" && e["tid"] == 1 && e["name"].as_str().unwrap().contains(" row "));
        let host = r.bytes.host_moved / 32;
        assert!(data.count() as u64 <= host);
    }
}

/// The host's gather: pixels in the order of the queries, an array at a time by hand.
#[test]
fn the_hosts_gather() {
    let descriptor = "border=clamp fold=1 order=tile map=patches";
    let r = execute(&text("channel=2", "", descriptor, PATCHES)).unwrap().report;
    let [streaming, gathering] = [r.baseline.streaming.unwrap(), r.baseline.gathering.unwrap()];
    let (items, queries) = (B as u64, (B * Q) as u64);
    let samples = queries * S as u64;
    let sizes = [items * (SIDE * SIDE * C * 2) as u64, 8 * queries, 2 * samples, 4 * samples, queries * C as u64 * 2];
    assert_eq!(streaming.useful, sizes.iter().sum::<u64>());
    // Of every sample the pixels that differ.
    let inputs = inputs();
    let bits = |n: usize, i: usize| inputs[n].as_ref().unwrap().get_bits(i) as u16;
    let map = Map { width: SIDE as u32, height: SIDE as u32, channels: C as u32, base: 0, border: Border::Clamp };
    let mut pixels = 0;
    for at in 0..B * Q {
        let [x, y, dx, dy] = [0, 1, 2, 3].map(|k| bits(1, 4 * at + k));
        for s in 0..S {
            let o = 2 * (at * S + s);
            let query = Query { reference: (x, y), stride: (dx, dy) };
            let sample = query.sample(s as u16, Some((bits(3, o), bits(3, o + 1))), &map);
            let found: std::collections::BTreeSet<_> = sample.neighbours.iter().filter_map(|n| n.pixel).collect();
            pixels += found.len() as u64;
        }
    }
    assert_eq!(gathering.useful, pixels * 2 * C as u64 + sizes[1..].iter().sum::<u64>());
    assert!(pixels > samples, "{pixels}");
    // Whole bursts of pixels and results; operands by the burst.
    let operands: u64 = [8 * queries, 2 * samples, 4 * samples].iter().map(|b| b.div_ceil(32) * 32).sum();
    assert!(gathering.moved >= pixels * 2 * C as u64 + sizes[4] + operands, "{gathering:?}");
    assert!(gathering.moved <= pixels * 2 * C as u64 + sizes[4] + operands + 32 * 3, "{gathering:?}");
    assert!(gathering.ticks > streaming.ticks && gathering.utilisation < 1.0);
    assert_eq!(gathering.simulated[0], gathering.simulated[1]);
}
