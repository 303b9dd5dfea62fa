"""GET, POST, a request that the decider denies, and a host that is not on the list: one line each."""
import sys

import httpx

base, other = sys.argv[1:]
client = httpx.Client(timeout=60)


def show(what, method, url, data=None):
    try:
        answer = client.request(method, url, content=data)
    except httpx.ProxyError as error:
        print(what, "failed", error)
    else:
        print(what, answer.status_code, answer.headers.get("X-Deny-Reason", ""), answer.text.strip())


show("get", "GET", base + "/hello")
show("post", "POST", base + "/echo", b"some data")
show("denied", "GET", base + "/denied")
show("list", "GET", other + "/hello")
