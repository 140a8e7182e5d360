//! Variable-length numbers, as DWARF writes them.

/// Appends an unsigned number.
pub(super) fn unsigned(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

/// Writes an unsigned number over all the bytes of a place, if it fits.
pub(super) fn padded(place: &mut [u8], mut number: u64) -> Option<()> {
    let last = place.len().checked_sub(1)?;
    for (at, byte) in place.iter_mut().enumerate() {
        *byte = (number & 0x7f) as u8 | if at < last { 0x80 } else { 0 };
        number >>= 7;
    }
    (number == 0).then_some(())
}

/// Appends a signed number.
pub(super) fn signed(out: &mut Vec<u8>, mut number: i64) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        let sign = byte & 0x40 != 0;
        if (number == 0 && !sign) || (number == -1 && sign) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_few_bytes_as_they_can() {
        let unsigned = |number| {
            let mut out = Vec::new();
            unsigned(&mut out, number);
            out
        };
        let padded = |size, number| {
            let mut place = vec![0; size];
            padded(&mut place, number).map(|()| place)
        };
        assert_eq!(padded(1, 127), Some(vec![0x7f]));
        assert_eq!(padded(1, 128), None);
        assert_eq!(padded(2, 5), Some(vec![0x85, 0]));
        let signed = |number| {
            let mut out = Vec::new();
            signed(&mut out, number);
            out
        };
        assert_eq!(unsigned(0), [0]);
        assert_eq!(unsigned(127), [0x7f]);
        assert_eq!(unsigned(128), [0x80, 1]);
        assert_eq!(unsigned(u64::MAX).len(), 10);
        assert_eq!(signed(-1), [0x7f]);
        assert_eq!(signed(63), [0x3f]);
        assert_eq!(signed(64), [0xc0, 0]);
        assert_eq!(signed(-65), [0xbf, 0x7f]);
    }
}
