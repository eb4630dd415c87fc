//! Assertions about problem documents.

use reqwest::Response;
use zarrd_wire::problem::{Problem, ProblemType};

/// Asserts that a response is a problem document of this type, and returns it.
///
/// # Panics
///
/// If the response is anything else.
pub async fn assert_problem(answer: Response, kind: ProblemType) -> Problem {
    let (status, url) = (answer.status(), answer.url().clone());
    let media = answer.headers().get(http::header::CONTENT_TYPE).cloned();
    let body = answer.bytes().await.expect("a complete response");
    let text = String::from_utf8_lossy(&body);
    let Some(problem) = Problem::from_json(&body) else { panic!("{url}: {status} without a problem: {text}") };
    assert_eq!((problem.kind, status), (kind, kind.status()), "{url}: {text}");
    assert_eq!(media.expect("a media type"), "application/problem+json", "{url}");
    problem
}
