# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft doctor: examine and report, but change nothing (except building the library, to try it).

# shellcheck source=tools/driver/run.bash
. "$driver/run.bash" || exit 70

heading()
{
	printf '\n%s\n' "$1"
}

line()
{
	printf '  %-38s %s\n' "$1" "$2"
}

# version_line COMMAND…: the first line of its output that has a number in it.
version_line()
{
	local text

	while read -r text; do
		[[ $text != *[0-9]* ]] || break
	done < <("$@" 2>/dev/null)
	printf '%s' "$text"
}

# kernel_at_least MAJOR MINOR
kernel_at_least()
{
	local major minor

	IFS=.- read -r major minor _ < <(uname -r)
	((major > $1 || (major == $1 && minor >= $2)))
}

machine()
{
	local key value cpu='unknown' cores=0 memory=0 name=''

	while IFS=: read -r key value; do
		case $key in
		'model name'*) cpu=${value# } ;;
		processor*) ((cores++)) ;;
		esac
	done </proc/cpuinfo
	while read -r key value _; do
		[[ $key != MemTotal: ]] || memory=$value
	done </proc/meminfo
	[[ ! -r /etc/os-release ]] || name=$(. /etc/os-release && printf '%s' "${PRETTY_NAME-}")
	heading Machine
	line system "${name:-unknown}, kernel $(uname -r), $(uname -m)"
	line processor "$cpu, $cores online"
	line memory "$((memory / 1024)) MiB"
	if [[ $(uname -m) != x86_64 ]]; then
		line architecture 'not supported yet: weft runs on x86_64'
		healthy=''
	fi
}

compilers()
{
	local name found=''

	heading Compilers
	for name in cc gcc g++ clang clang++ clang-{16..22} clang++-{16..22}; do
		have "$name" || continue
		found=yes
		line "$name" "$(version_line "$name" --version)"
	done
	[[ ${WEFT_CC-} ]] && line "WEFT_CC=$WEFT_CC" "used by 'weft cc'"
	[[ ${WEFT_CXX-} ]] && line "WEFT_CXX=$WEFT_CXX" "used by 'weft c++'"
	[[ $found ]] || line none "$get gcc g++; any ./weft run does it"
}

# probe SOURCE: build and run it, and add its lines to the report; fails if it does not build or reports a fault.
probe()
{
	local name value status

	if (compile cc -O1 "$driver/$1.c" -o "$scratch/probe") 2>"$scratch/errors"; then
		"$scratch/probe" >"$scratch/lines"
		status=$?
		while IFS=$'\t' read -r name value; do
			line "$name" "$value"
		done <"$scratch/lines"
	else
		status=1
		line "cannot try it" "$(tail -n 1 -- "$scratch/errors")"
	fi
	return "$status"
}

can_compile()
{
	have cc || have gcc || [[ ${WEFT_CC-} ]]
}

# A probe that needs no library, therefore no `compile`.
kernel()
{
	local name value

	heading Kernel
	# shellcheck disable=SC2031
	if can_compile && (choose_compiler cc && exec "${compiler[@]}" -o "$scratch/probe" "$driver/kernel.c") 2>/dev/null; then
		while IFS=$'\t' read -r name value; do
			line "$name" "$value"
		done < <("$scratch/probe")
		return
	fi
	# Judged by its number; a container may still forbid it.
	line 'guard install (6.13)' "$(kernel_at_least 6 13 && echo 'probably, by version' || echo 'no: kernel too old; about 32 000 guarded stacks')"
	line 'io_uring (5.1)' "$(kernel_at_least 5 1 && echo 'probably, by version' || echo 'no: kernel too old')"
	line 'userfaultfd (4.3)' "$(kernel_at_least 4 3 && echo 'probably, by version' || echo 'no: kernel too old')"
	line '' 'no C compiler to try them with'
}

show_file()
{
	[[ ! -r $2 ]] || line "$1" "$(<"$2")"
}

limits()
{
	heading Limits
	show_file 'mappings per process (max_map_count)' /proc/sys/vm/max_map_count
	show_file 'overcommit_memory' /proc/sys/vm/overcommit_memory
	show_file 'transparent huge pages' /sys/kernel/mm/transparent_hugepage/enabled
	line 'address space (ulimit -v)' "$(ulimit -v)"
	line 'locked memory (ulimit -l)' "$(ulimit -l) KiB"
	line 'open files (ulimit -n)' "$(ulimit -n)"
	line 'main stack (ulimit -s)' "$(ulimit -s) KiB"
	show_file 'memory limit of this control group' /sys/fs/cgroup/memory.max
}

stack_policies()
{
	local missing=() may_install=no

	heading 'Stack policies'
	if [[ $root ]]; then
		missing_packages core
	elif ! can_compile; then
		missing=(gcc libc6-dev)
	fi
	if ((${#missing[@]})); then
		line unknown "the library cannot be built before: $get ${missing[*]}"
		healthy=''
		return
	fi
	probe policies || healthy=''
	instrumentation
	http_line
	activities_line
}

# instruments COMPILER KIND OBJECT: does the compiler make instrumented code? Errors are on standard error.
instruments()
(
	local instrument=$2 launch

	# shellcheck disable=SC2031
	find_launcher && "${launch[@]}" "$1" -O2 -c "$driver/instrument.c" -o "$3"
)

# Which compilers make code for stacks of linked chunks.
instrumentation()
{
	local name kind kinds why

	heading 'Instrumentation (code for segmented, heap, mmu, lookahead)'
	for name in gcc clang clang-{16..22}; do
		have "$name" || continue
		kinds=() why=''
		for kind in segmented mmu lookahead; do
			if instruments "$name" "$kind" "$scratch/object.o" 2>"$scratch/errors"; then
				kinds+=("$kind")
			else
				why=$(tail -n 1 -- "$scratch/errors")
			fi
		done
		line "$name" "${kinds[*]}${why:+ (no: $why)}"
	done
}

# TLS is compiled in if OpenSSL's header is there; the library is opened at run time.
openssl_line()
{
	if [[ $root && ! -e /usr/include/openssl/ssl.h ]]; then
		line OpenSSL "no header, so no TLS: $get libssl-dev"
	elif compgen -G "/usr/lib/*-linux-gnu/libssl.so.3" >/dev/null || compgen -G "/usr/lib*/libssl.so.3" >/dev/null; then
		line OpenSSL 'libssl.so.3: TLS'
	else
		line OpenSSL "no libssl.so.3, so no TLS: $get libssl3"
	fi
}

# The source of llhttp; nothing is fetched for this report.
http_line()
{
	heading 'HTTP (weft/http.h)'
	if [[ ! $root ]]; then
		line llhttp "$([[ -e $share/$layout_lib/libweft-http.a ]] && echo 'in libweft-http.a' || echo 'no: this installation was built without it')"
	elif [[ -e $root/build/packages/llhttp ]]; then
		line llhttp 'build/packages/llhttp'
	elif [[ -e /usr/include/llhttp.h ]]; then
		line llhttp "the system's"
	else
		line llhttp "not here: 'weft run' of a program with weft/http.h fetches it$(have pip3 || printf ', by pip3: %s python3-pip' "$get")"
	fi
	openssl_line
	if is_there 'file:/usr/lib*/libnghttp2.so.14' || ldconfig -p 2>/dev/null | grep -q 'libnghttp2\.so\.14'; then
		line nghttp2 "yes: HTTP/2$([[ ! $root || -e /usr/include/nghttp2/nghttp2.h ]] || printf ', if its header is installed: %s libnghttp2-dev' "$get")"
	else
		line nghttp2 "no HTTP/2: $get libnghttp2-14"
	fi
}

# The compilers that make activities; nothing is built for this report.
activities_line()
{
	local version found=''

	# shellcheck source=tools/driver/activities.bash
	. "$driver/activities.bash" || exit 70
	heading 'Activities (weft cc --activities)'
	for version in "${activities_versions[@]}"; do
		have "clang-$version" || continue
		found=yes
		if plugin_is_there "$version"; then
			line "clang-$version" yes
			[[ -d $("clang-$version" -print-runtime-dir) ]] ||
				line "clang-$version, sanitizers" "no: $get libclang-rt-$version-dev"
		elif [[ $root && $version == 22 ]]; then
			line "clang-$version" "yes: the first weft cc --activities fetches LLVM's headers, and builds a plugin"
		elif [[ $root ]]; then
			line "clang-$version" "no: $get llvm-$version-dev libclang-$version-dev"
		else
			line "clang-$version" "no: this installation was built without llvm-$version-dev"
		fi
	done
	[[ $found ]] || line none "$get clang-22 lld-22 llvm-22-dev libclang-22-dev"
}

# tool COMMAND WHAT-FOR PACKAGE
tool()
{
	if have "$1"; then
		line "$1" "$(version_line "$1" --version)"
	else
		line "$1" "missing ($2): $get $3"
	fi
}

go_tool()
{
	local needs='missing (a peer in the lab, from 1.23 on)'

	if have go; then line go "$(version_line go version)"; else line go "$needs: $get golang-go from backports, or the official archive"; fi
}

boost()
{
	[[ -e /usr/include/boost/context/fiber.hpp ]] || line Boost.Context "missing (a peer in the lab): $get libboost-context-dev"
	[[ -e /usr/include/boost/fiber/all.hpp ]] || line Boost.Fiber "missing (a peer in the lab): $get libboost-fiber-dev"
}

tools()
{
	local group

	heading Tools
	tool cmake 'builds the library' cmake
	tool ninja 'builds the library' ninja-build
	tool python3 'weft test, weft lab' python3
	tool pkg-config 'weft test --full' pkg-config
	tool gdb 'weft test --full; debugging' gdb
	tool valgrind 'weft test --full' valgrind
	tool clang-format-16 'weft test: lint' clang-format-16
	tool shellcheck 'weft test: lint' shellcheck
	tool cargo 'peers in the lab: corosensei, tokio, may' cargo
	go_tool
	boost
	heading Packages
	for group in core python test lab full clang; do
		missing_packages "$group"
		line "group $group" "${missing[*]:-complete}"
	done
}

weft_doctor()
{
	local healthy=yes policy='' instrument='' activities='' yields='' needs='' clang='' compiler missing

	while (($#)); do
		case $1 in
		--no-install) ;;
		*) die 2 "unknown argument '$1': see 'weft help doctor'" ;;
		esac
		shift
	done
	# shellcheck source=tools/driver/packages.bash
	. "$driver/packages.bash" || exit 70
	make_scratch
	exec {stderr}>&2
	printf 'weft %s, %s\n' "$(weft_version)" "${root:-$share}"
	machine
	compilers
	kernel
	limits
	stack_policies
	tools
	heading 'In short'
	if [[ $healthy ]]; then
		line 'ready' "programs can be built and run: weft run FILE.c"
	else
		line 'not ready' "see above; './weft run' as root installs what is missing"
		exit 1
	fi
}
