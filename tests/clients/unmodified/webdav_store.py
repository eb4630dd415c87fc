"""zarr-python's own tests of stores, for its ObjectStore over obstore's HTTPStore at the root of `--dav-listen`:

    URL=http://127.0.0.1:8001/ pytest webdav_store.py
"""

import os
import urllib.request

import pytest
from obstore.store import HTTPStore
from obstore_suite import ObstoreSuite

URL = os.environ["URL"]


class TestAtTheRoot(ObstoreSuite):
    @pytest.fixture
    def store_kwargs(self):
        request = urllib.request.Request(f"{URL}?confirm=all", method="DELETE")
        urllib.request.urlopen(request).read()
        return {"store": HTTPStore.from_url(URL, client_options={"allow_http": True}), "read_only": False}
