//! From genes to a program: each gene picks among what is well typed at its place, so that any genes make a program,
//! and fewer and smaller genes make a smaller one.

#![allow(clippy::manual_is_multiple_of, reason = "a choice is a remainder")]

use super::ast::{Blocks, Expr, Form, Param, Program, Scalar, Stmt, is_infix};
use super::gene::{Gene, Genome};
use ptoc_isa::{BinOp, CmpOp, InstrId, Reduce, Sem, TABLE, Target, UnOp, check_dtypes};
use ptoc_tensor::DType::{self, *};
use std::collections::BTreeSet;

/// A tile that a program may use.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub name: String,
    pub form: Form,
    pub dtype: DType,
    pub blocks: Blocks,
    /// A tile array: an index is to be chosen.
    pub array: bool,
    /// Instructions may write it whole. Windows keep their shape.
    pub writable: bool,
}

pub(super) const BLOCK: Blocks = Blocks { rows: "i", cols: "j" };

const CLIP: &str =
    "fn clip(x: f32) -> f32 {\n    let y = if x > 0.5 { 1.0 - x } else { x * 0.75 };\n    max(y, -2.0)\n}";
const MIX: &str = "fn mix(x: f32, y: f32) -> f32 {\n    if x < y { x * y + 1.0 } else { y - x }\n}";
const MAPPED: &str =
    "fn mapped<type T>(x: T, act: fn) -> T {\n    let half = |v| act(v) * 0.5;\n    half(x) - act(x)\n}";
const ORDERED: &str =
    "fn ordered(x: f32, y: f32) -> (low: f32, high: f32) {\n    (high = max(x, y), low = min(x, y))\n}";
const APART: &str = "fn apart(r: (high: f32, low: f32)) -> f32 { r.high - r.low }";
pub(super) const FOLD: &str = "fn fold(s: in Vec<f32, a, b>, top: inout Vec<f32, a, 1>) -> Vec<f32, a, b> {\n    \
    let new = max(top, rowmax(s));\n    top = new;\n    return s - new;\n}";

const STEPS: &str = "fn steps(x: f32, n: index) -> f32 {\n    var y = x;\n    for r in 0..n {\n        \
    if y > 3.0 { return y - 3.0; }\n        y = y * 1.5 + 0.25;\n    }\n    y\n}";

/// A program in the making.
pub struct Grower<'g> {
    genome: &'g Genome,
    pub(super) target: &'static Target,
    pub(super) dtypes: Vec<DType>,
    pub(super) params: BTreeSet<Param>,
    pub(super) functions: BTreeSet<&'static str>,
    pub(super) tiles: Vec<Tile>,
    names: usize,
    /// Scalars that exist: of index, i32, f32.
    pub(super) scalars: [Vec<String>; 3],
    pairs: u32,
    /// Tiles that may move to other addresses, and the least of those.
    pub(super) movable: Vec<(String, u32)>,
}

impl Genome {
    /// Rows and columns of the grid's blocks.
    pub fn block_sizes(&self) -> (i64, i64) {
        let g = Grower::new(self);
        (g.block_rows().into(), g.block_cols().into())
    }
}

/// The program of a genome.
pub fn grow(genome: &Genome) -> Program {
    Grower::new(genome).program()
}

impl<'g> Grower<'g> {
    fn new(genome: &'g Genome) -> Grower<'g> {
        let target = Target::builtin(genome.target).expect("a target");
        let dtypes = if genome.target == "a2a3" {
            vec![F32, I32, F16, I16]
        } else {
            vec![F32, I32, F16, BF16, I16, U16, U32, I8, U8]
        };
        let mut g = Grower {
            genome,
            target,
            dtypes,
            params: BTreeSet::new(),
            functions: BTreeSet::new(),
            tiles: Vec::new(),
            names: 0,
            scalars: [vec![], vec![], vec![]],
            pairs: 0,
            movable: Vec::new(),
        };
        g.dtypes.retain(|d| target.has_dtype(*d));
        if g.block_rows() == 16 {
            // A column of 16 elements of a byte is not 32 bytes.
            g.dtypes.retain(|d| d.size() > 1);
        }
        g
    }

    pub(super) fn block_rows(&self) -> u32 {
        [16, 32][usize::from(self.genome.blocks.0) % 2]
    }

    pub(super) fn block_cols(&self) -> u32 {
        [32, 64, 96][usize::from(self.genome.blocks.1) % 3]
    }

    pub(super) fn block_depth(&self) -> u32 {
        [32, 16][usize::from(self.genome.blocks.2) % 2]
    }

    fn program(mut self) -> Program {
        let grid = format!("grid (i in tiles(M, {}), j in tiles(N, {}));", self.block_rows(), self.block_cols());
        let mut body = Vec::new();
        let genome = self.genome;
        for pick in &genome.tiles {
            self.declare(*pick, &mut body);
        }
        for (k, name) in ["n", "z", "s"].into_iter().enumerate() {
            let start = ["index(2)", "i32(3)", "f32(0.5)"][k];
            body.push(Stmt::Line(format!("var {name} = {start};")));
            self.scalars[k].push(name.into());
        }
        let declared = self.tiles.clone();
        for gene in &genome.stmts {
            self.stmt(gene, BLOCK, 3, &mut body);
        }
        self.store_all(&declared, &mut body);
        // Every dimension is bound by something.
        for (name, dim) in [("size_m", "M"), ("size_n", "N")] {
            if !self.params.iter().any(|p| p.shape.contains(&dim)) {
                self.params.insert(Param { name: name.into(), dir: "in", dtype: I32, shape: vec![dim] });
            }
        }
        Program {
            functions: self.functions.into_iter().collect(),
            params: self.params.into_iter().collect(),
            grid,
            body,
        }
    }

    pub(super) fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    pub(super) fn param(&mut self, name: String, dir: &'static str, dtype: DType, shape: &[&'static str]) -> String {
        self.params.insert(Param { name: name.clone(), dir, dtype, shape: shape.to_vec() });
        name
    }

    /// Declares storage, written from the first.
    fn declare(&mut self, pick: u16, body: &mut Vec<Stmt>) {
        let dtype = self.dtypes[usize::from(pick / 7) % self.dtypes.len()];
        let form = [Form::Full, Form::Full, Form::Full, Form::Column, Form::Row, Form::Full, Form::Full]
            [usize::from(pick % 7)];
        let name = self.fresh("t");
        let extents = BLOCK.extents(form);
        let tile = |name: String, dtype, form, array| Tile { name, form, dtype, blocks: BLOCK, array, writable: true };
        match pick % 7 {
            5 => {
                let form = if pick / 2048 % 4 == 3 { Form::Column } else { Form::Full };
                let extents = BLOCK.extents(form);
                // Two tiles that share bytes. Floats share with floats of their type only: which NaN it is shows in
                // the bits.
                let other = self.fresh("t");
                let ints: Vec<DType> = self.dtypes.iter().copied().filter(|d| d.is_int()).collect();
                let second = if dtype.is_int() { ints[usize::from(pick / 77) % ints.len()] } else { dtype };
                // Pairs lie apart: 32 x 96 elements of 4 bytes, and the greatest offset.
                self.pairs += 1;
                let base = 0x3200 * (self.pairs - 1);
                let offset = base + 32 * u32::from(pick / 512 % 5);
                body.push(Stmt::Line(format!("let {name} = tile Vec<{dtype}, {extents}>;")));
                body.push(Stmt::Line(format!("let {other} = tile Vec<{second}, {extents}>;")));
                let address =
                    if pick / 64 % 2 == 0 { format!("{offset}") } else { format!("{offset} + 32 * (i.index % 2)") };
                body.push(Stmt::Line(format!("TASSIGN({name}, {base}); TASSIGN({other}, {address});")));
                if pick / 128 % 4 == 0 {
                    self.movable.push((other.clone(), base));
                }
                for (t, d) in [(&name, dtype), (&other, second)] {
                    let view = self.input(d, form, BLOCK);
                    body.push(Stmt::Line(format!("TLOAD({t}, {view});")));
                }
                self.tiles.push(tile(name, dtype, form, false));
                self.tiles.push(tile(other, second, form, false));
            }
            6 => {
                body.push(Stmt::Line(format!("let {name} = tile Vec<{dtype}, {extents}>[2];")));
                let view = self.input(dtype, Form::Full, BLOCK);
                body.push(Stmt::Line(format!("TLOAD({name}[0], {view});")));
                body.push(Stmt::Line(format!("{name}[1] = {};", literal(dtype, pick))));
                self.tiles.push(tile(name, dtype, form, true));
            }
            _ => {
                body.push(Stmt::Line(format!("let {name} = tile Vec<{dtype}, {extents}>;")));
                let view = self.input(dtype, form, BLOCK);
                body.push(Stmt::Assign(name.clone(), "=", Expr::Load(view)));
                self.tiles.push(tile(name, dtype, form, false));
            }
        }
    }

    /// A window of an input of this form.
    fn input(&mut self, dtype: DType, form: Form, blocks: Blocks) -> String {
        let (row, col) = (dim(blocks.rows), dim(blocks.cols));
        match form {
            Form::Full => {
                let x = self.param(format!("x{row}{col}_{dtype}"), "in", dtype, &[row, col]);
                format!("{x}{}", window(blocks))
            }
            Form::Column => {
                let x = self.param(format!("x{row}_{dtype}"), "in", dtype, &[row]);
                let inner = if blocks.rows == "q" { ".tile(i, _).tile(q, _)" } else { ".tile(i, _)" };
                format!("col({x}){inner}")
            }
            Form::Row => {
                let x = self.param(format!("x{col}_{dtype}"), "in", dtype, &[col]);
                let inner = match blocks.cols {
                    "p" => ".tile(j).tile(p)".into(),
                    c => format!(".tile({c})"),
                };
                format!("{x}{inner}")
            }
        }
    }

    fn store_all(&mut self, tiles: &[Tile], body: &mut Vec<Stmt>) {
        for t in tiles {
            let d = t.dtype;
            let names: Vec<String> =
                if t.array { vec![format!("{}[0]", t.name), format!("{}[1]", t.name)] } else { vec![t.name.clone()] };
            for (k, name) in names.iter().enumerate() {
                let out = format!("o{}_{k}", t.name);
                let view = match t.form {
                    Form::Full => format!("{}.tile(i, j)", self.param(out, "out", d, &["M", "N"])),
                    Form::Column => format!("col({}[j.index, _]).tile(i, _)", self.param(out, "out", d, &["NB", "M"])),
                    Form::Row => format!("{}[i.index, _].tile(j)", self.param(out, "out", d, &["MB", "N"])),
                };
                body.push(Stmt::Line(format!("TSTORE({view}, {name});")));
            }
        }
    }

    pub(super) fn takes(&self, sem: Sem, dtypes: &[DType], cmp: Option<CmpOp>) -> bool {
        let Some(at) = TABLE.iter().position(|i| i.sem == sem) else { return false };
        check_dtypes(self.target, InstrId(at as u16), dtypes, cmp).is_none()
    }

    // ---- tiles
    // -------------------------------------------------------------------------------------------------------

    /// Tiles of this type here, as text: whole, as a window, or an element of an array.
    pub(super) fn places(&mut self, gene: &Gene, dtype: DType, form: Form, blocks: Blocks, whole: bool) -> Vec<String> {
        let mut out = Vec::new();
        for t in self.tiles.clone() {
            // A row of a tile, chosen as the kernel runs.
            if t.dtype == dtype
                && t.form == Form::Full
                && form == Form::Row
                && t.blocks == blocks
                && blocks == BLOCK
                && !whole
                && !t.array
            {
                out.push(format!("{}[{}, _]", t.name, self.below(gene, "i.len")));
            }
            if t.dtype != dtype || t.form != form || whole && (!t.writable || t.blocks != blocks) {
                continue;
            }
            let name = if t.array { format!("{}[{}]", t.name, self.below(gene, "2")) } else { t.name.clone() };
            if t.blocks == blocks {
                out.push(name);
            } else if t.blocks == BLOCK && blocks.cols != "k" {
                let window = match (form, blocks.rows, blocks.cols) {
                    (Form::Full, "q", "j") => "q, _",
                    (Form::Full, "i", "p") => "_, p",
                    (Form::Column, "q", "j") => "q, _",
                    (Form::Row, "i", "p") => "_, p",
                    (Form::Column, "i", "p") | (Form::Row, "q", "j") => "",
                    _ => continue,
                };
                out.push(if window.is_empty() { name } else { format!("{name}.tile({window})") });
            } else if t.blocks == BLOCK && blocks.cols == "k" && form == Form::Column {
                out.push(name);
            }
        }
        out
    }

    fn leaf(&mut self, gene: &Gene, dtype: DType, form: Form, blocks: Blocks) -> Expr {
        let mut places = self.places(gene, dtype, form, blocks, false);
        if places.is_empty() || gene.tag % 5 == 4 {
            if dtype == I32 && form != Form::Full && gene.tag % 3 == 1 && blocks == BLOCK {
                return Expr::Iota(blocks.extents(form));
            }
            return Expr::Load(self.input(dtype, form, blocks));
        }
        Expr::Tile(places.swap_remove(usize::from(gene.tag / 5) % places.len()))
    }

    /// A tile value of this type.
    pub(super) fn expr(&mut self, gene: &Gene, dtype: DType, form: Form, blocks: Blocks, depth: u32) -> Expr {
        if depth == 0 || gene.kids.is_empty() {
            return self.leaf(gene, dtype, form, blocks);
        }
        let depth = depth - 1;
        match gene.tag % 12 {
            1 | 2 => {
                let ops: Vec<(&'static str, BinOp)> =
                    BINARY.into_iter().filter(|(_, op)| self.takes(Sem::Binary(*op), &[dtype; 3], None)).collect();
                let (word, _) = gene.pick_more(&ops);
                // Either side may be a column or a row.
                let forms: &[(Form, Form)] = match form {
                    Form::Full => &[
                        (Form::Full, Form::Full),
                        (Form::Full, Form::Column),
                        (Form::Full, Form::Row),
                        (Form::Column, Form::Full),
                        (Form::Row, Form::Full),
                        (Form::Column, Form::Row),
                    ],
                    other => &[(other, other)],
                };
                let (l, r) = gene.kid(0).pick_more(forms);
                let a = self.expr(gene.kid(0), dtype, l, blocks, depth);
                let b = self.expr(gene.kid(1), dtype, r, blocks, depth);
                binary(word, a, b)
            }
            3 => {
                let ops: Vec<(&'static str, BinOp)> = BINARY
                    .into_iter()
                    .filter(|(_, op)| self.takes(Sem::BinaryScalar(*op), &[dtype, dtype], None))
                    .collect();
                let (word, _) = gene.pick_more(&ops);
                let a = self.expr(gene.kid(0), dtype, form, blocks, depth);
                let s = self.scalar_like(gene.kid(1), dtype);
                // s - x of unsigned numbers would negate them; a scalar is not shifted by a tile.
                let shift = matches!(word, "<<" | ">>");
                let left = gene.kid(1).tag % 3 == 2 && (dtype.is_float() || word != "-") && !shift;
                Expr::WithScalar(word, Box::new(a), s, left)
            }
            4 => {
                let ops: Vec<&'static str> = UNARY
                    .into_iter()
                    .filter(|(_, op)| self.takes(Sem::Unary(*op), &[dtype, dtype], None))
                    .map(|(w, _)| w)
                    .collect();
                let a = self.expr(gene.kid(0), dtype, form, blocks, depth);
                if ops.is_empty() { a } else { Expr::Prefix(gene.pick_more(&ops).into(), vec![a]) }
            }
            5 => {
                let from: Vec<DType> =
                    self.dtypes.iter().copied().filter(|d| self.takes(Sem::Convert, &[dtype, *d], None)).collect();
                if from.is_empty() {
                    return self.leaf(gene, dtype, form, blocks);
                }
                let from = gene.pick_more(&from);
                let a = self.expr(gene.kid(0), from, form, blocks, depth);
                Expr::Prefix(dtype.name().into(), vec![a])
            }
            6 | 7 => {
                let data = gene.kid(0).pick_more(&self.dtypes.clone());
                if !self.takes(Sem::Select, &[dtype, Bool, dtype, dtype], None)
                    || !self.takes(Sem::Compare, &[Bool, data, data], Some(CmpOp::Eq))
                {
                    return self.leaf(gene, dtype, form, blocks);
                }
                let op = gene.pick_more(&["<", "==", ">=", "!=", "<=", ">"]);
                let a = self.expr(gene.kid(0), data, form, blocks, depth);
                let x = self.expr(gene.kid(1), dtype, form, blocks, depth);
                let y = self.expr(gene.kid(2), dtype, form, blocks, depth);
                if gene.kid(0).tag % 2 == 0 {
                    let s = self.scalar_like(gene.kid(3), data);
                    return Expr::SelectScalar(op, Box::new(a), s, Box::new([x, y]));
                }
                let b = self.expr(gene.kid(3), data, form, blocks, depth);
                Expr::Select(op, Box::new([a, b, x, y]))
            }
            8 if form != Form::Full => {
                let rows = form == Form::Column;
                let of = |op| if rows { Sem::RowReduce(op) } else { Sem::ColReduce(op) };
                let ops: Vec<Reduce> = [Reduce::Sum, Reduce::Max, Reduce::Min]
                    .into_iter()
                    .filter(|op| self.takes(of(*op), &[dtype, dtype], None))
                    .collect();
                if ops.is_empty() {
                    return self.leaf(gene, dtype, form, blocks);
                }
                let op = gene.pick_more(&ops);
                let a = self.expr(gene.kid(0), dtype, Form::Full, blocks, depth);
                Expr::Prefix(format!("{}{op}", if rows { "row" } else { "col" }), vec![a])
            }
            9 if dtype == F32 => {
                let a = self.expr(gene.kid(0), dtype, form, blocks, depth);
                if gene.kids.len() < 2 {
                    self.functions.insert(CLIP);
                    return Expr::Prefix("clip".into(), vec![a]);
                }
                if (gene.tag / 12) % 3 == 1 {
                    self.functions.insert(MAPPED);
                    let s = self.scalar_like(gene.kid(1), dtype);
                    return Expr::Mapped(Box::new(a), s);
                }
                let b = self.expr(gene.kid(1), dtype, form, blocks, depth);
                if (gene.tag / 12) % 3 == 2 {
                    self.functions.extend([ORDERED, APART]);
                    return Expr::Prefix("apart".into(), vec![Expr::Prefix("ordered".into(), vec![a, b])]);
                }
                self.functions.insert(MIX);
                Expr::Prefix("mix".into(), vec![a, b])
            }
            10 if form == Form::Full && blocks == BLOCK && self.target.accumulator_of(F16, F16) == Some(dtype) => {
                let w = self.param("w".into(), "in", F16, &["N", "N"]);
                let a = self.expr(gene.kid(0), F16, form, blocks, depth);
                Expr::Product(Box::new(a), format!("{w}.tile(j, j)"))
            }
            11 if form == Form::Full && self.takes(Sem::Transpose, &[dtype, dtype], None) => {
                let a = self.expr(gene.kid(0), dtype, form, blocks, depth);
                Expr::Prefix("transpose".into(), vec![Expr::Prefix("transpose".into(), vec![a])])
            }
            _ => self.leaf(gene, dtype, form, blocks),
        }
    }

    // ---- scalars
    // -----------------------------------------------------------------------------------------------------

    /// An index in `0..n`.
    pub(super) fn below(&mut self, gene: &Gene, n: &str) -> String {
        let e = self.index(gene, 1);
        format!("({e}) % {n}")
    }

    pub(super) fn index(&mut self, gene: &Gene, depth: u32) -> Scalar {
        if depth > 0 && !gene.kids.is_empty() {
            let (a, b) = (self.index(gene.kid(0), depth - 1), self.index(gene.kid(1), depth - 1));
            return match gene.tag % 4 {
                0 => Scalar::Prefix("min", vec![a, b]),
                n => Scalar::Infix(["+", "*", "-"][usize::from(n) - 1], Box::new(a), Box::new(b)),
            };
        }
        let mut all: Vec<String> =
            vec!["1".into(), "3".into(), "i.start".into(), "j.len".into(), "M".into(), "i.index".into()];
        all.extend(self.scalars[0].iter().cloned());
        Scalar::Text(all[usize::from(gene.tag) % all.len()].clone())
    }

    pub(super) fn number(&mut self, gene: &Gene, float: bool, depth: u32) -> Scalar {
        let dtype = if float { F32 } else { I32 };
        if depth > 0 && !gene.kids.is_empty() {
            let (a, b) = (self.number(gene.kid(0), float, depth - 1), self.number(gene.kid(1), float, depth - 1));
            let ops = ["+", "-", "*", "/"];
            return match gene.tag % 7 {
                6 if float => {
                    self.functions.insert(STEPS);
                    Scalar::Prefix("steps", vec![a, Scalar::Text("n".into())])
                }
                6 => Scalar::Prefix("abs", vec![a]),
                4 => Scalar::Prefix("max", vec![a, b]),
                5 if float => Scalar::Prefix("exp", vec![a]),
                5 => Scalar::Infix("%", Box::new(a), Box::new(b)),
                n => Scalar::Infix(ops[usize::from(n)], Box::new(a), Box::new(b)),
            };
        }
        let cells: Vec<Tile> = self
            .tiles
            .iter()
            .filter(|t| t.dtype == dtype && t.blocks == BLOCK && !t.array && t.form == Form::Full)
            .cloned()
            .collect();
        if !cells.is_empty() && gene.tag % 3 == 1 {
            let t = &cells[usize::from(gene.tag / 3) % cells.len()];
            let (r, c) = (self.below(gene, "i.len"), self.below(gene, "j.len"));
            return Scalar::Text(format!("{}[{r}, {c}]", t.name));
        }
        let mut all: Vec<String> = self.scalars[if float { 2 } else { 1 }].clone();
        all.push(if float { "1.25".into() } else { "i32(5)".into() });
        all.push(if float { "f32(z)".into() } else { "i32(n)".into() });
        if float && gene.tag % 7 == 6 {
            let aux = self.param("aux".into(), "inout", F32, &["M", "N"]);
            all = vec![format!("{aux}[i.start, j.start]")];
        }
        Scalar::Text(all[usize::from(gene.tag) % all.len()].clone())
    }

    /// A scalar for a tile of this dtype.
    fn scalar_like(&mut self, gene: &Gene, dtype: DType) -> Scalar {
        match dtype {
            F32 if gene.tag % 2 == 1 => self.number(gene, true, 1),
            I32 if gene.tag % 2 == 1 => self.number(gene, false, 1),
            d => Scalar::Text(literal(d, gene.tag)),
        }
    }

    pub(super) fn condition(&mut self, gene: &Gene) -> Scalar {
        let op = gene.pick_more(&["<", ">", "==", "!=", "<=", ">="]);
        let (a, b) = match gene.tag % 3 {
            0 => (self.index(gene.kid(0), 1), self.index(gene.kid(1), 0)),
            1 => (self.number(gene.kid(0), false, 1), self.number(gene.kid(1), false, 0)),
            _ => (self.number(gene.kid(0), true, 1), self.number(gene.kid(1), true, 0)),
        };
        Scalar::Infix(op, Box::new(a), Box::new(b))
    }
}

const BINARY: [(&str, BinOp); 11] = [
    ("+", BinOp::Add),
    ("-", BinOp::Sub),
    ("*", BinOp::Mul),
    ("max", BinOp::Max),
    ("min", BinOp::Min),
    ("/", BinOp::Div),
    ("&", BinOp::And),
    ("|", BinOp::Or),
    ("^", BinOp::Xor),
    ("<<", BinOp::Shl),
    (">>", BinOp::Shr),
];

const UNARY: [(&str, UnOp); 16] = [
    ("abs", UnOp::Abs),
    ("-", UnOp::Neg),
    ("!", UnOp::Not),
    ("exp", UnOp::Exp),
    ("sqrt", UnOp::Sqrt),
    ("log", UnOp::Log),
    ("recip", UnOp::Recip),
    ("rsqrt", UnOp::Rsqrt),
    ("sin", UnOp::Sin),
    ("cos", UnOp::Cos),
    ("tanh", UnOp::Tanh),
    ("erf", UnOp::Erf),
    ("floor", UnOp::Floor),
    ("ceil", UnOp::Ceil),
    ("trunc", UnOp::Trunc),
    ("rint", UnOp::Rint),
];

fn binary(word: &'static str, a: Expr, b: Expr) -> Expr {
    if is_infix(word) { Expr::Infix(word, Box::new(a), Box::new(b)) } else { Expr::Prefix(word.into(), vec![a, b]) }
}

fn literal(dtype: DType, tag: u16) -> String {
    if dtype.is_float() {
        return ["0.0", "1.0", "-0.5", "2.5", "1.0e-3", "100.0"][usize::from(tag) % 6].into();
    }
    let all: &[&str] = if dtype.is_signed_int() { &["0", "1", "-3", "7", "100"] } else { &["0", "1", "3", "7", "200"] };
    all[usize::from(tag) % all.len()].into()
}

fn dim(block: &str) -> &'static str {
    match block {
        "i" | "q" => "M",
        "k" => "K",
        _ => "N",
    }
}

fn window(blocks: Blocks) -> String {
    match (blocks.rows, blocks.cols) {
        ("q", c) => format!(".tile(i, {c}).tile(q, _)"),
        (r, "p") => format!(".tile({r}, j).tile(_, p)"),
        (r, c) => format!(".tile({r}, {c})"),
    }
}
