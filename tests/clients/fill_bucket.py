"""Copies files into a bucket: fill_bucket.py s3|azure ENDPOINT DIR [PREFIX ACCESS_KEY SECRET]

The files below DIR become the objects of the bucket or container `bucket`, with names that begin with PREFIX. The bucket
is new, unless there is a key for it.
"""

import base64
import email.utils
import hashlib
import hmac
import pathlib
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import obstore
from obstore.store import AzureStore, S3Store

KIND, ENDPOINT, DIR, *REST = sys.argv[1:]
PREFIX, ACCESS_KEY, SECRET = REST or ("", "AKIATEST", "secret")
# Those of every emulator of Azure's storage.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def put(path, headers):
    urllib.request.urlopen(urllib.request.Request(ENDPOINT + path, method="PUT", headers=headers)).close()


def create_container():
    fields = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed = "PUT" + "\n" * 12 + "".join(f"{name}:{value}\n" for name, value in fields.items())
    signed += f"/{ACCOUNT}/{ACCOUNT}/bucket\nrestype:container"
    mac = hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)
    authorization = f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}"
    put(f"/{ACCOUNT}/bucket?restype=container", fields | {"Authorization": authorization})


if KIND == "s3":
    if not REST:
        put("/bucket", {})
    store = S3Store(
        "bucket",
        endpoint=ENDPOINT,
        region="us-east-1",
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
else:
    create_container()
    store = AzureStore(
        "bucket",
        account_name=ACCOUNT,
        account_key=KEY,
        endpoint=f"{ENDPOINT}/{ACCOUNT}",
        client_options={"allow_http": True},
    )
root = pathlib.Path(DIR)
files = [path for path in root.rglob("*") if path.is_file()]
with ThreadPoolExecutor(8) as threads:
    # Reads the results, so that a failure is one of the script.
    list(threads.map(lambda path: obstore.put(store, PREFIX + path.relative_to(root).as_posix(), path.read_bytes()), files))
print(len(files))
