local device = require "spec.support.device"
local fnn = require "fnn"

describe("cumsum on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  local shapes = { { 3, 1 }, { 2, 2 }, { 3, 7 }, { 2, 31 }, { 2, 33 },
                   { 2, 255 }, { 2, 257 }, { 1, 1024 }, { 2, 1025 },
                   { 2, 5000 }, { 1, 50257 }, { 3, 9, 5 }, { 2, 300, 3 },
                   { 1, 5000, 2 }, { 0, 4 }, { 4, 0 }, { 4, 0, 2 } }

  it("has the CPU's values and gradients", function()
    for _, s in ipairs(shapes) do
      local x = fnn.randn(s, { generator = fnn.Generator(#s + s[2]) }) * 0.1
      device.all("cumsum", function(v) return v:cumsum(2) end, { x },
                 { dtypes = s[2] > 1000 and { "f32", "bf16" } or nil })
    end
  end)

  it("counts integers exactly", function()
    for _, s in ipairs(shapes) do
      for _, t in ipairs { "i64", "i32", "u8", "bool" } do
        local x = fnn.randint(0, 3, s, { generator = fnn.Generator(7) }):to(t)
        device.parity("cumsum integers", function(v) return v:cumsum(2) end,
                      { x }, { back = false })
      end
    end
  end)

  it("loses nothing on the way and gives the same bits twice", function()
    local x = fnn.full({ 300000 }, 0.1)
    device.parity("cumsum", function(v) return v:cumsum(1) end, { x },
                  { back = false, tolerance = 1e-7 })
    local y = fnn.randn(2, 40000, { generator = fnn.Generator(8) })
                  :to(device.name)
    for _, z in ipairs { y, y:t():contiguous() } do
      for dim = 1, 2 do
        local a, b = z:cumsum(dim):to "cpu", z:cumsum(dim):to "cpu"
        assert.is_true(a:eq(b):all():item())
      end
    end
  end)
end)
