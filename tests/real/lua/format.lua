-- SPDX-License-Identifier: MIT OR Apache-2.0
-- The libraries, most of them by way of the C library's: formats, numbers, packing, files.

local values = {0, 1, -1, 255, 65535, -65536, 1 << 31, 1 << 62, math.maxinteger, math.mininteger}
local floats = {0.0, -0.0, 1.5, -2.25, 1 / 3, 1e15, 1e16, 1e100, 1e-100, 1e308, 5e-324, math.huge, -math.huge, math.pi}

for _, flags in ipairs {"", "-", "+", " ", "#", "0", "-+", "+0"} do
	for _, width in ipairs {"", "1", "12", "30"} do
		local line = {}
		for _, c in ipairs {"d", "i", "x", "X", "o"} do
			for _, v in ipairs(values) do
				local ok, s = pcall(string.format, "%" .. flags .. width .. c, v)
				line[#line + 1] = ok and s or "?"
			end
		end
		print(flags, width, table.concat(line, ","))
	end
end

for _, flags in ipairs {"", "-", "+", " ", "#", "0"} do
	for _, precision in ipairs {"", ".0", ".1", ".15", "20.10", ".60"} do
		local line = {}
		for _, c in ipairs {"e", "E", "f", "F", "g", "G", "a", "A"} do
			for _, v in ipairs(floats) do
				local ok, s = pcall(string.format, "%" .. flags .. precision .. c, v)
				line[#line + 1] = ok and #s < 80 and s or ok and #s or "?"
			end
		end
		print(flags, precision, table.concat(line, ","))
	end
end

print(string.format("%s %10s %-10s| %.3s %5.1s|", "a", "b", "c", "defg", "hij"))
print(string.format("%q %q %q %q", "a\n\0\"\\\r\200", 1 / 3, math.mininteger, true))
print(string.format("%c%c%c %%", 76, 117, 97))
print(#string.format("%99.99f", -1e308), #string.format("%s", string.rep("x", 100000)))
print(pcall(string.format, "%d", "1.5"), pcall(string.format, "%y", 1), pcall(string.format, "%", 1), pcall(string.format, "%d"))
print(string.format("%s", setmetatable({}, {__tostring = function() pause() return string.format("<%s>", 1) end})))

-- Forty arguments, of which most go on the stack.
do
	local form, arguments = {}, {}
	for i = 1, 200 do
		form[i] = i % 3 == 0 and "%s" or i % 3 == 1 and "%5.2f" or "%d"
		arguments[i] = i
	end
	print(string.format(table.concat(form, " "), table.unpack(arguments)))
end

for _, s in ipairs {"10", "0x10", "1e1", "0x1p4", " 7 ", "7a", "", "1e", "0x", "1e400", "-0x8000000000000000", "1_0", ".5", "5.", "nan", "inf"} do
	print(s, tonumber(s), math.type(tonumber(s)), tonumber(s, 16), tonumber(s, 36))
end
for i = -300, 300, 25 do
	print(i, 2.0 ^ i, 10.0 ^ i, tonumber("1e" .. i), math.tointeger(2.0 ^ i))
end

print(math.floor(-3.5), math.ceil(-3.5), math.fmod(-7, 3), -7 % 3, -7 // 2, 7.5 // 2, 2 ^ 0.5, math.sqrt(2), math.exp(1), math.log(10, 2), math.log(8))
for _, f in ipairs {"sin", "cos", "tan", "asin", "acos", "atan"} do print(f, math[f](0.5)) end
print(pcall(math.fmod, 1, 0), pcall(function() return 1 // 0 end), pcall(function() return 1 % 0 end), math.ult(1, -1))
math.randomseed(42)
do local t = {} for i = 1, 20 do t[i] = math.random(1000) end print(table.concat(t, " "), math.random(), math.random(0)) end

-- Packing.
local formats = {"b", "B", "<h", ">H", "<i3", ">I7", "<j", ">J", "<f", ">d", "<n", "z", "s1", "<s4", "!8<i1i8", "<i16", "xB", "c5"}
for _, form in ipairs(formats) do
	local ok, packed = pcall(string.pack, form, form:find("[zsc]") and "text!" or 100)
	if not ok then
		print(form, packed)
	else
		print(form, #packed, packed:gsub(".", function(c) return string.format("%02x", c:byte()) end), string.unpack(form, packed))
	end
end
print(pcall(string.pack, "i17", 1), pcall(string.unpack, "<i4", "abc"), pcall(string.pack, "b", 300), string.packsize("!8<i1i8d"))

-- UTF-8.
local text = utf8.char(72, 228, 8364, 0x10FFFF, 0x7FFFFFFF)
print(#text, utf8.len(text, 1, -1, true), utf8.len(text), utf8.codepoint(text, 1, -1, true))
for p, c in utf8.codes("grüße €", true) do io.write("") print(p, c) end
print(pcall(function() for _ in utf8.codes("\xff") do end end), utf8.offset("grüße", 4), ("grüße"):upper(), ("x"):rep(5, ", "))

-- Time, in a zone that is the same everywhere.
print(os.date("!%Y-%m-%d %H:%M:%S %j %a %B %p %%", 86400 * 365), os.date("!*t", 1e9).yday, pcall(os.date, "%Ez", 0), pcall(os.date, "%Q", 0))
print(os.time({year = 2001, month = 13, day = -3, hour = 12}) ~= nil, os.getenv("NO SUCH VARIABLE"), os.setlocale("C"), os.rename("/no/such", "/file"))

-- Files.
local name = scratch .. "/file"
local file = assert(io.open(name, "w"))
for i = 1, 2000 do file:write(i, " ", i / 7, "\n") end
print(file:seek("cur") > 10000, file:close(), pcall(file.write, file, "x"))
local sum, lines = 0, 0
for a, b in io.lines(name, "n", "n", "l") do sum, lines = sum + a * b, lines + 1 end
print(sum, lines)
file = assert(io.open(name, "r+b"))
print(file:read("l", "n", 3, "L", 0), file:seek("set", 100), file:read(10), file:seek("end"), file:read("a"), file:read("l"), file:read(0))
file:setvbuf("full", 100) file:seek("set", 0) file:write("over") file:flush() file:seek("set", 0)
print(file:read("a"):sub(1, 40), #file:read("a"), io.type(file), file:close(), io.type(file), io.type(1))
print(select(2, io.open("/no/such/file")), pcall(io.lines, "/no/such/file"), pcall(io.open, name, "q"))
