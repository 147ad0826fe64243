//! `ptoc sim`: results, reports, and what is wrong with streams and arrays.

use super::Sandbox;
use ptoc_pim_stream::Stream;
use ptoc_tensor::{DType, npy, random, scalar};
use serde_json::Value;
use std::fs;
use std::path::Path;

macro_rules! snapshot {
    ($text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($text));
    };
}

mod pages;

/// The hand-written sum of `tests/pim`, its arrays, and its binary form.
fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pim/add.pim.txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    s.file("add.pim", Stream::parse(&text).unwrap().stream.encode().unwrap());
    s.file("add.pim.txt", text);
    for (name, seed) in [("x", 1), ("y", 2)] {
        let tensor = random(DType::F16, &[2048], seed, name).unwrap();
        s.file(&format!("{name}.npy"), npy::write(&tensor));
    }
    s
}

const ARRAYS: &str = "--in x=x.npy --in y=y.npy";

/// The golden example: the sum of each pair, rounded to f16 once.
#[test]
fn a_sum_by_hand() {
    let s = sandbox();
    for stream in ["add.pim.txt", "add.pim"] {
        let said = s.run(&format!("sim {stream} {ARRAYS} --out z=z.npy"));
        assert!(said.contains("exit 0") && !said.contains("stderr"), "{said}");
        let [x, y, z] = ["x.npy", "y.npy", "z.npy"].map(|n| s.read(n));
        for i in 0..2048 {
            let [a, b] = [&x, &y].map(|t| scalar::f16_to_f32(t.get_bits(i) as u16));
            assert_eq!(z.get_bits(i), u64::from(scalar::f16_from_f32(a + b)), "element {i}: {a} + {b}");
        }
    }
}

#[test]
fn reports() {
    let s = sandbox();
    snapshot!(s.runs(&[
        &format!("sim add.pim {ARRAYS}"),
        &format!("sim add.pim.txt {ARRAYS} --stats"),
        &format!("sim add.pim.txt {ARRAYS} --stats --config hbm2_2000"),
    ]));
    let json: Value =
        serde_json::from_str(s.run(&format!("sim add.pim {ARRAYS} --json")).split("stdout\n").nth(1).unwrap()).unwrap();
    let sum: u64 = json["attribution"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(sum, 2 * json["cycles"].as_u64().unwrap());
    assert_eq!(json["lane_operations"], 2048);
    assert_eq!(json["per_bank"].as_array().unwrap().len(), 16);
}

/// A track for each bank and unit; everything on it is well formed and in order.
#[test]
fn timelines() {
    let s = sandbox();
    let said = s.run(&format!("sim add.pim {ARRAYS} --trace t.json"));
    assert!(said.contains("exit 0"), "{said}");
    let json: Value = serde_json::from_str(&fs::read_to_string(s.path().join("t.json")).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let names: Vec<&str> =
        events.iter().filter(|e| e["name"] == "thread_name").map(|e| e["args"]["name"].as_str().unwrap()).collect();
    for wanted in ["steps", "unit 0", "unit 7", "bank group 3 bank 3", "data bus"] {
        assert!(names.contains(&wanted), "{wanted} in {names:?}");
    }
    for name in ["exec add.tile:5", "compute add.tile:6", "mode switch add.tile:5", "read add.tile:7", "row 48"] {
        assert!(events.iter().any(|e| e["name"] == name), "{name}");
    }
}

#[test]
fn mistakes_of_streams() {
    let s = sandbox();
    let text = fs::read_to_string(s.path().join("add.pim.txt")).unwrap();
    for (name, from, to) in [
        ("form", "from 1:3", "from 1"),
        ("device", "hbm2_samsung_pim refresh", "hbm2_samsung refresh"),
        ("timing", "channel=1", "nRFC=99999999"),
        ("role", "tensor z f16[2048] out", "tensor z f16[2048] in"),
        ("place", "row=32 from", "row=16384 from"),
        ("order", "  wr 0 1 0x1fff 31 0x00\n", ""),
        ("program", "wr 0 0 48 0 x8 unit", "wr 0 0 48 0 x8 0x00"),
        ("unit", "act_weight=1", "act_weight=17"),
        ("burst", "rd 0 1 16 0 x8", "rd 0 4 16 0 x8"),
        ("fault", "FILL GRF_A[0], EVEN_BANK; ADD", "FILL GRF_A[0], ODD_BANK; ADD"),
        ("refresh", "refresh=off channel=1", "refresh=all nREFI=100 nRFC=5000"),
        ("kind", "unit hbm-pim clock_mhz=250 act_weight=1 fence_data=1", "unit geopim"),
    ] {
        assert!(text.contains(from), "{name}");
        s.file(&format!("{name}.txt"), text.replace(from, to));
    }
    let driver = "driver load params=0x40 weights=0x80 offsets=0x1000000000000";
    s.file("driver.txt", text.replace("unit hbm-pim clock_mhz=250 act_weight=1 fence_data=1", "unit geopim") + driver);
    let binary = fs::read(s.path().join("add.pim")).unwrap();
    s.file("cut.pim", &binary[..200]);
    let broken = Stream::parse(&text.replace("rd 0 1 16 0 x8", "rd 0 4 16 0 x8")).unwrap().stream;
    s.file("burst.pim", broken.encode().unwrap());
    s.file("none.pim", "");
    s.file("latin.pim", b"pim-stream 1\ndevice \xff\n");
    let calls: Vec<String> = "form device timing role place order program unit burst fault refresh kind driver"
        .split(' ')
        .map(|n| format!("{n}.txt"))
        .chain(["cut.pim", "burst.pim", "none.pim", "latin.pim", "nothing.pim"].map(String::from))
        .map(|name| format!("sim {name} {ARRAYS} --out z=z.npy"))
        .collect();
    snapshot!(s.runs(&calls.iter().map(String::as_str).collect::<Vec<_>>()));
    // Nothing is half written.
    assert!(!s.path().join("z.npy").exists());
}

#[test]
fn mistakes_of_calls() {
    let s = sandbox();
    s.array("short.npy", DType::F16, &[2047]);
    s.file("no.toml", "[org]\n");
    snapshot!(s.runs(&[
        "sim add.pim",
        "sim add.pim --in x=x.npy",
        "sim add.pim.txt --in x=short.npy --in y=y.npy",
        "sim add.pim --in x=short.npy --in y=y.npy",
        &format!("sim add.pim {ARRAYS} --in x=x.npy"),
        &format!("sim add.pim {ARRAYS} --in w=x.npy"),
        &format!("sim add.pim {ARRAYS} --out x=z.npy"),
        &format!("sim add.pim {ARRAYS} --out zz=z.npy"),
        &format!("sim add.pim {ARRAYS} --out z=none/z.npy"),
        &format!("sim add.pim {ARRAYS} --config hbm2_200"),
        &format!("sim add.pim {ARRAYS} --config no.toml"),
        "sim",
    ]));
    assert!(!s.path().join("z.npy").exists());
}

/// Damaged binary streams are told, or are other streams; nothing panics.
#[test]
fn damaged_streams() {
    let s = sandbox();
    let binary = fs::read(s.path().join("add.pim")).unwrap();
    for n in (0..8).chain((8..binary.len()).step_by(37)) {
        let mut bytes = binary.clone();
        bytes[n] ^= 1 << (n % 8);
        s.file("damaged.pim", bytes);
        let said = s.run(&format!("sim damaged.pim {ARRAYS}"));
        assert!(said.contains("exit 0") || said.contains("exit 1"), "{n}: {said}");
        assert!(!said.contains("panicked"), "{n}: {said}");
    }
}

/// A launch of no blocks, or of blocks that store nothing, leaves zeros to those that read its array.
#[test]
fn launches_that_store_nothing() {
    let s = Sandbox::new();
    s.file(
        "nothing.tile",
        "\
// run: p pim,interp target=hbm-pim N=40
// run: p pim,interp target=hbm-pim N=0
// run: q pim,interp target=hbm-pim N=0
// run: q pim,interp target=hbm-pim N=40
kernel maybe(a: in f16[N], c: out f16[N], m: i32 = 0) {
    grid (i in tiles(N, 16));
    if m > 0 { TSTORE(c.tile(i), Vec(a.tile(i)) * 2.0); }
}
kernel twice(a: in f16[N], c: out f16[N]) {
    grid (i in tiles(N, 16));
    TSTORE(c.tile(i), Vec(a.tile(i)) * 2.0);
}
#[on(host)]
kernel more(a: in f16[N], c: out f16[N]) {
    for i in 0..N { c[i] = a[i] * 2.0; }
}
program p(a: in f16[N], y: out f16[N]) {
    let t = tensor f16[N];
    maybe(a, t);
    twice(t, y);
}
program q(a: in f16[N], y: out f16[N]) {
    let t = tensor f16[N];
    twice(a, t);
    more(t, y);
}
program r(a: in f16[N], y: out f16[N], z: out f16[N]) {
    maybe(a, y);
    twice(y, z);
}
",
    );
    let said = s.run("test nothing.tile");
    assert!(said.contains("exit 0"), "{said}");
}

/// What a launch does not store of an array stays as it was: a first value, what another launch stored there, or zeros.
#[test]
fn launches_that_store_in_part() {
    let s = Sandbox::new();
    s.file(
        "part.tile",
        "\
// run: alone pim,interp target=hbm-pim N=300
// run: filled pim,interp target=hbm-pim N=300
// run: over pim,interp target=hbm-pim N=300
// run: over_host pim,interp target=hbm-pim N=300
// run: host_over pim,interp target=hbm-pim N=300
// run: temps pim,interp target=hbm-pim N=300
// run: rows pim,interp target=hbm-pim M=6 N=40
kernel some(a: in f16[N], c: out f16[N]) {
    grid (i in tiles(N, 16));
    if i.start >= 128 { TSTORE(c.tile(i), Vec(a.tile(i)) * 2.0); }
}
kernel all(a: in f16[N], c: out f16[N]) {
    grid (i in tiles(N, 16));
    TSTORE(c.tile(i), Vec(a.tile(i)) + 1.0);
}
kernel odd(a: in f16[M, N], c: out f16[M, N]) {
    grid (i in tiles(M, 1), j in tiles(N, 16));
    if i.start % 2 == 1 { TSTORE(c.tile(i, j), Vec(a.tile(i, j)) * 3.0); }
}
#[on(host)]
kernel host_some(a: in f16[N], c: out f16[N]) {
    for i in 0..N { if i % 3 == 0 { c[i] = a[i] * 4.0; } }
}
program alone(a: in f16[N], y: out f16[N], z: out f16[N]) {
    some(a, y);
    all(y, z);
}
program filled(a: in f16[N], y: out f16[N]) {
    let t = tensor f16[N] fill 3.0;
    some(a, t);
    all(t, y);
}
program over(a: in f16[N], b: in f16[N], y: out f16[N]) {
    all(a, y);
    some(b, y);
}
program over_host(a: in f16[N], b: in f16[N], y: out f16[N]) {
    host_some(a, y);
    some(b, y);
}
program host_over(a: in f16[N], b: in f16[N], y: out f16[N]) {
    all(a, y);
    host_some(b, y);
}
program temps(a: in f16[N], b: in f16[N], y: out f16[N], z: out f16[N]) {
    let t = tensor f16[N];
    all(a, t);
    all(t, y);
    let u = tensor f16[N];
    some(b, u);
    all(u, z);
}
program rows(a: in f16[M, N], y: out f16[M, N]) {
    odd(a, y);
}
",
    );
    let said = s.run("test part.tile");
    assert!(said.contains("exit 0"), "{said}");
    // The stream says so, and reads back.
    let said = s.run("emit part.tile alone --target hbm-pim -D N=300 --stage pim");
    assert!(said.contains("tensor y f16[300] out fill 0x0\n") && said.contains("write y at"), "{said}");
    let said = s.run("emit part.tile over --target hbm-pim -D N=300 --stage pim");
    assert!(said.contains("tensor y f16[300] out\n") && !said.contains("write y at"), "{said}");
}

/// Blocks may leave the end of an array alone, whatever they read or store of it: it has its place behind theirs.
#[test]
fn arrays_that_blocks_do_not_fill() {
    let s = Sandbox::new();
    let mut text = String::new();
    for (n, h, b) in [(1000, 256, 64), (513, 16, 16), (4097, 4096, 16), (300, 37, 16), (5000, 129, 32), (70, 70, 64)] {
        text += &format!("// run: head pim,interp target=hbm-pim N={n} H={h} B={b}\n");
        text += &format!("// run: again pim,interp target=hbm-pim N={n} H={h} B={b}\n");
    }
    for k in [1, 2, 8, 16, 32, 40] {
        text += &format!("// run: rows pim,interp target=hbm-pim M=40 K={k}\n");
    }
    text += "\
kernel head<const H = 16, const B = 16>(x: in f16[N], c: out f16[H]) where N >= H {
    grid (i in tiles(H, B));
    TSTORE(c.tile(i), Vec(x.tile(i)) * 2.0);
}
kernel first<const B = 16>(x: in f16[N], c: out f16[N]) {
    grid (i in tiles(N, B));
    TSTORE(c.tile(i), Vec(x.tile(i)) + 1.0);
}
kernel some<const K = 1>(a: in f16[M, 16], c: inout f16[M, 16]) where M >= K {
    grid (i in 0..K);
    TSTORE(c[i, _], Vec(a[i, _]) * 2.0);
}
program again<const H = 16, const B = 16>(x: in f16[N], c: out f16[H]) where N >= H {
    let t = tensor f16[N];
    first<B = B>(x, t);
    head<H = H, B = B>(t, c);
}
program rows<const K = 1>(a: in f16[M, 16], c: inout f16[M, 16]) where M >= K {
    some<K = K>(a, c);
}
";
    s.file("head.tile", &text);
    let said = s.run("test head.tile");
    assert!(said.contains("exit 0"), "{said}");
}

/// What is emitted is what runs: an array that nothing stores has a first value.
#[test]
fn results_that_nothing_stores() {
    let s = Sandbox::new();
    let text = "\
kernel k(a: in f16[8, 16], c: out f16[8, 16], d: out f16[8, 16]) {
    grid (i in 0..8);
    TSTORE(c[i, _], Vec(a[i, _]) * 2.0);
    if i >= 8 { TSTORE(d[i, _], Vec(a[i, _])); }
}
";
    s.file("none.tile", text);
    let emitted = s.run("emit none.tile k --target hbm-pim --stage pim -o none.pim");
    assert!(emitted.contains("exit 0"), "{emitted}");
    s.file("a.npy", npy::write(&random(DType::F16, &[8, 16], 1, "a").unwrap()));
    let said = s.run("sim none.pim --in a=a.npy --out c=c.npy --out d=d.npy");
    assert!(said.contains("exit 0"), "{said}");
    let [c, d] = ["c.npy", "d.npy"].map(|n| s.read(n));
    s.run("run none.tile k --target hbm-pim --in a=a.npy --out c=c2.npy --out d=d2.npy");
    assert_eq!([c, d], ["c2.npy", "d2.npy"].map(|n| s.read(n)));
}

/// What is no stream is told as what it is.
#[test]
fn files_that_are_no_streams() {
    let s = sandbox();
    let binary = fs::read(s.path().join("add.pim")).unwrap();
    for (name, at) in [("first", 0), ("third", 2)] {
        let mut bytes = binary.clone();
        bytes[at] ^= 0x40;
        s.file(&format!("{name}.pim"), bytes);
    }
    s.file("unix.pim", [&binary[..7], b"\r\n", &binary[8..]].concat());
    s.file("picture.pim", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    s.file("double.tile", DOUBLE);
    s.file("notes.txt", "# what to do\n\nadd the arrays\n");
    let files = ["first.pim", "third.pim", "unix.pim", "picture.pim", "x.npy", "double.tile", "notes.txt"];
    let calls = files.map(|name| format!("sim {name} {ARRAYS}"));
    snapshot!(s.runs(&calls.each_ref().map(String::as_str)));
}

/// Devices on which no stream ends, or that have other bursts: the place is that of the device's parameters, whoever
/// gives them.
#[test]
fn devices_that_do_not_do() {
    let s = sandbox();
    let text = fs::read_to_string(s.path().join("add.pim.txt")).unwrap().replace("refresh=off", "refresh=all");
    s.file("all.txt", &text);
    s.file("all.pim", Stream::parse(&text).unwrap().stream.encode().unwrap());
    let preset = ptoc_pim_sim::dram::presets::PRESETS[0].text;
    let line = preset.lines().find(|l| l.trim_start().starts_with("nREFI ")).expect("a line");
    s.file("often.toml", preset.replace(line, "nREFI = 100"));
    let line = preset.lines().find(|l| l.trim_start().starts_with("channel_width")).expect("a line");
    s.file("geo.txt", format!("{GEO}{GEO_STEPS}").replace("hbm2_2000", "hbm2_2000 refresh=all nREFI=270 nRFC=260"));
    let arrays = geo_arrays(&s);
    s.file("wide.toml", preset.replace(line, "channel_width = 128"));
    snapshot!(s.runs(&[
        &format!("sim all.txt {ARRAYS} --config often.toml"),
        &format!("sim all.pim {ARRAYS} --config often.toml"),
        &format!("sim all.pim {ARRAYS} --config wide.toml"),
        &format!("sim geo.txt {arrays}"),
    ]));
}

/// Three queries on two units.
const GEO: &str = "pim-stream 1\ndevice hbm2_2000 channel=1\nunit geopim spread=0\nfile \"sample.tile\"\n\
                   tensor feat f16[2, 2, 16] in\ntensor geo f16[3, 4] in\ntensor attn f16[3, 16] in\n\
                   tensor y f16[3, 16] out\n";
const GEO_STEPS: &str = "write feat at (2,2,16):(2@col,1@col,2@byte) row=1 replicated from 1:1\n\
                         write attn at ((2,2),16):((1@col,1@unit),2@byte) row=5 from 1:2\n\
                         descriptor feature=0x400 height=2 width=2 channels=16 tile_channels=16 batch=1 border=clamp \
                         fold=1 order=neighbour first_unit=0 units=2 queries=2 map=patches from 1:3\n\
                         params geo address=0x1800 samples=16 weights=0x1400 weight_stride=32 from 1:3\n\
                         driver load params=0x1800 weights=0x1400 from 1:3\n\
                         driver execute queries=2 samples=16 output=0x1c00 from 1:3\n\
                         driver read output=0x1c00 from 1:3\n\
                         read y at ((2,2),16):((1@col,1@unit),2@byte) row=7 from 1:4\n";

fn geo_arrays(s: &Sandbox) -> String {
    let arrays = [("feat", &[2usize, 2, 16][..]), ("geo", &[3, 4]), ("attn", &[3, 16])];
    let flag = |(name, shape): (&str, &[usize])| {
        s.array(&format!("{name}.npy"), DType::F16, shape);
        format!("--in {name}={name}.npy")
    };
    arrays.map(flag).join(" ")
}

/// Commands of the driver that contradict each other, and units in whose banks nobody wrote.
#[test]
fn mistakes_of_geopim() {
    let s = Sandbox::new();
    let arrays = geo_arrays(&s);
    let text = format!("{GEO}{GEO_STEPS}");
    s.file("right.txt", &text);
    let said = s.run(&format!("sim right.txt {arrays}"));
    assert!(said.contains("exit 0") && !said.contains("stderr"), "{said}");
    let cases = [
        ("samples", "execute queries=2 samples=16", "execute queries=2 samples=17"),
        ("weights", "driver execute", "driver execute weights=0x1420"),
        ("load", "load params=0x1800 weights=0x1400", "load params=0x1800 weights=0x1420"),
        ("read", "driver read", "driver read queries=3"),
        ("output", "driver load", "driver load output=0x1c00"),
        ("unit", "first_unit=0", "first_unit=1"),
        ("far", "first_unit=0", "first_unit=9"),
        ("stride", "write attn at ((2,2),16):((1@col,1@unit)", "write attn at ((2,2),16):((1@col,2@unit)"),
        ("result", "read y at ((2,2),16):((1@col,1@unit)", "read y at ((2,2),16):((1@col,2@unit)"),
    ];
    for (name, from, to) in cases {
        assert!(text.contains(from), "{name}");
        s.file(&format!("{name}.txt"), text.replace(from, to));
    }
    let calls = cases.map(|(name, ..)| format!("sim {name}.txt {arrays}"));
    snapshot!(s.runs(&calls.each_ref().map(String::as_str)));
}

/// Lines of the report have a file and a number.
#[test]
fn lines_in_json() {
    let s = sandbox();
    let said = s.run(&format!("sim add.pim {ARRAYS} --json"));
    let json: Value = serde_json::from_str(said.split("stdout\n").nth(1).unwrap()).unwrap();
    let lines: Vec<(&Value, &Value)> =
        json["lines"].as_array().unwrap().iter().map(|l| (&l["file"], &l["line"])).collect();
    assert!(lines.contains(&(&Value::from("add.tile"), &Value::from(5))), "{lines:?}");
    assert!(lines.iter().all(|(file, line)| file.is_null() == line.is_null()), "{lines:?}");
}

/// An array that no step reads would come out as zeros: told, with its line.
#[test]
fn arrays_that_nobody_reads() {
    let s = sandbox();
    let text = fs::read_to_string(s.path().join("add.pim.txt")).unwrap();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("read z"), "{last}");
    s.file("unread.txt", text.replace(last, ""));
    snapshot!(s.runs(&[&format!("sim unread.txt {ARRAYS} --out z=z.npy")]));
    assert!(!s.path().join("z.npy").exists());
}

const SAMPLE: &str = "kernel sample<const C = 32, const FOLD = true>(feat: in f16[B, H, W, C], geo: in f16[B, Q, 4], \
                      attn: in f16[B, Q, S], y: out f16[B, Q, C])\n{\n    \
                      grid (b in 0..B, q in tiles(Q, 2)) on (B, ceil_div(Q, 2)) : (ceil_div(Q, 2)@unit, 1@unit);\n    \
                      for i in q {\n        let acc = tile Vec<f32, 1, C>;\n        \
                      TSAMPLE(acc, feat[b, _, _, _], geo[b, i, _], attn[b, i, _], fold = FOLD, border = \
                      Clamp);\n        \
                      TSTORE(y[b, i, _], f16(acc));\n    }\n}\n";

/// What is no number has the same bits on both backends; no queries and no items are nothing to do.
#[test]
fn samples_that_are_no_numbers_and_no_samples() {
    let s = Sandbox::new();
    s.file("sample.tile", SAMPLE);
    let feat =
        ptoc_tensor::Tensor::from_fn(DType::F16, &[1, 4, 4, 32], |i| [0x3c00, 0x7c00, 0xfc00, 0x7e00, 0xfe01][i % 5]);
    s.file("feat.npy", npy::write(&feat.unwrap()));
    for fold in ["true", "false"] {
        for backend in ["pim", "interp"] {
            let said = s.run(&format!(
                "run sample.tile --target geopim -D Q=3 -D S=5 -D FOLD={fold} --in feat=feat.npy --random 1 --backend \
                 {backend} --out y={backend}.npy"
            ));
            assert!(said.contains("exit 0"), "{said}");
        }
        assert!(
            fs::read(s.path().join("pim.npy")).unwrap() == fs::read(s.path().join("interp.npy")).unwrap(),
            "{fold}"
        );
    }
    for sizes in ["-D B=1 -D Q=0", "-D B=0 -D Q=3"] {
        let said =
            s.run(&format!("run sample.tile --target geopim {sizes} -D H=4 -D W=4 -D S=5 --random 1 --backend pim"));
        assert!(said.contains("exit 0") && said.contains("(empty)"), "{said}");
    }
}

const DOUBLE: &str = "kernel double(a: in f16[N], c: out f16[N])\n{\n    grid (i in tiles(N, 256));\n    \
                      let x = Vec(a.tile(i));\n    \
                      TSTORE(c.tile(i), x + x);\n}\n";

/// What `emit` writes, in either form, `sim` executes: the same results and the same time as `run`.
#[test]
fn emitted_streams_are_executed() {
    let s = Sandbox::new();
    s.file("double.tile", DOUBLE);
    let values = random(DType::F16, &[1000], 1, "a").unwrap();
    s.file("a.npy", npy::write(&values));
    let json = |said: String| -> Value { serde_json::from_str(said.split("stdout\n").nth(1).unwrap()).unwrap() };
    let ran = json(s.run("run double.tile --target hbm-pim --in a=a.npy --out c=c.npy --json"));
    for file in ["double.pim", "double.txt"] {
        s.run(&format!("emit double.tile --target hbm-pim -D N=1000 --stage pim -o {file}"));
        let simulated = json(s.run(&format!("sim {file} --in a=a.npy --out c=d.npy --json")));
        assert!(fs::read(s.path().join("c.npy")).unwrap() == fs::read(s.path().join("d.npy")).unwrap(), "{file}");
        assert_eq!(simulated["cycles"], ran["stats"]["cycles"], "{file}");
    }
}

/// What is to be saved is what the stream or the kernel takes.
#[test]
fn arrays_of_other_types() {
    let s = Sandbox::new();
    s.file("double.tile", DOUBLE);
    s.run("emit double.tile --target hbm-pim -D N=1000 --stage pim -o double.pim");
    let integers = npy::write(&random(DType::I64, &[1000], 1, "a").unwrap());
    let at = integers.windows(3).position(|w| w == b"<i8").unwrap();
    s.file("doubles.npy", [&integers[..at], b"<f8", &integers[at + 3..]].concat());
    s.file("singles.npy", npy::write(&random(DType::F32, &[1000], 1, "a").unwrap()));
    s.file("short.npy", npy::write(&random(DType::F16, &[999], 1, "a").unwrap()));
    for (words, code, says) in [
        ("run double.tile --target hbm-pim --in a=doubles.npy", "E0705", "save `x.astype(np.float16)` instead"),
        ("sim double.pim --in a=doubles.npy", "E0705", "save `x.astype(np.float16)` instead"),
        ("sim double.pim --in a=singles.npy", "E1220", "convert it: `np.save(\"singles.npy\", x.astype(np.float16))`"),
        ("sim double.pim --in a=short.npy", "E1220", "save an array of that shape"),
    ] {
        let said = s.run(words);
        assert!(said.contains("exit 1") && said.contains(code) && said.contains(says), "{said}");
    }
}

/// A repeated command ends with its row.
#[test]
fn commands_beyond_the_row() {
    let s = sandbox();
    let text = fs::read_to_string(s.path().join("add.pim.txt")).unwrap();
    let line = text.lines().find(|l| l.trim_start().starts_with("rd ")).unwrap();
    s.file("long.txt", text.replacen(line, "rd 0 0 16 28 x8", 1));
    let said = s.run(&format!("sim long.txt {ARRAYS}"));
    assert!(said.contains("E1204") && said.contains("x8 from column 28 passes the end of the row"), "{said}");
    assert!(said.contains("write at most `x4`") && !said.contains("further part"), "{said}");
}

/// A launch that units cannot hold is refused before anybody makes arrays for it, which these would not fit either.
#[test]
fn refused_before_arrays_are_made() {
    let s = Sandbox::new();
    s.file("double.tile", DOUBLE);
    let said = s.run("run double.tile --target hbm-pim -D N=1099511627776 --random 1");
    assert!(said.contains("exit 1") && said.contains("E1319"), "{said}");
}

/// Cycles are clocks of the DRAM, also where commands can begin at half of one.
#[test]
fn cycles_are_clocks() {
    let s = sandbox();
    for (preset, clock_ns, ticks_of_clock) in [("hbm2_2000", 1.0, 1.0), ("hbm3_6400", 0.625, 2.0)] {
        let said = s.run(&format!("sim add.pim {ARRAYS} --json --config {preset}"));
        let json: Value = serde_json::from_str(said.split("stdout\n").nth(1).unwrap()).unwrap();
        let [cycles, ticks, ns] = ["cycles", "ticks", "ns"].map(|name| json[name].as_f64().unwrap());
        assert!((cycles * clock_ns - ns).abs() < 1e-6, "{preset}: {cycles} cycles, {ns} ns");
        assert_eq!(cycles * ticks_of_clock, ticks, "{preset}");
        let kinds: f64 = json["kinds"].as_object().unwrap().values().map(|k| k["cycles"].as_f64().unwrap()).sum();
        assert_eq!(kinds, cycles, "{preset}: {said}");
        let host = &json["host_baseline"]["streaming"];
        assert_eq!(host["cycles"].as_f64().unwrap() * ticks_of_clock, host["ticks"].as_f64().unwrap(), "{preset}");
        let text = s.run(&format!("sim add.pim {ARRAYS} --stats --config {preset}"));
        assert!(text.contains(&format!("{cycles} cycles")) && text.contains("commands step them every"), "{text}");
    }
}

/// Streams that run and do not mean what they say: rows that nobody wrote, and commands that a controller may exchange.
#[test]
fn warnings() {
    let s = sandbox();
    let text = fs::read_to_string(s.path().join("add.pim.txt")).unwrap();
    let without = |prefix: &str| -> String {
        text.lines().filter(|l| !l.trim_start().starts_with(prefix)).map(|l| format!("{l}\n")).collect()
    };
    s.file("fences.txt", without("fence"));
    s.file(
        "elsewhere.txt",
        text.lines()
            .map(|l| match l.strip_prefix("read z") {
                Some(_) => format!("{}\n", l.replace("row=48", "row=49")),
                None => format!("{l}\n"),
            })
            .collect::<String>(),
    );
    let said = s.run(&format!("sim fences.txt {ARRAYS}"));
    assert!(said.contains("exit 0") && said.matches("warning[W1209]").count() == 1, "{said}");
    let said = s.run(&format!("sim elsewhere.txt {ARRAYS}"));
    assert!(said.contains("exit 0") && said.contains("warning[W1210]: this step reads `z` in row 49"), "{said}");
}
