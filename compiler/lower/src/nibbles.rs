//! Copies of half bytes, eight at a time: a word that is loaded becomes eight bytes by shifts and masks.
//!
//! Where each element of eight lies in its word is a pattern that is known here. So every vector width and every order
//! of the nibbles has one form without permutations of bytes: lanes of 64 bits. An order that layouts have permutes the
//! bits of an element's number, and each bit then moves its nibble by so much: in plain order by 4, 8 and 16 bits. That
//! is a stage for each of them.
//!
//! A chain of element-wise instructions that alone reads what is copied takes the half bytes of the words itself, a
//! lane each ([`Op::Nibble`]): nothing is copied then.

use super::Lower;
use super::code::FunctionBuilder;
use super::matrix::scaled;
use super::nest::{Form, Nest, NestSide, Stored};
use ptoc_ir::loops::{Addr, Base, BinOp, Cast, CmpOp, LTy, MemTy, Op, Reg, Stride};
use ptoc_ir::tile::{Copy, NestAccess};

/// Half bytes in a word.
const WORD: usize = 8;

/// The bits of an element's number.
const BITS: usize = 3;

/// Most stages: every permutation of three bits has a network of so many.
const MOST: usize = 4;

/// The nibble of each element of a word.
type Places = [i64; WORD];

/// The bits of the nibbles at these places.
fn bits(places: impl Iterator<Item = i64>) -> i64 {
    places.fold(0, |mask, place| mask | (15 << (4 * place)))
}

/// Some nibbles move, and the others stay: `(x | x shifted) & mask`.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// Bits to the left; to the right if negative.
    by: i64,
    mask: i64,
}

impl Stage {
    /// Moves the elements in whose numbers this bit is set by so many nibbles. None if any of what is moved is where
    /// something else stays, or was.
    fn new(at: &Places, bit: usize, by: i64) -> Option<(Stage, Places)> {
        let moves = |n: usize| n >> bit & 1 == 1;
        let mut next = *at;
        (0..WORD).filter(|n| moves(*n)).for_each(|n| next[n] += by);
        if !next.iter().all(|place| (0..2 * WORD as i64).contains(place)) {
            return None;
        }
        let of = |set: bool| bits((0..WORD).filter(|n| moves(*n) == set).map(|n| next[n]));
        let (was, stay, moved) = (bits(at.iter().copied()), of(false), of(true));
        let shifted = if by < 0 { (was as u64 >> (-4 * by)) as i64 } else { was << (4 * by) };
        let apart = shifted & stay == 0 && was & moved == 0;
        apart.then_some((Stage { by: 4 * by, mask: stay | moved }, next))
    }

    fn emit(&self, code: &mut FunctionBuilder, x: Reg) -> Reg {
        let (op, count) = if self.by < 0 { (BinOp::ShrU, -self.by) } else { (BinOp::Shl, self.by) };
        let (count, mask) = (code.int(count), code.int(self.mask));
        let moved = code.bin(op, x, count);
        let both = code.bin(BinOp::Or, x, moved);
        code.bin(BinOp::And, both, mask)
    }
}

/// At most `most` stages that move each bit's elements by what is left.
fn stages(at: &Places, left: [i64; BITS], most: usize) -> Option<Vec<Stage>> {
    if left == [0; BITS] {
        return Some(Vec::new());
    }
    let most = most.checked_sub(1)?;
    (0..BITS).rev().filter(|bit| left[*bit] != 0).find_map(|bit| {
        // All the way, or a step first, out of the way of others.
        [left[bit], 1].into_iter().find_map(|by| {
            let (stage, next) = Stage::new(at, bit, by)?;
            let mut rest = left;
            rest[bit] -= by;
            let mut all = stages(&next, rest, most)?;
            all.insert(0, stage);
            Some(all)
        })
    })
}

/// The copy of words.
#[derive(Clone, Debug)]
pub(super) struct Words {
    stages: Vec<Stage>,
    /// How far each bit of an element's number moves its nibble.
    moves: [u8; BITS],
    signed: bool,
}

impl Words {
    /// The stages that bring nibble `places[n]` to byte n, as few as there are; none if no few do.
    fn new(places: &Places, signed: bool) -> Option<Words> {
        let distance = |n: usize| 2 * n as i64 - places[n];
        let of_bits = [0, 1, 2].map(|bit| distance(1 << bit));
        let linear = |n: usize| distance(n) == (0..BITS).filter(|b| n >> b & 1 == 1).map(|b| of_bits[b]).sum::<i64>();
        if !(0..WORD).all(linear) {
            return None;
        }
        let stages = (0..=MOST).find_map(|most| stages(places, of_bits, most))?;
        Some(Words { stages, moves: [1, 2, 4].map(|n| places[n] as u8), signed })
    }

    /// Eight bytes, as an i64, of a word, an i32.
    pub(super) fn bytes(&self, code: &mut FunctionBuilder, word: Reg) -> Reg {
        let word = code.cast(Cast::Zext, word, LTy::I64);
        let bytes = self.stages.iter().fold(word, |x, stage| stage.emit(code, x));
        if !self.signed {
            return bytes;
        }
        // Numbers from 8 on are 16 less. The highest bit of each byte keeps the subtraction from the byte above.
        let mut all = |byte: u8| code.int(i64::from_ne_bytes([byte; 8]));
        let (flip, eight, guard) = (all(0x88), all(8), all(0x80));
        let flipped = code.bin(BinOp::Xor, bytes, flip);
        let less = code.bin(BinOp::Sub, flipped, eight);
        code.bin(BinOp::Xor, less, guard)
    }
}

/// A copy of half bytes as one of words: the sides' elements are words and eight bytes.
pub(super) struct WordCopy {
    pub(super) nest: Nest,
    pub(super) sides: [NestSide; 2],
    pub(super) words: Words,
    /// It is this copy if these numbers are multiples of eight; else the last word of a row is not whole.
    eights: Vec<Reg>,
}

impl WordCopy {
    /// Whether the words are whole; none if they surely are.
    pub(super) fn whole(&self, code: &mut FunctionBuilder) -> Option<Reg> {
        let all = self.eights.iter().copied().reduce(|a, b| code.bin(BinOp::Or, a, b))?;
        let (seven, zero) = (code.int(7), code.int(0));
        let odd = code.bin(BinOp::And, all, seven);
        Some(code.cmp(CmpOp::Eq, odd, zero))
    }

    /// A copy of half bytes as one of words, if eight neighbours of the destination are the half bytes of a word, in
    /// any order.
    pub(super) fn new(code: &mut FunctionBuilder, nest: &Nest, sides: &[NestSide; 2]) -> Option<WordCopy> {
        let (_, MemTy::U8 | MemTy::I8, dst) = sides[0].affine()? else { return None };
        let (signed, src) = sides[1].halves()?;
        let mut found = Finder { code, nest: nest.clone(), dst, src, axes: Vec::new(), eights: Vec::new() };
        let places = found.places()?;
        let words = Words::new(&places, signed)?;
        if !found.guards_take_words() || !found.words_begin_with_bytes() {
            return None;
        }
        let Finder { mut nest, mut axes, eights, .. } = found;
        axes.sort_unstable();
        axes.into_iter().rev().for_each(|a| nest.remove(a));
        let (one, two) = (code.int(1), code.int(2));
        let form = &mut nest.forms[src];
        form.start = code.bin(BinOp::ShrU, form.start, one);
        for step in &mut form.steps {
            // Strides may be negative.
            *step = code.bin(BinOp::DivFloor, *step, two);
        }
        let mut sides = sides.clone();
        sides[0].stored = Stored::Whole(MemTy::I64);
        sides[1].stored = Stored::Whole(MemTy::I32);
        Some(WordCopy { nest, sides, words, eights })
    }
}

/// The axes along which eight neighbours of the destination lie.
struct Finder<'c> {
    code: &'c mut FunctionBuilder,
    nest: Nest,
    dst: Form,
    src: Form,
    axes: Vec<usize>,
    eights: Vec<Reg>,
}

impl Finder<'_> {
    fn step(&self, f: Form, a: usize) -> Option<i64> {
        self.code.known(self.nest.forms[f].steps[a])
    }

    /// Finds the axes, splitting the last one, and the nibble of each element of a word.
    fn places(&mut self) -> Option<Places> {
        let mut places = [0; WORD];
        let mut size = 1;
        while size < WORD {
            let next = |a: &usize| self.step(self.dst, *a) == Some(size as i64) && !self.axes.contains(a);
            let a = (0..self.nest.axes.len()).find(next)?;
            let (step, left) = (self.step(self.src, a)?, (WORD / size) as i64);
            let extent = match self.code.known(self.nest.axes[a].extent) {
                Some(n) if n > 1 && n < left && left % n == 0 => n,
                Some(n) if n > 0 && n % left == 0 => left,
                // So many elements as eights, or not this copy.
                None if size == 1 => left,
                _ => return None,
            };
            if self.code.known(self.nest.axes[a].extent) != Some(extent) {
                self.split(a, extent);
            }
            for n in size..size * extent as usize {
                places[n] = places[n % size] + (n / size) as i64 * step;
            }
            self.axes.push(a);
            size *= extent as usize;
        }
        // Every byte of the word is one that the copy reads.
        let inside = places.iter().all(|p| (0..WORD as i64).contains(p));
        let whole = (0..4).all(|byte| places.iter().any(|p| p / 2 == byte));
        (inside && whole).then_some(places)
    }

    fn split(&mut self, a: usize, parts: i64) {
        let extent = self.nest.axes[a].extent;
        if self.code.known(extent).is_none() {
            self.eights.push(extent);
        }
        self.nest.split_evenly(self.code, a, parts);
        self.axes.iter_mut().filter(|axis| **axis > a).for_each(|axis| *axis += 1);
    }

    /// Whether guards exclude words as a whole, or will, if more numbers are multiples of eight: they count the
    /// elements of a word as the destination does.
    fn guards_take_words(&mut self) -> bool {
        let moves = |f: &Finder<'_>, g: usize, a: usize| f.nest.moves(f.code, a, f.nest.guards[g].at);
        for g in 0..self.nest.guards.len() {
            if !self.axes.iter().any(|a| moves(self, g, *a)) {
                continue;
            }
            let (at, bound) = (self.nest.guards[g].at, self.nest.guards[g].bound);
            let alike = self.axes.iter().all(|a| self.step(at, *a) == self.step(self.dst, *a));
            let others = (0..self.nest.axes.len()).filter(|a| !self.axes.contains(a));
            let eights = others.map(|a| self.code.power(self.nest.forms[at].steps[a])).all(|p| p >= WORD as u64);
            if !alike || !eights {
                return false;
            }
            for number in [bound, self.nest.forms[at].start] {
                match self.code.known(number) {
                    Some(n) if n % WORD as i64 != 0 => return false,
                    Some(_) => {}
                    None => self.eights.push(number),
                }
            }
        }
        // Nothing else may look at an element of a word by itself.
        let guards: Vec<Form> = self.nest.guards.iter().map(|g| g.at).collect();
        let others = (0..self.nest.forms.len()).filter(|f| *f != self.dst && *f != self.src && !guards.contains(f));
        others.into_iter().all(|f| self.axes.iter().all(|a| !self.nest.moves(self.code, *a, f)))
    }

    fn words_begin_with_bytes(&self) -> bool {
        let even = |r: Reg| self.code.power(r) >= 2;
        let form = &self.nest.forms[self.src];
        even(form.start) && (0..self.nest.axes.len()).all(|a| self.axes.contains(&a) || even(form.steps[a]))
    }
}

/// Rows of half bytes in an array, as a chain's lanes read them.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfRows {
    base: Base,
    /// Byte offset of the first row's first word.
    offset: Reg,
    /// Bytes from row to row.
    rows: Stride,
    moves: [u8; BITS],
    signed: bool,
}

impl HalfRows {
    /// Those from row `i` on.
    pub(super) fn at_row(self, code: &mut FunctionBuilder, i: Reg) -> HalfRows {
        let step = scaled(code, i, self.rows);
        HalfRows { offset: code.add(self.offset, step), ..self }
    }

    /// A lane's element of the first row.
    pub(super) fn load(&self, code: &mut FunctionBuilder) -> Reg {
        let dst = code.reg(LTy::I32);
        let addr = Addr { base: self.base, offset: self.offset, stride: Stride::Const(0), gather: None };
        code.emit(Op::Nibble { dst, addr, moves: self.moves });
        if !self.signed {
            return dst;
        }
        let eight = code.i32(8);
        let flipped = code.bin(BinOp::Xor, dst, eight);
        code.bin(BinOp::Sub, flipped, eight)
    }
}

impl Lower<'_> {
    /// The rows that a copy takes to a tile, if neighbours are half bytes of words; and whether those are whole, if it
    /// is not known.
    pub(super) fn half_rows(&mut self, copy: &Copy) -> Option<(HalfRows, Option<Reg>)> {
        let NestAccess::Tile { tile, .. } = &copy.dst else { return None };
        let to = self.tile(tile);
        let (nest, sides) = self.copy_sides(copy)?;
        let words = WordCopy::new(&mut self.code, &nest, &sides)?;
        let whole = words.whole(&mut self.code);
        let WordCopy { mut nest, sides, words, .. } = words;
        nest.drop_single(&self.code);
        let (_, _, dst) = sides[0].affine()?;
        let (base, _, src) = sides[1].affine()?;
        let known = |code: &FunctionBuilder, r: Reg| code.known(r);
        let start = nest.forms[dst].start;
        let first =
            start == to.offset || known(&self.code, start).is_some_and(|n| known(&self.code, to.offset) == Some(n));
        let (Stride::Const(down), Stride::Const(1), true) = (to.rows, to.cols, first) else { return None };
        // Along a row a word follows the other. If rows follow each other too, they are one axis.
        let mut rows = Stride::Const(down / 2);
        for a in 0..nest.axes.len() {
            let (by, from) = (known(&self.code, nest.forms[dst].steps[a])?, nest.forms[src].steps[a]);
            match (by, known(&self.code, from)) {
                (8, Some(4)) => {}
                (by, Some(from)) if by == down => rows = Stride::Const(from),
                (by, None) if by == down => rows = Stride::Reg(from),
                _ => return None,
            }
        }
        let offset = nest.forms[src].start;
        Some((HalfRows { base, offset, rows, moves: words.moves, signed: words.signed }, whole))
    }
}
