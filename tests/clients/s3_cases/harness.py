"""What the cases share: their table, a bucket for each, clients, and requests that no client sends."""

import base64
import datetime
import functools
import hashlib
import hmac
import http.client
import itertools
import re
import urllib.parse
import zlib

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

REGION = "us-east-1"
MIB = 1 << 20
# All cases by their names, in the order of their definition.
CASES = {}
numbers = itertools.count()


def case(function):
    """Makes a case of a function."""
    assert function.__name__ not in CASES, function.__name__
    CASES[function.__name__] = function
    return function


def cases(*values):
    """Makes a case of a function for each of the values."""

    def decorate(function):
        for value in values:
            name = f"{function.__name__}[{value}]"
            assert name not in CASES, name
            CASES[name] = functools.partial(function, value=value)
        return function

    return decorate


def same(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


class Site:
    """A server, and a pair of keys."""

    def __init__(self, url, access, secret):
        self.url, self.access, self.secret = url, access, secret
        self.s3 = self.client()

    def client(self, access=None, secret=None, **config):
        retries = {"total_max_attempts": 1}
        config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries=retries, **config)
        keys = {"aws_access_key_id": access or self.access, "aws_secret_access_key": secret or self.secret}
        return boto3.client("s3", endpoint_url=self.url, region_name=REGION, config=config, **keys)


class Bucket:
    """What a case gets: a new bucket, and the means to use it."""

    def __init__(self, site):
        self.site, self.s3 = site, site.s3
        self.name = self.another()

    def another(self):
        """Makes one more bucket, and returns its name."""
        name = f"case-{next(numbers):04}"
        self.s3.create_bucket(Bucket=name)
        return name

    def __call__(self, operation, **arguments):
        """Does an operation, of this bucket unless another one is named."""
        if operation != "list_buckets":
            arguments.setdefault("Bucket", self.name)
        return getattr(self.s3, operation)(**arguments)

    def fill(self, *keys):
        """Makes objects whose values are their names."""
        for key in keys:
            self("put_object", Key=key, Body=key.encode())

    def get(self, key, **options):
        """The value of an object."""
        return self("get_object", Key=key, **options)["Body"].read()

    def refused(self, code, status, operation, **arguments):
        """Does an operation that fails. The code is one or more, or `None` where the response has no body."""
        try:
            self(operation, **arguments)
        except ClientError as error:
            found = error.response["Error"]["Code"]
            same(error.response["ResponseMetadata"]["HTTPStatusCode"], status)
            codes = (str(status),) if code is None else (code,) if isinstance(code, str) else code
            assert found in codes, f"{found} instead of {code}"
            return error.response
        raise AssertionError(f"{operation} succeeds instead of {code}")

    def raw(self, method, key="", query="", headers=None, body=b"", **options):
        """Sends a signed request; returns its status, its headers and its body."""
        path = "/" + urllib.parse.quote(self.name) + ("/" + urllib.parse.quote(key) if key else "")
        return send(self.site, method, path, query, headers or {}, body, **options)

    def presigned(self, operation, expires=600, **arguments):
        return self.s3.generate_presigned_url(operation, Params={"Bucket": self.name, **arguments}, ExpiresIn=expires)


def error_code(body):
    """The code of an error's body; `None` if it is none."""
    found = re.search(rb"<Code>(\w+)</Code>", body)
    return found and found[1].decode()


def send(site, method, path, query, headers, body, moment=None, secret=None, signs=True, length=True):
    """Sends a request that is signed by code of its own."""
    moment = moment or datetime.datetime.now(datetime.timezone.utc)
    host = urllib.parse.urlsplit(site.url).netloc
    headers = {"host": host, **{name.lower(): value for name, value in headers.items()}}
    if signs:
        headers.setdefault("x-amz-content-sha256", hashlib.sha256(body).hexdigest())
        headers.setdefault("x-amz-date", moment.strftime("%Y%m%dT%H%M%SZ"))
        headers["authorization"] = authorization(site, method, path, query, headers, moment, secret or site.secret)
    if length:
        headers.setdefault("content-length", str(len(body)))
    return fetch(site.url + path + ("?" + query if query else ""), method, headers, body)


def fetch(url, method="GET", headers=None, body=b""):
    """Sends a request with these headers and no other; returns its status, its headers and its body."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.putrequest(method, parts._replace(scheme="", netloc="").geturl(), skip_host=True, skip_accept_encoding=True)
        for name, value in ({"host": parts.netloc} | (headers or {})).items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, fields, answer.read()
    finally:
        connection.close()


def authorization(site, method, path, query, headers, moment, secret):
    """The header with a signature of version 4 that covers all headers."""
    day = moment.strftime("%Y%m%d")
    names = sorted(headers)
    parameters = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    lines = [method, path, urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote)]
    lines += [f"{name}:{headers[name]}" for name in names]
    lines += ["", ";".join(names), headers["x-amz-content-sha256"]]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    scope = f"{day}/{REGION}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{digest}"
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return f"AWS4-HMAC-SHA256 Credential={site.access}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"


def checksum(algorithm, data):
    """A checksum in base64."""
    match algorithm:
        case "CRC32":
            found = zlib.crc32(data).to_bytes(4, "big")
        case "CRC32C":
            found = crc(data, 0x82F63B78, 32)
        case "CRC64NVME":
            found = crc(data, 0x9A6C9329AC4BC9B5, 64)
        case _:
            found = hashlib.new(algorithm, data).digest()
    return base64.b64encode(found).decode()


def crc(data, polynomial, bits):
    """A reflected CRC, bit by bit."""
    value = ones = (1 << bits) - 1
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
    return (value ^ ones).to_bytes(bits // 8, "big")


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()
