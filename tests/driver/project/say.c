/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the policy in force, NOTE and the arguments; exits with their number, or as $SAY says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "voice.h"

#ifndef NOTE
#define NOTE "none"
#endif

static void *speak(void *arg)
{
	voice((const char *)arg);
	return arg;
}

int main(int argc, char **argv)
{
	const char *say = getenv("SAY");
	weft_coro_t *k = weft_create(speak, NOTE);
	weft_request_t r;
	char line[100];

	weft_handle (r, k, voice)
		printf("%s: %s\n", weft_policy_name(weft_policy(k)), weft_args(voice, r)->text);
	weft_delete(k);
	for (int i = 1; i < argc; i++)
		printf("[%s]", argv[i]);
	puts(argv[0] && strstr(argv[0], "say") ? "." : "?");
	if (say && !strcmp(say, "crash"))
		raise(SIGTERM);
	if (say && !strcmp(say, "read"))
		fputs(fgets(line, sizeof(line), stdin) ? line : "nothing\n", stdout);
	return argc - 1;
}
