//! The memories of a target file: `[memory.LOCATION]`, and `[pool.NAME]`, which several locations share.

use super::parse::Reader;
use super::raw::{RawMemory, RawPool, Text};
use super::{Memory, Pool};
use crate::{Loc, text};
use std::collections::BTreeMap;
use toml::Spanned;

/// A pool as it is read, with the locations found in it so far.
struct Shared {
    name: Text,
    capacity: u64,
    align: u64,
    locations: Vec<Loc>,
}

impl Reader {
    pub(super) fn memories(
        &mut self,
        raw: Spanned<BTreeMap<Text, RawMemory>>,
        pools: BTreeMap<Text, RawPool>,
        in_memory: bool,
    ) -> ([Memory; 14], Vec<Pool>) {
        let (at, before) = (raw.span(), self.errors.len());
        let mut shared: Vec<Shared> = pools.into_iter().map(|(name, pool)| self.pool(name, &pool)).collect();
        let mut found: [Option<Memory>; 14] = Default::default();
        for (name, memory) in raw.into_inner() {
            let Some(loc) = self.loc(&name) else { continue };
            found[loc as usize] = Some(self.memory(loc, &name, memory, &mut shared));
        }
        // A unit in memory has few of them, a PTO target says that it lacks one.
        let wanted = |l: &Loc| if in_memory { *l == Loc::Vec } else { !Loc::UNIT.contains(l) };
        let missing: Vec<Loc> = Loc::ALL.into_iter().filter(wanted).filter(|l| found[*l as usize].is_none()).collect();
        if !missing.is_empty() {
            self.error(at, format!("no [memory] for {}", text::list(missing)))
                .notes
                .push("a memory that the target lacks is given with capacity 0".into());
        }
        // One whose name is wrong where it is used is told of there.
        let known = self.errors.len() == before;
        for pool in shared.iter().filter(|pool| known && pool.locations.is_empty()) {
            let message = format!("no location is in `{0}`: give one `pool = \"{0}\"`", pool.name.get_ref());
            self.error(pool.name.span(), message);
        }
        let pools = shared.into_iter().map(|mut pool| {
            pool.locations.sort_unstable();
            Pool { name: pool.name.into_inner(), locations: pool.locations }
        });
        let mut names = Loc::ALL.into_iter();
        let memories = found.map(|m| {
            let loc = names.next();
            m.unwrap_or_else(|| absent(loc))
        });
        (memories, pools.collect())
    }

    fn pool(&mut self, name: Text, raw: &RawPool) -> Shared {
        let word = name.get_ref();
        if Loc::from_name(word).is_some() || word.contains(char::is_whitespace) || word.is_empty() {
            self.error(name.span(), "a pool has a name of one word, which is not that of a location".into());
        }
        let (capacity, align) = (u64::from(self.positive(&raw.capacity)), u64::from(self.power_of_two(&raw.align)));
        Shared { name, capacity, align, locations: Vec::new() }
    }

    fn memory(&mut self, loc: Loc, at: &Text, raw: RawMemory, pools: &mut [Shared]) -> Memory {
        if let Some(of) = &raw.view_of {
            let message = format!("tiles of {loc} that are views of those of {} are not there yet", of.get_ref());
            let error = self.error(of.span(), message);
            error.notes.push("`pool` places tiles of several locations in one memory, each on bytes of its own".into());
        }
        let (capacity, align) = match (&raw.pool, &raw.view_of) {
            (_, Some(_)) => (0, 1),
            (Some(name), None) => self.in_pool(loc, name, &raw, pools),
            (None, None) => (self.capacity(loc, at, &raw), self.align(at, &raw)),
        };
        let row_align = raw.row_align.as_ref().map_or(align, |n| u64::from(self.power_of_two(n)));
        let boxed = matches!(loc, Loc::Left | Loc::Right | Loc::Acc);
        if boxed && raw.fractal.is_empty() {
            self.error(at.span(), format!("tiles in {loc} are boxed: give `fractal`"));
        }
        if !boxed && !raw.fractal.is_empty() {
            self.error(at.span(), format!("tiles in {loc} are not boxed: it takes no `fractal`"));
        }
        let mut fractal = Vec::new();
        for (size, shape) in &raw.fractal {
            let [r, c] = *shape.get_ref();
            match (size.get_ref().parse::<usize>(), u32::try_from(r), u32::try_from(c)) {
                (Ok(size @ (1 | 2 | 4 | 8)), Ok(r @ 1..), Ok(c @ 1..)) => fractal.push((size, r, c)),
                _ => {
                    self.error(shape.span(), "a fractal is `element bytes = [rows, columns]`, all positive".into());
                }
            }
        }
        Memory { name: raw.name, capacity, align, row_align, one_row: raw.one_row, fractal, overridden: false }
    }

    /// Capacity and alignment of the pool, which a location in it has none of itself.
    fn in_pool(&mut self, loc: Loc, name: &Text, raw: &RawMemory, pools: &mut [Shared]) -> (u64, u64) {
        for (given, what) in [(&raw.capacity, "capacity"), (&raw.align, "align")] {
            if let Some(given) = given {
                self.error(given.span(), format!("{loc} has the `{what}` of its pool, and none of its own"));
            }
        }
        if Loc::UNIT.contains(&loc) {
            self.error(name.span(), format!("{loc} is a store of a unit's own, and in no pool"));
        }
        if let Some(pool) = pools.iter_mut().find(|pool| pool.name.get_ref() == name.get_ref()) {
            pool.locations.push(loc);
            return (pool.capacity, pool.align);
        }
        let names: Vec<String> = pools.iter().map(|pool| format!("`{}`", pool.name.get_ref())).collect();
        let error = self.error(name.span(), format!("there is no [pool.{}]", name.get_ref()));
        error.notes.push(format!("the pools are {}", text::list(names)));
        (0, 1)
    }

    fn capacity(&mut self, loc: Loc, at: &Text, raw: &RawMemory) -> u64 {
        if let Some((_, follows)) = self.follows.iter().find(|(l, _)| *l == loc).copied() {
            match &raw.capacity {
                Some(n) if u64::try_from(*n.get_ref()) != Ok(follows) => {
                    let message = format!("{loc} has {} by the other tables", text::bytes(follows));
                    self.error(n.span(), message).notes.push("leave `capacity` out, which follows from them".into());
                }
                _ => {}
            }
            return follows;
        }
        let Some(n) = &raw.capacity else {
            self.error(at.span(), format!("{} has no `capacity`, and no `pool`", at.get_ref()));
            return 0;
        };
        u64::try_from(*n.get_ref()).unwrap_or_else(|_| {
            self.error(n.span(), format!("a capacity is not negative, and {} is", n.get_ref()));
            0
        })
    }

    fn align(&mut self, at: &Text, raw: &RawMemory) -> u64 {
        match &raw.align {
            Some(n) => u64::from(self.power_of_two(n)),
            None => {
                self.error(at.span(), format!("{} has no `align`, and no `pool`", at.get_ref()));
                1
            }
        }
    }
}

fn absent(loc: Option<Loc>) -> Memory {
    Memory {
        name: loc.map_or(String::new(), |l| l.name().to_owned()),
        capacity: 0,
        align: 1,
        row_align: 1,
        one_row: false,
        fractal: Vec::new(),
        overridden: false,
    }
}
