"""Conditional requests: reading, setting, erasing, copying and completing."""

import datetime
from concurrent.futures import ThreadPoolExecutor

from botocore.exceptions import ClientError

from harness import case, cases, same

READS = ("get_object", "head_object")
PAST = datetime.datetime(2010, 10, 29, 19, 43, 31, tzinfo=datetime.timezone.utc)
FUTURE = datetime.datetime(2100, 10, 29, 19, 43, 31, tzinfo=datetime.timezone.utc)


def failed(b, operation, status=412, **arguments):
    """Does an operation whose condition fails."""
    code = "PreconditionFailed" if status == 412 and operation != "head_object" else None
    return b.refused(code, status, operation, **arguments)


@cases(*READS)
def value_is_read_if_its_tag_matches(b, value):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    for expected in (tag, tag.strip('"'), "*", f'"other", {tag}'):
        same(b(value, Key="a", IfMatch=expected)["ETag"], tag)


@cases(*READS)
def value_is_not_read_if_its_tag_differs(b, value):
    b("put_object", Key="a", Body=b"bar")
    failed(b, value, Key="a", IfMatch='"ABCORZ"')


@cases(*READS)
def value_is_read_unless_its_tag_matches(b, value):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    same(b(value, Key="a", IfNoneMatch='"ABCORZ"')["ETag"], tag)


@cases(*READS)
def value_that_the_client_has_is_not_sent(b, value):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    answer = failed(b, value, 304, Key="a", IfNoneMatch=tag)
    same(answer["ResponseMetadata"]["HTTPHeaders"]["etag"], tag)


@cases(*READS)
def value_is_read_if_it_changed_since(b, value):
    b("put_object", Key="a", Body=b"bar")
    same(b(value, Key="a", IfModifiedSince=PAST)["ContentLength"], 3)


@cases(*READS)
def value_that_has_not_changed_is_not_sent(b, value):
    b("put_object", Key="a", Body=b"bar")
    since = b("head_object", Key="a")["LastModified"]
    failed(b, value, 304, Key="a", IfModifiedSince=since)


@cases(*READS)
def value_is_not_read_if_it_changed_since(b, value):
    b("put_object", Key="a", Body=b"bar")
    failed(b, value, Key="a", IfUnmodifiedSince=PAST)


@cases(*READS)
def value_is_read_if_it_has_not_changed(b, value):
    b("put_object", Key="a", Body=b"bar")
    same(b(value, Key="a", IfUnmodifiedSince=FUTURE)["ContentLength"], 3)


@cases(*READS)
def matching_tag_is_stronger_than_the_time(b, value):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    same(b(value, Key="a", IfMatch=tag, IfUnmodifiedSince=PAST)["ETag"], tag)
    failed(b, value, 304, Key="a", IfNoneMatch=tag, IfModifiedSince=PAST)


@case
def range_is_read_if_the_tag_matches(b):
    tag = b("put_object", Key="a", Body=b"0123456789")["ETag"]
    same(b.get("a", IfMatch=tag, Range="bytes=2-3"), b"23")
    failed(b, "get_object", Key="a", IfMatch='"other"', Range="bytes=2-3")


@case
def value_is_set_if_its_tag_matches(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    b("put_object", Key="a", Body=b"zar", IfMatch=tag)
    same(b.get("a"), b"zar")


@case
def value_is_not_set_if_its_tag_differs(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    b("put_object", Key="a", Body=b"soup")
    for expected in ('"ABCORZ"', tag):
        failed(b, "put_object", Key="a", Body=b"zar", IfMatch=expected)
    same(b.get("a"), b"soup")


@case
def missing_value_has_no_tag_that_matches(b):
    b.refused("NoSuchKey", 404, "put_object", Key="a", Body=b"zar", IfMatch='"ABCORZ"')
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@case
def value_is_made_if_there_is_none(b):
    b("put_object", Key="a", Body=b"bar", IfNoneMatch="*")
    same(b.get("a"), b"bar")


@case
def value_is_not_replaced_if_there_is_one(b):
    b("put_object", Key="a", Body=b"bar")
    failed(b, "put_object", Key="a", Body=b"zar", IfNoneMatch="*")
    same(b.get("a"), b"bar")


@case
def one_of_several_writers_makes_a_value(b):
    def attempt(number):
        try:
            b("put_object", Key="a", Body=str(number).encode(), IfNoneMatch="*")
            return number
        except ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] in (409, 412), error
            return None

    with ThreadPoolExecutor(8) as threads:
        made = [number for number in threads.map(attempt, range(16)) if number is not None]
    same((len(made), b.get("a")), (1, str(made[0]).encode()))


@case
def erased_value_can_be_made_again(b):
    b("put_object", Key="a", Body=b"bar")
    b("delete_object", Key="a")
    b("put_object", Key="a", Body=b"zar", IfNoneMatch="*")
    same(b.get("a"), b"zar")


@case
def value_is_erased_if_its_tag_matches(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    b("delete_object", Key="a", IfMatch=tag)
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@case
def value_is_not_erased_if_its_tag_differs(b):
    b("put_object", Key="a", Body=b"bar")
    failed(b, "delete_object", Key="a", IfMatch='"ABCORZ"')
    same(b.get("a"), b"bar")


@case
def some_of_several_values_are_erased_by_their_tags(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    b("put_object", Key="b", Body=b"bar")
    answer = b("delete_objects", Delete={"Objects": [{"Key": "a", "ETag": tag}, {"Key": "b", "ETag": '"ABCORZ"'}]})
    same([entry["Key"] for entry in answer["Deleted"]], ["a"])
    same([(entry["Key"], entry["Code"]) for entry in answer["Errors"]], [("b", "PreconditionFailed")])
    same(b.get("b"), b"bar")


@case
def value_is_copied_if_its_tag_matches(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    b("copy_object", Key="b", CopySource=f"{b.name}/a", CopySourceIfMatch=tag)
    same(b.get("b"), b"bar")


@case
def value_is_not_copied_if_its_tag_differs(b):
    b("put_object", Key="a", Body=b"bar")
    failed(b, "copy_object", Key="b", CopySource=f"{b.name}/a", CopySourceIfMatch='"ABCORZ"')
    b.refused("NoSuchKey", 404, "get_object", Key="b")


@case
def value_is_copied_unless_its_tag_matches(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    b("copy_object", Key="b", CopySource=f"{b.name}/a", CopySourceIfNoneMatch='"ABCORZ"')
    same(b.get("b"), b"bar")
    failed(b, "copy_object", Key="c", CopySource=f"{b.name}/a", CopySourceIfNoneMatch=tag)


@case
def value_is_copied_by_its_time(b):
    b("put_object", Key="a", Body=b"bar")
    source = f"{b.name}/a"
    b("copy_object", Key="b", CopySource=source, CopySourceIfModifiedSince=PAST)
    b("copy_object", Key="b", CopySource=source, CopySourceIfUnmodifiedSince=FUTURE)
    failed(b, "copy_object", Key="b", CopySource=source, CopySourceIfUnmodifiedSince=PAST)
    failed(b, "copy_object", Key="b", CopySource=source, CopySourceIfModifiedSince=b("head_object", Key="a")["LastModified"])


@case
def copy_does_not_replace_a_value_if_there_is_one(b):
    b.fill("a", "b")
    failed(b, "copy_object", Key="b", CopySource=f"{b.name}/a", IfNoneMatch="*")
    b("copy_object", Key="c", CopySource=f"{b.name}/a", IfNoneMatch="*")
    same((b.get("b"), b.get("c")), (b"b", b"a"))


def upload(b, key):
    target = {"Key": key, "UploadId": b("create_multipart_upload", Key=key)["UploadId"]}
    tag = b("upload_part", **target, PartNumber=1, Body=b"part")["ETag"]
    return {**target, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": tag}]}}


@case
def upload_does_not_replace_a_value_if_there_is_one(b):
    b("put_object", Key="a", Body=b"bar")
    target = upload(b, "a")
    failed(b, "complete_multipart_upload", **target, IfNoneMatch="*")
    same(b.get("a"), b"bar")
    b("delete_object", Key="a")
    b("complete_multipart_upload", **target, IfNoneMatch="*")
    same(b.get("a"), b"part")


@case
def upload_replaces_a_value_if_its_tag_matches(b):
    tag = b("put_object", Key="a", Body=b"bar")["ETag"]
    target = upload(b, "a")
    failed(b, "complete_multipart_upload", **target, IfMatch='"ABCORZ"')
    b("complete_multipart_upload", **target, IfMatch=tag)
    same(b.get("a"), b"part")
