//! The shape of the instruction table's rows.

use crate::{BinOp, Cells, Expr, Fixpipe, Loc, Named, Precondition, Primitive, Read, Reduce, Target, To, UnOp};
use ptoc_tensor::DType;

/// What an instruction computes. The interpreter and the lowering each match on this; nothing else says what a
/// mnemonic means. `d` is the destination (operand 0), `a`, `b`, `c` the sources in order, `r x c` the valid shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sem {
    /// Every element of the destination is an element of a source that lies elsewhere, or a number.
    Cells(&'static Cells),
    /// What has a name and no expression.
    Named(&'static Named),
    /// A window of the accumulator, or to one, as the fixpipe does it.
    Fixpipe(&'static Fixpipe),
    /// Binds a tile to a byte address; no data moves.
    Assign,
    /// Tile from view; d takes the view's shape.
    Load,
    /// View from tile (operand 0 is the view, operand 1 the tile); converts Acc f32/i32 to the view's dtype.
    Store,
    /// Tile to tile, same elements, between the locations that the target allows.
    Move,
    /// Element by element, what the expression says. `Binary` to `ColExpandBinary` below are such expressions that
    /// other parts of the compiler ask for by name; all of them have [`Sem::expr`].
    Map(&'static Expr),
    /// d = a op b
    Binary(BinOp),
    /// d = a op s, s a scalar of the tile's dtype; with `reversed`, s op a.
    BinaryScalar(BinOp),
    /// d = op a
    Unary(UnOp),
    /// d = s everywhere
    Expand,
    /// d = convert(a) with a rounding mode and saturation
    Convert,
    /// mask d = a cmp b
    Compare,
    /// d = mask ? a : b (sources: mask, a, b)
    Select,
    /// d[i, 0] = reduce over j of a[i, j]
    RowReduce(Reduce),
    /// d[0, j] = reduce over i of a[i, j]
    ColReduce(Reduce),
    /// d[i, j] = a[i, 0]
    RowExpand,
    /// d[i, j] = a[i, j] op b[i, 0]
    RowExpandBinary(BinOp),
    /// d[i, j] = a[0, j]
    ColExpand,
    /// d[i, j] = a[i, j] op b[0, j]
    ColExpandBinary(BinOp),
    /// d[i, 0] = the first j for which a[i, j] is the largest (Max) or smallest (Min); the first NaN if there is one
    RowArg(Reduce),
    /// d[0, j] = the first i for which a[i, j] is, likewise
    ColArg(Reduce),
    /// Operands value, index, a: as `RowArg`, and value[i, 0] = a[i, index[i, 0]]
    RowArgValues(Reduce),
    /// d[i, k] = a[i, 2k] + a[i, 2k + 1], then zeros
    PairSum,
    /// d = a op b where both are valid, and what is valid where one is. One of them is as large as d.
    Part(BinOp),
    /// Operands d, a, b, index, index of a, index of b. Where both are valid the pair of a if its value is greater
    /// (Max) or less (Min), or NaN, else that of b; where one is, its pair.
    PartArg(Reduce),
    /// Operands d1, d0, b, a. The stream a[i, 0], b[i, 0], a[i, 1], ..: its first half is d0, its second d1.
    Interleave,
    /// Operands d1, d0, b, a. The stream of the row of a and then that of b: its even elements are d0, its odd ones d1.
    Deinterleave,
    /// Operands d1, d0, a. As `Deinterleave`, of the row of a alone.
    DeinterleaveOne,
    /// d[j, i] = a[i, j]
    Transpose,
    /// d = a b over k ascending, one f32 FMA (or wrapping i32 multiply-add) a step; starts at 0.
    Matmul,
    /// d = c + a b: sources are c (the accumulator read), a, b. c is usually d.
    MatmulAcc,
    /// d = a b + bias: starts at bias[0, j]; sources a, b, bias.
    MatmulBias,
    /// d[i, j] = table[idx[i, j]] element of the view read as one flat row-major list; sources: view, index tile.
    Gather,
    /// d[i, j] = table[idx[0, i], j]; sources: view, index row.
    GatherRows,
    /// view[idx[0, i], j] = a[i, j], rows ascending, or an update of what is there; sources: a, idx.
    ScatterRows,
    /// Says that a window will be loaded. Nothing can be seen of it. No destination; source: view.
    Prefetch,
    /// view[idx[i, j]] = a[i, j], in row-major order, or an update of what is there; sources: a, idx.
    ScatterTo,
    /// d[idx[i, j], j] = a[i, j], row by row; the others stay; sources: a, idx, and d as it was.
    Scatter,
    /// Samples of a map between its pixels, weighted and summed (geopim): d is 1 x c; sources are views: the map (h, w,
    /// c), the line (4), the weights (s), and offsets (s, 2), which may be absent.
    Sample,
}

impl Sem {
    /// What an element-wise instruction makes of one element of each operand; `None` for all others.
    pub const fn expr(self) -> Option<Expr> {
        Some(match self {
            Sem::Map(expr) => *expr,
            Sem::Binary(op) | Sem::BinaryScalar(op) | Sem::RowExpandBinary(op) | Sem::ColExpandBinary(op) => {
                Expr::Bin(op, &Expr::Arg(1), &Expr::Arg(2))
            }
            Sem::Unary(op) => Expr::Un(op, &Expr::Arg(1)),
            Sem::Expand | Sem::RowExpand | Sem::ColExpand | Sem::Transpose => Expr::Arg(1),
            Sem::Convert => Expr::Convert(&Expr::Arg(1), To::Mode),
            Sem::Compare => Expr::CmpMode(&Expr::Arg(1), &Expr::Arg(2)),
            Sem::Select => Expr::Select(&Expr::Arg(1), &Expr::Arg(2), &Expr::Arg(3)),
            _ => return None,
        })
    }

    /// Whether the instruction has a comparison as a mode.
    pub fn compares(self) -> bool {
        matches!(self, Sem::Named(n) if n.what == Primitive::Places)
            || self.expr().is_some_and(|e| e.any(&|e| matches!(e, Expr::CmpMode(..))))
    }

    /// Whether it reads places of a tensor that a tile names.
    pub fn gathers(self) -> bool {
        matches!(self, Sem::Gather | Sem::GatherRows)
    }

    /// Whether it writes places of a tensor that a tile names.
    pub fn scatters(self) -> bool {
        matches!(self, Sem::ScatterTo | Sem::ScatterRows)
    }

    /// Whether it is a product of matrices.
    pub fn multiplies(self) -> bool {
        matches!(self, Sem::Matmul | Sem::MatmulAcc | Sem::MatmulBias)
    }

    /// What the meaning demands of shapes and index operands, beside the row's shape rule.
    pub const fn needs(self) -> &'static [Precondition] {
        match self {
            Sem::Cells(cells) => cells.needs,
            Sem::Named(named) => named.needs,
            Sem::Fixpipe(fixpipe) => fixpipe.needs,
            _ => &[],
        }
    }

    /// Whether modes say how it converts.
    pub fn converts(self) -> bool {
        self.expr().is_some_and(|e| e.any(&|e| matches!(e, Expr::Convert(_, To::Mode))))
    }
}

/// The part an operand plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Written.
    Dst,
    /// Read.
    Src,
}

/// What may stand as an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// A tile in one of these locations.
    Tile(&'static [Loc]),
    /// A window of a global tensor.
    View,
    /// A scalar of this dtype; `None`: of the last tile's.
    Scalar(Option<DType>),
    /// A byte address, `index`.
    Address,
    /// A whole number, `index`.
    Index,
    /// One of these words, each of which is a number; in IR that number, an `index`. Where it may be left out, the
    /// first is meant.
    Choice(&'static [(&'static str, i64)]),
    /// What fills the rest: a scalar of the destination's dtype, or `Zero`, `Max` or `Min`.
    Pad,
}

/// One operand of an instruction, as the author writes it (scratch operands never appear).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandSpec {
    /// Name in documentation and messages.
    pub name: &'static str,
    /// Read or written.
    pub role: Role,
    /// Tile, view or scalar.
    pub kind: OperandKind,
}

impl OperandSpec {
    /// Whether it is a tile.
    pub fn is_tile(&self) -> bool {
        matches!(self.kind, OperandKind::Tile(_))
    }

    /// Whether a tile in `loc` may stand here on some target. Where PTO takes a tile in Vec, a unit in memory takes one
    /// in any of its stores; what it reads may lie in the bank.
    pub fn takes(&self, loc: Loc) -> bool {
        let OperandKind::Tile(list) = self.kind else { return false };
        let of_unit = Loc::UNIT.contains(&loc) && (loc != Loc::Bank || self.role == Role::Src);
        list.contains(&loc) || (of_unit && list.contains(&Loc::Vec))
    }

    /// The locations that this operand may have on `target`.
    pub fn locations(&self, target: &Target) -> Vec<Loc> {
        let there = |l: &Loc| match target.unit {
            None => !Loc::UNIT.contains(l),
            Some(_) => target.capacity(*l) > 0,
        };
        Loc::ALL.into_iter().filter(|l| self.takes(*l)).filter(there).collect()
    }
}

/// The relation between valid shapes and capacities that an instruction demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShapeRule {
    /// No relation (TASSIGN).
    Free,
    /// All tile and view operands have one valid shape.
    Same,
    /// d is r x 1, a is r x c.
    RowReduce,
    /// d is 1 x c, a is r x c.
    ColReduce,
    /// d is r x c, the small operand r x 1 (the last operand).
    RowExpand,
    /// d is r x c, the small operand 1 x c (the last operand).
    ColExpand,
    /// d is c x r, a is r x c.
    Transpose,
    /// d keeps the valid shape that it has; the meaning says what must hold of the others.
    Own,
    /// d keeps the valid shape that it has; a has as many rows, k and the counts are r x 1.
    Counted,
    /// What the meaning's window says: all have one valid shape, or d keeps the one that it has. Scales are 1 x c.
    Fixpipe,
    /// As `Matmul`, and d has one row.
    Gemv,
    /// d and a are r x c, the operands after a r x 1.
    RowParams,
    /// d becomes valid as a whole; the meaning says what must hold of the others.
    Whole,
    /// d is as large as one of a and b, and the other one lies within it. Each further triple (d, a, b) has their
    /// shapes.
    Part,
    /// All tiles have one valid shape, with an even number of columns.
    EvenColumns,
    /// a is r x c with an even c, the others r x c/2.
    Halves,
    /// d is m x n, a is m x k, b is k x n, bias 1 x n; capacities must agree too.
    Matmul,
    /// d and idx have one valid shape; the view is free.
    Gather,
    /// a and idx have one valid shape; the view is free.
    Scattered,
    /// d is r x c, idx 1 x r; the view has c columns.
    GatherRows,
    /// a is r x c, idx 1 x r; the view has c columns.
    ScatterRows,
    /// d is 1 x c; the views have 3, 1, 1 and 2 modes.
    Sample,
}

/// The kind of rule for the dtypes of an instruction's operands. Which dtypes they are is the target's to say: its
/// [`InstructionSet`](crate::InstructionSet) has a list for each row whose kind is [listed](DTypeRule::is_listed), and
/// its own file has the matrix unit and the moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DTypeRule {
    /// All tile operands (and views, scalars) have one dtype of the list.
    Same,
    /// A conversion: the list has pairs (from, to).
    Pairs,
    /// The mask is `bool`; the other operands as in `Same`. Some dtypes may be compared for equality alone.
    Mask,
    /// (accumulator, left, right) triples from the target's file.
    Matmul,
    /// Pairs of source and destination locations and dtypes from the target's file.
    Move,
    /// The same of moves from Acc, quantised if the meaning is; scales are f32, or u64.
    Fixpipe,
    /// The list has the dtypes of all tile operands that the author writes, in order.
    Tuples,
    /// A view and a tile of one dtype, any; index tile i32 or u32.
    Gather,
    /// d is f32, the views are f16.
    Sample,
    /// Any dtype that the target has.
    Any,
}

impl DTypeRule {
    /// Whether a target's instruction set has a list for rows of this kind.
    pub const fn is_listed(self) -> bool {
        matches!(self, DTypeRule::Same | DTypeRule::Pairs | DTypeRule::Mask | DTypeRule::Tuples)
    }
}

/// Which pipe executes the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeRule {
    /// Scalar.
    S,
    /// Vector.
    V,
    /// Cube.
    M,
    /// GM -> UB/L1.
    Mte2,
    /// Depends on the source location: MTE3 from Vec and Mat, FIX from Acc.
    Store,
    /// Depends on both locations (`spec/pipes.md`).
    Move,
}

/// Scratch storage beside the operands, on targets whose instructions want it; hidden from the source and counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scratch {
    /// None.
    None,
    /// A Vec tile of the source's type.
    LikeSource,
    /// A Vec tile of the destination's type.
    LikeResult,
    /// For each row of the source the bits of a mask, an i32 an element, and one element.
    Places,
    /// A tile of u8 of the source's shape: what PTOAS asks of it. The instruction needs the bits of a mask.
    Bytes,
    /// One row of the source's dtype, as long as the source's and two more for each 64 columns.
    Remainder,
    /// TTRANS's, `cols * ceil(rows / s) * s` elements, s = 32 for 8-bit types, else 16.
    Transpose,
}

/// Something that the author may say beside the operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstrMode {
    /// How it is written: one of these. A mode that takes a value stands with it, as in `saturate = true`.
    pub words: &'static [&'static str],
    /// It may be left out.
    pub optional: bool,
    /// What it says, and what is meant without it.
    pub doc: &'static str,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Instr {
    /// `TADD`
    pub name: &'static str,
    /// Meaning.
    pub sem: Sem,
    /// Operands in source order: a destination first. A second one stands where PTO has it.
    pub operands: &'static [OperandSpec],
    /// So many of them, at the end, may be left out.
    pub optional: usize,
    /// What may be said beside the operands, after them.
    pub modes: &'static [InstrMode],
    /// The scalar, or the tile of one column, may stand before the tile. The operation is then `scalar op tile`.
    pub scalar_first: bool,
    /// Shape relation.
    pub shape: ShapeRule,
    /// Legal dtypes.
    pub dtypes: DTypeRule,
    /// Pipe.
    pub pipe: PipeRule,
    /// Hidden scratch.
    pub scratch: Scratch,
    /// The destination may be the same bytes as a source that dies here.
    pub in_place: bool,
    /// The last operand is the destination as it was before. The author does not write it; in IR it stands there, so
    /// that everything that asks what is read sees it.
    pub updates: bool,
    /// One line: what it does.
    pub doc: &'static str,
    /// The meaning in words where it is no expression (see [`Instr::formula`]).
    pub meaning: &'static str,
    /// Where the facts come from (a section of PTO's documentation).
    pub source: &'static str,
}

/// Index of an instruction in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InstrId(pub u16);

impl Instr {
    /// The operands that the author writes.
    pub fn written(&self) -> &'static [OperandSpec] {
        &self.operands[..self.operands.len() - usize::from(self.updates)]
    }

    /// Whether its index counts the bytes of the source, and not its elements.
    pub fn counts_bytes(&self) -> bool {
        self.name == "TGATHERB"
    }

    /// The positions of what it writes.
    pub fn results(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.operands.len()).filter(|&k| self.operands[k].role == Role::Dst)
    }

    /// The positions of what it reads.
    pub fn sources(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.operands.len()).filter(|&k| self.operands[k].role == Role::Src)
    }

    /// Whether one of the tiles that the author writes is a source.
    pub fn reads_tiles(&self) -> bool {
        self.written().iter().any(|o| o.is_tile() && o.role == Role::Src)
    }

    /// How many tiles the author writes.
    pub fn tiles_written(&self) -> usize {
        self.written().iter().filter(|o| o.is_tile()).count()
    }

    /// Whether it may update what is in memory instead of overwriting it (`atomic = ..`).
    pub fn updates_memory(&self) -> bool {
        self.sem.scatters() || self.pipe == PipeRule::Store && matches!(self.sem, Sem::Store | Sem::Fixpipe(_))
    }

    /// Which element of operand `k` an element-wise instruction reads.
    pub fn read(&self, k: usize) -> Read {
        let last = k + 1 == self.operands.len();
        match self.shape {
            ShapeRule::RowExpand if last => Read::Column,
            ShapeRule::RowParams if k > 1 => Read::Column,
            ShapeRule::ColExpand if last => Read::Row,
            ShapeRule::Transpose if last => Read::Turned,
            _ => Read::Whole,
        }
    }

    /// The name that an author writes: the second forms of instructions have the name of the first
    /// ([`crate::overloads`]).
    pub fn written_name(&self) -> &'static str {
        let first = |end: &str| self.name.strip_suffix(end).filter(|n| crate::lookup(n).is_some());
        crate::table::SECOND_FORMS.iter().find_map(|end| first(end)).unwrap_or(self.name)
    }

    /// How it is written, as in `TCMP(dst, a, b, EQ | NE | LT | LE | GT | GE)`; what may be left out is in brackets.
    pub fn usage(&self) -> String {
        let must = self.written().len() - self.optional;
        let name = |(k, o): (usize, &OperandSpec)| {
            let name = match o.kind {
                OperandKind::Choice(words) => words.iter().map(|w| w.0).collect::<Vec<_>>().join(" | "),
                _ => o.name.to_owned(),
            };
            if k < must { name } else { format!("[{name}]") }
        };
        let mut parts: Vec<String> = self.written().iter().enumerate().map(name).collect();
        parts.extend(self.modes.iter().map(|m| {
            let words = m.words.join(" | ");
            if m.optional { format!("[{words}]") } else { words }
        }));
        let mut out = format!("{}({})", self.written_name(), parts.join(", "));
        if self.scalar_first
            && let [dst, a, scalar] = self.operands
        {
            out.push_str(&format!(" or {}({}, {}, {})", self.written_name(), dst.name, scalar.name, a.name));
        }
        out
    }
}
