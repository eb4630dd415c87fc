//! The conformance tests of stores, with the client and a zarrd server.

mod over_http {
    use zarrd_client::HttpStore;
    use zarrd_store_testkit::Factory;

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

    zarrd_store_testkit::conformance_tests!(Http => readable_writeable_listable);
}
