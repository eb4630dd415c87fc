//! Quality values (RFC 9110, section 12.4.2).

use http::{HeaderMap, HeaderName};

/// The entries of a header in lower case, each with its quality in thousandths.
#[derive(Debug, Default)]
pub(crate) struct QualityValues(Vec<(String, u16)>);

/// The maximum number of entries; the rest is ignored.
const MAX_ENTRIES: usize = 32;

impl QualityValues {
    /// Parses all lines of a header.
    pub(crate) fn from_headers(headers: &HeaderMap, name: HeaderName) -> Self {
        let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        Self(lines.flat_map(|line| line.split(',')).take(MAX_ENTRIES).filter_map(parse_entry).collect())
    }

    /// True if the header is absent or empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of all entries.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The quality of the entry with this name.
    pub(crate) fn quality(&self, name: &str) -> Option<u16> {
        self.0.iter().find(|(listed, _)| listed == name).map(|(_, quality)| *quality)
    }

    /// The quality of a media type, from the most specific matching range.
    pub(crate) fn media_quality(&self, media_type: &str) -> u16 {
        let is_group = |listed: &str| {
            let rest = listed.strip_suffix("/*").and_then(|group| media_type.strip_prefix(group));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let of_group = || self.0.iter().find(|(listed, _)| is_group(listed)).map(|(_, quality)| *quality);
        self.quality(media_type).or_else(of_group).or_else(|| self.quality("*/*")).unwrap_or(0)
    }
}

fn parse_entry(text: &str) -> Option<(String, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?.to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    Some((name, quality.map_or(1000, parse_quality)))
}

/// Parses a quality such as `0.8`; an invalid one is 0.
fn parse_quality(text: &str) -> u16 {
    let quality: f32 = text.parse().unwrap_or(0.0);
    // The cast truncates a number in 0..=1000, and maps NaN to 0.
    (quality.clamp(0.0, 1.0) * 1000.0) as u16
}
