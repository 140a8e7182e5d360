//! A made-up code object of any size: as many line rows and inlined functions as are asked for.
//!
//! Each kernel has 10,000 instructions of 4 bytes, every one with a row of its own. Inlined
//! functions nest three deep, and the lines in them go back and forth, as in scheduled code.
#![allow(dead_code, reason = "each user needs a part")]

/// What is in the object.
#[derive(Clone, Copy)]
pub struct Size {
    pub rows: u32,
    /// At most one for every four rows.
    pub inlined: u32,
}

/// The address of the code.
pub const TEXT: u64 = 0x1000;
/// Instructions of one kernel.
const KERNEL: u32 = 10_000;
/// `s_nop 0` for gfx9; what it is does not matter.
const INSTRUCTION: [u8; 4] = [1, 0, 0x80, 0xbf];
/// `EF_AMDGPU_MACH_AMDGCN_GFX942`.
const FLAGS: u32 = 0x54c;

/// The addresses of all instructions.
pub fn addresses(size: Size) -> impl Iterator<Item = u64> {
    (0..u64::from(size.rows)).map(|index| TEXT + 4 * index)
}

/// The object's bytes.
pub fn object(size: Size) -> Vec<u8> {
    let (info, origin) = info(size);
    assert!(origin < u32::MAX as usize);
    let text = INSTRUCTION.repeat(size.rows as usize);
    let sections: Vec<(&str, u32, u64, u64, Vec<u8>)> = vec![
        (".text", 1, 6, TEXT, text),
        (".debug_abbrev", 1, 0, 0, abbreviations()),
        (".debug_info", 1, 0, 0, info),
        (".debug_line", 1, 0, 0, lines(size)),
    ];
    let (symbols, names) = symbols(size);
    elf(sections, symbols, names)
}

fn uleb(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes());
    out.push(0);
}

/// Tags, whether there are children, and pairs of attribute and form.
fn abbreviations() -> Vec<u8> {
    let entries: [(u64, u8, &[u8]); 5] = [
        (0x11, 1, &[0x03, 0x08, 0x1b, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07]),
        (0x2e, 0, &[0x03, 0x08]),
        (0x2e, 1, &[0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0x3a, 0x0b, 0x3b, 0x06]),
        (0x1d, 1, &[0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0x58, 0x0b, 0x59, 0x06, 0x57, 0x0b]),
        (0x1d, 0, &[0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0x58, 0x0b, 0x59, 0x06, 0x57, 0x0b]),
    ];
    let mut out = Vec::new();
    for (code, (tag, children, attributes)) in entries.iter().enumerate() {
        uleb(&mut out, code as u64 + 1);
        uleb(&mut out, *tag);
        out.push(*children);
        out.extend(*attributes);
        out.extend([0, 0]);
    }
    out.push(0);
    out
}

/// The unit of DWARF 4, and where its helper function is described.
fn info(size: Size) -> (Vec<u8>, usize) {
    let mut out = vec![0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8];
    out.push(1);
    text(&mut out, "kernels.py");
    text(&mut out, "/src");
    out.extend(0u32.to_le_bytes());
    out.extend(TEXT.to_le_bytes());
    out.extend((u64::from(size.rows) * 4).to_le_bytes());
    let origin = out.len();
    out.push(2);
    text(&mut out, "helper");
    let each = (u64::from(size.inlined) * u64::from(KERNEL)).div_ceil(u64::from(size.rows.max(1)));
    let mut left = u64::from(size.inlined);
    for (kernel, first) in (0..size.rows).step_by(KERNEL as usize).enumerate() {
        let count = KERNEL.min(size.rows - first);
        let inlined = each.min(left);
        left -= inlined;
        subprogram(&mut out, kernel, first, count, inlined as u32, origin);
    }
    out.push(0);
    let length = out.len() as u32 - 4;
    out[..4].copy_from_slice(&length.to_le_bytes());
    (out, origin)
}

fn address(instruction: u32) -> [u8; 8] {
    (TEXT + u64::from(instruction) * 4).to_le_bytes()
}

fn subprogram(
    out: &mut Vec<u8>,
    kernel: usize,
    first: u32,
    count: u32,
    inlined: u32,
    origin: usize,
) {
    out.push(3);
    text(out, &format!("kernel_{kernel}"));
    out.extend(address(first));
    out.extend((count * 4).to_le_bytes());
    out.push(1);
    out.extend((kernel as u32 + 1).to_le_bytes());
    let groups = inlined.div_ceil(3).max(1);
    let width = (count / groups).max(4);
    for group in 0..inlined.div_ceil(3) {
        let start = first + group * width;
        let levels = 3.min(inlined - group * 3);
        for level in 0..levels {
            let last = level + 1 == levels;
            out.push(if last { 5 } else { 4 });
            out.extend((origin as u32).to_le_bytes());
            out.extend(address(start + level));
            out.extend(((width - 1 - 2 * level.min(width / 2 - 1)).max(1) * 4).to_le_bytes());
            out.push(1 + level as u8);
            out.extend((group % 500 + 20).to_le_bytes());
            out.push(5);
        }
        out.extend(std::iter::repeat_n(0, levels as usize - 1));
    }
    out.push(0);
}

/// The line table of DWARF 4: `line_base` -5, `line_range` 14, opcodes from 13 on are special.
fn lines(size: Size) -> Vec<u8> {
    let mut header = vec![4, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0];
    for file in ["kernels.py", "helper.py", "library.py"] {
        text(&mut header, file);
        header.extend([0, 0, 0]);
    }
    header.push(0);
    let mut out = vec![0, 0, 0, 0, 4, 0];
    out.extend((header.len() as u32).to_le_bytes());
    out.extend(header);
    for first in (0..size.rows).step_by(KERNEL as usize) {
        sequence(&mut out, first, KERNEL.min(size.rows - first));
    }
    let length = out.len() as u32 - 4;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

fn sequence(out: &mut Vec<u8>, first: u32, count: u32) {
    out.extend([0, 9, 2]);
    out.extend(address(first));
    out.extend([3, 20, 1]);
    for index in 1..count {
        // One instruction further on, and a few lines up or down.
        let line: i32 = [3, -1, 2, -4, 0][index as usize % 5];
        if index % 40 == 0 {
            out.extend([4, (index / 40 % 3) as u8 + 1]);
        }
        out.push((line + 5 + 14 + 13) as u8);
    }
    out.extend([2, 1, 0, 1, 1]);
}

/// The symbol table of all kernels, and its strings.
fn symbols(size: Size) -> (Vec<u8>, Vec<u8>) {
    let (mut symbols, mut names) = (vec![0; 24], vec![0]);
    for (kernel, first) in (0..size.rows).step_by(KERNEL as usize).enumerate() {
        symbols.extend((names.len() as u32).to_le_bytes());
        text(&mut names, &format!("kernel_{kernel}"));
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend(address(first));
        symbols.extend((u64::from(KERNEL.min(size.rows - first)) * 4).to_le_bytes());
    }
    (symbols, names)
}

/// Sections by name, type, flags, address and data, behind an ELF header.
fn elf(
    mut sections: Vec<(&str, u32, u64, u64, Vec<u8>)>,
    symbols: Vec<u8>,
    strings: Vec<u8>,
) -> Vec<u8> {
    sections.push((".symtab", 2, 0, 0, symbols));
    sections.push((".strtab", 3, 0, 0, strings));
    let mut names = vec![0];
    let mut name_at = Vec::new();
    for (name, ..) in &sections {
        name_at.push(names.len() as u32);
        text(&mut names, name);
    }
    name_at.push(names.len() as u32);
    text(&mut names, ".shstrtab");
    sections.push((".shstrtab", 3, 0, 0, names));
    let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 4, 0, 0, 0, 0, 0, 0, 0];
    out.resize(64, 0);
    let mut headers = vec![0; 64];
    let string_table = sections.len() as u32 - 1;
    for ((_, kind, flags, address, data), name) in sections.into_iter().zip(name_at) {
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for number in [flags, address, out.len() as u64, data.len() as u64] {
            headers.extend(number.to_le_bytes());
        }
        let link = if kind == 2 { string_table } else { 0 };
        headers.extend(link.to_le_bytes());
        headers.extend(1u32.to_le_bytes());
        headers.extend(4u64.to_le_bytes());
        headers.extend((if kind == 2 { 24u64 } else { 0 }).to_le_bytes());
        out.extend(data);
    }
    let table = out.len() as u64;
    let count = headers.len() as u16 / 64;
    out.extend(headers);
    out[16..20].copy_from_slice(&[3, 0, 224, 0]);
    out[20..24].copy_from_slice(&1u32.to_le_bytes());
    out[40..48].copy_from_slice(&table.to_le_bytes());
    out[48..52].copy_from_slice(&FLAGS.to_le_bytes());
    for (at, number) in [(52, 64), (54, 56), (58, 64), (60, count), (62, count - 1)] {
        out[at..at + 2].copy_from_slice(&u16::to_le_bytes(number));
    }
    out
}
