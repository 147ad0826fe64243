//! Windows whose elements a table chooses: `gather(x, (table, _))` and `scatter(y, (table, _))` look a mode's index up.
//! Nothing moves, but for a table that is a tile: it goes to scratch memory, from which it is looked up.

use super::labels::count;
use super::{ElabResult, Elaborator, ErrorReported, not_yet};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::{Loc, Oob};
use ptoc_layout::Tuple;
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::{Arg, Expr};
use ptoc_tensor::DType;
use ptoc_values::{Leaf, Quantity, TableLookup, TileVal, Val, View, WindowMode};

impl Elaborator<'_> {
    /// `gather(x, (table, _, i))`: index r of mode 0 becomes `table[r]`. An entry is a vector or a tile of integers,
    /// a block or an index, or `_`.
    pub(crate) fn gather(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let usage = "usage: `gather(x, (table, _))`: a vector of integers where a mode is looked up, `_` elsewhere";
        let mut oob = Oob::Undefined;
        let mut positional = Vec::new();
        for a in args {
            match &a.name {
                None => positional.push(&a.value),
                Some(n) if n.name == "oob" => match self.expr(&a.value)? {
                    Val::Word(Word::Oob(o)) => oob = o,
                    other => {
                        let message = format!("`oob` is Zero, Clamp, Wrap or Undefined, found {}", other.describe());
                        return self.error(codes::WRONG_ARGUMENTS, a.value.span, message);
                    }
                },
                Some(n) => return self.error(codes::WRONG_ARGUMENTS, n.span, usage),
            }
        }
        let [base, tables] = positional[..] else { return self.error(codes::WRONG_ARGUMENTS, span, usage) };
        self.looked_up(base, tables, oob, ("gather", usage))
    }

    /// `scatter(y, (table, _))`: the same window as a place to store to. An entry that is outside stops the kernel.
    pub(crate) fn scatter(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let usage = "scatter(y, (table, _))";
        let parts = self.exactly(args, 2, usage, span)?;
        self.looked_up(parts[0], parts[1], Oob::Undefined, ("scatter", usage))
    }

    fn looked_up(&mut self, base: &Expr, tables: &Expr, oob: Oob, (name, usage): (&str, &str)) -> ElabResult<Val> {
        let view = match self.expr(base)? {
            Val::View(v) => (*v).clone(),
            Val::Poison => return Err(ErrorReported),
            other => {
                let message = format!("`{name}` takes a window of a tensor, found {}", other.describe());
                return self.error(codes::TYPE_MISMATCH, base.span, message);
            }
        };
        let entries = match self.expr(tables)? {
            Val::Tuple(l) => l,
            Val::Poison => return Err(ErrorReported),
            one => vec![one],
        };
        if entries.len() != view.modes.len() {
            let message = format!(
                "{}, and {}",
                count(view.modes.len(), "mode", "modes"),
                count(entries.len(), "entry", "entries")
            );
            let d = Diagnostic::error(codes::RANK_MISMATCH, tables.span, message).with_note(usage);
            return self.report(d);
        }
        let mut out = view;
        out.window.threads = None;
        let at = tables.span;
        // An index takes its mode away.
        let mut k = 0;
        for (n, entry) in entries.iter().enumerate() {
            match entry {
                Val::Hole => {}
                Val::View(table) => {
                    self.readable(table, at)?;
                    match table.modes.len() == 1 && !table.is_strided() {
                        false => self.look_up(&mut out, k, table, oob, at)?,
                        true => {
                            // One that a table chooses itself is loaded first.
                            let loaded = self.to_location(Loc::Vec, entry.clone(), None, at, at)?;
                            let Val::Tile(t) = loaded else { return Err(ErrorReported) };
                            self.look_up_tile(&mut out, k, t, oob, at)?;
                        }
                    }
                }
                Val::Tile(t) => self.look_up_tile(&mut out, k, *t, oob, at)?,
                Val::Part(p) => {
                    let t = self.part_to_tile(p, at, at)?;
                    self.look_up_tile(&mut out, k, t, oob, at)?;
                }
                Val::Block(b) => self.tile_block(&mut out, k, b, at)?,
                Val::Int(_) | Val::Scalar(_) => {
                    let i = self.index_of(entry, at)?;
                    let mode = out.window.modes.remove(k);
                    let what = format!("mode {n} of `{}`", self.tensor_name(&out));
                    self.check_index(i, mode.extent, &what, at)?;
                    self.fix_mode(&mut out.window, &mode.tree, i, at);
                    continue;
                }
                Val::Poison => return Err(ErrorReported),
                other => {
                    let found = other.describe();
                    let message =
                        format!("expected a vector or a tile of integers, a block, an index or `_`, found {found}");
                    return self.error(codes::TYPE_MISMATCH, at, message);
                }
            }
            k += 1;
        }
        Ok(super::cut_blocks::window_value(out))
    }

    /// A tile as a table: a column or a row of integers, kept in scratch memory.
    fn look_up_tile(&mut self, out: &mut View, k: usize, t: TileVal, oob: Oob, at: Span) -> ElabResult<()> {
        if t.rows != 1 && t.cols != 1 {
            let message = format!("a table is one column or one row, this tile has {} x {}", t.rows, t.cols);
            let d = Diagnostic::error(codes::RANK_MISMATCH, at, message)
                .with_help("take one of them, as in `t[_, c]` or `t[r, _]`");
            return self.report(d);
        }
        let t = self.in_vec(t, at)?;
        let mut table = self.store_to_scratch(&t, at, at)?;
        table.window.modes.remove(if t.cols == 1 { 1 } else { 0 });
        self.look_up(out, k, &table, oob, at)
    }

    fn look_up(&mut self, out: &mut View, k: usize, table: &View, oob: Oob, at: Span) -> ElabResult<()> {
        if !matches!(table.dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64) {
            let message = format!("a table holds integers of 32 or 64 bits, this one `{}`", table.dtype);
            return self.error(codes::DTYPE_MISMATCH, at, message);
        }
        let entries = match (&table.modes[..], table.is_strided()) {
            ([m], true) => m.clone(),
            _ => {
                let modes = count(table.modes.len(), "mode", "modes");
                let message = format!("a table is a vector, this window has {modes}");
                let d = Diagnostic::error(codes::RANK_MISMATCH, at, message)
                    .with_help("fix the others by index, as in `table[b, _]`");
                return self.report(d);
            }
        };
        let mode = out.modes[k].clone();
        let zero = self.idx(0);
        let Some(leaf) = mode.plain().filter(|l| l.by[1..].iter().all(|b| *b == zero)).cloned() else {
            let d = not_yet(at, "gathers along a mode of several axes, or one that is gathered already");
            return self.report(d);
        };
        let lookup = TableLookup { tensor: table.tensor, stride: leaf.by[0], extent: mode.extent, oob };
        let q = self.add_quantity(&mut out.window, Quantity::Entry(lookup), table.offset());
        let mut by = vec![zero; out.quantities.len()];
        by[q] = entries.plain().map_or(zero, |l| l.by[0]);
        let tree = Tuple::Leaf(Leaf { extent: entries.extent, by });
        out.window.modes[k] = WindowMode { extent: entries.extent, cap: entries.cap, tree, skip: None };
        Ok(())
    }
}
