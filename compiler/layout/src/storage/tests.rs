use super::*;
use crate::{Value, parse_value};

fn storage(text: &str) -> Result<Storage, StorageError> {
    match parse_value(text).unwrap() {
        Value::Layout(l) => Storage::new(&l, None, &Int::ZERO, &mut |_| None),
        Value::Composed(c) => Storage::new(&c.layout, Some(c.swizzle), &c.offset, &mut |_| None),
        v => panic!("{v} is no layout"),
    }
}

/// The array 0, 1, 2, .. in its buffer, as text; `.` where nothing lies.
fn buffer(text: &str) -> String {
    let p = storage(text).unwrap();
    let array: Vec<u8> = (0..p.size() as u8).collect();
    let mut buffer = vec![0xff; p.len() as usize];
    p.scatter(1, &array, &mut buffer);
    let mut back = vec![0; array.len()];
    p.gather(1, &buffer, &mut back);
    assert_eq!(back, array);
    let members = p.members().unwrap_or(vec![true; buffer.len()]);
    assert!(buffer.iter().zip(members).all(|(b, m)| m == (*b != 0xff)));
    let cells: Vec<String> = buffer.iter().map(|b| if *b == 0xff { ".".into() } else { b.to_string() }).collect();
    cells.join(" ")
}

#[test]
fn arrays_in_buffers() {
    assert_eq!(buffer("(2,3):(3,1)"), "0 1 2 3 4 5");
    assert_eq!(buffer("(2,3):(1,2)"), "0 3 1 4 2 5");
    assert_eq!(buffer("(2,3):(4,1)"), "0 1 2 . 3 4 5");
    assert_eq!(buffer("(2,3):(1,4)"), "0 3 . . 1 4 . . 2 5");
    assert_eq!(buffer("():()"), "0");
    assert_eq!(buffer("(2,0,3):(0,5,1)"), "");
    assert_eq!(buffer("5:1"), "0 1 2 3 4");
    // Axis 0 of the array is the first mode; within it (2,2) counts its own axis 0 fastest.
    assert_eq!(buffer("((2,2),2):((4,1),2)"), "0 4 1 5 2 6 3 7");
    assert_eq!(buffer("Sw<1,0,1> o 0 o (2,2):(2,1)"), "0 1 3 2");
    // A swizzle moves the last elements up within their block.
    assert_eq!(buffer("Sw<2,0,2> o 0 o 13:1"), "0 1 2 3 5 4 7 6 10 11 8 9 . . . 12");
    assert_eq!(buffer("Sw<0,4,3> o 2 o 2:1"), ". . 0 1");
}

#[test]
fn each_element_has_its_place() {
    for text in ["(3,70,33):(2310,33,1)", "(4,3):(3,4)", "(2,2,2):(1,3,5)", "(7,1,5):(1,0,7)"] {
        assert_eq!(storage(text).unwrap().overlap(1000), Ok(None), "{text}");
    }
    let overlap = |text: &str| {
        let o = storage(text).unwrap().overlap(u64::MAX).unwrap().unwrap();
        format!("{:?} {:?} {}", o.first, o.second, o.place)
    };
    assert_eq!(overlap("(3,4):(1,2)"), "[0, 1] [2, 0] 2");
    assert_eq!(overlap("(2,2):(0,1)"), "[0, 0] [1, 0] 0");
    assert_eq!(overlap("(4,6):(3,2)"), "[0, 3] [2, 0] 6");
    assert_eq!(overlap("(1000000,5):(1000,1000000)"), "[0, 1] [1000, 0] 1000000");
    assert_eq!(storage("(1000000,500):(1000,7)").unwrap().overlap(1000), Err(TooManySteps));
    assert_eq!(storage("(1,1):(0,0)").unwrap().overlap(0), Ok(None));
}

#[test]
fn numbers_that_place_nothing() {
    let error = |text: &str| storage(text).unwrap_err().to_string();
    assert_eq!(error("(2,3):(3,-1)"), "mode 1 has the stride -1");
    assert_eq!(error("(2,3):(1@0,1@1)"), "stride 1@0 is not known");
    assert_eq!(error("(4611686018427387904,4611686018427387904):(0,0)"), {
        "21267647932558653966460912964485513216 elements are needed"
    });
    assert_eq!(error("2:4611686018427387904"), "4611686018427387905 places are needed");
    assert_eq!(storage("(1099511627777,0):(1,1)").unwrap().len(), 0);
}

#[test]
fn symbols_get_values() {
    let (n, m) = (Int::var(1, "N", 1, 0, None), Int::var(2, "M", 1, 0, None));
    let cx = crate::Cx::default();
    let half = cx.floor_div(&n, &Int::Const(2)).unwrap();
    let up = cx.ceil_div(&n, &Int::Const(2)).unwrap();
    let sum = n.mul(&m).unwrap().add(&half).unwrap().sub(&up).unwrap();
    let mut values = |id| Some(if id == 1 { 7 } else { i64::MAX });
    assert_eq!(evaluate(&sum, &mut values), Some(7 * i128::from(i64::MAX) - 1));
    assert_eq!(evaluate(&sum, &mut |_| None), None);
    let huge = m.mul(&m).unwrap().mul(&m).unwrap();
    assert_eq!(evaluate(&huge, &mut values), None);
}

#[test]
fn repeated_elements_must_be_equal() {
    let p = storage("(3,2):(0,1)").unwrap();
    let conflict = |array: &[u8]| {
        let mut buffer = vec![0; p.len() as usize];
        p.scatter(1, array, &mut buffer);
        p.conflict(1, array, &buffer).map(|o| format!("{:?} {:?} {}", o.first, o.second, o.place))
    };
    assert_eq!(conflict(&[5, 6, 5, 6, 5, 6]), None);
    assert_eq!(conflict(&[5, 6, 5, 7, 5, 6]).unwrap(), "[1, 1] [2, 1] 1");
}

#[test]
fn elements_wider_than_a_byte() {
    let p = storage("(2,2):(1,2)").unwrap();
    let mut buffer = vec![0; 8];
    p.scatter(2, &[1, 2, 3, 4, 5, 6, 7, 8], &mut buffer);
    assert_eq!(buffer, [1, 2, 5, 6, 3, 4, 7, 8]);
    assert_eq!(p.coordinate_at(2), Some(vec![0, 1]));
    assert_eq!(storage("(2,2):(1,5)").unwrap().coordinate_at(3), None);
}

#[test]
fn strides_of_what_an_array_in_memory_can_be() {
    let strides = |modes: &[Vec<(i128, i128)>], offset| Storage::of_numbers(modes, None, offset).unwrap().strides();
    assert_eq!(strides(&[vec![(3, 1)], vec![(4, 3)]], 0), Some(vec![1, 3]));
    assert_eq!(strides(&[vec![(3, 0)], vec![(4, 2)]], 0), Some(vec![0, 2]));
    // Leaves of a mode that are one walk, and one that are not.
    assert_eq!(strides(&[vec![(2, 4), (3, 8)], vec![(4, 1)]], 0), Some(vec![4, 1]));
    assert_eq!(strides(&[vec![(2, 1), (3, 8)], vec![(4, 2)]], 0), None);
    assert_eq!(strides(&[vec![(1, 7)], vec![(4, 1)]], 0), Some(vec![0, 1]));
    assert_eq!(strides(&[vec![(4, 1)]], 5), None);
}
