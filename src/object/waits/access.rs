//! Which registers an instruction reads and writes, as far as its text says it.

use smallvec::SmallVec;

use super::Text;
use super::decode::{number, returns_nothing};

/// A run of registers of one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registers {
    start: u16,
    count: u16,
}

/// Where the files start in the numbering of registers. Scalar registers with a name follow
/// the numbered ones.
const SCALAR: u16 = 0;
const VECTOR: u16 = 0x200;
const ACCUMULATOR: u16 = 0x800;
const TRAP: u16 = 0x180;

const VCC: Registers = Registers { start: 0x1a0, count: 2 };
const EXEC: Registers = Registers { start: 0x1a2, count: 2 };
const M0: Registers = Registers { start: 0x1a4, count: 1 };
const FLAT_SCRATCH: Registers = Registers { start: 0x1a6, count: 2 };

impl Registers {
    /// Whether two runs have a register in common.
    pub fn overlaps(self, other: Registers) -> bool {
        self.start < other.start + other.count && other.start < self.start + self.count
    }

    /// Whether these are vector registers, accumulation registers included.
    pub fn is_vector(self) -> bool {
        self.start >= VECTOR
    }

    fn half(self, high: bool) -> Self {
        Registers { start: self.start + u16::from(high), count: 1 }
    }

    /// The one register or range that an operand is.
    pub(super) fn parse(operand: &str) -> Option<Self> {
        let (registers, end) = word(operand, 0);
        registers.filter(|_| end == operand.len())
    }

    /// The run that a word such as `v7` names.
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "vcc" => VCC,
            "vcc_lo" => VCC.half(false),
            "vcc_hi" => VCC.half(true),
            "exec" => EXEC,
            "exec_lo" => EXEC.half(false),
            "exec_hi" => EXEC.half(true),
            "m0" => M0,
            "flat_scratch" => FLAT_SCRATCH,
            "flat_scratch_lo" => FLAT_SCRATCH.half(false),
            "flat_scratch_hi" => FLAT_SCRATCH.half(true),
            _ => {
                let (file, limit, digits) = file(word)?;
                let digits = digits.split_once('.').map_or(digits, |(number, _)| number);
                let index: u16 = digits.parse().ok().filter(|index| *index < limit)?;
                Registers { start: file + index, count: 1 }
            }
        })
    }

    /// The run that a file's name and the inside of brackets, such as `0:3`, name.
    fn range(file_name: &str, inside: &str) -> Option<Self> {
        let (file, limit, rest) = file(file_name)?;
        let (first, last) = inside.split_once(':').unwrap_or((inside, inside));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (rest.is_empty() && first <= last && last < limit)
            .then(|| Registers { start: file + first, count: last - first + 1 })
    }
}

/// The start and the size of the file that a word starts with, and what follows.
fn file(word: &str) -> Option<(u16, u16, &str)> {
    if let Some(rest) = word.strip_prefix("ttmp") {
        return Some((TRAP, 16, rest));
    }
    match word.split_at_checked(1)? {
        ("v", rest) => Some((VECTOR, 0x400, rest)),
        ("s", rest) => Some((SCALAR, 0x80, rest)),
        ("a", rest) => Some((ACCUMULATOR, 0x400, rest)),
        _ => None,
    }
}

/// The registers of one instruction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Access {
    /// Those that it writes.
    pub writes: SmallVec<[Registers; 2]>,
    /// Those that it reads.
    pub reads: SmallVec<[Registers; 4]>,
}

impl Access {
    /// The registers of an instruction. What the text does not name, such as the status bits, is
    /// left out, but for `m0`, `vcc` and `exec` where the mnemonic implies them.
    pub fn of(text: &Text<'_>) -> Self {
        let mut access = Access::default();
        let mut mnemonic = text.mnemonic;
        let mut operands = text.operands;
        loop {
            let (part, next) =
                operands.split_once("::").map_or((operands, None), |(a, b)| (a, Some(b)));
            access.add(&Text { mnemonic, operands: part, ..*text });
            let Some(next) = next else { break };
            (mnemonic, operands) =
                next.trim().split_once(char::is_whitespace).unwrap_or((next, ""));
        }
        access
    }

    fn add(&mut self, text: &Text<'_>) {
        let written = written_operands(text);
        let mut operand = 0;
        for_each_register(text.operands, |at, registers| {
            operand = at;
            if at < written {
                self.writes.push(registers);
            }
            if at >= written || reads_back(text.mnemonic) {
                self.reads.push(registers);
            }
        });
        self.add_implied(text, operand);
    }

    fn add_implied(&mut self, text: &Text<'_>, operand: usize) {
        let mnemonic = text.mnemonic;
        let has = |start: &str| mnemonic.starts_with(start);
        if has("v_div_fmas") || has("s_cbranch_vcc") {
            self.reads.push(VCC);
        }
        if has("v_cmpx") {
            self.writes.push(EXEC);
            if operand >= 2 {
                self.writes.extend(self.reads.first().copied());
            }
        }
        if mnemonic.contains("saveexec") {
            self.writes.push(EXEC);
        }
        if copies_to_lds(text)
            || has("s_sendmsg")
            || has("s_movrel")
            || has("ds_gws")
            || has("v_interp")
        {
            self.reads.push(M0);
        }
    }

    /// Whether the instruction reads or writes some of these registers.
    pub fn touches(&self, registers: Registers) -> bool {
        self.writes.iter().chain(&self.reads).any(|own| own.overlaps(registers))
    }

    /// Whether the instruction reads a register that `other` writes.
    pub fn reads_result_of(&self, other: &Access) -> bool {
        common(&self.reads, &other.writes)
    }

    /// Whether both write one register.
    pub fn writes_result_of(&self, other: &Access) -> bool {
        common(&self.writes, &other.writes)
    }

    /// Whether the instruction writes a register that `other` reads.
    pub fn writes_source_of(&self, other: &Access) -> bool {
        common(&self.writes, &other.reads)
    }
}

fn common(some: &[Registers], others: &[Registers]) -> bool {
    some.iter().any(|own| others.iter().any(|other| own.overlaps(*other)))
}

/// Calls `found` with each register in some operands and its operand's position from 0. A
/// register in a comment behind another one, as `v1 /*v257*/`, is the one that is meant.
fn for_each_register(operands: &str, mut found: impl FnMut(usize, Registers)) {
    let bytes = operands.as_bytes();
    let (mut at, mut operand, mut depth) = (0, 0, 0_u32);
    let mut pending: Option<(usize, Registers)> = None;
    while at < bytes.len() {
        match bytes[at] {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' => {
                let (registers, end) = word(operands, at);
                let meant = operands[..at].ends_with("/*");
                if !meant && let Some((position, before)) = pending.take() {
                    found(position, before);
                }
                if registers.is_some() {
                    pending = registers.map(|registers| (operand, registers));
                }
                at = end;
                continue;
            }
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => operand += 1,
            _ => {}
        }
        at += 1;
    }
    if let Some((position, registers)) = pending {
        found(position, registers);
    }
}

/// The register that a word names, brackets behind it included, and where it ends.
fn word(text: &str, start: usize) -> (Option<Registers>, usize) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':');
    let bytes = text.as_bytes();
    let end = start + bytes[start..].iter().take_while(|byte| is_part(byte)).count();
    let name = &text[start..end];
    if bytes.get(end) == Some(&b'[')
        && let Some(length) = text[end..].find(']')
        && let Some(registers) = Registers::range(name, &text[end + 1..end + length])
    {
        return (Some(registers), end + length + 1);
    }
    (Registers::named(name), end)
}

/// Whether a vector memory instruction puts what it loads into LDS.
pub(super) fn copies_to_lds(text: &Text<'_>) -> bool {
    crate::leaf::class_of_isa(text.mnemonic, text.operands) == crate::leaf::Class::Dma
}

/// Whether the first operand is read as well as written.
fn reads_back(mnemonic: &str) -> bool {
    [
        "v_fmac",
        "v_mac_",
        "v_dot2c",
        "v_dot4c",
        "v_dot8c",
        "v_pk_fmac",
        "v_swap",
        "v_permlane16_swap",
        "v_permlane32_swap",
    ]
    .iter()
    .any(|start| mnemonic.starts_with(start))
        || mnemonic.contains("smfmac")
        || mnemonic.contains("swmmac")
}

/// How many operands, from the first, an instruction writes.
fn written_operands(text: &Text<'_>) -> usize {
    let mnemonic = text.mnemonic;
    match mnemonic.as_bytes() {
        [b's', b'_', ..] => usize::from(writes_scalar(text)),
        [b'v', ..] => written_by_vector_alu(mnemonic),
        [b'd', b's', ..] | [b'l', b'd', b's', ..] => usize::from(lds_returns(mnemonic)),
        [b'e', b'x', b'p', ..] | [b't', b'e', b'n', ..] => 0,
        _ => usize::from(
            !returns_nothing(text) && !copies_to_lds(text) && !mnemonic.contains("prefetch"),
        ),
    }
}

fn written_by_vector_alu(mnemonic: &str) -> usize {
    let has = |start: &str| mnemonic.starts_with(start);
    if has("v_cmpx") || has("v_nop") {
        0
    } else if mnemonic.contains("_co_")
        || has("v_div_scale")
        || has("v_mad_u64_u32")
        || has("v_mad_i64_i32")
        || has("v_swap")
        || has("v_permlane16_swap")
        || has("v_permlane32_swap")
    {
        2
    } else {
        1
    }
}

fn lds_returns(mnemonic: &str) -> bool {
    const WORDS: &[&str] =
        &["read", "load", "rtn", "swizzle", "permute", "consume", "append", "ordered_count"];
    !mnemonic.contains("async") && WORDS.iter().any(|word| mnemonic.contains(word))
}

fn writes_scalar(text: &Text<'_>) -> bool {
    const STARTS: &[&str] = &[
        "s_cmp",
        "s_bitcmp",
        "s_cbranch",
        "s_branch",
        "s_wait",
        "s_nop",
        "s_barrier",
        "s_endpgm",
        "s_setpc",
        "s_set_",
        "s_sendmsg",
        "s_setreg",
        "s_sleep",
        "s_setprio",
        "s_delay_alu",
        "s_clause",
        "s_dcache",
        "s_store",
        "s_buffer_store",
        "s_scratch_store",
        "s_setvskip",
        "s_trap",
        "s_inst_prefetch",
        "s_prefetch",
        "s_buffer_prefetch",
        "s_ttrace",
        "s_icache",
        "s_code_end",
        "s_sethalt",
        "s_incperf",
        "s_decperf",
        "s_rfe",
        "s_gl1_inv",
        "s_add_pc",
        "s_monitor",
        "s_version",
        "s_round_mode",
        "s_denorm_mode",
        "s_wakeup",
        "s_alloc_vgpr",
    ];
    let mnemonic = text.mnemonic;
    if mnemonic.starts_with("s_sendmsg_rtn") {
        return true;
    }
    if mnemonic.starts_with("s_atomic") || mnemonic.starts_with("s_buffer_atomic") {
        return text.operands.split_whitespace().any(|word| word == "glc");
    }
    !STARTS.iter().any(|start| mnemonic.starts_with(start))
}

/// The imm of an instruction whose only operand is a number, such as `s_nop`.
pub(super) fn immediate(text: &Text<'_>) -> Option<u32> {
    number(text.operands).and_then(|value| u32::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registers as their first one and their count.
    type Runs = Vec<(u16, u16)>;

    fn runs(registers: &[Registers]) -> Runs {
        registers.iter().map(|r| (r.start, r.count)).collect()
    }

    fn access(text: &str) -> (Runs, Runs) {
        let access = Access::of(&Text::new(0, text));
        (runs(&access.writes), runs(&access.reads))
    }

    const V: u16 = VECTOR;
    const A: u16 = ACCUMULATOR;

    #[test]
    fn operands_are_written_and_read() {
        for (text, writes, reads) in [
            ("v_add_f32_e32 v0, v1, v2", vec![(V, 1)], vec![(V + 1, 1), (V + 2, 1)]),
            (
                "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]",
                vec![(A, 16)],
                vec![(V, 2), (V + 2, 2), (A, 16)],
            ),
            ("global_store_dword v[0:1], v2, off", vec![], vec![(V, 2), (V + 2, 1)]),
            ("ds_read_b128 v[4:7], v1 offset:16", vec![(V + 4, 4)], vec![(V + 1, 1)]),
            ("ds_write_b32 v1, v2", vec![], vec![(V + 1, 1), (V + 2, 1)]),
            ("global_atomic_add v[2:3], v4, off", vec![], vec![(V + 2, 2), (V + 4, 1)]),
            ("v_mul_f32_e64 v0, -v1, |v2|", vec![(V, 1)], vec![(V + 1, 1), (V + 2, 1)]),
            (
                "v_fma_f16 v0.l, v1.h, v2.l, v3.l",
                vec![(V, 1)],
                vec![(V + 1, 1), (V + 2, 1), (V + 3, 1)],
            ),
            ("flat_load_b32 v1, v[2:3] /*v[258:259]*/", vec![(V + 1, 1)], vec![(V + 258, 2)]),
            ("v_nop", vec![], vec![]),
            ("s_cmp_lg_u32 s9, 0", vec![], vec![(9, 1)]),
            ("exp mrt0 v0, v1, off, off done", vec![], vec![(V, 1), (V + 1, 1)]),
            (
                "v_dual_mul_f32 v0, v0, v2 :: v_dual_mov_b32 v1, v3",
                vec![(V, 1), (V + 1, 1)],
                vec![(V, 1), (V + 2, 1), (V + 3, 1)],
            ),
            (
                "image_bvh_intersect_ray v[4:7], [v9, v10, v[11:13]], s[4:7]",
                vec![(V + 4, 4)],
                vec![(V + 9, 1), (V + 10, 1), (V + 11, 3), (4, 4)],
            ),
        ] {
            assert_eq!(access(text), (writes, reads), "{text}");
        }
    }

    #[test]
    fn implied_registers_are_known() {
        let of = |text: &str| Access::of(&Text::new(0, text));
        let m0 = of("s_mov_b32 m0, s7");
        assert!(of("buffer_load_dwordx4 v2, s[8:11], 0 offen sc0 lds").reads_result_of(&m0));
        let vcc = of("v_cmp_eq_u32_e32 vcc, v0, v1");
        assert!(of("v_div_fmas_f32 v0, v1, v2, v3").reads_result_of(&vcc));
        assert!(of("v_cndmask_b32_e32 v0, v1, v2, vcc").reads_result_of(&vcc));
        assert!(of("v_add_co_u32_e32 v0, vcc, v1, v2").writes_result_of(&vcc));
    }

    #[test]
    fn what_is_no_register_is_none() {
        for text in [
            "s_nop v",
            "x v[3",
            "x v[5:1]",
            "x s900",
            "x v99999",
            "x é, v[é]",
            "x attr0.x, off, lit(0x3)",
        ] {
            assert_eq!(access(text), (vec![], vec![]), "{text}");
        }
    }
}
