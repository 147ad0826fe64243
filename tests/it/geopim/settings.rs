//! Settings of the units and of their memory by `-D`: what they change, and what is refused.

use super::rows::{file, on_geopim, ptoc, sampled};
use super::{Ran, program, run};
use ptoc_isa::{Allowed, Target};
use ptoc_pim_sim::dram::Command as Dram;
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::{LoopOrder, Refresh};
use ptoc_tests::programs::Given;

/// Sizes of a small TransPlat.
const SMALL: &str = "B=1 H=8 W=8 C=32 Q=18 S=16";

fn transplat(definitions: &str) -> Ran {
    let all = format!("{SMALL} {definitions}");
    let pairs: Vec<(String, String)> =
        all.split_whitespace().filter_map(|d| d.split_once('=')).map(|(n, v)| (n.into(), v.into())).collect();
    run("sampling.tile", "transplat", &pairs, &Given::new(), 1)
}

fn ticks(ran: &Ran) -> u64 {
    ran.outcome.simulated.as_ref().expect("units ran").report.kinds["driver execute"].ticks
}

/// The results are the kernel's, whatever the units are made of; the time is theirs.
#[test]
fn results_stay_and_time_follows() {
    let plain = transplat("");
    for (more, slower) in [
        ("device.stacks=6", Some(false)),
        ("device.stacks=1 device.channels=3", Some(false)),
        ("unit.buffers=1", Some(true)),
        ("unit.clock=200", Some(true)),
        ("unit.lanes=2", Some(true)),
        ("unit.parameters=1", Some(true)),
        ("unit.order=outer", Some(true)),
        ("unit.order=tile", None),
        ("unit.tile_channels=8", None),
        ("unit.scratchpad=4096", None),
        ("unit.coordinate_cycles=40", None),
        ("device.refresh=bank device.rows=64", None),
        ("device.preset=hbm3_6400", None),
    ] {
        let ran = transplat(more);
        assert_eq!(ran.tensors["y"].bytes(), plain.tensors["y"].bytes(), "{more}");
        if let Some(slower) = slower {
            assert_eq!(ticks(&ran) > ticks(&plain), slower, "{more}: {} and {}", ticks(&ran), ticks(&plain));
        }
    }
}

/// The scratchpad as a setting.
#[test]
fn a_scratchpad_reads_less() {
    let reads = |more: &str| {
        let ran = transplat(more);
        let shared: u64 = sampled(&ran.outcome).iter().map(|u| u.shared).sum();
        (ran.outcome.simulated.as_ref().expect("units ran").report.commands[Dram::Rd as usize], shared)
    };
    let ((without, none), (with, shared)) = (reads("QB=2"), reads("QB=2 unit.scratchpad=4096"));
    assert_eq!(none, 0);
    assert_eq!(with + shared, without);
    assert!(shared > 0);
}

/// A scratchpad is one memory with one port: a burst every two cycles for all units of a channel, whose banks give each
/// a burst in the time. Many units that share much wait for it, and `spec/geopim.md` says so.
#[test]
fn a_scratchpad_has_one_port() {
    let spec =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/geopim.md")).expect("the specification");
    let counts: Vec<(u64, u64)> = [("none", 0), ("1 KB", 1024), ("4 KB", 4096)]
        .into_iter()
        .map(|(name, bytes)| {
            let bytes = bytes.to_string();
            let sizes = [("B", "1"), ("H", "8"), ("W", "8"), ("Q", "24"), ("S", "32"), ("unit.scratchpad", &bytes)];
            let sizes: Vec<(String, String)> = sizes.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
            let ran = run("sampling.tile", "pixelsplat", &sizes, &Given::new(), 1);
            let shared: u64 = sampled(&ran.outcome).iter().map(|u| u.shared).sum();
            let row = spec.lines().find(|l| l.starts_with(&format!("| {name} |"))).expect("a row of the table");
            let said: Vec<u64> = row.split('|').filter_map(|c| c.trim().replace(',', "").parse().ok()).collect();
            assert_eq!(said[2..], [shared, ticks(&ran)], "{row}");
            (ticks(&ran), shared)
        })
        .collect();
    // 500 MHz beside ticks of 1 ns; the three units are in one channel.
    assert!(counts.iter().all(|(ticks, shared)| *ticks >= 4 * shared), "{counts:?}");
    assert!(counts.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{counts:?}");
}

/// 512 units, and 6 x 8 x 32 = 1536. A kernel of 600 blocks runs where there are as many units.
#[test]
fn more_stacks_more_units() {
    let sizes = "B=1 H=4 W=4 C=16 Q=600 QB=1 S=1";
    let outcome = on_geopim("sampling.tile", "sample", sizes);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("512"), "{}", outcome.err);
    let outcome = on_geopim("sampling.tile", "sample", &format!("{sizes} device.stacks=6"));
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let target = |stacks: i64| {
        let mut t = Target::find("geopim").expect("built in").clone();
        t.set("device.stacks", "", Some(stacks), Default::default()).expect("in range");
        t.device.as_ref().zip(t.unit.as_ref()).map(|(d, u)| d.units(u))
    };
    assert_eq!((target(2), target(6)), (Some(512), Some(1536)));
}

/// The stream says what was set, and so its simulator obeys.
#[test]
fn the_stream_has_the_settings() {
    let header = |kernel: &str, target: &str, path: &str, definitions: &str| {
        let outcome = ptoc(&["emit", path, kernel, "--stage", "pim", "--target", target], definitions);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        Stream::parse(&outcome.out).expect("emitted");
        outcome.out.lines().skip(1).take(2).collect::<Vec<_>>().join("\n")
    };
    let sampling = program("sampling.tile").display().to_string();
    let said = header(
        "sample",
        "geopim",
        &sampling,
        "B=1 H=4 W=4 C=32 Q=6 S=8 unit.clock=300 unit.lanes=4 unit.buffers=1 unit.parameters=2 unit.scratchpad=0x800 \
         unit.coordinate_cycles=3 unit.act_weight=2 device.stacks=6 device.refresh=off",
    );
    for word in [
        "refresh=off",
        "channel=48",
        "clock_mhz=300",
        "lanes=4",
        "buffer_bytes=256",
        "buffers=1",
        "param_entries=2",
        "scratchpad_bytes=2048",
        "coordinate_cycles=3",
        "act_weight=2",
    ] {
        assert!(said.split_whitespace().any(|w| w == word), "{word}: {said}");
    }
    let vectors = program("sampling.tile").with_file_name("hbm_pim.tile").display().to_string();
    let said =
        header("add", "hbm-pim", &vectors, "N=4096 unit.clock=300 unit.act_weight=8 unit.fence_data=0 device.stacks=2");
    for word in ["channel=16", "clock_mhz=300", "act_weight=8", "fence_data=0"] {
        assert!(said.split_whitespace().any(|w| w == word), "{word}: {said}");
    }
}

/// Whatever a setting may be, the stream may be too: the ends of every range make streams without faults.
#[test]
fn ends_of_ranges() {
    for (target, file, kernel, sizes) in
        [("geopim", "sampling.tile", "sample", "B=1 H=4 W=4 C=16 Q=3 S=4"), ("hbm-pim", "hbm_pim.tile", "add", "N=300")]
    {
        let path = program("sampling.tile").with_file_name(file).display().to_string();
        for setting in Target::find(target).expect("built in").settings() {
            let ends: Vec<u32> = match setting.allowed {
                // Rows and lanes must also suffice for the kernel.
                _ if ["device.rows", "unit.lanes"].contains(&setting.name) => continue,
                Allowed::Range(from, to) => vec![from, to],
                Allowed::OneOf(all) => all.to_vec(),
                _ => continue,
            };
            for value in ends {
                let outcome = ptoc(
                    &["emit", &path, kernel, "--stage", "pim", "--target", target],
                    &format!("{sizes} {}={value}", setting.name),
                );
                assert_eq!(outcome.status, 0, "{}={value}: {}", setting.name, outcome.err);
                let stream = Stream::parse(&outcome.out).expect("emitted").stream;
                let config = ptoc_pim_sim::machine::device::config(&stream.device).expect("a device");
                let faults = stream.check(&ptoc_pim_sim::machine::device::geometry(&config));
                assert_eq!(faults, [], "{}={value}", setting.name);
            }
        }
    }
}

/// Unknown names with the list, values with their range, budgets with both numbers; each once.
#[test]
fn refused_settings() {
    let sizes = "B=1 H=4 W=4 C=16 Q=3 S=4";
    for (more, code, words) in [
        ("unit.clok=300", "E1323", "did you mean `unit.clock`?"),
        ("unit.size=1", "E1323", "`unit.scratchpad`"),
        ("device.banks=64", "E1323", "`device.stacks`"),
        ("unit.clock=0", "E1324", "`unit.clock` is 0; it may be 1 to 10000"),
        ("unit.clock=fast", "E1324", "`unit.clock` is `fast`; it may be 1 to 10000"),
        ("unit.buffers=3", "E1324", "`unit.buffers` is 3; it may be 1 or 2"),
        ("unit.parameters=0", "E1324", "`unit.parameters` is 0; it may be 1 to 65535"),
        ("unit.parameters=-1", "E1324", "`unit.parameters` is -1; it may be 1 to 65535"),
        ("unit.scratchpad=99999999999", "E1324", "it may be 0 to 1048576"),
        ("unit.tile_channels=32", "E1324", "`unit.tile_channels` is 32; it may be 8 or 16"),
        (
            "unit.tile_channels=8 unit.lanes=16",
            "E1324",
            "`unit.lanes` is 16, which does not divide a tile of 8 channels",
        ),
        ("unit.order=inner", "E1324", "`chosen`, `tile`, `neighbour` or `outer`"),
        ("device.refresh=never", "E1324", "`off`, `all` or `bank`"),
        ("device.stacks=33", "E1324", "`device.stacks` is 33; it may be 1 to 32"),
        ("device.rows=32769", "E1324", "`device.rows` is 32769; it may be 1 to 32768"),
        ("device.rows=16385 device.preset=hbm3_6400", "E1324", "it may be 1 to 16384"),
        ("device.preset=hbm2_200", "E1324", "did you mean `hbm2_2000`?"),
        ("unit.tile_channels=16 capacity.Buf=128", "E1320", "takes 128 bytes; half of the tile buffer has 64"),
        ("unit.order=neighbour FOLD=false", "E1320", "`unit.order=neighbour` without folded weights"),
        (
            "unit.order=outer capacity.Vec=64",
            "E1320",
            "needs 32 accumulators, two tiles of 16 channels; the unit has 16",
        ),
        ("device.rows=6", "E1322", "its bank has 6"),
    ] {
        let outcome = on_geopim("sampling.tile", "sample", &format!("{sizes} {more}"));
        assert_eq!(outcome.status, 1, "{more}");
        let flat = outcome.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(code) && flat.contains(words), "{more}: {}", outcome.err);
        assert_eq!(outcome.err.matches("error[").count(), 1, "{more}: {}", outcome.err);
    }
    let path = program("sampling.tile").display().to_string();
    let outcome = ptoc(&["check", &path, "--target", "a2a3"], "unit.clock=300");
    assert!(outcome.err.contains("E1323") && outcome.err.contains("`a2a3` has no units in memory"), "{}", outcome.err);
    let outcome = ptoc(&["check", &path, "--target", "hbm-pim"], "unit.lanes=8");
    assert!(outcome.err.contains("E1323") && outcome.err.contains("`unit.fence_data`"), "{}", outcome.err);
}

/// Test lines set the same names.
#[test]
fn test_lines_have_settings() {
    let kernel = "kernel k<const C = 16>(feat: in f16[B, H, W, C], geo: in f16[B, Q, 4], attn: in f16[B, Q, S], y: out \
         f16[B, Q, C]) {\n    \
         grid (b in 0..B, q in 0..Q) on (B, Q) : (Q@unit, 1@unit);\n    let acc = tile Vec<f32, 1, C>;\n    \
         TSAMPLE(acc, feat[b, _, _, _], geo[b, q, _], attn[b, q, _]);\n    TSTORE(y[b, q, _], f16(acc));\n}\n";
    let lines = "// run: k pim,interp target=geopim B=1 H=4 W=4 Q=5 S=3 unit.buffers=1 unit.clock=300 device.stacks=6\n\
         // check: k target=geopim B=1 H=4 W=4 Q=5 S=3 unit.buffers=2 device.refresh=off\n\
         // check: k target=geopim B=1 H=4 W=4 Q=5 S=3 unit.buffers=3 => E1324\n\
         // check: k target=geopim B=1 H=4 W=4 Q=5 S=3 unit.size=3 => E1323\n";
    let path = file("settings.tile", &format!("{lines}{kernel}"));
    let outcome = ptoc(&["test", &path], "");
    assert_eq!(outcome.status, 0, "{}{}", outcome.out, outcome.err);
    assert_eq!(outcome.out.matches("ok ").count(), 4, "{}", outcome.out);
    let path = file("twice.tile", &format!("// check: k target=geopim unit.buffers=1 unit.buffers=2\n{kernel}"));
    let outcome = ptoc(&["test", &path], "");
    assert!(outcome.err.contains("`unit.buffers` is set twice"), "{}", outcome.err);
}

/// The target's words are those of the stream.
#[test]
fn words_are_the_streams() {
    let words = |name: &str| match Target::find("geopim").expect("built in").setting(name).expect("there").allowed {
        Allowed::Words(all) => all.to_vec(),
        other => panic!("{other}"),
    };
    assert_eq!(words("device.refresh"), Refresh::ALL.iter().map(|r| r.name()).collect::<Vec<_>>());
    let orders = LoopOrder::ALL.iter().map(|o| o.name());
    assert_eq!(words("unit.order"), std::iter::once("chosen").chain(orders).collect::<Vec<_>>());
}
