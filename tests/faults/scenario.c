/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "scenario.h"

static bool as_expected(const struct scenario *s, const struct outcome *o)
{
	bool text = s->text && *s->text ? strstr(o->text, s->text) != NULL : !*o->text;

	return text && (s->signal ? o->signal == s->signal : o->code == 0);
}

int run_scenarios(const struct scenario *scenarios, size_t count, int arguments, char **argument)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		const struct scenario *s = &scenarios[i];
		struct outcome o;

		if (arguments > 1 && !strstr(s->name, argument[1]))
			continue;
		o = in_child(s->run);
		if (as_expected(s, &o)) {
			printf("ok %zu - %s\n", i + 1, s->name);
			continue;
		}
		failed++;
		printf("not ok %zu - %s\n", i + 1, s->name);
		fprintf(stderr, "# %s: signal %d, code %d; expected signal %d and \"%s\"; standard error:\n%s\n",
			s->name, o.signal, o.code, s->signal, s->text ? s->text : "", o.text);
	}
	return failed > 0;
}
