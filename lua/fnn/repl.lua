-- repl.lua - what the REPL says in Lua: showing, completing, helping.
--
-- Called with the table of globals and a function that lists a folder.

local env, files = ...

local concat, sort, unpack, pack = table.concat, table.sort, table.unpack,
                                   table.pack
local byte, find, format, gsub, match, rep, sub =
  string.byte, string.find, string.format, string.gsub, string.match,
  string.rep, string.sub
local getmetatable, getupvalue = debug.getmetatable, debug.getupvalue
local ipairs, next, pcall, rawget, require, tostring, type =
  ipairs, next, pcall, rawget, require, tostring, type
local math = { max = math.max, tointeger = math.tointeger, type = math.type }

local repl = {}

------------------------------------------------------------------------------
-- Showing

local DEPTH = 2
local WIDTH = 76
local ITEMS = { 100, 10 } -- shown of a table, by depth

local colours = { string = "32", number = "36", boolean = "35", ["nil"] = "35" }

local reserved = {}
for word in ([[and break do else elseif end false for function goto if in
               local nil not or repeat return then true until while]])
            :gmatch("%a+") do
  reserved[word] = true
end

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t",
                  ["\\"] = "\\\\", ['"'] = '\\"' }

local function quote(s)
  s = gsub(s, '[\n\r\t\\"]', escapes)
  s = gsub(s, "%c", function (c) return format("\\x%02X", byte(c)) end)
  return '"' .. s .. '"'
end

local function is_name(s)
  return type(s) == "string" and find(s, "^[%a_][%w_]*$") and not reserved[s]
end

-- A table that says itself what it is, or is more than its fields.
local function is_plain(v)
  if type(v) ~= "table" then return false end
  local mt = getmetatable(v)
  return mt == nil or rawget(mt, "__tostring") == nil and
                      rawget(mt, "__name") == nil
end

local ranks = { number = 1, string = 2 }

-- Numbers first, then names, then the rest by their text.
local function before(a, b)
  local ra, rb = ranks[type(a)] or 3, ranks[type(b)] or 3
  if ra ~= rb then return ra < rb end
  if ra < 3 then return a < b end
  return tostring(a) < tostring(b)
end

local show

local function show_key(k, depth, colour, seen)
  if is_name(k) then return k .. " = " end
  return "[" .. show(k, depth + 1, colour, seen) .. "] = "
end

-- The fields of t as texts: the sequence first, then the others by key.
local function fields(t, depth, colour, seen)
  local out, keys, most = {}, {}, ITEMS[depth] or 10
  local n = 0
  while rawget(t, n + 1) ~= nil do
    n = n + 1
    if n <= most then out[n] = show(rawget(t, n), depth + 1, colour, seen) end
  end
  for k in next, t do
    if not (math.type(k) == "integer" and k >= 1 and k <= n) then
      keys[#keys + 1] = k
    end
  end
  sort(keys, before)
  for _, k in ipairs(keys) do
    if #out >= most then break end
    out[#out + 1] = show_key(k, depth, colour, seen) ..
                    show(rawget(t, k), depth + 1, colour, seen)
  end
  local more = n + #keys - #out
  if more > 0 then out[#out + 1] = format("... %d more", more) end
  return out
end

-- The width of s on the screen: colours take none.
local function width(s) return #gsub(s, "\27%[%d*m", "") end

local function show_table(t, depth, colour, seen)
  if next(t) == nil then return "{}" end
  if depth > DEPTH or seen[t] then return "{...}" end
  seen[t] = true
  local parts = fields(t, depth, colour, seen)
  seen[t] = nil
  local line = "{ " .. concat(parts, ", ") .. " }"
  if width(line) + 2 * depth <= WIDTH and not find(line, "\n") then
    return line
  end
  local margin = rep("  ", depth)
  return "{\n" .. margin .. concat(parts, ",\n" .. margin) .. "\n" ..
         rep("  ", depth - 1) .. "}"
end

show = function (v, depth, colour, seen)
  if is_plain(v) then return show_table(v, depth, colour, seen) end
  local kind = type(v)
  local text = kind == "string" and quote(v) or tostring(v)
  if depth > 1 then text = gsub(text, "\n", "\n" .. rep("  ", depth - 1)) end
  if colour and colours[kind] then
    text = "\27[" .. colours[kind] .. "m" .. text .. "\27[0m"
  end
  return text
end

-- The values for print, with texts in the place of tables.
function repl.show(colour, ...)
  local values = pack(...)
  for i = 1, values.n do
    if is_plain(values[i]) then values[i] = show(values[i], 1, colour, {}) end
  end
  return unpack(values, 1, values.n)
end

------------------------------------------------------------------------------
-- Completing

local function index(v, k)
  local ok, value = pcall(function () return v[k] end)
  return ok and value or nil
end

-- Adds to names the keys of v, and those its metatables lend it.
local function gather(v, names, methods, level)
  if level > 8 then return end
  if type(v) == "table" then
    for k, field in next, v do
      if is_name(k) and (not methods or type(field) == "function") then
        names[k] = true
      end
    end
  end
  local mt = getmetatable(v)
  if type(mt) ~= "table" then return end
  local lent = rawget(mt, "__index")
  if type(lent) == "table" then gather(lent, names, methods, level + 1) end
  if type(lent) ~= "function" then return end
  for i = 1, 8 do -- a function of the library has its methods in an upvalue
    local name, more = getupvalue(lent, i)
    if name == nil then break end
    if type(more) == "table" then gather(more, names, methods, level + 1) end
  end
end

-- The value of a path such as a.b[1].c, without calling anything.
local function resolve(path)
  local name, rest = match(path, "^([%a_][%w_]*)(.*)$")
  if name == nil then return nil end
  local v = index(env, name)
  while rest ~= "" and v ~= nil do
    local dot, more = match(rest, "^[.:]([%a_][%w_]*)(.*)$")
    local number, after = match(rest, "^%[(%d+)%](.*)$")
    if dot then v, rest = index(v, dot), more
    elseif number then v, rest = index(v, math.tointeger(number)), after
    else return nil end
  end
  return v
end

-- The opening quote that text leaves open, and what follows it.
local function open_string(text)
  local quoted, start
  local i = 1
  while i <= #text do
    local c = sub(text, i, i)
    if quoted then
      if c == "\\" then i = i + 1
      elseif c == quoted then quoted = nil end
    elseif c == '"' or c == "'" then quoted, start = c, i + 1
    elseif sub(text, i, i + 1) == "--" then return nil end
    i = i + 1
  end
  return quoted and sub(text, start), quoted
end

local function words(text)
  local names = {}
  local path, separator, word = match(text, "([%w_%.%[%]:]*)([.:])([%w_]*)$")
  if separator then
    local v = resolve(path)
    if v ~= nil then gather(v, names, separator == ":", 0) end
  else
    word = match(text, "[%w_]*$")
    gather(env, names, false, 0)
    for k in next, reserved do names[k] = true end
  end
  return names, word
end

-- What begins with word, sorted, and what all of it has in common.
local function matching(names, word)
  local list = {}
  for name in next, names do
    if sub(name, 1, #word) == word then list[#list + 1] = name end
  end
  sort(list)
  local common = list[1] or word
  for _, name in ipairs(list) do
    while sub(name, 1, #common) ~= common do common = sub(common, 1, -2) end
  end
  return list, common
end

-- The list in columns that fit a screen.
local function columns(list, screen)
  local most = 200
  local shown = { unpack(list, 1, most) }
  if #list > most then
    shown[most + 1] = format("... %d more", #list - most)
  end
  local cell = 0
  for _, name in ipairs(shown) do cell = math.max(cell, #name + 2) end
  local across = math.max(1, screen // cell)
  local down = (#shown + across - 1) // across
  local lines = {}
  for row = 1, down do
    local line = {}
    for i = row, #shown, down do
      line[#line + 1] = format("%-" .. cell .. "s", shown[i])
    end
    lines[row] = (gsub(concat(line), " *$", ""))
  end
  return concat(lines, "\n")
end

-- For the text before the cursor: what to insert, or a list to show.
function repl.complete(text, screen)
  if find(text, "^%s*$") then return "  " end
  local inside, quoted = open_string(text)
  local names, word
  local close = ""
  if inside then
    local folder
    folder, word = match(inside, "^(.-)([^/]*)$")
    names, close = {}, quoted
    for _, name in ipairs(files(folder)) do
      if sub(name, 1, 1) ~= "." or sub(word, 1, 1) == "." then
        names[name] = true
      end
    end
  else
    names, word = words(text)
  end
  local list, common = matching(names, word)
  if #list == 0 then return nil end
  local more = sub(common, #word + 1)
  if #list == 1 then
    return more .. (sub(common, -1) == "/" and "" or close)
  end
  if more ~= "" then return more end
  return "", columns(list, screen)
end

------------------------------------------------------------------------------
-- Helping

local brief = [[
An expression is printed, unless the line ends in ';'; _ is the last result.
A statement may go on over several lines.  Ctrl-C stops what runs, Ctrl-D ends.
A local ends with its line: leave out 'local' for what is to stay.
  ?name        help on a name: ?softmax, ?nn.Linear; ?fnn lists them all
  TAB          completes names, methods after ':', file names inside strings
  Ctrl-R       searches the history]]

function repl.help(text)
  local word = match(text, "^[%s?]*(.-)[%s(){}?]*$")
  if word == "" then return brief end
  local ok, help = pcall(require, "fnn.help")
  if not ok then return "This program was built without its manual." end
  local found, near = help(word)
  return found or near or "No help on '" .. word .. "'."
end

return repl
