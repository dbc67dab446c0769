-- SPDX-License-Identifier: MIT OR Apache-2.0
-- The compiler, which recurses in C: big generated sources, deep nesting, errors in all places, dumps.

local function short(ok, message)
	return ok, type(message) == "string" and (message:gsub("%[string \".-\"%]", "source")):sub(1, 100) or message
end

-- A large program, given in pieces with pauses in between.
local parts = {}
for i = 1, 3000 do
	parts[#parts + 1] = ("local function f%d(a, b, ...) local t = {a, b, x = a, ['y%d'] = b, ...}; for i = 1, #t do if t[i] == %d then goto out elseif not t[i] then break end end ::out:: while a > 100 do a = a - b * 2 // 3 end repeat local z = a; until z == z; return a + b, t.x end\n"):format(i % 150, i, i)
	if i % 150 == 149 then parts[#parts + 1] = "do local r = 0 for i = 1, 10 do r = r + f149(i, i) end total = (total or 0) + r end\n" end
	if i % 150 == 149 then parts[#parts + 1] = "end do\n" end
end
local source = "local total = 0 do\n" .. table.concat(parts) .. "end return total"
do
	local at = 1
	local f, e = load(function()
		if at > #source then return nil end
		local piece = source:sub(at, at + 4999)
		at = at + 5000
		if at % 3 == 0 then pause() end
		return piece
	end, "=big")
	print(#source, f and f() or e)
	local dumped = string.dump(f)
	local again = load(dumped, "dump", "b")
	print(string.dump(again) == dumped, again(), #string.dump(again, true) < #dumped)
	for _, cut in ipairs {1, 10, 100, 1000, 10000} do print("cut", cut, short(pcall(load, dumped:sub(1, cut)))) end
	print(load(dumped, "dump", "t"))
end

-- Nesting of every kind: just right, and endless.
local kinds = {
	parentheses = function(n) return "return " .. ("("):rep(n) .. "1" .. (")"):rep(n) end,
	tables = function(n) return "return #" .. ("{"):rep(n) .. ("}"):rep(n) end,
	functions = function(n) return ("return (function() "):rep(n) .. "return 1" .. (" end)()"):rep(n) end,
	blocks = function(n) return ("do "):rep(n) .. ("end "):rep(n) .. "return 1" end,
	conditions = function(n) return ("if true then "):rep(n) .. "x = 1 " .. ("end "):rep(n) .. "return x" end,
	unary = function(n) return "return " .. ("- -"):rep(n) .. "1" end,
	power = function(n) return "return 1" .. ("^1"):rep(n) end,
	concat = function(n) return "return #('a'" .. ("..'a'"):rep(n) .. ")" end,
	calls = function(n) return "local function f(x) return x end return " .. ("f("):rep(n) .. "1" .. (")"):rep(n) end,
	index = function(n) return "local t = {} t.t = t return " .. ("t["):rep(n) .. "'t'" .. ("]"):rep(n) .. " == t" end,
	["while"] = function(n) return ("while true do "):rep(n) .. "x = 2 " .. ("break end "):rep(n) .. "return x" end,
}
local names = {}
for name in pairs(kinds) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
	for _, n in ipairs {10, 100, 180, 3000, 100000} do
		local f, e = load(kinds[name](n), "=source")
		if f then print(name, n, pcall(f)) else print(name, n, (e:gsub("near .*", ""))) end
	end
end

-- Errors in sources: every prefix of a program, and odd ones.
local program = "local a <const>, b <close> = 1, nil; for i, v in pairs({1, 'x', [[y]], 0x1p4, ...}) do a.b[c]:d(e) end goto x ::x:: return function(...) return ... end"
for n = 1, #program, 3 do print(n, short(load(program:sub(1, n)))  and "fine" or (select(2, short(load(program:sub(1, n)))))) end
for _, bad in ipairs {"x =", "goto nowhere", "break", "local a <const> = 1; a = 2", "return '\\q'", "return 'abc", "--[[", "x = }", "for i = 1 do end", "::a:: ::a::", "return 0x", "return 1..2", "return '\\u{110000000}'", "local x <foo> = 1", "f(\n)(", ("x="):rep(50)} do
	print(bad:sub(1, 20), select(2, short(load(bad))))
end
do
	local locals, upvalues = {}, {}
	for i = 1, 201 do locals[i] = "v" .. i end
	print(select(2, short(load("local " .. table.concat(locals, ",")))))
	for i = 1, 300 do upvalues[i] = ("local u%d_%d = 1 "):format(i, i) end
	print(select(2, short(load("local " .. table.concat(locals, ",", 1, 150) .. " local function f() local " .. table.concat(locals, ",", 1, 190):gsub("v", "w") .. " return function() return " .. table.concat(locals, "+", 1, 150) .. "+" .. table.concat(locals, "+", 1, 190):gsub("v", "w") .. " end end"))))
	local constants = {}
	for i = 1, 70000 do constants[i] = "'c" .. i .. "'" end
	local t = load("return {" .. table.concat(constants, ",") .. "}")()
	print(#t, t[1], t[70000])
end
print(load("return ...", "c", "t", {})(5), load("x = 1; return x", "c", "t", {})(), pcall(load, function() error("reader", 0) end), pcall(load, function() return {} end))
print(pcall(dofile, "/no/such/file"), pcall(require, "no.such.module") and 1 or 0)
package.preload.own = function(name) return load("return {...}, " .. #name)(name) end
print(type(require("own")), package.loaded.own ~= nil)
