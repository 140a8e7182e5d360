//! Leaf classes: which operations and instructions have a place in the schedule.
//!
//! One table names operations and intrinsics, one names ISA mnemonics. Operation names are
//! those of MLIR 22's dialect documentation (`rocdl`, `amdgpu`, `gpu`), of Triton's and FlyDSL's
//! own dialects, and LLVM's `IntrinsicsAMDGPU.td`; mnemonics are those of the AMD ISA manuals
//! for gfx9, gfx10 to gfx12 and gfx1250, as LLVM's disassembler spells them.

use std::fmt;
use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use serde::{Serialize, Serializer};

/// What an operation or instruction does in the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Class {
    /// Matrix instructions: MFMA, SMFMAC, WMMA, their sparse and scaled forms.
    Mfma,
    /// Waits for counters of outstanding operations.
    Wait,
    /// Workgroup barriers, whole or split into signal and wait.
    Barrier,
    /// Loads from global memory straight into LDS.
    Dma,
    /// Reads of LDS.
    Lds,
    /// Scheduling barriers and priorities.
    Sched,
    /// Inline assembly that names no instruction of another leaf class.
    Asm,
    /// Everything else; not a leaf.
    Other,
}

impl Class {
    /// Every class in the order of their numbers, `other` last.
    pub const ALL: [Class; 8] = [
        Class::Mfma,
        Class::Wait,
        Class::Barrier,
        Class::Dma,
        Class::Lds,
        Class::Sched,
        Class::Asm,
        Class::Other,
    ];

    /// The classes of leaves: all but `other`.
    pub const LEAVES: [Class; 7] = [
        Class::Mfma,
        Class::Wait,
        Class::Barrier,
        Class::Dma,
        Class::Lds,
        Class::Sched,
        Class::Asm,
    ];

    /// The class's name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Mfma => "mfma",
            Class::Wait => "wait",
            Class::Barrier => "barrier",
            Class::Dma => "dma",
            Class::Lds => "lds",
            Class::Sched => "sched",
            Class::Asm => "asm",
            Class::Other => "other",
        }
    }

    /// The class as one bit.
    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether the class is a leaf.
    pub fn is_leaf(self) -> bool {
        self != Class::Other
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A leaf class, class list or class rule that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseLeafError {
    /// The word names no class.
    #[error("unknown leaf class '{0}': use mfma, wait, barrier, dma, lds, sched, asm or other")]
    Class(String),
    /// The list names no class at all.
    #[error(
        "empty list of leaf classes: name some of mfma, wait, barrier, dma, lds, sched, asm, other, or 'all'"
    )]
    Empty,
    /// The rule has no `=`.
    #[error("leaf rule '{0}' is not of the form CLASS=GLOB, such as mfma=mydsl.dot*")]
    Rule(String),
    /// The rule's glob is malformed.
    #[error("leaf rule '{rule}': {reason}")]
    Glob {
        /// The rule as given.
        rule: String,
        /// What is wrong with its glob.
        reason: String,
    },
}

impl FromStr for Class {
    type Err = ParseLeafError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Class::ALL
            .into_iter()
            .find(|class| class.name() == text)
            .ok_or_else(|| ParseLeafError::Class(text.into()))
    }
}

/// A set of classes: the value of `--leaves`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassSet(u8);

impl ClassSet {
    /// Every class, `other` included.
    pub const ALL: ClassSet = ClassSet(u8::MAX);

    /// Whether the set holds `class`.
    pub fn contains(self, class: Class) -> bool {
        self.0 & class.bit() != 0
    }
}

impl Default for ClassSet {
    fn default() -> Self {
        ClassSet::ALL
    }
}

impl FromIterator<Class> for ClassSet {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        ClassSet(classes.into_iter().fold(0, |bits, class| bits | class.bit()))
    }
}

impl FromStr for ClassSet {
    type Err = ParseLeafError;

    /// Reads a comma-separated list of class names; `all` stands for every class.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut set = ClassSet(0);
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            set.0 |= match word {
                "all" => ClassSet::ALL.0,
                _ => word.parse::<Class>()?.bit(),
            };
        }
        if set.0 == 0 { Err(ParseLeafError::Empty) } else { Ok(set) }
    }
}

/// One `--leaf CLASS=GLOB`: operations whose whole name matches belong to the class.
#[derive(Clone, Debug)]
pub struct LeafRule {
    class: Class,
    glob: GlobMatcher,
}

impl FromStr for LeafRule {
    type Err = ParseLeafError;

    fn from_str(rule: &str) -> Result<Self, Self::Err> {
        let (class, glob) = rule
            .split_once('=')
            .filter(|(_, glob)| !glob.is_empty())
            .ok_or_else(|| ParseLeafError::Rule(rule.into()))?;
        let glob = Glob::new(glob).map_err(|error| ParseLeafError::Glob {
            rule: rule.into(),
            reason: error.kind().to_string(),
        })?;
        Ok(LeafRule { class: class.parse()?, glob: glob.compile_matcher() })
    }
}

/// How the class of an operation follows from its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpClass {
    /// The name alone decides.
    Fixed(Class),
    /// A load or copy: `lds` or `dma` by the address spaces of its operands and results, see
    /// [`class_of_copy`].
    BySpace,
    /// Inline assembly: the text decides, see [`class_of_asm`].
    ByAsm,
    /// A call of an intrinsic: the intrinsic's name decides, see [`class_of_intrinsic`].
    ByIntrinsic,
}

/// Classifies operations by name: the rules of `--leaf` first, then the built-in table.
#[derive(Clone, Default, Debug)]
pub struct LeafTable {
    rules: Vec<LeafRule>,
}

impl LeafTable {
    /// A table with additional rules; the last matching rule wins.
    pub fn new(rules: Vec<LeafRule>) -> Self {
        LeafTable { rules }
    }

    /// How the class of the operation `name` (such as `rocdl.s.barrier`) is found.
    pub fn op_class(&self, name: &str) -> OpClass {
        match self.rules.iter().rev().find(|rule| rule.glob.is_match(name)) {
            Some(rule) => OpClass::Fixed(rule.class),
            None => op_class(name),
        }
    }

    /// The class of an instruction: the rules see its mnemonic as a name, then [`class_of_isa`]
    /// decides.
    pub fn isa_class(&self, mnemonic: &str, operands: &str) -> Class {
        match self.rules.iter().rev().find(|rule| rule.glob.is_match(mnemonic)) {
            Some(rule) => rule.class,
            None => class_of_isa(mnemonic, operands),
        }
    }
}

/// Operations of other dialects than `rocdl`, which [`class_of_intrinsic`] covers. A trailing
/// `*` matches any rest.
const OPERATIONS: &[(&str, OpClass)] = {
    use Class::*;
    use OpClass::*;
    &[
        ("amdgpu.mfma", Fixed(Mfma)),
        ("amdgpu.scaled_mfma", Fixed(Mfma)),
        ("amdgpu.scaled_wmma", Fixed(Mfma)),
        ("amdgpu.sparse_mfma", Fixed(Mfma)),
        ("amdgpu.sparse_wmma", Fixed(Mfma)),
        ("amdgpu.wmma", Fixed(Mfma)),
        ("gpu.subgroup_mma_compute", Fixed(Mfma)),
        ("tt.dot", Fixed(Mfma)),
        ("tt.dot_scaled", Fixed(Mfma)),
        ("fly.gemm", Fixed(Mfma)),
        ("fly.mma*", Fixed(Mfma)),
        ("amdgpu.memory_counter_wait", Fixed(Wait)),
        ("ttg.async_wait", Fixed(Wait)),
        ("amdg.async_wait", Fixed(Wait)),
        ("amdg.async_tdm_wait", Fixed(Wait)),
        ("amdgpu.lds_barrier", Fixed(Barrier)),
        ("gpu.barrier", Fixed(Barrier)),
        ("ttg.barrier", Fixed(Barrier)),
        ("ttg.local_barrier", Fixed(Barrier)),
        ("amdgpu.gather_to_lds", Fixed(Dma)),
        ("amdgpu.tensor_load_to_lds", Fixed(Dma)),
        ("ttg.async_copy_global_to_local", Fixed(Dma)),
        ("amdg.buffer_load_to_local", Fixed(Dma)),
        ("amdg.async_tdm_copy_global_to_local", Fixed(Dma)),
        ("amdgpu.transpose_load", Fixed(Lds)),
        ("ttg.local_load", Fixed(Lds)),
        ("amdg.local_load_packed_tranposed", Fixed(Lds)),
        ("amdgpu.sched_barrier", Fixed(Sched)),
        ("fly.copy*", BySpace),
        ("fly.memref.load*", BySpace),
        ("fly.ptr.load", BySpace),
        ("affine.load", BySpace),
        ("affine.vector_load", BySpace),
        ("llvm.load", BySpace),
        ("memref.load", BySpace),
        ("ptr.load", BySpace),
        ("vector.gather", BySpace),
        ("vector.load", BySpace),
        ("vector.maskedload", BySpace),
        ("vector.transfer_read", BySpace),
        ("llvm.inline_asm", ByAsm),
        ("llvm.call", ByIntrinsic),
        ("llvm.call_intrinsic", ByIntrinsic),
    ]
};

fn op_class(name: &str) -> OpClass {
    if let Some(suffix) = name.strip_prefix("rocdl.") {
        return OpClass::Fixed(class_of_amdgcn(suffix));
    }
    OPERATIONS
        .iter()
        .find(|(pattern, _)| matches(pattern, name))
        .map_or(OpClass::Fixed(Class::Other), |(_, class)| *class)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// Names behind `rocdl.` and `llvm.amdgcn.`. A pattern without `*` also matches the name with
/// an overload suffix (`.p3`) behind it.
const AMDGCN: &[(&str, Class)] = {
    use Class::*;
    &[
        ("mfma.*", Mfma),
        ("smfmac.*", Mfma),
        ("wmma.*", Mfma),
        ("swmmac.*", Mfma),
        ("s.waitcnt*", Wait),
        ("s.wait.*", Wait),
        ("wait.asyncmark", Wait),
        ("s.barrier*", Barrier),
        ("s.cluster.barrier", Barrier),
        ("barrier", Barrier),
        ("raw.buffer.load.lds", Dma),
        ("raw.buffer.load.async.lds", Dma),
        ("raw.ptr.buffer.load.lds", Dma),
        ("raw.ptr.buffer.load.async.lds", Dma),
        ("struct.buffer.load.lds", Dma),
        ("struct.buffer.load.async.lds", Dma),
        ("struct.ptr.buffer.load.lds", Dma),
        ("struct.ptr.buffer.load.async.lds", Dma),
        ("global.load.lds", Dma),
        ("global.load.async.lds", Dma),
        ("global.load.async.to.lds*", Dma),
        ("cluster.load.async.to.lds*", Dma),
        ("load.to.lds", Dma),
        ("load.async.to.lds", Dma),
        ("tensor.load.to.lds*", Dma),
        ("ds.read*", Lds),
        ("ds.load*", Lds),
        ("lds.direct.load", Lds),
        ("sched.barrier", Sched),
        ("sched.group.barrier", Sched),
        ("iglp.opt", Sched),
        ("s.setprio*", Sched),
    ]
};

fn class_of_amdgcn(suffix: &str) -> Class {
    let overloaded =
        |pattern: &str| suffix.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'));
    AMDGCN
        .iter()
        .find(|(pattern, _)| matches(pattern, suffix) || overloaded(pattern))
        .map_or(Class::Other, |(_, class)| *class)
}

/// The class of an LLVM intrinsic or of any other called function, by its name.
pub fn class_of_intrinsic(name: &str) -> Class {
    name.strip_prefix("llvm.amdgcn.").map_or(Class::Other, class_of_amdgcn)
}

/// A memory that a load or copy reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// LDS: address space 3.
    Lds,
    /// Any other memory.
    Elsewhere,
}

/// The memory that a type, given by its MLIR text, points to; `None` for other types.
///
/// Known are `!llvm.ptr`, `!ptr.ptr`, `memref` with numeric or `#gpu.address_space` spaces,
/// and FlyDSL's `!fly.ptr`, `!fly.memref` and tile types, whose text names the space.
pub fn space_of_type(text: &str) -> Option<Space> {
    let pointer = ["!llvm.ptr", "!ptr.ptr", "memref<", "!fly.ptr", "!fly.memref", "!fly.tensor"]
        .iter()
        .any(|start| text.starts_with(start));
    if !pointer {
        return None;
    }
    let named = ["workgroup", "shared", "lds"].iter().any(|space| contains_word(text, space));
    let numbered = text.strip_suffix('>').is_some_and(|body| {
        let last = body.rsplit(['<', ',']).next().unwrap_or_default().trim();
        last == "3" || last.strip_prefix("3 :").is_some()
    });
    Some(if named || numbered { Space::Lds } else { Space::Elsewhere })
}

fn contains_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|part| part.eq_ignore_ascii_case(word))
}

/// The class of a load or copy from the memories of its operands, in their order, and then of
/// its results. The first is the source, as in every load and in `fly`'s copies; a second one
/// is the destination.
pub fn class_of_copy(spaces: impl IntoIterator<Item = Space>) -> Class {
    let mut spaces = spaces.into_iter();
    match (spaces.next(), spaces.next()) {
        (Some(Space::Elsewhere), Some(Space::Lds)) => Class::Dma,
        (Some(Space::Lds), _) => Class::Lds,
        _ => Class::Other,
    }
}

/// The class of inline assembly: that of the first instruction in it that is a leaf, else
/// `asm`.
pub fn class_of_asm(text: &str) -> Class {
    text.split(['\n', ';'])
        .filter_map(|statement| {
            let statement = statement.split("//").next().unwrap_or_default().trim();
            let (mnemonic, operands) =
                statement.split_once(char::is_whitespace).unwrap_or((statement, ""));
            Some(class_of_isa(mnemonic, operands)).filter(|class| class.is_leaf())
        })
        .next()
        .unwrap_or(Class::Asm)
}

/// Mnemonics of the ISA. A trailing `*` matches any rest.
const MNEMONICS: &[(&str, Class)] = {
    use Class::*;
    &[
        ("v_mfma_*", Mfma),
        ("v_smfmac_*", Mfma),
        ("v_wmma_*", Mfma),
        ("v_swmmac_*", Mfma),
        ("s_waitcnt*", Wait),
        ("s_wait_*", Wait),
        ("s_barrier*", Barrier),
        ("global_load_lds_*", Dma),
        ("scratch_load_lds_*", Dma),
        ("global_load_async_to_lds_*", Dma),
        ("global_load_async_lds_*", Dma),
        ("cluster_load_async_to_lds_*", Dma),
        ("tensor_load_to_lds*", Dma),
        ("ds_read*", Lds),
        ("ds_load*", Lds),
        ("ds_direct_load", Lds),
        ("ds_param_load", Lds),
        ("lds_direct_load", Lds),
        ("lds_param_load", Lds),
        ("s_setprio*", Sched),
    ]
};

/// The class of an instruction by its mnemonic, without the disassembler's `_e32`, `_e64` and
/// similar suffixes mattering, and its operands as text. Buffer loads are `dma` when they have
/// the `lds` modifier.
pub fn class_of_isa(mnemonic: &str, operands: &str) -> Class {
    if mnemonic.starts_with("buffer_load_") {
        let dma =
            mnemonic.ends_with("_lds") || operands.split_whitespace().any(|word| word == "lds");
        return if dma { Class::Dma } else { Class::Other };
    }
    MNEMONICS
        .iter()
        .find(|(pattern, _)| matches(pattern, mnemonic))
        .map_or(Class::Other, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: &str) -> OpClass {
        LeafTable::default().op_class(name)
    }

    #[test]
    fn operations_have_their_class() {
        for (name, class) in [
            ("rocdl.mfma.f32.32x32x8f16", Class::Mfma),
            ("rocdl.mfma.scale.f32.16x16x128.f8f6f4", Class::Mfma),
            ("rocdl.smfmac.f32.16x16x32.f16", Class::Mfma),
            ("rocdl.wmma.f32.16x16x16.f16", Class::Mfma),
            ("rocdl.swmmac.f32.16x16x32.f16", Class::Mfma),
            ("amdgpu.mfma", Class::Mfma),
            ("tt.dot", Class::Mfma),
            ("rocdl.s.waitcnt", Class::Wait),
            ("rocdl.waitcnt", Class::Other),
            ("rocdl.s.wait.dscnt", Class::Wait),
            ("rocdl.s.barrier", Class::Barrier),
            ("rocdl.s.barrier.signal", Class::Barrier),
            ("rocdl.barrier", Class::Barrier),
            ("gpu.barrier", Class::Barrier),
            ("amdgpu.lds_barrier", Class::Barrier),
            ("rocdl.raw.ptr.buffer.load.lds", Class::Dma),
            ("rocdl.raw.ptr.buffer.load", Class::Other),
            ("rocdl.load.to.lds", Class::Dma),
            ("rocdl.global.load.lds", Class::Dma),
            ("rocdl.global.load.async.to.lds.b128", Class::Dma),
            ("amdgpu.gather_to_lds", Class::Dma),
            ("rocdl.ds.read.tr16.b64", Class::Lds),
            ("rocdl.ds.load.tr8.b64", Class::Lds),
            ("rocdl.ds_bpermute", Class::Other),
            ("rocdl.sched.barrier", Class::Sched),
            ("rocdl.sched.group.barrier", Class::Sched),
            ("rocdl.iglp.opt", Class::Sched),
            ("rocdl.s.setprio", Class::Sched),
            ("arith.addf", Class::Other),
            ("llvm.store", Class::Other),
        ] {
            assert_eq!(op(name), OpClass::Fixed(class), "{name}");
        }
        assert_eq!(op("llvm.load"), OpClass::BySpace);
        assert_eq!(op("fly.ptr.load"), OpClass::BySpace);
        assert_eq!(op("llvm.inline_asm"), OpClass::ByAsm);
        assert_eq!(op("llvm.call_intrinsic"), OpClass::ByIntrinsic);
    }

    #[test]
    fn intrinsics_have_their_class() {
        for (name, class) in [
            ("llvm.amdgcn.mfma.f32.32x32x8f16", Class::Mfma),
            ("llvm.amdgcn.s.waitcnt", Class::Wait),
            ("llvm.amdgcn.s.barrier", Class::Barrier),
            ("llvm.amdgcn.raw.ptr.buffer.load.lds", Class::Dma),
            ("llvm.amdgcn.load.to.lds.p1", Class::Dma),
            ("llvm.amdgcn.ds.read.tr16.b64.v4f16", Class::Lds),
            ("llvm.amdgcn.sched.barrier", Class::Sched),
            ("llvm.fma.f32", Class::Other),
            ("__ocml_exp2_f32", Class::Other),
        ] {
            assert_eq!(class_of_intrinsic(name), class, "{name}");
        }
    }

    #[test]
    fn instructions_have_their_class() {
        for (mnemonic, operands, class) in [
            ("v_mfma_f32_32x32x8_f16", "a[0:15], v[0:1], v[2:3], a[0:15]", Class::Mfma),
            ("v_smfmac_f32_16x16x32_f16", "", Class::Mfma),
            ("v_wmma_f32_16x16x16_f16", "", Class::Mfma),
            ("v_swmmac_f32_16x16x32_f16", "", Class::Mfma),
            ("v_dot2_f32_f16", "", Class::Other),
            ("s_waitcnt", "vmcnt(0)", Class::Wait),
            ("s_waitcnt_vscnt", "null, 0x0", Class::Wait),
            ("s_wait_loadcnt_dscnt", "0x0", Class::Wait),
            ("s_barrier", "", Class::Barrier),
            ("s_barrier_signal", "-1", Class::Barrier),
            ("s_barrier_wait", "-1", Class::Barrier),
            ("buffer_load_dword", "v1, s[0:3], 0 offen lds", Class::Dma),
            ("buffer_load_dwordx4", "v1, s[0:3], 0 offen lds", Class::Dma),
            ("buffer_load_dword", "v2, v1, s[0:3], 0 offen", Class::Other),
            ("global_load_lds_dwordx4", "v[0:1], off", Class::Dma),
            ("global_load_async_to_lds_b128", "", Class::Dma),
            ("tensor_load_to_lds", "", Class::Dma),
            ("ds_read_b128", "v[0:3], v4", Class::Lds),
            ("ds_load_b128", "v[0:3], v4", Class::Lds),
            ("ds_read_b64_tr_b16", "v[0:1], v4", Class::Lds),
            ("ds_write_b128", "", Class::Other),
            ("ds_bpermute_b32", "", Class::Other),
            ("s_setprio", "1", Class::Sched),
            ("s_nop", "0", Class::Other),
        ] {
            assert_eq!(class_of_isa(mnemonic, operands), class, "{mnemonic} {operands}");
        }
    }

    #[test]
    fn assembly_is_classified_by_its_first_leaf() {
        assert_eq!(class_of_asm("s_waitcnt vmcnt(0)"), Class::Wait);
        assert_eq!(class_of_asm("s_nop 1\n\ts_barrier"), Class::Barrier);
        assert_eq!(class_of_asm("; nothing but a comment"), Class::Asm);
        assert_eq!(class_of_asm("v_add_f32 $0, $1, $2"), Class::Asm);
        assert_eq!(class_of_asm("v_mov_b32 $0, 0 // s_barrier"), Class::Asm);
        assert_eq!(class_of_asm("buffer_load_dword $0, $1, 0 offen lds"), Class::Dma);
    }

    #[test]
    fn loads_are_classified_by_their_memories() {
        let class = |types: &[&str]| class_of_copy(types.iter().filter_map(|t| space_of_type(t)));
        assert_eq!(class(&["!llvm.ptr<3>"]), Class::Lds);
        assert_eq!(class(&["!llvm.ptr<1>"]), Class::Other);
        assert_eq!(class(&["!llvm.ptr"]), Class::Other);
        assert_eq!(class(&["memref<64xf16, #gpu.address_space<workgroup>>", "index"]), Class::Lds);
        assert_eq!(class(&["memref<4x3xf16>", "index"]), Class::Other);
        assert_eq!(class(&["memref<64xf16, 3>"]), Class::Lds);
        assert_eq!(class(&["memref<64xf16, 3 : i32>"]), Class::Lds);
        assert_eq!(class(&["memref<64xf16, strided<[3]>>"]), Class::Other);
        assert_eq!(
            class(&["!fly.memref<f16, global, 8:1>", "!fly.memref<f16, shared, 8:1>"]),
            Class::Dma
        );
        assert_eq!(
            class(&["!fly.memref<f16, shared, 8:1>", "!fly.memref<f16, register, 8:1>"]),
            Class::Lds
        );
        assert_eq!(class(&["!fly.ptr<f16, shared>", "i32"]), Class::Lds);
        assert_eq!(class(&["f32"]), Class::Other);
    }

    #[test]
    fn rules_come_before_the_table_and_the_last_one_wins() {
        let rules = ["mfma=mydsl.*", "wait=mydsl.wait", "other=gpu.barrier"];
        let table = LeafTable::new(rules.iter().map(|r| r.parse().unwrap()).collect());
        assert_eq!(table.op_class("mydsl.dot"), OpClass::Fixed(Class::Mfma));
        assert_eq!(table.op_class("mydsl.wait"), OpClass::Fixed(Class::Wait));
        assert_eq!(table.op_class("gpu.barrier"), OpClass::Fixed(Class::Other));
        assert_eq!(table.op_class("rocdl.s.barrier"), OpClass::Fixed(Class::Barrier));
        let table = LeafTable::new(vec!["mfma=v_dot*".parse().unwrap()]);
        assert_eq!(table.isa_class("v_dot2_f32_f16", ""), Class::Mfma);
        assert_eq!(table.isa_class("buffer_load_dword", "v1, s[0:3], 0 lds"), Class::Dma);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert_eq!("gemm".parse::<Class>(), Err(ParseLeafError::Class("gemm".into())));
        assert_eq!("mfma,gemm".parse::<ClassSet>(), Err(ParseLeafError::Class("gemm".into())));
        assert_eq!(" , ".parse::<ClassSet>(), Err(ParseLeafError::Empty));
        assert!(matches!("mfma".parse::<LeafRule>(), Err(ParseLeafError::Rule(_))));
        assert!(matches!("mfma=".parse::<LeafRule>(), Err(ParseLeafError::Rule(_))));
        assert!(matches!("mfma=[".parse::<LeafRule>(), Err(ParseLeafError::Glob { .. })));
        let set: ClassSet = "mfma, wait".parse().unwrap();
        assert!(
            set.contains(Class::Mfma) && set.contains(Class::Wait) && !set.contains(Class::Other)
        );
    }
}
