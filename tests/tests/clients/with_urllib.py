"""GET, POST, a request that the decider denies, and a host that is not on the list: one line each."""
import sys
import urllib.error
import urllib.request

base, other = sys.argv[1:]


def show(what, url, data=None):
    try:
        with urllib.request.urlopen(url, data, timeout=60) as answer:
            print(what, answer.status, answer.read().decode())
    except urllib.error.HTTPError as error:
        print(what, error.code, error.headers["X-Deny-Reason"], error.read().decode().strip())
    except urllib.error.URLError as error:
        print(what, "failed", error.reason)


show("get", base + "/hello")
show("post", base + "/echo", b"some data")
show("denied", base + "/denied")
show("list", other + "/hello")
