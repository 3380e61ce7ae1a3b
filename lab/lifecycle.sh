#!/bin/bash
# lifecycle.sh: proves that a lab comes up, comes back, and goes without a trace.
# It needs a machine on which the lab is down, and leaves it down and purged.
set -euo pipefail
cd "$(dirname "$0")"
LAB=${LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/valkey-operator-lab}
export LAB
./build.sh
lab=$LAB/bin/lab
if "$lab" status >/dev/null 2>&1; then echo "lifecycle.sh: a lab is up; it would be ended"; exit 1; fi
work=$(mktemp -d)
finish() { "$lab" down --purge; rm -rf "$work"; }
trap finish EXIT
clean() {
	"$lab" footprint >"$work/after"
	diff "$work/before" "$work/after" || { echo "lifecycle.sh: $1 left the lines above (> is new)"; exit 1; }
	echo "ok      $1 leaves nothing"
}

"$lab" images
"$lab" footprint >"$work/before"
"$lab" up --nodes 3
if LAB=$work/another "$lab" up 2>"$work/refusal"; then echo "lifecycle.sh: a second lab was not refused"; exit 1; fi
grep -q 'another lab runs on this machine' "$work/refusal" || { cat "$work/refusal"; exit 1; }
echo "ok      a second lab is refused"
./smoke.sh
"$lab" node-kill n2
"$lab" node-start n2
echo "ok      a node comes back after a power cut"
"$lab" down
clean "down"
start=$SECONDS
./build.sh && "$lab" up --nodes 3
echo "ok      up again, build check included, in $((SECONDS - start))s"
"$lab" down --purge
clean "down --purge"
"$lab" up --nodes 1
echo "ok      a fresh cluster of one node"
kill -KILL "$(cut -d' ' -f1 "$LAB/state/hub/pid")"
"$lab" up --nodes 1
echo "ok      up after the control plane's end without notice"
"$lab" down --purge
clean "the last down"
