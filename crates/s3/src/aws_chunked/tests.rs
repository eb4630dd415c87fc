//! Tests of framed bodies.

use futures::executor::block_on;
use proptest::prelude::*;

use super::*;

const CONTENT_SHA256: &str = "x-amz-content-sha256";
const DECODED_LENGTH: &str = "x-amz-decoded-content-length";

/// Decodes a body that arrives in pieces of a length.
fn decoded(
    body: &[u8],
    piece: usize,
    length: u64,
    signer: Option<ChunkSigner>,
) -> Result<(Vec<u8>, Trailers), BodyError> {
    let trailers = Trailers::default();
    let pieces: Vec<_> =
        body.chunks(piece.max(1)).map(|piece| Ok::<_, BodyError>(Bytes::copy_from_slice(piece))).collect();
    let framing = Framing { length, is_signed: signer.is_some() };
    let decoded = decode(stream::iter(pieces), framing, signer, trailers.clone()).unwrap();
    let parts: Vec<_> = block_on(decoded.collect());
    let parts: Result<Vec<Bytes>, _> = parts.into_iter().collect();
    let parts = parts.map_err(|error| *error.downcast::<BodyError>().unwrap())?;
    Ok((parts.concat(), trailers))
}

/// The example of Amazon's documentation: 65 KiB in chunks of 64 KiB.
fn example() -> (Vec<u8>, ChunkSigner) {
    let key = ["us-east-1", "s3", "aws4_request"]
        .iter()
        .fold(mac(b"AWS4wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", b"20130524"), |key, part| {
            mac(&key, part.as_bytes())
        });
    let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let scope = "20130524/us-east-1/s3/aws4_request";
    let mut body = Vec::new();
    for (size, signature) in [
        (65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
        (1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
        (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
    ] {
        body.extend_from_slice(format!("{size:x};chunk-signature={signature}\r\n").as_bytes());
        body.extend(vec![b'a'; size]);
        body.extend_from_slice(b"\r\n");
    }
    (body, ChunkSigner::new(key, "20130524T000000Z".into(), scope.into(), seed.into()))
}

#[test]
fn signed_example_is_decoded_in_pieces_of_any_length() {
    let (body, signer) = example();
    for piece in [1, 7, 1000, usize::MAX >> 1] {
        let (data, _) = decoded(&body, piece, 66560, Some(signer.clone())).unwrap();
        assert!(data == vec![b'a'; 66560]);
    }
}

#[test]
fn changed_signed_bodies_are_refused() {
    let (body, signer) = example();
    let with = |at: usize, byte: u8| {
        let mut changed = body.clone();
        changed[at] = byte;
        decoded(&changed, 4096, 66560, Some(signer.clone())).map(drop)
    };
    assert_eq!(with(200, b'b'), Err(BodyError::Signature), "data");
    assert_eq!(with(40, b'z'), Err(BodyError::Signature), "a signature");
    assert_eq!(with(body.len() - 10, b'z'), Err(BodyError::Signature), "the last signature");
    let cut = |len: usize| decoded(&body[..len], 4096, 66560, Some(signer.clone())).map(drop);
    for len in [0, 50, 66_000, body.len() - 70, body.len() - 3] {
        assert_eq!(cut(len).unwrap_err(), BodyError::Incomplete, "{len}");
    }
    let unsigned = b"5\r\nhello\r\n0\r\n\r\n";
    assert_eq!(decoded(unsigned, 99, 5, Some(signer)).unwrap_err(), BodyError::Framing);
}

#[test]
fn trailers_are_there_at_the_end() {
    for body in [
        "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n",
        "2\r\nhe\r\n3\r\nllo\r\n0\r\nX-Amz-Checksum-CRC32: NhCmhg== \n\r\n",
        "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n",
    ] {
        let (data, trailers) = decoded(body.as_bytes(), 3, 5, None).unwrap();
        assert_eq!(
            (data.as_slice(), trailers.get("x-amz-checksum-crc32").unwrap().as_bytes()),
            (&b"hello"[..], &b"NhCmhg=="[..])
        );
    }
}

#[test]
fn malformed_framing_is_refused() {
    let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(MAX_LINE));
    let many = format!("0\r\n{}\r\n", "a:b\r\n".repeat(MAX_TRAILER_COUNT + 1));
    for (body, length, error) in [
        ("hello", 5, BodyError::Incomplete),
        ("5\r\nhello\r\n", 5, BodyError::Incomplete),
        ("4\r\nhell\r\n0\r\n\r\n", 5, BodyError::Incomplete),
        ("6\r\nhello!\r\n0\r\n\r\n", 5, BodyError::TooLong),
        ("ffffffffffffffff\r\n", 5, BodyError::Framing),
        ("fffffffffffffff\r\n", 5, BodyError::TooLong),
        ("+5\r\nhello\r\n0\r\n\r\n", 5, BodyError::Framing),
        ("\r\nhello\r\n0\r\n\r\n", 5, BodyError::Framing),
        ("5\nhello\r\n0\r\n\r\n", 5, BodyError::Framing),
        ("5\r\nhelloX\r\n0\r\n\r\n", 5, BodyError::Framing),
        ("5\r\nhello\r\n0\r\n\r\nmore", 5, BodyError::Framing),
        ("5\r\nhello\r\n0\r\nno colon\r\n\r\n", 5, BodyError::Trailer),
        (&long, 5, BodyError::Framing),
        (&many, 0, BodyError::Trailer),
    ] {
        for piece in [1, 4096] {
            assert_eq!(decoded(body.as_bytes(), piece, length, None).unwrap_err(), error, "{body}");
        }
    }
}

#[test]
fn framing_is_taken_from_the_headers() {
    let take = |lines: &[(&'static str, &str)]| {
        let mut headers: HeaderMap =
            lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
        let framing = Framing::take(&mut headers).map_err(|error| error.code().as_str().to_owned());
        (framing, headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap().to_owned()))
    };
    let length = (DECODED_LENGTH, "5");
    let framing = |is_signed| Ok(Some(Framing { length: 5, is_signed }));
    assert_eq!(take(&[]), (Ok(None), None));
    assert_eq!(take(&[("content-encoding", "gzip")]), (Ok(None), Some("gzip".into())));
    assert_eq!(take(&[length, ("content-encoding", "aws-chunked, gzip")]), (framing(false), Some("gzip".into())));
    assert_eq!(take(&[length, (CONTENT_SHA256, "STREAMING-UNSIGNED-PAYLOAD-TRAILER")]), (framing(false), None));
    assert_eq!(take(&[length, (CONTENT_SHA256, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")]), (framing(true), None));
    assert_eq!(take(&[("content-encoding", "aws-chunked")]).0, Err("MissingContentLength".into()));
    assert_eq!(
        take(&[length, (CONTENT_SHA256, "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")]).0,
        Err("NotImplemented".into())
    );
}

proptest! {
    #[test]
    fn framed_bodies_are_decoded(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6), piece in 1_usize..50) {
        let mut body = Vec::new();
        for chunk in &chunks {
            body.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n\r\n");
        let data = chunks.concat();
        prop_assert_eq!(decoded(&body, piece, data.len() as u64, None).unwrap().0, data);
    }

    #[test]
    fn no_body_makes_the_decoder_panic(body in r"(([0-9a-f]{0,3}(;[a-z=]{0,9})?\r?\n)|[a-z:]{0,9}|\r\n){0,9}", length in 0_u64..20, piece in 1_usize..9) {
        if let Ok((data, _)) = decoded(body.as_bytes(), piece, length, None) {
            prop_assert_eq!(data.len() as u64, length);
        }
    }
}
