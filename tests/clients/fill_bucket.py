"""Copies files into a new bucket: fill_bucket.py s3|azure ENDPOINT DIR

The files below DIR become the objects of the bucket or container `bucket`.
"""

import base64
import email.utils
import hashlib
import hmac
import pathlib
import sys
import urllib.request

import obstore
from obstore.store import AzureStore, S3Store

KIND, ENDPOINT, DIR = sys.argv[1:]
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
    put("/bucket", {})
    store = S3Store(
        "bucket",
        endpoint=ENDPOINT,
        region="us-east-1",
        access_key_id="AKIATEST",
        secret_access_key="secret",
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
for path in files:
    obstore.put(store, path.relative_to(root).as_posix(), path.read_bytes())
print(len(files))
