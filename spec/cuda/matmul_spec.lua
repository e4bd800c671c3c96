-- matmul_spec.lua - products on the second device: shapes, strides, batches,
-- dtypes, what follows them, and a machine without cuBLAS.

local fnn = require "fnn"
local device = require "spec.support.device"
local shell = require "spec.support.shell"

local program = shell.FNN

local function randn(...)
  local shape = { ... }
  local g = fnn.Generator(#shape * 7 + shape[1])
  return fnn.randn(shape, { generator = g }) / 4
end

local function matmul(x, y) return x:matmul(y) end

local function turned(x) return x:transpose(-2, -1) end

local function describe_there(name, f)
  describe(name, function()
    if device.there() then f() else pending "no second device" end
  end)
end

describe_there("matmul on cuda", function()
  it("has the cpu's values and gradients at the edges of tiles", function()
    local sizes = { { 1, 1, 1 }, { 7, 33, 31 }, { 32, 64, 33 }, { 1, 257, 7 },
                    { 65, 1, 5 }, { 33, 255, 1 }, { 256, 7, 31 } }
    for _, s in ipairs(sizes) do
      device.all("matmul", matmul, { randn(s[1], s[3]), randn(s[3], s[2]) })
    end
  end)

  it("reads transposed operands where they are", function()
    device.all("matmul of a turned a", function(x, y)
      return turned(x):matmul(y)
    end, { randn(31, 33), randn(31, 7) })
    device.all("matmul of a turned b", function(x, y)
      return x:matmul(turned(y))
    end, { randn(33, 31), randn(7, 31) })
    device.all("matmul of both turned", function(x, y)
      return turned(x):matmul(turned(y))
    end, { randn(31, 33), randn(7, 31) })
  end)

  it("copies what has no stride of 1, or repeats itself", function()
    device.all("matmul of every second column", function(x, y)
      return x:slice(2, 1, -1, 2):matmul(y:slice(2, 1, -1, 3))
    end, { randn(9, 14), randn(7, 20) })
    device.all("matmul of a stretched row", function(x, y)
      return x:expand(9, 7):matmul(y:expand(7, 5))
    end, { randn(1, 7), randn(7, 1) })
    device.all("matmul of part of a matrix", function(x, y)
      return x:narrow(2, 3, 5):matmul(y:narrow(1, 2, 5))
    end, { randn(7, 9), randn(8, 33) })
  end)

  it("takes vectors", function()
    device.all("matmul of vectors", matmul, { randn(33), randn(33) })
    device.all("matmul of a matrix", matmul, { randn(7, 33), randn(33) })
    device.all("matmul by a matrix", matmul, { randn(33), randn(33, 7) })
    device.all("matmul of strided vectors", function(x, y)
      return x:select(2, 1):matmul(y:select(1, 2))
    end, { randn(33, 3), randn(4, 33) })
  end)

  it("takes batches", function()
    local cases = {
      { { 5, 7, 9 }, { 5, 9, 3 } }, { { 5, 7, 9 }, { 9, 3 } },
      { { 7, 9 }, { 5, 9, 3 } }, { { 3, 1, 7, 9 }, { 4, 9, 2 } },
      { { 3, 4, 1, 9 }, { 9, 2 } }, { { 2, 1, 7, 9 }, { 1, 5, 9, 2 } },
      { { 2, 3, 1, 9 }, { 2, 3, 9, 1 } }, { { 1, 4, 7, 9 }, { 2, 1, 9, 2 } },
    }
    for _, c in ipairs(cases) do
      device.all("matmul of batches", matmul,
                 { randn(table.unpack(c[1])), randn(table.unpack(c[2])) })
    end
  end)

  it("takes the heads of attention, in a loop and copied", function()
    for _, batch in ipairs { 2, 12 } do
      device.all("heads", function(q, k)
        q = q:view(batch, 7, 13, 4):transpose(2, 3)
        k = k:view(batch, 5, 13, 4):transpose(2, 3)
        return q:matmul(turned(k))
      end, { randn(batch, 7, 52), randn(batch, 5, 52) })
    end
    device.all("shared by both", function(q, k)
      return q:unsqueeze(2):matmul(k:unsqueeze(1))
    end, { randn(10, 3, 4), randn(11, 4, 2) })
    device.all("leading dims turned", function(x, y)
      return x:permute(2, 1, 4, 3):matmul(y:permute(2, 1, 3, 4))
    end, { randn(3, 10, 4, 5), randn(3, 10, 4, 2) })
  end)

  it("adds a batch of transposed rows up as one", function()
    device.all("folded", function(x, y)
      return x:permute(2, 3, 1):matmul(y)
    end, { randn(9, 5, 7), randn(9, 3) })
    device.all("folded rows of one", function(x, y)
      return x:unsqueeze(2):matmul(y)
    end, { randn(9, 5), randn(5, 3) })
  end)

  it("mixes dtypes as the cpu does", function()
    local a, b = randn(7, 9), randn(9, 5)
    for _, t in ipairs { { "f16", "f32" }, { "f32", "bf16" },
                         { "f16", "bf16" }, { "f64", "f16" } } do
      local x, y = a:to(t[1]), b:to(t[2])
      local want = x:matmul(y)
      local got = x:to(device.name):matmul(y:to(device.name))
      assert.equal(want:dtype(), got:dtype())
      local gap = (got:to "cpu" - want):abs():max():item()
      assert.is_true(gap < 1e-6, t[1] .. " by " .. t[2])
      local columns = turned(x):contiguous():to(device.name)
      got = turned(columns):matmul(y:to(device.name))
      gap = (got:to "cpu" - want):abs():max():item()
      assert.is_true(gap < 1e-6, t[1] .. " turned by " .. t[2])
    end
  end)

  it("keeps 16-bit products in their dtype, summed in f32", function()
    for _, t in ipairs { "f16", "bf16" } do
      local x = fnn.ones { 1, 4096 }:to(t):to(device.name)
      local y = x:matmul(turned(x))
      assert.equal(t, y:dtype())
      assert.equal(4096, y:to("cpu"):to("f32"):item())
    end
  end)

  it("is zero, or the bias, where nothing is summed", function()
    for _, s in ipairs { { 3, 0, 5 }, { 0, 4, 5 }, { 3, 4, 0 } } do
      device.all("empty", matmul,
                 { fnn.randn { s[1], s[2] }, fnn.randn { s[2], s[3] } })
    end
    device.all("empty batch", matmul,
               { fnn.randn { 0, 3, 4 }, fnn.randn { 4, 5 } })
    local y = fnn.zeros({ 3, 0 }):to(device.name)
    local w = fnn.zeros({ 5, 0 }):to(device.name)
    local b = fnn.tensor({ -2, -1, 0, 1, 2 }):to(device.name)
    local rows = y:linear(w, b, "relu"):to "cpu"
    assert.same({ 0, 0, 0, 1, 2 }, rows[2]:totable())
  end)

  it("wraps integers", function()
    local g = fnn.Generator(3)
    for _, t in ipairs { "u8", "i32", "i64" } do
      local o = { generator = g, dtype = t }
      local function ints(...) return fnn.randint(0, 120, { ... }, o) end
      local cases = { { ints(17, 33), ints(33, 16) },
                      { ints(1, 1), ints(1, 1) },
                      { ints(3, 17, 5), ints(5, 31) },
                      { ints(2, 1, 4, 15), ints(3, 15, 18) },
                      { ints(2, 0), ints(0, 3) } }
      for _, c in ipairs(cases) do
        device.parity("integers " .. t, matmul, c)
      end
    end
    local big = fnn.full({ 5, 5 }, 3037000500, { dtype = "i64" })
    device.parity("integers that wrap", matmul, { big, big })
  end)
end)

describe_there("linear on cuda", function()
  it("adds the bias and applies the activation", function()
    for _, act in ipairs { "none", "relu", "sigmoid", "tanh", "exp", "gelu",
                           "silu" } do
      for _, n in ipairs { 1, 7, 33, 64, 1028 } do
        device.all("linear " .. act, function(x, w, b)
          if act == "none" then return x:linear(w, b) end
          return x:linear(w, b, act)
        end, { randn(5, 3, 9), randn(n, 9), randn(n) })
      end
      device.parity("linear " .. act .. " without bias", function(x, w)
        return act == "none" and x:linear(w) or x:linear(w, nil, act)
      end, { randn(5, 9), randn(8, 9) })
    end
  end)

  it("keeps NaN through relu", function()
    local x = fnn.tensor { { 0 / 0, 1 }, { -1, 2 } }
    device.all("linear of NaN", function(a, w, b)
      return a:linear(w, b, "relu")
    end, { x, randn(3, 2), randn(3) }, { back = false })
  end)

  it("is a module's", function()
    local layer = fnn.nn.Linear(33, 65)
    local x = randn(7, 33)
    local want = layer(x)
    layer:to(device.name)
    local got = layer(x:to(device.name)):to "cpu"
    assert.is_true((got - want):abs():max():item() < 1e-5)
  end)
end)

describe_there("einsum on cuda", function()
  for _, spec in ipairs { "ij,jk->ik", "bij,bkj->bik", "bhid,bhjd->bhij",
                          "ij,ij->", "i,j->ij", "bij,bj->i" } do
    it(spec, function()
      local size = { b = 3, h = 2, i = 7, j = 9, k = 5, d = 4 }
      local inputs = {}
      for word in spec:match("(.*)%->"):gmatch "%a+" do
        local shape = {}
        for letter in word:gmatch "." do shape[#shape + 1] = size[letter] end
        inputs[#inputs + 1] = randn(table.unpack(shape))
      end
      device.all("einsum " .. spec, function(...)
        return fnn.einsum(spec, ...)
      end, inputs)
    end)
  end
end)

describe_there("without cuBLAS", function()
  local script = [[-e 'local x = require("fnn").ones{2, 2}:to("cuda")
    x:matmul(x)
    print("made")']]

  local function run(env) return shell.run(program .. " " .. script,
                                           { env = env }) end

  it("the first product says what was tried", function()
    if not program:find "emulate" and not program:find "check" then
      pending "only the emulator can take cuBLAS away"
      return
    end
    local _, err = run "EMU_CUBLAS="
    assert.matches("matmul: cuBLAS is not installed %(tried " ..
                   "libcublas.so.13, libcublas.so.12, libcublas.so.11 and " ..
                   "libcublas.so%)", err)
    _, err = run("EMU_CUBLAS=libcublas.so.12 " ..
                 "EMU_CUBLAS_LACKS=cublasSetMathMode")
    assert.matches("matmul: libcublas.so.12 has no cublasSetMathMode", err)
    assert.equal("made\n", (run "EMU_CUBLAS=libcublas.so.11"))
  end)
end)
