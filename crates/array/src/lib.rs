//! Arrays over a store.
