//! Base64 (RFC 4648 §4).

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;

/// Like Python's: padding is required, but its bits are ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

pub(super) fn encode_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Appends bytes as a JSON string.
pub(super) fn append_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let text_len = base64::encoded_len(bytes.len(), true).unwrap_or_default();
    out.push(b'"');
    let start = out.len();
    out.resize(start.saturating_add(text_len), 0);
    let written = out.get_mut(start..).map(|target| BASE64.encode_slice(bytes, target));
    debug_assert!(matches!(written, Some(Ok(len)) if len == text_len), "the target is as large as the text");
    out.push(b'"');
}

/// Decodes base64 of at most `limit` bytes; `None` if it is invalid or longer.
pub(super) fn decode_base64(text: &str, limit: usize) -> Option<Vec<u8>> {
    if base64::decoded_len_estimate(text.len()) > limit.saturating_add(3) {
        return None;
    }
    BASE64.decode(text).ok().filter(|bytes| bytes.len() <= limit)
}

/// The bytes of a fill value: base64, or an array of integers as written by zarr-python 3.0.
pub(super) fn bytes_of(json: &Value, limit: usize) -> Option<Vec<u8>> {
    match json {
        Value::String(text) => decode_base64(text, limit),
        Value::Array(items) if items.len() <= limit => {
            items.iter().map(|item| item.as_u64().and_then(|value| u8::try_from(value).ok())).collect()
        }
        _ => None,
    }
}
