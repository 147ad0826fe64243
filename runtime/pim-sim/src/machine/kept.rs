//! Commands one by one, packed: whoever draws a run takes the chunks of the stretch of time that it shows.
//!
//! A chunk has some thousand commands by tick, as columns of numbers that are small where commands follow a pattern
//! (differences of ticks, of rows and columns of a bank), as LEB128, deflated. So a command takes a byte or two, and
//! the size is bounded: chunks beyond that are not kept, and [`Kept::lost`] says from when on.

use crate::dram::Command;
use ptoc_pim_stream::stream::SourceLine;
use rustc_hash::FxHashMap;

/// Commands of a chunk.
const CHUNK: usize = 4096;
/// Bytes of all chunks of a run.
pub const MOST: usize = 10 << 20;
/// How much deflation tries; more gains a tenth and takes twice as long.
const LEVEL: u8 = 6;

/// A command that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its tick.
    pub tick: u64,
    /// The command.
    pub command: Command,
    /// The bank that it addresses, by its number in the device.
    pub bank: u32,
    /// Banks that follow it: 1, those of one parity of the pseudo-channel, or all of it.
    pub banks: u32,
    /// Row and column.
    pub at: [u32; 2],
    /// Ticks that the units computed for it.
    pub compute: u32,
    /// The line.
    pub place: SourceLine,
}

/// Commands of a channel that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The tick of the first one.
    pub from: u64,
    /// The tick of the last one.
    pub to: u64,
    /// How many there are.
    pub count: u32,
    /// The number of the channel's first bank in the device.
    pub first_bank: u32,
    /// The channel, whose table has the lines.
    pub channel: u32,
    /// [`COLUMNS`] columns, each of `count` numbers in LEB128, as raw DEFLATE has them.
    pub data: Vec<u8>,
}

/// Numbers of a command: the difference of its tick to the command before (to the chunk's first tick), the command, its
/// bank within the channel, banks that follow, the differences of row and column to the last command of the bank in the
/// chunk (of 0 in front of the first; with the sign in the lowest bit), ticks of computing, the number of the line.
pub const COLUMNS: usize = 8;

/// The commands of a channel; after [`Kept::join`] of several.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// The first tick of which commands are kept.
    pub(super) from: u64,
    open: Vec<Moment>,
    pub(super) chunks: Vec<Chunk>,
    bytes: usize,
    /// Lines of each channel by their numbers.
    pub(super) places: Vec<Vec<SourceLine>>,
    numbers: FxHashMap<SourceLine, u32>,
    /// The first tick of which a command was not kept.
    pub(super) lost: u64,
}

impl Kept {
    pub(super) fn new(from: u64) -> Kept {
        Kept {
            from,
            open: Vec::new(),
            chunks: Vec::new(),
            bytes: 0,
            places: vec![Vec::new()],
            numbers: FxHashMap::default(),
            lost: u64::MAX,
        }
    }

    pub(super) fn push(&mut self, moment: Moment) {
        if moment.tick < self.from {
            return;
        }
        if self.lost != u64::MAX || self.bytes > MOST {
            // Between successive steps refreshes may come late.
            self.lost = self.lost.min(moment.tick);
            return;
        }
        if self.open.len() >= CHUNK {
            self.seal();
        }
        self.open.push(moment);
    }

    /// The last command, if it is this one.
    pub(super) fn last(&mut self, tick: u64, bank: usize) -> Option<&mut Moment> {
        self.open.last_mut().filter(|m| (m.tick, m.bank as usize) == (tick, bank))
    }

    /// Packs what is open.
    pub(super) fn seal(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|m| m.tick);
        let (Some(first), Some(last)) = (open.first(), open.last()) else { return };
        let (from, to, count) = (first.tick, last.tick, open.len() as u32);
        let mut columns: [Vec<u8>; COLUMNS] = Default::default();
        let mut before = from;
        let mut rows: FxHashMap<u32, [u32; 2]> = FxHashMap::default();
        for m in &open {
            let known = self.places[0].len() as u32;
            let place = *self.numbers.entry(m.place).or_insert(known);
            if place == known {
                self.places[0].push(m.place);
            }
            let last = rows.entry(m.bank).or_default();
            let difference = |n: usize| {
                let d = i64::from(m.at[n]) - i64::from(last[n]);
                (d << 1 ^ d >> 63) as u64
            };
            let numbers = [
                m.tick - before,
                m.command as u64,
                u64::from(m.bank),
                u64::from(m.banks),
                difference(0),
                difference(1),
                u64::from(m.compute),
                u64::from(place),
            ];
            columns.iter_mut().zip(numbers).for_each(|(column, n)| leb128(column, n));
            *last = m.at;
            before = m.tick;
        }
        let data = miniz_oxide::deflate::compress_to_vec(&columns.concat(), LEVEL);
        self.bytes += data.len();
        self.chunks.push(Chunk { from, to, count, first_bank: 0, channel: 0, data });
    }

    /// Adds those of the channel behind, whose banks come behind `before` ones.
    pub(super) fn join(&mut self, own: Kept, before: u32) {
        let channel = self.places.len() as u32;
        self.chunks.extend(own.chunks.into_iter().map(|c| Chunk { first_bank: before, channel, ..c }));
        self.places.extend(own.places);
        self.lost = self.lost.min(own.lost);
    }

    /// All is there: chunks come by their time, and those beyond the bound go.
    pub(super) fn finish(&mut self) {
        self.chunks.sort_by_key(|c| (c.from, c.channel));
        let mut bytes = 0;
        let whole = self.chunks.iter().take_while(|c| {
            bytes += c.data.len();
            bytes <= MOST
        });
        let count = whole.count();
        if let Some(first) = self.chunks.get(count) {
            self.lost = self.lost.min(first.from);
        }
        self.chunks.truncate(count);
        let lost = self.lost;
        self.chunks.retain(|c| c.from < lost);
    }

    /// Of a chunk the commands, as they were pushed, by tick.
    pub(super) fn moments(&self, chunk: &Chunk) -> Option<Vec<Moment>> {
        let bytes = miniz_oxide::inflate::decompress_to_vec(&chunk.data).ok()?;
        let mut numbers = Numbers(&bytes);
        let count = chunk.count as usize;
        let columns: Vec<Vec<u64>> = (0..COLUMNS).map(|_| (&mut numbers).take(count).collect()).collect();
        let mut rows: FxHashMap<u64, [i64; 2]> = FxHashMap::default();
        let mut tick = chunk.from;
        let moment = |n: usize| {
            let column = |c: usize| columns.get(c).and_then(|all| all.get(n)).copied();
            tick += column(0)?;
            let bank = column(2)?;
            let last = rows.entry(bank).or_default();
            for (k, at) in last.iter_mut().enumerate() {
                let d = column(4 + k)?;
                *at += (d >> 1) as i64 ^ -((d & 1) as i64);
            }
            Some(Moment {
                tick,
                command: *Command::ALL.get(column(1)? as usize)?,
                bank: bank as u32 + chunk.first_bank,
                banks: column(3)? as u32,
                at: last.map(|n| n as u32),
                compute: column(6)? as u32,
                place: *self.places.get(chunk.channel as usize)?.get(column(7)? as usize)?,
            })
        };
        (0..count).map(moment).collect()
    }
}

fn leb128(out: &mut Vec<u8>, mut n: u64) {
    while n >= 128 {
        out.push(n as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Numbers that were written so.
struct Numbers<'a>(&'a [u8]);

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (mut n, mut shift) = (0u64, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            n |= u64::from(byte & 127).checked_shl(shift)?;
            if byte & 128 == 0 {
                return Some(n);
            }
            shift += 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moments() -> impl Strategy<Value = Vec<Moment>> {
        let one = (0u64..1 << 40, 0..Command::ALL.len(), 0u32..64, 1u32..65, any::<[u32; 2]>(), any::<u32>(), 0u32..9);
        let one = one.prop_map(|(tick, command, bank, banks, at, compute, line)| Moment {
            tick,
            command: Command::ALL[command],
            bank,
            banks,
            at,
            compute,
            place: SourceLine { file: 1, line },
        });
        prop::collection::vec(one, 0..300)
    }

    proptest! {
        /// What is unpacked is what was packed, whatever the order it came in.
        #[test]
        fn chunks_have_what_was_pushed(mut all in moments()) {
            let mut kept = Kept::new(0);
            all.iter().for_each(|m| kept.push(*m));
            kept.seal();
            kept.finish();
            let mut out: Vec<Moment> = kept.chunks.iter().flat_map(|c| kept.moments(c).unwrap()).collect();
            let key = |m: &Moment| (m.tick, m.bank, m.at, m.compute, m.command as usize, m.banks, m.place.line);
            out.sort_by_key(key);
            all.sort_by_key(key);
            prop_assert_eq!(out, all);
        }
    }

    /// What was issued before the tick that is asked for takes no room.
    #[test]
    fn commands_are_kept_from_a_tick_on() {
        let mut kept = Kept::new(700);
        let place = SourceLine { file: 1, line: 1 };
        for tick in 0..1000 {
            kept.push(Moment { tick, command: Command::Rd, bank: 0, banks: 1, at: [0, 0], compute: 0, place });
        }
        kept.seal();
        kept.finish();
        assert_eq!((kept.chunks.len(), kept.chunks[0].from, kept.chunks[0].count), (1, 700, 300));
    }

    /// However long a run, its chunks stay below the bound, and all commands before a tick are there.
    #[test]
    fn the_size_is_bounded() {
        let mut kept = Kept::new(0);
        // Rows without a pattern are what packs worst.
        let mut row = 1u32;
        for tick in 0..4_000_000 {
            row = row.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = [row, row.rotate_left(7)];
            let place = SourceLine { file: 1, line: 1 };
            kept.push(Moment { tick, command: Command::Act, bank: row >> 27, banks: 1, at, compute: row, place });
        }
        kept.seal();
        kept.finish();
        let bytes: usize = kept.chunks.iter().map(|c| c.data.len()).sum();
        assert!(bytes <= MOST && bytes > MOST / 2 && kept.lost < 4_000_000, "{bytes}, {}", kept.lost);
        let count: u64 = kept.chunks.iter().map(|c| u64::from(c.count)).sum();
        assert_eq!(count, kept.lost);
    }
}
