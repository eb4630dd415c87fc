//! Listing keys.

use std::cmp::Ordering;

use object_store::list::PaginatedListOptions;
use zarrd_store::{DirPage, Entry, Key, KeyPage, ListingKind, MAX_PAGE_ENTRIES, PageRequest, Prefix, StoreError};

use crate::{
    failure::Failure,
    inner::Inner,
    location::Service,
    xml::{Listed, ListedObject},
};

/// The action that fails if a prefix cannot be listed.
const ACTION: &str = "list";

/// The number of names in one answer of a service.
const MAX_ANSWER: usize = 1_000;

/// The number of answers in a row that may have nothing for a page.
const MAX_FRUITLESS: usize = 1_000;

/// A child or a key in a listing.
#[derive(Debug)]
enum Child {
    Value(Entry),
    Prefix(Prefix),
}

/// A name that the service lists, below the prefix of the store.
#[derive(Debug)]
enum Name {
    Object(ListedObject),
    Prefix(String),
}

/// A page, and where the next one begins.
#[derive(Debug)]
struct Page {
    children: Vec<Child>,
    next: Option<Position>,
}

/// A position in a listing, which a cursor has.
#[derive(Clone, Debug, Default)]
struct Position {
    /// The last name.
    last: String,
    /// The service's token, if it cannot begin a listing after a name.
    token: Option<String>,
}

/// A page of the keys below a prefix.
pub(crate) async fn list_prefix(inner: &Inner, prefix: &Prefix, page: &PageRequest) -> Result<KeyPage, StoreError> {
    let Page { children, next } = read_page(inner, ListingKind::Keys, prefix, page).await?;
    let value = |child| match child {
        Child::Value(entry) => Some(entry),
        Child::Prefix(_) => None,
    };
    let cursor = next.map(|next| inner.validators.cursors().sign(ListingKind::Keys, prefix, &next.to_text()));
    Ok(KeyPage::new(children.into_iter().filter_map(value).collect(), cursor))
}

/// A page of the keys and prefixes directly below a prefix.
pub(crate) async fn list_dir(inner: &Inner, prefix: &Prefix, page: &PageRequest) -> Result<DirPage, StoreError> {
    let Page { children, next } = read_page(inner, ListingKind::Dir, prefix, page).await?;
    let (mut keys, mut prefixes) = (Vec::new(), Vec::new());
    for child in children {
        match child {
            Child::Value(entry) => keys.push(entry),
            Child::Prefix(prefix) => prefixes.push(prefix),
        }
    }
    let cursor = next.map(|next| inner.validators.cursors().sign(ListingKind::Dir, prefix, &next.to_text()));
    Ok(DirPage { keys, prefixes, cursor })
}

async fn read_page(inner: &Inner, kind: ListingKind, prefix: &Prefix, page: &PageRequest) -> Result<Page, StoreError> {
    let cursor = page.cursor.as_ref();
    let position = cursor.map(|cursor| inner.validators.cursors().verify(kind, prefix, cursor)).transpose()?;
    let position = position.map(|text| Position::of_text(&text)).unwrap_or_default();
    let failed = |failure| inner.error(ACTION, prefix.as_str(), failure);
    Listing::new(inner, kind, prefix, position, page.limit()).read().await.map_err(failed)
}

impl Position {
    fn to_text(&self) -> String {
        match &self.token {
            // No key or prefix contains a NUL.
            Some(token) => format!("{}\0{token}", self.last),
            None => self.last.clone(),
        }
    }

    fn of_text(text: &str) -> Self {
        match text.split_once('\0') {
            Some((last, token)) => Self { last: last.to_owned(), token: Some(token.to_owned()) },
            None => Self { last: text.to_owned(), token: None },
        }
    }
}

/// The way in which a listing continues in another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continuation {
    /// After any name. One more name than asked for shows whether there is another page.
    Name,
    /// With a token of the service.
    Token,
}

/// A page that is being read.
struct Listing<'i> {
    inner: &'i Inner,
    kind: ListingKind,
    continuation: Continuation,
    /// The prefix as the service knows it.
    prefix: String,
    /// The text after which the page begins.
    after: String,
    /// The last name that the service listed.
    listed: String,
    token: Option<String>,
    limit: usize,
    children: Vec<Child>,
}

impl<'i> Listing<'i> {
    fn new(inner: &'i Inner, kind: ListingKind, prefix: &Prefix, position: Position, limit: usize) -> Self {
        let continuation = match inner.location.service {
            Service::S3 | Service::Google => Continuation::Name,
            Service::Azure => Continuation::Token,
        };
        Self {
            inner,
            kind,
            continuation,
            prefix: format!("{}{prefix}", inner.location.prefix),
            after: position.last,
            listed: String::new(),
            token: position.token,
            limit: limit.min(MAX_PAGE_ENTRIES),
            children: Vec::new(),
        }
    }

    async fn read(mut self) -> Result<Page, Failure> {
        let wanted = match self.continuation {
            Continuation::Name => self.limit.saturating_add(1),
            Continuation::Token => self.limit,
        };
        let mut fruitless = 0;
        while fruitless < MAX_FRUITLESS {
            let before = self.children.len();
            let asked = wanted.saturating_sub(before).min(MAX_ANSWER);
            let listed = self.inner.list_page(&self.prefix, &self.options(asked)).await?;
            let next = listed.next.clone();
            self.take(listed)?;
            if next.is_some() && next == self.token {
                return Err(Failure::Listing("its token does not lead further".to_owned()));
            }
            self.token = next;
            if self.token.is_none() || self.children.len() >= wanted {
                return self.finish();
            }
            fruitless = if self.children.len() > before { 0 } else { fruitless.saturating_add(1) };
        }
        Err(Failure::Listing(format!("{MAX_FRUITLESS} answers in a row name no key")))
    }

    fn options(&self, asked: usize) -> PaginatedListOptions {
        let start = Some(&self.after).filter(|after| !after.is_empty() && self.token.is_none());
        let offset = match self.continuation {
            Continuation::Name => start.map(|after| format!("{}{after}", self.inner.location.prefix)),
            Continuation::Token => None,
        };
        // A service lists the prefix after which the page begins once more.
        let again = usize::from(offset.as_ref().is_some_and(|offset| offset.ends_with('/')));
        PaginatedListOptions {
            offset,
            delimiter: (self.kind == ListingKind::Dir).then_some("/".into()),
            max_keys: Some(asked.saturating_add(again).min(MAX_ANSWER)),
            page_token: self.token.clone(),
            ..PaginatedListOptions::default()
        }
    }

    /// Takes the names of an answer.
    fn take(&mut self, listed: Listed) -> Result<(), Failure> {
        let Listed { objects, prefixes, .. } = listed;
        let mut objects = objects.into_iter().map(Name::Object).peekable();
        let mut prefixes = prefixes.into_iter().map(Name::Prefix).peekable();
        loop {
            let order = match (objects.peek(), prefixes.peek()) {
                (Some(object), Some(prefix)) => object.text().cmp(prefix.text()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Ok(()),
            };
            let next = if order == Ordering::Greater { prefixes.next() } else { objects.next() };
            let Some(name) = next else { return Ok(()) };
            self.check_order(name.text())?;
            self.children.extend(self.child(name)?);
        }
    }

    fn check_order(&mut self, name: &str) -> Result<(), Failure> {
        let is_first = self.listed.is_empty();
        if !is_first && name <= self.listed.as_str() {
            return Err(Failure::Unsorted { before: self.listed.clone(), after: name.to_owned() });
        }
        name.clone_into(&mut self.listed);
        Ok(())
    }

    /// The child that a name is; `None` if it is no key or prefix, or comes before the page.
    fn child(&self, name: Name) -> Result<Option<Child>, Failure> {
        let Some(below) = name.text().strip_prefix(self.inner.location.prefix.as_str()) else { return Ok(None) };
        match below.cmp(&self.after) {
            Ordering::Greater => {}
            Ordering::Equal => return Ok(None),
            Ordering::Less => return Err(Failure::Unsorted { before: self.after.clone(), after: below.to_owned() }),
        }
        Ok(match &name {
            Name::Prefix(_) => Prefix::parse(below).ok().map(Child::Prefix),
            Name::Object(object) => match Key::parse(below) {
                Ok(key) => {
                    let meta = self.inner.validators.listed(&key, object)?;
                    Some(Child::Value(Entry::new(key, meta)))
                }
                Err(_) => None,
            },
        })
    }

    fn finish(mut self) -> Result<Page, Failure> {
        let (more, token) = match self.continuation {
            Continuation::Name => (self.children.len() > self.limit, None),
            Continuation::Token if self.children.len() > self.limit => {
                return Err(Failure::Listing("it has more names than were asked for".to_owned()));
            }
            Continuation::Token => (self.token.is_some(), self.token),
        };
        self.children.truncate(self.limit);
        let next = self.children.last().filter(|_| more).map(|last| Position { last: last.text().to_owned(), token });
        Ok(Page { children: self.children, next })
    }
}

impl Name {
    fn text(&self) -> &str {
        match self {
            Self::Object(object) => &object.name,
            Self::Prefix(prefix) => prefix,
        }
    }
}

impl Child {
    fn text(&self) -> &str {
        match self {
            Self::Value(entry) => entry.key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}
