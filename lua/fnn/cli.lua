-- cli.lua - the command line of a script: fnn.cli.
--
-- A script lists its options with their defaults, whose types are those of the
-- values.  The list is read into entries (cli/spec.lua), from which the words
-- are read here, and the text of --help (cli/usage.lua) and what a shell asks
-- for completion (cli/completion.lua) are written.

local fnn, load, internals = ...
local module = load "nn/module"
local spec = load "cli/spec"

local error, ipairs, pairs, pcall, print = error, ipairs, pairs, pcall, print
local setmetatable, tonumber, tostring, type =
  setmetatable, tonumber, tostring, type
local tointeger, huge = math.tointeger, math.huge
local find, format, gsub, match, sub =
  string.find, string.format, string.gsub, string.match, string.sub
local concat, sort = table.concat, table.sort

-- {======================================================
-- Errors
-- =======================================================

-- A wrong word of a script's own command line is no bug of the script: an
-- object that says what is wrong, which interpreters print without a
-- traceback before they end with 1, and which a script may catch.
local Wrong = { __name = "fnn.CommandLine" }
function Wrong.__tostring (e) return e.message end

local function fail (c, text, ...)
  local message = format(text, ...)
  if not c.script then module.raise("cli: %s", message) end
  error(setmetatable({
    message = format("%s: %s (--help tells the usage)", c.script, message),
  }, Wrong), 0)
end

-- All that a word may be, to find what was meant.
local function near (c, word)
  local names = {}
  for _, o in ipairs(c.spec.all) do
    names[#names + 1] = "--" .. o.shown
    if o.type == "flag" and o.name ~= "help" then
      names[#names + 1] = "--no-" .. o.shown
    end
  end
  sort(names)
  return internals.nearest(word, names)
end

local function suggestion (found)
  return found and format(" (did you mean '%s'?)", found) or ""
end

-- }======================================================

-- {======================================================
-- Values
-- =======================================================

local read = {}

function read.string (_, text) return text end

local function in_range (o, v)
  return (not o.min or v >= o.min) and (not o.max or v <= o.max)
end

function read.integer (o, text)
  local v = tointeger(tonumber(text))
  if v and in_range(o, v) then return v end
end

function read.number (o, text)
  local v = tonumber(text)
  if v and v == v and v ~= huge and v ~= -huge and in_range(o, v) then
    return v + 0.0
  end
end

function read.choice (o, text)
  for _, v in ipairs(o.choices) do
    if tostring(v) == text or
       type(v) == "number" and tonumber(text) == v then return v end
  end
end

local truths = { ["true"] = true, yes = true, on = true, ["1"] = true,
                 ["false"] = false, no = false, off = false, ["0"] = false }

function read.flag (_, text) return truths[text] end

local function wrong_value (c, o, text)
  local near_choice
  if o.type == "choice" then
    local names = {}
    for _, v in ipairs(o.choices) do
      if type(v) == "string" then names[#names + 1] = v end
    end
    near_choice = internals.nearest(text, names)
  end
  fail(c, "option '--%s': expected %s, got '%s'%s", o.shown, spec.expected(o),
       text, suggestion(near_choice))
end

local function set (c, o, text)
  local v = read[o.type](o, text)
  if v == nil then wrong_value(c, o, text) end
  c.found[o.name] = v
end

-- }======================================================

-- {======================================================
-- Words
-- =======================================================

-- The next word, which is an option's value.
local function value (c, o, shown)
  local text = c.list[c.at + 1]
  if text == nil then fail(c, "option '%s' needs a value", shown) end
  text = tostring(text)
  if find(text, "^%-%-%a") then
    fail(c, "option '%s' needs a value, got the option '%s' (a value that " ..
         "begins so is written --%s=%s)", shown, text, o.shown, text)
  end
  c.at = c.at + 1
  return text
end

local function named (c, name) return c.spec.names[gsub(name, "-", "_")] end

local function unknown (c, word)
  fail(c, "unknown option '%s'%s", word, suggestion(near(c, word)))
end

-- --name value, --name=value, --flag, --no-flag
local function long (c, word)
  local name, equals, text = match(word, "^%-%-([^=]*)(=?)(.*)$")
  local o = named(c, name)
  if not o then
    local flag = match(name, "^no%-(.*)$")
    o = flag and named(c, flag)
    if not o or o.type ~= "flag" or o.name == "help" then
      unknown(c, "--" .. name)
    end
    if equals ~= "" then fail(c, "option '--%s' has no value", name) end
    c.found[o.name] = false
  elseif equals ~= "" then
    set(c, o, text)
  elseif o.type == "flag" then
    c.found[o.name] = true
  else
    set(c, o, value(c, o, word))
  end
end

-- -n value, -nvalue, -f, and flags in one word, -fg
local function short (c, word)
  for i = 2, #word do
    local letter = sub(word, i, i)
    local o = c.spec.shorts[letter]
    if not o then unknown(c, "-" .. letter) end
    if o.type ~= "flag" then
      local rest = gsub(sub(word, i + 1), "^=", "")
      set(c, o, rest ~= "" and rest or value(c, o, "-" .. letter))
      return
    end
    c.found[o.name] = true
  end
end

local function add_word (c, word)
  local most = c.spec.words.most
  if #c.words >= most then
    fail(c, most == 0 and "expected no words but options, got '%s'%s" or
         "unexpected word '%s'%s", word,
         suggestion(find(word, "^%a") and near(c, "--" .. word)))
  end
  c.words[#c.words + 1] = word
end

local function plain (c, word)
  local name, text = match(word, "^(%a[%w_-]*)=(.*)$")
  if not name then return add_word(c, word) end
  local o = named(c, name)
  if not o then
    local found = near(c, "--" .. name)
    fail(c, "unknown option '%s='%s", name,
         suggestion(found and sub(found, 3) .. "="))
  end
  set(c, o, text)
end

-- Whether a word that begins with - is an option rather than a number.
local function is_option (c, word)
  return find(word, "^%-[^%d.]") or
         find(word, "^%-%d") and c.spec.shorts[sub(word, 2, 2)]
end

local function walk (c)
  local options = true
  c.at = 1
  while c.list[c.at] ~= nil and not c.found.help and not c.found.completion do
    local word = tostring(c.list[c.at])
    if not options then
      add_word(c, word)
    elseif word == "--" then
      options = false
    elseif sub(word, 1, 2) == "--" then
      long(c, word)
    elseif is_option(c, word) then
      short(c, word)
    else
      plain(c, word)
    end
    c.at = c.at + 1
  end
end

-- }======================================================

-- {======================================================
-- Results
-- =======================================================

local function check_required (c)
  local missing = {}
  for _, o in ipairs(c.spec.all) do
    if o.required and c.found[o.name] == nil then
      missing[#missing + 1] = "--" .. o.shown
    end
  end
  if #missing > 0 then
    fail(c, "option%s '%s' must be given", #missing > 1 and "s" or "",
         concat(missing, "', '"))
  end
  if #c.words < c.spec.words.least then
    fail(c, "expected %s", c.spec.words.text)
  end
end

-- Gives v to one of fnn's functions, whose errors are then of the word.
local function give (c, name, f, v)
  local ok, why = pcall(f, v)
  if not ok then
    fail(c, "option '--%s': %s", name, gsub(tostring(why), "^[^\n]-:%d+: ", ""))
  end
end

-- The standard options have their effect here; what is then in force is what
-- the script is told.
local function apply (c, o)
  if o.device then give(c, "device", fnn.set_default_device, o.device) end
  if o.threads then give(c, "threads", fnn.threads, o.threads) end
  if o.seed then fnn.manual_seed(o.seed) end
  o.device, o.threads = fnn.default_device(), fnn.threads()
  o.seed = o.seed or fnn.default_generator():seed()
end

local function result (c)
  check_required(c)
  local o = {}
  for _, entry in ipairs(c.spec.all) do o[entry.name] = entry.default end
  for name, v in pairs(c.found) do o[name] = v end
  for i, word in ipairs(c.words) do o[i] = word end
  apply(c, o)
  o.help, o.completion = nil, nil
  return o
end

-- What --help or --completion asks for: a script prints it and has done.
local function tell (c, text)
  if not c.script then return nil, text end
  print(text)
  local os = internals.global "os"
  if type(os) == "table" and os.exit then os.exit(true, true) end
  return nil, text
end

local function last_part (path) return match(path, "[^/\\]+$") or path end

-- The words to read and, when they are those of the running script, its name.
local function source (list)
  local arg = internals.global "arg"
  if list ~= nil and type(list) ~= "table" then
    module.raise("cli: expected a list of words, got %s",
                 module.described(list))
  end
  if type(arg) ~= "table" or list ~= nil and list ~= arg then
    return { list = list or {} }
  end
  local first = 0
  while arg[first - 1] ~= nil do first = first - 1 end
  local path = tostring(arg[0] or "script")
  return {
    list = arg, path = path, script = last_part(path),
    program = first < 0 and last_part(tostring(arg[first])) or "fnn",
  }
end

-- fnn.cli(spec [, list]): see help/cli.lua.
local function cli (list_of_options, list)
  local c = source(list)
  c.spec, c.found, c.words = spec.read(list_of_options), {}, {}
  walk(c)
  if c.found.help then return tell(c, load "cli/usage"(c)) end
  if c.found.completion then
    return tell(c, load "cli/completion"[c.found.completion](c))
  end
  return result(c)
end

-- }======================================================

return { cli = cli }
