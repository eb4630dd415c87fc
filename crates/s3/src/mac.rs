//! The authentication code of signatures.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The HMAC-SHA256 of a message.
pub(crate) fn mac(key: &[u8], message: &[u8]) -> [u8; 32] {
    // A key may have any length.
    Hmac::<Sha256>::new_from_slice(key).map_or([0; 32], |mac| mac.chain_update(message).finalize().into_bytes().into())
}
