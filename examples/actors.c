/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * actors.c: a bank whose accounts are actors. An actor is a task with a mailbox: a channel without a limit, so that a
 * send never waits. Only the actor touches its balance, one message at a time, and there is no lock.
 */
#include <stdio.h>
#include <string.h>
#include <weft/sync.h>

enum { ACCOUNTS = 10, CLIENTS = 20, TRANSFERS = 100, BALANCE = 1000 };

/* doc: begin account */
struct message {
	enum { DEPOSIT, TRANSFER, ASK } what;
	long amount;
	weft_chan_t *to; /* TRANSFER: another account's mailbox; ASK: where the answer goes */
};

static void *account(void *argument)
{
	weft_chan_t *mailbox = argument;
	long balance = BALANCE;
	struct message m;

	while (weft_chan_receive(mailbox, &m) == 0) {
		if (m.what == DEPOSIT)
			balance += m.amount;
		if (m.what == ASK)
			weft_chan_send(m.to, &balance);
		if (m.what == TRANSFER && m.amount <= balance) {
			struct message deposit = {.what = DEPOSIT, .amount = m.amount};
			int error = weft_chan_send(m.to, &deposit);

			if (error)
				weft_task_fail(error);
			balance -= m.amount;
		}
	}
	return NULL;
}
/* doc: end */

struct client {
	weft_chan_t **accounts;
	unsigned random;
};

static unsigned draw(struct client *c, unsigned below)
{
	c->random = c->random * 1103515245 + 12345;
	return (c->random >> 16) % below;
}

static void *transfers(void *argument)
{
	struct client *c = argument;

	for (int i = 0; i < TRANSFERS; i++) {
		weft_chan_t *from = c->accounts[draw(c, ACCOUNTS)];
		struct message m = {TRANSFER, draw(c, BALANCE), c->accounts[draw(c, ACCOUNTS)]};
		int error = weft_chan_send(from, &m);

		if (error)
			weft_task_fail(error);
	}
	return NULL;
}

/* The sum of the balances that the accounts report when each is asked once. A deposit that is still in a mailbox is in
 * no balance. */
static long total(weft_chan_t **accounts, weft_chan_t *answers)
{
	struct message ask = {.what = ASK, .to = answers};
	long sum = 0, balance = 0;

	for (int i = 0; i < ACCOUNTS; i++) {
		int error = weft_chan_send(accounts[i], &ask);

		if (!error)
			error = weft_chan_receive(answers, &balance);
		if (error)
			weft_task_fail(error);
		sum += balance;
	}
	return sum;
}

static int serve(weft_chan_t **accounts, weft_chan_t *answers)
{
	struct client clients[CLIENTS];
	int error = 0, tries = 0;
	long sum;

	WEFT_SCOPE(bank);
	for (int i = 0; i < ACCOUNTS && !error; i++)
		error = weft_scope_spawn(&bank, account, accounts[i]);
	if (!error) {
		WEFT_SCOPE(customers);
		for (int i = 0; i < CLIENTS && !error; i++) {
			clients[i] = (struct client){accounts, (unsigned)i + 1};
			error = weft_scope_spawn(&customers, transfers, &clients[i]);
		}
		if (!error)
			error = weft_scope_wait(&customers);
	}
	if (error)
		return error;
	/* All orders have been sent, but the last may not have been executed yet. */
	while ((sum = total(accounts, answers)) != ACCOUNTS * BALANCE && tries++ < 1000)
		weft_task_yield();
	printf("%d accounts have %ld together, after %d orders\n", ACCOUNTS, sum, CLIENTS * TRANSFERS);
	for (int i = 0; i < ACCOUNTS; i++)
		weft_chan_close(accounts[i]);
	return weft_scope_wait(&bank);
}

static void *bank(void *unused)
{
	weft_chan_t *accounts[ACCOUNTS], *answers = weft_chan_make(sizeof(long), 1);
	int error = answers ? 0 : -ENOMEM;

	for (int i = 0; i < ACCOUNTS; i++) {
		accounts[i] = weft_chan_make(sizeof(struct message), WEFT_UNBOUNDED);
		error = accounts[i] ? error : -ENOMEM;
	}
	if (!error)
		error = serve(accounts, answers);
	for (int i = 0; i < ACCOUNTS; i++)
		weft_chan_free(accounts[i]);
	weft_chan_free(answers);
	if (error)
		weft_task_fail(error);
	return unused;
}

int main(void)
{
	int error = weft_rt_run(NULL, bank, NULL, NULL);

	if (error)
		fprintf(stderr, "actors: %s\n", strerror(-error));
	return error != 0;
}
