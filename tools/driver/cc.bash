# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft cc, weft c++: the compiler, with what Weft needs added. Design:
#  1. The arguments are passed on unchanged, without our options; the command adds words before and after them. It reads
#     them only to learn the work: is anything linked, is it a program.
#  2. Headers come by -isystem: the user's own directories win, and our macros raise no warnings in strict builds.
#  3. A program gets the static library. A shared library gets no library, because two copies of the runtime in a process
#     do not know of each other's coroutines: it finds the program's. A program that exports everything (-rdynamic), as
#     hosts of plugins do, therefore carries the whole library. A user who says -lweft gets the shared library instead.
#  4. The hot path runs bash builtins only, then exec.
#  5. Other code probes the pages of large frames, so that no frame steps over a guard. Frames below a page cost
#     nothing. clang complains of the flag if there is nothing to compile.
#  6. Code that can run on stacks of linked chunks is made by weft-launch, which runs the compiler whenever code is
#     compiled for such a policy (tools/driver/launch/launch.h).

# The policies by name, from the header that defines them: the word in quotes that opens a comment of the enumeration.
policy_names()
{
	local line

	while read -r line; do
		[[ $line != *'weft_policy_t;'* ]] || break
		[[ ! $line =~ '/**< "'([a-z]+)'":' ]] || policies+=("${BASH_REMATCH[1]}")
	done <"$include/weft/stack.h"
}

# The rules of src/stack/config.c, which reads the same words from WEFT_STACK.
check_policy()
{
	local policies=() bytes=0

	policy_names
	[[ " ${policies[*]} " == *" ${1%%:*} "* ]] || die 2 "unknown policy '${1%%:*}': there are ${policies[*]}"
	[[ $1 == *:* ]] || return 0
	if [[ ${1#*:} =~ ^0*([1-9][0-9]{0,9})([KMGkmg]?)$ ]]; then
		bytes=${BASH_REMATCH[1]}
		case ${BASH_REMATCH[2]} in
		[Kk]) ((bytes <<= 10)) ;;
		[Mm]) ((bytes <<= 20)) ;;
		[Gg]) ((bytes <<= 30)) ;;
		esac
	fi
	((bytes > 0 && bytes <= 1 << 30)) || die 2 "bad stack size '${1#*:}': say bytes, or 64K, 1M, up to 1G"
}

# The instrumentation that a policy's programs need, if any. Sets `needed`.
instrumentation_of()
{
	case ${1%%:*} in
	segmented | heap) needed=segmented ;;
	mmu) needed=mmu ;;
	lookahead) needed=lookahead ;;
	*) needed='' ;;
	esac
}

# Called after the options are read: policy and instrumentation must fit together. Any instrumented code runs on
# contiguous stacks.
check_instrumentation()
{
	local needed=''

	[[ ! $policy ]] || check_policy "$policy"
	[[ $instrument =~ ^(segmented|mmu|lookahead)?$ ]] ||
		die 2 "unknown instrumentation '$instrument': there are segmented (also for heap), mmu, lookahead"
	[[ ! $policy ]] || instrumentation_of "$policy"
	[[ ! $needed || ! $instrument || $needed == "$instrument" ]] ||
		die 2 "--policy ${policy%%:*} runs code made by --instrument $needed, not $instrument"
	instrument=${instrument:-$needed}
	[[ $yields =~ ^(calls|loops)?$ ]] || die 2 "unknown yields '$yields': there are calls, loops"
	[[ ! $yields || $activities ]] || die 2 "--yields says where activities yield: add --activities"
	[[ ! $needs || $instrument ]] || die 2 "--needs is for stacks of linked chunks: add --policy or --instrument"
	[[ ! $needs || -r $needs ]] || die 66 "--needs: there is no file '$needs' that can be read"
	[[ ! $activities || ! $instrument ]] ||
		die 2 "--activities: their code runs on contiguous stacks, it cannot be made with --instrument $instrument, too"
}

# The compilers' options whose argument is a separate word.
with_argument=$(<"$driver/options.def")
with_argument=${with_argument##*'*/'}
with_argument=${with_argument//OPTION(\"/}
with_argument=${with_argument//\")/}
with_argument=${with_argument//$'\n'/ }' '

# Takes our options, which may be anywhere before a "--". Sets `policy`, `instrument`, `activities`, `yields`, `report`,
# and `arguments`: all other arguments.
own_options()
{
	arguments=("$@")
	# Builds have thousands of other words.
	[[ " $*" == *\ --@(policy|instrument|needs|activities|yields|no-install|help)* ]] || return 0
	arguments=()
	while (($#)) && [[ $1 != -- ]]; do
		case $1 in
		--help)
			# shellcheck source=tools/driver/help.bash
			. "$driver/help.bash" || exit 70
			weft_help "$command"
			exit
			;;
		--policy=?*) policy=${1#*=} ;;
		--instrument=?*) instrument=${1#*=} ;;
		--yields=?*) yields=${1#*=} ;;
		--needs=?*) needs=${1#*=} ;;
		--policy | --instrument | --yields | --needs | --policy= | --instrument= | --yields= | --needs=)
			[[ $1 != *= && ${2-} ]] || die 2 "${1%=} needs a name: see 'weft $command --help'"
			case $1 in
			--policy) policy=$2 ;;
			--instrument) instrument=$2 ;;
			--yields) yields=$2 ;;
			--needs) needs=$2 ;;
			esac
			shift
			;;
		--activities) activities=yes ;;
		--activities-report) activities=yes report=yes ;;
		--no-install) may_install=no ;;
		*)
			arguments+=("$1")
			if (($# > 1)) && [[ $with_argument == *" $1 "* ]]; then
				arguments+=("$2")
				shift
			fi
			;;
		esac
		shift
	done
	arguments+=("$@")
	check_instrumentation
}

# Split a response file as compilers do: white space separates, quotes and backslashes protect. Sets `words`.
split_response_file()
{
	local rest word='' inside=''

	words=()
	rest=$(<"$1")
	if [[ $rest != *[\\\"\']* ]]; then
		read -r -d '' -a words <<<"$rest"
		return
	fi
	rest+=$'\n'
	while [[ $rest =~ ^([^[:space:]\"\'\\]*)([[:space:]]|\"([^\"\\]|\\.)*\"|\'([^\'\\]|\\.)*\'|\\.) ]]; do
		word+=${BASH_REMATCH[1]}
		inside=${BASH_REMATCH[2]}
		rest=${rest:${#BASH_REMATCH[0]}}
		case $inside in
		[[:space:]])
			[[ ! $word ]] || words+=("$word")
			word=''
			;;
		[\"\']*) word+=${inside:1:${#inside}-2} ;;
		*) word+=${inside:1} ;;
		esac
	done
}

# Read a link's or compilation's arguments. Sets inputs, sources, headers, links, shared, library, language, exports,
# target, output, linker, lto, sanitizer (if it needs a library of clang's).
read_arguments()
{
	local words

	while (($#)); do
		case $1 in
		-c | -S | -E | -M | -MM | -fsyntax-only | -emit-ast | -r | --compile | --assemble | --preprocess | \
			--dependencies | --user-dependencies | --analyze | --precompile | --relocatable)
			links=''
			;;
		-shared | --shared) shared=yes ;;
		-rdynamic | -Wl,-E | -Wl,--export-dynamic) exports=yes ;;
		-lweft) library=weft_shared ;;
		-flto | -flto=full) lto=yes ;;
		-flto=* | -fno-lto) lto='' ;;
		-fuse-ld=*) linker=${1#*=} ;;
		-fsanitize=*address* | -fsanitize=*thread* | -fsanitize=*memory* | -fsanitize=*leak*) sanitizer=$1 ;;
		-o)
			output=${2-}
			shift
			;;
		-o?*) output=${1#-o} ;;
		-x)
			language=${2-}
			shift
			;;
		-x*) language=${1#-x} ;;
		-m32 | -m64 | -mx32 | -m16 | --target=*) target+=("$1") ;;
		-target)
			target+=("$1" "${2-}")
			(($# == 1)) || shift
			;;
		@*)
			if [[ -r ${1#@} ]]; then
				split_response_file "${1#@}"
				read_arguments "${words[@]}"
			else
				inputs=yes
			fi
			;;
		-?*) [[ $# == 1 || $with_argument != *" $1 "* ]] || shift ;;
		*.h | *.hh | *.hpp | *.hxx | *.h++ | *.H | *.tcc) headers=yes ;;
		*.o | *.lo | *.a | *.so | *.so.* | *.s) inputs=yes ;;
		*) inputs=yes sources+=("$1") ;;
		esac
		(($# == 0)) || shift
	done
}

# The compiler: words, so that "ccache gcc" works, unless a file has exactly that name. Sets `compiler`.
find_compiler()
{
	local wanted=$1 candidate

	shift
	if [[ $wanted == *[![:space:]]* ]]; then
		if [[ -x $wanted && ! -d $wanted ]]; then compiler=("$wanted"); else read -ra compiler <<<"$wanted"; fi
		have "${compiler[0]}" || die 69 "there is no compiler '${compiler[0]}'"
		[[ ! ${compiler[0]##*/} =~ ^weft(-cc|-c\+\+)?$ ]] || die 2 "WEFT_CC and WEFT_CXX cannot be weft itself"
		return
	fi
	for candidate; do
		compiler=("$candidate")
		! have "$candidate" || return 0
	done
	# shellcheck source=tools/driver/packages.bash
	. "$driver/packages.bash" || exit 70
	need_packages "compiling" core
	compiler=("$1")
}

# Does a source include one of libweft-http's headers?
asks_http()
{
	local source

	for source in "${sources[@]}"; do
		[[ -f $source ]] && grep -qs 'weft/http[a-z_]*\.h' -- "$source" && return
	done
	return 1
}

# Build libweft-http.a, or its instrumented form, if a source asks for it. Without llhttp it cannot be built; a message
# says so, and the linker names the missing library.
build_http()
{
	asks_http || return 0
	# shellcheck source=tools/driver/packages.bash
	. "$driver/packages.bash" || exit 70
	want_llhttp && build_library "weft_http${instrument:+_$instrument}" release
}

# Sets `library_dir`, the library's directory; in the source tree, the library is up to date. A sanitized program uses
# the same library, because its headers give the sanitizer all facts that it needs.
find_library()
{
	if [[ $root ]]; then
		# shellcheck source=tools/driver/build.bash
		. "$driver/build.bash" || exit 70
		build_http # first: it fetches the parser, which a configuration may require
		build_library "$library" release
		return
	fi
	library_dir=$share/$layout_lib
	[[ -e $library_dir/libweft.a ]] || die 69 "this installation has no $library_dir/libweft.a"
	[[ -e $library_dir/libweft-http.a ]] || ! asks_http ||
		die 69 "this installation was built without HTTP: in the source tree, './weft run examples/hello.c' fetches the parser; then build and install again"
}

# Finds the command in front of the compiler: none, or weft-launch. Sets `launch`.
find_launcher()
{
	local library_dir

	launch=()
	[[ $instrument ]] || return 0
	if [[ $root ]]; then
		# shellcheck source=tools/driver/build.bash
		. "$driver/build.bash" || exit 70
		build_library weft_instrumentation release
		launch=("$library_dir/libexec/weft/weft-launch" --instrument "$instrument")
	else
		launch=("$share/$layout_libexec/weft-launch" --instrument "$instrument")
		[[ -x ${launch[0]} ]] || die 69 "this installation has no ${launch[0]}"
	fi
}

# An object that says which policy the program starts with; the library looks for it. Sets `object`. It is kept, for
# this compiler and target, or made for this call alone if no file can be kept.
policy_object()
{
	local kept=${root:+$root/build} name="$policy ${compiler[*]}${target[*]:+ ${target[*]}}"

	kept=${kept:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/weft}/policy
	name=${name//\//%}
	object=$kept/${name:0:200}.o
	[[ ! -e $object ]] || return 0
	if ! { mkdir -p "$kept" && [[ -w $kept && ${#name} -le 200 ]]; } 2>/dev/null; then
		make_scratch
		object=$scratch/policy.o
	fi
	# Written to another name and renamed, because other compilations may want it now.
	if ! "${compiler[@]}" "${target[@]}" -x c -fPIC -c -o "$object.$$" - <<<"const char *weft_program_stack = \"$policy\";"; then
		rm -f -- "$object.$$"
		die 1 "cannot make the object for --policy: ${compiler[*]} says why above"
	fi
	mv -f -- "$object.$$" "$object"
}

# Sets `before` and `after`, the words around the arguments, `launch`, the words before the compiler, and `outputs`, the
# files that it writes.
surround()
{
	local inputs='' sources=() headers='' links=yes shared='' library=weft language='' exports='' target=() output='' object
	local library_dir plugin checker lto='' linker='' sanitizer='' http

	before=() after=() launch=()
	read_arguments "$@"
	outputs=("${output:-a.out}")
	if [[ ! $links && ! $output ]]; then
		outputs=("${sources[@]##*/}")
		outputs=("${outputs[@]%.*}")
		outputs=("${outputs[@]/%/.o}")
	fi
	# No work for the compiler: it was asked a question.
	[[ $inputs || $headers ]] || return 0
	find_launcher
	[[ $include == /usr/include || $include == /usr/local/include ]] || before=(-isystem "$include")
	before+=(-isystem "$compat" -pthread)
	[[ ! $needs ]] || ((!${#sources[@]})) || before+=(-Xassembler "--weft-needs=$needs")
	[[ $instrument ]] || ((!${#sources[@]})) || before+=(-fstack-clash-protection)
	if [[ $activities ]]; then
		find_activities_plugin
		# If clang's headers were missing, only the pass reports errors.
		checker=${plugin%/*}/libweft-check-activities-$clang.so
		if ((${#sources[@]})); then
			# If clang reports on a pass, it keeps lines for its errors, also without -g. No such remark is
			# ever printed.
			before+=("-fpass-plugin=$plugin" -Rpass=weft-activities)
			[[ ! -e $checker ]] || before+=("-fplugin=$checker")
			# -mllvm knows options of plugins that -fplugin has loaded.
			[[ ! $yields ]] || before+=("-fplugin=$plugin" -mllvm "-weft-yields=$yields")
		fi
	fi
	[[ $links && $inputs && $language != *-header ]] || return 0

	# clang names each missing file, but no package.
	[[ ! $activities || ! $sanitizer || -d $("${compiler[@]}" -print-runtime-dir) ]] ||
		die 69 "$sanitizer by clang $clang needs clang's runtime of the sanitizers: $get libclang-rt-$clang-dev"
	# A linker that compiles can drop functions that no activity reaches, if it is of the plugin's LLVM, as clang's
	# own lld is.
	if [[ $activities && $lto && (! $linker || $linker == lld) && $("${compiler[@]}" -print-prog-name=ld.lld) == */* ]]; then
		before+=(-fuse-ld=lld "-Wl,--load-pass-plugin=$plugin")
	fi
	find_library
	[[ $language == '' || $language == none ]] || after=(-x none)
	after+=("-L$library_dir")
	[[ ! $shared ]] || return 0
	[[ $library == weft ]] || exports=''
	before+=('-Wl,--export-dynamic-symbol=weft.effect.*')
	if [[ $policy ]]; then
		policy_object
		after+=("$object")
	fi
	if [[ $activities ]]; then
		if [[ $library == weft ]]; then after+=("$library_dir/libweft-activity.a"); else after+=(-lweft-activity -lweft-rt); fi
	fi
	http=$library_dir/libweft-http-$instrument.a
	[[ $instrument && -e $http ]] || http=$library_dir/libweft-http.a
	[[ ! -e $http ]] || after+=("$http")
	if [[ $exports ]]; then
		after+=("-Wl,--whole-archive" "$library_dir/libweft-rt.a" "$library_dir/libweft.a" "-Wl,--no-whole-archive")
	else
		after+=("$library_dir/libweft-rt.a" "$library_dir/libweft.a")
	fi
}

# Sets `compiler` for a subcommand's name.
choose_compiler()
{
	if [[ $activities ]]; then
		# shellcheck source=tools/driver/activities.bash
		. "$driver/activities.bash" || exit 70
		choose_activities_compiler "$1"
	elif [[ $1 == c++ ]]; then
		find_compiler "${WEFT_CXX-}" c++ g++ clang++ clang++-{16..22}
	else
		find_compiler "${WEFT_CC-}" cc gcc clang clang-{16..22}
	fi
}

# report_twins COMPILER ARG…: compiles, then prints for each twin its size, the size of the plain function, and the
# reason for the twin, the largest first. A twin that was inlined into its caller has no size.
report_twins()
{
	make_scratch
	WEFT_ACTIVITIES_REPORT=$scratch/twins "$@" || exit
	nm -S -t d --defined-only -- "${outputs[@]}" >"$scratch/sizes" 2>/dev/null
	touch "$scratch/twins"
	printf '%8s %8s  %-32s %s\n' yielding plain function 'why it may yield'
	awk -v twins="$scratch/twins" '
		NF == 4 { size[$4] = $2 + 0 }
		END {
			for (FS = "\t"; (getline < twins) > 0;) {
				if (seen[$1]++) continue
				twin = $1 ".yielding"
				printf "%8s %8s  %-32s %s\n", twin in size ? size[twin] : "-", $1 in size ? size[$1] : "-", $1, $2
			}
		}' "$scratch/sizes" | sort -s -k1,1nr >"$scratch/lines"
	cat "$scratch/lines"
	awk '{ twin += $1; plain += $2 } END { printf "%8d %8d  bytes in %d functions\n", twin, plain, NR }' "$scratch/lines"
	exit
}

weft_cc()
{
	local policy='' instrument='' activities='' yields='' needs='' report='' clang='' arguments compiler before after launch outputs

	quiet=yes
	own_options "$@"
	choose_compiler "$command"
	surround "${arguments[@]}"
	set -- "${launch[@]}" "${compiler[@]}" "${before[@]}" "${arguments[@]}" "${after[@]}"
	[[ ! $report ]] || report_twins "$@"
	# The linker needs the object that was made for this call.
	[[ ! $scratch || ! -e $scratch/policy.o ]] || { "$@"; exit; }
	become "$@"
}
