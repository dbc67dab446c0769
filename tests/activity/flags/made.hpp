/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Classes whose constructors and destructors are in another file, made.cpp, and yield. */
#ifndef WEFT_TESTS_ACTIVITY_MADE_HPP
#define WEFT_TESTS_ACTIVITY_MADE_HPP

/* How many activities are inside at once, at most. */
struct crowd {
	int now = 0, most = 0;
	void pass();
};

struct made {
	static crowd making, ending;
	int value;

	explicit made(int value);
	made(const made &) = delete;
	virtual ~made();
};

struct made_further : made {
	explicit made_further(int value);
	~made_further() override;
};

#endif
