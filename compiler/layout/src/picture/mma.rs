//! Matrix instructions: C, with A at its left and B above, as CUTLASS draws them.

use super::tv::TvGrid;
use super::{Panels, Picture, unknown};
use crate::{Cx, ErrorKind, LayoutError, MmaAtom, Operand, Points, Result, TiledMma, Tiler, Value, ops};

/// An atom by itself.
pub(super) fn of_atom(atom: &MmaAtom) -> Result<Picture> {
    let threads = points(&Value::Layout(atom.thr.clone()))?;
    let title = format!("{}: {}, {}", atom.name, product(atom.shape), count_of(threads.size()));
    let places = atom.shape.map(|extent| Places { extent, atom: extent, side: 1, order: None });
    draw(title, Vec::new(), atom, &threads, &[0], &places)
}

/// Atoms side by side, each thread with all of its repetitions.
pub(super) fn of_tiled(cx: &Cx, mma: &TiledMma) -> Result<Picture> {
    let atom = &mma.atom;
    let thr = points(&Value::Layout(atom.thr.clone()))?;
    let sides = mma.atoms.modes();
    let [m, n, k] = sides.as_slice() else {
        let message = format!("the atoms {} have rank {}, not 3", mma.atoms, mma.atoms.rank());
        return Err(LayoutError::new(ErrorKind::Profile, "picture", message));
    };
    let side = |l: &crate::Layout| l.size().ok().and_then(|n| n.as_const()).unwrap_or(0);
    let sides = [side(m), side(n), side(k)];
    let place = |k: usize| {
        let tiler = &mma.tiler[k];
        let least = atom.shape[k].checked_mul(sides[k]);
        let (extent, order) = match tiler {
            Tiler::Keep => (least, None),
            Tiler::Extent(n) => (n.as_const(), None),
            Tiler::Layout(l) => (l.size()?.as_const(), Some(points(&Value::Layout(l.clone()))?)),
            Tiler::ByMode(_) => (None, None),
        };
        match least.zip(extent) {
            Some((least, extent)) if least > 0 && extent % least == 0 => {
                Ok(Places { extent, atom: atom.shape[k], side: sides[k], order })
            }
            _ => {
                let (count, each) = (sides[k], atom.shape[k]);
                let message = format!("entry {tiler} of the tiler is no multiple of {count} atoms of {each}");
                Err(LayoutError::new(ErrorKind::Divisibility, "picture", message))
            }
        }
    };
    let places = [place(0)?, place(1)?, place(2)?];
    // Thread of the machine = product of the atom's threads with the atoms, (v, m, n, k) -> thread.
    let threads = product_of_threads(cx, mma)?;
    let count = threads.size();
    if count > MOST {
        return Err(too_much(format!("{count} threads")));
    }
    let bases: Vec<i64> = (0..sides.iter().product::<i64>()).map(|i| i * thr.size()).collect();
    let title = format!(
        "{} on {} x {} x {}: {}, {}",
        atom.name,
        sides[0],
        sides[1],
        sides[2],
        product([0, 1, 2].map(|k| places[k].extent)),
        count_of(count)
    );
    draw(title, vec![mma.to_string()], atom, &threads, &bases, &places)
}

/// More pairs of a thread and a value than this are not drawn.
const MOST: i64 = 1 << 22;

fn too_much(what: String) -> LayoutError {
    LayoutError::new(ErrorKind::Domain, "picture", format!("{what} are too many to be drawn"))
}

fn count_of(threads: i64) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// (thread of the atom, atom in M, in N, in K) -> thread of the machine.
fn product_of_threads(cx: &Cx, mma: &TiledMma) -> Result<Points> {
    let tiler = Tiler::Layout(mma.atoms.clone());
    points(&Value::Layout(ops::tiled_product(cx, &mma.atom.thr, &tiler)?))
}

/// Where the atoms' elements lie along M, N or K.
struct Places {
    /// Of the whole.
    extent: i64,
    /// Of an atom.
    atom: i64,
    /// Atoms side by side.
    side: i64,
    /// What the tiler makes of the places.
    order: Option<Points>,
}

impl Places {
    /// Repetitions of the atoms.
    fn rest(&self) -> i64 {
        self.extent / (self.atom * self.side).max(1)
    }

    /// Element `within` of atom `at` in repetition `rest`.
    fn place(&self, within: i64, at: i64, rest: i64) -> i64 {
        let index = within + self.atom * (at + self.side * rest);
        self.order.as_ref().map_or(index, |order| order.offset_at(index).unwrap_or(-1))
    }
}

fn draw(
    title: String,
    mut facts: Vec<String>,
    atom: &MmaAtom,
    threads: &Points,
    bases: &[i64],
    places: &[Places; 3],
) -> Result<Picture> {
    let within = points(&Value::Layout(atom.thr.clone()))?.size();
    let grid = |operand: Operand, [down, right]: [usize; 2]| {
        let (down_places, right_places) = (&places[down], &places[right]);
        let names = ["M", "N", "K"];
        let mut grid = TvGrid::empty([down_places.extent, right_places.extent], [names[down], names[right]])?;
        let elements = points(&Value::Layout(atom.tv(operand).clone()))?;
        let values = elements.size() / within.max(1);
        let factors = [bases.len() as i64, elements.size(), down_places.rest(), right_places.rest()];
        let work = factors.iter().try_fold(1i64, |n, &f| n.checked_mul(f)).filter(|&n| n <= MOST);
        work.ok_or_else(|| {
            too_much(format!("{} x {} elements of {operand:?}", down_places.extent, right_places.extent))
        })?;
        for (block, base) in bases.iter().enumerate() {
            // Which atom: the first of the three counts fastest.
            let mut rest = block as i64;
            let at = [0, 1, 2].map(|k: usize| {
                let digit = rest % places[k].side.max(1);
                rest /= places[k].side.max(1);
                digit
            });
            for t in 0..within {
                let thread = threads.offset_at(base + t).unwrap_or(-1);
                for v in 0..values {
                    let element = elements.offset_at(t + v * within).unwrap_or(-1);
                    let (i, j) = (element.rem_euclid(down_places.atom), element.div_euclid(down_places.atom));
                    for r in 0..down_places.rest() {
                        for c in 0..right_places.rest() {
                            let row = down_places.place(i, at[down], r);
                            let col = right_places.place(j, at[right], c);
                            let value = v + values * (r + down_places.rest() * c);
                            grid.hold(row + col * down_places.extent, thread, value)?;
                        }
                    }
                }
            }
        }
        let whole = |p: &Places| if p.order.is_none() { p.atom as usize } else { 0 };
        grid.breaks = (whole(down_places), whole(right_places));
        Ok::<_, LayoutError>(grid)
    };
    let parts = [grid(Operand::A, [0, 2])?, grid(Operand::B, [1, 2])?.turned(), grid(Operand::C, [0, 1])?];
    if parts.iter().any(TvGrid::is_shared) {
        facts.push(super::SHARED.into());
    }
    Ok(Picture { title, facts, panels: Panels::Mma(Box::new(parts)) })
}

fn points(value: &Value) -> Result<Points> {
    Points::of(value).ok_or_else(|| unknown(value))
}

fn product([m, n, k]: [i64; 3]) -> String {
    format!("{m} x {n} x {k}")
}
