local device = require "spec.support.device"
local fnn = require "fnn"
local nn = fnn.nn

describe("ctc on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  local function scores(steps, n, classes)
    local g = fnn.Generator(steps * 100 + classes)
    return fnn.randn({ steps, n, classes }, { generator = g })
  end

  local function labels(n, most, classes)
    local g = fnn.Generator(n + most)
    return fnn.randint(1, classes, { n, most }, { generator = g })
  end

  local reductions = { "mean", "sum", "none" }

  it("has the CPU's values and gradients", function()
    for _, s in ipairs { { 1, 1, 2, 1 }, { 6, 3, 5, 2 }, { 30, 2, 9, 10 },
                         { 12, 3, 3, 5 }, { 300, 1, 5, 140 } } do
      local steps, n, classes, most = table.unpack(s)
      local all, lengths = {}, {}
      for i = 1, n do
        all[i], lengths[i] = math.max(1, steps - i + 1), most - (i - 1) // 2
      end
      for _, r in ipairs(steps < 100 and reductions or { "sum" }) do
        device.all("ctc", function(x, t)
          return nn.ctc(x:log_softmax(3), t, all, lengths, { reduction = r })
        end, { scores(steps, n, classes), labels(n, most, classes) },
        { dtypes = steps > 100 and { "f32" } or nil, bf16 = 0.2, f16 = 2e-2 })
      end
    end
  end)

  it("knows other blanks, labels in a row and what does not fit", function()
    local x = scores(4, 3, 6)
    local t = fnn.tensor({ 1, 2, 3, 3, 3, 0, 1, 1 }, { dtype = "i64" })
    for _, zero in ipairs { true, false } do
      device.all("ctc", function(v, y)
        return nn.ctc(v:log_softmax(3), y, { 4, 4, 3 }, { 2, 3, 3 },
                      { blank = 5, reduction = "none", zero_infinity = zero })
      end, { x, t }, { back = zero, dtypes = { "f32", "f64" } })
    end
    device.all("ctc", function(v, y)
      return nn.ctc(v:log_softmax(3), y, { 0, 4, 3 }, { 0, 0, 1 },
                    { reduction = "sum", zero_infinity = true })
    end, { x, labels(3, 2, 6) }, { dtypes = { "f32", "f64" } })
  end)

  it("ignores padding that is no class", function()
    local t = labels(2, 4, 5)
    t:narrow(2, 3, 2):fill_(-7)
    device.parity("ctc", function(v, y)
      return nn.ctc(v:log_softmax(3), y, { 6, 6 }, { 2, 1 })
    end, { scores(6, 2, 5), t })
  end)
end)
