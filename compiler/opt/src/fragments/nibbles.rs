//! Half bytes that a loop loads to be computed with: a tile of integers, of which each eight columns are a word of a
//! row of memory, in any order within it (`std::quant::logical`).

use super::staged::is_swizzled;
use super::{Finder, Fragment, OperandLoad, OperandSource};
use crate::matrix_unit::launch_number;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Affine, Copy, Elem, NestAccess, TensorDir, Value};
use ptoc_placement::access::is_whole;

/// Half bytes of a word, and of a byte.
const WORD: usize = 8;
const BYTE: i64 = 2;

/// Rows of half bytes.
#[derive(Clone, Debug)]
pub struct Nibbles {
    /// The number of the first one, and from row to row.
    pub start: Value,
    /// See above.
    pub pitch: Value,
    /// Which of a word is each of eight columns.
    pub order: [u8; WORD],
    /// They have a sign.
    pub signed: bool,
}

impl Finder<'_> {
    /// A nest that loads half bytes, as a ring of so many slots.
    pub(super) fn nibbles(&self, copy: &Copy, slots: u32) -> Option<OperandLoad> {
        let NestAccess::Tile { tile, row, col } = &copy.dst else { return None };
        let NestAccess::Tensor { tensor, elem: elem @ (Elem::U4 | Elem::I4), at, swizzle: None, tables } = &copy.src
        else {
            return None;
        };
        let n = |v: Value| self.defs.number(v);
        let rows = (0..copy.extents.len()).find(|a| n(row.strides[*a]) == Some(1))?;
        let others: Vec<usize> = (0..copy.extents.len()).filter(|a| *a != rows).collect();
        let by_rows = others.iter().all(|a| n(row.strides[*a]) == Some(0))
            && n(col.strides[rows]) == Some(0)
            && n(row.start) == Some(0)
            && n(col.start) == Some(0)
            && copy.extents[rows] == tile.valid.0;
        let order = self.order_of_columns(copy, (col, at), &others, tile.cols)?;
        let pitch = self.defs.poly(at.strides[rows])?;
        let [along, down] = self.coordinates(at.start, &pitch)?;
        let guarded = copy.guards.iter().all(|guard| {
            let columns = guard.at == *col && guard.bound == tile.valid.1;
            // Elements of a row that it has.
            let in_row = self.defs.poly(guard.bound).as_ref() == Some(&pitch)
                && self.defs.poly(guard.at.start).as_ref() == Some(&along)
                && n(guard.at.strides[rows]) == Some(0)
                && others.iter().all(|a| n(guard.at.strides[*a]) == n(at.strides[*a]));
            columns || in_row
        });
        let words = along.terms().iter().all(|(_, n)| n % WORD as i64 == 0);
        let data = &self.kernel.tensors[*tensor];
        let line = tile.cols / BYTE as u32;
        let full = matches!(self.fragment(tile.tile), Ok(Fragment::Full(_)));
        let uses = self.uses.get(&tile.tile).copied().unwrap_or_default();
        let fits = full
            && is_whole(self.kernel, tile)
            && slots > 1
            && is_swizzled(line)
            && tables.is_empty()
            && copy.fill.is_none()
            && data.dir == TensorDir::In
            && data.dtype.size() == 1
            && uses.writes == 1;
        if !fits || !by_rows || !guarded || !words {
            return None;
        }
        let (two, total) = (Poly::constant(BYTE), self.elements_of(*tensor)?);
        let bytes = pitch.divided(&two)?;
        if bytes.terms().len() != 1 {
            return None;
        }
        let aligned = bytes.terms().iter().all(|(_, n)| n % 16 == 0);
        let nibbles = Nibbles { start: at.start, pitch: at.strides[rows], order, signed: *elem == Elem::I4 };
        Some(OperandLoad {
            operand: tile.tile,
            filled: tile.tile,
            tensor: tensor.as_u32(),
            pitch: launch_number(self.kernel, &bytes)?,
            total: launch_number(self.kernel, &total)?,
            at: [along.divided(&two)?, down],
            turned: false,
            lines: tile.rows,
            length: line,
            held: tile.rows,
            source: OperandSource::Nibbles(nibbles),
            aligned,
            depth: None,
            slots,
            element: 1,
            staged: true,
        })
    }

    /// The half bytes of a word that are its eight columns, if each eight columns are a word in the same order.
    fn order_of_columns(
        &self,
        copy: &Copy,
        (col, at): (&Affine, &Affine),
        axes: &[usize],
        columns: u32,
    ) -> Option<[u8; WORD]> {
        let columns = columns as usize;
        let mut places = vec![(0i64, 0i64)];
        for a in axes {
            let [count, across, along] =
                [copy.extents[*a], col.strides[*a], at.strides[*a]].map(|v| self.defs.number(v));
            let (count, across, along) = (count?, across?, along?);
            if count < 1 || count.checked_mul(places.len() as i64)? > columns as i64 {
                return None;
            }
            places = (0..count)
                .flat_map(|n| places.iter().map(move |(column, place)| (column + n * across, place + n * along)))
                .collect();
        }
        let mut nibbles = vec![None; columns];
        for (column, place) in places {
            let slot = nibbles.get_mut(usize::try_from(column).ok()?)?;
            if slot.replace(place).is_some() {
                return None;
            }
        }
        let mut order = [0; WORD];
        for (column, place) in nibbles.into_iter().enumerate() {
            let of_word = place? - (column - column % WORD) as i64;
            let of_word = u8::try_from(of_word).ok().filter(|n| usize::from(*n) < WORD)?;
            match column < WORD {
                true => order[column] = of_word,
                false if order[column % WORD] == of_word => {}
                false => return None,
            }
        }
        Some(order)
    }
}
