//! From a row of the instruction table to a kernel text that does nothing but this instruction, with its arguments.

use super::model::{self, Model};
use crate::engine::{Content, Noise, noise};
use ptoc_isa::{
    BinOp, CmpOp, DTypeRule, Instr, InstrId, Loc, MemorySpace, MoveRule, OperandKind, Read, Role, RoundMode, Sem,
    ShapeRule, Target, allowed_dtypes, allowed_tuples, check_dtypes,
};
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt::Write as _;

/// Blocks of the vector kernels: 32 rows, so that a column of 8-bit elements is a legal tile; more than 64 columns, so
/// that a partial sum of a row gets two elements.
pub const BLOCK: (usize, usize) = (32, 96);
/// Blocks of the matrix kernels.
pub const CUBE: usize = 32;

/// An extent of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    Rows,
    Cols,
    Depth,
    /// Blocks of rows, blocks of columns.
    RowBlocks,
    ColBlocks,
    Fixed(usize),
}

impl Extent {
    fn text(self) -> String {
        match self {
            Extent::Rows => "R".into(),
            Extent::Cols => "C".into(),
            Extent::Depth => "K".into(),
            Extent::RowBlocks => "RB".into(),
            Extent::ColBlocks => "CB".into(),
            Extent::Fixed(n) => n.to_string(),
        }
    }
}

/// Sizes of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    pub rows: usize,
    pub cols: usize,
    pub depth: usize,
}

impl Sizes {
    pub fn dims(self) -> [(&'static str, i64); 5] {
        let all = [Extent::Rows, Extent::Cols, Extent::Depth, Extent::RowBlocks, Extent::ColBlocks];
        let names = ["R", "C", "K", "RB", "CB"];
        std::array::from_fn(|i| (names[i], self.of(all[i]) as i64))
    }

    fn of(self, e: Extent) -> usize {
        match e {
            Extent::Rows => self.rows,
            Extent::Cols => self.cols,
            Extent::Depth => self.depth,
            Extent::RowBlocks => self.rows.div_ceil(BLOCK.0),
            Extent::ColBlocks => self.cols.div_ceil(BLOCK.1),
            Extent::Fixed(n) => n,
        }
    }
}

/// What an argument holds before the launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filling {
    Noise,
    /// The identity, for moving through the matrix unit.
    Identity,
    Zero,
    /// Flat indices below the columns, of a table that is as long.
    Indices,
}

/// An argument of a generated kernel.
#[derive(Clone, Debug)]
pub struct Arg {
    pub dtype: DType,
    pub shape: Vec<Extent>,
    pub filling: Filling,
    pub out: bool,
}

impl Arg {
    pub fn tensor(&self, sizes: Sizes, content: Content, seed: u64) -> Tensor {
        let shape: Vec<usize> = self.shape.iter().map(|e| sizes.of(*e)).collect();
        match self.filling {
            Filling::Noise if !self.out => noise(self.dtype, &shape, content, seed),
            Filling::Identity => {
                let one = scalar::bits_from_f64(DType::F32, 1.0);
                let one = scalar::convert_bits(DType::F32, self.dtype, one);
                let n = shape[1].max(1);
                Tensor::from_fn(self.dtype, &shape, |i| if i / n == i % n { one } else { 0 }).expect("small")
            }
            Filling::Indices => {
                let mut rng = Noise::new(seed);
                let n = sizes.cols.max(1) as u64;
                Tensor::from_fn(self.dtype, &shape, |_| rng.below(n)).expect("small")
            }
            _ => Tensor::zeros(self.dtype, &shape).expect("small"),
        }
    }
}

/// A kernel with one instruction.
pub struct Case {
    pub label: String,
    pub text: String,
    pub args: Vec<Arg>,
    pub model: Option<Model>,
    /// It takes an even number of columns.
    pub even: bool,
}

/// The form of an operand, as a part of the block's shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Full,
    Column,
    Row,
    Turned,
    /// One row or column a block, for the results of reductions.
    ColumnOfBlock,
    RowOfBlock,
}

impl Form {
    fn tile(self) -> &'static str {
        match self {
            Form::Full => "i, j",
            Form::Column | Form::ColumnOfBlock => "i, 1",
            Form::Row | Form::RowOfBlock => "1, j",
            Form::Turned => "j, i",
        }
    }

    fn shape(self) -> Vec<Extent> {
        use Extent::*;
        match self {
            Form::Full => vec![Rows, Cols],
            Form::Column => vec![Rows],
            Form::Row => vec![Cols],
            Form::Turned => vec![Cols, Rows],
            Form::ColumnOfBlock => vec![ColBlocks, Rows],
            Form::RowOfBlock => vec![RowBlocks, Cols],
        }
    }

    fn window(self, tensor: &str) -> String {
        match self {
            Form::Full => format!("{tensor}.tile(i, j)"),
            Form::Column => format!("col({tensor}).tile(i, _)"),
            Form::Row => format!("{tensor}.tile(j)"),
            Form::Turned => format!("{tensor}.tile(j, i)"),
            Form::ColumnOfBlock => format!("col({tensor}[j.index, _]).tile(i, _)"),
            Form::RowOfBlock => format!("{tensor}[i.index, _].tile(j)"),
        }
    }
}

/// A kernel text in the making.
#[derive(Default)]
struct Writer {
    params: Vec<String>,
    args: Vec<Arg>,
    body: String,
    names: usize,
}

impl Writer {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    fn line(&mut self, line: impl AsRef<str>) {
        writeln!(self.body, "    {}", line.as_ref()).expect("a string takes it");
    }

    fn arg(&mut self, dtype: DType, shape: Vec<Extent>, filling: Filling, out: bool) -> String {
        let name = format!("x{}", self.args.len());
        let extents: Vec<String> = shape.iter().map(|e| e.text()).collect();
        let dir = if out { "out" } else { "in" };
        self.params.push(format!("{name}: {dir} {dtype}[{}]", extents.join(", ")));
        self.args.push(Arg { dtype, shape, filling, out });
        name
    }

    fn tile(&mut self, dtype: DType, form: Form) -> String {
        let name = self.name();
        self.line(format!("let {name} = tile Vec<{dtype}, {}>;", form.tile()));
        name
    }

    /// A Vec tile with the contents of a new argument; a mask is made by comparing numbers with 0.
    fn input(&mut self, dtype: DType, form: Form) -> String {
        self.filled(dtype, form, Filling::Noise)
    }

    fn filled(&mut self, dtype: DType, form: Form, filling: Filling) -> String {
        let data = if dtype == DType::Bool { DType::F32 } else { dtype };
        let x = self.arg(data, form.shape(), filling, false);
        let t = self.tile(data, form);
        self.line(format!("TLOAD({t}, {});", form.window(&x)));
        if dtype != DType::Bool {
            return t;
        }
        let (zero, mask) = (self.tile(data, form), self.tile(dtype, form));
        self.line(format!("TEXPANDS({zero}, 0.0);"));
        self.line(format!("TCMP({mask}, {t}, {zero}, GT);"));
        mask
    }

    /// A scalar, as the only element of an argument.
    fn scalar(&mut self, dtype: DType) -> String {
        let x = self.arg(dtype, vec![Extent::Fixed(1)], Filling::Noise, false);
        format!("{x}[0]")
    }

    /// Stores a Vec tile to a new argument; a mask as ones and zeros.
    fn output(&mut self, dtype: DType, form: Form, tile: &str) {
        let data = if dtype == DType::Bool { DType::F32 } else { dtype };
        let x = self.arg(data, form.shape(), Filling::Zero, true);
        let mut tile = tile.to_owned();
        if dtype == DType::Bool {
            let (one, zero, d) = (self.tile(data, form), self.tile(data, form), self.tile(data, form));
            self.line(format!("TEXPANDS({one}, 1.0); TEXPANDS({zero}, 0.0);"));
            self.line(format!("TSEL({d}, {tile}, {one}, {zero});"));
            tile = d;
        }
        self.line(format!("TSTORE({}, {tile});", form.window(&x)));
    }

    fn case(self, label: String, grid: &str, model: Option<Model>) -> Case {
        // Every size is a dimension of some argument.
        let mut params = self.params;
        let mut args = self.args;
        let mut add = |name: &str, e: Extent| {
            if !args.iter().any(|a| a.shape.contains(&e)) {
                params.push(format!("size_{name}: in u8[{}]", e.text()));
                args.push(Arg { dtype: DType::U8, shape: vec![e], filling: Filling::Zero, out: false });
            }
        };
        add("r", Extent::Rows);
        add("c", Extent::Cols);
        let text = format!("kernel k({}) {{\n    {grid}\n{}}}\n", params.join(", "), self.body);
        Case { label, text, args, model, even: false }
    }
}

const GRID: &str = "grid (i in tiles(R, 32), j in tiles(C, 96));";
const CUBE_GRID: &str = "grid (i in tiles(R, 32), j in tiles(C, 32));";

/// All kernels for a row of the table. Empty if there is no way to write one: then the test fails.
pub fn cases(target: &Target, id: InstrId) -> Vec<Case> {
    let instr = id.get();
    let label = |what: &str| format!("{} {what} on {}", instr.name, target.name);
    let dtypes = allowed_dtypes(target, instr).unwrap_or_default();
    let each = |f: &dyn Fn(DType) -> Case| dtypes.iter().map(|d| f(*d)).collect::<Vec<Case>>();
    match instr.sem {
        Sem::Assign => target.dtypes.iter().flat_map(|d| assigned(&label(d.name()), *d)).collect(),
        Sem::Load => moves(target, id, |rule| rule.from == MemorySpace::Gm),
        Sem::Store => moves(target, id, |rule| rule.to == MemorySpace::Gm),
        Sem::Move => moves(target, id, |rule| rule.from != MemorySpace::Gm && rule.to != MemorySpace::Gm),
        Sem::Gather => gathers(target, &label),
        Sem::ScatterTo => scatters(target, &label),
        // `placed` runs those on what numpy makes of them.
        Sem::Sample
        | Sem::GatherRows
        | Sem::ScatterRows
        | Sem::Prefetch
        | Sem::Fixpipe(_)
        | Sem::Cells(_)
        | Sem::Named(_)
        | Sem::Scatter => Vec::new(),
        Sem::Map(_) => {
            let modes = if instr.sem.compares() { CmpOp::ALL.iter().map(|c| Some(*c)).collect() } else { vec![None] };
            let mut all = Vec::new();
            for tiles in tiles_of(target, instr) {
                for cmp in modes.iter().filter(|c| check_dtypes(target, id, &tiles, **c).is_none()) {
                    let names: Vec<&str> = tiles.iter().map(|d| d.name()).chain(cmp.map(|c| c.name())).collect();
                    all.push(mapped(instr, &tiles, *cmp, label(&names.join(" "))));
                }
            }
            all
        }
        Sem::RowArg(_)
        | Sem::RowArgValues(_)
        | Sem::ColArg(_)
        | Sem::PairSum
        | Sem::Part(_)
        | Sem::PartArg(_)
        | Sem::Interleave
        | Sem::Deinterleave
        | Sem::DeinterleaveOne => tiles_of(target, instr)
            .iter()
            .map(|t| single(instr, t, "", true, label(&format!("{} {}", t[0], t[1]))))
            .collect(),
        Sem::Binary(_)
        | Sem::Unary(_)
        | Sem::RowReduce(_)
        | Sem::ColReduce(_)
        | Sem::RowExpand
        | Sem::ColExpand
        | Sem::RowExpandBinary(_)
        | Sem::ColExpandBinary(_)
        | Sem::Transpose
        | Sem::Select => each(&|d| plain(instr, d, label(d.name()))),
        Sem::BinaryScalar(_) => {
            let mut all = each(&|d| plain(instr, d, label(d.name())));
            if instr.sem == Sem::BinaryScalar(BinOp::Div) {
                all.extend(each(&|d| reversed(instr, d, label(&format!("{d} reversed")))));
            }
            if let Sem::BinaryScalar(op @ (BinOp::Shl | BinOp::Shr)) = instr.sem {
                all.extend(each(&|d| shifts(instr, op, d, label(&format!("{d} by constants")))));
            }
            all
        }
        Sem::Expand => {
            let mut all = each(&|d| plain(instr, d, label(d.name())));
            let OperandKind::Tile(places) = instr.operands[0].kind else { return all };
            if places.contains(&Loc::Mat) {
                all.extend(dtypes.iter().map(|d| fill_mat(target, *d, label(&format!("{d} in Mat")))));
            }
            all
        }
        Sem::Convert => {
            let pairs = ptoc_isa::tcvt_pairs(target);
            pairs.iter().map(|(a, b)| convert(*a, *b, label(&format!("{a} to {b}")))).collect()
        }
        Sem::Compare => each(&|d| compare(target, id, d, label(d.name()))),
        Sem::Matmul | Sem::MatmulAcc | Sem::MatmulBias => target
            .triples
            .iter()
            .map(|t| {
                let store = target.move_rule(MemorySpace::Tile(Loc::Acc), MemorySpace::Gm).expect("results leave Acc");
                let out = store.pairs.iter().find(|(a, _)| *a == t.acc).expect("of each dtype").1;
                product(instr, *t, out, label(&t.to_string()))
            })
            .collect(),
    }
}

/// The dtypes of the tiles that the author writes, in every form that the target takes.
pub fn tiles_of(target: &Target, instr: &Instr) -> Vec<Vec<DType>> {
    let dtypes = allowed_dtypes(target, instr).unwrap_or_default();
    match instr.dtypes {
        DTypeRule::Pairs => ptoc_isa::tcvt_pairs(target).iter().map(|(a, b)| vec![*b, *a]).collect(),
        DTypeRule::Tuples => allowed_tuples(target, instr).unwrap_or_default().iter().map(|t| t.to_vec()).collect(),
        DTypeRule::Mask => dtypes
            .iter()
            .map(|d| {
                let mut list = vec![*d; instr.tiles_written()];
                list[usize::from(!instr.sem.compares())] = DType::Bool;
                list
            })
            .collect(),
        _ => dtypes.iter().map(|d| vec![*d; instr.tiles_written()]).collect(),
    }
}

/// An instruction whose meaning is an expression of its row. What it gives is compared with numbers of numpy elsewhere.
fn mapped(instr: &'static Instr, tiles: &[DType], cmp: Option<CmpOp>, label: String) -> Case {
    let words = cmp.map_or(String::new(), |c| format!(", {}", c.name().to_uppercase()));
    single(instr, tiles, &words, true, label)
}

/// One instruction on tiles of these dtypes (those that the author writes), with `words` after its operands, and, if
/// `again`, once more over its first source where it may be.
pub fn single(instr: &'static Instr, tiles: &[DType], words: &str, again: bool, label: String) -> Case {
    let mut w = Writer::default();
    let mut next = tiles.iter();
    let mut names = Vec::new();
    let to = match instr.shape {
        ShapeRule::RowReduce => Form::ColumnOfBlock,
        ShapeRule::ColReduce => Form::RowOfBlock,
        ShapeRule::Transpose => Form::Turned,
        _ => Form::Full,
    };
    for (k, spec) in instr.written().iter().enumerate() {
        let result = spec.role == Role::Dst;
        let form = match instr.read(k) {
            _ if result => to,
            Read::Column => Form::Column,
            Read::Row => Form::Row,
            Read::Whole | Read::Turned => Form::Full,
        };
        let name = match spec.kind {
            OperandKind::Scalar(d) => w.scalar(d.unwrap_or(tiles[tiles.len() - 1])),
            _ if result && !instr.updates => w.tile(*next.next().expect("a dtype for each tile"), form),
            _ => w.input(*next.next().expect("a dtype for each tile"), form),
        };
        if instr.shape == ShapeRule::Halves && result {
            let zero = if tiles[0].is_float() { "0.0" } else { "0" };
            w.line(format!("TEXPANDS({name}, {zero});"));
        }
        // The second source of a partial operation is a quarter of the first.
        let quarter = instr.shape == ShapeRule::Part && spec.name.starts_with('b');
        names.push(if quarter { format!("{name}.valid({name}.rows / 2, {name}.cols / 2)") } else { name });
    }
    let words = match words.strip_prefix(", reversed") {
        Some(words) => {
            // The scalar stands before the tile.
            names.swap(1, 2);
            words
        }
        None => words,
    };
    w.line(format!("{}({}{words});", instr.written_name(), names.join(", ")));
    for k in instr.results() {
        // What an instruction with half as many columns leaves alone are zeros.
        let whole = format!("{}.valid({x}.rows, {x}.cols)", names[k], x = names[names.len() - 1]);
        w.output(tiles[k], to, if instr.shape == ShapeRule::Halves { &whole } else { &names[k] });
    }
    // Once more, over the first source.
    let over = instr.written().iter().zip(&names).skip(1).find(|(s, _)| s.is_tile());
    if let Some((_, first)) = over.filter(|_| again && instr.in_place && tiles.iter().all(|d| *d == tiles[0])) {
        let first = first.clone();
        names[0] = first;
        w.line(format!("{}({}{words});", instr.name, names.join(", ")));
        w.output(tiles[0], Form::Full, &names[0]);
    }
    let mut case = w.case(label, GRID, None);
    case.even = matches!(instr.shape, ShapeRule::EvenColumns | ShapeRule::Halves);
    case
}

/// An instruction on Vec tiles (and at most one scalar) whose operands all have one dtype, or are masks.
fn plain(instr: &'static Instr, dtype: DType, label: String) -> Case {
    let mut w = Writer::default();
    let last = instr.operands.len() - 1;
    let mut sources = Vec::new();
    for (k, spec) in instr.operands.iter().enumerate().skip(1) {
        if matches!(spec.kind, OperandKind::Scalar(_)) {
            sources.push(w.scalar(dtype));
            continue;
        }
        let form = match instr.sem {
            Sem::RowExpand | Sem::RowExpandBinary(_) if k == last => Form::Column,
            Sem::ColExpand | Sem::ColExpandBinary(_) if k == last => Form::Row,
            _ => Form::Full,
        };
        let mask = instr.sem == Sem::Select && k == 1;
        sources.push(w.input(if mask { DType::Bool } else { dtype }, form));
    }
    let form = match instr.sem {
        Sem::RowReduce(_) => Form::ColumnOfBlock,
        Sem::ColReduce(_) => Form::RowOfBlock,
        Sem::Transpose => Form::Turned,
        _ => Form::Full,
    };
    let d = w.tile(dtype, form);
    let list = sources.join(", ");
    w.line(format!("{}({d}, {list});", instr.name));
    w.output(dtype, form, &d);
    // Once more, over the first operand.
    let whole = instr.in_place && (sources.len() > 1 || matches!(instr.sem, Sem::Unary(_)));
    if whole {
        let first = if instr.sem == Sem::Select { &sources[1] } else { &sources[0] };
        w.line(format!("{}({first}, {list});", instr.name));
        w.output(dtype, form, first);
    }
    w.case(label, GRID, Some(Model::Plain { sem: instr.sem, dtype }))
}

/// `TDIVS(d, s, a)`
fn reversed(instr: &'static Instr, dtype: DType, label: String) -> Case {
    let mut w = Writer::default();
    let a = w.input(dtype, Form::Full);
    let s = w.scalar(dtype);
    let d = w.tile(dtype, Form::Full);
    w.line(format!("{}({d}, {s}, {a});", instr.name));
    w.output(dtype, Form::Full, &d);
    w.case(label, GRID, Some(Model::Reversed { dtype }))
}

/// By counts that are known when it is compiled, around the width and beyond.
fn shifts(instr: &'static Instr, op: BinOp, dtype: DType, label: String) -> Case {
    let mut w = Writer::default();
    let a = w.input(dtype, Form::Full);
    let width = 8 * dtype.size() as i128;
    let (lo, hi) = scalar::integer_range(dtype).expect("an integer");
    let counts = vec![0, 1, width / 2, width - 1, width, width + 1, lo, hi];
    for n in &counts {
        let d = w.tile(dtype, Form::Full);
        w.line(format!("{}({d}, {a}, {n});", instr.name));
        w.output(dtype, Form::Full, &d);
    }
    w.case(label, GRID, Some(Model::Shifts { op, dtype, counts }))
}

/// Every rounding mode, with saturation, without, and by default.
fn convert(from: DType, to: DType, label: String) -> Case {
    let mut w = Writer::default();
    let a = w.input(from, Form::Full);
    let mut modes = Vec::new();
    for mode in RoundMode::ALL {
        for saturate in [false, true] {
            modes.push((Some(*mode), Some(saturate)));
        }
    }
    modes.push((None, None));
    for (mode, saturate) in &modes {
        let d = w.tile(to, Form::Full);
        let mut words = String::new();
        if let Some(mode) = mode {
            let name = format!("{mode:?}");
            write!(words, ", {name}").expect("a string takes it");
        }
        if let Some(s) = saturate {
            write!(words, ", saturate = {s}").expect("a string takes it");
        }
        w.line(format!("TCVT({d}, {a}{words});"));
        w.output(to, Form::Full, &d);
    }
    w.case(label, GRID, Some(Model::Convert { from, to, modes }))
}

fn compare(target: &Target, id: InstrId, dtype: DType, label: String) -> Case {
    let mut w = Writer::default();
    let (a, b) = (w.input(dtype, Form::Full), w.input(dtype, Form::Full));
    let legal = |op: &CmpOp| ptoc_isa::check_dtypes(target, id, &[DType::Bool, dtype, dtype], Some(*op)).is_none();
    let ops: Vec<CmpOp> = CmpOp::ALL.iter().copied().filter(legal).collect();
    assert!(!ops.is_empty(), "{label}: no comparison is legal");
    for op in &ops {
        let m = w.tile(DType::Bool, Form::Full);
        w.line(format!("TCMP({m}, {a}, {b}, {});", op.name().to_uppercase()));
        w.output(DType::Bool, Form::Full, &m);
    }
    w.case(label, GRID, Some(Model::Compare { ops }))
}

fn gathers(target: &Target, label: &dyn Fn(&str) -> String) -> Vec<Case> {
    let mut all = Vec::new();
    for &dtype in &target.dtypes {
        for index in [DType::I32, DType::U32] {
            let mut w = Writer::default();
            let table = w.arg(dtype, vec![Extent::Cols], Filling::Noise, false);
            let inside = w.filled(index, Form::Full, Filling::Indices);
            let anywhere = w.input(index, Form::Full);
            let modes =
                [("", &inside), (", oob = Clamp", &anywhere), (", oob = Wrap", &anywhere), (", oob = Zero", &anywhere)];
            for (mode, idx) in modes {
                let d = w.tile(dtype, Form::Full);
                w.line(format!("MGATHER({d}, {table}, {idx}{mode});"));
                w.output(dtype, Form::Full, &d);
            }
            all.push(w.case(label(&format!("{dtype} by {index}")), GRID, Some(Model::Gather)));
        }
    }
    all
}

/// Over zeros, or added to them: within a block, so that no two blocks meet.
fn scatters(target: &Target, label: &dyn Fn(&str) -> String) -> Vec<Case> {
    let mut all = Vec::new();
    for &dtype in &target.dtypes {
        for index in [DType::I32, DType::U32] {
            let mut w = Writer::default();
            let (value, anywhere) = (w.input(dtype, Form::Full), w.input(index, Form::Full));
            let mut modes = vec!["oob = Skip", "oob = Clamp", "Wrap"];
            // A sum of floats of any size depends on its order.
            if dtype.is_int() {
                modes.push("Wrap, atomic = true");
                if target.name != "a2a3" {
                    modes.extend(["Clamp, atomic = Max", "Skip, atomic = Min"]);
                }
            }
            for mode in modes {
                let table = w.arg(dtype, Form::Full.shape(), Filling::Zero, true);
                let zeros = w.filled(dtype, Form::Full, Filling::Zero);
                w.line(format!("TSTORE({table}.tile(i, j), {zeros});"));
                w.line(format!("MSCATTER({table}.tile(i, j), {value}, {anywhere}, {mode});"));
            }
            all.push(w.case(label(&format!("{dtype} by {index}")), GRID, None));
        }
    }
    all
}

/// Constant and run-time addresses; the second tile lies where the first one ends.
fn assigned(label: &str, dtype: DType) -> Vec<Case> {
    let bytes = BLOCK.0 * BLOCK.1 * dtype.size();
    let kinds =
        [("constant", String::new(), bytes.to_string()), ("run time", format!("base: index = {bytes}"), "base".into())];
    let case = |(kind, param, address): &(&str, String, String)| {
        let mut w = Writer::default();
        let x = w.arg(dtype, Form::Full.shape(), Filling::Noise, false);
        let (a, b) = (w.tile(dtype, Form::Full), w.tile(dtype, Form::Full));
        w.line(format!("TASSIGN({a}, 0); TASSIGN({b}, {address});"));
        w.line(format!("TLOAD({a}, {x}.tile(i, j)); TMOV({b}, {a});"));
        w.output(dtype, Form::Full, &b);
        w.output(dtype, Form::Full, &a);
        if !param.is_empty() {
            w.params.push(param.clone());
        }
        w.case(format!("{label}, {kind}"), GRID, Some(Model::Copy { of: 0 }))
    };
    kinds.iter().map(case).collect()
}

/// TEXPANDS in Mat, seen through whatever way leads out of it.
fn fill_mat(target: &Target, dtype: DType, label: String) -> Case {
    let mut w = Writer::default();
    let s = w.scalar(dtype);
    let t = w.name();
    w.line(format!("let {t} = tile Mat<{dtype}, i, j>;"));
    w.line(format!("TEXPANDS({t}, {s});"));
    let seen = observe(&mut w, target, Loc::Mat, dtype, &t);
    w.case(label, CUBE_GRID, seen.then_some(Model::Filled))
}

fn moves(target: &Target, id: InstrId, wanted: impl Fn(&MoveRule) -> bool) -> Vec<Case> {
    let mut all = Vec::new();
    for rule in target.moves.iter().filter(|r| r.instr == id && wanted(r)) {
        for &(a, b) in rule.pairs.iter().filter(|(a, b)| *a != DType::Bool && *b != DType::Bool) {
            let what = if a == b { a.to_string() } else { format!("{a} as {b}") };
            let label = format!("{} {what} from {} to {} on {}", id.get().name, rule.from, rule.to, target.name);
            all.push(one_move(target, rule, (a, b), label));
        }
    }
    all
}

fn one_move(target: &Target, rule: &MoveRule, (a, b): (DType, DType), label: String) -> Case {
    let mut w = Writer::default();
    let mnemonic = rule.instr.get().name;
    // Tables of one row.
    if let MemorySpace::Tile(to @ (Loc::Bias | Loc::Scaling)) = rule.to {
        let x = w.arg(a, vec![Extent::Cols], Filling::Noise, false);
        let (m, t) = (w.name(), w.name());
        w.line(format!("let {m} = tile Mat<{a}, 1, j>; TLOAD({m}, {x}.tile(j));"));
        w.line(format!("let {t} = tile {to}<{b}, 1, j>;"));
        w.line(format!("{mnemonic}({t}, {m});"));
        if to == Loc::Bias {
            let triple = *target.triples.iter().find(|t| t.acc == b).expect("a bias is an accumulator's start");
            let l = w.arg(triple.left, vec![Extent::Rows, Extent::Fixed(CUBE)], Filling::Zero, false);
            let r = w.arg(triple.right, vec![Extent::Fixed(CUBE), Extent::Cols], Filling::Zero, false);
            let acc = w.name();
            w.line(format!("let {acc} = tile Acc<{b}, i, j>;"));
            w.line(format!("TMATMUL_BIAS({acc}, Left({l}.tile(i, _)), Right({r}.tile(_, j)), {t});"));
            let seen = observe(&mut w, target, Loc::Acc, b, &acc);
            return w.case(label, CUBE_GRID, seen.then_some(Model::CopyRow));
        }
        // Nothing that ptoc has reads Scaling: what is checked is that it runs.
        return w.case(label, "grid (j in tiles(C, 128));", None);
    }
    let t = match rule.from {
        MemorySpace::Gm => {
            let x = w.arg(a, vec![Extent::Rows, Extent::Cols], Filling::Noise, false);
            let MemorySpace::Tile(to) = rule.to else { unreachable!("from GM to GM") };
            let t = w.name();
            w.line(format!("let {t} = tile {to}<{b}, i, j>;"));
            w.line(format!("{mnemonic}({t}, {x}.tile(i, j));"));
            let seen = observe(&mut w, target, to, b, &t);
            return w.case(label, CUBE_GRID, seen.then_some(Model::Moved));
        }
        MemorySpace::Tile(Loc::Acc) => {
            let triple = *target.triples.iter().find(|t| t.acc == a).expect("an accumulator that something fills");
            let x = w.arg(triple.left, vec![Extent::Rows, Extent::Cols], Filling::Noise, false);
            let one = w.arg(triple.right, vec![Extent::Cols, Extent::Cols], Filling::Identity, false);
            let t = w.name();
            w.line(format!("let {t} = tile Acc<{a}, i, j>;"));
            w.line(format!("TMATMUL({t}, Left({x}.tile(i, j)), Right({one}.tile(j, j)));"));
            t
        }
        MemorySpace::Tile(from) => {
            let x = w.arg(a, vec![Extent::Rows, Extent::Cols], Filling::Noise, false);
            let t = w.name();
            w.line(format!("let {t} = tile {from}<{a}, i, j>; TLOAD({t}, {x}.tile(i, j));"));
            t
        }
    };
    match rule.to {
        MemorySpace::Gm => {
            let out = w.arg(b, vec![Extent::Rows, Extent::Cols], Filling::Zero, true);
            w.line(format!("{mnemonic}({out}.tile(i, j), {t});"));
            w.case(label, CUBE_GRID, Some(Model::Moved))
        }
        MemorySpace::Tile(to) => {
            let d = w.name();
            w.line(format!("let {d} = tile {to}<{b}, i, j>;"));
            w.line(format!("{mnemonic}({d}, {t});"));
            let seen = observe(&mut w, target, to, b, &d);
            w.case(label, CUBE_GRID, seen.then_some(Model::Moved))
        }
    }
}

/// Stores what a tile holds, by the target's ways; `false` if no way leads out.
fn observe(w: &mut Writer, target: &Target, loc: Loc, dtype: DType, tile: &str) -> bool {
    let shape = vec![Extent::Rows, Extent::Cols];
    let store = target
        .move_rule(MemorySpace::Tile(loc), MemorySpace::Gm)
        .and_then(|r| r.pairs.iter().find(|(a, _)| *a == dtype));
    if let Some((_, out)) = store {
        let x = w.arg(*out, shape, Filling::Zero, true);
        w.line(format!("TSTORE({x}.tile(i, j), {tile});"));
        return true;
    }
    let left = matches!(loc, Loc::Left | Loc::Mat);
    let triple = target.triples.iter().find(|t| (if left { t.left } else { t.right }) == dtype);
    let (Some(triple), Loc::Left | Loc::Right | Loc::Mat) = (triple, loc) else { return false };
    let other = if left { triple.right } else { triple.left };
    let side = if left { Extent::Cols } else { Extent::Rows };
    let one = w.arg(other, vec![side, side], Filling::Identity, false);
    let acc = w.name();
    w.line(format!("let {acc} = tile Acc<{}, i, j>;", triple.acc));
    if left {
        w.line(format!("TMATMUL({acc}, Left({tile}), Right({one}.tile(j, j)));"));
    } else {
        w.line(format!("TMATMUL({acc}, Left({one}.tile(i, i)), {tile});"));
    }
    observe(w, target, Loc::Acc, triple.acc, &acc)
}

fn product(instr: &'static Instr, triple: ptoc_isa::Triple, out: DType, label: String) -> Case {
    let mut w = Writer::default();
    let a = w.arg(triple.left, vec![Extent::Rows, Extent::Depth], Filling::Noise, false);
    let b = w.arg(triple.right, vec![Extent::Depth, Extent::Cols], Filling::Noise, false);
    let bias = (instr.sem == Sem::MatmulBias).then(|| w.arg(triple.acc, vec![Extent::Cols], Filling::Noise, false));
    w.line(format!("let acc = tile Acc<{}, i, j>;", triple.acc));
    // The start makes K = 0 legal; a product without an accumulator operand starts anew in each step.
    w.line(if triple.acc.is_float() { "acc = 0.0;" } else { "acc = 0;" });
    let loads = format!("Left({a}.tile(i, k)), Right({b}.tile(k, j))");
    w.line("for k in tiles(K, 32) {");
    w.line(match (&bias, instr.sem) {
        (Some(bias), _) => format!("    {}(acc, {loads}, Bias({bias}.tile(j)));", instr.name),
        (None, Sem::MatmulAcc) => format!("    {}(acc, acc, {loads});", instr.name),
        _ => format!("    {}(acc, {loads});", instr.name),
    });
    w.line("}");
    let x = w.arg(out, vec![Extent::Rows, Extent::Cols], Filling::Zero, true);
    w.line(format!("TSTORE({x}.tile(i, j), acc);"));
    // An accumulator of f16 rounds after each instruction, so the blocks of k can be seen: the model has none.
    let simple = triple.acc.size() == 4 || instr.sem != Sem::MatmulAcc;
    w.case(label, CUBE_GRID, simple.then_some(Model::Product { sem: instr.sem }))
}

/// The model's expectation of every output, in order.
pub fn expectations(case: &Case, content: Content, tensors: &[Tensor]) -> Option<Vec<Vec<model::Want>>> {
    let inputs: Vec<&Tensor> = case.args.iter().zip(tensors).filter(|(a, _)| !a.out).map(|(_, t)| t).collect();
    let outputs: Vec<&Tensor> = case.args.iter().zip(tensors).filter(|(a, _)| a.out).map(|(_, t)| t).collect();
    case.model.as_ref()?.expect(content, &inputs, &outputs)
}
