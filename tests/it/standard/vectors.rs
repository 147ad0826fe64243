//! Lines of numpy (`tests/golden/standard.txt`, written by `tests/scripts/standard_vectors.py`), each on the
//! interpreter and as machine code on one and two threads.

use super::{Arrays, Entry};
use ptoc_driver::library::Report;
use ptoc_tensor::{DType, Tensor, scalar};

const VECTORS: &str = include_str!("../../golden/standard.txt");

/// What a call must leave.
enum Wanted {
    /// Arrays; of those of floats each element within `relative * |wanted| + absolute`.
    Results(Arrays, (f64, f64)),
    /// A diagnostic of this code that says this.
    Error(String, String),
}

struct Line {
    /// What it shows.
    label: String,
    module: String,
    entry: String,
    settings: Vec<(String, String)>,
    inputs: Arrays,
    wanted: Wanted,
}

/// `NAME DTYPE SHAPE HEX`
fn array(text: &str) -> (String, Tensor) {
    let [name, dtype, shape, digits] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let dtype = DType::from_name(dtype).expect("a dtype");
    let shape: Vec<usize> = shape.split('x').map(|n| n.parse().expect("an extent")).collect();
    let number = |i: usize| {
        let width = 2 * dtype.size();
        u64::from_str_radix(&digits[i * width..(i + 1) * width], 16).expect("digits")
    };
    (name.to_owned(), Tensor::from_fn(dtype, &shape, number).expect("it fits"))
}

fn line(text: &str) -> Line {
    let mut parts = text.split('|');
    let (label, head) = (parts.next().expect("a label").to_owned(), parts.next().expect("an entry"));
    let mut words = head.split(' ').map(str::to_owned);
    let (module, entry) = (words.next().expect("a module"), words.next().expect("an entry"));
    let settings = words.map(|w| w.split_once('=').map(|(n, v)| (n.into(), v.into())).expect("a setting")).collect();
    let (mut inputs, mut results, mut tolerance, mut error) = (Arrays::new(), Arrays::new(), (0.0, 0.0), None);
    for part in parts {
        let (kind, rest) = part.split_once(' ').expect("a part");
        match kind {
            "in" => inputs.extend([array(rest)]),
            "out" => results.extend([array(rest)]),
            "within" => {
                let (r, a) = rest.split_once(' ').expect("two numbers");
                tolerance = (r.parse().expect("a number"), a.parse().expect("a number"));
            }
            "error" => error = rest.split_once(' ').map(|(c, t)| Wanted::Error(c.into(), t.into())),
            other => panic!("{other}"),
        }
    }
    let wanted = error.unwrap_or(Wanted::Results(results, tolerance));
    Line { label, module, entry, settings, inputs, wanted }
}

/// The first element that is not what it should be.
fn wrong(got: &Tensor, want: &Tensor, (relative, absolute): (f64, f64)) -> Option<String> {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return Some(format!("is {}, and not {}", got.signature(), want.signature()));
    }
    let same = |i: usize| {
        let (x, y) = (got.get_f64(i), want.get_f64(i));
        got.get_bits(i) == want.get_bits(i)
            || want.dtype().is_float() && ((x - y).abs() <= relative * y.abs() + absolute || x.is_nan() && y.is_nan())
    };
    let at = (0..want.len()).find(|&i| !same(i))?;
    let shown = |t: &Tensor| scalar::format_bits(t.dtype(), t.get_bits(at));
    Some(format!("{:?} is {}, numpy has {}", want.unravel(at), shown(got), shown(want)))
}

fn judge(line: &Line, entry: &Result<Entry, Report>, threads: usize) -> Result<(), String> {
    let found = entry.as_ref().map_err(Report::clone).and_then(|e| e.call(&line.inputs, threads));
    match (found, &line.wanted) {
        (Ok(found), Wanted::Results(wanted, tolerance)) => {
            for (name, want) in wanted {
                if let Some(message) = wrong(&found[name], want, *tolerance) {
                    return Err(format!("{name}{message}"));
                }
            }
            Ok(())
        }
        (Err(report), Wanted::Error(code, text)) => {
            let said = report.rendered(false);
            let right = report.code().is_some_and(|c| c.as_str() == code) && said.contains(text.as_str());
            if right { Ok(()) } else { Err(format!("no {code} that says `{text}`, but\n{said}")) }
        }
        (Ok(_), Wanted::Error(code, _)) => Err(format!("no {code}")),
        (Err(report), Wanted::Results(..)) => Err(report.rendered(false)),
    }
}

/// Every line whose label begins so.
#[track_caller]
fn hold(label: &str) {
    let lines: Vec<Line> = VECTORS.lines().filter(|l| l.starts_with(label)).map(line).collect();
    assert!(!lines.is_empty(), "no line begins with {label}");
    let mut wrong = Vec::new();
    for line in &lines {
        let Line { label, module, entry, settings, .. } = line;
        let words: Vec<_> = settings.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        for (backend, numbers) in [("interp", &[1][..]), ("cpu", &[1, 2])] {
            let built = Entry::new(module, entry, &words, backend);
            for &threads in numbers {
                if let Err(message) = judge(line, &built, threads) {
                    wrong.push(format!("{label}: {module}::{entry} {settings:?}, {backend}, {threads}: {message}"));
                }
            }
        }
    }
    let shown = wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {}\n{shown}", wrong.len(), 3 * lines.len());
}

#[test]
fn scans_of_numpy() {
    hold("scan");
}

#[test]
fn sorts_of_numpy() {
    hold("sort");
}

#[test]
fn row_56_hash_tables() {
    hold("row 56");
}

#[test]
fn row_57_keys() {
    hold("row 57");
}

#[test]
fn row_58_neighbour_maps() {
    hold("row 58");
}

#[test]
fn row_59_symmetry() {
    hold("row 59");
}

#[test]
fn row_60_explicit_products_and_gradients() {
    hold("row 60");
}

#[test]
fn row_61_implicit_products() {
    hold("row 61");
}

#[test]
fn row_63_masked_gradients() {
    hold("row 63");
}

#[test]
fn row_64_plans() {
    hold("row 64");
}

#[test]
fn row_97_preconditions() {
    hold("row 97");
}

#[test]
fn strided_and_transposed_convolutions() {
    hold("strided");
}

#[test]
fn codes_along_curves() {
    hold("curve");
}

#[test]
fn samples_and_their_gradients() {
    hold("sampling");
}
