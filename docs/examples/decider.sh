#!/bin/sh
# What srt-proxy and a decider do, shown on this machine without the Internet: one request is allowed, two are not.
# Needs cargo and curl. Leaves nothing behind but what cargo builds.
set -eu
cd "$(dirname "$0")/../.."

cargo build --quiet --workspace --bins --examples
bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)

work=$(mktemp -d)
decider=
trap '[ -z "$decider" ] || kill "$decider" || :; exec 9>&-; wait; rm -rf "$work"' EXIT
mkfifo "$work/lifeline" "$work/site" "$work/stderr"

# A site with TLS on this machine. It says what it was asked, and with which credential.
"$bin/examples/tls_site" "$work" < "$work/lifeline" > "$work/site" &
exec 9> "$work/lifeline"
read -r port < "$work/site"

cat > "$work/rules.toml" <<TOML
[[rule]]
name = "read the reports"
host = "api.example.test"
port = $port
method = "GET"
path = "/reports/*"
action = "allow"
credential = { class = "reports", env = "REPORTS_TOKEN" }

[[rule]]
name = "no changes"
host = "api.example.test"
action = "deny"
reason = "reports are read only; ask the team for a change"

[[rule]]
name = "a partner whose name is in somebody else's hands"
host = "partner.example.test"
port = $port
action = "allow"
TOML

# The decider starts the proxy. Of the site the proxy is told where it is; the partner's name leads to the address
# from which clouds hand out credentials.
export PATH="$bin:$PATH"
REPORTS_TOKEN=token-of-the-host srt-decider-example --rules "$work/rules.toml" --log "$work/decisions" -- \
    srt-proxy --listen 127.0.0.1:0 --ca-fd 3 --events-fd 4 --upstream-ca "$work/site-ca.pem" \
    --resolve api.example.test=127.0.0.1 --allow-resolved 127.0.0.1 \
    --resolve partner.example.test=169.254.169.254 \
    3< "$work/proxy-ca.pem" 4> "$work/events" 2> "$work/stderr" &
decider=$!
exec 8< "$work/stderr"
read -r listening <&8
case "$listening" in
    *"listening on "*) ;;
    *) echo "$listening" >&2; exit 1 ;;
esac

# All that the client knows: where the proxy is, and which CA to trust.
export https_proxy="http://${listening##* }" CURL_CA_BUNDLE="$work/client-ca.pem" CURL_HOME="$work"
unset HTTPS_PROXY ALL_PROXY all_proxy NO_PROXY no_proxy

show() {
    printf '\n# %s\n$ curl' "$1"
    shift
    printf ' %s' "$@"
    printf '\n'
    curl -sS -w '(status %{http_code})\n' "$@"
}
echo "The rules; the first that applies decides, and what no rule allows is denied:"
sed 's/^/    /' "$work/rules.toml"
show "Allowed. The site gets a credential that curl has never seen:" "https://api.example.test:$port/reports/today"
show "Denied, with the reason of the rule:" -X DELETE "https://api.example.test:$port/reports/today"
show "Allowed by the rules, but the name leads where no name may lead:" "https://partner.example.test:$port/"

kill "$decider" && wait "$decider"
decider=
printf '\n# What the proxy tells its host of the three (--events-fd):\n'
cat "$work/events"
printf '\n# What the decider decided (--log); it was never asked where a name leads:\n'
cat "$work/decisions"
