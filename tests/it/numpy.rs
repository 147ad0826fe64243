//! The committed table of inputs and results (`tests/golden/instructions.txt`, written with numpy by
//! `tests/scripts/instruction_vectors.py`): each line runs on the first target that takes it, on the interpreter and as
//! machine code of every width.

use crate::arrays::Array;
use crate::covered::Form;
use crate::differential::case::{Sizes, single};
use crate::engine::{Content, agree, build};
use ptoc_isa::{CmpOp, Instr, InstrId, OperandKind, Role, Sem, Target, check_dtypes, lookup};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

const VECTORS: &str = include_str!("../golden/instructions.txt");

struct Line {
    id: InstrId,
    /// As written: `, LT`, `, Rint, saturate = true`.
    words: String,
    cmp: Option<CmpOp>,
    inputs: Vec<Array>,
    /// One for each destination, in the order of the operands.
    outs: Vec<Array>,
    ulp: u64,
}

fn line(text: &str) -> Line {
    let mut parts = text.split('|');
    let head = parts.next().expect("a name");
    let (name, modes) = head.split_once(' ').unwrap_or((head, ""));
    let words =
        if modes.is_empty() { String::new() } else { format!(", {}", modes.replace(" saturate", ", saturate")) };
    let mut line = Line {
        id: lookup(name).unwrap_or_else(|| panic!("{name} is no instruction")),
        words,
        cmp: CmpOp::from_name(&modes.to_lowercase()),
        inputs: Vec::new(),
        outs: Vec::new(),
        ulp: 0,
    };
    for part in parts {
        match part.split_once(' ').expect("a part") {
            ("in", rest) => line.inputs.push(Array::parse(rest)),
            ("out", rest) => line.outs.push(Array::parse(rest)),
            ("ulp", n) => line.ulp = n.parse().expect("a number"),
            (what, _) => panic!("{what}"),
        }
    }
    line
}

fn lines() -> Vec<Line> {
    VECTORS.lines().filter(|l| !l.starts_with('#')).map(line).collect()
}

impl Line {
    fn row(&self) -> &'static Instr {
        self.id.get()
    }

    /// The sources that the author writes, each with its array.
    fn sources(&self) -> impl Iterator<Item = (&'static ptoc_isa::OperandSpec, &Array)> {
        let specs = self.row().written().iter().filter(|s| s.role == Role::Src);
        specs.zip(&self.inputs[usize::from(self.row().updates)..])
    }

    /// The dtypes of the tiles that the author writes.
    fn tiles(&self) -> Vec<DType> {
        let (mut outs, mut sources) = (self.outs.iter(), self.sources().filter(|(s, _)| s.is_tile()));
        let of = |s: &ptoc_isa::OperandSpec| match s.role {
            Role::Dst => outs.next().map(|a| a.dtype),
            Role::Src => sources.next().map(|(_, a)| a.dtype),
        };
        let tiles = self.row().written().iter().filter(|s| s.is_tile());
        tiles.map(of).map(|d| d.expect("an array for each tile")).collect()
    }

    fn label(&self) -> String {
        let tiles: Vec<&str> = self.tiles().iter().map(|d| d.name()).collect();
        format!("{} {}{}", self.row().name, tiles.join(" "), self.words)
    }
}

/// As an argument of a kernel: a mask is made of ones and zeros.
fn tensor(a: &Array, shape: &[usize]) -> Tensor {
    let (dtype, bits): (DType, Vec<u64>) = match a.dtype {
        DType::Bool => (DType::F32, a.bits.iter().map(|b| if *b == 1 { 0x3f80_0000 } else { 0 }).collect()),
        d => (d, a.bits.clone()),
    };
    Tensor::from_fn(dtype, shape, |i| bits[i]).expect("small")
}

/// How many numbers lie between two; `None` if one is NaN and the other not.
fn distance(d: DType, a: u64, b: u64) -> Option<u64> {
    let nan = |bits| d.is_float() && scalar::is_nan(d, bits);
    if nan(a) || nan(b) {
        return (nan(a) && nan(b)).then_some(0);
    }
    let half = 1i128 << (8 * d.size() - 1);
    let ordered = |bits: u64| match i128::from(bits) {
        n if d.is_float() && n >= half => half - n,
        n => n,
    };
    // Zeros of either sign are one number and not the same bits.
    let apart = ordered(a).abs_diff(ordered(b)) as u64;
    Some(if apart == 0 { u64::from(a != b) } else { apart })
}

fn run(line: &Line) -> Result<(), String> {
    let (row, tiles, label) = (line.row(), line.tiles(), line.label());
    let taken = |t: &&Target| check_dtypes(t, line.id, &tiles, line.cmp).is_none();
    let target = Target::pto().iter().find(taken).ok_or(format!("{label}: no target takes it"))?;
    let case = single(row, &tiles, &line.words, false, label.clone());
    let built = build(&case.text, &target.name, &[], &[]).map_err(|r| format!("{label}: {r:?}{}", case.text))?;
    // The block is as large as the largest operand.
    let shapes = line.inputs.iter().chain(&line.outs).map(|a| a.shape);
    let largest = shapes.max_by_key(|s| s[0] * s[1]).expect("operands");
    let [rows, cols] = if row.sem == Sem::Transpose { line.inputs[0].shape } else { largest };
    let sizes = Sizes { rows, cols, depth: 1 };
    let mut given = line.inputs.iter();
    let mut argument = |a: &crate::differential::case::Arg| {
        let blank = a.tensor(sizes, Content::Tame, 0);
        given.next().map_or(blank.clone(), |array| tensor(array, blank.shape()))
    };
    let arguments: Vec<Tensor> = case.args.iter().map(&mut argument).collect();
    let stopped = |(code, message)| format!("{label}: {code}: {message}");
    let got = agree(&built, &sizes.dims(), &arguments, &[1]).map_err(|e| format!("{label}: {e}"))?.map_err(stopped)?;
    let places: Vec<usize> = (0..case.args.len()).filter(|&k| case.args[k].out).collect();
    assert_eq!(places.len(), line.outs.len(), "{label}");
    for (at, out) in places.into_iter().zip(&line.outs) {
        let want = tensor(out, got[at].shape());
        let d = want.dtype();
        for i in 0..want.len() {
            let (got, want) = (got[at].get_bits(i), want.get_bits(i));
            if distance(d, got, want).is_none_or(|n| n > line.ulp) {
                let same = line.inputs.iter().filter(|a| a.bits.len() == out.bits.len());
                let inputs: Vec<String> = same.map(|a| scalar::format_bits(a.dtype, a.bits[i])).collect();
                let (got, want) = (scalar::format_bits(d, got), scalar::format_bits(d, want));
                return Err(format!("{label} on {}: element {i} {inputs:?} is {got}, numpy has {want}", target.name));
            }
        }
    }
    Ok(())
}

fn part(k: usize) {
    let mut wrong = String::new();
    for line in lines().iter().skip(k).step_by(4) {
        if let Err(why) = run(line) {
            writeln!(wrong, "{why}").expect("fits");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn vectors_of_numpy_0() {
    part(0);
}

#[test]
fn vectors_of_numpy_1() {
    part(1);
}

#[test]
fn vectors_of_numpy_2() {
    part(2);
}

#[test]
fn vectors_of_numpy_3() {
    part(3);
}

/// What there are vectors of.
pub fn forms() -> Vec<Form> {
    let form = |l: Line| {
        let OperandKind::Tile(places) = l.row().operands[0].kind else { panic!("a tile") };
        let way = if places.len() > 1 { places[0].name() } else { "" };
        Form::new(l.id, &l.tiles(), way, l.words.split(", ").filter(|w| !w.is_empty()))
    };
    lines().into_iter().map(form).collect()
}

#[test]
fn scalars_have_the_dtype_that_the_row_says() {
    for line in lines() {
        for (spec, a) in line.sources() {
            if let OperandKind::Scalar(d) = spec.kind {
                assert_eq!(a.dtype, d.unwrap_or(line.tiles()[line.tiles().len() - 1]), "{}", line.label());
            }
        }
    }
}
