//! Requests of S3 clients: signatures, headers, framed bodies and names.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{StreamExt, executor::block_on, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use zarrd_s3::{
    Bucket, Domain, Framing, Guard, Signature, SignedRequest, Trailers, Verifier, decode, rewrite_conditions,
    rewrite_copy_conditions,
};

/// The parsers of what S3 clients send. The first byte selects one.
pub fn s3(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    match choice % 3 {
        0 => body(rest),
        1 => head(&String::from_utf8_lossy(rest)),
        _ => names(&String::from_utf8_lossy(rest)),
    }
}

/// A body with a framing, in pieces of a size that the first byte says; the second is its announced length.
fn body(data: &[u8]) {
    let [piece, length, framed @ ..] = data else { return };
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-content-sha256", HeaderValue::from_static("STREAMING-UNSIGNED-PAYLOAD-TRAILER"));
    headers.insert("x-amz-decoded-content-length", HeaderValue::from(u16::from(*length)));
    let framing = Framing::take(&mut headers).expect("a framing that is known").expect("a framing");
    let decoded = |piece: usize| {
        let pieces: Vec<_> =
            framed.chunks(piece).map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece))).collect();
        let stream = decode(stream::iter(pieces), framing, None, Trailers::default()).expect("an unsigned framing");
        let mut stream = std::pin::pin!(stream);
        block_on(async {
            let mut all = Vec::new();
            while let Some(data) = stream.next().await {
                match data {
                    Ok(data) => all.extend_from_slice(&data),
                    Err(_) => return (all, false),
                }
            }
            (all, true)
        })
    };
    let (bytes, is_complete) = decoded(usize::from(*piece).max(1));
    assert!(bytes.len() as u64 <= framing.length, "more than was announced");
    assert!(!is_complete || bytes.len() as u64 == framing.length, "less than was announced");
    // The pieces in which it arrives change nothing.
    let (at_once, is_complete_at_once) = decoded(framed.len().max(1));
    assert_eq!(is_complete, is_complete_at_once);
    assert!(!is_complete || bytes == at_once);
}

/// A head: the method, the path and query, and then a header in each line.
fn head(text: &str) {
    let mut lines = text.lines();
    let (Some(method), Some(uri)) = (lines.next(), lines.next()) else { return };
    let (Ok(method), Ok(uri)) = (method.parse::<Method>(), uri.parse::<Uri>()) else { return };
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { return };
        let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.trim().parse::<HeaderValue>()) else { return };
        headers.append(name, value);
    }
    let request = SignedRequest { method: &method, uri: &uri, headers: &headers };
    if let Ok(Some(signature)) = Signature::of(request) {
        let verified = signature.verify(request, "a secret that is not theirs", std::time::SystemTime::UNIX_EPOCH);
        assert!(verified.is_err(), "nobody can sign with this key");
    }
    let guard = Guard(request);
    let _ = guard.check();
    let _ = guard.copy_source();
    let _ = guard.overrides_response();
    if let Ok(query) = Guard::query_to_route(uri.query().unwrap_or_default()) {
        assert_eq!(Guard::query_to_route(&query).ok().as_deref(), Some(&*query), "it is routed once");
    }
    let _ = Verifier::new(&headers);
    rewrite_conditions(&mut headers);
    rewrite_copy_conditions(&mut headers);
    let _ = Framing::take(&mut headers);
}

fn names(text: &str) {
    if let Ok(bucket) = text.parse::<Bucket>() {
        assert_eq!(bucket.as_str(), text);
        assert!((1..=255).contains(&text.len()) && !text.contains('/'));
    }
    if let Some((domain, host)) = text.split_once(' ')
        && let Ok(domain) = domain.parse::<Domain>()
    {
        assert!(domain.bucket(host).is_none() || domain.covers(host));
    }
}
