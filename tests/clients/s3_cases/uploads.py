"""Uploads in parts."""

import io

from boto3.s3.transfer import TransferConfig
from harness import MIB, case, cases, error_code, same

PART = 5 * MIB


class Upload:
    """An upload under way, with the parts that it has."""

    def __init__(self, b, key="a", **options):
        self.b, self.parts = b, {}
        self.target = {"Key": key, "UploadId": b("create_multipart_upload", Key=key, **options)["UploadId"]}

    def part(self, number, body, **options):
        answer = self.b("upload_part", **self.target, PartNumber=number, Body=body, **options)
        self.parts[number] = answer["ETag"]
        return answer

    def copy(self, number, source, **options):
        answer = self.b("upload_part_copy", **self.target, PartNumber=number, CopySource=source, **options)
        self.parts[number] = answer["CopyPartResult"]["ETag"]

    def list(self):
        return [{"PartNumber": number, "ETag": tag} for number, tag in sorted(self.parts.items())]

    def complete(self, **options):
        return self.b("complete_multipart_upload", **self.target, MultipartUpload={"Parts": self.list()}, **options)

    def refused(self, code, status, parts):
        self.b.refused(code, status, "complete_multipart_upload", **self.target, MultipartUpload={"Parts": parts})


def value_of(size, letter=b"0123456789abcdef"):
    return (letter * (size // len(letter) + 1))[:size]


@case
def upload_without_parts_is_not_completed(b):
    Upload(b).refused("MalformedXML", 400, [])


@case
def one_small_part_is_completed(b):
    upload = Upload(b)
    upload.part(1, b"x")
    for _ in range(2):
        upload.complete()
    same((b.get("a"), b("head_object", Key="a")["ContentLength"]), (b"x", 1))


@cases(PART, PART + 100 * 1024, PART + 600 * 1024, 2 * PART, 2 * PART + 100 * 1024, 2 * PART + 600 * 1024)
def parts_are_joined(b, value):
    data = value_of(value, bytes(range(251)))
    upload = Upload(b)
    for number, start in enumerate(range(0, value, PART), 1):
        upload.part(number, data[start : start + PART])
    upload.complete()
    assert b.get("a") == data
    same(b("list_objects_v2")["Contents"][0]["Size"], value)


@case
def completed_object_has_what_the_upload_said(b):
    fields = {"ContentType": "text/bla", "Metadata": {"foo": "bar"}, "CacheControl": "no-store", "ContentDisposition": "inline"}
    fields |= {"ContentLanguage": "de", "ContentEncoding": "gzip"}
    upload = Upload(b, **fields)
    upload.part(1, b"x")
    answer = upload.complete()
    head = b("head_object", Key="a")
    same({name: head.get(name) for name in fields}, fields)
    same((answer["ETag"], answer["Key"], answer["Bucket"]), (head["ETag"], "a", b.name))


@case
def tag_of_joined_parts_has_their_number(b):
    upload = Upload(b)
    upload.part(1, value_of(PART))
    upload.part(2, b"x")
    assert upload.complete()["ETag"].endswith('-2"')


@case
def ranges_cross_parts(b):
    upload = Upload(b)
    upload.part(1, b"a" * PART)
    upload.part(2, b"b" * 100)
    upload.complete()
    same(b.get("a", Range=f"bytes={PART - 3}-{PART + 2}"), b"aaabbb")
    same(b.get("a", Range="bytes=-2"), b"bb")


@case
def part_is_replaced_by_one_of_its_number(b):
    upload = Upload(b)
    first = upload.part(1, b"1")["ETag"]
    upload.part(1, b"2")
    upload.refused("InvalidPart", 400, [{"PartNumber": 1, "ETag": first}])
    upload.complete()
    same(b.get("a"), b"2")


@case
def numbers_of_parts_have_gaps(b):
    upload = Upload(b)
    upload.part(3, value_of(PART, b"3"))
    upload.part(10_000, b"end")
    upload.complete()
    assert b.get("a") == b"3" * PART + b"end"


@case
def parts_that_are_not_named_are_left_out(b):
    upload = Upload(b)
    upload.part(1, b"1")
    upload.part(2, b"2")
    del upload.parts[1]
    upload.complete()
    same(b.get("a"), b"2")


@case
def parts_are_sent_in_any_order(b):
    upload = Upload(b)
    upload.part(2, b"end")
    upload.part(1, value_of(PART, b"1"))
    upload.complete()
    same((b.get("a")[-4:], b("head_object", Key="a")["ContentLength"]), (b"1end", PART + 3))


@case
def small_parts_are_not_joined(b):
    upload = Upload(b)
    upload.part(1, value_of(PART - 1))
    upload.part(2, b"x")
    upload.refused("EntityTooSmall", 400, upload.list())


@case
def missing_part_is_not_completed(b):
    upload = Upload(b)
    tag = upload.part(1, b"x")["ETag"]
    upload.refused("InvalidPart", 400, [{"PartNumber": 9999, "ETag": tag}])


@case
def part_with_another_tag_is_not_completed(b):
    upload = Upload(b)
    upload.part(1, b"x")
    upload.refused("InvalidPart", 400, [{"PartNumber": 1, "ETag": '"ffffffffffffffffffffffffffffffff"'}])


@case
def parts_out_of_order_are_not_completed(b):
    upload = Upload(b)
    upload.part(1, value_of(PART))
    upload.part(2, b"x")
    upload.refused("InvalidPartOrder", 400, upload.list()[::-1])


@case
def part_is_not_named_twice(b):
    upload = Upload(b)
    upload.part(1, value_of(PART))
    upload.refused(("InvalidPartOrder", "InvalidPart"), 400, upload.list() * 2)


@cases(0, -1, 10_001)
def other_numbers_of_parts_are_refused(b, value):
    upload = Upload(b)
    b.refused("InvalidArgument", 400, "upload_part", **upload.target, PartNumber=value, Body=b"x")


@cases("x", "1.5", "")
def malformed_numbers_of_parts_are_refused(b, value):
    upload = Upload(b)
    status, _, _ = b.raw("PUT", "a", query=f"partNumber={value}&uploadId={upload.target['UploadId']}", body=b"x")
    same(status, 400)


@cases(b"", b"<CompleteMultipartUpload>", b"<CompleteMultipartUpload></CompleteMultipartUpload>", b"<Other/>")
def malformed_lists_of_parts_are_refused(b, value):
    upload = Upload(b)
    upload.part(1, b"x")
    status, _, body = b.raw("POST", "a", query=f"uploadId={upload.target['UploadId']}", body=value)
    same((status, error_code(body) in ("MalformedXML", "MissingRequestBodyError", "InvalidRequest")), (400, True))


@case
def upload_replaces_an_object_when_it_is_completed(b):
    b.fill("a")
    upload = Upload(b)
    upload.part(1, b"new")
    same(b.get("a"), b"a")
    upload.complete()
    same(b.get("a"), b"new")


@case
def upload_is_no_object_before_its_end(b):
    upload = Upload(b)
    upload.part(1, b"x")
    b.refused("NoSuchKey", 404, "get_object", Key="a")
    same(b("list_objects_v2")["KeyCount"], 0)


@case
def aborted_upload_is_gone(b):
    upload = Upload(b)
    upload.part(1, b"x")
    b("abort_multipart_upload", **upload.target)
    assert "Uploads" not in b("list_multipart_uploads")
    b.refused("NoSuchUpload", 404, "list_parts", **upload.target)
    b.refused("NoSuchUpload", 404, "upload_part", **upload.target, PartNumber=1, Body=b"x")
    upload.refused("NoSuchUpload", 404, upload.list())
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@cases("abort_multipart_upload", "list_parts")
def unknown_upload_is_refused(b, value):
    b.refused("NoSuchUpload", 404, value, Key="a", UploadId="56788")


@case
def upload_of_another_object_is_refused(b):
    upload = Upload(b)
    target = upload.target | {"Key": "b"}
    b.refused("NoSuchUpload", 404, "upload_part", **target, PartNumber=1, Body=b"x")
    b.refused("NoSuchUpload", 404, "abort_multipart_upload", **target)


@case
def upload_begins_in_a_bucket_that_exists(b):
    b.refused("NoSuchBucket", 404, "create_multipart_upload", Bucket="case-unmade-2", Key="a")


@case
def upload_of_a_missing_part_copies_nothing(b):
    upload = Upload(b)
    b.refused("NoSuchKey", 404, "upload_part_copy", **upload.target, PartNumber=1, CopySource=f"{b.name}/missing")


@case
def parts_are_listed_in_pages(b):
    upload = Upload(b)
    for number in (1, 2, 5):
        upload.part(number, b"x" * number)
    first = b("list_parts", **upload.target, MaxParts=2)
    same([(part["PartNumber"], part["Size"], part["ETag"]) for part in first["Parts"]], [(1, 1, upload.parts[1]), (2, 2, upload.parts[2])])
    same((first["IsTruncated"], first["NextPartNumberMarker"]), (True, 2))
    rest = b("list_parts", **upload.target, PartNumberMarker=first["NextPartNumberMarker"])
    same(([part["PartNumber"] for part in rest["Parts"]], rest["IsTruncated"]), ([5], False))
    assert first["Owner"]["ID"] and first["Initiator"]["ID"]


@case
def uploads_are_listed_by_key(b):
    uploads = [Upload(b, key) for key in ("b", "a", "a")]
    answer = b("list_multipart_uploads")
    expected = sorted((upload.target["Key"], upload.target["UploadId"]) for upload in uploads)
    same(sorted((entry["Key"], entry["UploadId"]) for entry in answer["Uploads"]), expected)
    same([entry["Key"] for entry in answer["Uploads"]], ["a", "a", "b"])
    assert all(entry["Initiated"] and entry["Owner"]["ID"] for entry in answer["Uploads"])


@case
def uploads_are_listed_below_a_prefix(b):
    for key in ("a/1", "a/2", "b/1"):
        Upload(b, key)
    answer = b("list_multipart_uploads", Prefix="a/")
    same((answer["Prefix"], [entry["Key"] for entry in answer["Uploads"]]), ("a/", ["a/1", "a/2"]))


@case
def uploads_are_listed_in_pages(b):
    expected = sorted((key, Upload(b, key).target["UploadId"]) for key in ("a", "a", "b", "c", "c"))
    found, markers = [], {}
    while True:
        page = b("list_multipart_uploads", MaxUploads=2, **markers)
        assert 0 < len(page["Uploads"]) <= 2
        found += [(entry["Key"], entry["UploadId"]) for entry in page["Uploads"]]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    same(sorted(found), expected)


def upload_entries(answer):
    prefixes = [entry["Prefix"] for entry in answer.get("CommonPrefixes", [])]
    return [entry["Key"] for entry in answer.get("Uploads", [])], prefixes


@case
def names_of_uploads_are_folded(b):
    for key in ("a", "d/1", "d/2", "d/e/3", "f"):
        Upload(b, key)
    answer = b("list_multipart_uploads", Delimiter="/")
    same((answer["Delimiter"], upload_entries(answer)), ("/", (["a", "f"], ["d/"])))
    same(upload_entries(b("list_multipart_uploads", Delimiter="/", Prefix="d/")), (["d/1", "d/2"], ["d/e/"]))
    same(upload_entries(b("list_multipart_uploads", Delimiter="/", Prefix="d")), ([], ["d/"]))


@case
def folded_names_of_uploads_have_pages(b):
    for key in ("a", "d/1", "d/2", "e/1", "f", "f"):
        Upload(b, key)
    found, markers = [], {}
    while True:
        page = b("list_multipart_uploads", Delimiter="/", MaxUploads=1, **markers)
        keys, prefixes = upload_entries(page)
        same(len(keys) + len(prefixes), 1)
        found += keys + prefixes
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}
    same(found, ["a", "d/", "e/", "f", "f"])


@case
def limit_of_zero_lists_no_uploads(b):
    Upload(b)
    same(upload_entries(b("list_multipart_uploads", MaxUploads=0)), ([], []))


@case
def names_of_uploads_are_encoded_if_requested(b):
    Upload(b, "a+b c")
    same(b("list_multipart_uploads", EncodingType="url")["Uploads"][0]["Key"], "a%2Bb%20c")


@case
def missing_bucket_has_no_uploads(b):
    b.refused("NoSuchBucket", 404, "list_multipart_uploads", Bucket="case-missing")


@case
def part_is_copied(b):
    b("put_object", Key="source", Body=b"0123456789")
    upload = Upload(b)
    upload.copy(1, f"{b.name}/source")
    upload.complete()
    same(b.get("a"), b"0123456789")


@case
def part_is_copied_from_a_range(b):
    b("put_object", Key="source", Body=b"0123456789")
    upload = Upload(b)
    upload.copy(1, f"{b.name}/source", CopySourceRange="bytes=0-0")
    upload.complete()
    same(b.get("a"), b"0")


@case
def parts_are_copied_and_sent(b):
    data = value_of(PART + 10, bytes(range(251)))
    b("put_object", Key="source", Body=data)
    upload = Upload(b)
    upload.copy(1, f"{b.name}/source", CopySourceRange=f"bytes=0-{PART - 1}")
    upload.part(2, b"end")
    upload.complete()
    assert b.get("a") == data[:PART] + b"end"


@cases("bytes=0-21", "bytes=10-10")
def range_behind_the_end_of_the_source_is_refused(b, value):
    b("put_object", Key="source", Body=b"01234")
    upload = Upload(b)
    headers = {"x-amz-copy-source": f"{b.name}/source", "x-amz-copy-source-range": value}
    status, _, body = b.raw("PUT", "a", query=f"partNumber=1&uploadId={upload.target['UploadId']}", headers=headers)
    # S3 answers 400, and Ceph 416.
    assert (status, error_code(body)) in ((400, "InvalidArgument"), (400, "InvalidRange"), (416, "InvalidRange")), (status, body)


@cases("0-2", "bytes=0", "bytes=hello-world", "bytes=0-bar", "bytes=hello-", "bytes=0-2,3-5", "bytes=-5")
def malformed_ranges_of_the_source_are_refused(b, value):
    b("put_object", Key="source", Body=b"0123456789")
    upload = Upload(b)
    options = {"PartNumber": 1, "CopySource": f"{b.name}/source", "CopySourceRange": value}
    b.refused("InvalidArgument", 400, "upload_part_copy", **upload.target, **options)


@cases(" ", "_", "__", "?versionId", "a+b", "ü")
def source_of_a_part_has_any_characters(b, value):
    b("put_object", Key=value, Body=b"0123456789")
    upload = Upload(b)
    upload.copy(1, {"Bucket": b.name, "Key": value}, CopySourceRange="bytes=2-3")
    upload.complete()
    same(b.get("a"), b"23")


@case
def copied_part_needs_its_condition(b):
    tag = b("put_object", Key="source", Body=b"0123456789")["ETag"]
    upload = Upload(b)
    source = {"PartNumber": 1, "CopySource": f"{b.name}/source"}
    b.refused("PreconditionFailed", 412, "upload_part_copy", **upload.target, **source, CopySourceIfMatch='"ABCORZ"')
    b("upload_part_copy", **upload.target, **source, CopySourceIfMatch=tag)


@case
def parts_of_a_completed_object_are_read(b):
    upload = Upload(b)
    upload.part(1, value_of(PART))
    upload.part(2, b"end")
    upload.complete()
    answer = b("get_object", Key="a", PartNumber=2)
    same((answer["Body"].read(), answer["PartsCount"]), (b"end", 2))


@case
def deleted_bucket_has_no_uploads_under_way(b):
    upload = Upload(b)
    upload.part(1, b"x")
    b("abort_multipart_upload", **upload.target)
    b("delete_bucket")
    b.refused(None, 404, "head_bucket")


@case
def managed_transfer_uploads_and_downloads(b):
    data = value_of(17 * MIB, bytes(range(251)))
    config = TransferConfig(multipart_threshold=6 * MIB, multipart_chunksize=6 * MIB)
    b.s3.upload_fileobj(io.BytesIO(data), b.name, "a", Config=config)
    target = io.BytesIO()
    b.s3.download_fileobj(b.name, "a", target, Config=config)
    assert target.getvalue() == data
    b.s3.copy({"Bucket": b.name, "Key": "a"}, b.name, "b", Config=config)
    assert b.get("b") == data
