//! Random layouts, small enough to enumerate.

use ptoc_layout::{Int, IntTuple, Layout, Points, Stride, Tiler, Tuple, Value};

/// splitmix64
pub struct Rng(pub u64);

impl Rng {
    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

fn tree(rng: &mut Rng, depth: u32, leaf: &mut impl FnMut(&mut Rng) -> i64) -> IntTuple {
    match rng.below(if depth == 0 { 2 } else { 4 }) {
        0 | 1 if depth < 2 => Tuple::Leaf(Int::Const(leaf(rng))),
        _ if depth == 0 => Tuple::Leaf(Int::Const(leaf(rng))),
        _ => Tuple::Node((0..1 + rng.below(3)).map(|_| tree(rng, depth - 1, leaf)).collect()),
    }
}

/// A shape of at most some hundred coordinates.
pub fn shape(rng: &mut Rng) -> IntTuple {
    loop {
        let s = tree(rng, 2, &mut |rng| rng.pick(&[1, 2, 2, 3, 4, 5, 6, 8]));
        if s.leaves().iter().filter_map(|n| n.as_const()).product::<i64>() <= 400 {
            return s;
        }
    }
}

/// Compact, its modes in random order.
pub fn bijection(rng: &mut Rng) -> Layout {
    let s = shape(rng);
    let extents: Vec<i64> = s.leaves().iter().filter_map(|n| n.as_const()).collect();
    let mut rest: Vec<usize> = (0..extents.len()).collect();
    let mut strides = vec![0; extents.len()];
    let mut next = 1;
    while !rest.is_empty() {
        let k = rest.remove(rng.below(rest.len() as u64) as usize);
        strides[k] = next;
        next *= extents[k];
    }
    let mut strides = strides.into_iter();
    let stride = s.map(&mut |_| Stride::from(strides.next().unwrap_or(0)));
    Layout::new(s, stride).expect("congruent")
}

/// Compact, with random strides, with gaps or with zeros; never with negative strides.
pub fn layout(rng: &mut Rng) -> Layout {
    let compact = bijection(rng);
    let kind = rng.below(4);
    let scale = rng.pick(&[1, 1, 2, 3]);
    let stride = compact.stride().map(&mut |d| match kind {
        0 => d.clone(),
        1 => d.times(&Int::Const(scale)).expect("small"),
        2 if rng.below(3) == 0 => Stride::from(0),
        2 => d.clone(),
        _ => Stride::from(rng.pick(&[0, 1, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24])),
    });
    Layout::new(compact.shape().clone(), stride).expect("congruent")
}

/// A tiler for a layout of this shape: of its whole or by mode, mostly of tiles that fit somehow, without stride 0.
pub fn tiler(rng: &mut Rng, shape: &IntTuple) -> Tiler {
    if let (Tuple::Node(modes), true) = (shape, rng.below(3) > 0) {
        let n = 1 + rng.below(modes.len() as u64) as usize;
        return Tiler::ByMode(modes.iter().take(n).map(|m| tiler(rng, m)).collect());
    }
    let n = rng.pick(&[1, 2, 2, 3, 4, 4, 5, 6, 8]);
    match rng.below(3) {
        0 => Tiler::Extent(Int::Const(n)),
        1 => Tiler::Layout(Layout::leaf(Int::Const(n), Stride::from(rng.pick(&[1, 1, 2, 3, 4])))),
        _ => {
            let (m, d) = (rng.pick(&[1, 2, 3, 4]), rng.pick(&[1, 2, 4]));
            let step = d * n * rng.pick(&[1, 1, 2]);
            let modes =
                vec![Layout::leaf(Int::Const(n), Stride::from(d)), Layout::leaf(Int::Const(m), Stride::from(step))];
            Tiler::Layout(Layout::of_modes(modes))
        }
    }
}

/// With the numbers that break arithmetic.
pub fn extreme(rng: &mut Rng) -> Layout {
    const NUMBERS: [i64; 12] = [0, 0, 1, 2, 3, 7, 64, 1 << 20, 1 << 40, (1 << 62) + 1, i64::MAX - 1, i64::MAX];
    let s = tree(rng, 2, &mut |rng| rng.pick(&NUMBERS));
    let d = s.map(&mut |_| {
        let n = rng.pick(&NUMBERS);
        Stride::from(if rng.below(4) == 0 { -n } else { n })
    });
    Layout::new(s, d).expect("congruent")
}

/// All values, in the order of the index.
pub fn offsets(a: &Layout) -> Vec<i64> {
    let points = Points::of(&Value::Layout(a.clone())).expect("numbers");
    (0..points.size()).map(|i| points.offset_at(i).expect("an offset")).collect()
}
