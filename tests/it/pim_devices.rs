//! Devices by description: kernels on devices of random files give the interpreter's bits and keep the rules of their
//! DRAM; files with mistakes are errors with a code and a place.

use crate::engine::{Outcome, command};
use proptest::prelude::*;
use ptoc_isa::Target;
use ptoc_pim_sim::dram::Config;
use ptoc_pim_sim::dram::presets::PRESETS;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_devices");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    folder
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, text).expect("written");
    path
}

/// Sums, products and a maximum over two dimensions of blocks; and sums of rows in a loop.
const KERNELS: &str = "kernel chain(a: in f16[M, N], b: in f16[M, N], y: out f16[M, N]) {
    grid (i in tiles(M, 4), j in tiles(N, 48));
    let x = Vec(a.tile(i, j));
    let z = Vec(b.tile(i, j));
    let t = max(x * z + x, 0.0);
    TSTORE(y.tile(i, j), t * 0.37 - z);
}

kernel product(a: in f16[M, N], b: in f16[M, N], y: out f16[M]) {
    grid (i in tiles(M, 16));
    let s = tile Vec<f16, i, 1>;
    s = 0.0;
    for j in tiles(N, 32) { let x = Vec(a.tile(i, j)); let z = Vec(b.tile(i, j)); s += rowsum(x * z); }
    TSTORE(col(y).tile(i, _), s);
}
";

fn run(target: &Path, kernel: &str, backend: &str, sizes: (u32, u32), more: &[&str]) -> Outcome {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| file("kernels.tile", KERNELS));
    let kernels = FILE.display().to_string();
    let target = target.display().to_string();
    let sizes = [format!("M={}", sizes.0), format!("N={}", sizes.1)];
    let mut words = vec!["run", &kernels, kernel, "--target", &target, "--backend", backend, "--random", "5", "--json"];
    sizes.iter().for_each(|s| words.extend(["-D", s]));
    words.extend(more);
    command(&words)
}

/// Both backends give the same bits. The run has a timeline, for which the checker looks at every command.
fn agree(target: &Path, kernel: &str, sizes: (u32, u32)) -> Result<(), TestCaseError> {
    let trace = folder().join(format!("{}.json", target.file_stem().unwrap_or_default().to_string_lossy()));
    let name = trace.display().to_string();
    let [interp, pim] = [("interp", &[][..]), ("pim", &["--trace", &name][..])].map(|(backend, more)| {
        let o = run(target, kernel, backend, sizes, more);
        (o.status, o.err, serde_json::from_str::<serde_json::Value>(&o.out).unwrap_or_default())
    });
    let _ = std::fs::remove_file(trace);
    prop_assert_eq!((interp.0, pim.0), (0, 0), "{}{}", interp.1, pim.1);
    prop_assert!(interp.2["outputs"]["y"]["sha256"].is_string());
    prop_assert_eq!(&interp.2["outputs"]["y"]["sha256"], &pim.2["outputs"]["y"]["sha256"]);
    Ok(())
}

/// Presets whose bursts are those of streams.
fn narrow() -> Vec<&'static str> {
    let burst = |name: &str| Config::preset(name).expect("a preset").org.burst_bytes();
    PRESETS.iter().map(|p| p.name).filter(|name| burst(name) == 32).collect()
}

/// A file with a DRAM of its own: a preset's, with some numbers changed.
pub fn described(preset: &str, numbers: &[(String, u32)], unit: &str, device: &str) -> String {
    let preset = PRESETS.iter().find(|p| p.name == preset).expect("a preset");
    let mut dram = preset.text.replace("\n[", "\n[dram.");
    for (name, value) in numbers {
        let line = dram.lines().find(|l| l.starts_with(&format!("{name} = "))).map(str::to_owned);
        dram = line.map_or(dram.clone(), |line| dram.replace(&line, &format!("{name} = {value}")));
    }
    format!(
        "name = \"mine\"\ndescription = \"a device of a test\"\nbase = \"hbm-pim\"\n\n[unit]\n{unit}\n[device]\n\
         {device}\n\
         [dram]\n{dram}"
    )
}

/// A text for units with so many registers, and a device with so many stacks and channels.
fn shape() -> impl Strategy<Value = (String, String)> {
    (1u32..9, 1u32..3, 1u32..4, 1u32..1000).prop_map(|(registers, stacks, channels, clock)| {
        (format!("registers = {registers}\nclock = {clock}\n"), format!("stacks = {stacks}\nchannels = {channels}\n"))
    })
}

/// Timing parameters and counts with other values. What is small stays small enough that a run is short.
pub fn numbers() -> impl Strategy<Value = Vec<(String, u32)>> {
    let timing = prop::sample::select(vec![
        "nCL", "nCWL", "nRCDRD", "nRCDWR", "nRP", "nRAS", "nRC", "nWR", "nCCDS", "nCCDL", "nRRDS", "nRRDL", "nFAW",
        "nWTRS", "nWTRL", "nPPD", "nRPab",
    ]);
    let counts = (1u32..5, prop::sample::select(vec![4u32, 6, 8]));
    (prop::collection::vec((timing, 1u32..90), 0..8), counts).prop_map(|(timing, (groups, banks))| {
        let mut out: Vec<(String, u32)> = timing.into_iter().map(|(name, v)| (name.to_owned(), v)).collect();
        // Not less than what moves the data of a read out of the way of a write.
        out.push(("nRTW".to_owned(), 150));
        out.extend([("bankgroup".to_owned(), groups), ("bank".to_owned(), banks)]);
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(10, 40)))]

    #[test]
    fn random_devices_give_the_bits_and_keep_the_rules(
        preset in prop::sample::select(narrow()),
        (unit, device) in shape(),
        numbers in numbers(),
        (m, n) in (1u32..40, 1u32..200),
        kernel in prop::sample::select(vec!["chain", "product"]),
    ) {
        let text = described(preset, &numbers, &unit, &device);
        let path = file(&format!("random_{preset}_{m}_{n}.toml"), &text);
        let listed = command(&["targets", &path.display().to_string()]);
        prop_assert_eq!(listed.status, 0, "{}\n{}", listed.err, text);
        // Two registers of a file do not hold what the kernels have at once.
        let made = run(&path, kernel, "pim", (m, n), &[]);
        let few = made.status == 1 && (made.err.contains("live here") || made.err.contains("registers"));
        prop_assert!(made.status == 0 || few, "{}\n{text}", made.err);
        if made.status == 0 {
            agree(&path, kernel, (m, n))?;
        }
        let _ = std::fs::remove_file(path);
    }
}

/// What a mutation does to a text.
#[derive(Clone, Debug)]
enum Mutation {
    Drop(usize),
    Twice(usize),
    Swap(usize, usize),
    Number(usize, i64),
    Byte(usize, u8),
    Cut(usize),
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let number = prop::sample::select(vec![0, -1, 1, 2, 3, 7, 255, 65_536, 16_777_216, i64::from(u32::MAX), i64::MAX]);
    let one = prop_oneof![
        any::<usize>().prop_map(Mutation::Drop),
        any::<usize>().prop_map(Mutation::Twice),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (any::<usize>(), number).prop_map(|(a, n)| Mutation::Number(a, n)),
        (any::<usize>(), any::<u8>()).prop_map(|(a, b)| Mutation::Byte(a, b)),
        any::<usize>().prop_map(Mutation::Cut),
    ];
    prop::collection::vec(one, 1..4)
}

fn mutated(text: &str, mutations: &[Mutation]) -> Vec<u8> {
    let mut lines: Vec<String> = text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect();
    let mut bytes = None;
    for m in mutations {
        let n = lines.len().max(1);
        match m {
            Mutation::Drop(at) => drop(lines.remove(at % n)),
            Mutation::Twice(at) => lines.insert(at % n, lines[at % n].clone()),
            Mutation::Swap(a, b) => lines.swap(a % n, b % n),
            Mutation::Number(at, value) => {
                let with: Vec<usize> = (0..n).filter(|i| lines[*i].contains(" = ")).collect();
                let Some(line) = with.get(at % with.len().max(1)) else { continue };
                let key = lines[*line].split(" = ").next().unwrap_or_default().to_owned();
                lines[*line] = format!("{key} = {value}");
            }
            Mutation::Byte(at, byte) => bytes = Some((*at, Some(*byte))),
            Mutation::Cut(at) => bytes = Some((*at, None)),
        }
    }
    let mut out = lines.join("\n").into_bytes();
    if let Some((at, byte)) = bytes
        && !out.is_empty()
    {
        let at = at % out.len();
        match byte {
            Some(byte) => out[at] = byte,
            None => out.truncate(at),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(60, 300)))]

    /// No panic, no hang; errors have codes; what is taken is listed, and its kernels are right or refused.
    #[test]
    fn mutated_files(
        preset in prop::sample::select(PRESETS.iter().map(|p| p.name).collect::<Vec<_>>()),
        (unit, device) in shape(),
        mutations in mutations(),
        own in any::<bool>(),
    ) {
        let text = match own {
            true => described(preset, &[], &unit, &device),
            false => format!("name = \"mine\"\ndescription = \"\"\nbase = \"geopim\"\n[device]\npreset = \"{preset}\"\n\
                {device}"),
        };
        let path = folder().join("mutated.toml");
        std::fs::write(&path, mutated(&text, &mutations)).expect("written");
        let listed = command(&["targets", &path.display().to_string()]);
        match listed.status {
            0 => {
                let made = run(&path, "chain", "pim", (5, 20), &[]);
                prop_assert!(made.status == 0 || made.status == 1 && made.err.contains("error[E"), "{}", made.err);
                if made.status == 0 {
                    agree(&path, "chain", (5, 20))?;
                }
            }
            status => prop_assert!(
                status <= 2 && listed.err.contains("error[E") && !listed.err.contains("error in ptoc"),
                "{}", listed.err
            ),
        }
    }
}

/// The devices that come with the compiler say of their DRAM what it is.
#[test]
fn devices_agree_with_their_presets() {
    let all = Target::all().iter().filter(|t| t.is_pim()).chain(Target::devices());
    let mut devices = 0;
    for target in all {
        let d = target.device.as_ref().expect("a device");
        let org = Config::preset(&d.preset).expect("a preset").org;
        assert_eq!(
            (d.pseudo_channels, d.bank_groups, d.banks, d.bursts, d.burst_bytes),
            (org.pseudochannel, org.bankgroups_per_pc(), org.bank, org.bursts_per_row(), org.burst_bytes()),
            "{}",
            target.name
        );
        assert!(d.rows <= org.row, "{}", target.name);
        devices += 1;
    }
    assert_eq!(devices, 4);
}

/// LPDDR5-PIM runs what HBM-PIM runs, with its own times.
#[test]
fn lpddr5_pim_runs_kernels() {
    for kernel in ["chain", "product"] {
        agree(Path::new("lpddr5-pim"), kernel, (100, 300)).unwrap();
    }
    let cycles = |target: &str| {
        let o = run(Path::new(target), "chain", "pim", (100, 300), &[]);
        serde_json::from_str::<serde_json::Value>(&o.out).expect("JSON")["stats"]["ns"].as_f64().expect("a number")
    };
    assert!(cycles("lpddr5-pim") > cycles("hbm-pim"));
}

/// What is said of files, with places.
#[test]
fn mistakes_in_files() {
    let (unit, device) = ("clock = 250\n", "stacks = 1\n");
    let good = described("hbm2_2000", &[], unit, device);
    let cases: Vec<(&str, String)> = vec![
        ("a name that is taken", good.replace("\"mine\"", "\"geopim\"")),
        ("no base of this name", good.replace("base = \"hbm-pim\"", "base = \"upmem\"")),
        ("a base that is no name", good.replace("base = \"hbm-pim\"", "base = 3")),
        ("another family", good.replace("base = ", "family = \"a5\"\nbase = ")),
        ("two DRAMs", good.replace("stacks = 1", "stacks = 1\npreset = \"hbm3_6400\"")),
        (
            "no preset of this name",
            "name = \"m\"\ndescription = \"\"\nbase = \"hbm-pim\"\n[device]\npreset = \"hbm4\"\n".into(),
        ),
        ("a count that the DRAM does not have", good.replace("stacks = 1", "stacks = 1\nbanks = 8")),
        ("rows that are reserved", good.replace("stacks = 1", "stacks = 1\nrows = 8192")),
        ("too few rows for the registers", good.replace("\nrow = 32768", "\nrow = 8192")),
        ("channels of the DRAM", good.replace("[dram.org]", "[dram.org]\nchannel = 4")),
        ("a timing parameter that is misspelt", good.replace("nFAW = 15", "nFAV = 15")),
        ("a key that nothing reads", good.replace("[dram]\n", "[dram]\nvoltage = 3\n")),
        ("an operation that there is not", good.replace("clock = 250", "clock = 250\noperations = [\"SIN\"]")),
        ("a number for a word", good.replace("clock = 250", "clock = \"fast\"")),
        ("a key of no table", good.replace("clock = 250", "clok = 250")),
        ("a store whose size follows", good.replace("[device]", "[memory.GrfA]\ncapacity = 64\n[device]")),
        ("steps that the kind has not", good.replace("clock = 250", "clock = 250\nsteps = \"autonomous\"")),
        ("bursts of 64 bytes", described("ddr4_3200", &[], unit, device)),
        ("currents that are missing", described("lpddr5_6400", &[], unit, device).replace("idd4r_mA = 243.0\n", "")),
        ("no TOML", "name = ".into()),
        ("nothing", String::new()),
    ];
    let mut out = String::new();
    for (what, text) in cases {
        let path = file("mistake.toml", &text);
        let told = command(&["targets", &path.display().to_string()]);
        assert!(told.status == 1 && told.err.contains("error[E"), "{what}: {} {}{}", told.status, told.out, told.err);
        let _ = writeln!(out, "== {what}\n{}", told.err.replace(&folder().display().to_string(), ""));
    }
    let missing = command(&["run", "x.tile", "--target", "./none.toml"]);
    assert_eq!(missing.status, 2);
    let _ = writeln!(out, "== no file\n{}", missing.err);
    insta::assert_snapshot!(out);
}

/// Numbers that no device has are refused in the file, where they stand: as `-D` is, and before any kernel.
#[test]
fn numbers_out_of_range() {
    let head = "name = \"m\"\ndescription = \"\"\nbase = \"hbm-pim\"\n[unit]\n";
    let aim = "kind = \"aim\"\nclock = 500\nlanes = 16\nbanks = 1\noperations = [\"MOV\", \"DOT\", \"RELU\"]\n\
               latency = 8\nact_weight = 1\nbuffer = 1000000000\n[memory.Vec]\ncapacity = 8388608\n";
    for (line, wrong) in
        [(5, "fence_data = 7"), (5, "act_weight = 1024"), (5, "act_weight = 17"), (5, "clock = 1000000000"), (12, aim)]
    {
        let path = file("range.toml", &format!("{head}{wrong}\n")).display().to_string();
        let told = command(&["targets", &path]);
        let place = format!("range.toml:{line}:");
        assert!(
            told.status == 1 && told.err.contains("error[E0653]") && told.err.contains("it may be"),
            "{}",
            told.err
        );
        assert!(told.err.contains(&place) && told.err.matches("error[").count() == 1, "{wrong}: {}", told.err);
    }
}

/// Every mistake of a file is told, each once, whatever its kind; what follows from another one is not.
#[test]
fn all_mistakes_of_a_file() {
    let head = "name = \"m\"\ndescription = \"\"\nbase = \"hbm-pim\"\n";
    let cases: [(&str, &[&str]); 4] = [
        (
            "[unit]\nfoo = 1\nbar = 2\nregisters = \"x\"\n[device]\nbaz = 3\nchannels = -4\n",
            &["`foo`", "`bar`", "string \"x\"", "`baz`", "-4 is not"],
        ),
        ("[device]\nstacks = -1\nchannels = \"x\"\n", &["-1 is not", "string \"x\""]),
        ("[unit]\noperations = [\"MOV\", 3, \"SIN\"]\nrounding = 1\n", &["integer `3`", "`SIN`", "integer `1`"]),
        ("[unit]\nkind = \"aim\"\nclok = 3\n", &["`clok`"]),
    ];
    for (text, all) in cases {
        let path = file("several.toml", &format!("{head}{text}")).display().to_string();
        let told = command(&["targets", &path]);
        assert_eq!((told.status, told.err.matches("error[").count()), (1, all.len()), "{text}: {}", told.err);
        assert!(all.iter().all(|word| told.err.contains(word)), "{text}: {}", told.err);
    }
}

/// Units that are described and have no code, and code that takes an operation which they lack.
#[test]
fn what_no_code_is_made_for() {
    let device = "stacks = 1\n";
    let mut out = String::new();
    let cases = [
        ("lanes", described("hbm2_2000", &[], "lanes = 8\n", device)),
        ("banks", described("hbm2_2000", &[], "banks = 1\n", device)),
        ("registers", described("hbm2_2000", &[], "registers = 16\n", device)),
        ("rounding", described("hbm2_2000", &[], "rounding = \"fused\"\n", device)),
        ("odd banks", described("hbm2_2000", &[("bank".into(), 3)], "", device)),
        ("columns", described("hbm2_2000", &[("column".into(), 64)], "", device)),
        ("no products", described("hbm2_2000", &[], "operations = [\"MOV\", \"FILL\", \"ADD\"]\n", device)),
    ];
    for (what, text) in cases {
        let path = file("uncoded.toml", &text);
        let told = run(&path, "chain", "pim", (4, 48), &[]);
        assert!(told.status == 1, "{what}: {}{}", told.out, told.err);
        let _ = writeln!(out, "== {what}\n{}", told.err.replace(&folder().display().to_string(), ""));
        let meant = run(&path, "chain", "interp", (4, 48), &[]);
        assert_eq!(meant.status, 0, "{what}: {}", meant.err);
    }
    let text = described(
        "gddr6_aim",
        &[],
        "kind = \"described\"\nclock = 1\nlanes = 16\nbanks = 1\noperations = [\"DOT\"]\n",
        "stacks = 1\nchannels = 1\n",
    );
    let path = file("described.toml", &text);
    let told = run(&path, "chain", "pim", (4, 48), &[]);
    let _ = writeln!(out, "== described\n{}", told.err.replace(&folder().display().to_string(), ""));
    insta::assert_snapshot!(out);
}

/// A device of GeoPIM's kind: presets with bursts of 32 bytes, timing, counts, and the unit's own numbers.
fn geopim(preset: &str, numbers: &[(String, u32)], unit: [u32; 4], device: &str) -> String {
    let [buffers, parameters, cycles, clock] = unit;
    let own =
        format!("buffers = {buffers}\nparameters = {parameters}\ncoordinate_cycles = {cycles}\nclock = {clock}\n");
    described(preset, numbers, &own, device).replace("base = \"hbm-pim\"", "base = \"geopim\"")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(8, 40)))]

    /// Units with sequencers: samples on random devices are the interpreter's, and commands keep the DRAM's rules.
    #[test]
    fn random_devices_of_geopim(
        preset in prop::sample::select(narrow()),
        numbers in numbers(),
        unit in (1u32..3, 1u32..7, 1u32..9, 1u32..1200).prop_map(|(b, p, c, clock)| [b, p, c, clock]),
        channels in 1u32..4,
        sizes in (1u32..3, 1u32..5, 1u32..5, 1u32..13, 1u32..20),
        kernel in prop::sample::select(vec!["sample", "moved"]),
        fold in any::<bool>(),
    ) {
        let (b, h, w, q, s) = sizes;
        let device = format!("stacks = 1\nchannels = {channels}\n");
        let text = geopim(preset, &numbers, unit, &device);
        let path = file(&format!("geopim_{preset}_{h}_{w}_{q}_{s}.toml"), &text).display().to_string();
        let listed = command(&["targets", &path]);
        prop_assert_eq!(listed.status, 0, "{}\n{}", listed.err, text);
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/sampling.tile").display().to_string();
        let trace = folder().join(format!("geopim_{h}_{w}_{q}_{s}.json"));
        let defs: Vec<String> = [("B", b), ("H", 2 * h), ("W", 2 * w), ("Q", q), ("S", s), ("C", 16)]
            .map(|(name, n)| format!("{name}={n}"))
            .into_iter()
            .chain([format!("FOLD={fold}")])
            .collect();
        let [interp, pim] = ["interp", "pim"].map(|backend| {
            let name = trace.display().to_string();
            let mut words = vec!["run", &example, kernel, "--target", &path, "--backend", backend, "--random", "5"];
            words.push("--json");
            defs.iter().for_each(|d| words.extend(["-D", d]));
            if backend == "pim" {
                words.extend(["--trace", &name]);
            }
            let o = command(&words);
            (o.status, o.err, serde_json::from_str::<serde_json::Value>(&o.out).unwrap_or_default())
        });
        let _ = std::fs::remove_file(&trace);
        let _ = std::fs::remove_file(&path);
        prop_assert_eq!(interp.0, 0, "{}", interp.1);
        // A map whose rows the device's rows do not hold, and more blocks than units, are told so.
        if pim.0 == 1 && ["E1322", "E1302"].iter().any(|code| pim.1.contains(code)) {
            return Ok(());
        }
        prop_assert_eq!(pim.0, 0, "{}\n{}", pim.1, text);
        prop_assert!(interp.2["outputs"]["y"]["sha256"].is_string());
        prop_assert_eq!(&interp.2["outputs"]["y"]["sha256"], &pim.2["outputs"]["y"]["sha256"]);
    }
}

/// Units of another kind on the base of HBM-PIM have none of its stores.
#[test]
fn other_units_have_no_register_files() {
    let unit = "kind = \"aim\"\nclock = 500\nlanes = 16\nbanks = 1\noperations = [\"DOT\"]\nrounding = \"fused\"\n\
                buffer = 2048\nlatency = 16\nact_weight = 1\n";
    let path = file("aim_base.toml", &described("gddr6_aim", &[], unit, "stacks = 1\nchannels = 1\n"));
    let listed = command(&["targets", &path.display().to_string()]);
    assert_eq!(listed.status, 0, "{}", listed.err);
    assert!(!listed.out.contains("GrfA"), "{}", listed.out);
}
