"""Signatures: in headers and in presigned URLs."""

import datetime
import urllib.parse

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from harness import case, cases, error_code, fetch, same, send


def now():
    return datetime.datetime.now(datetime.timezone.utc)


@case
def presigned_url_reads(b):
    b.fill("a b+ü")
    url = b.presigned("get_object", Key="a b+ü")
    same(fetch(url)[::2], (200, "a b+ü".encode()))
    same(fetch(b.presigned("head_object", Key="a b+ü"), "HEAD")[0], 200)


@case
def presigned_url_writes(b):
    url = b.presigned("put_object", Key="a")
    same(fetch(url, "PUT", {"content-length": "3"}, b"bar")[0], 200)
    same(b.get("a"), b"bar")


@case
def presigned_url_erases(b):
    b.fill("a")
    same(fetch(b.presigned("delete_object", Key="a"), "DELETE")[0], 204)
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@case
def presigned_url_lists(b):
    b.fill("a")
    status, _, body = fetch(b.presigned("list_objects_v2", Prefix="a"))
    same((status, b"<Key>a</Key>" in body), (200, True))


@case
def presigned_url_uploads_a_part(b):
    target = {"Key": "a", "UploadId": b("create_multipart_upload", Key="a")["UploadId"]}
    url = b.presigned("upload_part", **target, PartNumber=1)
    status, headers, _ = fetch(url, "PUT", {"content-length": "3"}, b"bar")
    same(status, 200)
    b("complete_multipart_upload", **target, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": headers["etag"]}]})
    same(b.get("a"), b"bar")


@case
def presigned_url_chooses_the_headers_of_the_response(b):
    b("put_object", Key="a", Body=b"1", ContentType="text/plain", CacheControl="no-store")
    wanted = {
        "ResponseCacheControl": "no-cache",
        "ResponseContentDisposition": 'attachment; filename="bla"',
        "ResponseContentEncoding": "aaa",
        "ResponseContentLanguage": "esperanto",
        "ResponseContentType": "foo/bar",
        "ResponseExpires": datetime.datetime(2031, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc),
    }
    status, headers, _ = fetch(b.presigned("get_object", Key="a", **wanted))
    same(status, 200)
    found = {name: headers.get(name) for name in ("cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "expires")}
    expected = ["no-cache", 'attachment; filename="bla"', "aaa", "esperanto", "foo/bar", "Mon, 03 Feb 2031 04:05:06 GMT"]
    same(list(found.values()), expected)


@case
def signed_request_chooses_the_headers_of_the_response(b):
    b.fill("a")
    answer = b("get_object", Key="a", ResponseContentType="foo/bar", ResponseContentDisposition="inline")
    same((answer["ContentType"], answer["ContentDisposition"]), ("foo/bar", "inline"))


@case
def unsigned_request_does_not_choose_the_headers_of_the_response(b):
    b.fill("a")
    status, _, body = fetch(f"{b.site.url}/{b.name}/a?response-content-type=foo%2Fbar")
    same((status, error_code(body)), (400, "InvalidRequest"))


@case
def presigned_url_is_for_its_method(b):
    b.fill("a")
    url = b.presigned("get_object", Key="a")
    status, _, body = fetch(url, "DELETE")
    same((status, error_code(body), b.get("a")), (403, "SignatureDoesNotMatch", b"a"))


@case
def presigned_url_is_for_its_object(b):
    b.fill("aaa", "bbb")
    url = b.presigned("get_object", Key="aaa")
    same(fetch(url.replace("/aaa?", "/bbb?"))[0], 403)


@case
def presigned_url_is_for_its_parameters(b):
    b.fill("a")
    same(fetch(b.presigned("get_object", Key="a") + "&response-content-type=text%2Fhtml")[0], 403)


@case
def presigned_url_is_for_its_headers(b):
    url = b.presigned("put_object", Key="a", IfNoneMatch="*")
    headers = {"content-length": "1"}
    same(fetch(url, "PUT", headers, b"1")[0], 403)
    same(fetch(url, "PUT", headers | {"if-none-match": "*"}, b"1")[0], 200)


def presigned_at(b, moment, expires):
    """A presigned URL of another time, made by signing one anew."""
    signer = S3SigV4QueryAuth(Credentials(b.site.access, b.site.secret), "s3", "us-east-1", expires=expires)
    request = AWSRequest("GET", f"{b.site.url}/{b.name}/a")
    request.context["timestamp"] = moment.strftime("%Y%m%dT%H%M%SZ")
    signer._modify_request_before_signing(request)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(text, request))
    return request.url


@case
def presigned_url_of_an_hour_ago_is_valid_for_a_day(b):
    b.fill("a")
    same(fetch(presigned_at(b, now() - datetime.timedelta(hours=1), 86_400))[0], 200)


@case
def presigned_url_expires(b):
    b.fill("a")
    status, _, body = fetch(presigned_at(b, now() - datetime.timedelta(hours=1), 60))
    same((status, error_code(body)), (403, "AccessDenied"))


@cases(604_801, -7, 2**40)
def presigned_url_lasts_at_most_a_week(b, value):
    b.fill("a")
    status, _, body = fetch(presigned_at(b, now(), value))
    same((status in (400, 403), error_code(body) in ("AuthorizationQueryParametersError", "AccessDenied")), (True, True))


@case
def another_secret_is_refused(b):
    b.fill("a")
    status, _, body = b.raw("GET", "a", secret="other")
    same((status, error_code(body)), (403, "SignatureDoesNotMatch"))


@case
def unknown_access_key_is_refused(b):
    try:
        b.site.client(access="AKIAUNKNOWN").list_buckets()
    except ClientError as error:
        same(error.response["Error"]["Code"], "InvalidAccessKeyId")
    else:
        raise AssertionError("an unknown key lists buckets")


@cases(-3600, 3600, -864_000)
def request_of_another_time_is_refused(b, value):
    b.fill("a")
    status, _, body = b.raw("GET", "a", moment=now() + datetime.timedelta(seconds=value))
    same((status, error_code(body)), (403, "RequestTimeTooSkewed"))


@cases("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=HAHA", "Bearer x", "\x07bla")
def malformed_authorization_is_refused(b, value):
    b.fill("a")
    headers = {"authorization": value, "x-amz-date": now().strftime("%Y%m%dT%H%M%SZ"), "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
    status, _, _ = fetch(f"{b.site.url}/{b.name}/a", "GET", headers)
    assert status in (400, 401, 403), status


@case
def signatures_of_version_2_are_refused(b):
    b.fill("a")
    status, _, _ = fetch(f"{b.site.url}/{b.name}/a", "GET", {"authorization": f"AWS {b.site.access}:c2lnbmF0dXJl"})
    assert status in (400, 403), status


@case
def two_signatures_are_refused(b):
    b.fill("a")
    url = b.presigned("get_object", Key="a")
    query = urllib.parse.urlsplit(url).query
    status, _, _ = send(b.site, "GET", f"/{b.name}/a", query, {}, b"")
    same(status, 400)


@case
def headers_of_metadata_are_signed(b):
    status, _, _ = b.raw("PUT", "a", headers={"x-amz-meta-a": "b c"}, body=b"1")
    same((status, b("head_object", Key="a")["Metadata"]), (200, {"a": "b c"}))


@case
def object_without_a_signature_may_be_missing(b):
    status, _, _ = fetch(f"{b.site.url}/{b.name}/a")
    assert status in (403, 404), status
