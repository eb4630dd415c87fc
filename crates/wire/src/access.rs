//! The JSON of tokens and share links.

use serde::{Deserialize, Serialize};

/// A request for a new token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// A name for people.
    pub name: String,
    /// The rights, such as `read:lab/`.
    pub allow: Vec<String>,
    /// The time from which on it is void, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The id, which is no secret.
    pub id: String,
    /// The name.
    pub name: String,
    /// The rights.
    pub allow: Vec<String>,
    /// The time at which it was made, in RFC 3339.
    pub created: String,
    /// The time from which on it is void, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The id of the token with which it was made, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<String>,
}

/// A token that was made, with its secret, which is shown only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedToken {
    /// The token's properties.
    #[serde(flatten)]
    pub properties: Token,
    /// The text that is sent as the credential.
    pub token: String,
}

/// A page of the tokens that the caller administers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The tokens, by id.
    pub tokens: Vec<Token>,
    /// The start of the next page; `null` on the last.
    pub cursor: Option<String>,
}

/// A request for a new share link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// A name for people.
    #[serde(default)]
    pub name: String,
    /// The prefix that it gives access to, such as `lab/exp1/`.
    pub prefix: String,
    /// The time from which on it is void, in RFC 3339.
    pub expires: String,
}

/// A share link, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The id, which is no secret.
    pub id: String,
    /// The name.
    pub name: String,
    /// The prefix that it gives access to.
    pub prefix: String,
    /// The time at which it was made, in RFC 3339.
    pub created: String,
    /// The time from which on it is void.
    pub expires: String,
    /// The id of the token with which it was made, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<String>,
}

/// A share link that was made, with its secret, which is shown only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedShare {
    /// The link's properties.
    #[serde(flatten)]
    pub properties: Share,
    /// The path that precedes the usual path in URLs, such as `/s/…`.
    pub link: String,
}

/// A page of the share links that the caller made or administers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// The links, by id.
    pub shares: Vec<Share>,
    /// The start of the next page; `null` on the last.
    pub cursor: Option<String>,
}
