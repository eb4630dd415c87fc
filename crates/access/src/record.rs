//! The files of tokens and share links.

use std::{sync::Arc, time::SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{
    clock::{parse_rfc3339, representable, rfc3339},
    credential::Kind,
    grants::Grants,
    id::{CredentialId, KeyId},
    principal::{Principal, PrincipalKind},
    printable::is_invisible,
    right::Right,
};

/// The maximum number of characters of a name.
pub const MAX_NAME_CHARS: usize = 100;

/// The maximum length of a file in bytes. It bounds the prefixes of the grants together.
pub const MAX_RECORD_LEN: usize = 16 * 1024;

/// The format that this version writes and reads.
const FORMAT: u32 = 1;

/// The content of the file of a token or share link, as JSON. It has no secret. All members are required, so that
/// one that is lost or misspelled never makes a credential last longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    format: u32,
    /// The same as in the name of the file.
    pub(crate) id: CredentialId,
    pub(crate) name: Arc<str>,
    pub(crate) grants: Grants,
    #[serde(with = "time")]
    pub(crate) created: SystemTime,
    #[serde(with = "optional_time")]
    pub(crate) expires: Option<SystemTime>,
    /// The token that it was made with.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(crate) maker: Option<CredentialId>,
    /// The key that its MAC was made with.
    pub(crate) key: KeyId,
}

/// The parts of a new record.
pub(crate) struct NewRecord {
    pub(crate) id: CredentialId,
    pub(crate) name: String,
    pub(crate) grants: Grants,
    pub(crate) created: SystemTime,
    pub(crate) expires: Option<SystemTime>,
    pub(crate) maker: Option<CredentialId>,
    pub(crate) key: KeyId,
}

/// The reason why a name is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name of a token is empty.
    #[error("a token needs a name")]
    Empty,
    /// The name is too long.
    #[error("a name has at most {MAX_NAME_CHARS} characters")]
    TooLong,
    /// The name has a control character.
    #[error("a name has no control characters")]
    ControlCharacter,
    /// The name has another character that cannot be seen.
    #[error("a name has no invisible characters, such as U+{:04X}", u32::from(*.character))]
    Invisible {
        /// The first one.
        character: char,
    },
}

impl Record {
    pub(crate) fn new(new: NewRecord) -> Self {
        let NewRecord { id, name, grants, created, expires, maker, key } = new;
        let (created, expires) = (representable(created), expires.map(representable));
        Self { format: FORMAT, id, name: name.into(), grants, created, expires, maker, key }
    }

    /// The content of the file.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Texts, numbers and lists of them always serialize.
        let mut json = serde_json::to_vec_pretty(self).unwrap_or_default();
        json.push(b'\n');
        json
    }

    /// Parses and checks the content of the file of an id. The error says what is wrong.
    pub(crate) fn parse(kind: Kind, id: CredentialId, content: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(content).map_err(|error| error.to_string())?;
        if record.format != FORMAT {
            return Err(format!("its format is {}, not {FORMAT}", record.format));
        }
        if record.id != id {
            return Err("its id is not that of its name".to_owned());
        }
        match kind {
            Kind::Token if record.name.is_empty() => Err(NameError::Empty),
            // Names with other invisible characters may have been given before they were rejected.
            Kind::Token | Kind::Link => check_stored_name(&record.name),
        }
        .map_err(|error| error.to_string())?;
        let is_share = || record.grants.iter().count() == 1 && !record.grants.any(Right::Write);
        match kind {
            Kind::Token if record.grants.is_empty() => Err("it has no grants".to_owned()),
            Kind::Link if !is_share() => Err("a share link has one grant, to read".to_owned()),
            Kind::Link if record.expires.is_none() => Err("a share link has an expiry".to_owned()),
            Kind::Token | Kind::Link => Ok(record),
        }
    }

    /// The one who presents the credential.
    pub(crate) fn principal(&self, kind: Kind) -> Principal {
        let kind = match kind {
            Kind::Token => PrincipalKind::Token,
            Kind::Link => PrincipalKind::Link,
        };
        Principal {
            credential: Some(self.id),
            id: self.id.to_string().into(),
            name: Arc::clone(&self.name),
            kind,
            grants: self.grants.clone(),
            expires: self.expires,
            maker: self.maker.map(|maker| maker.to_string().into()),
        }
    }
}

/// Checks the name of a new token.
pub(crate) fn check_token_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() { Err(NameError::Empty) } else { check_name(name) }
}

/// Checks the name of a new share link, which may be empty.
pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    check_stored_name(name)?;
    match name.chars().find(|character| is_invisible(*character)) {
        Some(character) => Err(NameError::Invisible { character }),
        None => Ok(()),
    }
}

/// Checks the name in a file.
fn check_stored_name(name: &str) -> Result<(), NameError> {
    if name.chars().take(MAX_NAME_CHARS + 1).count() > MAX_NAME_CHARS {
        return Err(NameError::TooLong);
    }
    if name.chars().any(char::is_control) { Err(NameError::ControlCharacter) } else { Ok(()) }
}

/// Times as RFC 3339.
mod time {
    use super::*;

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        rfc3339(*time).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let text = String::deserialize(from)?;
        parse_rfc3339(&text).ok_or_else(|| D::Error::custom("a time must be RFC 3339 in UTC"))
    }
}

/// Times as RFC 3339, or null.
mod optional_time {
    use super::*;

    pub(super) fn serialize<S: Serializer>(time: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
        time.map(rfc3339).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SystemTime>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let time = parse_rfc3339(&text).ok_or_else(|| D::Error::custom("a time must be RFC 3339 in UTC"))?;
        Ok(Some(time))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn record(grants: &str, expires: Option<SystemTime>) -> Record {
        Record::new(NewRecord {
            id: CredentialId::random().unwrap(),
            name: "Ada's laptop".to_owned(),
            grants: Grants::from(grants.parse::<crate::Grant>().unwrap()),
            created: SystemTime::now(),
            expires,
            maker: None,
            key: KeyId::FIRST,
        })
    }

    #[test]
    fn records_round_trip() {
        let later = SystemTime::now() + Duration::from_secs(60);
        for (kind, mut record) in [
            (Kind::Token, record("admin:/", None)),
            (Kind::Token, record("write:lab/", Some(later))),
            (Kind::Link, record("read:lab/", Some(later))),
        ] {
            assert_eq!(Record::parse(kind, record.id, &record.to_json()).as_ref(), Ok(&record));
            record.maker = Some(CredentialId::random().unwrap());
            assert_eq!(Record::parse(kind, record.id, &record.to_json()).as_ref(), Ok(&record));
        }
    }

    #[test]
    fn invisible_characters_are_in_old_names_only() {
        for (name, invisible) in [("Ada \u{202e}", '\u{202e}'), ("\u{200b}", '\u{200b}'), ("a\u{2028}b", '\u{2028}')] {
            let error = NameError::Invisible { character: invisible };
            assert_eq!((check_token_name(name), check_name(name)), (Err(error), Err(error)));
            let later = Some(SystemTime::now() + Duration::from_secs(60));
            for kind in [Kind::Token, Kind::Link] {
                let old = Record { name: name.into(), ..record("read:lab/", later) };
                assert_eq!(Record::parse(kind, old.id, &old.to_json()).as_ref(), Ok(&old));
            }
        }
        let error = NameError::Invisible { character: '\u{ad}' };
        assert_eq!(error.to_string(), "a name has no invisible characters, such as U+00AD");
        for name in ["Ada's laptop", "Zürich \u{1d11e} 日本 \u{e000}", "e\u{301}"] {
            assert_eq!(check_token_name(name), Ok(()));
        }
        assert_eq!((check_token_name(""), check_name("")), (Err(NameError::Empty), Ok(())));
    }

    #[test]
    fn every_member_is_required() {
        let record = record("read:lab/", None);
        let json: serde_json::Value = serde_json::from_slice(&record.to_json()).unwrap();
        let names: Vec<String> = json.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names.len(), 8);
        for name in names {
            let mut changed = json.clone();
            let value = changed.as_object_mut().unwrap().remove(&name).unwrap();
            assert!(Record::parse(Kind::Token, record.id, changed.to_string().as_bytes()).is_err(), "without {name}");
            changed[format!("{name}s")] = value;
            assert!(Record::parse(Kind::Token, record.id, changed.to_string().as_bytes()).is_err(), "{name}s");
        }
    }

    #[test]
    fn invalid_records_are_rejected() {
        let good = record("read:lab/", Some(SystemTime::now()));
        let json: serde_json::Value = serde_json::from_slice(&good.to_json()).unwrap();
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for (kind, member, value) in [
            (Kind::Token, "format", serde_json::json!(2)),
            (Kind::Token, "id", CredentialId::random().unwrap().to_string().into()),
            (Kind::Token, "id", "x".into()),
            (Kind::Token, "name", "".into()),
            (Kind::Token, "name", "a\nb".into()),
            (Kind::Link, "name", long.into()),
            (Kind::Token, "grants", serde_json::json!([])),
            (Kind::Token, "grants", serde_json::json!(["read:lab"])),
            (Kind::Link, "grants", serde_json::json!(["read:lab/", "read:x/"])),
            (Kind::Link, "grants", serde_json::json!(["write:lab/"])),
            (Kind::Token, "created", serde_json::Value::Null),
            (Kind::Token, "expires", "soon".into()),
            (Kind::Link, "expires", serde_json::Value::Null),
            (Kind::Token, "maker", "".into()),
            (Kind::Token, "key", serde_json::json!(0)),
        ] {
            let mut changed = json.clone();
            changed[member] = value;
            let content = changed.to_string();
            assert!(Record::parse(kind, good.id, content.as_bytes()).is_err(), "{content}");
        }
        for end in 0..good.to_json().len() - 2 {
            assert!(Record::parse(Kind::Token, good.id, &good.to_json()[..end]).is_err());
        }
    }
}
