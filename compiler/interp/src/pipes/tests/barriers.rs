//! Transaction barriers as `spec/pipes.md` has them: traces that are right, and what goes wrong in others.

use super::{kernel, message, says, verdict};

/// Two slots, filled by MTE2 in role `p` and read by V in role `c`; `full` ends with bytes, `empty` with releases.
fn ring(edit: impl Fn(String) -> String) -> String {
    let text = "\
tile a 0x0 0x100
tile b 0x200
mbar full MTE2 V 1 2
mbar empty V MTE2 1 2
event ready V MTE3
event done MTE3 V
role p
role c
for i 6 {
mod k i 2
div r i 2
mod full_parity r 2
add1 r1 r 1
mod empty_parity r1 2
role p {
wait_phase empty[k] empty_parity
arrive_expect full[k] 256
load a[k] i
complete full[k] 256
}
role c {
wait_phase full[k] full_parity
muls b a[k]
arrive empty[k]
set ready
wait ready
store i b
set done
wait done
}
}";
    edit(text.to_owned())
}

#[test]
fn full_and_empty() {
    assert_eq!(says(&ring(|s| s)), "fine");
}

/// Row 41: a producer that starts with parity 0 waits for slots that nobody has filled.
#[test]
fn the_start_phase() {
    let wrong = ring(|s| s.replace("empty[k] empty_parity", "empty[k] full_parity"));
    let trap = verdict(&kernel(&wrong)).expect("a deadlock");
    assert_eq!(trap.code.as_str(), "PA-1123");
    let message = "deadlock: MTE2 of role `p` waits for parity 0 of `empty[0]`, which stays in phase 0: it still needs \
        1 of 1 arrival";
    assert_eq!(trap.message, message);
    assert!(trap.help.is_some_and(|h| h.contains("parity 1")));
}

/// Row 98: a wrong number of arrivals, a missing release, a missing fill.
#[test]
fn deadlocks() {
    let two = ring(|s| s.replace("mbar full MTE2 V 1 2", "mbar full MTE2 V 2 2"));
    assert_eq!(
        message(&two),
        "deadlock: V of role `c` waits for parity 0 of `full[0]`, which stays in phase 0: it still needs 1 of 2 \
        arrivals"
    );
    let unreleased = ring(|s| s.replace("arrive empty[k]\n", ""));
    assert_eq!(
        message(&unreleased),
        "deadlock: MTE2 of role `p` waits for parity 0 of `empty[0]`, which stays in phase 0: it still needs 1 of 1 \
        arrival"
    );
    let fewer = ring(|s| s.replace("arrive_expect full[k] 256", "arrive_expect full[k] 384"));
    assert_eq!(
        message(&fewer),
        "deadlock: V of role `c` waits for parity 0 of `full[0]`, which stays in phase 0: it still needs 0 of 1 \
        arrival and 128 bytes"
    );
}

/// Row 38: announce and arrive in one step; expected bytes are moved bytes.
#[test]
fn early_flips_and_bytes() {
    let head = "tile a 0x0\nmbar m MTE2 V 1\n";
    let split = format!("{head}arrive m\nexpect m 256\nload a 0\ncomplete m 256\nwait_phase m 0\nmuls a a");
    assert_eq!(says(&split), "PA-1120@8,5");
    // Also where nobody reads.
    let split = format!("{head}arrive m\nexpect m 256\nload a 0\ncomplete m 256\nwait_phase m 0");
    assert_eq!(says(&split), "PA-1128@6,3");
    assert_eq!(
        message(&split),
        "an arrival has ended a phase of `m` before its bytes were announced (256 bytes announced, 256 came in the \
        next phase)"
    );
    for right in [
        "arrive_expect m 256\nload a 0\ncomplete m 256",
        "expect m 256\narrive m\nload a 0\ncomplete m 256",
        "load a 0\ncomplete m 256\narrive_expect m 256",
    ] {
        assert_eq!(says(&format!("{head}{right}\nwait_phase m 0\nmuls a a")), "fine", "{right}");
    }
    let more = format!("{head}arrive_expect m 512\nload a 0\ncomplete m 256");
    assert_eq!(message(&more), "a phase of `m` does not end: 512 bytes announced, 256 came");
    // An announcement by one role may come after the arrival of another.
    let roles = format!(
        "role p\nrole q\n{head}role p {{\nexpect m 256\n}}\nrole q {{\narrive m\n}}\nrole p {{\nload a 0\n\
        complete m 256\n}}\nwait_phase m 0"
    );
    assert_eq!(says(&roles), "PA-1128@6");
    assert_eq!(says(&roles.replace("expect", "arrive_expect").replace("arrive m\n", "")), "fine");
    let over = format!("{head}expect m 1048575\nexpect m 1");
    assert_eq!(message(&over), "`m` has 1048576 bytes pending, beyond the 20 bits that it counts with");
}

/// What is said to have come is what some of the loads before it have moved.
#[test]
fn bytes_that_were_not_moved() {
    let elements = ring(|s| s.replace(" 256\n", " 64\n"));
    assert_eq!(says(&elements), "PA-1127@19");
    assert_eq!(message(&elements), "64 bytes are said to have come at `full[0]`, and 256 were moved");
    let head = "tile a 0x0\ntile b 0x100\nmbar m MTE2 V 1\nmbar n MTE2 V 1\n";
    let rest = "wait_phase m 0\nmuls a a\nmuls b b";
    let both = |said: u32| format!("{head}arrive_expect m {said}\nload a 0\nload b 1\ncomplete m {said}\n{rest}");
    assert_eq!(says(&both(512)), "fine");
    assert_eq!(message(&both(384)), "384 bytes are said to have come at `m`, and 512 were moved");
    // The other load has a barrier of its own.
    let own = "arrive_expect m 256\narrive_expect n 256\nload a 0\nload b 1\ncomplete m 256\ncomplete n 256";
    assert_eq!(says(&format!("{head}{own}\nwait_phase n 0\n{rest}")), "fine");
    // Loads of an inner loop are of this iteration; those of the iteration before are not.
    let inner = |said: u32| {
        format!("{head}arrive_expect m {said}\nfor i 2 {{\nload a i\n}}\ncomplete m {said}\nwait_phase m 0\nmuls a a")
    };
    assert_eq!(says(&inner(512)), "fine");
    assert_eq!(says(&inner(128)).split('@').next(), Some("PA-1127"));
    let before = format!("{head}load b 1\nfor i 1 {{\narrive_expect m 64\ncomplete m 64\nwait_phase m 0\n}}");
    assert_eq!(says(&before), "fine");
}

/// More bytes than were announced are no matter of order, unless the announcement comes later.
#[test]
fn bytes_that_nobody_announced() {
    let head = "tile a 0x0\nmbar m MTE2 V 1\n";
    let never = format!("{head}load a 0\ncomplete m 256\narrive m\nwait_phase m 0\nmuls a a");
    assert_eq!(says(&never).split('@').next(), Some("PA-1127"));
    assert_eq!(
        message(&never),
        "phase 0 of `m` does not end: 256 bytes more came than were announced, and V waits for parity 0"
    );
    let later = format!("{head}load a 0\ncomplete m 256\nwait_phase m 0\narrive_expect m 256\nmuls a a");
    assert_eq!(says(&later).split('@').next(), Some("PA-1123"));
}

/// Row 39: reads before the wait, writes before the acquire; the producer waits for both consumers.
#[test]
fn reads_and_writes_out_of_turn() {
    let read_early = ring(|s| {
        s.replace("wait_phase full[k] full_parity\nmuls b a[k]", "muls b a[k]\nwait_phase full[k] full_parity")
    });
    assert_eq!(says(&read_early).split('@').next(), Some("PA-1120"));
    let write_early = ring(|s| {
        s.replace(
            "wait_phase empty[k] empty_parity\narrive_expect full[k] 256\nload a[k] i",
            "load a[k] i\nwait_phase empty[k] empty_parity\narrive_expect full[k] 256",
        )
    });
    assert_eq!(says(&write_early).split('@').next(), Some("PA-1121"));
    let two = |release: &str, arrivals: &str| {
        format!(
            "tile a 0x0\ntile b 0x100\ntile d 0x200\nmbar full MTE2 V 1\nmbar empty V MTE2 {arrivals}\nrole p\nrole c\n\
            role d2\nfor i 4 {{\nmod k i 2\nadd1 i1 i 1\nmod k1 i1 2\nrole p {{\nwait_phase empty k1\n\
            arrive_expect full 256\nload a i\ncomplete full 256\n}}\nrole c {{\nwait_phase full k\nmuls b a\n\
            barrier V\narrive empty\n}}\nrole d2 {{\nwait_phase full k\nmuls d a\nbarrier V\n{release}\n}}\n}}"
        )
    };
    assert_eq!(says(&two("arrive empty", "2")), "fine");
    // One arrival is too few for two consumers: the phase of the second release is another one.
    let verdict = says(&two("arrive empty", "1"));
    assert!(verdict.starts_with("PA-1126"), "{verdict}");
    // Nobody makes the producer wait for the second.
    assert_eq!(says(&two("", "1")).split('@').next(), Some("PA-1121"));
    assert_eq!(says(&two("", "2")).split('@').next(), Some("PA-1123"));
}

/// Row 40: a state that is not advanced, or twice.
#[test]
fn forgotten_and_doubled_advances() {
    let stays = ring(|s| s.replace("wait_phase full[k] full_parity", "wait_phase full[0] 0"));
    assert_ne!(says(&stays), "fine");
    // The consumer reads slots one ahead.
    let doubled = ring(|s| {
        s.replace(
            "role c {\nwait_phase full[k] full_parity\nmuls b a[k]\narrive empty[k]",
            "role c {\nadd1 n i 1\nmod m n 2\nwait_phase full[m] full_parity\nmuls b a[m]\narrive empty[m]",
        )
    });
    assert_eq!(says(&doubled).split('@').next(), Some("PA-1123"));
}

/// Parity cannot tell a round from the one after the next.
#[test]
fn parity_that_cannot_tell() {
    let head = "tile a 0x0\nmbar m MTE2 V 1\n";
    // Nobody waited for phase 0; the wait for phase 1 would go through at once.
    let early = format!("{head}arrive m\narrive m\nwait_phase m 1");
    assert_eq!(says(&early), "PA-1126@5");
    let overtaken = format!("{head}arrive m\nwait_phase m 0\narrive m\nwait_phase m 1");
    assert_eq!(says(&overtaken), "PA-1126@5,4");
    assert_eq!(says(&format!("{head}arrive_expect m 4\narrive m\ncomplete m 4")), "PA-1126@4,3");
    let mixed = format!("role p\nrole q\n{head}role p {{\narrive m\n}}\nrole q {{\narrive m\n}}");
    assert_eq!(says(&mixed), "PA-1126@9,6");
}
