# SPDX-License-Identifier: MIT
"""A producer behind WSGI: POST /invoices/17 pushes a job, GET /jobs/ID says how it stands.

Any WSGI server runs it (gunicorn web:app); python web.py [PORT] serves it by itself.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any
from wsgiref.simple_server import make_server

from jobqueue import Queue, StoreError
from shop.jobs import send_invoice

queue = Queue()  # connects when first used; a server that forks after that is fine


def answer(method: str, path: list[str]) -> tuple[str, dict[str, Any]]:
    if method == "POST" and len(path) == 2 and path[0] == "invoices" and path[1].isdigit():
        due = datetime.now(timezone.utc) + timedelta(days=30)
        return "202 Accepted", {"job": send_invoice.push(queue, invoice=int(path[1]), due=due)}
    if method == "GET" and len(path) == 2 and path[0] == "jobs":
        info = queue.find(path[1])
        return "200 OK", {"state": info.state if info else "done or unknown"}
    return "404 Not Found", {"error": "POST /invoices/NUMBER or GET /jobs/ID"}


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        status, body = answer(environ["REQUEST_METHOD"], environ["PATH_INFO"].strip("/").split("/"))
    except StoreError as error:  # nothing was stored: the client may try again
        status, body = "503 Service Unavailable", {"error": str(error)}
    start_response(status, [("Content-Type", "application/json")])
    return [json.dumps(body).encode() + b"\n"]


if __name__ == "__main__":
    with make_server("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000, app) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
