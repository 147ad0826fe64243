//! What leaves the accumulator, against numpy (`tests/golden/fixpipe.txt`, written by
//! `tests/scripts/fixpipe_vectors.py`): each line runs on every target that has the move, to every place, on the
//! interpreter and as machine code of every width.

use crate::covered::Form;
use crate::engine::{agree, build};
use crate::moved::seen_as;
use ptoc_isa::{InstrId, Loc, MemorySpace, Sem, Target, check_move_as, lookup, overloads};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

const VECTORS: &str = include_str!("../golden/fixpipe.txt");
const ROWS: usize = 16;
const COLS: usize = 32;

#[derive(Default)]
struct Line {
    name: String,
    acc: Option<DType>,
    factor: Option<DType>,
    a: Vec<u64>,
    diagonal: Vec<u64>,
    scale: Vec<u64>,
    at: Option<(usize, usize)>,
    old: Vec<u64>,
    relu: bool,
    /// It is added to what is there.
    add: bool,
    to: Option<DType>,
    shape: (usize, usize),
    out: Vec<u64>,
}

fn dtype(name: &str) -> DType {
    DType::from_name(name).expect("a dtype")
}

fn digits(d: DType, text: &str) -> Vec<u64> {
    let number = |d: &[u8]| u64::from_str_radix(std::str::from_utf8(d).expect("digits"), 16).expect("digits");
    text.as_bytes().chunks(2 * d.size()).map(number).collect()
}

fn line(text: &str) -> Line {
    let mut parts = text.split('|');
    let mut l = Line { name: parts.next().expect("a name").to_owned(), ..Line::default() };
    let mut old = "";
    for part in parts {
        let words: Vec<&str> = part.split(' ').collect();
        match words[..] {
            ["acc", d] => l.acc = Some(dtype(d)),
            ["a", d, hex] => {
                l.factor = Some(dtype(d));
                l.a = digits(dtype(d), hex);
            }
            ["b", hex] => l.diagonal = digits(l.factor.expect("a before b"), hex),
            ["scale", hex] => l.scale = digits(DType::F32, hex),
            ["at", r, c] => l.at = Some((r.parse().expect("a row"), c.parse().expect("a column"))),
            ["old", hex] => old = hex,
            ["relu"] => l.relu = true,
            ["add"] => l.add = true,
            ["out", d, shape, hex] => {
                let (r, c) = shape.split_once('x').expect("a shape");
                l.shape = (r.parse().expect("rows"), c.parse().expect("columns"));
                l.to = Some(dtype(d));
                l.out = digits(dtype(d), hex);
                l.old = digits(dtype(d), old);
            }
            _ => panic!("{part}"),
        }
    }
    l
}

fn lines() -> Vec<Line> {
    VECTORS.lines().filter(|l| !l.starts_with('#')).map(line).collect()
}

/// Where the result can be seen.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shown {
    /// It is stored from where it is.
    Stored,
    /// A product with ones on the diagonal shows it.
    Multiplied,
}

impl Line {
    fn pair(&self) -> (DType, DType) {
        (self.acc.expect("an accumulator"), self.to.expect("a result"))
    }

    fn places(&self) -> &'static [MemorySpace] {
        match &self.name[..4] {
            "TSTO" => &[MemorySpace::Gm],
            "TMOV" => &[MemorySpace::Tile(Loc::Vec), MemorySpace::Tile(Loc::Mat)],
            _ => &[MemorySpace::Tile(Loc::Mat)],
        }
    }

    /// The dtype as which the result is looked at.
    fn seen(&self, target: &Target, place: MemorySpace) -> DType {
        match place {
            MemorySpace::Tile(loc) => seen_as(target, loc, self.pair().1),
            MemorySpace::Gm => self.pair().1,
        }
    }

    fn shown(&self, target: &Target, place: MemorySpace) -> Option<Shown> {
        if place != MemorySpace::Tile(Loc::Mat) {
            return Some(Shown::Stored);
        }
        let to = self.seen(target, place);
        let takes = |next| target.move_rule(place, next).is_some_and(|m| m.pairs.contains(&(to, to)));
        match (takes(MemorySpace::Gm), takes(MemorySpace::Tile(Loc::Left))) {
            (true, _) => Some(Shown::Stored),
            (_, true) => target.accumulator_of(to, to).map(|_| Shown::Multiplied),
            _ => None,
        }
    }

    /// The kernel, its arguments, and the dtype of the result, which is the last of them. `scales`: the dtype of a
    /// table of them.
    fn kernel(&self, target: &Target, place: MemorySpace, shown: Shown, scales: DType) -> (String, Vec<Tensor>, DType) {
        let (acc, to) = self.pair();
        let factor = self.factor.expect("a factor");
        let (rows, cols) = self.shape;
        let mut params = format!("x: in {factor}[{ROWS}, {COLS}], e: in {factor}[{COLS}, {COLS}]");
        let diagonal = |i: usize| if i / COLS == i % COLS { self.diagonal[i % COLS] } else { 0 };
        let mut tensors = vec![
            Tensor::from_fn(factor, &[ROWS, COLS], |i| self.a[i]).expect("small"),
            Tensor::from_fn(factor, &[COLS, COLS], diagonal).expect("small"),
        ];
        let mut body =
            format!("    let acc = tile Acc<{acc}, {ROWS}, {COLS}>;\n    TMATMUL(acc, Left(x), Right(e));\n");
        let mut operands = vec!["acc".to_owned()];
        match &self.scale[..] {
            [] => {}
            [one] => operands.push(format!("{:?}", f32::from_bits(*one as u32))),
            each => {
                write!(params, ", s: in {scales}[{}]", each.len()).expect("fits");
                // What is above the lower half is not looked at.
                let above = if scales == DType::U64 { 0xdead_beef_0000_0000 } else { 0 };
                tensors.push(Tensor::from_fn(scales, &[each.len()], |i| each[i] | above).expect("small"));
                operands.push("Scaling(s)".to_owned());
            }
        }
        operands.extend(self.at.map(|(r, c)| format!("{r}, {c}")));
        operands.extend(self.relu.then(|| "Relu".to_owned()));
        operands.extend(self.add.then(|| "atomic = true".to_owned()));
        let seen = self.seen(target, place);
        let result = match shown {
            Shown::Stored => to,
            Shown::Multiplied => target.accumulator_of(seen, seen).expect("shown by a product"),
        };
        let name = &self.name;
        let operands = operands.join(", ");
        match place {
            MemorySpace::Gm => writeln!(body, "    {name}(o, {operands});").expect("fits"),
            MemorySpace::Tile(loc) => {
                let wide = match self.old.is_empty() {
                    true => cols.next_multiple_of(if to.size() == 1 { 32 } else { 16 }),
                    false => cols,
                };
                let mut tile = |tile: &str, d: DType| {
                    let bound = if seen == to { String::new() } else { format!("\n    TASSIGN({tile}, 64);") };
                    writeln!(
                        body,
                        "    let {tile} = tile {loc}<{d}, {rows}, {wide}, valid = ({rows}, {cols})>;{bound}"
                    )
                    .expect("fits");
                };
                tile("d", to);
                let looked = if seen == to { "d" } else { "q" };
                if seen != to {
                    tile(looked, seen);
                }
                if !self.old.is_empty() {
                    write!(params, ", old: in {to}[{rows}, {cols}]").expect("fits");
                    tensors.push(Tensor::from_fn(to, &[rows, cols], |i| self.old[i]).expect("small"));
                    body.push_str("    TLOAD(d, old);\n");
                }
                writeln!(body, "    {name}(d, {operands});").expect("fits");
                if shown == Shown::Stored {
                    writeln!(body, "    TSTORE(o, d);").expect("fits");
                } else {
                    write!(params, ", ones: in {seen}[{cols}, {cols}]").expect("fits");
                    let one = scalar::convert_bits(DType::F32, seen, 0x3f80_0000);
                    let ones = |i: usize| if i / cols == i % cols { one } else { 0 };
                    tensors.push(Tensor::from_fn(seen, &[cols, cols], ones).expect("small"));
                    writeln!(
                        body,
                        "    let p = tile Acc<{result}, {rows}, {}, valid = ({rows}, {cols})>;",
                        cols.next_multiple_of(16)
                    )
                    .expect("fits");
                    writeln!(body, "    TMATMUL(p, Left({looked}), Right(ones));\n    TSTORE(o, p);").expect("fits");
                }
            }
        }
        let before = |i: usize| if self.add { self.old[i] } else { 0 };
        tensors.push(Tensor::from_fn(result, &[rows, cols], before).expect("small"));
        let dir = if self.add { "inout" } else { "out" };
        (format!("kernel k({params}, o: {dir} {result}[{rows}, {cols}]) {{\n{body}}}\n"), tensors, result)
    }

    fn run(&self, target: &Target, place: MemorySpace, shown: Shown, scales: DType) -> Result<(), String> {
        let (text, tensors, d) = self.kernel(target, place, shown, scales);
        let seen = self.seen(target, place);
        let label = format!("{} from {:?} to {place} on {}", self.name, self.pair(), target.name);
        let built = build(&text, &target.name, &[], &[]).map_err(|r| format!("{label}: {r:?}{text}"))?;
        let stopped = |(code, message)| format!("{label}: {code}: {message}");
        let got = agree(&built, &[], &tensors, &[1]).map_err(|e| format!("{label}: {e}\n{text}"))?.map_err(stopped)?;
        let result = got.last().expect("a result");
        for i in 0..result.len() {
            let (got, mut want) = (result.get_bits(i), self.out[i]);
            if shown == Shown::Multiplied {
                want = scalar::convert_bits(seen, d, want);
                // A sum of products has no negative zero.
                let number = |bits| scalar::bits_to_f64(d, bits);
                if number(want) == 0.0 && number(got) == 0.0 {
                    continue;
                }
            }
            if got != want {
                let shown = |b| scalar::format_bits(d, b);
                return Err(format!(
                    "{label}: element {:?} is {}, numpy has {}\n{text}",
                    result.unravel(i),
                    shown(got),
                    shown(want)
                ));
            }
        }
        Ok(())
    }
}

impl Line {
    /// On every target that has the move, to every place; with the dtype of a table of scales.
    fn launches(&self) -> Vec<(&'static Target, MemorySpace, Shown, DType)> {
        let (mut all, quantised) = (Vec::new(), !self.scale.is_empty());
        for target in Target::pto() {
            for &place in self.places() {
                if check_move_as(target, MemorySpace::Tile(Loc::Acc), place, self.pair(), quantised).is_err() {
                    continue;
                }
                let Some(shown) = self.shown(target, place) else { continue };
                // Without a table one launch is enough.
                let scales = ptoc_isa::scales(target).into_iter().take(if self.scale.len() > 1 { 2 } else { 1 });
                all.extend(scales.map(|d| (target, place, shown, d)));
            }
        }
        all
    }

    fn row(&self) -> InstrId {
        let first = lookup(&self.name).expect("an instruction");
        let this = |id: &InstrId| match id.get().sem {
            Sem::Fixpipe(f) => f.quantised != self.scale.is_empty(),
            Sem::Move | Sem::Store => self.scale.is_empty(),
            _ => false,
        };
        overloads(first).find(this).expect("such a form")
    }
}

/// What there are vectors of.
pub fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for l in lines() {
        let (acc, to) = l.pair();
        for (_, place, _, scales) in l.launches() {
            let tiles = [to, acc].into_iter().chain((l.scale.len() > 1).then_some(scales));
            let words = l.relu.then_some("Relu").into_iter().chain(l.add.then_some("atomic = true"));
            all.push(Form::new(l.row(), &tiles.collect::<Vec<_>>(), &format!("Acc>{place}"), words));
        }
    }
    all
}

/// Runs the lines of which `k` is the number modulo 4.
fn part(k: usize) {
    let (mut wrong, mut count) = (String::new(), 0);
    for l in lines().iter().skip(k).step_by(4) {
        for (target, place, shown, scales) in l.launches() {
            count += 1;
            if let Err(why) = l.run(target, place, shown, scales) {
                writeln!(wrong, "{why}").expect("fits");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 60, "{count}");
}

#[test]
fn what_leaves_the_accumulator_0() {
    part(0);
}

#[test]
fn what_leaves_the_accumulator_1() {
    part(1);
}

#[test]
fn what_leaves_the_accumulator_2() {
    part(2);
}

#[test]
fn what_leaves_the_accumulator_3() {
    part(3);
}

/// What SET_QUANT_SCALAR and SET_QUANT_VECTOR set for a TPUSH is the scale of the move that fills the slot.
#[test]
fn slots_of_a_ring_are_filled_quantised() {
    let kernel = |ring: &str| {
        format!(
            "#[sync(manual)]\nkernel k(a: in i8[16, 32], b: in i8[32, 32], s: in f32[32], y: out i8[16, 32], z: out \
             i8[16, 32]) {{\n    \
             let (am, bm, sm) = (tile Mat<i8, 16, 32>, tile Mat<i8, 32, 32>, tile Mat<f32, 1, 32>);\n    \
             let (l, r, c) = (tile Left<i8, 16, 32>, tile Right<i8, 32, 32>, tile Scaling<f32, 1, 32>);\n    \
             let acc = tile Acc<i32, 16, 32>;\n    \
             let (loaded, scaled) = (event<MTE2, MTE1>, event<MTE2, FIX>);\n    \
             let (moved, done) = (event<MTE1, M>, event<M, FIX>);\n    \
             TLOAD(am, a); TLOAD(bm, b); set(loaded);\n    TLOAD(sm, s); set(scaled);\n    \
             wait(loaded); TMOV(l, am); TMOV(r, bm); set(moved);\n    wait(moved); TMATMUL(acc, l, r); set(done);\n    \
             wait(scaled); TMOV(c, sm);\n    wait(done);\n{ring}}}\n"
        )
    };
    let text = kernel(
        "    let slots = ring<FIX, MTE3>(tile Vec<i8, 16, 32>[2]);\n    \
         TMOV(TALLOC(slots), acc, 0.05); TPUSH(slots);\n    \
         TMOV_FP(TALLOC(slots), acc, c, Relu); TPUSH(slots);\n    TSTORE(y, TPOP(slots)); TFREE(slots);\n    \
         TSTORE(z, TPOP(slots)); TFREE(slots);\n",
    );
    let built = build(&text, "a5", &[], &[]).unwrap_or_else(|r| panic!("{r:?}{text}"));
    let number = |i: usize| (i * 37 % 256) as u64;
    let tensors = [
        Tensor::from_fn(DType::I8, &[ROWS, COLS], number).expect("small"),
        Tensor::from_fn(DType::I8, &[COLS, COLS], |i| number(i + 5)).expect("small"),
        Tensor::from_fn(DType::F32, &[COLS], |j| (0.01 * (j as f32 - 16.0)).to_bits().into()).expect("small"),
        Tensor::zeros(DType::I8, &[ROWS, COLS]).expect("small"),
        Tensor::zeros(DType::I8, &[ROWS, COLS]).expect("small"),
    ];
    let got = agree(&built, &[], &tensors, &[1]).expect("equal").expect("runs");
    let signed = |n: usize, i: usize| i64::from(tensors[n].get_bits(i) as i8);
    for i in 0..ROWS {
        for j in 0..COLS {
            let sum: i64 = (0..COLS).map(|k| signed(0, i * COLS + k) * signed(1, k * COLS + j)).sum();
            let byte = |x: f32| u64::from((x.round_ties_even().clamp(-128.0, 127.0) as i8) as u8);
            let scale = f32::from_bits(tensors[2].get_bits(j) as u32);
            assert_eq!(got[3].get_bits(i * COLS + j), byte(sum as f32 * 0.05), "({i}, {j})");
            assert_eq!(got[4].get_bits(i * COLS + j), byte(sum.max(0) as f32 * scale), "({i}, {j})");
        }
    }
}
