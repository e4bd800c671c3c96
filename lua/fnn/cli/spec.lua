-- spec.lua - what a script says of its options, checked, as entries:
--
--   name, shown      "batch_size", and with dashes as it is typed
--   default          nil if there is none
--   type             "integer", "number", "string", "flag" or "choice"
--   text             what it is for
--   choices, min, max, required, short, value    as they were given
--   standard         whether every script has it

local _, load = ...
local module = load "nn/module"

local ipairs, pairs, tostring, type = ipairs, pairs, tostring, type
local math_type, huge = math.type, math.huge
local find, format, gmatch, gsub =
  string.find, string.format, string.gmatch, string.gsub
local concat = table.concat
local raise, described = module.raise, module.described

local spec = {}

local keys = { required = true, short = true, min = true, max = true,
               type = true, value = true }
local types = { integer = true, number = true, string = true }

-- The standard options; a script may list the first three itself, to give
-- them a default and words of its own.
local function standard ()
  return {
    { "device", nil, "where to compute: cpu, cuda, cuda:1", value = "NAME" },
    { "threads", nil, "how many threads compute", type = "integer", min = 1 },
    { "seed", nil, "seed of the random numbers", type = "integer" },
    { "completion", { "bash", "zsh", "fish" },
      "print what completes this command line in a shell" },
    { "help", false, "print this text", short = "h" },
  }
end

-- {======================================================
-- Entries
-- =======================================================

local function type_of (name, e)
  local default = e[2]
  local kind = type(default)
  if kind == "boolean" then return "flag" end
  if kind == "string" then return "string" end
  if kind == "table" and #default > 0 then return "choice" end
  if kind == "number" then
    local own = math_type(default) == "integer" and "integer" or "number"
    return e.type == "number" and "number" or own
  end
  if kind == "nil" then return e.type or "string" end
  raise("cli: option '%s': expected a number, a string, a boolean, a list " ..
        "of choices or nil as its default, got %s", name,
        kind == "table" and "an empty table" or described(default))
end

local function check_keys (name, e)
  for key in pairs(e) do
    if type(key) == "string" and not keys[key] then
      raise("cli: option '%s': unknown key '%s'%s", name, key,
            module.suggestion(key, keys, true))
    elseif type(key) ~= "string" and
           (math_type(key) ~= "integer" or key < 1 or key > 3) then
      raise("cli: option '%s': expected { name, default, text }, got " ..
            "something at [%s]", name, tostring(key))
    end
  end
  if e.type ~= nil and not types[e.type] then
    raise("cli: option '%s': type: expected integer, number or string, " ..
          "got %s", name, tostring(e.type))
  end
  if e.required and e[2] ~= nil then
    raise("cli: option '%s' is required, so it has no default", name)
  end
  if e.short ~= nil and
     not (type(e.short) == "string" and find(e.short, "^%w$")) then
    raise("cli: option '%s': short: expected a letter, got '%s'", name,
          tostring(e.short))
  end
end

local function check_choices (o)
  for _, v in ipairs(o.choices or {}) do
    if type(v) ~= "string" and type(v) ~= "number" then
      raise("cli: option '%s': expected texts or numbers to choose from, " ..
            "got %s", o.name, described(v))
    end
  end
end

local function check_range (o)
  for _, key in ipairs { "min", "max" } do
    local bound = o[key]
    if bound ~= nil then
      if type(bound) ~= "number" then
        raise("cli: option '%s': %s: expected a number, got %s", o.name, key,
              described(bound))
      elseif o.type ~= "integer" and o.type ~= "number" then
        raise("cli: option '%s': %s is for numbers", o.name, key)
      end
    end
  end
end

local function entry (e, place)
  if type(e) ~= "table" then
    raise("cli: entry %d: expected { name, default, text }, got %s", place,
          described(e))
  end
  local name = e[1]
  if type(name) ~= "string" or not find(name, "^%a[%w_]*$") then
    raise("cli: entry %d: expected a name of letters, digits and _, got " ..
          "'%s'", place, tostring(name))
  end
  check_keys(name, e)
  local o = { name = name, shown = gsub(name, "_", "-"), default = e[2],
              type = type_of(name, e), text = e[3] or "",
              required = e.required, short = e.short, min = e.min,
              max = e.max, value = e.value }
  if type(o.text) ~= "string" then
    raise("cli: option '%s': expected a text, got %s", name, described(o.text))
  end
  if o.type == "choice" then o.choices, o.default = e[2], e[2][1] end
  if o.type == "number" and o.default then o.default = o.default + 0.0 end
  if e.type and e.type ~= o.type then
    raise("cli: option '%s': its default is no %s", name, e.type)
  end
  check_choices(o)
  check_range(o)
  return o
end

-- }======================================================

-- {======================================================
-- Words
-- =======================================================

-- "IN OUT", "FILE...", "[FILE...]": how many words there may be.
local function words_of (text)
  if text == nil then return { least = 0, most = 0 } end
  if type(text) ~= "string" then
    raise("cli: words: expected a text such as 'FILE...', got %s",
          described(text))
  end
  local least, most = 0, 0
  for word in gmatch(text, "%S+") do
    most = most + 1
    if not find(word, "^%[") then least = least + 1 end
    if find(word, "%.%.%.%]?$") then most = huge end
  end
  return { least = least, most = most, text = text }
end

-- }======================================================

-- What a value must be, for messages and help.
function spec.range (o)
  if o.min and o.max then
    return format("from %s to %s", tostring(o.min), tostring(o.max))
  end
  if o.min then return format("of %s or more", tostring(o.min)) end
  return o.max and format("of %s or less", tostring(o.max))
end

local kinds = { integer = "an integer", number = "a number",
                flag = "yes or no" }

function spec.expected (o)
  if o.type ~= "choice" then
    local range = spec.range(o)
    return kinds[o.type] .. (range and " " .. range or "")
  end
  local names = {}
  for i, v in ipairs(o.choices) do names[i] = tostring(v) end
  local last = #names > 1 and names[#names]
  if not last then return names[1] end
  return concat(names, ", ", 1, #names - 1) .. " or " .. last
end

local function add (s, o)
  if s.names[o.name] then raise("cli: option '%s' is there twice", o.name) end
  if o.short and s.shorts[o.short] then
    raise("cli: options '%s' and '%s' are both -%s", s.shorts[o.short].name,
          o.name, o.short)
  end
  s.names[o.name] = o
  if o.short then s.shorts[o.short] = o end
  s.all[#s.all + 1] = o
end

local function add_standard (s)
  for i, e in ipairs(standard()) do
    local o, own = entry(e, i), s.names[e[1]]
    o.standard = true
    if o.name == "completion" then o.default = nil end
    if o.short and s.shorts[o.short] then o.short = nil end
    if own and (o.name == "help" or o.name == "completion") then
      raise("cli: every script has an option '%s'", o.name)
    elseif own then
      if own.type ~= o.type and own.type ~= "choice" then
        raise("cli: option '%s' is %s in every script", o.name,
              kinds[o.type] or "a name")
      end
      own.min = own.min or o.min
      own.value = own.value or o.value
    else
      add(s, o)
    end
  end
end

-- The spec of a script: all its entries, by place, by name and by letter.
function spec.read (given)
  if type(given) ~= "table" then
    raise("cli: expected { \"What the script does.\", { name, default, " ..
          "text }, ... }, got %s", described(given))
  end
  local s = { all = {}, names = {}, shorts = {}, words = words_of(given.words) }
  local first = 1
  if type(given[1]) == "string" then s.about, first = given[1], 2 end
  for key in pairs(given) do
    if type(key) ~= "number" and key ~= "words" then
      raise("cli: unknown key '%s' (expected words)", tostring(key))
    end
  end
  for i = first, #given do add(s, entry(given[i], i)) end
  add_standard(s)
  return s
end

return spec
