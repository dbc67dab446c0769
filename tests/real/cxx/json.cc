/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An unmodified third-party JSON library of 25 000 lines of templates. */
#include "engine.h"

#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace
{

using nlohmann::json;

json sample(int n)
{
	json j = {{"list", json::array()}, {"text", "a \"quoted\" line\n\tgrüße"}, {"nothing", nullptr}, {"yes", true}};

	for (int i = 0; i < n; i++)
		j["list"].push_back({{"id", i},
				     {"half", i / 2.0},
				     {"tags", {"a", "b", i % 3 == 0}},
				     {"deep", {{"er", {{"still", i}}}}}});
	return j;
}

/* Every prefix is an error, and the error has its position. */
void errors(struct run *run, std::ostream &out)
{
	const std::string text = sample(3).dump();

	for (size_t n = 0; n < text.size(); n += 7) {
		try {
			run_pause(run);
			out << json::parse(text.substr(0, n)).size() << '\n';
		} catch (const json::parse_error &e) {
			out << e.id << ' ' << e.byte << ' ' << std::string(e.what()).substr(0, 90) << '\n';
		}
	}
	for (const char *bad : {"{\"a\":}", "[1,]", "nul", "\"\\x\"", "1e", "[\"\xff\"]", "{1:2}", "tru", "[}"}) {
		out << json::accept(bad) << ' ' << json::parse(bad, nullptr, false).is_discarded() << '\n';
	}
}

void types(std::ostream &out)
{
	const json j = sample(2);

	for (int i = 0; i < 6; i++)
		try {
			switch (i) {
			case 0:
				out << j.at("none").dump() << '\n';
				break;
			case 1:
				out << j["list"].at(99).dump() << '\n';
				break;
			case 2:
				out << j["text"].get<int>() << '\n';
				break;
			case 3:
				out << j.at("/list/1/deep/er/still"_json_pointer) << '\n';
				break;
			case 4:
				out << j["/list/x"_json_pointer] << '\n';
				break;
			default:
				out << json(std::string("\xff")).dump() << '\n';
			}
		} catch (const json::exception &e) {
			out << e.what() << '\n';
		}
}

void nesting(std::ostream &out)
{
	for (int n : {10, 1000, 20000}) {
		std::string text(static_cast<size_t>(n), '[');

		text += std::string(static_cast<size_t>(n), ']');
		const json j = json::parse(text);
		int depth = 0;

		for (const json *at = &j; !at->empty(); at = &at->front())
			depth++;
		/* dump, compare and flatten recurse. */
		json copy = j;
		out << n << ' ' << depth << ' ' << (copy == j) << ' ' << j.dump().size() << ' '
		    << j.dump(1).size() % 1000003 << '\n';
	}
}

void formats(struct run *run, std::ostream &out)
{
	const json j = sample(40);
	const std::vector<std::vector<std::uint8_t>> forms = {json::to_cbor(j), json::to_msgpack(j), json::to_ubjson(j),
							      json::to_bson(j)};
	std::stringstream stream;

	for (const auto &form : forms)
		out << form.size() << ' ';
	run_pause(run);
	out << (json::from_cbor(forms[0]) == j) << (json::from_msgpack(forms[1]) == j)
	    << (json::from_ubjson(forms[2]) == j) << (json::from_bson(forms[3]) == j) << '\n';
	stream << std::setw(2) << j;
	json back;
	stream >> back;
	out << (back == j) << ' ' << back.flatten().size() << ' ' << (back.flatten().unflatten() == j) << ' '
	    << std::hash<json>()(j) << '\n';
	back["list"][3]["id"] = "changed";
	back.erase("yes");
	const json patch = json::diff(j, back);
	out << patch << ' ' << (j.patch(patch) == back) << '\n';
	for (size_t cut = 0; cut < forms[0].size(); cut += 41)
		try {
			out << json::from_cbor(std::vector<std::uint8_t>(forms[0].begin(),
									 forms[0].begin() + static_cast<long>(cut)))
				   .size();
		} catch (const json::parse_error &e) {
			out << e.id << ' ' << e.byte << '\n';
		}
}

void run_json(struct run *run, std::ostream &out)
{
	out << sample(2).dump(2) << '\n';
	errors(run, out);
	types(out);
	nesting(out);
	formats(run, out);
}

} // namespace

const part json_part = {"json", run_json};
