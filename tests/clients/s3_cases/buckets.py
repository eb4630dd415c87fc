"""Buckets: their names, making and erasing them, and what clients ask about them."""

from harness import case, cases, error_code, same, send


@case
def made_bucket_exists(b):
    name = b.another()
    same(b("head_bucket", Bucket=name)["ResponseMetadata"]["HTTPStatusCode"], 200)
    assert name in [bucket["Name"] for bucket in b("list_buckets")["Buckets"]]


@case
def response_to_making_a_bucket_has_its_location(b):
    same(b("create_bucket", Bucket="case-location")["Location"], "/case-location")


@case
def bucket_of_ones_own_can_be_made_again(b):
    b.fill("a")
    b("create_bucket")
    same(b.get("a"), b"a")


@case
def missing_bucket_has_no_head(b):
    b.refused(None, 404, "head_bucket", Bucket="case-missing")


@case
def missing_bucket_is_not_deleted(b):
    b.refused("NoSuchBucket", 404, "delete_bucket", Bucket="case-missing")


@case
def bucket_with_objects_is_not_deleted(b):
    b.fill("a")
    b.refused("BucketNotEmpty", 409, "delete_bucket")
    same(b.get("a"), b"a")


@case
def deleted_bucket_is_gone(b):
    b("delete_bucket")
    b.refused("NoSuchBucket", 404, "delete_bucket")
    b.refused(None, 404, "head_bucket")
    assert b.name not in [bucket["Name"] for bucket in b("list_buckets")["Buckets"]]


@case
def deleted_bucket_can_be_made_again(b):
    b("delete_bucket")
    b("create_bucket")
    same(b("list_objects_v2")["KeyCount"], 0)


@case
def empty_bucket_stays_after_its_last_object(b):
    b.fill("a")
    b("delete_object", Key="a")
    b("head_bucket")
    b("delete_bucket")


@case
def buckets_are_listed_by_name_with_their_times(b):
    for _ in range(3):
        b.another()
    found = b("list_buckets")
    names = [bucket["Name"] for bucket in found["Buckets"]]
    same(names, sorted(names))
    assert all(bucket["CreationDate"].year >= 2020 for bucket in found["Buckets"])
    assert found["Owner"]["ID"]


@case
def buckets_have_pages_and_prefixes(b):
    for name in ("case-paged-1", "case-paged-2", "case-paged-3"):
        b("create_bucket", Bucket=name)
    names, token = [], {}
    while True:
        page = b("list_buckets", MaxBuckets=2, Prefix="case-paged-", **token)
        names.append([bucket["Name"] for bucket in page["Buckets"]])
        if "ContinuationToken" not in page:
            break
        token = {"ContinuationToken": page["ContinuationToken"]}
    same(names, [["case-paged-1", "case-paged-2"], ["case-paged-3"]])


@case
def first_region_has_no_name(b):
    same(b("get_bucket_location")["LocationConstraint"], None)


@case
def head_of_a_bucket_has_its_region(b):
    same(b("head_bucket")["BucketRegion"], "us-east-1")


@case
def missing_bucket_has_no_location(b):
    b.refused("NoSuchBucket", 404, "get_bucket_location", Bucket="case-missing")


@cases("a" * 63, "a.b", "a-b", "0ab", "case.with.dots")
def names_of_hosts_are_buckets(b, value):
    b("create_bucket", Bucket=value)
    b("put_object", Bucket=value, Key="a", Body=b"1")
    b("delete_object", Bucket=value, Key="a")
    b("delete_bucket", Bucket=value)


@cases("ab", "a" * 64, "_ab", "a_b", "-ab", "ab-", "a..b", "a.-b", "Abc", "192.168.5.123")
def other_names_are_no_buckets(b, value):
    b.refused("InvalidBucketName", 400, "create_bucket", Bucket=value)


@cases("a%20b", "%C3%BC", "a%3Fb", "a%25b")
def names_with_other_characters_are_no_buckets(b, value):
    status, _, body = send(b.site, "PUT", f"/{value}", "", {}, b"")
    same((status, error_code(body)), (400, "InvalidBucketName"))


@cases(
    ("get_bucket_tagging", "NoSuchTagSet"),
    ("get_bucket_policy", "NoSuchBucketPolicy"),
    ("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration"),
    ("get_bucket_cors", "NoSuchCORSConfiguration"),
    ("get_bucket_replication", "ReplicationConfigurationNotFoundError"),
    ("get_bucket_website", "NoSuchWebsiteConfiguration"),
    ("get_object_lock_configuration", "ObjectLockConfigurationNotFoundError"),
    ("get_bucket_ownership_controls", "OwnershipControlsNotFoundError"),
    ("get_public_access_block", "NoSuchPublicAccessBlockConfiguration"),
)
def settings_of_a_new_bucket_are_missing(b, value):
    operation, code = value
    b.refused(code, 404, operation)


@cases("get_bucket_versioning", "get_bucket_logging", "get_bucket_notification_configuration", "get_bucket_accelerate_configuration")
def settings_of_a_new_bucket_are_empty(b, value):
    answer = b(value)
    assert not answer.keys() - {"ResponseMetadata"}, answer


@case
def owner_of_a_bucket_pays(b):
    same(b("get_bucket_request_payment")["Payer"], "BucketOwner")


@case
def owner_has_full_control_of_a_bucket(b):
    same([grant["Permission"] for grant in b("get_bucket_acl")["Grants"]], ["FULL_CONTROL"])


@case
def buckets_are_made_with_an_empty_body(b):
    for headers in ({}, {"content-type": "application/xml"}):
        status, _, _ = send(b.site, "PUT", "/case-empty-body", "", headers, b"")
        same(status, 200)


@case
def malformed_settings_of_a_new_bucket_are_refused(b):
    status, _, body = send(b.site, "PUT", "/case-malformed", "", {}, b"<CreateBucketConfiguration>")
    same((status, error_code(body)), (400, "MalformedXML"))
