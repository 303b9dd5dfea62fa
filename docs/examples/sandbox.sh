#!/bin/sh
# What srt does, shown on this machine without the Internet: one host is allowed, everything else is not.
# Needs cargo and curl. Leaves nothing behind but what cargo builds.
set -eu
cd "$(dirname "$0")/../.."

echo "Building, which takes some minutes the first time ..." >&2
cargo build --quiet --release --bins -p srt-launch -p srt-proxy
cargo build --quiet --release --example site -p srt-tests
PATH="$PWD/target/release:$PATH"

work=$(mktemp -d)
mkfifo "$work/lifeline"
target/release/examples/site < "$work/lifeline" > "$work/port" &
exec 9> "$work/lifeline"
trap 'exec 9>&-; wait; rm -rf "$work"' EXIT
until [ -s "$work/port" ]; do :; done
port=$(cat "$work/port")

mkdir "$work/project" "$work/secrets"
echo "a secret" > "$work/secrets/key"
echo "TOKEN=1" > "$work/project/.env"
cat > "$work/settings.json" <<JSON
{"network":    {"allowedDomains": ["shop.localhost:$port"], "deniedDomains": []},
 "filesystem": {"denyRead": ["$work/secrets"], "allowWrite": ["."], "denyWrite": [".env"]}}
JSON
cd "$work/project"

show() {
    printf '\n# %s\n$ srt %s\n' "$1" "'$2'"
    srt --settings "$work/settings.json" -c "$2" 2>&1 || true
}
echo "The settings:"
sed "s|$work|…|; s/^/    /" "$work/settings.json"
show "The host that the settings allow:" "curl -sS --noproxy '' http://shop.localhost:$port/"
show "A host that they do not allow; the report at the end says so:" "curl -sS http://example.com/"
show "A program that ignores the proxy has no network at all:" "curl -sS --noproxy '*' --max-time 5 http://127.0.0.1:$port/"
show "Writing in the project works, but not to what is denied, nor to files that shells and tools would run:" \
    "echo new > made.txt && cat made.txt; echo evil >> .env; echo evil >> .bashrc"
show "What must not be read is not there:" "ls -A $work/secrets | wc -l"
printf '\nAfterwards the project holds: %s\n' "$(ls -A | tr '\n' ' ')"
