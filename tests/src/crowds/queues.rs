//! The times that requests waited in the server's queues, from `/metrics`.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::server::Server;

/// The waits in one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueWaits {
    /// The number of waits.
    pub count: u64,
    /// Their mean time.
    pub mean: Duration,
    /// An upper bound of the median, from the classes of the histogram.
    pub median: Duration,
    /// An upper bound of all; the maximum duration if some are beyond all classes.
    pub most: Duration,
}

/// The waits by queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queues(pub BTreeMap<String, QueueWaits>);

impl Queues {
    /// The waits since the server started.
    pub(super) async fn of(server: &Server) -> Self {
        let answer = server.get("/metrics").await.error_for_status().expect("the metrics are served");
        Self::parse(&answer.text().await.expect("a text"))
    }

    /// Parses a text of metrics.
    fn parse(text: &str) -> Self {
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        // The upper bounds with the number of waits up to each.
        let mut classes: BTreeMap<String, Vec<(f64, u64)>> = BTreeMap::new();
        for line in text.lines() {
            let Some((series, value)) = line.split_once(' ') else { continue };
            let Some(queue) = label(series, "queue") else { continue };
            if series.starts_with("zarrd_queue_wait_seconds_sum") {
                sums.insert(queue.to_owned(), value.parse().unwrap_or(0.0));
            } else if let Some(bound) = label(series, "le") {
                let bound = bound.parse().unwrap_or(f64::INFINITY);
                classes.entry(queue.to_owned()).or_default().push((bound, value.parse().unwrap_or(0)));
            }
        }
        let waits = |(queue, classes): (String, Vec<(f64, u64)>)| {
            let count = classes.last().map_or(0, |(_, count)| *count);
            let reached = |part: u64| {
                let bound = classes.iter().find(|(_, count)| *count >= part).map_or(0.0, |(bound, _)| *bound);
                Duration::try_from_secs_f64(bound).unwrap_or(Duration::MAX)
            };
            let mean = Duration::try_from_secs_f64(sums.get(&queue).copied().unwrap_or(0.0) / count.max(1) as f64);
            let waits = match count {
                0 => QueueWaits::default(),
                _ => QueueWaits {
                    count,
                    mean: mean.unwrap_or_default(),
                    median: reached(count.div_ceil(2)),
                    most: reached(count),
                },
            };
            (queue, waits)
        };
        Self(classes.into_iter().map(waits).collect())
    }
}

/// The value of a label of a series.
fn label<'s>(series: &'s str, name: &str) -> Option<&'s str> {
    let (_, rest) = series.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

impl fmt::Display for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| match time {
            Duration::MAX => "more".to_owned(),
            time => format!("{:.1}", time.as_secs_f64() * 1000.0),
        };
        for (name, QueueWaits { count, mean, median, most }) in &self.0 {
            let [mean, median, most] = [*mean, *median, *most].map(millis);
            write!(f, "\n  waited for {name}: {count} times, mean {mean} ms, half up to {median}, all up to {most}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_from_the_histogram() {
        let text = "# TYPE zarrd_queue_wait_seconds histogram\n\
            zarrd_queue_wait_seconds_sum{queue=\"memory\"} 0.3\nzarrd_queue_wait_seconds_count{queue=\"memory\"} 3\n\
            zarrd_queue_wait_seconds_bucket{le=\"0.0001\",queue=\"memory\"} 0\n\
            zarrd_queue_wait_seconds_bucket{le=\"0.1024\",queue=\"memory\"} 2\n\
            zarrd_queue_wait_seconds_bucket{le=\"+Inf\",queue=\"memory\"} 3\n\
            zarrd_queue_wait_seconds_bucket{le=\"+Inf\",queue=\"committer\"} 0\nzarrd_http_connections 3\n";
        let Queues(waits) = Queues::parse(text);
        let memory = QueueWaits {
            count: 3,
            mean: Duration::from_millis(100),
            median: Duration::from_micros(102_400),
            most: Duration::MAX,
        };
        assert_eq!(waits["memory"], memory);
        assert_eq!((waits.len(), waits["committer"]), (2, QueueWaits::default()));
    }
}
