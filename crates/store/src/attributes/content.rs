//! Headers about the content of a value.

use std::fmt;

/// A header about the content of a value, as HTTP has it. The value is stored as sent, whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentField {
    /// The media type.
    Type,
    /// The codings of the bytes. The value is stored with them.
    Encoding,
    /// The natural languages of the intended audience.
    Language,
    /// The name under which to save the value.
    Disposition,
    /// Directives for caches.
    CacheControl,
    /// The time from which the value counts as stale.
    Expires,
}

impl ContentField {
    /// All fields.
    pub const ALL: [Self; 6] =
        [Self::Type, Self::Encoding, Self::Language, Self::Disposition, Self::CacheControl, Self::Expires];

    /// The name of the header, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Type => "content-type",
            Self::Encoding => "content-encoding",
            Self::Language => "content-language",
            Self::Disposition => "content-disposition",
            Self::CacheControl => "cache-control",
            Self::Expires => "expires",
        }
    }
}

impl fmt::Display for ContentField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
