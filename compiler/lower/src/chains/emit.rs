//! Chains as loop IR.

use crate::code::FunctionBuilder;
use crate::function::Function;
use crate::matrix::{Matrix, map};
use crate::nibbles::HalfRows;
use crate::reduce::{fixed, identity, loop_op, wide};
use crate::{Lower, ops};
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{self, Addr, Base, BinOp, If, MemTy, Op, PARTIALS, Reg, Stride};
use ptoc_ir::tile::{Copy, NestAccess, Region, Ty};
use ptoc_isa::Reduce;
use ptoc_opt::fusion::{Chain, OperandSource, copies};
use ptoc_opt::pattern::{OperandWindow, Pattern, Read};
use rustc_hash::FxHashMap;

/// Bytes of a row of partials.
const ROW_BYTES: i64 = PARTIALS as i64 * 4;

/// Where an operand comes from: a part, or a matrix by its number.
#[derive(Clone, Copy, Debug)]
enum From {
    Part(usize),
    Matrix(usize),
}

/// An instruction, ready to be emitted.
struct ChainPart {
    span: Span,
    sources: Vec<From>,
    /// What its elements are in the language.
    ty: Ty,
    /// A copy: the elements are those of its operand, bit for bit.
    copy: bool,
    f: Function,
    /// Number of the matrix that takes the result.
    to: Option<usize>,
    fold: Option<Fold>,
    /// A reduction whose result nobody reads.
    unused: bool,
}

/// The end of a reduction.
#[derive(Clone, Copy)]
struct Fold {
    reduce: Reduce,
    op: BinOp,
    /// Number of the matrix of partials, a row of them for each row.
    partials: usize,
    /// What takes the results.
    to: Matrix,
}

/// Places of a chain, each once.
#[derive(Default)]
struct Matrices<'r> {
    places: Vec<(OperandWindow<'r>, Read)>,
    matrices: Vec<Matrix>,
    /// Tiles that a copy of half bytes would fill, by number.
    halves: Vec<(usize, &'r Copy)>,
}

impl<'r> Matrices<'r> {
    fn number(&mut self, lower: &mut Lower<'_>, place: OperandWindow<'r>, read: Read) -> usize {
        if let Some(n) = self.places.iter().position(|p| *p == (place, read)) {
            return n;
        }
        self.places.push((place, read));
        let matrix = lower.place(&place, read);
        self.matrices.push(matrix);
        self.matrices.len() - 1
    }

    /// The number of the tile that a copy would fill.
    fn halves(&mut self, lower: &mut Lower<'_>, copy: &'r Copy) -> Option<usize> {
        if let Some((n, _)) = self.halves.iter().find(|(_, known)| std::ptr::eq(*known, copy)) {
            return Some(*n);
        }
        let NestAccess::Tile { tile, .. } = &copy.dst else { return None };
        let place = OperandWindow::Tile(*tile);
        let matrix = lower.place(&place, Read::Whole);
        // No place of the program's has this number.
        self.places.push((place, Read::Turned));
        self.matrices.push(matrix);
        self.halves.push((self.matrices.len() - 1, copy));
        Some(self.matrices.len() - 1)
    }
}

impl Lower<'_> {
    /// Emits a chain; arithmetic between its instructions has been emitted.
    pub(super) fn chain(&mut self, chain: &Chain<'_>, region: &Region) {
        let Some(first) = chain.members.first() else { return };
        // Nobody reads any of it.
        if chain.members.iter().all(|m| !m.stored) {
            return;
        }
        let shape = self.pattern_shape(&first.pattern);
        let mut all = Matrices::default();
        let mut parts = Vec::with_capacity(chain.members.len());
        let mut room = 0;
        for m in &chain.members {
            let p = &m.pattern;
            let mut sources = Vec::with_capacity(m.sources.len());
            for source in &m.sources {
                sources.push(match *source {
                    OperandSource::Member(n) => From::Part(n),
                    OperandSource::Memory(place, read) => From::Matrix(all.number(self, place, read)),
                    OperandSource::Halves(copy) => match all.halves(self, copy) {
                        Some(n) => From::Matrix(n),
                        None => unreachable!("what a chain reads half bytes for is a tile"),
                    },
                });
            }
            let (copy, ty) = (copies(self.kernel, p), Ty::D(self.dtype(&p.dst)));
            let (mut to, mut fold) = (None, None);
            match (m.stored, p.fold) {
                // Nobody looks at the result.
                (false, Some(_)) => sources.clear(),
                (true, Some(reduce)) => fold = Some(self.partials(p, reduce, &mut all, &mut room)),
                (true, None) => to = Some(all.number(self, p.dst, Read::Whole)),
                (false, None) => {}
            }
            parts.push(ChainPart {
                span: region[m.stmt].span,
                sources,
                ty,
                copy,
                f: self.function(p),
                to,
                fold,
                unused: p.fold.is_some() && !m.stored,
            });
        }
        let fetches = self.fetches(&mut all);
        let span = self.code.span;
        self.by_words(shape, &all, Work { parts, fetches, halves: Vec::new() });
        self.code.span = span;
    }

    /// The nest of a chain, between fills of the partials of its reductions and their results: one statement behind the
    /// other, so that an emitter may make one of them.
    fn reduced(&mut self, shape: (Reg, Reg), matrices: &[Matrix], work: &Work) {
        let folds: Vec<(Span, Ty, Fold)> = work.parts.iter().filter_map(|p| Some((p.span, p.ty, p.fold?))).collect();
        let partials = self.code.int(PARTIALS as i64);
        for (span, ty, fold) in &folds {
            self.code.span = *span;
            let row = Matrix { cols: Stride::Const(4), ..matrices[fold.partials] };
            map(&mut self.code, (shape.0, partials), &row, &[], &mut |code, _| identity(code, *ty, fold.reduce));
        }
        rows_of_chain(&mut self.code, shape, matrices, work);
        for (span, _, fold) in &folds {
            self.code.span = *span;
            self.results(fold, shape.0, &matrices[fold.partials]);
        }
    }

    /// A chain: half bytes by the words that they are in, where these are whole; else they are copied first.
    fn by_words(&mut self, shape: (Reg, Reg), all: &Matrices<'_>, mut work: Work) {
        let along = all.halves.is_empty() || !goes_down(&self.code, shape, &all.matrices, &work);
        let mut whole = None;
        for (n, copy) in all.halves.iter().filter(|_| along) {
            let Some((rows, cond)) = self.half_rows(copy) else { break };
            whole = match (whole, cond) {
                (Some(a), Some(b)) => Some(self.code.bin(BinOp::And, a, b)),
                (a, b) => a.or(b),
            };
            work.halves.push((*n, rows));
        }
        if work.halves.len() < all.halves.len() {
            work.halves.clear();
            all.halves.iter().for_each(|(_, copy)| self.copy(copy));
            return self.reduced(shape, &all.matrices, &work);
        }
        let Some(cond) = whole else { return self.reduced(shape, &all.matrices, &work) };
        self.code.push();
        self.reduced(shape, &all.matrices, &work);
        let then = self.code.pop();
        work.halves.clear();
        self.code.push();
        all.halves.iter().for_each(|(_, copy)| self.copied(copy, false));
        self.reduced(shape, &all.matrices, &work);
        let els = self.code.pop();
        self.code.emit(Op::If(Box::new(If { cond, then, els })));
    }

    /// What the next block reads in place of what this chain is the last to read, as matrices.
    fn fetches(&mut self, all: &mut Matrices<'_>) -> Vec<usize> {
        let mut out = Vec::new();
        for n in self.next {
            let Some(&(place, _)) = all.places.iter().find(|(p, read)| *read == Read::Whole && n.is_read(p)) else {
                continue;
            };
            let one = self.code.int(1);
            let mut row = self.place(&OperandWindow::View(&n.view), Read::Whole).at_row(&mut self.code, one);
            if let Some(col) = n.col {
                let col = self.value(col);
                row = row.at_col(&mut self.code, col);
            }
            out.push(all.matrices.len());
            // No place of the program's has this number.
            all.places.push((place, Read::Turned));
            all.matrices.push(row);
        }
        out
    }

    /// Room for the partials of a reduction, behind `room` bytes that are taken.
    fn partials<'r>(&mut self, p: &Pattern<'r>, reduce: Reduce, all: &mut Matrices<'r>, room: &mut u64) -> Fold {
        let dtype = self.dtype(&p.dst);
        let rows = p.srcs.iter().find_map(|(s, _)| s.tile()).map_or(1, |t| t.rows);
        let start = *room;
        *room += u64::from(rows) * ROW_BYTES as u64;
        let base = Base::Space(self.partial_space(*room));
        let offset = self.code.int(start as i64);
        let (rows, cols) = (Stride::Const(ROW_BYTES), Stride::Const(0));
        // No place of the program's has this number.
        all.places.push((p.dst, Read::Turned));
        all.matrices.push(Matrix { base, offset, rows, cols, ty: wide(dtype), dtype, places: None });
        let partials = all.matrices.len() - 1;
        Fold { reduce, op: loop_op(reduce, dtype), partials, to: self.place(&p.dst, Read::Whole) }
    }

    /// Joins the partials of all rows, and writes the results.
    fn results(&mut self, fold: &Fold, rows: Reg, partials: &Matrix) {
        let cols = self.code.int(PARTIALS as i64);
        let to = if fold.to.ty == partials.ty { &fold.to } else { partials };
        self.code.emit(Op::Reduce(Box::new(loops::Reduce {
            op: fold.op,
            ty: partials.ty,
            rows,
            cols,
            d: to.first(),
            d_stride: fixed(to.rows),
            a: partials.first(),
            a_strides: (ROW_BYTES, 4),
        })));
        if fold.to.ty != partials.ty {
            let one = self.code.int(1);
            map(&mut self.code, (rows, one), &fold.to, &[*partials], &mut |_, v| v[0]);
        }
    }
}

/// What a nest does.
struct Work {
    parts: Vec<ChainPart>,
    /// Numbers of the matrices whose lines are fetched.
    fetches: Vec<usize>,
    /// Matrices that are read as half bytes of words, by number.
    halves: Vec<(usize, HalfRows)>,
}

/// Whether lanes run down the columns.
fn goes_down(code: &FunctionBuilder, shape: (Reg, Reg), matrices: &[Matrix], work: &Work) -> bool {
    work.parts.iter().all(|p| p.fold.is_none()) && down(code, shape, matrices)
}

/// The nest: lanes along the rows, or down the columns if elements are neighbours there.
fn rows_of_chain(code: &mut FunctionBuilder, (rows, cols): (Reg, Reg), matrices: &[Matrix], work: &Work) {
    if work.halves.is_empty() && goes_down(code, (rows, cols), matrices, work) {
        let turned: Vec<Matrix> = matrices.iter().map(|m| m.transposed()).collect();
        nest(code, (cols, rows), &turned, work);
    } else {
        nest(code, (rows, cols), matrices, work);
    }
}

fn down(code: &FunctionBuilder, (rows, cols): (Reg, Reg), matrices: &[Matrix]) -> bool {
    match (code.known(rows), code.known(cols)) {
        (_, Some(1)) => true,
        (Some(1), _) => false,
        _ => {
            let turned = matrices.iter().filter(|m| m.transposed().unit_cols()).count();
            turned > matrices.iter().filter(|m| m.unit_cols()).count()
        }
    }
}

fn nest(code: &mut FunctionBuilder, (rows, cols): (Reg, Reg), matrices: &[Matrix], work: &Work) {
    if let Some(n) = code.known(cols)
        && work.halves.is_empty()
        && work.parts.iter().all(|p| p.fold.is_none())
        && matrices.iter().all(|m| m.flat(n))
    {
        let count = code.times(rows, n);
        return code.lanes(count, |code, _| body(code, matrices, &[], work));
    }
    code.for_count(rows, |code, i| {
        let row: Vec<Matrix> = matrices.iter().map(|m| m.at_row(code, i)).collect();
        let halves: Vec<(usize, HalfRows)> = work.halves.iter().map(|(n, rows)| (*n, rows.at_row(code, i))).collect();
        code.lanes(cols, |code, _| body(code, &row, &halves, work));
    });
}

/// What is known of a part's elements.
#[derive(Clone, Copy)]
struct Value {
    /// As computed.
    raw: Reg,
    /// As its dtype holds it.
    settled: Option<Reg>,
}

struct Body<'a> {
    matrices: &'a [Matrix],
    halves: &'a [(usize, HalfRows)],
    loads: FxHashMap<(usize, MemTy), Reg>,
    /// Places of rows, by matrix.
    places: FxHashMap<usize, Reg>,
    values: Vec<Option<Value>>,
}

impl Body<'_> {
    fn load(&mut self, code: &mut FunctionBuilder, n: usize, ty: MemTy) -> Reg {
        if let Some((_, rows)) = self.halves.iter().find(|(half, _)| *half == n) {
            return *self.loads.entry((n, ty)).or_insert_with(|| rows.load(code));
        }
        let gather = self.place(code, n);
        let addr = Addr { gather, ..self.matrices[n].lane() };
        *self.loads.entry((n, ty)).or_insert_with(|| code.load(ty, addr))
    }

    fn place(&mut self, code: &mut FunctionBuilder, n: usize) -> Option<Reg> {
        if !self.places.contains_key(&n) {
            self.places.insert(n, self.matrices[n].lane_place(code)?);
        }
        self.places.get(&n).copied()
    }

    /// The matrix whose elements an operand is, bit for bit.
    fn matrix(&self, parts: &[ChainPart], from: From) -> Option<usize> {
        match from {
            From::Matrix(n) => Some(n),
            From::Part(n) if parts[n].copy => self.matrix(parts, *parts[n].sources.first()?),
            From::Part(_) => None,
        }
    }

    fn value(&mut self, code: &mut FunctionBuilder, parts: &[ChainPart], from: From) -> Reg {
        if let Some(n) = self.matrix(parts, from) {
            return self.load(code, n, self.matrices[n].ty);
        }
        let From::Part(n) = from else { unreachable!("what is no part is a matrix") };
        let Some(value) = self.values[n] else {
            // A copy of another part's result.
            return self.value(code, parts, parts[n].sources[0]);
        };
        if let Some(settled) = value.settled {
            return settled;
        }
        let settled = ops::settle(code, parts[n].ty, value.raw);
        self.values[n] = Some(Value { settled: Some(settled), ..value });
        settled
    }
}

/// The type in which an element's bits are copied: narrow floats would not keep every NaN.
fn as_bits(ty: MemTy) -> MemTy {
    match ty {
        MemTy::F8E4M3 | MemTy::F8E5M2 => MemTy::U8,
        MemTy::F16 | MemTy::BF16 => MemTy::U16,
        ty => ty,
    }
}

fn body(code: &mut FunctionBuilder, matrices: &[Matrix], halves: &[(usize, HalfRows)], work: &Work) {
    let parts = &work.parts;
    for n in &work.fetches {
        code.emit(Op::Fetch { ty: matrices[*n].ty, addr: matrices[*n].lane() });
    }
    let mut b = Body {
        matrices,
        halves,
        loads: FxHashMap::default(),
        places: FxHashMap::default(),
        values: vec![None; parts.len()],
    };
    // What all lanes share is read in front of the first store, so that it is read once. No store of a chain changes
    // it.
    for from in parts.iter().flat_map(|p| &p.sources) {
        if let From::Matrix(n) = *from {
            b.place(code, n);
            if matrices[n].cols == Stride::Const(0) {
                b.load(code, n, matrices[n].ty);
            }
        }
    }
    for (n, part) in parts.iter().enumerate() {
        code.span = part.span;
        if part.unused {
            continue;
        }
        if part.copy {
            // Only what is stored is there: others go to the operand itself.
            let Some(to) = part.to.map(|t| matrices[t]) else { continue };
            match b.matrix(parts, part.sources[0]) {
                Some(from) if matrices[from].ty == to.ty => {
                    let bits = b.load(code, from, as_bits(to.ty));
                    code.store(as_bits(to.ty), to.lane(), bits);
                }
                _ => {
                    let value = b.value(code, parts, part.sources[0]);
                    code.store(to.ty, to.lane(), value);
                }
            }
            continue;
        }
        if let Some(fold) = part.fold {
            let value = b.value(code, parts, part.sources[0]);
            let row = matrices[fold.partials];
            code.emit(Op::Join { op: fold.op, ty: row.ty, addr: row.first(), value });
            continue;
        }
        let inputs: Vec<Reg> = part.sources.iter().map(|s| b.value(code, parts, *s)).collect();
        let raw = (part.f)(code, &inputs);
        b.values[n] = Some(Value { raw, settled: None });
        if let Some(to) = part.to.map(|t| matrices[t]) {
            code.store(to.ty, to.lane(), raw);
        }
    }
}
