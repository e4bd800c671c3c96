-- help_spec.lua - every public name has a help text, every text a name, and
-- what is generated from the texts is fresh.

local fnn = require "fnn"
local help = require "fnn.help"
local manual = require "fnn.manual"

-- Names that hold values rather than things to explain.
local plain = { ["fnn._VERSION"] = true }

local function namespaces()
  local spaces = { fnn = fnn }
  for name, value in pairs(fnn) do
    if type(value) == "table" then
      spaces[name] = value
      for inner, v in pairs(value) do
        if type(v) == "table" and not rawget(v, "__name") then
          spaces[name .. "." .. inner] = v  -- nn.init
        end
      end
    end
  end
  return spaces
end

-- The classes of boxes, by the last part of their name, with their methods.
local function classes()
  local found = {}
  for _, value in pairs(debug.getregistry()) do
    if type(value) == "table" then
      local name, methods = rawget(value, "__name"), rawget(value, "methods")
      if type(name) == "string" and name:find "^fnn%." and methods then
        found[name:match "%w+$"] = methods
      end
    end
  end
  -- Those of Lua alone.
  found.Network = getmetatable(fnn.Network()).__index
  found.MetricStream = getmetatable(fnn.metrics.stream "mae").__index
  local one = fnn.zeros(1, 1)
  found.History = { column = fnn.fit(fnn.nn.Linear(1, 1), { one, one }, {
    epochs = 0, loss = fnn.nn.mse }).column }
  found.Decoder = getmetatable(fnn.text.Decoder(print)).__index
  found.Source = getmetatable(fnn.data.source {
    start = function () end, next = function () end }).__index
  local folder = os.tmpname()
  os.remove(folder)
  found.Checkpoints = getmetatable(fnn.checkpoints(folder)).__index
  os.remove(folder)
  found.Profile = getmetatable(fnn.profile(function() end)).__index
  found.Holders = getmetatable(fnn.memory_holders()).__index
  found.Plot = getmetatable(fnn.plot.lines { { 1 } }).__index
  found.Log = getmetatable(fnn.log.jsonl "/dev/null").__index
  found.KvCache = getmetatable(fnn.nn.KvCache { length = 1 }).__index
  for _, name in ipairs { "Transformer", "VisionTransformer" } do
    found[name] = {}
    for key, value in pairs(fnn.nn[name]) do
      if type(value) == "function" and key ~= "init" and key ~= "forward" and
         key ~= "describe" then
        found[name][key] = value
      end
    end
  end
  return found
end

local function entries()
  local names = {}
  for _, section in ipairs(manual.sections()) do
    for _, e in ipairs(section) do names[e.name] = e end
  end
  return names
end

-- try_NAME is made of NAME, when it is first asked for.
local function is_made(name) return name:find "^try_" ~= nil end

local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return table.concat(list, ", ")
end

describe("help", function()
  local documented = entries()

  it("explains every function", function()
    local missing = {}
    for space, values in pairs(namespaces()) do
      for name, value in pairs(values) do
        local full = space .. "." .. name
        -- fnn.add(x, y) is x:add(y), fnn.add_(x, y) is x:add_(y)
        local method = "Tensor:" .. name:gsub("_$", "")
        if type(value) ~= "table" and not plain[full] and
           not is_made(name) and
           not documented[full] and not documented[method] then
          missing[full] = true
        end
      end
    end
    assert.equal("", sorted(missing))
  end)

  it("explains every method", function()
    local missing = {}
    for class, methods in pairs(classes()) do
      for name in pairs(methods) do
        local full = class .. ":" .. name
        local base = full:gsub("_$", "")  -- add_ is add in place
        local always = name == "release" and documented["Tensor:release"]
        local call = class == "Tensor" and documented["fnn." .. name]
        if not (documented[full] or documented[base] or always or call) and
           not name:find "^_" and not is_made(name) then
          missing[full] = true
        end
      end
    end
    assert.equal("", sorted(missing))
  end)

  it("explains nothing that is not there", function()
    local spaces, methods, gone = namespaces(), classes(), {}
    for name, e in pairs(documented) do
      local space, word = name:match "^([%w%.]+)[%.:]([%w_]+)$"
      local owner = e.class and methods[space] or spaces[space]
      if not owner or rawget(owner, word) == nil then gone[name] = true end
    end
    assert.equal("", sorted(gone))
  end)

  it("says something about each", function()
    local silent = {}
    for name, e in pairs(documented) do
      if #e.text == 0 then silent[name] = true end
    end
    assert.equal("", sorted(silent))
  end)

  it("finds a name by its last word, as a method, in full", function()
    for _, name in ipairs { "softmax", "x:softmax", "Tensor:softmax" } do
      assert.matches("^Tensor:softmax%(", help[name])
    end
    assert.matches("^fnn.zeros%(", help.zeros)
    assert.matches("^nn.Linear%(", help["fnn.nn.Linear"])
  end)

  it("shows the words of a section", function()
    assert.matches("count from 1, ids from 0", help.indexing)
  end)

  it("lists the names of sections and of namespaces", function()
    assert.matches("^Schedules\n\nA schedule is .*optim.WarmupCosine",
                   help.schedules)
    assert.matches("Tensor:mse", help.losses)
    assert.matches("nn.cross_entropy", help.losses)
    assert.matches("^Optimizers\n  optim.SGD optim.Adam", help.optim)
    assert.matches("Containers\n  nn.Sequential", help.nn)
    assert.matches("nn.init.orthogonal_", help["fnn.nn.init"])
    assert.is_nil(help.optim:find "Tensor:")
  end)

  it("names what is near", function()
    local text, near = help("sofmax")
    assert.is_nil(text)
    assert.matches("Tensor:softmax", near)
  end)
end)

describe("the generated reference", function()
  it("is what the help texts say", function()
    assert(os.execute("build/fnn scripts/reference --check"))
  end)

  it("gives annotations that are Lua", function()
    assert(loadfile("library/fnn.d.lua"))
  end)
end)
