local fixture = require "spec.support.fixture"
local fnn = require "fnn"

describe("views", function ()
  fixture.define(require "spec.fixtures.view", it)

  it("share storage", function ()
    local x = fnn.arange(6):reshape(2, 3)
    local y = x:t():slice(1, -1, 1, -1):select(2, 1)
    y:fill_(9)
    assert.same({ { 9, 9, 9 }, { 3, 4, 5 } }, x:totable())
    x:diagonal(1):fill_(7)
    assert.same({ { 9, 7, 9 }, { 3, 4, 7 } }, x:totable())
  end)

  it("reshape copies only when it must", function ()
    local x = fnn.zeros(2, 3, 4)
    local y = x:narrow(2, 1, 2):reshape(2, 8)
    y:fill_(1)
    assert.equal(16, x:sum():item())
    local z = x:transpose(1, 2):reshape(6, 4)
    z:fill_(5)
    assert.equal(16, x:sum():item())
    x:permute(3, 1, 2):reshape(4, 1, 6):fill_(2)
    assert.equal(48, x:sum():item())
  end)

  it("keep the limits of what they show", function ()
    local x = fnn.zeros(1, 3):expand(2, 3)
    for _, y in ipairs{ x, x:narrow(2, 1, 2), x:t(), x:unsqueeze(1) } do
      assert.error_matches(function () y:fill_(1) end, "expanded")
    end
  end)

  it("work on every dtype", function ()
    for _, dtype in ipairs{ "bool", "u8", "i32", "i64", "f16", "bf16", "f32",
                            "f64" } do
      local x = fnn.tensor({ 0, 1, 1, 0, 0, 1 }, 2, 3, { dtype = dtype })
      local y = x:t():slice(1, 3, 1, -2):reshape(4)
      assert.equal(dtype, y:dtype())
      assert.same({ 1, 1, 0, 0 }, y:to("i64"):totable())
    end
  end)

  it("copy between parts of one tensor as if through a buffer", function ()
    local x = fnn.arange(6)
    x:narrow(1, 2, 4):copy_(x:narrow(1, 1, 4))
    assert.same({ 0, 0, 1, 2, 3, 5 }, x:totable())
    x:copy_(x:slice(1, -1, 1, -1))
    assert.same({ 5, 3, 2, 1, 0, 0 }, x:totable())
  end)

  it("name what does not fit", function ()
    local x = fnn.zeros(2, 3)
    local function fails (pattern, f) assert.error_matches(f, pattern) end
    fails("reshape: %(2, 3%) of 6 elements does not fit %(4, 2%)",
          function () x:reshape(4, 2) end)
    fails("reshape: %(2, 3%) of 6 elements does not fit %(%-1, 4%)",
          function () x:reshape(-1, 4) end)
    fails("reshape: bad shape %(%-1, %-1%)",
          function () x:reshape(-1, -1) end)
    fails("reshape: bad shape %(%-2, 3%)", function () x:reshape(-2, 3) end)
    fails("does not fit", function () fnn.zeros(0, 3):reshape(-1, 0) end)
    fails("narrow: 3 elements do not follow the first 1 of 3",
          function () x:narrow(2, 2, 3) end)
    fails("narrow: %-1 elements", function () x:narrow(2, 2, -1) end)
    fails("narrow: 5 is out of range", function () x:narrow(2, 5, 0) end)
    fails("narrow: places count from 1", function () x:narrow(2, 0, 1) end)
    fails("select: 4 is out of range", function () x:select(2, 4) end)
    fails("a step of 0", function () x:slice(1, 1, 2, 0) end)
    fails("dimension 3 out of range", function () x:transpose(1, 3) end)
    fails("permute: got 1 dims for a tensor of 2",
          function () x:permute(1) end)
    fails("permute: a dim is given twice", function () x:permute(1, 1) end)
    fails("expand: %(2, 3%) cannot become %(2, 4%)",
          function () x:expand(2, 4) end)
    fails("expand: %(2, 3%) cannot become %(3%)", function () x:expand(3) end)
    fails("expand: .* cannot become", function () x:expand(-1, 2, 3) end)
    fails("dimensions count from 1", function () x:unsqueeze(4) end)
    fails("diagonal: needs two different dims",
          function () x:diagonal(0, 1, -2) end)
    fails("the first dim comes after", function () x:flatten(2, 1) end)
    fails("t: expected a matrix", function () fnn.zeros(2):t() end)
    fails("sizes make 2 of the 3", function () x:split({ 1, 1 }, 2) end)
    fails("narrow: 4 elements do not follow",
          function () x:split({ 1, 4 }, 2) end)
  end)

  it("cut into parts", function ()
    local function shapes (parts)
      local list = {}
      for i, p in ipairs(parts) do list[i] = p:size(1) end
      return list
    end
    local x = fnn.arange(7)
    assert.same({ 3, 3, 1 }, shapes(x:split(3)))
    assert.same({ 2, 2, 2, 1 }, shapes(x:chunk(4)))
    assert.same({ 1, 6 }, shapes(x:split{ 1, 6 }))
    assert.same({ 0 }, shapes(fnn.zeros(0):split(2)))
    assert.equal(3, x:unbind()[4]:item())
  end)
end)
