//! From genes to a program: each gene picks among what is well typed at its place, so that any genes make a program, and
//! fewer and smaller genes make a smaller one.

#![allow(clippy::manual_is_multiple_of, reason = "a choice is a remainder")]

use super::ast::{Blocks, Expr, Form, Param, Program, Scalar, Stmt};
use proptest::prelude::*;
use ptoc_isa::{BinOp, CmpOp, InstrId, Reduce, Sem, TABLE, Target, UnOp, check_dtypes};
use ptoc_tensor::DType::{self, *};
use std::collections::BTreeSet;

/// A choice, with the choices below it.
#[derive(Clone, Debug)]
pub struct Gene {
    tag: u16,
    kids: Vec<Gene>,
}

/// All choices of a program and its launch.
#[derive(Clone, Debug)]
pub struct Genome {
    pub a5: bool,
    /// Sizes of the dimensions M, N and K.
    pub sizes: (u8, u8, u8),
    /// Picks of the sizes of blocks.
    pub blocks: (u8, u8, u8),
    pub seed: u16,
    tiles: Vec<u16>,
    stmts: Vec<Gene>,
}

fn gene() -> impl Strategy<Value = Gene> {
    let leaf = || any::<u16>().prop_map(|tag| Gene { tag, kids: Vec::new() });
    let mut level = leaf().boxed();
    for _ in 0..5 {
        let kids = (any::<u16>(), proptest::collection::vec(level, 1..5)).prop_map(|(tag, kids)| Gene { tag, kids });
        level = prop_oneof![1 => leaf(), 3 => kids].boxed();
    }
    level
}

pub fn genome() -> impl Strategy<Value = Genome> {
    let size = || prop_oneof![1 => Just(0u8), 3 => Just(1), 12 => 1u8..36, 2 => 36u8..70];
    let parts = (
        any::<bool>(),
        (size(), size(), size()),
        any::<(u8, u8, u8)>(),
        any::<u16>(),
        proptest::collection::vec(any::<u16>(), 1..5),
        proptest::collection::vec(gene(), 1..8),
    );
    parts.prop_map(|(a5, sizes, blocks, seed, tiles, stmts)| Genome { a5, sizes, blocks, seed, tiles, stmts })
}

const NOTHING: &Gene = &Gene { tag: 0, kids: Vec::new() };

impl Gene {
    fn kid(&self, i: usize) -> &Gene {
        self.kids.get(i).unwrap_or(NOTHING)
    }

    fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[usize::from(self.tag) % from.len()]
    }

    /// An independent second choice.
    fn pick_more<T: Copy>(&self, from: &[T]) -> T {
        from[usize::from(self.tag / 61) % from.len()]
    }
}

/// A tile that a program may use.
#[derive(Clone, Debug)]
struct Tile {
    name: String,
    form: Form,
    dtype: DType,
    blocks: Blocks,
    /// A tile array: an index is to be chosen.
    array: bool,
    /// May instructions write it whole? Windows keep their shape.
    writable: bool,
}

const BLOCK: Blocks = Blocks { rows: "i", cols: "j" };

const CLIP: &str =
    "fn clip(x: f32) -> f32 {\n    let y = if x > 0.5 { 1.0 - x } else { x * 0.75 };\n    max(y, -2.0)\n}";
const MIX: &str = "fn mix(x: f32, y: f32) -> f32 {\n    if x < y { x * y + 1.0 } else { y - x }\n}";
const FOLD: &str = "fn fold(s: in Vec<f32, a, b>, top: inout Vec<f32, a, 1>) -> Vec<f32, a, b> {\n    let new = max(top, rowmax(s));\n    top = new;\n    return s - new;\n}";

const STEPS: &str = "fn steps(x: f32, n: index) -> f32 {\n    var y = x;\n    for r in 0..n {\n        if y > 3.0 { return y - 3.0; }\n        y = y * 1.5 + 0.25;\n    }\n    y\n}";

pub struct Grower<'g> {
    genome: &'g Genome,
    target: &'static Target,
    dtypes: Vec<DType>,
    params: BTreeSet<Param>,
    functions: BTreeSet<&'static str>,
    tiles: Vec<Tile>,
    names: usize,
    /// Scalars that exist: of index, i32, f32.
    scalars: [Vec<String>; 3],
    pairs: u32,
    /// Tiles that may move to other addresses, and the least of those.
    movable: Vec<(String, u32)>,
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
        let target = Target::builtin(if genome.a5 { "a5" } else { "a2a3" }).expect("a target");
        let dtypes =
            if genome.a5 { vec![F32, I32, F16, BF16, I16, U16, U32, I8, U8] } else { vec![F32, I32, F16, I16] };
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
        if g.block_rows() == 16 {
            // A column of 16 elements of a byte is not 32 bytes.
            g.dtypes.retain(|d| d.size() > 1);
        }
        g
    }

    fn block_rows(&self) -> u32 {
        [16, 32][usize::from(self.genome.blocks.0) % 2]
    }

    fn block_cols(&self) -> u32 {
        [32, 64, 96][usize::from(self.genome.blocks.1) % 3]
    }

    fn block_depth(&self) -> u32 {
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

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn param(&mut self, name: String, dir: &'static str, dtype: DType, shape: &[&'static str]) -> String {
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

    fn takes(&self, sem: Sem, dtypes: &[DType], cmp: Option<CmpOp>) -> bool {
        let Some(at) = TABLE.iter().position(|i| i.sem == sem) else { return false };
        check_dtypes(self.target, InstrId(at as u16), dtypes, cmp).is_none()
    }

    // ---- tiles -------------------------------------------------------------------------------------------------------

    /// Tiles of this type here, as text: whole, as a window, or an element of an array.
    fn places(&mut self, gene: &Gene, dtype: DType, form: Form, blocks: Blocks, whole: bool) -> Vec<String> {
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
    fn expr(&mut self, gene: &Gene, dtype: DType, form: Form, blocks: Blocks, depth: u32) -> Expr {
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
                // s - x of unsigned numbers would negate them.
                let left = gene.kid(1).tag % 3 == 2 && (dtype.is_float() || word != "-");
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
                let ops: Vec<Reduce> =
                    Reduce::ALL.iter().copied().filter(|op| self.takes(of(*op), &[dtype, dtype], None)).collect();
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
                self.functions.insert(MIX);
                let b = self.expr(gene.kid(1), dtype, form, blocks, depth);
                Expr::Prefix("mix".into(), vec![a, b])
            }
            10 if form == Form::Full && dtype == F32 && blocks == BLOCK => {
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

    // ---- scalars -----------------------------------------------------------------------------------------------------

    /// An index in `0..n`.
    fn below(&mut self, gene: &Gene, n: &str) -> String {
        let e = self.index(gene, 1);
        format!("({e}) % {n}")
    }

    fn index(&mut self, gene: &Gene, depth: u32) -> Scalar {
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

    fn number(&mut self, gene: &Gene, float: bool, depth: u32) -> Scalar {
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

    fn condition(&mut self, gene: &Gene) -> Scalar {
        let op = gene.pick_more(&["<", ">", "==", "!=", "<=", ">="]);
        let (a, b) = match gene.tag % 3 {
            0 => (self.index(gene.kid(0), 1), self.index(gene.kid(1), 0)),
            1 => (self.number(gene.kid(0), false, 1), self.number(gene.kid(1), false, 0)),
            _ => (self.number(gene.kid(0), true, 1), self.number(gene.kid(1), true, 0)),
        };
        Scalar::Infix(op, Box::new(a), Box::new(b))
    }

    // ---- statements --------------------------------------------------------------------------------------------------

    fn block(&mut self, genes: &[Gene], blocks: Blocks, depth: u32) -> Vec<Stmt> {
        let outer = self.tiles.len();
        let mut out = Vec::new();
        for g in genes {
            self.stmt(g, blocks, depth, &mut out);
        }
        self.tiles.truncate(outer);
        out
    }

    /// A whole tile here, to be written.
    fn target(&mut self, gene: &Gene, blocks: Blocks, windows: bool) -> Option<(String, DType, Form)> {
        let mut all = Vec::new();
        for dtype in self.dtypes.clone() {
            for form in [Form::Full, Form::Column, Form::Row] {
                // A part of a column or row that does not vary here would be written by each turn: that is fine too.
                let places = self.places(gene, dtype, form, blocks, !windows);
                all.extend(places.into_iter().map(|p| (p, dtype, form)));
            }
        }
        if all.is_empty() { None } else { Some(all[usize::from(gene.tag / 16) % all.len()].clone()) }
    }

    fn assign(&mut self, gene: &Gene, blocks: Blocks, out: &mut Vec<Stmt>) {
        let Some((place, dtype, form)) = self.target(gene, blocks, blocks != BLOCK || gene.tag % 3 == 0) else {
            return self.bind(gene, blocks, out);
        };
        let e = self.expr(gene.kid(0), dtype, form, blocks, 3);
        let op =
            if gene.kid(1).tag % 3 == 1 && self.takes(Sem::Binary(BinOp::Add), &[dtype; 3], None) { "+=" } else { "=" };
        out.push(Stmt::Assign(place, op, e));
    }

    fn bind(&mut self, gene: &Gene, blocks: Blocks, out: &mut Vec<Stmt>) {
        let dtype = gene.pick_more(&self.dtypes.clone());
        let form = gene.pick(&[Form::Full, Form::Column, Form::Row]);
        let e = self.expr(gene.kid(0), dtype, form, blocks, 3);
        // A name for a window or for a tile of an array is not storage of its own.
        let writable = !matches!(e, Expr::Tile(_));
        let name = self.fresh("l");
        out.push(Stmt::Let(name.clone(), e));
        if writable {
            self.tiles.push(Tile { name, form, dtype, blocks, array: false, writable });
        }
    }

    fn stmt(&mut self, gene: &Gene, blocks: Blocks, depth: u32, out: &mut Vec<Stmt>) {
        match gene.tag % 20 {
            1 => self.bind(gene, blocks, out),
            2 => self.instruction(gene, blocks, out),
            3 | 4 if depth > 0 => {
                let cond = self.condition(gene.kid(0));
                let rest = gene.kids.get(1..).unwrap_or_default();
                let half = rest.len().div_ceil(2);
                let then = self.block(&rest[..half], blocks, depth - 1);
                let els = self.block(&rest[half..], blocks, depth - 1);
                out.push(Stmt::If(cond, then, els));
            }
            5 if depth > 0 => {
                let name = self.fresh("r");
                self.scalars[0].push(name.clone());
                let mut body = self.block(&gene.kids, blocks, depth - 1);
                if gene.tag / 16 % 3 == 2 {
                    let cond = self.condition(gene.kid(0));
                    let at = usize::from(gene.tag / 64) % (body.len() + 1);
                    // What is declared after the jump is not used before it.
                    body.insert(at, Stmt::Jump(cond, gene.pick_more(&["break", "continue"])));
                }
                self.scalars[0].retain(|s| *s != name);
                out.push(Stmt::Loop(format!("for {name} in 0..{}", gene.tag / 16 % 4), body));
            }
            6 if depth > 0 && blocks == BLOCK => {
                let inner = Blocks { rows: "i", cols: "k" };
                let body = self.block(&gene.kids, inner, depth - 1);
                let word = gene.pick_more(&["for", "for", "pipeline(stages = 2) for"]);
                self.size_k();
                out.push(Stmt::Loop(format!("{word} k in tiles(K, {})", self.block_depth()), body));
            }
            7 if depth > 0 && blocks == BLOCK => {
                let rows = gene.tag / 16 % 2 == 0;
                let (inner, head) = if rows {
                    (Blocks { rows: "q", cols: "j" }, format!("for q in tiles(i.len, {})", gene.pick_more(&[8, 16, 5])))
                } else {
                    (
                        Blocks { rows: "i", cols: "p" },
                        format!("for p in tiles(j.len, {})", gene.pick_more(&[32, 16, 24])),
                    )
                };
                let body = self.block(&gene.kids, inner, depth - 1);
                out.push(Stmt::Loop(head, body));
            }
            8 => {
                let (k, op) = (usize::from(gene.tag / 16) % 3, gene.pick_more(&["=", "+=", "-=", "*="]));
                let name = ["n", "z", "s"][k].to_owned();
                let value = match k {
                    // Kept small: index arithmetic must not overflow in loops.
                    0 => Scalar::Infix("%", Box::new(self.index(gene.kid(0), 2)), Box::new(Scalar::Text("7".into()))),
                    1 => self.number(gene.kid(0), false, 2),
                    _ => self.number(gene.kid(0), true, 2),
                };
                out.push(Stmt::Set(name, if k == 0 { "=" } else { op }, value));
            }
            9 => {
                // An element of a tile.
                let cells: Vec<Tile> = self
                    .tiles
                    .iter()
                    .filter(|t| t.blocks == BLOCK && !t.array && t.form == Form::Full && matches!(t.dtype, F32 | I32))
                    .cloned()
                    .collect();
                if cells.is_empty() {
                    return self.assign(gene, blocks, out);
                }
                let t = &cells[usize::from(gene.tag / 16) % cells.len()];
                let (r, c) = (self.below(gene.kid(0), "i.len"), self.below(gene.kid(1), "j.len"));
                let value = self.number(gene.kid(2), t.dtype == F32, 2);
                out.push(Stmt::Set(format!("{}[{r}, {c}]", t.name), "=", value));
            }
            10 => {
                // Elements of tensors: a block's own, and counters that all share, each with one operation.
                if gene.tag / 16 % 2 == 0 {
                    let aux = self.param("aux".into(), "inout", F32, &["M", "N"]);
                    let (r, c) = (self.below(gene.kid(0), "i.len"), self.below(gene.kid(1), "j.len"));
                    let value = self.number(gene.kid(2), true, 2);
                    out.push(Stmt::Set(format!("{aux}[i.start + {r}, j.start + {c}]"), "=", value));
                } else {
                    let count = self.param("count".into(), "inout", I32, &["24"]);
                    let k = usize::from(gene.tag / 32) % 6;
                    let op = ["add", "max", "min", "and", "or", "xor"][k];
                    let cell = self.below(gene.kid(0), "4");
                    let value = self.number(gene.kid(1), false, 2);
                    out.push(Stmt::Line(format!("atomic_{op}({count}[{} + {cell}], {value});", 4 * k)));
                }
            }
            11 if blocks == BLOCK => self.product(gene, out),
            12 => {
                let columns: Vec<String> = self.places(gene, F32, Form::Column, blocks, true);
                let Some(top) = columns.first() else { return self.assign(gene, blocks, out) };
                self.functions.insert(FOLD);
                let e = self.expr(gene.kid(0), F32, Form::Full, blocks, 2);
                let name = self.fresh("l");
                out.push(Stmt::Line(format!("let {name} = fold({e}, {top});")));
                self.tiles.push(Tile { name, form: Form::Full, dtype: F32, blocks, array: false, writable: true });
            }
            13 if depth > 0 => {
                let name = self.fresh("w");
                let mut body = vec![Stmt::Line(format!("{name} += 1;"))];
                body.extend(self.block(&gene.kids, blocks, depth - 1));
                out.push(Stmt::Line(format!("var {name} = index(0);")));
                out.push(Stmt::Loop(format!("while {name} < {}", gene.tag / 16 % 3), body));
            }
            14 => self.masks(gene, blocks, depth, out),
            15 if blocks == BLOCK => self.modes(gene, out),
            16 if blocks == BLOCK => {
                // Through global memory and back.
                let dtype = gene.pick_more(&self.dtypes.clone());
                let whole = self.places(gene, dtype, Form::Full, blocks, true);
                if whole.is_empty() {
                    return self.assign(gene, blocks, out);
                }
                let tile = |g: &Gene| whole[usize::from(g.tag / 7) % whole.len()].clone();
                let buf = self.param(format!("buf_{dtype}"), "inout", dtype, &["M", "N"]);
                out.push(Stmt::Line(format!("TSTORE({buf}.tile(i, j), {});", tile(gene.kid(0)))));
                let body = self.block(gene.kids.get(2..).unwrap_or_default(), blocks, depth.saturating_sub(1));
                out.extend(body);
                out.push(Stmt::Line(format!("TLOAD({}, {buf}.tile(i, j));", tile(gene.kid(1)))));
            }
            17 if blocks == BLOCK && !self.movable.is_empty() => {
                let (name, base) = self.movable[usize::from(gene.tag / 20) % self.movable.len()].clone();
                let step = self.below(gene.kid(0), "3");
                out.push(Stmt::Line(format!("TASSIGN({name}, {base} + 32 * ({step}));")));
            }
            18 if blocks == BLOCK => {
                let whole = self.places(gene, I32, Form::Full, blocks, true);
                let Some(t) = whole.first() else { return self.assign(gene, blocks, out) };
                let sum = self.param("sum".into(), "inout", I32, &["M", "N"]);
                out.push(Stmt::Line(format!("TSTORE({sum}.tile(i, j), {t}, atomic = true);")));
            }
            _ => self.assign(gene, blocks, out),
        }
    }

    /// A mask that lives on while other things happen.
    fn masks(&mut self, gene: &Gene, blocks: Blocks, depth: u32, out: &mut Vec<Stmt>) {
        let (data, dtype) = (gene.pick_more(&self.dtypes.clone()), gene.kid(0).pick_more(&self.dtypes.clone()));
        let legal = |g: &Self, op| g.takes(Sem::Compare, &[Bool, data, data], Some(op));
        let ops: Vec<CmpOp> = CmpOp::ALL.iter().copied().filter(|op| legal(self, *op)).collect();
        let (sources, whole) =
            (self.places(gene, data, Form::Full, blocks, true), self.places(gene, dtype, Form::Full, blocks, true));
        let selects = self.takes(Sem::Select, &[dtype, Bool, dtype, dtype], None);
        if ops.is_empty() || sources.is_empty() || whole.is_empty() || !selects {
            return self.assign(gene, blocks, out);
        }
        let from = |list: &[String], g: &Gene| list[usize::from(g.tag / 7) % list.len()].clone();
        let (m, n) = (self.fresh("m"), self.fresh("m"));
        let extents = blocks.extents(Form::Full);
        out.push(Stmt::Line(format!("let {m} = tile Vec<bool, {extents}>;")));
        let op = gene.kid(1).pick(&ops).name().to_uppercase();
        let (a, b) = (from(&sources, gene.kid(0)), from(&sources, gene.kid(1)));
        out.push(Stmt::Inst("TCMP", vec![m.clone(), a, b.clone(), op.clone()]));
        let mut mask = m.clone();
        if gene.kid(2).tag % 3 != 0 {
            out.push(Stmt::Line(format!("let {n} = tile Vec<bool, {extents}>;")));
            out.push(Stmt::Inst("TCMP", vec![n.clone(), b.clone(), b, op]));
            let word = gene.kid(2).pick(&["TXOR", "TAND", "TOR"]);
            out.push(Stmt::Inst(word, vec![n.clone(), m.clone(), n.clone()]));
            out.push(Stmt::Inst("TNOT", vec![m, n.clone()]));
            mask = n;
        }
        let body = self.block(gene.kids.get(3..).unwrap_or_default(), blocks, depth.saturating_sub(1));
        out.extend(body);
        let (d, x, y) = (from(&whole, gene.kid(2)), from(&whole, gene.kid(1)), from(&whole, gene.kid(3)));
        out.push(Stmt::Inst("TSEL", vec![d, mask, x, y]));
    }

    /// Conversions with a rounding mode, gathers with a mode for what is outside.
    fn modes(&mut self, gene: &Gene, out: &mut Vec<Stmt>) {
        let dtypes = self.dtypes.clone();
        let dtype = gene.pick_more(&dtypes);
        let whole = self.places(gene, dtype, Form::Full, BLOCK, true);
        if whole.is_empty() {
            return self.assign(gene, BLOCK, out);
        }
        let from = |list: &[String], g: &Gene| list[usize::from(g.tag / 7) % list.len()].clone();
        let d = from(&whole, gene.kid(0));
        if gene.kid(1).tag % 2 == 0 {
            let sources: Vec<DType> =
                dtypes.iter().copied().filter(|s| self.takes(Sem::Convert, &[dtype, *s], None)).collect();
            if sources.is_empty() {
                return self.assign(gene, BLOCK, out);
            }
            let source = gene.kid(1).pick_more(&sources);
            let list = self.places(gene, source, Form::Full, BLOCK, true);
            let round = gene.kid(2).pick(&["Rint", "Round", "Floor", "Ceil", "Trunc", "Odd"]);
            let saturate = gene.kid(2).tag % 4 < 2;
            if list.is_empty() {
                return self.assign(gene, BLOCK, out);
            }
            out.push(Stmt::Line(format!("TCVT({d}, {}, {round}, saturate = {saturate});", from(&list, gene.kid(3)))));
            return;
        }
        let index = self.expr(gene.kid(2), I32, Form::Full, BLOCK, 2);
        let table = self.param(format!("table_{dtype}"), "in", dtype, &["37"]);
        let oob = gene.kid(1).pick_more(&["Clamp", "Wrap", "Zero"]);
        let name = self.fresh("l");
        out.push(Stmt::Line(format!("let {name} = tile Vec<i32, i, j>;")));
        out.push(Stmt::Assign(name.clone(), "=", index));
        out.push(Stmt::Line(format!("MGATHER({d}, {table}, {name}, oob = {oob});")));
        self.tiles.push(Tile { name, form: Form::Full, dtype: I32, blocks: BLOCK, array: false, writable: true });
    }

    fn size_k(&mut self) {
        if !self.params.iter().any(|p| p.shape.contains(&"K")) {
            self.param("size_k".into(), "in", I32, &["K"]);
        }
    }

    /// `TADD(t, a, b);` on whole tiles, which may be one and the same.
    fn instruction(&mut self, gene: &Gene, blocks: Blocks, out: &mut Vec<Stmt>) {
        let dtype = gene.pick_more(&self.dtypes.clone());
        let whole = self.places(gene, dtype, Form::Full, blocks, true);
        if whole.is_empty() {
            return self.assign(gene, blocks, out);
        }
        let tile = |g: &Gene| whole[usize::from(g.tag / 7) % whole.len()].clone();
        let rows: Vec<&'static ptoc_isa::Instr> = TABLE
            .iter()
            .filter(|i| match i.sem {
                Sem::Binary(_) => self.takes(i.sem, &[dtype; 3], None),
                Sem::Unary(_) => self.takes(i.sem, &[dtype; 2], None),
                Sem::Move => true,
                _ => false,
            })
            .collect();
        let row = gene.kid(0).pick(&rows);
        let args = row.operands.iter().enumerate().map(|(k, _)| tile(gene.kid(k))).collect();
        out.push(Stmt::Inst(row.name, args));
    }

    /// A product over all of K into an accumulator.
    fn product(&mut self, gene: &Gene, out: &mut Vec<Stmt>) {
        let triples: Vec<ptoc_isa::Triple> =
            self.target.triples.iter().copied().filter(|t| self.dtypes.contains(&t.acc)).collect();
        let t = gene.pick_more(&triples);
        let a = self.param(format!("a_{}", t.left), "in", t.left, &["M", "K"]);
        let b = self.param(format!("b_{}", t.right), "in", t.right, &["K", "N"]);
        let (acc, name) = (self.fresh("acc"), self.fresh("l"));
        out.push(Stmt::Line(format!("let {acc} = tile Acc<{}, i, j>;", t.acc)));
        out.push(Stmt::Line(format!("{acc} = {};", if t.acc.is_float() { "0.0" } else { "0" })));
        let step = format!("TMATMUL_ACC({acc}, {acc}, Left({a}.tile(i, k)), Right({b}.tile(k, j)));");
        let mut body = vec![Stmt::Line(step)];
        if gene.kid(0).tag % 3 == 2 {
            let bias = self.param(format!("bias_{}", t.acc), "in", t.acc, &["N"]);
            let first =
                format!("TMATMUL_BIAS({acc}, Left({a}.tile(i, k)), Right({b}.tile(k, j)), Bias({bias}.tile(j)));");
            body = vec![Stmt::If(Scalar::Text("k.first".into()), vec![Stmt::Line(first)], body)];
        }
        let word = gene.pick(&["for", "pipeline(stages = 2) for"]);
        out.push(Stmt::Loop(format!("{word} k in tiles(K, {})", self.block_depth()), body));
        if t.acc == F32 && gene.kid(1).tag % 3 == 1 {
            let half = self.param("half".into(), "inout", F16, &["M", "N"]);
            out.push(Stmt::Line(format!("TSTORE({half}.tile(i, j), {acc});")));
        }
        out.push(Stmt::Line(format!("let {name} = Vec({acc});")));
        self.tiles.push(Tile { name, form: Form::Full, dtype: t.acc, blocks: BLOCK, array: false, writable: true });
    }
}

const BINARY: [(&str, BinOp); 6] = [
    ("+", BinOp::Add),
    ("-", BinOp::Sub),
    ("*", BinOp::Mul),
    ("max", BinOp::Max),
    ("min", BinOp::Min),
    ("/", BinOp::Div),
];

const UNARY: [(&str, UnOp); 7] = [
    ("abs", UnOp::Abs),
    ("-", UnOp::Neg),
    ("exp", UnOp::Exp),
    ("sqrt", UnOp::Sqrt),
    ("log", UnOp::Log),
    ("recip", UnOp::Recip),
    ("rsqrt", UnOp::Rsqrt),
];

fn binary(word: &'static str, a: Expr, b: Expr) -> Expr {
    if word.len() == 1 { Expr::Infix(word, Box::new(a), Box::new(b)) } else { Expr::Prefix(word.into(), vec![a, b]) }
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
