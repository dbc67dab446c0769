-- SPDX-License-Identifier: MIT OR Apache-2.0
-- The garbage collector in all its modes, with finalizers that recurse, err and pause. And Lua's own coroutines.

local function tree(depth) return depth == 0 and {} or {tree(depth - 1), tree(depth - 1)} end
local function count(t) return t[1] and 1 + count(t[1]) + count(t[2]) or 1 end

local function chain(n)
	local t = nil
	for i = 1, n do t = {next = t, value = i} end
	return t
end

local finalized, order = 0, {}
local function deep(n) return n == 0 and 0 or 1 + (select(2, pcall(deep, n - 1))) end
local function with_finalizer(n)
	return setmetatable({n = n}, {__gc = function(o)
		finalized = finalized + 1
		if o.n % 50 == 0 then deep(100) elseif o.n % 77 == 0 then error("in a finalizer") end
	end})
end

for _, mode in ipairs {"incremental", "generational", "incremental"} do
	collectgarbage(mode)
	for i = 1, 30 do
		local keep = tree(8)
		for j = 1, 40 do with_finalizer(j + i) end
		if i % 10 == 0 then pause() print(mode, i, count(keep)) end
	end
	local c, length = chain(100000), 0
	while c do c, length = c.next, length + 1 end
	collectgarbage() collectgarbage()
	print(mode, length, finalized)
end

-- A step at a time, at every allocation nearly.
collectgarbage("incremental", 100, 1000, 5)
do
	local strings = {}
	for i = 1, 5000 do
		strings[i % 100 + 1] = ("s"):rep(i % 50) .. i
		if i % 10 == 0 then collectgarbage("step", 1) end
	end
	print(#table.concat(strings))
end
collectgarbage("incremental", 200, 100, 13)

-- Weak tables and ephemerons.
local weak, ephemeron = setmetatable({}, {__mode = "v"}), setmetatable({}, {__mode = "k"})
local anchor = {}
for i = 1, 1000 do
	weak[i] = i % 10 == 0 and anchor or {}
	local key = {}
	ephemeron[key] = {key}
	if i % 100 == 0 then anchor[i] = key end
end
collectgarbage()
do
	local n, m = 0, 0
	for _ in pairs(weak) do n = n + 1 end
	for _ in pairs(ephemeron) do m = m + 1 end
	print("weak", n, m)
end
-- Resurrection, and finalizers in order.
do
	local saved
	do
		for i = 1, 5 do setmetatable({}, {__gc = function() order[#order + 1] = i end}) end
		setmetatable({"back"}, {__gc = function(o) saved = o end})
	end
	collectgarbage()
	print(saved and saved[1], table.concat(order, " "))
end

-- Coroutines of Lua: each resume is a setjmp on the C stack.
local function permutations(a, n)
	n = n or #a
	if n <= 1 then coroutine.yield(a) return end
	for i = 1, n do
		a[n], a[i] = a[i], a[n]
		permutations(a, n - 1)
		a[n], a[i] = a[i], a[n]
	end
end
do
	local n, h = 0, 0
	for p in coroutine.wrap(function() permutations {1, 2, 3, 4, 5, 6, 7} end) do
		n = n + 1
		for i = 1, #p do h = (h * 7 + p[i]) % 1000003 end
		if n % 1000 == 0 then pause() end
	end
	print("permutations", n, h)
end
do
	local function sieve(source)
		return coroutine.wrap(function()
			local prime = source()
			if not prime then return end
			coroutine.yield(prime)
			local rest = sieve(coroutine.wrap(function()
				for n in source do if n % prime ~= 0 then coroutine.yield(n) end end
			end))
			for n in rest do coroutine.yield(n) end
		end)
	end
	local primes = {}
	for p in sieve(coroutine.wrap(function() for i = 2, 700 do coroutine.yield(i) end end)) do primes[#primes + 1] = p end
	print("sieve", #primes, primes[#primes])
end
-- Through pcall, metamethods, iterators, sort (where it cannot yield), gsub (neither), closing.
local function inside(f)
	local co = coroutine.create(f)
	local results = {}
	for i = 1, 10 do
		local r = table.pack(coroutine.resume(co, i))
		for j = 1, r.n do r[j] = tostring(r[j]) end
		results[i] = table.concat(r, " ")
		if coroutine.status(co) == "dead" then break end
		pause()
	end
	print(table.concat(results, " | "), coroutine.close(co))
end
inside(function(a) local b = coroutine.yield(a + 1) return pcall(function() return coroutine.yield(b + 1) end) end)
inside(function() return pcall(pcall, pcall, function() coroutine.yield(1) error("late", 0) end) end)
inside(function() return xpcall(function() coroutine.yield(1) error("late", 0) end, function(m) return m .. "!" end) end)
inside(function() return setmetatable({}, {__add = function(_, b) return coroutine.yield(b) end}) + 4 end)
inside(function() return setmetatable({}, {__index = function(_, k) return coroutine.yield(k) end}).key end)
inside(function() for v in function() return coroutine.yield("iterate") end do if v > 3 then return v end end end)
inside(function() table.sort({3, 2, 1}, function(a, b) coroutine.yield(a) return a < b end) end)
inside(function() return ("x"):gsub("x", function() return coroutine.yield("gsub") end) end)
inside(function() local c <close> = setmetatable({}, {__close = function() coroutine.yield("closing") end}) return "done" end)
inside(function() error("at once", 0) end)
inside(function() return qsort({2, 1}, function(a, b) coroutine.yield() return a < b end) end)
do
	local co
	co = coroutine.wrap(function() return pcall(co) end)
	print(co())
	print(coroutine.resume(coroutine.running()), coroutine.isyieldable(), pcall(coroutine.yield))
	local closed = 0
	for i = 1, 200 do
		local c = coroutine.create(function()
			local x <close> = setmetatable({}, {__close = function() closed = closed + 1 if i % 3 == 0 then error("closing " .. i, 0) end end})
			coroutine.yield()
		end)
		coroutine.resume(c)
		local ok, e = coroutine.close(c)
		if i % 60 == 0 then print(ok, e) end
	end
	print("closed", closed)
end
-- Nested as deep as C allows.
do
	local depth = 0
	local function nest()
		depth = depth + 1
		local ok, e = coroutine.resume(coroutine.create(nest))
		if not ok then error(e, 0) end
	end
	local ok, e = pcall(nest)
	print(ok, depth, e)
end
print(collectgarbage("count") > 0, collectgarbage("isrunning"), collectgarbage("stop"), collectgarbage("restart"))
