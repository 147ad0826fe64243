//! Energies against numbers computed by hand.

use ptoc_pim_sim::check::Cause;
use ptoc_pim_sim::check::bound::attribute;
use ptoc_pim_sim::dram::Command;
use ptoc_pim_sim::energy::{Currents, Model, PerBit, of_trace};

use crate::checker::at;
use crate::support::preset;

fn near(got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-9 * want.abs().max(1.0), "{got} and not {want}");
}

#[test]
fn idd() {
    let m = Model::idd(&Currents::HBM2, &preset("hbm2_2000"));
    // 1.2 (65 x 48 - 55 x 34 - 40 x 14) = 1.2 (3120 - 1870 - 560) = 1.2 x 690
    near(m.activate, 828.0);
    // 1.2 (390 - 55) x 2 ns = 804 pJ for 64 bytes, half for 32.
    near(m.read, 402.0);
    // 1.2 (500 - 55) x 2 / 2
    near(m.write, 534.0);
    // 1.2 (250 - 55) x 260 ns = 60840 pJ for the channel, half of it a pseudo-channel's.
    near(m.refresh_all, 30_420.0);
    // Over 16 banks.
    near(m.refresh_one, 1901.25);
    // 1.2 x 55 / 2, 1.2 x 40 / 2
    near(m.active_mw, 33.0);
    near(m.idle_mw, 24.0);
}

/// The published example has tRAS 33 and tRP 14: 1.2 (65 x 47 - 55 x 33 - 40 x 14) = 816 pJ.
#[test]
fn activation_of_the_published_example() {
    let mut config = preset("hbm2_2000");
    config.timing.ras = 33;
    near(Model::idd(&Currents::HBM2, &config).activate, 816.0);
}

#[test]
fn per_bit() {
    let config = preset("hbm2_2000");
    let m = Model::per_bit(&PerBit::HBM2, &Currents::HBM2, &config);
    // 0.11 x 8192 bits
    near(m.activate, 901.12);
    // (0.44 + 1.01 + 1.23 + 0.5 + 0.3) x 256 = 3.48 x 256
    near(m.read, 890.88);
    near(m.write, 890.88);
    near(m.refresh_all, 30_420.0);
}

/// HBM3 has a clock of 0.625 ns and 32-bit pseudo-channels.
#[test]
fn other_clocks_and_widths() {
    let m = Model::idd(&Currents::HBM2, &preset("hbm3_6400"));
    // ns: tRAS 28.125, tRP 16.25: 1.2 (65 x 44.375 - 55 x 28.125 - 40 x 16.25)
    near(m.activate, 1.2 * (2884.375 - 1546.875 - 650.0));
    // 1.2 x 335 x 1.25 ns x 32 / 64
    near(m.read, 251.25);
    // A quarter of 1.2 x 195 x 260 ns
    near(m.refresh_all, 15_210.0);
    near(m.active_mw, 16.5);
}

#[test]
fn tables() {
    let mut config = preset("hbm2_2000");
    config.energy = [("idd0_mA".to_owned(), 70.0)].into();
    // 1.2 (70 x 48 - 2430)
    near(Model::of(&config).unwrap().activate, 1116.0);
    config.energy = [("row_pJ_per_bit".to_owned(), 0.2)].into();
    near(Model::of(&config).unwrap().activate, 0.2 * 8192.0);
    for (key, value, says) in [
        ("idd0_mA", 40.0, "an activation has"),
        ("idd4r_mA", 50.0, "a read has"),
        ("vdd_V", -1.0, "not between 0"),
        ("vdd", 1.0, "no such key"),
    ] {
        config.energy = [(key.to_owned(), value)].into();
        let e = Model::of(&config).unwrap_err();
        assert!(e.key == key && e.message.contains(says), "{e:?}");
    }
}

#[test]
fn a_trace() {
    let config = preset("hbm2_2000");
    let m = Model::idd(&Currents::HBM2, &config);
    let trace = [
        at(0, Command::Act, 0, 0, 0, 0),
        at(4, Command::Act, 0, 1, 0, 0),
        at(15, Command::Rd, 0, 0, 0, 0),
        at(19, Command::Wr, 0, 1, 0, 0),
        at(40, Command::PrePb, 0, 0, 0, 0),
        at(50, Command::PreAb, 0, 0, 0, 0),
        at(64, Command::RefAb, 0, 0, 0, 0),
        at(70, Command::Act, 1, 0, 0, 0),
        at(90, Command::RdA, 1, 0, 0, 0),
    ];
    let e = of_trace(&m, &config, &trace, 100);
    near(e.activate, 3.0 * 828.0);
    near(e.read, 2.0 * 402.0);
    near(e.write, 534.0);
    near(e.refresh, 30_420.0);
    // Open from 0 to 50, and in the other pseudo-channel from 70 to 90.
    assert_eq!(e.open_ticks, 70);
    near(e.background, 70.0 * 33.0 + 130.0 * 24.0);
    near(e.total(), 2484.0 + 804.0 + 534.0 + 30_420.0 + 5430.0);
}

/// Where the time of a trace went, by hand.
#[test]
fn attribution() {
    let config = preset("hbm2_2000");
    let trace = [
        at(0, Command::Act, 0, 0, 0, 0),
        at(15, Command::Rd, 0, 0, 0, 0),
        at(19, Command::Rd, 0, 0, 0, 0),
        at(32, Command::Wr, 0, 0, 0, 0),
        // 32 + 23, then 13 to ACT and 15 to RD; the ACT comes two ticks late.
        at(55, Command::PrePb, 0, 0, 0, 0),
        at(70, Command::Act, 0, 0, 0, 1),
        at(85, Command::Rd, 0, 0, 0, 1),
    ];
    let b = attribute(&config, &trace);
    // Four bursts of two.
    assert_eq!(b.ticks(Cause::Data), 8);
    assert_eq!(b.ticks(Cause::Ccd), 2);
    assert_eq!(b.ticks(Cause::Turnaround), 11);
    assert_eq!(b.ticks(Cause::Controller), 2);
    // 15 for the first read; 21 for tWR after the data's two, 13 for tRP, 15 for tRCD.
    assert_eq!(b.ticks(Cause::Row), 15 + 21 + 13 + 15);
    assert_eq!(b.total(), 87);
    assert_eq!(b.dominant(), Cause::Row);
}

/// One ACT for each read on many banks: reads wait for tRCD, but what bounds the run is the distance of the ACTs.
#[test]
fn activations_bound_a_run() {
    let config = preset("hbm2_2000");
    let mut trace = Vec::new();
    for n in 0..12u64 {
        let (group, bank) = ((n % 4) as u16, (n / 4) as u16);
        trace.push(at(4 * n, Command::Act, 0, group, bank, 0));
        trace.push(at(4 * n + 15, Command::Rd, 0, group, bank, 0));
    }
    let b = attribute(&config, &trace);
    assert_eq!((b.ticks(Cause::Faw), b.ticks(Cause::Row), b.ticks(Cause::Data), b.total()), (44, 15, 2, 61));
    assert_eq!(b.dominant(), Cause::Faw);
    assert_eq!(attribute(&config, &[]).total(), 0);
}
