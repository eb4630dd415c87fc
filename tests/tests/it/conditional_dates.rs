//! Dates as validators: a value overwritten within a second is never answered with 304.

use std::time::Duration;

use http::{
    Method, StatusCode,
    header::{DATE, IF_MODIFIED_SINCE, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE},
};
use zarrd_tests::server::{Launch, Server};

/// A header of the value, with dates in seconds.
async fn header(server: &Server, name: impl http::header::AsHeaderName) -> String {
    let answer = server.get("/store/v").await;
    answer.headers().get(name).unwrap().to_str().unwrap().to_owned()
}

async fn modified(server: &Server) -> String {
    header(server, "zarr-modified").await.split('.').next().unwrap().to_owned()
}

#[tokio::test]
async fn overwrite_within_the_same_second_fails_date_conditions() {
    for kind in ["sled", "redb"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Launch::of(format_args!("{kind}:{}", dir.path().display())).start();
        let dates = loop {
            server.put("/store/v", "old").await.error_for_status().unwrap();
            let (first, answer) = (modified(&server).await, server.get("/store/v").await);
            let dates = [LAST_MODIFIED, DATE].map(|name| answer.headers()[name].clone());
            server.put("/store/v", "new").await.error_for_status().unwrap();
            if modified(&server).await == first {
                break dates;
            }
        };
        for wait in [0, 6] {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            for date in &dates {
                let got = server.request(Method::GET, "/store/v").header(IF_MODIFIED_SINCE, date).send().await.unwrap();
                assert_eq!((got.status(), &got.bytes().await.unwrap()[..]), (StatusCode::OK, &b"new"[..]), "{date:?}");
                let got = server.request(Method::GET, "/store/v").header(RANGE, "bytes=0-1").header(IF_RANGE, date);
                let got = got.send().await.unwrap();
                assert_eq!((got.status(), &got.bytes().await.unwrap()[..]), (StatusCode::OK, &b"new"[..]), "{date:?}");
                let set = server.request(Method::PUT, "/store/v").header(IF_UNMODIFIED_SINCE, date).body("lost");
                assert_eq!(set.send().await.unwrap().status(), StatusCode::PRECONDITION_FAILED, "{date:?}");
            }
        }
        // Its second is long over by now.
        let date = header(&server, LAST_MODIFIED).await;
        let got = server.request(Method::GET, "/store/v").header(IF_MODIFIED_SINCE, &date).send().await.unwrap();
        assert_eq!(got.status(), StatusCode::NOT_MODIFIED);
        let got = server.request(Method::GET, "/store/v").header(RANGE, "bytes=0-1").header(IF_RANGE, &date);
        assert_eq!(got.send().await.unwrap().status(), StatusCode::PARTIAL_CONTENT);
        let set = server.request(Method::PUT, "/store/v").header(IF_UNMODIFIED_SINCE, &date).body("newer");
        assert_eq!(set.send().await.unwrap().status(), StatusCode::NO_CONTENT);
        server.stop();
    }
}
