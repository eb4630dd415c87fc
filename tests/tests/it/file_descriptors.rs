//! A process with few file descriptors serves requests, rejects those for which it has no descriptor, and its store
//! does not fail.

use std::net::TcpStream;

use http::StatusCode;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::task::JoinSet;
use zarrd_tests::{
    generated::Generated,
    problem::assert_problem,
    server::{Launch, Server, zarrd_with},
};
use zarrd_wire::{health::Readiness, problem::ProblemType};

async fn is_writable(server: &Server) -> bool {
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status(), StatusCode::OK);
    serde_json::from_slice::<Readiness>(&ready.bytes().await.unwrap()).unwrap().writable
}

#[tokio::test(flavor = "multi_thread")]
async fn server_works_with_few_file_descriptors() {
    for (kind, files) in [("sled", 64), ("redb", 64), ("sled", 256)] {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("{kind}:{}", dir.path().display());
        let server = Launch::of(&store).files(files).start();
        let value = |number| Generated::new(number, 20_000).bytes();
        for number in 0..300 {
            let answer = server.put(&format!("/store/v/{number}"), value(number)).await;
            assert_eq!(answer.status(), StatusCode::CREATED, "{number}");
        }

        // Far more connections than descriptors; some of them are silent.
        let silent: Vec<_> = (0..8).filter_map(|_| TcpStream::connect(server.address()).ok()).collect();
        let mut requests = JoinSet::new();
        for number in 0..100_u64 {
            let (url, value) = (server.url(&format!("/store/v/{number}")), value(number));
            requests.spawn(async move {
                let client = reqwest::Client::new();
                let write = number.is_multiple_of(2);
                let request = if write { client.put(url).body(value.clone()) } else { client.get(url) };
                // Connections beyond those that are rejected are closed without a response.
                let Ok(answer) = request.send().await else { return };
                match answer.status() {
                    StatusCode::OK => assert_eq!(answer.bytes().await.unwrap(), value),
                    StatusCode::NO_CONTENT => {}
                    _ => drop(assert_problem(answer, ProblemType::Busy).await),
                }
            });
        }
        while let Some(done) = requests.join_next().await {
            done.unwrap();
        }
        drop(silent);

        // Closed connections may count for a moment.
        let started = std::time::Instant::now();
        while !server.request(http::Method::GET, "/readyz").send().await.is_ok_and(|answer| answer.status() == 200) {
            assert!(started.elapsed().as_secs() < 20, "connections are accepted again");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(is_writable(&server).await);
        for number in 0..300 {
            let answer = server.get(&format!("/store/v/{number}")).await;
            assert_eq!(answer.bytes().await.unwrap(), value(number), "{number}");
        }
        assert!(!server.log().contains("damaged") && !server.log().contains("read-only"), "{}", server.log());
        server.stop();
        assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
    }
}

#[tokio::test]
async fn uploads_fail_without_descriptors_and_recover() {
    for kind in ["sled", "redb"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Launch::of(format_args!("{kind}:{}", dir.path().display())).start();
        let large = Generated::new(1, 200_000).bytes();
        assert_eq!(server.put("/store/large", large.clone()).await.status(), StatusCode::CREATED);

        let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
        let few = |current| Rlimit { current: Some(current), maximum: Some(1024) };
        // No more files than are open already; the connection remains open.
        prlimit(Some(pid), Resource::Nofile, few(4)).unwrap();
        let rejected = server.put("/store/other", large.clone()).await;
        assert_eq!(rejected.headers()["retry-after"], "1");
        assert_problem(rejected, ProblemType::Busy).await;
        assert_problem(server.get("/store/large").await, ProblemType::Busy).await;
        let small = server.put("/store/small", "small").await;
        assert_eq!(small.status(), StatusCode::CREATED, "a small value needs no file");
        assert!(is_writable(&server).await);

        prlimit(Some(pid), Resource::Nofile, few(1024)).unwrap();
        assert_eq!(server.put("/store/other", large.clone()).await.status(), StatusCode::CREATED);
        for key in ["large", "other"] {
            assert_eq!(server.get(&format!("/store/{key}")).await.bytes().await.unwrap(), large, "{key}");
        }
        assert!(!server.log().contains("damaged"), "{}", server.log());
        server.stop();
    }
}
