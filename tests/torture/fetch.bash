# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
#
# Programs of others, as packages of the distribution carry them: gcc's torture suite, csmith and its headers. Downloaded, not
# installed; kept in build/torture.

fetched=$BUILD_ROOT/torture

# unpacked PACKAGE: its files, in $fetched/PACKAGE.
unpacked()
{
	local package=$1 dir=$fetched/$1

	[[ -e $dir/complete ]] && return 0
	rm -rf -- "$dir" && mkdir -p "$dir/files" && cd "$dir" || return 1
	timeout 300 apt-get download "$package" >&2 && dpkg-deb -x ./*.deb files && rm -f -- ./*.deb && : >complete
}

# Sets `suite`: a directory of programs that check themselves. Of 80 megabytes of sources one is kept.
torture_suite()
{
	local package

	suite=$fetched/execute
	[[ -e $suite/complete ]] && return 0
	package=$(apt-cache search --names-only '^gcc-[0-9]+-source$' | sort -V | head -1) && package=${package%% *}
	[[ $package ]] && (unpacked "$package") && rm -rf -- "$suite" && mkdir -p "$suite" &&
		tar -C "$suite" --strip-components=5 --wildcards -xf "$fetched/$package"/files/usr/src/gcc-*/gcc-*.tar.* \
			'*/gcc/testsuite/gcc.c-torture/execute/*.c' && rm -rf -- "${fetched:?}/$package" && : >"$suite/complete"
}

# Sets `csmith`, a command, and `csmith_headers`.
csmith()
{
	csmith=$(type -P csmith || printf '%s' "$fetched/csmith/files/usr/bin/csmith")
	csmith_headers=$fetched/libcsmith-dev/files/usr/include/csmith
	(unpacked libcsmith-dev) && { [[ -x $csmith ]] || (unpacked csmith); } && [[ -e $csmith_headers/csmith.h ]] && "$csmith" --version >&2
}
