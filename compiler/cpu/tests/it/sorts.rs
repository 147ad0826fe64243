//! Sorts and merges of records against loop IR's evaluator: lists of any length, with equal values, zeros of either
//! sign, NaN and infinities.

use crate::make::agree;
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{Module, text, verify};

/// A module with three tensors and a space of 96 KiB. The third tensor is what comes out.
fn module(body: &str) -> Module {
    let source = format!(
        "kernel \"sorts\"\ntensor \"a\"\ntensor \"b\"\ntensor \"c\"\narena 98304\nspace \"Vec\" at 0 size 98304\n\
         launch \"l\" (r0: i64, r1: i64) {{\n}}\nblock \"b\" (r0: i64, r1: i64) {{\n  r2: i64 = const 0\n  \
         r3: i64 = const 32768\n  r4: i64 = const 65536\n  r5: i64 = const 1\n{body}}}\n"
    );
    let module = text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    verify(&module).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    module
}

/// Words that follow no pattern.
struct Words(u64);

impl Words {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// The bits of a value: few different ones, so that many are equal.
    fn value(&mut self, half: bool) -> u32 {
        let few = [0x7fc0_0000, 0xffc0_1000, 0x7f80_0000, 0xff80_0000, 0, 0x8000_0000, 0x3f80_0000, 0xbf80_0000];
        let halves = [0x7e00, 0xfe01, 0x7c00, 0xfc00, 0, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x8001];
        let subnormal = [0x0000_0001, 0x8000_0001];
        match (half, self.below(12)) {
            (true, n) => halves.get(n as usize).copied().unwrap_or(0x4000 + self.below(64) as u32),
            (false, n @ 0..8) => few[n as usize],
            (false, n @ 8..10) => subnormal[n as usize - 8],
            (false, _) => ((self.below(40) as f32 - 20.0) / 4.0).to_bits(),
        }
    }
}

fn bytes(words: &[u32], half: bool) -> Vec<u8> {
    let size = if half { 2 } else { 4 };
    words.iter().flat_map(|w| w.to_le_bytes().into_iter().take(size)).collect()
}

/// Fields of a record, and bytes of one.
fn of(half: bool) -> (&'static str, &'static str, usize, usize) {
    if half { ("f16", "u16", 4, 2) } else { ("f32", "i32", 2, 4) }
}

/// A list of records: each value with its number. `order`: put in order first.
fn records(words: &mut Words, count: usize, first: u32, half: bool, order: bool) -> Vec<u32> {
    let mut values: Vec<u32> = (0..count).map(|_| words.value(half)).collect();
    if order {
        let float = |bits: u32| match half {
            true => half::f16::from_bits(bits as u16).to_f32(),
            false => f32::from_bits(bits),
        };
        values.sort_by(|x, y| {
            let (x, y) = (float(*x), float(*y));
            ptoc_ir::loops::before(y, x).cmp(&ptoc_ir::loops::before(x, y))
        });
    }
    let fields = |(n, bits): (u32, u32)| match half {
        true => vec![bits, 0, n & 0xffff, n >> 16],
        false => vec![bits, n],
    };
    (first..).zip(values).flat_map(fields).collect()
}

/// Copies a tensor's first bytes to a space, or a space's to a tensor: in words of `ty`.
fn copy(ty: &str, to: &str, from: &str, count: usize, reg: u32) -> String {
    let size = if ty == "u16" { 2 } else { 4 };
    let (n, lane, x) = (reg, reg + 1, reg + 2);
    format!(
        "  r{n}: i64 = const {count}\n  lanes r{lane}: i64 in r{n} {{\n    \
         r{x}: i32 = load {ty} {from}, stride {size}]\n    \
         store {ty} {to}, stride {size}], r{x}\n  }}\n"
    )
}

#[test]
fn lists_of_elements() {
    for half in [false, true] {
        let (ty, _, fields, size) = of(half);
        let mut words = Words(7);
        for (rows, cols) in [(1, 32), (1, 1), (1, 95), (3, 40), (2, 64), (0, 5), (2, 0), (5, 33)] {
            let record_row = cols * 8;
            let values: Vec<u32> = (0..rows * cols).map(|_| words.value(half)).collect();
            let index: Vec<u32> = (0..rows * cols).map(|n| 70_000 + 3 * n as u32).collect();
            let arrays = [bytes(&values, half), bytes(&index, false), vec![7; rows * record_row + 8]];
            // Arrays as they are, by extents that are known at the launch.
            let body = format!(
                "  sort {ty} (r0, r1), d t2[r2] ({record_row}, {size}), a t0[r2] ({}, {size}), index t1[r2] ({}, 4)\n",
                cols * size,
                cols * 4
            );
            agree(&module(&body), &[rows as i64, cols as i64], &arrays)
                .unwrap_or_else(|why| panic!("{ty} {rows} x {cols}: {why}"));
            if rows * cols == 0 {
                continue;
            }
            // In a space, with whole records; and with fields that lie apart.
            for apart in [1, 2] {
                let step = size * apart;
                let count = rows * cols * fields * apart;
                let raw = if half { "u16" } else { "i32" };
                let body = [
                    copy(raw, "s0[r2", "t0[r2", rows * cols, 20),
                    copy("i32", "s0[r3", "t1[r2", rows * cols, 30),
                    copy("i32", "s0[r4", "t2[r2", count * size / 4, 40),
                    format!(
                        "  r6: i64 = const {rows}\n  r7: i64 = const {cols}\n  \
                         sort {ty} (r6, r7), d s0[r4] ({}, {step}), \
                         a s0[r2] ({}, {size}), index s0[r3] ({}, 4)\n",
                        record_row * apart,
                        cols * size,
                        cols * 4
                    ),
                    copy("i32", "t2[r2", "s0[r4", count * size / 4, 50),
                ]
                .concat();
                let arrays = [arrays[0].clone(), arrays[1].clone(), vec![7; count * size]];
                agree(&module(&body), &[0, 0], &arrays)
                    .unwrap_or_else(|why| panic!("{ty} {rows} x {cols}, {apart} apart: {why}"));
            }
        }
    }
}

/// Runs of one array, merged as arrays and in a space; with counts that are known, and that are not.
#[test]
fn neighbouring_lists() {
    let cases = [(128, 32), (1024, 64), (300, 16), (96, 32), (64, 32), (33, 64), (7, 1), (600, 128), (50, 5), (0, 4)];
    let mut words = Words(11);
    for (half, order) in [(false, true), (true, true), (false, false), (true, false)] {
        let (ty, _, _, size) = of(half);
        for (count, length) in cases {
            let lists = (0..count).step_by(length);
            let all: Vec<u32> =
                lists.flat_map(|at| records(&mut words, length.min(count - at), at as u32, half, order)).collect();
            let arrays = [bytes(&all, half), vec![0; 4], vec![7; 8 * count]];
            let what = format!("{count} {ty} by {length}, in order: {order}");
            let body = format!("  merge {ty} d t2[r2] {size}, runs t0[r2] {size} r0 of r1\n");
            agree(&module(&body), &[count as i64, length as i64], &arrays)
                .unwrap_or_else(|why| panic!("{what}: {why}"));
            if count == 0 {
                continue;
            }
            for known in [false, true] {
                let counts = match known {
                    true => format!("  r6: i64 = const {count}\n  r7: i64 = const {length}\n"),
                    // Bounds are known, numbers are not.
                    false => format!("  r8: i64 = const {count}\n  r6: i64 = min r0, r8\n  r7: i64 = add r1, r2\n"),
                };
                let body = [
                    copy("i32", "s0[r2", "t0[r2", 2 * count, 20),
                    counts,
                    format!("  merge {ty} d s0[r4] {size}, runs s0[r2] {size} r6 of r7\n"),
                    copy("i32", "t2[r2", "s0[r4", 2 * count, 30),
                ]
                .concat();
                agree(&module(&body), &[count as i64, length as i64], &arrays)
                    .unwrap_or_else(|why| panic!("{what}, known: {known}: {why}"));
            }
        }
    }
}

/// Lists in places of their own, of different lengths; records of one lie apart.
#[test]
fn lists_of_their_own() {
    let mut words = Words(13);
    for (half, order) in [(false, true), (true, true), (false, false)] {
        let (ty, _, fields, size) = of(half);
        for counts in [vec![40, 70], vec![5], vec![1, 0, 33], vec![300, 17, 0, 64], vec![0, 0], vec![64, 64, 64, 64]] {
            let total: usize = counts.iter().sum();
            let (mut all, mut at) = (Vec::new(), Vec::new());
            for (l, count) in counts.iter().enumerate() {
                at.push(all.len() * size);
                let list = records(&mut words, *count, 1000 * l as u32, half, order);
                // Fields of the second list are every second one.
                let step = 1 + usize::from(l == 1);
                all.extend(list.into_iter().flat_map(|w| [w, 77].into_iter().take(step)));
            }
            let arrays = [bytes(&all, half), vec![0; 4], vec![7; 8 * total]];
            for space in [false, true] {
                let mut body = String::new();
                if space && !all.is_empty() {
                    body += &copy(if half { "u16" } else { "i32" }, "s0[r2", "t0[r2", all.len(), 20);
                }
                let mut lists = String::new();
                for (l, count) in counts.iter().enumerate() {
                    let (offset, n, step) = (30 + 2 * l, 31 + 2 * l, size * (1 + usize::from(l == 1)));
                    body += &format!("  r{offset}: i64 = const {}\n  r{n}: i64 = const {count}\n", at[l]);
                    let from = if space { "s0" } else { "t0" };
                    lists += &format!(", list {from}[r{offset}] {step} r{n}");
                }
                body += &format!("  merge {ty} d t2[r2] {size}{lists}\n");
                assert_eq!(8 * total, size * fields * total);
                agree(&module(&body), &[0, 0], &arrays)
                    .unwrap_or_else(|why| panic!("{counts:?} {ty}, in order: {order}, space: {space}: {why}"));
            }
        }
    }
}

/// Two merges, of which the first records are read: by as many lanes as the launch says, and, if `more`, in other ways.
fn best_of(known: usize, more: &str) -> Module {
    let body = [
        copy("i32", "s0[r2", "t0[r2", 2 * known, 20),
        format!(
            "  r6: i64 = const {known}\n  r7: i64 = const 128\n  r8: i64 = const 512\n  \
             merge f32 d s0[r3] 4, runs s0[r2] 4 r6 of r7\n  merge f32 d s0[r4] 4, runs s0[r3] 4 r6 of r8\n"
        ),
        "  lanes r30: i64 in r0 {\n    r31: i32 = load i32 s0[r4, stride 8]\n    store i32 s0[r2, stride 4], r31\n  }\n"
            .into(),
        more.to_owned(),
        "  lanes r32: i64 in r0 {\n    r33: i32 = load i32 s0[r2, stride 4]\n    store i32 t2[r2, stride 4], r33\n  }\n"
            .into(),
    ]
    .concat();
    let module = module(&body);
    let launch = "launch \"l\" (r0: i64, r1: i64) {\n}";
    let bounded = format!(
        "launch \"l\" (r0: i64, r1: i64) {{\n  r2: i64 = const {known}\n  r3: bool = le r0, r2\n  check r3, 0 (r0)\n}}"
    );
    // Where the launch bounds it, more is known.
    let source = text::print(&module, false).replace(launch, &bounded).replacen("launch", "check 0\nlaunch", 1);
    text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"))
}

#[test]
fn first_records_of_merges() {
    let every = copy("i32", "t1[r2", "s0[r4", 2048, 40);
    let earlier = copy("i32", "t1[r2", "s0[r3", 2048, 40);
    let one = "  r40: i64 = const 65536\n  r41: i64 = const 8000\n  r42: i64 = add r40, r41\n  \
               r43: i32 = load i32 s0[r42]\n  store i32 t1[r2], r43\n";
    let mut words = Words(17);
    let known = 1024;
    for more in ["", &every, &earlier, one] {
        let module = best_of(known, more);
        for order in [true, false] {
            let lists: Vec<u32> =
                (0..known).step_by(128).flat_map(|at| records(&mut words, 128, at as u32, false, order)).collect();
            for k in [0, 1, 16, 130, 700, 1024] {
                let arrays = [bytes(&lists, false), vec![3; 8 * known], vec![7; 4 * known]];
                agree(&module, &[k, 0], &arrays).unwrap_or_else(|why| panic!("{k}, in order: {order}, {more}: {why}"));
            }
        }
    }
}
