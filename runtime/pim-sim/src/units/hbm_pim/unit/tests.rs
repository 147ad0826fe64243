//! Programs by hand.

use super::*;
use half::f16;

fn bits(x: f32) -> u16 {
    f16::from_f32(x).to_bits()
}

fn splat(x: f32) -> Vector {
    Vector::splat(bits(x))
}

fn unit(program: &[&str]) -> HbmPimUnit {
    let mut words = [0; ENTRIES];
    for (word, line) in words.iter_mut().zip(program) {
        *word = Instruction::parse(line).unwrap().encode().unwrap();
    }
    let mut unit = HbmPimUnit::default();
    for burst in 0..4 {
        unit.write_crf(burst, words[8 * burst..8 * burst + 8].try_into().unwrap());
    }
    unit
}

fn read<'b>(row: u32, column: u32, even: &'b mut Vector) -> ColumnAccess<'b> {
    ColumnAccess { row, column, write: false, even: Some(even), odd: None }
}

/// c = a + b, eight bursts at a time: reads of a, reads of b, writes of c.
#[test]
fn addition_of_eight_bursts() {
    let mut u = unit(&[
        "FILL GRF_A[0], EVEN_BANK",
        "ADD GRF_A[0], GRF_A[0], EVEN_BANK auto",
        "MOV EVEN_BANK, GRF_A[0] auto",
        "EXIT",
    ]);
    let a: Vec<Vector> = (0..8).map(|i| splat(i as f32)).collect();
    let b: Vec<Vector> = (0..8).map(|i| splat(0.5 + 10.0 * i as f32)).collect();
    for (n, operand) in [(0, &a), (1, &b)] {
        for (column, burst) in operand.iter().enumerate() {
            assert_eq!(u.step(read(5, column as u32, &mut burst.clone())), Ok(StepResult::Executed(n)));
        }
    }
    for column in 0..8 {
        let mut burst = Vector::default();
        let access = ColumnAccess { row: 6, column, write: true, even: Some(&mut burst), odd: None };
        assert_eq!(u.step(access), Ok(StepResult::Executed(2)));
        assert_eq!(burst, splat(0.5 + 11.0 * column as f32));
    }
    assert_eq!(u.step(read(0, 0, &mut Vector::default())), Ok(StepResult::Idle));
    assert!(u.ended());
}

/// Eight rows of a matrix in GRF_B, eight vectors of the other operand in GRF_A: 64 reads, and every pair meets once.
#[test]
fn a_tile_of_a_matrix_times_a_vector() {
    let mut u = unit(&["MAC GRF_B[0], EVEN_BANK, GRF_A[0] auto", "JUMP -1, 7", "EXIT"]);
    for (i, register) in u.grf_a.iter_mut().enumerate() {
        *register = splat(i as f32 + 1.0);
    }
    let mut wanted = [0.0; 8];
    for row in 0..2 {
        for column in 0..32 {
            let (r, k) = (column % 8, 4 * row + column / 8);
            let w = (r * 3 + k) as f32;
            wanted[r as usize] += w * (k + 1) as f32;
            assert_eq!(u.step(read(row, column, &mut splat(w))), Ok(StepResult::Executed(0)));
        }
    }
    for (register, want) in u.grf_b.iter().zip(wanted) {
        assert_eq!(*register, splat(want));
    }
    assert_eq!(u.step(read(0, 0, &mut splat(1.0))), Ok(StepResult::Idle));
}

/// The square of 1 + 3/1024 has more bits than f16; cancelling the 1 shows whether they were dropped before the sum.
#[test]
fn mac_rounds_twice() {
    let mut u = unit(&["MAC GRF_B[0], EVEN_BANK, GRF_A[1]", "EXIT"]);
    let x = 1.0 + 3.0 / 1024.0;
    u.grf_a[1] = splat(x);
    u.grf_b[0] = splat(-1.0);
    u.step(read(0, 0, &mut splat(x))).unwrap();
    let twice = f16::from_f32(f16::from_f32(x * x).to_f32() - 1.0);
    let once = f16::from_f32(x * x - 1.0);
    assert_ne!(twice, once);
    assert_eq!(u.grf_b[0], Vector::splat(twice.to_bits()));
}

#[test]
fn scalars_and_relu() {
    let mut u = unit(&[
        "MAD GRF_A[2], EVEN_BANK, SRF_M[3]",
        "MOV GRF_B[1], GRF_A[2] relu",
        "MUL GRF_A[0], GRF_A[2], SRF_A[3]",
        "NOP 1",
        "EXIT",
    ]);
    let mut srf = Vector::default();
    srf.0[3] = bits(2.0);
    srf.0[11] = bits(-7.0);
    u.write_srf(srf);
    for _ in 0..3 {
        u.step(read(0, 0, &mut splat(3.0))).unwrap();
    }
    assert_eq!((u.grf_a[2], u.grf_b[1], u.grf_a[0]), (splat(-1.0), splat(0.0), splat(7.0)));
    assert_eq!(u.step(read(0, 0, &mut splat(0.0))), Ok(StepResult::Executed(3)));
    assert_eq!(u.step(read(0, 0, &mut splat(0.0))), Ok(StepResult::Executed(3)));
    assert_eq!(u.step(read(0, 0, &mut splat(0.0))), Ok(StepResult::Idle));
}

#[test]
fn faults_change_nothing() {
    let mut u = unit(&["MOV EVEN_BANK, GRF_A[0]", "ADD GRF_A[0], ODD_BANK, GRF_A[0]", "EXIT"]);
    let mut burst = splat(1.0);
    assert_eq!(u.step(read(0, 0, &mut burst)), Err(HbmPimFault::Direction(0, OperandLocation::EvenBank)));
    let access = ColumnAccess { row: 0, column: 0, write: true, even: Some(&mut burst), odd: None };
    assert_eq!(u.step(access), Ok(StepResult::Executed(0)));
    assert_eq!(u.step(read(0, 0, &mut burst)), Err(HbmPimFault::Bank(1, OperandLocation::OddBank)));
    assert_eq!(u.step(read(0, 0, &mut burst)), Err(HbmPimFault::Bank(1, OperandLocation::OddBank)));
    u.write_crf(0, [5 << 28; 8]);
    u.restart();
    assert!(matches!(u.step(read(0, 0, &mut burst)), Err(HbmPimFault::Word(0, _))));
}

/// A loop of jumps is an error and not an endless loop; a program without EXIT ends at the last entry.
#[test]
fn programs_that_do_not_end() {
    let mut u = unit(&["JUMP -1, 9"]);
    assert_eq!(u.step(read(0, 0, &mut splat(1.0))), Err(HbmPimFault::PastEnd(0)));
    let mut u = unit(&["NOP", "JUMP -1, 131071", "JUMP -1, 131071"]);
    for _ in 0..1000 {
        assert_eq!(u.step(read(0, 0, &mut splat(1.0))), Ok(StepResult::Executed(0)));
    }
    let mut u = HbmPimUnit::default();
    for n in 0..ENTRIES {
        assert_eq!(u.step(read(0, 0, &mut splat(1.0))), Ok(StepResult::Executed(n)));
    }
    assert_eq!(u.step(read(0, 0, &mut splat(1.0))), Err(HbmPimFault::PastEnd(ENTRIES)));
}
