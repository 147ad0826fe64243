//! Loop IR text: what parses and verifies prints back to itself and runs on the evaluator without a panic.

use ptoc_diagnostics::{FileId, SourceMap, render};
use ptoc_ir::loops::eval::{self, Memory};
use ptoc_ir::loops::text::{parse, print};
use ptoc_ir::loops::{Func, Module, verify};

/// Steps of a run.
const FUEL: u64 = 20_000;

/// The text of a module parses back to it.
pub(crate) fn round_trip(module: &Module) {
    for spans in [true, false] {
        let text = print(module, spans);
        match parse(&text, FileId(0)) {
            Ok(back) => assert_eq!(print(&back, spans), text),
            Err(d) => panic!("a printed module does not parse: {d:?}\n{text}"),
        }
    }
}

/// Bytes as the text of loop IR.
pub fn loop_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut sources = SourceMap::default();
    let file = sources.add("fuzz.loop", &*text);
    let module = match parse(&text, file) {
        Ok(module) => module,
        Err(d) => {
            assert!(!render::terminal(&d, &sources, false, 80).is_empty());
            return;
        }
    };
    if let Err(errors) = verify(&module) {
        for d in errors {
            assert!(!render::terminal(&d, &sources, false, 80).is_empty());
        }
        return;
    }
    round_trip(&module);
    // Arenas are allocated whole.
    if module.arena > 1 << 20 {
        return;
    }
    let mut memory =
        Memory { tensors: vec![vec![0; 4096]; module.tensors.len()], arena: vec![0; module.arena as usize] };
    let mut run = |func: &Func| {
        let params: Vec<i64> = (0..func.params.len()).map(|n| [3, 16, 1, 5, 0][n % 5]).collect();
        let mut prints = Vec::new();
        // Any end will do.
        let _ = eval::run(&module, func, &params, &mut memory, &mut prints, FUEL);
    };
    run(&module.launch);
    run(&module.block);
}
