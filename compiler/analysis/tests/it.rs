//! Small programs, and the codes that they get.
#![allow(missing_docs, reason = "a test")]

use ptoc_analysis::{Bindings, instantiate};
use ptoc_diagnostics::{FileId, SourceMap};
use ptoc_names::{Loader, Modules, NoImports, check_names};
use ptoc_syntax::ast::Name;

/// The codes of all errors of the kernels in `text`; every kernel without errors must pass the verifier.
fn codes(text: &str, target: &str, dims: &[(&str, i64)]) -> Vec<String> {
    let mut map = SourceMap::default();
    let file = map.add("test.tile", text);
    let mut diagnostics = Vec::new();
    let modules = Modules::load(file, text, &mut NoImports, &mut diagnostics);
    check_names(&modules, &mut diagnostics);
    let mut bindings = Bindings::default();
    for (name, n) in dims {
        bindings.dims.insert((*name).into(), *n);
    }
    let target = ptoc_isa::Target::builtin(target).unwrap();
    for (id, _) in modules.entries() {
        let outcome = instantiate(&modules, id, target, &bindings);
        diagnostics.extend(outcome.diagnostics);
        let silent = outcome.result.is_none() && outcome.waits.is_empty() && diagnostics.is_empty();
        assert!(!silent, "refused in silence:\n{text}");
        if let Some(instance) = outcome.result {
            ptoc_ir::tile::verify::verify(&instance.kernel).unwrap();
        }
    }
    diagnostics.iter().map(|d| d.code.to_string()).collect()
}

#[test]
fn an_accumulator_starts_at_zero() {
    let kernel = |start: &str| {
        format!(
            "kernel k(A: in f16[M, K], B: in f16[K, N], C: out f32[M, N]) {{
                grid (m in tiles(M, 16), n in tiles(N, 16));
                let acc = tile Acc<f32, m, n>;
                {start};
                for k in tiles(K, 16) {{ TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }}
                TSTORE(C.tile(m, n), acc);
            }}"
        )
    };
    assert_eq!(codes(&kernel("acc = 0.0"), "a2a3", &[]), [""; 0]);
    assert_eq!(codes(&kernel("acc = 1.0"), "a2a3", &[]), ["E0206"]);
    assert_eq!(codes(&kernel("TEXPANDS(acc, 0.0)"), "a2a3", &[]), ["E0612"]);
}

#[test]
fn a_refused_address_is_one_mistake() {
    // Neither "has no address" for the tile that got a bad one, nor silence about its neighbours.
    let text = "#[place(manual)]
        kernel k(x: in f32[M, N], y: out f32[M, N]) {
            grid (i in tiles(M, 16), j in tiles(N, 64));
            let t, u = tile Vec<f32, i, j> at [0x2F020, 0x10];
            TLOAD(t, x.tile(i, j));
            TLOAD(u, x.tile(i, j));
            TSTORE(y.tile(i, j), t + u);
        }";
    assert_eq!(codes(text, "a2a3", &[]), ["SA-0353", "SA-0354"]);
}

#[test]
fn one_row_goes_through_the_cube() {
    // `Left(..)` of one row has a capacity of 16, as the accumulator that is declared so.
    let text = "kernel k(A: in f16[M, K], x: in f16[K], y: out f32[M]) {
            grid (m in tiles(M, 64));
            let acc = tile Acc<f32, 16, m, valid = (1, m)>;
            acc = 0.0;
            for k in tiles(K, 128) { TMATMUL_ACC(acc, acc, Left(x.tile(k)), Right(A.T.tile(k, m))); }
            TSTORE(y.tile(m), acc);
        }
        kernel l(A: in f16[M, K], x: in f16[K], y: out f32[M]) {
            grid (m in tiles(M, 8), k in tiles(K, 8));
            TSTORE(y.tile(m), Vec(matmul(Left(x.tile(k)), Right(A.T.tile(k, m)))));
        }";
    let notes: Vec<_> = codes(text, "a5", &[]);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn integers_broadcast_where_the_instruction_takes_floats_only() {
    // TCOLEXPANDADD has no i32 on a2a3: the row is spread by TCOLEXPAND, and added by TADD.
    let text = "kernel k(a: in i32[M], b: in i32[N], c: out i32[M, N]) {
            grid (i in tiles(M, 16), j in tiles(N, 64));
            TSTORE(c.tile(i, j), Vec(col(a).tile(i, _)) * 3 + Vec(b.tile(j)));
        }";
    assert_eq!(codes(text, "a2a3", &[]), [""; 0]);
}

#[test]
fn a_test_line_uses_the_names_that_it_gives() {
    struct Std;
    impl Loader for Std {
        fn load(&mut self, path: &[Name], _: FileId) -> Result<(FileId, String), String> {
            let text = "fn one(x: f32) -> f32 { x }\nfn two(x: f32) -> f32 { x }\nfn three(x: f32) -> f32 { x }";
            if path[1..] == ["act"] { Ok((FileId(1), text.into())) } else { Err("no".into()) }
        }
    }
    let text = "use std::act::one;
        use std::act::two;
        use std::act::three;
        // run: k interp M=3 f=two
        kernel k<fn f = one>(x: in f32[M], y: out f32[M]) {
            grid (i in tiles(M, 64));
            TSTORE(y.tile(i), f(Vec(x.tile(i))));
        }";
    let unused = |text: &str| {
        let mut map = SourceMap::default();
        let file = map.add("test.tile", text);
        let mut diagnostics = Vec::new();
        let modules = Modules::load(file, text, &mut Std, &mut diagnostics);
        check_names(&modules, &mut diagnostics);
        diagnostics.iter().map(|d| d.message.clone()).collect::<Vec<_>>()
    };
    let (two, three) = ("`two` is imported and never used", "`three` is imported and never used");
    assert_eq!(unused(text), [three]);
    // Where no line gives the parameter, `-D f=two` may.
    assert_eq!(unused(&text.replace(" f=two", "")), [""; 0]);
    assert_eq!(
        unused(&text.replace("<fn f = one>", "").replace("f(Vec", "one(Vec").replace(" f=two", "")),
        [two, three]
    );
}

#[test]
fn grid_variables_are_known_behind_the_ranges() {
    let kernel = |grid: &str| {
        format!(
            "kernel k(x: in f32[M, N], y: out f32[M, N]) {{
                grid ({grid};
                TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
            }}"
        )
    };
    let unknown = codes(&kernel("i in tiles(M, 16), j in tiles(i, 64))"), "a2a3", &[]);
    assert_eq!(unknown, codes(&kernel("i in tiles(M, 16), j in tiles(other, 64))"), "a2a3", &[]));
    assert_eq!(unknown.len(), 1);
    let raster = kernel("i in tiles(M, 16), j in tiles(N, 64)) raster(along = i, swizzle = 4)");
    assert_eq!(codes(&raster, "a2a3", &[]), [""; 0]);
}
