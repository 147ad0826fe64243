//! Names that people bring along from PTO's C++, CUDA, numpy and Python, and what stands for them here.

/// What to say about a foreign name.
pub enum Foreign {
    /// It is spelled so.
    Is(&'static str),
    /// There is another way.
    Help(&'static str),
}

/// What stands for a name that others know and the language does not, in words.
pub fn spelled_otherwise(name: &str) -> Option<String> {
    Some(match foreign(name)? {
        Foreign::Is(own) => format!("it is `{own}` here"),
        Foreign::Help(help) => help.to_owned(),
    })
}

/// What stands for `name`, if others know it and we do not.
pub fn foreign(name: &str) -> Option<Foreign> {
    use Foreign::{Help, Is};
    Some(match name {
        "float" | "float32" | "fp32" | "float32_t" => Is("f32"),
        "half" | "float16" | "fp16" | "float16_t" | "__half" => Is("f16"),
        "bfloat16" | "bfloat16_t" | "__nv_bfloat16" => Is("bf16"),
        "int" | "int32" | "int32_t" => Is("i32"),
        "unsigned" | "uint" | "uint32" | "uint32_t" => Is("u32"),
        "char" | "int8" | "int8_t" => Is("i8"),
        "uint8" | "uint8_t" | "byte" => Is("u8"),
        "short" | "int16" | "int16_t" => Is("i16"),
        "uint16" | "uint16_t" => Is("u16"),
        "int64" | "int64_t" | "long" => Is("i64"),
        "uint64" | "uint64_t" => Is("u64"),
        "size_t" | "ptrdiff_t" | "usize" | "isize" => Is("index"),
        "boolean" | "_Bool" => Is("bool"),
        "double" | "f64" | "float64" => Help("no target computes in f64; use `f32`"),
        "UB" => Is("Vec"),
        "L1" => Is("Mat"),
        "L0A" => Is("Left"),
        "L0B" => Is("Right"),
        "L0C" => Is("Acc"),
        "True" => Is("true"),
        "False" => Is("false"),
        "None" | "null" | "nullptr" => Is("none"),
        "INFINITY" | "infinity" | "Inf" => Is("inf"),
        "NaN" | "NAN" => Is("nan"),
        "cdiv" => Is("ceil_div"),
        "fmax" | "maximum" => Is("max"),
        "fmin" | "minimum" => Is("min"),
        "fabs" => Is("abs"),
        "ln" => Is("log"),
        "where" => Is("select"),
        "arange" => Is("iota"),
        "dot" => Is("matmul"),
        "Tile" | "TileType" => Help("a tile type begins with its location: `Vec<f32, 16, 64>`"),
        "GlobalTensor" | "Tensor" => Help("a tensor argument is written `x: in f32[M, N]`"),
        "CAST_RINT" => Is("Rint"),
        "CAST_ROUND" => Is("Round"),
        "CAST_FLOOR" => Is("Floor"),
        "CAST_CEIL" => Is("Ceil"),
        "CAST_TRUNC" => Is("Trunc"),
        "CAST_ODD" => Is("Odd"),
        "NormalRelu" => Is("Relu"),
        "static_cast" | "reinterpret_cast" | "const_cast" => {
            Help("a value is converted by the name of a dtype: `f32(x)`")
        }
        "__gm__" | "__ubuf__" | "__cbuf__" | "__ca__" | "__cb__" | "__cc__" => Help(
            "types say where data live: tensors are arguments, `x: in f32[M, N]`, and a tile is \
            `tile Vec<f32, 16, 64>`",
        ),
        "__global__" | "__aicore__" | "AICORE" => Help("a kernel is written `kernel name(x: in f32[M, N]) { .. }`"),
        "pto" => Help("PTO's instructions stand alone, without a dialect or namespace: `TADD(dst, a, b)`"),
        "range" => Help("a range is written `0..n`"),
        "len" | "shape" => Help("a tensor's extents have names in its type: `x: in f32[M, N]` gives `M` and `N`"),
        "u1" | "i1" => Help("one bit an element is made of a mask: `packbits(mask)` gives bytes"),
        "blockIdx" | "threadIdx" | "block_idx" | "get_block_idx" | "program_id" => {
            Help("a block's number is a variable of `grid`: `grid (i in tiles(M, 16));` and then `i.index`")
        }
        "blockDim" | "gridDim" | "block_num" => Help("`tiles(n, size).count` is the number of blocks"),
        "__syncthreads" => Help(
            "the compiler synchronises: leave it out; where the author orders the pipes (pipes.md) it is `barrier()`",
        ),
        _ => return None,
    })
}
