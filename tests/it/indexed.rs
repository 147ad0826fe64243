//! Elements and rows of a tensor by index against numpy (`tests/golden/indexed.txt`, written by
//! `tests/scripts/indexed_vectors.py`): each line runs on the first and on the last target that take it, on the
//! interpreter and as machine code of every width.

use crate::arrays::Array;
use crate::covered::Form;
use crate::engine::{Content, agree, build, noise};
use ptoc_isa::{AtomicOp, InstrId, Target, overloads};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

const VECTORS: &str = include_str!("../golden/indexed.txt");

struct Line {
    name: String,
    /// What is written behind the operands.
    words: Vec<String>,
    parts: Vec<Array>,
    out: Array,
}

fn line(text: &str) -> Line {
    let mut parts: Vec<&str> = text.split('|').collect();
    let out = Array::parse(parts.pop().and_then(|p| p.strip_prefix("out ")).expect("a result"));
    let (name, rest) = parts[0].split_once(' ').unwrap_or((parts[0], ""));
    let words = rest.replace(" = ", "=");
    Line {
        name: name.to_owned(),
        words: words.split_whitespace().map(|w| w.replace('=', " = ")).collect(),
        parts: parts[1..].iter().map(|p| Array::parse(p)).collect(),
        out,
    }
}

impl Line {
    /// `column`: indices of rows stand in one.
    fn kernel(&self, column: bool) -> (String, Vec<Tensor>, usize) {
        let words: String = self.words.iter().map(|w| format!(", {w}")).collect();
        let index = |a: &Array| match column {
            true => (format!("{}[{}]", a.dtype, a.shape[1]), "col(x)"),
            false => (format!("{}[{}, {}]", a.dtype, a.shape[0], a.shape[1]), "x"),
        };
        let flat = |a: &Array| {
            let shape = if column { vec![a.shape[1]] } else { a.shape.to_vec() };
            Tensor::from_fn(a.dtype, &shape, |i| a.bits[i]).expect("small")
        };
        let ([r, c], d) = (self.out.shape, self.out.dtype);
        let zeros = Tensor::zeros(d, &self.out.shape).expect("small");
        match &self.parts[..] {
            [table, idx] if self.name == "MGATHER" => {
                let wide = c.next_multiple_of(32 / d.size());
                let text = format!(
                    "kernel k(t: in {0}, x: in {1}, o: out {3}) {{\n    \
                     let d = tile Vec<{d}, {r}, {wide}, valid = ({r}, {c})>;\n    \
                     MGATHER(d, t, Vec({2}){words});\n    TSTORE(o, d);\n}}\n",
                    table.ty(),
                    index(idx).0,
                    index(idx).1,
                    self.out.ty()
                );
                (text, vec![table.tensor(), flat(idx), zeros], 2)
            }
            [table, a, idx] => {
                let text = format!(
                    "kernel k(t: inout {}, a: in {}, x: in {}) {{\n    MSCATTER(t, Vec(a), Vec({}){words});\n}}\n",
                    table.ty(),
                    a.ty(),
                    index(idx).0,
                    index(idx).1
                );
                (text, vec![table.tensor(), a.tensor(), flat(idx)], 0)
            }
            _ => panic!("{}", self.name),
        }
    }

    fn row(&self) -> InstrId {
        let rows = self.words.iter().any(|w| w == "Row");
        let first = ptoc_isa::lookup(&self.name).expect("an instruction");
        overloads(first).find(|id| id.get().name.ends_with("_ROWS") == rows).expect("such a form")
    }

    /// Whether it is legal there.
    fn taken(&self, target: &Target) -> bool {
        let larger = |op, word: &str| self.words.iter().any(|w| w == word) && !target.scatters_by(op);
        let d = self.out.dtype;
        target.has_dtype(d) && !larger(AtomicOp::Max, "atomic = Max") && !larger(AtomicOp::Min, "atomic = Min")
    }

    fn run(&self, target: &Target, column: bool) -> Result<(), String> {
        let (text, tensors, result) = self.kernel(column);
        let label = format!("{} {} on {}", self.name, self.words.join(" "), target.name);
        let built = build(&text, &target.name, &[], &[]).map_err(|r| format!("{label}: {r:?}{text}"))?;
        let stopped = |(code, message)| format!("{label}: {code}: {message}");
        let got = agree(&built, &[], &tensors, &[1]).map_err(|e| format!("{label}: {e}"))?.map_err(stopped)?;
        for (i, want) in self.out.bits.iter().enumerate() {
            let (got, d) = (got[result].get_bits(i), self.out.dtype);
            let computed = self.words.iter().any(|w| w.starts_with("atomic"));
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
        let there: Vec<&Target> = Target::pto().iter().filter(|t| l.taken(t)).collect();
        let ends = [there.first(), there.last().filter(|_| there.len() > 1)];
        for target in ends.into_iter().flatten() {
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

/// What there are vectors of.
pub fn forms() -> Vec<Form> {
    let form = |text| {
        let l = line(text);
        let index = l.parts.last().expect("indices").dtype;
        // In the table a mode stands without its name.
        let words = l.words.iter().map(|w| w.strip_prefix("oob = ").unwrap_or(w));
        Form::new(l.row(), &[l.out.dtype, index], "", words)
    };
    VECTORS.lines().filter(|l| !l.starts_with('#')).map(form).collect()
}

/// A kernel of such an instruction.
pub fn kernel(form: &Form) -> String {
    let array = |dtype, shape: [usize; 2]| Array { dtype, shape, bits: vec![0; shape[0] * shape[1]] };
    let ([d, index], name) = ([form.tiles[0], form.tiles[1]], form.id.get().written_name());
    let rows = form.words.contains("Row");
    let (table, idx) = (array(d, [8, 32]), array(index, if rows { [1, 8] } else { [8, 32] }));
    let parts = if name == "MGATHER" { vec![table, idx] } else { vec![table, array(d, [8, 32]), idx] };
    let words = form.words.iter().filter(|w| *w != "Row").chain(form.words.get("Row")).cloned().collect();
    Line { name: name.to_owned(), words, parts, out: array(d, [8, 32]) }.kernel(false).0
}

/// An index outside without a mode ends the launch.
#[test]
fn an_index_outside_ends_the_launch() {
    for (text, result) in [
        (
            "kernel k(t: in f32[5, 8], x: in i32[1, 8], o: out f32[8, 8]) {\n    let d = tile Vec<f32, 8, 8>;\n    \
            MGATHER(d, t, Vec(x), Row);\n    TSTORE(o, d);\n}\n",
            [8, 8],
        ),
        (
            "kernel k(a: in f32[8, 8], x: in i32[1, 8], t: inout f32[5, 8]) {\n    MSCATTER(t, Vec(a), Vec(x), Row);\n\
            }\n",
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
