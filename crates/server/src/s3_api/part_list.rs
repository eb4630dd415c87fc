//! Lists of parts: in completions, and listings of the parts of uploads.

use s3s::{
    S3ErrorCode,
    dto::{
        CompleteMultipartUploadInput, CompletedPart, Initiator, ListPartsInput, ListPartsOutput, Part as ListedPart,
        StorageClass,
    },
    s3_error,
};
use zarrd_s3::{checksum_text, tagged_version};
use zarrd_store::{Checksum, ChecksumAlgorithm, MAX_PARTS, Part, UploadStore, Version};

use super::{
    context::Context,
    error::Failure,
    listing::limit,
    multipart::{self, CallersUpload, Checksums},
    objects::{checksum_type_of, set_checksum, size},
    owner::owner,
};

/// A part in a completion.
pub(super) struct Requested<'r> {
    pub(super) number: u32,
    pub(super) version: Version,
    part: &'r CompletedPart,
}

/// The parts of a completion.
pub(super) fn requested(input: &CompleteMultipartUploadInput) -> Result<Vec<Requested<'_>>, Failure> {
    let parts = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_deref()).unwrap_or_default();
    if parts.is_empty() || parts.len() > MAX_PARTS as usize {
        return Err(s3_error!(MalformedXML, "an upload is completed with 1 to {MAX_PARTS} parts").into());
    }
    let requested = parts.iter().map(|part| {
        let number = part.part_number.and_then(|number| u32::try_from(number).ok());
        let number = number.ok_or_else(|| s3_error!(MalformedXML, "a part has no number"))?;
        let version = part.e_tag.as_ref().and_then(tagged_version);
        let version = version.ok_or_else(|| s3_error!(InvalidPart, "part {number} has another ETag"))?;
        Ok(Requested { number, version, part })
    });
    let requested: Vec<Requested<'_>> = requested.collect::<Result<_, Failure>>()?;
    match requested.is_sorted_by(|one, other| one.number < other.number) {
        true => Ok(requested),
        false => Err(S3ErrorCode::InvalidPartOrder.into()),
    }
}

/// Checks the sizes and the checksums of the parts of a completion. Returns the checksum of the object.
pub(super) async fn check(
    context: &Context,
    upload: &CallersUpload,
    input: &CompleteMultipartUploadInput,
    requested: &[Requested<'_>],
) -> Result<Option<Checksum>, Failure> {
    let all = multipart::all_parts(context, upload).await?;
    let invalid = |number: u32| s3_error!(InvalidPart, "part {number} is missing, or has another ETag or checksum");
    let mut parts: Vec<&Part> = Vec::with_capacity(requested.len());
    for Requested { number, version, part } in requested {
        let found = all.get(number).filter(|found| found.version == *version).ok_or_else(|| invalid(*number))?;
        let announced = announced(|algorithm| match algorithm {
            ChecksumAlgorithm::Crc32 => part.checksum_crc32.as_deref(),
            ChecksumAlgorithm::Crc32c => part.checksum_crc32c.as_deref(),
            ChecksumAlgorithm::Crc64Nvme => part.checksum_crc64nvme.as_deref(),
            ChecksumAlgorithm::Sha1 => part.checksum_sha1.as_deref(),
            ChecksumAlgorithm::Sha256 => part.checksum_sha256.as_deref(),
        });
        let differs = |(algorithm, text): (ChecksumAlgorithm, &str)| {
            found.checksum.is_some_and(|found| found.algorithm() == algorithm && checksum_text(&found) != text)
        };
        if announced.is_some_and(differs) {
            return Err(invalid(*number).into());
        }
        parts.push(found);
    }
    let too_small = parts.split_last().and_then(|(_, others)| others.iter().find(|part| multipart::is_too_small(part)));
    if let Some(part) = too_small {
        return Err(s3_error!(EntityTooSmall, "part {} is smaller than 5 MiB and not the last one", part.number).into());
    }
    let total = parts.iter().fold(0_u64, |total, part| total.saturating_add(part.size));
    if input.mpu_object_size.is_some_and(|expected| u64::try_from(expected) != Ok(total)) {
        return Err(s3_error!(InvalidRequest, "the parts have {total} bytes, unlike x-amz-mp-object-size").into());
    }
    let joined = upload.checksums.and_then(|checksums| checksums.joined(&parts));
    check_object(input, joined)?;
    Ok(joined)
}

/// Fails if a completion announces another checksum of the object.
fn check_object(input: &CompleteMultipartUploadInput, joined: Option<Checksum>) -> Result<(), Failure> {
    let announced = announced(|algorithm| match algorithm {
        ChecksumAlgorithm::Crc32 => input.checksum_crc32.as_deref(),
        ChecksumAlgorithm::Crc32c => input.checksum_crc32c.as_deref(),
        ChecksumAlgorithm::Crc64Nvme => input.checksum_crc64nvme.as_deref(),
        ChecksumAlgorithm::Sha1 => input.checksum_sha1.as_deref(),
        ChecksumAlgorithm::Sha256 => input.checksum_sha256.as_deref(),
    });
    let Some((algorithm, text)) = announced else { return Ok(()) };
    let Some(joined) = joined.filter(|joined| joined.algorithm() == algorithm) else {
        return Err(s3_error!(InvalidRequest, "the upload has no checksum {algorithm}").into());
    };
    let found = checksum_text(&joined);
    // The number of parts may be left out.
    match found == text || found.split_once('-').is_some_and(|(value, _)| value == text) {
        true => Ok(()),
        false => Err(s3_error!(BadDigest, "the object does not match its checksum {algorithm}").into()),
    }
}

/// The checksum among the members for each algorithm.
fn announced<'m>(member: impl Fn(ChecksumAlgorithm) -> Option<&'m str>) -> Option<(ChecksumAlgorithm, &'m str)> {
    ChecksumAlgorithm::ALL.into_iter().find_map(|algorithm| Some((algorithm, member(algorithm)?)))
}

/// `ListParts`.
pub(super) async fn parts(context: &Context, input: ListPartsInput) -> Result<ListPartsOutput, Failure> {
    let found = multipart::find(context, &input.bucket, &input.key, &input.upload_id).await?.under_way()?;
    let max = limit("max-parts", input.max_parts)?;
    let after = u32::try_from(input.part_number_marker.unwrap_or_default());
    let after = after.map_err(|_| s3_error!(InvalidArgument, "part-number-marker is negative"))?;
    let page = context.app().commits()?.upload_parts(&found.key, found.id, after, max.max(1)).await?;
    let (shown, more) = if max == 0 { (Vec::new(), false) } else { (page.parts, page.more) };
    let next = shown.last().and_then(|part| i32::try_from(part.number).ok());
    let part = |part: Part| {
        let mut listed = ListedPart {
            e_tag: Some(zarrd_s3::entity_tag(part.version)),
            last_modified: Some(part.modified.into()),
            part_number: i32::try_from(part.number).ok(),
            size: Some(size(part.size)),
            ..ListedPart::default()
        };
        if let Some(checksum) = &part.checksum {
            set_checksum!(listed, @plain checksum);
        }
        listed
    };
    Ok(ListPartsOutput {
        is_truncated: Some(more),
        next_part_number_marker: next,
        part_number_marker: i32::try_from(after).ok(),
        max_parts: i32::try_from(max).ok(),
        parts: Some(shown.into_iter().map(part).collect()),
        checksum_algorithm: found.checksums.map(Checksums::name),
        checksum_type: found.checksums.map(|checksums| checksum_type_of(checksums.is_composite)),
        initiator: Some(initiator()),
        owner: Some(owner()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        ..ListPartsOutput::default()
    })
}

pub(super) fn initiator() -> Initiator {
    let owner = owner();
    Initiator { display_name: owner.display_name, id: owner.id }
}
