"""Starts moto, a server that speaks S3, and prints its port.

moto checks the conditions of a write before it writes, so several create-only writes of one object at a time can
succeed, which S3 excludes; and a read fails while its object is replaced. Here requests are handled one at a time.
"""

import logging
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

logging.getLogger("werkzeug").setLevel(logging.ERROR)
moto = DomainDispatcherApplication(create_backend_app)
one_request = threading.Lock()


def application(environ, start_response):
    """Handles a request."""
    with one_request:
        return [b"".join(moto(environ, start_response))]


server = make_server("127.0.0.1", 0, application, threaded=True)
print(server.port, flush=True)
server.serve_forever()
