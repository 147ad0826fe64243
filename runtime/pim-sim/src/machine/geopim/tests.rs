//! Whole streams for units with sequencers: driver sequence, batch items, queries that do not fill a unit, refreshes.

use super::super::{MachineOutcome, MachineStop, device, run};
use crate::check;
use crate::dram::Command;
use crate::machine::Options;
use crate::machine::account::Bucket;
use crate::machine::report::UnitReport;
use crate::machine::tests::{json_of, nested};
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
         params geo address=0x9000 samples={S} weights=0xa000 weight_stride=64 offsets=0xb000 offset_stride=96 from \
         1:3\n\
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

fn execute(text: &str) -> Result<MachineOutcome, MachineStop> {
    execute_on(text, inputs())
}

fn execute_on(text: &str, inputs: Vec<Option<Tensor>>) -> Result<MachineOutcome, MachineStop> {
    let parsed = Stream::parse(text).unwrap_or_else(|e| panic!("{e}")).stream;
    let stream = Stream::decode(&parsed.encode().unwrap()).unwrap();
    let config = device::config(&stream.device).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(stream.check(&device::geometry(&config)), []);
    let outcome = run(&stream, &config, inputs, Options { trace: true, history: Some(0), ..Options::default() })?;
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

/// Parameters, weights, offsets, execute, read.
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
        let timeline = json_of(r.timeline(&config));
        let names = nested(&timeline);
        assert!(names.iter().any(|n| n == "unit of bank group 0 bank 0: state"), "{names:?}");
        let json: serde_json::Value = serde_json::from_str(&timeline).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        // Row 77: the states of all units are there, with all samples and tiles.
        let state = |name: &str| events.iter().filter(|e| e["cat"] == name).collect::<Vec<_>>();
        let queries = (B * Q) as u64;
        assert!(["IDLE", "LOAD", "PROCESS", "DONE"].iter().all(|s| state(s).len() >= r.units.len()), "{device}");
        assert_eq!(state("OUTPUT").len() as u64, queries);
        let sum = |key: &str| state("PROCESS").iter().map(|e| e["args"][key].as_u64().unwrap()).sum::<u64>();
        let work = |n: usize| r.units.iter().map(|u| u.sequencer.unwrap().work[n]).sum::<u64>();
        assert_eq!((sum("samples"), sum("tiles")), (queries * S as u64, work(2)));
        // Row 78: each tile is fetched once, and computed once.
        assert_eq!(state("tile").len() as u64, 2 * work(2));
        // What units read is on their banks, and on no bus.
        let reads: u64 = r.units.iter().map(|u| u.sequencer.unwrap().map[0]).sum();
        let of_banks = events.iter().filter(|e| e["name"].as_str().unwrap().starts_with("RD column"));
        assert!(of_banks.count() as u64 >= reads, "{reads}");
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

fn numbers(shape: &[usize], value: impl Fn(usize) -> f64) -> Option<Tensor> {
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Some(Tensor::from_f64s(DType::F16, shape, &values).unwrap())
}

/// One sample on or beyond an edge of a map of 8 x 8 pixels of 32 channels; which pixels the trace reads,
/// where each lies, and what comes out. Pixel (x, y) has 1 + x + 10 y + 100 c.
#[test]
fn edges_of_the_map() {
    type Pixels = &'static [(u32, u32)];
    // A place; pixels and the value in channel 0 by clamping; by zeros.
    let cases: [([f64; 2], Pixels, f64, Pixels, f64); 11] = [
        ([0.0, 0.0], &[(0, 0), (1, 0), (0, 1), (1, 1)], 1.0, &[(0, 0), (1, 0), (0, 1), (1, 1)], 1.0),
        ([7.0, 7.0], &[(7, 7)], 78.0, &[(7, 7)], 78.0),
        ([7.5, 3.0], &[(7, 3), (7, 4)], 38.0, &[(7, 3), (7, 4)], 19.0),
        ([-0.5, 2.0], &[(0, 2), (0, 3)], 21.0, &[(0, 2), (0, 3)], 10.5),
        ([-1.0, 2.0], &[(0, 2), (0, 3)], 21.0, &[(0, 2), (0, 3)], 0.0),
        ([3.0, -0.25], &[(3, 0), (4, 0)], 4.0, &[(3, 0), (4, 0)], 3.0),
        ([3.0, 7.25], &[(3, 7), (4, 7)], 74.0, &[(3, 7), (4, 7)], 55.5),
        ([8.0, 4.0], &[(7, 4), (7, 5)], 48.0, &[], 0.0),
        ([-2.0, -2.0], &[(0, 0)], 1.0, &[], 0.0),
        ([-60000.0, 60000.0], &[(0, 7)], 71.0, &[], 0.0),
        ([1.5, 60000.0], &[(1, 7), (2, 7)], 72.5, &[], 0.0),
    ];
    // Rows of pixels, 64 bytes each, from 0x10000: row 64 of the bank. Or 2 x 2 patches, one a row.
    let pixels = "(1,(2,4),8,(16,2)):(4@row,(16@col,1@row),2@col,(2@byte,1@col))";
    let patches = "(1,(2,4),(2,4),(16,2)):(16@row,(4@col,4@row),(2@col,1@row),(2@byte,1@col))";
    let in_pixels = |(x, y): (u32, u32)| (0x10000 + (y * 8 + x) * 32 * 2) / 32;
    let in_patches = |(x, y): (u32, u32)| (64 + y / 2 * 4 + x / 2) * 32 + (y % 2 * 2 + x % 2) * 2;
    for (place, clamped, clamped_value, zeros, zeros_value) in cases {
        for (border, read, value) in [("clamp", clamped, clamped_value), ("zero", zeros, zeros_value)] {
            for (name, map, lies) in
                [("pixels", pixels, &in_pixels as &dyn Fn((u32, u32)) -> u32), ("patches", patches, &in_patches)]
            {
                for how in ["fold=1 order=neighbour", "fold=1 order=tile", "fold=0 order=tile", "fold=0 order=outer"] {
                    let text = format!(
                        "pim-stream 1\ndevice hbm2_2000 channel=1\nunit geopim\n\
                         tensor feat f16[1,8,8,32] in\ntensor geo f16[1,1,4] in\ntensor attn f16[1,1,1] in\n\
                         tensor y f16[1,1,32] out\n\
                         write feat at {map} row=64 replicated\nwrite attn at (1,1,1):(0@row,0@row,2@byte) row=40\n\
                         descriptor feature=0x10000 height=8 width=8 channels=32 tile_channels=16 batch=1 \
                         border={border} {how} first_unit=0 units=1 queries=1 map={name}\n\
                         params geo address=0x9000 samples=1 weights=0xa000 weight_stride=32\n\
                         driver load params=0x9000 weights=0xa000\ndriver execute queries=1 samples=1 output=0xc000\n\
                         driver read output=0xc000\nread y at (1,1,(16,2)):(0@row,0@row,(2@byte,1@col)) row=48\n"
                    );
                    let given = vec![
                        numbers(&[1, 8, 8, 32], |i| (1 + i / 32 % 8 + 10 * (i / 256) + 100 * (i % 32)) as f64),
                        numbers(&[1, 1, 4], |i| if i < 2 { place[i] } else { 0.0 }),
                        numbers(&[1, 1, 1], |_| 1.0),
                        None,
                    ];
                    let outcome = execute_on(&text, given).unwrap();
                    let what = format!("{place:?}, {border}, {name}, {how}");
                    let y = outcome.outputs[3].as_ref().unwrap();
                    assert_eq!(y.get_f64(0), value, "{what}");
                    let mut wanted: Vec<u32> = read.iter().flat_map(|p| [lies(*p), lies(*p) + 1]).collect();
                    // Rows of the map; weights, entries and results are in rows of their own.
                    let trace = outcome.report.trace.as_ref().unwrap().iter().flatten();
                    let seen = trace.filter(|c| c.command == Command::Rd && c.address.row >= 64);
                    let mut seen: Vec<u32> = seen.map(|c| c.address.row * 32 + c.address.column).collect();
                    wanted.sort_unstable();
                    seen.sort_unstable();
                    seen.dedup();
                    assert_eq!(seen, wanted, "{what}");
                }
            }
        }
    }
}

/// Six stacks of eight channels of 32 banks are 1536 units in 48 vaults; that 512 of them exist is a setting.
#[test]
fn banks_and_vaults() {
    let stream = |unit: &str, units: usize, queries: usize| {
        format!(
            "pim-stream 1\ndevice hbm2_2000 channel=48\nunit geopim {unit}\n\
             tensor feat f16[1,2,2,16] in\ntensor geo f16[1,1536,4] in\ntensor attn f16[1,1536,2] in\n\
             tensor y f16[1,1536,16] out\n\
             write feat at (1,2,2,16):(1@row,2@col,1@col,2@byte) row=64 replicated\n\
             write attn at (1,({queries},{units}),2):(0@row,(1@col,1@unit),2@byte) row=40\n\
             descriptor feature=0x10000 height=2 width=2 channels=16 tile_channels=16 batch=1 border=clamp fold=1 \
             order=neighbour first_unit=0 units={units} queries={queries} map=patches\n\
             params geo address=0x9000 samples=2 weights=0xa000 weight_stride=32\n\
             driver load params=0x9000 weights=0xa000\ndriver execute queries={queries} samples=2 output=0xc000\n\
             driver read output=0xc000\nread y at (1,({queries},{units}),16):(0@row,(1@col,1@unit),2@byte) row=48\n"
        )
    };
    let given = || {
        vec![
            random(DType::F16, &[1, 2, 2, 16], 1, "feat").ok(),
            random(DType::F16, &[1, 1536, 4], 1, "geo").ok(),
            random(DType::F16, &[1, 1536, 2], 1, "attn").ok(),
            None,
        ]
    };
    let all = execute_on(&stream("", 1536, 1), given()).unwrap();
    let some = execute_on(&stream("units=512", 512, 3), given()).unwrap();
    assert_eq!(all.outputs[3].as_ref().unwrap().bytes(), some.outputs[3].as_ref().unwrap().bytes());
    for (outcome, units) in [(&all, 1536), (&some, 512)] {
        let banks: std::collections::BTreeSet<usize> = outcome.report.units.iter().map(|u| u.bank).collect();
        assert_eq!((outcome.report.units.len(), banks.len()), (units, units));
        let vaults: std::collections::BTreeSet<usize> = banks.iter().map(|b| b / 32).collect();
        assert_eq!(vaults.len(), 48, "units are spread over all vaults");
        for vault in vaults {
            assert!((10..=32).contains(&banks.iter().filter(|b| **b / 32 == vault).count()), "{vault}");
        }
    }
    for (unit, last) in [("", 1536), ("units=512", 512)] {
        let beyond = stream(unit, last, 1).replace("first_unit=0", "first_unit=1");
        let parsed = Stream::parse(&beyond).unwrap().stream;
        let config = device::config(&parsed.device).unwrap();
        let faults: Vec<String> = parsed.check(&device::geometry(&config)).iter().map(|f| f.message.clone()).collect();
        let wanted = format!("unit {last} does not exist; there are {last}");
        assert!(faults.iter().any(|f| f.contains(&wanted)), "{faults:?}");
    }
}
