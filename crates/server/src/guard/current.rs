//! Requests for what is current.

use http::{HeaderMap, header::CACHE_CONTROL};

/// True if nothing that is cached may be used without revalidation: `Cache-Control: no-cache` (RFC 9111,
/// section 5.2.1.4).
pub(crate) fn asks_for_current(headers: &HeaderMap) -> bool {
    let mut directives =
        headers.get_all(CACHE_CONTROL).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    directives.any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"no-cache"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn directive_is_found_among_others() {
        let asks = |lines: &[&'static str]| {
            let lines = lines.iter().map(|line| (CACHE_CONTROL, HeaderValue::from_static(line)));
            asks_for_current(&lines.collect())
        };
        assert!(asks(&["no-cache"]) && asks(&["max-age=0, No-Cache"]) && asks(&["max-age=5", " no-cache "]));
        assert!(!asks(&[]) && !asks(&["no-store", "max-age=0"]) && !asks(&["no-cached"]));
    }
}
