"""Objects: setting, reading and erasing them, their metadata, and ranges."""

import datetime
from concurrent.futures import ThreadPoolExecutor

from harness import MIB, case, cases, error_code, fetch, md5, same

NAMES = ("a", "a b", "a+b", "a%41", "a&b=c", "a?b#c", "a;b,c:d", "ü/😀", "<&>\"'", "a\\b", "a|b^c`d{e}", "~a-b_c.d!e*f(g)", "@$")


@case
def missing_object_is_not_read(b):
    b.refused("NoSuchKey", 404, "get_object", Key="a")
    b.refused(None, 404, "head_object", Key="a")


@case
def missing_bucket_has_no_objects(b):
    b.refused("NoSuchBucket", 404, "get_object", Bucket="case-missing", Key="a")
    b.refused(None, 404, "head_object", Bucket="case-missing", Key="a")


@case
def nothing_is_written_to_a_missing_bucket(b):
    b.refused("NoSuchBucket", 404, "put_object", Bucket="case-unmade", Key="a", Body=b"1")


@case
def errors_name_their_request(b):
    answer = b.refused("NoSuchKey", 404, "get_object", Key="a")
    status, headers, body = b.raw("GET", "a")
    assert answer["ResponseMetadata"]["RequestId"]
    same((status, headers["x-amz-request-id"].encode() in body), (404, True))


@case
def responses_have_the_id_of_their_request(b):
    found = [b("list_objects_v2")["ResponseMetadata"]["RequestId"] for _ in range(2)]
    assert all(found) and len(set(found)) == 2, found


@case
def object_is_written_read_replaced_and_erased(b):
    b("put_object", Key="a", Body=b"bar")
    same(b.get("a"), b"bar")
    b("put_object", Key="a", Body=b"soup")
    same(b.get("a"), b"soup")
    same(b("delete_object", Key="a")["ResponseMetadata"]["HTTPStatusCode"], 204)
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@case
def empty_object_has_no_bytes(b):
    b("put_object", Key="a", Body=b"")
    same((b("head_object", Key="a")["ContentLength"], b.get("a")), (0, b""))


@case
def tag_is_the_md5_of_the_value(b):
    same(b("put_object", Key="a", Body=b"bar")["ETag"], '"37b51d194a7513e45b56f6524f2d51f2"')


@case
def tag_is_the_same_wherever_it_is_shown(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    shown = [b(operation, Key="a")["ETag"] for operation in ("get_object", "head_object")]
    shown.append(b("list_objects_v2")["Contents"][0]["ETag"])
    same(shown, [tag] * 3)


@case
def tag_changes_with_the_value(b):
    first = b("put_object", Key="a", Body=b"1")["ETag"]
    assert b("put_object", Key="a", Body=b"2")["ETag"] != first


@cases(*NAMES)
def name_has_any_characters(b, value):
    b("put_object", Key=value, Body=value.encode())
    same(b.get(value), value.encode())
    same([entry["Key"] for entry in b("list_objects_v2")["Contents"]], [value])
    b("delete_object", Key=value)
    same(b("list_objects_v2")["KeyCount"], 0)


@cases("a" * 1024, "é" * 512)
def name_has_1024_bytes(b, value):
    b("put_object", Key=value, Body=b"1")
    same(b.get(value), b"1")


@cases("a" * 1025, "é" * 513)
def longer_names_are_refused(b, value):
    b.refused("KeyTooLongError", 400, "put_object", Key=value, Body=b"1")


@cases("/a", "a//b", "a/", "a/./b", "a/../b", "\x01")
def name_has_any_segments(b, value):
    b("put_object", Key=value, Body=b"1")
    same(b.get(value), b"1")


@case
def directory_of_a_client_is_made_without_an_error(b):
    b("put_object", Key="a/", Body=b"")


@case
def content_type_is_stored(b):
    b("put_object", Key="a", Body=b"1", ContentType="text/plain; charset=utf-8")
    for operation in ("get_object", "head_object"):
        same(b(operation, Key="a")["ContentType"], "text/plain; charset=utf-8")


@case
def default_content_type_is_binary(b):
    b.raw("PUT", "a", body=b"1")
    assert b("head_object", Key="a")["ContentType"] in ("binary/octet-stream", "application/octet-stream")


@cases(
    ("CacheControl", "public, max-age=14400"),
    ("ContentDisposition", 'attachment; filename="a b.txt"'),
    ("ContentLanguage", "de, en-GB"),
    ("ContentEncoding", "gzip"),
)
def headers_of_the_content_are_stored(b, value):
    name, text = value
    b("put_object", Key="a", Body=b"1", **{name: text})
    for operation in ("get_object", "head_object"):
        same(b(operation, Key="a")[name], text)
    b("put_object", Key="a", Body=b"1")
    assert name not in b("head_object", Key="a")


@case
def time_of_expiry_is_stored(b):
    expires = datetime.datetime(2031, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)
    b("put_object", Key="a", Body=b"1", Expires=expires)
    for operation in ("get_object", "head_object"):
        same(b(operation, Key="a")["Expires"], expires)


@case
def malformed_time_of_expiry_is_stored_as_sent(b):
    status, _, _ = b.raw("PUT", "a", headers={"expires": "0"}, body=b"1")
    same(status, 200)
    same(b.raw("HEAD", "a")[1].get("expires"), "0")


@case
def framing_is_no_encoding_of_the_content(b):
    b("put_object", Key="a", Body=b"1", ContentEncoding="aws-chunked, gzip")
    assert b("head_object", Key="a").get("ContentEncoding") == "gzip"


@cases("mymeta", "", "with some spaces", "a" * 1000, "x=1; y=2")
def metadata_are_stored(b, value):
    b("put_object", Key="a", Body=b"1", Metadata={"meta1": value})
    for operation in ("get_object", "head_object"):
        same(b(operation, Key="a")["Metadata"], {"meta1": value})


@case
def metadata_are_replaced_with_the_value(b):
    b("put_object", Key="a", Body=b"1", Metadata={"one": "1", "two": "2"})
    b("put_object", Key="a", Body=b"1", Metadata={"two": "3"})
    same(b("head_object", Key="a")["Metadata"], {"two": "3"})
    b("put_object", Key="a", Body=b"1")
    same(b("head_object", Key="a")["Metadata"], {})


@case
def names_of_metadata_are_lower_case(b):
    b("put_object", Key="a", Body=b"1", Metadata={"UpPer-Case": "Value"})
    same(b("head_object", Key="a")["Metadata"], {"upper-case": "Value"})


@cases("\x04mymeta", "my\x04meta", "mymeta\x04")
def control_characters_are_no_metadata(b, value):
    status, _, _ = b.raw("PUT", "a", headers={"x-amz-meta-meta1": value}, body=b"1")
    assert status in (400, 403), status
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@case
def metadata_have_2048_bytes(b):
    b("put_object", Key="a", Body=b"1", Metadata={"a": "b" * 2047})
    b.refused("MetadataTooLarge", 400, "put_object", Key="a", Body=b"1", Metadata={"a": "b" * 2048})


@case
def last_modified_is_shown(b):
    b("put_object", Key="a", Body=b"1")
    age = datetime.datetime.now(datetime.timezone.utc) - b("head_object", Key="a")["LastModified"]
    assert abs(age.total_seconds()) < 600, age


@case
def ranges_are_accepted(b):
    b.fill("a")
    same(b("get_object", Key="a")["AcceptRanges"], "bytes")


@cases(
    ("bytes=4-7", "4567", "bytes 4-7/10"),
    ("bytes=4-", "456789", "bytes 4-9/10"),
    ("bytes=-7", "3456789", "bytes 3-9/10"),
    ("bytes=0-0", "0", "bytes 0-0/10"),
    ("bytes=8-100", "89", "bytes 8-9/10"),
    ("bytes=-100", "0123456789", "bytes 0-9/10"),
)
def range_selects_bytes(b, value):
    wanted, part, described = value
    b("put_object", Key="a", Body=b"0123456789")
    answer = b("get_object", Key="a", Range=wanted)
    same((answer["Body"].read(), answer["ContentRange"], answer["ContentLength"]), (part.encode(), described, len(part)))
    same(answer["ResponseMetadata"]["HTTPStatusCode"], 206)


@case
def range_of_a_large_object_selects_bytes(b):
    value = bytes(range(256)) * (8 * MIB // 256)
    b("put_object", Key="a", Body=value)
    same(b.get("a", Range=f"bytes={3 * MIB + 5}-{5 * MIB + 6}"), value[3 * MIB + 5 : 5 * MIB + 7])


@cases("bytes=40-50", "bytes=10-", "bytes=-0")
def range_behind_the_end_is_refused(b, value):
    b("put_object", Key="a", Body=b"0123456789")
    b.refused("InvalidRange", 416, "get_object", Key="a", Range=value)


@case
def empty_object_has_no_range(b):
    b("put_object", Key="a", Body=b"")
    b.refused("InvalidRange", 416, "get_object", Key="a", Range="bytes=40-50")


@cases("bytes=7-4", "bytes=a-b", "bytes", "items=0-1", "bytes=--1")
def malformed_ranges_are_ignored(b, value):
    b("put_object", Key="a", Body=b"0123456789")
    answer = b("get_object", Key="a", Range=value)
    same((answer["Body"].read(), answer["ResponseMetadata"]["HTTPStatusCode"]), (b"0123456789", 200))


@case
def several_ranges_are_not_selected(b):
    b("put_object", Key="a", Body=b"0123456789")
    answer = b("get_object", Key="a", Range="bytes=0-1,4-5")
    same((answer["Body"].read(), answer["ResponseMetadata"]["HTTPStatusCode"]), (b"0123456789", 200))


@case
def head_has_the_length_of_a_range(b):
    b("put_object", Key="a", Body=b"0123456789")
    answer = b("head_object", Key="a", Range="bytes=2-4")
    same((answer["ContentLength"], answer["ContentRange"], answer["ResponseMetadata"]["HTTPStatusCode"]), (3, "bytes 2-4/10", 206))


@case
def only_part_of_an_object_is_the_first(b):
    b("put_object", Key="a", Body=b"0123456789")
    answer = b("get_object", Key="a", PartNumber=1)
    same((answer["Body"].read(), "PartsCount" in answer), (b"0123456789", False))
    status, _, _ = b.raw("GET", "a", query="partNumber=2")
    assert status in (400, 416), status


@case
def attributes_are_shown(b):
    tag = b("put_object", Key="a", Body=b"0123456789")["ETag"]
    answer = b("get_object_attributes", Key="a", ObjectAttributes=["ETag", "ObjectSize", "StorageClass"])
    same((answer["ObjectSize"], answer["ETag"], answer.get("StorageClass")), (10, tag.strip('"'), "STANDARD"))
    assert "Checksum" not in answer


@case
def missing_object_has_no_attributes(b):
    b.refused("NoSuchKey", 404, "get_object_attributes", Key="a", ObjectAttributes=["ETag"])


@case
def missing_object_is_erased_without_an_error(b):
    same(b("delete_object", Key="a")["ResponseMetadata"]["HTTPStatusCode"], 204)


@case
def object_of_a_missing_bucket_is_not_erased(b):
    b.refused("NoSuchBucket", 404, "delete_object", Bucket="case-missing", Key="a")


@case
def several_objects_are_erased(b):
    names = ["key0", "key1", "key2"]
    b.fill(*names, "other")
    for _ in range(2):
        answer = b("delete_objects", Delete={"Objects": [{"Key": name} for name in names]})
        same((sorted(entry["Key"] for entry in answer["Deleted"]), "Errors" in answer), (names, False))
    same([entry["Key"] for entry in b("list_objects_v2")["Contents"]], ["other"])


@case
def erasing_quietly_shows_only_errors(b):
    b.fill("a")
    answer = b("delete_objects", Delete={"Objects": [{"Key": "a"}, {"Key": "b"}], "Quiet": True})
    assert "Deleted" not in answer and "Errors" not in answer, answer


@case
def names_to_erase_have_any_characters(b):
    b.fill(*NAMES)
    answer = b("delete_objects", Delete={"Objects": [{"Key": name} for name in NAMES]})
    same((sorted(entry["Key"] for entry in answer["Deleted"]), b("list_objects_v2")["KeyCount"]), (sorted(NAMES), 0))


@case
def at_most_a_thousand_objects_are_erased(b):
    b("delete_objects", Delete={"Objects": [{"Key": f"{number}"} for number in range(1000)]})
    b.refused("MalformedXML", 400, "delete_objects", Delete={"Objects": [{"Key": f"{number}"} for number in range(1001)]})


@case
def objects_of_a_missing_bucket_are_not_erased(b):
    b.refused("NoSuchBucket", 404, "delete_objects", Bucket="case-missing", Delete={"Objects": [{"Key": "a"}]})


@cases(b"", b"<Delete>", b"<Delete></Delete>", b"<Other/>", b"{}", b"<Delete><Object></Object></Delete>")
def malformed_lists_of_objects_are_refused(b, value):
    status, _, body = b.raw("POST", query="delete=", headers={"content-md5": md5(value)}, body=value)
    same((status, error_code(body) in ("MalformedXML", "MissingRequestBodyError")), (400, True))


@case
def list_of_objects_without_a_checksum_is_refused(b):
    b.fill("a")
    status, _, _ = b.raw("POST", query="delete=", body=b"<Delete><Object><Key>a</Key></Object></Delete>")
    same((status, b.get("a")), (400, b"a"))


@case
def concurrent_writers_leave_one_value(b):
    values = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda value: b("put_object", Key="a", Body=value), values))
    assert b.get("a") in values


@cases("PATCH", "TRACE")
def other_methods_are_refused(b, value):
    status, _, _ = b.raw(value, "a")
    assert status in (400, 403, 405, 501), status


@case
def body_without_a_length_is_refused(b):
    status, _, body = b.raw("PUT", "a", headers={"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}, length=False)
    same((status, error_code(body)), (411, "MissingContentLength"))


@cases("-1", "x")
def malformed_lengths_are_refused(b, value):
    status, _, _ = fetch(f"{b.site.url}/{b.name}/a", "PUT", {"content-length": value})
    same(status, 400)


@case
def value_is_streamed(b):
    value = bytes(range(256)) * (20 * MIB // 256)
    b("put_object", Key="a", Body=value)
    assert b.get("a") == value


@case
def tags_of_an_object_are_empty(b):
    b.fill("a")
    same(b("get_object_tagging", Key="a")["TagSet"], [])


@case
def owner_has_full_control_of_an_object(b):
    b.fill("a")
    same([grant["Permission"] for grant in b("get_object_acl", Key="a")["Grants"]], ["FULL_CONTROL"])


@case
def expected_version_of_an_object_is_null(b):
    b.fill("a")
    same(b.get("a", VersionId="null"), b"a")


@cases("private", "bucket-owner-full-control")
def usual_rights_are_accepted(b, value):
    b("put_object", Key="a", Body=b"1", ACL=value)
    same(b.get("a"), b"1")
