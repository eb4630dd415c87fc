//! What every store does, through this client and a server of this project.

// What is marked so may panic like the tests that it helps.
#[cfg(test)]
mod served;

#[cfg(test)]
mod over_http {
    use client::HttpStore;
    use store::conformance::Factory;

    use crate::served::Served;

    struct Http;

    impl Factory for Http {
        type Store = HttpStore;
        type Fixture = Served;

        async fn create(&self) -> (HttpStore, Served) {
            let served = Served::start().await;
            (served.store.clone(), served)
        }
    }

    store::conformance_tests!(Http => readable_writeable_listable);
}
