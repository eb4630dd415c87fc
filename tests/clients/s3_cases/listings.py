"""Listings of objects, of both versions: delimiters, prefixes, pages, markers, encodings."""

from urllib.parse import quote

from harness import case, cases, error_code, same

VERSIONS = ("v1", "v2")
OPERATIONS = {"v1": "list_objects", "v2": "list_objects_v2"}
NAMES = ("bar", "baz", "cab", "foo")
TREE = ("asdf", "boo/bar", "boo/baz/xyzzy", "cquux/bla", "cquux/thud")


def listed(b, version, **options):
    """The keys and the prefixes of a page."""
    return entries(b(OPERATIONS[version], **options))


def entries(answer):
    keys = [entry["Key"] for entry in answer.get("Contents", [])]
    return keys, [entry["Prefix"] for entry in answer.get("CommonPrefixes", [])]


def pages(b, version, **options):
    """All pages of a listing."""
    found = []
    while True:
        answer = b(OPERATIONS[version], **options)
        found.append(entries(answer))
        if not answer["IsTruncated"]:
            return found
        if version == "v1":
            options["Marker"] = answer.get("NextMarker") or found[-1][0][-1]
        else:
            options["ContinuationToken"] = answer["NextContinuationToken"]


@cases(*VERSIONS)
def empty_bucket_lists_nothing(b, value):
    answer = b(OPERATIONS[value])
    same((entries(answer), answer["IsTruncated"]), (([], []), False))


@cases(*VERSIONS)
def buckets_have_their_own_objects(b, value):
    b.fill("a")
    same(listed(b, value, Bucket=b.another()), ([], []))


@cases(*VERSIONS)
def missing_bucket_is_not_listed(b, value):
    b.refused("NoSuchBucket", 404, OPERATIONS[value], Bucket="case-missing")


@cases(*VERSIONS)
def pages_have_the_requested_size(b, value):
    b.fill("foo", "bar", "baz")
    same(pages(b, value, MaxKeys=2), [(["bar", "baz"], []), (["foo"], [])])


@cases(*VERSIONS)
def delimiter_folds_names(b, value):
    b.fill("foo/bar", "foo/baz/xyzzy", "quux/thud", "asdf")
    answer = b(OPERATIONS[value], Delimiter="/")
    same((answer["Delimiter"], entries(answer)), ("/", (["asdf"], ["foo/", "quux/"])))
    if value == "v2":
        same(answer["KeyCount"], 3)


@cases(*VERSIONS)
def prefixes_count_as_entries_of_pages(b, value):
    b.fill(*TREE)
    same(pages(b, value, Delimiter="/", MaxKeys=1), [(["asdf"], []), ([], ["boo/"]), ([], ["cquux/"])])
    same(pages(b, value, Delimiter="/", MaxKeys=2), [(["asdf"], ["boo/"]), ([], ["cquux/"])])


@cases(*VERSIONS)
def pages_below_a_prefix_fold_names(b, value):
    b.fill(*TREE)
    same(pages(b, value, Delimiter="/", Prefix="boo/", MaxKeys=1), [(["boo/bar"], []), ([], ["boo/baz/"])])
    same(pages(b, value, Delimiter="/", Prefix="boo/", MaxKeys=2), [(["boo/bar"], ["boo/baz/"])])


@cases(*VERSIONS)
def names_with_underscores_are_folded(b, value):
    b.fill("_obj1_", "_under1/bar", "_under1/baz/xyzzy", "_under2/thud", "_under2/bla")
    same(pages(b, value, Delimiter="/", MaxKeys=1), [(["_obj1_"], []), ([], ["_under1/"]), ([], ["_under2/"])])
    same(pages(b, value, Delimiter="/", Prefix="_under1/"), [(["_under1/bar"], ["_under1/baz/"])])


@cases(*VERSIONS)
def object_named_like_a_directory_is_listed(b, value):
    b("put_object", Key="asdf/", Body=b"x")
    same(listed(b, value, Delimiter="/", Prefix="asdf/"), (["asdf/"], []))


@cases(*VERSIONS)
def empty_object_named_like_a_directory_is_listed(b, value):
    b("put_object", Key="asdf/", Body=b"")
    same(listed(b, value, Delimiter="/", Prefix="asdf/"), (["asdf/"], []))


@cases("a", "%", " ", ".")
def other_delimiters_fold_names(b, value):
    b.fill(*(f"b{value}r", f"b{value}z", f"c{value}b", "foo"))
    for version in VERSIONS:
        answer = b(OPERATIONS[version], Delimiter=value)
        same((answer["Delimiter"], entries(answer)), (value, (["foo"], [f"b{value}", f"c{value}"])))


@cases(*VERSIONS)
def delimiter_of_no_name_folds_nothing(b, value):
    b.fill(*NAMES)
    same(listed(b, value, Delimiter="/"), (list(NAMES), []))


@cases(*VERSIONS)
def empty_delimiter_folds_nothing(b, value):
    b.fill("a/b", *NAMES)
    answer = b(OPERATIONS[value], Delimiter="")
    same((answer.get("Delimiter", ""), entries(answer)), ("", (["a/b", *NAMES], [])))


@cases(*VERSIONS)
def control_characters_are_delimiters(b, value):
    b.fill(*NAMES)
    same(listed(b, value, Delimiter="\n"), (list(NAMES), []))


@cases(*VERSIONS)
def prefix_selects_names(b, value):
    b.fill("foo/bar", "foo/baz", "quux")
    answer = b(OPERATIONS[value], Prefix="foo/")
    same((answer["Prefix"], entries(answer)), ("foo/", (["foo/bar", "foo/baz"], [])))


@cases(*VERSIONS)
def prefix_ends_anywhere(b, value):
    b.fill("bar", "baz", "foo")
    same(listed(b, value, Prefix="ba"), (["bar", "baz"], []))


@cases(*VERSIONS)
def empty_prefix_selects_everything(b, value):
    b.fill("foo/bar", "quux")
    for options in ({}, {"Prefix": ""}):
        answer = b(OPERATIONS[value], **options)
        same((answer.get("Prefix", ""), entries(answer)), ("", (["foo/bar", "quux"], [])))


@cases("d", "\n", "/", "foo//")
def prefix_of_no_name_selects_nothing(b, value):
    b.fill("foo/bar", "foo/baz", "quux")
    for version in VERSIONS:
        answer = b(OPERATIONS[version], Prefix=value)
        same(entries(answer), ([], []))
        # It is encoded as names are, which the client decodes in one of the versions.
        assert answer["Prefix"] in (value, quote(value)), answer["Prefix"]


@cases(*VERSIONS)
def prefix_and_delimiter_select_and_fold(b, value):
    b.fill("foo/bar", "foo/baz/xyzzy", "quux/thud", "asdf")
    same(listed(b, value, Prefix="foo/", Delimiter="/"), (["foo/bar"], ["foo/baz/"]))
    same(listed(b, value, Prefix="foo", Delimiter="/"), ([], ["foo/"]))
    same(listed(b, value, Prefix="d", Delimiter="/"), ([], []))
    same(listed(b, value, Prefix="/", Delimiter="/"), ([], []))


@cases(*VERSIONS)
def limit_of_one_truncates(b, value):
    b.fill("bar", "baz", "foo")
    answer = b(OPERATIONS[value], MaxKeys=1)
    same((answer["IsTruncated"], answer["MaxKeys"], entries(answer)[0]), (True, 1, ["bar"]))
    rest = {"Marker": "bar"} if value == "v1" else {"StartAfter": "bar"}
    answer = b(OPERATIONS[value], **rest)
    same((answer["IsTruncated"], entries(answer)[0]), (False, ["baz", "foo"]))


@cases(*VERSIONS)
def limit_of_zero_lists_nothing(b, value):
    b.fill("bar", "baz")
    answer = b(OPERATIONS[value], MaxKeys=0)
    same((answer["IsTruncated"], entries(answer)), (False, ([], [])))


@cases(*VERSIONS)
def default_limit_is_a_thousand(b, value):
    b.fill("bar", "baz")
    answer = b(OPERATIONS[value])
    same((answer["IsTruncated"], answer["MaxKeys"]), (False, 1000))


@cases(*VERSIONS)
def larger_limits_are_a_thousand(b, value):
    for number in range(0, 1001):
        b("put_object", Key=f"{number:04}", Body=b"")
    answer = b(OPERATIONS[value], MaxKeys=5000)
    same((answer["IsTruncated"], len(entries(answer)[0])), (True, 1000))


@cases("x", "-1", "99999999999999999999")
def malformed_limits_are_refused(b, value):
    for version in ("", "list-type=2&"):
        status, _, body = b.raw("GET", query=f"{version}max-keys={value}")
        same((status, error_code(body)), (400, "InvalidArgument"))


@cases("v0", "3", "x")
def unknown_versions_of_listings_are_refused(b, value):
    status, _, body = b.raw("GET", query=f"list-type={value}")
    same((status, error_code(body)), (400, "InvalidArgument"))


@cases("xyzzy", "")
def marker_need_not_exist(b, value):
    b.fill("bar", "baz", "foo", "quux")
    expected = [] if value else ["bar", "baz", "foo", "quux"]
    answer = b("list_objects", Marker=value)
    same((answer["Marker"], entries(answer)[0]), (value, expected))


@cases(*VERSIONS)
def listing_begins_after_a_missing_name(b, value):
    b.fill("bar", "baz", "foo", "quux")
    name = "Marker" if value == "v1" else "StartAfter"
    answer = b(OPERATIONS[value], **{name: "blah"})
    same((answer[name], entries(answer)[0]), ("blah", ["foo", "quux"]))
    same(listed(b, value, **{name: "aaa"})[0], ["bar", "baz", "foo", "quux"])
    same(listed(b, value, **{name: "\n"})[0], ["bar", "baz", "foo", "quux"])
    same(listed(b, value, **{name: "zzz"})[0], [])


@case
def next_marker_is_the_last_entry(b):
    b.fill(*TREE)
    answer = b("list_objects", Delimiter="/", MaxKeys=2)
    same(answer["NextMarker"], "boo/")
    same(b("list_objects", Delimiter="/", MaxKeys=1, Prefix="boo/")["NextMarker"], "boo/bar")


@case
def token_is_stronger_than_the_name_to_start_after(b):
    b.fill("bar", "baz", "foo", "quux")
    first = b("list_objects_v2", StartAfter="bar", MaxKeys=1)
    same(entries(first)[0], ["baz"])
    token = first["NextContinuationToken"]
    answer = b("list_objects_v2", StartAfter="bar", ContinuationToken=token)
    same((answer["ContinuationToken"], answer["StartAfter"]), (token, "bar"))
    same(entries(answer)[0], ["foo", "quux"])


@case
def unknown_tokens_are_refused(b):
    b.refused("InvalidArgument", 400, "list_objects_v2", ContinuationToken="?")


@cases(*VERSIONS)
def names_are_encoded_if_requested(b, value):
    b.fill("asdf+b", "foo+1/bar", "foo/bar/xyzzy", "quux ab/thud", "ü", "<&>")
    answer = b(OPERATIONS[value], Delimiter="/", EncodingType="url")
    same(answer["EncodingType"], "url")
    keys, prefixes = entries(answer)
    same(sorted(keys), ["%3C%26%3E", "%C3%BC", "asdf%2Bb"])
    assert prefixes in (["foo%2B1/", "foo/", "quux%20ab/"], ["foo%2B1/", "foo/", "quux+ab/"]), prefixes


@cases(*VERSIONS)
def encoded_names_are_decoded_by_the_client(b, value):
    names = sorted(["a b", "a+b", "a%2Fb", "ü/ä", "<&>\"'", "a?b#c"])
    b.fill(*names)
    same(listed(b, value)[0], names)


@cases(*VERSIONS)
def unknown_encodings_are_refused(b, value):
    version = "" if value == "v1" else "list-type=2&"
    status, _, body = b.raw("GET", query=f"{version}encoding-type=base64")
    same((status, error_code(body)), (400, "InvalidArgument"))


@cases(*VERSIONS)
def names_are_sorted_by_their_bytes(b, value):
    names = ["A", "Z", "_", "a", "a!", "a/b", "a0", "z", "é", "ﬁ", "😀"]
    b.fill(*reversed(names))
    same(listed(b, value)[0], names)


@cases(*VERSIONS)
def entries_describe_their_objects(b, value):
    b.fill("bar", "foo/baz")
    for entry in b(OPERATIONS[value])["Contents"]:
        head = b("head_object", Key=entry["Key"])
        same(entry["ETag"], head["ETag"])
        same(entry["Size"], head["ContentLength"])
        same(entry["LastModified"].replace(microsecond=0), head["LastModified"])
        same(entry["StorageClass"], "STANDARD")


@case
def owners_are_shown_if_requested(b):
    b.fill("a")
    assert "ID" in b("list_objects")["Contents"][0]["Owner"]
    assert "Owner" not in b("list_objects_v2")["Contents"][0]
    assert "Owner" not in b("list_objects_v2", FetchOwner=False)["Contents"][0]
    assert "ID" in b("list_objects_v2", FetchOwner=True)["Contents"][0]["Owner"]


@case
def objects_without_versioning_have_one_version(b):
    b.fill("a", "b/c")
    answer = b("list_object_versions", Delimiter="/")
    same([(entry["Key"], entry["VersionId"], entry["IsLatest"]) for entry in answer["Versions"]], [("a", "null", True)])
    same(entries(answer)[1], ["b/"])
    assert not answer.get("DeleteMarkers")


@case
def versions_have_pages(b):
    b.fill("a", "b", "c")
    first = b("list_object_versions", MaxKeys=2)
    same([entry["Key"] for entry in first["Versions"]], ["a", "b"])
    rest = b("list_object_versions", KeyMarker=first["NextKeyMarker"], VersionIdMarker=first.get("NextVersionIdMarker", ""))
    same([entry["Key"] for entry in rest["Versions"]], ["c"])


@cases(*VERSIONS)
def listing_follows_changes(b, value):
    b.fill("a", "b")
    b("delete_object", Key="a")
    b.fill("c")
    same(listed(b, value)[0], ["b", "c"])
