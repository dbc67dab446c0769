# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# Building the real programs as a user would: by `weft cc`. KIND is plain, or an instrumentation. A program is in
# $WORK/PROGRAM.KIND.CC.LEVEL, and is made anew only if what it depends on has changed.

here=$SOURCE/tests/real

lua_flags=(-DLUA_COMPAT_5_3 -DLUA_USE_POSIX -DLUA_USE_DLOPEN -DLUAI_MAXCCALLS=4000 -DMAXCCALLS=20000 '-Dluai_makeseed(L)=0')
sqlite_flags=(-DSQLITE_THREADSAFE=1 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_MATH_FUNCTIONS
	-DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_STAT4 -DSQLITE_MAX_EXPR_DEPTH=5000 -DSQLITE_MAX_PARSER_DEPTH=100000
	-DSQLITE_SOUNDEX -DSQLITE_DQS=0)

# weft_cc KIND CC ARGS…
weft_cc()
{
	local kind=$1 cc=$2 instrument=()

	shift 2
	[[ $kind == plain ]] || instrument=(--instrument "$kind")
	WEFT_CC=$cc "$SOURCE/weft" cc --no-install "${instrument[@]}" "$@"
}

# Sets `sources`, `flags` and `language` of a program.
describe()
{
	local program=$1

	language=(-std=gnu11)
	case $program in
	lua | luaxx)
		sources=("$LUA"/*.c "$here/lua_engine.c")
		flags=("${lua_flags[@]}" -I"$LUA")
		;;
	sqlite)
		sources=("$SQLITE/sqlite3.c" "$here"/sqlite_*.c)
		flags=("${sqlite_flags[@]}" -I"$SQLITE")
		;;
	cxx)
		sources=("$here"/cxx/{engine,exceptions,streams,machine}.cc)
		flags=()
		language=(-std=c++17)
		[[ ! -e $JSON/nlohmann/json.hpp ]] || sources+=("$here/cxx/json.cc") flags=(-DREAL_JSON -I"$JSON")
		;;
	esac
	[[ $program != luaxx ]] || language=(-x c++ -std=c++17)
}

# What decides whether a program must be made anew: all that goes into it, and the flags.
key_of()
{
	(cd "$SOURCE" && cat include/weft/*.h include/weft/*/*.h src/*/* tools/as/* tools/driver/launch/* "${sources[@]}" \
		"$here"/host.* "$here"/*.h "$here"/cxx/*.h | sha256sum)
	printf '%s\n' "$*"
}

# build PROGRAM KIND CC LEVEL
build()
{
	local program=$1 kind=$2 cc=$3 level=$4 name=$1.$2.$3.$4 key source sources flags language

	describe "$program"
	key=$(key_of "$@" "${flags[@]}")
	[[ ! -e $WORK/$name.key || $(<"$WORK/$name.key") != "$key" || ! -x $WORK/$name ]] || return 0
	rm -rf -- "$WORK/$name.d" "$WORK/$name.key" && mkdir -p "$WORK/$name.d" || return 1
	for source in "${sources[@]}"; do
		weft_cc "$kind" "$cc" "$level" -w "${language[@]}" -D_GNU_SOURCE "${flags[@]}" -c "$source" \
			-o "$WORK/$name.d/${source##*/}.o" || return 1
	done
	weft_cc "$kind" "$cc" "$level" -std=gnu11 -D_GNU_SOURCE -c "$here/host.c" -o "$WORK/$name.d/host.o" &&
		weft_cc "$kind" "$cc" "$level" "$WORK/$name.d"/*.o -lstdc++ -lm -ldl -o "$WORK/$name" &&
		rm -rf -- "$WORK/$name.d" && printf '%s' "$key" >"$WORK/$name.key"
}

# scripts PROGRAM: sets `scripts`.
scripts_of()
{
	case $1 in
	lua | luaxx) scripts=("$here"/lua/*.lua) ;;
	sqlite) scripts=("$here"/sql/*.sql) ;;
	cxx)
		scripts=(exceptions streams machine)
		[[ ! -e $JSON/nlohmann/json.hpp ]] || scripts+=(json)
		;;
	esac
}
