//! The properties that resources have.

use super::xml::ElementName;

/// A property of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// `getlastmodified`.
    LastModified,
    /// `resourcetype`.
    ResourceType,
    /// `getetag`, of values.
    Etag,
    /// `getcontentlength`, of values.
    ContentLength,
    /// `getcontenttype`, of values.
    ContentType,
}

impl Property {
    /// All properties.
    pub const ALL: [Self; 5] =
        [Self::LastModified, Self::ResourceType, Self::Etag, Self::ContentLength, Self::ContentType];

    /// The name in the namespace `DAV:`.
    pub fn name(self) -> &'static str {
        match self {
            Self::LastModified => "getlastmodified",
            Self::ResourceType => "resourcetype",
            Self::Etag => "getetag",
            Self::ContentLength => "getcontentlength",
            Self::ContentType => "getcontenttype",
        }
    }

    /// True if collections have it too.
    pub fn is_of_collections(self) -> bool {
        matches!(self, Self::LastModified | Self::ResourceType)
    }

    /// The property with this name, if resources have it.
    pub(super) fn named(name: &ElementName) -> Option<Self> {
        let local = name.dav()?;
        Self::ALL.into_iter().find(|property| property.name() == local)
    }
}
