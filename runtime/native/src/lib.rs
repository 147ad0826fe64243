//! The routines of `ptoc-kernels` under the names that objects of `ptoc build` call them by.
//!
//! A kernel that is compiled for a launch calls a routine at the address for the machine at hand. An object is linked
//! before that machine is known, so each function here asks first, which is a load and a branch once the processor has
//! been asked. This is the one crate of the workspace that is also a static library; nothing is allocated here.

use ptoc_kernels::ReduceOp::{Add, Max, Min};
use ptoc_tensor::DType;
use std::mem::transmute;

/// The function of a routine: its symbol, how many i64 it takes, and the address of its code for this machine.
macro_rules! routine {
    (@params $f:ident, $symbol:ident, $address:expr, ($($p:ident)*), $($result:ty)?) => {
        /// A routine of `ptoc-kernels`.
        ///
        /// # Safety
        /// What the routine itself wants.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol($($p: i64),*) $(-> $result)? {
            let address: Option<*const u8> = $address;
            // Objects call it where the machine has it: in code for vectors of 256 bits and more.
            let Some(address) = address else { std::process::abort() };
            // SAFETY: the routine takes this many i64, and gives what is said here (`Routine` of `ptoc-cpu`).
            let $f = unsafe {
                transmute::<*const u8, unsafe extern "C" fn($(routine!(@i64 $p)),*) $(-> $result)?>(address)
            };
            // SAFETY: the caller's promise.
            unsafe { $f($($p),*) }
        }
    };
    (@i64 $p:ident) => { i64 };
    ($symbol:ident 6, $address:expr) => { routine!(@params f, $symbol, $address, (a b c d e g), ); };
    ($symbol:ident 7, $address:expr) => { routine!(@params f, $symbol, $address, (a b c d e g h), ); };
    ($symbol:ident 9, $address:expr) => { routine!(@params f, $symbol, $address, (a b c d e g h i j), ); };
    ($symbol:ident 10, $address:expr) => { routine!(@params f, $symbol, $address, (a b c d e g h i j k), ); };
    ($symbol:ident 11, $address:expr) => { routine!(@params f, $symbol, $address, (a b c d e g h i j k l), ); };
    ($symbol:ident 11 gives, $address:expr) => {
        routine!(@params f, $symbol, $address, (a b c d e g h i j k l), i64);
    };
    ($symbol:ident 14, $address:expr) => {
        routine!(@params f, $symbol, $address, (a b c d e g h i j k l m n o), );
    };
    ($symbol:ident 16 gives, $address:expr) => {
        routine!(@params f, $symbol, $address, (a b c d e g h i j k l m n o p q), i64);
    };
    ($symbol:ident 20, $address:expr) => {
        routine!(@params f, $symbol, $address, (a b c d e g h i j k l m n o p q r s t u), );
    };
}

/// Several routines, with the list of their symbols.
macro_rules! routines {
    ($($symbol:ident ($($form:tt)+) = $address:expr;)*) => {
        $(routine!($symbol $($form)+, $address);)*

        /// The symbols of the routines.
        pub const SYMBOLS: &[&str] = &[$(stringify!($symbol)),*];
    };
}

/// The reduction of a dtype by name.
fn reduce(op: ptoc_kernels::ReduceOp, dtype: &str) -> Option<*const u8> {
    ptoc_kernels::reduce(op, DType::from_name(dtype)?)
}

/// The scan of a dtype by name.
fn scan(op: ptoc_kernels::ReduceOp, dtype: &str) -> Option<*const u8> {
    ptoc_kernels::scan(op, DType::from_name(dtype)?)
}

routines! {
    ptoc_copy(7) = Some(ptoc_kernels::copy());
    ptoc_move_1(9) = ptoc_kernels::strided(1);
    ptoc_move_2(9) = ptoc_kernels::strided(2);
    ptoc_move_4(9) = ptoc_kernels::strided(4);
    ptoc_move_8(9) = ptoc_kernels::strided(8);
    ptoc_from_f16(6) = ptoc_kernels::from_f16();
    ptoc_to_f16(6) = ptoc_kernels::to_f16();
    ptoc_matmul(20) = Some(ptoc_kernels::product());
    ptoc_gather_1(11 gives) = ptoc_kernels::gather(1);
    ptoc_gather_2(11 gives) = ptoc_kernels::gather(2);
    ptoc_gather_4(11 gives) = ptoc_kernels::gather(4);
    ptoc_gather_8(11 gives) = ptoc_kernels::gather(8);
    ptoc_locate_1(16 gives) = ptoc_kernels::locate(1);
    ptoc_locate_2(16 gives) = ptoc_kernels::locate(2);
    ptoc_locate_4(16 gives) = ptoc_kernels::locate(4);
    ptoc_locate_8(16 gives) = ptoc_kernels::locate(8);
    ptoc_sort_f16(11) = Some(ptoc_kernels::sort(true));
    ptoc_sort_f32(11) = Some(ptoc_kernels::sort(false));
    ptoc_merge_f16(14) = Some(ptoc_kernels::merge(true));
    ptoc_merge_f32(14) = Some(ptoc_kernels::merge(false));
    ptoc_merge_runs_f16(6) = Some(ptoc_kernels::merge_runs(true));
    ptoc_merge_runs_f32(6) = Some(ptoc_kernels::merge_runs(false));
    ptoc_reduce_add_i8(7) = reduce(Add, "i8");
    ptoc_reduce_add_u8(7) = reduce(Add, "u8");
    ptoc_reduce_add_i16(7) = reduce(Add, "i16");
    ptoc_reduce_add_u16(7) = reduce(Add, "u16");
    ptoc_reduce_add_i32(7) = reduce(Add, "i32");
    ptoc_reduce_add_i64(7) = reduce(Add, "i64");
    ptoc_reduce_add_f16(7) = reduce(Add, "f16");
    ptoc_reduce_add_bf16(7) = reduce(Add, "bf16");
    ptoc_reduce_add_f32(7) = reduce(Add, "f32");
    ptoc_reduce_max_i8(7) = reduce(Max, "i8");
    ptoc_reduce_max_u8(7) = reduce(Max, "u8");
    ptoc_reduce_max_i16(7) = reduce(Max, "i16");
    ptoc_reduce_max_u16(7) = reduce(Max, "u16");
    ptoc_reduce_max_i32(7) = reduce(Max, "i32");
    ptoc_reduce_max_i64(7) = reduce(Max, "i64");
    ptoc_reduce_max_f16(7) = reduce(Max, "f16");
    ptoc_reduce_max_bf16(7) = reduce(Max, "bf16");
    ptoc_reduce_max_f32(7) = reduce(Max, "f32");
    ptoc_reduce_max_u_i32(7) = reduce(Max, "u32");
    ptoc_reduce_max_u_i64(7) = reduce(Max, "u64");
    ptoc_reduce_min_i8(7) = reduce(Min, "i8");
    ptoc_reduce_min_u8(7) = reduce(Min, "u8");
    ptoc_reduce_min_i16(7) = reduce(Min, "i16");
    ptoc_reduce_min_u16(7) = reduce(Min, "u16");
    ptoc_reduce_min_i32(7) = reduce(Min, "i32");
    ptoc_reduce_min_i64(7) = reduce(Min, "i64");
    ptoc_reduce_min_f16(7) = reduce(Min, "f16");
    ptoc_reduce_min_bf16(7) = reduce(Min, "bf16");
    ptoc_reduce_min_f32(7) = reduce(Min, "f32");
    ptoc_reduce_min_u_i32(7) = reduce(Min, "u32");
    ptoc_reduce_min_u_i64(7) = reduce(Min, "u64");
    ptoc_scan_add_f32(10) = scan(Add, "f32");
    ptoc_scan_max_f32(10) = scan(Max, "f32");
    ptoc_scan_min_f32(10) = scan(Min, "f32");
    ptoc_scan_add_f16(10) = scan(Add, "f16");
    ptoc_scan_max_f16(10) = scan(Max, "f16");
    ptoc_scan_min_f16(10) = scan(Min, "f16");
    ptoc_scan_add_i32(10) = scan(Add, "i32");
    ptoc_scan_max_i32(10) = scan(Max, "i32");
    ptoc_scan_min_i32(10) = scan(Min, "i32");
    ptoc_scan_max_u_i32(10) = scan(Max, "u32");
    ptoc_scan_min_u_i32(10) = scan(Min, "u32");
}

/// Bytes that a product needs beside a kernel's tiles.
#[unsafe(no_mangle)]
pub extern "C" fn ptoc_scratch() -> i64 {
    ptoc_kernels::scratch() as i64
}
