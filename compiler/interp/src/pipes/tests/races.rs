//! Races of every kind, and what orders pipes.

use super::{kernel, launch, message, orders, pipes, says, verdict};
use crate::Order;

const HEAD: &str = "tile a 0x0\ntile b 0x100\nevent lv MTE2 V\nevent vs V MTE3\nevent vl V MTE2\nevent sl MTE3 MTE2\n";

fn body(lines: &str) -> String {
    format!("{HEAD}{lines}")
}

#[test]
fn read_after_write() {
    assert_eq!(says(&body("load a 0\nmuls b a")), "PA-1120@8,7");
    assert_eq!(says(&body("load a 0\nset lv\nwait lv\nmuls b a")), "fine");
    let text = message(&body("load a 0\nmuls b a"));
    assert_eq!(text, "V reads element (0, 0) of tile `a` that MTE2 may still be writing (read after write)");
    // A flag between other pipes does not help, one that goes round does.
    assert_eq!(says(&body("load a 0\nset lv\nwait lv\nmuls b a\nstore 0 b")), "PA-1120@11,10");
    assert_eq!(says(&body("load a 0\nset lv\nwait lv\nset vs\nwait vs\nstore 0 a")), "fine");
}

#[test]
fn write_after_read_and_after_write() {
    let first = "load a 0\nset lv\nwait lv\nmuls b a\n";
    assert_eq!(says(&body(&format!("{first}load a 1"))), "PA-1121@11,10");
    assert_eq!(says(&body(&format!("{first}set vl\nwait vl\nload a 1"))), "fine");
    assert_eq!(says(&body(&format!("{first}load b 1"))), "PA-1122@11,10");
    // The last write is ordered after the first by its pipe; the read in between is not.
    assert_eq!(says(&body("load a 0\nset lv\nload a 1\nwait lv\nmuls b a")), "PA-1120@11,9");
}

/// Bytes decide, not names: a tile over half of another one.
#[test]
fn tiles_that_share_bytes() {
    let script = |at: &str, rest: &str| format!("tile a 0x0\ntile b 0x400\ntile c {at}\nevent lv MTE2 V\n{rest}");
    let rest = "load a 0\nset lv\nload c 1\nwait lv\nmuls b a";
    assert_eq!(says(&script("0x100", rest)), "fine");
    assert_eq!(says(&script("0xe0", rest)), "PA-1120@9,7");
    let trap = verdict(&kernel(&script("0xe0", rest))).expect("a race");
    assert_eq!(trap.message, "V reads element (0, 56) of tile `a` that MTE2 may still be writing (read after write)");
    assert_eq!(trap.notes, ["they meet at byte 0xe0 of Vec, for the other element (0, 0) of tile `c`"]);
    assert_eq!(trap.labels[0].1, "MTE2 writes it here (TLOAD), and nothing orders the two");
    assert_eq!(trap.label, "V reads it here (TMULS)");
}

/// V of a2a3 does not wait for itself; other pipes do.
#[test]
fn one_pipe_and_itself() {
    let first = "load a 0\nset lv\nwait lv\nmuls b a\n";
    assert_eq!(says(&body(&format!("{first}muls a b"))), "PA-1120@11,10");
    assert_eq!(says(&body(&format!("{first}barrier V\nmuls a b"))), "fine");
    assert_eq!(says(&body(&format!("{first}barrier\nmuls a b"))), "fine");
    assert_eq!(says(&body(&format!("{first}barrier MTE2\nmuls a b"))), "PA-1120@12,10");
    assert_eq!(says(&body(&format!("{first}muls b a"))), "PA-1122@11,10");
    // A chain that leaves V and comes back.
    assert_eq!(says(&body(&format!("{first}set vl\nwait vl\nset lv\nwait lv\nmuls a b"))), "fine");
    // One that left before does not cover it.
    let early = "load a 0\nset lv\nwait lv\nset vl\nmuls b a\nwait vl\nset lv\nwait lv\nmuls a b";
    assert_eq!(says(&body(early)), "PA-1120@15,11");
    assert_eq!(says(&body("load a 0\nload a 1\nset lv\nwait lv\nmuls b a")), "fine");
    // Its own read does not hide the one before.
    assert_eq!(says(&body("load a 0\nset lv\nwait lv\nmuls b a\nmuls a a")), "PA-1121@11,10");
    // In place is one instruction.
    assert_eq!(says(&body("load a 0\nset lv\nwait lv\nmuls a a")), "fine");
    assert!(message(&body(&format!("{first}muls a b"))).starts_with("V reads"));
}

#[test]
fn barriers_order_the_pipes_of_the_issuer() {
    assert_eq!(says(&body("load a 0\nbarrier\nmuls b a\nbarrier\nstore 0 b")), "fine");
    assert_eq!(says(&body("load a 0\nbarrier MTE2\nmuls b a")), "PA-1120@9,7");
    let roles = "role p\nrole q\nrole p {\nload a 0\nbarrier\n}\nrole q {\nmuls b a\n}";
    assert_eq!(says(&body(roles)), "PA-1120@14,10");
    assert_eq!(says(&body(&roles.replace("barrier", "set lv").replace("muls", "wait lv\nmuls"))), "fine");
}

/// S reads before it issues what follows, and writes through a cache.
#[test]
fn the_issuer() {
    let s = "tile a 0x0\ntile b 0x100\nevent ls MTE2 S\nevent sv S V\nevent lv MTE2 V\nevent vs V S\n";
    let says = |lines: &str| says(&format!("{s}{lines}"));
    assert_eq!(says("load a 0\nget a"), "PA-1120@8,7");
    assert_eq!(says("load a 0\nprint a"), "PA-1120@8,7");
    assert_eq!(says("load a 0\nset ls\nwait ls\nget a\nload a 1"), "fine");
    // A wait of the issuer comes before all that is issued after it.
    assert_eq!(says("load a 0\nset ls\nwait ls\nget a\nload a 1\nset ls\nwait ls\nget a"), "fine");
    // But what it wrote is not known by that.
    let written = "load a 0\nset ls\nwait ls\nput a\nload b 0\nset ls\nwait ls\nmuls b a";
    assert_eq!(says(written), "PA-1120@14,10");
    // Also what another pipe does after the issuer waited.
    assert_eq!(says("load a 0\nset ls\nwait ls\nmuls b a"), "fine");
    let put = "load a 0\nset ls\nwait ls\nput a\n";
    assert_eq!(says(&format!("{put}get a")), "fine");
    assert_eq!(says(&format!("{put}muls b a")), "PA-1120@11,10");
    assert_eq!(says(&format!("{put}set sv\nwait sv\nmuls b a")), "fine");
    assert_eq!(says(&format!("{put}load a 1")), "PA-1122@11,10");
    assert_eq!(says(&format!("{put}barrier\nload a 1")), "fine");
    assert_eq!(says("load a 0\nset lv\nwait lv\nmuls b a\nput a"), "PA-1122@11,7");
}

#[test]
fn tensors() {
    let s = "tile a 0x0\ntile b 0x100\nevent ls MTE2 MTE3\nevent sl MTE3 MTE2\n";
    let says = |lines: &str| says(&format!("{s}{lines}"));
    let store = "load a 0\nset ls\nwait ls\nstore 0 a\n";
    assert_eq!(says(&format!("{store}reload b 0")), "PA-1120@9,8");
    assert_eq!(says(&format!("{store}reload b 1")), "fine");
    assert_eq!(says(&format!("{store}set sl\nwait sl\nreload b 0")), "fine");
    assert_eq!(says("reload a 0\nset ls\nwait ls\natomic 0 a\natomic 0 a\nset sl\nwait sl\nreload b 0"), "fine");
    assert_eq!(says("reload a 0\nset ls\nreload b 0\nwait ls\natomic 0 a"), "PA-1121@9,7");
}

/// What is reported says how far apart the iterations are.
#[test]
fn iterations() {
    let script = body("for i 4 {\nload a i\nset lv\nwait lv\nmuls b a\n}");
    let trap = verdict(&kernel(&script)).expect("a race");
    assert_eq!((trap.code.as_str(), trap.span.start, trap.labels[0].0.start), ("PA-1121", 8, 11));
    assert_eq!(trap.notes[1], "the second is 1 iteration of the loop later");
}

/// The order is felt: a race gives other bits.
#[test]
fn orders_differ_where_pipes_race() {
    let k = kernel(&body("load a 0\nload b 1\nset lv\nwait lv\nmuls b b\nset vs\nload a 2\nwait vs\nstore 0 a"));
    assert_eq!(verdict(&k).map(|t| (t.code.as_str(), t.span.start)), Some(("PA-1120", 15)));
    // An unordered print comes before what it should show.
    let k = kernel("tile a 0x0\nload a 0\nprint a");
    for order in orders() {
        let (result, _, printed) = launch(&k, Some(pipes(order)));
        assert!(result.is_err());
        assert!(order != Order::Late || printed.is_empty());
    }
}

/// Without an address there are no bytes to meet at.
#[test]
fn physical_kernels_only() {
    let mut k = kernel("tile a 0x0\nload a 0");
    for (_, tile) in &mut k.tiles {
        tile.addr = ptoc_ir::tile::AddrKind::Auto;
    }
    let trap = launch(&k, Some(pipes(Order::Program))).0.expect_err("no address");
    assert_eq!(trap.code.as_str(), "PA-1129");
}
