//! The key ring: the keys with which credentials are made and verified.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use rand::{
    TryRng,
    rngs::{SysError, SysRng},
};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{
    credential::{Credential, Kind, MAC_TEXT_LEN, Secret},
    denial::Denial,
    id::{CredentialId, KeyId},
};

/// The maximum number of keys.
pub(crate) const MAX_KEYS: usize = 64;

/// The format of key files that this version writes and reads.
const FORMAT: u32 = 1;

/// A key: 256 random bits, of which only the state of the HMAC is in memory.
#[derive(Clone)]
pub(crate) struct Key {
    id: KeyId,
    mac: Hmac<Sha256>,
}

/// A MAC as hexadecimal digits.
#[derive(Clone)]
pub(crate) struct MacText([u8; MAC_TEXT_LEN]);

/// At most [`MAX_KEYS`] keys, sorted by number. The last one makes new credentials; all of them verify.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyRing(Vec<Key>);

/// The content of a key file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    format: u32,
    key: KeyId,
    secret: String,
}

/// The content of the file of a new random key.
pub(crate) fn new_key_file(id: KeyId) -> Result<Vec<u8>, SysError> {
    let mut secret = [0; 32];
    SysRng.try_fill_bytes(&mut secret)?;
    let file = KeyFile { format: FORMAT, key: id, secret: hex::encode(secret) };
    // A number and two texts always serialize.
    let mut json = serde_json::to_vec_pretty(&file).unwrap_or_default();
    json.push(b'\n');
    Ok(json)
}

impl Key {
    /// Parses the content of the file of the key with a number; `None` if it is damaged or another one's.
    pub(crate) fn parse(id: KeyId, content: &[u8]) -> Option<Self> {
        let file: KeyFile = serde_json::from_slice(content).ok()?;
        let mut secret = [0; 32];
        hex::decode_to_slice(&file.secret, &mut secret).ok()?;
        if file.format != FORMAT || file.key != id {
            return None;
        }
        Some(Self { id, mac: Hmac::new_from_slice(&secret).ok()? })
    }

    fn mac(&self, kind: Kind, id: &CredentialId) -> MacText {
        let mac = self.mac.clone().chain_update(kind.domain()).chain_update(id.as_bytes());
        let mut digits = [0; MAC_TEXT_LEN];
        // 32 bytes always fit.
        let _ = hex::encode_to_slice(mac.finalize().into_bytes(), &mut digits);
        MacText(digits)
    }
}

impl MacText {
    /// The digits.
    pub(crate) fn as_str(&self) -> &str {
        // Hexadecimal digits are text.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Compares this with the MAC of a credential, in a time that does not depend on where they differ.
    pub(crate) fn verify(&self, credential: &Credential<'_>) -> Result<(), Denial> {
        let (expected, found) = (words(&self.0), words(credential.mac));
        let difference = expected.zip(found).fold(0, |difference, (a, b)| difference | (a ^ b));
        let same = credential.mac.len().ct_eq(&self.0.len()) & difference.ct_eq(&0);
        if bool::from(same) { Ok(()) } else { Err(Denial::BadMac) }
    }
}

impl KeyRing {
    pub(crate) fn new(mut keys: Vec<Key>) -> Self {
        keys.sort_by_key(|key| key.id);
        Self(keys)
    }

    /// The numbers of the keys, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.0.iter().map(|key| key.id)
    }

    /// The number of the key that makes new credentials.
    pub(crate) fn current(&self) -> Option<KeyId> {
        self.0.last().map(|key| key.id)
    }

    /// True if the ring has the key.
    pub(crate) fn contains(&self, id: KeyId) -> bool {
        self.get(id).is_some()
    }

    /// The text of a credential, made with the current key; `None` without keys.
    pub(crate) fn sign(&self, kind: Kind, id: CredentialId) -> Option<(KeyId, Secret)> {
        let key = self.0.last()?;
        let mac = key.mac(kind, &id);
        Some((key.id, Secret::new(kind, key.id, id, mac.as_str())))
    }

    /// The MAC of an id, made with a key of the ring.
    pub(crate) fn mac(&self, kind: Kind, key: KeyId, id: &CredentialId) -> Result<MacText, Denial> {
        let key = self.get(key).ok_or(Denial::UnknownKey)?;
        Ok(key.mac(kind, id))
    }

    /// Checks the MAC of a credential.
    pub(crate) fn verify(&self, kind: Kind, credential: &Credential<'_>) -> Result<(), Denial> {
        self.mac(kind, credential.key, &credential.id)?.verify(credential)
    }

    fn get(&self, id: KeyId) -> Option<&Key> {
        let at = self.0.binary_search_by_key(&id, |key| key.id).ok()?;
        self.0.get(at)
    }
}

/// The words of a text whose length is a multiple of their size: comparing bytes one by one takes eight times as long.
fn words(text: &[u8]) -> impl Iterator<Item = u64> {
    text.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word))
}

impl fmt::Debug for MacText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacText(…)")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

    use super::*;

    fn key(id: u32) -> Key {
        let id: KeyId = id.to_string().parse().unwrap();
        Key::parse(id, &new_key_file(id).unwrap()).unwrap()
    }

    fn verify(ring: &KeyRing, kind: Kind, text: &str) -> Result<(), Denial> {
        ring.verify(kind, &Credential::parse(kind, text.as_bytes())?)
    }

    #[test]
    fn mac_is_that_of_rfc_2104() {
        // Computed by Python's `hmac.digest(bytes(range(32)), b"zarrd token 1\0" + bytes(range(16)), "sha256")`.
        let secret: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
        let file = format!(r#"{{"format": 1, "key": 1, "secret": "{secret}"}}"#);
        let ring = KeyRing::new(vec![Key::parse(KeyId::FIRST, file.as_bytes()).unwrap()]);
        let id = "000102030405060708090a0b0c0d0e0f";
        let (_, token) = ring.sign(Kind::Token, id.parse().unwrap()).unwrap();
        let mac = "b518c8a88296b5d762be7788d05d215585f8c426004fc98c10537f711fe11c7f";
        assert_eq!(token.expose(), format!("zarrd_1_{id}_{mac}"));
    }

    #[test]
    fn credentials_are_verified_by_their_key_and_kind_only() {
        let (first, second) = (key(1), key(2));
        let old = KeyRing::new(vec![first.clone()]);
        let ring = KeyRing::new(vec![second.clone(), first]);
        let id = CredentialId::random().unwrap();
        let (made_with, token) = old.sign(Kind::Token, id).unwrap();
        assert_eq!(made_with, KeyId::FIRST);
        assert!(verify(&ring, Kind::Token, token.expose()).is_ok());
        let (made_with, newer) = ring.sign(Kind::Token, id).unwrap();
        assert_eq!(Some(made_with), ring.current());
        assert!(verify(&ring, Kind::Token, newer.expose()).is_ok());
        assert!(matches!(verify(&old, Kind::Token, newer.expose()), Err(Denial::UnknownKey)));
        let renamed = newer.expose().replace("zarrd_2", "zarrd_1");
        assert!(matches!(verify(&ring, Kind::Token, &renamed), Err(Denial::BadMac)));
        // The key of the same number in another directory.
        assert!(matches!(verify(&KeyRing::new(vec![key(1)]), Kind::Token, token.expose()), Err(Denial::BadMac)));
        let link = token.expose().replace("zarrd_", "zarrdlink_");
        assert!(matches!(verify(&ring, Kind::Link, &link), Err(Denial::BadMac)));
        assert!(matches!(verify(&ring, Kind::Link, token.expose()), Err(Denial::Malformed)));
        let (_, link) = ring.sign(Kind::Link, id).unwrap();
        assert!(verify(&ring, Kind::Link, link.expose()).is_ok());
        assert!(matches!(verify(&ring, Kind::Token, link.expose()), Err(Denial::Malformed)));
    }

    #[test]
    fn malformed_credentials_are_rejected() {
        let ring = KeyRing::new(vec![key(1)]);
        let (_, token) = ring.sign(Kind::Token, CredentialId::random().unwrap()).unwrap();
        let text = token.expose();
        let long = "zarrd_1_".repeat(100_000);
        for bad in ["", "zarrd", "zarrd_", "zarrd_1", "zarrd_1_", "zarrd_1__", "_", "ä_ö_ü_", &long] {
            assert!(matches!(verify(&ring, Kind::Token, bad), Err(Denial::Malformed)), "{bad}");
        }
        for end in 0..text.len() {
            assert!(matches!(verify(&ring, Kind::Token, text.get(..end).unwrap()), Err(Denial::Malformed)), "{end}");
        }
        let (id, mac) = text.split_at(text.len() - MAC_TEXT_LEN);
        let upper = mac.to_uppercase();
        assert!(matches!(verify(&ring, Kind::Token, &format!("{id}{upper}")), Err(Denial::Malformed)));
        for bad in [format!("{text}0"), format!(" {text}"), format!("{text}\n"), text.to_uppercase()] {
            assert!(matches!(verify(&ring, Kind::Token, &bad), Err(Denial::Malformed)), "{bad}");
        }
    }

    #[test]
    fn every_digit_of_a_credential_counts() {
        let ring = KeyRing::new(vec![key(1)]);
        let (_, token) = ring.sign(Kind::Token, CredentialId::random().unwrap()).unwrap();
        for at in "zarrd_1_".len()..token.expose().len() {
            let mut changed = token.expose().as_bytes().to_vec();
            changed[at] = match changed[at] {
                b'_' => continue,
                b'0' => b'1',
                _ => b'0',
            };
            let changed = String::from_utf8(changed).unwrap();
            assert!(matches!(verify(&ring, Kind::Token, &changed), Err(Denial::BadMac)), "{changed}");
        }
    }

    proptest! {
        #[test]
        fn every_changed_credential_is_refused(
            changes in prop::collection::vec((any::<Index>(), "[0-9a-fA-Fzlink_ \\PC]"), 1..4),
            is_link: bool,
        ) {
            let kind = if is_link { Kind::Link } else { Kind::Token };
            let ring = KeyRing::new(vec![key(1), key(2)]);
            let (_, secret) = ring.sign(kind, CredentialId::random().unwrap()).unwrap();
            let mut characters: Vec<String> = secret.expose().chars().map(String::from).collect();
            for (at, character) in changes {
                let at = at.index(characters.len());
                characters[at] = character;
            }
            let changed = characters.concat();
            prop_assume!(changed != secret.expose());
            for kind in [Kind::Token, Kind::Link] {
                prop_assert!(verify(&ring, kind, &changed).is_err(), "{}", changed);
            }
        }
    }

    #[test]
    fn damaged_key_files_are_rejected() {
        let content = String::from_utf8(new_key_file(KeyId::FIRST).unwrap()).unwrap();
        assert!(Key::parse(KeyId::FIRST, content.as_bytes()).is_some());
        let cut = content.get(..content.len() - 4).unwrap();
        let (format, short) = (content.replace(": 1,", ": 2,"), content.replace("\"\n}", "ab\"\n}"));
        for bad in ["", "{}", cut, &format, &short] {
            assert_ne!(bad, content);
            assert!(Key::parse(KeyId::FIRST, bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(Key::parse("2".parse().unwrap(), content.as_bytes()).is_none());
        assert_eq!(format!("{:?}", KeyRing::new(vec![key(1)])), "KeyRing([Key(1)])");
    }
}
