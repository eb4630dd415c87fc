//! The lines of the logs: JSON objects of printable ASCII characters.

use std::{io, net::IpAddr, time::Duration};

use http::Version;
use serde::Serialize;
use serde_json::ser::Formatter;

use super::audited::AuditedCredential;

/// The size to allocate for a line, in bytes.
const USUAL_BYTES: usize = 640;

/// A line of the access log.
#[derive(Debug, Default, Serialize)]
pub(super) struct AccessLine<'r> {
    /// The kind of the line.
    pub(super) log: &'static str,
    /// The arrival of the request.
    pub(super) time: String,
    pub(super) request_id: String,
    pub(super) client: Option<IpAddr>,
    pub(super) principal: Option<&'r str>,
    pub(super) method: Option<&'r str>,
    pub(super) path: Option<&'r str>,
    pub(super) query: Option<&'r str>,
    /// The template of the route.
    pub(super) route: Option<&'static str>,
    /// The status of the response; `None` if the request ended before.
    pub(super) status: Option<u16>,
    pub(super) problem: Option<&'static str>,
    /// Bytes of the request's body.
    pub(super) received: u64,
    /// Bytes of the response's body.
    pub(super) sent: u64,
    pub(super) duration_ms: f64,
    pub(super) user_agent: Option<&'r str>,
    pub(super) version: Option<&'static str>,
    pub(super) tls: Option<bool>,
    /// True if the response did not end, or did not begin.
    pub(super) aborted: bool,
}

/// A line of the audit log.
#[derive(Debug, Serialize)]
pub(super) struct AuditLine<'r> {
    /// The kind of the line.
    pub(super) log: &'static str,
    /// The arrival of the request.
    pub(super) time: String,
    pub(super) request_id: String,
    pub(super) client: Option<IpAddr>,
    pub(super) principal: Option<&'r str>,
    pub(super) outcome: AuditOutcome,
    /// The operation, such as `POST /node/{path}?convert`; `None` if the request named none.
    pub(super) operation: Option<String>,
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    pub(super) query: Option<&'r str>,
    pub(super) status: Option<u16>,
    pub(super) problem: Option<&'static str>,
    /// The new version.
    pub(super) etag: Option<&'r str>,
    /// The token or share link that was made or revoked. Its members are absent in other lines.
    #[serde(flatten)]
    pub(super) credential: Option<&'r AuditedCredential>,
}

/// The outcome of a request in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AuditOutcome {
    /// The change was performed.
    Performed,
    /// The request was denied.
    Denied,
    /// The change was performed or not: the request was aborted or failed.
    Unknown,
}

/// Renders a line with its line feed.
pub(super) fn render(line: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::with_capacity(USUAL_BYTES);
    let rendered = line.serialize(&mut serde_json::Serializer::with_formatter(&mut text, AsciiFormatter));
    if rendered.is_err() {
        // Strings, numbers and addresses are always valid JSON.
        return Vec::new();
    }
    text.push(b'\n');
    text
}

/// A duration in milliseconds, to the microsecond.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    u32::try_from(duration.as_micros()).map_or(duration.as_secs_f64() * 1e3, |micros| f64::from(micros) / 1e3)
}

/// The name of an HTTP version.
pub(super) fn version_name(version: Version) -> Option<&'static str> {
    match version {
        Version::HTTP_10 => Some("HTTP/1.0"),
        Version::HTTP_11 => Some("HTTP/1.1"),
        Version::HTTP_2 => Some("HTTP/2"),
        Version::HTTP_3 => Some("HTTP/3"),
        _ => None,
    }
}

/// Escapes everything but printable ASCII characters, so that no character of a request can control a terminal or end a
/// line, whatever reads the log.
struct AsciiFormatter;

impl Formatter for AsciiFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return writer.write_all(fragment.as_bytes());
        }
        let is_printable = |character: char| matches!(character, ' '..='~');
        for part in fragment.split_inclusive(|character| !is_printable(character)) {
            let end = part.chars().next_back().filter(|character| !is_printable(*character));
            let plain = part.len() - end.map_or(0, char::len_utf8);
            writer.write_all(part.as_bytes().get(..plain).unwrap_or_default())?;
            for unit in end.iter().flat_map(|character| character.encode_utf16(&mut [0; 2]).to_vec()) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(line: &impl Serialize) -> Value {
        let text = render(line);
        assert_eq!(text.iter().filter(|byte| !(b' '..=b'~').contains(byte)).count(), 1, "{text:?}");
        serde_json::from_slice(text.strip_suffix(b"\n").unwrap()).unwrap()
    }

    #[test]
    fn access_line_has_all_members() {
        let line = AccessLine {
            log: "access",
            time: "2026-11-21T06:28:08.123Z".to_owned(),
            request_id: "0-1".to_owned(),
            client: Some("192.0.2.1".parse().unwrap()),
            principal: Some("ann"),
            method: Some("GET"),
            path: Some("/store/a%20b"),
            query: Some("list=keys"),
            route: Some("/store/{key}"),
            status: Some(404),
            problem: Some("no-such-key"),
            received: 1,
            sent: 2,
            duration_ms: milliseconds(Duration::from_micros(1_234)),
            user_agent: Some("curl/8"),
            version: version_name(Version::HTTP_11),
            tls: Some(false),
            aborted: true,
        };
        let expected = json!({
            "log": "access", "time": "2026-11-21T06:28:08.123Z", "request_id": "0-1", "client": "192.0.2.1",
            "principal": "ann", "method": "GET", "path": "/store/a%20b", "query": "list=keys", "route": "/store/{key}",
            "status": 404, "problem": "no-such-key", "received": 1, "sent": 2, "duration_ms": 1.234,
            "user_agent": "curl/8", "version": "HTTP/1.1", "tls": false, "aborted": true,
        });
        assert_eq!(parsed(&line), expected);
        assert_eq!(parsed(&AccessLine::default())["status"], Value::Null);
    }

    #[test]
    fn audit_line_has_all_members() {
        let line = AuditLine {
            log: "audit",
            time: "2026-11-21T06:28:08.123Z".to_owned(),
            request_id: "0-1".to_owned(),
            client: Some("2001:db8::1".parse().unwrap()),
            principal: None,
            outcome: AuditOutcome::Performed,
            operation: Some("PUT /store/{key}".to_owned()),
            method: "PUT",
            path: "/store/a",
            query: None,
            status: Some(201),
            problem: None,
            etag: Some("\"v\""),
            credential: None,
        };
        let expected = json!({
            "log": "audit", "time": "2026-11-21T06:28:08.123Z", "request_id": "0-1", "client": "2001:db8::1",
            "principal": null, "outcome": "performed", "operation": "PUT /store/{key}", "method": "PUT",
            "path": "/store/a", "query": null, "status": 201, "problem": null, "etag": "\"v\"",
        });
        assert_eq!(parsed(&line), expected);
        let credential = AuditedCredential {
            credential: "link:1".to_owned(),
            name: "a\u{2028}".to_owned(),
            allow: vec!["read:lab/".to_owned()],
            expires: None,
        };
        let line = parsed(&AuditLine { credential: Some(&credential), ..line });
        let found = ["credential", "name", "allow", "expires", "status"].map(|name| line[name].clone());
        assert_eq!(found, [json!("link:1"), json!("a\u{2028}"), json!(["read:lab/"]), Value::Null, json!(201)]);
        assert_eq!(line.as_object().unwrap().len(), expected.as_object().unwrap().len() + 4);
    }

    #[test]
    fn no_character_ends_a_line_or_controls_a_terminal() {
        let hostile = "a\r\n{\"log\":\"x\"}\u{0}\u{1b}[2J\u{7f}\u{9b}2J\u{85}\u{2028}\u{202e}\\\"\u{fffd}é𝄞 b";
        let line = AccessLine { user_agent: Some(hostile), ..AccessLine::default() };
        assert_eq!(parsed(&line)["user_agent"], hostile);
    }

    #[test]
    fn durations_are_exact_to_the_microsecond() {
        assert_eq!(milliseconds(Duration::from_micros(7)).to_string(), "0.007");
        assert_eq!(milliseconds(Duration::from_secs(86_400)).to_string(), "86400000");
    }
}
