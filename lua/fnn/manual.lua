-- manual.lua - what each public name is: the texts behind ?name,
-- docs/reference.md and library/fnn.d.lua.
--
-- The texts are in help/*.lua, one a subject, in this form:
--
--     # Heading of a section
--     Words on the section, up to the next heading or entry.
--
--     fnn.zeros(shape: integer[], options?: table) -> Tensor
--       One sentence that says what it does.  Then what else there is to know.
--       dtype: string = "f32"    an option or a word on an argument
--
-- An entry begins at the margin with its signature: parameters with types, ?
-- after the name of one that may be left out, -> and what it returns.  Text
-- under it is indented by two.  A name without parentheses is a field, with
-- its type after a colon.  Tensor:add, and optim.SGD:step, are methods.
--
--   find(name)    the entries that a name means: "fnn.zeros", "zeros",
--                 "Tensor:add", "x:add", "add"; an empty list if none
--   text(name)    the same as text to print, and sections of that heading, or
--                 the names in a namespace, or nil and a suggestion
--   sections()    everything in order
--   source()      the whole text

local manual = {}

local subjects = {
  "tensor", "shape", "ops", "reduce", "random", "grad", "memory", "nn", "norms",
  "attention", "recurrent", "losses", "optim", "data", "data_sources", "train",
  "network", "text", "io", "cli", "plot", "runs", "seeing", "fit", "metrics",
  "log", "program"
}

-- Splits a list of parameters at the commas outside brackets.
local function split(list)
  local parts, depth, from = {}, 0, 1
  for i = 1, #list do
    local c = list:sub(i, i)
    if c:find("[%(%[{<]") then
      depth = depth + 1
    elseif c:find("[%)%]}>]") then
      depth = depth - 1
    elseif c == "," and depth == 0 then
      parts[#parts + 1] = list:sub(from, i - 1)
      from = i + 1
    end
  end
  if list:find("%S", from) then parts[#parts + 1] = list:sub(from) end
  return parts
end

local function parameter(text)
  local name, optional, kind = text:match("^%s*([%w_%.]+)(%??)%s*:%s*(.-)%s*$")
  assert(name, "no 'name: type' in '" .. text .. "'")
  return { name = name, optional = optional == "?", type = kind }
end

-- An entry from the line of its signature.
local function entry(line, subject)
  local name, list, returns = line:match("^([%w_%.:]+)(%b())%s*%-?>?%s*(.-)$")
  local e = { signature = line, subject = subject, text = {} }
  if name then
    e.parameters = {}
    for i, part in ipairs(split(list:sub(2, -2))) do
      e.parameters[i] = parameter(part)
    end
    if returns ~= "" then e.returns = split(returns) end
  else
    name, e.type = line:match("^([%w_%.]+)%s*:%s+(.+)$")
    assert(name, "not a signature: '" .. line .. "'")
  end
  e.name = name
  e.word = name:match("[%w_]+$")
  e.class = name:match("^(.-):[%w_]+$")
  return e
end

-- Whether a line at the margin is a signature, or the first line of one.
local function is_signature(line)
  local rest = line:match("^[%a_][%w_%.:]*%b()(.*)$")
  if rest then return rest == "" or rest:find("^ %->") end
  return line:find("^[%a_][%w_%.:]*%([^)]*$") or
         line:find("^[%a_]%w*%.[%w_%.]+: ")
end

local function parse(text, subject, sections)
  local section, last, pending
  text = text:gsub("\n    %->", " ->")  -- the results of a long signature
  for line in (text .. "\n"):gmatch("(.-)\n") do
    local heading = line:match("^# (.*)")
    if pending then  -- a signature goes on until its parenthesis closes
      line, pending = pending .. " " .. line:match("^%s*(.*)"), nil
    end
    if heading then
      section = { heading = heading, subject = subject, text = {} }
      sections[#sections + 1], last = section, nil
    elseif is_signature(line) then
      if line:find("(", 1, true) and not line:find("%b()") then
        pending = line
      else
        last = entry(line, subject)
        section[#section + 1] = last
      end
    elseif last then
      assert(line == "" or line:find("^  "), "not a signature: " .. line)
      last.text[#last.text + 1] = line:sub(3)
    elseif section then
      section.text[#section.text + 1] = line
    end
  end
end

local function trim(lines)
  while lines[#lines] == "" do lines[#lines] = nil end
  while lines[1] == "" do table.remove(lines, 1) end
end

local sections

function manual.sections()
  if not sections then
    sections = {}
    for _, subject in ipairs(subjects) do
      parse(require("fnn.help." .. subject), subject, sections)
    end
    for _, section in ipairs(sections) do
      trim(section.text)
      for _, e in ipairs(section) do trim(e.text) end
    end
  end
  return sections
end

-- The texts of all subjects, as they were written.
function manual.source()
  local texts = {}
  for i, subject in ipairs(subjects) do
    texts[i] = require("fnn.help." .. subject)
  end
  return table.concat(texts, "\n")
end

local function each(f)
  for _, section in ipairs(manual.sections()) do
    for _, e in ipairs(section) do f(e, section) end
  end
end

-- A name as the texts have it: "x:add" is "Tensor:add".
local function full(name)
  if name == "fnn" then return "fnn" end
  return (name:gsub("^x:", "Tensor:"):gsub("^fnn%.(%w+%.)", "%1"))
end

function manual.find(name)
  name = full(name)
  local exact, words = {}, {}
  each(function(e)
    if e.name == name or e.name == "fnn." .. name then
      exact[#exact + 1] = e
    elseif e.word == name or e.class and e.class:match("[%w_]+$") == name then
      words[#words + 1] = e
    end
  end)
  return #exact > 0 and exact or words
end

-- How many letters must change to make b of a (Levenshtein).
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      corner, row[j] = row[j],
                       math.min(row[j] + 1, row[j - 1] + 1, corner + cost)
    end
  end
  return row[#b]
end

-- Names near a word, or that hold it, for "did you mean".
local function near(name)
  local word, names = name:match("[%w_]+$") or name, {}
  each(function(e)
    local letters = distance(word:lower(), e.word:lower())
    if #names < 8 and (letters <= (#word > 4 and 2 or 1) or
                       #word > 2 and e.word:find(word, 1, true)) then
      names[#names + 1] = e.name
    end
  end)
  return names
end

local function show(e)
  local lines = { e.signature }
  for _, line in ipairs(e.text) do
    lines[#lines + 1] = line == "" and "" or "  " .. line
  end
  return table.concat(lines, "\n")
end

-- Appends the names of a section's entries, all or those that begin with
-- prefix, as lines; false if there are none.
local function add_names(lines, section, prefix)
  local line = " "
  for _, e in ipairs(section) do
    local name = e.name:gsub("^fnn%.", "")
    if name:sub(1, #prefix) == prefix then
      if #line + #name > 76 then
        lines[#lines + 1], line = line, " "
      end
      line = line .. " " .. name
    end
  end
  if line == " " then return false end
  lines[#lines + 1] = line
  return true
end

-- The headings with their names: all, or those of a namespace, "optim.".
local function contents(prefix)
  local lines = {}
  for _, section in ipairs(manual.sections()) do
    lines[#lines + 1] = section.heading
    if not add_names(lines, section, prefix) and
       (prefix ~= "" or #section > 0) then
      lines[#lines] = nil
    end
  end
  return table.concat(lines, "\n")
end

-- The sections of that heading: what they say, and their names.
local function add_sections(texts, heading)
  for _, section in ipairs(manual.sections()) do
    if section.heading:lower() == heading:lower() then
      local lines = { section.heading, "" }
      table.move(section.text, 1, #section.text, 3, lines)
      if #section.text > 0 and #section > 0 then lines[#lines + 1] = "" end
      add_names(lines, section, "")
      texts[#texts + 1] = table.concat(lines, "\n")
    end
  end
end

function manual.text(name)
  name = name:match("^%s*(.-)%s*$")
  if name == "" or name == "fnn" then return contents("") end
  local texts = {}
  add_sections(texts, name)
  for _, e in ipairs(manual.find(name)) do texts[#texts + 1] = show(e) end
  if #texts == 0 then
    local space = contents(name:gsub("^fnn%.", "") .. ".")
    if space ~= "" then return space end
    local names = near(name)
    if #names == 0 then return nil, "no help on '" .. name .. "'" end
    return nil, "no help on '" .. name .. "'; near it: " ..
                table.concat(names, ", ")
  end
  return table.concat(texts, "\n\n")
end

return manual
