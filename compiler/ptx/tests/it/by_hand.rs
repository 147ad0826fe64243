//! Kernels by hand: what the verifier says of them, how they are printed, what the interpreter makes of them.

use ptoc_ptx::sim::{Global, Refusal, SimFault, SimLaunch, Stats, Why, run};
use ptoc_ptx::{
    Address, Arith, AtomOp, Builder, Class, Cmp, Op, PtxKernel, Round, Shfl, Sm90, Space, Special, Src, Symbol, Type,
    VReg, parse, print, verify,
};

/// A kernel of 64 threads with one parameter, the address of an array; `body` gets the address and the thread.
fn kernel(body: impl FnOnce(&mut Builder, VReg, VReg)) -> PtxKernel {
    let mut b = Builder::new("k", 64);
    let smem = Symbol { name: "smem".into(), space: Space::Shared, align: 16, size: Some(256) };
    b.symbol(smem);
    let param = b.param("k_0", Type::U64);
    let address = b.ld(Space::Param, Type::U64, Address::param(param));
    let tid = b.mov(Type::U32, Src::Special(Special::Tid));
    body(&mut b, address, tid);
    b.push(Op::Ret, &[], &[]);
    b.finish()
}

/// `base + 4 * index`
fn element(b: &mut Builder, base: VReg, index: VReg) -> Address {
    Address::at(b.arith(Arith::MadWide, Type::U32, &[index.into(), Src::Imm(4), base.into()]))
}

fn launch(kernel: &PtxKernel, ctas: u32, seed: u64, words: usize) -> Result<(Vec<u32>, Stats), SimFault> {
    let mut global = Global::default();
    let params = [global.add(vec![0; 4 * words])];
    let launch = SimLaunch {
        kernel,
        ctas,
        shared: 0,
        params: &params,
        seed,
        fuel: 1 << 20,
        races: true,
        aligned: true,
        keep_nan: false,
    };
    let stats = run(&launch, &mut global)?;
    let words = global.buffers[0].chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")));
    Ok((words.collect(), stats))
}

/// Each thread leaves its number in shared memory and takes that of the thread 63 - t.
fn exchange(barrier: bool) -> PtxKernel {
    kernel(|b, out, tid| {
        let smem = b.mov(Type::U32, Src::Symbol(0));
        let here = b.arith(Arith::MadLo, Type::U32, &[tid.into(), Src::Imm(4), smem.into()]);
        b.st(Space::Shared, Type::B32, Address::at(here), tid);
        if barrier {
            b.push(Op::Bar(0), &[], &[]);
        }
        let other = b.arith(Arith::Sub, Type::U32, &[Src::Imm(63), tid.into()]);
        let there = b.arith(Arith::MadLo, Type::U32, &[other.into(), Src::Imm(4), smem.into()]);
        let value = b.ld(Space::Shared, Type::B32, Address::at(there));
        let at = element(b, out, tid);
        b.st(Space::Global, Type::B32, at, value);
    })
}

#[test]
fn barriers_order_shared_memory() {
    let whole = exchange(true);
    for seed in 0..20 {
        let (words, stats) = launch(&whole, 1, seed, 64).unwrap_or_else(|e| panic!("{e}"));
        assert!((0..64).all(|t| words[t] == 63 - t as u32), "order {seed}");
        assert_eq!(stats.barriers, 1);
    }
    let without = exchange(false);
    for seed in 0..20 {
        let fault = launch(&without, 1, seed, 64).expect_err("a race");
        assert!(matches!(fault.why, Why::Access(Refusal::Race, _)), "{fault}");
        assert!(fault.to_string().contains(".shared"), "{fault}");
    }
}

#[test]
fn ctas_race_unless_they_are_atomic() {
    let same = |atomic: bool| {
        kernel(move |b, out, tid| {
            let first = b.setp(Cmp::Eq, Type::U32, tid, Src::Imm(0));
            b.guard = Some((first, true));
            if atomic {
                let old = b.reg(Class::B32);
                let add = Op::Atom(Space::Global, AtomOp::Add, Type::U32);
                b.push(add, &[old], &[Src::Addr(Address::at(out)), Src::Imm(1)]);
            } else {
                b.st(Space::Global, Type::B32, Address::at(out), tid);
            }
            b.guard = None;
        })
    };
    assert_eq!(launch(&same(true), 7, 1, 1).map(|r| r.0), Ok(vec![7]));
    let fault = launch(&same(false), 2, 1, 1).expect_err("a race");
    assert!(matches!(fault.why, Why::Access(Refusal::Race, _)), "{fault}");
}

/// Both accesses are named: what races, and what came before.
#[test]
fn a_race_has_a_witness() {
    let faults = (0..8).filter_map(|seed| launch(&exchange(false), 1, seed, 64).err());
    let fault = faults.max_by_key(|fault| fault.to_string().len()).expect("a race");
    let (thread, other) = (fault.thread.expect("a thread"), fault.other.clone().expect("a witness"));
    assert_ne!(thread, other.thread);
    assert_eq!(thread.1 + other.thread.1, 63, "the thread that it takes the number from: {fault}");
    let text = fault.to_string();
    assert!(
        text.contains("`st.shared.b32 ") && text.contains("`ld.shared.b32 ") && text.contains(", with the "),
        "{text}"
    );
}

/// A swap of a word that changes one byte races with stores to that byte, and with no others.
#[test]
fn swaps_of_words_leave_neighbours_alone() {
    let update = |disp: i32| {
        kernel(move |b, out, _| {
            let cta = b.mov(Type::U32, Src::Special(Special::Ctaid));
            let first = b.setp(Cmp::Eq, Type::U32, cta, Src::Imm(0));
            let other = b.label();
            b.bra_if(first, false, other);
            let old = b.reg(Class::B32);
            let swap = Op::Atom(Space::Global, AtomOp::Cas, Type::B32);
            b.push(swap, &[old], &[Src::Addr(Address::at(out)), Src::Imm(0), Src::Imm(7)]);
            b.push(Op::Ret, &[], &[]);
            b.place(other);
            let tid = b.mov(Type::U32, Src::Special(Special::Tid));
            let zero = b.setp(Cmp::Eq, Type::U32, tid, Src::Imm(0));
            let one = b.mov(Type::B32, Src::Imm(1));
            b.guard = Some((zero, true));
            b.st(Space::Global, Type::B8, Address { disp, ..Address::at(out) }, one);
            b.guard = None;
        })
    };
    for seed in 0..8 {
        let (words, _) = launch(&update(1), 2, seed, 1).unwrap_or_else(|e| panic!("{e}"));
        // The swap fails where the neighbour was first: it is in a loop for that.
        assert!(words == [0x107] || words == [0x100], "{words:x?}");
        let fault = launch(&update(0), 2, seed, 1).expect_err("a race");
        assert!(matches!(fault.why, Why::Access(Refusal::Race, _)), "{fault}");
    }
}

#[test]
fn accesses_are_held_to_bounds_and_alignment() {
    let at = |disp: i32| {
        kernel(move |b, out, _| {
            b.ld(Space::Global, Type::B32, Address { disp, ..Address::at(out) });
        })
    };
    assert!(launch(&at(4), 1, 0, 2).is_ok());
    for (disp, want) in [(8, Refusal::Bounds), (-4, Refusal::Bounds), (5, Refusal::Bounds), (2, Refusal::Alignment)] {
        let fault = launch(&at(disp), 1, 0, 2).expect_err("refused");
        assert!(matches!(fault.why, Why::Access(refusal, _) if refusal == want), "{disp}: {fault}");
    }
}

#[test]
fn shuffles_wait_for_their_members() {
    let sum = kernel(|b, out, tid| {
        // Odd lanes come another way.
        let odd = b.arith(Arith::And, Type::B32, &[tid.into(), Src::Imm(1)]);
        let odd = b.setp(Cmp::Ne, Type::U32, odd, Src::Imm(0));
        let value = b.mov(Type::B32, tid);
        let meet = b.label();
        b.bra_if(odd, false, meet);
        b.push(Op::Arith(Arith::Add, Type::U32), &[value], &[value.into(), Src::Imm(100)]);
        b.place(meet);
        for distance in [16, 8, 4, 2, 1] {
            let other = b.reg(Class::B32);
            let srcs = [value.into(), Src::Imm(distance), Src::Imm(31), Src::Imm(0xffff_ffff)];
            b.push(Op::Shfl(Shfl::Bfly), &[other], &srcs);
            b.push(Op::Arith(Arith::Add, Type::U32), &[value], &[value.into(), other.into()]);
        }
        let at = element(b, out, tid);
        b.st(Space::Global, Type::B32, at, value);
    });
    for seed in 0..10 {
        let (words, _) = launch(&sum, 1, seed, 64).unwrap_or_else(|e| panic!("{e}"));
        assert!(words[..32].iter().all(|w| *w == 31 * 16 + 1600) && words[32..].iter().all(|w| *w == 95 * 16 + 1600));
    }
}

#[test]
fn threads_vote_at_a_barrier() {
    // Each turn's vote: of the last thread, of none, of all but the first; threads tell what they were told.
    let votes = kernel(|b, out, tid| {
        let told = b.mov(Type::B32, Src::Imm(0));
        let bounds = [(Cmp::Eq, 63), (Cmp::Gt, 63), (Cmp::Gt, 0)];
        for (turn, (cmp, n)) in bounds.into_iter().enumerate() {
            let vote = b.setp(cmp, Type::U32, tid, Src::Imm(n));
            let any = b.reg(Class::Pred);
            b.push(Op::BarOr(0), &[any], &[vote.into()]);
            let bit = b.selp(Type::B32, Src::Imm(1 << turn), Src::Imm(0), any);
            b.push(Op::Arith(Arith::Or, Type::B32), &[told], &[told.into(), bit.into()]);
        }
        let at = element(b, out, tid);
        b.st(Space::Global, Type::B32, at, told);
    });
    assert!(print(&votes).contains("bar.red.or.pred %p1, 0, %p0;"), "{}", print(&votes));
    for seed in 0..10 {
        let (words, _) = launch(&votes, 1, seed, 64).unwrap_or_else(|e| panic!("{e}"));
        assert!(words.iter().all(|w| *w == 0b101), "{words:?}");
    }
    // A barrier with a vote and one without are two.
    let apart = kernel(|b, _, tid| {
        let low = b.setp(Cmp::Lt, Type::U32, tid, Src::Imm(32));
        let any = b.reg(Class::Pred);
        b.guard = Some((low, true));
        b.push(Op::Bar(0), &[], &[]);
        b.guard = Some((low, false));
        b.push(Op::BarOr(0), &[any], &[low.into()]);
        b.guard = None;
    });
    assert_eq!(launch(&apart, 1, 0, 1).expect_err("they wait").why, Why::Deadlock);
}

#[test]
fn threads_that_wait_for_ever() {
    let apart = kernel(|b, _, tid| {
        let low = b.setp(Cmp::Lt, Type::U32, tid, Src::Imm(32));
        b.guard = Some((low, true));
        b.push(Op::Bar(1), &[], &[]);
        b.guard = Some((low, false));
        b.push(Op::Bar(2), &[], &[]);
        b.guard = None;
    });
    assert_eq!(launch(&apart, 1, 0, 1).expect_err("they wait").why, Why::Deadlock);
    let endless = kernel(|b, _, _| {
        let head = b.label();
        b.place(head);
        b.bra(head);
    });
    assert_eq!(launch(&endless, 1, 0, 1).expect_err("it has no end").why, Why::Fuel);
}

#[test]
fn vectors_of_elements() {
    let copy = kernel(|b, out, tid| {
        let first = b.setp(Cmp::Eq, Type::U32, tid, Src::Imm(0));
        b.guard = Some((first, true));
        let regs: Vec<VReg> = (0..4).map(|_| b.reg(Class::B32)).collect();
        regs.iter().zip(5..).for_each(|(r, n)| b.set(*r, Type::B32, Src::Imm(n)));
        b.guard = None;
        for reg in &regs {
            b.set(*reg, Type::B32, tid);
        }
        b.guard = Some((first, true));
        let mut srcs = vec![Src::Addr(Address::at(out))];
        srcs.extend(regs.iter().map(|r| Src::Reg(*r)));
        b.push(Op::St(Space::Global, Type::B32), &[], &srcs);
        b.guard = None;
    });
    assert!(print(&copy).contains("st.global.v4.b32 [%d0], {%r1, %r2, %r3, %r4};"), "{}", print(&copy));
    assert_eq!(launch(&copy, 1, 0, 4).map(|r| r.0), Ok(vec![0; 4]));
    let fault = launch(&copy, 1, 0, 3).expect_err("it has three");
    assert!(matches!(fault.why, Why::Access(Refusal::Bounds, _)), "{fault}");
}

/// The verifier's message for a kernel.
fn refused(body: impl FnOnce(&mut Builder, VReg, VReg)) -> String {
    verify(&kernel(body)).expect_err("it is refused").to_string()
}

#[test]
fn the_verifier_knows_types() {
    let message = refused(|b, address, tid| {
        b.arith(Arith::Add, Type::U32, &[address.into(), tid.into()]);
    });
    assert!(message.contains("add.u32 %r1, %d0, %r0"), "{message}");
    let message = refused(|b, _, tid| {
        b.arith(Arith::AddF, Type::F32, &[tid.into(), tid.into()]);
    });
    assert!(message.contains("add.rn.f32"), "{message}");
    let message = refused(|b, _, tid| {
        b.arith(Arith::AddF, Type::U32, &[tid.into(), tid.into()]);
    });
    assert!(message.contains("there is no such instruction"), "{message}");
    // A conversion that may round says how.
    let message = refused(|b, _, tid| {
        b.cvt(Type::F32, Type::U32, Round::None, tid);
    });
    assert!(message.contains("there is no such instruction"), "{message}");
    let message = refused(|b, _, tid| {
        b.guard = Some((tid, true));
        b.push(Op::Bar(0), &[], &[]);
        b.guard = None;
    });
    assert!(message.contains("the guard is no predicate"), "{message}");
    let message = refused(|b, _, tid| {
        b.ld(Space::Global, Type::B32, Address::at(tid));
    });
    assert!(message.contains("Addr(Global) is wanted"), "{message}");
}

/// A warp-group that asks for more registers than others of its CTA give up waits for ever.
#[test]
fn the_verifier_counts_registers_that_move() {
    let moves = |resident, more| {
        let mut b = Builder::new("moves", 256);
        b.sm90(Sm90::SetMaxReg { inc: false, count: 40 }, &[], &[]);
        b.sm90(Sm90::SetMaxReg { inc: true, count: more }, &[], &[]);
        b.push(Op::Ret, &[], &[]);
        PtxKernel { resident: Some(resident), ..b.finish() }
    };
    // An equal share of three CTAs is 80 for each thread, of two 128.
    assert_eq!([verify(&moves(3, 120)), verify(&moves(2, 216))], [Ok(()), Ok(())]);
    for (resident, more, there) in [(3, 128, 160), (2, 224, 256)] {
        let message = verify(&moves(resident, more)).expect_err("too many").to_string();
        assert!(message.contains(&format!("the CTA has {there}")), "{message}");
    }
}

#[test]
fn the_verifier_knows_labels() {
    let message = refused(|b, _, _| {
        let nowhere = b.label();
        b.bra(nowhere);
    });
    assert!(message.contains("bra $L0"), "{message}");
    let message = refused(|b, _, _| {
        let twice = b.label();
        b.place(twice);
        b.place(twice);
    });
    assert!(message.contains("stands in two places"), "{message}");
    let mut falls = exchange(true);
    falls.body.pop();
    assert!(verify(&falls).expect_err("no end").to_string().contains("does not end the kernel"));
}

#[test]
fn the_verifier_knows_what_has_a_value() {
    let message = refused(|b, _, tid| {
        let never = b.reg(Class::B32);
        b.arith(Arith::Add, Type::U32, &[tid.into(), never.into()]);
    });
    assert!(message.contains("has no value on some way here"), "{message}");
    // Defined on one of two ways.
    let one_way = |both: bool| {
        kernel(move |b, _, tid| {
            let low = b.setp(Cmp::Lt, Type::U32, tid, Src::Imm(3));
            let value = b.reg(Class::B32);
            let (other, join) = (b.label(), b.label());
            b.bra_if(low, true, other);
            b.set(value, Type::B32, tid);
            b.bra(join);
            b.place(other);
            if both {
                b.set(value, Type::B32, Src::Imm(0));
            }
            b.place(join);
            b.arith(Arith::Add, Type::U32, &[tid.into(), value.into()]);
        })
    };
    assert_eq!(verify(&one_way(true)), Ok(()));
    assert!(verify(&one_way(false)).expect_err("one way has none").to_string().contains("on some way here"));
    // What a guard may have left out.
    let message = refused(|b, _, tid| {
        let low = b.setp(Cmp::Lt, Type::U32, tid, Src::Imm(3));
        let value = b.reg(Class::B32);
        b.guard = Some((low, true));
        b.set(value, Type::B32, tid);
        b.guard = None;
        b.arith(Arith::Add, Type::U32, &[tid.into(), value.into()]);
    });
    assert!(message.contains("has no value on some way here"), "{message}");
}

#[test]
fn the_text_of_a_kernel() {
    let text = print(&exchange(true));
    let want = "\
.version 8.3
.target sm_90a
.address_size 64

.visible .entry k(
    .param .u64 k_0
)
.maxntid 64, 1, 1
{
    .reg .b32 %r<6>;
    .reg .b64 %d<2>;
    .shared .align 16 .b8 smem[256];
    ld.param.u64 %d0, [k_0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, smem;
    mad.lo.u32 %r2, %r0, 4, %r1;
    st.shared.b32 [%r2], %r0;
    bar.sync 0;
    sub.u32 %r3, 63, %r0;
    mad.lo.u32 %r4, %r3, 4, %r1;
    ld.shared.b32 %r5, [%r4];
    mad.wide.u32 %d1, %r0, 4, %d0;
    st.global.b32 [%d1], %r5;
    ret;
}
";
    assert_eq!(text, want);
}

/// What is printed is read, and prints as before; what it does is the same.
#[test]
fn text_is_read_again() {
    for kernel in [exchange(true), exchange(false)] {
        let text = print(&kernel);
        let again = parse(&text).expect("its own text");
        verify(&again).expect("well formed");
        assert_eq!(print(&again), text);
    }
    let again = parse(&print(&exchange(true))).expect("its own text");
    let (words, _) = launch(&again, 1, 7, 64).expect("it ends");
    assert_eq!(words, (0..64).rev().collect::<Vec<u32>>());
}

/// A text that is not the printer's is refused, with its line.
#[test]
fn other_text_is_refused() {
    let text = print(&exchange(true));
    for (from, to, line_has) in [
        ("bar.sync 0", "bar.arrive 0", "bar.arrive"),
        ("mov.u32 %r0, %tid.x", "mov.u32 %r99, %tid.x", "%r99"),
        ("ld.shared.b32", "ld.shared.v3.b32", "v3"),
        ("ret;", "ret", "ret"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let text = text.replacen(from, to, 1);
        let error = parse(&text).expect_err("not PTX as it is printed");
        let line = text.lines().nth(error.line - 1).expect("a line");
        assert!(line.contains(line_has), "{error}: {line}");
    }
    assert!(parse("").is_err() && parse(".version 8.3\n").is_err());
}
