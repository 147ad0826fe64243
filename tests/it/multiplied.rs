//! Matrix products against numpy (`tests/golden/products.txt`, written by `tests/scripts/product_vectors.py`): each
//! line runs on the first target that has its triple, on the interpreter and as machine code of every width.

use crate::arrays::{Array, wrong};
use crate::covered::Form;
use crate::engine::{agree, build};
use ptoc_isa::{InstrId, Loc, Target, Triple, lookup};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

const VECTORS: &str = include_str!("../golden/products.txt");

struct Line {
    id: InstrId,
    words: Vec<String>,
    acc: DType,
    a: Array,
    b: Array,
    /// The accumulator is the product of the first and of the diagonal matrix with the second.
    start: Option<(Array, Array)>,
    bias: Option<Array>,
    out: Array,
}

fn line(text: &str) -> Line {
    let mut parts = text.split('|');
    let mut head = parts.next().expect("a name").split(' ').map(str::to_owned);
    let name = head.next().expect("a name");
    let mut rest: Vec<(&str, &str)> = parts.map(|p| p.split_once(' ').expect("a part")).collect();
    let mut take = |what: &str| {
        let at = rest.iter().position(|p| p.0 == what)?;
        Some(rest.remove(at).1)
    };
    let acc = take("acc").and_then(DType::from_name).expect("an accumulator");
    let mut array = |what: &str| take(what).map(Array::parse);
    let (a, b) = array("a").zip(array("b")).expect("factors");
    let (start, bias, out) = (array("c").zip(array("d")), array("bias"), array("out").expect("a result"));
    assert!(rest.is_empty(), "{rest:?}");
    Line { id: lookup(&name).expect("an instruction"), words: head.collect(), acc, a, b, start, bias, out }
}

fn lines() -> impl Iterator<Item = Line> {
    VECTORS.lines().filter(|l| !l.starts_with('#')).map(line)
}

/// The kernel of a product of `m` rows, `n` columns and depth `k`, whatever its row reads; arguments are a, b, then
/// those of the start.
pub fn kernel(id: InstrId, t: Triple, words: &[String], [m, k, n]: [usize; 3]) -> String {
    let Triple { acc, left, right } = t;
    let row = id.get();
    let reads = |loc: Loc| row.sources().any(|s| row.operands[s].takes(loc));
    let (mut params, mut made, mut operands) = (String::new(), String::new(), "acc".to_owned());
    if reads(Loc::Acc) {
        write!(params, "c: in {left}[{m}, {n}], d: in {right}[{n}, {n}], ").expect("fits");
        made = "    TMATMUL(acc, Left(c), Right(d));\n".to_owned();
        operands += ", acc";
    }
    operands += ", Left(a), Right(b)";
    if reads(Loc::Bias) {
        write!(params, "z: in {acc}[{n}], ").expect("fits");
        operands += ", Bias(z)";
    }
    let words: String = words.iter().map(|w| format!(", {w}")).collect();
    let (rows, cols) = (m.next_multiple_of(16), n.next_multiple_of(16));
    format!(
        "kernel k(a: in {left}[{m}, {k}], b: in {right}[{k}, {n}], {params}o: out {acc}[{m}, {n}]) {{\n    \
         let acc = tile Acc<{acc}, {rows}, {cols}, valid = ({m}, {n})>;\n{made}    {}({operands}{words});\n    \
         TSTORE(o, acc);\n}}\n",
        row.name
    )
}

impl Line {
    fn triple(&self) -> Triple {
        Triple { acc: self.acc, left: self.a.dtype, right: self.b.dtype }
    }

    fn run(&self) -> Result<(), String> {
        let label = format!("{} {} {}", self.id.get().name, self.triple(), self.words.join(" "));
        let target = Target::pto().iter().find(|t| t.triples.contains(&self.triple()));
        let target = target.ok_or_else(|| format!("{label}: no target has it"))?;
        let [m, k] = self.a.shape;
        let n = self.b.shape[1];
        let text = kernel(self.id, self.triple(), &self.words, [m, k, n]);
        let mut tensors = vec![self.a.tensor(), self.b.tensor()];
        if let Some((c, d)) = &self.start {
            let diagonal = |i: usize| if i / n == i % n { d.bits[i % n] } else { 0 };
            tensors.extend([c.tensor(), Tensor::from_fn(d.dtype, &[n, n], diagonal).expect("small")]);
        }
        tensors.extend(self.bias.as_ref().map(|z| Tensor::from_fn(z.dtype, &[n], |i| z.bits[i]).expect("small")));
        tensors.push(Tensor::zeros(self.acc, &[m, n]).expect("small"));
        let built = build(&text, &target.name, &[], &[]).map_err(|r| format!("{label}: {r:?}{text}"))?;
        let stopped = |(code, message)| format!("{label}: {code}: {message}");
        let got = agree(&built, &[], &tensors, &[1]).map_err(|e| format!("{label}: {e}\n{text}"))?.map_err(stopped)?;
        let (got, want, d) = (got.last().expect("a result"), self.out.tensor(), self.acc);
        let nan = |bits| d.is_float() && scalar::is_nan(d, bits);
        let same = |a, b| a == b || (nan(a) && nan(b));
        wrong(got, &want, same).map_or(Ok(()), |why| Err(format!("{label} on {}: {why}\n{text}", target.name)))
    }
}

/// What there are vectors of.
pub fn forms() -> Vec<Form> {
    let of = |l: Line| Form::new(l.id, &[l.acc, l.a.dtype, l.b.dtype], "", l.words.iter().map(String::as_str));
    lines().map(of).collect()
}

#[test]
fn products_of_numpy() {
    let wrong: Vec<String> = lines().filter_map(|l| l.run().err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines().count() > 80);
}
