"""Reads, writes, lists, copies and uploads with clients of S3 that know nothing of zarrd: botocore, s3fs, obstore, xarray,
anndata, ome-zarr, tensorstore, icechunk, DuckDB:

    s3.py URL ACCESS_KEY SECRET_KEY
"""

import datetime
import os
import pathlib
import subprocess
import sys
import urllib.error
import urllib.request

import anndata
import botocore.session
import duckdb
import duckdb_extension_httpfs
import icechunk
import numpy as np
import obstore
import ome_zarr.writer
import s3fs
import tensorstore as ts
import xarray as xr
import zarr
from botocore.config import Config
from botocore.exceptions import ClientError
from obstore.store import S3Store
from zarr.storage import ObjectStore

url, access, secret = sys.argv[1:]
done = 0


def same(found, wanted):
    global done
    assert np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted, (found, wanted)
    done += 1


def refused(code, status, action):
    try:
        action()
    except ClientError as error:
        same((error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]), (code, status))
    else:
        raise AssertionError(f"no {code}")


def client(secret=secret, access=access, **config):
    keys = {"aws_access_key_id": access, "aws_secret_access_key": secret}
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, **config)
    return botocore.session.get_session().create_client("s3", endpoint_url=url, region_name="us-east-1", config=config, **keys)


# botocore: objects, conditions, checksums.
c = client()
refused("404", 404, lambda: c.head_bucket(Bucket="lab"))
for _ in range(2):
    c.create_bucket(Bucket="lab")
c.put_object(Bucket="lab", Key="a/ü b+c", Body=b"hello", ContentType="text/csv", Metadata={"mtime": "17.5"})
found = c.get_object(Bucket="lab", Key="a/ü b+c", ChecksumMode="ENABLED")
same((found["Body"].read(), found["ContentType"], found["Metadata"], found["ChecksumCRC32"]), (b"hello", "text/csv", {"mtime": "17.5"}, "NhCmhg=="))
tag = found["ETag"]
same((tag[-3:], len(tag)), ('-1"', 36))
same(c.get_object(Bucket="lab", Key="a/ü b+c", Range="bytes=1-2")["Body"].read(), b"el")
refused("304", 304, lambda: c.get_object(Bucket="lab", Key="a/ü b+c", IfNoneMatch=tag))
refused("PreconditionFailed", 412, lambda: c.get_object(Bucket="lab", Key="a/ü b+c", IfMatch='"other"'))
refused("InvalidRange", 416, lambda: c.get_object(Bucket="lab", Key="a/ü b+c", Range="bytes=9-"))
refused("NoSuchKey", 404, lambda: c.get_object(Bucket="lab", Key="none"))
refused("NoSuchBucket", 404, lambda: c.get_object(Bucket="none", Key="none"))
refused("PreconditionFailed", 412, lambda: c.put_object(Bucket="lab", Key="a/ü b+c", Body=b"x", IfNoneMatch="*"))
refused("NoSuchKey", 404, lambda: c.put_object(Bucket="lab", Key="new", Body=b"x", IfMatch=tag))
refused("InvalidArgument", 400, lambda: c.put_object(Bucket="lab", Key="a//b", Body=b"x"))
refused("KeyTooLongError", 400, lambda: c.put_object(Bucket="lab", Key="k" * 1021, Body=b"x"))
refused("BadDigest", 400, lambda: c.put_object(Bucket="lab", Key="bad", Body=b"x", ContentMD5="AAAAAAAAAAAAAAAAAAAAAA=="))
refused("BadDigest", 400, lambda: c.put_object(Bucket="lab", Key="bad", Body=b"x", ChecksumSHA256="A" * 43 + "="))
refused("NotImplemented", 501, lambda: c.put_object(Bucket="lab", Key="bad", Body=b"x", ACL="public-read"))
refused("NotImplemented", 501, lambda: c.put_object(Bucket="lab", Key="bad", Body=b"x", Tagging="a=b"))
refused("NoSuchKey", 404, lambda: c.get_object(Bucket="lab", Key="bad"))
for algorithm in ("SHA1", "SHA256"):
    c.put_object(Bucket="lab", Key=f"sums/{algorithm}", Body=bytes(5000), ChecksumAlgorithm=algorithm)
attributes = c.get_object_attributes(Bucket="lab", Key="sums/SHA256", ObjectAttributes=["ETag", "Checksum", "ObjectSize"])
same((attributes["ObjectSize"], list(attributes["Checksum"])), (5000, ["ChecksumSHA256", "ChecksumType"]))
# A directory is no key.
c.put_object(Bucket="lab", Key="dir/", Body=b"")
refused("404", 404, lambda: c.head_object(Bucket="lab", Key="dir/"))

# Copies, listings, erasing.
c.copy_object(Bucket="Other_1", Key="copy", CopySource={"Bucket": "lab", "Key": "a/ü b+c"})
same(c.head_object(Bucket="Other_1", Key="copy")["Metadata"], {"mtime": "17.5"})
refused("InvalidRequest", 400, lambda: c.copy_object(Bucket="Other_1", Key="copy", CopySource="Other_1/copy"))
c.copy_object(Bucket="Other_1", Key="copy", CopySource="Other_1/copy", MetadataDirective="REPLACE", Metadata={"b": "1"})
same(c.head_object(Bucket="Other_1", Key="copy")["Metadata"], {"b": "1"})
refused("PreconditionFailed", 412, lambda: c.copy_object(Bucket="lab", Key="x", CopySource="Other_1/copy", CopySourceIfMatch="x"))
same([bucket["Name"] for bucket in c.list_buckets()["Buckets"]], ["Other_1", "lab"])
for name in ("l/1", "l/2/a", "l/2/b", "l/3"):
    c.put_object(Bucket="lab", Key=name, Body=name.encode())
for operation in ("list_objects_v2", "list_objects"):
    pages = c.get_paginator(operation).paginate(Bucket="lab", Prefix="l/", PaginationConfig={"PageSize": 1})
    same([key["Key"] for page in pages for key in page["Contents"]], ["l/1", "l/2/a", "l/2/b", "l/3"])
    pages = c.get_paginator(operation).paginate(Bucket="lab", Prefix="l/", Delimiter="/", PaginationConfig={"PageSize": 1})
    entries = [entry.get("Key", entry.get("Prefix")) for page in pages for entry in page.get("Contents", []) + page.get("CommonPrefixes", [])]
    same(entries, ["l/1", "l/2/", "l/3"])
same([key["Key"] for key in c.list_objects_v2(Bucket="lab", StartAfter="l/2/a")["Contents"]][:2], ["l/2/b", "l/3"])
same(c.list_objects_v2(Bucket="lab", Prefix="l/", Delimiter="/", StartAfter="l/2/a")["KeyCount"], 1)
answer = c.delete_objects(Bucket="lab", Delete={"Objects": [{"Key": name} for name in ("l/1", "none", "a//b")]})
same(([key["Key"] for key in answer["Deleted"]], answer["Errors"][0]["Code"]), (["l/1", "none"], "InvalidArgument"))
refused("BucketNotEmpty", 409, lambda: c.delete_bucket(Bucket="lab"))
c.delete_object(Bucket="Other_1", Key="copy")
same(c.list_objects_v2(Bucket="Other_1")["KeyCount"], 0)
c.delete_bucket(Bucket="Other_1")
refused("NoSuchBucket", 404, lambda: c.list_objects_v2(Bucket="Other_1"))
refused("NoSuchTagSet", 404, lambda: c.get_bucket_tagging(Bucket="lab"))
refused("NotImplemented", 501, lambda: c.put_bucket_versioning(Bucket="lab", VersioningConfiguration={"Status": "Enabled"}))

# Uploads in parts.
data = [os.urandom(5 << 20), os.urandom(5 << 20), b"end"]
for kind in ("COMPOSITE", "FULL_OBJECT"):
    upload = c.create_multipart_upload(Bucket="lab", Key="large", ChecksumAlgorithm="CRC32", ChecksumType=kind, Metadata={"k": kind})
    target = {"Bucket": "lab", "Key": "large", "UploadId": upload["UploadId"]}
    parts = []
    for number, part in enumerate(data, 1):
        put = c.upload_part(**target, PartNumber=number, Body=part, ChecksumAlgorithm="CRC32")
        parts.append({"PartNumber": number, "ETag": put["ETag"], "ChecksumCRC32": put["ChecksumCRC32"]})
    same([part["Size"] for part in c.list_parts(**target)["Parts"]], [len(part) for part in data])
    same(len(c.list_multipart_uploads(Bucket="lab")["Uploads"]), 1)
    refused("InvalidPartOrder", 400, lambda: c.complete_multipart_upload(**target, MultipartUpload={"Parts": parts[::-1]}))
    wrong = [parts[0], {**parts[1], "ETag": parts[0]["ETag"]}]
    refused("InvalidPart", 400, lambda: c.complete_multipart_upload(**target, MultipartUpload={"Parts": wrong}))
    small = [parts[0], parts[2]]
    refused("PreconditionFailed", 412, lambda: c.complete_multipart_upload(**target, MultipartUpload={"Parts": parts}, IfMatch='"x"') if kind != "COMPOSITE" else c.put_object(Bucket="lab", Key="l/3", Body=b"", IfNoneMatch="*"))
    for _ in range(2):
        completed = c.complete_multipart_upload(**target, MultipartUpload={"Parts": parts})
    found = c.get_object(Bucket="lab", Key="large", ChecksumMode="ENABLED")
    same((found["Body"].read() == b"".join(data), found["Metadata"], found["ChecksumType"], found["ETag"]), (True, {"k": kind}, kind, completed["ETag"]))
upload = c.create_multipart_upload(Bucket="lab", Key="small")
target = {"Bucket": "lab", "Key": "small", "UploadId": upload["UploadId"]}
parts = [{"PartNumber": number, "ETag": c.upload_part(**target, PartNumber=number, Body=b"1")["ETag"]} for number in (1, 2)]
refused("EntityTooSmall", 400, lambda: c.complete_multipart_upload(**target, MultipartUpload={"Parts": parts}))
refused("InvalidArgument", 400, lambda: c.upload_part(**target, PartNumber=10001, Body=b"1"))
copied = c.upload_part_copy(**target, PartNumber=1, CopySource="lab/large", CopySourceRange="bytes=0-9")["CopyPartResult"]["ETag"]
c.complete_multipart_upload(**target, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": copied}]})
same(c.get_object(Bucket="lab", Key="small")["Body"].read(), data[0][:10])
upload = c.create_multipart_upload(Bucket="lab", Key="gone")
target["Key"], target["UploadId"] = "gone", upload["UploadId"]
c.abort_multipart_upload(**target)
refused("NoSuchUpload", 404, lambda: c.upload_part(**target, PartNumber=1, Body=b"1"))

# Presigned URLs, and signatures that do not match.
def fetched(address, **options):
    try:
        with urllib.request.urlopen(urllib.request.Request(address, **options)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read().partition(b"<Code>")[2].partition(b"<")[0]


get = c.generate_presigned_url("get_object", Params={"Bucket": "lab", "Key": "l/3"})
same(fetched(get), (200, b"l/3"))
same(fetched(get.replace("l/3", "l/2/a")), (403, b"SignatureDoesNotMatch"))
same(fetched(get, method="DELETE"), (403, b"SignatureDoesNotMatch"))
put = c.generate_presigned_url("put_object", Params={"Bucket": "lab", "Key": "presigned"})
same(fetched(put, method="PUT", data=b"x", headers={"Content-Type": ""})[0], 200)
same(fetched(put, method="PUT", data=b"", headers={"Content-Type": "", "x-amz-copy-source": "lab/large"}), (403, b"AccessDenied"))
once = c.generate_presigned_url("put_object", Params={"Bucket": "lab", "Key": "presigned", "IfNoneMatch": "*"})
same(fetched(once, method="PUT", data=b"y", headers={"Content-Type": "", "If-None-Match": "*"}), (412, b"PreconditionFailed"))
same(fetched(once, method="PUT", data=b"y", headers={"Content-Type": ""}), (403, b"SignatureDoesNotMatch"))
refused("SignatureDoesNotMatch", 403, lambda: client(secret="other").list_buckets())
refused("InvalidAccessKeyId", 403, lambda: client(access="0" * 32).list_buckets())

# s3fs, obstore, xarray.
fs = s3fs.S3FileSystem(endpoint_url=url, key=access, secret=secret, use_listings_cache=False)
fs.pipe_file("lab/fs/a", b"1")
fs.pipe_file("lab/fs/large", bytes(200 << 20))
same((fs.ls("lab/fs"), fs.size("lab/fs/large"), fs.isdir("lab/fs"), fs.exists("lab/none")), (["lab/fs/a", "lab/fs/large"], 200 << 20, True, False))
fs.mv("lab/fs/a", "lab/fs/b")
fs.rm("lab/fs", recursive=True)
same(fs.exists("lab/fs"), False)
keys_of_obstore = {"endpoint": url, "region": "us-east-1", "access_key_id": access, "secret_access_key": secret, "client_options": {"allow_http": True}}
store = S3Store("lab", **keys_of_obstore)
obstore.put(store, "o/large", bytes(12 << 20))
put = obstore.put(store, "o/a", b"1", mode="create", attributes={"Content-Type": "text/plain"})
obstore.put(store, "o/a", b"2", mode={"e_tag": put["e_tag"]})
same((bytes(obstore.get(store, "o/a").bytes()), store.head("o/large")["size"]), (b"2", 12 << 20))
store.delete(["o/a", "o/large"])
same([meta["path"] for batch in store.list("o") for meta in batch], [])
options = {"key": access, "secret": secret, "endpoint_url": url}
dataset = xr.Dataset({"t": (("time", "x"), np.arange(12.0).reshape(3, 4))}, coords={"time": [0, 1, 2]})
for factor in (1, 2):
    (dataset * factor).to_zarr("s3://lab/xarray.zarr", mode="w", storage_options=options)
dataset.assign_coords(time=[3, 4, 5]).to_zarr("s3://lab/xarray.zarr", append_dim="time", storage_options=options)
with xr.open_zarr("s3://lab/xarray.zarr", storage_options=options) as opened:
    same(opened["t"].values, np.concatenate([np.arange(12.0) * 2, np.arange(12.0)]).reshape(6, 4))

region = xr.Dataset({"t": (("time", "x"), np.full((2, 4), 7.0))})
region.to_zarr("s3://lab/xarray.zarr", region={"time": slice(1, 3), "x": slice(0, 4)}, storage_options=options)
with xr.open_zarr("s3://lab/xarray.zarr", storage_options=options) as opened:
    same(opened["t"].values[:4].sum(axis=1), np.array([12.0, 28.0, 28.0, 6.0]))

# anndata and ome-zarr, over obstore.
table = anndata.AnnData(np.arange(12.0, dtype="float32").reshape(4, 3), obs={"kind": ["a", "b", "a", "b"]})
for _ in range(2):
    table.write_zarr(ObjectStore(S3Store("lab", prefix="table.zarr", **keys_of_obstore)))
same(anndata.read_zarr(ObjectStore(S3Store("lab", prefix="table.zarr", **keys_of_obstore))).obs["kind"].tolist(), ["a", "b", "a", "b"])
image = np.arange(2 * 64 * 64, dtype="uint16").reshape(2, 64, 64)
for _ in range(2):
    group = zarr.open_group(ObjectStore(S3Store("lab", prefix="image.zarr", **keys_of_obstore)), mode="w")
    ome_zarr.writer.write_image(image, group, axes="zyx")
same(zarr.open_array(ObjectStore(S3Store("lab", prefix="image.zarr", **keys_of_obstore)), path="s0", mode="r")[:], image)

# tensorstore takes keys from the environment.
os.environ.update(AWS_ACCESS_KEY_ID=access, AWS_SECRET_ACCESS_KEY=secret)
kvstore = {"driver": "s3", "bucket": "lab", "endpoint": url, "aws_region": "us-east-1", "path": "tensorstore/", "host_header": url.removeprefix("http://")}
spec = {"driver": "zarr3", "kvstore": kvstore, "metadata": {"shape": [500, 300], "data_type": "float32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [100, 100]}}}}
values = np.arange(150_000, dtype="float32").reshape(500, 300)
for _ in range(2):
    array = ts.open(spec, create=True, delete_existing=True).result()
    array.write(values).result()
same(ts.open({"driver": "zarr3", "kvstore": kvstore}).result().read().result(), values)
# Without this variable, it writes to endpoints other than Amazon's without conditions, and loses changes.
WRITER = """
import sys, tensorstore as ts
array = ts.open({"driver": "zarr3", "kvstore": eval(sys.argv[1])}).result()
for row in range(int(sys.argv[2]), 500, 2):
    array[row].write(-1.0).result()
"""
environment = os.environ | {"TENSORSTORE_S3_USE_CONDITIONAL_WRITE": "1"}
writers = [subprocess.Popen([sys.executable, "-c", WRITER, repr(kvstore), str(first)], env=environment) for first in (0, 1)]
same([writer.wait() for writer in writers], [0, 0])
same(ts.open({"driver": "zarr3", "kvstore": kvstore}).result().read().result(), np.full((500, 300), -1.0, dtype="float32"))
nested = {"driver": "ocdbt", "base": {**kvstore, "path": "ocdbt/"}}
array = ts.open({**spec, "kvstore": nested}, create=True).result()
array.write(values).result()
same(ts.open({"driver": "zarr3", "kvstore": nested}).result().read().result(), values)
# icechunk: commits, a conflict of two writers, time travel, expiry, garbage collection.
storage = icechunk.s3_storage(bucket="lab", prefix="icechunk", endpoint_url=url, region="us-east-1", access_key_id=access, secret_access_key=secret, allow_http=True, force_path_style=True)
repository = icechunk.Repository.create(storage)
session = repository.writable_session("main")
zarr.group(session.store).create_array("a", shape=(10,), chunks=(5,), dtype="i4")[:] = 1
first = session.commit("one")
one, other = repository.writable_session("main"), repository.writable_session("main")
zarr.open_group(one.store)["a"][:] = 2
zarr.open_group(other.store)["a"][:] = 3
one.commit("two")
try:
    other.commit("three")
except icechunk.ConflictError:
    done += 1
now, then = repository.readonly_session("main"), repository.readonly_session(snapshot_id=first)
same([zarr.open_group(session.store, mode="r")["a"][0] for session in (now, then)], [2, 1])
moment = datetime.datetime.now(datetime.timezone.utc)
same(len(repository.expire_snapshots(older_than=moment)), 1)
same(repository.garbage_collect(moment).delete_errors, [])

# DuckDB writes and reads Parquet.
connection = duckdb.connect()
folder = pathlib.Path(duckdb_extension_httpfs.__file__).parent
connection.execute(f"LOAD '{next(folder.rglob('httpfs.duckdb_extension'))}'")
connection.execute(f"CREATE SECRET (TYPE s3, KEY_ID '{access}', SECRET '{secret}', REGION 'us-east-1', ENDPOINT '{url.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false)")
connection.execute("COPY (SELECT range AS i FROM range(1000000)) TO 's3://lab/duckdb/t.parquet'")
same(connection.execute("SELECT count(*), sum(i) FROM 's3://lab/duckdb/*.parquet'").fetchall(), [(1_000_000, 499_999_500_000)])
print(f"{done} results as expected")
