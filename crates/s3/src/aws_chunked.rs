//! Bodies with the content coding `aws-chunked`.
//!
//! Nothing is held but the line that is being read: data is passed on as it arrives, and its signature is compared at the
//! end of its chunk. The end of a body that was refused is an error, so that nothing of it is committed.

use std::{
    error::Error,
    mem,
    sync::{Arc, OnceLock},
};

use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_ENCODING};
use s3s::{S3Error, s3_error};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{
    body::BodyError,
    headers::{CONTENT_SHA256, DECODED_LENGTH},
    mac::mac,
};

/// The maximum length of the line before a chunk, in bytes.
const MAX_LINE: usize = 1024;
/// The maximum size of all trailers, in bytes.
const MAX_TRAILERS: usize = 16 << 10;
/// The maximum number of trailers.
const MAX_TRAILER_COUNT: usize = 32;
/// The number of digits of the greatest size of a chunk.
const MAX_SIZE_DIGITS: usize = 15;
/// The length of a SHA-256 hash in hexadecimal digits.
const HASH_LEN: usize = 64;
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// The trailers of a body, which are there once it has ended. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Trailers(Arc<OnceLock<HeaderMap>>);

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// The length of the decoded body, in bytes.
    pub length: u64,
    /// True if each chunk is signed.
    is_signed: bool,
}

/// Verifies the signatures of chunks, each of which is of the one before.
#[derive(Clone, Debug)]
pub struct ChunkSigner {
    key: [u8; 32],
    time: String,
    scope: String,
    previous: String,
}

/// The decoder of a body.
struct Decoder {
    state: State,
    /// The line that is being read.
    line: Vec<u8>,
    /// The number of bytes that are left of the announced length.
    left: u64,
    signer: Option<ChunkSigner>,
    /// The hash and the claimed signature of the chunk that is being read.
    chunk: (Sha256, String),
    /// The trailers that were read, and their size.
    trailers: (Vec<(HeaderName, HeaderValue)>, usize),
    trailer_signature: Option<String>,
    shared: Trailers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the line before a chunk.
    Size,
    /// In the data of a chunk, of which this number of bytes follows.
    Data(u64),
    /// In the end of the line after the data of a chunk.
    DataEnd,
    /// In the lines after the last chunk.
    Trailers,
    Done,
}

impl Trailers {
    /// A trailer of a body that has ended.
    pub fn get(&self, name: &str) -> Option<HeaderValue> {
        self.0.get()?.get(name).cloned()
    }
}

impl Framing {
    /// The framing of the body of a request; `None` if it has none. Removes `aws-chunked` from `Content-Encoding`.
    pub fn take(headers: &mut HeaderMap) -> Result<Option<Self>, S3Error> {
        let is_coded = remove_coding(headers);
        let kind = headers.get(CONTENT_SHA256).map_or(&b""[..], HeaderValue::as_bytes);
        let is_signed = match kind.strip_prefix(b"STREAMING-") {
            Some(b"AWS4-HMAC-SHA256-PAYLOAD" | b"AWS4-HMAC-SHA256-PAYLOAD-TRAILER") => true,
            Some(b"UNSIGNED-PAYLOAD-TRAILER") => false,
            Some(_) => return Err(s3_error!(NotImplemented, "this kind of {CONTENT_SHA256} is not supported")),
            // Its hash says that the body is what it is; some clients name the coding nevertheless.
            None if is_coded && kind.len() == HASH_LEN && !headers.contains_key(DECODED_LENGTH) => return Ok(None),
            None if is_coded => false,
            None => return Ok(None),
        };
        let length = headers.get(DECODED_LENGTH).and_then(|line| line.to_str().ok()?.parse().ok());
        let length = length.ok_or_else(|| s3_error!(MissingContentLength, "{DECODED_LENGTH} is missing or invalid"))?;
        Ok(Some(Self { length, is_signed }))
    }
}

/// Removes `aws-chunked` from the content codings. Returns true if it was one of them.
fn remove_coding(headers: &mut HeaderMap) -> bool {
    let codings = headers.get_all(CONTENT_ENCODING).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let codings: Vec<Vec<u8>> = codings.map(|coding| coding.trim_ascii().to_vec()).collect();
    let (found, others): (Vec<_>, Vec<_>) =
        codings.into_iter().partition(|coding| coding.eq_ignore_ascii_case(b"aws-chunked"));
    if found.is_empty() {
        return false;
    }
    headers.remove(CONTENT_ENCODING);
    if let Ok(value) = HeaderValue::from_bytes(&others.join(&b", "[..]))
        && !others.is_empty()
    {
        headers.insert(CONTENT_ENCODING, value);
    }
    true
}

impl ChunkSigner {
    pub(crate) fn new(key: [u8; 32], time: String, scope: String, seed: String) -> Self {
        Self { key, time, scope, previous: seed }
    }

    /// Compares the signature of a chunk with this hash, which the next one continues.
    fn verify_chunk(&mut self, hash: &[u8], signature: &str) -> Result<(), BodyError> {
        let empty = hex::encode(Sha256::digest(b""));
        self.verify("AWS4-HMAC-SHA256-PAYLOAD", &format!("{empty}\n{}", hex::encode(hash)), signature)
    }

    fn verify_trailers(&mut self, trailers: &[u8], signature: &str) -> Result<(), BodyError> {
        self.verify("AWS4-HMAC-SHA256-TRAILER", &hex::encode(Sha256::digest(trailers)), signature)
    }

    fn verify(&mut self, kind: &str, hashes: &str, signature: &str) -> Result<(), BodyError> {
        let text = format!("{kind}\n{}\n{}\n{}\n{hashes}", self.time, self.scope, self.previous);
        let expected = hex::encode(mac(&self.key, text.as_bytes()));
        if !bool::from(expected.as_bytes().ct_eq(signature.as_bytes())) {
            return Err(BodyError::Signature);
        }
        self.previous = expected;
        Ok(())
    }
}

/// Decodes a body. If its chunks are signed, `signer` verifies them; a request without a signature has none.
pub fn decode<S, E>(
    body: S,
    framing: Framing,
    signer: Option<ChunkSigner>,
    trailers: Trailers,
) -> Result<impl Stream<Item = Result<Bytes, Box<dyn Error + Send + Sync>>> + Send, S3Error>
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    E: Into<Box<dyn Error + Send + Sync>> + Send,
{
    let signer = match (framing.is_signed, signer) {
        (true, None) => return Err(s3_error!(InvalidRequest, "chunks are signed, but the request is not")),
        (true, signer) => signer,
        (false, _) => None,
    };
    let decoder = Decoder::new(framing.length, signer, trailers);
    Ok(stream::try_unfold((body, decoder, Bytes::new()), |(mut body, mut decoder, mut input)| async move {
        loop {
            if let Some(data) = decoder.next(&mut input)? {
                return Ok(Some((data, (body, decoder, input))));
            }
            match body.next().await {
                Some(data) => input = data.map_err(Into::into)?,
                None => {
                    decoder.finish()?;
                    return Ok(None);
                }
            }
        }
    }))
}

impl Decoder {
    fn new(length: u64, signer: Option<ChunkSigner>, shared: Trailers) -> Self {
        Self {
            state: State::Size,
            line: Vec::new(),
            left: length,
            signer,
            chunk: (Sha256::new(), String::new()),
            trailers: (Vec::new(), 0),
            trailer_signature: None,
            shared,
        }
    }

    /// The next piece of data in the input; `None` if all of it was read.
    fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, BodyError> {
        while !input.is_empty() {
            match self.state {
                State::Data(size) => {
                    let data = input.split_to(usize::try_from(size).unwrap_or(usize::MAX).min(input.len()));
                    let rest = size.saturating_sub(data.len() as u64);
                    self.state = if rest == 0 { State::DataEnd } else { State::Data(rest) };
                    if self.signer.is_some() {
                        self.chunk.0.update(&data);
                    }
                    return Ok(Some(data));
                }
                State::Done => return Err(BodyError::Framing),
                State::Size | State::DataEnd | State::Trailers => {
                    if let Some(line) = self.read_line(input)? {
                        self.handle_line(&line)?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Fails unless the body is complete.
    fn finish(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::Done => Ok(()),
            // Some clients leave out the empty line after the trailers.
            State::Trailers if self.line.is_empty() => self.end(),
            _ => Err(BodyError::Incomplete),
        }
    }

    /// The line that the input completes, without its end.
    fn read_line(&mut self, input: &mut Bytes) -> Result<Option<Vec<u8>>, BodyError> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let len = end.unwrap_or(input.len());
        if self.line.len().saturating_add(len) > MAX_LINE {
            return Err(BodyError::Framing);
        }
        self.line.extend_from_slice(input.get(..len).unwrap_or_default());
        input.advance(end.map_or(len, |end| end.saturating_add(1)));
        if end.is_none() {
            return Ok(None);
        }
        let mut line = mem::take(&mut self.line);
        match line.pop() {
            Some(b'\r') => {}
            // Some clients end the lines of trailers with a line feed alone.
            Some(other) if self.state == State::Trailers => line.push(other),
            None if self.state == State::Trailers => {}
            _ => return Err(BodyError::Framing),
        }
        Ok(Some(line))
    }

    fn handle_line(&mut self, line: &[u8]) -> Result<(), BodyError> {
        match self.state {
            State::Size => self.begin_chunk(line),
            State::DataEnd if line.is_empty() => {
                self.end_chunk()?;
                self.state = State::Size;
                Ok(())
            }
            State::Trailers if line.is_empty() => self.end_unless_signature_follows(),
            State::Trailers => self.add_trailer(line),
            _ => Err(BodyError::Framing),
        }
    }

    fn begin_chunk(&mut self, line: &[u8]) -> Result<(), BodyError> {
        let line = str::from_utf8(line).map_err(|_| BodyError::Framing)?;
        let (size, extension) = line.split_once(';').map_or((line, None), |(size, extension)| (size, Some(extension)));
        let is_size = (1..=MAX_SIZE_DIGITS).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = u64::from_str_radix(size, 16).ok().filter(|_| is_size).ok_or(BodyError::Framing)?;
        self.left = self.left.checked_sub(size).ok_or(BodyError::TooLong)?;
        let signature = extension.and_then(|extension| extension.strip_prefix("chunk-signature="));
        match (&self.signer, signature) {
            (Some(_), Some(signature)) => self.chunk = (Sha256::new(), signature.to_owned()),
            (Some(_), None) => return Err(BodyError::Framing),
            (None, _) => {}
        }
        if size > 0 {
            self.state = State::Data(size);
            return Ok(());
        }
        if self.left > 0 {
            return Err(BodyError::Incomplete);
        }
        self.end_chunk()?;
        self.state = State::Trailers;
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<(), BodyError> {
        let Some(signer) = &mut self.signer else { return Ok(()) };
        let (hash, signature) = mem::take(&mut self.chunk);
        signer.verify_chunk(&hash.finalize(), &signature)
    }

    fn add_trailer(&mut self, line: &[u8]) -> Result<(), BodyError> {
        let (trailers, size) = &mut self.trailers;
        *size = size.saturating_add(line.len());
        if trailers.len() >= MAX_TRAILER_COUNT || *size > MAX_TRAILERS {
            return Err(BodyError::Trailer);
        }
        let line = str::from_utf8(line).map_err(|_| BodyError::Trailer)?;
        let (name, value) = line.split_once(':').ok_or(BodyError::Trailer)?;
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if name == TRAILER_SIGNATURE {
            self.trailer_signature = Some(value.to_owned());
            return Ok(());
        }
        let value = HeaderValue::from_str(value).map_err(|_| BodyError::Trailer)?;
        trailers.push((HeaderName::try_from(name).map_err(|_| BodyError::Trailer)?, value));
        Ok(())
    }

    /// Ends at an empty line, unless it separates signed trailers from their signature.
    fn end_unless_signature_follows(&mut self) -> Result<(), BodyError> {
        let is_unsigned_yet = !self.trailers.0.is_empty() && self.trailer_signature.is_none();
        if self.signer.is_some() && is_unsigned_yet { Ok(()) } else { self.end() }
    }

    fn end(&mut self) -> Result<(), BodyError> {
        let (mut trailers, _) = mem::take(&mut self.trailers);
        trailers.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        if let Some(signer) = &mut self.signer
            && !trailers.is_empty()
        {
            let line = |(name, value): &(HeaderName, HeaderValue)| {
                [name.as_str().as_bytes(), b":", value.as_bytes(), b"\n"].concat()
            };
            let canonical = trailers.iter().map(line).collect::<Vec<_>>().concat();
            signer.verify_trailers(&canonical, self.trailer_signature.as_deref().ok_or(BodyError::Signature)?)?;
        }
        // A body ends once.
        let _ = self.shared.0.set(trailers.into_iter().collect());
        self.state = State::Done;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
