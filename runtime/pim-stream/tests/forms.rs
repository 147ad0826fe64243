//! The binary and the text form are each other's inverse; nothing that is read panics; the page of the form is right.

use proptest::collection::vec;
use proptest::prelude::*;
use ptoc_abi::Coord;
use ptoc_pim_stream::driver::{CommandKind, DriverCommand};
use ptoc_pim_stream::placement::Leaf;
use ptoc_pim_stream::stream::*;
use ptoc_pim_stream::unit::{GeoPim, HbmPim};
use ptoc_pim_stream::{ArrayPlacement, Geometry, UnitConfig};
use ptoc_tensor::DType;

fn name() -> impl Strategy<Value = String> {
    "[a-z_][a-zA-Z0-9_.]{0,6}"
}

fn placement() -> impl Strategy<Value = ArrayPlacement> {
    let leaf = (any::<u32>(), 0usize..8, any::<u32>()).prop_map(|(extent, c, stride)| Leaf {
        extent,
        coord: Coord::ALL[c],
        stride,
    });
    let first = || prop_oneof![Just(0), any::<u32>()];
    (vec(vec(leaf, 0..4), 0..4), first(), first(), first(), any::<bool>())
        .prop_map(|(dims, row, bank, col, replicated)| ArrayPlacement { dims, row, bank, col, replicated })
}

/// `tensors` is how many there are.
fn action(tensors: u32) -> impl Strategy<Value = Action> {
    let t = move || 0..tensors;
    prop_oneof![
        (t(), placement()).prop_map(|(tensor, placement)| Action::Write(Transfer { tensor, placement })),
        (t(), placement()).prop_map(|(tensor, placement)| Action::Read(Transfer { tensor, placement })),
        (t(), placement(), placement()).prop_map(|(tensor, from, to)| Action::Move { tensor, from, to }),
        (t(), placement(), t(), placement(), vec(any::<[u32; 3]>(), 0..4), any::<[u32; 2]>()).prop_map(
            |(src, from, dst, to, axes, start)| {
                let axes = axes.into_iter().map(|[extent, src, dst]| RelayoutAxis { extent, src, dst }).collect();
                Action::Relayout(Relayout { src, from, dst, to, axes, start })
            }
        ),
        (vec(any::<(u16, u16)>(), 1..4), vec(op(tensors), 0..12)).prop_map(|(pchs, ops)| {
            let pchs = pchs.into_iter().map(|(channel, pc)| Pch { channel, pc }).collect();
            Action::Exec(Exec { pchs, ops })
        }),
        (any::<u64>(), any::<[u32; 8]>(), 0usize..2, any::<bool>(), 0usize..3, 0usize..4).prop_map(
            |(feature, n, border, fold, order, map)| Action::Descriptor(Descriptor {
                feature,
                height: n[0],
                width: n[1],
                channels: n[2],
                tile_channels: n[3],
                batch: n[4],
                border: Border::ALL[border],
                fold,
                order: LoopOrder::ALL[order],
                first_unit: n[5],
                units: n[6],
                queries: n[7],
                map: MapLayout::ALL[map % 2],
                items: Items::ALL[map / 2],
            })
        ),
        (t(), any::<u64>(), any::<u16>(), any::<(u64, u32)>(), any::<Option<(u64, u32)>>()).prop_map(
            |(geo, address, samples, weights, offsets)| Action::Params(Params {
                geo,
                address,
                samples,
                weights,
                offsets
            })
        ),
        (any::<[u16; 2]>(), any::<[u64; 4]>(), any::<bool>(), 0usize..3).prop_map(|(n, a, has_offsets, kind)| {
            let [params, weights, offsets, output] = a.map(|a| (a >> 16) | 1);
            let kind = [CommandKind::Load, CommandKind::Execute, CommandKind::Read][kind];
            let offsets = if has_offsets { offsets } else { 0 };
            Action::Driver(DriverCommand {
                kind,
                queries: n[0].max(1),
                samples: u32::from(n[1].max(1)),
                params,
                weights,
                offsets,
                output,
                has_offsets,
            })
        }),
        (t(), placement()).prop_map(|(tensor, placement)| Action::Resident(Transfer { tensor, placement })),
        (name(), vec(t(), 0..3), vec(t(), 0..3)).prop_map(|(kernel, reads, writes)| Action::Launch(Launch {
            kernel,
            reads,
            writes
        })),
        (name(), vec(t(), 0..3), vec(t(), 0..3)).prop_map(|(kernel, reads, writes)| Action::Host(Host {
            kernel,
            reads,
            writes
        })),
    ]
}

fn op(tensors: u32) -> impl Strategy<Value = ColumnOp> {
    // The registers' row often, for words that are written as instructions.
    let row = prop_oneof![Just(0x3fff), any::<u32>()];
    let burst =
        (any::<u16>(), any::<u16>(), row, 0u32..32).prop_map(|(bg, bank, row, col)| Burst { bg, bank, row, col });
    let word = prop_oneof![Just(0u32), Just(0xf000_0000), Just(0x3a50_8017), any::<u32>()];
    let data = prop_oneof![
        Just(Data::Unit),
        any::<[u8; 32]>().prop_map(Data::Bytes),
        vec(word, 8).prop_map(|words| {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            Data::Bytes(bytes.try_into().unwrap())
        }),
        (0..tensors, any::<u64>()).prop_map(|(tensor, offset)| Data::Tensor { tensor, offset }),
    ];
    prop_oneof![
        (burst.clone(), any::<u32>()).prop_map(|(at, count)| ColumnOp::Rd { at, count }),
        (burst, prop_oneof![Just(1), any::<u32>()], data).prop_map(|(at, count, data)| ColumnOp::Wr {
            at,
            count,
            data
        }),
        Just(ColumnOp::Fence),
        aim(tensors).prop_map(ColumnOp::Aim),
        any::<(u32, u32)>().prop_map(|(file, line)| ColumnOp::Line(SourceLine { file, line })),
    ]
}

fn aim(tensors: u32) -> impl Strategy<Value = AimOp> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), 0..tensors, any::<u64>());
    (0usize..7, numbers).prop_map(|(kind, (a, b, c, tensor, offset))| match kind {
        0 => AimOp::Close,
        1 => AimOp::Open { row: a },
        2 => AimOp::WriteBuffer { col: a, tensor, offset, bytes: b },
        3 => AimOp::Clear,
        4 => AimOp::Mac { row: a, col: b, count: c },
        5 => AimOp::Relu,
        _ => AimOp::Read { tensor, offset, lanes: (a, b) },
    })
}

fn unit() -> impl Strategy<Value = UnitConfig> {
    (0usize..4, vec(any::<u32>(), 16)).prop_map(|(kind, values)| {
        let mut unit = UnitConfig::of_kind(kind).unwrap();
        for ((name, _), value) in unit.names().iter().zip(values) {
            assert!(unit.set(name, value));
        }
        unit
    })
}

fn stream() -> impl Strategy<Value = Stream> {
    let tensors = vec((0usize..12, vec(any::<u32>(), 0..4), 0usize..4, any::<Option<u64>>()), 1..5);
    let file = "[ -~äß]{0,10}";
    let head = (name(), 0usize..3, vec((name(), any::<u32>()), 0..3), unit(), vec(file, 0..3), tensors);
    head.prop_flat_map(|(preset, refresh, overrides, unit, files, tensors)| {
        let steps = vec((any::<(u32, u32)>(), action(tensors.len() as u32)), 0..8);
        steps.prop_map(move |steps| Stream {
            device: Device {
                preset: preset.clone(),
                refresh: Refresh::ALL[refresh],
                // Keys that occur twice, and the key that is no override, are refused.
                overrides: overrides.iter().enumerate().map(|(n, (k, v))| (format!("{k}{n}"), *v)).collect(),
            },
            unit,
            tensors: tensors
                .iter()
                .enumerate()
                .map(|(n, (dtype, shape, role, fill))| TensorDecl {
                    // Words of the text form are names too.
                    name: ["unit", "crf", "x2", "from", "row"][n].to_owned(),
                    dtype: DType::ALL[*dtype],
                    shape: shape.clone(),
                    role: Role::ALL[*role],
                    fill: fill.filter(|_| Role::ALL[*role].may_begin()),
                })
                .collect(),
            files: files.clone(),
            steps: steps
                .into_iter()
                .map(|((file, line), action)| StreamStep { place: SourceLine { file, line }, action })
                .collect(),
        })
    })
}

const G: Geometry = Geometry { channel: 2, pch: 2, bg: 4, bank: 4, row: 16384, col: 32, burst: 32 };

proptest! {
    #[test]
    fn forms_round_trip(stream in stream()) {
        let bytes = stream.encode().unwrap();
        prop_assert_eq!(&Stream::decode(&bytes).unwrap(), &stream);
        let text = stream.to_text();
        match Stream::parse(&text) {
            Ok(parsed) => {
                prop_assert_eq!(&parsed.stream, &stream);
                prop_assert_eq!(parsed.steps.len(), stream.steps.len());
                for (step, ops) in stream.steps.iter().zip(&parsed.ops) {
                    let wanted = if let Action::Exec(e) = &step.action { e.ops.len() } else { 0 };
                    prop_assert_eq!(ops.len(), wanted);
                }
            }
            Err(e) => prop_assert!(false, "{}\n{}", e, text),
        }
        // Whatever it says, it says it.
        stream.check(&G);
    }

    #[test]
    fn changed_bytes_are_refused_or_another_stream(stream in stream(), at: prop::sample::Index, to: u8, cut: bool) {
        let mut bytes = stream.encode().unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = to }
        match Stream::decode(&bytes) {
            // One stream has one form.
            Ok(other) => prop_assert_eq!(other.encode().unwrap(), bytes),
            Err(e) => prop_assert!(e.offset <= bytes.len()),
        }
    }

    #[test]
    fn changed_text_never_panics(stream in stream(), at: prop::sample::Index, put in "[ -~\n]{0,3}", len in 0usize..5) {
        let mut text = stream.to_text();
        let place = |n: usize, text: &str| (0..=n).rev().find(|n| text.is_char_boundary(*n)).unwrap();
        let from = place(at.index(text.len()), &text);
        let to = place((from + len).min(text.len()), &text).max(from);
        text.replace_range(from..to, &put);
        match Stream::parse(&text) {
            Ok(parsed) => {
                let again = parsed.stream.to_text();
                prop_assert_eq!(Stream::parse(&again).unwrap().stream, parsed.stream);
            }
            Err(e) => prop_assert!(text.get(e.bytes.clone()).is_some() && e.line > 0 && e.column > 0),
        }
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..80)) {
        let _ = Stream::decode(&bytes);
        let mut with = ptoc_pim_stream::binary::MAGIC.to_vec();
        with.push(1);
        with.extend(&bytes);
        let _ = Stream::decode(&with);
        let _ = Stream::parse(&String::from_utf8_lossy(&bytes));
    }
}

/// The example of `spec/stream.md` is a stream without mistakes.
#[test]
fn the_page_has_an_example() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/stream.md")).unwrap();
    let from = page.find("```pim-stream\n").expect("an example") + "```pim-stream\n".len();
    let text = &page[from..from + page[from..].find("```").unwrap()];
    let stream = Stream::parse(text).unwrap_or_else(|e| panic!("{e}")).stream;
    assert_eq!(stream.check(&Geometry { channel: 1, ..G }), []);
    assert_eq!(Stream::decode(&stream.encode().unwrap()).unwrap(), stream);
    // Every parameter of a unit is in the page's tables.
    for (name, _) in HbmPim::NAMES.iter().chain(GeoPim::NAMES) {
        assert!(page.contains(&format!("| `{name}` |")), "spec/stream.md lacks `{name}`");
    }
}

/// Arrays that are there stand before all else, and nothing changes them; `launch` may name its arrays.
#[test]
fn resident_arrays_stand_first() {
    let head = "pim-stream 1\ndevice hbm2_2000\nunit none\ntensor a f16[16] in\ntensor b f16[16] inout\n\
                tensor c f16[16] out\n";
    let faults = |body: &str| {
        let stream = Stream::parse(&format!("{head}{body}")).unwrap_or_else(|e| panic!("{body}: {e}")).stream;
        assert_eq!(Stream::decode(&stream.encode().unwrap()).unwrap(), stream, "{body}");
        assert_eq!(Stream::parse(&stream.to_text()).unwrap().stream, stream, "{body}");
        stream.check(&Geometry { channel: 1, ..G }).into_iter().map(|f| f.message).collect::<Vec<_>>()
    };
    let at = "at (16):(2@byte)";
    let none: [String; 0] = [];
    assert_eq!(faults(&format!("resident a {at}\nresident a {at} row=3\nlaunch k (a, b) -> (b)\n")), none);
    assert_eq!(faults(&format!("launch k\nwrite a {at}\n")), none);
    let late = faults(&format!("write b {at} row=1\nresident a {at}\n"));
    assert_eq!(late, ["`a` is resident: it is there before the first other step"]);
    // A cache is there, and is added to.
    assert_eq!(faults(&format!("resident b {at}\n")), none);
    assert_eq!(faults(&format!("resident c {at}\n")), ["`c` is resident: that is for arrays of role in or inout"]);
    assert_eq!(faults("resident a at (16):(2@byte) row=999999\n").len(), 1);
}

#[test]
fn what_is_said_of_broken_texts() {
    let head = "pim-stream 1\ndevice d\nunit hbm-pim\ntensor a f16[64] in\n";
    let says = |body: &str| ptoc_pim_stream::Stream::parse(&format!("{head}{body}")).unwrap_err().to_string();
    assert_eq!(Stream::parse("").unwrap_err().line, 1);
    assert_eq!(Stream::parse("pim-stream 2").unwrap_err().to_string(), "1:12: version 2 is not read; 1 is");
    assert_eq!(
        Stream::parse("pim-stream 1\ndevice d\nunit geopim units=4 lanes=8 units=4").unwrap_err().to_string(),
        "3:29: `units` is given twice"
    );
    assert_eq!(says("write b at ():()"), "5:7: there is no array `b`");
    assert_eq!(
        says("write a at (64):(2@bite)"),
        "5:20: a coordinate is no `bite`; it is one of channel, pch, bg, bank, row, col, byte, unit"
    );
    assert_eq!(says("write a at ((4,16)):(2@byte)"), "5:12: extents and strides of a layout have the same form");
    assert_eq!(says("write a at (64):(2@byte) rows"), "5:26: this is too much");
    assert_eq!(says("exec 0.0 {\n rd 0 0 0\n}"), "6:10: a column, a number, should be here");
    assert_eq!(says("exec 0.0 {\n rd 0 0 0 0"), "5:10: the text ends before the `}` of this");
    assert_eq!(
        says("exec 0.0 {\n wr 0 0 0 0 0x0\n}"),
        "6:13: data are `0x` and 1 to 32 bytes of two digits, the first byte first"
    );
    assert_eq!(says("exec 0.0 {\n wr 0 0 0x3fff 4 crf EXIT; MUV A\n}"), "6:28: `MUV` is no operation");
    assert_eq!(says("driver load params=1 from 1:2"), "5:8: a load needs the address of the weights");
    assert_eq!(says("descriptor feature=0 height=x"), "5:29: height, a number, should be here");
    assert_eq!(says("params a address=0"), "5:10: `samples=` is missing");
    assert_eq!(says("tensor a f32[1] in"), "5:8: there are two arrays `a`");
    assert_eq!(
        says("jump"),
        "5:1: no line begins with `jump`; lines begin with one of file, tensor, resident, write, read, move, relayout, \
        exec, descriptor, params, driver, launch, host"
    );
}
