use super::*;
use ptoc_layout::{TileLayout, parse_value};

fn with(ty: TileType, layout: &str) -> TileType {
    let layout = TileLayout::new(&parse_value(layout).expect("a value")).expect("a tile's layout");
    TileType { layout: Some(layout), ..ty }
}

#[test]
fn bytes_and_names() {
    let ty = with(tile(Loc::Vec, F16, 4, 8), "(4,8):(1,4)");
    assert_eq!((ty.bytes(), ty.to_string().as_str()), (64, "Vec<f16, 4, 8, (4,8):(1,4)>"));
    assert_eq!(ty.plain().to_string(), "Vec<f16, 4, 8>");
    assert_eq!(with(ty, "(4,8):(10,1)").bytes(), 76);
    // The order has no meaning beside a layout.
    let dn = TileType { order: Order::Dn, ..ty };
    assert_eq!((dn.to_string(), dn.element(2, 3)), (ty.to_string(), ty.element(2, 3)));
    assert_eq!(ty.element(2, 3), 14);
    assert_eq!((ty.plain().element(2, 3), TileType { order: Order::Dn, ..ty.plain() }.element(2, 3)), (19, 14));
}

/// No rule on rows or boxes is left, but there are places that allow no layout at all.
#[test]
fn places() {
    let codes = |ty: TileType, layout: &str| type_codes("a2a3", with(ty, layout));
    let none: [&str; 0] = [];
    assert_eq!(codes(tile(Loc::Vec, F32, 3, 5), "(3,5):(5,1)"), none);
    assert_eq!(codes(tile(Loc::Mat, F16, 3, 5), "Sw<1,0,2> o 0 o (3,5):(5,1)"), none);
    for loc in [Loc::Left, Loc::Right, Loc::Acc, Loc::Bias, Loc::Scaling] {
        assert_eq!(codes(tile(loc, F16, 16, 16), "(16,16):(1,16)"), ["E1040"], "{loc}");
    }
    assert_eq!(codes(tile(Loc::Vec, Bool, 8, 8), "(8,8):(8,1)"), ["E1041"]);
    assert_eq!(codes(tile(Loc::Vec, F32, 8, 8), "(8,4):(4,1)"), ["E1043"]);
    assert_eq!(codes(tile(Loc::Left, F32, 8, 8), "(4,8):(8,1)"), ["E1040", "E1043"]);
    assert_eq!(codes(tile(Loc::Vec, I64, 8, 8), "(8,8):(8,1)"), codes_of_plain());
}

fn codes_of_plain() -> Vec<String> {
    type_codes("a2a3", tile(Loc::Vec, I64, 8, 8))
}

/// Everything but loads, stores and TASSIGN walks rows.
#[test]
fn instructions() {
    let ty = with(tile(Loc::Vec, F32, 16, 64), "(16,64):(1,16)");
    for id in InstrId::all() {
        let row = id.get();
        let taken = matches!(row.name, "TLOAD" | "TSTORE" | "TASSIGN");
        assert_eq!(check_layout(id, 0, ty).is_none(), taken, "{}", row.name);
        assert_eq!(check_layout(id, 0, ty.plain()), None);
    }
}

#[test]
fn reports() {
    let mut out = String::new();
    let types = [
        with(tile(Loc::Left, F16, 16, 16), "(16,16):(1,16)"),
        with(tile(Loc::Vec, Bool, 8, 8), "(8,8):(8,1)"),
        with(tile(Loc::Vec, F32, 16, 8), "((2,4),8):((1,2),8)"),
    ];
    for v in types.into_iter().flat_map(|ty| check_tile_type(target("a2a3"), ty)) {
        out += &show(&v.diagnostic("tile `t`", at()));
    }
    let ty = with(tile(Loc::Vec, F32, 16, 64), "Sw<3,0,3> o 0 o (16,64):(64,1)");
    out += &show(&check_layout(instr("TADD"), 1, ty).expect("refused").diagnostic("tile `t`", at()));
    let huge = with(tile(Loc::Vec, F32, 512, 512), "(512,512):(1,512)");
    let v = check_size(target("a2a3"), huge).expect("too large");
    out += &show(&v.diagnostic("tile `t`", at()));
    insta::assert_snapshot!(out);
}
