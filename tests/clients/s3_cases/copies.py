"""Copies of objects."""

from harness import MIB, case, cases, error_code, same


@cases(0, 3, 16 * MIB)
def object_is_copied(b, value):
    b("put_object", Key="a", Body=b"x" * value)
    answer = b("copy_object", Key="b", CopySource={"Bucket": b.name, "Key": "a"})["CopyObjectResult"]
    same(b.get("b"), b"x" * value)
    head = b("head_object", Key="b")
    same((answer["ETag"], answer["LastModified"].replace(microsecond=0)), (head["ETag"], head["LastModified"]))


@case
def object_is_copied_to_another_bucket(b):
    b.fill("a")
    other = b.another()
    b("copy_object", Bucket=other, Key="b", CopySource={"Bucket": b.name, "Key": "a"})
    same(b.get("b", Bucket=other), b"a")


@case
def copy_replaces_an_object(b):
    b.fill("a", "b")
    b("copy_object", Key="b", CopySource=f"{b.name}/a")
    same((b.get("a"), b.get("b")), (b"a", b"a"))


@case
def copy_has_the_content_type_and_the_metadata(b):
    b("put_object", Key="a", Body=b"1", ContentType="audio/ogg", Metadata={"key1": "value1", "key2": "value2"})
    b("copy_object", Key="b", CopySource=f"{b.name}/a")
    head = b("head_object", Key="b")
    same((head["ContentType"], head["Metadata"]), ("audio/ogg", {"key1": "value1", "key2": "value2"}))


@case
def copy_replaces_the_content_type_and_the_metadata(b):
    b("put_object", Key="a", Body=b"1", ContentType="audio/ogg", Metadata={"key1": "value1", "key2": "value2"})
    options = {"ContentType": "audio/mpeg", "Metadata": {"key3": "value3"}, "MetadataDirective": "REPLACE"}
    b("copy_object", Key="b", CopySource=f"{b.name}/a", **options)
    head = b("head_object", Key="b")
    same((head["ContentType"], head["Metadata"]), ("audio/mpeg", {"key3": "value3"}))


@case
def copy_has_the_headers_of_the_content(b):
    fields = {"CacheControl": "no-store", "ContentDisposition": "inline", "ContentLanguage": "de", "ContentEncoding": "br"}
    b("put_object", Key="a", Body=b"1", **fields)
    b("copy_object", Key="b", CopySource=f"{b.name}/a")
    head = b("head_object", Key="b")
    same({name: head.get(name) for name in fields}, fields)
    b("copy_object", Key="c", CopySource=f"{b.name}/a", MetadataDirective="REPLACE", CacheControl="no-cache")
    head = b("head_object", Key="c")
    same({name: head.get(name) for name in fields}, dict.fromkeys(fields) | {"CacheControl": "no-cache"})


@case
def metadata_of_a_copy_are_ignored_unless_they_replace(b):
    b("put_object", Key="a", Body=b"1", Metadata={"key1": "value1"})
    b("copy_object", Key="b", CopySource=f"{b.name}/a", Metadata={"key2": "value2"}, ContentType="audio/mpeg")
    head = b("head_object", Key="b")
    same((head["Metadata"], head["ContentType"] == "audio/mpeg"), ({"key1": "value1"}, False))


@case
def copy_onto_itself_is_refused(b):
    b.fill("a")
    b.refused("InvalidRequest", 400, "copy_object", Key="a", CopySource=f"{b.name}/a")


@case
def copy_onto_itself_replaces_metadata(b):
    b.fill("a")
    b("copy_object", Key="a", CopySource=f"{b.name}/a", Metadata={"foo": "bar"}, MetadataDirective="REPLACE")
    same((b("head_object", Key="a")["Metadata"], b.get("a")), ({"foo": "bar"}, b"a"))


@case
def missing_bucket_is_no_source(b):
    b.refused("NoSuchBucket", 404, "copy_object", Key="b", CopySource="case-missing/a")


@case
def missing_object_is_no_source(b):
    b.refused("NoSuchKey", 404, "copy_object", Key="b", CopySource=f"{b.name}/a")


@cases("a b", "a+b", "a%41", "?versionId=x", "ü/😀", "a&b=c", "a?b#c")
def source_has_any_characters(b, value):
    b("put_object", Key=value, Body=b"1")
    b("copy_object", Key="copy", CopySource={"Bucket": b.name, "Key": value})
    same(b.get("copy"), b"1")


@case
def source_begins_with_a_slash_or_not(b):
    b.fill("a")
    for source in (f"/{b.name}/a", f"{b.name}/a", f"%2F{b.name}%2Fa"):
        status, _, _ = b.raw("PUT", "b", headers={"x-amz-copy-source": source})
        same(status, 200)


@cases("", "a", "/", "%ff/a")
def malformed_sources_are_refused(b, value):
    status, _, body = b.raw("PUT", "b", headers={"x-amz-copy-source": value})
    same((status, error_code(body)), (400, "InvalidArgument"))


@case
def unknown_directives_are_refused(b):
    b.fill("a")
    headers = {"x-amz-copy-source": f"{b.name}/a", "x-amz-metadata-directive": "MOVE"}
    status, _, body = b.raw("PUT", "b", headers=headers)
    same((status, error_code(body)), (400, "InvalidArgument"))


@case
def copy_has_the_checksum(b):
    b("put_object", Key="a", Body=b"1", ChecksumAlgorithm="SHA256")
    b("copy_object", Key="b", CopySource=f"{b.name}/a")
    found = [b("head_object", Key=key, ChecksumMode="ENABLED").get("ChecksumSHA256") for key in ("a", "b")]
    same(found[0], found[1])


@case
def copy_is_a_value_of_its_own(b):
    b.fill("a")
    b("copy_object", Key="b", CopySource=f"{b.name}/a")
    b("delete_object", Key="a")
    same(b.get("b"), b"a")
