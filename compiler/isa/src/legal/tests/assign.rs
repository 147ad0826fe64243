//! What a constant TASSIGN accepts and refuses, on every target.

use super::*;

/// The codes for a tile at an address, joined by ` + `; `ok` for none.
fn codes(t: &Target, ty: TileType, addr: i128) -> String {
    let found: Vec<String> = check_address(t, ty, addr).iter().map(|v| v.code().to_string()).collect();
    if found.is_empty() { "ok".into() } else { found.join(" + ") }
}

fn on_all(ty: TileType, addr: i128) -> [String; 4] {
    let [a, b, c, d] = Target::pto() else { panic!("four targets") };
    [a, b, c, d].map(|t| codes(t, ty, addr))
}

const TOO_LARGE: &str = "SA-0352";
const PAST_END: &str = "SA-0353";

#[test]
fn vectors_of_the_tassign_page() {
    let small = tile(Loc::Vec, F32, 16, 16);
    for addr in [0, 0x400, 0x800] {
        assert_eq!(on_all(small, addr), ["ok"; 4]);
    }
    let big = tile(Loc::Vec, F32, 256, 256);
    assert_eq!(on_all(big, 0), [TOO_LARGE, "ok", TOO_LARGE, TOO_LARGE]);
    let mid = tile(Loc::Vec, F32, 128, 128);
    let both = "SA-0353 + SA-0354";
    assert_eq!(on_all(mid, 0x20001), [both, "SA-0354", both, both]);
    assert_eq!(on_all(mid, 0x20000), ["ok", "ok", PAST_END, PAST_END]);
    for pong in [tile(Loc::Left, F16, 64, 128), tile(Loc::Right, F16, 128, 64)] {
        assert_eq!(on_all(pong, 0), ["ok"; 4]);
        assert_eq!(on_all(pong, 0x8000), ["ok", "ok", PAST_END, "ok"]);
    }
    for loc in [Loc::ScaleLeft, Loc::ScaleRight] {
        assert_eq!(on_all(tile(loc, U8, 64, 64), 0), ["SA-0351", "ok", "SA-0351", "SA-0351"]);
        assert_eq!(on_all(tile(loc, U8, 64, 96), 0), ["SA-0351", TOO_LARGE, "SA-0351", "SA-0351"]);
        assert_eq!(
            on_all(tile(loc, U8, 64, 64), 8),
            ["SA-0351 + SA-0354", both, "SA-0351 + SA-0354", "SA-0351 + SA-0354"]
        );
    }
    assert_eq!(on_all(tile(Loc::Scaling, U64, 1, 768), 0), [TOO_LARGE, TOO_LARGE, "ok", "ok"]);
    assert_eq!(on_all(tile(Loc::Bias, F32, 1, 512), 0), [TOO_LARGE, "ok", TOO_LARGE, TOO_LARGE]);
    assert_eq!(on_all(tile(Loc::Mat, U8, 1024, 1024), 0), [TOO_LARGE, TOO_LARGE, TOO_LARGE, "ok"]);
    for t in Target::pto() {
        let t = t.clone().with_capacity(Loc::Vec, 262_144);
        assert_eq!(codes(&t, big, 0), "ok", "{} with 256 KiB", t.name);
        assert_eq!(codes(&t, mid, 0x20001), "SA-0354");
    }
}

#[test]
fn the_runs_past_the_end_by_exactly_one_byte() {
    let v = &check_address(target("a2a3"), tile(Loc::Vec, F32, 128, 128), 0x20001)[0];
    assert_eq!((v.kind, v.size, v.capacity), (SaKind::OutOfRange, 65_536, 196_608));
    assert_eq!(v.addresses, [0x20000]);
    assert_eq!(v.fits_on, ["a5", "sm90"]);
}

#[test]
fn boundaries_of_every_memory() {
    for t in Target::pto() {
        for loc in Loc::ALL {
            let capacity = t.capacity(loc);
            let row = 128;
            let of_rows = |rows: u64| tile(loc, U8, rows as u32, row);
            if capacity == 0 {
                assert_eq!(codes(t, of_rows(1), 0), "SA-0351");
                continue;
            }
            let rows = capacity / u64::from(row);
            let (full, half) = (of_rows(rows), of_rows(rows / 2));
            assert_eq!(codes(t, full, 0), "ok", "{loc} of {}", t.name);
            assert_eq!(codes(t, full, 32), PAST_END);
            assert_eq!(codes(t, of_rows(rows + 1), 0), TOO_LARGE);
            assert_eq!(codes(t, of_rows(rows + 1), 1), "SA-0352 + SA-0354");
            let last = i128::from(capacity - half.bytes());
            assert_eq!(codes(t, half, last), "ok");
            assert_eq!(codes(t, half, last - 32), "ok");
            assert_eq!(codes(t, half, last + 32), PAST_END);
            assert_eq!(codes(t, half, last + 1), "SA-0353 + SA-0354");
            assert_eq!(codes(t, half, i128::from(capacity)), PAST_END);
            assert_eq!(check_size(t, full), None);
            assert_eq!(check_size(t, of_rows(rows + 1)).unwrap().kind, SaKind::TooLarge);
            let smaller = t.clone().with_capacity(loc, capacity - 1);
            assert_eq!(codes(&smaller, full, 0), TOO_LARGE);
        }
    }
}

#[test]
fn addresses_do_not_wrap_around() {
    let ty = tile(Loc::Vec, F32, 16, 16);
    for t in Target::pto() {
        for addr in [1i128 << 63, (1 << 64) - 1024, (1 << 64) - 32, 1 << 64, i128::MAX - 31, -1024, -32, i128::MIN] {
            assert_eq!(codes(t, ty, addr), PAST_END, "{addr} on {}", t.name);
        }
        assert_eq!(codes(t, ty, (1 << 64) - 1), "SA-0353 + SA-0354");
        assert_eq!(codes(t, ty, i128::MAX), "SA-0353 + SA-0354");
        assert_eq!(codes(t, ty, -1), "SA-0353 + SA-0354");
    }
}

#[test]
fn repairs_are_legal() {
    for t in Target::pto() {
        for ty in [
            tile(Loc::Vec, F32, 256, 256),
            tile(Loc::Vec, F32, 128, 128),
            tile(Loc::Vec, F32, 100_000, 1),
            tile(Loc::Vec, Bool, 1024, 100_000),
            tile(Loc::Acc, I32, 512, 512),
            tile(Loc::Left, F16, 512, 512),
            tile(Loc::Right, I8, 512, 512),
            tile(Loc::Bias, I32, 1, 2048),
        ] {
            for addr in [0, 0x20001, 0x8000, 0x30000 - 32] {
                for v in check_address(t, ty, addr) {
                    for a in &v.addresses {
                        assert_eq!(codes(t, ty, i128::from(*a)), "ok", "{ty} at {a:#x} on {}", t.name);
                    }
                    let here = if v.kind == SaKind::OutOfRange { (addr + 31) / 32 * 32 } else { 0 };
                    let shapes = [v.fewer_rows.map(|r| (r, ty.cols)), v.fewer_cols.map(|c| (ty.rows, c))];
                    for (rows, cols) in shapes.into_iter().flatten() {
                        let smaller = TileType { rows, cols, ..ty };
                        assert_eq!(codes(t, smaller, here), "ok", "{smaller} at {here:#x} on {}", t.name);
                        assert_eq!(check_tile_type(t, smaller), []);
                    }
                }
            }
        }
    }
}

#[test]
fn messages() {
    let overridden = target("a2a3").clone().with_capacity(Loc::Vec, 0x1F000);
    let cases: [(&Target, TileType, i128); 9] = [
        (target("a2a3"), tile(Loc::ScaleLeft, U8, 16, 32), 0),
        (target("a2a3"), tile(Loc::Vec, F32, 256, 256), 0),
        (target("a2a3"), tile(Loc::Vec, F32, 128, 128), 0x20001),
        (target("kirin9030"), tile(Loc::Right, F16, 128, 64), 0x8000),
        (target("a5"), tile(Loc::Vec, F32, 16, 64), 0x10),
        (target("a2a3"), tile(Loc::Vec, F32, 16, 16), -32),
        (target("a2a3"), tile(Loc::Vec, F32, 16, 16), (1 << 64) - 32),
        (&overridden, tile(Loc::Vec, F32, 64, 128), 0x18000),
        (target("a2a3"), tile(Loc::Bias, F32, 1, 512), 0),
    ];
    let text: Vec<String> = cases
        .into_iter()
        .flat_map(|(t, ty, addr)| check_address(t, ty, addr))
        .map(|v| show(&v.diagnostic("tile `x`", at())))
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}
