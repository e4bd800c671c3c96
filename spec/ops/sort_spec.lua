local fixture = require "spec.support.fixture"
local fnn = require "fnn"

-- n numbers from a linear congruence, of which there are only many kinds.
local function numbers (n, many)
  local list, seed = {}, 12345
  for i = 1, n do
    seed = (seed * 1103515245 + 12345) % 2147483648
    list[i] = seed // 1024 % many - many // 2
  end
  return list
end

-- The places of list in order, ties in the order in which they stand.
local function order (list, descending)
  local at = {}
  for i = 1, #list do at[i] = i end
  table.sort(at, function (a, b)
    if list[a] ~= list[b] then return (list[a] < list[b]) ~= descending end
    return a < b
  end)
  return at
end

describe("topk and sort", function ()
  fixture.define(require "spec.fixtures.sort", it)

  -- Around the sizes at which one way of sorting gives way to another.
  it("order lines of all lengths, ties as they stand", function ()
    for _, n in ipairs{ 1, 2, 48, 49, 1000, 16384, 16385, 50000 } do
      local list = numbers(n, n // 3 + 1)
      for _, descending in ipairs{ true, false } do
        local at = order(list, descending)
        local _, ids = fnn.tensor(list):sort{ descending = descending }
        ids = ids:totable()
        for i = 1, n do
          if at[i] ~= ids[i] + 1 then assert.equal(at[i], ids[i] + 1) end
        end
      end
    end
  end)

  it("take the k first of long lines", function ()
    for _, n in ipairs{ 200, 16384, 70000 } do
      local list = numbers(n, n // 2)
      local at = order(list, true)
      local up = order(list, false)
      for _, k in ipairs{ 1, 7, 25, 2048, 5000 } do
        if k <= n then
          local y, ids = fnn.tensor(list):topk(k)
          local low = fnn.tensor(list):topk(k, { largest = false })
          for i = 1, k, 1 + k // 50 do
            assert.equal(at[i] - 1, ids[i])
            assert.equal(list[at[i]], y[i])
            assert.equal(list[up[i]], low[i])
          end
        end
      end
    end
  end)

  it("take the first of a line that gets better and better", function ()
    local y, ids = fnn.arange(30000):topk(3)
    assert.same({ 29999, 29998, 29997 }, y:totable())
    assert.same({ 29999, 29998, 29997 }, ids:totable())
  end)

  it("order many short lines along any dim", function ()
    local list = numbers(3 * 5 * 40, 50)
    local x = fnn.tensor(list, 3, 5, 40)
    for dim = 1, 3 do
      local y = x:sort(dim):transpose(dim, 3):reshape(-1, x:size(dim))
      local parts = x:transpose(dim, 3):reshape(-1, x:size(dim))
      for i = 1, #y do
        local line = parts[i]:totable()
        table.sort(line)
        assert.same(line, y[i]:totable())
      end
    end
  end)

  it("give ids for gather", function ()
    local x = fnn.tensor(numbers(60, 1000), 3, 20)
    local y, ids = x:sort(2)
    assert.same(y:totable(), x:gather(2, ids):totable())
    assert.same(ids:totable(), x:argsort(2):totable())
  end)

  it("take a tensor without dims for a line of one", function ()
    local p = fnn.Param(fnn.tensor(3))
    for _, dim in ipairs { 1, -1 } do
      local y, ids = p:sort(dim)
      local z, places = p:topk(1, dim)
      for _, t in ipairs { y, ids, z, places, p:argsort(dim) } do
        assert.same({}, t:shape())
      end
      assert.same({ 3, 0, 3, 0, 0 }, { y:item(), ids:item(), z:item(),
                                       places:item(), p:argsort():item() })
      p:set_grad(nil)
      local sum = y * 2 + z
      sum:backward()
      assert.equal(3, p:grad():item())
    end
    assert.error_matches(function () p:sort(2) end, "dimension 2 out of range")
    assert.error_matches(function () p:topk(2) end, "topk: 2 of the 1")
  end)

  it("name what is out of range", function ()
    local x = fnn.zeros(2, 3)
    local function fails (pattern, f) assert.error_matches(f, pattern) end
    fails("topk: 4 of the 3 elements along the dim",
          function () x:topk(4) end)
    fails("topk: %-1 of the 3", function () x:topk(-1) end)
    fails("dimension 3 out of range", function () x:sort(3) end)
    fails("unknown option 'largst' %(did you mean 'largest'%?%)",
          function () x:topk(1, { largst = true }) end)
  end)
end)
