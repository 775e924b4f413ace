# SPDX-License-Identifier: MIT
"""The web page, behind any WSGI server; python -m signup.web [PORT] serves it by itself.

POST /users?email=… signs up with the picture in its body, GET / shows who is there and how their jobs stand, GET /jobs/ID
is for scripts that wait.
"""
from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterable
from html import escape
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import make_server

from jobqueue import QueueError

from signup.app import database, queue, sign_up


def state_of(job: str) -> str:
    """One phrase for people."""
    info = queue.find(job)
    if info is None:
        return "done"
    if info.reason:
        return f"{info.state}: {info.reason}"
    return f"{info.state} {info.progress['percent']:.0f} %" if info.progress else str(info.state)


def page() -> str:
    connection = database()
    users = connection.execute(
        "SELECT email, mail_job, picture_job FROM users ORDER BY id"
    ).fetchall()
    connection.close()
    rows = "".join(
        f"<tr><td>{escape(email)}</td><td>{state_of(mail)}</td><td>{state_of(picture)}</td></tr>\n"
        for email, mail, picture in users
    )
    return (
        "<!doctype html><title>Sign-up</title>\n"
        f"<table><tr><th>Who</th><th>Mail</th><th>Picture</th></tr>\n{rows}</table>\n"
    )


def answer(environ: dict[str, Any]) -> tuple[str, str, str]:
    """Status, type and text."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    if method == "POST" and path == "/users":
        picture = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        user = sign_up(parse_qs(environ["QUERY_STRING"])["email"][0], picture)
        return "201 Created", "text/plain", f"{user}\n"
    if method == "GET" and path.startswith("/jobs/"):
        info = queue.find(path.removeprefix("/jobs/"))
        found = (
            {"state": info.state, "progress": info.progress, "result": info.result} if info else {}
        )
        return (
            "200 OK",
            "application/json",
            json.dumps(found or {"state": "done or unknown"}) + "\n",
        )
    if method == "GET" and path == "/":
        return "200 OK", "text/html", page()
    return "404 Not Found", "text/plain", "nothing here\n"


def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        status, kind, text = answer(environ)
    except (QueueError, sqlite3.Error) as error:  # nothing was stored: the client may try again
        status, kind, text = "503 Service Unavailable", "text/plain", f"{error}\n"
    except (KeyError, ValueError) as error:
        status, kind, text = "400 Bad Request", "text/plain", f"{error}\n"
    start_response(status, [("Content-Type", f"{kind}; charset=utf-8")])
    return [text.encode()]


if __name__ == "__main__":
    with make_server("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000, app) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
