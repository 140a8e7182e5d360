//! What an instruction does to the counters and to the control flow.

use smallvec::SmallVec;

use super::Text;
use super::counter::{Counter, Family, Lane, LaneSet};

/// An instruction's effects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Decoded {
    /// The lanes that it starts an operation in.
    pub(super) issues: LaneSet,
    /// The counts that it waits for, before it starts anything.
    pub(super) limits: SmallVec<[(Counter, u32); 3]>,
    /// Whether it is an instruction for waiting, not one with a wait besides.
    pub(super) is_wait: bool,
    /// How it goes on.
    pub(super) flow: Flow,
}

/// Where control goes behind an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Flow {
    /// To the next instruction.
    #[default]
    Next,
    /// To a target, by its distance in words from the next instruction; `None` where the text
    /// does not say it.
    Jump(Option<i64>),
    /// To the target or to the next instruction.
    Branch(Option<i64>),
    /// To the address in registers.
    Indirect,
    /// To a function and back.
    Call,
    /// Nowhere.
    End,
}

impl Decoded {
    /// Whether the counters care about the instruction.
    pub(super) fn matters(&self) -> bool {
        !self.issues.is_empty() || !self.limits.is_empty() || self.flow == Flow::Call
    }
}

/// Decodes one instruction.
pub(super) fn decode(text: &Text<'_>, family: Family) -> Decoded {
    let mnemonic = text.mnemonic;
    match mnemonic.as_bytes() {
        [b's', b'_', ..] => scalar(text, family),
        [b'v', ..] => vector_alu(text),
        _ => issue(memory(text, family)),
    }
}

fn issue(issues: LaneSet) -> Decoded {
    Decoded { issues, ..Decoded::default() }
}

/// An interpolation can wait for the parameters that it reads.
fn vector_alu(text: &Text<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    if text.mnemonic.starts_with("v_interp_") {
        let mut words = text.operands.split_whitespace();
        let count = words.find_map(|word| number(word.strip_prefix("wait_exp:")?));
        let limit = count.and_then(|count| u32::try_from(count).ok()).filter(|limit| *limit < 7);
        decoded.limits.extend(limit.map(|limit| (Counter::Exp, limit)));
    }
    decoded
}

fn scalar(text: &Text<'_>, family: Family) -> Decoded {
    let mnemonic = text.mnemonic;
    if let Some(flow) = flow(text) {
        return Decoded { flow, ..Decoded::default() };
    }
    if mnemonic.starts_with("s_wait") {
        return wait(text, family);
    }
    issue(scalar_memory(mnemonic, family))
}

/// Whether an instruction calls a function: it keeps where to come back to.
pub(in crate::object) fn is_call(mnemonic: &str) -> bool {
    matches!(mnemonic, "s_swappc_b64" | "s_swap_pc_i64" | "s_call_b64" | "s_call_i64")
}

fn flow(text: &Text<'_>) -> Option<Flow> {
    let mnemonic = text.mnemonic;
    let target = |operand: usize| distance(text.operands.split(',').nth(operand)?);
    Some(match mnemonic {
        "s_branch" => Flow::Jump(target(0)),
        "s_subvector_loop_begin" | "s_subvector_loop_end" => Flow::Branch(target(1)),
        "s_setpc_b64" | "s_set_pc_i64" | "s_cbranch_join" | "s_cbranch_g_fork" => Flow::Indirect,
        "s_add_pc_i64" => Flow::Jump(number(text.operands).map(|bytes| bytes.div_euclid(4))),
        "s_cbranch_i_fork" => Flow::Branch(target(1)),
        _ if is_call(mnemonic) => Flow::Call,
        _ if mnemonic.starts_with("s_cbranch_") => Flow::Branch(target(0)),
        _ if mnemonic.starts_with("s_endpgm") || mnemonic.starts_with("s_rfe") => Flow::End,
        _ => return None,
    })
}

/// A branch's distance: a 16-bit number, printed with or without its sign.
fn distance(operand: &str) -> Option<i64> {
    let distance = number(operand.split_whitespace().next()?)?;
    match distance {
        -0x8000..=0x7fff => Some(distance),
        0x8000..=0xffff => Some(distance - 0x1_0000),
        _ => None,
    }
}

/// A decimal or hexadecimal number.
pub(super) fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

fn wait(text: &Text<'_>, family: Family) -> Decoded {
    let limits = limits(text, family);
    Decoded { is_wait: !limits.is_empty(), limits, ..Decoded::default() }
}

/// The counts that a wait waits for. A count that the counter cannot exceed is no wait.
fn limits(text: &Text<'_>, family: Family) -> SmallVec<[(Counter, u32); 3]> {
    let mut limits = SmallVec::new();
    let mut add = |counter: Counter, limit: Option<i64>| {
        if let Some(limit) = limit.and_then(|limit| u32::try_from(limit).ok())
            && limit < counter.limit(family)
        {
            limits.push((counter, limit));
        }
    };
    let immediate = || number(text.operands);
    match text.mnemonic {
        "s_waitcnt" => match immediate() {
            Some(packed) => {
                packed_counts(packed, family).into_iter().for_each(|(c, n)| add(c, Some(n)));
            }
            None => named_counts(text.operands).for_each(|(c, n)| add(c, n)),
        },
        "s_wait_loadcnt_dscnt" | "s_wait_storecnt_dscnt" => {
            let load = text.mnemonic == "s_wait_loadcnt_dscnt";
            let high = if load { Counter::Load } else { Counter::Store };
            add(high, immediate().map(|packed| packed >> 8 & 0x3f));
            add(Counter::Ds, immediate().map(|packed| packed & 0x3f));
        }
        "s_wait_idle" => {
            for lane in Lane::ALL.iter().filter(|lane| is_idle_lane(**lane, family)) {
                add(lane.counter(family), Some(0));
            }
        }
        other => {
            let counter = other.strip_prefix("s_waitcnt_").or(other.strip_prefix("s_wait_"));
            if let Some(counter) = counter.and_then(Counter::named) {
                add(counter, in_register_form(text.operands));
            }
        }
    }
    limits.sort_unstable_by_key(|(counter, _)| *counter);
    limits.dedup_by_key(|(counter, _)| *counter);
    limits
}

/// Whether a lane of this family stands for the counter that it is in.
fn is_idle_lane(lane: Lane, family: Family) -> bool {
    match lane.counter(family) {
        Counter::Async | Counter::Tensor | Counter::X => family == Family::Gfx1250,
        _ => true,
    }
}

/// `null, 0x3`, or the number alone. With another register than `null` the count is not known.
fn in_register_form(operands: &str) -> Option<i64> {
    match operands.split_once(',') {
        Some((register, count)) if register.trim() == "null" => number(count),
        Some(_) => None,
        None => number(operands),
    }
}

/// `vmcnt(0) lgkmcnt(3)`, also with `&` or `,` between.
fn named_counts(operands: &str) -> impl Iterator<Item = (Counter, Option<i64>)> + '_ {
    operands.split([' ', '&', ',']).filter_map(|word| {
        let (name, count) = word.strip_suffix(')')?.split_once('(')?;
        Some((Counter::named(name)?, number(count)))
    })
}

/// The fields of the 16 bits of `s_waitcnt`.
fn packed_counts(packed: i64, family: Family) -> [(Counter, i64); 3] {
    let field = |shift: u32, bits: u32| packed >> shift & ((1 << bits) - 1);
    let (vm, exp, lgkm) = match family {
        Family::Gfx9 => (field(0, 4) | field(14, 2) << 4, field(4, 3), field(8, 4)),
        Family::Gfx10 => (field(0, 4) | field(14, 2) << 4, field(4, 3), field(8, 6)),
        _ => (field(10, 6), field(0, 3), field(4, 6)),
    };
    [(Counter::Vm, vm), (Counter::Exp, exp), (Counter::Lgkm, lgkm)]
}

fn scalar_memory(mnemonic: &str, family: Family) -> LaneSet {
    const STARTS: &[&str] = &[
        "s_load_",
        "s_buffer_load_",
        "s_scratch_load_",
        "s_store_",
        "s_buffer_store_",
        "s_scratch_store_",
        "s_atomic_",
        "s_buffer_atomic_",
        "s_dcache_",
        "s_gl1_inv",
        "s_memtime",
        "s_memrealtime",
        "s_get_waveid_in_workgroup",
        "s_atc_probe",
    ];
    if STARTS.iter().any(|start| mnemonic.starts_with(start)) {
        let lanes = LaneSet::of([Lane::Scalar]);
        let translates = family == Family::Gfx1250
            && (mnemonic.starts_with("s_load_") || mnemonic.starts_with("s_buffer_load_"));
        return if translates { lanes.with(Lane::ScalarAddress) } else { lanes };
    }
    let is_message = mnemonic.starts_with("s_sendmsg")
        || mnemonic.starts_with("s_barrier_signal_isfirst")
        || mnemonic.starts_with("s_get_barrier_state")
        || mnemonic == "s_barrier_leave";
    if is_message { LaneSet::of([Lane::Message]) } else { LaneSet::default() }
}

/// The lanes of an instruction that is neither scalar nor arithmetic.
fn memory(text: &Text<'_>, family: Family) -> LaneSet {
    let mnemonic = text.mnemonic;
    let has = |start: &str| mnemonic.starts_with(start);
    if has("ds_") || has("lds_") {
        lds(text)
    } else if has("flat_") {
        flat(text, family)
    } else if ["buffer_", "tbuffer_", "image_", "global_", "scratch_", "cluster_"]
        .iter()
        .any(|start| has(start))
    {
        vector_memory(text, family)
    } else if has("exp") {
        export(text.operands)
    } else if has("tensor_load") || has("tensor_store") {
        LaneSet::of([Lane::Tensor])
    } else {
        LaneSet::default()
    }
}

fn lds(text: &Text<'_>) -> LaneSet {
    let mnemonic = text.mnemonic;
    if mnemonic.contains("_direct_load") || mnemonic.contains("_param_load") {
        return LaneSet::of([Lane::LdsDirect]);
    }
    if mnemonic.starts_with("ds_atomic_async_") {
        return LaneSet::of([Lane::AsyncLoad]);
    }
    let is_gds = mnemonic.starts_with("ds_gws_")
        || text.operands.split_whitespace().any(|word| word == "gds");
    match mnemonic {
        "ds_nop" => LaneSet::default(),
        _ if is_gds => LaneSet::of([Lane::Gds, Lane::GdsSource]),
        _ => LaneSet::of([Lane::Lds]),
    }
}

/// A flat address can lie in LDS, so a flat operation counts for both memories.
fn flat(text: &Text<'_>, family: Family) -> LaneSet {
    if text.mnemonic.starts_with("flat_prefetch") {
        return LaneSet::default();
    }
    if family == Family::Gfx9 {
        return LaneSet::of([Lane::FlatVector, Lane::FlatLds]);
    }
    let lane = if returns_nothing(text) { Lane::Store } else { Lane::Load };
    with_translation(LaneSet::of([lane, Lane::Lds]), family)
}

fn with_translation(lanes: LaneSet, family: Family) -> LaneSet {
    if family == Family::Gfx1250 { lanes.with(Lane::VectorAddress) } else { lanes }
}

fn vector_memory(text: &Text<'_>, family: Family) -> LaneSet {
    let mnemonic = text.mnemonic;
    if mnemonic.contains("_async_") {
        let store = mnemonic.contains("_store_");
        let lane = if store { Lane::AsyncStore } else { Lane::AsyncLoad };
        return with_translation(LaneSet::of([lane]), family);
    }
    if let Some(lanes) = cache_control(mnemonic, family) {
        return lanes;
    }
    let lane = if family == Family::Gfx9 || !returns_nothing(text) {
        load_lane(mnemonic, family)
    } else if mnemonic.starts_with("scratch_") {
        Lane::ScratchStore
    } else {
        Lane::Store
    };
    with_translation(LaneSet::of([lane]), family)
}

/// Invalidations return nothing that could be waited for before gfx12; writing back does.
fn cache_control(mnemonic: &str, family: Family) -> Option<LaneSet> {
    Some(match mnemonic {
        "global_inv" => LaneSet::of([Lane::Load]),
        "global_wb" | "global_wbinv" => LaneSet::of([Lane::Store]),
        "buffer_wbl2" if family == Family::Gfx9 => LaneSet::of([Lane::Load]),
        _ if mnemonic.starts_with("buffer_wb")
            || mnemonic.starts_with("buffer_inv")
            || mnemonic.starts_with("buffer_gl")
            || mnemonic.starts_with("global_prefetch") =>
        {
            LaneSet::default()
        }
        _ => return None,
    })
}

fn load_lane(mnemonic: &str, family: Family) -> Lane {
    let samples = ["image_sample", "image_gather4", "image_get_lod", "image_msaa_load"];
    match mnemonic {
        _ if !family.splits() => Lane::Load,
        _ if mnemonic.starts_with("image_bvh") => Lane::Bvh,
        _ if samples.iter().any(|start| mnemonic.starts_with(start)) => Lane::Sample,
        _ => Lane::Load,
    }
}

/// Whether a vector memory operation is a store, or an atomic that does not return the value.
pub(super) fn returns_nothing(text: &Text<'_>) -> bool {
    text.mnemonic.contains("_store") || text.mnemonic.contains("_atomic") && !is_returning(text)
}

/// Whether an atomic's modifiers ask for the value before.
fn is_returning(text: &Text<'_>) -> bool {
    text.operands
        .split_whitespace()
        .any(|word| matches!(word, "glc" | "sc0") || word.contains("_RETURN"))
}

fn export(operands: &str) -> LaneSet {
    let target = operands.trim_start();
    LaneSet::of([if target.starts_with("pos") {
        Lane::ExportPosition
    } else if target.starts_with("param") {
        Lane::ExportParameter
    } else {
        Lane::ExportColor
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits_of(text: &str, family: Family) -> Vec<(Counter, u32)> {
        decode(&Text::new(0, text), family).limits.to_vec()
    }

    #[test]
    fn waits_are_read_in_every_form() {
        use Counter::*;
        use Family::*;
        for (text, family, expected) in [
            ("s_waitcnt vmcnt(3) lgkmcnt(1)", Gfx9, &[(Vm, 3), (Lgkm, 1)][..]),
            ("s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)", Gfx9, &[]),
            ("s_waitcnt 0xc07f", Gfx9, &[(Lgkm, 0)]),
            ("s_waitcnt 0x3f70", Gfx10, &[(Vm, 0)]),
            ("s_waitcnt 0x3f7", Gfx11, &[(Vm, 0)]),
            ("s_waitcnt_vscnt null, 0x0", Gfx10, &[(Vs, 0)]),
            ("s_waitcnt_vscnt s4, 0x3", Gfx10, &[]),
            ("s_wait_loadcnt_dscnt 0x102", Gfx12, &[(Load, 1), (Ds, 2)]),
            ("s_wait_storecnt_dscnt 0x3f00", Gfx12, &[(Ds, 0)]),
            ("s_wait_kmcnt 0x0", Gfx12, &[(Km, 0)]),
            ("s_wait_tensorcnt 0xffff", Gfx1250, &[]),
            ("s_wait_xcnt 0x1", Gfx1250, &[(X, 1)]),
            ("s_wait_idle", Gfx11, &[(Vm, 0), (Vs, 0), (Lgkm, 0), (Exp, 0)]),
            ("s_wait_alu 0xfffe", Gfx12, &[]),
            ("s_waitcnt_depctr 0xfffe", Gfx11, &[]),
            ("v_interp_p10_f32 v0, v1, v2, v3 wait_exp:2", Gfx11, &[(Exp, 2)]),
            ("v_interp_p10_f32 v0, v1, v2, v3 wait_exp:7", Gfx11, &[]),
        ] {
            assert_eq!(limits_of(text, family), expected, "{text}");
        }
    }

    #[test]
    fn operations_count_in_their_lanes() {
        use Family::*;
        use Lane::*;
        for (text, family, expected) in [
            ("buffer_load_dwordx4 v2, s[8:11], 0 offen sc0 lds", Gfx9, &[Load][..]),
            ("global_store_dword v[0:1], v2, off", Gfx9, &[Load]),
            ("global_store_dword v[0:1], v2, off", Gfx10, &[Store]),
            ("scratch_store_b32 off, v2, s0", Gfx11, &[ScratchStore]),
            ("global_atomic_add v[2:3], v4, off", Gfx10, &[Store]),
            ("global_atomic_add v1, v[2:3], v4, off glc", Gfx10, &[Load]),
            ("global_atomic_add_u32 v1, v[2:3], v4, off th:TH_ATOMIC_RETURN", Gfx12, &[Load]),
            ("flat_load_dword v1, v[2:3]", Gfx9, &[FlatVector, FlatLds]),
            ("flat_load_b32 v1, v[2:3]", Gfx12, &[Load, Lds]),
            ("flat_store_b32 v[2:3], v1", Gfx11, &[Store, Lds]),
            ("flat_load_b32 v1, v[2:3]", Gfx1250, &[Load, Lds, VectorAddress]),
            ("image_sample v[0:3], v[4:5], s[0:7], s[8:11]", Gfx11, &[Load]),
            ("image_sample v[0:3], v[4:5], s[0:7], s[8:11]", Gfx12, &[Sample]),
            ("image_bvh_intersect_ray v[4:7], [v9], s[4:7]", Gfx12, &[Bvh]),
            ("ds_add_u32 v1, v2 gds", Gfx9, &[Gds, GdsSource]),
            ("lds_param_load v1, attr0.x wait_vdst:15", Gfx11, &[LdsDirect]),
            ("exp pos0 v0, v1, v2, v3", Gfx9, &[ExportPosition]),
            ("export mrt0 v0, v1, v2, v3 done", Gfx12, &[ExportColor]),
            ("s_load_dwordx2 s[0:1], s[2:3], 0x0", Gfx9, &[Scalar]),
            ("s_load_b64 s[0:1], s[2:3], 0x0", Gfx1250, &[Scalar, ScalarAddress]),
            ("s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_DOORBELL)", Gfx11, &[Message]),
            ("global_load_async_to_lds_b128 v1, v[2:3], off", Gfx1250, &[AsyncLoad, VectorAddress]),
            (
                "global_store_async_from_lds_b128 v[2:3], v1, off",
                Gfx1250,
                &[AsyncStore, VectorAddress],
            ),
            ("tensor_load_to_lds s[0:3], s[4:11]", Gfx1250, &[Tensor]),
            ("buffer_gl0_inv", Gfx10, &[]),
            ("buffer_wbl2 sc1", Gfx9, &[Load]),
            ("buffer_inv sc1", Gfx9, &[]),
            ("global_inv scope:SCOPE_SYS", Gfx12, &[Load]),
            ("s_prefetch_inst s[4:5], 0x0, s2, 0", Gfx12, &[]),
            ("v_add_f32_e32 v0, v1, v2", Gfx9, &[]),
        ] {
            let issues = decode(&Text::new(0, text), family).issues;
            assert_eq!(issues, LaneSet::of(expected.iter().copied()), "{text}");
        }
    }

    #[test]
    fn branches_are_read_with_and_without_a_sign() {
        let flow = |text: &str| decode(&Text::new(0, text), Family::Gfx9).flow;
        assert_eq!(flow("s_cbranch_scc1 63632"), Flow::Branch(Some(-1904)));
        assert_eq!(flow("s_branch 0xfffe"), Flow::Jump(Some(-2)));
        assert_eq!(flow("s_branch -2 <k+0x10>"), Flow::Jump(Some(-2)));
        assert_eq!(flow("s_branch .LBB0_1"), Flow::Jump(None));
        assert_eq!(flow("s_endpgm"), Flow::End);
        assert_eq!(flow("s_swappc_b64 s[30:31], s[4:5]"), Flow::Call);
    }
}
