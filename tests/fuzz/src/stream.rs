//! Command streams: bytes, text, and what comes of executing them.
//!
//! Whatever is read is read back as the same stream from both forms, and the validator has a place for each fault. A
//! stream without faults runs to its end or stops with a reason; its DRAM commands keep the rules that the checker
//! derives from the parameters, and every tick of every pseudo-channel is charged once.

use ptoc_pim_sim::check::{Options as Grade, Rule, check, check_autonomous};
use ptoc_pim_sim::machine::{Options, device, run};
use ptoc_pim_stream::stream::{Action, AimOp, ColumnOp, Data, Refresh, Role, StreamStep};
use ptoc_pim_stream::{Geometry, Stream, UnitConfig, binary};
use ptoc_tensor::{Tensor, random};

const G: Geometry = Geometry { channel: 2, pch: 2, bg: 4, bank: 4, row: 16384, col: 32, burst: 32 };

/// Bytes of a binary stream, behind its magic number or without it, or text.
pub fn stream(data: &[u8]) {
    let with_magic = [&binary::MAGIC[..], data].concat();
    for bytes in [data, &with_magic] {
        match Stream::decode(bytes) {
            Ok(stream) => {
                // One stream has one form.
                assert_eq!(stream.encode().expect("what is decoded is encoded"), bytes);
                assert!(stream.check(&G).iter().all(|f| !f.to_string().is_empty()));
                if !repeats(&stream) {
                    assert_eq!(Stream::parse(&stream.to_text()).expect("what is written is read").stream, stream);
                }
            }
            Err(e) => assert!(e.offset <= bytes.len() && !e.message.is_empty()),
        }
    }
    let text = String::from_utf8_lossy(data);
    match Stream::parse(&text) {
        Ok(parsed) => {
            let stream = parsed.stream;
            assert_eq!(Stream::parse(&stream.to_text()).expect("what is written is read").stream, stream);
            assert_eq!(Stream::decode(&stream.encode().expect("it is encoded")).expect("it is decoded"), stream);
            let lines = parsed.tensors.iter().chain(&parsed.steps).chain(parsed.ops.iter().flatten());
            assert!(lines.chain([&parsed.device, &parsed.unit]).all(|l| text.get(l.clone()).is_some()));
            assert!(stream.check(&G).iter().all(|f| !f.message.is_empty()));
        }
        Err(e) => assert!(e.line > 0 && e.column > 0 && text.get(e.bytes.clone()).is_some() && !e.message.is_empty()),
    }
}

/// Names that occur twice, which the validator refuses and the text form cannot tell apart.
fn repeats(stream: &Stream) -> bool {
    let twice = |names: Vec<&String>| (1..names.len()).any(|n| names[..n].contains(&names[n]));
    let missing = |s: &StreamStep| arrays(&s.action).into_iter().any(|n| n as usize >= stream.tensors.len());
    let overrides = &stream.device.overrides;
    stream.steps.iter().any(missing)
        || twice(stream.tensors.iter().map(|t| &t.name).collect())
        || twice(overrides.iter().map(|(k, _)| k).collect())
        || overrides.iter().any(|(k, _)| k == "refresh")
        || stream.steps.iter().any(|s| matches!(&s.action, Action::Exec(e) if e.pchs.is_empty()))
}

/// The arrays of a step.
fn arrays(action: &Action) -> Vec<u32> {
    match action {
        Action::Write(t) | Action::Read(t) | Action::Resident(t) => vec![t.tensor],
        Action::Move { tensor, .. } => vec![*tensor],
        Action::Relayout(r) => vec![r.src, r.dst],
        Action::Params(p) => vec![p.geo],
        Action::Exec(e) => e
            .ops
            .iter()
            .filter_map(|op| match op {
                ColumnOp::Wr { data: Data::Tensor { tensor, .. }, .. }
                | ColumnOp::Aim(AimOp::WriteBuffer { tensor, .. } | AimOp::Read { tensor, .. }) => Some(*tensor),
                _ => None,
            })
            .collect(),
        Action::Host(h) => h.reads.iter().chain(&h.writes).copied().collect(),
        Action::Launch(l) => l.reads.iter().chain(&l.writes).copied().collect(),
        Action::Descriptor(_) | Action::Driver(_) => Vec::new(),
    }
}

/// The text of a stream, which is executed if it is short enough.
pub fn machine(data: &[u8]) {
    let Ok(parsed) = Stream::parse(&String::from_utf8_lossy(data)) else { return };
    let stream = parsed.stream;
    let Ok(config) = device::config(&stream.device) else { return };
    if !stream.check(&device::geometry(&config)).is_empty() || !is_short(&stream) || config.org.channel > 4 {
        return;
    }
    // Rules that contradict each other, and refreshes that are many to a burst, are not what is looked for here.
    let t = &config.timing;
    let slow = [t.rc, t.faw, t.rtw, t.wr, t.ras, t.rp, t.rcd_rd, t.rcd_wr, t.cl, t.cwl, t.ccd_l, t.rfc, t.wtr_l, t.bl];
    if slow.into_iter().any(|n| n > 2000) || t.refi.min(t.refi_pb) < 50 {
        return;
    }
    let inputs: Vec<Option<Tensor>> = stream
        .tensors
        .iter()
        .map(|t| {
            let shape: Vec<usize> = t.shape.iter().map(|e| *e as usize).collect();
            let given = matches!(t.role, Role::In | Role::InOut);
            given.then(|| random(t.dtype, &shape, 1, &t.name).expect("a short array"))
        })
        .collect();
    let outcome = match run(&stream, &config, inputs, Options { trace: true, history: Some(0), ..Options::default() }) {
        Ok(outcome) => outcome,
        Err(stop) => return assert!(!stop.message.is_empty() && stop.step.is_none_or(|n| n < stream.steps.len())),
    };
    let r = &outcome.report;
    let refresh = stream.device.refresh != Refresh::Off;
    let grade = Grade { refresh: false, ..Grade::default() };
    for trace in r.trace.iter().flatten() {
        let found = match stream.unit {
            UnitConfig::GeoPim(_) => check_autonomous(&config, trace, grade),
            _ => check(&config, trace, grade),
        };
        // An nRTW of its own may let bursts overlap.
        let broken = found.iter().find(|v| v.rule != Rule::DataBus);
        assert!(broken.is_none(), "refresh {refresh}: {}", broken.expect("one"));
    }
    for buckets in &r.pchs {
        assert_eq!(buckets.iter().sum::<u64>(), r.ticks);
    }
    assert_eq!(r.lines.values().flatten().sum::<u64>(), r.ticks * r.pchs.len() as u64);
    assert_eq!(r.kinds.values().flat_map(|k| k.buckets).sum::<u64>(), r.ticks * r.pchs.len() as u64);
    for u in &r.units {
        assert_eq!(u.buckets.iter().sum::<u64>(), r.ticks, "unit {}", u.number);
    }
    for t in [&r.baseline.streaming, &r.baseline.gathering].into_iter().flatten() {
        assert!(t.useful <= t.moved && t.ticks > 0 && (0.0..=1.0).contains(&t.utilisation), "{t:?}");
    }
    let history = r.history.as_ref().expect("it was wanted");
    let (commands, until) = history.commands();
    assert!(until.is_some() || commands.len() as u64 == r.commands.iter().sum::<u64>());
    assert!(history.at_most(500).width() >= history.width());
    assert!(r.picojoules().is_finite() && r.picojoules() >= 0.0);
    assert!(r.tracks().iter().all(|t| t.slices.iter().all(|s| s.ticks.0 <= s.ticks.1)));
    assert!(!r.json().to_string().is_empty());
}

/// So many bytes, commands and samples are executed.
fn is_short(stream: &Stream) -> bool {
    let bytes: u64 = stream.tensors.iter().map(|t| t.bytes().unwrap_or(u64::MAX / 64)).sum();
    let work: u64 = stream
        .steps
        .iter()
        .map(|s| match &s.action {
            Action::Exec(e) => e.ops.len() as u64 * e.pchs.len() as u64 * 8,
            Action::Relayout(r) => r.axes.iter().map(|a| u64::from(a.extent)).product(),
            Action::Descriptor(d) => {
                u64::from(d.units) * u64::from(d.queries) + u64::from(d.height) * u64::from(d.width)
            }
            Action::Driver(c) => u64::from(c.queries) * u64::from(c.samples) * 64,
            _ => 64,
        })
        .sum();
    let units = match stream.unit {
        UnitConfig::GeoPim(u) => {
            u.lanes <= 64 && u.coordinate_cycles <= 64 && u.clock_mhz >= 10 && u.buffer_bytes <= 4096
        }
        _ => true,
    };
    bytes <= 1 << 18 && work <= 1 << 15 && units
}
