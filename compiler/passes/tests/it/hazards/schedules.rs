//! Double buffering, right and with one thing wrong.

use super::oracle::mistakes;
use super::program::{At, P, Trip, When, kernel};
use ptoc_diagnostics::Diagnostic;
use ptoc_hazards::check;
use ptoc_isa::{Pipe, Target};

fn a2a3() -> &'static Target {
    Target::builtin("a2a3").unwrap()
}

pub fn found(program: &[P]) -> Vec<Diagnostic> {
    check(&kernel(program), a2a3())
}

fn codes(program: &[P]) -> Vec<String> {
    found(program).iter().map(|d| d.code.to_string()).collect()
}

/// Loads, work and stores with two buffers, as in the language's example.
pub fn double(trip: Trip) -> Vec<P> {
    let b = At::Turn(0, 2);
    let mut out: Vec<P> = (0..2).flat_map(|n| [P::Set(1, At::Fixed(n)), P::Set(3, At::Fixed(n))]).collect();
    out.push(P::Loop(
        trip,
        vec![
            P::Wait(1, b),
            P::Load(b),
            P::Set(0, b),
            P::Wait(0, b),
            P::Wait(3, b),
            P::Work(b, b),
            P::Set(1, b),
            P::Set(2, b),
            P::Wait(2, b),
            P::Store(b),
            P::Set(3, b),
        ],
    ));
    out.extend((0..2).flat_map(|n| [P::Wait(1, At::Fixed(n)), P::Wait(3, At::Fixed(n))]));
    out
}

#[test]
fn two_buffers_are_fine() {
    for trip in [Trip::Dim(0), Trip::Times(1), Trip::Times(2), Trip::Times(7), Trip::Times(1000), Trip::Times(1001)] {
        assert_eq!(codes(&double(trip)), [""; 0], "{trip:?}");
    }
}

/// Every single statement that is left out is missed, and the message says which.
#[test]
fn nothing_of_it_can_be_left_out() {
    for trip in [Trip::Dim(0), Trip::Times(100)] {
        let whole = double(trip);
        let mut got = Vec::new();
        let mut note = |what: &P, program: &[P]| {
            let all = found(program);
            assert!(all.iter().any(Diagnostic::is_error), "{what:?}: {all:#?}");
            let fixes = all.iter().flat_map(|d| &d.fixes).map(|f| f.message.clone()).collect::<Vec<_>>();
            got.push(format!("{what:?}: {:?} {fixes:?}", all.iter().map(|d| d.code.to_string()).collect::<Vec<_>>()));
        };
        for n in 0..whole.len() {
            match &whole[n] {
                P::Loop(trip, body) => {
                    for (k, left) in body.iter().enumerate().filter(|(_, p)| matches!(p, P::Set(..) | P::Wait(..))) {
                        let mut body = body.clone();
                        body.remove(k);
                        let mut program = whole.clone();
                        program[n] = P::Loop(*trip, body);
                        note(left, &program);
                    }
                }
                left => {
                    let mut program = whole.clone();
                    program.remove(n);
                    note(left, &program);
                }
            }
        }
        insta::assert_snapshot!(format!("left_out_{trip:?}"), got.join("\n"));
    }
}

#[test]
fn the_prefetch_of_a_pipeline_is_fine() {
    let next = At::Turn(1, 2);
    let b = At::Turn(0, 2);
    let body = vec![
        P::If(When::First, vec![P::Load(b), P::Set(0, b)]),
        P::If(When::NotLast, vec![P::If(When::NotFirst, vec![P::Wait(1, next)]), P::Load(next), P::Set(0, next)]),
        P::Wait(0, b),
        P::Barrier(Some(Pipe::V)),
        P::Work(b, b),
        P::If(When::NotLast, vec![P::If(When::NotLast, vec![P::Set(1, b)])]),
    ];
    let program = [P::Loop(Trip::Dim(0), body)];
    let wrong: Vec<_> = (0..9).flat_map(|n| mistakes(&program, [n, 0], false)).collect();
    let got = codes(&program);
    assert_eq!(wrong.is_empty(), got.is_empty(), "{wrong:?} {got:?}");
}
