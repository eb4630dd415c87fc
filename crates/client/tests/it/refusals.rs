//! Errors of a zarrd server, as returned by the client.

mod errors {
    use std::{sync::Arc, time::Duration};

    use bytes::Bytes;
    use futures::{StreamExt, stream};
    use zarrd_client::RemoteError;
    use zarrd_server::{AccessPolicy, Limits, Right, Settings};
    use zarrd_store::{
        Key, KeyCount, MemoryLimits, MemoryStore, Payload, Precondition, Prefix, ReadableStore, StoreError,
        UploadError, Version, WriteableStore,
    };

    use crate::test_server::TestServer;

    fn key() -> Key {
        Key::parse("a/b").unwrap()
    }

    /// Streamed content of `mib` MiB.
    fn streamed(mib: usize) -> Payload {
        Payload::from_stream(stream::iter(0..mib).map(|_| Ok(Bytes::from(vec![7; 1 << 20]))))
    }

    #[tokio::test]
    async fn too_large_value_is_an_error() {
        let limits = Limits { value: 2 << 20, ..Limits::default() };
        let server = TestServer::with(MemoryStore::new(), Settings { limits, ..Settings::default() }).await;
        let sized = Payload { size: Some(64 << 20), ..streamed(64) };
        for content in [streamed(64), sized, Payload::from_bytes(vec![7; 3 << 20])] {
            let error = server.store.set(&key(), content, Precondition::none()).await.unwrap_err();
            assert!(matches!(error, StoreError::Upload(UploadError::TooLarge { limit: 0x20_0000 })), "{error:?}");
        }
        assert_eq!(server.store.head(&key()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn precondition_failure_is_returned_before_the_content_is_sent() {
        let server = TestServer::start().await;
        let written = server.store.set(&key(), "x".into(), Precondition::none()).await.unwrap();
        for content in [streamed(64), "y".into()] {
            match server.store.set(&key(), content, Precondition::absent()).await.unwrap_err() {
                StoreError::PreconditionFailed { key: of, current } => {
                    assert_eq!((of, current), (key(), Some(written.version)));
                }
                other => panic!("{other:?}"),
            }
        }
        let error = server.store.erase(&key(), Precondition::at(Version::from_u128(1))).await.unwrap_err();
        assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn early_error_does_not_break_the_next_request() {
        let server = TestServer::start().await;
        server.store.set(&key(), "x".into(), Precondition::none()).await.unwrap();
        // Long enough for the server to respond before it has read all of it.
        let value = Bytes::from(vec![7; 131_072]);
        for _ in 0..500 {
            let error = server.store.set(&key(), value.clone().into(), Precondition::absent()).await.unwrap_err();
            assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error:?}");
        }
    }

    #[tokio::test]
    async fn full_store_is_out_of_space() {
        let limits = MemoryLimits { total_bytes: 1 << 20, ..MemoryLimits::default() };
        let server = TestServer::with(MemoryStore::with_limits(limits), Settings::default()).await;
        for content in [streamed(64), Payload::from_bytes(vec![7; 2 << 20])] {
            let error = server.store.set(&key(), content, Precondition::none()).await.unwrap_err();
            assert!(matches!(error, StoreError::OutOfSpace), "{error:?}");
        }
    }

    #[tokio::test]
    async fn read_only_access_forbids_writes() {
        let server = TestServer::with(
            MemoryStore::new(),
            Settings { access: AccessPolicy::anonymous(Right::Read), ..Settings::default() },
        )
        .await;
        assert_eq!(server.store.head(&key()).await.unwrap(), None);
        for content in [streamed(64), "x".into()] {
            let error = server.store.set(&key(), content, Precondition::none()).await.unwrap_err();
            assert!(matches!(error.backend_source(), Some(RemoteError::Unauthorized { .. })), "{error:?}");
        }
        let error = server.store.erase_prefix(&Prefix::root()).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(RemoteError::Unauthorized { .. })), "{error:?}");
    }

    #[tokio::test]
    async fn stalled_content_times_out() {
        let limits = Limits { upload_timeout: Duration::from_millis(200), ..Limits::default() };
        let server = TestServer::with(MemoryStore::new(), Settings { limits, ..Settings::default() }).await;
        let stops = streamed(3).stream.chain(stream::pending()).boxed();
        let error = server.store.set(&key(), Payload::from_stream(stops), Precondition::none()).await;
        let error = error.unwrap_err();
        assert!(matches!(error, StoreError::Upload(UploadError::TimedOut)), "{error:?}");
    }

    #[tokio::test]
    async fn many_callers_share_the_connections() {
        let server = TestServer::start().await;
        let value = Arc::new(vec![7_u8; 300_000]);
        let sets = stream::iter(0..64).map(|n| {
            let (store, value) = (server.store.clone(), Bytes::copy_from_slice(&value));
            async move {
                let key = Key::parse(&format!("k/{n}")).unwrap();
                store.set(&key, value.into(), Precondition::absent()).await.unwrap();
                store.get(&key, None).await.unwrap().unwrap().bytes().await.unwrap()
            }
        });
        let values: Vec<Bytes> = sets.buffer_unordered(16).collect().await;
        assert!(values.iter().all(|result| **result == **value));
        assert_eq!(server.store.erase_prefix(&Prefix::root()).await.unwrap(), KeyCount::exact(64));
    }
}
