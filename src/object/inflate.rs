//! Decompression with a cap on what comes out.

use std::io::Read;

use super::error::{Fault, Problem};

/// How many bytes siteline decompresses out of one file before it refuses it.
pub const DECOMPRESSED_CAP: u64 = 512 << 20;

/// A compression that sections and bundles use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// A zlib stream.
    Zlib,
    /// A Zstandard frame.
    Zstd,
}

/// What may still be decompressed out of one file.
#[derive(Debug)]
pub struct Allowance {
    cap: u64,
    left: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance::of(DECOMPRESSED_CAP)
    }
}

impl Allowance {
    /// An allowance of `cap` bytes.
    pub fn of(cap: u64) -> Self {
        Allowance { cap, left: cap }
    }

    /// Decompresses `data`, which must give exactly `size` bytes.
    ///
    /// # Errors
    /// The data is damaged, gives another size, or gives more than is allowed. Offsets are from
    /// the start of the compressed data.
    pub fn inflate(
        &mut self,
        compression: Compression,
        data: &[u8],
        size: u64,
    ) -> Result<Vec<u8>, Fault> {
        if size > self.left {
            let what = "the decompressed data".into();
            return Err(Fault::new(0, Problem::TooBig { what, cap: self.cap }));
        }
        self.left -= size;
        let mut out = Vec::new();
        let read = match compression {
            Compression::Zlib => {
                flate2::read::ZlibDecoder::new(data).take(size + 1).read_to_end(&mut out)
            }
            Compression::Zstd => zstd::stream::read::Decoder::with_buffer(data)
                .and_then(|decoder| decoder.take(size + 1).read_to_end(&mut out)),
        };
        read.map_err(|error| Fault::malformed(0, format!("the compressed data: {error}")))?;
        if out.len() as u64 != size {
            let more = if out.len() as u64 > size { "more than" } else { "fewer than" };
            return Err(Fault::malformed(
                0,
                format!("the compressed data gives {more} the {size} bytes its header says"),
            ));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zlib(data: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn both_compressions_come_back() {
        let data = vec![7; 10_000];
        let zstd = zstd::encode_all(&data[..], 3).unwrap();
        let mut allowance = Allowance::default();
        assert_eq!(allowance.inflate(Compression::Zlib, &zlib(&data), 10_000).unwrap(), data);
        assert_eq!(allowance.inflate(Compression::Zstd, &zstd, 10_000).unwrap(), data);
    }

    #[test]
    fn sizes_that_lie_are_refused() {
        let packed = zlib(&[7; 100]);
        for size in [0, 99, 101] {
            let fault = Allowance::default().inflate(Compression::Zlib, &packed, size).unwrap_err();
            assert!(matches!(fault.problem, Problem::Malformed(_)), "{fault}");
        }
    }

    #[test]
    fn the_cap_counts_everything_that_came_out_of_a_file() {
        let packed = zlib(&[7; 100]);
        let mut allowance = Allowance::of(150);
        allowance.inflate(Compression::Zlib, &packed, 100).unwrap();
        let fault = allowance.inflate(Compression::Zlib, &packed, 100).unwrap_err();
        assert_eq!(
            fault.problem.to_string(),
            "the decompressed data takes more than 150 bytes, the most that siteline reads"
        );
    }
}
