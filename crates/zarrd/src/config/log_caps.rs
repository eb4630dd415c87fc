//! The most detailed levels at which other crates log.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// The beginnings of the targets of crates that log what requests contain.
const CAPPED: [&str; 5] = ["h2", "hyper", "reqwest", "rustls", "tower"];

/// Returns the most detailed level for each target: `info` for those of crates that log what requests contain. A target
/// that the filter names has none.
pub(super) fn caps(filter: &str) -> Targets {
    let named = filter.split(',').filter_map(|directive| directive.split(['=', '[']).next()).map(str::trim);
    let named = named.filter(|name| CAPPED.iter().any(|target| name.starts_with(target)));
    Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_targets(CAPPED.map(|target| (target, LevelFilter::INFO)))
        .with_targets(named.map(|name| (name, LevelFilter::TRACE)))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn crates_are_capped_unless_they_are_named() {
        for (filter, target, is_logged) in [
            ("debug", "server::dispatch", true),
            ("debug", "h2::server", false),
            ("debug", "hyper_util::client", false),
            ("server=debug,info", "rustls::conn", false),
            ("tower_http", "tower_http::trace", true),
            ("tower_http", "tower", false),
            ("info, h2=debug", "h2::server", true),
            ("info,h2=debug", "hyper::proto", false),
            ("h2::codec=trace,debug", "h2::codec::framed_read", true),
            ("h2::codec=trace,debug", "h2::server", false),
            ("hyper[connection{id=1}]=trace", "hyper::proto", true),
        ] {
            assert_eq!(caps(filter).would_enable(target, &Level::DEBUG), is_logged, "{filter}: {target}");
            assert!(caps(filter).would_enable(target, &Level::INFO), "{filter}: {target}");
        }
    }
}
