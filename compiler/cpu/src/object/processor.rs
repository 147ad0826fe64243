//! What the processor has, asked when an object's function is first called.
//!
//! A level is 1 for 128 bits, 2 for 256, 3 for 512; 0 is less than any code needs.

use super::VECTORS_VARIABLE;
use super::code::Maker;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData};
use cranelift_module::{FuncId, Linkage};

/// The level of an x86-64 processor, in eax.
///
/// ```text
///       push rbx
///       xor r10d, r10d
///       xor eax, eax
///       cpuid                     ; leaf 0: the last leaf
///       mov r8d, eax
///       mov eax, 1
///       xor ecx, ecx
///       cpuid                     ; leaf 1
///       mov r9d, ecx
///       and ecx, 0x00980200       ; SSSE3, SSE4.1, SSE4.2, POPCNT
///       cmp ecx, 0x00980200
///       jne done
///       inc r10d                  ; 1
///       cmp r8d, 7
///       jb done
///       mov ecx, r9d
///       and ecx, 0x38001000       ; FMA, OSXSAVE, AVX, F16C
///       cmp ecx, 0x38001000
///       jne done
///       xor ecx, ecx
///       xgetbv
///       mov r11d, eax
///       and eax, 6                ; the system saves XMM and YMM
///       cmp eax, 6
///       jne done
///       mov eax, 7
///       xor ecx, ecx
///       cpuid                     ; leaf 7
///       bt ebx, 5                 ; AVX2
///       jae done
///       inc r10d                  ; 2
///       and r11d, 0xe6            ; it saves ZMM and the masks
///       cmp r11d, 0xe6
///       jne done
///       and ebx, 0xc0030000       ; AVX-512 F, DQ, BW, VL
///       cmp ebx, 0xc0030000
///       jne done
///       inc r10d                  ; 3
/// done: mov eax, r10d
///       pop rbx
///       ret
/// ```
const LEVEL: [u8; 135] = [
    0x53, 0x45, 0x31, 0xd2, 0x31, 0xc0, 0x0f, 0xa2, 0x41, 0x89, 0xc0, 0xb8, 0x01, 0x00, 0x00, 0x00, 0x31, 0xc9, 0x0f,
    0xa2, 0x41, 0x89, 0xc9, 0x81, 0xe1, 0x00, 0x02, 0x98, 0x00, 0x81, 0xf9, 0x00, 0x02, 0x98, 0x00, 0x75, 0x5d, 0x41,
    0xff, 0xc2, 0x41, 0x83, 0xf8, 0x07, 0x72, 0x54, 0x44, 0x89, 0xc9, 0x81, 0xe1, 0x00, 0x10, 0x00, 0x38, 0x81, 0xf9,
    0x00, 0x10, 0x00, 0x38, 0x75, 0x43, 0x31, 0xc9, 0x0f, 0x01, 0xd0, 0x41, 0x89, 0xc3, 0x83, 0xe0, 0x06, 0x83, 0xf8,
    0x06, 0x75, 0x33, 0xb8, 0x07, 0x00, 0x00, 0x00, 0x31, 0xc9, 0x0f, 0xa2, 0x0f, 0xba, 0xe3, 0x05, 0x73, 0x24, 0x41,
    0xff, 0xc2, 0x41, 0x81, 0xe3, 0xe6, 0x00, 0x00, 0x00, 0x41, 0x81, 0xfb, 0xe6, 0x00, 0x00, 0x00, 0x75, 0x11, 0x81,
    0xe3, 0x00, 0x00, 0x03, 0xc0, 0x81, 0xfb, 0x00, 0x00, 0x03, 0xc0, 0x75, 0x03, 0x41, 0xff, 0xc2, 0x44, 0x89, 0xd0,
    0x5b, 0xc3,
];

/// `vzeroupper; ret`: legacy SSE code is slow while the upper halves of vector registers are dirty.
const CLEAN: [u8; 4] = [0xc5, 0xf8, 0x77, 0xc3];

/// The function that cleans upper halves, if there are such.
pub(super) fn clean(maker: &mut Maker, symbol: &str) -> Result<Option<FuncId>, String> {
    if !maker.is_x86() {
        return Ok(None);
    }
    let id = maker.declare(&format!("{symbol}.clean"), Linkage::Local, &[], None)?;
    maker.bytes(id, 16, &CLEAN, &[])?;
    Ok(Some(id))
}

/// The function that gives the level that is to be used: what the processor has, or less if the environment says so.
/// It asks once, and any thread may ask.
pub(super) fn level(maker: &mut Maker, symbol: &str) -> Result<FuncId, String> {
    let id = maker.declare(&format!("{symbol}.level"), Linkage::Local, &[], Some(I64))?;
    if !maker.is_x86() {
        maker.function(id, &[], Some(I64), |code, _| {
            let level = code.int(1);
            code.b.ins().return_(&[level]);
        })?;
        return Ok(id);
    }
    let detect = maker.declare(&format!("{symbol}.processor"), Linkage::Local, &[], Some(I32))?;
    maker.bytes(detect, 16, &LEVEL, &[])?;
    let getenv = maker.declare("getenv", Linkage::Import, &[I64], Some(I64))?;
    let name = format!("{VECTORS_VARIABLE}\0").into_bytes();
    let name = maker.data(&format!("{symbol}.variable"), false, name, &[])?;
    // 1 + the level; 0 as long as nobody has asked.
    let known = maker.data(&format!("{symbol}.known"), true, vec![0; 8], &[])?;
    maker.function(id, &[], Some(I64), |code, _| {
        let flags = MemFlagsData::trusted();
        let at = code.data(known);
        let seen = code.b.ins().atomic_load(I64, flags, at);
        let again = code.is_int(IntCC::NotEqual, seen, 0);
        code.leave(again, |code| code.plus(seen, -1));
        let has = code.call(detect, &[]).map(|level| code.b.ins().uextend(I64, level));
        let has = has.unwrap_or_else(|| code.int(0));
        let name = code.data(name);
        let text = code.call(getenv, &[name]).unwrap_or_else(|| code.int(0));
        let level = code.variable(has);
        let given = code.is_int(IntCC::NotEqual, text, 0);
        code.when(given, |code| {
            let first = code.b.ins().load(I8, flags, text, 0);
            for (digit, most) in [(b'1', 1), (b'2', 2)] {
                let is = code.is_int(IntCC::Equal, first, i64::from(digit));
                code.when(is, |code| {
                    let most = code.int(most);
                    let less = code.b.ins().umin(has, most);
                    code.set(level, less);
                });
            }
        });
        let level = code.get(level);
        let kept = code.plus(level, 1);
        code.b.ins().atomic_store(flags, kept, at);
        code.b.ins().return_(&[level]);
    })?;
    Ok(id)
}
