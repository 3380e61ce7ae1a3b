#!/bin/bash
# rootfs.sh SUITE DIR: unpacks a Debian suite's Valkey, the libraries it needs
# and busybox into DIR/rootfs, without docker or debootstrap. apt runs on a
# state of its own; the mirror is the one that the machine is configured for.
set -euo pipefail
suite=$1 dir=$2
mkdir -p "$dir"/{lists/partial,cache/archives/partial,debs}
cd "$dir"
mirror=$({ cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true; } |
	awk '/^URIs:/{print $2; exit} /^deb /{for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}}')
[ -n "$mirror" ] || { echo "rootfs.sh: no mirror in /etc/apt/sources.list or sources.list.d/debian.sources: add the one that this machine shall use" >&2; exit 1; }
: >status
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >sources.list
apt=(-qq -o Dir::State="$dir" -o Dir::State::status="$dir/status" -o Dir::State::lists="$dir/lists"
	-o Dir::Cache="$dir/cache" -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=-
	-o Acquire::Languages=none -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update

# Libraries by dependency; everything else (systemd, perl, adduser) is left out.
libraries=$(apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts \
	--no-breaks --no-replaces --no-enhances valkey-server |
	awk '/^[a-z0-9]/{print $1}' |
	grep -E '^(lib(c6|atomic1|gcc-s1|stdc\+\+6|jemalloc2|lzf1|ssl3t64|systemd0|cap2|zstd1|lz4-1|lzma5|crypt1|gcrypt20|gpg-error0)|zlib1g|openssl-provider-legacy)$' |
	sort -u)
(cd debs && rm -f ./*.deb && apt-get "${apt[@]}" download valkey-server valkey-tools busybox-static $libraries)

root=$dir/rootfs
rm -rf "$root"
mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,usr/local/bin,etc,data,tmp,proc,sys,dev,run,root}
for link in bin sbin lib lib64; do ln -s usr/$link "$root/$link"; done
for deb in debs/*.deb; do dpkg -x "$deb" "$root"; done
rm -rf "$root"/usr/share/{doc,man,locale,lintian,bug,apport} "$root"/etc/{init.d,default,logrotate.d} \
	"$root"/usr/lib/{systemd,tmpfiles.d,sysusers.d} "$root"/usr/lib/*-linux-gnu/gconv
for applet in $("$root/bin/busybox" --list); do
	[ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
done
cat >"$root/etc/passwd" <<'EOF'
root:x:0:0:root:/root:/bin/sh
valkey:x:999:999::/data:/bin/sh
nobody:x:65534:65534::/:/bin/false
EOF
cat >"$root/etc/group" <<'EOF'
root:x:0:
valkey:x:999:
nogroup:x:65534:
EOF
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
cat >"$root/usr/local/bin/docker-entrypoint.sh" <<'EOF'
#!/bin/sh
# Bare flags or a .conf mean valkey-server; root gives way to the valkey user.
set -e
case "$1" in -* | *.conf) set -- valkey-server "$@" ;; esac
if [ "$1" = valkey-server ] && [ "$(id -u)" = 0 ]; then
	find . \! -user valkey -exec chown valkey: '{}' +
	exec su -s /bin/sh valkey -c 'exec "$0" "$@"' -- "$@"
fi
exec "$@"
EOF
chmod 755 "$root/usr/local/bin/docker-entrypoint.sh"
chmod 1777 "$root/tmp"
chown 999:999 "$root/data"
for program in server cli benchmark check-rdb check-aof; do
	[ -x "$root/usr/bin/valkey-$program" ] || { echo "Debian's $suite has no valkey-$program"; exit 1; }
done
(cd debs && for deb in ./*.deb; do dpkg-deb --show "$deb"; done) | tr '\t' ' ' | sort >packages
rm -rf debs cache lists
