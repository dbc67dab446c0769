-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Sorting with comparators that err, pause and recurse; tables; strings with callbacks.

local seed = 7
local function random(n)
	seed = (seed * 1103515245 + 12345) % 0x80000000
	return seed // 65536 % n + 1
end

local function list(n)
	local t = {}
	for i = 1, n do t[i] = random(1000000) end
	return t
end

local function less(a, b) return a < b end

local function digest(t)
	local h = 0
	for i, v in ipairs(t) do h = (h * 31 + v * i) % 1000000007 end
	return #t .. ":" .. h
end

for _, n in ipairs {0, 1, 2, 3, 10, 100, 1000, 5000} do
	local t = list(n)
	local by_c = qsort(t, less)
	table.sort(t)
	print("sort", n, digest(t), digest(by_c) == digest(t))
	table.sort(t, function(a, b) return a > b end)
	print("sort", n, digest(t))
end

-- Comparators that suspend the run, raise at some call, sort by themselves.
do
	local t = list(60)
	table.sort(t, function(a, b) pause() return a < b end)
	print("pausing", digest(t), digest(qsort(t, function(a, b) pause() return a > b end)))
end
for at = 1, 200, 13 do
	for name, sorter in pairs {sort = table.sort} do
		local calls = 0
		print(name, at, pcall(sorter, list(50), function(a, b)
			calls = calls + 1
			if calls == at then error("call " .. at, 0) end
			return a < b
		end))
	end
	local calls = 0
	print("qsort", at, pcall(qsort, list(50), function(a, b)
		calls = calls + 1
		if calls == at then error("call " .. at, 0) end
		return a < b
	end))
end
print(pcall(table.sort, list(100), function() return true end))
print(pcall(table.sort, {1, "x", {}}), pcall(qsort, {1, "x"}, less))
do
	local function nested(a, b, n)
		if n > 0 then
			local t = {3, 1, 2}
			local sorter = n % 2 == 0 and qsort or table.sort
			t = sorter(t, function(x, y) return nested(x, y, n - 1) end) or t
		end
		return a < b
	end
	local t = list(20)
	table.sort(t, function(a, b) return nested(a, b, 3) end)
	print("nested", digest(t))
end

-- Callbacks of gsub that fail, pause, recurse; captures.
local text = string.rep("the quick brown fox jumps over the lazy dog. ", 40)
print(text:gsub("%w+", function(w) if w == "fox" then pause() end return #w > 4 and w:upper() or nil end):sub(1, 100))
print(select(2, text:gsub("(%w)(%w*)", "%2%1")), (text:gsub("%s+", {[" "] = "_"})):sub(1, 50))
print(pcall(string.gsub, text, "lazy", function() error({}) end), pcall(string.gsub, "x", "x", "%2"), pcall(string.gsub, "x", "x", function() return {} end))
local function expand(s, n)
	return (s:gsub("%$(%w+)", function(w) return n > 0 and expand("<" .. w .. "$" .. w .. ">", n - 1) or w end))
end
print(#expand("$a $b", 60), expand("$a", 5))
for k, v in string.gmatch("a=1, b=2, c=3", "(%w+)=(%w+)") do print(k, v) end
for w in string.gmatch("one two", "%a+") do pause(w) end
print(("x"):rep(3, ","), ("%d"):format(3), ("abc"):byte(1, -1), ("héllo"):len(), ("abc"):reverse(), ("  trim "):match("^%s*(.-)%s*$"))
print(string.find("a.b", ".", 2, true), string.find("abc", "b()"), ("THE (quick) fox"):find("%((%a+)%)"), ("key = value"):match("^(%w+)%s*=%s*(%w+)$"))
print(pcall(string.find, "a", "[a"), pcall(string.find, "a", "%"), pcall(string.match, "a", "(a"), string.match("2024-05-06", "(%d+)-(%d+)-(%d+)"), ("f(a,b)"):gsub("%f[%w]%w+", "<%0>"))

-- Tables.
local t = {}
for i = 1, 300 do t[i] = i end
print(select("#", table.unpack(t)), table.concat(t, "", 1, 20), table.remove(t, 1), table.insert(t, 5, "x"), t[5], #table.move(t, 1, 10, 300))
print(pcall(table.concat, {1, {}, 3}), pcall(table.unpack, {}, 1, 1e8), pcall(table.insert, t, 1000, 1), table.pack(1, nil, 3).n)
local proxy = setmetatable({}, {__index = function(_, i) pause() return i <= 10 and i * i or nil end, __len = function() return 10 end, __newindex = function() error("read-only", 0) end})
print(table.concat(proxy, " "), pcall(table.insert, proxy, 1), table.unpack(proxy))
local ordered = {}
for k in pairs(setmetatable({}, {__pairs = function() return function(_, k) k = (k or 0) + 1 if k < 5 then return k end end end})) do ordered[#ordered + 1] = k end
print(table.concat(ordered, " "))

-- Metamethods of all kinds, through C and back.
local N = {}
N.__index = N
local function new(v) return setmetatable({v = v}, N) end
for op, f in pairs {add = function(a, b) return a + b end, sub = function(a, b) return a - b end, mul = function(a, b) return a * b end, div = function(a, b) return a / b end, mod = function(a, b) return a % b end, pow = function(a, b) return a ^ b end, idiv = function(a, b) return a // b end, band = function(a, b) return a & b end, bor = function(a, b) return a | b end, bxor = function(a, b) return a ~ b end, shl = function(a, b) return a << b end, shr = function(a, b) return a >> b end} do
	N["__" .. op] = function(a, b) return new(f(a.v, b.v)) end
end
N.__lt = function(a, b) pause() return a.v < b.v end
N.__le = function(a, b) return a.v <= b.v end
N.__eq = function(a, b) return a.v == b.v end
N.__unm = function(a) return new(-a.v) end
N.__len = function(a) return a.v end
N.__call = function(self, ...) return self.v, ... end
N.__tostring = function(a) return "N" .. a.v end
N.__name = "N"
local a, b = new(12), new(5)
print(tostring(a + b), tostring(a - b), tostring(a * b), tostring(a / b), tostring(a % b), tostring(a ^ b), tostring(a // b), tostring(a & b), tostring(a | b), tostring(a ~ b), tostring(a << b), tostring(a >> b), tostring(-a), #a, a(1, 2), a < b, a <= b, a == b, a ~= b, a > b)
do
	local numbers = {}
	for i = 1, 50 do numbers[i] = new(random(1000)) end
	table.sort(numbers)
	for i = 1, 50 do numbers[i] = tostring(numbers[i]) end
	print(table.concat(numbers, " "))
end
