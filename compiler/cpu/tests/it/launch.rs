//! Grids, status, prints and text of compiled kernels.

use ptoc_cpu::{CompiledKernel, Options, compile};
use ptoc_diagnostics::{FileId, codes};
use ptoc_exec::{LaunchArgs, LaunchError, PrintEvent, PrintValue, TensorArg};
use ptoc_ir::loops::{Module, text};
use ptoc_tensor::DType;

/// Scales each row of a matrix of `r0` rows by 2 and checks that element 0 is not `r1`; prints in row 1.
const SCALE: &str = r#"
kernel "scale"
tensor "A"
tensor "C"
arena 64
space "Vec" at 0 size 64
check 41 @0:3..9
check 42
launch "scale.launch" (r0: i64, r1: i64) -> (r0) {
  r2: i64 = const 100000
  r3: bool = lt r0, r2
  check r3, 1 (r0)
}
block "scale.block" (r0: i64, r1: i64, r2: i64) {
  r3: i64 = const 40
  r4: i64 = mul r2, r3
  r5: i64 = const 10
  r6: i64 = const 0
  lanes r7: i64 in r5 {
    r8: f32 = load f32 t0[r4, stride 4]
    store f32 s0[r6, stride 4], r8
  }
  r9: f32 = load f32 s0[r6]
  r10: i64 = f_to_i64 r9
  r11: bool = ne r10, r1
  check r11, 0 (r2, r10)
  lanes r12: i64 in r5 {
    r13: f32 = load f32 s0[r6, stride 4]
    r14: f32 = add r13, r13
    store f32 t1[r4, stride 4], r14
  }
  r15: i64 = const 1
  r16: bool = eq r2, r15
  if r16 {
    r17: i64 = const 2
    print "row ", i64 r2, " = ", f32 r9, matrix f32 t1[r4] (r15, r17) (40, 4)
  }
}
"#;

fn parsed(source: &str) -> Module {
    text::parse(source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"))
}

fn kernel(source: &str) -> CompiledKernel {
    compile(&parsed(source), &Options::default()).unwrap_or_else(|e| panic!("{e:?}"))
}

fn run(
    kernel: &CompiledKernel,
    rows: i64,
    bad: i64,
    threads: usize,
) -> (Result<(), LaunchError>, Vec<f32>, Vec<PrintEvent>) {
    let count = rows.clamp(0, 1000) as usize * 10;
    let mut a: Vec<u8> = (0..count).flat_map(|n| (n as f32).to_le_bytes()).collect();
    let mut c = vec![0u8; count * 4];
    let mut prints = Vec::new();
    let tensors = [TensorArg::new(&mut a), TensorArg::new(&mut c)];
    let mut sink = |event| prints.push(event);
    let launch = LaunchArgs { params: &[rows, bad], tensors: &tensors, threads, print: Some(&mut sink) };
    let result = unsafe { kernel.launch(launch) };
    (result, c.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect(), prints)
}

#[test]
fn a_grid_on_one_and_two_threads() {
    let kernel = kernel(SCALE);
    for threads in [1, 2] {
        for rows in [0, 1, 2, 333] {
            let (result, c, prints) = run(&kernel, rows, -1, threads);
            assert_eq!(result, Ok(()));
            assert!(c.iter().enumerate().all(|(n, x)| *x == 2.0 * n as f32));
            assert_eq!(prints.len(), usize::from(rows > 1));
        }
        let (_, _, prints) = run(&kernel, 2, -1, threads);
        let want = vec![
            PrintValue::Text("row ".into()),
            PrintValue::Scalar { dtype: DType::I64, bits: 1 },
            PrintValue::Text(" = ".into()),
            PrintValue::Scalar { dtype: DType::F32, bits: i64::from(10f32.to_bits()) },
            PrintValue::Matrix {
                dtype: DType::F32,
                rows: 1,
                cols: 2,
                bits: vec![u64::from(20f32.to_bits()), u64::from(22f32.to_bits())],
            },
        ];
        assert_eq!(prints[0].values, want);
        assert_eq!(prints[0].block, Some(1));
    }
}

#[test]
fn failed_checks() {
    let kernel = kernel(SCALE);
    for threads in [1, 2] {
        let (result, c, _) = run(&kernel, 300, 1230, threads);
        let Err(LaunchError::Check(failure)) = result else { panic!("{result:?}") };
        assert_eq!((failure.check, failure.block, &failure.args[..]), (0, Some(123), &[123, 1230][..]));
        assert!(c[..1230].iter().enumerate().all(|(n, x)| *x == 2.0 * n as f32), "all rows before it are done");
        let (result, _, _) = run(&kernel, 100_000, 0, threads);
        let Err(LaunchError::Check(failure)) = result else { panic!("{result:?}") };
        assert_eq!((failure.check, failure.block, &failure.args[..]), (1, None, &[100_000][..]));
    }
}

#[test]
fn kernels_come_and_go() {
    // Code is unmapped when a kernel is dropped; 200 of them would be noticed.
    for _ in 0..200 {
        let (result, c, _) = run(&kernel(SCALE), 3, -1, 1);
        assert_eq!((result, c.len()), (Ok(()), 30));
    }
    // And a kernel may be launched from several threads at once.
    let kernel = kernel(SCALE);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(run(&kernel, 100, -1, 2).0, Ok(()));
                }
            });
        }
    });
}

#[test]
fn text_and_refusal() {
    let module = parsed(SCALE);
    let kernel = compile(&module, &Options { text: true, ..Options::default() }).unwrap();
    let text = kernel.text().unwrap();
    assert!(text.clif.contains("; scale.block\nfunction"), "{}", text.clif);
    let code = ptoc_cpu::listing::print(&text.code, |_| String::new());
    assert!(text.clif.contains("fadd") && code.contains("; scale.launch"), "{code}");
    assert!(kernel.code_size() > 100);
    assert!(super::make::compiled(&module, ptoc_cpu::Vectors::Auto).text().is_none());

    let mut wrong = module.clone();
    wrong.block.body.remove(0);
    let error = compile(&wrong, &Options::default()).unwrap_err();
    assert_eq!(error.code, codes::LOOP_IR_DEFINITION);
    let mut wide = module;
    wide.launch.results = vec![wide.launch.params[0]; 20];
    for _ in 1..20 {
        let reg = wide.block.regs.push(ptoc_ir::loops::RegData { ty: ptoc_ir::loops::LTy::I64 });
        wide.block.params.push(reg);
    }
    assert_eq!(compile(&wide, &Options::default()).unwrap_err().code, codes::KERNEL_TOO_LARGE);
}

#[test]
fn deep_nesting_and_big_bodies_compile() {
    // As deep as the verifier allows; and a body of ten thousand statements.
    let mut body = String::new();
    for n in 0..49 {
        body += &format!("scope l{n} {{\nif r4 {{\n");
    }
    body += &"}\n}\n".repeat(49);
    for n in 0..10_000 {
        body += &format!("r{}: f32 = add r{}, r{}\n", n + 10, n + 9, n + 8);
    }
    let source = format!(
        r#"kernel "deep"
arena 0
launch "l" () {{
}}
block "b" () {{
labels 49
r4: bool = const true
r8: f32 = const 1.0
r9: f32 = const 0.5
{body}}}
"#
    );
    let kernel = kernel(&source);
    let launch = LaunchArgs { params: &[], tensors: &[], threads: 1, print: None };
    assert_eq!(unsafe { kernel.launch(launch) }, Ok(()));
}
