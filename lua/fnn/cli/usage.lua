-- usage.lua - the text of --help.

local _, load = ...
local spec = load "cli/spec"

local ipairs, tostring = ipairs, tostring
local byte, find, format = string.byte, string.find, string.format
local gmatch, gsub, rep, upper =
  string.gmatch, string.gsub, string.rep, string.upper
local concat, max, min = table.concat, math.max, math.min

local width = 79   -- of a line
local widest = 26  -- of the options' column; wider ones have their own line

local values = { integer = "N", number = "X", string = "TEXT" }

-- What stands for an option's value: "N", "gpt|lstm".
local function value_of (o)
  if o.value or o.type ~= "choice" then return o.value or values[o.type] end
  local names = {}
  for i, v in ipairs(o.choices) do names[i] = tostring(v) end
  local text = concat(names, "|")
  return #text <= 16 and text or upper(o.name)
end

local function left (o)
  local short = o.short and "-" .. o.short .. ", " or ""
  if o.type == "flag" then
    return format("  %s--%s%s", short, o.default and "[no-]" or "", o.shown)
  end
  return format("  %s--%s %s", short, o.shown, value_of(o))
end

local escapes = { ["\n"] = "\\n", ["\t"] = "\\t" }

local function printable (text)
  if not find(text, "[%s%c]") then return text end
  return '"' .. gsub(text, "%c", function (c)
    return escapes[c] or format("\\%d", byte(c))
  end) .. '"'
end

-- What follows an option's text: its choices where they are not to be seen,
-- its range, its default.
local function facts (o)
  local list = {}
  if o.type == "choice" and not find(left(o), "|", 1, true) then
    list[1] = spec.expected(o)
  end
  list[#list + 1] = spec.range(o)
  if o.required then
    list[#list + 1] = "required"
  elseif o.type == "flag" then
    list[#list + 1] = o.default and "default: yes" or nil
  elseif o.default ~= nil and o.default ~= "" then
    list[#list + 1] = "default: " .. format(
      o.type == "number" and "%.14g" or "%s",
      o.type == "string" and printable(o.default) or o.default)
  end
  return #list > 0 and " (" .. concat(list, "; ") .. ")" or ""
end

-- Adds words as lines of the width, those after the first indented.
local function wrap (lines, first, indent, text)
  local line = first
  for word in gmatch(text, "%S+") do
    if #line + 1 + #word > width and find(line, "%S") and #line > indent then
      lines[#lines + 1], line = line, rep(" ", indent - 1)
    end
    line = line == "" and word or line .. " " .. word
  end
  lines[#lines + 1] = line
end

local function add (lines, o, column)
  local shown = left(o)
  if #shown + 2 > column then
    lines[#lines + 1], shown = shown, ""
  end
  wrap(lines, format("%-" .. column - 1 .. "s", shown), column,
       o.text .. facts(o))
end

local function add_all (lines, s, heading, standard)
  local column, some = 0, false
  for _, o in ipairs(s.all) do
    if #left(o) <= widest then column = max(column, #left(o)) end
  end
  column = min(column, widest) + 2
  for _, o in ipairs(s.all) do
    if (o.standard or false) == standard then
      if not some then lines[#lines + 1] = "\n" .. heading .. ":" end
      some = true
      add(lines, o, column)
    end
  end
end

return function (c)
  local s, lines = c.spec, {}
  local command = c.script and c.program .. " " .. c.path or "script"
  lines[1] = format("usage: %s [options]%s", command,
                    s.words.text and " " .. s.words.text or "")
  if s.about then
    lines[2] = ""
    for line in gmatch(s.about .. "\n", "(.-)\n") do
      wrap(lines, "", 1, line)
    end
  end
  add_all(lines, s, "Options", false)
  add_all(lines, s, "Options of every script", true)
  return concat(lines, "\n")
end
