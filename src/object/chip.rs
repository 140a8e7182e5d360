//! Which chip a code object is for: the machine and feature bits of its ELF header.

use std::fmt;

/// The target that a code object was compiled for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The chip, such as `gfx942`.
    pub chip: String,
    /// The memory replay and error correction settings that the code depends on.
    pub features: Vec<Feature>,
}

/// A setting of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// Retried memory accesses, on or off.
    Xnack(bool),
    /// Error correction of SRAM, on or off.
    Sramecc(bool),
}

impl Feature {
    fn name(self) -> (&'static str, bool) {
        match self {
            Feature::Xnack(on) => ("xnack", on),
            Feature::Sramecc(on) => ("sramecc", on),
        }
    }
}

/// `EF_AMDGPU_MACH` values from `EF_AMDGPU_MACH_AMDGCN_GFX600` on; empty where reserved.
const CHIPS: [&str; 64] = [
    "gfx600",
    "gfx601",
    "gfx700",
    "gfx701",
    "gfx702",
    "gfx703",
    "gfx704",
    "", //
    "gfx801",
    "gfx802",
    "gfx803",
    "gfx810",
    "gfx900",
    "gfx902",
    "gfx904",
    "gfx906", //
    "gfx908",
    "gfx909",
    "gfx90c",
    "gfx1010",
    "gfx1011",
    "gfx1012",
    "gfx1030",
    "gfx1031", //
    "gfx1032",
    "gfx1033",
    "gfx602",
    "gfx705",
    "gfx805",
    "gfx1035",
    "gfx1034",
    "gfx90a", //
    "gfx940",
    "gfx1100",
    "gfx1013",
    "gfx1150",
    "gfx1103",
    "gfx1036",
    "gfx1101",
    "gfx1102", //
    "gfx1200",
    "gfx1250",
    "gfx1151",
    "gfx941",
    "gfx942",
    "",
    "gfx1201",
    "gfx950", //
    "",
    "gfx9-generic",
    "gfx10-1-generic",
    "gfx10-3-generic",
    "gfx11-generic",
    "gfx1152",
    "",
    "", //
    "gfx1153",
    "gfx12-generic",
    "gfx1251",
    "",
    "",
    "",
    "",
    "gfx9-4-generic",
];

/// `EF_AMDGPU_MACH_AMDGCN_GFX600`.
const FIRST_CHIP: u32 = 0x20;

impl Target {
    /// Reads the flags of an AMDGPU ELF header, in the form of code object versions 4 and later
    /// (`EI_ABIVERSION` 2) or 3.
    pub(crate) fn from_flags(flags: u32, abi_version: u8) -> Option<Self> {
        let chip = *CHIPS.get((flags & 0xff).checked_sub(FIRST_CHIP)? as usize)?;
        if chip.is_empty() {
            return None;
        }
        Some(Target { chip: chip.into(), features: features(flags, abi_version) })
    }
}

fn features(flags: u32, abi_version: u8) -> Vec<Feature> {
    if abi_version < 2 {
        let xnack = (flags & 0x100 != 0).then_some(Feature::Xnack(true));
        let sramecc = (flags & 0x200 != 0).then_some(Feature::Sramecc(true));
        return sramecc.into_iter().chain(xnack).collect();
    }
    let setting = |bits: u32| match bits & 3 {
        2 => Some(false),
        3 => Some(true),
        _ => None,
    };
    let sramecc = setting(flags >> 10).map(Feature::Sramecc);
    let xnack = setting(flags >> 8).map(Feature::Xnack);
    sramecc.into_iter().chain(xnack).collect()
}

impl fmt::Display for Target {
    /// The target id, such as `gfx942:sramecc+:xnack-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chip)?;
        for (name, on) in self.features.iter().map(|feature| feature.name()) {
            write!(f, ":{name}{}", if on { '+' } else { '-' })?;
        }
        Ok(())
    }
}

impl Target {
    /// The features in the form that LLVM's code generators take: `+xnack,-sramecc`.
    pub(crate) fn llvm_features(&self) -> String {
        let features = self.features.iter().map(|feature| feature.name());
        let signed = features.map(|(name, on)| format!("{}{name}", if on { '+' } else { '-' }));
        signed.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(flags: u32, abi_version: u8) -> Option<String> {
        Target::from_flags(flags, abi_version).map(|target| target.to_string())
    }

    #[test]
    fn flags_give_the_target_id() {
        assert_eq!(id(0x54c, 4).as_deref(), Some("gfx942"));
        assert_eq!(id(0xe4c, 4).as_deref(), Some("gfx942:sramecc+:xnack-"));
        assert_eq!(id(0x049, 4).as_deref(), Some("gfx1250"));
        assert_eq!(id(0x04f, 4).as_deref(), Some("gfx950"));
        assert_eq!(id(0x103f, 4).as_deref(), Some("gfx90a"));
        assert_eq!(id(0x05f, 4).as_deref(), Some("gfx9-4-generic"));
        assert_eq!(id(0x32f, 1).as_deref(), Some("gfx906:sramecc+:xnack+"));
        assert_eq!(id(0x027, 4), None);
        assert_eq!(id(0x001, 4), None);
        assert_eq!(id(0x060, 4), None);
    }
}
