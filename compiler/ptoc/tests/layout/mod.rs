//! `ptoc layout`: values, tables, pictures, batches, and what is wrong with expressions.

use super::Sandbox;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

impl Sandbox {
    /// Calls with one argument behind `layout`, which may have spaces.
    fn layouts(&self, expressions: &[&str]) -> String {
        let one = |text: &&str| {
            let output = self.command("layout").arg(text).output().unwrap();
            let mut out = format!("$ ptoc layout '{text}'\nexit {}\n", output.status.code().unwrap());
            for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
                let bytes = String::from_utf8(bytes).unwrap();
                if !bytes.is_empty() {
                    let _ = write!(out, "-- {name}\n{bytes}");
                }
            }
            out
        };
        expressions.iter().map(one).collect::<Vec<_>>().join("\n")
    }

    /// Answers to a batch.
    fn batch(&self, input: &[u8]) -> Vec<Value> {
        let mut child = self.command("layout --batch").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let sent = input.to_vec();
        let input = sent.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        let _ = writer.join().unwrap();
        if output.status.code() != Some(0) {
            let answered = output.stdout.iter().filter(|&&b| b == b'\n').count();
            let lines = String::from_utf8_lossy(&sent).lines().skip(answered).take(1).collect::<String>();
            panic!("{:?} after {answered} answers, near {lines}", output.status);
        }
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

macro_rules! snapshot {
    ($text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($text));
    };
}

#[test]
fn values_are_shown() {
    let s = Sandbox::new();
    snapshot!(s.layouts(&[
        "zipped_divide((8,6):(1,8), <4:1,3:1>)",
        "flat_divide((4,6):(1,4), (2,3))",
        "composition((8,6):(6,1), 20:2)",
        "Sw<2,0,3> o 0 o (8,4):(4,1)",
        "identity_divide((4,3), (2,3))",
        "tv(((4,8),(2,2)):((32,1),(16,8)), (16,8))",
        "SM70_8x8x4_F32F16F16F32_TN",
        "tiled_mma(SM70_8x8x4_F32F16F16F32_TN, (1,2,1), <_,16,_>)",
        "local_tile((8,4):(1,8), (4,2), (1,_))",
        "(64,64):(64,1)",
        "100:3",
        "(4,0):(1,4)",
        "size((4,8):(1,4))",
        "compatible(24, (4,6))",
        "idx2crd(16, (3,(2,3)))",
        "Sw<3,4,3>",
        "<4:1,(2,2):(1,4)>",
    ]));
}

#[test]
fn errors_stand_in_the_expression() {
    let s = Sandbox::new();
    snapshot!(s.layouts(&[
        "",
        "(4,8):(1,4",
        "(4,8):(1,99999999999999999999)",
        "(4,(2,4)):(1,(4,8,16))",
        "ziped_divide((8,6):(1,8), <4:1,3:1>)",
        "frobnicate(4)",
        "SM80_16x8x16_F32F16F16F32_NT",
        "mma_tv(Wmma<4>, (1,1,1), (_,_,_), C)",
        "complement()",
        "complement(4:1, 24, 3)",
        "zipped_divide(complement((4,2):(1,2), 16), 4)",
        "composition((4,(3,2)):(1,(4,12)), <2:1,(4,2):(1,4)>)",
        "tile_to_shape((4,4):(1,4), (6,8))",
        "size((4294967296,4294967296):(0,0))",
        "tv((4,8):(32,1), (4,8))",
    ]));
}

/// Warp-group instructions by dtypes and the tile's columns.
#[test]
fn atoms_are_selected() {
    let s = Sandbox::new();
    snapshot!(s.layouts(&[
        "select_mma(f16, f16, f32, 8)",
        "SM90_64xNx32_S32S8S8_SS",
        "select_mma(SM90_64xNx16_F32BF16BF16_SS, 300)",
        "select_mma(f16, f16, f32, 4)",
        "select_mma(i8, i8, f32, 64)",
        "select_mma(i8, i8, i32, 60)",
        "select_mma(f32, f32, f32, 64)",
        "select_mma(f16, f16, f32)",
        "tiled_mma(SM90_64xNx16_F32F16F16_SS)",
    ]));
    let selected =
        ["f16, f16, f32, 256", "f16, f16, f32, 512", "bf16, bf16, f32, 96", "i8, i8, i32, 256", "f16, f16, f16, 40"];
    let mut lines: Vec<String> = selected.iter().map(|of| format!("select_mma({of})")).collect();
    for of in selected {
        let mma = format!("tiled_mma(select_mma({of}))");
        lines.push(format!("thread_count({mma})"));
        lines.push(format!("is_bijection(tv_C({mma}))"));
        // Each thread sees all of A and of B: the values are a bijection, the threads add nothing.
        lines.extend(["A", "B"].map(|x| format!("is_bijection(select(tv_{x}({mma}), 1))")));
        lines.extend(["A", "B"].map(|x| format!("cosize(select(tv_{x}({mma}), 0))")));
    }
    let answers = s.batch(lines.join("\n").as_bytes());
    let text: Vec<String> = answers.iter().map(|a| a["value"].to_string()).collect();
    assert_eq!(
        text[..5],
        [
            "\"SM90_64x256x16_F32F16F16_SS\"",
            "\"SM90_64x256x16_F32F16F16_SS\"",
            "\"SM90_64x96x16_F32BF16BF16_SS\"",
            "\"SM90_64x256x32_S32S8S8_SS\"",
            "\"SM90_64x40x16_F16F16F16_SS\"",
        ]
    );
    for (k, facts) in text[5..].chunks(6).enumerate() {
        assert_eq!(facts, ["128", "true", "true", "true", "1", "1"], "{}", selected[k]);
    }
}

#[test]
fn kernels_print_layouts() {
    let s = Sandbox::new();
    s.file(
        "print.tile",
        "kernel k(a: in f32[M, N], c: out f32[M, N]) {
            grid (i in tiles(M, 16), j in tiles(N, 64));
            print(zipped_divide((128, 64):(1, 128), <32:1, 16:1>));
            print(select_mma(f16, f16, f32, 192).C);
            TSTORE(c.tile(i, j), Vec(a.tile(i, j)));
        }",
    );
    let out = s.run("run print.tile --random 1 -D M=2 -D N=3 --threads 1");
    assert!(out.contains("((32,16),(4,4)):((1,128),(32,2048))\n"), "{out}");
    assert!(out.contains("((4,8,4),(2,2,24)):((128,1,16),(64,8,512))\n"), "{out}");
}

#[test]
fn json_and_pictures() {
    let s = Sandbox::new();
    s.file("dir/keep", "");
    snapshot!(s.runs(&[
        "layout (4,2):(2,1) --json",
        "layout size((4,2):(2,1)) --json",
        "layout (4,2):(2 --json",
        "layout (2,2):(1@0,1@1) --json",
        "layout (64,64):(64,1) --json",
        "layout (4,2):(2,1) --svg p.svg",
        "layout size((4,2):(2,1)) --svg q.svg",
        "layout (4,2):(2,1) --svg no/dir/q.svg",
        "layout (4,2):(2,1) --svg dir",
        "layout (4,2):(2,1) --svg q.svg --json",
        "layout (4,2):(2,1) --batch",
        "layout",
        "layout --help",
    ]));
    assert_eq!(s.listing(), ["a.npy", "add.tile", "b.npy", "dir", "p.svg"]);
    snapshot!(fs::read_to_string(s.path().join("p.svg")).unwrap());
    let list = s.run("layout --list");
    assert!(list.contains("zipped_divide") && list.contains("exit 0"), "{list}");
    let colored = s.run("layout (4,2):(2,1) --color always");
    assert!(colored.contains("\x1b[48;5;"), "{colored}");
}

#[test]
fn a_batch_goes_on_whatever_a_line_is() {
    let s = Sandbox::new();
    let deep = "(".repeat(100_000);
    let long = "1".repeat(3 << 20);
    let lines: [&[u8]; 8] =
        [b"4:1", b"", b"(4,8", b"\xff\xfe", deep.as_bytes(), long.as_bytes(), b"size(4:1)\r", b"congruent(4,(4))"];
    let answers = s.batch(&lines.join(&b'\n'));
    let text = |k: usize, key: &str| answers[k][key].to_string();
    assert_eq!(answers.len(), 8);
    assert_eq!(
        answers[0].to_string(),
        r#"{"layout":"4:1","size":4,"cosize":4,"rank":1,"depth":0,"indices":[0,1,2,3]}"#
    );
    assert!(text(1, "error").contains("there is no expression"));
    assert!(text(2, "error").contains("column 5: `(` is not closed"), "{}", answers[2]);
    assert!(text(3, "error").contains("has no meaning here"), "{}", answers[3]);
    assert!(text(4, "error").contains("levels"));
    assert!(text(5, "error").contains("more than 1048576 bytes"));
    assert_eq!((text(6, "value"), text(7, "value")), ("4".to_owned(), "false".to_owned()));
    assert!(s.batch(b"").is_empty());
}

#[test]
fn each_question_of_a_dialogue_is_answered() {
    let s = Sandbox::new();
    let mut child = s.command("layout --batch").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for (question, answer) in [("size(4:1)", "{\"value\":4}\n"), ("rank(4:1)", "{\"value\":1}\n")] {
        writeln!(stdin, "{question}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, answer);
    }
    // The reader goes first; the next answer finds nobody, and that is no mistake.
    drop(stdout);
    let _ = writeln!(stdin, "4:1");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// What the C++ headers answer: texts, indices and refusals, through the command line as it is documented.
#[test]
fn golden_cases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/layout/cases.json");
    let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap();
    let text = |case: &Value| {
        let args: Vec<&str> = case["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
        format!("{}({})", case["op"].as_str().unwrap(), args.join(", "))
    };
    let input: String = cases.iter().map(|case| text(case) + "\n").collect();
    let answers = Sandbox::new().batch(input.as_bytes());
    assert_eq!((answers.len(), cases.len()), (1995, 1995));
    let mut wrong = Vec::new();
    for (case, got) in cases.iter().zip(&answers) {
        // What CuTe accepts though its result has not the property that defines it is refused here.
        let refused = case.get("error").is_some() || case.get("quirk").is_some();
        let ok = if refused {
            got.get("error").is_some_and(|e| e.as_str().unwrap().starts_with("column "))
        } else {
            let value = got.get("layout").or(got.get("value"));
            let indices = case.get("indices").is_none() || case["indices"] == got["indices"];
            value == Some(&case["result"]) && indices
        };
        if !ok {
            wrong.push(format!("{}: {got}, not {case}", text(case)));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Numbers without end: the same ones in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn of<'l>(&mut self, list: &[&'l str]) -> &'l str {
        list[self.below(list.len())]
    }

    fn int(&mut self) -> &'static str {
        let likely = ["0", "1", "2", "3", "4", "6", "8", "12", "-1", "-4", "5", "16"];
        let rare = ["9223372036854775807", "-9223372036854775808", "4294967296", "3037000500", "-9223372036854775807"];
        if self.below(12) == 0 { self.of(&rare) } else { self.of(&likely) }
    }

    /// A nested tuple whose leaves `leaf` writes.
    fn tuple(&mut self, depth: usize, leaf: &mut dyn FnMut(&mut Numbers) -> String) -> String {
        if depth == 0 || self.below(3) == 0 {
            return leaf(self);
        }
        let modes: Vec<String> = (0..self.below(4)).map(|_| self.tuple(depth - 1, leaf)).collect();
        format!("({})", modes.join(","))
    }

    fn layout(&mut self) -> String {
        let shape = self.tuple(2, &mut |n| n.int().trim_start_matches('-').to_owned());
        let basis = self.below(6) == 0;
        let mut stride = String::new();
        let mut digits = false;
        // Each extent becomes a stride.
        for c in shape.chars() {
            if c.is_ascii_digit() {
                if !std::mem::replace(&mut digits, true) {
                    stride += self.int();
                    if basis {
                        stride += self.of(&["@0", "@1", "@0@1", "@2"]);
                    }
                }
            } else {
                digits = false;
                stride.push(c);
            }
        }
        format!("{shape}:{stride}")
    }

    fn value(&mut self) -> String {
        match self.below(10) {
            0 => self.int().to_owned(),
            1 | 2 => self.tuple(2, &mut |n| n.int().to_owned()),
            3 => self.tuple(2, &mut |n| n.of(&["_", "1", "0", "3", "X"]).to_owned()),
            4 => format!("<{},{}>", self.layout(), self.of(&["_", "4", "3:2", "<2:1,2>"])),
            5 => format!("Sw<{},{},{}>", self.int(), self.int(), self.int()),
            6 => format!("Sw<2,0,3> o {} o {}", self.int(), self.layout()),
            7 => format!("{} o {}", self.int(), self.layout()),
            _ => self.layout(),
        }
    }
}

/// Whatever the operands are, there is an answer, and nothing takes long.
#[test]
fn every_operation_answers() {
    let s = Sandbox::new();
    let list = s.run("layout --list");
    let usages: Vec<&str> = list.lines().filter(|l| !l.starts_with([' ', '-', '$']) && l.contains('(')).collect();
    assert!(usages.len() > 50, "{list}");
    let mut numbers = Numbers(7);
    let mut input = String::new();
    for k in 0..12_000 {
        let usage = usages[k % usages.len()];
        let (name, args) = usage.split_once('(').unwrap();
        let count = args.matches(", ").count() + 1;
        let args: Vec<String> = (0..count).map(|_| numbers.value()).collect();
        let _ = writeln!(input, "{name}({})", args.join(", "));
    }
    let answers = s.batch(input.as_bytes());
    assert_eq!(answers.len(), 12_000, "stopped at {:?}", input.lines().nth(answers.len()));
}

/// The promise is 10,000 a second of a released compiler: `time ptoc layout --batch` measures it, a test on a busy
/// machine cannot.
#[test]
fn a_batch_of_divisions() {
    let mut numbers = Numbers(12345);
    let mut pick = |list: &[i64]| list[numbers.below(list.len())];
    let mut input = String::new();
    for _ in 0..10_000 {
        let (tile_m, tile_n) = (pick(&[1, 2, 4, 8, 16]), pick(&[1, 2, 4, 8]));
        let (m, k, n) = (tile_m * pick(&[1, 2, 3, 7]), pick(&[1, 2, 4]), tile_n * pick(&[1, 2, 5]));
        let _ = writeln!(input, "zipped_divide(({m},({n},{k})):({},(1,{n})), <{tile_m}:1,{tile_n}>)", n * k);
    }
    let answers = Sandbox::new().batch(input.as_bytes());
    assert_eq!(answers.len(), 10_000);
    assert!(
        answers.iter().all(|a| a.get("layout").is_some()),
        "{:?}",
        answers.iter().find(|a| a.get("error").is_some())
    );
}

/// `console` blocks on the pages of the codes show what `ptoc layout` prints. UPDATE_PAGES=1 writes them anew.
#[test]
fn pages_show_what_is_printed() {
    let codes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnostics/codes");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(codes).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let mut fresh = String::new();
        for (k, piece) in page.split("```console\n").enumerate() {
            let ours = |(block, _): &(&str, &str)| k > 0 && block.starts_with("$ ptoc layout '");
            let Some((block, rest)) = piece.split_once("\n```").filter(ours) else {
                fresh += if k > 0 { "```console\n" } else { "" };
                fresh += piece;
                continue;
            };
            let call = block.lines().next().unwrap();
            let code = path.file_stem().unwrap().to_str().unwrap();
            let _ = write!(fresh, "```console\n{call}\n{}\n```{rest}", printed(call, code).trim_end());
        }
        if fresh != page {
            wrong.push(format!("{}:\n{fresh}", path.display()));
            if std::env::var_os("UPDATE_PAGES").is_some() {
                fs::write(&path, fresh).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "these pages differ from what is printed:\n{}", wrong.join("\n"));
}

/// What `$ ptoc layout '..'` prints; an error must have the page's code.
fn printed(call: &str, code: &str) -> String {
    let text = call.strip_prefix("$ ptoc layout '").and_then(|c| c.strip_suffix('\'')).expect(call);
    let output =
        Command::new(env!("CARGO_BIN_EXE_ptoc")).env_remove("COLUMNS").args(["layout", text]).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(err.is_empty() || err.contains(code), "{code}: {err}");
    out + &err
}
