//! The store in memory passes the suite.

use store::{MemoryStore, conformance::Factory};

struct Memory;

impl Factory for Memory {
    type Store = MemoryStore;
    type Fixture = ();

    async fn create(&self) -> (MemoryStore, ()) {
        (MemoryStore::new(), ())
    }
}

store::conformance_tests!(Memory => readable_writeable_listable, transactional);
