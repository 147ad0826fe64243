//! The numbers of a run as JSON. What did not happen is left out of lists of commands, units and banks.

use super::{Report, UnitReport};
use crate::dram::Command;
use crate::machine::account::{Bucket, Buckets};
use crate::machine::baseline::Traffic;
use crate::machine::bound::BoundBy;
use crate::machine::log::BankCount;
use ptoc_pim_stream::stream::SourceLine;
use serde_json::{Map, Value, json};

fn buckets(b: &Buckets) -> Value {
    Bucket::ALL.iter().map(|n| (n.name().to_owned(), json!(b[*n as usize]))).collect::<Map<_, _>>().into()
}

fn traffic(t: &Traffic) -> Value {
    json!({"ticks": t.ticks, "bytes_moved": t.moved, "bytes_useful": t.useful, "utilisation": t.utilisation,
           "row_hits": t.rows[0], "row_misses": t.rows[1], "row_conflicts": t.rows[2],
           "simulated_bursts": t.simulated[0], "bursts": t.simulated[1]})
}

impl Report {
    /// All of it.
    pub fn json(&self) -> Value {
        let e = &self.energy;
        json!({
            "device": self.device,
            "unit": self.unit,
            "cycles": self.cycles_json(self.ticks),
            "ticks": self.ticks,
            "tick_ps": self.tick_ps,
            "ns": self.ns(),
            "unit_clock_mhz": self.unit_mhz,
            "unit_cycles": self.unit_cycles(),
            "unit_step_ns": self.step_ns,
            "steps": self.steps.len(),
            "resident": self.resident.iter()
                .map(|(name, bytes)| json!({"array": name, "bytes": bytes}))
                .collect::<Vec<_>>(),
            "commands": self.commands_json(),
            "row_hits": self.rows[0],
            "row_misses": self.rows[1],
            "row_conflicts": self.rows[2],
            "bytes": {
                "host_moved": self.bytes.host_moved,
                "host_useful": self.bytes.host_useful,
                "unit_moved": self.bytes.unit_moved,
            },
            "utilisation": {"data_buses": self.utilisation()[0], "unit_banks": self.utilisation()[1]},
            "busy_pseudochannels": self.busy(),
            "unit_steps": self.unit_work[0],
            "lane_operations": self.unit_work[1],
            "attribution": buckets(&self.total()),
            "kinds": self.kinds_json(),
            "launches": self.launches.iter()
                .map(|l| l.json(self.place(l.place), &|ticks| self.cycles_json(ticks)))
                .collect::<Vec<_>>(),
            "lines": self.lines_json(),
            "per_pseudochannel": self.pchs_json(),
            "per_unit": self.units.iter().map(|u| self.unit_json(u)).collect::<Vec<_>>(),
            "per_bank": self.banks_json(),
            "energy_pj": {
                "activate": e.activate, "read": e.read, "write": e.write, "refresh": e.refresh,
                "background": e.background, "unit_access": self.unit_energy[0], "unit_operation": self.unit_energy[1],
                "total": self.picojoules(),
            },
            "host_baseline": {
                "streaming": self.baseline.streaming.as_ref().map(|t| self.traffic(t)),
                "gathering": self.baseline.gathering.as_ref().map(|t| self.traffic(t)),
                "launch_by_launch": self.launch_by_launch().map(|ticks| self.cycles_json(ticks)),
            },
        })
    }

    /// Clocks, as a whole number where they are.
    pub(super) fn cycles_json(&self, ticks: u64) -> Value {
        if ticks.is_multiple_of(self.clock_ticks) { json!(ticks / self.clock_ticks) } else { json!(self.clocks(ticks)) }
    }

    fn traffic(&self, t: &Traffic) -> Value {
        let mut out = traffic(t);
        out["cycles"] = self.cycles_json(t.ticks);
        out
    }

    fn commands_json(&self) -> Value {
        let happened = Command::ALL.iter().filter(|c| self.commands[**c as usize] > 0);
        happened.map(|c| (c.name().to_owned(), json!(self.commands[*c as usize]))).collect::<Map<_, _>>().into()
    }

    fn kinds_json(&self) -> Value {
        let kinds = self.kinds.iter().map(|(name, k)| {
            let mut value =
                json!({"steps": k.steps, "cycles": self.cycles_json(k.ticks), "attribution": buckets(&k.buckets)});
            if let Some(factor) = k.bound.factor(k.ticks) {
                let parts = BoundBy::ALL.iter().map(|by| (by.name().to_owned(), self.cycles_json(k.bound.part(*by))));
                let parts: Map<String, Value> = parts.collect();
                value["bound"] = json!({"cycles": self.cycles_json(k.bound.ticks()), "parts": parts, "factor": factor});
            }
            ((*name).to_owned(), value)
        });
        kinds.collect::<Map<_, _>>().into()
    }

    fn lines_json(&self) -> Vec<Value> {
        let lines = self.lines.iter();
        let one = |(p, b): (&SourceLine, &Buckets)| match self.file(*p) {
            Some(file) => json!({"file": file, "line": p.line, "attribution": buckets(b)}),
            // Steps without a place.
            None => json!({"file": null, "line": null, "attribution": buckets(b)}),
        };
        lines.map(one).collect()
    }

    fn pchs_json(&self) -> Vec<Value> {
        let per = self.shape[0] as usize;
        let pchs = self.pchs.iter().enumerate();
        pchs.map(|(n, b)| json!({"channel": n / per, "pseudochannel": n % per, "attribution": buckets(b)})).collect()
    }

    /// A unit; those with sequencers say what they worked on.
    fn unit_json(&self, u: &UnitReport) -> Value {
        let [channel, pch, group, bank] = self.bank(u.bank);
        let mut out = json!({"unit": u.number, "channel": channel, "pseudochannel": pch, "bankgroup": group,
                             "bank": bank, "steps": u.steps, "attribution": buckets(&u.buckets)});
        if let Some(s) = &u.sequencer {
            let [queries, samples, tiles] = s.work;
            out["queries"] = json!(queries);
            out["samples"] = json!(samples);
            out["tiles"] = json!(tiles);
            out["map_reads"] = json!(s.map[0]);
            out["map_hits"] = json!(s.map[1]);
            out["scratchpad_hits"] = json!(s.shared);
        }
        out
    }

    fn banks_json(&self) -> Vec<Value> {
        let banks = self.banks.iter().enumerate().filter(|(_, b)| **b != BankCount::default());
        banks
            .map(|(n, b)| {
                let [channel, pch, group, bank] = self.bank(n);
                json!({"channel": channel, "pseudochannel": pch, "bankgroup": group, "bank": bank,
                       "act": b.act, "rd": b.rd, "wr": b.wr, "unit_steps": b.steps})
            })
            .collect()
    }
}
