//! Each mistake by itself, in the text form.

use super::*;

const G: Geometry = Geometry { channel: 1, pch: 2, bg: 4, bank: 4, row: 16384, col: 32, burst: 32 };

const HBM: &str = "pim-stream 1\ndevice hbm2_samsung_pim\nunit hbm-pim\nfile \"k.tile\"\n\
                   tensor a f16[64] in\ntensor t f16[64] temp\ntensor y f16[64] out\ntensor w f32[4, 2] in\n";
const GEO: &str = "pim-stream 1\ndevice hbm2_2000\nunit geopim\n\
                   tensor geo f16[2, 6, 4] in\ntensor w f32[4] in\ntensor y f16[64] out\n";
const DESCRIPTOR: &str = "descriptor feature=0x0 height=8 width=8 channels=128 tile_channels=16 batch=2 border=clamp \
                          fold=1 order=neighbour first_unit=0 units=4 queries=4 map=patches\n";
const PARAMS: &str = "params geo address=0x100000 samples=16 weights=0x110000 weight_stride=32\n";
const LOAD: &str = "driver load params=0x100000 weights=0x110000\n";
const EXECUTE: &str = "driver execute queries=4 samples=16 output=0x120000\n";
const LINE: &str = "((16,4)):((2@byte,1@col))";
/// To all-bank mode, then to computing.
const ENTER: &str = "wr 0 0 0x17ff 31 0x00\nwr 1 0 0x17ff 31 0x00\nwr 2 0 0x17ff 31 0x00\nwr 3 0 0x17ff 31 0x00\n";
const COMPUTE: &str = "wr 0 0 0x3fff 0 0x01\n";

fn faults(head: &str, body: &str) -> Vec<String> {
    let stream = Stream::parse(&format!("{head}{body}")).unwrap_or_else(|e| panic!("{e}\n{body}")).stream;
    stream.check(&G).iter().map(|f| format!("{:?} {f}", f.kind)).collect()
}

#[track_caller]
fn one(head: &str, body: &str, wanted: &str) {
    let found = faults(head, body);
    assert!(found.len() == 1 && found[0].contains(wanted), "{found:#?}");
}

#[test]
fn host_steps() {
    let ok = format!(
        "write a at {LINE} row=3 from 1:2\nmove a at {LINE} row=3 -> {LINE} row=4\n\
                      relayout a at {LINE} -> t at {LINE} row=9 by (4:1:16, 16:4:1)\nread y at {LINE}\n\
                      write y at {LINE}\n"
    );
    assert_eq!(faults(HBM, &ok), Vec::<String>::new());
    one(HBM, &format!("write y at {LINE}"), "Order step 0: the host has no values of `y` before it is read");
    one(HBM, &format!("write t at {LINE}"), "the host has no values of `t` before it is read");
    let between = format!(
        "read t at {LINE}\nhost k (a, t) -> (t, y) from 1:3\nwrite y at {LINE}\nlaunch k\nwrite t at {LINE} row=2"
    );
    assert_eq!(faults(HBM, &between), Vec::<String>::new());
    one(HBM, "host k (a) -> (a)", "`a` is in: nothing changes it");
    one(HBM, "host k (y) -> ()", "the host has no values of `y`");
    one(HBM, "host k () -> (y, t, y)", "`y` is named twice");
    one(HBM, &format!("read a at {LINE}"), "`a` is in: the host does not take it");
    one(HBM, &format!("write a at {LINE} row=16384"), "Place step 0: `a`: row 16384 is not below 16384");
    one(HBM, &format!("write a at {LINE} from 2:1"), "there is no file 2");
    one(HBM, &format!("relayout a at {LINE} -> w at (4,2):(4@byte,1@row) by (4:1:1)"), "`a` is f16 and `w` f32");
    one(HBM, &format!("relayout a at {LINE} -> t at {LINE} by (4:1:1, 17:4:1)"), "element 67 of `a`, which has 64");
    let relayout = |by: &str| format!("relayout a at {LINE} -> t at {LINE} row=9 by {by}");
    assert_eq!(faults(HBM, &relayout("(8:2:4, 4:0:1) start 48:32")), Vec::<String>::new());
    one(HBM, &relayout("(8:2:4, 4:0:1) start 50:32"), "element 64 of `a`, which has 64");
    one(HBM, &relayout("(8:2:4, 4:0:1) start 48:33"), "element 64 of `t`, which has 64");
    one(HBM, &format!("read y at {LINE} replicated"), "read from one bank");
}

#[test]
fn column_commands() {
    let good = format!(
        "exec 0.0,0.1 {{\nline 1:7\n{ENTER}wr 0 0 0x3fff 4 crf FILL GRF_A[0], EVEN_BANK; EXIT\n{COMPUTE}\
                        rd 0 0 5 0 x8\nfence\nwr 0 0 6 0 x8 unit\nwr 0 0 0x3fff 0 0x00\n\
                        wr 0 0 0x1fff 31 0x00\nwr 0 1 0x1fff 31 0x00\n}}\nread y at {LINE}"
    );
    assert_eq!(faults(HBM, &good), Vec::<String>::new());
    let exec = |body: &str| format!("exec 0.0 {{\n{body}\n}}");
    one(HBM, &exec("rd 4 0 0 0"), "Place step 0, operation 0: bank group 4 is not below 4");
    one(HBM, &exec("rd 0 0 0 30 x3"), "x3 from column 30 passes the end of the row, which has 32 columns");
    one(HBM, &exec("rd 0 0 0 30 x0"), "at least once");
    one(HBM, &exec("wr 0 0 0 0 unit"), "Program step 0, operation 0: no unit drives the banks");
    one(HBM, &exec(&format!("{ENTER}{COMPUTE}wr 0 0 7 0 0x01")), "its data is `unit`");
    one(HBM, &exec(&format!("{ENTER}wr 0 0 0x3fff 4 0x000000a0")), "word 0, 0xa0000000, is no instruction");
    one(HBM, &exec(&format!("{ENTER}wr 0 0 0x3fff 2 0x00")), "column 2 of row 0x3fff is no register");
    one(HBM, &exec(&format!("{ENTER}wr 0 0 0x3fff 0 a+0")), "stand in the stream");
    one(HBM, &exec("wr 0 0 0 0 x4 a+32"), "the last burst begins at byte 128 of `a`, which has 128");
    one(HBM, &exec("wr 0 0 0 0 y+0"), "the host has no values of `y`");
    one(HBM, "exec 0.2 {\n}", "there is no pseudo-channel 0.2");
    one(HBM, "exec 0.1,0.0 {\n}", "0.0 is not after 0.1");
    one(HBM, &format!("{}\nread y at {LINE}", exec(ENTER)), "Order step 1: pseudo-channel 0.0 is in all-bank mode");
    one(GEO, &exec("fence"), "Unit step 0: exec is for units of kind hbm-pim");
}

#[test]
fn commands_of_a_driver() {
    let ok = format!("{DESCRIPTOR}{PARAMS}{LOAD}{EXECUTE}driver read output=0x120000\nread y at (64):(2@byte) ");
    let ok = ok.replace("(64):(2@byte) ", LINE);
    assert_eq!(faults(GEO, &ok), Vec::<String>::new());
    one(GEO, &format!("{DESCRIPTOR}{LOAD}"), "a LOAD comes after params");
    one(GEO, PARAMS, "params come after a descriptor");
    one(GEO, &format!("{DESCRIPTOR}{EXECUTE}"), "an execute before any load");
    one(GEO, "driver read output=0x120000", "a read before any execute");
    one(GEO, &format!("{DESCRIPTOR}{PARAMS}{LOAD}{EXECUTE}read y at {LINE}"), "after the driver's READ");
    one(
        GEO,
        &format!("{DESCRIPTOR}{PARAMS}{LOAD}{EXECUTE}driver read output=0x130000"),
        "no execute wrote to 0x130000",
    );
    one(
        GEO,
        &format!("{DESCRIPTOR}{PARAMS}{LOAD}driver execute queries=5 samples=16 output=0x120000"),
        "5 queries a unit",
    );
    one(GEO, &format!("{DESCRIPTOR}{PARAMS}driver load params=0x1000000 weights=0x110000"), "a bank has 0x1000000");
    one(HBM, LOAD, "for units of kind geopim");
    let wrong = driver::DriverCommand { samples: 1 << 16, ..driver::DriverCommand::new(driver::CommandKind::Execute) };
    let mut stream = Stream::parse(GEO).unwrap().stream;
    stream.steps.push(StreamStep { place: SourceLine::default(), action: Action::Driver(wrong) });
    assert!(stream.check(&G)[0].message.contains("has 16 bits"));
    assert!(stream.encode().is_err());
}

/// What a command repeats is what was said before: the units work by their entries, so another number would be ignored.
#[test]
fn commands_that_contradict_what_was_said() {
    let read = "driver read output=0x120000\n";
    let all = format!("{DESCRIPTOR}{PARAMS}{LOAD}{EXECUTE}{read}");
    let with = |from: &str, to: &str| {
        assert!(all.contains(from), "{from}");
        all.replace(from, to)
    };
    let same = [
        ("load params", "load queries=4 samples=16 params"),
        ("execute queries=4", "execute params=0x100000 weights=0x110000 queries=4"),
        ("driver read", "driver read queries=4 samples=16 params=0x100000 weights=0x110000"),
        ("execute queries=4", "execute queries=3"),
    ];
    for (from, to) in same {
        assert_eq!(faults(GEO, &with(from, to)), Vec::<String>::new());
    }
    for (from, to, said) in [
        (
            "weights=0x110000\ndriver",
            "weights=0x110040\ndriver",
            "LOAD has `weights=0x110040`, and `params` has `weights=0x110000`",
        ),
        (
            "load params=0x100000",
            "load params=0x100020",
            "LOAD has `params=0x100020`, and `params` has `params=0x100000`",
        ),
        ("driver load", "driver load samples=17", "LOAD has `samples=17`, and `params` has `samples=16`"),
        ("driver load", "driver load queries=3", "LOAD has `queries=3`, and the descriptor has `queries=4`"),
        ("driver load", "driver load output=0x120000", "LOAD has `output=0x120000`, and brings nothing back"),
        ("driver load", "driver load offsets=0x130000", "LOAD has `offsets=0x130000`, and `params` has no offsets"),
        ("queries=4 samples=16", "queries=4 samples=17", "EXECUTE has `samples=17`, and `params` has `samples=16`"),
        ("driver execute", "driver execute weights=0x110040", "EXECUTE has `weights=0x110040`, and `params` has"),
        ("driver execute", "driver execute params=0x110040", "EXECUTE has `params=0x110040`, and `params` has"),
        ("driver read", "driver read samples=15", "READ has `samples=15`, and `params` has `samples=16`"),
        ("driver read", "driver read queries=3", "READ has `queries=3`, and its EXECUTE has `queries=4`"),
        ("driver read", "driver read params=0x40", "READ has `params=0x40`, and `params` has `params=0x100000`"),
        ("driver read", "driver read offsets=0x40", "READ has `offsets=0x40`, and `params` has no offsets"),
    ] {
        let step = ["LOAD", "EXECUTE", "READ"].iter().position(|word| said.starts_with(word)).map_or(0, |n| n + 2);
        one(GEO, &with(from, to), &format!("Command step {step}: {said}"));
    }
    // Samples with offsets.
    let all = with("weight_stride=32", "weight_stride=32 offsets=0x118000 offset_stride=64");
    one(GEO, &all, "LOAD has no offsets, and `params` has `offsets=0x118000`");
    let all = all.replace("weights=0x110000\ndriver", "weights=0x110000 offsets=0x118000\ndriver");
    one(GEO, &all, "EXECUTE has no offsets, and `params` has `offsets=0x118000`");
    let all = all.replace("driver execute", "driver execute offsets=0x118000");
    assert_eq!(faults(GEO, &all), Vec::<String>::new());
    one(GEO, &all.replace("execute offsets=0x118000", "execute offsets=0x118040"), "EXECUTE has `offsets=0x118040`");
    // Entries that nobody loaded.
    let late = format!("{DESCRIPTOR}{PARAMS}{LOAD}{PARAMS}{EXECUTE}");
    one(GEO, &late, "Order step 4: these params came after the last LOAD");
}

#[test]
fn budgets_of_a_unit() {
    let with = |from: &str, to: &str| DESCRIPTOR.replace(from, to);
    one(GEO, &with("channels=128", "channels=256"), "Unit step 0: order=neighbour needs 256 accumulators");
    one(GEO, &with("tile_channels=16", "tile_channels=32"), "takes 256 bytes; half of the tile buffer has 128");
    let three = GEO.replace("unit geopim", "unit geopim lanes=3");
    one(&three, DESCRIPTOR, "Unit step 0: 3 lanes do not divide a tile of 16 channels");
    let few = GEO.replace("unit geopim", "unit geopim acc_regs=16");
    one(&few, DESCRIPTOR, "needs 128 accumulators, because all channels live until the query ends; the unit has 16");
    let outer = with("order=neighbour", "order=outer").replace("tile_channels=16", "tile_channels=8");
    assert_eq!(faults(&few, &outer), Vec::<String>::new());
    one(GEO, &with("fold=1", "fold=0"), "order=neighbour needs fold=1");
    one(GEO, &with("height=8", "height=7"), "no whole 2 x 2 patches");
    one(GEO, &with("feature=0x0", "feature=0x20"), "no multiple of 1024");
    one(GEO, &with("units=4", "units=3"), "cannot be shared by 2");
    one(GEO, &with("first_unit=0", "first_unit=30"), "unit 33 does not exist; there are 32");
    one(GEO, &with("height=8", "height=0"), "height is 0");
    one(
        GEO,
        &format!("{}{PARAMS}", with("queries=4", "queries=2")),
        "12 queries in 2 batch items, 2 a unit, take 6 units",
    );
    one(GEO, &format!("{DESCRIPTOR}{}", PARAMS.replace("params geo", "params w")), "`w` has to be f16");
    one(&GEO.replace("unit geopim", "unit geopim buffers=3"), "", "Unit units: buffers is 3; it may be 1 to 2");
}

#[test]
fn arrays() {
    one(&format!("{HBM}tensor z f32[65536, 65536] in\n"), "", "Array array 4: `z` is too large");
    one(&HBM.replace("tensor t f16[64]", "tensor t f16[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,64]"), "", "more than 16");
}

/// One mistake is one error: what would follow from it is not told.
#[test]
fn one_mistake_is_one_error() {
    let sum = include_str!("../../../../tests/pim/add.pim.txt");
    let mistakes = [
        ("file \"add.tile\"\n", "", "there is no file 1"),
        ("  wr 0 0 0x17ff 31 0x00", "  wr 0 7 0x17ff 31 0x00", "bank 7 is not below 4"),
        ("  wr 0 0 0x17ff 31 0x00", "", "no unit drives"),
        ("  wr 0 0 0x3fff 0 0x01", "  wr 0 0 0x3fff 77 0x01", "column 77"),
        ("  wr 0 0 0x3fff 0 0x00", "  wr 9 0 0x3fff 0 0x00", "bank group 9"),
        ("  wr 0 0 0x1fff 31 0x00", "", "all-bank mode"),
    ];
    for (from, to, said) in mistakes {
        assert!(sum.contains(from), "{from}");
        let stream = Stream::parse(&sum.replacen(from, to, 1)).unwrap().stream;
        let faults = stream.check(&G);
        assert_eq!(faults.len(), 1, "{from}: {faults:?}");
        assert!(faults[0].message.contains(said), "{}", faults[0].message);
    }
    let geo = "pim-stream 1\ndevice hbm2_2000\nunit geopim\ntensor g f16[1, 6, 4] in\ntensor y f16[1, 6, 32] out\n\
               descriptor feature=0x400 height=4 width=4 channels=32 tile_channels=16 batch=1 border=clamp fold=1 \
               order=neighbour first_unit=0 units=1 queries=6 map=patches\n\
               params g address=0x1400 samples=8 weights=0x1800 weight_stride=32\n\
               driver load params=0x1400 weights=0x1800\ndriver execute queries=6 samples=8 output=0x1c00\n\
               driver read output=0x1c00\nread y at (1,6,(16,2)):(1@unit,2@col,(2@byte,1@col)) row=7\n";
    assert_eq!(Stream::parse(geo).unwrap().stream.check(&G), []);
    for (from, to) in [
        ("height=4", "height=5"),
        ("channels=32", "channels=33"),
        ("g f16[1, 6, 4]", "g f16[1, 6, 5]"),
        ("weight_stride=32", "weight_stride=33"),
        ("params g", "# params g"),
        ("driver load", "# driver load"),
        ("descriptor", "# descriptor"),
    ] {
        let faults = Stream::parse(&geo.replacen(from, to, 1)).unwrap().stream.check(&G);
        assert_eq!(faults.len(), 1, "{from}: {faults:?}");
        assert!(!faults[0].message.is_empty());
    }
}

/// An `out` array that no step gives to the host.
#[test]
fn arrays_that_nobody_reads() {
    let text = "pim-stream 1\ndevice hbm2_2000\nunit none\ntensor a f16[16] in\ntensor b f16[16] out\n\
                tensor c f16[0] out\n\
                tensor d f16[16] out\nwrite a at (16):(2@byte)\nmove b at (16):(2@byte) -> (16):(2@byte) row=2\n\
                read d at (16):(2@byte)\n";
    assert_eq!(Stream::parse(text).unwrap().stream.unread(), [1]);
}

/// Steps in a row that was left, another bank or direction, and registers behind steps: each wants a fence before it.
#[test]
fn commands_that_may_be_exchanged() {
    let missing = |body: &str| {
        let text = format!("{HBM}exec 0.0 {{\n{ENTER}{COMPUTE}fence\n{body}\n}}\n");
        let stream = Stream::parse(&text).unwrap_or_else(|e| panic!("{e}")).stream;
        stream.unordered(&G).first().map(|u| (u.op, u.count))
    };
    // Four writes to modes, one to the configuration, a fence.
    assert_eq!(missing("rd 0 0 5 0 x8\nrd 0 0 5 8 x24\nline 1:2\nrd 0 0 5 0"), None);
    assert_eq!(
        missing("rd 0 0 5 0\nfence\nwr 0 0 5 0 unit\nfence\nwr 0 0 0x3fff 8 x8 a+0\nwr 0 0 0x3fff 1 0x00"),
        None
    );
    // Row after row of a bank, but not back to one.
    assert_eq!(missing("rd 0 0 5 0\nrd 0 0 6 0\nrd 0 0 4 0\nrd 0 0 4 1"), None);
    assert_eq!(missing("rd 0 0 5 0\nrd 0 0 6 0\nrd 0 0 5 0\nrd 0 0 6 0"), Some((8, 1)));
    assert_eq!(missing("rd 0 0 5 0\nfence\nrd 0 0 6 0\nrd 0 0 5 0"), None);
    assert_eq!(missing("rd 0 0 5 0\nrd 0 0 6 0\nrd 0 1 6 0"), Some((8, 1)));
    assert_eq!(missing("rd 0 0 5 0\nline 1:2\nwr 0 0 5 0 unit"), Some((8, 1)));
    assert_eq!(missing("rd 0 0 5 0\nwr 0 0 0x3fff 1 0x00\nrd 0 0 5 0"), Some((7, 2)));
    // Before units compute, the order of data is of no account.
    let data = format!("{HBM}exec 0.0 {{\nrd 0 0 5 0\nwr 0 0 6 0 0x01\n}}\n");
    assert_eq!(Stream::parse(&data).unwrap().stream.unordered(&G), []);
}

/// One mistake of a stream is told once, however many steps follow from it.
#[test]
fn one_fault_a_mistake() {
    let other = format!("{HBM}tensor geo f16[2, 6, 4] in\n");
    one(
        &other,
        &format!("{DESCRIPTOR}{PARAMS}{LOAD}{EXECUTE}driver read output=0x120000"),
        "a descriptor is for units of kind geopim",
    );
    let weak = GEO.replace("unit geopim", "unit geopim acc_regs=0");
    one(&weak, &format!("{DESCRIPTOR}{PARAMS}{LOAD}"), "acc_regs is 0");
    // Where results are read is wrong: the host counts as having them. So do results of a kernel of the host that lacks
    // its inputs.
    let again = format!("write y at {LINE} row=3\n");
    one(HBM, &format!("read y at ((16,4)):((2@byte,1@row)) row=16383\n{again}"), "row 16386 is not below 16384");
    one(HBM, &format!("host k (t) -> (y)\n{again}"), "no values of `t`");
    // An array of another size does not go with any of its placements, nor with the loops over it.
    let longer = HBM.replace("tensor a f16[64]", "tensor a f16[65]");
    let both = format!("write a at {LINE}\nmove a at {LINE} -> {LINE} row=4\n");
    one(&longer, &both, "multiply to 64, the array has 65");
    let loops = |from: u32| format!("relayout a at {LINE} -> t at {LINE} by (16:4:1) start {from}:0\n");
    one(HBM, &format!("{}{}", loops(8), loops(9)), "the loops reach element 68 of `a`, which has 64");
    // Commands beyond one bound, and arrays too; another bound is another mistake.
    let exec = |body: &str| format!("exec 0.0 {{\n{body}\n}}\n");
    let rows = "rd 0 0 16384 0\nrd 0 0 20000 0\n";
    one(
        HBM,
        &format!("write a at ((16,4)):((2@byte,1@col)) row=16384\n{}", exec(rows)),
        "row 16384 is not below 16384",
    );
    let found = faults(HBM, &exec(&format!("{rows}rd 0 4 0 0\nrd 0 5 0 0")));
    assert_eq!(found.len(), 2, "{found:#?}");
}
