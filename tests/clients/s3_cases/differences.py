"""The cases in which servers differ from S3, by name: the code with which the server refuses, if it does, and the reason."""

# A case that passes at times.
ANY = "any"

MADE = None, "buckets are made by the first change below their name"
NAMES = None, "a bucket is the first segment of a key, whose names are not those of hosts"
KEYS = "InvalidArgument", "keys have no empty segment, no `.` and `..`, and no control characters"
DIRECTORIES = None, "a key that ends in `/` is none: setting it to nothing succeeds and stores nothing"
DELIMITERS = "NotImplemented", "the only delimiter is `/`"
YOUNG = ANY, "dates of values that are younger than five seconds fulfil no condition: another value could have the same"

ZARRD = {
    "attributes_are_shown": (None, "entity tags have quotes everywhere"),
    "body_without_a_length_is_refused": (None, "without a length a request of HTTP/1.1 has no body, which is the value"),
    "control_characters_are_delimiters": DELIMITERS,
    "empty_object_named_like_a_directory_is_listed": DIRECTORIES,
    "name_has_1024_bytes": ("KeyTooLongError", "the key has 1,024 bytes with its bucket and the `/` between them"),
    "name_has_any_segments": KEYS,
    "nothing_is_written_to_a_missing_bucket": MADE,
    "object_named_like_a_directory_is_listed": ("InvalidArgument", "a key that ends in `/` has no content"),
    "other_delimiters_fold_names": DELIMITERS,
    "other_names_are_no_buckets": NAMES,
    "parts_of_a_completed_object_are_read": ("InvalidRange", "a completed object is one value, and has one part"),
    "tag_is_the_md5_of_the_value": (None, "the entity tag is the version"),
    "tag_of_joined_parts_has_their_number": (None, "the entity tag is the version"),
    "upload_begins_in_a_bucket_that_exists": MADE,
    "value_is_copied_by_its_time": YOUNG,
    "value_is_read_if_it_has_not_changed": YOUNG,
    "value_that_has_not_changed_is_not_sent": YOUNG,
}

# moto is made for programs that are right: it checks little.
UNCHECKED = None, "moto does not check it"
FAILS = None, "moto answers 500, or closes the connection"
IGNORED = None, "moto ignores it"
UNSIGNED = None, "moto verifies no signatures"
UNSHOWN = None, "moto leaves it out of the response"

MOTO = {
    **dict.fromkeys(
        [
            "at_most_a_thousand_objects_are_erased",
            "checksum_follows_a_framed_body",
            "checksum_of_the_other_kind_is_refused",
            "control_characters_are_no_metadata",
            "hash_of_the_body_is_compared",
            "joined_parts_with_another_checksum_are_refused",
            "larger_limits_are_a_thousand",
            "list_of_objects_is_compared_with_its_md5",
            "list_of_objects_without_a_checksum_is_refused",
            "longer_names_are_refused",
            "malformed_checksums_are_refused",
            "malformed_limits_are_refused[99999999999999999999]",
            "malformed_md5_is_refused",
            "malformed_ranges_of_the_source_are_refused",
            "malformed_lengths_are_refused",
            "body_without_a_length_is_refused",
            "md5_is_compared",
            "metadata_have_2048_bytes",
            "names_with_other_characters_are_no_buckets",
            "object_is_compared_with_its_announced_size",
            "part_is_not_named_twice",
            "part_with_another_checksum_is_not_joined",
            "part_with_another_checksum_is_refused",
            "range_behind_the_end_of_the_source_is_refused",
            "two_checksums_are_refused",
            "unknown_directives_are_refused",
            "unknown_encodings_are_refused",
            "unknown_tokens_are_refused",
            "unknown_versions_of_listings_are_refused",
            "upload_of_another_object_is_refused",
            "value_with_another_checksum_is_refused",
        ]
        + [
            f"other_names_are_no_buckets[{name}]"
            for name in ("_ab", "a_b", "-ab", "ab-", "a..b", "a.-b", "Abc", "192.168.5.123")
        ],
        UNCHECKED,
    ),
    **dict.fromkeys(
        [
            "aborted_upload_is_gone",
            "malformed_limits_are_refused[x]",
            "malformed_limits_are_refused[-1]",
            "malformed_lists_of_objects_are_refused",
            "malformed_lists_of_parts_are_refused[b'']",
            "malformed_lists_of_parts_are_refused[b'<CompleteMultipartUpload>']",
            "malformed_numbers_of_parts_are_refused",
            "malformed_ranges_are_ignored[bytes]",
            "malformed_settings_of_a_new_bucket_are_refused",
            "malformed_sources_are_refused",
            "other_methods_are_refused[PATCH]",
        ],
        FAILS,
    ),
    **dict.fromkeys(
        [
            "copied_part_needs_its_condition",
            "copy_does_not_replace_a_value_if_there_is_one",
            "erasing_quietly_shows_only_errors",
            "folded_names_of_uploads_have_pages",
            "limit_of_zero_lists_no_uploads",
            "malformed_ranges_are_ignored[items=0-1]",
            "names_are_encoded_if_requested[v1]",
            "names_of_uploads_are_encoded_if_requested",
            "names_of_uploads_are_folded",
            "names_with_underscores_are_folded[v1]",
            "pages_below_a_prefix_fold_names[v1]",
            "prefixes_count_as_entries_of_pages[v1]",
            "some_of_several_values_are_erased_by_their_tags",
            "upload_replaces_a_value_if_its_tag_matches",
            "uploads_are_listed_below_a_prefix",
            "uploads_are_listed_in_pages",
            "value_is_copied_by_its_time",
            "value_is_not_copied_if_its_tag_differs",
        ],
        IGNORED,
    ),
    **dict.fromkeys(
        [
            "another_secret_is_refused",
            "malformed_authorization_is_refused",
            "presigned_url_expires",
            "presigned_url_is_for_its_headers",
            "presigned_url_is_for_its_method",
            "presigned_url_is_for_its_object",
            "presigned_url_is_for_its_parameters",
            "presigned_url_lasts_at_most_a_week",
            "request_of_another_time_is_refused",
            "signatures_of_version_2_are_refused",
            "two_signatures_are_refused",
            "unknown_access_key_is_refused",
            "unsigned_request_does_not_choose_the_headers_of_the_response",
        ],
        UNSIGNED,
    ),
    **dict.fromkeys(
        [
            "checksum_is_compared_and_shown",
            "errors_name_their_request",
            "joined_parts_have_the_checksum_of_the_value",
            "joined_parts_have_the_checksum_of_their_checksums",
            "listing_begins_after_a_missing_name[v1]",
            "marker_need_not_exist",
            "next_marker_is_the_last_entry",
            "owner_of_a_bucket_pays",
            "owners_are_shown_if_requested",
            "parts_of_a_completed_object_are_read",
            "token_is_stronger_than_the_name_to_start_after",
        ],
        UNSHOWN,
    ),
    "concurrent_writers_leave_one_value": (ANY, "moto answers 500 to writers at the same time"),
    "one_of_several_writers_makes_a_value": (ANY, "moto checks the condition before it sets the value"),
    "buckets_are_listed_by_name_with_their_times": (None, "moto does not sort them"),
    "buckets_have_pages_and_prefixes": (None, "moto has no pages of buckets"),
    "matching_tag_is_stronger_than_the_time": (None, "moto lets the time fail where the tag matches"),
    "other_numbers_of_parts_are_refused[0]": (None, "moto answers 404 to numbers below 1"),
    "other_numbers_of_parts_are_refused[-1]": (None, "moto answers 404 to numbers below 1"),
    "parts_out_of_order_are_not_completed": (None, "moto checks the sizes of the parts before their order"),
    "upload_of_a_missing_part_copies_nothing": (None, "moto gives the error no code"),
    "uploads_are_listed_by_key": (None, "moto does not sort them"),
    "value_is_read_if_its_tag_matches": (None, "moto knows no lists of tags"),
}
