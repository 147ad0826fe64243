//! GeoPIM as it shows from outside: text in, results and messages out. What lies below:
//!
//! | what | here | elsewhere |
//! |---|---|---|
//! | layout | `channels_come_last` | `edges_of_the_map` (machine/geopim): every address |
//! | budgets | `budgets` | `budgets` (units/geopim/config), `budgets_of_a_unit` (pim-stream) |
//! | accumulators | | `sixteen_accumulators`, `tiles_outermost` (units/geopim) |
//! | register | | `fields_fill_the_register` and its neighbours (pim-stream/register) |
//! | coordinates | `reference.rs` | `coordinates_neighbours_and_shares` (units/geopim/sample) |
//! | border | `reference.rs` | `edges_of_the_map`; `any_units` (units/geopim): no read outside |
//! | kernel | `reference.rs`, pim_backend.rs | `a_whole_run` (machine/geopim) |
//! | sums | | `sums_are_near_the_exact_ones` (units/geopim/sum) |
//! | tile timing | | `eighty_cycles_a_sample`, `tiles_without_overlap` (units/geopim) |
//! | states | | `states` (units/geopim) |
//! | ping-pong | | `two_halves_overlap` (units/geopim) |
//! | row hits | `near_samples_find_their_rows_open` | `row_hits` (units/geopim) |
//! | scratchpad | `a_scratchpad_saves_reads` | of the same name (units/geopim) |
//! | commands | `the_drivers_sequence` | pim-stream/driver and pim-stream/check |
//! | workloads | `workloads_say_what_they_cost` | test lines of examples/sampling.tile |
//! | geometry | | `banks_and_vaults` (machine/geopim) |

use super::{program, run};
use crate::engine::{Outcome, command};
use ptoc_pim_sim::dram::Command as Dram;
use ptoc_pim_sim::machine::geopim::UnitTime;
use ptoc_pim_sim::machine::{self, Options, device};
use ptoc_pim_stream::driver::CommandKind;
use ptoc_pim_stream::stream::{Action, Stream};
use ptoc_tensor::{DType, Tensor, random, random_in, scalar};
use ptoc_tests::programs::Given;
use std::path::PathBuf;

/// `ptoc WORDS`, with `-D` before each definition.
pub(super) fn ptoc(words: &[&str], definitions: &str) -> Outcome {
    let mut all: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    definitions.split_whitespace().for_each(|d| all.extend(["-D".to_owned(), d.to_owned()]));
    command(&all)
}

pub(super) fn on_geopim(file: &str, kernel: &str, definitions: &str) -> Outcome {
    let path = program(file).display().to_string();
    ptoc(&["run", &path, kernel, "--target", "geopim", "--backend", "pim", "--random", "1", "--stats"], definitions)
}

pub(super) fn file(name: &str, text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("geopim_rows");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// What the units did.
pub(super) fn sampled(outcome: &ptoc_driver::launch::RunOutcome) -> Vec<UnitTime> {
    let report = &outcome.simulated.as_ref().expect("units ran").report;
    report.units.iter().filter_map(|u| u.sequencer).collect()
}

/// The stream of a kernel, as `emit` prints it.
fn emitted(file: &str, kernel: &str, definitions: &str) -> String {
    let path = program(file).display().to_string();
    let outcome = ptoc(&["emit", &path, kernel, "--stage", "pim", "--target", "geopim"], definitions);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    outcome.out
}

/// A map with channels first is rearranged by a kernel that one sees, or refused.
#[test]
fn channels_come_last() {
    let kernel = |map: &str| {
        format!(
            "kernel k<const C = 32>(feat: in f16[B, C, H, W], geo: in f16[B, Q, 4], attn: in f16[B, Q, S], y: out \
             f16[B, Q, C]) {{\n    \
             grid (b in 0..B, q in tiles(Q, 2)) on (B, ceil_div(Q, 2)) : (ceil_div(Q, 2)@unit, 1@unit);\n    \
             for i in q {{\n        let acc = tile Vec<f32, 1, C>;\n        \
             TSAMPLE(acc, {map}, geo[b, i, _], attn[b, i, _]);\n        TSTORE(y[b, i, _], f16(acc));\n    }}\n}}\n"
        )
    };
    // As many columns as channels, so that no size tells.
    let sizes = "B=1 H=4 W=32 Q=3 S=4";
    for (map, code, words) in [
        ("feat[b, _, _, _]", "E0203", "the channels of `feat` come first: `C`, and TSAMPLE has `W` last"),
        (
            "modes(feat[b, _, _, _], (1, 2, 0))",
            "E1322",
            "the map of a query is a whole item of its tensor, channels last",
        ),
    ] {
        let path = file("first.tile", &kernel(map));
        let outcome = ptoc(&["run", &path, "k", "--target", "geopim", "--backend", "pim", "--random", "1"], sizes);
        assert_eq!(outcome.status, 1, "{map}");
        assert!(outcome.err.contains(code) && outcome.err.contains(words), "{}", outcome.err);
    }
    // The language's program: the relayout is a launch, and its result is what a map with channels last gives.
    let definitions: Vec<(String, String)> = [("B", 2), ("H", 4), ("W", 6), ("C", 128), ("Q", 5), ("S", 7)]
        .map(|(n, v)| (n.to_owned(), v.to_string()))
        .into();
    let first = run("geo_sample.tile", "sample", &definitions, &Given::new(), 3);
    let fmap = &first.tensors["fmap"];
    let mut feat = Tensor::zeros(DType::F16, &[2, 4, 6, 128]).expect("small");
    for i in 0..feat.len() {
        let (pixel, c) = (i / 128, i % 128);
        feat.set_bits(i, fmap.get_bits((pixel / 24 * 128 + c) * 24 + pixel % 24));
    }
    let array = |tensor: &Tensor| tensor.clone();
    let mut arrays: Given = ["geo", "attn"].map(|n| (n.to_owned(), array(&first.tensors[n]))).into_iter().collect();
    arrays.insert("feat".into(), array(&feat));
    let last = run("geo_sample.tile", "geo_sample", &definitions, &arrays, 3);
    assert_eq!(first.tensors["y"].bytes(), last.tensors["y"].bytes());
}

/// What is over a unit's budget is refused with the numbers.
#[test]
fn budgets() {
    let sizes = "B=1 H=4 W=4 Q=3 S=4";
    for (more, code, words) in [
        ("C=256", "SA-0352", "tile `acc` is larger than accumulators: 1024 > 512 bytes"),
        ("C=128 capacity.Vec=64", "SA-0352", "tile `acc` is larger than accumulators: 512 > 64 bytes"),
        ("C=128 capacity.Buf=128", "E1320", "a tile of four pixels takes 128 bytes; half of the tile buffer has 64"),
    ] {
        let outcome = on_geopim("sampling.tile", "sample", &format!("{sizes} {more}"));
        assert_eq!(outcome.status, 1, "{more}");
        assert!(outcome.err.contains(code) && outcome.err.contains(words), "{more}: {}", outcome.err);
        assert_eq!(outcome.err.matches("error[").count(), 1, "{more}: {}", outcome.err);
    }
    // One query more than a unit has registers for is loaded after them, and not refused.
    let outcome = on_geopim("sampling.tile", "sample", "B=1 H=4 W=4 C=64 Q=5 QB=5 S=4");
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    // Samples are counted in 16 bits.
    let outcome = on_geopim("sampling.tile", "sample", "B=1 H=4 W=4 C=16 Q=1 S=65536");
    assert!(outcome.err.contains("a query has 65536 samples, and 65535 are counted"), "{}", outcome.err);
}

/// 1024 places of a map of 16 x 16 pixels, dealt to 32 queries at random, by region, or by region and inside of
/// the 2 x 2 pixels that a row holds. The units read as many bursts for each. Near places find more rows open; how many
/// more is decided by what a row holds, and by the order of a sample's bursts, which hides it (spec/geopim.md).
#[test]
fn near_samples_find_their_rows_open() {
    const SIDE: f64 = 15.0;
    let places = random_in(DType::F32, &[1024, 2], 5, "places", Some((0, 1))).expect("small").to_f64s();
    let at_random: Vec<[f64; 2]> = places.chunks(2).map(|p| [p[0] * SIDE, p[1] * SIDE]).collect();
    // Line by line of patches, so that successive ones are neighbours.
    let mut by_region = at_random.clone();
    by_region.sort_by_key(|p| ((p[1] / 2.0) as u32, (p[0] / 2.0) as u32));
    let in_patches: Vec<[f64; 2]> =
        by_region.iter().map(|p| p.map(|x| x - x.floor() + (x / 2.0).floor() * 2.0)).collect();
    let share = |places: &[[f64; 2]], fold: bool| {
        let mut arrays = Given::new();
        // Not up to the next pixel, which f16 may round to.
        let offsets: Vec<f64> = places.iter().flatten().map(|x| (x * 64.0).floor() / 64.0).collect();
        arrays.insert("offs".into(), Tensor::from_f64s(DType::F16, &[1, 32, 32, 2], &offsets).expect("small"));
        arrays.insert("geo".into(), Tensor::zeros(DType::F16, &[1, 32, 4]).expect("small"));
        let definitions: Vec<(String, String)> =
            [("H", "16".to_owned()), ("W", "16".into()), ("FOLD", fold.to_string())]
                .map(|(n, v)| (n.to_owned(), v))
                .into();
        let ran = run("sampling.tile", "moved", &definitions, &arrays, 1);
        let units = sampled(&ran.outcome);
        let sum = |n: usize| units.iter().map(|u| u.map[n]).sum::<u64>();
        assert_eq!((units.len(), sum(0)), (8, 1024 * 4 * 8), "four pixels of eight bursts for every sample");
        // A cycle of the unit is two ticks; each unit has four queries of 32 samples.
        let cycles = ran.outcome.simulated.as_ref().expect("units ran").report.kinds["driver execute"].ticks as f64
            / 2.0
            / 128.0;
        (sum(1) as f64 / sum(0) as f64, cycles)
    };
    let mut columns = Vec::new();
    for (fold, least) in [(false, [0.6, 0.65, 0.95]), (true, [0.85, 0.9, 0.95])] {
        let shares = [&at_random, &by_region, &in_patches].map(|p| share(p, fold));
        assert!(shares.map(|(share, _)| share).is_sorted(), "fold {fold}: {shares:?}");
        assert!(shares.iter().zip(least).all(|((share, _), least)| *share > least), "fold {fold}: {shares:?}");
        columns.push(shares.map(|(share, cycles)| format!("{:.1} % | {cycles:.0}", 100.0 * share)));
    }
    let names = ["at random", "near ones in one query", "the same, each moved so that its four pixels are one patch"];
    let rows =
        names.iter().enumerate().map(|(n, name)| format!("| {name} | {} | {} |\n", columns[0][n], columns[1][n]));
    let table: String = rows.collect();
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../spec/geopim.md");
    let text = std::fs::read_to_string(&page).expect("UTF-8");
    let head = "| places | tile by tile | cycles a sample | pixel by pixel (folded) | cycles a sample |\n\
        |---|---|---|---|---|\n";
    let from = text.find(head).expect("the table") + head.len();
    let to = from + text[from..].find("\n\n").expect("its end") + 1;
    if std::env::var_os("UPDATE_SPEC").is_some() {
        std::fs::write(&page, format!("{}{table}{}", &text[..from], &text[to..])).expect("it can be written");
    } else {
        assert_eq!(
            &text[from..to],
            table,
            "`UPDATE_SPEC=1 cargo test -p ptoc-tests geopim` writes the table of spec/geopim.md anew"
        );
    }
}

/// With a scratchpad in every vault there are fewer reads, and the same results.
#[test]
fn a_scratchpad_saves_reads() {
    let text = emitted("sampling.tile", "sample", "B=1 H=4 W=4 C=64 Q=24 QB=2 S=8");
    let arrays = || {
        let stream = Stream::parse(&text).expect("emitted").stream;
        let random = |t: &ptoc_pim_stream::stream::TensorDecl| {
            let shape: Vec<usize> = t.shape.iter().map(|n| *n as usize).collect();
            (t.name != "y").then(|| random(t.dtype, &shape, 1, &t.name).expect("small"))
        };
        stream.tensors.iter().map(random).collect::<Vec<_>>()
    };
    let run_with = |bytes: u32| {
        let text = text.replace("scratchpad_bytes=0", &format!("scratchpad_bytes={bytes}"));
        let stream = Stream::parse(&text).expect("emitted").stream;
        let config = device::config(&stream.device).expect("a device");
        assert_eq!(stream.check(&device::geometry(&config)), []);
        let outcome = machine::run(&stream, &config, arrays(), Options::default()).expect("it runs");
        let y = outcome.outputs.last().and_then(Option::as_ref).expect("results").bytes().to_vec();
        let shared: u64 = outcome.report.units.iter().filter_map(|u| u.sequencer).map(|u| u.shared).sum();
        (y, outcome.report.commands[Dram::Rd as usize], shared)
    };
    let ((y, without, none), (z, with, shared)) = (run_with(0), run_with(4096));
    assert_eq!((y, none), (z, 0));
    assert_eq!(with + shared, without);
    assert!(shared > without / 4, "{shared} of {without} reads are saved");
}

/// What a kernel becomes is write parameters, weights and offsets, LOAD, EXECUTE, READ, of 44
/// bytes each; what is malformed, or comes before what it needs, is refused before anything runs.
#[test]
fn the_drivers_sequence() {
    let text = emitted("sampling.tile", "moved", "B=1 H=4 W=4 C=64 Q=6 QB=2 S=8");
    let stream = Stream::parse(&text).expect("emitted").stream;
    let config = device::config(&stream.device).expect("a device");
    let faults = |stream: &Stream| -> Vec<String> {
        stream.check(&device::geometry(&config)).iter().map(|f| f.message.clone()).collect()
    };
    assert_eq!(faults(&stream), Vec::<String>::new());
    let driver = |stream: &Stream| -> Vec<(usize, CommandKind)> {
        let of = |(n, s): (usize, &ptoc_pim_stream::stream::StreamStep)| match &s.action {
            Action::Driver(c) => Some((n, c.kind)),
            _ => None,
        };
        stream.steps.iter().enumerate().filter_map(of).collect()
    };
    let commands = driver(&stream);
    assert_eq!(
        commands.iter().map(|(_, k)| *k).collect::<Vec<_>>(),
        [CommandKind::Load, CommandKind::Execute, CommandKind::Read]
    );
    let [load, execute, read] = [commands[0].0, commands[1].0, commands[2].0];
    let swapped = |a: usize, b: usize| {
        let mut stream = stream.clone();
        stream.steps.swap(a, b);
        faults(&stream)
    };
    assert!(swapped(execute, read).iter().any(|f| f.contains("a read before any execute")));
    assert!(swapped(load, execute).iter().any(|f| f.contains("an execute before any load")));
    // In the binary form, a command stands there as the driver writes it.
    let bytes = stream.encode().expect("it fits");
    let Action::Driver(command) = &stream.steps[load].action else { panic!("LOAD") };
    let wire = command.encode().expect("it fits");
    assert_eq!(wire.len(), 44);
    let at = bytes.windows(44).position(|w| w == wire).expect("its bytes");
    let with = |n: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at + n] = byte;
        Stream::decode(&bytes).map(|s| faults(&s).join("; ")).unwrap_or_else(|e| e.message)
    };
    for (what, n, byte, words) in [
        ("a type that is none", 0, 3, "type is 3: 0 is LOAD, 1 EXECUTE, 2 READ"),
        ("samples over 16 bits", 6, 1, "samples is 0x10000"),
        ("an address over 48 bits", 8 + 6, 1, "params is 0x1000"),
        ("offsets without their flag", 40, 0, "the flag says that samples have none"),
    ] {
        let said = with(n, byte);
        assert!(said.contains(words), "{what}: {said}");
    }
    // A flag without an address, and no address of the weights.
    let without = |first: usize| {
        let mut bytes = bytes.clone();
        bytes[at + first..at + first + 8].fill(0);
        Stream::decode(&bytes).map(|s| faults(&s).join("; ")).unwrap_or_else(|e| e.message)
    };
    assert!(without(24).contains("no address of them"), "{}", without(24));
    assert!(without(16).contains("address of the weights"), "{}", without(16));
}

/// Scaled runs of both configurations print cycles, hits and bytes.
#[test]
fn workloads_say_what_they_cost() {
    for (name, sizes) in [("transplat", "B=2 H=8 W=8 Q=18 S=32"), ("pixelsplat", "B=1 H=8 W=8 Q=24")] {
        let outcome = on_geopim("sampling.tile", name, sizes);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        let line = |word: &str| {
            let found = outcome.out.lines().chain(outcome.err.lines()).find(|l| l.starts_with(word));
            found.unwrap_or_else(|| panic!("{name}: no line `{word}`\n{}{}", outcome.out, outcome.err)).to_owned()
        };
        let number = |word: &str| {
            let line = line(word);
            line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or_else(|| panic!("{line}"))
        };
        for word in ["cycles", "ns", "unit_cycles", "row_hits", "bytes_moved", "bytes_useful", "energy_pj"] {
            assert!(number(word) > 0.0, "{name}: {}", line(word));
        }
        assert!(line("rows ").contains("hits ("), "{}", line("rows "));
        assert!(line("bytes ").contains("host path"), "{}", line("bytes "));
        // Places lie in the map, so that the units read nearly four pixels for every sample.
        let definitions: Vec<(String, String)> =
            sizes.split(' ').filter_map(|d| d.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        let ran = run("sampling.tile", name, &definitions, &Given::new(), 1);
        let units = sampled(&ran.outcome);
        let (samples, reads) = units.iter().fold((0, 0), |(s, r), u| (s + u.work[1], r + u.map[0]));
        let shape = ran.tensors["y"].shape();
        assert_eq!(samples as usize, shape[0] * shape[1] * 32);
        assert!(reads as f64 > 0.8 * (samples * 4 * 8) as f64, "{name}: {reads} bursts for {samples} samples");
        let y = &ran.tensors["y"];
        let zeros = (0..y.len()).filter(|i| scalar::bits_to_f64(DType::F16, y.get_bits(*i)) == 0.0).count();
        assert!(zeros * 50 < y.len(), "{name}: {zeros} of {} results are 0", y.len());
    }
}
