/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * unloads SEED PLUGIN…: random programs that load plugins, perform the plugins' effects, and unload them, in any order
 * and with RTLD_LOCAL or RTLD_GLOBAL. One plugin, which stays, handles its own effect around all of it; a loop in the
 * program answers 0 to every unhandled effect. Two threads perform, from coroutines that outlive the plugins. The
 * oracle knows the name of each plugin, and no addresses.
 */
#include "unloads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

WEFT_EFFECT(int, ask, int, x);

enum { MOST = 16, CHOSEN = 5, THREADS = 2, WORLDS = 300, STEPS = 60 };
enum what { LOAD, UNLOAD, PERFORM, SET_DEFAULT, USE_DEFAULT, BY_TABLE, BY_SET, END };

static struct file {
	const char *name;
	int mode;     /* RTLD_LOCAL or RTLD_GLOBAL */
	void *object; /* NULL: it is not open */
	const struct plugin *plugin;
} files[MOST];
static int count;

static struct thread {
	pthread_t thread;
	sem_t go, done;
	weft_coro_t *asks;  /* asks once for each resume */
	int asked;	    /* the answer that it got */
	char unhandled[64]; /* the effect that the loop in the program answered last */
	/* The operation to do. */
	enum what what;
	struct file *file;
	int x, answer;
} threads[THREADS];

/* The plugin that handles, how it handles, and the plugin whose default handler the effects have. */
static const struct plugin *outer;
static enum how how;
static struct {
	const char *effect;
	int id;
	struct file *by;
} defaults[MOST];

static unsigned long seed;

static unsigned random_below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* ---- the threads ------------------------------------------------------------------------------------------------ */

static void load(struct file *file)
{
	file->object = dlopen(file->name, RTLD_NOW | file->mode);
	if (!file->object) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	file->plugin = dlsym(file->object, "plugin");
}

static __attribute__((noreturn)) void *asks(void *thread)
{
	for (;;) {
		((struct thread *)thread)->asked = ask(5);
		weft_suspend(NULL);
	}
}

static void obey(struct thread *t)
{
	switch (t->what) {
	case LOAD:
		load(t->file);
		break;
	case UNLOAD:
		dlclose(t->file->object);
		break;
	case PERFORM:
		t->answer = t->file->plugin->perform(t->x);
		break;
	case SET_DEFAULT:
		t->file->plugin->set_default();
		break;
	case USE_DEFAULT:
		break;
	case BY_TABLE:
		t->file->plugin->drive_by_table(t->asks);
		t->answer = t->asked;
		break;
	default:
		t->file->plugin->drive_by_set(t->asks);
		t->answer = t->asked;
	}
}

static void *innermost(void *thread)
{
	struct thread *t = thread;

	t->asks = weft_create(asks, t);
	for (;;) {
		sem_wait(&t->go);
		if (t->what == END)
			break;
		obey(t);
		sem_post(&t->done);
	}
	weft_delete(t->asks);
	return NULL;
}

static void *under_outer(void *thread)
{
	outer->run(how, innermost, thread);
	return NULL;
}

static void *run_thread(void *thread)
{
	struct thread *t = thread;
	weft_coro_t *k = weft_create(under_outer, t);
	weft_request_t r;

	while (r = weft_resume(k, NULL, WEFT_HANDLE_ALL), !weft_returned(r)) {
		const char *begin = strchr(r.effect->signature, ' ') + 1;

		snprintf(t->unhandled, sizeof t->unhandled, "%s", begin);
	}
	weft_delete(k);
	return NULL;
}

static void tell(struct thread *t, enum what what, struct file *file)
{
	t->what = what;
	t->file = file;
	t->unhandled[0] = '\0';
	sem_post(&t->go);
	if (what != END)
		sem_wait(&t->done);
}

/* ---- the oracle ------------------------------------------------------------------------------------------------- */

static const char *without_space(const char *effect)
{
	const char *dot = strchr(effect, '.');

	return dot ? dot + 1 : effect;
}

/* Returns the identity's text in memory that outlives the plugin. */
static const char *kept(const char *effect)
{
	static char texts[MOST][32];
	int i = 0;

	while (texts[i][0] && strcmp(texts[i], effect))
		i++;
	return strcpy(texts[i], effect);
}

static int default_of(const char *effect)
{
	for (int i = 0; i < MOST; i++)
		if (defaults[i].effect && !strcmp(defaults[i].effect, effect))
			return i;
	return -1;
}

static void note_default(struct file *by)
{
	int i = default_of(by->plugin->effect);

	if (i < 0)
		for (i = 0; defaults[i].effect; i++)
			;
	defaults[i].effect = kept(by->plugin->effect);
	defaults[i].id = by->plugin->id;
	defaults[i].by = by;
}

static bool is_resident(const struct file *file)
{
	void *object = dlopen(file->name, RTLD_NOW | RTLD_NOLOAD);

	if (object)
		dlclose(object);
	return object;
}

/* The default handler of an unloaded plugin is removed; effects of the same identity in other plugins then have
 * none. */
static void forget_defaults(void)
{
	for (int i = 0; i < MOST; i++)
		if (defaults[i].effect && !is_resident(defaults[i].by))
			defaults[i].effect = NULL;
}

static void check(const struct thread *t, int wanted, const char *unhandled)
{
	if (t->answer == wanted && (!unhandled || !strcmp(t->unhandled, unhandled)))
		return;
	printf("not ok - does not hold: step %d of plugin %d on thread %d under plugin %d (%d): %d, not %d; unhandled "
	       "is \"%s\"\n",
	       (int)t->what, t->file->plugin->id, (int)(t - threads), outer->id, (int)how, t->answer, wanted,
	       t->unhandled);
	exit(1);
}

static void check_perform(const struct thread *t, const struct plugin *by)
{
	if (strcmp(by->effect, outer->effect))
		check(t, 0, without_space(by->effect));
	else
		check(t, outer->id * 1000 + t->x, NULL);
}

/* Outside of any coroutine. */
static void check_default(struct thread *t, const struct plugin *by)
{
	int i = default_of(by->effect);

	t->answer = by->has_default();
	check(t, i >= 0, NULL);
	if (i < 0)
		return;
	t->answer = by->perform(t->x);
	check(t, defaults[i].id * 1000 + 500 + t->x, NULL);
}

/* ---- random programs -------------------------------------------------------------------------------------------- */

static void check_step(struct thread *t, enum what what, struct file *file)
{
	const struct plugin *p = file->plugin;

	if (what == SET_DEFAULT)
		note_default(file);
	else if (what == USE_DEFAULT)
		check_default(t, p);
	else if (what == PERFORM)
		check_perform(t, p);
	else if (what == BY_TABLE || (what == BY_SET && p->id % 2))
		check(t, p->id * 1000 + 705, NULL);
	else if (what == BY_SET)
		check(t, 0, "ask(int)");
}

/* Returns an operation that is possible with an open plugin. */
static enum what something(const struct file *file)
{
	static const enum what with_effect[] = {UNLOAD, UNLOAD, PERFORM, PERFORM, PERFORM, SET_DEFAULT, USE_DEFAULT};
	static const enum what asking[] = {UNLOAD, BY_TABLE, BY_SET};

	if (file->plugin->perform)
		return with_effect[random_below(sizeof with_effect / sizeof *with_effect)];
	return asking[random_below(sizeof asking / sizeof *asking)];
}

static void step(struct thread *t, struct file *file)
{
	enum what what = file->object ? something(file) : LOAD;

	if (what == UNLOAD && file->plugin == outer)
		return;
	t->x = (int)random_below(100);
	file->mode = random_below(2) ? RTLD_GLOBAL : RTLD_LOCAL;
	tell(t, what, file);
	if (what != UNLOAD) {
		check_step(t, what, file);
		return;
	}
	file->object = NULL;
	forget_defaults();
}

static void close_all(void)
{
	for (int i = 0; i < count; i++)
		if (files[i].object) {
			dlclose(files[i].object);
			files[i].object = NULL;
		}
	forget_defaults();
}

/* A plugin with an effect is the outer handler: this plugin or a later one. */
static void load_outer(struct file *file)
{
	file->mode = random_below(2) ? RTLD_GLOBAL : RTLD_LOCAL;
	load(file);
	if (!file->plugin->run) {
		load_outer(file == files + count - 1 ? files : file + 1);
		return;
	}
	outer = file->plugin;
	how = (enum how)random_below(HOWS);
}

/* Few plugins, so that a plugin is often loaded where another plugin was. */
static void world(void)
{
	struct file *chosen[CHOSEN];

	for (int i = 0; i < CHOSEN; i++)
		chosen[i] = &files[random_below((unsigned)count)];
	load_outer(chosen[0]);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]))
			exit(2);
	for (int i = 0; i < STEPS; i++)
		step(&threads[random_below(THREADS)], chosen[random_below(CHOSEN)]);
	for (int i = 0; i < THREADS; i++) {
		tell(&threads[i], END, NULL);
		pthread_join(threads[i].thread, NULL);
	}
	close_all();
}

int main(int arguments, char **argument)
{
	if (arguments < 3 || arguments > MOST + 2)
		return 2;
	seed = strtoul(argument[1], NULL, 10);
	while (count < arguments - 2) {
		files[count].name = argument[2 + count];
		count++;
	}
	for (int i = 0; i < THREADS; i++)
		if (sem_init(&threads[i].go, 0, 0) || sem_init(&threads[i].done, 0, 0))
			return 2;
	for (int i = 0; i < WORLDS; i++)
		world();
	return 0;
}
