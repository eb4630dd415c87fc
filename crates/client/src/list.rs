//! Listing keys.

use async_trait::async_trait;
use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, HeaderValue},
};
use serde::de::DeserializeOwned;
use store::{Cursor, DirPage, Entry, Key, KeyPage, ListableStore, MAX_KEY_LEN, PageRequest, Prefix, StoreError};
use wire::{
    headers,
    listing::{DirListing, KeyListing, ListingError},
    query::{ListKind, ListQuery},
    routes,
};

use crate::{
    HttpStore,
    failure::{Failure, Fault, Repeat},
    transport::{Clock, Transport},
};

/// The longest an entry of a listing gets: a key whose every byte is escaped in JSON, and what is known of its value.
const MAX_ENTRY: usize = 6 * MAX_KEY_LEN + 256;
/// The longest the rest of a listing gets: the prefix, the cursor and the names of the members.
const MAX_FRAME: usize = 4 * MAX_ENTRY;

#[async_trait]
impl ListableStore for HttpStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.listed(ListKind::Keys, prefix, &page, |listing: KeyListing| listing.into_page()).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.listed(ListKind::Dir, prefix, &page, |listing: DirListing| listing.into_page()).await
    }
}

/// A page of either listing, as far as both are checked alike.
trait Listed {
    /// The names on the page, those that are sorted among each other together.
    fn names(&self) -> [Vec<&str>; 2];
    fn cursor(&self) -> Option<&Cursor>;
}

impl HttpStore {
    async fn listed<J, P>(
        &self,
        kind: ListKind,
        prefix: &Prefix,
        page: &PageRequest,
        parse: fn(J) -> Result<P, ListingError>,
    ) -> Result<P, StoreError>
    where
        J: DeserializeOwned,
        P: Listed,
    {
        let clock = self.transport.clock();
        let mut schedule = self.transport.schedule(clock);
        loop {
            let tried = async {
                let listing = try_list::<J>(&self.transport, kind, prefix, page, clock).await?;
                let found = parse(listing).map_err(|error| Fault::protocol(error.to_string()))?;
                check(&found, prefix, page)?;
                Ok(found)
            };
            match tried.await {
                Ok(found) => return Ok(found),
                Err(failure) => schedule.wait(failure, Repeat::Freely).await?,
            }
        }
    }
}

async fn try_list<J: DeserializeOwned>(
    transport: &Transport,
    kind: ListKind,
    prefix: &Prefix,
    page: &PageRequest,
    clock: Clock,
) -> Result<J, Failure<StoreError>> {
    let query = ListQuery { kind, limit: Some(page.limit()), cursor: page.cursor.clone() };
    let target = format!("{}?{}", routes::prefix_path(prefix), query.render());
    let request = transport.request(Method::GET, &target).header::<_, HeaderValue>(ACCEPT, headers::JSON);
    let answer = transport.send(request, clock).await?;
    if answer.status() != StatusCode::OK {
        return Err(answer.into_failure(None).await);
    }
    let limit = page.limit().saturating_mul(MAX_ENTRY).saturating_add(MAX_FRAME);
    Ok(answer.json(limit).await?)
}

/// True if the page is one that the contract allows. Whoever walks a listing relies on it to come to an end.
fn check(found: &impl Listed, prefix: &Prefix, page: &PageRequest) -> Result<(), Fault> {
    let names = found.names();
    if names.iter().map(Vec::len).sum::<usize>() > page.limit() {
        return Err(Fault::protocol("a page has more entries than were asked for"));
    }
    for names in &names {
        if let Some(stranger) = names.iter().find(|name| !name.starts_with(prefix.as_str())) {
            return Err(Fault::protocol(format!("{stranger:?} does not lie below the prefix that was asked for")));
        }
        if !names.is_sorted_by(|one, next| one < next) {
            return Err(Fault::protocol("a listing is not sorted"));
        }
    }
    if found.cursor().is_some() && (found.cursor() == page.cursor.as_ref() || names.iter().all(Vec::is_empty)) {
        return Err(Fault::protocol("a listing does not move on"));
    }
    Ok(())
}

fn keys(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| Key::as_str(&entry.key)).collect()
}

impl Listed for KeyPage {
    fn names(&self) -> [Vec<&str>; 2] {
        [keys(&self.keys), Vec::new()]
    }

    fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}

impl Listed for DirPage {
    fn names(&self) -> [Vec<&str>; 2] {
        [keys(&self.keys), self.prefixes.iter().map(Prefix::as_str).collect()]
    }

    fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}
