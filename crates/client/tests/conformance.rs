//! The conformance tests of stores, with the client and a zarrd server.

// `cfg(test)` lets Clippy accept panics in the helpers of tests.
#[cfg(test)]
mod test_server;

#[cfg(test)]
mod over_http {
    use client::HttpStore;
    use store::conformance::Factory;

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

    store::conformance_tests!(Http => readable_writeable_listable);
}
