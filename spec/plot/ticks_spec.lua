-- ticks_spec.lua - marks of axes against lists made by hand.

local ticks = dofile "lua/fnn/plot/ticks.lua"

local function labels(list)
  local texts = {}
  for i, t in ipairs(list) do texts[i] = t.label end
  return table.concat(texts, " ")
end

local function linear(lo, hi, count, whole)
  return labels(ticks.linear(lo, hi, count, whole))
end

describe("ticks of a linear axis", function()
  it("are multiples of 1, 2 or 5 times a power of ten", function()
    assert.equal("0 2 4 6 8 10", linear(0, 10, 5))
    assert.equal("0 1 2 3 4 5 6 7 8 9 10", linear(0, 10, 10))
    assert.equal("-1.0 -0.5 0 0.5 1.0", linear(-1, 1, 5))
    assert.equal("0.02 0.04 0.06 0.08", linear(0.013, 0.099, 5))
    assert.equal("100 150 200", linear(99, 203, 3))
    assert.equal("97 98 99 100 101", linear(96.7, 101.2, 5))
  end)

  it("lie where their labels say", function()
    for _, t in ipairs(ticks.linear(-0.7, 0.7, 10)) do
      assert.equal(tonumber(t.label), t.at)
    end
    assert.equal(0.3, ticks.linear(0, 0.4, 4)[4].at)
  end)

  it("are written with an exponent where numbers are large or small",
     function()
    assert.equal("0 2e6 4e6 6e6", linear(0, 7e6, 4))
    assert.equal("0 5e5 1e6 1.5e6", linear(0, 1.7e6, 4))
    assert.equal("0 2e-6 4e-6", linear(0, 5e-6, 3))
    assert.equal("1e-300 2e-300 3e-300", linear(1e-300, 3e-300, 2))
    assert.equal("-1e300 0 1e300", linear(-1e300, 1e300, 2))
  end)

  it("are told apart far from zero", function()
    assert.equal("1000000000.0 1000000000.5 1000000001.0",
                 linear(1e9, 1e9 + 1, 2))
    assert.equal("1.000001 1.000002", linear(1.0000009, 1.0000021, 2))
  end)

  it("are whole where things are counted", function()
    assert.equal("1 2 3", linear(0.9, 3.1, 10, true))
    assert.equal("0 20 40", linear(0, 50, 3, true))
    assert.equal("1", linear(0.9, 1.1, 5, true))
  end)

  it("are few for any span", function()
    for e = -300, 300, 7 do
      for _, count in ipairs { 1, 3, 7, 20 } do
        local n = #ticks.linear(-3.3 * 10.0 ^ e, 5.7 * 10.0 ^ e, count)
        assert.is_true(n >= 1 and n <= count + 1, e .. " " .. n)
      end
    end
  end)
end)

describe("ticks of a logarithmic axis", function()
  local function logarithmic(lo, hi, count)
    local list, minor = ticks.log(math.log(lo, 10), math.log(hi, 10), count)
    return labels(list), #minor
  end

  it("are decades, with eight small ones between two", function()
    local text, minor = logarithmic(1, 1000, 6)
    assert.equal("1 10 100 1000", text)
    assert.equal(24, minor)
    assert.equal("0.001 0.01 0.1", (logarithmic(0.0009, 0.11, 6)))
    assert.equal("1e-7 1e-6 1e-5 0.0001", (logarithmic(1e-7, 1e-4, 6)))
    assert.equal("100000 1e6 1e7", (logarithmic(1e5, 1e7, 6)))
  end)

  it("leave decades out where there are many", function()
    assert.equal("1e-10 1e-5 1 100000 1e10", (logarithmic(1e-10, 1e10, 5)))
  end)

  it("are 1, 2 and 5 in few decades, and linear in a part of one", function()
    assert.equal("1 2 5 10 20", (logarithmic(0.9, 30, 6)))
    assert.equal("3.2 3.3 3.4", (logarithmic(3.15, 3.45, 3)))
  end)
end)

describe("a number on its own", function()
  it("is short", function()
    local expected = {
      [0] = "0", [3] = "3", [-2.5] = "-2.5", [123456] = "123456",
      [0.123456] = "0.1235", [1e-7] = "1e-7", [123456.7] = "1.235e5",
      [1e6] = "1e6", [2.5e6] = "2.5e6", [1234567] = "1234567",
      [1 / 0] = "inf", [-1 / 0] = "-inf",
    }
    for v, text in pairs(expected) do assert.equal(text, ticks.short(v)) end
    assert.equal("nan", ticks.short(0 / 0))
    assert.equal("nan", ticks.short(-(0 / 0)))
  end)
end)
