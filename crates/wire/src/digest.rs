//! `Content-Digest` (RFC 9530): digests of a body.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};

/// The algorithms that are verified, which are those that RFC 9530 calls active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// The digest of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The hash, of the algorithm's length.
    pub hash: Vec<u8>,
}

/// The reason why a `Content-Digest` cannot be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// It is not a dictionary of byte sequences, such as ``sha-256=:…:``, or a hash has the wrong length.
    #[error("Content-Digest is not a list of algorithms with their hash, such as sha-256=:47DEQpj8…=:")]
    Malformed,
    /// None of its algorithms is supported, and the body must not be stored unverified.
    #[error("Content-Digest has neither sha-256 nor sha-512")]
    Unsupported,
}

/// Parses a `Content-Digest`: all the digests whose algorithm is known, of which there is at least one.
///
/// Of an algorithm that is named twice the last hash counts, as in any dictionary of RFC 8941.
pub fn parse(header: &str) -> Result<Vec<Digest>, DigestError> {
    let mut digests: Vec<Digest> = Vec::new();
    for member in header.split(',') {
        let (name, rest) = member.trim_matches([' ', '\t']).split_once("=:").ok_or(DigestError::Malformed)?;
        let hash = rest.strip_suffix(':').ok_or(DigestError::Malformed)?;
        let Some(algorithm) = Algorithm::ALL.into_iter().find(|candidate| candidate.name() == name) else { continue };
        let hash = STANDARD.decode(hash).map_err(|_| DigestError::Malformed)?;
        if hash.len() != algorithm.hash_len() {
            return Err(DigestError::Malformed);
        }
        digests.retain(|other| other.algorithm != algorithm);
        digests.push(Digest { algorithm, hash });
    }
    if digests.is_empty() { Err(DigestError::Unsupported) } else { Ok(digests) }
}

impl Algorithm {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// The name in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha-256",
            Self::Sha512 => "sha-512",
        }
    }

    /// The length of a hash in bytes.
    pub fn hash_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=:{}:", self.algorithm.name(), STANDARD.encode(&self.hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_HELLO: &str = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";

    #[test]
    fn digests_are_parsed() {
        let digests = parse(OF_HELLO).unwrap();
        assert_eq!(digests.len(), 1);
        assert_eq!(digests[0].to_string(), OF_HELLO);
        let two = Digest { algorithm: Algorithm::Sha512, hash: vec![7; 64] };
        let both = parse(&format!("{OF_HELLO} ,\tmd5=:AAAA:,{two}")).unwrap();
        assert_eq!(both, [digests[0].clone(), two]);
        let twice = format!("{}, {OF_HELLO}", Digest { algorithm: Algorithm::Sha256, hash: vec![7; 32] });
        assert_eq!(parse(&twice).unwrap(), digests);
        assert_eq!(parse("md5=:AAAA:"), Err(DigestError::Unsupported));
        for bad in [
            "",
            ",",
            "sha-256",
            "sha-256=AAAA",
            "sha-256=:AAAA:",
            "sha-256=:!:",
            "sha-256=:",
            OF_HELLO.trim_end_matches(':'),
        ] {
            assert_eq!(parse(bad), Err(DigestError::Malformed), "{bad}");
        }
    }
}
