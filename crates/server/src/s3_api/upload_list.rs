//! Listings of uploads.

use s3s::{
    dto::{ListMultipartUploadsInput, ListMultipartUploadsOutput, MultipartUpload, StorageClass},
    s3_error,
};
use zarrd_access::Right;
use zarrd_store::{Prefix, Scan, Upload, UploadId, UploadStore, UploadsAfter};

use super::{
    buckets,
    context::Context,
    error::Failure,
    listing::{Encoding, common_prefixes, count, fold_at, limit},
    multipart::Checksums,
    objects::checksum_type_of,
    owner::owner,
    part_list::initiator,
};

/// The minimum number of uploads of a page of the store, since uploads of others are left out.
const PAGE_UPLOADS: usize = 100;
/// The maximum number of pages of the store that a response is made of.
const MAX_PAGES: usize = 100;

/// A page of a listing, whose names are keys of the store.
struct Page<'c> {
    context: &'c Context,
    /// The prefix and the treatment of names.
    scan: Scan,
    max: usize,
    uploads: Vec<Upload>,
    prefixes: Vec<Prefix>,
    /// The place up to which uploads were listed.
    at: Place,
}

/// A place in the order of uploads.
#[derive(Clone, Debug)]
enum Place {
    Start,
    /// After all uploads of keys up to a text.
    Key(String),
    Upload(String, UploadId),
    /// After all uploads of keys below a prefix.
    Below(Prefix),
}

/// `ListMultipartUploads`: the uploads under way that the caller started.
pub(super) async fn uploads(
    context: &Context,
    input: ListMultipartUploadsInput,
) -> Result<ListMultipartUploadsOutput, Failure> {
    let bucket = buckets::listable(context, &input.bucket).await?;
    let fold = fold_at(input.delimiter.as_deref())?;
    let encoding = Encoding::requested(input.encoding_type.as_ref())?;
    let max = limit("max-uploads", input.max_uploads)?;
    let base = context.names().prefix(&bucket);
    let scan = Scan::new(format!("{base}{}", input.prefix.as_deref().unwrap_or_default()), "", fold, max);
    let marker = input.key_marker.as_deref().filter(|marker| !marker.is_empty());
    let id = input.upload_id_marker.as_deref().and_then(|id| id.parse().ok());
    let at = Place::after(marker.map(|marker| format!("{base}{marker}")), id, &scan);
    let mut page = Page { context, scan, max, uploads: Vec::new(), prefixes: Vec::new(), at };
    let more = max > 0 && page.fill().await?;
    let relative = |key: &str| key.strip_prefix(base.as_str()).unwrap_or(key).to_owned();
    let name = |key: &str| encoding.apply(relative(key));
    let prefixes = page.prefixes.iter().map(|prefix| relative(prefix.as_str())).collect();
    let (next_key, next_id) = match page.at {
        Place::Key(key) => (Some(name(&key)), None),
        Place::Below(prefix) => (Some(name(prefix.as_str())), None),
        Place::Upload(key, id) => (Some(name(&key)), Some(id.to_string())),
        Place::Start => (None, None),
    };
    Ok(ListMultipartUploadsOutput {
        uploads: Some(page.uploads.iter().map(|upload| listed(upload, name(upload.key.as_str()))).collect()),
        common_prefixes: Some(common_prefixes(prefixes, encoding)),
        is_truncated: Some(more),
        next_key_marker: next_key.filter(|_| more),
        next_upload_id_marker: next_id.filter(|_| more),
        max_uploads: Some(count(max)),
        bucket: Some(input.bucket),
        prefix: input.prefix.map(|prefix| encoding.apply(prefix)),
        delimiter: input.delimiter.map(|delimiter| encoding.apply(delimiter)),
        key_marker: input.key_marker.map(|marker| encoding.apply(marker)),
        upload_id_marker: input.upload_id_marker,
        encoding_type: input.encoding_type,
        ..ListMultipartUploadsOutput::default()
    })
}

impl Place {
    /// The place after a marker. A key in a folded prefix is after all of it.
    fn after(marker: Option<String>, id: Option<UploadId>, scan: &Scan) -> Self {
        match (marker, id) {
            (None, _) => Self::Start,
            (Some(key), Some(id)) => Self::Upload(key, id),
            (Some(key), None) => scan.folded(&key).map_or(Self::Key(key), Self::Below),
        }
    }

    fn as_after(&self) -> UploadsAfter<'_> {
        match self {
            Self::Start => UploadsAfter::Nothing,
            Self::Key(key) => UploadsAfter::Key(key),
            Self::Upload(key, id) => UploadsAfter::Upload(key, *id),
            Self::Below(prefix) => UploadsAfter::Below(prefix),
        }
    }
}

impl Page<'_> {
    /// Lists uploads until the page is full. Returns true if there may be more.
    async fn fill(&mut self) -> Result<bool, Failure> {
        let store = self.context.app().commits()?;
        for _ in 0..MAX_PAGES {
            let wanted = self.max.saturating_sub(self.len()).max(PAGE_UPLOADS);
            let page = store.uploads(&self.scan.prefix, self.at.as_after(), wanted).await?;
            for upload in page.uploads {
                self.add(upload);
                if self.len() >= self.max {
                    let next = store.uploads(&self.scan.prefix, self.at.as_after(), 1).await?;
                    return Ok(next.more || !next.uploads.is_empty());
                }
            }
            if !page.more {
                return Ok(false);
            }
        }
        // A marker would be the key of another caller.
        Err(s3_error!(InvalidRequest, "there are too many uploads of others: list them below a longer prefix").into())
    }

    /// Adds an upload, unless it is of another caller, or in the last prefix.
    fn add(&mut self, upload: Upload) {
        if self.contains(&upload) {
            return;
        }
        let is_own = self.is_own(&upload);
        match self.scan.folded(upload.key.as_str()).filter(|_| is_own) {
            Some(prefix) => {
                self.at = Place::Below(prefix.clone());
                self.prefixes.push(prefix);
            }
            None => {
                self.at = Place::Upload(upload.key.to_string(), upload.id);
                self.uploads.extend(is_own.then_some(upload));
            }
        }
    }

    /// True if an upload is in the prefix up to which uploads were listed.
    fn contains(&self, upload: &Upload) -> bool {
        matches!(&self.at, Place::Below(prefix) if prefix.contains(&upload.key))
    }

    fn is_own(&self, upload: &Upload) -> bool {
        let principal = self.context.session().principal();
        *upload.owner == *principal.id && principal.may_key(Right::Write, &upload.key)
    }

    fn len(&self) -> usize {
        self.uploads.len().saturating_add(self.prefixes.len())
    }
}

fn listed(upload: &Upload, name: String) -> MultipartUpload {
    let checksums = Checksums::noted(&upload.note);
    MultipartUpload {
        checksum_algorithm: checksums.map(Checksums::name),
        checksum_type: checksums.map(|checksums| checksum_type_of(checksums.is_composite)),
        initiated: Some(upload.since.into()),
        initiator: Some(initiator()),
        key: Some(name),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        upload_id: Some(upload.id.to_string()),
    }
}
