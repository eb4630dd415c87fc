//! Listings of objects.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use s3s::{
    dto::{
        CommonPrefix, EncodingType, ListObjectVersionsInput, ListObjectVersionsOutput, ListObjectsInput,
        ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output, Object, ObjectStorageClass, ObjectVersion,
        ObjectVersionStorageClass, Timestamp,
    },
    s3_error,
};
use zarrd_access::Right;
use zarrd_s3::{BucketNames, NULL_VERSION, encode_listed, entity_tag};
use zarrd_store::{Fold, ListableStore, Prefix, Scan, Scanned, ValueMeta};

use super::{buckets, context::Context, error::Failure, objects::size, owner::owner};

/// The maximum number of entries of a response, and the number if the request has none.
const MAX_ENTRIES: usize = 1000;
const DELIMITER: &str = "/";
const URL: &str = "url";

/// A request for a listing.
struct Query<'q> {
    bucket: &'q str,
    /// What the listed names begin with.
    prefix: &'q str,
    delimiter: Option<&'q str>,
    /// The name after which the listing begins.
    after: &'q str,
    max: Option<i32>,
    encoding: Option<&'q EncodingType>,
}

/// A page of a listing.
struct Page {
    /// The names, with the metadata of values that are not damaged.
    objects: Vec<(String, Option<ValueMeta>)>,
    prefixes: Vec<String>,
    /// The last entry, if more follow.
    next: Option<String>,
    max: usize,
    encoding: Encoding,
}

/// The encoding of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Url,
}

/// `ListObjectsV2`.
pub(super) async fn v2(context: &Context, input: ListObjectsV2Input) -> Result<ListObjectsV2Output, Failure> {
    let token = input.continuation_token.as_deref().map(decode_token).transpose()?;
    let after = token.as_deref().or(input.start_after.as_deref()).unwrap_or_default();
    let query = Query {
        bucket: &input.bucket,
        prefix: input.prefix.as_deref().unwrap_or_default(),
        delimiter: input.delimiter.as_deref(),
        after,
        max: input.max_keys,
        encoding: input.encoding_type.as_ref(),
    };
    let page = query.page(context).await?;
    let encoding = page.encoding;
    let with_owner = input.fetch_owner.unwrap_or_default();
    let object = |listed| Object { owner: with_owner.then(owner), ..object(listed, encoding) };
    Ok(ListObjectsV2Output {
        key_count: Some(count(page.len())),
        max_keys: Some(count(page.max)),
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.as_deref().map(encode_token),
        contents: Some(page.objects.into_iter().map(object).collect()),
        common_prefixes: Some(common_prefixes(page.prefixes, encoding)),
        prefix: Some(encoding.apply(input.prefix.unwrap_or_default())),
        delimiter: input.delimiter.map(|delimiter| encoding.apply(delimiter)),
        start_after: input.start_after.map(|after| encoding.apply(after)),
        continuation_token: input.continuation_token,
        encoding_type: input.encoding_type,
        name: Some(input.bucket),
        ..ListObjectsV2Output::default()
    })
}

/// `ListObjects`.
pub(super) async fn v1(context: &Context, input: ListObjectsInput) -> Result<ListObjectsOutput, Failure> {
    let query = Query {
        bucket: &input.bucket,
        prefix: input.prefix.as_deref().unwrap_or_default(),
        delimiter: input.delimiter.as_deref(),
        after: input.marker.as_deref().unwrap_or_default(),
        max: input.max_keys,
        encoding: input.encoding_type.as_ref(),
    };
    let page = query.page(context).await?;
    let encoding = page.encoding;
    let object = |listed| Object { owner: Some(owner()), ..object(listed, encoding) };
    Ok(ListObjectsOutput {
        max_keys: Some(count(page.max)),
        is_truncated: Some(page.next.is_some()),
        next_marker: page.next.map(|next| encoding.apply(next)),
        contents: Some(page.objects.into_iter().map(object).collect()),
        common_prefixes: Some(common_prefixes(page.prefixes, encoding)),
        prefix: Some(encoding.apply(input.prefix.unwrap_or_default())),
        marker: Some(encoding.apply(input.marker.unwrap_or_default())),
        delimiter: input.delimiter.map(|delimiter| encoding.apply(delimiter)),
        encoding_type: input.encoding_type,
        name: Some(input.bucket),
        ..ListObjectsOutput::default()
    })
}

/// `ListObjectVersions`: the current objects, each as the version `null`.
pub(super) async fn versions(
    context: &Context,
    input: ListObjectVersionsInput,
) -> Result<ListObjectVersionsOutput, Failure> {
    let query = Query {
        bucket: &input.bucket,
        prefix: input.prefix.as_deref().unwrap_or_default(),
        delimiter: input.delimiter.as_deref(),
        after: input.key_marker.as_deref().unwrap_or_default(),
        max: input.max_keys,
        encoding: input.encoding_type.as_ref(),
    };
    let page = query.page(context).await?;
    let encoding = page.encoding;
    let version = |listed| {
        let Object { e_tag, key, last_modified, size, .. } = object(listed, encoding);
        let standard = ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD);
        ObjectVersion {
            e_tag,
            key,
            last_modified,
            size,
            is_latest: Some(true),
            owner: Some(owner()),
            storage_class: Some(standard),
            version_id: Some(NULL_VERSION.to_owned()),
            ..ObjectVersion::default()
        }
    };
    Ok(ListObjectVersionsOutput {
        max_keys: Some(count(page.max)),
        is_truncated: Some(page.next.is_some()),
        next_key_marker: page.next.map(|next| encoding.apply(next)),
        versions: Some(page.objects.into_iter().map(version).collect()),
        common_prefixes: Some(common_prefixes(page.prefixes, encoding)),
        prefix: Some(encoding.apply(input.prefix.unwrap_or_default())),
        key_marker: input.key_marker.map(|marker| encoding.apply(marker)),
        delimiter: input.delimiter.map(|delimiter| encoding.apply(delimiter)),
        encoding_type: input.encoding_type,
        name: Some(input.bucket),
        ..ListObjectVersionsOutput::default()
    })
}

/// The number of entries of a response, by the parameter `name`.
pub(super) fn limit(name: &str, max: Option<i32>) -> Result<usize, Failure> {
    match max.map(usize::try_from) {
        None => Ok(MAX_ENTRIES),
        Some(Ok(max)) => Ok(max.min(MAX_ENTRIES)),
        Some(Err(_)) => Err(s3_error!(InvalidArgument, "{name} is negative").into()),
    }
}

/// The treatment of names with a delimiter.
pub(super) fn fold_at(delimiter: Option<&str>) -> Result<Fold, Failure> {
    match delimiter {
        None | Some("") => Ok(Fold::Nothing),
        Some(DELIMITER) => Ok(Fold::Slash),
        Some(_) => Err(s3_error!(NotImplemented, "the only delimiter is `/`").into()),
    }
}

impl Query<'_> {
    async fn page(&self, context: &Context) -> Result<Page, Failure> {
        let fold = fold_at(self.delimiter)?;
        let encoding = Encoding::requested(self.encoding)?;
        let max = limit("max-keys", self.max)?;
        let bucket = context.bucket(self.bucket)?;
        let base = context.names().prefix(&bucket);
        let mut page = Page { objects: Vec::new(), prefixes: Vec::new(), next: None, max, encoding };
        let mut scan = Scan::new(format!("{base}{}", self.prefix), format!("{base}{}", self.after), fold, max);
        // Without a parent no key begins so.
        let parent = scan.parent();
        let towards = context.children_towards(parent.as_ref().unwrap_or(&base))?;
        match (parent, towards) {
            (Some(parent), None) if max > 0 => page.fill(context, &base, &parent, &mut scan).await?,
            (Some(_), Some(children)) if fold == Fold::Slash => page.fill_with(&base, &children, &scan),
            (Some(parent), Some(_)) => context.require(Right::Read, &parent)?,
            _ => {}
        }
        if page.objects.is_empty() && page.prefixes.is_empty() {
            buckets::require(context, &bucket).await?;
        }
        Ok(page)
    }
}

impl Page {
    /// Reads entries until the page is full.
    async fn fill(
        &mut self,
        context: &Context,
        base: &Prefix,
        parent: &Prefix,
        scan: &mut Scan,
    ) -> Result<(), Failure> {
        context.check_listed(parent)?;
        loop {
            let permit = context.app().listing_permit(parent).await;
            let found = context.app().store().scan(scan).await?;
            drop(permit);
            let last = found.entries.last().map(|last| last.as_str().to_owned());
            for entry in found.entries {
                self.add(base, entry);
            }
            let left = self.max.saturating_sub(self.len());
            match last {
                // Entries that are not shown make room for others.
                Some(last) if found.more && left > 0 => (scan.after, scan.limit) = (last, left),
                _ => {
                    self.next = self.last().filter(|_| found.more).map(str::to_owned);
                    return Ok(());
                }
            }
        }
    }

    /// Lists directories that lead to what the caller may read.
    fn fill_with(&mut self, base: &Prefix, children: &[Prefix], scan: &Scan) {
        let listed = |child: &&Prefix| child.as_str().starts_with(&scan.prefix) && child.as_str() > scan.after.as_str();
        let mut children = children.iter().filter(listed);
        for child in children.by_ref().take(self.max) {
            self.add(base, Scanned::Prefix(child.clone()));
        }
        self.next = children.next().and_then(|_| self.last().map(str::to_owned));
    }

    fn add(&mut self, base: &Prefix, entry: Scanned) {
        let name = entry.as_str();
        if base.is_root() && BucketNames::is_own(name) {
            return;
        }
        let name = name.strip_prefix(base.as_str()).unwrap_or(name).to_owned();
        match entry {
            Scanned::Key(entry) => self.objects.push((name, (!entry.is_damaged).then_some(entry.meta))),
            Scanned::Prefix(_) => self.prefixes.push(name),
        }
    }

    fn len(&self) -> usize {
        self.objects.len().saturating_add(self.prefixes.len())
    }

    /// The last entry of the page.
    fn last(&self) -> Option<&str> {
        let object = self.objects.last().map(|(name, _)| name.as_str());
        object.max(self.prefixes.last().map(String::as_str))
    }
}

impl Encoding {
    pub(super) fn requested(encoding: Option<&EncodingType>) -> Result<Self, Failure> {
        match encoding {
            None => Ok(Self::Plain),
            Some(encoding) if encoding.as_str() == URL => Ok(Self::Url),
            Some(_) => Err(s3_error!(InvalidArgument, "encoding-type is `url`").into()),
        }
    }

    pub(super) fn apply(self, name: String) -> String {
        match self {
            Self::Plain => name,
            Self::Url => encode_listed(&name),
        }
    }
}

/// An object in a listing; of a damaged one only the key.
fn object((name, meta): (String, Option<ValueMeta>), encoding: Encoding) -> Object {
    let meta = meta.as_ref();
    Object {
        e_tag: meta.map(|meta| entity_tag(meta.version)),
        key: Some(encoding.apply(name)),
        last_modified: meta.map(|meta| Timestamp::from(meta.modified)),
        size: meta.map(|meta| size(meta.size)),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Object::default()
    }
}

pub(super) fn common_prefixes(prefixes: Vec<String>, encoding: Encoding) -> Vec<CommonPrefix> {
    prefixes.into_iter().map(|prefix| CommonPrefix { prefix: Some(encoding.apply(prefix)) }).collect()
}

pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The token of the page after a name.
fn encode_token(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}

fn decode_token(token: &str) -> Result<String, Failure> {
    let name = URL_SAFE_NO_PAD.decode(token).ok().and_then(|name| String::from_utf8(name).ok());
    name.ok_or_else(|| s3_error!(InvalidArgument, "the continuation token is none of this server").into())
}
