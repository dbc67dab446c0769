/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A small language: scanner, recursive parser, trees of virtual functions, closures, visitors, errors as exceptions. */
#include "engine.h"

#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace
{

struct function_value;
using value = std::variant<std::monostate, double, std::string, std::shared_ptr<function_value>>;
using environment = std::map<std::string, value>;

struct machine {
	struct run *run;
	std::ostream &out;
	std::vector<environment> scopes;
	int depth = 0;
};

struct node {
	virtual ~node() = default;
	virtual value evaluate(machine &m) const = 0;
	virtual void print(std::ostream &out) const = 0;
};

using tree = std::unique_ptr<node>;

struct function_value {
	std::vector<std::string> parameters;
	const node *body;
	environment captured;
};

struct syntax_error : std::runtime_error {
	size_t at;

	syntax_error(const std::string &what, size_t at) : std::runtime_error(what), at(at)
	{
	}
};

struct thrown {
	value what;
};

std::ostream &operator<<(std::ostream &out, const value &v)
{
	struct printer {
		std::ostream &out;

		void operator()(std::monostate) const
		{
			out << "none";
		}
		void operator()(double d) const
		{
			out << d;
		}
		void operator()(const std::string &s) const
		{
			out << s;
		}
		void operator()(const std::shared_ptr<function_value> &f) const
		{
			out << "function/" << f->parameters.size();
		}
	};

	std::visit(printer{out}, v);
	return out;
}

struct constant : node {
	value v;

	explicit constant(value v) : v(std::move(v))
	{
	}
	value evaluate(machine &) const override
	{
		return v;
	}
	void print(std::ostream &out) const override
	{
		out << v;
	}
};

struct variable : node {
	std::string name;

	explicit variable(std::string name) : name(std::move(name))
	{
	}
	value evaluate(machine &m) const override
	{
		auto found = m.scopes.back().find(name);

		if (found == m.scopes.back().end())
			throw std::out_of_range("unknown " + name);
		return found->second;
	}
	void print(std::ostream &out) const override
	{
		out << name;
	}
};

struct binary : node {
	char op;
	tree left, right;

	binary(char op, tree left, tree right) : op(op), left(std::move(left)), right(std::move(right))
	{
	}
	value evaluate(machine &m) const override
	{
		value a = left->evaluate(m), b = right->evaluate(m);

		if (op == '+' && std::holds_alternative<std::string>(a)) {
			std::ostringstream text;

			text << a << b;
			return text.str();
		}
		double x = std::get<double>(a), y = std::get<double>(b);
		static const std::map<char, std::function<double(double, double)>> table = {
		    {'+', std::plus<>()},
		    {'-', std::minus<>()},
		    {'*', std::multiplies<>()},
		    {'/',
		     [](double p, double q) { return q != 0 ? p / q : throw std::domain_error("division by zero"); }},
		    {'<', [](double p, double q) { return p < q ? 1.0 : 0.0; }},
		    {'%', [](double p, double q) { return std::fmod(p, q); }},
		};
		return table.at(op)(x, y);
	}
	void print(std::ostream &out) const override
	{
		out << '(';
		left->print(out);
		out << op;
		right->print(out);
		out << ')';
	}
};

/* if, let, try, throw, pause and calls: a word and its operands. */
struct special : node {
	std::string word, name;
	std::vector<tree> parts;

	value evaluate(machine &m) const override
	{
		static const std::map<std::string, value (special::*)(machine &) const> table = {
		    {"if", &special::choose},
		    {"let", &special::bind},
		    {"try", &special::attempt},
		    {"throw", &special::raise},
		    {"pause", &special::pause}};

		return (this->*table.at(word))(m);
	}
	value choose(machine &m) const
	{
		return parts[std::get<double>(parts[0]->evaluate(m)) != 0 ? 1 : 2]->evaluate(m);
	}
	value bind(machine &m) const
	{
		value v = parts[0]->evaluate(m);

		if (auto f = std::get_if<std::shared_ptr<function_value>>(&v))
			(*f)->captured[name] = v;
		environment kept = m.scopes.back();
		m.scopes.back()[name] = v;
		value result = parts[1]->evaluate(m);
		m.scopes.back() = std::move(kept);
		return result;
	}
	value attempt(machine &m) const
	{
		size_t scopes = m.scopes.size();
		int depth = m.depth;

		try {
			return parts[0]->evaluate(m);
		} catch (const thrown &t) {
			m.scopes.resize(scopes);
			m.depth = depth;
			m.scopes.back()["it"] = t.what;
			return parts[1]->evaluate(m);
		} catch (const std::exception &e) {
			m.scopes.resize(scopes);
			m.depth = depth;
			m.scopes.back()["it"] = std::string(e.what());
			return parts[1]->evaluate(m);
		}
	}
	value raise(machine &m) const
	{
		throw thrown{parts[0]->evaluate(m)};
	}
	value pause(machine &m) const
	{
		run_pause(m.run);
		return parts[0]->evaluate(m);
	}
	void print(std::ostream &out) const override
	{
		out << word << ' ' << name;
		for (const tree &part : parts) {
			out << ' ';
			part->print(out);
		}
	}
};

struct lambda : node {
	std::vector<std::string> parameters;
	tree body;

	value evaluate(machine &m) const override
	{
		return std::make_shared<function_value>(function_value{parameters, body.get(), m.scopes.back()});
	}
	void print(std::ostream &out) const override
	{
		out << "\\" << parameters.size() << '.';
		body->print(out);
	}
};

struct call : node {
	tree callee;
	std::vector<tree> arguments;

	value evaluate(machine &m) const override
	{
		auto f = std::get<std::shared_ptr<function_value>>(callee->evaluate(m));
		environment scope = f->captured;

		if (f->parameters.size() != arguments.size())
			throw std::invalid_argument("arguments");
		if (++m.depth > 3000)
			throw std::length_error("too deep");
		for (size_t i = 0; i < arguments.size(); i++)
			scope[f->parameters[i]] = arguments[i]->evaluate(m);
		m.scopes.push_back(std::move(scope));
		value v = f->body->evaluate(m);
		m.scopes.pop_back();
		m.depth--;
		return v;
	}
	void print(std::ostream &out) const override
	{
		callee->print(out);
		out << "(…" << arguments.size() << ')';
	}
};

class parser
{
	const std::string &text;
	size_t at = 0;

	char peek()
	{
		while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
			at++;
		return at < text.size() ? text[at] : '\0';
	}
	void want(char c)
	{
		if (peek() != c)
			throw syntax_error(std::string("expected ") + c, at);
		at++;
	}
	std::string word()
	{
		std::string w;

		peek();
		while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])))
			w += text[at++];
		if (w.empty())
			throw syntax_error("expected a word", at);
		return w;
	}
	tree keyword(const std::string &w)
	{
		static const std::map<std::string, int> counts = {
		    {"if", 3}, {"let", 2}, {"try", 2}, {"throw", 1}, {"pause", 1}};
		auto found = counts.find(w);

		if (found == counts.end())
			return std::make_unique<variable>(w);
		auto s = std::make_unique<special>();
		s->word = w;
		if (w == "let")
			s->name = word();
		for (int i = 0; i < found->second; i++)
			s->parts.push_back(sum());
		return s;
	}
	tree function()
	{
		auto f = std::make_unique<lambda>();

		at++;
		while (peek() != '.')
			f->parameters.push_back(word());
		at++;
		f->body = sum();
		return f;
	}
	tree atom()
	{
		char c = peek();

		if (std::isdigit(static_cast<unsigned char>(c))) {
			size_t length;
			double d = std::stod(text.substr(at, 20), &length);

			at += length;
			return std::make_unique<constant>(d);
		}
		if (c == '"') {
			size_t end = text.find('"', at + 1);

			if (end == std::string::npos)
				throw syntax_error("endless string", at);
			auto s = std::make_unique<constant>(text.substr(at + 1, end - at - 1));
			at = end + 1;
			return s;
		}
		if (c == '\\')
			return function();
		if (c != '(')
			return keyword(word());
		at++;
		tree inner = sum();
		want(')');
		return inner;
	}
	tree postfix()
	{
		tree t = atom();

		while (at < text.size() && text[at] == '[') {
			auto c = std::make_unique<call>();

			c->callee = std::move(t);
			for (at++; peek() != ']';) {
				c->arguments.push_back(sum());
				if (peek() == ',')
					at++;
			}
			at++;
			t = std::move(c);
		}
		return t;
	}
	tree chain(const char *operators, const std::function<tree()> &next)
	{
		tree left = next();

		while (peek() && std::string(operators).find(peek()) != std::string::npos) {
			char op = text[at++];

			left = std::make_unique<binary>(op, std::move(left), next());
		}
		return left;
	}
	tree sum()
	{
		return chain("<", [this] {
			return chain("+-", [this] { return chain("*/%", [this] { return postfix(); }); });
		});
	}

      public:
	explicit parser(const std::string &text) : text(text)
	{
	}
	tree parse()
	{
		tree t = sum();

		if (peek())
			throw syntax_error("left over", at);
		return t;
	}
};

void run_program(struct run *run, std::ostream &out, const std::string &text)
{
	machine m{run, out, {{}}};

	out << text.substr(0, 60) << " -> ";
	try {
		tree t = parser(text).parse();
		std::ostringstream printed;

		t->print(printed);
		out << printed.str().size() << ": " << t->evaluate(m) << '\n';
	} catch (const syntax_error &e) {
		out << e.what() << " at " << e.at << '\n';
	} catch (const thrown &t) {
		out << "thrown " << t.what << '\n';
	} catch (const std::exception &e) {
		out << e.what() << '\n';
	}
}

std::string repeat(const std::string &s, int n)
{
	std::string all;

	while (n-- > 0)
		all += s;
	return all;
}

void run_machine(struct run *run, std::ostream &out)
{
	const char *programs[] = {"1 + 2 * 3 - 4 / 5 % 3",
				  "let f \\n.if n < 2 n f[n - 1] + f[n - 2] f[14]",
				  "let s \\n.if n < 1 0 n + s[n - 1] s[900]",
				  "let s \\n.if n < 1 0 1 + s[n - 1] s[100000]",
				  "try (let s \\n.if n < 1 throw \"deep\" 1 + s[n - 1] s[2000]) \"caught \" + it",
				  "try 1 / 0 it",
				  "unknown",
				  "\"a\" - 1",
				  "1 +",
				  "(1",
				  "\"x",
				  "let f \\x y.x + y f[1]",
				  "(\\x y.pause x * y)[6, 7]",
				  "let t \\n.if n < 1 throw n try t[n - 1] throw it + 1 t[300]",
				  "let g \\n.if n < 1 0 pause 1 + g[n - 1] g[200]",
				  "let c \\f x.f[f[x]] c[\\x.c[\\y.y * 2, x], 5]"};

	for (const char *program : programs)
		run_program(run, out, program);
	for (int n : {10, 500, 3000}) {
		run_program(run, out, repeat("(", n) + "1" + repeat(")", n));
		run_program(run, out, "1" + repeat("+1", n));
		run_program(run, out, repeat("let x 1 ", n) + "x");
		run_program(run, out, repeat("try ", n) + "throw 1" + repeat(" (throw it + 1)", n));
		run_program(run, out, repeat("(", n) + "1");
	}
}

} // namespace

const part machine_part = {"machine", run_machine};
