//! Sorts of short lists and merges of sorted ones, as `Sort` and `Merge` of loop IR have them.
//!
//! Values become keys, unsigned numbers that ascend as values come one behind the other: larger values first, NaN
//! before all, zeros of either sign alike. The rank of an element is the number of keys below its own, and of equal
//! ones before it, which are sums over 32 neighbours: vectors. A merge keeps the keys of its four heads with their
//! lists' numbers below them, so that the least is the next.

use ptoc_abi::{MERGED, RECORD, SORTED};

/// A value in memory.
trait Value: Copy {
    /// Fields of a record.
    const FIELDS: usize = RECORD / size_of::<Self>();

    fn key(self) -> u32;
}

/// The key of a float from its bits, which are its own if the sign is set, else those below it in reverse: `infinity`
/// are those of the largest number, in the same place as the sign is.
#[inline(always)]
fn key(bits: u32, sign: u32, infinity: u32) -> u32 {
    let magnitude = bits & (sign - 1);
    let descending = if bits & sign != 0 && magnitude != 0 { bits } else { sign - 1 - magnitude };
    if magnitude > infinity { 0 } else { descending }
}

/// The bits of an f32.
impl Value for u32 {
    #[inline(always)]
    fn key(self) -> u32 {
        key(self, 1 << 31, 0x7f80_0000)
    }
}

/// The bits of an f16.
impl Value for u16 {
    #[inline(always)]
    fn key(self) -> u32 {
        key(self.into(), 1 << 15, 0x7c00)
    }
}

/// A matrix: its first element, and bytes from row to row and from column to column.
#[derive(Clone, Copy)]
struct Strided<P> {
    at: P,
    row: i64,
    col: i64,
}

/// # Safety
/// All rows and columns are in memory, and the records lie apart from the rest.
#[inline(always)]
unsafe fn sort<T: Value>(d: Strided<*mut u8>, a: Strided<*const u8>, index: Strided<*const u8>, rows: i64, cols: i64) {
    for i in 0..rows as isize {
        for start in (0..cols as isize).step_by(SORTED) {
            let count = (cols as isize - start).min(SORTED as isize) as usize;
            // Keys of no element come last, and count for none.
            let mut keys = [u32::MAX; SORTED];
            // SAFETY: the caller's.
            let value = |n: usize| unsafe {
                let j = start + n as isize;
                a.at.offset(i * a.row as isize + j * a.col as isize).cast::<T>().read_unaligned()
            };
            for (n, key) in keys.iter_mut().enumerate().take(count) {
                *key = value(n).key();
            }
            for n in 0..count {
                let own = keys[n];
                let rank: u32 = (0..SORTED).map(|k| u32::from(keys[k] < own + u32::from(k < n))).sum();
                // SAFETY: the caller's.
                unsafe {
                    let j = start + n as isize;
                    let bits = index.at.offset(i * index.row as isize + j * index.col as isize);
                    let bits = bits.cast::<u32>().read_unaligned();
                    let first = (start + rank as isize) * T::FIELDS as isize;
                    let field = |f: usize| d.at.offset(i * d.row as isize + (first + f as isize) * d.col as isize);
                    field(0).cast::<T>().write_unaligned(value(n));
                    if T::FIELDS == 2 {
                        field(1).cast::<u32>().write_unaligned(bits);
                    } else {
                        for (f, half) in [0, bits as u16, (bits >> 16) as u16].into_iter().enumerate() {
                            field(f + 1).cast::<u16>().write_unaligned(half);
                        }
                    }
                }
            }
        }
    }
}

/// Records that are left of a list.
#[derive(Clone, Copy)]
struct List {
    at: *const u8,
    /// Bytes from field to field.
    field: isize,
    count: i64,
}

impl List {
    /// # Safety
    /// So many records are in memory.
    #[inline(always)]
    unsafe fn head<T: Value>(&self, number: usize) -> u64 {
        if self.count <= 0 {
            return u64::MAX;
        }
        // SAFETY: a record is left.
        let value = unsafe { self.at.cast::<T>().read_unaligned() };
        u64::from(value.key()) << 2 | number as u64
    }
}

/// Merges to `d`, whose fields are so many bytes apart.
///
/// # Safety
/// All records are in memory, and the destination has room for them, apart from all lists.
#[inline(always)]
unsafe fn merge<T: Value>(mut d: *mut u8, field: isize, mut lists: [List; MERGED]) {
    let total: i64 = lists.iter().map(|l| l.count.max(0)).sum();
    // SAFETY: the caller's; a list whose head is taken has one.
    unsafe {
        let mut heads: [u64; MERGED] = std::array::from_fn(|n| lists[n].head::<T>(n));
        for _ in 0..total {
            let best = heads[0].min(heads[1]).min(heads[2].min(heads[3]));
            let n = best as usize % MERGED;
            let list = &mut lists[n];
            if field == size_of::<T>() as isize && list.field == field {
                d.cast::<[u8; RECORD]>().write_unaligned(list.at.cast::<[u8; RECORD]>().read_unaligned());
            } else {
                for f in 0..T::FIELDS as isize {
                    let value = list.at.offset(f * list.field).cast::<T>().read_unaligned();
                    d.offset(f * field).cast::<T>().write_unaligned(value);
                }
            }
            d = d.wrapping_offset(T::FIELDS as isize * field);
            list.at = list.at.wrapping_offset(T::FIELDS as isize * list.field);
            list.count -= 1;
            heads[n] = list.head::<T>(n);
        }
    }
}

macro_rules! routines {
    ($ty:ident, $sort:ident, $wide:ident, $merge:ident, $runs:ident) => {
        /// Records, values, indices, rows, columns; bytes from row to row and from field to field of the records, from
        /// row to row and from column to column of values and of indices.
        ///
        /// # Safety
        /// All are in memory, and the records lie apart from the rest.
        pub(super) unsafe extern "C" fn $sort(
            d: *mut u8,
            a: *const u8,
            index: *const u8,
            rows: i64,
            cols: i64,
            d_row: i64,
            d_col: i64,
            a_row: i64,
            a_col: i64,
            index_row: i64,
            index_col: i64,
        ) {
            let d = Strided { at: d, row: d_row, col: d_col };
            let a = Strided { at: a, row: a_row, col: a_col };
            let index = Strided { at: index, row: index_row, col: index_col };
            // SAFETY: the caller's; the instructions are there.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                if std::is_x86_feature_detected!("avx2") {
                    return $wide(d, a, index, rows, cols);
                }
                sort::<$ty>(d, a, index, rows, cols);
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn $wide(d: Strided<*mut u8>, a: Strided<*const u8>, index: Strided<*const u8>, rows: i64, cols: i64) {
            // SAFETY: the caller's.
            unsafe { sort::<$ty>(d, a, index, rows, cols) }
        }

        /// Destination and bytes from field to field, then the same and the number of records of each of four lists.
        ///
        /// # Safety
        /// All records are in memory, and the destination has room for them, apart from all lists.
        pub(super) unsafe extern "C" fn $merge(
            d: *mut u8,
            field: i64,
            a: *const u8,
            a_field: i64,
            a_count: i64,
            b: *const u8,
            b_field: i64,
            b_count: i64,
            c: *const u8,
            c_field: i64,
            c_count: i64,
            e: *const u8,
            e_field: i64,
            e_count: i64,
        ) {
            let lists = [(a, a_field, a_count), (b, b_field, b_count), (c, c_field, c_count), (e, e_field, e_count)];
            let lists = lists.map(|(at, field, count)| List { at, field: field as isize, count });
            // SAFETY: the caller's.
            unsafe { merge::<$ty>(d, field as isize, lists) }
        }

        /// Destination and bytes from field to field, the same and the number of records of the source, and how many
        /// of them are a list: each four lists are merged to where they came from.
        ///
        /// # Safety
        /// All records are in memory, those of the destination apart from the others.
        pub(super) unsafe extern "C" fn $runs(
            d: *mut u8,
            field: i64,
            a: *const u8,
            a_field: i64,
            count: i64,
            length: i64,
        ) {
            let length = length.max(1);
            let mut first = 0;
            while first < count {
                let bound = |n: usize| length.saturating_mul(n as i64).saturating_add(first).min(count);
                let record = |n: i64, field: i64| (n * <$ty as Value>::FIELDS as i64 * field) as isize;
                let lists = std::array::from_fn(|n| List {
                    at: a.wrapping_offset(record(bound(n), a_field)),
                    field: a_field as isize,
                    count: bound(n + 1) - bound(n),
                });
                // SAFETY: the caller's.
                unsafe { merge::<$ty>(d.offset(record(first, field)), field as isize, lists) };
                first = bound(MERGED);
            }
        }
    };
}

routines!(u32, sort_f32, sort_f32_avx2, merge_f32, runs_f32);
routines!(u16, sort_f16, sort_f16_avx2, merge_f16, runs_f16);

#[cfg(test)]
mod tests {
    use super::{Value, key};

    /// Keys ascend where values descend.
    #[test]
    fn keys_have_the_order_of_values() {
        let values = [f32::NAN, f32::INFINITY, f32::MAX, 1.0, f32::from_bits(1), 0.0, -f32::from_bits(1), -1.0];
        let values = values.into_iter().chain([f32::MIN, f32::NEG_INFINITY]);
        let keys: Vec<u32> = values.map(|x| x.to_bits().key()).collect();
        assert!(keys.is_sorted_by(|x, y| x < y), "{keys:x?}");
        assert_eq!((-0f32).to_bits().key(), 0f32.to_bits().key());
        assert_eq!((-f32::NAN).to_bits().key(), f32::from_bits(0x7f80_0001).to_bits().key());
        let halves: Vec<u32> = [0x7e00u16, 0x7c00, 0x7bff, 1, 0, 0x8001, 0xfbff, 0xfc00].map(Value::key).to_vec();
        assert!(halves.is_sorted_by(|x, y| x < y), "{halves:x?}");
        assert_eq!(key(0x8000, 0x8000, 0x7c00), 0u16.key());
    }
}
