//! Statements about what authors of whole operators use: scans, places of extremes, packed masks, bits as another
//! dtype, arrays of tiles in functions, parts of threads, slices, strided windows and look-ups by tiles.

#![allow(clippy::manual_is_multiple_of, reason = "a choice is a remainder")]

use super::ast::{Expr, Form, Stmt};
use super::gene::Gene;
use super::grow::{BLOCK, Grower, Tile};
use ptoc_tensor::DType::{self, *};

const TOTAL: &str = "fn total(parts: in Vec<f32, a, b>[n]) -> Vec<f32, a, b> {\n    let s = tile Vec<f32, a, b>;\n    \
    s = 0.0;\n    for p in parts { s += p; }\n    return s;\n}";
const CHOSEN: &str = "fn chosen(parts: in Vec<f32, a, b>[n], k: index) -> Vec<f32, a, b> {\n    \
    parts[k] * 0.5 + parts[0]\n}";

/// Eight threads, in two orders.
const THREADS: [&str; 2] = ["(4, 2):(2, 1)", "(2, 4):(1, 2)"];

impl Grower<'_> {
    /// One of these statements, or none where there is nothing for it.
    pub(super) fn form(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        match gene.pick_more(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
            0 => self.scan(gene, out),
            1 => self.extreme(gene, out),
            2 => self.packed(gene, out),
            3 => self.bits(gene, out),
            4 => self.list_of_tiles(gene, out),
            5 => self.array_of_tiles(gene, out),
            6 => self.threads(gene, out),
            7 => self.turned(gene, out),
            8 => self.window(gene, out),
            9 => self.looked_up(gene, out),
            _ => self.power(gene, out),
        }
    }

    fn name(&mut self, dtype: DType, form: Form, value: Expr, out: &mut Vec<Stmt>) -> Option<()> {
        let name = self.fresh("l");
        out.push(Stmt::Let(name.clone(), value));
        self.tiles.push(Tile { name, form, dtype, blocks: BLOCK, array: false, writable: true });
        Some(())
    }

    fn scan(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&self.dtypes.clone());
        let e = self.expr(gene.kid(1), dtype, Form::Full, BLOCK, 2);
        let way = gene.kid(2).pick(&["row", "col"]);
        let op = gene.kid(2).pick_more(&["sum", "prod", "max", "min"]);
        let rest = if gene.kid(2).tag / 2 % 2 == 0 { "" } else { ", exclusive = true" };
        self.name(dtype, Form::Full, Expr::Tile(format!("{way}cum{op}({e}{rest})")), out)
    }

    fn extreme(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&[F32, F16, I32, I16]);
        let e = self.expr(gene.kid(1), dtype, Form::Full, BLOCK, 2);
        let (way, form) = gene.kid(2).pick(&[("row", Form::Column), ("col", Form::Row)]);
        let op = gene.kid(2).pick_more(&["argmax", "argmin"]);
        self.name(I32, form, Expr::Prefix(format!("{way}{op}"), vec![e]), out)
    }

    /// A mask of one bit an element. Blocks are whole bytes wide.
    fn packed(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&[F32, F16, I32]);
        let (a, b) =
            (self.expr(gene.kid(1), dtype, Form::Full, BLOCK, 2), self.expr(gene.kid(2), dtype, Form::Full, BLOCK, 1));
        let op = gene.kid(0).pick(&["<", "==", ">="]);
        let order = gene.kid(3).pick(&["", ", highest_first = true"]);
        let bits = self.param("bits".into(), "inout", U8, &["M", "N8"]);
        let place = format!("{bits}.tile(i, tiles(N8, {})[j.index])", self.block_cols() / 8);
        out.push(Stmt::Line(format!("TSTORE({place}, packbits({a} {op} {b}{order}));")));
        Some(())
    }

    /// Bits of integers: which NaN a float is, is nobody's.
    fn bits(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let (from, to, through) = gene.kid(0).pick_more(&[
            (I32, F32, None),
            (I16, F16, None),
            (I32, I32, Some(U32)),
            (I16, I16, Some(U16)),
            (I32, I32, Some(I16)),
            (I16, I16, Some(I8)),
        ]);
        let e = self.expr(gene.kid(1), from, Form::Full, BLOCK, 2);
        let inner = through.map_or_else(|| format!("{e}"), |d| format!("recast<{d}>({e})"));
        self.name(to, Form::Full, Expr::Tile(format!("recast<{to}>({inner})")), out)
    }

    fn list_of_tiles(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let parts: Vec<String> = (0..1 + gene.tag / 16 % 3)
            .map(|k| format!("{}", self.expr(gene.kid(usize::from(k)), F32, Form::Full, BLOCK, 2)))
            .collect();
        self.functions.insert(TOTAL);
        self.name(F32, Form::Full, Expr::Tile(format!("total([{}])", parts.join(", "))), out)
    }

    fn array_of_tiles(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let array = self.tiles.iter().find(|t| t.array && t.dtype == F32)?.name.clone();
        if gene.kid(0).tag % 2 == 0 {
            self.functions.insert(TOTAL);
            return self.name(F32, Form::Full, Expr::Tile(format!("total({array})")), out);
        }
        self.functions.insert(CHOSEN);
        let k = self.below(gene.kid(1), "2");
        self.name(F32, Form::Full, Expr::Tile(format!("chosen({array}, {k})")), out)
    }

    /// What each of eight threads has of a block, which they need not divide.
    fn threads(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&self.dtypes.clone());
        let whole = self.places(gene.kid(1), dtype, Form::Full, BLOCK, true);
        let to = whole.get(usize::from(gene.kid(1).tag) % whole.len().max(1))?.clone();
        let from = self.tensor_window(dtype);
        let (threads, t) = (gene.kid(2).pick(&THREADS), self.fresh("h"));
        let part = |of: &str| format!("local_partition({of}, {threads}, {t})");
        let copy = Stmt::Line(format!("copy({}, {});", part(&to), part(&from)));
        out.push(Stmt::Loop(format!("for {t} in 0..8"), vec![copy]));
        Some(())
    }

    /// A block of a transposed array.
    fn turned(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&self.dtypes.clone());
        let whole = self.places(gene.kid(1), dtype, Form::Full, BLOCK, true);
        let to = whole.get(usize::from(gene.kid(1).tag) % whole.len().max(1))?.clone();
        let x = self.param(format!("turned_{dtype}"), "in", dtype, &["N", "M"]);
        let line = match gene.kid(2).tag % 3 {
            0 => format!("copy({to}, modes({x}.tile(j, i), (1, 0)));"),
            1 => format!("copy({to}, {x}.T.tile(i, j));"),
            _ => format!("copy(modes({to}, (1, 0)), {x}.tile(j, i));"),
        };
        out.push(Stmt::Line(line));
        Some(())
    }

    /// A block as a slice, or of every second element.
    fn window(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&self.dtypes.clone());
        let view = match gene.kid(1).tag % 3 {
            0 => {
                let x = self.param(format!("xMN_{dtype}"), "in", dtype, &["M", "N"]);
                format!("{x}[i.start .. i.end, j.start .. j.end]")
            }
            1 => {
                let x = self.param(format!("xMN_{dtype}"), "in", dtype, &["M", "N"]);
                let skip = gene.kid(1).tag / 3 % 2;
                format!("{x}[min(i.start + {skip}, i.end) .. i.end, _].tile(tiles(i.len, {})[0], j)", self.block_rows())
            }
            _ => {
                let x = self.param(format!("pairs_{dtype}"), "in", dtype, &["M", "N", "2"]);
                format!("{x}[_, _, {}].tile(i, j)", gene.kid(1).tag / 3 % 2)
            }
        };
        if gene.kid(1).tag % 3 == 1 {
            // It may have a row less than the block: its sum has one row.
            return self.name(dtype, Form::Row, Expr::Tile(format!("colmax(Vec({view}))")), out);
        }
        self.name(dtype, Form::Full, Expr::Load(view), out)
    }

    fn looked_up(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&self.dtypes.clone());
        let rows = self.expr(gene.kid(1), I32, Form::Column, BLOCK, 2);
        let (x, name) = (self.param(format!("xMN_{dtype}"), "in", dtype, &["M", "N"]), self.fresh("l"));
        out.push(Stmt::Line(format!("let {name} = tile Vec<i32, i, 1>;")));
        out.push(Stmt::Assign(name.clone(), "=", rows));
        let oob = gene.kid(2).pick_more(&["Clamp", "Wrap", "Zero"]);
        self.name(dtype, Form::Full, Expr::Load(format!("gather({x}, ({name}, _), oob = {oob}).tile(_, j)")), out)
    }

    fn power(&mut self, gene: &Gene, out: &mut Vec<Stmt>) -> Option<()> {
        let dtype = gene.kid(0).pick_more(&[F32, F16, I32]);
        let a = self.expr(gene.kid(1), dtype, Form::Full, BLOCK, 2);
        let b = self.expr(gene.kid(2), dtype, Form::Full, BLOCK, 1);
        let value = match gene.kid(0).tag % 2 {
            0 => Expr::Prefix("pow".into(), vec![a, b]),
            _ => Expr::Infix("%", Box::new(a), Box::new(b)),
        };
        self.name(dtype, Form::Full, value, out)
    }

    fn tensor_window(&mut self, dtype: DType) -> String {
        let x = self.param(format!("xMN_{dtype}"), "in", dtype, &["M", "N"]);
        format!("{x}.tile(i, j)")
    }
}
