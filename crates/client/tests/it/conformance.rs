//! The conformance tests of stores, with the client and a zarrd server.

mod over_http {
    use client::HttpStore;
    use store_testkit::Factory;

    use crate::test_server::TestServer;

    struct Http;

    impl Factory for Http {
        type Store = HttpStore;
        type Fixture = TestServer;

        async fn create(&self) -> (HttpStore, TestServer) {
            let server = TestServer::start().await;
            (server.store.clone(), server)
        }
    }

    store_testkit::conformance_tests!(Http => readable_writeable_listable);
}
