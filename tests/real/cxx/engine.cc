/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "engine.h"

#include <cstring>
#include <exception>
#include <streambuf>

const char engine_name[] = "cxx";

static const part *const parts[] = {
    &exceptions_part,
    &streams_part,
    &machine_part,
#ifdef REAL_JSON
    &json_part,
#endif
};

/* A stream into the run. */
class run_buffer : public std::streambuf
{
	struct run *run;
	char bytes[300];

      public:
	explicit run_buffer(struct run *run) : run(run)
	{
		setp(bytes, bytes + sizeof(bytes));
	}
	~run_buffer() override
	{
		run_buffer::sync();
	}
	run_buffer(const run_buffer &) = delete;
	run_buffer &operator=(const run_buffer &) = delete;

      protected:
	int_type overflow(int_type c) override
	{
		sync();
		if (c != traits_type::eof())
			sputc(traits_type::to_char_type(c));
		return traits_type::not_eof(c);
	}
	int sync() override
	{
		run_write(run, pbase(), static_cast<size_t>(pptr() - pbase()));
		setp(bytes, bytes + sizeof(bytes));
		return 0;
	}
};

void engine_start(void)
{
}

static void run_part(const part &part, struct run *run)
{
	run_buffer buffer(run);
	std::ostream out(&buffer);

	try {
		part.run(run, out);
	} catch (const std::exception &e) {
		out << "not caught: " << e.what() << '\n';
		run->failed = 1;
	}
}

void engine_run(struct run *run)
{
	for (const part *part : parts)
		if (!std::strcmp(part->name, run->script)) {
			run_part(*part, run);
			return;
		}
	run_printf(run, "there is no part '%s'\n", run->script);
	run->failed = 1;
}
