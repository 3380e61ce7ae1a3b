#!/bin/bash
# build.sh: builds the lab's programs into $LAB/bin (~/.cache/valkey-operator-lab/bin).
# Each is built again only when what it is made of has changed: its sources here,
# the module versions, the Go version, the flags. Debian packages that the build or
# the lab needs are installed when they are missing.
set -euo pipefail
cd "$(dirname "$0")"
LAB=${LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/valkey-operator-lab} BIN=$LAB/bin
mkdir -p "$BIN/cni" "$LAB/built"
command -v go >/dev/null || { echo "build.sh: Go is missing; its version is the one in lab/go.mod" >&2; exit 1; }

packages() { # the Debian packages that are missing
	local need command package
	for need in gcc=gcc pkg-config=pkg-config nft=nftables mkfs.xfs=xfsprogs mkfs.ext4=e2fsprogs ip=iproute2 nsenter=util-linux; do
		command=${need%=*} package=${need#*=}
		PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || echo "$package"
	done
	[ -e /usr/include/stdio.h ] || echo libc6-dev
	[ -e /usr/include/seccomp.h ] || echo libseccomp-dev
	[ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
}
missing=$(packages)
if [ -n "$missing" ]; then
	echo "installing" $missing
	[ "$(id -u)" = 0 ] || { echo "build.sh: run as root: apt-get install -y" $missing >&2; exit 1; }
	log=$LAB/built/apt.log
	{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing; } >"$log" 2>&1 ||
		{ echo "build.sh: apt-get failed: read $log" >&2; exit 1; }
fi

# build OUT SOURCES PACKAGE...: with FLAGS, LD and CGO_ENABLED; SOURCES are the
# lab's own files and directories that go into it.
build() {
	local out=$1 sources=$2 start=$SECONDS stamp name
	shift 2
	name=$(basename "${1}")
	stamp=$({
		go version
		echo "$CGO_ENABLED ${FLAGS:-} ${LD:-} $*"
		find go.mod go.sum $sources -type f ! -name '*_test.go' -print0 | sort -z | xargs -0 sha256sum
	} | sha256sum)
	local files=()
	if [ -d "$out" ]; then for p in "$@"; do files+=("$out/$(basename "$p")"); done; else files=("$out"); fi
	if [ "$(cat "$LAB/built/$name" 2>/dev/null)" = "$stamp" ] && stat "${files[@]}" >/dev/null 2>&1; then return; fi
	echo "building $*"
	# Go looks itself whether anything must be linked, and replaces a running program's file.
	go build -trimpath ${FLAGS:-} -ldflags "-s -w ${LD:-}" -o "$out" "$@"
	echo "$stamp" >"$LAB/built/$name"
	echo "  $((SECONDS - start))s"
}
version() { go list -m -f '{{.Version}}' "$1"; }
export CGO_ENABLED=0

K=$(version k8s.io/kubernetes) minor=${K#v1.} minor=${minor%%.*} V=k8s.io/component-base/version
LD="-X $V.gitVersion=$K -X $V.gitMajor=1 -X $V.gitMinor=$minor -X $V.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion=$K" \
	build "$BIN/kubelab" cmd/kubelab ./cmd/kubelab
for name in etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl; do
	ln -sfn kubelab "$BIN/$name"
done
build "$BIN/lab" "cmd/lab internal" ./cmd/lab
build "$BIN/csi-loopback" "cmd/csi-loopback internal/loopback" ./cmd/csi-loopback
build "$BIN/pause" cmd/pause ./cmd/pause
build "$BIN/coredns" cmd/coredns ./cmd/coredns
build "$BIN/ledger" "cmd/ledger ledger" ./cmd/ledger
build "$BIN/journey" "cmd/journey journey ledger internal/home" ./cmd/journey
build "$BIN/" "" github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer \
	github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher
C=github.com/containerd/containerd/v2
FLAGS="-tags=no_btrfs,no_zfs,no_devmapper" LD="-X $C/version.Version=$(version $C)" \
	build "$BIN/" "" $C/cmd/containerd $C/cmd/containerd-shim-runc-v2 $C/cmd/ctr
P=github.com/containernetworking/plugins/plugins
build "$BIN/cni/" "" $P/main/bridge $P/main/loopback $P/ipam/host-local $P/meta/portmap
R=github.com/opencontainers/runc
CGO_ENABLED=1 FLAGS=-tags=seccomp LD="-X main.version=$(version $R)" build "$BIN/runc" "" $R
