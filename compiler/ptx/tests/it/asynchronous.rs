//! Instructions of Hopper one by one: what they do, in which orders, and what is refused of them.

use ptoc_ptx::sim::{Global, Refusal, SimFault, SimLaunch, Swizzle, TensorMap, Why, run};
use ptoc_ptx::{
    Address, Arith, BodyItem, Builder, Class, Cmp, Op, PtxKernel, Sm90, Space, Special, Src, Symbol, Type, VReg, parse,
    print, verify,
};

const ORDERS: u64 = 12;
/// Where a kernel's barriers lie in shared memory.
const BARRIERS: i32 = 4096;

/// What a body gets.
struct Parts {
    out: VReg,
    thread: VReg,
    shared: VReg,
}

impl Parts {
    fn shared(&self, disp: i32) -> Address {
        Address { disp, ..Address::at(self.shared) }
    }

    fn barrier(&self, n: i32) -> Address {
        self.shared(BARRIERS + 8 * n)
    }

    /// `base + 4 * thread` of shared memory.
    fn word(&self, b: &mut Builder, disp: i32) -> Address {
        let at = b.arith(Arith::MadLo, Type::U32, &[self.thread.into(), Src::Imm(4), self.shared.into()]);
        Address { disp, ..Address::at(at) }
    }

    fn result(&self, b: &mut Builder, value: VReg) {
        let at = b.arith(Arith::MadWide, Type::U32, &[self.thread.into(), Src::Imm(4), self.out.into()]);
        b.st(Space::Global, Type::B32, Address::at(at), value);
    }
}

/// A kernel of 64 threads: `first` is done by thread 0 before a barrier, then all do `body`.
fn kernel(first: impl FnOnce(&mut Builder, &Parts), body: impl FnOnce(&mut Builder, &Parts)) -> PtxKernel {
    let mut b = Builder::new("k", 64);
    b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: Some(8192) });
    let param = b.param("out", Type::U64);
    let out = b.ld(Space::Param, Type::U64, Address::param(param));
    let thread = b.mov(Type::U32, Src::Special(Special::Tid));
    let shared = b.mov(Type::U32, Src::Symbol(0));
    let parts = Parts { out, thread, shared };
    let rest = b.label();
    let zero = b.setp(Cmp::Eq, Type::U32, thread, Src::Imm(0));
    b.bra_if(zero, false, rest);
    first(&mut b, &parts);
    b.place(rest);
    b.push(Op::Bar(0), &[], &[]);
    body(&mut b, &parts);
    b.push(Op::Ret, &[], &[]);
    b.finish()
}

fn init(b: &mut Builder, at: Address, count: u64) {
    b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(at), Src::Imm(count)]);
    b.sm90(Sm90::FenceMbarrierInit, &[], &[]);
}

/// Under the guard that the thread has this number.
fn only(b: &mut Builder, parts: &Parts, thread: u64, body: impl FnOnce(&mut Builder)) {
    let (skip, so) = (b.label(), b.setp(Cmp::Eq, Type::U32, parts.thread, Src::Imm(thread)));
    b.bra_if(so, false, skip);
    body(b);
    b.place(skip);
}

/// One launch; a buffer of 4096 words, of which the first results come back.
fn launch(kernel: &PtxKernel, seed: u64) -> Result<Vec<u32>, SimFault> {
    let mut global = Global::default();
    let words = (0..4096u32).flat_map(|n| n.to_le_bytes()).collect();
    let params = [global.add(words)];
    let (shared, fuel) = (0, 1 << 18);
    let launch =
        SimLaunch { kernel, ctas: 1, shared, params: &params, seed, fuel, races: true, aligned: true, keep_nan: false };
    run(&launch, &mut global)?;
    let text = print(kernel);
    assert_eq!(print(&parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))), text);
    Ok(global.buffers[0].chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))).collect())
}

fn all(kernel: &PtxKernel, want: impl Fn(usize) -> u32) {
    for seed in 0..ORDERS {
        let words = launch(kernel, seed).unwrap_or_else(|e| panic!("{seed}: {e}"));
        (0..64).for_each(|t| assert_eq!(words[t], want(t), "thread {t}, order {seed}"));
    }
}

/// The first fault of some orders.
fn fault(kernel: &PtxKernel) -> SimFault {
    (0..ORDERS).find_map(|seed| launch(kernel, seed).err()).expect("a fault")
}

fn is_race(kernel: &PtxKernel) {
    let fault = fault(kernel);
    assert!(matches!(fault.why, Why::Access(Refusal::Race, _)), "{fault}");
}

fn undefined(kernel: &PtxKernel) -> String {
    let fault = fault(kernel);
    assert!(matches!(fault.why, Why::Undefined(_)), "{fault}");
    fault.to_string()
}

/// Threads of the first warp leave words, those of the second take them, by an `mbarrier` of so many arrivals.
fn handed(count: u64, waits: bool, test: bool) -> PtxKernel {
    kernel(
        |b, p| init(b, p.barrier(0), count),
        |b, p| {
            let second = b.setp(Cmp::Ge, Type::U32, p.thread, Src::Imm(32));
            let (takes, end) = (b.label(), b.label());
            b.bra_if(second, true, takes);
            let at = p.word(b, 0);
            b.st(Space::Shared, Type::B32, at, p.thread);
            b.sm90(Sm90::MbarrierArrive, &[], &[Src::Addr(p.barrier(0)), Src::Imm(1)]);
            p.result(b, p.thread);
            b.bra(end);
            b.place(takes);
            if waits {
                let (again, done) = (b.label(), b.reg(Class::Pred));
                let op = if test { Sm90::MbarrierTestWait } else { Sm90::MbarrierTryWait };
                b.place(again);
                b.sm90(op, &[done], &[Src::Addr(p.barrier(0)), Src::Imm(0)]);
                b.bra_if(done, false, again);
            }
            let at = p.word(b, -128);
            let value = b.ld(Space::Shared, Type::B32, at);
            p.result(b, value);
            b.place(end);
        },
    )
}

#[test]
fn arrivals_order_what_was_before() {
    all(&handed(32, true, false), |t| t as u32 % 32);
    all(&handed(32, true, true), |t| t as u32 % 32);
    is_race(&handed(32, false, false));
    // The phase ends before all are there.
    let few = fault(&handed(31, true, false));
    assert!(matches!(few.why, Why::Access(Refusal::Race, _) | Why::Undefined(_)), "{few}");
    let many = fault(&handed(33, true, false));
    assert_eq!(many.why, Why::Deadlock);
    let text = many.to_string();
    let has = "phase 0 is under way, parity 0 is waited for, 1 of 33 arrivals and 0 bytes are missing";
    assert!(text.contains(has) && text.contains("warp 1 of CTA 0, at"), "{text}");
}

#[test]
fn a_try_that_fails_is_no_wait() {
    // Without the jump back.
    let mut once = handed(32, true, false);
    let wait = Op::Sm90(Sm90::MbarrierTryWait);
    let waits = |item: &BodyItem| matches!(item, BodyItem::Inst(inst) if inst.op == wait);
    let at = once.body.iter().position(waits).expect("a wait");
    once.body.remove(at + 1);
    is_race(&once);
}

/// A bulk copy of 256 bytes from word 1024 on, by thread 0.
fn copied(bytes: u64, fenced: bool, inits: bool) -> PtxKernel {
    kernel(
        |b, p| {
            if inits {
                b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(p.barrier(0)), Src::Imm(1)]);
            }
            if fenced {
                b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
            }
        },
        |b, p| {
            only(b, p, 0, |b| {
                let full = Src::Addr(p.barrier(0));
                b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[full, Src::Imm(bytes)]);
                let from = Src::Addr(Address { disp: 4096, ..Address::at(p.out) });
                b.sm90(Sm90::BulkLoad, &[], &[Src::Addr(p.shared(0)), from, Src::Imm(256), full]);
            });
            b.mbarrier_wait(p.barrier(0), Src::Imm(0));
            let at = p.word(b, 0);
            let value = b.ld(Space::Shared, Type::B32, at);
            p.result(b, value);
        },
    )
}

#[test]
fn bytes_of_a_copy_are_waited_for() {
    all(&copied(256, true, true), |t| 1024 + t as u32);
    let less = fault(&copied(240, true, true)).to_string();
    assert!(less.contains("-16 bytes are missing"), "{less}");
    let none = fault(&copied(0, true, true));
    assert!(matches!(none.why, Why::Access(Refusal::Race, _) | Why::Undefined(_)), "{none}");
    let more = fault(&copied(512, true, true));
    assert!(more.to_string().contains("256 bytes are missing"), "{more}");
    assert!(matches!(fault(&copied(256, false, true)).why, Why::Access(Refusal::Proxy, _)));
    assert!(undefined(&copied(256, true, false)).contains("there is no mbarrier at 0x1000"));
}

/// Threads write shared memory, thread 0 stores it by a bulk copy, and writes its first word again.
fn stored(fence: bool, barrier: bool, wait: Option<bool>, fence_first: bool) -> PtxKernel {
    kernel(
        |_, _| {},
        |b, p| {
            let value = b.arith(Arith::Add, Type::U32, &[p.thread.into(), Src::Imm(7)]);
            let at = p.word(b, 0);
            b.st(Space::Shared, Type::B32, at, value);
            let all = Sm90::FenceProxyAsync(None);
            if fence && fence_first {
                b.sm90(all, &[], &[]);
            }
            if barrier {
                b.push(Op::Bar(0), &[], &[]);
            }
            if fence && !fence_first {
                b.sm90(all, &[], &[]);
            }
            only(b, p, 0, |b| {
                let (to, from) = (Src::Addr(Address::at(p.out)), Src::Addr(p.shared(0)));
                b.sm90(Sm90::BulkStore, &[], &[to, from, Src::Imm(256)]);
                b.sm90(Sm90::BulkCommit, &[], &[]);
                if let Some(read) = wait {
                    b.sm90(Sm90::BulkWait { pending: 0, read }, &[], &[]);
                }
                b.st(Space::Shared, Type::B32, p.shared(0), p.thread);
            });
        },
    )
}

#[test]
fn stores_see_what_is_fenced() {
    for (read, fence_first) in [(true, true), (true, false), (false, true)] {
        all(&stored(true, true, Some(read), fence_first), |t| t as u32 + 7);
    }
    assert!(matches!(fault(&stored(false, true, Some(true), true)).why, Why::Access(Refusal::Proxy, _)));
    is_race(&stored(true, false, Some(true), true));
    // The word is written while the copy reads it.
    is_race(&stored(true, true, None, true));
}

#[test]
fn a_store_by_read_is_not_there_yet() {
    let back = |read: bool| {
        kernel(
            |_, _| {},
            |b, p| {
                only(b, p, 0, |b| {
                    b.st(Space::Shared, Type::B32, p.shared(0), p.shared);
                    b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
                    let (to, from) = (Src::Addr(Address::at(p.out)), Src::Addr(p.shared(0)));
                    b.sm90(Sm90::BulkStore, &[], &[to, from, Src::Imm(16)]);
                    b.sm90(Sm90::BulkCommit, &[], &[]);
                    b.sm90(Sm90::BulkWait { pending: 0, read }, &[], &[]);
                    b.ld(Space::Global, Type::B32, Address::at(p.out));
                });
            },
        )
    };
    assert!((0..ORDERS).all(|seed| launch(&back(false), seed).is_ok()));
    is_race(&back(true));
}

/// Barriers by number: the second warp waits for the first, which does not wait.
/// Each thread brings 16 bytes, of which it reads so many, to another one's place; all look at the barrier.
fn brought(read: u64, waits: bool, fenced: bool) -> PtxKernel {
    let bring = |b: &mut Builder, parts: &Parts| {
        let from = b.arith(Arith::MadWide, Type::U32, &[parts.thread.into(), Src::Imm(16), parts.out.into()]);
        let to = b.arith(Arith::MadLo, Type::U32, &[parts.thread.into(), Src::Imm(16), parts.shared.into()]);
        let srcs = [Src::Addr(Address::at(to)), Src::Addr(Address { disp: 1024, ..Address::at(from) }), Src::Imm(read)];
        b.sm90(Sm90::CpAsync, &[], &srcs);
        b.sm90(Sm90::CpAsyncArrive, &[], &[Src::Addr(parts.barrier(0))]);
        if waits {
            b.mbarrier_wait(parts.barrier(0), Src::Imm(0));
        }
        if fenced {
            b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
        }
        let other = b.arith(Arith::Xor, Type::B32, &[parts.thread.into(), Src::Imm(32)]);
        let at = b.arith(Arith::MadLo, Type::U32, &[other.into(), Src::Imm(16), parts.shared.into()]);
        let value = b.ld(Space::Shared, Type::B32, Address { disp: 12, ..Address::at(at) });
        parts.result(b, value);
    };
    kernel(|b, parts| init(b, parts.barrier(0), 64), bring)
}

/// What a thread brings is there when the `mbarrier` that counts it completes, and behind what it reads are zeros.
#[test]
fn copies_of_threads_are_counted() {
    all(&brought(16, true, false), |n| 1024 / 4 + 4 * (n as u32 ^ 32) + 3);
    all(&brought(12, true, false), |_| 0);
    is_race(&brought(16, false, false));
    let text = print(&brought(16, true, true));
    assert!(text.contains("cp.async.cg.shared.global [") && text.contains("], 16, 16;"), "{text}");
    assert!(undefined(&brought(17, true, false)).contains("17 of 16 bytes are read"));
    let unwaited = kernel(
        |b, parts| init(b, parts.barrier(0), 64),
        |b, parts| {
            let srcs = [Src::Addr(parts.shared(0)), Src::Addr(Address::at(parts.out)), Src::Imm(16)];
            only(b, parts, 0, |b| b.sm90(Sm90::CpAsync, &[], &srcs));
        },
    );
    assert!(undefined(&unwaited).contains("nobody waits for it before the CTA ends"));
}

#[test]
fn named_barriers_have_counts() {
    let apart = |arrives: bool, count: u64| {
        kernel(
            |_, _| {},
            move |b, p| {
                let second = b.setp(Cmp::Ge, Type::U32, p.thread, Src::Imm(32));
                let (takes, end) = (b.label(), b.label());
                b.bra_if(second, true, takes);
                let at = p.word(b, 0);
                b.st(Space::Shared, Type::B32, at, p.thread);
                if arrives {
                    b.sm90(Sm90::BarArrive, &[], &[Src::Imm(3), Src::Imm(64)]);
                }
                p.result(b, p.thread);
                b.bra(end);
                b.place(takes);
                b.sm90(Sm90::BarSync, &[], &[Src::Imm(3), Src::Imm(count)]);
                let at = p.word(b, -128);
                let value = b.ld(Space::Shared, Type::B32, at);
                p.result(b, value);
                b.place(end);
            },
        )
    };
    all(&apart(true, 64), |t| t as u32 % 32);
    is_race(&apart(false, 32));
    let text = fault(&apart(false, 64)).to_string();
    assert!(text.contains("32 of 64 threads are at barrier 3"), "{text}");
    assert!(undefined(&apart(true, 32)).contains("barrier 3 is one of"));
}

#[test]
fn lanes_of_a_warp_meet() {
    let turned = |sync: bool| {
        kernel(
            |_, _| {},
            move |b, p| {
                let at = p.word(b, 0);
                b.st(Space::Shared, Type::B32, at, p.thread);
                if sync {
                    b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(0xffff_ffff)]);
                }
                let other = b.arith(Arith::Xor, Type::B32, &[p.thread.into(), Src::Imm(31)]);
                let at = b.arith(Arith::MadLo, Type::U32, &[other.into(), Src::Imm(4), p.shared.into()]);
                let value = b.ld(Space::Shared, Type::B32, Address::at(at));
                p.result(b, value);
            },
        )
    };
    all(&turned(true), |t| t as u32 ^ 31);
    is_race(&turned(false));
    // One lane is chosen, and it is the same again.
    let elected = kernel(
        |_, _| {},
        |b, p| {
            let count = b.mov(Type::U32, Src::Imm(0));
            for bit in [1, 2] {
                let leads = b.reg(Class::Pred);
                b.sm90(Sm90::ElectSync, &[leads], &[Src::Imm(0xffff_ffff)]);
                let more = b.selp(Type::U32, Src::Imm(bit), Src::Imm(0), leads);
                b.push(Op::Arith(Arith::Or, Type::B32), &[count], &[count.into(), more.into()]);
            }
            p.result(b, count);
        },
    );
    for seed in 0..ORDERS {
        let words = launch(&elected, seed).unwrap_or_else(|e| panic!("{e}"));
        assert!(words[..64].iter().all(|w| *w == 0 || *w == 3));
        assert_eq!(words[..64].iter().filter(|w| **w == 3).count(), 2);
    }
}

/// Matrices through shared memory: stored and loaded, transposed once.
#[test]
fn matrices_are_transposed() {
    for (store, load) in [(false, true), (true, false), (false, false)] {
        let through = kernel(
            |_, _| {},
            |b, p| {
                // Element (r, c) is 8 r + c: two neighbours in a word.
                let row = b.arith(Arith::Shr, Type::U32, &[p.thread.into(), Src::Imm(2)]);
                let row = b.arith(Arith::And, Type::B32, &[row.into(), Src::Imm(7)]);
                let pair = b.arith(Arith::And, Type::B32, &[p.thread.into(), Src::Imm(3)]);
                let low = b.arith(Arith::MulLo, Type::U32, &[pair.into(), Src::Imm(0x0002_0002)]);
                let word = b.arith(Arith::MadLo, Type::U32, &[row.into(), Src::Imm(0x0008_0008), low.into()]);
                let word = b.arith(Arith::Add, Type::U32, &[word.into(), Src::Imm(0x0001_0000)]);
                // Rows of each warp apart.
                let lane = b.arith(Arith::And, Type::B32, &[p.thread.into(), Src::Imm(7)]);
                let warp = b.arith(Arith::Shr, Type::U32, &[p.thread.into(), Src::Imm(5)]);
                let line = b.arith(Arith::MadLo, Type::U32, &[warp.into(), Src::Imm(8), lane.into()]);
                let at = b.arith(Arith::MadLo, Type::U32, &[line.into(), Src::Imm(16), p.shared.into()]);
                let at = Src::Addr(Address::at(at));
                b.sm90(Sm90::StMatrix { count: 1, trans: store }, &[], &[at, word.into()]);
                b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(0xffff_ffff)]);
                let back = b.reg(Class::B32);
                b.sm90(Sm90::LdMatrix { count: 1, trans: load }, &[back], &[at]);
                p.result(b, back);
            },
        );
        all(&through, |t| {
            let (row, column) = (t as u32 % 32 / 4, t as u32 % 4 * 2);
            if store == load {
                (8 * row + column) | ((8 * row + column + 1) << 16)
            } else {
                (8 * column + row) | ((8 * column + 8 + row) << 16)
            }
        });
    }
}

#[test]
fn an_mbarrier_is_not_written() {
    let over = kernel(
        |b, p| {
            init(b, p.barrier(0), 1);
            b.st(Space::Shared, Type::B32, p.barrier(0), p.thread);
        },
        |_, _| {},
    );
    assert!(undefined(&over).contains("a write over the mbarrier at 0x1000"));
    let twice = kernel(
        |b, p| {
            init(b, p.barrier(0), 1);
            init(b, p.barrier(0), 1);
        },
        |_, _| {},
    );
    assert!(undefined(&twice).contains("there is an mbarrier"));
    let again = kernel(
        |b, p| {
            init(b, p.barrier(0), 1);
            b.sm90(Sm90::MbarrierInval, &[], &[Src::Addr(p.barrier(0))]);
            init(b, p.barrier(0), 64);
        },
        |b, p| {
            b.sm90(Sm90::MbarrierArrive, &[], &[Src::Addr(p.barrier(0)), Src::Imm(1)]);
            b.mbarrier_wait(p.barrier(0), Src::Imm(0));
            p.result(b, p.thread);
        },
    );
    all(&again, |t| t as u32);
}

/// A box of a tensor of three dimensions, beyond its edges on all sides, to shared memory and back elsewhere.
#[test]
fn boxes_are_clipped() {
    let mut b = Builder::new("k", 32);
    b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: Some(8192) });
    let (from, to) = (b.tensor_map("from"), b.tensor_map("to"));
    let shared = b.mov(Type::U32, Src::Symbol(0));
    let barrier = Address { disp: BARRIERS, ..Address::at(shared) };
    let thread = b.mov(Type::U32, Src::Special(Special::Tid));
    let (end, first) = (b.label(), b.setp(Cmp::Eq, Type::U32, thread, Src::Imm(0)));
    b.bra_if(first, false, end);
    init(&mut b, barrier, 1);
    let at = [-2i32, 3, 1].map(|x| b.mov(Type::U32, Src::Imm(u64::from(x as u32))));
    b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[Src::Addr(barrier), Src::Imm(16 * 4 * 2 * 4)]);
    let place = Src::Addr(Address::at(shared));
    b.sm90(
        Sm90::TensorLoad(3),
        &[],
        &[place, from.into(), at[0].into(), at[1].into(), at[2].into(), Src::Addr(barrier)],
    );
    b.mbarrier_wait(barrier, Src::Imm(0));
    b.sm90(Sm90::TensorStore(3), &[], &[to.into(), at[0].into(), at[1].into(), at[2].into(), place]);
    b.sm90(Sm90::BulkCommit, &[], &[]);
    b.sm90(Sm90::BulkWait { pending: 0, read: false }, &[], &[]);
    b.place(end);
    b.push(Op::Ret, &[], &[]);
    let kernel = b.finish();
    verify(&kernel).unwrap_or_else(|e| panic!("{e}"));
    for (seed, swizzle) in [(0, Swizzle::None), (1, Swizzle::B64), (2, Swizzle::None), (3, Swizzle::B64)] {
        let mut global = Global::default();
        let words = (0..12 * 5 * 2u32).flat_map(|n| (1 + n).to_le_bytes()).collect();
        let bases = [global.add(words), global.add(vec![0xff; 12 * 5 * 2 * 4])];
        let params = bases.map(|base| {
            let (dims, strides, tile) = (vec![12, 5, 2], vec![48, 240], vec![16, 4, 2]);
            global.add_map(TensorMap { base, dtype: Type::F32, dims, strides, tile, swizzle, tf32: false })
        });
        let (kernel, params, fuel) = (&kernel, &params, 1 << 16);
        let launch =
            SimLaunch { kernel, ctas: 1, shared: 0, params, seed, fuel, races: true, aligned: true, keep_nan: false };
        run(&launch, &mut global).unwrap_or_else(|e| panic!("{swizzle:?}: {e}"));
        for (n, word) in global.buffers[1].chunks(4).enumerate() {
            let (y, z) = (n / 12 % 5, n / 60);
            let want = if y >= 3 && z >= 1 { 1 + n as u32 } else { u32::MAX };
            assert_eq!(word, want.to_le_bytes(), "{n} {swizzle:?}");
        }
    }
}

#[test]
fn maps_are_looked_at() {
    let mut b = Builder::new("k", 32);
    let map = b.tensor_map("map");
    b.sm90(Sm90::PrefetchTensorMap, &[], &[Src::Addr(Address::at(map))]);
    b.push(Op::Ret, &[], &[]);
    let kernel = b.finish();
    let start = |change: fn(&mut TensorMap)| {
        let mut global = Global::default();
        let base = global.add(vec![0; 4096]);
        let (dims, strides, tile) = (vec![64, 16], vec![128], vec![64, 8]);
        let mut map = TensorMap { base, dtype: Type::F16, dims, strides, tile, swizzle: Swizzle::B128, tf32: false };
        change(&mut map);
        let (kernel, params, fuel) = (&kernel, &[global.add_map(map)], 1 << 10);
        let (races, aligned) = (true, true);
        let launch = SimLaunch { kernel, ctas: 1, shared: 0, params, seed: 0, fuel, races, aligned, keep_nan: false };
        run(&launch, &mut global).map_err(|fault| fault.to_string())
    };
    assert!(start(|_| {}).is_ok());
    let message = start(|map| map.strides[0] = 130).expect_err("the driver refuses it");
    assert!(message.contains("`map`: a tensor map has strides that are multiples of 16"), "{message}");
}
