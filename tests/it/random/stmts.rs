//! Statements: what a gene becomes where one may stand.

#![allow(clippy::manual_is_multiple_of, reason = "a choice is a remainder")]

use super::ast::{Blocks, Expr, Form, Scalar, Stmt};
use super::gene::Gene;
use super::grow::{BLOCK, FOLD, Grower, Tile};
use ptoc_isa::{BinOp, CmpOp, Sem, TABLE};
use ptoc_tensor::DType::{self, *};

impl Grower<'_> {
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
        let changes = [("+=", BinOp::Add), ("^=", BinOp::Xor), ("&=", BinOp::And), (">>=", BinOp::Shr)];
        let (change, meaning) = gene.kid(1).pick_more(&changes);
        let op =
            if gene.kid(1).tag % 3 == 1 && self.takes(Sem::Binary(meaning), &[dtype; 3], None) { change } else { "=" };
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

    pub(super) fn stmt(&mut self, gene: &Gene, blocks: Blocks, depth: u32, out: &mut Vec<Stmt>) {
        match gene.tag % 27 {
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
            20..=25 if blocks == BLOCK => {
                if self.form(gene, out).is_none() {
                    self.assign(gene, blocks, out);
                }
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
