//! Flags: waits that never end, sets that are lost, and what is left over.

use super::{kernel, message, says, verdict};

const HEAD: &str = "tile a 0x0 0x100\ntile b 0x200 0x300\nevent full MTE2 V 2\nevent empty V MTE2 2\n\
    event ready V MTE3 2\nevent done MTE3 V 2\n";

/// A double buffer by flags; `edit` changes it.
fn buffered(edit: impl Fn(String) -> String) -> String {
    let body = "\
set empty[0]
set empty[1]
set done[0]
set done[1]
for j 6 {
mod k j 2
wait empty[k]
load a[k] j
set full[k]
wait full[k]
wait done[k]
muls b[k] a[k]
set empty[k]
set ready[k]
wait ready[k]
store j b[k]
set done[k]
}
wait empty[0]
wait empty[1]
wait done[0]
wait done[1]";
    format!("{HEAD}{}", edit(body.to_owned()))
}

#[test]
fn a_double_buffer() {
    assert_eq!(says(&buffered(|s| s)), "fine");
}

/// Every single synchronisation is needed.
#[test]
fn every_deletion_is_found() {
    let right = buffered(|s| s);
    let lines: Vec<&str> = right.lines().collect();
    let mut found = Vec::new();
    for (n, line) in lines.iter().enumerate().filter(|(_, l)| l.starts_with("set") || l.starts_with("wait")) {
        let mut rest = lines.clone();
        rest[n] = "";
        let verdict = says(&rest.join("\n"));
        found.push(format!("{line}: {}", verdict.split('@').next().unwrap_or_default()));
    }
    let expected = [
        "set empty[0]: PA-1123",
        "set empty[1]: PA-1123",
        "set done[0]: PA-1123",
        "set done[1]: PA-1123",
        // Without it the load comes too soon, or the flag is set twice: whatever is first.
        "wait empty[k]: PA-1124",
        "set full[k]: PA-1123",
        "wait full[k]: PA-1120",
        "wait done[k]: PA-1124",
        "set empty[k]: PA-1123",
        "set ready[k]: PA-1123",
        "wait ready[k]: PA-1120",
        "set done[k]: PA-1123",
        "wait empty[0]: PA-1125",
        "wait empty[1]: PA-1125",
        "wait done[0]: PA-1125",
        "wait done[1]: PA-1125",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_set_that_is_missing() {
    let script = buffered(|s| s.replace("set full[k]\n", ""));
    assert_eq!(message(&script), "deadlock: V waits for `full[0]`, and MTE2 never sets it");
    let trap = verdict(&kernel(&script)).expect("a trap");
    assert_eq!(trap.notes, ["in iteration 0 of its loop"]);
    assert_eq!(trap.help.as_deref(), Some("set `full[0]` on MTE2 before, or drop the wait"));
}

/// Two pipes wait for each other, or only the text has the wrong order.
#[test]
fn a_set_that_comes_later() {
    let head = "tile a 0x0\nevent e MTE2 V\nevent f V MTE2\n";
    let cycle = format!("{head}wait f\nload a 0\nset e\nwait e\nmuls a a\nset f");
    assert_eq!(message(&cycle), "deadlock: MTE2 waits for `f`, which V sets only after this wait");
    assert_eq!(says(&cycle), "PA-1123@4,9");
    let late = format!("{head}wait e\nmuls a a\nload a 0\nset e");
    assert_eq!(message(&late), "V waits for `e`, which MTE2 sets only later in program order");
    // Roles are no excuse: the meaning is program order.
    let roles = format!("role p\nrole c\n{head}role c {{\nwait e\nmuls a a\n}}\nrole p {{\nload a 0\nset e\n}}");
    assert_eq!(message(&roles), "V of role `c` waits for `e`, which MTE2 sets only later in program order");
}

#[test]
fn sets_that_are_lost() {
    let head = "tile a 0x0\ntile b 0x100\nevent e MTE2 V\nevent f V MTE2\n";
    assert_eq!(says(&format!("{head}load a 0\nset e\nset e\nwait e")), "PA-1124@7,6");
    assert_eq!(
        message(&format!("{head}set e\nset e\nwait e")),
        "MTE2 sets `e`, which is set already: no wait took it down"
    );
    // Nothing makes MTE2 wait for V.
    let again = format!("{head}load a 0\nset e\nwait e\nload b 1\nset e\nwait e");
    assert_eq!(says(&again), "PA-1124@9,6,7");
    assert_eq!(message(&again), "MTE2 may set `e` again before V has waited for it");
    assert_eq!(says(&format!("{head}load a 0\nset e\nwait e\nset f\nwait f\nload b 1\nset e\nwait e")), "fine");
    // What V did before its wait is not enough.
    assert_eq!(
        says(&format!("{head}load a 0\nset e\nset f\nwait e\nwait f\nload b 1\nset e\nwait e")),
        "PA-1124@11,6,8"
    );
    assert_eq!(says(&format!("{head}load a 0\nset e\nwait e\nset e")), "PA-1124@8,6,7");
    assert_eq!(
        message(&format!("{head}load a 0\nset e")),
        "`e` is still set at the end of the block: no wait on V took it down"
    );
}

/// A barrier of all pipes orders the next set after the wait.
#[test]
fn reuse_after_a_barrier() {
    let head = "tile a 0x0\ntile b 0x100\nevent e MTE2 V\n";
    assert_eq!(
        says(&format!("{head}load a 0\nset e\nwait e\nmuls b a\nbarrier\nload a 1\nset e\nwait e\nmuls b a")),
        "fine"
    );
}

#[test]
fn elements_out_of_range() {
    let script = "tile a 0x0\nevent e MTE2 V 2\nfor i 3 {\nset e[i]\nwait e[i]\n}";
    let trap = super::launch(&kernel(script), Some(super::pipes(super::Order::Late))).0.expect_err("out of range");
    assert_eq!((trap.code.as_str(), &trap.message[..]), ("E0580", "element 2 of `e`, which has 2 elements"));
}
