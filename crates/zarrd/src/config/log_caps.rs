//! The most detailed levels at which other crates log.

use tracing_subscriber::filter::{EnvFilter, LevelFilter, Targets};

/// The beginnings of the targets of crates that log what requests contain.
const CAPPED: [&str; 5] = ["h2", "hyper", "reqwest", "rustls", "tower"];
/// The crates that log each request which a client gets wrong, or each piece that the disk cache cannot write, as an error.
/// The program logs those that matter itself.
const SILENCED: [&str; 2] = ["s3s", "foyer"];

/// Returns the most detailed level for each target: `info` for those of crates that log what requests contain, that of
/// the filter for others and for targets that its text names.
///
/// No level is more detailed than the filter's own: if one were, the `log` crate's events of every level, which sled
/// has in each access to a page, would be passed to the filter.
pub(super) fn caps(filter: &EnvFilter, text: &str) -> Targets {
    let most = filter.max_level_hint().unwrap_or(LevelFilter::TRACE);
    let named = text.split(',').filter_map(|directive| directive.split(['=', '[']).next());
    let named = named.filter(|name| SILENCED.iter().chain(&CAPPED).any(|target| name.starts_with(target)));
    Targets::new()
        .with_default(most)
        .with_targets(CAPPED.map(|target| (target, most.min(LevelFilter::INFO))))
        .with_targets(SILENCED.map(|target| (target, LevelFilter::OFF)))
        .with_targets(named.map(|name| (name, most)))
}

#[cfg(test)]
mod tests {
    use tracing::{Level, Subscriber};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn crates_are_capped_unless_they_are_named() {
        for (filter, target, is_logged) in [
            ("debug", "zarrd_server::dispatch", true),
            ("debug", "h2::server", false),
            ("debug", "hyper_util::client", false),
            ("zarrd_server=debug,info", "rustls::conn", false),
            ("tower_http", "tower_http::trace", true),
            ("tower_http", "tower", false),
            ("info,h2=debug", "h2::server", true),
            ("info,h2=debug", "hyper::proto", false),
            ("h2::codec=trace,debug", "h2::codec::framed_read", true),
            ("h2::codec=trace,debug", "h2::server", false),
            ("hyper[connection{id=1}]=trace", "hyper::proto", true),
        ] {
            let caps = caps(&filter.parse().unwrap(), filter);
            assert_eq!(caps.would_enable(target, &Level::DEBUG), is_logged, "{filter}: {target}");
            assert!(caps.would_enable(target, &Level::INFO), "{filter}: {target}");
        }
    }

    #[test]
    fn errors_of_s3s_are_logged_only_if_it_is_named() {
        for (filter, is_logged) in [("debug", false), ("info", false), ("info,s3s=error", true)] {
            let caps = caps(&filter.parse().unwrap(), filter);
            assert_eq!(caps.would_enable("s3s::ops", &Level::ERROR), is_logged, "{filter}");
            assert!(!caps.would_enable("foyer_storage::engine::block::flusher", &Level::ERROR), "{filter}");
        }
    }

    #[test]
    fn no_level_is_more_detailed_than_that_of_the_filter() {
        for (filter, most) in [
            ("info", LevelFilter::INFO),
            ("warn", LevelFilter::WARN),
            ("off", LevelFilter::OFF),
            ("info,zarrd_server=debug", LevelFilter::DEBUG),
            ("warn,h2=trace", LevelFilter::TRACE),
        ] {
            let parsed: EnvFilter = filter.parse().unwrap();
            let caps = caps(&parsed, filter);
            let subscriber = tracing_subscriber::registry().with(parsed).with(caps);
            assert_eq!(subscriber.max_level_hint(), Some(most), "{filter}");
        }
    }
}
