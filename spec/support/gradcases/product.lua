-- product.lua - gradient checks of products of matrices.

local fnn = require "fnn"

local cases = {}

local function add(op, options, inputs, f, more)
  local case = { op = op, options = options, inputs = inputs, f = f }
  for k, v in pairs(more or {}) do case[k] = v end
  cases[#cases + 1] = case
end

local function matmul(x, y) return x:matmul(y) end

add("matmul", "vectors", { { 4 }, { 4 } }, matmul)
add("matmul", "matrix and vector", { { 3, 4 }, { 4 } }, matmul,
    { empty = { { 0, 4 }, { 4 } } })
add("matmul", "vector and matrix", { { 3 }, { 3, 4 } }, matmul)
add("matmul", "matrices", { { 3, 4 }, { 4, 2 } }, matmul,
    { empty = { { 0, 4 }, { 4, 2 } } })
add("matmul", "an empty sum", { { 3, 4 }, { 4, 2 } }, matmul,
    { empty = { { 3, 0 }, { 0, 2 } } })
add("matmul", "one matrix twice", { { 3, 3 } },
    function(x, y) return x:matmul(y or x) end,
    { twice = true, empty = { { 0, 0 } } })
add("matmul", "by its transpose", { { 3, 4 } },
    function(x) return fnn.matmul(x:t(), x) end)
add("matmul", "batches", { { 2, 3, 4 }, { 2, 4, 2 } }, matmul)
add("matmul", "a batch and a matrix", { { 2, 3, 4 }, { 4, 2 } }, matmul,
    { empty = { { 0, 3, 4 }, { 4, 2 } } })
add("matmul", "a matrix and a batch", { { 3, 4 }, { 2, 4, 2 } }, matmul,
    { empty = { { 3, 4 }, { 0, 4, 2 } } })
add("matmul", "a batch and a vector", { { 2, 3, 4 }, { 4 } }, matmul,
    { empty = { { 0, 3, 4 }, { 4 } } })
add("matmul", "batches stretched", { { 2, 1, 3, 2 }, { 3, 2, 2 } }, matmul,
    { empty = { { 0, 1, 3, 2 }, { 3, 2, 2 } } })

add("linear", "weight", { { 3, 4 }, { 2, 4 } },
    function(x, w) return x:linear(w) end, { empty = { { 0, 4 }, { 2, 4 } } })
for _, act in ipairs { false, "relu", "tanh", "sigmoid", "gelu", "silu" } do
  add("linear", "weight, bias, " .. (act or "no act"),
      { { 2, 3, 4 }, { 2, 4 }, { 2 } },
      function(x, w, b) return x:linear(w, b, act or nil) end,
      { empty = { { 0, 3, 4 }, { 2, 4 }, { 2 } } })
end
add("linear", "a vector", { { 4 }, { 2, 4 }, { 2 } },
    function(x, w, b) return x:linear(w, b) end,
    { empty = { { 0 }, { 2, 0 }, { 2 } } })

local function cross(x, y) return x:cross(y) end

add("cross", "vectors", { { 3 }, { 3 } }, cross, { empty = false })
add("cross", "rows", { { 4, 3 }, { 4, 3 } }, cross)
add("cross", "one with many", { { 4, 3 }, { 3 } }, cross,
    { empty = { { 0, 3 }, { 3 } } })
add("cross", "itself and another", { { 2, 3 } },
    function(x, y) return x:cross((y or x):flip(2)) end, { twice = true })
add("cross", "columns", { { 3, 5 }, { 3, 1 } },
    function(x, y) return x:cross(y, 1) end,
    { empty = { { 3, 0 }, { 3, 1 } }, expand = 2 })

local function einsum(spec, inputs, empty)
  add("einsum", spec, inputs,
      function(...) return fnn.einsum(spec, ...) end, { empty = empty })
end

einsum("ij,jk->ik", { { 3, 4 }, { 4, 2 } }, { { 0, 4 }, { 4, 2 } })
einsum("bij,bkj->bik", { { 2, 3, 4 }, { 2, 2, 4 } })
einsum("ii->i", { { 3, 3 } }, { { 0, 0 } })
einsum("ii", { { 3, 3 } }, { { 0, 0 } })
einsum("ij->j", { { 3, 4 } })
einsum("i,j->ij", { { 3 }, { 4 } }, { { 0 }, { 4 } })
einsum("bi,ij,bj->b", { { 2, 3 }, { 3, 4 }, { 2, 4 } },
       { { 0, 3 }, { 3, 4 }, { 0, 4 } })

-- Tables of any angles: the derivative does not ask for their law.
local function rotary(options)
  return function(x)
    local as = { dtype = x:dtype(), generator = fnn.Generator(1) }
    local a = fnn.randn({ 9, 2 }, as):to(x:device())
    return x:rotary(a:cos(), a:sin(), options)
  end
end

add("rotary", "all numbers", { { 2, 3, 2, 4 } }, rotary())
add("rotary", "a few heads of one", { { 2, 3, 4 } }, rotary())
add("rotary", "in part, interleaved, from a place on", { { 2, 1, 2, 5 } },
    rotary { interleaved = true, positions = 7 })
add("rotary", "in part, at places of its own", { { 2, 3, 6 } }, function(x)
  local places = fnn.tensor({ 4, 0, 8 }, { dtype = "i64" }):to(x:device())
  return rotary { positions = places }(x)
end)

return cases
