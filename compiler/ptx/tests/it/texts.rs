//! The text of every instruction of Hopper but those of products, which `products.rs` has.

use ptoc_ptx::{
    AddrBase, Address, Builder, Class, Op, OperandClass, PtxKernel, Sm90, Space, Src, Symbol, Type, parse, print,
    verify,
};

/// One of each.
fn all() -> Vec<Sm90> {
    let mut all = vec![
        Sm90::MbarrierInit,
        Sm90::MbarrierArrive,
        Sm90::MbarrierArriveExpectTx,
        Sm90::MbarrierExpectTx,
        Sm90::MbarrierTryWait,
        Sm90::MbarrierTestWait,
        Sm90::MbarrierInval,
        Sm90::BulkLoad,
        Sm90::BulkStore,
        Sm90::BulkCommit,
        Sm90::BulkWait { pending: 2, read: true },
        Sm90::BulkWait { pending: 0, read: false },
        Sm90::FenceProxyAsync(None),
        Sm90::FenceProxyAsync(Some(Space::Shared)),
        Sm90::FenceProxyAsync(Some(Space::Global)),
        Sm90::FenceMbarrierInit,
        Sm90::SetMaxReg { inc: true, count: 232 },
        Sm90::SetMaxReg { inc: false, count: 24 },
        Sm90::BarSync,
        Sm90::BarArrive,
        Sm90::BarWarpSync,
        Sm90::ElectSync,
        Sm90::PrefetchTensorMap,
        Sm90::MbarrierArriveCluster,
        Sm90::Mapa,
        Sm90::ClusterArrive,
        Sm90::ClusterWait,
    ];
    all.extend((1..=5).flat_map(|n| [Sm90::TensorLoad(n), Sm90::TensorMulticast(n), Sm90::TensorStore(n)]));
    for (count, trans) in [(1, false), (2, true), (4, false), (4, true)] {
        all.extend([Sm90::LdMatrix { count, trans }, Sm90::StMatrix { count, trans }]);
    }
    all
}

fn kernel() -> PtxKernel {
    let mut b = Builder::new("every", 128);
    let smem = b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: Some(4096) });
    let map = b.tensor_map("map");
    let out = b.param("out", Type::U64);
    let out = b.ld(Space::Param, Type::U64, Address::param(out));
    let word = b.mov(Type::U32, Src::Imm(64));
    let mask = b.mov(Type::B16, Src::Imm(1));
    for op in all() {
        let form = Op::Sm90(op).form().unwrap_or_else(|| panic!("{op:?}"));
        let class = |kind: &OperandClass| if let OperandClass::Reg(class) = kind { *class } else { Class::B32 };
        let dsts: Vec<_> = form.dsts.iter().map(|kind| b.reg(class(kind))).collect();
        let srcs = form.srcs.iter().map(|kind| match kind {
            OperandClass::Addr(Space::Shared) => Src::Addr(Address { base: AddrBase::Symbol(smem), disp: 16 }),
            OperandClass::Addr(_) if op == Sm90::PrefetchTensorMap => Src::Addr(Address::at(map)),
            OperandClass::Addr(_) => Src::Addr(Address::at(out)),
            OperandClass::Reg(Class::B64) => map.into(),
            OperandClass::Reg(Class::B16) => mask.into(),
            _ => word.into(),
        });
        let srcs: Vec<Src> = srcs.collect();
        b.sm90(op, &dsts, &srcs);
    }
    b.push(Op::Ret, &[], &[]);
    PtxKernel { resident: Some(1), ..b.finish() }
}

#[test]
fn every_instruction_is_read_again() {
    let kernel = kernel();
    verify(&kernel).unwrap_or_else(|e| panic!("{e}"));
    let text = print(&kernel);
    let again = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(print(&again), text);
    assert!(again.insts().zip(kernel.insts()).all(|(a, b)| a.op == b.op));
    if let Some(folder) = std::env::var_os("PTX_DUMP") {
        std::fs::write(std::path::Path::new(&folder).join("hopper_every.ptx"), text).expect("it is written");
    }
}

/// Texts that are none of these, and say so.
#[test]
fn others_are_refused() {
    let text = print(&kernel());
    for (from, to) in [
        ("mbarrier.arrive.shared::cta.b64 _,", "mbarrier.arrive.shared::cta.b64 %r0,"),
        ("elect.sync _|", "elect.sync "),
        ("cp.async.bulk.wait_group.read 2", "cp.async.bulk.wait_group.read %r0"),
        ("tensor.2d.shared", "tensor.6d.shared"),
        ("setmaxnreg.dec.sync.aligned.u32 24", "setmaxnreg.dec.sync.aligned.u32 25"),
        ("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {", "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 ("),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let changed = text.replacen(from, to, 1);
        let error = parse(&changed).expect_err(to);
        assert!(changed.lines().nth(error.line - 1).is_some_and(|line| line.contains(to)), "{error}");
    }
    // Another number of results than the instruction has.
    let matrix = |what: &str, with: &str| verify(&parse(&text.replacen(what, with, 1)).expect("it reads so"));
    let message = matrix("m8n8.x2.trans.shared.b16 {", "m8n8.x1.trans.shared.b16 {").expect_err("one result");
    assert!(message.to_string().contains("1 results"), "{message}");
}
