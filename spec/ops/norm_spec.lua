local fnn = require "fnn"

-- Sizes at which sums go over several chunks, rows, parts and blocks.
local shapes = {
  { 2, 3, 70, 40 }, { 3, 70, 9, 41 }, { 40, 16, 32, 32 }, { 1, 5, 5000 },
  { 300, 20 }, { 6, 130, 7 },
}

local function dims_of (x, first)
  local dims = { 1 }
  for d = first, x:ndim() do dims[#dims + 1] = d end
  return dims
end

local function channel (w, x)
  local shape = {}
  for d = 1, x:ndim() do shape[d] = d == 2 and w:numel() or 1 end
  return w:reshape(shape)
end

-- The definitions, over ops that are tested elsewhere.
local function scaled (h, w, b)
  return h * channel(w, h) + channel(b, h)
end

local function batch (x, w, b)
  local dims = dims_of(x, 3)
  local d = x - x:mean(dims, { keepdim = true })
  return scaled(d / (d:square():mean(dims, { keepdim = true }) + 1e-5):sqrt(),
                w, b)
end

local function group (x, groups, w, b)
  local shape = x:shape()
  local g = x:reshape { shape[1], groups, -1 }
  local d = g - g:mean({ 3 }, { keepdim = true })
  local h = d / (d:square():mean({ 3 }, { keepdim = true }) + 1e-5):sqrt()
  return scaled(h:reshape(shape), w, b)
end

local function largest (x) return x:abs():max():item() end

-- The largest distance of value and gradients of f from those of g, which
-- computes in f64; f sees its input in either order.
local function distance (x, order, f, g)
  local c = x:size(2)
  local gen = fnn.Generator(5)
  local w = fnn.uniform(0.5, 2, { c }, { generator = gen })
  local b = fnn.randn({ c }, { generator = gen })
  local gy = fnn.randn(x:shape(), { generator = gen })
  local function run (h, dtype, last)
    local p = { fnn.Param(x:to(dtype)), fnn.Param(w:to(dtype)),
                fnn.Param(b:to(dtype)) }
    local y = h(last and p[1]:channels_last() or p[1]:value(), p[2], p[3])
    local up = gy:to(dtype)
    y:backward(last and up:channels_last() or up)
    return { y:detach(), p[1]:grad(), p[2]:grad(), p[3]:grad() }
  end
  local got = run(f, "f32", order == "channels_last")
  local want = run(g, "f64")
  local most = 0
  for i, v in ipairs(want) do
    most = math.max(most, largest(got[i]:to("f64") - v) / largest(v))
  end
  return most
end

describe("normalization over channels", function ()
  for _, shape in ipairs(shapes) do
    local text = table.concat(shape, ", ")
    for _, order in ipairs(#shape > 2 and { "row_major", "channels_last" } or
                           { "row_major" }) do
      it(("is its definition: (%s), %s"):format(text, order), function ()
        local x = fnn.randn(shape, { generator = fnn.Generator(1) }) * 3 + 20
        assert.is_true(distance(x, order, function (v, w, b)
          return v:batch_norm(nil, nil, w, b)
        end, batch) < 2e-6)
        for _, groups in ipairs { 1, shape[2] } do
          if groups == 1 or #shape > 2 then
            assert.is_true(distance(x, order, function (v, w, b)
              return v:group_norm(groups, w, b)
            end, function (v, w, b) return group(v, groups, w, b) end) < 2e-6)
          end
        end
      end)
    end
  end

  it("makes 0 of a constant, and of one of a thousand copies", function ()
    for _, v in ipairs { 0, 1000.3, -1e-3, 1e30 } do
      local x = fnn.full({ 3, 4, 50, 41 }, v)
      for _, y in ipairs { x, x:channels_last() } do
        assert.equal(0, largest(y:batch_norm()))
        assert.equal(0, largest(y:group_norm(2)))
        assert.equal(0, largest(y:instance_norm()))
      end
      assert.equal(0, largest(x:layer_norm(2)))
    end
  end)

  it("keeps its digits far from 0", function ()
    local x = fnn.randn({ 4, 3, 64, 64 }, { generator = fnn.Generator(2) })
    x = x + 3000 -- what f32 holds of it is the input
    for _, y in ipairs { x, x:channels_last() } do
      local want = y:to("f64"):contiguous():batch_norm()
      assert.is_true(largest(y:batch_norm():to("f64") - want) < 3e-4)
      local mean, var = fnn.zeros(3), fnn.ones(3)
      y:batch_norm(mean, var, nil, nil, { training = true, momentum = 1 })
      local v = y:to("f64"):var { 1, 3, 4 }
      assert.is_true(largest(var:to("f64") - v) < 1e-5)
    end
  end)

  it("keeps the order in memory without a conversion", function ()
    local x = fnn.randn(2, 8, 5, 5):channels_last()
    local p = fnn.Param(x):channels_last()
    local before = fnn.memory().conversions
    for _, y in ipairs { p:batch_norm(), p:group_norm(2), p:instance_norm() } do
      assert.equal("channels_last", y:order())
      y:backward(x, { retain_graph = true })
    end
    assert.equal(before, fnn.memory().conversions)
  end)

  it("takes NaN and infinity for what they are", function ()
    local nan, inf = 0 / 0, math.huge
    for _, v in ipairs { nan, inf } do
      local x = fnn.tensor({ { 1, 2 }, { v, 3 }, { 5, 7 } })
      local y = x:batch_norm():totable()
      assert.is_true(y[1][1] ~= y[1][1])
      assert.near(-0.9258, y[1][2], 1e-3)
    end
  end)
end)

describe("batch_norm", function ()
  it("moves the running statistics, the variance by that of a sample",
     function ()
    local x = fnn.tensor({ { 1, 10 }, { 3, 10 }, { 5, 40 } })
    local mean, var = fnn.zeros(2), fnn.ones(2)
    x:batch_norm(mean, var, nil, nil, { training = true })
    assert.near(0.3, mean:totable()[1], 1e-6)  -- 0.1 of 3
    assert.near(2, mean:totable()[2], 1e-6)    -- 0.1 of 20
    assert.near(1.3, var:totable()[1], 1e-6)   -- 0.9 and 0.1 of 4
    assert.near(30.9, var:totable()[2], 1e-5)  -- 0.9 and 0.1 of 300
    local y = x:batch_norm(mean, var)
    assert.near((1 - 0.3) / math.sqrt(1.3 + 1e-5), y:totable()[1][1], 1e-6)
    assert.near(0.3, mean:totable()[1], 1e-6)
  end)

  it("says what is wrong", function ()
    local function fails (text, f)
      local ok, message = pcall(f)
      assert.is_false(ok)
      assert.truthy(message:find(text, 1, true), message)
    end
    local x = fnn.ones(2, 3)
    fails("batch_norm: expected shape (n, channels ...), got (3)",
          function () fnn.ones(3):batch_norm() end)
    fails("batch_norm: the weight has shape (2), but the input (2, 3) " ..
          "(expected (3))",
          function () x:batch_norm(nil, nil, fnn.ones(2)) end)
    fails("batch_norm: the bias is f64, the input f32", function ()
      x:batch_norm(nil, nil, nil, fnn.ones(3, { dtype = "f64" }))
    end)
    fails("batch_norm: one value a channel has no variance: expected more " ..
          "in training, got shape (1, 3)",
          function () fnn.ones(1, 3):batch_norm() end)
    fails("batch_norm: expected a float tensor, got i64", function ()
      fnn.ones(2, 3, { dtype = "i64" }):batch_norm()
    end)
    fails("unknown option 'momentun'", function ()
      x:batch_norm(nil, nil, nil, nil, { momentun = 1 })
    end)
    local expanded = fnn.zeros(1):expand(3)
    fails("expanded", function ()
      x:batch_norm(expanded, fnn.ones(3), nil, nil, { training = true })
    end)
  end)

  it("takes a batch of nothing", function ()
    local x, w = fnn.Param(fnn.zeros(0, 3, 2)), fnn.Param(fnn.ones(3))
    local y = x:batch_norm(nil, nil, w)
    assert.same({ 0, 3, 2 }, y:shape())
    y:sum():backward()
    assert.same({ 0, 0, 0 }, w:grad():totable())
  end)
end)

describe("rms_norm", function ()
  it("divides by the root of the mean of squares", function ()
    local y = fnn.tensor({ 3, 4 }):rms_norm(1, fnn.tensor({ 1, 2 }), 0)
    local r = math.sqrt(12.5)
    assert.near(3 / r, y:totable()[1], 1e-6)
    assert.near(8 / r, y:totable()[2], 1e-6)
    assert.same({ 0, 0 }, fnn.zeros(2):rms_norm():totable())
  end)
end)

describe("a count of dims", function ()
  it("is one that an int holds", function ()
    local x = fnn.ones(2, 3)
    for _, f in ipairs { "layer_norm", "rms_norm" } do
      local ok, message = pcall(x[f], x, (1 << 32) + 1)
      assert.is_false(ok)
      assert.truthy(message:find("not a number of dims", 1, true), message)
    end
  end)
end)
