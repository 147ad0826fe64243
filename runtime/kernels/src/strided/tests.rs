//! Moves against a plain loop.

use super::*;

/// A way to move elements, with its name.
type Way<const S: usize> = (&'static str, unsafe fn(Move<S>));

fn check<const S: usize>(rows: usize, cols: usize, turned: bool, slack: usize, non_temporal: bool) {
    shifted::<S>(rows, cols, turned, slack, non_temporal, 0);
}

/// The destination begins so many bytes behind a line.
fn shifted<const S: usize>(rows: usize, cols: usize, turned: bool, slack: usize, non_temporal: bool, shift: usize) {
    let of = |width: usize| width * S + slack;
    // Columns are neighbours in one of the two matrices, rows in the other.
    let (dst_line, src_line) = if turned { (of(rows), of(cols)) } else { (of(cols), of(rows)) };
    let (dst_lines, src_lines) = if turned { (cols, rows) } else { (rows, cols) };
    let src: Vec<u8> = (0..src_lines * src_line).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut dst = vec![0xee; dst_lines * dst_line + 2 * 64 + shift];
    let start = dst.as_ptr().align_offset(64) + shift;
    let step = |line: usize, neighbours: bool| if neighbours { S as isize } else { line as isize };
    let steps = Steps {
        dst_row: step(dst_line, turned),
        dst_col: step(dst_line, !turned),
        src_row: step(src_line, !turned),
        src_col: step(src_line, turned),
    };
    let mut want = dst.clone();
    for r in 0..rows as isize {
        for c in 0..cols as isize {
            let (to, from) = (r * steps.dst_row + c * steps.dst_col, r * steps.src_row + c * steps.src_col);
            let (to, from) = (start + to as usize, from as usize);
            want[to..to + S].copy_from_slice(&src[from..from + S]);
        }
    }
    let mut ways: Vec<Way<S>> = vec![("the machine's way", Move::run)];
    // Those of other machines, for words.
    if S == 4 && !turned {
        ways.push(("blocks", Move::by_blocks::<{ 256 / 4 * 256 }>));
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            ways.push(("eights", Move::by_eights));
        }
    }
    for (name, way) in ways {
        dst.fill(0xee);
        let all = Move::<S> {
            dst: dst[start..].as_mut_ptr(),
            src: src.as_ptr(),
            rows: rows as isize,
            cols: cols as isize,
            steps,
            non_temporal,
        };
        // SAFETY: both vectors hold all elements, and are apart.
        unsafe { way(all) };
        fence();
        assert!(
            dst == want,
            "{name}: {S} bytes, {rows} x {cols}, turned {turned}, slack {slack}, past {non_temporal}, {shift}"
        );
    }
}

#[test]
fn transposes() {
    for (rows, cols) in
        [(0, 4), (1, 1), (3, 100), (100, 3), (16, 16), (64, 64), (70, 33), (65, 130), (17, 80), (300, 129)]
    {
        for turned in [false, true] {
            for slack in [0, 5] {
                check::<1>(rows, cols, turned, slack, false);
                check::<2>(rows, cols, turned, slack, true);
                check::<4>(rows, cols, turned, slack, false);
                check::<4>(rows, cols, turned, slack, true);
                check::<8>(rows, cols, turned, slack, true);
            }
        }
    }
}

/// Rows of the destination that begin and end within lines, and rows that follow each other.
#[test]
fn past_the_caches_from_anywhere() {
    let sizes = [1, 3, 15, 16, 17, 40, 48, 63, 64, 65, 100, 130];
    for rows in sizes {
        for cols in sizes {
            for (slack, shift) in [(0, 0), (0, 4), (4, 60), (16, 32), (64, 0), (60, 0), (2, 8), (0, 2)] {
                shifted::<4>(rows, cols, false, slack, true, shift);
                shifted::<4>(rows, cols, true, slack, true, shift);
            }
            for shift in [0, 16, 24] {
                shifted::<1>(rows, cols, false, 16, true, shift);
                shifted::<2>(rows, cols, true, 16, true, shift);
                shifted::<8>(rows, cols, false, 0, true, shift);
            }
        }
    }
}

/// What is asked for ahead is what comes next.
#[test]
fn blocks_behind_one_another() {
    let data = [0u8; 64];
    let steps = Steps { dst_row: 400, src_row: 4, dst_col: 4, src_col: 1000 };
    let at =
        |src: *const u8| Move::<4> { dst: std::ptr::null_mut(), src, rows: 100, cols: 70, steps, non_temporal: true };
    let src = data.as_ptr();
    let first = at(src);
    first.next_src();
    let second = at(src.wrapping_add(400));
    let after = second.next_src();
    assert_eq!(after.addr() - src.addr(), 800);
    assert_eq!(second.ahead((0, 0), 64, after), 256);
    assert_eq!(second.ahead((64, 0), 64, after), 64_000 - 256);
    assert_eq!(second.ahead((0, 64), 64, after), 256);
    // The next move's first block, from the last one of this.
    assert_eq!(second.ahead((64, 64), 64, after), 400 - 64_000 - 256);
}

/// Large enough for the way past the cache.
#[test]
fn large_transposes() {
    check::<4>(1100, 1040, false, 0, false);
    check::<1>(2100, 2048, true, 0, false);
    check::<8>(70, 8192, true, 0, false);
}

/// Matrices that meet are moved row after row, as the loop over the rows says.
#[test]
fn rows_in_order() {
    let steps = Steps { dst_row: 10, src_row: 1, dst_col: 1, src_col: 10 };
    let mut data: Vec<u8> = (0..100).collect();
    let mut want = data.clone();
    // Row r of the result is column r of what the rows before have left.
    for r in 0..10 {
        for c in 0..10 {
            want[10 * r + c] = want[r + 10 * c];
        }
    }
    let at = data.as_mut_ptr();
    // SAFETY: all inside the 100 bytes.
    unsafe { Move::<1> { dst: at, src: at.cast_const(), rows: 10, cols: 10, steps, non_temporal: false }.run() };
    assert_eq!(data, want);
}
