//! What the language's own functions do, for messages and editors. Those of the layout algebra are in
//! `ptoc_layout::ops`, those that order pipes in [`crate::SyncFn`], instructions in `ptoc_isa`.

use crate::builtins::SyncFn;

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionDoc {
    /// How authors write its name.
    pub name: &'static str,
    /// The ways to call it.
    pub usage: &'static [&'static str],
    /// What it gives or does.
    pub doc: &'static str,
    /// Constant arguments give a constant result.
    pub constant: bool,
}

const fn f(name: &'static str, usage: &'static [&'static str], doc: &'static str) -> FunctionDoc {
    FunctionDoc { name, usage, doc, constant: false }
}

/// One that gives constants for constants.
const fn c(name: &'static str, usage: &'static [&'static str], doc: &'static str) -> FunctionDoc {
    FunctionDoc { constant: true, ..f(name, usage, doc) }
}

/// Functions of scalars, tiles, windows and sizes.
pub static FUNCTIONS: &[FunctionDoc] = &[
    f("tiles", &["tiles(n, size)"], "0..n cut into blocks of `size`; the last one may be shorter."),
    c("ceil_div", &["ceil_div(a, b)"], "a / b, rounded up."),
    c("exp", &["exp(x)"], "e^x; of a tile, element by element."),
    c("log", &["log(x)"], "The natural logarithm; of a tile, element by element."),
    c("sqrt", &["sqrt(x)"], "The square root, correctly rounded; of a tile, element by element."),
    c("rsqrt", &["rsqrt(x)"], "1 / sqrt(x); of a tile, element by element."),
    c("recip", &["recip(x)"], "1 / x; of a tile, element by element."),
    c("abs", &["abs(x)"], "The absolute value; of a tile, element by element."),
    c("floor", &["floor(x)"], "The largest whole number not above x; of a tile, element by element."),
    c("ceil", &["ceil(x)"], "The smallest whole number not below x; of a tile, element by element."),
    c("trunc", &["trunc(x)"], "The whole part of x; of a tile, element by element."),
    f("rint", &["rint(x)"], "The nearest whole number, ties to even; of a tile, element by element."),
    c("tanh", &["tanh(x)"], "The hyperbolic tangent; of a tile, element by element."),
    f("erf", &["erf(x)"], "The Gauss error function; of a tile, element by element."),
    c("sin", &["sin(x)"], "The sine; of a tile, element by element."),
    c("cos", &["cos(x)"], "The cosine; of a tile, element by element."),
    c(
        "min",
        &["min(a, b)"],
        "The smaller one; NaN if either is NaN. Tiles and scalars mix. In `ensures` also `min<k>(e)`.",
    ),
    c(
        "max",
        &["max(a, b)"],
        "The larger one; NaN if either is NaN. Tiles and scalars mix. In `ensures` also `max<k>(e)`.",
    ),
    c("pow", &["pow(a, b)"], "a to the power b. Tiles and scalars mix."),
    c("clamp", &["clamp(x, lo, hi)"], "x, moved into lo..hi."),
    c("select", &["select(c, a, b)"], "a where c is true, else b; c may be a mask."),
    f("rowsum", &["rowsum(t)"], "The sum of each row: a column."),
    f("rowmax", &["rowmax(t)"], "The largest element of each row: a column."),
    f("rowmin", &["rowmin(t)"], "The smallest element of each row: a column."),
    f("colsum", &["colsum(t)"], "The sum of each column: a row."),
    f("colmax", &["colmax(t)"], "The largest element of each column: a row."),
    f("colmin", &["colmin(t)"], "The smallest element of each column: a row."),
    f("rowprod", &["rowprod(t)"], "The product of each row: a column."),
    f("colprod", &["colprod(t)"], "The product of each column: a row."),
    f(
        "rowcumsum",
        &["rowcumsum(t)", "rowcumsum(t, exclusive = true)"],
        "The sums so far, along each row; exclusive: of the elements before.",
    ),
    f(
        "rowcumprod",
        &["rowcumprod(t)", "rowcumprod(t, exclusive = true)"],
        "The products so far, along each row; exclusive: of the elements before.",
    ),
    f(
        "rowcummax",
        &["rowcummax(t)", "rowcummax(t, exclusive = true)"],
        "The largest elements so far, along each row; exclusive: of the elements before.",
    ),
    f(
        "rowcummin",
        &["rowcummin(t)", "rowcummin(t, exclusive = true)"],
        "The smallest elements so far, along each row; exclusive: of the elements before.",
    ),
    f(
        "colcumsum",
        &["colcumsum(t)", "colcumsum(t, exclusive = true)"],
        "The sums so far, down each column; exclusive: of the elements before.",
    ),
    f(
        "colcumprod",
        &["colcumprod(t)", "colcumprod(t, exclusive = true)"],
        "The products so far, down each column; exclusive: of the elements before.",
    ),
    f(
        "colcummax",
        &["colcummax(t)", "colcummax(t, exclusive = true)"],
        "The largest elements so far, down each column; exclusive: of the elements before.",
    ),
    f(
        "colcummin",
        &["colcummin(t)", "colcummin(t, exclusive = true)"],
        "The smallest elements so far, down each column; exclusive: of the elements before.",
    ),
    f("rowargmax", &["rowargmax(t)"], "The place of the first largest element of each row: a column of i32."),
    f("rowargmin", &["rowargmin(t)"], "The place of the first smallest element of each row: a column of i32."),
    f("colargmax", &["colargmax(t)"], "The place of the first largest element of each column: a row of i32."),
    f("colargmin", &["colargmin(t)"], "The place of the first smallest element of each column: a row of i32."),
    f(
        "packbits",
        &["packbits(mask)", "packbits(mask, highest_first = true)"],
        "A mask as u8, eight neighbours of a row in a byte, the first one in its lowest bit.",
    ),
    f("matmul", &["matmul(a, b)"], "The product of a Left and a Right tile, in a new accumulator."),
    f("transpose", &["transpose(t)"], "A Vec tile with rows and columns exchanged."),
    f("iota", &["iota(q, 1)", "iota(1, k)"], "The indices of a block, as a column or a row."),
    f("bytes", &["bytes(t)"], "Bytes of a tile's storage, known when the kernel is compiled."),
    c("capacity", &["capacity(Vec)"], "Bytes of a memory of the target."),
    c("is_simt", &["is_simt()"], "Whether the target is a GPU, whose tiles lie in registers of threads."),
    c("size", &["size(x)"], "The number of elements."),
    c("rank", &["rank(x)"], "The number of modes."),
    f("col", &["col(v)"], "A window of one mode as a column."),
    f("sum", &["sum<k>(e)"], "The sum of e over all values of the index k; in `ensures`."),
    f("prod", &["prod<k>(e)"], "The product of e over all values of the index k; in `ensures`."),
    f("argmax", &["argmax<k>(e)"], "The first k for which e is the largest, or NaN; in `ensures`."),
    f("argmin", &["argmin<k>(e)"], "The first k for which e is the smallest, or NaN; in `ensures`."),
    f("any", &["any<k>(c)"], "Whether c is true for some value of the index k; in `ensures`."),
    f("all", &["all<k>(c)"], "Whether c is true for all values of the index k; in `ensures`."),
    f("count", &["count<k>(c)"], "For how many values of the index k c is true; in `ensures`."),
    f("sorted", &["sorted<k>(e)"], "Whether e never falls from one k to the next; in `ensures`."),
    f(
        "permutation",
        &["permutation<k>(e)", "permutation<k>(a, b)"],
        "Whether e takes each of the values from 0 on once, or a and b the same values; in `ensures`.",
    ),
    f(
        "close",
        &["close(a, b, rtol = 1e-3)", "close(a, b, rtol = 1e-3, atol = 1e-5)"],
        "a == b with a tolerance of its own; an `ensures`.",
    ),
    f("print", &["print(\"..\", x)"], "Prints while the interpreter runs; names in braces are values."),
    f(
        "static_assert",
        &["static_assert(c)", "static_assert(c, \"..\")"],
        "An error if c is false when the kernel is compiled.",
    ),
    f("assert", &["assert(c)", "assert(c, \"..\")"], "Stops the kernel if c is false when it runs."),
    f("atomic_add", &["atomic_add(x[i], v)"], "Adds to an element in one step; gives the old value."),
    f("atomic_max", &["atomic_max(x[i], v)"], "Keeps the larger one in one step; gives the old value."),
    f("atomic_min", &["atomic_min(x[i], v)"], "Keeps the smaller one in one step; gives the old value."),
    f("atomic_and", &["atomic_and(x[i], v)"], "Bitwise and in one step; gives the old value."),
    f("atomic_or", &["atomic_or(x[i], v)"], "Bitwise or in one step; gives the old value."),
    f("atomic_xor", &["atomic_xor(x[i], v)"], "Bitwise exclusive or in one step; gives the old value."),
    f("atomic_exchange", &["atomic_exchange(x[i], v)"], "Stores v in one step; gives the old value."),
    f(
        "atomic_cas",
        &["atomic_cas(x[i], old, new)"],
        "Stores `new` if `old` is there, in one step; gives what was there.",
    ),
    f("copy", &["copy(dst, src)"], "Copies a window element by element, where both exist."),
    f("gather", &["gather(x, (table, _))"], "A window of x whose rows the table chooses."),
    f("scatter", &["scatter(y, (table, _))"], "A window of y to store to, whose rows the table chooses."),
    f(
        "recast",
        &["recast<T>(x)", "recast<T>(t)"],
        "A window read as elements of another size; a tile's bits as another dtype.",
    ),
    f("layout", &["layout(x)"], "The layout of a window or a tile."),
    f("modes", &["modes(x, (0, (2, 1), 3))"], "A window with modes chosen, put in this order, and grouped."),
    f(
        "local_tile",
        &["local_tile(x, tiler, coord)", "local_tile(x, tiler, coord, (1, X, 1))"],
        "The tile of a window at a coordinate.",
    ),
    f("local_partition", &["local_partition(x, threads, i)"], "What thread i has of a window."),
    c("tiled_mma", &["tiled_mma(ATOM, atoms = .., tiler = ..)"], "A matrix instruction repeated over a tile."),
    c("select_mma", &["select_mma(f16, f16, f32, n)"], "The warp-group instruction for these dtypes and columns."),
    f("mma", &["mma(MMA, acc, a, b)"], "acc += a b by a tiled instruction."),
    f("fragment_A", &["fragment_A(MMA, (BM, BK))"], "Storage for the threads' values of A."),
    f("fragment_B", &["fragment_B(MMA, (BN, BK))"], "Storage for the threads' values of B."),
    f("fragment_C", &["fragment_C(MMA, (BM, BN))"], "Storage for the threads' values of C."),
    f("partition_A", &["partition_A(MMA, x)"], "What each thread has of A."),
    f("partition_B", &["partition_B(MMA, x)"], "What each thread has of B."),
    f("partition_C", &["partition_C(MMA, x)"], "What each thread has of C."),
];

/// How a function of the language is called and what it does, wherever it is described.
pub fn reference(name: &str) -> Option<(Vec<&'static str>, &'static str)> {
    if let Some(f) = FUNCTIONS.iter().find(|f| f.name == name) {
        return Some((f.usage.to_vec(), f.doc));
    }
    if let Some(f) = SyncFn::from_name(name) {
        let (usage, doc) = f.reference();
        return Some((usage.to_vec(), doc));
    }
    ptoc_layout::ops::find(name).map(|op| (vec![op.usage], op.doc))
}

/// Attributes of kernels and loops, with what may stand in their parentheses.
pub static ATTRIBUTES: &[(&str, &[&str], &str)] = &[
    (
        "place",
        &["auto", "manual", "planned"],
        "Who places tiles: the compiler alone, the author, or a plan that was printed.",
    ),
    ("sync", &["auto", "manual"], "Who orders the pipes: the compiler or the author."),
    ("on", &["host"], "Who runs the kernel: on PIM targets, the host."),
    ("disjoint", &[], "The blocks write elements of this tensor that do not meet."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::{FUNCTION_NAMES, function};

    #[test]
    fn every_function_is_described_once() {
        for name in FUNCTION_NAMES {
            assert_eq!(FUNCTIONS.iter().filter(|f| f.name == *name).count(), 1, "{name}");
        }
        for f in FUNCTIONS {
            assert!(function(f.name).is_some(), "{} is no function", f.name);
            assert!(f.usage.iter().all(|u| u.starts_with(f.name)), "{}", f.name);
        }
        assert!(reference("composition").is_some() && reference("wait").is_some() && reference("nothing").is_none());
    }
}
