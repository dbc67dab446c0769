# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# Debian packages: which are missing, and installing them. One line per package: name, then a probe that finds it (or an
# equal): a command, a file, a header, or a module of the system's Python. Names with a "|" between them are
# alternatives: the first package that this release has is installed.

# Without these nothing is built.
packages_core='
gcc cmd:gcc
g++ cmd:g++
cmake cmd:cmake
ninja-build cmd:ninja
'
packages_python='
python3 cmd:python3
'
# Optional: `weft test` installs the first list, and `weft test --full` the second list too. Tests that miss a package are skipped by name.
packages_test='
liburing-dev header:liburing.h
libc-ares-dev header:ares.h
libcmocka-dev header:cmocka.h
clang-16|clang cmd:clang-16|clang|clang-17|clang-18|clang-19|clang-20|clang-21|clang-22
clang-format-16 cmd:clang-format-16
shellcheck cmd:shellcheck
python3-pip cmd:pip3
'
packages_full='
make cmd:make
pkg-config cmd:pkg-config
lld-16|lld cmd:ld.lld-16|ld.lld
libclang-rt-16-dev|libclang-rt-dev file:/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-x86_64.a
gdb cmd:gdb
valgrind header:valgrind/valgrind.h
linux-perf|linux-tools-generic cmd:perf
libunwind-dev header:libunwind.h
systemtap-sdt-dev header:sys/sdt.h
gcc-aarch64-linux-gnu cmd:aarch64-linux-gnu-gcc
g++-aarch64-linux-gnu cmd:aarch64-linux-gnu-g++
gcc-riscv64-linux-gnu cmd:riscv64-linux-gnu-gcc
g++-riscv64-linux-gnu cmd:riscv64-linux-gnu-g++
csmith cmd:csmith
libcsmith-dev header:csmith/csmith.h
libboost-context-dev header:boost/context/fiber.hpp
libboost-fiber-dev header:boost/fiber/all.hpp
libpq-dev header:postgresql/libpq-fe.h
libhiredis-dev header:hiredis/hiredis.h
libcurl4-openssl-dev header:curl/curl.h
libssl-dev header:openssl/ssl.h
libnghttp2-dev header:nghttp2/nghttp2.h
nghttp2-client cmd:h2load
musl-tools cmd:musl-gcc
llvm-22-tools cmd:FileCheck-22
mold cmd:mold
qemu-user cmd:qemu-x86_64
python3-jsonschema python:jsonschema
python3-sphinx python:sphinx
python3-myst-parser python:myst_parser
furo python:furo
codespell cmd:codespell
'
# `weft cc --activities` needs these. The source tree also builds clang's plugin, for which unpack_package fetches
# LLVM's headers.
packages_clang='
clang-22 cmd:clang-22
lld-22 cmd:ld.lld-22
'
# matplotlib's fonts need either python3-munkres or scipy, which brings 350 MB with it.
packages_lab='
liburing-dev header:liburing.h
pkg-config cmd:pkg-config
python3 cmd:python3
python3-munkres python:matplotlib
python3-matplotlib python:matplotlib
python3-jinja2 python:jinja2
'

has_module()
{
	local python

	[[ -e /usr/lib/python3/dist-packages/$1 ]] && return
	python=$(system_python) && "$python" -c "import sys, importlib.util as u; sys.exit(not u.find_spec('$1'))" 2>/dev/null
}

# is_there PROBE
is_there()
{
	local name

	case $1 in
	cmd:*)
		for name in ${1//[:|]/ }; do
			[[ $name == cmd ]] || ! have "$name" || return 0
		done
		return 1
		;;
	file:*) compgen -G "${1#*:}" >/dev/null ;;
	header:*) [[ -e /usr/include/${1#*:} || -e /usr/include/$HOSTTYPE-linux-gnu/${1#*:} ]] ;;
	python:*) has_module "${1#*:}" ;;
	esac
}

# missing_packages GROUP…: sets the array `missing`.
missing_packages()
{
	local group list package probe

	missing=()
	for group; do
		list=packages_$group
		while read -r package probe; do
			[[ ! $package || " ${missing[*]-} " == *" $package "* ]] || is_there "$probe" || missing+=("$package")
		done <<<"${!list}"
	done
}

apt()
{
	env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@"
}

# update_lists PACKAGE…: if the package lists do not have these, they are empty or old. Only root can fetch new ones.
update_lists()
{
	apt-cache show "$@" >/dev/null 2>&1 || ((EUID != 0)) || apt update
}

# apt_install PACKAGE…: the lists of a fresh machine are empty, and the lists of an old machine are stale: then fetch
# them and try again.
apt_install()
{
	apt install --no-install-recommends "$@" || { apt update && apt install --no-install-recommends "$@"; }
}

# known_packages PACKAGE…: sets `known`: of each, the first alternative that this release has. A package that it does not have is left
# out.
known_packages()
{
	local each name

	known=()
	for each; do
		for name in ${each//|/ }; do
			if apt-cache show "$name" >/dev/null 2>&1; then
				known+=("$name")
				break
			fi
		done
	done
}

# Prints why apt-get failed: the file that it could not fetch, else its last error. Reads apt-get's output.
apt_reason()
{
	local line why='apt-get failed'

	while read -r line; do
		[[ $line != E:* ]] || why=${line#E: }
		if [[ $line == *'Failed to fetch '* ]]; then
			why="cannot fetch ${line#*Failed to fetch }"
			break
		fi
	done <"$scratch/log"
	printf '%s' "$why"
}

# need_packages WHY GROUP…: make sure that the groups' packages are there, or end with 69.
need_packages()
{
	local why=$1 names left='apt-get goes on from there when it is called again'

	shift
	missing_packages "$@"
	((${#missing[@]})) || return 0
	names=${missing[*]}
	have apt-get || die 69 "$why needs $names, and this system has no apt-get to install them"
	[[ $may_install != no ]] || die 69 "$why needs packages that are missing: $names (left alone: --no-install)"
	((EUID == 0)) || die 69 "$why needs packages that are missing; run: sudo $get -y $names"
	say "$why needs packages that are missing; installing with apt-get: $names"
	progress "installing packages" apt_install "${missing[@]}" ||
		die 69 "could not install $names: $(apt_reason); with these packages, by network or otherwise, run this again"
	hash -r
	missing_packages "$@"
	((${#missing[@]} == 0)) || die 69 "installed, but still not there: ${missing[*]}"
}

# want_packages WHY GROUP…: install the packages that only some tests need. A package that cannot be installed is named and left out.
want_packages()
{
	local why=$1 known left='apt-get goes on from there when it is called again' reason='this release does not have them'

	shift
	missing_packages "$@"
	((${#missing[@]})) || return 0
	if ! have apt-get; then
		reason='this system has no apt-get'
	elif [[ $may_install == no ]]; then
		reason='left alone: --no-install'
	elif ((EUID != 0)); then
		reason="root can install them: $get -y ${missing[*]%%|*}"
	else
		progress "fetching the lists of packages" update_lists "${missing[@]%%|*}"
		known_packages "${missing[@]}"
		if ((${#known[@]})); then
			say "$why uses packages that are missing; installing with apt-get: ${known[*]}"
			progress "installing packages" apt_install "${known[@]}" || reason=$(apt_reason)
		fi
		hash -r
		missing_packages "$@"
	fi
	((${#missing[@]} == 0)) || say "skipping the tests that need ${missing[*]%%|*} ($reason)"
}

# Packages that are unpacked below build/packages, not installed: servers, which an installation would enable and start,
# a browser, which brings a desktop's libraries, LLVM's headers, whose packages have 600 MB of unused libraries, and
# LLVM's optimizer, which comes with 90 MB of programs. Go, which builds h2spec and is deleted then.
# describe_unpacked NAME sets `probe`, `packages`, `closure` (also unpack what they depend on, except packages that match `leave`), and
# `keep`, the paths that stay.
describe_unpacked()
{
	local libraries=('./usr/lib/*-linux-gnu/*.so*' './lib/*-linux-gnu/*.so*')

	closure=yes leave='^(libllvm|libgl1-mesa|mesa-|locales|libc-l10n|systemd|perl)'
	case $1 in
	postgres)
		probe='file:/usr/lib/postgresql/*/bin/initdb' packages=(postgresql)
		keep=(./usr/lib/postgresql ./usr/share/postgresql "${libraries[@]}")
		;;
	redis) probe=cmd:redis-server packages=(redis-server) keep=('./usr/bin/redis-*' "${libraries[@]}") ;;
	nginx) probe=file:/usr/sbin/nginx packages=(nginx-light) keep=(./usr/sbin/nginx "${libraries[@]}") ;;
	browser)
		probe='cmd:chromium|chromium-browser|google-chrome|chromium-headless-shell' packages=(chromium-headless-shell)
		keep=(./usr/bin/chromium-headless-shell './usr/lib/chromium*' ./usr/share/fonts ./etc/fonts "${libraries[@]}")
		;;
	go)
		probe=cmd:go packages=(golang-go) keep=('./usr/lib/go-*' './usr/share/go-*')
		;;
	opt-*)
		probe=cmd:$1 packages=("${1/opt/llvm}") closure='' keep=("./usr/lib/${1/opt/llvm}/bin/opt")
		;;
	llvm-*)
		probe=file:/usr/lib/$1/include/clang/AST/ASTConsumer.h packages=("$1-dev" "lib${1/llvm/clang}-dev") closure=''
		keep=("./usr/lib/$1/include" "./usr/include/$1" "./usr/include/${1/llvm/llvm-c}"
			"./usr/lib/$1/lib/cmake/llvm/LLVMConfig.cmake")
		;;
	esac
}

# unpack DIRECTORY: download the packages and keep the wanted paths of them there.
unpack()
(
	local names=("${packages[@]}") archive

	rm -rf -- "$1" "$1.new" && mkdir -p "$1.new/archives" && cd "$1.new/archives" || exit 1
	trap 'rm -rf -- "$1.new"' EXIT
	update_lists "${packages[@]}"
	if [[ $closure ]]; then
		mapfile -t names < <(apt-get -s -o Debug::NoLocking=1 install --no-install-recommends "${packages[@]}" |
			sed -n 's/^Inst \([^ ]*\).*/\1/p' | grep -Ev "$leave")
	fi
	apt-get -q -o APT::Sandbox::User=root download "${names[@]}" || exit 1
	for archive in *.deb; do
		# tar fails for a package that has none of the paths.
		dpkg-deb --fsys-tarfile "$archive" | tar -x -C .. --wildcards "${keep[@]}" 2>/dev/null
	done
	rm -rf -- "$1.new/archives" && cd .. && mv -- "$1.new" "$1"
)

# want_unpacked NAME: no root is needed. Fails, and says so, if the packages cannot be had.
want_unpacked()
{
	local probe packages closure leave keep where=$root/build/packages/$1 reason='left alone: --no-install'

	describe_unpacked "$1"
	! is_there "$probe" && [[ ! -d $where ]] || return 0
	if ! have apt-get || ! have dpkg-deb; then
		reason='this system has no apt-get'
	elif [[ $may_install != no ]]; then
		progress "unpacking ${packages[*]} below build/packages" unpack "$where" && return
		reason=$(apt_reason)
	fi
	say "not here: ${packages[*]} ($reason)"
	return 1
}

# llhttp, the parser of weft/http.h: C sources that no package of Debian 12 has in a version that is strict enough. A
# release is part of the source of httptools, a Python package; pip checks its hash.
llhttp_package='httptools==0.6.4 --hash=sha256:4e93eee4add6493b59a5c514da98c939b244fce4a0d8879cd3f466562f4b7d5c'

# unpack_llhttp DIRECTORY
unpack_llhttp()
(
	rm -rf -- "$1" "$1.new" && mkdir -p "$1.new" && cd "$1.new" || exit
	trap 'rm -rf -- "$1.new"' EXIT
	printf '%s\n' "$llhttp_package" >requirements
	pip3 --quiet download --no-deps --no-binary :all: --require-hashes --requirement requirements || exit
	tar -xzf httptools-*.tar.gz --strip-components=3 --wildcards '*/vendor/llhttp/*' && rm -f -- requirements httptools-* && cd .. &&
		mv -- "$1.new" "$1"
)

# want_llhttp: no root is needed, if pip is there. Fails, and says so, if it cannot be had.
want_llhttp()
{
	local where=$root/build/packages/llhttp reason='left alone: --no-install'

	[[ ! -d $where ]] && ! is_there header:llhttp.h || return 0
	if [[ $may_install != no ]]; then
		progress 'unpacking llhttp below build/packages' unpack_llhttp "$where" && return
		reason='pip cannot fetch it; a Debian package is python3-pip'
	fi
	say "not here: llhttp ($reason), so weft/http.h is left out"
	return 1
}

# h2spec, which tests servers of HTTP/2, is a module of Go: tests/httpfull/h2spec pins the versions and hashes of it and its libraries.
# build_h2spec DIRECTORY
build_h2spec()
(
	local go

	go=$(command -v go || compgen -G "$root/build/packages/go/usr/lib/go-*/bin/go") || exit
	rm -rf -- "$1" "$1.new" && mkdir -p "$1.new" && cd "$root/tests/httpfull/h2spec" || exit
	trap 'rm -rf -- "$1.new"' EXIT
	env GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 \
		"$go" build -o "$1.new/" github.com/summerwind/h2spec/cmd/h2spec && mv -- "$1.new" "$1"
)

# want_h2spec: no root is needed. Fails, and says so, if it cannot be had.
want_h2spec()
{
	local where=$root/build/packages/h2spec reason='left alone: --no-install'

	[[ ! -d $where ]] || return 0
	if [[ $may_install != no ]]; then
		want_unpacked go || return
		progress 'building h2spec below build/packages' build_h2spec "$where" && rm -rf -- "$root/build/packages/go" && return
		reason='go cannot fetch or build it'
	fi
	say "not here: h2spec ($reason)"
	return 1
}
