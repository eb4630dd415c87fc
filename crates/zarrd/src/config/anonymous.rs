//! Rights of requests without a token.

use std::str::FromStr;

use zarrd_access::{Grant, GrantError, Grants, Right, TooManyGrants};

/// A right of `--anonymous`; `None` for no rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnonymousRight(Option<Grant>);

/// Errors of parsing an [`AnonymousRight`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnonymousRightError {
    /// Administrators have tokens.
    #[error("requests without a token cannot have the right `admin`")]
    Admin,
    /// The text is neither a right nor one on a prefix.
    #[error("`none`, `read`, `write`, or a right on a prefix such as `read:public/` is expected")]
    Grant(#[from] GrantError),
}

/// The rights of `--anonymous` contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnonymousRightsError {
    /// No rights, and some.
    #[error("--anonymous none excludes other rights")]
    NoneAndOthers,
    /// There are too many rights.
    #[error("--anonymous was given too often")]
    TooMany(#[from] TooManyGrants),
}

impl AnonymousRight {
    /// Combines rights; `None` without any.
    pub(crate) fn combine(rights: Vec<Self>) -> Result<Option<Grants>, AnonymousRightsError> {
        if rights.is_empty() {
            return Ok(None);
        }
        let count = rights.len();
        let grants: Vec<Grant> = rights.into_iter().filter_map(|Self(grant)| grant).collect();
        if !grants.is_empty() && grants.len() < count {
            return Err(AnonymousRightsError::NoneAndOthers);
        }
        Ok(Some(Grants::new(grants)?))
    }
}

impl FromStr for AnonymousRight {
    type Err = AnonymousRightError;

    fn from_str(text: &str) -> Result<Self, AnonymousRightError> {
        let grant: Grant = match text {
            "none" => return Ok(Self(None)),
            "read" | "write" => format!("{text}:/").parse()?,
            grant => grant.parse()?,
        };
        if grant.right == Right::Admin { Err(AnonymousRightError::Admin) } else { Ok(Self(Some(grant))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combine(texts: &[&str]) -> Result<Option<Vec<String>>, AnonymousRightsError> {
        let rights = texts.iter().map(|text| text.parse().unwrap()).collect();
        Ok(AnonymousRight::combine(rights)?.map(|grants| grants.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn rights_are_combined() {
        assert_eq!(combine(&[]), Ok(None));
        assert_eq!(combine(&["none"]), Ok(Some(Vec::new())));
        assert_eq!(combine(&["read"]), Ok(Some(vec!["read:/".to_owned()])));
        let both = vec!["read:/".to_owned(), "write:inbox/".to_owned()];
        assert_eq!(combine(&["write:inbox/", "read", "read:public/"]), Ok(Some(both)));
        assert_eq!(combine(&["none", "read:public/"]), Err(AnonymousRightsError::NoneAndOthers));
    }

    #[test]
    fn invalid_rights_are_rejected() {
        assert_eq!("admin:/".parse::<AnonymousRight>(), Err(AnonymousRightError::Admin));
        for bad in ["", "admin", "Read", "read:public", "read:/public/", "all", "read:../"] {
            assert!(matches!(bad.parse::<AnonymousRight>(), Err(AnonymousRightError::Grant(_))), "{bad}");
        }
    }
}
