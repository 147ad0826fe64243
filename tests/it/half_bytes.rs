//! Half bytes in any order of a layout, at random: what is read is what the layout says, on the interpreter and in
//! machine code of every width, between pages that nobody may touch.

use crate::engine::{Built, Content, Noise, agree, build, difference, noise};
use ptoc_tensor::{DType, Tensor};

/// A bijection of 2, 4, .. 32 nibbles: extents of its modes, the first fastest, and their strides.
struct Order(Vec<(usize, usize)>);

impl Order {
    fn random(noise: &mut Noise) -> Order {
        let usual: [&[(usize, usize)]; 4] = [&[(8, 1)], &[(2, 4), (4, 1)], &[(4, 2), (2, 1)], &[(16, 2), (2, 1)]];
        if noise.below(2) == 0 {
            return Order(usual[noise.below(4) as usize].to_vec());
        }
        let mut extents = Vec::new();
        let mut left = 1 << (1 + noise.below(5));
        while left > 1 {
            let extent = (2 << noise.below(3)).min(left);
            extents.push(extent);
            left /= extent;
        }
        // Strides in an order of their own.
        let mut by_stride: Vec<usize> = (0..extents.len()).collect();
        (1..by_stride.len()).for_each(|n| by_stride.swap(n, noise.below(n as u64 + 1) as usize));
        let mut strides = vec![0; extents.len()];
        let mut stride = 1;
        for mode in by_stride {
            strides[mode] = stride;
            stride *= extents[mode];
        }
        Order(extents.into_iter().zip(strides).collect())
    }

    fn size(&self) -> usize {
        self.0.iter().map(|m| m.0).product()
    }

    fn text(&self) -> String {
        let list = |f: fn(&(usize, usize)) -> usize| match &self.0[..] {
            [one] => f(one).to_string(),
            modes => format!("({})", modes.iter().map(|m| f(m).to_string()).collect::<Vec<_>>().join(", ")),
        };
        format!("{}:{}", list(|m| m.0), list(|m| m.1))
    }

    /// The nibble of an element.
    fn place(&self, element: usize) -> usize {
        let mut rest = element % self.size();
        let inside: usize = self.0.iter().map(|&(n, d)| (rest % n * d, rest /= n).0).sum();
        element / self.size() * self.size() + inside
    }
}

struct Case {
    order: Order,
    signed: bool,
    tile: (usize, usize),
    rows: usize,
    cols: usize,
}

impl Case {
    fn random(seed: u64) -> Case {
        let mut noise = Noise::new(seed);
        let order = Order::random(&mut noise);
        let cols = order.size() * (1 + noise.below(256 / order.size() as u64) as usize);
        // Blocks are whole periods of the order.
        let width = (order.size() * [1, 2, 3, 4, 5, 8, 16][noise.below(7) as usize]).min(512);
        let tile = ([1, 3, 16, 32][noise.below(4) as usize], width);
        Case { order, signed: noise.below(3) == 0, tile, rows: 1 + noise.below(40) as usize, cols }
    }

    fn dtype(&self) -> DType {
        if self.signed { DType::I8 } else { DType::U8 }
    }

    /// The number of columns is known at compile time, or is not.
    fn text(&self, known: bool) -> String {
        let (wide, half) = if self.signed { ("i8", "i4") } else { ("u8", "u4") };
        let (order, (bn, bk), size) = (self.order.text(), self.tile, self.order.size());
        let h = if known { (self.cols / 2).to_string() } else { "H".to_owned() };
        format!(
            "kernel k(W: in {wide}[N, {h}], q: out {wide}[N, 2 * {h}])
    where 2 * {h} % {size} == 0
{{
    grid (n in tiles(N, {bn}), k in tiles(2 * {h}, {bk}));
    let logical = composition(recast<{half}>(W), <_, logical_product({order}, 2 * {h} / {size})>);
    TSTORE(q.tile(n, k), Vec(logical.tile(n, k)));
}}
"
        )
    }

    /// Half bytes that are computed with: less a number of the row, times one of the column, and the sums of rows.
    fn computed(&self, known: bool) -> String {
        let (wide, half) = if self.signed { ("i8", "i4") } else { ("u8", "u4") };
        let (order, bn, size) = (self.order.text(), self.tile.0, self.order.size());
        let h = if known { (self.cols / 2).to_string() } else { "H".to_owned() };
        format!(
            "kernel k(W: in {wide}[N, {h}], z: in f32[N], x: in f32[2 * {h}], q: out f32[N, 2 * {h}], s: out f32[N])
    where 2 * {h} % {size} == 0
{{
    grid (n in tiles(N, {bn}));
    let logical = composition(recast<{half}>(W), <_, logical_product({order}, 2 * {h} / {size})>);
    let less = Vec(col(z).tile(n, _));
    let acc = tile Vec<f32, n, 1>;
    acc = 0.0;
    for k in tiles(2 * {h}, 128) {{
        let w = (f32(Vec(logical.tile(n, k))) - less) * Vec(x.tile(k));
        TSTORE(q.tile(n, k), w);
        acc += rowsum(w);
    }}
    TSTORE(col(s).tile(n, _), acc);
}}
"
        )
    }

    fn compute(&self, built: &Built, seed: u64) -> Result<(), String> {
        let (rows, cols) = (self.rows, self.cols);
        let random = |shape: &[usize], n: u64| noise(DType::F32, shape, Content::Tame, seed + n);
        let zeros = |shape: &[usize]| Tensor::zeros(DType::F32, shape).expect("small");
        let bytes = noise(self.dtype(), &[rows, cols / 2], Content::Wild, seed);
        let tensors = [bytes, random(&[rows], 1), random(&[cols], 2), zeros(&[rows, cols]), zeros(&[rows])];
        let dims = [("N", rows as i64), ("H", cols as i64 / 2)];
        let found = agree(built, &dims, &tensors, &[1, 2])?.map_err(|(code, m)| format!("{code}: {m}"))?;
        let guarded = built.execute_guarded(&dims, &tensors, 1).map_err(|(code, m)| format!("{code}: {m}"))?;
        match found[3..].iter().zip(&guarded[3..]).find_map(|(a, b)| difference(a, b)) {
            Some(d) => Err(format!("between guard pages: {d}")),
            None => Ok(()),
        }
    }

    fn expected(&self, bytes: &Tensor) -> Tensor {
        let shape = [self.rows, self.cols];
        let mut out = Tensor::zeros(self.dtype(), &shape).expect("small");
        for row in 0..self.rows {
            for col in 0..self.cols {
                let nibble = self.order.place(col);
                let byte = bytes.get_bits(row * self.cols / 2 + nibble / 2) as u8;
                let half = if nibble % 2 == 1 { byte >> 4 } else { byte & 15 };
                let value = if self.signed && half >= 8 { half | 0xf0 } else { half };
                out.set_bits(row * self.cols + col, u64::from(value));
            }
        }
        out
    }

    fn run(&self, built: &Built, seed: u64) -> Result<(), String> {
        let bytes = noise(self.dtype(), &[self.rows, self.cols / 2], Content::Wild, seed);
        let tensors = [bytes, Tensor::zeros(self.dtype(), &[self.rows, self.cols]).expect("small")];
        let dims = [("N", self.rows as i64), ("H", self.cols as i64 / 2)];
        let found = agree(built, &dims, &tensors, &[1, 2])?.map_err(|(code, m)| format!("{code}: {m}"))?;
        if let Some(d) = difference(&self.expected(&tensors[0]), &found[1]) {
            return Err(format!("not what the layout says: {d}"));
        }
        let guarded = built.execute_guarded(&dims, &tensors, 1).map_err(|(code, m)| format!("{code}: {m}"))?;
        match difference(&found[1], &guarded[1]) {
            Some(d) => Err(format!("between guard pages: {d}")),
            None => Ok(()),
        }
    }
}

#[test]
fn half_bytes_in_any_order_are_what_the_layout_says() {
    for seed in 0..ptoc_tests_budget::cases(24, 400) {
        let case = Case::random(seed);
        for known in [true, false] {
            let text = case.text(known);
            let built = build(&text, "a2a3", &[], &[]);
            let built = built.unwrap_or_else(|refused| panic!("seed {seed}\n{text}\n{}", refused.text));
            if let Err(why) = case.run(&built, seed) {
                panic!("seed {seed}, {} x {}: {why}\n{text}", case.rows, case.cols);
            }
        }
    }
}

/// Half bytes that only chains of element-wise instructions read are lanes of their words.
#[test]
fn half_bytes_are_computed_with_as_the_interpreter_does() {
    for seed in 0..ptoc_tests_budget::cases(16, 200) {
        let case = Case::random(seed);
        for known in [true, false] {
            let text = case.computed(known);
            let built = build(&text, "a2a3", &[], &[]);
            let built = built.unwrap_or_else(|refused| panic!("seed {seed}\n{text}\n{}", refused.text));
            if let Err(why) = case.compute(&built, seed) {
                panic!("seed {seed}, {} x {}: {why}\n{text}", case.rows, case.cols);
            }
        }
    }
}
