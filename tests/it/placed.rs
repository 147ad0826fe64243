//! Instructions that put elements elsewhere, against numpy (`tests/golden/placements.txt`, written by
//! `tests/scripts/placement_vectors.py`): each line runs on the first target that takes it, on the interpreter and as
//! machine code of every width.

use crate::arrays::Array;
use crate::covered::{Form, NUMBER};
use crate::engine::{agree, build};
use ptoc_isa::{CmpOp, InstrId, Loc, OperandKind, Target, check_dtypes, lookup, overloads};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

const VECTORS: &str = include_str!("../golden/placements.txt");

enum Part {
    Old(Array),
    Tile(Array),
    /// A second result.
    Also(Array),
    Written(String),
}

struct Line {
    id: InstrId,
    name: String,
    parts: Vec<Part>,
    out: Array,
}

fn line(text: &str) -> Line {
    let mut parts = text.split('|');
    let name = parts.next().expect("a name").to_owned();
    let (mut list, mut out) = (Vec::new(), None);
    for part in parts {
        match part.split_once(' ').expect("a part") {
            ("old", rest) => list.push(Part::Old(Array::parse(rest))),
            ("in", rest) => list.push(Part::Tile(Array::parse(rest))),
            ("also", rest) => list.push(Part::Also(Array::parse(rest))),
            ("arg", rest) => list.push(Part::Written(rest.to_owned())),
            ("out", rest) => out = Some(Array::parse(rest)),
            (what, _) => panic!("{what}"),
        }
    }
    let first = lookup(&name).unwrap_or_else(|| panic!("{name} is no instruction"));
    // The form whose operands are of the kinds that the line has.
    let tiles = 1 + list.iter().filter(|p| matches!(p, Part::Tile(_) | Part::Also(_))).count();
    let id = overloads(first).find(|id| id.get().tiles_written() == tiles).expect("a form of these operands");
    Line { id, name, parts: list, out: out.expect("a result") }
}

fn lines() -> Vec<Line> {
    VECTORS.lines().filter(|l| !l.starts_with('#')).map(line).collect()
}

/// The row's operands that are tiles, as a list of dtypes.
impl Line {
    fn tiles(&self) -> Vec<DType> {
        let others = self.parts.iter().filter_map(|p| match p {
            Part::Tile(a) | Part::Also(a) => Some(a.dtype),
            _ => None,
        });
        std::iter::once(self.out.dtype).chain(others).collect()
    }

    /// The comparison that is written, if one is.
    fn comparison(&self) -> Option<CmpOp> {
        let written = |p: &Part| match p {
            Part::Written(word) => CmpOp::ALL.iter().copied().find(|c| c.name().eq_ignore_ascii_case(word)),
            _ => None,
        };
        self.parts.iter().find_map(written)
    }

    fn label(&self) -> String {
        let tiles: Vec<&str> = self.tiles().iter().map(|d| d.name()).collect();
        let words = self.parts.iter().filter_map(|p| if let Part::Written(w) = p { Some(w.as_str()) } else { None });
        format!("{} {}", self.name, tiles.into_iter().chain(words).collect::<Vec<_>>().join(" "))
    }

    /// Where the result lies: that of a few forms is for the matrix unit.
    fn place(&self) -> Loc {
        let OperandKind::Tile(places) = self.id.get().operands[0].kind else { panic!("a tile") };
        places[0]
    }

    /// What is written for the matrix unit is shown by a product with ones on the diagonal.
    fn unfolded(&self) -> (String, Vec<Tensor>) {
        let mut tiles = self.parts.iter().filter_map(|p| if let Part::Tile(a) = p { Some(a) } else { None });
        let a = tiles.next().expect("a source");
        let written =
            self.parts.iter().filter_map(|p| if let Part::Written(text) = p { Some(text.as_str()) } else { None });
        let ([r, c], [m, k]) = (a.shape, self.out.shape);
        let (d, acc) = (a.dtype, if a.dtype == DType::I8 { DType::I32 } else { DType::F32 });
        let one = scalar::convert_bits(DType::F32, d, 0x3f80_0000);
        let (loc, from) = (self.place(), self.id.get().operands[1].kind);
        let n = if loc == Loc::Right { m } else { k };
        let mut tensors = vec![
            Tensor::from_fn(d, &a.shape, |i| a.bits[i]).expect("small"),
            Tensor::from_fn(d, &[n, n], |i| if i / n == i % n { one } else { 0 }).expect("small"),
        ];
        let OperandKind::Tile([from, ..]) = from else { panic!("a tile") };
        let (mut params, mut made) = (String::new(), format!("let l = tile {loc}<{d}, {m}, {k}>;"));
        if let Some(Part::Old(old)) = self.parts.first() {
            params = format!("old: in {d}[{m}, {k}], ");
            made = "let l = Mat(old);".to_owned();
            tensors.push(Tensor::from_fn(d, &old.shape, |i| old.bits[i]).expect("small"));
        }
        // What the matrix unit does not read is stored from where it is.
        if !matches!(d, DType::I8) && d.is_int() {
            tensors[1] = Tensor::zeros(d, &[m, k]).expect("small");
            let text = format!(
                "kernel k(x: in {d}[{r}, {c}], o: out {d}[{m}, {k}]) {{\n    let a = {from}(x);\n    {made}\n    \
                 {}(l, a, {});\n    TSTORE(o, l);\n}}\n",
                self.id.get().written_name(),
                written.collect::<Vec<_>>().join(", ")
            );
            return (text, tensors);
        }
        tensors.push(Tensor::zeros(acc, &[m, k]).expect("small"));
        let factors = match loc {
            Loc::Left => "l, Right(e)",
            Loc::Right => "Left(e), l",
            _ => "Left(l), Right(e)",
        };
        let text = format!(
            "kernel k(x: in {d}[{r}, {c}], e: in {d}[{n}, {n}], {params}o: out {acc}[{m}, {k}]) {{\n    \
             let a = {from}(x);\n    \
             {made}\n    {}(l, a, {});\n    let acc = tile Acc<{acc}, {m}, {k}>;\n    \
             TMATMUL(acc, {factors});\n    TSTORE(o, acc);\n}}\n",
            self.id.get().written_name(),
            written.collect::<Vec<_>>().join(", ")
        );
        (text, tensors)
    }

    /// A kernel without a grid, and its arguments; the result is the last one.
    fn kernel(&self) -> (String, Vec<Tensor>) {
        let (mut params, mut body, mut operands) = (Vec::new(), String::new(), vec!["d".to_owned()]);
        let mut tensors = Vec::new();
        let tile = |name: &str, a: &Array| {
            let whole = 32 / a.dtype.size();
            let [r, c] = a.shape;
            format!("    let {name} = tile Vec<{}, {r}, {}, valid = ({r}, {c})>;\n", a.dtype, c.next_multiple_of(whole))
        };
        let mut given = |name: &str, dir: &str, a: &Array, tensors: &mut Vec<Tensor>| {
            params.push(format!("{name}: {dir} {}[{}, {}]", a.dtype, a.shape[0], a.shape[1]));
            let bits = |i: usize| if dir == "out" { 0 } else { a.bits[i] };
            tensors.push(Tensor::from_fn(a.dtype, &a.shape, bits).expect("small"));
        };
        let in_place = self.name.ends_with("_INPLACE");
        let mut also = String::new();
        let mut made = in_place;
        for (k, part) in self.parts.iter().enumerate() {
            let (name, a) = match part {
                Part::Written(text) => {
                    operands.push(text.clone());
                    continue;
                }
                Part::Also(a) => {
                    given("counted", "out", a, &mut tensors);
                    body.push_str(&tile("counts", a));
                    also = "    TSTORE(counted, counts);\n".to_owned();
                    operands.push("counts".to_owned());
                    continue;
                }
                Part::Old(a) => {
                    made = true;
                    ("d".to_owned(), a)
                }
                Part::Tile(a) if in_place => ("d".to_owned(), a),
                Part::Tile(a) => (format!("t{k}"), a),
            };
            given(&format!("x{k}"), "in", a, &mut tensors);
            body.push_str(&tile(&name, a));
            writeln!(body, "    TLOAD({name}, x{k});").expect("fits");
            if matches!(part, Part::Tile(_)) {
                operands.push(name);
            }
        }
        if !made {
            body.push_str(&tile("d", &self.out));
        }
        given("result", "out", &self.out, &mut tensors);
        writeln!(body, "    {}({});", self.id.get().written_name(), operands.join(", ")).expect("fits");
        writeln!(body, "    TSTORE(result, d);").expect("fits");
        body.push_str(&also);
        (format!("kernel k({}) {{\n{body}}}\n", params.join(", ")), tensors)
    }
}

fn run(line: &Line, target: &Target) -> Result<(), String> {
    let label = format!("{} on {}", line.label(), target.name);
    let unfolded = line.place() != Loc::Vec;
    let (text, tensors) = if unfolded { line.unfolded() } else { line.kernel() };
    let built = build(&text, &target.name, &[], &[]).map_err(|r| format!("{label}: {r:?}{text}"))?;
    let stopped = |(code, message)| format!("{label}: {code}: {message}");
    let got = agree(&built, &[], &tensors, &[1]).map_err(|e| format!("{label}: {e}"))?.map_err(stopped)?;
    // A second result stands before the first one.
    let also = line.parts.iter().find_map(|p| if let Part::Also(a) = p { Some(a) } else { None });
    let shown = |wanted: &Array, i: usize, d: DType| {
        let widened = |k: usize| scalar::convert_bits(wanted.dtype, d, wanted.bits[k]);
        if !unfolded {
            return wanted.bits[i];
        }
        // What is infinite makes all other elements of its row NaN when it is multiplied with their zeros.
        let (row, wide) = (i / wanted.shape[1], wanted.shape[1]);
        let infinite = |k: &usize| *k != i && scalar::bits_to_f64(d, widened(*k)).is_infinite();
        let spoiled = d.is_float() && (row * wide..(row + 1) * wide).any(|k| infinite(&k));
        if spoiled { scalar::bits_from_f64(d, f64::NAN) } else { widened(i) }
    };
    for (result, wanted) in got.iter().rev().zip(std::iter::once(&line.out).chain(also)) {
        for i in 0..result.len() {
            let d = result.dtype();
            let (got, want) = (result.get_bits(i), shown(wanted, i, d));
            let nan = |b| unfolded && d.is_float() && scalar::is_nan(d, b);
            // Elements are copied: every bit counts.
            if got != want && !(nan(got) && nan(want)) {
                let shown = |b| scalar::format_bits(d, b);
                return Err(format!(
                    "{label}: element {:?} is {}, numpy has {}",
                    result.unravel(i),
                    shown(got),
                    shown(want)
                ));
            }
        }
    }
    Ok(())
}

/// The kernel of the first line of the form's row and dtypes, with the form's word if it has one.
pub fn kernel(form: &Form) -> Option<String> {
    let mut line = lines().into_iter().find(|l| l.id == form.id && l.tiles() == form.tiles)?;
    let OperandKind::Choice(words) = form.id.get().written().last()?.kind else { return None };
    for word in &form.words {
        let old = line.parts.iter_mut().find(|p| matches!(p, Part::Written(w) if words.iter().any(|x| x.0 == w)))?;
        *old = Part::Written(word.clone());
    }
    Some(line.kernel().0)
}

/// The kernel of the first line of that row on these dtypes, and with that comparison if one is named.
pub fn kernel_of(id: InstrId, tiles: &[DType], cmp: Option<CmpOp>) -> Option<String> {
    let line =
        lines().into_iter().find(|l| l.id == id && l.tiles() == tiles && (cmp.is_none() || l.comparison() == cmp))?;
    let (text, _) = if line.place() != Loc::Vec { line.unfolded() } else { line.kernel() };
    Some(text)
}

fn part(k: usize) {
    let (mut wrong, mut count) = (String::new(), 0);
    for line in lines().iter().skip(k).step_by(4) {
        let taken = |t: &&Target| check_dtypes(t, line.id, &line.tiles(), line.comparison()).is_none();
        let Some(target) = Target::pto().iter().find(taken) else {
            writeln!(wrong, "{}: no target takes it", line.label()).expect("fits");
            continue;
        };
        count += 1;
        if let Err(why) = run(line, target) {
            writeln!(wrong, "{why}").expect("fits");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 50, "{count}");
}

#[test]
fn placements_of_numpy_0() {
    part(0);
}

#[test]
fn placements_of_numpy_1() {
    part(1);
}

#[test]
fn placements_of_numpy_2() {
    part(2);
}

#[test]
fn placements_of_numpy_3() {
    part(3);
}

/// What there are vectors of.
pub fn forms() -> Vec<Form> {
    let form = |l: Line| {
        let row = l.id.get();
        let numbers = row.written().iter().filter(|o| matches!(o.kind, OperandKind::Index | OperandKind::Scalar(_)));
        let mut left = numbers.count();
        let mut words = Vec::new();
        for part in &l.parts {
            let Part::Written(text) = part else { continue };
            let number = text.parse::<f64>().is_ok();
            match number && left > 0 {
                true => left -= 1,
                // What is left is a word, or the pad.
                false => words.push(if number { NUMBER } else { text }),
            }
        }
        Form::new(l.id, &l.tiles(), "", words.into_iter())
    };
    lines().into_iter().map(form).collect()
}

/// A product of one row has the bits of TMATMUL, on every triple of every target.
#[test]
fn products_of_a_vector_are_products_of_one_row() {
    for target in Target::pto() {
        for t in &target.triples {
            let forms = [
                ("TGEMV", "TMATMUL", "", "{}(acc, a, b);"),
                ("TGEMV_ACC", "TMATMUL_ACC", "", "TMATMUL(acc, a, b); {}(acc, acc, a, b);"),
                ("TGEMV_BIAS", "TMATMUL_BIAS", "z: in ACC[40], ", "{}(acc, a, b, Bias(z));"),
            ];
            for (vector, matrix, bias, body) in forms {
                let text = |name: &str| {
                    format!(
                        "kernel k(x: in {0}[50], y: in {0}[50, 40], {1}o: out {2}[40]) {{\n    \
                         let acc = tile Acc<{2}, 16, 48, valid = (1, 40)>;\n    let a = Left(x);\n    \
                         let b = Right(y);\n    \
                         {3}\n    TSTORE(o, acc);\n}}\n",
                        t.left,
                        bias.replace("ACC", t.acc.name()),
                        t.acc,
                        body.replace("{}", name)
                    )
                };
                let noise = |d: DType, shape: &[usize], seed| {
                    crate::engine::noise(d, shape, crate::engine::Content::Tame, seed)
                };
                let mut arguments = vec![noise(t.left, &[50], 1), noise(t.left, &[50, 40], 2)];
                if !bias.is_empty() {
                    arguments.push(noise(t.acc, &[40], 3));
                }
                arguments.push(Tensor::zeros(t.acc, &[40]).expect("small"));
                let result = |name: &str| {
                    let built =
                        build(&text(name), &target.name, &[], &[]).unwrap_or_else(|r| panic!("{r:?}{}", text(name)));
                    let got = agree(&built, &[], &arguments, &[1]).expect("one result").expect("it ends");
                    let last = got.last().expect("a result");
                    (0..40).map(|i| last.get_bits(i)).collect::<Vec<_>>()
                };
                assert_eq!(result(vector), result(matrix), "{vector} on {}", target.name);
            }
        }
    }
}

/// An index that leads out of a tile ends the launch, with one code on both backends.
#[test]
fn indices_outside_end_the_launch() {
    let kernel = |body: &str| {
        format!(
            "kernel k(x: in f32[1, 16], n: in i32[1, 16], o: out f32[1, 16]) {{\n    \
             let d = tile Vec<f32, 1, 16>;\n    \
             let x = Vec(x);\n    let n = Vec(n);\n    {body}\n    TSTORE(o, d);\n}}\n"
        )
    };
    for body in ["TGATHER(d, x, n);", "TEXPANDS(d, 0.0); TSCATTER(d, x, n);"] {
        let built = build(&kernel(body), "a5", &[], &[]).expect("it compiles");
        for (index, ends) in [(0u32, false), (16, true), (u32::MAX, true)] {
            let x = Tensor::zeros(DType::F32, &[1, 16]).expect("small");
            let n = Tensor::from_fn(DType::I32, &[1, 16], |i| if i == 5 { index.into() } else { 0 }).expect("small");
            let got = agree(&built, &[], &[x.clone(), n, x], &[1]).expect("both say the same");
            match got {
                Ok(_) => assert!(!ends, "{body} {index}"),
                Err((code, _)) => assert_eq!((code.as_str(), ends), ("PA-1042", true), "{body} {index}"),
            }
        }
    }
}
