//! How refusals read (operation, argument, mode, numbers, what mends it), and results that golden cases have not.

use ptoc_layout::{Cx, ops, parse_value};
use std::fmt::Write;

/// The operation, then its arguments.
const CALLS: &[&[&str]] = &[
    &["composition", "(6,4):(8,2)", "4:4"],
    &["composition", "(4,3):(1,8)", "6:1"],
    &["composition", "((4,2),6):((1,4),8)", "<(3,2):(1,5),2>"],
    &["composition", "(8,(2,4)):(1,(6,1))", "(8,(8,1)):(2,(4,2))"],
    &["composition", "(4,8):(8,1)", "4:-1"],
    &["composition", "(4,8):(8,1)", "<1,2,3>"],
    &["composition", "(4,8):(8,1)", "Sw<1,0,1>"],
    &["composition", "(4,8):(8,1)", "4:1@2"],
    &["zipped_divide", "((3,4),12):((1,6),24)", "<8,8>"],
    &["zipped_divide", "(2,6):(6,1)", "3"],
    &["zipped_divide", "8:1", "0"],
    &["zipped_divide", "8:1", "-2"],
    &["zipped_divide", "(8,6):(1,8)", "<_,3>"],
    &["zipped_divide", "12:1", "(2,2):(1,3)"],
    &["logical_divide", "(2,(3,3,4),1):(36,(12,4,1),1)", "6:12"],
    &["complement", "(4,2):(1,2)", "16"],
    &["complement", "4:-1", "16"],
    &["logical_product", "(4,8,1):(3,12,192)", "4"],
    &["blocked_product", "6:2", "5:1"],
    &["tile_to_shape", "(3,4):(1,3)", "(6,6)"],
    &["tile_to_shape", "(3,4):(1,3)", "12"],
    &["left_inverse", "(6,(8,1)):(3,(3,1))"],
    &["left_inverse", "(2,2):(2,3)"],
    &["upcast", "(8,3):(3,1)", "2"],
    &["downcast", "(4,2):(0,0)", "4"],
    &["downcast", "(2,2):(1,1)", "4"],
    &["slice", "(4,8):(1,4)", "(4,_)"],
    &["slice", "(4,8):(1,4)", "(1,_,2)"],
    &["eval", "(4,8):(1,4)", "(1,2,3)"],
    &["coalesce_by", "(4,8):(1,4)", "(1,1,1)"],
    &["get", "(4,(2,8)):(1,(4,8))", "1", "2"],
    &["take", "(4,8):(1,4)", "1", "3"],
    &["coalesce", "(4,8)"],
    &["size", "<_,4>"],
    &["elem_less", "(1,2)", "4"],
    &["is_bijection", "(4,8):(1@0,1@1)"],
    &["cosize", "(4611686018427387904,4):(1,2)"],
    &["size", "(4611686018427387904,4):(1,2)"],
    &["coalesce", "(4,0,3):(1,4,0)"],
    &["zipped_divide", "(8,0):(1,8)", "<4,4>"],
    &["zipped_divide", "(0,8):(8,1)", "4"],
    &["composition", "(8,0):(0,1)", "4"],
    &["complement", "0:1", "4"],
    &["complement", "4:1", "0"],
    &["right_inverse", "(0,8):(1,4)"],
    &["left_inverse", "(0,8):(1,4)"],
    &["logical_product", "4:1", "0"],
    &["idx2crd", "3", "(0,4)"],
    &["zipped_divide", "Sw<2,0,3> o 5 o (8,4):(4,1)", "<4,2>"],
    &["slice", "Sw<2,0,3> o 5 o (8,4):(4,1)", "(1,_)"],
    &["slice_offset", "Sw<2,0,3> o 5 o (8,4):(4,1)", "(1,_)"],
    &["upcast", "Sw<3,4,3> o 0 o (8,64):(64,1)", "2"],
    &["upcast", "Sw<3,0,3> o 0 o (8,64):(64,1)", "2"],
    &["downcast", "Sw<3,3,3> o 0 o (8,64):(64,1)", "2"],
    &["composition", "Sw<1,0,2>", "Sw<1,1,2>"],
    &["composition", "Sw<1,0,1>", "Sw<1,1,1>"],
    &["composition", "Sw<2,0,3>", "Sw<2,0,4>"],
    &["eval", "Sw<2,0,3> o 0 o (8,4):(4,1)", "9"],
    &["cosize", "Sw<2,0,3> o 0 o (8,4):(4,1)"],
    &["is_bijection", "Sw<2,0,3> o 0 o (8,4):(4,1)"],
    &["is_bijection", "Sw<2,0,3> o 5 o (8,4):(4,1)"],
    &["max_common_vector", "Sw<2,3,3> o 0 o (8,8):(8,1)", "(8,8):(8,1)"],
    &["make_layout_like", "(4,3,2):(6,0,1)"],
    &["make_fragment_like", "((2,2),3,4):((8,1),0,2)"],
    &["make_layout", "(2,3)", "(3,1)"],
    &["make_layout", "2:1", "3:4"],
    &["make_identity_layout", "(4,(2,3))"],
    &["concat", "(2,3):(1,2)", "4:6"],
    &["append", "(2,3):(1,2)", "4:6"],
    &["prepend", "2:1", "4:6"],
    &["replace", "(2,3):(1,2)", "1", "4:6"],
    &["group", "(2,3,4):(1,2,6)", "1", "3"],
    &["select", "(2,3,4):(1,2,6)", "2", "0"],
    &["take", "(2,3,4)", "1", "3"],
    &["zip", "((1,2),(3,4)):((5,6),(7,8))"],
    &["ceil_div", "(10,6)", "<4,4>"],
    &["ceil_div", "(10,6)", "4"],
    &["elem_less", "(3,(1,2))", "(4,(2,3))"],
    &["dice", "(2,3,4):(1,2,6)", "(_,1,_)"],
    &["is_injective", "(3,2):(2,3)"],
    &["is_injective", "(3,2):(2,4)"],
    &["layout", "(4,(2,8)):(1,(4,8))", "1"],
    &["stride", "(4,(2,8)):(1,(4,8))", "1"],
    &["filter_zeros", "(4,(2,8)):(1,(0,8))"],
    &["idx2crd", "13", "(4,5)", "(5,1)"],
    &["eval", "(4,5):(1@0,2@1)", "(3,4)"],
];

#[test]
fn refusals_and_results() {
    let mut text = String::new();
    for call in CALLS {
        let (name, args) = call.split_first().expect("a name");
        let values: Vec<_> =
            args.iter().map(|a| parse_value(a).unwrap_or_else(|e| panic!("{}", e.located(a)))).collect();
        let op = ops::find(name).unwrap_or_else(|| panic!("{name}"));
        match (op.eval)(&Cx::default(), &values) {
            Ok(value) => writeln!(text, "{name}({}) = {value}", args.join(", ")),
            Err(e) => {
                assert_eq!(e.op, *name, "blamed by the name that was called");
                let arg = e.arg.map_or("-".to_string(), |k| args[k].to_string());
                let help = e.help.as_deref().unwrap_or("-");
                writeln!(text, "{name}({})\n    {:?} in {arg}: {e}\n    help: {help}", args.join(", "), e.kind)
            }
        }
        .expect("text");
    }
    insta::assert_snapshot!(text);
}
