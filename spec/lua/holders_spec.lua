-- holders_spec.lua - fnn.memory_holders: whose the bytes are, each once.

local fnn = require "fnn"
local nn = fnn.nn

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(pattern, message)
end

-- The rows of a group, by name.
local function of(h, group)
  local rows = {}
  for _, r in ipairs(h.rows) do
    if r.group == group then rows[r.name] = r end
  end
  return rows
end

local function near(bytes, row) -- blocks are up to an eighth larger
  assert.is_truthy(row)
  assert.is_true(row.bytes >= bytes and row.bytes <= 1.125 * bytes + 64,
                 ("%d for %d"):format(row.bytes, bytes))
end

describe("memory_holders", function()
  it("tells weights, gradients, states, buffers, the graph, variables",
     function()
    local model = nn.Sequential(nn.Linear(500, 1000), nn.BatchNorm1d(1000))
    local opt = fnn.optim.Adam(model:parameters())
    local x = fnn.randn(300, 500)
    model(x):sum():backward()
    opt:step()
    local loss = model(x):exp():sum()
    local h = fnn.memory_holders { model = model }
    near(4 * 500 * 1000, of(h, "parameters")["0.weight"])
    near(4 * 1000, of(h, "parameters")["0.bias"])
    near(4 * 500 * 1000, of(h, "gradients")["0.weight"])
    local state = of(h, "optimizer state")["0.weight"]
    near(2 * 4 * 500 * 1000, state)
    assert.equal(2, state.count)
    near(4 * 1000, of(h, "buffers")["1.running_mean"])
    near(4 * 300 * 1000, of(h, "graph").exp)  -- its result
    near(4 * 300 * 1000, of(h, "graph").batch_norm)  -- its input
    near(4 * 300 * 500, of(h, "graph").linear)  -- x, which it keeps
    assert.is_nil(of(h, "variables")["local x"])  -- counted there
    assert.is_truthy(loss)
  end)

  it("counts what is shared once, and adds up to what is live", function()
    local big = fnn.zeros(1000, 1000)
    local view, list = big:t(), { big[1], { deep = big:narrow(1, 2, 3) } }
    local p = fnn.Param(big)
    local h = fnn.memory_holders()
    local found = 0
    for _, r in ipairs(h.rows) do
      if r.bytes >= 4e6 and r.bytes < 5e6 then found = found + 1 end
    end
    assert.equal(1, found)
    near(4e6, of(h, "parameters")["(1000, 1000)"])
    local sum = 0
    for i, bytes in ipairs(h.bytes) do
      sum = sum + bytes
      assert.is_true(i == 1 or bytes <= h.bytes[i - 1])
      assert.equal(h.rows[i].name, h.name[i])
    end
    assert.equal(h.live, sum)
    assert.is_truthy(view and list and p)
  end)

  it("finds variables: locals, upvalues, tables, coroutines", function()
    local history = { fnn.zeros(100000), { fnn.zeros(200000) } }
    local kept = fnn.zeros(300000)
    local function closure() return kept end
    local co = coroutine.wrap(function()
      local inside = fnn.zeros(400000)
      coroutine.yield()
      return inside
    end)
    co()
    rawset(_G, "everywhere", fnn.zeros(500000))
    local variables = of(fnn.memory_holders(), "variables")
    near(4 * 300000, variables["local history"])
    assert.equal(2, variables["local history"].count)
    near(4 * 300000, variables["local kept"] or variables["upvalue kept"])
    local names = {}
    for name, r in pairs(variables) do
      if r.bytes >= 1.5e6 then names[#names + 1] = name end
    end
    assert.equal(2, #names)
    near(4 * 500000, variables.everywhere)
    rawset(_G, "everywhere", nil)
    assert.is_truthy(closure and co and history)
  end)

  it("prints groups, the largest first", function()
    local model = nn.Linear(300, 300)
    local text = tostring(fnn.memory_holders { model = model })
    assert.matches("^holder +bytes +share\n", text)
    assert.matches("\nparameters +[%d.]+ [KM]B", text)
    assert.matches("\n  weight +[%d.]+ KB", text)
    assert.matches("\nlive on cpu +[%d.]+ [KM]B +100.0%%$", text)
    assert.is_true(#fnn.memory_holders():table(1) <=
                   #fnn.memory_holders():table(9))
  end)

  it("refuses what it does not know", function()
    fails("did you mean 'model'", fnn.memory_holders, { modl = 1 })
    fails("expected a module", fnn.memory_holders, { model = 3 })
    fails("Holders:table: expected a number of rows, an integer, got a string",
          function() fnn.memory_holders():table "all" end)
  end)
end)
