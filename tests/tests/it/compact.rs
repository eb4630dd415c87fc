//! Compaction of a store's index.

use http::StatusCode;
use zarrd_tests::{
    generated::Generated,
    server::{Launch, zarrd_with},
};

#[tokio::test]
async fn compaction_preserves_every_value() {
    for kind in ["sled", "redb"] {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("{kind}:{}", dir.path().join("store").display());
        let missing = zarrd_with(["compact", &store]);
        assert_eq!(missing.code, Some(3), "{missing:?}");
        assert_eq!(zarrd_with(["compact", "memory:"]).code, Some(2));
        assert!(!dir.path().join("store").exists());

        let server = Launch::of(&store).start();
        let value = |number| Generated::new(number, if number % 2 == 0 { 100 } else { 10_000 }).bytes();
        for number in 0..20 {
            let answer = server.put(&format!("/store/v/{number}"), value(number)).await;
            assert_eq!(answer.status(), StatusCode::CREATED);
        }
        let busy = zarrd_with(["compact", &store]);
        assert_eq!(busy.code, Some(4), "{busy:?}");
        server.stop();

        let compacted = zarrd_with(["compact", &store]);
        assert_eq!(compacted.code, Some(0), "{compacted:?}");
        assert!(compacted.stdout.contains(r#""command":"compact","ok":true"#), "{compacted:?}");
        let server = Launch::of(&store).start();
        for number in 0..20 {
            let answer = server.get(&format!("/store/v/{number}")).await;
            assert_eq!(answer.bytes().await.unwrap(), value(number));
        }
        server.stop();
        assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
    }
}
