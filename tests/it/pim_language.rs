//! Kernels for units in memory on the reference interpreter: the language's own programs, and TSAMPLE against the loops
//! that say what it means.

use crate::engine::command;
use ptoc_driver::backend::INTERP;
use ptoc_driver::defs::Definition;
use ptoc_driver::launch::{CompiledPlan, Plan, RunOptions};
use ptoc_driver::session::{CompilationUnit, Session};
use ptoc_ir::scalar;
use ptoc_ir::tile::text::{Spans, parse, print};
use ptoc_ir::tile::{Coord, Kernel};
use ptoc_tensor::{DType, Tensor};
use ptoc_tests::programs::{Given, arrays_of};
use std::path::{Path, PathBuf};

fn language_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("language").join(name)
}

fn language(name: &str) -> String {
    std::fs::read_to_string(language_path(name)).expect("a program of the language")
}

/// `ptoc test` of the programs.
#[test]
fn test_lines_hold() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_language");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    std::fs::write(folder.join("rearrange.tile"), language("rearrange.tile").replace("// run:", "//"))
        .expect("written");
    for name in ["geo_sample.tile", "hbm_gemv.tile"] {
        let text = language(name);
        assert!(text.contains("  pim,interp  "), "{name} names both backends");
        std::fs::write(folder.join(name), &text).expect("written");
        let file = folder.join(name);
        let outcome = command(&["test".as_ref(), file.as_os_str()]);
        let lines = text.lines().filter(|l| l.starts_with("// run:") || l.starts_with("// check:")).count();
        assert!(outcome.out.contains(&format!("{lines} passed, 0 failed")), "{}{}", outcome.out, outcome.err);
    }
}

/// A kernel of a text, elaborated and run on the interpreter with these arrays.
struct Compiled {
    session: Session,
    plan: Plan,
}

fn compile(text: &str, kernel: &str, target: &str, defs: &[(&str, String)], arrays: &Given) -> Compiled {
    let mut session = session(target, defs);
    let unit = session.load_text(Path::new("tests/language/kernel.tile"), text.to_owned());
    planned(session, &unit, kernel, arrays)
}

fn compile_at(path: &Path, kernel: &str, target: &str, defs: &[(&str, String)]) -> Compiled {
    let mut session = session(target, defs);
    let unit = session.load(path).expect("it can be read");
    planned(session, &unit, kernel, &Given::new())
}

fn session(target: &str, defs: &[(&str, String)]) -> Session {
    let definitions: Vec<Definition> =
        defs.iter().map(|(n, v)| Definition { name: (*n).to_owned(), value: v.clone() }).collect();
    Session::new(target, &definitions).expect("built in")
}

fn planned(mut session: Session, unit: &CompilationUnit, kernel: &str, arrays: &Given) -> Compiled {
    let entry = unit.entry(Some(kernel), "run").expect("it is there");
    let plan = Plan::new(&mut session, unit, &entry, &arrays_of(arrays), true);
    let said: Vec<String> = session.diagnostics.iter().map(|d| d.message.clone()).collect();
    Compiled { session, plan: plan.unwrap_or_else(|_| panic!("{said:?}")) }
}

impl Compiled {
    fn kernel(&self) -> &Kernel {
        &self.plan.steps[0].kernel
    }

    /// The last argument's contents after the run.
    fn run(&mut self, arrays: &Given) -> Tensor {
        let mut arrays = arrays_of(arrays);
        let mut tensors = self.plan.tensors(&mut self.session, &mut arrays, 1).expect("arrays");
        let compiled = CompiledPlan::new(&mut self.session, &self.plan, INTERP).expect("it compiles");
        let done = compiled.run(&mut self.session, &mut tensors, &RunOptions::default(), &mut |_| {}, None);
        let said: Vec<String> = self.session.diagnostics.iter().map(|d| d.message.clone()).collect();
        assert!(done.is_ok(), "{said:?}");
        let at = self.plan.arguments.iter().position(|a| a.name == "y").expect("the result");
        tensors.swap_remove(at)
    }
}

/// Numbers that are mostly near the map, and now and then anything at all.
struct Source(u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn half(&mut self, low: f32, high: f32, wild: u64) -> u64 {
        const EDGES: [u16; 10] = [0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x0001, 0x8000, 0x7bff, 0xfbff, 0x3bff, 0xbc00];
        match self.next() % wild {
            0 => u64::from(EDGES[(self.next() % 10) as usize]),
            1 => self.next() & 0xffff,
            _ => {
                let share = (self.next() % 4096) as f32 / 4096.0;
                scalar::from_f32(DType::F16, low + share * (high - low))
            }
        }
    }

    fn array(&mut self, shape: &[usize], (low, high): (f32, f32), wild: u64) -> Tensor {
        let mut tensor = Tensor::zeros(DType::F16, shape).expect("small");
        for i in 0..tensor.len() {
            tensor.set_bits(i, self.half(low, high, wild));
        }
        tensor
    }
}

/// `geo_sample_loops` with zeros around the map: pixels outside are 0, and so are their products.
fn zero_border(text: &str) -> String {
    let swap = |text: String, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let text = swap(
        text.to_owned(),
        "(clamp(index(fx), -1, W), clamp(index(fy), -1, H))",
        "(clamp(index(fx), -2, W), clamp(index(fy), -2, H))",
    );
    let inside = "y0 + dy >= 0 && y0 + dy < H && x0 + dx >= 0 && x0 + dx < W";
    let text = swap(
        text,
        "acc += f32(w) * f32(Bank(pixel));",
        &format!("if {inside} {{ acc += f32(w) * f32(Bank(pixel)); }} else {{ acc += f32(w) * 0.0; }}"),
    );
    let load = "TLOAD(f[n, _], feat[b, clamp(y0 + dy, 0, H - 1), clamp(x0 + dx, 0, W - 1), _].tile(c));";
    let text = swap(text, load, &format!("if {inside} {{ {load} }} else {{ f[n, _] = 0.0; }}"));
    swap(text, "border = Clamp", "border = Zero")
}

/// Every bit, but for which NaN it is.
fn same(a: &Tensor, b: &Tensor) -> Option<usize> {
    let nan = |bits: u64| scalar::to_f32(DType::F16, bits).is_nan();
    (0..a.len()).find(|&i| {
        let (x, y) = (a.get_bits(i), b.get_bits(i));
        x != y && !(nan(x) && nan(y))
    })
}

#[test]
fn tsample_is_its_loops() {
    let text = language("geo_sample.tile");
    let (b, h, w, c, q, s) = (2, 4, 6, 16, 5, 7);
    let mut finite = 0;
    for border in ["Clamp", "Zero"] {
        let text = if border == "Zero" { zero_border(&text) } else { text.clone() };
        for fold in [true, false] {
            for offsets in [false, true] {
                for seed in 1..=4u64 {
                    let mut random = Source(seed * 7919 + u64::from(fold));
                    // The first round has no wild numbers, so that sums are numbers.
                    let wild = if seed == 1 { u64::MAX } else { 40 };
                    let mut arrays = Given::new();
                    arrays.insert("feat".into(), random.array(&[b, h, w, c], (-2.0, 2.0), wild.saturating_mul(8)));
                    arrays.insert("geo".into(), random.array(&[b, q, 4], (-2.0, 6.0), wild));
                    arrays.insert("attn".into(), random.array(&[b, q, s], (-1.0, 1.0), wild));
                    if offsets {
                        arrays.insert("offs".into(), random.array(&[b, q, s, 2], (-1.0, 1.0), wild));
                    }
                    let defs = [("C", c.to_string()), ("FOLD", fold.to_string())];
                    let run = |kernel: &str| compile(&text, kernel, "geopim", &defs, &arrays).run(&arrays);
                    let (got, want) = (run("geo_sample"), run("geo_sample_loops"));
                    let what = format!("{border} fold={fold} offsets={offsets} seed={seed}");
                    assert_eq!(same(&got, &want), None, "{what}: the first element that differs");
                    finite += (0..got.len()).filter(|&i| got.get_f64(i).is_finite()).count();
                }
            }
        }
    }
    assert!(finite > 2000, "only {finite} sums are numbers: the test looks at nothing");
}

/// Placements are in the kernel, and survive its text.
#[test]
fn placements_are_kept() {
    let none = Given::new();
    let dims = |list: &[(&'static str, i64)]| list.iter().map(|(n, v)| (*n, v.to_string())).collect::<Vec<_>>();
    let geo = dims(&[("B", 2), ("H", 8), ("W", 8), ("C", 128), ("Q", 9), ("S", 16)]);
    let compiled = compile(&language("geo_sample.tile"), "geo_sample", "geopim", &geo, &none);
    let kernel = compiled.kernel();
    let feat = kernel.tensors.values().find(|t| t.name == "feat").expect("an argument");
    let place = feat.place.as_ref().expect("placed");
    assert_eq!(
        place.to_string(),
        "[(2:16@row), (2:16@col, 4:4@row), (2:8@col, 4:1@row), (16:2@byte, 8:1@col)] over unit"
    );
    assert!(kernel.tensors.values().all(|t| t.name == "feat" || t.place.is_none()));
    // ceil(9 / 4) = 3 units for each of the batch.
    assert_eq!(kernel.on.as_ref().map(ToString::to_string).as_deref(), Some("[(2:3@unit), (3:1@unit)]"));
    assert!(!kernel.host && kernel.dims.is_empty(), "every dimension is a number");
    let gemv = dims(&[("N", 256), ("K", 512), ("PCH", 2)]);
    let compiled = compile(&language("hbm_gemv.tile"), "gemv_lanes", "hbm-pim", &gemv, &none);
    let kernel = compiled.kernel();
    let weights = kernel.tensors.values().find(|t| t.name == "W").and_then(|t| t.place.as_ref()).expect("placed");
    // Row 75 of the matrix: 3 of eight, unit 1, pseudo-channel 1; column 300: lane 12, burst 2, chunk 1.
    let at = weights.at(&[75, 300]);
    let names = [Coord::Col, Coord::Bank, Coord::Bg, Coord::Pch, Coord::Row, Coord::Byte].map(|c| at[c as usize]);
    assert_eq!(names, [3 + 2 * 8, 2, 0, 1, 2, 24]);
    for kernel in
        [compiled.kernel(), compile(&language("geo_sample.tile"), "geo_sample", "geopim", &geo, &none).kernel()]
    {
        let text = print(kernel, Spans::Keep);
        let again = parse(&text, ptoc_diagnostics::FileId(9)).unwrap_or_else(|d| panic!("{}\n{text}", d.message));
        assert_eq!(again, *kernel);
    }
    let host = compile(&language("hbm_gemv.tile"), "sum_lanes", "hbm-pim", &dims(&[("N", 256)]), &none);
    assert!(host.kernel().host);
}

/// Given or not, an argument is what the launch makes of it; a program passes what it has.
#[test]
fn absent_arguments() {
    let text = "\
        kernel add(a: in f32[8], b: in f32[8] = none, y: out f32[8]) {\n\
            let x = Vec(a);\n\
            if b != none { TSTORE(y, x + Vec(b)); } else { TSTORE(y, x * 2.0); }\n\
        }\n\
        program twice(a: in f32[8], b: in f32[8], y: out f32[8]) {\n\
            let t = tensor f32[8];\n\
            add(a, none, t);\n\
            add(t, b, y);\n\
        }\n\
        program once(a: in f32[8], b: in f32[8] = none, y: out f32[8]) { add(a, b, y); }\n";
    let array = |x: f32| {
        let mut t = Tensor::zeros(DType::F32, &[8]).expect("small");
        (0..8).for_each(|i| t.set_bits(i, u64::from((x + i as f32).to_bits())));
        t
    };
    let result = |kernel: &str, given: &[(&str, f32)]| {
        let arrays: Given = given.iter().map(|(n, x)| ((*n).to_owned(), array(*x))).collect();
        let y = compile(text, kernel, "a2a3", &[], &arrays).run(&arrays);
        f32::from_bits(y.get_bits(3) as u32)
    };
    assert_eq!(result("add", &[("a", 1.0)]), 8.0);
    assert_eq!(result("add", &[("a", 1.0), ("b", 10.0)]), 17.0);
    assert_eq!(result("twice", &[("a", 1.0), ("b", 10.0)]), 21.0);
    assert_eq!(result("once", &[("a", 1.0)]), 8.0);
    assert_eq!(result("once", &[("a", 1.0), ("b", 10.0)]), 17.0);
}

/// What one launch of a program knows of its tensors, all of them know.
#[test]
fn programs_keep_one_place() {
    let dims = [("B", "1"), ("H", "8"), ("W", "8"), ("C", "128"), ("Q", "8"), ("S", "16")];
    let dims: Vec<(&str, String)> = dims.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
    let compiled = compile_at(&language_path("geo_sample.tile"), "sample", "geopim", &dims);
    let [relayout, sample] = &compiled.plan.steps[..] else { panic!("two launches") };
    let place = |kernel: &Kernel, name: &str| {
        kernel.tensors.values().find(|t| t.name == name).and_then(|t| t.place.as_ref()).map(ToString::to_string)
    };
    assert!(relayout.kernel.host && !sample.kernel.host);
    assert!(place(&relayout.kernel, "y").is_some());
    assert_eq!(place(&relayout.kernel, "y"), place(&sample.kernel, "feat"));
    assert_eq!(compiled.plan.locals[0].place.as_ref().map(ToString::to_string), place(&sample.kernel, "feat"));
    assert_eq!(place(&relayout.kernel, "x"), None);
}
