/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ways out of blocks that do not do what they say. Each marked line is reported; the other lines are right. */
#include <weft/charcoal.h>

int many(int n)
{
	activity_t a;
	int sum = 0;

	for (int i = 0; i < n; i++) {
		no_yield
		{
			if (i == 3)
				break; /* reported */
			if (i == 4)
				continue; /* reported */
			for (int k = 0; k < 3; k++)
				if (k == 1)
					break;
			switch (i) {
			case 1:
				break;
			}
			if (i == 5)
				return 5;
		}
		no_implicit_yield
		{
			continue; /* reported */
		}
	}
	activate(&a, n)
	{
		for (int i = 0; i < n; i++) {
			if (i == 2)
				continue;
			if (i == 3)
				break;
			if (i == 4)
				return 1; /* reported */
		}
		if (n == 1)
			break; /* reported */
		if (n == 2)
			goto out; /* reported */
		if (n == 3)
			goto in;
		if (n == 4)
			continue;
	in:
		sum++;
	}
	(void)activity_wait(&a);
out:
	return sum;
}

/* The loop's index has changed when the activity reads it, unless the loop waits. */
void indices(int n)
{
	activity_t a;
	static int many[9];

	for (int i = 0; i < n; i++)
		activate_detached() /* reported */
		{
			many[i]++;
		}
	for (int i = 0; i < n; i++) {
		if (many[i])
			activate(&a) /* reported */
			{
				many[i]++;
			}
	}
	for (int i = 0; i < n; i++) {
		activate(&a)
		{
			many[i]++;
		}
		activity_wait(&a);
	}
	for (int i = 0; i < n; i++)
		activate_detached(i)
		{
			for (int k = 0; k < i; k++)
				many[k]++;
		}
}

int returns(int n)
{
	activity_t a;
	int sum = 0;

	activate(&a)
	{
		sum++;
	}
	if (n == 1) {
		activity_cancel(&a);
		return activity_wait(&a);
	}
	if (n == 2)
		return 1; /* reported */
	for (int i = 0; i < n; i++)
		activity_wait(&a);
	if (n == 3)
		return 2;
	return sum;
}

void starts(void)
{
	int alone = 1, listed = 2;

	activate_detached(listed) /* reported */
	{
		alone += listed;
	}
}
