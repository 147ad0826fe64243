use super::*;

/// Elements of some type with gaps, in a buffer whose other bytes may not change.
#[derive(Clone)]
struct Held {
    bytes: Vec<u8>,
    row: isize,
    col: isize,
    ty: DType,
}

impl Held {
    fn new(ty: DType, rows: usize, cols: usize, order: u32, seed: u64) -> Held {
        let size = ty.size();
        let (row, col) = match order % 3 {
            0 => ((cols + 3) * size, size),
            1 => (size, (rows + 1) * size),
            _ => (2 * (cols + 1) * size, 2 * size),
        };
        let mut state = seed | 1;
        let mut bytes = Vec::new();
        for _ in 0..(row * rows + col * cols) / size + 2 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = ((state >> 40) % 2000) as f32 / 61.0 - 16.0;
            match ty {
                DType::F16 => bytes.extend(half::f16::from_f32(x).to_bits().to_le_bytes()),
                DType::BF16 => bytes.extend(half::bf16::from_f32(x).to_bits().to_le_bytes()),
                DType::F32 => bytes.extend(x.to_le_bytes()),
                _ => bytes.extend(&(state >> 13).to_le_bytes()[..size]),
            }
        }
        Held { bytes, row: row as isize, col: col as isize, ty }
    }

    fn matrix(&self) -> Matrix<*const u8> {
        Matrix { at: self.bytes.as_ptr(), row: self.row, col: self.col }
    }
}

/// Room for panels, aligned.
fn room() -> Vec<[u64; 8]> {
    vec![[u64::MAX; 8]; scratch() as usize / 64 + 2]
}

/// One product by every version, and by the definition.
fn check(shape: (usize, usize, usize), ab: DType, orders: [u32; 4], start: u32, seed: u64) {
    let (m, n, k) = shape;
    let wide = if matches!(ab, DType::F32 | DType::F16 | DType::BF16) { DType::F32 } else { DType::I32 };
    let (a, b) = (Held::new(ab, m, k, orders[0], seed), Held::new(ab, k, n, orders[1], seed ^ 77));
    let d = Held::new(wide, m, n, orders[2], seed ^ 99);
    let from = Held::new(wide, m, n, orders[3], seed ^ 55);
    let mut room = room();
    let scratch = room_of(&mut room);
    let run = |launch_invariant: (bool, bool), way: &mut dyn FnMut(Job)| {
        let mut out = d.clone();
        let at = out.bytes.as_mut_ptr();
        let held = Matrix { at: at.cast_const(), row: d.row, col: d.col };
        let start = match start {
            0 => Matrix { at: std::ptr::null(), row: 0, col: 0 },
            1 => held,
            2 => Matrix { row: 0, ..from.matrix() },
            _ => from.matrix(),
        };
        let d = Matrix { at, row: d.row, col: d.col };
        way(Job {
            m,
            n,
            k,
            part_of: [m, n, k],
            d,
            start,
            a: a.matrix(),
            b: b.matrix(),
            ab,
            d_ty: wide,
            start_ty: wide,
            exact: true,
            launch_invariant,
            scratch,
        });
        out.bytes
    };
    // SAFETY: the buffers hold the matrices.
    let want = run((false, false), &mut |job| unsafe { plain::product(&job) });
    for version in versions_of(ab) {
        room_of(&mut room);
        // What rests is packed by the first product and found by the second.
        for launch_invariant in [(true, true), (true, true), (false, false)] {
            let got = run(launch_invariant, &mut |job| {
                version(job);
            });
            assert_eq!(room.last().map(|r| r[7]), Some(u64::MAX), "beyond the panels");
            assert!(got == want, "{shape:?} of {}, orders {orders:?}, start {start}", a.ty.name());
        }
    }
}

fn room_of(room: &mut [[u64; 8]]) -> *mut u8 {
    let at = room.as_mut_ptr().cast::<u8>();
    let at = at.wrapping_add(at.align_offset(64));
    // SAFETY: it is the first word of the room.
    unsafe { at.cast::<u64>().write(0) };
    at
}

type Way = Box<dyn Fn(Job)>;

/// Those of a machine with all instructions, and of one with fewer.
fn versions_of(ab: DType) -> Vec<Way> {
    let rows = |job: Job| {
        let job = if job.d.col != 4 && job.d.row == 4 { job.transposed() } else { job };
        // SAFETY: the buffers hold the matrices.
        (job.d.col == 4).then(|| unsafe { plain::with_rows_of_start(job) })
    };
    let mut out: Vec<Way> = Vec::new();
    let mut way = |f: Box<dyn Fn(&Job)>| {
        out.push(Box::new(move |job| match rows(job) {
            Some(job) => f(&job),
            // SAFETY: the buffers hold the matrices.
            None => unsafe { plain::product(&job) },
        }));
    };
    // SAFETY: the same.
    unsafe {
        match ab {
            DType::I8 => {
                #[cfg(target_arch = "x86_64")]
                if ptoc_exec::matrix::unit().i8 {
                    way(Box::new(|job| {
                        if job.k > 0 {
                            amx_tiles::product(job, amx::I8);
                        } else {
                            plain::product(job);
                        }
                    }));
                }
                if let Some(v) = micro_kernel::of_bytes() {
                    way(Box::new(move |job| i8_vnni::product(job, v)));
                }
                if let Some(v) = micro_kernel::of_pairs() {
                    way(Box::new(move |job| i8_pairs::product(job, v)));
                }
            }
            DType::I32 => {}
            _ => {
                if let Some(v) = micro_kernel::of_dots().filter(|_| ab == DType::BF16) {
                    way(Box::new(move |job| assert!(bf16_dot::product(job, v), "numbers of the tests are large")));
                }
                for v in micro_kernel::versions() {
                    let widen = v.widen.expect("versions of floats widen");
                    way(Box::new(move |job| floats::product(job, v, widen)));
                    // Whatever its size.
                    #[cfg(target_arch = "x86_64")]
                    if v.lanes == 8 && ab == DType::F32 {
                        way(Box::new(move |job| {
                            if job.a.col == 4 && job.n > v.lanes && job.k > 0 {
                                cache_blocking::product(job, &floats::Floats { version: v, widen });
                            } else {
                                plain::product(job);
                            }
                        }));
                    }
                }
            }
        }
    }
    // SAFETY: the same.
    out.push(Box::new(|job| unsafe { whole(job) }));
    out
}

/// By the routine.
unsafe fn whole(j: Job) {
    let types = types(j.ab, j.d_ty, j.start_ty, Units::Exact, j.launch_invariant);
    let (d, s, a, b) = (j.d, j.start, j.a, j.b);
    // SAFETY: the caller's promise.
    unsafe {
        let [all_m, all_n, all_k] = j.part_of.map(|size| size as i64);
        product(
            j.m as i64,
            j.n as i64,
            j.k as i64,
            d.at,
            s.at,
            a.at,
            b.at,
            d.row as i64,
            d.col as i64,
            s.row as i64,
            s.col as i64,
            a.row as i64,
            a.col as i64,
            b.row as i64,
            b.col as i64,
            types,
            j.scratch,
            all_m,
            all_n,
            all_k,
        );
    }
}

const TYPES: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::I8, DType::I32];

#[test]
fn small_shapes_in_every_order() {
    let mut seed = 1;
    for (m, n, k) in [(1, 1, 1), (5, 3, 0), (7, 9, 5), (8, 16, 3), (9, 31, 4), (15, 49, 2), (4, 64, 7), (3, 100, 3)] {
        for ty in TYPES {
            for orders in 0..81 {
                seed += 1;
                let orders = [orders % 3, orders / 3 % 3, orders / 9 % 3, orders / 27];
                check((m, n, k), ty, orders, seed as u32 % 4, seed);
            }
        }
    }
}

#[test]
fn packed_shapes() {
    for (n, shape) in
        [(70, 200, 33), (130, 65, 520), (21, 700, 100), (33, 17, 1030), (64, 64, 64)].into_iter().enumerate()
    {
        for (t, ty) in TYPES.into_iter().enumerate() {
            let order = (n + t) as u32;
            check(shape, ty, [order % 3, order / 2 % 3, order / 3 % 2, 0], order % 4, 7 + n as u64);
            check(shape, ty, [0, 0, 0, 0], (order + 1) % 4, 9 + n as u64);
        }
    }
}

/// Several blocks of rows, slabs of columns and stretches where both operands are packed.
#[cfg(target_arch = "x86_64")]
#[test]
fn slabs_of_panels() {
    let blocks = cache_blocking::block_rows(6, 512) + 19;
    let columns = panels::room_bytes() / 4 / 512 + 30;
    for (shape, start) in [((blocks, 40, 512), 0), ((blocks, 17, 1023), 1), ((14, columns, 512), 3), ((29, 24, 300), 2)]
    {
        check(shape, DType::F32, [0, 0, 0, 0], start, 21);
        check(shape, DType::F32, [0, 1, 0, 0], start, 22);
    }
}

/// One launch whose products take both ways to pack: they find each other's panels.
#[cfg(target_arch = "x86_64")]
#[test]
fn slabs_and_panels_share() {
    let Some(version) = micro_kernel::versions().into_iter().find(|v| v.lanes == 8) else { return };
    let widen = version.widen.expect("versions of floats widen");
    let (m, n, k) = (23, 90, 512);
    let [a, b] = [(m, k, 3), (k, n, 4)].map(|(rows, columns, seed)| Held::new(DType::F32, rows, columns, 0, seed));
    let mut room = room();
    let scratch = room_of(&mut room);
    let run = |launch_invariant: bool, way: &dyn Fn(&Job)| {
        let mut d = vec![0f32; m * n];
        way(&Job {
            m,
            n,
            k,
            part_of: [m, n, k],
            d: Matrix { at: d.as_mut_ptr().cast(), row: 4 * n as isize, col: 4 },
            start: Matrix { at: std::ptr::null(), row: 0, col: 0 },
            a: a.matrix(),
            b: b.matrix(),
            ab: DType::F32,
            d_ty: DType::F32,
            start_ty: DType::F32,
            exact: true,
            launch_invariant: (launch_invariant, launch_invariant),
            scratch,
        });
        d.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let way = floats::Floats { version, widen };
    // SAFETY: the buffers hold the matrices.
    unsafe {
        let want = run(false, &|job| plain::product(job));
        for (number, launch_invariant) in [true, true, false, true].into_iter().enumerate() {
            assert!(run(launch_invariant, &|job| cache_blocking::product(job, &way)) == want, "slabs, {number}");
            assert!(run(launch_invariant, &|job| panels::packed(job, &way)) == want, "panels, {number}");
            assert!(run(launch_invariant, &|job| skinny::product(job, version, widen)) == want, "streams, {number}");
        }
    }
}

/// Few rows, b too large to stay in the cache.
#[test]
fn narrow_shapes() {
    // In rows of 1024 columns, three of which are between them, as many bytes apart as a set of the cache is from
    // itself.
    for (m, n, k) in [
        (1, 700, 90),
        (8, 300, 200),
        (13, 130, 300),
        (19, 64, 600),
        (7, 1021, 41),
        (2, 5, 7000),
        (3, 413, 99),
        (6, 515, 59),
    ] {
        check((m, n, k), DType::F32, [0, 0, 0, 0], 0, 3);
        check((m, n, k), DType::F32, [2, 0, 0, 0], 3, 4);
        check((m, n, k), DType::F32, [1, 0, 0, 0], 2, 5);
        for (n_of, ty) in [DType::F16, DType::BF16].into_iter().enumerate() {
            check((m, n, k), ty, [n_of as u32, 0, 0, 0], n_of as u32, 6);
            check((m, n, k), ty, [2, 0, 0, 0], 3 - n_of as u32, 7);
        }
    }
    // Blocks of every height, with and without a rest.
    for m in 1..20 {
        check((m, 15 + m, 17 + m), DType::F32, [0, 0, 0, 0], m as u32 % 4, 10);
    }
    // More sums than stay in the second-level cache.
    let n = |m: usize| cache::second_level() / 2 / 4 / m + 30;
    check((19, n(19), 20), DType::F32, [0, 0, 0, 0], 1, 6);
    check((10, n(10), 50), DType::BF16, [0, 0, 0, 0], 0, 9);
    // Halves: every height of the blocks that read them, rows a multiple of 4096 bytes apart, and both of the above.
    for (m, n, k) in [(4, 413, 99), (5, 700, 90), (6, 1021, 41), (2, 2045, 41), (6, 2045, 41), (6, n(6), 20)] {
        for ty in [DType::F16, DType::BF16] {
            check((m, n, k), ty, [0, 0, 0, 0], 1, 8);
        }
    }
}

#[test]
fn random_shapes() {
    let mut state = 12345u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..60 {
        let shape = (1 + next(40) as usize, 1 + next(150) as usize, next(80) as usize);
        let orders = [next(3) as u32, next(3) as u32, next(3) as u32, next(3) as u32];
        check(shape, TYPES[next(5) as usize], orders, next(4) as u32, next(1 << 30));
    }
}

/// Factors whose products come close to what the machine's dot products take for zero, and below.
#[test]
fn small_bf16() {
    let mut state = 99u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (m, n, k) = (21, 33, 7);
    let mut room = room();
    let scratch = room_of(&mut room);
    let mut by_dots = 0;
    for least in (0..90).chain(58..80) {
        let mut halves = |count: usize| -> Vec<u16> {
            (0..count).map(|_| ((next(2) << 15) | (least + next(3)) << 7 | next(128)) as u16).collect()
        };
        let (a, b) = (halves(m * k), halves(k * n));
        // Starts cancel in the first steps: products of the same magnitude.
        let starts: Vec<f32> = (0..m * n)
            .map(|at| match at % 3 {
                0 => 0.0,
                1 => -(half::bf16::from_bits(a[at / n * k]).to_f32() * half::bf16::from_bits(b[at % n]).to_f32()),
                _ => f32::from_bits((24 << 23) + next(1 << 24) as u32),
            })
            .collect();
        for started in [false, true] {
            let run = |way: &dyn Fn(Job)| {
                let mut d = vec![7.0f32; m * n];
                let start = if started { starts.as_ptr().cast() } else { std::ptr::null() };
                way(Job {
                    m,
                    n,
                    k,
                    part_of: [m, n, k],
                    d: Matrix { at: d.as_mut_ptr().cast(), row: 4 * n as isize, col: 4 },
                    start: Matrix { at: start, row: 4 * n as isize, col: 4 },
                    a: Matrix { at: a.as_ptr().cast(), row: 2 * k as isize, col: 2 },
                    b: Matrix { at: b.as_ptr().cast(), row: 2 * n as isize, col: 2 },
                    ab: DType::BF16,
                    d_ty: DType::F32,
                    start_ty: DType::F32,
                    exact: true,
                    launch_invariant: (false, false),
                    scratch,
                });
                d.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
            };
            // SAFETY: the buffers hold the matrices.
            unsafe {
                let want = run(&|job| plain::product(&job));
                assert!(run(&|job| whole(job)) == want, "exponents from {least}, started: {started}");
                if let Some(v) = micro_kernel::of_dots() {
                    let taken = std::cell::Cell::new(false);
                    let got = run(&|job| taken.set(bf16_dot::product(&job, v)));
                    assert!(!taken.get() || got == want, "exponents from {least}, started: {started}");
                    by_dots += usize::from(taken.get());
                }
            }
        }
    }
    assert!(micro_kernel::of_dots().is_none() || by_dots > 20, "{by_dots} products by dots");
}

/// The sum of some steps as the machine's matrix unit rounds it: see `amx`.
#[cfg(target_arch = "x86_64")]
fn as_the_unit_rounds(start: f32, factors: &[(f32, f32)], ty: DType) -> f32 {
    let upper = |x: f32| f32::from_bits(x.to_bits() & 0xffff_0000);
    let digits: &[[bool; 2]] = match ty {
        DType::F16 => &[[true, true], [true, false], [false, false], [false, true]],
        _ => &[[true, true]],
    };
    let digits_of = |x: f32, up: bool| normal(if up { upper(x) } else { x - upper(x) });
    factors.chunks(32).fold(start, |sum, group| {
        digits.iter().fold(sum, |sum, up| {
            let half = |odd: usize| {
                let steps = group.iter().skip(odd).step_by(2);
                steps.fold(0.0f32, |sum, (a, b)| fused(digits_of(*a, up[0]), digits_of(*b, up[1]), sum))
            };
            normal(normal(sum) + normal(half(0) + half(1)))
        })
    })
}

/// Zero of its sign for what is below 2^-126.
#[cfg(target_arch = "x86_64")]
fn normal(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0f32.copysign(x) } else { x }
}

/// A fused multiply-add that gives no number below 2^-126: what is so before it is rounded to the digits there are
/// below is zero, also where these make it 2^-126.
#[cfg(target_arch = "x86_64")]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    const UP: f32 = (1u64 << 62) as f32;
    let sum = a.mul_add(b, c);
    let rounded_up = sum.abs() == f32::MIN_POSITIVE && (a * UP).mul_add(b, c * UP).abs() < f32::MIN_POSITIVE * UP;
    if rounded_up { 0.0f32.copysign(sum) } else { normal(sum) }
}

/// bf16 of any bits on the matrix unit, and sums that begin with any: small numbers, infinite ones and NaN too.
#[cfg(target_arch = "x86_64")]
#[test]
fn any_bits_on_the_matrix_unit() {
    if !ptoc_exec::matrix::unit().bf16 {
        return;
    }
    let mut room = room();
    let scratch = room_of(&mut room);
    let (m, cols, k) = (64, 64, 64);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |limit: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as u32) % limit
    };
    // Exponents of factors from .. to, and of the start: all; products near 2^-126; sums that cancel to it.
    for (from, to, start) in [(0, 255, 255), (0, 70, 24), (60, 67, 8)].repeat(8) {
        let sign = |next: &mut dyn FnMut(u32) -> u32| next(2) << 31;
        let mut half = |count: usize| -> Vec<u16> {
            let one =
                |next: &mut dyn FnMut(u32) -> u32| sign(next) | (from + next(to - from + 1)) << 23 | next(128) << 16;
            (0..count).map(|_| (one(&mut next) >> 16) as u16).collect()
        };
        let (a, b) = (half(m * k), half(k * cols));
        let starts: Vec<f32> =
            (0..m * cols).map(|_| f32::from_bits(sign(&mut next) | next(start + 1) << 23 | next(1 << 23))).collect();
        let mut d = vec![0f32; m * cols];
        let words = 4 * cols as isize;
        let job = Job {
            m,
            n: cols,
            k,
            part_of: [m, cols, k],
            d: Matrix { at: d.as_mut_ptr().cast(), row: words, col: 4 },
            start: Matrix { at: starts.as_ptr().cast(), row: words, col: 4 },
            a: Matrix { at: a.as_ptr().cast(), row: 2 * k as isize, col: 2 },
            b: Matrix { at: b.as_ptr().cast(), row: 2 * cols as isize, col: 2 },
            ab: DType::BF16,
            d_ty: DType::F32,
            start_ty: DType::F32,
            exact: false,
            launch_invariant: (false, false),
            scratch,
        };
        // SAFETY: the buffers hold the matrices.
        unsafe { amx_tiles::product(&job, amx::BF16) };
        let wide = |x: u16| f32::from_bits(u32::from(x) << 16);
        for (at, got) in d.iter().enumerate() {
            let (i, j) = (at / cols, at % cols);
            let factors: Vec<(f32, f32)> = (0..k).map(|p| (wide(a[i * k + p]), wide(b[p * cols + j]))).collect();
            let want = as_the_unit_rounds(starts[at], &factors, DType::BF16);
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "({i}, {j}) of {from}..{to}: {got:e}, not {want:e}");
        }
    }
}

/// Halves on the matrix unit: the rounding that its manual describes, and the bound that the documentation states.
#[cfg(target_arch = "x86_64")]
#[test]
fn halves_on_the_matrix_unit() {
    if !ptoc_exec::matrix::unit().bf16 {
        return;
    }
    let mut room = room();
    let scratch = room_of(&mut room);
    let shapes =
        [(16, 32, 32), (8, 16, 64), (33, 50, 97), (47, 65, 520), (64, 700, 33), (20, 17, 1030), (40, 300, 1100)];
    for (n, (m, cols, k)) in shapes.into_iter().enumerate() {
        for orders in 0..9 {
            let (ab, way, parts) = match (n + orders as usize) % 2 {
                0 => (DType::BF16, amx::BF16, 1),
                _ => (DType::F16, amx::F16, 4),
            };
            let seed = (10 * n + orders as usize) as u64;
            let (a, b) = (Held::new(ab, m, k, orders % 3, seed), Held::new(ab, k, cols, orders / 3, seed ^ 77));
            let from = Held::new(DType::F32, m, cols, 0, seed ^ 55);
            let started = orders % 2 == 1;
            let mut d = vec![0f32; m * cols];
            let none = Matrix { at: std::ptr::null(), row: 0, col: 0 };
            let start = if started { from.matrix() } else { none };
            let to = Matrix { at: d.as_mut_ptr().cast(), row: 4 * cols as isize, col: 4 };
            let (a, b, ty) = (a.matrix(), b.matrix(), DType::F32);
            // SAFETY: the buffers hold the matrices.
            unsafe {
                let job = Job {
                    m,
                    n: cols,
                    k,
                    part_of: [m, cols, k],
                    d: to,
                    start,
                    a,
                    b,
                    ab,
                    d_ty: ty,
                    start_ty: ty,
                    exact: false,
                    launch_invariant: (false, false),
                    scratch,
                };
                amx_tiles::product(&job, way);
                assert_eq!(room.last().map(|r| r[7]), Some(u64::MAX), "beyond the panels");
                let float = |m: &Matrix<*const u8>, i, j, ty| plain::float(ty, plain::at(m, i, j));
                // All of small results, some of large ones.
                let (every, offset) = ((m * cols * k / 20_000).max(1), orders as usize);
                for at in (offset % every..m * cols).step_by(every) {
                    let (i, j) = (at / cols, at % cols);
                    let start = if started { float(&start, i, j, ty) } else { 0.0 };
                    let factors: Vec<(f32, f32)> = (0..k).map(|p| (float(&a, i, p, ab), float(&b, p, j, ab))).collect();
                    let got = d[at];
                    assert_eq!(got, as_the_unit_rounds(start, &factors, ab), "{m} x {cols} x {k}, ({i}, {j})");
                    let wide = |x: f32| f64::from(x);
                    let sum = wide(start) + factors.iter().map(|&(a, b)| wide(a) * wide(b)).sum::<f64>();
                    let size = wide(start.abs()) + factors.iter().map(|&(a, b)| (wide(a) * wide(b)).abs()).sum::<f64>();
                    let roundings = (parts * k.div_ceil(32) + 16) as f64;
                    assert!((wide(got) - sum).abs() <= roundings * 2f64.powi(-24) * 1.001 * size);
                }
            }
        }
    }
}

/// f16 that are no numbers are not taken apart: elements of their rows and columns are computed step by step, all
/// others have the bits that they have without them. A product may begin at its own results.
#[cfg(target_arch = "x86_64")]
#[test]
fn infinite_f16() {
    let (m, n, k) = (80, 96, 80);
    let mut room = room();
    let scratch = room_of(&mut room);
    let [a, b] = [(m, k, 3), (k, n, 5)].map(|(rows, cols, seed)| Held::new(DType::F16, rows, cols, 0, seed));
    let starts = Held::new(DType::F32, m, n, 0, 7);
    let put = |held: &Held, (row, col): (usize, usize), bits: u16| {
        let (mut held, at) = (held.clone(), row * held.row as usize + col * held.col as usize);
        held.bytes[at..at + 2].copy_from_slice(&bits.to_le_bytes());
        held
    };
    let run = |a: &Held, b: &Held, exact: bool| {
        let mut d = starts.clone();
        let to = Matrix { at: d.bytes.as_mut_ptr(), row: d.row, col: d.col };
        let job = Job {
            m,
            n,
            k,
            part_of: [m, n, k],
            d: to,
            start: Matrix { at: to.at.cast_const(), row: d.row, col: d.col },
            a: a.matrix(),
            b: b.matrix(),
            ab: DType::F16,
            d_ty: DType::F32,
            start_ty: DType::F32,
            exact,
            launch_invariant: (false, false),
            scratch,
        };
        // SAFETY: the buffers hold the matrices.
        unsafe {
            if !fast(job) {
                plain::product(&job);
            }
        }
        let element = |at: usize| plain::at(&d.matrix(), at / n, at % n);
        // SAFETY: the buffer holds the matrix.
        (0..m * n).map(|at| unsafe { plain::float(DType::F32, element(at)) }).collect::<Vec<f32>>()
    };
    let finite = run(&a, &b, false);
    for bits in [0x7c00, 0xfc00, 0x7e00u16] {
        let rows = put(&put(&put(&a, (0, 77), bits), (41, 3), bits), (42, 0), bits);
        let columns = put(&put(&b, (79, 95), bits), (7, 13), bits);
        for (a, b, rows, columns) in
            [(&rows, &b, true, false), (&a, &columns, false, true), (&rows, &columns, true, true)]
        {
            let (got, exact) = (run(a, b, false), run(a, b, true));
            for (at, got) in got.into_iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let step_by_step = rows && [0, 41, 42].contains(&i) || columns && [13, 95].contains(&j);
                let want = if step_by_step { exact[at] } else { finite[at] };
                let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(same, "{bits:x}, ({i}, {j}): {got} and {want}");
            }
        }
    }
}

/// A product that is cut into parts, in rows and columns, down to single ones, and between steps of 32, has the bits of
/// the whole.
#[test]
fn parts_round_as_the_whole() {
    let mut room = room();
    let scratch = room_of(&mut room);
    for (ab, (m, n, k)) in [
        (DType::BF16, (65, 65, 65)),
        (DType::BF16, (17, 129, 33)),
        (DType::BF16, (9, 40, 100)),
        (DType::F16, (65, 129, 97)),
        (DType::F16, (128, 70, 64)),
        (DType::F16, (40, 40, 40)),
    ] {
        let (a, b) = (Held::new(ab, m, k, 0, 3), Held::new(ab, k, n, 0, 5));
        let run = |rows: &[usize], columns: &[usize], steps: &[usize]| {
            let mut d = vec![0f32; m * n];
            let to = Matrix { at: d.as_mut_ptr().cast::<u8>(), row: 4 * n as isize, col: 4 };
            let held = Matrix { at: to.at.cast_const(), row: to.row, col: to.col };
            let job = Job {
                m,
                n,
                k,
                part_of: [m, n, k],
                d: to,
                start: held,
                a: a.matrix(),
                b: b.matrix(),
                ab,
                d_ty: DType::F32,
                start_ty: DType::F32,
                exact: false,
                launch_invariant: (false, false),
                scratch,
            };
            for p in steps.windows(2) {
                for i in rows.windows(2) {
                    for j in columns.windows(2) {
                        let part = job.part((i[0], i[1] - i[0]), (j[0], j[1] - j[0]));
                        let (a, b) = (panels::shifted(part.a, 0, p[0]), panels::shifted(part.b, p[0], 0));
                        let part = Job { k: p[1] - p[0], a, b, ..part };
                        // SAFETY: the buffers hold the matrices.
                        unsafe {
                            if !fast(part) {
                                plain::product(&part);
                            }
                        }
                    }
                }
            }
            d.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        let whole = run(&[0, m], &[0, n], &[0, k]);
        assert_eq!(run(&[0, 8, m], &[0, 32, n], &[0, k]), whole, "{m} x {n} x {k}, four parts");
        assert_eq!(run(&[0, 1, m - 1, m], &[0, 1, n], &[0, k]), whole, "{m} x {n} x {k}, single rows");
        assert_eq!(run(&[0, m], &[0, n - 1, n], &[0, 32, k]), whole, "{m} x {n} x {k}, parts of k");
    }
}
