-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Recursion that goes through C, as deep as the limit on C calls lets it, and errors that come back from there.

local function show(what, ...)
	print(what, ...)
end

-- Every way in which Lua calls itself through C. Each function calls `f` once, through C.
local through_c = {
	pcall = function(f) local ok, e = pcall(f) if not ok then error(e, 0) end return e end,
	xpcall = function(f) local ok, e = xpcall(f, function(m) return m end) if not ok then error(e, 0) end return e end,
	gsub = function(f) local r string.gsub("x", "x", function() r = f() end) return r end,
	gsub_table = function(f)
		local r
		string.gsub("x", "x", setmetatable({}, {__index = function() r = f() return "y" end}))
		return r
	end,
	sort = function(f) local r table.sort({2, 1}, function(a, b) r = r or f() return a < b end) return r end,
	qsort = function(f) local r qsort({2, 1}, function(a, b) r = r or f() return a < b end) return r end,
	tostring = function(f) local r tostring(setmetatable({}, {__tostring = function() r = f() return "" end})) return r end,
	concat = function(f) local r local _ = setmetatable({}, {__concat = function() r = f() return "" end}) .. "x" return r end,
	index = function(f) return setmetatable({}, {__index = function() return f() end}).x end,
	load = function(f) local r load(function() r = r or f() return nil end) return r end,
	chunk = function(f) return load("return (...)()")(f) end,
	wrap = function(f) return coroutine.wrap(function() return f() end)() end,
	through = function(f) return through(30, f) end,
	paused = function(f) pause() return f() end,
}

local names = {}
for name in pairs(through_c) do names[#names + 1] = name end
table.sort(names)

local function descend(how, n)
	if n == 0 then return 0 end
	return 1 + how(function() return descend(how, n - 1) end)
end

for _, name in ipairs(names) do
	local how = through_c[name]
	show(name, 20, pcall(descend, how, 20))
	show(name, 150, pcall(descend, how, 150))
end

-- All of them in turn, deeper.
local turn = 0
local function by_turns(f)
	turn = turn % #names + 1
	return through_c[names[turn]](f)
end
for _, n in ipairs {100, 400, 170} do
	turn = 0
	show("by turns", n, pcall(descend, by_turns, n))
end

-- Without end: the limit is met at the same depth whatever the stack, and the error comes all the way back.
local function bottomless(how)
	local depth = 0
	local function down()
		depth = depth + 1
		return how(down)
	end
	local ok, message = pcall(down)
	return ok, depth, (tostring(message):gsub("^.*:%d+: ", ""))
end
for _, name in ipairs(names) do
	if name ~= "pcall" and name ~= "xpcall" and name ~= "paused" and name ~= "chunk" and name ~= "qsort" then
		show("bottomless", name, bottomless(through_c[name]))
	end
end

-- An error at the bottom of n calls, caught at the top, again and again.
local function fall(how, n)
	if n == 0 then error({"bottom"}) end
	return how(function() return fall(how, n - 1) end)
end
for _, name in ipairs {"gsub", "sort", "qsort", "tostring", "through", "index", "load"} do
	local caught = 0
	for n = 1, 120, 7 do
		local ok, e = pcall(fall, through_c[name], n)
		if not ok and type(e) == "table" and e[1] == "bottom" then caught = caught + 1 end
	end
	show("fall", name, caught)
end

-- Errors rethrown by each level, with a message that grows; handlers that fail themselves.
local function rethrow(n)
	if n == 0 then error("0", 0) end
	local ok, e = pcall(rethrow, n - 1)
	error(#e < 60 and e .. "<" .. n or e, 0)
end
show(pcall(rethrow, 500))
show(xpcall(rethrow, function(m) return "handled " .. m end, 100))
show(xpcall(error, function() error("again") end))
show(#select(2, xpcall(function() local function f(n) return n == 0 and error("x", 0) or 1 + f(n - 1) end return f(500) end, debug.traceback)) > 500)
show((select(2, xpcall(fall, function(m) return type(m) .. #debug.traceback() end, through_c.pcall, 5))))

-- To-be-closed variables are closed while errors come through.
do
	local closed = {}
	local function guarded(n)
		local guard <close> = setmetatable({}, {__close = function(_, e) closed[#closed + 1] = n .. ":" .. tostring(e) end})
		if n == 0 then error("deep", 0) end
		return through_c.gsub(function() return guarded(n - 1) end)
	end
	show(pcall(guarded, 60))
	show(#closed, closed[1], closed[30], closed[#closed])
end

-- Frames of C of all sizes, some larger than any first chunk, with an error or a pause at the bottom.
for _, n in ipairs {0, 1, 10, 100, 1000, 5000, 20000, 999, 1000, 1001} do
	show("through", n, through(n, function(...) pause() return ... end, "a", n))
	show("through", n, pcall(through, n, error, "at the bottom"))
end
show("many", many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20))
show("many", through(77, many, 1, .5, 3, .25, 5, 6, 7, .125, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20))

-- Plain Lua recursion needs no C stack, but its own limit.
local function lua_depth(n) return n == 0 and 0 or 1 + lua_depth(n - 1) end
show("lua", lua_depth(50000))
show("lua", (select(2, pcall(function() local function f() return f() + 1 end return f() end)):gsub("^.*:%d+: ", ""):gsub("\n.*", "")))

-- Patterns recurse in C.
show("match", #string.match(string.rep("a", 5000), ".-b?$"))
show("match", #(string.match(string.rep("ab", 3000), string.rep("a?b?", 1500)) or ""))
show("match", (select(2, pcall(string.match, string.rep("(", 100000), string.rep("(.)", 33)))))
show("match", pcall(string.rep, "x", -1), string.find(string.rep("a", 5000) .. "b", string.rep("a-", 10) .. "b$"))
show("balance", #string.match(string.rep("(", 50000) .. string.rep(")", 50000), "%b()"))
