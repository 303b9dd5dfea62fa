#!/usr/bin/env python3
r"""A decider for srt-proxy: methods and paths that may be used, a look into JSON bodies, and one credential.

It reads the proxy's messages from its standard input and answers on its standard output. To run both in bash, with
the CA's certificate and key in ca.pem:

    coproc DECIDER { API_TOKEN=secret exec python3 decider.py api.example.com; }
    srt-proxy --listen 127.0.0.1:3128 --ca-fd 5 5<ca.pem \
        --decider-in 3 3<&"${DECIDER[0]}" --decider-out 4 4>&"${DECIDER[1]}"
"""
import base64
import json
import os
import re
import struct
import sys

RULES = [  # method, the whole path, whether the body is looked at
    ("GET", r"/v1/models(/[a-z0-9.-]+)?", False),
    ("POST", r"/v1/messages", True),
]
MODELS = {"small", "large"}
MAX_BODY = 1 << 20
ALLOW = {"action": "allow", "cred": "api", "credential": os.environ["API_TOKEN"]}


def judge(req):
    for method, path, has_body in RULES:
        # Path and query are as the client spelled them, so that only what is spelled as here is allowed.
        if req["method"] == method and re.fullmatch(path, req["path"]) and "query" not in req:
            if "content-encoding" in req.get("headers", {}):
                return deny(415, "send the body as it is, without a content encoding")
            return {"action": "need_body", "max": MAX_BODY} if has_body else ALLOW
    return deny(403, "only GET /v1/models and POST /v1/messages, without a query")


def judge_body(body):
    try:
        if body.get("cut"):
            return deny(413, "the body is too long to be looked at")
        message = json.loads(base64.b64decode(body["data"]), object_pairs_hook=object_of)
        return ALLOW if message["model"] in MODELS else deny(403, "only the models " + ", ".join(sorted(MODELS)))
    except (ValueError, LookupError, TypeError):
        return deny(400, "the body is not a JSON object with a model, or has a key twice")


def object_of(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError  # which of the two counts is for the server to say
    return dict(pairs)


def deny(status, reason):
    return {"action": "deny", "status": status, "reason": reason}


def send(**message):
    payload = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(payload)) + payload)
    sys.stdout.buffer.flush()


send(t="hello", proto=1, allowedDomains=sys.argv[1:], deniedDomains=[])
while len(length := sys.stdin.buffer.read(4)) == 4:  # shorter when the proxy has ended
    message = json.loads(sys.stdin.buffer.read(struct.unpack(">I", length)[0]))
    if message["t"] != "hello":
        judged = judge(message) if message["t"] == "req" else judge_body(message)
        send(t="verdict", id=message["id"], **judged)
