/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* policies: for each name given, prints in JSON whether that stack policy can be used here: null, or the reason why
 * not. */
#include <stdio.h>
#include <weft/weft.h>

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		weft_policy_t policy = weft_policy_named(argv[i]);
		const char *why = "this library has no such policy";

		if (policy != WEFT_DEFAULT_POLICY)
			why = weft_policy_unavailable(policy);
		printf("%s\"%s\": %s%s%s", i == 1 ? "{" : ", ", argv[i], why ? "\"" : "", why ? why : "null",
		       why ? "\"" : "");
	}
	puts("}");
	return 0;
}
