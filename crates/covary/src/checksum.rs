//! A checksum by which a changed file is recognized: CRC-64 with the polynomial of
//! ECMA-182, bits reflected, as in `xz`. A change within 64 consecutive bits is always noticed, any other
//! except for one in 2⁶⁴.

/// The polynomial, its lowest power in the highest bit.
const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;

/// `TABLES[k][b]` is the remainder of the byte b followed by k bytes of zeros: eight bytes are divided by
/// eight lookups, whose sum is their remainder.
static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ (POLYNOMIAL * (remainder & 1));
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The checksum of bytes as they come.
#[derive(Debug, Clone)]
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(u64::MAX)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let bytes = (self.0 ^ u64::from_le_bytes(*word)).to_le_bytes();
            self.0 = (0..8).fold(0, |sum, k| sum ^ TABLES[7 - k][bytes[k] as usize]);
        }
        for byte in rest {
            self.0 = (self.0 >> 8) ^ TABLES[0][((self.0 as u8) ^ byte) as usize];
        }
    }

    pub(crate) fn value(&self) -> u64 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;

    fn of(parts: &[&[u8]]) -> u64 {
        let mut sum = Checksum::new();
        for part in parts {
            sum.add(part);
        }
        sum.value()
    }

    #[test]
    fn it_is_that_of_xz() {
        // The value that catalogues of checksums give for these digits.
        assert_eq!(of(&[b"123456789"]), 0x995d_c9bb_df19_39fa);
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn parts_do_not_matter() {
        let bytes: Vec<u8> = (0..100).map(|i| (i * 37 % 251) as u8).collect();
        for cut in 0..bytes.len() {
            assert_eq!(of(&[&bytes[..cut], &bytes[cut..]]), of(&[&bytes]));
        }
    }
}
