# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# Debian packages: which are missing, and installing them. One line per package: name, then how to see that it (or
# something as good) is there: a command, a file, a header, or a module of the system's Python.

packages_core='
gcc cmd:gcc
g++ cmd:g++
cmake cmd:cmake
ninja-build cmd:ninja
python3 cmd:python3
pkg-config cmd:pkg-config
liburing-dev header:liburing.h
libc-ares-dev header:ares.h
'
packages_test='
make cmd:make
git cmd:git
clang-16 cmd:clang-16
lld-16 cmd:ld.lld-16
libclang-rt-16-dev file:/usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.tsan-x86_64.a
llvm-16 cmd:llvm-symbolizer-16
clang-format-16 cmd:clang-format-16
gdb cmd:gdb
valgrind header:valgrind/valgrind.h
linux-perf cmd:perf
libunwind-dev header:libunwind.h
systemtap-sdt-dev header:sys/sdt.h
libcmocka-dev header:cmocka.h
chromium cmd:chromium
shellcheck cmd:shellcheck
csmith cmd:csmith
libcsmith-dev header:csmith/csmith.h
libboost-context-dev header:boost/context/fiber.hpp
libboost-fiber-dev header:boost/fiber/all.hpp
libpq-dev header:postgresql/libpq-fe.h
postgresql file:/usr/lib/postgresql
libhiredis-dev header:hiredis/hiredis.h
redis-server cmd:redis-server
libcurl4-openssl-dev header:curl/curl.h
libssl-dev header:openssl/ssl.h
'
# What `weft cc --activities` needs, and to build what it makes clang load, which an installation has.
packages_clang='
clang-22 cmd:clang-22
lld-22 cmd:ld.lld-22
'
packages_activities='
clang-22 cmd:clang-22
lld-22 cmd:ld.lld-22
llvm-22-dev file:/usr/lib/llvm-22/include/llvm/Passes/PassBuilder.h
libclang-22-dev file:/usr/lib/llvm-22/include/clang/AST/ASTConsumer.h
'
# matplotlib's fonts need either python3-munkres or scipy, which brings 350 MB with it.
packages_lab='
git cmd:git
python3-munkres python:matplotlib
python3-matplotlib python:matplotlib
python3-jinja2 python:jinja2
python3-jsonschema python:jsonschema
'

has_module()
{
	local python

	[[ -e /usr/lib/python3/dist-packages/$1 ]] && return
	python=$(system_python) && "$python" -c "import sys, importlib.util as u; sys.exit(not u.find_spec('$1'))" 2>/dev/null
}

# missing_packages GROUP…: sets the array `missing`.
missing_packages()
{
	local group list package probe

	missing=()
	for group; do
		list=packages_$group
		while read -r package probe; do
			case $probe in
			cmd:*) have "${probe#*:}" ;;
			file:*) [[ -e ${probe#*:} ]] ;;
			header:*) [[ -e /usr/include/${probe#*:} || -e /usr/include/$HOSTTYPE-linux-gnu/${probe#*:} ]] ;;
			python:*) has_module "${probe#*:}" ;;
			esac || [[ ! $package || " ${missing[*]-} " == *" $package "* ]] || missing+=("$package")
		done <<<"${!list}"
	done
}

apt()
{
	env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@"
}

# apt_install PACKAGE…: the lists of a fresh machine are empty, those of an old one stale: then fetch them and try again.
apt_install()
{
	apt install --no-install-recommends "$@" || { apt update && apt install --no-install-recommends "$@"; }
}

# Why apt-get failed: what it could not fetch, else its last error. Reads what it printed.
apt_reason()
{
	local line why='see above'

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
