//! Chip families, their counters, and the kinds of operations that return in order among
//! themselves.

use std::fmt;

use serde::{Serialize, Serializer};

use super::Text;

/// Chips with the same counters and rules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// gfx900 to gfx950: stores count as loads, and flat operations return out of order.
    Gfx9,
    /// gfx10: stores have a counter of their own.
    Gfx10,
    /// gfx11: as gfx10, with another encoding of waits.
    Gfx11,
    /// gfx12, but gfx125x: a counter for each kind of memory.
    Gfx12,
    /// gfx125x: also asynchronous copies, tensor copies and address translation.
    Gfx1250,
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 5] =
        [Family::Gfx9, Family::Gfx10, Family::Gfx11, Family::Gfx12, Family::Gfx1250];

    /// The family of a chip such as `gfx942`; `None` for chips before gfx9 and unknown ones.
    pub fn of_chip(chip: &str) -> Option<Self> {
        let number = chip.strip_prefix("gfx")?.split([':', '-']).next()?;
        match number {
            _ if number.starts_with("125") => Some(Family::Gfx1250),
            _ if number.starts_with("12") => Some(Family::Gfx12),
            _ if number.starts_with("11") => Some(Family::Gfx11),
            _ if number.starts_with("10") => Some(Family::Gfx10),
            _ if number.starts_with('9') && number.len() <= 3 => Some(Family::Gfx9),
            _ => None,
        }
    }

    /// The oldest family that has all of some instructions, for code whose chip is not known.
    pub fn infer<'a>(code: impl IntoIterator<Item = &'a Text<'a>>) -> Self {
        code.into_iter().map(|text| oldest_with(text.mnemonic)).max().unwrap_or(Family::Gfx9)
    }

    /// The family's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Family::Gfx9 => "gfx9",
            Family::Gfx10 => "gfx10",
            Family::Gfx11 => "gfx11",
            Family::Gfx12 => "gfx12",
            Family::Gfx1250 => "gfx1250",
        }
    }

    /// Whether each kind of memory has its own counter.
    pub(super) fn splits(self) -> bool {
        self >= Family::Gfx12
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Mnemonics, or their starts, that a family was the first to have.
const FIRST_WITH: &[(&str, Family)] = {
    use Family::*;
    &[
        ("s_wait_xcnt", Gfx1250),
        ("s_wait_asynccnt", Gfx1250),
        ("s_wait_tensorcnt", Gfx1250),
        ("s_set_vgpr_msb", Gfx1250),
        ("tensor_", Gfx1250),
        ("cluster_load_", Gfx1250),
        ("global_load_async_to_lds_", Gfx1250),
        ("s_wait_alu", Gfx12),
        ("s_wait_loadcnt", Gfx12),
        ("s_wait_storecnt", Gfx12),
        ("s_wait_samplecnt", Gfx12),
        ("s_wait_bvhcnt", Gfx12),
        ("s_wait_dscnt", Gfx12),
        ("s_wait_kmcnt", Gfx12),
        ("s_wait_expcnt", Gfx12),
        ("s_barrier_signal", Gfx12),
        ("s_delay_alu", Gfx11),
        ("v_dual_", Gfx11),
        ("s_load_b", Gfx11),
        ("global_load_b", Gfx11),
        ("ds_load_b", Gfx11),
        ("buffer_load_b", Gfx11),
        ("s_waitcnt_", Gfx10),
        ("s_code_end", Gfx10),
        ("s_inst_prefetch", Gfx10),
        ("buffer_gl", Gfx10),
        ("v_add_nc_", Gfx10),
    ]
};

fn oldest_with(mnemonic: &str) -> Family {
    if !mnemonic.starts_with(['s', 'v', 'b', 'g', 'd', 't', 'c']) {
        return Family::Gfx9;
    }
    let first = FIRST_WITH.iter().find(|(start, _)| mnemonic.starts_with(start));
    first.map_or(Family::Gfx9, |(_, family)| *family)
}

/// A counter of outstanding operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Counter {
    /// Vector memory: loads, and on gfx9 stores.
    Vm,
    /// Vector memory stores, on gfx10 and gfx11.
    Vs,
    /// LDS, GDS, scalar memory and messages.
    Lgkm,
    /// Exports, GDS sources, and direct LDS reads.
    Exp,
    /// Vector memory loads, from gfx12 on.
    Load,
    /// Vector memory stores, from gfx12 on.
    Store,
    /// Image sampling, on gfx12.
    Sample,
    /// Ray tracing, on gfx12.
    Bvh,
    /// LDS, from gfx12 on.
    Ds,
    /// Scalar memory and messages, from gfx12 on.
    Km,
    /// Copies between global memory and LDS, on gfx125x.
    Async,
    /// Tensor copies, on gfx125x.
    Tensor,
    /// Address translations, on gfx125x.
    X,
}

impl Counter {
    /// The counter's name, as waits spell it.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Vm => "vmcnt",
            Counter::Vs => "vscnt",
            Counter::Lgkm => "lgkmcnt",
            Counter::Exp => "expcnt",
            Counter::Load => "loadcnt",
            Counter::Store => "storecnt",
            Counter::Sample => "samplecnt",
            Counter::Bvh => "bvhcnt",
            Counter::Ds => "dscnt",
            Counter::Km => "kmcnt",
            Counter::Async => "asynccnt",
            Counter::Tensor => "tensorcnt",
            Counter::X => "xcnt",
        }
    }

    /// The counter of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        use Counter::*;
        [Vm, Vs, Lgkm, Exp, Load, Store, Sample, Bvh, Ds, Km, Async, Tensor, X]
            .into_iter()
            .find(|counter| counter.name() == name)
    }

    /// The highest count that the hardware can hold; issuing stalls there.
    pub(super) fn limit(self, family: Family) -> u32 {
        match self {
            Counter::Exp | Counter::Bvh => 7,
            Counter::Lgkm if family == Family::Gfx9 => 15,
            Counter::Km => 31,
            _ => 63,
        }
    }

    /// The lanes that count in this counter.
    pub(super) fn lanes(self, family: Family) -> impl Iterator<Item = Lane> {
        Lane::ALL.into_iter().filter(move |lane| lane.counter(family) == self)
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Counter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Operations of one kind in one counter. Those of an ordered lane return in the order of their
/// issue; between lanes, and in an unordered lane, nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Lane {
    Load,
    FlatVector,
    Store,
    ScratchStore,
    Sample,
    Bvh,
    Lds,
    FlatLds,
    Gds,
    Scalar,
    Message,
    ExportColor,
    ExportPosition,
    ExportParameter,
    GdsSource,
    LdsDirect,
    AsyncLoad,
    AsyncStore,
    Tensor,
    VectorAddress,
    ScalarAddress,
}

/// How many lanes there are.
pub(super) const LANES: usize = Lane::ScalarAddress as usize + 1;

impl Lane {
    pub(super) const ALL: [Lane; LANES] = {
        use Lane::*;
        [
            Load,
            FlatVector,
            Store,
            ScratchStore,
            Sample,
            Bvh,
            Lds,
            FlatLds,
            Gds,
            Scalar,
            Message,
            ExportColor,
            ExportPosition,
            ExportParameter,
            GdsSource,
            LdsDirect,
            AsyncLoad,
            AsyncStore,
            Tensor,
            VectorAddress,
            ScalarAddress,
        ]
    };

    /// The counter that the lane's operations are counted in.
    pub(super) fn counter(self, family: Family) -> Counter {
        let split = family.splits();
        match self {
            Lane::Load | Lane::FlatVector if split => Counter::Load,
            Lane::Load | Lane::FlatVector => Counter::Vm,
            Lane::Store | Lane::ScratchStore => match family {
                Family::Gfx9 => Counter::Vm,
                Family::Gfx10 | Family::Gfx11 => Counter::Vs,
                Family::Gfx12 | Family::Gfx1250 => Counter::Store,
            },
            Lane::Sample if split => Counter::Sample,
            Lane::Bvh if split => Counter::Bvh,
            Lane::Sample | Lane::Bvh => Counter::Vm,
            Lane::Lds | Lane::FlatLds | Lane::Gds if split => Counter::Ds,
            Lane::Scalar | Lane::Message if split => Counter::Km,
            Lane::Lds | Lane::FlatLds | Lane::Gds | Lane::Scalar | Lane::Message => Counter::Lgkm,
            Lane::ExportColor
            | Lane::ExportPosition
            | Lane::ExportParameter
            | Lane::GdsSource
            | Lane::LdsDirect => Counter::Exp,
            Lane::AsyncLoad | Lane::AsyncStore => Counter::Async,
            Lane::Tensor => Counter::Tensor,
            Lane::VectorAddress | Lane::ScalarAddress => Counter::X,
        }
    }

    /// Whether the lane's operations return in the order of their issue.
    pub(super) fn is_ordered(self) -> bool {
        !matches!(
            self,
            Lane::FlatVector | Lane::FlatLds | Lane::Scalar | Lane::Message | Lane::ScalarAddress
        )
    }

    /// Whether the lane counts how long sources are held, not when results arrive.
    pub(super) fn holds_sources(self) -> bool {
        matches!(
            self,
            Lane::ExportColor
                | Lane::ExportPosition
                | Lane::ExportParameter
                | Lane::GdsSource
                | Lane::VectorAddress
                | Lane::ScalarAddress
        )
    }
}

/// A set of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LaneSet(u32);

impl LaneSet {
    pub(super) fn of(lanes: impl IntoIterator<Item = Lane>) -> Self {
        LaneSet(lanes.into_iter().fold(0, |bits, lane| bits | 1 << lane as u32))
    }

    pub(super) fn with(self, lane: Lane) -> Self {
        LaneSet(self.0 | 1 << lane as u32)
    }

    pub(super) fn contains(self, lane: Lane) -> bool {
        self.0 & 1 << lane as u32 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Lane> {
        Lane::ALL.into_iter().filter(move |lane| self.contains(*lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_have_families() {
        for (chip, family) in [
            ("gfx900", Some(Family::Gfx9)),
            ("gfx90a", Some(Family::Gfx9)),
            ("gfx942:sramecc+:xnack-", Some(Family::Gfx9)),
            ("gfx9-4-generic", Some(Family::Gfx9)),
            ("gfx1036", Some(Family::Gfx10)),
            ("gfx11-generic", Some(Family::Gfx11)),
            ("gfx1201", Some(Family::Gfx12)),
            ("gfx1250", Some(Family::Gfx1250)),
            ("gfx803", None),
            ("sm_90", None),
            ("gfx", None),
        ] {
            assert_eq!(Family::of_chip(chip), family, "{chip}");
        }
    }

    #[test]
    fn every_counter_of_a_family_has_lanes() {
        use Counter::*;
        for (family, counters) in [
            (Family::Gfx9, &[Vm, Lgkm, Exp][..]),
            (Family::Gfx11, &[Vm, Vs, Lgkm, Exp]),
            (Family::Gfx12, &[Load, Store, Sample, Bvh, Ds, Km, Exp]),
            (Family::Gfx1250, &[Load, Store, Ds, Km, Async, Tensor, X]),
        ] {
            for counter in counters {
                assert!(counter.lanes(family).next().is_some(), "{family} {counter}");
            }
        }
        assert_eq!(Counter::named("lgkmcnt"), Some(Lgkm));
    }
}
