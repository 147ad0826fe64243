//! Loads, stores, updates and moves between memories against numpy (`tests/golden/moves.txt`, written by
//! `tests/scripts/move_vectors.py`): each line runs on the first target that has its way, on the interpreter and as
//! machine code of every width.

use crate::arrays::{Array, wrong};
use crate::covered::Form;
use crate::engine::{agree, build};
use ptoc_isa::{InstrId, Loc, MemorySpace, SCALES, Sem, Target, check_dtypes, check_move, lookup};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

const VECTORS: &str = include_str!("../golden/moves.txt");

struct Line {
    id: InstrId,
    way: Way,
    words: Vec<String>,
    /// Row and column of a window.
    at: Option<String>,
    given: Array,
    old: Option<Array>,
    out: Array,
}

/// From where to where, or where a tile lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    pub from: Option<MemorySpace>,
    pub to: MemorySpace,
}

impl Way {
    pub fn parse(text: &str) -> Way {
        let place = |name: &str| match Loc::from_name(name) {
            Some(loc) => MemorySpace::Tile(loc),
            None if name == "GM" => MemorySpace::Gm,
            None => panic!("{name} is no place"),
        };
        match text.split_once('>') {
            Some((from, to)) => Way { from: Some(place(from)), to: place(to) },
            None => Way { from: None, to: place(text) },
        }
    }

    pub fn text(self) -> String {
        self.from.map_or(String::new(), |f| format!("{f}>")) + &self.to.to_string()
    }
}

fn line(text: &str) -> Line {
    let mut parts = text.split('|');
    let (name, way) = parts.next().and_then(|p| p.split_once(' ')).expect("a name and a way");
    let id = lookup(name).expect("an instruction");
    let (mut words, mut at, mut given, mut old, mut out) = (Vec::new(), None, None, None, None);
    for part in parts {
        match part.split_once(' ') {
            Some(("at", rest)) => at = Some(rest.replace(' ', ", ")),
            Some(("in", rest)) => given = Some(Array::parse(rest)),
            Some(("old", rest)) => old = Some(Array::parse(rest)),
            Some(("out", rest)) => out = Some(Array::parse(rest)),
            _ => words.push(part.to_owned()),
        }
    }
    Line { id, way: Way::parse(way), words, at, given: given.expect("elements"), old, out: out.expect("a result") }
}

fn lines() -> impl Iterator<Item = Line> {
    VECTORS.lines().filter(|l| !l.starts_with('#')).map(line)
}

/// How elements of a tile come to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    Stored,
    /// As a factor of a product with ones, whose accumulator has this dtype.
    Multiplied(DType),
    /// As the bias of a product with zeros.
    Added(DType),
    /// As scales of ones that are quantised to f16.
    Scales,
}

/// The bytes of a tile in L1 can be seen through another one at its address: as which dtype, where nothing reads its
/// own.
pub fn seen_as(target: &Target, loc: Loc, d: DType) -> DType {
    match d {
        _ if loc != Loc::Mat || shown(target, loc, d).is_some() => d,
        DType::U8 => DType::I8,
        DType::I16 | DType::U16 => DType::F16,
        DType::U32 => DType::I32,
        DType::I64 => DType::U64,
        d => d,
    }
}

/// Whether anything reads such a tile, so that its elements can be seen at last.
pub fn visible(target: &Target, loc: Loc, d: DType) -> bool {
    shown(target, loc, seen_as(target, loc, d)).is_some()
}

fn shown(target: &Target, loc: Loc, d: DType) -> Option<Shown> {
    let leads = |to: MemorySpace| check_move(target, loc, to, d, d).is_ok();
    let factor = |left: bool| {
        let triple = target.triples.iter().find(|t| t.left == t.right && (if left { t.left } else { t.right }) == d);
        triple.map(|t| Shown::Multiplied(t.acc))
    };
    match loc {
        Loc::Left => factor(true),
        Loc::Right => factor(false),
        Loc::Bias => target.accumulators().contains(&d).then_some(Shown::Added(d)),
        Loc::Scaling => SCALES.contains(&d).then_some(Shown::Scales),
        // A mask is seen by what it selects.
        _ if leads(MemorySpace::Gm) || d == DType::Bool => Some(Shown::Stored),
        Loc::Mat => [Loc::Left, Loc::Bias, Loc::Scaling]
            .into_iter()
            .filter(|next| leads(MemorySpace::Tile(*next)))
            .find_map(|next| shown(target, next, d)),
        _ => None,
    }
}

/// A kernel in the making, with its arguments.
struct Writer<'t> {
    target: &'t Target,
    params: Vec<String>,
    tensors: Vec<Tensor>,
    body: String,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        writeln!(self.body, "    {text}").expect("fits");
    }

    fn argument(&mut self, name: &str, dir: &str, tensor: Tensor) {
        let shape: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        self.params.push(format!("{name}: {dir} {}[{}]", tensor.dtype(), shape.join(", ")));
        self.tensors.push(tensor);
    }

    /// Rows and columns of a tile with so many valid ones: whole boxes, or rows of whole blocks.
    fn room(&self, loc: Loc, d: DType, [r, c]: [usize; 2]) -> [usize; 2] {
        let memory = self.target.memory(loc);
        match memory.fractal_of(d.size()) {
            Some((rows, cols)) => [r.next_multiple_of(rows as usize), c.next_multiple_of(cols as usize)],
            None => [r, c.next_multiple_of((memory.row_align as usize / d.size()).max(1))],
        }
    }

    fn tile(&mut self, name: &str, loc: Loc, d: DType, [r, c]: [usize; 2], more: &str) {
        let mut room = [r, c];
        let turned = more.contains("DN");
        if turned {
            room.reverse();
        }
        room = self.room(loc, d, room);
        if turned {
            room.reverse();
        }
        let [rows, cols] = room;
        self.line(&format!("let {name} = tile {loc}<{d}, {rows}, {cols}, valid = ({r}, {c}){more}>;"));
    }

    /// A tile `d`, and the name and the dtype by which it is looked at.
    fn destination(&mut self, loc: Loc, d: DType, shape: [usize; 2]) -> (&'static str, DType) {
        self.tile("d", loc, d, shape, "");
        let seen = seen_as(self.target, loc, d);
        if seen == d {
            return ("d", d);
        }
        self.bind("d");
        self.tile("q", loc, seen, shape, "");
        self.bind("q");
        ("q", seen)
    }

    fn bind(&mut self, name: &str) {
        self.line(&format!("TASSIGN({name}, 64);"));
    }

    /// A tile `s` with these elements.
    fn source(&mut self, loc: Loc, a: &Array, bound: bool) {
        let [_, c] = a.shape;
        if loc == Loc::Acc {
            let triple = *self.target.triples.iter().find(|t| t.acc == a.dtype).expect("of that accumulator");
            let convert = |i: usize| scalar::convert_bits(a.dtype, triple.left, a.bits[i]);
            self.argument("x", "in", Tensor::from_fn(triple.left, &a.shape, convert).expect("small"));
            self.argument("e", "in", ones(triple.right, c));
            self.tile("s", loc, a.dtype, a.shape, "");
            if bound {
                self.bind("s");
            }
            self.line("TMATMUL(s, Left(x), Right(e));");
            return;
        }
        self.argument("x", "in", a.tensor());
        if a.dtype == DType::Bool {
            self.line("let s = Vec(x) > 0.0;");
            return;
        }
        self.tile("s", loc, a.dtype, a.shape, "");
        if bound {
            self.bind("s");
        }
        self.line("TLOAD(s, x);");
    }

    /// What `name` holds, as the last argument.
    fn show(&mut self, how: Shown, name: &str, loc: Loc, d: DType, shape: [usize; 2]) {
        let [r, c] = shape;
        let result = match how {
            Shown::Stored if d == DType::Bool => {
                for (t, value) in [("one", "1.0"), ("zero", "0.0"), ("chosen", "2.0")] {
                    self.tile(t, Loc::Vec, DType::F32, shape, "");
                    self.line(&format!("TEXPANDS({t}, {value});"));
                }
                self.line(&format!("TSEL(chosen, {name}, one, zero);\n    TSTORE(o, chosen);"));
                DType::F32
            }
            Shown::Stored => {
                self.line(&format!("TSTORE(o, {name});"));
                d
            }
            Shown::Multiplied(acc) => {
                self.argument("ones", "in", ones(d, if loc == Loc::Right { r } else { c }));
                self.tile("p", Loc::Acc, acc, shape, "");
                let factors = match loc {
                    Loc::Left => format!("{name}, Right(ones)"),
                    Loc::Right => format!("Left(ones), {name}"),
                    _ => format!("Left({name}), Right(ones)"),
                };
                self.line(&format!("TMATMUL(p, {factors});\n    TSTORE(o, p);"));
                acc
            }
            Shown::Added(acc) => {
                let triple = *self.target.triples.iter().find(|t| t.acc == acc).expect("of that accumulator");
                self.argument("a", "in", Tensor::zeros(triple.left, &[r, 16]).expect("small"));
                self.argument("b", "in", Tensor::zeros(triple.right, &[16, c]).expect("small"));
                self.tile("p", Loc::Acc, acc, shape, "");
                let bias = if loc == Loc::Bias { name.to_owned() } else { format!("Bias({name})") };
                self.line(&format!("TMATMUL_BIAS(p, Left(a), Right(b), {bias});\n    TSTORE(o, p);"));
                acc
            }
            Shown::Scales => {
                self.argument("a", "in", Tensor::from_fn(DType::I8, &[r, 1], |_| 1).expect("small"));
                self.argument("b", "in", Tensor::from_fn(DType::I8, &[1, c], |_| 1).expect("small"));
                self.tile("p", Loc::Acc, DType::I32, shape, "");
                let scales = if loc == Loc::Scaling { name.to_owned() } else { format!("Scaling({name})") };
                self.line(&format!("TMATMUL(p, Left(a), Right(b));\n    TSTORE_FP(o, p, {scales});"));
                DType::F16
            }
        };
        self.argument("o", "out", Tensor::zeros(result, &shape).expect("small"));
    }

    fn text(&self) -> String {
        format!("kernel k({}) {{\n{}}}\n", self.params.join(", "), self.body)
    }
}

fn ones(d: DType, n: usize) -> Tensor {
    let one = scalar::convert_bits(DType::F32, d, 0x3f80_0000);
    Tensor::from_fn(d, &[n, n], |i| if i / n == i % n { one } else { 0 }).expect("small")
}

impl Line {
    fn said(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }

    /// What the target makes of the result, if it has the way and anything can be seen of it.
    fn taken(&self, target: &Target) -> Option<Shown> {
        let (a, b) = (self.given.dtype, self.out.dtype);
        match (self.way.from, self.way.to) {
            (Some(from), to) => {
                check_move(target, from, to, a, b).ok()?;
                if to == MemorySpace::Gm { Some(Shown::Stored) } else { self.seen(target) }
            }
            (None, MemorySpace::Gm) => target.has_dtype(a).then_some(Shown::Stored),
            (None, MemorySpace::Tile(loc)) => {
                if check_dtypes(target, self.id, &[b], None).is_some() {
                    return None;
                }
                let legal = target.cube_dtypes(loc).is_none_or(|l| l.contains(&b));
                let direct = matches!(loc, Loc::Vec | Loc::Mat | Loc::Acc);
                let there = direct || check_move(target, Loc::Mat, loc, a, b).is_ok();
                if legal && there { self.seen(target) } else { None }
            }
        }
    }

    fn seen(&self, target: &Target) -> Option<Shown> {
        let MemorySpace::Tile(loc) = self.way.to else { return None };
        shown(target, loc, seen_as(target, loc, self.out.dtype))
    }

    fn kernel<'t>(&self, target: &'t Target, how: Shown) -> Writer<'t> {
        let mut w = Writer { target, params: Vec::new(), tensors: Vec::new(), body: String::new() };
        let (a, b) = (&self.given, &self.out);
        // Some words are said of the tile.
        let of_tile = |w: &&String| w.starts_with("layout") || w.starts_with("pad");
        let of_source = |w: &&String| w.starts_with("window");
        let window = self.words.iter().find_map(|w| w.strip_prefix("window ")).unwrap_or("");
        let tile: String = self.words.iter().filter(of_tile).map(|w| format!(", {w}")).collect();
        let words: String =
            self.words.iter().filter(|w| !of_tile(w) && !of_source(w)).map(|w| format!(", {w}")).collect();
        let turned = self.said("layout = DN");
        let name = self.id.get().name;
        let result = |o: &Array| match &self.old {
            Some(old) => old.tensor(),
            None => Tensor::zeros(o.dtype, &o.shape).expect("small"),
        };
        match (self.id.get().sem, self.way.from, self.way.to) {
            (Sem::Load, _, MemorySpace::Tile(loc)) => {
                w.argument("x", "in", a.tensor());
                let [r, c] = a.shape;
                w.tile("d", loc, b.dtype, if turned { [c, r] } else { [r, c] }, &tile);
                w.line(if turned { "TLOAD(d, x.T);" } else { "TLOAD(d, x);" });
                let [r, c] = b.shape;
                let whole = if self.said("pad = Zero") { format!("d.valid({r}, {c})") } else { "d".to_owned() };
                if turned {
                    w.line(&format!("copy(o, {whole});"));
                    w.argument("o", "out", result(b));
                } else {
                    w.show(how, &whole, loc, b.dtype, b.shape);
                }
            }
            (Sem::Store, Some(MemorySpace::Tile(loc)), _) => {
                if turned {
                    w.argument("x", "in", a.tensor());
                    w.tile("s", loc, a.dtype, a.shape, &tile);
                    w.line(&format!("copy(s, x);\n    TSTORE(o.T, s{words});"));
                } else {
                    w.source(loc, a, false);
                    w.line(&format!("TSTORE(o, s{words});"));
                }
                w.argument("o", if self.old.is_some() { "inout" } else { "out" }, result(b));
            }
            (Sem::Move, Some(MemorySpace::Tile(from)), MemorySpace::Tile(to)) => {
                w.source(from, a, false);
                let (seen, dtype) = w.destination(to, b.dtype, b.shape);
                w.line(&format!("TMOV(d, s{window}{words});"));
                w.show(how, seen, to, dtype, b.shape);
            }
            (Sem::Fixpipe(_), Some(MemorySpace::Tile(from)), MemorySpace::Tile(to)) => {
                w.source(from, a, false);
                w.tile("d", to, b.dtype, b.shape, "");
                if let Some(old) = &self.old {
                    w.argument("old", "in", old.tensor());
                    w.line("TLOAD(d, old);");
                }
                let at = self.at.as_ref().expect("a window");
                w.line(&format!("{}(d, s, {at}{words});", self.id.get().written_name()));
                w.show(how, "d", to, b.dtype, b.shape);
            }
            (Sem::Assign, _, MemorySpace::Tile(loc @ (Loc::Vec | Loc::Mat | Loc::Acc))) => {
                w.source(loc, a, true);
                w.show(how, "s", loc, b.dtype, b.shape);
            }
            (Sem::Assign, _, MemorySpace::Tile(loc)) => {
                w.source(Loc::Mat, a, false);
                w.tile("d", loc, b.dtype, b.shape, "");
                w.bind("d");
                w.line("TMOV(d, s);");
                w.show(how, "d", loc, b.dtype, b.shape);
            }
            (Sem::Expand, _, MemorySpace::Tile(loc)) => {
                w.argument("x", "in", Tensor::from_fn(a.dtype, &[1], |_| a.bits[0]).expect("small"));
                w.tile("d", loc, b.dtype, b.shape, "");
                w.line("TEXPANDS(d, x[0]);");
                w.show(how, "d", loc, b.dtype, b.shape);
            }
            (Sem::Prefetch, ..) => {
                w.line("TPREFETCH_ASYNC(x);");
                w.source(Loc::Vec, a, false);
                w.show(how, "s", Loc::Vec, b.dtype, b.shape);
            }
            _ => panic!("{name} {}", self.way.text()),
        }
        w
    }

    fn run(&self) -> Result<(), String> {
        let label = format!("{} {} {} {}", self.id.get().name, self.way.text(), self.out.dtype, self.words.join(" "));
        let mut there = Target::pto().iter().filter_map(|t| Some((t, self.taken(t)?)));
        let (target, how) = there.next().ok_or_else(|| format!("{label}: no target has it"))?;
        let w = self.kernel(target, how);
        let text = w.text();
        let built = build(&text, &target.name, &[], &[]).map_err(|r| format!("{label}: {r:?}{text}"))?;
        let stopped = |(code, message)| format!("{label}: {code}: {message}");
        let got =
            agree(&built, &[], &w.tensors, &[1]).map_err(|e| format!("{label}: {e}\n{text}"))?.map_err(stopped)?;
        let got = got.last().expect("a result");
        let (d, out) = (got.dtype(), &self.out);
        let seen = match self.way.to {
            MemorySpace::Tile(loc) => seen_as(target, loc, out.dtype),
            MemorySpace::Gm => out.dtype,
        };
        let want = match how {
            Shown::Stored => out.tensor(),
            // The lower half of a scale is an f32.
            Shown::Scales => {
                let f32s = |i: usize| scalar::convert_bits(DType::F32, d, out.bits[i] & 0xffff_ffff);
                Tensor::from_fn(d, &out.shape, f32s).expect("small")
            }
            Shown::Multiplied(_) | Shown::Added(_) => {
                Tensor::from_fn(d, &out.shape, |i| scalar::convert_bits(seen, d, out.bits[i])).expect("small")
            }
        };
        let nan = |bits| d.is_float() && scalar::is_nan(d, bits);
        // Of a product that is 0 the sign is lost.
        let zero = |bits| how != Shown::Stored && scalar::bits_to_f64(d, bits) == 0.0;
        // What is computed may be any NaN; what is moved keeps its bits.
        let any = self.old.is_some() || how != Shown::Stored;
        let same = |a, b| a == b || (any && nan(a) && nan(b)) || (d.is_float() && zero(a) && zero(b));
        wrong(got, &want, same).map_or(Ok(()), |why| Err(format!("{label} on {}: {why}\n{text}", target.name)))
    }
}

/// What there are vectors of.
pub fn forms() -> Vec<Form> {
    let form = |l: Line| {
        let ways = !matches!(l.id.get().sem, Sem::Prefetch);
        let tiles = match l.id.get().sem {
            Sem::Load | Sem::Store | Sem::Move | Sem::Fixpipe(_) => vec![l.out.dtype, l.given.dtype],
            _ => vec![l.out.dtype],
        };
        let way = if ways { l.way.text() } else { String::new() };
        Form::new(l.id, &tiles, &way, l.words.iter().map(String::as_str))
    };
    lines().map(form).collect()
}

/// A kernel that does this, if there is one that shows it.
pub fn kernel(target: &Target, form: &Form) -> Option<String> {
    let (out, given) = (*form.tiles.first()?, *form.tiles.last()?);
    let way = Way::parse(&form.way);
    let array = |dtype, r, c| Array { dtype, shape: [r, c], bits: vec![0; r * c] };
    let how = match way.to {
        MemorySpace::Gm => Shown::Stored,
        MemorySpace::Tile(loc) => shown(target, loc, seen_as(target, loc, out))?,
    };
    // Of what is read along one row there is one row.
    let (r, c) = if matches!(how, Shown::Added(_) | Shown::Scales) { (1, 64) } else { (32, 32) };
    let words: Vec<String> = form.words.iter().cloned().collect();
    let old = words.iter().any(|w| w.starts_with("atomic")).then(|| array(out, r, c));
    let line = Line { id: form.id, way, words, at: None, given: array(given, r, c), old, out: array(out, r, c) };
    Some(line.kernel(target, how).text())
}

fn part(k: usize) {
    let wrong: Vec<String> = lines().skip(k).step_by(2).filter_map(|l| l.run().err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines().count() > 200);
}

#[test]
fn moves_of_numpy_0() {
    part(0);
}

#[test]
fn moves_of_numpy_1() {
    part(1);
}
