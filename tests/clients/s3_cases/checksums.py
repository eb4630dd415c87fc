"""Checksums: of values, of parts, and of what is joined of them."""

import base64
import hashlib

from harness import MIB, case, cases, checksum, error_code, md5, same
from uploads import PART, Upload

ALGORITHMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")
OF_CLIENTS = ("CRC32", "SHA1", "SHA256")


@cases(*ALGORITHMS)
def checksum_is_compared_and_shown(b, value):
    member, wanted = f"Checksum{value}", checksum(value, b"0123456789")
    same(b("put_object", Key="a", Body=b"0123456789", **{member: wanted})[member], wanted)
    for operation in ("get_object", "head_object"):
        answer = b(operation, Key="a", ChecksumMode="ENABLED")
        same((answer.get(member), answer.get("ChecksumType")), (wanted, "FULL_OBJECT"))
    attributes = b("get_object_attributes", Key="a", ObjectAttributes=["Checksum"])
    same(attributes["Checksum"][member], wanted)


@cases(*ALGORITHMS)
def value_with_another_checksum_is_refused(b, value):
    wrong = checksum(value, b"other")
    b.refused("BadDigest", 400, "put_object", Key="a", Body=b"0123456789", **{f"Checksum{value}": wrong})
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@cases(*ALGORITHMS)
def malformed_checksums_are_refused(b, value):
    for text in ("bad", "AAAA", "?"):
        status, _, body = b.raw("PUT", "a", headers={f"x-amz-checksum-{value.lower()}": text}, body=b"1")
        assert (status, error_code(body)) in ((400, "InvalidRequest"), (400, "BadDigest")), (status, body)


@case
def two_checksums_are_refused(b):
    headers = {f"x-amz-checksum-{name.lower()}": checksum(name, b"1") for name in ("SHA1", "SHA256")}
    status, _, body = b.raw("PUT", "a", headers=headers, body=b"1")
    same((status, error_code(body)), (400, "InvalidRequest"))


@case
def checksum_is_hidden_unless_requested(b):
    b("put_object", Key="a", Body=b"1", ChecksumAlgorithm="SHA256")
    status, headers, _ = b.raw("GET", "a")
    same((status, "x-amz-checksum-sha256" in headers), (200, False))


@case
def range_has_no_checksum_of_the_value(b):
    b("put_object", Key="a", Body=b"0123456789", ChecksumAlgorithm="SHA256")
    status, headers, _ = b.raw("GET", "a", headers={"range": "bytes=0-1", "x-amz-checksum-mode": "ENABLED"})
    same((status, "x-amz-checksum-sha256" in headers), (206, False))


@case
def value_replaced_has_its_own_checksum(b):
    b("put_object", Key="a", Body=b"1", ChecksumAlgorithm="SHA256")
    b("put_object", Key="a", Body=b"2", ChecksumAlgorithm="SHA1")
    answer = b("head_object", Key="a", ChecksumMode="ENABLED")
    same((answer.get("ChecksumSHA1"), "ChecksumSHA256" in answer), (checksum("SHA1", b"2"), False))


@case
def md5_is_compared(b):
    b("put_object", Key="a", Body=b"1", ContentMD5=md5(b"1"))
    b.refused("BadDigest", 400, "put_object", Key="a", Body=b"1", ContentMD5=md5(b"2"))
    same(b.get("a"), b"1")


@cases("", "YWJyYWNhZGFicmE=", "short")
def malformed_md5_is_refused(b, value):
    status, _, body = b.raw("PUT", "a", headers={"content-md5": value}, body=b"1")
    same((status, error_code(body)), (400, "InvalidDigest"))


@case
def hash_of_the_body_is_compared(b):
    headers = {"x-amz-content-sha256": hashlib.sha256(b"other").hexdigest()}
    status, _, body = b.raw("PUT", "a", headers=headers, body=b"1")
    same((status, error_code(body)), (400, "XAmzContentSHA256Mismatch"))
    b.refused("NoSuchKey", 404, "get_object", Key="a")


@case
def body_need_not_be_hashed(b):
    status, _, _ = b.raw("PUT", "a", headers={"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}, body=b"1")
    same((status, b.get("a")), (200, b"1"))


def framed(data, trailer):
    return b"%x\r\n%s\r\n0\r\n%s\r\n\r\n" % (len(data), data, trailer)


@case
def checksum_follows_a_framed_body(b):
    for data, status in ((b"0123456789", 200), (b"other", 400)):
        body = framed(b"0123456789", b"x-amz-checksum-crc32:" + checksum("CRC32", data).encode())
        headers = {
            "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            "x-amz-decoded-content-length": "10",
            "x-amz-trailer": "x-amz-checksum-crc32",
            "content-encoding": "aws-chunked",
        }
        same(b.raw("PUT", "a", headers=headers, body=body)[0], status)
    answer = b("get_object", Key="a", ChecksumMode="ENABLED")
    same((answer["Body"].read(), answer.get("ChecksumCRC32")), (b"0123456789", checksum("CRC32", b"0123456789")))
    assert "ContentEncoding" not in answer


@cases(md5(b"other"), "bad")
def list_of_objects_is_compared_with_its_md5(b, value):
    b.fill("a")
    body = b"<Delete><Object><Key>a</Key></Object></Delete>"
    status, _, found = b.raw("POST", query="delete=", headers={"content-md5": value}, body=body)
    same((status, error_code(found) in ("BadDigest", "InvalidDigest"), b.get("a")), (400, True, b"a"))


@cases(*OF_CLIENTS)
def joined_parts_have_the_checksum_of_their_checksums(b, value):
    data, member = [b"1" * PART, b"end"], f"Checksum{value}"
    upload = Upload(b, ChecksumAlgorithm=value)
    sums = [upload.part(number, part, ChecksumAlgorithm=value)[member] for number, part in enumerate(data, 1)]
    same(sums, [checksum(value, part) for part in data])
    same([part[member] for part in b("list_parts", **upload.target)["Parts"]], sums)
    parts = [{**part, member: found} for part, found in zip(upload.list(), sums)]
    answer = b("complete_multipart_upload", **upload.target, MultipartUpload={"Parts": parts})
    joined = checksum(value, b"".join(map(base64.b64decode, sums))) + "-2"
    same((answer.get(member), answer.get("ChecksumType")), (joined, "COMPOSITE"))
    head = b("head_object", Key="a", ChecksumMode="ENABLED")
    same((head.get(member), head.get("ChecksumType")), (joined, "COMPOSITE"))


@cases("CRC32")
def joined_parts_have_the_checksum_of_the_value(b, value):
    data, member = [b"1" * PART, b"end"], f"Checksum{value}"
    upload = Upload(b, ChecksumAlgorithm=value, ChecksumType="FULL_OBJECT")
    for number, part in enumerate(data, 1):
        upload.part(number, part, ChecksumAlgorithm=value)
    wanted = checksum(value, b"".join(data))
    answer = upload.complete(ChecksumType="FULL_OBJECT", **{member: wanted})
    same((answer.get(member), answer.get("ChecksumType")), (wanted, "FULL_OBJECT"))


@case
def joined_parts_with_another_checksum_are_refused(b):
    upload = Upload(b, ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")
    upload.part(1, b"1", ChecksumAlgorithm="CRC32")
    wrong = {"ChecksumType": "FULL_OBJECT", "ChecksumCRC32": checksum("CRC32", b"2")}
    parts = {"MultipartUpload": {"Parts": upload.list()}}
    b.refused("BadDigest", 400, "complete_multipart_upload", **upload.target, **parts, **wrong)


@case
def part_with_another_checksum_is_not_joined(b):
    upload = Upload(b, ChecksumAlgorithm="SHA256")
    upload.part(1, b"1", ChecksumAlgorithm="SHA256")
    upload.refused("InvalidPart", 400, [{**upload.list()[0], "ChecksumSHA256": checksum("SHA256", b"2")}])


@case
def part_with_another_checksum_is_refused(b):
    upload = Upload(b)
    wrong = {"ChecksumSHA256": checksum("SHA256", b"2")}
    b.refused("BadDigest", 400, "upload_part", **upload.target, PartNumber=1, Body=b"1", **wrong)
    b.refused("BadDigest", 400, "upload_part", **upload.target, PartNumber=1, Body=b"1", ContentMD5=md5(b"2"))
    assert "Parts" not in b("list_parts", **upload.target)


@cases(("SHA1", "FULL_OBJECT"), ("SHA256", "FULL_OBJECT"), ("CRC64NVME", "COMPOSITE"))
def checksum_of_the_other_kind_is_refused(b, value):
    algorithm, kind = value
    options = {"ChecksumAlgorithm": algorithm, "ChecksumType": kind}
    b.refused("InvalidRequest", 400, "create_multipart_upload", Key="a", **options)


@case
def object_is_compared_with_its_announced_size(b):
    upload = Upload(b)
    upload.part(1, b"123")
    parts = {"MultipartUpload": {"Parts": upload.list()}}
    b.refused("InvalidRequest", 400, "complete_multipart_upload", **upload.target, **parts, MpuObjectSize=4)
    upload.complete(MpuObjectSize=3)


@case
def large_value_is_compared_with_its_checksum(b):
    data = bytes(8 * MIB)
    b("put_object", Key="a", Body=data, ChecksumAlgorithm="SHA256")
    same(b("head_object", Key="a", ChecksumMode="ENABLED").get("ChecksumSHA256"), checksum("SHA256", data))
