//! Text that is not UTF-8: decoded when it is read, encoded again when it is written back.

use super::error::shown;
use super::{Error, Note};
use encoding_rs::{DecoderResult, Encoder, EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, Write};

/// Bytes in UTF-8, and what they were in.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// None if they are as they came.
    pub(super) encoding: Option<&'static Encoding>,
    pub(super) note: Option<Note>,
}

/// The encoding of this name: what was asked for, or what the bytes show. A byte-order mark or zeros in every other byte
/// of the beginning mean UTF-16. Other bytes that are not UTF-8 are taken for Windows-1252, which has ISO 8859-1 (Latin-1)
/// in it and in which every byte is a character.
fn recognized(bytes: &[u8], asked: Option<&str>) -> Result<(&'static Encoding, bool), Error> {
    /// Bytes at the beginning that are looked at.
    const BEGINNING: usize = 64;
    if let Some(name) = asked {
        let encoding = Encoding::for_label_no_replacement(name.trim().as_bytes());
        let encoding = encoding.ok_or_else(|| Error::UnknownEncoding { name: name.to_owned() })?;
        // `utf-16` alone does not say which byte comes first; a mark does.
        let is_utf16 = |e: &Encoding| e == UTF_16LE || e == UTF_16BE;
        let marked = Encoding::for_bom(bytes).map(|(e, _)| e).filter(|e| is_utf16(e) && is_utf16(encoding));
        return Ok((marked.unwrap_or(encoding), true));
    }
    let beginning = &bytes[..bytes.len().min(BEGINNING)];
    let zeros_at = |k: usize| beginning.len() > 3 && beginning.iter().skip(k).step_by(2).all(|&b| b == 0);
    Ok(match beginning {
        [0xff, 0xfe, ..] => (UTF_16LE, true),
        [0xfe, 0xff, ..] => (UTF_16BE, true),
        _ if zeros_at(1) && !zeros_at(0) => (UTF_16LE, true),
        _ if zeros_at(0) && !zeros_at(1) => (UTF_16BE, true),
        _ if Encoding::utf8_valid_up_to(bytes) == bytes.len() => (UTF_8, true),
        _ => (WINDOWS_1252, false),
    })
}

/// The same text in UTF-8, of at most `most` bytes.
pub(super) fn decoded(bytes: Vec<u8>, asked: Option<&str>, most: Option<u64>) -> Result<Decoded, Error> {
    let (encoding, certain) = recognized(&bytes, asked)?;
    if encoding == UTF_8 {
        if asked.is_some() && Encoding::utf8_valid_up_to(&bytes) < bytes.len() {
            return Err(malformed(&bytes, Encoding::utf8_valid_up_to(&bytes), UTF_8));
        }
        return Ok(Decoded { bytes, encoding: None, note: None });
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = Vec::new();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    // The longest that it may be: usually far more than it is.
    let most = most.unwrap_or(u64::MAX);
    let too_large = |n: usize| Error::OverMemory { bytes: n as u64, limit: most, is_text: true };
    let mut from = 0;
    let room = room.unwrap_or(usize::MAX).min(bytes.len().saturating_mul(2));
    text.try_reserve(room.min(usize::try_from(most).unwrap_or(usize::MAX))).map_err(|_| too_large(room))?;
    loop {
        let filled = text.len();
        let part = 1 << 16;
        text.try_reserve(part).map_err(|_| too_large(filled + part))?;
        text.resize(filled + part, 0);
        let (result, read, written) =
            decoder.decode_to_utf8_without_replacement(&bytes[from..], &mut text[filled..], true);
        text.truncate(filled + written);
        from += read;
        if text.len() as u64 > most {
            return Err(too_large(text.len()));
        }
        match result {
            DecoderResult::InputEmpty => break,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => return Err(malformed(&bytes, from, encoding)),
        }
    }
    drop(bytes);
    text.shrink_to_fit();
    let note = Note::Encoding { name: encoding.name(), certain };
    Ok(Decoded { bytes: text, encoding: Some(encoding), note: Some(note) })
}

fn malformed(bytes: &[u8], at: usize, encoding: &'static Encoding) -> Error {
    let at = at.min(bytes.len());
    let text = shown(&bytes[at.saturating_sub(20)..at]);
    Error::NotInEncoding { name: encoding.name(), at, text }
}

/// Encodes UTF-8 text on its way out. What goes in comes from a text that was in this encoding, and numbers.
pub(super) struct Encoded<W: Write> {
    out: W,
    into: Into,
    /// The beginning of a character whose end has not come yet.
    pending: Vec<u8>,
    buffer: Vec<u8>,
}

enum Into {
    Utf16 { big: bool },
    Other(Encoder),
}

impl<W: Write> Encoded<W> {
    pub(super) fn new(out: W, encoding: &'static Encoding) -> Self {
        // The crate writes no UTF-16, since nothing on the Web should.
        let into = if encoding == UTF_16LE || encoding == UTF_16BE {
            Into::Utf16 { big: encoding == UTF_16BE }
        } else {
            Into::Other(encoding.new_encoder())
        };
        Self { out, into, pending: Vec::new(), buffer: Vec::new() }
    }

    fn encode(&mut self, mut text: &str, last: bool) -> io::Result<()> {
        self.buffer.clear();
        match &mut self.into {
            Into::Utf16 { big } => {
                let bytes = |unit: u16| if *big { unit.to_be_bytes() } else { unit.to_le_bytes() };
                self.buffer.extend(text.encode_utf16().flat_map(bytes));
            }
            Into::Other(encoder) => loop {
                let room = 4 * text.len() + 16;
                let filled = self.buffer.len();
                self.buffer.resize(filled + room, 0);
                let (result, read, written) =
                    encoder.encode_from_utf8_without_replacement(text, &mut self.buffer[filled..], last);
                self.buffer.truncate(filled + written);
                text = &text[read..];
                match result {
                    EncoderResult::InputEmpty => break,
                    EncoderResult::OutputFull => {}
                    EncoderResult::Unmappable(c) => {
                        return Err(io::Error::other(format!("`{c}` is not in the encoding of the input")));
                    }
                }
            },
        }
        self.out.write_all(&self.buffer)
    }

    /// Ends the text.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            return Err(io::Error::other("the text ends within a character"));
        }
        self.encode("", true)?;
        self.out.flush()
    }
}

impl<W: Write> Write for Encoded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let whole = Encoding::utf8_valid_up_to(&pending);
        let text = str::from_utf8(&pending[..whole]).map_err(io::Error::other)?;
        self.encode(text, false)?;
        self.pending = pending[whole..].to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
