//! What a launch passes to products on the tensor cores, as C: numbers, and the tensor maps of operands.

use ptoc_gpu::{Abi, GemmAbi, HALVES, Major, OperandSide};
use ptoc_opt::fragments::PART;
use ptoc_opt::matrix_unit::{Extent, Number};
use std::fmt::Write as _;

/// The function that makes tensor maps of a product's operands.
const OPERAND: &str = include_str!("operand.c");

/// The function that makes a tensor map.
const MAP: &str = include_str!("maps.c");

/// `NAME_maps`, which writes the numbers behind those of every launch, and the maps behind each other.
pub(super) fn of(abi: &Abi) -> String {
    let mut body = String::new();
    let mut n = 0;
    if let Some(gemm) = &abi.gemm {
        product(&mut body, gemm);
        n = 2;
    }
    let mut told = abi.numbers_len() - abi.told().count();
    for array in &abi.arrays {
        let (pitch, total, tensor) = (number(&array.pitch), number(&array.total), array.tensor);
        let mut base = format!("tensors[{tensor}]");
        // Elements of a row, then halves of it, which is what the map counts.
        let halves = |n: &str| match array.element {
            1 => format!("({n}) / 2"),
            2 => n.to_owned(),
            bytes => format!("({n}) * {}", bytes / 2),
        };
        let _ = write!(
            body,
            "    pitch = {pitch} < 1 ? 1 : {pitch};\n    rows = {total} / pitch < 1 ? 1 : {total} / pitch;\n",
        );
        if array.told {
            let _ = write!(
                body,
                "    words[{told}] = {base} % 16 == 0 && pitch * {} % 16 == 0 && {pitch} == pitch && \
                 {total} >= pitch && {} < (INT64_C(1) << 31) && rows < (INT64_C(1) << 31);\n    pitch = {};\n    \
                 if (!words[{told}]) pitch = {PART}, rows = 1;\n",
                array.element,
                halves("pitch"),
                halves("pitch")
            );
            base = format!("{base} / 16 * 16");
            told += 1;
        } else {
            let _ = writeln!(body, "    pitch = {};", halves("pitch"));
        }
        let _ = write!(
            body,
            "    if (pitch < 8) pitch = 8;\n    \
             result = NAME_map(maps + {}, 1, {base}, (uint64_t)pitch, (uint64_t)rows, 2 * (uint64_t)pitch, {}, \
             {}, 0, 0, 0);\n    if (result) return result;\n",
            128 * n,
            array.width,
            array.lines
        );
        n += 1;
    }
    let helpers = match (&abi.gemm, n) {
        (_, 0) => String::new(),
        (Some(_), _) => MAP.to_owned() + &OPERAND.replace("@HALVES@", &HALVES.to_string()),
        (None, _) => MAP.to_owned(),
    };
    let locals = match (n, abi.arrays.is_empty()) {
        (0, _) => "",
        (_, true) => "    int result;\n",
        (_, false) => "    int result;\n    int64_t pitch, rows;\n",
    };
    let unused = ["tensors", "params", "extents", "words", "maps"].map(|p| format!("    (void){p};\n")).concat();
    format!(
        "{helpers}static int NAME_maps(const uint64_t *tensors, const int64_t *params, const int64_t *extents, \
         uint64_t *words,\n                     unsigned char *maps) {{\n{locals}{unused}{body}    return 0;\n}}\n\n"
    )
}

/// How many maps there are.
pub(super) fn count(abi: &Abi) -> usize {
    abi.arrays.len() + if abi.gemm.is_some() { 2 } else { 0 }
}

/// The numbers of a product, and the maps of its operands.
fn product(body: &mut String, gemm: &GemmAbi) {
    let extent = |n: usize| match &gemm.extents[n] {
        Extent::Whole(of) => number(of),
        Extent::Tiles => {
            let (d, tile) = (gemm.grid[n], gemm.tile[n]);
            format!("(extents[{d}] > INT64_MAX / {tile} ? INT64_MAX : extents[{d}] * {tile})")
        }
    };
    let depth = number(&gemm.depth);
    let mut words = vec![extent(0), extent(1), format!("{depth} < 0 ? 0 : {depth}")];
    let bytes = |n: &Number, size: u64| format!("{} * {size}", unsigned(n));
    for o in &gemm.operands {
        words.extend([&o.first, &o.strides[0], &o.strides[1]].map(|n| bytes(n, o.factor.into())));
    }
    let good = words.len();
    words.extend(["0".into(), "0".into()]);
    for (m, size) in &gemm.arrays {
        words.extend([&m.first, &m.strides[0], &m.strides[1]].map(|n| bytes(n, *size)));
    }
    words.extend(gemm.batch_steps().map(|(n, size)| bytes(n, size)));
    for (n, word) in words.iter().enumerate() {
        let _ = writeln!(body, "    words[{n}] = (uint64_t)({word});");
    }
    for (n, o) in gemm.operands.iter().enumerate() {
        let OperandSide { tensor, factor, major, dense, .. } = o;
        let (side, outer) = (format!("(int64_t)words[{n}]"), number(&o.strides[usize::from(*major == Major::Side)]));
        let [length, lines] = match major {
            Major::Depth => ["(int64_t)words[2]", &*side],
            Major::Side => [&*side, "(int64_t)words[2]"],
        };
        let base = format!("tensors[{tensor}] + {}", bytes(&o.first, u64::from(*factor)));
        let batch: Vec<usize> = o.moves().collect();
        let list = |name: &str, of: &dyn Fn(usize) -> String| {
            let values: Vec<String> = batch.iter().map(|d| of(*d)).collect();
            format!("        const int64_t {name}[] = {{{}}};\n", values.join(", "))
        };
        let (lists, names) = match batch.len() {
            0 => (String::new(), "0, 0"),
            _ => {
                let matrices = list("matrices", &|d| format!("extents[{}]", gemm.batch[d]));
                (matrices + &list("apart", &|d| number(&o.batch[d])), "matrices, apart")
            }
        };
        let _ = write!(
            body,
            "    {{\n{lists}        result = NAME_operand(maps + {}, &words[{}], tensors[{tensor}], {base}, {length}, \
             {lines}, {outer}, {factor}, {}, {}, {}, {names});\n        if (result) return result;\n    }}\n",
            128 * n,
            good + n,
            u32::from(*dense),
            o.rows(),
            batch.len()
        );
    }
}

/// A number of the launch, which wraps.
fn unsigned(n: &Number) -> String {
    let term = |(factors, n): &(Vec<u32>, i64)| {
        factors.iter().fold(format!("(uint64_t)INT64_C({n})"), |x, p| format!("{x} * (uint64_t)params[{p}]"))
    };
    let terms: Vec<String> = n.terms().iter().map(term).collect();
    match terms.is_empty() {
        true => "UINT64_C(0)".into(),
        false => format!("({})", terms.join(" + ")),
    }
}

/// The same as a signed one.
fn number(n: &Number) -> String {
    format!("(int64_t){}", unsigned(n))
}
