# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft lookahead --explain: the decisions of look-ahead for a program.

# shellcheck source=tools/driver/cc.bash
. "$driver/cc.bash" || exit 70

weft_lookahead()
{
	local instrument=lookahead launch file

	[[ ${1-} == --explain ]] || die 2 "what to do? weft lookahead --explain PROGRAM|OBJECT…"
	shift
	(($#)) || die 2 "nothing to explain: weft lookahead --explain PROGRAM|OBJECT…"
	for file; do
		[[ $file != -* ]] || die 2 "unknown option '$file': see 'weft help lookahead'"
		[[ -e $file ]] || die 2 "there is no file '$file'"
		[[ -f $file && -r $file ]] || die 2 "cannot read '$file'"
	done
	find_launcher
	become "${launch[0]}" --explain "$@"
}
