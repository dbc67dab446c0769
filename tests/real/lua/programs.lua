-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Small programs of every kind; also what the overhead is measured with. REPEAT is how often.
local times = tonumber(os.getenv("REAL_REPEAT")) or 1

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

local function queens(n)
	local solutions, columns, up, down = 0, {}, {}, {}
	local function place(row)
		if row > n then solutions = solutions + 1 return end
		for c = 1, n do
			if not columns[c] and not up[row + c] and not down[row - c + n] then
				columns[c], up[row + c], down[row - c + n] = true, true, true
				place(row + 1)
				columns[c], up[row + c], down[row - c + n] = nil, nil, nil
			end
		end
	end
	place(1)
	return solutions
end

local function mandelbrot(n)
	local inside = 0
	for y = 0, n - 1 do
		for x = 0, n - 1 do
			local cr, ci, zr, zi, i = 2 * x / n - 1.5, 2 * y / n - 1, 0, 0, 0
			while i < 50 and zr * zr + zi * zi < 4 do zr, zi, i = zr * zr - zi * zi + cr, 2 * zr * zi + ci, i + 1 end
			if i == 50 then inside = inside + 1 end
		end
	end
	return inside
end

local function bodies(steps)
	local b = {{x = 0, y = 0, z = 0, vx = 0, vy = 0, vz = 0, m = 39.47}, {x = 4.84, y = -1.16, z = -.1, vx = .6, vy = 2.81, vz = -.02, m = .037}, {x = 8.34, y = 4.12, z = -.4, vx = -1.01, vy = 1.82, vz = .008, m = .011}}
	for _ = 1, steps do
		for i = 1, #b do
			local p = b[i]
			for j = i + 1, #b do
				local q = b[j]
				local dx, dy, dz = p.x - q.x, p.y - q.y, p.z - q.z
				local d = dx * dx + dy * dy + dz * dz
				local mag = .01 / (d * math.sqrt(d))
				p.vx, p.vy, p.vz = p.vx - dx * q.m * mag, p.vy - dy * q.m * mag, p.vz - dz * q.m * mag
				q.vx, q.vy, q.vz = q.vx + dx * p.m * mag, q.vy + dy * p.m * mag, q.vz + dz * p.m * mag
			end
			p.x, p.y, p.z = p.x + .01 * p.vx, p.y + .01 * p.vy, p.z + .01 * p.vz
		end
	end
	return string.format("%.6f %.6f", b[1].x, b[2].y)
end

-- JSON, by patterns and recursion.
local encode
local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n"}
local function encode_string(s) return '"' .. s:gsub('["\\\n]', escapes) .. '"' end
function encode(v)
	if type(v) ~= "table" then return type(v) == "string" and encode_string(v) or tostring(v) end
	local out = {}
	if #v > 0 then
		for i, e in ipairs(v) do out[i] = encode(e) end
		return "[" .. table.concat(out, ",") .. "]"
	end
	for k in pairs(v) do out[#out + 1] = k end
	table.sort(out)
	for i, k in ipairs(out) do out[i] = encode_string(k) .. ":" .. encode(v[k]) end
	return "{" .. table.concat(out, ",") .. "}"
end
local decode
local back = {n = "\n", ['"'] = '"', ["\\"] = "\\"}
local function decode_string(s, at)
	local e = at + 1
	while s:byte(e) ~= 34 do e = e + (s:byte(e) == 92 and 2 or 1) end
	return s:sub(at + 1, e - 1):gsub("\\(.)", back), e + 1
end
local function decode_list(s, at, close, one)
	if s:sub(at, at) == close then return at + 1 end
	while true do
		at = one(at)
		local c = s:sub(at, at)
		if c == close then return at + 1 end
		if c ~= "," then error("expected , at " .. at, 0) end
		at = at + 1
	end
end
function decode(s, at)
	local c = s:sub(at, at)
	if c == '"' then
		local v, e = decode_string(s, at)
		return v, e
	elseif c == "[" then
		local t = {}
		return t, decode_list(s, at + 1, "]", function(i) t[#t + 1], i = decode(s, i) return i end)
	elseif c == "{" then
		local t = {}
		return t, decode_list(s, at + 1, "}", function(i)
			local k, e = decode_string(s, i)
			t[k], e = decode(s, e + 1)
			return e
		end)
	end
	local word, e = s:match("^([%w.+-]+)()", at)
	if not word then error("unexpected '" .. c .. "' at " .. at, 0) end
	if word == "true" or word == "false" then return word == "true", e end
	return tonumber(word) or error("bad number " .. word, 0), e
end
local function json(n)
	local v = {list = {}, text = 'a "quoted" \\ text\n'}
	for i = 1, n do v.list[i] = {id = i, name = "item " .. i, tags = {"a", "b", i % 3 == 0}, value = i / 8} end
	local s = encode(v)
	local again = encode((decode(s, 1)))
	return #s, s == again, select(2, pcall(decode, s:sub(1, #s // 2) .. "!", 1))
end

local function compress(text)
	local dictionary, size, w, out = {}, 256, "", {}
	for i = 0, 255 do dictionary[string.char(i)] = i end
	for c in text:gmatch(".") do
		local wc = w .. c
		if dictionary[wc] then w = wc else
			out[#out + 1] = dictionary[w]
			dictionary[wc], size, w = size, size + 1, c
		end
	end
	return #out, out[#out]
end

local function words(n)
	local text = ("lorem ipsum dolor sit amet consetetur sadipscing elitr sed diam "):rep(n)
	local counts, keys = {}, {}
	for w in text:gmatch("%a+") do counts[w] = (counts[w] or 0) + 1 end
	for w in pairs(counts) do keys[#keys + 1] = w end
	table.sort(keys, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b end)
	return #keys, keys[1], counts[keys[1]], (text:gsub("%a+", string.upper):sub(1, 20))
end

-- Closures and objects: an interpreter of arithmetic, built of closures.
local function calculator(n)
	local function parse(s)
		local at = 1
		local expression
		local function atom()
			local number = s:match("^%d+", at)
			if number then at = at + #number local v = tonumber(number) return function() return v end end
			if s:sub(at, at) ~= "(" then error("syntax", 0) end
			at = at + 1
			local e = expression()
			at = at + 1
			return e
		end
		local function chain(next, pattern, make)
			return function()
				local left = next()
				while s:match(pattern, at) do
					local op = s:sub(at, at)
					at = at + 1
					left = make(op, left, next())
				end
				return left
			end
		end
		local function make(op, a, b)
			if op == "+" then return function() return a() + b() end end
			if op == "-" then return function() return a() - b() end end
			return function() return a() * b() % 10007 end
		end
		expression = chain(chain(atom, "^%*", make), "^[+-]", make)
		return expression()
	end
	local source = "1"
	for i = 1, n do source = "(" .. source .. "+" .. i .. ")*(" .. i .. "-2)" end
	return parse(source)(), select(2, pcall(parse, "1+)"))
end

local function sorting(n)
	local t, x = {}, 1
	for i = 1, n do x = x * 16807 % 2147483647 t[i] = x end
	table.sort(t)
	local s = table.concat(t, ",", 1, 3)
	table.sort(t, function(a, b) return a % 1000 < b % 1000 or a % 1000 == b % 1000 and a < b end)
	return s, t[1], t[n]
end

for _ = 1, times do
	print("fib", fib(22))
	print("queens", queens(7))
	print("mandelbrot", mandelbrot(60))
	print("bodies", bodies(1500))
	print("json", json(150))
	print("compress", compress(("abcabcabd"):rep(1200)))
	print("words", words(250))
	print("calculator", calculator(150))
	print("sorting", sorting(4000))
	pause()
end
