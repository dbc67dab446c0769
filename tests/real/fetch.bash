# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# The sources of the real programs, as package registries carry them. Fetched by the registries' own clients, which are
# configured to reach them wherever that is; pinned by version and checksum; kept in build/real.

fetched=$BUILD_ROOT/real
LUA=$fetched/crates/lua-src/lua-5.4.9
SQLITE=$fetched/crates/libsqlite3-sys/sqlite3
JSON=$fetched/json

# digest DIRECTORY: one number for all files below it.
digest()
{
	(cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum) | cut -d' ' -f1
}

# have_sources DIRECTORY DIGEST
have_sources()
{
	[[ -d $1 && $(digest "$1") == "$2" ]]
}

have_crates()
{
	have_sources "$LUA" 8761d19ea3a83ae79eaa70ca7cac612cc2dfb7ec30f282ffc57421640f85a360 &&
		have_sources "$SQLITE" 464a0e4575feec91fa046143b6ae25d6ce376cc8f5df2db7a9b2bc4e7a23281c
}

# Lua and SQLite. cargo checks the packages against Cargo.lock; the digests above are of what came out of them.
fetch_crates()
{
	local cargo project=$fetched/cargo

	have_crates && return 0
	cargo=$(type -P cargo || type -P ~/.cargo/bin/cargo) || return 1
	rm -rf -- "$project" "$fetched/crates" && mkdir -p "$project" && cp "$SOURCE"/tests/real/Cargo.{toml,lock} "$project" &&
		: >"$project/fetch.rs" &&
		timeout 200 "$cargo" vendor --locked --manifest-path "$project/Cargo.toml" "$fetched/crates" >/dev/null && have_crates
}

# A JSON library in C++, in one header.
fetch_json()
{
	local wheel=nlohmann_json-3.12.0-py3-none-any.whl hash=5f6132720fb25d0d70bf0742f8397b49a540dcc193e7312a914f6aa49f054810
	local pinned=$fetched/pip/pinned.txt

	[[ -e $fetched/pip/$wheel && -e $JSON/nlohmann/json.hpp ]] &&
		sha256sum --quiet -c <<<"$hash  $fetched/pip/$wheel" && return 0
	rm -rf -- "$fetched/pip" "$JSON" && mkdir -p "$fetched/pip" "$JSON" &&
		printf 'nlohmann-json==3.12.0 --hash=sha256:%s\n' "$hash" >"$pinned" &&
		timeout 200 python3 -m pip download -q --no-deps --only-binary :all: --require-hashes -r "$pinned" -d "$fetched/pip" &&
		python3 -m zipfile -e "$fetched/pip/$wheel" "$fetched/pip/unpacked" &&
		mv -- "$fetched"/pip/unpacked/nlohmann_json/include/nlohmann "$JSON"
}
