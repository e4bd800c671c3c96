-- tensor_spec.lua - tensors of the second device in Lua: made, printed, read,
-- written in place, joined and cut; models that move there.

local fnn = require "fnn"
local device = require "spec.support.device"
local nn = fnn.nn

describe("a tensor on cuda", function()
  if not device.there() then
    pending "no second device"
    return
  end
  local there = device.name
  local full = fnn.zeros(1):to(there):device()

  it("is made by options behind or within a list", function()
    for _, x in ipairs {
      fnn.zeros(2, 3, { device = there }), fnn.zeros { 2, 3, device = there },
      fnn.zeros({ 2, 3 }, { device = there }),
      fnn.ones { 2, 3, device = there, dtype = "f16" },
      fnn.full({ 2, 3 }, 7, { device = there }),
      fnn.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, { device = there }),
      fnn.tensor { { 1, 2, 3 }, { 4, 5, 6 }, device = there },
      fnn.rand { 2, 3, device = there },
      fnn.arange(6, { device = there }):view { 2, 3 },
      fnn.zeros_like(fnn.zeros { 2, 3, device = there }),
    } do
      assert.equal(full, x:device())
      assert.same({ 2, 3 }, x:shape())
    end
    local x = fnn.tensor { 1.5, 2, device = there, dtype = "bf16" }
    assert.equal("bf16", x:dtype())
    assert.same({ 1.5, 2 }, x:totable())
    assert.equal("f64", fnn.zeros { 2, dtype = "f64" }:dtype())
    assert.error_matches(function() fnn.zeros { 2, devise = there } end,
                         "unknown option 'devise' %(did you mean 'device'%?%)")
  end)

  it("is made there by default", function()
    local function made()
      return fnn.tensor { 1, 2 }, fnn.zeros(2), fnn.eye(2), fnn.randn(2),
             fnn.linspace(0, 1, 2)
    end
    fnn.set_default_device(there)
    local list = { pcall(made) }
    fnn.set_default_device "cpu"
    assert.is_true(list[1], list[2])
    for i = 2, #list do assert.equal(full, list[i]:device()) end
    assert.equal(6, #list)
  end)

  it("is read in every dtype", function()
    for _, t in ipairs { "u8", "i32", "i64", "f16", "bf16", "f32", "f64" } do
      local x = fnn.tensor({ { 1, 2, 3 }, { 4, 5, 6 } },
                           { device = there, dtype = t })
      assert.equal(6, x[2][3])
      assert.equal(5, x:select(1, 2):narrow(1, 2, 1):item())
      assert.same({ { 1, 4 }, { 2, 5 }, { 3, 6 } },
                  x:transpose(1, 2):totable())
      local sum = 0
      for _, row in ipairs(x) do
        for _, v in ipairs(row:totable()) do sum = sum + v end
      end
      assert.equal(21, sum)
    end
    local b = fnn.tensor({ true, false }, { device = there })
    assert.same({ true, false }, b:totable())
    assert.is_true(b:any():item())
  end)

  it("prints", function()
    local text = tostring(fnn.arange(6, { device = there }):view { 2, 3 })
    assert.equal("tensor (2, 3) f32 " .. full .. "\n  0  1  2\n  3  4  5",
                 text)
    text = tostring(fnn.ones(2, 2, { device = there, dtype = "f16" }) / 3)
    assert.matches("^tensor %(2, 2%) f16 " .. full .. "\n  0%.3333", text)
    text = tostring(fnn.zeros(2, { device = there }):eq(0))
    assert.matches("true  true", text)
    assert.matches("%.%.%.", tostring(fnn.zeros(60, 70, { device = there })))
  end)

  it("is written by assignment", function()
    local x = fnn.zeros(3, 3, { device = there, dtype = "f16" })
    x[1] = 5
    x[2][2] = 7
    x[3] = fnn.tensor({ 1, 2, 3 }, { device = there })
    x:select(2, 3):fill_(9)
    assert.same({ { 5, 5, 9 }, { 0, 7, 9 }, { 1, 2, 9 } }, x:totable())
    assert.error_matches(function() x[1] = fnn.ones(3) end,
                         "copy_: tensors on two devices")
    x:masked_fill_(x:eq(5), -1)
    x:copy_(x:transpose(1, 2))
    assert.same({ { -1, 0, 1 }, { -1, 7, 2 }, { 9, 9, 9 } }, x:totable())
  end)

  it("computes in 16 bits, by PyTorch's rules for dtypes", function()
    for _, t in ipairs { "f16", "bf16" } do
      local x = fnn.tensor({ 1, 2, 3 }, { device = there, dtype = t })
      local i = x:to "i32"
      for _, y in ipairs {
        x + 1, 2.5 * x, x ^ 2, -x, x:exp(), x:clamp { lo = 2 }, x + i, i * x,
        x:flip(), x:roll(1, 1), fnn.cat { x, i }, fnn.stack({ x, x }, 1),
        fnn.where(x:gt(1), x, 0 * x), x:masked_fill(x:gt(1), 0),
        x:view { 3, 1 }:expand { 3, 3 }:tril(), x:sqrt(),
        fnn.cat({ x, x, x }):view { 3, 3 }:cross(x),
        fnn.cat { x, x }:glu(), fnn.cat { x, x }:swiglu(),
        x:view { 1, 3, 1 }:channels_last() + 1,
      } do
        assert.equal(t, y:dtype())
        assert.equal(full, y:device())
      end
      assert.equal("f32", (i / 2):dtype())
      assert.equal("f32", (x + x:to "f32"):dtype())
      assert.equal("f32", fnn.cat { x, x:to "f32" }:dtype())
      assert.equal("bool", x:lt(2):dtype())
      assert.same({ 3, 4.5, 5.5 }, ((x + 2) / 2 * 2 + i:eq(2) * 0.5 +
                                    i:eq(3) / 2):totable())
    end
    assert.error_matches(function()
      return fnn.ones(2):to "f16" + 1
    end, "f16 only stores on the cpu")
  end)

  it("takes lists of ids", function()
    local x = fnn.arange(12, { device = there }):view { 4, 3 }
    assert.same({ { 6, 7, 8 }, { 0, 1, 2 } },
                x:index_select(1, { 2, 0 }):totable())
    local ids = fnn.tensor({ 3, 3 }, { dtype = "i64", device = there })
    assert.same({ { 9, 10, 11 }, { 9, 10, 11 } }, x[ids]:totable())
    assert.same({ 9, 10, 11 }, x[x:gt(8)]:totable())
    local loss = nn.cross_entropy(x, { 0, 1, 2, 0 })
    assert.equal(full, loss:device())
    local set = fnn.data.TensorDataset(fnn.arange(4))
    local items = set:items(ids)
    assert.same({ 3, 3 }, items:totable())
    assert.equal("cpu", items:device())
    assert.error_matches(function() set:items(ids:view { 2, 1 }) end,
                         "expected a list of ids")
  end)

  it("divides integers, but not by zero", function()
    local x = fnn.tensor({ 7, -7, 5 }, { dtype = "i64", device = there })
    assert.same({ 3, -4, 2 }, (x // 2):totable())
    assert.same({ 1, 1, 1 }, (x // x):totable())
    assert.error_matches(function() return x // (x - 5) end,
                         "integer division by zero")
    assert.error_matches(function() return x % 0 end,
                         "integer division by zero")
  end)

  it("moves, and its gradient back", function()
    local x = fnn.Param(fnn.arange(6):view { 2, 3 })
    local y = (x * 1):to(there):transpose(1, 2) * 2
    assert.equal(full, y:device())
    y:to("cpu"):sum():backward()
    assert.equal("cpu", x:grad():device())
    assert.same({ { 2, 2, 2 }, { 2, 2, 2 } }, x:grad():totable())
    local z = fnn.Param(fnn.ones(3, { device = there, dtype = "f16" }))
    ;(z * z):sum():backward()
    assert.equal("f16", z:grad():dtype())
    assert.same({ 2, 2, 2 }, z:grad():totable())
    assert.error_matches(function() return x + z end,
                         "add: tensors on two devices")
  end)

  it("takes models along", function()
    local model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    local x = fnn.randn(5, 3, { generator = fnn.Generator(1) })
    local want = model(x)
    model:to(there)
    for _, p in ipairs(model:parameters()) do
      assert.equal(full, p:device())
    end
    local got = model(x:to(there))
    got:sum():backward()
    assert.is_true((got:detach():to "cpu" - want:detach()):abs():max():item()
                   < 1e-5)
    for _, p in ipairs(model:parameters()) do
      assert.equal(full, p:grad():device())
    end
    model:to "cpu"
    assert.equal("cpu", model:parameters()[1]:device())
    assert.equal("cpu", model:parameters()[1]:grad():device())
    model:to(there, "f16")
    assert.equal("f16", model(x:to(there, "f16")):dtype())
  end)
end)
