//! Listings of keys.

use async_trait::async_trait;
use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, HeaderValue},
};
use serde::de::DeserializeOwned;
use zarrd_store::{
    Cursor, DirPage, Entry, Key, KeyPage, ListableStore, MAX_KEY_LEN, MAX_LISTED_VALUE_BYTES, PageRequest, Prefix,
    StoreError, ValuePage,
};
use zarrd_wire::{
    headers,
    listing::{DirListing, KeyListing, ListingError},
    query::{Contents, ListKind, ListQuery},
    routes,
    value_listing::ValueListing,
};

use crate::{
    HttpStore,
    deadline::Deadline,
    error::RequestError,
    problem,
    retry::{FailedAttempt, Idempotency},
};

/// Maximum size of one entry of a listing, in bytes: a key whose every byte is escaped in JSON, and the metadata of its
/// value.
const MAX_ENTRY_BYTES: usize = 6 * MAX_KEY_LEN + 256;
/// Maximum size of a value in a listing, in bytes: its base64, and attributes whose every byte is escaped in JSON.
const MAX_CONTENT_BYTES: usize = 2 * MAX_LISTED_VALUE_BYTES as usize + (16 << 10);
/// Maximum size of the rest of a listing, in bytes: the prefix, the cursor and the member names.
const MAX_ENVELOPE_BYTES: usize = 4 * MAX_ENTRY_BYTES;

#[async_trait]
impl ListableStore for HttpStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let forms = (ListKind::Keys, Contents::None);
        self.list_page(forms, prefix, &page, |listing: KeyListing| listing.into_page()).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let forms = (ListKind::Dir, Contents::None);
        self.list_page(forms, prefix, &page, |listing: DirListing| listing.into_page()).await
    }
}

/// A page of either kind of listing.
trait ListingPage {
    /// The names on the page; each group is sorted by itself.
    fn names(&self) -> [Vec<&str>; 2];
    fn cursor(&self) -> Option<&Cursor>;
}

impl HttpStore {
    /// A page of the keys below a prefix with small values, if the store is a snapshot.
    pub(crate) async fn list_values(&self, prefix: &Prefix, page: PageRequest) -> Result<ValuePage, StoreError> {
        let forms = (ListKind::Keys, Contents::Small);
        self.list_page(forms, prefix, &page.with_values(), |listing: ValueListing| listing.into_page()).await
    }

    async fn list_page<J, P>(
        &self,
        forms: (ListKind, Contents),
        prefix: &Prefix,
        page: &PageRequest,
        parse: fn(J) -> Result<P, ListingError>,
    ) -> Result<P, StoreError>
    where
        J: DeserializeOwned + Send,
        P: ListingPage + Send,
    {
        let transport = &self.transport;
        let attempt = |deadline| async move {
            let listing = try_list::<J>(self, forms, prefix, page, deadline).await?;
            let listing = parse(listing).map_err(|error| RequestError::protocol(error.to_string()))?;
            check_page(&listing, prefix, page)?;
            Ok(listing)
        };
        transport.retry(Idempotency::Idempotent, attempt).await
    }
}

async fn try_list<J: DeserializeOwned>(
    store: &HttpStore,
    (kind, contents): (ListKind, Contents),
    prefix: &Prefix,
    page: &PageRequest,
    deadline: Deadline,
) -> Result<J, FailedAttempt<StoreError>> {
    let transport = &store.transport;
    let snapshot = store.snapshot.as_deref().map(str::to_owned);
    let query = ListQuery { kind, limit: Some(page.limit()), cursor: page.cursor.clone(), snapshot, contents };
    let target = format!("{}?{}", routes::prefix_path(prefix), query.render());
    let request = transport.request(Method::GET, &target).header::<_, HeaderValue>(ACCEPT, headers::JSON);
    let response = transport.send(request, deadline).await?;
    if response.status() != StatusCode::OK {
        return Err(problem::read_failure(response, None).await);
    }
    let entry = match contents {
        Contents::None => MAX_ENTRY_BYTES,
        Contents::Small => MAX_ENTRY_BYTES.saturating_add(MAX_CONTENT_BYTES),
    };
    let limit = page.limit().saturating_mul(entry).saturating_add(MAX_ENVELOPE_BYTES);
    Ok(response.json(limit).await?)
}

/// Checks that a page fulfils the contract of listings, on which callers rely to reach the end of a listing.
fn check_page(listing: &impl ListingPage, prefix: &Prefix, page: &PageRequest) -> Result<(), RequestError> {
    let names = listing.names();
    if names.iter().map(Vec::len).sum::<usize>() > page.limit() {
        return Err(RequestError::protocol(format!("a page with more than the {} requested entries", page.limit())));
    }
    for names in &names {
        if let Some(name) = names.iter().find(|name| !name.starts_with(prefix.as_str())) {
            return Err(RequestError::protocol(format!("the listed {name:?} does not have the requested prefix")));
        }
        if !names.is_sorted_by(|one, next| one < next) {
            return Err(RequestError::protocol("a listing that is not sorted"));
        }
    }
    if listing.cursor().is_some() && (listing.cursor() == page.cursor.as_ref() || names.iter().all(Vec::is_empty)) {
        return Err(RequestError::protocol("a cursor that does not advance"));
    }
    Ok(())
}

fn keys(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| Key::as_str(&entry.key)).collect()
}

impl ListingPage for KeyPage {
    fn names(&self) -> [Vec<&str>; 2] {
        [keys(&self.keys), Vec::new()]
    }

    fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}

impl ListingPage for ValuePage {
    fn names(&self) -> [Vec<&str>; 2] {
        [self.keys.iter().map(|listed| Key::as_str(&listed.entry.key)).collect(), Vec::new()]
    }

    fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}

impl ListingPage for DirPage {
    fn names(&self) -> [Vec<&str>; 2] {
        [keys(&self.keys), self.prefixes.iter().map(Prefix::as_str).collect()]
    }

    fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}
