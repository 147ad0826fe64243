//! Roles, pipelines, rings and arrays of tiles: places, names and parts in them.

use super::{calls, session};

const BASIC: &str = "-D BM=16 -D BN=16 -D BK=16 -D M=16 -D N=16 -D K=48 --random 1";

/// A line in a role is that line, and names of the role are visible in it.
#[test]
fn lines_and_names_in_roles() {
    insta::assert_snapshot!(session(
        &format!("run examples/schedules.tile basic --step {BASIC}"),
        "break 48
         break 58
         break 46
         info
         c
         where
         step
         step
         step
         next
         next
         c
         info locals
         print a[0:2, 0:3]
         c
         until 59
         step
         step
         where
         c 2
         quit"
    ));
}

/// Roles, writes, operations on events, PTO's names.
#[test]
fn breakpoints_by_name() {
    insta::assert_snapshot!(session(
        &format!("run examples/schedules.tile basic --step {BASIC}"),
        "break consumer
         break role producer
         break acc if k.first
         break C
         break full if s == 1
         break a0
         break TFREE
         break release
         break role consumr
         break a00
         info
         c
         c
         where
         c
         c
         c
         c
         delete 6
         c
         c
         c 5
         delete
         break C
         c
         quit"
    ));
}

/// Elements of arrays of tiles, of rings, of events; indices that are scalars in scope.
#[test]
fn parts_of_arrays() {
    insta::assert_snapshot!(session(
        &format!("run examples/schedules.tile basic --step {BASIC}"),
        "break 50
         c 2
         print a1
         print a1[s][0:2, 0:3]
         print a1[s, 0:2, 0:3]
         print a1[0][1, _]
         print a1[k.index - s][-1:, s:s+2]
         print a1[1 - s][0, 0] * 2
         print a1[s]
         print a0
         print a0[0]
         print a0[s][0, 0:2]
         print full
         print full[s]
         print done
         print full[0] || done
         watch a1[s][0, 0:2]
         watch b1
         watch full[1]
         delete 3
         c
         c
         c
         print a1
         # mistakes
         print a1[2]
         print a1[0:1]
         print a1[0][0:2][0:3]
         print a1[0, 0:2][0:3]
         print a1[x]
         print a1[1.5]
         print a1[0
         print a1[0][0:2:3]
         print a1[0] + 1
         print a0[0:2]
         print a1[:, 0, 0:3]
         print a1[1:3]
         print full[2]
         print full[0:1]
         print done[0]
         print k[0]
         print C[0:2][0]
         watch a0
         watch a0[0]
         watch k
         quit"
    ));
}

/// What is displayed is shown wherever it is visible.
#[test]
fn displays_and_outer_functions() {
    insta::assert_snapshot!(session(
        "run roles.tile manual --step -D M=16 --random 1",
        "break scale
         break loader
         display a
         display j
         display i.len - 1
         c
         display n
         display u[0, 0:3]
         c
         display t[0, 0:3]
         up
         print a[0, 0:3]
         display a[0, 0:2]
         info locals
         list
         where
         up
         down
         print t[0, 0:3]
         down
         info
         delete 5
         finish
         c
         c
         until 38
         quit"
    ));
}

/// Nested loops and branches in a pipeline, whose copies take turns.
#[test]
fn pipelines() {
    insta::assert_snapshot!(session(
        "run roles.tile piped --step -D M=16 -D N=40 --random 1",
        "break 15
         break 17 if q == r
         c
         print t[0:2, 0:3]
         tiles
         step
         step
         step
         c
         where
         until
         c 2
         where
         delete
         finish"
    ));
}

#[test]
fn tiles_are_printed_in_roles() {
    insta::assert_snapshot!(calls(&[
        &format!(
            "run examples/schedules.tile basic {BASIC} --print-tile a1[s][0:2,0:3]@48 --print-tile a[0:1,0:3]@58 \
             --print-tile full@50 --print-tile acc[0,0:2]@59 --print-tile acc[0,0:2]@65"
        ),
        &format!("run examples/schedules.tile basic {BASIC} --print-tile a@47 --print-tile a1[s]@46"),
        &format!("run examples/schedules.tile basic {BASIC} --print-tile a1[2]@48"),
        &format!("run examples/schedules.tile basic {BASIC} --print-tile a1[r]@48"),
        "run roles.tile manual -D M=16 --random 1 --print-tile slot[0,0:3]@37 --print-tile t[0,0:3]@3 \
         --print-tile b[0,0:3]@52",
        "run roles.tile piped -D M=16 -D N=40 --random 1 --print-tile t[0,0:3]@14",
    ]));
}
