//! Elements and rows of a tensor by index, and products of rounded factors, against numpy (`tests/golden/indexed.txt`, written by
//! `tests/scripts/indexed_vectors.py`): each line runs on every target that takes it, on the interpreter and as machine code of every
//! width.

use crate::engine::{Content, agree, build, noise};
use ptoc_isa::{AtomicOp, Target};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

const VECTORS: &str = include_str!("../golden/indexed.txt");

struct Array {
    dtype: DType,
    shape: [usize; 2],
    bits: Vec<u64>,
}

struct Line {
    name: String,
    /// What is written behind the operands.
    words: Vec<String>,
    parts: Vec<Array>,
    out: Array,
}

fn array(text: &str) -> Array {
    let [dtype, shape, digits] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let dtype = DType::from_name(dtype).expect("a dtype");
    let (rows, cols) = shape.split_once('x').expect("a shape");
    let number = |d: &[u8]| u64::from_str_radix(std::str::from_utf8(d).expect("digits"), 16).expect("digits");
    let bits: Vec<u64> = digits.as_bytes().chunks(2 * dtype.size()).map(number).collect();
    Array { dtype, shape: [rows.parse().expect("rows"), cols.parse().expect("columns")], bits }
}

fn line(text: &str) -> Line {
    let mut parts: Vec<&str> = text.split('|').collect();
    let out = array(parts.pop().and_then(|p| p.strip_prefix("out ")).expect("a result"));
    let (name, rest) = parts[0].split_once(' ').unwrap_or((parts[0], ""));
    let words = rest.replace(" = ", "=");
    Line {
        name: name.to_owned(),
        words: words.split_whitespace().map(|w| w.replace('=', " = ")).collect(),
        parts: parts[1..].iter().map(|p| array(p)).collect(),
        out,
    }
}

impl Line {
    /// `column`: indices of rows stand in one.
    fn kernel(&self, column: bool) -> (String, Vec<Tensor>, usize) {
        let tensor = |a: &Array| Tensor::from_fn(a.dtype, &a.shape, |i| a.bits[i]).expect("small");
        let words: String = self.words.iter().map(|w| format!(", {w}")).collect();
        let index = |a: &Array| match column {
            true => (format!("{}[{}]", a.dtype, a.shape[1]), "col(x)"),
            false => (format!("{}[{}, {}]", a.dtype, a.shape[0], a.shape[1]), "x"),
        };
        let flat = |a: &Array| {
            let shape = if column { vec![a.shape[1]] } else { a.shape.to_vec() };
            Tensor::from_fn(a.dtype, &shape, |i| a.bits[i]).expect("small")
        };
        let ty = |a: &Array| format!("{}[{}, {}]", a.dtype, a.shape[0], a.shape[1]);
        let ([r, c], d) = (self.out.shape, self.out.dtype);
        let zeros = Tensor::zeros(d, &self.out.shape).expect("small");
        match &self.parts[..] {
            [table, idx] if self.name == "MGATHER" => {
                let wide = c.next_multiple_of(32 / d.size());
                let text = format!(
                    "kernel k(t: in {0}, x: in {1}, o: out {3}) {{\n    let d = tile Vec<{d}, {r}, {wide}, valid = ({r}, {c})>;\n    \
                     MGATHER(d, t, Vec({2}){words});\n    TSTORE(o, d);\n}}\n",
                    ty(table),
                    index(idx).0,
                    index(idx).1,
                    ty(&self.out)
                );
                (text, vec![tensor(table), flat(idx), zeros], 2)
            }
            [table, a, idx] => {
                let text = format!(
                    "kernel k(t: inout {}, a: in {}, x: in {}) {{\n    MSCATTER(t, Vec(a), Vec({}){words});\n}}\n",
                    ty(table),
                    ty(a),
                    index(idx).0,
                    index(idx).1
                );
                (text, vec![tensor(table), tensor(a), flat(idx)], 0)
            }
            [a, b] => {
                let text = format!(
                    "kernel k(a: in {}, b: in {}, o: out {}) {{\n    let acc = tile Acc<{d}, {r}, {c}>;\n    \
                     TMATMUL(acc, Left(a), Right(b){words});\n    TSTORE(o, acc);\n}}\n",
                    ty(a),
                    ty(b),
                    ty(&self.out)
                );
                (text, vec![tensor(a), tensor(b), zeros], 2)
            }
            _ => panic!("{}", self.name),
        }
    }

    /// Is it legal there?
    fn taken(&self, target: &Target) -> bool {
        let larger = |op, word: &str| self.words.iter().any(|w| w == word) && !target.scatters_by(op);
        let d = self.out.dtype;
        match self.name.as_str() {
            "TMATMUL" => target.accumulator_of(DType::F32, DType::F32).is_some(),
            _ => {
                target.has_dtype(d) && !larger(AtomicOp::Max, "atomic = Max") && !larger(AtomicOp::Min, "atomic = Min")
            }
        }
    }

    fn run(&self, target: &Target, column: bool) -> Result<(), String> {
        let (text, tensors, result) = self.kernel(column);
        let label = format!("{} {} on {}", self.name, self.words.join(" "), target.name);
        let built = build(&text, &target.name, &[], &[]).map_err(|r| format!("{label}: {r:?}{text}"))?;
        let stopped = |(code, message)| format!("{label}: {code}: {message}");
        let got = agree(&built, &[], &tensors, &[1]).map_err(|e| format!("{label}: {e}"))?.map_err(stopped)?;
        for (i, want) in self.out.bits.iter().enumerate() {
            let (got, d) = (got[result].get_bits(i), self.out.dtype);
            let computed = self.name == "TMATMUL" || self.words.iter().any(|w| w.starts_with("atomic"));
            let nan = computed && scalar::is_nan(d, got) && scalar::is_nan(d, *want);
            if got != *want && !nan {
                let shown = |b| scalar::format_bits(d, b);
                return Err(format!("{label}: element {i} is {}, numpy has {}\n{text}", shown(got), shown(*want)));
            }
        }
        Ok(())
    }
}

fn part(k: usize) {
    let (mut wrong, mut count) = (String::new(), 0);
    for text in VECTORS.lines().filter(|l| !l.starts_with('#')).skip(k).step_by(4) {
        let l = line(text);
        for target in Target::pto().iter().filter(|t| l.taken(t)) {
            count += 1;
            let rows = l.words.iter().any(|w| w == "Row");
            for column in [false, true].into_iter().take(1 + usize::from(rows)) {
                if let Err(why) = l.run(target, column) {
                    writeln!(wrong, "{why}").expect("fits");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 100, "{count}");
}

#[test]
fn indices_of_numpy_0() {
    part(0);
}

#[test]
fn indices_of_numpy_1() {
    part(1);
}

#[test]
fn indices_of_numpy_2() {
    part(2);
}

#[test]
fn indices_of_numpy_3() {
    part(3);
}

/// Each mode of each row is in the table, on each dtype that some target has; and an index outside without one ends the launch.
#[test]
fn every_mode_of_an_index_has_a_vector() {
    let lines: Vec<Line> = VECTORS.lines().filter(|l| !l.starts_with('#')).map(line).collect();
    for name in ["MGATHER", "MSCATTER", "TMATMUL"] {
        let row = ptoc_isa::lookup(name).expect("a row").get();
        for word in row.modes.iter().flat_map(|m| m.words) {
            let written = |w: &String| w == word || w.strip_prefix("oob = ") == Some(*word);
            assert!(lines.iter().any(|l| l.name == name && l.words.iter().any(written)), "{name} {word}");
        }
        for d in Target::pto().iter().flat_map(|t| &t.dtypes).filter(|_| name != "TMATMUL") {
            for rows in [false, true] {
                let there =
                    |l: &Line| l.name == name && l.out.dtype == *d && l.words.iter().any(|w| w == "Row") == rows;
                assert!(lines.iter().any(there), "{name} {d} {rows}");
            }
        }
    }
    for (text, result) in [
        (
            "kernel k(t: in f32[5, 8], x: in i32[1, 8], o: out f32[8, 8]) {\n    let d = tile Vec<f32, 8, 8>;\n    MGATHER(d, t, Vec(x), Row);\n    TSTORE(o, d);\n}\n",
            [8, 8],
        ),
        (
            "kernel k(a: in f32[8, 8], x: in i32[1, 8], t: inout f32[5, 8]) {\n    MSCATTER(t, Vec(a), Vec(x), Row);\n}\n",
            [5, 8],
        ),
    ] {
        let built = build(text, "a5", &[], &[]).expect("legal");
        let first = if result == [8, 8] { [5, 8] } else { [8, 8] };
        let tensors = [
            Tensor::zeros(DType::F32, &first).expect("small"),
            Tensor::from_fn(DType::I32, &[1, 8], |i| if i == 6 { 5 } else { 0 }).expect("small"),
            Tensor::zeros(DType::F32, &result).expect("small"),
        ];
        let stopped = agree(&built, &[], &tensors, &[1]).expect("both stop").expect_err("row 5 of 5");
        assert_eq!(stopped.0, "PA-1042", "{}", stopped.1);
        assert!(stopped.1.contains("5 rows"), "{}", stopped.1);
    }
    // Of a hint nothing is seen.
    let hint = "kernel k(x: in f32[8, 8], o: out f32[8, 8]) {\n    TPREFETCH_ASYNC(x);\n    TSTORE(o, Vec(x));\n}\n";
    let built = build(hint, "a5", &[], &[]).expect("legal");
    let tensors = [noise(DType::F32, &[8, 8], Content::Tame, 1), Tensor::zeros(DType::F32, &[8, 8]).expect("small")];
    let got = agree(&built, &[], &tensors, &[1]).expect("equal").expect("runs");
    assert!((0..64).all(|i| got[1].get_bits(i) == tensors[0].get_bits(i)));
}
