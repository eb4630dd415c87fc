//! Purposes of reads, and how far they rely on listings.

/// The part of planned reads that the response to a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// All of their elements. A read of few chunks begins while it is planned.
    #[default]
    Elements,
    /// Their elements, unless their [fingerprint](crate::ArrayRead::fingerprint) is one that the caller has: it is worth
    /// more to fetch the versions of many chunks then.
    Comparison,
    /// Only what the plan says of them, or some of their bytes.
    Description,
}

/// The source of the versions of many chunks of a distant store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionSource {
    /// From listings, where these save requests. Those of some services are late.
    #[default]
    Listings,
    /// From the chunks themselves.
    Chunks,
}
