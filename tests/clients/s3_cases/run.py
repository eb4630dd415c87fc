"""Runs the cases of S3's behaviour against a server:

    run.py moto
    run.py zarrd URL ACCESS_KEY SECRET_KEY

They are the cases of Ceph's s3-tests for the operations that zarrd has, and some more, in words of our own. moto, a server
of other authors, shows that the cases are right: a case is one of S3's behaviour if moto passes it. Each server has a
list of cases in which it differs, with the reason; a case of the list that passes is reported as well.
"""

import logging
import sys

import buckets, checksums, conditions, copies, listings, objects, signatures, uploads  # noqa: E401, F401
from botocore.exceptions import ClientError
from differences import ANY, MOTO, ZARRD
from harness import CASES, Bucket, Site


def outcome(site, function):
    """`None` if a case passes; else why it does not, and the code of an error of the server."""
    try:
        function(Bucket(site))
    except ClientError as error:
        return error.response["Error"]["Code"], str(error)
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error) or 'an assertion'}"
    return None


def run(site, differences):
    """Runs all cases; returns the numbers of those that pass and differ, and what is wrong."""
    passed, differing, wrong, unused = 0, 0, [], set(differences)
    for name, function in CASES.items():
        base = name.partition("[")[0]
        listed = name if name in differences else base if base in differences else None
        found = outcome(site, function)
        if listed is None:
            passed += found is None
            wrong += [f"{name}: {found[1]}"] if found else []
            continue
        unused.discard(listed)
        code, why = differences[listed]
        if code == ANY:
            differing += 1
        elif found is None:
            wrong.append(f"{name} passes, although it is listed: {why}")
        elif code is not None and code != found[0] and code not in found[1]:
            wrong.append(f"{name}: {found[1]}, and not {code}: {why}")
        else:
            differing += 1
    wrong += [f"{name} is listed, and no case" for name in sorted(unused)]
    return passed, differing, wrong


def moto():
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    return Site(f"http://{host}:{port}", "AKIATEST", "secret")


kind, *address = sys.argv[1:]
site, differences = (moto(), MOTO) if kind == "moto" else (Site(*address), ZARRD)
passed, differing, wrong = run(site, differences)
for line in wrong:
    print(line)
print(f"{len(CASES)} cases: {passed} pass, {differing} differ as listed, {len(wrong)} wrong")
sys.exit(bool(wrong))
