//! Rejected writes of elements.

use http::{Method, header};
use serde_json::json;
use zarrd_wire::problem::{Problem, ProblemType};

use crate::rejected_requests::rejection::{JSON, NPY, RAW, RejectionTest, npy};

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let mut rejections = RejectionTest::start().await;
    let sizes = |problem: &Problem| (problem.members.expected, problem.members.actual);
    for array in ["lab/bytes", "old/bytes", "sketch/bytes"] {
        for (select, expected) in [("", 24), ("?select=1:3,::2", 6), ("?select=0,(5,0,3)", 3)] {
            for length in [0, 1, expected - 1, expected + 1, 100] {
                let found = rejections
                    .write(&format!("{array}{select}"), RAW, vec![7; length], ProblemType::BodyShapeMismatch)
                    .await;
                let both = (Some(expected as u64), Some(length as u64));
                rejections.check(sizes(&found) == both, || format!("{array}{select} {length}: {found:?}"));
            }
        }
        // The length of a body without Content-Length is checked as it arrives.
        for length in [5_usize, 23, 25, 1000] {
            let parts = (0..length).map(|_| Ok::<_, std::io::Error>(vec![7]));
            let body = reqwest::Body::wrap_stream(futures::stream::iter(parts));
            let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, body);
            let found = rejections.send(request, ProblemType::BodyShapeMismatch).await;
            rejections.check(found.members.expected == Some(24), || format!("{length} bytes in pieces: {found:?}"));
        }
        for (select, file) in [
            ("", npy("|u1", "(24,)", &[1; 24])),
            ("", npy("|u1", "(6, 4)", &[1; 24])),
            ("?select=0", npy("|u1", "(6, 1)", &[1; 6])),
        ] {
            rejections.write(&format!("{array}{select}"), NPY, file, ProblemType::BodyShapeMismatch).await;
        }
        for (select, tree) in [
            ("", json!([1, 2, 3])),
            ("", json!([[1, 2, 3, 4, 5, 6]])),
            ("", json!([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5]])),
            ("?select=0", json!([1, 2, 3, 4, 5])),
            ("?select=:2", json!([1, 2, 3, 4, 5, 6])),
        ] {
            let target = format!("{array}{select}");
            rejections.write(&target, JSON, tree.to_string(), ProblemType::BodyShapeMismatch).await;
        }
        for text in ["", "[", "[[1,2,3,4,5,6],", "[[1,]", "nul", "7 x"] {
            let request = rejections.request(Method::PUT, &format!("/array/{array}"), JSON, text);
            rejections.send(request, ProblemType::InvalidBody).await;
        }
        for file in [
            Vec::new(),
            b"NUMPY".to_vec(),
            npy("|u1", "(4, 6)", &[1; 24])[..30].to_vec(),
            npy("oops", "(4, 6)", &[1; 24]),
        ] {
            rejections.write(array, NPY, file, ProblemType::InvalidBody).await;
        }
        // Appends.
        for (target, body) in [("?append=0", vec![7; 7]), ("?append=1", vec![7; 6]), ("?append=-1", vec![7; 1])] {
            let found = rejections.append(&format!("{array}{target}"), RAW, body, ProblemType::BodyShapeMismatch).await;
            rejections.check(sizes(&found).0 > Some(1), || format!("{found:?}"));
        }
        for (target, file) in [
            ("?append=0", npy("|u1", "(2, 5)", &[1; 10])),
            ("?append=1", npy("|u1", "(5, 2)", &[1; 10])),
            ("?append=0", npy("|u1", "(12,)", &[1; 12])),
        ] {
            rejections.append(&format!("{array}{target}"), NPY, file, ProblemType::BodyShapeMismatch).await;
        }
        rejections.append(&format!("{array}?append=0"), JSON, "[[1,2,3]]", ProblemType::BodyShapeMismatch).await;
        rejections
            .append(&format!("{array}?append=0"), JSON, "[[1,2,3,4,5,6],[1,2]]", ProblemType::BodyShapeMismatch)
            .await;
        for (dimension, kind) in [
            ("2", ProblemType::InvalidParameter),
            ("-3", ProblemType::InvalidParameter),
            ("x", ProblemType::UnknownDimension),
            ("99999999999999999999", ProblemType::UnknownDimension),
        ] {
            rejections.append(&format!("{array}?append={dimension}"), RAW, vec![7; 6], kind).await;
        }
        // Selections.
        for (select, kind) in [
            ("4", ProblemType::IndexOutOfBounds),
            ("0,0,0", ProblemType::SelectionRankMismatch),
            ("(1,1)", ProblemType::InvalidSelection),
            ("(1,-3)", ProblemType::InvalidSelection),
            ("x", ProblemType::InvalidSelection),
            ("::0", ProblemType::InvalidSelection),
        ] {
            rejections.write(&format!("{array}?select={select}"), RAW, vec![7; 6], kind).await;
        }
        // Preconditions, media types and codings.
        let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, vec![7; 24]);
        rejections.send(request.header(header::IF_MATCH, "\"other\""), ProblemType::PreconditionFailed).await;
        let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, vec![7; 24]);
        rejections.send(request.header(header::IF_NONE_MATCH, "*"), ProblemType::PreconditionFailed).await;
        rejections.write(array, "text/csv", "1,2", ProblemType::UnsupportedMediaType).await;
        let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, vec![7; 24]);
        rejections
            .send(request.header(header::CONTENT_ENCODING, "gzip"), ProblemType::UnsupportedContentEncoding)
            .await;
    }
    rejections.write("lab", RAW, vec![7; 24], ProblemType::NotAnArray).await;
    rejections.write("lab/nothing", RAW, vec![7; 24], ProblemType::NoSuchNode).await;
    rejections.append("lab/deep?append=0", RAW, vec![7; 24], ProblemType::NotAnArray).await;
    rejections.end("bodies that do not fit");
}

#[tokio::test]
async fn values_out_of_the_data_type_range_are_rejected() {
    let mut rejections = RejectionTest::start().await;
    for array in ["lab/bytes", "old/bytes", "sketch/bytes"] {
        for value in [
            json!(256),
            json!(-1),
            json!(1.5),
            json!("NaN"),
            json!(null),
            json!(true),
            json!("7"),
            json!([1]),
            json!({}),
            json!(1e300),
        ] {
            let mut tree = json!([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]]);
            tree[2][5] = value.clone();
            let request = rejections.request(Method::PUT, &format!("/array/{array}"), JSON, tree.to_string());
            let found = rejections.send(request, ProblemType::InvalidElement).await;
            let element = found.members.element.as_deref() == Some(&[2, 5]);
            rejections.check(element, || format!("{array} {value}: {found:?}"));
            // A scalar for all elements.
            if !value.is_array() {
                let found = rejections.write(array, JSON, value.to_string(), ProblemType::InvalidElement).await;
                let element = found.members.element.as_deref();
                rejections
                    .check(element.is_none_or(<[u64]>::is_empty), || format!("{array} {value} for all: {found:?}"));
                rejections
                    .append(
                        &format!("{array}?append=0"),
                        JSON,
                        format!("[[1,2,3,4,{value},6]]"),
                        ProblemType::InvalidElement,
                    )
                    .await;
            }
        }
    }
    for value in ["\"x\"", "[1,2]", "true", "null", "\"0x12\""] {
        let found =
            rejections.write("lab/floats", JSON, format!("[0,1,2,{value},4]"), ProblemType::InvalidElement).await;
        rejections.check(found.members.element.as_deref() == Some(&[3]), || format!("{value}: {found:?}"));
    }
    for value in ["7", "null", "\"three\"", "false"] {
        let found =
            rejections.write("lab/words", JSON, format!("[\"a\",{value},\"b\"]"), ProblemType::InvalidElement).await;
        rejections.check(found.members.element.as_deref() == Some(&[1]), || format!("{value}: {found:?}"));
    }
    // Numbers of another type, including NaN, and of a non-numeric type.
    let floats: Vec<u8> = [1.0_f32, 2.0, f32::NAN].into_iter().cycle().take(24).flat_map(f32::to_le_bytes).collect();
    for (target, file) in [
        ("lab/bytes", npy("<f4", "(4, 6)", &floats)),
        ("old/bytes", npy("<f4", "(4, 6)", &floats)),
        ("lab/bytes", npy("<i8", "(4, 6)", &[0xff; 192])),
        ("lab/words", npy("<U5", "(3,)", &[65, 0, 0, 0].repeat(15))),
        ("lab/floats", npy("<U2", "(5,)", &[65, 0, 0, 0].repeat(10))),
    ] {
        let request = rejections.request(Method::PUT, &format!("/array/{target}"), NPY, file);
        let before = rejections.keys().await;
        let found = Problem::from_json(&request.send().await.unwrap().bytes().await.unwrap()).unwrap();
        let kinds = [ProblemType::InvalidElement, ProblemType::BodyShapeMismatch, ProblemType::InvalidBody];
        assert!(kinds.contains(&found.kind), "{target}: {found:?}");
        assert_eq!(rejections.keys().await, before);
    }
    rejections.end("values that the data type cannot hold");
}
