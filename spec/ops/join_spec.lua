local fixture = require "spec.support.fixture"
local fnn = require "fnn"

describe("joins", function ()
  fixture.define(require "spec.fixtures.join", it)

  it("promote their dtypes", function ()
    local a = fnn.tensor({ 1, 2 }, { dtype = "i64" })
    local b = fnn.tensor({ 0.5 }, { dtype = "f16" })
    local y = fnn.cat{ a, b }
    assert.equal("f16", y:dtype())
    assert.same({ 1, 2, 0.5 }, y:to("f32"):totable())
    assert.equal("i64", fnn.stack{ a, a }:dtype())
  end)

  it("join hundreds", function ()
    local p, list = fnn.Param(fnn.zeros(2)), {}
    for i = 1, 600 do list[i] = p + i end
    local y = fnn.cat(list)
    assert.same({ 1200 }, y:shape())
    assert.equal(600, y[1200])
    y:sum():backward{ retain_graph = true }
    assert.same({ 600, 600 }, p:grad():totable())
    fnn.stack(list, 2):sum():backward()
    assert.same({ 1200, 1200 }, p:grad():totable())
  end)

  it("copy: writing to the result leaves the source", function ()
    local x = fnn.ones(2, 2)
    for _, y in ipairs{ fnn.cat{ x }, x:tile(1, 1), x:flip(), x:roll(0),
                        x:tril(9) } do
      y:fill_(5)
      assert.equal(4, x:sum():item())
    end
  end)

  it("keep every element of runs of any length", function ()
    local rows = 2100
    local widths, parts = { 1, 3, 4, 5, 17, 37, 64, 65, 130, 1100 }, {}
    for _, t in ipairs{ "u8", "f16", "i32", "f32", "f64" } do
      for i, n in ipairs(widths) do
        parts[i] = fnn.randint(0, 200, { rows, n }):to(t)
      end
      local y = fnn.cat(parts, 2)
      local start = 1
      for i, n in ipairs(widths) do
        local part = y:narrow(2, start, n):to("f32")
        assert.is_true(part:eq(parts[i]:to("f32")):all():item())
        start = start + n
      end
    end
  end)

  it("reverse runs of any dtype and length", function ()
    for _, t in ipairs{ "bool", "u8", "i32", "i64", "f16", "bf16", "f32",
                        "f64" } do
      for _, n in ipairs{ 2, 7, 8, 33, 600, 1500 } do
        local x = fnn.randint(0, 100, { 3, n }):to(t)
        local back = fnn.arange(n - 1, -1, -1, { dtype = "i64" })
        local right = x:to("f64"):index_select(2, back)
        assert.is_true(x:flip(2):to("f64"):eq(right):all():item())
      end
    end
  end)

  it("name what does not fit", function ()
    local x = fnn.zeros(2, 3)
    local function fails (pattern, f) assert.error_matches(f, pattern) end
    fails("cat: %(2, 3%) does not fit tensor 2, %(2, 2%)",
          function () fnn.cat({ x, fnn.zeros(2, 2) }, 1) end)
    fails("cat: %(2, 3%) does not fit tensor 3, %(2%)",
          function () fnn.cat({ x, x, fnn.zeros(2) }) end)
    fails("without dims", function () fnn.cat{ fnn.tensor(1) } end)
    fails("at least one", function () fnn.cat{} end)
    fails("at least one", function () fnn.stack{} end)
    fails("stack: %(2, 3%) does not fit tensor 2, %(3, 2%)",
          function () fnn.stack{ x, x:t() } end)
    fails("dimensions count from 1", function () fnn.stack({ x }, 0) end)
    fails("repeat: 1 counts for shape %(2, 3%)", function () x:tile(2) end)
    fails("repeat: a count of %-1", function () x:tile(1, -1) end)
    fails("flip: a dimension is named twice", function () x:flip(1, 1) end)
    fails("tril: shape %(2%) is no matrix",
          function () fnn.zeros(2):tril() end)
  end)
end)
